// SPDX-License-Identifier: MIT
// What all architectures share: common metadata, slots, rows and the checks of the seam.
//
// Slots are numbered 0 .. limits.slots - 1, a free one has length 0; slots.c hands them out. The
// row pool holds three generations of limits.rows: parents, new rows, and a second step of the same
// generation. With ancestors kept, it holds every position of every row, or limits.past rows.
#include "model/model.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "format/rewrite.h"
#include "model/model_private.h"

// ---- loading ----------------------------------------------------------------------------------

static int compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static dgm_status sorted_never(dgm_model *m, const dgm_vocab_spec *target, dgm_error *err)
{
    size_t n = target->never_count;
    if (n == 0) return DGM_OK;
    m->owned_never = dgm_malloc(n * sizeof(int32_t));
    if (!m->owned_never) return dgm_no_memory(err);
    memcpy(m->owned_never, target->never, n * sizeof(int32_t));
    qsort(m->owned_never, n, sizeof(int32_t), compare_ids);
    m->info.never = m->owned_never;
    m->info.never_count = (int)n;
    return DGM_OK;
}

// The prefix of a side with room for the tokens of a direction behind it.
static dgm_status own_prefix(dgm_model *m, dgm_side side, const dgm_vocab_spec *v, dgm_error *err)
{
    size_t tags = (size_t)m->languages.tags[side];
    if (tags == 0) return DGM_OK;
    int32_t *ids = dgm_calloc(v->prefix_count + tags, sizeof *ids);
    if (!ids) return dgm_no_memory(err);
    if (v->prefix_count) memcpy(ids, v->prefix, v->prefix_count * sizeof *ids);
    m->owned_prefix[side] = ids;
    dgm_model_info *info = &m->info;
    if (side == DGM_TARGET) {
        info->target_prefix = ids;
        info->target_prefix_count += (int)tags;
    } else if (m->languages.last) {
        info->source_suffix = ids + v->prefix_count;
        info->source_suffix_count = (int)tags;
    } else {
        info->source_prefix = ids;
        info->source_prefix_count += (int)tags;
    }
    return DGM_OK;
}

static dgm_status load_languages(dgm_model *m, const dgm_vocab_spec *source,
                                 const dgm_vocab_spec *target, dgm_error *err)
{
    const int sizes[2] = {source->size, target->size};
    DGM_TRY(dgm_languages_read(m->file, sizes, &m->languages, err));
    m->info.languages = &m->languages;
    DGM_TRY(own_prefix(m, DGM_SOURCE, source, err));
    DGM_TRY(own_prefix(m, DGM_TARGET, target, err));
    const dgm_languages *l = &m->languages;
    int direction[2] = {l->first[0], l->first[1]};
    for (int s = 0; s < l->count[0] && direction[0] < 0; s++)
        for (int t = 0; t < l->count[1] && direction[0] < 0; t++)
            if (dgm_languages_offers(l, s, t)) direction[0] = s, direction[1] = t;
    if (direction[0] >= 0) dgm_model_direction(m, direction);
    return DGM_OK;
}

void dgm_model_direction(dgm_model *m, const int direction[2])
{
    const dgm_languages *l = &m->languages;
    for (int side = 0; side < 2; side++) {
        if (!m->owned_prefix[side]) continue;
        int count = side == DGM_TARGET ? m->info.target_prefix_count
                                       : m->info.source_prefix_count + m->info.source_suffix_count;
        dgm_languages_tokens(l, (dgm_side)side, direction,
                             m->owned_prefix[side] + count - l->tags[side]);
    }
}

static dgm_status load_common(dgm_model *m, const char *architecture, dgm_error *err)
{
    dgm_vocab_spec source, target;
    DGM_TRY(dgm_modelfile_vocab(m->file, DGM_SOURCE, &source, err));
    DGM_TRY(dgm_modelfile_vocab(m->file, DGM_TARGET, &target, err));
    DGM_TRY(dgm_modelfile_decode(m->file, &m->info.defaults, err));
    dgm_model_info *info = &m->info;
    info->architecture = architecture;
    info->source_vocab = source.size;
    info->target_vocab = target.size;
    info->tokens_per_step = 1;
    info->max_source = info->max_target = INT32_MAX;
    info->source_eos = source.eos;
    info->source_unk = source.unk;
    info->append_eos = source.append_eos;
    info->source_backwards = source.order == DGM_ORDER_R2L;
    info->source_prefix = source.prefix;
    info->source_prefix_count = (int)source.prefix_count;
    info->eos = target.eos;
    info->unk = target.unk;
    info->pad = target.pad;
    info->start = target.start;
    info->start_second = DGM_NO_TOKEN;
    info->mask = DGM_NO_TOKEN;
    info->order = (dgm_order)target.order;
    info->target_prefix = target.prefix;
    info->target_prefix_count = (int)target.prefix_count;
    info->self_normalised = info->defaults.self_normalised;
    DGM_TRY(load_languages(m, &source, &target, err));
    return sorted_never(m, &target, err);
}

