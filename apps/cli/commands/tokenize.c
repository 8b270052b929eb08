// SPDX-License-Identifier: MIT
// `dragoman tokenize`: text to words between spaces and back.
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "translate/setup.h"

typedef struct tokenize_options {
    const char *encoding;
    const char *input, *output;
    int undo;
    int sacremoses, aggressive, plain, normalize;
} tokenize_options;

#define AT(field) offsetof(tokenize_options, field)

static const option options[] = {
    {"undo", 'u', OPTION_FLAG, NULL, AT(undo), 0, 0, NULL, "join tokens to text again",
     "detokenize", NULL},
    {"sacremoses", 0, OPTION_FLAG, NULL, AT(sacremoses), 0, 0, NULL,
     "the tokens that sacremoses writes, for models of other systems", NULL, NULL},
    {"aggressive", 'a', OPTION_FLAG, NULL, AT(aggressive), 0, 0, NULL,
     "with --sacremoses: hyphens inside words become @-@", NULL, NULL},
    {"no-escape", 0, OPTION_FLAG, NULL, AT(plain), 0, 0, NULL,
     "with --sacremoses: no entities such as &apos;", NULL, NULL},
    {"normalize-punctuation", 0, OPTION_FLAG, NULL, AT(normalize), 0, 0, NULL,
     "with --sacremoses: quotes, dashes and spaces in few forms first", NULL, NULL},
    {"input", 'i', OPTION_TEXT, "FILE", AT(input), 0, 0, NULL,
     "read from FILE, also gzip (default: standard input)", NULL, NULL},
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write to FILE, compressed if its name ends in .gz (default: standard output)", NULL, NULL},
    ENCODING_OPTION(tokenize_options, 0),
    {0},
};

static unsigned moses_options(const tokenize_options *o)
{
    return (o->aggressive ? DGM_MOSES_TOKENS_AGGRESSIVE : 0u) | (o->plain ? 0u : DGM_MOSES_TOKENS_ESCAPE) |
           (o->normalize ? DGM_MOSES_TOKENS_PUNCTUATION : 0u);
}

static dgm_status tokenize(const tokenize_options *o, const char *language, dgm_line line, char **text,
                           dgm_error *error)
{
    if (!o->sacremoses) return dgm_tokenize(language, o->undo, line, text, error);
    return dgm_tokenize_moses(language, moses_options(o), o->undo, line, text, error);
}

static int run(const command *self, int argc, char **argv)
{
    tokenize_options o = {0};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    reader_encoding(o.encoding);
    if (rest.count != 1) return fail_usage(self, "tokenize takes one argument, the language");
    if (!o.sacremoses && (o.aggressive || o.plain || o.normalize))
        return fail_usage(self, "--aggressive, --no-escape and --normalize-punctuation require --sacremoses");
    file_list files = {0};
    files_read(&files, "--input", o.input);
    files_write(&files, "--output", o.output);
    code = files_check(self, &files);
    if (code >= 0) return code;
    line_reader *in = reader_open(o.input);
    if (!in) return EXIT_RUNTIME;
    line_writer *out = writer_open(o.output);
    code = out ? EXIT_FINE : EXIT_RUNTIME;
    const char *line;
    char *text;
    size_t size;
    unsigned long long number = 0;
    while (code == EXIT_FINE && reader_next(in, &line, &size)) {
        dgm_error error;
        number++;
        dgm_status st = tokenize(&o, rest.items[0], (dgm_line){line, size}, &text, &error);
        if (st != DGM_OK) {
            code = fail(exit_code(st), "%s:%llu: %s", o.input ? o.input : "standard input", number,
                        error.text);
            break;
        }
        writer_text(out, text);
        writer_put(out, "\n", 1);
        dgm_string_free(&text);
    }
    if (reader_failed(in)) code = EXIT_RUNTIME;
    reader_close(in);
    if (out && !writer_close(out)) code = EXIT_RUNTIME;
    return code;
}

const command command_tokenize = {
    .name = "tokenize",
    .summary = "split text into words",
    .usage = "LANGUAGE [options]",
    .description = "Puts spaces around words and punctuation by the conventions of Moses, without "
                   "its escapes. Rules for en, de, fr, es and it; generic rules otherwise. What "
                   "'dragoman align' reads. With --sacremoses the tokens that Moses' scripts and their "
                   "Python port write, escapes included.",
    .example = "dragoman tokenize en < corpus.en > corpus.tok.en\n"
               "dragoman tokenize de --undo < output.tok.de",
    .options = options,
    .run = run,
};
