// SPDX-License-Identifier: MIT
// Phrase extraction against a copy of the definition, scores by hand, phrase tables there and back
// and from damaged bytes, allocations that fail.
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
#include "phrase/extract.h"
#include "phrase/phrase_count.h"
#include "phrase/phrase_table.h"
#include "scratch.h"

// ---- extraction -------------------------------------------------------------------------------

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % n;
}

typedef struct grid {
    int m, n;
    bool cell[16][16];
} grid;

static bool has_link(const grid *g, int i, int j)
{
    if ((i == -1 && j == -1) || (i == g->m && j == g->n)) return true;
    return i >= 0 && j >= 0 && i < g->m && j < g->n && g->cell[i][j];
}

// The definition, word for word: some link inside, none that leaves.
static bool consistent(const grid *g, int i1, int i2, int j1, int j2)
{
    bool some = false;
    for (int i = 0; i < g->m; i++)
        for (int j = 0; j < g->n; j++) {
            if (!g->cell[i][j]) continue;
            bool in_source = i >= i1 && i <= i2, in_target = j >= j1 && j <= j2;
            if (in_source != in_target) return false;
            some = some || in_source;
        }
    return some;
}

static int turn(bool monotone, bool swapped)
{
    return monotone && !swapped ? 0 : swapped && !monotone ? 1 : 2;
}

static void check_span(const grid *g, const dgm_phrase_span *s, int i1, int i2, int j1, int j2)
{
    assert_int_equal(s->source, i1);
    assert_int_equal(s->source_length, i2 - i1 + 1);
    assert_int_equal(s->target, j1);
    assert_int_equal(s->target_length, j2 - j1 + 1);
    assert_int_equal(s->previous, turn(has_link(g, i1 - 1, j1 - 1), has_link(g, i2 + 1, j1 - 1)));
    assert_int_equal(s->next, turn(has_link(g, i2 + 1, j2 + 1), has_link(g, i1 - 1, j2 + 1)));
    for (int i = i1; i <= i2; i++)
        for (int j = j1; j <= j2; j++)
            assert_int_equal((s->links >> ((i - i1) * 7 + (j - j1))) & 1, g->cell[i][j]);
}

static void extraction_follows_the_definition(void **state)
{
    (void)state;
    dgm_error err;
    for (int round = 0; round < 400; round++) {
        grid g = {.m = 1 + (int)random_below(9), .n = 1 + (int)random_below(9)};
        int most = 1 + (int)random_below(7);
        dgm_align_link links[64];
        size_t count = 0;
        uint32_t wanted = random_below(12);
        for (uint32_t k = 0; k < wanted; k++) {
            int i = (int)random_below((uint32_t)g.m), j = (int)random_below((uint32_t)g.n);
            g.cell[i][j] = true;
            links[count++] = (dgm_align_link){(uint16_t)i, (uint16_t)j};
        }
        dgm_extractor *x = NULL;
        const dgm_phrase_span *spans;
        size_t n, at = 0;
        assert_int_equal(dgm_extractor_open(&x, most, &err), DGM_OK);
        assert_int_equal(dgm_extract(x, links, count, g.m, g.n, &spans, &n, &err), DGM_OK);
        for (int i1 = 0; i1 < g.m; i1++)
            for (int i2 = i1; i2 < g.m && i2 - i1 < most; i2++)
                for (int j1 = 0; j1 < g.n; j1++)
                    for (int j2 = j1; j2 < g.n && j2 - j1 < most; j2++)
                        if (consistent(&g, i1, i2, j1, j2)) {
                            assert_true(at < n);
                            check_span(&g, &spans[at++], i1, i2, j1, j2);
                        }
        assert_int_equal(at, n);
        dgm_extractor_close(&x);
    }
}

static void extraction_refuses_bad_links(void **state)
{
    (void)state;
    dgm_error err;
    dgm_extractor *x = NULL;
    const dgm_phrase_span *spans;
    size_t n;
    assert_int_equal(dgm_extractor_open(&x, 8, &err), DGM_ERR_ARGUMENT);
    assert_null(x);
    assert_int_equal(dgm_extractor_open(&x, 3, &err), DGM_OK);
    dgm_align_link link = {2, 0};
    assert_int_equal(dgm_extract(x, &link, 1, 2, 2, &spans, &n, &err), DGM_ERR_TEXT);
    assert_string_equal(err.text, "link 2-0 lies outside a pair of 2 and 2 words");
    dgm_extractor_close(&x);
}

