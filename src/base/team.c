// SPDX-License-Identifier: MIT
// Teams of threads; see team.h.
//
// `open` has a bit for every part that nobody has taken. The leader writes what is to be done and sets the bits; who
// clears a bit owns that part, reads what is to be done, and counts it in `done`. The leader writes again only when all
// parts are done, so what is read behind a bit that one has cleared is always that bit's operation, however late one
// comes.
//
// Everybody begins at a place of its own among the parts, so that the same core gets the same weights step after step.
//
// A member that is put to sleep by the system in the middle of a part holds up the leader. On a machine that has
// other work to do that would be the rule, and one thread would be faster: whenever it happened the leader works alone
// for a time, twice as long each time, and half as long again whenever as many operations as the first time went well:
// a machine that is interrupted now and then shares most of the time, one that is full hardly ever.
#define _GNU_SOURCE
#include "base/team.h"

#include <sched.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/mem.h"

enum {
    LINE = 64,         // bytes that cores hand to each other
    SPREAD = 4,        // parts for each thread at most: some end early
    PATIENCE = 256,    // looks between two looks at the clock
    ALONE_FIRST = 256, // operations without help after the first delay,
    ALONE_MOST = 1 << 16
};

static const double least_usual = 1500; // nanoseconds of a part: handing one over takes a tenth of it
const double dgm_team_patience = 200e-6;
static const double late = 300e-6;      // seconds after which a part that others took is late

static _Atomic double least_forced = -1;

