// SPDX-License-Identifier: MIT
// Writing GGUF v3 files; see gguf.h. Used by the importers and the tool commands.
//
// Metadata is kept as ready bytes (type and value) in the order it was first set, tensors as
// descriptions; dgm_gguf_write lays the tensors out in the order they were added, each at a
// multiple of 64 bytes, and pads behind the last one too (some readers want whole blocks). One
// tensor at a time is in memory when a producer is used, or a few of its rows, so a model larger than
// memory can pass.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "format/gguf_private.h"

#define ALIGNMENT 64
#define ROWS_BYTES ((size_t)2 << 20) // of rows that are made in one call

typedef struct entry {
    char *key;
    dgm_writer value; // type, then the value as in the file
} entry;

typedef struct item {
    char *name;
    int type, n_dims;
    int shape[DGM_GGUF_MAX_DIMS];
    const void *data;
    dgm_gguf_produce produce;
    dgm_gguf_produce_rows produce_rows;
    void *arg;
    uint64_t bytes;
} item;

struct dgm_gguf_writer {
    entry *entries;
    item *items;
    size_t n_entries, entries_cap, n_items, items_cap;
    dgm_status status; // of the first setter that failed
    dgm_error error;
    dgm_gguf_watch watch; // NULL: nobody
    void *watch_arg;
};

