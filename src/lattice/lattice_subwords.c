// SPDX-License-Identifier: MIT
// Lattices of words as lattices of a vocabulary's tokens.
//
// A vocabulary splits what stands between two spaces as one string: "Haus" and the "." glued to it
// become the tokens of "Haus.", which need not be those of "Haus" followed by those of ".". So a
// unit is every way to go on from a node where a space may stand to the next such node; its text is
// encoded as a whole and its tokens make a chain:
//
//     0 --Haus--> 1 --~.--> 2          unit "Haus."   0 --▁Haus--> x --.--> 2
//                 \--und--> 3          unit "Haus"    0 --▁Haus--> 1      unit "und" ...
//
// Tokens in the middle of a sentence are those the vocabulary makes behind another word (a
// SentencePiece model may put no space mark before the first word of a text).
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "lattice/lattice.h"

enum { UNITS_MAX = 1 << 22, UNIT_ARCS_MAX = 4096 };
static const char anchor[] = "a"; // a word that stands before a unit in the middle of a sentence

// ---- words to tokens ---------------------------------------------------------------------------

typedef struct expansion {
    const dgm_lattice *l; // without empty arcs
    const dgm_vocab *v;
    dgm_lattice *out; // its first nodes are those of l, where a space may stand
    int32_t *last;    // [nodes] node of out that only ends, behind an arc glued to nothing; or -1
    dgm_tokens tokens, anchored;
    dgm_writer text; // the anchor, a space, the unit
    int32_t origin;  // where the unit begins
    uint32_t line;
    size_t units, dropped;
    bool silent; // a text had no tokens
    uint32_t bad_line;
    char bad[64]; // the first text that cannot be spelled
} expansion;

// The tokens of e->text as they are at the beginning or in the middle of a sentence.
static dgm_status encode(expansion *e, bool first, const int32_t **ids, size_t *count,
                         dgm_error *err)
{
    const dgm_text whole = {(const char *)e->text.data, e->text.size};
    const size_t skip = sizeof anchor; // "a" and a space stand before the unit's text
    const dgm_text unit = {whole.data + skip, whole.size - skip};
    *ids = NULL;
    if (!first) {
        DGM_TRY(dgm_vocab_encode(e->v, dgm_text_of(anchor), &e->anchored, err));
        DGM_TRY(dgm_vocab_encode(e->v, whole, &e->tokens, err));
        const size_t n = e->anchored.count;
        if (e->tokens.count >= n &&
            memcmp(e->tokens.ids, e->anchored.ids, n * sizeof *e->tokens.ids) == 0) {
            *ids = e->tokens.ids + n;
            *count = e->tokens.count - n;
            return DGM_OK;
        }
    }
    DGM_TRY(dgm_vocab_encode(e->v, unit, &e->tokens, err));
    *ids = e->tokens.ids;
    *count = e->tokens.count;
    return DGM_OK;
}

static bool spelled(const dgm_vocab *v, const int32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (dgm_vocab_is_unknown(v, ids[i])) return false;
    return true;
}

static void note_bad(expansion *e)
{
    const char *text = (const char *)e->text.data + sizeof anchor;
    size_t n = e->text.size - sizeof anchor;
    if (n > sizeof e->bad - 1) n = sizeof e->bad - 1;
    while (n > 0 && n < e->text.size - sizeof anchor && ((uint8_t)text[n] & 0xc0) == 0x80) n--;
    if (e->dropped++ > 0) return;
    memcpy(e->bad, text, n);
    e->bad[n] = 0;
    e->bad_line = e->line;
}

// The unit ends in node `to` of out: a chain of its tokens. The score lies on the first arc.
static dgm_status add_chain(expansion *e, int32_t to, double score, dgm_error *err)
{
    const int32_t *ids;
    size_t count;
    DGM_FAIL_IF(++e->units > UNITS_MAX, err, DGM_ERR_UNSUPPORTED,
                "words glued together can be read in more than %d ways", UNITS_MAX);
    DGM_TRY(encode(e, e->origin == 0, &ids, &count, err));
    if (!spelled(e->v, ids, count)) {
        note_bad(e);
        return DGM_OK;
    }
    dgm_lattice_arc a = {
        .from = e->origin, .word = DGM_LATTICE_NO_WORD, .score = (float)score, .line = e->line};
    e->silent |= count == 0;
    for (size_t i = 0; i < count || i == 0; i++) { // no tokens: an empty arc
        if (i + 1 < count)
            DGM_TRY(dgm_lattice_add_node(e->out, e->line, &a.to, err));
        else
            a.to = to;
        if (count) a.word = ids[i];
        DGM_TRY(dgm_lattice_add_arc(e->out, &a, err));
        a.from = a.to;
        a.score = 0.0f;
    }
    return DGM_OK;
}

