// SPDX-License-Identifier: MIT
// Lines with messages, whole files, and progress; see lineio.h.
#define _GNU_SOURCE
#include "io/lineio.h"

#include <math.h>
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

struct line_reader {
    dgm_lines *lines;
    bool failed;
};

line_reader *reader_open(const char *path)
{
    line_reader *r = need(calloc(1, sizeof *r));
    dgm_error e;
    if (path && strcmp(path, "-") == 0) path = NULL;
    if (dgm_lines_open(&r->lines, path, &e) == DGM_OK) return r;
    fail(EXIT_RUNTIME, "%s", e.text);
    free(r);
    return NULL;
}

void reader_close(line_reader *r)
{
    if (!r) return;
    dgm_lines_close(&r->lines);
    free(r);
}

bool reader_failed(const line_reader *r)
{
    return r->failed;
}

double reader_share(const line_reader *r)
{
    const double share = dgm_lines_share(r->lines);
    return share > 0 ? share : -1;
}

bool reader_ready(const line_reader *r)
{
    return r->failed || dgm_lines_ready(r->lines);
}

bool reader_next(line_reader *r, const char **line, size_t *size)
{
    dgm_error e;
    bool more = false;
    if (!r->failed && dgm_lines_next(r->lines, line, size, &more, &e) != DGM_OK) {
        fail(EXIT_RUNTIME, "%s", e.text);
        r->failed = true;
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
