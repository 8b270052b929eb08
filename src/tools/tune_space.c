// SPDX-License-Identifier: MIT
// The space of settings that are tried: axes, each with values, as options of `dragoman translate`.
//
// A new optimisation is a row. What cannot be combined is not said here: every place is opened with the model, and the
// table of features (search/features_table.c) refuses what has no meaning for it.
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/mem.h"
#include "tools/tune_private.h"

static const dgm_tune_axis table[] = {
    {"precision", {NULL}, "precision", NULL, false},
    {"beam",
     {"--beam 1", "--beam 2", "--beam 3", "--beam 4", "--beam 5", "--beam 6", "--beam 8", "--beam 12"},
     "the beam",
     NULL,
     false},
    {"shortlist", {NULL}, "the choice of words", NULL, false},
    {"search", {"--search cube", "--search cube --cube-key state:0.2"}, "cube pruning", NULL, true},
    {"finish",
     {"--finish first", "--finish shrink", "--finish refill", "--finish margin --margin 0.5",
      "--finish margin --margin 1", "--finish margin --margin 2"},
     "early stop",
     NULL,
     true},
    {"beam-width",
     {"--beam-width 0.01", "--beam-width 0.05", "--beam-width 0.1", "--beam-width 0.2", "--beam-width 0.4"},
     "pruning by beam width",
     NULL,
     true},
    {"static-scales", {"--static-scales"}, "static scales", NULL, false},
    {"softmax", {"--softmax off"}, "leaving out the softmax", NULL, false},
    {"pairs", {"--pairs exact"}, "the choice of pairs", NULL, false},
    {"iterations",
     {"--iterations 1", "--iterations 2", "--iterations 3", "--iterations 4", "--iterations 6", "--iterations 8"},
     "iterations",
     NULL,
     false},
    {"lengths", {"--lengths 1", "--lengths 2", "--lengths 3", "--lengths 4"}, "lengths", NULL, false},
    {"precompute", {"--precompute 2000", "--precompute 20000"}, "pre-computed words", NULL, false},
    {"activations", {"--activations table"}, "activations", NULL, false},
    {"length-penalty",
     {"--length-penalty 0.4", "--length-penalty 0.6", "--length-penalty 0.8", "--length-penalty 1",
      "--length-penalty 1.2", "--length-penalty 1.5"},
     "the length penalty",
     "length",
     true},
};

bool dgm_tune_allows(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = list; p && *p;) {
        const size_t size = strcspn(p, ",");
        if (size == n && strncmp(p, word, n) == 0) return true;
        p += size + (p[size] == ',');
    }
    return false;
}

// Did the caller leave it alone?
static bool is_free(const dgm_settings *fixed, const char *setting)
{
    dgm_settings usual;
    char a[256] = "", b[256] = "";
    dgm_settings_default(&usual);
    if (dgm_settings_get(fixed, setting, a, sizeof a, NULL) != DGM_OK) return false;
    if (dgm_settings_get(&usual, setting, b, sizeof b, NULL) != DGM_OK) return false;
    return strcmp(a, b) == 0;
}

// "--NAME VALUE" for every value that the table of settings has.
static dgm_status fill_values(dgm_tune_axis *a, char **text, dgm_error *err)
{
    const dgm_setting *s = dgm_setting_find(a->setting);
    const char *values = s && s->values ? s->values : "";
    dgm_writer w = {0};
    size_t at[DGM_TUNE_VALUES];
    int count = 0;
    for (const char *p = values; *p && count < DGM_TUNE_VALUES; count++) {
        const size_t n = strcspn(p, "|");
        at[count] = w.size;
        dgm_write_format(&w, "--%s %.*s", a->setting, (int)n, p);
        dgm_write_u8(&w, 0);
        p += n + (p[n] == '|');
    }
    *text = dgm_writer_take(&w, NULL);
    if (!*text) return dgm_no_memory(err);
    for (int i = 0; i < count; i++) a->values[i] = *text + at[i];
    return DGM_OK;
}

dgm_status dgm_tune_space_open(dgm_tune_space *s, const dgm_settings *fixed, const char *allow, dgm_error *err)
{
    *s = (dgm_tune_space){0};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].allow && !dgm_tune_allows(allow, table[i].allow)) continue;
        if (!is_free(fixed, table[i].setting)) continue;
        const int n = s->axis_count++;
        dgm_tune_axis *a = &s->axes[n];
        *a = table[i];
        if (!a->values[0]) DGM_TRY(fill_values(a, &s->texts[n], err));
        s->count[n] = 1;
        while (s->count[n] <= DGM_TUNE_VALUES && a->values[s->count[n] - 1]) s->count[n]++;
    }
    return DGM_OK;
}

void dgm_tune_space_close(dgm_tune_space *s)
{
    for (int i = 0; i < DGM_TUNE_AXES; i++) dgm_free(s->texts[i]);
    *s = (dgm_tune_space){0};
}

int dgm_tune_space_axis(const dgm_tune_space *s, const char *setting)
{
    for (int i = 0; i < s->axis_count; i++)
        if (strcmp(s->axes[i].setting, setting) == 0) return i;
    return -1;
}

void dgm_tune_space_text(const dgm_tune_space *s, const dgm_tune_place *p, dgm_writer *out)
{
    for (int i = 0; i < s->axis_count; i++) {
        if (p->at[i] == 0) continue;
        if (out->size) dgm_write_text(out, " ");
        dgm_write_text(out, s->axes[i].values[p->at[i] - 1]);
    }
}

uint64_t dgm_tune_space_size(const dgm_tune_space *s)
{
    uint64_t n = 1;
    for (int i = 0; i < s->axis_count; i++) n *= (uint64_t)s->count[i];
    return n;
}

// ---- options as text ---------------------------------------------------------------------------

// The next "--name value" or "--flag" of a text whose words end with blanks; false at the end.
static bool next_option(const char **at, dgm_text *name, dgm_text *value)
{
    const char *p = *at + strspn(*at, " ");
    if (strncmp(p, "--", 2) != 0) return false;
    p += 2;
    *name = (dgm_text){p, strcspn(p, " ")};
    p += name->size;
    p += strspn(p, " ");
    *value = (dgm_text){p, strncmp(p, "--", 2) == 0 ? 0 : strcspn(p, " ")};
    *at = p + value->size;
    return true;
}

dgm_status dgm_tune_options_apply(char *text, dgm_settings *s, dgm_error *err)
{
    const char *at = text;
    dgm_text name, value;
    char own[64];
    while (next_option(&at, &name, &value)) {
        char *end = text + (value.data + value.size - text);
        const bool more = *end != 0;
        snprintf(own, sizeof own, "%.*s", (int)name.size, name.data);
        *end = 0;
        DGM_TRY(dgm_settings_set(s, own, value.size ? value.data : "1", err));
        at = more ? end + 1 : end;
    }
    at += strspn(at, " ");
    DGM_FAIL_IF(*at, err, DGM_ERR_ARGUMENT, "'%.80s' is no option: they begin with --", at);
    return DGM_OK;
}

void dgm_tune_options_weights(const char *text, dgm_writer *out)
{
    const char *at = text;
    dgm_text name, value;
    char own[64];
    while (next_option(&at, &name, &value)) {
        snprintf(own, sizeof own, "%.*s", (int)name.size, name.data);
        const dgm_setting *s = dgm_setting_find(own);
        if (!s || !(s->flags & DGM_SETTING_WEIGHTS)) continue;
        dgm_write_format(out, "%s--%s%s%.*s", out->size ? " " : "", own, value.size ? " " : "", (int)value.size,
                         value.data);
    }
}
