// SPDX-License-Identifier: MIT
// Toy models for the tests of searches, written as model files and read back like any other.
//
// Two kinds, both one-layer Transformers with learned positions:
//
//   random   every weight drawn from a seed; what a hypothesis scores depends on its whole history
//   table    logit[v | last token u, position t] = last[u, v] + time[t, v], any numbers we like.
//            Embeddings and positions are unit vectors, all products inside the layers are zero, so
//            the final layer norm sees e_u + e_{V+t}; its bias undoes the subtracted mean, and the
//            output matrix holds the two tables times the (constant) deviation.
//
// Token 0 ends a sentence, 1 is the unknown word, the last one is the start symbol, never chosen.
#ifndef DGM_TESTS_UNIT_SEARCH_TOY_H
#define DGM_TESTS_UNIT_SEARCH_TOY_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "backend/ops.h"
#include "base/clock.h"
#include "base/mem.h"
#include "search/search.h"

enum {
    TOY_EOS = 0,
    TOY_UNK = 1,
    TOY_TOKENS = 32,
    TOY_SOURCE = 24,
    TOY_NBEST = 64,
    TOY_TENSORS = 64
};

typedef struct toy_spec {
    int vocab;
    int positions; // longest target + 1
    int width, heads;
    uint64_t seed;
    float gain;
    const float *last, *time; // [vocab, vocab], [positions, vocab]: a table model
    int32_t prefix[2];        // the model's own target prefix
    int prefix_count;
    const char *pairs; // order of a model of two tokens a step, whose EOD is token vocab - 2; or NULL
    const char *order; // of a model of one token a step; NULL: from left to right
} toy_spec;

typedef struct toy {
    dgm_backend *backend;
    dgm_gguf *file;
    dgm_model *model;
    int vocab;
} toy;

// ---- writing ----------------------------------------------------------------------------------

typedef struct toy_writer {
    dgm_gguf_writer *w;
    dgm_rng rng;
    float gain;
    float *blocks[TOY_TENSORS];
    int count;
} toy_writer;

static inline float *toy_tensor(toy_writer *t, const char *name, int rows, int cols)
{
    float *data = dgm_calloc((size_t)rows * (size_t)cols, sizeof(float));
    assert_non_null(data);
    assert_true(t->count < TOY_TENSORS);
    t->blocks[t->count++] = data;
    for (int i = 0; i < rows * cols; i++)
        data[i] = t->gain * (float)(2 * dgm_rng_unit(&t->rng) - 1);
    const int shape[2] = {rows, cols};
    dgm_gguf_add_tensor(t->w, name, DGM_TYPE_F32, 2, shape, data);
    return data;
}

static inline float *toy_vector(toy_writer *t, const char *name, int n, float value)
{
    float *data = dgm_calloc((size_t)n, sizeof(float));
    assert_non_null(data);
    assert_true(t->count < TOY_TENSORS);
    t->blocks[t->count++] = data;
    for (int i = 0; i < n; i++) data[i] = value;
    dgm_gguf_add_tensor(t->w, name, DGM_TYPE_F32, 1, &n, data);
    return data;
}

