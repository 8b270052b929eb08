// SPDX-License-Identifier: MIT
// Mask-predict (Ghazvininejad et al. 2019): whole sentences, filled in and corrected.
//
// A sentence has `lengths` candidates, one for each of its most probable lengths N. Iteration 1
// predicts all N words from masks. Iteration t of T masks the n_t = max(1, N (T - t + 1) / T) words
// of lowest probability (equal ones: the earlier) and predicts these anew; the others keep word and
// probability. Only masked positions are projected. The candidate with the highest mean
// log-probability wins (equal ones: the more probable length); the others are an n-best list.
//
//   N = 5, T = 4:   words masked in iterations 1 to 4:  5, 3, 2, 1
//
// One call of advance is one iteration of every sentence inside. Those that are new learn their lengths
// together. Candidates of all of them share calls of refine, as many as its limit of tokens allows; a
// sentence's own are cut apart only where they alone are too many, so that what a selection of words
// sees of it never depends on others.
#include "search/search_private.h"

#include <math.h>
#include <string.h>

#include "base/sort.h"

// A candidate.
typedef struct filled {
    int length;     // words; 0: it died
    int32_t *words; // [max_length]
    float *values;  // [max_length] log-probability of each when it was predicted
} filled;

struct dgm_masks {
    filled *candidates;         // [sentences, width]
    int *count;                 // [sentences]
    int *iteration;             // [sentences]
    int tokens;                 // of one refine call at most
    dgm_refine_target *targets; // [sentences * width]
    filled **owner;             // [sentences * width] of a target
    int32_t *wanted;            // [tokens]
    dgm_length_query *queries;  // [sentences] of those that are new,
    int32_t *entering;          // [sentences] which they are,
    int32_t *lengths;           // [sentences, width] and their lengths
    int *rank;                  // [max_length] positions by probability
    // of the wanted positions of a call
    dgm_terms *terms;                  // [tokens]
    const dgm_candidates **selections; // [tokens]
    float *score;                      // [tokens, k]
    int32_t *token;                    // [tokens, k]
};

int dgm_mask_tokens(const dgm_search_config *c)
{
    return c->refine_tokens > c->max_length ? c->refine_tokens : c->max_length;
}

static filled *candidates_of(const dgm_search *s, int active)
{
    return s->masks->candidates + (size_t)active * (size_t)s->width;
}

// ---- one iteration ------------------------------------------------------------------------------

// The lengths of all sentences that are new.
static void begin(dgm_search *s)
{
    dgm_masks *m = s->masks;
    int count = 0;
    for (int i = 0; i < s->config.sentences; i++) {
        const dgm_active *p = &s->active[i];
        if (!p->used || p->steps > 0) continue;
        m->queries[count] = (dgm_length_query){.slot = p->slots[0],
                                               .longest = p->max_length,
                                               .lengths = m->lengths + count * s->width};
        m->entering[count++] = i;
    }
    dgm_lengths(s->parts[0].state, count, m->queries, s->width);
    for (int k = 0; k < count; k++) {
        const int active = m->entering[k];
        filled *c = candidates_of(s, active);
        m->iteration[active] = 0;
        m->count[active] = m->queries[k].found;
        for (int i = 0; i < m->count[active]; i++) c[i].length = m->queries[k].lengths[i];
    }
}

// Positions in ascending order that iteration t (from 1) predicts; their number.
static int choose(dgm_search *s, const filled *c, int t, int32_t *wanted)
{
    const int n = c->length, most = s->config.iterations;
    int masked = (int)((int64_t)n * (most - t + 1) / most);
    if (masked < 1) masked = 1;
    if (t == 1) masked = n;
    int *rank = s->masks->rank;
    for (int i = 0; i < n; i++) { // insertion: stable, and sentences are short
        int at = i;
        DGM_INSERT(rank, at, i, t > 1 && c->values[i] < c->values[rank[at - 1]]);
    }
    for (int i = 0; i < masked; i++) dgm_insert_id(wanted, i, rank[i]);
    return masked;
}

