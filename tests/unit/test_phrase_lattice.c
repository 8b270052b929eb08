// SPDX-License-Identifier: MIT
// Lattices: both text formats there and back, what is said about bad ones, paths against brute
// force on random lattices (n-best, distinct n-best, pruning, union, posteriors, one arc per token),
// tokens of a path against the tokens of its text, allocation failures.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "engine/engine_private.h"
#include "lattice/lattice.h"

#define MODEL "models/en-de.gguf"

static dgm_lattice *parse(const char *text)
{
    dgm_lattice *l = NULL;
    dgm_error err;
    if (dgm_lattice_parse(&l, dgm_text_of(text), 1, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    return l;
}

// ---- every path, by hand -----------------------------------------------------------------------

enum { PATHS = 4096, LONGEST = 64 };

typedef struct path {
    char text[256];
    double score;
    int32_t words[LONGEST];
    size_t count;
} path;

typedef struct paths {
    path *items;
    size_t count;
} paths;

static void walk(const dgm_lattice *l, int32_t node, uint32_t *arcs, size_t count, double score,
                 paths *out)
{
    if (l->ends[node] > -INFINITY) {
        assert_true(out->count < PATHS);
        path *p = &out->items[out->count++];
        dgm_writer w = {0};
        assert_int_equal(dgm_lattice_spell(l, arcs, count, &w, NULL), DGM_OK);
        assert_true(w.size < sizeof p->text);
        if (w.size) memcpy(p->text, w.data, w.size);
        p->text[w.size] = 0;
        dgm_writer_free(&w);
        p->score = score + (double)l->ends[node];
        p->count = 0;
        for (size_t i = 0; i < count; i++)
            if (l->arcs[arcs[i]].word >= 0) p->words[p->count++] = l->arcs[arcs[i]].word;
    }
    for (size_t i = l->first[node]; i < l->first[node + 1]; i++) {
        assert_true(count < LONGEST);
        arcs[count] = (uint32_t)i;
        walk(l, l->arcs[i].to, arcs, count + 1, score + (double)l->arcs[i].score, out);
    }
}

static int by_score(const void *a, const void *b)
{
    const path *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return strcmp(x->text, y->text);
}

static int by_text(const void *a, const void *b)
{
    const int order = strcmp(((const path *)a)->text, ((const path *)b)->text);
    return order ? order : by_score(a, b);
}

static paths all_paths(const dgm_lattice *l)
{
    paths p = {.items = calloc(PATHS, sizeof *p.items)};
    uint32_t arcs[LONGEST];
    walk(l, 0, arcs, 0, 0.0, &p);
    qsort(p.items, p.count, sizeof *p.items, by_score);
    return p;
}

// Of every text the best one.
static void keep_distinct(paths *p)
{
    size_t kept = 0;
    qsort(p->items, p->count, sizeof *p->items, by_text);
    for (size_t i = 0; i < p->count; i++)
        if (kept == 0 || strcmp(p->items[kept - 1].text, p->items[i].text) != 0)
            p->items[kept++] = p->items[i];
    p->count = kept;
    qsort(p->items, p->count, sizeof *p->items, by_score);
}

static void same_paths(const paths *a, const paths *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_float_equal(a->items[i].score, b->items[i].score, 1e-4);
        // Equal scores may come in any order.
        bool tied = (i > 0 && a->items[i].score - a->items[i - 1].score > -1e-4) ||
                    (i + 1 < a->count && a->items[i + 1].score - a->items[i].score > -1e-4);
        if (!tied) assert_string_equal(a->items[i].text, b->items[i].text);
    }
}

// A few nodes, words of which several mean the same text, marks, empty arcs.
static dgm_lattice *random_lattice(dgm_rng *rng, bool empty)
{
    static const char *const words[] = {"a", "b", "c", "ab", "ba", "d e", "x"};
    dgm_lattice *l = NULL;
    int32_t node;
    const int32_t nodes = 2 + (int32_t)dgm_rng_below(rng, 6);
    assert_int_equal(dgm_lattice_open(&l, NULL), DGM_OK);
    for (int32_t i = 0; i < nodes; i++)
        assert_int_equal(dgm_lattice_add_node(l, 0, &node, NULL), DGM_OK);
    for (int32_t i = 0; i + 1 < nodes; i++) {
        const uint64_t arcs = 1 + dgm_rng_below(rng, 3);
        for (uint64_t k = 0; k < arcs; k++) {
            const int32_t to = i + 1 + (int32_t)dgm_rng_below(rng, (uint64_t)(nodes - i - 1));
            const bool none = empty && dgm_rng_below(rng, 5) == 0;
            const char *word = none ? "" : words[dgm_rng_below(rng, 7)];
            const uint64_t marks = dgm_rng_below(rng, 8);
            assert_int_equal(dgm_lattice_add_text(l, i, to, dgm_text_of(word),
                                                  marks < 3 ? (uint32_t)marks + 1 : 0,
                                                  (float)dgm_rng_unit(rng) * -4.0f, NULL),
                             DGM_OK);
        }
        if (dgm_rng_below(rng, 4) == 0) dgm_lattice_add_end(l, i, -(float)dgm_rng_unit(rng));
    }
    dgm_lattice_add_end(l, nodes - 1, 0.5f);
    assert_int_equal(dgm_lattice_seal(l, true, NULL), DGM_OK);
    return l;
}

// ---- text --------------------------------------------------------------------------------------

static const char sample[] = "# a greeting\n"
                             "lattice 17\n"
                             "0 1 -0.25 Guten\n"
                             "0 1 -1.5 Schönen\n"
                             "1 2 0 Morgen\n"
                             "1 3 -2 Tag\n"
                             "2 4 -0.125 ~.\n"
                             "3 4 0\n"
                             "4 -1\n";

static void test_formats(void **state)
{
    (void)state;
    dgm_lattice *l = parse(sample), *again = NULL;
    assert_int_equal(l->node_count, 5);
    assert_int_equal(l->arc_count, 6);
    assert_string_equal(l->name, "17");
    paths p = all_paths(l);
    assert_int_equal(p.count, 4);
    assert_string_equal(p.items[0].text, "Guten Morgen.");
    assert_float_equal(p.items[0].score, -1.375, 1e-6);
    assert_string_equal(p.items[3].text, "Schönen Tag");
    assert_int_equal(dgm_lattice_longest(l), 3);
    for (int format = 0; format < 2; format++) {
        dgm_writer w = {0};
        assert_int_equal(dgm_lattice_write(l, (dgm_lattice_format)format, &w, NULL), DGM_OK);
        dgm_write_u8(&w, 0);
        again = parse((const char *)w.data);
        paths q = all_paths(again);
        same_paths(&p, &q);
        free(q.items);
        dgm_lattice_close(&again);
        dgm_writer_free(&w);
    }
    free(p.items);
    dgm_lattice_close(&l);
}

// Words of a list are those that the text form can hold: a carriage return separates them.
static void test_list_words(void **state)
{
    (void)state;
    dgm_lattice_list *list = NULL;
    dgm_lattice *l = NULL;
    assert_int_equal(dgm_lattice_list_open(&list, NULL), DGM_OK);
    assert_int_equal(dgm_lattice_list_add(list, dgm_text_of("a\r b\r\rc \r"), -1.0f, NULL), DGM_OK);
    assert_int_equal(dgm_lattice_list_add(list, dgm_text_of("caf\xe9"), -1.0f, NULL), DGM_ERR_FORMAT);
    assert_int_equal(dgm_lattice_list_finish(&list, &l, NULL), DGM_OK);
    paths p = all_paths(l);
    assert_int_equal(p.count, 1);
    assert_string_equal(p.items[0].text, "a b c");
    free(p.items);
    dgm_lattice_close(&l);
}

static void expect_best(const char *text, const char *best, double score)
{
    dgm_lattice *l = parse(text);
    paths p = all_paths(l);
    assert_string_equal(p.items[0].text, best);
    assert_float_equal(p.items[0].score, score, 1e-5);
    free(p.items);
    dgm_lattice_close(&l);
}

static void test_openfst(void **state)
{
    (void)state;
    expect_best("0 1 the 0.5\n1 2 house 0.25\n2 0.125\n", "the house", -0.875);
    expect_best("0 1 the\n1 2 house 0.25\n2\n", "the house", -0.25);
    expect_best("0 1 das the 0.5\n1 2 Haus house\n2 0\n", "the house",
                -0.5); // five fields: two labels
    expect_best("7 3 a\n3 9 <eps> 1\n9 7000 b\n7000\n", "a b", -1);
    expect_best("0 1 a Infinity\n0 1 b 2\n1\n", "b", -2);
    expect_best("0 1 New\\sYork 1\n1 2 ~,\n2 3 (~\n3 4 \\~x\n4 5 ~)\n5\n", "New York, (~x)", -1);
    expect_best("0 1 \\<eps> 1\n1\n", "<eps>", -1);
    expect_best("lattice\n0 0\n", "", 0); // nothing but the empty sentence
    expect_best("lattice\n0 1 0 guten  Morgen \n1 0\n", "guten Morgen", 0);
    expect_best("lattice\n0 1 0 ~\n1 2 0 a\\\\\n2 0\n", "~ a\\", 0);
}

static void test_bad(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "line 1: the lattice has no nodes"},
        {"lattice 3\n", "line 1: the lattice has no nodes"},
        {"lattice\n0 1 0 a\n", "line 1: no path leads from the start to an end"},
        {"lattice\n0 1 0 a\n1 0 0 b\n1 0\n", "line 3: this arc lies on a cycle"},
        {"lattice\n0 1 0 a\n1 1 0 b\n1 0\n", "line 3: this arc lies on a cycle"},
        {"lattice\n0 1 0 a\n0 2 0 b\n1 0\n",
         "line 3: a dead end: no path leads from this node to an end"},
        {"lattice\n0 1 0 a\n5 1 0 b\n1 0\n", "line 3: no path leads from the start to this node"},
        {"lattice\n0 1 x a\n1 0\n", "line 2: 'x' is not a score; an arc is FROM TO SCORE TEXT"},
        {"lattice\n0 1 nan a\n1 0\n", "line 2: 'nan' is not a score; an arc is FROM TO SCORE TEXT"},
        {"lattice\n-1 1 0 a\n1 0\n", "line 2: '-1' is not the number of a node"},
        {"lattice\n0 1 0 a\n1 0\nlattice\n", "line 4: a second lattice begins in the same block"},
        {"lattice\n0 1 0 \xff\n1 0\n", "line 2: not valid UTF-8"},
        {"lattice\n0 1 0 ~\\s~\n1 0\n", "line 2: a word has only blanks"},
        {"0 1 a b 1 2\n1\n", "line 1: more than five fields"},
        {"0 1 a x\n1\n", "line 1: 'x' is not a cost"},
        {"0 1 a b 1\n1 2 c\n2\n", "line 2: an arc without an output label"},
        {"0 99999999999 a\n", "line 1: '99999999999' is not the number of a node"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dgm_lattice *l = NULL;
        dgm_error err;
        const uint64_t live = dgm_mem_live();
        assert_int_not_equal(dgm_lattice_parse(&l, dgm_text_of(cases[i].text), 1, NULL, &err),
                             DGM_OK);
        assert_null(l);
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(dgm_mem_live(), live);
    }
    const dgm_lattice_syntax trim = {.trim = true};
    dgm_lattice *l = NULL;
    const char *loose = "lattice\n0 1 0 a\n0 2 0 b\n5 1 0 c\n1 0\n";
    assert_int_equal(dgm_lattice_parse(&l, dgm_text_of(loose), 1, &trim, NULL), DGM_OK);
    assert_int_equal(l->arc_count, 1);
    dgm_lattice_close(&l);
}

