// SPDX-License-Identifier: MIT
// Model files of a server: found, described, read, replaced; see model_pool.h.
//
// A file is known by device, number, size and time. One that changed counts as changed when it looks the same twice, so
// that a copy in progress is not read; then its bytes are read into memory, and looked at once more. In memory it stays
// what it is whatever happens to the file.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "dragoman/models.h"
#include "format/languages.h"
#include "format/modelfile.h"
#include "server/pool_private.h"

typedef struct dgm_bad_file {
    struct stat identity;
    bool tried; // it could not be used; else it was seen once
} bad_file;

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

// ---- one model ------------------------------------------------------------------------------------

static void free_model(dgm_pool_model *m)
{
    for (size_t i = 0; i < m->directions; i++) {
        dgm_free(m->sources[i]);
        dgm_free(m->targets[i]);
    }
    dgm_free(m->sources);
    dgm_free(m->targets);
    dgm_free(m->path);
    dgm_free(m->name);
    dgm_free(m->data);
    pthread_mutex_destroy(&m->lock);
    dgm_free(m);
}

void dgm_pool_drop(dgm_pool_models *p, dgm_pool_model *m)
{
    pthread_mutex_lock(&p->lock);
    const bool last = --m->users == 0;
    pthread_mutex_unlock(&p->lock);
    if (last) free_model(m);
}

static dgm_status read_whole(int fd, void *data, size_t size, const char *path, dgm_error *err)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = read(fd, (char *)data + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        DGM_FAIL_IF(n < 0, err, DGM_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
        DGM_FAIL_IF(n == 0, err, DGM_ERR_IO, "'%s' became shorter while it was read", path);
        done += (size_t)n;
    }
    return DGM_OK;
}

dgm_status dgm_pool_read(dgm_pool_model *m, dgm_error *err)
{
    struct stat before, after;
    const int fd = open(m->path, O_RDONLY | O_CLOEXEC);
    DGM_FAIL_IF(fd < 0, err, DGM_ERR_IO, "cannot open '%s': %s", m->path, strerror(errno));
    if (fstat(fd, &before) != 0) before.st_size = 0;
    void *data = before.st_size > 0 ? dgm_malloc((size_t)before.st_size) : NULL;
    dgm_status st = data ? read_whole(fd, data, (size_t)before.st_size, m->path, err)
                         : dgm_fail(err, DGM_ERR_IO, "'%s' is empty, or there is no memory for it", m->path);
    if (st == DGM_OK && (fstat(fd, &after) != 0 || !is_same(&before, &after)))
        st = dgm_fail(err, DGM_ERR_IO, "'%s' changed while it was read", m->path);
    close(fd);
    if (st != DGM_OK) {
        dgm_free(data);
        return st;
    }
    m->data = data;
    m->size = (size_t)before.st_size;
    m->identity = before;
    return DGM_OK;
}

static dgm_status add_direction(dgm_pool_model *m, const char *source, const char *target, size_t *caps,
                                dgm_error *err)
{
    DGM_TRY(dgm_grow(&m->sources, &caps[0], m->directions + 1, sizeof *m->sources, err));
    DGM_TRY(dgm_grow(&m->targets, &caps[1], m->directions + 1, sizeof *m->targets, err));
    m->sources[m->directions] = dgm_strdup(source);
    m->targets[m->directions] = dgm_strdup(target);
    const bool fine = m->sources[m->directions] && m->targets[m->directions];
    m->directions++;
    return fine ? DGM_OK : dgm_no_memory(err);
}

static dgm_status describe(dgm_pool_model *m, dgm_gguf *file, dgm_error *err)
{
    dgm_languages l = {0};
    dgm_decode_spec decode;
    const int vocabulary[2] = {INT_MAX, INT_MAX};
    size_t caps[2] = {0, 0};
    DGM_TRY(dgm_modelfile_decode(file, &decode, err));
    m->paragraphs = decode.paragraphs;
    for (int i = 0; i < dgm_gguf_tensor_count(file); i++) {
        const dgm_tensor *w = dgm_gguf_tensor(file, i);
        m->parameters += (uint64_t)w->rows * (uint64_t)w->cols;
    }
    dgm_status st = dgm_languages_read(file, vocabulary, &l, err);
    for (int s = 0; st == DGM_OK && s < l.count[0]; s++)
        for (int t = 0; st == DGM_OK && t < l.count[1]; t++)
            if (dgm_languages_offers(&l, s, t)) st = add_direction(m, l.code[0][s], l.code[1][t], caps, err);
    dgm_languages_free(&l);
    if (st == DGM_OK && m->directions == 0)
        st = dgm_fail(err, DGM_ERR_FORMAT, "'%s' does not say which languages it translates", m->path);
    return st;
}

