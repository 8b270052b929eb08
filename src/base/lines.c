// SPDX-License-Identifier: MIT
// The reader of lines, for the library and the program; see dragoman/common.h.
//
// Input is read with read(2), so that a line is there as soon as it was sent; a program that talks
// to us through pipes gets its answer before it sends more. gzip is known by its first bytes, from
// a file or through a pipe, and decompressed on the way. The buffer is a window over the text,
// |read|line ...|rest|; what is left of an unfinished line moves to the front before more is read.
//
//     file --read--> [raw --inflate-->] [foreign --convert-->] buffer
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/encoding.h"
#include "base/mem.h"
#include "base/textfile.h"

enum { BUFFER = 1 << 16, RAW = 1 << 16, READ_MAX = 1 << 20, GZIP_BITS = 15 + 16 };

struct dgm_lines {
    int fd;
    char *name;
    char *buffer;
    size_t begin, end, cap; // unread bytes are buffer[begin, end)
    size_t scanned;         // no line break in buffer[begin, scanned)
    uint64_t number;        // of lines that were read
    bool eof;
    bool looked;        // at the beginning of the text
    bool crlf, marked;  // of the line last read, of the text
    const volatile int *stop; // NULL: nobody ends the waiting
    uint64_t size, taken; // of the file, 0: unknown; bytes read from it
    // gzip
    bool known, gz; // known: the first two bytes were looked at
    bool member;    // inside one; a file may have several
    z_stream z;     // next_in: compressed bytes in raw
    unsigned char *raw;
    // other encodings than UTF-8
    dgm_encoding asked, encoding; // encoding: with the byte order that was found
    char *foreign; // bytes that are not converted yet
    size_t foreign_size;
    const char *wrong; // with what follows what was converted; NULL: nothing
};

static voidpf allocate(voidpf cookie, uInt count, uInt size)
{
    (void)cookie;
    return dgm_calloc(count, size);
}

static void release(voidpf cookie, voidpf memory)
{
    (void)cookie;
    dgm_free(memory);
}

static dgm_status open_file(dgm_lines *r, const char *path, dgm_error *err)
{
    struct stat st;
    r->fd = path ? open(path, O_RDONLY | O_CLOEXEC) : fcntl(0, F_DUPFD_CLOEXEC, 0);
    DGM_FAIL_IF(r->fd < 0 || fstat(r->fd, &st) != 0, err, DGM_ERR_IO, "cannot open '%s': %s",
                r->name, strerror(errno));
    DGM_FAIL_IF(S_ISDIR(st.st_mode), err, DGM_ERR_IO, "cannot read '%s': it is a folder", r->name);
    if (S_ISREG(st.st_mode)) r->size = (uint64_t)st.st_size;
    return DGM_OK;
}

dgm_status dgm_lines_open(dgm_lines **out, const char *path, dgm_error *err)
{
    return dgm_lines_open_as(out, path, DGM_ENCODING_UTF8, err);
}

dgm_status dgm_lines_open_as(dgm_lines **out, const char *path, dgm_encoding encoding, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF((unsigned)encoding > DGM_ENCODING_WINDOWS1252, err, DGM_ERR_ARGUMENT, "%d is no encoding",
                (int)encoding);
    dgm_lines *r = dgm_calloc(1, sizeof *r);
    if (!r) return dgm_no_memory(err);
    r->fd = -1;
    r->cap = BUFFER;
    r->buffer = dgm_malloc(r->cap);
    r->asked = r->encoding = encoding;
    if (encoding != DGM_ENCODING_UTF8) r->foreign = dgm_malloc(RAW);
    r->name = dgm_strdup(path ? path : "standard input");
    const bool ready = r->buffer && r->name && (r->foreign || encoding == DGM_ENCODING_UTF8);
    dgm_status st = ready ? open_file(r, path, err) : dgm_no_memory(err);
    if (st != DGM_OK) dgm_lines_close(&r);
    *out = r;
    return st;
}

void dgm_lines_close(dgm_lines **lines)
{
    dgm_lines *r = *lines;
    if (!r) return;
    if (r->gz) inflateEnd(&r->z);
    if (r->fd >= 0) close(r->fd);
    dgm_free(r->raw);
    dgm_free(r->foreign);
    dgm_free(r->buffer);
    dgm_free(r->name);
    dgm_free(r);
    *lines = NULL;
}

uint64_t dgm_lines_number(const dgm_lines *r)
{
    return r->number;
}

const char *dgm_lines_name(const dgm_lines *r)
{
    return r->name;
}

bool dgm_lines_crlf(const dgm_lines *r)
{
    return r->crlf;
}

