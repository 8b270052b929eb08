// SPDX-License-Identifier: MIT
// Files of torch.save; see torch_file.h.
#include "import/torch_file.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "import/zip_list.h"

enum { PICKLE_MAX = 256 << 20, PREFIX_MAX = 200, KEY_MAX = 64, OLD_PROTOCOL = 1001 };

typedef struct storage {
    const uint8_t *data;
    uint64_t count; // elements
    const dgm_py_name *type;
} storage;

struct dgm_torch {
    dgm_mapfile file;
    char *name; // for messages
    dgm_zip_list zip;
    char prefix[PREFIX_MAX]; // of a zip file's members, with its '/'
    dgm_pickle pickle;
    const dgm_py *root;
    storage *storages; // of the old layout
    json_t *index;     // their keys
};

// ---- storages ----------------------------------------------------------------------------------

// ('storage', type, key, location, number of elements, ...)
static dgm_status describe(const dgm_py *persistent, char key[KEY_MAX], storage *out,
                           dgm_error *err)
{
    const dgm_py *id = persistent->as.id, *type = dgm_py_item(id, 1), *name = dgm_py_item(id, 2),
                 *count = dgm_py_item(id, 4);
    DGM_FAIL_IF(!dgm_py_is_text(dgm_py_item(id, 0), "storage") || !type || !name || !count ||
                    type->kind != DGM_PY_NAME || type->as.name->role != DGM_PY_STORAGE ||
                    name->kind != DGM_PY_TEXT || count->kind != DGM_PY_INT,
                err, DGM_ERR_FORMAT, "a storage is not described as torch does");
    DGM_FAIL_IF(name->as.text.size >= KEY_MAX || memchr(name->as.text.data, 0, name->as.text.size) ||
                    count->as.integer < 0,
                err, DGM_ERR_FORMAT, "a storage is not described as torch does");
    memcpy(key, name->as.text.data, name->as.text.size);
    key[name->as.text.size] = 0;
    *out = (storage){.count = (uint64_t)count->as.integer, .type = type->as.name};
    return DGM_OK;
}

static dgm_status find_storage(const dgm_torch *t, const dgm_py *persistent, storage *out,
                               dgm_error *err)
{
    char key[KEY_MAX], member[PREFIX_MAX + KEY_MAX + 8];
    uint64_t bytes;
    DGM_TRY(describe(persistent, key, out, err));
    if (t->index) { // the old layout
        const json_t *at = json_object_get(t->index, key);
        const storage *s = at ? &t->storages[json_integer_value(at)] : NULL;
        DGM_FAIL_IF(!s || !s->data || s->type != out->type || s->count < out->count, err,
                    DGM_ERR_FORMAT, "storage '%s' is not in the file", key);
        out->data = s->data;
        return DGM_OK;
    }
    snprintf(member, sizeof member, "%sdata/%s", t->prefix, key);
    const dgm_zip_member *m = dgm_zip_list_find(&t->zip, member);
    DGM_FAIL_IF(!m, err, DGM_ERR_FORMAT, "member '%s' is missing", member);
    DGM_FAIL_IF(!dgm_mul_size(out->count, out->type->element, &bytes) || bytes > m->size, err,
                DGM_ERR_FORMAT, "member '%s' has %zu bytes, too few for %llu numbers", member,
                m->size, (unsigned long long)out->count);
    out->data = m->data;
    return DGM_OK;
}

// ---- tensors -----------------------------------------------------------------------------------

typedef struct layout {
    int dims;
    uint64_t size[DGM_STORE_MAX_DIMS], stride[DGM_STORE_MAX_DIMS], offset;
} layout;

static dgm_status read_layout(const dgm_py *args, layout *l, dgm_error *err)
{
    const dgm_py *offset = dgm_py_item(args, 1), *sizes = dgm_py_item(args, 2),
                 *strides = dgm_py_item(args, 3);
    const size_t n = dgm_py_count(sizes);
    DGM_FAIL_IF(!offset || offset->kind != DGM_PY_INT || offset->as.integer < 0 || !sizes ||
                    sizes->kind != DGM_PY_TUPLE || n != dgm_py_count(strides),
                err, DGM_ERR_FORMAT, "not described as torch does");
    DGM_FAIL_IF(n > DGM_STORE_MAX_DIMS, err, DGM_ERR_FORMAT, "more than %d dimensions",
                DGM_STORE_MAX_DIMS);
    *l = (layout){.dims = (int)n, .offset = (uint64_t)offset->as.integer};
    for (size_t i = 0; i < n; i++) {
        const dgm_py *size = dgm_py_item(sizes, i), *stride = dgm_py_item(strides, i);
        DGM_FAIL_IF(size->kind != DGM_PY_INT || stride->kind != DGM_PY_INT ||
                        size->as.integer < 0 || size->as.integer > INT32_MAX ||
                        stride->as.integer < 0,
                    err, DGM_ERR_FORMAT, "bad number in sizes or strides");
        l->size[i] = (uint64_t)size->as.integer;
        l->stride[i] = (uint64_t)stride->as.integer;
    }
    return DGM_OK;
}

