// SPDX-License-Identifier: MIT
// `dragoman mert`: tunes the weights of the phrase-based decoder.
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "translate/setup.h"

typedef struct mert_options {
    const char *output, *input, *lists, *reordering, *subwords, *weights, *detokenize;
    option_list references;
    int pops, stack, jump, table_limit, nbest, uniform;
    int rounds, restarts, directions, seed, threads, quiet, lattice;
    float lattice_beam, radius;
} mert_options;

#define AT(field) offsetof(mert_options, field)

static const option options[] = {
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "the weights file to write, after every round that was better than those before", NULL, NULL},
    {"input", 'i', OPTION_TEXT, "FILE", AT(input), 0, 0, NULL,
     "the development set's source, as 'dragoman phrase translate' wants it", NULL, NULL},
    {"reference", 'R', OPTION_LIST, "FILE", AT(references), 0, 0, NULL,
     "its reference translation, plain text; may be given several times", NULL, NULL},
    {"lists", 0, OPTION_TEXT, "FILE", AT(lists), 0, 0, NULL,
     "tune on these n-best lists (Moses' format, with features) instead of decoding", NULL, NULL},
    {"lattice", 0, OPTION_FLAG, NULL, AT(lattice), 0, 0, NULL,
     "tune on the decoder's search graphs instead of lists: all of their paths count", NULL, NULL},
    {"lattice-beam", 0, OPTION_REAL, "X", AT(lattice_beam), 0, 1e9, NULL,
     "leave out of them what is further behind the best path than this times the sum of the "
     "weights (default 0.2)",
     NULL, NULL},
    {"weights", 'w', OPTION_TEXT, "FILE", AT(weights), 0, 0, NULL,
     "weights to begin with (default: usual ones)", NULL, NULL},
    {"uniform", 0, OPTION_FLAG, NULL, AT(uniform), 0, 0, NULL, "begin with 1 for all weights", NULL,
     NULL},
    {"reordering", 'r', OPTION_TEXT, "FILE", AT(reordering), 0, 0, NULL,
     "reordering table that goes with a phrase table of text", NULL, NULL},
    {"subwords", 'm', OPTION_TEXT, "MODEL", AT(subwords), 0, 0, NULL,
     "table and language model are over the tokens of this model file", "model-file", NULL},
    {"detokenize", 0, OPTION_TEXT, "LANG", AT(detokenize), 0, 0, NULL,
     "make text of this language of the translations before they are compared", NULL, NULL},
    {"nbest", 'n', OPTION_COUNT, "N", AT(nbest), 1, 100000, NULL,
     "translations per line and round (default 100)", "n-best", NULL},
    {"rounds", 0, OPTION_COUNT, "N", AT(rounds), 1, 1000, NULL,
     "rounds of decoding and tuning, at most; less when no list grows (default 8)", NULL, NULL},
    {"restarts", 0, OPTION_COUNT, "N", AT(restarts), 0, 10000, NULL,
     "random starting points of every round, beside the last weights (default 3)", NULL, NULL},
    {"radius", 0, OPTION_REAL, "X", AT(radius), 0, 2, NULL,
     "how far new weights may be from the best ones decoded, as the sum of differences where all "
     "absolute weights add up to 1; twice as far after a better round, half after a worse one; 0: "
     "anywhere (default 0.1 with --lattice, else 0)",
     NULL, NULL},
    {"directions", 0, OPTION_COUNT, "N", AT(directions), 0, 10000, NULL,
     "random directions beside the axes (default 10)", NULL, NULL},
    {"seed", 0, OPTION_COUNT, "N", AT(seed), 0, 2147483647, NULL,
     "of these; the same one gives the same weights (default 1)", NULL, NULL},
    {"pops", 0, OPTION_COUNT, "N", AT(pops), 1, 10000000, NULL,
     "hypotheses per stack taken from the cubes (default 400)", "cube-pruning-pop-limit", NULL},
    {"stack", 's', OPTION_COUNT, "N", AT(stack), 1, 10000000, NULL, "of them kept (default 200)",
     NULL, NULL},
    {"distortion-limit", 0, OPTION_COUNT, "N", AT(jump), 0, 56, NULL,
     "longest jump between phrases; 0: none (default 6)", NULL, NULL},
    {"table-limit", 0, OPTION_COUNT, "N", AT(table_limit), 1, 1000000, NULL,
     "translations looked at per source phrase (default 20)", "ttable-limit", NULL},
    {"threads", 0, OPTION_COUNT, "{N,all}", AT(threads), 0, 1024, "all",
     "threads; all, or 0: one per core. The result does not depend on it (default 1)", "cpu-threads", NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no line for every round", NULL, NULL},
    {0},
};

