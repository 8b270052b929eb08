// SPDX-License-Identifier: MIT
// `dragoman phrase`: phrase tables and phrase-based translation: extract, convert, translate.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "io/progress.h"
#include "translate/setup.h"

enum { BATCH = 512 }; // lines decoded between two writes

typedef struct phrase_options {
    const char *output, *input, *reordering, *write_reordering, *subwords, *temp, *filter;
    const char *weights, *system, *tokenize, *detokenize, *nbest_file, *lattice;
    int max_length, max_sentence, prune, limit, bits;
    int pops, stack, jump, table_limit, nbest, distinct, alignment, uniform, threads;
    int stats, quiet;
    float lattice_beam;
    int64_t memory;
} phrase_options;

#define AT(field) offsetof(phrase_options, field)

static const option options[] = {
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write to FILE: a table is Moses' text if the name ends in .gz or .txt, else compact; "
     "translate: default standard output",
     NULL, NULL},
    {"reordering", 'r', OPTION_TEXT, "FILE", AT(reordering), 0, 0, NULL,
     "convert, translate: reordering table that goes with a phrase table of text", NULL, NULL},
    {"write-reordering", 0, OPTION_TEXT, "FILE", AT(write_reordering), 0, 0, NULL,
     "extract, convert: write the reordering table beside a phrase table of text", NULL, NULL},
    {"subwords", 'm', OPTION_TEXT, "MODEL", AT(subwords), 0, 0, NULL,
     "extract, translate: the words are the tokens of this model file instead of what spaces "
     "separate",
     "model-file", NULL},
    {"max-length", 'l', OPTION_COUNT, "N", AT(max_length), 1, DGM_PHRASE_WORDS_MAX, NULL,
     "extract: longest phrase (default 5)", NULL, NULL},
    {"max-sentence", 0, OPTION_COUNT | OPTION_SELDOM, "N", AT(max_sentence), 1, 65535, NULL,
     "extract: leave out pairs with more words on a side (default 100)", NULL, NULL},
    {"prune", 0, OPTION_COUNT, "K", AT(prune), 0, 1 << 30, NULL,
     "extract: leave out phrase pairs seen K times or less, but no translation of a single word "
     "(default 0)",
     NULL, NULL},
    {"limit", 0, OPTION_COUNT, "N", AT(limit), 0, 1 << 30, NULL,
     "extract: translations kept per source phrase, the most frequent ones; 0: all (default 50)",
     NULL, NULL},
    {"filter", 0, OPTION_TEXT, "TEXT", AT(filter), 0, 0, NULL,
     "extract: keep only source phrases that occur in TEXT", NULL, NULL},
    {"memory", 'S', OPTION_SIZE, "SIZE", AT(memory), 1 << 20, 1e15, NULL,
     "extract: memory for sorting beside words and phrases, e.g. 256M (no unit: MiB); what does not fit goes to "
     "disk and the result is the same (default 1G)",
     NULL, NULL},
    {"temp", 'T', OPTION_TEXT | OPTION_SELDOM, "FOLDER", AT(temp), 0, 0, NULL,
     "extract: where that goes (default: $TMPDIR, else /tmp)", NULL, NULL},
    {"bits", 0, OPTION_COUNT | OPTION_SELDOM, "{0,8,16}", AT(bits), 0, 16, NULL,
     "extract, convert: bits of a number of a compact table; 0: keep the numbers "
     "(default 0)",
     NULL, NULL},
    {"input", 'i', OPTION_TEXT, "FILE", AT(input), 0, 0, NULL,
     "translate: read the text from FILE, also gzip (default: standard input)", NULL, NULL},
    {"weights", 'w', OPTION_TEXT, "FILE", AT(weights), 0, 0, NULL,
     "translate: weights file, e.g. of 'dragoman mert' (default: usual ones)", NULL, NULL},
    {"system", 0, OPTION_TEXT, "FILE", AT(system), 0, 0, NULL,
     "translate: the system described in FILE, lines of 'table = en-de.pt', 'lm = de.lm' and so on "
     "(docs/manual/PHRASES.md), instead of TABLE and LM; options win",
     NULL, NULL},
    {"uniform", 0, OPTION_FLAG | OPTION_SELDOM, NULL, AT(uniform), 0, 0, NULL,
     "translate: all weights are 1 where --weights says nothing", NULL, NULL},
    {"tokenize", 0, OPTION_TEXT, "LANG", AT(tokenize), 0, 0, NULL,
     "translate: read text of this language, not words between spaces", NULL, NULL},
    {"detokenize", 0, OPTION_TEXT, "LANG", AT(detokenize), 0, 0, NULL,
     "translate: write text of this language, not words between spaces", NULL, NULL},
    {"pops", 0, OPTION_COUNT, "N", AT(pops), 1, 10000000, NULL,
     "translate: hypotheses per stack taken from the cubes (default 400)", "cube-pruning-pop-limit",
     NULL},
    {"stack", 's', OPTION_COUNT, "N", AT(stack), 1, 10000000, NULL,
     "translate: of them kept (default 200)", NULL, NULL},
    {"distortion-limit", 0, OPTION_COUNT, "N", AT(jump), 0, 56, NULL,
     "translate: longest jump between phrases; 0: none (default 6)", NULL, NULL},
    {"table-limit", 0, OPTION_COUNT | OPTION_SELDOM, "N", AT(table_limit), 1, 1000000, NULL,
     "translate: translations looked at per source phrase (default 20)", "ttable-limit", NULL},
    {"nbest", 'n', OPTION_COUNT, "N", AT(nbest), 1, 1000000, NULL,
     "translate: write the N best translations of a line in Moses' format: NUMBER ||| TEXT ||| "
     "FEATURES ||| SCORE",
     "n-best", NULL},
    {"nbest-file", 0, OPTION_TEXT, "FILE", AT(nbest_file), 0, 0, NULL,
     "translate: write that to FILE and the best translation to the output", NULL, NULL},
    {"distinct", 0, OPTION_FLAG, NULL, AT(distinct), 0, 0, NULL,
     "translate: no two of the N best with the same words", NULL, NULL},
    {"alignment", 0, OPTION_FLAG, NULL, AT(alignment), 0, 0, NULL,
     "translate: the words' links as a last column of the N best", NULL, NULL},
    {"lattice", 0, OPTION_TEXT, "FILE", AT(lattice), 0, 0, NULL,
     "translate: write the search graph of every line to FILE, also gzip", NULL, NULL},
    {"lattice-beam", 0, OPTION_REAL | OPTION_SELDOM, "X", AT(lattice_beam), 0, 1e9, NULL,
     "translate: leave out what is further behind the best path than X times the sum of all "
     "weights (default 0.5)",
     NULL, NULL},
    {"threads", 0, OPTION_COUNT, "{N,all}", AT(threads), 0, 1024, "all",
     "translate: threads; all, or 0: one per core. The result does not depend on it (default 1)",
     "cpu-threads", NULL},
    {"stats", 0, OPTION_FLAG, NULL, AT(stats), 0, 0, NULL,
     "print counts, time and memory on standard error", NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no progress bar and no warnings",
     NULL, NULL},
    {0},
};

