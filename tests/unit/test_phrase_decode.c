// SPDX-License-Identifier: MIT
// The phrase-based decoder against exhaustive search over a table of 50 entries, whose best
// translations under equal weights were also computed by hand; lists, graphs, threads; MERT against
// a walk along the line in small steps.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "dragoman/tools.h"
#include "failures.h"
#include "phrase/mert.h"
#include "phrase/phrase_decode.h"
#include "phrase/phrase_evidence.h"

#define DATA "tests/data/phrase/"
enum { ENTRIES = 50, GRAMS = 128, WORDS = 16, PATHS = 40000 };

static uint32_t random_state = 7;

static double random_unit(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) / 16777216.0;
}

// ---- the oracle: reads the texts itself, tries everything ---------------------------------------

typedef struct entry {
    char source[64], target[64];
    int words;
    double score[4], turn[6];
} entry;

typedef struct gram {
    char words[64];
    double p, backoff;
} gram;

static entry entries[ENTRIES];
static gram grams[GRAMS];
static int gram_count;

static void load_oracle(void)
{
    FILE *a = fopen(DATA "fifty.txt", "r"), *b = fopen(DATA "fifty.reordering.txt", "r");
    FILE *c = fopen(DATA "fifty.arpa", "r");
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    char line[256], other[256];
    int n = 0;
    while (fgets(line, sizeof line, a) && fgets(other, sizeof other, b)) {
        entry *e = &entries[n++];
        char *middle = strstr(line, " ||| "), *end = strstr(middle + 5, " ||| ");
        assert_memory_equal(line, other, (size_t)(end - line));
        *middle = *end = 0;
        strcpy(e->source, line);
        strcpy(e->target, middle + 5);
        e->words = 1;
        for (char *p = e->target; *p; p++) e->words += *p == ' ';
        char *at = end + 5, *from = other + (end - line) + 5;
        for (int k = 0; k < 4; k++) e->score[k] = log(strtod(at, &at));
        for (int k = 0; k < 6; k++) e->turn[k] = log(strtod(from, &from));
    }
    assert_int_equal(n, ENTRIES);
    while (fgets(line, sizeof line, c)) {
        char *tab = strchr(line, '\t');
        if (!tab) continue;
        gram *g = &grams[gram_count++];
        g->p = strtod(line, NULL);
        char *end = strpbrk(tab + 1, "\t\n");
        g->backoff = *end == '\t' ? strtod(end, NULL) : 0;
        *end = 0;
        strcpy(g->words, tab + 1);
    }
    fclose(a);
    fclose(b);
    fclose(c);
}

static const gram *find_gram(const char *words)
{
    for (int i = 0; i < gram_count; i++)
        if (strcmp(grams[i].words, words) == 0) return &grams[i];
    return NULL;
}

static double oracle_lm(const char *before, const char *word)
{
    char both[128];
    snprintf(both, sizeof both, "%s %s", before, word);
    const gram *g = find_gram(both), *last = find_gram(before);
    if (g) return g->p * log(10);
    const gram *alone = find_gram(word);
    if (!alone) alone = find_gram("<unk>");
    return (alone->p + (last ? last->backoff : 0)) * log(10);
}

typedef struct search {
    char word[WORDS][32];
    int n, jump;
    const double *w;
    double path[PATHS]; // scores of the first derivations
    size_t count;
    double best;
    char text[256];
} search;

typedef struct partial {
    uint32_t cover;
    int begin, end;
    char last[32];
    double score;
    const entry *before;
    char text[256];
} partial;

static double extend_score(const search *s, const partial *p, const entry *e, int b, int end,
                           partial *next)
{
    const double *w = s->w;
    double jump = b > p->end ? b - p->end : p->end - b;
    int turn = b == p->end ? 0 : end == p->begin ? 1 : 2;
    double v = w[DGM_PB_REORDERING + turn] * e->turn[turn] - w[DGM_PB_DISTORTION] * jump;
    if (p->before) v += w[DGM_PB_REORDERING + 3 + turn] * p->before->turn[3 + turn];
    for (int k = 0; k < 4; k++) v += w[DGM_PB_TABLE + k] * e->score[k];
    v += w[DGM_PB_PHRASES] - w[DGM_PB_WORDS] * e->words;
    char copy[64], *save = NULL;
    strcpy(copy, e->target);
    strcpy(next->last, p->last);
    for (char *t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save)) {
        v += w[DGM_PB_LM] * oracle_lm(next->last, t);
        strcpy(next->last, t);
    }
    return v;
}

