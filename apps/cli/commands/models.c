// SPDX-License-Identifier: MIT
// `dragoman models` and `dragoman inspect`: which model files there are, and what is in them.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "translate/log_z.h"
#include "translate/setup.h"

// ---- models -----------------------------------------------------------------------------------

typedef struct models_options {
    int json;
} models_options;

static const option models_table[] = {
    {"json", 0, OPTION_FLAG, NULL, offsetof(models_options, json), 0, 0, NULL,
     "print one JSON object per model", NULL, NULL},
    {0},
};

static void put_field(line_writer *w, const char *name, const char *text)
{
    writer_format(w, "\"%s\":", name);
    writer_json(w, text, strlen(text));
}

static void put_entry_json(line_writer *w, const dgm_model_entry *e)
{
    writer_text(w, "{");
    put_field(w, "path", e->path);
    writer_text(w, ",");
    put_field(w, "name", e->name);
    writer_text(w, ",");
    put_field(w, "source", e->source);
    writer_text(w, ",");
    put_field(w, "target", e->target);
    writer_format(w, ",\"bytes\":%llu,\"parameters\":%llu,\"default\":%s",
                  (unsigned long long)e->bytes, (unsigned long long)e->parameters,
                  e->is_default ? "true" : "false");
    if (e->problem) {
        writer_text(w, ",");
        put_field(w, "problem", e->problem);
    }
    writer_text(w, "}\n");
}

static bool same_beginning(const dgm_route_entry *a, const dgm_route_entry *b)
{
    return strcmp(a->source, b->source) == 0 && strcmp(a->pivot, b->pivot) == 0;
}

static void put_pivot_json(line_writer *w, const dgm_route_entry *r)
{
    writer_text(w, "{");
    put_field(w, "source", r->source);
    writer_text(w, ",");
    put_field(w, "target", r->target);
    writer_text(w, ",");
    put_field(w, "pivot", r->pivot);
    writer_text(w, ",\"models\":[");
    writer_json(w, r->first, strlen(r->first));
    writer_text(w, ",");
    writer_json(w, r->second, strlen(r->second));
    writer_text(w, "]}\n");
}

// Directions that take two models, those with the same source and pivot in one line.
static dgm_status put_pivots(line_writer *w, bool json, dgm_error *error)
{
    dgm_route_list *list = NULL;
    const dgm_status st = dgm_routes_find(&list, error);
    for (size_t i = 0; st == DGM_OK && i < list->count; i++) {
        const dgm_route_entry *r = list->items[i];
        bool known = !r->pivot;
        for (size_t k = 0; k < i && !known && !json; k++)
            known = list->items[k]->pivot && same_beginning(r, list->items[k]);
        if (known) continue;
        if (json) {
            put_pivot_json(w, r);
            continue;
        }
        writer_format(w, "  %-6s -> %s", r->source, r->target);
        for (size_t k = i + 1; k < list->count; k++)
            if (list->items[k]->pivot && same_beginning(r, list->items[k]))
                writer_format(w, ",%s", list->items[k]->target);
        writer_format(w, "  through %s\n", r->pivot);
    }
    dgm_routes_free(&list);
    return st;
}

static int run_models(const command *self, int argc, char **argv)
{
    models_options o = {0};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count) return fail_usage(self, "models takes no arguments, not '%s'", rest.items[0]);
    dgm_model_list *list = NULL;
    dgm_error error;
    dgm_status st = dgm_models_find(&list, &error);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    line_writer *w = writer_open(NULL);
    for (size_t i = 0; i < list->count; i++) {
        const dgm_model_entry *e = list->items[i];
        if (o.json) {
            put_entry_json(w, e);
            continue;
        }
        if (e->problem) {
            writer_format(w, "! %s\n", e->problem);
            continue;
        }
        writer_format(w, "%c %-6s -> %-6s %8.2f M %8.1f MiB  ", e->is_default ? '*' : ' ',
                      e->source[0] ? e->source : "?", e->target[0] ? e->target : "?",
                      (double)e->parameters / 1e6, (double)e->bytes / 1048576);
        writer_text(w, e->path);
        if (e->name[0]) {
            writer_text(w, "  ");
            writer_text(w, e->name);
        }
        writer_text(w, "\n");
    }
    size_t found = list->count;
    dgm_models_free(&list);
    st = put_pivots(w, o.json, &error);
    code = writer_close(w) ? EXIT_FINE : EXIT_RUNTIME;
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    if (!found && code == EXIT_FINE)
        code = fail(EXIT_RUNTIME, "no model found: give a model file, set DRAGOMAN_MODEL, or put "
                                  "one into ~/.local/share/dragoman");
    return code;
}

