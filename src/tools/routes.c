// SPDX-License-Identifier: MIT
// Which directions there are, with one model and with two; see dragoman/route.h.
#define _GNU_SOURCE
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "format/languages.h"
#include "tools/route_private.h"

// One way of one model, or of two.
typedef struct way {
    dgm_route_entry pub;
    size_t source, target; // numbers of its languages
    size_t cost;           // directions of its models together: fewer are better
} way;

// A model of many languages has ten thousand directions: languages are compared as numbers, and ways found by them.
typedef struct ways {
    dgm_route_list pub;
    way *items;
    size_t cap;
    const dgm_route_entry **list;
    char **codes; // of languages, as the first model that has them writes them
    size_t code_count, code_cap;
    size_t *table; // [stride * stride] 1 + the index of the way from a language to another; 0: there is none
    size_t stride;
    char **paths;
    size_t path_count, path_cap;
} ways;

void dgm_routes_free(dgm_route_list **list)
{
    if (!list || !*list) return;
    ways *w = (ways *)(void *)*list; // pub is the first member
    *list = NULL;
    for (size_t i = 0; i < w->code_count; i++) dgm_free(w->codes[i]);
    for (size_t i = 0; i < w->path_count; i++) dgm_free(w->paths[i]);
    dgm_free(w->codes);
    dgm_free(w->paths);
    dgm_free(w->table);
    dgm_free(w->items);
    dgm_free((void *)w->list);
    dgm_free(w);
}

static dgm_status append(char ***list, size_t *count, size_t *cap, const char *text, dgm_error *err)
{
    DGM_TRY(dgm_grow(list, cap, *count + 1, sizeof **list, err));
    char *copy = dgm_strdup(text);
    if (!copy) return dgm_no_memory(err);
    (*list)[(*count)++] = copy;
    return DGM_OK;
}

// The number of a language, by its code in any spelling.
static dgm_status number_of(ways *w, const char *code, size_t *number, dgm_error *err)
{
    for (*number = 0; *number < w->code_count; ++*number)
        if (dgm_language_matches(code, w->codes[*number]) == 2) return DGM_OK;
    return append(&w->codes, &w->code_count, &w->code_cap, code, err);
}

// A table for all languages, with the ways that there are.
static dgm_status widen(ways *w, dgm_error *err)
{
    if (w->code_count <= w->stride) return DGM_OK;
    const size_t stride = 2 * w->code_count;
    size_t *table = dgm_calloc(stride * stride, sizeof *table);
    if (!table) return dgm_no_memory(err);
    dgm_free(w->table);
    w->table = table;
    w->stride = stride;
    for (size_t i = 0; i < w->pub.count; i++) table[w->items[i].source * stride + w->items[i].target] = i + 1;
    return DGM_OK;
}

static way *find(const ways *w, size_t source, size_t target)
{
    const size_t at = w->table[source * w->stride + target];
    return at ? &w->items[at - 1] : NULL;
}

// A way, unless there is one as good for its direction.
static dgm_status add(ways *w, const way *one, dgm_error *err)
{
    way *known = find(w, one->source, one->target);
    if (known && known->cost <= one->cost) return DGM_OK;
    if (!known) {
        DGM_TRY(dgm_grow(&w->items, &w->cap, w->pub.count + 1, sizeof *w->items, err));
        known = &w->items[w->pub.count++];
        w->table[one->source * w->stride + one->target] = w->pub.count;
    }
    *known = *one;
    known->pub.size = sizeof known->pub;
    known->pub.source = w->codes[one->source];
    known->pub.target = w->codes[one->target];
    return DGM_OK;
}

// All directions of a model, whose languages have these numbers.
static dgm_status add_directions(ways *w, const dgm_languages *l, const size_t *const numbers[2], way one,
                                 dgm_error *err)
{
    DGM_TRY(widen(w, err));
    for (int s = 0; s < l->count[0]; s++)
        for (int t = 0; t < l->count[1]; t++) {
            if (!dgm_languages_offers(l, s, t)) continue;
            one.source = numbers[0][s];
            one.target = numbers[1][t];
            DGM_TRY(add(w, &one, err));
        }
    return DGM_OK;
}

