// SPDX-License-Identifier: MIT
// See documents.h. A line of OUTPUT.lines is "SOURCE-TARGET ...<TAB>TRANSLATION", or "!" of a line that failed.
#define _GNU_SOURCE
#include "translate/documents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dragoman/text.h"

// ---- options --------------------------------------------------------------------------------------

// What is printed for lines has no place in a document.
static const char *odd_option(const translate_options *o)
{
    const struct {
        const char *name;
        bool given;
    } odd[] = {{"--json", o->show.json},
               {"--scores", o->show.scores},
               {"--nbest", o->engine.set.settings.nbest > 1},
               {"--word-scores", o->engine.set.settings.token_scores},
               {"several files", o->files.count > 1},
               {"--text", o->text.count > 0}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (odd[i].given) return odd[i].name;
    return NULL;
}

// Options that are for documents alone.
static const char *lone_option(const translate_options *o)
{
    return o->document.columns ? "--column"
           : o->document.all   ? "--all"
           : o->document.width ? "--width"
           : o->list_lines     ? "--list-lines"
           : o->tmx            ? "--tmx"
           : o->tmx_out        ? "--tmx-out"
                               : NULL;
}

static char *beside(const char *output, const char *ending)
{
    char *name = need(malloc(strlen(output) + strlen(ending) + 1));
    return strcat(strcpy(name, output), ending);
}

// A document that is complete has left no lines; their journal, if it was killed right behind them.
static int check_complete(const translate_options *o)
{
    if (!o->resume || access(o->output, F_OK) == 0 || access(o->document_output, F_OK) != 0) return -1;
    char *left = beside(o->output, ".progress");
    unlink(left);
    free(left);
    if (!o->quiet) fprintf(stderr, "dragoman: '%s' is already complete\n", o->document_output);
    return EXIT_FINE;
}

int document_check(const command *self, translate_options *o)
{
    const char *name = o->files.count == 1 ? o->files.items[0] : o->input;
    const bool plain = o->text.count || o->files.count > 1;
    const dgm_document_format *f = o->format || plain ? NULL : dgm_document_format_of(name, NULL, 0);
    if (f) o->format = f->name;
    for (int i = 0; plain && !o->format && i < o->files.count; i++)
        if ((f = dgm_document_format_of(o->files.items[i], NULL, 0)) && strcmp(f->name, "txt") != 0)
            return fail_usage(
                self, "'%s' is a document (%s): documents are translated one at a time; --format txt reads lines",
                o->files.items[i], f->name);
    if (o->format && strcmp(o->format, "txt") == 0) o->format = NULL;
    const char *lone = lone_option(o), *odd = o->format ? odd_option(o) : NULL;
    if (!o->format && lone)
        return fail_usage(self, "%s requires a document: a name that says its kind, or --format", lone);
    if (!o->format) return -1;
    bool known = false;
    for (size_t i = 0; (f = dgm_document_format_at(i)) != NULL; i++) known |= strcmp(f->name, o->format) == 0;
    dgm_error error;
    dgm_document_options options;
    dgm_document *none = NULL;
    dgm_document_options_default(&options);
    options.format = o->format;
    if (!known && dgm_document_open(&none, "", 0, NULL, &options, &error) != DGM_OK)
        return fail_usage(self, "--format: %s", error.text);
    if (odd)
        return fail_usage(self, "%s and a document (%s) cannot be combined; --format txt reads it line by line", odd,
                          o->format);
    if (!is_file_name(o->output)) return -1;
    o->document_output = o->output;
    o->output = o->document_lines = beside(o->output, ".lines");
    return check_complete(o);
}

// ---- reading --------------------------------------------------------------------------------------

static char *read_all(const char *name, size_t *size)
{
    const bool standard = !name || strcmp(name, "-") == 0;
    FILE *f = standard ? stdin : fopen(name, "rbe");
    size_t cap = 1 << 16, used = 0, n = 1;
    if (!f) {
        fail(EXIT_RUNTIME, "cannot open '%s': %s", name, strerror(errno));
        return NULL;
    }
    char *data = need(malloc(cap));
    while (n && used <= DGM_DOCUMENT_MAX) {
        if (used == cap) data = need(realloc(data, cap *= 2));
        n = fread(data + used, 1, cap - used, f);
        used += n;
    }
    const bool failed = ferror(f);
    if (!standard) fclose(f);
    if (failed) {
        fail(EXIT_RUNTIME, "cannot read '%s': %s", standard ? "standard input" : name, strerror(errno));
        free(data);
        return NULL;
    }
    *size = used;
    return data;
}

dgm_document *document_load(const translate_options *o)
{
    size_t size = 0;
    char *data = read_all(o->input, &size), *decoded = NULL;
    dgm_error error;
    dgm_encoding encoding = DGM_ENCODING_UTF8;
    dgm_document *d = NULL;
    if (!data) return NULL;
    if (o->encoding) dgm_encoding_named(o->encoding, &encoding, NULL); // options take no other names
    dgm_status st = DGM_OK;
    if (encoding != DGM_ENCODING_UTF8) st = dgm_decode(data, size, encoding, &decoded, &size, &error);
    dgm_document_options options = o->document;
    options.format = o->format;
    options.source_language = o->engine.set.settings.source;
    options.target_language = o->engine.set.settings.target;
    options.output = o->document_output;
    if (st == DGM_OK) st = dgm_document_open(&d, decoded ? decoded : data, size, o->input, &options, &error);
    if (st != DGM_OK)
        fail(EXIT_RUNTIME, "%s", error.text);
    else if (dgm_document_describe(d)->notice && !o->quiet)
        warn("%s", dgm_document_describe(d)->notice);
    dgm_string_free(&decoded);
    free(data);
    return d;
}

// A companion of another length is another document's: better said before an hour of work than behind it. With
// --tmx, and of pipes, it is seen when they are read.
static bool fits(const session *s, const char *what, const char *path)
{
    const size_t lines = dgm_document_describe(s->document)->lines;
    if (!path || s->o->tmx || !is_regular(path)) return true;
    line_reader *r = reader_open(path);
    const char *line = NULL;
    size_t size = 0, count = 0;
    while (r && reader_next(r, &line, &size)) count++;
    const bool fine = r && !reader_failed(r);
    reader_close(r);
    if (fine && count != lines)
        fail(EXIT_RUNTIME, "the %s file has %zu line%s, and the document has %zu (--list-lines prints them)", what,
             count, count == 1 ? "" : "s", lines);
    return fine && count == lines;
}

bool document_fits(const session *s)
{
    const translate_options *o = s->o;
    if (o->list_lines) return true;
    return fits(s, "prefix", o->prefix) && fits(s, "constraints", o->constraints) &&
           fits(s, "directions", o->directions);
}

int document_list(const session *s)
{
    line_writer *out = writer_open(NULL);
    size_t size = 0;
    const char *line = NULL;
    for (size_t i = 0; (line = dgm_document_line(s->document, i, &size)) != NULL; i++) {
        writer_put(out, line, size);
        writer_text(out, "\n");
    }
    return writer_close(out) ? EXIT_FINE : EXIT_RUNTIME;
}

static const char *line_of(const void *document, size_t index, size_t *size)
{
    return dgm_document_line(document, index, size);
}

line_reader *document_lines(const dgm_document *d)
{
    return reader_open_list(line_of, d, dgm_document_describe(d)->lines);
}

// ---- translation memories ---------------------------------------------------------------------------

bool document_recall(session *s)
{
    const translate_options *o = s->o;
    const dgm_translator_info *info = dgm_describe(s->t);
    size_t known = 0;
    dgm_error error;
    if (!o->tmx && !o->tmx_out) return true;
    dgm_status st = dgm_memory_open(&s->memory, info->source_language, info->target_language, &error);
    if (st == DGM_OK && o->tmx) st = dgm_memory_read(s->memory, o->tmx, &error);
    if (st == DGM_OK) st = dgm_document_recall(s->document, s->memory, &known, &error);
    if (st != DGM_OK)
        fail(EXIT_RUNTIME, "%s", error.text);
    else if (o->tmx && !o->quiet)
        fprintf(stderr, "dragoman: %zu lines are known from '%s'\n", known, o->tmx);
    return st == DGM_OK;
}

static bool remember(session *s, uint64_t number, const char *text, size_t size)
{
    dgm_error error;
    size_t line_size = 0;
    const char *line = dgm_document_line(s->document, (size_t)number, &line_size);
    if (!s->o->tmx_out || dgm_memory_add(s->memory, line, line_size, text, size, &error) == DGM_OK) return true;
    return fail(EXIT_RUNTIME, "%s", error.text), false;
}

// ---- translations ---------------------------------------------------------------------------------

static bool put(session *s, uint64_t number, const char *text, size_t size, const dgm_link *links, size_t count)
{
    dgm_error error;
    const bool fine = dgm_document_put(s->document, (size_t)number, text, size, links, count, &error) == DGM_OK;
    if (!fine) fail(EXIT_RUNTIME, "%s", error.text);
    s->broken = !fine || !remember(s, number, text, size);
    return !s->broken;
}

void document_take(session *s, uint64_t number, const dgm_result *r)
{
    const dgm_translation *t = r->status == DGM_OK && r->count ? r->translations[0] : NULL;
    if (t && !put(s, number, t->text, t->text_size, t->links, t->link_count)) return;
    if (!s->o->document_output) return;
    for (size_t i = 0; t && i < t->link_count; i++)
        writer_format(s->out, "%s%d-%d", i ? " " : "", (int)t->links[i].source, (int)t->links[i].target);
    writer_text(s->out, t ? "\t" : "!");
    if (t) writer_put(s->out, t->text, t->text_size);
    writer_text(s->out, "\n");
}

static bool put_kept(session *s, uint64_t number, const char *line, size_t size, dgm_link *links, size_t most)
{
    const char *tab = memchr(line, '\t', size);
    size_t count = 0;
    if (!tab) return true; // it failed
    for (const char *p = line; p < tab && count < most; count++) {
        char *end = NULL;
        links[count].source = (int32_t)strtol(p, &end, 10);
        links[count].target = (int32_t)strtol(end + 1, &end, 10);
        p = end + 1;
    }
    return put(s, number, tab + 1, size - (size_t)(tab + 1 - line), links, count);
}

bool document_resume(session *s, uint64_t lines)
{
    line_reader *r = reader_open_output(s->o->output);
    const char *line = NULL;
    size_t size = 0;
    bool fine = r != NULL;
    for (uint64_t i = 0; fine && i < lines && reader_next(r, &line, &size); i++) {
        const size_t most = size / 4 + 1; // "0-0 "
        dgm_link *links = need(calloc(most, sizeof *links));
        fine = put_kept(s, i, line, size, links, most);
        free(links);
    }
    fine = fine && !reader_failed(r);
    reader_close(r);
    return fine;
}

static int to_writer(void *cookie, const char *data, size_t size)
{
    writer_put(cookie, data, size);
    return writer_failed(cookie);
}

bool document_finish(session *s)
{
    const char *name = s->o->document_output;
    dgm_error error;
    dgm_status st = name ? dgm_document_save(s->document, name, &error)
                         : dgm_document_write(s->document, to_writer, s->out, &error);
    if (st == DGM_OK && s->o->tmx_out) st = dgm_memory_write(s->memory, s->o->tmx_out, &error);
    if (st != DGM_OK) return fail(EXIT_RUNTIME, "%s", error.text), false;
    if (name) unlink(s->o->output);
    return true;
}
