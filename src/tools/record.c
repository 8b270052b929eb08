// SPDX-License-Identifier: MIT
// Hidden vectors of a model that translates a text; see record.h.
//
//     header   8 bytes "DGMVECT1", u32 width, u32 best, 16 bytes vocabulary, u64 settings,
//              24 zeros
//     chunk    u32 lines, u32 records, then records of f16 [width] and i32 [best]
//     chunk    ...
//
// The numbers are this machine's own: the file is scratch, not an exchange format. A chunk is the
// lines that were translated together; it is written when all of them are done, so a run that was
// interrupted loses one chunk at most, and what is left of it in the file is cut off.
//
// Workers record in any order. Translations do not depend on company, so the records of a chunk
// are always the same ones; sorted by their bytes they are always the same bytes.
#define _POSIX_C_SOURCE 200809L
#include "tools/record.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "base/sort.h"
#include "engine/engine_private.h"
#include "format/idlists.h"
#include "tools/chunks.h"

enum { HEADER = 64, HELD_MAX = 1 << 30 };
static const char magic[8] = {'D', 'G', 'M', 'V', 'E', 'C', 'T', '1'};

// What the workers add to.
typedef struct recorder {
    dgm_record *r;
    pthread_mutex_t lock;
    char *held; // records of this chunk
    size_t held_size, held_cap;
    float *row; // [rows, width] of one rank
    size_t row_cap;
    dgm_status status;
} recorder;

// ---- workers ------------------------------------------------------------------------------------

static dgm_status add_rows(recorder *k, dgm_exec *x, const dgm_rank *rank)
{
    const dgm_record *r = k->r;
    const dgm_mat hidden = dgm_mat_rows(rank->parts[0].hidden, 0, rank->rows);
    const size_t width = (size_t)r->width, rows = (size_t)rank->rows;
    DGM_TRY(dgm_grow(&k->row, &k->row_cap, rows * width, sizeof *k->row, NULL));
    DGM_TRY(dgm_grow(&k->held, &k->held_cap, k->held_size + rows * r->size, 1, NULL));
    if (k->held_size + rows * r->size > HELD_MAX) return DGM_ERR_MEMORY;
    dgm_op_read(x, k->row, hidden);
    for (size_t i = 0; i < rows; i++) {
        const float *row = k->row + i * width;
        char *to = k->held + k->held_size;
        uint16_t half;
        bool finite = true;
        for (size_t j = 0; j < width; j++, to += sizeof half) {
            half = dgm_float_to_half(row[j]);
            finite &= (half & 0x7c00) != 0x7c00;
            memcpy(to, &half, sizeof half);
        }
        if (!finite) continue; // no cluster can hold it
        for (int j = 0; j < r->best; j++, to += sizeof(int32_t)) {
            const int32_t token = j < rank->k ? rank->token[i * (size_t)rank->k + (size_t)j] : -1;
            memcpy(to, &token, sizeof token);
        }
        k->held_size += r->size;
    }
    return DGM_OK;
}

static void on_rank(void *cookie, dgm_exec *x, const dgm_rank *rank)
{
    recorder *k = cookie;
    pthread_mutex_lock(&k->lock);
    if (k->status == DGM_OK) k->status = add_rows(k, x, rank);
    pthread_mutex_unlock(&k->lock);
}

// ---- chunks -------------------------------------------------------------------------------------

typedef struct by_bytes {
    const char *data;
    size_t size;
} by_bytes;

static int compare(const void *context, uint32_t a, uint32_t b)
{
    const by_bytes *c = context;
    return memcmp(c->data + a * c->size, c->data + b * c->size, c->size);
}

static dgm_status failed(const char *what, dgm_error *err)
{
    return dgm_fail(err, DGM_ERR_IO, "cannot %s the file of vectors: %s", what, strerror(errno));
}

static dgm_status write_chunk(void *cookie, const dgm_results *results, dgm_error *err)
{
    recorder *k = cookie;
    dgm_record *r = k->r;
    if (k->status != DGM_OK) return dgm_no_memory(err);
    const size_t count = k->held_size / r->size;
    uint32_t *order = dgm_malloc((count + 1) * sizeof *order);
    if (!order) return dgm_no_memory(err);
    const by_bytes bytes = {k->held, r->size};
    dgm_sort_indices(order, count, compare, &bytes);
    const uint32_t head[2] = {(uint32_t)results->count, (uint32_t)count};
    bool good = fwrite(head, sizeof head, 1, r->file) == 1;
    for (size_t i = 0; good && i < count; i++)
        good = fwrite(k->held + order[i] * r->size, r->size, 1, r->file) == 1;
    dgm_free(order);
    if (!good || fflush(r->file) != 0) return failed("write", err);
    r->lines += results->count;
    r->records += count;
    k->held_size = 0;
    return DGM_OK;
}

