// SPDX-License-Identifier: MIT
// Lines of plain and gzip files; see textfile.h.
//
// zlib reads plain files as they are, so there is one path for both. The line buffer is a window
// over the file: |done|line ...|rest| ; what is left of an unfinished line moves to the front
// before more is read.
#define _GNU_SOURCE
#include "base/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mapfile.h"
#include "base/mem.h"

enum { FIRST_BUFFER = 1 << 16 };

struct dgm_textin {
    gzFile file;
    char *path;
    char *buffer;
    size_t cap, begin, end; // unread bytes are buffer[begin, end)
    uint64_t line, bytes;   // bytes: of the file on disk, 0 if unknown
    bool eof;
};

dgm_status dgm_textin_open(dgm_textin **out, const char *path, dgm_error *err)
{
    *out = NULL;
    dgm_textin *in = dgm_calloc(1, sizeof *in);
    if (!in) return dgm_no_memory(err);
    in->path = dgm_strdup(path);
    in->buffer = dgm_malloc(FIRST_BUFFER);
    in->cap = FIRST_BUFFER;
    if (!in->path || !in->buffer) {
        dgm_textin_close(&in);
        return dgm_no_memory(err);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    dgm_status st = DGM_OK;
    if (fd < 0 || fstat(fd, &info) != 0)
        st = dgm_fail(err, DGM_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    else if (S_ISDIR(info.st_mode))
        st = dgm_fail(err, DGM_ERR_IO, "cannot open '%s': it is a folder", path);
    if (st == DGM_OK) {
        in->bytes = S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
        in->file = gzdopen(fd, "rb");
        if (!in->file)
            st = dgm_no_memory(err);
        else
            gzbuffer(in->file, 1 << 17);
    }
    if (st != DGM_OK) {
        if (fd >= 0 && !in->file) close(fd);
        dgm_textin_close(&in);
        return st;
    }
    *out = in;
    return DGM_OK;
}

void dgm_textin_close(dgm_textin **in)
{
    dgm_textin *r = *in;
    if (!r) return;
    if (r->file) gzclose_r(r->file);
    dgm_free(r->path);
    dgm_free(r->buffer);
    dgm_free(r);
    *in = NULL;
}

static dgm_status too_long(const dgm_textin *in, dgm_error *err)
{
    return dgm_fail(err, DGM_ERR_TEXT, "%s:%llu: line is longer than %zu MiB", in->path,
                    (unsigned long long)in->line + 1, DGM_TEXTFILE_LINE_MAX >> 20);
}

// More bytes behind `end`; sets eof.
static dgm_status refill(dgm_textin *in, dgm_error *err)
{
    if (in->begin > 0) {
        memmove(in->buffer, in->buffer + in->begin, in->end - in->begin);
        in->end -= in->begin;
        in->begin = 0;
    }
    if (in->end > DGM_TEXTFILE_LINE_MAX) return too_long(in, err);
    if (in->end == in->cap) DGM_TRY(dgm_grow(&in->buffer, &in->cap, in->cap + 1, 1, err));
    size_t room = in->cap - in->end;
    int n = gzread(in->file, in->buffer + in->end, (unsigned)(room < (1u << 30) ? room : 1u << 30));
    int code = Z_OK;
    const char *why = gzerror(in->file, &code);
    if (n < 0 || (n == 0 && code != Z_OK && code != Z_STREAM_END))
        return dgm_fail(err, code == Z_ERRNO ? DGM_ERR_IO : DGM_ERR_FORMAT,
                        "cannot read '%s' after line %llu: %s", in->path,
                        (unsigned long long)in->line,
                        code == Z_ERRNO       ? strerror(errno)
                        : code == Z_BUF_ERROR ? "the compressed file is cut short"
                                              : why);
    in->end += (size_t)n;
    in->eof = n == 0;
    return DGM_OK;
}

dgm_status dgm_textin_next(dgm_textin *in, const char **line, size_t *size, bool *more,
                           dgm_error *err)
{
    size_t scanned = 0;
    *more = false;
    for (;;) {
        char *from = in->buffer + in->begin;
        size_t have = in->end - in->begin;
        char *stop = memchr(from + scanned, '\n', have - scanned);
        if (!stop && !in->eof) {
            scanned = have;
            DGM_TRY(refill(in, err));
            continue;
        }
        if (!stop && have == 0) return DGM_OK;
        size_t n = stop ? (size_t)(stop - from) : have;
        if (n > DGM_TEXTFILE_LINE_MAX) return too_long(in, err);
        in->begin += n + (stop ? 1 : 0);
        in->line++;
        *line = from;
        *size = n > 0 && from[n - 1] == '\r' ? n - 1 : n;
        *more = true;
        return DGM_OK;
    }
}

uint64_t dgm_textin_line(const dgm_textin *in)
{
    return in->line;
}

const char *dgm_textin_path(const dgm_textin *in)
{
    return in->path;
}

double dgm_textin_share(const dgm_textin *in)
{
    if (in->bytes == 0) return 0;
    double at = (double)gzoffset(in->file) / (double)in->bytes;
    return at < 0 ? 0 : at > 1 ? 1 : at;
}

// ---- writing ----------------------------------------------------------------------------------

struct dgm_textout {
    FILE *plain;
    gzFile gz;
    char *path, *temporary;
    bool direct; // temporary is the file itself: nothing to rename or remove
    bool failed;
    int code; // errno of the first failure
};

void dgm_textout_discard(dgm_textout **out)
{
    dgm_textout *w = *out;
    if (!w) return;
    if (w->gz) gzclose_w(w->gz);
    if (w->plain) fclose(w->plain);
    if (w->temporary && !w->direct && (w->gz || w->plain)) unlink(w->temporary);
    dgm_free(w->temporary);
    dgm_free(w->path);
    dgm_free(w);
    *out = NULL;
}

dgm_status dgm_textout_open(dgm_textout **out, const char *path, dgm_error *err)
{
    *out = NULL;
    size_t n = strlen(path);
    dgm_textout *w = dgm_calloc(1, sizeof *w);
    if (!w) return dgm_no_memory(err);
    w->path = dgm_strdup(path);
    w->temporary = dgm_malloc(n + 32);
    if (!w->path || !w->temporary) {
        dgm_textout_discard(&w);
        return dgm_no_memory(err);
    }
    w->direct = dgm_file_is_special(path);
    if (w->direct)
        memcpy(w->temporary, path, n + 1);
    else
        snprintf(w->temporary, n + 32, "%s.tmp-%ld", path, (long)getpid());
    if (n > 3 && strcmp(path + n - 3, ".gz") == 0)
        w->gz = gzopen(w->temporary, "wb6");
    else
        w->plain = fopen(w->temporary, "wb");
    if (!w->gz && !w->plain) {
        dgm_status st = dgm_fail(err, DGM_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
        dgm_textout_discard(&w);
        return st;
    }
    *out = w;
    return DGM_OK;
}

void dgm_textout_write(dgm_textout *w, const void *data, size_t size)
{
    const char *p = data;
    while (size > 0 && !w->failed) {
        size_t part = size < (1u << 30) ? size : 1u << 30;
        bool good = w->gz ? gzwrite(w->gz, p, (unsigned)part) == (int)part
                          : fwrite(p, 1, part, w->plain) == part;
        if (!good) {
            w->failed = true;
            w->code = errno;
        }
        p += part;
        size -= part;
    }
}

dgm_status dgm_textout_commit(dgm_textout **out, dgm_error *err)
{
    dgm_textout *w = *out;
    int code = !w->failed ? 0 : w->code ? w->code : EIO;
    if (w->gz && gzclose_w(w->gz) != Z_OK && !code) code = errno ? errno : EIO;
    if (w->plain && fclose(w->plain) != 0 && !code) code = errno;
    w->gz = NULL;
    w->plain = NULL;
    if (!code && !w->direct && rename(w->temporary, w->path) != 0) code = errno;
    dgm_status st = DGM_OK;
    if (code) {
        if (!w->direct) unlink(w->temporary);
        st = dgm_fail(err, DGM_ERR_IO, "cannot write '%s': %s", w->path, strerror(code));
    }
    dgm_textout_discard(out);
    return st;
}

dgm_status dgm_textout_probe(const char *path, dgm_error *err)
{
    dgm_textout *w = NULL;
    if (!path) return DGM_OK;
    if (dgm_file_is_special(path)) { // opening a pipe would wait for its reader
        DGM_FAIL_IF(access(path, W_OK) != 0, err, DGM_ERR_IO, "cannot write '%s': %s", path,
                    strerror(errno));
        return DGM_OK;
    }
    DGM_TRY(dgm_textout_open(&w, path, err));
    dgm_textout_discard(&w);
    return DGM_OK;
}
