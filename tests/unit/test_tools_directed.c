// SPDX-License-Identifier: MIT
// Lines of several directions at once, and what goes with each: as routes, translators and re-rankers of one direction
// have them. Settings of LMBR for such lines.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/mem.h"
#include "dragoman/tools.h"
#include "format/directed.h"

#define MODEL "models/research/multilingual-small.gguf"

enum { LINES = 5 };
static const char *const lines[LINES] = {"Das ist ein Haus.", "The house is small.", "Le chien court dans le jardin.",
                                         "Der Hund läuft.", "4711"};
static const dgm_direction said[LINES] = {{"de", "en"}, {"en", "fr"}, {"fr", "en"}, {"de", "fr"}, {"en", "de"}};

static dgm_route *open_route(const dgm_route_options *options, const char *source, const char *target,
                             const dgm_settings *settings)
{
    dgm_route *r = NULL;
    dgm_route_options o;
    dgm_error error;
    dgm_route_default(&o);
    if (options) o = *options;
    if (!o.member_count) o.model = MODEL;
    o.source = source;
    o.target = target;
    o.settings = settings;
    if (dgm_route_open(&r, &o, &error) != DGM_OK) fail_msg("%s", error.text);
    return r;
}

static dgm_route *open_later(const char *source, const char *target, const dgm_settings *settings)
{
    dgm_route_options o;
    dgm_route_default(&o);
    o.direction_later = 1;
    return open_route(&o, source, target, settings);
}

static void fill(dgm_input *inputs, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dgm_input_default(&inputs[i]);
        inputs[i].text = texts[i];
        inputs[i].text_size = strlen(texts[i]);
    }
}

static dgm_results *translate(dgm_route *r, const dgm_input *inputs, size_t count)
{
    dgm_results *results = NULL;
    dgm_error error;
    if (dgm_route_translate(r, inputs, count, &results, &error) != DGM_OK) fail_msg("%s", error.text);
    return results;
}

static void same(const dgm_result *a, const dgm_result *b)
{
    assert_int_equal(a->status, DGM_OK);
    assert_int_equal(b->status, DGM_OK);
    assert_int_equal(a->count, b->count);
    for (size_t k = 0; k < a->count; k++) {
        assert_string_equal(a->translations[k]->text, b->translations[k]->text);
        assert_memory_equal(&a->translations[k]->score, &b->translations[k]->score, sizeof(float));
    }
}

static char folder[] = "/tmp/dgm_directed_XXXXXX";

