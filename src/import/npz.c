// SPDX-License-Identifier: MIT
// numpy's arrays in zip archives; see npz.h. A tensor is unpacked when it is asked for.
#include "import/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/zip.h"

enum { FIRST_READ = 128, HEADER_MAX = 65536, MAGIC_SIZE = 8 };

// ---- the header --------------------------------------------------------------------------------

// A Python literal, read from left to right.
typedef struct literal {
    const char *at, *end;
} literal;

static void skip_space(literal *l)
{
    while (l->at < l->end && (*l->at == ' ' || *l->at == '\n' || *l->at == '\t')) l->at++;
}

static bool accept(literal *l, const char *text)
{
    skip_space(l);
    const size_t n = strlen(text);
    if ((size_t)(l->end - l->at) < n || memcmp(l->at, text, n) != 0) return false;
    l->at += n;
    return true;
}

// 'text' or "text", without escapes.
static bool accept_string(literal *l, char *out, size_t room)
{
    skip_space(l);
    if (l->at == l->end || (*l->at != '\'' && *l->at != '"')) return false;
    const char quote = *l->at++;
    size_t n = 0;
    while (l->at < l->end && *l->at != quote) {
        if (*l->at == '\\' || n + 1 >= room) return false;
        out[n++] = *l->at++;
    }
    out[n] = 0;
    return l->at < l->end && l->at++;
}

static bool accept_number(literal *l, int *out)
{
    skip_space(l);
    int64_t v = 0;
    const char *begin = l->at;
    for (; l->at < l->end && *l->at >= '0' && *l->at <= '9'; l->at++)
        if ((v = v * 10 + (*l->at - '0')) > INT32_MAX) return false;
    *out = (int)v;
    accept(l, "L"); // Python 2's long
    return l->at > begin;
}

static dgm_status read_shape(literal *l, dgm_npy *out, dgm_error *err)
{
    DGM_FAIL_IF(!accept(l, "("), err, DGM_ERR_FORMAT, "'shape' is not a tuple");
    while (!accept(l, ")")) {
        DGM_FAIL_IF(out->n_dims == DGM_STORE_MAX_DIMS, err, DGM_ERR_FORMAT,
                    "more than %d dimensions", DGM_STORE_MAX_DIMS);
        DGM_FAIL_IF(!accept_number(l, &out->shape[out->n_dims++]), err, DGM_ERR_FORMAT,
                    "bad number in 'shape'");
        if (!accept(l, ",")) {
            DGM_FAIL_IF(!accept(l, ")"), err, DGM_ERR_FORMAT, "'shape' does not end");
            break;
        }
    }
    return DGM_OK;
}

// "<f4": byte order, kind, size.
static dgm_status read_descr(dgm_npy *out, dgm_error *err)
{
    static const struct {
        const char *name;
        dgm_stored_type type;
    } types[] = {{"f8", DGM_STORED_F64}, {"f4", DGM_STORED_F32}, {"f2", DGM_STORED_F16},
                 {"i1", DGM_STORED_I8},  {"i2", DGM_STORED_I16}, {"i4", DGM_STORED_I32},
                 {"i8", DGM_STORED_I64}};
    const char *d = out->descr;
    if (*d == '<' || *d == '|' || *d == '=' || *d == '>') d++;
    out->element = 1;
    if (*d == 'O') return DGM_OK; // a pickle
    const long size = *d ? strtol(d + 1, NULL, 10) : 0;
    DGM_FAIL_IF(!*d || !strchr("fiubcSUVmM", *d) || size < 0 || size > 1 << 20, err, DGM_ERR_FORMAT,
                "unknown type '%s'", out->descr);
    out->element = (size_t)size * (*d == 'U' ? 4 : 1);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(d, types[i].name) == 0) out->type = types[i].type;
    DGM_FAIL_IF(out->descr[0] == '>' && size > 1, err, DGM_ERR_UNSUPPORTED,
                "type '%s' is big-endian; little-endian numbers are read", out->descr);
    return DGM_OK;
}

