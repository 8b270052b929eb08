// SPDX-License-Identifier: MIT
// Documents of a request; see papers.h.
#include "server/papers.h"

#include <string.h>

#include "base/mem.h"
#include "server/server_private.h"
#include "server/usage.h"

// Says that a text is UTF-8.
static const char mark[] = "\xef\xbb\xbf";
enum { MARK = sizeof mark - 1 };

typedef struct papers {
    dgm_papers_done done;
    void (*progress)(void *user, size_t lines, size_t all);
    void *user;
    size_t count;
    bool utf8;
    dgm_document **documents; // [count]
    size_t *lines;            // [count] of each
} papers;

static void free_papers(papers *p)
{
    for (size_t i = 0; p->documents && i < p->count; i++) dgm_document_close(&p->documents[i]);
    dgm_free(p->documents);
    dgm_free(p->lines);
    dgm_free(p);
}

static int put_bytes(void *cookie, const char *data, size_t size)
{
    dgm_write_bytes(cookie, data, size);
    return ((dgm_writer *)cookie)->failed;
}

// The lines of one document; those that failed stay as they are.
static dgm_status put_lines(dgm_document *d, const dgm_task_result *results, size_t lines, bool linked,
                            dgm_error *err)
{
    for (size_t i = 0; i < lines; i++) {
        const dgm_task_result *r = &results[i];
        // A line that cannot be translated stays as it is; one for which there was no memory could be.
        if (r->status == DGM_ERR_CANCELLED || r->status == DGM_ERR_MEMORY)
            return dgm_fail(err, r->status, "%s", r->message);
        if (r->status != DGM_OK) continue;
        const dgm_result *one = linked && r->segment_count == 1 ? r->segments[0].result : NULL;
        const dgm_translation *t = one && one->count ? one->translations[0] : NULL;
        DGM_TRY(
            dgm_document_put(d, i, r->translations[0], r->sizes[0], t ? t->links : NULL, t ? t->link_count : 0, err));
    }
    return DGM_OK;
}

static dgm_status write_all(papers *p, const dgm_task_view *view, dgm_writer *outputs, dgm_error *err)
{
    size_t at = 0;
    for (size_t i = 0; i < p->count; i++) {
        if (view) DGM_TRY(put_lines(p->documents[i], view->results + at, p->lines[i], !view->pivot, err));
        at += p->lines[i];
        DGM_TRY(dgm_document_write(p->documents[i], put_bytes, &outputs[i], err));
        if (p->utf8 && outputs[i].size >= MARK && memcmp(outputs[i].data, mark, MARK) == 0)
            memmove(outputs[i].data, outputs[i].data + MARK, outputs[i].size -= MARK);
    }
    return DGM_OK;
}

// view NULL: there was nothing to translate.
static void finish(papers *p, const dgm_task_view *view)
{
    dgm_error err = {""};
    dgm_status st = view ? view->status : DGM_OK;
    dgm_writer *outputs = dgm_calloc(p->count + 1, sizeof *outputs);
    if (view) err = view->error;
    if (st == DGM_OK) st = outputs ? write_all(p, view, outputs, &err) : dgm_no_memory(&err);
    const size_t count = p->count;
    dgm_papers_done done = p->done;
    void *user = p->user;
    free_papers(p);
    if (st == DGM_OK) {
        done(user, st, &err, outputs, count);
        dgm_free(outputs);
        return;
    }
    for (size_t i = 0; outputs && i < count; i++) dgm_writer_free(&outputs[i]);
    dgm_free(outputs);
    done(user, st, &err, NULL, 0);
}

static void translated(dgm_task *task, void *user)
{
    papers *p = user;
    finish(p, dgm_task_look(task));
    dgm_task_free(&task);
}

static void on_line(void *user, const dgm_task_told *told)
{
    papers *p = user;
    if (told->whole) p->progress(p->user, told->done, told->segments);
}

static dgm_status open_one(dgm_document **d, const dgm_papers_spec *spec, size_t i, const dgm_document_options *o,
                           dgm_error *err)
{
    const dgm_task_text *t = &spec->texts[i];
    if (!spec->utf8) return dgm_document_open(d, t->text, t->size, spec->name, o, err);
    dgm_writer w = {0};
    dgm_write_bytes(&w, mark, MARK);
    dgm_write_bytes(&w, t->text, t->size);
    const dgm_status st = w.failed ? dgm_no_memory(err) : dgm_document_open(d, w.data, w.size, spec->name, o, err);
    dgm_writer_free(&w);
    return st;
}

