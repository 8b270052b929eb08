// SPDX-License-Identifier: MIT
// Our own API: documents, and texts with tags.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "server/papers.h"
#include "server/v1_private.h"

// ---- HTML in /v1/translate --------------------------------------------------------------------------

static void pages_written(void *user, dgm_status st, const dgm_error *err, dgm_writer *outputs,
                          size_t count)
{
    dgm_v1_wish *w = user;
    if (st != DGM_OK) {
        dgm_answer_failure(w->request, st, err);
        return;
    }
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_string(&j, "source", w->from);
    dgm_out_string(&j, "target", w->to);
    dgm_v1_put_detected(&j, w);
    dgm_out_array(&j, "translations");
    for (size_t i = 0; i < count; i++) {
        dgm_out_object(&j, NULL);
        dgm_out_text(&j, "text", (const char *)outputs[i].data, outputs[i].size);
        dgm_out_string(&j, "error", NULL);
        dgm_out_end(&j);
        dgm_writer_free(&outputs[i]);
    }
    dgm_out_end(&j);
    dgm_out_end(&j);
    dgm_answer_json(w->request, 200, &j);
}

void dgm_v1_pages(dgm_request *q, dgm_v1_wish *w)
{
    dgm_error err;
    const dgm_papers_spec spec = {.texts = w->texts,
                                  .count = w->count,
                                  .format = "html",
                                  .utf8 = true,
                                  .source = w->from,
                                  .target = w->to,
                                  .model = w->model,
                                  .books = q->books,
                                  .book_count = q->book_count,
                                  .settings = w->settings,
                                  .setting_count = w->setting_count,
                                  .timeout_ms = w->timeout_ms,
                                  .done = pages_written,
                                  .user = w};
    const dgm_status st = dgm_papers_start(q, &spec, NULL, &err);
    if (st != DGM_OK) dgm_answer_failure(q, st, &err);
}

// ---- /v1/document -----------------------------------------------------------------------------------

typedef struct file_wish {
    dgm_request *request;
    dgm_v1_wish *wish;
    const char *file, *format; // its name; what it is, as the reader found out
    bool events;
    size_t told; // hundredths of its lines
} file_wish;

// The event that says where the file is, which waits there half an hour.
static void tell_file(file_wish *f, dgm_writer *data)
{
    dgm_request *q = f->request;
    dgm_error err;
    const char *name = dgm_files_keep(q, f->file, f->wish->to, f->format, data);
    if (!name) {
        dgm_v1_put_error_event(q, dgm_no_memory(&err), &err);
        return;
    }
    dgm_json_out j = {0};
    dgm_writer url = {0};
    dgm_write_format(&url, "/download_file/%s", name);
    dgm_out_object(&j, NULL);
    dgm_out_string(&j, "name", dgm_files_plain(name));
    dgm_out_text(&j, "url", (const char *)url.data, url.size);
    dgm_out_string(&j, "source", f->wish->from);
    dgm_out_string(&j, "target", f->wish->to);
    dgm_out_end(&j);
    j.w.failed = j.w.failed || url.failed;
    dgm_writer_free(&url);
    dgm_v1_put_event(q, "done", &j);
}

static void file_written(void *user, dgm_status st, const dgm_error *err, dgm_writer *outputs,
                         size_t count)
{
    file_wish *f = user;
    dgm_request *q = f->request;
    (void)count;
    if (f->events) {
        if (st != DGM_OK)
            dgm_v1_put_error_event(q, st, err);
        else
            tell_file(f, &outputs[0]);
        dgm_stream_end(q);
        return;
    }
    if (st != DGM_OK) {
        dgm_answer_failure(q, st, err);
        return;
    }
    const char *name = dgm_files_name(q, f->file, f->wish->to, f->format);
    if (name) dgm_files_attach(q, name);
    dgm_answer_writer(q, 200, "application/octet-stream", &outputs[0]);
}

// At most a hundred times, however long the file is.
static void file_progress(void *user, size_t lines, size_t all)
{
    file_wish *f = user;
    const size_t share = lines * 100 / all;
    if (share == f->told && lines < all) return;
    f->told = share;
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_integer(&j, "lines", (int64_t)lines);
    dgm_out_integer(&j, "all", (int64_t)all);
    dgm_out_end(&j);
    dgm_v1_put_event(f->request, "progress", &j);
}

