// SPDX-License-Identifier: MIT
// Files of lattices for the commands: one lattice after the other as text, and the work of
// `dragoman lattice` (union of several files line by line, pruning, n-best lists, conversion).
// Memory follows the largest lattice, not the files.
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "base/textfile.h"
#include "dragoman/tools.h"
#include "lattice/lattice.h"
#include "lattice/nbest.h"

enum { FILES_MAX = 64 };

struct dgm_lattices {
    dgm_lattice_file *file;
};

// ---- blocks of text ----------------------------------------------------------------------------

void dgm_lattices_close(dgm_lattices **file)
{
    if (!file || !*file) return;
    dgm_lattice_file_close(&(*file)->file);
    dgm_free(*file);
    *file = NULL;
}

dgm_status dgm_lattices_open(dgm_lattices **file, const char *path, dgm_error *err)
{
    *file = dgm_calloc(1, sizeof **file);
    if (!*file) return dgm_no_memory(err);
    const dgm_status st = dgm_lattice_file_open(&(*file)->file, path, NULL, false, false, err);
    if (st != DGM_OK) dgm_lattices_close(file);
    return st;
}

dgm_status dgm_lattices_next(dgm_lattices *f, dgm_lattice_text *lattice, dgm_error *err)
{
    dgm_text block;
    uint32_t line = 0;
    *lattice = (dgm_lattice_text){0};
    DGM_TRY(dgm_lattice_file_block(f->file, &block, &line, err));
    *lattice = (dgm_lattice_text){.text = block.data, .size = block.size, .line = line};
    return DGM_OK;
}

// ---- sources of the command --------------------------------------------------------------------

// A file of lattices, or an n-best list.
typedef struct source {
    dgm_lattice_file *file; // NULL: a list
    dgm_lines *list;
    bool ahead, ended; // list: `next` is an entry of a later line; nothing is left
    dgm_nbest_entry next;
    uint64_t line; // list: the next lattice's
} source;

static void close_source(source *f)
{
    dgm_lattice_file_close(&f->file);
    dgm_lines_close(&f->list);
}

static dgm_status open_source(source *f, const char *path, const dgm_lattice_options *o,
                              dgm_error *err)
{
    if (o->lists) return dgm_lines_open(&f->list, path, err);
    return dgm_lattice_file_open(&f->file, path, o->symbols, o->transducer != 0, o->trim != 0, err);
}

static dgm_status wrong(const source *f, dgm_status st, dgm_error *err)
{
    if (st != DGM_OK && st != DGM_ERR_MEMORY)
        dgm_error_prefix(err, "%s: line %llu", dgm_lines_name(f->list),
                         (unsigned long long)dgm_lines_number(f->list));
    return st;
}

static dgm_status look_ahead(source *f, dgm_error *err)
{
    const char *line = NULL;
    size_t size = 0;
    bool more = false;
    DGM_TRY(dgm_lines_next(f->list, &line, &size, &more, err));
    f->ended = !more;
    if (!more) return DGM_OK;
    dgm_status st = dgm_nbest_parse((dgm_text){line, size}, &f->next, err);
    if (st == DGM_OK && f->next.line != f->line && f->next.line + 1 != f->line)
        st = dgm_fail(err, DGM_ERR_FORMAT, "translations of line %llu where those of %llu belong",
                      (unsigned long long)f->next.line, (unsigned long long)f->line);
    f->ahead = st == DGM_OK;
    return wrong(f, st, err);
}

// The translations of the next line of an n-best list.
static dgm_status next_list(source *f, dgm_lattice **l, dgm_error *err)
{
    dgm_lattice_list *list = NULL;
    *l = NULL;
    if (!f->ahead && !f->ended) DGM_TRY(look_ahead(f, err));
    if (f->ended) return DGM_OK;
    DGM_TRY(dgm_lattice_list_open(&list, err));
    const uint64_t line = f->line++;
    dgm_status st = DGM_OK;
    while (st == DGM_OK && f->ahead && f->next.line == line) {
        st = wrong(f, dgm_lattice_list_add(list, f->next.text, (float)f->next.score, err), err);
        f->ahead = false;
        if (st == DGM_OK) st = look_ahead(f, err);
    }
    if (st == DGM_OK) return wrong(f, dgm_lattice_list_finish(&list, l, err), err);
    dgm_lattice_list_close(&list);
    return st;
}

static dgm_status next_lattice(source *f, dgm_lattice **l, dgm_error *err)
{
    return f->file ? dgm_lattice_file_next(f->file, l, err) : next_list(f, l, err);
}

// ---- the command -------------------------------------------------------------------------------

void dgm_lattice_init(dgm_lattice_options *out, size_t size)
{
    dgm_lattice_options own, *const o = &own;
    *o = (dgm_lattice_options){.prune = -1};
    dgm_sized_give(out, size, &own, sizeof own);
}

typedef struct work {
    const dgm_lattice_options *o;
    dgm_lattice_format format;
    source files[FILES_MAX];
    dgm_lattice *read[FILES_MAX];
    const char *const *names;
    size_t count;
    dgm_textout *out; // NULL: options->write
    dgm_writer text;
    uint64_t number;
    dgm_lattice_report report;
    bool stopped;
} work;

static dgm_status flush(work *w, dgm_error *err)
{
    if (w->text.failed) return dgm_no_memory(err);
    if (w->out)
        dgm_textout_write(w->out, w->text.data, w->text.size);
    else if (w->o->write && w->text.size)
        w->stopped = w->o->write(w->o->write_cookie, (const char *)w->text.data, w->text.size) != 0;
    w->text.size = 0;
    DGM_FAIL_IF(w->stopped, err, DGM_ERR_CANCELLED, "stopped");
    return DGM_OK;
}

