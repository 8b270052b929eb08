// SPDX-License-Identifier: MIT
// The table of settings: it covers the struct, its names are the engine's, defaults and ranges hold,
// and text goes in and comes out again.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "dragoman/settings.h"
#include "engine/engine_private.h"
#include "engine/settings_table.h"
#include "format/rewrite.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"

static void set_ok(dgm_settings *s, const char *name, const char *value)
{
    dgm_error error;
    if (dgm_settings_set(s, name, value, &error) != DGM_OK) fail_msg("%s", error.text);
}

static const char *get(const dgm_settings *s, const char *name)
{
    static char value[4096];
    dgm_error error;
    if (dgm_settings_get(s, name, value, sizeof value, &error) != DGM_OK)
        fail_msg("%s", error.text);
    return value;
}

static void refused(const char *name, const char *value, const char *message)
{
    dgm_settings s, before;
    dgm_error error;
    dgm_settings_default(&s);
    before = s;
    assert_int_equal(dgm_settings_set(&s, name, value, &error), DGM_ERR_ARGUMENT);
    assert_string_equal(error.text, message);
    assert_memory_equal(&s, &before, sizeof s);
}

// ---- rows -------------------------------------------------------------------------------------

// A value that is none of the defaults, as text.
static void other_value(const dgm_setting *r, char *text, size_t size)
{
    switch (r->kind) {
    case DGM_SETTING_FLAG:
        snprintf(text, size, "%d", r->standard != 1);
        break;
    case DGM_SETTING_INT:
    case DGM_SETTING_FLOAT:
        snprintf(text, size, "%.9g", r->max != r->standard ? r->max : r->min);
        break;
    case DGM_SETTING_WHOLE:
        snprintf(text, size, "18446744073709551615");
        break;
    case DGM_SETTING_SIZE:
        snprintf(text, size, "1.5K");
        break;
    case DGM_SETTING_FLOATS:
        snprintf(text, size, "1,2.5,-3,4,5");
        break;
    case DGM_SETTING_CHOICE:
        snprintf(text, size, "%s", strrchr(r->values, '|') + 1);
        break;
    default:
        snprintf(text, size, "%s.tsv", r->name);
    }
}

// Every field is some row's: bytes that no row touches are the size and what the compiler leaves
// empty, before three pointers and at the end (gcc -Wpadded tells).
enum { PADDING = 20 };

static void covers_the_struct(void **state)
{
    (void)state;
    unsigned char touched[sizeof(dgm_settings)] = {0};
    static char values[128][64];
    memset(touched, 1, sizeof(size_t));
    for (size_t i = 0; i < dgm_setting_row_count; i++) {
        const dgm_setting *r = dgm_setting_at(i);
        dgm_settings filled[2], before;
        other_value(r, values[i], sizeof values[i]);
        for (int k = 0; k < 2; k++) { // from two backgrounds, so that every byte of it shows
            memset(&filled[k], k ? 0xff : 0, sizeof filled[k]);
            filled[k].size = sizeof filled[k];
            if (r->kind == DGM_SETTING_LIST) memset(filled[k].terms, 0, sizeof filled[k].terms);
            before = filled[k];
            set_ok(&filled[k], r->name, values[i]);
            for (size_t b = 0; b < sizeof touched; b++)
                touched[b] |= ((unsigned char *)&filled[k])[b] != ((unsigned char *)&before)[b];
        }
    }
    memset(touched + offsetof(dgm_settings, terms), 1, sizeof((dgm_settings){0}.terms));
    int holes = 0;
    for (size_t b = 0; b < sizeof touched; b++) holes += !touched[b];
    assert_int_equal(holes, PADDING);
    for (size_t b = 0; b + 8 <= sizeof touched; b += 8) {
        bool any = false;
        for (int k = 0; k < 8; k++) any |= touched[b + (size_t)k];
        if (!any) fail_msg("no setting writes bytes %zu to %zu", b, b + 7);
    }
}

