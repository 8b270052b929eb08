// SPDX-License-Identifier: MIT
// `dragoman lm`: n-gram language models: train, convert, perplexity, query.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "io/progress.h"
#include "io/sink.h"
#include "translate/setup.h"

typedef struct lm_options {
    const char *output, *input, *prune, *subwords, *temp;
    int order, fallback, bits, words, contexts, seed, stats, quiet;
    int64_t memory;
} lm_options;

#define AT(field) offsetof(lm_options, field)

static const option options[] = {
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write to FILE, compressed if its name ends in .gz (default: standard output)", NULL, NULL},
    {"order", 'n', OPTION_COUNT, "N", AT(order), 1, DGM_NGRAM_MAX, NULL,
     "train: longest n-gram (default 5)", NULL, NULL},
    {"prune", 0, OPTION_TEXT, "K,K,...", AT(prune), 0, 0, NULL,
     "train: leave out n-grams seen K times or less, one K for each order from 1 on, the last one "
     "for all orders above it; the first is 0 (default 0)",
     NULL, NULL},
    {"discount-fallback", 0, OPTION_FLAG, NULL, AT(fallback), 0, 0, NULL,
     "train: discounts of 0.5, 1 and 1.5 where the text is too small to estimate them", NULL, NULL},
    {"memory", 'S', OPTION_SIZE, "SIZE", AT(memory), 1 << 20, 1e15, NULL,
     "train: memory for sorting beside the vocabulary, e.g. 256M (no unit: MiB); what does not fit goes to disk "
     "and the result is the same (default 1G)",
     NULL, NULL},
    {"temp", 'T', OPTION_TEXT, "FOLDER", AT(temp), 0, 0, NULL,
     "train: where that goes (default: $TMPDIR, else /tmp)", NULL, NULL},
    {"subwords", 'm', OPTION_TEXT, "MODEL", AT(subwords), 0, 0, NULL,
     "the words are the target tokens of this model file instead of what spaces separate",
     "model-file", NULL},
    {"bits", 0, OPTION_COUNT, "N", AT(bits), 0, 16, NULL,
     "convert: round probabilities and backoffs to 2^N values per order, 2 to 16; 0: keep them "
     "(default 0)",
     NULL, NULL},
    {"input", 'i', OPTION_TEXT, "FILE", AT(input), 0, 0, NULL,
     "perplexity, query: read the text from FILE, also gzip (default: standard input)", NULL, NULL},
    {"words", 0, OPTION_FLAG, NULL, AT(words), 0, 0, NULL,
     "query: a line for every word: WORD, length of the n-gram found, log10 p; an empty line "
     "behind every line",
     NULL, NULL},
    {"contexts", 0, OPTION_COUNT, "N", AT(contexts), 1, 1 << 30, NULL,
     "check: contexts to draw (default 1000)", NULL, NULL},
    {"seed", 0, OPTION_COUNT, "N", AT(seed), 0, 2147483647, NULL,
     "check: another one draws others (default 1)", NULL, NULL},
    {"stats", 0, OPTION_FLAG, NULL, AT(stats), 0, 0, NULL,
     "train: print counts, discounts, time and memory on standard error", NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no progress bar and no warnings",
     NULL, NULL},
    {0},
};

// ---- train ------------------------------------------------------------------------------------

static int read_prune(const command *self, const lm_options *o, uint64_t *prune)
{
    double least[DGM_NGRAM_MAX];
    int count = 0;
    dgm_error e;
    if (o->prune && dgm_number_list("--prune", o->prune, least, o->order, &count, &e) != DGM_OK)
        return fail_usage(self, "%s", e.text);
    for (int n = 0; n < o->order; n++) {
        const double value = count ? least[n < count ? n : count - 1] : 0;
        if (value < 0 || value > 0x1p53 || value != floor(value))
            return fail_usage(self, "--prune must be whole numbers separated by commas, not '%s'",
                              o->prune);
        prune[n] = (uint64_t)value;
    }
    return -1;
}

