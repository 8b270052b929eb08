// SPDX-License-Identifier: MIT
// bench/stream: when the words of a translation are told while it is searched for (dgm_watch.partial).
//
//     stream MODEL [NAME=VALUE...] [settle=N] [output=FILE] < TEXT
//
// Settings by name, and dgm_watch.settle; translations go to FILE. One line at a time, one thread. For every line a row
// "words steps first_step ms first_ms told taken_back": words of the source; steps of its search and the one at which
// the first word was told (the number behind the last where none was before the end); the same in milliseconds of CPU
// time; how often something was told; 1 where something was taken back. Steps do not depend on the machine.
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dragoman/dragoman.h"
#include "dragoman/settings.h"

typedef struct view {
    dgm_translator *t;
    uint64_t steps; // before the line
    double begin;
    uint64_t first_step;
    double first;
    int told, taken_back;
    char *text; // told last
} view;

// CPU time of all threads: another program on the machine does not change it.
static double spent(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t steps_of(dgm_translator *t)
{
    dgm_counters c;
    dgm_count(t, &c);
    return c.steps;
}

static void on_partial(void *user, size_t index, const char *text, size_t size)
{
    view *v = user;
    (void)index;
    if (v->text && strncmp(text, v->text, strlen(v->text)) != 0) v->taken_back = 1;
    free(v->text);
    v->text = strdup(text);
    if (!v->told && size) {
        v->first_step = steps_of(v->t) - v->steps + 1; // the step at hand is counted behind it
        v->first = spent() - v->begin;
    }
    v->told++;
}

static int count_words(const char *line)
{
    int words = 0;
    for (; *line; line++)
        if (!isspace((unsigned char)*line) && (line[1] == 0 || isspace((unsigned char)line[1]))) words++;
    return words;
}

static dgm_status watch_line(dgm_translator *t, const char *line, int settle, FILE *out, dgm_error *error)
{
    view v = {.t = t, .steps = steps_of(t), .begin = spent()};
    const dgm_watch watch = {.size = sizeof watch, .user = &v, .partial = on_partial, .settle = settle};
    const dgm_input input = {.size = sizeof input, .text = line, .text_size = strlen(line)};
    dgm_job *job = NULL;
    dgm_results *results = NULL;
    dgm_status st = dgm_submit_watched(t, &input, 1, &watch, &job, error);
    if (st == DGM_OK) st = dgm_wait(&job, &results, error);
    const double all = spent() - v.begin;
    const uint64_t steps = steps_of(t) - v.steps;
    if (v.first_step > steps) v.first_step = steps + 1;
    if (st == DGM_OK)
        printf("%d %llu %llu %.3f %.3f %d %d\n", count_words(line), (unsigned long long)steps,
               (unsigned long long)v.first_step, all * 1000, v.first * 1000, v.told, v.taken_back);
    if (st == DGM_OK && out) fprintf(out, "%s\n", v.text ? v.text : "");
    dgm_results_free(&results);
    free(v.text);
    return st;
}

int main(int argc, char **argv)
{
    dgm_settings settings;
    dgm_translator *t = NULL;
    dgm_error error;
    char *line = NULL;
    size_t room = 0;
    int settle = 0;
    FILE *out = NULL;
    if (argc < 2) {
        fprintf(stderr, "stream: usage: stream MODEL [NAME=VALUE...] < TEXT\n");
        return 2;
    }
    dgm_settings_default(&settings);
    settings.threads = 1;
    dgm_status st = dgm_settings_set(&settings, "no-protect", "1", &error);
    for (int i = 2; i < argc && st == DGM_OK; i++) {
        char *value = strchr(argv[i], '=');
        if (value) *value++ = 0;
        if (strcmp(argv[i], "settle") == 0)
            settle = value ? atoi(value) : 0;
        else if (strcmp(argv[i], "output") == 0)
            out = fopen(value ? value : "", "w");
        else
            st = dgm_settings_set(&settings, argv[i], value ? value : "1", &error);
    }
    if (st == DGM_OK) st = dgm_open(&t, argv[1], &settings, &error);
    for (ssize_t n; st == DGM_OK && (n = getline(&line, &room, stdin)) >= 0;) {
        line[strcspn(line, "\n")] = 0;
        st = watch_line(t, line, settle, out, &error);
    }
    if (out && fclose(out) != 0) fprintf(stderr, "stream: the translations could not be written\n");
    free(line);
    dgm_close(&t);
    if (st != DGM_OK) fprintf(stderr, "stream: %s\n", error.text);
    return st == DGM_OK ? 0 : 1;
}
