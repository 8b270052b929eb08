// SPDX-License-Identifier: MIT
// One generation of all sentences: feed, rank, drop.
//
//   rows     | sentence 3: hyp 0 1 2 3 | sentence 5: hyp 0 1 | ... | leading sentences |
//            |<--------------------- ranked ---------------------->|
//
// A sentence's rows are neighbours, in beam order, so that its results are too. Sentences that are
// still being fed the model's own start and prefix tokens take part in the step, behind the others,
// and are not ranked. Which rows share a step never matters to a row: the models promise it, and
// nothing below looks across sentences.
#include "search/search_private.h"

#include <math.h>
#include <string.h>

#include "base/lower_bound.h"

// Nanoseconds of a row, about: to find its place, to make the model's input, and what becomes of its results.
enum { COLLECT_TIME = 15, INPUT_TIME = 10, EXPAND_TIME = 60 };

void dgm_rows_clear(dgm_search *s)
{
    s->rows.count = s->rows.ranked = 0;
}

static bool first_of_sentence(const dgm_rows *r, int row, int active)
{
    return row == 0 || r->active[row - 1] != active;
}

// Row `at`, and what rank needs where terms are alike.
static void put_row(dgm_search *s, int at, int active, int hypo)
{
    dgm_rows *r = &s->rows;
    const dgm_active *p = &s->active[active];
    const size_t source = (size_t)s->config.max_source;
    int32_t node = p->now.live[hypo].node;
    r->active[at] = active;
    r->hypo[at] = hypo;
    r->base[at] = p->now.live[hypo].score;
    r->watch[at] = s->eos;
    for (int v = s->vectors - 1; p->attention && v >= 0; v--) { // each has what its own token's feeding sees
        const bool seen = !dgm_active_leading(s, p);
        r->align[at * s->vectors + v] = seen ? p->attention + (size_t)node * source : NULL;
        node = p->nodes[node].parent;
    }
}

int dgm_rows_append(dgm_search *s, int active, int hypo)
{
    const int at = s->rows.count++;
    put_row(s, at, active, hypo);
    return at;
}

void dgm_rows_add(dgm_search *s, int active, int hypo)
{
    dgm_active *p = &s->active[active];
    const int at = dgm_rows_append(s, active, hypo);
    if (first_of_sentence(&s->rows, at, active)) {
        p->first_row = at;
        p->row_count = 0;
        p->steps++;
    }
    p->row_count++;
}

bool dgm_active_leading(const dgm_search *s, const dgm_active *p)
{
    return p->lead + 1 < s->lead_count;
}

static bool is_ranked(const dgm_search *s, const dgm_active *p)
{
    return p->used && !dgm_active_leading(s, p);
}

static void count_rows(dgm_search *s, dgm_hand *hand, int first, int end, const void *arg)
{
    (void)arg;
    hand->rows = 0;
    for (int i = first; i < end; i++)
        if (is_ranked(s, &s->active[i])) hand->rows += s->active[i].now.count;
}

// From hand->rows on, which is where the next ones go.
static void put_rows(dgm_search *s, dgm_hand *hand, int first, int end, const void *arg)
{
    int at = hand->rows;
    (void)arg;
    for (int i = first; i < end; i++) {
        dgm_active *p = &s->active[i];
        if (!is_ranked(s, p)) continue;
        p->first_row = at;
        p->row_count = p->now.count;
        p->steps++;
        for (int j = 0; j < p->now.count; j++) put_row(s, at++, i, j);
    }
    hand->rows = at;
}

void dgm_rows_collect(dgm_search *s)
{
    const int parts = dgm_share_parts(s, (double)s->active_count * s->width * COLLECT_TIME);
    dgm_rows_clear(s);
    if (parts > 1) dgm_share(s, parts, s->config.sentences, count_rows, NULL);
    for (int i = 0, at = 0; i < parts; i++) { // of counts, places
        const int count = parts > 1 ? s->hands[i].rows : 0;
        s->hands[i].rows = at;
        at += count;
    }
    dgm_share(s, parts, s->config.sentences, put_rows, NULL);
    s->rows.count = s->hands[parts - 1].rows;
    s->stats.live += (uint64_t)s->rows.count;
    dgm_rows_collect_leading(s);
}

