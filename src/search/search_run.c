// SPDX-License-Identifier: MIT
// Running a search: sentences enter, move on step by step, and leave.
//
// dgm_search_admit checks a request, encodes it in a slot of every ensemble part and starts one
// decoder row there; dgm_search_advance lets the search make a generation and reports whoever is
// done; dgm_search_clear throws everybody out. What depends on one sentence (slots, scorers,
// vocabulary) is given back here and nowhere else.
#include "search/search_private.h"

#include <math.h>
#include <string.h>

#include "base/lower_bound.h"

static dgm_length_rule lengths_of(const dgm_search *s, const dgm_search_request *r)
{
    if (r->lengths) return *r->lengths;
    return (dgm_length_rule){s->config.length_penalty, s->config.word_penalty,
                         s->config.max_length_factor};
}

// Longest output of a sentence: config, model, and a factor of the source's length. In a lattice
// the longest path counts instead of that, with one step more: no end is forced on it.
static int length_limit(const dgm_search *s, const dgm_search_request *r)
{
    const float factor = lengths_of(s, r).max_length_factor;
    int limit = s->target_limit;
    if (r->walk) {
        if (r->walk->longest + 1 < limit) limit = r->walk->longest + 1;
    } else if (factor > 0.0f) {
        const double times = (double)factor * r->source.count;
        const double most = s->finish->exact_factor ? fmax(ceil(times), 1.0) : times + 10.0;
        if (most < limit) limit = (int)most;
    }
    return limit;
}

// What the sentence alone asks for. A model that begins at the end of a sentence takes that end as
// others take a prefix; its tokens must fit.
static dgm_status check_forced(const dgm_search *s, const dgm_search_request *r, int limit,
                               dgm_error *err)
{
    int count = 0;
    dgm_asked asked = s->asked;
    const dgm_constraint *ends = r->constraint_right ? r->constraint_right : r->constraint;
    const bool end = ends && dgm_constraint_end(ends, &count);
    asked.prefix = r->prefix_count > 0;
    asked.end = end && dgm_constraint_end_alone(ends);
    asked.constraints = r->constraint && !asked.end;
    asked.lattice = r->walk != NULL;
    if (asked.prefix || r->constraint) DGM_TRY(dgm_asked_check(&asked, err));
    const dgm_order order = s->info[0]->order;
    DGM_FAIL_IF(asked.constraints && dgm_constraint_from_right(r->constraint) != (order == DGM_ORDER_R2L), err,
                DGM_ERR_ARGUMENT, "constraints must be read from the side that the model begins with");
    DGM_FAIL_IF((asked.constraints && order == DGM_ORDER_BIDIRECTIONAL) != (r->constraint_right != NULL), err,
                DGM_ERR_ARGUMENT, "pairs from both ends take constraints read from either side, others do not");
    DGM_FAIL_IF(r->constraint && r->walk, err, DGM_ERR_ARGUMENT,
                "constraints inside a lattice must be part of the lattice (dgm_walk_limit)");
    DGM_FAIL_IF(r->prefix_count > 0 && r->walk && s->ops->tokens != 1, err, DGM_ERR_ARGUMENT,
                "a beginning inside a lattice must be part of the lattice (dgm_walk_limit)");
    DGM_FAIL_IF(r->walk && order == DGM_ORDER_BIDIRECTIONAL && !r->walk->back, err, DGM_ERR_ARGUMENT,
                "pairs from both ends take lattices that are read from either side (dgm_walk_look_back)");
    DGM_FAIL_IF(r->walk && s->masks && !r->walk->lengths, err, DGM_ERR_ARGUMENT,
                "whole sentences take lattices whose paths are measured (dgm_walk_measure)");
    DGM_FAIL_IF(r->prefix_count > 0 && order == DGM_ORDER_R2L, err, DGM_ERR_ARGUMENT,
                "a beginning that is written last must be a constraint");
    const int words = order == DGM_ORDER_BIDIRECTIONAL ? 2 * count - 1 : count;
    DGM_FAIL_IF(end && order != DGM_ORDER_L2R && words > limit, err, DGM_ERR_ARGUMENT,
                "a forced end of %d tokens; the longest translation has %d", count, limit);
    return DGM_OK;
}

