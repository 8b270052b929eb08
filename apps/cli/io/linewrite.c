// SPDX-License-Identifier: MIT
// Writing of lines: standard output or a file, plain or gzip; see lineio.h.
//
// Bytes are collected in a buffer and written with write(2), so that it is always known how many
// of them a file holds and what their checksum is: journal.c writes both down, and a later program
// cuts the file there and goes on. A gzip file is a row of members, each complete in itself;
// writer_cut ends one. `gzip -d` and zlib read them as one file.
//
//     put -> staged [64 KiB] --plain--------------> write
//                            --deflate-> packed --> write
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "io/lineio.h"
#include "options.h"

enum { STAGE = 1 << 16, GZIP_LEVEL = 6, GZIP_BITS = 15 + 16 };

struct line_writer {
    int fd;
    bool gz, member; // member: bytes of one are staged or written that is not ended
    bool failed;
    int why; // errno of the first failure
    dgm_output *file; // NULL: standard output, or a file with a journal
    z_stream z;
    const char *name;
    unsigned char *staged, *packed;
    size_t used;
    uint64_t bytes; // in the file
    uint32_t check; // CRC-32 of them
};

static bool reader_gone; // of standard output

bool output_closed(void)
{
    return reader_gone;
}

static void note(line_writer *w, bool failed)
{
    if (!failed || w->failed) return;
    w->failed = true;
    w->why = errno;
    if (w->fd == 1 && w->why == EPIPE) reader_gone = true;
}

static line_writer *new_writer(int fd, const char *name, bool gz)
{
    line_writer *w = need(calloc(1, sizeof *w));
    w->fd = fd;
    w->name = name;
    w->gz = gz;
    w->check = (uint32_t)crc32(0, NULL, 0);
    w->staged = need(malloc(STAGE));
    if (!gz) return w;
    w->packed = need(malloc(STAGE));
    if (deflateInit2(&w->z, GZIP_LEVEL, Z_DEFLATED, GZIP_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        need(NULL);
    return w;
}

line_writer *writer_open(const char *path)
{
    if (!path || strcmp(path, "-") == 0) return new_writer(1, "standard output", false);
    dgm_output *file = NULL;
    dgm_error error;
    if (dgm_output_open(&file, path, &error) != DGM_OK) {
        fail(EXIT_RUNTIME, "%s", error.text);
        return NULL;
    }
    line_writer *w = new_writer(dgm_output_descriptor(file), path, names_gz(path));
    w->file = file;
    return w;
}

line_writer *writer_open_errors(void)
{
    return new_writer(2, "standard error", false);
}

bool writer_possible(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
        unlink(path);
    else if (errno == EEXIST)
        fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) close(fd);
    if (fd < 0) fail(EXIT_RUNTIME, "cannot write '%s': %s", path, strerror(errno));
    return fd >= 0;
}

line_writer *writer_open_at(const char *path, uint64_t bytes, uint32_t check)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0 || lseek(fd, 0, SEEK_END) != (off_t)bytes) {
        fail(EXIT_RUNTIME, "cannot write '%s': %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return NULL;
    }
    line_writer *w = new_writer(fd, path, names_gz(path));
    w->bytes = bytes;
    w->check = check;
    return w;
}

static void write_all(line_writer *w, const unsigned char *data, size_t size)
{
    while (size && !w->failed) {
        errno = 0;
        ssize_t n = write(w->fd, data, size);
        if (n < 0 && errno == EINTR) continue;
        note(w, n <= 0);
        if (n <= 0) return;
        w->check = (uint32_t)crc32(w->check, data, (uInt)n);
        w->bytes += (uint64_t)n;
        data += n;
        size -= (size_t)n;
    }
}

// Takes what is staged on its way; flush is zlib's.
static void drain(line_writer *w, int flush)
{
    if (!w->gz) {
        write_all(w, w->staged, w->used);
    } else {
        w->z.next_in = w->staged;
        w->z.avail_in = (uInt)w->used;
        do {
            w->z.next_out = w->packed;
            w->z.avail_out = STAGE;
            deflate(&w->z, flush);
            write_all(w, w->packed, STAGE - w->z.avail_out);
        } while (w->z.avail_out == 0);
        if (flush == Z_FINISH) deflateReset(&w->z);
    }
    w->used = 0;
}

void writer_put(line_writer *w, const char *data, size_t size)
{
    while (size && !w->failed) {
        size_t n = STAGE - w->used;
        if (n > size) n = size;
        memcpy(w->staged + w->used, data, n);
        w->used += n;
        w->member = true;
        data += n;
        size -= n;
        if (w->used == STAGE) drain(w, Z_NO_FLUSH);
    }
}

void writer_text(line_writer *w, const char *text)
{
    writer_put(w, text, strlen(text));
}

void writer_format(line_writer *w, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n > 0) writer_put(w, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

void writer_json(line_writer *w, const char *text, size_t size)
{
    size_t from = 0;
    writer_put(w, "\"", 1);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f) continue;
        writer_put(w, text + from, i - from);
        from = i + 1;
        if (c == '"' || c == '\\')
            writer_format(w, "\\%c", c);
        else if (c == '\n')
            writer_text(w, "\\n");
        else if (c == '\t')
            writer_text(w, "\\t");
        else
            writer_format(w, "\\u%04x", c);
    }
    writer_put(w, text + from, size - from);
    writer_put(w, "\"", 1);
}

void writer_real(line_writer *w, double v)
{
    if (isfinite(v))
        writer_format(w, "%.4f", v);
    else
        writer_text(w, "null");
}

void writer_flush(line_writer *w)
{
    if (!w->gz) drain(w, Z_NO_FLUSH);
}

void writer_cut(line_writer *w)
{
    if (!w->gz || w->member) drain(w, Z_FINISH);
    w->member = false;
}

bool writer_sync(line_writer *w)
{
    if (!w->failed && fdatasync(w->fd) != 0) note(w, errno != EINVAL && errno != EROFS);
    return !w->failed;
}

bool writer_is_gz(const line_writer *w)
{
    return w->gz;
}

uint64_t writer_bytes(const line_writer *w, uint32_t *check)
{
    if (check) *check = w->check;
    return w->bytes;
}

bool writer_failed(const line_writer *w)
{
    return w->failed;
}

bool writer_close(line_writer *w)
{
    if (!w) return true;
    if (w->gz && w->bytes == 0) w->member = true; // an empty gzip file has a member, too
    writer_cut(w);
    if (w->gz) deflateEnd(&w->z);
    bool told = has_failed();
    if (w->file && !w->failed && !told) {
        dgm_error error;
        told = w->failed = dgm_output_commit(&w->file, &error) != DGM_OK;
        if (told) fail(EXIT_RUNTIME, "%s", error.text);
    } else if (w->file) {
        dgm_output_discard(&w->file);
    } else if (w->fd > 2) {
        errno = 0;
        note(w, close(w->fd) != 0);
    }
    bool fine = !w->failed;
    if (!fine && !told && !(w->fd == 1 && reader_gone))
        fail(EXIT_RUNTIME, "cannot write '%s': %s", w->name,
             w->why ? strerror(w->why) : "write error");
    free(w->staged);
    free(w->packed);
    free(w);
    return fine;
}
