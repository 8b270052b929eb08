// SPDX-License-Identifier: MIT
// Opening a search: checks of the configuration and of the ensemble, and all of its memory.
//
// dgm_search_open lays every array out once, from the worker's arena; dgm_search_bytes runs the
// same layout without an arena to learn the sum. Sizes follow from sentences, beam, max_length,
// max_source and the number of parts; afterwards nothing is allocated (search_run.c, generation.c).
#include "search/search_private.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MAX_SENTENCES = 1 << 16, MAX_LENGTH = 1 << 20 };
enum { OWN_SCORERS = DGM_SEARCH_SCORERS - DGM_SCORERS_MAX }; // beside the caller's

const char *dgm_search_name(int index)
{
    return dgm_search_table[index] ? dgm_search_table[index]->name : NULL;
}

// ---- checks ------------------------------------------------------------------------------------

static const dgm_search_ops *find(const dgm_search_config *c)
{
    const char *name = c->search ? c->search : "auto";
    if (strcmp(name, "auto") == 0) name = c->beam == 1 ? "greedy" : "beam";
    for (int i = 0; dgm_search_table[i]; i++)
        if (strcmp(dgm_search_table[i]->name, name) == 0) {
            const bool pairs = c->pairs && dgm_search_table[i] == &dgm_search_sample;
            return pairs ? &dgm_search_sample_pairs : dgm_search_table[i];
        }
    return NULL;
}

// A configuration in the words of the table of features; the models come later (check_features).
static dgm_asked asked_of(const dgm_search_config *c)
{
    const dgm_search_ops *ops = find(c);
    return (dgm_asked){.search = ops->name,
                       .writing = -1,
                       .facts = DGM_FACTS_ALL,
                       .beam = ops == &dgm_search_mask ? 0 : c->beam, // its number of lengths
                       .nbest = c->nbest,
                       .min_length = c->min_length,
                       .max_rows = c->max_rows,
                       .no_repeat = c->no_repeat,
                       .top_k = c->top_k,
                       .beam_width = c->beam_width,
                       .diversity = c->diversity,
                       .coverage = c->coverage,
                       .repetition = c->repetition,
                       .temperature = c->temperature,
                       .top_p = c->top_p,
                       .seed = ops == &dgm_search_sample ? c->seed : 0,
                       .alignment = c->alignment};
}

