// SPDX-License-Identifier: MIT
// Fuzz target: what callers say about a line. The first byte chooses a tiny model and its settings, the second which of
// the rest is given: text, prefix, constraints, a lattice, evidence (an n-best list "SCORE text", or a lattice), with
// zero bytes between them. The line is translated twice, with another one between: that is translated as if it were
// alone, both get the same words, n-grams of the evidence have posteriors that are probabilities, and what is refused
// says so in a line.
// Parsers: src/engine/lattice_input.c src/lattice/lattice_subwords.c src/score/posterior_lattice.c
// Parsers: src/score/walk.c src/score/walk_limit.c src/score/walk_ways.c
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "dragoman/dragoman.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PARTS = 5, CANDIDATES = 16, OTHERS = 3 };
enum { TEXT, PREFIX, CONSTRAINTS, LATTICE, EVIDENCE };

static const char other[] = "a cat.";

typedef struct part {
    const char *text; // NULL: it is not given
    size_t size;
} part;

static const struct kind {
    const char *model, *search;
    int beam, lattices, order, ngrams, limit;
    float weight;
} kinds[] = {
    {"transformer-pieces", NULL, 2, 1, 4, 1, 0, 0},
    {"transformer-pieces", "cube", 3, 1, 2, 0, 64, 0.5f},
    {"rnn-bahdanau-pieces", NULL, 1, 1, 4, 1, 16, 1},
    {"double-pieces", NULL, 2, 1, 3, 1, 0, 0.5f},
    {"cmlm-pieces", NULL, 0, 1, 4, 0, 0, 0},
    {"transformer-pieces", NULL, 2, 0, 4, 1, 0, 0},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static struct opened {
    dgm_translator *t;
    char *plain; // the other line's translation
} opened[KINDS];

static void require(bool what)
{
    if (!what) abort();
}

static size_t mutate(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    static const char *const between[] = {"\n", "\n", " ", "\t"};
    if (size < 3 || fuzz_below(r, 8) == 0) return LLVMFuzzerMutate(data, size, max);
    return 2 + fuzz_fields(data + 2, size - 2, max - 2, between[fuzz_below(r, 4)], r);
}
FUZZ_MUTATOR(mutate)

// ---- models ----------------------------------------------------------------------------------------

static struct opened *open_model(const struct kind *k)
{
    char path[96];
    dgm_settings s;
    dgm_results *r = NULL;
    struct opened *o = &opened[k - kinds];
    const char *const line = other;
    if (o->t) return o;
    snprintf(path, sizeof path, "tests/data/models/%s.gguf", k->model);
    dgm_settings_default(&s);
    s.search = k->search;
    if (k->beam) s.beam = k->beam;
    s.max_length = 6;
    s.max_source = 24;
    s.workspace = 128 << 20;
    s.lattices = k->lattices;
    s.lattice_weight = k->weight;
    s.evidence = k->lattices || k->ngrams;
    s.lmbr_order = k->order;
    s.lmbr_ngrams = k->ngrams;
    if (k->limit) s.lmbr_limit = k->limit;
    s.protect = 0;
    dgm_error err = {""};
    if (dgm_open(&o->t, path, &s, &err) != DGM_OK) fprintf(stderr, "%s\n", err.text);
    require(o->t && dgm_translate(o->t, &line, 1, &r, NULL) == DGM_OK);
    o->plain = strdup(dgm_result_text(r->items[0]));
    require(o->plain != NULL);
    dgm_results_free(&r);
    return o;
}

// ---- a line ----------------------------------------------------------------------------------------

static void split(const uint8_t *data, size_t size, uint8_t given, part parts[PARTS])
{
    const char *at = (const char *)data, *const end = at + size;
    for (int i = 0; i < PARTS; i++) {
        const char *stop = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
        const size_t n = at < end ? (size_t)((stop && i + 1 < PARTS ? stop : end) - at) : 0;
        parts[i] = (part){i == TEXT || given >> i & 1 ? n ? at : "" : NULL, n};
        at += n + (at + n < end);
    }
}

// Lines of a score and a text.
static size_t read_list(part p, dgm_evidence_candidate *list)
{
    size_t count = 0;
    while (p.size > 0 && count < CANDIDATES) {
        const char *end = memchr(p.text, '\n', p.size);
        const size_t n = end ? (size_t)(end - p.text) : p.size, score = n < 3 ? n : 3;
        char number[4] = "";
        memcpy(number, p.text, score);
        list[count++] = (dgm_evidence_candidate){p.text + score, n - score, strtod(number, NULL)};
        p = (part){p.text + n + (end != NULL), p.size - n - (end != NULL)};
    }
    return count;
}

static void check_ngrams(const dgm_result *r)
{
    for (size_t i = 0; i < r->ngram_count; i++) {
        const dgm_evidence_ngram *n = &r->ngrams[i];
        require(n->length >= 1 && n->length <= 4 && n->posterior >= 0 && n->posterior < 1 + 1e-6);
        require(isfinite(n->gain) && n->tokens != NULL);
        if (!i) continue;
        const dgm_evidence_ngram *before = &n[-1];
        require(before->length < n->length ||
                (before->length == n->length && before->posterior >= n->posterior));
    }
}

static void check_result(const dgm_result *r)
{
    if (r->status != DGM_OK) {
        require(r->count == 0 && r->message[0] && !strchr(r->message, '\n'));
        return;
    }
    require(r->count >= 1 && !r->message[0] && (!r->notice || !strchr(r->notice, '\n')));
    for (size_t i = 0; i < r->count; i++) {
        require(strlen(r->translations[i]->text) == r->translations[i]->text_size);
        require(!isnan(r->translations[i]->score));
    }
    check_ngrams(r);
}

static void translate(const struct opened *o, const dgm_input *line)
{
    dgm_input in[OTHERS];
    dgm_results *r = NULL;
    for (int i = 0; i < OTHERS; i++) in[i] = *line;
    dgm_input_default(&in[1]);
    in[1].text = other;
    in[1].text_size = sizeof other - 1;
    require(dgm_translate_inputs(o->t, in, OTHERS, &r, NULL) == DGM_OK && r->count == OTHERS);
    require(strcmp(dgm_result_text(r->items[1]), o->plain) == 0);
    require(r->items[0]->status == r->items[2]->status);
    require(strcmp(dgm_result_text(r->items[0]), dgm_result_text(r->items[2])) == 0);
    check_result(r->items[0]);
    check_result(r->items[2]);
    dgm_results_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    part parts[PARTS];
    dgm_evidence_candidate list[CANDIDATES];
    dgm_evidence evidence;
    dgm_input in;
    split(data + 2, size - 2, data[1], parts);
    const dgm_lattice_text lattice = {.text = parts[LATTICE].text, .size = parts[LATTICE].size};
    dgm_evidence_default(&evidence);
    if (data[1] & 64) {
        evidence.lattice = parts[EVIDENCE].text;
        evidence.lattice_size = parts[EVIDENCE].size;
    } else if (parts[EVIDENCE].text) {
        evidence.candidates = list;
        evidence.count = read_list(parts[EVIDENCE], list);
    }
    dgm_input_default(&in);
    in.text = parts[TEXT].text;
    in.text_size = parts[TEXT].size;
    in.prefix = parts[PREFIX].text;
    in.prefix_size = parts[PREFIX].size;
    in.constraints = parts[CONSTRAINTS].text;
    in.constraints_size = parts[CONSTRAINTS].size;
    in.lattice = lattice.text ? &lattice : NULL;
    in.evidence = parts[EVIDENCE].text ? &evidence : NULL;
    translate(open_model(&kinds[data[0] % KINDS]), &in);
    return 0;
}
