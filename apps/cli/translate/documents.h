// SPDX-License-Identifier: MIT
// Documents (dragoman/document.h) in `dragoman translate`: their lines go through the same job as those of a text.
// While it runs, translations and links are kept in OUTPUT.lines, for --resume; at the end the document is written as
// a whole.
#ifndef DGM_APPS_CLI_TRANSLATE_DOCUMENTS_H
#define DGM_APPS_CLI_TRANSLATE_DOCUMENTS_H

#include "commands/commands.h"
#include "translate/translate_lines.h"

// Is the input a document, by --format or by its name? *format: its name, or NULL for lines of text. Returns -1, or
// the exit code after a message.
int document_check(const command *self, translate_options *o);
// Reads it, before anything is loaded or written. NULL after a message.
dgm_document *document_load(const translate_options *o);
// Do the files that go with its lines have as many, as far as that can be seen before they are read? False after a
// message.
bool document_fits(const session *s);
// --list-lines: prints them. Returns the exit code.
int document_list(const session *s);
// Its lines as a reader has them.
line_reader *document_lines(const dgm_document *d);

// Opens the memories of --tmx and --tmx-out; what they know is no longer a line of the document. False after a message.
bool document_recall(session *s);

// The translation of a line: to the document, and to OUTPUT.lines where the job has one.
void document_take(session *s, uint64_t number, const dgm_result *r);
// Those that an interrupted job has left, up to `lines`; false after a message.
bool document_resume(session *s, uint64_t lines);
// Writes the document and removes OUTPUT.lines. False after a message.
bool document_finish(session *s);

#endif
