// SPDX-License-Identifier: MIT
// Reading of lines, and progress; see lineio.h.
//
// Input is read with read(2), so that a line is there as soon as it was sent; a program that talks
// to us through pipes gets its answer before it sends more. gzip is known by its first bytes, from
// a file or through a pipe, and decompressed on the way.
#define _GNU_SOURCE
#include "io/lineio.h"

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

uint32_t checksum(uint32_t sum, const void *data, size_t size)
{
    return (uint32_t)crc32_z(sum, data, size);
}

void *need(void *memory)
{
    if (!memory) exit(fail(EXIT_RUNTIME, "out of memory"));
    return memory;
}

// ---- reading ----------------------------------------------------------------------------------

enum { RAW = 1 << 16, GZIP_BITS = 15 + 16 };

struct line_reader {
    int fd;
    const char *name;
    char *buffer;
    size_t begin, end, cap; // unread bytes are buffer[begin .. end)
    size_t scanned;         // no line break in buffer[begin .. scanned)
    bool eof, failed, begun;
    uint64_t size, read; // of the file, 0: unknown; bytes taken from it
    // gzip, known by its first two bytes
    bool known, gz;
    bool member; // inside one; a file may have several
    z_stream z;  // next_in: compressed bytes in raw
    unsigned char *raw;
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
    if (S_ISREG(st.st_mode)) r->size = (uint64_t)st.st_size;
    return r;
}

void reader_close(line_reader *r)
{
    if (!r) return;
    if (r->gz) inflateEnd(&r->z);
    close(r->fd);
    free(r->raw);
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
    return (double)(r->read - r->z.avail_in) / (double)r->size;
}

bool reader_ready(const line_reader *r)
{
    if (r->eof || r->size || r->z.avail_in) return true;
    if (memchr(r->buffer + r->begin, '\n', r->end - r->begin)) return true;
    struct pollfd p = {r->fd, POLLIN, 0};
    return poll(&p, 1, 0) > 0;
}

static void reading_fails(line_reader *r, const char *why)
{
    fail(EXIT_RUNTIME, "cannot read '%s': %s", r->name, why);
    r->failed = r->eof = true;
}

// As many bytes as are there; 0 at the end or after a failure.
static size_t read_some(line_reader *r, void *to, size_t room)
{
    ssize_t n;
    do {
        n = read(r->fd, to, room);
    } while (n < 0 && errno == EINTR);
    if (n < 0) reading_fails(r, strerror(errno));
    if (n <= 0) return 0;
    r->read += (uint64_t)n;
    return (size_t)n;
}

// Two bytes tell: what was read of a compressed file goes to raw.
static void find_format(line_reader *r, size_t room)
{
    while (r->end - r->begin < 2 && !r->eof) {
        size_t n = read_some(r, r->buffer + r->end, room - r->end);
        if (n == 0) r->eof = true;
        r->end += n;
    }
    r->known = true;
    const unsigned char *magic = (const unsigned char *)r->buffer + r->begin;
    if (r->end - r->begin < 2 || magic[0] != 0x1f || magic[1] != 0x8b) return;
    r->gz = r->member = true;
    r->raw = need(malloc(RAW));
    r->z.next_in = r->raw;
    r->z.avail_in = (uInt)(r->end - r->begin);
    memcpy(r->raw, magic, r->end - r->begin);
    r->begin = r->end = r->scanned = 0;
    if (inflateInit2(&r->z, GZIP_BITS) != Z_OK) need(NULL);
}

static void refill_raw(line_reader *r)
{
    size_t n = read_some(r, r->raw, RAW);
    r->z.next_in = r->raw;
    r->z.avail_in = (uInt)n;
}

// Behind a member: the end, padding, or the next member.
static void next_member(line_reader *r)
{
    while (r->z.avail_in && *r->z.next_in == 0) {
        r->z.next_in++;
        r->z.avail_in--;
    }
    if (r->z.avail_in == 0) refill_raw(r);
    if (r->z.avail_in == 0) {
        r->eof = true;
    } else if (*r->z.next_in == 0x1f) {
        inflateReset(&r->z);
        r->member = true;
    } else if (*r->z.next_in != 0) {
        reading_fails(r, "something else follows the compressed data");
    }
}

// Decompresses into the buffer until there is something new in it.
static void inflate_some(line_reader *r, size_t room)
{
    size_t before = r->end;
    while (r->end == before && !r->eof) {
        if (!r->member) {
            next_member(r);
            continue;
        }
        if (r->z.avail_in == 0) refill_raw(r);
        if (r->failed) return;
        if (r->z.avail_in == 0) {
            reading_fails(r, "the compressed data ends too early");
            return;
        }
        r->z.next_out = (unsigned char *)r->buffer + r->end;
        r->z.avail_out = (uInt)room;
        int code = inflate(&r->z, Z_NO_FLUSH);
        r->end += room - r->z.avail_out;
        if (code == Z_STREAM_END)
            r->member = false;
        else if (code != Z_OK && code != Z_BUF_ERROR && r->end == before)
            reading_fails(r, r->z.msg ? r->z.msg : "the compressed data is damaged");
    }
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
    if (!r->known) {
        find_format(r, room < RAW ? room : RAW);
        if (!r->gz) return;
    }
    if (r->gz) {
        inflate_some(r, room);
        return;
    }
    size_t n = read_some(r, r->buffer + r->end, room);
    if (n == 0) r->eof = true;
    r->end += n;
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
    double rate = (double)(lines - p->before) / (now - p->start + 1e-9);
    fprintf(stderr, "\r%llu lines, %.1f lines/s", (unsigned long long)lines, rate);
    if (p->tokens) fprintf(stderr, ", %.0f tokens/s", (double)p->tokens / (now - p->start + 1e-9));
    if (share >= 0 && share <= 1) {
        int full = (int)(share * BAR);
        double made = share - p->begin;
        double left = made > 0 ? (now - p->start) * (1 - share) / made : 0;
        fprintf(stderr, " [%.*s%*s] %3.0f %%, ", full, "########################", BAR - full, "",
                share * 100);
        if (left < 120)
            fprintf(stderr, "%.0f s left ", left);
        else
            fprintf(stderr, "%.0f:%02.0f h left ", floor(left / 3600),
                    floor(fmod(left, 3600) / 60));
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

bool is_file_name(const char *name)
{
    struct stat st;
    return name && strcmp(name, "-") != 0 && (stat(name, &st) != 0 || S_ISREG(st.st_mode));
}

bool names_gz(const char *name)
{
    size_t n = strlen(name);
    return n > 3 && strcmp(name + n - 3, ".gz") == 0;
}
