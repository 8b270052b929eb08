// SPDX-License-Identifier: MIT
// Zip archives; see zip.h. The archive is mapped and libzip reads from memory. Members are copied rather
// than mapped where they lie: libzip does not tell where that is, and a copy is checked against its checksum.
#include "base/zip.h"

#include <string.h>
#include <zip.h>

#include "base/mapfile.h"
#include "base/mem.h"

enum {
    MEMBERS_MAX = 1000000,
    RATIO_MAX = 1040,     // deflate cannot shrink anything to less than 1/1032
    RATIO_FROM = 1 << 24, // bytes: how much an archive may grow whatever its size
    SKIP_STEP = 4096,
    STREAM_STEP = 1 << 16
};

struct dgm_zip {
    dgm_mapfile file; // all zero over borrowed memory
    zip_t *archive;
    size_t count;
    zip_stat_t *members; // [count]
};

static const char *reason(const zip_error_t *e)
{
    switch (zip_error_code_zip(e)) {
    case ZIP_ER_NOZIP:
        return "not a zip archive (truncated?)";
    case ZIP_ER_CRC:
        return "wrong checksum: the file is damaged";
    case ZIP_ER_MEMORY:
        return "out of memory";
    case ZIP_ER_ZLIB:
        return "compressed data are damaged";
    case ZIP_ER_EOF:
        return "ends too early";
    default:
        return "the archive is damaged";
    }
}

static dgm_status check_member(const zip_stat_t *m, dgm_error *err)
{
    const zip_uint64_t needed =
        ZIP_STAT_INDEX | ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    DGM_FAIL_IF((m->valid & needed) != needed, err, DGM_ERR_FORMAT, "the directory is damaged");
    DGM_FAIL_IF((m->valid & ZIP_STAT_ENCRYPTION_METHOD) && m->encryption_method != ZIP_EM_NONE, err,
                DGM_ERR_UNSUPPORTED, "member '%.100s' is encrypted", m->name);
    const bool stored = m->comp_method == ZIP_CM_STORE;
    DGM_FAIL_IF(!stored && m->comp_method != ZIP_CM_DEFLATE, err, DGM_ERR_UNSUPPORTED,
                "member '%.100s' is compressed by method %d; stored and deflated ones are read",
                m->name, m->comp_method);
    DGM_FAIL_IF(stored ? m->size != m->comp_size : m->size / RATIO_MAX > m->comp_size, err,
                DGM_ERR_FORMAT, "member '%.100s': %llu bytes cannot come out of %llu", m->name,
                (unsigned long long)m->size, (unsigned long long)m->comp_size);
    return DGM_OK;
}

static dgm_status list_members(dgm_zip *z, size_t bytes, dgm_error *err)
{
    const zip_int64_t n = zip_get_num_entries(z->archive, 0);
    DGM_FAIL_IF(n < 0 || n > MEMBERS_MAX, err, DGM_ERR_FORMAT, "more than %d members", MEMBERS_MAX);
    z->members = dgm_calloc((size_t)n + 1, sizeof *z->members);
    if (!z->members) return dgm_no_memory(err);
    for (zip_int64_t i = 0; i < n; i++) {
        zip_stat_t *m = &z->members[i];
        zip_stat_init(m);
        DGM_FAIL_IF(zip_stat_index(z->archive, (zip_uint64_t)i, 0, m) != 0, err, DGM_ERR_FORMAT,
                    "the directory is damaged at member %lld", (long long)i);
        DGM_TRY(check_member(m, err));
        DGM_FAIL_IF(m->comp_size > bytes, err, DGM_ERR_FORMAT,
                    "member '%.100s' is larger than the file (truncated?)", m->name);
        z->count++;
    }
    return DGM_OK;
}

dgm_status dgm_zip_open_memory(dgm_zip **z, const void *data, size_t size, dgm_error *err)
{
    *z = dgm_calloc(1, sizeof **z);
    if (!*z) return dgm_no_memory(err);
    zip_error_t e;
    zip_error_init(&e);
    zip_source_t *source = zip_source_buffer_create(data, size, 0, &e);
    dgm_status st = DGM_OK;
    if (!source) {
        st = dgm_no_memory(err);
    } else if (!((*z)->archive = zip_open_from_source(source, ZIP_RDONLY, &e))) {
        zip_source_free(source);
        st = dgm_fail(err, DGM_ERR_FORMAT, "%s", reason(&e));
    }
    zip_error_fini(&e);
    if (st == DGM_OK) st = list_members(*z, size, err);
    if (st != DGM_OK) dgm_zip_close(z);
    return st;
}

dgm_status dgm_zip_open(dgm_zip **z, const char *path, dgm_error *err)
{
    *z = NULL;
    dgm_mapfile file = {0};
    DGM_TRY(dgm_mapfile_open(&file, path, err));
    const dgm_status st = dgm_zip_open_memory(z, file.data, file.size, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s'", path);
        dgm_mapfile_close(&file);
        return st;
    }
    (*z)->file = file;
    return DGM_OK;
}

void dgm_zip_close(dgm_zip **z)
{
    if (!*z) return;
    if ((*z)->archive) zip_discard((*z)->archive);
    dgm_free((*z)->members);
    dgm_mapfile_close(&(*z)->file);
    dgm_free(*z);
    *z = NULL;
}

