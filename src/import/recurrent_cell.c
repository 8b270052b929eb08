// SPDX-License-Identifier: MIT
// One cell of a recurrent model of Marian or Nematus.
//
//   Marian   PREFIX_W PREFIX_Wx PREFIX_U PREFIX_Ux PREFIX_b PREFIX_bx, PREFIX_gamma1 PREFIX_gamma2 (norms)
//   Nematus  PREFIX_W ..., behind the attention PREFIX_Wc _Wcx _U_nl _Ux_nl _b_nl _bx_nl, of a transition
//            PREFIX_U_drt_1 ...; norms PREFIX_W_lns PREFIX_W_lnb ...
//
// Theirs are [in, out]; gates r and z in one matrix [in, 2H], the candidate in another [in, H]. An LSTM of
// Marian has one matrix of four gates, in the order f, i, c, o. With x, h products of input and state:
//
//   r, z = sig(x + h + b);  g = tanh(x + r * h + bx), biases on the side of the input, or
//                           g = tanh(x + r * (h + bx)), on the side of the state
//   norm of Marian:  of all gates, gamma1 * norm(x) and gamma2 * norm(h), biases behind them
//   norm of Nematus: of the gates and of the candidate, biases before them; but behind them in transitions
//                    whose biases are on the side of the input, which they do not have
#include <stdio.h>
#include <string.h>

#include "import/marian_bin.h"
#include "import/recurrent_private.h"

// ---- names -------------------------------------------------------------------------------------

static const char *behind_attention(const char *root)
{
    static const char *const names[][2] = {{"W", "Wc"},     {"Wx", "Wcx"}, {"U", "U_nl"},
                                           {"Ux", "Ux_nl"}, {"b", "b_nl"}, {"bx", "bx_nl"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i][0], root) == 0) return names[i][1];
    return root;
}

static void name_marian(const cell_place *p, const char *root, const char *end, char *out,
                        size_t size)
{
    char layer[16] = "", cell[16] = "";
    const bool first = !p->decoder && !p->forward && p->layer == 1;
    if (p->layer > 1) snprintf(layer, sizeof layer, "_l%d", p->layer);
    if (!first || p->cell > 1) snprintf(cell, sizeof cell, "_cell%d", p->cell);
    const char *prefix = p->decoder   ? "decoder"
                         : p->forward ? "encoder"
                         : p->reverse ? "encoder_bi_r"
                                      : "encoder_bi";
    snprintf(out, size, "%s%s%s_%s%s", prefix, layer, cell, root, end);
}

static void name_nematus(const cell_place *p, const char *root, const char *end, char *out,
                         size_t size)
{
    char layer[16] = "", behind[16] = "";
    const bool base = p->decoder && p->layer == 1 && p->cell > 1;
    const int transition = base ? p->cell - 2 : p->cell - 1;
    if (p->layer > 1) snprintf(layer, sizeof layer, "%d_", p->layer);
    if (transition > 0) snprintf(behind, sizeof behind, "_drt_%d", transition);
    snprintf(out, size, "%s%s%s%s%s",
             p->decoder   ? "decoder_"
             : p->reverse ? "encoder_r_"
                          : "encoder_",
             layer, base ? behind_attention(root) : root, behind, end);
}

static tensor_names names_of(const cell_place *p, const char *root, const char *end)
{
    tensor_names n;
    name_marian(p, root, end, n.marian, sizeof n.marian);
    name_nematus(p, root, end, n.nematus, sizeof n.nematus);
    return n;
}

typedef struct our_name {
    char text[64];
} our_name;

static our_name name_part(const cell_plan *p, const char *side, const char *end)
{
    our_name n;
    snprintf(n.text, sizeof n.text, "%s.%s%s", p->ours, side, end);
    return n;
}

// ---- gates of a GRU ----------------------------------------------------------------------------