static void try_all(search *s, const partial *p)
{
    if (p->cover == (1u << s->n) - 1) {
        double v = p->score + s->w[DGM_PB_LM] * oracle_lm(p->last, "</s>");
        if (s->count < PATHS) s->path[s->count] = v;
        s->count++;
        if (v > s->best) {
            s->best = v;
            strcpy(s->text, p->text);
        }
        return;
    }
    int gap = 0;
    while (p->cover >> gap & 1) gap++;
    for (int b = gap; b < s->n; b++) {
        char source[128] = "";
        for (int end = b + 1; end <= s->n && !(p->cover >> (end - 1) & 1); end++) {
            if (source[0]) strcat(source, " ");
            strcat(source, s->word[end - 1]);
            int jump = b > p->end ? b - p->end : p->end - b;
            if (jump > s->jump || (b != gap && end - gap > s->jump)) continue;
            for (int k = 0; k < ENTRIES; k++) {
                if (strcmp(entries[k].source, source) != 0) continue;
                partial next = {.begin = b, .end = end, .before = &entries[k]};
                next.cover = p->cover | (((1u << (end - b)) - 1) << b);
                next.score = p->score + extend_score(s, p, &entries[k], b, end, &next);
                snprintf(next.text, sizeof next.text, "%.160s%s%s", p->text, p->text[0] ? " " : "",
                         entries[k].target);
                try_all(s, &next);
            }
        }
    }
}

static search *solve(const char *line, const double *w, int jump)
{
    search *s = calloc(1, sizeof *s);
    char copy[256], *save = NULL;
    strcpy(copy, line);
    for (char *t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save))
        strcpy(s->word[s->n++], t);
    s->jump = jump;
    s->w = w;
    s->best = -1e30;
    partial p = {.begin = -1, .last = "<s>"};
    try_all(s, &p);
    return s;
}

// ---- the decoder ------------------------------------------------------------------------------

static dgm_phrase_table *table;
static dgm_lm *lm;

static int load(void **state)
{
    (void)state;
    dgm_error err;
    load_oracle();
    if (dgm_phrase_table_open(&table, DATA "fifty.txt", DATA "fifty.reordering.txt", &err))
        return 1;
    return dgm_lm_open(&lm, DATA "fifty.arpa", &err) != DGM_OK;
}

static int unload(void **state)
{
    (void)state;
    dgm_phrase_table_close(&table);
    dgm_lm_close(&lm);
    return 0;
}

static int split(char *line, dgm_text *words)
{
    int n = 0;
    char *save = NULL;
    for (char *t = strtok_r(line, " ", &save); t; t = strtok_r(NULL, " ", &save))
        words[n++] = dgm_text_of(t);
    return n;
}

static void join(const dgm_pb_translation *t, char *out)
{
    *out = 0;
    for (int i = 0; i < t->count; i++) {
        if (i) strcat(out, " ");
        strncat(out, t->words[i].data, t->words[i].size);
    }
}

static dgm_pb_params exhaustive(void)
{
    dgm_pb_params p;
    dgm_pb_params_default(&p);
    p.pops = p.stack = 100000;
    p.table_limit = 100;
    dgm_pb_weights_uniform(&p.weights);
    return p;
}

static const char *const SENTENCES[] = {
    "der mann sieht ein rotes haus",
    "der mann sieht heute nicht mehr",
    "heute sieht mann haus nicht",
    "ein haus",
    "mehr",
    "ein kleines rotes haus heute",
};

static void compare(const char *line, const dgm_pb_params *p)
{
    dgm_error err;
    dgm_pb_model *m = NULL;
    dgm_pb_decoder *d = NULL;
    assert_int_equal(dgm_pb_model_open(&m, table, lm, p, &err), DGM_OK);
    assert_int_equal(dgm_pb_decoder_open(&d, m, &err), DGM_OK);
    char copy[256], text[256];
    dgm_text words[WORDS];
    strcpy(copy, line);
    int n = split(copy, words), count;
    const dgm_pb_translation *list;
    assert_int_equal(dgm_pb_decode(d, words, n, &list, &count, &err), DGM_OK);
    search *s = solve(line, p->weights.w, p->jump);
    join(&list[0], text);
    assert_true(fabs(list[0].score - s->best) < 1e-6);
    assert_string_equal(text, s->text);
    for (int i = 0; i < count; i++) { // features make the score; a list falls
        assert_true(fabs(dgm_pb_dot(&p->weights, list[i].features) - list[i].score) < 1e-9);
        if (i) assert_true(list[i].score <= list[i - 1].score + 1e-9);
    }
    free(s);
    dgm_pb_decoder_close(&d);
    dgm_pb_model_close(&m);
}

