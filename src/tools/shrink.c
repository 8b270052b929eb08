// SPDX-License-Identifier: MIT
// `dragoman shrink` behind its command line: checks the models, lets shrink/shrink.h make the
// network, and writes it with the first model's metadata. Weights are stored as f32.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/outfile.h"
#include "base/sized.h"
#include "dragoman/tools.h"
#include "format/modelfile.h"
#include "format/rewrite.h"
#include "shrink/shrink.h"
#include "tools/members.h"

typedef struct shrinking {
    const dgm_shrink_options *o;
    const char *const *names;
    dgm_gguf *files[DGM_SHRINK_MAX];
    double weights[DGM_SHRINK_MAX];
    size_t count;
} shrinking;

static dgm_status check_width(const char *what, double share, dgm_error *err)
{
    DGM_FAIL_IF(!(share >= 0 && share <= 1), err, DGM_ERR_ARGUMENT,
                "the share of %s must be above 0 and at most 1, not %g", what, share);
    return DGM_OK;
}

static dgm_status check(shrinking *s, dgm_error *err)
{
    DGM_FAIL_IF(s->count < 1 || s->count > DGM_SHRINK_MAX, err, DGM_ERR_ARGUMENT,
                "an ensemble of %zu models; it must be 1 to %d", s->count, DGM_SHRINK_MAX);
    DGM_FAIL_IF(!(s->o->share >= 0) || isinf(s->o->share), err, DGM_ERR_ARGUMENT,
                "the size must be a positive share of the models', not %g", s->o->share);
    DGM_TRY(check_width("units", s->o->units, err));
    DGM_TRY(check_width("the embeddings", s->o->embeddings, err));
    DGM_TRY(check_width("the read-out", s->o->readout, err));
    DGM_FAIL_IF(
        s->o->share > 0 && s->o->units > 0 && s->o->embeddings > 0 && s->o->readout > 0, err,
        DGM_ERR_ARGUMENT,
        "units, embeddings and read-out have their shares: none is left to be chosen for the "
        "size %g",
        s->o->share);
    return dgm_members_weigh(s->names, s->o->weights, s->count, s->weights, err);
}

static dgm_status open_files(shrinking *s, dgm_error *err)
{
    static const char *const prefixes[] = {"dragoman.architecture", "dragoman.source.",
                                           "dragoman.target.", "dragoman.languages.", NULL};
    for (size_t i = 0; i < s->count; i++) {
        DGM_TRY(dgm_modelfile_open(&s->files[i], s->names[i], err));
        const char *key = i ? dgm_members_differ(s->files[0], s->files[i], prefixes) : NULL;
        DGM_FAIL_IF(key, err, DGM_ERR_ARGUMENT,
                    "'%s' and '%s' cannot become one network: they differ in '%.100s'", s->names[0],
                    s->names[i], key);
    }
    return DGM_OK;
}

static bool tick(void *cookie, double share)
{
    const dgm_progress *p = cookie;
    return !p->tick || p->tick(p->cookie, "shrinking", share) == 0;
}

static dgm_shrink_widths widths(const dgm_shrink_sizes *s)
{
    return (dgm_shrink_widths){.embed = s->embed,
                               .encoder = s->encoder,
                               .hidden = s->hidden,
                               .attention = s->attention,
                               .readout = s->readout,
                               .parameters = s->parameters};
}

static dgm_status run(shrinking *s, const char *output, dgm_shrink_report *report, dgm_error *err)
{
    dgm_gguf_writer *out = NULL;
    dgm_shrunk *net = NULL;
    dgm_shrink_result result = {0};
    dgm_progress progress = s->o->progress;
    const dgm_shrink_plan plan = {.files = (const dgm_gguf *const *)s->files,
                                  .weights = s->weights,
                                  .count = (int)s->count,
                                  .share = s->o->share,
                                  .units = s->o->units,
                                  .embeddings = s->o->embeddings,
                                  .readout = s->o->readout,
                                  .tick = tick,
                                  .cookie = &progress};
    DGM_TRY(open_files(s, err));
    DGM_TRY(dgm_rewrite_open(&out, s->files[0], "dragoman " DGM_VERSION, err));
    dgm_gguf_set_string(out, "dragoman.decode.precision", "f32");
    if (s->o->name) dgm_gguf_set_string(out, "general.name", s->o->name);
    dgm_status st = dgm_shrink(&plan, out, &net, &result, err);
    st = dgm_rewrite_finish(&out, output, st, err);
    dgm_shrink_free(&net);
    const dgm_shrink_report own = {.members = result.members,
                                   .unfolded = widths(&result.unfolded),
                                   .shrunk = widths(&result.final)};
    dgm_sized_fill(report, &own, sizeof own);
    return st;
}

void dgm_shrink_init(dgm_shrink_options *out, size_t size)
{
    const dgm_shrink_options own = {0};
    dgm_sized_give(out, size, &own, sizeof own);
}

dgm_status dgm_shrink_ensemble(const char *const *models, size_t count, const char *output,
                               const dgm_shrink_options *options, dgm_shrink_report *report,
                               dgm_error *err)
{
    dgm_shrink_options own;
    dgm_shrink_default(&own);
    DGM_TRY(
        dgm_sized_take(&own, sizeof own, options, "dgm_shrink_options", "dgm_shrink_default", err));
    DGM_TRY(dgm_sized_room(report, "dgm_shrink_report", err));
    shrinking s = {.o = &own, .names = models, .count = count};
    DGM_TRY(check(&s, err));
    DGM_TRY(dgm_outfile_probe(output, err));
    const dgm_status st = run(&s, output, report, err);
    for (size_t i = 0; i < DGM_SHRINK_MAX; i++) dgm_gguf_close(&s.files[i]);
    return st;
}
