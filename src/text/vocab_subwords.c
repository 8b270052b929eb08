// SPDX-License-Identifier: MIT
// Vocabularies over subwords.h: byte-pair encodings, and words by sacremoses; see vocab.h.
#include <string.h>

#include "base/mem.h"
#include "text/vocab_private.h"

typedef struct taking {
    const dgm_vocab *v;
    dgm_tokens *out;
    dgm_error *err;
} taking;

// Ids that stand for no text never come from one.
static dgm_status take_subword(void *arg, int32_t id, uint32_t begin, uint32_t end)
{
    taking *job = arg;
    if (dgm_vocab_is_control(job->v, id)) id = job->v->unk;
    return dgm_tokens_push(job->out, id, (dgm_span){begin, end}, job->err);
}

dgm_status dgm_vocab_encode_subwords(const dgm_vocab *v, dgm_text text, dgm_tokens *out, dgm_error *err)
{
    taking job = {.v = v, .out = out, .err = err};
    return dgm_subwords_encode(v->subwords, text, take_subword, &job, err);
}

// The tokens that make text, as subwords.h wants them; from [used]: the id of each.
static dgm_subword *list_subwords(const dgm_vocab *v, const int32_t *ids, const dgm_text *spelled,
                                  size_t count, uint32_t *from, size_t *used)
{
    dgm_subword *tokens = dgm_calloc(count + 1, sizeof *tokens);
    *used = 0;
    for (size_t i = 0; tokens && i < count; i++) {
        if (dgm_vocab_left_out(v, ids[i], spelled, i)) continue;
        const bool plain = spelled && spelled[i].data;
        if (from) from[*used] = (uint32_t)i;
        tokens[(*used)++] = (dgm_subword){plain ? spelled[i] : v->words.items[ids[i]], plain};
    }
    return tokens;
}

// Spans of the text that was written from `start` on: what each glyph's tokens made, without spaces.
static void place_glyphs(const dgm_glyphs *g, const uint32_t *from, size_t count, dgm_span *spans)
{
    uint32_t at = 0;
    for (size_t i = 0; i < count; i++) spans[i] = (dgm_span){0, 0};
    for (size_t i = 0; i < g->count; i++) {
        char bytes[4];
        const uint32_t size = (uint32_t)dgm_utf8_put(g->items[i].code, bytes);
        for (uint32_t t = g->items[i].begin; g->items[i].code != ' ' && t < g->items[i].end; t++) {
            dgm_span *s = &spans[from[t]];
            if (s->begin == s->end) s->begin = at;
            s->end = at + size;
        }
        at += size;
    }
    // a token that wrote nothing stands behind the one before it
    for (size_t i = 1; i < count; i++)
        if (spans[i].end == 0) spans[i] = (dgm_span){spans[i - 1].end, spans[i - 1].end};
}

dgm_status dgm_vocab_decode_subwords(const dgm_vocab *v, const int32_t *ids, const dgm_text *spelled,
                                  size_t count, dgm_writer *out, dgm_span *spans, dgm_error *err)
{
    uint32_t *from = dgm_calloc(count + 1, sizeof *from);
    size_t used = 0;
    dgm_subword *tokens = from ? list_subwords(v, ids, spelled, count, from, &used) : NULL;
    dgm_glyphs line = {0};
    dgm_status st = tokens ? dgm_subwords_decode(v->subwords, tokens, used, &line, err) : dgm_no_memory(err);
    if (st == DGM_OK) dgm_glyphs_write(line.items, line.count, out);
    if (st == DGM_OK && out->failed) st = dgm_no_memory(err);
    if (st == DGM_OK && spans) place_glyphs(&line, from, count, spans);
    dgm_glyphs_free(&line);
    dgm_free(tokens);
    dgm_free(from);
    return st;
}

size_t dgm_vocab_settled_subwords(const dgm_vocab *v, const int32_t *ids, size_t count)
{
    size_t used = 0;
    dgm_subword *tokens = list_subwords(v, ids, NULL, count, NULL, &used);
    if (!tokens) return 0;
    const size_t settled = dgm_subwords_settled(v->subwords, tokens, used);
    dgm_free(tokens);
    if (settled == used) return count;
    for (size_t i = 0, k = 0; i < count; i++)
        if (!dgm_vocab_left_out(v, ids[i], NULL, i) && k++ == settled) return i;
    return count;
}

void dgm_vocab_surface(const dgm_vocab *v, int32_t id, dgm_writer *out, bool *inside)
{
    *inside = false;
    if (v->subwords) dgm_subwords_surface(v->subwords, dgm_vocab_piece(v, id), out, inside);
}
