// SPDX-License-Identifier: MIT
// See po_format.h.
#include "document/po_format.h"

#include <string.h>

#include "base/mem.h"

enum { ARGUMENTS_MAX = 32 };

typedef struct argument {
    size_t begin, end; // "%-5s"
    bool numbered;
} argument;

dgm_po_format dgm_po_format_of(dgm_text flags)
{
    static const struct {
        const char *name;
        dgm_po_format format;
    } known[] = {{"c-format", DGM_PO_C},    {"objc-format", DGM_PO_C},
                 {"php-format", DGM_PO_C},  {"python-format", DGM_PO_ORDERED},
                 {"perl-format", DGM_PO_C}, {"javascript-format", DGM_PO_ORDERED}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t n = strlen(known[i].name);
        for (size_t k = 0; k + n <= flags.size; k++) {
            const char before = k ? flags.data[k - 1] : ' ';
            // "no-c-format" says that it is none.
            if (memcmp(flags.data + k, known[i].name, n) == 0 && (before == ' ' || before == ','))
                return known[i].format;
        }
    }
    return DGM_PO_PLAIN;
}

// Conversions in order; "%%" and "%(name)s" are none.
static size_t find_arguments(dgm_text t, argument *out)
{
    size_t count = 0;
    for (size_t i = 0; i + 1 < t.size; i++) {
        if (t.data[i] != '%') continue;
        if (t.data[i + 1] == '%' || t.data[i + 1] == '(') {
            i++;
            continue;
        }
        size_t end = i + 1;
        while (end < t.size && strchr("0123456789$-+ .#*'lhzjtqLI", t.data[end]) && t.data[end]) end++;
        if (end >= t.size || !strchr("sdiufFgGeEaAxXocpnm@", t.data[end])) continue;
        if (count < ARGUMENTS_MAX) out[count] = (argument){i, end + 1, memchr(t.data + i, '$', end - i) != NULL};
        count++;
        i = end;
    }
    return count;
}

static bool same_argument(dgm_text a, const argument *x, dgm_text b, const argument *y)
{
    return x->end - x->begin == y->end - y->begin &&
           memcmp(a.data + x->begin, b.data + y->begin, x->end - x->begin) == 0;
}

// Which argument of the source each of the translation is, those that are alike in order; false: they differ.
static bool match(dgm_text source, const argument *from, dgm_text translation, const argument *to, size_t count,
                  size_t *which)
{
    bool used[ARGUMENTS_MAX] = {false};
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < count && (used[k] || !same_argument(translation, &to[i], source, &from[k]))) k++;
        if (k == count) return false;
        used[k] = true;
        which[i] = k;
    }
    return true;
}

static size_t count_signs(dgm_text t)
{
    size_t n = 0;
    for (size_t i = 0; i < t.size; i++) n += t.data[i] == '%';
    return n;
}

dgm_status dgm_po_check(dgm_text source, dgm_text translation, dgm_po_format format, dgm_writer *out, dgm_error *err)
{
    argument from[ARGUMENTS_MAX], to[ARGUMENTS_MAX];
    size_t which[ARGUMENTS_MAX] = {0};
    const size_t count = format ? find_arguments(source, from) : 0,
                 have = format ? find_arguments(translation, to) : 0;
    bool moved = false, numbered = false, stars = false;
    if (format && count_signs(source) != count_signs(translation))
        return DGM_OK; // half an argument is left somewhere
    if (count != have || count > ARGUMENTS_MAX || !match(source, from, translation, to, count, which)) return DGM_OK;
    for (size_t i = 0; i < count; i++) {
        moved |= which[i] != i;
        numbered |= from[i].numbered;
        stars |= memchr(source.data + from[i].begin, '*', from[i].end - from[i].begin) != NULL;
    }
    if (moved && !numbered && (format == DGM_PO_ORDERED || stars)) return DGM_OK;
    size_t at = 0;
    for (size_t i = 0; moved && !numbered && i < count; i++) {
        dgm_write_bytes(out, translation.data + at, to[i].begin + 1 - at);
        dgm_write_format(out, "%zu$", which[i] + 1);
        at = to[i].begin + 1;
    }
    dgm_write_bytes(out, translation.data + at, translation.size - at);
    return out->failed ? dgm_no_memory(err) : DGM_OK;
}