// Those of what DRAGOMAN_MODEL names cost nothing: they go before all others.
static dgm_status add_model(ways *w, const dgm_model_entry *e, bool named, dgm_error *err)
{
    dgm_gguf *file = NULL;
    dgm_languages l = {0};
    const int vocabulary[2] = {INT_MAX, INT_MAX};
    dgm_status st = dgm_modelfile_open(&file, e->path, err);
    if (st == DGM_OK) st = dgm_languages_read(file, vocabulary, &l, err);
    size_t *numbers[2] = {NULL, NULL};
    for (int side = 0; st == DGM_OK && side < 2; side++) {
        numbers[side] = dgm_malloc(((size_t)l.count[side] + 1) * sizeof *numbers[side]);
        if (!numbers[side]) st = dgm_no_memory(err);
        for (int i = 0; st == DGM_OK && i < l.count[side]; i++)
            st = number_of(w, l.code[side][i], &numbers[side][i], err);
    }
    if (st == DGM_OK) st = append(&w->paths, &w->path_count, &w->path_cap, e->path, err);
    if (st == DGM_OK) {
        const size_t cost = named ? 0 : dgm_languages_directions(&l);
        const way one = {.pub = {.first = w->paths[w->path_count - 1]}, .cost = cost};
        st = add_directions(w, &l, (const size_t *const *)numbers, one, err);
    }
    dgm_free(numbers[0]);
    dgm_free(numbers[1]);
    dgm_languages_free(&l);
    dgm_gguf_close(&file);
    return st;
}

