// SPDX-License-Identifier: MIT
// A folder of Hugging Face transformers; see checkpoint.h.
#include "import/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static char *join_path(const char *dir, const char *name)
{
    const size_t room = strlen(dir) + strlen(name) + 2;
    char *path = dgm_malloc(room);
    if (path) snprintf(path, room, "%s/%s", dir, name);
    return path;
}

dgm_status dgm_checkpoint_spm(const dgm_import_job *job, const char *name, dgm_mapfile *f,
                              dgm_error *err)
{
    char *path = join_path(job->dir, name);
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
    char *path = join_path(dir, name);
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

dgm_status dgm_checkpoint_open(dgm_checkpoint *c, dgm_import_job *job, dgm_error *err)
{
    *c = (dgm_checkpoint){.job = job};
    DGM_TRY(dgm_safetensors_open(&c->tensors, job->dir, err));
    c->used = dgm_calloc(dgm_safetensors_count(c->tensors) + 1, sizeof *c->used);
    return c->used ? DGM_OK : dgm_no_memory(err); // closing takes what there is
}

void dgm_checkpoint_close(dgm_checkpoint *c)
{
    dgm_safetensors_close(&c->tensors);
    dgm_free(c->used);
    *c = (dgm_checkpoint){0};
}

dgm_status dgm_checkpoint_end(const dgm_checkpoint *c, const char *what, dgm_error *err)
{
    for (size_t i = 0; i < dgm_safetensors_count(c->tensors); i++)
        DGM_FAIL_IF(!c->used[i], err, DGM_ERR_UNSUPPORTED, "'%s': tensor '%s' is not part of %s",
                    c->job->dir, dgm_safetensors_get(c->tensors, i)->name, what);
    return DGM_OK;
}

bool dgm_checkpoint_has(const dgm_checkpoint *c, const char *name)
{
    return dgm_safetensors_find(c->tensors, name) >= 0;
}

bool dgm_checkpoint_take(dgm_checkpoint *c, const char *name)
{
    const int at = dgm_safetensors_find(c->tensors, name);
    if (at >= 0) c->used[at] = true;
    return at >= 0;
}

dgm_status dgm_checkpoint_get(dgm_checkpoint *c, const char *name, int rows, int cols,
                              const dgm_safe_tensor **out, dgm_error *err)
{
    const char *dir = c->job->dir;
    const bool vector = rows == 0;
    DGM_FAIL_IF(!dgm_checkpoint_take(c, name), err, DGM_ERR_FORMAT, "'%s': tensor '%s' is missing",
                dir, name);
    const dgm_safe_tensor *t =
        dgm_safetensors_get(c->tensors, (size_t)dgm_safetensors_find(c->tensors, name));
    DGM_FAIL_IF(t->type == DGM_SAFE_OTHER, err, DGM_ERR_UNSUPPORTED,
                "'%s': tensor '%s' is %s, expected F32, F16 or BF16", dir, name, t->dtype);
    char expected[32];
    snprintf(expected, sizeof expected, vector ? "[%d]" : "[%d, %d]", vector ? cols : rows, cols);
    DGM_FAIL_IF(t->n_dims != (vector ? 1 : 2) || t->cols != cols || (!vector && t->rows != rows),
                err, DGM_ERR_FORMAT,
                "'%s': tensor '%s' has %d dimensions, %d rows and %d columns, expected %s", dir,
                name, t->n_dims, t->rows, t->cols, expected);
    *out = t;
    return DGM_OK;
}

static void fetch(const void *source, float *out)
{
    dgm_safe_to_f32(source, out);
}

dgm_status dgm_checkpoint_add(dgm_checkpoint *c, const char *ours, const char *theirs, int rows,
                              int cols, dgm_error *err)
{
    static const int storage[] = {[DGM_SAFE_F32] = DGM_TYPE_F32,
                                  [DGM_SAFE_F16] = DGM_TYPE_F16,
                                  [DGM_SAFE_BF16] = DGM_TYPE_BF16};
    const dgm_safe_tensor *t;
    DGM_TRY(dgm_checkpoint_get(c, theirs, rows, cols, &t, err));
    return rows ? dgm_import_matrix(c->job, ours, rows, cols, storage[t->type], fetch, t, err)
                : dgm_import_vector(c->job, ours, cols, fetch, t, err);
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
