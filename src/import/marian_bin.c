// SPDX-License-Identifier: MIT
// Marian's binary model files; see marian_bin.h.
#include "import/marian_bin.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mapfile.h"
#include "base/mem.h"

enum { ITEM_HEADER = 32, NAME_MAX_BYTES = 1 << 16 };

typedef struct item_type {
    uint64_t code;
    const char *name;
    dgm_stored_type type;
    bool packed; // an order of bytes that only its own program knows
} item_type;

static const item_type types[] = {
    {0x101, "int8", DGM_STORED_I8, false},
    {0x102, "int16", DGM_STORED_I16, false},
    {0x104, "int32", DGM_STORED_I32, false},
    {0x108, "int64", DGM_STORED_I64, false},
    {0x201, "uint8", DGM_STORED_OTHER, false},
    {0x202, "uint16", DGM_STORED_OTHER, false},
    {0x204, "uint32", DGM_STORED_OTHER, false},
    {0x208, "uint64", DGM_STORED_OTHER, false},
    {0x402, "float16", DGM_STORED_F16, false},
    {0x404, "float32", DGM_STORED_F32, false},
    {0x408, "float64", DGM_STORED_F64, false},
    {0x10001, "intgemm8", DGM_STORED_I8, false},
    {0x4101, "intgemm8", DGM_STORED_I8, false}, // the fork's
    {0x10002, "intgemm16", DGM_STORED_I16, false},
    {0x4102, "intgemm16", DGM_STORED_I16, false},
    {0x802, "packed16", DGM_STORED_OTHER, true},
    {0x1801, "packed8avx2", DGM_STORED_OTHER, true},
    {0x2801, "packed8avx512", DGM_STORED_OTHER, true},
    {0x18001, "intgemm8ssse3", DGM_STORED_OTHER, true},
    {0x11001, "intgemm8avx2", DGM_STORED_OTHER, true},
    {0x12001, "intgemm8avx512", DGM_STORED_OTHER, true},
    {0x13001, "intgemm8avx512vnni", DGM_STORED_OTHER, true},
    {0x14002, "intgemm16sse2", DGM_STORED_OTHER, true},
    {0x11002, "intgemm16avx2", DGM_STORED_OTHER, true},
    {0x12002, "intgemm16avx512", DGM_STORED_OTHER, true},
};

// Low byte of a type's code: bytes of an element.
static size_t element_of(const item_type *t)
{
    return t->code & 0xff;
}

static const item_type *find_type(uint64_t code)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].code == code) return &types[i];
    return NULL;
}

typedef struct item {
    uint64_t name_bytes, type, dims, data_bytes;
} item;

static const char *plain_name(const char *name)
{
    return strncmp(name, "F0::", 4) == 0 ? name + 4 : name; // a graph's namespace
}

static dgm_status describe(dgm_stored *t, const item *in, const item_type **type,
                           dgm_reader *shapes, dgm_error *err)
{
    *type = find_type(in->type);
    DGM_FAIL_IF(!*type, err, DGM_ERR_FORMAT, "unknown type 0x%llx", (unsigned long long)in->type);
    DGM_FAIL_IF((*type)->packed, err, DGM_ERR_UNSUPPORTED,
                "type %s is packed for one kind of processor; convert the model's .npz file as "
                "float32 or intgemm8",
                (*type)->name);
    DGM_FAIL_IF(in->dims > DGM_STORE_MAX_DIMS, err, DGM_ERR_FORMAT, "%llu dimensions",
                (unsigned long long)in->dims);
    t->dtype = (*type)->name;
    t->type = (*type)->type;
    t->n_dims = (int)in->dims;
    for (int d = 0; d < t->n_dims; d++) t->shape[d] = (int)dgm_read_u32(shapes);
    DGM_FAIL_IF(shapes->bad, err, DGM_ERR_FORMAT, "the file ends inside its shapes (truncated?)");
    return DGM_OK;
}

static dgm_status add_item(dgm_store *s, const item *in, const char *name, dgm_reader *shapes,
                           dgm_reader *data, dgm_error *err)
{
    dgm_stored t = {.name = plain_name(name)};
    const item_type *type;
    dgm_status st = describe(&t, in, &type, shapes, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "tensor '%.100s'", name);
        return st;
    }
    t.data = dgm_read_bytes(data, in->data_bytes);
    DGM_FAIL_IF(!t.data, err, DGM_ERR_FORMAT,
                "tensor '%.100s' reaches past the end of the file (truncated?)", name);
    DGM_TRY(dgm_store_add(s, t, element_of(type), err));
    const dgm_stored *added = dgm_store_get(s, dgm_store_count(s) - 1);
    const size_t needed = added->bytes + (dgm_marian_quantised(added) ? sizeof(float) : 0);
    DGM_FAIL_IF(needed > in->data_bytes, err, DGM_ERR_FORMAT,
                "tensor '%.100s': %llu bytes of data for a shape of %zu", name,
                (unsigned long long)in->data_bytes, needed);
    return DGM_OK;
}

// Where the four parts behind the first two numbers lie.
typedef struct parts {
    uint64_t count;
    dgm_reader items, names, shapes, data;
} parts;

static item next_item(dgm_reader *r)
{
    item i;
    i.name_bytes = dgm_read_u64(r);
    i.type = dgm_read_u64(r);
    i.dims = dgm_read_u64(r);
    i.data_bytes = dgm_read_u64(r);
    return i;
}

