// SPDX-License-Identifier: MIT
// From decoded tokens back to a line: text of every piece, joined, with token scores and links.
// Called by a text thread when the last piece of a line is decoded.
//
// The k-th translation of a line in several pieces is made of the k-th of every piece (or its
// last). Its sum is the sum of theirs, its score that sum normalised by the whole length.
//
// Words of a link are what white space separates in the whole line and in the whole translation:
//
//     span of a token in the piece's text -> offset in the line -> words begun up to there - 1
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/engine_private.h"
#include "text/capitals.h"
#include "text/titles.h"

const char dgm_memory_message[] = "out of memory";

void dgm_scratch_free(dgm_scratch *s)
{
    dgm_writer_free(&s->text);
    dgm_writer_free(&s->joined);
    dgm_writer_free(&s->lower);
    dgm_free(s->spelled);
    dgm_free(s->spans);
    dgm_free(s->outputs);
    dgm_free(s->starts);
    dgm_free(s->links);
    dgm_free(s->source_word);
    dgm_free(s->target_word);
    dgm_free(s->protected.items);
    dgm_free(s->kept);
    memset(s, 0, sizeof *s);
}

// ---- from a search -----------------------------------------------------------------------------

// The text token with the largest weight, first one first; -1 without any.
static int32_t best_source(const float *weights, const dgm_piece_state *piece)
{
    int32_t best = -1;
    weights += piece->text_first;
    for (int i = 0; i < piece->text_count; i++)
        if (best < 0 || weights[i] > weights[best]) best = i;
    return piece->backwards && best >= 0 ? piece->text_count - 1 - best : best;
}

// One block: records, tokens, scores, links.
dgm_status dgm_piece_take(dgm_piece_state *piece, const dgm_search_result *r)
{
    size_t tokens = 0, scores = 0, links = 0;
    for (int k = 0; k < r->count; k++) {
        const dgm_hypothesis *h = &r->hypotheses[k];
        tokens += (size_t)h->count;
        if (h->word_scores) scores += (size_t)h->count + 1;
        if (h->alignment) links += (size_t)h->count;
    }
    size_t records = (size_t)r->count * sizeof(dgm_raw);
    char *block = dgm_malloc(records + (tokens + links) * sizeof(int32_t) + scores * sizeof(float));
    if (!block) return DGM_ERR_MEMORY;
    dgm_raw *hyps = (dgm_raw *)(void *)block;
    int32_t *ids = (int32_t *)(void *)(block + records);
    int32_t *align = ids + tokens;
    float *score = (float *)(void *)(align + links);
    int kept = 0;
    for (int k = 0; k < r->count; k++) {
        const dgm_hypothesis *h = &r->hypotheses[k];
        size_t n = (size_t)h->count;
        if (k > 0 && piece->as_written && !dgm_piece_meets(piece, h)) continue;
        dgm_raw *own = &hyps[kept++];
        *own = (dgm_raw){
            .tokens = ids, .count = h->count, .score = h->score, .sum = h->sum, .finished = h->finished};
        if (n) memcpy(ids, h->tokens, n * sizeof *ids);
        ids += n;
        if (h->word_scores) {
            own->scores = score;
            memcpy(score, h->word_scores, (n + 1) * sizeof *score);
            score += n + 1;
        }
        if (!h->alignment) continue;
        own->align = align;
        for (size_t j = 0; j < n; j++)
            *align++ = best_source(h->alignment + j * (size_t)r->source_count, piece);
    }
    piece->block = block;
    piece->hyps = hyps;
    piece->hyp_count = kept;
    return DGM_OK;
}

// ---- words ------------------------------------------------------------------------------------

// A walk over a text that counts words; tokens come in ascending order.
typedef struct word_walk {
    dgm_text text;
    size_t pos;
    int32_t words; // begun before pos
    bool inside;   // pos is not the first byte of a word's run
} word_walk;

static void walk_to(word_walk *w, size_t target)
{
    while (w->pos < target && w->pos < w->text.size) {
        uint32_t code = 0;
        size_t n = dgm_utf8_next(w->text.data + w->pos, w->text.size - w->pos, &code);
        bool space = dgm_char_is_space(code);
        if (!space && !w->inside) w->words++;
        w->inside = !space;
        w->pos += n;
    }
}

