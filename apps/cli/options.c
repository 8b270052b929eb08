// SPDX-License-Identifier: MIT
// Parsing of the command line by table; see options.h.
#include "options.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dragoman/common.h"

static void complain(const char *prefix, const char *fmt, va_list args)
{
    char text[1200];
    vsnprintf(text, sizeof text, fmt, args);
    for (char *p = text; *p; p++) // one line, whatever a file name carries
        if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = ' ';
    fflush(stdout);
    fprintf(stderr, "dragoman: %s%s\n", prefix, text);
}

int fail(int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    complain("", fmt, args);
    va_end(args);
    return code;
}

void warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    complain("warning: ", fmt, args);
    va_end(args);
}

int fail_usage(const command *c, const char *fmt, ...)
{
    char text[1000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return fail(EXIT_USAGE, "%s (see 'dragoman %s --help')", text, c->name);
}

int options_weights(const command *c, const char *list, double *weights, int count)
{
    dgm_error e;
    int n = 0;
    if (dgm_number_list("--weights", list, weights, count, &n, &e) != DGM_OK)
        return fail_usage(c, "%s", e.text);
    if (n != count) return fail_usage(c, "--weights has %d numbers for %d models", n, count);
    return -1;
}

size_t next_choice(const char **at, const char **choice)
{
    if (!*at) return 0;
    *choice = *at;
    size_t n = strcspn(*at, "|");
    *at = (*at)[n] ? *at + n + 1 : NULL;
    return n;
}

// Edits between two names, for "did you mean"; long names count as far apart.
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 32 };
    size_t n = strlen(a), m = strlen(b), row[LONGEST + 1];
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

static int unknown_option(const command *c, const char *shown, const char *name)
{
    const option *near = NULL;
    size_t least = 3;
    for (const option *o = c->options; o->name && name; o++) {
        size_t d = distance(o->name, name);
        if (d < least) {
            least = d;
            near = o;
        }
    }
    if (near) return fail_usage(c, "unknown option '%s': did you mean '--%s'?", shown, near->name);
    return fail_usage(c, "unknown option '%s'", shown);
}

static int store_number(const command *c, const option *o, const char *text, void *values)
{
    char name[64];
    dgm_error e;
    dgm_status st;
    snprintf(name, sizeof name, "--%s", o->name);
    void *at = (char *)values + o->offset;
    if (o->kind == OPTION_REAL) {
        double v;
        st = dgm_number_real(name, text, o->min, o->max, &v, &e);
        if (st == DGM_OK) *(float *)at = (float)v;
    } else {
        int64_t v;
        st = (o->kind == OPTION_SIZE ? dgm_number_size : dgm_number_integer)(
            name, text, (int64_t)o->min, (int64_t)o->max, &v, &e);
        if (st == DGM_OK && o->kind == OPTION_SIZE) *(int64_t *)at = v;
        if (st == DGM_OK && o->kind == OPTION_COUNT) *(int *)at = (int)v;
    }
    return st == DGM_OK ? -1 : fail_usage(c, "%s", e.text);
}

