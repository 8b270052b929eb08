// SPDX-License-Identifier: MIT
// Forced decoding: what the models think of given translations (`dragoman score`).
//
// Pairs are sorted by target length and scored in groups of GROUP, one group per pool item. A
// group steps together; at every step each pair feeds its known token and rank is asked for the
// score of the next one (watch):
//
//     input   start  prefix ...  y1   y2  ...  yn
//     watch                  y1  y2   y3  ...  eos
//
// Scores are those of a search that happens to choose these tokens: same states, same rank. A model
// that writes from right to left is fed the words of a target in that order; a model of pairs is fed
// the target folded into pairs, as it was trained (search/fold.h), and both words of the next pair
// are watched. A model that fills in whole sentences makes no steps: pairs_masked.c. Results are in the order of
// reading, with one end.
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/threads.h"
#include "dragoman/tools.h"
#include "engine/engine_private.h"
#include "search/fold.h"
#include "tools/pairs_box.h"
#include "tools/pairs_masked.h"

enum { GROUP = 32 };

typedef struct pair_state {
    size_t source_at, target_at; // in the token array; the target as it is written, ends and all
    int source_count;
    int words; // of the target, without its end
    size_t lead_at; // of pairs of tokens: what the model wants before the target
    bool lead;
    int steps; // that write it and its end
    float length_penalty; // of its direction
} pair_state;

// Everything of one call.
typedef struct scoring {
    dgm_translator *t;
    const dgm_model_info *model;
    int vectors; // words of a step
    pair_state *pairs;
    int32_t *tokens;
    size_t token_count, token_cap;
    float *scores; // parallel to tokens: of target tokens
    float *log_z;  // parallel to tokens: the first model's softmax sum before them
    uint32_t *order;
    size_t order_count; // pairs that can be scored
    int group;          // pairs of one group
    dgm_limits limits;
    struct lane *lanes; // [pool threads]
    dgm_pair_score *items;
} scoring;

// One pool thread's memory.
typedef struct lane {
    dgm_exec *exec;
    dgm_state *states[DGM_PARTS_MAX];
    dgm_source *sources;            // [group]
    int32_t *slots;                 // [parts, group]
    int32_t *rows;                  // [parts, group]
    int32_t *next_rows;             // [group]
    dgm_step_row *steps;            // [group]
    uint32_t *active;               // [group] members of the group that still step
    dgm_terms *terms;               // [group, vectors], as all below
    int32_t *watch;
    int32_t *top_token;
    float *top_score, *watch_score;
    float *log_z; // [group, vectors, parts]
    dgm_masked_room masked; // of a model that fills in whole sentences
    dgm_status status;
    dgm_error error;
} lane;

// ---- text to tokens ---------------------------------------------------------------------------

// Steps that every member has positions for.
static int most_steps(const scoring *s)
{
    int most = 65536;
    for (int i = 0; i < s->t->member_count; i++) {
        const dgm_model_info *m = dgm_model_describe(s->t->members[i].model);
        if (m->max_target < most) most = m->max_target;
    }
    return most - s->model->target_prefix_count;
}

// Which of n words the model writes at a place, counted over all steps; n: an end.
static int word_at(const scoring *s, int n, int place)
{
    if (s->vectors > 1) return dgm_fold_at(s->model->order, n, place / 2, place % 2);
    return s->model->order == DGM_ORDER_R2L && place < n ? n - 1 - place : place;
}

// Words of the target as the model writes them, with its end.
static dgm_status add_target(scoring *s, const int32_t *ids, size_t count, pair_state *out, dgm_error *err)
{
    const size_t vectors = (size_t)s->vectors, steps = count / vectors + 1;
    const int most = most_steps(s);
    DGM_FAIL_IF(most < 0 || steps > (size_t)most, err, DGM_ERR_TEXT,
                "the target has %zu tokens, the limit is %d", count + 1, most * s->vectors);
    out->target_at = s->token_count;
    out->words = (int)count;
    out->steps = (int)steps;
    DGM_TRY(dgm_grow(&s->tokens, &s->token_cap, s->token_count + steps * vectors, sizeof *s->tokens,
                     err));
    for (int i = 0; i < out->steps * s->vectors; i++) {
        const int word = word_at(s, out->words, i);
        s->tokens[s->token_count++] = word < out->words ? ids[word] : s->model->eos;
    }
    return DGM_OK;
}