static dgm_status check_config(const dgm_search_config *c, dgm_error *err)
{
    const dgm_search_ops *ops = find(c);
    DGM_FAIL_IF(!ops, err, DGM_ERR_ARGUMENT, "there is no search '%s'", c->search);
    DGM_FAIL_IF(c->beam < 1 || c->beam > DGM_BEAM_MAX, err, DGM_ERR_ARGUMENT,
                "beam is %d; it must be 1 to %d", c->beam, DGM_BEAM_MAX);
    DGM_FAIL_IF(c->nbest < 1, err, DGM_ERR_ARGUMENT, "nbest is %d; it must be at least 1",
                c->nbest);
    DGM_FAIL_IF(c->nbest > c->beam, err, DGM_ERR_ARGUMENT,
                "a beam of %d cannot give the %d best translations", c->beam, c->nbest);
    DGM_FAIL_IF((int)c->finish < 0 || c->finish >= DGM_FINISH_COUNT, err, DGM_ERR_ARGUMENT,
                "there is no finishing policy number %d", (int)c->finish);
    DGM_FAIL_IF((int)c->mix < 0 || c->mix >= DGM_MIX_COUNT, err, DGM_ERR_ARGUMENT,
                "there is no ensemble mix number %d", (int)c->mix);
    DGM_FAIL_IF(c->max_length < 1 || c->max_length > MAX_LENGTH, err, DGM_ERR_ARGUMENT,
                "maximum length is %d; it must be 1 to %d", c->max_length, MAX_LENGTH);
    DGM_FAIL_IF(!(c->max_length_factor >= 0.0f) || isinf(c->max_length_factor), err,
                DGM_ERR_ARGUMENT, "maximum length factor is %g; it must be 0 or more",
                (double)c->max_length_factor);
    DGM_FAIL_IF(!isfinite(c->length_penalty), err, DGM_ERR_ARGUMENT,
                "length penalty must be a finite number");
    DGM_FAIL_IF(!isfinite(c->word_penalty), err, DGM_ERR_ARGUMENT,
                "word penalty must be a finite number");
    DGM_FAIL_IF(c->finish == DGM_FINISH_MARGIN && !(c->margin >= 0.0f), err, DGM_ERR_ARGUMENT,
                "margin is %g; it must be 0 or more", (double)c->margin);
    DGM_FAIL_IF(c->first < 0, err, DGM_ERR_ARGUMENT,
                "%d finished hypotheses to stop at; it must be 0 or more", c->first);
    DGM_FAIL_IF(c->sentences < 1 || c->sentences > MAX_SENTENCES, err, DGM_ERR_ARGUMENT,
                "%d sentences at once; it must be 1 to %d", c->sentences, MAX_SENTENCES);
    DGM_FAIL_IF(c->max_source < 1 || c->max_source > MAX_LENGTH, err, DGM_ERR_ARGUMENT,
                "longest source is %d tokens; it must be 1 to %d", c->max_source, MAX_LENGTH);
    DGM_FAIL_IF(!(c->beam_width >= 0.0f && c->beam_width <= 1.0f), err, DGM_ERR_ARGUMENT,
                "beam width is %g; it must be 0 to 1", (double)c->beam_width);
    DGM_FAIL_IF(!(c->diversity >= 0.0f) || isinf(c->diversity), err, DGM_ERR_ARGUMENT,
                "diversity is %g; it must be 0 or more", (double)c->diversity);
    DGM_FAIL_IF(!(c->coverage >= 0.0f) || isinf(c->coverage), err, DGM_ERR_ARGUMENT,
                "coverage penalty is %g; it must be 0 or more", (double)c->coverage);
    DGM_FAIL_IF(c->coverage > 0.0f && !c->alignment, err, DGM_ERR_ARGUMENT,
                "a coverage penalty needs attention weights: alignment must be on");
    DGM_FAIL_IF(c->max_rows < 0, err, DGM_ERR_ARGUMENT, "%d rows at once; it must be 0 or more",
                c->max_rows);
    DGM_TRY(dgm_history_check(c, err));
    DGM_FAIL_IF(c->rescore && ops != &dgm_search_cube, err, DGM_ERR_ARGUMENT,
                "scores of %s search are exact already", ops->name);
    DGM_TRY(ops->check ? ops->check(c, err) : DGM_OK);
    const dgm_asked asked = asked_of(c);
    return dgm_asked_check(&asked, err);
}

// What is asked of this search, models and scorers included; requests add to it (admit.c).
static dgm_status check_features(dgm_search *s, dgm_error *err)
{
    dgm_asked *a = &s->asked;
    *a = asked_of(&s->config);
    a->models = s->part_count;
    a->writing = (int)dgm_writing_of(s->info[0]);
    for (int i = 1; i < s->part_count; i++)
        if (dgm_writing_of(s->info[i]) != dgm_writing_of(s->info[0]))
            a->facts &= ~(unsigned)DGM_FACT_ALIKE;
    for (int i = 0; i < s->scorer_count - OWN_SCORERS; i++) {
        a->lmbr |= strcmp(s->scorers[i].ops->name, "lmbr") == 0;
        a->lattice |= strcmp(s->scorers[i].ops->name, "lattice") == 0;
    }
    return dgm_asked_check(a, err);
}

