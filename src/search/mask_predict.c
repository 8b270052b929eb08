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
// Beside that:
//
//   ensembles      the first member says the lengths; all of them, mixed as in any search, say the words, and so which
//                  ones are masked again
//   constraints    of all words that may stand at the masked places the best that meet them (mask_words.c); a word that
//                  the place would not have had by itself is never masked again
//   lattices       the words of an iteration are the best path of that length; only lengths of paths are tried
//   repetition     of all words that may stand at the masked places the best without; a word's probability is divided
//                  where it stands further left, too (mask_words.c)
//   LMBR           ranks the candidates: their words gain by it when the last iteration is over, with the end
//   alignment      a word's attention is that of the iteration that wrote it
//   beam width     candidates whose mean is so far behind the best one's are given up after an iteration
//
// One call of advance is one iteration of every sentence inside. Those that are new learn their lengths
// together. Candidates of all of them share calls of refine, as many as its limit of tokens allows; a
// sentence's own are cut apart only where they alone are too many, so that what a selection of words
// sees of it never depends on others. A row of max_rows is a candidate: calls have no more of them than that,
// unless a single sentence has.
#include "search/mask_private.h"

#include <math.h>
#include <string.h>

#include "base/sort.h"

typedef dgm_filled filled;

int dgm_mask_tokens(const dgm_search_config *c)
{
    return c->refine_tokens > c->max_length ? c->refine_tokens : c->max_length;
}

static filled *candidates_of(const dgm_search *s, int active)
{
    return s->masks->candidates + (size_t)active * (size_t)s->width;
}

// ---- one iteration ------------------------------------------------------------------------------

static int longest_of(const dgm_active *p)
{
    return p->walk && p->walk->longest < p->max_length ? p->walk->longest : p->max_length;
}

// The lengths of all sentences that are new.
static void begin(dgm_search *s)
{
    dgm_masks *m = s->masks;
    int count = 0;
    for (int i = 0; i < s->config.sentences; i++) {
        const dgm_active *p = &s->active[i];
        if (!p->used || p->steps > 0) continue;
        m->queries[count] = (dgm_length_query){.slot = p->slots[0],
                                               .shortest = dgm_mask_shortest(s, p),
                                               .longest = longest_of(p),
                                               .only = p->walk ? p->walk->lengths : NULL,
                                               .lengths = m->lengths + count * s->width};
        m->entering[count++] = i;
    }
    dgm_lengths(s->parts[0].state, count, m->queries, s->width);
    for (int k = 0; k < count; k++) {
        const int active = m->entering[k];
        filled *c = candidates_of(s, active);
        m->iteration[active] = 0;
        m->count[active] = m->queries[k].found;
        for (int i = 0; i < m->count[active]; i++) {
            c[i].length = m->queries[k].lengths[i];
            for (int j = 0; j < c[i].length; j++) {
                c[i].words[j] = DGM_NO_TOKEN;
                c[i].fixed[j] = false;
            }
        }
    }
}

// What a word counts for: its log-probability, and less where it stands further left, too.
static float worth(const dgm_search *s, const filled *c, int at)
{
    const float cost = dgm_history_cost(s);
    for (int i = 0; cost != 0.0f && i < at; i++)
        if (c->words[i] == c->words[at]) return c->values[at] + cost;
    return c->values[at];
}

// Positions in ascending order that iteration t (from 1) predicts; their number.
static int choose(dgm_search *s, const filled *c, int t, int32_t *wanted)
{
    const int n = c->length, most = s->config.iterations;
    int masked = (int)((int64_t)n * (most - t + 1) / most);
    if (masked < 1) masked = 1;
    if (t == 1) masked = n;
    int *rank = s->masks->rank, open = 0;
    for (int i = 0; i < n; i++) { // insertion: stable, and sentences are short
        if (c->fixed[i]) continue;
        int at = open++;
        DGM_INSERT(rank, at, i, t > 1 && worth(s, c, i) < worth(s, c, rank[at - 1]));
    }
    if (masked > open) masked = open;
    for (int i = 0; i < masked; i++) dgm_insert_id(wanted, i, rank[i]);
    return masked;
}

static void add_target(dgm_search *s, int at, int active, filled *c, int32_t *wanted)
{
    dgm_masks *m = s->masks;
    const int masked = choose(s, c, m->iteration[active] + 1, wanted);
    float **align = m->align ? m->align + (wanted - m->wanted) : NULL;
    memcpy(c->before, c->words, (size_t)c->length * sizeof *c->words);
    for (int i = 0; i < masked; i++) {
        c->words[wanted[i]] = s->info[0]->mask;
        if (align) align[i] = c->align + (size_t)wanted[i] * (size_t)s->config.max_source;
    }
    m->targets[at] =
        (dgm_refine_target){.ids = c->words, .count = c->length, .wanted = wanted, .wanted_count = masked};
    m->owner[at] = c;
}