// The lines that are not in the file yet.
static dgm_status translate_text(recorder *k, dgm_translator *t, const dgm_record_text *text,
                                 const dgm_cluster_options *o, dgm_error *err)
{
    const uint64_t had = k->r->lines;
    const uint64_t lines = text->directions ? 0 : o->lines; // directions know the lines that count
    if (lines && had >= lines) return DGM_OK;
    const dgm_chunks chunks = {.text = text->path,
                               .skip = had,
                               .lines = lines ? lines - had : 0,
                               .directions = text->directions,
                               .block = text->block,
                               .done = write_chunk,
                               .cookie = k,
                               .stage = "translating",
                               .progress = o->progress};
    return dgm_chunks_translate(&chunks, t, err);
}

// ---- the file -----------------------------------------------------------------------------------

static uint64_t fingerprint(const dgm_record_text *text, const dgm_translator *t)
{
    struct stat s = {0};
    if (stat(text->path, &s) != 0) s.st_size = 0;
    const uint64_t parts[4] = {(uint64_t)s.st_size, (uint64_t)t->members[0].precision,
                               (uint64_t)t->config.beam, (uint64_t)DGM_CHUNK_LINES};
    uint64_t h = dgm_hash_bytes(DGM_HASH_START, parts, sizeof parts);
    const dgm_languages *l = dgm_model_describe(t->members[0].model)->languages;
    for (int i = 0; l->tags[0] + l->tags[1] > 0 && i < 2;
         i++) // the direction, where there are many
        h = dgm_hash_number(h, (uint64_t)t->direction[i] + 1);
    if (text->directions)
        h = dgm_hash_number(h, dgm_text_directions_hash(text->directions, text->block));
    return h;
}

static dgm_status make_header(const dgm_record *r, const dgm_translator *t,
                              const dgm_record_text *text, char header[HEADER], dgm_error *err)
{
    int sources = 0, targets = 0;
    char hash[17];
    DGM_TRY(dgm_vocabulary_hash(t->members[0].file, &sources, &targets, hash, err));
    const uint32_t sizes[2] = {(uint32_t)r->width, (uint32_t)r->best};
    const uint64_t settings = fingerprint(text, t);
    memset(header, 0, HEADER);
    memcpy(header, magic, sizeof magic);
    memcpy(header + 8, sizes, sizeof sizes);
    memcpy(header + 16, hash, 16);
    memcpy(header + 32, &settings, sizeof settings);
    return DGM_OK;
}

// Adds up the whole chunks and cuts off what is behind them.
static dgm_status find_end(dgm_record *r, dgm_error *err)
{
    if (fseeko(r->file, 0, SEEK_END) != 0) return failed("read", err);
    const int64_t size = (int64_t)ftello(r->file);
    int64_t at = HEADER;
    for (uint32_t head[2]; at + (int64_t)sizeof head <= size;) {
        if (fseeko(r->file, at, SEEK_SET) != 0 || fread(head, sizeof head, 1, r->file) != 1)
            return failed("read", err);
        const int64_t next = at + (int64_t)sizeof head + (int64_t)head[1] * (int64_t)r->size;
        if (next > size) break;
        at = next;
        r->lines += head[0];
        r->records += head[1];
    }
    if (fflush(r->file) != 0 || ftruncate(fileno(r->file), at) != 0 ||
        fseeko(r->file, at, SEEK_SET) != 0)
        return failed("cut", err);
    return DGM_OK;
}

static dgm_status open_file(dgm_record *r, const char *path, const char header[HEADER],
                            dgm_error *err)
{
    char found[HEADER] = {0};
    const bool there = path && dgm_file_exists(path);
    r->file = !path ? tmpfile() : fopen(path, there ? "r+b" : "w+b");
    DGM_FAIL_IF(!r->file, err, DGM_ERR_IO, "cannot open '%s': %s", path ? path : "a scratch file",
                strerror(errno));
    const size_t size = there ? fread(found, 1, HEADER, r->file) : 0;
    DGM_FAIL_IF(memcmp(found, magic, size < sizeof magic ? size : sizeof magic) != 0, err,
                DGM_ERR_FORMAT, "'%s' is not a file of vectors", path);
    if (size < HEADER) { // nothing yet, or a run that ended while it wrote these bytes
        rewind(r->file);
        if (fwrite(header, HEADER, 1, r->file) != 1 || fflush(r->file) != 0)
            return failed("write", err);
        return find_end(r, err);
    }
    DGM_FAIL_IF(memcmp(found, header, HEADER) != 0, err, DGM_ERR_ARGUMENT,
                "'%s' was begun with another model, text, direction, precision, beam or number of "
                "predictions: remove it or name another file",
                path);
    return find_end(r, err);
}