static const char *put(const char *name, const char *text)
{
    static char paths[8][128];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

// ---- names -------------------------------------------------------------------------------------------

static void names_of_files(void **state)
{
    (void)state;
    assert_string_equal(dgm_directed_path("en-de=a/b.tsv"), "a/b.tsv");
    assert_string_equal(dgm_directed_path("a/b=c.tsv"), "a/b=c.tsv");
    assert_string_equal(dgm_directed_path("ende=b"), "ende=b");
    assert_string_equal(dgm_directed_path("-de=b"), "-de=b");
    assert_string_equal(dgm_directed_path("en-=b"), "en-=b");
    assert_string_equal(dgm_directed_path("en-de="), "");
    assert_null(dgm_directed_path(NULL));
    assert_int_equal(chdir(folder), 0); // a file of the whole name is meant as that
    put("en-de=b", "");
    assert_string_equal(dgm_directed_path("en-de=b"), "en-de=b");
    assert_string_equal(dgm_directed_path("en-de=c"), "c");
    const char *list = "en-de=a,b,fr-de=c,d-e=,zh-Hans-en=f";
    const char *const want[] = {"en-de=a,b", "fr-de=c", "d-e=", "zh-Hans-en=f"};
    for (int i = 0; i <= 4; i++) {
        char *item = NULL;
        assert_int_equal(dgm_directed_item(&list, &item, NULL), DGM_OK);
        if (i < 4) assert_string_equal(item, want[i]);
        else assert_null(item);
        dgm_string_free(&item);
    }
    assert_true(dgm_directed_fits("x", NULL, ""));
    assert_true(dgm_directed_fits("en-de=x", "eng_Latn", "de"));
    assert_true(dgm_directed_fits("zh-Hans-en=x", "zh-Hans", "en"));
    assert_false(dgm_directed_fits("en-de=x", "de", "en"));
    assert_false(dgm_directed_fits("en-de=x", "", "de"));
    assert_false(dgm_directed_fits("en-de=x", "en", NULL));
}

// ---- what goes with lines ----------------------------------------------------------------------------

// Lines whose language is found out, with inputs of their own, against a route of each.
static void found_as_said(const dgm_settings *s, const dgm_route_options *o, const dgm_input *inputs)
{
    static const char *const language[3] = {"de", "en", "fr"};
    dgm_route *r = open_route(o, "auto", "fr", s);
    dgm_results *mixed = translate(r, inputs, 3);
    for (int i = 0; i < 2; i++) {
        dgm_route *alone = open_route(o, language[i], "fr", s);
        dgm_results *own = translate(alone, &inputs[i], 1);
        same(mixed->items[i], own->items[0]);
        assert_string_equal(mixed->items[i]->language, language[i]);
        assert_string_equal(mixed->items[i]->source_code, "en"); // of the last step
        assert_string_equal(mixed->items[i]->target_code, "fr");
        assert_int_equal(mixed->items[i]->ngram_count, own->items[0]->ngram_count);
        dgm_results_free(&own);
        dgm_route_close(&alone);
    }
    assert_string_equal(dgm_result_text(mixed->items[2]), lines[2]); // it is French
    assert_int_equal(mixed->items[2]->flags & DGM_LINE_COPIED, DGM_LINE_COPIED);
    dgm_results_free(&mixed);
    dgm_route_close(&r);
}

static void languages_found_with_files_of_lines(void **state)
{
    (void)state;
    static const char *const words[3] = {"lattice\n0 1 -1 une maison\n0 1 -2 la vie\n1 0\n",
                                         "lattice\n0 1 -1 la maison\n0 1 -2 la petite vie\n1 0\n",
                                         "lattice\n0 1 -1 un\n1 0\n"};
    const dgm_evidence_candidate candidates[3] = {{"une maison", 10, 0}, {"la petite vie", 13, 0}, {"non", 3, 0}};
    const dgm_member members[] = {{MODEL, 1}, {MODEL, 3}};
    dgm_lattice_text lattices[3];
    dgm_evidence evidence[3];
    dgm_settings s;
    dgm_input inputs[3];
    dgm_route_options several;
    for (int i = 0; i < 3; i++) {
        lattices[i] = (dgm_lattice_text){.text = words[i], .size = strlen(words[i])};
        evidence[i] = (dgm_evidence){.size = sizeof evidence[i], .candidates = &candidates[i], .count = 1};
    }
    dgm_settings_default(&s);
    s.beam = s.nbest = 3;
    s.lattices = 1;
    s.lattice_weight = 0.5f;
    fill(inputs, lines, 3);
    for (int i = 0; i < 3; i++) inputs[i].lattice = &lattices[i];
    found_as_said(&s, NULL, inputs);
    s.lattices = 0;
    s.lattice_weight = 0;
    s.evidence = s.lmbr_ngrams = 1;
    s.lmbr.lambda = 0.05f;
    for (int i = 0; i < 3; i++) inputs[i].lattice = NULL, inputs[i].evidence = &evidence[i];
    found_as_said(&s, NULL, inputs);
    dgm_route_default(&several);
    several.members = members;
    several.member_count = 2;
    inputs[1].prefix = "Ma";
    inputs[1].prefix_size = 2;
    found_as_said(&s, &several, inputs);
}

// A line's own words come first; what they leave out is found or the route's.
static void directions_said_and_found(void **state)
{
    (void)state;
    const dgm_direction part[LINES] = {{NULL, NULL}, {"auto", "fr"}, {"", "en"}, {"de", "fr"}, {NULL, "de"}};
    dgm_settings s;
    dgm_input given[LINES], want[LINES];
    dgm_settings_default(&s);
    fill(given, lines, LINES);
    fill(want, lines, LINES);
    for (int i = 0; i < LINES; i++) {
        given[i].direction = i ? &part[i] : NULL;
        want[i].direction = &said[i];
    }
    dgm_route *found = open_later("auto", "en", &s), *plain = open_later(NULL, NULL, &s);
    dgm_results *a = translate(found, given, LINES), *b = translate(plain, want, LINES);
    static const char *const language[LINES] = {"de", "en", "fr", NULL, NULL};
    for (int i = 0; i < LINES; i++) {
        same(a->items[i], b->items[i]);
        if (language[i]) assert_string_equal(a->items[i]->language, language[i]);
        else assert_null(a->items[i]->language);
    }
    dgm_results_free(&a);
    const dgm_direction same_language = {NULL, "fr"}, unknown = {NULL, "ja"};
    given[2].direction = &same_language;
    given[3].direction = &unknown;
    a = translate(found, given, LINES);
    assert_string_equal(dgm_result_text(a->items[2]), lines[2]);
    assert_int_equal(a->failed, 1);
    assert_non_null(strstr(a->items[3]->message, "does not translate to 'ja'"));
    dgm_results_free(&a);
    dgm_results_free(&b);
    dgm_route_close(&found);
    dgm_route_close(&plain);
}

// ---- glossaries, re-rankers ----------------------------------------------------------------------------

static void glossaries_of_directions(void **state)
{
    (void)state;
    char specs[3][200];
    dgm_settings s;
    dgm_input inputs[LINES];
    snprintf(specs[0], sizeof specs[0], "de-en=%s", put("de-en.tsv", "Haus\tbuilding\nHund\thound\n"));
    snprintf(specs[1], sizeof specs[1], "en-fr=%s", put("en-fr.tsv", "house\tbâtiment\n"));
    snprintf(specs[2], sizeof specs[2], "%s",
             put("all.tbx", "<martif><text><body><termEntry><langSet xml:lang=\"de\"><tig><term>Hund</term></tig>"
                            "</langSet><langSet xml:lang=\"fr\"><tig><term>toutou</term></tig></langSet></termEntry>"
                            "</body></text></martif>"));
    dgm_settings_default(&s);
    for (int i = 0; i < 3; i++) s.terms[i] = specs[i];
    // Columns of two languages are no terms of others.
    s.terms[3] = put("columns.tsv", "es\tit\nDas\tqui\nThe\tqui\nLe\tqui\nDer\tqui\n");
    dgm_route *r = open_later(NULL, NULL, &s);
    fill(inputs, lines, LINES);
    for (int i = 0; i < LINES; i++) inputs[i].direction = &said[i];
    dgm_results *mixed = translate(r, inputs, LINES);
    static const int own[LINES] = {0, 1, -1, 2, -1}; // which glossary has something for the line
    static const char *const words[LINES] = {"building", "bâtiment", NULL, "toutou", NULL};
    for (int i = 0; i < LINES; i++) {
        dgm_settings alone = s;
        memset(alone.terms, 0, sizeof alone.terms);
        assert_null(strstr(dgm_result_text(mixed->items[i]), "qui"));
        if (own[i] >= 0) alone.terms[0] = specs[own[i]];
        dgm_route *one = open_route(NULL, said[i].source, said[i].target, &alone);
        inputs[i].direction = NULL;
        dgm_results *result = translate(one, &inputs[i], 1);
        same(mixed->items[i], result->items[0]);
        if (words[i]) assert_non_null(strstr(dgm_result_text(mixed->items[i]), words[i]));
        dgm_results_free(&result);
        dgm_route_close(&one);
    }
    dgm_results_free(&mixed);
    dgm_route_close(&r);
}

static void bad_glossaries(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_translator *t = NULL;
    dgm_error error;
    char spec[200];
    dgm_settings_default(&s);
    s.source = "en";
    s.target = "de";
    s.terms[0] = "en-de=/no/such/file.tsv";
    assert_int_not_equal(dgm_open(&t, MODEL, &s, &error), DGM_OK);
    assert_non_null(strstr(error.text, "'/no/such/file.tsv'"));
    // What is wrong with a file of another direction is said by lines in that alone.
    snprintf(spec, sizeof spec, "en-fr=%s", put("one.tsv", "house\n"));
    s.terms[0] = spec;
    s.direction_later = 1;
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_OK);
    const dgm_direction both[2] = {{"en", "fr"}, {"en", "de"}};
    dgm_input inputs[2];
    dgm_results *results = NULL;
    const char *const twice[2] = {lines[1], lines[1]};
    fill(inputs, twice, 2);
    inputs[0].direction = &both[0];
    inputs[1].direction = &both[1];
    assert_int_equal(dgm_translate_inputs(t, inputs, 2, &results, &error), DGM_OK);
    assert_int_equal(results->failed, 1);
    assert_non_null(strstr(results->items[0]->message, "one.tsv: line 1: one column"));
    dgm_results_free(&results);
    dgm_close(&t);
}

