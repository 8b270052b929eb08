// SPDX-License-Identifier: MIT
// Sorted runs in memory and on disk; see extsort.h. The file is unlinked as soon as it is open: it goes away with
// the process, however that ends.
#define _GNU_SOURCE
#include "base/extsort.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/mem.h"

enum {
    DIGIT = 11,
    DIGITS = 1 << DIGIT,
    WINDOW_MIN = 1 << 12,
    BUFFER_MIN = 1 << 14,
    WIDTH_MAX = 16
};

typedef struct run {
    uint64_t next, end; // bytes of the file still to be read
    uint32_t *window;   // borrowed from the reader's buffer
    size_t at, count;   // records in the window
} run;

struct dgm_extsort {
    dgm_extsort_options o;
    uint32_t *buffer, *scratch; // [room * width], grow up to `limit` records
    size_t count, room, limit;
    uint32_t top[WIDTH_MAX]; // largest word at every place of the key
    int file;
    uint64_t file_size;
    run *runs;
    size_t run_count, run_cap;
    bool reading;
    uint32_t *windows; // all of them
    size_t window;     // records in each
    uint32_t *heap;    // [heap_count] runs, the one with the smallest record first
    size_t heap_count;
    size_t pos; // in memory: next record
    uint32_t out[WIDTH_MAX];
};

dgm_status dgm_extsort_open(dgm_extsort **out, const dgm_extsort_options *o, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(o->keys < 0 || o->width < 1 || o->keys > o->width || o->width > WIDTH_MAX ||
                    (o->sum && o->width < o->keys + 2),
                err, DGM_ERR_ARGUMENT, "records of %d words with %d keys", o->width, o->keys);
    dgm_extsort *r = dgm_calloc(1, sizeof *r);
    if (!r) return dgm_no_memory(err);
    r->o = *o;
    r->file = -1;
    size_t bytes = (size_t)o->width * sizeof(uint32_t);
    r->limit = o->memory / (o->sorted ? 1 : 2) / bytes;
    if (r->limit < BUFFER_MIN / bytes) r->limit = BUFFER_MIN / bytes;
    *out = r;
    return DGM_OK;
}

void dgm_extsort_close(dgm_extsort **p)
{
    dgm_extsort *r = *p;
    if (!r) return;
    if (r->file >= 0) close(r->file);
    dgm_free(r->buffer);
    dgm_free(r->scratch);
    dgm_free(r->runs);
    dgm_free(r->windows);
    dgm_free(r->heap);
    dgm_free(r);
    *p = NULL;
}

// ---- sorting a buffer -------------------------------------------------------------------------

// One pass: records in the order of a digit of one word; false if all digits were equal.
static bool sort_digit(dgm_extsort *r, int word, int shift)
{
    size_t start[DIGITS] = {0}, w = (size_t)r->o.width;
    for (size_t i = 0; i < r->count; i++)
        start[r->buffer[i * w + (size_t)word] >> shift & (DIGITS - 1)]++;
    size_t sum = 0;
    for (int d = 0; d < DIGITS; d++) {
        size_t n = start[d];
        if (n == r->count) return false;
        start[d] = sum;
        sum += n;
    }
    for (size_t i = 0; i < r->count; i++) {
        const uint32_t *from = r->buffer + i * w;
        size_t to = start[from[word] >> shift & (DIGITS - 1)]++;
        memcpy(r->scratch + to * w, from, w * sizeof *from);
    }
    uint32_t *t = r->buffer;
    r->buffer = r->scratch;
    r->scratch = t;
    return true;
}

static void add_up(dgm_extsort *r)
{
    size_t w = (size_t)r->o.width, kept = 0, k = (size_t)r->o.keys;
    for (size_t i = 0; i < r->count; i++) {
        const uint32_t *from = r->buffer + i * w;
        uint32_t *last = r->buffer + (kept ? kept - 1 : 0) * w;
        if (kept && dgm_extsort_compare(last, from, r->o.keys) == 0) {
            dgm_extsort_put_u64(last + k, dgm_extsort_u64(last + k) + dgm_extsort_u64(from + k));
        } else {
            memmove(r->buffer + kept * w, from, w * sizeof *from);
            kept++;
        }
    }
    r->count = kept;
}

