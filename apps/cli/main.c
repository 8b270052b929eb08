// SPDX-License-Identifier: MIT
// The program: finds the subcommand and runs it. Everything else is in cmd_*.c.
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/interrupt.h"
#include "io/lineio.h"
#include "translate/setup.h"

const command *const commands[] = {
    &command_translate, &command_inspect, &command_eval,     &command_score,    &command_bench,
    &command_tune,      &command_models,    &command_serve,   &command_import,   &command_export,   &command_quantize,
    &command_tokenize,  &command_align,
    &command_shortlist, &command_cluster, &command_lm,       &command_mbr,      &command_phrase,
    &command_mert,      &command_lattice, &command_average,  &command_shrink,
    &command_devices,   &command_features, &command_detect,  NULL};

uint64_t peak_rss(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0) return 0;
    return (uint64_t)u.ru_maxrss * 1024; // Linux counts KiB
}

static const command *find(const char *name)
{
    for (int i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return strcmp(name, "help") == 0 ? &command_help : NULL;
}

static int unknown_command(const char *name)
{
    size_t least = SIZE_MAX;
    const char *near = NULL;
    for (int i = 0; commands[i]; i++)
        if (is_nearer(commands[i]->name, strlen(commands[i]->name), name, &least)) near = commands[i]->name;
    if (is_nearer("help", 4, name, &least)) near = "help";
    if (access(name, F_OK) == 0)
        return fail(EXIT_USAGE, "unknown command '%s': to translate this file: dragoman translate '%s'", name,
                    name);
    if (strchr(name, ' '))
        return fail(EXIT_USAGE, "unknown command '%s': to translate this text: dragoman translate --text '%s'",
                    name, name);
    if (near)
        return fail(EXIT_USAGE, "unknown command '%s': did you mean '%s'? (see 'dragoman --help')", name, near);
    return fail(EXIT_USAGE, "unknown command '%s' (see 'dragoman --help')", name);
}

static int print_version(void)
{
    char device[512];
    dgm_error error;
    printf("dragoman %s\n", dgm_version());
    dgm_status st = dgm_device(NULL, device, sizeof device, &error);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    printf("%s\n", device);
    return EXIT_FINE;
}

// ---- help -------------------------------------------------------------------------------------

typedef struct help_options {
    const char *man, *markdown, *completion;
    int names;
} help_options;

static const option help_table[] = {
    {"man", 0, OPTION_TEXT, "COMMAND", offsetof(help_options, man), 0, 0, NULL,
     "print the manual page of a command, or of dragoman itself, in roff", NULL, NULL},
    {"markdown", 0, OPTION_TEXT, "COMMAND", offsetof(help_options, markdown), 0, 0, NULL,
     "print the manual page of a command in Markdown", NULL, NULL},
    {"completion", 0, OPTION_CHOICE, "SHELL", offsetof(help_options, completion), 0, 0, "bash|zsh|fish",
     "print the completion script of a shell", NULL, NULL},
    {"names", 0, OPTION_FLAG, NULL, offsetof(help_options, names), 0, 0, NULL,
     "print the names of the commands", NULL, NULL},
    {0},
};

static int run_help(const command *self, int argc, char **argv)
{
    help_options o = {0};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    const char *name = o.man ? o.man : o.markdown ? o.markdown : rest.count ? rest.items[0] : NULL;
    const command *c = name && strcmp(name, "dragoman") != 0 ? find(name) : NULL;
    if (name && !c && strcmp(name, "dragoman") != 0)
        return unknown_command(name);
    if (o.completion && strcmp(o.completion, "bash") == 0)
        help_completion_bash();
    else if (o.completion && strcmp(o.completion, "zsh") == 0)
        help_completion_zsh();
    else if (o.completion)
        help_completion_fish();
    else if (o.markdown && c)
        help_markdown(c);
    else if (o.man)
        help_man(c);
    else if (o.names)
        for (int i = 0; commands[i]; i++) printf("%s\n", commands[i]->name);
    else if (c)
        help_command(c, rest.count > 1 && strcmp(rest.items[1], "all") == 0);
    else
        help_all();
    return EXIT_FINE;
}

const command command_help = {
    .name = "help",
    .summary = "print help, manual pages and completion scripts",
    .usage = "[COMMAND [all]] [options]",
    .description =
        "Prints the help text of a command, of all its options, or the list of commands.",
    .example = "dragoman help translate\ndragoman help --man translate | man -l -",
    .options = help_table,
    .run = run_help,
};

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); // a closed pipe is an error of the writer, not a sudden end
    if (argc < 2) {
        help_all();
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    int code = EXIT_FINE;
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        help_all();
    } else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        code = print_version();
    } else {
        const command *c = find(name);
        if (!c && name[0] == '-')
            return fail(EXIT_USAGE, "unknown option '%s' (see 'dragoman --help')", name);
        if (!c) return unknown_command(name);
        code = c->run(c, argc - 1, argv + 1);
    }
    const bool wrote = fflush(stdout) == 0;
    if (output_closed() || (!wrote && errno == EPIPE)) end_by_signal(SIGPIPE); // as `| head` expects
    if (!wrote && code == EXIT_FINE) code = fail(EXIT_RUNTIME, "cannot write 'standard output'");
    return code;
}
