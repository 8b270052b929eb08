// SPDX-License-Identifier: MIT
// What this CPU can do, and what the user lets us use.
//
// x86: flags are set only if CPUID reports the instructions AND the operating system saves their
// registers (XCR0). Arm: what Linux reports in the auxiliary vector. Compiled without ISA flags.
// Levels are cumulative: each implies the ones below.
#ifndef DGM_KERNEL_CPU_H
#define DGM_KERNEL_CPU_H

#include "base/status.h"

#define DGM_CPU_C 0u
#define DGM_CPU_AVX2 (1u << 0)   // AVX2, FMA, F16C
#define DGM_CPU_AVX512 (1u << 1) // F, BW, DQ, VL
#define DGM_CPU_AVX512_VNNI (1u << 2)
#define DGM_CPU_AMX_INT8 (1u << 3)
#define DGM_CPU_AVX512_BF16 (1u << 4) // beside VNNI on some CPUs, not on others
#define DGM_CPU_AMX_BF16 (1u << 5)    // beside AMX_INT8
#define DGM_CPU_NEON (1u << 8)
#define DGM_CPU_DOTPROD (1u << 9) // Armv8.2 sdot
#define DGM_CPU_I8MM (1u << 10)   // Armv8.6 smmla

unsigned dgm_cpu_detect(void);

// dgm_cpu_detect lowered to the named level: "c"; "avx2", "avx512", "vnni", "amx"; "neon",
// "dotprod", "i8mm"; NULL or "" = all. Products of bf16 numbers belong to "vnni" and "amx" where the CPU has them.
// An unknown name is DGM_ERR_ARGUMENT; a level the CPU does not have is DGM_ERR_UNSUPPORTED.
dgm_status dgm_cpu_limit(const char *level, unsigned *flags, dgm_error *err);

// Name of the highest level in flags.
const char *dgm_cpu_level_name(unsigned flags);

#endif
