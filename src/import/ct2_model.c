// SPDX-License-Identifier: MIT
// Reading model.bin of CTranslate2; see ct2_model.h.
#define _GNU_SOURCE
#include "import/ct2_model.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mapfile.h"
#include "base/mem.h"

enum { NAME_MAX_SIZE = 1024 };

typedef struct model_file {
    dgm_mapfile file;
    char **names; // made here; the others lie in the file
    size_t count, cap;
} model_file;

typedef struct parser {
    dgm_reader r;
    dgm_store *s;
    model_file *in;
    dgm_ct2_head *head;
} parser;

static void close_file(void *self)
{
    model_file *in = self;
    dgm_mapfile_close(&in->file);
    for (size_t i = 0; i < in->count; i++) dgm_free(in->names[i]);
    dgm_free(in->names);
    dgm_free(in);
}

// A copy that lives as long as the store.
static dgm_status keep_name(model_file *in, const char *text, const char **out, dgm_error *err)
{
    DGM_TRY(dgm_grow(&in->names, &in->cap, in->count + 1, sizeof *in->names, err));
    char *copy = dgm_strdup(text);
    if (!copy) return dgm_no_memory(err);
    in->names[in->count++] = copy;
    *out = copy;
    return DGM_OK;
}

// A view into the file; its NUL is part of the format.
static dgm_status read_string(dgm_reader *r, const char **out, dgm_error *err)
{
    const size_t at = r->pos;
    const size_t size = dgm_read_u16(r);
    const char *text = dgm_read_bytes(r, size);
    DGM_FAIL_IF(r->bad || !text, err, DGM_ERR_FORMAT, "the file ends in the name at byte %zu", at);
    DGM_FAIL_IF(size == 0 || size > NAME_MAX_SIZE || text[size - 1] != 0 || strlen(text) != size - 1, err,
                DGM_ERR_FORMAT, "the name at byte %zu is damaged", at);
    *out = text;
    return DGM_OK;
}

// ---- names of revision 1 ------------------------------------------------------------------------

static void replace(char name[2 * NAME_MAX_SIZE], const char *from, const char *to)
{
    char out[2 * NAME_MAX_SIZE];
    char *at = strstr(name, from);
    if (!at) return;
    const int n = snprintf(out, sizeof out, "%.*s%s%s", (int)(at - name), name, to, at + strlen(from));
    if (n > 0 && n < (int)sizeof out) memcpy(name, out, (size_t)n + 1);
}

static dgm_status modern_name(parser *p, const char **name, dgm_error *err)
{
    static const char *const words[][2] = {
        {"transformer/", ""},        {":0", ""},           {"w_embs", "embeddings/weight"}, {"kernel", "weight"},
        {"LayerNorm", "layer_norm"}, {"dense", "projection"}, {"conv1d_", "linear_"},       {"conv1d", "linear_0"},
    };
    char text[2 * NAME_MAX_SIZE];
    if (p->head->revision != 1) return DGM_OK;
    snprintf(text, sizeof text, "%s", *name);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) replace(text, words[i][0], words[i][1]);
    if (strstr(text, "encoder")) {
        replace(text, "multi_head", "self_attention");
    } else {
        replace(text, "masked_multi_head", "self_attention");
        replace(text, "multi_head", "attention");
    }
    return strcmp(text, *name) == 0 ? DGM_OK : keep_name(p->in, text, name, err);
}

// ---- variables ----------------------------------------------------------------------------------

static const struct {
    dgm_stored_type type;
    const char *name;
    size_t size;
} types[] = {
    {DGM_STORED_F32, "float32", 4}, {DGM_STORED_I8, "int8", 1},     {DGM_STORED_I16, "int16", 2},
    {DGM_STORED_I32, "int32", 4},   {DGM_STORED_F16, "float16", 2}, {DGM_STORED_BF16, "bfloat16", 2},
};

