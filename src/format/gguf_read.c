// SPDX-License-Identifier: MIT
// Opening a GGUF file: parses the header once and checks everything that the file controls, so
// that the look-ups of gguf_get.c need no further checks of lengths.
//
// Order of work: fixed header, metadata (values stay views), tensor infos, placement of the data,
// copies of names and number arrays, sorted indices (which find duplicate names), scales.
//
// Hostile counts: a count is compared with what could fit into the bytes that are left before
// anything is allocated for it.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/sort.h"
#include "format/gguf_private.h"

#define META_BYTES_MIN 13   // key length, type, one byte of value
#define TENSOR_BYTES_MIN 32 // name length, n_dims, one dimension, type, offset

static const struct {
    const char *name;
    uint8_t size;
} meta_types[DGM_META_COUNT] = {
    [DGM_META_U8] = {"u8", 1},         [DGM_META_I8] = {"i8", 1},
    [DGM_META_U16] = {"u16", 2},       [DGM_META_I16] = {"i16", 2},
    [DGM_META_U32] = {"u32", 4},       [DGM_META_I32] = {"i32", 4},
    [DGM_META_F32] = {"f32", 4},       [DGM_META_BOOL] = {"bool", 1},
    [DGM_META_STRING] = {"string", 0}, [DGM_META_ARRAY] = {"array", 0},
    [DGM_META_U64] = {"u64", 8},       [DGM_META_I64] = {"i64", 8},
    [DGM_META_F64] = {"f64", 8},
};

static const struct {
    int type;
    const char *name;
    size_t size;
} tensor_types[] = {
    {DGM_TYPE_F32, "f32", 4}, {DGM_TYPE_F16, "f16", 2}, {DGM_TYPE_I8, "i8", 1},
    {DGM_TYPE_I16, "i16", 2}, {DGM_TYPE_I32, "i32", 4}, {DGM_TYPE_BF16, "bf16", 2},
};

const char *dgm_meta_type_name(int type)
{
    return type >= 0 && type < DGM_META_COUNT ? meta_types[type].name : "?";
}

size_t dgm_meta_type_size(int type)
{
    return type >= 0 && type < DGM_META_COUNT ? meta_types[type].size : 0;
}

const char *dgm_tensor_type_name(int type)
{
    for (size_t i = 0; i < sizeof tensor_types / sizeof *tensor_types; i++)
        if (tensor_types[i].type == type) return tensor_types[i].name;
    return "?";
}

size_t dgm_tensor_type_size(int type)
{
    for (size_t i = 0; i < sizeof tensor_types / sizeof *tensor_types; i++)
        if (tensor_types[i].type == type) return tensor_types[i].size;
    return 0;
}

void dgm_scale_name(char *out, const char *name)
{
    snprintf(out, DGM_GGUF_MAX_NAME + 8, "%.*s.scale", DGM_GGUF_MAX_NAME, name);
}

static dgm_status truncated(dgm_error *err)
{
    return dgm_fail(err, DGM_ERR_FORMAT, "file is truncated");
}

// ---- sorted indices ---------------------------------------------------------------------------

static int by_key(const void *context, uint32_t a, uint32_t b)
{
    const dgm_gguf *g = context;
    return strcmp(g->meta[a].key, g->meta[b].key);
}

static int by_name(const void *context, uint32_t a, uint32_t b)
{
    const dgm_gguf *g = context;
    return strcmp(g->tensors[a].name, g->tensors[b].name);
}

static int by_offset(const void *context, uint32_t a, uint32_t b)
{
    const dgm_gguf *g = context;
    return (g->offsets[a] > g->offsets[b]) - (g->offsets[a] < g->offsets[b]);
}

// ---- metadata ---------------------------------------------------------------------------------

// A key or tensor name: length, bytes; no NUL inside. The view is terminated later, by copying.
static dgm_status read_name(dgm_reader *r, const char *what, const char **name, size_t *size,
                            dgm_error *err)
{
    uint64_t n = dgm_read_u64(r);
    if (r->bad) return truncated(err);
    DGM_FAIL_IF(n == 0 || n > DGM_GGUF_MAX_NAME, err, DGM_ERR_FORMAT,
                "a %s has %llu bytes, 1 to %d are allowed", what, (unsigned long long)n,
                DGM_GGUF_MAX_NAME);
    *name = dgm_read_bytes(r, n);
    if (!*name) return truncated(err);
    DGM_FAIL_IF(memchr(*name, 0, n), err, DGM_ERR_FORMAT, "a %s contains a NUL byte", what);
    *size = (size_t)n;
    return DGM_OK;
}

