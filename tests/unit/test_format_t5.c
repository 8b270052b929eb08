// SPDX-License-Identifier: MIT
// The importer of T5, mT5, umT5 and MADLAD-400 against Hugging Face transformers: tests/data/format/t5.json, made by
// tests/oracle/make_t5.py, holds configs, shapes and what transformers computes; t5.spm and madlad.spm lie beside
// it. Weights are the script's formula, so this test writes the same folders, imports them, and compares logits of
// forced steps, and text and scores of beams 1 and 6 through the public functions. Damaged folders end in one sentence.
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
#include "base/mem.h"
#include "dragoman/dragoman.h"
#include "dragoman/tools.h"
#include "failures.h"
#include "import/import.h"
#include "import/spm_list.h"
#include "model/model.h"
#include "spm_remembers.h"

static json_t *golden;
static char folder[] = "/tmp/dragoman-t5-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    golden = json_load_file("tests/data/format/t5.json", 0, NULL);
    return golden && mkdtemp(folder) ? 0 : -1;
}

static const char *path_of(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"config.json", "generation_config.json", "spiece.model",
                                        "model.safetensors", "out.gguf", "tokenizer.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unlink(path_of(names[i]));
    rmdir(folder);
    json_decref(golden);
    return 0;
}

static void write_file(const char *name, const void *data, size_t size)
{
    assert_int_equal(dgm_file_write(path_of(name), data, size, NULL), DGM_OK);
}

static void write_json(const char *name, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT);
    write_file(name, text, strlen(text));
    free(text);
}

// weight() of the script.
static float weight_at(const char *name, uint32_t cols, uint32_t i)
{
    uint32_t h = 5;
    for (const char *p = name; *p; p++) h = h * 31u + (unsigned char)*p;
    uint32_t x = ((h + i * 2654435761u) * 2246822519u) >> 16;
    double v = ((int)(x % 129u) - 64) / 128.0;
    if (strstr(name, "layer_norm.weight")) return (float)((1.0 + v / 2) * (x & 1 ? 1 : -1));
    if (strcmp(name, "shared.weight") == 0 || strcmp(name, "lm_head.weight") == 0)
        return (float)(v * (i / cols == 1 || i / cols == 2 ? 4 : 2));
    return (float)(strstr(name, "relative") ? 4 * v : v);
}

