// SPDX-License-Identifier: MIT
// A translator: loads one model or an ensemble, its vocabularies and settings, and starts workers.
//
// Everything is in place before dgm_open returns: weights packed, worker memory reserved, threads
// waiting. Half-built translators are closed by the same function as whole ones.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/engine_private.h"
#include "format/modelfile.h"
#include "model/range.h"

// First element of a string array of the file, or "".
static void first_string(const dgm_gguf *file, const char *key, char *out, size_t size)
{
    dgm_gguf_strings it = {0};
    dgm_gguf_text s = {0};
    out[0] = 0;
    if (dgm_gguf_get_strings(file, key, DGM_OPTIONAL, &it, NULL) != DGM_OK) return;
    if (!dgm_gguf_strings_next(&it, &s)) return;
    snprintf(out, size, "%.*s", (int)(s.size < size ? s.size : size - 1), s.data);
}

dgm_status dgm_precision_choose(const dgm_gguf *file, int asked, dgm_precision *out, dgm_error *err)
{
    dgm_decode_spec spec;
    DGM_TRY(dgm_modelfile_decode(file, &spec, err));
    int chosen = asked >= 0 ? asked : spec.precision;
    *out = chosen >= 0 ? (dgm_precision)chosen : DGM_PRECISION_I8;
    return DGM_OK;
}

static dgm_status open_member(dgm_translator *t, int index, const dgm_member *member,
                              dgm_error *err)
{
    char *path = NULL;
    DGM_TRY(dgm_model_file(member->path, &path, err));
    t->members[index].weight = member->weight;
    const dgm_status st = dgm_modelfile_open(&t->members[index].file, path, err);
    dgm_free(path);
    return st;
}

// The caller's bytes, or a copy that lies as a mapped file does.
static dgm_status open_buffer(dgm_loaded *m, const void *data, size_t size, dgm_error *err)
{
    enum { ALIGNMENT = 64 }; // what a mapped file has, and kernels may count on
    DGM_FAIL_IF(!data, err, DGM_ERR_ARGUMENT, "there is no model: NULL");
    if ((uintptr_t)data % ALIGNMENT) {
        m->copy = dgm_malloc(size ? size : 1);
        if (!m->copy) return dgm_no_memory(err);
        memcpy(m->copy, data, size);
        data = m->copy;
    }
    dgm_status st = dgm_gguf_open_memory(&m->file, data, size, err);
    if (st == DGM_OK) st = dgm_modelfile_check(m->file, err);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "the model in memory");
    return st;
}

// Largest input of a product in f16, found with a few sentences, that leaves room for other ones: halves end
// at 65504.
static const float f16_most = 65504.0f / 4;

// Loads in f16 where the model's numbers fit, else in what holds larger ones. That is seen with sentences that are
// always the same: no text has a say.
static dgm_status load_halves(dgm_translator *t, dgm_loaded *m, dgm_error *err)
{
    static const dgm_precision tries[] = {DGM_PRECISION_F16, DGM_PRECISION_BF16};
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        m->precision = tries[i];
        if (!(dgm_backend_properties(t->backend)->precisions & 1u << m->precision)) continue;
        float largest = INFINITY;
        dgm_status st = dgm_model_load(&m->model, t->backend, m->file, m->precision, err);
        if (st == DGM_OK) st = dgm_model_range(m->model, &largest, err);
        if (st == DGM_OK && largest <= (i ? FLT_MAX : f16_most)) return DGM_OK;
        if (st != DGM_OK && st != DGM_ERR_FORMAT) return st;
        dgm_model_free(&m->model);
        t->info.widened = 1;
    }
    m->precision = DGM_PRECISION_F32;
    return dgm_model_load(&m->model, t->backend, m->file, m->precision, err);
}

