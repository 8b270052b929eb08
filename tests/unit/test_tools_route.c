// SPDX-License-Identifier: MIT
// Routes: which there are, through a third language as by hand, languages found out line by line, what is refused.
#define _GNU_SOURCE
#include <math.h>
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

#define MODEL "models/research/multilingual-small.gguf"

static const char *const german[] = {"Das ist ein Haus.", "Ein Mann fährt mit dem Rad durch die Stadt.", "",
                                     "Guten Morgen!"};
enum { GERMAN = sizeof german / sizeof *german };

static dgm_route *open_route(const char *source, const char *target, int pivot_nbest, const dgm_settings *settings)
{
    dgm_route *r = NULL;
    dgm_route_options o;
    dgm_error error;
    dgm_route_default(&o);
    o.source = source;
    o.target = target;
    o.model = MODEL;
    o.pivot_nbest = pivot_nbest;
    o.settings = settings;
    if (dgm_route_open(&r, &o, &error) != DGM_OK) fail_msg("%s", error.text);
    return r;
}

static dgm_translator *open_step(const char *source, const char *target, const dgm_settings *settings)
{
    dgm_translator *t = NULL;
    dgm_settings s = *settings;
    dgm_error error;
    s.source = source;
    s.target = target;
    if (dgm_open(&t, MODEL, &s, &error) != DGM_OK) fail_msg("%s", error.text);
    return t;
}

static void fill(dgm_input *inputs, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dgm_input_default(&inputs[i]);
        inputs[i].text = texts[i];
        inputs[i].text_size = strlen(texts[i]);
    }
}

static dgm_results *through(dgm_route *r, const char *const *texts, size_t count)
{
    dgm_input inputs[16];
    dgm_results *results = NULL;
    dgm_error error;
    fill(inputs, texts, count);
    if (dgm_route_translate(r, inputs, count, &results, &error) != DGM_OK) fail_msg("%s", error.text);
    assert_int_equal(results->count, count);
    return results;
}

static bool is_linked(const dgm_translation *t, int source, int target)
{
    for (size_t i = 0; i < t->link_count; i++)
        if (t->links[i].source == source && t->links[i].target == target) return true;
    return false;
}

static void there_are_directions(void **state)
{
    (void)state;
    dgm_route_list *list = NULL;
    char *languages = NULL;
    dgm_error error;
    setenv("DRAGOMAN_MODEL", MODEL, 1);
    assert_int_equal(dgm_routes_find(&list, &error), DGM_OK);
    size_t direct = 0, pivots = 0;
    for (size_t i = 0; i < list->count; i++) {
        const dgm_route_entry *r = list->items[i];
        assert_non_null(strstr(r->first, "multilingual-small"));
        direct += !r->pivot;
        pivots += r->pivot != NULL;
        if (!r->pivot) assert_null(r->second);
        if (r->pivot) assert_string_equal(r->pivot, "en");
        if (r->pivot) assert_true(i >= direct && strcmp(r->source, "en") != 0 && strcmp(r->target, "en") != 0);
    }
    assert_int_equal(direct, 8);
    assert_int_equal(pivots, 12);
    dgm_routes_free(&list);
    assert_int_equal(dgm_models_languages("fr", &languages, &error), DGM_OK);
    assert_non_null(strstr(languages, "en"));
    assert_null(strstr(languages, "fr"));
    dgm_string_free(&languages);
    unsetenv("DRAGOMAN_MODEL");
}