static dgm_status read_array(dgm_reader *r, dgm_meta *m, dgm_error *err)
{
    m->elem_type = (int)dgm_read_u32(r);
    m->count = dgm_read_u64(r);
    if (r->bad) return truncated(err);
    DGM_FAIL_IF(m->elem_type == DGM_META_ARRAY, err, DGM_ERR_FORMAT, "array of arrays");
    DGM_FAIL_IF(m->elem_type < 0 || m->elem_type >= DGM_META_COUNT, err, DGM_ERR_FORMAT,
                "array of unknown type %d", m->elem_type);
    size_t start = r->pos;
    m->raw = r->data + start;
    if (m->elem_type == DGM_META_STRING) {
        if (m->count > dgm_reader_left(r) / 8) return truncated(err);
        for (uint64_t i = 0; i < m->count; i++) dgm_read_bytes(r, dgm_read_u64(r));
    } else {
        uint64_t bytes;
        if (!dgm_mul_size(m->count, dgm_meta_type_size(m->elem_type), &bytes))
            return truncated(err);
        dgm_read_bytes(r, bytes);
    }
    if (r->bad) return truncated(err);
    m->raw_size = r->pos - start;
    if (m->elem_type == DGM_META_BOOL)
        for (size_t i = 0; i < m->raw_size; i++)
            DGM_FAIL_IF(m->raw[i] > 1, err, DGM_ERR_FORMAT, "a bool is neither 0 nor 1");
    return DGM_OK;
}

static dgm_status read_value(dgm_reader *r, dgm_meta *m, dgm_error *err)
{
    m->count = 1;
    if (m->type == DGM_META_ARRAY) return read_array(r, m, err);
    uint64_t bytes = m->type == DGM_META_STRING ? dgm_read_u64(r) : dgm_meta_type_size(m->type);
    m->raw = dgm_read_bytes(r, bytes);
    if (r->bad) return truncated(err);
    m->raw_size = (size_t)bytes;
    DGM_FAIL_IF(m->type == DGM_META_BOOL && m->raw[0] > 1, err, DGM_ERR_FORMAT,
                "a bool is neither 0 nor 1");
    return DGM_OK;
}

static dgm_status read_meta(dgm_gguf *g, dgm_reader *r, size_t *key_sizes, dgm_error *err)
{
    for (int i = 0; i < g->n_meta; i++) {
        dgm_meta *m = &g->meta[i];
        DGM_TRY(read_name(r, "metadata key", &m->key, &key_sizes[i], err));
        uint32_t type = dgm_read_u32(r);
        if (r->bad) return truncated(err);
        DGM_FAIL_IF(type >= DGM_META_COUNT, err, DGM_ERR_FORMAT, "key '%.*s': unknown type %u",
                    (int)key_sizes[i], m->key, type);
        m->type = (int)type;
        dgm_status st = read_value(r, m, err);
        if (st != DGM_OK) {
            dgm_error_prefix(err, "key '%.*s'", (int)key_sizes[i], m->key);
            return st;
        }
    }
    return DGM_OK;
}

// ---- tensor infos -----------------------------------------------------------------------------

static dgm_status read_shape(dgm_tensor *t, dgm_reader *r, dgm_error *err)
{
    uint32_t dims = dgm_read_u32(r);
    if (r->bad) return truncated(err);
    DGM_FAIL_IF(dims == 0 || dims > DGM_GGUF_MAX_DIMS, err, DGM_ERR_FORMAT,
                "%u dimensions, 1 to %d are allowed", dims, DGM_GGUF_MAX_DIMS);
    t->n_dims = (int)dims;
    uint64_t rows = 1;
    for (uint32_t d = 0; d < dims; d++) {
        uint64_t n = dgm_read_u64(r);
        if (r->bad) return truncated(err);
        DGM_FAIL_IF(n == 0 || n > INT32_MAX, err, DGM_ERR_FORMAT, "a dimension of %llu",
                    (unsigned long long)n);
        t->shape[dims - 1 - d] = (int)n; // the file has the fastest first
        if (d > 0) rows *= n;            // both factors are below 2^31
        DGM_FAIL_IF(rows > INT32_MAX, err, DGM_ERR_FORMAT, "too many rows");
    }
    t->rows = (int)rows;
    t->cols = t->shape[dims - 1];
    return DGM_OK;
}

