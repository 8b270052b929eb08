// SPDX-License-Identifier: MIT
// A phrase-based system that steers the search: in one step what the way by files gives in two, byte for
// byte, for lists and lattices, every search, batch and number of threads, of words, of text and of
// subwords; empty, long and broken lines; whose evidence counts; refusals; every allocation failing.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "dragoman/tools.h"
#include "engine.h"
#include "scratch.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"
#define DATA "tests/data/phrase/"

static const char *const texts[] = {"der mann sieht ein kleines rotes haus",
                                    "",
                                    "heute sieht der mann ein rotes haus nicht mehr",
                                    "  ein haus ",
                                    "der fremde mann, (nicht) heute.",
                                    "mehr",
                                    "   ",
                                    "haus haus haus der mann der mann sieht sieht nicht nicht mehr"};
enum { TEXTS = sizeof texts / sizeof *texts };

static const char *words_system, *text_system, *piece_system;

static const char *describe(const char *name, const char *more)
{
    char *here = realpath(DATA, NULL), text[2048];
    assert_non_null(here);
    snprintf(text, sizeof text,
             "table = %s/fifty.txt\nreordering = %s/fifty.reordering.txt\nlm = %s/fifty.arpa\n%s", here,
             here, here, more);
    free(here);
    return strdup(put_text(name, text));
}

// Words, text, and subwords of the model.
static int set_up(void **state)
{
    (void)state;
    char *model = realpath(MODEL, NULL), text[1024];
    assert_non_null(model);
    words_system = describe("words.phrases", "");
    text_system = describe("text.phrases", "source = xx\ntarget = yy\ntokenize = de\ndetokenize = en\n"
                                           "pops = 50\nlattice-beam = 0.4\n");
    put_text("pieces.txt", "\u2581haus ||| \u2581haus ||| 1 1 0.5 0.5\n\u2581haus ||| \u2581zum s ||| 1 1 0.5 0.5\n"
                           "\u2581ein ||| \u2581da s ||| 1 1 1 1\n");
    char *here = realpath(DATA "fifty.arpa", NULL);
    assert_non_null(here);
    snprintf(text, sizeof text, "table = pieces.txt\nlm = %s\nsubwords = %s\ndistortion-limit = 1\n",
             here, model);
    piece_system = strdup(put_text("pieces.phrases", text));
    free(here);
    free(model);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free((char *)(uintptr_t)words_system);
    free((char *)(uintptr_t)text_system);
    free((char *)(uintptr_t)piece_system);
    return 0;
}

static char *translate(const dgm_settings *s, dgm_input *inputs, size_t count)
{
    dgm_translator *t = open_with(s, MODEL);
    dgm_results *r = NULL;
    dgm_error error;
    for (size_t i = 0; i < count; i++) inputs[i].size = sizeof *inputs;
    if (dgm_translate_inputs(t, inputs, count, &r, &error) != DGM_OK) fail_msg("%s", error.text);
    assert_int_equal(r->failed, 0);
    char *all = results_text(r, true);
    dgm_results_free(&r);
    dgm_close(&t);
    return all;
}

static void fill_inputs(dgm_input *inputs)
{
    memset(inputs, 0, TEXTS * sizeof *inputs);
    for (int i = 0; i < TEXTS; i++) {
        inputs[i].text = texts[i];
        inputs[i].text_size = strlen(texts[i]);
    }
}

// ---- the way by files --------------------------------------------------------------------------

typedef struct writing {
    FILE *list, *lattices;
    int line;
} writing;

static int write_line(void *cookie, const dgm_phrasal_result *r)
{
    writing *w = cookie;
    for (size_t i = 0; i < r->count; i++)
        fprintf(w->list, "%d ||| %.*s ||| F0= 0 ||| %.9g\n", w->line, (int)r->items[i]->text.size,
                r->items[i]->text.data, r->items[i]->score);
    fwrite(r->lattice.data, 1, r->lattice.size, w->lattices);
    w->line++;
    return 0;
}

