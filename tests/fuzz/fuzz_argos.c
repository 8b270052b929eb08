// SPDX-License-Identifier: MIT
// Fuzz target: packages of Argos Translate, from the archive to the model file.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char package[] = "/tmp/dgm-fuzz-argos-XXXXXX", output[64];
    dgm_error err;
    if (!output[0]) {
        const int fd = mkstemp(package);
        if (fd < 0) return 0;
        close(fd);
        snprintf(output, sizeof output, "%s.gguf", package);
    }
    FILE *f = fopen(package, "wb");
    if (!f) return 0;
    const int fine = fwrite(data, 1, size, f) == size;
    if (fclose(f) == 0 && fine) (void)dgm_import_run("argos", package, output, NULL, NULL, &err);
    unlink(output);
    return 0;
}
