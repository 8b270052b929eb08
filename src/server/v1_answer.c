// SPDX-License-Identifier: MIT
// The answer of /v1/translate as JSON.
#include <string.h>

#include "server/v1_private.h"

const char *dgm_v1_code(dgm_status status)
{
    switch (status) {
    case DGM_ERR_ARGUMENT:
    case DGM_ERR_FORMAT:
        return "argument";
    case DGM_ERR_UNSUPPORTED:
        return "unsupported";
    case DGM_ERR_TEXT:
        return "text";
    case DGM_ERR_CANCELLED:
        return "busy";
    case DGM_ERR_MEMORY:
        return "memory";
    default:
        return "internal";
    }
}

void dgm_v1_put_detected(dgm_json_out *j, const dgm_v1_wish *w)
{
    if (!w->detected) return;
    dgm_out_object(j, "detected");
    dgm_out_string(j, "language", w->from);
    dgm_out_real(j, "confidence", w->confidence);
    dgm_out_end(j);
}

static void put_flags(dgm_json_out *j, uint32_t flags)
{
    static const struct {
        uint32_t flag;
        const char *name;
    } names[] = {{DGM_LINE_REPAIRED, "repaired"}, {DGM_LINE_SPLIT, "split"},
                 {DGM_LINE_CROPPED, "cropped"},   {DGM_LINE_TRUNCATED, "truncated"},
                 {DGM_LINE_UNMET, "unmet"},       {DGM_LINE_MALFORMED, "malformed"},
                 {DGM_LINE_COPIED, "copied"},     {DGM_LINE_REPEATED, "repeated"},
                 {DGM_LINE_DEADLINE, "deadline"}, {DGM_LINE_MENDED, "mended"}};
    dgm_out_array(j, "flags");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (flags & names[i].flag) dgm_out_string(j, NULL, names[i].name);
    dgm_out_end(j);
}

static void put_links(dgm_json_out *j, const dgm_translation *t)
{
    dgm_out_array(j, "alignment");
    for (size_t i = 0; i < t->link_count; i++) {
        dgm_out_array(j, NULL);
        dgm_out_integer(j, NULL, t->links[i].source);
        dgm_out_integer(j, NULL, t->links[i].target);
        dgm_out_end(j);
    }
    dgm_out_end(j);
}

static void put_details(dgm_json_out *j, const dgm_v1_wish *w, const dgm_result *r)
{
    const dgm_translation *best = r->translations[0];
    if (w->alternatives) {
        dgm_out_array(j, "alternatives");
        for (size_t k = 1; k < r->count; k++) {
            dgm_out_object(j, NULL);
            dgm_out_text(j, "text", r->translations[k]->text, r->translations[k]->text_size);
            dgm_out_real(j, "score", (double)r->translations[k]->score);
            if (w->alignment) put_links(j, r->translations[k]);
            dgm_out_end(j);
        }
        dgm_out_end(j);
    }
    if (w->alignment) put_links(j, best);
    if (w->word_scores) {
        dgm_out_array(j, "tokens");
        for (size_t i = 0; i < best->token_count; i++) {
            dgm_out_object(j, NULL);
            dgm_out_string(j, "text", best->tokens[i]);
            dgm_out_real(j, "score", (double)best->token_scores[i]);
            dgm_out_end(j);
        }
        dgm_out_end(j);
    }
}

static void put_sentences(dgm_json_out *j, const dgm_v1_wish *w, const dgm_task_result *r, const dgm_task_text *text)
{
    dgm_out_array(j, "sentences");
    for (size_t i = 0; i < r->segment_count; i++) {
        const dgm_segment *s = &r->segments[i];
        const size_t next = i + 1 < r->segment_count ? r->segments[i + 1].begin : text->size;
        if (!s->result || s->result->status != DGM_OK) continue;
        const dgm_translation *best = s->result->translations[0];
        dgm_out_object(j, NULL);
        dgm_out_text(j, "source", text->text + s->begin, s->end - s->begin);
        dgm_out_text(j, "text", best->text, best->text_size);
        dgm_out_text(j, "gap", text->text + s->end, next - s->end);
        dgm_out_real(j, "score", (double)best->score);
        put_details(j, w, s->result);
        dgm_out_end(j);
    }
    dgm_out_end(j);
}

// The sum over the sentences of the k-th translation's score.
static double score_of(const dgm_task_result *r, size_t k)
{
    double sum = 0;
    for (size_t i = 0; i < r->segment_count; i++) {
        const dgm_result *one = r->segments[i].result;
        if (one && one->count) sum += (double)one->translations[k < one->count ? k : one->count - 1]->score;
    }
    return sum;
}

static const char *notice_of(const dgm_task_result *r)
{
    for (size_t i = 0; i < r->segment_count; i++)
        if (r->segments[i].result && r->segments[i].result->notice) return r->segments[i].result->notice;
    return NULL;
}

static void put_text(dgm_json_out *j, const dgm_v1_wish *w, const dgm_task_view *view, size_t i)
{
    const dgm_task_result *r = &view->results[i];
    const bool fine = r->status == DGM_OK;
    dgm_out_object(j, NULL);
    dgm_out_text(j, "text", fine ? r->translations[0] : "", fine ? r->sizes[0] : 0);
    dgm_out_real(j, "score", fine ? score_of(r, 0) : 0);
    if (w->alternatives) {
        dgm_out_array(j, "alternatives");
        for (size_t k = 1; k < r->count; k++) {
            dgm_out_object(j, NULL);
            dgm_out_text(j, "text", r->translations[k], r->sizes[k]);
            dgm_out_real(j, "score", score_of(r, k));
            dgm_out_end(j);
        }
        dgm_out_end(j);
    }
    // Of two steps the sentences are those of the last one, whose source is no text of the request.
    if (w->sentences && !view->pivot) put_sentences(j, w, r, &w->texts[i]);
    put_flags(j, r->flags);
    dgm_out_string(j, "notice", notice_of(r));
    dgm_out_string(j, "error", fine ? NULL : r->message);
    dgm_out_end(j);
}

void dgm_v1_put_answer(dgm_json_out *j, const dgm_v1_wish *w, const dgm_task_view *view)
{
    dgm_out_string(j, "source", view->source);
    dgm_out_string(j, "target", view->target);
    dgm_out_string(j, "model", view->model);
    dgm_out_string(j, "pivot", view->pivot);
    dgm_v1_put_detected(j, w);
    dgm_out_array(j, "translations");
    for (size_t i = 0; i < view->count; i++) put_text(j, w, view, i);
    dgm_out_end(j);
    dgm_out_object(j, "usage");
    dgm_out_integer(j, "characters", (int64_t)view->characters);
    dgm_out_integer(j, "sentences", (int64_t)view->sentences);
    dgm_out_integer(j, "source_tokens", (int64_t)view->source_tokens);
    dgm_out_integer(j, "target_tokens", (int64_t)view->target_tokens);
    dgm_out_end(j);
    dgm_out_real(j, "queued_ms", (double)(int64_t)(view->queued * 1e6) / 1000);
    dgm_out_real(j, "ms", (double)(int64_t)(view->seconds * 1e6) / 1000);
}