// ---- tables -----------------------------------------------------------------------------------

static void print_extracted(const dgm_phrase_report *r, double start)
{
    fprintf(stderr, "lines %llu, pairs %llu, empty %llu, too long %llu, tokens %llu and %llu\n",
            (unsigned long long)r->lines, (unsigned long long)r->pairs,
            (unsigned long long)r->empty, (unsigned long long)r->too_long,
            (unsigned long long)r->tokens[0], (unsigned long long)r->tokens[1]);
    fprintf(stderr,
            "phrase pairs extracted %llu, distinct %llu, kept %llu; phrases %llu and %llu\n",
            (unsigned long long)r->extracted, (unsigned long long)r->distinct,
            (unsigned long long)r->kept, (unsigned long long)r->phrases[0],
            (unsigned long long)r->phrases[1]);
    fprintf(stderr, "temporary files %.0f MiB, %.1f s, peak memory %.0f MiB\n",
            (double)r->spilled / (1 << 20), seconds() - start, (double)peak_rss() / (1 << 20));
}

static int check_files(const command *self, const phrase_options *o, const words *rest)
{
    file_list files = {0};
    files_read_words(&files, rest, 1);
    files_read(&files, "--input", o->input);
    files_read(&files, "--weights", o->weights);
    files_read_system(&files, "--system", "a file of --system", o->system);
    files_read(&files, "--reordering", o->reordering);
    files_read(&files, "--subwords", o->subwords);
    files_read(&files, "--filter", o->filter);
    files_write(&files, "--output", o->output);
    files_write(&files, "--write-reordering", o->write_reordering);
    files_write(&files, "--nbest-file", o->nbest_file);
    files_write(&files, "--lattice", o->lattice);
    return files_check(self, &files);
}

