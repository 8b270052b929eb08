// SPDX-License-Identifier: MIT
// Weights of the phrase-based decoder and features as text; see phrase_weights.h.
#include "phrase/phrase_weights.h"

#include <string.h>

#include "base/fields.h"
#include "base/number.h"
#include "base/textfile.h"

const dgm_pb_group dgm_pb_groups[] = {
    {"LexicalReordering0", DGM_PB_REORDERING, 6},
    {"Distortion0", DGM_PB_DISTORTION, 1},
    {"LM0", DGM_PB_LM, 1},
    {"WordPenalty0", DGM_PB_WORDS, 1},
    {"PhrasePenalty0", DGM_PB_PHRASES, 1},
    {"TranslationModel0", DGM_PB_TABLE, 4},
    {"UnknownWordPenalty0", DGM_PB_UNKNOWN, 1},
    {NULL, 0, 0},
};

void dgm_pb_weights_default(dgm_pb_weights *w)
{
    *w = (dgm_pb_weights){{0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.5, -1, 0.2, 0.2, 0.2, 0.2, 0.2, 1}};
}

void dgm_pb_weights_uniform(dgm_pb_weights *w)
{
    for (int k = 0; k < DGM_PB_FEATURES; k++) w->w[k] = 1;
}

double dgm_pb_dot(const dgm_pb_weights *w, const double *features)
{
    double sum = 0;
    for (int k = 0; k < DGM_PB_FEATURES; k++) sum += w->w[k] * features[k];
    return sum;
}

// ---- reading ----------------------------------------------------------------------------------

static const dgm_pb_group *find_group(dgm_text name)
{
    if (name.size == 0 || name.data[name.size - 1] != '=') return NULL;
    name.size--;
    for (const dgm_pb_group *g = dgm_pb_groups; g->name; g++)
        if (dgm_text_is(name, g->name)) return g;
    return NULL;
}

// "NAME= V V ...", from the front of a line; *more is false at its end.
static dgm_status read_group(dgm_text *line, double *value, bool *more, dgm_error *err)
{
    dgm_text field = dgm_field_next(line);
    *more = field.size > 0;
    if (!*more) return DGM_OK;
    const dgm_pb_group *g = find_group(field);
    DGM_FAIL_IF(!g, err, DGM_ERR_FORMAT, "'%.*s' is not a feature of this decoder",
                DGM_SHOWN(field));
    for (int k = 0; k < g->count; k++)
        DGM_FAIL_IF(!dgm_number_f64(dgm_field_next(line), &value[g->first + k]), err,
                    DGM_ERR_FORMAT, "%s has %d number%s", g->name, g->count,
                    g->count == 1 ? "" : "s");
    return DGM_OK;
}

dgm_status dgm_pb_weights_parse(dgm_pb_weights *w, dgm_text line, dgm_error *err)
{
    if (line.size && line.data[0] == '#') return DGM_OK;
    bool more = true;
    while (more) DGM_TRY(read_group(&line, w->w, &more, err));
    return DGM_OK;
}

dgm_status dgm_pb_features_parse(dgm_text column, double *features, dgm_error *err)
{
    memset(features, 0, DGM_PB_FEATURES * sizeof *features);
    bool more = true;
    while (more) DGM_TRY(read_group(&column, features, &more, err));
    return DGM_OK;
}

static dgm_status take_line(void *cookie, dgm_text line, dgm_error *err)
{
    return dgm_pb_weights_parse(cookie, line, err);
}

dgm_status dgm_pb_weights_read(dgm_pb_weights *w, const char *path, dgm_error *err)
{
    return dgm_lines_each(path, take_line, w, err);
}

// ---- writing ----------------------------------------------------------------------------------

void dgm_pb_weights_write(const dgm_pb_weights *w, dgm_writer *out)
{
    for (const dgm_pb_group *g = dgm_pb_groups; g->name; g++) {
        dgm_write_format(out, "%s=", g->name);
        for (int k = 0; k < g->count; k++) dgm_write_format(out, " %.9g", w->w[g->first + k]);
        dgm_write_text(out, "\n");
    }
}

void dgm_pb_features_write(const double *features, dgm_writer *out)
{
    for (const dgm_pb_group *g = dgm_pb_groups; g->name; g++) {
        dgm_write_format(out, "%s%s=", g == dgm_pb_groups ? "" : " ", g->name);
        for (int k = 0; k < g->count; k++) dgm_write_format(out, " %.6g", features[g->first + k]);
    }
}
