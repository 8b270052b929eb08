// SPDX-License-Identifier: MIT
// Reading safetensors; see safetensors.h. The JSON header is parsed by jansson; names are looked
// up in a jansson object that maps them to positions in the tensor list (its hash is seeded, so
// hostile names cannot make it slow).
#include "import/safetensors.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "base/sort.h"

#define HEADER_MAX 100000000 // the limit of the reference implementation
#define SHARDS_MAX 4096
#define TENSORS_MAX 1000000

struct dgm_safetensors {
    dgm_mapfile *files; // [n_files]
    size_t n_files;
    json_t **headers; // [n_headers]: own the names
    size_t n_headers;
    dgm_safe_tensor *tensors;
    size_t count, cap;
    json_t *index; // name -> position
};

static const struct {
    const char *name;
    dgm_safe_type type;
    size_t size;
} dtypes[] = {
    {"F32", DGM_SAFE_F32, 4},    {"F16", DGM_SAFE_F16, 2},       {"BF16", DGM_SAFE_BF16, 2},
    {"F64", DGM_SAFE_OTHER, 8},  {"I64", DGM_SAFE_OTHER, 8},     {"I32", DGM_SAFE_OTHER, 4},
    {"I16", DGM_SAFE_OTHER, 2},  {"I8", DGM_SAFE_OTHER, 1},      {"U64", DGM_SAFE_OTHER, 8},
    {"U32", DGM_SAFE_OTHER, 4},  {"U16", DGM_SAFE_OTHER, 2},     {"U8", DGM_SAFE_OTHER, 1},
    {"BOOL", DGM_SAFE_OTHER, 1}, {"F8_E4M3", DGM_SAFE_OTHER, 1}, {"F8_E5M2", DGM_SAFE_OTHER, 1},
};

// ---- one header -------------------------------------------------------------------------------

static dgm_status read_dtype(dgm_safe_tensor *t, const json_t *info, size_t *size, dgm_error *err)
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

// Fills shape, rows and cols; *bytes = what the shape takes.
static dgm_status read_dims(dgm_safe_tensor *t, const json_t *info, uint64_t size, uint64_t *bytes,
                            dgm_error *err)
{
    const json_t *shape = json_object_get(info, "shape");
    DGM_FAIL_IF(!json_is_array(shape) || json_array_size(shape) > DGM_SAFE_MAX_DIMS, err,
                DGM_ERR_FORMAT, "\"shape\" is not a list of at most %d numbers", DGM_SAFE_MAX_DIMS);
    t->n_dims = (int)json_array_size(shape);
    uint64_t rows = 1;
    t->cols = 1;
    for (int d = 0; d < t->n_dims; d++) {
        const json_t *v = json_array_get(shape, (size_t)d);
        int64_t n = json_is_integer(v) ? json_integer_value(v) : -1;
        DGM_FAIL_IF(n < 0 || n > INT32_MAX, err, DGM_ERR_FORMAT, "bad number in \"shape\"");
        t->shape[d] = (int)n;
        if (d == t->n_dims - 1)
            t->cols = (int)n;
        else
            rows *= (uint64_t)n;
        DGM_FAIL_IF(rows > INT32_MAX, err, DGM_ERR_FORMAT, "\"shape\" is too large");
    }
    t->rows = (int)rows;
    DGM_FAIL_IF(!dgm_mul_size(rows * (uint64_t)t->cols, size, bytes), err, DGM_ERR_FORMAT,
                "\"shape\" is too large");
    return DGM_OK;
}

static dgm_status read_info(dgm_safe_tensor *t, const json_t *info, const uint8_t *data,
                            size_t data_size, dgm_error *err)
{
    size_t size = 0;
    uint64_t bytes = 0;
    DGM_FAIL_IF(!json_is_object(info), err, DGM_ERR_FORMAT, "not described by an object");
    DGM_TRY(read_dtype(t, info, &size, err));
    DGM_TRY(read_dims(t, info, size, &bytes, err));
    const json_t *range = json_object_get(info, "data_offsets");
    const json_t *b = json_array_get(range, 0), *e = json_array_get(range, 1);
    DGM_FAIL_IF(json_array_size(range) != 2 || !json_is_integer(b) || !json_is_integer(e), err,
                DGM_ERR_FORMAT, "\"data_offsets\" is not a pair of numbers");
    int64_t begin = json_integer_value(b), end = json_integer_value(e);
    DGM_FAIL_IF(begin < 0 || end < begin || (uint64_t)end > data_size, err, DGM_ERR_FORMAT,
                "data reaches past the end of the file (truncated?)");
    DGM_FAIL_IF((uint64_t)(end - begin) != bytes, err, DGM_ERR_FORMAT,
                "%lld bytes of data for a shape of %llu", (long long)(end - begin),
                (unsigned long long)bytes);
    t->data = data + begin;
    t->bytes = (size_t)bytes;
    return DGM_OK;
}