static void add_target(dgm_search *s, int at, int active, filled *c, int32_t *wanted)
{
    dgm_masks *m = s->masks;
    const int masked = choose(s, c, m->iteration[active] + 1, wanted);
    for (int i = 0; i < masked; i++) c->words[wanted[i]] = s->info[0]->mask;
    m->targets[at] = (dgm_refine_target){.slot = s->active[active].slots[0],
                                         .ids = c->words,
                                         .count = c->length,
                                         .wanted = wanted,
                                         .wanted_count = masked};
    m->owner[at] = c;
}

// The words for all masked positions of targets first .. last - 1, which belong to sentence `active`.
static bool select_words(dgm_search *s, int active, dgm_mat hidden, int first_row, int rows)
{
    dgm_masks *m = s->masks;
    const dgm_candidates *list =
        dgm_words_select(s, active, hidden, first_row, rows, m->iteration[active] == 0);
    for (int i = first_row; i < first_row + rows; i++) {
        m->selections[i] = list;
        m->terms[i] =
            (dgm_terms){.lambda = 1.0f, .deny = s->deny_early, .deny_count = s->deny_early_count};
    }
    return list != NULL;
}

static dgm_status run(dgm_search *s, const int32_t *active, int count, int tokens, dgm_error *err)
{
    dgm_masks *m = s->masks;
    dgm_mat hidden;
    DGM_TRY(dgm_refine(s->parts[0].state, count, m->targets, &hidden, err));
    bool subset = false;
    dgm_vocabsel_look(&s->vocabsel, hidden);
    for (int i = 0, row = 0, end; i < count; i = end) {
        int rows = 0;
        for (end = i; end < count && active[end] == active[i]; end++)
            rows += m->targets[end].wanted_count;
        subset |= select_words(s, active[i], hidden, row, rows);
        row += rows;
    }
    if (s->in_union) dgm_union_count(s, m->selections, hidden.rows);
    s->rows.hidden[0] = hidden;
    dgm_rank_run(s, &(dgm_rank){.rows = hidden.rows,
                                .candidates = subset ? m->selections : NULL,
                                .terms = m->terms,
                                .k = s->k,
                                .score = m->score,
                                .token = m->token});
    s->stats.steps++;
    s->stats.rows += (uint64_t)tokens;
    s->stats.rank_rows += (uint64_t)hidden.rows;
    for (int i = 0, row = 0; i < count; i++) {
        filled *c = m->owner[i];
        for (int j = 0; j < m->targets[i].wanted_count; j++, row++) {
            const int best = row * s->k;
            if (!(m->score[best] > -INFINITY)) c->length = 0; // no word may stand there
            c->words[m->targets[i].wanted[j]] = m->token[best];
            c->values[m->targets[i].wanted[j]] = m->score[best];
        }
    }
    return dgm_exec_status(s->exec, err);
}

// ---- whole sentences ----------------------------------------------------------------------------

// Tokens of a sentence's living candidates.
static int tokens_of(const dgm_search *s, int active)
{
    const filled *c = candidates_of(s, active);
    int tokens = 0;
    for (int i = 0; i < s->masks->count[active]; i++) tokens += c[i].length;
    return tokens;
}

static void finish(dgm_search *s, int active)
{
    dgm_active *p = &s->active[active];
    const filled *c = candidates_of(s, active);
    for (int i = 0; i < s->masks->count[active]; i++) {
        float sum = 0.0f;
        for (int j = 0; j < c[i].length; j++) sum += c[i].values[j];
        if (c[i].length == 0) continue;
        const dgm_ended e = {.node = i,
                             .length = c[i].length + 1,
                             .sum = sum,
                             .score = sum / (float)c[i].length,
                             .finished = true};
        dgm_active_store(s, p, &p->store, &e);
    }
    p->done = true;
    p->now.count = 0;
}

