// SPDX-License-Identifier: MIT
// Messages of ICU with branches. Each branch is translated as the whole sentence that it makes, since languages
// differ in what a number changes:
//
//     You have {n, plural, one {# file} other {# files}}.
//     {n, plural, one {Sie haben # Datei.} other {Sie haben # Dateien.}}
//
// Branches inside of branches, and several choices in one message, are nested in the same way.
#include <string.h>

#include "base/mem.h"
#include "document/document_private.h"

enum { LEAVES_MAX = 64, DEPTH_MAX = 6 };

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static size_t skip_space(dgm_text t, size_t pos)
{
    while (pos < t.size && is_space(t.data[pos])) pos++;
    return pos;
}

// Behind the "}" that closes the "{" at pos; 0: none does. Braces between apostrophes are text.
static size_t close_of(dgm_text t, size_t pos)
{
    int depth = 0;
    for (size_t i = pos; i < t.size; i++) {
        const char next = i + 1 < t.size ? t.data[i + 1] : 0;
        if (t.data[i] == '\'' && (next == '{' || next == '}')) {
            const char *end = memchr(t.data + i + 1, '\'', t.size - i - 1);
            if (!end) return 0;
            i = (size_t)(end - t.data);
            continue;
        }
        if (t.data[i] == '{') depth++;
        if (t.data[i] == '}' && --depth == 0) return i + 1;
    }
    return 0;
}

// Where the branches of a choice begin that stands at pos: behind "{name, plural,"; 0: no choice.
static size_t branches_of(dgm_text t, size_t pos)
{
    static const char *const kinds[] = {"plural", "selectordinal", "select"};
    size_t i = skip_space(t, pos + 1);
    const size_t name = i;
    while (i < t.size && t.data[i] != ',' && t.data[i] != '{' && t.data[i] != '}' && !is_space(t.data[i])) i++;
    if (i == name) return 0;
    i = skip_space(t, i);
    if (i >= t.size || t.data[i] != ',') return 0;
    i = skip_space(t, i + 1);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const size_t n = strlen(kinds[k]);
        if (i + n > t.size || memcmp(t.data + i, kinds[k], n) != 0) continue;
        const size_t comma = skip_space(t, i + n);
        if (comma < t.size && t.data[comma] == ',') return comma + 1;
    }
    return 0;
}

// The first choice that is not inside of another: [*begin, *end).
static bool find_choice(dgm_text t, size_t *begin, size_t *end, size_t *branches)
{
    for (size_t i = 0; i < t.size; i++) {
        if (t.data[i] != '{') continue;
        *end = close_of(t, i);
        if (!*end) return false;
        *begin = i;
        *branches = branches_of(t, i);
        if (*branches && memchr(t.data + *branches, '{', *end - *branches)) return true;
        i = *end - 1;
    }
    return false;
}

bool dgm_icu_is_message(dgm_text text)
{
    size_t begin = 0, end = 0, branches = 0;
    return find_choice(text, &begin, &end, &branches);
}

// How many sentences a message makes; more than LEAVES_MAX: too many.
static int count_leaves(dgm_text t, int depth)
{
    size_t begin = 0, end = 0, at = 0;
    if (depth > DEPTH_MAX) return LEAVES_MAX + 1;
    if (!find_choice(t, &begin, &end, &at)) return 1;
    int sum = 0;
    const int behind = count_leaves((dgm_text){t.data + end, t.size - end}, depth + 1);
    for (;;) {
        const char *open = memchr(t.data + at, '{', end - at);
        const size_t from = open ? (size_t)(open - t.data) : 0, to = open ? close_of(t, from) : 0;
        if (sum > LEAVES_MAX) return LEAVES_MAX + 1;
        if (!to || to > end) return sum;
        sum += behind * count_leaves((dgm_text){t.data + from + 1, to - 1 - from - 1}, depth + 1);
        at = to - 1;
        if (t.data[at] == '}') at++;
    }
}

static dgm_status expand(dgm_document *d, dgm_text text, dgm_error *err);

// A branch with what stands around the choice: the sentence that it makes.
static dgm_status expand_branch(dgm_document *d, dgm_text before, dgm_text branch, dgm_text behind, dgm_error *err)
{
    dgm_writer whole = {0};
    dgm_write_bytes(&whole, before.data, before.size);
    dgm_write_bytes(&whole, branch.data, branch.size);
    dgm_write_bytes(&whole, behind.data, behind.size);
    const dgm_text text = {whole.data ? (const char *)whole.data : "", whole.size};
    const dgm_status st = whole.failed ? dgm_no_memory(err) : expand(d, text, err);
    dgm_writer_free(&whole);
    return st;
}

static dgm_status expand(dgm_document *d, dgm_text t, dgm_error *err)
{
    size_t begin = 0, end = 0, at = 0;
    if (!find_choice(t, &begin, &end, &at)) return dgm_items_add_line(d, t, true, err);
    const dgm_text before = {t.data, begin}, behind = {t.data + end, t.size - end};
    DGM_TRY(dgm_items_add_text(d, (dgm_text){t.data + begin, at - begin}, err));
    for (;;) {
        const char *open = memchr(t.data + at, '{', end - at);
        if (!open) break;
        const size_t from = (size_t)(open - t.data) + 1, to = close_of(t, from - 1);
        if (!to || to > end) break;
        DGM_TRY(dgm_items_add_text(d, (dgm_text){t.data + at, from - at}, err));
        DGM_TRY(expand_branch(d, before, (dgm_text){t.data + from, to - 1 - from}, behind, err));
        at = to - 1;
    }
    return dgm_items_add_text(d, (dgm_text){t.data + at, end - at}, err);
}

dgm_status dgm_icu_items(dgm_document *d, dgm_text text, bool *found, dgm_error *err)
{
    *found = dgm_icu_is_message(text);
    if (!*found || count_leaves(text, 0) > LEAVES_MAX) return DGM_OK; // left alone: it makes no line
    char *copy = dgm_strndup(text.data, text.size);                   // the pool, where it lies, grows
    if (!copy) return dgm_no_memory(err);
    const dgm_status st = expand(d, (dgm_text){copy, text.size}, err);
    dgm_free(copy);
    return st;
}