static dgm_status encode_target(scoring *s, dgm_text text, pair_state *out, dgm_writer *clean,
                                dgm_tokens *scratch, dgm_error *err)
{
    bool repaired = false;
    clean->size = 0;
    DGM_TRY(dgm_line_clean(text, clean, &repaired, err));
    text = dgm_text_trim((dgm_text){(const char *)clean->data, clean->size});
    DGM_TRY(dgm_vocab_encode(s->t->target, text, scratch, err));
    return add_target(s, scratch->ids, scratch->count, out, err);
}

static dgm_status check_source(const scoring *s, size_t count, dgm_error *err)
{
    DGM_FAIL_IF(count > (size_t)s->t->config.max_source, err, DGM_ERR_TEXT,
                "the source has %zu tokens, the limit is %d", count, s->t->config.max_source);
    DGM_FAIL_IF(count == 0, err, DGM_ERR_TEXT, "the source is empty");
    return DGM_OK;
}

// A pair that comes as tokens.
static dgm_status encode_tokens(scoring *s, const dgm_token_pair *pair, pair_state *out, dgm_tokens *scratch,
                                dgm_error *err)
{
    const size_t lead = (size_t)s->model->target_prefix_count;
    out->source_at = s->token_count;
    DGM_TRY(dgm_vocabulary_ids(s->t->source, pair->source, pair->source_count, &s->tokens, &s->token_count,
                               &s->token_cap, err));
    DGM_TRY(check_source(s, pair->source_count, err));
    out->source_count = (int)pair->source_count;
    scratch->count = 0;
    DGM_TRY(dgm_vocabulary_ids(s->t->target, pair->target, pair->target_count, &scratch->ids, &scratch->count,
                               &scratch->ids_cap, err));
    out->lead = lead > 0 && scratch->count >= lead;
    const size_t skip = out->lead ? lead : 0;
    out->lead_at = s->token_count;
    DGM_TRY(dgm_grow(&s->tokens, &s->token_cap, s->token_count + skip, sizeof *s->tokens, err));
    for (size_t i = 0; i < skip; i++) s->tokens[s->token_count++] = scratch->ids[i];
    return add_target(s, scratch->ids + skip, scratch->count - skip, out, err);
}

// Tokens before the target, where its direction is not the translator's.
static dgm_status add_lead(scoring *s, const int *direction, pair_state *out, dgm_error *err)
{
    const dgm_model_info *m = s->model;
    const size_t count = (size_t)m->target_prefix_count;
    if (!direction || m->languages->tags[DGM_TARGET] == 0) return DGM_OK;
    DGM_TRY(dgm_grow(&s->tokens, &s->token_cap, s->token_count + count, sizeof *s->tokens, err));
    out->lead = true;
    out->lead_at = s->token_count;
    memcpy(s->tokens + s->token_count, m->target_prefix, count * sizeof *s->tokens);
    s->token_count += count;
    dgm_languages_tokens(m->languages, DGM_TARGET, direction,
                         s->tokens + s->token_count - m->languages->tags[DGM_TARGET]);
    return DGM_OK;
}

