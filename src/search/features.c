// SPDX-License-Identifier: MIT
// Asking the table of features (features_table.c): from what was asked for to the sentence that
// refuses it. The first row of the table that objects is the one that is heard.
#include "search/features.h"

#include <stdio.h>
#include <string.h>

// ---- names -------------------------------------------------------------------------------------

int dgm_feature_find(const char *name)
{
    for (int i = 0; name && i < DGM_FEATURE_COUNT; i++)
        if (strcmp(dgm_feature_table[i].name, name) == 0) return i;
    return -1;
}

int dgm_search_find(const char *name)
{
    for (int i = 0; name && dgm_search_rows[i].name; i++)
        if (strcmp(dgm_search_rows[i].name, name) == 0) return i;
    return -1;
}

int dgm_writing_find(const char *name)
{
    for (int i = 0; name && i < DGM_WRITES_COUNT; i++)
        if (strcmp(dgm_writing_rows[i].name, name) == 0) return i;
    return -1;
}

dgm_writing dgm_writing_of(const dgm_model_info *m)
{
    if (m->mask >= 0) return DGM_WRITES_WHOLE;
    if (m->tokens_per_step == 1)
        return m->order == DGM_ORDER_R2L ? DGM_WRITES_R2L : DGM_WRITES_L2R;
    return m->order == DGM_ORDER_L2R   ? DGM_WRITES_PAIRS_L2R
           : m->order == DGM_ORDER_R2L ? DGM_WRITES_PAIRS_R2L
                                       : DGM_WRITES_PAIRS_BOTH;
}

// ---- one row -----------------------------------------------------------------------------------

static bool inside(const dgm_feature_place *p, int search, int writing)
{
    return (search < 0 || (p->searches >> search & 1u)) &&
           (writing < 0 || (p->writings >> writing & 1u));
}

static bool anywhere(const dgm_feature_row *f)
{
    return f->places[0].searches == 0 && f->places[0].writings == 0;
}

static bool works(const dgm_feature_row *f, int search, int writing)
{
    bool any = anywhere(f);
    for (int i = 0; i < DGM_FEATURE_PLACES && !any; i++)
        any = f->places[i].searches && inside(&f->places[i], search, writing);
    return any;
}

// What refuses a combination.
typedef struct refusal {
    dgm_status status;
    const char *search, *model, *feature; // with which it cannot be combined; NULL: not to blame
    const char *missing;                  // feature that it requires, NULL: none
    const char *why;
    bool later;
} refusal;

static int lowest(uint64_t bits)
{
    int at = 0;
    while (!(bits >> at & 1u)) at++;
    return at;
}

static refusal judge_place(const dgm_feature_row *f, const dgm_combination *c)
{
    if (works(f, c->search, c->writing)) return (refusal){.status = DGM_OK};
    refusal r = {.status = DGM_ERR_UNSUPPORTED,
                 .why = f->why,
                 .later = f->later.searches && inside(&f->later, c->search, c->writing)};
    const bool search = c->search >= 0 && !works(f, c->search, -1);
    const bool model = c->writing >= 0 && !works(f, -1, c->writing);
    if (search) r.status = DGM_ERR_ARGUMENT;
    if (search || !model) r.search = dgm_search_rows[c->search].name;
    if (!search) r.model = dgm_writing_rows[c->writing].words;
    return r;
}

static refusal judge(const dgm_feature_row *f, const dgm_combination *c)
{
    const refusal r = judge_place(f, c);
    if (r.status != DGM_OK) return r;
    if (f->facts & ~c->facts)
        return (refusal){.status = DGM_ERR_UNSUPPORTED, .model = "this model", .why = f->why};
    const uint64_t missing = f->needs & ~c->features, clash = f->excludes & c->features;
    if (missing)
        return (refusal){.status = DGM_ERR_ARGUMENT,
                         .missing = dgm_feature_table[lowest(missing)].name};
    if (clash)
        return (refusal){.status = DGM_ERR_ARGUMENT,
                         .feature = dgm_feature_table[lowest(clash)].name,
                         .why = f->why_not ? f->why_not : f->why,
                         .later = f->excludes_later >> lowest(clash) & 1u};
    return (refusal){.status = DGM_OK};
}

static dgm_status say(const char *name, const refusal *r, dgm_error *err)
{
    if (r->missing) return dgm_fail(err, r->status, "%s requires %s", name, r->missing);
    return dgm_fail(err, r->status, "%s cannot be combined with %s%s%s%s%s: %s%s", name,
                    r->search ? "search " : "", r->search ? r->search : "",
                    r->search && r->model ? " and " : "", r->model ? r->model : "",
                    r->feature ? r->feature : "", r->why, r->later ? " (not built yet)" : "");
}

// A search that the models cannot follow, and those that they can.
static dgm_status say_search(int search, int writing, dgm_error *err)
{
    char list[128] = "";
    for (int i = 0; dgm_search_rows[i].name; i++) {
        const size_t used = strlen(list);
        if (dgm_search_rows[i].writings >> writing & 1u)
            snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                     dgm_search_rows[i].name);
    }
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "search %s cannot be combined with %s: %s; use %s",
                    dgm_search_rows[search].name, dgm_writing_rows[writing].words,
                    dgm_search_rows[search].why, list);
}

// ---- all of them -------------------------------------------------------------------------------

static dgm_status check_rows(const dgm_combination *c, bool *later, dgm_error *err)
{
    for (int i = 0; i < DGM_FEATURE_COUNT; i++) {
        if (!(c->features >> i & 1u)) continue;
        const refusal r = judge(&dgm_feature_table[i], c);
        if (r.status == DGM_OK) continue;
        if (later) *later = r.later;
        return say(dgm_feature_table[i].name, &r, err);
    }
    return DGM_OK;
}

// In the order in which things get known, features, search, models: who asks early and who asks late
// hear the same sentence.
dgm_status dgm_combination_check(const dgm_combination *c, bool *later, dgm_error *err)
{
    if (later) *later = false;
    dgm_combination known = {-1, -1, DGM_FACTS_ALL, c->features};
    DGM_TRY(check_rows(&known, later, err));
    known.search = c->search;
    DGM_TRY(check_rows(&known, later, err));
    if (c->search >= 0 && c->writing >= 0 &&
        !(dgm_search_rows[c->search].writings >> c->writing & 1u))
        return say_search(c->search, c->writing, err);
    return check_rows(c, later, err);
}

dgm_combination dgm_combination_of(const dgm_asked *a)
{
    dgm_combination c = {.search = dgm_search_find(a->search),
                         .writing = a->writing,
                         .facts = a->facts};
    for (int i = 0; i < DGM_FEATURE_COUNT; i++)
        if (dgm_feature_table[i].asked && dgm_feature_table[i].asked(a))
            c.features |= DGM_FEATURE_BIT(i);
    return c;
}

dgm_status dgm_asked_check(const dgm_asked *a, dgm_error *err)
{
    const dgm_combination c = dgm_combination_of(a);
    return dgm_combination_check(&c, NULL, err);
}
