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
