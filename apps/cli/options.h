// SPDX-License-Identifier: MIT
// The options of a subcommand: its own table, and settings of the library (dragoman/settings.h) where
// it asks for them. Parsing, --help, man pages and shell completion all read both.
//
// An option of its own stores its value at `offset` of the command's own struct, in the type of its kind:
//     FLAG int   COUNT int   REAL float   SIZE int64_t, bytes   TEXT, CHOICE, MAYBE const char *
//     LIST option_list
// MAYBE is a CHOICE that may stand without a value (--alignment, --alignment tokens): `bare` is
// meant unless one of the choices follows. Words that are not options are collected in order.
#ifndef DGM_APPS_CLI_OPTIONS_H
#define DGM_APPS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "dragoman/settings.h"

// EXIT_LINES: everything was done, but some lines failed.
enum { EXIT_FINE = 0, EXIT_RUNTIME = 1, EXIT_USAGE = 2, EXIT_LINES = 3 };

typedef enum option_kind {
    OPTION_FLAG,
    OPTION_COUNT,
    OPTION_REAL,
    OPTION_SIZE, // 512M, 2G, 800K; a bare number counts MiB
    OPTION_TEXT,
    OPTION_CHOICE,
    OPTION_MAYBE,
    OPTION_LIST,
    OPTION_KIND = 15 // mask
} option_kind;

// Marks beside the kind. The group is a dgm_setting_group, 0: none. The rank is the place among the everyday
// options, from 1 on, 0: it is none of them (command.everyday).
enum {
    OPTION_COMMON = 16,  // --help shows it, as it does those without a group
    OPTION_OUTPUT = 32,  // what a job writes depends on it (journal.h)
    OPTION_SETTING = 64, // a row of the library's settings: dgm_setting_at(offset)
    OPTION_SELDOM = 128, // --help leaves it out, though it has no group
    OPTION_FILES = DGM_GROUP_FILES << 8,
    OPTION_MODEL = DGM_GROUP_MODEL << 8,
    OPTION_CONSTRAINTS = DGM_GROUP_CONSTRAINTS << 8,
    OPTION_EVIDENCE = DGM_GROUP_EVIDENCE << 8,
    OPTION_SPEED = DGM_GROUP_SPEED << 8
};
#define OPTION_EVERYDAY(rank) ((rank) << 16)

typedef struct option {
    const char *name; // long name without dashes; NULL ends the table
    char letter;      // 0: none
    int kind;         // option_kind and marks
    const char *value; // "N", "FILE", ...: what the value is called; NULL for FLAG
    size_t offset;
    double min, max;     // COUNT, REAL and SIZE
    const char *choices; // CHOICE and MAYBE: "a|b|c"; COUNT: words that mean 0
    const char *help;    // the part before the first semicolon is a summary
    const char *alias;   // other long names, "a|b"; `--help all` shows them
    const char *bare;  // MAYBE
} option;

// Of commands that read text by lineio.h; their struct has a field `encoding` for reader_encoding.
#define ENCODING_OPTION(type, marks)                                                               \
    {                                                                                              \
        "encoding", 0, OPTION_CHOICE | (marks), "NAME", offsetof(type, encoding), 0, 0,            \
            "utf-8|utf-16|utf-16le|utf-16be|latin-1|windows-1252",                                 \
            "encoding of the text files that are read (default utf-8); what is written is UTF-8",  \
            NULL, NULL                                                                             \
    }

enum { LIST_MAX = 64, WORDS_MAX = 256 };

typedef struct option_list {
    const char *items[LIST_MAX];
    int count;
} option_list;

typedef struct words {
    const char *items[WORDS_MAX];
    int count;
} words;

// Which settings of the library a command has as options.
typedef enum command_settings {
    SETTINGS_NONE,
    SETTINGS_SCORING, // those that scoring looks at
    SETTINGS_PLAIN,   // all but evidence
    SETTINGS_ALL
} command_settings;

enum { SETTINGS_MAX = 128 };

typedef struct setting_values {
    dgm_settings settings;
    bool given[SETTINGS_MAX]; // which rows the command line sets
} setting_values;

typedef struct command {
    const char *name, *summary;
    const char *usage;       // behind "dragoman NAME"
    const char *description; // paragraphs separated by an empty line
    const char *example;     // lines, each a command
    const option *options;
    command_settings settings;
    size_t settings_at; // of its setting_values among its values
    bool everyday;      // --help begins with the everyday options, in the order of their ranks
    int (*run)(const struct command *self, int argc, char **argv); // argv[0] is the name
} command;

extern const command *const commands[]; // NULL at the end

// Fills *out with the option behind *at, which starts with 0. False at the end.
bool option_next(const command *c, size_t *at, option *out);
static inline option_kind option_kind_of(const option *o)
{
    return (option_kind)(o->kind & OPTION_KIND);
}
static inline int option_group(const option *o)
{
    return o->kind >> 8 & 255;
}
static inline int option_rank(const option *o)
{
    return o->kind >> 16;
}
void settings_default(setting_values *v);
// Does the command line set the setting of this name?
bool settings_given(const setting_values *v, const char *name);

// Parses argv[1..]. Returns -1 to go on, or the exit code (0 after --help).
int options_parse(const command *c, int argc, char **argv, void *values, words *rest);
// The value of --weights for `count` models. Returns -1, or the exit code after a message.
int options_weights(const command *c, const char *list, double *weights, int count);
// The value of an option as text, "" where it has none; the caller's to free.
char *option_value(const command *c, const option *o, const void *values);
// Is `name` (of `size` bytes) so close to what was typed that it may be meant, and closer than *least,
// which starts with SIZE_MAX? Then *least becomes its distance.
bool is_nearer(const char *name, size_t size, const char *typed, size_t *least);
// Prints "dragoman: ..." in one line on standard error and returns the code.
int fail(int code, const char *fmt, ...);
bool has_failed(void); // was it called, with another code than EXIT_LINES?
void warn(const char *fmt, ...);
void inform(const char *fmt, ...); // what was done without being asked for
// The same for the wrong number of words; names the command's help.
int fail_usage(const command *c, const char *fmt, ...);

void help_command(const command *c, bool all);
void help_all(void);
void help_man(const command *c); // NULL: the page of the program
void help_completion_bash(void);
void help_completion_zsh(void);
void help_completion_fish(void);
void help_markdown(const command *c); // a page of the manual

// Runs over the choices "a|b|c": *at is the rest, or NULL at the end. Returns the length.
size_t next_choice(const char **at, const char **choice);

#endif