// i8 as a device has it that multiplies it as f16.
static dgm_status check_i8(const dgm_translator *t, const dgm_loaded *m, dgm_error *err)
{
    const dgm_backend_props *device = dgm_backend_properties(t->backend);
    float largest = 0;
    if (m->precision != DGM_PRECISION_I8 || !device->i8_as_f16) return DGM_OK;
    DGM_TRY(dgm_model_range(m->model, &largest, err));
    DGM_FAIL_IF(!(largest <= f16_most), err, DGM_ERR_UNSUPPORTED,
                "device %s multiplies i8 as f16, which does not hold the model's numbers: use --precision bf16 or f32",
                device->name);
    return DGM_OK;
}

static dgm_status load_member(dgm_translator *t, int index, int precision, dgm_error *err)
{
    dgm_loaded *m = &t->members[index];
    const char *path = dgm_gguf_path(m->file);
    const dgm_precision usual = dgm_backend_properties(t->backend)->usual;
    dgm_status st = DGM_OK;
    if (t->like) precision = (int)t->like->members[index].precision;
    if (precision < 0 && usual == DGM_PRECISION_F16) {
        st = load_halves(t, m, err);
    } else {
        st = dgm_precision_choose(m->file, precision, &m->precision, err);
        if (st == DGM_OK) st = dgm_model_load(&m->model, t->backend, m->file, m->precision, err);
        if (st == DGM_OK) st = check_i8(t, m, err);
    }
    if (st != DGM_OK && st != DGM_ERR_MEMORY && err && !strstr(err->text, path))
        dgm_error_prefix(err, "%s", path);
    return st;
}

// Alignments are the first model's.
static dgm_status choose_alignment(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    if (s->align_layer == DGM_ALIGN_MODEL && s->align_head == DGM_ALIGN_MODEL) return DGM_OK;
    const dgm_model_info *info = dgm_model_describe(t->members[0].model);
    return dgm_model_align(
        t->members[0].model, s->align_layer == DGM_ALIGN_MODEL ? info->align_layer : s->align_layer,
        s->align_head == DGM_ALIGN_MODEL ? info->align_head : s->align_head, err);
}

// The ids an encoder reads before and after the text, which the members have in common.
static bool same_framing(const dgm_model_info *a, const dgm_model_info *b)
{
    return a->append_eos == b->append_eos && a->source_backwards == b->source_backwards &&
           a->source_prefix_count == b->source_prefix_count &&
           a->target_prefix_count == b->target_prefix_count &&
           a->source_suffix_count == b->source_suffix_count &&
           (a->source_prefix_count == 0 ||
            memcmp(a->source_prefix, b->source_prefix,
                   (size_t)a->source_prefix_count * sizeof *a->source_prefix) == 0) &&
           (a->target_prefix_count == 0 ||
            memcmp(a->target_prefix, b->target_prefix,
                   (size_t)a->target_prefix_count * sizeof *a->target_prefix) == 0);
}

// Member `index` against the vocabularies of the first.
static dgm_status check_member(dgm_translator *t, int index, dgm_error *err)
{
    const dgm_gguf *file = t->members[index].file;
    dgm_vocab *source = NULL, *target = NULL;
    bool shared = false;
    dgm_status st = dgm_vocabulary_load(file, DGM_SOURCE, &source, NULL, err);
    if (st == DGM_OK) st = dgm_vocabulary_load(file, DGM_TARGET, &target, &shared, err);
    if (st == DGM_OK) st = dgm_vocabulary_same(t->source, source, "source", err);
    if (st == DGM_OK) st = dgm_vocabulary_same(t->target, shared ? source : target, "target", err);
    if (st == DGM_OK && !same_framing(dgm_model_describe(t->members[0].model),
                                      dgm_model_describe(t->members[index].model)))
        st = dgm_fail(err, DGM_ERR_UNSUPPORTED,
                      "it puts other tokens around a sentence than the first model");
    dgm_vocab_close(&target);
    dgm_vocab_close(&source);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "%s", dgm_gguf_path(file));
    return st;
}

// The vocabularies take about as long to build as small weights to pack: a thread of their own does
// it meanwhile. Fills t->source, target and shared_vocab.
typedef struct vocabulary_load {
    dgm_translator *t;
    pthread_t thread;
    bool running;
    dgm_status status;
    dgm_error error;
} vocabulary_load;

