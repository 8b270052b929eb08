// SPDX-License-Identifier: MIT
// CPU detection; see cpu.h. Compiled without ISA flags: it runs before anything is known.
//
// CPUID says what the core can do, XCR0 which registers the operating system saves on a context
// switch; an instruction set is usable only if both agree (a kernel booted with noxsave, some
// virtual machines). AMX in addition needs permission from the Linux kernel before first use.
#define _GNU_SOURCE
#include "kernel/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

// Lowest first within an architecture. flags: everything the level includes; also: what comes with it where the CPU
// has it (a level for each mixture would be a name for each generation of CPUs). A new ISA is one row.
static const struct level {
    const char *name;
    unsigned flags, also;
} levels[] = {
    {"c", DGM_CPU_C, 0},
    {"avx2", DGM_CPU_AVX2, 0},
    {"avx512", DGM_CPU_AVX2 | DGM_CPU_AVX512, 0},
    {"vnni", DGM_CPU_AVX2 | DGM_CPU_AVX512 | DGM_CPU_AVX512_VNNI, DGM_CPU_AVX512_BF16},
    {"amx", DGM_CPU_AVX2 | DGM_CPU_AVX512 | DGM_CPU_AVX512_VNNI | DGM_CPU_AMX_INT8,
     DGM_CPU_AVX512_BF16 | DGM_CPU_AMX_BF16},
    {"neon", DGM_CPU_NEON, 0},
    {"dotprod", DGM_CPU_NEON | DGM_CPU_DOTPROD, 0},
    {"i8mm", DGM_CPU_NEON | DGM_CPU_DOTPROD | DGM_CPU_I8MM, 0},
};

enum { LEVELS = sizeof levels / sizeof levels[0] };

#if defined(__x86_64__)

static bool has(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

// Registers that the operating system saves; 0 without XSAVE.
static uint64_t saved_registers(unsigned leaf1_ecx)
{
    if (!has(leaf1_ecx, 1u << 27)) return 0; // OSXSAVE
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

// Linux hands out the 8 KiB tile state only on request; other systems are not supported.
static bool request_tiles(void)
{
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { ARCH_REQ_XCOMP_PERM_ = 0x1023, XFEATURE_XTILEDATA_ = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM_, XFEATURE_XTILEDATA_) == 0;
#else
    return false;
#endif
}

static bool has_avx512_bf16(void)
{
    unsigned a, b, c, d;
    __cpuid_count(7, 1, a, b, c, d);
    return has(a, 1u << 5);
}

unsigned dgm_cpu_detect(void)
{
    unsigned a, b, c, d, top = __get_cpuid_max(0, NULL), flags = DGM_CPU_C;
    if (top < 7) return flags;
    __cpuid(1, a, b, c, d);
    const uint64_t xcr0 = saved_registers(c);
    const bool fma_f16c_avx = has(c, 1u << 12 | 1u << 29 | 1u << 28);
    __cpuid_count(7, 0, a, b, c, d);

    // Bits 1, 2 of XCR0: xmm, ymm. 5, 6, 7: mask registers, upper zmm0-15, zmm16-31.
    if (!fma_f16c_avx || !has(b, 1u << 5) || (xcr0 & 0x06) != 0x06) return flags;
    flags |= DGM_CPU_AVX2;
    if (!has(b, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) || (xcr0 & 0xe6) != 0xe6) return flags;
    flags |= DGM_CPU_AVX512;
    if (!has(c, 1u << 11)) return flags;
    flags |= DGM_CPU_AVX512_VNNI;
    const unsigned more = a; // subleaves of leaf 7
    if (more >= 1 && has_avx512_bf16()) flags |= DGM_CPU_AVX512_BF16;
    // AMX-TILE, AMX-INT8; bits 17, 18 of XCR0: tile configuration and data.
    if (!has(d, 1u << 24 | 1u << 25) || (xcr0 & 0x60000) != 0x60000) return flags;
    if (!request_tiles()) return flags;
    return flags | DGM_CPU_AMX_INT8 | (has(d, 1u << 22) ? DGM_CPU_AMX_BF16 : 0);
}

#elif defined(__aarch64__)

// NEON belongs to every AArch64 processor; the others are optional.
unsigned dgm_cpu_detect(void)
{
    unsigned flags = DGM_CPU_NEON;
#if defined(__linux__)
    const unsigned long dotprod = 1ul << 20, i8mm = 1ul << 13; // of AT_HWCAP and AT_HWCAP2
    if (!(getauxval(AT_HWCAP) & dotprod)) return flags;
    flags |= DGM_CPU_DOTPROD;
    if (getauxval(AT_HWCAP2) & i8mm) flags |= DGM_CPU_I8MM;
#endif
    return flags;
}

#else

unsigned dgm_cpu_detect(void)
{
    return DGM_CPU_C;
}

#endif

dgm_status dgm_cpu_limit(const char *level, unsigned *flags, dgm_error *err)
{
    const unsigned have = dgm_cpu_detect();
    *flags = have;
    if (level == NULL || level[0] == '\0') return DGM_OK;
    for (int i = 0; i < LEVELS; i++) {
        if (strcmp(level, levels[i].name) != 0) continue;
        DGM_FAIL_IF((have & levels[i].flags) != levels[i].flags, err, DGM_ERR_UNSUPPORTED,
                    "this CPU does not have '%s' (it has '%s')", level, dgm_cpu_level_name(have));
        *flags = have & (levels[i].flags | levels[i].also);
        return DGM_OK;
    }
    char known[128] = "";
    for (int i = 0; i < LEVELS; i++) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s",
                 i == 0            ? ""
                 : i == LEVELS - 1 ? " or "
                                   : ", ",
                 levels[i].name);
    }
    return dgm_fail(err, DGM_ERR_ARGUMENT, "unknown CPU level '%s' (%s)", level, known);
}

const char *dgm_cpu_level_name(unsigned flags)
{
    for (int i = LEVELS - 1; i > 0; i--)
        if ((flags & levels[i].flags) == levels[i].flags) return levels[i].name;
    return levels[0].name;
}