// Word of the token at [begin, end): the word its first byte belongs to; a token without text goes
// to the word that follows.
static int32_t word_at(word_walk *w, size_t begin, size_t end)
{
    walk_to(w, begin);
    if (begin == end && !w->inside) return w->words;
    uint32_t code = ' ';
    if (w->pos < w->text.size) dgm_utf8_next(w->text.data + w->pos, w->text.size - w->pos, &code);
    if (w->inside) return dgm_char_is_space(code) ? w->words : w->words - 1;
    return w->words;
}

static int32_t count_words(dgm_text text)
{
    word_walk w = {.text = text};
    walk_to(&w, text.size);
    return w.words;
}

// ---- links ------------------------------------------------------------------------------------

static int compare_links(const void *a, const void *b)
{
    const dgm_link *x = a, *y = b;
    if (x->target != y->target) return x->target < y->target ? -1 : 1;
    return x->source < y->source ? -1 : x->source > y->source;
}

static void sort_links(dgm_scratch *s)
{
    if (s->link_count < 2) return;
    qsort(s->links, s->link_count, sizeof *s->links, compare_links);
    size_t kept = 1;
    for (size_t i = 1; i < s->link_count; i++)
        if (compare_links(&s->links[kept - 1], &s->links[i]) != 0) s->links[kept++] = s->links[i];
    s->link_count = kept;
}

// A piece, or the attempt that is taken instead.
static dgm_piece_state *piece_of(const dgm_line_state *line, size_t i)
{
    dgm_piece_state *own = &line->job->encoded.pieces[line->first + i];
    return own->better ? own->better : own;
}

static const dgm_standins *standins_of(const dgm_line_state *line, size_t i)
{
    return line->job->encoded.pieces[line->first + i].standins;
}

// Where a place of the text that was translated stands in the line.
static size_t place_in_line(const dgm_line_state *line, size_t i, size_t pos)
{
    const bool again = line->job->encoded.pieces[line->first + i].better != NULL;
    const dgm_standins *s = standins_of(line, i);
    return again ? line->pieces.items[i].begin + dgm_standins_place(s, pos) : pos;
}

static const dgm_raw *hypothesis(const dgm_piece_state *piece, size_t k)
{
    static const dgm_raw copy = {.finished = true}, nothing = {0};
    if (piece->copied) return &copy;
    if (piece->missed) return &nothing;
    size_t last = (size_t)piece->hyp_count - 1;
    return &piece->hyps[k < last ? k : last];
}

// With the end symbol; a piece that was not decoded has none.
static int tokens_of(const dgm_piece_state *piece, const dgm_raw *h)
{
    return piece->copied || piece->missed ? 0 : h->count + 1;
}

// Word numbers of all source tokens (line's text) and target tokens (joined text).
static dgm_status find_words(const dgm_line_state *line, size_t k, dgm_scratch *s, dgm_error *err)
{
    word_walk from = {.text = {line->text, line->size}};
    word_walk to = {.text = {(const char *)s->joined.data, s->joined.size}};
    int32_t source_words = count_words(from.text), target_words = count_words(to.text);
    size_t a = 0, b = 0;
    for (size_t i = 0; i < line->pieces.count; i++) {
        const dgm_piece_state *piece = piece_of(line, i);
        const dgm_raw *h = hypothesis(piece, k);
        const dgm_span *spans = piece->text_count ? piece->line->job->encoded.spans + piece->spans_at : NULL;
        DGM_TRY(dgm_grow(&s->source_word, &s->source_cap, a + (size_t)piece->text_count,
                         sizeof *s->source_word, err));
        DGM_TRY(dgm_grow(&s->target_word, &s->target_cap, b + (size_t)h->count,
                         sizeof *s->target_word, err));
        for (int j = 0; j < piece->text_count; j++) {
            int32_t w = word_at(&from, place_in_line(line, i, spans[j].begin), place_in_line(line, i, spans[j].end));
            s->source_word[a++] = w < source_words ? w : source_words - 1;
        }
        for (int j = 0; j < h->count; j++) {
            int32_t w =
                word_at(&to, s->starts[i] + s->spans[b].begin, s->starts[i] + s->spans[b].end);
            s->target_word[b++] = w < target_words ? w : target_words - 1;
        }
    }
    return DGM_OK;
}