static void names_are_unique(void **state)
{
    (void)state;
    assert_null(dgm_setting_at(dgm_setting_row_count));
    assert_true(dgm_setting_row_count <= 128); // SETTINGS_MAX of the program
    assert_null(dgm_setting_find("nothing"));
    assert_null(dgm_setting_find(NULL));
    int group = 0;
    for (size_t i = 0; i < dgm_setting_row_count; i++) {
        const dgm_setting *r = dgm_setting_at(i);
        assert_int_equal(r->size, sizeof *r);
        assert_ptr_equal(dgm_setting_find(r->name), r);
        assert_true(strlen(r->title) > 0 && strlen(r->help) > 0);
        assert_string_not_equal(dgm_setting_group_name(r->group), "");
        assert_true((int)r->group >= group); // rows of a group follow each other
        group = (int)r->group;
        assert_true(r->kind == DGM_SETTING_FLAG || r->value);
        assert_true(r->kind == DGM_SETTING_CHOICE ? r->values != NULL : !r->values || r->kind == DGM_SETTING_INT);
        assert_true(r->kind != DGM_SETTING_INT || !r->values || r->min <= 0); // words for 0
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(r->name, dgm_setting_at(k)->name);
            if (r->letter) assert_int_not_equal(r->letter, dgm_setting_at(k)->letter);
        }
    }
    assert_ptr_equal(dgm_setting_find("beam-size"), dgm_setting_find("beam"));
    assert_string_equal(dgm_setting_group_name((dgm_setting_group)0), "");
    assert_string_equal(dgm_setting_group_name((dgm_setting_group)99), "");
}

static void same_names(const char *setting, const char *const *names)
{
    char list[256] = "";
    for (int i = 0; names[i]; i++) strcat(strcat(list, i ? "|" : ""), names[i]);
    assert_string_equal(dgm_setting_find(setting)->values, list);
}

// Choices are written down here and where they are made.
static void names_are_the_engines(void **state)
{
    (void)state;
    same_names("precision", dgm_precision_names);
    same_names("finish", dgm_finish_names);
    same_names("shortlist", dgm_restrict_names);
    dgm_settings s;
    dgm_settings_default(&s);
    set_ok(&s, "unknown", "copy");
    assert_int_equal(s.unknown, DGM_UNKNOWN_COPY);
    set_ok(&s, "long", "error");
    assert_int_equal(s.long_lines, DGM_LONG_ERROR);
    set_ok(&s, "alignment", "tokens");
    assert_int_equal(s.alignment, DGM_ALIGN_TOKENS);
}

// ---- values -----------------------------------------------------------------------------------

static void defaults(void **state)
{
    (void)state;
    dgm_settings s, again;
    dgm_lmbr l;
    dgm_settings_default(&s);
    assert_int_equal(s.size, sizeof s);
    assert_int_equal(s.threads, 1);
    set_ok(&s, "threads", "all"); // one per core
    assert_int_equal(s.threads, 0);
    assert_string_equal(get(&s, "threads"), "0");
    set_ok(&s, "threads", NULL);
    refused("threads", "most", "threads must be all or a whole number from 0 to 1024, not 'most'");
    assert_int_equal(s.nbest, 1);
    assert_int_equal(s.beam, 0);
    assert_int_equal(s.allow_unk, -1);
    assert_int_equal(s.align_layer, DGM_ALIGN_MODEL);
    assert_int_equal(s.align_head, DGM_ALIGN_MODEL);
    assert_true(s.margin == DGM_FROM_MODEL && s.length_penalty == DGM_FROM_MODEL);
    assert_true(s.beam_width == DGM_FROM_MODEL && s.static_scales == -1);
    assert_true(s.word_penalty == DGM_FROM_MODEL && s.max_length_factor == DGM_FROM_MODEL);
    assert_string_equal(s.device, "cpu");
    assert_null(s.search);
    assert_null(s.terms[0]);
    dgm_lmbr_default(&l);
    assert_true(l.p == 0.5f && l.r == 0.55f && l.t == 10 && l.scale == 1 && l.lambda == 1);
    assert_memory_equal(&l, &s.lmbr, sizeof l);
    // NULL is the default again.
    again = s;
    for (size_t i = 0; i < dgm_setting_row_count; i++) {
        static char value[64];
        other_value(dgm_setting_at(i), value, sizeof value);
        set_ok(&again, dgm_setting_at(i)->name, value);
        set_ok(&again, dgm_setting_at(i)->name, NULL);
    }
    memcpy(again.lmbr.thetas, s.lmbr.thetas, sizeof s.lmbr.thetas);
    assert_memory_equal(&again, &s, sizeof s);
}

