// SPDX-License-Identifier: MIT
// Everything that is printed from the option tables: --help, man pages (roff), pages of the manual
// (Markdown), completion for bash, zsh and fish. `dragoman help --man NAME` and `dragoman help
// --completion SHELL` are what `make install` runs, `dragoman help --markdown NAME` is what `make manual` does.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "options.h"

enum { INDENT = 30, WIDTH = 100 };

// Prints text wrapped behind a margin; the cursor is at column `at`.
static void wrap(const char *text, int margin, int at)
{
    bool space = false; // owed before the next word, unless a new line begins
    while (*text) {
        int n = (int)strcspn(text, " \n");
        if (n && at + space + n > WIDTH && at > margin) {
            printf("\n%*s", margin, "");
            at = margin;
            space = false;
        }
        printf("%s%.*s", space && n ? " " : "", n, text);
        at += n + (space && n);
        text += n;
        space = *text == ' ';
        if (*text == ' ') text++;
        if (*text == '\n') {
            printf("\n%s%*s", text[1] == '\n' ? "\n" : "", margin, "");
            text += strspn(text, "\n");
            at = margin;
            space = false;
        }
    }
    putchar('\n');
}

// What stands for a value: "N", "{f32,i16,i8}"
static int spell_value(const option *o, char *out, size_t size)
{
    const option_kind kind = option_kind_of(o);
    if (kind != OPTION_CHOICE && kind != OPTION_MAYBE) return snprintf(out, size, "%s", o->value);
    int used = snprintf(out, size, "{%s}", o->choices);
    for (char *p = out; *p; p++)
        if (*p == '|') *p = ',';
    return used;
}

// "-b, --beam N"
static int spell(const option *o, char *out, size_t size)
{
    char letter[8] = "    ", value[120];
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    if (option_kind_of(o) == OPTION_FLAG) return snprintf(out, size, "%s--%s", letter, o->name);
    spell_value(o, value, sizeof value);
    const bool maybe = option_kind_of(o) == OPTION_MAYBE;
    return snprintf(out, size, "%s--%s%s%s%s", letter, o->name, maybe ? "[=" : " ", value,
                    maybe ? "]" : "");
}

static void help_line(const char *left, const char *text)
{
    const int n = printf("  %s", left);
    if (n > INDENT - 2)
        printf("\n%*s", INDENT, "");
    else
        printf("%*s", INDENT - n, "");
    wrap(text, INDENT, INDENT);
}

// The whole text of an option, with its other names.
static void whole_help(const option *o, char *out, size_t size)
{
    const char *name = NULL;
    int used = snprintf(out, size, "%s", o->help);
    for (const char *at = o->alias; at;) {
        const int n = (int)next_choice(&at, &name);
        if ((size_t)used >= size) return;
        used += snprintf(out + used, size - (size_t)used, "%s--%.*s",
                         name == o->alias ? "; also called " : ", ", n, name);
    }
}

static void help_option(const option *o, bool all)
{
    char left[160], text[1500];
    spell(o, left, sizeof left);
    if (all)
        whole_help(o, text, sizeof text);
    else
        snprintf(text, sizeof text, "%.*s", (int)strcspn(o->help, ";"), o->help);
    help_line(left, text);
}

static bool is_everyday(const command *c, const option *o)
{
    return c->everyday && option_rank(o) > 0;
}

static bool is_shown(const command *c, const option *o, bool all)
{
    const bool common = option_group(o) ? o->kind & OPTION_COMMON : !(o->kind & OPTION_SELDOM);
    return all || common || is_everyday(c, o);
}

enum { GROUPS = DGM_GROUP_SPEED + 1 };

static const char *group_title(int group)
{
    return group ? dgm_setting_group_name((dgm_setting_group)group) : "options";
}

// The next of the options that most people use, in the order of ranks; false: there is none behind *rank.
static bool everyday_next(const command *c, int *rank, option *o)
{
    enum { EVERYDAY = 15 };
    while (c->everyday && ++*rank <= EVERYDAY)
        for (size_t at = 0; option_next(c, &at, o);)
            if (option_rank(o) == *rank) return true;
    return false;
}

