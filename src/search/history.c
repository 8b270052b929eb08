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
#include "search/search_private.h"

#include <math.h>
#include <string.h>

#include "base/sort.h"

static bool punishes(const dgm_search_config *c)
{
    return c->repetition > 0.0f && c->repetition != 1.0f;
}

dgm_status dgm_history_check(const dgm_search_config *c, bool cube, dgm_error *err)
{
    DGM_FAIL_IF(c->no_repeat < 0, err, DGM_ERR_ARGUMENT,
                "n-grams of %d words cannot be kept from coming again", c->no_repeat);
    DGM_FAIL_IF(!(c->repetition >= 0.0f) || isinf(c->repetition), err, DGM_ERR_ARGUMENT,
                "repetition penalty is %g; it must be a positive number, or 0: none",
                (double)c->repetition);
    DGM_FAIL_IF(cube && c->cube_key != DGM_CUBE_NONE && (c->no_repeat || punishes(c)), err,
                DGM_ERR_ARGUMENT,
                "cube search shares scores between hypotheses that said different things: it "
                "cannot tell which of them repeat themselves (cube key none can)");
    return DGM_OK;
}

void dgm_history_lay_out(dgm_carve *c, dgm_search *s)
{
    const size_t longest = (size_t)s->config.max_length, rows = (size_t)s->capacity;
    dgm_history *h = &s->history;
    *h = (dgm_history){0};
    if (!punishes(&s->config) && s->config.no_repeat == 0) return;
    h->path = DGM_CARVE(c, int32_t, longest);
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

static void deny_ngrams(const dgm_search *s, int row, int length, dgm_terms *t)
{
    const int32_t *path = s->history.path;
    const int n = s->config.no_repeat;
    int32_t *deny = s->history.deny + (size_t)row * (size_t)(s->config.max_length + 2);
    int count = t->deny_count;
    if (count > 0) memcpy(deny, t->deny, (size_t)count * sizeof *deny);
    for (int i = 0; i + n <= length; i++)
        if (memcmp(path + i, path + length - n + 1, (size_t)(n - 1) * sizeof *path) == 0)
            count = dgm_insert_id(deny, count, path[i + n - 1]);
    t->deny = deny;
    t->deny_count = count;
}

void dgm_history_terms(dgm_search *s, int row, dgm_terms *t)
{
    dgm_history *h = &s->history;
    if (!h->path) return;
    const dgm_place *p = &s->places[s->rows.place[row]];
    const int length = p->tokens;
    int32_t node = p->now.live[s->rows.hypo[row]].node;
    for (int i = length - 1; i >= 0; i--, node = p->nodes[node].parent)
        h->path[i] = p->nodes[node].token;
    if (h->deny) deny_ngrams(s, row, length, t);
    if (!h->ids) return;
    int32_t *ids = h->ids + (size_t)row * (size_t)s->config.max_length;
    int count = 0;
    for (int i = 0; i < length; i++) count = dgm_insert_id(ids, count, h->path[i]);
    t->add_ids = ids;
    t->add_values = h->values;
    t->add_count = count;
}