static void write_files(const char *system, int nbest)
{
    dgm_phrasal_file *file = NULL;
    dgm_phrasal_options o;
    dgm_phrasal *p = NULL;
    dgm_error error;
    dgm_line lines[TEXTS];
    writing w = {fopen(in_folder("list"), "w"), fopen(in_folder("lattices"), "w"), 0};
    assert_true(w.list && w.lattices);
    for (int i = 0; i < TEXTS; i++) lines[i] = (dgm_line){texts[i], strlen(texts[i])};
    assert_int_equal(dgm_phrasal_file_open(&file, system, &error), DGM_OK);
    dgm_phrasal_file_options(file, &o);
    o.nbest = nbest;
    o.distinct = o.lattice = 1;
    if (dgm_phrasal_open(&p, &o, &error) != DGM_OK) fail_msg("%s", error.text);
    assert_int_equal(dgm_phrasal_translate(p, lines, TEXTS, 0, write_line, &w, &error), DGM_OK);
    dgm_phrasal_close(&p);
    dgm_phrasal_file_close(&file);
    fclose(w.list);
    fclose(w.lattices);
}

// A line's evidence is borrowed: each is translated by itself.
static char *by_file(const dgm_settings *s, const char *name)
{
    dgm_settings own = *s;
    dgm_evidence_file *file = NULL;
    dgm_error error;
    char *all = NULL;
    own.phrase_system = NULL;
    own.evidence = 1;
    dgm_translator *t = open_with(&own, MODEL);
    assert_int_equal(dgm_evidence_open(&file, in_folder(name), NULL, &error), DGM_OK);
    for (int i = 0; i < TEXTS; i++) {
        dgm_evidence e;
        dgm_results *r = NULL;
        if (dgm_evidence_next(file, (uint64_t)i, &e, &error) != DGM_OK) fail_msg("%s", error.text);
        const dgm_input in = {.size = sizeof in,
                              .text = texts[i],
                              .text_size = strlen(texts[i]),
                              .evidence = &e};
        assert_int_equal(dgm_translate_inputs(t, &in, 1, &r, &error), DGM_OK);
        if (r->failed) fail_msg("%s: %s", texts[i], r->items[0]->message);
        char *line = results_text(r, true);
        line[strlen(line) - 1] = 0; // append_line ends it
        append_line(&all, line);
        free(line);
        dgm_results_free(&r);
    }
    dgm_evidence_close(&file);
    dgm_close(&t);
    return all;
}

static void same_as_files(dgm_settings *s)
{
    dgm_input inputs[TEXTS];
    fill_inputs(inputs);
    for (int lattice = 0; lattice < 2; lattice++) {
        s->evidence_kind = lattice ? "lattice" : NULL;
        char *want = by_file(s, lattice ? "lattices" : "list");
        char *got = translate(s, inputs, TEXTS);
        assert_string_equal(got, want);
        free(got);
        free(want);
    }
}

static void test_files(void **state)
{
    (void)state;
    static const char *const searches[] = {"greedy", "beam", "cube"};
    const char *const systems[] = {words_system, text_system, piece_system};
    dgm_settings s;
    dgm_settings_default(&s);
    s.max_length = 12;
    s.lmbr.t = 1;
    s.lmbr.scale = 0.5f;
    for (int k = 0; k < 3; k++) {
        s.phrase_system = systems[k];
        s.evidence_nbest = 1 + 20 * k;
        write_files(systems[k], s.evidence_nbest);
        for (int n = 0; n < 3; n++) {
            s.search = searches[n];
            s.nbest = n ? 3 : 1;
            same_as_files(&s);
        }
        s.search = NULL;
        s.max_source = 9; // the longer ones are split, and each piece sees all of the evidence
        same_as_files(&s);
        s.max_source = 0;
    }
}