// Links of two steps are those of the first and the second one behind the other, scores their sums.
static void a_third_language_between(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_error error;
    dgm_settings_default(&s);
    s.alignment = DGM_ALIGN_WORDS;
    dgm_route *r = open_route("de", "fr", 0, &s);
    assert_null(dgm_route_translator(r, 1)); // one model for both steps is in memory once
    dgm_translator *one = open_step("de", "en", &s), *two = open_step("en", "fr", &s);
    dgm_results *whole = through(r, german, GERMAN), *first = NULL, *second = NULL;
    const char *between[GERMAN];
    assert_int_equal(dgm_translate(one, german, GERMAN, &first, &error), DGM_OK);
    for (size_t i = 0; i < GERMAN; i++) between[i] = dgm_result_text(first->items[i]);
    assert_int_equal(dgm_translate(two, between, GERMAN, &second, &error), DGM_OK);
    for (size_t i = 0; i < GERMAN; i++) {
        const dgm_translation *w = whole->items[i]->translations[0], *a = first->items[i]->translations[0],
                              *b = second->items[i]->translations[0];
        assert_string_equal(w->text, b->text);
        assert_true(fabsf(w->score - (a->score + b->score)) < 1e-5f);
        assert_true(fabsf(w->sum - (a->sum + b->sum)) < 1e-4f);
        for (size_t k = 0; k < w->link_count; k++) {
            bool reached = false;
            for (int m = 0; m < 40 && !reached; m++)
                reached = is_linked(a, w->links[k].source, m) && is_linked(b, m, w->links[k].target);
            assert_true(reached);
            const dgm_link *before = k ? &w->links[k - 1] : NULL, *here = &w->links[k];
            if (before)
                assert_true(here->target > before->target ||
                            (here->target == before->target && here->source > before->source));
        }
        for (size_t k = 0; k < a->link_count; k++)
            for (size_t m = 0; m < b->link_count; m++)
                if (a->links[k].target == b->links[m].source)
                    assert_true(is_linked(w, a->links[k].source, b->links[m].target));
    }
    dgm_results_free(&whole);
    dgm_results_free(&first);
    dgm_results_free(&second);
    dgm_close(&one);
    dgm_close(&two);
    dgm_route_close(&r);
}

static void several_translations_of_the_first(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    s.beam = 4;
    dgm_route *one = open_route("de", "es", 1, &s);
    dgm_results *single = through(one, german, GERMAN);
    s.nbest = 3;
    dgm_route *many = open_route("de", "es", 4, &s);
    assert_null(dgm_route_translator(one, 1));
    assert_non_null(dgm_route_translator(many, 1)); // a first step with settings of its own
    dgm_results *best = through(many, german, GERMAN);
    for (size_t i = 0; i < GERMAN; i++) {
        const dgm_result *r = best->items[i];
        assert_in_range(r->count, 1, 3);
        assert_true(r->translations[0]->score >= single->items[i]->translations[0]->score - 1e-5f);
        for (size_t k = 1; k < r->count; k++) {
            assert_true(r->translations[k]->score <= r->translations[k - 1]->score);
            assert_string_not_equal(r->translations[k]->text, r->translations[k - 1]->text);
        }
    }
    dgm_results_free(&single);
    dgm_results_free(&best);
    dgm_route_close(&one);
    dgm_route_close(&many);
}

// Every line goes the way of its language, with the bytes that it has alone; what is in the target language stays.
static void languages_of_lines(void **state)
{
    (void)state;
    static const char *const texts[] = {"The dog is running through the garden.", "Der Hund läuft durch den Garten.",
                                        "Le chien court dans le jardin.", "El perro corre por el jardín.", "", "4711"};
    static const char *const found[] = {"en", "de", "fr", "es", NULL, NULL};
    enum { COUNT = sizeof texts / sizeof *texts };
    dgm_settings s;
    dgm_settings_default(&s);
    dgm_route *r = open_route("auto", "fr", 0, &s);
    dgm_results *mixed = through(r, texts, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        const dgm_result *x = mixed->items[i];
        if (found[i]) assert_string_equal(x->language, found[i]);
        else assert_null(x->language);
        assert_int_equal((x->flags & DGM_LINE_COPIED) != 0, i == 2 || i == 5);
        if (i == 2) assert_string_equal(dgm_result_text(x), texts[i]);
        if (i == 2 || !found[i]) continue;
        dgm_route *alone = open_route(found[i], "fr", 0, &s);
        dgm_results *by_itself = through(alone, &texts[i], 1);
        assert_string_equal(dgm_result_text(x), dgm_result_text(by_itself->items[0]));
        dgm_results_free(&by_itself);
        dgm_route_close(&alone);
    }
    assert_int_equal(mixed->failed, 0);
    dgm_results_free(&mixed);
    dgm_route_close(&r);
}