static dgm_status make_links(const dgm_line_state *line, size_t k, dgm_scratch *s, dgm_error *err)
{
    bool words = line->job->translator->alignment == DGM_ALIGN_WORDS;
    if (words) DGM_TRY(find_words(line, k, s, err));
    int32_t source_base = 0, target_base = 0;
    size_t b = 0;
    s->link_count = 0;
    for (size_t i = 0; i < line->pieces.count; i++) {
        const dgm_piece_state *piece = piece_of(line, i);
        const dgm_raw *h = hypothesis(piece, k);
        DGM_TRY(dgm_grow(&s->links, &s->link_cap, s->link_count + (size_t)h->count,
                         sizeof *s->links, err));
        for (int j = 0; j < h->count; j++, b++) {
            if (!h->align || h->align[j] < 0) continue;
            dgm_link link = {source_base + h->align[j], target_base + j};
            if (words) {
                link.source = s->source_word[link.source];
                link.target = s->target_word[b];
                // Control tokens have no text; a text without words has no links.
                bool empty = s->spans[b].begin == s->spans[b].end;
                if (empty || link.source < 0 || link.target < 0) continue;
            }
            s->links[s->link_count++] = link;
        }
        source_base += piece->text_count;
        target_base += tokens_of(piece, h);
    }
    sort_links(s);
    return DGM_OK;
}

// ---- text and scores --------------------------------------------------------------------------

// Where each piece's output stands in the joined line: they appear unchanged and in order, with
// white space or nothing between them.
static void locate_outputs(dgm_scratch *s, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        dgm_text o = s->outputs[i];
        while (at + o.size < s->joined.size && memcmp(s->joined.data + at, o.data, o.size) != 0)
            at++;
        s->starts[i] = at;
        at += o.size;
    }
}

// A byte token may have made a line break.
static void clear_breaks(dgm_writer *text, size_t from)
{
    for (size_t i = from; i < text->size; i++)
        if (text->data[i] < 0x20 && text->data[i] != '\t') text->data[i] = ' ';
}

// Appends what a hypothesis says to s->text; spans: of its tokens, or NULL.
static dgm_status write_piece(const dgm_piece_state *piece, const dgm_raw *h, dgm_scratch *s, dgm_span *spans,
                              dgm_error *err)
{
    const dgm_translator *t = piece->line->job->translator;
    const dgm_text *spelled = NULL;
    const size_t begin = s->text.size;
    DGM_TRY(dgm_unknown_spell(piece, h, s, &spelled, err));
    DGM_TRY(dgm_vocab_decode_spelled(t->target, h->tokens, spelled, (size_t)h->count, &s->text, spans, err));
    clear_breaks(&s->text, begin);
    if (piece->raised && s->text.data) dgm_capitals_raise((char *)s->text.data + begin, s->text.size - begin);
    if (piece->titled && s->text.data) dgm_titles_raise((char *)s->text.data + begin, s->text.size - begin);
    return DGM_OK;
}

dgm_status dgm_piece_text(const dgm_piece_state *piece, dgm_scratch *s, dgm_error *err)
{
    return write_piece(piece, hypothesis(piece, 0), s, NULL, err);
}

// The texts of the first n pieces, and the line that they begin with its own white space around and
// between them; begun: in place of the last one's.
static dgm_status join_texts(const dgm_line_state *line, size_t k, size_t n, const dgm_raw *begun,
                             dgm_scratch *s, dgm_error *err)
{
    size_t b = 0;
    DGM_TRY(dgm_grow(&s->outputs, &s->output_cap, n, sizeof *s->outputs, err));
    DGM_TRY(dgm_grow(&s->starts, &s->start_cap, n + 1, sizeof *s->starts, err));
    s->text.size = s->joined.size = 0;
    for (size_t i = 0; i < n; i++) {
        const dgm_raw *h = begun && i + 1 == n ? begun : hypothesis(piece_of(line, i), k);
        const dgm_standins *standins = standins_of(line, i);
        DGM_TRY(dgm_grow(&s->spans, &s->span_cap, b + (size_t)h->count + 1, sizeof *s->spans, err));
        s->starts[i] = s->text.size;
        if (piece_of(line, i)->copied) {
            const dgm_piece *p = &line->pieces.items[i];
            dgm_write_bytes(&s->text, line->text + p->begin, p->end - p->begin);
            continue;
        }
        DGM_TRY(write_piece(piece_of(line, i), h, s, s->spans + b, err));
        if (standins)
            DGM_TRY(dgm_standins_restore(standins, &s->text, s->starts[i], s->spans + b, (size_t)h->count, err));
        b += (size_t)h->count;
    }
    s->starts[n] = s->text.size;
    for (size_t i = 0; i < n; i++)
        s->outputs[i] = (dgm_text){s->text.data ? (const char *)s->text.data + s->starts[i] : "",
                                   s->starts[i + 1] - s->starts[i]};
    dgm_text whole = {line->text, line->size}, inner = dgm_text_trim(whole);
    const size_t lead = (size_t)(inner.data - whole.data);
    const dgm_pieces first = {line->pieces.items, n, n};
    if (line->careful) dgm_write_bytes(&s->joined, whole.data, lead);
    if (line->pieces.count == 1)
        dgm_write_bytes(&s->joined, s->outputs[0].data, s->outputs[0].size);
    else
        DGM_TRY(dgm_split_join(whole, &first, s->outputs, &s->joined, err));
    if (line->careful && !begun && n == line->pieces.count)
        dgm_write_bytes(&s->joined, inner.data + inner.size, whole.size - lead - inner.size);
    return s->joined.failed ? dgm_no_memory(err) : DGM_OK;
}

