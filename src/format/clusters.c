// SPDX-License-Identifier: MIT
// Clusters of hidden vectors in model files; see clusters.h and docs/internals/FORMAT.md, section 2.7.
//
// Block N has its keys under dragoman.clusters.N and its centroids in the tensor
// clusters.N.centroids; dragoman.clusters.blocks says how many there are. Lists are those of
// idlists.h.
#include "format/clusters.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/idlists.h"
#include "format/modelfile.h"
#include "format/rewrite.h"

#define KEY "dragoman.clusters."
#define VERSION 1

static const char *const fields[] = {"source",  "target",     "count", "width",
                                     "targets", "vocabulary", "best",  "lists"};

typedef struct name {
    char text[64];
} name;

static name key(int block, const char *field)
{
    name n;
    snprintf(n.text, sizeof n.text, KEY "%d.%s", block, field);
    return n;
}

static name tensor_name(int block)
{
    name n;
    snprintf(n.text, sizeof n.text, "clusters.%d.centroids", block);
    return n;
}

int dgm_clusters_blocks(const dgm_gguf *g)
{
    uint32_t n = 0;
    if (!dgm_gguf_find(g, KEY "version")) return 0;
    // A number that cannot be is the opener's to report.
    if (dgm_gguf_get_u32(g, KEY "blocks", DGM_REQUIRED, 1, DGM_CLUSTERS_BLOCKS_MAX, &n, NULL) !=
        DGM_OK)
        return 1;
    return (int)n;
}

static const char *language(const dgm_gguf *g, int block, const char *side)
{
    const char *text = "";
    if (dgm_gguf_get_string(g, key(block, side).text, DGM_OPTIONAL, &text, NULL) != DGM_OK)
        return "";
    return text;
}

// Of a language that nobody says ("") nothing is known, so a lone block, which has no rival, serves it.
static bool serves(const char *block, const char *asked, bool lone)
{
    return !*block || strcmp(block, asked) == 0 || (lone && !*asked);
}

int dgm_clusters_find(const dgm_gguf *g, const char *source, const char *target)
{
    const int count = dgm_clusters_blocks(g);
    int found = -1, best = -1;
    for (int i = 0; i < count; i++) {
        const char *s = language(g, i, "source"), *t = language(g, i, "target");
        if (!serves(s, source, count == 1) || !serves(t, target, count == 1)) continue;
        const int points = 2 * (*t != 0) + (*s != 0);
        if (points <= best) continue;
        best = points;
        found = i;
    }
    return found;
}

// ---- reading ----------------------------------------------------------------------------------

static dgm_status read_header(dgm_clusters_view *v, const dgm_gguf *g, int block, dgm_error *err)
{
    uint32_t version = 0, count = 0, width = 0, targets = 0, best = 1;
    DGM_TRY(dgm_gguf_get_u32(g, KEY "version", DGM_REQUIRED, 1, UINT32_MAX, &version, err));
    DGM_FAIL_IF(version > VERSION, err, DGM_ERR_VERSION,
                "the clusters are newer than this program (version %u, this program reads %d)",
                version, VERSION);
    uint32_t blocks = 0;
    DGM_TRY(
        dgm_gguf_get_u32(g, KEY "blocks", DGM_REQUIRED, 1, DGM_CLUSTERS_BLOCKS_MAX, &blocks, err));
    DGM_FAIL_IF(block < 0 || (uint32_t)block >= blocks, err, DGM_ERR_ARGUMENT,
                "there is no block %d of clusters", block);
    DGM_TRY(dgm_gguf_get_u32(g, key(block, "count").text, DGM_REQUIRED, 1, DGM_CLUSTERS_MAX, &count,
                             err));
    DGM_TRY(dgm_gguf_get_u32(g, key(block, "width").text, DGM_REQUIRED, 1, 1 << 16, &width, err));
    DGM_TRY(dgm_gguf_get_u32(g, key(block, "targets").text, DGM_REQUIRED, 1, DGM_SPEC_VOCAB_MAX,
                             &targets, err));
    DGM_TRY(dgm_gguf_get_u32(g, key(block, "best").text, DGM_OPTIONAL, 1, DGM_CLUSTERS_BEST_MAX,
                             &best, err));
    DGM_TRY(dgm_gguf_get_string(g, key(block, "source").text, DGM_REQUIRED, &v->source, err));
    DGM_TRY(dgm_gguf_get_string(g, key(block, "target").text, DGM_REQUIRED, &v->target, err));
    const char *wanted = NULL;
    char hash[17];
    int sources = 0;
    DGM_TRY(dgm_gguf_get_string(g, key(block, "vocabulary").text, DGM_REQUIRED, &wanted, err));
    DGM_TRY(dgm_vocabulary_hash(g, &sources, &v->targets, hash, err));
    DGM_FAIL_IF((int)targets != v->targets, err, DGM_ERR_FORMAT,
                "the clusters are for a vocabulary of %u tokens, the model has %d", targets,
                v->targets);
    DGM_FAIL_IF(strcmp(wanted, hash) != 0, err, DGM_ERR_FORMAT,
                "the clusters were made for other vocabularies (hash %.20s, the model has %s)",
                wanted, hash);
    v->count = (int)count;
    v->width = (int)width;
    v->best = (int)best;
    return DGM_OK;
}

