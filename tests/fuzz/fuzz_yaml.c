// SPDX-License-Identifier: MIT
// Fuzz target: YAML of Marian's settings and vocabularies.
// Parsers: src/import/yaml.c
#include <stdint.h>

#include "import/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_error err;
    json_t *o;
    if (dgm_yaml_parse(&o, data, size, &err) == DGM_OK) json_decref(o);
    return 0;
}
