// SPDX-License-Identifier: MIT
// Random models of the paper's systems: what speed is measured on where nothing is trained.
//
// Sizes are the paper's (3 bidirectional encoder layers of 512, 1024 attentional GRU, 768 fully
// connected) with embeddings of 512, which it does not state; S7 is Google NMT with 1024. Matrices
// are i8 with a scale per row. So that a decoder does what it would do with a trained model:
//   - words are drawn by a frequency law that gives the paper's coverage (zipf_open), in the source
//     and, by the bias of the output layer, in the output;
//   - every source word has 20 candidates, two of them frequent words, and 100 words are always
//     allowed, which makes about 500 types a sentence;
//   - output weights are as large as it takes for distributions that merge about as the paper's;
//   - the end symbol is never the best: a sentence is as long as the length limit says.
#define _GNU_SOURCE
#include "devlin2017.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/shortlist.h"
#include "model/rnn/rnn_private.h"

enum { BEST = 20, FREQUENT = 100, EMBED = 512 };

// ---- random numbers ---------------------------------------------------------------------------

uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t *state)
{
    return (double)(random_next(state) >> 11) * 0x1p-53;
}

static double law(int rank, double s)
{
    return pow(rank + 2.7, -s);
}

void zipf_open(zipf *z, int words)
{
    double low = 0.8, high = 2.5;
    for (int turn = 0; turn < 40; turn++) {
        double s = (low + high) / 2, all = 0, first = 0;
        for (int i = 0; i < words; i++) {
            all += law(i, s);
            if (i < 8000) first += law(i, s);
        }
        if (first / all < 0.95)
            low = s;
        else
            high = s;
    }
    z->words = words;
    z->sum = malloc((size_t)words * sizeof *z->sum);
    if (!z->sum) abort();
    double sum = 0;
    for (int i = 0; i < words; i++) z->sum[i] = sum += law(i, high);
    for (int i = 0; i < words; i++) z->sum[i] /= sum;
}

void zipf_close(zipf *z)
{
    free(z->sum);
    z->sum = NULL;
}

