// SPDX-License-Identifier: MIT
// `dragoman detect`: which language every line of a text is in.
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "translate/setup.h"

typedef struct detect_options {
    const char *encoding;
    const char *input, *output, *among;
    int installed, nbest, json;
} detect_options;

enum { MOST = 8 };

#define AT(field) offsetof(detect_options, field)

static const option options[] = {
    {"among", 0, OPTION_TEXT, "CODES", AT(among), 0, 0, NULL,
     "it is one of these, e.g. en,de,fr (default: any language that is known)", NULL, NULL},
    {"installed", 0, OPTION_FLAG, NULL, AT(installed), 0, 0, NULL,
     "it is one of the languages that the installed models translate from", NULL, NULL},
    {"nbest", 'n', OPTION_COUNT, "N", AT(nbest), 1, MOST, NULL,
     "print up to N languages a line, the most probable first (default 1)", NULL, NULL},
    {"json", 0, OPTION_FLAG, NULL, AT(json), 0, 0, NULL, "print one JSON object per line of input", NULL, NULL},
    {"input", 'i', OPTION_TEXT, "FILE", AT(input), 0, 0, NULL,
     "read from FILE, also gzip (default: standard input)", NULL, NULL},
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write to FILE, compressed if its name ends in .gz (default: standard output)", NULL, NULL},
    ENCODING_OPTION(detect_options, 0),
    {0},
};

static void put_plain(line_writer *w, const dgm_detected *found, size_t count)
{
    if (count == 0) writer_text(w, "und\t0.000");
    for (size_t i = 0; i < count; i++)
        writer_format(w, "%s%s\t%.3f", i ? "\t" : "", found[i].language, (double)found[i].confidence);
    writer_text(w, "\n");
}

static void put_json(line_writer *w, unsigned long long line, const dgm_detected *found, size_t count)
{
    writer_format(w, "{\"line\":%llu,\"languages\":[", line);
    for (size_t i = 0; i < count; i++)
        writer_format(w, "%s{\"language\":\"%s\",\"confidence\":%.4f}", i ? "," : "", found[i].language,
                      (double)found[i].confidence);
    writer_text(w, "]}\n");
}

static int detect_lines(const detect_options *o, const char *among, line_reader *in, line_writer *out)
{
    const char *line;
    size_t size;
    unsigned long long number = 0;
    while (reader_next(in, &line, &size)) {
        dgm_detected found[MOST];
        dgm_error error;
        size_t count = 0;
        const dgm_status st = dgm_detect(line, size, among, found, (size_t)o->nbest, &count, &error);
        if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
        if (o->json)
            put_json(out, number++, found, count);
        else
            put_plain(out, found, count);
    }
    return reader_failed(in) ? EXIT_RUNTIME : EXIT_FINE;
}

static int run(const command *self, int argc, char **argv)
{
    detect_options o = {.nbest = 1};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count) return fail_usage(self, "detect takes no arguments, not '%s'", rest.items[0]);
    if (o.among && o.installed) return fail_usage(self, "--among and --installed cannot be combined");
    reader_encoding(o.encoding);
    file_list files = {0};
    files_read(&files, "--input", o.input);
    files_write(&files, "--output", o.output);
    code = files_check(self, &files);
    if (code >= 0) return code;
    char *installed = NULL;
    dgm_error error;
    if (o.installed && dgm_models_languages(NULL, &installed, &error) != DGM_OK)
        return fail(EXIT_RUNTIME, "%s", error.text);
    line_reader *in = reader_open(o.input);
    line_writer *out = in ? writer_open(o.output) : NULL;
    code = out ? detect_lines(&o, o.installed ? installed : o.among, in, out) : EXIT_RUNTIME;
    if (in) reader_close(in);
    if (out && !writer_close(out)) code = EXIT_RUNTIME;
    dgm_string_free(&installed);
    return code;
}

const command command_detect = {
    .name = "detect",
    .summary = "say which language lines are in",
    .usage = "[options]",
    .description = "Prints a language code and a confidence from 0 to 1, between them a tab, for every line of "
                   "input; 'und' for a line without letters, or where no language is probable. Knows some 80 "
                   "languages, short strings best among few (--among, --installed).",
    .example = "dragoman detect < mixed.txt\ndragoman detect --installed --json < mixed.txt",
    .options = options,
    .run = run,
};
