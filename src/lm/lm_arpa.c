// SPDX-License-Identifier: MIT
// ARPA files: read line by line into sorted n-grams, from which lm_build.c makes the model, and
// written from a model. Called by dgm_lm_open and the tools.
//
//     \data\            anything before it is skipped
//     ngram 1=COUNT     one line per order
//     \1-grams:         then LOG10 WORDS [BACKOFF], separated by tabs or spaces
//     \end\             anything behind it is skipped
//
// Words get their numbers in the order of the 1-grams. A model without <unk>, <s> or </s> gets it
// with log10 p = -99. The context (all words but the last) of every n-gram must be there.
#include <string.h>

#include "base/extsort.h"
#include "base/fields.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/textfile.h"
#include "base/words.h"
#include "lm/lm.h"
#include "lm/lm_train.h"

enum { BEFORE = -2, COUNTS = -1, BETWEEN = 0, BEHIND = DGM_LM_ORDER_MAX + 1 };

struct dgm_arpa {
    int part; // one of the names above, or the order whose n-grams are read
    int order, next;
    uint64_t said[DGM_LM_ORDER_MAX + 1], count[DGM_LM_ORDER_MAX + 1];
    dgm_words words;
    dgm_extsort *grams[DGM_LM_ORDER_MAX + 1];
};

dgm_status dgm_arpa_open(dgm_arpa **a, dgm_error *err)
{
    *a = dgm_calloc(1, sizeof **a);
    if (!*a) return dgm_no_memory(err);
    (*a)->part = BEFORE;
    (*a)->next = 1;
    return DGM_OK;
}

void dgm_arpa_close(dgm_arpa **p)
{
    dgm_arpa *a = *p;
    if (!a) return;
    dgm_words_free(&a->words);
    for (int n = 0; n <= DGM_LM_ORDER_MAX; n++) dgm_extsort_close(&a->grams[n]);
    dgm_free(a);
    *p = NULL;
}

// "ngram 3=1234"
static dgm_status read_count(dgm_arpa *a, dgm_text line, dgm_error *err)
{
    uint64_t n = 0, count = 0;
    bool good = dgm_field_skip(&line, "ngram ");
    line = dgm_field_trim(line);
    good = good && dgm_number_take_u64(&line, INT32_MAX, &n);
    line = dgm_field_trim(line);
    good = good && dgm_field_skip(&line, "=") &&
           dgm_number_u64(dgm_field_trim(line), UINT64_MAX, &count);
    DGM_FAIL_IF(!good, err, DGM_ERR_FORMAT, "not 'ngram ORDER=COUNT'");
    DGM_FAIL_IF(n != (uint64_t)a->order + 1, err, DGM_ERR_FORMAT, "order %d follows order %d",
                (int)n, a->order);
    DGM_FAIL_IF(n > DGM_LM_ORDER_MAX, err, DGM_ERR_UNSUPPORTED,
                "n-grams of order %d; %d is the highest that can be read", (int)n,
                DGM_LM_ORDER_MAX);
    a->order = (int)n;
    a->said[n] = count;
    return DGM_OK;
}

static dgm_status end_section(dgm_arpa *a, dgm_error *err)
{
    int n = a->part;
    DGM_FAIL_IF(n >= 1 && a->count[n] != a->said[n], err, DGM_ERR_FORMAT,
                "%llu n-grams of order %d, but the file says %llu", (unsigned long long)a->count[n],
                n, (unsigned long long)a->said[n]);
    a->part = BETWEEN;
    return DGM_OK;
}

static dgm_status push_gram(dgm_arpa *a, int n, const uint32_t *ids, float prob, float backoff,
                            dgm_error *err)
{
    uint32_t record[DGM_LM_ORDER_MAX + 2];
    memcpy(record, ids, (size_t)n * sizeof *record);
    memcpy(record + n, &prob, sizeof prob);
    memcpy(record + n + 1, &backoff, sizeof backoff);
    a->count[n]++;
    return dgm_extsort_push(a->grams[n], record, err);
}

