// SPDX-License-Identifier: MIT
// What a generation costs the host, shared with threads that help the worker (base/team.h).
//
//     sentences  | 0 1 2 3 | 4 5 6 7 | 8 9 10 11 | ...      a part is neighbours, and has a hand of its own
//
// Sentences know nothing of each other, so who does which part, and how many there are, changes no bit of a result:
// what a part writes is the sentences' own, its hand, or a place that is counted before. Parts are cut by numbers
// alone, the same way in every pass, so that a thread mostly finds what it wrote itself.
//
// Beside a device with memory of its own, which waits for the next step meanwhile, hundreds of rows are worth it.
// Workers of the CPU that have nothing else to do help in the same way, but seldom find as many. Sentences with
// constraints fill the same banks one after the other (banks.c): while there are any, nothing is shared.
#include "search/search_private.h"

// HANDS: parts of a generation at most. FAR: what sentences are made of comes from the core that had them last, so that
// parts must be longer than those of arithmetic by this factor.
enum { HANDS = 32, FAR = 3 };

void dgm_hands_lay_out(dgm_carve *c, dgm_search *s, bool shares)
{
    const size_t width = (size_t)s->width;
    s->hand_count = !shares ? 1 : s->config.sentences < HANDS ? s->config.sentences : HANDS;
    s->hands = DGM_CARVE(c, dgm_hand, (size_t)s->hand_count);
    for (int i = 0; i < s->hand_count; i++) {
        dgm_hand counted, *h = c->arena && s->hands ? &s->hands[i] : &counted;
        *h = (dgm_hand){0};
        h->merge_at = DGM_CARVE(c, int, width);
        h->lines = DGM_CARVE(c, int32_t, width);
        h->best = DGM_CARVE(c, float, width);
        h->ends = DGM_CARVE(c, dgm_candidate, width);
    }
}

int dgm_share_parts(dgm_search *s, double nanoseconds)
{
    if (s->hand_count == 1 || s->banks.constrained > 0) return 1;
    return dgm_team_parts(dgm_exec_team(s->exec), nanoseconds / FAR, s->hand_count);
}

typedef struct sharing {
    dgm_search *s;
    dgm_pass pass;
    const void *arg;
    int parts, all;
} sharing;

static void run_part(const void *arg, int part)
{
    const sharing *x = arg;
    x->pass(x->s, &x->s->hands[part], dgm_team_cut(x->all, part, x->parts), dgm_team_cut(x->all, part + 1, x->parts),
            x->arg);
}

void dgm_share(dgm_search *s, int parts, int all, dgm_pass pass, const void *arg)
{
    const sharing x = {s, pass, arg, parts, all};
    if (parts > 1)
        dgm_team_run(dgm_exec_team(s->exec), run_part, &x, parts);
    else
        pass(s, &s->hands[0], 0, all, arg);
}