static void *vocabulary_main(void *arg)
{
    vocabulary_load *v = arg;
    dgm_translator *t = v->t;
    const dgm_gguf *file = t->members[0].file;
    dgm_status st = dgm_vocabulary_load(file, DGM_SOURCE, &t->source, NULL, &v->error);
    if (st == DGM_OK)
        st = dgm_vocabulary_load(file, DGM_TARGET, &t->target, &t->shared_vocab, &v->error);
    if (st != DGM_OK && st != DGM_ERR_MEMORY)
        dgm_error_prefix(&v->error, "%s", dgm_gguf_path(file));
    if (st == DGM_OK && t->shared_vocab) t->target = t->source;
    v->status = st;
    return NULL;
}

static dgm_status join_vocabularies(vocabulary_load *v, dgm_error *err)
{
    if (v->running)
        pthread_join(v->thread, NULL);
    else
        vocabulary_main(v); // no thread could be had
    if (v->status != DGM_OK && err) *err = v->error;
    return v->status;
}

static dgm_status check_vocabularies(dgm_translator *t, dgm_error *err)
{
    const dgm_model_info *m = dgm_model_describe(t->members[0].model);
    DGM_FAIL_IF(dgm_vocab_size(t->source) != m->source_vocab ||
                    dgm_vocab_size(t->target) != m->target_vocab,
                err, DGM_ERR_FORMAT, "%s: the vocabularies do not fit the weights",
                dgm_gguf_path(t->members[0].file));
    for (int i = 1; i < t->member_count; i++) DGM_TRY(check_member(t, i, err));
    return DGM_OK;
}

// Weights and vocabularies of the opened files, at the same time.
static dgm_status load_all(dgm_translator *t, int precision, dgm_error *err)
{
    vocabulary_load v = {.t = t};
    dgm_status st = DGM_OK;
    v.running = pthread_create(&v.thread, NULL, vocabulary_main, &v) == 0;
    for (int i = 0; i < t->member_count && st == DGM_OK; i++)
        st = load_member(t, i, precision, err);
    dgm_status words = join_vocabularies(&v, st == DGM_OK ? err : NULL);
    return st == DGM_OK ? words : st;
}

// Weights: all 0 = equal; scaled to sum 1.
static dgm_status scale_weights(dgm_translator *t, dgm_error *err)
{
    double sum = 0;
    int zeros = 0;
    for (int i = 0; i < t->member_count; i++) {
        float w = t->members[i].weight;
        DGM_FAIL_IF(!(w >= 0 && w <= 1e6f), err, DGM_ERR_ARGUMENT,
                    "the weight of a model must be positive, not %g", (double)w);
        zeros += w == 0;
        sum += w;
    }
    DGM_FAIL_IF(zeros > 0 && zeros < t->member_count, err, DGM_ERR_ARGUMENT,
                "give a weight to every model of an ensemble or to none");
    for (int i = 0; i < t->member_count; i++)
        t->members[i].weight =
            zeros ? 1.0f / (float)t->member_count : (float)((double)t->members[i].weight / sum);
    return DGM_OK;
}

static void describe(dgm_translator *t)
{
    const dgm_gguf *file = t->members[0].file;
    dgm_translator_info *i = &t->info;
    i->size = sizeof *i;
    i->name = "";
    if (dgm_gguf_get_string(file, "general.name", DGM_OPTIONAL, &i->name, NULL) != DGM_OK)
        i->name = "";
    i->architecture = dgm_model_describe(t->members[0].model)->architecture;
    first_string(file, "dragoman.languages.source", t->source_code, sizeof t->source_code);
    first_string(file, "dragoman.languages.target", t->target_code, sizeof t->target_code);
    i->source_language = t->source_code;
    i->target_language = t->target_code;
    dgm_backend_describe(t->backend, t->device, sizeof t->device);
    i->device = t->device;
    i->kernels = dgm_backend_variants(t->backend, t->kernels, sizeof t->kernels);
    for (int k = 0; k < t->member_count; k++) {
        const dgm_model_info *m = dgm_model_describe(t->members[k].model);
        i->parameters += m->parameters;
        i->packed_bytes += m->packed_bytes;
    }
}

