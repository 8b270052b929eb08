// SPDX-License-Identifier: MIT
// What libdragoman-pdf.so has for the library: the text of a PDF as HTML. It is a shared object of its own, because the
// library that it is made with (Poppler) is under the GPL, and because few need it.
#ifndef DGM_DOCUMENT_PDF_PLUGIN_PRIVATE_H
#define DGM_DOCUMENT_PDF_PLUGIN_PRIVATE_H

#include <stddef.h>

#define DGM_PDF_ENTRY "dragoman_pdf_html"

typedef enum dgm_pdf_result {
    DGM_PDF_OK = 0,
    DGM_PDF_DAMAGED = 1,
    DGM_PDF_LOCKED = 2, // a password is needed
    DGM_PDF_EMPTY = 3,  // pages without text: pictures of a scanner
    DGM_PDF_STOPPED = 4 // put did not want more
} dgm_pdf_result;

// Hands HTML over in parts; put: not 0 stops it.
typedef int (*dgm_pdf_put)(void *cookie, const char *data, size_t size);
typedef int (*dgm_pdf_entry)(const void *data, size_t size, dgm_pdf_put put, void *cookie);

#endif
