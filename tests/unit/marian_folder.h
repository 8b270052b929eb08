// SPDX-License-Identifier: MIT
// A tiny Hugging Face folder of a Marian model that a test makes itself: one layer each, width 4,
// vocabulary of 7. Weights are small multiples of 1/8, so that f32, f16 and bf16 hold them exactly.
// Functions fail the running cmocka test on errors. Include cmocka.h first.
#ifndef DGM_TESTS_UNIT_MARIAN_FOLDER_H
#define DGM_TESTS_UNIT_MARIAN_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/mapfile.h"
#include "spm_remembers.h"

#define D 4
#define F 6
#define V 7

static const char model_config[] =
    "{\"model_type\": \"marian\", \"d_model\": 4, \"encoder_layers\": 1, \"decoder_layers\": 1,"
    " \"encoder_attention_heads\": 2, \"decoder_attention_heads\": 2, \"encoder_ffn_dim\": 6,"
    " \"decoder_ffn_dim\": 6, \"activation_function\": \"swish\", \"scale_embedding\": true,"
    " \"vocab_size\": 7, \"max_position_embeddings\": 32, \"eos_token_id\": 0,"
    " \"pad_token_id\": 6, \"decoder_start_token_id\": 6}";
static const char generation_config[] =
    "{\"bad_words_ids\": [[6]], \"num_beams\": 3, \"max_length\": 30, \"length_penalty\": 0.5,"
    " \"forced_eos_token_id\": 0}";
static const char vocab_json[] =
    "{\"</s>\": 0, \"<unk>\": 1, \"a\": 3, \"b\": 2, \"\\u2581c\": 4, \"d\": 5, \"<pad>\": 6}";
static const char *const pieces[] = {"<unk>",
                                     "<s>",
                                     "</s>",
                                     "a",
                                     "b",
                                     "\xe2\x96\x81\x63", // U+2581 and c, which would be read as a digit
                                     "d"};

typedef struct folder {
    char path[64];
    const char *dtype;   // of all tensors
    bool shards;         // embeddings in one file, the rest in another
    const char *skip;    // leave this tensor out
    const char *extra;   // add this one, [2]
    const char *reshape; // give this one a column more
    bool separate;       // own embeddings for each side and the output, 5 target ids
} folder;

static inline void write_file(const folder *f, const char *name, const void *data, size_t size)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    assert_int_equal(dgm_file_write(path, data, size, NULL), DGM_OK);
}

static inline void write_text(const folder *f, const char *name, const char *text)
{
    write_file(f, name, text, strlen(text));
}

static inline void remove_file(const folder *f, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    unlink(path);
}

// A value that depends on the tensor's name and the position.
static inline float weight_at(const char *name, int i)
{
    unsigned h = 5;
    for (const char *p = name; *p; p++) h = h * 31 + (unsigned char)*p;
    return (float)((int)((h + (unsigned)i * 7) % 33) - 16) / 8;
}

typedef struct safe_file {
    dgm_writer header, data;
} safe_file;

static inline void put_tensor(const folder *f, safe_file *s, const char *name, int rows, int cols)
{
    if (f->skip && strcmp(f->skip, name) == 0) return;
    if (f->reshape && strcmp(f->reshape, name) == 0) cols++;
    size_t begin = s->data.size;
    for (int i = 0; i < (rows ? rows : 1) * cols; i++) {
        float v = weight_at(name, i);
        uint32_t bits;
        memcpy(&bits, &v, 4);
        if (strcmp(f->dtype, "F32") == 0)
            dgm_write_u32(&s->data, bits);
        else if (strcmp(f->dtype, "F16") == 0)
            dgm_write_u16(&s->data, dgm_float_to_half(v));
        else
            dgm_write_u16(&s->data, (uint16_t)(bits >> 16));
    }
    char shape[32];
    snprintf(shape, sizeof shape, rows ? "%d, %d" : "%d", rows ? rows : cols, cols);
    dgm_write_format(&s->header,
                     "%s\"%s\": {\"dtype\": \"%s\", \"shape\": [%s],"
                     " \"data_offsets\": [%zu, %zu]}",
                     s->header.size > 1 ? ", " : "", name, f->dtype, shape, begin, s->data.size);
}

static inline void put_layer(const folder *f, safe_file *s, const char *prefix, const char *name, int rows,
                      int cols)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s.weight", prefix, name);
    put_tensor(f, s, full, rows, cols);
    snprintf(full, sizeof full, "%s.%s.bias", prefix, name);
    put_tensor(f, s, full, 0, rows ? rows : cols);
}

