// SPDX-License-Identifier: MIT
// What is written in digits: numbers, prices, times, dates, telephone numbers, versions. See protect.h.
#include <string.h>

#include "text/protect.h"

static char char_at(dgm_text t, size_t pos)
{
    return pos < t.size ? t.data[pos] : 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || ((unsigned char)c >= 0xC3 && (unsigned char)c <= 0xDF);
}

static size_t digits_at(dgm_text t, size_t pos)
{
    size_t n = 0;
    while (is_digit(char_at(t, pos + n))) n++;
    return n;
}

static bool holds(dgm_text t, size_t pos, const char *part)
{
    const size_t n = strlen(part);
    return pos + n <= t.size && memcmp(t.data + pos, part, n) == 0;
}

static int value_of(dgm_text t, size_t pos, size_t n)
{
    int value = 0;
    for (size_t i = 0; i < n && i < 8; i++) value = value * 10 + (t.data[pos + i] - '0');
    return value;
}

// A space or a no-break one; returns its length.
static size_t space_at(dgm_text t, size_t pos)
{
    if (char_at(t, pos) == ' ') return 1;
    if (holds(t, pos, "\xC2\xA0")) return 2;
    return holds(t, pos, "\xE2\x80\xAF") ? 3 : 0;
}

// ---- numbers -----------------------------------------------------------------------------------

// A separator of digits and its length; spaces count where the language groups by them.
static size_t separator_at(dgm_text t, size_t pos, dgm_numerals how, char *which)
{
    const char c = char_at(t, pos);
    *which = c;
    if (c == '.' || c == ',' || c == '\'') return 1;
    *which = ' ';
    if (c == ' ' && how.group != ' ') return 0;
    return space_at(t, pos);
}

// Digits of a number between separators.
typedef struct groups {
    size_t at[12], size[12];
    char before[12]; // the separator
    int count;
    size_t end;
} groups;

static void read_groups(dgm_text t, size_t pos, dgm_numerals how, groups *g)
{
    g->count = 1;
    g->at[0] = pos;
    g->size[0] = digits_at(t, pos);
    g->end = pos + g->size[0];
    while (g->count < 12) {
        char which;
        const size_t n = separator_at(t, g->end, how, &which);
        const size_t more = n ? digits_at(t, g->end + n) : 0;
        const bool triple = more == 3 && g->size[0] <= 3;
        if (more == 0 || (which == ' ' && !triple)) break;
        g->before[g->count] = which;
        g->at[g->count] = g->end + n;
        g->size[g->count++] = more;
        g->end += n + more;
    }
}

// Are groups 1 to last all of three digits, between the same separators?
static bool are_triples(const groups *g, int last)
{
    for (int i = 1; i <= last; i++)
        if (g->size[i] != 3 || g->before[i] != g->before[1]) return false;
    return g->size[0] <= 3;
}

bool dgm_number_read(dgm_text t, size_t pos, dgm_numerals how, dgm_number *out)
{
    groups g;
    *out = (dgm_number){0};
    if (!is_digit(char_at(t, pos))) return false;
    read_groups(t, pos, how, &g);
    const int last = g.count - 1;
    int whole = last; // groups 0 to whole make the integer
    if (last == 1) {
        const bool zero = g.size[0] == 1 && t.data[g.at[0]] == '0';
        const bool grouped = are_triples(&g, 1) && g.before[1] != how.decimal && !zero;
        whole = grouped ? 1 : 0;
    } else if (last > 1 && !are_triples(&g, last)) {
        whole = last - 1;
        const bool other = g.before[last] != g.before[1] && (g.before[last] == '.' || g.before[last] == ',');
        out->end = g.end;
        if (!other || !are_triples(&g, whole)) return true; // no number, but digits that belong together
    }
    out->end = g.end;
    for (int i = 0; i <= last; i++)
        for (size_t k = 0; k < g.size[i]; k++) {
            if (out->count == (int)sizeof out->digits) {
                out->count = out->decimals = 0;
                return true;
            }
            out->digits[out->count++] = t.data[g.at[i] + k];
            out->decimals += i > whole;
        }
    return true;
}

// ---- times -------------------------------------------------------------------------------------

