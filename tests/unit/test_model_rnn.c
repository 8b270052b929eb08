// SPDX-License-Identifier: MIT
// The recurrent models against PyTorch, and what only they have: products shared by siblings.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "model/rnn/rnn_private.h"
#include "scratch.h"

static void test_logits(void **state)
{
    (void)state;
    fixture_check_family("rnn-", 26);
}

// Three rows, two parents: products with the parents' states are counted once each.
static void check_sharing(const char *name)
{
    fixture f;
    dgm_error err;
    fixture_open(&f, name, NULL);
    const rnn_state *rs = f.state->storage;
    dgm_source sources[2] = {{f.sentence[0].source, f.sentence[0].source_count},
                             {f.sentence[2].source, f.sentence[2].source_count}};
    int32_t slots[2], parents[2], rows[3];
    float weights[3][64] = {{0}};
    float *align[3] = {weights[0], weights[1], weights[2]};
    assert_int_equal(dgm_encode(f.state, 2, sources, slots, &err), DGM_OK);
    assert_int_equal(dgm_start(f.state, 2, slots, parents, &err), DGM_OK);
    int32_t start = dgm_model_describe(f.model)->start;
    dgm_step_row steps[3] = {{parents[1], {start, DGM_NO_TOKEN}},
                             {parents[0], {start, DGM_NO_TOKEN}},
                             {parents[1], {start, DGM_NO_TOKEN}}};
    dgm_step_result out = {.rows = rows, .align = align};
    uint64_t stepped = rs->counts.rows, distinct = rs->counts.distinct;
    assert_int_equal(dgm_step(f.state, 3, steps, &out, &err), DGM_OK);
    assert_int_equal(rs->counts.rows - stepped, 3);
    assert_int_equal(rs->counts.distinct - distinct, 2);
    // equal siblings are equal in bits, alignments too; the other sentence is another
    const size_t width = (size_t)out.hidden.cols, bytes = width * sizeof(float);
    float *rows_of = test_malloc(3 * bytes), *hidden[3];
    for (int i = 0; i < 3; i++) hidden[i] = rows_of + (size_t)i * width;
    dgm_op_read(f.exec, rows_of, dgm_mat_rows(out.hidden, 0, 3));
    assert_memory_equal(hidden[0], hidden[2], bytes);
    assert_memory_equal(weights[0], weights[2], (size_t)sources[1].count * sizeof(float));
    assert_memory_not_equal(hidden[0], hidden[1], bytes);

    // the same generation can be stepped again: parents stay valid until retain
    float *before = test_malloc(bytes);
    memcpy(before, hidden[0], bytes);
    assert_int_equal(dgm_step(f.state, 3, steps, &out, &err), DGM_OK);
    dgm_op_read(f.exec, hidden[0], dgm_mat_rows(out.hidden, 0, 1));
    assert_memory_equal(before, hidden[0], bytes);
    test_free(before);
    test_free(rows_of);
    dgm_retain(f.state, 0, NULL);
    dgm_release(f.state, 2, slots);
    fixture_close(&f);
}

static void test_siblings(void **state)
{
    (void)state;
    check_sharing("rnn-devlin");
    check_sharing("rnn-conditional-tanh-start");
    check_sharing("rnn-bahdanau-maxout");
    check_sharing("rnn-devlin-s7");
    check_sharing("rnn-conditional-lstm");
}

// An operation may take a little device memory of its own, beside what a state was said to need.
static void expect_within(dgm_bytes peak, dgm_bytes said)
{
    enum { OPERATION = 64 << 10 };
    assert_true(peak.host <= said.host);
    assert_true(peak.device <= said.device + OPERATION);
}