bool dgm_lines_marked(const dgm_lines *r)
{
    return r->marked;
}

double dgm_lines_share(const dgm_lines *r)
{
    if (r->size == 0) return 0;
    const double share = (double)(r->taken - r->z.avail_in) / (double)r->size;
    return share < 1 ? share : 1; // a file that grows
}

bool dgm_lines_ready(const dgm_lines *r)
{
    if (r->eof || r->size || r->z.avail_in) return true;
    if (memchr(r->buffer + r->begin, '\n', r->end - r->begin)) return true;
    struct pollfd p = {r->fd, POLLIN, 0};
    return poll(&p, 1, 0) > 0;
}

void dgm_lines_stop(dgm_lines *r, const volatile int *stop)
{
    r->stop = stop;
}

static bool stopped(const dgm_lines *r)
{
    return r->stop && *r->stop;
}

// ---- bytes -------------------------------------------------------------------------------------

static dgm_status reading_fails(const dgm_lines *r, dgm_status code, const char *why,
                                dgm_error *err)
{
    return dgm_fail(err, code, "cannot read '%s' after line %llu: %s", r->name,
                    (unsigned long long)r->number, why);
}

// Until there is something to read, or nobody wants it any more. A signal may come to another
// thread or just before we wait, so we look up now and then.
static void await(const dgm_lines *r)
{
    enum { LOOK_UP = 200 }; // milliseconds
    struct pollfd p = {r->fd, POLLIN, 0};
    while (!stopped(r) && poll(&p, 1, LOOK_UP) == 0) continue;
}

