// SPDX-License-Identifier: MIT
// Phrase-based systems; see phrase_system.h.
#include "phrase/phrase_system.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

enum { WORDS_MAX = 100000 }; // of a line

// ---- the system -------------------------------------------------------------------------------

static dgm_status set_params(dgm_phrase_system *s, const dgm_phrasal_options *o, dgm_error *err)
{
    dgm_pb_params_default(&s->params);
    if (o->uniform) dgm_pb_weights_uniform(&s->params.weights);
    if (o->weights) DGM_TRY(dgm_pb_weights_read(&s->params.weights, o->weights, err));
    s->params.pops = o->pops;
    s->params.stack = o->stack;
    s->params.jump = o->jump;
    s->params.table_limit = o->table_limit;
    s->params.nbest = o->nbest;
    s->params.distinct = o->distinct != 0;
    s->lattice_beam = o->lattice_beam;
    return dgm_pb_params_check(&s->params, err);
}

static dgm_status set_wording(dgm_phrase_system *s, const dgm_phrasal_options *o,
                              const dgm_vocab *const subwords[2], dgm_error *err)
{
    const char *const language[2] = {o->tokenize, o->detokenize};
    DGM_FAIL_IF(o->subwords && (o->tokenize || o->detokenize), err, DGM_ERR_ARGUMENT,
                "tokens of a model become text by themselves; no language is needed");
    for (int side = 0; side < 2; side++) {
        s->wording[side] = (dgm_wording){.subwords = subwords[side], .moses = language[side]};
        if (language[side]) s->wording[side].language = dgm_language_of(dgm_text_of(language[side]));
    }
    return DGM_OK;
}

static dgm_status open_models(dgm_phrase_system *s, const dgm_phrasal_options *o,
                              const dgm_vocab *const subwords[2], dgm_error *err)
{
    DGM_FAIL_IF(!o->table || !o->lm, err, DGM_ERR_ARGUMENT,
                "a phrase table and a language model are needed");
    DGM_TRY(set_params(s, o, err));
    DGM_TRY(set_wording(s, o, subwords, err));
    DGM_TRY(dgm_phrase_table_open(&s->table, o->table, o->reordering, err));
    DGM_TRY(dgm_lm_open(&s->lm, o->lm, err));
    return dgm_pb_model_open(&s->model, s->table, s->lm, &s->params, err);
}

dgm_status dgm_phrase_system_open(dgm_phrase_system **out, const dgm_phrasal_options *o,
                                  const dgm_vocab *const subwords[2], dgm_error *err)
{
    dgm_phrase_system *s = *out = dgm_calloc(1, sizeof *s);
    if (!s) return dgm_no_memory(err);
    const dgm_status st = open_models(s, o, subwords, err);
    if (st != DGM_OK) dgm_phrase_system_close(out);
    return st;
}

void dgm_phrase_system_close(dgm_phrase_system **out)
{
    dgm_phrase_system *s = *out;
    if (!s) return;
    dgm_pb_model_close(&s->model);
    dgm_lm_close(&s->lm);
    dgm_phrase_table_close(&s->table);
    dgm_free(s);
    *out = NULL;
}

// ---- decoding ---------------------------------------------------------------------------------

dgm_status dgm_phrase_worker_open(dgm_phrase_worker **out, const dgm_phrase_system *s,
                                  dgm_error *err)
{
    dgm_phrase_worker *w = *out = dgm_calloc(1, sizeof *w);
    if (!w) return dgm_no_memory(err);
    w->s = s;
    const dgm_status st = dgm_pb_decoder_open(&w->decoder, s->model, err);
    if (st != DGM_OK) dgm_phrase_worker_close(out);
    return st;
}

void dgm_phrase_worker_close(dgm_phrase_worker **out)
{
    dgm_phrase_worker *w = *out;
    if (!w) return;
    dgm_pb_decoder_close(&w->decoder);
    dgm_free(w->words);
    dgm_writer_free(&w->bytes);
    dgm_free(w);
    *out = NULL;
}

// Spellings move while the buffer grows: data holds where they begin until the line is done.
static dgm_status keep_word(void *cookie, dgm_text word, dgm_error *err)
{
    dgm_phrase_worker *w = cookie;
    DGM_TRY(dgm_grow(&w->words, &w->cap, w->count + 1, sizeof *w->words, err));
    w->words[w->count++] = (dgm_text){(const char *)(uintptr_t)w->bytes.size, word.size};
    dgm_write_bytes(&w->bytes, word.data, word.size);
    return w->bytes.failed ? dgm_no_memory(err) : DGM_OK;
}

