// SPDX-License-Identifier: MIT
// Shortlists: storage in a model file and in Marian's binary format (bytes laid out by hand),
// damage of every byte, and the candidates that vocabsel gives for a sentence.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "format/modelfile.h"
#include "format/shortlist.h"
#include "vocabsel/vocabsel.h"
#include "words_model.h"

#define SIZE 200
#define KEY "dragoman.shortlist."

static char path[64];

// A model file with word vocabularies of SIZE tokens; eos 0, unk 1, pad last (never chosen).
static void put_model(dgm_gguf_writer *w, const char *third)
{
    words_model_put(w, SIZE, third);
    dgm_gguf_set_i32(w, "dragoman.source.pad", SIZE - 1);
    words_model_never_last(w, SIZE);
}

static dgm_gguf *open_file(void)
{
    dgm_gguf *g = NULL;
    dgm_error err;
    assert_int_equal(dgm_modelfile_open(&g, path, &err), DGM_OK);
    return g;
}

static void write_file(dgm_gguf_writer *w)
{
    dgm_error err;
    assert_int_equal(dgm_gguf_write(w, path, &err), DGM_OK);
    dgm_gguf_writer_close(&w);
}

static dgm_gguf_writer *new_writer(void)
{
    dgm_gguf_writer *w = NULL;
    assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
    return w;
}

// Source token s has the ids (s * 7 + k * k * 3) for k = 0 .. s % 5, and token 2 none.
static dgm_shortlist *make_list(void)
{
    dgm_shortlist *l = NULL;
    assert_int_equal(dgm_shortlist_open(&l, SIZE, SIZE, SIZE * 5, 4, NULL), DGM_OK);
    for (int s = 0; s < SIZE; s++) {
        uint64_t n = l->at[s];
        for (int k = 0; k <= s % 5 && s != 2; k++) {
            int id = s * 7 % 150 + k * k * 3;
            if (id < SIZE) l->ids[n++] = id;
        }
        l->at[s + 1] = n;
    }
    static const int32_t frequent[] = {0, 1, 5, 150};
    memcpy(l->frequent, frequent, sizeof frequent);
    l->frequent_count = 4;
    return l;
}

static void write_model(const dgm_shortlist *l)
{
    dgm_gguf_writer *w = new_writer();
    dgm_error err;
    put_model(w, NULL);
    write_file(w);
    if (!l) return;
    dgm_gguf *g = open_file();
    w = new_writer();
    dgm_gguf_set_copies(w, g);
    assert_int_equal(dgm_shortlist_store(l, g, w, &err), DGM_OK);
    write_file(w);
    dgm_gguf_close(&g);
}

static void assert_same(const dgm_shortlist *a, const dgm_shortlist *b)
{
    assert_int_equal(a->sources, b->sources);
    assert_int_equal(a->targets, b->targets);
    assert_memory_equal(a->at, b->at, ((size_t)a->sources + 1) * sizeof *a->at);
    assert_memory_equal(a->ids, b->ids, a->at[a->sources] * sizeof *a->ids);
    assert_int_equal(a->frequent_count, b->frequent_count);
    assert_memory_equal(a->frequent, b->frequent, (size_t)a->frequent_count * sizeof *a->frequent);
}

static void test_round_trip(void **state)
{
    (void)state;
    dgm_shortlist *l = make_list(), *back = NULL;
    dgm_error err;
    l->copy = true;
    write_model(l);
    dgm_gguf *g = open_file();
    assert_true(dgm_shortlist_present(g));
    assert_int_equal(dgm_shortlist_load(&back, g, &err), DGM_OK);
    assert_same(l, back);
    assert_true(back->copy);
    dgm_shortlist_view v;
    assert_int_equal(dgm_shortlist_view_open(&v, g, &err), DGM_OK);
    assert_int_equal(v.longest, 5);
    int32_t row[5];
    for (int s = SIZE - 1; s >= 0; s--) {
        int n = dgm_shortlist_view_row(&v, s, row);
        assert_int_equal(n, l->at[s + 1] - l->at[s]);
        assert_memory_equal(row, l->ids + l->at[s], (size_t)n * sizeof *row);
    }
    dgm_shortlist_view_close(&v);
    // Without the list the file has no trace of it.
    dgm_gguf_writer *w = new_writer();
    dgm_gguf_set_copies(w, g);
    dgm_shortlist_drop(w);
    dgm_gguf_close(&g);
    write_file(w);
    g = open_file();
    assert_false(dgm_shortlist_present(g));
    dgm_shortlist_close(&back);
    assert_int_equal(dgm_shortlist_load(&back, g, &err), DGM_ERR_FORMAT);
    assert_null(back);
    dgm_gguf_close(&g);
    dgm_shortlist_close(&l);
}