static char folder[64];

static const char *put(const char *name, const char *text)
{
    static char names[4][128];
    static int next;
    char *p = names[next++ % 4];
    snprintf(p, sizeof names[0], "%s/%s", folder, name);
    assert_int_equal(dgm_file_write(p, text, strlen(text), NULL), DGM_OK);
    return p;
}

static void test_files(void **state)
{
    (void)state;
    dgm_lattice_file *f = NULL;
    dgm_lattice *l = NULL;
    dgm_error err;
    const char *many =
        put("many", "\n# two\n\nlattice 1\n0 1 0 a\n1 0\nlattice 2\n0 1 0 b\n1 0\n\n\n"
                    "0 1 c 1\n1\n\n0 1 d\n0 2 d\n1\n");
    assert_int_equal(dgm_lattice_file_open(&f, many, NULL, false, false, &err), DGM_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dgm_lattice_file_next(f, &l, &err), DGM_OK);
        assert_non_null(l);
        assert_int_equal(l->arc_count, 1);
        dgm_lattice_close(&l);
    }
    assert_int_equal(dgm_lattice_file_next(f, &l, &err), DGM_ERR_FORMAT);
    char wanted[256];
    snprintf(wanted, sizeof wanted,
             "%s: line 16: a dead end: no path leads from this node to an end", many);
    assert_string_equal(err.text, wanted);
    assert_int_equal(dgm_lattice_file_next(f, &l, &err), DGM_OK);
    assert_null(l);
    dgm_lattice_file_close(&f);

    const char *symbols = put("symbols", "<eps>\t0\nHaus 12\ndas 3\n");
    const char *numbers = put("numbers", "0 1 3 0.5\n1 2 0\n2 3 12\n3\n\n0 1 4\n1\n");
    assert_int_equal(dgm_lattice_file_open(&f, numbers, symbols, false, false, &err), DGM_OK);
    assert_int_equal(dgm_lattice_file_next(f, &l, &err), DGM_OK);
    paths p = all_paths(l);
    assert_string_equal(p.items[0].text, "das Haus");
    free(p.items);
    dgm_lattice_close(&l);
    assert_int_equal(dgm_lattice_file_next(f, &l, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "line 6: label 4 is not in the table of symbols"));
    dgm_lattice_file_close(&f);
    assert_int_equal(
        dgm_lattice_file_open(&f, numbers, put("bad", "a 1\na 2\n"), false, false, &err),
        DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, ":2: the symbol 'a' comes twice"));
    assert_int_equal(dgm_lattice_file_open(&f, numbers, put("bad", "a b\n"), false, false, &err),
                     DGM_ERR_FORMAT);
    assert_null(f);
}

