// SPDX-License-Identifier: MIT
// Folders of Hugging Face that are not what every OPUS-MT folder is: embeddings of three kinds, stored
// positions, ids in generation_config.json, names without "model.", other shapes. Each on the tiny folder
// of marian_folder.h, of which one thing is changed.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "format/modelfile.h"
#include "import/import.h"
#include "marian_folder.h"

// ---- a folder with chosen tensors ---------------------------------------------------------------

// Tensors beside the layers, and how the layers' names begin.
typedef struct extras {
    const char *names[6]; // NULL: the end
    int rows[6], cols;    // cols 0: D. rows 0: a vector
    const char *prefix;   // NULL: "model."
    bool norms;           // final ones, of both sides
    const char *sinusoid; // this one holds it
} extras;

static void put_numbers(const folder *f, safe_file *s, const char *name, int rows, int cols,
                        const float *values)
{
    const size_t begin = s->data.size;
    for (int i = 0; i < rows * cols; i++) dgm_write_f32(&s->data, values[i]);
    dgm_write_format(&s->header,
                     "%s\"%s\": {\"dtype\": \"F32\", \"shape\": [%d, %d], \"data_offsets\": [%zu, %zu]}",
                     s->header.size > 1 ? ", " : "", name, rows, cols, begin, s->data.size);
    (void)f;
}

// As transformers fills it in: sin in the first half, cos in the second.
static void put_sinusoid(const folder *f, safe_file *s, const char *name, int rows)
{
    float table[64 * D];
    for (int p = 0; p < rows; p++)
        for (int i = 0; i < D; i++) {
            const double angle = p / pow(10000, 2.0 * (i % (D / 2)) / D);
            table[p * D + i] = (float)(i < D / 2 ? sin(angle) : cos(angle));
        }
    put_numbers(f, s, name, rows, D, table);
}

static void make_file(const folder *f, const extras *x)
{
    safe_file s;
    char name[64];
    const char *prefix = x->prefix ? x->prefix : "model.";
    begin_safe(&s);
    for (int i = 0; i < 6 && x->names[i]; i++)
        if (x->sinusoid && strcmp(x->sinusoid, x->names[i]) == 0)
            put_sinusoid(f, &s, x->names[i], x->rows[i]);
        else
            put_tensor(f, &s, x->names[i], x->rows[i], D);
    snprintf(name, sizeof name, "%sencoder.layers.0", prefix);
    put_block(f, &s, name, false);
    snprintf(name, sizeof name, "%sdecoder.layers.0", prefix);
    put_block(f, &s, name, true);
    if (x->norms) {
        put_layer(f, &s, "model.encoder", "layer_norm", 0, D);
        put_layer(f, &s, "model.decoder", "layer_norm", 0, D);
        put_layer(f, &s, "model.encoder", "layernorm_embedding", 0, D);
        put_layer(f, &s, "model.decoder", "layernorm_embedding", 0, D);
    }
    end_safe(f, &s, "model.safetensors");
}

// config.json with more keys in front.
static void set_config(const folder *f, const char *more)
{
    char text[1024];
    snprintf(text, sizeof text, "{%s%s", more, model_config + 1);
    write_text(f, "config.json", text);
}

static dgm_status import(const folder *f, dgm_error *err)
{
    char out[96];
    snprintf(out, sizeof out, "%s/out.gguf", f->path);
    return dgm_import_run("huggingface", f->path, out, NULL, NULL, err);
}

static dgm_gguf *import_well(const folder *f)
{
    char out[96];
    dgm_gguf *g;
    dgm_error err = {""};
    if (import(f, &err) != DGM_OK) fail_msg("%s", err.text);
    snprintf(out, sizeof out, "%s/out.gguf", f->path);
    if (dgm_modelfile_open(&g, out, &err) != DGM_OK) fail_msg("%s", err.text);
    return g;
}

static void expect_refusal(const folder *f, dgm_status status, const char *text)
{
    dgm_error err = {""};
    const dgm_status st = import(f, &err);
    char *at = strstr(err.text, f->path);
    if (at) memmove(at, at + strlen(f->path), strlen(at + strlen(f->path)) + 1);
    assert_string_equal(err.text, text);
    assert_int_equal(st, status);
}