static dgm_status check_member(const dgm_search *s, int i, dgm_error *err)
{
    const dgm_model_info *a = s->info[0], *b = s->info[i];
    DGM_FAIL_IF(!isfinite(s->parts[i].weight) || s->parts[i].weight <= 0.0f, err, DGM_ERR_ARGUMENT,
                "weight of ensemble member %d must be a positive number", i + 1);
    DGM_FAIL_IF(a->source_vocab != b->source_vocab || a->target_vocab != b->target_vocab ||
                    a->eos != b->eos || a->unk != b->unk,
                err, DGM_ERR_ARGUMENT,
                "ensemble member %d has another vocabulary than the first one", i + 1);
    DGM_FAIL_IF(a->mask != b->mask, err, DGM_ERR_ARGUMENT,
                "ensemble member %d masks words with another token than the first one", i + 1);
    DGM_FAIL_IF(a->target_prefix_count != b->target_prefix_count, err, DGM_ERR_ARGUMENT,
                "ensemble member %d starts a sentence with %d tokens, the first one with %d", i + 1,
                b->target_prefix_count, a->target_prefix_count);
    return DGM_OK;
}

dgm_limits dgm_search_limits(const dgm_search_config *config, const dgm_model_info *info)
{
    // The target holds the start symbol, the model's own prefix and max_length tokens: the end
    // symbol is never fed.
    const int tokens = info->tokens_per_step;
    const int target = (config->max_length + tokens - 1) / tokens + 1 + info->target_prefix_count;
    const int source = config->max_source;
    return (dgm_limits){.slots = config->sentences,
                        .rows = info->mask >= 0 ? dgm_mask_tokens(config)
                                                : config->sentences * config->beam,
                        .source = source < info->max_source ? source : info->max_source,
                        .target = target < info->max_target ? target : info->max_target};
}

static dgm_status check_limits(const dgm_search *s, int i, dgm_error *err)
{
    const dgm_limits need = dgm_search_limits(&s->config, s->info[i]);
    const dgm_limits *have = dgm_state_limits(s->parts[i].state);
    DGM_FAIL_IF(have->slots < need.slots || have->rows < need.rows, err, DGM_ERR_ARGUMENT,
                "the model's state has room for %d sentences and %d rows; the search needs %d "
                "and %d",
                have->slots, have->rows, need.slots, need.rows);
    DGM_FAIL_IF(have->source < need.source || have->target < need.target, err, DGM_ERR_ARGUMENT,
                "the model's state has room for %d source and %d target tokens; the search "
                "needs %d and %d",
                have->source, have->target, need.source, need.target);
    return DGM_OK;
}

// ---- memory ------------------------------------------------------------------------------------

void *dgm_carve_take(dgm_carve *c, size_t count, size_t size)
{
    const size_t cost = dgm_arena_cost(count * size);
    c->bytes = cost < SIZE_MAX / 4 - c->bytes ? c->bytes + cost : SIZE_MAX / 4; // never wraps
    if (!c->arena) return NULL;
    void *block = dgm_arena_array(c->arena, count, size);
    if (!block) c->full = true;
    return block;
}

static void lay_beam(dgm_carve *c, dgm_beam *b, const dgm_search *s)
{
    const size_t width = (size_t)s->width;
    b->count = 0;
    b->live = DGM_CARVE(c, dgm_live, width);
    b->rows = DGM_CARVE(c, int32_t, width * (size_t)s->part_count);
    b->states = DGM_CARVE(c, int32_t, width * (size_t)s->scorer_count);
    b->origins = DGM_CARVE(c, int32_t, width);
}

static void lay_active(dgm_carve *c, dgm_active *p, const dgm_search *s)
{
    const size_t nodes = (size_t)s->node_capacity;
    *p = (dgm_active){.hand = s->hands};
    lay_beam(c, &p->now, s);
    lay_beam(c, &p->next, s);
    p->nodes = DGM_CARVE(c, dgm_node, nodes);
    if (s->config.alignment)
        p->attention = DGM_CARVE(c, float, nodes *(size_t)s->config.max_source);
    p->store.items = DGM_CARVE(c, dgm_ended, (size_t)s->width);
    p->spare.items = DGM_CARVE(c, dgm_ended, (size_t)s->width);
    if (!s->config.rescore) return;
    const size_t results = (size_t)s->config.nbest, longest = (size_t)s->config.max_length + 1;
    p->again = DGM_CARVE(c, dgm_ended, results);
    p->path = DGM_CARVE(c, int32_t, results * longest);
    p->first_states = DGM_CARVE(c, int32_t, (size_t)s->scorer_count);
}

