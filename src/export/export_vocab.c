// SPDX-License-Identifier: MIT
// How a model spells its ids, for programs that list them; see export.h.
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/protobuf.h"
#include "export/export.h"
#include "import/spm_list.h"
#include "import/spm_paths.h"

static dgm_status spell(char **list, int size, int id, const char *text, size_t n, dgm_error *err)
{
    if (id < 0 || id >= size || list[id] || n == 0) return DGM_OK;
    list[id] = dgm_strndup(text, n);
    return list[id] ? DGM_OK : dgm_no_memory(err);
}

static dgm_status spell_item(char **list, const dgm_vocab_spec *v, size_t i, const dgm_spm_item *item, dgm_error *err)
{
    return spell(list, v->size, v->map ? v->map[i] : (int)i, item->piece, item->size, err);
}

static dgm_status spell_subwords(const dgm_vocab_spec *v, char **list, dgm_error *err)
{
    dgm_spm_list subwords;
    DGM_TRY(dgm_spm_list_read(&subwords, v->model, v->model_size, err));
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < subwords.count && st == DGM_OK; i++) {
        if (v->map && i >= v->map_count) break;
        st = spell_item(list, v, i, &subwords.items[i], err);
    }
    dgm_spm_list_free(&subwords);
    return st;
}

static dgm_status spell_list(dgm_gguf_strings it, int first, int size, char **list, dgm_error *err)
{
    dgm_gguf_text text;
    for (int id = first; dgm_gguf_strings_next(&it, &text); id++)
        DGM_TRY(spell(list, size, id, text.data, text.size, err));
    return DGM_OK;
}

static dgm_status spell_all(const dgm_vocab_spec *v, char **list, dgm_error *err)
{
    if (v->kind == DGM_SPEC_SENTENCEPIECE) {
        DGM_TRY(spell_subwords(v, list, err));
        DGM_TRY(spell_list(v->extra, v->size - (int)v->extra.count, v->size, list, err));
    } else {
        DGM_FAIL_IF(v->kind != DGM_SPEC_WORDS, err, DGM_ERR_UNSUPPORTED,
                    "a model with this kind of vocabulary cannot be exported (sentencepiece and words can)");
        DGM_TRY(spell_list(v->words, 0, v->size, list, err));
    }
    for (int i = 0; i < v->size; i++) {
        char made[32];
        const int n = snprintf(made, sizeof made, "<unused_%d>", i);
        DGM_TRY(spell(list, v->size, i, made, (size_t)n, err));
    }
    return DGM_OK;
}

dgm_status dgm_export_spellings(const dgm_export_model *m, int side, char ***out, dgm_error *err)
{
    const dgm_vocab_spec *v = &m->vocab[side];
    *out = dgm_calloc((size_t)v->size, sizeof **out);
    if (!*out) return dgm_no_memory(err);
    const dgm_status st = spell_all(v, *out, err);
    if (st != DGM_OK) dgm_export_spellings_free(m, side, out);
    return st;
}

void dgm_export_spellings_free(const dgm_export_model *m, int side, char ***list)
{
    for (int i = 0; *list && i < m->vocab[side].size; i++) dgm_free((*list)[i]);
    dgm_free(*list);
    *list = NULL;
}

// Subwords stand before all other parts of such a file; what import appended stands behind them.
size_t dgm_export_spm_size(const dgm_export_model *m, int side)
{
    const dgm_vocab_spec *v = &m->vocab[side];
    dgm_reader r = dgm_reader_over(v->model, v->model_size);
    size_t end = 0;
    if (v->kind != DGM_SPEC_SENTENCEPIECE) return 0;
    for (dgm_proto_field f; dgm_proto_next(&r, &f);)
        if (f.number != 1) end = r.pos;
    return end ? end : v->model_size;
}

dgm_status dgm_export_spm(const dgm_export_job *job, int side, const char *name, dgm_error *err)
{
    dgm_writer kept = {0};
    const void *model = job->model->vocab[side].model;
    dgm_status st = dgm_spm_without_paths(&kept, model, dgm_export_spm_size(job->model, side), err);
    if (st == DGM_OK) st = dgm_export_file(job, name, kept.data, kept.size, err);
    dgm_writer_free(&kept);
    return st;
}
