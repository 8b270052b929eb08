// SPDX-License-Identifier: MIT
// Fuzz target: glossaries in TBX. What is accepted has at least one term, with valid, trimmed texts
// that are no longer than the file; what is refused has a message of one line.
// Parsers: src/constraint/glossary_tbx.c
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "constraint/glossary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_glossary *g;
    dgm_error err;
    if (dgm_glossary_open(&g, &err) != DGM_OK) return 0;
    const dgm_status st = dgm_glossary_tbx(g, (dgm_text){(const char *)data, size}, "en", "de", &err);
    require((st == DGM_OK) <= (dgm_glossary_count(g) > 0));
    if (st != DGM_OK) require(strlen(err.text) > 0 && !strchr(err.text, '\n'));
    for (int32_t i = 0; i < (int32_t)dgm_glossary_count(g); i++) {
        const dgm_text s = dgm_glossary_source(g, i);
        require(s.size > 0 && s.size <= size && dgm_utf8_valid(s));
        require(dgm_text_trim(s).size == s.size && dgm_glossary_variant_count(g, i) > 0);
        require(dgm_glossary_variant(g, i, 0).size > 0);
    }
    dgm_glossary_close(&g);
    return 0;
}
