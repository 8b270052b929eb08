// SPDX-License-Identifier: MIT
// Which directions there are, with one model and with two; see dragoman/route.h.
#define _GNU_SOURCE
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "dragoman/tools.h"
#include "format/languages.h"

// One way of one model, or of two.
typedef struct way {
    dgm_route_entry pub;
    size_t cost; // directions of its models together: fewer are better
} way;

typedef struct ways {
    dgm_route_list pub;
    way *items;
    size_t cap;
    const dgm_route_entry **list;
    char **owned; // codes and paths
    size_t owned_count, owned_cap;
} ways;

void dgm_routes_free(dgm_route_list **list)
{
    if (!list || !*list) return;
    ways *w = (ways *)(void *)*list; // pub is the first member
    *list = NULL;
    for (size_t i = 0; i < w->owned_count; i++) dgm_free(w->owned[i]);
    dgm_free(w->owned);
    dgm_free(w->items);
    dgm_free((void *)w->list);
    dgm_free(w);
}

static dgm_status keep(ways *w, const char *text, const char **out, dgm_error *err)
{
    for (size_t i = 0; i < w->owned_count; i++)
        if (strcmp(w->owned[i], text) == 0) {
            *out = w->owned[i];
            return DGM_OK;
        }
    DGM_TRY(dgm_grow(&w->owned, &w->owned_cap, w->owned_count + 1, sizeof *w->owned, err));
    char *copy = dgm_strdup(text);
    if (!copy) return dgm_no_memory(err);
    *out = w->owned[w->owned_count++] = copy;
    return DGM_OK;
}

static bool same(const char *a, const char *b)
{
    return dgm_language_matches(a, b) == 2 || dgm_language_matches(b, a) == 2;
}

static way *find(const ways *w, const char *source, const char *target)
{
    for (size_t i = 0; i < w->pub.count; i++)
        if (same(source, w->items[i].pub.source) && same(target, w->items[i].pub.target)) return &w->items[i];
    return NULL;
}

// A way, unless there is one as good for its direction.
static dgm_status add(ways *w, const way *one, dgm_error *err)
{
    way *known = find(w, one->pub.source, one->pub.target);
    if (known && known->cost <= one->cost) return DGM_OK;
    if (!known) {
        DGM_TRY(dgm_grow(&w->items, &w->cap, w->pub.count + 1, sizeof *w->items, err));
        known = &w->items[w->pub.count++];
    }
    *known = *one;
    known->pub.size = sizeof known->pub;
    return DGM_OK;
}

// All directions of a model. Those of what DRAGOMAN_MODEL names cost nothing: they go before all others.
static dgm_status add_model(ways *w, const dgm_model_entry *e, bool named, dgm_error *err)
{
    dgm_gguf *file = NULL;
    dgm_languages l = {0};
    const int vocabulary[2] = {INT_MAX, INT_MAX};
    dgm_status st = dgm_modelfile_open(&file, e->path, err);
    if (st == DGM_OK) st = dgm_languages_read(file, vocabulary, &l, err);
    const size_t directions = st == DGM_OK ? dgm_languages_directions(&l) : 0;
    way one = {.cost = named ? 0 : directions};
    if (st == DGM_OK) st = keep(w, e->path, &one.pub.first, err);
    for (int s = 0; st == DGM_OK && s < l.count[0]; s++)
        for (int t = 0; st == DGM_OK && t < l.count[1]; t++) {
            if (!dgm_languages_offers(&l, s, t)) continue;
            st = keep(w, l.code[0][s], &one.pub.source, err);
            if (st == DGM_OK) st = keep(w, l.code[1][t], &one.pub.target, err);
            if (st == DGM_OK) st = add(w, &one, err);
        }
    dgm_languages_free(&l);
    dgm_gguf_close(&file);
    return st;
}

// Two direct ways, one behind the other. English goes before other languages between.
static dgm_status add_pivots(ways *w, dgm_error *err)
{
    const size_t direct = w->pub.count;
    for (size_t i = 0; i < direct; i++)
        for (size_t k = 0; k < direct; k++) {
            const way a = w->items[i], b = w->items[k];
            if (!same(a.pub.target, b.pub.source) || same(a.pub.source, b.pub.target)) continue;
            const way *known = find(w, a.pub.source, b.pub.target);
            if (known && !known->pub.pivot) continue;
            const way one = {.pub = {.source = a.pub.source,
                                     .target = b.pub.target,
                                     .pivot = a.pub.target,
                                     .first = a.pub.first,
                                     .second = b.pub.first},
                             .cost = 2 * (a.cost + b.cost) + !same(a.pub.target, "en")};
            DGM_TRY(add(w, &one, err));
        }
    return DGM_OK;
}

// Is it the file that DRAGOMAN_MODEL names, or in that folder?
static bool is_named(const dgm_model_entry *e)
{
    const char *name = getenv("DRAGOMAN_MODEL");
    char given[PATH_MAX], own[PATH_MAX];
    if (!name || !name[0] || !realpath(name, given) || !realpath(e->path, own)) return false;
    const size_t n = strlen(given);
    return strncmp(own, given, n) == 0 && (own[n] == 0 || own[n] == '/');
}

// The ways of all models, or of one alone.
static dgm_status collect(ways *w, const dgm_model_list *models, const char *only, dgm_error *err)
{
    const dgm_model_entry one = {.path = only};
    if (only) DGM_TRY(add_model(w, &one, true, err));
    for (size_t i = 0; !only && i < models->count; i++)
        if (!models->items[i]->problem) DGM_TRY(add_model(w, models->items[i], is_named(models->items[i]), err));
    return add_pivots(w, err);
}

