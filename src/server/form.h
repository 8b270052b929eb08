// SPDX-License-Identifier: MIT
// Queries, forms and paths as browsers and curl send them.
#ifndef DGM_SERVER_FORM_H
#define DGM_SERVER_FORM_H

#include "server/request.h"

// "a=1&b=x%20y" (application/x-www-form-urlencoded, and what stands behind "?" of a URL) into a list. What is not
// UTF-8, holds NUL or has more than DGM_FIELDS_MAX values is DGM_ERR_FORMAT.
dgm_status dgm_form_urlencoded(dgm_request *q, const char *data, size_t size, dgm_field_list *into, dgm_error *err);
// The body as multipart/form-data, into q->form and q->uploads. Values are UTF-8 without NUL; files are any bytes,
// and lie
// in the body.
dgm_status dgm_form_multipart(dgm_request *q, dgm_error *err);

// Decodes %XX of a path in place; false: it holds NUL, is not UTF-8, or has a "." or ".." between slashes.
bool dgm_path_decode(char *path);

#endif
