// SPDX-License-Identifier: MIT
// `dragoman features`: the library's table of what can be combined, as text, for the manual
// (docs/manual/FEATURES.md) or as JSON. Every cell is the library's answer to a question.
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"

enum { COLUMNS_MAX = 32, NAMES_MAX = 4 };

typedef struct features_options {
    int markdown, json;
} features_options;

static const option options[] = {
    {"markdown", 0, OPTION_FLAG, NULL, offsetof(features_options, markdown), 0, 0, NULL,
     "print the tables of docs/manual/FEATURES.md", NULL, NULL},
    {"json", 0, OPTION_FLAG, NULL, offsetof(features_options, json), 0, 0, NULL,
     "print one JSON object with the sentence of every refusal", NULL, NULL},
    {0},
};

// A search with a kind of models that it works with.
typedef struct column {
    const char *search, *writing;
    char head[48];
} column;

typedef struct answer {
    bool yes;
    int later;
    dgm_error error;
} answer;

// Of a feature and perhaps another one, with what they require.
static answer ask(const dgm_feature_info *f, const dgm_feature_info *other, const column *c,
                  uint32_t models)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    if (f) names[count++] = f->name;
    if (f && f->needs) names[count++] = f->needs;
    if (other) names[count++] = other->name;
    if (other && other->needs) names[count++] = other->needs;
    const dgm_feature_query q = {.size = sizeof q,
                                 .features = names,
                                 .count = count,
                                 .search = c ? c->search : NULL,
                                 .writing = c ? c->writing : NULL,
                                 .models = models};
    answer a = {.error = {{0}}};
    a.yes = dgm_features_check(&q, &a.later, &a.error) == DGM_OK;
    return a;
}

static int list_columns(column *columns)
{
    int count = 0;
    dgm_way_info search, writing;
    for (size_t w = 0; w < dgm_writings(w, &writing); w++)
        for (size_t s = 0; s < dgm_searches(s, &search) && count < COLUMNS_MAX; s++) {
            column *c = &columns[count];
            *c = (column){.search = search.name, .writing = writing.name};
            if (!ask(NULL, NULL, c, DGM_MODELS_ANY).yes) continue;
            snprintf(c->head, sizeof c->head, "%s %s", c->search, c->writing);
            count++;
        }
    return count;
}

// What stands behind the colon of a sentence.
static const char *reason(const answer *a)
{
    const char *colon = strstr(a->error.text, ": ");
    return colon ? colon + 2 : a->error.text;
}

// The first refusal of a feature by itself; yes: it works everywhere.
static answer first_refusal(const dgm_feature_info *f, const column *columns, int count)
{
    answer a = ask(f, NULL, NULL, 0);
    for (int i = 0; a.yes && i < count; i++) a = ask(f, NULL, &columns[i], DGM_MODELS_ANY);
    return a;
}

// A setting of other searches or models is no refusal: there is nothing that it could set.
static const char *cell(const dgm_feature_info *f, const answer *a)
{
    return a->yes ? "yes" : a->later ? "later" : f->of_some ? "." : "-";
}

// ---- text and markdown -------------------------------------------------------------------------

static void print_matrix(const column *columns, int count, bool markdown)
{
    dgm_feature_info f;
    printf(markdown ? "| feature |" : "%-18s", "");
    for (int i = 0; i < count; i++)
        printf(markdown ? " %s |" : "  %s", columns[i].head);
    printf(markdown ? "\n|---|" : "\n");
    for (int i = 0; markdown && i < count; i++) printf("---|");
    if (markdown) printf("\n");
    for (size_t k = 0; k < dgm_features(k, &f); k++) {
        printf(markdown ? "| `%s` |" : "%-18s", f.name);
        for (int i = 0; i < count; i++) {
            const answer a = ask(&f, NULL, &columns[i], DGM_MODELS_ANY);
            if (markdown)
                printf(" %s |", cell(&f, &a));
            else
                printf("  %-*s", (int)strlen(columns[i].head), cell(&f, &a));
        }
        printf("\n");
    }
}

