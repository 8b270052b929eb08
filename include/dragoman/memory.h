// SPDX-License-Identifier: MIT
// Dragoman tools: translation memories. What was translated before, read from TMX files, asked for by the exact text,
// and written as TMX. Conventions as in tools.h.
//
//     dgm_memory *m = NULL;
//     dgm_memory_open(&m, "en", "de", &error);
//     dgm_memory_read(m, "project.tmx", &error);
//     const char *known = dgm_memory_find(m, line, size, &known_size);
//     dgm_memory_add(m, line, size, translation, translation_size, &error);
//     dgm_memory_write(m, "project.tmx", &error);
//     dgm_memory_close(&m);
#ifndef DRAGOMAN_MEMORY_H
#define DRAGOMAN_MEMORY_H

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dgm_memory dgm_memory; // for one thread at a time; many may look things up while nobody adds

// An empty memory of a direction: BCP 47 codes. Both are needed.
DGM_API dgm_status dgm_memory_open(dgm_memory **memory, const char *source_language, const char *target_language,
                                   dgm_error *error);
DGM_API void dgm_memory_close(dgm_memory **memory); // sets NULL; accepts NULL inside

// Adds the units of a TMX file (plain or .gz, UTF-8 or UTF-16) that have both languages; "en" and "en-US" agree. Tags
// inside segments are left out. Of units with the same source the last one counts. Messages name the file and the line.
DGM_API dgm_status dgm_memory_read(dgm_memory *memory, const char *path, dgm_error *error);
DGM_API dgm_status dgm_memory_read_text(dgm_memory *memory, const char *tmx, size_t size, dgm_error *error);
// One unit; both texts are UTF-8. Empty ones are left out.
DGM_API dgm_status dgm_memory_add(dgm_memory *memory, const char *source, size_t source_size, const char *target,
                                  size_t target_size, dgm_error *error);

DGM_API size_t dgm_memory_count(const dgm_memory *memory); // different sources
// The translation of a text, borrowed until something is added; NULL: it is not known. Texts are the same if they
// differ in nothing but white space.
DGM_API const char *dgm_memory_find(const dgm_memory *memory, const char *source, size_t source_size, size_t *size);

// All of it as TMX 1.4, in the order in which sources came. A name that ends in .gz is compressed; a file takes its
// name when it is complete.
DGM_API dgm_status dgm_memory_write(const dgm_memory *memory, const char *path, dgm_error *error);
// The same as a text that ends with NUL, to be freed with dgm_string_free.
DGM_API dgm_status dgm_memory_text(const dgm_memory *memory, char **tmx, size_t *size, dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