static dgm_status make_text(const dgm_line_state *line, size_t k, dgm_scratch *s, dgm_error *err)
{
    DGM_TRY(join_texts(line, k, line->pieces.count, NULL, s, err));
    locate_outputs(s, line->pieces.count);
    return DGM_OK;
}

dgm_status dgm_line_begin(const dgm_line_state *line, size_t count, const dgm_raw *begun,
                          dgm_scratch *s, dgm_error *err)
{
    return join_texts(line, 0, count, begun, s, err);
}

static dgm_text token_spelling(const dgm_translator *t, const dgm_raw *h, int j)
{
    return dgm_vocab_piece(t->target, j < h->count ? h->tokens[j] : dgm_vocab_eos(t->target));
}

// One block: pointers, scores, spellings.
static dgm_status make_tokens(const dgm_line_state *line, size_t k, dgm_translation *out,
                              dgm_error *err)
{
    const dgm_translator *t = line->job->translator;
    size_t count = 0, bytes = 0;
    for (size_t i = 0; i < line->pieces.count; i++) {
        const dgm_raw *h = hypothesis(piece_of(line, i), k);
        const int own = tokens_of(piece_of(line, i), h);
        count += (size_t)own;
        for (int j = 0; j < own; j++) bytes += token_spelling(t, h, j).size + 1;
    }
    char *block = dgm_malloc(count * (sizeof(char *) + sizeof(float)) + bytes);
    if (!block) return dgm_no_memory(err);
    const char **tokens = (const char **)(void *)block;
    float *scores = (float *)(void *)(block + count * sizeof(char *));
    char *text = block + count * (sizeof(char *) + sizeof(float));
    size_t n = 0;
    for (size_t i = 0; i < line->pieces.count; i++) {
        const dgm_raw *h = hypothesis(piece_of(line, i), k);
        const int own = tokens_of(piece_of(line, i), h);
        for (int j = 0; j < own; j++, n++) {
            dgm_text piece = token_spelling(t, h, j);
            tokens[n] = text;
            scores[n] = h->scores ? h->scores[j] : 0;
            if (piece.size) memcpy(text, piece.data, piece.size);
            text += piece.size;
            *text++ = 0;
        }
    }
    out->tokens = tokens;
    out->token_scores = scores;
    out->token_count = n;
    return DGM_OK;
}