// It does something, and says how much.
static void test_counts(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_input inputs[TEXTS];
    dgm_counters c;
    dgm_results *r = NULL;
    fill_inputs(inputs);
    dgm_settings_default(&s);
    s.max_length = 12;
    s.lmbr.t = 1;
    char *plain = translate(&s, inputs, TEXTS);
    s.phrase_system = text_system;
    char *steered = translate(&s, inputs, TEXTS);
    assert_string_not_equal(plain, steered);
    free(plain);
    free(steered);
    dgm_translator *t = open_with(&s, MODEL);
    assert_int_equal(dgm_translate(t, texts, TEXTS, &r, NULL), DGM_OK);
    dgm_count(t, &c);
    assert_int_equal(c.evidence_decoded, TEXTS - 2); // nobody asks about empty lines
    assert_int_equal(c.evidence_lines, TEXTS - 2);
    assert_true(c.evidence_decode_seconds > 0);
    dgm_results_free(&r);
    dgm_close(&t);
}

static void test_batches(void **state)
{
    (void)state;
    dgm_input inputs[TEXTS];
    fill_inputs(inputs);
    for (int lattice = 0; lattice < 2; lattice++) {
        char *first = NULL;
        for (int threads = 1; threads <= 3; threads++)
            for (int batch = 1; batch <= 7; batch += 6) {
                dgm_settings s;
                dgm_settings_default(&s);
                s.phrase_system = text_system;
                s.evidence_kind = lattice ? "lattice" : "nbest";
                s.nbest = 4;
                s.max_length = 12;
                s.batch = batch;
                s.threads = threads;
                char *all = translate(&s, inputs, TEXTS);
                if (first) assert_string_equal(first, all);
                if (first)
                    free(all);
                else
                    first = all;
            }
        free(first);
    }
}

// ---- whose evidence counts ---------------------------------------------------------------------

typedef struct kept {
    dgm_evidence evidence[TEXTS];
    dgm_evidence_candidate *candidates[TEXTS];
    char *texts[TEXTS];
    int count;
} kept;

static int keep(void *cookie, const dgm_evidence *e)
{
    kept *k = cookie;
    size_t size = e->lattice_size, at = 0;
    for (size_t i = 0; i < e->count; i++) size += e->candidates[i].size;
    char *text = k->texts[k->count] = malloc(size + 1);
    dgm_evidence_candidate *c = k->candidates[k->count] = malloc((e->count + 1) * sizeof *c);
    assert_true(text && c);
    if (e->lattice) memcpy(text, e->lattice, e->lattice_size);
    for (size_t i = 0; i < e->count; i++) {
        c[i] = e->candidates[i];
        memcpy(text + at, c[i].text, c[i].size);
        c[i].text = text + at;
        at += c[i].size;
    }
    k->evidence[k->count++] = (dgm_evidence){.size = sizeof(dgm_evidence),
                                             .candidates = c,
                                             .count = e->count,
                                             .lattice = e->lattice ? text : NULL,
                                             .lattice_size = e->lattice_size};
    return 0;
}

static void forget(kept *k)
{
    for (int i = 0; i < k->count; i++) {
        free(k->candidates[i]);
        free(k->texts[i]);
    }
    k->count = 0;
}

static int stop(void *cookie, const dgm_evidence *e)
{
    (void)e;
    return ++*(int *)cookie == 2;
}