static dgm_status take(dgm_composer *c, const cell_plan *p, const char *root, const char *end,
                       int rows, int cols, const dgm_stored **t, dgm_error *err)
{
    const tensor_names n = names_of(&p->at, root, end);
    const bool may_miss = p->no_bias && root[0] == 'b';
    return dgm_recurrent_take(c, &n, rows, cols, may_miss ? DGM_OPTIONAL : DGM_REQUIRED, t, err);
}

// Two gates and a candidate below each other: roots "W" and "Wx", or "U" and "Ux".
static dgm_status add_gates(dgm_composer *c, const cell_plan *p, const char *root, const char *side,
                            int input, bool swap, dgm_error *err)
{
    char candidate[4];
    const dgm_stored *t[2];
    snprintf(candidate, sizeof candidate, "%sx", root);
    DGM_TRY(take(c, p, root, "", input, 2 * p->hidden, &t[0], err));
    DGM_TRY(take(c, p, candidate, "", input, p->hidden, &t[1], err));
    dgm_view parts[2];
    for (int i = 0; i < 2; i++) parts[i] = dgm_marian_weight(c->weights->tensors, t[i]);
    return dgm_compose_matrix(c, name_part(p, side, ".weight").text, parts, 2, swap, err);
}

// A vector [2H + H] of two tensors, either of which may be NULL.
static dgm_status add_both(dgm_composer *c, const cell_plan *p, const char *ours,
                           const dgm_stored *gates, const dgm_stored *candidate, dgm_error *err)
{
    const int h = p->hidden;
    const dgm_vector_term terms[] = {{gates, 0, 2 * h, 0}, {candidate, 0, h, 2 * h}};
    return dgm_compose_vector(c, ours, 3 * h, terms, 2, err);
}

// Nematus' norms of one side.
static dgm_status add_gate_norms(dgm_composer *c, const cell_plan *p, const char *root,
                                 const char *side, dgm_error *err)
{
    static const char *const ends[][2] = {{"_lns", ".norm.weight"}, {"_lnb", ".norm.bias"}};
    char candidate[4];
    snprintf(candidate, sizeof candidate, "%sx", root);
    for (int i = 0; i < 2; i++) {
        const dgm_stored *t[2];
        DGM_TRY(take(c, p, root, ends[i][0], 1, 2 * p->hidden, &t[0], err));
        DGM_TRY(take(c, p, candidate, ends[i][0], 1, p->hidden, &t[1], err));
        DGM_TRY(add_both(c, p, name_part(p, side, ends[i][1]).text, t[0], t[1], err));
    }
    return DGM_OK;
}

// Biases of a GRU without norms, or of one with Marian's.
static dgm_status add_gru_biases(dgm_composer *c, const cell_plan *p, const dgm_stored *b,
                                 const dgm_stored *bx, dgm_error *err)
{
    const bool transition = p->input == 0, norm = p->norm;
    const char *end = norm ? ".norm.bias" : ".bias";
    const dgm_stored *beside_x = p->state_bias ? NULL : bx, *beside_h = p->state_bias ? bx : NULL;
    const our_name x = name_part(p, p->x, transition ? "" : end), h = name_part(p, "h", end);
    if (b) DGM_TRY(add_both(c, p, x.text, b, beside_x, err));
    if (beside_h || norm) DGM_TRY(add_both(c, p, h.text, NULL, beside_h, err));
    return DGM_OK;
}

// gamma1 [3H] and gamma2 of Marian.
static dgm_status add_gamma(dgm_composer *c, const cell_plan *p, const char *root, const char *side,
                            dgm_error *err)
{
    const dgm_stored *t;
    DGM_TRY(take(c, p, root, "", 1, 3 * p->hidden, &t, err));
    const dgm_vector_term term = {t, 0, 3 * p->hidden, 0};
    return dgm_compose_vector(c, name_part(p, side, ".norm.weight").text, 3 * p->hidden, &term, 1,
                              err);
}

