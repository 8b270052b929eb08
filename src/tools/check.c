// SPDX-License-Identifier: MIT
// `dragoman import --check`: an imported model translates a text, line by line against what its own program wrote; see
// dragoman/models.h.
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "dragoman/tools.h"
#include "tools/progress.h"

enum { WINDOW = 256 };

typedef struct report {
    dgm_check_report shown; // first: it is what the caller has
    dgm_check_difference **list;
    size_t cap;
} report;

typedef struct checking {
    dgm_translator *t;
    dgm_lines *text, *against; // against NULL: nothing to compare with
    const dgm_check_options *o;
    report *r;
    char *lines[WINDOW]; // of the text
    size_t count;
} checking;

void dgm_check_init(dgm_check_options *out, size_t size)
{
    const dgm_check_options own = {.precision = "f32", .differences = 5};
    dgm_sized_give(out, size, &own, sizeof own);
}

void dgm_check_report_free(dgm_check_report **r)
{
    report *x = (report *)*r;
    for (size_t i = 0; x && i < x->shown.count; i++) {
        dgm_free((void *)x->list[i]->source);
        dgm_free((void *)x->list[i]->ours);
        dgm_free((void *)x->list[i]->theirs);
        dgm_free(x->list[i]);
    }
    if (x) dgm_free(x->list);
    dgm_free(x);
    *r = NULL;
}

static dgm_status add_difference(report *r, uint64_t line, const char *source, const char *ours, const char *theirs,
                                 dgm_error *err)
{
    DGM_TRY(dgm_grow(&r->list, &r->cap, r->shown.count + 1, sizeof *r->list, err));
    dgm_check_difference *d = dgm_calloc(1, sizeof *d);
    if (!d) return dgm_no_memory(err);
    *d = (dgm_check_difference){.size = sizeof *d,
                                .line = line,
                                .source = dgm_strdup(source),
                                .ours = dgm_strdup(ours),
                                .theirs = dgm_strdup(theirs)};
    r->list[r->shown.count++] = d;
    r->shown.items = (const dgm_check_difference *const *)r->list;
    return d->source && d->ours && d->theirs ? DGM_OK : dgm_no_memory(err);
}

static dgm_status compare_line(checking *c, const char *source, const dgm_result *result, dgm_error *err)
{
    dgm_check_report *shown = &c->r->shown;
    const char *ours = dgm_result_text(result), *theirs = NULL;
    size_t size;
    bool more = false;
    shown->lines++;
    shown->failed += result->status != DGM_OK;
    if (c->o->write) c->o->write(c->o->write_cookie, ours);
    if (!c->against) return DGM_OK;
    DGM_TRY(dgm_lines_next(c->against, &theirs, &size, &more, err));
    DGM_FAIL_IF(!more, err, DGM_ERR_ARGUMENT, "'%s' has fewer lines than '%s'", dgm_lines_name(c->against),
                dgm_lines_name(c->text));
    if (strcmp(ours, theirs) == 0) {
        shown->same++;
        return DGM_OK;
    }
    if (shown->count >= c->o->differences) return DGM_OK;
    return add_difference(c->r, shown->lines, source, ours, theirs, err);
}

static dgm_status translate_window(checking *c, dgm_error *err)
{
    dgm_results *results = NULL;
    DGM_TRY(dgm_translate(c->t, (const char *const *)c->lines, c->count, &results, err));
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < c->count && st == DGM_OK; i++)
        st = compare_line(c, c->lines[i], dgm_results_item(results, i), err);
    dgm_results_free(&results);
    if (st == DGM_OK) st = dgm_progress_tick(&c->o->progress, "checking", dgm_lines_share(c->text), err);
    return st;
}

static dgm_status check_window(checking *c, bool *more, dgm_error *err)
{
    dgm_status st = DGM_OK;
    for (c->count = 0; c->count < WINDOW && st == DGM_OK && *more;) {
        const char *line;
        size_t size;
        st = dgm_lines_next(c->text, &line, &size, more, err);
        if (st != DGM_OK || !*more) break;
        c->lines[c->count] = dgm_strndup(line, size);
        st = c->lines[c->count] ? DGM_OK : dgm_no_memory(err);
        c->count += st == DGM_OK;
    }
    if (st == DGM_OK && c->count) st = translate_window(c, err);
    for (size_t i = 0; i < c->count; i++) dgm_free(c->lines[i]);
    return st;
}

static dgm_status check_all(checking *c, dgm_error *err)
{
    const char *line;
    size_t size;
    bool more = true, extra = false;
    while (more) DGM_TRY(check_window(c, &more, err));
    if (c->against) DGM_TRY(dgm_lines_next(c->against, &line, &size, &extra, err));
    DGM_FAIL_IF(extra, err, DGM_ERR_ARGUMENT, "'%s' has more lines than '%s'", dgm_lines_name(c->against),
                dgm_lines_name(c->text));
    return DGM_OK;
}

static dgm_status open_all(checking *c, const char *model, const char *text, const char *against, dgm_error *err)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.raw = 1; // what the model itself writes
    s.precision = c->o->precision;
    s.threads = c->o->threads;
    if (c->o->beam > 0) s.beam = c->o->beam;
    if (c->o->source_language) s.source = c->o->source_language;
    if (c->o->target_language) s.target = c->o->target_language;
    DGM_TRY(dgm_lines_open(&c->text, text, err));
    if (against) DGM_TRY(dgm_lines_open(&c->against, against, err));
    return dgm_open(&c->t, model, &s, err);
}

dgm_status dgm_import_check(const char *model, const char *text, const char *against,
                            const dgm_check_options *options, dgm_check_report **out, dgm_error *err)
{
    DGM_FAIL_IF(!model || !text || !out, err, DGM_ERR_ARGUMENT, "a check needs a model, a text and where to report");
    dgm_check_options own;
    dgm_check_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, options, "dgm_check_options", "dgm_check_default", err));
    *out = NULL;
    report *r = dgm_calloc(1, sizeof *r);
    if (!r) return dgm_no_memory(err);
    r->shown.size = sizeof r->shown;
    checking c = {.o = &own, .r = r};
    dgm_status st = open_all(&c, model, text, against, err);
    if (st == DGM_OK) st = check_all(&c, err);
    dgm_close(&c.t);
    dgm_lines_close(&c.text);
    dgm_lines_close(&c.against);
    *out = &r->shown;
    if (st != DGM_OK) dgm_check_report_free(out);
    return st;
}