static void lay_rows(dgm_carve *c, dgm_rows *r, const dgm_search *s)
{
    const size_t n = (size_t)s->capacity, all = n * (size_t)s->vectors, k = (size_t)s->k;
    r->active = DGM_CARVE(c, int32_t, n);
    r->hypo = DGM_CARVE(c, int32_t, n);
    r->steps = DGM_CARVE(c, dgm_step_row, n);
    r->rows = DGM_CARVE(c, int32_t, n * (size_t)s->part_count);
    r->align = DGM_CARVE(c, float *, all);
    r->terms = DGM_CARVE(c, dgm_terms, all);
    r->base = DGM_CARVE(c, float, all);
    r->more = DGM_CARVE(c, const dgm_candidates *, all);
    r->candidates = DGM_CARVE(c, const dgm_candidates *, all);
    r->sizes = DGM_CARVE(c, int32_t, all);
    r->watch = DGM_CARVE(c, int32_t, all);
    r->watch_score = DGM_CARVE(c, float, all);
    r->score = DGM_CARVE(c, float, all *k);
    r->token = DGM_CARVE(c, int32_t, all * k);
    r->retain = DGM_CARVE(c, int32_t, n);
}

static void lay_results(dgm_carve *c, dgm_search *s)
{
    const size_t n = (size_t)s->config.nbest, longest = (size_t)s->config.max_length;
    s->hypotheses = DGM_CARVE(c, dgm_hypothesis, n);
    s->tokens = DGM_CARVE(c, int32_t, n * longest);
    if (s->config.word_scores) s->word_scores = DGM_CARVE(c, float, n *(longest + 1));
    if (s->config.alignment)
        s->alignment = DGM_CARVE(c, float, n *longest *(size_t)s->config.max_source);
}

// Everything but the dgm_search itself and the tables of its own scorers. Needs config, part_count,
// scorer_count and never_count.
static void lay_out(dgm_carve *c, dgm_search *s, int vocabulary)
{
    const size_t sentences = (size_t)s->config.sentences;
    int k = find(&s->config)->candidates(&s->config);
    if (k < s->config.ranked) k = s->config.ranked;
    s->width = s->config.beam;
    s->k = k < vocabulary ? k : vocabulary;
    s->capacity = s->config.sentences * s->width;
    s->vectors = find(&s->config)->tokens > 1 ? find(&s->config)->tokens : 1;
    s->node_capacity = find(&s->config)->nodes ? find(&s->config)->nodes(&s->config)
                                               : 1 + s->width * (s->config.max_length + 1);
    s->never = DGM_CARVE(c, int32_t, (size_t)s->never_count);
    dgm_hands_lay_out(c, s, find(&s->config)->shares);
    s->sources = DGM_CARVE(c, dgm_source, sentences);
    s->new_slots = DGM_CARVE(c, int32_t, sentences);
    s->new_rows = DGM_CARVE(c, int32_t, sentences);
    s->entering = DGM_CARVE(c, int32_t, sentences);
    // Where a generation is made in parts, a selection of words may want to see all of it first.
    s->kept = s->config.max_rows ? s->config.hidden : 0;
    lay_rows(c, &s->rows, s);
    dgm_history_lay_out(c, s);
    dgm_banks_lay_out(c, s);
    lay_results(c, s);
    if (s->config.count_unions)
        s->in_union = DGM_CARVE(c, uint64_t, ((size_t)vocabulary + 63) / 64);
    if (find(&s->config)->lay_out) find(&s->config)->lay_out(c, s);
    s->active = DGM_CARVE(c, dgm_active, sentences);
    for (size_t i = 0; i < sentences; i++) {
        dgm_active counted;
        lay_active(c, c->arena && s->active ? &s->active[i] : &counted, s);
    }
}

