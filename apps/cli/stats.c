// SPDX-License-Identifier: MIT
// What `--stats` says about a search: counts of its work, and where the time went.
//
// The split of the time follows a decoder's equations (Zhang et al., 2018, 6 to 9): the next state
// with its attention, the read-out, the products with the output layer, and what is done with them
// (softmax sum where it is on, scorers' terms, lists of the best). The library computes the last
// two in one walk, so the time of the softmax alone is the difference between a run with it and one
// without (--softmax). Parts of a read-out that depend on the word or the source alone are inside
// the products of the state.
#include "stats.h"

#include <stdio.h>
#include <string.h>

#include "dragoman/tools.h"
#include "options.h"

// What the search computed, in all and per output token; merging: live hypotheses per row that was
// ranked whole, and per row that was computed at all.
void stats_search(const dgm_counters *c)
{
    const double tokens = c->target_tokens ? (double)c->target_tokens : 1;
    const struct {
        const char *name;
        uint64_t count;
    } rows[] = {{"state steps", c->rows},
                {"projections", c->rank_rows},
                {"products", c->dots},
                {"heap pops", c->pops},
                {"heap cells", c->heaps}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].count)
            fprintf(stderr, "%-11s %llu, %.2f per token\n", rows[i].name,
                    (unsigned long long)rows[i].count, (double)rows[i].count / tokens);
    if (c->pops)
        fprintf(stderr, "heap size   %llu cells at most\n", (unsigned long long)c->heap_peak);
    if (c->leads)
        fprintf(stderr,
                "merging     %.3f (%.3f with exact steps): %llu hypotheses, %llu leaders, %llu "
                "exact steps\n",
                (double)c->live / (double)c->leads, (double)c->live / (double)(c->leads + c->exact),
                (unsigned long long)c->live, (unsigned long long)c->leads,
                (unsigned long long)c->exact);
}

void stats_watch(dgm_translator *t)
{
    dgm_error error;
    if (dgm_profile_start(t, &error) != DGM_OK) warn("no times: %s", error.text);
}

typedef struct part {
    const char *name, *phase;
    int topk; // only "softmax and top-k", or all but that
    double seconds;
} part;

void stats_times(dgm_translator *t)
{
    part parts[] = {{"encoder", "encode", 0, 0},
                    {"states", "step", 0, 0},
                    {"read-out", "readout", 0, 0},
                    {"products", "rank", 0, 0},
                    {"selection", "rank", 1, 0}};
    const size_t count = sizeof parts / sizeof parts[0];
    dgm_profile *p = NULL;
    dgm_error error;
    if (dgm_profile_read(t, &p, &error) != DGM_OK) return;
    double walked = 0; // by the decoder
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->rows[i].phase, "encode") != 0)
            walked += (double)(p->rows[i].weight_bytes + p->rows[i].other_bytes);
        const int topk = strcmp(p->rows[i].operation, "softmax and top-k") == 0;
        for (size_t k = 0; k < count; k++)
            if (strcmp(p->rows[i].phase, parts[k].phase) == 0 && parts[k].topk == topk)
                parts[k].seconds += p->rows[i].seconds;
    }
    const double all = p->busy - p->counting, share = all > 0 ? 100 / all : 0;
    fprintf(stderr, "CPU time    %.3f s of the workers", all);
    for (size_t k = 0; k < count; k++)
        fprintf(stderr, ", %s %.3f s (%.1f %%)", parts[k].name, parts[k].seconds,
                parts[k].seconds * share);
    fprintf(stderr, ", search %.3f s (%.1f %%); decoder: %.1f MiB walked\n", p->search,
            p->search * share, walked / 1048576);
    dgm_profile_free(&p);
}
