// SPDX-License-Identifier: MIT
// One table per subcommand: parsing, --help, man pages and shell completion all read it.
//
// An option stores its value at `offset` of the command's own struct, in the type of its kind:
//     FLAG int   COUNT int   REAL float   SIZE int64_t, bytes   TEXT, CHOICE, MAYBE const char *
//     LIST option_list
// MAYBE is a CHOICE that may stand without a value (--alignment, --alignment=tokens): `bare` is
// then meant. Words that are not options are collected in order.
#ifndef DGM_APPS_CLI_OPTIONS_H
#define DGM_APPS_CLI_OPTIONS_H

#include <stddef.h>

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
    OPTION_LIST
} option_kind;

typedef struct option {
    const char *name; // long name without dashes; NULL ends the table
    char letter;      // 0: none
    option_kind kind;
    const char *value; // "N", "FILE", ...: what the value is called; NULL for FLAG
    size_t offset;
    double min, max;     // COUNT, REAL and SIZE
    const char *choices; // CHOICE and MAYBE: "a|b|c"
    const char *help;
    const char *alias; // another long name, not shown in the short help
    const char *bare;  // MAYBE
} option;

enum { LIST_MAX = 64, WORDS_MAX = 256 };

typedef struct option_list {
    const char *items[LIST_MAX];
    int count;
} option_list;

typedef struct words {
    const char *items[WORDS_MAX];
    int count;
} words;

typedef struct command {
    const char *name, *summary;
    const char *usage;       // behind "dragoman NAME"
    const char *description; // paragraphs separated by an empty line
    const char *example;     // lines, each a command
    const option *options;
    int (*run)(const struct command *self, int argc, char **argv); // argv[0] is the name
} command;

extern const command *const commands[]; // NULL at the end

// Parses argv[1..]. Returns -1 to go on, or the exit code (0 after --help).
int options_parse(const command *c, int argc, char **argv, void *values, words *rest);
// The value of --weights for `count` models. Returns -1, or the exit code after a message.
int options_weights(const command *c, const char *list, double *weights, int count);
// The value of an option as text, "" where it has none.
void option_value(const option *o, const void *values, char *text, size_t size);
// Prints "dragoman: ..." in one line on standard error and returns the code.
int fail(int code, const char *fmt, ...);
void warn(const char *fmt, ...);
// The same for the wrong number of words; names the command's help.
int fail_usage(const command *c, const char *fmt, ...);

void help_command(const command *c);
void help_all(void);
void help_man(const command *c); // NULL: the page of the program
void help_completion_bash(void);
void help_completion_zsh(void);

// Runs over the choices "a|b|c": *at is the rest, or NULL at the end. Returns the length.
size_t next_choice(const char **at, const char **choice);

#endif
