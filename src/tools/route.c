// SPDX-License-Identifier: MIT
// Routes: which translators they take; see dragoman/route.h. route_job.c sends lines through them.
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "format/languages.h"
#include "tools/route_private.h"

enum { NBEST_MAX = 64, USUAL_BEAM = 4 };

void dgm_route_init(dgm_route_options *options, size_t size)
{
    const dgm_route_options own = {0};
    if (options) dgm_sized_give(options, size, &own, sizeof own);
}

void dgm_route_close(dgm_route **route)
{
    if (!route || !*route) return;
    dgm_route *r = *route;
    *route = NULL;
    for (int i = 0; i < r->leg_count; i++)
        if (r->legs[i].path) dgm_close(&r->legs[i].t);
    dgm_free(r->legs);
    dgm_free(r->ways);
    dgm_free((void *)r->among);
    dgm_routes_free(&r->plan);
    dgm_free(r);
}

dgm_translator *dgm_route_translator(const dgm_route *route, size_t index)
{
    return route && index < (size_t)route->leg_count ? route->legs[index].t : NULL;
}

// ---- what cannot go this way -----------------------------------------------------------------------

static dgm_status check_features(const dgm_route *r, const dgm_settings *s, bool pivot, dgm_error *err)
{
    const char *names[8];
    dgm_feature_query q = {.size = sizeof q, .features = names, .models = DGM_MODELS_ANY};
    if (pivot) names[q.count++] = "pivot";
    if (r->among) names[q.count++] = "source-auto";
    if (s->terms[0]) names[q.count++] = "terms";
    if (s->evidence) names[q.count++] = "lmbr";
    if (s->phrase_system) names[q.count++] = "evidence";
    if (s->lattices) names[q.count++] = "lattice";
    DGM_FAIL_IF(pivot && s->alignment == DGM_ALIGN_TOKENS, err, DGM_ERR_ARGUMENT,
                "alignment of tokens cannot go through a third language, whose tokens the two models cut differently: "
                "ask for words");
    return q.count > 1 ? dgm_features_check(&q, NULL, err) : DGM_OK;
}

// ---- opening ---------------------------------------------------------------------------------------

static int find_leg(const dgm_route *r, const char *path, bool first)
{
    for (int i = 0; i < r->leg_count; i++)
        if (r->legs[i].first == first && strcmp(r->legs[i].path, path) == 0) return i;
    return -1;
}

static int leg_of(dgm_route *r, const char *path, bool first)
{
    const int known = find_leg(r, path, first);
    if (known >= 0) return known;
    r->legs[r->leg_count] = (dgm_route_leg){.path = path, .first = first};
    return r->leg_count++;
}

// Ways and legs of the plan; legs that write translations stand before those of first steps.
static dgm_status lay_out(dgm_route *r, dgm_error *err)
{
    const size_t count = r->plan->count;
    r->legs = dgm_calloc(2 * count, sizeof *r->legs);
    r->ways = dgm_calloc(count, sizeof *r->ways);
    if (!r->legs || !r->ways) return dgm_no_memory(err);
    r->way_count = count;
    for (size_t i = 0; i < count; i++) {
        const dgm_route_entry *e = r->plan->items[i];
        r->ways[i] = (dgm_route_way){.entry = e, .second = -1};
        const int last = leg_of(r, e->pivot ? e->second : e->first, false);
        if (e->pivot)
            r->ways[i].second = last;
        else
            r->ways[i].first = last;
    }
    for (size_t i = 0; i < count; i++)
        if (r->ways[i].second >= 0) r->ways[i].first = leg_of(r, r->ways[i].entry->first, true);
    return DGM_OK;
}

// The direction of a leg, if all ways that use it have the same; else every line says its own.
static bool one_direction(dgm_route *r, int leg, dgm_direction *out)
{
    size_t users = 0;
    for (size_t i = 0; i < r->way_count; i++) {
        dgm_route_way *w = &r->ways[i];
        for (int step = 0; step < 2; step++) {
            if ((step ? w->second : w->first) != leg) continue;
            const bool two = w->second >= 0;
            const dgm_direction d = {step ? w->entry->pivot : w->entry->source,
                                     two && !step ? w->entry->pivot : w->entry->target};
            w->direction[step] = d;
            if (users++ == 0) *out = d;
            else if (strcmp(out->source, d.source) != 0 || strcmp(out->target, d.target) != 0) users = SIZE_MAX / 2;
        }
    }
    return users < SIZE_MAX / 2;
}

