// SPDX-License-Identifier: MIT
// Zip archives by libzip: .npz files, the packages that models are published in, documents.
//
// Members are stored or deflated; checksums are compared when a member was read to its end. What a
// directory says about sizes is not believed beyond what the compressed bytes can hold.
#ifndef DGM_BASE_ZIP_H
#define DGM_BASE_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

typedef struct dgm_zip dgm_zip;

// Messages of the functions below name the member, not the archive, but for dgm_zip_open.
dgm_status dgm_zip_open(dgm_zip **z, const char *path, dgm_error *err);
dgm_status dgm_zip_open_memory(dgm_zip **z, const void *data, size_t size,
                               dgm_error *err); // borrowed
void dgm_zip_close(dgm_zip **z);                // sets *z to NULL; accepts NULL inside
bool dgm_zip_is(const char *path);              // does the file begin like an archive?

size_t dgm_zip_count(const dgm_zip *z);
const char *dgm_zip_name(const dgm_zip *z, size_t i); // a folder's ends with '/'
uint64_t dgm_zip_size(const dgm_zip *z, size_t i);    // unpacked
int dgm_zip_find(const dgm_zip *z, const char *name); // -1: absent

// The first `size` bytes of a member. Fewer are an error.
dgm_status dgm_zip_begin(dgm_zip *z, size_t i, void *out, size_t size, dgm_error *err);
// Bytes from `skip` on to the member's end: exactly `size` of them, checksum and all.
dgm_status dgm_zip_read(dgm_zip *z, size_t i, uint64_t skip, void *out, size_t size,
                        dgm_error *err);
// A whole member in parts, checksum and all.
typedef dgm_status (*dgm_zip_sink)(void *arg, const void *data, size_t size, dgm_error *err);
dgm_status dgm_zip_stream(dgm_zip *z, size_t i, dgm_zip_sink sink, void *arg, dgm_error *err);

// For archives of which everything is unpacked: refuses one that says it holds more than total_max bytes, or more than
// ratio_max times its own size (which small archives may).
dgm_status dgm_zip_check_unpacked(const dgm_zip *z, uint64_t total_max, uint64_t ratio_max, dgm_error *err);

// New content of a member.
typedef struct dgm_zip_part {
    size_t member;
    dgm_text data;
} dgm_zip_part;

// An archive in memory with other content in some of its members, appended to out. Order, names, times and the way of
// packing stay; the packed bytes of other members are copied as they are.
dgm_status dgm_zip_rewrite(dgm_text archive, const dgm_zip_part *parts, size_t count, dgm_writer *out, dgm_error *err);

#endif