static void jobs_in_flight(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_error error;
    dgm_settings_default(&s);
    dgm_translator *t = open_step("de", "en", &s);
    dgm_route *routes[2] = {open_route("de", "fr", 0, &s), NULL};
    assert_int_equal(dgm_route_of(&routes[1], t, &error), DGM_OK);
    for (int i = 0; i < 2; i++) {
        dgm_input inputs[GERMAN];
        dgm_route_job *jobs[3];
        dgm_results *results[3];
        fill(inputs, german, GERMAN);
        for (int k = 0; k < 3; k++)
            assert_int_equal(dgm_route_submit(routes[i], inputs, GERMAN, &jobs[k], &error), DGM_OK);
        while (dgm_route_done(jobs[0]) < GERMAN)
            assert_true(dgm_route_share(jobs[0]) >= 0 && dgm_route_share(jobs[0]) <= 1);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(dgm_route_wait(&jobs[k], &results[k], &error), DGM_OK);
            assert_null(jobs[k]);
            for (size_t n = 0; n < GERMAN; n++)
                assert_string_equal(dgm_result_text(results[k]->items[n]), dgm_result_text(results[0]->items[n]));
        }
        for (int k = 0; k < 3; k++) dgm_results_free(&results[k]);
        dgm_route_close(&routes[i]);
    }
    dgm_close(&t);
}

static void refuses(const dgm_route_options *o, const char *why)
{
    dgm_route *r = NULL;
    dgm_error error;
    assert_int_not_equal(dgm_route_open(&r, o, &error), DGM_OK);
    assert_null(r);
    if (!strstr(error.text, why)) fail_msg("'%s' is not in '%s'", why, error.text);
}

static void what_cannot_go_through_two(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_route_options o;
    dgm_settings_default(&s);
    dgm_route_default(&o);
    o.model = MODEL;
    o.settings = &s;
    refuses(&o, "a route needs a source language");
    o.source = "de";
    refuses(&o, "a route from de needs a target language");
    o.target = "ja";
    refuses(&o, "no model translates from de to ja");
    o.target = "fr";
    o.pivot_nbest = 65;
    refuses(&o, "pivot_nbest is 65");
    o.pivot_nbest = 0;
    s.alignment = DGM_ALIGN_TOKENS;
    refuses(&o, "alignment of tokens cannot go through a third language");
    s.alignment = DGM_ALIGN_NONE;
    const dgm_member members[] = {{MODEL, 0}, {MODEL, 0}};
    o.members = members;
    o.member_count = 2;
    refuses(&o, "a route takes one model, or up to");
    o.model = NULL;
    o.member_count = 0;
    o.direction_later = 1;
    refuses(&o, "a route whose lines say their directions needs a model");
}

// ---- what the last step must write -----------------------------------------------------------------

enum { DEMANDS = 4 };

// Lines through both steps with what goes with them; `wanted` go with what a first step made of them, by hand.
static void as_by_hand(const dgm_settings *s, const dgm_input *given, const dgm_input *wanted, size_t count)
{
    dgm_settings plain = *s, last = *s;
    dgm_error error;
    plain.lattices = plain.evidence = 0;
    memset(plain.terms, 0, sizeof plain.terms);
    memset(last.terms, 0, sizeof last.terms);
    dgm_route *r = open_route("de", "fr", 0, s);
    dgm_translator *one = open_step("de", "en", &plain), *two = open_step("en", "fr", &last);
    dgm_results *whole = NULL, *first = NULL, *second = NULL;
    dgm_input by_hand[DEMANDS];
    const char *texts[DEMANDS];
    for (size_t i = 0; i < count; i++) texts[i] = given[i].text;
    assert_int_equal(dgm_translate(one, texts, count, &first, &error), DGM_OK);
    for (size_t i = 0; i < count; i++) {
        by_hand[i] = wanted[i];
        by_hand[i].text = dgm_result_text(first->items[i]);
        by_hand[i].text_size = strlen(by_hand[i].text);
    }
    assert_int_equal(dgm_translate_inputs(two, by_hand, count, &second, &error), DGM_OK);
    if (dgm_route_translate(r, given, count, &whole, &error) != DGM_OK) fail_msg("%s", error.text);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(whole->items[i]->status, DGM_OK);
        assert_string_equal(dgm_result_text(whole->items[i]), dgm_result_text(second->items[i]));
        assert_string_equal(whole->items[i]->translations[0]->pivot, by_hand[i].text);
    }
    dgm_results_free(&whole);
    dgm_results_free(&first);
    dgm_results_free(&second);
    dgm_close(&one);
    dgm_close(&two);
    dgm_route_close(&r);
}

