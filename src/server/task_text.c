// SPDX-License-Identifier: MIT
// Texts to segments, and segments to texts again; see task.h.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "dragoman/text.h"
#include "server/server_private.h"

enum {
    LONG_LINE = 1000, // bytes, from which on a line is cut into sentences: the queue takes turns by segments
    TOKEN_BYTES = 4,  // of a token, for the shares of the queue
    TOKEN_OVERHEAD = 2,
};

// ---- cutting --------------------------------------------------------------------------------------

typedef struct cutter {
    dgm_task *task;
    dgm_task_leg *leg;
    dgm_segment *items;
    size_t count, cap;
} cutter;

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

static dgm_status add(cutter *c, size_t text, size_t begin, size_t end, dgm_error *err)
{
    const char *data = c->leg->texts[text].text;
    while (begin < end && is_white(data[begin])) begin++;
    while (end > begin && is_white(data[end - 1])) end--;
    if (begin == end) return DGM_OK;
    DGM_TRY(dgm_grow(&c->items, &c->cap, c->count + 1, sizeof *c->items, err));
    c->items[c->count++] = (dgm_segment){.text = text, .begin = begin, .end = end};
    return DGM_OK;
}

static dgm_status add_sentences(cutter *c, size_t text, size_t begin, size_t end, dgm_error *err)
{
    const char *data = c->leg->texts[text].text;
    dgm_sentence *found = NULL;
    size_t count = 0;
    DGM_TRY(dgm_sentences(data + begin, end - begin, c->leg->source, &found, &count, err));
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < count && st == DGM_OK; i++)
        st = add(c, text, begin + found[i].begin, begin + found[i].end, err);
    dgm_sentences_free(&found);
    return st;
}

static dgm_status cut_text(cutter *c, size_t text, dgm_error *err)
{
    const dgm_task_text *t = &c->leg->texts[text];
    const bool whole = c->task->spec.whole || c->leg->lane->model->paragraphs || c->task->server->settings.raw;
    const bool always = c->task->spec.sentences || c->task->spec.book_count || t->constraints;
    if (t->prefix) return add(c, text, 0, t->size, err);
    for (size_t at = 0; at < t->size;) {
        const char *stop = memchr(t->text + at, '\n', t->size - at);
        const size_t end = stop ? (size_t)(stop - t->text) : t->size;
        if (!whole && (always || end - at > LONG_LINE))
            DGM_TRY(add_sentences(c, text, at, end, err));
        else
            DGM_TRY(add(c, text, at, end, err));
        at = end + 1;
    }
    return DGM_OK;
}

// ---- glossaries of a request ----------------------------------------------------------------------

static void put_escaped(dgm_writer *w, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\|=!^$", *text)) dgm_write_u8(w, '\\');
        dgm_write_u8(w, (uint8_t)(*text == '\t' || *text == '\n' || *text == '\r' ? ' ' : *text));
    }
}

// Terms that stand in a segment.
typedef struct found {
    uint64_t *marks; // for the largest book; none is set between two segments
    const dgm_term **items;
    size_t count, cap;
} found;

static bool is_found(const found *f, size_t count, const char *source)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(f->items[i]->source, source) == 0) return true;
    return false;
}

// In the order of the books and of their terms. The engine looks properly, at whole words: this only spares sentences
// without any the way of those that have demands.
static dgm_status find_terms(const dgm_task *task, const char *text, size_t size, found *f, dgm_error *err)
{
    f->count = 0;
    for (size_t i = 0; i < task->spec.book_count; i++) {
        const dgm_termbook *book = task->spec.books[i];
        const size_t words = (dgm_termbook_count(book) + 63) / 64, before = f->count;
        dgm_termbook_mark(book, text, size, f->marks);
        for (size_t w = 0; w < words; w++)
            for (; f->marks[w]; f->marks[w] &= f->marks[w] - 1) {
                const dgm_term *term = dgm_termbook_at(book, 64 * w + (size_t)__builtin_ctzll(f->marks[w]));
                if (is_found(f, before, term->source)) continue;
                DGM_TRY(dgm_grow(&f->items, &f->cap, f->count + 1, sizeof *f->items, err));
                f->items[f->count++] = term;
            }
    }
    return DGM_OK;
}

// Constraints of the text, and the terms that stand in the segment; NULL: none.
static dgm_status demand(dgm_task *task, const dgm_task_leg *leg, const dgm_segment *s, found *f, char **out,
                         dgm_error *err)
{
    const dgm_task_text *t = &leg->texts[s->text];
    dgm_writer w = {0};
    *out = NULL;
    DGM_TRY(find_terms(task, t->text + s->begin, s->end - s->begin, f, err));
    if (t->constraints) dgm_write_bytes(&w, t->constraints, t->constraints_size);
    for (size_t i = 0; i < f->count; i++) {
        if (w.size) dgm_write_u8(&w, '\t');
        put_escaped(&w, f->items[i]->source);
        dgm_write_text(&w, " => ");
        put_escaped(&w, f->items[i]->target);
    }
    if (w.size) {
        *out = dgm_task_memory(task, w.size + 1);
        if (*out && !w.failed) memcpy(*out, w.data, w.size);
    }
    const bool lost = w.failed || (w.size && !*out);
    dgm_writer_free(&w);
    return lost ? dgm_no_memory(err) : DGM_OK;
}

