// SPDX-License-Identifier: MIT
// Every fuzz target in one program without libFuzzer, for `make test` and for coverage: each file of the committed
// corpora goes through its target as it is, then changed by the target's own mutator, from a fixed seed.
//
//     fuzz-replay [--changes N] [--more FOLDER] [NAME...]   default: 8 changed copies of every file, all targets
//
// --more: the files of another folder, too.
//
// The last line is "N passed, M failed", a target one test; a target that finds something ends the program.
#define _GNU_SOURCE
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>

#include "mutate.h"
#include "table.h"

enum { LARGEST = 1 << 20 };

static uint32_t state = 1;

// What mutators fall back on: a few bytes changed, taken out or put in.
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
    for (uint32_t n = 1 + fuzz_below(&state, 4); n > 0; n--) {
        const size_t at = fuzz_below(&state, size + 1), left = size - at;
        const uint32_t what = fuzz_below(&state, 4), length = 1 + fuzz_below(&state, 8);
        if (what == 0 && left >= length) {
            memmove(data + at, data + at + length, left - length);
            size -= length;
        } else if (what == 1 && size + length <= max) {
            memmove(data + at + length, data + at, left);
            for (uint32_t i = 0; i < length; i++) data[at + i] = (uint8_t)fuzz_below(&state, 256);
            size += length;
        } else if (left) {
            data[at] = (uint8_t)(what == 2 ? fuzz_below(&state, 256) : data[at] ^ 1u << fuzz_below(&state, 8));
        }
    }
    return size;
}

// Each input lies in a block of its own size, so that a step outside is seen.
static void give(const struct target *t, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) exit(1);
    memcpy(copy, data, size);
    t->one(copy, size);
    free(copy);
}

static void run_file(const struct target *t, const char *path, int changes)
{
    static uint8_t data[LARGEST], changed[LARGEST + 4096];
    FILE *f = fopen(path, "rb");
    const size_t size = f ? fread(data, 1, sizeof data, f) : 0;
    if (!f) exit(1);
    fclose(f);
    give(t, data, size);
    size_t n = size;
    memcpy(changed, data, size);
    for (int i = 0; i < changes; i++) {
        if (i % 4 == 0) memcpy(changed, data, n = size);
        n = t->mutate ? t->mutate(changed, n, sizeof changed, (unsigned)i + 1)
                      : LLVMFuzzerMutate(changed, n, sizeof changed);
        give(t, changed, n);
    }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void run_folder(const struct target *t, const char *folder, int changes)
{
    char path[600];
    struct dirent **files = NULL;
    const int count = scandir(folder, &files, NULL, by_name);
    if (count <= 2) {
        printf("%s: no files in %s\n", t->name, folder);
        exit(1);
    }
    state = 1;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]->d_name);
        if (files[i]->d_name[0] != '.') run_file(t, path, changes);
        free(files[i]);
    }
    free(files);
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *where)
{
    (void)s, (void)kind, (void)where;
    return remove(path);
}

int main(int argc, char **argv)
{
    int changes = 8, first = 1, passed = 0;
    const char *more = NULL;
    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
        if (strcmp(argv[first], "--changes") == 0) changes = atoi(argv[first + 1]);
        if (strcmp(argv[first], "--more") == 0) more = argv[first + 1];
    }
    char scratch[32]; // for what targets leave
    snprintf(scratch, sizeof scratch, "%s/dgm-fuzz-XXXXXX", fuzz_scratch());
    if (!mkdtemp(scratch) || setenv("FUZZ_SCRATCH", scratch, 1) != 0) return 1;
    for (const struct target *t = targets; t->name; t++) {
        bool wanted = first >= argc;
        for (int i = first; i < argc; i++) wanted |= strcmp(argv[i], t->name) == 0;
        if (!wanted) continue;
        fprintf(stderr, "%s\n", t->name); // the last one is where it stopped
        char folder[256];
        snprintf(folder, sizeof folder, "tests/data/fuzz/%s", t->name);
        run_folder(t, folder, changes);
        if (more) run_folder(t, more, changes);
        passed++;
    }
    unsetenv("FUZZ_SCRATCH");
    nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    printf("%d passed, 0 failed\n", passed);
    return passed ? 0 : 1;
}
