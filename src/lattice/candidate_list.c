// SPDX-License-Identifier: MIT
// Lists of translations for evidence; see candidate_list.h.
#include "lattice/candidate_list.h"

#include "base/mem.h"

void dgm_candidate_list_clear(dgm_candidate_list *c)
{
    if (c->text.failed) dgm_writer_free(&c->text);
    c->text.size = c->taken = c->count = 0;
}

void dgm_candidate_list_free(dgm_candidate_list *c)
{
    dgm_writer_free(&c->text);
    dgm_free(c->items);
    *c = (dgm_candidate_list){0};
}

dgm_status dgm_candidate_list_add(dgm_candidate_list *c, double score, dgm_error *err)
{
    if (c->text.failed) return dgm_no_memory(err);
    DGM_TRY(dgm_grow(&c->items, &c->cap, c->count + 1, sizeof *c->items, err));
    c->items[c->count++] =
        (dgm_evidence_candidate){.size = c->text.size - c->taken, .score = score};
    c->taken = c->text.size;
    return DGM_OK;
}

typedef struct path_taker {
    dgm_candidate_list *c;
    dgm_error *err;
    dgm_status status;
} path_taker;

static bool take_path(void *cookie, const dgm_lattice_path *p)
{
    path_taker *t = cookie;
    t->status = dgm_lattice_spell(p->lattice, p->arcs, p->count, &t->c->text, t->err);
    if (t->status == DGM_OK) t->status = dgm_candidate_list_add(t->c, p->score, t->err);
    return t->status == DGM_OK;
}

dgm_status dgm_candidate_list_paths(dgm_candidate_list *c, const dgm_lattice *l, size_t n, dgm_error *err)
{
    path_taker t = {.c = c, .err = err, .status = DGM_OK};
    DGM_TRY(dgm_lattice_nbest(l, n, true, take_path, &t, err));
    return t.status;
}

dgm_evidence dgm_candidate_list_evidence(dgm_candidate_list *c)
{
    const char *at = c->text.size ? (const char *)c->text.data : ""; // all of them may be empty
    for (size_t i = 0; i < c->count; at += c->items[i++].size) c->items[i].text = at;
    return (dgm_evidence){.size = sizeof(dgm_evidence), .candidates = c->items, .count = c->count};
}