static void demand(dgm_input *in, const char *constraints)
{
    in->constraints = constraints;
    in->constraints_size = strlen(constraints);
}

static void demands_of_the_last_step(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_input given[DEMANDS], wanted[DEMANDS];
    dgm_settings_default(&s);
    s.beam = 4;
    fill(given, german, DEMANDS);
    demand(&given[0], "Haus => maison"); // forced where its source stands in the line
    demand(&given[1], "! ville\t$ soir");
    given[3].prefix = "Une";
    given[3].prefix_size = 3;
    memcpy(wanted, given, sizeof wanted);
    demand(&wanted[0], "maison");
    as_by_hand(&s, given, wanted, DEMANDS);
    demand(&given[0], "Katze => chat"); // its source is not there
    wanted[0].constraints = NULL;
    as_by_hand(&s, given, wanted, DEMANDS);
}

static void lattices_and_evidence_of_the_last_step(void **state)
{
    (void)state;
    static const char words[] = "lattice\n0 1 -1 un\n0 1 -2 une\n1 0\n";
    const dgm_lattice_text lattice = {.text = words, .size = strlen(words)};
    const dgm_evidence_candidate candidate = {"une maison", 10, 0};
    const dgm_evidence evidence = {.size = sizeof evidence, .candidates = &candidate, .count = 1};
    dgm_settings s;
    dgm_input given[2];
    dgm_settings_default(&s);
    fill(given, german, 2);
    s.evidence = 1;
    given[0].evidence = &evidence;
    as_by_hand(&s, given, given, 2);
    dgm_settings_default(&s);
    s.lattices = 1;
    given[0].evidence = NULL;
    given[0].lattice = given[1].lattice = &lattice;
    as_by_hand(&s, given, given, 2);
}

static void ensembles_of_both_steps(void **state)
{
    (void)state;
    const dgm_member members[] = {{MODEL, 1}, {MODEL, 2}};
    dgm_route *r = NULL, *one = open_route("de", "fr", 0, NULL);
    dgm_route_options o;
    dgm_error error;
    dgm_route_default(&o);
    o.source = "de";
    o.target = "fr";
    o.members = members;
    o.member_count = 2;
    if (dgm_route_open(&r, &o, &error) != DGM_OK) fail_msg("%s", error.text);
    assert_int_equal(dgm_describe(dgm_route_translator(r, 0))->models, 2);
    assert_null(dgm_route_translator(r, 1));
    dgm_results *both = through(r, german, GERMAN), *alone = through(one, german, GERMAN);
    for (size_t i = 0; i < GERMAN; i++) // a model agrees with itself
        assert_string_equal(dgm_result_text(both->items[i]), dgm_result_text(alone->items[i]));
    dgm_results_free(&both);
    dgm_results_free(&alone);
    dgm_route_close(&r);
    dgm_route_close(&one);
}

// Each line as a route of its direction has it; a direction that nobody has fails its line alone.
static void directions_of_lines(void **state)
{
    (void)state;
    const dgm_direction said[] = {{"de", "fr"}, {"de", "en"}, {"de", "es"}, {"de", "ja"}};
    dgm_route *r = NULL;
    dgm_route_options o;
    dgm_input inputs[DEMANDS];
    dgm_results *mixed = NULL;
    dgm_error error;
    dgm_route_default(&o);
    o.model = MODEL;
    o.direction_later = 1;
    if (dgm_route_open(&r, &o, &error) != DGM_OK) fail_msg("%s", error.text);
    fill(inputs, german, DEMANDS);
    for (int i = 0; i < DEMANDS; i++) inputs[i].direction = &said[i];
    inputs[2].text = german[0];
    inputs[2].text_size = strlen(german[0]);
    assert_int_equal(dgm_route_translate(r, inputs, DEMANDS, &mixed, &error), DGM_OK);
    assert_int_equal(mixed->failed, 1);
    assert_int_not_equal(mixed->items[3]->status, DGM_OK);
    for (int i = 0; i < 3; i++) {
        dgm_route *alone = open_route(said[i].source, said[i].target, 0, NULL);
        dgm_results *by_itself = through(alone, &inputs[i].text, 1);
        assert_string_equal(dgm_result_text(mixed->items[i]), dgm_result_text(by_itself->items[0]));
        dgm_results_free(&by_itself);
        dgm_route_close(&alone);
    }
    dgm_results_free(&mixed);
    dgm_route_close(&r);
}

