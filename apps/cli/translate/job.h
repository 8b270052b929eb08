// SPDX-License-Identifier: MIT
// A corpus job before it begins and when it is interrupted: is there one already, is it complete, how
// does it go on.
#ifndef DGM_APPS_CLI_TRANSLATE_JOB_H
#define DGM_APPS_CLI_TRANSLATE_JOB_H

#include "translate/translate_lines.h"

// What the options ask to be read: texts, files or standard input. NULL after a message.
line_reader *open_input(const translate_options *o);

// Kinds of documents that have no reader are read as any text, and their tags come out as the model likes.
void input_warn(const translate_options *o);
// Does all that is read stay in files (a file on standard input is one)? Then it is a corpus.
bool input_is_files(const translate_options *o);
// Does somebody type the lines, or read them as they come?
bool input_is_typed(const translate_options *o);
bool is_conversation(const translate_options *o);

// What is read, for the journal.
void job_describe_input(journal *j, const translate_options *o);
// Looks for an earlier job with this output, before anything is loaded or touched. Returns -1 to
// begin or go on with one, or the exit code after a message: an interrupted job is there and nobody
// said what to do with it, or the one to be resumed is complete.
int job_check(const translate_options *o);
// Says how an interrupted job goes on: with the same words, and --resume.
void job_how_to_continue(const translate_options *o, uint64_t lines);

#endif