// More sentences than one chunk of the encoder holds: the seam between chunks must not show.
static void test_chunks(void **state)
{
    (void)state;
    enum { COUNT = 300, LENGTH = 11 };
    fixture f;
    dgm_error err;
    fixture_open(&f, "rnn-devlin", NULL);
    const fixture_sentence *s = &f.sentence[2];
    assert_int_equal(s->source_count, LENGTH);
    dgm_limits limits = {.slots = COUNT, .rows = COUNT, .source = LENGTH, .target = 4};
    dgm_exec *exec;
    dgm_state *many;
    static int32_t slots[COUNT], rows[COUNT], next[COUNT];
    static dgm_source sources[COUNT];
    static dgm_step_row steps[COUNT];
    assert_int_equal(dgm_exec_open(f.backend, dgm_state_bytes(f.model, &limits), &exec, &err),
                     DGM_OK);
    assert_int_equal(dgm_state_open(f.model, exec, &limits, &many, &err), DGM_OK);
    for (int i = 0; i < COUNT; i++) // some are cut short, so that lengths mix
        sources[i] = (dgm_source){s->source, i % 7 == 3 ? 1 + i % LENGTH : LENGTH};
    assert_int_equal(dgm_encode(many, COUNT, sources, slots, &err), DGM_OK);
    assert_int_equal(dgm_start(many, COUNT, slots, rows, &err), DGM_OK);
    for (int i = 0; i < COUNT; i++)
        steps[i] = (dgm_step_row){rows[i], {DGM_NO_TOKEN, DGM_NO_TOKEN}};
    dgm_step_result out = {.rows = next};
    assert_int_equal(dgm_step(many, COUNT, steps, &out, &err), DGM_OK);
    const size_t width = (size_t)out.hidden.cols, bytes = width * sizeof(float);
    float *a = test_malloc(COUNT * bytes);
    dgm_op_read(exec, a, dgm_mat_rows(out.hidden, 0, COUNT));
    for (int i = 1; i < COUNT; i++) {
        const float *b = a + (size_t)i * width;
        if (sources[i].count == LENGTH)
            assert_memory_equal(a, b, bytes);
        else
            assert_memory_not_equal(a, b, bytes);
    }
    test_free(a);
    expect_within(dgm_exec_peak(exec), dgm_state_bytes(f.model, &limits));
    dgm_state_close(&many);
    dgm_exec_close(&exec);
    fixture_close(&f);
}

// A worker's memory is sized beforehand: the widest step that the limits allow must fit.
static void check_size(const char *name)
{
    enum { ROWS = 6000 };
    fixture f;
    dgm_error err;
    fixture_open(&f, name, NULL);
    dgm_source source = {f.sentence[0].source, f.sentence[0].source_count};
    dgm_limits limits = {.slots = 1, .rows = ROWS, .source = source.count, .target = 4};
    dgm_bytes bytes = dgm_state_bytes(f.model, &limits);
    dgm_exec *exec;
    dgm_state *s;
    int32_t slot, first;
    static int32_t rows[ROWS], next[ROWS];
    static dgm_step_row steps[ROWS];
    assert_int_equal(dgm_exec_open(f.backend, bytes, &exec, &err), DGM_OK);
    assert_int_equal(dgm_state_open(f.model, exec, &limits, &s, &err), DGM_OK);
    assert_int_equal(dgm_encode(s, 1, &source, &slot, &err), DGM_OK);
    assert_int_equal(dgm_start(s, 1, &slot, &first, &err), DGM_OK);
    for (int i = 0; i < ROWS; i++) steps[i] = (dgm_step_row){first, {i % 20, DGM_NO_TOKEN}};
    dgm_step_result out = {.rows = rows};
    assert_int_equal(dgm_step(s, ROWS, steps, &out, &err), DGM_OK);
    dgm_retain(s, ROWS, rows);
    for (int i = 0; i < ROWS; i++) steps[i].parent = rows[i]; // all parents distinct
    out.rows = next;
    assert_int_equal(dgm_step(s, ROWS, steps, &out, &err), DGM_OK);
    expect_within(dgm_exec_peak(exec), bytes);
    assert_int_equal(dgm_step(s, ROWS + 1, steps, &out, &err), DGM_ERR_ARGUMENT);
    dgm_state_close(&s);
    dgm_exec_close(&exec);
    fixture_close(&f);
}

static void test_sizes(void **state)
{
    (void)state;
    check_size("rnn-devlin-maxout-lstm");
    check_size("rnn-conditional-maxout-tied");
    check_size("rnn-bahdanau-maxout");
    check_size("rnn-devlin-s5");
    check_size("rnn-devlin-s7");
    check_size("rnn-conditional-upper");
    check_size("rnn-bahdanau-upper");
    check_size("rnn-conditional-separate");
    check_size("rnn-conditional-lstm");
}

static void test_memory(void **state)
{
    (void)state;
    fixture_check_memory("rnn-devlin-maxout-lstm");
    fixture_check_memory("rnn-conditional-maxout-tied");
    fixture_check_memory("rnn-bahdanau-tanh-deep");
    fixture_check_memory("rnn-devlin-s3");
    fixture_check_memory("rnn-devlin-s7");
    fixture_check_memory("rnn-conditional-gates");
}

