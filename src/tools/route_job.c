// SPDX-License-Identifier: MIT
// Lines on their way through the translators of a route; see route_private.h.
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sized.h"
#include "tools/route_private.h"

static void free_job(dgm_route_job *job)
{
    if (!job) return;
    for (size_t i = 0; job->groups && i < job->route->way_count; i++) {
        dgm_route_group *g = &job->groups[i];
        dgm_results *left = NULL;
        if (g->job) dgm_cancel(g->job);
        if (g->job) dgm_wait(&g->job, &left, NULL);
        dgm_results_free(&left);
        for (size_t k = 0; g->kept && k < g->count; k++) dgm_route_kept_free(&g->kept[k]);
        dgm_free(g->kept);
        dgm_free(g->lines);
        dgm_results_free(&g->first);
        dgm_results_free(&g->last);
    }
    dgm_results *own = job->box ? &job->box->pub : NULL;
    dgm_results_free(&own);
    dgm_free(job->groups);
    dgm_free(job->said);
    dgm_free(job);
}

// ---- which way -------------------------------------------------------------------------------------

// The way of a line: that of its language; way_count: it is in the target language; the first where nothing is known,
// as of a line without letters.
static dgm_status way_of(const dgm_route *r, dgm_text text, size_t *way, const char **language, dgm_error *err)
{
    *way = 0;
    *language = NULL;
    if (!r->among) return DGM_OK;
    DGM_TRY(dgm_route_language(text, r->among, r->among_count, language, err));
    for (size_t i = 0; *language && i < r->among_count; i++)
        if (r->among[i] == *language) {
            *way = i;
            break;
        }
    return DGM_OK;
}

// The direction of a line where lines say theirs.
static dgm_direction line_direction(const dgm_route *r, const dgm_input *in)
{
    dgm_direction d = in->direction ? *in->direction : (dgm_direction){NULL, NULL};
    if (!d.source || !d.source[0] || (r->detect && strcmp(d.source, "auto") == 0)) d.source = r->source;
    if (!d.target || !d.target[0]) d.target = r->target;
    return d;
}

// The way of that: the first where the models have it, or nobody has it, which they will say; else the one through a
// third language that fits the names best.
static size_t way_asked(const dgm_route *r, dgm_direction d)
{
    const dgm_languages *own = dgm_model_describe(r->legs[r->ways[0].first].t->members[0].model)->languages;
    size_t way = 0;
    int direction[2], best = 0;
    if (!d.source || !d.target || dgm_languages_choose(own, d.source, d.target, direction, NULL) == DGM_OK) return 0;
    for (size_t i = 1; i < r->way_count; i++) {
        const dgm_route_entry *e = r->ways[i].entry;
        const int from = dgm_language_matches(d.source, e->source), to = dgm_language_matches(d.target, e->target);
        if (!from || !to || from + to <= best) continue;
        best = from + to;
        way = i;
    }
    return way;
}

// ---- submitting ------------------------------------------------------------------------------------

// Element i of the caller's array, whose elements may be smaller or larger than ours.
static dgm_status take_input(const dgm_input *inputs, size_t i, dgm_input *own, dgm_error *err)
{
    const void *at = (const char *)inputs + i * inputs->size;
    *own = (dgm_input){0};
    DGM_TRY(dgm_sized_take(own, sizeof *own, at, "dgm_input", "dgm_input_default", err));
    own->size = sizeof *own;
    return DGM_OK;
}

// The way of a line that says its direction, or a part of it.
static dgm_status way_said(dgm_route_job *job, const dgm_input *in, size_t line, dgm_text text,
                           dgm_route_detector *known, size_t *way, dgm_error *err)
{
    const dgm_route *r = job->route;
    dgm_direction *d = &job->said[line];
    bool same = false;
    *d = line_direction(r, in);
    if (r->detect && !d->source)
        DGM_TRY(dgm_route_detect(r, known, text, d, &job->box->items[line].language, &same, err));
    *way = same ? r->way_count : way_asked(r, *d);
    return DGM_OK;
}

// Sorts the lines into groups; those that go nowhere get their results.
static dgm_status sort_lines(dgm_route_job *job, const dgm_input *inputs, dgm_route_detector *known, dgm_error *err)
{
    dgm_route *r = job->route;
    for (size_t i = 0; i < job->count; i++) {
        dgm_input in;
        size_t way;
        DGM_TRY(take_input(inputs, i, &in, err));
        const dgm_text text = {in.text ? in.text : "", in.text ? in.text_size : 0};
        if (r->direction_later)
            DGM_TRY(way_said(job, &in, i, text, known, &way, err));
        else
            DGM_TRY(way_of(r, text, &way, &job->box->items[i].language, err));
        if (way == r->way_count) {
            DGM_TRY(dgm_route_copy(text, &job->box->items[i], err));
            job->stayed++;
            continue;
        }
        dgm_route_group *g = &job->groups[way];
        if (!g->lines && !(g->lines = dgm_malloc(job->count * sizeof *g->lines))) return dgm_no_memory(err);
        g->lines[g->count++] = i;
    }
    return DGM_OK;
}