static int extract(const command *self, const phrase_options *o, const words *rest)
{
    if (rest->count != 4 || !o->output)
        return fail_usage(self,
                          "phrase extract takes source, target and alignment files and requires "
                          "--output FILE");
    const int code = check_files(self, o, rest);
    if (code >= 0) return code;
    dgm_phrase_options p;
    dgm_phrase_default(&p);
    p.max_length = o->max_length;
    p.max_sentence = o->max_sentence;
    p.prune = (uint64_t)o->prune;
    p.limit = o->limit;
    p.memory = (uint64_t)o->memory;
    p.folder = o->temp;
    p.subwords = o->subwords;
    p.filter = o->filter;
    p.reordering = o->write_reordering;
    p.bits = o->bits;
    progress bar;
    p.progress = (dgm_progress){progress_tick, &bar};
    double start = seconds();
    dgm_phrase_report report = {.size = sizeof report};
    dgm_error error;
    progress_start(&bar, !o->quiet);
    dgm_status st = dgm_phrase_extract(rest->items[1], rest->items[2], rest->items[3], o->output,
                                       &p, &report, &error);
    progress_end(&bar);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    if (report.too_long && !o->quiet)
        warn("%llu of %llu pairs are longer than %d words and were left out",
             (unsigned long long)report.too_long, (unsigned long long)report.lines,
             o->max_sentence);
    if (o->stats) print_extracted(&report, start);
    return EXIT_FINE;
}

static int convert(const command *self, const phrase_options *o, const words *rest)
{
    dgm_error error;
    if (rest->count != 2 || !o->output)
        return fail_usage(self, "phrase convert takes one table and requires --output FILE");
    const int code = check_files(self, o, rest);
    if (code >= 0) return code;
    dgm_status st = dgm_phrase_convert(rest->items[1], o->reordering, o->output,
                                       o->write_reordering, o->bits, &error);
    return st == DGM_OK ? EXIT_FINE : fail(exit_code(st), "%s", error.text);
}

// ---- translate --------------------------------------------------------------------------------

typedef struct outputs {
    const phrase_options *o;
    line_writer *best, *list, *lattice; // each may be NULL
    uint64_t line;
} outputs;

static int put_result(void *cookie, const dgm_phrasal_result *r)
{
    outputs *x = cookie;
    if (x->best) {
        writer_put(x->best, r->items[0]->text.data, r->items[0]->text.size);
        writer_text(x->best, "\n");
    }
    for (size_t i = 0; x->list && i < r->count; i++) {
        const dgm_phrasal_item *t = r->items[i];
        writer_format(x->list, "%llu ||| ", (unsigned long long)x->line);
        writer_put(x->list, t->text.data, t->text.size);
        writer_text(x->list, " ||| ");
        writer_put(x->list, t->features.data, t->features.size);
        writer_format(x->list, " ||| %.9g", t->score);
        if (x->o->alignment) {
            writer_text(x->list, " ||| ");
            writer_put(x->list, t->links.data, t->links.size);
        }
        writer_text(x->list, "\n");
    }
    if (x->lattice) writer_put(x->lattice, r->lattice.data, r->lattice.size);
    x->line++;
    return (x->best && writer_failed(x->best)) || (x->list && writer_failed(x->list)) ||
           (x->lattice && writer_failed(x->lattice));
}