static dgm_status add_demands(dgm_task *task, dgm_task_leg *leg, dgm_error *err)
{
    bool any = task->spec.book_count > 0;
    size_t most = 0;
    for (size_t i = 0; i < task->spec.count; i++) any = any || leg->texts[i].constraints;
    if (!any) return DGM_OK;
    for (size_t i = 0; i < task->spec.book_count; i++) {
        const size_t count = dgm_termbook_count(task->spec.books[i]);
        if (count > most) most = count;
    }
    found f = {.marks = dgm_calloc(most / 64 + 1, sizeof *f.marks)};
    leg->demands = dgm_task_memory(task, (leg->segment_count + 1) * sizeof *leg->demands);
    dgm_status st = f.marks && leg->demands ? DGM_OK : dgm_no_memory(err);
    for (size_t i = 0; i < leg->segment_count && st == DGM_OK; i++)
        st = demand(task, leg, &leg->segments[i], &f, &leg->demands[i], err);
    dgm_free(f.marks);
    dgm_free(f.items);
    return st;
}

dgm_status dgm_task_cut(dgm_task *task, dgm_task_leg *leg, dgm_error *err)
{
    cutter c = {.task = task, .leg = leg};
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < task->spec.count && st == DGM_OK; i++) st = cut_text(&c, i, err);
    leg->segment_count = c.count;
    leg->segments = st == DGM_OK ? dgm_task_memory(task, (c.count + 1) * sizeof *c.items) : NULL;
    leg->costs = st == DGM_OK ? dgm_task_memory(task, (c.count + 1) * sizeof *leg->costs) : NULL;
    if (st == DGM_OK && (!leg->segments || !leg->costs)) st = dgm_no_memory(err);
    if (st == DGM_OK && c.count) memcpy(leg->segments, c.items, c.count * sizeof *c.items);
    dgm_free(c.items);
    if (st != DGM_OK) return st;
    for (size_t i = 0; i < c.count; i++)
        leg->costs[i] = (uint32_t)((leg->segments[i].end - leg->segments[i].begin) / TOKEN_BYTES + TOKEN_OVERHEAD);
    // Demands are of the last leg: words of the target language.
    return task->way.second && leg == &task->legs[0] ? DGM_OK : add_demands(task, leg, err);
}

// ---- joining --------------------------------------------------------------------------------------

// The k-th translation of a segment, or its last one.
static const dgm_translation *choice(const dgm_result *r, size_t k)
{
    return r->translations[k < r->count ? k : r->count - 1];
}

// The text made of the k-th translation of every segment. With k 0, where each of them stands.
static char *join(const dgm_task_leg *leg, size_t text, dgm_segment *s, size_t count, size_t k, size_t *size)
{
    const dgm_task_text *t = &leg->texts[text];
    dgm_writer w = {0};
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        dgm_write_bytes(&w, t->text + at, s[i].begin - at);
        at = s[i].end;
        const dgm_translation *x = choice(s[i].result, k);
        if (k == 0) {
            s[i].at = w.size;
            s[i].size = x->text_size;
        }
        dgm_write_bytes(&w, x->text, x->text_size);
    }
    dgm_write_bytes(&w, t->text + at, t->size - at);
    return dgm_writer_take(&w, size);
}

// A segment that failed fails its text.
static const dgm_result *first_failure(const dgm_segment *s, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (s[i].result->status != DGM_OK || s[i].result->count == 0) return s[i].result;
    return NULL;
}

// A translation that is none of those before it.
static bool is_new(char *const *texts, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(texts[i], text) == 0) return false;
    return true;
}

static dgm_status join_text(dgm_task *task, dgm_task_leg *leg, size_t text, dgm_segment *s, size_t count,
                            dgm_error *err)
{
    dgm_task_result *r = &task->results[text];
    const size_t most = task->spec.nbest > 1 ? (size_t)task->spec.nbest : 1;
    size_t kinds = 1;
    *r = (dgm_task_result){.message = "", .segments = s, .segment_count = count};
    const dgm_result *failed = first_failure(s, count);
    for (size_t i = 0; i < count; i++) {
        r->flags |= s[i].result->flags;
        if (s[i].result->count > kinds) kinds = s[i].result->count;
    }
    if (failed) {
        r->status = failed->status != DGM_OK ? failed->status : DGM_ERR_TEXT;
        r->message = failed->message;
        return DGM_OK;
    }
    char **texts = dgm_task_memory(task, most * sizeof *texts);
    size_t *sizes = dgm_task_memory(task, most * sizeof *sizes);
    if (!texts || !sizes) return dgm_no_memory(err);
    for (size_t k = 0; k < kinds && r->count < most; k++) {
        size_t size = 0;
        char *joined = join(leg, text, s, count, k, &size);
        char *own = joined ? dgm_task_memory(task, size + 1) : NULL;
        if (own) memcpy(own, joined, size + 1);
        dgm_free(joined);
        if (!own) return dgm_no_memory(err);
        if (!is_new(texts, r->count, own)) continue;
        texts[r->count] = own;
        sizes[r->count++] = size;
    }
    r->translations = texts;
    r->sizes = sizes;
    return DGM_OK;
}

uint64_t dgm_task_text_characters(const dgm_task_text *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->size; i++) n += ((unsigned char)t->text[i] & 0xc0) != 0x80;
    return n;
}

dgm_status dgm_task_join(dgm_task *task, dgm_task_leg *leg, dgm_error *err)
{
    size_t at = 0;
    for (size_t i = 0; i < task->spec.count; i++) {
        size_t count = 0;
        while (at + count < leg->segment_count && leg->segments[at + count].text == i) count++;
        for (size_t k = 0; k < count; k++)
            DGM_FAIL_IF(!leg->segments[at + k].result, err, DGM_ERR_CANCELLED, "the request was given up");
        DGM_TRY(join_text(task, leg, i, leg->segments + at, count, err));
        if (task->leg == 0) task->view.characters += dgm_task_text_characters(&leg->texts[i]);
        at += count;
    }
    if (task->leg == 0) task->view.sentences = leg->segment_count;
    return DGM_OK;
}
