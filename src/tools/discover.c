// SPDX-License-Identifier: MIT
// Where models are: the search path of models.h, the default model, the choice by language and by name.
//
// Folders are read in name order, default.gguf first. A file that is no model is listed with its
// problem and never chosen. A file that is found in two ways (default.gguf is mostly a link) is listed once,
// by the name that says more. The share folder is found from where the program or the shared library
// lies, so that an installed tree can be moved; DGM_SHARE_DIR is where the build expects it.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "base/sort.h"
#include "dragoman/tools.h"
#include "engine/engine_private.h"
#include "format/languages.h"
#include "format/modelfile.h"

enum { PATH_SIZE = PATH_MAX, PLACES_MAX = 12 };

// ---- the search path --------------------------------------------------------------------------

typedef struct places {
    char path[PLACES_MAX][PATH_SIZE];
    int count;
    int named; // how many of them, 0 or 1, DRAGOMAN_MODEL names
} places;

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

// DRAGOMAN_MODEL where it names a file; NULL where it is unset or names a folder. A file is meant
// as the default even if it is not there: a wrong name must not be passed over.
static const char *named_file(void)
{
    const char *named = getenv("DRAGOMAN_MODEL");
    return named && named[0] && !is_folder(named) ? named : NULL;
}

static void add_place(places *p, const char *base, const char *rest)
{
    if (!base || !base[0] || p->count == PLACES_MAX) return;
    char joined[PATH_SIZE * 2];
    int n = snprintf(joined, sizeof joined, "%s%s%s", base, rest[0] ? "/" : "", rest);
    if (n < 0 || n >= PATH_SIZE) return;
    char *real = p->path[p->count];
    if (!realpath(joined, real)) return;
    bool known = false;
    for (int i = 0; i < p->count; i++) known = known || strcmp(p->path[i], real) == 0;
    if (!known) p->count++;
}

// Folder of a file: cuts the last component off.
static void cut_name(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    else
        path[0] = 0;
}

// Relative to the folder of the program or the library.
static void add_around(places *p, const char *folder)
{
    if (!folder[0]) return;
    add_place(p, folder, "../share/dragoman/models");    // bin/, lib/
    add_place(p, folder, "../../share/dragoman/models"); // lib/x86_64-linux-gnu/
    add_place(p, folder, "models");                      // a checkout
    add_place(p, folder, "../models");                   // a checkout's build folder
}

static void collect_places(places *p)
{
    char folder[PATH_SIZE];
    p->count = 0;
    add_place(p, getenv("DRAGOMAN_MODEL"), "");
    if (p->count == 0 && named_file() && strlen(named_file()) < PATH_SIZE)
        strcpy(p->path[p->count++], named_file()); // missing: listed with its problem
    p->named = p->count;
    const char *data = getenv("XDG_DATA_HOME");
    if (data && data[0])
        add_place(p, data, "dragoman");
    else
        add_place(p, getenv("HOME"), ".local/share/dragoman");
#ifdef DGM_SHARE_DIR
    add_place(p, DGM_SHARE_DIR, "models");
#endif
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    folder[n > 0 ? n : 0] = 0;
    cut_name(folder);
    add_around(p, folder);
    Dl_info info;
    folder[0] = 0;
    if (dladdr(dgm_finish_names, &info) && info.dli_fname)
        snprintf(folder, sizeof folder, "%s", info.dli_fname);
    cut_name(folder);
    add_around(p, folder);
}

// ---- listing ----------------------------------------------------------------------------------

typedef struct file_id { // of a file, whatever it is called
    dev_t device;
    ino_t number; // 0: there is none
} file_id;

typedef struct listing {
    dgm_model_list pub; // first: the caller's pointer is this one's
    dgm_model_entry *items;
    file_id *ids; // of the items
    size_t cap, ids_cap;
    size_t named;                 // the first items are of DRAGOMAN_MODEL
    const dgm_model_entry **list; // the items, when there are no more
} listing;

static file_id id_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (file_id){st.st_dev, st.st_ino} : (file_id){0, 0};
}

static bool same_file(file_id a, file_id b)
{
    return a.number && a.number == b.number && a.device == b.device;
}