// NAME.input_scale of a weight (docs/internals/FORMAT.md, 1.2); 0 if the file has none.
dgm_status dgm_model_input_scale(dgm_model *m, dgm_linear_part *part, dgm_error *err)
{
    char name[DGM_GGUF_MAX_NAME + 16];
    const float *values = NULL;
    snprintf(name, sizeof name, "%s.input_scale", part->weight->name);
    const dgm_tensor *t = dgm_gguf_find_tensor(m->file, name);
    if (!t) return DGM_OK;
    DGM_TRY(dgm_gguf_vector(m->file, name, -1, DGM_REQUIRED, &values, err));
    DGM_FAIL_IF(!(values[0] >= 1e-30f && values[0] < 1e30f), err, DGM_ERR_FORMAT,
                "tensor '%s' does not begin with a positive scale", name);
    part->input_scale = values[0];
    m->info.scaled = true;
    return DGM_OK;
}

// NAME.packed of a layer that begins with this part, where the file has one.
static dgm_status find_packed(dgm_model *m, dgm_linear_part *first, dgm_error *err)
{
    char name[DGM_GGUF_MAX_NAME + 16];
    DGM_TRY(dgm_gguf_get_string(m->file, DGM_PACKED_LAYOUT, DGM_OPTIONAL, &first->layout, err));
    if (!first->layout) return DGM_OK;
    snprintf(name, sizeof name, "%s" DGM_PACKED, first->weight->name);
    const dgm_tensor *t = dgm_gguf_find_tensor(m->file, name);
    if (t && dgm_rewrite_is_packed(t)) first->packed = t;
    return DGM_OK;
}

dgm_status dgm_model_linear(dgm_model *m, dgm_linear_part *parts, int count, dgm_linear **out,
                            dgm_error *err)
{
    for (int i = 0; i < count; i++) DGM_TRY(dgm_model_input_scale(m, &parts[i], err));
    DGM_TRY(find_packed(m, &parts[0], err));
    DGM_TRY(dgm_linear_load(m->backend, parts, count, m->precision, out, err));
    m->info.packed_bytes += dgm_linear_bytes(*out);
    if (m->watch) DGM_TRY(m->watch(m->cookie, parts, count, err));
    if (!parts[0].packed) dgm_gguf_forget(m->file);
    for (int i = 0; parts[0].packed && i < count; i++) // the packed layer's own pages are to stay
        dgm_gguf_forget_tensor(m->file, parts[i].weight);
    return DGM_OK;
}

// The output matrix, or the embedding it is tied to.
static dgm_status load_output(dgm_model *m, dgm_error *err)
{
    static const char *const names[] = {"out.weight", "tgt.embed", "src.embed"};
    dgm_linear_part part = {0};
    for (int i = 0; i < 3 && !part.weight; i++)
        DGM_TRY(dgm_gguf_matrix(m->file, names[i], m->info.target_vocab, m->info.hidden,
                                i == 2 ? DGM_REQUIRED : DGM_OPTIONAL, &part.weight, err));
    DGM_TRY(
        dgm_gguf_vector(m->file, "out.bias", m->info.target_vocab, DGM_OPTIONAL, &part.bias, err));
    return dgm_model_linear(m, &part, 1, &m->out, err);
}

dgm_status dgm_model_align(dgm_model *m, int layer, int head, dgm_error *err)
{
    dgm_model_info *info = &m->info;
    int from_start = layer < 0 ? layer + info->layers : layer;
    DGM_FAIL_IF(from_start < 0 || from_start >= info->layers, err, DGM_ERR_ARGUMENT,
                "the alignment layer is %d, but the decoder has %d layers", layer, info->layers);
    DGM_FAIL_IF(head < -1 || head >= info->heads, err, DGM_ERR_ARGUMENT,
                "the alignment head is %d, but the decoder has %d heads", head, info->heads);
    info->align_layer = from_start;
    info->align_head = head;
    return DGM_OK;
}

