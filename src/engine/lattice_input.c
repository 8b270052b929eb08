// SPDX-License-Identifier: MIT
// Lattices that come with lines: settings, and what a search follows (score/walk.h).
//
//     text --parse--> words --target vocabulary--> tokens --one arc per token--> walk
//
// All of it happens when a line is submitted, so that what is wrong with a lattice is the line's
// failure and nobody else's.
#include <string.h>

#include "engine/engine_private.h"
#include "lattice/lattice.h"

enum { NODES_MAX = 1 << 20 }; // of a lattice of tokens with one arc per token

dgm_status dgm_lattices_check(const dgm_settings *s, dgm_error *err)
{
    if (!s->lattices) {
        DGM_FAIL_IF(s->lattice_weight != 0.0f, err, DGM_ERR_ARGUMENT,
                    "a weight of lattices without lattices");
        return DGM_OK;
    }
    DGM_FAIL_IF(s->search && strcmp(s->search, "cube") == 0, err, DGM_ERR_ARGUMENT,
                "cube search shares scores between hypotheses that stand at different places of a "
                "lattice: use beam search");
    DGM_FAIL_IF(s->lattice_weight != 0.0f && s->repetition_penalty != 0.0f &&
                    s->repetition_penalty != 1.0f,
                err, DGM_ERR_ARGUMENT,
                "scores of lattices and a repetition penalty cannot be added together: leave one "
                "of them out");
    return DGM_OK;
}

static dgm_status make_walk(const dgm_translator *t, const dgm_lattice *words, dgm_walk **walk,
                            dgm_error *err)
{
    dgm_lattice *pieces = NULL, *one = NULL;
    const dgm_model_info *m = dgm_model_describe(t->members[0].model);
    dgm_status st = dgm_lattice_pieces(words, t->target, &pieces, NULL, err);
    if (st == DGM_OK)
        st = dgm_lattice_determine(pieces, t->lattice_weight != 0.0f, NODES_MAX, &one, err);
    dgm_lattice_close(&pieces);
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

dgm_status dgm_lattice_walk(const dgm_translator *t, const dgm_input *input, size_t pieces,
                            dgm_walk **walk, dgm_error *err)
{
    dgm_lattice *words = NULL;
    DGM_FAIL_IF(!t->lattices, err, DGM_ERR_ARGUMENT,
                "a line with a lattice, but the translator was opened without them");
    DGM_FAIL_IF(input->prefix && input->prefix_size, err, DGM_ERR_ARGUMENT,
                "a line with a lattice and a forced prefix: the lattice says already how a "
                "translation begins");
    DGM_FAIL_IF(pieces > 1, err, DGM_ERR_TEXT,
                "the line is too long for the model, and one that has a lattice cannot be split");
    const dgm_lattice_text *given = input->lattice;
    dgm_status st = dgm_lattice_parse(&words, (dgm_text){given->text, given->size},
                                      given->line ? (uint32_t)given->line : 1, NULL, err);
    if (st == DGM_OK) st = make_walk(t, words, walk, err);
    dgm_lattice_close(&words);
    if (st == DGM_OK || st == DGM_ERR_MEMORY) return st;
    dgm_error_prefix(err, "lattice");
    return DGM_ERR_TEXT;
}