// ---- scores -----------------------------------------------------------------------------------

static const char *const SOURCE = "das haus\ndas haus\nein haus\ndas\n";
static const char *const TARGET = "the house\nthe home\na house\nthe\n";
static const char *const LINKS = "0-0 1-1\n0-0 1-1\n0-0 1-1\n0-0\n";

// Counted by hand. das: the 3 times. haus: house 2, home 1. ein: a. Pairs of two words once each.
static const char *const TABLE = "das ||| the ||| 1 1 1 1 ||| 0-0\n"
                                 "das haus ||| the house ||| 1 1 0.5 0.666667 ||| 0-0 1-1\n"
                                 "das haus ||| the home ||| 1 1 0.5 0.333333 ||| 0-0 1-1\n"
                                 "ein ||| a ||| 1 1 1 1 ||| 0-0\n"
                                 "ein haus ||| a house ||| 1 1 1 0.666667 ||| 0-0 1-1\n"
                                 "haus ||| house ||| 1 1 0.666667 0.666667 ||| 0-0\n"
                                 "haus ||| home ||| 1 1 0.333333 0.333333 ||| 0-0\n";

// Every word follows its neighbour in order: (n + 0.5) / (n + 1.5), 0.5 / (n + 1.5).
static const char *const TURNS =
    "das ||| the ||| 0.777778 0.111111 0.111111 0.777778 0.111111 0.111111\n"
    "das haus ||| the house ||| 0.6 0.2 0.2 0.6 0.2 0.2\n"
    "das haus ||| the home ||| 0.6 0.2 0.2 0.6 0.2 0.2\n"
    "ein ||| a ||| 0.6 0.2 0.2 0.6 0.2 0.2\n"
    "ein haus ||| a house ||| 0.6 0.2 0.2 0.6 0.2 0.2\n"
    "haus ||| house ||| 0.714286 0.142857 0.142857 0.714286 0.142857 0.142857\n"
    "haus ||| home ||| 0.6 0.2 0.2 0.6 0.2 0.2\n";

// Six digits: what the expected text has.
static void assert_table(const char *path, const char *expected)
{
    char *text = get(path), *save = NULL, *line = strtok_r(text, "\n", &save);
    const char *want = expected;
    for (; line; line = strtok_r(NULL, "\n", &save)) {
        char rounded[512] = "", *word, *inner = NULL;
        for (word = strtok_r(line, " ", &inner); word; word = strtok_r(NULL, " ", &inner)) {
            char *end;
            double v = strtod(word, &end);
            char number[32];
            snprintf(number, sizeof number, "%.6g", v);
            bool plain = *end == 0 && strchr(word, '.');
            if (rounded[0]) strcat(rounded, " ");
            strcat(rounded, plain ? number : word);
        }
        size_t n = strcspn(want, "\n");
        assert_int_equal(strlen(rounded), n);
        assert_memory_equal(rounded, want, n);
        want += n + 1;
    }
    assert_int_equal(*want, 0);
    free(text);
}

static void scores_by_hand(void **state)
{
    (void)state;
    dgm_error err;
    dgm_phrase_options o;
    dgm_phrase_report r = {.size = sizeof r};
    dgm_phrase_default(&o);
    o.reordering = in_folder("turns.txt");
    const char *s = put_text("s", SOURCE), *t = put_text("t", TARGET), *l = put_text("l", LINKS);
    const char *out = in_folder("table.txt");
    assert_int_equal(dgm_phrase_extract(s, t, l, out, &o, &r, &err), DGM_OK);
    assert_int_equal(r.pairs, 4);
    assert_int_equal(r.extracted, 3 * 3 + 1);
    assert_int_equal(r.distinct, 7);
    assert_int_equal(r.kept, 7);
    assert_table(out, TABLE);
    assert_table(in_folder("turns.txt"), TURNS);
    // A filter: only phrases of its text.
    o.filter = put_text("f", "ein das\n");
    o.reordering = NULL;
    assert_int_equal(dgm_phrase_extract(s, t, l, out, &o, &r, &err), DGM_OK);
    assert_table(out, "das ||| the ||| 1 1 1 1 ||| 0-0\nein ||| a ||| 1 1 1 1 ||| 0-0\n");
    // Pruned and limited: translations of single words stay.
    o.filter = NULL;
    o.prune = 1;
    o.limit = 1;
    assert_int_equal(dgm_phrase_extract(s, t, l, out, &o, &r, &err), DGM_OK);
    assert_table(out, "das ||| the ||| 1 1 1 1 ||| 0-0\nein ||| a ||| 1 1 1 1 ||| 0-0\n"
                      "haus ||| house ||| 1 1 0.666667 0.666667 ||| 0-0\n");
}