bool dgm_zip_is(const char *path)
{
    dgm_mapfile f = {0};
    const bool is = dgm_mapfile_open(&f, path, NULL) == DGM_OK && f.size >= 4 &&
                    memcmp(f.data, "PK\3\4", 4) == 0;
    dgm_mapfile_close(&f);
    return is;
}

size_t dgm_zip_count(const dgm_zip *z)
{
    return z->count;
}

const char *dgm_zip_name(const dgm_zip *z, size_t i)
{
    return z->members[i].name;
}

uint64_t dgm_zip_size(const dgm_zip *z, size_t i)
{
    return z->members[i].size;
}

dgm_status dgm_zip_check_unpacked(const dgm_zip *z, uint64_t total_max, uint64_t ratio_max, dgm_error *err)
{
    uint64_t unpacked = 0, packed = 0;
    for (size_t i = 0; i < z->count; i++) {
        const zip_stat_t *m = &z->members[i];
        DGM_FAIL_IF(m->size > total_max - unpacked, err, DGM_ERR_FORMAT,
                    "member '%.100s' says that it is %llu bytes long, which makes more than the %llu bytes that are "
                    "allowed in all",
                    m->name, (unsigned long long)m->size, (unsigned long long)total_max);
        unpacked += m->size;
        packed += m->comp_size;
        DGM_FAIL_IF(unpacked > RATIO_FROM && unpacked / ratio_max > packed, err, DGM_ERR_FORMAT,
                    "it would grow to more than %llu times its size on unpacking; such archives are not read",
                    (unsigned long long)ratio_max);
    }
    return DGM_OK;
}

int dgm_zip_find(const dgm_zip *z, const char *name)
{
    return (int)zip_name_locate(z->archive, name, 0);
}

// ---- reading -----------------------------------------------------------------------------------

static dgm_status failed(const dgm_zip *z, size_t i, const zip_error_t *e, dgm_error *err)
{
    const bool memory = zip_error_code_zip(e) == ZIP_ER_MEMORY;
    return dgm_fail(err, memory ? DGM_ERR_MEMORY : DGM_ERR_FORMAT, "member '%.100s': %s",
                    z->members[i].name, reason(e));
}

static dgm_status read_exactly(const dgm_zip *z, size_t i, zip_file_t *f, void *out, size_t size,
                               dgm_error *err)
{
    for (size_t done = 0; done < size;) {
        const zip_int64_t n = zip_fread(f, (char *)out + done, size - done);
        if (n < 0) return failed(z, i, zip_file_get_error(f), err);
        DGM_FAIL_IF(n == 0, err, DGM_ERR_FORMAT, "member '%.100s' ends too early",
                    z->members[i].name);
        done += (size_t)n;
    }
    return DGM_OK;
}

static dgm_status skip_bytes(const dgm_zip *z, size_t i, zip_file_t *f, uint64_t n, dgm_error *err)
{
    uint8_t spare[SKIP_STEP];
    while (n > 0) {
        const size_t now = n < sizeof spare ? (size_t)n : sizeof spare;
        DGM_TRY(read_exactly(z, i, f, spare, now, err));
        n -= now;
    }
    return DGM_OK;
}

// libzip compares checksum and size when it meets the end.
static dgm_status expect_end(const dgm_zip *z, size_t i, zip_file_t *f, dgm_error *err)
{
    uint8_t more;
    const zip_int64_t n = zip_fread(f, &more, 1);
    if (n < 0) return failed(z, i, zip_file_get_error(f), err);
    DGM_FAIL_IF(n > 0, err, DGM_ERR_FORMAT, "member '%.100s' is longer than expected",
                z->members[i].name);
    return DGM_OK;
}

dgm_status dgm_zip_begin(dgm_zip *z, size_t i, void *out, size_t size, dgm_error *err)
{
    zip_file_t *f = zip_fopen_index(z->archive, i, 0);
    if (!f) return failed(z, i, zip_get_error(z->archive), err);
    const dgm_status st = read_exactly(z, i, f, out, size, err);
    zip_fclose(f);
    return st;
}

dgm_status dgm_zip_read(dgm_zip *z, size_t i, uint64_t skip, void *out, size_t size, dgm_error *err)
{
    zip_file_t *f = zip_fopen_index(z->archive, i, 0);
    if (!f) return failed(z, i, zip_get_error(z->archive), err);
    dgm_status st = skip_bytes(z, i, f, skip, err);
    if (st == DGM_OK) st = read_exactly(z, i, f, out, size, err);
    if (st == DGM_OK) st = expect_end(z, i, f, err);
    zip_fclose(f);
    return st;
}

static dgm_status stream(const dgm_zip *z, size_t i, zip_file_t *f, dgm_zip_sink sink, void *arg,
                         dgm_error *err)
{
    uint8_t part[STREAM_STEP];
    uint64_t left = z->members[i].size;
    while (left > 0) {
        const size_t now = left < sizeof part ? (size_t)left : sizeof part;
        DGM_TRY(read_exactly(z, i, f, part, now, err));
        DGM_TRY(sink(arg, part, now, err));
        left -= now;
    }
    return expect_end(z, i, f, err);
}

dgm_status dgm_zip_stream(dgm_zip *z, size_t i, dgm_zip_sink sink, void *arg, dgm_error *err)
{
    zip_file_t *f = zip_fopen_index(z->archive, i, 0);
    if (!f) return failed(z, i, zip_get_error(z->archive), err);
    const dgm_status st = stream(z, i, f, sink, arg, err);
    zip_fclose(f);
    return st;
}
