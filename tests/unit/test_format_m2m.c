// SPDX-License-Identifier: MIT
// The importers of M2M100, NLLB and of MarianMT to many languages against Hugging Face transformers:
// tests/data/format/m2m.json, made by tests/oracle/make_m2m.py, holds configs, shapes, languages and
// what transformers computes. Weights are the script's formula, so this test writes the same folder,
// imports it, and compares logits of every step to 1e-4, greedy outputs, and the ids of every language;
// of MarianMT also text through the public functions.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "backend/ops.h"
#include "base/bytes.h"
#include "base/mapfile.h"
#include "dragoman/dragoman.h"
#include "dragoman/tools.h"
#include "import/import.h"
#include "model/model.h"
#include "spm_remembers.h"

static json_t *golden;
static char folder[] = "/tmp/dragoman-m2m-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    golden = json_load_file("tests/data/format/m2m.json", 0, NULL);
    return golden && mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"config.json", "tokenizer_config.json", "vocab.json",
                                        "sentencepiece.bpe.model", "model.safetensors", "out.gguf",
                                        "source.spm", "target.spm"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    json_decref(golden);
    return 0;
}

static void write_file(const char *name, const void *data, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(dgm_file_write(path, data, size, NULL), DGM_OK);
}

static void write_json(const char *name, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT);
    write_file(name, text, strlen(text));
    free(text);
}

// weight() of the script; biases: its factor.
static double biases = 1;
static double weight_at(const char *name, uint32_t i)
{
    uint32_t h = 5;
    for (const char *p = name; *p; p++) h = h * 31u + (unsigned char)*p;
    uint32_t x = ((h + i * 2654435761u) * 2246822519u) >> 16;
    double v = ((int)(x % 129u) - 64) / 128.0;
    size_t n = strlen(name);
    if (strstr(name, "layer_norm.weight")) return 1.0 + v / 2;
    if (n > 5 && strcmp(name + n - 5, ".bias") == 0) return v * biases;
    return strcmp(name, "model.shared.weight") == 0 ? 2 * v : v;
}

static void write_tensors(const json_t *tensors)
{
    dgm_writer header = {0}, data = {0}, file = {0};
    const char *name;
    json_t *shape;
    dgm_write_text(&header, "{");
    json_object_foreach((json_t *)tensors, name, shape)
    {
        size_t begin = data.size;
        uint32_t count = 1;
        char *dims = json_dumps(shape, JSON_COMPACT);
        for (size_t i = 0; i < json_array_size(shape); i++)
            count *= (uint32_t)json_integer_value(json_array_get(shape, i));
        for (uint32_t i = 0; i < count; i++) dgm_write_f32(&data, (float)weight_at(name, i));
        dgm_write_format(&header,
                         "%s\"%s\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                         header.size > 1 ? "," : "", name, dims, begin, data.size);
        free(dims);
    }
    dgm_write_text(&header, "}");
    dgm_write_u64(&file, header.size);
    dgm_write_bytes(&file, header.data, header.size);
    dgm_write_bytes(&file, data.data, data.size);
    assert_false(file.failed || header.failed || data.failed);
    write_file("model.safetensors", file.data, file.size);
    dgm_writer_free(&header);
    dgm_writer_free(&data);
    dgm_writer_free(&file);
}

// {1: spelling, 2: score, 3: kind} of every piece.
static void write_pieces(const char *name)
{
    dgm_writer w = {0};
    json_t *pieces = json_object_get(golden, "pieces");
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        const char *text = json_string_value(json_array_get(pieces, i));
        size_t n = strlen(text);
        dgm_write_u8(&w, 1 << 3 | 2);
        dgm_write_u8(&w, (uint8_t)(n + 9));
        dgm_write_u8(&w, 1 << 3 | 2);
        dgm_write_u8(&w, (uint8_t)n);
        dgm_write_text(&w, text);
        dgm_write_u8(&w, 2 << 3 | 5);
        dgm_write_f32(&w, -(float)i);
        dgm_write_u8(&w, 3 << 3);
        dgm_write_u8(&w, i == 0 ? 2 : i < 3 ? 3 : 1);
    }
    write_remembered(&w);
    write_file(name, w.data, w.size);
    dgm_writer_free(&w);
}

