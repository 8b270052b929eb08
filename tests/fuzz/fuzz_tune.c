// SPDX-License-Identifier: MIT
// Fuzz target: the record of a tuning run, replayed. Lines are JSON; a run that comes to its end has a report.
// Parsers: src/tools/tune_record.c src/tools/tune_steps.c src/base/json.c
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dragoman/tools.h"
#include "dragoman/tune.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

FUZZ_MUTATOR(fuzz_json)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    dgm_tune_options o;
    dgm_tune_report *r = NULL;
    dgm_error err = {""};
    const int fd = memfd_create("record", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    dgm_tune_default(&o);
    o.replay = path;
    if (dgm_tune(&o, &r, &err) == DGM_OK) {
        if (!r->command || !r->chosen) abort();
    } else if (!err.text[0] || strchr(err.text, '\n')) {
        abort();
    }
    dgm_tune_report_free(&r);
    close(fd);
    return 0;
}
