// SPDX-License-Identifier: MIT
// The one table of settings: dragoman/settings.h describes its rows to programs; where a value is kept
// is told here. Defaults, ranges, the command line, its help and the journal of a job follow from it.
#ifndef DGM_ENGINE_SETTINGS_TABLE_H
#define DGM_ENGINE_SETTINGS_TABLE_H

#include <stdbool.h>

#include "base/status.h"
#include "dragoman/settings.h"

// The field at `offset` of dgm_settings is, by kind: FLAG and INT int32_t, WHOLE uint64_t, SIZE int64_t,
// FLOAT float, FLOATS float[count], TEXT and CHOICE const char *, LIST const char *[count].
typedef struct dgm_setting_row {
    dgm_setting pub;
    size_t offset;
    bool coded;       // CHOICE: the field is an int32_t, the number of the value
    // CHOICE: the values that may carry a number of pub.min to pub.max, NAME:K; NULL: none.
    const char *numbered[3];
    // CHOICE of precisions: what other programs call them, "int8=i8|float32=f32"; NULL: nothing.
    const char *alike;
    bool inverse;     // FLAG: 1 is kept as 0, 0 as 1
    size_t switched;  // FLOATS: offset of the int32_t that says whether they are set
    const char *text; // default of a TEXT; NULL: none
} dgm_setting_row;

extern const dgm_setting_row dgm_setting_rows[];
extern const size_t dgm_setting_row_count;

// Values by their other names become the table's own.
void dgm_settings_canonical(dgm_settings *s);
// A whole struct with every default.
dgm_settings dgm_settings_usual(void);
// Is every number in its range, every choice one of its values? What settings mean together is not
// looked at. The weights of LMBR count where there is evidence.
dgm_status dgm_settings_check_values(const dgm_settings *s, dgm_error *err);
dgm_status dgm_lmbr_check_values(const dgm_lmbr *l, dgm_error *err);

static inline bool dgm_wants_phrases(const dgm_settings *s)
{
    return s->phrase_system && s->phrase_system[0];
}
static inline bool dgm_wants_evidence(const dgm_settings *s)
{
    return s->evidence || dgm_wants_phrases(s);
}

#endif
