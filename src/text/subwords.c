// SPDX-License-Identifier: MIT
// From text to tokens of byte-pair encodings; see subwords.h. (subwords_undo.c goes back.)
//
//   encode        line -> normaliser -> words, by style
//   encode_word   word -> symbols -> merges -> pieces
//   hand_over     piece -> id
//
// Most words of a text are tokens by themselves. Whether a token is how its own word is encoded is
// found out once and kept in `whole`: then a look-up is all that a word costs.
#include "text/subwords.h"

#include <string.h>

#include "base/mem.h"
#include "text/subwords_private.h"
#include "text/unicode.h"

enum { UNTRIED = 0, IS_WHOLE = 1, HAS_PARTS = 2 };
enum { PROTECT_MOST = 1000 }; // each may cut what the ones before it left: a level of recursion

typedef struct encoding {
    const dgm_subwords *s;
    dgm_glyphs line;
    dgm_ranges words;
    dgm_bpe_word word;
    dgm_bpe_piece *letters; // [letter_count] of the word before merging, in order
    size_t letter_count, letter_cap;
    dgm_bpe_piece *parts; // stack of pieces that are taken apart
    size_t part_cap;
    dgm_opennmt_tokens marked;
    bool left, right;   // has the word marks at its sides?
    dgm_writer spelled; // a piece with its marks
    dgm_subword_fn fn;
    void *arg;
    bool unknown; // was the token before one of unknown characters?
    dgm_error *err;
} encoding;

// ---- pieces to ids ----------------------------------------------------------------------------

// Id of a piece; `more`: another piece of the word follows. e->left: it is the first of a word with a mark.
static int32_t find_piece(encoding *e, dgm_text piece, bool more)
{
    const dgm_subwords *s = e->s;
    const bool behind = s->style != DGM_BPE_SPACER && (more || e->right);
    if ((!behind && !e->left) || s->separator_size == 0) return dgm_spelling_find(s->spellings, piece);
    e->spelled.size = 0;
    if (e->left) dgm_write_bytes(&e->spelled, s->separator, s->separator_size);
    dgm_write_bytes(&e->spelled, piece.data, piece.size);
    if (behind) dgm_write_bytes(&e->spelled, s->separator, s->separator_size);
    return dgm_spelling_find(s->spellings, (dgm_text){(const char *)e->spelled.data, e->spelled.size});
}

static dgm_status emit(encoding *e, int32_t id, uint32_t from, uint32_t to)
{
    const bool unknown = id < 0;
    if (unknown && e->unknown && e->s->fuse_unknown) return DGM_OK;
    e->unknown = unknown;
    e->left = false; // the next one is not the first
    return e->fn(e->arg, unknown ? e->s->unk : id, from, to);
}

static dgm_text piece_text(const encoding *e, const dgm_bpe_piece *p)
{
    return (dgm_text){(const char *)e->word.text.data + p->begin, p->end - p->begin};
}

// Where a part of a word came from, by the letter that begins at a byte of it.
static const dgm_bpe_piece *letter_at(const encoding *e, uint32_t byte)
{
    size_t low = 0, high = e->letter_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (e->letters[middle].begin <= byte)
            low = middle;
        else
            high = middle;
    }
    return &e->letters[low];
}

// A piece that is no token gives way to what it was merged from, and so on. more: pieces follow in the
// text; final: none follows in this part of the word, which is how it is looked up.
static dgm_status emit_parts(encoding *e, const dgm_bpe_piece *piece, bool more, bool final)
{
    size_t depth = 1;
    DGM_TRY(dgm_grow(&e->parts, &e->part_cap, 2, sizeof *e->parts, e->err));
    e->parts[0] = *piece;
    while (depth > 0) {
        const dgm_bpe_piece p = e->parts[--depth];
        const bool last = depth == 0; // of this piece
        int32_t left, right;
        bool whole = find_piece(e, piece_text(e, &p), !(last && final)) >= 0;
        whole = whole || !dgm_bpe_parts(e->s->bpe, p.symbol, &left, &right);
        const uint32_t cut = whole ? 0 : p.begin + (uint32_t)dgm_bpe_spell(e->s->bpe, left).size;
        if (whole || cut >= p.end) { // the mark of an end, which is no longer there, may hold the cut
            DGM_TRY(emit(e, find_piece(e, piece_text(e, &p), more || !last), letter_at(e, p.begin)->from,
                         letter_at(e, p.end - 1)->to));
            continue;
        }
        DGM_TRY(dgm_grow(&e->parts, &e->part_cap, depth + 2, sizeof *e->parts, e->err));
        e->parts[depth++] = (dgm_bpe_piece){.begin = cut, .end = p.end, .symbol = right};
        e->parts[depth++] = (dgm_bpe_piece){.begin = p.begin, .end = cut, .symbol = left};
    }
    return DGM_OK;
}