typedef struct batch {
    dgm_line lines[BATCH];
    size_t at[BATCH];
    char *bytes;
    size_t size, room, count;
} batch;

static void batch_add(batch *b, const char *line, size_t size)
{
    if (b->size + size > b->room) {
        b->room = (b->size + size) * 2 + 4096;
        b->bytes = need(realloc(b->bytes, b->room));
    }
    if (size) memcpy(b->bytes + b->size, line, size);
    b->at[b->count] = b->size;
    b->lines[b->count++].size = size;
    b->size += size;
}

static int decode_all(dgm_phrasal *p, line_reader *in, outputs *x, bool bar_wanted)
{
    batch *b = need(calloc(1, sizeof *b));
    dgm_error error;
    const char *line;
    size_t size;
    int code = EXIT_FINE;
    progress bar;
    progress_start(&bar, bar_wanted);
    for (bool more = true; more && code == EXIT_FINE;) {
        b->size = b->count = 0;
        while (b->count < BATCH && (more = reader_next(in, &line, &size))) batch_add(b, line, size);
        for (size_t i = 0; i < b->count; i++) b->lines[i].data = b->bytes + b->at[i];
        uint64_t first = x->line;
        dgm_status st = dgm_phrasal_translate(p, b->lines, b->count, first, put_result, x, &error);
        progress_show(&bar, x->line, reader_share(in));
        if (st == DGM_ERR_CANCELLED)
            code = EXIT_RUNTIME; // the writer has said why
        else if (st != DGM_OK)
            code =
                fail(exit_code(st), "after line %llu: %s", (unsigned long long)first, error.text);
    }
    progress_end(&bar);
    if (code == EXIT_FINE && reader_failed(in)) code = EXIT_RUNTIME;
    free(b->bytes);
    free(b);
    return code;
}

static void print_decoded(const dgm_phrasal *p, double loaded, double start)
{
    dgm_phrasal_stats s;
    dgm_phrasal_count(p, &s);
    double time = seconds() - loaded;
    fprintf(stderr,
            "lines %llu, words %llu, unknown %llu, %.1f s after %.1f s of loading, %.0f words a "
            "minute, peak memory %.0f MiB\n",
            (unsigned long long)s.lines, (unsigned long long)s.words, (unsigned long long)s.unknown,
            time, loaded - start, time > 0 ? (double)s.words / time * 60 : 0,
            (double)peak_rss() / (1 << 20));
    fprintf(stderr, "hypotheses %llu, scored %llu, recombined %llu, edges %llu\n",
            (unsigned long long)s.hypotheses, (unsigned long long)s.evaluated,
            (unsigned long long)s.recombined, (unsigned long long)s.edges);
}

// What the command line says, over what p has already.
static void set_options(const phrase_options *o, const words *rest, dgm_phrasal_options *p)
{
    if (!o->system) {
        p->table = rest->items[1];
        p->lm = rest->items[2];
    }
    if (o->reordering) p->reordering = o->reordering;
    if (o->weights) p->weights = o->weights;
    if (o->uniform) p->uniform = 1;
    if (o->subwords) p->subwords = o->subwords;
    if (o->tokenize) p->tokenize = o->tokenize;
    if (o->detokenize) p->detokenize = o->detokenize;
    if (o->pops) p->pops = o->pops;
    if (o->stack) p->stack = o->stack;
    if (o->jump >= 0) p->jump = o->jump;
    if (o->table_limit) p->table_limit = o->table_limit;
    if (o->lattice_beam >= 0) p->lattice_beam = (double)o->lattice_beam;
    p->nbest = o->nbest ? o->nbest : 1;
    p->distinct = o->distinct;
    p->alignment = o->alignment;
    p->lattice = o->lattice != NULL;
    p->threads = o->threads;
}

static dgm_status open_system(const phrase_options *o, const words *rest, dgm_phrasal **system,
                              dgm_error *error)
{
    dgm_phrasal_options p;
    dgm_phrasal_file *file = NULL;
    dgm_phrasal_default(&p);
    dgm_status st = o->system ? dgm_phrasal_file_open(&file, o->system, error) : DGM_OK;
    if (file) dgm_phrasal_file_options(file, &p);
    set_options(o, rest, &p);
    if (st == DGM_OK) st = dgm_phrasal_open(system, &p, error);
    dgm_phrasal_file_close(&file);
    return st;
}

