// SPDX-License-Identifier: MIT
// Progress of a command; see progress.h.
//
// Lines are counted when they are finished; the time that is left is guessed from the share of the work,
// which long lines have more of.
#define _GNU_SOURCE
#include "io/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dragoman/common.h"
#include "io/interrupt.h"
#include "io/lineio.h"

static void begin(progress *p, progress_kind kind)
{
    static const double every[] = {0, 0.1, 60, 1};
    memset(p, 0, sizeof *p);
    p->kind = kind;
    p->every = every[kind];
    p->start = p->last = seconds();
}

void progress_start(progress *p, bool wanted)
{
    begin(p, wanted && isatty(2) ? PROGRESS_BAR : PROGRESS_OFF);
}

bool progress_choose(progress *p, const char *asked, bool conversation, bool quiet)
{
    static const char *const names[] = {"off", "bar", "log", "json"};
    progress_kind kind = !isatty(2) ? PROGRESS_LOG : conversation ? PROGRESS_OFF : PROGRESS_BAR;
    if (!asked) {
        begin(p, quiet ? PROGRESS_OFF : kind);
        return true;
    }
    const size_t n = strcspn(asked, ":");
    bool known = n == 4 && strncmp(asked, "auto", n) == 0;
    for (int i = 0; i < 4; i++)
        if (strlen(names[i]) == n && strncmp(asked, names[i], n) == 0) {
            known = true;
            kind = (progress_kind)i;
        }
    begin(p, kind);
    return known && (!asked[n] || dgm_number_real("SECONDS", asked + n + 1, 0, 86400, &p->every,
                                                  NULL) == DGM_OK);
}

// ---- what is said -----------------------------------------------------------------------------

number_text grouped(uint64_t n)
{
    char digits[24];
    number_text out;
    const int size = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    char *to = out.text;
    for (int i = 0; i < size; i++) {
        if (i && (size - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = 0;
    return out;
}

static number_text duration(double s)
{
    number_text out;
    if (s < 9.95)
        snprintf(out.text, sizeof out.text, "%.1f s", s);
    else if (s < 119.5)
        snprintf(out.text, sizeof out.text, "%.0f s", s);
    else if (s < 2 * 3600)
        snprintf(out.text, sizeof out.text, "%.0f:%02.0f min", floor(s / 60), floor(fmod(s, 60)));
    else
        snprintf(out.text, sizeof out.text, "%.0f:%02.0f h", floor(s / 3600),
                 floor(fmod(s, 3600) / 60));
    return out;
}

// Seconds that are left; negative: nobody knows.
static double remaining(const progress *p, const progress_state *now, double elapsed)
{
    const double made = now->share - p->begin;
    if (now->share < 0 || now->share > 1 || made <= 0) return -1;
    return elapsed * (1 - now->share) / made;
}

// The share that people see: of the lines where their number is known.
static double visible(const progress_state *now)
{
    double share = now->share;
    if (now->total > 0) share = (double)now->lines / now->total;
    return share > 1 ? 1 : share;
}

static void show_bar(progress *p, const progress_state *now, double elapsed, double rate)
{
    enum { BAR = 24 };
    const double share = visible(now), left = remaining(p, now, elapsed);
    if (now->stage)
        fprintf(stderr, "\r%s", now->stage);
    else
        fprintf(stderr, "\r%s lines, %.1f lines/s", grouped(now->lines).text, rate);
    if (now->tokens) fprintf(stderr, ", %.0f tokens/s", (double)now->tokens / elapsed);
    if (share >= 0) {
        const int full = (int)(share * BAR);
        fprintf(stderr, " [%.*s%*s] %3.0f %%", full, "########################", BAR - full, "",
                share * 100);
    }
    if (left >= 0) fprintf(stderr, ", %s left ", duration(left).text);
    fprintf(stderr, "\033[K");
    p->shown = true;
}

static void show_log(const progress *p, const progress_state *now, double elapsed, double rate)
{
    const double share = visible(now), left = remaining(p, now, elapsed);
    fprintf(stderr, "dragoman: %s lines", grouped(now->lines).text);
    if (share >= 0) fprintf(stderr, ", %.0f %%", share * 100);
    fprintf(stderr, ", %.1f lines/s", rate);
    if (left >= 0) fprintf(stderr, ", %s left", duration(left).text);
    fprintf(stderr, "\n");
}

static void real_or_null(const char *name, double v)
{
    if (v < 0)
        fprintf(stderr, ",\"%s\":null", name);
    else
        fprintf(stderr, ",\"%s\":%.3f", name, v);
}

static void show_json(const progress *p, const progress_state *now, double elapsed, double rate,
                      const char *state)
{
    fprintf(stderr, "{\"state\":\"%s\",\"lines\":%llu,\"failed\":%llu,\"total\":", state,
            (unsigned long long)now->lines, (unsigned long long)now->failed);
    fprintf(stderr, now->total < 0 ? "null" : "%.0f", now->total);
    real_or_null("share", now->share);
    real_or_null("seconds", elapsed);
    real_or_null("seconds_left", remaining(p, now, elapsed));
    real_or_null("lines_per_second", rate);
    fprintf(stderr, "}\n");
}

void progress_report(progress *p, const progress_state *now)
{
    const double time = seconds(), elapsed = time - p->start + 1e-9;
    if (p->kind == PROGRESS_OFF || time - p->last < p->every) return;
    const double rate = (double)(now->lines - p->before) / elapsed;
    p->last = time;
    p->said = true;
    if (p->kind == PROGRESS_BAR) show_bar(p, now, elapsed, rate);
    if (p->kind == PROGRESS_LOG) show_log(p, now, elapsed, rate);
    if (p->kind == PROGRESS_JSON) show_json(p, now, elapsed, rate, "running");
}

void progress_show(progress *p, uint64_t lines, double share)
{
    const progress_state now = {.lines = lines, .total = -1, .share = share};
    progress_report(p, &now);
}

int progress_tick(void *p, const char *stage, double share)
{
    const progress_state now = {.total = -1, .share = share, .stage = stage};
    progress_report(p, &now);
    return interrupted; // where a command has called interrupt_catch
}

void progress_nap(void)
{
    struct timespec t = {0, 10 * 1000 * 1000};
    nanosleep(&t, NULL);
}

void progress_end(progress *p)
{
    if (p->shown) fprintf(stderr, "\r\033[K");
    p->shown = false;
}

void progress_close(progress *p, const progress_state *now, const char *how)
{
    const double elapsed = seconds() - p->start + 1e-9;
    progress_end(p);
    if (p->kind == PROGRESS_JSON)
        show_json(p, now, elapsed, (double)(now->lines - p->before) / elapsed, how);
    else if (p->kind != PROGRESS_OFF)
        fprintf(stderr, "dragoman: %s line%s, %s failed, %s\n", grouped(now->lines).text,
                now->lines == 1 ? "" : "s", grouped(now->failed).text, duration(elapsed).text);
}