dgm_status dgm_model_tune(dgm_model *m, const dgm_tuning *t, dgm_error *err)
{
    DGM_FAIL_IF(t->precompute < 0, err, DGM_ERR_ARGUMENT,
                "the number of pre-computed words must not be negative, but is %d", t->precompute);
    return m->ops->tune ? m->ops->tune(m, t, err) : DGM_OK;
}

static void count_parameters(dgm_model *m)
{
    for (int i = 0; i < dgm_gguf_tensor_count(m->file); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(m->file, i);
        size_t n = strlen(t->name);
        bool scale = (n > 6 && strcmp(t->name + n - 6, ".scale") == 0) ||
                     (n > 12 && strcmp(t->name + n - 12, ".input_scale") == 0);
        if (!scale) m->info.parameters += (uint64_t)t->rows * (uint64_t)t->cols;
    }
}

static dgm_status load_parts(dgm_model *m, const dgm_architecture *a, dgm_error *err)
{
    DGM_TRY(load_common(m, a->name, err));
    DGM_TRY(a->load(m, err));
    DGM_TRY(load_output(m, err));
    count_parameters(m);
    m->info.recurrent = m->ops->tune != NULL;
    dgm_decode_spec *d = &m->info.defaults;
    if (d->max_source > m->info.max_source) d->max_source = m->info.max_source;
    const int64_t longest = ((int64_t)m->info.max_target - 1) * m->info.tokens_per_step;
    if (d->max_length > longest) d->max_length = (int)longest;
    dgm_status st = dgm_model_align(m, d->align_layer, d->align_head, err);
    return st == DGM_OK ? DGM_OK : DGM_ERR_FORMAT;
}

static dgm_status load_watched(dgm_model **out, dgm_backend *b, const dgm_gguf *file, dgm_precision precision,
                               dgm_layer_watch watch, void *cookie, dgm_error *err)
{
    *out = NULL;
    DGM_TRY(dgm_backend_supports(b, precision, err));
    DGM_TRY(dgm_modelfile_check(file, err));
    const char *name = dgm_modelfile_architecture(file);
    const dgm_architecture *a = dgm_model_table;
    while (a->name && strcmp(a->name, name) != 0) a++;
    DGM_FAIL_IF(!a->name, err, DGM_ERR_UNSUPPORTED, "this program does not know the architecture '%s'",
                name);
    dgm_model *m = dgm_calloc(1, sizeof *m);
    if (!m) return dgm_no_memory(err);
    m->ops = a->ops;
    m->backend = b;
    m->file = file;
    m->precision = precision;
    m->watch = watch;
    m->cookie = cookie;
    dgm_status st = load_parts(m, a, err);
    if (st != DGM_OK) {
        dgm_model_free(&m);
        return st;
    }
    *out = m;
    return DGM_OK;
}

dgm_status dgm_model_load(dgm_model **out, dgm_backend *b, const dgm_gguf *file, dgm_precision precision,
                          dgm_error *err)
{
    return load_watched(out, b, file, precision, NULL, NULL, err);
}

dgm_status dgm_model_layers(dgm_backend *b, const dgm_gguf *file, dgm_precision precision, dgm_layer_watch watch,
                            void *cookie, dgm_error *err)
{
    dgm_model *m = NULL;
    const dgm_status st = load_watched(&m, b, file, precision, watch, cookie, err);
    dgm_model_free(&m);
    return st;
}

void dgm_model_free(dgm_model **model)
{
    dgm_model *m = *model;
    if (!m) return;
    m->ops->unload(m);
    dgm_linear_free(m->backend, &m->out);
    dgm_free(m->owned_never);
    dgm_free(m->owned_prefix[0]);
    dgm_free(m->owned_prefix[1]);
    dgm_languages_free(&m->languages);
    dgm_free(m);
    *model = NULL;
}

const dgm_model_info *dgm_model_describe(const dgm_model *m)
{
    return &m->info;
}

void dgm_model_experts(const dgm_model *m, dgm_experts_use *out)
{
    memset(out, 0, sizeof *out);
    if (m->ops->experts) m->ops->experts(m, out);
}

const dgm_linear *dgm_model_output(const dgm_model *m)
{
    return m->out;
}

