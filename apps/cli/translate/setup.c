// SPDX-License-Identifier: MIT
// From command-line options to a loaded translator; see setup.h.
#define _GNU_SOURCE
#include "translate/setup.h"

#include <errno.h>
#include <float.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"

enum { MEMBERS_MAX = 8 };

void engine_options_default(engine_options *e)
{
    memset(e, 0, sizeof *e);
    settings_default(&e->set);
}

int exit_code(dgm_status status)
{
    if (status == DGM_OK) return EXIT_FINE;
    return status == DGM_ERR_ARGUMENT ? EXIT_USAGE : EXIT_RUNTIME;
}

int split_weight(char *spec, dgm_member *m)
{
    m->path = spec;
    m->weight = 0;
    char *colon = strrchr(spec, ':');
    if (!colon || access(spec, F_OK) == 0) return -1;
    double w;
    if (dgm_number_real("weight", colon + 1, -FLT_MAX, FLT_MAX, &w, NULL) != DGM_OK) return -1;
    if (!(w > 0)) return fail(EXIT_USAGE, "the weight of a model must be positive: '%s'", spec);
    *colon = 0;
    m->weight = (float)w;
    return -1;
}

static int read_weights(const char *list, dgm_member *members, int count)
{
    double weights[MEMBERS_MAX];
    int n = 0;
    dgm_error e;
    if (dgm_number_list("--weights", list, weights, count, &n, &e) != DGM_OK)
        return fail(EXIT_USAGE, "%s", e.text);
    bool positive = true;
    for (int i = 0; i < n; i++) positive = positive && weights[i] > 0;
    if (!positive)
        return fail(EXIT_USAGE, "--weights takes positive numbers separated by commas, not '%s'",
                    list);
    if (n != count)
        return fail(EXIT_USAGE, "--weights must have %d numbers, one for each model, not %d", count,
                    n);
    for (int i = 0; i < count; i++) members[i].weight = (float)weights[i];
    return -1;
}

int model_path(const char *name, char **path)
{
    dgm_error error;
    char *found = NULL;
    int made = 0;
    dgm_status st = dgm_models_named(name, &found, &error);
    if (st == DGM_OK) st = dgm_models_cached(found, path, &made, &error);
    if (made) inform("'%s' was imported as '%s'", name, *path);
    dgm_string_free(&found);
    return st == DGM_OK ? -1 : fail(exit_code(st), "%s", error.text);
}

// A name instead of a path; *owned is what the path is freed by.
static int find_member(dgm_member *m, char **owned)
{
    char *path = NULL;
    const int code = model_path(m->path, &path);
    if (code >= 0) return code;
    free(*owned);
    m->path = *owned = need(strdup(path));
    dgm_string_free(&path);
    return -1;
}

bool is_auto(const engine_options *e)
{
    return e->set.settings.source && strcmp(e->set.settings.source, "auto") == 0;
}

// ---- models -------------------------------------------------------------------------------------

static int collect_members(const engine_options *e, dgm_member *members, char **owned, int *count)
{
    dgm_error error;
    *count = e->models.count;
    if (e->models.count > MEMBERS_MAX)
        return fail(EXIT_USAGE, "an ensemble has at most %d models, not %d", MEMBERS_MAX,
                    e->models.count);
    for (int i = 0; i < e->models.count; i++) {
        owned[i] = need(strdup(e->models.items[i]));
        int code = split_weight(owned[i], &members[i]);
        if (code < 0) code = find_member(&members[i], &owned[i]);
        if (code >= 0) return code;
    }
    if (*count == 0) {
        const char *source = is_auto(e) ? NULL : e->set.settings.source;
        dgm_status st = dgm_models_choose(source, e->set.settings.target, &owned[MEMBERS_MAX], &error);
        if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
        members[0] = (dgm_member){owned[MEMBERS_MAX], 0};
        *count = 1;
    }
    return e->weights ? read_weights(e->weights, members, *count) : -1;
}

static void free_members(char **owned)
{
    for (int i = 0; i < MEMBERS_MAX; i++) free(owned[i]);
    dgm_string_free(&owned[MEMBERS_MAX]); // the library's
}

// ---- routes -------------------------------------------------------------------------------------

// What a route is made of: the models that were given, if any, and the direction. Free the members also of what failed.
static int route_options(const engine_options *e, dgm_member *members, char **owned, dgm_route_options *o)
{
    const dgm_settings *s = &e->set.settings;
    int count = 0;
    const int code = e->models.count || s->direction_later ? collect_members(e, members, owned, &count) : -1;
    dgm_route_default(o);
    o->source = s->source;
    o->target = s->target;
    o->members = members;
    o->member_count = (size_t)count;
    o->pivot_nbest = e->pivot_nbest;
    o->direction_later = s->direction_later;
    return code;
}

