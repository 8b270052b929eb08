// SPDX-License-Identifier: MIT
// A folder of a test's own, and files in it. Functions fail the running cmocka test on errors, but
// for scratch_open and scratch_close, which main calls. Include cmocka.h first.
#ifndef DGM_TESTS_SCRATCH_H
#define DGM_TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mapfile.h"

static char folder[64];

static inline bool scratch_open(void)
{
    strcpy(folder, "/tmp/dragoman-test-XXXXXX");
    return mkdtemp(folder) != NULL;
}

// Removes it; returns what main returns: `failed`, or 1.
static inline int scratch_close(int failed)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 ? 1 : failed;
}

// A path in the folder; 32 may be in use at once.
static inline const char *in_folder(const char *name)
{
    static char paths[32][128];
    static int next;
    char *p = paths[next++ % 32];
    snprintf(p, sizeof paths[0], "%s/%s", folder, name);
    return p;
}

static inline const char *put(const char *name, const void *data, size_t size)
{
    const char *path = in_folder(name);
    assert_int_equal(dgm_file_write(path, data, size, NULL), DGM_OK);
    return path;
}

static inline const char *put_text(const char *name, const char *text)
{
    return put(name, text, strlen(text));
}

// A whole file, terminated by NUL; the caller frees it.
static inline char *get(const char *path)
{
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, path, NULL), DGM_OK);
    char *copy = calloc(1, f.size + 1);
    assert_non_null(copy);
    if (f.size) memcpy(copy, f.data, f.size);
    dgm_mapfile_close(&f);
    return copy;
}

#endif
