// SPDX-License-Identifier: MIT
// Reading the lines of an n-best list; see nbest.h.
#include "lattice/nbest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 63, SHOWN = 40 };

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

static dgm_status parse_line(dgm_text f, uint64_t *out, dgm_error *err)
{
    uint64_t v = 0;
    bool fine = f.size > 0 && f.size <= 18; // below 10^18: no overflow
    for (size_t i = 0; fine && i < f.size; i++) {
        fine = f.data[i] >= '0' && f.data[i] <= '9';
        v = v * 10 + (uint64_t)(f.data[i] - '0');
    }
    DGM_FAIL_IF(!fine, err, DGM_ERR_FORMAT, "'%.*s' is not the number of a line",
                (int)(f.size < SHOWN ? f.size : SHOWN), f.data);
    *out = v;
    return DGM_OK;
}

static dgm_status parse_score(dgm_text f, double *out, dgm_error *err)
{
    char number[NUMBER_MAX + 1];
    char *end = number;
    if (f.size > 0 && f.size <= NUMBER_MAX) {
        memcpy(number, f.data, f.size);
        number[f.size] = 0;
        *out = strtod(number, &end);
    }
    DGM_FAIL_IF(f.size == 0 || f.size > NUMBER_MAX || end != number + f.size || !isfinite(*out),
                err, DGM_ERR_FORMAT, "'%.*s' is not a score",
                (int)(f.size < SHOWN ? f.size : SHOWN), f.data);
    return DGM_OK;
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
    DGM_TRY(parse_line(fields[0], &entry->line, err));
    DGM_TRY(parse_score(fields[3], &entry->score, err));
    entry->text = fields[1];
    entry->features = fields[2];
    return DGM_OK;
}