static void rerankers_of_directions(void **state)
{
    (void)state;
    dgm_settings s, own;
    dgm_input inputs[LINES];
    dgm_line sources[LINES];
    dgm_translator *many = NULL;
    dgm_error error;
    dgm_settings_default(&s);
    dgm_settings_default(&own);
    own.direction_later = 1;
    s.beam = s.nbest = 4;
    s.exact_scores = 1;
    assert_int_equal(dgm_open(&many, MODEL, &own, &error), DGM_OK);
    dgm_route *r = open_later(NULL, NULL, &s);
    fill(inputs, lines, LINES);
    for (int i = 0; i < LINES; i++) {
        inputs[i].direction = &said[i];
        sources[i] = (dgm_line){lines[i], strlen(lines[i])};
    }
    for (int which = 0; which < 2; which++) {
        dgm_reranker one = {.size = sizeof one, .translator = many, .weight = 2, .directed = 1};
        if (which) one.direction = "de-en";
        dgm_results *mixed = translate(r, inputs, LINES);
        assert_int_equal(dgm_rerank_by(&one, 1, sources, mixed, &error), DGM_OK);
        for (int i = 0; i < LINES; i++) {
            dgm_results *alone = translate(r, &inputs[i], 1);
            dgm_translator *t = NULL;
            own.direction_later = 0;
            own.source = i == 3 ? "en" : said[i].source; // the last of two steps
            own.target = said[i].target;
            assert_int_equal(dgm_open(&t, MODEL, &own, &error), DGM_OK);
            if (!which || i == 0) assert_int_equal(dgm_rerank(t, 2, &sources[i], alone, &error), DGM_OK);
            same(mixed->items[i], alone->items[0]);
            dgm_results_free(&alone);
            dgm_close(&t);
        }
        dgm_results_free(&mixed);
    }
    dgm_route_close(&r);
    dgm_close(&many);
}

