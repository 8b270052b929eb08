// SPDX-License-Identifier: MIT
// See splice.h.
#include "text/splice.h"

#include "base/mem.h"

void dgm_spliced_clear(dgm_spliced *s)
{
    s->text.size = 0;
    s->count = 0;
}

void dgm_spliced_free(dgm_spliced *s)
{
    dgm_writer_free(&s->text);
    dgm_free(s->items);
    *s = (dgm_spliced){0};
}

static size_t done(const dgm_spliced *s)
{
    return s->count ? s->items[s->count - 1].to : 0;
}

dgm_status dgm_splice_add(dgm_spliced *s, dgm_text old, size_t from, size_t to, dgm_text with, dgm_error *err)
{
    DGM_TRY(dgm_grow(&s->items, &s->cap, s->count + 1, sizeof *s->items, err));
    dgm_write_bytes(&s->text, old.data + done(s), from - done(s));
    const size_t begin = s->text.size;
    dgm_write_bytes(&s->text, with.data, with.size);
    s->items[s->count++] = (dgm_splice){from, to, begin, s->text.size};
    return s->text.failed ? dgm_no_memory(err) : DGM_OK;
}

dgm_status dgm_splice_end(dgm_spliced *s, dgm_text old, dgm_error *err)
{
    dgm_write_bytes(&s->text, old.data + done(s), old.size - done(s));
    return s->text.failed ? dgm_no_memory(err) : DGM_OK;
}

// An end that lies inside of what was put there is the end of what it replaced, a beginning its beginning.
static size_t place(const dgm_spliced *s, size_t at, bool is_end)
{
    size_t old = at;
    for (size_t i = 0; i < s->count; i++) {
        const dgm_splice *x = &s->items[i];
        if (at >= x->end)
            old = x->to + (at - x->end);
        else if (is_end ? at > x->begin : at >= x->begin)
            return is_end ? x->to : x->from;
        else
            break;
    }
    return old;
}

dgm_span dgm_splice_span(const dgm_spliced *s, dgm_span span)
{
    const size_t begin = place(s, span.begin, false);
    const size_t end = span.end == span.begin ? begin : place(s, span.end, true);
    return (dgm_span){(uint32_t)begin, (uint32_t)end};
}
