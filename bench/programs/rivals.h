// SPDX-License-Identifier: MIT
// OpenBLAS and oneDNN at their best: what their environment must say before they are loaded.
#ifndef DGM_BENCH_PROGRAMS_RIVALS_H
#define DGM_BENCH_PROGRAMS_RIVALS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/cpu.h"

enum { RIVAL_OPENBLAS, RIVAL_ONEDNN, RIVAL_ONEDNN_INT, RIVALS };

// A small product of each rival, NULL of one that the program does not use.
typedef void (*const rival_probes[RIVALS])(void);

// Whether run() ends well in a process of its own.
static inline bool rival_survives(void (*run)(void))
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        run();
        _exit(0);
    }
    return child < 0 || waitpid(child, &status, 0) != child || status == 0;
}

// Those that die of their product, a bit each.
static inline unsigned rivals_dead(rival_probes probes)
{
    static const char *const names[RIVALS] = {"OpenBLAS", "oneDNN", "oneDNN's u8 x i8"};
    unsigned dead = 0;
    for (int i = 0; i < RIVALS; i++) {
        if (!probes[i] || rival_survives(probes[i])) continue;
        fprintf(stderr, "%s cannot run on this machine: it is left out\n", names[i]);
        dead |= 1u << i;
    }
    return dead;
}

// The libraries read their environment when they are loaded: starts the program again with it set.
// One thread; with a level ("avx2", "avx512") the rivals get no better instructions than ours.
// core: openblas_get_corename(), its oldest one for a processor that it does not know; it is told a
// newer one then. oneDNN's product of integers uses AMX where there is some; a version that dies of it, as 2.6.3 does
// on some machines, is kept to AVX-512. Returns who cannot run for all that, a bit each: who asks leaves them out.
static inline unsigned rivals_start(const char *level, char **argv, const char *core, rival_probes probes)
{
    void (*const tiles)(void) = probes[RIVAL_ONEDNN_INT];
    const bool avx2 = level && strcmp(level, "avx2") == 0;
    const bool avx512 = level && strcmp(level, "avx512") == 0;
    const unsigned cpu = dgm_cpu_detect();
    if (getenv("DRAGOMAN_BENCH_STARTED")) return rivals_dead(probes);
    setenv("DRAGOMAN_BENCH_STARTED", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    if (avx2 || avx512) {
        setenv("ONEDNN_MAX_CPU_ISA", avx2 ? "AVX2" : "AVX512_CORE", 1);
        setenv("OPENBLAS_CORETYPE", avx2 ? "Haswell" : "SkylakeX", 1);
    } else {
        if (strcmp(core, "Prescott") == 0 && (cpu & DGM_CPU_AVX2))
            setenv("OPENBLAS_CORETYPE", cpu & DGM_CPU_AVX512 ? "SkylakeX" : "Haswell", 0);
        if (tiles && !rival_survives(tiles)) {
            fprintf(stderr,
                    "oneDNN dies of its AMX product on this machine: it is kept to AVX-512\n");
            setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16", 0);
        }
    }
    execv("/proc/self/exe", argv);
    fprintf(stderr, "%s: cannot start again\n", argv[0]);
    exit(1);
}

#endif