static void allocations_may_fail(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    static const char *const texts[] = {"Der Hund läuft.", "The dog runs.", "Le chien court dans le jardin."};
    dgm_route *r = open_route("auto", "fr", 2, &s);
    dgm_results *warm = through(r, texts, 3);
    dgm_results_free(&warm);
    const uint64_t live = dgm_mem_live();
    bool fine = false;
    for (uint64_t n = 1; !fine; n++) {
        dgm_input inputs[3];
        dgm_results *results = NULL;
        dgm_error error;
        fill(inputs, texts, 3);
        dgm_mem_inject(n, 1);
        const dgm_status st = dgm_route_translate(r, inputs, 3, &results, &error);
        dgm_mem_inject(0, 0);
        fine = st == DGM_OK && results->failed == 0 && n > 200; // a worker may have met the failure
        if (st != DGM_OK) assert_int_equal(st, DGM_ERR_MEMORY);
        dgm_results_free(&results);
    }
    assert_int_equal(dgm_mem_live(), live);
    dgm_route_close(&r);
}

// ---- documents -------------------------------------------------------------------------------------

static const char page[] =
    "<p>Das ist <b>ein Haus</b>.</p><p>Ein <i>Mann</i> fährt mit dem Rad.</p><p>Guten Morgen!</p>";

static dgm_document *open_page(void)
{
    dgm_document *d = NULL;
    dgm_error error;
    if (dgm_document_open(&d, page, strlen(page), "a.html", NULL, &error) != DGM_OK) fail_msg("%s", error.text);
    return d;
}

static int collect(void *cookie, const char *data, size_t size)
{
    char *to = cookie;
    assert_true(strlen(to) + size < 1000);
    strncat(to, data, size);
    return 0;
}

static void written(const dgm_document *d, char *text)
{
    *text = 0;
    assert_int_equal(dgm_document_write(d, collect, text, NULL), DGM_OK);
}

// The document with the translations that the route gives its lines, put by hand.
static void put_by_hand(dgm_route *r, char *text)
{
    dgm_document *d = open_page();
    const size_t lines = dgm_document_describe(d)->lines;
    for (size_t i = 0; i < lines; i++) {
        dgm_input in;
        dgm_results *results = NULL;
        dgm_input_default(&in);
        in.text = dgm_document_line(d, i, &in.text_size);
        assert_int_equal(dgm_route_translate(r, &in, 1, &results, NULL), DGM_OK);
        const dgm_translation *t = results->items[0]->translations[0];
        assert_int_equal(dgm_document_put(d, i, t->text, t->text_size, t->links, t->link_count, NULL), DGM_OK);
        dgm_results_free(&results);
    }
    written(d, text);
    dgm_document_close(&d);
}

static int stop(void *cookie, const char *what, double share)
{
    (void)what;
    assert_true(share >= 0 && share <= 1);
    ++*(int *)cookie;
    return 1;
}

static void documents(void **state)
{
    (void)state;
    char by_hand[1000], whole[1000];
    dgm_settings s;
    dgm_error error;
    dgm_settings_default(&s);
    s.alignment = DGM_ALIGN_WORDS;
    dgm_translator *t = open_step("de", "en", &s);
    dgm_route *routes[2] = {open_route("de", "fr", 0, &s), NULL};
    assert_int_equal(dgm_route_of(&routes[1], t, &error), DGM_OK);
    for (int i = 0; i < 2; i++) {
        dgm_document_work report = {.size = sizeof report, .failed = 7};
        dgm_document *d = open_page();
        put_by_hand(routes[i], by_hand);
        const dgm_status st = i ? dgm_document_translate(d, t, &report, &error)
                                : dgm_document_translate_route(d, routes[i], &report, &error);
        assert_int_equal(st, DGM_OK);
        assert_int_equal(report.failed, 0);
        written(d, whole);
        assert_string_equal(whole, by_hand);
        assert_string_not_equal(whole, page);
        assert_non_null(strstr(whole, "<b>"));
        dgm_document_close(&d);
        dgm_route_close(&routes[i]);
    }
    dgm_close(&t);
}

