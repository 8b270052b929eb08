// SPDX-License-Identifier: MIT
// Choices that must not change what a recurrent model computes (dgm_tuning): products looked up or
// made, parents shared or not, contexts multiplied before or after they are added up.
//
// Every recurrent fixture (odd sizes, all decoders, stacks and cells) in every precision walks the
// same sentences, with siblings and staggered entries, under other tunings. Look-ups and sharing
// must agree in every bit; the plain path of attention up to rounding, and with PyTorch.
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fixture.h"
#include "format/modelfile.h"

enum { NAMES = 128, ALL = 1 << 20 };

static const int list[] = {3, 0, 4, 2, 1}, delay[] = {1, 0, 4, 2, 0};

static void walk(const char *name, dgm_precision p, const dgm_tuning *t, fixture *f,
                 fixture_result *out)
{
    fixture_open_tuned(f, name, NULL, p, t);
    fixture_walk w = {list, delay, f->count, 2};
    fixture_run(f, &w, out);
}

// Both results in every bit; `what` for the message.
static void check_same(const fixture *f, const fixture_result *a, const fixture_result *b,
                       const char *what)
{
    for (int i = 0; i < f->count; i++) {
        const fixture_sentence *s = &f->sentence[list[i]];
        size_t logits = (size_t)s->steps * (size_t)f->vocabulary * sizeof(float);
        size_t weights = (size_t)s->steps * (size_t)s->source_count * sizeof(float);
        if (memcmp(a->logits[i], b->logits[i], logits) != 0 ||
            memcmp(a->attention[i], b->attention[i], weights) != 0)
            fail_msg("%s, sentence %d: %s changes the result", f->name, list[i], what);
    }
}

static void check_exact(const char *name, dgm_precision p)
{
    static const dgm_tuning other[] = {
        {.precompute = 5, .separate_rows = true},
        {.precompute = ALL, .separate_rows = true},
        {.precompute = 5},
        {.precompute = 1},
    };
    dgm_tuning none = {.separate_rows = true};
    fixture a, b;
    fixture_result first, second;
    dgm_model_counts n;
    walk(name, p, &none, &a, &first);
    dgm_state_counts(a.state, &n);
    assert_true(n.distinct > 0 && n.distinct < n.rows && n.state_rows == n.state_products);
    assert_true(n.source_found == 0 && n.target_found == 0 && n.source_words > 0);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        walk(name, p, &other[i], &b, &second);
        check_same(&a, &first, &second, "an exact step");
        dgm_state_counts(b.state, &n);
        if (!other[i].separate_rows)
            assert_true(n.distinct < n.rows && n.state_products < n.state_rows);
        if (other[i].precompute == ALL) {
            assert_int_equal(n.source_found, n.source_words);
            assert_int_equal(n.target_found, n.target_words);
            assert_int_equal(dgm_model_describe(b.model)->table_words[1], b.vocabulary);
        } else {
            assert_true(n.source_found < n.source_words && n.target_found < n.target_words);
        }
        assert_true(n.source_found > 0 && dgm_model_describe(b.model)->table_bytes > 0);
        fixture_result_free(&second);
        fixture_close(&b);
    }
    fixture_result_free(&first);
    fixture_close(&a);
}

static void test_exact(void **state)
{
    (void)state;
    char names[NAMES][64];
    int n = fixture_list("rnn-", names, NAMES, 21);
    for (int i = 0; i < n; i++)
        for (int p = 0; p < DGM_PRECISIONS_IN_FILES; p++) check_exact(names[i], (dgm_precision)p);
}

static void test_plain_attention(void **state)
{
    (void)state;
    char names[NAMES][64];
    int count = fixture_list("rnn-", names, NAMES, 21);
    for (int k = 0; k < count; k++) {
        dgm_tuning plain = {.plain_attention = true},
                   alone = {.plain_attention = true, .separate_rows = true};
        fixture f, g;
        fixture_result r, other;
        dgm_model_counts n;
        walk(names[k], DGM_PRECISION_F32, &plain, &f, &r);
        for (int i = 0; i < f.count; i++) {
            const fixture_sentence *s = &f.sentence[list[i]];
            double off = fixture_difference(r.logits[i], s->logits, s->steps, f.vocabulary);
            if (!(off <= 1e-4)) fail_msg("%s: plain attention differs by %.2e", f.name, off);
        }
        dgm_state_counts(f.state, &n);
        assert_true(n.context_products > 0);
        walk(names[k], DGM_PRECISION_F32, &alone, &g, &other);
        check_same(&f, &r, &other, "sharing parents under plain attention");
        fixture_result_free(&other);
        fixture_close(&g);
        fixture_result_free(&r);
        fixture_close(&f);
    }
}

