// SPDX-License-Identifier: MIT
// Lines in and out; see lineio.h.
//
// Plain input is read with read(2), so that a line is there as soon as it was sent; a program that
// talks to us through pipes gets its answer before it sends more. Only gzip goes through zlib.
#define _GNU_SOURCE
#include "lineio.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "options.h"

double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void *need(void *memory)
{
    if (!memory) exit(fail(EXIT_RUNTIME, "out of memory"));
    return memory;
}

// ---- reading ----------------------------------------------------------------------------------

struct line_reader {
    int fd;
    gzFile gz; // NULL: plain
    const char *name;
    char *buffer;
    size_t begin, end, cap; // unread bytes are buffer[begin .. end)
    size_t scanned;         // no line break in buffer[begin .. scanned)
    bool eof, failed, begun;
    uint64_t size, read; // of the file, 0: unknown
};

line_reader *reader_open(const char *path)
{
    bool standard = !path || strcmp(path, "-") == 0;
    int fd = standard ? dup(0) : open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        fail(EXIT_RUNTIME, "cannot open '%s': %s", standard ? "standard input" : path,
             strerror(errno));
        if (fd >= 0) close(fd);
        return NULL;
    }
    if (S_ISDIR(st.st_mode)) {
        fail(EXIT_RUNTIME, "cannot read '%s': it is a folder", standard ? "standard input" : path);
        close(fd);
        return NULL;
    }
    line_reader *r = need(calloc(1, sizeof *r));
    r->fd = fd;
    r->name = standard ? "standard input" : path;
    r->cap = 1 << 16;
    r->buffer = need(malloc(r->cap));
    unsigned char magic[2] = {0};
    if (S_ISREG(st.st_mode)) {
        r->size = (uint64_t)st.st_size;
        if (pread(fd, magic, 2, lseek(fd, 0, SEEK_CUR)) == 2 && magic[0] == 0x1f &&
            magic[1] == 0x8b)
            r->gz = need(gzdopen(fd, "rb"));
    }
    return r;
}

void reader_close(line_reader *r)
{
    if (!r) return;
    if (r->gz)
        gzclose(r->gz);
    else
        close(r->fd);
    free(r->buffer);
    free(r);
}

bool reader_failed(const line_reader *r)
{
    return r->failed;
}

double reader_share(const line_reader *r)
{
    if (!r->size) return -1;
    uint64_t read = r->gz ? (uint64_t)gzoffset(r->gz) : r->read;
    return (double)read / (double)r->size;
}

bool reader_ready(const line_reader *r)
{
    if (r->eof || r->size) return true;
    if (memchr(r->buffer + r->begin, '\n', r->end - r->begin)) return true;
    struct pollfd p = {r->fd, POLLIN, 0};
    return poll(&p, 1, 0) > 0;
}

static void fill(line_reader *r)
{
    if (r->begin > 0) {
        memmove(r->buffer, r->buffer + r->begin, r->end - r->begin);
        r->end -= r->begin;
        r->scanned -= r->begin;
        r->begin = 0;
    }
    if (r->cap - r->end < 4096) {
        r->cap *= 2;
        r->buffer = need(realloc(r->buffer, r->cap));
    }
    size_t room = r->cap - r->end - 1; // a NUL must fit behind the last line
    if (room > 1 << 20) room = 1 << 20;
    ssize_t n;
    do {
        n = r->gz ? gzread(r->gz, r->buffer + r->end, (unsigned)room)
                  : read(r->fd, r->buffer + r->end, room);
    } while (n < 0 && !r->gz && errno == EINTR);
    int code = Z_OK;
    const char *why = r->gz ? gzerror(r->gz, &code) : strerror(errno);
    // A compressed file that ends early gives its bytes first and the error afterwards.
    if (n < 0 || (n == 0 && code == Z_BUF_ERROR)) {
        fail(EXIT_RUNTIME, "cannot read '%s': %s", r->name,
             code == Z_BUF_ERROR ? "the compressed data ends too early" : why);
        r->failed = true;
        n = 0;
    }
    if (n == 0) r->eof = true;
    r->end += (size_t)n;
    r->read += (uint64_t)n;
}

bool reader_next(line_reader *r, char **line, size_t *size)
{
    for (;;) {
        char *stop = memchr(r->buffer + r->scanned, '\n', r->end - r->scanned);
        if (!stop && !r->eof) {
            r->scanned = r->end;
            fill(r);
            continue;
        }
        if (r->failed || (!stop && r->begin == r->end)) return false;
        size_t end = stop ? (size_t)(stop - r->buffer) : r->end;
        // A byte order mark at the beginning of a file is no part of its text.
        if (!r->begun && end - r->begin >= 3 &&
            memcmp(r->buffer + r->begin, "\xef\xbb\xbf", 3) == 0)
            r->begin += 3;
        r->begun = true;
        *line = r->buffer + r->begin;
        *size = end - r->begin;
        r->buffer[end] = 0;
        r->begin = r->scanned = stop ? end + 1 : end;
        return true;
    }
}