// As many bytes as are there; *n is 0 at the end.
static dgm_status read_some(dgm_lines *r, void *to, size_t room, size_t *n, dgm_error *err)
{
    ssize_t got = 0;
    do {
        if (r->stop && !r->size) await(r);
        if (!stopped(r)) got = read(r->fd, to, room);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return reading_fails(r, DGM_ERR_IO, strerror(errno), err);
    *n = (size_t)got;
    r->taken += (uint64_t)got;
    return DGM_OK;
}

static dgm_status read_plain(dgm_lines *r, char *to, size_t room, size_t *n, dgm_error *err)
{
    DGM_TRY(read_some(r, to, room, n, err));
    r->eof = *n == 0;
    return DGM_OK;
}

// Documents that people take for text.
static dgm_status refuse_documents(const dgm_lines *r, dgm_error *err)
{
    const bool zip = r->end >= 4 && memcmp(r->buffer, "PK\3\4", 4) == 0;
    const bool pdf = r->end >= 5 && memcmp(r->buffer, "%PDF-", 5) == 0;
    DGM_FAIL_IF(zip || pdf, err, DGM_ERR_FORMAT,
                "'%s' is no text but %s: save it as plain text first; 'translate' reads it with --format %s", r->name,
                pdf ? "a PDF document" : "a ZIP archive, as .docx, .odt and .epub files are",
                pdf ? "pdf" : "docx, odt, epub, ...");
    return DGM_OK;
}

// Two bytes tell: what was read of a compressed file goes to raw.
static dgm_status find_format(dgm_lines *r, dgm_error *err)
{
    const size_t room = r->encoding == DGM_ENCODING_UTF8 ? RAW : RAW / (DGM_ENCODING_GROWTH + 1);
    for (size_t n = 0; r->end < 2 && !r->eof; r->end += n)
        DGM_TRY(read_plain(r, r->buffer + r->end, room - r->end - 1, &n, err));
    r->known = true;
    const unsigned char *magic = (const unsigned char *)r->buffer;
    DGM_TRY(refuse_documents(r, err));
    if (r->end < 2 || magic[0] != 0x1f || magic[1] != 0x8b) return DGM_OK;
    r->raw = dgm_malloc(RAW);
    if (!r->raw) return dgm_no_memory(err);
    memcpy(r->raw, r->buffer, r->end);
    r->z = (z_stream){
        .zalloc = allocate, .zfree = release, .next_in = r->raw, .avail_in = (uInt)r->end};
    r->begin = r->end = r->scanned = 0;
    if (inflateInit2(&r->z, GZIP_BITS) != Z_OK) return dgm_no_memory(err);
    r->gz = r->member = true;
    return DGM_OK;
}

static dgm_status refill_raw(dgm_lines *r, dgm_error *err)
{
    size_t n = 0;
    DGM_TRY(read_some(r, r->raw, RAW, &n, err));
    r->z.next_in = r->raw;
    r->z.avail_in = (uInt)n;
    return DGM_OK;
}

// Behind a member: the end, padding, or the next member.
static dgm_status next_member(dgm_lines *r, dgm_error *err)
{
    while (r->z.avail_in && *r->z.next_in == 0) {
        r->z.next_in++;
        r->z.avail_in--;
    }
    if (r->z.avail_in == 0) DGM_TRY(refill_raw(r, err));
    if (r->z.avail_in == 0) {
        r->eof = true;
    } else if (*r->z.next_in == 0x1f) {
        inflateReset(&r->z);
        r->member = true;
    } else if (*r->z.next_in != 0) {
        return reading_fails(r, DGM_ERR_FORMAT, "something else follows the compressed data", err);
    }
    return DGM_OK;
}

// Decompresses until there is something new.
static dgm_status inflate_some(dgm_lines *r, char *to, size_t room, size_t *n, dgm_error *err)
{
    *n = 0;
    while (*n == 0 && !r->eof) {
        if (!r->member) {
            DGM_TRY(next_member(r, err));
            continue;
        }
        if (r->z.avail_in == 0) DGM_TRY(refill_raw(r, err));
        if (r->z.avail_in == 0 && stopped(r))
            r->eof = true;
        else if (r->z.avail_in == 0)
            return reading_fails(r, DGM_ERR_FORMAT, "the compressed file is cut short", err);
        if (r->eof) break;
        r->z.next_out = (unsigned char *)to;
        r->z.avail_out = (uInt)room;
        const int code = inflate(&r->z, Z_NO_FLUSH);
        *n = room - r->z.avail_out;
        if (code == Z_STREAM_END)
            r->member = false;
        else if (code == Z_MEM_ERROR)
            return dgm_no_memory(err);
        else if (code != Z_OK && code != Z_BUF_ERROR && *n == 0)
            return reading_fails(r, DGM_ERR_FORMAT,
                                 r->z.msg ? r->z.msg : "the compressed data is damaged", err);
    }
    return DGM_OK;
}

static dgm_status read_bytes(dgm_lines *r, char *to, size_t room, size_t *n, dgm_error *err)
{
    return r->gz ? inflate_some(r, to, room, n, err) : read_plain(r, to, room, n, err);
}

// ---- encodings ---------------------------------------------------------------------------------

// Converts what is in `foreign` into the buffer. What cannot be converted ends the text, but lines before it come
// first: it is an error of the next call.
static dgm_status convert(dgm_lines *r, dgm_error *err)
{
    if (!r->looked && r->foreign_size)
        r->encoding = dgm_encoding_order(r->asked, r->foreign, r->foreign_size, &r->wrong);
    r->looked |= r->foreign_size > 0;
    dgm_converted c = {.wrong = r->wrong};
    if (!c.wrong)
        c = dgm_encoding_convert(r->encoding, r->foreign, r->foreign_size, r->eof, r->buffer + r->end);
    r->end += c.made;
    r->foreign_size -= c.used;
    memmove(r->foreign, r->foreign + c.used, r->foreign_size);
    r->wrong = c.wrong;
    if (!r->wrong) return DGM_OK;
    r->eof = false;
    if (c.made) return DGM_OK;
    return dgm_fail(err, DGM_ERR_TEXT, "%s:%llu: not %s: %s", r->name, (unsigned long long)r->number + 1,
                    dgm_encoding_name(r->asked), r->wrong);
}

static dgm_status read_foreign(dgm_lines *r, size_t room, dgm_error *err)
{
    size_t n = 0, most = room / DGM_ENCODING_GROWTH;
    if (most > RAW) most = RAW;
    if (!r->wrong && !r->eof) DGM_TRY(read_bytes(r, r->foreign + r->foreign_size, most - r->foreign_size, &n, err));
    r->foreign_size += n;
    return convert(r, err);
}

// Text in UTF-16 would be read as nonsense.
static dgm_status look(dgm_lines *r, dgm_error *err)
{
    if (r->looked || r->end == 0 || r->encoding != DGM_ENCODING_UTF8) return DGM_OK;
    r->looked = true;
    DGM_FAIL_IF(dgm_encoding_guess(r->buffer, r->end) != DGM_ENCODING_UTF8, err, DGM_ERR_FORMAT,
                "'%s' is UTF-16, not UTF-8: read it with --encoding utf-16 (translate, score, eval, "
                "tokenize), or convert it",
                r->name);
    return DGM_OK;
}

// ---- lines -------------------------------------------------------------------------------------

static dgm_status too_long(const dgm_lines *r, dgm_error *err)
{
    return dgm_fail(err, DGM_ERR_TEXT, "%s:%llu: line is longer than %zu MiB", r->name,
                    (unsigned long long)r->number + 1, DGM_LINE_MAX >> 20);
}

// More bytes behind `end`, or eof.
static dgm_status fill(dgm_lines *r, dgm_error *err)
{
    if (!r->known) {
        DGM_TRY(find_format(r, err));
        if (r->encoding == DGM_ENCODING_UTF8) return look(r, err);
        memcpy(r->foreign, r->buffer, r->end);
        r->foreign_size = r->end;
        r->end = 0;
        return convert(r, err);
    }
    if (r->begin > 0) {
        memmove(r->buffer, r->buffer + r->begin, r->end - r->begin);
        r->end -= r->begin;
        r->scanned -= r->begin;
        r->begin = 0;
    }
    if (r->end > DGM_LINE_MAX) return too_long(r, err);
    if (r->cap - r->end < BUFFER / 2)
        DGM_TRY(dgm_grow(&r->buffer, &r->cap, r->cap + BUFFER, 1, err));
    size_t room = r->cap - r->end - 1; // a NUL must fit behind the last line
    if (room > READ_MAX) room = READ_MAX;
    if (r->encoding != DGM_ENCODING_UTF8) return read_foreign(r, room, err);
    size_t n = 0;
    DGM_TRY(read_bytes(r, r->buffer + r->end, room, &n, err));
    r->end += n;
    return look(r, err);
}

// A byte order mark at the beginning of a file is no part of its text.
static void skip_mark(dgm_lines *r, size_t end)
{
    if (end - r->begin < 3 || memcmp(r->buffer + r->begin, "\xef\xbb\xbf", 3) != 0) return;
    r->begin += 3;
    r->marked = r->encoding == DGM_ENCODING_UTF8; // that of UTF-16 says the byte order and no more
}

dgm_status dgm_lines_next(dgm_lines *r, const char **line, size_t *size, bool *more, dgm_error *err)
{
    *more = false;
    char *stop = NULL;
    while (!(stop = memchr(r->buffer + r->scanned, '\n', r->end - r->scanned)) && !r->eof) {
        r->scanned = r->end;
        DGM_TRY(fill(r, err));
    }
    if (!stop && (r->begin == r->end || stopped(r))) return DGM_OK;
    size_t end = stop ? (size_t)(stop - r->buffer) : r->end;
    if (end - r->begin > DGM_LINE_MAX) return too_long(r, err);
    if (r->number++ == 0) skip_mark(r, end);
    *line = r->buffer + r->begin;
    r->begin = r->scanned = stop ? end + 1 : end;
    r->crlf = stop && r->buffer + end > *line && r->buffer[end - 1] == '\r';
    if (r->buffer + end > *line && r->buffer[end - 1] == '\r') end--;
    r->buffer[end] = 0;
    *size = (size_t)(r->buffer + end - *line);
    *more = true;
    return DGM_OK;
}

dgm_status dgm_lines_each(const char *path, dgm_line_taker take, void *cookie, dgm_error *err)
{
    dgm_lines *in = NULL;
    DGM_TRY(dgm_lines_open(&in, path, err));
    dgm_status st = DGM_OK;
    while (st == DGM_OK) {
        dgm_text line;
        bool more;
        st = dgm_lines_next(in, &line.data, &line.size, &more, err);
        if (st != DGM_OK || !more) break;
        st = take(cookie, line, err);
        if (st == DGM_ERR_FORMAT || st == DGM_ERR_TEXT || st == DGM_ERR_UNSUPPORTED)
            dgm_lines_blame(in, err);
    }
    dgm_lines_close(&in);
    return st;
}

void dgm_lines_blame(const dgm_lines *r, dgm_error *err)
{
    dgm_error_prefix(err, "%s:%llu", r->name, (unsigned long long)r->number);
}

static dgm_status collect(void *cookie, dgm_text line, dgm_error *err)
{
    dgm_writer *w = cookie;
    dgm_write_bytes(w, line.data, line.size);
    dgm_write_u8(w, '\n');
    return w->failed ? dgm_no_memory(err) : DGM_OK;
}

dgm_status dgm_lines_collect(const char *path, dgm_writer *w, dgm_error *err)
{
    return dgm_lines_each(path, collect, w, err);
}

dgm_text dgm_line_cut(dgm_text *text)
{
    const char *stop = text->size ? memchr(text->data, '\n', text->size) : NULL;
    dgm_text line = {text->data, stop ? (size_t)(stop - text->data) : text->size};
    const size_t used = line.size + (stop != NULL);
    if (used) text->data += used;
    text->size -= used;
    if (line.size && line.data[line.size - 1] == '\r') line.size--;
    return line;
}
