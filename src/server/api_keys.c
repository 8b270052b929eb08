// SPDX-License-Identifier: MIT
// API keys; see api_keys.h.
#define _GNU_SOURCE
#include "server/api_keys.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fields.h"
#include "base/mem.h"
#include "dragoman/common.h"

struct dgm_keys {
    pthread_mutex_t lock;
    char *path;
    struct timespec time;
    off_t size;
    dgm_key *items;
    size_t count, cap;
};

typedef struct key_list {
    dgm_key *items;
    size_t count, cap;
} key_list;

// What may stand behind a key as NAME=N.
static const struct limit {
    const char *name;
    size_t at; // in dgm_key
    int64_t most;
} limits[] = {{"req_limit", offsetof(dgm_key, req_limit), INT32_MAX},
              {"char_limit", offsetof(dgm_key, char_limit), INT32_MAX},
              {"char_quota", offsetof(dgm_key, char_quota), 1000000000000}};

static dgm_status read_word(dgm_key *k, dgm_text word, dgm_error *err)
{
    char text[DGM_KEY_MAX];
    DGM_FAIL_IF(word.size >= sizeof text, err, DGM_ERR_FORMAT, "'%.*s...' is too long", DGM_SHOWN(word));
    memcpy(text, word.data, word.size);
    text[word.size] = 0;
    char *value = strchr(text, '=');
    if (value) *value++ = 0;
    for (size_t i = 0; value && i < sizeof limits / sizeof limits[0]; i++)
        if (strcmp(text, limits[i].name) == 0)
            return dgm_number_integer(text, value, -1, limits[i].most, (int64_t *)((char *)k + limits[i].at), err);
    if (value && strcmp(text, "name") == 0) {
        snprintf(k->name, sizeof k->name, "%.*s", (int)sizeof k->name - 1, value);
        return DGM_OK;
    }
    return dgm_fail(err, DGM_ERR_FORMAT,
                    "'%s': req_limit=N, char_limit=N, char_quota=N and name=WORD may stand behind a key", text);
}

static dgm_status read_line(key_list *list, dgm_text line, dgm_error *err)
{
    const dgm_text first = dgm_field_next(&line);
    if (first.size == 0 || first.data[0] == '#') return DGM_OK;
    DGM_FAIL_IF(first.size >= DGM_KEY_MAX, err, DGM_ERR_FORMAT, "a key has at most %d bytes", DGM_KEY_MAX - 1);
    DGM_TRY(dgm_grow(&list->items, &list->cap, list->count + 1, sizeof *list->items, err));
    dgm_key *k = &list->items[list->count];
    *k = (dgm_key){.req_limit = -1, .char_limit = -1, .char_quota = -1};
    memcpy(k->key, first.data, first.size);
    snprintf(k->name, sizeof k->name, "key %zu", list->count + 1);
    for (dgm_text word; (word = dgm_field_next(&line)).size && word.data[0] != '#';) DGM_TRY(read_word(k, word, err));
    for (size_t i = 0; i < list->count; i++)
        DGM_FAIL_IF(strcmp(list->items[i].key, k->key) == 0, err, DGM_ERR_FORMAT, "the key stands there twice");
    list->count++;
    return DGM_OK;
}

static dgm_status read_file(const char *path, key_list *list, dgm_error *err)
{
    dgm_lines *lines = NULL;
    DGM_TRY(dgm_lines_open(&lines, path, err));
    dgm_status st = DGM_OK;
    for (bool more = true; st == DGM_OK;) {
        const char *line = NULL;
        size_t size = 0;
        st = dgm_lines_next(lines, &line, &size, &more, err);
        if (st != DGM_OK || !more) break;
        st = read_line(list, (dgm_text){line, size}, err);
        if (st == DGM_ERR_FORMAT || st == DGM_ERR_ARGUMENT)
            dgm_error_prefix(err, "%s: line %llu", path, (unsigned long long)dgm_lines_number(lines));
    }
    dgm_lines_close(&lines);
    return st;
}

dgm_status dgm_keys_reload(dgm_keys *keys, bool *changed, dgm_error *err)
{
    struct stat now;
    if (changed) *changed = false;
    if (stat(keys->path, &now) == 0 && now.st_size == keys->size && now.st_mtim.tv_sec == keys->time.tv_sec &&
        now.st_mtim.tv_nsec == keys->time.tv_nsec)
        return DGM_OK;
    key_list list = {0};
    const dgm_status st = read_file(keys->path, &list, err);
    if (st != DGM_OK) {
        dgm_free(list.items);
        return st;
    }
    pthread_mutex_lock(&keys->lock);
    dgm_free(keys->items);
    keys->items = list.items;
    keys->count = list.count;
    keys->size = now.st_size;
    keys->time = now.st_mtim;
    pthread_mutex_unlock(&keys->lock);
    if (changed) *changed = true;
    return DGM_OK;
}

dgm_status dgm_keys_open(dgm_keys **out, const char *path, dgm_error *err)
{
    *out = NULL;
    dgm_keys *keys = dgm_calloc(1, sizeof *keys);
    if (!keys) return dgm_no_memory(err);
    pthread_mutex_init(&keys->lock, NULL);
    keys->size = -1;
    keys->path = dgm_strdup(path);
    const dgm_status st = keys->path ? dgm_keys_reload(keys, NULL, err) : dgm_no_memory(err);
    if (st != DGM_OK)
        dgm_keys_close(&keys);
    else
        *out = keys;
    return st;
}

void dgm_keys_close(dgm_keys **at)
{
    dgm_keys *keys = *at;
    if (!keys) return;
    *at = NULL;
    dgm_free(keys->path);
    dgm_free(keys->items);
    pthread_mutex_destroy(&keys->lock);
    dgm_free(keys);
}

// In a time that tells nothing of where they differ.
static bool is_equal(const char *a, const char *b)
{
    unsigned char differ = 0;
    for (size_t i = 0; i < DGM_KEY_MAX; i++) differ |= (unsigned char)(a[i] ^ b[i]);
    return differ == 0;
}

bool dgm_keys_find(dgm_keys *keys, const char *key, dgm_key *out)
{
    char padded[DGM_KEY_MAX] = {0};
    const size_t n = strlen(key);
    bool found = false;
    if (n == 0 || n >= sizeof padded) return false;
    memcpy(padded, key, n);
    pthread_mutex_lock(&keys->lock);
    for (size_t i = 0; i < keys->count; i++)
        if (is_equal(keys->items[i].key, padded)) {
            *out = keys->items[i];
            found = true;
        }
    pthread_mutex_unlock(&keys->lock);
    return found;
}

size_t dgm_keys_count(dgm_keys *keys)
{
    pthread_mutex_lock(&keys->lock);
    const size_t count = keys->count;
    pthread_mutex_unlock(&keys->lock);
    return count;
}
