// SPDX-License-Identifier: MIT
// How far a command has come, on standard error: a bar on a terminal, lines of a log, or JSON.
#ifndef DGM_APPS_CLI_IO_PROGRESS_H
#define DGM_APPS_CLI_IO_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum progress_kind {
    PROGRESS_OFF,
    PROGRESS_BAR,
    PROGRESS_LOG,
    PROGRESS_JSON
} progress_kind;

typedef struct progress {
    progress_kind kind;
    bool shown;           // a bar stands on the terminal
    bool said;            // something was shown at all
    double start, last, every; // seconds between two reports
    double begin;         // share that was done before the start, and lines
    uint64_t before;
} progress;

typedef struct progress_state {
    uint64_t lines, failed; // finished
    double total;           // lines in all, about; negative: not known
    double share;           // of the work that is done, for the time that is left; likewise
    uint64_t tokens;        // made since the start, 0: not shown
    const char *stage;      // of work that is not counted in lines: what is done now; else NULL
} progress_state;

// A bar if wanted and standard error is a terminal.
void progress_start(progress *p, bool wanted);
// What --progress asks for: auto, bar, log, json or off, and ":SECONDS" between two reports. auto
// (NULL): a bar on a terminal unless somebody types or reads there, else a log; quiet: nothing.
// False: it is none of these.
bool progress_choose(progress *p, const char *asked, bool conversation, bool quiet);
void progress_report(progress *p, const progress_state *now); // as often as p->every says
void progress_show(progress *p, uint64_t lines, double share);
int progress_tick(void *p, const char *stage, double share); // dgm_progress: goes on
void progress_nap(void);                                     // a hundredth of a second
void progress_end(progress *p);                              // takes the bar away
// The last line, "2,000 lines, 0 failed, 14 s"; how: "complete", "interrupted" or "failed".
void progress_close(progress *p, const progress_state *now, const char *how);

// 1234567 as "1,234,567".
typedef struct number_text {
    char text[32];
} number_text;
number_text grouped(uint64_t n);

#endif