// ---- against brute force -----------------------------------------------------------------------

static bool take_path(void *cookie, const dgm_lattice_path *p)
{
    paths *out = cookie;
    path *to = &out->items[out->count++];
    dgm_writer w = {0};
    assert_int_equal(dgm_lattice_spell(p->lattice, p->arcs, p->count, &w, NULL), DGM_OK);
    if (w.size) memcpy(to->text, w.data, w.size);
    to->text[w.size] = 0;
    to->score = p->score;
    dgm_writer_free(&w);
    return true;
}

static void test_nbest(void **state)
{
    (void)state;
    dgm_rng rng = {11};
    for (int round = 0; round < 300; round++) {
        dgm_lattice *l = random_lattice(&rng, round % 2 == 0);
        paths all = all_paths(l), got = {.items = calloc(PATHS, sizeof(path))};
        assert_int_equal(dgm_lattice_nbest(l, PATHS, false, take_path, &got, NULL), DGM_OK);
        same_paths(&all, &got);
        got.count = 0;
        keep_distinct(&all);
        assert_int_equal(dgm_lattice_nbest(l, PATHS, true, take_path, &got, NULL), DGM_OK);
        same_paths(&all, &got);
        got.count = 0;
        assert_int_equal(dgm_lattice_nbest(l, 2, true, take_path, &got, NULL), DGM_OK);
        if (all.count > 2) all.count = 2;
        assert_int_equal(got.count, all.count);
        assert_float_equal(got.items[0].score, all.items[0].score, 1e-4);
        free(all.items);
        free(got.items);
        dgm_lattice_close(&l);
    }
}