static inline void toy_metadata(dgm_gguf_writer *w, const toy_spec *s, int width)
{
    char spelling[64][16];
    const char *words[64];
    for (int i = 0; i < s->vocab; i++) {
        snprintf(spelling[i], sizeof spelling[i], "w%d", i);
        words[i] = spelling[i];
    }
    const int32_t never = s->vocab - 1;
    dgm_gguf_set_string(w, "general.architecture", "dragoman");
    dgm_gguf_set_u32(w, "dragoman.format_version", 1);
    dgm_gguf_set_string(w, "dragoman.architecture", s->pairs ? "double" : "transformer");
    dgm_gguf_set_string(w, "dragoman.source.vocab.kind", "words");
    dgm_gguf_set_u32(w, "dragoman.source.vocab.size", (uint32_t)s->vocab);
    dgm_gguf_set_strings(w, "dragoman.source.vocab.words", words, (size_t)s->vocab);
    dgm_gguf_set_string(w, "dragoman.source.vocab.tokenizer", "none");
    dgm_gguf_set_i32(w, "dragoman.source.eos", TOY_EOS);
    dgm_gguf_set_i32(w, "dragoman.source.unk", TOY_UNK);
    if (s->pairs) {
        const int32_t both[] = {TOY_EOS, never};
        dgm_gguf_set_i32(w, "dragoman.target.eod", s->vocab - 2);
        dgm_gguf_set_i32(w, "dragoman.target.bos", never);
        dgm_gguf_set_string(w, "dragoman.target.order", s->pairs);
        dgm_gguf_set_array(w, "dragoman.target.never", DGM_META_I32, both, 2);
    } else {
        dgm_gguf_set_i32(w, "dragoman.target.start", never);
        if (s->order) dgm_gguf_set_string(w, "dragoman.target.order", s->order);
        dgm_gguf_set_array(w, "dragoman.target.never", DGM_META_I32, &never, 1);
    }
    if (s->prefix_count > 0)
        dgm_gguf_set_array(w, "dragoman.target.prefix", DGM_META_I32, s->prefix,
                           (size_t)s->prefix_count);
    dgm_gguf_set_u32(w, "dragoman.transformer.d_model", (uint32_t)width);
    dgm_gguf_set_u32(w, "dragoman.transformer.heads", (uint32_t)s->heads);
    dgm_gguf_set_u32(w, "dragoman.transformer.ffn", 8);
    dgm_gguf_set_u32(w, "dragoman.transformer.encoder_layers", 1);
    dgm_gguf_set_u32(w, "dragoman.transformer.decoder_layers", 1);
    dgm_gguf_set_string(w, "dragoman.transformer.norm", "pre");
    dgm_gguf_set_string(w, "dragoman.transformer.activation", "relu");
    dgm_gguf_set_string(w, "dragoman.transformer.positions", "learned");
    dgm_gguf_set_bool(w, "dragoman.transformer.scale_embedding", false);
}

static inline void toy_layer(toy_writer *t, const char *prefix, int width, bool decoder)
{
    static const char *const attention[] = {"q", "k", "v", "o"};
    char name[64];
    for (int kind = 0; kind < (decoder ? 2 : 1); kind++) {
        const char *what = kind == 0 ? "self" : "cross";
        for (int i = 0; i < 4; i++) {
            snprintf(name, sizeof name, "%s.0.%s.%s.weight", prefix, what, attention[i]);
            toy_tensor(t, name, width, width);
        }
        snprintf(name, sizeof name, "%s.0.%s.norm.weight", prefix, what);
        toy_vector(t, name, width, 1.0f);
    }
    snprintf(name, sizeof name, "%s.0.ffn.in.weight", prefix);
    toy_tensor(t, name, 8, width);
    snprintf(name, sizeof name, "%s.0.ffn.out.weight", prefix);
    toy_tensor(t, name, width, 8);
    snprintf(name, sizeof name, "%s.0.ffn.norm.weight", prefix);
    toy_vector(t, name, width, 1.0f);
    snprintf(name, sizeof name, "%s.norm.weight", prefix);
    toy_vector(t, name, width, 1.0f);
}

static inline void toy_tables(toy_writer *t, const toy_spec *s, int width)
{
    const float mean = 2.0f / (float)width;
    const float deviation = sqrtf(mean - mean * mean + 1e-5f);
    t->gain = 0;
    float *embed = toy_tensor(t, "src.embed", s->vocab, width);
    float *pos = toy_tensor(t, "enc.pos", s->positions, width);
    float *out = toy_tensor(t, "out.weight", s->vocab, width);
    toy_vector(t, "dec.norm.bias", width, mean / deviation);
    for (int u = 0; u < s->vocab; u++) embed[u * width + u] = 1;
    for (int p = 0; p < s->positions; p++) pos[p * width + s->vocab + p] = 1;
    for (int v = 0; v < s->vocab; v++) {
        for (int u = 0; u < s->vocab; u++)
            out[v * width + u] = deviation * s->last[u * s->vocab + v];
        for (int p = 0; p < s->positions; p++)
            out[v * width + s->vocab + p] = deviation * s->time[p * s->vocab + v];
    }
}

