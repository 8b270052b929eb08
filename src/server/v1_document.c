// SPDX-License-Identifier: MIT
// Our own API: documents, and texts with tags.
#include <stdio.h>
#include <string.h>

#include "server/papers.h"
#include "server/v1_private.h"

// ---- HTML in /v1/translate --------------------------------------------------------------------------

static void pages_written(void *user, dgm_status st, const dgm_error *err, dgm_writer *outputs, size_t count)
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
                                  .done = pages_written,
                                  .user = w};
    const dgm_status st = dgm_papers_start(q, &spec, NULL, &err);
    if (st != DGM_OK) dgm_answer_failure(q, st, &err);
}

// ---- /v1/document -----------------------------------------------------------------------------------

static void file_written(void *user, dgm_status st, const dgm_error *err, dgm_writer *outputs, size_t count)
{
    dgm_request *q = user;
    (void)count;
    if (st != DGM_OK)
        dgm_answer_failure(q, st, err);
    else
        dgm_answer_writer(q, 200, "application/octet-stream", &outputs[0]);
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
        st = dgm_pool_detect(w->listing, (const char *)sample.data, sample.size, found, 1, &count, &err);
    dgm_writer_free(&sample);
    if (st == DGM_OK && count == 0)
        st = dgm_fail(&err, DGM_ERR_TEXT, "the language of the file cannot be found out: say its \"source\"");
    if (st != DGM_OK)
        dgm_answer_failure(q, st, &err);
    else
        w->source = found[0].code;
    return st == DGM_OK;
}

void dgm_v1_document(dgm_request *q)
{
    dgm_error err;
    dgm_v1_wish *w = dgm_v1_wish_new(q);
    if (!w) return;
    if (q->server->options.disable_files_translation || q->upload_count == 0) {
        const bool off = q->server->options.disable_files_translation != 0;
        dgm_answer_error(q, off ? 403 : 400,
                         off ? "files are not translated here" : "there is no \"file\" in the form");
        return;
    }
    const dgm_task_text text = {.text = q->uploads[0].data, .size = q->uploads[0].size};
    dgm_papers_spec spec = {.texts = &text,
                            .count = 1,
                            .name = q->uploads[0].file,
                            .format = dgm_request_text(q, "format", NULL, NULL),
                            .columns = dgm_request_text(q, "columns", NULL, NULL),
                            .done = file_written,
                            .user = q};
    w->source = dgm_request_text(q, "source", NULL, NULL);
    w->target = dgm_request_text(q, "target", NULL, NULL);
    w->listing = dgm_pool_list(q->server);
    if ((!w->source || strcmp(w->source, "auto") == 0) && !detect(q, w, &spec)) return;
    dgm_pool_release(&w->listing);
    if (!dgm_v1_languages_of(q, w)) return;
    spec.source = w->from;
    spec.target = w->to;
    q->texts = 1;
    const dgm_status st = dgm_papers_start(q, &spec, NULL, &err);
    if (st != DGM_OK) dgm_answer_failure(q, st, &err);
}
