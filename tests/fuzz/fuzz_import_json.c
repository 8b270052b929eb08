// SPDX-License-Identifier: MIT
// Fuzz target: the JSON settings of an imported model. The input is config.json, or config.json
// and generation_config.json with a NUL between them.
// Parsers: src/import/marian_config.c src/import/t5_config.c src/base/json.c
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "import/marian_config.h"
#include "import/t5.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

FUZZ_MUTATOR(fuzz_json)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t first = nul ? (size_t)(nul - data) : size;
    json_t *config = NULL, *generation = NULL;
    dgm_marian_config c;
    dgm_t5_config t;
    dgm_error err;
    if (dgm_json_parse(&config, data, first, &err) == DGM_OK) {
        if (nul) dgm_json_parse(&generation, nul + 1, size - first - 1, &err);
        (void)dgm_marian_config_read(&c, config, generation, &err);
        (void)dgm_m2m_config_read(&c, config, generation, &err);
        (void)dgm_mbart_config_read(&c, config, generation, &err);
        (void)dgm_fsmt_config_read(&c, config, generation, &err);
        (void)dgm_t5_config_read(&t, config, generation, &err);
        json_t *again = NULL;
        char *text = dgm_json_text(config, JSON_COMPACT | JSON_ENCODE_ANY);
        if (text && (dgm_json_parse(&again, text, strlen(text), &err) != DGM_OK || !json_equal(config, again))) abort();
        json_decref(again);
        dgm_free(text);
    }
    json_decref(config);
    json_decref(generation);
    return 0;
}
