// SPDX-License-Identifier: MIT
// Recurrent models of Marian, Nematus and dl4mt against what the originals translate with them:
// tests/data/marian_rnn holds Marian's own translations (tests/oracle/make_marian_rnn.py), tests/data/nematus
// those of Nematus' formulas (make_nematus.py). Damaged and odd files end in a sentence.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "dragoman/tools.h"
#include "engine.h"
#include "failures.h"
#include "format/gguf.h"
#include "import/marian_rnn.h"
#include "import/npz.h"
#include "packed.h"
#include "scratch.h"

#define MARIAN "tests/data/marian_rnn/"
#define NEMATUS "tests/data/nematus/"

enum { LINES = 270 };

// ---- translations to compare with ---------------------------------------------------------------

typedef struct golden {
    char *file, *setting;
    int line;
    double score;
    const char *text;
} golden;

// The next row of setting, line, score, text; false at the end.
static bool next_row(char **at, golden *g)
{
    char *fields[4];
    if (!**at) return false;
    for (int i = 0; i < 4; i++) {
        fields[i] = *at;
        *at += strcspn(*at, "\t\n");
        assert_int_equal(**at, i < 3 ? '\t' : '\n');
        *(*at)++ = 0;
    }
    g->setting = fields[0];
    g->line = atoi(fields[1]);
    g->score = atof(fields[2]);
    g->text = fields[3];
    return true;
}

static char **read_lines(const char *path, int *count)
{
    char *text = get(path), **lines = calloc(LINES, sizeof *lines);
    assert_non_null(lines);
    *count = 0;
    for (char *at = strtok(text, "\n"); at && *count < LINES; at = strtok(NULL, "\n"))
        lines[(*count)++] = at;
    return lines;
}

static void free_lines(char **lines)
{
    free(lines[0]);
    free(lines);
}

static const char *import_as(const char *format, const char *path, const char *vocabs)
{
    dgm_import_options o;
    dgm_error err;
    dgm_import_default(&o);
    o.vocabs = vocabs;
    const char *out = in_folder("model.gguf");
    if (dgm_import(format, path, out, &o, &err) != DGM_OK) fail_msg("%s: %s", path, err.text);
    return out;
}

static dgm_translator *open_model(const char *path, int beam, float length, float word)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.raw = 1;
    s.precision = "f32";
    s.beam = beam;
    s.nbest = beam;
    s.finish = "marian";
    s.length_penalty = length;
    s.word_penalty = word;
    return open_with(&s, path);
}

// ---- Marian -------------------------------------------------------------------------------------

typedef struct setting {
    const char *name;
    int beam;
    float length, word;
    int rows; // at least
} setting;

static const setting settings[] = {
    {"beam1", 1, 0.0f, 0.0f, 190}, {"beam6", 6, 0.6f, 0.0f, 190}, {"penalty", 6, 0.0f, 0.4f, 60}};

// How many of Marian's translations under a setting are ours, and that their scores are.
static void compare(const char *name, const char *model, const setting *how, char **lines,
                    int count)
{
    char path[96];
    snprintf(path, sizeof path, MARIAN "%s.tsv.gz", name);
    dgm_translator *t = open_model(model, how->beam, how->length, how->word);
    dgm_results *r = NULL;
    dgm_error err;
    assert_int_equal(dgm_translate(t, (const char *const *)lines, (size_t)count, &r, &err), DGM_OK);
    dgm_mapfile text = packed_file(path);
    char *at = (char *)(uintptr_t)text.data;
    int rows = 0, same = 0, rank = 0, last = -1;
    for (golden g; next_row(&at, &g);) {
        if (strcmp(g.setting, how->name) != 0) continue;
        rank = g.line == last ? rank + 1 : 0;
        last = g.line;
        if (strlen(g.text) > 2 * strlen(lines[g.line]))
            continue; // a runaway: Marian cut it by the longest source in its batch
        rows++;
        const dgm_result *found = r->items[g.line];
        if ((size_t)rank >= found->count) continue;
        const dgm_translation *best = found->translations[rank];
        if (strcmp(best->text, g.text) != 0) continue;
        same++;
        if (fabs((double)best->score - g.score) > 1e-3)
            fail_msg("%s, %s, line %d: %g, Marian has %g", name, how->name, g.line,
                     (double)best->score, g.score);
    }
    assert_true(rows >= how->rows);
    if (same * 100 < rows * 99)
        fail_msg("%s, %s: %d of %d are Marian's", name, how->name, same, rows);
    dgm_mapfile_close(&text);
    dgm_results_free(&r);
    dgm_close(&t);
}

