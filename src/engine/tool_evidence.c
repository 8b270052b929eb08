// SPDX-License-Identifier: MIT
// Evidence files: the n-best list of another system, read line by line beside the text that it
// belongs to. One source line's translations are in memory at a time (and the first of the next).
#include <string.h>

#include "base/mem.h"
#include "base/textfile.h"
#include "dragoman/tools.h"
#include "phrase/nbest.h"
#include "text/tokenize.h"

struct dgm_evidence_file {
    dgm_textin *in;
    bool detokenize;
    dgm_language language;
    bool ahead, ended; // `next` holds an entry of a later line; nothing is left in the file
    dgm_nbest_entry next;
    uint64_t seen; // one past the last line that had translations
    dgm_writer text; // of all guesses of a line
    dgm_guess *guesses;
    size_t count, cap;
};

void dgm_evidence_close(dgm_evidence_file **file)
{
    if (!file || !*file) return;
    dgm_evidence_file *f = *file;
    *file = NULL;
    dgm_textin_close(&f->in);
    dgm_writer_free(&f->text);
    dgm_free(f->guesses);
    dgm_free(f);
}

dgm_status dgm_evidence_open(dgm_evidence_file **file, const char *path,
                             const dgm_evidence_options *options, dgm_error *err)
{
    dgm_evidence_file *f = *file = dgm_calloc(1, sizeof *f);
    if (!f) return dgm_no_memory(err);
    if (options && options->detokenize) {
        f->detokenize = true;
        f->language = dgm_language_of(dgm_text_of(options->detokenize));
    }
    const dgm_status st = dgm_textin_open(&f->in, path, err);
    if (st != DGM_OK) dgm_evidence_close(file);
    return st;
}

static dgm_status wrong(const dgm_evidence_file *f, dgm_status st, dgm_error *err)
{
    if (st != DGM_OK && st != DGM_ERR_MEMORY)
        dgm_error_prefix(err, "%s:%llu", dgm_textin_path(f->in),
                         (unsigned long long)dgm_textin_line(f->in));
    return st;
}

// One line of the file into f->next.
static dgm_status look_ahead(dgm_evidence_file *f, dgm_error *err)
{
    const char *line = NULL;
    size_t size = 0;
    bool more = false;
    DGM_TRY(dgm_textin_next(f->in, &line, &size, &more, err));
    f->ended = !more;
    if (!more) return DGM_OK;
    DGM_TRY(wrong(f, dgm_nbest_parse((dgm_text){line, size}, &f->next, err), err));
    if (f->next.line + 1 < f->seen)
        return wrong(f,
                     dgm_fail(err, DGM_ERR_FORMAT, "translations of line %llu behind those of %llu",
                              (unsigned long long)f->next.line, (unsigned long long)f->seen - 1),
                     err);
    f->ahead = true;
    return DGM_OK;
}

// f->next becomes a guess. Texts move while they are collected: an offset stands for the address.
static dgm_status take(dgm_evidence_file *f, dgm_error *err)
{
    const size_t begin = f->text.size;
    DGM_TRY(dgm_grow(&f->guesses, &f->cap, f->count + 1, sizeof *f->guesses, err));
    if (f->detokenize)
        DGM_TRY(dgm_moses_detokenize_line(f->next.text, f->language, true, &f->text, err));
    else
        dgm_write_bytes(&f->text, f->next.text.data, f->next.text.size);
    if (f->text.failed) return dgm_no_memory(err);
    f->guesses[f->count++] = (dgm_guess){.size = f->text.size - begin, .score = f->next.score};
    f->seen = f->next.line + 1;
    f->ahead = false;
    return DGM_OK;
}

dgm_status dgm_evidence_next(dgm_evidence_file *f, uint64_t line, dgm_evidence *evidence,
                             dgm_error *err)
{
    f->count = f->text.size = 0;
    for (;;) {
        if (!f->ahead && !f->ended) DGM_TRY(look_ahead(f, err));
        if (f->ended || f->next.line > line) break;
        if (f->next.line == line)
            DGM_TRY(take(f, err));
        else
            f->ahead = false; // of a line that nobody asked for
    }
    DGM_FAIL_IF(f->ended && f->count == 0, err, DGM_ERR_FORMAT,
                "%s:%llu: the evidence ends before line %llu of the input (line numbers in it "
                "count from 0)",
                dgm_textin_path(f->in), (unsigned long long)dgm_textin_line(f->in),
                (unsigned long long)line + 1);
    const char *at = (const char *)f->text.data;
    for (size_t i = 0; i < f->count; at += f->guesses[i++].size) f->guesses[i].text = at;
    *evidence = (dgm_evidence){.guesses = f->guesses, .count = f->count};
    return DGM_OK;
}

dgm_status dgm_evidence_finish(dgm_evidence_file *f, uint64_t lines, dgm_error *err)
{
    if (!f->ahead && !f->ended) DGM_TRY(look_ahead(f, err));
    DGM_FAIL_IF(!f->ended, err, DGM_ERR_FORMAT,
                "%s:%llu: translations of line %llu, but the input has %llu lines",
                dgm_textin_path(f->in), (unsigned long long)dgm_textin_line(f->in),
                (unsigned long long)f->next.line, (unsigned long long)lines);
    return DGM_OK;
}

// The next line that has translations, whichever it is: for who reads nothing beside the file.
dgm_status dgm_evidence_any(dgm_evidence_file *f, uint64_t *line, int *more, dgm_error *err)
{
    if (!f->ahead && !f->ended) DGM_TRY(look_ahead(f, err));
    *more = !f->ended;
    *line = f->ended ? f->seen : f->next.line;
    return DGM_OK;
}
