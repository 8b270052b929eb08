// SPDX-License-Identifier: MIT
// bench/cells: a process that holds several translators and times calls of them, for scripts that measure many
// cells of a table: what loads for seconds on a GPU is loaded once, and two programs can take turns.
//
// One JSON request a line on standard input, one JSON answer a line on standard output:
//
//     {"open": NAME, "model": FILE, "settings": {"beam": "4", "device": "cuda"}}
//         -> {"open": NAME, "seconds": ..., "device": ..., "precision": ..., "threads": ..., "batch": ...}
//     {"run": NAME, "text": FILE, "lines": 0, "calls": 3, "output": FILE}
//         -> {"times": [...], "tokens": of a call, without ends, "source_tokens": ..., "lines": ..., "failed": ...}
//     {"counts": NAME}      -> every number of dgm_statistics_read, since NAME was opened
//     {"close": NAME}       -> {}
//
// "model" may be a list of files, an ensemble. Settings are those of dragoman/settings.h by name. A call hands over the
// first `lines` lines of FILE (0: all); the translations of the last call go to `output`, if it is given. What fails
// is answered by {"error": ...}.
#define _GNU_SOURCE
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dragoman/common.h"
#include "dragoman/dragoman.h"
#include "dragoman/profile.h"
#include "dragoman/settings.h"

enum { TRANSLATORS = 16, CALLS = 1000, MEMBERS = 16 };

typedef struct slot {
    char *name;
    dgm_translator *translator;
} slot;

static slot slots[TRANSLATORS];

static slot *find(const char *name)
{
    for (size_t i = 0; name && i < TRANSLATORS; i++)
        if (slots[i].name && strcmp(slots[i].name, name) == 0) return &slots[i];
    return NULL;
}

static json_t *failure(const char *text)
{
    return json_pack("{s:s}", "error", text);
}

static void close_slot(slot *s)
{
    dgm_close(&s->translator);
    free(s->name);
    s->name = NULL;
}

// ---- requests -----------------------------------------------------------------------------------

// A file, or a list of them; how many, 0: something else.
static size_t read_members(json_t *model, dgm_member *members)
{
    const size_t count = json_is_array(model) ? json_array_size(model) : 1;
    if (count > MEMBERS) return 0;
    for (size_t i = 0; i < count; i++) {
        members[i].path = json_string_value(json_is_array(model) ? json_array_get(model, i) : model);
        if (!members[i].path) return 0;
    }
    return count;
}

static json_t *open_translator(json_t *request, const char *name)
{
    dgm_settings settings;
    dgm_error error = {0};
    const char *key;
    json_t *value;
    dgm_settings_default(&settings);
    json_object_foreach(json_object_get(request, "settings"), key, value) {
        if (!json_is_string(value)) return failure("the values of settings are texts");
        if (dgm_settings_set(&settings, key, json_string_value(value), &error) != DGM_OK)
            return failure(error.text);
    }
    dgm_member members[MEMBERS] = {0};
    const size_t count = read_members(json_object_get(request, "model"), members);
    if (count == 0) return failure("a model is a file, or up to 16 of them");
    if (find(name)) close_slot(find(name));
    slot *s = NULL;
    for (size_t i = 0; i < TRANSLATORS; i++)
        if (!slots[i].name) s = &slots[i];
    if (!s) return failure("too many translators are open");
    const double begin = dgm_now();
    if (dgm_open_ensemble(&s->translator, members, count, &settings, &error) != DGM_OK)
        return failure(error.text);
    const double took = dgm_now() - begin;
    s->name = strdup(name);
    const dgm_translator_info *i = dgm_describe(s->translator);
    return json_pack("{s:s,s:f,s:s,s:s,s:i,s:i}", "open", name, "seconds", took, "device", i->device,
                     "precision", i->precision, "threads", (int)i->threads, "batch", (int)i->batch);
}

