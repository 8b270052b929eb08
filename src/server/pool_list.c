// SPDX-License-Identifier: MIT
// Languages of a server's models: lists, names, ways from one to another; see model_pool.h.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "format/languages.h"
#include "server/pool_private.h"

typedef struct listing {
    dgm_pool_listing pub;
    atomic_int users;
    dgm_pool_language *items;
    size_t cap;
    char **strings; // all that it points to
    size_t string_count, string_cap;
    const char **models;
} listing;

void dgm_pool_release(const dgm_pool_listing **at)
{
    listing *l = at ? (listing *)(uintptr_t)*at : NULL; // pub is the first member
    if (!l) return;
    *at = NULL;
    if (atomic_fetch_sub(&l->users, 1) > 1) return;
    for (size_t i = 0; i < l->pub.count; i++) dgm_free((void *)(uintptr_t)l->items[i].targets);
    for (size_t i = 0; i < l->string_count; i++) dgm_free(l->strings[i]);
    dgm_free(l->strings);
    dgm_free(l->items);
    dgm_free((void *)(uintptr_t)l->models);
    dgm_free(l);
}

const dgm_pool_listing *dgm_pool_list(dgm_server *server)
{
    dgm_pool_models *p = server->models;
    pthread_mutex_lock(&p->lock);
    listing *l = (listing *)(uintptr_t)p->listing;
    if (l) atomic_fetch_add(&l->users, 1);
    pthread_mutex_unlock(&p->lock);
    return l ? &l->pub : NULL;
}

// ---- making it ------------------------------------------------------------------------------------

static const char *keep(listing *l, const char *text, size_t size)
{
    if (dgm_grow(&l->strings, &l->string_cap, l->string_count + 1, sizeof *l->strings, NULL) != DGM_OK) return NULL;
    char *own = dgm_strndup(text, size);
    if (own) l->strings[l->string_count++] = own;
    return own;
}

// Two codes of one language: "en" and "eng_Latn".
static bool alike(const char *a, const char *b)
{
    return strcmp(a, b) == 0 || (dgm_language_matches(a, b) && dgm_language_matches(b, a));
}

static dgm_pool_language *find(listing *l, const char *code)
{
    for (size_t i = 0; i < l->pub.count; i++)
        if (alike(l->items[i].code, code)) return &l->items[i];
    return NULL;
}

static dgm_status add_language(listing *l, const char *code, bool source, dgm_error *err)
{
    dgm_pool_language *known = find(l, code);
    if (!known) {
        DGM_TRY(dgm_grow(&l->items, &l->cap, l->pub.count + 1, sizeof *l->items, err));
        known = &l->items[l->pub.count];
        size_t size = 0;
        const char *english = dgm_language_english(code, &size);
        *known = (dgm_pool_language){.code = keep(l, code, strlen(code))};
        known->name = english ? keep(l, english, size) : known->code;
        if (!known->code || !known->name) return dgm_no_memory(err);
        l->pub.count++;
    }
    known->source = known->source || source;
    return DGM_OK;
}

static int by_code(const void *a, const void *b)
{
    return strcmp(((const dgm_pool_language *)a)->code, ((const dgm_pool_language *)b)->code);
}

// Does a model translate this directly?
static dgm_pool_model *direct(const dgm_pool_models *p, const char *source, const char *target)
{
    for (size_t i = 0; i < p->count; i++)
        for (size_t d = 0; d < p->items[i]->directions; d++)
            if (alike(p->items[i]->sources[d], source) && alike(p->items[i]->targets[d], target)) return p->items[i];
    return NULL;
}

static bool reachable(const dgm_pool_models *p, const listing *l, const char *source, const char *target)
{
    if (direct(p, source, target)) return true;
    for (size_t i = 0; i < l->pub.count; i++)
        if (direct(p, source, l->items[i].code) && direct(p, l->items[i].code, target)) return true;
    return false;
}

static dgm_status add_targets(const dgm_pool_models *p, listing *l, dgm_error *err)
{
    for (size_t i = 0; i < l->pub.count; i++) {
        dgm_pool_language *from = &l->items[i];
        const char **targets = dgm_calloc(l->pub.count + 1, sizeof *targets);
        if (!targets) return dgm_no_memory(err);
        from->targets = targets;
        // A language into itself is offered, too: LibreTranslate's clients expect it, and it costs nothing.
        for (size_t k = 0; k < l->pub.count; k++)
            if (from->source && (k == i || reachable(p, l, from->code, l->items[k].code)))
                targets[from->target_count++] = l->items[k].code;
    }
    return DGM_OK;
}

static dgm_status fill(dgm_pool_models *p, listing *l, dgm_error *err)
{
    l->models = dgm_calloc(p->count + 1, sizeof *l->models);
    if (!l->models) return dgm_no_memory(err);
    for (size_t i = 0; i < p->count; i++) {
        const dgm_pool_model *m = p->items[i];
        l->models[i] = keep(l, m->name, strlen(m->name));
        if (!l->models[i]) return dgm_no_memory(err);
        for (size_t d = 0; d < m->directions; d++) {
            DGM_TRY(add_language(l, m->sources[d], true, err));
            DGM_TRY(add_language(l, m->targets[d], false, err));
        }
    }
    if (l->pub.count) qsort(l->items, l->pub.count, sizeof *l->items, by_code);
    DGM_TRY(add_targets(p, l, err));
    if (p->count) {
        l->pub.source = find(l, p->items[0]->sources[0])->code;
        l->pub.target = find(l, p->items[0]->targets[0])->code;
    }
    l->pub.items = l->items;
    l->pub.models = l->models;
    l->pub.model_count = p->count;
    return DGM_OK;
}

