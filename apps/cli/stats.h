// SPDX-License-Identifier: MIT
// Statistics of a search on standard error, for commands that translate (stats.c).
#ifndef DGM_CLI_STATS_H
#define DGM_CLI_STATS_H

#include "dragoman/dragoman.h"

// State steps, projections, products, heaps and merging, in all and per output token.
void stats_search(const dgm_counters *c);
// Before the first line, where times are wanted; stats_times then says where they went.
void stats_watch(dgm_translator *t);
void stats_times(dgm_translator *t);

#endif
