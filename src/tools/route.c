// SPDX-License-Identifier: MIT
// Routes: which translators they take; see dragoman/route.h. route_job.c sends lines through them.
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "base/textfile.h"
#include "format/directed.h"
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
        if (r->legs[i].member_count) dgm_close(&r->legs[i].t);
    for (size_t i = 0; r->ways && i < r->way_count; i++) dgm_glossary_close(&r->ways[i].glossary);
    dgm_free(r->source);
    dgm_free(r->target);
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
    const char *names[12];
    dgm_feature_query q = {.size = sizeof q, .features = names, .models = DGM_MODELS_ANY};
    if (pivot) names[q.count++] = "pivot";
    if (r->among || r->detect) names[q.count++] = "source-auto";
    if (r->direction_later) names[q.count++] = "directions";
    if (s->terms[0]) names[q.count++] = "terms";
    if (s->evidence) names[q.count++] = "lmbr";
    if (s->phrase_system) names[q.count++] = "evidence";
    if (s->lattices) names[q.count++] = "lattice";
    if (r->legs[0].member_count > 1) names[q.count++] = "ensemble";
    DGM_FAIL_IF(pivot && s->alignment == DGM_ALIGN_TOKENS, err, DGM_ERR_ARGUMENT,
                "alignment of tokens cannot go through a third language, whose tokens the two models cut differently: "
                "ask for words");
    return q.count > 1 ? dgm_features_check(&q, NULL, err) : DGM_OK;
}

// ---- opening ---------------------------------------------------------------------------------------

static bool same_leg(const dgm_route_leg *a, const dgm_route_leg *b)
{
    bool same = a->step == b->step && a->member_count == b->member_count;
    for (size_t i = 0; same && i < a->member_count; i++) same = strcmp(a->members[i].path, b->members[i].path) == 0;
    return same;
}

static int add_leg(dgm_route *r, const dgm_route_leg *leg)
{
    for (int i = 0; i < r->leg_count; i++)
        if (same_leg(&r->legs[i], leg)) return i;
    r->legs[r->leg_count] = *leg;
    return r->leg_count++;
}

// The leg of a step: the model of the plan, or those of the caller's that translate in its direction (of no direction:
// all of them).
static dgm_status leg_of(dgm_route *r, const dgm_route_options *o, const char *path, dgm_direction d,
                         dgm_route_step step, int *leg, dgm_error *err)
{
    dgm_route_leg made = {.step = step};
    for (size_t i = 0; i < o->member_count; i++) {
        bool offers = true;
        if (d.source) DGM_TRY(dgm_route_offers(o->members[i].path, d.source, d.target, &offers, err));
        if (offers) made.members[made.member_count++] = o->members[i];
    }
    if (made.member_count == 0) made.members[made.member_count++] = (dgm_member){path, 0};
    *leg = add_leg(r, &made);
    return DGM_OK;
}

// Is a first step translated like any line? Then a model that has both translates both, and is in memory once.
static bool is_plain(const dgm_route *r, const dgm_settings *s)
{
    const bool evidence = s->lmbr_ngrams || s->evidence || s->lattices || s->lattice_weight != 0 || s->phrase_system;
    return !s->terms[0] && s->nbest <= 1 && r->pivot_nbest <= 1 && !s->token_scores && !evidence;
}

// Ways and legs of the plan; legs that write translations stand before those of first steps.
static dgm_status lay_out(dgm_route *r, const dgm_route_options *o, const dgm_settings *s, dgm_error *err)
{
    const size_t own = r->direction_later, count = own + r->plan->count;
    const dgm_route_step last = s->terms[0] ? DGM_STEP_LAST : DGM_STEP_ONLY;
    const dgm_route_step first = is_plain(r, s) ? DGM_STEP_ONLY : DGM_STEP_FIRST;
    r->legs = dgm_calloc(2 * count, sizeof *r->legs);
    r->ways = dgm_calloc(count, sizeof *r->ways);
    if (!r->legs || !r->ways) return dgm_no_memory(err);
    r->way_count = count;
    for (size_t i = 0; i < count; i++) r->ways[i] = (dgm_route_way){.second = -1};
    if (own) DGM_TRY(leg_of(r, o, o->model, (dgm_direction){0}, DGM_STEP_ONLY, &r->ways[0].first, err));
    for (size_t i = own; i < count; i++) {
        dgm_route_way *w = &r->ways[i];
        const dgm_route_entry *e = w->entry = r->plan->items[i - own];
        const dgm_direction d = {e->pivot ? e->pivot : e->source, e->target};
        if (e->pivot)
            DGM_TRY(leg_of(r, o, e->second, d, last, &w->second, err));
        else
            DGM_TRY(leg_of(r, o, e->first, d, DGM_STEP_ONLY, &w->first, err));
    }
    for (size_t i = own; i < count; i++) {
        const dgm_route_entry *e = r->ways[i].entry;
        const dgm_direction d = {e->source, e->pivot};
        if (e->pivot) DGM_TRY(leg_of(r, o, e->first, d, first, &r->ways[i].first, err));
    }
    return DGM_OK;
}