// Words without links, several links: lex(t|s) is a product of means.
static void lexical_weights(void **state)
{
    (void)state;
    dgm_error err;
    dgm_phrase_options o;
    dgm_phrase_default(&o);
    const char *s = put_text("s", "a b\na\nc\n"), *t = put_text("t", "x y z\nx\ny\n");
    const char *l = put_text("l", "0-0 1-0\n0-0\n0-0\n"), *out = in_folder("lex.txt");
    assert_int_equal(dgm_phrase_extract(s, t, l, out, &o, NULL, &err), DGM_OK);
    char *text = get(out);
    // w(x|a) = 1, w(x|b) = 1, w(a|x) = 2/3, w(b|x) = 1/3, w(y|NULL) = 1/2, w(z|NULL) = 1/2.
    assert_non_null(strstr(text, "a b ||| x ||| 0.5 0.222222"));
    assert_non_null(strstr(text, "a b ||| x y z ||| 1 0.222222"));
    const char *row = strstr(text, "a b ||| x y z ||| ");
    double p[4];
    assert_int_equal(sscanf(row, "a b ||| x y z ||| %lf %lf %lf %lf", p, p + 1, p + 2, p + 3), 4);
    assert_true(fabs(p[1] - 2.0 / 9) < 1e-6 && fabs(p[2] - 1.0 / 3) < 1e-6);
    assert_true(fabs(p[3] - 0.25) < 1e-6);
    free(text);
}

// Many random pairs: the table does not depend on the memory for sorting.
static void memory_does_not_matter(void **state)
{
    (void)state;
    dgm_error err;
    dgm_phrase_options o;
    dgm_phrase_report r = {.size = sizeof r};
    dgm_phrase_default(&o);
    o.folder = folder;
    char *text[3] = {calloc(1, 1 << 20), calloc(1, 1 << 20), calloc(1, 1 << 20)};
    size_t at[3] = {0, 0, 0};
    for (int line = 0; line < 2500; line++) {
        int n = 3 + (int)random_below(8);
        for (int i = 0; i < n; i++) {
            uint32_t word = random_below(40), other = random_below(8) ? word : random_below(40);
            at[0] += (size_t)sprintf(text[0] + at[0], "s%u ", word);
            at[1] += (size_t)sprintf(text[1] + at[1], "t%u ", other);
            if (random_below(6)) at[2] += (size_t)sprintf(text[2] + at[2], "%d-%d ", i, i);
        }
        for (int k = 0; k < 3; k++) text[k][at[k]++] = '\n';
    }
    const char *s = put_text("s", text[0]), *t = put_text("t", text[1]),
               *l = put_text("l", text[2]);
    const char *a = in_folder("a.pt"), *b = in_folder("b.pt");
    assert_int_equal(dgm_phrase_extract(s, t, l, a, &o, &r, &err), DGM_OK);
    assert_int_equal(r.spilled, 0);
    assert_true(r.extracted > 20000);
    o.memory = 1 << 16;
    assert_int_equal(dgm_phrase_extract(s, t, l, b, &o, &r, &err), DGM_OK);
    assert_true(r.spilled > 0);
    dgm_mapfile x, y;
    assert_int_equal(dgm_mapfile_open(&x, a, &err), DGM_OK);
    assert_int_equal(dgm_mapfile_open(&y, b, &err), DGM_OK);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    dgm_mapfile_close(&x);
    dgm_mapfile_close(&y);
    for (int k = 0; k < 3; k++) free(text[k]);
}

// ---- tables -----------------------------------------------------------------------------------

