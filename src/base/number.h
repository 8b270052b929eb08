// SPDX-License-Identifier: MIT
// Numbers as text: the one parser of the library. The program uses the same one through
// dragoman/common.h (dgm_number_integer and its neighbours), which adds the message.
//
// Strict: the whole text is the number, in decimal, without blanks around it; nothing hexadecimal,
// no "inf", no "nan", and '.' is the decimal point in every locale. What is out of range is refused,
// never clipped. On false the result keeps its value.
#ifndef DGM_BASE_NUMBER_H
#define DGM_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DGM_NUMBER_MAX = 127 }; // bytes of a real number; a longer text is none

// Digits only, 0 to max.
bool dgm_number_u64(dgm_text text, uint64_t max, uint64_t *value);
// The same for the digits at the beginning of *text, which is moved behind them.
bool dgm_number_take_u64(dgm_text *text, uint64_t max, uint64_t *value);
// With an optional sign, min to max.
bool dgm_number_i64(dgm_text text, int64_t min, int64_t max, int64_t *value);
// Finite numbers, rounded once to the nearest of their type. Too small a number becomes 0.
bool dgm_number_f32(dgm_text text, float *value);
bool dgm_number_f64(dgm_text text, double *value);

#endif