static void test_marian(void **state)
{
    (void)state;
    static const char *const names[] = {
        "s2s-gru",   "s2s-norm", "s2s-lstm",  "s2s-deep",     "s2s-alternating", "s2s-uni-lstm",
        "s2s-mixed", "amun",     "amun-norm", "nematus-norm", "nematus-deep"};
    int count;
    char **lines = read_lines(MARIAN "text.en", &count);
    assert_true(count >= 200);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[96];
        snprintf(path, sizeof path, MARIAN "%s.npz", names[i]);
        const char *model = import_as("marian", path, MARIAN "joint.spm");
        for (size_t k = 0; k < sizeof settings / sizeof settings[0]; k++)
            compare(names[i], model, &settings[k], lines, settings[k].rows < 100 ? 40 : count);
    }
    free_lines(lines);
}

// ---- Nematus ------------------------------------------------------------------------------------

// Rows of source, score, output.
static void compare_nematus(const char *name, const char *model)
{
    char path[96];
    int count;
    snprintf(path, sizeof path, NEMATUS "%s.tsv", name);
    char **rows = read_lines(path, &count);
    dgm_translator *t = open_model(model, 1, 0.0f, 0.0f);
    assert_true(count >= 12);
    for (int i = 0; i < count; i++) {
        const char *source = strtok(rows[i], "\t"), *score = strtok(NULL, "\t");
        const char *text = strtok(NULL, "\t");
        dgm_results *r = translate_one(t, source);
        assert_string_equal(dgm_result_text(r->items[0]), text);
        assert_true(fabs((double)r->items[0]->translations[0]->score - atof(score)) < 1e-3);
        dgm_results_free(&r);
    }
    dgm_close(&t);
    free_lines(rows);
}

static void test_nematus(void **state)
{
    (void)state;
    compare_nematus("theano", import_as("nematus", NEMATUS "theano.npz", NULL));
    compare_nematus("tf", import_as("nematus", NEMATUS "tf.npz", NULL));
    compare_nematus("dl4mt", import_as("nematus", NEMATUS "dl4mt.npz", NULL));
}

static const char *copy_file(const char *from, const char *to)
{
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, from, NULL), DGM_OK);
    const char *path = put(to, f.data, f.size);
    dgm_mapfile_close(&f);
    return path;
}

// A file of dl4mt alone, and one dictionary for both sides.
static void test_without_settings(void **state)
{
    (void)state;
    const char *alone = copy_file(NEMATUS "dl4mt.npz", "alone.npz");
    compare_nematus("dl4mt", import_as("nematus", alone, NEMATUS "dl4mt.vocab.json"));
    compare_nematus("dl4mt", import_as("nematus", alone,
                                       NEMATUS "dl4mt.vocab.json," NEMATUS "dl4mt.vocab.json"));
}

// The model under its usual name in a folder.
static void test_folder(void **state)
{
    (void)state;
    copy_file(NEMATUS "tf.npz", "model.npz");
    copy_file(NEMATUS "tf.npz.json", "model.npz.json");
    copy_file(NEMATUS "tf.vocab.json", "tf.vocab.json");
    compare_nematus("tf", import_as("nematus", folder, NULL));
}

// With codes words are split here: "w7" and "w8" are merged, "w9" is left in pieces, which are unknown.
static void test_codes(void **state)
{
    (void)state;
    dgm_import_options o;
    dgm_error err = {""};
    dgm_import_default(&o);
    o.vocabs = NEMATUS "dl4mt.vocab.json";
    o.bpe = put_text("codes", "#version: 0.2\nw 7</w>\nw 8</w>\n");
    const char *model = in_folder("codes.gguf");
    if (dgm_import("nematus", NEMATUS "dl4mt.npz", model, &o, &err) != DGM_OK)
        fail_msg("%s", err.text);
    dgm_translator *t = open_model(model, 1, 0.0f, 0.0f);
    dgm_results *r = translate_one(t, "w7 w8 w9");
    assert_int_equal(r->items[0]->source_tokens, 2 + 2 + 1); // w@@, 9 and the end
    dgm_results_free(&r);
    dgm_close(&t);
    o.bpe = put_text("codes", "#version: 7\n");
    assert_int_not_equal(dgm_import("nematus", NEMATUS "dl4mt.npz", model, &o, &err), DGM_OK);
    if (!strstr(err.text, "codes")) fail_msg("'%s' does not name the codes", err.text);
}

