// SPDX-License-Identifier: MIT
// Reading the lines of an n-best list; see nbest.h.
#include "lattice/nbest.h"

#include <string.h>

#include "base/fields.h"
#include "base/number.h"

#define LINE_MAX 999999999999999999u // below 2^63

// The next field up to "|||", or to the end; *last says that there is no other.
static dgm_text field(dgm_text *rest, bool *last)
{
    dgm_text f = *rest;
    *last = true;
    for (size_t i = 0; i + 3 <= rest->size; i++) {
        if (memcmp(rest->data + i, "|||", 3) != 0) continue;
        f.size = i;
        *rest = (dgm_text){rest->data + i + 3, rest->size - i - 3};
        *last = false;
        break;
    }
    return dgm_text_trim(f);
}

dgm_status dgm_nbest_parse(dgm_text line, dgm_nbest_entry *entry, dgm_error *err)
{
    dgm_text fields[4];
    bool last = false;
    for (int i = 0; i < 4; i++) {
        DGM_FAIL_IF(last, err, DGM_ERR_FORMAT,
                    "%d fields instead of LINE ||| text ||| features ||| score", i);
        fields[i] = field(&line, &last);
    }
    DGM_FAIL_IF(!dgm_number_u64(fields[0], LINE_MAX, &entry->line), err, DGM_ERR_FORMAT,
                "'%.*s' is not the number of a line", DGM_SHOWN(fields[0]));
    DGM_FAIL_IF(!dgm_number_f64(fields[3], &entry->score), err, DGM_ERR_FORMAT,
                "'%.*s' is not a score", DGM_SHOWN(fields[3]));
    entry->text = fields[1];
    entry->features = fields[2];
    return DGM_OK;
}