// "en,de" of a string array of the file.
static char *languages(const dgm_gguf *file, const char *key)
{
    dgm_writer w = {0};
    dgm_gguf_strings it = {0};
    if (dgm_gguf_get_strings(file, key, DGM_OPTIONAL, &it, NULL) != DGM_OK) it.count = 0;
    for (dgm_gguf_text s; dgm_gguf_strings_next(&it, &s);) {
        if (w.size) dgm_write_text(&w, ",");
        dgm_write_bytes(&w, s.data, s.size);
    }
    return dgm_writer_take(&w, NULL);
}

static uint64_t count_parameters(const dgm_gguf *file)
{
    uint64_t sum = 0;
    for (int i = 0; i < dgm_gguf_tensor_count(file); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(file, i);
        size_t n = strlen(t->name);
        if (n > 6 && strcmp(t->name + n - 6, ".scale") == 0) continue;
        sum += (uint64_t)t->rows * (uint64_t)t->cols;
    }
    return sum;
}

static dgm_status describe_entry(dgm_model_entry *e, const char *path, dgm_error *err)
{
    dgm_gguf *file = NULL;
    dgm_error why;
    struct stat st;
    e->path = dgm_strdup(path);
    if (stat(path, &st) == 0) e->bytes = (uint64_t)st.st_size;
    dgm_status opened = dgm_modelfile_open(&file, path, &why);
    if (opened == DGM_ERR_MEMORY || !e->path) {
        dgm_gguf_close(&file);
        return dgm_no_memory(err);
    }
    const char *name = "";
    if (opened == DGM_OK) {
        if (dgm_gguf_get_string(file, "general.name", DGM_OPTIONAL, &name, NULL) != DGM_OK)
            name = "";
        e->source = languages(file, "dragoman.languages.source");
        e->target = languages(file, "dragoman.languages.target");
        e->parameters = count_parameters(file);
    } else {
        e->source = dgm_strdup("");
        e->target = dgm_strdup("");
        e->problem = dgm_strdup(why.text);
    }
    e->name = dgm_strdup(name);
    dgm_gguf_close(&file);
    bool whole = e->name && e->source && e->target && (opened == DGM_OK || e->problem);
    return whole ? DGM_OK : dgm_no_memory(err);
}

// "en-de" of ".../en-de.gguf", with or without its end.
static bool is_file_name(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const size_t n = strlen(name);
    return strncmp(file, name, n) == 0 && strcmp(file + n, ".gguf") == 0;
}

// One more way to an item: en-de.gguf says more than default.gguf.
static dgm_status found_again(dgm_model_entry *e, const char *path, dgm_error *err)
{
    if (!is_file_name(e->path, "default") || is_file_name(path, "default")) return DGM_OK;
    char *better = dgm_strdup(path);
    if (!better) return dgm_no_memory(err);
    dgm_free((void *)(uintptr_t)e->path);
    e->path = better;
    return DGM_OK;
}

static dgm_status add_entry(listing *l, const char *path, dgm_error *err)
{
    const file_id id = id_of(path);
    for (size_t i = 0; i < l->pub.count; i++) {
        if (same_file(l->ids[i], id)) return found_again(&l->items[i], path, err);
        if (strcmp(l->items[i].path, path) == 0) return DGM_OK;
    }
    DGM_TRY(dgm_grow(&l->ids, &l->ids_cap, l->pub.count + 1, sizeof *l->ids, err));
    DGM_TRY(dgm_grow(&l->items, &l->cap, l->pub.count + 1, sizeof *l->items, err));
    l->ids[l->pub.count] = id;
    dgm_model_entry *e = &l->items[l->pub.count++];
    *e = (dgm_model_entry){.size = sizeof *e};
    return describe_entry(e, path, err);
}

typedef struct names {
    char **items;
    size_t count, cap;
} names;

static int compare_names(const void *context, uint32_t a, uint32_t b)
{
    const names *n = context;
    bool first_a = strcmp(n->items[a], "default.gguf") == 0;
    bool first_b = strcmp(n->items[b], "default.gguf") == 0;
    if (first_a != first_b) return first_a ? -1 : 1;
    return strcmp(n->items[a], n->items[b]);
}