// Memory is sized for the tuning, and nothing is allocated while decoding.
static void test_memory(void **state)
{
    (void)state;
    dgm_tuning t = {.precompute = 6, .plain_attention = true};
    fixture f;
    fixture_result r;
    fixture_walk w = {list, NULL, 5, 1};
    fixture_open_tuned(&f, "rnn-devlin-s7", NULL, DGM_PRECISION_I8, &t);
    uint64_t before = dgm_mem_allocations();
    fixture_run(&f, &w, &r);
    assert_int_equal(dgm_mem_allocations(), before);
    fixture_result_free(&r);

    uint64_t live = dgm_mem_live();
    t.precompute = 0;
    dgm_error err = {{0}};
    assert_int_equal(dgm_model_tune(f.model, &t, &err), DGM_OK); // gives the tables back
    assert_true(dgm_mem_live() < live);
    assert_int_equal(dgm_model_describe(f.model)->table_bytes, 0);
    live = dgm_mem_live();
    dgm_status st = DGM_ERR_MEMORY;
    t.precompute = 9;
    for (uint64_t n = 1; st != DGM_OK; n++) {
        dgm_mem_inject(n, 1);
        st = dgm_model_tune(f.model, &t, &err);
        dgm_mem_inject(0, 0);
        if (st != DGM_OK) {
            assert_int_equal(st, DGM_ERR_MEMORY);
            assert_int_equal(dgm_mem_live(), live);
        }
        assert_true(n < 1000);
    }
    fixture_close(&f);
}

static void test_refused(void **state)
{
    (void)state;
    fixture f;
    dgm_error err = {{0}};
    dgm_tuning some = {.precompute = 100}, none = {0}, bad = {.precompute = -1};
    fixture_open(&f, "transformer-post-sinusoid", NULL);
    assert_false(dgm_model_describe(f.model)->recurrent); // who asks is told by the table of features
    assert_int_equal(dgm_model_tune(f.model, &some, &err), DGM_OK);
    assert_int_equal(dgm_model_describe(f.model)->table_words[1], 0);
    assert_int_equal(dgm_model_tune(f.model, &none, &err), DGM_OK);
    assert_int_equal(dgm_model_tune(f.model, &bad, &err), DGM_ERR_ARGUMENT);
    fixture_close(&f);
}

// The words that a file calls frequent are the ones in the table.
static void test_frequent_words(void **state)
{
    (void)state;
    fixture f;
    dgm_error err = {{0}};
    dgm_gguf_writer *w = NULL;
    dgm_gguf *file = NULL;
    dgm_model *m = NULL;
    char path[] = "/tmp/dragoman-frequent-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    fixture_open(&f, "rnn-devlin-s2", NULL);
    int32_t rare[] = {f.vocabulary - 1, f.vocabulary - 3};
    assert_int_equal(dgm_gguf_writer_open(&w, &err), DGM_OK);
    dgm_gguf_set_copies(w, f.file);
    dgm_gguf_set_array(w, "dragoman.target.vocab.frequent", DGM_META_I32, rare, 2);
    for (int i = 0; i < dgm_gguf_tensor_count(f.file); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(f.file, i);
        dgm_gguf_add_tensor(w, t->name, (dgm_tensor_type)t->type, t->n_dims, t->shape, t->data);
    }
    assert_int_equal(dgm_gguf_write(w, path, &err), DGM_OK);
    dgm_gguf_writer_close(&w);
    assert_int_equal(dgm_gguf_open(&file, path, &err), DGM_OK);
    assert_int_equal(dgm_model_load(&m, f.backend, file, DGM_PRECISION_I8, &err), DGM_OK);
    dgm_tuning t = {.precompute = 8};
    assert_int_equal(dgm_model_tune(m, &t, &err), DGM_OK);
    assert_int_equal(dgm_model_describe(m)->table_words[DGM_SOURCE], 8);
    assert_int_equal(dgm_model_describe(m)->table_words[DGM_TARGET], 2);
    dgm_model_free(&m);
    dgm_gguf_close(&file);
    remove(path);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),          cmocka_unit_test(test_plain_attention),
        cmocka_unit_test(test_memory),         cmocka_unit_test(test_refused),
        cmocka_unit_test(test_frequent_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