static void expect_weights(const dgm_gguf *g, const char *ours, const char *theirs, int rows)
{
    const dgm_tensor *t;
    dgm_error err;
    float real[64 * D];
    assert_int_equal(dgm_gguf_matrix(g, ours, rows, D, DGM_REQUIRED, &t, &err), DGM_OK);
    dgm_tensor_to_f32(t, real);
    for (int i = 0; i < rows * D; i++) assert_true(real[i] == weight_at(theirs, i));
}

static void expect_text(const dgm_gguf *g, const char *key, const char *text)
{
    const char *found = NULL;
    dgm_error err;
    assert_int_equal(dgm_gguf_get_string(g, key, DGM_REQUIRED, &found, &err), DGM_OK);
    assert_string_equal(found, text);
}

// ---- embeddings ---------------------------------------------------------------------------------

#define SHARED "model.shared.weight"
#define ENCODER "model.encoder.embed_tokens.weight"
#define DECODER "model.decoder.embed_tokens.weight"
#define HEAD "lm_head.weight"

static void test_three_embeddings(void **state)
{
    (void)state;
    folder f = make_folder();
    const extras x = {.names = {SHARED, ENCODER, DECODER, HEAD}, .rows = {V, V, V, V}};
    make_file(&f, &x);
    set_config(&f, "\"tie_word_embeddings\": false, ");
    dgm_gguf *g = import_well(&f);
    expect_weights(g, "src.embed", ENCODER, V);
    expect_weights(g, "tgt.embed", DECODER, V);
    expect_weights(g, "out.weight", HEAD, V);
    dgm_gguf_close(&g);
    set_config(&f, ""); // tied: such a file contradicts itself
    expect_refusal(&f, DGM_ERR_FORMAT,
                   "'': config.json says that 'model.shared.weight' and "
                   "'model.encoder.embed_tokens.weight' are one matrix, but they differ");
    const extras one = {.names = {SHARED, HEAD}, .rows = {V, V}};
    make_file(&f, &one);
    set_config(&f, "\"tie_word_embeddings\": false, ");
    g = import_well(&f);
    expect_weights(g, "src.embed", SHARED, V);
    assert_null(dgm_gguf_find_tensor(g, "tgt.embed"));
    expect_weights(g, "out.weight", HEAD, V);
    dgm_gguf_close(&g);
    const extras none = {.names = {ENCODER, DECODER}, .rows = {V, V}};
    make_file(&f, &none);
    expect_refusal(&f, DGM_ERR_FORMAT, "'': tensor 'lm_head.weight' is missing");
    remove_folder(&f);
}

// ---- positions ----------------------------------------------------------------------------------

#define ENCODER_POSITIONS "model.encoder.embed_positions.weight"
#define DECODER_POSITIONS "model.decoder.embed_positions.weight"

static void test_stored_positions(void **state)
{
    (void)state;
    folder f = make_folder();
    extras x = {.names = {SHARED, ENCODER_POSITIONS}, .rows = {V, 32}, .sinusoid = ENCODER_POSITIONS};
    make_file(&f, &x); // what would be computed anyway
    dgm_gguf *g = import_well(&f);
    expect_text(g, "dragoman.transformer.positions", "sinusoid");
    assert_null(dgm_gguf_find_tensor(g, "enc.pos"));
    dgm_gguf_close(&g);
    x.sinusoid = NULL; // something else; the decoder's are computed beside it
    make_file(&f, &x);
    g = import_well(&f);
    expect_text(g, "dragoman.transformer.positions", "learned");
    expect_weights(g, "enc.pos", ENCODER_POSITIONS, 32);
    const dgm_tensor *t;
    dgm_error err;
    float real[32 * D];
    assert_int_equal(dgm_gguf_matrix(g, "dec.pos", 32, D, DGM_REQUIRED, &t, &err), DGM_OK);
    dgm_tensor_to_f32(t, real);
    assert_true(fabsf(real[3 * D] - sinf(3)) < 1e-6f && fabsf(real[3 * D + 3] - cosf(0.03f)) < 1e-6f);
    dgm_gguf_close(&g);
    x = (extras){.names = {SHARED, ENCODER_POSITIONS, DECODER_POSITIONS}, .rows = {V, 32, 31}};
    make_file(&f, &x);
    expect_refusal(&f, DGM_ERR_FORMAT,
                   "'': tensor 'model.decoder.embed_positions.weight' has 31 rows, expected 32 for "
                   "32 positions");
    // A table that the configuration calls learned, as BART has them: two rows before position 0.
    x.rows[1] = x.rows[2] = 34;
    make_file(&f, &x);
    set_config(&f, "\"static_position_embeddings\": false, ");
    g = import_well(&f);
    uint32_t offset = 0;
    dgm_gguf_get_u32(g, "dragoman.transformer.position_offset", DGM_REQUIRED, 0, 9, &offset, &err);
    assert_int_equal(offset, 2);
    expect_weights(g, "dec.pos", DECODER_POSITIONS, 34);
    dgm_gguf_close(&g);
    make_weights(&f);
    expect_refusal(&f, DGM_ERR_FORMAT,
                   "'': tensor 'model.encoder.embed_positions.weight' is missing");
    remove_folder(&f);
}