static int by_address(const void *context, uint32_t a, uint32_t b)
{
    const dgm_safe_tensor *t = context;
    if (t[a].data != t[b].data) return t[a].data < t[b].data ? -1 : 1;
    return (t[a].bytes > t[b].bytes) - (t[a].bytes < t[b].bytes); // empty ones first
}

static dgm_status check_overlap(const dgm_safe_tensor *t, size_t n, dgm_error *err)
{
    uint32_t *order = dgm_calloc(n + 1, sizeof *order);
    if (!order) return dgm_no_memory(err);
    dgm_sort_indices(order, n, by_address, t);
    dgm_status st = DGM_OK;
    for (size_t i = 1; i < n && st == DGM_OK; i++) {
        const dgm_safe_tensor *a = &t[order[i - 1]], *b = &t[order[i]];
        if (a->data + a->bytes > b->data)
            st = dgm_fail(err, DGM_ERR_FORMAT, "tensors '%s' and '%s' overlap", a->name, b->name);
    }
    dgm_free(order);
    return st;
}

static dgm_status add_tensor(dgm_safetensors *s, const char *name, const json_t *info,
                             const uint8_t *data, size_t data_size, dgm_error *err)
{
    DGM_FAIL_IF(s->count >= TENSORS_MAX, err, DGM_ERR_FORMAT, "more than %d tensors", TENSORS_MAX);
    DGM_FAIL_IF(json_object_get(s->index, name), err, DGM_ERR_FORMAT, "tensor '%s' is in two files",
                name);
    DGM_TRY(dgm_grow(&s->tensors, &s->cap, s->count + 1, sizeof *s->tensors, err));
    dgm_safe_tensor *t = &s->tensors[s->count];
    memset(t, 0, sizeof *t);
    t->name = name;
    dgm_status st = read_info(t, info, data, data_size, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "tensor '%s'", name);
        return st;
    }
    if (json_object_set_new(s->index, name, json_integer((json_int_t)s->count)) != 0)
        return dgm_no_memory(err);
    s->count++;
    return DGM_OK;
}

// Adds the tensors of one file. The header joins s, which owns it.
static dgm_status add_file(dgm_safetensors *s, const uint8_t *data, size_t size, dgm_error *err)
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
    s->headers[s->n_headers++] = header;
    DGM_FAIL_IF(!json_is_object(header), err, DGM_ERR_FORMAT, "the header is not an object");
    size_t first = s->count;
    const char *name;
    json_t *info;
    json_object_foreach(header, name, info)
    {
        if (strcmp(name, "__metadata__") == 0) continue;
        DGM_TRY(add_tensor(s, name, info, data + r.pos, size - r.pos, err));
    }
    if (s->count == first) return DGM_OK; // no tensors, perhaps no list yet
    return check_overlap(s->tensors + first, s->count - first, err);
}

// ---- files and shards -------------------------------------------------------------------------

// *s gets room for n files. On failure the caller closes it.
static dgm_status make_reader(dgm_safetensors **s, size_t n, dgm_error *err)
{
    dgm_json_init();
    *s = dgm_calloc(1, sizeof **s);
    if (!*s) return dgm_no_memory(err);
    (*s)->files = dgm_calloc(n, sizeof *(*s)->files);
    (*s)->headers = dgm_calloc(n, sizeof *(*s)->headers);
    (*s)->index = json_object();
    return (*s)->files && (*s)->headers && (*s)->index ? DGM_OK : dgm_no_memory(err);
}

static dgm_status open_file(dgm_safetensors *s, const char *dir, const char *name, dgm_error *err)
{
    size_t room = strlen(dir) + strlen(name) + 2;
    char *path = dgm_malloc(room);
    if (!path) return dgm_no_memory(err);
    snprintf(path, room, "%s/%s", dir, name);
    dgm_mapfile *f = &s->files[s->n_files];
    dgm_status st = dgm_mapfile_open(f, path, err);
    if (st == DGM_OK) {
        s->n_files++;
        st = add_file(s, f->data, f->size, err);
        if (st != DGM_OK) dgm_error_prefix(err, "'%s'", path);
    }
    dgm_free(path);
    return st;
}

static bool plain_name(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/') && !strchr(name, '\\');
}

// Names of the shards, each once, as keys of an object.
static dgm_status list_shards(const json_t *map, json_t *shards, dgm_error *err)
{
    DGM_FAIL_IF(!json_is_object(map), err, DGM_ERR_FORMAT, "no \"weight_map\"");
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)map, tensor, value)
    {
        const char *file = json_string_value(value);
        DGM_FAIL_IF(!file || !plain_name(file), err, DGM_ERR_FORMAT,
                    "tensor '%s' names no plain file", tensor);
        if (json_object_get(shards, file)) continue;
        if (json_object_set_new(shards, file, json_true()) != 0) return dgm_no_memory(err);
        DGM_FAIL_IF(json_object_size(shards) > SHARDS_MAX, err, DGM_ERR_FORMAT,
                    "more than %d shards", SHARDS_MAX);
    }
    DGM_FAIL_IF(json_object_size(shards) == 0, err, DGM_ERR_FORMAT, "\"weight_map\" is empty");
    return DGM_OK;
}