static int store_choice(const command *c, const option *o, const char *text, void *values)
{
    const char *at = o->choices, *choice = NULL;
    char list[256] = "";
    while (at) {
        size_t n = next_choice(&at, &choice);
        if (strlen(text) == n && strncmp(text, choice, n) == 0) {
            *(const char **)(void *)((char *)values + o->offset) = text;
            return -1;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%.*s", used ? ", " : "", (int)n, choice);
    }
    return fail_usage(c, "--%s is one of %s, not '%s'", o->name, list, text);
}

static int store(const command *c, const option *o, const char *text, void *values)
{
    char *at = (char *)values + o->offset;
    switch (o->kind) {
    case OPTION_FLAG:
        *(int *)(void *)at = 1;
        return -1;
    case OPTION_COUNT:
    case OPTION_REAL:
    case OPTION_SIZE:
        return store_number(c, o, text, values);
    case OPTION_CHOICE:
    case OPTION_MAYBE:
        return store_choice(c, o, text, values);
    case OPTION_TEXT:
        *(const char **)(void *)at = text;
        return -1;
    case OPTION_LIST: {
        option_list *list = (option_list *)(void *)at;
        if (list->count == LIST_MAX)
            return fail_usage(c, "--%s may be given at most %d times", o->name, LIST_MAX);
        list->items[list->count++] = text;
        return -1;
    }
    }
    return -1;
}

void option_value(const option *o, const void *values, char *text, size_t size)
{
    const char *at = (const char *)values + o->offset;
    text[0] = 0;
    switch (o->kind) {
    case OPTION_FLAG:
    case OPTION_COUNT:
        snprintf(text, size, "%d", *(const int *)(const void *)at);
        return;
    case OPTION_REAL:
        snprintf(text, size, "%.9g", (double)*(const float *)(const void *)at);
        return;
    case OPTION_SIZE:
        snprintf(text, size, "%lld", (long long)*(const int64_t *)(const void *)at);
        return;
    case OPTION_TEXT:
    case OPTION_CHOICE:
    case OPTION_MAYBE: {
        const char *value = *(const char *const *)(const void *)at;
        snprintf(text, size, "%s", value ? value : "");
        return;
    }
    case OPTION_LIST: {
        const option_list *list = (const option_list *)(const void *)at;
        for (int i = 0; i < list->count; i++) {
            size_t used = strlen(text);
            snprintf(text + used, size - used, "%s%s", i ? " " : "", list->items[i]);
        }
    }
    }
}

static const option *find_long(const command *c, const char *name, size_t n)
{
    for (const option *o = c->options; o->name; o++) {
        if (strlen(o->name) == n && strncmp(o->name, name, n) == 0) return o;
        if (o->alias && strlen(o->alias) == n && strncmp(o->alias, name, n) == 0) return o;
    }
    return NULL;
}

static const option *find_letter(const command *c, char letter)
{
    for (const option *o = c->options; o->name; o++)
        if (o->letter == letter) return o;
    return NULL;
}

// --name, --name=value, --name value
static int parse_long(const command *c, int argc, char **argv, int *i, void *values)
{
    const char *name = argv[*i] + 2;
    size_t n = strcspn(name, "=");
    const option *o = find_long(c, name, n);
    if (!o) {
        char shown[64];
        snprintf(shown, sizeof shown, "%.*s", (int)(n < 60 ? n : 60), name);
        char dashed[80];
        snprintf(dashed, sizeof dashed, "--%s", shown);
        return unknown_option(c, dashed, shown);
    }
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    if (o->kind == OPTION_FLAG && value) return fail_usage(c, "--%s takes no value", o->name);
    if (o->kind == OPTION_MAYBE && !value) value = o->bare;
    if (o->kind != OPTION_FLAG && !value) {
        if (*i + 1 >= argc) return fail_usage(c, "--%s needs a value", o->name);
        value = argv[++*i];
    }
    return store(c, o, value, values);
}

// -b4, -b 4, several flags in one word
static int parse_short(const command *c, int argc, char **argv, int *i, void *values)
{
    for (const char *p = argv[*i] + 1; *p; p++) {
        const option *o = find_letter(c, *p);
        char shown[3] = {'-', *p, 0};
        if (!o) return unknown_option(c, shown, NULL);
        if (o->kind == OPTION_FLAG) {
            store(c, o, NULL, values);
            continue;
        }
        const char *value = p + 1;
        if (!*value) {
            if (*i + 1 >= argc) return fail_usage(c, "-%c needs a value", *p);
            value = argv[++*i];
        }
        return store(c, o, value, values);
    }
    return -1;
}

int options_parse(const command *c, int argc, char **argv, void *values, words *rest)
{
    rest->count = 0;
    int only_words = 0;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        int code = -1;
        if (!only_words && strcmp(word, "--") == 0) {
            only_words = 1;
        } else if (!only_words && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            help_command(c);
            return EXIT_FINE;
        } else if (!only_words && strncmp(word, "--", 2) == 0) {
            code = parse_long(c, argc, argv, &i, values);
        } else if (!only_words && word[0] == '-' && word[1]) {
            code = parse_short(c, argc, argv, &i, values);
        } else if (rest->count == WORDS_MAX) {
            code = fail_usage(c, "too many arguments");
        } else {
            rest->items[rest->count++] = word;
        }
        if (code >= 0) return code;
    }
    return -1;
}
