// SPDX-License-Identifier: MIT
// Zip archives by libzip, for reading: .npz files and the packages that models are published in.
//
// Members are stored or deflated; checksums are compared when a member was read to its end. What a
// directory says about sizes is not believed beyond what the compressed bytes can hold.
#ifndef DGM_BASE_ZIP_H
#define DGM_BASE_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