static dgm_status open_legs(dgm_route *r, const dgm_settings *settings, dgm_error *err)
{
    for (int i = 0; i < r->leg_count; i++) {
        dgm_settings s = *settings;
        dgm_direction d = {0};
        const bool one = one_direction(r, i, &d);
        s.source = one ? d.source : NULL;
        s.target = one ? d.target : NULL;
        s.direction_later = !one;
        if (r->legs[i].first) {
            s.nbest = r->pivot_nbest;
            if (s.nbest > 1 && s.beam < s.nbest) s.beam = s.nbest < USUAL_BEAM ? USUAL_BEAM : s.nbest;
            s.token_scores = 0;
        }
        for (size_t k = 0; k < r->way_count; k++)
            for (int step = 0; step < 2; step++)
                if ((step ? r->ways[k].second : r->ways[k].first) == i) r->ways[k].directed[step] = !one;
        DGM_TRY(dgm_open(&r->legs[i].t, r->legs[i].path, &s, err));
    }
    return DGM_OK;
}

// What lines may be in: the sources, and the target.
static dgm_status list_languages(dgm_route *r, dgm_error *err)
{
    r->among = dgm_calloc(r->way_count + 1, sizeof *r->among);
    if (!r->among) return dgm_no_memory(err);
    for (size_t i = 0; i < r->way_count; i++) r->among[r->among_count++] = r->ways[i].entry->source;
    r->among[r->among_count++] = r->ways[0].entry->target;
    return DGM_OK;
}

static dgm_status open_route(dgm_route *r, const dgm_route_options *o, const dgm_settings *s, dgm_error *err)
{
    bool pivot = false;
    DGM_TRY(dgm_route_plan(o, &r->plan, err));
    DGM_TRY(lay_out(r, err));
    for (size_t i = 0; i < r->way_count; i++) pivot = pivot || r->ways[i].second >= 0;
    if (strcmp(o->source, "auto") == 0) DGM_TRY(list_languages(r, err));
    r->nbest = s->nbest > 0 ? s->nbest : 1;
    r->pivot_nbest = o->pivot_nbest > 0 ? o->pivot_nbest : 1;
    DGM_FAIL_IF(o->pivot_nbest < 0 || o->pivot_nbest > NBEST_MAX, err, DGM_ERR_ARGUMENT,
                "pivot_nbest is %d: it must be 1 to %d, or 0 for 1", (int)o->pivot_nbest, NBEST_MAX);
    DGM_TRY(check_features(r, s, pivot, err));
    return open_legs(r, s, err);
}

dgm_status dgm_route_open(dgm_route **route, const dgm_route_options *options, dgm_error *err)
{
    DGM_FAIL_IF(!route, err, DGM_ERR_ARGUMENT, "dgm_route_open needs where to put a route");
    *route = NULL;
    dgm_route_options o = {0};
    dgm_settings s;
    dgm_settings_default(&s);
    DGM_TRY(dgm_sized_take(&o, sizeof o, options, "dgm_route_options", "dgm_route_default", err));
    o.size = sizeof o;
    if (o.settings)
        DGM_TRY(dgm_sized_take(&s, sizeof s, o.settings, "dgm_settings", "dgm_settings_default", err));
    s.size = sizeof s;
    dgm_route *r = dgm_calloc(1, sizeof *r);
    const dgm_status st = r ? open_route(r, &o, &s, err) : dgm_no_memory(err);
    if (st != DGM_OK)
        dgm_route_close(&r);
    else
        *route = r;
    return st;
}

dgm_status dgm_route_of(dgm_route **route, dgm_translator *translator, dgm_error *err)
{
    DGM_FAIL_IF(!route || !translator, err, DGM_ERR_ARGUMENT,
                "dgm_route_of needs a translator and where to put a route");
    dgm_route *r = *route = dgm_calloc(1, sizeof *r);
    if (r) r->legs = dgm_calloc(1, sizeof *r->legs);
    if (r) r->ways = dgm_calloc(1, sizeof *r->ways);
    if (!r || !r->legs || !r->ways) {
        dgm_route_close(route);
        return dgm_no_memory(err);
    }
    r->legs[0].t = translator;
    r->leg_count = 1;
    r->ways[0].second = -1;
    r->way_count = 1;
    return DGM_OK;
}