// What a model's file may have as a default (dgm_stored_allowed) can be switched off: its plain value is not the same
// as saying nothing.
static void plain_is_said(void **state)
{
    (void)state;
    static const char *const plain[][2] = {
        {"search", "auto"},     {"beam", "4"},       {"finish", "refill"},   {"margin", "3"},
        {"beam-width", "0"},    {"cube", "naive"},   {"cube-key", "token"},  {"pairs", "topk"},
        {"iterations", "10"},   {"lengths", "5"},    {"length-penalty", "0"}, {"shortlist", "all"},
        {"source-tokens", "on"}, {"softmax", "on"},  {"static-scales", "0"},
    };
    size_t stored = 0;
    for (size_t i = 0; dgm_setting_at(i); i++) stored += dgm_stored_allowed(dgm_setting_at(i)->name);
    assert_int_equal(stored, sizeof plain / sizeof plain[0]);
    for (size_t i = 0; i < stored; i++) {
        dgm_settings s;
        char before[64] = "";
        dgm_settings_default(&s);
        assert_int_equal(dgm_settings_get(&s, plain[i][0], before, sizeof before, NULL), DGM_OK);
        set_ok(&s, plain[i][0], plain[i][1]);
        assert_true(dgm_stored_allowed(plain[i][0]));
        assert_string_not_equal(get(&s, plain[i][0]), before);
    }
}

static void there_and_back(void **state)
{
    (void)state;
    static char values[128][64];
    dgm_settings s, copy;
    dgm_settings_default(&s);
    for (size_t i = 0; i < dgm_setting_row_count; i++) {
        const dgm_setting *r = dgm_setting_at(i);
        if (strncmp(r->name, "no-unk", 6) == 0 || strncmp(r->name, "no-static", 9) == 0) continue; // others' fields
        other_value(r, values[i], sizeof values[i]);
        set_ok(&s, r->name, values[i]);
        assert_string_equal(get(&s, r->name), values[i]);
    }
    assert_true(s.workspace == 1536 && s.seed == UINT64_MAX && s.lmbr.thetas[1] == 2.5f);
    assert_int_equal(s.lmbr.use_thetas, 1);
    dgm_settings_default(&copy); // a struct made of the texts is the same one
    for (size_t i = 0; i < dgm_setting_row_count; i++)
        if (values[i][0]) set_ok(&copy, dgm_setting_at(i)->name, values[i]);
    assert_memory_equal(&copy, &s, sizeof s);
    set_ok(&s, "terms", "second.tsv");
    assert_string_equal(get(&s, "terms"), "terms.tsv second.tsv");
    assert_null(s.terms[2]);
    set_ok(&s, "disable-unk", "1");
    assert_int_equal(s.allow_unk, 0);
    assert_string_equal(get(&s, "allow-unk"), "0");
    dgm_settings_default(&s);
    assert_string_equal(get(&s, "allow-unk"), "");
    assert_string_equal(get(&s, "beam"), "");
    assert_string_equal(get(&s, "length-penalty"), "");
    assert_string_equal(get(&s, "margin"), "");
    assert_string_equal(get(&s, "lmbr-thetas"), "");
    char small[4];
    dgm_error error;
    assert_int_equal(dgm_settings_get(&s, "device", small, 3, &error), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_settings_get(&s, "device", small, 4, &error), DGM_OK);
    assert_string_equal(small, "cpu");
    const uint64_t live = dgm_mem_live();
    dgm_mem_inject(1, 1);
    assert_int_equal(dgm_settings_get(&s, "device", small, 4, &error), DGM_ERR_MEMORY);
    dgm_mem_inject(0, 0);
    assert_string_equal(small, "");
    assert_int_equal(dgm_mem_live(), live);
}