// Bytes of the weights in the precision that they will have on a device.
static uint64_t weight_bytes(const dgm_translator *t, int precision)
{
    static const uint64_t sizes[DGM_PRECISION_COUNT] = {4, 2, 1, 2, 2};
    uint64_t bytes = 0;
    for (int k = 0; k < t->member_count; k++) {
        const dgm_gguf *file = t->members[k].file;
        dgm_precision p = DGM_PRECISION_F32; // of a file that cannot be loaded either
        if (dgm_precision_choose(file, precision, &p, NULL) != DGM_OK) p = DGM_PRECISION_F32;
        for (int i = 0; i < dgm_gguf_tensor_count(file); i++) {
            const dgm_tensor *w = dgm_gguf_tensor(file, i);
            bytes += (uint64_t)w->rows * (uint64_t)w->cols * sizes[p];
        }
    }
    return bytes;
}

// auto asks for half as much again as the weights take, for the workers.
static dgm_status open_device(dgm_translator *t, const dgm_settings *s, int precision,
                              dgm_error *err)
{
    return dgm_device_open(&t->backend, s->device, s->cpu, weight_bytes(t, precision) / 2 * 3, err);
}

// Behind a device's message that weights do not fit: what all of them take in the precisions that it has.
static void say_sizes(const dgm_translator *t, dgm_error *err)
{
    static const dgm_precision list[] = {DGM_PRECISION_F32, DGM_PRECISION_F16, DGM_PRECISION_I8};
    const dgm_backend_props *device = dgm_backend_properties(t->backend);
    const char *before = " (all of them: about";
    size_t used = strlen(err->text);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        const bool as_f16 = list[i] == DGM_PRECISION_I8 && device->i8_as_f16;
        const uint64_t bytes = weight_bytes(t, (int)(as_f16 ? DGM_PRECISION_F16 : list[i]));
        const int n = snprintf(err->text + used, sizeof err->text - used, "%s %.1f MiB in %s", before,
                               (double)bytes / 1048576, dgm_precision_names[list[i]]);
        used = used + (size_t)n < sizeof err->text ? used + (size_t)n : sizeof err->text - 1;
        before = ",";
    }
    snprintf(err->text + used, sizeof err->text - used, ")");
}

static dgm_status load_weights(dgm_translator *t, int precision, dgm_error *err)
{
    const dgm_status st = load_all(t, precision, err);
    if (st == DGM_ERR_MEMORY && err && strstr(err->text, ": use a smaller precision")) say_sizes(t, err);
    return st;
}

// The models of a translator: files, or one in memory.
typedef struct dgm_origin {
    const dgm_member *members;
    size_t count;
    bool memory;
    const void *data;
    size_t size;
    const dgm_translator *lender; // loaded already; NULL: they are not
} dgm_origin;

static dgm_status open_files(dgm_translator *t, const dgm_origin *from, dgm_error *err)
{
    t->member_count = 1;
    if (from->memory) return open_buffer(&t->members[0], from->data, from->size, err);
    for (size_t i = 0; i < from->count; i++) {
        t->member_count = (int)i + 1;
        DGM_TRY(open_member(t, (int)i, &from->members[i], err));
    }
    return DGM_OK;
}

// What another translator has loaded, and what it chose then.
static dgm_status borrow_weights(dgm_translator *t, const dgm_translator *lender, const dgm_settings *settings,
                                 dgm_error *err)
{
    atomic_fetch_add(lender->holders, 1);
    t->holders = lender->holders;
    t->backend = lender->backend;
    memcpy(t->members, lender->members, sizeof t->members);
    t->member_count = lender->member_count;
    t->source = lender->source;
    t->target = lender->target;
    t->shared_vocab = lender->shared_vocab;
    t->activations = lender->activations;
    t->merging = lender->merging;
    t->info.widened = lender->info.widened;
    describe(t);
    memcpy(t->source_code, lender->source_code, sizeof t->source_code);
    memcpy(t->target_code, lender->target_code, sizeof t->target_code);
    memcpy(t->direction, lender->direction, sizeof t->direction);
    t->every_direction = lender->every_direction;
    t->source_language = lender->source_language;
    t->lender = lender;
    const dgm_status st = dgm_settings_resolve(t, settings, err);
    t->lender = NULL;
    return st;
}

