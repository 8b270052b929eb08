// SPDX-License-Identifier: MIT
// Lines with messages, and whole files; see lineio.h.
#define _GNU_SOURCE
#include "io/lineio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "dragoman/common.h"
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

bool file_checksum(const char *path, uint64_t most, uint64_t *bytes, uint32_t *sum)
{
    enum { BLOCK = 1 << 18 };
    FILE *f = fopen(path, "rbe");
    unsigned char *block = need(malloc(BLOCK));
    *bytes = *sum = 0;
    while (f && *bytes < most) {
        const size_t n =
            fread(block, 1, most - *bytes < BLOCK ? (size_t)(most - *bytes) : BLOCK, f);
        if (n == 0) break;
        *sum = checksum(*sum, block, n);
        *bytes += n;
    }
    free(block);
    const bool fine = f && !ferror(f);
    if (f) fclose(f);
    return fine;
}

void *need(void *memory)
{
    if (!memory) exit(fail(EXIT_RUNTIME, "out of memory"));
    return memory;
}

// ---- reading ----------------------------------------------------------------------------------

// Files one after the other, or texts; all files are open from the beginning, so that one that is
// missing is known before anything is done with the others.
struct line_reader {
    dgm_lines **files;
    double *sizes; // of the files, 0: not known
    const char *const *texts;
    const char *rest; // of the text at `at`, NULL: it was not begun
    char *line;       // a line of it
    int count, at;
    const char *(*list)(const void *cookie, size_t index, size_t *size); // NULL: files or texts
    const void *cookie;
    size_t list_count, list_at;
    bool crlf; // of a line of the texts
    bool failed;
};

static dgm_encoding encoding; // of what is read

void reader_encoding(const char *name)
{
    encoding = DGM_ENCODING_UTF8;
    if (name) dgm_encoding_named(name, &encoding, NULL); // options take no other names
}

bool is_regular(const char *name)
{
    struct stat st;
    const bool in = !name || strcmp(name, "-") == 0;
    return (in ? fstat(0, &st) : stat(name, &st)) == 0 && S_ISREG(st.st_mode);
}

bool shown_at_once(const char *name)
{
    return (!name || strcmp(name, "-") == 0) && isatty(1);
}

static double size_of(const char *path)
{
    struct stat st;
    if (!is_regular(path)) return 0;
    return (path && strcmp(path, "-") != 0 ? stat(path, &st) : fstat(0, &st)) == 0
               ? (double)st.st_size
               : 0;
}

static line_reader *open_files(const char *const *paths, int count, dgm_encoding as)
{
    line_reader *r = need(calloc(1, sizeof *r));
    r->files = need(calloc((size_t)count + 1, sizeof(dgm_lines *)));
    r->sizes = need(calloc((size_t)count + 1, sizeof *r->sizes));
    for (; r->count < count; r->count++) {
        const char *path = paths[r->count];
        dgm_error e;
        if (path && strcmp(path, "-") == 0) path = NULL;
        if (dgm_lines_open_as(&r->files[r->count], path, as, &e) != DGM_OK) {
            fail(EXIT_RUNTIME, "%s", e.text);
            reader_close(r);
            return NULL;
        }
        r->sizes[r->count] = size_of(path);
    }
    return r;
}

line_reader *reader_open_files(const char *const *paths, int count)
{
    return open_files(paths, count, encoding);
}

line_reader *reader_open(const char *path)
{
    return open_files(&path, 1, encoding);
}

line_reader *reader_open_output(const char *path)
{
    return open_files(&path, 1, DGM_ENCODING_UTF8);
}

line_reader *reader_open_texts(const char *const *texts, int count)
{
    line_reader *r = need(calloc(1, sizeof *r));
    r->texts = texts;
    r->count = count;
    return r;
}

line_reader *reader_open_list(const char *(*line)(const void *cookie, size_t index, size_t *size), const void *cookie,
                              size_t count)
{
    line_reader *r = need(calloc(1, sizeof *r));
    r->list = line;
    r->cookie = cookie;
    r->list_count = count;
    return r;
}

void reader_close(line_reader *r)
{
    if (!r) return;
    for (int i = 0; r->files && i < r->count; i++) dgm_lines_close(&r->files[i]);
    free(r->files);
    free(r->sizes);
    free(r->line);
    free(r);
}