static uint64_t padded(uint64_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

dgm_status dgm_gguf_writer_open(dgm_gguf_writer **w, dgm_error *err)
{
    *w = dgm_calloc(1, sizeof **w);
    if (!*w) return dgm_no_memory(err);
    dgm_gguf_set_u32(*w, "general.alignment", ALIGNMENT);
    dgm_status st = (*w)->status;
    if (st != DGM_OK) {
        dgm_gguf_writer_close(w);
        return dgm_no_memory(err);
    }
    return DGM_OK;
}

void dgm_gguf_writer_close(dgm_gguf_writer **w)
{
    if (!*w) return;
    for (size_t i = 0; i < (*w)->n_entries; i++) {
        dgm_free((*w)->entries[i].key);
        dgm_writer_free(&(*w)->entries[i].value);
    }
    for (size_t i = 0; i < (*w)->n_items; i++) dgm_free((*w)->items[i].name);
    dgm_free((*w)->entries);
    dgm_free((*w)->items);
    dgm_free(*w);
    *w = NULL;
}

// ---- metadata ---------------------------------------------------------------------------------

static bool good_name(dgm_gguf_writer *w, const char *name)
{
    size_t n = strlen(name);
    if (n > 0 && n <= DGM_GGUF_MAX_NAME) return true;
    w->status = dgm_fail(&w->error, DGM_ERR_ARGUMENT, "name '%.40s' has %zu bytes, 1 to %d allowed",
                         name, n, DGM_GGUF_MAX_NAME);
    return false;
}

static entry *find_entry(dgm_gguf_writer *w, const char *key)
{
    for (size_t i = 0; i < w->n_entries; i++)
        if (strcmp(w->entries[i].key, key) == 0) return &w->entries[i];
    return NULL;
}

// An empty value with its type written; NULL after a failure.
static dgm_writer *begin_value(dgm_gguf_writer *w, const char *key, dgm_meta_type type)
{
    if (w->status != DGM_OK || !good_name(w, key)) return NULL;
    entry *e = find_entry(w, key);
    if (e) {
        dgm_writer_free(&e->value);
    } else {
        w->status = dgm_grow(&w->entries, &w->entries_cap, w->n_entries + 1, sizeof *e, &w->error);
        if (w->status != DGM_OK) return NULL;
        e = &w->entries[w->n_entries];
        memset(e, 0, sizeof *e);
        e->key = dgm_strdup(key);
        if (!e->key) {
            w->status = dgm_no_memory(&w->error);
            return NULL;
        }
        w->n_entries++;
    }
    dgm_write_u32(&e->value, type);
    return &e->value;
}

static void end_value(dgm_gguf_writer *w, const dgm_writer *value)
{
    if (value->failed) w->status = dgm_no_memory(&w->error);
}

#define SETTER(function, ctype, tag, write)                                                        \
    void function(dgm_gguf_writer *w, const char *key, ctype v)                                    \
    {                                                                                              \
        dgm_writer *out = begin_value(w, key, tag);                                                \
        if (!out) return;                                                                          \
        write;                                                                                     \
        end_value(w, out);                                                                         \
    }

SETTER(dgm_gguf_set_u8, uint8_t, DGM_META_U8, dgm_write_u8(out, v))
SETTER(dgm_gguf_set_i8, int8_t, DGM_META_I8, dgm_write_u8(out, (uint8_t)v))
SETTER(dgm_gguf_set_u16, uint16_t, DGM_META_U16, dgm_write_u16(out, v))
SETTER(dgm_gguf_set_i16, int16_t, DGM_META_I16, dgm_write_u16(out, (uint16_t)v))
SETTER(dgm_gguf_set_u32, uint32_t, DGM_META_U32, dgm_write_u32(out, v))
SETTER(dgm_gguf_set_i32, int32_t, DGM_META_I32, dgm_write_u32(out, (uint32_t)v))
SETTER(dgm_gguf_set_u64, uint64_t, DGM_META_U64, dgm_write_u64(out, v))
SETTER(dgm_gguf_set_i64, int64_t, DGM_META_I64, dgm_write_u64(out, (uint64_t)v))
SETTER(dgm_gguf_set_f32, float, DGM_META_F32, dgm_write_f32(out, v))
SETTER(dgm_gguf_set_f64, double, DGM_META_F64, dgm_write_f64(out, v))
SETTER(dgm_gguf_set_bool, bool, DGM_META_BOOL, dgm_write_u8(out, v))

static void write_string(dgm_writer *out, const char *v)
{
    dgm_write_u64(out, strlen(v));
    dgm_write_text(out, v);
}

void dgm_gguf_set_string(dgm_gguf_writer *w, const char *key, const char *v)
{
    dgm_writer *out = begin_value(w, key, DGM_META_STRING);
    if (!out) return;
    write_string(out, v);
    end_value(w, out);
}

void dgm_gguf_set_array(dgm_gguf_writer *w, const char *key, dgm_meta_type elem_type,
                        const void *values, size_t count)
{
    size_t size = dgm_meta_type_size(elem_type);
    if (size == 0) {
        if (w->status == DGM_OK)
            w->status =
                dgm_fail(&w->error, DGM_ERR_ARGUMENT, "key '%s': not an array of numbers", key);
        return;
    }
    dgm_writer *out = begin_value(w, key, DGM_META_ARRAY);
    if (!out) return;
    dgm_write_u32(out, elem_type);
    dgm_write_u64(out, count);
    dgm_write_bytes(out, values, count * size); // little-endian machines only, as the reader
    end_value(w, out);
}

void dgm_gguf_set_strings(dgm_gguf_writer *w, const char *key, const char *const *v, size_t count)
{
    dgm_writer *out = begin_value(w, key, DGM_META_ARRAY);
    if (!out) return;
    dgm_write_u32(out, DGM_META_STRING);
    dgm_write_u64(out, count);
    for (size_t i = 0; i < count; i++) write_string(out, v[i]);
    end_value(w, out);
}

void dgm_gguf_set_copy(dgm_gguf_writer *w, const dgm_meta *m)
{
    if (strcmp(m->key, "general.alignment") == 0) return;
    dgm_writer *out = begin_value(w, m->key, (dgm_meta_type)m->type);
    if (!out) return;
    if (m->type == DGM_META_STRING) dgm_write_u64(out, m->raw_size);
    if (m->type == DGM_META_ARRAY) {
        dgm_write_u32(out, (uint32_t)m->elem_type);
        dgm_write_u64(out, m->count);
    }
    dgm_write_bytes(out, m->raw, m->raw_size);
    end_value(w, out);
}

void dgm_gguf_set_copies(dgm_gguf_writer *w, const dgm_gguf *g)
{
    for (int i = 0; i < g->n_meta; i++)
        if (!find_entry(w, g->meta[i].key)) dgm_gguf_set_copy(w, &g->meta[i]);
}

void dgm_gguf_unset(dgm_gguf_writer *w, const char *key)
{
    entry *e = find_entry(w, key);
    if (!e) return;
    dgm_free(e->key);
    dgm_writer_free(&e->value);
    size_t at = (size_t)(e - w->entries);
    memmove(e, e + 1, (w->n_entries - at - 1) * sizeof *e);
    w->n_entries--;
}

// ---- tensors ----------------------------------------------------------------------------------

static void add_item(dgm_gguf_writer *w, const char *name, item t, const int *shape)
{
    if (w->status != DGM_OK || !good_name(w, name)) return;
    for (size_t i = 0; i < w->n_items; i++) {
        if (strcmp(w->items[i].name, name) != 0) continue;
        w->status = dgm_fail(&w->error, DGM_ERR_ARGUMENT, "tensor '%s' is added twice", name);
        return;
    }
    t.bytes = dgm_tensor_type_size(t.type);
    bool good = t.bytes > 0 && t.n_dims >= 1 && t.n_dims <= DGM_GGUF_MAX_DIMS;
    for (int i = 0; good && i < t.n_dims; i++) {
        t.shape[i] = shape[i];
        good = shape[i] > 0 && dgm_mul_size(t.bytes, (uint64_t)shape[i], &t.bytes);
    }
    if (!good || t.bytes > SIZE_MAX / 4) {
        w->status =
            dgm_fail(&w->error, DGM_ERR_ARGUMENT, "tensor '%s' has a bad shape or type", name);
        return;
    }
    w->status = dgm_grow(&w->items, &w->items_cap, w->n_items + 1, sizeof t, &w->error);
    if (w->status != DGM_OK) return;
    t.name = dgm_strdup(name);
    if (t.name)
        w->items[w->n_items++] = t;
    else
        w->status = dgm_no_memory(&w->error);
}

void dgm_gguf_add_tensor(dgm_gguf_writer *w, const char *name, dgm_tensor_type type, int n_dims,
                         const int *shape, const void *data)
{
    item t = {.type = type, .n_dims = n_dims, .data = data};
    add_item(w, name, t, shape);
}

void dgm_gguf_add_produced(dgm_gguf_writer *w, const char *name, dgm_tensor_type type, int n_dims,
                           const int *shape, dgm_gguf_produce produce, void *arg)
{
    item t = {.type = type, .n_dims = n_dims, .produce = produce, .arg = arg};
    add_item(w, name, t, shape);
}

void dgm_gguf_add_rows(dgm_gguf_writer *w, const char *name, dgm_tensor_type type, int n_dims,
                       const int *shape, dgm_gguf_produce_rows produce, void *arg)
{
    item t = {.type = type, .n_dims = n_dims, .produce_rows = produce, .arg = arg};
    add_item(w, name, t, shape);
}

void dgm_gguf_watch_writing(dgm_gguf_writer *w, dgm_gguf_watch watch, void *arg)
{
    w->watch = watch;
    w->watch_arg = arg;
}

// ---- the file ---------------------------------------------------------------------------------

// How far the writing has come, for who watches it.
typedef struct writing {
    const dgm_gguf_writer *w;
    FILE *file;
    uint64_t done, total;
    bool io; // the file itself is the trouble; the message is then made at the end
} writing;

static dgm_status advance(writing *to, uint64_t bytes, dgm_error *err)
{
    to->done += bytes;
    if (!to->w->watch || to->io) return DGM_OK;
    return to->w->watch(to->w->watch_arg, (double)to->done / (double)(to->total ? to->total : 1), err);
}

static void write_header(const dgm_gguf_writer *w, dgm_writer *out)
{
    dgm_write_text(out, "GGUF");
    dgm_write_u32(out, 3);
    dgm_write_u64(out, w->n_items);
    dgm_write_u64(out, w->n_entries);
    for (size_t i = 0; i < w->n_entries; i++) {
        write_string(out, w->entries[i].key);
        dgm_write_bytes(out, w->entries[i].value.data, w->entries[i].value.size);
    }
    uint64_t offset = 0;
    for (size_t i = 0; i < w->n_items; i++) {
        const item *t = &w->items[i];
        write_string(out, t->name);
        dgm_write_u32(out, (uint32_t)t->n_dims);
        for (int d = t->n_dims; d-- > 0;) dgm_write_u64(out, (uint64_t)t->shape[d]);
        dgm_write_u32(out, (uint32_t)t->type);
        dgm_write_u64(out, offset);
        offset += padded(t->bytes);
    }
    dgm_write_zeros(out, (size_t)(padded(out->size) - out->size));
}

dgm_status dgm_gguf_metadata(const dgm_gguf_writer *w, dgm_writer *out, dgm_error *err)
{
    DGM_FAIL_IF(w->status != DGM_OK, err, w->status, "%s", w->error.text);
    dgm_gguf_writer bare = *w;
    bare.n_items = 0;
    write_header(&bare, out);
    return out->failed ? dgm_no_memory(err) : DGM_OK;
}

static void put(writing *to, const void *data, size_t size)
{
    if (!to->io && size) to->io = fwrite(data, 1, size, to->file) != size;
}

static dgm_status write_rows(const item *t, writing *to, dgm_error *err)
{
    const size_t row = dgm_tensor_type_size(t->type) * (size_t)t->shape[t->n_dims - 1];
    const size_t rows = (size_t)t->bytes / row;
    size_t step = row < ROWS_BYTES ? ROWS_BYTES / row : 1;
    if (step > rows) step = rows;
    void *out = dgm_malloc(step * row);
    dgm_status st = out ? DGM_OK : dgm_no_memory(err);
    for (size_t at = 0; at < rows && st == DGM_OK && !to->io; at += step) {
        if (step > rows - at) step = rows - at;
        st = t->produce_rows(t->arg, (int)at, (int)step, out, err);
        if (st == DGM_OK) put(to, out, step * row);
        if (st == DGM_OK) st = advance(to, step * row, err);
    }
    dgm_free(out);
    return st;
}

static dgm_status write_whole(const item *t, writing *to, dgm_error *err)
{
    const size_t bytes = (size_t)t->bytes;
    void *made = dgm_malloc(bytes);
    const dgm_status st = made ? t->produce(t->arg, made, bytes, err) : dgm_no_memory(err);
    if (st == DGM_OK) put(to, made, bytes);
    dgm_free(made);
    return st == DGM_OK ? advance(to, bytes, err) : st;
}

static dgm_status write_data(const item *t, writing *to, dgm_error *err)
{
    put(to, t->data, (size_t)t->bytes);
    return advance(to, t->bytes, err);
}

static dgm_status write_tensor(const item *t, writing *to, dgm_error *err)
{
    static const uint8_t zeros[ALIGNMENT];
    const dgm_status st = t->produce_rows ? write_rows(t, to, err)
                          : t->produce    ? write_whole(t, to, err)
                                          : write_data(t, to, err);
    if (st == DGM_OK) put(to, zeros, (size_t)(padded(t->bytes) - t->bytes));
    return st;
}

static dgm_status write_body(const dgm_gguf_writer *w, writing *to, dgm_error *err)
{
    dgm_writer head = {0};
    write_header(w, &head);
    dgm_status st = head.failed ? dgm_no_memory(err) : DGM_OK;
    if (st == DGM_OK) put(to, head.data, head.size);
    dgm_writer_free(&head);
    for (size_t i = 0; i < w->n_items; i++) to->total += w->items[i].bytes;
    for (size_t i = 0; i < w->n_items && st == DGM_OK && !to->io; i++)
        st = write_tensor(&w->items[i], to, err);
    return st;
}

dgm_status dgm_gguf_write(dgm_gguf_writer *w, const char *path, dgm_error *err)
{
    DGM_FAIL_IF(w->status != DGM_OK, err, w->status, "%s", w->error.text);
    DGM_FAIL_IF(w->n_items > DGM_GGUF_MAX_ENTRIES || w->n_entries > DGM_GGUF_MAX_ENTRIES, err,
                DGM_ERR_ARGUMENT, "more than %d tensors or metadata entries", DGM_GGUF_MAX_ENTRIES);
    DGM_FAIL_IF(strcmp(path, "-") == 0, err, DGM_ERR_ARGUMENT,
                "'-': a model file cannot be written to standard output; name a file");
    dgm_outfile out;
    DGM_TRY(dgm_outfile_open(&out, path, false, err));
    writing to = {.w = w, .file = out.file};
    const dgm_status st = write_body(w, &to, err);
    if (st == DGM_OK) return dgm_outfile_commit(&out, to.io ? dgm_errno() : 0, err);
    dgm_outfile_discard(&out);
    return st;
}