// The hidden vectors of all members; each has slots of its own.
static dgm_status refine(dgm_search *s, const int32_t *active, int count, dgm_error *err)
{
    dgm_masks *m = s->masks;
    for (int part = s->part_count - 1; part >= 0; part--) {
        for (int i = 0; i < count; i++) {
            m->targets[i].slot = s->active[active[i]].slots[part];
            // Attention of different networks does not add up: the first one's counts.
            m->targets[i].align = m->align && part == 0 ? m->align + (m->targets[i].wanted - m->wanted) : NULL;
        }
        DGM_TRY(dgm_refine(s->parts[part].state, count, m->targets, &s->rows.hidden[part], err));
    }
    return DGM_OK;
}

// The words for all masked positions of targets first .. last - 1, which belong to sentence `active`.
static bool select_words(dgm_search *s, int active, dgm_mat hidden, int first_row, int rows)
{
    dgm_masks *m = s->masks;
    const dgm_walk *walk = s->active[active].walk;
    const dgm_candidates *list =
        dgm_words_select(s, active, hidden, first_row, rows, m->iteration[active] == 0);
    for (int i = first_row; i < first_row + rows; i++) {
        m->selections[i] = list;
        m->terms[i] =
            (dgm_terms){.lambda = 1.0f, .deny = s->deny_early, .deny_count = s->deny_early_count};
        if (walk) dgm_terms_allow(&m->terms[i], walk->tokens, walk->token_count);
    }
    return list != NULL;
}

static dgm_status run(dgm_search *s, const int32_t *active, int count, int tokens, dgm_error *err)
{
    dgm_masks *m = s->masks;
    DGM_TRY(refine(s, active, count, err));
    const dgm_mat hidden = s->rows.hidden[s->vocabsel.part];
    bool subset = false;
    int k = s->config.ranked > 1 ? s->config.ranked : 1; // whoever observes may want more
    bool demands = false;
    dgm_vocabsel_look(&s->vocabsel, hidden);
    for (int i = 0, row = 0, end; i < count; i = end) {
        int rows = 0;
        for (end = i; end < count && active[end] == active[i]; end++)
            rows += m->targets[end].wanted_count;
        subset |= select_words(s, active[i], hidden, row, rows);
        if (dgm_mask_demands(s, &s->active[active[i]])) {
            demands = true;
            if (k < dgm_mask_best(s, &s->active[active[i]])) k = dgm_mask_best(s, &s->active[active[i]]);
        }
        row += rows;
    }
    if (s->in_union) dgm_union_count(s, m->selections, hidden.rows);
    if (k > s->k) k = s->k; // of a small vocabulary
    const int watched = demands ? dgm_mask_watch(s, active, count) : 0;
    dgm_rank_run(s, &(dgm_rank){.rows = hidden.rows,
                                .candidates = subset ? m->selections : NULL,
                                .sizes = m->sizes,
                                .terms = m->terms,
                                .k = k,
                                .score = m->score,
                                .token = m->token,
                                .watch_count = watched,
                                .watch = m->watch,
                                .watch_score = m->watch_score});
    s->stats.steps++;
    s->stats.rows += (uint64_t)tokens;
    s->stats.rank_rows += (uint64_t)hidden.rows;
    DGM_TRY(dgm_exec_status(s->exec, err));
    for (int i = 0, row = 0; i < count; row += m->targets[i++].wanted_count) {
        filled *c = m->owner[i];
        if (dgm_mask_demands(s, &s->active[active[i]])) {
            const dgm_mask_call call = {&m->targets[i], row, k, watched};
            if (!dgm_mask_fill(s, &s->active[active[i]], c, &call)) c->length = 0;
            continue;
        }
        for (int j = 0; j < m->targets[i].wanted_count; j++) {
            const int best = (row + j) * k;
            if (!(m->score[best] > -INFINITY)) c->length = 0; // no word may stand there
            c->words[m->targets[i].wanted[j]] = m->token[best];
            c->values[m->targets[i].wanted[j]] = m->score[best];
        }
    }
    return DGM_OK;
}

// ---- whole sentences ----------------------------------------------------------------------------

// Tokens of a sentence's living candidates, and how many these are.
static int tokens_of(const dgm_search *s, int active, int *living)
{
    const filled *c = candidates_of(s, active);
    int tokens = 0;
    *living = 0;
    for (int i = 0; i < s->masks->count[active]; i++) {
        tokens += c[i].length;
        *living += c[i].length > 0;
    }
    return tokens;
}

static float sum_of(const dgm_search *s, const filled *c)
{
    float sum = 0.0f;
    for (int j = 0; j < c->length; j++) sum += worth(s, c, j);
    return sum;
}

// What the lattice says of it, with its end.
static float path_of(const dgm_search *s, const dgm_active *p, const filled *c, float *adds)
{
    return p->walk ? dgm_walk_sentence(p->walk, c->words, c->length, s->eos, adds) : 0.0f;
}

static float mean_of(const dgm_search *s, int active, const filled *c)
{
    return (sum_of(s, c) + path_of(s, &s->active[active], c, NULL)) / (float)c->length;
}

