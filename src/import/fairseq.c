// SPDX-License-Identifier: MIT
// Imports checkpoints of fairseq: Transformers for translation between two languages.
//
//     NAME.pt                         settings and weights (fairseq_settings.c, torch_file.c)
//     dict.SOURCE.txt, dict.TARGET.txt  "token count" a line, behind <s> 0, <pad> 1, </s> 2, <unk> 3
//     source.spm and the like          what cuts text into tokens (token_vocab.c)
//
// The folder may be named, or the checkpoint in it. The decoder begins with </s>. Tensors have the names that Hugging
// Face's MarianMT took over (bart.c); older checkpoints stack queries, keys and values and number their norms.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "import/bart.h"
#include "import/bpe_codes.h"
#include "import/checkpoint.h"
#include "import/fairseq.h"
#include "import/token_vocab.h"
#include "import/torch_file.h"

enum { BOS = 0, PAD = 1, EOS = 2, UNK = 3 };

typedef struct reading {
    dgm_import_job *job;
    char *folder, *path; // of the checkpoint
    dgm_torch *file;
    dgm_fairseq_settings s;
    dgm_string_list dict[2];
    dgm_checkpoint weights;
} reading;

static dgm_status open_weights(reading *in, dgm_error *err)
{
    dgm_store *tensors = NULL;
    DGM_TRY(dgm_torch_open(&in->file, in->path, err));
    const dgm_py *model = dgm_py_get(dgm_torch_root(in->file), "model");
    DGM_FAIL_IF(!model, err, DGM_ERR_FORMAT, "'%s': no \"model\": not a checkpoint of fairseq",
                in->path);
    DGM_TRY(dgm_store_open(&tensors, (dgm_store_container){0}, err));
    dgm_status st = dgm_torch_tensors(in->file, model, "", tensors, err);
    if (st == DGM_OK) {
        st = dgm_fairseq_settings_read(&in->s, dgm_torch_root(in->file), tensors, err);
        if (st != DGM_OK) dgm_error_prefix(err, "'%s'", in->path);
    }
    if (st == DGM_OK) return dgm_checkpoint_open(&in->weights, in->job, tensors, err);
    dgm_store_close(&tensors);
    return st;
}

// ---- vocabulary --------------------------------------------------------------------------------

static dgm_status read_dict(reading *in, int side, dgm_error *err)
{
    const char *language = side ? in->s.target : in->s.source;
    const int rows = side ? in->s.c.decoder_vocab_size : in->s.c.vocab_size;
    char name[64];
    DGM_FAIL_IF(
        !language[0], err, DGM_ERR_FORMAT,
        "'%s': \"source_lang\" and \"target_lang\" are not said, so dict.*.txt cannot be found",
        in->path);
    snprintf(name, sizeof name, "dict.%s.txt", language);
    char *path = dgm_path_in(in->folder, name);
    if (!path) return dgm_no_memory(err);
    dgm_status st = dgm_fairseq_dict_read(&in->dict[side], path, err);
    if (st == DGM_OK && in->dict[side].count != (size_t)rows)
        st = dgm_fail(err, DGM_ERR_FORMAT,
                      "'%s': %zu tokens with the four that it does not list, but the embedding in "
                      "'%s' has %d rows",
                      path, in->dict[side].count, in->path, rows);
    dgm_free(path);
    return st;
}

static bool same_lists(const dgm_string_list *a, const dgm_string_list *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; i < a->count && same; i++) same = strcmp(a->items[i], b->items[i]) == 0;
    return same;
}

static dgm_status set_vocabularies(reading *in, dgm_error *err)
{
    dgm_token_vocab v = {.job = in->job,
                         .folder = in->folder,
                         .moses = in->s.moses,
                         .language = {in->s.source, in->s.target}};
    DGM_TRY(read_dict(in, 0, err));
    DGM_TRY(read_dict(in, 1, err));
    v.shared = same_lists(&in->dict[0], &in->dict[1]);
    for (int side = 0; side < 2; side++)
        v.side[side] = (dgm_token_side){.tokens = in->dict[side].items,
                                        .count = (int)in->dict[side].count,
                                        .size = (int)in->dict[side].count,
                                        .eos = EOS,
                                        .unk = UNK,
                                        .pad = PAD,
                                        .bos = BOS};
    DGM_TRY(dgm_token_vocab_set(&v, err));
    const int32_t never = PAD;
    dgm_gguf_set_i32(in->job->w, "dragoman.target.start", EOS);
    dgm_gguf_set_array(in->job->w, "dragoman.target.never", DGM_META_I32, &never, 1);
    return DGM_OK;
}

// ---- weights -----------------------------------------------------------------------------------

static dgm_status add_weights(reading *in, dgm_error *err)
{
    static const char *const unused[] = {"encoder.version", "decoder.version",
                                         "encoder.embed_positions._float_tensor",
                                         "decoder.embed_positions._float_tensor"};
    dgm_checkpoint *w = &in->weights;
    const bool old = dgm_checkpoint_has(w, "decoder.embed_out");
    const dgm_bart b = {.w = w,
                        .c = &in->s.c,
                        .prefix = "",
                        .shared = "encoder.embed_tokens.weight",
                        .head = old ? "decoder.embed_out" : "decoder.output_projection.weight"};
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++) dgm_checkpoint_take(w, unused[i]);
    DGM_TRY(dgm_bart_embeddings(&b, err));
    DGM_TRY(dgm_bart_positions(&b, err));
    DGM_TRY(dgm_bart_norms(&b, err));
    DGM_TRY(dgm_bart_layers(&b, err));
    return dgm_checkpoint_end(w, "a Transformer of fairseq", err);
}

static dgm_status read_all(reading *in, dgm_error *err)
{
    dgm_import_job *job = in->job;
    DGM_TRY(dgm_torch_find(in->job->dir, &in->folder, &in->path, err));
    DGM_TRY(open_weights(in, err));
    dgm_import_general(job, "transformer", in->s.source, in->s.target);
    DGM_TRY(set_vocabularies(in, err));
    dgm_bart_decoding(job->w, &in->s.c);
    dgm_gguf_set_bool(job->w, "dragoman.decode.drop_unk", false); // as fairseq writes it
    dgm_bart_keys(job->w, &in->s.c);
    DGM_TRY(add_weights(in, err));
    return dgm_import_write(job, err);
}

dgm_status dgm_import_fairseq(dgm_import_job *job, dgm_error *err)
{
    reading in = {.job = job};
    const dgm_status st = read_all(&in, err);
    dgm_checkpoint_close(&in.weights);
    dgm_torch_close(&in.file);
    for (int side = 0; side < 2; side++) dgm_string_list_free(&in.dict[side]);
    dgm_free(in.folder);
    dgm_free(in.path);
    return st;
}