// asked: the pair's direction; NULL: the translator's.
static dgm_status encode_pair(scoring *s, const dgm_pair *pair, const dgm_direction *asked, pair_state *out,
                              dgm_writer *clean, dgm_tokens *scratch, dgm_error *err)
{
    bool repaired = false, other = false;
    int own[2];
    const int *direction = NULL;
    if (asked) DGM_TRY(dgm_direction_line(s->t, asked, own, &other, err));
    if (other) direction = own;
    if (other) {
        dgm_length_rule rule;
        DGM_TRY(dgm_direction_lengths(s->t, own, &rule, err));
        out->length_penalty = rule.length_penalty;
    }
    size_t skip = 0;
    const dgm_translator *t = s->t;
    clean->size = 0;
    DGM_TRY(
        dgm_line_clean((dgm_text){pair->source.data, pair->source.size}, clean, &repaired, err));
    dgm_text text = dgm_text_trim((dgm_text){(const char *)clean->data, clean->size});
    int32_t language = text.size ? dgm_vocab_language_prefix(t->source, text, &skip) : -1;
    text = dgm_text_trim((dgm_text){text.data + skip, text.size - skip});
    DGM_TRY(dgm_vocab_encode(t->source, text, scratch, err));
    out->source_at = s->token_count;
    DGM_TRY(dgm_source_frame(t, direction, language, scratch->ids, scratch->count, &s->tokens, &s->token_count,
                             &s->token_cap, err));
    const size_t count = s->token_count - out->source_at;
    DGM_TRY(check_source(s, count, err));
    out->source_count = (int)count;
    DGM_TRY(add_lead(s, direction, out, err));
    return encode_target(s, (dgm_text){pair->target.data, pair->target.size}, out, clean, scratch, err);
}

// tokens: NULL, or the pairs as tokens; directions: of the pairs, or NULL.
static dgm_status encode_all(scoring *s, const dgm_pair *pairs, const dgm_direction *directions,
                             const dgm_token_pair *tokens, size_t count, dgm_error *err)
{
    dgm_writer clean = {0};
    dgm_tokens scratch = {0};
    dgm_status st = DGM_OK;
    int steps = 1;
    for (size_t i = 0; st == DGM_OK && i < count; i++) {
        dgm_error why;
        s->pairs[i].length_penalty = s->t->config.length_penalty;
        const dgm_status one = tokens ? encode_tokens(s, &tokens[i], &s->pairs[i], &scratch, &why)
                                      : encode_pair(s, &pairs[i], directions ? &directions[i] : NULL, &s->pairs[i],
                                                    &clean, &scratch, &why);
        dgm_pair_score *item = &s->items[i];
        item->status = one;
        if (one == DGM_OK) {
            s->order[s->order_count++] = (uint32_t)i;
            if (s->pairs[i].steps > steps) steps = s->pairs[i].steps;
        } else if (one == DGM_ERR_MEMORY || !(item->message = dgm_strdup(why.text))) {
            st = dgm_no_memory(err);
            item->message = "";
        }
    }
    dgm_writer_free(&clean);
    dgm_tokens_free(&scratch);
    s->limits.target = steps + s->model->target_prefix_count;
    if (s->model->mask >= 0) s->limits.rows = steps > s->t->config.refine_tokens ? steps : s->t->config.refine_tokens;
    return st;
}

// ---- one group --------------------------------------------------------------------------------

static const pair_state *member(const scoring *s, size_t first, uint32_t i)
{
    return &s->pairs[s->order[first + i]];
}

// What pair p is fed at step i: the start, what the model wants before every sentence (pairs have no
// such prefix), then what it said.
static void input_at(const scoring *s, const pair_state *p, int i, int32_t token[DGM_STEP_TOKENS])
{
    const dgm_model_info *m = s->model;
    const int prefix = m->target_prefix_count;
    const int32_t *said = s->tokens + p->target_at;
    if (s->vectors > 1) {
        token[0] = i ? said[2 * i - 2] : m->start;
        token[1] = i ? said[2 * i - 1] : m->start_second;
        return;
    }
    const int32_t *lead = p->lead ? s->tokens + p->lead_at : m->target_prefix;
    token[0] = i == 0 ? m->start : i <= prefix ? lead[i - 1] : said[i - prefix - 1];
    token[1] = DGM_NO_TOKEN;
}