// The last element must lie in the storage. Strides of 0 repeat what is there: not so often that a small file becomes
// one that fills a disk.
static dgm_status check_reach(const layout *l, uint64_t count, dgm_error *err)
{
    enum { REPEATS_MAX = 1024 };
    uint64_t last = l->offset, numbers = 1, step;
    for (int i = 0; i < l->dims; i++) {
        if (l->size[i] == 0) return DGM_OK;
        DGM_FAIL_IF(!dgm_mul_size(numbers, l->size[i], &numbers), err, DGM_ERR_FORMAT, "is larger than any file");
        DGM_FAIL_IF(!dgm_mul_size(l->size[i] - 1, l->stride[i], &step) ||
                        !dgm_add_size(last, step, &last),
                    err, DGM_ERR_FORMAT, "reaches past the end of its storage");
    }
    DGM_FAIL_IF(last >= count, err, DGM_ERR_FORMAT, "reaches past the end of its storage");
    DGM_FAIL_IF(numbers / REPEATS_MAX > count, err, DGM_ERR_UNSUPPORTED, "repeats its numbers more than %d times",
                REPEATS_MAX);
    return DGM_OK;
}

// Rows are what all dimensions but the last make together: those must follow one another evenly.
static dgm_status find_steps(const layout *l, dgm_stored *t, dgm_error *err)
{
    uint64_t row = 0, next = 0;
    bool first = true;
    for (int i = l->dims - 2; i >= 0; i--) {
        if (l->size[i] == 1) continue;
        DGM_FAIL_IF(!first && l->stride[i] != next, err, DGM_ERR_UNSUPPORTED,
                    "its dimensions are in another order than the file has them");
        if (first) row = l->stride[i];
        next = l->stride[i] * l->size[i]; // what check_reach saw does not overflow
        first = false;
    }
    const uint64_t cols = l->dims ? l->size[l->dims - 1] : 1;
    t->col_step = l->dims && cols > 1 ? (size_t)l->stride[l->dims - 1] : 1;
    t->row_step = first ? (size_t)cols : (size_t)row;
    DGM_FAIL_IF(t->row_step == 0 && t->col_step == 0, err, DGM_ERR_UNSUPPORTED,
                "it repeats one number in both directions");
    return DGM_OK;
}

static dgm_status add_tensor(const dgm_torch *t, const char *name, const dgm_py *v, dgm_store *s,
                             dgm_error *err)
{
    storage from = {0};
    layout l = {0};
    if (v->kind == DGM_PY_OBJECT && v->as.object.name->role == DGM_PY_PARAMETER)
        v = dgm_py_item(v->as.object.args, 0);
    DGM_FAIL_IF(!v || v->kind != DGM_PY_OBJECT || v->as.object.name->role != DGM_PY_TENSOR, err,
                DGM_ERR_FORMAT, "not a tensor");
    const dgm_py *args = v->as.object.args, *persistent = dgm_py_item(args, 0);
    DGM_FAIL_IF(!persistent || persistent->kind != DGM_PY_PERSISTENT, err, DGM_ERR_FORMAT,
                "not described as torch does");
    DGM_TRY(read_layout(args, &l, err));
    DGM_TRY(find_storage(t, persistent, &from, err));
    DGM_TRY(check_reach(&l, from.count, err));
    dgm_stored out = {
        .name = name, .dtype = from.type->dtype, .type = from.type->type, .n_dims = l.dims};
    for (int i = 0; i < l.dims; i++) out.shape[i] = (int)l.size[i];
    DGM_TRY(find_steps(&l, &out, err));
    out.data = l.offset < from.count ? from.data + l.offset * from.type->element : from.data;
    return dgm_store_add(s, out, from.type->element, err);
}

