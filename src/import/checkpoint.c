// SPDX-License-Identifier: MIT
// Weights by name, folders of Hugging Face transformers; see checkpoint.h.
#include "import/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "import/safetensors.h"
#include "import/torch_file.h"

dgm_status dgm_checkpoint_spm(const dgm_import_job *job, const char *name, dgm_mapfile *f,
                              dgm_error *err)
{
    char *path = dgm_path_in(job->dir, name);
    if (!path) return dgm_no_memory(err);
    dgm_status st = dgm_mapfile_open(f, path, err);
    if (st == DGM_OK && job->opens && (st = job->opens(f->data, f->size, err)) != DGM_OK)
        dgm_error_prefix(err, "'%s'", path);
    dgm_free(path);
    return st;
}

dgm_status dgm_checkpoint_json(const char *dir, const char *name, dgm_need need, json_t **out,
                               dgm_error *err)
{
    char *path = dgm_path_in(dir, name);
    if (!path) return dgm_no_memory(err);
    dgm_status st = DGM_OK;
    if (need == DGM_REQUIRED || dgm_file_exists(path)) st = dgm_json_read(out, path, err);
    if (st == DGM_OK && *out && !json_is_object(*out)) {
        st = dgm_fail(err, DGM_ERR_FORMAT, "'%s': not a JSON object", path);
        json_decref(*out);
        *out = NULL;
    }
    dgm_free(path);
    return st;
}

// ---- weights -----------------------------------------------------------------------------------

struct dgm_kept_view {
    struct dgm_kept_view *next;
    dgm_view view;
};

dgm_status dgm_checkpoint_open(dgm_checkpoint *c, dgm_import_job *job, dgm_store *tensors,
                               dgm_error *err)
{
    *c = (dgm_checkpoint){.job = job, .tensors = tensors};
    c->used = dgm_calloc(dgm_store_count(c->tensors) + 1, sizeof *c->used);
    if (c->used) return DGM_OK;
    dgm_checkpoint_close(c);
    return dgm_no_memory(err);
}

dgm_status dgm_checkpoint_open_folder(dgm_checkpoint *c, dgm_import_job *job, dgm_error *err)
{
    dgm_store *tensors;
    *c = (dgm_checkpoint){0};
    DGM_TRY(dgm_safetensors_is_there(job->dir) || !dgm_pytorch_is_there(job->dir)
                ? dgm_safetensors_open(&tensors, job->dir, err)
                : dgm_pytorch_open(&tensors, job->dir, err));
    return dgm_checkpoint_open(c, job, tensors, err);
}

void dgm_checkpoint_close(dgm_checkpoint *c)
{
    dgm_store_close(&c->tensors);
    dgm_free(c->used);
    while (c->views) {
        struct dgm_kept_view *next = c->views->next;
        dgm_free(c->views);
        c->views = next;
    }
    *c = (dgm_checkpoint){0};
}

dgm_status dgm_checkpoint_end(const dgm_checkpoint *c, const char *what, dgm_error *err)
{
    for (size_t i = 0; i < dgm_store_count(c->tensors); i++)
        DGM_FAIL_IF(!c->used[i], err, DGM_ERR_UNSUPPORTED, "'%s': tensor '%s' is not part of %s",
                    c->job->dir, dgm_store_get(c->tensors, i)->name, what);
    return DGM_OK;
}

bool dgm_checkpoint_has(const dgm_checkpoint *c, const char *name)
{
    return dgm_store_find(c->tensors, name) >= 0;
}

bool dgm_checkpoint_take(dgm_checkpoint *c, const char *name)
{
    const int at = dgm_store_find(c->tensors, name);
    if (at >= 0) c->used[at] = true;
    return at >= 0;
}

dgm_status dgm_checkpoint_get(dgm_checkpoint *c, const char *name, int rows, int cols,
                              const dgm_stored **out, dgm_error *err)
{
    const char *dir = c->job->dir;
    const bool vector = rows == 0;
    DGM_FAIL_IF(!dgm_checkpoint_take(c, name), err, DGM_ERR_FORMAT, "'%s': tensor '%s' is missing",
                dir, name);
    const dgm_stored *t = dgm_store_get(c->tensors, (size_t)dgm_store_find(c->tensors, name));
    DGM_FAIL_IF(!dgm_stored_is_real(t->type), err, DGM_ERR_UNSUPPORTED,
                "'%s': tensor '%s' is %s, expected real numbers", dir, name, t->dtype);
    char expected[32];
    snprintf(expected, sizeof expected, vector ? "[%d]" : "[%d, %d]", vector ? cols : rows, cols);
    DGM_FAIL_IF(t->n_dims != (vector ? 1 : 2) || t->cols != cols || (!vector && t->rows != rows),
                err, DGM_ERR_FORMAT,
                "'%s': tensor '%s' has %d dimensions, %d rows and %d columns, expected %s", dir,
                name, t->n_dims, t->rows, t->cols, expected);
    *out = t;
    return DGM_OK;
}