// What goes with lines of a document acts as it does with the lines alone.
static void documents_with_demands(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_error error;
    char whole[1000], by_hand[1000];
    dgm_settings_default(&s);
    s.alignment = DGM_ALIGN_WORDS;
    dgm_route *r = open_route("de", "fr", 0, &s);
    dgm_document *d = open_page(), *hand = open_page();
    dgm_input inputs[3];
    fill(inputs, german, 3); // texts are not looked at
    demand(&inputs[0], "Haus => maison");
    inputs[1].prefix = "Une";
    inputs[1].prefix_size = 3;
    dgm_document_work work = {.size = sizeof work, .inputs = inputs, .input_count = 2};
    assert_int_equal(dgm_document_translate_route(d, r, &work, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "2 inputs for 3 lines"));
    work.input_count = 3;
    assert_int_equal(dgm_document_translate_route(d, r, &work, &error), DGM_OK);
    for (size_t i = 0; i < 3; i++) {
        dgm_results *results = NULL;
        inputs[i].text = dgm_document_line(hand, i, &inputs[i].text_size);
        assert_int_equal(dgm_route_translate(r, &inputs[i], 1, &results, NULL), DGM_OK);
        const dgm_translation *t = results->items[0]->translations[0];
        assert_int_equal(dgm_document_put(hand, i, t->text, t->text_size, t->links, t->link_count, NULL), DGM_OK);
        dgm_results_free(&results);
    }
    written(d, whole);
    written(hand, by_hand);
    assert_string_equal(whole, by_hand);
    assert_non_null(strstr(whole, "maison"));
    assert_non_null(strstr(whole, "Une"));
    dgm_document_close(&d);
    dgm_document_close(&hand);
    dgm_route_close(&r);
}

// Whoever watches may stop it, while either step is at work.
static void documents_are_stopped(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_error error;
    dgm_settings_default(&s);
    dgm_route *r = open_route("de", "fr", 0, &s);
    dgm_document *d = NULL;
    char *text = malloc(200000);
    size_t size = 0;
    for (int i = 0; i < 2000; i++)
        size += (size_t)snprintf(text + size, 100, "Das sind %d Häuser und noch %d Männer mit einem Rad.\n", i, 2 * i);
    assert_int_equal(dgm_document_open(&d, text, size, "a.txt", NULL, &error), DGM_OK);
    int calls = 0;
    dgm_document_work report = {.size = sizeof report, .progress = {stop, &calls}};
    assert_int_equal(dgm_document_translate_route(d, r, &report, &error), DGM_ERR_CANCELLED);
    assert_int_equal(calls, 1);
    dgm_document_close(&d);
    free(text);
    dgm_input inputs[GERMAN];
    dgm_route_job *job = NULL;
    dgm_results *results = NULL;
    fill(inputs, german, GERMAN);
    assert_int_equal(dgm_route_wait_for(NULL, 0), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_route_submit(r, inputs, GERMAN, &job, &error), DGM_OK);
    while (dgm_route_wait_for(job, 1) == 0) continue;
    assert_int_equal(dgm_route_wait_for(job, -1), 1);
    assert_int_equal(dgm_route_done(job), GERMAN);
    assert_int_equal(dgm_route_wait(&job, &results, &error), DGM_OK);
    assert_int_equal(results->failed, 0);
    dgm_results_free(&results);
    assert_int_equal(dgm_route_submit(r, inputs, GERMAN, &job, &error), DGM_OK);
    dgm_route_cancel(&job);
    assert_null(job);
    dgm_route_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_directions),       cmocka_unit_test(a_third_language_between),
        cmocka_unit_test(several_translations_of_the_first), cmocka_unit_test(languages_of_lines),
        cmocka_unit_test(jobs_in_flight),             cmocka_unit_test(what_cannot_go_through_two),
        cmocka_unit_test(allocations_may_fail),       cmocka_unit_test(documents),
        cmocka_unit_test(documents_are_stopped),      cmocka_unit_test(demands_of_the_last_step),
        cmocka_unit_test(lattices_and_evidence_of_the_last_step),
        cmocka_unit_test(ensembles_of_both_steps),    cmocka_unit_test(directions_of_lines),
        cmocka_unit_test(documents_with_demands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
