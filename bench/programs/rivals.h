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

// Whether run() ends in a process of its own without a signal.
static inline bool rival_survives(void (*run)(void))
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        run();
        _exit(0);
    }
    return child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status);
}

// The libraries read their environment when they are loaded: starts the program again with it set.
// One thread; with a level ("avx2", "avx512") the rivals get no better instructions than ours.
// core: openblas_get_corename(), its oldest one for a processor that it does not know; it is told a
// newer one then. tiles (or NULL) is a product of oneDNN's that uses AMX where there is some; a version that
// dies of it, as 2.6.3 does on some machines, is kept to AVX-512.
static inline void rivals_start(const char *level, char **argv, const char *core,
                                void (*tiles)(void))
{
    const bool avx2 = level && strcmp(level, "avx2") == 0;
    const bool avx512 = level && strcmp(level, "avx512") == 0;
    const unsigned cpu = dgm_cpu_detect();
    if (getenv("DRAGOMAN_BENCH_STARTED")) return;
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