dgm_bytes dgm_search_bytes(const dgm_backend *b, const dgm_search_config *config, int part_count,
                           int vocabulary)
{
    if (check_config(config, NULL) != DGM_OK) return (dgm_bytes){0}; // dgm_search_open says why
    dgm_search s = {.config = *config, .part_count = part_count};
    s.scorer_count = DGM_SEARCH_SCORERS;
    // Every member may name its own list; the merged one is not longer than the vocabulary.
    s.never_count = vocabulary;
    dgm_carve c = {0};
    lay_out(&c, &s, vocabulary);
    return (dgm_bytes){
        .host = c.bytes + dgm_arena_cost(sizeof s) + dgm_score_prefix_bytes(config->sentences) +
                dgm_score_constraint_bytes(config->sentences),
        .device = s.kept ? dgm_exec_mat_bytes(b, s.capacity * s.vectors, s.kept) : 0};
}

// ---- opening -----------------------------------------------------------------------------------

// The list for tokens before the minimum length: what is denied anyway, and the end symbol.
static void deny_end_early(dgm_search *s)
{
    const bool first = s->deny_count == 0 || s->eos < s->deny[0];
    int n = 0;
    if (first) s->deny_early[n++] = s->eos;
    if (s->deny_count) s->deny_early[n++] = s->deny[0];
    if (!first) s->deny_early[n++] = s->eos;
    s->deny_early_count = n;
}

// Ascending union of the members' lists of tokens that are never chosen. dst NULL: its size only.
static int merge_never(const dgm_search *s, int32_t *dst)
{
    int at[DGM_PARTS_MAX] = {0}, count = 0;
    for (;;) {
        int32_t lowest = INT32_MAX;
        for (int i = 0; i < s->part_count; i++)
            if (at[i] < s->info[i]->never_count && s->info[i]->never[at[i]] < lowest)
                lowest = s->info[i]->never[at[i]];
        if (lowest == INT32_MAX) return count;
        for (int i = 0; i < s->part_count; i++)
            while (at[i] < s->info[i]->never_count && s->info[i]->never[at[i]] == lowest) at[i]++;
        if (lowest == s->eos) continue; // the end symbol is always a candidate
        if (dst) dst[count] = lowest;
        count++;
    }
}

// Longest source and target that every member's positions can hold.
static void set_lengths(dgm_search *s)
{
    s->source_limit = s->config.max_source;
    s->target_limit = s->config.max_length;
    for (int i = 0; i < s->part_count; i++) {
        const int source = s->info[i]->max_source;
        const int64_t target = ((int64_t)s->info[i]->max_target - s->lead_count) *
                               s->info[i]->tokens_per_step;
        if (source < s->source_limit) s->source_limit = source;
        if (target < s->target_limit) s->target_limit = (int)target;
    }
}