// Two direct ways, one behind the other. English goes before other languages between.
static dgm_status add_pivots(ways *w, dgm_error *err)
{
    const size_t direct = w->pub.count;
    for (size_t i = 0; i < direct; i++)
        for (size_t target = 0; target < w->code_count; target++) {
            const way a = w->items[i], *second = find(w, a.target, target);
            if (!second || second->pub.pivot || target == a.source) continue;
            const way *known = find(w, a.source, target);
            if (known && !known->pub.pivot) continue;
            const bool english = dgm_language_matches("en", a.pub.target) == 2;
            const way one = {
                .pub = {.pivot = a.pub.target, .first = a.pub.first, .second = second->pub.first},
                .source = a.source,
                .target = target,
                .cost = 2 * (a.cost + second->cost) + !english,
            };
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

// The ways of all models, or of those that the caller gave alone (models is NULL then).
static dgm_status collect(ways *w, const dgm_model_list *models, const dgm_route_options *o, dgm_error *err)
{
    const dgm_model_entry one = {.path = o ? o->model : NULL};
    if (one.path) DGM_TRY(add_model(w, &one, true, err));
    for (size_t i = 0; !models && !one.path && i < o->member_count; i++)
        DGM_TRY(add_model(w, &(dgm_model_entry){.path = o->members[i].path}, true, err));
    for (size_t i = 0; models && i < models->count; i++)
        if (!models->items[i]->problem) DGM_TRY(add_model(w, models->items[i], is_named(models->items[i]), err));
    return add_pivots(w, err);
}

dgm_status dgm_route_offers(const char *path, const char *source, const char *target, bool *offers, dgm_error *err)
{
    dgm_gguf *file = NULL;
    dgm_languages l = {0};
    const int vocabulary[2] = {INT_MAX, INT_MAX};
    *offers = false;
    dgm_status st = dgm_modelfile_open(&file, path, err);
    if (st == DGM_OK) st = dgm_languages_read(file, vocabulary, &l, err);
    for (int s = 0; st == DGM_OK && s < l.count[0]; s++)
        for (int t = 0; t < l.count[1]; t++)
            *offers |= dgm_language_matches(source, l.code[0][s]) == 2 &&
                       dgm_language_matches(target, l.code[1][t]) == 2 && dgm_languages_offers(&l, s, t);
    dgm_languages_free(&l);
    dgm_gguf_close(&file);
    return st;
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

// How well a name fits every language; NULL for the name: all fit. NULL: no memory.
static int *fits(const ways *w, const char *name)
{
    int *fit = dgm_malloc((w->code_count + 1) * sizeof *fit);
    for (size_t i = 0; fit && i < w->code_count; i++) fit[i] = name ? dgm_language_matches(name, w->codes[i]) : 1;
    return fit;
}

// The ways that a source (NULL: any) and a target mean; of a source that was named the one that fits best, direct ones
// first.
static dgm_status choose(ways *w, const char *source, const char *target, dgm_error *err)
{
    int *from = fits(w, source), *to = fits(w, target), best = 0;
    size_t kept = 0;
    for (size_t i = 0; from && to && i < w->pub.count; i++) {
        const way one = w->items[i];
        const int fit = from[one.source] && to[one.target] ? from[one.source] + to[one.target] : 0;
        if (!fit || (source && fit <= best)) continue;
        if (source) best = fit, kept = 0;
        w->items[kept++] = one;
    }
    const bool fine = from && to;
    dgm_free(from);
    dgm_free(to);
    w->pub.count = kept;
    return fine ? DGM_OK : dgm_no_memory(err);
}

static void keep_pivots(ways *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->pub.count; i++)
        if (w->items[i].pub.pivot) w->items[kept++] = w->items[i];
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
    DGM_TRY(collect(w, models, o, err));
    if (o && o->direction_later) {
        keep_pivots(w);
    } else if (o) {
        const char *target = o->target && o->target[0] ? o->target : usual_target(w, models);
        DGM_TRY(choose(w, source, target, err));
        if (w->pub.count == 0) return no_route(source, target, err);
    }
    return publish(w, err);
}

// o NULL: all there are.
static dgm_status make_list(const dgm_route_options *o, dgm_route_list **list, dgm_error *err)
{
    dgm_model_list *models = NULL;
    *list = NULL;
    if (!o || (!o->model && o->member_count == 0)) DGM_TRY(dgm_models_find(&models, err));
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
    DGM_FAIL_IF(o.member_count > DGM_PARTS_MAX || (o.model && o.member_count), err, DGM_ERR_ARGUMENT,
                "a route takes one model, or up to %d members", DGM_PARTS_MAX);
    DGM_FAIL_IF(o.direction_later && !o.model && !o.member_count, err, DGM_ERR_ARGUMENT,
                "a route whose lines say their directions needs a model");
    DGM_FAIL_IF(!o.direction_later && (!o.source || !o.source[0]), err, DGM_ERR_ARGUMENT,
                "a route needs a source language, or \"auto\"");
    DGM_FAIL_IF(!o.direction_later && !is_auto(o.source) && (!o.target || !o.target[0]), err, DGM_ERR_ARGUMENT,
                "a route from %.40s needs a target language", o.source);
    return make_list(&o, list, err);
}

dgm_status dgm_models_languages(const char *target, char **languages, dgm_error *err)
{
    DGM_FAIL_IF(!languages, err, DGM_ERR_ARGUMENT, "dgm_models_languages needs where to put languages");
    *languages = NULL;
    dgm_route_list *routes = NULL;
    DGM_TRY(dgm_routes_find(&routes, err));
    const ways *w = (const ways *)(const void *)routes;
    int *to = fits(w, target);
    bool *from = dgm_calloc(w->code_count + 1, sizeof *from);
    dgm_writer out = {.failed = !to || !from};
    for (size_t i = 0; !out.failed && i < routes->count; i++) {
        const way *one = &w->items[i];
        if (!to[one->target] || from[one->source]) continue;
        from[one->source] = true;
        if (out.size) dgm_write_text(&out, ",");
        dgm_write_text(&out, one->pub.source);
    }
    dgm_free(to);
    dgm_free(from);
    dgm_routes_free(&routes);
    *languages = dgm_writer_take(&out, NULL);
    return *languages ? DGM_OK : dgm_no_memory(err);
}
