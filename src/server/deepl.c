// SPDX-License-Identifier: MIT
// DeepL's API: /v2/translate. Texts may be in different languages: those of one are translated together, one language
// after the other.
#include <string.h>

#include "base/mem.h"
#include "server/deepl_private.h"
#include "server/papers.h"
#include "server/usage.h"

typedef struct wish {
    dgm_request *request;
    dgm_task_text *texts; // as they were sent
    dgm_task_text *given; // as they are translated: without line breaks where nobody wants them to end a sentence
    size_t count;
    const dgm_pool_listing *listing;
    const dgm_pool_language *from, *to; // from NULL: to be found out for each text
    const dgm_pool_language **sources;  // [count]
    dgm_task_text *answers;             // [count]
    bool *ready;                        // [count]
    size_t *group;                      // texts that are being translated
    dgm_task_text *grouped;
    size_t group_count;
    const char *tags; // "xml", "html"; NULL: text
    const char *ignore, *splitting, *inlined;
    bool outline, whole, billed;
    const char *model_type;
} wish;

static void next_group(wish *w);

static void free_wish(void *user)
{
    wish *w = user; // its memory is the request's
    dgm_pool_release(&w->listing);
}

static void lack_memory(dgm_request *q)
{
    dgm_answer_error(q, 500, "out of memory");
}

// ---- reading --------------------------------------------------------------------------------------

// Names with commas between them; NULL in *out: none. False: it was answered.
static bool read_tags(dgm_request *q, const char *name, const char **out)
{
    size_t count = 0, size = 0;
    const dgm_task_text *list = dgm_deepl_texts(q, name, true, &count);
    if (!list) return false;
    for (size_t i = 0; i < count; i++) size += list[i].size + 1;
    char *all = size ? dgm_request_memory(q, size + 1) : NULL, *to = all;
    *out = all;
    for (size_t i = 0; all && i < count; i++) {
        if (i) *to++ = ',';
        memcpy(to, list[i].text, list[i].size);
        to += list[i].size;
    }
    if (size && !all) lack_memory(q);
    return all || !size;
}

// Line breaks within a text become blanks; those at its ends stay.
static const char *without_breaks(dgm_request *q, const dgm_task_text *t)
{
    char *own = dgm_request_copy(q, t->text, t->size);
    size_t end = t->size, begin = 0;
    while (end && strchr("\r\n", t->text[end - 1])) end--;
    while (begin < end && strchr("\r\n", t->text[begin])) begin++;
    for (size_t i = begin; own && i < end; i++)
        if (own[i] == '\n' || own[i] == '\r') own[i] = ' ';
    return own;
}

static bool read_sentences(wish *w)
{
    dgm_request *q = w->request;
    const char *split = dgm_deepl_word(q, "split_sentences");
    const bool breaks = !split || strcmp(split, "1") == 0;
    w->whole = split && strcmp(split, "0") == 0;
    w->given = w->texts;
    if (breaks || w->tags) return true; // white space around tags is all the same
    w->given = dgm_request_memory(q, (w->count + 1) * sizeof *w->given);
    bool fine = w->given != NULL;
    for (size_t i = 0; fine && i < w->count; i++) {
        w->given[i] = (dgm_task_text){.text = without_breaks(q, &w->texts[i]), .size = w->texts[i].size};
        fine = w->given[i].text != NULL;
    }
    if (!fine) lack_memory(q);
    return fine;
}

static bool read_options(wish *w)
{
    dgm_request *q = w->request;
    w->tags = dgm_request_text(q, "tag_handling", NULL, NULL);
    if (w->tags && !w->tags[0]) w->tags = NULL;
    w->outline = dgm_deepl_flag(q, "outline_detection", true);
    w->billed = dgm_deepl_flag(q, "show_billed_characters", false);
    w->model_type = dgm_request_text(q, "model_type", NULL, NULL);
    return read_tags(q, "ignore_tags", &w->ignore) && read_tags(q, "splitting_tags", &w->splitting) &&
           read_tags(q, "non_splitting_tags", &w->inlined);
}

