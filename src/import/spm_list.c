// SPDX-License-Identifier: MIT
// The pieces of a SentencePiece model; see spm_list.h.
#include "import/spm_list.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/protobuf.h"

static bool read_piece(dgm_text message, dgm_spm_item *item)
{
    dgm_reader r = dgm_reader_over(message.data, message.size);
    item->piece = "";
    item->size = 0;
    item->kind = DGM_SPM_NORMAL;
    for (dgm_proto_field f; dgm_proto_next(&r, &f);) {
        if (f.number == 1 && f.wire == DGM_WIRE_BYTES) {
            item->piece = f.payload.data;
            item->size = f.payload.size;
        } else if (f.number == 3 && f.wire == DGM_WIRE_VARINT && f.value <= DGM_SPM_BYTE) {
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
    for (dgm_proto_field f; st == DGM_OK && dgm_proto_next(&r, &f);) {
        if (f.number != 1 || f.wire != DGM_WIRE_BYTES) continue;
        st = dgm_grow(&list->items, &list->cap, list->count + 1, sizeof *list->items, err);
        if (st == DGM_OK && !read_piece(f.payload, &list->items[list->count++])) r.bad = true;
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