static dgm_status sort_buffer(dgm_extsort *r, dgm_error *err)
{
    if (!r->o.sorted && r->count > 1) {
        if (!r->scratch) {
            r->scratch = dgm_malloc(r->room * (size_t)r->o.width * sizeof *r->scratch);
            if (!r->scratch) return dgm_no_memory(err);
        }
        for (int word = r->o.keys - 1; word >= 0; word--)
            for (int shift = 0; shift < 32 && r->top[word] >> shift; shift += DIGIT)
                sort_digit(r, word, shift);
    }
    if (r->o.sum) add_up(r);
    return DGM_OK;
}

// ---- the file ---------------------------------------------------------------------------------

static dgm_status open_file(dgm_extsort *r, dgm_error *err)
{
    const char *folder = r->o.folder ? r->o.folder : getenv("TMPDIR");
    if (!folder || !*folder) folder = "/tmp";
    char name[4096];
    int n = snprintf(name, sizeof name, "%s/dragoman-XXXXXX", folder);
    DGM_FAIL_IF(n < 0 || (size_t)n >= sizeof name, err, DGM_ERR_ARGUMENT,
                "the name of the folder for temporary files is too long");
    r->file = mkstemp(name);
    DGM_FAIL_IF(r->file < 0, err, DGM_ERR_IO, "cannot make a temporary file in '%s': %s", folder,
                strerror(errno));
    unlink(name);
    return DGM_OK;
}

// Writes the sorted buffer as a run and empties it.
static dgm_status spill(dgm_extsort *r, dgm_error *err)
{
    DGM_TRY(sort_buffer(r, err));
    if (r->file < 0) DGM_TRY(open_file(r, err));
    DGM_TRY(dgm_grow(&r->runs, &r->run_cap, r->run_count + 1, sizeof *r->runs, err));
    uint64_t size = (uint64_t)r->count * (uint64_t)r->o.width * sizeof(uint32_t);
    const uint8_t *data = (const uint8_t *)r->buffer;
    for (uint64_t done = 0; done < size;) {
        ssize_t n = pwrite(r->file, data + done, size - done, (off_t)(r->file_size + done));
        if (n < 0 && errno == EINTR) continue;
        DGM_FAIL_IF(n <= 0, err, DGM_ERR_IO, "cannot write a temporary file: %s", strerror(errno));
        done += (uint64_t)n;
    }
    // A tape goes on where it ended: all its runs are one.
    if (r->o.sorted && r->run_count > 0)
        r->runs[0].end += size;
    else
        r->runs[r->run_count++] = (run){.next = r->file_size, .end = r->file_size + size};
    r->file_size += size;
    r->count = 0;
    return DGM_OK;
}

dgm_status dgm_extsort_push(dgm_extsort *r, const uint32_t *record, dgm_error *err)
{
    size_t w = (size_t)r->o.width;
    if (r->count == r->limit) DGM_TRY(spill(r, err));
    if (r->count == r->room) {
        size_t room = r->room ? r->room * 2 : 64;
        if (room > r->limit) room = r->limit;
        uint32_t *grown =
            dgm_realloc(r->buffer, r->room * w * sizeof *grown, room * w * sizeof *grown);
        if (!grown) return dgm_no_memory(err);
        r->buffer = grown;
        r->room = room;
        dgm_free(r->scratch);
        r->scratch = NULL;
    }
    memcpy(r->buffer + r->count * w, record, w * sizeof *record);
    for (int i = 0; i < r->o.keys; i++)
        if (record[i] > r->top[i]) r->top[i] = record[i];
    r->count++;
    return DGM_OK;
}

uint64_t dgm_extsort_spilled(const dgm_extsort *r)
{
    return r->file_size;
}

// ---- reading ----------------------------------------------------------------------------------

static const uint32_t *head(const dgm_extsort *r, uint32_t i)
{
    return r->runs[i].window + r->runs[i].at * (size_t)r->o.width;
}

// Runs are in the order of their records' arrival: ties keep it.
static bool before(const dgm_extsort *r, uint32_t a, uint32_t b)
{
    int c = dgm_extsort_compare(head(r, a), head(r, b), r->o.keys);
    return c < 0 || (c == 0 && a < b);
}