// ---- settings of LMBR ----------------------------------------------------------------------------------

typedef struct heard {
    int trials, known, most;
    dgm_lmbr_trial all[200];
} heard;

static int hear(void *cookie, const dgm_lmbr_trial *x)
{
    heard *h = cookie;
    if (x->number == 0) return 0;
    h->known += x->seconds == 0;
    h->all[h->trials++] = *x;
    return h->trials == h->most;
}

static void settings_of_lines_in_directions(void **state)
{
    (void)state;
    static const char *const wanted[LINES] = {"This is a house.", "La maison est petite.",
                                              "The dog runs in the garden.", "Le chien court.", "4711"};
    dgm_evidence_candidate candidates[LINES];
    dgm_evidence evidence[LINES];
    dgm_line references[LINES];
    dgm_settings s;
    dgm_input inputs[LINES];
    dgm_error error;
    dgm_lmbr weights, again;
    double bleu = 0, second = 0;
    fill(inputs, lines, LINES);
    for (int i = 0; i < LINES; i++) {
        references[i] = (dgm_line){wanted[i], strlen(wanted[i])};
        candidates[i] = (dgm_evidence_candidate){wanted[i], strlen(wanted[i]), 0};
        evidence[i] = (dgm_evidence){.size = sizeof evidence[i], .candidates = &candidates[i], .count = 1};
        inputs[i].direction = &said[i];
        inputs[i].evidence = &evidence[i];
    }
    dgm_settings_default(&s);
    s.evidence = 1;
    dgm_route *r = open_later(NULL, NULL, &s), *plain = open_later(NULL, NULL, NULL);
    heard *all = calloc(1, sizeof *all), *rest = calloc(1, sizeof *rest);
    dgm_lmbr_tune_options o;
    dgm_lmbr_tune_default(&o);
    o.trial = hear;
    o.cookie = all;
    o.start.lambda = 0.02f;
    assert_int_equal(dgm_lmbr_tune_route(r, inputs, references, LINES, &o, &weights, &bleu, &error), DGM_OK);
    assert_true(all->trials > 10 && all->known == 0 && bleu > 0);
    // The BLEU that was said is that of lines which are translated so.
    dgm_line system[LINES];
    const dgm_line *const systems[1] = {system}, *const references_list[1] = {references};
    dgm_eval_score score = {.size = sizeof score};
    dgm_eval_options eval;
    dgm_eval_default(&eval);
    assert_int_equal(dgm_route_lmbr_set(r, &weights, &error), DGM_OK);
    dgm_results *results = translate(r, inputs, LINES);
    for (int i = 0; i < LINES; i++) {
        const char *text = dgm_result_text(results->items[i]);
        system[i] = (dgm_line){text, strlen(text)};
    }
    assert_int_equal(dgm_evaluate(&eval, systems, 1, references_list, 1, LINES, &score, NULL, &error), DGM_OK);
    assert_true(score.score == bleu);
    dgm_results_free(&results);
    // An interrupted call goes on where it was: nothing is made twice, and the end is the same.
    const int half = all->trials / 2;
    o.cookie = rest;
    o.known = all->all;
    o.known_count = (size_t)half;
    assert_int_equal(dgm_lmbr_tune_route(r, inputs, references, LINES, &o, &again, &second, &error), DGM_OK);
    assert_int_equal(rest->known, half);
    assert_int_equal(rest->trials, all->trials);
    assert_memory_equal(&again, &weights, sizeof weights);
    assert_true(second == bleu);
    // What is known is believed.
    all->all[0].bleu = 200;
    o.known_count = 1;
    memset(rest, 0, sizeof *rest);
    assert_int_equal(dgm_lmbr_tune_route(r, inputs, references, LINES, &o, &again, &second, &error), DGM_OK);
    assert_true(second == 200 && again.lambda == 0.02f);
    // Thetas that are given are not touched, and p and r are not looked at.
    memset(rest, 0, sizeof *rest);
    o.known_count = 0;
    o.start.use_thetas = 1;
    o.start.thetas[1] = 2;
    assert_int_equal(dgm_lmbr_tune_route(r, inputs, references, LINES, &o, &again, &second, &error), DGM_OK);
    for (int i = 1; i < rest->trials; i++) assert_true(rest->all[i].weights.p == rest->all[0].weights.p);
    assert_true(again.use_thetas && again.thetas[1] == 2);
    memset(rest, 0, sizeof *rest);
    rest->most = 2;
    assert_int_equal(dgm_lmbr_tune_route(r, inputs, references, LINES, &o, &again, &second, &error), DGM_ERR_CANCELLED);
    o.trial = NULL;
    assert_int_equal(dgm_lmbr_tune_route(plain, inputs, references, LINES, &o, &again, NULL, &error), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_route_lmbr_set(plain, &weights, &error), DGM_ERR_ARGUMENT);
    free(all);
    free(rest);
    dgm_route_close(&r);
    dgm_route_close(&plain);
}