static dgm_status set_up(dgm_search *s, dgm_arena *arena, dgm_error *err)
{
    for (int i = 0; i < s->part_count; i++)
        s->info[i] = dgm_model_describe(dgm_state_model(s->parts[i].state));
    DGM_TRY(check_features(s, err));
    DGM_FAIL_IF(s->ops->tokens > 0 && s->ops->tokens != s->info[0]->tokens_per_step, err, DGM_ERR_ARGUMENT,
                "a search of %d words a step, and a model of %d", s->ops->tokens, s->info[0]->tokens_per_step);
    for (int i = 0; i < s->part_count; i++) {
        DGM_TRY(check_member(s, i, err));
        DGM_TRY(check_limits(s, i, err));
    }
    int hidden = 0;
    for (int i = 0; i < s->part_count; i++) hidden += s->info[i]->hidden;
    const bool parted = s->config.max_rows && s->vocabsel.ops->look;
    DGM_FAIL_IF((s->config.cube_key == DGM_CUBE_STATE || parted) && s->config.hidden != hidden, err,
                DGM_ERR_ARGUMENT, "the models' hidden vectors have %d numbers, not %d", hidden,
                s->config.hidden);
    const dgm_model_info *info = s->info[0];
    s->eos = info->eos;
    s->lead_count = 1 + info->target_prefix_count;
    set_lengths(s);
    DGM_FAIL_IF(s->target_limit < 1, err, DGM_ERR_ARGUMENT,
                "the model's target positions leave no room for a translation");
    if (!s->config.allow_unk && info->unk >= 0 && info->unk != info->eos) {
        s->deny[0] = info->unk;
        s->deny_count = 1;
    }
    deny_end_early(s);
    s->never_count = merge_never(s, NULL);
    dgm_carve c = {.arena = arena};
    lay_out(&c, s, info->target_vocab);
    if (c.full)
        return dgm_fail(err, DGM_ERR_MEMORY,
                        "the search needs %zu bytes, more than the workspace has left", c.bytes);
    merge_never(s, s->never);
    dgm_history_start(s);
    DGM_TRY(dgm_score_constraint(&s->scorers[s->scorer_count - 2], arena, s->config.sentences, err));
    DGM_TRY(dgm_score_prefix(&s->scorers[s->scorer_count - 1], arena, s->config.sentences, err));
    s->keeps = s->kept && (s->config.cube_key == DGM_CUBE_STATE || parted);
    if (s->kept) s->hidden = dgm_exec_mat(s->exec, s->capacity * s->vectors, s->kept);
    DGM_FAIL_IF(s->kept && !s->hidden.data, err, DGM_ERR_MEMORY,
                "the workspace is too small for the search's hidden vectors");
    return DGM_OK;
}

dgm_status dgm_search_open(dgm_search **out, dgm_exec *x, const dgm_search_config *config,
                           const dgm_search_part *parts, int part_count, dgm_vocabsel *vocabsel,
                           dgm_scorer *scorers, int scorer_count, dgm_error *err)
{
    *out = NULL;
    DGM_TRY(check_config(config, err));
    DGM_FAIL_IF(part_count < 1 || part_count > DGM_PARTS_MAX, err, DGM_ERR_ARGUMENT,
                "an ensemble of %d models; it must be 1 to %d", part_count, DGM_PARTS_MAX);
    DGM_FAIL_IF(scorer_count < 0 || scorer_count > DGM_SCORERS_MAX, err, DGM_ERR_ARGUMENT,
                "%d scorers; at most %d", scorer_count, DGM_SCORERS_MAX);
    dgm_arena *arena = dgm_exec_host(x);
    const size_t mark = dgm_arena_mark(arena);
    dgm_search *s = dgm_arena_alloc(arena, sizeof *s);
    if (!s) return dgm_fail(err, DGM_ERR_MEMORY, "the workspace is too small for a search");
    *s = (dgm_search){.config = *config, .exec = x, .part_count = part_count};
    s->ops = find(config);
    s->finish = &dgm_finish_table[config->finish];
    memcpy(s->parts, parts, (size_t)part_count * sizeof *parts);
    if (scorer_count > 0) memcpy(s->scorers, scorers, (size_t)scorer_count * sizeof *scorers);
    s->scorer_count = scorer_count + 2;
    if (vocabsel)
        s->vocabsel = *vocabsel;
    else
        dgm_vocabsel_all(&s->vocabsel);
    const dgm_status st = set_up(s, arena, err);
    if (st != DGM_OK) {
        dgm_arena_reset(arena, mark);
        return st;
    }
    *out = s;
    return DGM_OK;
}

void dgm_search_close(dgm_search **s)
{
    if (*s) dgm_search_clear(*s);
    *s = NULL;
}

int dgm_search_free(const dgm_search *s)
{
    return s->config.sentences - s->active_count;
}

int dgm_search_active(const dgm_search *s)
{
    return s->active_count;
}

int dgm_search_step_rows(const dgm_search *s)
{
    return s->rows.count;
}

const dgm_search_stats *dgm_search_counts(const dgm_search *s)
{
    return &s->stats;
}