// By hand, in units of ln 2 (table and orientations) and ln 10 (language model), all weights 1:
//   "mehr"      anymore: table 1/8 * 1/2 = 2^-4, turn 1/4 = 2^-2, word -1, phrase +1,
//               LM <s> anymore = -0.25 - 1.5, anymore </s> = -1: -2.75
//   "ein haus"  a house: 1/2 * 1/4 * 1/2 * 1/8 = 2^-7, turn 1/2, words -2, phrase +1,
//               LM <s> a, a house = -0.5 together, house </s> = -0.25: -0.75
static void optimum_by_hand(void **state)
{
    (void)state;
    static const struct {
        const char *source, *best;
        double twos, tens, counts;
    } cases[] = {{"mehr", "anymore", -6, -2.75, 0}, {"ein haus", "a house", -8, -0.75, -1}};
    dgm_error err;
    dgm_pb_params p = exhaustive();
    dgm_pb_model *m = NULL;
    dgm_pb_decoder *d = NULL;
    assert_int_equal(dgm_pb_model_open(&m, table, lm, &p, &err), DGM_OK);
    assert_int_equal(dgm_pb_decoder_open(&d, m, &err), DGM_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char copy[64], text[256];
        dgm_text words[WORDS];
        const dgm_pb_translation *list;
        strcpy(copy, cases[i].source);
        int n = split(copy, words), count;
        assert_int_equal(dgm_pb_decode(d, words, n, &list, &count, &err), DGM_OK);
        join(list, text);
        assert_string_equal(text, cases[i].best);
        double score = cases[i].twos * log(2) + cases[i].tens * log(10) + cases[i].counts;
        assert_true(fabs(list->score - score) < 1e-6);
    }
    dgm_pb_decoder_close(&d);
    dgm_pb_model_close(&m);
}

static void optimum_by_brute_force(void **state)
{
    (void)state;
    dgm_pb_params p = exhaustive();
    for (size_t i = 0; i < sizeof SENTENCES / sizeof *SENTENCES; i++) compare(SENTENCES[i], &p);
    for (int round = 0; round < 12; round++) {
        for (int k = 0; k < DGM_PB_FEATURES; k++) p.weights.w[k] = random_unit();
        p.weights.w[DGM_PB_DISTORTION] = 0.2 * random_unit();
        p.weights.w[DGM_PB_WORDS] = 2 * random_unit() - 1;
        p.jump = round % 4 * 2;
        for (size_t i = 0; i < sizeof SENTENCES / sizeof *SENTENCES; i++) compare(SENTENCES[i], &p);
    }
}

static int falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x > y ? -1 : x < y;
}

// A list has the scores of the best derivations; without repetition, no text twice.
// Features of the arcs of the best path add up to those of the best translation, and every arc's
// times the weights are its score.
static void check_features(dgm_pb_decoder *d, const dgm_pb_arc *arcs, size_t count, int nodes,
                           const double *best, const dgm_pb_translation *t,
                           const dgm_pb_weights *weights)
{
    double sum[DGM_PB_FEATURES] = {0}, f[DGM_PB_FEATURES];
    int node = nodes - 1;
    for (size_t k = count; k-- > 0;) {
        dgm_pb_arc_features(d, &arcs[k], f);
        assert_true(fabs(dgm_pb_dot(weights, f) - arcs[k].score) < 1e-6);
        if (arcs[k].to != node || fabs(best[arcs[k].from] + arcs[k].score - best[node]) > 1e-12)
            continue;
        for (int i = 0; i < DGM_PB_FEATURES; i++) sum[i] += f[i];
        node = arcs[k].from;
    }
    assert_int_equal(node, 0);
    for (int i = 0; i < DGM_PB_FEATURES; i++) assert_true(fabs(sum[i] - t->features[i]) < 1e-6);
}

