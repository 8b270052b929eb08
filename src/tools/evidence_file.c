// SPDX-License-Identifier: MIT
// Evidence files: n-best lists or lattices of another system, read line by line beside the text
// that they belong to. One source line's evidence is in memory at a time (of a list also the first
// translation of the next line). Which of both a file is, its first line with text tells: only
// lists have "|||" in it.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "base/textfile.h"
#include "dragoman/tools.h"
#include "lattice/candidate_list.h"
#include "lattice/nbest.h"
#include "text/tokenize.h"

struct dgm_evidence_file {
    char *path;
    dgm_lines *in;              // of a list, else NULL
    dgm_lattice_file *lattices; // of lattices, else NULL
    dgm_lattice *lattice;       // the next one, if `ahead`
    bool detokenize;
    dgm_language language;
    size_t nbest; // texts that a lattice becomes; 0: it stays one
    dgm_text first;    // line of a list that was read when it was opened
    bool first_read;   // and not looked at yet
    bool ahead, ended; // `next` holds an entry of a later line; nothing is left in the file
    dgm_nbest_entry next;
    uint64_t seen;   // one past the last line that had translations
    dgm_candidate_list list; // of a line; of a lattice that stays one, its text
};

void dgm_evidence_close(dgm_evidence_file **file)
{
    if (!file || !*file) return;
    dgm_evidence_file *f = *file;
    *file = NULL;
    dgm_lines_close(&f->in);
    dgm_lattice_file_close(&f->lattices);
    dgm_lattice_close(&f->lattice);
    dgm_candidate_list_free(&f->list);
    dgm_free(f->path);
    dgm_free(f);
}

static bool has_bars(const char *line, size_t size)
{
    for (size_t i = 0; i + 3 <= size; i++)
        if (memcmp(line + i, "|||", 3) == 0) return true;
    return false;
}

// Opens the file and reads up to the first line with text. A list goes on from there; an empty file
// is one.
static dgm_status look(dgm_evidence_file *f, bool *list, dgm_error *err)
{
    *list = true;
    DGM_TRY(dgm_lines_open(&f->in, f->path, err));
    for (;;) {
        bool more = false;
        DGM_TRY(dgm_lines_next(f->in, &f->first.data, &f->first.size, &more, err));
        if (!more) return DGM_OK;
        const dgm_text text = dgm_text_trim(f->first);
        *list = has_bars(text.data, text.size);
        f->first_read = *list;
        if (*list || (text.size > 0 && text.data[0] != '#')) return DGM_OK;
    }
}

void dgm_evidence_options_init(dgm_evidence_options *out, size_t size)
{
    const dgm_evidence_options own = {0};
    dgm_sized_give(out, size, &own, sizeof own);
}

dgm_status dgm_evidence_open(dgm_evidence_file **file, const char *path,
                             const dgm_evidence_options *options, dgm_error *err)
{
    *file = NULL;
    dgm_evidence_options own = {0};
    DGM_TRY(dgm_sized_take(&own, sizeof own, options, "dgm_evidence_options",
                           "dgm_evidence_options_default", err));
    dgm_evidence_file *f = *file = dgm_calloc(1, sizeof *f);
    if (!f) return dgm_no_memory(err);
    if (own.detokenize) {
        f->detokenize = true;
        f->language = dgm_language_of(dgm_text_of(own.detokenize));
    }
    f->nbest = own.nbest;
    bool list = true;
    f->path = dgm_strdup(path);
    dgm_status st = f->path ? look(f, &list, err) : dgm_no_memory(err);
    if (st == DGM_OK && !list && f->detokenize)
        st = dgm_fail(err, DGM_ERR_ARGUMENT,
                      "%s: words of a lattice are glued by its marks, not detokenised", path);
    if (st == DGM_OK && !list) {
        dgm_lines_close(&f->in);
        st = dgm_lattice_file_open(&f->lattices, path, NULL, false, true, err);
    }
    if (st != DGM_OK) dgm_evidence_close(file);
    return st;
}

static dgm_status wrong(const dgm_evidence_file *f, dgm_status st, dgm_error *err)
{
    if (st != DGM_OK && st != DGM_ERR_MEMORY)
        dgm_error_prefix(err, "%s:%llu", dgm_lines_name(f->in),
                         (unsigned long long)dgm_lines_number(f->in));
    return st;
}

