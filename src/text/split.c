// SPDX-License-Identifier: MIT
// Cutting an over-long line into pieces that fit, and joining their translations; see split.h.
//
// A range that does not fit is cut in two at the place nearest to the ideal one (the middle, or a
// third when three pieces are needed), at a clause end if one is near, else between words, else
// between characters; then both halves are looked at again:
//
//     |------------ over ------------|
//     |---- over ----|, |--- fits ---|
//     |-- f --|, |- f -|
//
// A range longer than 64 bytes a token is not even counted: no piece of a vocabulary is that long,
// and counting a 100,000-word line again at every level would make the work quadratic. Depth is
// logarithmic in the length, work is O(n log n).
#include "text/split.h"

#include <string.h>

#include "base/mem.h"

#define TOKEN_BYTES_MAX 64

dgm_status dgm_vocab_count(void *arg, dgm_text text, size_t *tokens, dgm_error *err)
{
    dgm_vocab_counter *counter = arg;
    DGM_TRY(dgm_vocab_encode(counter->vocab, text, &counter->tokens, err));
    *tokens = counter->tokens.count;
    return DGM_OK;
}

typedef struct cutter {
    dgm_text line;
    const dgm_split_limits *limits;
    dgm_pieces *out;
    dgm_error *err;
} cutter;

static bool is_clause_end(uint32_t code)
{
    switch (code) {
    case ',':
    case ';':
    case ':':
    case 0x2013:
    case 0x2014:
    case 0x060C:
    case 0x061B:
    case 0x3001:
    case 0xFF0C:
    case 0xFF1A:
    case 0xFF1B:
        return true;
    default:
        return false;
    }
}

static size_t distance(size_t a, size_t b)
{
    return a > b ? a - b : b - a;
}

// Places where text[begin .. end) may be cut, each measured against `ideal`; the nearest of every
// kind is kept. Position 0 means none (a cut is never at the beginning).
typedef struct places {
    size_t clause, word, inside, any;
} places;

static void keep_nearest(size_t *best, size_t pos, size_t ideal)
{
    if (*best == 0 || distance(pos, ideal) < distance(*best, ideal)) *best = pos;
}

// Positions are ends of the left part; white space behind them is skipped by the caller.
static places find_places(dgm_text text, size_t begin, size_t end, size_t ideal)
{
    places found = {0};
    uint32_t prev = 0;
    bool after_clause = false;
    for (size_t pos = begin; pos < end;) {
        uint32_t code;
        size_t n = dgm_utf8_next(text.data + pos, end - pos, &code);
        if (pos > begin && !dgm_char_is_space(prev)) {
            bool space = dgm_char_is_space(code);
            bool wide = after_clause && (dgm_char_class(prev) & DGM_CHAR_SPACELESS);
            if ((space && after_clause) || wide) keep_nearest(&found.clause, pos, ideal);
            if (space) keep_nearest(&found.word, pos, ideal);
            if (!space) {
                keep_nearest(&found.any, pos, ideal);
                if (dgm_char_break_between(prev, code)) keep_nearest(&found.inside, pos, ideal);
            }
        }
        after_clause = is_clause_end(code) || (after_clause && (code == '"' || code == 0x201D));
        prev = code;
        pos += n;
    }
    return found;
}

static dgm_status emit(cutter *c, size_t begin, size_t end, dgm_cut after)
{
    dgm_pieces *out = c->out;
    DGM_TRY(dgm_grow(&out->items, &out->cap, out->count + 1, sizeof *out->items, c->err));
    out->items[out->count++] = (dgm_piece){begin, end, after};
    return DGM_OK;
}

// Tokens of a range, or an estimate above the limit where it cannot fit.
static dgm_status measure(cutter *c, size_t begin, size_t end, size_t *tokens)
{
    size_t max = c->limits->max_tokens;
    if ((end - begin) / TOKEN_BYTES_MAX > max) {
        *tokens = (end - begin) / 4;
        return DGM_OK;
    }
    dgm_text part = {c->line.data + begin, end - begin};
    return c->limits->count(c->limits->count_arg, part, tokens, c->err);
}

// A clause end not far from the ideal place, else a word end, else whatever there is; 0 = nothing.
// Far clause ends ("So, ...") are worse than words: they would make pieces of a word or two.
static size_t choose_place(const places *found, size_t ideal, size_t near, dgm_cut *kind)
{
    bool clause = found->clause && (distance(found->clause, ideal) <= near || !found->word);
    if (clause) {
        *kind = DGM_CUT_CLAUSE;
        return found->clause;
    }
    if (found->word) {
        *kind = DGM_CUT_WORD;
        return found->word;
    }
    *kind = DGM_CUT_INSIDE;
    return found->inside ? found->inside : found->any;
}