static void lists_are_complete(void **state)
{
    (void)state;
    dgm_error err;
    dgm_pb_params p = exhaustive();
    p.nbest = 300;
    p.weights.w[DGM_PB_DISTORTION] = 0.3;
    search *s = solve(SENTENCES[5], p.weights.w, p.jump);
    assert_true(s->count < PATHS);
    qsort(s->path, s->count, sizeof *s->path, falling);
    for (int distinct = 0; distinct < 2; distinct++) {
        p.distinct = distinct;
        dgm_pb_model *m = NULL;
        dgm_pb_decoder *d = NULL;
        assert_int_equal(dgm_pb_model_open(&m, table, lm, &p, &err), DGM_OK);
        assert_int_equal(dgm_pb_decoder_open(&d, m, &err), DGM_OK);
        char copy[256], one[256], two[256];
        dgm_text words[WORDS];
        strcpy(copy, SENTENCES[5]);
        int n = split(copy, words), count;
        const dgm_pb_translation *list;
        assert_int_equal(dgm_pb_decode(d, words, n, &list, &count, &err), DGM_OK);
        assert_true(count == (s->count < 300 ? (int)s->count : 300) || distinct);
        for (int i = 0; i < count && !distinct; i++)
            assert_true(fabs(list[i].score - s->path[i]) < 1e-6);
        for (int i = 1; i < count && distinct; i++)
            for (int j = 0; j < i; j++) {
                join(&list[i], one);
                join(&list[j], two);
                assert_string_not_equal(one, two);
            }
        // The graph has the same best path.
        const dgm_pb_arc *arcs;
        size_t arc_count;
        int nodes;
        assert_int_equal(dgm_pb_graph(d, &arcs, &arc_count, &nodes, &err), DGM_OK);
        double *best = calloc((size_t)nodes, sizeof *best), paths = 0;
        double *ways = calloc((size_t)nodes, sizeof *ways);
        for (int i = 1; i < nodes; i++) best[i] = -1e30;
        ways[0] = 1;
        for (size_t k = 0; k < arc_count; k++) {
            assert_true(arcs[k].from < arcs[k].to && arcs[k].to < nodes);
            if (best[arcs[k].from] + arcs[k].score > best[arcs[k].to])
                best[arcs[k].to] = best[arcs[k].from] + arcs[k].score;
            ways[arcs[k].to] += ways[arcs[k].from];
        }
        paths = ways[nodes - 1];
        check_features(d, arcs, arc_count, nodes, best, &list[0], &p.weights);
        assert_true(fabs(best[nodes - 1] - s->best) < 1e-6);
        assert_int_equal((size_t)paths, s->count);
        free(best);
        free(ways);
        dgm_pb_decoder_close(&d);
        dgm_pb_model_close(&m);
    }
    free(s);
}

static void odd_sentences(void **state)
{
    (void)state;
    dgm_error err;
    dgm_pb_params p;
    dgm_pb_params_default(&p);
    dgm_pb_model *m = NULL;
    dgm_pb_decoder *d = NULL;
    assert_int_equal(dgm_pb_model_open(&m, table, lm, &p, &err), DGM_OK);
    assert_int_equal(dgm_pb_decoder_open(&d, m, &err), DGM_OK);
    const dgm_pb_translation *list;
    int count;
    assert_int_equal(dgm_pb_decode(d, NULL, 0, &list, &count, &err), DGM_OK);
    assert_int_equal(count, 1);
    assert_int_equal(list[0].count, 0);
    enum { LONG = 700 };
    dgm_text words[LONG];
    static const char *const kinds[] = {"der", "mann", "fremd", "haus", "nicht", "mehr"};
    for (int i = 0; i < LONG; i++) words[i] = dgm_text_of(kinds[i * i % 6]);
    assert_int_equal(dgm_pb_decode(d, words, LONG, &list, &count, &err), DGM_OK);
    bool covered[LONG] = {false};
    for (int s = 0; s < list[0].segment_count; s++)
        for (int i = list[0].segments[s].begin; i < list[0].segments[s].end; i++) {
            assert_false(covered[i]);
            covered[i] = true;
        }
    for (int i = 0; i < LONG; i++) assert_true(covered[i]);
    // An unknown word is copied.
    dgm_text unknown = dgm_text_of("Zwölfton");
    assert_int_equal(dgm_pb_decode(d, &unknown, 1, &list, &count, &err), DGM_OK);
    assert_true(dgm_text_equal(list[0].words[0], unknown));
    assert_true(list[0].features[DGM_PB_UNKNOWN] == -100);
    dgm_pb_decoder_close(&d);
    dgm_pb_model_close(&m);
    p.jump = 57;
    assert_int_equal(dgm_pb_params_check(&p, &err), DGM_ERR_ARGUMENT);
    p.jump = 6;
    p.weights.w[0] = NAN;
    assert_int_equal(dgm_pb_params_check(&p, &err), DGM_ERR_ARGUMENT);
}

