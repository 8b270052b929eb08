// SPDX-License-Identifier: MIT
// Slots of sentences and their room in the memory of sources; called by model.c alone.
//
// What the encoder left of a sentence lies in neighbouring rows of one memory that all slots share:
//
//     | slot 2: 31 rows | free | slot 0: 7 rows | slot 1: 24 rows |  free ...   |
//     0                                                             dgm_state_sources
//
// slot_order lists the used slots from left to right; a sentence goes into the first gap that is
// long enough. Thousands may be inside, so whoever enters or leaves does not walk over all of them.
// Short sentences thus take little memory, whatever the longest may have; the memory is full, or cut into gaps
// that are too short, before the slots are: whoever admits asks dgm_state_fits first. Places begin and end at
// whole blocks of positions (backend/device.h). Without a bound every slot has room for the longest sentence,
// in its own place, and a free slot is all that is asked for.
#include <string.h>

#include "model/model_private.h"

// Rows that a source takes.
static int32_t room(int32_t length)
{
    return (length + DGM_BLOCK_POSITIONS - 1) / DGM_BLOCK_POSITIONS * DGM_BLOCK_POSITIONS;
}

int dgm_state_sources(const dgm_limits *l)
{
    int64_t worst = (int64_t)l->slots * room(l->source);
    if (l->sources > 0 && room(l->sources) < worst) return room(l->sources);
    return worst < INT32_MAX / 2 ? (int)worst
                                 : INT32_MAX / 2 / DGM_BLOCK_POSITIONS * DGM_BLOCK_POSITIONS;
}

// Row behind the used slot at `at` of the order; 0 in front of the first.
static int32_t end_of(const dgm_state *s, int at)
{
    if (at < 0) return 0;
    int32_t slot = s->slot_order[at];
    return s->slot_first[slot] + room(s->slot_length[slot]);
}

// The lowest free slot, -1: there is none.
static int32_t free_slot(dgm_state *s)
{
    while (s->slot_lowest < s->limits.slots && s->slot_length[s->slot_lowest] != 0) s->slot_lowest++;
    return s->slot_lowest < s->limits.slots ? s->slot_lowest : -1;
}

// In front of which used slot a source of that length goes. The first slot_packed of them have no gap between them, so
// that many sentences enter without a walk over all that are inside.
static int find_gap(dgm_state *s, int32_t length)
{
    while (s->slot_packed < s->slot_used &&
           s->slot_first[s->slot_order[s->slot_packed]] == end_of(s, s->slot_packed - 1))
        s->slot_packed++;
    int at = s->slot_packed;
    while (at < s->slot_used && s->slot_first[s->slot_order[at]] - end_of(s, at - 1) < room(length)) at++;
    return at;
}

// Place of the first used slot whose rows begin at `first` or behind.
static int find_place(const dgm_state *s, int32_t first)
{
    int from = 0, to = s->slot_used;
    while (from < to) {
        const int middle = from + (to - from) / 2;
        if (s->slot_first[s->slot_order[middle]] < first)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

int32_t dgm_slot_take(dgm_state *s, int32_t length)
{
    const int32_t slot = free_slot(s), total = dgm_state_sources(&s->limits);
    if (slot < 0) return -1;
    const bool own = s->limits.sources <= 0;
    const int at = own ? find_place(s, slot * room(s->limits.source)) : find_gap(s, length);
    const int32_t first = own ? slot * room(s->limits.source) : end_of(s, at - 1);
    if (at == s->slot_used && total - first < room(length)) return -1;
    memmove(&s->slot_order[at + 1], &s->slot_order[at],
            (size_t)(s->slot_used - at) * sizeof *s->slot_order);
    s->slot_order[at] = slot;
    s->slot_used++;
    s->slot_first[slot] = first;
    s->slot_length[slot] = length;
    return slot;
}

void dgm_slot_free(dgm_state *s, int32_t slot)
{
    if (s->slot_length[slot] == 0) return;
    const int at = find_place(s, s->slot_first[slot]);
    s->slot_used--;
    memmove(&s->slot_order[at], &s->slot_order[at + 1],
            (size_t)(s->slot_used - at) * sizeof *s->slot_order);
    s->slot_length[slot] = 0;
    if (slot < s->slot_lowest) s->slot_lowest = slot;
    if (at < s->slot_packed) s->slot_packed = at;
}

int dgm_state_fits(dgm_state *s, int count, const dgm_source *sources)
{
    int fit = 0, most = s->limits.slots - s->slot_used;
    if (count > most) count = most;
    // Taken for a look and given back: dgm_encode will find the same places.
    int used = s->slot_used;
    int32_t tokens = 0;
    for (int i = 0; i < used; i++) tokens += room(s->slot_length[s->slot_order[i]]);
    for (; fit < count; fit++) {
        tokens += room(sources[fit].count);
        if (tokens > dgm_state_sources(&s->limits)) break;
        s->new_slots[fit] = dgm_slot_take(s, sources[fit].count);
        if (s->new_slots[fit] < 0) break;
    }
    for (int i = 0; i < fit; i++) dgm_slot_free(s, s->new_slots[i]);
    return fit;
}