int zipf_draw(const zipf *z, uint64_t *state)
{
    double x = uniform(state);
    int low = 0, high = z->words - 1;
    while (low < high) {
        int mid = (low + high) / 2;
        if (z->sum[mid] < x)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

// ---- shapes -----------------------------------------------------------------------------------

typedef struct design {
    const char *name;
    bool lstm; // Google NMT
    int encoder_layers, encoder_hidden, both, upper, fc;
    const char *top;
} design;

static const design designs[] = {
    {"S1", false, 3, 512, 3, 0, 0, "none"}, {"S2", false, 3, 512, 3, 0, 0, "gru"},
    {"S3", false, 3, 512, 3, 0, 3, "tanh"}, {"S4", false, 3, 512, 3, 0, 7, "tanh"},
    {"S5", false, 3, 512, 3, 0, 7, "gru"},  {"S6", false, 3, 512, 3, 0, 15, "tanh"},
    {"S7", true, 8, 1024, 1, 7, 0, "none"},
};

enum { HIDDEN = 1024, ATTENTION = 1024, FC = 768 };

typedef struct maker {
    dgm_gguf_writer *w;
    uint64_t seed;
    float *scales[256]; // until the file is written
    int scale_count;
} maker;

// Bytes of one matrix; the seed travels in the argument.
static dgm_status fill_matrix(void *arg, void *out, size_t bytes, dgm_error *err)
{
    (void)err;
    uint64_t state = (uint64_t)(uintptr_t)arg;
    int8_t *q = out;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t r = random_next(&state);
        for (size_t k = 0; k < 8 && i + k < bytes; k++, r >>= 8)
            q[i + k] = (int8_t)((int)(r & 0xff) % 255 - 127);
    }
    return DGM_OK;
}

// A matrix whose numbers have the standard deviation gain / sqrt(cols).
static void matrix(maker *m, const char *name, int rows, int cols, double gain)
{
    char scale_name[80];
    const int shape[2] = {rows, cols};
    float *scale = malloc((size_t)rows * sizeof *scale);
    if (!scale || m->scale_count == 256) abort();
    m->scales[m->scale_count++] = scale;
    for (int i = 0; i < rows; i++) scale[i] = (float)(gain / sqrt(cols) / 73.3);
    uint64_t seed = random_next(&m->seed) >> 16;
    dgm_gguf_add_produced(m->w, name, DGM_TYPE_I8, 2, shape, fill_matrix, (void *)(uintptr_t)seed);
    snprintf(scale_name, sizeof scale_name, "%s.scale", name);
    dgm_gguf_add_tensor(m->w, scale_name, DGM_TYPE_F32, 1, &rows, scale);
}

static void encoder(maker *m, const design *d)
{
    int input = EMBED, gates = d->lstm ? 4 : 3, he = d->encoder_hidden;
    char name[64];
    for (int i = 0; i < d->encoder_layers; i++) {
        int directions = i < d->both ? 2 : 1;
        for (int k = 0; k < directions; k++) {
            const char *way = k ? "bwd" : "fwd";
            snprintf(name, sizeof name, "enc.%d.%s.w.weight", i, way);
            matrix(m, name, gates * he, input, 1.5);
            snprintf(name, sizeof name, "enc.%d.%s.h.weight", i, way);
            matrix(m, name, gates * he, he, 1.0);
        }
        input = directions * he;
    }
}

// Returns the width of the vector that the output layer takes.
static int decoder(maker *m, const design *d)
{
    int gates = d->lstm ? 4 : 3, width = (d->both == d->encoder_layers ? 2 : 1) * d->encoder_hidden;
    int below = HIDDEN;
    char name[64];
    matrix(m, "dec.init.weight", HIDDEN, width, 1.0);
    matrix(m, "dec.att.h.weight", ATTENTION, HIDDEN, 1.0);
    matrix(m, "dec.att.x.weight", ATTENTION, EMBED, 1.0);
    matrix(m, "dec.att.key.weight", ATTENTION, width, 1.0);
    matrix(m, "dec.gru.x.weight", gates * HIDDEN, EMBED, 1.5);
    matrix(m, "dec.gru.c.weight", gates * HIDDEN, width, 1.0);
    matrix(m, "dec.gru.h.weight", gates * HIDDEN, HIDDEN, 1.0);
    for (int i = 0; i < d->upper; i++) {
        snprintf(name, sizeof name, "dec.upper.%d.x.weight", i);
        matrix(m, name, gates * HIDDEN, HIDDEN + width, 1.0);
        snprintf(name, sizeof name, "dec.upper.%d.h.weight", i);
        matrix(m, name, gates * HIDDEN, HIDDEN, 1.0);
    }
    for (int i = 0; i < d->fc; i++) {
        snprintf(name, sizeof name, "dec.fc.%d.weight", i);
        matrix(m, name, FC, below, 1.3);
        below = FC;
    }
    if (strcmp(d->top, "tanh") == 0) matrix(m, "dec.top.weight", HIDDEN, below, 1.0);
    if (strcmp(d->top, "gru") == 0) {
        matrix(m, "dec.top.x.weight", 3 * HIDDEN, below, 1.0);
        matrix(m, "dec.top.h.weight", 3 * HIDDEN, HIDDEN, 1.0);
    }
    return HIDDEN;
}

// ---- metadata ---------------------------------------------------------------------------------

static void settings(dgm_gguf_writer *w, const design *d, char **words, int count)
{
    static const char *const sides[] = {"source", "target"};
    char key[64], name[64];
    snprintf(name, sizeof name, "%s, random weights", d->name);
    dgm_gguf_set_string(w, "general.architecture", "dragoman");
    dgm_gguf_set_string(w, "general.name", name);
    dgm_gguf_set_string(w, "general.description", "random weights, for measuring speed");
    dgm_gguf_set_u32(w, "dragoman.format_version", 1);
    dgm_gguf_set_string(w, "dragoman.architecture", "rnn");
    for (int s = 0; s < 2; s++) {
        snprintf(key, sizeof key, "dragoman.%s.vocab.kind", sides[s]);
        dgm_gguf_set_string(w, key, "words");
        snprintf(key, sizeof key, "dragoman.%s.vocab.size", sides[s]);
        dgm_gguf_set_u32(w, key, (uint32_t)count);
        snprintf(key, sizeof key, "dragoman.%s.vocab.words", sides[s]);
        dgm_gguf_set_strings(w, key, (const char *const *)words, (size_t)count);
        snprintf(key, sizeof key, "dragoman.%s.vocab.tokenizer", sides[s]);
        dgm_gguf_set_string(w, key, "none");
        snprintf(key, sizeof key, "dragoman.%s.eos", sides[s]);
        dgm_gguf_set_i32(w, key, 0);
        snprintf(key, sizeof key, "dragoman.%s.unk", sides[s]);
        dgm_gguf_set_i32(w, key, 1);
    }
    const struct {
        const char *name;
        int value;
    } sizes[] = {{"embed", EMBED},
                 {"encoder_hidden", d->encoder_hidden},
                 {"encoder_layers", d->encoder_layers},
                 {"decoder_hidden", HIDDEN},
                 {"attention", ATTENTION},
                 {"upper_layers", d->upper},
                 {"fc_layers", d->fc},
                 {"fc_size", d->fc ? FC : 0},
                 {"top_size", strcmp(d->top, "none") ? HIDDEN : 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        snprintf(key, sizeof key, "dragoman.rnn.%s", sizes[i].name);
        if (sizes[i].value) dgm_gguf_set_u32(w, key, (uint32_t)sizes[i].value);
    }
    dgm_gguf_set_string(w, "dragoman.rnn.encoder_cell", d->lstm ? "lstm" : "gru");
    dgm_gguf_set_string(w, "dragoman.rnn.decoder_cell", d->lstm ? "lstm" : "gru");
    dgm_gguf_set_string(w, "dragoman.rnn.decoder", "devlin");
    dgm_gguf_set_string(w, "dragoman.rnn.top", d->top);
    if (!d->lstm) return;
    dgm_gguf_set_u32(w, "dragoman.rnn.encoder_bidirectional_layers", (uint32_t)d->both);
    dgm_gguf_set_bool(w, "dragoman.rnn.encoder_residual", true);
    dgm_gguf_set_bool(w, "dragoman.rnn.upper_context", true);
    dgm_gguf_set_bool(w, "dragoman.rnn.upper_residual", true);
}

static int compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

// Two of a word's candidates by frequency, the others anywhere.
static dgm_shortlist *candidates(const zipf *z, uint64_t seed, dgm_error *err)
{
    dgm_shortlist *s = NULL;
    int n = z->words;
    if (dgm_shortlist_open(&s, n, n, (uint64_t)n * BEST, FREQUENT, err) != DGM_OK) return NULL;
    uint64_t used = 0;
    for (int i = 0; i < n; i++) {
        int32_t list[BEST];
        s->at[i] = used;
        for (int k = 0; k < BEST; k++)
            list[k] = k < 2 ? zipf_draw(z, &seed) : (int32_t)(random_next(&seed) % (uint64_t)n);
        qsort(list, BEST, sizeof list[0], compare_ids);
        for (int k = 0; k < BEST; k++)
            if (list[k] > 1 && (k == 0 || list[k] != list[k - 1])) s->ids[used++] = list[k];
    }
    s->at[n] = used;
    for (int i = 0; i < FREQUENT; i++) s->frequent[i] = i;
    s->frequent_count = FREQUENT;
    return s;
}

// The file's metadata alone, which a shortlist is made for.
static dgm_status add_candidates(dgm_gguf_writer *w, const char *path, const design *d,
                                 char **words, const zipf *z, uint64_t seed, dgm_error *err)
{
    dgm_gguf_writer *bare = NULL;
    dgm_gguf *g = NULL;
    static const float zero[1];
    const int one = 1;
    dgm_shortlist *s = candidates(z, seed, err);
    if (!s) return DGM_ERR_MEMORY;
    dgm_status st = dgm_gguf_writer_open(&bare, err);
    if (st == DGM_OK) {
        settings(bare, d, words, z->words);
        dgm_gguf_add_tensor(bare, "none", DGM_TYPE_F32, 1, &one, zero);
        st = dgm_gguf_write(bare, path, err);
    }
    dgm_gguf_writer_close(&bare);
    if (st == DGM_OK) st = dgm_gguf_open(&g, path, err);
    if (st == DGM_OK) st = dgm_shortlist_store(s, g, w, err);
    dgm_gguf_close(&g);
    dgm_shortlist_close(&s);
    return st;
}

int model_make(const char *path, const char *system, int words, uint64_t seed)
{
    const design *d = NULL;
    for (size_t i = 0; i < sizeof designs / sizeof designs[0]; i++)
        if (strcmp(designs[i].name, system) == 0) d = &designs[i];
    if (!d || words < 1000) {
        fprintf(stderr, "devlin2017: no system '%s' of %d words\n", system, words);
        return -1;
    }
    dgm_error err = {{0}};
    maker m = {.seed = seed};
    zipf z;
    zipf_open(&z, words);
    char **list = calloc((size_t)words, sizeof *list);
    float *bias = malloc((size_t)words * sizeof *bias);
    if (!list || !bias) abort();
    for (int i = 0; i < words; i++) {
        if (asprintf(&list[i], i == 0 ? "</s>" : i == 1 ? "<unk>" : "w%d", i) < 0) abort();
        bias[i] = (float)(0.5 * log(z.sum[i] - (i ? z.sum[i - 1] : 0)));
    }
    bias[0] = -1000;
    dgm_status st = dgm_gguf_writer_open(&m.w, &err);
    if (st == DGM_OK) {
        settings(m.w, d, list, words);
        matrix(&m, "src.embed", words, EMBED, sqrt(EMBED) * 0.5);
        matrix(&m, "tgt.embed", words, EMBED, sqrt(EMBED) * 0.5);
        encoder(&m, d);
        int width = decoder(&m, d);
        matrix(&m, "out.weight", words, width, 8.0);
        dgm_gguf_add_tensor(m.w, "out.bias", DGM_TYPE_F32, 1, &words, bias);
        // shortlists are the same for every seed: the models of an ensemble share theirs
        st = add_candidates(m.w, path, d, list, &z, 99, &err);
    }
    if (st == DGM_OK) st = dgm_gguf_write(m.w, path, &err);
    if (st != DGM_OK) fprintf(stderr, "devlin2017: %s: %s\n", path, err.text);
    dgm_gguf_writer_close(&m.w);
    for (int i = 0; i < m.scale_count; i++) free(m.scales[i]);
    for (int i = 0; i < words; i++) free(list[i]);
    free(list);
    free(bias);
    zipf_close(&z);
    return st == DGM_OK ? 0 : -1;
}

// ---- its layers ---------------------------------------------------------------------------------

typedef void (*layer_function)(const dgm_linear *w);

static void each_block(const rnn_product *p, layer_function each)
{
    for (int i = 0; i < p->count; i++) each(p->block[i].w);
}

static void each_layer(dgm_linear *const *layers, int count, layer_function each)
{
    for (int i = 0; i < count; i++)
        if (layers[i]) each(layers[i]);
}

void model_each_layer(const dgm_model *m, layer_function each)
{
    const rnn *r = m->weights;
    const rnn_product *const products[] = {&r->init, &r->word, &r->old, &r->middle, &r->key, &r->readout_h,
                                           &r->top_cell.x, &r->top_cell.h};
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) each_block(products[i], each);
    for (int i = 0; i < r->heads; i++) each_layer(&r->head[i].value, 1, each);
    each_layer(&r->top_tanh, 1, each);
    each_layer(&r->source_fc.top, 1, each);
    for (int i = 0; i < r->encoder_layers; i++) {
        each_block(&r->layers[i].x, each);
        each_block(&r->layers[i].h[0], each);
        each_block(&r->layers[i].h[1], each);
    }
    for (int i = 0; i < r->upper_layers; i++) {
        each_block(&r->upper[i].x, each);
        each_block(&r->upper[i].h, each);
    }
    each_layer(r->fc.layers, r->fc.count, each);
    each_layer(r->source_fc.layers, r->source_fc.count, each);
}