static int print_round(void *cookie, int round, double bleu, double promised, uint64_t hypotheses)
{
    const mert_options *o = cookie;
    if (o->quiet) return 0;
    const char *what = o->lattice ? "arcs" : "hypotheses";
    const char *where = o->lattice ? "lattices" : "lists";
    if (promised > 0)
        fprintf(stderr, "round %d: BLEU %.2f, %.2f on the %s with new weights, %s %llu\n", round,
                bleu, promised, where, what, (unsigned long long)hypotheses);
    else
        fprintf(stderr, "round %d: BLEU %.2f, %s %llu\n", round, bleu, what,
                (unsigned long long)hypotheses);
    return 0;
}

static int run(const command *self, int argc, char **argv)
{
    mert_options o = {.pops = 400,
                      .stack = 200,
                      .jump = 6,
                      .table_limit = 20,
                      .nbest = 100,
                      .rounds = 8,
                      .restarts = 3,
                      .directions = 10,
                      .seed = 1,
                      .threads = 1,
                      .lattice_beam = 0.2f,
                      .radius = -1};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (o.lists ? rest.count != 0 : rest.count != 2)
        return fail_usage(self, "mert takes %s",
                          o.lists ? "no tables with --lists"
                                  : "a phrase table and a language model");
    if (!o.output || !o.references.count || (!o.lists && !o.input))
        return fail_usage(self, "%s",
                          o.lists ? "mert --lists requires --reference FILE and --output FILE"
                                  : "mert requires --input, --reference and --output FILE");
    file_list files = {0};
    files_read_words(&files, &rest, 0);
    files_read(&files, "--input", o.input);
    files_read_list(&files, "--reference", &o.references);
    files_read(&files, "--lists", o.lists);
    files_read(&files, "--reordering", o.reordering);
    files_read(&files, "--subwords", o.subwords);
    files_replace(&files, "--output", o.output, "--weights", o.weights);
    code = files_check(self, &files);
    if (code >= 0) return code;
    dgm_mert_options m;
    dgm_phrasal_options how;
    dgm_mert_default(&m);
    dgm_phrasal_default(&how);
    how.distinct = 1;
    m.system = &how;
    if (!o.lists) {
        how.table = rest.items[0];
        how.lm = rest.items[1];
    }
    how.reordering = o.reordering;
    how.weights = o.weights;
    how.uniform = o.uniform;
    how.subwords = o.subwords;
    how.detokenize = o.detokenize;
    how.pops = o.pops;
    how.stack = o.stack;
    how.jump = o.jump;
    how.table_limit = o.table_limit;
    how.nbest = o.nbest;
    how.threads = o.threads;
    how.lattice_beam = (double)o.lattice_beam;
    m.lists = o.lists;
    m.lattice = o.lattice;
    m.rounds = o.rounds;
    m.restarts = o.restarts;
    m.directions = o.directions;
    m.radius = (double)o.radius;
    m.seed = (uint64_t)o.seed;
    m.threads = o.threads;
    m.report = print_round;
    m.cookie = &o;
    dgm_error error;
    dgm_status st =
        dgm_mert(o.input, o.references.items, (size_t)o.references.count, o.output, &m, &error);
    return st == DGM_OK ? EXIT_FINE : fail(exit_code(st), "%s", error.text);
}

const command command_mert = {
    .name = "mert",
    .summary = "tune the weights of the phrase-based decoder",
    .usage = "TABLE LM -i SOURCE -R REFERENCE -o WEIGHTS | --lists NBEST -R REFERENCE -o WEIGHTS",
    .description =
        "Minimum error rate training: decodes a development set, looks for the weights under "
        "which the best translations of its n-best lists have the highest BLEU, and starts "
        "again with them. The search follows lines through the space of weights, along axes and "
        "random directions, and finds the best point of each line exactly. With --lattice "
        "all paths of the pruned search graphs take part, not only the best ones.\n\n"
        "BLEU is that of 'dragoman eval'. The file holds the weights whose decoded translations "
        "were the best; 'dragoman phrase translate --weights' reads it.",
    .example =
        "dragoman mert en-de.pt de.lm -i dev.tok.en -R dev.de --detokenize de -o tuned.weights\n"
        "dragoman mert en-de.pt de.lm -i dev.tok.en -R dev.de --detokenize de --lattice -o w\n"
        "dragoman mert --lists dev.nbest.gz -R dev.de -o tuned.weights",
    .options = options,
    .run = run,
};
