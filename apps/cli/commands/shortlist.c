// SPDX-License-Identifier: MIT
// `dragoman shortlist`: makes, converts and measures the shortlist of a model.
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "io/progress.h"
#include "translate/setup.h"

typedef struct shortlist_options {
    option_list input, measure;
    const char *model, *output, *lexicon, *binary, *write_lexicon, *write_binary;
    const char *frequent_text;
    int best, frequent, candidates, remove, iterations, threads, max_length, quiet;
    float threshold, next;
} shortlist_options;

#define AT(field) offsetof(shortlist_options, field)

static const option options[] = {
    {"model", 'm', OPTION_TEXT, "FILE", AT(model), 0, 0, NULL, "model file that gets the shortlist",
     NULL, NULL},
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write the model with its shortlist to FILE, which may be the model itself", NULL, NULL},
    {"input", 'i', OPTION_LIST, "FILE", AT(input), 0, 0, NULL,
     "parallel text to align, also gzip: --input SOURCE TARGET, plain text as the model gets it",
     NULL, NULL},
    {"lexicon", 0, OPTION_TEXT, "FILE", AT(lexicon), 0, 0, NULL,
     "take the shortlist from a text table of the model's tokens, lines of TARGET SOURCE PROBABILITY "
     "(Marian's lex.s2t, 'dragoman align -m --lex-s2t'), also gzip",
     "lex", NULL},
    {"binary", 0, OPTION_TEXT, "FILE", AT(binary), 0, 0, NULL,
     "take it from Marian's binary shortlist", NULL, NULL},
    {"best", 0, OPTION_COUNT, "N", AT(best), 1, 1000, NULL,
     "translations kept per source token (default 20)", NULL, NULL},
    {"threshold", 0, OPTION_REAL, "P", AT(threshold), 0, 1, NULL,
     "leave out translations less probable than P (default 0.001)", NULL, NULL},
    {"candidates", 0, OPTION_COUNT, "N", AT(candidates), 1, 1000000, NULL,
     "instead of --threshold: choose it so that the first --measure text has N candidates per line",
     NULL, NULL},
    {"frequent", 0, OPTION_COUNT, "N", AT(frequent), 0, 1000000, NULL,
     "always allow the N most frequent target tokens of the text, or with --lexicon those of "
     "--frequent-text, else the first N of the vocabulary (default 100)",
     "first", NULL},
    {"next", 0, OPTION_REAL, "P", AT(next), 0, 1, NULL,
     "also allow tokens behind a target token that they follow with probability P or more in the "
     "target text (or --frequent-text): endings of words, mostly (default 0: none)",
     NULL, NULL},
    {"frequent-text", 0, OPTION_TEXT, "FILE", AT(frequent_text), 0, 0, NULL,
     "with --lexicon: the target text whose most frequent tokens are always allowed, also gzip",
     NULL, NULL},
    {"write-lexicon", 0, OPTION_TEXT, "FILE", AT(write_lexicon), 0, 0, NULL,
     "also write the shortlist as a text table", NULL, NULL},
    {"write-binary", 0, OPTION_TEXT, "FILE", AT(write_binary), 0, 0, NULL,
     "also write it as Marian's binary shortlist", NULL, NULL},
    {"remove", 0, OPTION_FLAG, NULL, AT(remove), 0, 0, NULL, "write the model without a shortlist", NULL,
     NULL},
    {"measure", 0, OPTION_LIST, "FILE", AT(measure), 0, 0, NULL,
     "print how many candidates the model's shortlist gives per line of FILE; given twice, the second "
     "is the target text and the share of its tokens among the candidates is printed too",
     NULL, NULL},
    ALIGN_OPTIONS(shortlist_options),
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no progress bar and no report", NULL,
     NULL},
    {0},
};

static int measure(const shortlist_options *o, const char *model)
{
    dgm_shortlist_measure m = {.size = sizeof m};
    dgm_error error;
    const char *target = o->measure.count > 1 ? o->measure.items[1] : NULL;
    dgm_status st = dgm_shortlist_test(model, o->measure.items[0], target, &m, &error);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    printf("lines %llu, candidates per line %.1f (most %llu)\n", (unsigned long long)m.lines,
           m.mean, (unsigned long long)m.most);
    if (m.more > 0) printf("continuations per target token %.1f\n", m.more);
    if (target)
        printf("recall %.3f %% of %llu target tokens, %.1f %% of lines whole\n", 100 * m.recall,
               (unsigned long long)m.target_tokens,
               m.lines ? 100.0 * (double)m.whole / (double)m.lines : 0);
    return EXIT_FINE;
}