static void help_everyday(const command *c)
{
    option o;
    printf("\neveryday options:\n");
    for (int rank = 0; everyday_next(c, &rank, &o);) help_option(&o, false);
}

// The options of a group: common ones first, and the command's own before the library's. In the short
// help the everyday options have their place already.
static void help_group(const command *c, int group, bool all)
{
    option o;
    bool any = false;
    for (int pass = 0; pass < 4; pass++)
        for (size_t at = 0; option_next(c, &at, &o);) {
            const int place = (o.kind & OPTION_COMMON ? 0 : 2) + (o.kind & OPTION_SETTING ? 1 : 0);
            if (option_group(&o) != group || place != pass || !is_shown(c, &o, all)) continue;
            if (!all && is_everyday(c, &o)) continue;
            if (!any) printf("\n%s:\n", group_title(group));
            any = true;
            help_option(&o, all);
        }
}

// Are there options that the short help leaves out?
static bool leaves_out(const command *c)
{
    option o;
    for (size_t at = 0; option_next(c, &at, &o);)
        if (!is_shown(c, &o, false)) return true;
    return false;
}

void help_command(const command *c, bool all)
{
    const bool more = leaves_out(c), cut = more && !all;
    printf("usage: dragoman %s %s\n\n", c->name, c->usage);
    if (cut) {
        char first[1000];
        const char *end = strstr(c->description, "\n\n");
        snprintf(first, sizeof first, "%.*s", (int)(end ? end - c->description : 999),
                 c->description);
        wrap(first, 0, 0);
    } else {
        wrap(c->description, 0, 0);
    }
    if (cut && c->everyday) help_everyday(c);
    for (int group = 0; group < GROUPS; group++) help_group(c, group, !cut);
    if (more) putchar('\n');
    help_line(more ? "-h, --help [all]" : "-h, --help",
              more ? "print the common options; all: every option, in full" : "print this text");
    printf("\nexample:\n");
    for (const char *p = c->example; *p;) {
        size_t n = strcspn(p, "\n");
        printf("  %.*s\n", (int)n, p);
        p += n + (p[n] != 0);
    }
}

void help_all(void)
{
    printf("usage: dragoman COMMAND [options]\n\n"
           "Neural machine translation: text in, text out, one line each.\n\ncommands:\n");
    for (int i = 0; commands[i]; i++)
        printf("  %-12s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n  --version    print the version and the chosen kernels\n"
           "  --help       print this text; 'dragoman COMMAND --help' tells about a command\n"
           "\nexample:\n  echo 'Good morning.' | dragoman translate\n");
}

// ---- man pages --------------------------------------------------------------------------------

// Text with roff's special characters escaped.
static void roff(const char *text)
{
    int start = 1;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        start = *text == '\n';
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void roff_paragraphs(const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) : strlen(text);
        char part[4000];
        snprintf(part, sizeof part, "%.*s", (int)n, text);
        roff(part);
        putchar('\n');
        text += n;
        while (*text == '\n') text++;
        if (*text) printf(".PP\n");
    }
}

static const char man_end[] =
    ".SH ENVIRONMENT\n"
    ".TP\n.B DRAGOMAN_MODEL\nModel file, or folder of model files, to use by default.\n"
    ".TP\n.B DRAGOMAN_CPU\nHighest instruction set to use: c; on x86 avx2, avx512, "
    "vnni, amx; on Arm neon, dotprod, i8mm.\n"
    ".TP\n.B DRAGOMAN_PLUGINS\nFolders, with colons between them, where devices (\\-\\-device) and the "
    "reader of PDF files are looked for, and nowhere else.\n"
    ".TP\n.B DRAGOMAN_HELPERS\nThreads that help the workers of a GPU with what the host has to do, 0 to 256 "
    "(default: up to three for each worker, of cores that nobody else has).\n"
    ".TP\n.B DRAGOMAN_CUDA_GRAPHS\n0: launch the kernels of a GPU one by one, for debuggers.\n"
    ".TP\n.BR XDG_DATA_HOME \", \" XDG_CACHE_HOME\nFolders with dragoman/models of the user's own, and with "
    "models that were imported for \\-m (default: ~/.local/share, ~/.cache).\n"
    ".SH EXIT STATUS\n0: everything went well. 1: a file could not be processed. "
    "2: the command line was wrong. 3: everything was done, but some lines failed.\n"
    ".SH EXAMPLES\n.nf\n"
    "echo \\(aqGood morning.\\(aq | dragoman translate\n"
    "dragoman translate \\-s de \\-t en \\-i brief.docx \\-o letter.docx\n"
    "dragoman serve \\-\\-port 5000\n.fi\n"
    ".SH SEE ALSO\n.BR dragoman\\-translate (1),\n.BR dragoman\\-serve (1),\n.BR dragoman\\-import (1)\n";