dgm_status dgm_torch_tensors(dgm_torch *t, const dgm_py *dict, const char *prefix, dgm_store *s,
                             dgm_error *err)
{
    const size_t n = dgm_py_pairs(dict), front = strlen(prefix);
    DGM_FAIL_IF(n == 0, err, DGM_ERR_FORMAT, "'%s': no tensors", t->name);
    for (size_t i = 0; i < n; i++) {
        const dgm_py *key, *value;
        if (!dgm_py_pair(dict, i, &key, &value) || key->kind != DGM_PY_TEXT ||
            memchr(key->as.text.data, 0, key->as.text.size))
            return dgm_fail(err, DGM_ERR_FORMAT, "'%s': an entry %zu without a name", t->name, i);
        char *name = dgm_pickle_alloc(&t->pickle, front + key->as.text.size + 1);
        if (!name) return dgm_no_memory(err);
        memcpy(name, prefix, front);
        memcpy(name + front, key->as.text.data, key->as.text.size);
        name[front + key->as.text.size] = 0;
        const dgm_status st = add_tensor(t, name, value, s, err);
        if (st == DGM_OK) continue;
        dgm_error_prefix(err, "'%s': tensor '%.100s'", t->name, name);
        return st;
    }
    return DGM_OK;
}

// ---- the two layouts ---------------------------------------------------------------------------

// The member whose name ends in /data.pkl, in one folder.
static const dgm_zip_member *find_pickle(dgm_torch *t)
{
    static const char end[] = "/data.pkl";
    for (size_t i = 0; i < t->zip.count; i++) {
        const dgm_zip_member *m = &t->zip.members[i];
        if (m->name.size < sizeof end || m->name.size >= PREFIX_MAX) continue;
        const size_t folder = m->name.size - (sizeof end - 1);
        if (memcmp(m->name.data + folder, end, sizeof end - 1) != 0) continue;
        if (memchr(m->name.data, '/', folder) || memchr(m->name.data, 0, folder)) continue;
        memcpy(t->prefix, m->name.data, folder + 1);
        t->prefix[folder + 1] = 0;
        return m;
    }
    return NULL;
}

static dgm_status read_zip(dgm_torch *t, const uint8_t *data, size_t size, dgm_error *err)
{
    char name[PREFIX_MAX + 32];
    size_t used;
    DGM_TRY(dgm_zip_list_read(&t->zip, data, size, err));
    const dgm_zip_member *m = find_pickle(t);
    DGM_FAIL_IF(!m, err, DGM_ERR_FORMAT, "a zip file without data.pkl: not what torch.save writes");
    snprintf(name, sizeof name, "%sconstants.pkl", t->prefix);
    DGM_FAIL_IF(dgm_zip_list_find(&t->zip, name), err, DGM_ERR_UNSUPPORTED,
                "a TorchScript program, not weights");
    snprintf(name, sizeof name, "%sbyteorder", t->prefix);
    const dgm_zip_member *order = dgm_zip_list_find(&t->zip, name);
    DGM_FAIL_IF(order && (order->size != 6 || memcmp(order->data, "little", 6) != 0), err,
                DGM_ERR_UNSUPPORTED, "the file's byte order is not little-endian");
    DGM_FAIL_IF(m->size > PICKLE_MAX, err, DGM_ERR_FORMAT, "data.pkl has %zu bytes, at most %d",
                m->size, PICKLE_MAX);
    const dgm_status st = dgm_pickle_read(&t->pickle, m->data, m->size, &used, &t->root, err);
    if (st != DGM_OK) dgm_error_prefix(err, "data.pkl");
    return st;
}

// All storages that the object mentioned, by key.
static dgm_status list_storages(dgm_torch *t, dgm_error *err)
{
    dgm_json_init();
    t->index = json_object();
    t->storages = dgm_calloc(t->pickle.persistent_count + 1, sizeof *t->storages);
    if (!t->index || !t->storages) return dgm_no_memory(err);
    for (size_t i = 0; i < t->pickle.persistent_count; i++) {
        char key[KEY_MAX];
        DGM_TRY(describe(t->pickle.persistent[i], key, &t->storages[i], err));
        const dgm_py *view = dgm_py_item(t->pickle.persistent[i]->as.id, 5);
        DGM_FAIL_IF(view && view->kind != DGM_PY_NONE, err, DGM_ERR_UNSUPPORTED,
                    "storage '%s' is a part of another one", key);
        if (!json_object_get(t->index, key) &&
            json_object_set_new_nocheck(t->index, key, json_integer((json_int_t)i)) != 0)
            return dgm_no_memory(err);
    }
    return DGM_OK;
}

static dgm_status read_storages(dgm_torch *t, const dgm_py *keys, dgm_reader *r, dgm_error *err)
{
    for (size_t i = 0; i < dgm_py_count(keys); i++) {
        const dgm_py *key = dgm_py_item(keys, i);
        const json_t *at = key->kind == DGM_PY_TEXT
                               ? json_object_getn(t->index, key->as.text.data, key->as.text.size)
                               : NULL;
        DGM_FAIL_IF(!at, err, DGM_ERR_FORMAT, "storage %zu of the list is nowhere used", i);
        storage *s = &t->storages[json_integer_value(at)];
        uint64_t bytes;
        s->count = dgm_read_u64(r);
        if (!dgm_mul_size(s->count, s->type->element, &bytes)) bytes = UINT64_MAX;
        s->data = dgm_read_bytes(r, bytes);
        DGM_FAIL_IF(!s->data, err, DGM_ERR_FORMAT,
                    "storage %zu reaches past the end of the file (truncated?)", i);
    }
    return DGM_OK;
}

