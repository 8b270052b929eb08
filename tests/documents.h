// SPDX-License-Identifier: MIT
// Documents without a model: lines are "translated" by a rule, words linked as the rule moves them. Include cmocka.h
// first.
#ifndef DGM_TESTS_DOCUMENTS_H
#define DGM_TESTS_DOCUMENTS_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dragoman/document.h"

typedef enum rule {
    RULE_SAME,     // every line is its own translation
    RULE_REVERSED, // the words the other way round
    RULE_CAPITALS  // ASCII letters in capitals, so that all translated text can be seen
} rule;

typedef struct text_buffer {
    char *data;
    size_t size;
} text_buffer;

static inline int take_bytes(void *cookie, const char *data, size_t size)
{
    text_buffer *b = cookie;
    b->data = realloc(b->data, b->size + size + 1);
    if (!b->data) return 1;
    memcpy(b->data + b->size, data, size);
    b->size += size;
    b->data[b->size] = 0;
    return 0;
}

// Translates a line by a rule; the caller frees it. links: room for 4096.
static inline char *apply_rule(rule how, const char *line, size_t size, dgm_link *links, size_t *count)
{
    char *out = calloc(1, size + 2);
    const char *words[4096];
    size_t sizes[4096], n = 0, at = 0;
    for (size_t i = 0; i < size && n < 4096;) {
        while (i < size && line[i] == ' ') i++;
        const size_t begin = i;
        while (i < size && line[i] != ' ') i++;
        words[n] = line + begin;
        sizes[n] = i - begin;
        n += i > begin;
    }
    *count = n;
    for (size_t i = 0; i < n; i++) {
        const size_t from = how == RULE_REVERSED ? n - 1 - i : i;
        links[i] = (dgm_link){(int32_t)from, (int32_t)i};
        if (i) out[at++] = ' ';
        for (size_t k = 0; k < sizes[from]; k++) {
            const char c = words[from][k];
            out[at++] = how == RULE_CAPITALS && c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
        }
    }
    return out;
}

static inline dgm_status translate_by_rule(dgm_document *d, rule how, dgm_error *error)
{
    static dgm_link links[4096];
    dgm_status st = DGM_OK;
    for (size_t i = 0; st == DGM_OK && i < dgm_document_describe(d)->lines; i++) {
        size_t size = 0, count = 0;
        const char *line = dgm_document_line(d, i, &size);
        char *text = apply_rule(how, line, size, links, &count);
        st = dgm_document_put(d, i, text, strlen(text), links, count, error);
        free(text);
    }
    return st;
}

// The whole way; the caller frees out->data.
static inline dgm_status document_by_rule(const char *data, size_t size, const char *name,
                                          const dgm_document_options *options, rule how, text_buffer *out,
                                          dgm_error *error)
{
    dgm_document *d = NULL;
    *out = (text_buffer){NULL, 0};
    dgm_status st = dgm_document_open(&d, data, size, name, options, error);
    if (st == DGM_OK) st = translate_by_rule(d, how, error);
    if (st == DGM_OK) st = dgm_document_write(d, take_bytes, out, error);
    dgm_document_close(&d);
    return st;
}

#endif
