// SPDX-License-Identifier: MIT
// Every fuzz target in one program with libFuzzer, for machines where nothing can be built (`scripts/fuzz --pack`): the
// variable FUZZ_TARGET names the one that runs.
#include <stdio.h>

#include "mutate.h"
#include "table.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