// Every model that was given is of some use.
static dgm_status check_members(const dgm_route *r, const dgm_route_options *o, dgm_error *err)
{
    for (size_t i = 0; i < o->member_count; i++) {
        bool used = false;
        for (int k = 0; k < r->leg_count && !used; k++)
            for (size_t m = 0; m < r->legs[k].member_count && !used; m++)
                used = strcmp(r->legs[k].members[m].path, o->members[i].path) == 0;
        DGM_FAIL_IF(!used, err, DGM_ERR_ARGUMENT, "%.200s translates none of the steps from %.40s to %.40s",
                    o->members[i].path, o->source ? o->source : "any language", o->target ? o->target : "any language");
    }
    return DGM_OK;
}

// An item of settings.terms for a direction of several, or of one.
static dgm_status read_glossary(const dgm_route *r, const char *item, dgm_direction d, dgm_glossary **g, dgm_error *err)
{
    dgm_writer w = {0};
    dgm_codes known = {0};
    const char **codes = dgm_calloc(2 * r->way_count + 1, sizeof *codes);
    if (!codes) return dgm_no_memory(err);
    for (size_t i = 0; i < r->way_count; i++) {
        if (!r->ways[i].entry) continue;
        codes[known.count++] = r->ways[i].entry->source;
        codes[known.count++] = r->ways[i].entry->target;
    }
    known.items = codes;
    dgm_status st = dgm_lines_collect(dgm_directed_read(item).name, &w, err);
    if (st == DGM_OK)
        st = dgm_terms_read(g, item, (dgm_text){w.size ? (const char *)w.data : "", w.size},
                            r->way_count > 1 ? &known : NULL, d.source, d.target, err);
    dgm_writer_free(&w);
    dgm_free(codes);
    return st;
}

// Glossaries of ways of two steps, in their languages.
static dgm_status read_glossaries(dgm_route *r, const dgm_settings *s, dgm_error *err)
{
    for (size_t i = 0; i < r->way_count; i++) {
        dgm_route_way *w = &r->ways[i];
        for (int k = 0; w->second >= 0 && k < DGM_TERMS_MAX && s->terms[k]; k++)
            DGM_TRY(read_glossary(r, s->terms[k], (dgm_direction){w->entry->source, w->entry->target}, &w->glossary,
                                  err));
    }
    return DGM_OK;
}

// The direction of a leg, if all ways that use it have the same; else every line says its own.
static bool one_direction(dgm_route *r, int leg, dgm_direction *out)
{
    bool one = true;
    *out = (dgm_direction){0};
    for (size_t i = 0; i < r->way_count; i++) {
        dgm_route_way *w = &r->ways[i];
        for (int step = 0; step < 2; step++) {
            if ((step ? w->second : w->first) != leg) continue;
            one = one && w->entry; // else that of every line
            if (!w->entry) continue;
            const bool two = w->second >= 0;
            const dgm_direction d = {step ? w->entry->pivot : w->entry->source,
                                     two && !step ? w->entry->pivot : w->entry->target};
            w->direction[step] = d;
            if (!out->source) *out = d;
            one = one && strcmp(out->source, d.source) == 0 && strcmp(out->target, d.target) == 0;
        }
    }
    return one;
}

// What concerns the translation is the last step's.
static void first_step(const dgm_route *r, dgm_settings *s)
{
    s->nbest = r->pivot_nbest;
    if (s->nbest > 1 && s->beam < s->nbest) s->beam = s->nbest < USUAL_BEAM ? USUAL_BEAM : s->nbest;
    s->token_scores = s->lmbr_ngrams = s->evidence = s->lattices = 0;
    s->lattice_weight = 0;
    s->phrase_system = NULL;
}

