// SPDX-License-Identifier: MIT
// A run of `dragoman translate`: what was asked for, and the lines on their way (translate_lines.c).
#ifndef DGM_APPS_CLI_TRANSLATE_TRANSLATE_LINES_H
#define DGM_APPS_CLI_TRANSLATE_TRANSLATE_LINES_H

#include "dragoman/document.h"
#include "translate/directions.h"
#include "io/journal.h"
#include "translate/lattices.h"
#include "io/lineio.h"
#include "io/progress.h"
#include "translate/lmbr.h"
#include "translate/present.h"
#include "translate/rerank.h"
#include "translate/setup.h"

enum { JOBS_MAX = 64 };

typedef struct translate_options {
    engine_options engine;
    lmbr_options lmbr;
    presentation show;
    const char *input, *output, *prefix, *failures, *lattice, *constraints, *directions;
    option_list rerank, text;
    words files; // FILE...; of one alone, input is the name
    const char *stats, *progress, *encoding;
    const char *server, *api_key; // who translates instead; NULL: we do
    const char *format;            // of a document; NULL: lines of text
    const char *document_output;   // where it goes; output is then document_lines
    char *document_lines;          // the file of its lines until then; NULL: there is none
    dgm_document_options document;
    const char *tmx, *tmx_out; // translation memories: read, written
    int window, quiet, resume, overwrite, list_lines;
    int argc; // the command line, for the one that goes on with an interrupted job
    char **argv;
} translate_options;

// One window on its way.
typedef struct window {
    dgm_route_job *job;
    size_t lines, bytes;
    uint64_t source; // bytes of the lines
    uint32_t input; // checksum of the input up to its end
    rerank_sources *sources; // NULL: nothing is re-ranked
    bool *crlf;              // of each line; NULL: none ended so
} window;

// A file whose lines go with those of the input.
typedef struct companion {
    const char *what; // "prefix"
    line_reader *in;  // NULL: there is none
    bool ended;
    size_t *sizes; // of the window's lines
} companion;

enum { COMPANIONS = 3 };

typedef struct session {
    const translate_options *o;
    dgm_route *route;  // what lines go through
    dgm_translator *t; // that writes their translations
    bool owned;        // by the session, not by the route
    reranker *rerank;
    dgm_document *document; // NULL: the input is lines of text
    dgm_memory *memory;     // NULL: none is read or written
    line_reader *in;
    companion with[COMPANIONS]; // prefixes, constraints, directions
    direction_window directions;
    evidence_window evidence;
    lattice_window lattices;
    line_writer *out, *report, *dump; // NULL without --failures, --lmbr-dump
    journal *journal;          // NULL: the output is not a file
    progress bar;
    // The window being filled: each line and its companions behind each other.
    char *text;
    size_t text_used, text_cap;
    uint64_t source; // bytes of its lines
    size_t *sizes;
    bool *crlf, any_crlf; // how lines ended
    size_t pending, lines_cap;
    window jobs[JOBS_MAX]; // a ring
    int first, count;
    size_t in_flight, in_flight_bytes;
    size_t window_bytes;            // a window with more text is full
    uint64_t window_lines;          // and one with more lines: less than --window at the beginning of a pipe
    uint64_t read, written, failed; // lines; with those of the interrupted job
    uint64_t source_read, source_done; // bytes of the lines, for estimates
    uint32_t input;                 // CRC-32 of the lines read
    bool warned, warned_terms, broken, input_failed, malformed;
    bool plain; // the output is a text like the input: with its line ends and its byte order mark
    bool ended; // all of the input was read
    bool cut; // the evidence ended before the input or is wrong: what comes behind is left out
    double load, start;
} session;

// Reads over the lines that an interrupted job has written; false: the input is another one.
bool skip_lines(session *s, const journal_mark *m);
// Translates everything that is left of the input, or what comes before an interruption.
void translate_all(session *s);
progress_state progress_of(session *s);
// Says so if a companion has more lines than the input.
void check_rest(session *s, companion *c);

#endif