static void bad_texts(void **state)
{
    (void)state;
    refused("no-repeat-ngram", "-3", "no-repeat-ngram must be 0 to 65536, not -3");
    refused("beam", "0", "beam must be 1 to 256, not 0");
    refused("beam-size", "4x", "beam-size must be a whole number from 1 to 256, not '4x'");
    refused("beam", " 4", "beam must be a whole number from 1 to 256, not ' 4'");
    refused("beam", "", "beam must be a whole number from 1 to 256, not ''");
    refused("top-p", "1.5", "top-p must be 0 to 1, not 1.5");
    refused("top-p", "0x1p-1", "top-p must be a number from 0 to 1, not '0x1p-1'");
    refused("margin", "inf", "margin must be a number from 0 to 1e+06, not 'inf'");
    refused("seed", "-1", "seed must be a whole number from 0 to 18446744073709551615, not '-1'");
    refused("workspace", "2X", "workspace must be a size like 512M or 2G, not '2X'");
    refused("precision", "i4", "precision must be one of f32, i16, i8, f16, bf16, not 'i4'");
    refused("finish", "first:257",
            "finish must be one of margin, shrink, mask, refill, huggingface, first, "
            "huggingface-cut, huggingface-early, huggingface-early-cut, "
            "huggingface-never, huggingface-never-cut, marian, ctranslate2, or first:K or "
            "ctranslate2:K with K of 1 to 256, not 'first:257'");
    refused("finish", "refill:2",
            "finish must be one of margin, shrink, mask, refill, huggingface, first, "
            "huggingface-cut, huggingface-early, huggingface-early-cut, "
            "huggingface-never, huggingface-never-cut, marian, ctranslate2, or first:K or "
            "ctranslate2:K with K of 1 to 256, not 'refill:2'");
    refused("long", "short", "long must be one of split, crop, error, not 'short'");
    refused("word-scores", "yes", "word-scores must be 0 or 1, not 'yes'");
    refused("lmbr-thetas", "1,2", "lmbr-thetas must be 5 numbers separated by commas, not '1,2'");
    refused("lmbr-thetas", "1,2,3,4,1e9", "lmbr-thetas must be numbers of -1e+06 to 1e+06, not 1e+09");
    refused("beams", "4", "beams is not a setting");

    dgm_settings s = {0};
    dgm_error error;
    assert_int_equal(dgm_settings_set(&s, "beam", "4", &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "dgm_settings_default"));
    s.size = offsetof(dgm_settings, beam) + 2; // of a program that does not have it
    assert_int_equal(dgm_settings_set(&s, "beam", "4", &error), DGM_ERR_ARGUMENT);
    assert_string_equal(error.text, "beam is newer than this program: it must be compiled again");
    assert_int_equal(s.beam, 0);
    dgm_settings_default(&s);
    for (int i = 0; i < DGM_TERMS_MAX; i++) set_ok(&s, "terms", "a.tsv");
    assert_int_equal(dgm_settings_set(&s, "terms", "a.tsv", &error), DGM_ERR_ARGUMENT);
    assert_string_equal(error.text, "terms may be given at most 64 times");
}

// ---- what dgm_open checks ---------------------------------------------------------------------

static void not_opened(const dgm_settings *s, const char *message)
{
    dgm_translator *t = NULL;
    dgm_error error;
    assert_int_equal(dgm_open(&t, MODEL, s, &error), DGM_ERR_ARGUMENT);
    assert_null(t);
    assert_string_equal(error.text, message);
}