static dgm_status find_parts(parts *p, const void *data, size_t size, dgm_error *err)
{
    dgm_reader r = dgm_reader_over(data, size);
    const uint64_t version = dgm_read_u64(&r);
    p->count = dgm_read_u64(&r);
    DGM_FAIL_IF(!r.bad && version == 2, err, DGM_ERR_UNSUPPORTED,
                "the file is encrypted (version 2 of Marian's format)");
    DGM_FAIL_IF(r.bad || version != 1, err, DGM_ERR_FORMAT, "not a binary model of Marian");
    DGM_FAIL_IF(p->count > size / ITEM_HEADER, err, DGM_ERR_FORMAT,
                "%llu tensors do not fit into the file (truncated?)", (unsigned long long)p->count);
    p->items = dgm_reader_over(dgm_read_bytes(&r, p->count * ITEM_HEADER), p->count * ITEM_HEADER);
    DGM_FAIL_IF(r.bad, err, DGM_ERR_FORMAT,
                "the file ends inside its list of tensors (truncated?)");
    dgm_reader again = p->items;
    uint64_t names = 0, shapes = 0;
    for (uint64_t i = 0; i < p->count; i++) {
        const item now = next_item(&again);
        DGM_FAIL_IF(now.name_bytes < 1 || now.name_bytes > NAME_MAX_BYTES, err, DGM_ERR_FORMAT,
                    "tensor %llu has a name of %llu bytes", (unsigned long long)i,
                    (unsigned long long)now.name_bytes);
        DGM_FAIL_IF(now.dims > DGM_STORE_MAX_DIMS, err, DGM_ERR_FORMAT,
                    "tensor %llu has %llu dimensions", (unsigned long long)i,
                    (unsigned long long)now.dims);
        names += now.name_bytes;
        shapes += now.dims * sizeof(int32_t);
    }
    const void *name_bytes = dgm_read_bytes(&r, names), *shape_bytes = dgm_read_bytes(&r, shapes);
    const uint64_t padding = dgm_read_u64(&r);
    dgm_read_bytes(&r, padding);
    DGM_FAIL_IF(r.bad, err, DGM_ERR_FORMAT,
                "the file ends inside its names or shapes (truncated?)");
    p->names = dgm_reader_over(name_bytes, names);
    p->shapes = dgm_reader_over(shape_bytes, shapes);
    p->data = dgm_reader_over((const uint8_t *)data + r.pos, size - r.pos);
    return DGM_OK;
}

static dgm_status add_items(dgm_store *s, const void *data, size_t size, dgm_error *err)
{
    parts p;
    DGM_TRY(find_parts(&p, data, size, err));
    for (uint64_t i = 0; i < p.count; i++) {
        const item now = next_item(&p.items);
        const char *name = dgm_read_bytes(&p.names, now.name_bytes);
        DGM_FAIL_IF(memchr(name, 0, now.name_bytes) != name + now.name_bytes - 1, err,
                    DGM_ERR_FORMAT, "the name of tensor %llu does not end where it says",
                    (unsigned long long)i);
        DGM_TRY(add_item(s, &now, name, &p.shapes, &p.data, err));
    }
    return DGM_OK;
}

// ---- opening -----------------------------------------------------------------------------------

static void close_file(void *self)
{
    dgm_mapfile_close(self);
    dgm_free(self);
}

dgm_status dgm_marian_bin_open(dgm_store **s, const char *path, dgm_error *err)
{
    *s = NULL;
    dgm_mapfile *f = dgm_calloc(1, sizeof *f);
    if (!f) return dgm_no_memory(err);
    dgm_status st = dgm_mapfile_open(f, path, err);
    if (st != DGM_OK) {
        dgm_free(f);
        return st;
    }
    st = dgm_store_open(s, (dgm_store_container){.self = f, .close = close_file}, err);
    if (st != DGM_OK) return st;
    st = add_items(*s, f->data, f->size, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", path);
    if (st != DGM_OK) dgm_store_close(s);
    return st;
}

dgm_status dgm_marian_bin_open_memory(dgm_store **s, const void *data, size_t size, dgm_error *err)
{
    dgm_status st = dgm_store_open(s, (dgm_store_container){0}, err);
    if (st == DGM_OK) st = add_items(*s, data, size, err);
    if (st != DGM_OK) dgm_store_close(s);
    return st;
}

// ---- views -------------------------------------------------------------------------------------

bool dgm_marian_quantised(const dgm_stored *t)
{
    return strncmp(t->dtype, "intgemm", 7) == 0;
}

// What intgemm multiplies lies transposed: of a matrix that is called [rows, cols] there are cols rows.
// Embeddings that the fork quantised are the exception.
static bool lies_transposed(const dgm_stored *t)
{
    return dgm_marian_quantised(t) && !strstr(t->name, "Wemb");
}

dgm_view dgm_marian_rows(dgm_store *s, const dgm_stored *t)
{
    dgm_view v = dgm_view_whole(s, t);
    if (lies_transposed(t)) {
        v.row_step = 1;
        v.col_step = (size_t)t->rows;
    }
    if (dgm_marian_quantised(t)) v.divisors = t->data + t->bytes;
    return v;
}

dgm_view dgm_marian_weight(dgm_store *s, const dgm_stored *t)
{
    return dgm_view_transposed(dgm_marian_rows(s, t));
}