static dgm_status submit_group(dgm_route_job *job, size_t way, const dgm_input *inputs, dgm_error *err)
{
    dgm_route *r = job->route;
    const dgm_route_way *w = &r->ways[way];
    dgm_route_group *g = &job->groups[way];
    if (g->count == 0) return DGM_OK;
    dgm_input *own = dgm_calloc(g->count, sizeof *own);
    if (w->second >= 0) g->kept = dgm_calloc(g->count, sizeof *g->kept);
    dgm_status st = own && (g->kept || w->second < 0) ? DGM_OK : dgm_no_memory(err);
    for (size_t k = 0; st == DGM_OK && k < g->count; k++) {
        st = take_input(inputs, g->lines[k], &own[k], err);
        own[k].direction = w->directed[0] ? &w->direction[0] : r->direction_later ? &job->said[g->lines[k]] : NULL;
        if (st == DGM_OK && w->second >= 0) st = dgm_route_keep(w, &own[k], &g->kept[k], err);
    }
    if (st == DGM_OK) st = dgm_submit(r->legs[w->first].t, own, g->count, &g->job, err);
    dgm_free(own);
    return st;
}

dgm_status dgm_route_submit(dgm_route *route, const dgm_input *inputs, size_t count, dgm_route_job **out,
                            dgm_error *err)
{
    DGM_FAIL_IF(!route || !out || (!inputs && count), err, DGM_ERR_ARGUMENT,
                "dgm_route_submit needs a route, lines and where to put a job");
    dgm_route_job *job = *out = dgm_calloc(1, sizeof *job);
    if (!job) return dgm_no_memory(err);
    job->route = route;
    job->count = count;
    job->begin = dgm_now();
    dgm_status st = DGM_OK;
    if (!route->plan) {
        st = dgm_submit(route->legs[0].t, inputs, count, &job->plain, err);
    } else {
        job->groups = dgm_calloc(route->way_count, sizeof *job->groups);
        if (route->direction_later) job->said = dgm_calloc(count + 1, sizeof *job->said);
        const bool room = job->groups && (job->said || !route->direction_later);
        dgm_route_detector known = {0};
        st = room ? dgm_route_box(count, &job->box, err) : dgm_no_memory(err);
        if (st == DGM_OK) st = sort_lines(job, inputs, &known, err);
        dgm_route_detector_free(&known);
        for (size_t i = 0; st == DGM_OK && i < route->way_count; i++) st = submit_group(job, i, inputs, err);
    }
    if (st == DGM_OK) return DGM_OK;
    free_job(job);
    *out = NULL;
    return st;
}

// ---- the second step -------------------------------------------------------------------------------

static void fill_second(const dgm_route_group *g, const dgm_route_way *w, double passed, dgm_input *own)
{
    size_t n = 0;
    for (size_t k = 0; k < g->count; k++)
        for (size_t j = 0; j < g->first->items[k]->count; j++, n++) {
            const dgm_translation *t = g->first->items[k]->translations[j];
            own[n] = g->kept[k].in;
            own[n].text = t->text;
            own[n].text_size = t->text_size;
            if (w->directed[1]) own[n].direction = &w->direction[1];
            const int64_t left = own[n].deadline_ms - (int64_t)(1e3 * passed);
            if (own[n].deadline_ms) own[n].deadline_ms = left > 1 ? left : 1;
        }
}

// The first step's translations go on. Its job is done.
static dgm_status go_on(dgm_route_job *job, size_t way, dgm_error *err)
{
    dgm_route *r = job->route;
    dgm_route_group *g = &job->groups[way];
    const dgm_route_way *w = &r->ways[way];
    size_t count = 0;
    DGM_TRY(dgm_wait(&g->job, &g->first, err));
    for (size_t k = 0; k < g->count; k++) count += g->first->items[k]->count;
    dgm_input *own = dgm_calloc(count ? count : 1, sizeof *own);
    if (!own) return dgm_no_memory(err);
    fill_second(g, w, dgm_now() - job->begin, own);
    g->second = true;
    const dgm_status st = dgm_submit(r->legs[w->second].t, own, count, &g->job, err);
    dgm_free(own);
    return st;
}

// Is the step at work the first of two?
static bool goes_on(const dgm_route_job *job, size_t way)
{
    const dgm_route_group *g = &job->groups[way];
    return job->route->ways[way].second >= 0 && g->job && !g->second && job->status == DGM_OK;
}

// Begins second steps; wait: also where the first is not done yet.
static void advance(dgm_route_job *job, bool wait)
{
    for (size_t i = 0; i < job->route->way_count; i++)
        if (goes_on(job, i) && (wait || dgm_wait_for(job->groups[i].job, 0) == 1))
            job->status = go_on(job, i, &job->error);
}

// ---- waiting ---------------------------------------------------------------------------------------

