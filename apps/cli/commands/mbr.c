// SPDX-License-Identifier: MIT
// `dragoman mbr`: an n-best list in, the translation of least expected loss out.
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "translate/setup.h"

typedef struct mbr_options {
    const char *utility, *tokenize, *output;
    float scale;
    int size, scores, nbest;
} mbr_options;

#define AT(field) offsetof(mbr_options, field)

static const option options[] = {
    {"utility", 'u', OPTION_CHOICE, "NAME", AT(utility), 0, 0, "bleu|chrf",
     "score of a translation against another one (default bleu)", NULL, NULL},
    {"scale", 0, OPTION_REAL, "X", AT(scale), 0, 1000000, NULL,
     "factor of the list's scores before they become probabilities; 0: all translations of a line "
     "are equally likely (default 1)",
     NULL, NULL},
    {"size", 'n', OPTION_COUNT, "N", AT(size), 1, 1000000, NULL,
     "look at the first N translations of a line only (default: all)", NULL, NULL},
    {"tokenize", 0, OPTION_CHOICE, "NAME", AT(tokenize), 0, 0, "13a|intl|char|zh|none",
     "tokeniser of BLEU (default 13a)", NULL, NULL},
    {"scores", 0, OPTION_FLAG, NULL, AT(scores), 0, 0, NULL,
     "print the expected score behind every translation", NULL, NULL},
    {"nbest", 0, OPTION_FLAG, NULL, AT(nbest), 0, 0, NULL,
     "print the list itself, with expected scores in place of its own", NULL, NULL},
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write to FILE, compressed if its name ends in .gz (default: standard output)", NULL, NULL},
    {0},
};

static bool put_line(const mbr_options *o, dgm_mbr *mbr, uint64_t line, dgm_evidence *list,
                     line_writer *out)
{
    dgm_error error;
    size_t best = 0;
    const double *gains = NULL;
    if (o->size && list->count > (size_t)o->size) list->count = (size_t)o->size;
    if (list->lattice) {
        fail(EXIT_RUNTIME,
             "mbr takes an n-best list, not lattices (make one with 'dragoman lattice "
             "--nbest N')");
        return false;
    }
    if (list->count && dgm_mbr_choose(mbr, list, &best, &gains, &error) != DGM_OK) {
        fail(EXIT_RUNTIME, "line %llu: %s", (unsigned long long)line + 1, error.text);
        return false;
    }
    for (size_t i = 0; o->nbest && i < list->count; i++) {
        writer_format(out, "%llu ||| ", (unsigned long long)line);
        writer_put(out, list->candidates[i].text, list->candidates[i].size);
        writer_format(out, " ||| F0= %.4f ||| %.4f\n", list->candidates[i].score, gains[i]);
    }
    if (o->nbest) return true;
    if (list->count) writer_put(out, list->candidates[best].text, list->candidates[best].size);
    if (o->scores && list->count) writer_format(out, " ||| %.4f", gains[best]);
    writer_put(out, "\n", 1);
    return true;
}

// One line of output for every line up to the list's last; lines it left out are empty. A million of
// them are no gap but a wrong number, which would fill the disk.
static bool walk(const mbr_options *o, dgm_mbr *mbr, dgm_evidence_file *in, line_writer *out)
{
    enum { GAP_MAX = 1000000 };
    dgm_error error;
    uint64_t next = 0;
    for (uint64_t line = 0;; line++) {
        int more = 0;
        dgm_evidence list;
        dgm_evidence_default(&list);
        if (line >= next && dgm_evidence_any(in, &next, &more, &error) != DGM_OK) break;
        if (line >= next && !more) return true;
        if (next > line && next - line > GAP_MAX) {
            fail(EXIT_RUNTIME, "the n-best list skips from line %llu to line %llu (counted from 0)",
                 (unsigned long long)line - (line > 0), (unsigned long long)next);
            return false;
        }
        if (line == next && dgm_evidence_next(in, line, &list, &error) != DGM_OK) break;
        next += line == next;
        if (!put_line(o, mbr, line, &list, out)) return false;
        if (writer_failed(out)) return false; // and says why when it is closed
    }
    fail(EXIT_RUNTIME, "%s", error.text);
    return false;
}

static int run(const command *self, int argc, char **argv)
{
    mbr_options o = {.scale = 1};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count != 1) return fail_usage(self, "mbr takes one n-best list");
    file_list files = {0};
    files_read_words(&files, &rest, 0);
    files_write(&files, "--output", o.output);
    code = files_check(self, &files);
    if (code >= 0) return code;
    dgm_mbr_options how;
    dgm_mbr *mbr = NULL;
    dgm_evidence_file *in = NULL;
    line_writer *out = NULL;
    dgm_error error;
    dgm_mbr_default(&how);
    how.utility = o.utility;
    how.tokenize = o.tokenize;
    how.scale = (double)o.scale;
    dgm_status st = dgm_mbr_open(&mbr, &how, &error);
    if (st == DGM_OK) st = dgm_evidence_open(&in, rest.items[0], NULL, &error);
    code = st == DGM_OK ? EXIT_FINE : fail(exit_code(st), "%s", error.text);
    if (st == DGM_OK && !(out = writer_open(o.output))) code = EXIT_RUNTIME;
    if (out && !walk(&o, mbr, in, out)) code = EXIT_RUNTIME;
    if (out && !writer_close(out)) code = EXIT_RUNTIME;
    dgm_evidence_close(&in);
    dgm_mbr_close(&mbr);
    return code;
}

const command command_mbr = {
    .name = "mbr",
    .summary = "choose translations of an n-best list by minimum Bayes risk",
    .usage = "[options] NBEST",
    .description =
        "Reads an n-best list, lines of LINE ||| text ||| features ||| score with lines counted "
        "from 0 (as 'dragoman translate --nbest' prints it), and prints for every line the "
        "translation whose expected BLEU or chrF is highest if the others were the truth, each "
        "with the probability that its score gives it.\n\n"
        "The score of our own lists is normalised by length: a --scale of about the length of a "
        "sentence makes it a log-probability.",
    .example = "dragoman translate -b 12 --nbest 12 < in.txt > list.txt\n"
               "dragoman mbr --utility chrf --scale 10 list.txt",
    .options = options,
    .run = run,
};
