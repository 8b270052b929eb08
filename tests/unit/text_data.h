// SPDX-License-Identifier: MIT
// What the text tests share: files of lines from tests/data/text. Tests run in the root of the
// repository.
#ifndef DGM_TESTS_UNIT_TEXT_DATA_H
#define DGM_TESTS_UNIT_TEXT_DATA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "text/unicode.h"

typedef struct text_lines {
    dgm_mapfile file;
    dgm_text *lines;
    size_t count;
} text_lines;

static inline dgm_mapfile text_file(const char *name)
{
    char path[256];
    dgm_mapfile file;
    dgm_error err;
    snprintf(path, sizeof path, "tests/data/text/%s", name);
    if (dgm_mapfile_open(&file, path, &err) != DGM_OK) fail_msg("%s", err.text);
    return file;
}

static inline text_lines text_lines_open(const char *name)
{
    text_lines t = {.file = text_file(name)};
    size_t cap = 0, begin = 0;
    for (size_t i = 0; i < t.file.size; i++) {
        if (t.file.data[i] != '\n') continue;
        assert_int_equal(dgm_grow(&t.lines, &cap, t.count + 1, sizeof *t.lines, NULL), DGM_OK);
        t.lines[t.count++] = (dgm_text){(const char *)t.file.data + begin, i - begin};
        begin = i + 1;
    }
    return t;
}

static inline void text_lines_close(text_lines *t)
{
    dgm_free(t->lines);
    dgm_mapfile_close(&t->file);
}

#define assert_text_equal(text, expected)                                                          \
    do {                                                                                           \
        dgm_text text_ = (text), expected_ = (expected);                                           \
        if (!dgm_text_equal(text_, expected_))                                                     \
            fail_msg("%s:%d: '%.*s' should be '%.*s'", __FILE__, __LINE__, (int)text_.size,        \
                     text_.data, (int)expected_.size, expected_.data);                             \
    } while (0)

static inline dgm_text text_of_writer(const dgm_writer *w)
{
    return (dgm_text){w->data ? (const char *)w->data : "", w->size};
}

#endif
