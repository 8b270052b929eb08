// SPDX-License-Identifier: MIT
// What this core can do at most, measured: multiply-adds of one instruction, and reading.
// Used by bench/roofline.
//
// A peak is a stream of the multiply-add instruction of a precision on independent registers; the
// bandwidth is a loop that reads a buffer again and again with whole-register loads. Each is the
// best of several short turns in CPU time, so that other programs on the machine disturb little.
#ifndef DGM_BENCH_PROGRAMS_CEILINGS_H
#define DGM_BENCH_PROGRAMS_CEILINGS_H

#include <stddef.h>

enum { CEILING_SIZES = 14 };

typedef struct ceilings {
    const char *instruction[3]; // f32, i16, i8
    double peak[3];             // multiply-adds a second; 0 where there is no stream for the CPU
    size_t size[CEILING_SIZES]; // of the buffer, ascending
    double read[CEILING_SIZES]; // bytes a second
} ceilings;

// level: of the kernels, "avx2", "avx512", "vnni", "amx", ...; higher ones than the CPU has crash.
void ceilings_measure(ceilings *c, const char *level);
// Between the measured sizes, on a logarithmic scale.
double ceilings_read(const ceilings *c, double bytes);

double wall_time(void);    // seconds
double process_time(void); // of all threads

#endif