// The routes of --source and --target, or of all directions with --directions; NULL where one model has the direction,
// or something is wrong that opening it will say. Returns -1, or the exit code after a message.
static int plan_routes(const engine_options *e, dgm_route_list **list)
{
    const dgm_settings *s = &e->set.settings;
    dgm_member members[MEMBERS_MAX] = {{0}};
    char *owned[MEMBERS_MAX + 1] = {0};
    dgm_route_options o;
    dgm_error error;
    *list = NULL;
    const bool found = is_auto(e), named = s->source && (found || s->target);
    if (s->direction_later && !found ? !e->models.count : !named) return -1;
    const int code = route_options(e, members, owned, &o);
    const dgm_status st = code < 0 ? dgm_route_plan(&o, list, &error) : DGM_OK;
    free_members(owned);
    if (st != DGM_OK && found) return fail(exit_code(st), "%s", error.text);
    if (*list && !found && ((*list)->count == 0 || !(*list)->items[0]->pivot)) dgm_routes_free(list);
    return code;
}

static int open_planned(const engine_options *e, dgm_route **route, dgm_translator **t)
{
    dgm_member members[MEMBERS_MAX] = {{0}};
    char *owned[MEMBERS_MAX + 1] = {0};
    dgm_route_options o;
    dgm_error error;
    dgm_settings s = e->set.settings;
    s.workspace -= s.workspace / 8; // as in engine_open
    int code = route_options(e, members, owned, &o);
    o.settings = &s;
    const dgm_status st = code < 0 ? dgm_route_open(route, &o, &error) : DGM_OK;
    if (st != DGM_OK) code = fail(exit_code(st), "%s", error.text);
    if (code < 0) *t = dgm_route_translator(*route, 0);
    free_members(owned);
    return code;
}

int engine_open_route(const engine_options *e, dgm_route **route, dgm_translator **t, bool *owned)
{
    dgm_route_list *list = NULL;
    dgm_error error;
    dgm_status st = DGM_OK;
    int code = plan_routes(e, &list);
    *owned = false;
    if (code >= 0) return code;
    if (!list) {
        code = engine_open(e, t);
        *owned = code < 0;
        if (code < 0) st = dgm_route_of(route, *t, &error);
    } else {
        code = open_planned(e, route, t);
    }
    dgm_routes_free(&list);
    return code < 0 && st != DGM_OK ? fail(exit_code(st), "%s", error.text) : code;
}

// A file of a route, once.
static bool is_repeated(const dgm_route_list *list, size_t index, const char *path, bool second)
{
    for (size_t i = 0; i <= index; i++) {
        const dgm_route_entry *r = list->items[i];
        if (i == index && !second) return false;
        if (strcmp(r->first, path) == 0 || (i < index && r->second && strcmp(r->second, path) == 0)) return true;
    }
    return false;
}

// use(cookie, path) for every model file of the routes, until it returns something but -1.
static int each_file(const dgm_route_list *list, int (*use)(void *cookie, const char *path), void *cookie)
{
    int code = -1;
    for (size_t i = 0; code < 0 && i < list->count; i++) {
        const dgm_route_entry *r = list->items[i];
        if (!is_repeated(list, i, r->first, false)) code = use(cookie, r->first);
        if (code < 0 && r->second && !is_repeated(list, i, r->second, true)) code = use(cookie, r->second);
    }
    return code;
}

// Are the models those of the routes, and not the caller's, or the default one of lines with directions?
static bool of_list(const engine_options *e, const dgm_route_list *list)
{
    return list && !e->models.count && !e->set.settings.direction_later;
}

// ---- files -----------------------------------------------------------------------------------------

static int list_file(void *cookie, const char *path)
{
    files_read(cookie, "--model", path);
    return -1;
}

static int engine_files_direct(const engine_options *e, file_list *f)
{
    dgm_member members[MEMBERS_MAX] = {{0}};
    char *owned[MEMBERS_MAX + 1] = {0};
    int count = 0;
    const int code = collect_members(e, members, owned, &count);
    for (int i = 0; code < 0 && i < count; i++) files_read(f, "--model", members[i].path);
    free_members(owned);
    return code;
}