// May a path go on from the node with a space, or end there?
static bool may_break(const dgm_lattice *l, int32_t node)
{
    if (l->ends[node] > -INFINITY) return true;
    for (size_t i = l->first[node]; i < l->first[node + 1]; i++)
        if (!(l->arcs[i].glue & DGM_GLUE_LEFT)) return true;
    return false;
}

// The unit may be complete at `at`. open: its last word is not glued to what follows. One that is
// can only be the last of the sentence.
static dgm_status complete(expansion *e, int32_t at, double score, bool open, dgm_error *err)
{
    if (open) return may_break(e->l, at) ? add_chain(e, at, score, err) : DGM_OK;
    if (!(e->l->ends[at] > -INFINITY)) return DGM_OK;
    if (e->last[at] < 0) {
        DGM_TRY(dgm_lattice_add_node(e->out, e->l->lines[at], &e->last[at], err));
        dgm_lattice_add_end(e->out, e->last[at], e->l->ends[at]);
    }
    return add_chain(e, e->last[at], score, err);
}

// e->text holds the words of the unit up to node `at`, `depth` of them.
static dgm_status follow(expansion *e, int32_t at, double score, bool open, int depth,
                         dgm_error *err)
{
    const dgm_lattice *l = e->l;
    DGM_FAIL_IF(depth > UNIT_ARCS_MAX, err, DGM_ERR_UNSUPPORTED,
                "more than %d words without a space between them", UNIT_ARCS_MAX);
    if (depth > 0) DGM_TRY(complete(e, at, score, open, err));
    const size_t size = e->text.size;
    for (size_t i = l->first[at]; i < l->first[at + 1]; i++) {
        const dgm_lattice_arc *a = &l->arcs[i];
        const bool glued = a->glue & DGM_GLUE_LEFT;
        // The first word of a unit has a space before it, or the start; the others have none.
        if (depth == 0 ? glued && at != 0 : open && !glued) continue;
        const dgm_text t = dgm_words_spell(&l->words, (uint32_t)a->word);
        if (depth == 0) e->line = a->line;
        dgm_write_bytes(&e->text, t.data, t.size);
        if (e->text.failed) return dgm_no_memory(err);
        DGM_TRY(follow(e, a->to, score + (double)a->score, !(a->glue & DGM_GLUE_RIGHT), depth + 1,
                       err));
        e->text.size = size;
    }
    return DGM_OK;
}

static dgm_status expand(expansion *e, dgm_error *err)
{
    const dgm_lattice *l = e->l;
    for (int32_t n = 0, node; n < l->node_count; n++) {
        DGM_TRY(dgm_lattice_add_node(e->out, l->lines[n], &node, err));
        e->out->ends[n] = l->ends[n];
        e->last[n] = -1;
    }
    dgm_write_bytes(&e->text, anchor, sizeof anchor - 1);
    dgm_write_u8(&e->text, ' ');
    for (int32_t n = 0; n < l->node_count; n++) {
        e->origin = n;
        DGM_TRY(follow(e, n, 0.0, true, 0, err));
    }
    return DGM_OK;
}

static dgm_status finish(expansion *e, dgm_lattice **out, dgm_error *err)
{
    dgm_status st = dgm_lattice_seal(e->out, true, err);
    if (st == DGM_ERR_FORMAT && e->dropped) {
        st = dgm_fail(err, DGM_ERR_TEXT, "the vocabulary cannot spell '%s'", e->bad);
        if (e->bad_line) dgm_error_prefix(err, "line %u", (unsigned)e->bad_line);
    }
    DGM_TRY(st);
    if (e->silent) return dgm_lattice_without_empty(e->out, out, err);
    *out = e->out;
    e->out = NULL;
    return DGM_OK;
}

dgm_status dgm_lattice_subwords(const dgm_lattice *words, const dgm_vocab *v, dgm_lattice **subwords,
                              size_t *dropped, dgm_error *err)
{
    dgm_lattice *full = NULL;
    *subwords = NULL;
    DGM_TRY(dgm_lattice_without_empty(words, &full, err));
    expansion e = {.l = full, .v = v};
    e.last = dgm_malloc((size_t)full->node_count * sizeof *e.last);
    dgm_status st = e.last ? dgm_lattice_open(&e.out, err) : dgm_no_memory(err);
    if (st == DGM_OK && words->name && !(e.out->name = dgm_strdup(words->name)))
        st = dgm_no_memory(err);
    if (st == DGM_OK) st = expand(&e, err);
    if (st == DGM_OK) st = finish(&e, subwords, err);
    if (dropped) *dropped = e.dropped;
    dgm_lattice_close(&e.out);
    dgm_lattice_close(&full);
    dgm_tokens_free(&e.tokens);
    dgm_tokens_free(&e.anchored);
    dgm_writer_free(&e.text);
    dgm_free(e.last);
    return st;
}