// "a.m.", "pm" and the like behind a time, with the space before it; *after: p.m.
static size_t half_at(dgm_text t, size_t pos, bool *after)
{
    static const char *const forms[] = {"a.m.", "A.M.", "am", "AM", "a.m", "p.m.", "P.M.", "pm", "PM", "p.m"};
    const size_t space = space_at(t, pos);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const size_t end = pos + space + strlen(forms[i]);
        if (!holds(t, pos + space, forms[i]) || is_letter(char_at(t, end)) || is_digit(char_at(t, end))) continue;
        *after = i >= 5;
        return end - pos;
    }
    return 0;
}

static size_t uhr_at(dgm_text t, size_t pos)
{
    const size_t space = space_at(t, pos), end = pos + space + 3;
    return holds(t, pos + space, "Uhr") && !is_letter(char_at(t, end)) ? space + 3 : 0;
}

bool dgm_time_read(dgm_text t, size_t pos, dgm_language language, dgm_time_of_day *out)
{
    const size_t n = digits_at(t, pos);
    size_t end = pos + n, suffix = 0;
    if (n == 0 || n > 2) return false;
    *out = (dgm_time_of_day){.hour = value_of(t, pos, n), .minute = -1};
    const char sign = char_at(t, end);
    const size_t more = sign == ':' || sign == '.' ? digits_at(t, end + 1) : 0;
    if (more == 2) {
        out->minute = value_of(t, end + 1, 2);
        end += 3;
    } else if (more) {
        return false;
    }
    const char next = char_at(t, end);
    if ((next == ':' || next == '.' || next == ',') && is_digit(char_at(t, end + 1))) return false;
    bool after = false;
    if (language == DGM_LANG_EN && (suffix = half_at(t, end, &after)) != 0) {
        if (out->hour > 12) return false;
        out->hour = out->hour % 12 + (after ? 12 : 0);
        out->certain = true;
    } else if (language == DGM_LANG_DE && (suffix = uhr_at(t, end)) != 0) {
        out->certain = true;
    } else if (sign != ':' || more == 0) {
        return false;
    }
    out->certain |= out->hour > 12 || (n == 2 && t.data[pos] == '0');
    out->end = end + suffix;
    return out->hour <= 24 && out->minute < 60;
}

// ---- dates -------------------------------------------------------------------------------------

bool dgm_date_read(dgm_text t, size_t pos, dgm_language language, dgm_date *out)
{
    size_t at[3], size[3], end = pos;
    const char sign = char_at(t, pos + digits_at(t, pos));
    if (sign != '.' && sign != '/' && sign != '-') return false;
    for (int i = 0; i < 3; i++) {
        at[i] = end;
        size[i] = digits_at(t, end);
        end += size[i];
        if (size[i] == 0 || (i < 2 && char_at(t, end++) != sign)) return false;
    }
    if (is_digit(char_at(t, end + 1)) && strchr(".-/:,", char_at(t, end))) return false;
    const bool iso = size[0] == 4 && size[1] == 2 && size[2] == 2 && sign == '-';
    const bool plain = size[0] <= 2 && size[1] <= 2 && (size[2] == 4 || (size[2] == 2 && sign != '-'));
    if (!iso && !plain) return false;
    const int first = value_of(t, at[0], size[0]), third = value_of(t, at[2], size[2]);
    *out = (dgm_date){.day = iso ? third : first, .month = value_of(t, at[1], size[1]), .year = iso ? first : third,
                      .end = end};
    if (!iso && sign == '/' && language == DGM_LANG_EN) { // in America the month comes first
        out->unsure = out->day <= 12 && out->month <= 12;
        if (out->month > 12) *out = (dgm_date){.day = out->month, .month = out->day, .year = out->year, .end = end};
    }
    const bool real = size[2] == 2 || (out->year >= 1000 && out->year < 3000);
    return real && out->day >= 1 && out->day <= 31 && out->month >= 1 && out->month <= 12;
}

// ---- what begins here --------------------------------------------------------------------------

size_t dgm_currency_at(dgm_text t, size_t pos, int *which)
{
    static const struct {
        const char *sign;
        int which;
    } signs[] = {{"US$", 1}, {"$", 1}, {"€", 2}, {"£", 3}, {"¥", 4}, {"USD", 1}, {"EUR", 2},
                 {"GBP", 3}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const size_t n = strlen(signs[i].sign);
        if (!holds(t, pos, signs[i].sign) || (n == 3 && is_letter(signs[i].sign[2]) && is_letter(char_at(t, pos + n))))
            continue;
        *which = signs[i].which;
        return n;
    }
    return 0;
}