static inline void toy_write(const toy_spec *s, const char *path)
{
    toy_writer t = {.rng = {s->seed}, .gain = s->gain};
    dgm_error err = {{0}};
    assert_int_equal(dgm_gguf_writer_open(&t.w, &err), DGM_OK);
    int width = s->width;
    if (s->last) width = (s->vocab + s->positions + 1) / 2 * 2;
    toy_metadata(t.w, s, width);
    if (s->last) {
        toy_tables(&t, s, width);
    } else {
        toy_tensor(&t, "src.embed", s->vocab, width);
        toy_tensor(&t, "enc.pos", s->positions, width);
        toy_tensor(&t, "out.weight", s->vocab, width);
    }
    toy_layer(&t, "enc", width, false);
    toy_layer(&t, "dec", width, true);
    const dgm_status st = dgm_gguf_write(t.w, path, &err);
    if (st != DGM_OK) fail_msg("%s", err.text);
    dgm_gguf_writer_close(&t.w);
    for (int i = 0; i < t.count; i++) dgm_free(t.blocks[i]);
}

// ---- models -----------------------------------------------------------------------------------

static inline void toy_load(toy *m, const char *path)
{
    dgm_error err = {{0}};
    *m = (toy){0};
    assert_int_equal(dgm_backend_open(&m->backend, "cpu", NULL, &err), DGM_OK);
    if (dgm_gguf_open(&m->file, path, &err) != DGM_OK) fail_msg("%s", err.text);
    if (dgm_model_load(&m->model, m->backend, m->file, DGM_PRECISION_F32, &err) != DGM_OK)
        fail_msg("%s", err.text);
    m->vocab = dgm_model_describe(m->model)->target_vocab;
}

static inline void toy_open(toy *m, const toy_spec *s)
{
    char path[] = "/tmp/dragoman-toy-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    toy_write(s, path);
    toy_load(m, path);
    unlink(path); // the mapping stays
}

static inline void toy_close(toy *m)
{
    dgm_model_free(&m->model);
    dgm_gguf_close(&m->file);
    dgm_backend_close(&m->backend);
}

// ---- searching --------------------------------------------------------------------------------

typedef struct toy_search {
    dgm_exec *exec;
    dgm_state *states[DGM_PARTS_MAX];
    int parts;
    dgm_search *search;
} toy_search;

// Does the policy complete hypotheses at the maximum length for nothing, and without an end symbol?
static inline bool toy_forces_end(int finish)
{
    return finish == DGM_FINISH_HUGGINGFACE || finish >= DGM_FINISH_HUGGINGFACE_CUT;
}

// Do lengths count what the model begins with?
static inline bool toy_counts_lead(int finish)
{
    return toy_forces_end(finish) && finish != DGM_FINISH_MARIAN;
}

// Policies before this one are the same in every search; the first step of ctranslate2 is greedy and beam search's.
enum { TOY_FINISH_ALIKE = DGM_FINISH_CTRANSLATE2 };

static inline bool toy_endless(int finish)
{
    return finish == DGM_FINISH_HUGGINGFACE_CUT || finish == DGM_FINISH_HUGGINGFACE_EARLY_CUT ||
           finish >= DGM_FINISH_HUGGINGFACE_NEVER_CUT;
}

static inline dgm_search_config toy_config(int beam, dgm_finish finish)
{
    return (dgm_search_config){.search = "beam",
                               .beam = beam,
                               .nbest = 1,
                               .finish = finish,
                               .normalise = true,
                               .margin = 3.0f,
                               .length_penalty = 1.0f,
                               .max_length = 6,
                               .sentences = 4,
                               .max_source = 8};
}

static inline dgm_bytes toy_bytes(const dgm_search_config *c, const toy *const *models, int parts)
{
    const dgm_model_info *info = dgm_model_describe(models[0]->model);
    const int rows = dgm_search_limits(c, info).rows * info->tokens_per_step;
    dgm_bytes bytes = dgm_rank_bytes(models[0]->backend, rows, parts, models[0]->vocab);
    bytes = dgm_bytes_add(
        bytes, dgm_search_bytes(models[0]->backend, c, parts, models[0]->vocab));
    for (int i = 0; i < parts; i++) {
        const dgm_limits l = dgm_search_limits(c, dgm_model_describe(models[i]->model));
        bytes = dgm_bytes_add(bytes, dgm_state_bytes(models[i]->model, &l));
    }
    bytes.host += 4096; // so that a second search can be refused for what is wrong with it
    return bytes;
}

