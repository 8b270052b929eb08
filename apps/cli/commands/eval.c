// SPDX-License-Identifier: MIT
// `dragoman eval`: BLEU and chrF with sacreBLEU's numbers and signatures, and paired bootstrap
// between systems.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/lineio.h"
#include "translate/setup.h"

enum { FILES_MAX = 64, METRICS_MAX = 8 };

typedef struct eval_options {
    const char *encoding;
    option_list metrics, compare;
    const char *tokenize, *smooth;
    int lowercase, json, confidence, samples, seed, sentence, score_only;
    int max_order, char_order, word_order;
    float smooth_value, beta;
} eval_options;

#define AT(field) offsetof(eval_options, field)

static const option options[] = {
    {"metric", 'm', OPTION_LIST, "{bleu,chrf,chrf++}", AT(metrics), 0, 0, NULL,
     "what to print (default: bleu and chrf); may be given several times", "metrics", NULL},
    {"compare", 'c', OPTION_LIST, "FILE", AT(compare), 0, 0, NULL,
     "another system's translations, compared with HYP by paired bootstrap resampling; may be "
     "given several times",
     NULL, NULL},
    {"tokenize", 0, OPTION_CHOICE, "NAME", AT(tokenize), 0, 0, "13a|intl|char|zh|none",
     "tokeniser of BLEU (default 13a)", NULL, NULL},
    {"lowercase", 0, OPTION_FLAG, NULL, AT(lowercase), 0, 0, NULL, "ignore case", NULL, NULL},
    {"smooth", 0, OPTION_CHOICE, "NAME", AT(smooth), 0, 0, "exp|floor|add-k|none",
     "smoothing of BLEU (default exp)", "smooth-method", NULL},
    {"smooth-value", 0, OPTION_REAL, "X", AT(smooth_value), 0, 1000, NULL,
     "parameter of floor (default 0.1) and add-k (default 1)", NULL, NULL},
    {"max-order", 0, OPTION_COUNT, "N", AT(max_order), 1, 8, NULL,
     "longest n-gram of BLEU (default 4)", NULL, NULL},
    {"char-order", 0, OPTION_COUNT, "N", AT(char_order), 1, 12, NULL,
     "longest character n-gram of chrF (default 6)", "chrf-char-order", NULL},
    {"word-order", 0, OPTION_COUNT, "N", AT(word_order), 0, 4, NULL,
     "longest word n-gram of chrF (default 0; 2 makes it chrF++)", "chrf-word-order", NULL},
    {"beta", 0, OPTION_REAL, "X", AT(beta), 0.001, 100, NULL,
     "weight of recall in chrF (default 2)", "chrf-beta", NULL},
    {"confidence", 0, OPTION_FLAG, NULL, AT(confidence), 0, 0, NULL,
     "print the 95 % interval of the score by bootstrap resampling", NULL, NULL},
    {"samples", 0, OPTION_COUNT, "N", AT(samples), 1, 1000000, NULL,
     "bootstrap samples (default 1000)", "paired-bs-n", NULL},
    {"seed", 0, OPTION_COUNT, "N", AT(seed), 0, 2147483647, NULL,
     "seed of the resampling (default 12345)", NULL, NULL},
    {"sentence", 0, OPTION_FLAG, NULL, AT(sentence), 0, 0, NULL,
     "print the score of every line before the score of the whole; --json: in it, as \"sentences\"",
     "sentence-level", NULL},
    {"score-only", 'b', OPTION_FLAG, NULL, AT(score_only), 0, 0, NULL, "print the number alone",
     NULL, NULL},
    {"json", 0, OPTION_FLAG, NULL, AT(json), 0, 0, NULL, "print one JSON object per score", NULL,
     NULL},
    ENCODING_OPTION(eval_options, 0),
    {0},
};

typedef struct corpus {
    text_file files[FILES_MAX];
    const dgm_line *lines[FILES_MAX]; // of the files
    const char *names[FILES_MAX];
    int count;
} corpus;

static bool add_file(corpus *c, const char *path)
{
    text_file *f = &c->files[c->count];
    if (!text_file_read(f, path)) return false;
    c->names[c->count] = path;
    c->lines[c->count++] = f->lines;
    return true;
}

static void free_corpus(corpus *c)
{
    for (int i = 0; i < c->count; i++) text_file_free(&c->files[i]);
}

static void print_bleu(line_writer *w, const dgm_eval_score *s, int order)
{
    writer_text(w, " ");
    for (int i = 0; i < order; i++) writer_format(w, "%s%.1f", i ? "/" : "", s->precisions[i]);
    writer_format(w, " (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)", s->brevity,
                  s->ref_length ? (double)s->hyp_length / (double)s->ref_length : 0.0,
                  (long long)s->hyp_length, (long long)s->ref_length);
}

// sentences: a score for each line, or NULL; in JSON a part of the object, else lines before the score.
static void print_sentences(line_writer *w, bool json, const double *sentences, size_t lines)
{
    if (json) writer_text(w, ",\"sentences\":[");
    for (size_t i = 0; i < lines; i++)
        writer_format(w, json ? "%s%.4f" : "%s%.2f\n", json && i ? "," : "", sentences[i]);
    if (json) writer_text(w, "]");
}