// Candidates whose words are so much less probable than the best one's, in the mean, are given up.
static void prune(dgm_search *s, int active)
{
    filled *c = candidates_of(s, active);
    float best = -INFINITY;
    if (s->config.beam_width == 0.0f) return;
    for (int i = 0; i < s->masks->count[active]; i++)
        if (c[i].length) best = fmaxf(best, mean_of(s, active, &c[i]));
    for (int i = 0; i < s->masks->count[active]; i++)
        if (c[i].length && mean_of(s, active, &c[i]) < best + logf(s->config.beam_width)) c[i].length = 0;
}

// What evidence makes of a sum: the words and the end behind them gain, as in any search; no model scores that end.
static float with_evidence(const dgm_search *s, const dgm_active *p, const filled *c, float sum)
{
    const dgm_lmbr_rows *r = p->lmbr;
    int32_t state = 0;
    if (!r) return sum;
    sum *= r->weights.lambda;
    for (int j = 0; j <= c->length; j++) {
        const int32_t word = j < c->length ? c->words[j] : s->eos;
        sum += r->weights.theta[0] + dgm_lmbr_gain(r, state, word);
        state = dgm_lmbr_next(r, state, word);
    }
    return sum;
}

static float coverage(const dgm_search *s, const dgm_active *p, const filled *c)
{
    const size_t source = (size_t)s->config.max_source;
    double total = 0;
    for (int i = 0; i < p->source_count && s->config.coverage > 0.0f; i++) {
        double seen = 0;
        for (int j = 0; j < c->length; j++) seen += (double)c->align[(size_t)j * source + (size_t)i];
        total += log(fmin(fmax(seen, 1e-6), 1.0));
    }
    return s->config.coverage * (float)total;
}

static void finish(dgm_search *s, int active)
{
    dgm_active *p = &s->active[active];
    const filled *c = candidates_of(s, active);
    for (int i = 0; i < s->masks->count[active]; i++) {
        if (c[i].length == 0) continue;
        const float sum = with_evidence(s, p, &c[i], sum_of(s, &c[i])) + path_of(s, p, &c[i], NULL);
        const dgm_ended e = {.node = i,
                             .length = c[i].length + 1,
                             .sum = sum,
                             .score = sum / (float)c[i].length + coverage(s, p, &c[i]),
                             .finished = true};
        dgm_active_store(p, &p->store, &e);
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
            int need = c[k].length, rows = 0;
            if (fresh) need = tokens_of(s, i, &rows);
            const bool many = s->config.max_rows && fresh && count + rows > s->config.max_rows;
            if (count > 0 && (many || tokens + need > m->tokens)) {
                DGM_TRY(run(s, active, count, tokens, err));
                count = tokens = wanted = 0;
            }
            fresh = false;
            active[count] = i;
            add_target(s, count, i, &c[k], m->wanted + wanted);
            if (m->targets[count].wanted_count == 0) continue; // all of it is forced
            wanted += m->targets[count].wanted_count;
            tokens += c[k].length;
            count++;
        }
    }
    if (count > 0) DGM_TRY(run(s, active, count, tokens, err));
    for (int i = 0; i < s->config.sentences; i++) {
        if (!s->active[i].used) continue;
        prune(s, i);
        if (++m->iteration[i] == s->config.iterations) finish(s, i);
    }
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
    float *adds = s->masks->adds;
    for (size_t i = 0; room.scores && i < count; i++) room.scores[i] = worth(s, c, (int)i);
    if (room.scores) room.scores[count] = 0.0f; // nothing ends the sentence
    if (room.scores && count > 0 && p->walk) {
        path_of(s, p, c, adds);
        for (size_t i = 0; i <= count; i++) room.scores[i] += adds[i];
    }
    const size_t source = (size_t)s->config.max_source, cols = (size_t)p->source_count;
    for (size_t i = 0; room.align && i < count; i++)
        memcpy(room.align + i * cols, c->align + i * source, cols * sizeof *room.align);
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
    return DGM_MASK_MOST; // of places without demands one
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
                    .values = DGM_CARVE(c, float, longest),
                    .before = DGM_CARVE(c, int32_t, longest),
                    .fixed = DGM_CARVE(c, bool, longest)};
        if (s->config.alignment) f.align = DGM_CARVE(c, float, longest *(size_t)s->config.max_source);
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
    m->sizes = DGM_CARVE(c, int32_t, tokens);
    m->score = DGM_CARVE(c, float, tokens * (size_t)s->k);
    m->token = DGM_CARVE(c, int32_t, tokens * (size_t)s->k);
    m->watch = DGM_CARVE(c, int32_t, tokens * DGM_MASK_WATCH);
    m->watch_score = DGM_CARVE(c, float, tokens *DGM_MASK_WATCH);
    m->states = DGM_CARVE(c, dgm_mask_state, (longest + 1) * DGM_MASK_STATES);
    m->choices = DGM_CARVE(c, char, dgm_mask_choices_bytes());
    m->adds = DGM_CARVE(c, float, longest + 1);
    m->align = s->config.alignment ? DGM_CARVE(c, float *, tokens) : NULL;
}

const dgm_search_ops dgm_search_mask = {.name = "mask-predict",
                                        .check = check,
                                        .candidates = candidates,
                                        .nodes = nodes,
                                        .lay_out = lay_out,
                                        .advance = advance,
                                        .trace = trace};
