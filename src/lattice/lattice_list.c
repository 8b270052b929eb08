// SPDX-License-Identifier: MIT
// N-best lists as lattices: a tree of words, in which texts that begin alike share their beginning.
// A text's score lies on its end. The same text twice: the better score.
#include <string.h>

#include "base/fields.h"
#include "base/mem.h"
#include "lattice/lattice.h"

struct dgm_lattice_list {
    dgm_lattice *l;
    dgm_words steps; // node and word -> arc; its number is the number of the node behind, - 1
    dgm_writer key;
};

void dgm_lattice_list_close(dgm_lattice_list **out)
{
    dgm_lattice_list *t = *out;
    if (!t) return;
    dgm_lattice_close(&t->l);
    dgm_words_free(&t->steps);
    dgm_writer_free(&t->key);
    dgm_free(t);
    *out = NULL;
}

dgm_status dgm_lattice_list_open(dgm_lattice_list **out, dgm_error *err)
{
    dgm_lattice_list *t = *out = dgm_calloc(1, sizeof *t);
    int32_t start;
    if (!t) return dgm_no_memory(err);
    dgm_status st = dgm_lattice_open(&t->l, err);
    if (st == DGM_OK) st = dgm_lattice_add_node(t->l, 0, &start, err);
    if (st != DGM_OK) dgm_lattice_list_close(out);
    return st;
}

// The node behind a word, which may be new.
static dgm_status step(dgm_lattice_list *t, dgm_text word, int32_t *node, dgm_error *err)
{
    const size_t before = t->steps.count;
    uint32_t number;
    t->key.size = 0;
    dgm_write_u32(&t->key, (uint32_t)*node);
    dgm_write_bytes(&t->key, word.data, word.size);
    if (t->key.failed) return dgm_no_memory(err);
    DGM_TRY(
        dgm_words_add(&t->steps, (dgm_text){(const char *)t->key.data, t->key.size}, &number, err));
    if (t->steps.count > before) {
        int32_t to;
        DGM_TRY(dgm_lattice_add_node(t->l, 0, &to, err));
        DGM_TRY(dgm_lattice_add_text(t->l, *node, to, word, 0, 0.0f, err));
    }
    *node = (int32_t)number + 1;
    return DGM_OK;
}

// What stands between blanks; a carriage return is one, as in the text form of a lattice.
static dgm_text next_word(dgm_text *text)
{
    size_t begin = 0, end;
    while (begin < text->size && (dgm_is_blank(text->data[begin]) || text->data[begin] == '\r')) begin++;
    end = begin;
    while (end < text->size && !dgm_is_blank(text->data[end]) && text->data[end] != '\r') end++;
    const dgm_text word = {text->data + begin, end - begin};
    *text = (dgm_text){text->data + end, text->size - end};
    return word;
}

dgm_status dgm_lattice_list_add(dgm_lattice_list *t, dgm_text text, float score, dgm_error *err)
{
    int32_t node = 0;
    DGM_FAIL_IF(!dgm_utf8_valid(text), err, DGM_ERR_FORMAT, "not valid UTF-8"); // as no lattice may be
    for (;;) {
        const dgm_text word = next_word(&text);
        if (word.size == 0) break;
        DGM_TRY(step(t, word, &node, err));
    }
    dgm_lattice_add_end(t->l, node, score);
    return DGM_OK;
}

dgm_status dgm_lattice_list_finish(dgm_lattice_list **out, dgm_lattice **l, dgm_error *err)
{
    dgm_lattice_list *t = *out;
    const dgm_status st = dgm_lattice_seal(t->l, true, err);
    *l = NULL;
    if (st == DGM_OK) {
        *l = t->l;
        t->l = NULL;
    }
    dgm_lattice_list_close(out);
    return st;
}
