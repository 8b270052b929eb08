// SPDX-License-Identifier: MIT
// Fuzz target: glossaries as tables; the first byte says TSV or CSV. What is accepted has valid,
// trimmed texts, and its terms are found in the text of the file itself, whole and without overlap.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "constraint/glossary.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_glossary *g;
    dgm_error err;
    if (size == 0 || dgm_glossary_open(&g, &err) != DGM_OK) return 0;
    const dgm_text text = {(const char *)data + 1, size - 1};
    const dgm_status st = data[0] & 1 ? dgm_glossary_csv(g, text, "en", "de", &err)
                                      : dgm_glossary_tsv(g, text, "en", "de", &err);
    if (st != DGM_OK) require(strlen(err.text) > 0 && !strchr(err.text, '\n'));
    check(g, text);
    dgm_glossary_close(&g);
    return 0;
}
