// SPDX-License-Identifier: MIT
// Lattices that come with lines: settings, and what a search follows (score/walk.h).
//
//     text --parse--> words --target vocabulary--> tokens --one arc per token--> paths
//          --constraints, prefix--> those that meet them --order of writing--> walk
//
// All of it happens when a line is submitted, so that what is wrong with a lattice is the line's
// failure and nobody else's. A prefix and a lattice together ask for the lattice's paths that begin
// with the prefix. Constraints that no path meets are left out, as they are where no translation does.
#include <string.h>

#include "engine/engine_private.h"
#include "lattice/lattice.h"

enum { NODES_MAX = 1 << 20 }; // of a lattice of tokens with one arc per token

typedef struct demand {
    const int32_t *prefix; // forced first tokens
    int prefix_count;
    const dgm_constraint *constraint; // what else is demanded, read from the left; NULL: nothing
} demand;

// The same lattice with at most one arc per token, closed in any case.
static dgm_status determine(const dgm_translator *t, dgm_lattice **l, dgm_error *err)
{
    dgm_lattice *one = NULL;
    const dgm_status st = dgm_lattice_determine(*l, t->lattice_weight != 0.0f, NODES_MAX, &one, err);
    dgm_lattice_close(l);
    *l = one;
    return st;
}

// Paths that begin with the prefix and meet the constraints, or the prefix alone. A search that begins with the
// prefix and has nothing else to follow does so itself: there only has to be a path.
static dgm_status limit(bool inside, dgm_lattice **l, const demand *d, bool *unmet, dgm_error *err)
{
    dgm_lattice *some = NULL;
    if (!d->constraint && d->prefix_count == 0) return DGM_OK;
    DGM_TRY(dgm_walk_limit(*l, d->constraint, d->prefix, d->prefix_count, NODES_MAX, &some, err));
    *unmet = !some && d->constraint;
    if (*unmet) DGM_TRY(dgm_walk_limit(*l, NULL, d->prefix, d->prefix_count, NODES_MAX, &some, err));
    DGM_FAIL_IF(!some, err, DGM_ERR_TEXT, "no path begins with the forced prefix");
    dgm_lattice *whole = *l;
    const bool takes = inside || d->constraint;
    if (takes) *l = some;
    dgm_lattice_close(takes ? &whole : &some);
    return DGM_OK;
}

// Only a search of one word a step from the left follows a forced beginning and a lattice side by side.
static bool begins_inside(const dgm_model_info *m)
{
    return m->order != DGM_ORDER_L2R || m->tokens_per_step != 1 || m->mask >= 0;
}

static dgm_status turn(const dgm_translator *t, dgm_lattice **l, dgm_error *err)
{
    dgm_lattice *turned = NULL;
    DGM_TRY(dgm_lattice_reverse(*l, &turned, err));
    dgm_lattice_close(l);
    *l = turned;
    return determine(t, l, err);
}

static dgm_status make_walk(const dgm_translator *t, const dgm_lattice *words, const demand *d,
                            dgm_walk **walk, bool *unmet, dgm_error *err)
{
    dgm_lattice *tokens = NULL;
    const dgm_model_info *m = dgm_model_describe(t->members[0].model);
    dgm_status st = dgm_lattice_subwords(words, t->target, &tokens, NULL, err);
    if (st == DGM_OK) st = determine(t, &tokens, err);
    if (st == DGM_OK) st = limit(begins_inside(m), &tokens, d, unmet, err);
    if (st == DGM_OK && m->order == DGM_ORDER_R2L) st = turn(t, &tokens, err);
    if (st == DGM_OK) st = dgm_walk_make(walk, tokens, m->eos, t->lattice_weight, err);
    dgm_lattice_close(&tokens);
    if (st == DGM_OK && m->order == DGM_ORDER_BIDIRECTIONAL) st = dgm_walk_look_back(*walk, err);
    if (st == DGM_OK && m->mask >= 0) st = dgm_walk_measure(*walk, err);
    if (st == DGM_OK && (*walk)->longest > t->config.max_length)
        st = dgm_fail(err, DGM_ERR_TEXT,
                      "the longest path of the lattice has %d tokens, the maximum length is %d",
                      (*walk)->longest, t->config.max_length);
    if (st != DGM_OK) dgm_walk_free(walk);
    return st;
}

// *unmet: no path has what is demanded, so it was left out.
static dgm_status walk_of(const dgm_translator *t, const dgm_lattice_text *given, size_t pieces, const demand *d,
                          dgm_walk **walk, bool *unmet, dgm_error *err)
{
    dgm_lattice *words = NULL;
    *unmet = false;
    DGM_FAIL_IF(!t->lattices, err, DGM_ERR_ARGUMENT,
                "the line has a lattice, but the translator was opened without lattices");
    DGM_FAIL_IF(pieces > 1, err, DGM_ERR_TEXT,
                "the line is too long for the model, and one that has a lattice cannot be split");
    dgm_status st = dgm_lattice_parse(&words, (dgm_text){given->text, given->size},
                                      given->line ? (uint32_t)given->line : 1, NULL, err);
    if (st == DGM_OK) st = make_walk(t, words, d, walk, unmet, err);
    dgm_lattice_close(&words);
    if (st == DGM_OK || st == DGM_ERR_MEMORY) return st;
    dgm_walk_free(walk);
    dgm_error_prefix(err, "lattice");
    return DGM_ERR_TEXT;
}

dgm_status dgm_lattice_line(const dgm_translator *t, const dgm_lattice_text *given, dgm_line_state *line,
                            const int32_t *tokens, dgm_piece_state *piece, dgm_error *err)
{
    const demand d = {piece->prefix_count ? tokens + piece->prefix_at : NULL, piece->prefix_count, piece->constraint};
    bool unmet;
    DGM_TRY(walk_of(t, given, line->left, &d, &line->walk, &unmet, err));
    if (begins_inside(dgm_model_describe(t->members[0].model))) piece->prefix_count = 0;
    if (unmet)
        piece->relaxed = true;
    else
        dgm_constraint_free(&piece->constraint);
    return DGM_OK;
}