static bool put_path(void *cookie, const dgm_lattice_path *p)
{
    work *w = cookie;
    dgm_write_format(&w->text, "%llu ||| ", (unsigned long long)w->number);
    dgm_lattice_spell(p->lattice, p->arcs, p->count, &w->text, NULL);
    dgm_write_format(&w->text, " ||| Lattice= %.6g ||| %.6g\n", p->score, p->score);
    return !w->text.failed;
}

// One of each file. *end: none of them has any more.
static dgm_status read_row(work *w, bool *end, dgm_error *err)
{
    size_t have = 0, last = 0, none = 0;
    for (size_t i = 0; i < w->count; i++) {
        DGM_TRY(next_lattice(&w->files[i], &w->read[i], err));
        if (!w->read[i]) {
            none = i;
            continue;
        }
        have++;
        last = i;
        w->report.nodes_read += (uint64_t)w->read[i]->node_count;
        w->report.arcs_read += w->read[i]->arc_count;
    }
    *end = have == 0;
    DGM_FAIL_IF(have > 0 && have < w->count, err, DGM_ERR_FORMAT,
                "'%s' has %llu lattices, '%s' has more", w->names[none],
                (unsigned long long)w->number, w->names[last]);
    return DGM_OK;
}

static dgm_status put_lattice(work *w, const dgm_lattice *l, dgm_error *err)
{
    const dgm_lattice_options *o = w->o;
    const dgm_lattice_pruning how = {.behind = o->prune, .max_arcs = o->max_arcs};
    dgm_lattice *pruned = NULL;
    if (o->prune >= 0 || o->max_arcs) DGM_TRY(dgm_lattice_prune(l, &how, &pruned, err));
    const dgm_lattice *result = pruned ? pruned : l;
    w->report.lattices++;
    w->report.nodes += (uint64_t)result->node_count;
    w->report.arcs += result->arc_count;
    const dgm_status st = o->nbest
                              ? dgm_lattice_nbest(result, o->nbest, !o->repeated, put_path, w, err)
                              : dgm_lattice_write(result, w->format, &w->text, err);
    dgm_lattice_close(&pruned);
    return st == DGM_OK ? flush(w, err) : st;
}

static dgm_status one_row(work *w, bool *end, dgm_error *err)
{
    dgm_lattice *joined = NULL;
    dgm_status st = read_row(w, end, err);
    if (st == DGM_OK && !*end && w->count > 1)
        st = dgm_lattice_union((const dgm_lattice *const *)w->read, w->count, &joined, err);
    if (st == DGM_OK && !*end) st = put_lattice(w, joined ? joined : w->read[0], err);
    dgm_lattice_close(&joined);
    for (size_t i = 0; i < w->count; i++) dgm_lattice_close(&w->read[i]);
    w->number++;
    return st;
}

static dgm_status check(const dgm_lattice_options *o, size_t count, dgm_lattice_format *format,
                        dgm_error *err)
{
    const bool native = !o->format || strcmp(o->format, "lattice") == 0;
    DGM_FAIL_IF(count < 1 || count > FILES_MAX, err, DGM_ERR_ARGUMENT,
                "the number of lattice files must be 1 to %d, not %zu", FILES_MAX, count);
    DGM_FAIL_IF(o->lists && (o->symbols || o->transducer || o->trim), err, DGM_ERR_ARGUMENT,
                "--from-nbest cannot be combined with --symbols, --transducer or --trim");
    DGM_FAIL_IF(!native && strcmp(o->format, "openfst") != 0, err, DGM_ERR_ARGUMENT,
                "unknown format of lattices '%s': known are lattice, openfst", o->format);
    DGM_FAIL_IF(o->prune != o->prune, err, DGM_ERR_ARGUMENT, "the pruning must be a number");
    DGM_FAIL_IF(o->nbest && o->format, err, DGM_ERR_ARGUMENT,
                "an n-best list is text: --nbest cannot be combined with --format");
    DGM_FAIL_IF(o->repeated && !o->nbest, err, DGM_ERR_ARGUMENT, "--repeated requires --nbest N");
    *format = native ? DGM_LATTICE_NATIVE : DGM_LATTICE_OPENFST;
    return DGM_OK;
}

dgm_status dgm_lattice_run(const char *const *inputs, size_t count, const char *output,
                           const dgm_lattice_options *options, dgm_lattice_report *report,
                           dgm_error *err)
{
    dgm_lattice_options own;
    dgm_lattice_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, options, "dgm_lattice_options", "dgm_lattice_default",
                           err));
    DGM_TRY(dgm_sized_room(report, "dgm_lattice_report", err));
    work w = {.o = &own, .names = inputs, .count = count};
    DGM_TRY(check(w.o, count, &w.format, err));
    dgm_status st = DGM_OK;
    for (size_t i = 0; st == DGM_OK && i < count; i++)
        st = open_source(&w.files[i], inputs[i], w.o, err);
    if (st == DGM_OK && output) st = dgm_textout_open(&w.out, output, err);
    for (bool end = false; st == DGM_OK && !end;) st = one_row(&w, &end, err);
    if (st == DGM_OK && w.out)
        st = dgm_textout_commit(&w.out, err);
    else
        dgm_textout_discard(&w.out);
    for (size_t i = 0; i < count; i++) close_source(&w.files[i]);
    dgm_writer_free(&w.text);
    dgm_sized_fill(report, &w.report, sizeof w.report);
    return st;
}