dgm_status dgm_pool_relist(dgm_pool_models *p, dgm_error *err)
{
    listing *l = dgm_calloc(1, sizeof *l);
    if (!l) return dgm_no_memory(err);
    atomic_store(&l->users, 1);
    const dgm_pool_listing *pub = &l->pub;
    const dgm_status st = fill(p, l, err);
    if (st != DGM_OK) {
        dgm_pool_release(&pub);
        return st;
    }
    dgm_pool_release(&p->listing);
    p->listing = pub;
    return DGM_OK;
}

// ---- asking it ------------------------------------------------------------------------------------

const dgm_pool_language *dgm_pool_find(const dgm_pool_listing *l, const char *name)
{
    // LibreTranslate's own names of models.
    static const char *const other[][2] = {{"pb", "pt-BR"}, {"zt", "zh-Hant"}, {"zh", "zh-Hans"}};
    if (!l || !name || !name[0]) return NULL;
    const dgm_pool_language *best = NULL;
    int most = 0;
    for (size_t i = 0; i < l->count; i++) {
        const int match = dgm_language_matches(name, l->items[i].code);
        if (match > most) {
            most = match;
            best = &l->items[i];
        }
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0] && !best; i++)
        if (strcmp(name, other[i][0]) == 0) return dgm_pool_find(l, other[i][1]);
    return best;
}

bool dgm_pool_offers(const dgm_pool_language *source, const char *target)
{
    for (size_t i = 0; source && i < source->target_count; i++)
        if (strcmp(source->targets[i], target) == 0) return true;
    return false;
}

// ---- ways -----------------------------------------------------------------------------------------

typedef struct step {
    dgm_pool_model *model;
    size_t direction;
    int match; // how well the names fit, the more the better
} step;

// Two names of one model mean it: its file's, and with its folder's path.
static bool is_model(const dgm_pool_model *m, const char *name)
{
    return !name || strcmp(m->name, name) == 0 || strcmp(m->path, name) == 0;
}

// The best direct way, of models with the fewest directions. Names NULL: any language.
static step find_step(const dgm_pool_models *p, const char *model, const char *source, const char *target)
{
    step best = {0};
    for (size_t i = 0; i < p->count; i++) {
        dgm_pool_model *m = p->items[i];
        for (size_t d = 0; is_model(m, model) && d < m->directions; d++) {
            const int from = source ? dgm_language_matches(source, m->sources[d]) : 1;
            const int to = target ? dgm_language_matches(target, m->targets[d]) : 1;
            if (!from || !to) continue;
            const bool better = !best.model || from + to > best.match ||
                                (from + to == best.match && m->directions < best.model->directions);
            if (better) best = (step){m, d, from + to};
        }
    }
    return best;
}

// Two steps, through English if that is possible.
static bool find_two(const dgm_pool_models *p, const char *source, const char *target, step two[2])
{
    bool found = false, english = false;
    for (size_t i = 0; i < p->count && !english; i++) {
        dgm_pool_model *m = p->items[i];
        for (size_t d = 0; d < m->directions && !english; d++) {
            if (!dgm_language_matches(source, m->sources[d])) continue;
            const step second = find_step(p, NULL, m->targets[d], target);
            if (!second.model) continue;
            english = dgm_language_matches("en", m->targets[d]) > 0;
            if (found && !english) continue;
            found = true;
            two[0] = (step){m, d, 1};
            two[1] = second;
        }
    }
    return found;
}

static void name(char out[64], const char *code)
{
    snprintf(out, 64, "%s", code);
}

dgm_status dgm_pool_route(dgm_pool_models *p, const dgm_task_spec *spec, dgm_pool_way *way, dgm_pool_model **first,
                          dgm_pool_model **second, dgm_error *err)
{
    const step one = find_step(p, spec->model, spec->source, spec->target);
    step two[2] = {{0}};
    *second = NULL;
    if (one.model) {
        *first = one.model;
        name(way->source, one.model->sources[one.direction]);
        name(way->target, one.model->targets[one.direction]);
        return DGM_OK;
    }
    DGM_FAIL_IF(spec->model && !find_step(p, spec->model, NULL, NULL).model, err, DGM_ERR_ARGUMENT,
                "there is no model '%.60s' (GET /v1/models lists them)", spec->model);
    DGM_FAIL_IF(spec->model || !spec->source || !spec->target || !find_two(p, spec->source, spec->target, two), err,
                DGM_ERR_UNSUPPORTED, "no model translates from %.40s to %.40s", spec->source ? spec->source : "?",
                spec->target ? spec->target : "?");
    *first = two[0].model;
    *second = two[1].model;
    name(way->source, two[0].model->sources[two[0].direction]);
    name(way->pivot, two[0].model->targets[two[0].direction]);
    name(way->second_source, two[1].model->sources[two[1].direction]);
    name(way->target, two[1].model->targets[two[1].direction]);
    return DGM_OK;
}