static bool is_magic(const dgm_py *v)
{
    static const uint8_t magic[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
    return v->kind == DGM_PY_BIG && v->as.text.size == sizeof magic &&
           memcmp(v->as.text.data, magic, sizeof magic) == 0;
}

static dgm_status read_old(dgm_torch *t, const uint8_t *data, size_t size, dgm_error *err)
{
    static const char *const parts[] = {"magic number", "protocol", "facts about the system",
                                        "object", "list of storages"};
    const dgm_py *v[5];
    dgm_reader r = dgm_reader_over(data, size);
    for (int i = 0; i < 5; i++) {
        const size_t left = dgm_reader_left(&r);
        size_t used;
        const dgm_status st =
            dgm_pickle_read(&t->pickle, data + r.pos, left < PICKLE_MAX ? left : PICKLE_MAX, &used,
                            &v[i], err);
        if (st != DGM_OK) {
            dgm_error_prefix(err, "%s, from byte %zu", parts[i], r.pos);
            return st;
        }
        r.pos += used;
        DGM_FAIL_IF(i == 0 && !is_magic(v[0]), err, DGM_ERR_FORMAT,
                    "a pickle, but not one of torch.save");
        DGM_FAIL_IF(i == 1 && (v[1]->kind != DGM_PY_INT || v[1]->as.integer != OLD_PROTOCOL), err,
                    DGM_ERR_UNSUPPORTED, "torch's old layout, but not its protocol %d",
                    OLD_PROTOCOL);
    }
    const dgm_py *little = dgm_py_get(v[2], "little_endian");
    DGM_FAIL_IF(little && little->kind == DGM_PY_BOOL && !little->as.integer, err,
                DGM_ERR_UNSUPPORTED, "the file's byte order is not little-endian");
    t->root = v[3];
    DGM_TRY(list_storages(t, err));
    return read_storages(t, v[4], &r, err);
}

// ---- opening -----------------------------------------------------------------------------------

static dgm_status read_file(dgm_torch *t, const uint8_t *data, size_t size, dgm_error *err)
{
    if (dgm_zip_begins(data, size)) return read_zip(t, data, size, err);
    DGM_FAIL_IF(size < 2 || data[0] != 0x80, err, DGM_ERR_FORMAT,
                "neither a zip file nor a pickle: not what torch.save writes");
    return read_old(t, data, size, err);
}

static dgm_status make_torch(dgm_torch **t, const char *name, dgm_error *err)
{
    *t = dgm_calloc(1, sizeof **t);
    if (!*t) return dgm_no_memory(err);
    (*t)->name = dgm_strdup(name);
    if ((*t)->name) return DGM_OK;
    dgm_torch_close(t);
    return dgm_no_memory(err);
}

static dgm_status finish(dgm_torch **t, const void *data, size_t size, dgm_error *err)
{
    const dgm_status st = read_file(*t, data, size, err);
    if (st == DGM_OK) return DGM_OK;
    dgm_error_prefix(err, "'%s'", (*t)->name);
    dgm_torch_close(t);
    return st;
}

dgm_status dgm_torch_open(dgm_torch **t, const char *path, dgm_error *err)
{
    DGM_TRY(make_torch(t, path, err));
    const dgm_status st = dgm_mapfile_open(&(*t)->file, path, err);
    if (st == DGM_OK) return finish(t, (*t)->file.data, (*t)->file.size, err);
    dgm_torch_close(t);
    return st;
}

dgm_status dgm_torch_open_memory(dgm_torch **t, const char *name, const void *data, size_t size,
                                 dgm_error *err)
{
    DGM_TRY(make_torch(t, name, err));
    return finish(t, data, size, err);
}

void dgm_torch_close(dgm_torch **t)
{
    if (!*t) return;
    dgm_pickle_free(&(*t)->pickle);
    dgm_zip_list_free(&(*t)->zip);
    dgm_free((*t)->storages);
    json_decref((*t)->index);
    dgm_mapfile_close(&(*t)->file);
    dgm_free((*t)->name);
    dgm_free(*t);
    *t = NULL;
}

const dgm_py *dgm_torch_root(const dgm_torch *t)
{
    return t->root;
}