// ---- writing ----------------------------------------------------------------------------------

struct line_writer {
    FILE *file;
    gzFile gz;
    const char *name;
    bool failed;
    int why; // errno of the first failure
};

static void note(line_writer *w, bool failed)
{
    if (!failed || w->failed) return;
    w->failed = true;
    w->why = errno;
}

line_writer *writer_open(const char *path)
{
    bool standard = !path || strcmp(path, "-") == 0;
    line_writer *w = need(calloc(1, sizeof *w));
    w->name = standard ? "standard output" : path;
    size_t n = standard ? 0 : strlen(path);
    if (n > 3 && strcmp(path + n - 3, ".gz") == 0)
        w->gz = gzopen(path, "wb6");
    else
        w->file = standard ? stdout : fopen(path, "we");
    if (w->gz || w->file) return w;
    fail(EXIT_RUNTIME, "cannot write '%s': %s", path, strerror(errno));
    free(w);
    return NULL;
}

void writer_put(line_writer *w, const char *data, size_t size)
{
    if (size == 0 || w->failed) return;
    errno = 0;
    if (w->gz)
        note(w, gzwrite(w->gz, data, (unsigned)size) != (int)size);
    else
        note(w, fwrite(data, 1, size, w->file) != size);
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
    if (w->file) note(w, fflush(w->file) != 0);
}

bool writer_failed(const line_writer *w)
{
    return w->failed;
}

bool writer_close(line_writer *w)
{
    if (!w) return true;
    errno = 0;
    if (w->gz)
        note(w, gzclose(w->gz) != Z_OK);
    else if (w->file == stdout)
        note(w, fflush(stdout) != 0);
    else
        note(w, fclose(w->file) != 0);
    bool fine = !w->failed;
    if (!fine)
        fail(EXIT_RUNTIME, "cannot write '%s': %s", w->name,
             w->why ? strerror(w->why) : "write error");
    free(w);
    return fine;
}

// ---- whole files ------------------------------------------------------------------------------

bool text_file_read(text_file *f, const char *path)
{
    memset(f, 0, sizeof *f);
    line_reader *r = reader_open(path);
    if (!r) return false;
    size_t used = 0, cap = 0, lines_cap = 0;
    char *line = NULL;
    size_t size = 0, *starts = NULL;
    while (reader_next(r, &line, &size)) {
        if (used + size + 1 > cap) {
            cap = (used + size + 1) * 2;
            f->data = need(realloc(f->data, cap));
        }
        if (f->count == lines_cap) {
            lines_cap = lines_cap ? lines_cap * 2 : 1024;
            starts = need(realloc(starts, lines_cap * sizeof *starts));
            f->sizes = need(realloc(f->sizes, lines_cap * sizeof *f->sizes));
        }
        memcpy(f->data + used, line, size + 1);
        starts[f->count] = used;
        f->sizes[f->count++] = size;
        used += size + 1;
    }
    bool fine = !reader_failed(r);
    reader_close(r);
    f->lines = need(calloc(f->count + 1, sizeof *f->lines));
    for (size_t i = 0; i < f->count; i++) f->lines[i] = f->data + starts[i];
    free(starts);
    if (!fine) text_file_free(f);
    return fine;
}

void text_file_free(text_file *f)
{
    free(f->data);
    free(f->lines);
    free(f->sizes);
    memset(f, 0, sizeof *f);
}

// ---- progress ---------------------------------------------------------------------------------

void progress_start(progress *p, bool wanted)
{
    memset(p, 0, sizeof *p);
    p->on = wanted && isatty(2);
    p->start = p->last = seconds();
}

void progress_show(progress *p, uint64_t lines, double share)
{
    enum { BAR = 24 };
    double now = seconds();
    if (!p->on || now - p->last < 0.1) return;
    p->last = now;
    p->shown = true;
    double rate = (double)lines / (now - p->start + 1e-9);
    fprintf(stderr, "\r%llu lines, %.1f lines/s", (unsigned long long)lines, rate);
    if (share >= 0 && share <= 1) {
        int full = (int)(share * BAR);
        double left = share > 0 ? (now - p->start) * (1 - share) / share : 0;
        fprintf(stderr, " [%.*s%*s] %3.0f %%, %.0f s left ", full, "########################",
                BAR - full, "", share * 100, left);
    }
    fprintf(stderr, "\033[K");
}

int progress_tick(void *p, const char *stage, double share)
{
    (void)stage;
    progress_show(p, 0, share);
    return 0;
}

void progress_nap(void)
{
    struct timespec t = {0, 10 * 1000 * 1000};
    nanosleep(&t, NULL);
}

void progress_end(progress *p)
{
    if (p->shown) fprintf(stderr, "\r\033[K");
    p->shown = false;
}

bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return a && b && stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