// ---- shapes -------------------------------------------------------------------------------------

static void test_shapes(void **state)
{
    (void)state;
    folder f = make_folder();
    extras x = {.names = {SHARED}, .rows = {V}, .norms = true};
    make_file(&f, &x);
    set_config(&f, "\"normalize_before\": true, \"normalize_embedding\": true, ");
    dgm_gguf *g = import_well(&f);
    expect_text(g, "dragoman.transformer.norm", "pre");
    assert_non_null(dgm_gguf_find_tensor(g, "enc.norm.weight"));
    assert_non_null(dgm_gguf_find_tensor(g, "dec.embed_norm.bias"));
    dgm_gguf_close(&g);
    x = (extras){.names = {"shared.weight"}, .rows = {V}, .prefix = ""};
    make_file(&f, &x);
    set_config(&f, "");
    g = import_well(&f);
    expect_weights(g, "src.embed", "shared.weight", V);
    expect_weights(g, "enc.0.self.q.weight", "encoder.layers.0.self_attn.q_proj.weight", D);
    dgm_gguf_close(&g);
    set_config(&f, "\"is_encoder_decoder\": false, ");
    expect_refusal(&f, DGM_ERR_UNSUPPORTED,
                   "'': \"is_encoder_decoder\": false is not supported: not a translation model");
    remove_folder(&f);
}

// ---- generation_config.json ---------------------------------------------------------------------

