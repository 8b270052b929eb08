// SPDX-License-Identifier: MIT
// `dragoman lattice`: joins, prunes and converts lattices, and lists their best paths.
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "io/sink.h"
#include "translate/setup.h"

typedef struct lattice_options {
    const char *output, *symbols, *format;
    int transducer, trim, lists, max_arcs, nbest, repeated, stats;
    float prune;
} lattice_options;

#define AT(field) offsetof(lattice_options, field)

static const option options[] = {
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write to FILE, compressed if its name ends in .gz (default: standard output)", NULL, NULL},
    {"format", 0, OPTION_CHOICE, "NAME", AT(format), 0, 0, "lattice|openfst",
     "format of the output (default lattice)", NULL, NULL},
    {"nbest", 'n', OPTION_COUNT, "N", AT(nbest), 1, 1000000, NULL,
     "write the N best texts of every lattice, one per line, LINE ||| text ||| Lattice= score ||| "
     "score, lines counted from 0, instead of lattices",
     "n-best", NULL},
    {"repeated", 0, OPTION_FLAG, NULL, AT(repeated), 0, 0, NULL,
     "--nbest: every path counts, also several that say the same", NULL, NULL},
    {"prune", 0, OPTION_REAL, "X", AT(prune), 0, 1e30, NULL,
     "drop arcs whose best path is more than X behind the best path of all", NULL, NULL},
    {"max-arcs", 0, OPTION_COUNT, "N", AT(max_arcs), 1, 1 << 24, NULL,
     "keep no more than the N best arcs of a lattice, and those of its best path", NULL, NULL},
    {"from-nbest", 0, OPTION_FLAG, NULL, AT(lists), 0, 0, NULL,
     "the files are n-best lists, LINE ||| text ||| features ||| score; the texts of a line become "
     "a lattice",
     NULL, NULL},
    {"symbols", 0, OPTION_TEXT, "FILE", AT(symbols), 0, 0, NULL,
     "OpenFst's text: labels are numbers of this table, lines of WORD NUMBER", NULL, NULL},
    {"transducer", 0, OPTION_FLAG, NULL, AT(transducer), 0, 0, NULL,
     "OpenFst's text: arcs of four fields have an input and an output label and no cost", NULL,
     NULL},
    {"trim", 0, OPTION_FLAG, NULL, AT(trim), 0, 0, NULL,
     "drop nodes that lie on no path from the start to an end, instead of refusing them", NULL,
     NULL},
    {"stats", 0, OPTION_FLAG, NULL, AT(stats), 0, 0, NULL,
     "print counts of lattices, nodes and arcs on standard error", NULL, NULL},
    {0},
};

static int run(const command *self, int argc, char **argv)
{
    lattice_options o = {.prune = -1};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count < 1) return fail_usage(self, "lattice takes one or more files of lattices");
    file_list files = {0};
    files_read_words(&files, &rest, 0);
    files_read(&files, "--symbols", o.symbols);
    files_write(&files, "--output", o.output);
    code = files_check(self, &files);
    if (code >= 0) return code;
    dgm_lattice_options l;
    dgm_lattice_default(&l);
    l.symbols = o.symbols;
    l.transducer = o.transducer;
    l.trim = o.trim;
    l.lists = o.lists;
    l.prune = (double)o.prune;
    l.max_arcs = (size_t)o.max_arcs;
    l.nbest = (size_t)o.nbest;
    l.repeated = o.repeated;
    l.format = o.format;
    text_sink sink;
    if (!sink_open(&sink, o.output)) return EXIT_RUNTIME;
    l.write = sink_put;
    l.write_cookie = sink.out;
    dgm_lattice_report report = {.size = sizeof report};
    dgm_error error;
    const dgm_status st =
        dgm_lattice_run(rest.items, (size_t)rest.count, sink.file, &l, &report, &error);
    code = sink_close(&sink, st, &error);
    if (code == EXIT_FINE && o.stats)
        fprintf(stderr, "lattices %llu, nodes %llu of %llu, arcs %llu of %llu\n",
                (unsigned long long)report.lattices, (unsigned long long)report.nodes,
                (unsigned long long)report.nodes_read, (unsigned long long)report.arcs,
                (unsigned long long)report.arcs_read);
    return code;
}

const command command_lattice = {
    .name = "lattice",
    .summary = "join, prune and convert lattices, list their best paths",
    .usage = "FILE... [options]",
    .description =
        "Reads lattices in Dragoman's text format or OpenFst's, one for each sentence, and writes "
        "them again. Of several files the first lattices of all are joined into one, then the "
        "second, and so on. Pruning and lists go by the lattices' own scores; 'dragoman score "
        "--lattice' ranks paths by a model, and 'dragoman translate --lattice' searches in them.",
    .example = "dragoman lattice one.lat two.lat --prune 8 -o both.lat\n"
               "dragoman lattice both.lat --nbest 100 > both.nbest\n"
               "dragoman lattice graph.fst.txt --symbols words.txt -o graph.lat",
    .options = options,
    .run = run,
};