static int make(const shortlist_options *o, const char *source, const char *target)
{
    dgm_shortlist_options s;
    dgm_align_options a;
    dgm_shortlist_default(&s);
    dgm_align_default(&a);
    a.iterations = o->iterations;
    a.threads = o->threads;
    a.max_length = o->max_length;
    s.source = source;
    s.target = target;
    s.lexicon = o->lexicon;
    s.binary = o->binary;
    s.best = o->best;
    s.threshold = (double)o->threshold;
    s.candidates = o->candidates;
    s.tune = o->candidates ? o->measure.items[0] : NULL;
    s.frequent_text = o->frequent_text;
    s.next = (double)o->next;
    s.frequent = o->frequent;
    s.remove = o->remove;
    s.write_lexicon = o->write_lexicon;
    s.write_binary = o->write_binary;
    s.align = &a;
    progress bar;
    s.progress = (dgm_progress){progress_tick, &bar};
    dgm_shortlist_report r = {.size = sizeof r};
    dgm_error error;
    progress_start(&bar, !o->quiet && source);
    dgm_status st = dgm_shortlist_make(o->model, o->output, &s, &r, &error);
    progress_end(&bar);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    if (o->quiet || o->remove) return EXIT_FINE;
    if (r.unknown)
        warn("%llu entries have tokens that the model does not know",
             (unsigned long long)r.unknown);
    fprintf(stderr, "%llu source tokens with %.1f translations on average, %llu frequent tokens",
            (unsigned long long)r.sources, r.sources ? (double)r.entries / (double)r.sources : 0.0,
            (unsigned long long)r.frequent);
    if (r.next) fprintf(stderr, ", %llu continuations", (unsigned long long)r.next);
    if (r.bytes) fprintf(stderr, ", %llu bytes", (unsigned long long)r.bytes);
    fprintf(stderr, "\n");
    return EXIT_FINE;
}

static int run(const command *self, int argc, char **argv)
{
    shortlist_options o = {.best = 20, .frequent = 100, .iterations = 5, .max_length = 200};
    o.threshold = 0.001f;
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (!o.model) return fail_usage(self, "shortlist requires --model FILE");
    if (o.measure.count > 2) return fail_usage(self, "--measure may be given twice at most");
    const char *files[2] = {NULL, NULL};
    int n = o.input.count + rest.count;
    if (n != 0 && n != 2)
        return fail_usage(self, "expected two files, the source and the target text");
    for (int i = 0; i < n; i++)
        files[i] = i < o.input.count ? o.input.items[i] : rest.items[i - o.input.count];
    if (o.frequent_text && !o.lexicon)
        return fail_usage(self, "--frequent-text requires --lexicon FILE");
    if (o.candidates && o.measure.count == 0)
        return fail_usage(self, "--candidates requires --measure FILE");
    bool writes = o.output || o.write_lexicon || o.write_binary;
    if (!writes && o.measure.count == 0)
        return fail_usage(self, "shortlist requires --output, --write-lexicon, --write-binary or "
                                "--measure FILE");
    file_list all = {0};
    for (int i = 0; i < n; i++) files_read(&all, i ? "the target text" : "the source text", files[i]);
    files_read(&all, "--lexicon", o.lexicon);
    files_read(&all, "--binary", o.binary);
    files_read(&all, "--frequent-text", o.frequent_text);
    files_read_list(&all, "--measure", &o.measure);
    files_replace(&all, "--output", o.output, "--model", o.model);
    files_write(&all, "--write-lexicon", o.write_lexicon);
    files_write(&all, "--write-binary", o.write_binary);
    code = files_check(self, &all);
    if (code >= 0) return code;
    if (writes) code = make(&o, files[0], files[1]);
    if (code > 0) return code;
    return o.measure.count ? measure(&o, o.output ? o.output : o.model) : EXIT_FINE;
}

const command command_shortlist = {
    .name = "shortlist",
    .summary = "give a model its shortlist",
    .usage = "-m MODEL -o OUTPUT [options] [SOURCE TARGET]",
    .description =
        "A shortlist says which target tokens each source token may become. A decoder "
        "then computes a few hundred candidates per sentence instead of the whole vocabulary "
        "(translate --shortlist lexical, the default where a model of one target language has a "
        "shortlist). It is made from a parallel text, which is aligned with the model's own tokens, or from a table "
        "or a binary shortlist of Marian, and is stored in the model file.\n\n"
        "Without a text, a table or a binary shortlist the model's own one is written or measured.",
    .example = "dragoman shortlist -m en-de.gguf -o en-de.gguf corpus.en.gz corpus.de.gz\n"
               "dragoman shortlist -m en-de.gguf -o out.gguf --lexicon lex.s2t.gz --frequent 100\n"
               "dragoman shortlist -m en-de.gguf --measure dev.en --measure dev.de",
    .options = options,
    .run = run,
};