// Where the tokens of step i stand; only behind the model's prefix.
static size_t said_at(const scoring *s, const pair_state *p, int i)
{
    return p->target_at + (size_t)((i - s->model->target_prefix_count) * s->vectors);
}

static dgm_status begin_group(const scoring *s, lane *l, size_t first, int count)
{
    size_t group = (size_t)s->group;
    for (int i = 0; i < count; i++) {
        const pair_state *p = member(s, first, (uint32_t)i);
        l->sources[i] = (dgm_source){s->tokens + p->source_at, p->source_count};
        l->active[i] = (uint32_t)i;
    }
    for (int m = 0; m < s->t->member_count; m++) {
        int32_t *slots = l->slots + (size_t)m * group, *rows = l->rows + (size_t)m * group;
        dgm_state_clear(l->states[m]);
        DGM_TRY(dgm_encode(l->states[m], count, l->sources, slots, &l->error));
        DGM_TRY(dgm_start(l->states[m], count, slots, rows, &l->error));
    }
    return DGM_OK;
}

// The models' step of all active pairs.
static dgm_status step_models(const scoring *s, lane *l, size_t first, int step, int count,
                              dgm_rank_part *parts)
{
    const size_t group = (size_t)s->group;
    for (int m = 0; m < s->t->member_count; m++) {
        int32_t *rows = l->rows + (size_t)m * group; // of the active pairs, in their order
        for (int i = 0; i < count; i++) {
            l->steps[i].parent = rows[i];
            input_at(s, member(s, first, l->active[i]), step, l->steps[i].token);
        }
        dgm_step_result r = {.rows = l->next_rows};
        DGM_TRY(dgm_step(l->states[m], count, l->steps, &r, &l->error));
        dgm_retain(l->states[m], count, l->next_rows);
        memcpy(rows, l->next_rows, (size_t)count * sizeof *rows);
        parts[m] = (dgm_rank_part){dgm_model_output(s->t->members[m].model), r.hidden,
                                   s->t->members[m].weight};
    }
    return DGM_OK;
}

// One step of all active pairs; their scores land in s->scores.
static dgm_status step_group(scoring *s, lane *l, size_t first, int step, int count)
{
    dgm_rank_part parts[DGM_PARTS_MAX];
    const int vectors = s->vectors, members = s->t->member_count;
    DGM_TRY(step_models(s, l, first, step, count, parts));
    if (step < s->model->target_prefix_count) return DGM_OK;
    for (int i = 0; i < count * vectors; i++) {
        const pair_state *p = member(s, first, l->active[i / vectors]);
        l->terms[i] = (dgm_terms){.lambda = 1};
        l->watch[i] = s->tokens[said_at(s, p, step) + (size_t)(i % vectors)];
    }
    dgm_rank r = {.parts = parts,
                  .part_count = members,
                  .mix = s->t->config.mix,
                  .normalise = s->t->config.normalise,
                  .rows = count * vectors,
                  .k = 1,
                  .watch_count = 1,
                  .terms = l->terms,
                  .watch = l->watch,
                  .score = l->top_score,
                  .token = l->top_token,
                  .watch_score = l->watch_score,
                  .log_z = l->log_z};
    dgm_op_rank(l->exec, &r);
    DGM_TRY(dgm_exec_status(l->exec, &l->error));
    for (int i = 0; i < count * vectors; i++) {
        const pair_state *p = member(s, first, l->active[i / vectors]);
        const size_t at = said_at(s, p, step) + (size_t)(i % vectors);
        s->scores[at] = l->watch_score[i];
        s->log_z[at] = l->log_z[i * members];
    }
    return DGM_OK;
}

// Pairs whose end symbol was scored leave; their rows are not stepped again.
static int drop_finished(const scoring *s, lane *l, size_t first, int step, int count)
{
    int kept = 0;
    size_t group = (size_t)s->group;
    for (int i = 0; i < count; i++) {
        const pair_state *p = member(s, first, l->active[i]);
        if (step + 1 >= p->steps + s->model->target_prefix_count) continue;
        l->active[kept] = l->active[i];
        for (int m = 0; m < s->t->member_count; m++)
            l->rows[(size_t)m * group + (size_t)kept] = l->rows[(size_t)m * group + (size_t)i];
        kept++;
    }
    return kept;
}

