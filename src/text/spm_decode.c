// SPDX-License-Identifier: MIT
// Pieces of a SentencePiece model to text; see spm.h. Rules of libsentencepiece:
//
//   - control symbols write nothing, the unknown piece its surface, others their spelling with spaces for marks;
//   - of the first piece of a text that has anything to write one mark goes, where the model puts a space before texts
//     or removes spaces; if it does not remove them, only once;
//   - bytes become characters; the last byte of one has its span, and a byte that belongs to none is U+FFFD;
//   - a denormaliser changes the whole text at last.
#include <string.h>

#include "base/mem.h"
#include "text/spm_private.h"

typedef struct decoding {
    const dgm_spm *spm;
    const int32_t *pieces;
    size_t count;
    char *text;     // room for what the pieces can be at most
    uint32_t *ends; // [count] of the text of a piece; one block with `text`
    size_t size;
    bool at_begin; // a mark here is the one before the text
    bool mark_is_gone;
} decoding;

// The piece that the spelling of piece i is found as.
static const dgm_spm_record *record_of(const decoding *d, size_t i)
{
    return &d->spm->pieces[d->spm->pieces[d->pieces[i]].found];
}

static char byte_value(const decoding *d, size_t i)
{
    const char *spelled = d->spm->texts + record_of(d, i)->offset + 3; // behind "<0x"
    const int high = spelled[0] <= '9' ? spelled[0] - '0' : spelled[0] - 'A' + 10;
    const int low = spelled[1] <= '9' ? spelled[1] - '0' : spelled[1] - 'A' + 10;
    return (char)(high * 16 + low);
}

static void write_text(decoding *d, const char *text, size_t size)
{
    memcpy(d->text + d->size, text, size);
    d->size += size;
}

// Pieces [from, to) are bytes.
static void write_bytes(decoding *d, size_t from, size_t to)
{
    while (from < to) {
        char window[4];
        size_t have = 0;
        for (; have < sizeof window && from + have < to; have++)
            window[have] = byte_value(d, from + have);
        const size_t n = dgm_spm_char(window, have);
        for (size_t i = 0; i + 1 < n; i++) d->ends[from++] = (uint32_t)d->size;
        write_text(d, n ? window : "\xEF\xBF\xBD", n ? n : 3);
        d->ends[from++] = (uint32_t)d->size;
    }
}

static void write_spelling(decoding *d, dgm_text piece)
{
    for (size_t i = 0; i < piece.size;) {
        const bool mark = dgm_spm_space_at(piece.data + i, piece.size - i);
        d->text[d->size++] = mark ? ' ' : piece.data[i];
        i += mark ? SPM_SPACE_SIZE : 1;
    }
}

static void write_piece(decoding *d, const dgm_spm_record *p)
{
    const dgm_spm_normalizer *n = &d->spm->normal;
    dgm_text piece = {d->spm->texts + p->offset, p->size};
    if (d->mark_is_gone || d->size) d->at_begin = false;
    d->mark_is_gone = false;
    if (p->type == SPM_CONTROL) return;
    if (p->type == SPM_UNKNOWN) {
        write_text(d, d->spm->unk_surface.data, d->spm->unk_surface.size);
        return;
    }
    if (d->at_begin && (n->dummy_prefix || n->no_extra_spaces) &&
        dgm_spm_space_at(piece.data, piece.size)) {
        piece.data += SPM_SPACE_SIZE, piece.size -= SPM_SPACE_SIZE;
        d->mark_is_gone = !n->no_extra_spaces;
    }
    write_spelling(d, piece);
}

// Most bytes that the pieces can be.
static uint64_t text_bound(const decoding *d)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < d->count; i++) {
        const dgm_spm_record *p = record_of(d, i); // "<0x41>" is longer than U+FFFD
        bytes += p->type == SPM_UNKNOWN ? d->spm->unk_surface.size : p->size;
    }
    return bytes;
}

static dgm_status decode(decoding *d, dgm_error *err)
{
    size_t bytes_from = 0;
    const uint64_t bound = text_bound(d);
    DGM_FAIL_IF(bound > INT32_MAX, err, DGM_ERR_TEXT, "text is longer than 2 GiB");
    d->ends = dgm_malloc(d->count * sizeof *d->ends + bound + 1);
    if (!d->ends) return dgm_no_memory(err);
    d->text = (char *)(d->ends + d->count);
    for (size_t i = 0; i < d->count; i++) {
        const dgm_spm_record *p = record_of(d, i);
        if (p->type == SPM_BYTE) continue;
        write_bytes(d, bytes_from, i);
        bytes_from = i + 1;
        write_piece(d, p);
        d->ends[i] = (uint32_t)d->size;
    }
    write_bytes(d, bytes_from, d->count);
    return DGM_OK;
}

static dgm_status say(const decoding *d, dgm_spm_text_fn text_fn, dgm_spm_token_fn fn, void *arg,
                      dgm_error *err)
{
    if (d->spm->back.map.units) {
        dgm_spm_text back = {0};
        dgm_status st = dgm_spm_normalize(&d->spm->back, d->text, d->size, &back, err);
        if (st == DGM_OK) st = text_fn(arg, back.text ? back.text : "", back.size);
        dgm_spm_text_free(&back);
        DGM_TRY(st);
    } else {
        DGM_TRY(text_fn(arg, d->text, d->size));
    }
    for (size_t i = 0; i < d->count; i++)
        DGM_TRY(fn(arg, d->pieces[i], i ? d->ends[i - 1] : 0, d->ends[i]));
    return DGM_OK;
}

dgm_status dgm_spm_decode(const dgm_spm *spm, const int32_t *pieces, size_t count,
                          dgm_spm_text_fn text_fn, dgm_spm_token_fn fn, void *arg, dgm_error *err)
{
    decoding d = {.spm = spm, .pieces = pieces, .count = count, .at_begin = true};
    dgm_status st = decode(&d, err);
    if (st == DGM_OK) st = say(&d, text_fn, fn, arg, err);
    dgm_free(d.ends);
    return st;
}