// The bytes of docs/internals/FORMAT.md: 200 lists, of which token 0 has {0} and token 1 {7, 10}.
static void test_bytes(void **state)
{
    (void)state;
    dgm_shortlist *l = make_list();
    write_model(l);
    dgm_gguf *g = open_file();
    const uint8_t *data = NULL;
    size_t size = 0;
    assert_int_equal(dgm_gguf_get_bytes(g, KEY "data", DGM_REQUIRED, &data, &size, NULL), DGM_OK);
    static const uint8_t wanted[] = {1, 0, 2, 7, 2, 0}; // token 2 has an empty list
    assert_memory_equal(data, wanted, sizeof wanted);
    // Token 19 has ids 133, 136, 145, 160, 181: the first takes two bytes.
    size_t at = 0;
    for (int s = 0; s < 19; s++) {
        size_t n = data[at++];
        for (size_t k = 0; k < n; k++)
            while (data[at++] & 128) {}
    }
    static const uint8_t token19[] = {5, 133 - 128 + 128, 1, 2, 8, 14, 20};
    assert_memory_equal(data + at, token19, sizeof token19);
    dgm_gguf_close(&g);
    dgm_shortlist_close(&l);
}

static dgm_status try_view(const dgm_gguf *g, dgm_error *err)
{
    dgm_shortlist_view v;
    dgm_status st = dgm_shortlist_view_open(&v, g, err);
    if (st == DGM_OK) {
        int32_t row[DGM_SHORTLIST_BEST_MAX];
        for (int s = 0; s < v.sources; s++) {
            int n = dgm_shortlist_view_row(&v, s, row);
            for (int k = 0; k < n; k++)
                assert_true(row[k] >= 0 && row[k] < v.targets && (k == 0 || row[k] > row[k - 1]));
        }
        dgm_shortlist_view_close(&v);
    }
    return st;
}

// Writes the model again with some key changed and opens its list.
static void expect_refused(void (*change)(dgm_gguf_writer *), const char *message)
{
    dgm_gguf *g = open_file();
    dgm_gguf_writer *w = new_writer();
    dgm_error err = {{0}};
    change(w);
    dgm_gguf_set_copies(w, g); // does not replace what is set
    dgm_gguf_close(&g);
    char keep[64];
    strcpy(keep, path);
    strcat(path, ".changed");
    write_file(w);
    g = open_file();
    dgm_status st = try_view(g, &err);
    dgm_gguf_close(&g);
    unlink(path);
    strcpy(path, keep);
    assert_true(st == DGM_ERR_FORMAT || st == DGM_ERR_VERSION);
    assert_non_null(strstr(err.text, message));
}

static void newer(dgm_gguf_writer *w)
{
    dgm_gguf_set_u32(w, KEY "version", 2);
}
static void fewer(dgm_gguf_writer *w)
{
    dgm_gguf_set_u32(w, KEY "sources", SIZE - 1);
}
static void other_words(dgm_gguf_writer *w)
{
    put_model(w, "changed");
}
static void other_hash(dgm_gguf_writer *w)
{
    dgm_gguf_set_string(w, KEY "vocabulary", "0");
}

static void unsorted(dgm_gguf_writer *w)
{
    const int32_t ids[] = {5, 4};
    dgm_gguf_set_array(w, KEY "frequent", DGM_META_I32, ids, 2);
}

static void too_high(dgm_gguf_writer *w)
{
    const int32_t ids[] = {SIZE};
    dgm_gguf_set_array(w, KEY "frequent", DGM_META_I32, ids, 1);
}

static void set_data(dgm_gguf_writer *w, const uint8_t *first, size_t n, size_t total)
{
    uint8_t bytes[2 * SIZE] = {0};
    memcpy(bytes, first, n);
    dgm_gguf_set_array(w, KEY "data", DGM_META_U8, bytes, total);
}