// What the system says, given to the lines, steers them as it does itself.
static void test_decode(void **state)
{
    (void)state;
    static kept k;
    dgm_line lines[TEXTS];
    dgm_input inputs[TEXTS];
    dgm_settings s;
    dgm_error error;
    int calls = 0;
    for (int i = 0; i < TEXTS; i++) lines[i] = (dgm_line){texts[i], strlen(texts[i])};
    fill_inputs(inputs);
    dgm_settings_default(&s);
    s.max_length = 12;
    s.threads = 2;
    dgm_translator *t = open_with(&s, MODEL);
    assert_int_equal(dgm_evidence_decode(t, lines, 1, 0, keep, &k, &error), DGM_ERR_ARGUMENT);
    dgm_close(&t);
    for (int lattice = 0; lattice < 2; lattice++) {
        s.phrase_system = text_system;
        s.evidence_kind = lattice ? "lattice" : NULL;
        s.evidence = 0;
        fill_inputs(inputs);
        char *want = translate(&s, inputs, TEXTS);
        t = open_with(&s, MODEL);
        if (dgm_evidence_decode(t, lines, TEXTS, 0, keep, &k, &error) != DGM_OK)
            fail_msg("%s", error.text);
        assert_int_equal(k.count, TEXTS);
        s.phrase_system = NULL;
        s.evidence = 1;
        for (int i = 0; i < TEXTS; i++) {
            assert_int_equal(k.evidence[i].lattice != NULL, lattice && i != 1 && i != 6);
            inputs[i].evidence = &k.evidence[i];
        }
        char *got = translate(&s, inputs, TEXTS);
        assert_string_equal(got, want);
        free(got);
        free(want);
        forget(&k);
        assert_int_equal(dgm_evidence_decode(t, lines, TEXTS, 1, keep, &k, &error), DGM_OK);
        assert_true(lattice ? k.evidence[0].count == 1 : k.evidence[0].count > 1);
        assert_null(k.evidence[0].lattice);
        forget(&k);
        calls = 0;
        assert_int_equal(dgm_evidence_decode(t, lines, TEXTS, 0, stop, &calls, &error),
                         DGM_ERR_CANCELLED);
        assert_int_equal(calls, 2);
        dgm_close(&t);
    }
}

// A line's own evidence goes first; where it says nothing the system is asked.
typedef struct heard {
    int trials, stop_at;
    double best, own;
} heard;

static int hear(void *cookie, const dgm_lmbr_trial *x)
{
    heard *h = cookie;
    if (x->number == 0) h->own = x->bleu;
    if (x->number == 0) return 0;
    h->trials = x->number;
    if (x->bleu > h->best) h->best = x->bleu;
    return h->stop_at && x->number >= h->stop_at;
}

// Weights that dgm_lmbr_tune finds are the best of its trials, the same whether it asks the system or is told.
static void test_tune_weights(void **state)
{
    (void)state;
    static kept k;
    dgm_line lines[TEXTS];
    dgm_input inputs[TEXTS];
    dgm_settings s;
    dgm_error error = {""};
    for (int i = 0; i < TEXTS; i++) lines[i] = (dgm_line){texts[i], strlen(texts[i])};
    fill_inputs(inputs);
    for (int i = 0; i < TEXTS; i++) inputs[i].size = sizeof *inputs;
    dgm_settings_default(&s);
    s.max_length = 12;
    s.phrase_system = text_system;
    dgm_translator *t = open_with(&s, MODEL);
    assert_int_equal(dgm_evidence_decode(t, lines, TEXTS, 0, keep, &k, &error), DGM_OK);
    dgm_line refs[TEXTS]; // what the system itself says
    for (int i = 0; i < TEXTS; i++) {
        const dgm_evidence_candidate *c = k.evidence[i].count ? &k.evidence[i].candidates[0] : NULL;
        refs[i] = c ? (dgm_line){c->text, c->size} : lines[i];
    }
    dgm_lmbr_tune_options o;
    dgm_lmbr found[2];
    double bleu[2] = {0};
    heard h = {0};
    dgm_lmbr_tune_default(&o);
    o.cookie = &h;
    o.trial = hear;
    for (int told = 0; told < 2; told++) {
        h = (heard){.best = -1};
        for (int i = 0; told && i < TEXTS; i++) inputs[i].evidence = &k.evidence[i];
        if (dgm_lmbr_tune(t, inputs, refs, TEXTS, &o, &found[told], &bleu[told], &error) != DGM_OK)
            fail_msg("%s", error.text);
        assert_true(h.trials > 5 && h.own > 0);
        assert_true(bleu[told] <= h.best && bleu[told] > h.best - 0.05); // a step must bring a little
    }
    assert_memory_equal(&found[0], &found[1], sizeof found[0]);
    o.seconds = 1e-9; // one trial there is always
    h = (heard){0};
    assert_int_equal(dgm_lmbr_tune(t, inputs, refs, TEXTS, &o, &found[0], NULL, &error), DGM_OK);
    assert_int_equal(h.trials, 1);
    o.seconds = 0;
    h = (heard){.stop_at = 2};
    assert_int_equal(dgm_lmbr_tune(t, inputs, refs, TEXTS, &o, &found[0], NULL, &error), DGM_ERR_CANCELLED);
    assert_int_equal(dgm_lmbr_tune(t, inputs, refs, 0, &o, &found[0], NULL, &error), DGM_ERR_ARGUMENT);
    forget(&k);
    dgm_close(&t);
}

