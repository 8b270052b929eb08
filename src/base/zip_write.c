// SPDX-License-Identifier: MIT
// Zip archives written again with other content in some members; see zip.h. libzip works on a copy in memory: members
// that are not replaced are copied as they are packed.
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

// libzip shares members before the first change with its copy of the archive, and up to 1.7.3 frees memory then that is
// not its own. So the first one counts as changed: its time is set to what it is.
static dgm_status touch_first(zip_t *archive, dgm_error *err)
{
    zip_stat_t first;
    zip_stat_init(&first);
    if (zip_stat_index(archive, 0, 0, &first) != 0) return failed(zip_get_error(archive), err);
    return keep_time(archive, 0, &first, err);
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

static dgm_status read_all(zip_source_t *source, dgm_writer *out, dgm_error *err)
{
    if (zip_source_open(source) != 0) return failed(zip_source_error(source), err);
    char part[1 << 14];
    zip_int64_t n;
    while ((n = zip_source_read(source, part, sizeof part)) > 0) dgm_write_bytes(out, part, (size_t)n);
    zip_source_close(source);
    if (n < 0) return failed(zip_source_error(source), err);
    return out->failed ? dgm_no_memory(err) : DGM_OK;
}

static dgm_status rewrite(zip_source_t *source, zip_t *archive, const dgm_zip_part *parts, size_t count,
                          dgm_writer *out, dgm_error *err)
{
    dgm_status st = count > 0 ? touch_first(archive, err) : DGM_OK;
    for (size_t i = 0; i < count && st == DGM_OK; i++) st = replace_member(archive, &parts[i], err);
    if (st == DGM_OK && zip_close(archive) != 0)
        st = failed(zip_get_error(archive), err);
    else if (st == DGM_OK)
        return read_all(source, out, err);
    zip_discard(archive);
    return st;
}

dgm_status dgm_zip_rewrite(dgm_text archive, const dgm_zip_part *parts, size_t count, dgm_writer *out, dgm_error *err)
{
    zip_error_t e;
    zip_error_init(&e);
    zip_source_t *source = zip_source_buffer_create(archive.data, archive.size, 0, &e);
    if (!source) return failed(&e, err);
    zip_source_keep(source); // what was written is read from it when the archive is closed
    zip_t *z = zip_open_from_source(source, 0, &e);
    if (!z) zip_source_free(source);
    const dgm_status st = z ? rewrite(source, z, parts, count, out, err) : failed(&e, err);
    zip_source_free(source);
    zip_error_fini(&e);
    return st;
}