static dgm_status make_translation(dgm_line_state *line, size_t k, dgm_scratch *s,
                                   dgm_translation *out, dgm_error *err)
{
    const dgm_translator *t = line->job->translator;
    size_t length = 0;
    DGM_TRY(make_text(line, k, s, err));
    char *text = dgm_strndup(s->joined.size ? (const char *)s->joined.data : "", s->joined.size);
    if (!text) return dgm_no_memory(err);
    out->text = text;
    out->text_size = s->joined.size;
    out->finished = 1;
    out->approximate = t->approximate;
    for (size_t i = 0; i < line->pieces.count; i++) {
        const dgm_raw *h = hypothesis(piece_of(line, i), k);
        out->sum += h->sum;
        out->score = h->score;
        out->finished &= h->finished;
        length += (size_t)tokens_of(piece_of(line, i), h);
    }
    if (line->pieces.count > 1 && length > 0) // 0: all of them were copied
        out->score = dgm_length_normalise(out->sum, (int)length,
                                          line->other ? line->lengths.length_penalty
                                                      : t->config.length_penalty);
    if (k == 0) {
        line->target_tokens = length;
        if (!out->finished && !(line->flags & DGM_LINE_DEADLINE)) line->flags |= DGM_LINE_TRUNCATED;
    }
    if (t->token_scores) DGM_TRY(make_tokens(line, k, out, err));
    if (t->alignment == DGM_ALIGN_NONE) return DGM_OK;
    DGM_TRY(make_links(line, k, s, err));
    dgm_link *links = dgm_malloc((s->link_count ? s->link_count : 1) * sizeof *links);
    if (!links) return dgm_no_memory(err);
    if (s->link_count) memcpy(links, s->links, s->link_count * sizeof *links);
    out->links = links;
    out->link_count = s->link_count;
    return DGM_OK;
}

// ---- runaway repetition -------------------------------------------------------------------------

enum { LONGEST = 8, TIMES = 4 };

// Where tokens begin to repeat an n-gram of 1 to 8, four times and more, and, to_end, do so until they
// end (but for what is left of it): behind its first time. -1: nowhere. A stutter in the middle, behind which the
// sentence goes on, is left alone.
static int runaway(const int32_t *tokens, int count, bool to_end)
{
    for (int at = 0; at < count; at++)
        for (int n = 1; n <= LONGEST && at + n * TIMES <= count; n++) {
            int same = 0;
            while (at + same + n < count && tokens[at + same] == tokens[at + same + n]) same++;
            if (same < n * (TIMES - 1)) continue;
            if (!to_end || count - (at + same + n) <= n) return at + n;
        }
    return -1;
}

// Would a hypothesis that has all its constraint asks for lose some of it by the cut?
static bool is_demanded(const dgm_piece_state *piece, const dgm_raw *h, int end)
{
    const dgm_hypothesis whole = {.tokens = h->tokens, .count = h->count}, cut = {.tokens = h->tokens, .count = end};
    return piece->constraint && !piece->relaxed && dgm_piece_meets(piece, &whole) && !dgm_piece_meets(piece, &cut);
}

void dgm_piece_cut(dgm_piece_state *piece)
{
    const dgm_encoded *e = &piece->line->job->encoded;
    for (int k = 0; k < piece->hyp_count; k++) {
        dgm_raw *h = &piece->hyps[k];
        const int end = runaway(h->tokens, h->count, true);
        const int32_t *source = e->tokens + piece->ids_at + piece->text_first;
        if (end < 0 || runaway(source, piece->text_count, false) >= 0) continue;
        if (is_demanded(piece, h, end)) continue;
        if (h->scores) ((float *)(uintptr_t)h->scores)[end] = h->scores[h->count];
        h->count = end;
        h->finished = true;
        if (k == 0) piece->repeated = true;
    }
}

// The cut may come behind the first time of any n-gram that is being repeated now, or of one that was
// repeated often enough and that no more than what is left of it follows.
int dgm_runaway_settled(const int32_t *tokens, int count)
{
    int least = count;
    for (int n = 1; n <= LONGEST; n++)
        for (int left = 0; left <= n && left < count; left++) {
            int same = 0;
            const int end = count - left;
            while (end - same > n && tokens[end - same - 1] == tokens[end - same - 1 - n]) same++;
            if (left && same < n * (TIMES - 1)) continue;
            if (end - same < least) least = end - same;
        }
    return least;
}

static dgm_status make_empty(dgm_translation *out, dgm_error *err)
{
    char *text = dgm_strdup("");
    if (!text) return dgm_no_memory(err);
    out->text = text;
    out->finished = 1;
    return DGM_OK;
}