#define NOT_OPENED(field, value, message)                                                          \
    do {                                                                                           \
        dgm_settings s;                                                                            \
        dgm_settings_default(&s);                                                                  \
        s.field = (value);                                                                         \
        not_opened(&s, message);                                                                   \
    } while (0)

static void ranges(void **state)
{
    (void)state;
    NOT_OPENED(no_repeat_ngram, -3, "no-repeat n-gram size must be 0 to 65536, not -3");
    NOT_OPENED(beam, 257, "beam size must be 1 to 256, not 257");
    NOT_OPENED(nbest, 0, "n-best size must be 1 to 256, not 0");
    NOT_OPENED(threads, -1, "number of threads must be 0 to 1024, not -1");
    NOT_OPENED(max_source, 7, "maximum source length must be 8 to 65536, not 7");
    NOT_OPENED(workspace, -5, "workspace must be 1 to 1000000000000000, not -5");
    NOT_OPENED(length_penalty, NAN, "length penalty must be -100 to 100, not nan");
    NOT_OPENED(top_p, 2, "top-p must be 0 to 1, not 2");
    NOT_OPENED(lattice_weight, INFINITY, "lattice weight must be -1e+06 to 1e+06, not inf");
    NOT_OPENED(token_scores, 2, "word scores must be 0 to 1, not 2");
    NOT_OPENED(alignment, 3, "alignment kind must be 0 to 2, not 3");
    NOT_OPENED(unknown, -1, "treatment of unknown words must be 0 to 3, not -1");
    NOT_OPENED(finish, "never",
               "finishing policy must be one of margin, shrink, mask, refill, huggingface, first, "
               "huggingface-cut, huggingface-early, huggingface-early-cut, "
               "huggingface-never, huggingface-never-cut, marian, ctranslate2, or "
               "first:K or ctranslate2:K with K of 1 to 256, not 'never'");
    NOT_OPENED(finish, "first:0",
               "finishing policy must be one of margin, shrink, mask, refill, huggingface, first, "
               "huggingface-cut, huggingface-early, huggingface-early-cut, "
               "huggingface-never, huggingface-never-cut, marian, ctranslate2, or "
               "first:K or ctranslate2:K with K of 1 to 256, not 'first:0'");
    NOT_OPENED(cube_key, "state:x",
               "cube key must be token, none, or state:EPS with EPS of 0 to 1e+06, not 'state:x'");
}

static void finishes(const char *model, const char *asked, int nbest, const char *want)
{
    dgm_translator *t = NULL;
    dgm_error error;
    dgm_settings s;
    dgm_settings_default(&s);
    s.finish = asked;
    s.nbest = nbest;
    if (dgm_open(&t, model, &s, &error) != DGM_OK) fail_msg("%s", error.text);
    assert_string_equal(dgm_describe(t)->finish, want);
    dgm_close(&t);
}

// The number of "first" is the caller's, else the model file's, and at least the n-best size.
static void number_of_first(void **state)
{
    (void)state;
    finishes(MODEL, "first", 1, "first:1");
    finishes(MODEL, "first", 3, "first:3");
    finishes(MODEL, "first:2", 1, "first:2");
    finishes(MODEL, "first:2", 3, "first:3");
    finishes(MODEL, "first:256", 1, "first:256"); // the beam is 4
    finishes(MODEL, "shrink", 3, "shrink");
    finishes(MODEL, "ctranslate2", 3, "ctranslate2");
    finishes(MODEL, "ctranslate2:8", 3, "ctranslate2:8");
    finishes(MODEL, "ctranslate2:2", 3, "ctranslate2:3");

    char path[] = "/tmp/dragoman-first-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    dgm_gguf *g = NULL;
    dgm_gguf_writer *w = NULL;
    dgm_error error;
    assert_int_equal(dgm_gguf_open(&g, MODEL, &error), DGM_OK);
    assert_int_equal(dgm_rewrite_open(&w, g, NULL, &error), DGM_OK);
    dgm_gguf_set_string(w, "dragoman.decode.finish", "first:2");
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) dgm_rewrite_copy(w, dgm_gguf_tensor(g, i));
    assert_int_equal(dgm_rewrite_finish(&w, path, DGM_OK, &error), DGM_OK);
    dgm_gguf_close(&g);
    finishes(path, NULL, 1, "first:2");
    finishes(path, NULL, 3, "first:3");
    finishes(path, "first", 1, "first:1");
    finishes(path, "refill", 1, "refill");
    remove(path);
}

