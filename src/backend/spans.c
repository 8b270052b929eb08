// SPDX-License-Identifier: MIT
#include "backend/spans.h"

#include <string.h>

static void forget_first(dgm_spans *s)
{
    s->before += s->last[0].end - s->last[0].begin;
    s->from = s->last[0].end;
    memmove(s->last, s->last + 1, (size_t)--s->count * sizeof *s->last);
}

void dgm_spans_add(dgm_spans *s, double begin, double end)
{
    if (s->count == DGM_SPANS) forget_first(s);
    if (begin < s->from) begin = s->from;
    if (!(end > begin)) return;
    int first = 0, next; // last[first .. next) become one with it
    while (first < s->count && s->last[first].end < begin) first++;
    for (next = first; next < s->count && s->last[next].begin <= end; next++) {
        if (s->last[next].begin < begin) begin = s->last[next].begin;
        if (s->last[next].end > end) end = s->last[next].end;
    }
    memmove(s->last + first + 1, s->last + next, (size_t)(s->count - next) * sizeof *s->last);
    s->last[first] = (dgm_span){begin, end};
    s->count += 1 - (next - first);
}

double dgm_spans_sum(const dgm_spans *s)
{
    double sum = s->before;
    for (int i = 0; i < s->count; i++) sum += s->last[i].end - s->last[i].begin;
    return sum;
}