void dgm_rows_collect_leading(dgm_search *s)
{
    s->rows.ranked = s->rows.count;
    for (int i = 0; i < s->config.sentences; i++)
        if (s->active[i].used && dgm_active_leading(s, &s->active[i])) dgm_rows_add(s, i, 0);
}

// What row `at` is fed: the last token of its path; before the first one, the start symbol and the
// tokens that the model wants before every sentence.
static int32_t input_token(const dgm_search *s, int part, int at)
{
    const dgm_active *p = &s->active[s->rows.active[at]];
    const int32_t node = p->now.live[s->rows.hypo[at]].node;
    if (node != 0) return p->nodes[node].token;
    const dgm_model_info *info = s->info[part];
    const int32_t *lead = p->lead_tokens ? p->lead_tokens : info->target_prefix;
    return p->lead == 0 ? info->start : lead[p->lead - 1];
}

// The same of pairs: the last one, or the start pair (double.c).
static void input_pair(const dgm_search *s, int part, int at, int32_t token[2])
{
    const dgm_active *p = &s->active[s->rows.active[at]];
    const dgm_node *right = &p->nodes[p->now.live[s->rows.hypo[at]].node];
    const bool start = right->parent == 0;
    token[0] = start ? s->info[part]->start : p->nodes[right->parent].token;
    token[1] = start ? s->info[part]->start_second : right->token;
}

// The columns of s->hidden that belong to a part.
static dgm_mat columns_of(const dgm_search *s, int part)
{
    int at = 0;
    for (int i = 0; i < part; i++) at += s->info[i]->hidden;
    return dgm_mat_cols(s->hidden, at, s->info[part]->hidden);
}

// A hidden vector lasts until the next step: copies go to s->hidden, from row `first` on.
static void keep_hidden(dgm_search *s, int first, int count)
{
    for (int i = 0; i < s->part_count; i++)
        dgm_op_keep(s->exec, columns_of(s, i), first, dgm_mat_rows(s->rows.hidden[i], 0, count));
}

typedef struct inputs {
    int part, first;
} inputs;

static void put_inputs(dgm_search *s, dgm_hand *hand, int first, int end, const void *arg)
{
    const dgm_rows *r = &s->rows;
    const inputs *x = arg;
    (void)hand;
    for (int i = x->first + first; i < x->first + end; i++) {
        const dgm_active *p = &s->active[r->active[i]];
        r->steps[i].parent = p->now.rows[r->hypo[i] * s->part_count + x->part];
        r->steps[i].token[1] = DGM_NO_TOKEN;
        if (s->pairs)
            input_pair(s, x->part, i, r->steps[i].token);
        else
            r->steps[i].token[0] = input_token(s, x->part, i);
    }
}

dgm_status dgm_rows_step(dgm_search *s, int first, int count, dgm_error *err)
{
    dgm_rows *r = &s->rows;
    if (count == 0) return DGM_OK;
    for (int part = 0; part < s->part_count; part++) {
        const inputs all = {part, first};
        dgm_share(s, dgm_share_parts(s, (double)count * INPUT_TIME), count, put_inputs, &all);
        // Alignments are the first part's: attention of different networks does not add up.
        float **align = r->align + (size_t)first * (size_t)s->vectors;
        dgm_step_result out = {.rows = r->rows + (size_t)part * (size_t)s->capacity + first,
                               .align = part == 0 && s->config.alignment ? align : NULL};
        DGM_TRY(dgm_step(s->parts[part].state, count, r->steps + first, &out, err));
        r->hidden[part] = out.hidden;
    }
    if (s->keeps) keep_hidden(s, first * s->vectors, count * s->vectors);
    s->stats.steps++;
    s->stats.rows += (uint64_t)count;
    return DGM_OK;
}

bool dgm_active_early(const dgm_search *s, const dgm_active *p)
{
    return p->tokens < s->config.min_length && p->tokens < p->max_length;
}

void dgm_terms_fill(dgm_search *s, int row)
{
    dgm_rows *r = &s->rows;
    const int active = r->active[row], hypo = r->hypo[row];
    const dgm_active *p = &s->active[active];
    const dgm_beam *beam = &p->now;
    const bool early = dgm_active_early(s, p);
    dgm_terms *t = &r->terms[row];
    *t = (dgm_terms){.base = beam->live[hypo].score,
                     .lambda = 1.0f,
                     .deny = early ? s->deny_early : s->deny,
                     .deny_count = early ? s->deny_early_count : s->deny_count};
    dgm_history_terms(s, row, t);
    dgm_banks_terms(s, row, t);
    for (int i = 0; i < s->scorer_count; i++)
        dgm_scorer_terms(&s->scorers[i], active, beam->states[hypo * s->scorer_count + i], t);
    r->watch[row] = p->again_count ? dgm_rescore_watch(s, p, hypo) : s->eos;
}