static dgm_status read_centroids(dgm_clusters_view *v, const dgm_gguf *g, int block, dgm_error *err)
{
    const name n = tensor_name(block);
    DGM_TRY(dgm_gguf_matrix(g, n.text, v->count, v->width, DGM_REQUIRED, &v->centroids, err));
    DGM_FAIL_IF(v->centroids->type != DGM_TYPE_F16, err, DGM_ERR_FORMAT,
                "tensor '%s' must be of type f16", n.text);
    const uint16_t *h = v->centroids->data;
    for (size_t i = 0; i < (size_t)v->count * (size_t)v->width; i++)
        DGM_FAIL_IF((h[i] & 0x7c00) == 0x7c00, err, DGM_ERR_FORMAT,
                    "tensor '%s' holds numbers that are not finite", n.text);
    return DGM_OK;
}

static dgm_status read_lists(dgm_clusters_view *v, const dgm_gguf *g, int block, dgm_error *err)
{
    const name n = key(block, "lists");
    size_t size = 0;
    DGM_TRY(dgm_gguf_get_bytes(g, n.text, DGM_REQUIRED, &v->lists, &size, err));
    DGM_FAIL_IF(size >= UINT32_MAX, err, DGM_ERR_FORMAT, "%s is longer than 4 GiB", n.text);
    v->at = dgm_malloc(((size_t)v->count + 1) * sizeof *v->at);
    if (!v->at) return dgm_no_memory(err);
    const dgm_idlists lists = {n.text,     "centroid",          v->lists, size, v->count,
                               v->targets, (uint32_t)v->targets};
    DGM_TRY(dgm_idlists_index(&lists, v->at, &v->longest, err));
    for (int i = 0; i < v->count; i++)
        v->entries += (uint64_t)dgm_idlists_length(v->lists + v->at[i]);
    return DGM_OK;
}

dgm_status dgm_clusters_view_open(dgm_clusters_view *v, const dgm_gguf *g, int block,
                                  dgm_error *err)
{
    *v = (dgm_clusters_view){0};
    dgm_status st = read_header(v, g, block, err);
    if (st == DGM_OK) st = read_centroids(v, g, block, err);
    if (st == DGM_OK) st = read_lists(v, g, block, err);
    if (st != DGM_OK) dgm_clusters_view_close(v);
    return st;
}

void dgm_clusters_view_close(dgm_clusters_view *v)
{
    dgm_free(v->at);
    *v = (dgm_clusters_view){0};
}

// ---- storing ----------------------------------------------------------------------------------

static dgm_status check(const dgm_clusters *c, const dgm_gguf *g, char hash[17], dgm_error *err)
{
    int sources = 0, targets = 0;
    DGM_TRY(dgm_vocabulary_hash(g, &sources, &targets, hash, err));
    DGM_FAIL_IF(targets != c->targets, err, DGM_ERR_ARGUMENT,
                "the clusters are for a vocabulary of %d tokens, the model has %d", c->targets,
                targets);
    DGM_FAIL_IF(c->count < 1 || c->count > DGM_CLUSTERS_MAX || c->width < 1, err, DGM_ERR_ARGUMENT,
                "%d centroids of %d numbers", c->count, c->width);
    for (int i = 0; i < c->count; i++)
        for (uint64_t k = c->at[i]; k < c->at[i + 1]; k++)
            DGM_FAIL_IF(c->ids[k] < 0 || c->ids[k] >= targets ||
                            (k > c->at[i] && c->ids[k] <= c->ids[k - 1]),
                        err, DGM_ERR_ARGUMENT, "the list of centroid %d is not valid", i);
    return DGM_OK;
}

