// SPDX-License-Identifier: MIT
// Fuzz target: packages of Argos Translate, from the archive to the model file; archives of Marian's models, unpacked;
// what begins as gzip is a file of a folder that is unpacked.
// Parsers: src/import/argos.c src/import/unpack.c
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/import.h"
#include "import/unpack.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

FUZZ_MUTATOR(fuzz_zip)

static void put_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) abort();
}

// What is unpacked lies in a folder that can be removed again.
static void unpack(const char *path, const char *output, bool folder)
{
    char *at = NULL;
    dgm_error err = {""};
    const dgm_status st = folder ? dgm_unpack_gz(path, output, &at, &err) : dgm_unpack_zip(path, output, &at, &err);
    if (st == DGM_OK ? !at || access(at, R_OK) != 0 : at || !err.text[0]) abort();
    dgm_unpack_remove(&at);
}

// As one of two files, so that one more lies beside it; and as the plain file of the same name.
static void unpack_folder(const char *folder, const char *output, const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a.bin.gz", "b.gz", "b"};
    char path[128];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (i < 2 || size % 2) put_file(path, data, i < 2 ? size : 1);
        else unlink(path);
    }
    unpack(folder, output, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char package[64], output[80], folder[80];
    dgm_error err;
    if (!output[0]) {
        snprintf(package, sizeof package, "%s/dragoman-fuzz-argos-XXXXXX", fuzz_scratch());
        const int fd = mkstemp(package);
        if (fd < 0) return 0;
        close(fd);
        snprintf(output, sizeof output, "%s.gguf", package);
        snprintf(folder, sizeof folder, "%s/dragoman-fuzz-XXXXXX", fuzz_scratch());
        if (!mkdtemp(folder)) abort();
    }
    if (size > 2 && data[0] == 0x1f && data[1] == 0x8b) {
        unpack_folder(folder, output, data, size);
        return 0;
    }
    put_file(package, data, size);
    (void)dgm_import_run("argos", package, output, NULL, NULL, &err);
    unlink(output);
    unpack(package, output, false);
    return 0;
}
