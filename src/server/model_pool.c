// SPDX-License-Identifier: MIT
// The models of a server: files that are looked at again and again, and the lanes that translate with them; see
// model_pool.h and server_private.h.
#define _GNU_SOURCE
#include "server/model_pool.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dragoman/settings.h"
#include "server/pool_private.h"

enum { LANES_MAX = 16 };

// ---- lanes ----------------------------------------------------------------------------------------

static void link_lane(dgm_pool_models *p, dgm_lane *lane)
{
    lane->next = p->lanes;
    p->lanes = lane;
    p->lane_count++;
}

static void unlink_lane(dgm_pool_models *p, dgm_lane *lane)
{
    dgm_lane **at = &p->lanes;
    while (*at && *at != lane) at = &(*at)->next;
    if (!*at) return;
    *at = lane->next;
    p->lane_count--;
}

// Has it ended in failure? Lock of the pool held.
static bool has_failed(dgm_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    const bool failed = lane->state == DGM_LANE_FAILED;
    pthread_mutex_unlock(&lane->lock);
    return failed;
}

static dgm_lane *find_lane(const dgm_pool_models *p, const dgm_pool_model *m, const char *key)
{
    for (dgm_lane *lane = p->lanes; lane; lane = lane->next)
        if (lane->model == m && !lane->retired && strcmp(lane->key, key) == 0) return lane;
    return NULL;
}

// The lane of a model with these settings, made where there is none; counted. Lock of the pool held.
static dgm_status take_lane(dgm_server *s, dgm_pool_model *m, const char *key, dgm_lane **out, dgm_error *err)
{
    dgm_pool_models *p = s->models;
    dgm_lane *lane = find_lane(p, m, key);
    if (lane && has_failed(lane)) { // once more: files come back
        lane->retired = true;
        lane = NULL;
    }
    if (!lane) {
        DGM_FAIL_IF(p->lane_count >= LANES_MAX, err, DGM_ERR_CANCELLED,
                    "too many different settings are in use at once: try again later");
        DGM_TRY(dgm_lane_open(s, m, key, &lane, err));
        m->users++;
        p->loads++;
        link_lane(p, lane);
    }
    lane->users++;
    lane->last_used = dgm_now();
    *out = lane;
    return DGM_OK;
}

void dgm_pool_give(dgm_lane *lane)
{
    if (!lane) return;
    dgm_pool_models *p = lane->server->models;
    pthread_mutex_lock(&p->lock);
    lane->users--;
    lane->last_used = dgm_now();
    pthread_mutex_unlock(&p->lock);
}

// Numbers of a translator that is about to be closed stay in the sums.
static void keep_counts(dgm_pool_models *p, dgm_lane *lane)
{
    if (!lane->t) return;
    dgm_counters c;
    dgm_count(lane->t, &c);
    p->closed_steps += c.steps;
    p->closed_rows += c.rows;
}

static uint64_t all_bytes(const dgm_pool_models *p)
{
    uint64_t bytes = 0;
    for (dgm_lane *lane = p->lanes; lane; lane = lane->next) bytes += dgm_lane_bytes(lane);
    return bytes;
}

// A lane to close now; NULL: none. Those of models that are gone come first, then the one that was used longest ago
// while
// there are too many. Lock of the pool held.
static dgm_lane *to_close(dgm_server *s)
{
    dgm_pool_models *p = s->models;
    const bool over = s->options.memory > 0 && all_bytes(p) > (uint64_t)s->options.memory;
    const bool many = p->lane_count > LANES_MAX * 3 / 4;
    dgm_lane *oldest = NULL;
    for (dgm_lane *lane = p->lanes; lane; lane = lane->next) {
        if (lane->users) continue;
        if (lane->retired || lane->model->gone) return lane;
        if (!oldest || lane->last_used < oldest->last_used) oldest = lane;
    }
    return (over || many) && p->lane_count > 1 ? oldest : NULL; // the last one stays: it would only come back
}

void dgm_pool_sweep(dgm_server *s)
{
    dgm_pool_models *p = s->models;
    for (;;) {
        pthread_mutex_lock(&p->lock);
        dgm_lane *lane = to_close(s);
        if (lane) {
            if (!lane->retired && !lane->model->gone) p->evictions++;
            unlink_lane(p, lane);
            keep_counts(p, lane);
        }
        pthread_mutex_unlock(&p->lock);
        if (!lane) return;
        dgm_pool_model *m = lane->model;
        dgm_lane_close(lane);
        dgm_pool_drop(p, m);
    }
}

