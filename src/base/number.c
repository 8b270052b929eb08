// SPDX-License-Identifier: MIT
// Numbers as text; see number.h and dragoman/common.h.
//
// A decimal number of few digits is one exact product or quotient (Clinger 1990): its digits and the
// power of ten are both doubles without any rounding, so that the one rounding is that of the result.
// All other numbers are rounded by the C library, in the "C" locale whatever the program has set: a
// correct conversion needs long arithmetic in the worst case.
#define _GNU_SOURCE // strtod_l, strtof_l
#include "base/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dragoman/common.h"

// ---- whole numbers -----------------------------------------------------------------------------

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool dgm_number_take_u64(dgm_text *text, uint64_t max, uint64_t *value)
{
    uint64_t v = 0;
    size_t n = 0;
    for (; n < text->size && is_digit(text->data[n]); n++) {
        const uint64_t digit = (uint64_t)(text->data[n] - '0');
        if (v > (UINT64_MAX - digit) / 10) return false;
        v = v * 10 + digit;
    }
    if (n == 0 || v > max) return false;
    text->data += n;
    text->size -= n;
    *value = v;
    return true;
}

bool dgm_number_u64(dgm_text text, uint64_t max, uint64_t *value)
{
    uint64_t v;
    if (!dgm_number_take_u64(&text, max, &v) || text.size) return false;
    *value = v;
    return true;
}

bool dgm_number_i64(dgm_text text, int64_t min, int64_t max, int64_t *value)
{
    const bool sign = text.size && (text.data[0] == '-' || text.data[0] == '+');
    const bool negative = sign && text.data[0] == '-';
    uint64_t size;
    if (sign) text.data++, text.size--;
    if (!dgm_number_u64(text, (uint64_t)INT64_MAX + negative, &size)) return false;
    // INT64_MIN has no positive counterpart: negate one less.
    const int64_t v = !negative || size == 0 ? (int64_t)size : -(int64_t)(size - 1) - 1;
    if (v < min || v > max) return false;
    *value = v;
    return true;
}

// ---- real numbers ------------------------------------------------------------------------------

static pthread_once_t locale_once = PTHREAD_ONCE_INIT;
static locale_t plain_locale; // (locale_t)0: it could not be made, and no number is read

static void make_locale(void)
{
    plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

// A number taken apart: [-] mantissa * 10^exponent.
typedef struct decimal {
    bool negative, exact; // exact: the mantissa has all digits
    uint64_t mantissa;
    int exponent;
} decimal;

enum { EXPONENT_MAX = 100000 }; // far beyond what any type holds

// Digits from p on into the mantissa; behind the point each one lowers the exponent.
static const char *scan_digits(decimal *d, const char *p, const char *end, bool fraction)
{
    for (; p < end && is_digit(*p); p++) {
        if (d->mantissa > (UINT64_MAX - 9) / 10) {
            d->exact = false;
            continue;
        }
        d->mantissa = d->mantissa * 10 + (uint64_t)(*p - '0');
        d->exponent -= fraction;
    }
    return p;
}

static const char *scan_exponent(decimal *d, const char *p, const char *end)
{
    const bool sign = p < end && (*p == '+' || *p == '-');
    const bool negative = sign && *p == '-';
    int e = 0;
    const char *const begin = p += sign;
    for (; p < end && is_digit(*p); p++)
        if (e < EXPONENT_MAX) e = e * 10 + (*p - '0');
    d->exponent += negative ? -e : e;
    return p > begin ? p : NULL;
}

// [+-] DIGITS [. DIGITS] [e [+-] DIGITS], with digits on one side of the point at least.
static bool scan_real(dgm_text t, decimal *d)
{
    if (t.size == 0 || t.size > DGM_NUMBER_MAX) return false;
    const char *p = t.data, *const end = t.data + t.size;
    *d = (decimal){.negative = *p == '-', .exact = true};
    if (*p == '+' || *p == '-') p++;
    const char *const whole = p;
    p = scan_digits(d, p, end, false);
    bool any = p > whole;
    if (p < end && *p == '.') {
        const char *const part = ++p;
        p = scan_digits(d, p, end, true);
        any = any || p > part;
    }
    if (!any) return false;
    if (p < end && (*p == 'e' || *p == 'E')) p = scan_exponent(d, p + 1, end);
    return p == end;
}

// The nearest double where one operation finds it.
static bool few_digits(const decimal *d, double *value)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const int e = d->exponent;
    if (!d->exact || d->mantissa > (uint64_t)1 << 53 || e < -22 || e > 22) return false;
    const double m = d->negative ? -(double)d->mantissa : (double)d->mantissa;
    *value = e < 0 ? m / power[-e] : m * power[e];
    return true;
}

