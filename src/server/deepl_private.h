// SPDX-License-Identifier: MIT
// Private to DeepL's API: reading of fields, languages, glossaries. Messages are those that DeepL's clients know.
#ifndef DGM_SERVER_DEEPL_PRIVATE_H
#define DGM_SERVER_DEEPL_PRIVATE_H

#include "server/json_out.h"
#include "server/server_private.h"

// ---- deepl_fields.c ---------------------------------------------------------------------------------

// The fields that are there against the table: false: it was answered (400).
bool dgm_deepl_check(dgm_request *q);
// A text that must be there; NULL: it was answered.
const char *dgm_deepl_needed(dgm_request *q, const char *name);
// true, "true", 1, "1"; standard where it is missing.
bool dgm_deepl_flag(dgm_request *q, const char *name, bool standard);
// One of the words of a field's shape, or NULL; numbers are words, too.
const char *dgm_deepl_word(dgm_request *q, const char *name);
// All texts of a name: an array, a string, or the fields of a form that come again. parted: they may have commas
// between them. NULL: no memory, answered.
dgm_task_text *dgm_deepl_texts(dgm_request *q, const char *name, bool parted, size_t *count);
// formality, style_id and the like: what is not done here. False: it was answered.
bool dgm_deepl_manners(dgm_request *q);
void dgm_deepl_not_found(dgm_request *q);

// ---- deepl_languages.c ------------------------------------------------------------------------------

// "EN" of "en-GB"; out has room for DGM_DEEPL_CODE bytes. lower: "en".
enum { DGM_DEEPL_CODE = 16 };
void dgm_deepl_base(const char *code, bool lower, char *out);
// The languages of source_lang (NULL in *from: to be found out) and target_lang. False: it was answered.
bool dgm_deepl_pair(dgm_request *q, const dgm_pool_listing *listing, const dgm_pool_language **from,
                    const dgm_pool_language **to);
// What a text is in; always one that can be translated.
const dgm_pool_language *dgm_deepl_detect(const dgm_pool_listing *listing, const char *text, size_t size);

// ---- deepl_glossaries.c -----------------------------------------------------------------------------

// Terms of glossary_id and glossary_ids, for these languages, become books of the request. False: it was answered.
bool dgm_deepl_terms(dgm_request *q, const dgm_pool_language *from, const dgm_pool_language *to);

#endif