static const dgm_candidates *more_candidates(dgm_search *s, int row)
{
    if (!s->vocabsel.ops->more || !s->rows.candidates[row] || s->pairs) return NULL;
    const int active = s->rows.active[row];
    const dgm_active *p = &s->active[active];
    const int32_t node = p->now.live[s->rows.hypo[row]].node;
    return s->vocabsel.ops->more(&s->vocabsel, active, row, node ? p->nodes[node].token : -1);
}

const dgm_candidates *dgm_words_select(dgm_search *s, int active, dgm_mat seen, int first, int rows,
                                       bool begins)
{
    const dgm_candidates *c =
        s->vocabsel.ops->select(&s->vocabsel, active, first, dgm_mat_rows(seen, first, rows));
    if (!begins) return c;
    int size = c ? c->count : s->info[0]->target_vocab;
    if (c && c->joint) size = s->vocabsel.ops->size(&s->vocabsel, active);
    s->stats.candidates += (uint64_t)size;
    return c;
}

void dgm_union_count(dgm_search *s, const dgm_candidates *const *lists, int count)
{
    const dgm_candidates *last = NULL; // a sentence's vectors are neighbours and have one list
    uint64_t size = 0;
    memset(s->in_union, 0, ((size_t)s->info[0]->target_vocab + 63) / 64 * sizeof *s->in_union);
    for (int i = 0; i < count; i++) {
        if (!lists[i] || lists[i] == last) continue;
        last = lists[i];
        s->stats.selections++;
        s->stats.selection_tokens += (uint64_t)last->count;
        for (int k = 0; k < last->count; k++) {
            uint64_t *word = &s->in_union[last->ids[k] >> 6];
            const uint64_t bit = (uint64_t)1 << (last->ids[k] & 63);
            size += !(*word & bit);
            *word |= bit;
        }
    }
    if (!last) return;
    s->stats.unions++;
    s->stats.union_tokens += size;
}

// For the sentence whose rows begin with `row`.
static const dgm_candidates *select_candidates(dgm_search *s, int row, dgm_mat seen)
{
    const int active = s->rows.active[row];
    const dgm_active *p = &s->active[active];
    if (p->again_count > 0 && s->vocabsel.ops->by_step) return NULL;
    return dgm_words_select(s, active, seen, row * s->vectors, p->row_count * s->vectors,
                            p->tokens == 0 && p->again_count == 0);
}

// Nothing but the model has a say, in any sentence that is ranked.
static bool terms_alike(const dgm_search *s)
{
    enum { IDLE_SCORERS = 2 }; // constraints and prefixes, where no sentence has any
    const dgm_rows *r = &s->rows;
    if (s->ops->terms || s->cubes || s->history.path || s->banks.constrained || s->scorer_count > IDLE_SCORERS)
        return false;
    const bool early = dgm_active_early(s, &s->active[r->active[0]]);
    for (int i = 0; i < r->ranked; i += s->active[r->active[i]].row_count) {
        const dgm_active *p = &s->active[r->active[i]];
        if (p->forced || p->again_count || dgm_active_early(s, p) != early) return false;
    }
    return true;
}

static void fill_terms(dgm_search *s)
{
    dgm_rows *r = &s->rows;
    r->alike = terms_alike(s);
    for (int i = 0; i < r->ranked && !r->alike; i++) {
        if (s->ops->terms)
            s->ops->terms(s, i);
        else
            dgm_terms_fill(s, i);
    }
    if (r->alike) dgm_terms_fill(s, 0); // what is each row's own has been there since it was collected
}

static void fill_candidates(dgm_search *s, dgm_mat seen)
{
    dgm_rows *r = &s->rows;
    for (int i = 0; i < r->ranked; i++) {
        const int at = i * s->vectors;
        r->candidates[at] = first_of_sentence(r, i, r->active[i]) ? select_candidates(s, i, seen)
                                                                  : r->candidates[at - 1];
        r->subset |= r->candidates[at] != NULL;
        r->more[at] = more_candidates(s, at);
        if (r->more[at]) s->stats.more += (uint64_t)r->more[at]->count;
        for (int v = 1; v < s->vectors; v++) {
            r->candidates[at + v] = r->candidates[at];
            r->more[at + v] = NULL;
        }
    }
}

