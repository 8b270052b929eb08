// SPDX-License-Identifier: MIT
// See lmbr_trials.h. A line that was cut short does not count, nor what is behind it.
#define _GNU_SOURCE
#include "translate/lmbr_trials.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/lineio.h"
#include "options.h"

static const char magic[] = "dragoman trials 1";

static char *path_of(const char *output)
{
    const size_t room = strlen(output) + sizeof ".trials";
    char *path = need(malloc(room));
    snprintf(path, room, "%s.trials", output);
    return path;
}

bool trials_left(const char *output)
{
    char *path = path_of(output);
    const bool left = access(path, F_OK) == 0;
    free(path);
    return left;
}

static bool complain(const trial_file *t, const char *what)
{
    fail(EXIT_RUNTIME, "cannot %s '%s': %s", what, t->path, strerror(errno));
    return false;
}

// A trial's line without its check.
static int spell(const dgm_lmbr_trial *x, char *line, size_t size)
{
    return snprintf(line, size, "%.9g %.9g %.9g %.9g %.17g", (double)x->weights.lambda, (double)x->weights.scale,
                    (double)x->weights.p, (double)x->weights.r, x->bleu);
}

static bool read_trial(const char *line, dgm_lmbr_trial *x)
{
    char again[200];
    uint32_t check = 0;
    *x = (dgm_lmbr_trial){.size = sizeof *x};
    if (sscanf(line, "%f %f %f %f %lf %" SCNu32, &x->weights.lambda, &x->weights.scale, &x->weights.p, &x->weights.r,
               &x->bleu, &check) != 6)
        return false;
    return checksum(0, again, (size_t)spell(x, again, sizeof again)) == check;
}

static void keep(trial_file *t, const dgm_lmbr_trial *x)
{
    if (t->count == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->known = need(realloc(t->known, t->cap * sizeof *t->known));
    }
    t->known[t->count++] = *x;
}

// What an interrupted run left; *end: behind its last whole line. False after a message.
static bool read_all(trial_file *t, const char *output, uint32_t check, long *end)
{
    char line[256];
    unsigned long was = 0;
    FILE *f = fopen(t->path, "re");
    *end = 0;
    if (!f) return errno == ENOENT || complain(t, "read");
    const bool known = fgets(line, sizeof line, f) && strncmp(line, magic, strlen(magic)) == 0 &&
                       sscanf(line + strlen(magic), " %lu", &was) == 1;
    dgm_lmbr_trial x;
    if (known) *end = ftell(f);
    while (known && was == check && fgets(line, sizeof line, f) && strchr(line, '\n') && read_trial(line, &x)) {
        keep(t, &x);
        *end = ftell(f);
    }
    fclose(f);
    if (!known) fail(EXIT_RUNTIME, "cannot resume '%s': '%s' is damaged", output, t->path);
    else if (was != check)
        fail(EXIT_RUNTIME, "cannot resume '%s': lines, models or options are not those of the interrupted run", output);
    return known && was == check;
}

bool trials_open(trial_file *t, const char *output, uint32_t check, bool resume)
{
    long end = 0;
    t->path = path_of(output);
    if (resume && !read_all(t, output, check, &end)) return false;
    if (end && truncate(t->path, end) != 0) return complain(t, "write");
    t->file = fopen(t->path, end ? "ae" : "we");
    if (!t->file) return complain(t, "write");
    if (!end) fprintf(t->file, "%s %lu\n", magic, (unsigned long)check);
    return fflush(t->file) == 0 || complain(t, "write");
}

bool trials_add(trial_file *t, const dgm_lmbr_trial *trial)
{
    char line[200];
    if (!t->file) return true;
    const int n = spell(trial, line, sizeof line);
    fprintf(t->file, "%s %" PRIu32 "\n", line, checksum(0, line, (size_t)n));
    return fflush(t->file) == 0 || complain(t, "write");
}

void trials_close(trial_file *t, bool done)
{
    if (t->file) fclose(t->file);
    if (t->file && done) unlink(t->path);
    free(t->path);
    free(t->known);
    memset(t, 0, sizeof *t);
}
