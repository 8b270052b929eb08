// SPDX-License-Identifier: MIT
// Parsing of the command line by table; see options.h.
#include "options.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dragoman/common.h"
#include "io/lineio.h"

static void complain(const char *prefix, const char *fmt, va_list args)
{
    char text[1200];
    vsnprintf(text, sizeof text, fmt, args);
    for (char *p = text; *p; p++) // one line, whatever a file name carries
        if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = ' ';
    fflush(stdout);
    fprintf(stderr, "dragoman: %s%s\n", prefix, text);
}

static bool failed;

bool has_failed(void)
{
    return failed;
}

int fail(int code, const char *fmt, ...)
{
    va_list args;
    failed = failed || code != EXIT_LINES;
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

void inform(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    complain("", fmt, args);
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
    dgm_error error;
    int n = 0;
    if (dgm_number_list("--weights", list, weights, count, &n, &error) != DGM_OK)
        return fail_usage(c, "%s", error.text);
    if (n != count)
        return fail_usage(c, "--weights must have %d numbers, one for each model, not %d", count,
                          n);
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

// ---- the options of a command -----------------------------------------------------------------

static bool offers(const command *c, const dgm_setting *s)
{
    if (s->flags & DGM_SETTING_NO_OPTION) return false;
    switch (c->settings) {
    case SETTINGS_SCORING:
        return s->flags & DGM_SETTING_SCORING;
    case SETTINGS_PLAIN:
        return s->group != DGM_GROUP_EVIDENCE;
    case SETTINGS_ALL:
        return true;
    case SETTINGS_NONE:
        break;
    }
    return false;
}

static option from_setting(const dgm_setting *s, size_t index)
{
    int kind = OPTION_TEXT;
    if (s->kind == DGM_SETTING_FLAG) kind = OPTION_FLAG;
    if (s->kind == DGM_SETTING_LIST) kind = OPTION_LIST;
    if (s->kind == DGM_SETTING_CHOICE) kind = s->bare ? OPTION_MAYBE : OPTION_CHOICE;
    kind |= OPTION_SETTING | (int)s->group << 8 | OPTION_EVERYDAY((int)s->everyday);
    if (s->flags & DGM_SETTING_COMMON) kind |= OPTION_COMMON;
    if (s->flags & DGM_SETTING_OUTPUT) kind |= OPTION_OUTPUT;
    return (option){s->name, s->letter, kind,    s->value,    index,  s->min,
                    s->max,  s->values, s->help, s->synonyms, s->bare};
}

bool option_next(const command *c, size_t *at, option *out)
{
    static size_t rows;
    while (rows < SETTINGS_MAX && dgm_setting_at(rows)) rows++;
    for (; *at < rows; ++*at)
        if (offers(c, dgm_setting_at(*at))) {
            *out = from_setting(dgm_setting_at(*at), *at);
            ++*at;
            return true;
        }
    *out = c->options[*at - rows];
    if (!out->name) return false;
    ++*at;
    return true;
}

void settings_default(setting_values *v)
{
    *v = (setting_values){.given = {false}};
    dgm_settings_default(&v->settings);
}

bool settings_given(const setting_values *v, const char *name)
{
    for (size_t i = 0; i < SETTINGS_MAX && dgm_setting_at(i); i++)
        if (strcmp(dgm_setting_at(i)->name, name) == 0) return v->given[i];
    return false;
}

// Is it one of "a|b|c"?
static bool among(const char *list, const char *text, size_t size)
{
    const char *choice = NULL;
    for (const char *at = list; at;)
        if (next_choice(&at, &choice) == size && strncmp(text, choice, size) == 0) return true;
    return false;
}

// The option of a name of n bytes, with "_" as good as "-": other programs have --beam_size.
static bool find_long(const command *c, const char *name, size_t n, option *out)
{
    char dashed[64];
    if (n >= sizeof dashed) return false;
    for (size_t i = 0; i < n; i++) dashed[i] = (char)(name[i] == '_' ? '-' : name[i]);
    dashed[n] = 0;
    for (size_t at = 0; option_next(c, &at, out);)
        if (strcmp(out->name, dashed) == 0 || among(out->alias, dashed, n)) return true;
    return false;
}

static bool find_letter(const command *c, char letter, option *out)
{
    for (size_t at = 0; option_next(c, &at, out);)
        if (out->letter == letter) return true;
    return false;
}

// Edits between two names, for "did you mean"; long names count as far apart. "_" is "-".
static size_t distance(const char *a, size_t n, const char *b)
{
    enum { LONGEST = 32 };
    size_t m = strlen(b), row[LONGEST + 1];
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const char typed = (char)(b[j - 1] == '_' ? '-' : b[j - 1]);
            size_t best = diagonal + (a[i - 1] != typed);
            diagonal = row[j];
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

bool is_nearer(const char *name, size_t size, const char *typed, size_t *least)
{
    const size_t d = distance(name, size, typed), length = strlen(typed);
    const size_t most = length < 3 ? 0 : length < 6 ? 1 : length < 12 ? 2 : 3;
    if (d > most || d >= *least) return false;
    *least = d;
    return true;
}

// ---- parsing ----------------------------------------------------------------------------------

static int unknown_option(const command *c, const char *shown, const char *name)
{
    const char *near = NULL, *alias = NULL;
    size_t least = SIZE_MAX, size = 0;
    option o;
    for (size_t at = 0; name && option_next(c, &at, &o);) {
        if (is_nearer(o.name, strlen(o.name), name, &least)) near = o.name, size = strlen(o.name);
        for (const char *rest = o.alias; rest;) {
            const size_t n = next_choice(&rest, &alias);
            if (is_nearer(alias, n, name, &least)) near = alias, size = n;
        }
    }
    if (near) return fail_usage(c, "unknown option '%s': did you mean '--%.*s'?", shown, (int)size, near);
    return fail_usage(c, "unknown option '%s'", shown);
}

static int store_number(const command *c, const option *o, const char *text, void *at)
{
    char what[80];
    dgm_error error;
    dgm_status st = DGM_OK;
    int64_t whole = 0;
    double real = 0;
    snprintf(what, sizeof what, "--%s", o->name);
    switch (option_kind_of(o)) {
    case OPTION_COUNT:
        if (!among(o->choices, text, strlen(text)))
            st = dgm_number_integer(what, text, (int64_t)o->min, (int64_t)o->max, &whole, &error);
        if (st == DGM_OK) *(int *)at = (int)whole;
        else if (o->choices)
            return fail_usage(c, "%s must be %s or a whole number from %.0f to %.0f, not '%.80s'", what, o->choices,
                              o->min, o->max, text);
        break;
    case OPTION_SIZE:
        st = dgm_number_size(what, text, (int64_t)o->min, (int64_t)o->max, at, &error);
        break;
    default:
        st = dgm_number_real(what, text, o->min, o->max, &real, &error);
        if (st == DGM_OK) *(float *)at = (float)real;
    }
    return st == DGM_OK ? -1 : fail_usage(c, "%s", error.text);
}

// Of a precision that other programs call otherwise (int8, float32) our name; NULL: there is none.
static const char *precision_alike(const char *text)
{
    static const char *const names[] = {"f32", "f16", "bf16", "i16", "i8"};
    dgm_settings s;
    char name[16];
    dgm_settings_default(&s);
    if (dgm_settings_set(&s, "precision", text, NULL) != DGM_OK ||
        dgm_settings_get(&s, "precision", name, sizeof name, NULL) != DGM_OK)
        return NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return names[i];
    return NULL;
}

// The same of encodings ("latin1", "UTF8", "cp1252").
static const char *encoding_alike(const char *text)
{
    static const char *const names[] = {"utf-8", "utf-16", "utf-16le", "utf-16be", "latin-1", "windows-1252"};
    dgm_encoding meant, named;
    if (dgm_encoding_named(text, &meant, NULL) != DGM_OK) return NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (dgm_encoding_named(names[i], &named, NULL) == DGM_OK && named == meant) return names[i];
    return NULL;
}

// Our name of a choice that goes by others, too; NULL: it is no such choice.
static const char *alike(const option *o, const char *text)
{
    if (among(o->choices, "i8", 2) && among(o->choices, "f32", 3)) return precision_alike(text);
    if (among(o->choices, "utf-8", 5)) return encoding_alike(text);
    return NULL;
}

static int store_choice(const command *c, const option *o, const char *text, const char **at)
{
    const char *const ours = alike(o, text);
    const char *const given = ours ? ours : text;
    if (among(o->choices, given, strlen(given))) {
        *at = given;
        return -1;
    }
    char list[256] = "";
    const char *choice = NULL;
    for (const char *rest = o->choices; rest;) {
        const size_t n = next_choice(&rest, &choice), used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%.*s", used ? ", " : "", (int)n, choice);
    }
    return fail_usage(c, "--%s must be one of %s, not '%s'", o->name, list, text);
}

static int store_setting(const command *c, const option *o, const char *text, void *values)
{
    setting_values *v = (setting_values *)(void *)((char *)values + c->settings_at);
    dgm_error error;
    if (v->given[o->offset] && option_kind_of(o) == OPTION_TEXT && strncmp(o->value, "FILE", 4) == 0)
        return fail_usage(c, "--%s takes one file and was given twice, now '%s'", o->name, text);
    const dgm_setting_kind kind = dgm_setting_at(o->offset)->kind;
    if (text && !text[0] && (kind == DGM_SETTING_TEXT || kind == DGM_SETTING_LIST))
        return fail_usage(c, "--%s must be %s, not empty", o->name, o->value);
    if (dgm_settings_set(&v->settings, o->name, text ? text : "1", &error) != DGM_OK)
        return fail_usage(c, "--%s", error.text);
    v->given[o->offset] = true;
    return -1;
}

// Of a file the last one named would silently be the only one.
static int store_text(const command *c, const option *o, const char *text, const char **at)
{
    if (*at && (strncmp(o->value, "FILE", 4) == 0 || strncmp(o->value, "FOLDER", 6) == 0))
        return fail_usage(c, "--%s takes one file, not '%s' and '%s'", o->name, *at, text);
    *at = text;
    return -1;
}

// text: NULL for a flag.
static int store(const command *c, const option *o, const char *text, void *values)
{
    if (o->kind & OPTION_SETTING) return store_setting(c, o, text, values);
    void *at = (char *)values + o->offset;
    switch (option_kind_of(o)) {
    case OPTION_FLAG:
        *(int *)at = 1;
        return -1;
    case OPTION_CHOICE:
    case OPTION_MAYBE:
        return store_choice(c, o, text, at);
    case OPTION_TEXT:
        return store_text(c, o, text, at);
    case OPTION_LIST: {
        option_list *list = at;
        if (list->count == LIST_MAX)
            return fail_usage(c, "--%s may be given at most %d times", o->name, LIST_MAX);
        list->items[list->count++] = text;
        return -1;
    }
    default:
        return store_number(c, o, text, at);
    }
}

static void list_value(const option_list *list, char *text, size_t size)
{
    for (int i = 0; i < list->count; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", i ? " " : "", list->items[i]);
    }
}

// False: there is too little room.
static bool write_value(const command *c, const option *o, const void *values, char *text,
                        size_t size)
{
    if (o->kind & OPTION_SETTING) {
        const void *v = (const char *)values + c->settings_at;
        return dgm_settings_get(&((const setting_values *)v)->settings, o->name, text, size,
                                NULL) == DGM_OK;
    }
    const void *at = (const char *)values + o->offset;
    text[0] = 0;
    switch (option_kind_of(o)) {
    case OPTION_FLAG:
    case OPTION_COUNT:
        snprintf(text, size, "%d", *(const int *)at);
        break;
    case OPTION_REAL:
        snprintf(text, size, "%.9g", (double)*(const float *)at);
        break;
    case OPTION_SIZE:
        snprintf(text, size, "%lld", (long long)*(const int64_t *)at);
        break;
    case OPTION_LIST:
        list_value(at, text, size);
        break;
    default:
        if (*(const char *const *)at) snprintf(text, size, "%s", *(const char *const *)at);
    }
    return strlen(text) + 1 < size;
}

char *option_value(const command *c, const option *o, const void *values)
{
    char *text = NULL;
    size_t size = 128;
    do text = need(realloc(text, size *= 2));
    while (!write_value(c, o, values, text, size) && size < (size_t)1 << 24);
    return text;
}

// --name, --name=value, --name value
static int parse_long(const command *c, int argc, char **argv, int *i, void *values)
{
    const char *name = argv[*i] + 2;
    size_t n = strcspn(name, "=");
    option found, *const o = &found;
    if (!find_long(c, name, n, o)) {
        char shown[64];
        snprintf(shown, sizeof shown, "%.*s", (int)(n < 60 ? n : 60), name);
        char dashed[80];
        snprintf(dashed, sizeof dashed, "--%s", shown);
        return unknown_option(c, dashed, shown);
    }
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    const option_kind kind = option_kind_of(o);
    if (kind == OPTION_FLAG && value) return fail_usage(c, "--%s takes no value", o->name);
    if (kind == OPTION_MAYBE && !value) // the next word, if it is a value and not a file
        value = *i + 1 < argc && among(o->choices, argv[*i + 1], strlen(argv[*i + 1])) ? argv[++*i]
                                                                                        : o->bare;
    if (kind != OPTION_FLAG && !value) {
        if (*i + 1 >= argc) return fail_usage(c, "--%s needs a value", o->name);
        value = argv[++*i];
    }
    return store(c, o, value, values);
}

// -b4, -b 4, several flags in one word
static int parse_short(const command *c, int argc, char **argv, int *i, void *values)
{
    for (const char *p = argv[*i] + 1; *p; p++) {
        option found, *const o = &found;
        char shown[3] = {'-', *p, 0};
        if (!find_letter(c, *p, o)) return unknown_option(c, shown, NULL);
        if (option_kind_of(o) == OPTION_FLAG) {
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
            help_command(c, i + 1 < argc && strcmp(argv[i + 1], "all") == 0);
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