static dgm_status check_request(const dgm_search *s, const dgm_search_request *r, dgm_error *err)
{
    const dgm_model_info *info = s->info[0];
    DGM_FAIL_IF(r->source.count < 1 || r->source.count > s->source_limit, err, DGM_ERR_ARGUMENT,
                "a source of %d tokens; it must have 1 to %d", r->source.count, s->source_limit);
    for (int i = 0; i < r->source.count; i++)
        DGM_FAIL_IF(r->source.ids[i] < 0 || r->source.ids[i] >= info->source_vocab, err,
                    DGM_ERR_ARGUMENT, "source token %d is not in the vocabulary of %d",
                    (int)r->source.ids[i], info->source_vocab);
    const int limit = length_limit(s, r);
    DGM_FAIL_IF(r->prefix_count < 0 || r->prefix_count > limit, err, DGM_ERR_ARGUMENT,
                "a forced prefix of %d tokens; the longest translation has %d", r->prefix_count,
                limit);
    DGM_FAIL_IF(r->walk && r->walk->longest > s->target_limit, err, DGM_ERR_ARGUMENT,
                "a lattice whose longest path has %d tokens; the longest translation has %d",
                r->walk->longest, s->target_limit);
    DGM_FAIL_IF(info->order == DGM_ORDER_BIDIRECTIONAL && 2 * r->prefix_count - 1 > limit, err,
                DGM_ERR_ARGUMENT,
                "a forced prefix of %d tokens; from both ends at most half of the longest "
                "translation, which has %d, can be forced",
                r->prefix_count, limit);
    DGM_TRY(check_forced(s, r, limit, err));
    for (int i = 0; i < r->prefix_count; i++)
        DGM_FAIL_IF(r->prefix[i] < 0 || r->prefix[i] >= info->target_vocab ||
                        r->prefix[i] == s->eos ||
                        dgm_holds_id(s->never, s->never_count, r->prefix[i]),
                    err, DGM_ERR_ARGUMENT, "token %d cannot be part of a forced prefix",
                    (int)r->prefix[i]);
    for (int i = 0; r->lead && i < info->target_prefix_count; i++)
        DGM_FAIL_IF(r->lead[i] < 0 || r->lead[i] >= info->target_vocab, err, DGM_ERR_ARGUMENT,
                    "token %d cannot begin a translation", (int)r->lead[i]);
    return DGM_OK;
}

// ---- entering ----------------------------------------------------------------------------------

// Slots and start rows of the new sentences in one part.
static dgm_status enter_part(dgm_search *s, int part, int count, dgm_error *err)
{
    dgm_state *state = s->parts[part].state;
    DGM_TRY(dgm_encode(state, count, s->sources, s->new_slots, err));
    const dgm_status st = dgm_start(state, count, s->new_slots, s->new_rows, err);
    if (st != DGM_OK) {
        dgm_release(state, count, s->new_slots);
        return st;
    }
    for (int i = 0; i < count; i++) {
        dgm_active *p = &s->active[s->entering[i]];
        p->slots[part] = s->new_slots[i];
        p->now.rows[part] = s->new_rows[i];
    }
    return DGM_OK;
}

// Gives back the slots of the first `parts` parts, whose rows must be dropped already.
static void leave_parts(dgm_search *s, dgm_active *p, int parts)
{
    for (int i = 0; i < parts; i++) dgm_release(s->parts[i].state, 1, &p->slots[i]);
}

// Tokens that must be candidates: of the prefix and of constraints.
static int list_needed(dgm_search *s, const dgm_search_request *r, const int32_t **needed)
{
    if (!r->constraint) return r->prefix_count;
    int count = 0; // who reads from the right has the end's, too
    const int32_t *tokens = dgm_constraint_tokens(r->constraint_right ? r->constraint_right : r->constraint, &count);
    if (r->prefix_count)
        memcpy(s->banks.needed, r->prefix, (size_t)r->prefix_count * sizeof *tokens);
    if (count) memcpy(s->banks.needed + r->prefix_count, tokens, (size_t)count * sizeof *tokens);
    *needed = s->banks.needed;
    return r->prefix_count + count;
}

// Vocabulary and scorers learn of the sentence; on failure those told already forget it.
static dgm_status enter_sentence(dgm_search *s, int active, const dgm_search_request *r,
                                 dgm_error *err)
{
    dgm_active *p = &s->active[active];
    dgm_score_sentence sentence = {.source = r->source.ids,
                                   .source_count = r->source.count,
                                   .prefix = r->prefix,
                                   .prefix_count = r->prefix_count,
                                   .lmbr = r->lmbr,
                                   .walk = r->walk,
                                   .constraint = p->constraint};
    p->behind_count = 0;
    if (r->constraint && s->info[0]->order == DGM_ORDER_R2L)
        sentence.prefix = dgm_constraint_end(r->constraint, &sentence.prefix_count);
    else if (r->constraint && s->info[0]->order == DGM_ORDER_BIDIRECTIONAL)
        p->behind = dgm_constraint_end(r->constraint_right ? r->constraint_right : r->constraint, &p->behind_count);
    p->forced = sentence.prefix_count > 0;
    const int32_t *needed = r->prefix;
    const int needed_count = list_needed(s, r, &needed);
    const dgm_vocabsel_sentence words = {.source = r->source.ids,
                                         .source_count = r->source.count,
                                         .needed = needed,
                                         .needed_count = needed_count,
                                         .allowed = r->walk ? r->walk->tokens : NULL,
                                         .allowed_count = r->walk ? r->walk->token_count : 0,
                                         .evidence = r->lmbr ? r->lmbr->ids : NULL,
                                         .evidence_count = r->lmbr ? r->lmbr->at[1] : 0,
                                         .clusters = r->clusters};
    p->lead_tokens = r->lead;
    DGM_TRY(dgm_vocabsel_admit(&s->vocabsel, active, &words, err));
    for (int i = 0; i < s->scorer_count; i++) {
        dgm_scorer *scorer = &s->scorers[i];
        const dgm_status st = scorer->ops->admit(scorer, active, &sentence, &p->now.states[i], err);
        if (st != DGM_OK) {
            while (i-- > 0) dgm_scorer_leave(&s->scorers[i], active);
            dgm_vocabsel_leave(&s->vocabsel, active);
            return st;
        }
        if (p->first_states) p->first_states[i] = p->now.states[i];
    }
    return DGM_OK;
}