static dgm_status advance(dgm_search *s, dgm_error *err)
{
    dgm_masks *m = s->masks;
    int32_t *active = s->rows.active; // [sentences * width] of a target
    int count = 0, tokens = 0, wanted = 0;
    begin(s);
    for (int i = 0; i < s->config.sentences; i++) {
        if (!s->active[i].used) continue;
        s->active[i].steps++;
        filled *c = candidates_of(s, i);
        bool fresh = true; // a sentence begins a call, unless all of it still fits
        for (int k = 0; k < m->count[i]; k++) {
            if (c[k].length == 0) continue;
            const int need = fresh ? tokens_of(s, i) : c[k].length;
            if (count > 0 && tokens + need > m->tokens) {
                DGM_TRY(run(s, active, count, tokens, err));
                count = tokens = wanted = 0;
            }
            fresh = false;
            active[count] = i;
            add_target(s, count, i, &c[k], m->wanted + wanted);
            wanted += m->targets[count].wanted_count;
            tokens += c[k].length;
            count++;
        }
    }
    if (count > 0) DGM_TRY(run(s, active, count, tokens, err));
    for (int i = 0; i < s->config.sentences; i++)
        if (s->active[i].used && ++m->iteration[i] == s->config.iterations) finish(s, i);
    dgm_rows_retain(s);
    return DGM_OK;
}

static void trace(dgm_search *s, const dgm_active *p, const dgm_ended *e, int index)
{
    const filled *c = candidates_of(s, (int)(p - s->active)) + e->node;
    const size_t count = (size_t)(e->length - 1); // 0: nothing was found, and there is no candidate
    dgm_room room;
    dgm_result_room(s, e, index, &room)->count = (int)count;
    if (count > 0) memcpy(room.tokens, c->words, count * sizeof *room.tokens);
    if (room.scores && count > 0) memcpy(room.scores, c->values, count * sizeof *room.scores);
    if (room.scores) room.scores[count] = 0.0f; // nothing ends the sentence
}

// ---- as a search --------------------------------------------------------------------------------

static dgm_status check(const dgm_search_config *c, dgm_error *err)
{
    DGM_FAIL_IF(c->iterations < 1, err, DGM_ERR_ARGUMENT,
                "mask-predict with %d iterations; it needs at least 1", c->iterations);
    return DGM_OK;
}

static int candidates(const dgm_search_config *c)
{
    (void)c;
    return 1;
}

static int nodes(const dgm_search_config *c)
{
    (void)c;
    return 1;
}

static void lay_out(dgm_carve *c, dgm_search *s)
{
    const size_t sentences = (size_t)s->config.sentences, all = sentences * (size_t)s->width;
    const size_t longest = (size_t)s->config.max_length;
    dgm_masks *m = DGM_CARVE(c, dgm_masks, 1), counted;
    s->masks = m;
    if (!m) m = &counted;
    m->tokens = dgm_mask_tokens(&s->config);
    const size_t tokens = (size_t)m->tokens;
    m->candidates = DGM_CARVE(c, filled, all);
    for (size_t i = 0; i < all; i++) {
        filled f = {.words = DGM_CARVE(c, int32_t, longest),
                    .values = DGM_CARVE(c, float, longest)};
        if (c->arena && !c->full) m->candidates[i] = f;
    }
    m->count = DGM_CARVE(c, int, sentences);
    m->iteration = DGM_CARVE(c, int, sentences);
    m->targets = DGM_CARVE(c, dgm_refine_target, all);
    m->owner = DGM_CARVE(c, filled *, all);
    m->wanted = DGM_CARVE(c, int32_t, tokens);
    m->queries = DGM_CARVE(c, dgm_length_query, sentences);
    m->entering = DGM_CARVE(c, int32_t, sentences);
    m->lengths = DGM_CARVE(c, int32_t, all);
    m->rank = DGM_CARVE(c, int, longest);
    m->terms = DGM_CARVE(c, dgm_terms, tokens);
    m->selections = DGM_CARVE(c, const dgm_candidates *, tokens);
    m->score = DGM_CARVE(c, float, tokens * (size_t)s->k);
    m->token = DGM_CARVE(c, int32_t, tokens * (size_t)s->k);
}

const dgm_search_ops dgm_search_mask = {.name = "mask-predict",
                                        .check = check,
                                        .candidates = candidates,
                                        .nodes = nodes,
                                        .lay_out = lay_out,
                                        .advance = advance,
                                        .trace = trace};
