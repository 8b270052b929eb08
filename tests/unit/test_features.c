// SPDX-License-Identifier: MIT
// The table of features against the engine: all pairs of features x all searches x all kinds of
// models. Each is either refused with the sentence of the table, when the translator is opened (or,
// for what a line brings, by the line), or it translates. There is no third outcome.
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
#include "search/features.h"
#include "search/search.h"

#define FOLDER "tests/data/models/"

enum { LINES = 2, LONGEST = 8 };

// ---- kinds of models ---------------------------------------------------------------------------

typedef struct kind {
    const char *name, *path, *other; // other: a second model of an ensemble; NULL: none
    const char *writing;
    uint32_t facts;
    char clustered[64];   // the model with clusters, "": it has none
    char text[256];       // what it makes of the first line
    char first[64], last[64]; // words of that
} kind;

static kind kinds[] = {
    {.name = "l2r", .path = FOLDER "transformer-pieces.gguf", .writing = "l2r", .facts = 0},
    {.name = "r2l", .path = FOLDER "transformer-r2l.gguf", .writing = "r2l", .facts = DGM_MODELS_OF_WORDS},
    {.name = "pairs, l2r", .path = FOLDER "double-l2r.gguf", .writing = "pairs-l2r", .facts = DGM_MODELS_OF_WORDS},
    {.name = "pairs, r2l", .path = FOLDER "double-r2l.gguf", .writing = "pairs-r2l", .facts = DGM_MODELS_OF_WORDS},
    {.name = "pairs", .path = FOLDER "double-pieces.gguf", .writing = "pairs-both", .facts = 0},
    {.name = "masked", .path = FOLDER "cmlm-pieces.gguf", .writing = "masked", .facts = 0},
    {.name = "masked words", .path = FOLDER "cmlm-pre.gguf", .writing = "masked", .facts = DGM_MODELS_OF_WORDS},
    {.name = "recurrent", .path = FOLDER "rnn-bahdanau-pieces.gguf", .writing = "l2r", .facts = DGM_MODELS_RECURRENT},
    {.name = "self-normalised", .path = FOLDER "self-normalised.gguf", .writing = "l2r",
     .facts = DGM_MODELS_RECURRENT | DGM_MODELS_OF_WORDS | DGM_MODELS_SELF_NORMALISED},
    {.name = "mixed architectures", .path = FOLDER "transformer-pieces.gguf",
     .other = FOLDER "rnn-bahdanau-pieces.gguf", .writing = "l2r", .facts = 0},
    {.name = "T5", .path = FOLDER "transformer-t5-relu-pieces.gguf", .writing = "l2r", .facts = 0},
    {.name = "calibrated", .writing = "l2r", .facts = DGM_MODELS_SCALED}, // path: make_calibrated
    {.name = "multilingual", .path = "models/research/multilingual-small.gguf", .writing = "l2r", .facts = 0},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *const lines[LINES] = {"Good morning.", "the old man sees the house ."};

// ---- features ----------------------------------------------------------------------------------

// Everything that a translator and its lines may be given.
typedef struct request {
    const kind *kind;
    dgm_settings settings;
    dgm_member members[2];
    size_t member_count;
    const char *prefix;
    char constraints[160], lattice_words[512];
    dgm_evidence_candidate candidate;
    dgm_evidence evidence;
    dgm_lattice_text lattice;
    bool with_evidence, with_lattice, score;
} request;

static char glossary[64], phrases[64];

typedef void (*setter)(request *r);

#define SETS(name, code)                                                                           \
    static void name(request *r)                                                                   \
    {                                                                                              \
        code;                                                                                      \
    }
SETS(set_beam, r->settings.beam = 3)
SETS(set_beam_width, r->settings.beam_width = 0.1f)
SETS(set_diversity, r->settings.diversity = 0.5f)
SETS(set_coverage, r->settings.coverage_penalty = 0.2f)
SETS(set_no_repeat, r->settings.no_repeat_ngram = 2)
SETS(set_repetition, r->settings.repetition_penalty = 2.0f)
SETS(set_min_length, r->settings.min_length = 2)
SETS(set_max_rows, r->settings.max_rows = 2)
SETS(set_top_k, r->settings.top_k = 5)
SETS(set_top_p, r->settings.top_p = 0.9f)
SETS(set_temperature, r->settings.temperature = 1.5f)
SETS(set_seed, r->settings.seed = 7)
SETS(set_cube, r->settings.cube = "accelerated")
SETS(set_cube_naive, r->settings.cube = "naive")
SETS(set_cube_key, r->settings.cube_key = "state:0.1")
SETS(set_cube_key_none, r->settings.cube_key = "none")
SETS(set_approximate, r->settings.approximate_scores = 1)
SETS(set_pairs, r->settings.pairs = "exact")
SETS(set_iterations, r->settings.iterations = 3)
SETS(set_lengths, r->settings.lengths = 2)
SETS(set_softmax_off, r->settings.softmax = "off")
SETS(set_alignment, r->settings.alignment = DGM_ALIGN_WORDS)
SETS(set_unknown, r->settings.unknown = DGM_UNKNOWN_COPY)
SETS(set_prefix, r->prefix = r->kind->first)
SETS(set_terms, r->settings.terms[0] = glossary)
SETS(set_keep, r->settings.keep = "house")
SETS(set_lattice, r->settings.lattices = 1; r->with_lattice = true)
SETS(set_lattice_weight, r->settings.lattice_weight = 0.5f)
SETS(set_score, r->score = true)
SETS(set_precompute, r->settings.precompute = 10)
SETS(set_plain_attention, r->settings.plain_attention = 1)
SETS(set_separate_states, r->settings.separate_states = 1)
SETS(set_static_scales, r->settings.static_scales = 1)

static void set_clusters(request *r)
{
    r->settings.shortlist = "cluster";
    r->members[0].path = r->kind->clustered;
}

SETS(set_source_tokens, r->settings.source_tokens = "off")

static void demand(request *r, const char *mark, const char *words)
{
    const size_t used = strlen(r->constraints);
    snprintf(r->constraints + used, sizeof r->constraints - used, "%s%s%s", used ? "\t" : "", mark,
             words);
}

SETS(set_end, demand(r, "$ ", r->kind->last))
SETS(set_constraints, demand(r, "! ", r->kind->first))

static void set_lmbr(request *r)
{
    r->settings.evidence = 1;
    r->with_evidence = true;
}

SETS(set_evidence, r->settings.phrase_system = phrases)

static void set_ensemble(request *r)
{
    if (r->member_count == 1) r->members[r->member_count++] = r->members[0];
}

// Of a model that has none, directions are nothing to speak of.
SETS(set_directions, r->settings.direction_later = 1)

static const struct {
    const char *name;
    setter set;
} setters[] = {
    {"beam", set_beam},
    {"beam-width", set_beam_width},
    {"diversity", set_diversity},
    {"coverage-penalty", set_coverage},
    {"no-repeat-ngram", set_no_repeat},
    {"repetition-penalty", set_repetition},
    {"min-length", set_min_length},
    {"max-rows", set_max_rows},
    {"top-k", set_top_k},
    {"top-p", set_top_p},
    {"temperature", set_temperature},
    {"seed", set_seed},
    {"cube", set_cube},
    {"cube-naive", set_cube_naive},
    {"cube-key", set_cube_key},
    {"cube-key-none", set_cube_key_none},
    {"approximate-scores", set_approximate},
    {"pairs", set_pairs},
    {"iterations", set_iterations},
    {"lengths", set_lengths},
    {"shortlist-cluster", set_clusters},
    {"shortlist", set_clusters}, // one of several
    {"source-tokens-off", set_source_tokens},
    {"softmax-off", set_softmax_off},
    {"alignment", set_alignment},
    {"unknown", set_unknown},
    {"prefix", set_prefix},
    {"forced-end", set_end},
    {"constraints", set_constraints},
    {"terms", set_terms},
    {"keep", set_keep},
    {"lmbr", set_lmbr},
    {"evidence", set_evidence},
    {"lattice", set_lattice},
    {"lattice-weight", set_lattice_weight},
    {"ensemble", set_ensemble},
    {"directions", set_directions},
    {"score", set_score},
    {"precompute", set_precompute},
    {"plain-attention", set_plain_attention},
    {"separate-states", set_separate_states},
    {"static-scales", set_static_scales},
};

enum { SETTERS = sizeof setters / sizeof setters[0] };

// Features of the program: no translator is asked for them.
static const char *const elsewhere[] = {"lmbr-thetas", "lmbr-tune", "lmbr-dump", "rerank",
                                        "pivot",       "source-auto", "resume", "format"};

static void start(request *r, const kind *k, const char *search)
{
    memset(r, 0, sizeof *r);
    r->kind = k;
    dgm_settings_default(&r->settings);
    r->settings.search = search;
    r->settings.max_length = LONGEST;
    r->settings.batch = LINES;
    r->members[0].path = k->path;
    r->members[1].path = k->other;
    r->member_count = k->other ? 2 : 1;
}

static size_t make_inputs(request *r, dgm_input *inputs)
{
    snprintf(r->lattice_words, sizeof r->lattice_words, "lattice\n0 1 -1 %s\n0 1 -2 %s\n1 0\n",
             r->kind->text, r->kind->first);
    r->candidate = (dgm_evidence_candidate){r->kind->text, strlen(r->kind->text), 0.0};
    r->evidence =
        (dgm_evidence){.size = sizeof(dgm_evidence), .candidates = &r->candidate, .count = 1};
    r->lattice = (dgm_lattice_text){.text = r->lattice_words, .size = strlen(r->lattice_words)};
    for (int i = 0; i < LINES; i++)
        inputs[i] = (dgm_input){.size = sizeof(dgm_input),
                                .text = lines[i],
                                .text_size = strlen(lines[i]),
                                .prefix = r->prefix,
                                .prefix_size = r->prefix ? strlen(r->prefix) : 0,
                                .constraints = r->constraints[0] ? r->constraints : NULL,
                                .constraints_size = strlen(r->constraints),
                                .evidence = r->with_evidence ? &r->evidence : NULL,
                                .lattice = r->with_lattice ? &r->lattice : NULL};
    return LINES;
}

// ---- outcomes ----------------------------------------------------------------------------------

static void complain(const request *r, const char *a, const char *b, const char *what,
                     const char *text, const char *want)
{
    fail_msg("%s, search %s, %s, %s: %s '%s', the table says '%s'", r->kind->name,
             r->settings.search, a, b ? b : "nothing else", what, text, want);
}

// Translates; what the lines say of it in *error.
static dgm_status translate(request *r, dgm_error *error)
{
    dgm_translator *t = NULL;
    dgm_results *results = NULL;
    dgm_input inputs[LINES];
    dgm_status st = dgm_open_ensemble(&t, r->members, r->member_count, &r->settings, error);
    if (st != DGM_OK) return st;
    assert_int_equal(dgm_translate_inputs(t, inputs, make_inputs(r, inputs), &results, error), DGM_OK);
    for (size_t i = 0; i < results->count && st == DGM_OK; i++) {
        st = results->items[i]->status;
        snprintf(error->text, sizeof error->text, "%s", results->items[i]->message);
        if (st == DGM_OK) assert_true(results->items[i]->count >= 1);
    }
    dgm_results_free(&results);
    if (st == DGM_OK && r->score) {
        dgm_pair_scores *scores = NULL;
        const dgm_pair pair = {{lines[0], strlen(lines[0])},
                               {r->kind->text, strlen(r->kind->text)}};
        st = dgm_score_pairs(t, &pair, 1, &scores, error);
        dgm_pair_scores_free(&scores);
    }
    dgm_close(&t);
    return st;
}

static long counts[2]; // translated, refused

// When a feature is known: with the settings, with the models, or later, with a line or when
// translations are scored.
enum { WITH_SETTINGS, WITH_MODELS, WITH_LINES };

static int known(const char *name)
{
    static const char *const names[] = {"prefix", "forced-end", "constraints", "score"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return WITH_LINES;
    return strcmp(name, "ensemble") == 0 ? WITH_MODELS : WITH_SETTINGS;
}

static bool is(const char *name, const char *other)
{
    return name && strcmp(name, other) == 0;
}

static dgm_status ask_table(const request *r, const char *a, const char *b, int when,
                            dgm_error *error)
{
    const char *names[6];
    const bool clusters = is(a, "shortlist-cluster") || is(b, "shortlist-cluster");
    dgm_feature_query q = {.size = sizeof q,
                           .features = names,
                           .search = r->settings.search,
                           .writing = when > WITH_SETTINGS ? r->kind->writing : NULL,
                           .models = when > WITH_SETTINGS ? r->kind->facts | DGM_MODELS_ALIKE
                                                          : DGM_MODELS_ANY};
    if (a && known(a) <= when) names[q.count++] = a;
    if (b && known(b) <= when) names[q.count++] = b;
    if (clusters) names[q.count++] = "shortlist"; // they are one
    if (r->settings.cube) names[q.count++] = "cube";
    if (r->settings.cube_key) names[q.count++] = "cube-key";
    if (r->kind->other && when > WITH_SETTINGS) names[q.count++] = "ensemble";
    return dgm_features_check(&q, NULL, error);
}

// What the table says when the translator is opened, and to what comes later.
static dgm_status expected(const request *r, const char *a, const char *b, dgm_error *error)
{
    // An end beside other constraints is one of them.
    if (is(a, "forced-end") && is(b, "constraints")) a = NULL;
    dgm_status st = DGM_OK;
    for (int when = WITH_SETTINGS; when <= WITH_LINES && st == DGM_OK; when++)
        st = ask_table(r, a, b, when, error);
    return st;
}

static void try_pair(const kind *k, const char *search, int a, int b)
{
    request r;
    dgm_error want = {{0}}, got = {{0}};
    start(&r, k, search);
    if (a >= 0) setters[a].set(&r);
    if (b >= 0) setters[b].set(&r);
    const char *first = a >= 0 ? setters[a].name : NULL, *second = b >= 0 ? setters[b].name : NULL;
    if (r.settings.shortlist && !k->clustered[0]) return;
    const dgm_status should = expected(&r, first, second, &want);
    const dgm_status did = translate(&r, &got);
    counts[should != DGM_OK]++;
    if (did != should) complain(&r, first, second, dgm_status_name(did), got.text, want.text);
    if (should != DGM_OK && !strstr(got.text, want.text)) // paths may stand before it
        complain(&r, first, second, "said", got.text, want.text);
}

// ---- tests -------------------------------------------------------------------------------------

static void put_corpus(char path[64])
{
    snprintf(path, 64, "/tmp/dgm_features_%d.txt", (int)getpid());
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 4; i++) fprintf(f, "%s\n%s\n", lines[0], lines[1]);
    fclose(f);
}

static char calibrated[64];

static void make_calibrated(void)
{
    char corpus[64];
    dgm_error error = {{0}};
    dgm_quantize_options o;
    snprintf(calibrated, sizeof calibrated, "/tmp/dgm_features_%d.gguf", (int)getpid());
    put_corpus(corpus);
    dgm_quantize_default(&o);
    o.type = "i8";
    o.calibrate = corpus;
    if (dgm_quantize(kinds[0].path, calibrated, &o, NULL, &error) != DGM_OK)
        fail_msg("%s", error.text);
    unlink(corpus);
    for (int i = 0; i < KINDS; i++)
        if (!kinds[i].path) kinds[i].path = calibrated;
}

static void make_clusters(kind *k, int number)
{
    char corpus[64];
    dgm_error error = {{0}};
    put_corpus(corpus);
    snprintf(k->clustered, sizeof k->clustered, "/tmp/dgm_features_%d_%d.gguf", (int)getpid(), number);
    dgm_cluster_options o;
    dgm_cluster_default(&o);
    o.text = corpus;
    o.centroids = 3;
    if (dgm_cluster_make(k->path, k->clustered, &o, NULL, &error) != DGM_OK) fail_msg("%s", error.text);
    unlink(corpus);
}

static int set_up(void **state)
{
    (void)state;
    make_calibrated();
    for (int i = 0; i < KINDS; i++) {
        kind *k = &kinds[i];
        request r;
        dgm_translator *t = NULL;
        dgm_results *results = NULL;
        dgm_error error = {{0}};
        start(&r, k, NULL);
        r.settings.max_length = LONGEST / 2; // other tokens may spell the same words
        if (dgm_open_ensemble(&t, r.members, r.member_count, &r.settings, &error) != DGM_OK)
            fail_msg("%s: %s", k->path, error.text);
        assert_int_equal(dgm_translate(t, lines, 1, &results, &error), DGM_OK);
        const char *said = dgm_result_text(results->items[0]), *space = strrchr(said, ' ');
        snprintf(k->text, sizeof k->text, "%s", said);
        snprintf(k->first, sizeof k->first, "%.*s", (int)strcspn(said, " "), said);
        snprintf(k->last, sizeof k->last, "%s", space ? space + 1 : said);
        dgm_results_free(&results);
        dgm_close(&t);
        if (!k->other) make_clusters(k, i);
    }
    snprintf(glossary, sizeof glossary, "/tmp/dgm_features_%d.tsv", (int)getpid());
    FILE *f = fopen(glossary, "w");
    assert_non_null(f);
    fprintf(f, "house\thaus\n");
    fclose(f);
    snprintf(phrases, sizeof phrases, "/tmp/dgm_features_%d.phrases", (int)getpid());
    f = fopen(phrases, "w");
    char *data = realpath("tests/data/phrase", NULL);
    assert_true(f && data);
    fprintf(f, "table = %s/fifty.txt\nlm = %s/fifty.arpa\n", data, data);
    fclose(f);
    free(data);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].clustered[0]) unlink(kinds[i].clustered);
    unlink(glossary);
    unlink(calibrated);
    unlink(phrases);
    return 0;
}

