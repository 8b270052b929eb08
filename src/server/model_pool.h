// SPDX-License-Identifier: MIT
// The models of a server: which there are, which translator serves a request, loading, eviction and replacement.
//
// A model is a file; a lane (lane.h) is a translator of it with certain settings, and the queue in front. Lanes are
// opened
// when a request needs them and counted while tasks use them. A file that was replaced or changed is read again: new
// requests go to a new lane, the old one closes after its last task. A lane's model lies in memory of its own, not
// in the
// mapped file: whatever happens to the file, translations go on.
#ifndef DGM_SERVER_MODEL_POOL_H
#define DGM_SERVER_MODEL_POOL_H

#include "server/task.h"

typedef struct dgm_pool_models dgm_pool_models;
typedef struct dgm_lane dgm_lane;

// A language of the models, as /languages lists them.
typedef struct dgm_pool_language {
    const char *code, *name;    // "de", "German"
    const char *const *targets; // [target_count], sorted; through a third language, too
    size_t target_count;
    bool source; // it can be translated
} dgm_pool_language;

typedef struct dgm_pool_listing {
    const dgm_pool_language *items; // sorted by code
    size_t count;
    const char *const *models; // names of the models
    size_t model_count;
    const char *source, *target; // of the first model
} dgm_pool_listing;

// What there is now; released when it is no longer read.
const dgm_pool_listing *dgm_pool_list(dgm_server *server);
void dgm_pool_release(const dgm_pool_listing **listing);
// The listing's code that a name means (any case, "-" or "_", "EN-US", "English", LibreTranslate's zh and pb); NULL:
// none
// of them.
const dgm_pool_language *dgm_pool_find(const dgm_pool_listing *listing, const char *name);
// Can this be translated? By codes of the listing.
bool dgm_pool_offers(const dgm_pool_language *source, const char *target);

// Languages that a text may be in, of those that can be translated; the most probable first. *count 0: none is.
typedef struct dgm_pool_detected {
    const char *code;  // static or the listing's
    double confidence; // 0 to 1
} dgm_pool_detected;
dgm_status dgm_pool_detect(const dgm_pool_listing *listing, const char *text, size_t size, dgm_pool_detected *found,
                           size_t most, size_t *count, dgm_error *err);

#endif