// The statistics of a selection that lets everything pass.
static void count_whole(dgm_search *s)
{
    const dgm_rows *r = &s->rows;
    for (int i = 0; i < r->ranked; i += s->active[r->active[i]].row_count) {
        const dgm_active *p = &s->active[r->active[i]];
        if (p->tokens == 0 && p->again_count == 0) s->stats.candidates += (uint64_t)s->info[0]->target_vocab;
    }
}

// What rank wants to know of all rows beside their hidden vectors. seen: these, for a selection
// that goes by them.
static void prepare(dgm_search *s, dgm_mat seen)
{
    dgm_rows *r = &s->rows;
    r->subset = false;
    dgm_vocabsel_look(&s->vocabsel, seen);
    fill_terms(s);
    if (s->vocabsel.ops->whole && !s->cubes)
        count_whole(s);
    else
        fill_candidates(s, seen);
    if (s->in_union && r->subset) dgm_union_count(s, r->candidates, r->ranked * s->vectors);
    r->watched = dgm_banks_watch(s);
}

// Rows first .. first + count - 1, whose hidden vectors were made by the last step.
static void rank_rows(dgm_search *s, int first, int count)
{
    dgm_rows *r = &s->rows;
    const bool offers = r->watched > 1;
    const size_t begin = (size_t)first * (size_t)s->vectors, k = (size_t)s->k;
    const size_t watch = begin * (size_t)r->watched;
    const dgm_rank rank = {
        .rows = count * s->vectors,
        .candidates = r->subset ? r->candidates + begin : NULL,
        .more = r->subset ? r->more + begin : NULL,
        .terms = r->terms + (r->alike ? 0 : begin),
        .base = r->alike ? r->base + begin : NULL,
        .k = s->k,
        .score = r->score + begin * k,
        .token = r->token + begin * k,
        .watch_count = r->watched,
        .watch = (offers ? s->banks.watch : r->watch) + watch,
        .watch_score = (offers ? s->banks.watch_score : r->watch_score) + watch,
    };
    dgm_rank_run(s, &rank);
    s->stats.rank_rows += (uint64_t)rank.rows;
    s->stats.leads += (uint64_t)count;
}

// A generation in parts of max_rows rows, where the selection of words wants to see the hidden
// vectors of all of them first: they are kept.
static dgm_status step_look_rank(dgm_search *s, int most, dgm_error *err)
{
    dgm_rows *r = &s->rows;
    for (int first = 0, count; first < r->count; first += count) {
        count = r->count - first < most ? r->count - first : most;
        DGM_TRY(dgm_rows_step(s, first, count, err));
    }
    if (r->ranked == 0) return DGM_OK;
    prepare(s, dgm_mat_rows(columns_of(s, s->vocabsel.part), 0, r->ranked * s->vectors));
    for (int first = 0, count; first < r->ranked; first += count) {
        count = r->ranked - first < most ? r->ranked - first : most;
        for (int i = 0; i < s->part_count; i++)
            r->hidden[i] = dgm_mat_rows(columns_of(s, i), first * s->vectors, count * s->vectors);
        rank_rows(s, first, count);
    }
    if (r->watched > 1) dgm_banks_read(s);
    return DGM_OK;
}

// A generation in parts of max_rows rows: what batching over hypotheses and sentences saves is
// what this costs.
static dgm_status step_and_rank(dgm_search *s, int most, dgm_error *err)
{
    const dgm_rows *r = &s->rows;
    if (r->ranked) prepare(s, (dgm_mat){0});
    for (int first = 0; first < r->count; first += most) {
        const int left = r->count - first, ranked = r->ranked - first;
        const int count = left < most ? left : most;
        DGM_TRY(dgm_rows_step(s, first, count, err));
        if (ranked > 0) rank_rows(s, first, ranked < count ? ranked : count);
    }
    if (r->ranked && r->watched > 1) dgm_banks_read(s);
    return DGM_OK;
}

// Every live hypothesis was fed: its row lives on in the new one.
static void retain_new(dgm_search *s)
{
    for (int part = 0; part < s->part_count; part++)
        dgm_retain(s->parts[part].state, s->rows.count,
                   s->rows.rows + (size_t)part * (size_t)s->capacity);
    s->retains = false;
}

