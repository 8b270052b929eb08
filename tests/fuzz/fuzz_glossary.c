// SPDX-License-Identifier: MIT
// Fuzz target: glossaries as tables; the first byte says TSV or CSV. What is accepted has valid,
// trimmed texts, and its terms are found in the text of the file itself, whole and without overlap.
// Parsers: src/constraint/glossary_table.c src/constraint/glossary.c
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "constraint/glossary.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

static void check(const dgm_glossary *g, dgm_text line)
{
    for (int32_t i = 0; i < (int32_t)dgm_glossary_count(g); i++) {
        const dgm_text s = dgm_glossary_source(g, i);
        require(s.size > 0 && dgm_utf8_valid(s) && dgm_text_trim(s).size == s.size);
        require(dgm_glossary_variant_count(g, i) > 0);
        const dgm_text v = dgm_glossary_variant(g, i, dgm_glossary_variant_count(g, i) - 1);
        require(v.size > 0 && dgm_utf8_valid(v));
    }
    dgm_glossary_hit hit = {0};
    for (size_t last = 0; dgm_glossary_find(g, line, &hit); last = hit.end) {
        require(hit.begin >= last && hit.end > hit.begin && hit.end <= line.size);
        require(dgm_term_at(line, hit.begin, dgm_glossary_source(g, hit.entry)) ==
                hit.end - hit.begin);
    }
}

// As a file of the kind that its name says.
static void read_file(dgm_text text, const char *name)
{
    const char *path = fuzz_written(name);
    dgm_glossary *g = NULL;
    dgm_error err = {""};
    FILE *f = fopen(path, "wb");
    require(f && fwrite(text.data, 1, text.size, f) == text.size && fclose(f) == 0);
    require(dgm_glossary_open(&g, &err) == DGM_OK);
    if (dgm_glossary_read(g, path, "en", "de", &err) != DGM_OK) require(err.text[0] && !strchr(err.text, '\n'));
    check(g, text);
    unlink(path);
    dgm_glossary_close(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a.tsv", "b.CSV", "c.tbx", "d"};
    dgm_glossary *g;
    dgm_error err;
    if (size == 0 || dgm_glossary_open(&g, &err) != DGM_OK) return 0;
    const dgm_text text = {(const char *)data + 1, size - 1};
    const dgm_status st = data[0] & 1 ? dgm_glossary_csv(g, text, "en", "de", &err)
                                      : dgm_glossary_tsv(g, text, "en", "de", &err);
    if (st != DGM_OK) require(strlen(err.text) > 0 && !strchr(err.text, '\n'));
    check(g, text);
    size_t at = 0;
    if (dgm_term_find(text, (dgm_text){"a", 1}, &at)) require(text.data[at] == 'a' || text.data[at] == 'A');
    dgm_glossary_close(&g);
    if (size % 16 == 1) read_file(text, names[data[0] / 2 % 4]);
    return 0;
}
