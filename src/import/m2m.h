// SPDX-License-Identifier: MIT
// Private to the importer of M2M100, NLLB and mBART: the languages of a folder, and their ids.
#ifndef DGM_IMPORT_M2M_H
#define DGM_IMPORT_M2M_H

#include "base/json.h"
#include "import/import.h"
#include "import/marian_config.h"

// How languages are spelled: "__de__", "deu_Latn", "de_DE".
typedef enum dgm_m2m_style { DGM_STYLE_M2M100, DGM_STYLE_NLLB, DGM_STYLE_MBART } dgm_m2m_style;

typedef struct dgm_m2m_languages {
    int count;
    char **code;        // "de", "deu_Latn", "de_DE"
    const char **token; // as the vocabulary spells it: "__de__", "deu_Latn", "de_DE"
    char **owned;       // the tokens' memory
    int32_t *id;
} dgm_m2m_languages;

// Where the names are and how ids go on without any that are said.
typedef struct dgm_m2m_names {
    dgm_m2m_style style;
    const json_t *tokenizer,
        *special; // tokenizer_config.json, special_tokens_map.json; may be NULL
    int first;    // id of the first language of a list
    int vocabulary;
} dgm_m2m_names;

dgm_status dgm_m2m_languages_read(dgm_m2m_languages *out, const dgm_m2m_names *names,
                                  dgm_error *err);
void dgm_m2m_languages_free(dgm_m2m_languages *l); // accepts a zeroed struct

dgm_status dgm_import_m2m(dgm_import_job *job, dgm_error *err);

#endif