static void test_own_evidence(void **state)
{
    (void)state;
    static const dgm_evidence_candidate word = {"zum", 3, 0};
    const dgm_evidence own = {.size = sizeof own, .candidates = &word, .count = 1};
    const dgm_evidence nothing = {.size = sizeof nothing};
    dgm_input inputs[3] = {{.text = texts[0], .text_size = strlen(texts[0])}};
    inputs[1] = inputs[2] = inputs[0];
    inputs[1].evidence = &own;
    inputs[2].evidence = &nothing;
    dgm_settings s;
    dgm_settings_default(&s);
    s.max_length = 12;
    s.lmbr.lambda = 0.01f;
    s.phrase_system = words_system;
    dgm_translator *t = open_with(&s, MODEL);
    dgm_results *r = NULL;
    for (int i = 0; i < 3; i++) inputs[i].size = sizeof *inputs;
    assert_int_equal(dgm_translate_inputs(t, inputs, 3, &r, NULL), DGM_OK);
    assert_string_equal(dgm_result_text(r->items[1]), "zum");
    assert_string_not_equal(dgm_result_text(r->items[0]), "zum");
    assert_string_equal(dgm_result_text(r->items[0]), dgm_result_text(r->items[2]));
    dgm_results_free(&r);
    dgm_close(&t);
}

// ---- what goes wrong ---------------------------------------------------------------------------

static void refused(const char *system, dgm_status status, const char *words)
{
    dgm_settings s;
    dgm_error error = {{0}};
    dgm_translator *t = NULL;
    dgm_settings_default(&s);
    s.phrase_system = system;
    const dgm_status st = dgm_open(&t, MODEL, &s, &error);
    if (st != status || !strstr(error.text, words)) fail_msg("%d: '%s', not '%s'", st, error.text, words);
    assert_null(t);
    assert_null(strchr(error.text, '\n'));
}

static void test_refusals(void **state)
{
    (void)state;
    char bad[512];
    refused("nowhere.phrases", DGM_ERR_IO, "nowhere.phrases");
    refused(MODEL, DGM_ERR_FORMAT, "pieces.gguf:1: not");
    const char *system = describe("languages.phrases", "target = fr\n");
    refused(system, DGM_ERR_ARGUMENT,
            "languages.phrases: the phrase-based system translates into 'fr', the model into 'yy'");
    free((char *)(uintptr_t)system);
    system = describe("rules.phrases", "tokenize = de\n");
    refused(system, DGM_ERR_ARGUMENT, "translates from 'de', the model from 'xx'");
    free((char *)(uintptr_t)system);
    system = describe("mixed.phrases", "source = xx\ntokenize = de\nsubwords = nothing.gguf\n");
    refused(system, DGM_ERR_IO, "nothing.gguf");
    free((char *)(uintptr_t)system);
    // A table that was cut.
    assert_int_equal(dgm_phrase_convert(DATA "fifty.txt", NULL, in_folder("whole.pt"), NULL, 0, NULL),
                     DGM_OK);
    char *whole = get(in_folder("whole.pt"));
    put("cut.pt", whole, 200);
    free(whole);
    char *lm = realpath(DATA "fifty.arpa", NULL);
    snprintf(bad, sizeof bad, "table = cut.pt\nlm = %s\n", lm);
    free(lm);
    refused(put_text("cut.phrases", bad), DGM_ERR_FORMAT, "cut.pt: the file is shorter");
    // Settings outside their ranges.
    dgm_settings s;
    dgm_error error;
    dgm_translator *t = NULL;
    dgm_settings_default(&s);
    s.phrase_system = words_system;
    s.evidence_kind = "both";
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_ERR_ARGUMENT);
    s.evidence_kind = NULL;
    s.evidence_nbest = 0;
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_ERR_ARGUMENT);
    s.evidence_nbest = 1;
    s.lmbr.p = 0;
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_ERR_ARGUMENT);
}

