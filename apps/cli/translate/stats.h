// SPDX-License-Identifier: MIT
// Statistics of a search on standard error, for commands that translate (stats.c).
#ifndef DGM_APPS_CLI_TRANSLATE_STATS_H
#define DGM_APPS_CLI_TRANSLATE_STATS_H

#include "dragoman/dragoman.h"

// Everything that is counted, with speed and memory; `failed` lines, seconds to load and to translate.
void stats_run(dgm_translator *t, uint64_t failed, double load, double took);
// The same as one JSON object (docs/manual/STATISTICS.md); after stats_watch with the times.
void stats_json(dgm_translator *t, uint64_t failed, double load, double took);
// Before the first line, where times are wanted; stats_times then says where they went.
void stats_watch(dgm_translator *t);
void stats_times(dgm_translator *t);

#endif
