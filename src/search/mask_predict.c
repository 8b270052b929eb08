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
// One call of advance is one iteration of every sentence inside. Candidates of all of them share
// calls of refine, as many as its limit of tokens allows; a sentence's own are cut apart only where
// they alone are too many, so that what a selection of words sees of it never depends on others.
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
    filled *candidates;         // [places, width]
    int *count;                 // [places]
    int *iteration;             // [places]
    int tokens;                 // of one refine call at most
    dgm_refine_target *targets; // [places * width]
    filled **owner;             // [places * width] of a target
    int32_t *wanted;            // [tokens]
    int32_t *lengths;           // [width]
    int *rank;                  // [max_length] positions by probability
    // of the wanted positions of a call
    dgm_terms *terms;                  // [tokens]
    const dgm_candidates **selections; // [tokens]
    float *score;                      // [tokens, k]
    int32_t *token;                    // [tokens, k]
};

int dgm_mask_tokens(int longest)
{
    enum { TOKENS = 512 };
    return longest > TOKENS ? longest : TOKENS;
}

static filled *candidates_of(const dgm_search *s, int place)
{
    return s->masks->candidates + (size_t)place * (size_t)s->width;
}

// ---- one iteration ------------------------------------------------------------------------------

static void begin(dgm_search *s, int place)
{
    dgm_masks *m = s->masks;
    const dgm_place *p = &s->places[place];
    filled *c = candidates_of(s, place);
    m->iteration[place] = 0;
    m->count[place] =
        dgm_lengths(s->parts[0].state, p->slots[0], s->width, p->max_length, m->lengths);
    for (int i = 0; i < m->count[place]; i++) c[i].length = m->lengths[i];
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

static void add_target(dgm_search *s, int at, int place, filled *c, int32_t *wanted)
{
    dgm_masks *m = s->masks;
    const int masked = choose(s, c, m->iteration[place] + 1, wanted);
    for (int i = 0; i < masked; i++) c->words[wanted[i]] = s->info[0]->mask;
    m->targets[at] = (dgm_refine_target){.slot = s->places[place].slots[0],
                                         .ids = c->words,
                                         .count = c->length,
                                         .wanted = wanted,
                                         .wanted_count = masked};
    m->owner[at] = c;
}

// The words for all masked positions of targets first .. last - 1, which belong to `place`.
static bool select_words(dgm_search *s, int place, dgm_mat hidden, int first_row, int rows)
{
    dgm_masks *m = s->masks;
    const dgm_candidates *list =
        dgm_words_select(s, place, hidden, first_row, rows, m->iteration[place] == 0);
    for (int i = first_row; i < first_row + rows; i++) {
        m->selections[i] = list;
        m->terms[i] =
            (dgm_terms){.lambda = 1.0f, .deny = s->deny_early, .deny_count = s->deny_early_count};
    }
    return list != NULL;
}

static dgm_status run(dgm_search *s, const int32_t *places, int count, int tokens, dgm_error *err)
{
    dgm_masks *m = s->masks;
    dgm_mat hidden;
    DGM_TRY(dgm_refine(s->parts[0].state, count, m->targets, &hidden, err));
    bool subset = false;
    dgm_vocabsel_look(&s->vocabsel, hidden);
    for (int i = 0, row = 0, end; i < count; i = end) {
        int rows = 0;
        for (end = i; end < count && places[end] == places[i]; end++)
            rows += m->targets[end].wanted_count;
        subset |= select_words(s, places[i], hidden, row, rows);
        row += rows;
    }
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
static int tokens_of(const dgm_search *s, int place)
{
    const filled *c = candidates_of(s, place);
    int tokens = 0;
    for (int i = 0; i < s->masks->count[place]; i++) tokens += c[i].length;
    return tokens;
}

static void finish(dgm_search *s, int place)
{
    dgm_place *p = &s->places[place];
    const filled *c = candidates_of(s, place);
    for (int i = 0; i < s->masks->count[place]; i++) {
        float sum = 0.0f;
        for (int j = 0; j < c[i].length; j++) sum += c[i].values[j];
        if (c[i].length == 0) continue;
        const dgm_ended e = {.node = i,
                             .length = c[i].length + 1,
                             .sum = sum,
                             .score = sum / (float)c[i].length,
                             .finished = true};
        dgm_place_store(s, p, &p->store, &e);
    }
    p->done = true;
    p->now.count = 0;
}

static dgm_status advance(dgm_search *s, dgm_error *err)
{
    dgm_masks *m = s->masks;
    int32_t *places = s->rows.place; // [places * width] of a target
    int count = 0, tokens = 0, wanted = 0;
    for (int i = 0; i < s->config.places; i++) {
        if (!s->places[i].used) continue;
        if (s->places[i].steps == 0) begin(s, i);
        s->places[i].steps++;
        filled *c = candidates_of(s, i);
        bool fresh = true; // a sentence begins a call, unless all of it still fits
        for (int k = 0; k < m->count[i]; k++) {
            if (c[k].length == 0) continue;
            const int need = fresh ? tokens_of(s, i) : c[k].length;
            if (count > 0 && tokens + need > m->tokens) {
                DGM_TRY(run(s, places, count, tokens, err));
                count = tokens = wanted = 0;
            }
            fresh = false;
            places[count] = i;
            add_target(s, count, i, &c[k], m->wanted + wanted);
            wanted += m->targets[count].wanted_count;
            tokens += c[k].length;
            count++;
        }
    }
    if (count > 0) DGM_TRY(run(s, places, count, tokens, err));
    for (int i = 0; i < s->config.places; i++)
        if (s->places[i].used && ++m->iteration[i] == s->config.iterations) finish(s, i);
    dgm_rows_retain(s);
    return DGM_OK;
}

static void trace(dgm_search *s, const dgm_place *p, const dgm_ended *e, int index)
{
    const filled *c = candidates_of(s, (int)(p - s->places)) + e->node;
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
    const size_t places = (size_t)s->config.places, all = places * (size_t)s->width;
    const size_t longest = (size_t)s->config.max_length;
    dgm_masks *m = DGM_CARVE(c, dgm_masks, 1), counted;
    s->masks = m;
    if (!m) m = &counted;
    m->tokens = dgm_mask_tokens(s->config.max_length);
    const size_t tokens = (size_t)m->tokens;
    m->candidates = DGM_CARVE(c, filled, all);
    for (size_t i = 0; i < all; i++) {
        filled f = {.words = DGM_CARVE(c, int32_t, longest),
                    .values = DGM_CARVE(c, float, longest)};
        if (c->arena && !c->full) m->candidates[i] = f;
    }
    m->count = DGM_CARVE(c, int, places);
    m->iteration = DGM_CARVE(c, int, places);
    m->targets = DGM_CARVE(c, dgm_refine_target, all);
    m->owner = DGM_CARVE(c, filled *, all);
    m->wanted = DGM_CARVE(c, int32_t, tokens);
    m->lengths = DGM_CARVE(c, int32_t, (size_t)s->width);
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