static void test_operations(void **state)
{
    (void)state;
    dgm_rng rng = {5};
    for (int round = 0; round < 200; round++) {
        dgm_lattice *l = random_lattice(&rng, true), *m = random_lattice(&rng, true), *out = NULL;
        const dgm_lattice *const both[2] = {l, m};
        paths a = all_paths(l), b = all_paths(m);
        assert_int_equal(dgm_lattice_union(both, 2, &out, NULL), DGM_OK);
        paths u = all_paths(out);
        // Two starts that end are one end: the better.
        size_t ends = l->ends[0] > -INFINITY && m->ends[0] > -INFINITY;
        assert_int_equal(u.count, a.count + b.count - ends);
        dgm_lattice_close(&out);
        // Pruned by 1.5: exactly the arcs of paths that close to the best.
        const dgm_lattice_pruning how = {.behind = 1.5};
        assert_int_equal(dgm_lattice_prune(l, &how, &out, NULL), DGM_OK);
        paths q = all_paths(out);
        size_t close = 0;
        while (close < a.count && a.items[close].score >= a.items[0].score - 1.5) close++;
        assert_true(q.count >= close && q.count <= a.count);
        for (size_t i = 0; i < close; i++)
            assert_float_equal(q.items[i].score, a.items[i].score, 1e-5);
        dgm_lattice_close(&out);
        const dgm_lattice_pruning few = {.behind = -1, .max_arcs = 1};
        assert_int_equal(dgm_lattice_prune(l, &few, &out, NULL), DGM_OK);
        paths one = all_paths(out);
        assert_float_equal(one.items[0].score, a.items[0].score, 1e-5);
        dgm_lattice_close(&out);
        assert_int_equal(dgm_lattice_without_empty(l, &out, NULL), DGM_OK);
        paths full = all_paths(out);
        keep_distinct(&a);
        keep_distinct(&full); // ends of one node are merged
        same_paths(&a, &full);
        dgm_lattice_close(&out);
        free(a.items), free(b.items), free(u.items), free(q.items), free(one.items);
        free(full.items);
        dgm_lattice_close(&l);
        dgm_lattice_close(&m);
    }
}