static void print_reasons(const column *columns, int count, bool markdown)
{
    const char *quote = markdown ? "`" : "";
    dgm_feature_info f, other;
    printf("\nyes: together; a dot: a setting of other searches or kinds of models, so that there is nothing to set; "
           "-: refused\n");
    printf(markdown ? "\nWhy:\n\n" : "\n");
    for (size_t k = 0; k < dgm_features(k, &f); k++) {
        answer a = first_refusal(&f, columns, count);
        char *later = a.yes ? NULL : strstr(a.error.text, " (not built yet)");
        if (later) *later = 0; // the table says where
        if (!a.yes) printf("- %s%s%s: %s\n", quote, f.name, quote, reason(&a));
    }
    printf(markdown ? "\nWhat cannot be combined with each other:\n\n" : "\n");
    for (size_t k = 0; k < dgm_features(k, &f); k++) {
        if (f.needs) printf("- %s%s%s requires %s%s%s\n", quote, f.name, quote, quote, f.needs, quote);
        for (size_t n = k + 1; n < dgm_features(n, &other); n++) {
            const answer a = ask(&f, &other, NULL, DGM_MODELS_ANY);
            if (a.yes) continue;
            printf("- %s%s%s, %s%s%s: %s\n", quote, f.name, quote, quote, other.name, quote,
                   reason(&a));
        }
    }
}

static void print_settings(void)
{
    dgm_feature_info f;
    dgm_way_info w;
    printf("\nWays of writing:\n\n");
    for (size_t i = 0; i < dgm_writings(i, &w); i++) printf("- `%s`: %s\n", w.name, w.text);
    printf("\nIn the library:\n\n| feature | where it comes from |\n|---|---|\n");
    for (size_t k = 0; k < dgm_features(k, &f); k++)
        if (f.setting) printf("| `%s` | `%s` |\n", f.name, f.setting);
}

// ---- JSON --------------------------------------------------------------------------------------

static void print_string(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar(*text);
    }
    putchar('"');
}

static void print_refusal(const char *key, const char *value, const answer *a)
{
    printf("{\"%s\": ", key);
    print_string(value);
    printf(", \"sentence\": ");
    print_string(a->error.text);
    printf(", \"later\": %s}", a->later ? "true" : "false");
}

static void print_json_feature(const dgm_feature_info *f, size_t index, const column *columns,
                               int count)
{
    const char *comma = "";
    dgm_feature_info other;
    printf("    {\"name\": \"%s\", \"setting\": ", f->name);
    if (f->setting)
        print_string(f->setting);
    else
        printf("null");
    printf(", \"of_some\": %s, \"requires\": ", f->of_some ? "true" : "false");
    if (f->needs)
        print_string(f->needs);
    else
        printf("null");
    printf(",\n     \"works\": [");
    for (int i = 0; i < count; i++) {
        const answer a = ask(f, NULL, &columns[i], DGM_MODELS_ANY);
        if (a.yes) printf("%s\"%s\"", comma, columns[i].head);
        if (a.yes) comma = ", ";
    }
    printf("],\n     \"refused\": [");
    comma = "";
    for (int i = 0; i < count; i++) {
        const answer a = ask(f, NULL, &columns[i], DGM_MODELS_ANY);
        if (a.yes) continue;
        printf("%s", comma);
        print_refusal("by", columns[i].head, &a);
        comma = ",\n                 ";
    }
    for (size_t n = 0; n < dgm_features(n, &other); n++) {
        const answer a = ask(f, &other, NULL, DGM_MODELS_ANY);
        if (n == index || a.yes) continue;
        printf("%s", comma);
        print_refusal("by", other.name, &a);
        comma = ",\n                 ";
    }
    printf("]}");
}

static void print_json(const column *columns, int count)
{
    dgm_feature_info f;
    printf("{\"combinations\": [");
    for (int i = 0; i < count; i++) printf("%s\"%s\"", i ? ", " : "", columns[i].head);
    printf("],\n \"features\": [\n");
    for (size_t k = 0; k < dgm_features(k, &f); k++) {
        if (k) printf(",\n");
        print_json_feature(&f, k, columns, count);
    }
    printf("\n]}\n");
}

static int run(const command *self, int argc, char **argv)
{
    features_options o = {0};
    words rest;
    column columns[COLUMNS_MAX];
    const int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count) return fail_usage(self, "features takes no arguments, not '%s'", rest.items[0]);
    const int count = list_columns(columns);
    if (o.json) {
        print_json(columns, count);
    } else {
        print_matrix(columns, count, o.markdown);
        print_reasons(columns, count, o.markdown);
        if (o.markdown) print_settings();
    }
    return EXIT_FINE;
}

const command command_features = {
    .name = "features",
    .summary = "print which features can be combined",
    .usage = "[--markdown] [--json]",
    .description = "Prints for every feature with which searches and kinds of models it works, why "
                   "not with the others, and which features cannot be combined with each other. "
                   "A dot: a setting of other searches or models. 'later': it would have a meaning and is "
                   "not built yet.",
    .example = "dragoman features\n"
               "dragoman features --json",
    .options = options,
    .run = run,
};
