// SPDX-License-Identifier: MIT
// Vocabularies of model files for words of the tools; see splitter.h.
#include "tools/splitter.h"

#include "engine/engine_private.h"

dgm_status dgm_splitter_open(dgm_splitter *s, const char *subwords, dgm_side side, dgm_error *err)
{
    *s = (dgm_splitter){0};
    if (!subwords) return DGM_OK;
    DGM_TRY(dgm_modelfile_open(&s->file, subwords, err));
    dgm_status st = dgm_vocabulary_load(s->file, side, &s->vocab, NULL, err);
    s->wording.subwords = s->vocab;
    if (st != DGM_OK) {
        dgm_error_prefix(err, "%s", subwords);
        dgm_splitter_close(s);
    }
    return st;
}

void dgm_splitter_close(dgm_splitter *s)
{
    dgm_vocab_close(&s->vocab);
    dgm_gguf_close(&s->file);
}