static bool write_texts(const char *path, const dgm_results *r)
{
    FILE *f = fopen(path, "w");
    for (size_t i = 0; f && i < r->count; i++) fprintf(f, "%s\n", dgm_result_text(r->items[i]));
    return f && fclose(f) == 0;
}

// Calls over the same lines, one after the other.
static json_t *time_calls(dgm_translator *t, const char **lines, size_t count, int calls, const char *output)
{
    dgm_error error = {0};
    json_t *times = json_array(), *said = NULL;
    for (int k = 0; k < calls && !said; k++) {
        dgm_results *r = NULL;
        const double begin = dgm_now();
        const dgm_status st = dgm_translate(t, lines, count, &r, &error);
        json_array_append_new(times, json_real(dgm_now() - begin));
        if (st != DGM_OK)
            said = failure(error.text);
        else if (k == calls - 1 && output && !write_texts(output, r))
            said = failure("the output cannot be written");
        else if (k == calls - 1) // one end symbol a line is counted as a token
            said = json_pack("{s:O,s:I,s:I,s:I,s:I}", "times", times, "tokens",
                             (json_int_t)(r->target_tokens - (r->count - r->failed)), "source_tokens",
                             (json_int_t)r->source_tokens, "lines", (json_int_t)r->count, "failed",
                             (json_int_t)r->failed);
        dgm_results_free(&r);
    }
    json_decref(times);
    return said;
}

static json_t *run(json_t *request, dgm_translator *t)
{
    const char *path = json_string_value(json_object_get(request, "text"));
    const char *output = json_string_value(json_object_get(request, "output"));
    const size_t most = (size_t)json_integer_value(json_object_get(request, "lines"));
    const int calls = (int)json_integer_value(json_object_get(request, "calls"));
    if (!path || calls < 1 || calls > CALLS) return failure("a run needs a text and 1 to 1000 calls");
    FILE *f = fopen(path, "r");
    if (!f) return failure("the text cannot be read");
    char **lines = NULL, *line = NULL;
    size_t count = 0, room = 0, cap = 0;
    ssize_t size;
    while ((most == 0 || count < most) && (size = getline(&line, &cap, f)) >= 0) {
        if (size > 0 && line[size - 1] == '\n') line[size - 1] = 0;
        if (count == room) lines = realloc(lines, (room = room ? 2 * room : 1024) * sizeof *lines);
        lines[count++] = strdup(line);
    }
    free(line);
    fclose(f);
    json_t *said = time_calls(t, (const char **)lines, count, calls, output);
    for (size_t i = 0; i < count; i++) free(lines[i]);
    free(lines);
    return said;
}

static json_t *counts(dgm_translator *t)
{
    dgm_statistics *s = NULL;
    dgm_error error = {0};
    if (dgm_statistics_read(t, &s, &error) != DGM_OK) return failure(error.text);
    json_t *said = json_object();
    for (size_t i = 0; i < s->count; i++)
        if (!s->items[i]->text) json_object_set_new(said, s->items[i]->name, json_real(s->items[i]->number));
    dgm_statistics_free(&s);
    return said;
}

static json_t *answer(json_t *request)
{
    const char *name = json_string_value(json_object_get(request, "open"));
    if (name) return open_translator(request, name);
    static const char *const others[] = {"run", "counts", "close"};
    for (int k = 0; k < 3; k++) {
        if (!(name = json_string_value(json_object_get(request, others[k])))) continue;
        slot *s = find(name);
        if (!s) return failure("there is no translator of that name");
        if (k == 0) return run(request, s->translator);
        if (k == 1) return counts(s->translator);
        close_slot(s);
        return json_object();
    }
    return failure("a request is one of open, run, counts, close");
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) >= 0) {
        json_error_t wrong;
        json_t *request = json_loads(line, 0, &wrong);
        json_t *said = request ? answer(request) : failure(wrong.text);
        json_dumpf(said, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(request);
        json_decref(said);
    }
    for (size_t i = 0; i < TRANSLATORS; i++)
        if (slots[i].name) close_slot(&slots[i]);
    free(line);
    return 0;
}
