// SPDX-License-Identifier: MIT
// Reading safetensors; see safetensors.h. The JSON headers are parsed by jansson and own the names.
#define _GNU_SOURCE
#include "import/safetensors.h"

#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "import/shards.h"
#include "base/sort.h"

#define HEADER_MAX 100000000 // the limit of the reference implementation

// The mapped files of a store.
typedef struct shards {
    dgm_mapfile *files; // [n_files]
    size_t n_files;
    json_t **headers; // [n_headers]: own the names
    size_t n_headers;
} shards;

static const struct {
    const char *name;
    dgm_stored_type type;
    size_t size;
} dtypes[] = {
    {"F32", DGM_STORED_F32, 4},       {"F16", DGM_STORED_F16, 2},
    {"BF16", DGM_STORED_BF16, 2},     {"F64", DGM_STORED_F64, 8},
    {"I64", DGM_STORED_I64, 8},       {"I32", DGM_STORED_I32, 4},
    {"I16", DGM_STORED_I16, 2},       {"I8", DGM_STORED_I8, 1},
    {"U64", DGM_STORED_OTHER, 8},     {"U32", DGM_STORED_OTHER, 4},
    {"U16", DGM_STORED_OTHER, 2},     {"U8", DGM_STORED_OTHER, 1},
    {"BOOL", DGM_STORED_OTHER, 1},    {"F8_E4M3", DGM_STORED_OTHER, 1},
    {"F8_E5M2", DGM_STORED_OTHER, 1},
};

// ---- one header -------------------------------------------------------------------------------

static dgm_status read_dtype(dgm_stored *t, const json_t *info, size_t *size, dgm_error *err)
{
    t->dtype = json_string_value(json_object_get(info, "dtype"));
    DGM_FAIL_IF(!t->dtype, err, DGM_ERR_FORMAT, "no \"dtype\"");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(dtypes[i].name, t->dtype) != 0) continue;
        t->type = dtypes[i].type;
        *size = dtypes[i].size;
        return DGM_OK;
    }
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "unknown dtype '%.40s'", t->dtype);
}

static dgm_status read_shape(dgm_stored *t, const json_t *info, dgm_error *err)
{
    const json_t *shape = json_object_get(info, "shape");
    DGM_FAIL_IF(!json_is_array(shape) || json_array_size(shape) > DGM_STORE_MAX_DIMS, err,
                DGM_ERR_FORMAT, "\"shape\" is not a list of at most %d numbers",
                DGM_STORE_MAX_DIMS);
    t->n_dims = (int)json_array_size(shape);
    for (int d = 0; d < t->n_dims; d++) {
        const json_t *v = json_array_get(shape, (size_t)d);
        const int64_t n = json_is_integer(v) ? json_integer_value(v) : -1;
        DGM_FAIL_IF(n < 0 || n > INT32_MAX, err, DGM_ERR_FORMAT, "bad number in \"shape\"");
        t->shape[d] = (int)n;
    }
    return DGM_OK;
}

// Where the data lie; *bytes: how many the file gives them.
static dgm_status read_range(dgm_stored *t, const json_t *info, const uint8_t *data,
                             size_t data_size, size_t *bytes, dgm_error *err)
{
    const json_t *range = json_object_get(info, "data_offsets");
    const json_t *b = json_array_get(range, 0), *e = json_array_get(range, 1);
    DGM_FAIL_IF(json_array_size(range) != 2 || !json_is_integer(b) || !json_is_integer(e), err,
                DGM_ERR_FORMAT, "\"data_offsets\" is not a pair of numbers");
    int64_t begin = json_integer_value(b), end = json_integer_value(e);
    DGM_FAIL_IF(begin < 0 || end < begin || (uint64_t)end > data_size, err, DGM_ERR_FORMAT,
                "data reaches past the end of the file (truncated?)");
    t->data = data + begin;
    *bytes = (size_t)(end - begin);
    return DGM_OK;
}