static bool check_size(dgm_request *q, const wish *w)
{
    const dgm_server_options *o = &q->server->options;
    const int64_t most = q->key && q->key->char_limit >= 0 ? q->key->char_limit : o->char_limit;
    q->texts = w->count;
    for (size_t i = 0; i < w->count; i++) q->characters += dgm_task_text_characters(&w->texts[i]);
    if (w->count == 0) {
        dgm_answer_error(q, 400, "Parameter 'text' not specified.");
        return false;
    }
    if ((o->batch_limit >= 0 && w->count > (size_t)o->batch_limit) || (most >= 0 && (int64_t)q->characters > most)) {
        dgm_answer_error(q, 413, "The request has more texts or characters than it may have.");
        return false;
    }
    return dgm_request_bill(q);
}

static bool reserve(dgm_request *q, wish *w)
{
    w->sources = dgm_request_memory(q, (w->count + 1) * sizeof *w->sources);
    w->answers = dgm_request_memory(q, (w->count + 1) * sizeof *w->answers);
    w->ready = dgm_request_memory(q, (w->count + 1) * sizeof *w->ready);
    w->group = dgm_request_memory(q, (w->count + 1) * sizeof *w->group);
    w->grouped = dgm_request_memory(q, (w->count + 1) * sizeof *w->grouped);
    if (w->sources && w->answers && w->ready && w->group && w->grouped) return true;
    lack_memory(q);
    return false;
}

// ---- answering ------------------------------------------------------------------------------------

static void answer(wish *w)
{
    char code[DGM_DEEPL_CODE];
    dgm_json_out j = {0};
    const bool quick = w->model_type && strcmp(w->model_type, "latency_optimized") == 0;
    dgm_out_object(&j, NULL);
    dgm_out_array(&j, "translations");
    for (size_t i = 0; i < w->count; i++) {
        dgm_deepl_base(w->sources[i]->code, false, code);
        dgm_out_object(&j, NULL);
        dgm_out_string(&j, "detected_source_language", code);
        dgm_out_text(&j, "text", w->answers[i].text, w->answers[i].size);
        if (w->billed) dgm_out_integer(&j, "billed_characters", (int64_t)dgm_task_text_characters(&w->texts[i]));
        if (w->model_type) dgm_out_string(&j, "model_type_used", quick ? "latency_optimized" : "quality_optimized");
        dgm_out_end(&j);
    }
    dgm_out_end(&j);
    dgm_out_end(&j);
    dgm_answer_json(w->request, 200, &j);
}

// A translation of the i-th text of the group; false: it was answered.
static bool take(wish *w, size_t i, const char *text, size_t size)
{
    char *own = dgm_request_copy(w->request, text, size);
    w->answers[w->group[i]] = (dgm_task_text){.text = own, .size = size};
    if (!own) lack_memory(w->request); // which is nobody's then, and w with it
    return own != NULL;
}

// ---- translating ----------------------------------------------------------------------------------

static void translated(dgm_task *task, void *user)
{
    wish *w = user;
    const dgm_task_view *view = dgm_task_look(task);
    bool fine = !dgm_answer_task_failure(w->request, view);
    for (size_t i = 0; fine && i < w->group_count; i++)
        fine = take(w, i, view->results[i].translations[0], view->results[i].sizes[0]);
    dgm_task_free(&task);
    if (fine) next_group(w);
}

static void pages_written(void *user, dgm_status st, const dgm_error *err, dgm_writer *outputs, size_t count)
{
    wish *w = user;
    bool fine = st == DGM_OK;
    if (!fine) dgm_answer_failure(w->request, st, err);
    for (size_t i = 0; i < count; i++) {
        fine = fine && take(w, i, (const char *)outputs[i].data, outputs[i].size);
        dgm_writer_free(&outputs[i]);
    }
    if (fine) next_group(w);
}

