// SPDX-License-Identifier: MIT
// The journal of a corpus job: OUTPUT.progress, what was written so far and for which job.
//
// A job writes its output in order. After every sort window the journal gets one line that says how
// far input and output have come; the file is there from before the first line of output until the
// job is done. A job that was killed is continued by journal_resume: the output is cut where the
// last line of the journal says, and the input is read from there on.
//
//     dragoman progress 4
//     NAME<TAB>VALUE[<TAB>SHOWN]          what the output depends on: version, model, options; the input
//     begin
//     LINES INPUT BYTES OUTPUT FAILURES FAILED REASONS DUMPED DUMP CHECK     one line per window
//
// LINES lines of input with the CRC-32 INPUT gave BYTES bytes of output with the CRC-32 OUTPUT; of
// these FAILED lines failed, which took FAILURES bytes with the CRC-32 REASONS of the failure
// report, and the dump of their evidence DUMPED bytes with the CRC-32 DUMP. CHECK is the CRC-32 of the line before it:
// a line that was cut short does not count.
#ifndef DGM_APPS_CLI_IO_JOURNAL_H
#define DGM_APPS_CLI_IO_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct journal journal;

typedef struct journal_mark {
    uint64_t lines, bytes, failures, failed;
    uint32_t input, output, reasons; // CRC-32
    uint64_t dumped;
    uint32_t dump;
} journal_mark;

// A journal for this output; it is not on the disk yet. NULL after a message.
journal *journal_open(const char *output);
// Is there a journal of an interrupted job beside the output, or is a program writing them?
typedef enum journal_state { JOURNAL_NONE, JOURNAL_LEFT, JOURNAL_BUSY } journal_state;
journal_state journal_look(const char *output);
// One line of the description. The text is copied; line breaks and tabs become spaces. shown: what
// messages say for the value, e.g. the names of files whose content it is; NULL: the value.
void journal_describe(journal *j, const char *name, const char *value, const char *shown);
// The same of file number `index`, from 0, that the job reads (NULL or "-": standard input), by its content: another
// one is noticed even where its beginning is the same. One that has grown is not another, nor is what was or
// is read through a pipe: of these the lines tell that were translated (journal_mark.input).
void journal_describe_input(journal *j, int index, const char *path);
// Begins a new job: writes the description in place of an older journal. False after a message.
bool journal_begin(journal *j);
// Goes on with an interrupted job: compares the descriptions and the output, the report and the dump
// (NULL: none), with what the journal says. *mark is all zero if nothing was written yet. False
// after a message that says what differs. Where there is no journal, begins.
bool journal_resume(journal *j, const char *report, const char *dump, journal_mark *mark);
// One more window. False after a message.
bool journal_record(journal *j, const journal_mark *mark);
// done: the job is complete, the file is removed.
void journal_close(journal *j, bool done);

#endif