static void write_folder(const json_t *model)
{
    json_t *list = json_object_get(model, "languages");
    bool nllb = strncmp(json_string_value(json_object_get(model, "name")), "nllb", 4) == 0;
    json_t *names = json_array();
    for (size_t i = 0; i < json_array_size(list); i++)
        json_array_append(names, json_array_get(json_array_get(list, i), 0));
    json_t *tokenizer = json_pack("{s:s,s:b}", "tokenizer_class",
                                  nllb ? "NllbTokenizer" : "M2M100Tokenizer", "legacy_behaviour",
                                  json_is_true(json_object_get(model, "legacy")));
    if (nllb) json_object_set(tokenizer, "additional_special_tokens", names);
    char path[128];
    snprintf(path, sizeof path, "%s/vocab.json", folder);
    unlink(path);
    if (!nllb) write_json("vocab.json", json_object_get(golden, "vocab"));
    write_json("tokenizer_config.json", tokenizer);
    write_json("config.json", json_object_get(model, "config"));
    write_tensors(json_object_get(model, "tensors"));
    write_pieces("sentencepiece.bpe.model");
    json_decref(names);
    json_decref(tokenizer);
}

typedef struct loaded {
    dgm_gguf *file;
    dgm_backend *backend;
    dgm_model *model;
    dgm_exec *exec;
    dgm_state *state;
} loaded;

// Imports the folder as it is now and loads what came out.
static void load_folder(loaded *m)
{
    char path[128];
    dgm_error err = {{0}};
    const dgm_limits limits = {.slots = 1, .rows = 1, .source = 32, .target = 32};
    memset(m, 0, sizeof *m);
    snprintf(path, sizeof path, "%s/out.gguf", folder);
    dgm_status st = dgm_import_run("huggingface", folder, path, NULL, NULL, &err);
    if (st == DGM_OK) st = dgm_gguf_open(&m->file, path, &err);
    if (st == DGM_OK) st = dgm_backend_open(&m->backend, "cpu", NULL, &err);
    if (st == DGM_OK)
        st = dgm_model_load(&m->model, m->backend, m->file, DGM_PRECISION_F32, &err);
    if (st == DGM_OK)
        st = dgm_exec_open(m->backend,
                           dgm_bytes_add(dgm_state_bytes(m->model, &limits), dgm_bytes_both(1 << 20)),
                           &m->exec, &err);
    if (st == DGM_OK) st = dgm_state_open(m->model, m->exec, &limits, &m->state, &err);
    if (st != DGM_OK) fail_msg("%s", err.text);
}

static void open_model(loaded *m, const json_t *model)
{
    write_folder(model);
    load_folder(m);
}

static void close_model(loaded *m)
{
    dgm_state_close(&m->state);
    dgm_exec_close(&m->exec);
    dgm_model_free(&m->model);
    dgm_backend_close(&m->backend);
    dgm_gguf_close(&m->file);
}

static int ids_of(const json_t *list, int32_t *out, int most)
{
    int n = (int)json_array_size(list);
    assert_true(n <= most);
    for (int i = 0; i < n; i++) out[i] = (int32_t)json_integer_value(json_array_get(list, (size_t)i));
    return n;
}

// Feeds a token and gives the logits of the step.
static void step(loaded *m, int32_t *row, int32_t token, float *logits)
{
    dgm_error err = {{0}};
    int32_t next;
    dgm_step_row in = {*row, {token, DGM_NO_TOKEN}};
    dgm_step_result out = {.rows = &next};
    if (dgm_step(m->state, 1, &in, &out, &err) != DGM_OK) fail_msg("%s", err.text);
    *row = next;
    dgm_retain(m->state, 1, row);
    dgm_mark mark = dgm_exec_mark(m->exec);
    dgm_mat y = dgm_exec_mat(m->exec, 1, dgm_model_describe(m->model)->target_vocab);
    dgm_op_linear(m->exec, y, out.hidden, dgm_model_output(m->model), DGM_ACT_NONE, NULL);
    dgm_op_read(m->exec, logits, y);
    dgm_exec_reset(m->exec, mark);
}

