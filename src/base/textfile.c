// SPDX-License-Identifier: MIT
// Writing of plain and gzip files; see textfile.h.
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
#include "base/outfile.h"

struct dgm_textout {
    dgm_outfile f;
    gzFile gz; // NULL: plain
    int code;  // errno of the first failure, 0: none yet
};

void dgm_textout_discard(dgm_textout **out)
{
    dgm_textout *w = *out;
    if (!w) return;
    if (w->gz) gzclose_w(w->gz);
    dgm_outfile_discard(&w->f);
    dgm_free(w);
    *out = NULL;
}

// zlib gets a descriptor of its own, which it closes.
static gzFile open_gz(FILE *file)
{
    const int fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
    gzFile gz = fd >= 0 ? gzdopen(fd, "wb6") : NULL;
    if (fd >= 0 && !gz) close(fd);
    return gz;
}

dgm_status dgm_textout_open(dgm_textout **out, const char *path, dgm_error *err)
{
    *out = NULL;
    const size_t n = strlen(path);
    dgm_textout *w = dgm_calloc(1, sizeof *w);
    if (!w) return dgm_no_memory(err);
    dgm_status st = dgm_outfile_open(&w->f, path, true, err);
    if (st == DGM_OK && n > 3 && strcmp(path + n - 3, ".gz") == 0) {
        w->gz = open_gz(w->f.file);
        if (!w->gz) st = dgm_no_memory(err);
    }
    if (st != DGM_OK) dgm_textout_discard(&w);
    *out = w;
    return st;
}

void dgm_textout_write(dgm_textout *w, const void *data, size_t size)
{
    const char *p = data;
    while (size > 0 && !w->code) {
        size_t part = size < (1u << 30) ? size : 1u << 30;
        bool good = w->gz ? gzwrite(w->gz, p, (unsigned)part) == (int)part
                          : fwrite(p, 1, part, w->f.file) == part;
        if (!good) w->code = dgm_errno();
        p += part;
        size -= part;
    }
}

dgm_status dgm_textout_commit(dgm_textout **out, dgm_error *err)
{
    dgm_textout *w = *out;
    int code = w->code;
    if (w->gz && gzclose_w(w->gz) != Z_OK && !code) code = dgm_errno();
    w->gz = NULL;
    const dgm_status st = dgm_outfile_commit(&w->f, code, err);
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