static dgm_papers_spec pages_of(const wish *w, const dgm_task_text *texts, size_t count)
{
    return (dgm_papers_spec){.texts = texts,
                             .count = count,
                             .utf8 = true,
                             .format = w->tags,
                             .ignore_tags = w->ignore,
                             .splitting_tags = w->splitting,
                             .inline_tags = w->inlined,
                             .no_outline = !w->outline};
}

static void start(wish *w, const dgm_pool_language *from)
{
    static const dgm_task_setting none = {"split", "none"};
    dgm_request *q = w->request;
    dgm_error err;
    dgm_status st;
    q->source = from->code;
    q->target = w->to->code;
    if (w->tags) {
        dgm_papers_spec spec = pages_of(w, w->grouped, w->group_count);
        spec.source = from->code;
        spec.target = w->to->code;
        spec.books = q->books;
        spec.book_count = q->book_count;
        spec.settings = &none;
        spec.setting_count = w->whole;
        spec.done = pages_written;
        spec.user = w;
        st = dgm_papers_start(q, &spec, NULL, &err);
        if (st == DGM_ERR_FORMAT) {
            dgm_answer_error(q, 400, "Tag handling parsing failed, please check input. %s", err.text);
            return;
        }
    } else {
        const dgm_task_spec spec = {.source = from->code,
                                    .target = w->to->code,
                                    .texts = w->grouped,
                                    .count = w->group_count,
                                    .whole = w->whole,
                                    .settings = &none,
                                    .setting_count = w->whole,
                                    .books = q->books,
                                    .book_count = q->book_count,
                                    .done = translated,
                                    .user = w};
        st = dgm_task_start(q->server, q, &spec, &err);
    }
    if (st != DGM_OK) dgm_answer_failure(q, st, &err);
}

// The texts of the next language; what is in the target language already stays as it is.
static void next_group(wish *w)
{
    size_t first = 0;
    for (; first < w->count && w->ready[first]; first++)
        ;
    if (first == w->count) {
        answer(w);
        return;
    }
    const dgm_pool_language *from = w->sources[first];
    w->group_count = 0;
    for (size_t i = first; i < w->count; i++) {
        if (w->ready[i] || w->sources[i] != from) continue;
        w->ready[i] = true;
        w->answers[i] = w->texts[i];
        w->grouped[w->group_count] = w->given[i];
        w->group[w->group_count++] = i;
    }
    if (from == w->to)
        next_group(w); // at most once more
    else
        start(w, from);
}

// Of text with tags, what stands between them.
static const dgm_pool_language *detect(const wish *w, size_t i)
{
    dgm_writer sample = {0};
    dgm_error err;
    const dgm_papers_spec spec = pages_of(w, &w->given[i], 1);
    const bool found = w->tags && dgm_papers_sample(&spec, &sample, &err) == DGM_OK;
    const dgm_pool_language *l = found
                                     ? dgm_deepl_detect(w->listing, (const char *)sample.data, sample.size)
                                     : dgm_deepl_detect(w->listing, w->given[i].text, w->given[i].size);
    dgm_writer_free(&sample);
    return l;
}

void dgm_deepl_translate(dgm_request *q)
{
    if (!dgm_deepl_manners(q) || !dgm_deepl_check(q)) return;
    wish *w = dgm_request_memory(q, sizeof *w);
    if (!w) {
        lack_memory(q);
        return;
    }
    *w = (wish){.request = q};
    q->user = w;
    q->user_free = free_wish;
    w->listing = dgm_pool_list(q->server);
    dgm_task_text *texts = dgm_deepl_texts(q, "text", false, &w->count);
    if (!texts) return; // it was answered, and w is gone
    w->texts = texts;
    if (!read_options(w) || !read_sentences(w) || !reserve(q, w) ||
        !dgm_deepl_pair(q, w->listing, &w->from, &w->to) ||
        !dgm_deepl_terms(q, w->from, w->to) || !check_size(q, w))
        return;
    for (size_t i = 0; i < w->count; i++) w->sources[i] = w->from ? w->from : detect(w, i);
    next_group(w);
}
