// SPDX-License-Identifier: MIT
// A minimal reader of protocol-buffer messages, enough to walk the pieces; see spm_list.h.
#include "import/spm_list.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

static uint64_t read_varint(dgm_reader *r)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t b = dgm_read_u8(r);
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return v;
    }
    r->bad = true;
    return 0;
}

// One field of a message. value: of a varint; bytes: of a length-delimited field, else NULL.
typedef struct field {
    uint64_t number, value;
    const uint8_t *bytes;
} field;

// False at the end and on damage (then r->bad is set).
static bool next_field(dgm_reader *r, field *f)
{
    if (r->bad || dgm_reader_left(r) == 0) return false;
    uint64_t tag = read_varint(r);
    f->number = tag >> 3;
    f->value = 0;
    f->bytes = NULL;
    switch (tag & 7) {
    case 0:
        f->value = read_varint(r);
        break;
    case 1:
        dgm_read_bytes(r, 8);
        break;
    case 2:
        f->value = read_varint(r);
        f->bytes = dgm_read_bytes(r, f->value);
        break;
    case 5:
        dgm_read_bytes(r, 4);
        break;
    default:
        r->bad = true;
    }
    return !r->bad;
}

static bool read_piece(const uint8_t *data, uint64_t size, dgm_spm_item *item)
{
    dgm_reader r = dgm_reader_over(data, (size_t)size);
    item->piece = "";
    item->size = 0;
    item->kind = DGM_SPM_NORMAL;
    for (field f; next_field(&r, &f);) {
        if (f.number == 1 && f.bytes) {
            item->piece = (const char *)f.bytes;
            item->size = (size_t)f.value;
        } else if (f.number == 3 && !f.bytes && f.value <= DGM_SPM_BYTE) {
            item->kind = (int)f.value;
        }
    }
    return !r.bad;
}

dgm_status dgm_spm_list_read(dgm_spm_list *list, const void *data, size_t size, dgm_error *err)
{
    memset(list, 0, sizeof *list);
    dgm_reader r = dgm_reader_over(data, size);
    dgm_status st = DGM_OK;
    for (field f; st == DGM_OK && next_field(&r, &f);) {
        if (f.number != 1 || !f.bytes) continue;
        st = dgm_grow(&list->items, &list->cap, list->count + 1, sizeof *list->items, err);
        if (st == DGM_OK && !read_piece(f.bytes, f.value, &list->items[list->count++]))
            r.bad = true;
    }
    if (st == DGM_OK && (r.bad || list->count == 0))
        st = dgm_fail(err, DGM_ERR_FORMAT, "not a SentencePiece model");
    if (st != DGM_OK) dgm_spm_list_free(list);
    return st;
}

void dgm_spm_list_free(dgm_spm_list *list)
{
    dgm_free(list->items);
    memset(list, 0, sizeof *list);
}