static inline void toy_search_open(toy_search *t, const dgm_search_config *c,
                                   const toy *const *models, int parts, dgm_vocabsel *vocabsel)
{
    dgm_error err = {{0}};
    *t = (toy_search){.parts = parts};
    assert_int_equal(dgm_exec_open(models[0]->backend, toy_bytes(c, models, parts), &t->exec, &err),
                     DGM_OK);
    dgm_search_part members[DGM_PARTS_MAX];
    for (int i = 0; i < parts; i++) {
        const dgm_limits l = dgm_search_limits(c, dgm_model_describe(models[i]->model));
        if (dgm_state_open(models[i]->model, t->exec, &l, &t->states[i], &err) != DGM_OK)
            fail_msg("%s", err.text);
        members[i] = (dgm_search_part){t->states[i], 1.0f / (float)parts};
    }
    if (dgm_search_open(&t->search, t->exec, c, members, parts, vocabsel, NULL, 0, &err) != DGM_OK)
        fail_msg("%s", err.text);
}

static inline void toy_search_close(toy_search *t)
{
    dgm_search_close(&t->search);
    for (int i = 0; i < t->parts; i++) dgm_state_close(&t->states[i]);
    dgm_exec_close(&t->exec);
}

typedef struct toy_hypothesis {
    int32_t tokens[TOY_TOKENS];
    int count;
    float score, sum;
    bool finished;
    float words[TOY_TOKENS + 1];
    float align[TOY_TOKENS * TOY_SOURCE];
} toy_hypothesis;

typedef struct toy_answer {
    int reported, count, steps;
    toy_hypothesis h[TOY_NBEST];
} toy_answer;

static inline void toy_sink(void *cookie, const dgm_search_result *r)
{
    toy_answer *a = (toy_answer *)cookie + r->id;
    a->reported++;
    a->count = r->count;
    a->steps = r->steps;
    assert_true(r->count >= 1 && r->count <= TOY_NBEST);
    for (int i = 0; i < r->count; i++) {
        const dgm_hypothesis *h = &r->hypotheses[i];
        toy_hypothesis *o = &a->h[i];
        memset(o, 0, sizeof *o);
        memcpy(o->tokens, h->tokens, (size_t)h->count * sizeof *h->tokens);
        o->count = h->count;
        o->score = h->score;
        o->sum = h->sum;
        o->finished = h->finished;
        if (h->word_scores)
            memcpy(o->words, h->word_scores, (size_t)(h->count + 1) * sizeof(float));
        if (h->alignment)
            memcpy(o->align, h->alignment,
                   (size_t)h->count * (size_t)r->source_count * sizeof(float));
    }
}

// Translates `count` sentences: as many at once as there is room for, a new one as soon as one left.
static inline void toy_run(toy_search *t, const dgm_search_request *requests, int count,
                           toy_answer *a)
{
    dgm_error err = {{0}};
    for (int i = 0; i < count; i++) a[i] = (toy_answer){0};
    for (int next = 0; next < count || dgm_search_active(t->search);) {
        while (next < count && dgm_search_free(t->search)) {
            dgm_search_request r = requests[next];
            r.id = (uint64_t)next++;
            if (dgm_search_admit(t->search, &r, 1, &err) != DGM_OK) fail_msg("%s", err.text);
        }
        if (dgm_search_advance(t->search, toy_sink, a, &err) != DGM_OK) fail_msg("%s", err.text);
    }
    for (int i = 0; i < count; i++) assert_int_equal(a[i].reported, 1);
}

static const int32_t toy_source[] = {2, 3, 2, TOY_EOS};

// One model, one sentence.
static inline toy_answer toy_translate(const toy *m, const dgm_search_config *c)
{
    toy_search t;
    toy_answer a;
    toy_search_open(&t, c, &m, 1, NULL);
    const dgm_search_request r = {.source = {toy_source, 4}};
    toy_run(&t, &r, 1, &a);
    toy_search_close(&t);
    return a;
}

#endif