static void score_group(void *arg, int worker, int item)
{
    scoring *s = arg;
    lane *l = &s->lanes[worker];
    if (l->status != DGM_OK) return;
    size_t first = (size_t)item * (size_t)s->group;
    size_t rest = s->order_count - first;
    int count = rest < (size_t)s->group ? (int)rest : s->group;
    l->status = begin_group(s, l, first, count);
    for (int i = 0; s->model->mask >= 0 && l->status == DGM_OK && i < count; i++) {
        const pair_state *p = member(s, first, (uint32_t)i);
        const dgm_masked_text x = {s->t, l->exec, l->states, l->slots + i, (size_t)s->group, s->tokens + p->target_at,
                                   p->words};
        l->status = dgm_masked_score(&l->masked, &x, s->scores + p->target_at, s->log_z + p->target_at, &l->error);
    }
    if (s->model->mask >= 0) return;
    for (int step = 0; l->status == DGM_OK && count > 0; step++) {
        l->status = step_group(s, l, first, step, count);
        count = drop_finished(s, l, first, step, count);
    }
}

// ---- lanes ------------------------------------------------------------------------------------

static void close_lane(const scoring *s, lane *l)
{
    dgm_masked_close(&l->masked);
    for (int m = s->t->member_count - 1; m >= 0; m--)
        if (l->states[m]) dgm_state_close(&l->states[m]);
    dgm_exec_close(&l->exec);
    void *const arrays[] = {l->sources,   l->slots,     l->rows,        l->next_rows,
                            l->steps,     l->active,    l->terms,       l->watch,
                            l->top_token, l->top_score, l->watch_score, l->log_z};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) dgm_free(arrays[i]);
}

static dgm_status open_lane(const scoring *s, lane *l, dgm_error *err)
{
    const size_t group = (size_t)s->group, parts = (size_t)s->t->member_count;
    const size_t all = group * (size_t)s->vectors;
    const int vocabulary = s->model->target_vocab;
    l->sources = dgm_calloc(group, sizeof *l->sources);
    l->slots = dgm_calloc(group * parts, sizeof *l->slots);
    l->rows = dgm_calloc(group * parts, sizeof *l->rows);
    l->next_rows = dgm_calloc(group, sizeof *l->next_rows);
    l->steps = dgm_calloc(group, sizeof *l->steps);
    l->active = dgm_calloc(group, sizeof *l->active);
    l->terms = dgm_calloc(all, sizeof *l->terms);
    l->watch = dgm_calloc(all, sizeof *l->watch);
    l->top_token = dgm_calloc(all, sizeof *l->top_token);
    l->top_score = dgm_calloc(all, sizeof *l->top_score);
    l->watch_score = dgm_calloc(all, sizeof *l->watch_score);
    l->log_z = dgm_calloc(all * parts, sizeof *l->log_z);
    if (!l->sources || !l->slots || !l->rows || !l->next_rows || !l->steps || !l->active ||
        !l->terms || !l->watch || !l->top_token || !l->top_score || !l->watch_score || !l->log_z)
        return dgm_no_memory(err);
    if (s->model->mask >= 0) DGM_TRY(dgm_masked_open(&l->masked, s->limits.rows, s->t->member_count, err));
    dgm_bytes bytes = dgm_bytes_both(1 << 19);
    for (int m = 0; m < s->t->member_count; m++)
        bytes = dgm_bytes_add(bytes, dgm_state_bytes(s->t->members[m].model, &s->limits));
    bytes = dgm_bytes_add(
        bytes, dgm_rank_bytes(s->t->backend, s->limits.rows * s->vectors, s->t->member_count, vocabulary));
    DGM_TRY(dgm_exec_open(s->t->backend, bytes, &l->exec, err));
    dgm_exec_large(l->exec);
    for (int m = 0; m < s->t->member_count; m++)
        DGM_TRY(dgm_state_open(s->t->members[m].model, l->exec, &s->limits, &l->states[m], err));
    return DGM_OK;
}