static dgm_status read_dictionary(dgm_npy *out, literal l, dgm_error *err)
{
    bool descr = false, order = false, shape = false;
    DGM_FAIL_IF(!accept(&l, "{"), err, DGM_ERR_FORMAT, "the header is not a dictionary");
    while (!accept(&l, "}")) {
        char key[16];
        DGM_FAIL_IF(!accept_string(&l, key, sizeof key) || !accept(&l, ":"), err, DGM_ERR_FORMAT,
                    "the header is damaged");
        if (strcmp(key, "descr") == 0 && !descr) {
            descr = accept_string(&l, out->descr, sizeof out->descr);
            DGM_FAIL_IF(!descr, err, DGM_ERR_UNSUPPORTED,
                        "'descr' is no simple type: arrays of records are not read");
        } else if (strcmp(key, "fortran_order") == 0 && !order) {
            out->fortran_order = accept(&l, "True");
            order = out->fortran_order || accept(&l, "False");
            DGM_FAIL_IF(!order, err, DGM_ERR_FORMAT, "'fortran_order' is neither True nor False");
        } else if (strcmp(key, "shape") == 0 && !shape) {
            DGM_TRY(read_shape(&l, out, err));
            shape = true;
        } else {
            return dgm_fail(err, DGM_ERR_FORMAT, "the header has a key '%s' too many", key);
        }
        accept(&l, ",");
    }
    DGM_FAIL_IF(!descr || !order || !shape, err, DGM_ERR_FORMAT,
                "the header lacks 'descr', 'fortran_order' or 'shape'");
    return read_descr(out, err);
}

dgm_status dgm_npy_header(dgm_npy *out, const void *begin, size_t have, size_t *need,
                          dgm_error *err)
{
    const uint8_t *p = begin;
    *out = (dgm_npy){0};
    *need = 0;
    DGM_FAIL_IF(have < MAGIC_SIZE + 4 || memcmp(p, "\x93NUMPY", 6) != 0, err, DGM_ERR_FORMAT,
                "not an array of numpy");
    DGM_FAIL_IF(p[6] < 1 || p[6] > 3, err, DGM_ERR_UNSUPPORTED,
                "version %d.%d of numpy's format; 1 to 3 are read", p[6], p[7]);
    const size_t prefix = p[6] == 1 ? MAGIC_SIZE + 2 : MAGIC_SIZE + 4;
    size_t n = (size_t)p[8] | (size_t)p[9] << 8;
    if (p[6] > 1) n |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    DGM_FAIL_IF(n > HEADER_MAX, err, DGM_ERR_FORMAT, "a header of %zu bytes", n);
    out->data = prefix + n;
    if (out->data > have) {
        *need = out->data;
        return DGM_OK;
    }
    const char *text = (const char *)p + prefix;
    return read_dictionary(out, (literal){.at = text, .end = text + n}, err);
}

// ---- the archive -------------------------------------------------------------------------------

typedef struct npz {
    dgm_zip *zip;
    char **names; // [members of the archive], of the tensors
    dgm_npy *arrays;
    char *path; // NULL: from memory
} npz;

static void close_npz(void *self)
{
    npz *in = self;
    for (size_t i = 0; in->names && i < dgm_zip_count(in->zip); i++) dgm_free(in->names[i]);
    dgm_free(in->names);
    dgm_free(in->arrays);
    dgm_free(in->path);
    dgm_zip_close(&in->zip);
    dgm_free(in);
}

static dgm_status load(void *self, const dgm_stored *t, void *out, dgm_error *err)
{
    const npz *in = self;
    const dgm_status st =
        dgm_zip_read(in->zip, t->where, in->arrays[t->where].data, out, t->bytes, err);
    if (st != DGM_OK && in->path) dgm_error_prefix(err, "'%s'", in->path);
    return st;
}