// Index into types of an element of that many bytes, as files before version 4 have it; -1: none.
static int type_of_size(int size)
{
    return size == 4 ? 0 : size == 2 ? 2 : size == 1 ? 1 : -1;
}

static dgm_status read_shape(dgm_reader *r, dgm_stored *t, dgm_error *err)
{
    const int rank = dgm_read_u8(r);
    DGM_FAIL_IF(rank > DGM_STORE_MAX_DIMS, err, DGM_ERR_FORMAT, "variable '%.100s' has %d dimensions", t->name,
                rank);
    t->n_dims = rank;
    for (int i = 0; i < rank; i++) {
        const uint32_t n = dgm_read_u32(r);
        DGM_FAIL_IF(n > INT32_MAX, err, DGM_ERR_FORMAT, "variable '%.100s' has a dimension of %u", t->name,
                    (unsigned)n);
        t->shape[i] = (int)n;
    }
    return DGM_OK;
}

static dgm_status read_variable(parser *p, dgm_error *err)
{
    dgm_reader *r = &p->r;
    dgm_stored t = {0};
    const size_t at = r->pos;
    DGM_TRY(read_string(r, &t.name, err));
    DGM_TRY(modern_name(p, &t.name, err));
    DGM_TRY(read_shape(r, &t, err));
    const bool sized = p->head->version < 4;
    const int code = dgm_read_u8(r), type = sized ? type_of_size(code) : code;
    uint64_t bytes = dgm_read_u32(r);
    DGM_FAIL_IF(r->bad, err, DGM_ERR_FORMAT, "the file ends in variable '%.100s' at byte %zu", t.name, at);
    DGM_FAIL_IF(type < 0 || type >= (int)(sizeof types / sizeof *types), err, DGM_ERR_FORMAT,
                "variable '%.100s' at byte %zu has the unknown type %d", t.name, at, code);
    if (sized) bytes *= (uint64_t)code;
    t.type = types[type].type;
    t.dtype = types[type].name;
    t.where = r->pos;
    t.data = bytes ? dgm_read_bytes(r, bytes) : (const uint8_t *)"";
    DGM_FAIL_IF(r->bad, err, DGM_ERR_FORMAT, "the file ends in the %llu bytes of variable '%.100s' at byte %zu",
                (unsigned long long)bytes, t.name, at);
    DGM_TRY(dgm_store_add(p->s, t, types[type].size, err));
    const dgm_stored *added = dgm_store_get(p->s, dgm_store_count(p->s) - 1);
    DGM_FAIL_IF(added->bytes != bytes, err, DGM_ERR_FORMAT,
                "variable '%.100s' at byte %zu has %llu bytes, and a shape of %zu", t.name, at,
                (unsigned long long)bytes, added->bytes);
    return DGM_OK;
}

static dgm_status add_alias(parser *p, const char *alias, const char *name, dgm_error *err)
{
    const int at = dgm_store_find(p->s, name);
    DGM_FAIL_IF(at < 0, err, DGM_ERR_FORMAT, "alias '%.100s' is of '%.100s', which is not there", alias, name);
    dgm_stored t = *dgm_store_get(p->s, (size_t)at);
    const size_t elements = (size_t)t.rows * (size_t)t.cols;
    t.name = alias;
    return dgm_store_add(p->s, t, elements ? t.bytes / elements : 1, err);
}

static dgm_status read_alias(parser *p, dgm_error *err)
{
    static const char *const ends[] = {"_scale", "_multiplier"}; // go with what they belong to
    const char *alias, *name, *kept;
    char both[2][NAME_MAX_SIZE + 16];
    DGM_TRY(read_string(&p->r, &alias, err));
    DGM_TRY(read_string(&p->r, &name, err));
    DGM_TRY(add_alias(p, alias, name, err));
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(both[0], sizeof both[0], "%s%s", alias, ends[i]);
        snprintf(both[1], sizeof both[1], "%s%s", name, ends[i]);
        if (dgm_store_find(p->s, both[1]) < 0 || dgm_store_find(p->s, both[0]) >= 0) continue;
        DGM_TRY(keep_name(p->in, both[0], &kept, err));
        DGM_TRY(add_alias(p, kept, both[1], err));
    }
    return DGM_OK;
}