// Without the tensor `leave_out`; that of `shorten` has one row less. Either may be NULL.
static void write_tensors(const json_t *tensors, const char *leave_out, const char *shorten)
{
    dgm_writer header = {0}, data = {0}, file = {0};
    const char *name;
    json_t *shape;
    dgm_write_text(&header, "{");
    json_object_foreach((json_t *)tensors, name, shape)
    {
        const size_t begin = data.size;
        uint32_t rows = (uint32_t)json_integer_value(json_array_get(shape, 0));
        const uint32_t cols = json_array_size(shape) > 1
                                  ? (uint32_t)json_integer_value(json_array_get(shape, 1))
                                  : 0;
        if (leave_out && strcmp(name, leave_out) == 0) continue;
        if (shorten && strcmp(name, shorten) == 0) rows--;
        for (uint32_t i = 0; i < rows * (cols ? cols : 1); i++)
            dgm_write_f32(&data, weight_at(name, cols, i));
        dgm_write_format(&header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%u",
                         header.size > 1 ? "," : "", name, rows);
        if (cols) dgm_write_format(&header, ",%u", cols);
        dgm_write_format(&header, "],\"data_offsets\":[%zu,%zu]}", begin, data.size);
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

static const char *name_of(const json_t *model)
{
    return json_string_value(json_object_get(model, "name"));
}

static bool is_madlad(const json_t *model)
{
    return strcmp(name_of(model), "madlad") == 0;
}

static json_t *model_named(const char *name)
{
    json_t *models = json_object_get(golden, "models");
    for (size_t i = 0; i < json_array_size(models); i++)
        if (strcmp(name_of(json_array_get(models, i)), name) == 0) return json_array_get(models, i);
    fail_msg("no model %s", name);
    return NULL;
}

static void write_folder(const json_t *model)
{
    dgm_mapfile spm;
    const char *pieces =
        is_madlad(model) ? "tests/data/format/madlad.spm" : "tests/data/format/t5.spm";
    assert_int_equal(dgm_mapfile_open(&spm, pieces, NULL), DGM_OK);
    dgm_writer named = {0};
    dgm_write_bytes(&named, spm.data, spm.size);
    write_remembered(&named);
    write_file("spiece.model", named.data, named.size);
    dgm_writer_free(&named);
    dgm_mapfile_close(&spm);
    write_json("config.json", json_object_get(model, "config"));
    write_json("generation_config.json", json_object_get(model, "generation"));
    write_tensors(json_object_get(model, "tensors"), NULL, NULL);
}

// The public function: it opens the SentencePiece model, too.
static dgm_status import(const dgm_import_options *options, dgm_error *err)
{
    char out[160];
    snprintf(out, sizeof out, "%s", path_of("out.gguf"));
    return dgm_import("huggingface", folder, out, options, err);
}

static void import_well(const json_t *model, const dgm_import_options *options)
{
    dgm_error err = {{0}};
    write_folder(model);
    if (import(options, &err) != DGM_OK) fail_msg("%s: %s", name_of(model), err.text);
    expect_forgotten(path_of("out.gguf"));
}

// ---- logits -------------------------------------------------------------------------------------

static int ids_of(const json_t *list, int32_t *out, int most)
{
    const int n = (int)json_array_size(list);
    assert_true(n <= most);
    for (int i = 0; i < n; i++)
        out[i] = (int32_t)json_integer_value(json_array_get(list, (size_t)i));
    return n;
}

typedef struct loaded {
    dgm_gguf *file;
    dgm_backend *backend;
    dgm_model *model;
    dgm_exec *exec;
    dgm_state *state;
} loaded;

static void load(loaded *m)
{
    dgm_error err = {{0}};
    const dgm_limits limits = {.slots = 1, .rows = 1, .source = 128, .target = 32};
    memset(m, 0, sizeof *m);
    dgm_status st = dgm_gguf_open(&m->file, path_of("out.gguf"), &err);
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

static void unload(loaded *m)
{
    dgm_state_close(&m->state);
    dgm_exec_close(&m->exec);
    dgm_model_free(&m->model);
    dgm_backend_close(&m->backend);
    dgm_gguf_close(&m->file);
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

static void check_run(loaded *m, const json_t *model, const json_t *run)
{
    static float got[1024];
    dgm_error err = {{0}};
    int32_t source[128], forced[32], ids[128], slot, row;
    const dgm_source in = {source, ids_of(json_object_get(run, "source"), source, 128)};
    const int steps = ids_of(json_object_get(run, "forced"), forced, 32);
    const int count = ids_of(json_object_get(model, "ids"), ids, 128);
    if (dgm_encode(m->state, 1, &in, &slot, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_start(m->state, 1, &slot, &row, &err), DGM_OK);
    for (int t = 0; t < steps; t++) {
        const json_t *expected = json_array_get(json_object_get(run, "logits"), (size_t)t);
        double peak = 0, off = 0;
        step(m, &row, forced[t], got);
        for (int i = 0; i < count; i++) {
            const double v = json_number_value(json_array_get(expected, (size_t)i));
            peak = fmax(peak, fabs(v));
            off = fmax(off, fabs(v - got[ids[i]]));
        }
        if (!(off <= 1e-4 * peak))
            fail_msg("%s, step %d: logits differ by %g of %g", name_of(model), t, off, peak);
    }
    dgm_retain(m->state, 0, NULL);
    dgm_release(m->state, 1, &slot);
}

static void test_logits(void **state)
{
    (void)state;
    json_t *models = json_object_get(golden, "models");
    assert_int_equal(json_array_size(models), 5);
    for (size_t i = 0; i < json_array_size(models); i++) {
        const json_t *model = json_array_get(models, i), *runs = json_object_get(model, "runs");
        loaded m;
        import_well(model, NULL);
        load(&m);
        for (size_t k = 0; k < json_array_size(runs); k++)
            check_run(&m, model, json_array_get(runs, k));
        unload(&m);
    }
}

// ---- text ---------------------------------------------------------------------------------------

static void open_translator(dgm_translator **t, int beam, const char *precision, const char *target)
{
    dgm_error err = {{0}};
    dgm_settings s;
    dgm_settings_default(&s);
    s.raw = 1; // as transformers does
    s.precision = precision;
    s.beam = beam;
    s.target = target;
    if (dgm_open(t, path_of("out.gguf"), &s, &err) != DGM_OK) fail_msg("%s", err.text);
}

static void check_beam(const json_t *model, int beam)
{
    char key[16];
    const char *lines[64];
    const json_t *texts = json_object_get(golden, "lines");
    const size_t n = json_array_size(texts);
    dgm_error err = {{0}};
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    assert_true(n > 0 && n <= 64);
    snprintf(key, sizeof key, "beam%d", beam);
    const json_t *expected = json_object_get(model, key);
    for (size_t i = 0; i < n; i++) lines[i] = json_string_value(json_array_get(texts, i));
    open_translator(&t, beam, "f32", is_madlad(model) ? "fr" : NULL);
    assert_int_equal(dgm_translate(t, lines, n, &r, &err), DGM_OK);
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(expected, i);
        const char *text = json_string_value(json_array_get(row, 0));
        const double score = json_number_value(json_array_get(row, 1));
        if (strcmp(dgm_result_text(r->items[i]), text) != 0)
            fail_msg("%s, beam %d, line %zu: '%s', expected '%s'", name_of(model), beam, i,
                     dgm_result_text(r->items[i]), text);
        assert_true(fabs(r->items[i]->translations[0]->score - score) < 1e-3);
    }
    dgm_results_free(&r);
    dgm_close(&t);
}

static void test_text(void **state)
{
    (void)state;
    json_t *models = json_object_get(golden, "models");
    for (size_t i = 0; i < json_array_size(models); i++) {
        const json_t *model = json_array_get(models, i);
        import_well(model, NULL);
        check_beam(model, 1);
        check_beam(model, 6);
    }
}

// ---- directions and tasks -----------------------------------------------------------------------

static void test_directions(void **state)
{
    (void)state;
    dgm_error err = {{0}};
    loaded m;
    int d[2];
    int32_t token;
    import_well(model_named("madlad"), NULL);
    load(&m);
    const dgm_model_info *info = dgm_model_describe(m.model);
    const dgm_languages *l = info->languages;
    assert_int_equal(l->count[1], 4); // <2translate> is no language
    assert_int_equal(dgm_languages_choose(l, "fr", "de", d, &err), DGM_OK);
    assert_int_equal(dgm_languages_tokens(l, DGM_SOURCE, d, &token), 1);
    assert_int_equal(token, 3);
    assert_int_equal(dgm_languages_choose(l, NULL, "zh_Hant", d, &err), DGM_OK);
    assert_string_equal(l->code[1][d[1]], "zh_Hant");
    assert_int_equal(info->source_prefix_count, 2); // the space, the language
    assert_int_equal(dgm_languages_choose(l, NULL, "es", d, &err), DGM_ERR_ARGUMENT);
    unload(&m);
    dgm_import_options o;
    dgm_import_default(&o);
    o.target_language = "fr";
    import_well(model_named("madlad"), &o);
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    open_translator(&t, 1, "f32", NULL); // the direction when none is asked for
    const char *const lines[] = {"Good morning.", "<2fr> Good morning.", "<2de> Good morning."};
    assert_int_equal(dgm_translate(t, lines, 3, &r, &err), DGM_OK);
    const float score = r->items[0]->translations[0]->score;
    assert_true(r->items[1]->translations[0]->score == score);
    assert_true(r->items[2]->translations[0]->score != score);
    dgm_results_free(&r);
    dgm_close(&t);
}

static void test_task(void **state)
{
    (void)state;
    dgm_error err = {{0}};
    dgm_import_options o;
    loaded m;
    dgm_import_default(&o);
    o.source_prefix = "the : a";
    import_well(model_named("t5"), &o);
    load(&m);
    const dgm_model_info *info = dgm_model_describe(m.model);
    assert_in_range(info->source_prefix_count, 3, 4);
    unload(&m);
    o.source_prefix = "translate Volapuk";
    assert_int_equal(import(&o, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "source prefix: 'translate' is not in the vocabulary");
}

// Newer folders have tokenizer.json alone.
static void test_tokenizer_json(void **state)
{
    (void)state;
    const json_t *model = model_named("madlad");
    const char *text = "The house is old.";
    dgm_error err = {{0}};
    dgm_spm_list list = {0};
    dgm_mapfile spm;
    import_well(model, NULL);
    assert_int_equal(dgm_mapfile_open(&spm, "tests/data/format/madlad.spm", NULL), DGM_OK);
    assert_int_equal(dgm_spm_list_read(&list, spm.data, spm.size, &err), DGM_OK);
    json_t *vocab = json_array();
    for (size_t i = 0; i < list.count; i++)
        json_array_append_new(vocab, json_pack("[s#,f]", list.items[i].piece, (int)list.items[i].size,
                                               i < 8 ? 0.0 : -2.0 - (double)i / 100));
    json_t *tokens = json_pack("{s:[{s:i,s:s,s:b},{s:i,s:s,s:b}],s:{s:s,s:s},s:{s:s,s:i,s:b,s:o}}",
                               "added_tokens", "id", 0, "content", "<unk>", "special", 1, "id", 2,
                               "content", "</s>", "special", 1, "pre_tokenizer", "type", "Metaspace",
                               "prepend_scheme", "always", "model", "type", "Unigram", "unk_id", 0,
                               "byte_fallback", 1, "vocab", vocab);
    assert_non_null(tokens);
    unlink(path_of("spiece.model"));
    write_json("tokenizer.json", tokens);
    if (import(NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    open_translator(&t, 2, "i8", "zh_Hant");
    assert_int_equal(dgm_translate(t, &text, 1, &r, &err), DGM_OK);
    assert_int_equal(r->items[0]->status, DGM_OK);
    dgm_results_free(&r);
    dgm_close(&t);
    json_object_set_new(json_object_get(tokens, "model"), "vocab", json_object());
    write_json("tokenizer.json", tokens);
    assert_int_equal(import(NULL, &err), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "a T5 model has a Unigram vocabulary"));
    unlink(path_of("tokenizer.json"));
    json_decref(tokens);
    dgm_spm_list_free(&list);
    dgm_mapfile_close(&spm);
}

// ---- damage -------------------------------------------------------------------------------------

static void refused(const char *message)
{
    dgm_error err = {{0}};
    assert_int_not_equal(import(NULL, &err), DGM_OK);
    if (!strstr(err.text, message) || strchr(err.text, '\n'))
        fail_msg("'%s' in place of '%s'", err.text, message);
}

static void test_settings(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *message;
    } rows[] = {
        {"feed_forward_proj", "\"gated-mish\"", "\"feed_forward_proj\" 'gated-mish' is not supported"},
        {"feed_forward_proj", "3", "\"feed_forward_proj\""},
        {"relative_attention_num_buckets", "7", "\"relative_attention_num_buckets\": 7"},
        {"relative_attention_max_distance", "3", "up to a distance of 3"},
        {"d_model", "17", "\"d_model\" is odd"},
        {"d_model", "0", "\"d_model\""},
        {"d_kv", "-1", "\"d_kv\""},
        {"d_kv", "60000", "\"num_heads\" 3 times \"d_kv\" 60000 is more than 65536"},
        {"d_kv", "8", "SelfAttention.q.weight"},
        {"num_heads", "4", "SelfAttention.q.weight"},
        {"num_layers", "3", "tensor 'encoder.block.2.layer.0.SelfAttention.q.weight' is missing"},
        {"num_decoder_layers", "2", "is not part of a T5 model"},
        {"vocab_size", "100", "\"suppress_tokens\" holds"},
        {"vocab_size", "401", "shared.weight"},
        {"layer_norm_epsilon", "2", "\"layer_norm_epsilon\""},
        {"eos_token_id", "5000", "\"eos_token_id\""},
        {"tie_word_embeddings", "\"no\"", "\"tie_word_embeddings\""},
        {"d_ff", "23", "DenseReluDense.wi.weight"},
    };
    const json_t *model = model_named("t5");
    write_folder(model);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *config = json_copy(json_object_get(model, "config"));
        json_object_set_new(config, rows[i].key, json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        write_json("config.json", config);
        refused(rows[i].message);
        json_decref(config);
    }
    json_t *config = json_copy(json_object_get(model, "config"));
    json_object_del(config, "d_ff");
    write_json("config.json", config);
    refused("\"d_ff\" is missing");
    json_decref(config);
}

// Without any one of its tensors, or with one that is too short, a folder is refused by that name.
static void test_tensors(void **state)
{
    (void)state;
    const json_t *model = model_named("t5-1.1"), *tensors = json_object_get(model, "tensors");
    const char *name;
    json_t *shape;
    write_folder(model);
    json_object_foreach((json_t *)tensors, name, shape)
    {
        write_tensors(tensors, NULL, name);
        refused(name);
        if (strcmp(name, "lm_head.weight") == 0) continue; // one embedding for everything then
        write_tensors(tensors, name, NULL);
        refused(name);
    }
}

static void test_files(void **state)
{
    (void)state;
    const json_t *model = model_named("t5");
    write_folder(model);
    write_file("spiece.model", "nonsense", 8);
    refused("spiece.model");
    unlink(path_of("spiece.model"));
    refused("spiece.model");
    write_folder(model);
    write_file("model.safetensors", "short", 5);
    refused("model.safetensors");
    unlink(path_of("model.safetensors"));
    refused("model.safetensors");
    write_folder(model);
    write_file("config.json", "{\"model_type\": \"t5\"", 19);
    refused("config.json");
}

// Every allocation of an import may fail.
static void test_memory(void **state)
{
    (void)state;
    dgm_error err = {{0}};
    import_well(model_named("madlad"), NULL);
    ALLOCATIONS_FAIL(import(NULL, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),   cmocka_unit_test(test_text),
        cmocka_unit_test(test_directions), cmocka_unit_test(test_task),
        cmocka_unit_test(test_tokenizer_json),
        cmocka_unit_test(test_settings), cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_files),    cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
