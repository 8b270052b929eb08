// SPDX-License-Identifier: MIT
// What a translation must not damage: numbers, prices, times, dates, addresses, placeholders, code,
// names. Three steps, each by itself:
//
//     find    in a source sentence                                        (protect.c, protect_digits.c)
//     check   is it in the translation, in a form of the target language? (protect_forms.c)
//     write   that form                                                   (protect_forms.c)
//
// What is found wrong is translated again with stand-ins (standin.h).
#ifndef DGM_TEXT_PROTECT_H
#define DGM_TEXT_PROTECT_H

#include "dragoman/text.h"
#include "text/tokenize.h"

// How a language writes numbers: decimal 0 where that is not known. Groups of three digits stand between
// `group` (a no-break space: U+00A0 is written ' ' here).
typedef struct dgm_numerals {
    char decimal, group;
} dgm_numerals;

typedef struct dgm_protector {
    dgm_language from, to;
    dgm_numerals source, target;
} dgm_protector;

dgm_protector dgm_protector_for(dgm_text source, dgm_text target); // codes of languages

// A growing list; start with all zero.
typedef struct dgm_protected_list {
    dgm_protected *items;
    size_t count, cap;
} dgm_protected_list;

// Replaces the content: in order, none overlaps another.
dgm_status dgm_protect_find(const dgm_protector *p, dgm_text text, dgm_protected_list *out,
                            dgm_error *err);
// Number of those that the translation holds; kept: NULL or [count].
size_t dgm_protect_check(const dgm_protector *p, dgm_text text, const dgm_protected *found,
                         size_t count, dgm_text translation, unsigned char *kept);
// Appends the form of the target language.
void dgm_protect_write(const dgm_protector *p, dgm_text text, const dgm_protected *one,
                       dgm_writer *out);

// Is a number or a time that the translation has lost there after all, but not as the target language writes it?
// Where.
bool dgm_protect_misspelt(const dgm_protector *p, dgm_text text, const dgm_protected *one,
                          dgm_text translation, size_t *begin, size_t *end);

// ---- digits (protect_digits.c) ------------------------------------------------------------------

// A number as its digits, without what groups them: "1299.99" is {"129999", 2 decimals}.
typedef struct dgm_number {
    char digits[32];
    int count, decimals;
    size_t end; // behind it, in the text
} dgm_number;

// False where no number begins at pos. What has more than one separator and is no number either
// ("3.10.12") has count 0.
bool dgm_number_read(dgm_text text, size_t pos, dgm_numerals how, dgm_number *out);

typedef struct dgm_time_of_day {
    int hour, minute; // minute -1: none was said
    bool certain;     // of 24 hours, or with a.m. or p.m.
    size_t end;
} dgm_time_of_day;

bool dgm_time_read(dgm_text text, size_t pos, dgm_language language, dgm_time_of_day *out);

typedef struct dgm_date {
    int day, month, year;
    bool unsure; // day and month may be the other way round
    size_t end;
} dgm_date;

bool dgm_date_read(dgm_text text, size_t pos, dgm_language language, dgm_date *out);

// What begins with digits, or with the sign of a currency or a telephone number before them, at pos.
// False: nothing that is protected; *end is behind the digits all the same, or 0.
bool dgm_protect_digits(const dgm_protector *p, dgm_text text, size_t pos, dgm_protected *out,
                        size_t *end);

// Length of the sign of a currency at pos, 0: none; *which: a number for the currency.
size_t dgm_currency_at(dgm_text text, size_t pos, int *which);

#endif