dgm_status dgm_model_output_by_rows(dgm_model *m, dgm_error *err)
{
    const size_t before = dgm_linear_bytes(m->out);
    DGM_TRY(dgm_linear_by_rows(m->backend, m->out, err));
    m->info.packed_bytes += dgm_linear_bytes(m->out) - before;
    return DGM_OK;
}

// ---- state ------------------------------------------------------------------------------------

enum { GENERATIONS = 3 };

int dgm_state_rows(const dgm_model *m, const dgm_limits *l)
{
    int64_t rows = (int64_t)l->rows *
                   (m->keep_ancestors ? l->target + GENERATIONS + 1 : GENERATIONS);
    if (m->keep_ancestors && l->past > 0 && l->past < rows) rows = l->past;
    rows += l->slots;
    return rows > INT32_MAX / 2 ? INT32_MAX / 2 : (int)rows;
}

dgm_bytes dgm_state_bytes(const dgm_model *m, const dgm_limits *l)
{
    dgm_bytes bytes = m->ops->state_bytes(m, l);
    bytes.host += dgm_arena_cost(sizeof(dgm_state)) + dgm_row_pool_bytes(dgm_state_rows(m, l)) +
                  4 * dgm_arena_cost((size_t)l->slots * sizeof(int32_t));
    return bytes;
}

dgm_status dgm_state_open(const dgm_model *m, dgm_exec *x, const dgm_limits *limits,
                          dgm_state **out, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(limits->slots < 1 || limits->rows < 1 || limits->source < 1 || limits->target < 1,
                err, DGM_ERR_ARGUMENT, "a worker needs at least one slot, row and position");
    DGM_FAIL_IF(limits->source > m->info.max_source, err, DGM_ERR_ARGUMENT,
                "the model takes at most %d source tokens", m->info.max_source);
    DGM_FAIL_IF(limits->sources && limits->sources < limits->source, err, DGM_ERR_ARGUMENT,
                "room for %d source tokens is too little for a sentence of %d", limits->sources,
                limits->source);
    dgm_arena *a = dgm_exec_host(x);
    dgm_state *s = dgm_arena_alloc(a, sizeof *s);
    DGM_FAIL_IF(!s, err, DGM_ERR_MEMORY, "the worker's memory is too small");
    memset(s, 0, sizeof *s);
    s->model = m;
    s->exec = x;
    s->limits = *limits;
    s->step_rows = dgm_state_rows(m, limits);
    s->slot_length = DGM_ARENA_ARRAY(a, int32_t, (size_t)limits->slots);
    s->slot_first = DGM_ARENA_ARRAY(a, int32_t, (size_t)limits->slots);
    s->slot_order = DGM_ARENA_ARRAY(a, int32_t, (size_t)limits->slots);
    s->new_slots = DGM_ARENA_ARRAY(a, int32_t, (size_t)limits->slots);
    DGM_FAIL_IF(!s->slot_length || !s->slot_first || !s->slot_order || !s->new_slots, err,
                DGM_ERR_MEMORY, "the worker's memory is too small");
    DGM_TRY(dgm_row_pool_open(&s->rows, a, s->step_rows, m->keep_ancestors, err));
    DGM_TRY(m->ops->state_open(s, err));
    dgm_state_clear(s);
    *out = s;
    return DGM_OK;
}

// The memory goes back with the worker's arena.
void dgm_state_close(dgm_state **s)
{
    *s = NULL;
}

void dgm_state_clear(dgm_state *s)
{
    memset(s->slot_length, 0, (size_t)s->limits.slots * sizeof(int32_t));
    s->slot_used = s->slot_packed = 0;
    s->slot_lowest = 0;
    dgm_row_pool_clear(&s->rows);
}

int dgm_state_free_rows(const dgm_state *s)
{
    return s->rows.free_count;
}

// Embeddings are gathered by id without a look at it: what reaches the model is checked here, once.
static dgm_status check_source(const dgm_state *s, const dgm_source *source, dgm_error *err)
{
    DGM_FAIL_IF(source->count < 1 || source->count > s->limits.source, err, DGM_ERR_ARGUMENT,
                "a source of %d tokens does not fit the limit of %d", source->count,
                s->limits.source);
    const int size = s->model->info.source_vocab;
    for (int i = 0; i < source->count; i++)
        DGM_FAIL_IF(source->ids[i] < 0 || source->ids[i] >= size, err, DGM_ERR_ARGUMENT,
                    "source token %d is not one of the vocabulary's %d", (int)source->ids[i], size);
    return DGM_OK;
}

