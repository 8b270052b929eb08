// SPDX-License-Identifier: MIT
// API keys, from a file that people edit: a key a line, then what it may do; "#" begins a comment.
//
//     KEY [req_limit=N] [char_limit=N] [char_quota=N] [name=WORD]
//
// req_limit: requests a minute; char_limit: characters of a request; without them the server's own limits hold.
// char_quota: characters of a calendar month; without it there is no limit.
#ifndef DGM_SERVER_API_KEYS_H
#define DGM_SERVER_API_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { DGM_KEY_MAX = 128 };

typedef struct dgm_key {
    char key[DGM_KEY_MAX], name[64]; // name: for logs; "key 3" where the file has none
    int64_t req_limit, char_limit;   // -1: the server's
    int64_t char_quota;              // -1: none
} dgm_key;

typedef struct dgm_keys dgm_keys; // any number of threads

dgm_status dgm_keys_open(dgm_keys **keys, const char *path, dgm_error *err);
void dgm_keys_close(dgm_keys **keys); // accepts NULL inside
// Reads the file again where it changed; one that cannot be read leaves the keys as they are. *changed may be NULL.
dgm_status dgm_keys_reload(dgm_keys *keys, bool *changed, dgm_error *err);
bool dgm_keys_find(dgm_keys *keys, const char *key, dgm_key *out);
size_t dgm_keys_count(dgm_keys *keys);

#endif