static void tables_there_and_back(void **state)
{
    (void)state;
    dgm_error err;
    const char *text = put_text("in.txt", TABLE), *turns = put_text("inr.txt", TURNS);
    const char *pt = in_folder("x.pt"), *out = in_folder("out.txt"), *outr = in_folder("outr.txt");
    assert_int_equal(dgm_phrase_convert(text, turns, pt, NULL, 0, &err), DGM_OK);
    assert_int_equal(dgm_phrase_convert(pt, NULL, out, outr, 0, &err), DGM_OK);
    char *a = get(out), *b = get(outr);
    assert_string_equal(a, TABLE);
    assert_string_equal(b, TURNS);
    free(a);
    free(b);
    // Few values fit a codebook: nothing is lost.
    assert_int_equal(dgm_phrase_convert(text, turns, pt, NULL, 8, &err), DGM_OK);
    const char *gz = in_folder("out.gz");
    assert_int_equal(dgm_phrase_convert(pt, NULL, gz, outr, 0, &err), DGM_OK);
    assert_int_equal(dgm_phrase_convert(gz, outr, out, outr, 0, &err), DGM_OK);
    a = get(out);
    assert_string_equal(a, TABLE);
    free(a);
    assert_int_equal(dgm_phrase_convert(pt, turns, out, NULL, 0, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_phrase_convert(text, turns, pt, outr, 0, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_phrase_convert(text, NULL, out, outr, 0, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_phrase_convert(text, NULL, pt, NULL, 5, &err), DGM_ERR_ARGUMENT);
}

static void codebooks_are_near(void **state)
{
    (void)state;
    dgm_error err;
    dgm_phrase_parser *p = NULL;
    dgm_phrase_table *exact = NULL, *coded = NULL;
    assert_int_equal(dgm_phrase_parser_open(&p, &err), DGM_OK);
    for (int i = 0; i < 4000; i++) {
        char line[128];
        int n = snprintf(line, sizeof line, "w%d ||| v%d ||| %.6g %.6g 0.5 1e-9", i % 997, i,
                         (1 + i) / 4001.0, exp(-0.005 * i));
        assert_int_equal(dgm_phrase_parser_line(p, (dgm_text){line, (size_t)n}, &err), DGM_OK);
    }
    assert_int_equal(dgm_phrase_parser_finish(p, 0, &exact, &err), DGM_OK);
    assert_int_equal(dgm_phrase_parser_finish(p, 8, &coded, &err), DGM_OK);
    assert_true(coded->bytes.size + 40000 < exact->bytes.size);
    for (uint32_t i = 0; i < exact->options; i++) {
        dgm_table_option a, b;
        uint64_t x = 0, y = 0;
        dgm_phrase_table_option(exact, i, &x, &a);
        dgm_phrase_table_option(coded, i, &y, &b);
        for (int k = 0; k < 4; k++)
            assert_true(fabs(log((double)a.score[k]) - log((double)b.score[k])) < (k ? 0.05 : 2));
    }
    dgm_phrase_table_close(&exact);
    dgm_phrase_table_close(&coded);
    dgm_phrase_parser_close(&p);
}

static void bad_lines(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a", "not 'SOURCE ||| TARGET ||| SCORES'"},
        {"a ||| b", "not 'SOURCE ||| TARGET ||| SCORES'"},
        {"||| b ||| 1 1 1 1", "the source phrase is empty"},
        {"a ||| ||| 1 1 1 1", "the target phrase is empty"},
        {"a ||| b ||| 1 1 1", "3 scores instead of 4"},
        {"a ||| b ||| 1 1 1 1 1 1", "more than 5 scores"},
        {"a ||| b ||| 1 1 x 1", "'x' is not a number"},
        {"a ||| b ||| 1 nan 1 1", "'nan' is not a number"},
        {"a ||| b ||| 1 1 2 1", "2 is not a probability"},
        {"a ||| b ||| 1 1 -1 1", "-1 is not a probability"},
        {"a ||| b ||| 1 1 1 1 ||| 0-1", "'0-1' is not a link of this phrase pair"},
        {"a ||| b ||| 1 1 1 1 ||| 00", "'00' is not a link of this phrase pair"},
        {"1 2 3 4 5 6 7 8 ||| b ||| 1 1 1 1", "a phrase of more than 7 words"},
        {"k ||| l ||| 1 1 1 1", "this phrase pair is there twice"},
    };
    dgm_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dgm_phrase_parser *p = NULL;
        assert_int_equal(dgm_phrase_parser_open(&p, &err), DGM_OK);
        assert_int_equal(dgm_phrase_parser_line(p, dgm_text_of("k ||| l ||| 1 1 1 1"), &err),
                         DGM_OK);
        assert_int_equal(dgm_phrase_parser_line(p, dgm_text_of(cases[i][0]), &err), DGM_ERR_FORMAT);
        assert_string_equal(err.text, cases[i][1]);
        dgm_phrase_parser_close(&p);
    }
    dgm_phrase_parser *p = NULL;
    assert_int_equal(dgm_phrase_parser_open(&p, &err), DGM_OK);
    assert_int_equal(dgm_phrase_parser_reordering(p, dgm_text_of("a ||| b ||| 1 1 1"), &err),
                     DGM_ERR_FORMAT);
    assert_string_equal(err.text, "3 scores instead of 6 (msd-bidirectional-fe)");
    dgm_phrase_parser_close(&p);
}

// Whatever the bytes of a compact table are: an answer, or an error, never a read outside.
static void damaged_tables(void **state)
{
    (void)state;
    dgm_error err;
    dgm_phrase_parser *p = NULL;
    dgm_phrase_table *t = NULL, *again = NULL;
    assert_int_equal(dgm_phrase_parser_open(&p, &err), DGM_OK);
    const char *at = TABLE;
    while (*at) {
        size_t n = strcspn(at, "\n");
        assert_int_equal(dgm_phrase_parser_line(p, (dgm_text){at, n}, &err), DGM_OK);
        at += n + 1;
    }
    assert_int_equal(dgm_phrase_parser_finish(p, 0, &t, &err), DGM_OK);
    dgm_phrase_parser_close(&p);
    size_t size = t->bytes.size;
    for (size_t n = 0; n < size; n++) { // no shorter file is accepted
        assert_int_equal(dgm_phrase_table_open_bytes(&again, t->bytes.data, n, &err),
                         DGM_ERR_FORMAT);
        assert_null(again);
    }
    uint8_t *copy = dgm_malloc(size);
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit += 3) {
            memcpy(copy, t->bytes.data, size);
            copy[i] ^= (uint8_t)(1u << bit);
            if (dgm_phrase_table_open_bytes(&again, copy, size, &err) != DGM_OK) continue;
            for (uint32_t w = 0; w < 4; w++) {
                uint32_t key[2] = {w, (w + 3) % 4}, first;
                uint64_t word_at;
                for (int length = 1; length <= 2; length++) {
                    uint32_t n = dgm_phrase_table_find(again, key, length, &first, &word_at);
                    for (uint32_t k = 0; k < n; k++) {
                        dgm_table_option o;
                        dgm_phrase_table_option(again, first + k, &word_at, &o);
                        for (int j = 0; j < o.length; j++)
                            dgm_phrase_table_spell(again, 1, o.target[j]);
                    }
                }
                dgm_phrase_table_word(again, 0, dgm_text_of("haus"));
            }
            dgm_phrase_table_close(&again);
        }
    dgm_free(copy);
    dgm_phrase_table_close(&t);
}

