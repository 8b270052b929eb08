// SPDX-License-Identifier: MIT
// What tests of jobs share: lines of all kinds, what each becomes by itself, and somebody who watches a
// job and counts what is wrong with what is said. Functions fail the running cmocka test on errors,
// unless threads of the library call them. Include cmocka.h first.
#ifndef DGM_TESTS_UNIT_JOBS_H
#define DGM_TESTS_UNIT_JOBS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "dragoman/dragoman.h"
#include "engine.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"

// One sentence, several, none; capitals, a headline and what is no language, alone and among others.
static const char *const sentences[] = {"Good morning.",
                                        "The house is small.",
                                        "a",
                                        "",
                                        "My house is your house, he said.",
                                        "one two three four five six seven",
                                        "w",
                                        "Good. Morning. House.",
                                        "  My house.  Your house is small.\tGood morning. ",
                                        "MY HOUSE IS SMALL.",
                                        "MY HOUSE IS SMALL. Your house is not.",
                                        "My Small House Is Your House",
                                        "Good morning. %s The house is small. 12:30"};
enum { TEXTS = sizeof sentences / sizeof sentences[0], WATCHED_MOST = 64 };

static inline dgm_input input_of(const char *text)
{
    dgm_input in;
    dgm_input_default(&in);
    in.text = text;
    in.text_size = strlen(text);
    return in;
}

// So many lines, the texts in turn; the caller frees it.
static inline dgm_input *make_inputs(size_t count)
{
    dgm_input *in = calloc(count, sizeof *in);
    assert_non_null(in);
    for (size_t i = 0; i < count; i++) in[i] = input_of(sentences[i % TEXTS]);
    return in;
}

// What each of the texts becomes by itself; free_wanted gives it back.
static inline void make_wanted(dgm_translator *t, char **wanted)
{
    for (int i = 0; i < TEXTS; i++) {
        dgm_results *r = NULL;
        assert_int_equal(dgm_translate(t, &sentences[i], 1, &r, NULL), DGM_OK);
        wanted[i] = strdup(dgm_result_text(dgm_results_item(r, 0)));
        dgm_results_free(&r);
    }
}

static inline void free_wanted(char **wanted)
{
    for (int i = 0; i < TEXTS; i++) free(wanted[i]);
}

// ---- watching ------------------------------------------------------------------------------------

typedef struct watcher {
    dgm_job *job;
    char *const *wanted;
    int calls[WATCHED_MOST]; // of each line
    size_t done, lines, inside;
    int wrong;
    size_t cancel_at;         // lines after which it gives up; 0: never
    char *said[WATCHED_MOST]; // the last of each line, and how often the same was said again
    int again[WATCHED_MOST];
    int partials;
    pthread_mutex_t *gate;
} watcher;

// Every call has more words than the one before, but for the last, which may say the same.
static inline void hear_partial(void *user, size_t index, const char *text, size_t size)
{
    watcher *w = user;
    const char *before = w->said[index] ? w->said[index] : "";
    const size_t had = strlen(before);
    w->wrong += w->inside++ != 0 || strlen(text) != size || w->calls[index] != 0;
    w->wrong += w->again[index] != 0 || strncmp(text, before, had) != 0;
    w->wrong += had && had < size && text[had] != ' ' && text[had] != '\t';
    w->again[index] += had && had == size;
    free(w->said[index]);
    w->said[index] = strdup(text);
    w->partials++;
    w->inside--;
}

static inline void free_said(watcher *w)
{
    for (size_t i = 0; i < WATCHED_MOST; i++) free(w->said[i]);
}

static inline void hear_line(void *user, size_t index, const dgm_result *result)
{
    watcher *w = user;
    w->wrong += w->inside++ != 0 || index >= w->lines;
    if (w->gate) {
        pthread_mutex_lock(w->gate);
        pthread_mutex_unlock(w->gate);
    }
    w->calls[index]++;
    const bool late = result->flags & DGM_LINE_DEADLINE;
    const char *text = dgm_result_text(result);
    if (result->status == DGM_OK)
        w->wrong += (!late && strcmp(text, w->wanted[index % TEXTS]) != 0) || !w->said[index] ||
                    strcmp(text, w->said[index]) != 0;
    else
        w->wrong += result->status != DGM_ERR_CANCELLED || (!w->cancel_at && !late);
    w->inside--;
}

static inline void hear_progress(void *user, size_t done, size_t all)
{
    watcher *w = user;
    w->wrong += w->inside++ != 0 || all != w->lines || done != w->done + 1;
    w->done = done;
    if (w->done == w->cancel_at) dgm_cancel(w->job);
    w->inside--;
}

static inline dgm_watch watch_of(watcher *w)
{
    return (dgm_watch){sizeof(dgm_watch), w, hear_line, hear_progress, hear_partial, 0};
}

static inline void check_watcher(const watcher *w, const dgm_results *r)
{
    assert_int_equal(w->wrong, 0);
    assert_int_equal(w->done, w->lines);
    for (size_t i = 0; i < w->lines; i++) assert_int_equal(w->calls[i], 1);
    for (size_t i = 0; i < w->lines && !w->cancel_at; i++)
        assert_string_equal(dgm_result_text(dgm_results_item(r, i)), w->wanted[i % TEXTS]);
}

#endif