static dgm_status publish(ways *w, dgm_error *err)
{
    w->list = dgm_calloc(w->pub.count + 1, sizeof *w->list);
    if (!w->list) return dgm_no_memory(err);
    for (size_t i = 0; i < w->pub.count; i++) w->list[i] = &w->items[i].pub;
    w->pub.size = sizeof w->pub;
    w->pub.items = w->list;
    return DGM_OK;
}

// ---- of options ----------------------------------------------------------------------------------

static bool is_auto(const char *source)
{
    return source && strcmp(source, "auto") == 0;
}

// Where nobody says: what the default model, or the one that was given, translates to.
static const char *usual_target(const ways *w, const dgm_model_list *models)
{
    for (size_t i = 0; models && i < models->count; i++) {
        if (!models->items[i]->is_default) continue;
        for (size_t k = 0; k < w->pub.count; k++)
            if (strcmp(w->items[k].pub.first, models->items[i]->path) == 0) return w->items[k].pub.target;
    }
    return w->pub.count ? w->items[0].pub.target : "";
}

// The ways that a source (NULL: any) and a target mean; of a source that was named the one that fits best, direct ones
// first.
static void choose(ways *w, const char *source, const char *target)
{
    int best = 0;
    size_t kept = 0;
    for (size_t i = 0; i < w->pub.count; i++) {
        const way one = w->items[i];
        const int to = dgm_language_matches(target, one.pub.target);
        const int from = source ? dgm_language_matches(source, one.pub.source) : 1;
        if (!to || !from || (source && to + from <= best)) continue;
        if (source) best = to + from, kept = 0;
        w->items[kept++] = one;
    }
    w->pub.count = kept;
}

static dgm_status no_route(const char *source, const char *target, dgm_error *err)
{
    return dgm_fail(err, DGM_ERR_UNSUPPORTED,
                    "no model translates from %.40s to %.40s, and no two of them do one behind the other; "
                    "'dragoman models' lists what there is",
                    source ? source : "any language", target);
}

static dgm_status plan(ways *w, const dgm_route_options *o, const dgm_model_list *models, dgm_error *err)
{
    const char *source = o && !is_auto(o->source) ? o->source : NULL;
    DGM_TRY(collect(w, models, o ? o->model : NULL, err));
    if (o) {
        const char *target = o->target && o->target[0] ? o->target : usual_target(w, models);
        choose(w, source, target);
        if (w->pub.count == 0) return no_route(source, target, err);
    }
    return publish(w, err);
}

// o NULL: all there are.
static dgm_status make_list(const dgm_route_options *o, dgm_route_list **list, dgm_error *err)
{
    dgm_model_list *models = NULL;
    *list = NULL;
    if (!o || !o->model) DGM_TRY(dgm_models_find(&models, err));
    ways *w = dgm_calloc(1, sizeof *w);
    dgm_status st = w ? plan(w, o, models, err) : dgm_no_memory(err);
    dgm_models_free(&models);
    dgm_route_list *pub = w ? &w->pub : NULL;
    if (st != DGM_OK)
        dgm_routes_free(&pub);
    else
        *list = pub;
    return st;
}

dgm_status dgm_routes_find(dgm_route_list **list, dgm_error *err)
{
    DGM_FAIL_IF(!list, err, DGM_ERR_ARGUMENT, "dgm_routes_find needs where to put a list");
    return make_list(NULL, list, err);
}

dgm_status dgm_route_plan(const dgm_route_options *options, dgm_route_list **list, dgm_error *err)
{
    dgm_route_options o = {0};
    DGM_FAIL_IF(!list, err, DGM_ERR_ARGUMENT, "dgm_route_plan needs where to put a list");
    *list = NULL;
    DGM_TRY(dgm_sized_take(&o, sizeof o, options, "dgm_route_options", "dgm_route_default", err));
    DGM_FAIL_IF(!o.source || !o.source[0], err, DGM_ERR_ARGUMENT, "a route needs a source language, or \"auto\"");
    DGM_FAIL_IF(!is_auto(o.source) && (!o.target || !o.target[0]), err, DGM_ERR_ARGUMENT,
                "a route from %.40s needs a target language", o.source);
    return make_list(&o, list, err);
}

dgm_status dgm_models_languages(const char *target, char **languages, dgm_error *err)
{
    DGM_FAIL_IF(!languages, err, DGM_ERR_ARGUMENT, "dgm_models_languages needs where to put languages");
    *languages = NULL;
    dgm_route_list *routes = NULL;
    DGM_TRY(dgm_routes_find(&routes, err));
    dgm_writer out = {0};
    for (size_t i = 0; i < routes->count; i++) {
        const dgm_route_entry *r = routes->items[i];
        bool known = target && !dgm_language_matches(target, r->target);
        for (size_t k = 0; k < i && !known; k++)
            known = (!target || dgm_language_matches(target, routes->items[k]->target)) &&
                    strcmp(routes->items[k]->source, r->source) == 0;
        if (known) continue;
        if (out.size) dgm_write_text(&out, ",");
        dgm_write_text(&out, r->source);
    }
    dgm_routes_free(&routes);
    *languages = dgm_writer_take(&out, NULL);
    return *languages ? DGM_OK : dgm_no_memory(err);
}