static const char *text_of(const char *model, const char *key)
{
    static char text[64];
    const char *value = "";
    dgm_gguf *g;
    assert_int_equal(dgm_gguf_open(&g, model, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_get_string(g, key, DGM_OPTIONAL, &value, NULL), DGM_OK);
    snprintf(text, sizeof text, "%s", value);
    dgm_gguf_close(&g);
    return text;
}

// A script beside the weights says what text went through: "w7." is two tokens of Moses then, and codes lie there, too.
static void test_script(void **state)
{
    (void)state;
    dgm_import_options o;
    dgm_error err = {""};
    dgm_import_default(&o);
    assert_int_equal(mkdir(in_folder("wmt"), 0777), 0);
    copy_file(NEMATUS "dl4mt.npz", "wmt/model.npz");
    copy_file(NEMATUS "dl4mt.vocab.json", "wmt/vocab.de.json");
    put_text("wmt/model.npz.json", "{\"dictionaries\": [\"vocab.de.json\", \"/data/vocab.de.json\"]}");
    put_text("wmt/ende.bpe", "#version: 0.2\nw 7</w>\nw 8</w>\n");
    put_text("wmt/preprocess.sh", "$moses/tokenizer/tokenizer.perl -a -l en | \\\n$bpe/apply_bpe.py -c ende.bpe\n");
    const char *model = in_folder("script.gguf");
    if (dgm_import("nematus", in_folder("wmt"), model, &o, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_string_equal(text_of(model, "dragoman.source.vocab.kind"), "bpe");
    assert_string_equal(text_of(model, "dragoman.source.vocab.tokenizer"), "sacremoses");
    assert_string_equal(text_of(model, "dragoman.source.vocab.language"), "en");
    assert_string_equal(text_of(model, "dragoman.target.vocab.language"), "de");
    dgm_translator *t = open_model(model, 1, 0.0f, 0.0f);
    dgm_results *r = translate_one(t, "w7, w8.");
    assert_int_equal(r->items[0]->source_tokens, 4 + 1);
    dgm_results_free(&r);
    dgm_close(&t);
    assert_int_equal(unlink(in_folder("wmt/ende.bpe")), 0); // the codes that the script asks for are missing
    if (dgm_import("nematus", in_folder("wmt"), model, &o, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_string_equal(text_of(model, "dragoman.source.vocab.kind"), "words");
    assert_string_equal(text_of(model, "dragoman.source.vocab.tokenizer"), "none");
    put_text("wmt/preprocess.sh", "$moses/tokenizer/tokenizer.perl\n");
    if (dgm_import("nematus", in_folder("wmt"), model, &o, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_string_equal(text_of(model, "dragoman.target.vocab.tokenizer"), "sacremoses");
}

// ---- what is refused ----------------------------------------------------------------------------

static void refused(const char *path, const char *vocabs, const char *text)
{
    dgm_import_options o;
    dgm_error err = {""};
    dgm_import_default(&o);
    o.vocabs = vocabs;
    assert_int_not_equal(dgm_import("nematus", path, in_folder("no.gguf"), &o, &err), DGM_OK);
    if (!strstr(err.text, text)) fail_msg("'%s' does not say '%s'", err.text, text);
    if (!strstr(err.text, folder)) fail_msg("'%s' does not name its file", err.text);
}

// Settings that the weights contradict, and what this program has not.
static void test_settings(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"\"enc_depth\": 2", "rnn_enc_depth is 2, but the weights are those of 3"},
        {"\"dec_base_recurrence_transition_depth\": 2", "base_transition_depth is 2"},
        {"\"layer_normalisation\": false", "rnn_layer_normalisation is false"},
        {"\"dec_deep_context\": true", "rnn_dec_deep_context is true"},
        {"\"dim\": 512", "states of 512"},
        {"\"factors\": 2", "models with factors cannot be imported"},
        {"\"model_type\": \"transformer\"", "model_type is 'transformer'"},
        {"\"lexical_model\": true", "a lexical model"},
        {"\"softmax_mixture_size\": 3", "softmax_mixture_size is 3"},
        {"\"output_hidden_activation\": \"prelu\"", "'prelu'; tanh and linear"},
        {"\"layer_normalisation_type\": \"rmsnorm\"", "'rmsnorm'; only layernorm"},
        {"\"dim_word\": \"seven\"", "dim_word"},
    };
    char model[128]; // in_folder forgets
    snprintf(model, sizeof model, "%s", copy_file(NEMATUS "theano.npz", "odd.npz"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "{%s}", cases[i][0]);
        put_text("odd.npz.json", text);
        refused(model, NEMATUS "theano.vocab.json", cases[i][1]);
    }
    put_text("odd.npz.json", "{\"dictionaries\": [\"one.json\"]}");
    refused(model, NULL, "dictionaries must be a list of two files");
    put_text("odd.npz.json", "{\"dictionaries\": [\"/a/none.json\", \"/a/none.json\"]}");
    refused(model, NULL, "dictionary '/a/none.json' is not in its folder");
    put_text("odd.npz.json", "[1]");
    refused(model, NULL, "has no settings");
    put_text("odd.npz.json", "{");
    refused(model, NULL, "odd.npz.json");
    refused(copy_file(NEMATUS "theano.npz", "bare.npz"), NULL, "has no settings beside it");
}

static void test_dictionaries(void **state)
{
    (void)state;
    const char *model = copy_file(NEMATUS "theano.npz", "words.npz");
    refused(model, put_text("v.json", "{\"a\": 3, \"b\": 3}"), "words 'a' and 'b' have one number");
    refused(model, put_text("v.json", "{\"a\": \"3\"}"), "word 'a' has no number");
    refused(model, put_text("v.json", "[]"), "not a list of words");
}

// Settings of Marian that are none of ours; weights are not looked at before.
static void test_marian_settings(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"type\": \"multi-s2s\"}", "type 'multi-s2s' is none of s2s, amun and nematus"},
        {"{\"type\": \"s2s\", \"enc-cell\": \"mlstm\"}",
         "enc-cell is 'mlstm'; gru, gru-nematus and lstm can be imported"},
        {"{\"type\": \"s2s\", \"dec-cell\": \"sru\"}",
         "dec-cell is 'sru'; gru, gru-nematus and lstm can be imported"},
        {"{\"type\": \"s2s\", \"enc-type\": \"sideways\"}",
         "enc-type is 'sideways'; bidirectional, bi-unidirectional and alternating can be "
         "imported"},
        {"{\"type\": \"s2s\", \"dec-cell-base-depth\": 1}",
         "dec-cell-base-depth is 1; 2 and more can be imported"},
        {"{\"type\": \"s2s\", \"lemma-dim-emb\": 5}",
         "lemma-dim-emb is 5: models with factors cannot be imported"},
        {"{\"type\": \"s2s\", \"ulr\": true}",
         "ulr is true: models with universal embeddings cannot be imported"},
        {"{\"type\": \"s2s\", \"dec-cell\": \"gru-nematus\", \"dec-depth\": 2, "
         "\"dec-cell-high-depth\": 2}",
         "dec-cell gru-nematus has no dec-cell-high-depth above 1"},
        {"{\"type\": \"s2s\", \"enc-type\": \"bi-unidirectional\", \"enc-cell\": \"gru-nematus\", "
         "\"enc-depth\": 2, \"enc-cell-depth\": 2}",
         "enc-cell gru-nematus has no enc-cell-depth above 1 in a bi-unidirectional encoder"},
        // weights of another model than the settings say
        {"{\"type\": \"s2s\", \"enc-cell\": \"lstm\"}",
         "tensor 'encoder_W' has 6 rows and 14 columns, expected 6 and 28"},
        {"{\"type\": \"s2s\", \"enc-depth\": 2}", "tensor 'encoder_2_W' is missing"},
        {"{\"type\": \"s2s\", \"layer-normalization\": true}",
         "tensor 'encoder_gamma1' is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dgm_import_job job = {.dir = "x", .storage = -1};
        dgm_checkpoint weights;
        dgm_store *store;
        dgm_recurrent m;
        json_t *config;
        dgm_error err = {""};
        assert_int_equal(dgm_gguf_writer_open(&job.w, &err), DGM_OK);
        assert_int_equal(dgm_npz_open(&store, NEMATUS "dl4mt.npz", &err), DGM_OK);
        assert_int_equal(dgm_checkpoint_open(&weights, &job, store, &err), DGM_OK);
        assert_int_equal(dgm_json_parse(&config, cases[i][0], strlen(cases[i][0]), &err), DGM_OK);
        dgm_composer c = {.weights = &weights};
        assert_int_not_equal(dgm_marian_recurrent(&c, config, &m, &err), DGM_OK);
        assert_string_equal(err.text, cases[i][1]);
        json_decref(config);
        dgm_composer_close(&c);
        dgm_checkpoint_close(&weights);
        dgm_gguf_writer_close(&job.w);
        dgm_import_free_weights(&job);
    }
}

// ---- damage -------------------------------------------------------------------------------------

// Bytes changed or cut off: an error that names the file, or, where nobody can tell, a model.
static void test_damage(void **state)
{
    (void)state;
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, NEMATUS "dl4mt.npz", NULL), DGM_OK);
    uint8_t *bytes = malloc(f.size);
    uint32_t random = 7;
    int failed = 0;
    dgm_import_options o;
    dgm_import_default(&o);
    o.vocabs = NEMATUS "dl4mt.vocab.json";
    for (int i = 0; i < 200; i++) {
        dgm_error err = {""};
        size_t size = f.size;
        memcpy(bytes, f.data, f.size);
        for (int k = 0; k < 1 + i % 4; k++) {
            random = random * 1664525u + 1013904223u;
            bytes[random % f.size] ^= (uint8_t)(1u << (random >> 28 & 7));
        }
        if (i % 5 == 0) size = random % f.size;
        const char *path = put("damaged.npz", bytes, size);
        if (dgm_import("nematus", path, in_folder("damaged.gguf"), &o, &err) == DGM_OK) continue;
        if (!strstr(err.text, "damaged.npz")) fail_msg("'%s' does not name its file", err.text);
        failed++;
    }
    assert_in_range(failed, 150, 200);
    free(bytes);
    dgm_mapfile_close(&f);
}

static void test_memory(void **state)
{
    (void)state;
    dgm_import_options o;
    dgm_error err;
    dgm_import_default(&o);
    ALLOCATIONS_FAIL(
        dgm_import("nematus", NEMATUS "dl4mt.npz", in_folder("memory.gguf"), &o, &err));
}

// The same of Marian's models, a few hundred of their many allocations each; no output comes into being.
static void test_marian_memory(void **state)
{
    (void)state;
    static const char *const names[] = {"s2s-norm", "s2s-alternating", "amun-norm", "nematus-deep"};
    const char *out = in_folder("memory.gguf");
    dgm_import_options o;
    dgm_import_default(&o);
    o.vocabs = MARIAN "joint.spm";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[96];
        snprintf(path, sizeof path, MARIAN "%s.npz", names[i]);
        unlink(out);
        dgm_status st = DGM_ERR_MEMORY;
        for (uint64_t n = 1 + i; st != DGM_OK; n += 1 + n / 24) {
            const uint64_t live = dgm_mem_live();
            dgm_error err = {""};
            dgm_mem_inject(n, 1);
            st = dgm_import("marian", path, out, &o, &err);
            dgm_mem_inject(0, 0);
            if (st != DGM_OK && st != DGM_ERR_MEMORY)
                fail_msg("%s, %d at %d: %s", names[i], (int)st, (int)n, err.text);
            assert_true(st == DGM_OK || !dgm_file_exists(out));
            assert_int_equal(dgm_mem_live(), live);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marian),
        cmocka_unit_test(test_nematus),
        cmocka_unit_test(test_without_settings),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_dictionaries),
        cmocka_unit_test(test_marian_settings),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_marian_memory),
        cmocka_unit_test(test_script),
    };
    if (!scratch_open()) return 1;
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