static dgm_document_options options_of(const dgm_papers_spec *spec)
{
    dgm_document_options o;
    dgm_document_options_default(&o);
    o.format = spec->format;
    o.columns = spec->columns;
    o.source_language = spec->source;
    o.target_language = spec->target;
    o.ignore_tags = spec->ignore_tags;
    o.splitting_tags = spec->splitting_tags;
    o.inline_tags = spec->inline_tags;
    o.no_outline = spec->no_outline;
    return o;
}

static dgm_status open_all(papers *p, const dgm_papers_spec *spec, size_t *lines, dgm_error *err)
{
    const dgm_document_options o = options_of(spec);
    p->documents = dgm_calloc(spec->count + 1, sizeof(dgm_document *));
    p->lines = dgm_calloc(spec->count + 1, sizeof *p->lines);
    if (!p->documents || !p->lines) return dgm_no_memory(err);
    p->count = spec->count;
    for (size_t i = 0; i < spec->count; i++) {
        DGM_TRY(open_one(&p->documents[i], spec, i, &o, err));
        p->lines[i] = dgm_document_describe(p->documents[i])->lines;
        *lines += p->lines[i];
    }
    return DGM_OK;
}

// Their lines, which stay the documents'.
static dgm_task_text *collect(const papers *p, size_t count)
{
    dgm_task_text *texts = dgm_calloc(count + 1, sizeof *texts);
    size_t n = 0;
    for (size_t i = 0; texts && i < p->count; i++)
        for (size_t k = 0; k < p->lines[i]; k++, n++)
            texts[n].text = dgm_document_line(p->documents[i], k, &texts[n].size);
    return texts;
}

dgm_status dgm_papers_sample(const dgm_papers_spec *spec, dgm_writer *out, dgm_error *err)
{
    enum { ENOUGH = 4096 };
    dgm_document *d = NULL;
    const dgm_document_options o = options_of(spec);
    DGM_TRY(dgm_document_open(&d, spec->texts[0].text, spec->texts[0].size, spec->name, &o, err));
    size_t size = 0;
    const char *line;
    for (size_t i = 0; out->size < ENOUGH && (line = dgm_document_line(d, i, &size)); i++) {
        dgm_write_bytes(out, line, size);
        dgm_write_u8(out, '\n');
    }
    dgm_document_close(&d);
    return out->failed ? dgm_no_memory(err) : DGM_OK;
}

// Characters of all lines, from the quota of the key. *answered: it does not suffice, and the request was told. One
// whose answer has begun is told by the caller.
static dgm_status bill(dgm_request *q, const dgm_task_text *texts, size_t count, bool *answered, dgm_error *err)
{
    for (size_t i = 0; i < count; i++) q->characters += dgm_task_text_characters(&texts[i]);
    if (q->streams) return dgm_request_charge(q, err);
    *answered = !dgm_request_bill(q);
    return DGM_OK;
}

dgm_status dgm_papers_start(dgm_request *q, const dgm_papers_spec *spec, const char **format, dgm_error *err)
{
    papers *p = dgm_calloc(1, sizeof *p);
    if (!p) return dgm_no_memory(err);
    size_t lines = 0;
    p->done = spec->done;
    p->progress = spec->progress;
    p->user = spec->user;
    p->utf8 = spec->utf8;
    dgm_status st = open_all(p, spec, &lines, err);
    if (st == DGM_OK && format) *format = dgm_document_describe(p->documents[0])->format;
    dgm_task_text *texts = st == DGM_OK ? collect(p, lines) : NULL;
    if (st == DGM_OK && !texts) st = dgm_no_memory(err);
    bool answered = false;
    if (st == DGM_OK && spec->bill) st = bill(q, texts, lines, &answered, err);
    if (answered) {
        dgm_free(texts);
        free_papers(p);
        return DGM_OK;
    }
    if (st == DGM_OK && (lines == 0 || strcmp(spec->source, spec->target) == 0)) {
        dgm_free(texts);
        finish(p, NULL);
        return DGM_OK;
    }
    const dgm_task_spec task = {.source = spec->source,
                                .target = spec->target,
                                .model = spec->model,
                                .texts = texts,
                                .count = lines,
                                .whole = true,
                                .alignment = true,
                                .settings = spec->settings,
                                .setting_count = spec->setting_count,
                                .books = spec->books,
                                .book_count = spec->book_count,
                                .timeout_ms = spec->timeout_ms,
                                .done = translated,
                                .partial = spec->progress ? on_line : NULL,
                                .user = p};
    if (st == DGM_OK) st = dgm_task_start(q->server, q, &task, err);
    dgm_free(texts);
    if (st != DGM_OK) free_papers(p);
    return st;
}