static dgm_status read_tensor_infos(dgm_gguf *g, dgm_reader *r, size_t *name_sizes, dgm_error *err)
{
    for (int i = 0; i < g->n_tensors; i++) {
        dgm_tensor *t = &g->tensors[i];
        DGM_TRY(read_name(r, "tensor name", &t->name, &name_sizes[i], err));
        dgm_status st = read_shape(t, r, err);
        if (st == DGM_OK) {
            uint32_t type = dgm_read_u32(r);
            g->offsets[i] = dgm_read_u64(r);
            t->type = type > INT32_MAX ? -1 : (int)type;
            if (r->bad) st = truncated(err);
        }
        if (st == DGM_OK && g->offsets[i] % g->alignment)
            st = dgm_fail(err, DGM_ERR_FORMAT, "offset %llu is not a multiple of %u",
                          (unsigned long long)g->offsets[i], g->alignment);
        if (st != DGM_OK) {
            dgm_error_prefix(err, "tensor '%.*s'", (int)name_sizes[i], t->name);
            return st;
        }
    }
    return DGM_OK;
}

// Finds the data of every tensor. header_end: first byte behind the tensor infos.
static dgm_status place_tensors(dgm_gguf *g, size_t header_end, dgm_error *err)
{
    uint64_t base = ((uint64_t)header_end + g->alignment - 1) / g->alignment * g->alignment;
    for (int i = 0; i < g->n_tensors; i++) {
        dgm_tensor *t = &g->tensors[i];
        uint64_t bytes, begin, end;
        // rows * cols < 2^62, so only the element size can overflow.
        if (!dgm_mul_size((uint64_t)t->rows * (uint64_t)t->cols, dgm_tensor_type_size(t->type),
                          &bytes) ||
            !dgm_add_size(base, g->offsets[i], &begin) || !dgm_add_size(begin, bytes, &end) ||
            end > g->size)
            return dgm_fail(err, DGM_ERR_FORMAT,
                            "tensor '%s' reaches past the end of the file (truncated?)", t->name);
        t->bytes = (size_t)bytes;
        if (bytes) t->data = g->data + begin;
    }
    return DGM_OK;
}

// Overlapping tensors mean a damaged offset. Uses tensor_order as scratch.
static dgm_status check_overlap(dgm_gguf *g, dgm_error *err)
{
    uint32_t *order = g->tensor_order;
    dgm_sort_indices(order, (size_t)g->n_tensors, by_offset, g);
    for (int i = 1; i < g->n_tensors; i++) {
        const dgm_tensor *a = &g->tensors[order[i - 1]], *b = &g->tensors[order[i]];
        DGM_FAIL_IF(g->offsets[order[i - 1]] + a->bytes > g->offsets[order[i]], err, DGM_ERR_FORMAT,
                    "tensors '%s' and '%s' overlap", a->name, b->name);
    }
    return DGM_OK;
}

// ---- copies, order, scales --------------------------------------------------------------------

static bool wants_copy(const dgm_meta *m)
{
    return m->type == DGM_META_STRING ||
           (m->type == DGM_META_ARRAY && dgm_meta_type_size(m->elem_type) > 1);
}

static size_t round8(size_t n)
{
    return (n + 7) / 8 * 8;
}

// Names and strings get their NUL, number arrays their alignment, all in one block.
static dgm_status make_copies(dgm_gguf *g, const size_t *key_sizes, const size_t *name_sizes,
                              dgm_error *err)
{
    size_t total = 0;
    for (int i = 0; i < g->n_meta; i++) {
        total += round8(key_sizes[i] + 1);
        if (wants_copy(&g->meta[i])) total += round8(g->meta[i].raw_size + 1);
    }
    for (int i = 0; i < g->n_tensors; i++) total += round8(name_sizes[i] + 1);
    g->copies = dgm_calloc(total ? total : 1, 1);
    if (!g->copies) return dgm_no_memory(err);
    uint8_t *at = g->copies;
    for (int i = 0; i < g->n_meta; i++) {
        dgm_meta *m = &g->meta[i];
        memcpy(at, m->key, key_sizes[i]);
        m->key = (const char *)at;
        at += round8(key_sizes[i] + 1);
        if (!wants_copy(m)) continue;
        if (m->raw_size) memcpy(at, m->raw, m->raw_size);
        m->values = at;
        at += round8(m->raw_size + 1);
    }
    for (int i = 0; i < g->n_tensors; i++) {
        memcpy(at, g->tensors[i].name, name_sizes[i]);
        g->tensors[i].name = (const char *)at;
        at += round8(name_sizes[i] + 1);
    }
    return DGM_OK;
}