struct dgm_team {
    _Alignas(LINE) _Atomic uint64_t open;
    atomic_int parts; // of the operation; a member that reads it too early begins elsewhere, that is all
    dgm_team_fn fn;
    const void *arg;
    _Alignas(LINE) atomic_int done; // parts that are done, by members
    _Atomic uint64_t taken;
    _Alignas(LINE) _Atomic uint64_t members; // a bit for each
    const _Atomic double *least; // of the library that opened the team: a device's plug-in has a copy of this file
    // The leader's alone.
    int alone;      // operations to do alone,
    int alone_next; // and after the next delay
    int in_time;    // operations that went well since it was changed
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

dgm_status dgm_team_open(dgm_team **team, dgm_error *err)
{
    *team = dgm_calloc(1, sizeof **team);
    if (!*team) return dgm_no_memory(err);
    (*team)->alone_next = ALONE_FIRST;
    (*team)->least = &least_forced;
    return DGM_OK;
}

void dgm_team_close(dgm_team **team)
{
    dgm_free(*team);
    *team = NULL;
}

void dgm_team_least(double nanoseconds)
{
    atomic_store(&least_forced, nanoseconds);
}

uint64_t dgm_team_taken(const dgm_team *team)
{
    return atomic_load_explicit(&team->taken, memory_order_relaxed);
}

static int count_bits(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

bool dgm_team_wants(const dgm_team *team)
{
    return team && team->alone == 0;
}

int dgm_team_parts(dgm_team *team, double nanoseconds, int most)
{
    if (!team) return 1;
    if (team->alone > 0) {
        team->alone--;
        return 1;
    }
    const int helpers = count_bits(atomic_load_explicit(&team->members, memory_order_relaxed));
    if (helpers == 0) return 1;
    const double forced = atomic_load_explicit(team->least, memory_order_relaxed);
    const double least = forced < 0 ? least_usual : forced;
    int parts = SPREAD * (helpers + 1);
    if (parts > DGM_TEAM_PARTS) parts = DGM_TEAM_PARTS;
    if (parts > most) parts = most;
    if (least > 0 && nanoseconds < least * parts) parts = (int)(nanoseconds / least);
    return parts < 2 ? 1 : parts;
}

// Takes a part: the first that is left from `from` on, around the end. -1: there is none.
static int take_part(dgm_team *team, int from)
{
    for (;;) {
        const uint64_t open = atomic_load_explicit(&team->open, memory_order_relaxed);
        if (open == 0) return -1;
        const uint64_t behind = open >> from << from;
        const int part = __builtin_ctzll(behind ? behind : open);
        const uint64_t bit = (uint64_t)1 << part;
        if (atomic_fetch_and_explicit(&team->open, ~bit, memory_order_acq_rel) & bit) return part;
    }
}

// Waits for what members have taken. False: they kept the leader waiting.
static bool wait_for_members(dgm_team *team, int parts)
{
    double since = 0;
    bool in_time = true;
    for (int looks = 1; atomic_load_explicit(&team->done, memory_order_acquire) < parts; looks++) {
        relax();
        if (looks % PATIENCE) continue;
        const double now = dgm_now();
        if (since == 0) since = now;
        if (now - since < late) continue;
        in_time = false;
        sched_yield(); // the core may be the one that the member waits for
    }
    return in_time;
}

void dgm_team_run(dgm_team *team, dgm_team_fn fn, const void *arg, int parts)
{
    if (parts <= 1) {
        fn(arg, 0);
        return;
    }
    int own = 0;
    team->fn = fn;
    team->arg = arg;
    atomic_store_explicit(&team->done, 0, memory_order_relaxed);
    atomic_store_explicit(&team->parts, parts, memory_order_relaxed);
    atomic_store_explicit(&team->open, parts == 64 ? UINT64_MAX : ((uint64_t)1 << parts) - 1, memory_order_release);
    for (int part; (part = take_part(team, 0)) >= 0; own++) fn(arg, part);
    if (wait_for_members(team, parts - own)) {
        if (team->alone_next == ALONE_FIRST || ++team->in_time < ALONE_FIRST) return;
        team->in_time = 0;
        team->alone_next /= 2;
        return;
    }
    if (atomic_load_explicit(team->least, memory_order_relaxed) >= 0) return;
    team->in_time = 0;
    team->alone = team->alone_next;
    team->alone_next = team->alone_next < ALONE_MOST / 2 ? 2 * team->alone_next : ALONE_MOST;
}

// A place among the members; 0: there is none.
static uint64_t join(dgm_team *team)
{
    uint64_t members = atomic_load(&team->members);
    for (;;) {
        const uint64_t free = ~members & (((uint64_t)1 << DGM_TEAM_HELPERS) - 1);
        if (free == 0) return 0;
        const uint64_t bit = free & (~free + 1);
        if (atomic_compare_exchange_weak(&team->members, &members, members | bit)) return bit;
    }
}

// Where this member begins: parts are dealt out evenly, the first ones to the leader.
static int first_part(dgm_team *team, uint64_t own)
{
    const uint64_t members = atomic_load_explicit(&team->members, memory_order_relaxed);
    const int before = 1 + count_bits(members & (own - 1)), all = 1 + count_bits(members);
    const int at = atomic_load_explicit(&team->parts, memory_order_relaxed) * before / all;
    return at < DGM_TEAM_PARTS ? at : 0;
}

void dgm_team_help(dgm_team *team, const atomic_uint *alarm, unsigned seen, double patience)
{
    const uint64_t own = join(team);
    if (own == 0) return;
    double since = 0;
    for (int looks = 1; atomic_load_explicit(alarm, memory_order_relaxed) == seen; looks++) {
        const bool any = atomic_load_explicit(&team->open, memory_order_relaxed) != 0;
        const int part = any ? take_part(team, first_part(team, own)) : -1;
        if (part >= 0) {
            team->fn(team->arg, part);
            atomic_fetch_add_explicit(&team->taken, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&team->done, 1, memory_order_release);
            since = 0;
            continue;
        }
        relax();
        if (looks % PATIENCE) continue;
        const double now = dgm_now();
        if (since == 0) {
            since = now;
            continue;
        }
        if (now - since > patience) break;
        sched_yield(); // the leader is at something else, such as telling words: who sends them needs a core
    }
    atomic_fetch_and(&team->members, ~own);
}