static void man_program(void)
{
    printf(".TH DRAGOMAN 1 \"\" \"dragoman %s\" \"User Commands\"\n", DGM_VERSION);
    printf(".SH NAME\ndragoman \\- neural machine translation\n.SH SYNOPSIS\n"
           ".B dragoman\n.I COMMAND\n[options]\n.SH DESCRIPTION\n"
           "Translates text and documents with neural models, offline: files, standard input, or over HTTP. "
           "Every command has a page of its own.\n.SH COMMANDS\n");
    for (int i = 0; commands[i]; i++) {
        printf(".TP\n.BR dragoman\\-%s (1)\n", commands[i]->name);
        roff(commands[i]->summary);
        putchar('\n');
    }
    fputs(man_end, stdout);
}

static void man_option(const option *o)
{
    char left[160];
    spell(o, left, sizeof left);
    printf(".TP\n.B ");
    roff(left + strspn(left, " "));
    putchar('\n');
    char text[1500];
    whole_help(o, text, sizeof text);
    roff(text);
    putchar('\n');
}

// The options of a group but for the everyday ones, which stand before all groups.
static void man_group(const command *c, int group)
{
    option o;
    bool any = false;
    for (size_t at = 0; option_next(c, &at, &o);) {
        if (option_group(&o) != group || is_everyday(c, &o)) continue;
        if (!any && group) printf(".SS %s\n", group_title(group));
        any = true;
        man_option(&o);
    }
}