// Every number at its ends, and one step beyond.
static void ends_of_ranges(void **state)
{
    (void)state;
    dgm_error error;
    for (size_t i = 0; i < dgm_setting_row_count; i++) {
        const dgm_setting_row *r = &dgm_setting_rows[i];
        const bool integer = r->pub.kind == DGM_SETTING_INT;
        if (!integer && r->pub.kind != DGM_SETTING_FLOAT) continue;
        for (int end = 0; end < 4; end++) {
            dgm_settings s;
            dgm_settings_default(&s);
            s.evidence = 1;
            void *at = (char *)&s + r->offset;
            const double edge = end & 1 ? r->pub.max : r->pub.min;
            const float beyond = nextafterf((float)edge, end & 1 ? INFINITY : -INFINITY);
            if (integer)
                *(int32_t *)at = (int32_t)edge + (end < 2 ? 0 : end & 1 ? 1 : -1);
            else
                *(float *)at = end < 2 ? (float)edge : beyond;
            const bool off = integer && *(int32_t *)at == (int32_t)r->pub.standard;
            const dgm_status want = end < 2 || off ? DGM_OK : DGM_ERR_ARGUMENT;
            if (dgm_settings_check_values(&s, &error) != want)
                fail_msg("%s: end %d", r->pub.name, end);
        }
    }
}

// Names of CTranslate2, Marian, fairseq and Sockeye, and of the library of transformers.
static void test_synonyms(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"beam_size", "beam", "3"},
        {"beam-size", "beam", "3"},
        {"num_beams", "beam", "3"},
        {"num_hypotheses", "nbest", "2"},
        {"n-best", "nbest", "2"},
        {"n_best", "nbest", "2"},
        {"nbest-size", "nbest", "2"},
        {"num_return_sequences", "nbest", "2"},
        {"compute_type", "precision", "i16"},
        {"gemm-precision", "precision", "i16"},
        {"gemm-type", "precision", "i16"},
        {"dtype", "precision", "i16"},
        {"length_penalty", "length-penalty", "0.5"},
        {"normalize", "length-penalty", "0.5"},
        {"lenpen", "length-penalty", "0.5"},
        {"coverage_penalty", "coverage-penalty", "0.5"},
        {"repetition_penalty", "repetition-penalty", "2"},
        {"no_repeat_ngram_size", "no-repeat-ngram", "3"},
        {"disable_unk", "no-unk", "1"},
        {"allow-unk", "allow-unk", "1"},
        {"max_input_length", "max-source", "100"},
        {"max_decoding_length", "max-length", "100"},
        {"max-output-length", "max-length", "100"},
        {"min_decoding_length", "min-length", "5"},
        {"min-len", "min-length", "5"},
        {"max-length-factor", "max-length-factor", "3"},
        {"word-penalty", "word-penalty", "1"},
        {"sampling_topk", "top-k", "5"},
        {"sampling_topp", "top-p", "0.5"},
        {"sampling_temperature", "temperature", "0.5"},
        {"cpu-threads", "threads", "2"},
        {"inter_threads", "threads", "2"},
        {"mini-batch", "batch", "8"},
        {"max_batch_size", "batch", "8"},
        {"batch_size", "batch", "8"},
        {"mini-batch-words", "batch-tokens", "500"},
        {"max-tokens", "batch-tokens", "500"},
        {"diversity_rate", "diversity", "0.5"},
        {"iter-decode-with-beam", "lengths", "2"},
        {"source_lang", "source", "en"},
        {"target-lang", "target", "de"},
        {"src_lang", "source", "en"},
        {"tgt-lang", "target", "de"},
        {"from", "source", "en"},
        {"to", "target", "de"},
        {"print-alignment", "alignment", "tokens"},
        {"word_scores", "word-scores", "1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char value[64];
        dgm_settings s;
        dgm_error err = {{0}};
        dgm_settings_default(&s);
        const dgm_setting *found = dgm_setting_find(rows[i][0]);
        if (!found || strcmp(found->name, rows[i][1]) != 0) fail_msg("%s is not %s", rows[i][0], rows[i][1]);
        if (dgm_settings_set(&s, rows[i][0], rows[i][2], &err) != DGM_OK) fail_msg("%s", err.text);
        assert_int_equal(dgm_settings_get(&s, rows[i][1], value, sizeof value, NULL), DGM_OK);
        assert_string_equal(value, rows[i][2]);
    }
    assert_null(dgm_setting_find("beam_sizes"));
    assert_null(dgm_setting_find("beam-"));
    assert_null(dgm_setting_find(""));
}

