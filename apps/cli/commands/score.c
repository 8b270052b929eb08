// SPDX-License-Identifier: MIT
// `dragoman score`: what a model thinks of given translations (forced decoding).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "translate/lattices.h"
#include "io/lineio.h"
#include "io/progress.h"
#include "translate/setup.h"

enum { WINDOW = 4096 };

typedef struct score_options {
    const char *encoding;
    engine_options engine;
    const char *lattice;
    int word_scores, normalised, summary, json, quiet, nbest;
    float lattice_weight;
} score_options;

#define AT(field) offsetof(score_options, field)

static const option options[] = {
    MODEL_OPTIONS(score_options, engine),
    {"normalised", 'n', OPTION_FLAG, NULL, AT(normalised), 0, 0, NULL,
     "print scores normalised by length, as translate ranks by, instead of sums", "normalized",
     NULL},
    {"word-scores", 0, OPTION_FLAG, NULL, AT(word_scores), 0, 0, NULL,
     "print the log-probability of every token and of the end symbol", NULL, NULL},
    {"summary", 0, OPTION_FLAG, NULL, AT(summary), 0, 0, NULL,
     "print only the sum over all lines, and the cross-entropy per token", NULL, NULL},
    {"json", 0, OPTION_FLAG, NULL, AT(json), 0, 0, NULL, "print one JSON object per line; lines counted from 0", NULL,
     NULL},
    {"lattice", 0, OPTION_TEXT, "FILE", AT(lattice), 0, 0, NULL,
     "score the best paths of lattices, one for each line of SOURCE, instead of TARGET, and print "
     "them best first: LINE ||| text ||| Model= sum Lattice= score ||| score, lines counted from 0",
     NULL, NULL},
    {"nbest", 0, OPTION_COUNT, "N", AT(nbest), 1, 100000, NULL,
     "--lattice: paths of each, by the lattice's own scores (default 100)", "n-best", NULL},
    {"lattice-weight", 0, OPTION_REAL, "X", AT(lattice_weight), -1e6, 1e6, NULL,
     "--lattice: add X times a path's own score to the model's (default 0)", NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no progress bar", NULL, NULL},
    ENCODING_OPTION(score_options, 0),
    {0},
};

typedef struct totals {
    double sum;
    uint64_t tokens, lines, failed;
} totals;

static void put_json(line_writer *w, const dgm_pair_score *p, uint64_t number)
{
    writer_format(w, "{\"line\":%llu,", (unsigned long long)number);
    if (p->status != DGM_OK) {
        writer_text(w, "\"error\":");
        writer_json(w, p->message, strlen(p->message));
        writer_text(w, "}\n");
        return;
    }
    writer_text(w, "\"sum\":");
    writer_real(w, (double)p->sum);
    writer_text(w, ",\"score\":");
    writer_real(w, (double)p->score);
    writer_text(w, ",\"tokens\":[");
    for (size_t i = 0; i < p->token_count; i++) {
        if (i) writer_put(w, ",", 1);
        writer_json(w, p->tokens[i], strlen(p->tokens[i]));
    }
    writer_text(w, "],\"token_scores\":[");
    for (size_t i = 0; i < p->token_count; i++) {
        if (i) writer_put(w, ",", 1);
        writer_real(w, (double)p->token_scores[i]);
    }
    writer_text(w, "]}\n");
}

static void put_score(line_writer *w, const score_options *o, const dgm_pair_score *p,
                      uint64_t number)
{
    if (o->json) {
        put_json(w, p, number);
        return;
    }
    if (p->status == DGM_OK) {
        writer_format(w, "%.4f", (double)(o->normalised ? p->score : p->sum));
        if (o->word_scores) writer_text(w, " ||| WordScores=");
        for (size_t i = 0; o->word_scores && i < p->token_count; i++)
            writer_format(w, " %.4f", (double)p->token_scores[i]);
    }
    writer_text(w, "\n");
}

static int score_files(const score_options *o, dgm_translator *t, const text_file *from,
                       const text_file *to, line_writer *w, totals *sum)
{
    progress bar;
    progress_start(&bar, !o->quiet && !shown_at_once(NULL));
    dgm_pair *pairs = need(calloc(WINDOW, sizeof *pairs));
    int code = EXIT_FINE;
    for (size_t first = 0; first < from->count && code == EXIT_FINE; first += WINDOW) {
        size_t n = from->count - first < WINDOW ? from->count - first : WINDOW;
        for (size_t i = 0; i < n; i++)
            pairs[i] = (dgm_pair){from->lines[first + i], to->lines[first + i]};
        dgm_pair_scores *scores = NULL;
        dgm_error error;
        dgm_status st = dgm_score_pairs(t, pairs, n, &scores, &error);
        if (st != DGM_OK) code = fail(exit_code(st), "%s", error.text);
        for (size_t i = 0; scores && i < n; i++) {
            const dgm_pair_score *p = scores->items[i];
            unsigned long long number = first + i + 1;
            if (p->status != DGM_OK) {
                progress_end(&bar);
                fail(EXIT_RUNTIME, "line %llu: %s", number, p->message);
                sum->failed++;
            } else {
                sum->sum += (double)p->sum;
                sum->tokens += p->token_count;
                sum->lines++;
            }
            if (!o->summary) put_score(w, o, p, first + i);
        }
        dgm_pair_scores_free(&scores);
        progress_show(&bar, first + n, (double)(first + n) / (double)from->count);
    }
    progress_end(&bar);
    free(pairs);
    return code;
}

// ---- lattices ---------------------------------------------------------------------------------

static void put_paths(line_writer *w, const dgm_scored_line *l, uint64_t number)
{
    for (size_t i = 0; i < l->count; i++) {
        const dgm_scored_path *p = l->paths[i];
        writer_format(w, "%llu ||| ", (unsigned long long)number);
        writer_text(w, p->text);
        writer_format(w, " ||| Model= %.4f Lattice= %.6g ||| %.4f\n", (double)p->sum, p->lattice,
                      (double)p->score);
    }
}

// The lines first .. first + count - 1 with the lattices of the window.
static int score_window(const score_options *o, dgm_translator *t, const text_file *from,
                        lattice_window *window, dgm_input *inputs, size_t first, line_writer *w,
                        totals *sum)
{
    enum { ROWS = 64 };
    dgm_lattice_text lattices[ROWS];
    const size_t count = window->count;
    dgm_scored_lines *lines = NULL;
    dgm_error error;
    lattices_attach(window, inputs, count);
    for (size_t i = 0; i < count; i++) lattices[i] = *inputs[i].lattice;
    const dgm_status st = dgm_score_lattices(t, from->lines + first, lattices, count,
                                             (size_t)o->nbest, o->lattice_weight, &lines, &error);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    for (size_t i = 0; i < count; i++) {
        const dgm_scored_line *l = lines->items[i];
        if (l->status != DGM_OK) {
            fail(EXIT_RUNTIME, "line %llu: %s", (unsigned long long)(first + i + 1), l->message);
            sum->failed++;
        }
        put_paths(w, l, first + i);
    }
    dgm_scored_lines_free(&lines);
    lattices_skip(window);
    return EXIT_FINE;
}

static int score_lattices(const score_options *o, dgm_translator *t, const text_file *from,
                          line_writer *w, totals *sum)
{
    enum { ROWS = 64 };
    lattice_window window = {.file = lattices_open(o->lattice)};
    dgm_input inputs[ROWS];
    uint32_t unused = 0;
    int code = window.file ? EXIT_FINE : EXIT_RUNTIME;
    progress bar;
    progress_start(&bar, !o->quiet && !shown_at_once(NULL));
    for (size_t i = 0; code == EXIT_FINE && i < from->count && !window.ended;) {
        const size_t first = i;
        while (code == EXIT_FINE && i < from->count && i - first < ROWS && !window.ended) {
            if (!lattices_add(&window, &unused)) code = EXIT_RUNTIME;
            if (!window.ended) i++;
        }
        if (window.ended) window.count--; // the line that has none
        memset(inputs, 0, sizeof inputs);
        if (code == EXIT_FINE && window.count)
            code = score_window(o, t, from, &window, inputs, first, w, sum);
        progress_show(&bar, i, (double)i / (double)from->count);
    }
    progress_end(&bar);
    if (code == EXIT_FINE && !lattices_complete(&window, o->quiet)) code = EXIT_RUNTIME;
    lattices_free(&window);
    return code;
}

static int check_options(const command *self, const score_options *o, const words *rest)
{
    if (!o->lattice) {
        if (rest->count != 2)
            return fail_usage(self, "score takes a source file and a target file");
        if (o->nbest || o->lattice_weight != 0)
            return fail_usage(self, "--%s requires --lattice FILE",
                              o->nbest ? "nbest" : "lattice-weight");
        if (o->json && o->summary)
            return fail_usage(self, "--json and --summary cannot be combined");
        return -1;
    }
    if (rest->count != 1) return fail_usage(self, "score --lattice takes one file, the source");
    if (o->word_scores || o->normalised || o->summary || o->json)
        return fail_usage(self, "--lattice prints n-best lists; it cannot be combined with --%s",
                          o->word_scores  ? "word-scores"
                          : o->normalised ? "normalised"
                          : o->summary    ? "summary"
                                          : "json");
    return -1;
}

static int run(const command *self, int argc, char **argv)
{
    score_options o = {0};
    words rest;
    engine_options_default(&o.engine);
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    reader_encoding(o.encoding);
    code = check_options(self, &o, &rest);
    if (code >= 0) return code;
    if (o.nbest == 0) o.nbest = 100;
    text_file from = {0}, to = {0};
    dgm_translator *t = NULL;
    totals sum = {0};
    code = EXIT_RUNTIME;
    if (text_file_read(&from, rest.items[0]) && (o.lattice || text_file_read(&to, rest.items[1]))) {
        if (!o.lattice && from.count != to.count)
            fail(EXIT_RUNTIME, "'%s' has %zu lines, '%s' has %zu", rest.items[0], from.count,
                 rest.items[1], to.count);
        else
            code = engine_open(&o.engine, &t);
    }
    if (code < 0) {
        line_writer *w = writer_open(NULL);
        code = o.lattice ? score_lattices(&o, t, &from, w, &sum)
                         : score_files(&o, t, &from, &to, w, &sum);
        if (o.summary && code == EXIT_FINE) {
            double h = sum.tokens ? -sum.sum / (double)sum.tokens : 0;
            writer_format(w, "sum %.4f, %llu lines, %llu tokens, cross-entropy %.4f\n", sum.sum,
                          (unsigned long long)sum.lines, (unsigned long long)sum.tokens, h);
        }
        if (code == EXIT_FINE && sum.failed) code = EXIT_LINES;
        if (!writer_close(w)) code = EXIT_RUNTIME;
    }
    dgm_close(&t);
    text_file_free(&from);
    text_file_free(&to);
    return code;
}

const command command_score = {
    .name = "score",
    .summary = "score given translations with a model",
    .usage = "SOURCE TARGET [-m MODEL]... [options], or SOURCE --lattice FILE [options]",
    .description = "Prints the log-probability that the model gives to each line of TARGET as the "
                   "translation of the same line of SOURCE, end symbol included. A line that "
                   "cannot be scored becomes an empty line and a message on standard error, and "
                   "the exit status is 3.",
    .example = "dragoman score source.en target.de\n"
               "dragoman score source.en target.de --summary --threads 2\n"
               "dragoman score source.en --lattice phrases.lat --nbest 200 > rescored.nbest",
    .options = options,
    .settings = SETTINGS_SCORING,
    .settings_at = AT(engine.set),
    .run = run,
};