size_t dgm_route_done(dgm_route_job *job)
{
    if (!job) return 0;
    if (job->plain) return dgm_job_done(job->plain);
    size_t done = job->stayed;
    advance(job, false);
    for (size_t i = 0; i < job->route->way_count; i++) {
        const dgm_route_group *g = &job->groups[i];
        const bool two = job->route->ways[i].second >= 0;
        if (!g->job || (two && !g->second)) continue;
        if (!two)
            done += dgm_job_done(g->job);
        else if (dgm_wait_for(g->job, 0) == 1)
            done += g->count;
    }
    return done;
}

double dgm_route_share(dgm_route_job *job)
{
    if (!job) return 0;
    if (job->plain) return dgm_job_share(job->plain);
    double done = (double)job->stayed;
    advance(job, false);
    for (size_t i = 0; i < job->route->way_count; i++) {
        const dgm_route_group *g = &job->groups[i];
        const bool two = job->route->ways[i].second >= 0;
        if (!g->job) continue;
        const double share = dgm_job_share(g->job);
        done += (double)g->count * (two ? 0.5 * (share + g->second) : share);
    }
    return job->count ? done / (double)job->count : 1;
}

int dgm_route_wait_for(dgm_route_job *job, int64_t milliseconds)
{
    if (!job) return DGM_ERR_ARGUMENT;
    if (job->plain) return dgm_wait_for(job->plain, milliseconds);
    const double end = dgm_now() + 1e-3 * (double)milliseconds;
    for (size_t i = 0; i < job->route->way_count; i++)
        for (bool again = job->groups[i].job != NULL; again;) {
            const double left = milliseconds < 0 ? -1 : 1e3 * (end - dgm_now());
            if (dgm_wait_for(job->groups[i].job, milliseconds < 0 ? -1 : left > 0 ? (int64_t)left : 0) == 0) return 0;
            again = goes_on(job, i);
            if (again) job->status = go_on(job, i, &job->error);
            again = again && job->status == DGM_OK;
        }
    return 1;
}

void dgm_route_cancel(dgm_route_job **job)
{
    if (!job || !*job) return;
    dgm_results *left = NULL;
    if ((*job)->plain) {
        dgm_cancel((*job)->plain);
        dgm_wait(&(*job)->plain, &left, NULL);
        dgm_results_free(&left);
    }
    free_job(*job);
    *job = NULL;
}

// The group's results into their places.
static dgm_status gather(dgm_route_job *job, size_t way, dgm_error *err)
{
    dgm_route_group *g = &job->groups[way];
    const bool two = job->route->ways[way].second >= 0;
    size_t at = 0;
    DGM_TRY(dgm_wait(&g->job, &g->last, err));
    for (size_t k = 0; k < g->count; k++) {
        dgm_result *out = &job->box->items[g->lines[k]];
        const char *language = out->language;
        const size_t candidates = two ? g->first->items[k]->count : 1;
        if (two)
            DGM_TRY(dgm_route_compose(g->first, k, g->last, at, &g->kept[k], job->route->nbest, out, err));
        else
            dgm_route_move(g->last, k, out);
        out->language = language;
        at += candidates;
    }
    job->box->pub.target_tokens += g->last->target_tokens;
    return DGM_OK;
}

static dgm_status finish(dgm_route_job *job, dgm_error *err)
{
    advance(job, true);
    if (job->status != DGM_OK) {
        if (err) *err = job->error;
        return job->status;
    }
    for (size_t i = 0; i < job->route->way_count; i++)
        if (job->groups[i].job) DGM_TRY(gather(job, i, err));
    for (size_t i = 0; i < job->count; i++) {
        job->box->pub.failed += job->box->items[i].status != DGM_OK;
        job->box->pub.source_tokens += job->box->items[i].source_tokens;
    }
    return DGM_OK;
}

dgm_status dgm_route_wait(dgm_route_job **job, dgm_results **results, dgm_error *err)
{
    DGM_FAIL_IF(!job || !*job || !results, err, DGM_ERR_ARGUMENT,
                "dgm_route_wait needs a job and where to put its results");
    dgm_route_job *j = *job;
    *job = NULL;
    *results = NULL;
    dgm_status st;
    if (j->plain) {
        st = dgm_wait(&j->plain, results, err);
    } else {
        st = finish(j, err);
        if (st == DGM_OK) {
            *results = &j->box->pub;
            j->box = NULL;
        }
    }
    free_job(j);
    return st;
}

dgm_status dgm_route_translate(dgm_route *route, const dgm_input *inputs, size_t count, dgm_results **results,
                               dgm_error *err)
{
    DGM_FAIL_IF(!results, err, DGM_ERR_ARGUMENT, "there is no place for the results: NULL");
    *results = NULL;
    dgm_route_job *job = NULL;
    DGM_TRY(dgm_route_submit(route, inputs, count, &job, err));
    return dgm_route_wait(&job, results, err);
}