// Precisions by the names of others, set by name and in the struct.
static void test_precision_names(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"int8", "i8"},          {"int16", "i16"},        {"float32", "f32"},      {"float16", "f16"},
        {"bfloat16", "bf16"},    {"fp32", "f32"},         {"int8_float32", "i8"},  {"intgemm8", "i8"},
        {"intgemm16", "i16"},    {"int8shiftAll", "i8"},  {"int8shiftAlphaAll", "i8"}, {"i8", "i8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char value[64];
        dgm_settings s;
        dgm_settings_default(&s);
        assert_int_equal(dgm_settings_set(&s, "precision", rows[i][0], NULL), DGM_OK);
        assert_int_equal(dgm_settings_get(&s, "precision", value, sizeof value, NULL), DGM_OK);
        assert_string_equal(value, rows[i][1]);
    }
    dgm_settings s;
    dgm_error err = {{0}};
    dgm_translator *t = NULL;
    dgm_settings_default(&s);
    s.precision = "int16";
    if (dgm_open(&t, "tests/data/models/transformer-pieces.gguf", &s, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_string_equal(dgm_describe(t)->precision, "i16");
    dgm_close(&t);
    s.precision = "int4";
    assert_int_equal(dgm_open(&t, "tests/data/models/transformer-pieces.gguf", &s, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "precision must be one of f32, i16, i8, f16, bf16, not 'int4'");
}

// Help of translate has fifteen places; those that no setting takes are options of the program.
static void everyday_settings_have_a_place(void **state)
{
    (void)state;
    int taken[16] = {0}, count = 0;
    for (size_t i = 0; dgm_setting_at(i); i++) {
        const dgm_setting *r = dgm_setting_at(i);
        assert_in_range(r->everyday, 0, 15);
        if (r->everyday == 0) continue;
        if (taken[r->everyday]++) fail_msg("%s has a place that another has, too", r->name);
        if (r->flags & DGM_SETTING_NO_OPTION) fail_msg("%s is no option", r->name);
        count++;
    }
    assert_int_equal(count, 7);
    assert_int_equal(dgm_setting_find("source")->everyday, 2);
    assert_int_equal(dgm_setting_find("beam")->everyday, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_synonyms),
        cmocka_unit_test(test_precision_names),
        cmocka_unit_test(covers_the_struct), cmocka_unit_test(names_are_unique),
        cmocka_unit_test(names_are_the_engines), cmocka_unit_test(defaults),
        cmocka_unit_test(plain_is_said),
        cmocka_unit_test(there_and_back),    cmocka_unit_test(bad_texts),
        cmocka_unit_test(ranges),            cmocka_unit_test(ends_of_ranges),
        cmocka_unit_test(number_of_first),
        cmocka_unit_test(everyday_settings_have_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