static dgm_status check_step(const dgm_state *s, const dgm_step_row *step, dgm_error *err)
{
    const dgm_model_info *info = &s->model->info;
    DGM_FAIL_IF(step->parent < 0 || step->parent >= s->rows.capacity, err, DGM_ERR_ARGUMENT,
                "there is no row %d", (int)step->parent);
    const int position = s->rows.nodes[step->parent].position;
    DGM_FAIL_IF(position >= info->max_target, err, DGM_ERR_ARGUMENT, "the model has no position %d",
                position);
    for (int t = 0; t < info->tokens_per_step; t++) {
        const int32_t id = step->token[t];
        const bool start = id == DGM_NO_TOKEN && position == 0;
        DGM_FAIL_IF(!start && (id < 0 || id >= info->target_vocab), err, DGM_ERR_ARGUMENT,
                    "target token %d is not one of the vocabulary's %d", (int)id,
                    info->target_vocab);
    }
    return DGM_OK;
}

dgm_status dgm_encode(dgm_state *s, int count, const dgm_source *sources, int32_t *slots,
                      dgm_error *err)
{
    for (int i = 0; i < count; i++) DGM_TRY(check_source(s, &sources[i], err));
    for (int i = 0; i < count; i++) {
        slots[i] = dgm_slot_take(s, sources[i].count);
        if (slots[i] >= 0) continue;
        dgm_release(s, i, slots);
        return dgm_fail(err, DGM_ERR_ARGUMENT, "no free slot for %d sentences", count);
    }
    dgm_exec_phase(s->exec, DGM_PHASE_ENCODE);
    if (count > 0) s->model->ops->encode(s, count, sources, slots);
    return dgm_exec_status(s->exec, err);
}

int dgm_encode_capacity(const dgm_limits *l, int most, int more)
{
    const int64_t all = dgm_state_sources(l) + (int64_t)l->slots * more;
    const int one = l->source + more, fit = all < most ? (int)all : most;
    return one > fit ? one : fit;
}

void dgm_encode_in_chunks(dgm_state *s, int count, const dgm_source *sources, const int32_t *slots,
                          const dgm_encode_chunks *how)
{
    for (int begin = 0, end; begin < count; begin = end) {
        int tokens = 0;
        for (end = begin; end < count; end++) {
            const int next = tokens + sources[end].count + how->more;
            if (end > begin && next > how->most) break;
            tokens = next;
        }
        how->encode(s, end - begin, sources + begin, slots + begin, tokens);
    }
}

void dgm_release(dgm_state *s, int count, const int32_t *slots)
{
    for (int i = 0; i < count; i++) dgm_slot_free(s, slots[i]);
}

dgm_status dgm_start(dgm_state *s, int count, const int32_t *slots, int32_t *rows, dgm_error *err)
{
    for (int i = 0; i < count; i++) {
        rows[i] = dgm_row_pool_take(&s->rows, -1, slots[i]);
        DGM_FAIL_IF(rows[i] < 0, err, DGM_ERR_MEMORY, "the row pool is full");
    }
    if (s->model->ops->start) s->model->ops->start(s, count, slots, rows);
    return dgm_exec_status(s->exec, err);
}

dgm_status dgm_step(dgm_state *s, int count, const dgm_step_row *steps, dgm_step_result *out,
                    dgm_error *err)
{
    DGM_FAIL_IF(!s->model->ops->step, err, DGM_ERR_UNSUPPORTED,
                "a %s fills in whole sentences, it makes no steps", s->model->info.architecture);
    DGM_FAIL_IF(count > s->limits.rows, err, DGM_ERR_ARGUMENT, "%d rows in a step, %d allowed",
                count, s->limits.rows);
    for (int i = 0; i < count; i++) DGM_TRY(check_step(s, &steps[i], err));
    for (int i = 0; i < count; i++) {
        const int slot = s->rows.nodes[steps[i].parent].slot;
        out->rows[i] = dgm_row_pool_take(&s->rows, steps[i].parent, slot);
        DGM_FAIL_IF(out->rows[i] < 0, err, DGM_ERR_MEMORY, "the row pool is full");
    }
    dgm_exec_phase(s->exec, DGM_PHASE_STEP);
    if (count > 0) s->model->ops->step(s, count, steps, out->rows, &out->hidden, out->align);
    dgm_exec_start(s->exec, count * s->model->info.tokens_per_step);
    return dgm_exec_status(s->exec, err);
}