// Bytes that are no text are repaired before the system sees them; what is too long for it fails alone.
static void test_odd_lines(void **state)
{
    (void)state;
    enum { WORDS = 100001 };
    char *many = malloc(2 * WORDS + 1);
    assert_non_null(many);
    for (int i = 0; i < WORDS; i++) memcpy(many + 2 * i, "a ", 3);
    const char *const odd[] = {"der \377 mann", many, "haus"};
    dgm_settings s;
    dgm_results *r = NULL;
    dgm_settings_default(&s);
    s.max_length = 4;
    s.long_lines = DGM_LONG_CROP;
    s.phrase_system = words_system;
    dgm_translator *t = open_with(&s, MODEL);
    assert_int_equal(dgm_translate(t, odd, 3, &r, NULL), DGM_OK);
    assert_int_equal(r->items[0]->status, DGM_OK);
    assert_int_equal(r->items[1]->status, DGM_ERR_TEXT);
    assert_string_equal(r->items[1]->message,
                        "phrase-based system: the line has 100001 words; at most 100000 are allowed");
    assert_int_equal(r->items[2]->status, DGM_OK);
    dgm_results_free(&r);
    dgm_close(&t);
    free(many);
}

static void open_without_memory(const dgm_settings *s)
{
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        dgm_translator *t = NULL;
        const uint64_t closed = dgm_mem_live();
        dgm_mem_inject(n, 1);
        const dgm_status st = dgm_open(&t, MODEL, s, NULL);
        dgm_mem_inject(0, 0);
        done = st == DGM_OK;
        assert_true(done || st == DGM_ERR_MEMORY);
        dgm_close(&t);
        assert_int_equal(dgm_mem_live(), closed);
    }
}

// Opening: the call fails, out of memory. Translating: the call or the line. (test_phrase_decode has the
// system by itself.)
static void test_out_of_memory(void **state)
{
    (void)state;
    const char *const two[] = {"ein haus", "haus"};
    dgm_settings s;
    dgm_settings_default(&s);
    s.max_length = 4;
    s.phrase_system = piece_system;
    s.evidence_nbest = 3;
    open_without_memory(&s);
    for (int lattice = 0; lattice < 2; lattice++) {
        bool done = false;
        dgm_results *r = NULL;
        s.evidence_kind = lattice ? "lattice" : NULL;
        dgm_translator *t = open_with(&s, MODEL);
        assert_int_equal(dgm_translate(t, two, 2, &r, NULL), DGM_OK); // buffers that are kept
        dgm_results_free(&r);
        for (uint64_t n = 1; !done; n++) {
            dgm_mem_inject(n, 1);
            const dgm_status st = dgm_translate(t, two, 2, &r, NULL);
            dgm_mem_inject(0, 0);
            assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
            done = st == DGM_OK && r->failed == 0;
            for (size_t i = 0; st == DGM_OK && i < 2; i++)
                assert_true(r->items[i]->status == DGM_OK || r->items[i]->status == DGM_ERR_MEMORY);
            dgm_results_free(&r);
        }
        dgm_close(&t);
    }
}

int main(void)
{
    if (!scratch_open()) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_batches),      cmocka_unit_test(test_decode),
        cmocka_unit_test(test_tune_weights),
        cmocka_unit_test(test_own_evidence), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_odd_lines),    cmocka_unit_test(test_out_of_memory),
    };
    return scratch_close(cmocka_run_group_tests(tests, set_up, tear_down));
}
