// SPDX-License-Identifier: MIT
// How much a worker takes in at once, and what memory that needs; called while a translator opens.
//
// A sentence costs source tokens x beam. A worker admits sentences while the costs of those inside
// stay within batch_tokens: many short ones, few long ones, always at least one. The worker's
// memory follows from the same number:
//
//     sentences  batch_tokens / (a short sentence x beam), at most `batch`, and with the beam rows
//     sources    what the encoder leaves of all sentences: twice what the budget admits, because gaps
//                are left between them, and half a block more for each (model/slots.c)
//     past       decoder rows with their ancestors: four times the budget. A hypothesis is seldom
//                more than twice its source and shares most of its past with its neighbours; should
//                it not suffice, the youngest sentence is put back (worker.c), at no cost but time
//
// Memory of a device is taken whether it is touched or not. There sources get what the budget admits, with the half
// block; a sentence for which no gap is long enough waits. And the past is counted as it looks: a trunk about as
// long as the source, which the hypotheses of a sentence share, and some rows for each where they have parted, more
// the more there are. Of 200 lines of newstest2014 with the shipped model (batch 64, sources of 27 tokens) at most 51
// rows a sentence were alive with beam 4 and 86 with beam 8; of sentences that are all made 25 tokens long 33 and 37
// at the 20th token (random base model, shipped model; beam 4).
//
// and never less than the longest sentence needs alone. A default that takes more than the
// workspace (else: than the machine has) is halved until it fits; what the caller asked for is
// refused. A device with memory of its own has a budget in each: the workspace bounds both.
//
// The default is the device's (dgm_backend_props). Who gives a number of sentences gets them, unless they are
// very long.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/engine_private.h"

enum {
    LONG = 128,       // tokens of a sentence up to which a batch is not cut,
    LONG_THERE = 32,  // and on a device with memory of its own,
    ORDINARY = 40,    // whose sentences are seldom longer than this all at once
    SHORT = 4,        // tokens of a sentence when they are counted,
    MEDIUM = 16,      // and when memory is short
    GENERATIONS = 4,  // rows of a beam beside one for every position (model.c)
    BRANCH = 4        // rows of a hypothesis since it parted from others, at least
};

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int clamp(int64_t v, int64_t most)
{
    return (int)(v < 1 ? 1 : v > most ? most : v);
}

// Sentences at once, limits and configuration for a budget, if all have at least `length` tokens.
static void size_workers(dgm_translator *t, int64_t tokens, int length, int batch)
{
    dgm_search_config *c = &t->config;
    const dgm_model_info *m = dgm_model_describe(t->members[0].model);
    const dgm_backend_props *device = dgm_backend_properties(t->backend);
    const int64_t most = 1 << 28;
    t->batch_tokens = tokens;
    t->batch = clamp(tokens / ((int64_t)length * c->beam), batch ? batch : device->batch_sentences);
    c->sentences = t->batch;
    t->limits = dgm_search_limits(c, m);
    const int64_t sources = tokens / c->beam, gaps = device->host_memory ? sources : 0;
    const int64_t hypotheses = c->beam * max64(1, sources / MEDIUM < t->batch ? sources / MEDIUM : t->batch);
    const int64_t past = device->host_memory ? 4 * tokens : sources + hypotheses * max64(BRANCH, c->beam);
    t->limits.sources = clamp(max64(t->limits.source, sources + gaps + 8 * t->batch), most);
    t->limits.past = clamp(max64((int64_t)c->beam * (t->limits.target + GENERATIONS), past), most);
}

// What all workers take of the memory that is scarcest: of both together where the device computes
// in the host's. Several devices share the workers.
static uint64_t all_workers(const dgm_translator *t)
{
    const dgm_backend_props *device = dgm_backend_properties(t->backend);
    const dgm_bytes one = dgm_worker_bytes(t);
    const uint64_t there = one.device + device->worker_bytes;
    uint64_t bytes = one.host > there ? one.host : there;
    if (device->host_memory) bytes = (uint64_t)one.host + one.device;
    const uint64_t count = (uint64_t)(device->host_memory ? t->threads : (t->threads + t->devices - 1) / t->devices);
    return bytes > UINT64_MAX / 4 / count ? UINT64_MAX / 4 : bytes * count;
}

static double mib(uint64_t bytes)
{
    return (double)bytes / 1048576;
}