dgm_status dgm_phrase_worker_decode(dgm_phrase_worker *w, dgm_text line,
                                    const dgm_pb_translation **list, int *count, dgm_error *err)
{
    if (w->bytes.failed) dgm_writer_free(&w->bytes);
    w->count = w->bytes.size = 0;
    DGM_TRY(dgm_wording_split(&w->s->wording[0], line, keep_word, w, err));
    for (size_t i = 0; i < w->count; i++)
        w->words[i].data = (const char *)w->bytes.data + (uintptr_t)w->words[i].data;
    DGM_FAIL_IF(w->count > WORDS_MAX, err, DGM_ERR_TEXT,
                "the line has %zu words; at most %d are allowed", w->count, WORDS_MAX);
    return dgm_pb_decode(w->decoder, w->words, (int)w->count, list, count, err);
}

// ---- lattices ---------------------------------------------------------------------------------

// Words that stand close to their neighbours, so that a path of the lattice is text.
static uint32_t glue_of(const dgm_wording *wording, dgm_text word)
{
    static const char *const left[] = {",", ".", ";", ":",   "!",     "?",
                                       ")", "]", "%", "...", "\u201c"};
    static const char *const right[] = {"(", "[", "\u201e"};
    if (!wording->moses) return 0;
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (dgm_text_equal(word, dgm_text_of(left[i]))) return DGM_GLUE_LEFT;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        if (dgm_text_equal(word, dgm_text_of(right[i]))) return DGM_GLUE_RIGHT;
    return 0;
}

// A phrase becomes a chain of arcs of a word each; subwords that begin no word are glued.
static dgm_status add_phrase(const dgm_wording *wording, dgm_lattice *l, const dgm_pb_arc *a,
                             dgm_error *err)
{
    static const char mark[] = "\u2581";
    if (a->count == 0)
        return dgm_lattice_add_text(l, a->from, a->to, dgm_text_of(""), 0, (float)a->score, err);
    int32_t from = a->from;
    for (int i = 0; i < a->count; i++) {
        int32_t to = a->to;
        if (i + 1 < a->count) DGM_TRY(dgm_lattice_add_node(l, 0, &to, err));
        dgm_text word = a->words[i];
        uint32_t glue = glue_of(wording, word);
        const bool marked = word.size >= 3 && memcmp(word.data, mark, 3) == 0;
        if (wording->subwords && !marked) glue = DGM_GLUE_LEFT;
        if (wording->subwords && marked) word = (dgm_text){word.data + 3, word.size - 3};
        DGM_TRY(dgm_lattice_add_text(l, from, to, word, glue, i ? 0 : (float)a->score, err));
        from = to;
    }
    return DGM_OK;
}

static dgm_status build(dgm_phrase_worker *w, dgm_lattice *l, dgm_error *err)
{
    const dgm_pb_arc *arcs;
    size_t count;
    int nodes;
    DGM_TRY(dgm_pb_graph(w->decoder, &arcs, &count, &nodes, err));
    for (int i = 0; i < nodes; i++) {
        int32_t number;
        DGM_TRY(dgm_lattice_add_node(l, 0, &number, err));
    }
    for (size_t i = 0; i < count; i++)
        DGM_TRY(add_phrase(&w->s->wording[1], l, &arcs[i], err));
    dgm_lattice_add_end(l, nodes - 1, 0);
    return dgm_lattice_seal(l, true, err);
}

dgm_status dgm_phrase_worker_lattice(dgm_phrase_worker *w, dgm_lattice **out, dgm_error *err)
{
    const dgm_phrase_system *s = w->s;
    dgm_lattice *whole = NULL;
    double weights = 0; // scores scale with them
    *out = NULL;
    for (int k = 0; k < DGM_PB_UNKNOWN; k++) weights += fabs(s->params.weights.w[k]);
    const dgm_lattice_pruning how = {.behind = s->lattice_beam * weights};
    DGM_TRY(dgm_lattice_open(&whole, err));
    dgm_status st = build(w, whole, err);
    if (st == DGM_OK) st = dgm_lattice_prune(whole, &how, out, err);
    dgm_lattice_close(&whole);
    return st;
}