// Everything but the workers.
static dgm_status open_place(dgm_translator *t, const dgm_origin *from, const dgm_settings *settings,
                             int precision, dgm_error *err)
{
    if (from->lender) return borrow_weights(t, from->lender, settings, err);
    t->holders = dgm_calloc(1, sizeof *t->holders);
    if (!t->holders) return dgm_no_memory(err);
    atomic_init(t->holders, 1);
    DGM_TRY(open_files(t, from, err));
    DGM_TRY(dgm_direction_ensemble(t, err));
    DGM_TRY(open_device(t, settings, precision, err));
    dgm_backend_static(t->backend, settings->static_scales > 0 || dgm_stored_scales(t->members[0].file, settings));
    dgm_optimisations_device(t, settings);
    DGM_TRY(load_weights(t, precision, err));
    DGM_TRY(choose_alignment(t, settings, err));
    DGM_TRY(dgm_optimisations_tune(t, settings, err));
    DGM_TRY(scale_weights(t, err));
    DGM_TRY(check_vocabularies(t, err));
    describe(t);
    DGM_TRY(dgm_direction_resolve(t, settings, err));
    t->source_language = dgm_language_of(dgm_text_of(t->source_code));
    return dgm_settings_resolve(t, settings, err);
}

// The names in a list with commas between them; a name alone is one.
typedef struct device_list {
    char names[DGM_DEVICES_MAX][DGM_DEVICE_NAME];
    int count;
} device_list;

static dgm_status split_devices(const char *text, device_list *out, dgm_error *err)
{
    out->count = 0;
    for (const char *p = text ? text : "";; p++) {
        const size_t n = strcspn(p, ",");
        DGM_FAIL_IF(out->count == DGM_DEVICES_MAX, err, DGM_ERR_ARGUMENT,
                    "device '%s': there may be at most %d of them", text, DGM_DEVICES_MAX);
        DGM_FAIL_IF(n >= DGM_DEVICE_NAME || (n == 0 && (out->count > 0 || *p)), err, DGM_ERR_ARGUMENT,
                    "device '%s' is no list of names with commas between them", text);
        snprintf(out->names[out->count++], DGM_DEVICE_NAME, "%.*s", (int)n, p);
        p += n;
        if (!*p) return DGM_OK;
    }
}

const dgm_translator *dgm_home(const dgm_translator *t, int worker)
{
    const int place = worker % t->devices;
    return place == 0 ? t : t->twins[place - 1];
}

// Each device has the budget that its memory allows; the first one's precisions are everybody's.
static dgm_status open_twin(dgm_translator *t, int number, const dgm_origin *from,
                            const dgm_settings *settings, int precision, dgm_error *err)
{
    dgm_translator *twin = t->twins[number] = dgm_calloc(1, sizeof *twin);
    if (!twin) return dgm_no_memory(err);
    twin->config.ranked = t->config.ranked;
    twin->devices = t->devices;
    twin->like = t;
    dgm_origin own = *from;
    if (from->lender) own.lender = from->lender->twins[number];
    DGM_TRY(open_place(twin, &own, settings, precision, err));
    const size_t used = strlen(t->device);
    snprintf(t->device + used, sizeof t->device - used, "; %s", twin->device);
    return DGM_OK;
}