static void print_score(line_writer *w, const eval_options *o, const dgm_eval_score *s, bool bleu,
                        const char *name, const char *signature, const char *system, bool first,
                        const double *sentences, size_t lines)
{
    if (sentences && !o->json) print_sentences(w, false, sentences, lines);
    if (o->json) {
        writer_text(w, "{\"system\":");
        writer_json(w, system, strlen(system));
        writer_format(w, ",\"name\":\"%s\",\"score\":%.4f,\"signature\":\"%s\"", name, s->score,
                      signature);
        if (o->confidence || o->compare.count)
            writer_format(w, ",\"mean\":%.4f,\"confidence\":%.4f", s->mean, s->half);
        if (!first)
            writer_format(w, ",\"p\":%.4f,\"wins\":%.4f,\"difference\":[%.4f,%.4f,%.4f]", s->p, s->wins, s->difference,
                          s->difference_low, s->difference_high);
        if (bleu)
            writer_format(w, ",\"brevity\":%.4f,\"hyp_length\":%lld,\"ref_length\":%lld",
                          s->brevity, (long long)s->hyp_length, (long long)s->ref_length);
        if (sentences) print_sentences(w, true, sentences, lines);
        writer_text(w, "}\n");
        return;
    }
    if (o->score_only) {
        writer_format(w, "%.2f\n", s->score);
        return;
    }
    if (o->compare.count) {
        writer_text(w, system);
        writer_text(w, ": ");
    }
    writer_format(w, "%s|%s = %.2f", name, signature, s->score);
    if (bleu) print_bleu(w, s, o->max_order);
    if (o->confidence || o->compare.count) writer_format(w, " [%.2f +- %.2f]", s->mean, s->half);
    if (!first) writer_format(w, " p = %.4f, wins %.1f %%", s->p, 100 * s->wins);
    writer_text(w, "\n");
}

static int evaluate(const eval_options *o, const char *metric, const corpus *c, int systems,
                    line_writer *w)
{
    dgm_eval_options e;
    dgm_eval_default(&e);
    e.metric = metric;
    e.tokenize = o->tokenize;
    e.smooth = o->smooth;
    e.smooth_value = (double)o->smooth_value;
    e.lowercase = o->lowercase;
    e.max_order = o->max_order;
    e.char_order = o->char_order;
    e.word_order = o->word_order;
    e.beta = (double)o->beta;
    e.samples = o->confidence || o->compare.count ? o->samples : 0;
    e.seed = (uint64_t)o->seed;
    size_t lines = c->files[0].count, refs = (size_t)(c->count - systems);
    dgm_eval_score *scores = need(calloc((size_t)systems, sizeof *scores));
    for (int i = 0; i < systems; i++) scores[i].size = sizeof scores[i];
    double *sentences =
        o->sentence ? need(calloc(lines * (size_t)systems + 1, sizeof *sentences)) : NULL;
    const dgm_line *const *all = c->lines;
    char name[64], signature[256];
    dgm_error error;
    dgm_status st =
        dgm_eval_describe(&e, refs, name, sizeof name, signature, sizeof signature, &error);
    if (st == DGM_OK)
        st = dgm_evaluate(&e, all, (size_t)systems, all + systems, refs, lines, scores, sentences,
                          &error);
    int code = st == DGM_OK ? EXIT_FINE : fail(exit_code(st), "%s", error.text);
    bool bleu = strcmp(metric, "bleu") == 0;
    for (int s = 0; st == DGM_OK && s < systems; s++)
        print_score(w, o, &scores[s], bleu, name, signature, c->names[s], s == 0,
                    sentences ? sentences + (size_t)s * lines : NULL, lines);
    free(scores);
    free(sentences);
    return code;
}

static int run_files(const eval_options *o, const words *rest, corpus *c)
{
    int systems = 1 + o->compare.count;
    bool read = add_file(c, rest->items[0]);
    for (int i = 0; read && i < o->compare.count; i++) read = add_file(c, o->compare.items[i]);
    for (int i = 1; read && i < rest->count; i++) read = add_file(c, rest->items[i]);
    if (!read) return EXIT_RUNTIME;
    for (int i = 1; i < c->count; i++)
        if (c->files[i].count != c->files[0].count)
            return fail(EXIT_RUNTIME, "'%s' has %zu lines, '%s' has %zu", c->names[0],
                        c->files[0].count, c->names[i], c->files[i].count);
    static const char *const usual[] = {"bleu", "chrf"};
    const char *const *metrics = o->metrics.count ? o->metrics.items : usual;
    int count = o->metrics.count ? o->metrics.count : 2;
    line_writer *w = writer_open(NULL);
    int code = EXIT_FINE;
    for (int i = 0; i < count && code == EXIT_FINE; i++)
        code = evaluate(o, metrics[i], c, systems, w);
    return writer_close(w) ? code : EXIT_RUNTIME;
}

static int run(const command *self, int argc, char **argv)
{
    eval_options o = {.samples = 1000,
                      .seed = 12345,
                      .max_order = 4,
                      .char_order = 6,
                      .smooth_value = -1,
                      .beta = 2};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    reader_encoding(o.encoding);
    if (rest.count < 2)
        return fail_usage(self, "eval takes a file of translations and at least one reference");
    if (rest.count + o.compare.count > FILES_MAX)
        return fail_usage(self, "eval takes at most %d files", FILES_MAX);
    corpus *c = need(calloc(1, sizeof *c));
    code = run_files(&o, &rest, c);
    free_corpus(c);
    free(c);
    return code;
}

const command command_eval = {
    .name = "eval",
    .summary = "score translations against references: BLEU, chrF",
    .usage = "HYP REF [REF...] [options]",
    .description =
        "Compares a file of translations with one or more reference files, line by line, and "
        "prints BLEU and chrF with the numbers and signatures of sacreBLEU. With --compare the "
        "other systems are tested against HYP: p is the probability of so large a difference "
        "if there were none, wins the share of samples in which the other system is better.\n\n"
        "A byte order mark before the first line of a file is not part of its text. sacreBLEU keeps it, "
        "as a letter of the first word: its numbers of such a file differ by that word.",
    .example = "dragoman eval output.de reference.de\n"
               "dragoman eval baseline.de reference.de --compare new.de --metric bleu",
    .options = options,
    .run = run,
};