// ---- settings of a request ------------------------------------------------------------------------

bool dgm_pool_may_set(const dgm_setting *row)
{
    static const char *const own[] = {"nbest", "alignment", "word-scores", "source", "target"};
    if (!(row->flags & DGM_SETTING_OUTPUT) || row->flags & DGM_SETTING_NO_OPTION) return false;
    if (row->kind == DGM_SETTING_TEXT || row->kind == DGM_SETTING_LIST || row->kind == DGM_SETTING_SIZE) return false;
    if (row->group == DGM_GROUP_EVIDENCE || row->group == DGM_GROUP_SPEED) return false;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(row->name, own[i]) == 0) return false;
    return true;
}

typedef struct wish {
    char name[64], value[128];
} wish;

enum { WISHES_MAX = 32, BEAM_LEAST = 4, BEAM_MOST = 64 };

static dgm_status add_wish(wish *list, int *count, const char *name, const char *value, dgm_error *err)
{
    DGM_FAIL_IF(*count == WISHES_MAX || strlen(name) >= sizeof list->name || strlen(value) >= sizeof list->value ||
                    strpbrk(value, "\n="),
                err, DGM_ERR_ARGUMENT, "settings: too many, or too long a value of '%.40s'", name);
    snprintf(list[*count].name, sizeof list->name, "%s", name);
    snprintf(list[*count].value, sizeof list->value, "%s", value);
    ++*count;
    return DGM_OK;
}

static dgm_status asked_settings(const dgm_task_spec *spec, wish *list, int *count, dgm_error *err)
{
    for (size_t i = 0; i < spec->setting_count; i++) {
        const dgm_setting *row = dgm_setting_find(spec->settings[i].name);
        DGM_FAIL_IF(!row || !dgm_pool_may_set(row), err, DGM_ERR_ARGUMENT,
                    "settings: '%.60s' is none that a request may set (GET /v1/settings lists them)",
                    spec->settings[i].name);
        DGM_TRY(add_wish(list, count, row->name, spec->settings[i].value, err));
    }
    return DGM_OK;
}

static const char *wished(const wish *list, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return list[i].value;
    return NULL;
}

// What the request needs beside the server's settings.
static dgm_status needed_settings(const dgm_server *s, const dgm_task_spec *spec, wish *list, int *count,
                                  dgm_error *err)
{
    char number[32];
    DGM_TRY(asked_settings(spec, list, count, err));
    const char *beam = wished(list, *count, "beam");
    int64_t asked = 0;
    if (beam) DGM_TRY(dgm_number_integer("beam", beam, 1, BEAM_MOST, &asked, err));
    if (spec->nbest > 1) {
        const int own = s->settings.beam > BEAM_LEAST ? s->settings.beam : BEAM_LEAST;
        DGM_FAIL_IF(beam && asked < spec->nbest, err, DGM_ERR_ARGUMENT, "beam must be %d or more for %d alternatives",
                    spec->nbest, spec->nbest - 1);
        snprintf(number, sizeof number, "%d", spec->nbest > own ? spec->nbest : own);
        if (!beam) DGM_TRY(add_wish(list, count, "beam", number, err));
        snprintf(number, sizeof number, "%d", spec->nbest);
        DGM_TRY(add_wish(list, count, "nbest", number, err));
    }
    if (spec->alignment) DGM_TRY(add_wish(list, count, "alignment", "words", err));
    if (spec->token_scores) DGM_TRY(add_wish(list, count, "word-scores", "1", err));
    return DGM_OK;
}

static int by_name(const wish *a, const wish *b)
{
    const int order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->value, b->value);
}

static dgm_status write_key(const wish *list, int count, char *key, size_t size, dgm_error *err)
{
    size_t used = 0;
    key[0] = 0;
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(key + used, size - used, "%s%s=%s", i ? "\n" : "", list[i].name, list[i].value);
        DGM_FAIL_IF(used >= size, err, DGM_ERR_ARGUMENT, "settings: too many");
    }
    return DGM_OK;
}

// Writes the value as the table does; false: the server's own is the same, and nothing was wished for.
static bool is_other(const dgm_settings *own, const dgm_settings *asked, wish *w)
{
    char usual[sizeof w->value], value[sizeof w->value];
    if (dgm_settings_get(asked, w->name, value, sizeof value, NULL) != DGM_OK || strpbrk(value, "\n=")) return true;
    snprintf(w->value, sizeof w->value, "%s", value);
    return dgm_settings_get(own, w->name, usual, sizeof usual, NULL) != DGM_OK || strcmp(usual, value) != 0;
}

