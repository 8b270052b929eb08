// SPDX-License-Identifier: MIT
// bench/ceilings: what one core of this machine can do at most (ceilings.h).
//
//     bench/ceilings [--cpu LEVEL] [--csv]
//
// Prints the fastest multiply-add instruction of every precision that the level has, in multiply-adds
// a second, and the speed of reading and writing buffers of 16 KiB to 128 MiB: steps in it are the caches.
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ceilings.h"
#include "kernel/cpu.h"

static void cpu_model(char *out, size_t size)
{
    char line[256];
    snprintf(out, size, "unknown");
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (!f) return;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "model name", 10) != 0) continue;
        const char *colon = strchr(line, ':');
        if (colon) snprintf(out, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    fclose(f);
}

static void print_text(const ceilings *c, const char *cpu, const char *level)
{
    printf("%s, level %s, one core\n\n", cpu, level);
    printf("%-6s %-16s %24s\n", "type", "instruction", "G multiply-adds/s");
    for (int i = 0; i < CEILING_PEAKS; i++)
        if (c->peak[i] > 0)
            printf("%-6s %-16s %24.1f\n", ceiling_names[i], c->instruction[i], c->peak[i] * 1e-9);
    printf("\n%-10s %12s %12s %12s\n", "buffer", "read GB/s", "as tiles", "write GB/s");
    for (int i = 0; i < CEILING_SIZES; i++) {
        printf("%6zu KiB %12.1f ", c->size[i] >> 10, c->read[i] * 1e-9);
        if (c->tiles[i] > 0)
            printf("%12.1f ", c->tiles[i] * 1e-9);
        else
            printf("%12s ", "-");
        printf("%12.1f\n", c->write[i] * 1e-9);
    }
}

// One row for each number: kind is a type with its instruction, or read, tiles, write with the bytes of the buffer.
static void print_csv(const ceilings *c, const char *cpu, const char *level)
{
    printf("cpu,level,kind,of,rate\n");
    for (int i = 0; i < CEILING_PEAKS; i++)
        if (c->peak[i] > 0)
            printf("\"%s\",%s,%s,%s,%.4g\n", cpu, level, ceiling_names[i], c->instruction[i],
                   c->peak[i]);
    for (int i = 0; i < CEILING_SIZES; i++) {
        printf("\"%s\",%s,read,%zu,%.4g\n", cpu, level, c->size[i], c->read[i]);
        if (c->tiles[i] > 0)
            printf("\"%s\",%s,tiles,%zu,%.4g\n", cpu, level, c->size[i], c->tiles[i]);
        printf("\"%s\",%s,write,%zu,%.4g\n", cpu, level, c->size[i], c->write[i]);
    }
}

int main(int argc, char **argv)
{
    const char *wanted = getenv("DRAGOMAN_CPU");
    bool csv = false;
    for (int i = 1; i < argc; i++) {
        const bool help = strcmp(argv[i], "--help") == 0;
        if (strcmp(argv[i], "--csv") == 0) {
            csv = true;
        } else if (strcmp(argv[i], "--cpu") == 0 && i + 1 < argc) {
            wanted = argv[++i];
        } else {
            fprintf(help ? stdout : stderr, "usage: ceilings [--cpu LEVEL] [--csv]\n");
            return help ? 0 : 2;
        }
    }
    unsigned flags;
    dgm_error error;
    if (dgm_cpu_limit(wanted, &flags, &error) != DGM_OK) {
        fprintf(stderr, "ceilings: %s\n", error.text);
        return 2;
    }
    char cpu[256];
    ceilings c;
    cpu_model(cpu, sizeof cpu);
    ceilings_measure(&c, dgm_cpu_level_name(flags));
    (csv ? print_csv : print_text)(&c, cpu, dgm_cpu_level_name(flags));
    return 0;
}