// "+49 30 1234567", "0800 123 456", "555-1234", "4711-0815": digits in groups that are no number.
static size_t identifier_at(dgm_text t, size_t pos)
{
    enum { FEWEST = 7 };
    const bool plus = char_at(t, pos) == '+';
    size_t end = pos + plus, count = 0, sizes[8] = {0}, total = 0;
    bool zero = false, hyphens = true;
    while (count < 8) {
        const size_t bracket = char_at(t, end) == '(', n = digits_at(t, end + bracket);
        if (n == 0) break;
        if (bracket && char_at(t, end + 1 + n) != ')') break;
        zero |= t.data[end + bracket] == '0' && n > 1;
        sizes[count++] = n;
        total += n;
        end += n + 2 * bracket;
        const char c = char_at(t, end);
        const bool joined = c == '-' || ((plus || t.data[pos] == '0') && (c == ' ' || c == '/'));
        const size_t next = end + joined;
        if (!joined || !(is_digit(char_at(t, next)) || char_at(t, next) == '(')) break;
        hyphens &= c == '-';
        end = next;
    }
    if (count == 8 || total < FEWEST || count < 2) return 0;
    if (!is_digit(char_at(t, end - 1)) || is_letter(char_at(t, end))) return 0;
    if (plus || t.data[pos] == '0') return end - pos;
    const bool local = count == 2 && sizes[0] == 3 && sizes[1] == 4;
    return hyphens && (zero || count > 2 || local) ? end - pos : 0;
}

static bool is_small(const dgm_number *n)
{
    if (n->decimals) return false;
    int value = 0;
    for (int i = 0; i < n->count; i++) value = value < 1000 ? value * 10 + (n->digits[i] - '0') : value;
    return value <= 12;
}

// A number, with the sign of a currency before it or behind it.
static bool number_at(const dgm_protector *p, dgm_text t, size_t pos, dgm_protected *out, size_t *end)
{
    int which;
    const size_t sign = dgm_currency_at(t, pos, &which);
    const size_t begin = pos + sign + (sign ? space_at(t, pos + sign) : 0);
    dgm_number n;
    if (!dgm_number_read(t, begin, p->source, &n)) return false;
    *end = n.end;
    *out = (dgm_protected){pos, n.end, DGM_PROTECTED_NUMBER};
    if (n.count == 0) {
        out->kind = DGM_PROTECTED_CODE;
        return sign == 0;
    }
    if (p->source.decimal == 0 || p->target.decimal == 0) return false;
    if (sign) {
        out->kind = DGM_PROTECTED_PRICE;
        return true;
    }
    const size_t space = space_at(t, n.end), behind = dgm_currency_at(t, n.end + space, &which);
    if (behind && !is_digit(char_at(t, n.end + space + behind))) {
        *end = out->end = n.end + space + behind;
        out->kind = DGM_PROTECTED_PRICE;
        return true;
    }
    const bool mistyped = n.decimals > 3 && memchr(t.data + begin, p->source.group, n.end - begin); // "60.0000"
    return !mistyped && !is_small(&n);
}

bool dgm_protect_digits(const dgm_protector *p, dgm_text t, size_t pos, dgm_protected *out, size_t *end)
{
    dgm_date date;
    dgm_time_of_day time;
    *end = 0;
    const size_t identifier = identifier_at(t, pos);
    if (char_at(t, pos) == '+' && !identifier) return false;
    const bool known = p->source.decimal && p->target.decimal;
    if (is_digit(t.data[pos]) && dgm_date_read(t, pos, p->from, &date)) {
        *end = date.end;
        *out = (dgm_protected){pos, date.end, DGM_PROTECTED_DATE};
        return known;
    }
    if (identifier) {
        *end = pos + identifier;
        *out = (dgm_protected){pos, *end, DGM_PROTECTED_CODE};
        return true;
    }
    if (is_digit(t.data[pos]) && dgm_time_read(t, pos, p->from, &time)) {
        *end = time.end;
        *out = (dgm_protected){pos, time.end, DGM_PROTECTED_TIME};
        return known;
    }
    return number_at(p, t, pos, out, end);
}
