// SPDX-License-Identifier: MIT
// What the files of tokenizer_json.h share: a tokenizer.json as it was read.
#ifndef DGM_IMPORT_TOKENIZER_JSON_PRIVATE_H
#define DGM_IMPORT_TOKENIZER_JSON_PRIVATE_H

#include "base/bytes.h"
#include "import/tokenizer_json.h"

enum { DGM_TOKENIZER_STEPS = 16 };

typedef struct dgm_tokenizer_reading {
    const json_t *json, *model;
    dgm_tokenizer_info info;
    const char **tokens; // [size] spelling of each id, NULL where there is none
    bool *special;       // [size] stands for no text
    bool *added;         // [size] found in text before anything else
    // what normalizer and pre_tokenizer say
    const char *steps[DGM_TOKENIZER_STEPS]; // of text/normalize.h
    size_t step_count;
    dgm_writer charsmap;
    bool marks_spaces; // the normalizer writes space marks itself
    bool prefix_space, space_always, collapse, byte_level, metaspace, split;
} dgm_tokenizer_reading;

// normalizer and pre_tokenizer
dgm_status dgm_tokenizer_read_steps(dgm_tokenizer_reading *r, dgm_error *err);
// post_processor
dgm_status dgm_tokenizer_read_around(dgm_tokenizer_reading *r, dgm_error *err);
// Its type, or "null" where there is no such object.
const char *dgm_tokenizer_type(const json_t *object);

#endif
