// SPDX-License-Identifier: MIT
// A model file written again with changes; see rewrite.h. The data and the scales of an integer
// matrix are two tensors that convert the same numbers twice.
#include "format/rewrite.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

dgm_status dgm_rewrite_open(dgm_gguf_writer **out, const dgm_gguf *g, const char *producer,
                            dgm_error *err)
{
    DGM_TRY(dgm_gguf_writer_open(out, err));
    dgm_gguf_set_copies(*out, g);
    dgm_gguf_unset(*out, DGM_PACKED_LAYOUT);
    if (producer) dgm_gguf_set_string(*out, "dragoman.producer", producer);
    return DGM_OK;
}

dgm_status dgm_rewrite_finish(dgm_gguf_writer **out, const char *path, dgm_status st,
                              dgm_error *err)
{
    if (st == DGM_OK) st = dgm_gguf_write(*out, path, err);
    dgm_gguf_writer_close(out);
    return st;
}

// ---- copies ------------------------------------------------------------------------------------

dgm_status dgm_rewrite_check(const dgm_gguf *g, dgm_error *err)
{
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        DGM_FAIL_IF(!t->data, err, DGM_ERR_UNSUPPORTED,
                    "tensor '%s' has a type that this program cannot copy", t->name);
    }
    return DGM_OK;
}

void dgm_rewrite_copy(dgm_gguf_writer *out, const dgm_tensor *t)
{
    if (dgm_rewrite_is_packed(t)) return;
    dgm_gguf_add_tensor(out, t->name, (dgm_tensor_type)t->type, t->n_dims, t->shape, t->data);
}

bool dgm_rewrite_is_scale(const dgm_gguf *g, const dgm_tensor *t)
{
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++)
        if (dgm_gguf_tensor(g, i)->scale == t) return true;
    return false;
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

bool dgm_rewrite_is_input_scale(const dgm_tensor *t)
{
    return ends_with(t->name, DGM_INPUT_SCALE);
}

bool dgm_rewrite_is_packed(const dgm_tensor *t)
{
    return ends_with(t->name, DGM_PACKED) && t->type == DGM_TYPE_I8 && t->n_dims == 1;
}

bool dgm_rewrite_is_integer(int type)
{
    return type == DGM_TYPE_I8 || type == DGM_TYPE_I16;
}

// ---- conversions -------------------------------------------------------------------------------

static dgm_status fill(const dgm_rewrite_item *it, float *real, dgm_error *err)
{
    if (it->fill) return it->fill(it->cookie, it->t, real, err);
    dgm_tensor_to_f32(it->t, real);
    return DGM_OK;
}

// Either of data and scale may be NULL: a spare is used.
static dgm_status convert(dgm_rewrite_item *it, void *data, float *scale, dgm_error *err)
{
    const dgm_tensor *t = it->t;
    const size_t n = (size_t)t->rows * (size_t)t->cols;
    const size_t scales = (size_t)dgm_convert_scales(it->type, t->rows);
    float *real = dgm_malloc(n * sizeof *real);
    void *spare = data ? NULL : dgm_malloc(n * dgm_tensor_type_size(it->type));
    float *spare_scale = scale || !scales ? NULL : dgm_malloc(scales * sizeof *spare_scale);
    dgm_status st = DGM_OK;
    if (!real || (!data && !spare) || (!scale && scales && !spare_scale)) st = dgm_no_memory(err);
    if (st == DGM_OK) st = fill(it, real, err);
    if (st == DGM_OK)
        st = dgm_convert(t->name, real, t->rows, t->cols, it->type, data ? data : spare,
                         scale ? scale : spare_scale, it->errors, err);
    if (st == DGM_OK) it->errors = NULL;
    dgm_free(real);
    dgm_free(spare);
    dgm_free(spare_scale);
    return st;
}

static dgm_status produce_data(void *arg, void *out, size_t bytes, dgm_error *err)
{
    (void)bytes;
    return convert(arg, out, NULL, err);
}

static dgm_status produce_scale(void *arg, void *out, size_t bytes, dgm_error *err)
{
    (void)bytes;
    return convert(arg, NULL, out, err);
}

dgm_status dgm_rewrite_measure(dgm_rewrite_item *it, dgm_error *err)
{
    return convert(it, NULL, NULL, err);
}

dgm_status dgm_rewrite_name(char text[DGM_GGUF_MAX_NAME + 1], const char *name, const char *ending,
                            dgm_error *err)
{
    const int n = snprintf(text, DGM_GGUF_MAX_NAME + 1, "%s%s", name, ending);
    DGM_FAIL_IF(n > DGM_GGUF_MAX_NAME, err, DGM_ERR_UNSUPPORTED,
                "the name of tensor '%.60s...' is too long for a scale beside it", name);
    return DGM_OK;
}

dgm_status dgm_rewrite_add(dgm_gguf_writer *out, dgm_rewrite_item *it, dgm_error *err)
{
    const dgm_tensor *t = it->t;
    const int scales = dgm_convert_scales(it->type, t->rows);
    char name[DGM_GGUF_MAX_NAME + 1];
    dgm_gguf_add_produced(out, t->name, (dgm_tensor_type)it->type, t->n_dims, t->shape,
                          produce_data, it);
    if (!scales) return DGM_OK;
    DGM_TRY(dgm_rewrite_name(name, t->name, ".scale", err));
    dgm_gguf_add_produced(out, name, DGM_TYPE_F32, 1, &scales, produce_scale, it);
    return DGM_OK;
}