static void test_posteriors(void **state)
{
    (void)state;
    dgm_rng rng = {77};
    for (int round = 0; round < 100; round++) {
        dgm_lattice *l = random_lattice(&rng, false);
        double *arcs = calloc(l->arc_count + 1, sizeof *arcs);
        double *ends = calloc((size_t)l->node_count, sizeof *ends);
        assert_int_equal(dgm_lattice_posteriors(l, 0.7, arcs, ends, NULL), DGM_OK);
        // What leaves a node is what comes in; all ends together are 1.
        double sum = 0;
        for (int32_t n = 0; n < l->node_count; n++) {
            double in = n == 0, out = ends[n];
            for (size_t i = 0; i < l->arc_count; i++) {
                if (l->arcs[i].to == n) in += arcs[i];
                if (l->arcs[i].from == n) out += arcs[i];
            }
            assert_float_equal(in, out, 1e-9);
            sum += ends[n];
        }
        assert_float_equal(sum, 1.0, 1e-9);
        paths p = all_paths(l);
        double z = 0;
        for (size_t i = 0; i < p.count; i++) z += exp(0.7 * p.items[i].score);
        double *behind = calloc((size_t)l->node_count, sizeof *behind);
        dgm_lattice_backward(l, true, 0.7, behind);
        assert_float_equal(behind[0], log(z), 1e-6);
        free(p.items), free(arcs), free(ends), free(behind);
        dgm_lattice_close(&l);
    }
}

