// SPDX-License-Identifier: MIT
// Members of a zip file in memory; see zip_list.h.
#include "import/zip_list.h"

#include <string.h>

#include "base/mem.h"

enum {
    LOCAL = 0x04034b50,
    CENTRAL = 0x02014b50,
    END = 0x06054b50,
    END64 = 0x06064b50,
    LOCATOR64 = 0x07064b50,
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    COMMENT_MAX = 65535,
    MEMBERS_MAX = 1000000,
};
#define MORE32 UINT32_MAX // the number stands in a field of its own

typedef struct directory {
    uint64_t count, size, offset;
} directory;

bool dgm_zip_begins(const void *data, size_t size)
{
    return size >= 4 && memcmp(data, "PK\3\4", 4) == 0;
}

static dgm_status read_end64(const uint8_t *data, size_t size, size_t end, directory *d,
                             dgm_error *err)
{
    DGM_FAIL_IF(end < LOCATOR_BYTES, err, DGM_ERR_FORMAT, "no directory of a large zip file");
    dgm_reader r = dgm_reader_over(data + end - LOCATOR_BYTES, LOCATOR_BYTES);
    const uint32_t mark = dgm_read_u32(&r);
    (void)dgm_read_u32(&r);
    const uint64_t at = dgm_read_u64(&r);
    DGM_FAIL_IF(mark != LOCATOR64 || at >= size, err, DGM_ERR_FORMAT,
                "no directory of a large zip file");
    r = dgm_reader_over(data + at, size - (size_t)at);
    const uint32_t own = dgm_read_u32(&r);
    (void)dgm_read_bytes(&r, 8 + 2 + 2 + 4 + 4 + 8);
    *d = (directory){.count = dgm_read_u64(&r)};
    d->size = dgm_read_u64(&r);
    d->offset = dgm_read_u64(&r);
    DGM_FAIL_IF(r.bad || own != END64, err, DGM_ERR_FORMAT, "no directory of a large zip file");
    return DGM_OK;
}

static dgm_status find_directory(const uint8_t *data, size_t size, directory *d, dgm_error *err)
{
    size_t end = size >= END_BYTES ? size - END_BYTES : 0;
    const size_t lowest = end > COMMENT_MAX ? end - COMMENT_MAX : 0;
    uint32_t mark = 0;
    for (; size >= END_BYTES; end--) {
        memcpy(&mark, data + end, sizeof mark);
        if (mark == END || end == lowest) break;
    }
    DGM_FAIL_IF(mark != END, err, DGM_ERR_FORMAT,
                "no directory at the end of the zip file (truncated?)");
    dgm_reader r = dgm_reader_over(data + end, size - end);
    (void)dgm_read_bytes(&r, 10);
    d->count = dgm_read_u16(&r);
    d->size = dgm_read_u32(&r);
    d->offset = dgm_read_u32(&r);
    if (d->count == UINT16_MAX || d->size == MORE32 || d->offset == MORE32)
        DGM_TRY(read_end64(data, size, end, d, err));
    DGM_FAIL_IF(d->offset > size || d->size > size - d->offset || d->count > MEMBERS_MAX, err,
                DGM_ERR_FORMAT, "the zip file's directory lies outside of it");
    return DGM_OK;
}

typedef struct entry {
    uint16_t flags, method;
    uint64_t packed, size, offset;
    dgm_text name;
} entry;

// Numbers that need 64 bits are in the field with id 1, those that need them, in this order.
static bool read_large(dgm_reader extra, entry *e)
{
    uint64_t *const numbers[] = {&e->size, &e->packed, &e->offset};
    bool needed = false;
    for (int i = 0; i < 3; i++) needed |= *numbers[i] == MORE32;
    while (needed && !extra.bad && dgm_reader_left(&extra) >= 4) {
        const uint16_t id = dgm_read_u16(&extra), n = dgm_read_u16(&extra);
        const void *body = dgm_read_bytes(&extra, n);
        if (id != 1 || !body) continue;
        dgm_reader r = dgm_reader_over(body, n);
        for (int i = 0; i < 3; i++)
            if (*numbers[i] == MORE32) *numbers[i] = dgm_read_u64(&r);
        return !r.bad;
    }
    return !needed;
}