static void test_ids(void **state)
{
    (void)state;
    folder f = make_folder();
    dgm_error err;
    write_text(&f, "generation_config.json",
               "{\"decoder_start_token_id\": 5, \"eos_token_id\": [0], \"pad_token_id\": 6,"
               " \"forced_bos_token_id\": 2, \"suppress_tokens\": [3, 6], \"max_length\": 20,"
               " \"bad_words_ids\": [[6]], \"begin_suppress_tokens\": []}");
    dgm_gguf *g = import_well(&f);
    dgm_vocab_spec v;
    assert_int_equal(dgm_modelfile_vocab(g, DGM_TARGET, &v, &err), DGM_OK);
    assert_true(v.start == 5 && v.eos == 0 && v.never_count == 2);
    assert_true(v.never[0] == 6 && v.never[1] == 3);
    assert_true(v.prefix_count == 1 && v.prefix[0] == 2);
    dgm_decode_spec d;
    assert_int_equal(dgm_modelfile_decode(g, &d, &err), DGM_OK);
    assert_int_equal(d.max_length, 18); // start and first token are theirs
    dgm_gguf_close(&g);
    static const struct {
        const char *text;
        dgm_status status;
        const char *message;
    } rows[] = {
        {"{\"decoder_start_token_id\": 7}", DGM_ERR_FORMAT,
         "'': \"decoder_start_token_id\" is 7, expected 0 to 6"},
        {"{\"decoder_start_token_id\": \"a\"}", DGM_ERR_FORMAT,
         "'': \"decoder_start_token_id\" is not an integer"},
        {"{\"eos_token_id\": 3}", DGM_ERR_FORMAT,
         "'': \"eos_token_id\" is 3 in generation_config.json and 0 in config.json"},
        {"{\"eos_token_id\": [0, 3]}", DGM_ERR_UNSUPPORTED,
         "'': \"eos_token_id\" holds 0 and 3: one end symbol is supported"},
        {"{\"eos_token_id\": [-1]}", DGM_ERR_FORMAT,
         "'': \"eos_token_id\" holds something else than ids from 0 to 6"},
        {"{\"pad_token_id\": 2}", DGM_ERR_FORMAT,
         "'': \"pad_token_id\" is 2 in generation_config.json and 6 in config.json"},
        {"{\"forced_bos_token_id\": -5}", DGM_ERR_FORMAT,
         "'': \"forced_bos_token_id\" is -5, expected 0 to 6"},
        {"{\"forced_eos_token_id\": 3}", DGM_ERR_UNSUPPORTED,
         "'': \"forced_eos_token_id\" 3 is not \"eos_token_id\" 0"},
        {"{\"suppress_tokens\": [9]}", DGM_ERR_FORMAT,
         "'': \"suppress_tokens\" holds 9, expected 0 to 6"},
        {"{\"suppress_tokens\": 3}", DGM_ERR_FORMAT,
         "'': \"suppress_tokens\" is not a list of at most 1024 ids"},
        {"{\"suppress_tokens\": [[3]]}", DGM_ERR_FORMAT, "'': \"suppress_tokens\" holds something else than ids"},
        {"{\"suppress_tokens\": [3, 0]}", DGM_ERR_FORMAT,
         "'': \"suppress_tokens\" holds 0, the end symbol: no translation would end"},
        {"{\"bad_words_ids\": [[0]]}", DGM_ERR_FORMAT,
         "'': \"bad_words_ids\" holds 0, the end symbol: no translation would end"},
        {"{\"eos_token_id\": []}", DGM_ERR_FORMAT, "'': \"eos_token_id\" is a list without ids"},
        {"{\"bos_token_id\": 7}", DGM_ERR_FORMAT, "'': \"bos_token_id\" is 7, expected 0 to 6"},
        {"{\"min_new_tokens\": 3}", DGM_ERR_UNSUPPORTED,
         "'': \"min_new_tokens\": 3 is not supported; remove it to import the model without"},
        {"{\"force_words_ids\": [[3]]}", DGM_ERR_UNSUPPORTED,
         "'': \"force_words_ids\" is not supported; remove it to import the model without"},
        {"{\"begin_suppress_tokens\": \"x\"}", DGM_ERR_UNSUPPORTED,
         "'': \"begin_suppress_tokens\" is not supported; remove it to import the model without"},
        {"{\"begin_suppress_tokens\": [3]}", DGM_ERR_UNSUPPORTED,
         "'': \"begin_suppress_tokens\" is not supported; remove it to import the model without"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_text(&f, "generation_config.json", rows[i].text);
        expect_refusal(&f, rows[i].status, rows[i].message);
    }
    remove_folder(&f);
}

// Each pair of early_stopping and forced_eos_token_id is a policy of its own.
static void test_policies(void **state)
{
    (void)state;
    static const struct {
        const char *text, *policy;
        int max_length;
    } rows[] = {
        {"{\"max_length\": 20, \"forced_eos_token_id\": 0}", "huggingface", 18},
        {"{\"max_length\": 20, \"early_stopping\": false}", "huggingface-cut", 19},
        {"{\"max_length\": 20, \"max_new_tokens\": 9}", "huggingface-cut", 9},
        {"{\"max_length\": 20, \"early_stopping\": true, \"forced_eos_token_id\": 0}", "huggingface-early", 18},
        {"{\"max_length\": 20, \"early_stopping\": true, \"forced_eos_token_id\": null}", "huggingface-early-cut", 19},
        {"{\"max_length\": 20, \"early_stopping\": \"never\", \"forced_eos_token_id\": 0}", "huggingface-never", 18},
        {"{\"max_length\": 20, \"early_stopping\": \"never\"}", "huggingface-never-cut", 19},
    };
    folder f = make_folder();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_error err;
        dgm_decode_spec d;
        write_text(&f, "generation_config.json", rows[i].text);
        dgm_gguf *g = import_well(&f);
        assert_int_equal(dgm_modelfile_decode(g, &d, &err), DGM_OK);
        assert_string_equal(dgm_finish_names[d.finish], rows[i].policy);
        assert_int_equal(d.max_length, rows[i].max_length);
        dgm_gguf_close(&g);
    }
    remove_folder(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_embeddings),
        cmocka_unit_test(test_stored_positions),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
