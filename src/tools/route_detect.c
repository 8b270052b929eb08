// SPDX-License-Identifier: MIT
// The language of a line that does not say it, among those that can be translated into the language that it says.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/languages.h"
#include "text/detect.h"
#include "tools/route_private.h"

dgm_status dgm_route_language(dgm_text text, const char *const *among, size_t count, const char **language,
                              dgm_error *err)
{
    dgm_language_candidate found[DGM_DETECT_MOST];
    dgm_writer clean = {0};
    size_t n = 0;
    *language = NULL;
    const dgm_status st = dgm_utf8_repair(text, &clean, NULL, err);
    if (st == DGM_OK && clean.size)
        n = dgm_detect_language((dgm_text){(const char *)clean.data, clean.size}, among, count, found);
    dgm_writer_free(&clean);
    for (size_t i = 0; n && i < count && !*language; i++)
        if (strcmp(among[i], found[0].code) == 0) *language = among[i];
    return st;
}

void dgm_route_detector_free(dgm_route_detector *d)
{
    for (size_t i = 0; i < d->count; i++) dgm_free((void *)d->items[i].among);
    dgm_free(d->items);
}

static void add(dgm_route_sources *s, const char *code)
{
    for (size_t i = 0; i < s->count; i++)
        if (dgm_language_matches(code, s->among[i]) == 2) return;
    s->among[s->count++] = code;
}

// The model's own directions.
static void add_direct(dgm_route_sources *s, const dgm_languages *own)
{
    int best = 0, into = -1;
    for (int t = 0; s->target[0] && t < own->count[1]; t++) {
        const int fit = dgm_language_matches(s->target, own->code[1][t]);
        if (fit <= best) continue;
        best = fit;
        into = t;
    }
    if (into >= 0) s->into = own->code[1][into];
    for (int t = 0; t < own->count[1]; t++)
        for (int i = 0; (!s->target[0] || t == into) && i < own->count[0]; i++)
            if (dgm_languages_offers(own, i, t)) add(s, own->code[0][i]);
}

static dgm_status make(const dgm_route *r, const char *target, dgm_route_sources *s, dgm_error *err)
{
    const dgm_languages *own = dgm_model_describe(r->legs[r->ways[0].first].t->members[0].model)->languages;
    *s = (dgm_route_sources){.among = dgm_calloc((size_t)own->count[0] + r->way_count + 1, sizeof *s->among)};
    if (!s->among) return dgm_no_memory(err);
    snprintf(s->target, sizeof s->target, "%s", target);
    add_direct(s, own);
    for (size_t i = 1; i < r->way_count; i++) {
        const dgm_route_entry *e = r->ways[i].entry;
        if (target[0] && !dgm_language_matches(target, e->target)) continue;
        add(s, e->source);
        if (target[0] && !s->into) s->into = e->target;
    }
    if (s->count && s->into) add(s, s->into);
    return DGM_OK;
}

dgm_status dgm_route_detect(const dgm_route *r, dgm_route_detector *known, dgm_text text, dgm_direction *d,
                            const char **language, bool *same, dgm_error *err)
{
    const char *own = dgm_describe(r->legs[r->ways[0].first].t)->target_language;
    const char *target = d->target && d->target[0] ? d->target : own ? own : "";
    const dgm_route_sources *s = NULL;
    *same = false;
    for (size_t i = 0; i < known->count && !s; i++)
        if (strncmp(known->items[i].target, target, sizeof known->items[i].target - 1) == 0) s = &known->items[i];
    if (!s) {
        DGM_TRY(dgm_grow(&known->items, &known->cap, known->count + 1, sizeof *known->items, err));
        const dgm_status st = make(r, target, &known->items[known->count], err);
        if (st != DGM_OK) return st;
        s = &known->items[known->count++];
    }
    if (s->count == 0) return DGM_OK; // who translates says that there is nothing into that language
    DGM_TRY(dgm_route_language(text, s->among, s->count, language, err));
    *same = *language && s->into && dgm_language_matches(*language, s->into) == 2;
    d->source = *language ? *language : s->among[0];
    if (target[0]) d->target = s->into;
    return DGM_OK;
}
