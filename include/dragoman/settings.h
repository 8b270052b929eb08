// SPDX-License-Identifier: MIT
// Every setting of dgm_settings, described and set by name: for command lines, configuration files,
// servers and other languages. The options of `dragoman translate` come from here.
//
//     dgm_settings settings;
//     dgm_settings_default(&settings);
//     if (dgm_settings_set(&settings, "beam", "6", &error) != DGM_OK) ...
//     for (size_t i = 0; dgm_setting_at(i); i++) puts(dgm_setting_at(i)->name);
//
// Rules as in dragoman.h. A new setting is one more row; the order of rows may change.
#ifndef DRAGOMAN_SETTINGS_H
#define DRAGOMAN_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/dragoman.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the text of a value is.
typedef enum dgm_setting_kind {
    DGM_SETTING_FLAG = 0,   // "0" or "1"
    DGM_SETTING_INT = 1,    // a whole number, min to max, or one of `values`, which means 0
    DGM_SETTING_WHOLE = 2,  // a whole number of 64 bits without a sign
    DGM_SETTING_SIZE = 3,   // bytes: "512M", "2G", "64K"; without a unit MiB are meant
    DGM_SETTING_FLOAT = 4,  // a number, min to max
    DGM_SETTING_FLOATS = 5, // `count` numbers separated by commas, each min to max
    DGM_SETTING_TEXT = 6,   // any text
    DGM_SETTING_CHOICE = 7, // one of `values`
    DGM_SETTING_LIST = 8    // any text, up to `count` of them: each dgm_settings_set adds one
} dgm_setting_kind;

typedef enum dgm_setting_group {
    DGM_GROUP_FILES = 1, // input and output
    DGM_GROUP_MODEL = 2,
    DGM_GROUP_SEARCH = 3,
    DGM_GROUP_WORDS = 4,
    DGM_GROUP_CONSTRAINTS = 5,
    DGM_GROUP_EVIDENCE = 6,
    DGM_GROUP_SPEED = 7
} dgm_setting_group;

enum {
    DGM_SETTING_COMMON = 1,  // a first page of help shows it
    DGM_SETTING_OUTPUT = 2,  // translations or what is said of them depend on it
    DGM_SETTING_SCORING = 4, // scoring given translations looks at it, too (score.h)
    // No option: a program sets it where it hands lattices, evidence or directions over itself.
    DGM_SETTING_NO_OPTION = 8,
    // It belongs to the loaded models: dgm_open_like does not look at it.
    DGM_SETTING_WEIGHTS = 16
};

typedef struct dgm_setting {
    size_t size;
    const char *name;  // "no-repeat-ngram"
    const char *title; // in messages: "no-repeat n-gram size"
    char letter;       // of a short option; 0: none
    dgm_setting_kind kind;
    dgm_setting_group group;
    uint32_t flags; // DGM_SETTING_...
    double min, max;
    // Default of a number or a flag. One outside min to max is "not set": what the model says, or off.
    double standard;
    int32_t count;
    const char *value;    // what help calls the value: "N", "FILE"
    const char *values;   // "f32|i16|i8"; of an INT words for 0 ("all" threads); NULL where there are none
    const char *bare;     // value of an option that may stand without one; NULL: it may not
    const char *synonyms; // other names, "beam-size|beams"; NULL: none
    const char *help;     // what it does; the part before the first semicolon is a summary
    // Place among the settings that most people use, from 1 on: help of `translate` begins with them.
    // The numbers that are left out are options of the program. 0: it is none of them.
    int32_t everyday;
} dgm_setting;

// Row `index`, from 0; NULL behind the last. Rows of one group follow each other.
DGM_API const dgm_setting *dgm_setting_at(size_t index);
// By name or synonym, with "_" as good as "-" (beam_size); NULL: there is none.
DGM_API const dgm_setting *dgm_setting_find(const char *name);
// "input and output", "model", ...; "" for a number that is no group.
DGM_API const char *dgm_setting_group_name(dgm_setting_group group);

// Sets one setting. Text of kinds TEXT, CHOICE and LIST is borrowed until dgm_open returns. NULL: the
// default. Otherwise DGM_ERR_ARGUMENT with a message that begins with the name, and nothing changes.
DGM_API dgm_status dgm_settings_set(dgm_settings *settings, const char *name, const char *value,
                                    dgm_error *error);
// Its value as text that dgm_settings_set takes (a list: its items with blanks between them); "" where
// it is not set. DGM_ERR_ARGUMENT too where `size` bytes are too few.
DGM_API dgm_status dgm_settings_get(const dgm_settings *settings, const char *name, char *value,
                                    size_t size, dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