static int translate(const command *self, const phrase_options *o, const words *rest)
{
    if (rest->count != (o->system ? 1 : 3))
        return fail_usage(self, "phrase translate takes a phrase table and a language model, or "
                                "--system FILE");
    int code = check_files(self, o, rest);
    if (code >= 0) return code;
    if (!o->nbest && (o->nbest_file || o->distinct || o->alignment))
        return fail_usage(self, "%s requires --nbest N",
                          o->nbest_file ? "--nbest-file"
                          : o->distinct ? "--distinct"
                                        : "--alignment");
    double start = seconds();
    dgm_phrasal *system = NULL;
    dgm_error error;
    dgm_status st = open_system(o, rest, &system, &error);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    double loaded = seconds();
    outputs x = {.o = o};
    bool list_only = o->nbest && !o->nbest_file;
    line_reader *in = reader_open(o->input);
    line_writer *out = in ? writer_open(o->output) : NULL;
    bool good = out != NULL;
    *(list_only ? &x.list : &x.best) = out;
    if (good && o->nbest_file) good = (x.list = writer_open(o->nbest_file)) != NULL;
    if (good && o->lattice) good = (x.lattice = writer_open(o->lattice)) != NULL;
    code = good ? decode_all(system, in, &x, !o->quiet && !shown_at_once(o->output)) : EXIT_RUNTIME;
    if (in) reader_close(in);
    line_writer *all[] = {x.best, x.list, x.lattice};
    for (int i = 0; i < 3; i++)
        if (all[i] && !writer_close(all[i])) code = EXIT_RUNTIME;
    if (o->stats && code == EXIT_FINE) print_decoded(system, loaded, start);
    dgm_phrasal_close(&system);
    return code;
}

static int run(const command *self, int argc, char **argv)
{
    phrase_options o = {.max_length = 5,
                        .max_sentence = 100,
                        .limit = 50,
                        .memory = (int64_t)1 << 30,
                        .jump = -1, // not given, as 0 of the others
                        .lattice_beam = -1,
                        .threads = 1};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    const char *what = rest.count ? rest.items[0] : "";
    if (strcmp(what, "extract") == 0) return extract(self, &o, &rest);
    if (strcmp(what, "convert") == 0) return convert(self, &o, &rest);
    if (strcmp(what, "translate") == 0) return translate(self, &o, &rest);
    return fail_usage(self, "phrase takes extract, convert or translate, not '%s'", what);
}

const command command_phrase = {
    .name = "phrase",
    .summary = "make phrase tables and translate with them",
    .usage = "extract SOURCE TARGET LINKS | convert TABLE | translate TABLE LM [options]",
    .description =
        "extract takes the phrase pairs out of an aligned text ('dragoman align') and writes a "
        "table; convert turns one kind of table into the other; translate is a phrase-based "
        "decoder.\n\n"
        "extract scores pairs in both directions, by phrase and by word, with orientations. A table "
        "is Moses' text, or compact, to be mapped.\n\n"
        "The decoder has stacks filled by cube pruning, future costs, a "
        "limit on jumps, lexicalised reordering, an n-gram language model ('dragoman lm'). It "
        "writes the best translations, lists with the scores of all features, and lattices. "
        "'dragoman mert' tunes its weights.\n\n"
        "Words are what spaces separate (tokenise first, or --tokenize), or the tokens of a model "
        "(--subwords).",
    .example = "dragoman phrase extract corpus.tok.en corpus.tok.de corpus.align -o en-de.pt\n"
               "dragoman phrase translate en-de.pt de.lm --detokenize de < test.tok.en\n"
               "dragoman phrase translate en-de.pt de.lm -w tuned.weights --nbest 200 --distinct "
               "-i test.tok.en -o test.nbest.gz",
    .options = options,
    .run = run,
};