static bool read_entry(dgm_reader *r, entry *e)
{
    const uint32_t mark = dgm_read_u32(r);
    (void)dgm_read_u32(r);
    e->flags = dgm_read_u16(r);
    e->method = dgm_read_u16(r);
    (void)dgm_read_u64(r); // time, date, checksum
    e->packed = dgm_read_u32(r);
    e->size = dgm_read_u32(r);
    e->name.size = dgm_read_u16(r);
    const uint16_t extra = dgm_read_u16(r), comment = dgm_read_u16(r);
    (void)dgm_read_u64(r); // disk, attributes
    e->offset = dgm_read_u32(r);
    e->name.data = dgm_read_bytes(r, e->name.size);
    const void *more = dgm_read_bytes(r, extra);
    (void)dgm_read_bytes(r, comment);
    return !r->bad && mark == CENTRAL && read_large(dgm_reader_over(more, extra), e);
}

static dgm_status add_member(dgm_zip_list *z, const uint8_t *data, size_t size, const entry *e,
                             dgm_error *err)
{
    const int n = e->name.size < 100 ? (int)e->name.size : 100;
    DGM_FAIL_IF(e->flags & 1, err, DGM_ERR_UNSUPPORTED, "member '%.*s' is encrypted", n,
                e->name.data);
    DGM_FAIL_IF(e->method != 0 || e->packed != e->size, err, DGM_ERR_UNSUPPORTED,
                "member '%.*s' is compressed, as torch never writes it", n, e->name.data);
    DGM_FAIL_IF(e->offset > size || size - e->offset < 30, err, DGM_ERR_FORMAT,
                "member '%.*s' lies outside of the file", n, e->name.data);
    dgm_reader r = dgm_reader_over(data + e->offset, size - (size_t)e->offset);
    const uint32_t mark = dgm_read_u32(&r);
    (void)dgm_read_bytes(&r, 22);
    const uint16_t name = dgm_read_u16(&r), extra = dgm_read_u16(&r);
    (void)dgm_read_bytes(&r, (uint64_t)name + extra);
    const void *body = dgm_read_bytes(&r, e->size);
    DGM_FAIL_IF(mark != LOCAL || r.bad || !body, err, DGM_ERR_FORMAT,
                "member '%.*s' lies outside of the file (truncated?)", n, e->name.data);
    DGM_TRY(dgm_grow(&z->members, &z->cap, z->count + 1, sizeof *z->members, err));
    if (json_object_setn_new_nocheck(z->index, e->name.data, e->name.size,
                                     json_integer((json_int_t)z->count)) != 0)
        return dgm_no_memory(err);
    z->members[z->count++] =
        (dgm_zip_member){.name = e->name, .data = body, .size = (size_t)e->size};
    return DGM_OK;
}

dgm_status dgm_zip_list_read(dgm_zip_list *z, const void *data, size_t size, dgm_error *err)
{
    directory d = {0};
    *z = (dgm_zip_list){0};
    DGM_TRY(find_directory(data, size, &d, err));
    dgm_json_init();
    z->index = json_object();
    if (!z->index) return dgm_no_memory(err);
    dgm_reader r = dgm_reader_over((const uint8_t *)data + d.offset, (size_t)d.size);
    dgm_status st = DGM_OK;
    for (uint64_t i = 0; i < d.count && st == DGM_OK; i++) {
        entry e;
        if (read_entry(&r, &e))
            st = add_member(z, data, size, &e, err);
        else
            st = dgm_fail(err, DGM_ERR_FORMAT, "entry %llu of the zip file's directory is damaged",
                          (unsigned long long)i);
    }
    if (st != DGM_OK) dgm_zip_list_free(z);
    return st;
}

void dgm_zip_list_free(dgm_zip_list *z)
{
    dgm_free(z->members);
    json_decref(z->index);
    *z = (dgm_zip_list){0};
}

const dgm_zip_member *dgm_zip_list_find(const dgm_zip_list *z, const char *name)
{
    const json_t *at = json_object_get(z->index, name);
    return at ? &z->members[json_integer_value(at)] : NULL;
}