// The key of a lane: the settings by name, one a line, each in one way of writing it and only where it differs from
// the server's, so that whoever asks for the same translations gets the same translator.
static dgm_status make_key(const dgm_server *s, const dgm_task_spec *spec, char *key, size_t size, dgm_error *err)
{
    wish list[WISHES_MAX + 4];
    int count = 0, kept = 0;
    DGM_TRY(needed_settings(s, spec, list, &count, err));
    for (int i = 1; i < count; i++) // few: by insertion
        for (int k = i; k > 0 && by_name(&list[k], &list[k - 1]) < 0; k--) {
            const wish other = list[k];
            list[k] = list[k - 1];
            list[k - 1] = other;
        }
    DGM_TRY(write_key(list, count, key, size, err));
    char words[LANE_KEY_MAX]; // that settings borrow
    snprintf(words, sizeof words, "%s", key);
    dgm_settings asked = s->settings;
    DGM_TRY(dgm_lane_settings(words, &asked, err));
    for (int i = 0; i < count; i++)
        if (is_other(&s->settings, &asked, &list[i])) list[kept++] = list[i];
    return write_key(list, kept, key, size, err);
}

static dgm_status take_way(dgm_server *s, const dgm_task_spec *spec, dgm_pool_way *way, dgm_error *err)
{
    dgm_pool_models *p = s->models;
    char key[LANE_KEY_MAX];
    dgm_task_spec plain = {0}; // of the first of two steps
    *way = (dgm_pool_way){0};
    DGM_TRY(make_key(s, spec, key, sizeof key, err));
    pthread_mutex_lock(&p->lock);
    dgm_pool_model *first = NULL, *second = NULL;
    dgm_status st = dgm_pool_route(p, spec, way, &first, &second, err);
    if (st == DGM_OK && second) {
        st = take_lane(s, second, key, &way->second, err);
        if (st == DGM_OK) st = make_key(s, &plain, key, sizeof key, err);
    }
    if (st == DGM_OK) st = take_lane(s, first, key, &way->first, err);
    pthread_mutex_unlock(&p->lock);
    if (st != DGM_OK) {
        dgm_pool_give(way->second);
        way->second = NULL;
    }
    return st;
}

// Where there are too many lanes, those that nobody uses any more go at once.
dgm_status dgm_pool_take(dgm_server *s, const dgm_task_spec *spec, dgm_pool_way *way, dgm_error *err)
{
    dgm_status st = take_way(s, spec, way, err);
    if (st != DGM_ERR_CANCELLED) return st;
    dgm_pool_sweep(s);
    return take_way(s, spec, way, err);
}

// ---- replacement ----------------------------------------------------------------------------------

static dgm_lane_state wait_loaded(dgm_lane *lane, dgm_error *err)
{
    for (;;) {
        pthread_mutex_lock(&lane->lock);
        const dgm_lane_state state = lane->state;
        if (state == DGM_LANE_FAILED) *err = lane->error;
        pthread_mutex_unlock(&lane->lock);
        if (state != DGM_LANE_LOADING) return state;
        usleep(5000);
    }
}

// The keys of the lanes of a model, to be opened for the one that replaces it.
static int lane_keys(dgm_pool_models *p, const dgm_pool_model *m, char (*keys)[LANE_KEY_MAX])
{
    int count = 0;
    pthread_mutex_lock(&p->lock);
    for (dgm_lane *lane = p->lanes; lane && count < LANES_MAX; lane = lane->next)
        if (lane->model == m && !lane->retired) snprintf(keys[count++], LANE_KEY_MAX, "%s", lane->key);
    pthread_mutex_unlock(&p->lock);
    return count;
}

dgm_status dgm_pool_replace(dgm_server *s, dgm_pool_model *old, dgm_pool_model *fresh, dgm_error *err)
{
    dgm_pool_models *p = s->models;
    char(*keys)[LANE_KEY_MAX] = dgm_calloc(LANES_MAX, sizeof *keys);
    dgm_lane *opened[LANES_MAX];
    int count = 0;
    if (!keys) return dgm_no_memory(err);
    const int wanted = lane_keys(p, old, keys);
    dgm_status st = DGM_OK;
    while (st == DGM_OK && count < wanted) {
        st = dgm_lane_open(s, fresh, keys[count], &opened[count], err);
        if (st == DGM_OK && wait_loaded(opened[count++], err) == DGM_LANE_FAILED) st = DGM_ERR_FORMAT;
    }
    dgm_free(keys);
    if (st != DGM_OK) {
        while (count) dgm_lane_close(opened[--count]);
        return st;
    }
    pthread_mutex_lock(&p->lock);
    old->gone = true;
    for (int i = 0; i < count; i++) {
        opened[i]->last_used = dgm_now();
        fresh->users++;
        link_lane(p, opened[i]);
    }
    p->reloads++;
    pthread_mutex_unlock(&p->lock);
    return DGM_OK;
}

