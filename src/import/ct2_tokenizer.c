// SPDX-License-Identifier: MIT
// The tokeniser of a CTranslate2 model (ct2.h), which its folder does not have: it is looked for in the folder and the
// one around it under the names that people give it: SentencePiece models, codes of byte-pair encoding,
// tokenizer.json.
#include <string.h>

#include "base/mem.h"
#include "import/ct2.h"

static dgm_status take_spm(dgm_ct2 *in, int side, const char *name, dgm_error *err)
{
    in->spm_name[side] = dgm_strdup(name);
    if (!in->spm_name[side]) return dgm_no_memory(err);
    if (!in->job->opens) return DGM_OK;
    const dgm_status st = in->job->opens(in->spm[side].data, in->spm[side].size, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", name);
    return st;
}

// A SentencePiece model among the files, in the model's folder first.
static dgm_status look_for_spm(dgm_ct2 *in, int side, dgm_error *err)
{
    static const char *const own[2] = {"source.spm", "target.spm"};
    static const char *const both[] = {"sentencepiece.model", "sentencepiece.bpe.model", "spiece.model", "spm.model",
                                       "tokenizer.model",     "source.spm"};
    for (int beside = 0; beside < 2; beside++)
        for (size_t i = 0; i <= sizeof both / sizeof *both; i++) {
            const char *name = i == 0 ? own[side] : both[i - 1];
            DGM_TRY(in->files->open(in->files->self, name, beside, &in->spm[side], err));
            if (in->spm[side].data) return take_spm(in, side, name, err);
        }
    return DGM_OK;
}

static dgm_status open_spm(dgm_ct2 *in, int side, dgm_error *err)
{
    const dgm_import_options *o = &in->job->options;
    const char *named = side && o->target_spm ? o->target_spm : o->source_spm;
    if (!named) return look_for_spm(in, side, err);
    DGM_TRY(dgm_mapfile_open(&in->spm[side], named, err));
    DGM_FAIL_IF(!in->spm[side].data, err, DGM_ERR_FORMAT, "'%s' is empty", named);
    return take_spm(in, side, named, err);
}

static bool same_spm(const dgm_ct2 *in)
{
    return in->spm[0].size == in->spm[1].size &&
           (!in->spm[0].data || memcmp(in->spm[0].data, in->spm[1].data, in->spm[0].size) == 0);
}

// Codes of subword-nmt or fastBPE.
static dgm_status open_codes(dgm_ct2 *in, dgm_error *err)
{
    static const char *const names[] = {"bpe.model", "bpe.codes", "codes.bpe", "bpe.code", "codes", "bpecodes"};
    const char *named = in->job->options.bpe;
    if (named) return dgm_bpe_codes_read(&in->codes, named, err);
    for (int beside = 0; beside < 2; beside++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            dgm_mapfile f = {0};
            DGM_TRY(in->files->open(in->files->self, names[i], beside, &f, err));
            if (!f.data) continue;
            const dgm_status st = dgm_bpe_codes_parse(&in->codes, (dgm_text){(const char *)f.data, f.size}, err);
            if (st != DGM_OK) dgm_error_prefix(err, "'%s': %s", in->files->label, names[i]);
            dgm_mapfile_close(&f);
            return st;
        }
    return DGM_OK;
}

static dgm_status open_json(dgm_ct2 *in, dgm_error *err)
{
    for (int beside = 0; beside < 2 && !in->tokenizer; beside++) {
        dgm_mapfile f = {0};
        DGM_TRY(in->files->open(in->files->self, "tokenizer.json", beside, &f, err));
        const dgm_status st = f.data ? dgm_json_parse(&in->tokenizer, f.data, f.size, err) : DGM_OK;
        if (st != DGM_OK) dgm_error_prefix(err, "'%s': tokenizer.json", in->files->label);
        dgm_mapfile_close(&f);
        if (st != DGM_OK) return st;
    }
    return DGM_OK;
}

dgm_status dgm_ct2_open_tokenisers(dgm_ct2 *in, bool *alike, dgm_error *err)
{
    const dgm_import_options *o = &in->job->options;
    DGM_FAIL_IF(o->bpe && (o->source_spm || o->target_spm), err, DGM_ERR_ARGUMENT,
                "--bpe and --source-spm or --target-spm: a model has one of them");
    DGM_FAIL_IF(o->target_spm && !o->source_spm, err, DGM_ERR_ARGUMENT, "--target-spm goes with --source-spm");
    *alike = true;
    if (!o->bpe) {
        DGM_TRY(open_spm(in, 0, err));
        DGM_TRY(open_spm(in, 1, err));
        DGM_FAIL_IF(!in->spm[0].data != !in->spm[1].data, err, DGM_ERR_ARGUMENT,
                    "'%s': a SentencePiece model for one side only; --source-spm and --target-spm name both",
                    in->files->label);
        *alike = same_spm(in);
    }
    if (in->spm[0].data) return DGM_OK;
    DGM_TRY(open_codes(in, err));
    if (in->about->moses) *alike = false; // rules of two languages
    if (!in->codes.merges.count) DGM_TRY(open_json(in, err));
    if (!in->codes.merges.count && !in->tokenizer)
        dgm_import_note(in->job,
                        "'%s' has no tokeniser (source.spm and target.spm, sentencepiece.model, bpe.codes, "
                        "tokenizer.json): text must be given as tokens with spaces between them; --source-spm, "
                        "--target-spm and --bpe name one",
                        in->files->label);
    return DGM_OK;
}