// ---- tokens ------------------------------------------------------------------------------------

static dgm_vocab *model_vocab(void)
{
    dgm_gguf *file = NULL;
    dgm_vocab *v = NULL;
    assert_int_equal(dgm_gguf_open(&file, MODEL, NULL), DGM_OK);
    assert_int_equal(dgm_vocabulary_load(file, DGM_SOURCE, &v, NULL, NULL), DGM_OK);
    dgm_gguf_close(&file);
    return v;
}

// Paths of tokens as numbers in text form, so that they can be compared like texts.
static void as_numbers(paths *p)
{
    for (size_t i = 0; i < p->count; i++) {
        size_t at = 0;
        p->items[i].text[0] = 0;
        for (size_t k = 0; k < p->items[i].count; k++)
            at += (size_t)snprintf(p->items[i].text + at, sizeof p->items[i].text - at, "%d ",
                                   (int)p->items[i].words[k]);
    }
    qsort(p->items, p->count, sizeof *p->items, by_score);
}

static void test_subwords(void **state)
{
    (void)state;
    dgm_vocab *v = model_vocab();
    dgm_tokens tokens = {0};
    dgm_rng rng = {3};
    for (int round = 0; round < 200; round++) {
        dgm_lattice *l = random_lattice(&rng, true), *subwords = NULL, *one = NULL;
        size_t dropped = 1;
        dgm_error err;
        paths words = all_paths(l);
        if (dgm_lattice_subwords(l, v, &subwords, &dropped, &err) != DGM_OK) fail_msg("%s", err.text);
        assert_int_equal(dropped, 0);
        keep_distinct(&words);
        for (size_t i = 0; i < words.count; i++) {
            path *p = &words.items[i];
            assert_int_equal(dgm_vocab_encode(v, dgm_text_of(p->text), &tokens, NULL), DGM_OK);
            p->count = tokens.count;
            memcpy(p->words, tokens.ids, tokens.count * sizeof *tokens.ids);
        }
        as_numbers(&words);
        keep_distinct(&words);
        paths got = all_paths(subwords);
        as_numbers(&got);
        keep_distinct(&got);
        same_paths(&words, &got);
        // The same with one arc per token, which needs no search for the distinct ones.
        assert_int_equal(dgm_lattice_determine(subwords, true, 100000, &one, NULL), DGM_OK);
        paths single = all_paths(one);
        as_numbers(&single);
        same_paths(&words, &single);
        for (size_t i = 1; i < one->arc_count; i++)
            assert_true(one->arcs[i].from != one->arcs[i - 1].from ||
                        one->arcs[i].word > one->arcs[i - 1].word);
        free(words.items), free(got.items), free(single.items);
        const size_t most = (size_t)one->node_count - 1;
        dgm_lattice_close(&one);
        assert_int_equal(dgm_lattice_determine(subwords, true, most, &one, &err),
                         DGM_ERR_UNSUPPORTED);
        dgm_lattice_close(&subwords);
        dgm_lattice_close(&l);
    }
    dgm_tokens_free(&tokens);
    dgm_vocab_close(&v);
}

