// SPDX-License-Identifier: MIT
// Glossaries by owner; see glossary_store.h.
#define _GNU_SOURCE
#include "server/glossary_store.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"
#include "dragoman/common.h"
#include "server/api_keys.h"
#include "server/random_id.h"

typedef struct glossary {
    struct glossary *next; // newer ones
    char id[DGM_GLOSSARY_ID + 1], owner[DGM_KEY_MAX], name[DGM_GLOSSARY_NAME + 1], created[32];
    dgm_dictionary *items;
    size_t count, cap;
} glossary;

struct dgm_glossaries {
    pthread_mutex_t lock;
    glossary *first;
    size_t bytes, count;
};

static void free_dictionaries(dgm_dictionary *list, size_t count)
{
    for (size_t i = 0; i < count; i++) dgm_dictionary_free(&list[i]);
}

static void free_glossary(glossary *g)
{
    free_dictionaries(g->items, g->count);
    dgm_free(g->items);
    dgm_free(g);
}

dgm_status dgm_glossaries_open(dgm_glossaries **out, dgm_error *err)
{
    *out = dgm_calloc(1, sizeof **out);
    if (!*out) return dgm_no_memory(err);
    pthread_mutex_init(&(*out)->lock, NULL);
    return DGM_OK;
}

void dgm_glossaries_close(dgm_glossaries **store)
{
    if (!*store) return;
    for (glossary *g = (*store)->first, *next; g; g = next) {
        next = g->next;
        free_glossary(g);
    }
    pthread_mutex_destroy(&(*store)->lock);
    dgm_free(*store);
    *store = NULL;
}

// ---- looking; the lock is held --------------------------------------------------------------------

static glossary *find(const dgm_glossaries *s, const char *owner, const char *id)
{
    for (glossary *g = s->first; g; g = g->next)
        if (strcasecmp(g->id, id) == 0 && strcmp(g->owner, owner) == 0) return g;
    return NULL;
}

static dgm_dictionary *direction(const glossary *g, const char *source, const char *target)
{
    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->items[i].source, source) == 0 && strcmp(g->items[i].target, target) == 0) return &g->items[i];
    return NULL;
}

static dgm_status describe(const glossary *g, dgm_glossary_info *info, dgm_error *err)
{
    if (!g) return dgm_fail(err, DGM_ERR_ARGUMENT, "there is no such glossary");
    info->directions = dgm_calloc(g->count + 1, sizeof *info->directions);
    if (!info->directions) return dgm_no_memory(err);
    memcpy(info->id, g->id, sizeof info->id);
    memcpy(info->name, g->name, sizeof info->name);
    memcpy(info->created, g->created, sizeof info->created);
    info->count = g->count;
    for (size_t i = 0; i < g->count; i++) {
        memcpy(info->directions[i].source, g->items[i].source, sizeof g->items[i].source);
        memcpy(info->directions[i].target, g->items[i].target, sizeof g->items[i].target);
        info->directions[i].entries = g->items[i].sources.count;
    }
    return DGM_OK;
}

void dgm_glossary_info_free(dgm_glossary_info *info)
{
    dgm_free(info->directions);
    info->directions = NULL;
}

dgm_status dgm_glossaries_at(dgm_glossaries *s, const char *owner, size_t index, dgm_glossary_info *info,
                             dgm_error *err)
{
    pthread_mutex_lock(&s->lock);
    const glossary *g = s->first;
    for (; g; g = g->next)
        if (strcmp(g->owner, owner) == 0 && index-- == 0) break;
    const dgm_status st = describe(g, info, err);
    pthread_mutex_unlock(&s->lock);
    return st;
}

dgm_status dgm_glossaries_find(dgm_glossaries *s, const char *owner, const char *id, dgm_glossary_info *info,
                               dgm_error *err)
{
    pthread_mutex_lock(&s->lock);
    const dgm_status st = describe(find(s, owner, id), info, err);
    pthread_mutex_unlock(&s->lock);
    return st;
}

// The book of a dictionary, where a change has taken it away.
static dgm_status make_book(dgm_dictionary *d, dgm_error *err)
{
    if (d->book) return DGM_OK;
    const size_t count = d->sources.count;
    // Sources of a dictionary lie back to back, without an end of their own.
    char *bytes = dgm_malloc(d->sources.byte_count + count + 1), *to = bytes;
    dgm_term *terms = dgm_malloc((count + 1) * sizeof *terms);
    for (size_t i = 0; bytes && terms && i < count; i++) {
        const dgm_text source = dgm_words_spell(&d->sources, (uint32_t)i);
        terms[i] = (dgm_term){memcpy(to, source.data, source.size), d->targets[i]};
        to[source.size] = 0;
        to += source.size + 1;
    }
    const dgm_status st =
        bytes && terms ? dgm_termbook_make(&d->book, terms, count, err) : dgm_no_memory(err);
    dgm_free(bytes);
    dgm_free(terms);
    return st;
}

bool dgm_glossaries_each(dgm_glossaries *s, const char *owner, const char *id, const char *source, const char *target,
                         void (*fn)(void *cookie, dgm_text source, const char *target), void *cookie)
{
    pthread_mutex_lock(&s->lock);
    const glossary *g = find(s, owner, id);
    const dgm_dictionary *d = g ? direction(g, source, target) : NULL;
    for (size_t i = 0; d && i < d->sources.count; i++)
        fn(cookie, dgm_words_spell(&d->sources, (uint32_t)i), d->targets[i]);
    pthread_mutex_unlock(&s->lock);
    return d != NULL;
}