static dgm_status read_info(dgm_stored *t, const json_t *info, const uint8_t *data,
                            size_t data_size, size_t *element, size_t *bytes, dgm_error *err)
{
    DGM_FAIL_IF(!json_is_object(info), err, DGM_ERR_FORMAT, "not described by an object");
    DGM_TRY(read_dtype(t, info, element, err));
    DGM_TRY(read_shape(t, info, err));
    return read_range(t, info, data, data_size, bytes, err);
}

static int by_address(const void *context, uint32_t a, uint32_t b)
{
    const dgm_stored *t = context;
    if (t[a].data != t[b].data) return t[a].data < t[b].data ? -1 : 1;
    return (t[a].bytes > t[b].bytes) - (t[a].bytes < t[b].bytes); // empty ones first
}

// The tensors of one file: from position `first` of the store to its end.
static dgm_status check_overlap(const dgm_store *s, size_t first, dgm_error *err)
{
    const size_t n = dgm_store_count(s) - first;
    if (n == 0) return DGM_OK; // perhaps no list yet
    const dgm_stored *t = dgm_store_get(s, first);
    uint32_t *order = dgm_calloc(n + 1, sizeof *order);
    if (!order) return dgm_no_memory(err);
    dgm_sort_indices(order, n, by_address, t);
    dgm_status st = DGM_OK;
    for (size_t i = 1; i < n && st == DGM_OK; i++) {
        const dgm_stored *a = &t[order[i - 1]], *b = &t[order[i]];
        if (a->data + a->bytes > b->data)
            st = dgm_fail(err, DGM_ERR_FORMAT, "tensors '%s' and '%s' overlap", a->name, b->name);
    }
    dgm_free(order);
    return st;
}

static dgm_status add_tensor(dgm_store *s, const char *name, const json_t *info,
                             const uint8_t *data, size_t data_size, dgm_error *err)
{
    dgm_stored t = {.name = name};
    size_t element = 0, bytes = 0;
    dgm_status st = read_info(&t, info, data, data_size, &element, &bytes, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "tensor '%s'", name);
        return st;
    }
    DGM_TRY(dgm_store_add(s, t, element, err));
    const size_t needed = dgm_store_get(s, dgm_store_count(s) - 1)->bytes;
    DGM_FAIL_IF(bytes != needed, err, DGM_ERR_FORMAT,
                "tensor '%s': %zu bytes of data for a shape of %zu", name, bytes, needed);
    return DGM_OK;
}

// Adds the tensors of one file. The header joins the shards, which own it.
static dgm_status add_file(dgm_store *s, shards *in, const uint8_t *data, size_t size,
                           dgm_error *err)
{
    dgm_reader r = dgm_reader_over(data, size);
    uint64_t n = dgm_read_u64(&r);
    DGM_FAIL_IF(r.bad, err, DGM_ERR_FORMAT, "file is truncated");
    DGM_FAIL_IF(n > HEADER_MAX, err, DGM_ERR_FORMAT,
                "a header of %llu bytes: not a safetensors file", (unsigned long long)n);
    const void *text = dgm_read_bytes(&r, n);
    DGM_FAIL_IF(!text, err, DGM_ERR_FORMAT, "file is truncated");
    json_t *header = NULL;
    DGM_TRY(dgm_json_parse(&header, text, (size_t)n, err));
    in->headers[in->n_headers++] = header;
    DGM_FAIL_IF(!json_is_object(header), err, DGM_ERR_FORMAT, "the header is not an object");
    const size_t first = dgm_store_count(s);
    const char *name;
    json_t *info;
    json_object_foreach(header, name, info)
    {
        if (strcmp(name, "__metadata__") == 0) continue;
        DGM_TRY(add_tensor(s, name, info, data + r.pos, size - r.pos, err));
    }
    return check_overlap(s, first, err);
}