static void test_unknown(void **state)
{
    (void)state;
    static const dgm_text spelled[] = {{"</s>", 4}, {"<unk>", 5}, {"a", 1}, {"Haus", 4}};
    const dgm_vocab_source source = {
        .kind = DGM_VOCAB_WORDS, .words = spelled, .word_count = 4, .unk = 1, .pad = -1, .bos = -1};
    dgm_vocab *v = NULL;
    dgm_lattice *l = parse("lattice\n0 1 0 a\n0 1 0 zwei\n1 2 0 Haus\n2 0\n"), *subwords = NULL;
    dgm_error err;
    size_t dropped = 0;
    assert_int_equal(dgm_vocab_open(&v, &source, &err), DGM_OK);
    assert_int_equal(dgm_lattice_subwords(l, v, &subwords, &dropped, &err), DGM_OK);
    assert_int_equal(dropped, 1);
    assert_int_equal(subwords->arc_count, 2);
    dgm_lattice_close(&subwords);
    dgm_lattice_close(&l);
    l = parse("lattice\n0 1 0 a\n1 2 0 Hausboot\n2 0\n");
    assert_int_equal(dgm_lattice_subwords(l, v, &subwords, &dropped, &err), DGM_ERR_TEXT);
    assert_string_equal(err.text, "line 3: the vocabulary cannot spell 'Hausboot'");
    assert_null(subwords);
    dgm_lattice_close(&l);
    dgm_vocab_close(&v);
}

// ---- memory ------------------------------------------------------------------------------------

static bool take_none(void *cookie, const dgm_lattice_path *p)
{
    (void)cookie, (void)p;
    return true;
}

static dgm_status everything(const dgm_vocab *v)
{
    dgm_lattice *l = NULL, *a = NULL, *b = NULL, *c = NULL;
    dgm_writer w = {0};
    dgm_error err;
    const dgm_lattice_pruning how = {.behind = 3, .max_arcs = 4};
    double posteriors[8];
    dgm_status st = dgm_lattice_parse(&l, dgm_text_of(sample), 1, NULL, &err);
    if (st == DGM_OK) st = dgm_lattice_prune(l, &how, &a, &err);
    if (st == DGM_OK) {
        const dgm_lattice *const both[2] = {l, a};
        st = dgm_lattice_union(both, 2, &b, &err);
        dgm_lattice_close(&a);
    }
    if (st == DGM_OK) st = dgm_lattice_nbest(b, 10, true, take_none, NULL, &err);
    if (st == DGM_OK) st = dgm_lattice_subwords(b, v, &a, NULL, &err);
    if (st == DGM_OK) st = dgm_lattice_determine(a, true, 1000, &c, &err);
    if (st == DGM_OK) st = dgm_lattice_posteriors(l, 1.0, posteriors, NULL, &err);
    if (st == DGM_OK) st = dgm_lattice_write(b, DGM_LATTICE_OPENFST, &w, &err);
    dgm_writer_free(&w);
    dgm_lattice_close(&l);
    dgm_lattice_close(&a);
    dgm_lattice_close(&b);
    dgm_lattice_close(&c);
    return st;
}

static void test_memory(void **state)
{
    (void)state;
    dgm_vocab *v = model_vocab();
    const uint64_t live = dgm_mem_live();
    dgm_status st = DGM_ERR_MEMORY;
    for (uint64_t n = 1; st != DGM_OK; n++) {
        dgm_mem_inject(n, 1);
        st = everything(v);
        dgm_mem_inject(0, 0);
        assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
        assert_int_equal(dgm_mem_live(), live);
    }
    dgm_vocab_close(&v);
}

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/dragoman-lattice-%ld", (long)getpid());
    char command[96];
    snprintf(command, sizeof command, "mkdir -p %s", folder);
    if (system(command) != 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),    cmocka_unit_test(test_openfst),
        cmocka_unit_test(test_bad),        cmocka_unit_test(test_files),
        cmocka_unit_test(test_nbest),      cmocka_unit_test(test_operations),
        cmocka_unit_test(test_posteriors), cmocka_unit_test(test_subwords),
        cmocka_unit_test(test_list_words),
        cmocka_unit_test(test_unknown),    cmocka_unit_test(test_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 ? 1 : failed;
}