dgm_status dgm_glossaries_book(dgm_glossaries *s, const char *owner, const char *id, const char *source,
                               const char *target, dgm_termbook **book, dgm_error *err)
{
    pthread_mutex_lock(&s->lock);
    const glossary *g = find(s, owner, id);
    dgm_dictionary *d = g ? direction(g, source, target) : NULL;
    dgm_status st = d ? DGM_OK : dgm_fail(err, DGM_ERR_ARGUMENT, "there is no such glossary");
    if (d) st = make_book(d, err);
    if (st == DGM_OK) *book = dgm_termbook_hold(d->book);
    pthread_mutex_unlock(&s->lock);
    return st;
}

// ---- changing; the lock is held -------------------------------------------------------------------

static dgm_status merge(dgm_dictionary *into, const dgm_dictionary *from, dgm_error *err)
{
    for (size_t i = 0; i < from->sources.count; i++)
        DGM_TRY(dgm_dictionary_put(into, dgm_words_spell(&from->sources, (uint32_t)i), from->targets[i], err));
    return DGM_OK;
}

// Takes a dictionary over: d is empty afterwards.
static dgm_status take(dgm_glossaries *s, glossary *g, dgm_dictionary *d, bool merges, dgm_error *err)
{
    dgm_dictionary *old = direction(g, d->source, d->target);
    DGM_FAIL_IF(s->bytes + d->bytes > DGM_GLOSSARIES_BYTES, err, DGM_ERR_UNSUPPORTED, "glossaries are too large");
    if (old && merges) {
        s->bytes -= old->bytes;
        const dgm_status st = merge(old, d, err);
        s->bytes += old->bytes;
        return st == DGM_OK ? make_book(old, err) : st;
    }
    if (!old) {
        DGM_TRY(dgm_grow(&g->items, &g->cap, g->count + 1, sizeof *g->items, err));
        old = &g->items[g->count++];
        *old = (dgm_dictionary){.source = ""};
    }
    s->bytes += d->bytes - old->bytes;
    dgm_dictionary_free(old);
    *old = *d;
    *d = (dgm_dictionary){.source = ""};
    return make_book(old, err);
}

static dgm_status change(dgm_glossaries *s, glossary *g, const char *name, dgm_dictionary *list, size_t count,
                         bool merges, dgm_error *err)
{
    for (size_t i = 0; i < count; i++) DGM_TRY(take(s, g, &list[i], merges, err));
    if (name) snprintf(g->name, sizeof g->name, "%s", name);
    return DGM_OK;
}

static void write_time(char *out, size_t size)
{
    struct timespec now;
    struct tm t;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &t);
    const size_t n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &t);
    snprintf(out + n, size - n, ".%03dZ", (int)(now.tv_nsec / 1000000));
}

dgm_status dgm_glossaries_add(dgm_glossaries *s, const char *owner, const char *name, dgm_dictionary *list,
                              size_t count, char id[DGM_GLOSSARY_ID + 1], dgm_error *err)
{
    glossary *g = dgm_calloc(1, sizeof *g);
    dgm_status st = g ? DGM_OK : dgm_no_memory(err);
    if (g) {
        dgm_random_uuid(g->id);
        snprintf(g->owner, sizeof g->owner, "%s", owner);
        write_time(g->created, sizeof g->created);
        memcpy(id, g->id, sizeof g->id);
        pthread_mutex_lock(&s->lock);
        if (s->count == DGM_GLOSSARY_MOST) st = dgm_fail(err, DGM_ERR_UNSUPPORTED, "there are too many glossaries");
        const size_t before = s->bytes;
        if (st == DGM_OK) st = change(s, g, name, list, count, true, err);
        if (st == DGM_OK) {
            glossary **at = &s->first;
            while (*at) at = &(*at)->next;
            *at = g;
            s->count++;
        } else {
            s->bytes = before;
        }
        pthread_mutex_unlock(&s->lock);
    }
    free_dictionaries(list, count);
    if (g && st != DGM_OK) free_glossary(g);
    return st;
}

dgm_status dgm_glossaries_change(dgm_glossaries *s, const char *owner, const char *id, const char *name,
                                 dgm_dictionary *list, size_t count, bool merges, dgm_error *err)
{
    pthread_mutex_lock(&s->lock);
    glossary *g = find(s, owner, id);
    const dgm_status st = g ? change(s, g, name, list, count, merges, err)
                            : dgm_fail(err, DGM_ERR_ARGUMENT, "there is no such glossary");
    pthread_mutex_unlock(&s->lock);
    free_dictionaries(list, count);
    return st;
}

static bool remove_direction(dgm_glossaries *s, glossary *g, const char *source, const char *target)
{
    dgm_dictionary *d = direction(g, source, target);
    if (!d) return false;
    s->bytes -= d->bytes;
    dgm_dictionary_free(d);
    memmove(d, d + 1, (size_t)(&g->items[--g->count] - d) * sizeof *d);
    return true;
}

bool dgm_glossaries_remove(dgm_glossaries *s, const char *owner, const char *id, const char *source,
                           const char *target)
{
    pthread_mutex_lock(&s->lock);
    glossary *g = find(s, owner, id);
    bool found = g != NULL;
    if (g && source) found = remove_direction(s, g, source, target);
    if (g && !source) {
        glossary **at = &s->first;
        while (*at != g) at = &(*at)->next;
        *at = g->next;
        s->count--;
        for (size_t i = 0; i < g->count; i++) s->bytes -= g->items[i].bytes;
        free_glossary(g);
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}
