// SPDX-License-Identifier: MIT
// Which tokens a translation may be made of (--shortlist): chosen while a translator opens, opened
// once per worker.
//
// Members of an ensemble have one vocabulary in common, so the shortlist of one serves all, and
// so do the clusters of one, which look at that member's hidden vectors: the first that has them for the
// direction, or, where lines say their directions, for most of those that the models have.
// Clusters choose other tokens at every step: the output layers then keep their weights by rows
// (backend/device.h), and nothing is gathered. They belong to a direction: a translator holds those of its own,
// or, where lines say their directions, those of every block of the file, and each line names its.
#include "base/mem.h"
#include "engine/engine_private.h"
#include "format/clusters.h"
#include "format/shortlist.h"

const char *const dgm_restrict_names[] = {"all", "lexical", "cluster", "union", "intersect", NULL};

static bool wants_list(int words)
{
    return words == DGM_RESTRICT_LEXICAL || words == DGM_RESTRICT_UNION ||
           words == DGM_RESTRICT_INTERSECT;
}

static dgm_status open_sets(dgm_translator *t, const dgm_gguf *file, dgm_error *err)
{
    const int width = dgm_model_describe(t->members[t->clustered].model)->hidden;
    const int sets = t->every_direction ? dgm_clusters_blocks(file) : 1;
    t->clusters = dgm_calloc((size_t)sets, sizeof *t->clusters);
    if (!t->clusters) return dgm_no_memory(err);
    t->cluster_sets = sets;
    if (!t->every_direction)
        return dgm_cluster_set_open(&t->clusters[0], t->backend, file, t->source_code,
                                    t->target_code, width, err);
    for (int i = 0; i < sets; i++)
        DGM_TRY(dgm_cluster_set_open_block(&t->clusters[i], t->backend, file, i, width, err));
    return DGM_OK;
}

void dgm_restrict_close(dgm_translator *t)
{
    for (int i = 0; i < t->cluster_sets; i++) dgm_cluster_set_close(&t->clusters[i]);
    dgm_free(t->clusters);
    t->clusters = NULL;
    t->cluster_sets = 0;
}

dgm_status dgm_restrict_line(const dgm_translator *t, const int direction[2], bool other,
                             int *clusters, dgm_error *err)
{
    *clusters = 0;
    if (!t->clusters || (!t->every_direction && !other)) return DGM_OK;
    DGM_FAIL_IF(!t->every_direction, err, DGM_ERR_UNSUPPORTED,
                "clusters are those of %s to %s: translate other directions by themselves or "
                "without clusters", t->source_code, t->target_code);
    const dgm_languages *l = dgm_model_describe(t->members[0].model)->languages;
    const char *code[2] = {"", ""};
    for (int side = 0; side < 2; side++)
        if (direction[side] >= 0 && l->count[side] > 0) code[side] = l->code[side][direction[side]];
    const int block = dgm_clusters_find(t->members[t->clustered].file, code[0], code[1]);
    DGM_FAIL_IF(block < 0, err, DGM_ERR_UNSUPPORTED,
                "the model has no clusters for '%s' to '%s' (make them with 'dragoman cluster')",
                code[0], code[1]);
    *clusters = block;
    return DGM_OK;
}

// For how many of the directions that may come a file has clusters.
static int served(const dgm_translator *t, const dgm_gguf *file)
{
    const dgm_languages *l = dgm_model_describe(t->members[0].model)->languages;
    if (!t->every_direction || l->count[0] == 0 || l->count[1] == 0)
        return dgm_clusters_find(file, t->source_code, t->target_code) >= 0;
    int count = 0;
    for (int s = 0; s < l->count[0]; s++)
        for (int d = 0; d < l->count[1]; d++)
            count += dgm_languages_offers(l, s, d) &&
                     dgm_clusters_find(file, l->code[0][s], l->code[1][d]) >= 0;
    return count;
}

// -1: no member has clusters.
static int choose_member(const dgm_translator *t)
{
    int best = -1, most = -1;
    for (int i = 0; i < t->member_count; i++) {
        const dgm_gguf *file = t->members[i].file;
        const int count = dgm_clusters_blocks(file) == 0 ? -1
                          : t->member_count == 1         ? 1
                                                         : served(t, file);
        if (count > most) {
            best = i;
            most = count;
        }
    }
    return best;
}

static dgm_status load_clusters(dgm_translator *t, dgm_error *err)
{
    // The output layer is laid out for them before anybody uses it.
    DGM_FAIL_IF(t->lender && t->lender->clustered < 0, err, DGM_ERR_UNSUPPORTED,
                "shortlist %s: clusters are chosen when a model is loaded, and this one was loaded without",
                dgm_restrict_names[t->restricted]);
    t->clustered = choose_member(t);
    DGM_FAIL_IF(t->clustered < 0, err, DGM_ERR_UNSUPPORTED,
                "%s: the model has no clusters (make them with 'dragoman cluster')",
                dgm_gguf_path(t->members[0].file));
    const dgm_gguf *file = t->members[t->clustered].file;
    const dgm_status st = open_sets(t, file, err);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "%s", dgm_gguf_path(file));
    if (st != DGM_OK) return st;
    for (int i = 0; i < t->cluster_sets; i++)
        t->info.packed_bytes += dgm_cluster_set_bytes(t->clusters[i]);
    for (int i = 0; i < t->member_count; i++) {
        const uint64_t before = dgm_model_describe(t->members[i].model)->packed_bytes;
        DGM_TRY(dgm_model_output_by_rows(t->members[i].model, err));
        t->info.packed_bytes += dgm_model_describe(t->members[i].model)->packed_bytes - before;
    }
    return DGM_OK;
}

