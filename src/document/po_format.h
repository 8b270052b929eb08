// SPDX-License-Identifier: MIT
// Formats of gettext's messages: does a translation take the arguments that its source takes?
#ifndef DGM_DOCUMENT_PO_FORMAT_H
#define DGM_DOCUMENT_PO_FORMAT_H

#include "base/bytes.h"

typedef enum dgm_po_format {
    DGM_PO_PLAIN = 0, // not checked
    DGM_PO_C,         // arguments may be numbered where they change places
    DGM_PO_ORDERED    // they may not
} dgm_po_format;

// What a line of flags says, "c-format, no-wrap".
dgm_po_format dgm_po_format_of(dgm_text flags);

// A translation (escaped, without quotes) whose arguments are those of the source: as it is where they come in the
// same order; with numbers ("%2$s") where they changed places and may have some; empty where nothing helps, so that
// the entry counts as not translated.
dgm_status dgm_po_check(dgm_text source, dgm_text translation, dgm_po_format format, dgm_writer *out, dgm_error *err);

#endif