// The language that the file's text is in; false: it was answered.
static bool detect(dgm_request *q, dgm_v1_wish *w, const dgm_papers_spec *spec)
{
    dgm_writer sample = {0};
    dgm_error err;
    dgm_pool_detected found[1];
    size_t count = 0;
    dgm_status st = dgm_papers_sample(spec, &sample, &err);
    if (st == DGM_OK)
        st = dgm_pool_detect(w->listing, (const char *)sample.data, sample.size, found, 1, &count,
                             &err);
    dgm_writer_free(&sample);
    if (st == DGM_OK && count == 0)
        st = dgm_fail(&err, DGM_ERR_TEXT,
                      "the language of the file cannot be found out: say its \"source\"");
    if (st != DGM_OK)
        dgm_answer_failure(q, st, &err);
    else
        w->source = found[0].code;
    return st == DGM_OK;
}

// The glossary of the form, JSON as "terms" of /v1/translate has it; false: it was answered.
static bool read_terms(dgm_request *q)
{
    size_t size = 0;
    json_t *terms = NULL;
    dgm_error err;
    const char *text = dgm_request_text(q, "terms", &size, NULL);
    if (!text || !size) return true;
    dgm_status st = dgm_json_parse(&terms, text, size, &err);
    if (st == DGM_ERR_FORMAT) dgm_error_prefix(&err, "\"terms\"");
    if (st == DGM_OK) st = dgm_v1_read_terms(q, terms, &err);
    json_decref(terms);
    if (st != DGM_OK) dgm_answer_failure(q, st, &err);
    return st == DGM_OK;
}

// Begins the answer where it is events; what fails from then on is one, too.
static void start_file(dgm_request *q, file_wish *f, dgm_papers_spec *spec)
{
    dgm_error err;
    if (f->events) {
        spec->progress = file_progress;
        dgm_v1_begin_events(q);
        dgm_json_out j = {0};
        dgm_out_object(&j, NULL);
        dgm_out_string(&j, "source", f->wish->from);
        dgm_out_string(&j, "target", f->wish->to);
        dgm_out_end(&j);
        dgm_v1_put_event(q, "begin", &j);
    }
    const dgm_status st = dgm_papers_start(q, spec, &f->format, &err);
    if (st == DGM_OK) return;
    if (!f->events) {
        dgm_answer_failure(q, st, &err);
        return;
    }
    dgm_v1_put_error_event(q, st, &err);
    dgm_stream_end(q);
}

void dgm_v1_document(dgm_request *q)
{
    dgm_v1_wish *w = dgm_v1_wish_new(q);
    if (!w) return;
    if (q->server->options.disable_files_translation || q->upload_count == 0) {
        const bool off = q->server->options.disable_files_translation != 0;
        dgm_answer_error(q, off ? 403 : 400,
                         off ? "files are not translated here"
                             : "there is no \"file\" in the form");
        return;
    }
    file_wish *f = dgm_request_memory(q, sizeof *f);
    if (!f) {
        dgm_answer_error(q, 500, "out of memory");
        return;
    }
    *f = (file_wish){
        .request = q, .wish = w, .file = q->uploads[0].file, .events = dgm_v1_wants_events(q)};
    const dgm_task_text text = {.text = q->uploads[0].data, .size = q->uploads[0].size};
    dgm_papers_spec spec = {.texts = &text,
                            .count = 1,
                            .name = q->uploads[0].file,
                            .format = dgm_request_text(q, "format", NULL, NULL),
                            .columns = dgm_request_text(q, "columns", NULL, NULL),
                            .bill = true,
                            .done = file_written,
                            .user = f};
    w->source = dgm_request_text(q, "source", NULL, NULL);
    w->target = dgm_request_text(q, "target", NULL, NULL);
    if (!read_terms(q)) return;
    w->listing = dgm_pool_list(q->server);
    if ((!w->source || strcmp(w->source, "auto") == 0) && !detect(q, w, &spec)) return;
    if (!dgm_v1_languages_of(q, w)) return;
    spec.source = w->from;
    spec.target = w->to;
    spec.books = q->books;
    spec.book_count = q->book_count;
    q->texts = 1;
    start_file(q, f, &spec);
}