// "en-de" of "models/en-de.gguf".
static char *stem(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dgm_strndup(name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

static dgm_status open_file(dgm_pool_model *m, bool copy, dgm_error *err)
{
    dgm_gguf *file = NULL;
    if (stat(m->path, &m->identity) != 0)
        return dgm_fail(err, DGM_ERR_IO, "cannot open '%s': %s", m->path, strerror(errno));
    if (copy) DGM_TRY(dgm_pool_read(m, err));
    dgm_status st =
        copy ? dgm_gguf_open_memory(&file, m->data, m->size, err) : dgm_modelfile_open(&file, m->path, err);
    if (st == DGM_OK && copy) st = dgm_modelfile_check(file, err);
    if (st == DGM_OK) st = describe(m, file, err);
    dgm_gguf_close(&file);
    m->bytes = (uint64_t)m->identity.st_size;
    if (st != DGM_OK && copy && !strstr(err->text, m->path)) dgm_error_prefix(err, "'%s'", m->path);
    return st;
}

dgm_status dgm_pool_model_open(const char *path, bool copy, dgm_pool_model **out, dgm_error *err)
{
    *out = NULL;
    dgm_pool_model *m = dgm_calloc(1, sizeof *m);
    if (!m) return dgm_no_memory(err);
    pthread_mutex_init(&m->lock, NULL);
    m->users = 1;
    m->path = dgm_strdup(path);
    m->name = stem(path);
    const dgm_status st = m->path && m->name ? open_file(m, copy, err) : dgm_no_memory(err);
    if (st != DGM_OK) {
        free_model(m);
        return st;
    }
    *out = m;
    return DGM_OK;
}

// ---- which files there are ------------------------------------------------------------------------

typedef struct paths {
    char **items;
    size_t count, cap;
} paths;

static void free_paths(paths *p)
{
    for (size_t i = 0; i < p->count; i++) dgm_free(p->items[i]);
    dgm_free(p->items);
    *p = (paths){0};
}

// Takes the path over; a file that is there already, by whatever name, is left out.
static dgm_status add_path(paths *p, char *path, dgm_error *err)
{
    struct stat a, b;
    bool known = !path;
    for (size_t i = 0; i < p->count && !known; i++)
        known =
            strcmp(p->items[i], path) == 0 || (stat(path, &a) == 0 && stat(p->items[i], &b) == 0 && is_same(&a, &b));
    if (known || dgm_grow(&p->items, &p->cap, p->count + 1, sizeof *p->items, NULL) != DGM_OK) {
        const bool lost = !known || !path;
        dgm_free(path);
        return lost ? dgm_no_memory(err) : DGM_OK;
    }
    p->items[p->count++] = path;
    return DGM_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static dgm_status in_folder(const char *folder, paths *p, dgm_error *err)
{
    DIR *dir = opendir(folder);
    DGM_FAIL_IF(!dir, err, DGM_ERR_IO, "cannot open the folder '%s': %s", folder, strerror(errno));
    paths found = {0};
    dgm_status st = DGM_OK;
    for (struct dirent *e; st == DGM_OK && (e = readdir(dir));) {
        const size_t n = strlen(e->d_name);
        if (e->d_name[0] == '.' || n < 6 || strcmp(e->d_name + n - 5, ".gguf") != 0) continue;
        st = add_path(&found, dgm_path_in(folder, e->d_name), err);
    }
    closedir(dir);
    if (found.count) qsort(found.items, found.count, sizeof *found.items, by_text);
    for (size_t i = 0; i < found.count && st == DGM_OK; i++) st = add_path(p, dgm_strdup(found.items[i]), err);
    free_paths(&found);
    return st;
}

// All that dgm_models_find knows, the default model first.
static dgm_status shipped(paths *p, dgm_error *err)
{
    dgm_model_list *list = NULL;
    DGM_TRY(dgm_models_find(&list, err));
    dgm_status st = DGM_OK;
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < list->count && st == DGM_OK; i++)
            if (!list->items[i]->problem && list->items[i]->is_default == !round)
                st = add_path(p, dgm_strdup(list->items[i]->path), err);
    dgm_models_free(&list);
    return st;
}

static dgm_status list_files(const dgm_server_options *o, paths *p, dgm_error *err)
{
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < DGM_SERVER_MODELS_MAX && o->models[i] && st == DGM_OK; i++) {
        char *named = NULL, *file = NULL;
        st = dgm_models_named(o->models[i], &named, err);
        if (st == DGM_OK) st = dgm_models_cached(named, &file, NULL, err);
        if (st == DGM_OK) st = add_path(p, file, err);
        dgm_string_free(&named);
    }
    if (st == DGM_OK && o->models_dir) st = in_folder(o->models_dir, p, err);
    if (st == DGM_OK && !o->models[0] && !o->models_dir) st = shipped(p, err);
    return st;
}

// ---- looking --------------------------------------------------------------------------------------

// What is known of a file that looks like this; NULL: it was never seen.
static bad_file *find_bad(dgm_pool_models *p, const struct stat *now)
{
    for (size_t i = 0; i < p->bad_count; i++)
        if (is_same(&p->bad[i].identity, now)) return &p->bad[i];
    return NULL;
}

static void remember(dgm_pool_models *p, const struct stat *now, bool tried)
{
    enum { MOST = 256 };
    bad_file *b = find_bad(p, now);
    if (p->bad_count > MOST) p->bad_count = 0; // they are looked at once more
    if (!b && dgm_grow(&p->bad, &p->bad_cap, p->bad_count + 1, sizeof *p->bad, NULL) == DGM_OK)
        b = &p->bad[p->bad_count++];
    if (b) *b = (bad_file){*now, tried};
}

static dgm_pool_model *find_path(const dgm_pool_models *p, const char *path)
{
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->items[i]->path, path) == 0) return p->items[i];
    return NULL;
}