// Every tensor of the index must be in some shard.
static dgm_status check_index(const dgm_safetensors *s, const json_t *map, dgm_error *err)
{
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)map, tensor, value)
    {
        DGM_FAIL_IF(dgm_safetensors_find(s, tensor) < 0, err, DGM_ERR_FORMAT,
                    "tensor '%s' is in the index but in no shard", tensor);
    }
    return DGM_OK;
}

static dgm_status open_shards(dgm_safetensors **s, const char *dir, const char *index_path,
                              dgm_error *err)
{
    json_t *index = NULL, *shards = NULL;
    dgm_status st = dgm_json_read(&index, index_path, err);
    if (st == DGM_OK) {
        shards = json_object();
        const json_t *map = json_object_get(index, "weight_map");
        st = shards ? list_shards(map, shards, err) : dgm_no_memory(err);
        if (st != DGM_OK) dgm_error_prefix(err, "'%s'", index_path);
        if (st == DGM_OK) st = make_reader(s, json_object_size(shards), err);
        const char *file;
        json_t *value;
        if (st == DGM_OK) json_object_foreach(shards, file, value)
            {
                st = open_file(*s, dir, file, err);
                if (st != DGM_OK) break;
            }
        if (st == DGM_OK) st = check_index(*s, map, err);
    }
    json_decref(shards);
    json_decref(index);
    return st;
}

static bool exists_in(const char *dir, const char *name, char *path, size_t room)
{
    snprintf(path, room, "%s/%s", dir, name);
    return dgm_file_exists(path);
}

dgm_status dgm_safetensors_open(dgm_safetensors **s, const char *dir, dgm_error *err)
{
    *s = NULL;
    size_t room = strlen(dir) + 64;
    char *path = dgm_malloc(room);
    if (!path) return dgm_no_memory(err);
    dgm_status st;
    if (exists_in(dir, "model.safetensors.index.json", path, room)) {
        st = open_shards(s, dir, path, err);
    } else if (exists_in(dir, "model.safetensors", path, room)) {
        st = make_reader(s, 1, err);
        if (st == DGM_OK) st = open_file(*s, dir, "model.safetensors", err);
    } else if (exists_in(dir, "pytorch_model.bin", path, room) ||
               exists_in(dir, "pytorch_model.bin.index.json", path, room)) {
        st = dgm_fail(err, DGM_ERR_UNSUPPORTED,
                      "'%s' has only pytorch_model.bin; save it as safetensors first", dir);
    } else {
        st = dgm_fail(err, DGM_ERR_IO, "'%s' has no model.safetensors", dir);
    }
    dgm_free(path);
    if (st != DGM_OK) dgm_safetensors_close(s);
    return st;
}

dgm_status dgm_safetensors_open_memory(dgm_safetensors **s, const void *data, size_t size,
                                       dgm_error *err)
{
    dgm_status st = make_reader(s, 1, err);
    if (st == DGM_OK) st = add_file(*s, data, size, err);
    if (st != DGM_OK) dgm_safetensors_close(s);
    return st;
}

void dgm_safetensors_close(dgm_safetensors **s)
{
    if (!*s) return;
    for (size_t i = 0; i < (*s)->n_files; i++) dgm_mapfile_close(&(*s)->files[i]);
    for (size_t i = 0; i < (*s)->n_headers; i++) json_decref((*s)->headers[i]);
    json_decref((*s)->index);
    dgm_free((*s)->files);
    dgm_free((*s)->headers);
    dgm_free((*s)->tensors);
    dgm_free(*s);
    *s = NULL;
}

size_t dgm_safetensors_count(const dgm_safetensors *s)
{
    return s->count;
}

const dgm_safe_tensor *dgm_safetensors_get(const dgm_safetensors *s, size_t i)
{
    return &s->tensors[i];
}

int dgm_safetensors_find(const dgm_safetensors *s, const char *name)
{
    const json_t *at = json_object_get(s->index, name);
    return at ? (int)json_integer_value(at) : -1;
}

void dgm_safe_to_f32(const dgm_safe_tensor *t, float *out)
{
    size_t n = (size_t)t->rows * (size_t)t->cols;
    dgm_reader r = dgm_reader_over(t->data, t->bytes);
    if (t->type == DGM_SAFE_F32)
        for (size_t i = 0; i < n; i++) out[i] = dgm_read_f32(&r);
    else if (t->type == DGM_SAFE_F16)
        for (size_t i = 0; i < n; i++) out[i] = dgm_half_to_float(dgm_read_u16(&r));
    else
        for (size_t i = 0; i < n; i++) out[i] = dgm_bf16_to_float(dgm_read_u16(&r));
}