static dgm_status make_all(dgm_line_state *line, dgm_scratch *s, dgm_result *out, dgm_error *err)
{
    size_t n = 1, missed = 0;
    for (size_t i = 0; i < line->pieces.count; i++) {
        const dgm_piece_state *piece = piece_of(line, i);
        if (piece->late) line->flags |= DGM_LINE_DEADLINE;
        if (piece->repeated) line->flags |= DGM_LINE_REPEATED;
        missed += piece->missed;
        if (piece->status != DGM_OK) {
            const char *why = piece->error ? piece->error : dgm_status_name(piece->status);
            return dgm_fail(err, piece->status, "%s", why);
        }
        if ((size_t)piece->hyp_count > n) n = (size_t)piece->hyp_count;
    }
    DGM_FAIL_IF(missed && missed == line->pieces.count, err, DGM_ERR_CANCELLED,
                "its deadline passed before there was a word of its translation");
    for (size_t i = 0; i < line->pieces.count; i++)
        if (standins_of(line, i)) line->flags |= DGM_LINE_MENDED;
    // One block: where each translation is, and behind that the translations.
    const dgm_translation **list = dgm_calloc(n, sizeof *list + sizeof **list);
    if (!list) return dgm_no_memory(err);
    dgm_translation *made = (dgm_translation *)(void *)(list + n);
    out->translations = list;
    for (size_t k = 0; k < n; k++) {
        list[k] = &made[k];
        made[k].size = sizeof made[k];
        out->count = k + 1; // a half-made one is freed, too
        DGM_TRY(line->pieces.count ? make_translation(line, k, s, &made[k], err)
                                   : make_empty(&made[k], err));
    }
    return DGM_OK;
}

// What a line was asked for in vain; NULL: nothing.
static const char *missed_by(const dgm_line_state *line)
{
    bool relaxed = false, nothing = false;
    for (size_t i = 0; i < line->pieces.count; i++) {
        const dgm_piece_state *piece = piece_of(line, i);
        relaxed |= piece->relaxed;
        nothing |= piece->hyp_count > 0 && !(piece->hyps[0].sum > -INFINITY) && !piece->late;
    }
    if (relaxed) return "no translation within the maximum length meets the constraints";
    return nothing ? "no translation within the maximum length has all that was asked for" : NULL;
}

// What became of constraints. Without memory for the longer text the shorter one stays.
static void take_notice(dgm_line_state *line, dgm_result *out)
{
    const char *missed = missed_by(line);
    out->notice = line->notice;
    line->notice = NULL;
    if (!missed) return;
    line->flags |= DGM_LINE_UNMET;
    dgm_writer w = {0};
    if (out->notice) dgm_write_format(&w, "%s; ", out->notice);
    dgm_write_text(&w, missed);
    char *text = dgm_writer_take(&w, NULL);
    if (!text) return;
    dgm_free((void *)(uintptr_t)out->notice);
    out->notice = text;
}

void dgm_line_count(dgm_translator *t, const dgm_line_state *line)
{
    t->lines++;
    t->copied += (line->flags & DGM_LINE_COPIED) != 0;
    t->repeated += (line->flags & DGM_LINE_REPEATED) != 0;
    t->mended += (line->flags & DGM_LINE_MENDED) != 0;
}

// The direction that the line had.
static void take_direction(const dgm_line_state *line, dgm_result *out)
{
    const dgm_translator *t = line->job->translator;
    const dgm_languages *l = dgm_model_describe(t->members[0].model)->languages;
    const int *direction = line->other ? line->direction : t->direction;
    if (direction[0] >= 0 && l->count[0]) out->source_code = l->code[0][direction[0]];
    if (direction[1] >= 0 && l->count[1]) out->target_code = l->code[1][direction[1]];
}

void dgm_line_assemble(dgm_line_state *line, dgm_scratch *s, dgm_result *out)
{
    dgm_error error;
    take_direction(line, out);
    out->source_tokens = line->source_tokens;
    out->pieces = (uint32_t)line->pieces.count;
    out->status = line->status;
    if (line->status != DGM_OK) {
        out->message = line->message;
        line->message = NULL;
    } else {
        out->status = make_all(line, s, out, &error);
    }
    if (out->status == DGM_OK) {
        take_notice(line, out);
        out->ngrams = line->ngrams;
        out->ngram_count = line->ngram_count;
        line->ngrams = NULL;
    }
    out->flags = line->flags;
    if (out->status == DGM_OK || line->status != DGM_OK) return;
    char *message = out->status == DGM_ERR_MEMORY ? NULL : dgm_strdup(error.text);
    out->message = message ? message : dgm_memory_message;
    if (!message) out->status = DGM_ERR_MEMORY;
    line->target_tokens = 0;
    if (s->text.failed) dgm_writer_free(&s->text);
    if (s->joined.failed) dgm_writer_free(&s->joined);
    dgm_translations_free(out); // what was made of a failed line is of no use
}
