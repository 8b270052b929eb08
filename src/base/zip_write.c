// SPDX-License-Identifier: MIT
// Zip archives written again with other content in some members; see zip.h. Members that are not replaced are copied as
// they are packed.
#include "base/zip.h"

#include <string.h>
#include <zip.h>

#include "base/mem.h"

static dgm_status failed(const zip_error_t *e, dgm_error *err)
{
    if (zip_error_code_zip(e) == ZIP_ER_MEMORY) return dgm_no_memory(err);
    return dgm_fail(err, DGM_ERR_FORMAT, "the archive cannot be written again: it is damaged");
}

// The time is set again: libzip takes the present one, and a document would differ from one run to the next.
static dgm_status keep_time(zip_t *archive, size_t member, const zip_stat_t *before, dgm_error *err)
{
    const time_t time = before->valid & ZIP_STAT_MTIME ? before->mtime : 0;
    return zip_file_set_mtime(archive, member, time, 0) == 0 ? DGM_OK : failed(zip_get_error(archive), err);
}

static dgm_status replace_member(zip_t *archive, const dgm_zip_part *part, dgm_error *err)
{
    zip_stat_t before;
    zip_stat_init(&before);
    if (zip_stat_index(archive, part->member, 0, &before) != 0) return failed(zip_get_error(archive), err);
    zip_source_t *content = zip_source_buffer(archive, part->data.data, part->data.size, 0);
    if (!content) return failed(zip_get_error(archive), err);
    if (zip_file_replace(archive, part->member, content, 0) != 0) {
        zip_source_free(content);
        return failed(zip_get_error(archive), err);
    }
    if (zip_set_file_compression(archive, part->member, before.comp_method, 0) != 0)
        return failed(zip_get_error(archive), err);
    return keep_time(archive, part->member, &before, err);
}

// ---- where libzip reads and writes -------------------------------------------------------------------

// An archive in memory, and what is written in its place. Not libzip's own source of this kind: that shares what lies
// before the first change with its copy, and up to 1.7.3 then frees memory that is not its own.
typedef struct archive_bytes {
    dgm_text before;
    dgm_writer *out;
    size_t begin; // of what is written, in `out`
    bool written; // that is what is read now
    size_t read_at, write_at;
    zip_error_t error;
} archive_bytes;

static zip_int64_t move_to(archive_bytes *a, size_t *at, size_t size, void *data, zip_uint64_t length)
{
    const zip_int64_t to = zip_source_seek_compute_offset(*at, size, data, length, &a->error);
    if (to >= 0) *at = (size_t)to;
    return to < 0 ? -1 : 0;
}

static zip_int64_t read_bytes(archive_bytes *a, dgm_text from, void *data, zip_uint64_t length)
{
    const size_t left = from.size - a->read_at, n = length < left ? (size_t)length : left;
    if (n) memcpy(data, from.data + a->read_at, n);
    a->read_at += n;
    return (zip_int64_t)n;
}

static zip_int64_t write_bytes(archive_bytes *a, const void *data, zip_uint64_t length)
{
    const size_t at = a->begin + a->write_at, over = a->out->size - at, n = length < over ? (size_t)length : over;
    if (n) memcpy(a->out->data + at, data, n);
    dgm_write_bytes(a->out, (const char *)data + n, (size_t)length - n);
    a->write_at += (size_t)length;
    if (!a->out->failed) return (zip_int64_t)length;
    zip_error_set(&a->error, ZIP_ER_MEMORY, 0);
    return -1;
}

static zip_int64_t say_size(void *data, size_t size)
{
    zip_stat_t *st = data;
    zip_stat_init(st);
    st->size = size;
    st->valid |= ZIP_STAT_SIZE;
    return sizeof *st;
}

static zip_int64_t serve(void *arg, void *data, zip_uint64_t length, zip_source_cmd_t command)
{
    archive_bytes *a = arg;
    const size_t made = a->out->size - a->begin;
    const dgm_text now = a->written ? (dgm_text){(const char *)a->out->data + a->begin, made} : a->before;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
                                              ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL,
                                              ZIP_SOURCE_BEGIN_WRITE, ZIP_SOURCE_WRITE, ZIP_SOURCE_COMMIT_WRITE,
                                              ZIP_SOURCE_ROLLBACK_WRITE, ZIP_SOURCE_SEEK_WRITE, ZIP_SOURCE_TELL_WRITE,
                                              ZIP_SOURCE_REMOVE, -1);
    case ZIP_SOURCE_STAT: return say_size(data, now.size);
    case ZIP_SOURCE_OPEN: a->read_at = 0; return 0;
    case ZIP_SOURCE_READ: return read_bytes(a, now, data, length);
    case ZIP_SOURCE_SEEK: return move_to(a, &a->read_at, now.size, data, length);
    case ZIP_SOURCE_TELL: return (zip_int64_t)a->read_at;
    case ZIP_SOURCE_BEGIN_WRITE: a->write_at = 0; return 0;
    case ZIP_SOURCE_WRITE: return write_bytes(a, data, length);
    case ZIP_SOURCE_SEEK_WRITE: return move_to(a, &a->write_at, made, data, length);
    case ZIP_SOURCE_TELL_WRITE: return (zip_int64_t)a->write_at;
    case ZIP_SOURCE_COMMIT_WRITE: a->written = true; return 0;
    case ZIP_SOURCE_ERROR: return zip_error_to_data(&a->error, data, length);
    default: return 0; // close, roll back, remove, free: nothing to do
    }
}

static dgm_status rewrite(zip_t *archive, const dgm_zip_part *parts, size_t count, dgm_error *err)
{
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < count && st == DGM_OK; i++) st = replace_member(archive, &parts[i], err);
    if (st == DGM_OK && zip_close(archive) == 0) return DGM_OK;
    if (st == DGM_OK) st = failed(zip_get_error(archive), err);
    zip_discard(archive);
    return st;
}

dgm_status dgm_zip_rewrite(dgm_text archive, const dgm_zip_part *parts, size_t count, dgm_writer *out, dgm_error *err)
{
    zip_error_t e;
    archive_bytes bytes = {.before = archive, .out = out, .begin = out->size};
    zip_error_init(&e);
    zip_error_init(&bytes.error);
    zip_source_t *source = zip_source_function_create(serve, &bytes, &e);
    zip_t *z = source ? zip_open_from_source(source, 0, &e) : NULL;
    if (!z && source) zip_source_free(source);
    const dgm_status st = z ? rewrite(z, parts, count, err) : failed(&e, err);
    if (st == DGM_OK && !bytes.written) dgm_write_bytes(out, archive.data, archive.size); // there was nothing to change
    zip_error_fini(&bytes.error);
    zip_error_fini(&e);
    return st == DGM_OK && out->failed ? dgm_no_memory(err) : st;
}