// ---- the tool ---------------------------------------------------------------------------------

typedef struct collected {
    char text[8][4096];
    int count;
} collected;

static int collect(void *cookie, const dgm_phrasal_result *r)
{
    collected *c = cookie;
    char *out = c->text[c->count++];
    size_t at = 0;
    for (size_t i = 0; i < r->count && at < 3000; i++)
        at += (size_t)snprintf(out + at, 4096 - at, "%.*s|%.9g|%.*s\n", (int)r->items[i]->text.size,
                               r->items[i]->text.data, r->items[i]->score,
                               (int)r->items[i]->links.size, r->items[i]->links.data);
    return 0;
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    dgm_error err;
    dgm_phrasal_options o;
    dgm_phrasal_default(&o);
    o.table = DATA "fifty.txt";
    o.reordering = DATA "fifty.reordering.txt";
    o.lm = DATA "fifty.arpa";
    o.nbest = 5;
    o.alignment = 1;
    dgm_line lines[6];
    for (int i = 0; i < 6; i++) lines[i] = (dgm_line){SENTENCES[i], strlen(SENTENCES[i])};
    collected got[2] = {0};
    for (int k = 0; k < 2; k++) {
        dgm_phrasal *p = NULL;
        o.threads = k ? 3 : 1;
        assert_int_equal(dgm_phrasal_open(&p, &o, &err), DGM_OK);
        assert_int_equal(dgm_phrasal_translate(p, lines, 6, 0, collect, &got[k], &err), DGM_OK);
        dgm_phrasal_stats s;
        dgm_phrasal_count(p, &s);
        assert_int_equal(s.lines, 6);
        assert_int_equal(s.words, 6 + 6 + 5 + 2 + 1 + 5);
        dgm_phrasal_close(&p);
    }
    assert_memory_equal(&got[0], &got[1], sizeof got[0]);
}

static void decoder_allocations_fail(void **state)
{
    (void)state;
    dgm_error err;
    dgm_phrasal_options o;
    dgm_phrasal_default(&o);
    o.table = DATA "fifty.txt";
    o.lm = DATA "fifty.arpa";
    o.nbest = 3;
    o.distinct = 1;
    o.lattice = 1;
    dgm_line line = {SENTENCES[0], strlen(SENTENCES[0])};
    uint64_t live = dgm_mem_live();
    for (uint64_t n = 1;; n++) {
        dgm_phrasal *p = NULL;
        collected got = {0};
        dgm_mem_inject(n, 1);
        dgm_status st = dgm_phrasal_open(&p, &o, &err);
        if (st == DGM_OK) st = dgm_phrasal_translate(p, &line, 1, 0, collect, &got, &err);
        dgm_mem_inject(0, 0);
        dgm_phrasal_close(&p);
        assert_int_equal(dgm_mem_live(), live);
        if (st == DGM_OK) break;
        assert_int_equal(st, DGM_ERR_MEMORY);
    }
}

// As evidence, to anyone who asks: a list or a lattice, whatever allocation fails.
static dgm_status ask_system(bool lattice, dgm_error *err)
{
    dgm_phrasal_options o;
    dgm_phrases *p = NULL;
    dgm_candidate_list list = {0};
    dgm_lattice *graph = NULL;
    const dgm_vocab *const none[2] = {NULL, NULL};
    dgm_phrasal_default(&o);
    o.table = DATA "fifty.txt";
    o.lm = DATA "fifty.arpa";
    o.nbest = 3;
    o.distinct = 1;
    o.lattice = lattice;
    dgm_status st = dgm_phrases_open(&p, &o, none, err);
    for (int round = 0; round < 2 && st == DGM_OK; round++) { // with a new decoder, with a used one
        dgm_lattice_close(&graph);
        st = dgm_phrases_say(p, dgm_text_of(SENTENCES[round]), &list, &graph, err);
    }
    if (st == DGM_OK) {
        const dgm_evidence e = dgm_candidate_list_evidence(&list);
        assert_int_equal(e.count, lattice ? 0 : 3);
        assert_int_equal(graph != NULL, lattice);
        for (size_t i = 1; i < e.count; i++) {
            assert_true(e.candidates[i].score <= e.candidates[i - 1].score);
            assert_ptr_equal(e.candidates[i].text, e.candidates[i - 1].text + e.candidates[i - 1].size);
        }
    }
    dgm_lattice_close(&graph);
    dgm_candidate_list_free(&list);
    dgm_phrases_close(&p);
    return st;
}