static dgm_status hand_over(encoding *e, bool more)
{
    for (size_t i = 0; i < e->word.count; i++) {
        const dgm_bpe_piece *p = &e->word.pieces[i];
        const bool final = i + 1 == e->word.count;
        if (e->s->restricted)
            DGM_TRY(emit_parts(e, p, more || !final, final));
        else
            DGM_TRY(emit(e, find_piece(e, piece_text(e, p), more || !final), p->from, p->to));
    }
    return e->spelled.failed ? dgm_no_memory(e->err) : DGM_OK;
}

// ---- words ----------------------------------------------------------------------------------

// The end of a word as subword-nmt marks it: part of the last letter, or (0.1) a symbol behind it. Pieces
// are looked up without it, so what it adds to the word is cut off again.
static dgm_status merge_marked(encoding *e)
{
    static const char mark[] = "</w>";
    dgm_bpe_word *w = &e->word;
    const uint32_t size = (uint32_t)w->text.size;
    dgm_bpe_piece *last = &w->pieces[w->count - 1];
    if (e->s->end_apart) {
        DGM_TRY(dgm_bpe_word_add(w, mark, sizeof mark - 1, last->to, last->to, e->err));
    } else {
        dgm_write_text(&w->text, mark);
        if (w->text.failed) return dgm_no_memory(e->err);
        last->end = (uint32_t)w->text.size;
    }
    DGM_TRY(dgm_bpe_merge(e->s->bpe, w, e->err));
    last = &w->pieces[w->count - 1];
    if (last->begin >= size)
        w->count--;
    else
        last->end = size;
    return DGM_OK;
}

static dgm_status keep_letters(encoding *e)
{
    e->letter_count = e->word.count;
    DGM_TRY(dgm_grow(&e->letters, &e->letter_cap, e->word.count, sizeof *e->letters, e->err));
    memcpy(e->letters, e->word.pieces, e->word.count * sizeof *e->letters);
    return DGM_OK;
}

// e->word has the letters. more: another part of the same word follows.
static dgm_status encode_word(encoding *e, bool more)
{
    const dgm_subwords *s = e->s;
    if (e->word.count == 0) return DGM_OK;
    const dgm_text text = {(const char *)e->word.text.data, e->word.text.size};
    const uint32_t from = e->word.pieces[0].from, to = e->word.pieces[e->word.count - 1].to;
    const int32_t id = more ? -1 : dgm_spelling_find(s->spellings, text);
    const int known = id < 0 ? HAS_PARTS : atomic_load_explicit(&s->whole[id], memory_order_relaxed);
    if (s->style == DGM_BPE_WORDS || known == IS_WHOLE || (id >= 0 && s->whole_words))
        return emit(e, e->left || e->right ? find_piece(e, text, false) : id, from, to);
    if (s->restricted) DGM_TRY(keep_letters(e));
    if (s->style == DGM_BPE_SUBWORD_NMT || s->style == DGM_BPE_JOINER || s->style == DGM_BPE_SPACER)
        DGM_TRY(merge_marked(e));
    else
        DGM_TRY(dgm_bpe_merge(s->bpe, &e->word, e->err));
    if (id >= 0)
        atomic_store_explicit(&s->whole[id], e->word.count == 1 ? IS_WHOLE : HAS_PARTS, memory_order_relaxed);
    return hand_over(e, more);
}

static dgm_status add_letter(encoding *e, const dgm_glyph *g)
{
    char bytes[4];
    return dgm_bpe_word_add(&e->word, bytes, dgm_utf8_put(g->code, bytes), g->begin, g->end, e->err);
}