// Required: weights. Not: biases, and in tied models the matrices that another stands in for.
static void test_missing_tensors(void **state)
{
    (void)state;
    fixture_check_missing("rnn-devlin", 2 + 12 + 1 + 6);
    fixture_check_missing("rnn-conditional-tanh-start", 3 + 8 + 1 + 7 + 3);
    fixture_check_missing("rnn-bahdanau-maxout", 2 + 4 + 1 + 6 + 3); // output as wide as a word
    fixture_check_missing("rnn-devlin-s3", 2 + 4 + 1 + 6 + 4 + 4);
    fixture_check_missing("rnn-devlin-s5", 2 + 12 + 1 + 6 + 7 + 2);
    fixture_check_missing("rnn-devlin-s7", 2 + 10 + 1 + 6 + 6);
    // every product with its norm: encoder, start, attention, cells, read-out, upper layer
    fixture_check_missing("rnn-conditional-gates", 2 + 36 + 3 + 7 + 15 + 9 + 6);
}

// A fixture with one more key, or another value of one that it has: loading says what does not go together.
static void expect_refused(const char *name, const char *key, const char *text, int number,
                           const char *message)
{
    const char *copy = in_folder("odd.gguf");
    char path[96];
    dgm_gguf *g = NULL;
    dgm_gguf_writer *w = NULL;
    dgm_error err = {""};
    snprintf(path, sizeof path, "tests/data/models/%s.gguf", name);
    assert_int_equal(dgm_gguf_open(&g, path, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
    for (int i = 0; i < dgm_gguf_meta_count(g); i++)
        if (strcmp(dgm_gguf_meta(g, i)->key, key) != 0) dgm_gguf_set_copy(w, dgm_gguf_meta(g, i));
    if (text)
        dgm_gguf_set_string(w, key, text);
    else
        dgm_gguf_set_u32(w, key, (uint32_t)number);
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        dgm_gguf_add_tensor(w, t->name, t->type, t->n_dims, t->shape, t->data);
    }
    assert_int_equal(dgm_gguf_write(w, copy, NULL), DGM_OK);
    dgm_gguf_writer_close(&w);
    dgm_gguf_close(&g);
    dgm_backend *backend = NULL;
    dgm_model *model = NULL;
    assert_int_equal(dgm_backend_open(&backend, "cpu", NULL, &err), DGM_OK);
    assert_int_equal(dgm_gguf_open(&g, copy, &err), DGM_OK);
    assert_int_not_equal(dgm_model_load(&model, backend, g, DGM_PRECISION_F32, &err), DGM_OK);
    if (!strstr(err.text, message)) fail_msg("'%s' does not say '%s'", err.text, message);
    dgm_model_free(&model);
    dgm_gguf_close(&g);
    dgm_backend_close(&backend);
}

static void test_refused_keys(void **state)
{
    (void)state;
    expect_refused("rnn-devlin", "dragoman.rnn.decoder_norm", "whole", 0,
                   "only the decoder 'conditional' may have normalised products or transitions");
    expect_refused("rnn-bahdanau", "dragoman.rnn.decoder_transitions", NULL, 1,
                   "only the decoder 'conditional'");
    expect_refused("rnn-bahdanau", "dragoman.rnn.decoder_cell", "lstm", 0,
                   "the decoder 'bahdanau' has no LSTM cells");
    expect_refused("rnn-conditional-lstm", "dragoman.rnn.decoder_norm", "gates", 0,
                   "key 'dragoman.rnn.decoder_norm' is 'gates', which LSTM cells do not have");
    expect_refused("rnn-conditional-lstm", "dragoman.rnn.encoder_norm", "gates", 0,
                   "key 'dragoman.rnn.encoder_norm' is 'gates'");
    expect_refused("rnn-conditional-separate", "dragoman.rnn.encoder_residual_from", NULL, 0,
                   "'dragoman.rnn.encoder_residual_from' is 0");
    expect_refused("rnn-devlin-s7", "dragoman.rnn.encoder_residual_from", NULL, 1,
                   "encoder layers with residuals must be of one width");
    expect_refused("rnn-conditional-gates", "dragoman.rnn.encoder_stacks", "piled", 0, "piled");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),       cmocka_unit_test(test_siblings),
        cmocka_unit_test(test_chunks),       cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_missing_tensors),
        cmocka_unit_test(test_refused_keys),
    };
    if (!scratch_open()) return 1;
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