static void id_too_high(dgm_gguf_writer *w)
{
    set_data(w, (uint8_t[]){1, 0xc8, 1}, 3, SIZE + 2);
}
static void long_form(dgm_gguf_writer *w)
{
    set_data(w, (uint8_t[]){1, 0x80, 0}, 3, SIZE + 2);
}
static void endless(dgm_gguf_writer *w)
{
    set_data(w, (uint8_t[]){1, 0xff, 0xff, 0xff, 0xff, 1}, 6, SIZE + 5);
}
static void short_data(dgm_gguf_writer *w)
{
    set_data(w, (uint8_t[]){0}, 1, SIZE - 1);
}
static void long_data(dgm_gguf_writer *w)
{
    set_data(w, (uint8_t[]){0}, 1, SIZE + 1);
}

static void test_damage(void **state)
{
    (void)state;
    dgm_shortlist *l = make_list();
    dgm_error err;
    write_model(l);
    expect_refused(newer, "newer than this program");
    expect_refused(fewer, "vocabularies of 199 and 200 tokens");
    expect_refused(other_words, "made for other vocabularies");
    expect_refused(other_hash, "made for other vocabularies");
    expect_refused(unsorted, "not ascending");
    expect_refused(too_high, "frequent");
    expect_refused(id_too_high, "source token 0 is damaged");
    expect_refused(long_form, "source token 0 is damaged");
    expect_refused(endless, "source token 0 is damaged");
    expect_refused(short_data, "source token 199 is damaged");
    expect_refused(long_data, "1 bytes after the last list");
    // Every bit of the data flipped: refused or still a proper list.
    dgm_gguf *g = open_file();
    const uint8_t *data = NULL;
    size_t size = 0;
    assert_int_equal(dgm_gguf_get_bytes(g, KEY "data", DGM_REQUIRED, &data, &size, NULL), DGM_OK);
    dgm_mapfile file;
    assert_int_equal(dgm_mapfile_open(&file, path, &err), DGM_OK);
    uint8_t *copy = dgm_malloc(file.size);
    memcpy(copy, file.data, file.size);
    size_t at = 0;
    while (memcmp(copy + at, data, size) != 0) at++;
    for (size_t bit = 0; bit < size * 8; bit++) {
        copy[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
        dgm_gguf *damaged = NULL;
        assert_int_equal(dgm_gguf_open_memory(&damaged, copy, file.size, &err), DGM_OK);
        try_view(damaged, &err);
        dgm_gguf_close(&damaged);
        copy[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    dgm_free(copy);
    dgm_mapfile_close(&file);
    dgm_gguf_close(&g);
    dgm_shortlist_close(&l);
}

static void test_not_stored(void **state)
{
    (void)state;
    dgm_error err;
    write_model(NULL);
    dgm_gguf *g = open_file();
    dgm_gguf_writer *w = new_writer();
    dgm_shortlist *l = make_list();
    l->ids[1] = 150; // row 1 = {150, 10}
    assert_int_equal(dgm_shortlist_store(l, g, w, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "source token 1"));
    l->ids[1] = 7;
    l->frequent[3] = SIZE;
    assert_int_equal(dgm_shortlist_store(l, g, w, &err), DGM_ERR_ARGUMENT);
    l->frequent[3] = 150;
    l->targets = SIZE + 1;
    assert_int_equal(dgm_shortlist_store(l, g, w, &err), DGM_ERR_ARGUMENT);
    dgm_gguf_writer_close(&w);
    dgm_shortlist_close(&l);
    dgm_gguf_close(&g);
}

// ---- Marian's binary --------------------------------------------------------------------------

// Three source tokens with {2, 5}, {}, {1}; the first 2 ids always. The checksum by the rule of the
// format, step by step.
static void test_marian_bytes(void **state)
{
    (void)state;
    static const uint64_t head[] = {2, 2, 4, 3, 0, 2, 2, 3};
    static const uint32_t ids[] = {2, 5, 1};
    uint64_t sum = 0, words[9];
    memcpy(words, head, sizeof head);
    words[8] = 2 | (uint64_t)5 << 32; // the odd id behind it is not in the sum
    for (int i = 0; i < 9; i++) sum ^= words[i] + 0x9e3779b9u + (sum << 6) + (sum >> 2);
    dgm_writer wanted = {0}, out = {0};
    dgm_write_u64(&wanted, 0xF11A48D5013417F5u);
    dgm_write_u64(&wanted, sum);
    for (int i = 0; i < 8; i++) dgm_write_u64(&wanted, head[i]);
    for (int i = 0; i < 3; i++) dgm_write_u32(&wanted, ids[i]);

    dgm_shortlist *l = NULL, *back = NULL;
    dgm_error err;
    assert_int_equal(dgm_shortlist_open(&l, 3, 6, 3, 2, &err), DGM_OK);
    l->at[1] = l->at[2] = 2;
    l->at[3] = 3;
    l->ids[0] = 2;
    l->ids[1] = 5;
    l->ids[2] = 1;
    l->frequent[1] = 1;
    l->frequent_count = 2;
    assert_int_equal(dgm_shortlist_marian_write(l, 0, &out, &err), DGM_OK);
    assert_int_equal(out.size, wanted.size);
    assert_memory_equal(out.data, wanted.data, wanted.size);
    assert_int_equal(dgm_shortlist_marian_read(&back, out.data, out.size, 3, 6, &err), DGM_OK);
    assert_same(l, back);
    dgm_shortlist_close(&back);
    // Other sizes than the vocabulary's, and every truncation and every flipped bit, are refused.
    assert_int_equal(dgm_shortlist_marian_read(&back, out.data, out.size, 2, 6, &err),
                     DGM_ERR_FORMAT);
    assert_int_equal(dgm_shortlist_marian_read(&back, out.data, out.size, 3, 5, &err),
                     DGM_ERR_FORMAT);
    for (size_t n = 0; n < out.size; n++)
        assert_int_equal(dgm_shortlist_marian_read(&back, out.data, n, 3, 6, &err), DGM_ERR_FORMAT);
    for (size_t bit = 0; bit < (out.size - 4) * 8; bit++) {
        out.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(dgm_shortlist_marian_read(&back, out.data, out.size, 3, 6, &err),
                         DGM_ERR_FORMAT);
        assert_null(back);
        out.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    dgm_writer_free(&out);
    dgm_writer_free(&wanted);
    dgm_shortlist_close(&l);
}

// Frequent tokens that are not the first ones go into the list of the end symbol.
static void test_marian_frequent(void **state)
{
    (void)state;
    dgm_shortlist *l = make_list(), *back = NULL;
    dgm_error err;
    dgm_writer out = {0};
    assert_int_equal(dgm_shortlist_marian_write(l, -1, &out, &err), DGM_ERR_UNSUPPORTED);
    assert_int_equal(dgm_shortlist_marian_write(l, 0, &out, &err), DGM_OK);
    assert_int_equal(dgm_shortlist_marian_read(&back, out.data, out.size, SIZE, SIZE, &err),
                     DGM_OK);
    assert_int_equal(back->frequent_count, 2);
    assert_int_equal(back->at[1], 3);
    assert_int_equal(back->ids[0], 0);
    assert_int_equal(back->ids[1], 5);
    assert_int_equal(back->ids[2], 150);
    assert_int_equal(back->at[SIZE], l->at[SIZE] + 2);
    dgm_shortlist_close(&back);
    dgm_shortlist_close(&l);
    dgm_writer_free(&out);
}

// ---- candidates of a sentence -----------------------------------------------------------------

static void expect_candidates(const dgm_candidates *c, const dgm_shortlist *l,
                              const int32_t *source, int count)
{
    bool in[SIZE] = {false};
    for (int i = 0; i < l->frequent_count; i++) in[l->frequent[i]] = true;
    in[0] = in[1] = true; // eos, unk
    for (int i = 0; i < count; i++) {
        for (uint64_t k = l->at[source[i]]; k < l->at[source[i] + 1]; k++) in[l->ids[k]] = true;
        if (l->copy) in[source[i]] = true;
    }
    in[SIZE - 1] = false; // never
    int n = 0;
    for (int id = 0; id < SIZE; id++)
        if (in[id]) assert_int_equal(c->ids[n++], id);
    assert_int_equal(c->count, n);
}

static dgm_status admit(dgm_vocabsel *v, int active, const int32_t *source, int count)
{
    const dgm_vocabsel_sentence words = {.source = source, .source_count = count};
    dgm_error err;
    return v->ops->admit(v, active, &words, &err);
}

// Tokens of a forced prefix join the candidates.
static void check_needed(dgm_vocabsel *v)
{
    static const int32_t source[] = {0}, needed[] = {150, 77, 150}, wrong[] = {SIZE};
    dgm_vocabsel_sentence s = {.source = source, .source_count = 1};
    dgm_error err;
    bool has[2][SIZE] = {{false}};
    for (int with = 0; with < 2; with++) {
        s.needed = needed;
        s.needed_count = with ? 2 : 0;
        assert_int_equal(v->ops->admit(v, 1, &s, &err), DGM_OK);
        const dgm_candidates *c = v->ops->select(v, 1, 0, (dgm_mat){0});
        for (int i = 0; i < c->count; i++) has[with][c->ids[i]] = true;
        v->ops->leave(v, 1);
    }
    for (int id = 0; id < SIZE; id++)
        assert_true(has[1][id] == (has[0][id] || id == 150 || id == 77));
    s.needed_count = 3; // more than the limits say
    assert_int_equal(v->ops->admit(v, 1, &s, &err), DGM_ERR_ARGUMENT);
    s.needed = wrong;
    s.needed_count = 1;
    assert_int_equal(v->ops->admit(v, 1, &s, &err), DGM_ERR_ARGUMENT);
}

// Continuations survive the file, are checked, and leave out what the sentence has already.
static void test_next(void **state)
{
    (void)state;
    dgm_shortlist *l = make_list(), *back = NULL;
    dgm_error err;
    assert_int_equal(dgm_shortlist_open_next(l, 3 * SIZE, &err), DGM_OK);
    for (int y = 0; y < SIZE; y++) {
        uint64_t n = l->next_at[y];
        for (int k = 0; k < y % 4 && y + 40 * k < SIZE; k++) l->next_ids[n++] = y + 40 * k;
        l->next_at[y + 1] = n;
    }
    write_model(l);
    dgm_gguf *g = open_file();
    assert_int_equal(dgm_shortlist_load(&back, g, &err), DGM_OK);
    assert_same(l, back);
    assert_memory_equal(l->next_at, back->next_at, (SIZE + 1) * sizeof *l->next_at);
    assert_memory_equal(l->next_ids, back->next_ids, l->next_at[SIZE] * sizeof *l->next_ids);
    dgm_shortlist_close(&back);
    static const dgm_vocabsel_limits limits = {
        .sentences = 3, .max_source = 5, .max_needed = 2, .rows = 4};
    dgm_vocabsel v;
    assert_int_equal(dgm_vocabsel_lexical_open(&v, g, &limits, &err), DGM_OK);
    static const int32_t source[] = {30, 31, 0};
    assert_int_equal(admit(&v, 1, source, 3), DGM_OK);
    const dgm_candidates *c = v.ops->select(&v, 1, 0, (dgm_mat){0});
    uint64_t allocations = dgm_mem_allocations();
    assert_null(v.ops->more(&v, 1, 0, -1));
    assert_null(v.ops->more(&v, 1, 4, 7)); // more rows than were said
    for (int y = 0; y < SIZE; y++) {
        const dgm_candidates *more = v.ops->more(&v, 1, 3, y);
        int n = 0;
        for (uint64_t k = l->next_at[y]; k < l->next_at[y + 1]; k++) {
            bool listed = l->next_ids[k] == SIZE - 1; // never
            for (int i = 0; i < c->count; i++) listed |= c->ids[i] == l->next_ids[k];
            if (listed) continue;
            assert_non_null(more);
            assert_true(n < more->count && more->ids[n] == l->next_ids[k]);
            n++;
        }
        assert_int_equal(n, more ? more->count : 0);
    }
    assert_int_equal(dgm_mem_allocations(), allocations);
    v.ops->close(&v);
    // Damage: cut short, and an id beyond the vocabulary.
    const uint8_t *data = NULL;
    size_t size = 0;
    assert_int_equal(dgm_gguf_get_bytes(g, KEY "next", DGM_REQUIRED, &data, &size, NULL), DGM_OK);
    for (int kind = 0; kind < 2; kind++) {
        uint8_t *bad = dgm_malloc(size);
        memcpy(bad, data, size);
        if (kind) bad[size - 1] = 127;
        dgm_gguf_writer *w = new_writer();
        dgm_gguf_set_copies(w, g);
        dgm_gguf_set_array(w, KEY "next", DGM_META_U8, bad, kind ? size : size - 1);
        dgm_free(bad);
        char keep[sizeof path];
        memcpy(keep, path, sizeof path);
        strcat(path, "x");
        write_file(w);
        dgm_gguf *damaged = open_file();
        dgm_shortlist_view view;
        assert_int_equal(dgm_shortlist_view_open(&view, damaged, &err), DGM_ERR_FORMAT);
        assert_non_null(strstr(err.text, "next"));
        dgm_gguf_close(&damaged);
        remove(path);
        memcpy(path, keep, sizeof path);
    }
    dgm_gguf_close(&g);
    dgm_shortlist_close(&l);
}

static void test_candidates(void **state)
{
    (void)state;
    static const int32_t first[] = {30, 31, 32, 199, 0}, second[] = {2, 0}, wrong[] = {SIZE};
    static const dgm_vocabsel_limits limits = {.sentences = 3, .max_source = 5, .max_needed = 2};
    dgm_error err;
    for (int copy = 0; copy < 2; copy++) {
        dgm_shortlist *l = make_list();
        l->copy = copy;
        write_model(l);
        dgm_gguf *g = open_file();
        dgm_vocabsel v;
        assert_int_equal(dgm_vocabsel_lexical_open(&v, g, &limits, &err), DGM_OK);
        uint64_t allocations = dgm_mem_allocations();
        assert_int_equal(admit(&v, 0, first, 5), DGM_OK);
        assert_int_equal(admit(&v, 2, second, 2), DGM_OK);
        expect_candidates(v.ops->select(&v, 0, 0, (dgm_mat){0}), l, first, 5);
        expect_candidates(v.ops->select(&v, 2, 0, (dgm_mat){0}), l, second, 2);
        v.ops->leave(&v, 0);
        assert_int_equal(admit(&v, 0, second, 2), DGM_OK);
        expect_candidates(v.ops->select(&v, 0, 0, (dgm_mat){0}), l, second, 2);
        assert_int_equal(dgm_mem_allocations(), allocations);
        assert_int_equal(admit(&v, 1, wrong, 1), DGM_ERR_ARGUMENT);
        assert_int_equal(admit(&v, 3, second, 2), DGM_ERR_ARGUMENT);
        assert_int_equal(admit(&v, 1, first, 6), DGM_ERR_ARGUMENT);
        check_needed(&v);
        v.ops->close(&v);
        dgm_gguf_close(&g);
        dgm_shortlist_close(&l);
    }
    write_model(NULL);
    dgm_gguf *g = open_file();
    dgm_vocabsel v;
    assert_int_equal(dgm_vocabsel_lexical_open(&v, g, &limits, &err), DGM_ERR_UNSUPPORTED);
    assert_null(v.data);
    dgm_gguf_close(&g);
}

static void test_memory(void **state)
{
    (void)state;
    dgm_shortlist *l = make_list();
    write_model(l);
    dgm_gguf *g = open_file();
    uint64_t live = dgm_mem_live();
    for (uint64_t n = 1, done = 0; !done; n++) {
        dgm_vocabsel v;
        dgm_shortlist *back = NULL;
        dgm_writer out = {0};
        dgm_error err;
        dgm_mem_inject(n, 1);
        const dgm_vocabsel_limits limits = {
            .sentences = 3, .max_source = 50, .max_needed = 2, .rows = 4};
        dgm_status st = dgm_vocabsel_lexical_open(&v, g, &limits, &err);
        if (st == DGM_OK) v.ops->close(&v);
        if (st == DGM_OK) st = dgm_shortlist_load(&back, g, &err);
        if (st == DGM_OK) st = dgm_shortlist_marian_write(back, 0, &out, &err);
        dgm_shortlist_close(&back);
        if (st == DGM_OK)
            st = dgm_shortlist_marian_read(&back, out.data, out.size, SIZE, SIZE, &err);
        dgm_mem_inject(0, 0);
        dgm_shortlist_close(&back);
        dgm_writer_free(&out);
        assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
        assert_int_equal(dgm_mem_live(), live);
        done = st == DGM_OK;
    }
    dgm_gguf_close(&g);
    dgm_shortlist_close(&l);
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/dragoman-shortlist-%ld.gguf", (long)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_damage),       cmocka_unit_test(test_not_stored),
        cmocka_unit_test(test_marian_bytes), cmocka_unit_test(test_marian_frequent),
        cmocka_unit_test(test_next),         cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