dgm_status dgm_rows_run(dgm_search *s, dgm_error *err)
{
    const dgm_rows *r = &s->rows;
    const int most = s->config.max_rows;
    if (most && s->vocabsel.ops->look) return step_look_rank(s, most, err);
    if (most) return step_and_rank(s, most, err);
    DGM_TRY(dgm_rows_step(s, 0, r->count, err));
    if (s->retains) retain_new(s);
    if (r->ranked == 0) return DGM_OK;
    prepare(s, dgm_mat_rows(r->hidden[s->vocabsel.part], 0, r->ranked * s->vectors));
    rank_rows(s, 0, r->ranked);
    if (r->watched > 1) dgm_banks_read(s);
    return DGM_OK;
}

void dgm_rank_run(dgm_search *s, const dgm_rank *what)
{
    dgm_rank_part parts[DGM_PARTS_MAX];
    dgm_rank rank = *what;
    for (int i = 0; i < s->part_count; i++)
        parts[i] = (dgm_rank_part){.out = dgm_model_output(dgm_state_model(s->parts[i].state)),
                                   .hidden = dgm_mat_rows(s->rows.hidden[i], 0, rank.rows),
                                   .weight = s->parts[i].weight};
    rank.parts = parts;
    rank.part_count = s->part_count;
    rank.mix = s->config.mix;
    rank.normalise = s->config.normalise;
    rank.never = s->never;
    rank.never_count = s->never_count;
    if (!rank.sizes) rank.sizes = s->rows.sizes;
    dgm_op_rank(s->exec, &rank);
    for (int i = 0; i < rank.rows; i++) s->stats.dots += (uint64_t)rank.sizes[i];
}

dgm_candidate dgm_row_end(const dgm_search *s, int row)
{
    const dgm_terms *t = &s->rows.terms[s->rows.alike ? 0 : row];
    const bool may = !dgm_holds_id(t->deny, t->deny_count, s->eos) &&
                     (!t->allow || dgm_holds_id(t->allow, t->allow_count, s->eos));
    return (dgm_candidate){.hypo = s->rows.hypo[row],
                           .row = row,
                           .token = s->eos,
                           .score = may ? s->rows.watch_score[row] : -INFINITY};
}

void dgm_active_lead(dgm_search *s, dgm_active *p)
{
    p->lead++;
    for (int i = 0; i < s->part_count; i++)
        p->now.rows[i] = s->rows.rows[i * s->capacity + p->first_row];
}

void dgm_rows_retain(dgm_search *s)
{
    for (int part = 0; part < s->part_count; part++) {
        int count = 0;
        for (int i = 0; i < s->config.sentences; i++) {
            const dgm_active *p = &s->active[i];
            if (!p->used) continue;
            for (int j = 0; j < p->now.count; j++)
                s->rows.retain[count++] = p->now.rows[j * s->part_count + part];
        }
        dgm_retain(s->parts[part].state, count, s->rows.retain);
    }
    s->retains = false;
}

void dgm_rows_settle(dgm_search *s)
{
    if (s->retains) dgm_rows_retain(s);
}

static void expand_all(dgm_search *s, dgm_hand *hand, int first, int end, const void *arg)
{
    const dgm_expand *expand = arg;
    bool done = false;
    for (int i = first; i < end; i++) {
        dgm_active *p = &s->active[i];
        if (!p->used) continue;
        p->hand = hand;
        if (dgm_active_leading(s, p))
            dgm_active_lead(s, p);
        else
            (*expand)(s, p);
        done |= p->done;
    }
    hand->done = done;
}

dgm_status dgm_generation(dgm_search *s, dgm_expand expand, dgm_error *err)
{
    dgm_rows_collect(s);
    DGM_TRY(dgm_rows_run(s, err));
    DGM_TRY(dgm_exec_status(s->exec, err));
    const int parts = dgm_share_parts(s, (double)s->rows.count * EXPAND_TIME);
    dgm_share(s, parts, s->config.sentences, expand_all, &expand);
    s->any_done = false;
    for (int i = 0; i < parts; i++) s->any_done |= s->hands[i].done;
    if (s->config.max_rows)
        dgm_rows_retain(s);
    else
        s->retains = true;
    return DGM_OK;
}