static int32_t enter(loaded *m, const json_t *run, int32_t *slot)
{
    int32_t ids[32], row;
    dgm_error err = {{0}};
    dgm_source source = {ids, ids_of(json_object_get(run, "ids"), ids, 32)};
    if (dgm_encode(m->state, 1, &source, slot, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_start(m->state, 1, slot, &row, &err), DGM_OK);
    return row;
}

static void leave(loaded *m, int32_t slot)
{
    dgm_retain(m->state, 0, NULL);
    dgm_release(m->state, 1, &slot);
}

static void check_forced(loaded *m, const json_t *run, const char *name)
{
    static float got[4096];
    int32_t forced[32], slot, row = enter(m, run, &slot);
    int steps = ids_of(json_object_get(run, "forced"), forced, 32);
    for (int t = 0; t < steps; t++) {
        json_t *expected = json_array_get(json_object_get(run, "logits"), (size_t)t);
        double peak = 0, off = 0;
        step(m, &row, forced[t], got);
        for (size_t i = 0; i < json_array_size(expected); i++) {
            double v = json_real_value(json_array_get(expected, i));
            peak = fmax(peak, fabs(v));
            off = fmax(off, fabs(v - got[i]));
        }
        if (!(off <= 1e-4 * peak)) fail_msg("%s, step %d: logits differ by %g of %g", name, t, off, peak);
    }
    leave(m, slot);
}

static void check_greedy(loaded *m, const json_t *run)
{
    static float got[4096];
    int32_t expected[32], forced[32], slot, row = enter(m, run, &slot);
    int count = ids_of(json_object_get(run, "greedy"), expected, 32);
    int vocabulary = dgm_model_describe(m->model)->target_vocab;
    ids_of(json_object_get(run, "forced"), forced, 32);
    step(m, &row, forced[0], got);
    step(m, &row, forced[1], got); // the language
    for (int t = 0; t < count; t++) {
        int best = 0;
        for (int i = 1; i < vocabulary; i++)
            if (got[i] > got[best]) best = i;
        assert_int_equal(best, expected[t]);
        if (t + 1 < count) step(m, &row, best, got);
    }
    leave(m, slot);
}

// Names to tokens, for every language and both sides; what a direction puts around a sentence.
static void check_languages(loaded *m, const json_t *model)
{
    const dgm_model_info *info = dgm_model_describe(m->model);
    const dgm_languages *l = info->languages;
    json_t *list = json_object_get(model, "languages");
    int n = (int)json_array_size(list);
    bool legacy = json_is_true(json_object_get(model, "legacy"));
    dgm_error err = {{0}};
    assert_int_equal(l->count[0], n);
    assert_int_equal(dgm_languages_directions(l), n * (n - 1));
    for (int i = 0; i < n; i++) {
        const char *code = json_string_value(json_array_get(json_array_get(list, (size_t)i), 0));
        int32_t id = (int32_t)json_integer_value(json_array_get(json_array_get(list, (size_t)i), 1));
        const char *next =
            json_string_value(json_array_get(json_array_get(list, (size_t)((i + 1) % n)), 0));
        int direction[2];
        int32_t tokens[DGM_TAGS_MAX];
        assert_int_equal(dgm_languages_choose(l, code, next, direction, &err), DGM_OK);
        assert_int_equal(dgm_languages_tokens(l, DGM_SOURCE, direction, tokens), 1);
        assert_int_equal(tokens[0], id);
        assert_int_equal(dgm_languages_choose(l, next, code, direction, &err), DGM_OK);
        assert_int_equal(dgm_languages_tokens(l, DGM_TARGET, direction, tokens), 1);
        assert_int_equal(tokens[0], id);
        dgm_model_direction(m->model, direction);
        assert_int_equal(info->target_prefix[info->target_prefix_count - 1], id);
        assert_int_equal(legacy ? info->source_suffix_count : info->source_prefix_count, 1);
    }
}

static void test_models(void **state)
{
    (void)state;
    json_t *models = json_object_get(golden, "models");
    assert_int_equal(json_array_size(models), 3);
    for (size_t i = 0; i < json_array_size(models); i++) {
        json_t *model = json_array_get(models, i), *runs = json_object_get(model, "runs");
        loaded m;
        open_model(&m, model);
        for (size_t k = 0; k < json_array_size(runs); k++) {
            check_forced(&m, json_array_get(runs, k),
                         json_string_value(json_object_get(model, "name")));
            check_greedy(&m, json_array_get(runs, k));
        }
        check_languages(&m, model);
        close_model(&m);
    }
}

// ---- the way back -----------------------------------------------------------------------------

static void path_in(char out[160], const char *name)
{
    snprintf(out, 160, "%s/%s", folder, name);
}

static dgm_status import_named(const char *from, const char *to, dgm_error *err)
{
    dgm_import_options o;
    dgm_import_default(&o);
    o.name = "same";
    return dgm_import("huggingface", from, to, &o, err);
}

static void remove_exported(const char *exported)
{
    static const char *const names[] = {"config.json",           "generation_config.json",  "tokenizer_config.json",
                                        "vocab.json",            "sentencepiece.bpe.model", "model.safetensors",
                                        "special_tokens_map.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", exported, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(exported), 0);
}

static void same_files(const char *one, const char *other)
{
    dgm_mapfile a, b;
    assert_int_equal(dgm_mapfile_open(&a, one, NULL), DGM_OK);
    assert_int_equal(dgm_mapfile_open(&b, other, NULL), DGM_OK);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    dgm_mapfile_close(&a);
    dgm_mapfile_close(&b);
}

// Exported and imported again the model file is the same, byte for byte.
static void test_export(void **state)
{
    (void)state;
    char out[160], exported[160], again[160], pieces[200];
    path_in(out, "out.gguf");
    path_in(exported, "exported");
    path_in(again, "again.gguf");
    for (size_t i = 0; i < 2; i++) {
        dgm_error err = {{0}};
        write_folder(json_array_get(json_object_get(golden, "models"), i));
        if (import_named(folder, out, &err) != DGM_OK ||
            dgm_export("huggingface", out, exported, NULL, &err) != DGM_OK ||
            import_named(exported, again, &err) != DGM_OK)
            fail_msg("%s", err.text);
        same_files(out, again);
        remove_exported(exported);
        expect_forgotten(out);
        copy_remembering(out, again);
        if (dgm_export("huggingface", again, exported, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
        snprintf(pieces, sizeof pieces, "%s/sentencepiece.bpe.model", exported);
        expect_forgotten(pieces);
        remove_exported(exported);
        unlink(again);
    }
}

static void expect_no_export(const char *says)
{
    char out[160], exported[160];
    dgm_error err = {{0}};
    path_in(out, "out.gguf");
    path_in(exported, "exported");
    if (import_named(folder, out, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_export("huggingface", out, exported, NULL, &err), DGM_ERR_UNSUPPORTED);
    if (!strstr(err.text, says)) fail_msg("'%s' instead of '%s'", err.text, says);
}

static void test_no_export(void **state)
{
    (void)state;
    json_t *models = json_object_get(golden, "models");
    write_folder(json_array_get(models, 2));
    expect_no_export("a model with 'dragoman.transformer.moe.experts' cannot be exported");
    write_folder(json_array_get(models, 0)); // a list that is none of the tokeniser's
    static const char few[] = "{\"tokenizer_class\": \"M2M100Tokenizer\","
                              " \"additional_special_tokens\": [\"__de__\", \"__en__\"]}";
    write_file("tokenizer_config.json", few, sizeof few - 1);
    expect_no_export("the tokeniser of M2M100 has a list of languages with ids of its own");
    static const char legacy[] = "{\"tokenizer_class\": \"M2M100Tokenizer\", \"legacy_behaviour\": true}";
    write_file("tokenizer_config.json", legacy, sizeof legacy - 1);
    expect_no_export("M2M100 has the source's language before the source");
}

// Two letters mean three, a first part the whole, where that is clear; messages say what there is.
static void test_names(void **state)
{
    (void)state;
    loaded m;
    dgm_error err = {{0}};
    int d[2];
    open_model(&m, json_array_get(json_object_get(golden, "models"), 1));
    const dgm_languages *l = dgm_model_describe(m.model)->languages;
    assert_int_equal(dgm_languages_choose(l, "en", "DE", d, &err), DGM_OK);
    assert_string_equal(l->code[0][d[0]], "eng_Latn");
    assert_string_equal(l->code[1][d[1]], "deu_Latn");
    assert_int_equal(dgm_languages_choose(l, "fra-latn", "zho_hant", d, &err), DGM_OK);
    assert_string_equal(l->code[1][d[1]], "zho_Hant");
    assert_int_equal(dgm_languages_choose(l, "en", "zh", d, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "'zh' may mean zho_Hans, zho_Hant: say which");
    assert_int_equal(dgm_languages_choose(l, "tlh", "de", d, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "the model does not translate from 'tlh': it has deu_Latn, "
                                  "eng_Latn, fra_Latn, zho_Hans, zho_Hant");
    assert_int_equal(dgm_languages_choose(l, NULL, "fr", d, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "to fra_Latn the model translates from deu_Latn, eng_Latn, "
                                  "zho_Hans, zho_Hant: say which");
    assert_int_equal(dgm_languages_choose(l, "de", "deu", d, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "the model does not translate from deu_Latn to deu_Latn: from "
                                  "deu_Latn it translates to eng_Latn, fra_Latn, zho_Hans, zho_Hant");
    assert_int_equal(dgm_languages_choose(l, NULL, NULL, d, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "the model has 20 directions, say which, source and target: "));
    close_model(&m);
}

// What would make a translation depend on chance or neighbours is refused.
static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        const char *value, *message;
    } rows[] = {
        {"moe_eval_capacity_token_fraction", "0.5", "experts would drop tokens"},
        {"second_expert_policy", "\"sampling\"", "it is random"},
        {"router_dtype", "\"bfloat16\"", "float32 is"},
        {"encoder_attention_heads", "5", "not a multiple of 5 heads"},
        {"num_experts", "1", "\"num_experts\""},
    };
    json_t *model = json_array_get(json_object_get(golden, "models"), 2);
    write_folder(model);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[128];
        dgm_error err = {{0}};
        json_t *config = json_copy(json_object_get(model, "config"));
        json_object_set_new(config, rows[i].key, json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        write_json("config.json", config);
        snprintf(path, sizeof path, "%s/out.gguf", folder);
        assert_int_not_equal(dgm_import_run("huggingface", folder, path, NULL, NULL, &err), DGM_OK);
        if (!strstr(err.text, rows[i].message)) fail_msg("%s: %s", rows[i].key, err.text);
        json_decref(config);
    }
}

// An id that is no id of the vocabulary is none of another piece by being cut to 32 bits.
static void test_far_ids(void **state)
{
    (void)state;
    char path[128];
    write_folder(json_array_get(json_object_get(golden, "models"), 0));
    json_t *vocab = json_copy(json_object_get(golden, "vocab"));
    const char *piece = json_object_iter_key(json_object_iter(vocab));
    snprintf(path, sizeof path, "%s/out.gguf", folder);
    for (int negative = 0; negative < 2; negative++) {
        dgm_error err = {{0}};
        json_object_set_new(vocab, piece, json_integer(negative ? -4 : ((json_int_t)1 << 32) + 4));
        write_json("vocab.json", vocab);
        assert_int_not_equal(dgm_import_run("huggingface", folder, path, NULL, NULL, &err), DGM_OK);
        if (!strstr(err.text, "has id")) fail_msg("%s", err.text);
    }
    json_decref(vocab);
}

// ---- MarianMT to many languages -----------------------------------------------------------------

static void write_opus(const json_t *model, const char *source)
{
    json_t *tokenizer = source ? json_pack("{s:s,s:s}", "source_lang", source, "target_lang", "mul")
                               : json_object();
    biases = 1.0 / 64;
    write_json("vocab.json", json_object_get(model, "vocab"));
    write_json("tokenizer_config.json", tokenizer);
    write_json("config.json", json_object_get(model, "config"));
    write_tensors(json_object_get(model, "tensors"));
    write_pieces("source.spm");
    write_pieces("target.spm");
    biases = 1;
    json_decref(tokenizer);
}

static void check_text(const json_t *run, const char *target)
{
    char path[128];
    dgm_error err = {{0}};
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    dgm_settings s;
    const char *text = json_string_value(json_object_get(run, "text"));
    snprintf(path, sizeof path, "%s/out.gguf", folder);
    dgm_settings_default(&s);
    s.raw = 1; // as transformers does
    s.precision = "f32";
    s.beam = 1;
    s.target = target;
    if (dgm_open(&t, path, &s, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_translate(t, &text, 1, &r, &err), DGM_OK);
    assert_string_equal(dgm_result_text(r->items[0]),
                        json_string_value(json_object_get(run, "out")));
    dgm_results_free(&r);
    dgm_close(&t);
}

static void test_opus(void **state)
{
    (void)state;
    static const char *const names[] = {"de", "FRA", "zho-hans", "zho_Hant"};
    json_t *model = json_object_get(golden, "opus"), *runs = json_object_get(model, "runs");
    loaded m;
    dgm_error err = {{0}};
    write_opus(model, "eng");
    load_folder(&m);
    const dgm_languages *l = dgm_model_describe(m.model)->languages;
    assert_int_equal(json_array_size(runs), 4);
    for (size_t i = 0; i < 4; i++) {
        json_t *run = json_array_get(runs, i);
        json_t *pair = json_array_get(json_object_get(model, "languages"), i);
        int direction[2];
        int32_t token[DGM_TAGS_MAX];
        assert_int_equal(dgm_languages_choose(l, "en", names[i], direction, &err), DGM_OK);
        assert_int_equal(dgm_languages_tokens(l, DGM_SOURCE, direction, token), 1);
        assert_int_equal(dgm_languages_tokens(l, DGM_TARGET, direction, token + 1), 0);
        assert_int_equal(token[0], json_integer_value(json_array_get(pair, 1)));
        assert_string_equal(l->code[1][direction[1]], json_string_value(json_array_get(pair, 0)));
        check_forced(&m, run, "opus");
        check_text(run, names[i]);
    }
    int d[2];
    assert_int_equal(dgm_languages_choose(l, NULL, NULL, d, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "the model has 4 directions, say which, source and target: "
                                  "en zho_Hant, en zho_Hans, en fra, en deu");
    assert_int_equal(dgm_languages_choose(l, NULL, "es", d, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "the model does not translate to 'es': it has zho_Hant, "
                                  "zho_Hans, fra, deu");
    close_model(&m);
}

// Options of the import, a folder without its source's language, a prefix for one direction.
static void test_opus_options(void **state)
{
    (void)state;
    char path[128];
    dgm_error err = {{0}};
    dgm_gguf *g = NULL;
    const char *text = NULL;
    const int32_t *ids = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/out.gguf", folder);
    write_opus(json_object_get(golden, "opus"), NULL);
    dgm_import_options o = {.size = sizeof(dgm_import_options), .target_language = "fr"};
    assert_int_equal(dgm_import_run("huggingface", folder, path, &o, NULL, &err), DGM_OK);
    assert_int_equal(dgm_gguf_open(&g, path, &err), DGM_OK);
    dgm_gguf_get_string(g, "dragoman.languages.default", DGM_REQUIRED, &text, &err);
    assert_string_equal(text, "mul fra");
    dgm_gguf_close(&g);
    o.target_language = "tlh";
    assert_int_equal(dgm_import_run("huggingface", folder, path, &o, NULL, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "the model does not translate to 'tlh': it has zho_Hant, "
                                  "zho_Hans, fra, deu");
    o = (dgm_import_options){.size = sizeof o, .source_prefix = ">>deu<<", .target_language = "de"};
    assert_int_equal(dgm_import_run("huggingface", folder, path, &o, NULL, &err), DGM_OK);
    assert_int_equal(dgm_gguf_open(&g, path, &err), DGM_OK);
    assert_int_equal(dgm_gguf_get_i32s(g, "dragoman.source.prefix", DGM_REQUIRED, 0, 99, &ids, &n,
                                       &err), DGM_OK);
    assert_true(n == 1 && ids[0] == 5);
    n = 0;
    assert_int_equal(dgm_gguf_get_i32s(g, "dragoman.languages.target_tokens", DGM_OPTIONAL, 0, 99,
                                       &ids, &n, &err), DGM_OK);
    assert_int_equal(n, 0);
    dgm_gguf_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models), cmocka_unit_test(test_export), cmocka_unit_test(test_no_export),
        cmocka_unit_test(test_opus),
        cmocka_unit_test(test_opus_options),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_far_ids),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
