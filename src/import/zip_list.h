// SPDX-License-Identifier: MIT
// The members of a zip file in memory, found through its central directory (zip64, too). For files whose members lie
// there uncompressed, as torch writes them: members are views, nothing is unpacked.
#ifndef DGM_IMPORT_ZIP_LIST_H
#define DGM_IMPORT_ZIP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/status.h"

typedef struct dgm_zip_member {
    dgm_text name; // view into the file
    const uint8_t *data;
    size_t size;
} dgm_zip_member;

typedef struct dgm_zip_list {
    dgm_zip_member *members;
    size_t count, cap;
    json_t *index; // name -> position
} dgm_zip_list;

bool dgm_zip_begins(const void *data, size_t size); // does it begin as one?
// data must outlive the list. A compressed or encrypted member is an error that names it.
dgm_status dgm_zip_list_read(dgm_zip_list *z, const void *data, size_t size, dgm_error *err);
void dgm_zip_list_free(dgm_zip_list *z); // accepts all zero
const dgm_zip_member *dgm_zip_list_find(const dgm_zip_list *z, const char *name); // NULL: absent

#endif
