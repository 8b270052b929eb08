// SPDX-License-Identifier: MIT
// Glossaries: source terms with the target texts that may stand for them, from TSV, CSV and TBX
// files (docs/manual/CONSTRAINTS.md), and finding them in lines.
//
// A source term stands in a line where its words do, in the case as written; a term that begins with
// a small letter also where that letter is a capital (the beginning of a sentence). Terms do not
// overlap: from left to right, the longest wins. Rows and files with the same source add variants.
//
// After reading, a glossary is never changed: any number of threads may look things up.
#ifndef DGM_CONSTRAINT_GLOSSARY_H
#define DGM_CONSTRAINT_GLOSSARY_H

#include "text/unicode.h"

typedef struct dgm_glossary dgm_glossary;

dgm_status dgm_glossary_open(dgm_glossary **g, dgm_error *err);
void dgm_glossary_close(dgm_glossary **g); // sets NULL; accepts NULL inside

// Reads a file whose name ends in .csv, .tbx or .xml, else a TSV file; .gz may follow. Languages are
// BCP 47 codes, "": unknown. Messages name the file and the line.
dgm_status dgm_glossary_read(dgm_glossary *g, const char *path, const char *source,
                             const char *target, dgm_error *err);
// The same of a file that was read, gzip and all (dgm_lines_collect); its name says what it is.
dgm_status dgm_glossary_parse(dgm_glossary *g, const char *path, dgm_text data, const char *source,
                              const char *target, dgm_error *err);
// The parsers, over the whole content of a file. DGM_ERR_UNSUPPORTED: it has nothing for the two languages. On failure
// some rows may have been added.
dgm_status dgm_glossary_tsv(dgm_glossary *g, dgm_text data, const char *source, const char *target,
                            dgm_error *err);
dgm_status dgm_glossary_csv(dgm_glossary *g, dgm_text data, const char *source, const char *target,
                            dgm_error *err);
dgm_status dgm_glossary_tbx(dgm_glossary *g, dgm_text data, const char *source, const char *target,
                            dgm_error *err);
// One variant of a term; both are valid UTF-8 and not empty. Doubles are dropped.
dgm_status dgm_glossary_add(dgm_glossary *g, dgm_text source, dgm_text target, dgm_error *err);

size_t dgm_glossary_count(const dgm_glossary *g); // source terms
dgm_text dgm_glossary_source(const dgm_glossary *g, int32_t entry);
size_t dgm_glossary_variant_count(const dgm_glossary *g, int32_t entry);
dgm_text dgm_glossary_variant(const dgm_glossary *g, int32_t entry, size_t i);

typedef struct dgm_glossary_hit {
    size_t begin, end; // in the line
    int32_t entry;
    size_t next; // where the search goes on; 0 at first
} dgm_glossary_hit;

// The next term in a line; start with a hit of zeros. False: no more.
bool dgm_glossary_find(const dgm_glossary *g, dgm_text line, dgm_glossary_hit *hit);

// Do these words stand at an offset of the text, as whole words, in the case described above? Gives
// the number of bytes, or 0.
size_t dgm_term_at(dgm_text text, size_t at, dgm_text words);
bool dgm_term_find(dgm_text text, dgm_text words, size_t *at); // the next place from *at on

#endif
