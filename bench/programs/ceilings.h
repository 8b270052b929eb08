// SPDX-License-Identifier: MIT
// What this core can do at most, measured: multiply-adds of one instruction, reading and writing.
// bench/ceilings prints it, bench/roofline holds operations against it.
//
// A peak is a stream of the multiply-add instruction of a precision on independent registers or
// tiles. Operands are random numbers: a matrix unit that multiplies zeros takes less power and runs
// a third faster (2.9 against 2.1 T multiply-adds a second on a Xeon). Bandwidths are loops that read
// or write a buffer again and again with whole-register loads and stores, or, where there is AMX, read
// it as tiles of a packed matrix. Each is the best of several short turns in CPU time, so that other
// programs on the machine disturb little.
#ifndef DGM_BENCH_PROGRAMS_CEILINGS_H
#define DGM_BENCH_PROGRAMS_CEILINGS_H

#include <stdbool.h>
#include <stddef.h>

enum { CEILING_SIZES = 14 };
enum { CEILING_F32, CEILING_I16, CEILING_I8, CEILING_BF16, CEILING_PEAKS };

typedef struct ceilings {
    const char *instruction[CEILING_PEAKS];
    double peak[CEILING_PEAKS];  // multiply-adds a second; 0 where there is no stream for the CPU
    size_t size[CEILING_SIZES];  // of the buffer, ascending
    double read[CEILING_SIZES];  // bytes a second: registers or tiles, whichever is faster
    double tiles[CEILING_SIZES]; // reading as tiles; 0 where there are none
    double write[CEILING_SIZES]; // of whole cache lines
} ceilings;

extern const char *const ceiling_names[CEILING_PEAKS]; // "f32", "i16", "i8", "bf16"

// level: of the kernels, "avx2", "avx512", "vnni", "amx", ...; higher ones than the CPU has crash.
void ceilings_measure(ceilings *c, const char *level);
// Between the measured sizes, on a logarithmic scale.
double ceilings_read(const ceilings *c, double bytes);

// One turn of the stream of u8 x i8 or bf16 products in tiles (level "amx" alone); returns its multiply-adds.
double ceilings_tile_turn(bool bf16);

double wall_time(void);    // seconds
double process_time(void); // of all threads

#endif