// ---- numbers --------------------------------------------------------------------------------------

void dgm_pool_each(dgm_server *s, void (*fn)(dgm_lane *lane, void *cookie), void *cookie)
{
    dgm_pool_models *p = s->models;
    pthread_mutex_lock(&p->lock);
    for (dgm_lane *lane = p->lanes; lane; lane = lane->next) fn(lane, cookie);
    pthread_mutex_unlock(&p->lock);
}

void dgm_pool_each_model(dgm_server *s, void (*fn)(const dgm_pool_model *m, bool loaded, void *cookie), void *cookie)
{
    dgm_pool_models *p = s->models;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->count; i++) {
        bool loaded = false;
        for (dgm_lane *lane = p->lanes; lane; lane = lane->next) loaded = loaded || lane->model == p->items[i];
        fn(p->items[i], loaded, cookie);
    }
    pthread_mutex_unlock(&p->lock);
}

void dgm_pool_count(dgm_server *s, dgm_server_counters *c)
{
    dgm_pool_models *p = s->models;
    pthread_mutex_lock(&p->lock);
    c->steps = p->closed_steps;
    c->rows = p->closed_rows;
    c->loads = p->loads;
    c->reloads = p->reloads;
    c->evictions = p->evictions;
    c->now.models = p->count;
    c->now.translators = p->lane_count;
    c->now.bytes = all_bytes(p);
    for (dgm_lane *lane = p->lanes; lane; lane = lane->next) {
        pthread_mutex_lock(&lane->lock);
        dgm_counters n = {.size = sizeof n};
        if (lane->t) dgm_count(lane->t, &n);
        c->steps += n.steps;
        c->rows += n.rows;
        c->now.queued += lane->turns.waiting;
        c->now.running += lane->running;
        pthread_mutex_unlock(&lane->lock);
    }
    pthread_mutex_unlock(&p->lock);
}

// ---- opening and closing --------------------------------------------------------------------------

// The first model is loaded when the server starts, so that the first request does not wait for it.
static dgm_status warm_up(dgm_server *s, dgm_error *err)
{
    dgm_pool_models *p = s->models;
    dgm_lane *lane = NULL;
    pthread_mutex_lock(&p->lock);
    dgm_status st = p->count ? take_lane(s, p->items[0], "", &lane, err)
                             : dgm_fail(err, DGM_ERR_IO, "there is no model to serve: name one, or a folder of them");
    pthread_mutex_unlock(&p->lock);
    if (st != DGM_OK) return st;
    if (wait_loaded(lane, err) == DGM_LANE_FAILED) st = DGM_ERR_FORMAT;
    dgm_pool_give(lane);
    return st;
}

dgm_status dgm_pool_models_open(dgm_server *s, dgm_error *err)
{
    s->models = dgm_calloc(1, sizeof *s->models);
    if (!s->models) return dgm_no_memory(err);
    pthread_mutex_init(&s->models->lock, NULL);
    return dgm_pool_find_files(s, true, err);
}

dgm_status dgm_pool_models_warm(dgm_server *s, dgm_error *err)
{
    // A folder may be empty for now.
    return s->models->count == 0 && s->options.models_dir ? DGM_OK : warm_up(s, err);
}

size_t dgm_pool_files(const dgm_server *s)
{
    return s->models->count;
}

const char *dgm_pool_file(const dgm_server *s, size_t index)
{
    return s->models->items[index]->path;
}

void dgm_pool_models_close(dgm_server *s)
{
    dgm_pool_models *p = s->models;
    if (!p) return;
    while (p->lanes) {
        dgm_lane *lane = p->lanes;
        p->lanes = lane->next;
        dgm_pool_model *m = lane->model;
        dgm_lane_close(lane);
        dgm_pool_drop(p, m);
    }
    for (size_t i = 0; i < p->count; i++) dgm_pool_drop(p, p->items[i]);
    dgm_free(p->items);
    dgm_pool_release(&p->listing);
    dgm_free(p->bad);
    pthread_mutex_destroy(&p->lock);
    dgm_free(p);
    s->models = NULL;
}
