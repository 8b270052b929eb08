// SPDX-License-Identifier: MIT
// Packed layers of a model file; see packed.h and docs/internals/FORMAT.md, 1.3. Which tensors are stacked into one
// layer is the model's business: it is loaded once, and tells.
#include "tools/packed.h"

#include <string.h>

#include "backend/device.h"
#include "base/mem.h"
#include "format/modelfile.h"
#include "format/rewrite.h"
#include "model/model.h"

typedef struct layer {
    dgm_linear_part *parts;
    int count;
} layer;

typedef struct layers {
    const dgm_gguf *file;
    layer *items;
    size_t count, cap;
} layers;

dgm_status dgm_packed_check(const char *level, dgm_error *err)
{
    return dgm_packed_layout(level, err) ? DGM_OK : DGM_ERR_ARGUMENT;
}

// Layers of stored i8 alone, of tensors of the file, and one for every tensor that it begins with.
static bool is_packable(const layers *l, const dgm_linear_part *parts, int count)
{
    int64_t rows = 0;
    for (int i = 0; i < count; i++) {
        const dgm_tensor *t = parts[i].weight;
        if (t->type != DGM_TYPE_I8 || !t->scale || dgm_gguf_find_tensor(l->file, t->name) != t) return false;
        rows += t->rows;
    }
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].parts[0].weight == parts[0].weight) return false;
    return rows <= INT32_MAX && dgm_packed_size((int)rows, parts[0].weight->cols) <= INT32_MAX;
}

static dgm_status take_layer(void *cookie, const dgm_linear_part *parts, int count, dgm_error *err)
{
    layers *l = cookie;
    if (!is_packable(l, parts, count)) return DGM_OK;
    DGM_TRY(dgm_grow(&l->items, &l->cap, l->count + 1, sizeof *l->items, err));
    layer *to = &l->items[l->count];
    *to = (layer){dgm_malloc((size_t)count * sizeof *parts), count};
    if (!to->parts) return dgm_no_memory(err);
    l->count++;
    memcpy(to->parts, parts, (size_t)count * sizeof *parts);
    for (int i = 0; i < count; i++) to->parts[i].bias = NULL; // not packed, and the model's
    return DGM_OK;
}

static dgm_status produce(void *arg, void *out, size_t bytes, dgm_error *err)
{
    const layer *l = arg;
    memset(out, 0, bytes);
    return dgm_packed_fill(l->parts, l->count, out, err);
}

static dgm_status add_layers(dgm_gguf_writer *out, const layers *l, uint64_t *bytes, dgm_error *err)
{
    for (int i = 0; i < dgm_gguf_tensor_count(l->file); i++) dgm_rewrite_copy(out, dgm_gguf_tensor(l->file, i));
    for (size_t i = 0; i < l->count; i++) {
        layer *it = &l->items[i];
        char name[DGM_GGUF_MAX_NAME + 1];
        int rows = 0;
        for (int k = 0; k < it->count; k++) rows += it->parts[k].weight->rows;
        const int size = (int)dgm_packed_size(rows, it->parts[0].weight->cols);
        DGM_TRY(dgm_rewrite_name(name, it->parts[0].weight->name, DGM_PACKED, err));
        dgm_gguf_add_produced(out, name, DGM_TYPE_I8, 1, &size, produce, it);
        *bytes += (uint64_t)size;
    }
    return DGM_OK;
}

static dgm_status write_layers(layers *l, const char *path, const char *level, uint64_t *bytes, dgm_error *err)
{
    dgm_gguf_writer *out = NULL;
    DGM_FAIL_IF(l->count == 0, err, DGM_ERR_UNSUPPORTED, "no layer of the model is made of i8 weights alone");
    DGM_TRY(dgm_rewrite_open(&out, l->file, NULL, err));
    dgm_gguf_set_string(out, DGM_PACKED_LAYOUT, dgm_packed_layout(level, err));
    return dgm_rewrite_finish(&out, path, add_layers(out, l, bytes, err), err);
}

dgm_status dgm_packed_write(const char *path, const char *level, uint64_t *bytes, dgm_error *err)
{
    dgm_gguf *file = NULL;
    dgm_backend *b = NULL;
    layers l = {0};
    *bytes = 0;
    dgm_status st = dgm_packed_check(level, err);
    if (st == DGM_OK) st = dgm_modelfile_open(&file, path, err);
    if (st == DGM_OK) st = dgm_backend_open(&b, "cpu", NULL, err);
    l.file = file;
    if (st == DGM_OK) st = dgm_model_layers(b, file, DGM_PRECISION_I8, take_layer, &l, err);
    if (st == DGM_OK) st = write_layers(&l, path, level, bytes, err);
    for (size_t i = 0; i < l.count; i++) dgm_free(l.items[i].parts);
    dgm_free(l.items);
    dgm_backend_close(&b);
    dgm_gguf_close(&file);
    return st;
}