// The nearest float of a number whose nearest double is v: that of v itself, unless v lies halfway
// between two floats, where it does not say on which side of them the number was.
static bool float_of(double v, float *value)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    const uint64_t below = bits & (((uint64_t)1 << 29) - 1); // what a float has no room for
    const double size = fabs(v);
    if (below == (uint64_t)1 << 28 || (size < (double)FLT_MIN && size > 0) ||
        size >= (double)FLT_MAX)
        return false;
    *value = (float)v;
    return true;
}

// The text terminated by NUL, for the C library.
static bool copy_real(dgm_text text, char copy[DGM_NUMBER_MAX + 1])
{
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    pthread_once(&locale_once, make_locale);
    return plain_locale != (locale_t)0;
}

bool dgm_number_f32(dgm_text text, float *value)
{
    char copy[DGM_NUMBER_MAX + 1];
    decimal d;
    double near;
    if (!scan_real(text, &d)) return false;
    if (few_digits(&d, &near) && float_of(near, value)) return true;
    if (!copy_real(text, copy)) return false;
    const float v = strtof_l(copy, NULL, plain_locale);
    if (!isfinite(v)) return false;
    *value = v;
    return true;
}

bool dgm_number_f64(dgm_text text, double *value)
{
    char copy[DGM_NUMBER_MAX + 1];
    decimal d;
    if (!scan_real(text, &d)) return false;
    if (few_digits(&d, value)) return true;
    if (!copy_real(text, copy)) return false;
    const double v = strtod_l(copy, NULL, plain_locale);
    if (!isfinite(v)) return false;
    *value = v;
    return true;
}

// ---- with a message ----------------------------------------------------------------------------

dgm_status dgm_number_integer(const char *what, const char *text, int64_t min, int64_t max,
                              int64_t *value, dgm_error *err)
{
    int64_t v;
    const bool number = dgm_number_i64(dgm_text_of(text), INT64_MIN, INT64_MAX, &v);
    DGM_FAIL_IF(!number, err, DGM_ERR_ARGUMENT,
                "%s must be a whole number from %lld to %lld, not '%.80s'", what, (long long)min,
                (long long)max, text ? text : "");
    DGM_FAIL_IF(v < min || v > max, err, DGM_ERR_ARGUMENT, "%s must be %lld to %lld, not %lld",
                what, (long long)min, (long long)max, (long long)v);
    *value = v;
    return DGM_OK;
}

dgm_status dgm_number_real(const char *what, const char *text, double min, double max,
                           double *value, dgm_error *err)
{
    double v;
    DGM_FAIL_IF(!dgm_number_f64(dgm_text_of(text), &v), err, DGM_ERR_ARGUMENT,
                "%s must be a number from %g to %g, not '%.80s'", what, min, max, text ? text : "");
    DGM_FAIL_IF(v < min || v > max, err, DGM_ERR_ARGUMENT, "%s must be %g to %g, not %.80s", what,
                min, max, text);
    *value = v;
    return DGM_OK;
}

dgm_status dgm_number_size(const char *what, const char *text, int64_t min, int64_t max,
                           int64_t *bytes, dgm_error *err)
{
    static const char units[] = "KMGTkmgt";
    dgm_text t = dgm_text_of(text);
    const char *unit = t.size ? memchr(units, t.data[t.size - 1], sizeof units - 1) : NULL;
    double v = 0, factor = 1024;
    if (unit) t.size--;
    for (long k = unit ? (unit - units) % 4 : 1; k > 0; k--) factor *= 1024;
    DGM_FAIL_IF(!dgm_number_f64(t, &v) || v < 0, err, DGM_ERR_ARGUMENT,
                "%s must be a size like 512M or 2G, not '%.80s'", what, text ? text : "");
    v *= factor;
    DGM_FAIL_IF(v < (double)min || v > (double)max || v >= 0x1p63, err, DGM_ERR_ARGUMENT,
                "%s must be %lld to %lld bytes, not %.80s", what, (long long)min, (long long)max,
                text);
    *bytes = (int64_t)v;
    return DGM_OK;
}

dgm_status dgm_number_list(const char *what, const char *text, double *values, int most, int *count,
                           dgm_error *err)
{
    dgm_text left = dgm_text_of(text);
    int n = 0;
    for (bool more = left.size > 0; more; n++) {
        const char *comma = memchr(left.data, ',', left.size);
        const dgm_text item = {left.data, comma ? (size_t)(comma - left.data) : left.size};
        double v;
        DGM_FAIL_IF(!dgm_number_f64(item, &v), err, DGM_ERR_ARGUMENT,
                    "%s must be numbers separated by commas, not '%.80s'", what, text);
        DGM_FAIL_IF(n == most, err, DGM_ERR_ARGUMENT, "%s has more than %d numbers: '%.80s'", what,
                    most, text);
        values[n] = v;
        more = comma != NULL;
        left = (dgm_text){item.data + item.size + more, left.size - item.size - more};
    }
    *count = n;
    return DGM_OK;
}