static dgm_status open_members(dgm_translator **out, const dgm_origin *from,
                               const dgm_settings *given, int ranked, dgm_error *err)
{
    DGM_FAIL_IF(!out, err, DGM_ERR_ARGUMENT, "there is no place for the translator: NULL");
    *out = NULL;
    dgm_settings own, *const settings = &own;
    DGM_TRY(dgm_settings_take(given, settings, err));
    DGM_FAIL_IF(from->count < 1 || from->count > DGM_PARTS_MAX, err, DGM_ERR_ARGUMENT,
                "a translator has between 1 and %d models, not %zu", DGM_PARTS_MAX, from->count);
    DGM_FAIL_IF(!from->members && !from->memory && !from->lender, err, DGM_ERR_ARGUMENT, "there are no models: NULL");
    int precision = -1;
    device_list devices;
    DGM_TRY(dgm_settings_check(settings, &precision, err));
    DGM_TRY(split_devices(settings->device, &devices, err));
    dgm_translator *t = dgm_calloc(1, sizeof *t);
    if (!t) return dgm_no_memory(err);
    t->config.ranked = ranked;
    t->devices = from->lender ? from->lender->devices : devices.count;
    settings->device = devices.names[0];
    dgm_status st = DGM_OK;
    DGM_TRY_GOTO(st, open_place(t, from, settings, precision, err), fail);
    settings->threads = t->threads; // of all devices together
    for (int i = 1; i < t->devices; i++) {
        settings->device = devices.names[i];
        DGM_TRY_GOTO(st, open_twin(t, i - 1, from, settings, precision, err), fail);
    }
    DGM_TRY_GOTO(st, dgm_constrain_open(t, settings, err), fail);
    DGM_TRY_GOTO(st, dgm_phrases_resolve(t, settings, err), fail);
    DGM_TRY_GOTO(st, dgm_workers_start(t, err), fail);
    *out = t;
    return DGM_OK;
fail:
    dgm_close(&t);
    return st;
}

dgm_status dgm_open_ensemble(dgm_translator **t, const dgm_member *members, size_t count,
                             const dgm_settings *settings, dgm_error *err)
{
    const dgm_origin from = {.members = members, .count = count};
    return open_members(t, &from, settings, 0, err);
}

dgm_status dgm_open_ranked(dgm_translator **t, const char *path, const dgm_settings *settings,
                           int ranked, dgm_error *err)
{
    const dgm_member member = {path, 0};
    const dgm_origin from = {.members = &member, .count = 1};
    return open_members(t, &from, settings, ranked, err);
}

dgm_status dgm_open_memory(dgm_translator **t, const void *data, size_t size,
                           const dgm_settings *settings, dgm_error *err)
{
    const dgm_origin from = {.count = 1, .memory = true, .data = data, .size = size};
    return open_members(t, &from, settings, 0, err);
}

dgm_status dgm_open_like(dgm_translator **t, const dgm_translator *lender, const dgm_settings *settings,
                         dgm_error *err)
{
    const dgm_origin from = {.count = 1, .lender = lender};
    if (t) *t = NULL;
    DGM_FAIL_IF(!lender, err, DGM_ERR_ARGUMENT, "there is no translator whose weights to use: NULL");
    return open_members(t, &from, settings, 0, err);
}

dgm_status dgm_open(dgm_translator **t, const char *path, const dgm_settings *settings,
                    dgm_error *err)
{
    dgm_member member = {path, 0};
    return dgm_open_ensemble(t, &member, 1, settings, err);
}

static void free_weights(dgm_translator *p)
{
    if (p->holders && atomic_fetch_sub(p->holders, 1) > 1) return;
    dgm_free(p->holders);
    if (!p->shared_vocab) dgm_vocab_close(&p->target);
    dgm_vocab_close(&p->source);
    for (int i = 0; i < p->member_count; i++) {
        dgm_model_free(&p->members[i].model);
        dgm_gguf_close(&p->members[i].file);
        dgm_free(p->members[i].copy);
    }
    dgm_backend_close(&p->backend);
}

void dgm_close(dgm_translator **t)
{
    if (!t || !*t) return;
    dgm_translator *p = *t;
    *t = NULL;
    dgm_workers_stop(p);
    for (int i = 0; i < DGM_DEVICES_MAX - 1; i++) dgm_close(&p->twins[i]);
    dgm_dictionary_close(&p->dictionary);
    dgm_constrain_close(p);
    dgm_restrict_close(p);
    dgm_phrases_drop(p);
    free_weights(p);
    dgm_free(p);
}

const dgm_translator_info *dgm_describe(const dgm_translator *t)
{
    return t ? &t->info : NULL;
}
