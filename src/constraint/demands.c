// SPDX-License-Identifier: MIT
// Parsing a line of constraints; see demands.h. One pass: characters are copied without their
// backslashes, and marks that stand for themselves end a stretch.
#include "constraint/demands.h"

#include <string.h>

#include "base/mem.h"

void dgm_demands_free(dgm_demands *d)
{
    dgm_free(d->items);
    dgm_free(d->variants);
    dgm_writer_free(&d->text);
    memset(d, 0, sizeof *d);
}

// Without the white space around it.
static dgm_stretch trim(const dgm_demands *d, dgm_stretch s)
{
    const dgm_text t = dgm_text_trim(dgm_demands_text(d, s));
    if (t.size == 0) return (dgm_stretch){s.begin, 0};
    return (dgm_stretch){(size_t)(t.data - (const char *)d->text.data), t.size};
}

static dgm_status add_variant(dgm_demands *d, dgm_stretch s, dgm_error *err)
{
    DGM_TRY(dgm_grow(&d->variants, &d->variant_cap, d->variant_count + 1, sizeof *d->variants,
                     err));
    d->variants[d->variant_count++] = s;
    return DGM_OK;
}

static char escaped(char c)
{
    return c == 't' ? '\t' : c;
}

typedef struct parse {
    dgm_demands *d;
    dgm_text entry;
    size_t number; // of the entry, from 1
    size_t at;     // in the entry
} parse;

// Copies up to a mark that stands for itself: '|', "=>" or the end (0).
static dgm_status read_part(parse *p, char *mark, dgm_stretch *out, dgm_error *err)
{
    dgm_writer *w = &p->d->text;
    const size_t begin = w->size;
    *mark = 0;
    while (p->at < p->entry.size) {
        const char c = p->entry.data[p->at];
        if (c == '\\') {
            DGM_FAIL_IF(p->at + 1 == p->entry.size, err, DGM_ERR_TEXT,
                        "constraint %zu: nothing follows the last backslash", p->number);
            dgm_write_u8(w, (uint8_t)escaped(p->entry.data[p->at + 1]));
            p->at += 2;
            continue;
        }
        if (c == '|' || (c == '=' && p->at + 1 < p->entry.size && p->entry.data[p->at + 1] == '>')) {
            *mark = c;
            p->at += c == '|' ? 1 : 2;
            break;
        }
        dgm_write_u8(w, (uint8_t)c);
        p->at++;
    }
    if (w->failed) return dgm_no_memory(err);
    *out = trim(p->d, (dgm_stretch){begin, w->size - begin});
    return DGM_OK;
}

static dgm_demand_kind kind_of(parse *p)
{
    const char c = p->entry.data[0];
    const dgm_demand_kind kind = c == '!'   ? DGM_DEMAND_FORBID
                                 : c == '^' ? DGM_DEMAND_BEGIN
                                 : c == '$' ? DGM_DEMAND_END
                                            : DGM_DEMAND_TERM;
    if (kind != DGM_DEMAND_TERM) p->at = 1;
    return kind;
}

static dgm_status check_once(const parse *p, const dgm_demand *made, dgm_error *err)
{
    const char *what = made->kind == DGM_DEMAND_BEGIN ? "beginning" : "end";
    if (made->kind != DGM_DEMAND_BEGIN && made->kind != DGM_DEMAND_END) return DGM_OK;
    DGM_FAIL_IF(made->count > 1, err, DGM_ERR_TEXT, "constraint %zu: a translation has only one %s",
                p->number, what);
    for (size_t i = 0; i < p->d->count; i++)
        DGM_FAIL_IF(p->d->items[i].kind == made->kind, err, DGM_ERR_TEXT,
                    "constraint %zu: the %s of the translation is given twice", p->number, what);
    return DGM_OK;
}

static dgm_status read_entry(parse *p, dgm_error *err)
{
    dgm_demands *d = p->d;
    dgm_demand made = {.kind = kind_of(p), .first = d->variant_count};
    bool arrow = false;
    char mark = 0;
    do {
        dgm_stretch part = {0, 0};
        DGM_TRY(read_part(p, &mark, &part, err));
        if (mark == '=') {
            DGM_FAIL_IF(made.kind != DGM_DEMAND_TERM, err, DGM_ERR_TEXT,
                        "constraint %zu: '=>' is not allowed in '%c' constraints", p->number,
                        p->entry.data[0]);
            DGM_FAIL_IF(arrow || d->variant_count > made.first, err, DGM_ERR_TEXT,
                        arrow ? "constraint %zu: '=>' occurs twice"
                              : "constraint %zu: a term has only one source, before '=>'",
                        p->number);
            DGM_FAIL_IF(part.size == 0, err, DGM_ERR_TEXT,
                        "constraint %zu: no source before '=>'", p->number);
            made.source = part;
            arrow = true;
            continue;
        }
        DGM_FAIL_IF(part.size == 0, err, DGM_ERR_TEXT, "constraint %zu: %s", p->number,
                    arrow                          ? "no target after '=>'"
                    : made.kind == DGM_DEMAND_TERM ? "an empty variant"
                                                   : "its text is missing");
        DGM_TRY(add_variant(d, part, err));
    } while (mark);
    made.count = d->variant_count - made.first;
    DGM_TRY(check_once(p, &made, err));
    DGM_TRY(dgm_grow(&d->items, &d->item_cap, d->count + 1, sizeof *d->items, err));
    d->items[d->count++] = made;
    return DGM_OK;
}

dgm_status dgm_demands_parse(dgm_demands *d, dgm_text line, dgm_error *err)
{
    d->count = d->variant_count = d->text.size = 0;
    dgm_status st = DGM_OK;
    size_t number = 0;
    for (size_t at = 0; at <= line.size && st == DGM_OK;) {
        const char *tab = at < line.size ? memchr(line.data + at, '\t', line.size - at) : NULL;
        const size_t end = tab ? (size_t)(tab - line.data) : line.size;
        parse p = {.d = d,
                   .entry = dgm_text_trim((dgm_text){line.data + at, end - at}),
                   .number = ++number};
        if (p.entry.size) st = read_entry(&p, err);
        at = end + 1;
    }
    if (st != DGM_OK) d->count = d->variant_count = 0;
    return st;
}