static void asked_allocations_fail(void **state)
{
    (void)state;
    dgm_error err;
    ALLOCATIONS_FAIL(ask_system(false, &err));
    ALLOCATIONS_FAIL(ask_system(true, &err));
}

static dgm_status open_and_close(const char *path)
{
    dgm_phrasal_file *f = NULL;
    const dgm_status st = dgm_phrasal_file_open(&f, path, NULL);
    assert_int_equal(f != NULL, st == DGM_OK);
    dgm_phrasal_file_close(&f);
    return st;
}

// A system from its file: what the file says, and the folder of its files.
static void system_file(void **state)
{
    (void)state;
    dgm_error err;
    dgm_phrasal_file *f = NULL;
    dgm_phrasal_options o;
    char path[] = "/tmp/dgm-system-XXXXXX", text[512];
    const int file = mkstemp(path);
    assert_true(file >= 0);
    char *here = realpath(DATA "fifty.txt", NULL);
    assert_non_null(here);
    const int size = snprintf(text, sizeof text,
                              "table = %s\r\n\n  # a comment\nlm = fifty.arpa\nsource = de # no\n"
                              "pops=7\nstack = 5\ndistortion-limit = 0\ntable-limit = 3\n"
                              "lattice-beam = 0.3\nuniform = 1\n",
                              here);
    assert_int_equal(write(file, text, (size_t)size), size);
    close(file);
    assert_int_equal(dgm_phrasal_file_open(&f, path, &err), DGM_OK);
    dgm_phrasal_file_options(f, &o);
    assert_int_equal(o.size, sizeof o);
    assert_string_equal(o.table, here);
    assert_string_equal(o.lm, "/tmp/fifty.arpa");
    assert_string_equal(o.source, "de");
    assert_null(o.target);
    assert_null(o.weights);
    assert_true(o.pops == 7 && o.stack == 5 && o.jump == 0 && o.table_limit == 3 && o.uniform == 1);
    assert_true(o.lattice_beam == 0.3 && o.nbest == 1 && o.threads == 1);
    dgm_phrasal_file_close(&f);
    ALLOCATIONS_FAIL(open_and_close(path));
    unlink(path);
    free(here);
}

// ---- weights ----------------------------------------------------------------------------------