const command command_models = {
    .name = "models",
    .summary = "list the models that are found without -m",
    .usage = "[--json]",
    .description =
        "Lists model files in the order in which they are searched: DRAGOMAN_MODEL (a file or a "
        "folder), the user's data folder (~/.local/share/dragoman), the share folder of the "
        "installation, models/ in a checkout; in a folder default.gguf is the first, the others follow by name. "
        "The one marked * is used when neither a model nor a language is given: what DRAGOMAN_MODEL names, "
        "else the first default.gguf, else the first of all. A file marked ! cannot be used; if "
        "DRAGOMAN_MODEL names it, no other model is taken instead.\n\n"
        "Commands that translate find a model of the list by its file's name without .gguf, its own name or its "
        "direction (-m en-de), or by languages (--source, --target): of several that know them the one with the "
        "fewest languages, then the first. Behind the models stand directions that two of them have together, "
        "through a third language.",
    .example = "dragoman models\nDRAGOMAN_MODEL=my.gguf dragoman models",
    .options = models_table,
    .run = run_models,
};

// ---- inspect ----------------------------------------------------------------------------------

typedef struct inspect_options {
    const char *log_z, *references;
    int json, tensors, card;
} inspect_options;

static const option inspect_table[] = {
    {"tensors", 0, OPTION_FLAG, NULL, offsetof(inspect_options, tensors), 0, 0, NULL,
     "list the tensors with types, shapes and sizes", NULL, NULL},
    {"card", 0, OPTION_FLAG, NULL, offsetof(inspect_options, card), 0, 0, NULL,
     "print the model card in full", NULL, NULL},
    {"log-z", 0, OPTION_TEXT, "FILE", offsetof(inspect_options, log_z), 0, 0, NULL,
     "instead, run the model on the text of FILE and print mean, deviation and quantiles of log Z, "
     "which is about 0 if the model is self-normalised (--softmax off)",
     NULL, NULL},
    {"references", 0, OPTION_TEXT, "FILE", offsetof(inspect_options, references), 0, 0, NULL,
     "--log-z: along these translations, line by line (default: the model's own)", "reference",
     NULL},
    {"json", 0, OPTION_FLAG, NULL, offsetof(inspect_options, json), 0, 0, NULL,
     "print everything as one JSON object", NULL, NULL},
    {0},
};

static int inspect(const char *path, const inspect_options *o)
{
    dgm_inspect_options options = {
        .size = sizeof options, .json = o->json, .tensors = o->tensors, .card = o->card};
    char *text = NULL;
    dgm_error error;
    dgm_status st = dgm_inspect(path, &options, &text, &error);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    line_writer *w = writer_open(NULL);
    writer_text(w, text);
    dgm_string_free(&text);
    return writer_close(w) ? EXIT_FINE : EXIT_RUNTIME;
}

static int run_inspect(const command *self, int argc, char **argv)
{
    inspect_options o = {0};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count > 1) return fail_usage(self, "inspect takes one model, not %d", rest.count);
    if (o.references && !o.log_z) return fail_usage(self, "--references requires --log-z");
    char *path = NULL;
    if (rest.count) code = model_path(rest.items[0], &path);
    if (code < 0) code = o.log_z ? inspect_log_z(path, o.log_z, o.references, o.json) : inspect(path, &o);
    dgm_string_free(&path);
    return code;
}

const command command_inspect = {
    .name = "inspect",
    .summary = "show what is in a model file",
    .usage = "[MODEL] [--tensors] [--card] [--log-z FILE] [--json]",
    .description = "Prints a summary of a model file and its metadata; MODEL is a file, or a name that "
                   "'dragoman models' lists; without one, of the default model.",
    .example = "dragoman inspect en-de\ndragoman inspect models/en-de.gguf --tensors",
    .options = inspect_table,
    .run = run_inspect,
};
