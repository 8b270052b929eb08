// SPDX-License-Identifier: MIT
// Glossaries that clients have made, by owner (the key, "" for all who have none): in memory, as long as the server
// lives. One has a dictionary for each direction. Any number of threads; what a function gives is a copy.
#ifndef DGM_SERVER_GLOSSARY_STORE_H
#define DGM_SERVER_GLOSSARY_STORE_H

#include "base/bytes.h"
#include "base/words.h"
#include "server/termbook.h"

enum { DGM_GLOSSARY_ID = 36, DGM_GLOSSARY_LANGUAGE = 16, DGM_GLOSSARY_NAME = 1024, DGM_GLOSSARY_MOST = 1000 };
#define DGM_GLOSSARY_BYTES ((size_t)10 << 20)   // entries of one dictionary
#define DGM_GLOSSARIES_BYTES ((size_t)256 << 20) // of memory, for all

// Terms of one direction; each source stands there once.
typedef struct dgm_dictionary {
    char source[DGM_GLOSSARY_LANGUAGE], target[DGM_GLOSSARY_LANGUAGE]; // "en", "de"
    dgm_words sources;
    char **targets; // [sources.count]
    size_t cap, bytes; // bytes: of memory, about; never less
    dgm_termbook *book; // all of it, for translations; NULL: it was changed since
} dgm_dictionary;

void dgm_dictionary_free(dgm_dictionary *d); // accepts all zero
// Adds lines "source TAB target", or fields of CSV, of which the first two count. Neither may be empty, nor a source
// come twice: DGM_ERR_FORMAT says where.
dgm_status dgm_dictionary_read(dgm_dictionary *d, const char *text, size_t size, bool csv, dgm_error *err);
// Adds a term, or gives one another target.
dgm_status dgm_dictionary_put(dgm_dictionary *d, dgm_text source, const char *target, dgm_error *err);
void dgm_dictionary_write(const dgm_dictionary *d, dgm_writer *out); // as TSV, without a break at the end

typedef struct dgm_glossary_info {
    char id[DGM_GLOSSARY_ID + 1];
    char name[DGM_GLOSSARY_NAME + 1];
    char created[32]; // "2026-11-17T04:05:06.789Z"
    size_t count;
    struct dgm_glossary_direction {
        char source[DGM_GLOSSARY_LANGUAGE], target[DGM_GLOSSARY_LANGUAGE];
        size_t entries;
    } *directions; // [count]
} dgm_glossary_info;

void dgm_glossary_info_free(dgm_glossary_info *info);

typedef struct dgm_glossaries dgm_glossaries;

dgm_status dgm_glossaries_open(dgm_glossaries **store, dgm_error *err);
void dgm_glossaries_close(dgm_glossaries **store); // accepts NULL inside

// id: filled in. Dictionaries are taken over, also on failure, and replace those of the same direction (merge: their
// terms are added instead). DGM_ERR_UNSUPPORTED: there are too many, or they are too large. DGM_ERR_ARGUMENT: there is
// no such glossary.
dgm_status dgm_glossaries_add(dgm_glossaries *store, const char *owner, const char *name, dgm_dictionary *list,
                              size_t count, char id[DGM_GLOSSARY_ID + 1], dgm_error *err);
dgm_status dgm_glossaries_change(dgm_glossaries *store, const char *owner, const char *id, const char *name,
                                 dgm_dictionary *list, size_t count, bool merge, dgm_error *err);
// source NULL: the whole glossary. False: it is not there.
bool dgm_glossaries_remove(dgm_glossaries *store, const char *owner, const char *id, const char *source,
                           const char *target);

// The glossary `index` of an owner from 0, oldest first, or that with an id. DGM_ERR_ARGUMENT: it is not there.
dgm_status dgm_glossaries_at(dgm_glossaries *store, const char *owner, size_t index, dgm_glossary_info *info,
                             dgm_error *err);
dgm_status dgm_glossaries_find(dgm_glossaries *store, const char *owner, const char *id, dgm_glossary_info *info,
                               dgm_error *err);
// The terms of a direction, to be dropped by the caller. DGM_ERR_ARGUMENT: there is no such direction.
dgm_status dgm_glossaries_book(dgm_glossaries *store, const char *owner, const char *id, const char *source,
                               const char *target, dgm_termbook **book, dgm_error *err);
// Calls fn for every term of a direction, under the store's lock. False: there is no such direction.
bool dgm_glossaries_each(dgm_glossaries *store, const char *owner, const char *id, const char *source,
                         const char *target, void (*fn)(void *cookie, dgm_text source, const char *target),
                         void *cookie);

#endif