// The next lattice of the file: they are numbered in their order.
static dgm_status next_lattice(dgm_evidence_file *f, dgm_error *err)
{
    dgm_lattice_close(&f->lattice);
    DGM_TRY(dgm_lattice_file_next(f->lattices, &f->lattice, err));
    f->ahead = f->lattice != NULL;
    f->ended = !f->ahead;
    f->next.line = f->seen;
    f->seen += f->ahead;
    return DGM_OK;
}

// One line of the file into f->next.
static dgm_status look_ahead(dgm_evidence_file *f, dgm_error *err)
{
    const char *line = NULL;
    size_t size = 0;
    bool more = f->first_read;
    if (f->lattices) return next_lattice(f, err);
    if (more)
        line = f->first.data, size = f->first.size;
    else
        DGM_TRY(dgm_lines_next(f->in, &line, &size, &more, err));
    f->first_read = false;
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

// f->next becomes a candidate.
static dgm_status take(dgm_evidence_file *f, dgm_error *err)
{
    dgm_writer *text = &f->list.text;
    if (f->detokenize)
        DGM_TRY(dgm_moses_detokenize_line(f->next.text, f->language, true, text, err));
    else
        dgm_write_bytes(text, f->next.text.data, f->next.text.size);
    DGM_TRY(dgm_candidate_list_add(&f->list, f->next.score, err));
    f->seen = f->next.line + 1;
    f->ahead = false;
    return DGM_OK;
}

// The lattice becomes candidates, or text of its own.
static dgm_status take_lattice(dgm_evidence_file *f, dgm_error *err)
{
    f->ahead = false;
    if (f->nbest) return dgm_candidate_list_paths(&f->list, f->lattice, f->nbest, err);
    return dgm_lattice_write(f->lattice, DGM_LATTICE_NATIVE, &f->list.text, err);
}

// "file:123", or the file alone.
static const char *place(const dgm_evidence_file *f, char *buffer, size_t size)
{
    if (f->in && dgm_lines_number(f->in))
        snprintf(buffer, size, "%.200s:%llu", f->path, (unsigned long long)dgm_lines_number(f->in));
    else
        snprintf(buffer, size, "%.200s", f->path);
    return buffer;
}

dgm_status dgm_evidence_next_sized(dgm_evidence_file *f, uint64_t line, dgm_evidence *evidence,
                                   size_t size, dgm_error *err)
{
    char where[256];
    dgm_candidate_list_clear(&f->list);
    for (;;) {
        if (!f->ahead && !f->ended) DGM_TRY(look_ahead(f, err));
        if (f->ended || f->next.line > line) break;
        if (f->next.line == line && f->lattices) {
            DGM_TRY(take_lattice(f, err));
            break;
        } else if (f->next.line == line)
            DGM_TRY(take(f, err));
        else
            f->ahead = false; // of a line that nobody asked for
    }
    DGM_FAIL_IF(f->ended && f->list.count == 0 && !f->list.text.size, err, DGM_ERR_FORMAT,
                "%s: the evidence ends before line %llu of the input%s",
                place(f, where, sizeof where), (unsigned long long)line + 1,
                f->in ? " (line numbers in it count from 0)" : "");
    dgm_evidence own = dgm_candidate_list_evidence(&f->list);
    if (f->lattices && f->nbest == 0)
        own = (dgm_evidence){.lattice = (const char *)f->list.text.data,
                             .lattice_size = f->list.text.size};
    dgm_sized_give(evidence, size, &own, sizeof own);
    return DGM_OK;
}

dgm_status dgm_evidence_finish(dgm_evidence_file *f, uint64_t lines, dgm_error *err)
{
    char where[256];
    if (!f->ahead && !f->ended) DGM_TRY(look_ahead(f, err));
    DGM_FAIL_IF(!f->ended, err, DGM_ERR_FORMAT,
                "%s: evidence for line %llu (from 0), but the input has %llu lines",
                place(f, where, sizeof where), (unsigned long long)f->next.line,
                (unsigned long long)lines);
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
