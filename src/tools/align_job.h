// SPDX-License-Identifier: MIT
// Aligning two files: what `align` and `shortlist` share. Reads the text into a bitext (words, or a
// model's subwords), trains both directions and keeps their best links.
#ifndef DGM_TOOLS_ALIGN_JOB_H
#define DGM_TOOLS_ALIGN_JOB_H

#include "dragoman/tools.h"
#include "format/gguf.h"
#include "align/align.h"
#include "align/bitext.h"
#include "align/links.h"
#include "text/vocab.h"

typedef struct dgm_align_job {
    dgm_align_options o;
    dgm_align_report report;
    dgm_align_params params;
    dgm_symmetrize method;
    dgm_pool *pool;
    dgm_gguf *file;      // with subwords
    dgm_vocab *vocab[2]; // with subwords; [1] is NULL when the target's is the source's
    dgm_bitext *b;
    int16_t *link[2]; // of the two directions
} dgm_align_job;

// Checks the options and does all the work; job is complete or closed. On success the caller
// closes it.
dgm_status dgm_align_job_run(dgm_align_job *job, const char *source, const char *target,
                             const dgm_align_options *options, dgm_error *err);
void dgm_align_job_close(dgm_align_job *job); // accepts all zero

dgm_links dgm_align_job_links(const dgm_align_job *job);
// Spelling of a word of the bitext.
dgm_text dgm_align_job_spell(const dgm_align_job *job, int side, uint32_t word);

#endif
