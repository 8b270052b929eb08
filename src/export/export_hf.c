// SPDX-License-Identifier: MIT
// Exports to Hugging Face transformers. Models with norms behind their layers become MarianMT, here: sinusoids
// 10000^(-2i/D) or learned positions, biases everywhere. transformers starts the decoder with the row of <pad>: a model
// that starts from zeros gets one more id whose row is zero, as OPUS-MT's models have it. Models with norms
// before their layers are M2M100, NLLB or mBART: export_m2m.c. Weights of 8 and 16 bits of integers become f32.
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "export/export_hf_private.h"

// ---- what it can hold ----------------------------------------------------------------------------

static dgm_status check(const dgm_hf_folder *x, dgm_error *err)
{
    const dgm_export_model *m = x->m;
    DGM_FAIL_IF((strcmp(m->positions, "sinusoid") != 0 && strcmp(m->positions, "learned") != 0) || m->position_offset,
                err, DGM_ERR_UNSUPPORTED,
                "MarianMT has no positions '%s' with offset %d ('sinusoid' or 'learned' with 0)", m->positions,
                m->position_offset);
    DGM_FAIL_IF(dgm_gguf_find_tensor(m->g, "enc.embed_norm.weight") ||
                    dgm_gguf_find_tensor(m->g, "dec.embed_norm.weight"),
                err, DGM_ERR_UNSUPPORTED, "MarianMT has no norm of embeddings (enc.embed_norm)");
    DGM_TRY(dgm_hf_check(x, err));
    DGM_FAIL_IF(!x->joint && x->zero_start && m->sizes[0] != m->sizes[1], err, DGM_ERR_UNSUPPORTED,
                "MarianMT has one <pad> for both sides, and vocabularies of %d and %d ids have no place for it",
                m->sizes[0], m->sizes[1]);
    return DGM_OK;
}

// As many as a table has rows.
static int positions(const dgm_export_model *m)
{
    const dgm_tensor *t = dgm_gguf_find_tensor(m->g, "enc.pos");
    return strcmp(m->positions, "learned") == 0 && t ? t->rows : m->decode.max_source;
}

// ---- vocabulary ----------------------------------------------------------------------------------

// Spelling -> id. Where both sides share their ids, the target's spellings fill in what the source's model lacks.
static dgm_status write_vocab(const dgm_hf_folder *x, const char *file, int side, char **own, char **other,
                              dgm_error *err)
{
    json_t *ids = json_object();
    const int size = x->m->sizes[side];
    const char *text = "";
    int id = 0;
    bool fine = ids != NULL;
    for (int i = 0; i < size && fine; i++) {
        id = i;
        text = other && strncmp(own[i], "<unused_", 8) == 0 ? other[i] : own[i];
        fine = json_object_get(ids, text) || json_object_set_new(ids, text, json_integer(i)) == 0;
    }
    if (x->zero_start) fine = fine && json_object_set_new(ids, "<pad>", json_integer(size)) == 0;
    if (fine) return dgm_export_json(x->job, file, ids, err);
    json_decref(ids);
    return dgm_export_spelling(text, id, err);
}

static dgm_status write_vocabularies(const dgm_hf_folder *x, dgm_error *err)
{
    const dgm_export_model *m = x->m;
    char **spelled[2] = {NULL, NULL};
    dgm_status st = dgm_export_spellings(m, 0, &spelled[0], err);
    if (st == DGM_OK) st = dgm_export_spellings(m, 1, &spelled[1], err);
    if (st == DGM_OK) st = write_vocab(x, "vocab.json", 0, spelled[0], x->joint ? spelled[1] : NULL, err);
    if (st == DGM_OK && !x->joint) st = write_vocab(x, "target_vocab.json", 1, spelled[1], NULL, err);
    for (int side = 0; side < 2; side++) dgm_export_spellings_free(m, side, &spelled[side]);
    for (int side = 0; side < 2 && st == DGM_OK; side++)
        st = dgm_export_spm(x->job, side, side ? "target.spm" : "source.spm", err);
    return st;
}

static dgm_status write_tokenizer(const dgm_hf_folder *x, dgm_error *err)
{
    static const char *const keys[2][2] = {{"dragoman.languages.source", "source_lang"},
                                           {"dragoman.languages.target", "target_lang"}};
    json_t *t = json_pack("{s:s,s:b,s:i}", "tokenizer_class", "MarianTokenizer", "separate_vocabs", !x->joint,
                          "model_max_length", x->m->decode.max_source);
    for (int side = 0; t && side < 2; side++) {
        dgm_gguf_strings it = {0};
        dgm_gguf_text text;
        if (dgm_gguf_get_strings(x->m->g, keys[side][0], DGM_OPTIONAL, &it, NULL) != DGM_OK || it.count != 1) continue;
        if (!dgm_gguf_strings_next(&it, &text) ||
            json_object_set_new(t, keys[side][1], json_stringn(text.data, text.size)) == 0)
            continue;
        json_decref(t);
        return dgm_no_memory(err);
    }
    return dgm_export_json(x->job, "tokenizer_config.json", t, err);
}

dgm_status dgm_export_marian(const dgm_export_job *job, dgm_error *err)
{
    const dgm_export_model *m = job->model;
    const dgm_vocab_spec *t = &m->vocab[1];
    dgm_hf_folder x = {.job = job,
                       .m = m,
                       .kind = "MarianMT",
                       .type = "marian",
                       .class = "MarianMTModel",
                       .zero_start = t->start < 0,
                       .joint = t->shared || (m->source == m->target && m->sizes[0] == m->sizes[1]),
                       .one_embedding = m->source == m->target,
                       .logits_bias = true,
                       .bos = t->bos >= 0 ? t->bos : t->eos,
                       .lead = 1,
                       .forced = -1,
                       .positions = positions(m)};
    for (int side = 0; side < 2; side++) x.size[side] = m->sizes[side] + x.zero_start;
    x.pad = x.zero_start ? m->sizes[1] : t->pad >= 0 ? t->pad : t->start;
    x.start = x.zero_start ? x.pad : t->start;
    DGM_TRY(check(&x, err));
    json_t *own = json_pack("{s:b,s:i,s:b,s:b}", "share_encoder_decoder_embeddings", (int)x.one_embedding,
                            "decoder_vocab_size", x.size[1], "static_position_embeddings", 1, "normalize_before", 0);
    DGM_TRY(dgm_hf_config(&x, own, err));
    DGM_TRY(dgm_hf_generation(&x, err));
    DGM_TRY(write_vocabularies(&x, err));
    DGM_TRY(write_tokenizer(&x, err));
    return dgm_hf_weights(&x, err);
}

dgm_status dgm_export_huggingface(const dgm_export_job *job, dgm_error *err)
{
    return job->model->pre_norm ? dgm_export_many(job, err) : dgm_export_marian(job, err);
}