dgm_align_list dgm_model_alignment(const dgm_state *s, int n, float *const *wanted)
{
    dgm_align_list align = {.head = s->model->info.align_head};
    if (!wanted) return align;
    dgm_arena *a = dgm_exec_host(s->exec);
    int32_t *row = DGM_ARENA_ARRAY(a, int32_t, (size_t)n);
    float **to = DGM_ARENA_ARRAY(a, float *, (size_t)n);
    for (int i = 0; i < n; i++) {
        if (!wanted[i]) continue;
        row[align.count] = i;
        to[align.count++] = wanted[i];
    }
    align.row = row;
    align.to = to;
    return align;
}

void dgm_lengths(dgm_state *s, int count, dgm_length_query *queries, int most)
{
    for (int i = 0; i < count; i++) queries[i].found = 0;
    if (count > 0 && s->model->ops->lengths) s->model->ops->lengths(s, count, queries, most);
}

static dgm_status check_target(const dgm_state *s, const dgm_refine_target *t, dgm_error *err)
{
    const int size = s->model->info.target_vocab;
    DGM_FAIL_IF(t->slot < 0 || t->slot >= s->limits.slots || s->slot_length[t->slot] == 0, err,
                DGM_ERR_ARGUMENT, "there is no sentence in slot %d", (int)t->slot);
    DGM_FAIL_IF(t->count < 1 || t->count > s->limits.target, err, DGM_ERR_ARGUMENT,
                "a target of %d tokens does not fit the limit of %d", t->count, s->limits.target);
    for (int i = 0; i < t->count; i++)
        DGM_FAIL_IF(t->ids[i] < 0 || t->ids[i] >= size, err, DGM_ERR_ARGUMENT,
                    "target token %d is not one of the vocabulary's %d", (int)t->ids[i], size);
    for (int i = 0; i < t->wanted_count; i++)
        DGM_FAIL_IF(t->wanted[i] < (i ? t->wanted[i - 1] + 1 : 0) || t->wanted[i] >= t->count, err,
                    DGM_ERR_ARGUMENT, "position %d is not wanted in its turn", (int)t->wanted[i]);
    return DGM_OK;
}

dgm_status dgm_refine(dgm_state *s, int count, const dgm_refine_target *targets, dgm_mat *hidden,
                      dgm_error *err)
{
    DGM_FAIL_IF(!s->model->ops->refine, err, DGM_ERR_UNSUPPORTED,
                "a %s makes steps, it does not fill in whole sentences", s->model->info.architecture);
    int64_t tokens = 0;
    for (int i = 0; i < count; i++) {
        DGM_TRY(check_target(s, &targets[i], err));
        tokens += targets[i].count;
    }
    DGM_FAIL_IF(tokens > s->limits.rows, err, DGM_ERR_ARGUMENT,
                "targets of %lld tokens together, %d allowed", (long long)tokens, s->limits.rows);
    dgm_exec_phase(s->exec, DGM_PHASE_STEP);
    if (count > 0) s->model->ops->refine(s, count, targets, hidden);
    return dgm_exec_status(s->exec, err);
}

void dgm_retain(dgm_state *s, int count, const int32_t *rows)
{
    dgm_row_pool_retain(&s->rows, count, rows);
}

int dgm_row_slot(const dgm_state *s, int32_t row)
{
    return s->rows.nodes[row].slot;
}

int dgm_slot_length(const dgm_state *s, int32_t slot)
{
    return s->slot_length[slot];
}

const dgm_model *dgm_state_model(const dgm_state *s)
{
    return s->model;
}

void dgm_state_counts(const dgm_state *s, dgm_model_counts *out)
{
    memset(out, 0, sizeof *out);
    if (s->model->ops->counts) s->model->ops->counts(s, out);
}

void dgm_model_counts_add(dgm_model_counts *to, const dgm_model_counts *n)
{
    to->rows += n->rows;
    to->distinct += n->distinct;
    to->state_rows += n->state_rows;
    to->state_products += n->state_products;
    to->source_words += n->source_words;
    to->source_found += n->source_found;
    to->target_words += n->target_words;
    to->target_found += n->target_found;
    to->context_products += n->context_products;
    to->activations += n->activations;
}

const dgm_limits *dgm_state_limits(const dgm_state *s)
{
    return &s->limits;
}