// A mark as part of the letter before it.
static dgm_status add_mark(encoding *e, const dgm_glyph *g)
{
    dgm_bpe_piece *last = &e->word.pieces[e->word.count - 1];
    char bytes[4];
    dgm_write_bytes(&e->word.text, bytes, dgm_utf8_put(g->code, bytes));
    if (e->word.text.failed) return dgm_no_memory(e->err);
    last->end = (uint32_t)e->word.text.size;
    last->to = g->end;
    return DGM_OK;
}

static dgm_status add_letters(encoding *e, const dgm_glyph *g, size_t count)
{
    const bool opennmt = e->s->style == DGM_BPE_JOINER || e->s->style == DGM_BPE_SPACER;
    dgm_bpe_word_clear(&e->word);
    for (size_t i = 0; i < count; i++) {
        const bool mark = opennmt && i > 0 && (dgm_char_class(g[i].code) & DGM_CHAR_MARK);
        DGM_TRY(mark ? add_mark(e, &g[i]) : add_letter(e, &g[i]));
    }
    return DGM_OK;
}

// How many glyphs from g on are this text; 0: another text.
static size_t reads_as(const dgm_glyph *g, size_t count, dgm_text text)
{
    size_t n = 0, pos = 0;
    for (; pos < text.size; n++) {
        uint32_t code;
        pos += dgm_utf8_next(text.data + pos, text.size - pos, &code);
        if (n >= count || g[n].code != code) return 0;
    }
    return n;
}

// Protected texts in order: the first of them that occurs cuts the word, and what lies between its
// occurrences is cut by the others.
static dgm_status encode_guarded(encoding *e, const dgm_glyph *g, size_t count, size_t rule, bool more)
{
    const dgm_spelling_list *texts = &e->s->protect;
    if (rule == texts->count) {
        DGM_TRY(add_letters(e, g, count));
        return encode_word(e, more);
    }
    size_t begin = 0;
    for (size_t i = 0; i < count;) {
        const size_t n = reads_as(g + i, count - i, texts->items[rule]);
        if (n == 0) {
            i++;
            continue;
        }
        if (i > begin) DGM_TRY(encode_guarded(e, g + begin, i - begin, rule + 1, true));
        const int32_t id = find_piece(e, texts->items[rule], more || i + n < count);
        DGM_TRY(emit(e, id, g[i].begin, g[i + n - 1].end));
        begin = i += n;
    }
    return begin < count ? encode_guarded(e, g + begin, count - begin, rule + 1, more) : DGM_OK;
}

// ---- lines ----------------------------------------------------------------------------------

static dgm_status split_at_spaces(encoding *e)
{
    const dgm_glyphs *l = &e->line;
    for (size_t i = 0; i < l->count;) {
        size_t end = i;
        while (end < l->count && !dgm_char_is_space(l->items[end].code)) end++;
        if (end > i) {
            DGM_TRY(dgm_grow(&e->words.items, &e->words.cap, e->words.count + 1, sizeof *e->words.items, e->err));
            e->words.items[e->words.count++] = (dgm_range){i, end};
        }
        i = end + 1;
    }
    return DGM_OK;
}

static dgm_status encode_words(encoding *e)
{
    if (e->s->moses)
        DGM_TRY(dgm_sacremoses_tokenize(&e->s->rules, &e->line, &e->words, e->err));
    else
        DGM_TRY(split_at_spaces(e));
    for (size_t i = 0; i < e->words.count; i++) {
        const dgm_range w = e->words.items[i];
        e->unknown = false;
        DGM_TRY(encode_guarded(e, e->line.items + w.begin, w.end - w.begin, 0, false));
    }
    return DGM_OK;
}

static dgm_status encode_opennmt(encoding *e)
{
    const bool spacer = e->s->style == DGM_BPE_SPACER;
    DGM_TRY(dgm_opennmt_split(e->s->opennmt, &e->line, &e->marked, e->err));
    for (size_t i = 0; i < e->marked.count; i++) {
        const dgm_opennmt_token t = e->marked.items[i];
        e->unknown = false;
        e->left = spacer ? t.spaced : t.join_left;
        e->right = !spacer && t.join_right;
        DGM_TRY(encode_guarded(e, e->line.items + t.begin, t.end - t.begin, 0, false));
    }
    return DGM_OK;
}

// A space stands for nothing of the text: tokens that begin with one begin behind it.
static dgm_glyph without_place(dgm_glyph g)
{
    g.begin = g.end;
    return g;
}