const char *reader_name(const line_reader *r)
{
    if (r->texts) return "--text";
    if (r->list) return "the document";
    return dgm_lines_name(r->files[r->at < r->count ? r->at : r->count - 1]);
}

void reader_stop(line_reader *r, const volatile int *stop)
{
    for (int i = 0; r->files && i < r->count; i++) dgm_lines_stop(r->files[i], stop);
}

bool reader_failed(const line_reader *r)
{
    return r->failed;
}

bool reader_crlf(const line_reader *r)
{
    if (r->texts || r->list) return r->crlf;
    return r->at < r->count && dgm_lines_crlf(r->files[r->at]);
}

bool reader_marked(const line_reader *r)
{
    return r->files && r->count && dgm_lines_marked(r->files[0]);
}

double reader_share(const line_reader *r)
{
    double all = 0, done = 0;
    if (r->texts) return (double)r->at / r->count;
    if (r->list) return r->list_count ? (double)r->list_at / (double)r->list_count : 1;
    for (int i = 0; i < r->count; i++) {
        if (r->sizes[i] <= 0 && r->at <= i) return -1;
        all += r->sizes[i];
        done += i < r->at ? r->sizes[i] : r->sizes[i] * dgm_lines_share(r->files[i]);
    }
    return done > 0 ? done / all : -1;
}

bool reader_ready(const line_reader *r)
{
    return r->failed || !r->files || r->at == r->count || dgm_lines_ready(r->files[r->at]);
}

static bool next_of_texts(line_reader *r, const char **line, size_t *size)
{
    if (r->at == r->count) return false;
    const char *from = r->rest ? r->rest : r->texts[r->at];
    const size_t n = strcspn(from, "\n");
    r->line = need(realloc(r->line, n + 1));
    memcpy(r->line, from, n);
    r->crlf = n && r->line[n - 1] == '\r' && from[n];
    *size = n && r->line[n - 1] == '\r' ? n - 1 : n;
    r->line[*size] = 0;
    *line = r->line;
    r->rest = from[n] && from[n + 1] ? from + n + 1 : NULL;
    if (!r->rest) r->at++;
    return true;
}

bool reader_next(line_reader *r, const char **line, size_t *size)
{
    dgm_error e;
    bool more = false;
    if (r->texts) return next_of_texts(r, line, size);
    if (r->list) {
        if (r->list_at < r->list_count) *line = r->list(r->cookie, r->list_at, size);
        return r->list_at < r->list_count && ++r->list_at;
    }
    while (!r->failed && !more && r->at < r->count) {
        if (dgm_lines_next(r->files[r->at], line, size, &more, &e) != DGM_OK) {
            fail(EXIT_RUNTIME, "%s", e.text);
            r->failed = true;
        } else if (!more) {
            r->at++;
        }
    }
    return more;
}

// ---- whole files ------------------------------------------------------------------------------

bool text_file_read(text_file *f, const char *path)
{
    memset(f, 0, sizeof *f);
    line_reader *r = reader_open(path);
    if (!r) return false;
    size_t used = 0, cap = 0, lines_cap = 0, size = 0;
    const char *line = NULL;
    while (reader_next(r, &line, &size)) {
        if (used + size + 1 > cap) {
            cap = (used + size + 1) * 2;
            f->data = need(realloc(f->data, cap));
        }
        if (f->count == lines_cap) {
            lines_cap = lines_cap ? lines_cap * 2 : 1024;
            f->lines = need(realloc(f->lines, lines_cap * sizeof *f->lines));
        }
        memcpy(f->data + used, line, size + 1);
        f->lines[f->count++].size = size;
        used += size + 1;
    }
    const bool fine = !reader_failed(r);
    reader_close(r);
    const char *at = f->data; // which does not move any more
    for (size_t i = 0; i < f->count; i++) {
        f->lines[i].data = at;
        at += f->lines[i].size + 1;
    }
    if (!fine) text_file_free(f);
    return fine;
}

void text_file_free(text_file *f)
{
    free(f->data);
    free(f->lines);
    memset(f, 0, sizeof *f);
}

// ---- names ------------------------------------------------------------------------------------

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
