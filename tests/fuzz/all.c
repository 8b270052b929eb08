// SPDX-License-Identifier: MIT
// Every fuzz target in one program with libFuzzer, for machines where nothing can be built (`scripts/fuzz --pack`): the
// variable FUZZ_TARGET names the one that runs.
#include <stdio.h>

#include "mutate.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TARGET(name)                                                                                                   \
    int fuzz_one_##name(const uint8_t *data, size_t size);                                                             \
    size_t fuzz_mutate_##name(uint8_t *data, size_t size, size_t max, unsigned seed) __attribute__((weak));
#include "fuzz_targets.h" // made by scripts/fuzz: TARGET(argos) ...
#undef TARGET

static const struct target {
    const char *name;
    int (*one)(const uint8_t *data, size_t size);
    size_t (*mutate)(uint8_t *data, size_t size, size_t max, unsigned seed);
} targets[] = {
#define TARGET(name) {#name, fuzz_one_##name, fuzz_mutate_##name},
#include "fuzz_targets.h"
    {NULL, NULL, NULL},
};

static const struct target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    const char *name = getenv("FUZZ_TARGET");
    for (target = targets; target->name; target++)
        if (name && strcmp(name, target->name) == 0) return 0;
    fprintf(stderr, "FUZZ_TARGET names no target\n");
    exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return target->one(data, size);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return target->mutate ? target->mutate(data, size, max, seed) : LLVMFuzzerMutate(data, size, max);
}