static void forget_sentence(dgm_search *s, int active)
{
    for (int i = 0; i < s->scorer_count; i++) dgm_scorer_leave(&s->scorers[i], active);
    dgm_vocabsel_leave(&s->vocabsel, active);
}

static int width_of(const dgm_search *s, const dgm_search_request *r)
{
    const bool narrows = s->ops == &dgm_search_beam || s->ops == &dgm_search_double;
    return narrows && r->width > 0 && r->width < s->width ? r->width : s->width;
}

// What the search has to follow: of an end that is written first nothing is left but forced tokens.
static const dgm_constraint *followed(const dgm_search *s, const dgm_search_request *r)
{
    if (s->info[0]->order == DGM_ORDER_L2R || !r->constraint) return r->constraint;
    return dgm_constraint_end_alone(r->constraint) ? NULL : r->constraint;
}

static void reserve(dgm_search *s, const dgm_search_request *requests, int count)
{
    for (int i = 0, at = 0; i < count; at++) {
        dgm_active *p = &s->active[at];
        if (p->used) continue;
        dgm_active_reset(s, p);
        p->id = requests[i].id;
        p->source_count = requests[i].source.count;
        p->constraint = followed(s, &requests[i]);
        p->constraint_right = p->constraint ? requests[i].constraint_right : NULL;
        p->prefix = requests[i].prefix;
        p->prefix_count = requests[i].prefix_count;
        p->lmbr = requests[i].lmbr;
        p->width = width_of(s, &requests[i]);
        p->glance = requests[i].glance && p->width < s->width;
        p->fingerprint = dgm_sample_fingerprint(&requests[i]);
        p->walk = requests[i].walk;
        if (p->constraint_right) p->now.live[0].state_right = dgm_constraint_start(p->constraint_right);
        p->max_length = length_limit(s, &requests[i]);
        p->settle = requests[i].settle;
        p->lengths = lengths_of(s, &requests[i]);
        s->sources[i] = requests[i].source;
        s->entering[i++] = at;
    }
}

dgm_status dgm_search_admit(dgm_search *s, const dgm_search_request *requests, int count,
                            dgm_error *err)
{
    if (count == 0) return DGM_OK;
    dgm_rows_settle(s);
    DGM_FAIL_IF(count < 0 || count > dgm_search_free(s), err, DGM_ERR_ARGUMENT,
                "%d sentences, but room for %d", count, dgm_search_free(s));
    for (int i = 0; i < count; i++) DGM_TRY(check_request(s, &requests[i], err));
    reserve(s, requests, count);
    int parts = 0, entered = 0;
    dgm_status st = DGM_OK;
    for (; st == DGM_OK && parts < s->part_count; parts += st == DGM_OK)
        st = enter_part(s, parts, count, err);
    for (; st == DGM_OK && entered < count; entered += st == DGM_OK)
        st = enter_sentence(s, s->entering[entered], &requests[entered], err);
    if (st != DGM_OK) {
        for (int i = 0; i < entered; i++) forget_sentence(s, s->entering[i]);
        dgm_rows_retain(s); // the entering sentences are not in use yet: their start rows go
        for (int i = 0; i < count; i++) leave_parts(s, &s->active[s->entering[i]], parts);
        return st;
    }
    for (int i = 0; i < count; i++) {
        s->active[s->entering[i]].used = true;
        if (s->active[s->entering[i]].constraint) dgm_banks_enter(s, s->entering[i]);
    }
    s->active_count += count;
    return DGM_OK;
}

// Rows that the next step takes of each state's pool.
static int step_rows(const dgm_search *s)
{
    int rows = 0;
    for (int i = 0; i < s->config.sentences; i++)
        if (s->active[i].used) rows += s->cubes ? 2 * s->width : s->active[i].now.count;
    return rows;
}

