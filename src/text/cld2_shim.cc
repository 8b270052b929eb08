// SPDX-License-Identifier: MIT
// CLD2 behind cld2_shim.h. Nothing thrown leaves this file.
#include "text/cld2_shim.h"

#include <cstdio>
#include <cstring>
#include <exception>

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

static int detect(const char *text, int size, bool best_effort, dgm_cld2_candidate *candidates, bool *reliable)
{
    const CLD2::CLDHints hints = {nullptr, nullptr, CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
    // Set here: of text with control characters and the like CLD2 says nothing at all.
    CLD2::Language language[DGM_CLD2_MOST] = {CLD2::UNKNOWN_LANGUAGE, CLD2::UNKNOWN_LANGUAGE, CLD2::UNKNOWN_LANGUAGE};
    int percent[DGM_CLD2_MOST] = {0}, bytes = 0, valid = 0, count = 0;
    double scores[DGM_CLD2_MOST] = {0};
    const int flags = best_effort ? CLD2::kCLDFlagBestEffort : 0;
    CLD2::ExtDetectLanguageSummaryCheckUTF8(text, size, true, &hints, flags, language, percent, scores, nullptr, &bytes,
                                            reliable, &valid);
    for (int i = 0; i < DGM_CLD2_MOST; i++) {
        if (language[i] == CLD2::UNKNOWN_LANGUAGE || percent[i] == 0) continue;
        std::snprintf(candidates[count].code, sizeof candidates[count].code, "%s", CLD2::LanguageCode(language[i]));
        candidates[count++].percent = percent[i];
    }
    return count;
}

int dgm_cld2(const char *text, size_t size, bool best_effort, dgm_cld2_candidate *candidates, bool *reliable)
{
    const int most = 1 << 20;
    *reliable = false;
    try {
        return detect(text, size < (size_t)most ? (int)size : most, best_effort, candidates, reliable);
    } catch (const std::exception &) {
        *reliable = false;
        return 0;
    }
}