static inline void put_block(const folder *f, safe_file *s, const char *prefix, bool decoder)
{
    static const char *const parts[] = {"q_proj", "k_proj", "v_proj", "out_proj"};
    char name[64];
    for (int a = 0; a < (decoder ? 2 : 1); a++) {
        const char *attention = a ? "encoder_attn" : "self_attn";
        for (int i = 0; i < 4; i++) {
            snprintf(name, sizeof name, "%s.%s", attention, parts[i]);
            put_layer(f, s, prefix, name, D, D);
        }
        snprintf(name, sizeof name, "%s_layer_norm", attention);
        put_layer(f, s, prefix, name, 0, D);
    }
    put_layer(f, s, prefix, "fc1", F, D);
    put_layer(f, s, prefix, "fc2", D, F);
    put_layer(f, s, prefix, "final_layer_norm", 0, D);
}

static inline void begin_safe(safe_file *s)
{
    memset(s, 0, sizeof *s);
    dgm_write_text(&s->header, "{");
}

static inline void end_safe(const folder *f, safe_file *s, const char *name)
{
    dgm_write_text(&s->header, "}");
    dgm_writer file = {0};
    dgm_write_u64(&file, s->header.size);
    dgm_write_bytes(&file, s->header.data, s->header.size);
    dgm_write_bytes(&file, s->data.data, s->data.size);
    write_file(f, name, file.data, file.size);
    dgm_writer_free(&file);
    dgm_writer_free(&s->header);
    dgm_writer_free(&s->data);
}

static inline void make_weights(const folder *f)
{
    safe_file s;
    remove_file(f, "model.safetensors");
    remove_file(f, "model.safetensors.index.json");
    begin_safe(&s);
    if (f->separate) {
        put_tensor(f, &s, "model.encoder.embed_tokens.weight", V, D);
        put_tensor(f, &s, "model.decoder.embed_tokens.weight", 5, D);
        put_tensor(f, &s, "lm_head.weight", 5, D);
        put_tensor(f, &s, "model.encoder.embed_positions.weight", 32, D);
    } else {
        put_tensor(f, &s, "model.shared.weight", V, D);
        put_tensor(f, &s, "final_logits_bias", 1, V);
    }
    if (f->shards) {
        end_safe(f, &s, "part1.safetensors");
        begin_safe(&s);
        write_text(f, "model.safetensors.index.json",
                   "{\"weight_map\": {\"model.shared.weight\": \"part1.safetensors\","
                   " \"model.encoder.layers.0.fc1.weight\": \"part2.safetensors\"}}");
    }
    put_block(f, &s, "model.encoder.layers.0", false);
    put_block(f, &s, "model.decoder.layers.0", true);
    if (f->extra) put_tensor(f, &s, f->extra, 0, 2);
    end_safe(f, &s, f->shards ? "part2.safetensors" : "model.safetensors");
}

static inline void make_spm(const folder *f, const char *name, size_t count)
{
    dgm_writer w = {0};
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(pieces[i]);
        dgm_write_u8(&w, 1 << 3 | 2); // field 1: a piece
        dgm_write_u8(&w, (uint8_t)(n + 2 + 5 + 2));
        dgm_write_u8(&w, 1 << 3 | 2); // its spelling
        dgm_write_u8(&w, (uint8_t)n);
        dgm_write_text(&w, pieces[i]);
        dgm_write_u8(&w, 2 << 3 | 5); // its score
        dgm_write_f32(&w, -(float)i);
        dgm_write_u8(&w, 3 << 3 | 0); // its kind
        dgm_write_u8(&w, i == 0 ? 2 : i < 3 ? 3 : 1);
    }
    write_remembered(&w); // no model file repeats it
    write_file(f, name, w.data, w.size);
    dgm_writer_free(&w);
}

static inline folder make_folder(void)
{
    folder f = {.dtype = "F32"};
    strcpy(f.path, "/tmp/dgm-import-XXXXXX");
    assert_non_null(mkdtemp(f.path));
    write_text(&f, "config.json", model_config);
    write_text(&f, "generation_config.json", generation_config);
    write_text(&f, "tokenizer_config.json",
               "{\"source_lang\": \"eng\", \"target_lang\": \"de-AT\"}");
    write_text(&f, "vocab.json", vocab_json);
    make_spm(&f, "source.spm", 7);
    make_spm(&f, "target.spm", 7);
    make_weights(&f);
    return f;
}

static inline void remove_folder(const folder *f)
{
    static const char *const names[] = {
        "config.json",       "generation_config.json", "tokenizer_config.json",
        "vocab.json",        "target_vocab.json",      "source.spm",
        "target.spm",        "model.safetensors",      "model.safetensors.index.json",
        "part1.safetensors", "part2.safetensors",      "out.gguf",
        "pytorch_model.bin"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) remove_file(f, names[i]);
    assert_int_equal(rmdir(f->path), 0); // also: no temporary file was left
}

#endif