static dgm_status cut_range(cutter *c, size_t begin, size_t end, dgm_cut after)
{
    size_t max = c->limits->max_tokens, tokens = 0;
    DGM_TRY(measure(c, begin, end, &tokens));
    if (tokens <= max) return emit(c, begin, end, after);
    DGM_FAIL_IF(max < DGM_SPLIT_MIN, c->err, DGM_ERR_ARGUMENT,
                "cannot split lines to %zu tokens; at least %d are needed", max, DGM_SPLIT_MIN);
    // Cut off a whole number of pieces, as near to the middle as that goes.
    size_t parts = tokens / max + (tokens % max != 0);
    double share = (double)(parts / 2) / (double)parts;
    size_t ideal = begin + (size_t)((double)(end - begin) * share);
    places found = find_places(c->line, begin, end, ideal);
    dgm_cut kind;
    size_t cut = choose_place(&found, ideal, (end - begin) / 8 * 3, &kind);
    if (!cut) return emit(c, begin, end, after); // a single character
    dgm_text rest = dgm_text_trim((dgm_text){c->line.data + cut, end - cut});
    DGM_TRY(cut_range(c, begin, cut, kind));
    return cut_range(c, (size_t)(rest.data - c->line.data), end, after);
}

dgm_status dgm_split_line(dgm_text line, const dgm_split_limits *limits, dgm_pieces *out,
                          dgm_error *err)
{
    cutter c = {.line = line, .limits = limits, .out = out, .err = err};
    out->count = 0;
    dgm_text inner = dgm_text_trim(line);
    if (inner.size == 0) return DGM_OK;
    size_t begin = (size_t)(inner.data - line.data), end = begin + inner.size, tokens = 0;
    if (!limits->sentences) {
        DGM_TRY(measure(&c, begin, end, &tokens));
        if (tokens <= limits->max_tokens) return emit(&c, begin, end, DGM_CUT_END);
    }
    dgm_pieces sentences = {0};
    dgm_status st = dgm_split_sentences(inner, limits->lang, &sentences, err);
    for (size_t i = 0; st == DGM_OK && i < sentences.count; i++) {
        dgm_piece s = sentences.items[i];
        st = cut_range(&c, begin + s.begin, begin + s.end, s.cut);
    }
    dgm_pieces_free(&sentences);
    if (st != DGM_OK) out->count = 0;
    return st;
}

// ---- joining -------------------------------------------------------------------------------

static bool ends_spaceless(dgm_text t)
{
    uint32_t code;
    size_t at = dgm_utf8_prev(t.data, t.size);
    dgm_utf8_next(t.data + at, t.size - at, &code);
    return dgm_char_class(code) & DGM_CHAR_SPACELESS;
}

static bool begins_spaceless(dgm_text t)
{
    uint32_t code;
    dgm_utf8_next(t.data, t.size, &code);
    return dgm_char_class(code) & DGM_CHAR_SPACELESS;
}

// What goes between two outputs whose pieces stand around line[from .. to).
static dgm_text separator(dgm_text line, size_t from, size_t to, dgm_cut cut, dgm_text left,
                          dgm_text right)
{
    dgm_text none = {"", 0}, space = {" ", 1};
    if (ends_spaceless(left) || begins_spaceless(right)) return none;
    if (from == to) {
        bool torn = cut == DGM_CUT_INSIDE && from > 0 && to < line.size &&
                    !ends_spaceless((dgm_text){line.data, from});
        return torn ? none : space;
    }
    for (size_t i = from; i < to; i++)
        if (line.data[i] != ' ' && line.data[i] != '\t') return space;
    return (dgm_text){line.data + from, to - from};
}

dgm_status dgm_split_join(dgm_text line, const dgm_pieces *pieces, const dgm_text *outputs,
                          dgm_writer *out, dgm_error *err)
{
    size_t start = out->size, last = 0;
    dgm_text left = {NULL, 0};
    for (size_t i = 0; i < pieces->count; i++) {
        dgm_text now = dgm_text_trim(outputs[i]);
        if (now.size == 0) continue;
        if (left.size) {
            // The cut before this piece decides; pieces without output in between do not count.
            const dgm_piece *before = &pieces->items[i - 1];
            dgm_text sep = separator(line, before->end, pieces->items[i].begin,
                                     last + 1 == i ? before->cut : DGM_CUT_WORD, left, now);
            dgm_write_bytes(out, sep.data, sep.size);
        }
        dgm_write_bytes(out, now.data, now.size);
        left = now;
        last = i;
    }
    if (!out->failed) return DGM_OK;
    out->size = start;
    return dgm_no_memory(err);
}