static dgm_status encode_bytes(encoding *e)
{
    dgm_glyphs *l = &e->line;
    if (e->s->prefix_space && l->count && !dgm_char_is_space(l->items[0].code)) {
        dgm_glyphs_add(l, (dgm_glyph){0});
        if (l->failed) return dgm_no_memory(e->err);
        memmove(l->items + 1, l->items, (l->count - 1) * sizeof *l->items);
        l->items[0] = (dgm_glyph){' ', l->items[1].begin, l->items[1].begin};
    }
    DGM_TRY(dgm_split_gpt2(l, &e->words, e->err));
    for (size_t i = 0; i < e->words.count; i++) {
        dgm_bpe_word_clear(&e->word);
        for (size_t k = e->words.items[i].begin; k < e->words.items[i].end; k++) {
            const dgm_glyph g = l->items[k].code == ' ' ? without_place(l->items[k]) : l->items[k];
            char bytes[4], letter[4];
            const size_t n = dgm_utf8_put(g.code, bytes);
            for (size_t b = 0; b < n; b++)
                DGM_TRY(dgm_bpe_word_add(&e->word, letter,
                                         dgm_utf8_put(e->s->letters[(unsigned char)bytes[b]], letter),
                                         g.begin, g.end, e->err));
        }
        DGM_TRY(encode_word(e, false));
    }
    return DGM_OK;
}

// A character that is no token becomes its bytes, where all of them are.
static dgm_status add_character(encoding *e, const dgm_glyph *g)
{
    char bytes[4], token[8];
    const size_t n = dgm_utf8_put(g->code, bytes);
    bool apart = e->s->byte_fallback && dgm_spelling_find(e->s->spellings, (dgm_text){bytes, n}) < 0;
    for (size_t i = 0; i < n; i++) apart = apart && e->s->bytes[(unsigned char)bytes[i]] >= 0;
    if (!apart) return add_letter(e, g);
    for (size_t i = 0; i < n; i++) {
        static const char digits[] = "0123456789ABCDEF";
        const unsigned char b = (unsigned char)bytes[i];
        memcpy(token, "<0x", 3);
        token[3] = digits[b >> 4];
        token[4] = digits[b & 15];
        token[5] = '>';
        DGM_TRY(dgm_bpe_word_add(&e->word, token, 6, g->begin, g->end, e->err));
    }
    return DGM_OK;
}

static dgm_status encode_marked(encoding *e)
{
    dgm_glyphs *l = &e->line;
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].code == ' ') {
            l->items[i] = without_place(l->items[i]);
            l->items[i].code = DGM_SPACE_MARK;
        }
    if (l->count == 0) return DGM_OK;
    bool add = e->s->prefix_space && (e->s->space_always || l->items[0].code != DGM_SPACE_MARK);
    const dgm_glyph first = {DGM_SPACE_MARK, l->items[0].begin, l->items[0].begin};
    for (size_t i = 0; i < l->count;) {
        dgm_bpe_word_clear(&e->word);
        e->unknown = false;
        DGM_TRY(add_character(e, add ? &first : &l->items[i++]));
        add = false;
        while (i < l->count && (e->s->whole_text || l->items[i].code != DGM_SPACE_MARK))
            DGM_TRY(add_character(e, &l->items[i++]));
        DGM_TRY(encode_word(e, false));
    }
    return DGM_OK;
}

dgm_status dgm_subwords_encode(const dgm_subwords *s, dgm_text text, dgm_subword_fn fn, void *arg,
                               dgm_error *err)
{
    encoding e = {.s = s, .fn = fn, .arg = arg, .err = err};
    dgm_glyphs_read(&e.line, text);
    dgm_status st = e.line.failed ? dgm_no_memory(err) : DGM_OK;
    if (st == DGM_OK && s->normalizer) st = dgm_normalizer_run(s->normalizer, &e.line, err);
    if (st == DGM_OK) {
        if (s->style == DGM_BPE_BYTE_LEVEL)
            st = encode_bytes(&e);
        else if (s->style == DGM_BPE_METASPACE)
            st = encode_marked(&e);
        else if (s->style == DGM_BPE_JOINER || s->style == DGM_BPE_SPACER)
            st = encode_opennmt(&e);
        else
            st = encode_words(&e);
    }
    dgm_glyphs_free(&e.line);
    dgm_ranges_free(&e.words);
    dgm_opennmt_tokens_free(&e.marked);
    dgm_bpe_word_free(&e.word);
    dgm_free(e.letters);
    dgm_free(e.parts);
    dgm_writer_free(&e.spelled);
    return st;
}

