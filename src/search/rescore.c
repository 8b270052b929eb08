// SPDX-License-Identifier: MIT
// Exact scores for the results of an approximate search (accelerated cube pruning).
//
// When a sentence is done, the hypotheses that will be reported are walked once more, each by its
// own states: start, then token after token, with rank watching the next one. The walk is part of
// the generations of the sentences that still search, so it costs a row per hypothesis and step,
// not a pass of its own.
//
//     path [hypotheses, max_length + 1]    nodes from the root to the last token
//     now.live[i].node                     the node whose token is fed next; .score its exact sum
//
// Sums of the nodes on these paths become exact (nodes that paths share get the same number from
// each of them), and so do attention weights. At the end the hypotheses are ranked by exact scores.
#include "search/search_private.h"

#include <math.h>

#include "base/sort.h"

static const int32_t *path_of(const dgm_search *s, const dgm_active *p, int i)
{
    return p->path + (size_t)i * (size_t)(s->config.max_length + 1);
}

// The hypotheses that dgm_active_report would take, in one list.
static void gather(dgm_search *s, dgm_active *p)
{
    int count = 0;
    for (int i = 0; i < p->store.count && count < s->config.nbest; i++)
        p->again[count++] = p->store.items[i];
    for (int i = 0; i < p->spare.count && count < s->config.nbest; i++)
        p->again[count++] = p->spare.items[i];
    p->again_count = count;
}

dgm_status dgm_rescore_begin(dgm_search *s, dgm_active *p, dgm_error *err)
{
    gather(s, p);
    if (p->again_count == 0) return DGM_OK; // nothing was found: there is nothing to score
    for (int part = 0; part < s->part_count; part++)
        DGM_TRY(dgm_start(s->parts[part].state, 1, &p->slots[part], &p->now.rows[part], err));
    p->done = false;
    p->lead = p->tokens = 0;
    p->now.count = p->again_count;
    for (int i = 0; i < p->again_count; i++) {
        int32_t *path = p->path + (size_t)i * (size_t)(s->config.max_length + 1);
        int32_t node = p->again[i].node;
        for (int t = p->again[i].length - 1; t >= 0; t--, node = p->nodes[node].parent)
            path[t] = node;
        p->now.live[i] = (dgm_live){.node = 0, .score = 0.0f, .ended = false};
        for (int part = 0; part < s->part_count; part++)
            p->now.rows[i * s->part_count + part] = p->now.rows[part];
        for (int k = 0; k < s->scorer_count; k++)
            p->now.states[i * s->scorer_count + k] = p->first_states[k];
    }
    return DGM_OK;
}

void dgm_rescore_collect(dgm_search *s, int active)
{
    const dgm_active *p = &s->active[active];
    for (int i = 0; i < p->now.count; i++)
        if (!p->now.live[i].ended) dgm_rows_add(s, active, i);
}

// After the model's own start tokens, which one row is fed: they are everybody's.
void dgm_rescore_lead(dgm_search *s, dgm_active *p)
{
    for (int i = 1; i < p->now.count; i++)
        for (int part = 0; part < s->part_count; part++)
            p->now.rows[i * s->part_count + part] = p->now.rows[part];
}

int32_t dgm_rescore_watch(const dgm_search *s, const dgm_active *p, int hypo)
{
    const int last = p->again[hypo].length - 1;
    return p->tokens == last ? s->eos : p->nodes[path_of(s, p, hypo)[p->tokens + 1]].token;
}

// The end symbol's score, or none where the policy forced the end for nothing.
static void finish(dgm_search *s, dgm_active *p, int i, float sum)
{
    dgm_ended *e = &p->again[i];
    const int active = (int)(p - s->active);
    float score = e->sum = !e->finished && s->finish->force_end ? p->now.live[i].score : sum;
    for (int k = 0; k < s->scorer_count; k++)
        score = dgm_scorer_finish(&s->scorers[k], active, p->now.states[i * s->scorer_count + k],
                                  score);
    e->score = dgm_final_score(p, score, dgm_counted_length(s, e->length, e->finished)) +
               dgm_coverage(s, p, e->node, e->finished);
    p->now.live[i].ended = true;
}

static void move_on(dgm_search *s, dgm_active *p, int i, int row, float sum)
{
    const int active = (int)(p - s->active), scorers = s->scorer_count;
    const int32_t node = path_of(s, p, i)[p->tokens + 1];
    p->nodes[node].score = sum;
    p->now.live[i].node = node;
    p->now.live[i].score = sum;
    for (int part = 0; part < s->part_count; part++)
        p->now.rows[i * s->part_count + part] = s->rows.rows[part * s->capacity + row];
    for (int k = 0; k < scorers; k++)
        p->now.states[i * scorers + k] = dgm_scorer_advance(
            &s->scorers[k], active, p->now.states[i * scorers + k], p->nodes[node].token);
}

// The list becomes the store; equal scores stay in the order of the search.
static void close_list(dgm_active *p)
{
    p->store.count = p->again_count;
    p->spare.count = 0;
    for (int i = 0; i < p->again_count; i++) {
        int at = i;
        DGM_INSERT(p->store.items, at, p->again[i],
                   p->again[i].score > p->store.items[at - 1].score);
    }
    p->now.count = 0;
    p->done = true;
}

void dgm_rescore_take(dgm_search *s, dgm_active *p)
{
    bool any = false;
    for (int row = p->first_row; row < p->first_row + p->row_count; row++) {
        const int i = s->rows.hypo[row];
        const float sum = s->rows.watch_score[row];
        if (p->tokens == p->again[i].length - 1)
            finish(s, p, i, sum);
        else
            move_on(s, p, i, row, sum);
        any |= !p->now.live[i].ended;
    }
    s->stats.rescored += (uint64_t)p->row_count;
    s->stats.leads -= (uint64_t)p->row_count; // rank took them for leaders
    p->tokens++;
    if (!any) close_list(p);
}
