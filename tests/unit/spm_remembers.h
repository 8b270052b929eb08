// SPDX-License-Identifier: MIT
// What a SentencePiece model remembers of the machine that trained it, and how a test sees that no file repeats it.
// Include cmocka.h first.
#ifndef DGM_TESTS_UNIT_SPM_REMEMBERS_H
#define DGM_TESTS_UNIT_SPM_REMEMBERS_H

#include <string.h>

#include "base/bytes.h"
#include "base/mapfile.h"
#include "format/gguf.h"

#define PRIVATE_FOLDER "/home/nobody/corpus"

// A field of bytes, shorter than 128, with a number below 16.
static inline void write_short_field(dgm_writer *w, int number, const void *data, size_t size)
{
    dgm_write_u8(w, (uint8_t)(number << 3 | 2));
    dgm_write_u8(w, (uint8_t)size);
    dgm_write_bytes(w, data, size);
}

// Settings of a trainer and of a normaliser with names of files in them and nothing else.
static inline void write_remembered(dgm_writer *model)
{
    static const char input[] = PRIVATE_FOLDER "/pairs.en", rules[] = PRIVATE_FOLDER "/rules.tsv";
    dgm_writer trainer = {0}, normalizer = {0};
    write_short_field(&trainer, 1, input, sizeof input - 1);
    write_short_field(&trainer, 2, PRIVATE_FOLDER, sizeof PRIVATE_FOLDER - 1);
    write_short_field(&normalizer, 6, rules, sizeof rules - 1);
    write_short_field(model, 2, trainer.data, trainer.size);
    write_short_field(model, 3, normalizer.data, normalizer.size);
    dgm_writer_free(&trainer);
    dgm_writer_free(&normalizer);
}

static inline void expect_forgotten(const char *path)
{
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, path, NULL), DGM_OK);
    if (memmem(f.data, f.size, PRIVATE_FOLDER, sizeof PRIVATE_FOLDER - 1)) fail_msg("%s names " PRIVATE_FOLDER, path);
    dgm_mapfile_close(&f);
}

// A copy of a model file whose vocabularies remember, as those of old imports do.
static inline void copy_remembering(const char *from, const char *to)
{
    static const char *const keys[] = {"dragoman.source.vocab.sentencepiece", "dragoman.target.vocab.sentencepiece"};
    dgm_gguf *g = NULL;
    dgm_gguf_writer *w = NULL;
    assert_int_equal(dgm_gguf_open(&g, from, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
    dgm_gguf_set_copies(w, g);
    for (size_t i = 0; i < 2; i++) {
        const uint8_t *stored = NULL;
        size_t size = 0;
        assert_int_equal(dgm_gguf_get_bytes(g, keys[i], DGM_OPTIONAL, &stored, &size, NULL), DGM_OK);
        dgm_writer model = {0};
        dgm_write_bytes(&model, stored, size);
        write_remembered(&model);
        if (stored) dgm_gguf_set_array(w, keys[i], DGM_META_U8, model.data, model.size);
        dgm_writer_free(&model);
    }
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        dgm_gguf_add_tensor(w, t->name, (dgm_tensor_type)t->type, t->n_dims, t->shape, t->data);
    }
    assert_int_equal(dgm_gguf_write(w, to, NULL), DGM_OK);
    dgm_gguf_writer_close(&w);
    dgm_gguf_close(&g);
}

#endif
