// SPDX-License-Identifier: MIT
// The journal of a corpus job; see journal.h.
//
// A new journal is written under another name and renamed, so that there is never half a
// description. Lines are appended with one write each, after the output they speak of. A lock keeps
// a second program from the same output.
#define _GNU_SOURCE
#include "io/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dragoman/common.h"
#include "io/lineio.h"
#include "options.h"

#define MAGIC "dragoman progress 4\n"
#define BEGIN "begin\n"
#define INPUT "input"
enum { MARK_MAX = 256, MARK_NUMBERS = 10 };

struct journal {
    int fd; // -1: no file yet
    const char *output;
    char *path, *fresh; // OUTPUT.progress, and the name under which it is made
    char *head;         // MAGIC and description
    size_t head_size;
};

static char *join(const char *a, const char *b)
{
    char *text = need(malloc(strlen(a) + strlen(b) + 1));
    return strcat(strcpy(text, a), b);
}

journal *journal_open(const char *output)
{
    journal *j = need(calloc(1, sizeof *j));
    j->fd = -1;
    j->output = output;
    j->path = join(output, ".progress");
    j->fresh = join(output, ".progress.new");
    j->head = join(MAGIC, "");
    j->head_size = strlen(MAGIC);
    return j;
}

static void add(journal *j, const char *text, bool plain)
{
    size_t n = strlen(text);
    j->head = need(realloc(j->head, j->head_size + n + 1));
    char *to = j->head + j->head_size;
    memcpy(to, text, n + 1);
    for (size_t i = 0; !plain && i < n; i++)
        if ((unsigned char)to[i] < 0x20) to[i] = ' ';
    j->head_size += n;
}

void journal_describe(journal *j, const char *name, const char *value, const char *shown)
{
    add(j, name, false);
    add(j, "\t", true);
    add(j, value, false);
    if (shown) add(j, "\t", true);
    if (shown) add(j, shown, false);
    add(j, "\n", true);
}

#define STANDARD_INPUT "standard input"
enum { IDENTITY = 48 };

// Size and check of a file's first bytes; "" of what is no file.
static void identify(const char *shown, uint64_t most, char text[IDENTITY])
{
    const char *path = strcmp(shown, STANDARD_INPUT) == 0 ? "/dev/stdin" : shown;
    uint64_t bytes = 0;
    uint32_t check = 0;
    text[0] = 0;
    if (is_regular(path) && file_checksum(path, most, &bytes, &check))
        snprintf(text, IDENTITY, "%" PRIu64 ":%08" PRIx32, bytes, check);
}

void journal_describe_input(journal *j, int index, const char *path)
{
    char name[24] = INPUT, identity[IDENTITY];
    const char *shown = !path || strcmp(path, "-") == 0 ? STANDARD_INPUT : path;
    if (index) snprintf(name, sizeof name, INPUT " %d", index + 1);
    identify(shown, UINT64_MAX, identity);
    journal_describe(j, name, identity, shown);
}

static bool complain(const journal *j, const char *what)
{
    fail(EXIT_RUNTIME, "cannot %s '%s': %s", what, j->path, strerror(errno));
    return false;
}