static dgm_status sort_names(dgm_gguf *g, dgm_error *err)
{
    dgm_sort_indices(g->meta_order, (size_t)g->n_meta, by_key, g);
    for (int i = 1; i < g->n_meta; i++)
        DGM_FAIL_IF(by_key(g, g->meta_order[i - 1], g->meta_order[i]) == 0, err, DGM_ERR_FORMAT,
                    "key '%s' occurs twice", g->meta[g->meta_order[i]].key);
    dgm_sort_indices(g->tensor_order, (size_t)g->n_tensors, by_name, g);
    for (int i = 1; i < g->n_tensors; i++)
        DGM_FAIL_IF(by_name(g, g->tensor_order[i - 1], g->tensor_order[i]) == 0, err,
                    DGM_ERR_FORMAT, "tensor '%s' occurs twice",
                    g->tensors[g->tensor_order[i]].name);
    return DGM_OK;
}

static dgm_status attach_scale(dgm_gguf *g, dgm_tensor *t, dgm_error *err)
{
    char name[DGM_GGUF_MAX_NAME + 8];
    dgm_scale_name(name, t->name);
    const dgm_tensor *s = dgm_gguf_find_tensor(g, name);
    if (!s) return DGM_OK;
    int expected = t->type == DGM_TYPE_I8 ? t->rows : 1;
    DGM_FAIL_IF(s->type != DGM_TYPE_F32 || s->n_dims != 1 || s->cols != expected, err,
                DGM_ERR_FORMAT, "tensor '%s' is not f32 [%d]", name, expected);
    const float *v = s->data;
    for (int i = 0; i < s->cols; i++)
        DGM_FAIL_IF(!isfinite(v[i]), err, DGM_ERR_FORMAT, "tensor '%s': value %d is not finite",
                    name, i);
    int exponent;
    DGM_FAIL_IF(t->type == DGM_TYPE_I16 && frexpf(v[0], &exponent) != 0.5f, err, DGM_ERR_FORMAT,
                "tensor '%s' is not a power of two", name);
    t->scale = s;
    return DGM_OK;
}

// ---- opening ----------------------------------------------------------------------------------

static dgm_status read_counts(dgm_gguf *g, dgm_reader *r, dgm_error *err)
{
    const void *magic = dgm_read_bytes(r, 4);
    DGM_FAIL_IF(!magic || memcmp(magic, "GGUF", 4) != 0, err, DGM_ERR_FORMAT,
                "not a model file (no GGUF header)");
    uint32_t version = dgm_read_u32(r);
    uint64_t tensors = dgm_read_u64(r), metas = dgm_read_u64(r);
    if (r->bad) return truncated(err);
    DGM_FAIL_IF(version == 0x03000000u, err, DGM_ERR_UNSUPPORTED,
                "big-endian GGUF files are not supported");
    DGM_FAIL_IF(version != 3, err, DGM_ERR_UNSUPPORTED,
                "GGUF version %u is not supported (this program reads 3)", version);
    DGM_FAIL_IF(tensors > DGM_GGUF_MAX_ENTRIES || metas > DGM_GGUF_MAX_ENTRIES, err, DGM_ERR_FORMAT,
                "%llu tensors and %llu metadata entries, at most %d of each are allowed",
                (unsigned long long)tensors, (unsigned long long)metas, DGM_GGUF_MAX_ENTRIES);
    if (tensors * TENSOR_BYTES_MIN + metas * META_BYTES_MIN > dgm_reader_left(r))
        return truncated(err);
    g->n_tensors = (int)tensors;
    g->n_meta = (int)metas;
    return DGM_OK;
}

// The entry is not in the sorted index yet, so it is looked for by hand.
static dgm_status read_alignment(dgm_gguf *g, const size_t *key_sizes, dgm_error *err)
{
    static const char key[] = "general.alignment";
    g->alignment = 32;
    for (int i = 0; i < g->n_meta; i++) {
        const dgm_meta *m = &g->meta[i];
        if (key_sizes[i] != sizeof key - 1 || memcmp(m->key, key, sizeof key - 1) != 0) continue;
        DGM_FAIL_IF(m->type != DGM_META_U32, err, DGM_ERR_FORMAT, "key '%s' is %s, expected u32",
                    key, dgm_meta_type_name(m->type));
        dgm_reader r = dgm_reader_over(m->raw, m->raw_size);
        uint32_t a = dgm_read_u32(&r);
        DGM_FAIL_IF(a < 8 || a > 65536 || (a & (a - 1)), err, DGM_ERR_FORMAT,
                    "key '%s' is %u, expected a power of two from 8 to 65536", key, a);
        g->alignment = a;
    }
    return DGM_OK;
}