// ---- files and shards -------------------------------------------------------------------------

static void close_shards(void *self)
{
    shards *in = self;
    for (size_t i = 0; i < in->n_files; i++) dgm_mapfile_close(&in->files[i]);
    for (size_t i = 0; i < in->n_headers; i++) json_decref(in->headers[i]);
    dgm_free(in->files);
    dgm_free(in->headers);
    dgm_free(in);
}

// *s gets room for n files.
static dgm_status make_store(dgm_store **s, shards **out, size_t n, dgm_error *err)
{
    *s = NULL;
    shards *in = dgm_calloc(1, sizeof *in);
    if (!in) return dgm_no_memory(err);
    in->files = dgm_calloc(n, sizeof *in->files);
    in->headers = dgm_calloc(n, sizeof *in->headers);
    if (!in->files || !in->headers) {
        close_shards(in);
        return dgm_no_memory(err);
    }
    *out = in;
    return dgm_store_open(s, (dgm_store_container){.self = in, .close = close_shards}, err);
}

static dgm_status open_file(dgm_store *s, shards *in, const char *dir, const char *name,
                            dgm_error *err)
{
    char *path = dgm_path_in(dir, name);
    if (!path) return dgm_no_memory(err);
    dgm_mapfile *f = &in->files[in->n_files];
    dgm_status st = dgm_mapfile_open(f, path, err);
    if (st == DGM_OK) {
        in->n_files++;
        st = add_file(s, in, f->data, f->size, err);
        if (st != DGM_OK) dgm_error_prefix(err, "'%s'", path);
    }
    dgm_free(path);
    return st;
}

static dgm_status open_shards(dgm_store **s, const char *dir, const char *index_path,
                              dgm_error *err)
{
    dgm_shards list;
    shards *in = NULL;
    DGM_TRY(dgm_shards_read(&list, index_path, err));
    dgm_status st = make_store(s, &in, json_object_size(list.names), err);
    const char *file;
    json_t *value;
    if (st == DGM_OK) json_object_foreach(list.names, file, value)
        {
            st = open_file(*s, in, dir, file, err);
            if (st != DGM_OK) break;
        }
    if (st == DGM_OK) st = dgm_shards_check(&list, *s, err);
    dgm_shards_free(&list);
    return st;
}

static const char whole[] = "model.safetensors", indexed[] = "model.safetensors.index.json";

// Also a file that may not be read and a link to nothing: opening it says so.
static bool listed(const char *dir, const char *name)
{
    struct stat info;
    char *path = dgm_path_in(dir, name);
    const bool yes = path && lstat(path, &info) == 0;
    dgm_free(path);
    return yes;
}

bool dgm_safetensors_is_there(const char *dir)
{
    return listed(dir, whole) || listed(dir, indexed);
}

dgm_status dgm_safetensors_open(dgm_store **s, const char *dir, dgm_error *err)
{
    *s = NULL;
    dgm_status st;
    if (listed(dir, indexed)) {
        char *index = dgm_path_in(dir, indexed);
        st = index ? open_shards(s, dir, index, err) : dgm_no_memory(err);
        dgm_free(index);
    } else if (listed(dir, whole)) {
        shards *in = NULL;
        st = make_store(s, &in, 1, err);
        if (st == DGM_OK) st = open_file(*s, in, dir, whole, err);
    } else {
        st = dgm_fail(err, DGM_ERR_IO, "'%s' has no model.safetensors and no pytorch_model.bin",
                      dir);
    }
    if (st != DGM_OK) dgm_store_close(s);
    return st;
}

dgm_status dgm_safetensors_open_memory(dgm_store **s, const void *data, size_t size, dgm_error *err)
{
    shards *in = NULL;
    dgm_status st = make_store(s, &in, 1, err);
    if (st == DGM_OK) st = add_file(*s, in, data, size, err);
    if (st != DGM_OK) dgm_store_close(s);
    return st;
}