static void print_stats(const dgm_ngram_report *r, int order, double start)
{
    fprintf(stderr, "lines %llu, empty %llu, tokens %llu, types %llu\n",
            (unsigned long long)r->lines, (unsigned long long)r->empty,
            (unsigned long long)r->tokens, (unsigned long long)r->types);
    for (int n = 1; n <= order; n++)
        fprintf(stderr, "order %d: n-grams %llu, kept %llu, discounts %.6f %.6f %.6f%s\n", n,
                (unsigned long long)r->seen[n], (unsigned long long)r->kept[n], r->discount[n][1],
                r->discount[n][2], r->discount[n][3], r->fell_back[n] ? " (fixed)" : "");
    fprintf(stderr, "temporary files %.0f MiB, %.1f s, peak memory %.0f MiB\n",
            (double)r->spilled / (1 << 20), seconds() - start, (double)peak_rss() / (1 << 20));
}

static int check_files(const command *self, const lm_options *o, const words *rest)
{
    file_list files = {0};
    files_read_words(&files, rest, 1);
    files_read(&files, "--input", o->input);
    files_read(&files, "--subwords", o->subwords);
    files_write(&files, "--output", o->output);
    return files_check(self, &files);
}

static int train(const command *self, const lm_options *o, const words *rest)
{
    dgm_ngram_options t;
    dgm_ngram_default(&t);
    if (rest->count < 2) return fail_usage(self, "lm train takes one or more text files");
    int code = check_files(self, o, rest);
    if (code >= 0) return code;
    t.order = o->order;
    t.discount_fallback = o->fallback;
    t.memory = (uint64_t)o->memory;
    t.folder = o->temp;
    t.subwords = o->subwords;
    code = read_prune(self, o, t.prune);
    if (code >= 0) return code;
    progress bar;
    t.progress = (dgm_progress){progress_tick, &bar};
    text_sink sink;
    if (!sink_open(&sink, o->output)) return EXIT_RUNTIME;
    t.write = sink_put;
    t.write_cookie = sink.out;
    double start = seconds();
    dgm_ngram_report report = {.size = sizeof report};
    dgm_error error;
    progress_start(&bar, !o->quiet);
    dgm_status st = dgm_ngram_train(rest->items + 1, (size_t)rest->count - 1, sink.file, &t,
                                    &report, &error);
    progress_end(&bar);
    code = sink_close(&sink, st, &error);
    if (code != EXIT_FINE) return code;
    for (int n = 1; n <= o->order && !o->quiet; n++)
        if (report.fell_back[n]) warn("order %d has fixed discounts: the text is too small", n);
    if (o->stats) print_stats(&report, o->order, start);
    return EXIT_FINE;
}

// ---- convert, perplexity, query ---------------------------------------------------------------

static int convert(const command *self, const lm_options *o, const words *rest)
{
    dgm_error error;
    if (rest->count != 2 || !o->output)
        return fail_usage(self, "lm convert takes one model and requires --output FILE");
    dgm_status st = dgm_ngram_convert(rest->items[1], o->output, o->bits, &error);
    return st == DGM_OK ? EXIT_FINE : fail(exit_code(st), "%s", error.text);
}

static int put_word(void *cookie, const dgm_ngram_word *w)
{
    writer_put(cookie, w->word.data, w->word.size);
    writer_format(cookie, "\t%d\t%.6f%s\n", w->matched, w->log10, w->unknown ? "\tunknown" : "");
    return writer_failed(cookie);
}

