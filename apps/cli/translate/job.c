// SPDX-License-Identifier: MIT
// Corpus jobs: what was there before, and what comes after an interruption; see job.h.
//
// A complete job leaves no journal. What is known of it is its output: with a result for every line of
// the input there is nothing left to do.
#define _GNU_SOURCE
#include "translate/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/progress.h"

// ---- input ------------------------------------------------------------------------------------

static bool is_standard(const char *name)
{
    return !name || strcmp(name, "-") == 0;
}

// Says what people may have meant by a name that is no file's: a text, or where the translation should go.
static bool is_mistaken(const char *name, bool last_of_several)
{
    if (is_standard(name) || access(name, F_OK) == 0 || errno != ENOENT) return false;
    if (strchr(name, ' '))
        fail(EXIT_RUNTIME, "there is no file '%s'; to translate this text: --text '%s'", name, name);
    else if (last_of_several)
        fail(EXIT_RUNTIME, "cannot open '%s': %s; all names are read, to write to it: -o %s", name,
             strerror(ENOENT), name);
    return strchr(name, ' ') || last_of_several;
}

line_reader *open_input(const translate_options *o)
{
    const int count = o->files.count;
    if (o->text.count) return reader_open_texts(o->text.items, o->text.count);
    for (int i = 0; i < count; i++)
        if (is_mistaken(o->files.items[i], i > 0 && i == count - 1 && !o->output)) return NULL;
    if (count) return reader_open_files(o->files.items, count);
    if (is_mistaken(o->input, false)) return NULL;
    return reader_open(o->input);
}

static void warn_of_markup(const char *name)
{
    static const char *const ends[] = {".xml", ".tex", ".rtf", ".rst", ".adoc"};
    const char *end = name ? strrchr(name, '.') : NULL;
    for (size_t i = 0; end && i < sizeof ends / sizeof *ends; i++)
        if (strcmp(end, ends[i]) == 0)
            warn("'%s' is read as plain text, line by line: its markup is not understood", name);
}

void input_warn(const translate_options *o)
{
    if (o->quiet || o->text.count || o->format) return;
    for (int i = 0; i < o->files.count; i++) warn_of_markup(o->files.items[i]);
    if (!o->files.count) warn_of_markup(o->input);
}

bool input_is_files(const translate_options *o)
{
    if (o->text.count) return false;
    if (!o->files.count) return is_regular(o->input);
    for (int i = 0; i < o->files.count; i++)
        if (!is_regular(o->files.items[i])) return false;
    return true;
}

bool input_is_typed(const translate_options *o)
{
    return !o->text.count && !o->files.count && is_standard(o->input) && isatty(0);
}

bool is_conversation(const translate_options *o)
{
    return input_is_typed(o) || shown_at_once(o->output);
}

void job_describe_input(journal *j, const translate_options *o)
{
    char number[16];
    const int count = o->text.count ? 0 : o->files.count ? o->files.count : 1;
    snprintf(number, sizeof number, "%d", count);
    journal_describe(j, "number of files", number, NULL);
    for (int i = 0; i < count; i++) journal_describe_input(j, i, o->files.count ? o->files.items[i] : o->input);
}

// ---- an earlier job ---------------------------------------------------------------------------

// Lines of a text, or of an n-best list: of the input that it is of.
static uint64_t count_lines(line_reader *r, bool list)
{
    uint64_t count = 0;
    char last[32] = "";
    const char *line = NULL;
    size_t size = 0;
    while (reader_next(r, &line, &size)) {
        char number[32];
        snprintf(number, sizeof number, "%.*s", (int)strcspn(line, " "), line);
        count += !list || strcmp(number, last) != 0;
        memcpy(last, number, sizeof last);
    }
    return count;
}

// There is no journal, but output.
static int check_complete(const translate_options *o)
{
    line_reader *in = open_input(o), *out = in ? reader_open_output(o->output) : NULL;
    int code = EXIT_RUNTIME;
    if (out) {
        const uint64_t want = count_lines(in, false);
        const uint64_t have = count_lines(out, o->engine.set.settings.nbest > 1 && !o->show.json);
        const bool fine = !reader_failed(in) && !reader_failed(out);
        if (fine && have == want) {
            code = EXIT_FINE;
            if (!o->quiet)
                fprintf(stderr, "dragoman: '%s' is already complete: %s line%s\n", o->output,
                        grouped(have).text, have == 1 ? "" : "s");
        } else if (fine) {
            fail(code,
                 "cannot resume '%s': there is no '%s.progress', and it has %s line%s for the %s "
                 "of the input (--overwrite starts anew)",
                 o->output, o->output, grouped(have).text, have == 1 ? "" : "s",
                 grouped(want).text);
        }
    }
    reader_close(in);
    reader_close(out);
    return code;
}

int job_check(const translate_options *o)
{
    struct stat st;
    if (!is_file_name(o->output)) return -1;
    const journal_state state = journal_look(o->output);
    if (state == JOURNAL_BUSY)
        return fail(EXIT_RUNTIME, "another program is writing '%s'", o->output);
    if (state == JOURNAL_LEFT && !o->resume && !o->overwrite)
        return fail(EXIT_RUNTIME,
                    "'%s': an interrupted job is here: add --resume, or --overwrite", o->output);
    const bool there = stat(o->output, &st) == 0 && st.st_size > 0;
    return state == JOURNAL_NONE && o->resume && there ? check_complete(o) : -1;
}

// ---- an interruption --------------------------------------------------------------------------

// A word as a shell reads it.
static void put_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./:,@%";
    fputc(' ', stderr);
    if (*word && word[strspn(word, plain)] == 0) {
        fputs(word, stderr);
        return;
    }
    fputc('\'', stderr);
    for (const char *p = word; *p; p++) fputs(*p == '\'' ? "'\\''" : (char[]){*p, 0}, stderr);
    fputc('\'', stderr);
}

void job_how_to_continue(const translate_options *o, uint64_t lines)
{
    bool resume = false;
    fprintf(stderr, "dragoman: interrupted: %s line%s of '%s' are kept; to continue%s:\ndragoman",
            grouped(lines).text, lines == 1 ? "" : "s", o->output,
            !o->files.count && is_standard(o->input) ? ", with the same input" : "");
    for (int i = 0; i < o->argc; i++) {
        if (strcmp(o->argv[i], "--overwrite") == 0) continue;
        resume = resume || strcmp(o->argv[i], "--resume") == 0;
        put_word(o->argv[i]);
    }
    fputs(resume ? "\n" : " --resume\n", stderr);
}