// ---- open -----------------------------------------------------------------------------------

static dgm_status open_parts(dgm_subwords *s, const dgm_bpe_options *o, dgm_error *err)
{
    const bool by_words =
        s->style == DGM_BPE_SUBWORD_NMT || s->style == DGM_BPE_JOINER || s->style == DGM_BPE_SPACER;
    DGM_TRY(dgm_bpe_open(&s->bpe, o->merges, o->merge_count, by_words, err));
    DGM_TRY(dgm_spelling_list_init(&s->protect, o->protect, o->protect_count, err));
    DGM_FAIL_IF(o->protect_count > PROTECT_MOST, err, DGM_ERR_FORMAT,
                "%zu protected words; at most %d are possible", o->protect_count, PROTECT_MOST);
    for (size_t i = 0; i < o->protect_count; i++)
        DGM_FAIL_IF(o->protect[i].size == 0, err, DGM_ERR_FORMAT, "protected word %zu is empty", i);
    if (o->normalize_count)
        DGM_TRY(dgm_normalizer_open(&s->normalizer, o->normalize, o->normalize_count, o->charsmap,
                                    o->charsmap_size, err));
    const char *usual_mark = s->style == DGM_BPE_JOINER   ? "\xef\xbf\xad"  // U+FFED
                             : s->style == DGM_BPE_SPACER ? "\xe2\x96\x81" // U+2581
                                                          : "@@";
    const dgm_text usual = dgm_text_of(usual_mark);
    const dgm_text separator = o->separator.size ? o->separator : usual;
    s->separator = dgm_strndup(separator.data, separator.size);
    s->separator_size = by_words ? separator.size : 0;
    s->whole = dgm_calloc(s->spellings->count + 1, sizeof *s->whole);
    if (!s->separator || !s->whole) return dgm_no_memory(err);
    for (int i = 0; i < 256; i++) {
        s->bytes[i] = -1;
        s->letters[i] = dgm_byte_letter((unsigned char)i);
    }
    for (size_t i = s->spellings->count; i-- > 0;) {
        const int byte = dgm_byte_token(s->spellings->items[i]);
        if (byte >= 0) s->bytes[byte] = (int32_t)i;
    }
    return DGM_OK;
}

dgm_status dgm_subwords_open(dgm_subwords **out, const dgm_bpe_options *o, const dgm_spelling_list *spellings,
                             int32_t unk, dgm_error *err)
{
    *out = NULL;
    dgm_subwords *s = dgm_calloc(1, sizeof *s);
    if (!s) return dgm_no_memory(err);
    s->style = o->style;
    s->spellings = spellings;
    s->unk = unk;
    s->end_apart = o->end_apart;
    s->restricted = o->restricted;
    s->prefix_space = o->prefix_space;
    s->space_always = o->space_always;
    s->whole_text = o->whole_text;
    s->byte_fallback = o->byte_fallback;
    s->fuse_unknown = o->fuse_unknown;
    s->whole_words = o->whole_words;
    s->moses = o->moses;
    s->opennmt = o->opennmt;
    dgm_moses_rules_init(&s->rules, o->language, o->moses_options);
    const dgm_status st = open_parts(s, o, err);
    if (st != DGM_OK) dgm_subwords_close(&s);
    *out = s;
    return st;
}

void dgm_subwords_close(dgm_subwords **at)
{
    if (!at || !*at) return;
    dgm_subwords *s = *at;
    dgm_bpe_close(&s->bpe);
    dgm_normalizer_close(&s->normalizer);
    dgm_spelling_list_free(&s->protect);
    dgm_free(s->separator);
    dgm_free((void *)s->whole);
    dgm_free(s);
    *at = NULL;
}

bool dgm_subwords_takes_text(const dgm_subwords *s)
{
    return s->moses || s->opennmt != DGM_OPENNMT_SPACE || s->style == DGM_BPE_BYTE_LEVEL ||
           s->style == DGM_BPE_METASPACE;
}