static int by_length(const void *context, uint32_t a, uint32_t b)
{
    const scoring *s = context;
    uint32_t x = s->order[a], y = s->order[b];
    int nx = s->pairs[x].steps, ny = s->pairs[y].steps;
    if (nx != ny) return nx < ny ? -1 : 1;
    return x < y ? -1 : x > y;
}

static dgm_status sort_order(scoring *s, dgm_error *err)
{
    if (s->order_count == 0) return DGM_OK;
    uint32_t *index = dgm_malloc(s->order_count * sizeof *index);
    uint32_t *sorted = dgm_malloc(s->order_count * sizeof *sorted);
    if (!index || !sorted) {
        dgm_free(index);
        dgm_free(sorted);
        return dgm_no_memory(err);
    }
    dgm_sort_indices(index, s->order_count, by_length, s);
    for (size_t i = 0; i < s->order_count; i++) sorted[i] = s->order[index[i]];
    dgm_free(index);
    dgm_free(s->order);
    s->order = sorted;
    return DGM_OK;
}

static dgm_status run_groups(scoring *s, dgm_error *err)
{
    dgm_pool *pool = NULL;
    size_t groups = (s->order_count + (size_t)s->group - 1) / (size_t)s->group;
    int threads = (size_t)s->t->threads < groups ? s->t->threads : (int)groups;
    if (groups == 0) return DGM_OK;
    s->lanes = dgm_calloc((size_t)threads, sizeof *s->lanes);
    if (!s->lanes) return dgm_no_memory(err);
    dgm_status st = DGM_OK;
    for (int i = 0; st == DGM_OK && i < threads; i++) st = open_lane(s, &s->lanes[i], err);
    if (st == DGM_OK) st = dgm_pool_open(&pool, threads, err);
    if (st == DGM_OK) dgm_pool_run(pool, score_group, s, (int)groups);
    dgm_pool_close(&pool);
    for (int i = 0; i < threads; i++) {
        if (st == DGM_OK && s->lanes[i].status != DGM_OK) {
            st = s->lanes[i].status;
            if (err) *err = s->lanes[i].error;
        }
        close_lane(s, &s->lanes[i]);
    }
    dgm_free(s->lanes);
    return st;
}

// ---- results ----------------------------------------------------------------------------------

// The end is called what translations call it, whatever the model's own symbol is.
static dgm_text spelling(const scoring *s, const pair_state *p, int place)
{
    const bool end = word_at(s, p->words, place) == p->words;
    return dgm_vocab_piece(s->t->target, end ? dgm_vocab_eos(s->t->target)
                                             : s->tokens[p->target_at + (size_t)place]);
}

// Words in the order of reading, and one end: where a pair of ends was written, it has both scores.
static dgm_status fill_item(const scoring *s, const pair_state *p, dgm_pair_score *out,
                            dgm_error *err)
{
    const size_t n = (size_t)p->words + 1, written = (size_t)p->steps * (size_t)s->vectors;
    size_t bytes = 0;
    for (size_t i = 0; i < written; i++) bytes += spelling(s, p, (int)i).size + 1;
    char *block = dgm_calloc(1, n * (sizeof(char *) + 2 * sizeof(float)) + bytes);
    if (!block) return dgm_no_memory(err);
    const char **tokens = (const char **)(void *)block;
    float *scores = (float *)(void *)(block + n * sizeof(char *)), *log_z = scores + n;
    char *text = block + n * (sizeof(char *) + 2 * sizeof(float));
    for (size_t i = 0; i < written; i++) {
        const int word = word_at(s, p->words, (int)i);
        const dgm_text subword = spelling(s, p, (int)i);
        tokens[word] = text;
        if (subword.size) memcpy(text, subword.data, subword.size);
        text += subword.size + 1;
        scores[word] += s->scores[p->target_at + i];
        log_z[word] += s->log_z[p->target_at + i];
    }
    log_z[n - 1] /= (float)(written - n + 1);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)scores[i];
    out->tokens = tokens;
    out->token_scores = scores;
    out->log_z = s->t->config.normalise ? log_z : NULL;
    out->token_count = n;
    out->sum = (float)sum;
    out->score = dgm_length_normalise(out->sum, (int)n, p->length_penalty);
    return DGM_OK;
}