static dgm_status read_names(const char *folder, names *n, dgm_error *err)
{
    DIR *dir = opendir(folder);
    if (!dir) return DGM_OK;
    dgm_status st = DGM_OK;
    for (struct dirent *d; st == DGM_OK && (d = readdir(dir)) != NULL;) {
        size_t size = strlen(d->d_name);
        if (size < 6 || strcmp(d->d_name + size - 5, ".gguf") != 0) continue;
        st = dgm_grow(&n->items, &n->cap, n->count + 1, sizeof *n->items, err);
        if (st == DGM_OK && !(n->items[n->count] = dgm_strdup(d->d_name))) st = dgm_no_memory(err);
        if (st == DGM_OK) n->count++;
    }
    closedir(dir);
    return st;
}

// Calls fn for every model file of the folder, in order, until it returns something but DGM_OK.
typedef dgm_status (*visit_fn)(void *arg, const char *path, dgm_error *err);

static dgm_status visit_folder(const char *folder, visit_fn fn, void *arg, dgm_error *err)
{
    names n = {0};
    dgm_status st = read_names(folder, &n, err);
    uint32_t *order = n.count ? dgm_malloc(n.count * sizeof *order) : NULL;
    if (st == DGM_OK && n.count && !order) st = dgm_no_memory(err);
    if (order) dgm_sort_indices(order, n.count, compare_names, &n);
    for (size_t i = 0; st == DGM_OK && i < n.count; i++) {
        char path[PATH_SIZE * 2];
        int used = snprintf(path, sizeof path, "%s/%s", folder, n.items[order[i]]);
        if (used > 0 && used < PATH_SIZE) st = fn(arg, path, err);
    }
    for (size_t i = 0; i < n.count; i++) dgm_free(n.items[i]);
    dgm_free(n.items);
    dgm_free(order);
    return st;
}

// All files of the places from `first` to before `end`.
static dgm_status visit_places(const places *p, int first, int end, visit_fn fn, void *arg, dgm_error *err)
{
    dgm_status st = DGM_OK;
    for (int i = first; st == DGM_OK && i < end; i++)
        st = is_folder(p->path[i]) ? visit_folder(p->path[i], fn, arg, err)
                                   : fn(arg, p->path[i], err);
    return st;
}

// ---- the default ------------------------------------------------------------------------------

// The first file that can be used.
typedef struct first_model {
    char *path;
    size_t size;
} first_model;

static dgm_status visit_first(void *arg, const char *path, dgm_error *err)
{
    first_model *f = arg;
    dgm_gguf *file = NULL;
    if (f->path[0] || !dgm_file_exists(path)) return DGM_OK;
    const dgm_status st = dgm_modelfile_open(&file, path, NULL);
    if (st == DGM_ERR_MEMORY) return dgm_no_memory(err);
    if (st == DGM_OK) snprintf(f->path, f->size, "%s", path);
    dgm_gguf_close(&file);
    return DGM_OK;
}

// What DRAGOMAN_MODEL names; else the first default.gguf, so that a model that somebody keeps beside it does
// not take the place of the one that came with the program; else whatever comes first. "" where there is none.
static dgm_status find_default(const places *p, char *path, size_t size, dgm_error *err)
{
    first_model first = {path, size};
    path[0] = 0;
    if (named_file()) {
        snprintf(path, size, "%s", named_file());
        return DGM_OK;
    }
    DGM_TRY(visit_places(p, 0, p->named, visit_first, &first, err));
    for (int i = p->named; i < p->count; i++) {
        char usual[PATH_SIZE + 16];
        snprintf(usual, sizeof usual, "%s/default.gguf", p->path[i]);
        DGM_TRY(visit_first(&first, usual, err));
    }
    return visit_places(p, p->named, p->count, visit_first, &first, err);
}

static dgm_status default_model(char *path, size_t size, dgm_error *err)
{
    places *p = dgm_malloc(sizeof *p);
    if (!p) return dgm_no_memory(err);
    collect_places(p);
    const dgm_status st = find_default(p, path, size, err);
    dgm_free(p);
    DGM_TRY(st);
    DGM_FAIL_IF(!path[0], err, DGM_ERR_IO,
                "no model found: give a model file, set DRAGOMAN_MODEL, or put one into "
                "~/.local/share/dragoman");
    return DGM_OK;
}

// ---- lists ------------------------------------------------------------------------------------

