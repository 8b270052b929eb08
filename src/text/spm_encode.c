// SPDX-License-Identifier: MIT Text to pieces of a SentencePiece model; see spm.h. Here: models of words and of
// characters, and the tokens that pieces become, with the bytes of the text that each stands for.
#include "base/mem.h"
#include "text/spm_private.h"

dgm_status dgm_spm_push(dgm_spm_parts *parts, size_t end, int32_t id, dgm_error *err)
{
    DGM_TRY(dgm_grow(&parts->items, &parts->cap, parts->count + 1, sizeof *parts->items, err));
    parts->items[parts->count++] = (dgm_spm_part){(uint32_t)end, id};
    return DGM_OK;
}

static dgm_status push_spelling(const dgm_spm *spm, const char *text, size_t begin, size_t end,
                                dgm_spm_parts *parts, dgm_error *err)
{
    const int32_t id = dgm_spm_find(spm, text + begin, end - begin);
    return dgm_spm_push(parts, end, id < 0 ? spm->unk : id, err);
}

// A word begins with each mark.
static dgm_status split_words(const dgm_spm *spm, const char *text, size_t size,
                              dgm_spm_parts *parts, dgm_error *err)
{
    size_t begin = 0;
    for (size_t at = 0; at < size; at += dgm_spm_step(text + at, size - at)) {
        if (at == begin || !dgm_spm_space_at(text + at, size - at)) continue;
        DGM_TRY(push_spelling(spm, text, begin, at, parts, err));
        begin = at;
    }
    return push_spelling(spm, text, begin, size, parts, err);
}

static dgm_status split_characters(const dgm_spm *spm, const char *text, size_t size,
                                   dgm_spm_parts *parts, dgm_error *err)
{
    for (size_t at = 0; at < size;) {
        const size_t user = dgm_spm_user_prefix(spm, text + at, size - at);
        const size_t end = at + (user ? user : dgm_spm_step(text + at, size - at));
        DGM_TRY(push_spelling(spm, text, at, end, parts, err));
        at = end;
    }
    return DGM_OK;
}

static dgm_status split(const dgm_spm *spm, const char *text, size_t size, dgm_spm_parts *parts,
                        dgm_error *err)
{
    switch (spm->kind) {
    case SPM_BPE:
        return dgm_spm_bpe(spm, text, size, parts, err);
    case SPM_WORD:
        return split_words(spm, text, size, parts, err);
    case SPM_CHAR:
        return split_characters(spm, text, size, parts, err);
    default:
        return dgm_spm_unigram(spm, text, size, parts, err);
    }
}

// The bytes of an unknown piece; the last one has its span.
static dgm_status say_bytes(const dgm_spm *spm, dgm_text piece, uint32_t from, uint32_t to,
                            dgm_spm_token_fn fn, void *arg)
{
    for (size_t i = 0; i < piece.size; i++)
        DGM_TRY(fn(arg, spm->byte_ids[(unsigned char)piece.data[i]], from,
                   i + 1 < piece.size ? from : to));
    return DGM_OK;
}

// Unknown pieces that follow each other are one token.
static dgm_status say_tokens(const dgm_spm *spm, const dgm_spm_text *t, const dgm_spm_parts *parts,
                             dgm_spm_token_fn fn, void *arg)
{
    uint32_t begin = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const int32_t id = parts->items[i].id;
        const bool unknown = spm->pieces[id].type == SPM_UNKNOWN;
        while (unknown && !spm->bytes && i + 1 < parts->count &&
               spm->pieces[parts->items[i + 1].id].type == SPM_UNKNOWN)
            i++;
        const uint32_t end = parts->items[i].end;
        if (unknown && spm->bytes)
            DGM_TRY(say_bytes(spm, (dgm_text){t->text + begin, end - begin}, t->from[begin],
                              t->from[end], fn, arg));
        else
            DGM_TRY(fn(arg, id, t->from[begin], t->from[end]));
        begin = end;
    }
    return DGM_OK;
}

// Control symbols are no text: where a text spells one the library ends with an error.
static dgm_status check_control(const dgm_spm *spm, const dgm_spm_parts *parts, dgm_error *err)
{
    for (size_t i = 0; i < parts->count; i++)
        DGM_FAIL_IF(spm->pieces[parts->items[i].id].type == SPM_CONTROL, err, DGM_ERR_FORMAT,
                    "cannot encode text: it spells a control symbol of the SentencePiece model");
    return DGM_OK;
}

static dgm_status encode(const dgm_spm *spm, dgm_text in, dgm_spm_text *t, dgm_spm_parts *parts,
                         dgm_error *err)
{
    DGM_FAIL_IF(in.size > INT32_MAX, err, DGM_ERR_TEXT, "text is longer than 2 GiB");
    DGM_TRY(dgm_spm_normalize(&spm->normal, in.data, in.size, t, err));
    if (t->size == 0) return DGM_OK;
    DGM_TRY(split(spm, t->text, t->size, parts, err));
    return check_control(spm, parts, err);
}

dgm_status dgm_spm_encode(const dgm_spm *spm, const char *text, size_t size, dgm_spm_token_fn fn,
                          void *arg, dgm_error *err)
{
    dgm_spm_text t = {0};
    dgm_spm_parts parts = {0};
    dgm_status st = encode(spm, (dgm_text){text, size}, &t, &parts, err);
    if (st == DGM_OK) st = say_tokens(spm, &t, &parts, fn, arg);
    dgm_spm_text_free(&t);
    dgm_free(parts.items);
    return st;
}
