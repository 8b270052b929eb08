// SPDX-License-Identifier: MIT
// Options that several commands share: which model to load and how to decode (translate, score,
// bench), how to align (align, shortlist).
#ifndef DGM_APPS_CLI_TRANSLATE_SETUP_H
#define DGM_APPS_CLI_TRANSLATE_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "dragoman/route.h"
#include "io/files.h"
#include "options.h"

typedef struct engine_options {
    option_list models;
    const char *weights;
    setting_values set; // by the library's table of settings
    int pivot_nbest;    // of a route through a third language
} engine_options;

void engine_options_default(engine_options *e);
// "file:0.7" -> file and weight, unless a file of the whole name exists; no weight: 0. Returns -1, or
// the exit code after a message.
int split_weight(char *spec, dgm_member *m);
// The file of a model that is given by its name or path (dgm_models_named), or as a folder that is imported
// (dgm_models_cached), which is said; the library's to free. Returns -1, or the exit code after a message.
int model_path(const char *name, char **path);
// --source auto
bool is_auto(const engine_options *e);
// Loads the models. Returns -1, or the exit code after a message.
int engine_open(const engine_options *e, dgm_translator **t);
// The same for lines whose language is to be found out (--source auto), and through a third language where no model has
// the direction: *t, the translator that writes translations, belongs to *route where *owned is false.
int engine_open_route(const engine_options *e, dgm_route **route, dgm_translator **t, bool *owned);
// Adds what it reads to the list: models, the default one too, and the dictionary. Returns -1, or
// the exit code after a message.
int engine_files(const engine_options *e, file_list *f);
// "SIZE:CRC-32*WEIGHT ..." of the model files: two jobs with the same text use the same models.
// names: their paths, for messages. Returns -1, or the exit code after a message.
int engine_identity(const engine_options *e, char *text, size_t size, char *names, size_t room);
void names_add(const char *name, char *names, size_t size); // behind a space
// Adds the same of one file, whatever it holds.
int file_identity(const char *path, float weight, char *text, size_t size);
// And of the files of phrase-based systems ("FILE", or "en-de=FILE,..."), with those that describe them; path NULL:
// nothing.
int system_identity(const char *systems, char *text, size_t size);
// use(cookie, path) for each of them, until it returns something but -1.
int each_system(const char *systems, int (*use)(void *cookie, const char *path), void *cookie);
// Exit code for a status of the library.
int exit_code(dgm_status status);

#define MODEL_OPTIONS(S, E)                                                                        \
    {"model",                                                                                      \
     'm',                                                                                          \
     OPTION_LIST | OPTION_MODEL | OPTION_COMMON | OPTION_EVERYDAY(1),                              \
     "MODEL[:WEIGHT]",                                                                             \
     offsetof(S, E.models),                                                                        \
     0,                                                                                            \
     0,                                                                                            \
     NULL,                                                                                         \
     "model file, or a name that 'dragoman models' lists, e.g. en-de; or a folder or file of "     \
     "another program's model, which is imported into ~/.cache/dragoman; several make an "         \
     "ensemble, each with its weight",                                                             \
     "models",                                                                                     \
     NULL},                                                                                        \
    {                                                                                              \
        "weights", 0, OPTION_TEXT | OPTION_MODEL, "W,W,...", offsetof(S, E.weights), 0, 0, NULL,   \
            "weights of the ensemble's models, in their order", NULL, NULL                         \
    }

// Of the commands that align a text; DGM_ALIGN_ITERATIONS_MAX is of dragoman/tools.h.
#define ALIGN_OPTIONS(S)                                                                           \
    {"iterations", 'n', OPTION_COUNT, "N", offsetof(S, iterations), 1, DGM_ALIGN_ITERATIONS_MAX,   \
     NULL, "rounds of training of the alignment, in each direction (default 5)", NULL, NULL},      \
    {"max-length", 0, OPTION_COUNT, "N", offsetof(S, max_length), 1, 1000, NULL,                   \
     "leave out pairs with more tokens on a side; their alignment is empty (default 200)", NULL,   \
     NULL},                                                                                        \
    {"threads", 0, OPTION_COUNT, "{N,all}", offsetof(S, threads), 0, 1024, "all",                         \
     "worker threads; all, or 0: one per core (default 0). The result does not depend on it", NULL, NULL}

#endif