#define BEFORE(x, y) before(r, (x), (y))

static void sink(dgm_extsort *r, size_t i)
{
    const uint32_t moved = r->heap[i];
    DGM_HEAP_DOWN(r->heap, r->heap_count, i, moved, BEFORE);
}

static dgm_status refill(dgm_extsort *r, run *x, dgm_error *err)
{
    uint64_t bytes = (uint64_t)r->o.width * sizeof(uint32_t);
    uint64_t want = (uint64_t)r->window * bytes;
    if (want > x->end - x->next) want = x->end - x->next;
    for (uint64_t done = 0; done < want;) {
        ssize_t n =
            pread(r->file, (uint8_t *)x->window + done, want - done, (off_t)(x->next + done));
        if (n < 0 && errno == EINTR) continue;
        DGM_FAIL_IF(n <= 0, err, DGM_ERR_IO, "cannot read a temporary file: %s",
                    n ? strerror(errno) : "it is too short");
        done += (uint64_t)n;
    }
    x->next += want;
    x->at = 0;
    x->count = (size_t)(want / bytes);
    return DGM_OK;
}

static dgm_status start_reading(dgm_extsort *r, dgm_error *err)
{
    if (r->run_count == 0) {
        DGM_TRY(sort_buffer(r, err));
    } else {
        if (r->count) DGM_TRY(spill(r, err));
        size_t bytes = (size_t)r->o.width * sizeof(uint32_t);
        r->window = r->o.memory / r->run_count / bytes;
        if (r->window < WINDOW_MIN / bytes) r->window = WINDOW_MIN / bytes;
        dgm_free(r->buffer);
        r->buffer = NULL;
        r->windows = dgm_malloc(r->window * r->run_count * bytes);
        r->heap = dgm_malloc(r->run_count * sizeof *r->heap);
        if (!r->windows || !r->heap) return dgm_no_memory(err);
    }
    dgm_free(r->scratch);
    r->scratch = NULL;
    r->reading = true;
    return DGM_OK;
}

dgm_status dgm_extsort_rewind(dgm_extsort *r, dgm_error *err)
{
    if (!r->reading) DGM_TRY(start_reading(r, err));
    r->pos = 0;
    r->heap_count = 0;
    uint64_t begin = 0;
    for (size_t i = 0; i < r->run_count; i++) {
        run *x = &r->runs[i];
        x->next = begin;
        begin = x->end;
        x->window = r->windows + i * r->window * (size_t)r->o.width;
        DGM_TRY(refill(r, x, err));
        r->heap[r->heap_count++] = (uint32_t)i;
    }
    for (size_t i = r->heap_count; i-- > 0;) sink(r, i);
    return DGM_OK;
}

// Moves the smallest record of the runs to out.
static dgm_status take(dgm_extsort *r, uint32_t *out, dgm_error *err)
{
    run *x = &r->runs[r->heap[0]];
    memcpy(out, head(r, r->heap[0]), (size_t)r->o.width * sizeof *out);
    if (++x->at == x->count) {
        if (x->next < x->end)
            DGM_TRY(refill(r, x, err));
        else
            r->heap[0] = r->heap[--r->heap_count];
    }
    sink(r, 0);
    return DGM_OK;
}

dgm_status dgm_extsort_next(dgm_extsort *r, const uint32_t **record, dgm_error *err)
{
    *record = NULL;
    if (r->run_count == 0) {
        if (r->pos < r->count) *record = r->buffer + r->pos++ * (size_t)r->o.width;
        return DGM_OK;
    }
    if (r->heap_count == 0) return DGM_OK;
    DGM_TRY(take(r, r->out, err));
    *record = r->out;
    int k = r->o.keys;
    while (r->o.sum && r->heap_count && dgm_extsort_compare(head(r, r->heap[0]), r->out, k) == 0) {
        uint32_t same[WIDTH_MAX];
        DGM_TRY(take(r, same, err));
        dgm_extsort_put_u64(r->out + k, dgm_extsort_u64(r->out + k) + dgm_extsort_u64(same + k));
    }
    return DGM_OK;
}