dgm_status dgm_restrict_resolve(dgm_translator *t, int choice, dgm_error *err)
{
    t->shortlist = t->clustered = -1;
    // Inside a lattice the whole vocabulary makes scores exact, and few words are left to choose.
    if (t->lattices && choice < 0) choice = DGM_RESTRICT_ALL;
    // A shortlist holds the words of the text it was made from: of one target language, most likely.
    const dgm_languages *l = dgm_model_describe(t->members[0].model)->languages;
    if (l && l->count[DGM_TARGET] > 1 && choice < 0) choice = DGM_RESTRICT_ALL;
    t->restricted = choice < 0 ? DGM_RESTRICT_LEXICAL : choice;
    for (int i = t->member_count - 1; wants_list(t->restricted) && i >= 0; i--)
        if (dgm_shortlist_present(t->members[i].file)) t->shortlist = i;
    if (choice < 0 && t->shortlist < 0) t->restricted = DGM_RESTRICT_ALL;
    DGM_FAIL_IF(wants_list(t->restricted) && t->shortlist < 0, err, DGM_ERR_UNSUPPORTED,
                "%s: the model has no shortlist (make one with 'dragoman shortlist')",
                dgm_gguf_path(t->members[0].file));
    return t->restricted >= DGM_RESTRICT_CLUSTER ? load_clusters(t, err) : DGM_OK;
}

size_t dgm_restrict_centroids(const dgm_translator *t)
{
    size_t count = 0;
    for (int i = 0; i < t->cluster_sets; i++) count += (size_t)dgm_cluster_set_count(t->clusters[i]);
    return count;
}

// Vectors of one step: a model of pairs gives two for a row.
static int vectors(const dgm_translator *t)
{
    return t->limits.rows * dgm_model_describe(t->members[0].model)->tokens_per_step;
}

static int joint_vocabulary(const dgm_translator *t)
{
    return dgm_linear_rows(dgm_model_output(t->members[0].model));
}

dgm_bytes dgm_restrict_bytes(const dgm_translator *t)
{
    dgm_bytes bytes = {0};
    for (int i = 0; i < t->member_count; i++) {
        const dgm_linear *out = dgm_model_output(t->members[i].model);
        if (t->restricted == DGM_RESTRICT_LEXICAL)
            bytes = dgm_bytes_add(bytes, dgm_vocabsel_lexical_bytes(t->backend, out, t->batch));
        else if (t->shortlist >= 0) // continuations
            bytes = dgm_bytes_add(bytes, dgm_rank_more_bytes(t->backend, out));
    }
    dgm_bytes search = {0}; // for the nearest centroid: of the largest set, one is looked at at a time
    for (int i = 0; i < t->cluster_sets; i++) {
        const int count = dgm_cluster_set_count(t->clusters[i]);
        search = dgm_bytes_max(search, dgm_closest_bytes(t->backend, vectors(t), count));
    }
    if (t->restricted == DGM_RESTRICT_CLUSTER && dgm_backend_properties(t->backend)->keeps_lists)
        search = dgm_bytes_add(search, dgm_rank_joint_bytes(t->backend, vectors(t), joint_vocabulary(t)));
    return dgm_bytes_add(bytes, search);
}

dgm_status dgm_restrict_open(const dgm_translator *t, dgm_exec *x, dgm_vocabsel *v, dgm_error *err)
{
    if (t->restricted == DGM_RESTRICT_ALL) {
        dgm_vocabsel_all(v);
        return DGM_OK;
    }
    const dgm_gguf *list = t->shortlist >= 0 ? t->members[t->shortlist].file : NULL;
    const dgm_vocabsel_limits limits = {
        .sentences = t->batch,
        .max_source = t->config.max_source,
        .max_needed = t->config.max_length + DGM_CONSTRAINT_SUBWORDS,
        .rows = vectors(t),
        .evidence = t->evidence || t->lattices,
        .ids = t->config.count_unions,
        .no_source = t->wanted.source_tokens_off,
    };
    dgm_status st;
    if (t->restricted == DGM_RESTRICT_LEXICAL) {
        st = dgm_vocabsel_lexical_open(v, list, &limits, err);
    } else {
        const dgm_cluster_mode mode = (dgm_cluster_mode)(t->restricted - DGM_RESTRICT_CLUSTER);
        st = dgm_vocabsel_cluster_open(v, t->clusters, t->cluster_sets, x, mode, list, &limits,
                                       err);
        v->part = t->clustered;
    }
    if (st != DGM_OK && st != DGM_ERR_MEMORY && list)
        dgm_error_prefix(err, "%s", dgm_gguf_path(list));
    if (st != DGM_OK || t->restricted != DGM_RESTRICT_LEXICAL) return st;
    const dgm_linear *out[DGM_PARTS_MAX];
    for (int i = 0; i < t->member_count; i++) out[i] = dgm_model_output(t->members[i].model);
    return dgm_vocabsel_lexical_gather(v, x, out, t->member_count, err);
}
