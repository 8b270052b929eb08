// SPDX-License-Identifier: MIT
// What `dragoman export ctranslate2` keeps in config.json under "dragoman" (export/export_ct2_files.c): settings that
// the format has no place for. Folders of other programs have none of it.
#include <string.h>

#include "base/mem.h"
#include "import/ct2.h"

enum { TOKENS_MAX = 65536, LENGTH_MAX = 65536, BEAM_MAX = 4096 };

const json_t *dgm_ct2_kept(const dgm_ct2 *in)
{
    return json_object_get(in->config, "dragoman");
}

dgm_status dgm_ct2_kept_tokens(const dgm_ct2 *in, int side, const char *key, int32_t **ids, size_t *count,
                               dgm_error *err)
{
    const json_t *list = json_object_get(dgm_ct2_kept(in), key);
    *ids = NULL;
    *count = json_array_size(list);
    if (!list) return DGM_OK;
    DGM_FAIL_IF(!json_is_array(list) || *count == 0 || *count > TOKENS_MAX, err, DGM_ERR_FORMAT,
                "'%s/config.json': \"%s\" is not a list of tokens", in->files->label, key);
    *ids = dgm_malloc(*count * sizeof **ids);
    if (!*ids) return dgm_no_memory(err);
    for (size_t i = 0; i < *count; i++) {
        const char *token = json_string_value(json_array_get(list, i));
        (*ids)[i] = token ? dgm_ct2_id(in, side, token) : -1;
        if ((*ids)[i] >= 0) continue;
        dgm_free(*ids);
        *ids = NULL;
        return dgm_fail(err, DGM_ERR_FORMAT, "'%s/config.json': \"%s\" holds '%.60s', which is not in the vocabulary",
                        in->files->label, key, token ? token : "something else than text");
    }
    return DGM_OK;
}

static dgm_status set_count(const dgm_ct2 *in, const char *key, const char *ours, int most, dgm_error *err)
{
    int64_t v = 0;
    if (!dgm_json_has(dgm_ct2_kept(in), key)) return DGM_OK;
    DGM_TRY(dgm_json_int(dgm_ct2_kept(in), key, 1, most, &v, err));
    dgm_gguf_set_u32(in->job->w, ours, (uint32_t)v);
    return DGM_OK;
}

static dgm_status set_real(const dgm_ct2 *in, const char *key, const char *ours, double least, double most,
                           dgm_error *err)
{
    double v = 0;
    if (!dgm_json_has(dgm_ct2_kept(in), key)) return DGM_OK;
    DGM_TRY(dgm_json_real(dgm_ct2_kept(in), key, least, most, &v, err));
    if (v != 0 || strcmp(key, "length_penalty") == 0) dgm_gguf_set_f32(in->job->w, ours, (float)v); // 0 is usual
    return DGM_OK;
}

static dgm_status set_flag(const dgm_ct2 *in, const char *key, const char *ours, dgm_error *err)
{
    bool v = false;
    if (!dgm_json_has(dgm_ct2_kept(in), key)) return DGM_OK;
    DGM_TRY(dgm_json_bool(dgm_ct2_kept(in), key, &v, err));
    if (v || strcmp(key, "allow_unk") == 0) dgm_gguf_set_bool(in->job->w, ours, v);
    return DGM_OK;
}

static dgm_status set_all(const dgm_ct2 *in, dgm_error *err)
{
    const char *finish = NULL;
    int policy = 0, first = 0;
    DGM_FAIL_IF(!json_is_object(dgm_ct2_kept(in)), err, DGM_ERR_FORMAT, "\"dragoman\" is not an object");
    DGM_TRY(set_count(in, "beam", "dragoman.decode.beam", BEAM_MAX, err));
    DGM_TRY(set_count(in, "max_length", "dragoman.decode.max_length", LENGTH_MAX, err));
    DGM_TRY(set_count(in, "max_source", "dragoman.decode.max_source", LENGTH_MAX, err));
    DGM_TRY(set_real(in, "length_penalty", "dragoman.decode.length_penalty", -10, 10, err));
    DGM_TRY(set_real(in, "word_penalty", "dragoman.decode.word_penalty", -100, 100, err));
    DGM_TRY(set_real(in, "max_length_factor", "dragoman.decode.max_length_factor", 0, 1000, err));
    DGM_TRY(set_flag(in, "allow_unk", "dragoman.decode.allow_unk", err));
    DGM_TRY(set_flag(in, "drop_unk", "dragoman.decode.drop_unk", err));
    DGM_TRY(set_flag(in, "tags_last", "dragoman.source.tags_last", err));
    DGM_TRY(dgm_json_string(dgm_ct2_kept(in), "finish", &finish, err));
    DGM_FAIL_IF(finish && !dgm_finish_parse(finish, &policy, &first), err, DGM_ERR_FORMAT,
                "\"finish\" is '%.60s', which is no finishing policy", finish);
    if (finish) dgm_gguf_set_string(in->job->w, "dragoman.decode.finish", finish);
    return DGM_OK;
}

dgm_status dgm_ct2_set_kept(const dgm_ct2 *in, dgm_error *err)
{
    int32_t *never = NULL;
    size_t count = 0;
    if (!dgm_ct2_kept(in)) return DGM_OK;
    const dgm_status st = set_all(in, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s/config.json'", in->files->label);
    if (st != DGM_OK) return st;
    DGM_TRY(dgm_ct2_kept_tokens(in, 1, "never", &never, &count, err));
    if (never) dgm_gguf_set_array(in->job->w, "dragoman.target.never", DGM_META_I32, never, count);
    dgm_free(never);
    return DGM_OK;
}