static void weights_there_and_back(void **state)
{
    (void)state;
    dgm_error err;
    dgm_pb_weights a, b;
    for (int k = 0; k < DGM_PB_FEATURES; k++) a.w[k] = (double)(float)(random_unit() - 0.5);
    dgm_writer w = {0};
    dgm_pb_weights_write(&a, &w);
    dgm_pb_weights_uniform(&b);
    char *text = dgm_writer_take(&w, NULL), *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        assert_int_equal(dgm_pb_weights_parse(&b, dgm_text_of(line), &err), DGM_OK);
    for (int k = 0; k < DGM_PB_FEATURES; k++) assert_true((float)a.w[k] == (float)b.w[k]);
    dgm_free(text);
    assert_int_equal(dgm_pb_weights_parse(&b, dgm_text_of("# LM0= x"), &err), DGM_OK);
    assert_int_equal(dgm_pb_weights_parse(&b, dgm_text_of("LM1= 1"), &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "'LM1=' is not a feature of this decoder");
    assert_int_equal(dgm_pb_weights_parse(&b, dgm_text_of("LM0= x"), &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "LM0 has 1 number");
    assert_int_equal(dgm_pb_weights_parse(&b, dgm_text_of("TranslationModel0= 1 2 3"), &err),
                     DGM_ERR_FORMAT);
}

// ---- MERT -------------------------------------------------------------------------------------

enum { F = 4, LINES = 30, HYPS = 12 };

// Random lists: BLEU counts of one reference of 10 words, some of them found.
static dgm_mert_set *random_lists(const dgm_metric *metric)
{
    dgm_error err;
    dgm_mert_set *s = NULL;
    assert_int_equal(dgm_mert_set_open(&s, LINES, F, metric, &err), DGM_OK);
    for (size_t i = 0; i < LINES; i++)
        for (int k = 0; k < HYPS; k++) {
            double f[F];
            int64_t row[10] = {10, 10, 0, 0, 0, 0, 10, 9, 8, 7};
            for (int j = 0; j < F; j++) f[j] = 4 * random_unit() - 2;
            int found = 10;
            for (int n = 0; n < 4; n++) {
                found = (int)(random_unit() * (found < 10 - n ? found : 10 - n) + 0.999);
                row[2 + n] = found;
            }
            row[0] = 8 + (int)(random_unit() * 4);
            assert_int_equal(dgm_mert_set_add(s, i, f, row, &err), DGM_OK);
            assert_int_equal(dgm_mert_set_add(s, i, f, row, &err), DGM_OK); // counted once
        }
    assert_int_equal(dgm_mert_set_count(s), LINES * HYPS);
    return s;
}

static dgm_metric *open_metric(void)
{
    dgm_error err;
    dgm_metric_options o;
    dgm_metric *m = NULL;
    dgm_metric_options_default(&o, DGM_METRIC_BLEU);
    assert_int_equal(dgm_metric_open(&m, &o, &err), DGM_OK);
    assert_int_equal(dgm_metric_width(m), 10);
    return m;
}

static double score_under(const dgm_mert_set *s, const double *weights)
{
    double score;
    dgm_error err;
    assert_int_equal(dgm_mert_set_score(s, weights, &score, &err), DGM_OK);
    return score;
}

static void a_line_is_searched_exactly(void **state)
{
    (void)state;
    dgm_error err;
    dgm_metric *metric = open_metric();
    dgm_mert_set *s = random_lists(metric);
    for (int round = 0; round < 10; round++) {
        double w[F], d[F], v[F], step, score, best = -1;
        for (int j = 0; j < F; j++) {
            w[j] = 2 * random_unit() - 1;
            d[j] = 2 * random_unit() - 1;
        }
        assert_int_equal(dgm_mert_line(s, w, d, &step, &score, &err), DGM_OK);
        for (int j = 0; j < F; j++) v[j] = w[j] + step * d[j];
        assert_true(fabs(score_under(s, v) - score) < 1e-9);
        for (double x = -20; x < 20; x += 0.002) { // no step of a walk is better
            for (int j = 0; j < F; j++) v[j] = w[j] + x * d[j];
            double here = score_under(s, v);
            if (here > best) best = here;
        }
        assert_true(score >= best - 1e-6);
    }
    dgm_mert_set_close(&s);
    dgm_metric_close(&metric);
}

static void the_search_gains(void **state)
{
    (void)state;
    dgm_error err;
    dgm_metric *metric = open_metric();
    dgm_mert_set *s = random_lists(metric);
    dgm_pool *pool = NULL;
    assert_int_equal(dgm_pool_open(&pool, 3, &err), DGM_OK);
    bool fixed[F] = {false, false, true, false};
    double w[2][F], score[2], start;
    for (int k = 0; k < 2; k++) {
        for (int j = 0; j < F; j++) w[k][j] = 0.25;
        start = score_under(s, w[k]);
        dgm_mert_params p = {.fixed = fixed, .restarts = 5, .directions = 4, .seed = 3};
        p.pool = k ? pool : NULL;
        assert_int_equal(dgm_mert_search(s, &p, w[k], &score[k], &err), DGM_OK);
        assert_true(score[k] > start + 1);
        assert_true(fabs(score_under(s, w[k]) - score[k]) < 1e-9);
        assert_true(w[k][2] == 0.25);
    }
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    dgm_pool_close(&pool);
    dgm_mert_set_close(&s);
    dgm_metric_close(&metric);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimum_by_hand),        cmocka_unit_test(optimum_by_brute_force),
        cmocka_unit_test(lists_are_complete),     cmocka_unit_test(odd_sentences),
        cmocka_unit_test(threads_do_not_matter),  cmocka_unit_test(decoder_allocations_fail),
        cmocka_unit_test(weights_there_and_back), cmocka_unit_test(a_line_is_searched_exactly),
        cmocka_unit_test(the_search_gains),       cmocka_unit_test(system_file),
        cmocka_unit_test(asked_allocations_fail),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