static int each_line(const lm_options *o, const dgm_ngram *lm, bool query, line_reader *in,
                     line_writer *out)
{
    dgm_ngram_score all = {.size = sizeof all};
    dgm_error error;
    const char *line;
    size_t size;
    while (reader_next(in, &line, &size)) {
        dgm_ngram_score before = all;
        dgm_status st = dgm_ngram_line(lm, (dgm_line){line, size}, &all,
                                       query && o->words ? put_word : NULL, out, &error);
        if (writer_failed(out)) return EXIT_RUNTIME; // and says why when it is closed
        if (st != DGM_OK)
            return fail(exit_code(st), "%s:%llu: %s", o->input ? o->input : "standard input",
                        (unsigned long long)before.lines + 1, error.text);
        if (query && o->words)
            writer_text(out, "\n");
        else if (query)
            writer_format(out, "%.6f\t%llu\t%llu\n", all.log10 - before.log10,
                          (unsigned long long)(all.tokens - before.tokens),
                          (unsigned long long)(all.unknown - before.unknown));
    }
    if (reader_failed(in)) return EXIT_RUNTIME;
    if (!query)
        writer_format(out,
                      "lines %llu, empty %llu, tokens %llu, unknown %llu, log10 %.4f\n"
                      "perplexity %.4f, of known words %.4f\n",
                      (unsigned long long)all.lines, (unsigned long long)all.empty,
                      (unsigned long long)all.tokens, (unsigned long long)all.unknown, all.log10,
                      dgm_ngram_perplexity(&all, 0), dgm_ngram_perplexity(&all, 1));
    return EXIT_FINE;
}

static int ask(const command *self, const lm_options *o, const words *rest, bool query)
{
    if (rest->count != 2)
        return fail_usage(self, "lm %s takes one model", query ? "query" : "perplexity");
    int code = check_files(self, o, rest);
    if (code >= 0) return code;
    dgm_ngram *lm = NULL;
    dgm_error error;
    dgm_status st = dgm_ngram_open(&lm, rest->items[1], o->subwords, &error);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    line_reader *in = reader_open(o->input);
    line_writer *out = in ? writer_open(o->output) : NULL;
    code = out ? each_line(o, lm, query, in, out) : EXIT_RUNTIME;
    if (in) reader_close(in);
    if (out && !writer_close(out)) code = EXIT_RUNTIME;
    dgm_ngram_close(&lm);
    return code;
}

static int check(const command *self, const lm_options *o, const words *rest)
{
    if (rest->count != 2) return fail_usage(self, "lm check takes one model");
    dgm_ngram *lm = NULL;
    dgm_error error;
    dgm_status st = dgm_ngram_open(&lm, rest->items[1], NULL, &error);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    double mean, worst = dgm_ngram_check(lm, (uint64_t)o->contexts, (uint64_t)o->seed, &mean);
    printf("contexts %d, distance of sums from 1: mean %.3g, largest %.3g\n", o->contexts, mean,
           worst);
    dgm_ngram_close(&lm);
    return EXIT_FINE;
}

static int run(const command *self, int argc, char **argv)
{
    lm_options o = {.order = 5, .memory = (int64_t)1 << 30, .contexts = 1000, .seed = 1};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    const char *what = rest.count ? rest.items[0] : "";
    if (strcmp(what, "train") == 0) return train(self, &o, &rest);
    if (strcmp(what, "convert") == 0) return convert(self, &o, &rest);
    if (strcmp(what, "perplexity") == 0) return ask(self, &o, &rest, false);
    if (strcmp(what, "query") == 0) return ask(self, &o, &rest, true);
    if (strcmp(what, "check") == 0) return check(self, &o, &rest);
    return fail_usage(self, "lm takes train, convert, perplexity, query or check, not '%s'", what);
}

const command command_lm = {
    .name = "lm",
    .summary = "train and ask n-gram language models",
    .usage = "train TEXT... | convert LM | perplexity LM | query LM | check LM [options]",
    .description =
        "train counts the n-grams of texts and writes a model with interpolated modified "
        "Kneser-Ney smoothing as ARPA text. convert reads a model and writes it as ARPA (a name "
        "that ends in .arpa or .gz) or as a compact file that is mapped, not read, when it is "
        "used. perplexity and query read either kind; query prints log10 p, tokens and unknown "
        "words of every line. check adds up the probabilities of all words behind contexts of the "
        "model, which should give 1.\n\n"
        "Words are what spaces separate (tokenise first), or the tokens of a model (--subwords). "
        "Empty lines count for nothing.",
    .example = "dragoman lm train corpus.tok.de.gz -o corpus.arpa.gz --prune 0,0,1\n"
               "dragoman lm convert corpus.arpa.gz -o corpus.lm --bits 8\n"
               "dragoman lm perplexity corpus.lm < test.tok.de",
    .options = options,
    .run = run,
};