// sizes: scratch, [n_meta + n_tensors] lengths of the names
static dgm_status parse(dgm_gguf *g, dgm_reader *r, size_t *sizes, dgm_error *err)
{
    DGM_TRY(read_meta(g, r, sizes, err));
    DGM_TRY(read_alignment(g, sizes, err));
    DGM_TRY(read_tensor_infos(g, r, sizes + g->n_meta, err));
    DGM_TRY(make_copies(g, sizes, sizes + g->n_meta, err));
    DGM_TRY(place_tensors(g, r->pos, err));
    DGM_TRY(check_overlap(g, err));
    DGM_TRY(sort_names(g, err));
    for (int i = 0; i < g->n_tensors; i++)
        if (g->tensors[i].type == DGM_TYPE_I8 || g->tensors[i].type == DGM_TYPE_I16)
            DGM_TRY(attach_scale(g, &g->tensors[i], err));
    return DGM_OK;
}

static dgm_status open_header(dgm_gguf *g, dgm_error *err)
{
    const uint16_t probe = 1;
    DGM_FAIL_IF(*(const uint8_t *)&probe != 1, err, DGM_ERR_UNSUPPORTED,
                "model files are read on little-endian machines only");
    DGM_FAIL_IF(g->size == 0, err, DGM_ERR_FORMAT, "file is empty");
    dgm_reader r = dgm_reader_over(g->data, g->size);
    DGM_TRY(read_counts(g, &r, err));
    size_t metas = (size_t)g->n_meta, tensors = (size_t)g->n_tensors;
    g->meta = dgm_calloc(metas + 1, sizeof *g->meta);
    g->meta_order = dgm_calloc(metas + 1, sizeof *g->meta_order);
    g->tensors = dgm_calloc(tensors + 1, sizeof *g->tensors);
    g->tensor_order = dgm_calloc(tensors + 1, sizeof *g->tensor_order);
    g->offsets = dgm_calloc(tensors + 1, sizeof *g->offsets);
    size_t *sizes = dgm_calloc(metas + tensors + 1, sizeof *sizes);
    dgm_status st;
    if (g->meta && g->meta_order && g->tensors && g->tensor_order && g->offsets && sizes)
        st = parse(g, &r, sizes, err);
    else
        st = dgm_no_memory(err);
    dgm_free(sizes);
    return st;
}

dgm_status dgm_gguf_open_memory(dgm_gguf **out, const void *data, size_t size, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF((uintptr_t)data % 8, err, DGM_ERR_ARGUMENT, "model data is not aligned to 8 bytes");
    dgm_gguf *g = dgm_calloc(1, sizeof *g);
    if (!g) return dgm_no_memory(err);
    g->data = data;
    g->size = size;
    dgm_status st = open_header(g, err);
    if (st == DGM_OK)
        *out = g;
    else
        dgm_gguf_close(&g);
    return st;
}

dgm_status dgm_gguf_open(dgm_gguf **out, const char *path, dgm_error *err)
{
    *out = NULL;
    dgm_gguf *g = dgm_calloc(1, sizeof *g);
    if (!g) return dgm_no_memory(err);
    dgm_status st = dgm_mapfile_open(&g->file, path, err);
    if (st == DGM_OK) {
        g->data = g->file.data;
        g->size = g->file.size;
        g->path = dgm_strdup(path);
        st = g->path ? open_header(g, err) : dgm_no_memory(err);
        if (st != DGM_OK) dgm_error_prefix(err, "'%s'", path);
    }
    if (st == DGM_OK)
        *out = g;
    else
        dgm_gguf_close(&g);
    return st;
}

void dgm_gguf_close(dgm_gguf **g)
{
    if (!*g) return;
    dgm_mapfile_close(&(*g)->file);
    dgm_free((*g)->path);
    dgm_free((*g)->meta);
    dgm_free((*g)->tensors);
    dgm_free((*g)->offsets);
    dgm_free((*g)->meta_order);
    dgm_free((*g)->tensor_order);
    dgm_free((*g)->copies);
    dgm_free(*g);
    *g = NULL;
}