static dgm_status fetch(const void *source, int first, int rows, float *out, dgm_error *err)
{
    return dgm_view_read(source, first, rows, out, err);
}

static dgm_status fetch_i8(const void *source, int first, int rows, int8_t *out, dgm_error *err)
{
    return dgm_view_read_i8(source, first, rows, out, err);
}

static void fetch_scales(const void *source, int rows, float *out)
{
    for (int r = 0; r < rows; r++) out[r] = dgm_view_factor(source, r);
}

static dgm_status keep_view(dgm_checkpoint *c, const dgm_view *v, const dgm_view **kept,
                            dgm_error *err)
{
    struct dgm_kept_view *k = dgm_malloc(sizeof *k);
    if (!k) return dgm_no_memory(err);
    *k = (struct dgm_kept_view){.next = c->views, .view = *v};
    c->views = k;
    *kept = &k->view;
    return DGM_OK;
}

dgm_status dgm_checkpoint_view(dgm_checkpoint *c, const char *ours, dgm_view v, bool vector,
                               dgm_error *err)
{
    static const int storage[] = {
        [DGM_STORED_F64] = DGM_TYPE_F32,   [DGM_STORED_F32] = DGM_TYPE_F32,
        [DGM_STORED_F16] = DGM_TYPE_F16,   [DGM_STORED_BF16] = DGM_TYPE_BF16,
        [DGM_STORED_I8] = DGM_TYPE_I8,     [DGM_STORED_I16] = DGM_TYPE_I16,
        [DGM_STORED_I32] = DGM_TYPE_F32,   [DGM_STORED_I64] = DGM_TYPE_F32,
        [DGM_STORED_OTHER] = DGM_TYPE_F32,
    };
    dgm_import_job *job = c->job;
    const dgm_view *kept = NULL;
    DGM_TRY(keep_view(c, &v, &kept, err));
    if (vector) return dgm_import_vector(job, ours, v.cols, fetch, kept, err);
    const bool as_stored = v.t->type == DGM_STORED_I8 && v.divisors &&
                           (job->storage < 0 || job->storage == DGM_TYPE_I8);
    return as_stored
               ? dgm_import_matrix_i8(job, ours, v.rows, v.cols, fetch_i8, fetch_scales, kept, err)
               : dgm_import_matrix(job, ours, v.rows, v.cols, storage[v.t->type], fetch, kept, err);
}

dgm_status dgm_checkpoint_add(dgm_checkpoint *c, const char *ours, const char *theirs, int rows,
                              int cols, dgm_error *err)
{
    const dgm_stored *t;
    DGM_TRY(dgm_checkpoint_get(c, theirs, rows, cols, &t, err));
    return dgm_checkpoint_view(c, ours, dgm_view_whole(c->tensors, t), rows == 0, err);
}

// ---- layers ------------------------------------------------------------------------------------

// Names of parts: our name and theirs, each with an ending.
typedef struct part {
    char ours[DGM_GGUF_MAX_NAME + 1], theirs[DGM_GGUF_MAX_NAME + 1];
} part;

static part part_of(const char *ours, const char *our_end, const char *theirs,
                    const char *their_end)
{
    part p;
    snprintf(p.ours, sizeof p.ours, "%s%s", ours, our_end);
    snprintf(p.theirs, sizeof p.theirs, "%s%s", theirs, their_end);
    return p;
}

dgm_status dgm_checkpoint_layer(dgm_checkpoint *c, const char *ours, const char *theirs, int rows,
                                int cols, dgm_error *err)
{
    const part weight = part_of(ours, ".weight", theirs, ".weight");
    const part bias = part_of(ours, ".bias", theirs, ".bias");
    DGM_TRY(dgm_checkpoint_add(c, weight.ours, weight.theirs, rows, cols, err));
    return dgm_checkpoint_add(c, bias.ours, bias.theirs, 0, rows ? rows : cols, err);
}

dgm_status dgm_checkpoint_attention(dgm_checkpoint *c, const char *ours, const char *theirs, int d,
                                    dgm_error *err)
{
    static const char *const names[4][2] = {
        {".q", ".q_proj"}, {".k", ".k_proj"}, {".v", ".v_proj"}, {".o", ".out_proj"}};
    for (int i = 0; i < 4; i++) {
        const part p = part_of(ours, names[i][0], theirs, names[i][1]);
        DGM_TRY(dgm_checkpoint_layer(c, p.ours, p.theirs, d, d, err));
    }
    const part norm = part_of(ours, ".norm", theirs, "_layer_norm");
    return dgm_checkpoint_layer(c, norm.ours, norm.theirs, 0, d, err);
}

dgm_status dgm_checkpoint_ffn(dgm_checkpoint *c, const char *ours, const char *theirs, int d, int f,
                              dgm_error *err)
{
    const part in = part_of(ours, ".in", theirs, ".fc1");
    const part out = part_of(ours, ".out", theirs, ".fc2");
    DGM_TRY(dgm_checkpoint_layer(c, in.ours, in.theirs, f, d, err));
    return dgm_checkpoint_layer(c, out.ours, out.theirs, d, f, err);
}