// "\3-grams:" or "\end\"
static dgm_status begin_section(dgm_arpa *a, dgm_text line, dgm_error *err)
{
    DGM_TRY(end_section(a, err));
    DGM_FAIL_IF(a->order == 0, err, DGM_ERR_FORMAT, "no 'ngram ORDER=COUNT' comes before this");
    if (dgm_text_is(line, "\\end\\")) {
        DGM_FAIL_IF(a->next != a->order + 1, err, DGM_ERR_FORMAT, "the %d-grams are missing",
                    a->next);
        a->part = BEHIND;
        return DGM_OK;
    }
    char title[] = "\\0-grams:";
    title[1] = (char)('0' + a->next);
    DGM_FAIL_IF(a->next > a->order || !dgm_text_is(line, title), err, DGM_ERR_FORMAT,
                "expected '%s'", a->next > a->order ? "\\end\\" : title);
    a->part = a->next++;
    dgm_extsort_options o = {.keys = a->part, .width = a->part + 2, .memory = SIZE_MAX / 4};
    return dgm_extsort_open(&a->grams[a->part], &o, err);
}

static dgm_status read_gram(dgm_arpa *a, dgm_text line, dgm_error *err)
{
    int n = a->part;
    uint32_t ids[DGM_LM_ORDER_MAX];
    float prob, backoff = 0;
    dgm_text field = dgm_field_next(&line);
    DGM_FAIL_IF(!dgm_number_f32(field, &prob), err, DGM_ERR_FORMAT,
                "an n-gram begins with the logarithm of its probability");
    DGM_FAIL_IF(prob > 0, err, DGM_ERR_FORMAT, "a probability is greater than 1");
    for (int k = 0; k < n; k++) {
        field = dgm_field_next(&line);
        DGM_FAIL_IF(field.size == 0, err, DGM_ERR_FORMAT, "fewer than %d words", n);
        int64_t id = dgm_words_find(&a->words, field);
        if (n == 1) {
            DGM_FAIL_IF(id >= 0, err, DGM_ERR_FORMAT, "the word occurs twice");
            DGM_TRY(dgm_words_add(&a->words, field, &ids[0], err));
        } else {
            DGM_FAIL_IF(id < 0, err, DGM_ERR_FORMAT, "the word '%.*s' is not a 1-gram",
                        DGM_SHOWN(field));
            ids[k] = (uint32_t)id;
        }
    }
    field = dgm_field_next(&line);
    if (field.size) {
        DGM_FAIL_IF(!dgm_number_f32(field, &backoff), err, DGM_ERR_FORMAT, "more than %d words", n);
        DGM_FAIL_IF(dgm_field_next(&line).size, err, DGM_ERR_FORMAT,
                    "more than a back-off weight after the n-gram");
    }
    return push_gram(a, n, ids, prob, backoff, err);
}

dgm_status dgm_arpa_line(dgm_arpa *a, dgm_text line, dgm_error *err)
{
    line = dgm_field_trim(line);
    if (a->part == BEFORE) {
        if (dgm_text_is(line, "\\data\\")) a->part = COUNTS;
        return DGM_OK;
    }
    if (a->part == BEHIND || line.size == 0) return DGM_OK;
    if (line.data[0] == '\\') return begin_section(a, line, err);
    return a->part == COUNTS ? read_count(a, line, err) : read_gram(a, line, err);
}

dgm_status dgm_arpa_finish(dgm_arpa *a, int bits, dgm_lm **lm, dgm_error *err)
{
    *lm = NULL;
    DGM_FAIL_IF(a->part == BEFORE, err, DGM_ERR_FORMAT, "not an ARPA file: no line '\\data\\'");
    DGM_FAIL_IF(a->part != BEHIND, err, DGM_ERR_FORMAT, "the file ends before '\\end\\'");
    DGM_FAIL_IF(bits < 0 || bits == 1 || bits > DGM_LM_BITS_MAX, err, DGM_ERR_ARGUMENT,
                "numbers are quantised to 2 to %d bits, not %d", DGM_LM_BITS_MAX, bits);
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    for (int i = 0; i < 3; i++) {
        uint32_t id;
        if (dgm_words_find(&a->words, dgm_text_of(special[i])) >= 0) continue;
        DGM_TRY(dgm_words_add(&a->words, dgm_text_of(special[i]), &id, err));
        DGM_TRY(push_gram(a, 1, &id, -99, 0, err));
    }
    return dgm_lm_build(lm, &a->words, a->grams, a->order, a->count, bits, err);
}