void help_man(const command *c)
{
    if (!c) {
        man_program();
        return;
    }
    printf(".TH DRAGOMAN-");
    for (const char *p = c->name; *p; p++) putchar(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
    printf(" 1 \"\" \"dragoman %s\" \"User Commands\"\n", DGM_VERSION);
    printf(".SH NAME\ndragoman\\-%s \\- ", c->name);
    roff(c->summary);
    printf("\n.SH SYNOPSIS\n.B dragoman %s\n", c->name);
    roff(c->usage);
    printf("\n.SH DESCRIPTION\n");
    roff_paragraphs(c->description);
    printf(".SH OPTIONS\n");
    option o;
    for (int rank = 0; everyday_next(c, &rank, &o);) man_option(&o);
    for (int group = 0; group < GROUPS; group++) man_group(c, group);
    printf(".SH EXAMPLE\n.nf\n");
    roff(c->example);
    printf("\n.fi\n.SH EXIT STATUS\n0: everything went well. 1: a file could not be processed. "
           "2: the command line was wrong. 3: everything was done, but some lines failed.\n"
           ".SH SEE ALSO\n.BR dragoman (1)\n");
}

// ---- completion -------------------------------------------------------------------------------

static void print_choices(const char *choices, char separator)
{
    for (; choices && *choices; choices++) putchar(*choices == '|' ? separator : *choices);
}

// "train TEXT... | convert LM": what a command of several actions may begin with, separated by blanks; "" else.
static void print_actions(const command *c)
{
    for (const char *p = strstr(c->usage, " | ") ? c->usage : NULL; p; p = strstr(p, " | "), p = p ? p + 3 : p)
        if (*p >= 'a' && *p <= 'z') printf("%.*s ", (int)strcspn(p, " "), p);
}

static bool has_actions(const command *c)
{
    return strstr(c->usage, " | ") && c->usage[0] >= 'a' && c->usage[0] <= 'z';
}

static void print_commands(void)
{
    for (int i = 0; commands[i]; i++) printf("%s ", commands[i]->name);
}

void help_completion_bash(void)
{
    printf("# bash completion for dragoman; made by 'dragoman help --completion bash'\n"
           "_dragoman() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} options=\n"
           "    COMPREPLY=()\n"
           "    # --option=value comes as three words.\n"
           "    if [ \"$cur\" = = ]; then cur=\n"
           "    elif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W \"");
    print_commands();
    printf("help --version --help\" -- \"$cur\"))\n        return\n    fi\n"
           "    case \"${COMP_WORDS[1]} $prev\" in\n"
           "    \"help help\") COMPREPLY=($(compgen -W \"");
    print_commands();
    printf("\" -- \"$cur\")); return ;;\n");
    option o;
    for (int i = 0; commands[i]; i++) {
        const char *name = commands[i]->name;
        if (has_actions(commands[i])) {
            printf("    \"%s %s\") COMPREPLY=($(compgen -W \"", name, name);
            print_actions(commands[i]);
            printf("--help\" -- \"$cur\")); return ;;\n");
        }
        for (size_t at = 0; option_next(commands[i], &at, &o);) {
            const option_kind kind = option_kind_of(&o);
            if (kind != OPTION_CHOICE && kind != OPTION_MAYBE) continue;
            printf("    \"%s --%s\") COMPREPLY=($(compgen -W \"", name, o.name);
            print_choices(o.choices, ' ');
            // Behind an option that may stand alone a file may come.
            printf("\" -- \"$cur\")%s); return ;;\n", kind == OPTION_MAYBE ? " $(compgen -f -- \"$cur\")" : "");
        }
    }
    printf("    esac\n    case \"${COMP_WORDS[1]}\" in\n");
    for (int i = 0; commands[i]; i++) {
        printf("    %s) options=\"", commands[i]->name);
        for (size_t at = 0; option_next(commands[i], &at, &o);) printf("--%s ", o.name);
        printf("--help\" ;;\n");
    }
    printf("    esac\n"
           "    if [ \"${cur#-}\" != \"$cur\" ]; then\n"
           "        COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
           "    else\n"
           "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
           "    fi\n"
           "}\n"
           "complete -o filenames -F _dragoman dragoman\n");
}

// Inside single quotes and brackets of a zsh specification.
static void zsh_text(const char *text)
{
    for (; *text && *text != '\n'; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (*text == '[' || *text == ']' || *text == ':')
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void zsh_option(const option *o, bool letter)
{
    const option_kind kind = option_kind_of(o);
    const char *star = kind == OPTION_LIST ? "*" : "";
    // "=": the value is a word of its own, or stands behind an equals sign; "=-": behind that alone.
    const char *joined = kind == OPTION_FLAG ? "" : kind == OPTION_MAYBE ? "=-" : "=";
    if (letter)
        printf("            '%s-%c[", star, o->letter);
    else
        printf("            '%s--%s%s[", star, o->name, joined);
    zsh_text(o->help);
    putchar(']');
    if (kind == OPTION_CHOICE || kind == OPTION_MAYBE) {
        printf("%s%s:(", kind == OPTION_MAYBE ? "::" : ":", o->value);
        print_choices(o->choices, ' ');
        putchar(')');
    } else if (kind != OPTION_FLAG) {
        int file = strncmp(o->value, "FILE", 4) == 0 || strncmp(o->value, "MODEL", 5) == 0;
        putchar(':');
        zsh_text(o->value);
        printf(":%s", file ? "_files" : "");
    }
    printf("' \\\n");
}

void help_completion_zsh(void)
{
    printf("#compdef dragoman\n# zsh completion; made by 'dragoman help --completion zsh'\n"
           "_dragoman() {\n    local -a commands\n    commands=(\n");
    for (int i = 0; commands[i]; i++) {
        printf("        '%s:", commands[i]->name);
        zsh_text(commands[i]->summary);
        printf("'\n");
    }
    printf("    )\n    if (( CURRENT == 2 )); then\n"
           "        _describe command commands\n        return\n    fi\n"
           "    local command=${words[2]}\n    shift words\n    (( CURRENT-- ))\n"
           "    case $command in\n");
    option o;
    for (int i = 0; commands[i]; i++) {
        printf("    %s)\n        _arguments \\\n", commands[i]->name);
        for (size_t at = 0; option_next(commands[i], &at, &o);) {
            zsh_option(&o, false);
            if (o.letter) zsh_option(&o, true);
        }
        printf("            '--help[print a help text]' ");
        if (has_actions(commands[i])) {
            printf("'1:what to do:(");
            print_actions(commands[i]);
            printf(")' ");
        }
        printf("'*:file:_files' ;;\n");
    }
    printf("    help) _describe command commands ;;\n    esac\n}\n_dragoman \"$@\"\n");
}

// Inside single quotes of fish: the summary of an option.
static void fish_text(const char *text)
{
    for (; *text && *text != '\n' && *text != ';'; text++) {
        if (*text == '\'' || *text == '\\') putchar('\\');
        putchar(*text);
    }
}

static void fish_option(const command *c, const option *o)
{
    const option_kind kind = option_kind_of(o);
    printf("complete -c dragoman -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name);
    if (o->letter) printf(" -s %c", o->letter);
    if (kind == OPTION_CHOICE || kind == OPTION_MAYBE) {
        printf("%s -a '", kind == OPTION_CHOICE ? " -x" : "");
        print_choices(o->choices, ' ');
        putchar('\'');
    } else if (kind != OPTION_FLAG) {
        printf(" -r");
    }
    printf(" -d '");
    fish_text(o->help);
    printf("'\n");
}

void help_completion_fish(void)
{
    printf("# fish completion for dragoman; made by 'dragoman help --completion fish'\n"
           "complete -c dragoman -n __fish_use_subcommand -f -l version -d 'print the version'\n");
    for (int i = 0; commands[i]; i++) {
        printf("complete -c dragoman -n __fish_use_subcommand -f -a %s -d '", commands[i]->name);
        fish_text(commands[i]->summary);
        printf("'\n");
    }
    printf("complete -c dragoman -n '__fish_seen_subcommand_from help' -f -a '");
    print_commands();
    printf("'\n");
    option o;
    for (int i = 0; commands[i]; i++) {
        if (has_actions(commands[i])) {
            printf("complete -c dragoman -n '__fish_seen_subcommand_from %s' -a '", commands[i]->name);
            print_actions(commands[i]);
            printf("'\n");
        }
        for (size_t at = 0; option_next(commands[i], &at, &o);) fish_option(commands[i], &o);
    }
}

// ---- pages of the manual ----------------------------------------------------------------------

// Text in which Markdown finds no mark of its own.
static void markdown(const char *text)
{
    for (; *text; text++) {
        if (strchr("<>|*_[]`", *text)) putchar('\\');
        putchar(*text);
    }
}

static void markdown_option(const option *o, const char *title, bool first)
{
    char left[160], text[1500];
    if (first) printf("\n## %c%s\n\n| option | meaning |\n|---|---|\n", title[0] - 'a' + 'A', title + 1);
    spell(o, left, sizeof left);
    whole_help(o, text, sizeof text);
    printf("| `%s` | ", left + strspn(left, " "));
    markdown(text);
    printf(" |\n");
}

static void markdown_options(const command *c)
{
    option o;
    for (int rank = 0, first = 1; everyday_next(c, &rank, &o); first = 0)
        markdown_option(&o, "everyday options", first);
    for (int group = 0; group < GROUPS; group++) {
        bool first = true;
        for (size_t at = 0; option_next(c, &at, &o);) {
            if (option_group(&o) != group || is_everyday(c, &o)) continue;
            const char *title = group || !c->everyday ? group_title(group) : "other options";
            markdown_option(&o, title, first);
            first = false;
        }
    }
}

void help_markdown(const command *c)
{
    printf("# dragoman %s\n\n", c->name);
    markdown(c->summary);
    printf("\n\nUsage: `dragoman %s %s`\n\n", c->name, c->usage);
    markdown(c->description);
    printf("\n\n## Examples\n\n");
    for (const char *p = c->example; *p;) {
        const size_t n = strcspn(p, "\n");
        printf("    %.*s\n", (int)n, p);
        p += n + (p[n] != 0);
    }
    markdown_options(c);
}