// ---- the file -----------------------------------------------------------------------------------

static dgm_status read_head(parser *p, dgm_error *err)
{
    dgm_ct2_head *h = p->head;
    const uint32_t version = dgm_read_u32(&p->r);
    DGM_FAIL_IF(p->r.bad || version == 0, err, DGM_ERR_FORMAT, "not a model of CTranslate2 (byte 0)");
    DGM_FAIL_IF(version > DGM_CT2_VERSION, err, DGM_ERR_UNSUPPORTED,
                "binary version %u of CTranslate2 is not known (1 to %d are)", (unsigned)version, DGM_CT2_VERSION);
    *h = (dgm_ct2_head){.version = (int)version, .revision = 1};
    if (version == 1) return DGM_OK;
    const char *name;
    DGM_TRY(read_string(&p->r, &name, err));
    const uint32_t revision = dgm_read_u32(&p->r);
    DGM_FAIL_IF(p->r.bad || revision > INT16_MAX, err, DGM_ERR_FORMAT,
                "the revision of '%.60s' is damaged (byte %zu)", name, p->r.pos);
    h->revision = (int)revision;
    snprintf(h->specification, sizeof h->specification, "%s", name);
    return DGM_OK;
}

static dgm_status read_all(parser *p, dgm_error *err)
{
    DGM_TRY(read_head(p, err));
    const uint32_t variables = dgm_read_u32(&p->r);
    for (uint32_t i = 0; i < variables && !p->r.bad; i++) DGM_TRY(read_variable(p, err));
    const uint32_t aliases = p->head->version >= 3 ? dgm_read_u32(&p->r) : 0;
    DGM_FAIL_IF(p->r.bad, err, DGM_ERR_FORMAT, "the file ends at byte %zu, before all variables were there",
                p->r.size);
    for (uint32_t i = 0; i < aliases; i++) DGM_TRY(read_alias(p, err));
    DGM_FAIL_IF(dgm_reader_left(&p->r), err, DGM_ERR_FORMAT, "%zu bytes too many from byte %zu on",
                dgm_reader_left(&p->r), p->r.pos);
    return DGM_OK;
}

static dgm_status make_store(dgm_store **s, model_file **in, dgm_error *err)
{
    *s = NULL;
    *in = dgm_calloc(1, sizeof **in);
    if (!*in) return dgm_no_memory(err);
    return dgm_store_open(s, (dgm_store_container){.self = *in, .close = close_file}, err);
}

dgm_status dgm_ct2_open_file(dgm_store **s, dgm_ct2_head *head, dgm_mapfile *file, dgm_error *err)
{
    model_file *in;
    const dgm_status made = make_store(s, &in, err);
    if (made != DGM_OK) {
        dgm_mapfile_close(file);
        return made;
    }
    in->file = *file;
    *file = (dgm_mapfile){0};
    parser p = {.r = dgm_reader_over(in->file.data, in->file.size), .s = *s, .in = in, .head = head};
    const dgm_status st = read_all(&p, err);
    if (st != DGM_OK) dgm_store_close(s);
    return st;
}

dgm_status dgm_ct2_open_memory(dgm_store **s, dgm_ct2_head *head, const void *data, size_t size, dgm_error *err)
{
    model_file *in;
    DGM_TRY(make_store(s, &in, err));
    parser p = {.r = dgm_reader_over(data, size), .s = *s, .in = in, .head = head};
    const dgm_status st = read_all(&p, err);
    if (st != DGM_OK) dgm_store_close(s);
    return st;
}