// A sentence takes a row to start with and those of its first step; were they not left over, it
// would fail, or be sent away at once and encoded again.
int dgm_search_fits(dgm_search *s, const dgm_search_request *requests, int count)
{
    dgm_rows_settle(s);
    const int most = dgm_search_free(s), taken = step_rows(s);
    const int each = 1 + (s->cubes ? 2 * s->width : 1);
    if (count > most) count = most;
    for (int i = 0; i < s->part_count; i++) {
        const int left = dgm_state_free_rows(s->parts[i].state) - taken;
        if (count > left / each) count = left > 0 ? left / each : 0;
    }
    for (int i = 0; i < count; i++) s->sources[i] = requests[i].source;
    for (int i = 0; i < s->part_count; i++)
        count = dgm_state_fits(s->parts[i].state, count, s->sources);
    return count;
}

static bool fit(const dgm_search *s, int rows)
{
    for (int i = 0; i < s->part_count; i++)
        if (dgm_state_free_rows(s->parts[i].state) < rows) return false;
    return true;
}

bool dgm_search_step_fits(dgm_search *s)
{
    if (fit(s, s->active_count * 2 * s->width)) return true; // more than any of them takes
    const int rows = step_rows(s);
    if (fit(s, rows)) return true;
    dgm_rows_settle(s);
    return fit(s, rows);
}

// ---- leaving -----------------------------------------------------------------------------------

void dgm_active_leave(dgm_search *s, dgm_active *p)
{
    forget_sentence(s, (int)(p - s->active));
    leave_parts(s, p, s->part_count);
    s->banks.constrained -= p->constraint != NULL;
    p->used = false;
    p->now.count = 0;
    s->active_count--;
}

dgm_status dgm_search_advance(dgm_search *s, dgm_search_sink sink, void *cookie, dgm_error *err)
{
    if (s->active_count == 0) return DGM_OK;
    s->any_done = true;
    DGM_TRY(s->ops->advance(s, err));
    for (int i = 0; i < s->hand_count; i++) {
        s->stats.early += s->hands[i].early;
        s->hands[i].early = 0;
    }
    for (int i = 0; i < s->config.sentences && s->any_done; i++) {
        dgm_active *p = &s->active[i];
        if (!p->used || !p->done) continue;
        if (s->config.rescore && p->again_count == 0) DGM_TRY(dgm_rescore_begin(s, p, err));
        if (!p->done) continue;
        dgm_active_leave(s, p);
        dgm_active_report(s, p, sink, cookie);
    }
    return DGM_OK;
}

// NULL: it is not inside.
static dgm_active *find_active(dgm_search *s, uint64_t id)
{
    for (int i = 0; i < s->config.sentences; i++)
        if (s->active[i].used && s->active[i].id == id) return &s->active[i];
    return NULL;
}

void dgm_search_evict(dgm_search *s, uint64_t id)
{
    dgm_active *p = find_active(s, id);
    if (!p) return;
    dgm_active_leave(s, p);
    dgm_rows_retain(s);
}

int dgm_search_shared(dgm_search *s, uint64_t id, const int32_t **tokens)
{
    const dgm_active *p = find_active(s, id);
    *tokens = s->tokens;
    return p ? dgm_active_shared(s, p) : 0;
}

bool dgm_search_goes_on(dgm_search *s, uint64_t id, int count, bool (*fits)(const void *cookie, int32_t token),
                        const void *cookie)
{
    const dgm_active *p = find_active(s, id);
    return p && dgm_active_goes_on(s, p, count, fits, cookie);
}

// Live hypotheses end where they are. What their last tokens attend to is not known: these were not
// fed yet.
static void end_live(dgm_search *s, dgm_active *p)
{
    const size_t source = (size_t)s->config.max_source;
    for (int j = 0; j < p->now.count; j++) {
        if (p->attention)
            memset(p->attention + (size_t)p->now.live[j].node * source, 0,
                   source * sizeof *p->attention);
        dgm_active_force(s, p, j);
    }
}

bool dgm_search_stop(dgm_search *s, uint64_t id, dgm_search_sink sink, void *cookie)
{
    dgm_active *p = find_active(s, id);
    if (!p || s->masks) return false;
    if (p->store.count == 0 && p->again_count == 0) end_live(s, p);
    dgm_active_leave(s, p);
    dgm_rows_retain(s);
    dgm_active_report(s, p, sink, cookie);
    return true;
}

void dgm_search_clear(dgm_search *s)
{
    for (int i = 0; i < s->config.sentences; i++) {
        dgm_active *p = &s->active[i];
        if (!p->used) continue;
        forget_sentence(s, i);
        p->used = false;
        p->now.count = 0;
    }
    s->active_count = s->banks.constrained = 0;
    s->retains = false;
    for (int i = 0; i < s->part_count; i++) dgm_state_clear(s->parts[i].state);
}