static dgm_status visit_listing(void *arg, const char *path, dgm_error *err)
{
    return add_entry(arg, path, err);
}

void dgm_models_free(dgm_model_list **list)
{
    if (!list || !*list) return;
    listing *l = (listing *)(void *)*list;
    *list = NULL;
    for (size_t i = 0; i < l->pub.count; i++) {
        dgm_model_entry *e = &l->items[i];
        const char *const owned[] = {e->path, e->name, e->source, e->target, e->problem};
        for (size_t k = 0; k < sizeof owned / sizeof owned[0]; k++)
            dgm_free((void *)(uintptr_t)owned[k]);
    }
    dgm_free(l->items);
    dgm_free(l->ids);
    dgm_free(l->list);
    dgm_free(l);
}

static dgm_status fill_list(listing *l, const places *p, dgm_error *err)
{
    char usual[PATH_SIZE];
    DGM_TRY(visit_places(p, 0, p->named, visit_listing, l, err));
    l->named = l->pub.count;
    DGM_TRY(visit_places(p, p->named, p->count, visit_listing, l, err));
    DGM_TRY(find_default(p, usual, sizeof usual, err));
    const file_id id = id_of(usual);
    for (size_t i = 0; i < l->pub.count; i++)
        l->items[i].is_default = !l->items[i].problem && same_file(l->ids[i], id);
    l->list = dgm_calloc(l->pub.count + 1, sizeof *l->list);
    return l->list ? DGM_OK : dgm_no_memory(err);
}

dgm_status dgm_models_find(dgm_model_list **list, dgm_error *err)
{
    *list = NULL;
    places *p = dgm_malloc(sizeof *p);
    listing *l = p ? dgm_calloc(1, sizeof *l) : NULL;
    if (!l) {
        dgm_free(p);
        return dgm_no_memory(err);
    }
    collect_places(p);
    const dgm_status st = fill_list(l, p, err);
    dgm_model_list *pub = &l->pub;
    dgm_free(p);
    if (st != DGM_OK) {
        dgm_models_free(&pub);
        return st;
    }
    for (size_t i = 0; i < pub->count; i++) l->list[i] = &l->items[i];
    pub->size = sizeof *pub;
    pub->items = l->list;
    *list = pub;
    return DGM_OK;
}

// Does `name` mean one of "en,de,fr"?
static bool has_language(const char *list, const char *name)
{
    for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        char code[64];
        size_t n = strcspn(p, ",");
        snprintf(code, sizeof code, "%.*s", (int)(n < sizeof code ? n : sizeof code - 1), p);
        if (dgm_language_matches(name, code)) return true;
    }
    return false;
}

// "en to de, de to en" of the models that can be opened, as far as there is room.
static void list_offers(const dgm_model_list *list, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < list->count; i++) {
        const dgm_model_entry *e = list->items[i];
        if (e->problem || !e->source[0] || !e->target[0]) continue;
        char item[200];
        int n = snprintf(item, sizeof item, "%s%.80s to %.80s", used ? ", " : "", e->source,
                         e->target);
        if (used + (size_t)n + 1 > size || strstr(out, item + (used ? 2 : 0))) continue;
        memcpy(out + used, item, (size_t)n + 1);
        used += (size_t)n;
    }
}

static size_t count_languages(const char *list)
{
    size_t n = list[0] != 0;
    for (; *list; list++) n += *list == ',';
    return n;
}

// Of the models that `fits` accepts the one for the fewest directions: who asks for one is served better by a
// model of that one than by one of a hundred languages. What DRAGOMAN_MODEL names goes before all others, and
// among equals the first.
typedef bool (*fits_fn)(const dgm_model_entry *e, const void *wanted);

static const dgm_model_entry *best_fit(const dgm_model_list *list, fits_fn fits, const void *wanted)
{
    const listing *l = (const listing *)(const void *)list;
    const dgm_model_entry *best = NULL;
    size_t least = 0;
    for (size_t i = 0; i < list->count; i++) {
        const dgm_model_entry *e = list->items[i];
        if (e->problem || !fits(e, wanted)) continue;
        const size_t directions = i < l->named ? 0 : count_languages(e->source) * count_languages(e->target);
        if (!best || directions < least) best = e, least = directions;
    }
    return best;
}

typedef struct direction {
    const char *source, *target; // NULL: any
} direction;

