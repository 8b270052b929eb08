// SPDX-License-Identifier: MIT
// Languages that tokenisers of transformers have built in, in the order of their ids: folders need not list them, and
// a folder that is written has to have its languages there.
#ifndef DGM_IMPORT_LANGUAGE_LISTS_H
#define DGM_IMPORT_LANGUAGE_LISTS_H

enum { DGM_M2M100_LANGUAGES = 100, DGM_MBART_LANGUAGES = 25, DGM_MBART50_LANGUAGES = 52 };

extern const char *const dgm_m2m100_languages[DGM_M2M100_LANGUAGES];
extern const char *const dgm_mbart_languages[DGM_MBART50_LANGUAGES]; // of which the first 25 are mBART's

#endif
