// SPDX-License-Identifier: MIT
// Lines in and out: files, standard input and output, gzip by name or magic.
#ifndef DGM_APPS_CLI_IO_LINEIO_H
#define DGM_APPS_CLI_IO_LINEIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

typedef struct line_reader line_reader;

// The encoding of all that is opened from now on: a name that dgm_encoding_named knows; NULL: UTF-8.
void reader_encoding(const char *name);
// path NULL or "-": standard input. On failure prints the message and returns NULL.
line_reader *reader_open(const char *path);
// The lines of several files, in order, or of texts (as if each were a file); the arrays must outlive
// the reader.
line_reader *reader_open_files(const char *const *paths, int count);
line_reader *reader_open_texts(const char *const *texts, int count);
line_reader *reader_open_output(const char *path); // what we wrote ourselves: UTF-8 always
// Lines that somebody else has in memory.
line_reader *reader_open_list(const char *(*line)(const void *cookie, size_t index, size_t *size), const void *cookie,
                              size_t count);
void reader_close(line_reader *r);
const char *reader_name(const line_reader *r); // of the file that is read
// See dgm_lines_stop.
void reader_stop(line_reader *r, const volatile int *stop);
// Next line as dgm_lines_next gives it. False at the end or after an error (reader_failed tells, and
// the message is printed).
bool reader_next(line_reader *r, const char **line, size_t *size);
bool reader_failed(const line_reader *r);
bool reader_crlf(const line_reader *r);   // did the line last read end with "\r\n"?
bool reader_marked(const line_reader *r); // does the text begin with a byte order mark, in UTF-8?
// Would reader_next answer without waiting for somebody to type or send?
bool reader_ready(const line_reader *r);
// Share of the input that was read, 0 to 1; negative if the size is not known.
double reader_share(const line_reader *r);

typedef struct line_writer line_writer;

// path NULL or "-": standard output; a name ending in .gz is compressed. A file is there when it is closed, whole, and
// not at all, or as it was, where the program has failed until then (has_failed). NULL after a message.
line_writer *writer_open(const char *path);
line_writer *writer_open_errors(void); // standard error
// The same for a file that has `bytes` bytes of an earlier run with the CRC-32 `check`: what
// follows them is cut off, and writing goes on there.
bool writer_possible(const char *path); // or a message
line_writer *writer_open_at(const char *path, uint64_t bytes, uint32_t check);
void writer_put(line_writer *w, const char *data, size_t size);
void writer_text(line_writer *w, const char *text);
void writer_format(line_writer *w, const char *fmt, ...);
void writer_json(line_writer *w, const char *text, size_t size); // quoted and escaped
void writer_real(line_writer *w, double v);                      // "null" unless finite
void writer_flush(line_writer *w);                               // gzip keeps what it has
// Everything put so far can be read from the file if the program ends now: flushes, ends a member
// of gzip. writer_sync also waits until it is on the disk.
void writer_cut(line_writer *w);
bool writer_sync(line_writer *w);
bool writer_is_gz(const line_writer *w);
uint64_t writer_bytes(const line_writer *w, uint32_t *check); // in the file, after a cut: all
bool writer_failed(const line_writer *w);                     // so far
// Flushes and closes; false after a message when anything could not be written.
bool writer_close(line_writer *w);
// Has whoever read our standard output gone? Then writing failed, and closing says nothing.
bool output_closed(void);

// A whole file as lines. On failure prints the message and returns false.
typedef struct text_file {
    char *data;
    dgm_line *lines; // a NUL follows each
    size_t count;
} text_file;

bool text_file_read(text_file *f, const char *path);
void text_file_free(text_file *f);

double seconds(void);
uint32_t checksum(uint32_t sum, const void *data, size_t size); // CRC-32; begins with 0
// CRC-32 of the first `most` bytes of a file, of which *bytes are there; false, with errno, where it
// cannot be read.
bool file_checksum(const char *path, uint64_t most, uint64_t *bytes, uint32_t *sum);
void *need(void *memory); // ends the program when memory is NULL

// Does a name (NULL: none) mean a file that stays, not a terminal, a pipe or a device? It need not
// be there yet.
bool is_file_name(const char *name);
bool names_gz(const char *name);
bool is_regular(const char *name);    // NULL or "-": standard input
bool shown_at_once(const char *name); // output (NULL or "-": standard) on a terminal

#endif
