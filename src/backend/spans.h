// SPDX-License-Identifier: MIT
// How long something was busy that several keep busy at the same time: the length of the union of spans of time.
//
// Spans may come in any order as long as none is late by more than DGM_SPANS others that lie apart: those are
// remembered, and of what came before only the sum is.
#ifndef DGM_BACKEND_SPANS_H
#define DGM_BACKEND_SPANS_H

enum { DGM_SPANS = 64 };

typedef struct dgm_span {
    double begin, end;
} dgm_span;

// All zeros: nothing yet.
typedef struct dgm_spans {
    dgm_span last[DGM_SPANS]; // that lie apart, in order
    int count;
    double before; // sum of those that are no longer remembered,
    double from;   // and when the last of them ended
} dgm_spans;

void dgm_spans_add(dgm_spans *s, double begin, double end); // begin >= 0
double dgm_spans_sum(const dgm_spans *s);

#endif