static bool has_direction(const dgm_model_entry *e, const void *wanted)
{
    const direction *d = wanted;
    return (!d->source || has_language(e->source, d->source)) && (!d->target || has_language(e->target, d->target));
}

dgm_status dgm_models_choose(const char *source, const char *target, char **path, dgm_error *err)
{
    *path = NULL;
    if (!source && !target) return dgm_model_file(NULL, path, err);
    dgm_model_list *list = NULL;
    DGM_TRY(dgm_models_find(&list, err));
    dgm_status st = DGM_OK;
    const dgm_model_entry *e = best_fit(list, has_direction, &(direction){source, target});
    if (e && !(*path = dgm_strdup(e->path))) st = dgm_no_memory(err);
    char offers[320];
    list_offers(list, offers, sizeof offers);
    dgm_models_free(&list);
    if (st == DGM_OK && !*path)
        st = dgm_fail(err, DGM_ERR_UNSUPPORTED,
                      "no model found that translates from %.40s to %.40s; there are models from %s",
                      source ? source : "any language", target ? target : "any language",
                      offers[0] ? offers : "nothing to nothing");
    return st;
}

// ---- by name ----------------------------------------------------------------------------------

// "en-de", wherever it is cut: languages may have a "-" in their names, too.
static bool is_direction(const dgm_model_entry *e, const void *wanted)
{
    const char *name = wanted;
    for (const char *cut = name; (cut = strpbrk(cut, "-_")) != NULL; cut++) {
        char source[64];
        const size_t n = (size_t)(cut - name);
        if (n == 0 || n >= sizeof source || !cut[1]) continue;
        memcpy(source, name, n);
        source[n] = 0;
        if (has_language(e->source, source) && has_language(e->target, cut + 1)) return true;
    }
    return false;
}

static const dgm_model_entry *find_named(const dgm_model_list *list, const char *name)
{
    for (int way = 0; way < 3; way++)
        for (size_t i = 0; i < list->count; i++) {
            const dgm_model_entry *e = list->items[i];
            if (e->problem) continue;
            if (way == 0   ? is_file_name(e->path, name)
                : way == 1 ? strcmp(e->name, name) == 0
                           : e->is_default && strcmp(name, "default") == 0)
                return e;
        }
    return best_fit(list, is_direction, name);
}

static bool is_path(const char *name)
{
    const size_t n = strlen(name);
    return strchr(name, '/') || access(name, F_OK) == 0 || !name[0] ||
           (n > 5 && strcmp(name + n - 5, ".gguf") == 0);
}

dgm_status dgm_models_named(const char *name, char **path, dgm_error *err)
{
    DGM_FAIL_IF(!name || !path, err, DGM_ERR_ARGUMENT, "dgm_models_named needs a name and where to put a path");
    *path = NULL;
    if (is_path(name)) {
        *path = dgm_strdup(name);
        return *path ? DGM_OK : dgm_no_memory(err);
    }
    dgm_model_list *list = NULL;
    DGM_TRY(dgm_models_find(&list, err));
    const dgm_model_entry *e = find_named(list, name);
    char offers[320];
    list_offers(list, offers, sizeof offers);
    if (e) *path = dgm_strdup(e->path);
    const bool found = e != NULL;
    dgm_models_free(&list);
    DGM_FAIL_IF(!found, err, DGM_ERR_IO,
                "'%.80s' is neither a file nor the name of a model; 'dragoman models' lists models from %s", name,
                offers[0] ? offers : "nothing to nothing");
    return *path ? DGM_OK : dgm_no_memory(err);
}

dgm_status dgm_model_file(const char *given, char **path, dgm_error *err)
{
    char found[PATH_SIZE];
    struct stat st;
    *path = NULL;
    if (!given) {
        DGM_TRY(default_model(found, sizeof found, err));
        given = found;
    }
    if (stat(given, &st) == 0 && !S_ISDIR(st.st_mode)) { // by far the most
        *path = dgm_strdup(given);
        return *path ? DGM_OK : dgm_no_memory(err);
    }
    char *named = NULL;
    DGM_TRY(dgm_models_named(given, &named, err));
    const dgm_status got = dgm_models_cached(named, path, NULL, err);
    dgm_free(named);
    return got;
}