int engine_files(const engine_options *e, file_list *f)
{
    dgm_route_list *list = NULL;
    int code = plan_routes(e, &list);
    if (code < 0) code = of_list(e, list) ? each_file(list, list_file, f) : engine_files_direct(e, f);
    files_read(f, "--dictionary", e->set.settings.dictionary);
    dgm_routes_free(&list);
    return code;
}

int file_identity(const char *path, float weight, char *text, size_t size)
{
    uint64_t bytes = 0;
    uint32_t check = 0;
    if (!file_checksum(path, UINT64_MAX, &bytes, &check))
        return fail(EXIT_RUNTIME, "cannot read '%s': %s", path, strerror(errno));
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%llu:%08lx*%g", used ? " " : "",
             (unsigned long long)bytes, (unsigned long)check, (double)weight);
    return -1;
}

static int one_system(const char *path, char *text, size_t size)
{
    dgm_phrasal_file *file = NULL;
    dgm_phrasal_options o;
    dgm_error error;
    if (!is_file_name(path)) return -1; // a pipe, which has no second reading
    if (dgm_phrasal_file_open(&file, path, &error) != DGM_OK)
        return fail(EXIT_RUNTIME, "%s", error.text);
    dgm_phrasal_file_options(file, &o);
    const char *const parts[] = {path, o.table, o.reordering, o.lm, o.weights, o.subwords};
    int code = -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && code < 0; i++)
        if (is_file_name(parts[i])) code = file_identity(parts[i], 1, text, size);
    dgm_phrasal_file_close(&file);
    return code;
}

int each_system(const char *systems, int (*use)(void *cookie, const char *path), void *cookie)
{
    dgm_error error;
    char *item = NULL;
    int code = -1;
    while (code < 0 && systems) {
        if (dgm_directed_item(&systems, &item, &error) != DGM_OK) return fail(EXIT_RUNTIME, "%s", error.text);
        if (!item) break;
        code = use(cookie, dgm_directed_path(item));
        dgm_string_free(&item);
    }
    return code;
}

typedef struct identity {
    char *text, *names;
    size_t size, room;
} identity;

static int add_system(void *cookie, const char *path)
{
    const identity *x = cookie;
    return one_system(path, x->text, x->size);
}

int system_identity(const char *systems, char *text, size_t size)
{
    identity whole = {.text = text, .size = size};
    return each_system(systems, add_system, &whole);
}

void names_add(const char *name, char *names, size_t size)
{
    const size_t used = strlen(names);
    snprintf(names + used, size - used, "%s%s", used ? " " : "", name);
}

static int add_identity(void *cookie, const char *path)
{
    const identity *x = cookie;
    names_add(path, x->names, x->room);
    return file_identity(path, 1, x->text, x->size);
}

int engine_identity(const engine_options *e, char *text, size_t size, char *names, size_t room)
{
    dgm_route_list *list = NULL;
    identity whole = {text, names, size, room};
    dgm_member members[MEMBERS_MAX] = {{0}};
    char *owned[MEMBERS_MAX + 1] = {0};
    int count = 0;
    text[0] = names[0] = 0;
    int code = plan_routes(e, &list);
    if (code < 0)
        code = of_list(e, list) ? each_file(list, add_identity, &whole) : collect_members(e, members, owned, &count);
    dgm_routes_free(&list);
    for (int i = 0; code < 0 && i < count; i++) {
        names_add(members[i].path, names, room);
        code = file_identity(members[i].path, members[i].weight, text, size);
    }
    free_members(owned);
    return code;
}

int engine_open(const engine_options *e, dgm_translator **t)
{
    dgm_member members[MEMBERS_MAX] = {{0}};
    char *owned[MEMBERS_MAX + 1] = {0}; // the last one is the library's
    int count = 0;
    dgm_settings s = e->set.settings;
    s.workspace -= s.workspace / 8; // the rest is for text (commands/translate.c)
    if (settings_given(&e->set, "allow-unk") && settings_given(&e->set, "no-unk"))
        return fail(EXIT_USAGE, "--allow-unk and --no-unk cannot be combined");
    if (settings_given(&e->set, "static-scales") && settings_given(&e->set, "no-static-scales"))
        return fail(EXIT_USAGE, "--static-scales and --no-static-scales cannot be combined");
    int code = collect_members(e, members, owned, &count);
    if (code < 0) {
        dgm_error error;
        dgm_status st = dgm_open_ensemble(t, members, (size_t)count, &s, &error);
        if (st != DGM_OK) code = fail(exit_code(st), "%s", error.text);
    }
    free_members(owned);
    return code;
}