// One of pairs and tokens is NULL.
static dgm_status score_all(dgm_translator *t, const dgm_pair *pairs, const dgm_direction *directions,
                            const dgm_token_pair *tokens, size_t count, dgm_pair_scores **out, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(count > UINT32_MAX / 2, err, DGM_ERR_ARGUMENT, "too many pairs in one call");
    dgm_asked asked = t->wanted;
    asked.score = true;
    dgm_status st = dgm_asked_check(&asked, err);
    if (st != DGM_OK) dgm_error_prefix(err, "%s", dgm_gguf_path(t->members[0].file));
    if (st != DGM_OK) return st;
    scoring s = {.t = t,
                 .model = dgm_model_describe(t->members[0].model),
                 .vectors = dgm_model_describe(t->members[0].model)->tokens_per_step,
                 .group = t->batch < GROUP ? t->batch : GROUP};
    if ((size_t)s.group > count) s.group = count ? (int)count : 1;
    s.limits = (dgm_limits){.slots = s.group, .rows = s.group, .source = t->config.max_source};
    dgm_pair_box *box = dgm_pair_box_open(count);
    s.pairs = dgm_calloc(count ? count : 1, sizeof *s.pairs);
    s.order = dgm_calloc(count ? count : 1, sizeof *s.order);
    if (!box || !s.pairs || !s.order) {
        st = dgm_no_memory(err);
        goto done;
    }
    s.items = box->items;
    DGM_TRY_GOTO(st, encode_all(&s, pairs, directions, tokens, count, err), done);
    s.scores = dgm_calloc(s.token_count ? s.token_count : 1, sizeof *s.scores);
    s.log_z = dgm_calloc(s.token_count ? s.token_count : 1, sizeof *s.log_z);
    if (!s.scores || !s.log_z) {
        st = dgm_no_memory(err);
        goto done;
    }
    DGM_TRY_GOTO(st, sort_order(&s, err), done);
    DGM_TRY_GOTO(st, run_groups(&s, err), done);
    for (size_t i = 0; i < count && st == DGM_OK; i++) {
        if (box->items[i].status == DGM_OK)
            st = fill_item(&s, &s.pairs[i], &box->items[i], err);
        else
            box->pub.failed++;
    }
done:
    dgm_free(s.pairs);
    dgm_free(s.order);
    dgm_free(s.tokens);
    dgm_free(s.scores);
    dgm_free(s.log_z);
    if (st == DGM_OK) {
        *out = &box->pub;
    } else if (box) {
        dgm_pair_scores *pub = &box->pub;
        dgm_pair_scores_free(&pub);
    }
    return st;
}

dgm_status dgm_score_pairs(dgm_translator *t, const dgm_pair *pairs, size_t count,
                           dgm_pair_scores **out, dgm_error *err)
{
    return score_all(t, pairs, NULL, NULL, count, out, err);
}

dgm_status dgm_score_directed_pairs(dgm_translator *t, const dgm_pair *pairs, const dgm_direction *directions,
                                    size_t count, dgm_pair_scores **out, dgm_error *err)
{
    return score_all(t, pairs, directions, NULL, count, out, err);
}

dgm_status dgm_score_token_pairs(dgm_translator *t, const dgm_token_pair *pairs, size_t count, dgm_pair_scores **out,
                                 dgm_error *err)
{
    return score_all(t, NULL, NULL, pairs, count, out, err);
}
