// SPDX-License-Identifier: MIT
// The clusters of a model file on a device: centroids and lists, shared by all workers.
#include "base/mem.h"
#include "format/clusters.h"
#include "format/idlists.h"
#include "format/modelfile.h"
#include "vocabsel/cluster_private.h"
#include "vocabsel/vocabsel.h"

struct dgm_cluster_set {
    dgm_backend *backend;
    const dgm_gguf *file;
    dgm_clusters_view view;
    dgm_centroids *centroids;
    bool kept; // the device has the lists
};

void dgm_cluster_set_close(dgm_cluster_set **set)
{
    dgm_cluster_set *s = *set;
    if (!s) return;
    dgm_centroids_free(s->backend, &s->centroids);
    dgm_clusters_view_close(&s->view);
    dgm_free(s);
    *set = NULL;
}

// Without what is never chosen: a union needs no second look.
static dgm_status keep_lists(dgm_cluster_set *s, dgm_error *err)
{
    const size_t words = ((size_t)s->view.targets + 63) / 64;
    dgm_vocab_spec target = {0};
    DGM_TRY(dgm_modelfile_vocab(s->file, DGM_TARGET, &target, err));
    const int end = dgm_modelfile_end(&target);
    uint64_t *bits = dgm_calloc((size_t)s->view.count * words, sizeof *bits);
    if (!bits) return dgm_no_memory(err);
    for (int i = 0; i < s->view.count; i++) {
        uint64_t *own = bits + (size_t)i * words;
        dgm_cluster_set_mark(s, i, own);
        for (size_t n = 0; n < target.never_count; n++)
            if (target.never[n] != end) own[target.never[n] >> 6] &= ~((uint64_t)1 << (target.never[n] & 63));
    }
    const dgm_status st = dgm_centroids_lists(s->backend, s->centroids, bits, s->view.targets, err);
    dgm_free(bits);
    s->kept = st == DGM_OK;
    return st;
}

static dgm_status open_set(dgm_cluster_set *s, int block, int width, dgm_error *err)
{
    DGM_TRY(dgm_clusters_view_open(&s->view, s->file, block, err));
    DGM_FAIL_IF(s->view.width != width, err, DGM_ERR_FORMAT,
                "the centroids have %d numbers, the model's hidden vectors %d", s->view.width,
                width);
    DGM_TRY(dgm_centroids_load(s->backend, s->view.centroids, &s->centroids, err));
    return dgm_backend_properties(s->backend)->keeps_lists ? keep_lists(s, err) : DGM_OK;
}

dgm_status dgm_cluster_set_open_block(dgm_cluster_set **set, dgm_backend *b, const dgm_gguf *file,
                                      int block, int width, dgm_error *err)
{
    dgm_cluster_set *s = *set = dgm_calloc(1, sizeof *s);
    if (!s) return dgm_no_memory(err);
    s->backend = b;
    s->file = file;
    dgm_status st = open_set(s, block, width, err);
    if (st != DGM_OK) dgm_cluster_set_close(set);
    return st;
}

dgm_status dgm_cluster_set_open(dgm_cluster_set **set, dgm_backend *b, const dgm_gguf *file,
                                const char *source, const char *target, int width, dgm_error *err)
{
    const int block = dgm_clusters_find(file, source, target);
    *set = NULL;
    DGM_FAIL_IF(dgm_clusters_blocks(file) == 0, err, DGM_ERR_UNSUPPORTED,
                "the model has no clusters (make them with 'dragoman cluster')");
    DGM_FAIL_IF(block < 0, err, DGM_ERR_UNSUPPORTED,
                "the model has no clusters for '%s' to '%s' (make them with 'dragoman cluster')",
                source, target);
    return dgm_cluster_set_open_block(set, b, file, block, width, err);
}

int dgm_cluster_set_count(const dgm_cluster_set *s)
{
    return s->view.count;
}

size_t dgm_cluster_set_bytes(const dgm_cluster_set *s)
{
    return dgm_centroids_bytes(s->centroids);
}

const dgm_gguf *dgm_cluster_set_file(const dgm_cluster_set *s)
{
    return s->file;
}

int dgm_cluster_set_longest(const dgm_cluster_set *s)
{
    return s->view.longest;
}

int dgm_cluster_set_length(const dgm_cluster_set *s, int centroid)
{
    return dgm_idlists_length(s->view.lists + s->view.at[centroid]);
}

bool dgm_cluster_set_kept(const dgm_cluster_set *s)
{
    return s->kept;
}

int dgm_cluster_set_targets(const dgm_cluster_set *s)
{
    return s->view.targets;
}

void dgm_cluster_set_mark(const dgm_cluster_set *s, int centroid, uint64_t *bits)
{
    dgm_idlists_mark(s->view.lists + s->view.at[centroid], bits);
}

int dgm_cluster_set_decode(const dgm_cluster_set *s, int centroid, int32_t *out)
{
    return dgm_idlists_decode(s->view.lists + s->view.at[centroid], out);
}

const dgm_centroids *dgm_cluster_set_centroids(const dgm_cluster_set *s)
{
    return s->centroids;
}
