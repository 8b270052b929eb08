// SPDX-License-Identifier: MIT
// What a hypothesis said already, as terms of its next row: n-grams that must not come again and
// words that cost something the second time.
//
//   no_repeat = n      denied: every token that would complete an n-gram of the hypothesis
//                          path  a b c a b | c ?      n = 3: "a b" was followed by c
//   repetition = X     added:  -ln X for every token of the path, once however often it occurred;
//                      the token's probability is divided by X
//
// A scorer has one number per hypothesis as its state; these terms need the whole path, and the
// search has it in its tree, so they are made here, before the scorers are asked. Forced prefixes
// come later and win. The end symbol is not on any path: it is never denied nor punished here.
// Lists of a row live until the row's next generation: one stretch of memory per generation row.
// Cube pruning lets hypotheses share a row of scores whose terms are the same (dgm_history_alike).
#include "search/search_private.h"

#include <math.h>
#include <string.h>

#include "base/sort.h"

static bool punishes(const dgm_search_config *c)
{
    return c->repetition > 0.0f && c->repetition != 1.0f;
}

dgm_status dgm_history_check(const dgm_search_config *c, dgm_error *err)
{
    DGM_FAIL_IF(c->no_repeat < 0, err, DGM_ERR_ARGUMENT,
                "no-repeat n-gram size must be 0 or more, not %d", c->no_repeat);
    DGM_FAIL_IF(!(c->repetition >= 0.0f) || isinf(c->repetition), err, DGM_ERR_ARGUMENT,
                "repetition penalty is %g; it must be a positive number, or 0: none",
                (double)c->repetition);
    return DGM_OK;
}

void dgm_history_lay_out(dgm_carve *c, dgm_search *s)
{
    const size_t longest = (size_t)s->config.max_length, rows = (size_t)s->capacity;
    dgm_history *h = &s->history;
    *h = (dgm_history){0};
    if (!punishes(&s->config) && s->config.no_repeat == 0) return;
    h->path = DGM_CARVE(c, int32_t, longest);
    h->compared = DGM_CARVE(c, int32_t, 2 * longest);
    if (punishes(&s->config)) {
        h->ids = DGM_CARVE(c, int32_t, rows * longest);
        h->values = DGM_CARVE(c, float, longest);
    }
    // The unknown word and the end symbol may be denied already.
    if (s->config.no_repeat > 0) h->deny = DGM_CARVE(c, int32_t, rows * (longest + 2));
}

void dgm_history_start(dgm_search *s)
{
    for (int i = 0; s->history.values && i < s->config.max_length; i++)
        s->history.values[i] = -logf(s->config.repetition);
}

// The tokens behind a hypothesis, first one first; p->tokens of them.
static void read_path(const dgm_active *p, int hypo, int32_t *path)
{
    int32_t node = p->now.live[hypo].node;
    for (int i = p->tokens - 1; i >= 0; i--, node = p->nodes[node].parent)
        path[i] = p->nodes[node].token;
}

int dgm_history_denied(const int32_t *path, int length, int n, int32_t *deny, int count)
{
    for (int i = 0; i + n <= length; i++)
        if (memcmp(path + i, path + length - n + 1, (size_t)(n - 1) * sizeof *path) == 0)
            count = dgm_insert_id(deny, count, path[i + n - 1]);
    return count;
}

int dgm_history_said(const int32_t *path, int length, int32_t *ids)
{
    int count = 0;
    for (int i = 0; i < length; i++) count = dgm_insert_id(ids, count, path[i]);
    return count;
}

static void deny_ngrams(const dgm_search *s, int row, int length, dgm_terms *t)
{
    int32_t *deny = s->history.deny + (size_t)row * (size_t)(s->config.max_length + 2);
    if (t->deny_count > 0) memcpy(deny, t->deny, (size_t)t->deny_count * sizeof *deny);
    t->deny_count =
        dgm_history_denied(s->history.path, length, s->config.no_repeat, deny, t->deny_count);
    t->deny = deny;
}

void dgm_history_terms(dgm_search *s, int row, dgm_terms *t)
{
    dgm_history *h = &s->history;
    if (!h->path) return;
    const dgm_active *p = &s->active[s->rows.active[row]];
    read_path(p, s->rows.hypo[row], h->path);
    if (h->deny) deny_ngrams(s, row, p->tokens, t);
    if (!h->ids) return;
    int32_t *ids = h->ids + (size_t)row * (size_t)s->config.max_length;
    const int count = dgm_history_said(h->path, p->tokens, ids);
    if (count > 0) dgm_terms_add(t, ids, h->values, count);
}

float dgm_history_cost(const dgm_search *s)
{
    return s->history.values ? s->history.values[0] : 0.0f;
}

static bool same_lists(const int32_t *const *lists, const int *counts)
{
    return counts[0] == counts[1] &&
           memcmp(lists[0], lists[1], (size_t)counts[0] * sizeof *lists[0]) == 0;
}

bool dgm_history_alike(const dgm_search *s, const dgm_active *p, int a, int b)
{
    const dgm_history *h = &s->history;
    if (!h->path) return true;
    const int hypo[2] = {a, b}, length = p->tokens;
    int32_t *const lists[2] = {h->compared, h->compared + s->config.max_length};
    int counts[2];
    bool same = true;
    for (int i = 0; i < 2 && h->deny; i++) {
        read_path(p, hypo[i], h->path);
        counts[i] = dgm_history_denied(h->path, length, s->config.no_repeat, lists[i], 0);
    }
    if (h->deny) same = same_lists((const int32_t *const *)lists, counts);
    for (int i = 0; i < 2 && h->ids; i++) {
        read_path(p, hypo[i], h->path);
        counts[i] = dgm_history_said(h->path, length, lists[i]);
    }
    return same && (!h->ids || same_lists((const int32_t *const *)lists, counts));
}
