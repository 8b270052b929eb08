// SPDX-License-Identifier: MIT
// Text as the pieces of a SentencePiece model spell it; see spm_private.h. Rules of libsentencepiece:
//
//   - at each place the longest user-defined symbol stays as it is; else the longest beginning that the map of
//     characters has is replaced; else one character is taken, or one byte that begins none, as U+FFFD;
//   - a space becomes U+2581, and one is put before the text (or behind it);
//   - spaces at both ends go, and several become one, if the model wants that. A space of the input that is U+2581
//     itself is not seen by this, but at the end.
#include <string.h>

#include "base/mem.h"
#include "text/spm_private.h"

size_t dgm_spm_char(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] < 0x80) return 1;
    if (p[0] < 0xC2 || p[0] > 0xF4 || size < 2 || (p[1] & 0xC0) != 0x80) return 0;
    if (p[0] < 0xE0) return 2;
    if (size < 3 || (p[2] & 0xC0) != 0x80) return 0;
    if (p[0] == 0xE0 && p[1] < 0xA0) return 0; // too long a form
    if (p[0] == 0xED && p[1] > 0x9F) return 0; // surrogates
    if (p[0] < 0xF0) return 3;
    if (size < 4 || (p[3] & 0xC0) != 0x80) return 0;
    if (p[0] == 0xF0 && p[1] < 0x90) return 0;
    if (p[0] == 0xF4 && p[1] > 0x8F) return 0; // behind U+10FFFF
    return 4;
}

void dgm_spm_text_free(dgm_spm_text *t)
{
    dgm_free(t->text);
    dgm_free(t->from);
    *t = (dgm_spm_text){0};
}

typedef struct reading {
    const dgm_spm_normalizer *n;
    const char *text;
    size_t size, at; // at: what was taken
    dgm_spm_text *out;
    dgm_error *err;
} reading;

// What the next characters become; *taken is how many bytes they are.
static dgm_text next_part(const reading *r, size_t *taken)
{
    const char *text = r->text + r->at, *to;
    const size_t left = r->size - r->at;
    size_t n = r->n->keeper ? dgm_spm_user_prefix(r->n->keeper, text, left) : 0;
    if (!n) {
        n = dgm_spm_map_match(&r->n->map, text, left, &to);
        if (n) {
            *taken = n;
            return (dgm_text){to, strlen(to)};
        }
        n = dgm_spm_char(text, left);
    }
    *taken = n ? n : 1;
    return n ? (dgm_text){text, n} : (dgm_text){"\xEF\xBF\xBD", 3};
}

// Room for n more bytes and the end.
static dgm_status make_room(reading *r, size_t n)
{
    dgm_spm_text *out = r->out;
    const size_t need = out->size + n + 1;
    DGM_FAIL_IF(need > INT32_MAX, r->err, DGM_ERR_TEXT, "text is longer than 2 GiB");
    if (need > out->text_cap) DGM_TRY(dgm_grow(&out->text, &out->text_cap, need, 1, r->err));
    if (need > out->from_cap)
        DGM_TRY(dgm_grow(&out->from, &out->from_cap, need, sizeof *out->from, r->err));
    return DGM_OK;
}

static void put(reading *r, const char *bytes, size_t size)
{
    dgm_spm_text *out = r->out;
    for (size_t i = 0; i < size; i++) {
        out->text[out->size] = bytes[i];
        out->from[out->size++] = (uint32_t)r->at;
    }
}

static dgm_status put_space(reading *r)
{
    DGM_TRY(make_room(r, SPM_SPACE_SIZE));
    put(r, r->n->escape_spaces ? SPM_SPACE : " ", r->n->escape_spaces ? SPM_SPACE_SIZE : 1);
    return DGM_OK;
}

static dgm_status put_part(reading *r, dgm_text part)
{
    DGM_TRY(make_room(r, part.size * SPM_SPACE_SIZE));
    for (size_t i = 0; i < part.size; i++) {
        if (r->n->escape_spaces && part.data[i] == ' ')
            put(r, SPM_SPACE, SPM_SPACE_SIZE);
        else
            put(r, part.data + i, 1);
    }
    return DGM_OK;
}

static void skip_first_spaces(reading *r)
{
    size_t taken;
    while (r->at < r->size) {
        const dgm_text part = next_part(r, &taken);
        if (part.size != 1 || *part.data != ' ') return;
        r->at += taken;
    }
}

static void drop_last_spaces(reading *r)
{
    dgm_spm_text *out = r->out;
    const char *space = r->n->escape_spaces ? SPM_SPACE : " ";
    const size_t size = strlen(space);
    while (out->size >= size && memcmp(out->text + out->size - size, space, size) == 0) {
        out->size -= size;
        r->at = out->from[out->size];
    }
}

static dgm_status put_all(reading *r)
{
    const bool fold = r->n->no_extra_spaces;
    bool behind_space = fold;
    while (r->at < r->size) {
        size_t taken;
        dgm_text part = next_part(r, &taken);
        while (behind_space && part.size && *part.data == ' ') part.data++, part.size--;
        if (part.size) {
            DGM_TRY(put_part(r, part));
            behind_space = fold && part.data[part.size - 1] == ' ';
        }
        r->at += taken;
    }
    return DGM_OK;
}

dgm_status dgm_spm_normalize(const dgm_spm_normalizer *n, const char *text, size_t size,
                             dgm_spm_text *out, dgm_error *err)
{
    reading r = {.n = n, .text = text, .size = size, .out = out, .err = err};
    out->size = 0;
    if (n->no_extra_spaces) skip_first_spaces(&r);
    if (r.at == size) return DGM_OK;
    DGM_TRY(make_room(&r, size - r.at + size / 4 + 16));
    if (n->dummy_prefix && !n->space_behind) DGM_TRY(put_space(&r));
    DGM_TRY(put_all(&r));
    if (n->no_extra_spaces) drop_last_spaces(&r);
    if (n->dummy_prefix && n->space_behind) DGM_TRY(put_space(&r));
    out->from[out->size] = (uint32_t)r.at;
    return DGM_OK;
}