// Every feature of the table is tried below or named as one of the program's.
static void every_feature(void **state)
{
    (void)state;
    dgm_feature_info f;
    for (size_t i = 0; i < dgm_features(i, &f); i++) {
        bool known = false;
        for (int k = 0; k < SETTERS; k++) known |= strcmp(setters[k].name, f.name) == 0;
        for (size_t k = 0; k < sizeof elsewhere / sizeof *elsewhere; k++)
            known |= strcmp(elsewhere[k], f.name) == 0;
        if (!known) fail_msg("nothing tries the feature '%s'", f.name);
        assert_int_equal(dgm_feature_find(f.name), (int)i);
    }
    for (int i = 0; dgm_search_name(i) || dgm_search_rows[i].name; i++)
        assert_string_equal(dgm_search_name(i), dgm_search_rows[i].name);
}

// What excludes what: at most five pairs, each with its sentence and its place in the manual.
static void few_pairs_are_refused(void **state)
{
    (void)state;
    char manual[60000];
    FILE *f = fopen("docs/manual/FEATURES.md", "r");
    assert_non_null(f);
    manual[fread(manual, 1, sizeof manual - 1, f)] = 0;
    fclose(f);
    const char *reasons = strstr(manual, "## What stays refused");
    assert_non_null(reasons);
    int pairs = 0;
    for (int a = 0; a < DGM_FEATURE_COUNT; a++) {
        const dgm_feature_row *row = &dgm_feature_table[a];
        assert_int_equal(row->excludes_later, 0);
        for (int b = 0; b < DGM_FEATURE_COUNT; b++) {
            char heading[128];
            if (!(row->excludes >> b & 1u)) continue;
            snprintf(heading, sizeof heading, "**`%s` with `%s`.**", row->name, dgm_feature_table[b].name);
            if (!strstr(reasons, heading)) fail_msg("the manual does not say why '%s'", heading);
            pairs++;
        }
    }
    assert_in_range(pairs, 1, 5);
}