static bool write_whole(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

static bool take_lock(journal *j)
{
    if (flock(j->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
    fail(EXIT_RUNTIME, "another program is writing '%s'", j->output);
    return false;
}

journal_state journal_look(const char *output)
{
    char *path = join(output, ".progress");
    const int old = open(path, O_RDONLY | O_CLOEXEC);
    // Whoever holds the lock of an existing journal is still at work.
    const bool busy = old >= 0 && flock(old, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (old >= 0) close(old);
    free(path);
    return busy ? JOURNAL_BUSY : old >= 0 ? JOURNAL_LEFT : JOURNAL_NONE;
}

bool journal_begin(journal *j)
{
    if (journal_look(j->output) == JOURNAL_BUSY) {
        fail(EXIT_RUNTIME, "another program is writing '%s'", j->output);
        return false;
    }
    j->fd = open(j->fresh, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (j->fd < 0) return complain(j, "write");
    if (!take_lock(j)) return false;
    add(j, BEGIN, true);
    if (!write_whole(j->fd, j->head, j->head_size) || fsync(j->fd) != 0 ||
        rename(j->fresh, j->path) != 0) {
        complain(j, "write");
        unlink(j->fresh);
        return false;
    }
    return true;
}

bool journal_record(journal *j, const journal_mark *m)
{
    char line[MARK_MAX];
    int n =
        snprintf(line, sizeof line,
                 "%" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu32
                 " %" PRIu64 " %" PRIu32,
                 m->lines, m->input, m->bytes, m->output, m->failures, m->failed, m->reasons, m->dumped, m->dump);
    n +=
        snprintf(line + n, sizeof line - (size_t)n, " %" PRIu32 "\n", checksum(0, line, (size_t)n));
    if (!write_whole(j->fd, line, (size_t)n)) return complain(j, "write");
    return true;
}

void journal_close(journal *j, bool done)
{
    if (!j) return;
    if (done && j->fd >= 0) unlink(j->path);
    if (j->fd >= 0) close(j->fd);
    free(j->path);
    free(j->fresh);
    free(j->head);
    free(j);
}

// ---- going on ---------------------------------------------------------------------------------

// The whole file, NUL-terminated; NULL with errno set. *size: its bytes.
static char *read_file(int fd, size_t *size)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return NULL;
    char *text = need(malloc((size_t)st.st_size + 1));
    size_t used = 0;
    while (used < (size_t)st.st_size) {
        ssize_t n = pread(fd, text + used, (size_t)st.st_size - used, (off_t)used);
        if (n < 0) {
            free(text);
            return NULL;
        }
        if (n == 0) break;
        used += (size_t)n;
    }
    text[used] = 0;
    *size = used;
    return text;
}

// Value of a line "NAME<TAB>VALUE" in a description, up to its line break; NULL without it.
static const char *value_of(const char *head, const char *name, size_t n)
{
    for (const char *p = head; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (strncmp(p, name, n) == 0 && p[n] == '\t') return p + n + 1;
    return NULL;
}

// How a message calls the value at the beginning of a line's rest: what is shown for it, or itself.
static void call(const char *value, char *text, size_t size)
{
    const size_t n = strcspn(value, "\t\n");
    const bool named = value[n] == '\t';
    const char *shown = named ? value + n + 1 : value;
    const size_t length = named ? strcspn(shown, "\n") : n;
    snprintf(text, size, length ? "'%.*s'" : "not given", (int)length, shown);
}

// Does the file that is shown there begin with all of what it was?
static bool has_grown(const char *is, const char *was)
{
    char size[IDENTITY], identity[IDENTITY], *shown;
    int64_t bytes = 0;
    const size_t n = strcspn(is, "\t\n"), m = strcspn(was, "\t\n"), digits = strcspn(was, ":\t\n");
    if (is[n] != '\t' || was[m] != '\t' || m >= IDENTITY) return false;
    const size_t length = strcspn(is + n + 1, "\n");
    if (strcspn(was + m + 1, "\n") != length || memcmp(is + n + 1, was + m + 1, length) != 0) return false;
    snprintf(size, sizeof size, "%.*s", (int)digits, was);
    if (dgm_number_integer("size", size, 0, INT64_MAX, &bytes, NULL) != DGM_OK) return false;
    shown = need(strndup(is + n + 1, length));
    identify(shown, (uint64_t)bytes, identity);
    free(shown);
    return strlen(identity) == m && memcmp(identity, was, m) == 0;
}

// Of an input that has another content, or none that could be compared.
static bool may_be_the_input(const char *row, const char *is, const char *was)
{
    if (strncmp(row, INPUT, strlen(INPUT)) != 0) return false;
    return !was || strcspn(was, "\t\n") == 0 || strcspn(is, "\t\n") == 0 || has_grown(is, was);
}

// Says how the first line of `now` that differs reads in the journal.
static bool differs(const journal *j, const char *old)
{
    for (const char *p = strchr(j->head, '\n') + 1; *p; p = strchr(p, '\n') + 1) {
        const size_t name = strcspn(p, "\t\n");
        const char *is = p + name + 1, *was = value_of(old, p, name);
        const size_t size = strcspn(is, "\t\n");
        if (was && strcspn(was, "\t\n") == size && strncmp(was, is, size) == 0) continue;
        if (may_be_the_input(p, is, was)) continue;
        char now[512], then[512] = "not given";
        call(is, now, sizeof now);
        if (was) call(was, then, sizeof then);
        if (strcmp(now, then) == 0)
            fail(EXIT_RUNTIME, "cannot resume '%s': %.*s %s has changed since the job was interrupted",
                 j->output, (int)name, p, now);
        else
            fail(EXIT_RUNTIME, "cannot resume '%s': %.*s is %s, in the interrupted job it was %s",
                 j->output, (int)name, p, now, then);
        return true;
    }
    return false;
}

// The numbers of a mark's line, separated by spaces; false unless it has them all and its check.
static bool read_mark(const char *line, const char *stop, journal_mark *m)
{
    char text[MARK_MAX];
    int64_t number[MARK_NUMBERS];
    size_t size = (size_t)(stop - line), used = 0;
    char *at = text, *next = NULL;
    if (size >= sizeof text) return false;
    memcpy(text, line, size);
    text[size] = 0;
    for (int k = 0; k < MARK_NUMBERS; k++, at = next) {
        if (!at) return false;
        if (k == MARK_NUMBERS - 1) used = (size_t)(at - 1 - text);
        next = strchr(at, ' ');
        if (next) *next++ = 0;
        if (dgm_number_integer("mark", at, 0, INT64_MAX, &number[k], NULL) != DGM_OK) return false;
    }
    if (at || number[MARK_NUMBERS - 1] != checksum(0, line, used)) return false;
    *m = (journal_mark){.lines = (uint64_t)number[0],
                        .input = (uint32_t)number[1],
                        .bytes = (uint64_t)number[2],
                        .output = (uint32_t)number[3],
                        .failures = (uint64_t)number[4],
                        .failed = (uint64_t)number[5],
                        .reasons = (uint32_t)number[6],
                        .dumped = (uint64_t)number[7],
                        .dump = (uint32_t)number[8]};
    return true;
}

// The last whole line behind the description at *end, which is moved behind it.
static void last_mark(const char *text, size_t *end, journal_mark *mark)
{
    for (const char *p = text + *end, *stop; (stop = strchr(p, '\n')); p = stop + 1) {
        if (!read_mark(p, stop, mark)) return;
        *end = (size_t)(stop + 1 - text);
    }
}

// Does the file begin with so many bytes of this checksum?
static bool holds(const journal *j, const char *path, uint64_t bytes, uint32_t check)
{
    uint64_t have = 0;
    uint32_t sum = 0;
    file_checksum(path, bytes, &have, &sum);
    if (have < bytes)
        fail(EXIT_RUNTIME,
             "cannot resume '%s': '%s' has %" PRIu64 " of the %" PRIu64 " bytes that '%s' records",
             j->output, path, have, bytes, j->path);
    else if (sum != check)
        fail(EXIT_RUNTIME, "cannot resume '%s': '%s' is not what the interrupted job wrote",
             j->output, path);
    return have == bytes && sum == check;
}

bool journal_resume(journal *j, const char *report, const char *dump, journal_mark *mark)
{
    memset(mark, 0, sizeof *mark); // checksums of nothing, too
    j->fd = open(j->path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (j->fd < 0) return errno == ENOENT ? journal_begin(j) : complain(j, "read");
    if (!take_lock(j)) return false;
    size_t size = 0;
    char *text = read_file(j->fd, &size);
    if (!text) return complain(j, "read");
    char *begin = strncmp(text, MAGIC, strlen(MAGIC)) == 0 ? strstr(text, "\n" BEGIN) : NULL;
    bool fine = begin != NULL && strlen(text) == size;
    if (!fine) {
        fail(EXIT_RUNTIME, "cannot resume '%s': '%s' is damaged", j->output, j->path);
    } else {
        size_t end = (size_t)(begin - text) + 1 + strlen(BEGIN);
        last_mark(text, &end, mark);
        *begin = 0; // the description alone
        fine = !differs(j, text) && holds(j, j->output, mark->bytes, mark->output) &&
               (!report || holds(j, report, mark->failures, mark->reasons)) &&
               (!dump || holds(j, dump, mark->dumped, mark->dump));
        if (fine && ftruncate(j->fd, (off_t)end) != 0) fine = complain(j, "write");
    }
    free(text);
    return fine;
}