// A new model in the place of `old` (NULL: none, at the end).
static dgm_status put_model(dgm_pool_models *p, dgm_pool_model *old, dgm_pool_model *fresh, dgm_error *err)
{
    pthread_mutex_lock(&p->lock);
    dgm_status st = DGM_OK;
    size_t at = 0;
    while (at < p->count && p->items[at] != old) at++;
    if (at == p->count) {
        st = dgm_grow(&p->items, &p->cap, p->count + 1, sizeof *p->items, err);
        if (st == DGM_OK) p->count++;
    }
    if (st == DGM_OK) {
        p->items[at] = fresh;
        st = dgm_pool_relist(p, err);
    }
    pthread_mutex_unlock(&p->lock);
    if (st == DGM_OK && old) dgm_pool_drop(p, old);
    return st;
}

// Is it the file that the model was made of? One that is just being read is looked at the next time.
static bool is_unchanged(dgm_pool_model *m, const struct stat *now)
{
    if (pthread_mutex_trylock(&m->lock) != 0) return true;
    const bool same = is_same(&m->identity, now);
    pthread_mutex_unlock(&m->lock);
    return same;
}

static dgm_status look_at(dgm_server *s, const char *path, bool first, bool forced, dgm_error *err)
{
    dgm_pool_models *p = s->models;
    dgm_pool_model *old = find_path(p, path), *fresh = NULL;
    struct stat now;
    if (stat(path, &now) != 0 && !first) return DGM_OK; // it is just being replaced, or leaves below
    if (old && is_unchanged(old, &now)) return DGM_OK;
    if (!first) {
        const bad_file *known = find_bad(p, &now);
        if (known && known->tried) return DGM_OK;
        if (!known && !forced) {
            remember(p, &now, false);
            return DGM_OK;
        }
    }
    dgm_status st = dgm_pool_model_open(path, !first, &fresh, err);
    if (st == DGM_OK && old) st = dgm_pool_replace(s, old, fresh, err);
    if (st == DGM_OK) st = put_model(p, old, fresh, err);
    if (st == DGM_OK) {
        if (!first) dgm_server_note(s, "model '%s' was %s", fresh->name, old ? "replaced" : "added");
        return DGM_OK;
    }
    remember(p, &now, true);
    if (fresh) dgm_pool_drop(p, fresh);
    return st;
}

// Models whose files are no longer there.
static void leave(dgm_server *s, const paths *found)
{
    dgm_pool_models *p = s->models;
    for (size_t i = p->count; i-- > 0;) {
        dgm_pool_model *m = p->items[i];
        bool there = false;
        for (size_t k = 0; k < found->count; k++) there = there || strcmp(found->items[k], m->path) == 0;
        if (there || access(m->path, F_OK) == 0) continue;
        pthread_mutex_lock(&p->lock);
        m->gone = true;
        memmove(&p->items[i], &p->items[i + 1], (--p->count - i) * sizeof *p->items);
        (void)dgm_pool_relist(p, NULL);
        pthread_mutex_unlock(&p->lock);
        dgm_server_note(s, "model '%s' was removed", m->name);
        dgm_pool_drop(p, m);
    }
}

static dgm_status find_files(dgm_server *s, bool first, bool forced, dgm_error *err)
{
    paths found = {0};
    dgm_status st = list_files(&s->options, &found, err);
    if (st != DGM_OK) {
        free_paths(&found);
        return st;
    }
    const bool strict = first && s->options.models[0];
    for (size_t i = 0; i < found.count; i++) {
        dgm_error why;
        const dgm_status one = look_at(s, found.items[i], first, forced, &why);
        if (one == DGM_OK) continue;
        if (!strict) dgm_server_note(s, "%s", why.text);
        if (!strict || st != DGM_OK) continue;
        st = one; // whoever asked for it hears of it
        if (err) *err = why;
    }
    if (!first) leave(s, &found);
    free_paths(&found);
    return st;
}

dgm_status dgm_pool_find_files(dgm_server *s, bool first, dgm_error *err)
{
    return find_files(s, first, false, err);
}

void dgm_pool_look(dgm_server *s, bool forced)
{
    dgm_error err;
    if (find_files(s, false, forced, &err) != DGM_OK) dgm_server_note(s, "%s", err.text);
}
