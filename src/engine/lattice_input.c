// SPDX-License-Identifier: MIT
// Lattices that come with lines: settings, and what a search follows (score/walk.h).
//
//     text --parse--> words --target vocabulary--> tokens --one arc per token--> walk
//
// All of it happens when a line is submitted, so that what is wrong with a lattice is the line's
// failure and nobody else's. A prefix and a lattice together ask for the lattice's paths that begin
// with the prefix.
#include <string.h>

#include "engine/engine_private.h"
#include "lattice/lattice.h"

enum { NODES_MAX = 1 << 20 }; // of a lattice of tokens with one arc per token

static dgm_status make_walk(const dgm_translator *t, const dgm_lattice *words, dgm_walk **walk,
                            dgm_error *err)
{
    dgm_lattice *subwords = NULL, *one = NULL;
    const dgm_model_info *m = dgm_model_describe(t->members[0].model);
    dgm_status st = dgm_lattice_subwords(words, t->target, &subwords, NULL, err);
    if (st == DGM_OK)
        st = dgm_lattice_determine(subwords, t->lattice_weight != 0.0f, NODES_MAX, &one, err);
    dgm_lattice_close(&subwords);
    if (st == DGM_OK) st = dgm_walk_make(walk, one, m->eos, t->lattice_weight, err);
    dgm_lattice_close(&one);
    if (st != DGM_OK) return st;
    if ((*walk)->longest > t->config.max_length)
        st = dgm_fail(err, DGM_ERR_TEXT,
                      "the longest path of the lattice has %d tokens, the maximum length is %d",
                      (*walk)->longest, t->config.max_length);
    if (st != DGM_OK) dgm_walk_free(walk);
    return st;
}

// Otherwise the search would be led out of the lattice and find nothing.
static dgm_status check_prefix(const dgm_walk *w, const int32_t *prefix, int count, dgm_error *err)
{
    int32_t node = 0;
    for (int i = 0; i < count; i++) {
        const int32_t at = dgm_walk_find(w, node, prefix[i]);
        DGM_FAIL_IF(at < 0, err, DGM_ERR_TEXT, "no path begins with the forced prefix");
        node = w->next[at];
    }
    return DGM_OK;
}

dgm_status dgm_lattice_walk(const dgm_translator *t, const dgm_lattice_text *given, size_t pieces,
                            const int32_t *prefix, int prefix_count, dgm_walk **walk, dgm_error *err)
{
    dgm_lattice *words = NULL;
    DGM_FAIL_IF(!t->lattices, err, DGM_ERR_ARGUMENT,
                "the line has a lattice, but the translator was opened without lattices");
    DGM_FAIL_IF(pieces > 1, err, DGM_ERR_TEXT,
                "the line is too long for the model, and one that has a lattice cannot be split");
    dgm_status st = dgm_lattice_parse(&words, (dgm_text){given->text, given->size},
                                      given->line ? (uint32_t)given->line : 1, NULL, err);
    if (st == DGM_OK) st = make_walk(t, words, walk, err);
    dgm_lattice_close(&words);
    if (st == DGM_OK) st = check_prefix(*walk, prefix, prefix_count, err);
    if (st == DGM_OK || st == DGM_ERR_MEMORY) return st;
    dgm_walk_free(walk);
    dgm_error_prefix(err, "lattice");
    return DGM_ERR_TEXT;
}