// ---- memory ---------------------------------------------------------------------------------------------

static void allocations_may_fail(void **state)
{
    (void)state;
    char spec[200];
    dgm_settings s;
    dgm_input inputs[LINES];
    snprintf(spec, sizeof spec, "de-en=%s", put("few.tsv", "Haus\tbuilding\n"));
    dgm_settings_default(&s);
    s.terms[0] = spec;
    fill(inputs, lines, LINES);
    const dgm_direction into = {NULL, "fr"};
    inputs[1].direction = inputs[3].direction = &into;
    bool fine = false;
    for (uint64_t n = 1; !fine; n++) { // a route each time: glossaries are made once
        const uint64_t live = dgm_mem_live();
        dgm_route *r = open_later("auto", "en", &s);
        dgm_results *results = NULL;
        dgm_error error;
        dgm_mem_inject(n, 1);
        const dgm_status st = dgm_route_translate(r, inputs, LINES, &results, &error);
        dgm_mem_inject(0, 0);
        fine = st == DGM_OK && results->failed == 0 && n > 60;
        if (st != DGM_OK) assert_int_equal(st, DGM_ERR_MEMORY);
        dgm_results_free(&results);
        dgm_route_close(&r);
        assert_int_equal(dgm_mem_live(), live);
        if (n > 60) n += 20;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(languages_found_with_files_of_lines),
        cmocka_unit_test(directions_said_and_found),
        cmocka_unit_test(glossaries_of_directions),
        cmocka_unit_test(bad_glossaries),
        cmocka_unit_test(rerankers_of_directions),
        cmocka_unit_test(settings_of_lines_in_directions),
        cmocka_unit_test(allocations_may_fail),
        cmocka_unit_test(names_of_files), // changes the folder
    };
    if (!mkdtemp(folder)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 || failed;
}