static void phrase_allocations_fail(void **state)
{
    (void)state;
    dgm_error err;
    const char *s = put_text("s", SOURCE), *t = put_text("t", TARGET), *l = put_text("l", LINKS);
    const char *pt = in_folder("oom.pt"), *text = put_text("oom.txt", TABLE);
    uint64_t live = dgm_mem_live();
    for (int which = 0; which < 2; which++)
        for (uint64_t n = 1;; n++) {
            dgm_mem_inject(n, 1);
            dgm_status st = which ? dgm_phrase_convert(text, NULL, pt, NULL, 8, &err)
                                  : dgm_phrase_extract(s, t, l, pt, NULL, NULL, &err);
            dgm_mem_inject(0, 0);
            assert_int_equal(dgm_mem_live(), live);
            if (st == DGM_OK) break;
            assert_int_equal(st, DGM_ERR_MEMORY);
        }
}

int main(void)
{
    if (!scratch_open()) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extraction_follows_the_definition),
        cmocka_unit_test(extraction_refuses_bad_links),
        cmocka_unit_test(scores_by_hand),
        cmocka_unit_test(lexical_weights),
        cmocka_unit_test(memory_does_not_matter),
        cmocka_unit_test(tables_there_and_back),
        cmocka_unit_test(codebooks_are_near),
        cmocka_unit_test(bad_lines),
        cmocka_unit_test(damaged_tables),
        cmocka_unit_test(phrase_allocations_fail),
    };
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