// Of a budget that was asked for: the largest of its halves, quarters ... that fits; 0: none.
static int64_t find_tokens(dgm_translator *t, const dgm_settings *s, uint64_t most)
{
    for (int64_t tokens = s->batch_tokens / 2; tokens > 0; tokens /= 2) {
        size_workers(t, tokens, MEDIUM, s->batch);
        if (all_workers(t) <= most) return tokens;
    }
    return 0;
}

// How many threads would fit as workers are sized now; 0: none.
static int find_threads(dgm_translator *t, uint64_t most)
{
    const int asked = t->threads;
    while (--t->threads > 0 && all_workers(t) > most) continue;
    const int fit = t->threads;
    t->threads = asked;
    return fit;
}

// "4", or "4; 2 would fit".
static const char *put_fit(char buffer[64], int64_t asked, int64_t fit)
{
    if (fit > 0)
        snprintf(buffer, 64, "%lld; %lld would fit", (long long)asked, (long long)fit);
    else
        snprintf(buffer, 64, "%lld", (long long)asked);
    return buffer;
}

// Nothing smaller is left to try.
static dgm_status refuse(dgm_translator *t, const dgm_settings *s, uint64_t most, dgm_error *err)
{
    const char *what = s->batch_tokens ? "a batch of so many tokens" : "one sentence at a time";
    const double takes = mib(all_workers(t));
    const dgm_limits limits = t->limits;
    char threads[64], tokens[64], batch[128] = "";
    put_fit(threads, t->threads, find_threads(t, most));
    if (s->batch_tokens) {
        put_fit(tokens, s->batch_tokens, find_tokens(t, s, most));
        snprintf(batch, sizeof batch, "--batch-tokens (%s), ", tokens);
    }
    if (s->workspace)
        return dgm_fail(err, DGM_ERR_ARGUMENT,
                        "%.1f MiB of workspace for the workers are too little: %s takes %.1f MiB (%sthreads %s, beam "
                        "%d, lengths %d and %d)",
                        mib(most), what, takes, batch, threads, t->config.beam, limits.source, limits.target);
    const dgm_backend_props *device = dgm_backend_properties(t->backend);
    const bool there = !device->host_memory && most == device->memory_free;
    return dgm_fail(err, there ? DGM_ERR_MEMORY : DGM_ERR_ARGUMENT,
                    "%s takes %.1f MiB, %s has %.1f MiB of memory%s: lower %sthe threads (%s), "
                    "the beam (%d) or the length limits (%d and %d)",
                    what, takes, there ? device->name : "this machine", mib(most), there ? " free" : "", batch, threads,
                    t->config.beam, limits.source, limits.target);
}

// The device's, or at least half of it where so many sentences of ordinary length take less of scarce memory.
static int64_t usual_tokens(const dgm_translator *t, int batch)
{
    const dgm_backend_props *device = dgm_backend_properties(t->backend);
    const int64_t usual = device->batch_tokens;
    const int64_t ordinary = (int64_t)(batch ? batch : device->batch_sentences) * ORDINARY * t->config.beam;
    return device->host_memory || ordinary > usual ? usual : max64(ordinary, usual / 2);
}

dgm_status dgm_budget_resolve(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    // The least that both memories have: a workspace bounds each of them. The device's has weights in it.
    const dgm_backend_props *device = dgm_backend_properties(t->backend);
    uint64_t physical = dgm_memory_physical();
    const bool there = !device->host_memory && device->memory_free < physical;
    if (there) physical = device->memory_free;
    uint64_t most = s->workspace ? (uint64_t)s->workspace : physical;
    DGM_FAIL_IF(s->workspace && most > physical, err, DGM_ERR_ARGUMENT,
                "%.1f MiB of workspace for the workers are more than the %.1f MiB of memory that %s has%s",
                mib(most), mib(physical), there ? device->name : "this machine", there ? " free" : "");
    const int whole = device->host_memory ? LONG : LONG_THERE;
    int64_t tokens = max64(usual_tokens(t, s->batch), (int64_t)s->batch * whole * t->config.beam);
    if (s->batch_tokens) tokens = s->batch_tokens;
    for (;; tokens /= 2) {
        for (int length = SHORT; length <= MEDIUM; length *= 2) {
            size_workers(t, tokens, length, s->batch);
            if (all_workers(t) <= most) return DGM_OK;
        }
        if (s->batch_tokens || tokens == 0) return refuse(t, s, most, err);
    }
}