static void bad_questions(void **state)
{
    (void)state;
    dgm_error error;
    const char *const nothing[] = {"telepathy"};
    dgm_feature_query q = {.size = sizeof q, .features = nothing, .count = 1, .models = DGM_MODELS_ANY};
    assert_int_equal(dgm_features_check(&q, NULL, &error), DGM_ERR_ARGUMENT);
    q = (dgm_feature_query){.size = sizeof(dgm_feature_query), .search = "deep"};
    assert_int_equal(dgm_features_check(&q, NULL, &error), DGM_ERR_ARGUMENT);
    q = (dgm_feature_query){.size = sizeof(dgm_feature_query), .writing = "upwards"};
    assert_int_equal(dgm_features_check(&q, NULL, &error), DGM_ERR_ARGUMENT);
    dgm_translator *t = NULL;
    assert_int_equal(dgm_open(&t, kinds[1].path, NULL, NULL), DGM_OK);
    assert_int_equal(dgm_translator_check(t, "precompute", &error), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "only recurrent models"));
    assert_int_equal(dgm_translator_check(t, "alignment", &error), DGM_OK);
    assert_int_equal(dgm_translator_check(t, "telepathy", &error), DGM_ERR_ARGUMENT);
    dgm_close(&t);
}

// Models that write in different ways, and words that are not known yet.
static void ensembles(void **state)
{
    (void)state;
    dgm_error error;
    dgm_translator *t = NULL;
    const dgm_member members[] = {{FOLDER "double-l2r.gguf", 0}, {FOLDER "double-l2r.gguf", 0}};
    assert_int_equal(dgm_open_ensemble(&t, members, 2, NULL, &error), DGM_OK);
    dgm_close(&t);
    const char *const names[] = {"ensemble"};
    const dgm_feature_query q = {.size = sizeof q,
                                 .features = names,
                                 .count = 1,
                                 .models = DGM_MODELS_ANY & ~DGM_MODELS_ALIKE};
    assert_int_equal(dgm_features_check(&q, NULL, &error), DGM_ERR_UNSUPPORTED);
}

static void all_pairs(void **state)
{
    (void)state;
    dgm_way_info search;
    for (int k = 0; k < KINDS; k++)
        for (size_t s = 0; s < dgm_searches(s, &search); s++) {
            dgm_error error;
            request r;
            start(&r, &kinds[k], search.name);
            const bool follows = expected(&r, NULL, NULL, &error) == DGM_OK;
            try_pair(&kinds[k], search.name, -1, -1);
            for (int a = 0; a < SETTERS && follows; a++)
                for (int b = a; b < SETTERS; b++)
                    try_pair(&kinds[k], search.name, a, b == a ? -1 : b);
        }
    print_message("%ld combinations translate, %ld are refused\n", counts[0], counts[1]);
    assert_true(counts[0] > 1000 && counts[1] > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_feature), cmocka_unit_test(few_pairs_are_refused),
        cmocka_unit_test(bad_questions),
        cmocka_unit_test(ensembles),
        cmocka_unit_test(all_pairs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
