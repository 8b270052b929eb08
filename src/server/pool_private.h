// SPDX-License-Identifier: MIT
// Private to the files of the pool: model_pool.c (lanes), pool_files.c (model files), pool_list.c (languages, ways).
#ifndef DGM_SERVER_POOL_PRIVATE_H
#define DGM_SERVER_POOL_PRIVATE_H

#include "dragoman/settings.h"
#include "server/server_private.h"

enum { LANE_KEY_MAX = 2048 };

struct dgm_pool_models {
    pthread_mutex_t lock;
    dgm_pool_model **items; // in the order in which they are asked
    size_t count, cap;
    dgm_lane *lanes;
    size_t lane_count;
    const dgm_pool_listing *listing; // of the models that are there; counted
    uint64_t closed_steps, closed_rows, loads, reloads, evictions;
    // Files that could not be used, so that they are tried once (of the clock thread alone).
    struct dgm_bad_file *bad;
    size_t bad_count, bad_cap;
};

// pool_files.c: a model of a file; what is read of it is its own, and nothing of it is loaded. copy: read its bytes
// and keep
// them, since somebody may be writing to it.
dgm_status dgm_pool_model_open(const char *path, bool copy, dgm_pool_model **m, dgm_error *err);
void dgm_pool_drop(dgm_pool_models *p, dgm_pool_model *m); // one user less; not with the lock held
// Looks for files: new ones become models, those that are gone leave, changed ones are replaced. first: at the
// start, where
// a file that cannot be used is an error, unless it lies in a folder.
dgm_status dgm_pool_find_files(dgm_server *s, bool first, dgm_error *err);

// pool_list.c: makes the list of languages again; lock held.
dgm_status dgm_pool_relist(dgm_pool_models *p, dgm_error *err);
// The models for a direction; lock held. second NULL: one is enough.
dgm_status dgm_pool_route(dgm_pool_models *p, const dgm_task_spec *spec, dgm_pool_way *way, dgm_pool_model **first,
                          dgm_pool_model **second, dgm_error *err);

// model_pool.c: lanes of `fresh` like those of `old`, loaded, then old ones get no more tasks. A model that cannot
// be loaded
// leaves everything as it is.
dgm_status dgm_pool_replace(dgm_server *s, dgm_pool_model *old, dgm_pool_model *fresh, dgm_error *err);

#endif
