// SPDX-License-Identifier: MIT
// Codes of languages (BCP 47) as files write them.
#ifndef DGM_TEXT_LANGUAGE_CODE_H
#define DGM_TEXT_LANGUAGE_CODE_H

#include <stdbool.h>

#include "base/bytes.h"

// Do two language codes agree as far as both go? "en" and "en-US" do, "pt-BR" and "pt-PT" do not.
bool dgm_language_agrees(dgm_text a, dgm_text b);

#endif