static dgm_status record(dgm_record *r, dgm_translator *t, const dgm_record_text *text,
                         const char *path, const dgm_cluster_options *o, dgm_error *err)
{
    char header[HEADER];
    r->width = dgm_model_describe(t->members[0].model)->hidden;
    r->best = o->record_best;
    r->size = (size_t)r->width * sizeof(uint16_t) + (size_t)r->best * sizeof(int32_t);
    DGM_TRY(make_header(r, t, text, header, err));
    DGM_TRY(open_file(r, path, header, err));
    recorder *k = dgm_calloc(1, sizeof *k);
    if (!k) return dgm_no_memory(err);
    k->r = r;
    dgm_status st = pthread_mutex_init(&k->lock, NULL) == 0 ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) {
        const dgm_observer observer = {.ranked = on_rank, .cookie = k};
        dgm_workers_observe(t, &observer);
        st = translate_text(k, t, text, o, err);
        dgm_workers_observe(t, NULL);
        pthread_mutex_destroy(&k->lock);
    }
    dgm_free(k->held);
    dgm_free(k->row);
    dgm_free(k);
    return st;
}

// Where a model does not say its languages, the options only name a block. One that fills in whole
// sentences has no beam.
static void fit_settings(dgm_settings *s, const dgm_cluster_options *o, const char *model)
{
    dgm_gguf *g = NULL;
    dgm_gguf_strings codes = {0};
    if (dgm_gguf_open(&g, model, NULL) != DGM_OK) return; // opening it again says why
    const dgm_status st =
        dgm_gguf_get_strings(g, "dragoman.languages.target", DGM_OPTIONAL, &codes, NULL);
    if (st == DGM_OK && codes.count > 0) {
        s->source = o->source;
        s->target = o->target;
    }
    if (s->beam == 1 && dgm_gguf_find(g, "dragoman.target.mask")) s->beam = 0;
    dgm_gguf_close(&g);
}

dgm_status dgm_record_open(dgm_translator **t, const char *model, bool later,
                           const dgm_cluster_options *o, dgm_error *err)
{
    dgm_settings settings;
    dgm_settings_default(&settings);
    settings.raw = 1; // what the model makes of lines as they are
    settings.device = o->device;
    settings.precision = o->precision;
    settings.threads = o->threads;
    settings.beam = o->beam;
    settings.shortlist = "all";
    settings.direction_later = later;
    fit_settings(&settings, o, model);
    return dgm_open_ranked(t, model, &settings, o->record_best, err);
}

dgm_status dgm_record_make(dgm_record *r, dgm_translator *t, const dgm_record_text *text,
                           const char *path, const dgm_cluster_options *o, dgm_error *err)
{
    const dgm_text_directions *d = text->directions;
    *r = (dgm_record){0};
    snprintf(r->source, sizeof r->source, "%s", d ? d->blocks[text->block].source : t->source_code);
    snprintf(r->target, sizeof r->target, "%s", d ? d->blocks[text->block].target : t->target_code);
    snprintf(r->device, sizeof r->device, "%s", dgm_backend_properties(t->backend)->name);
    const dgm_status st = record(r, t, text, path, o, err);
    if (st != DGM_OK) dgm_record_close(r);
    return st;
}

void dgm_record_close(dgm_record *r)
{
    if (r->file) fclose(r->file);
    *r = (dgm_record){0};
}

// ---- walking ------------------------------------------------------------------------------------

dgm_status dgm_record_rewind(dgm_record *r, dgm_error *err)
{
    r->left = 0;
    return fseeko(r->file, HEADER, SEEK_SET) == 0 ? DGM_OK : failed("read", err);
}

dgm_status dgm_record_next(dgm_record *r, size_t most, uint16_t *vectors, int32_t *predictions,
                           size_t *count, dgm_error *err)
{
    const size_t width = (size_t)r->width, best = (size_t)r->best;
    *count = 0;
    while (*count < most) {
        if (r->left == 0) {
            uint32_t head[2];
            if (fread(head, sizeof head, 1, r->file) != 1) {
                if (feof(r->file)) return DGM_OK;
                return failed("read", err);
            }
            r->left = head[1];
            continue;
        }
        if (fread(vectors + *count * width, sizeof *vectors, width, r->file) != width ||
            fread(predictions + *count * best, sizeof *predictions, best, r->file) != best)
            return failed("read", err);
        r->left--;
        ++*count;
    }
    return DGM_OK;
}