static dgm_status take_line(void *cookie, dgm_text line, dgm_error *err)
{
    return dgm_arpa_line(cookie, line, err);
}

dgm_status dgm_lm_read_arpa(dgm_lm **lm, const char *path, int bits, dgm_error *err)
{
    *lm = NULL;
    dgm_arpa *a = NULL;
    DGM_TRY(dgm_arpa_open(&a, err));
    dgm_status st = dgm_lines_each(path, take_line, a, err);
    if (st == DGM_OK) {
        st = dgm_arpa_finish(a, bits, lm, err);
        if (st != DGM_OK) dgm_error_prefix(err, "%s", path);
    }
    dgm_arpa_close(&a);
    return st;
}

// ---- writing ----------------------------------------------------------------------------------

typedef struct walk {
    const dgm_lm *lm;
    dgm_textout *out;
    dgm_writer text;
    uint32_t ids[DGM_LM_ORDER_MAX];
} walk;

static void put_gram(walk *w, int n, uint64_t i)
{
    const dgm_lm *lm = w->lm;
    float backoff = n < lm->order ? dgm_lm_backoff(lm, n, i) : 0;
    char number[32];
    dgm_write_bytes(&w->text, number,
                    (size_t)dgm_arpa_number(number, sizeof number, dgm_lm_prob(lm, n, i)));
    for (int k = 0; k < n; k++) {
        dgm_text s = dgm_lm_spell(lm, w->ids[k]);
        dgm_write_u8(&w->text, k ? ' ' : '\t');
        dgm_write_bytes(&w->text, s.data, s.size);
    }
    if (n < lm->order) {
        dgm_write_u8(&w->text, '\t');
        dgm_write_bytes(&w->text, number, (size_t)dgm_arpa_number(number, sizeof number, backoff));
    }
    dgm_write_u8(&w->text, '\n');
    if (w->text.size < 1 << 16 || w->text.failed) return;
    dgm_textout_write(w->out, w->text.data, w->text.size);
    w->text.size = 0;
}

// All n-grams of order n below node i of order `at`.
static void walk_down(walk *w, int n, int at, uint64_t i)
{
    w->ids[at - 1] = dgm_lm_node_word(w->lm, at, i);
    if (at == n) {
        put_gram(w, n, i);
        return;
    }
    uint64_t begin, end;
    dgm_lm_children(w->lm, at, i, &begin, &end);
    for (uint64_t c = begin; c < end; c++) walk_down(w, n, at + 1, c);
}

dgm_status dgm_lm_write_arpa(const dgm_lm *lm, const char *path, dgm_error *err)
{
    walk w = {.lm = lm};
    DGM_TRY(dgm_textout_open(&w.out, path, err));
    dgm_write_text(&w.text, "\\data\\\n");
    for (int n = 1; n <= lm->order; n++)
        dgm_write_format(&w.text, "ngram %d=%llu\n", n, (unsigned long long)lm->level[n].count);
    for (int n = 1; n <= lm->order; n++) {
        dgm_write_format(&w.text, "\n\\%d-grams:\n", n);
        for (uint64_t i = 0; i < lm->words; i++) walk_down(&w, n, 1, i);
    }
    dgm_write_text(&w.text, "\n\\end\\\n");
    dgm_status st = w.text.failed ? dgm_no_memory(err) : DGM_OK;
    if (st == DGM_OK) {
        dgm_textout_write(w.out, w.text.data, w.text.size);
        st = dgm_textout_commit(&w.out, err);
    }
    dgm_textout_discard(&w.out);
    dgm_writer_free(&w.text);
    return st;
}