static dgm_status read_header(dgm_zip *zip, size_t i, dgm_npy *out, dgm_error *err)
{
    uint8_t first[FIRST_READ];
    const uint64_t size = dgm_zip_size(zip, i);
    const size_t have = size < sizeof first ? (size_t)size : sizeof first;
    size_t need = 0;
    DGM_TRY(dgm_zip_begin(zip, i, first, have, err));
    DGM_TRY(dgm_npy_header(out, first, have, &need, err));
    if (!need) return DGM_OK;
    DGM_FAIL_IF(need > size, err, DGM_ERR_FORMAT, "the header reaches past the end");
    uint8_t *all = dgm_malloc(need);
    if (!all) return dgm_no_memory(err);
    const size_t got = need;
    dgm_status st = dgm_zip_begin(zip, i, all, got, err);
    if (st == DGM_OK) st = dgm_npy_header(out, all, got, &need, err);
    dgm_free(all);
    return st;
}

static dgm_status add_array(dgm_store *s, npz *in, size_t i, dgm_error *err)
{
    dgm_npy *a = &in->arrays[i];
    const uint64_t size = dgm_zip_size(in->zip, i);
    DGM_TRY(read_header(in->zip, i, a, err));
    DGM_FAIL_IF(a->fortran_order && a->n_dims > 1, err, DGM_ERR_UNSUPPORTED,
                "the array is in Fortran's order; save it with numpy.ascontiguousarray");
    dgm_stored t = {
        .name = in->names[i], .dtype = a->descr, .type = a->type, .n_dims = a->n_dims, .where = i};
    memcpy(t.shape, a->shape, sizeof t.shape);
    const bool object = strchr(a->descr, 'O') != NULL;
    if (object) { // of a size that only unpickling would tell
        DGM_FAIL_IF(size - a->data > INT32_MAX, err, DGM_ERR_FORMAT, "the array is too large");
        t.n_dims = 1;
        t.shape[0] = (int)(size - a->data);
    }
    DGM_TRY(dgm_store_add(s, t, a->element, err));
    const size_t needed = dgm_store_get(s, dgm_store_count(s) - 1)->bytes;
    DGM_FAIL_IF(needed != size - a->data, err, DGM_ERR_FORMAT,
                "%llu bytes of data for a shape of %zu", (unsigned long long)(size - a->data),
                needed);
    return DGM_OK;
}

// A member's name without ".npy".
static char *tensor_name(const char *member)
{
    size_t n = strlen(member);
    if (n > 4 && strcmp(member + n - 4, ".npy") == 0) n -= 4;
    return dgm_strndup(member, n);
}

// The store takes over the archive.
static dgm_status open_zip(dgm_store **s, dgm_zip *zip, const char *path, dgm_error *err)
{
    const size_t n = dgm_zip_count(zip);
    npz *in = dgm_calloc(1, sizeof *in);
    if (!in) {
        dgm_zip_close(&zip);
        return dgm_no_memory(err);
    }
    in->zip = zip;
    in->names = dgm_calloc(n + 1, sizeof *in->names);
    in->arrays = dgm_calloc(n + 1, sizeof *in->arrays);
    in->path = path ? dgm_strdup(path) : NULL;
    if (!in->names || !in->arrays || (path && !in->path)) {
        close_npz(in);
        return dgm_no_memory(err);
    }
    DGM_TRY(dgm_store_open(s, (dgm_store_container){.self = in, .close = close_npz, .load = load},
                           err));
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < n && st == DGM_OK; i++) {
        in->names[i] = tensor_name(dgm_zip_name(zip, i));
        st = in->names[i] ? add_array(*s, in, i, err) : dgm_no_memory(err);
        if (st != DGM_OK && st != DGM_ERR_MEMORY)
            dgm_error_prefix(err, "array '%.100s'", dgm_zip_name(zip, i));
    }
    if (st != DGM_OK) dgm_store_close(s);
    return st;
}

dgm_status dgm_npz_open(dgm_store **s, const char *path, dgm_error *err)
{
    dgm_zip *zip;
    *s = NULL;
    DGM_TRY(dgm_zip_open(&zip, path, err));
    const dgm_status st = open_zip(s, zip, path, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", path);
    return st;
}

dgm_status dgm_npz_open_memory(dgm_store **s, const void *data, size_t size, dgm_error *err)
{
    dgm_zip *zip;
    *s = NULL;
    DGM_TRY(dgm_zip_open_memory(&zip, data, size, err));
    return open_zip(s, zip, NULL, err);
}