static void drop(dgm_gguf_writer *w, int blocks)
{
    dgm_gguf_unset(w, KEY "version");
    dgm_gguf_unset(w, KEY "blocks");
    for (int i = 0; i < blocks; i++)
        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
            dgm_gguf_unset(w, key(i, fields[f]).text);
}

// The place of the file's block for the same languages; -1: it has none.
static int place(const dgm_clusters *c, const dgm_gguf *g)
{
    for (int i = 0; i < dgm_clusters_blocks(g); i++)
        if (strcmp(language(g, i, "source"), c->source) == 0 &&
            strcmp(language(g, i, "target"), c->target) == 0)
            return i;
    return -1;
}

// Is this tensor the centroids of a block that is replaced (count 0: of any block)?
static bool replaced(const dgm_tensor *t, const dgm_clusters *const *c, int count, const dgm_gguf *g)
{
    const int blocks = dgm_clusters_blocks(g);
    int block = 0;
    while (block < blocks && strcmp(t->name, tensor_name(block).text) != 0) block++;
    bool any = block < blocks && count == 0;
    for (int i = 0; block < blocks && i < count && !any; i++) any = place(c[i], g) == block;
    return any;
}

static dgm_status copy_tensors(const dgm_clusters *const *c, int count, const dgm_gguf *g,
                               dgm_gguf_writer *w, dgm_error *err)
{
    DGM_TRY(dgm_rewrite_check(g, err));
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++)
        if (!replaced(dgm_gguf_tensor(g, i), c, count, g)) dgm_rewrite_copy(w, dgm_gguf_tensor(g, i));
    return DGM_OK;
}

// As block n of the file.
static dgm_status put_block(const dgm_clusters *c, int n, const char *hash, dgm_gguf_writer *w,
                            dgm_error *err)
{
    dgm_writer lists = {0};
    for (int i = 0; i < c->count; i++)
        dgm_idlists_put(&lists, c->ids + c->at[i], c->at[i + 1] - c->at[i]);
    if (lists.failed) {
        dgm_writer_free(&lists);
        return dgm_no_memory(err);
    }
    dgm_gguf_set_string(w, key(n, "source").text, c->source);
    dgm_gguf_set_string(w, key(n, "target").text, c->target);
    dgm_gguf_set_u32(w, key(n, "count").text, (uint32_t)c->count);
    dgm_gguf_set_u32(w, key(n, "width").text, (uint32_t)c->width);
    dgm_gguf_set_u32(w, key(n, "targets").text, (uint32_t)c->targets);
    dgm_gguf_set_string(w, key(n, "vocabulary").text, hash);
    dgm_gguf_set_u32(w, key(n, "best").text, (uint32_t)c->best);
    dgm_gguf_set_array(w, key(n, "lists").text, DGM_META_U8, lists.data, lists.size);
    const int shape[2] = {c->count, c->width};
    dgm_gguf_add_tensor(w, tensor_name(n).text, DGM_TYPE_F16, 2, shape, c->centroids);
    dgm_writer_free(&lists);
    return DGM_OK;
}

dgm_status dgm_clusters_store(const dgm_clusters *const *c, int count, const dgm_gguf *g,
                              dgm_gguf_writer *w, dgm_error *err)
{
    int blocks = dgm_clusters_blocks(g);
    char hash[17] = "";
    if (count == 0) drop(w, blocks);
    for (int i = 0; i < count; i++) {
        DGM_TRY(check(c[i], g, hash, err));
        blocks += place(c[i], g) < 0;
    }
    DGM_FAIL_IF(blocks > DGM_CLUSTERS_BLOCKS_MAX, err, DGM_ERR_ARGUMENT,
                "a model file holds clusters of at most %d directions", DGM_CLUSTERS_BLOCKS_MAX);
    DGM_TRY(copy_tensors(c, count, g, w, err));
    if (count == 0) return DGM_OK;
    dgm_gguf_set_u32(w, KEY "version", VERSION);
    dgm_gguf_set_u32(w, KEY "blocks", (uint32_t)blocks);
    for (int i = 0, next = dgm_clusters_blocks(g); i < count; i++) {
        const int own = place(c[i], g);
        DGM_TRY(put_block(c[i], own < 0 ? next++ : own, hash, w, err));
    }
    return DGM_OK;
}