static dgm_status add_gru(dgm_composer *c, const cell_plan *p, dgm_error *err)
{
    const bool transition = p->input == 0;
    const dgm_stored *b, *bx;
    if (!transition) DGM_TRY(add_gates(c, p, "W", p->x, p->input, p->swap, err));
    DGM_TRY(add_gates(c, p, "U", "h", p->hidden, false, err));
    DGM_TRY(take(c, p, "b", "", 1, 2 * p->hidden, &b, err));
    DGM_TRY(take(c, p, "bx", "", 1, p->hidden, &bx, err));
    if (!p->norm || p->kind == DGM_CELL_GRU) {
        if (p->norm && !transition) DGM_TRY(add_gamma(c, p, "gamma1", p->x, err));
        if (p->norm) DGM_TRY(add_gamma(c, p, "gamma2", "h", err));
        return add_gru_biases(c, p, b, bx, err);
    }
    if (!transition) DGM_TRY(add_gate_norms(c, p, "W", p->x, err));
    DGM_TRY(add_gate_norms(c, p, "U", "h", err));
    const char *side = p->state_bias ? "h" : p->x;
    const char *end = transition && !p->state_bias ? "" : ".bias";
    return b || bx ? add_both(c, p, name_part(p, side, end).text, b, bx, err) : DGM_OK;
}

// ---- LSTM --------------------------------------------------------------------------------------

static const int lstm_order[4] = {1, 0, 2, 3}; // ours are i, f, g, o

static dgm_status add_lstm_matrix(dgm_composer *c, const cell_plan *p, const char *root,
                                  const char *side, int input, bool swap, dgm_error *err)
{
    const int h = p->hidden;
    const dgm_stored *t;
    dgm_view parts[4];
    DGM_TRY(take(c, p, root, "", input, 4 * h, &t, err));
    const dgm_view all = dgm_marian_weight(c->weights->tensors, t);
    for (int i = 0; i < 4; i++) parts[i] = dgm_view_rows(all, lstm_order[i] * h, h);
    return dgm_compose_matrix(c, name_part(p, side, ".weight").text, parts, 4, swap, err);
}

// root NULL: zeros.
static dgm_status add_lstm_vector(dgm_composer *c, const cell_plan *p, const char *root,
                                  const char *ours, dgm_error *err)
{
    const int h = p->hidden;
    const dgm_stored *t = NULL;
    dgm_vector_term terms[4];
    if (root) DGM_TRY(take(c, p, root, "", 1, 4 * h, &t, err));
    for (int i = 0; i < 4; i++) terms[i] = (dgm_vector_term){t, lstm_order[i] * h, h, i * h};
    return dgm_compose_vector(c, ours, 4 * h, terms, 4, err);
}

static dgm_status add_lstm(dgm_composer *c, const cell_plan *p, dgm_error *err)
{
    const bool transition = p->input == 0;
    const char *end = transition ? "" : p->norm ? ".norm.bias" : ".bias";
    if (!transition) DGM_TRY(add_lstm_matrix(c, p, "W", p->x, p->input, p->swap, err));
    DGM_TRY(add_lstm_matrix(c, p, "U", "h", p->hidden, false, err));
    DGM_TRY(add_lstm_vector(c, p, "b", name_part(p, p->x, end).text, err));
    if (!p->norm) return DGM_OK;
    if (!transition)
        DGM_TRY(add_lstm_vector(c, p, "gamma1", name_part(p, p->x, ".norm.weight").text, err));
    DGM_TRY(add_lstm_vector(c, p, "gamma2", name_part(p, "h", ".norm.weight").text, err));
    return add_lstm_vector(c, p, NULL, name_part(p, "h", ".norm.bias").text, err);
}

dgm_status dgm_recurrent_cell_add(dgm_composer *c, const cell_plan *p, dgm_error *err)
{
    return p->kind == DGM_CELL_LSTM ? add_lstm(c, p, err) : add_gru(c, p, err);
}