// Of several ways, those that a phrase-based system is not for go without.
static dgm_status choose_systems(const dgm_route *r, const dgm_direction *one, dgm_settings *s, dgm_error *err)
{
    bool fit = true;
    if (!s->phrase_system || !s->phrase_system[0]) return DGM_OK;
    if (one && r->way_count > 1) DGM_TRY(dgm_phrases_fit(s->phrase_system, one->source, one->target, &fit, err));
    if (!fit) s->phrase_system = NULL;
    return DGM_OK;
}

// A system that is for no way is most likely one of other languages.
static dgm_status check_systems(const dgm_route *r, const dgm_settings *s, dgm_error *err)
{
    bool fit = !s->phrase_system || !s->phrase_system[0];
    for (size_t i = 0; !fit && i < r->way_count; i++) {
        const dgm_route_way *w = &r->ways[i];
        if (!w->entry) return DGM_OK; // of lines that say their directions
        const char *source = w->second >= 0 ? w->entry->pivot : w->entry->source;
        DGM_TRY(dgm_phrases_fit(s->phrase_system, source, w->entry->target, &fit, err));
    }
    DGM_FAIL_IF(!fit, err, DGM_ERR_ARGUMENT, "%.200s: the phrase-based system is for none of the directions",
                s->phrase_system);
    return DGM_OK;
}

// Of several ways, a glossary that has nothing for this one's languages may have something for the others'.
static dgm_status choose_terms(const dgm_route *r, const dgm_direction *one, dgm_settings *s, dgm_error *err)
{
    int kept = 0;
    for (int i = 0; i < DGM_TERMS_MAX && s->terms[i]; i++) {
        dgm_glossary *g = NULL;
        if (one && r->way_count > 1) DGM_TRY(read_glossary(r, s->terms[i], *one, &g, err));
        const bool fit = !one || r->way_count == 1 || (g && dgm_glossary_count(g) > 0);
        dgm_glossary_close(&g);
        if (fit) s->terms[kept++] = s->terms[i];
    }
    while (kept < DGM_TERMS_MAX) s->terms[kept++] = NULL;
    return DGM_OK;
}

static dgm_status open_legs(dgm_route *r, const dgm_settings *settings, dgm_error *err)
{
    DGM_TRY(check_systems(r, settings, err));
    for (int i = 0; i < r->leg_count; i++) {
        const dgm_route_leg *leg = &r->legs[i];
        dgm_settings s = *settings;
        dgm_direction d = {0};
        const bool one = one_direction(r, i, &d);
        s.source = one ? d.source : NULL;
        s.target = one ? d.target : NULL;
        s.direction_later = !one;
        if (leg->step != DGM_STEP_ONLY) memset(s.terms, 0, sizeof s.terms);
        if (leg->step == DGM_STEP_FIRST) first_step(r, &s);
        DGM_TRY(choose_systems(r, one ? &d : NULL, &s, err));
        DGM_TRY(choose_terms(r, one ? &d : NULL, &s, err));
        for (dgm_route_way *w = r->ways; w < r->ways + r->way_count; w++)
            for (int step = 0; step < 2; step++)
                if ((step ? w->second : w->first) == i) w->directed[step] = !one && w->entry;
        DGM_TRY(dgm_open_ensemble(&r->legs[i].t, leg->members, leg->member_count, &s, err));
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
    r->pivot_nbest = o->pivot_nbest > 0 ? o->pivot_nbest : 1;
    DGM_FAIL_IF(o->pivot_nbest < 0 || o->pivot_nbest > NBEST_MAX, err, DGM_ERR_ARGUMENT,
                "pivot_nbest is %d: it must be 1 to %d, or 0 for 1", (int)o->pivot_nbest, NBEST_MAX);
    r->direction_later = o->direction_later != 0;
    DGM_TRY(lay_out(r, o, s, err));
    DGM_TRY(check_members(r, o, err));
    for (size_t i = 0; i < r->way_count; i++) pivot = pivot || r->ways[i].second >= 0;
    const bool found = o->source && strcmp(o->source, "auto") == 0;
    r->detect = found && r->direction_later;
    if (found && !r->detect) DGM_TRY(list_languages(r, err));
    if (r->direction_later && o->source && !found && !(r->source = dgm_strdup(o->source))) return dgm_no_memory(err);
    if (r->direction_later && o->target && !(r->target = dgm_strdup(o->target))) return dgm_no_memory(err);
    r->nbest = s->nbest > 0 ? s->nbest : 1;
    DGM_TRY(check_features(r, s, pivot, err));
    DGM_TRY(read_glossaries(r, s, err));
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
