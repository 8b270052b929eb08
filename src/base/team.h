// SPDX-License-Identifier: MIT
// A team: a thread that leads and threads that help it with single operations of some microseconds, too short for a
// pool that sleeps between them (base/threads.h).
//
// The leader cuts an operation into parts; whoever is free takes one, the leader as well. Nobody is waited for but
// those who have taken a part: a member that is late, or leaves, costs nothing. Members look at one word of memory
// while there is nothing to do, as long as they have patience; then they leave.
//
// Which thread computes a part is left to chance; what a part is must not be: the caller cuts so that every number is
// computed in the same way however many parts there are.
#ifndef DGM_BASE_TEAM_H
#define DGM_BASE_TEAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct dgm_team dgm_team;
typedef void (*dgm_team_fn)(const void *arg, int part);

enum { DGM_TEAM_PARTS = 64, DGM_TEAM_HELPERS = 63 };

dgm_status dgm_team_open(dgm_team **team, dgm_error *err);
void dgm_team_close(dgm_team **team); // nobody helps any more; sets *team to NULL; accepts NULL inside

// For the leader: how many parts (1 .. most) an operation that takes one thread about `nanoseconds` is worth now. 1:
// there is nobody, or it is too short. team may be NULL.
int dgm_team_parts(dgm_team *team, double nanoseconds, int most);
// Is help welcome? Not for a while where members were late. NULL: no.
bool dgm_team_wants(const dgm_team *team);
// Runs fn(arg, 0 .. parts - 1) and returns when all are done. One part: it is called, and that is all.
void dgm_team_run(dgm_team *team, dgm_team_fn fn, const void *arg, int parts);

// Where part `part` of so many things begins, and the one before it ends, when they are dealt out evenly.
static inline int dgm_team_cut(int things, int part, int parts)
{
    return (int)((int64_t)things * part / parts);
}

// For a member: helps until *alarm is not `seen` any more, or nothing was to do for so many seconds. Returns at once
// where there are DGM_TEAM_HELPERS.
extern const double dgm_team_patience; // some operations of a processor
void dgm_team_help(dgm_team *team, const atomic_uint *alarm, unsigned seen, double patience);

// Parts that members took off the leader since the team was opened.
uint64_t dgm_team_taken(const dgm_team *team);

// Test hook, for all teams: what a part must take at least, and nobody is ever late. A negative number: as usual.
void dgm_team_least(double nanoseconds);

#endif
