// SPDX-License-Identifier: MIT
// What is protected, in the language of the translation: is it there, and how is it written? See
// protect.h. Where a language has more than one form all of them pass, so that a translation which is
// right stays as it is.
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

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool holds(dgm_text t, size_t pos, const char *part)
{
    const size_t n = strlen(part);
    return pos + n <= t.size && memcmp(t.data + pos, part, n) == 0;
}

// Does the text hold the lower-case words, in any case, anywhere?
static bool mentions(dgm_text t, const char *words)
{
    const size_t n = strlen(words);
    for (size_t i = 0; i + n <= t.size; i++) {
        size_t k = 0;
        while (k < n && lower(t.data[i + k]) == words[k]) k++;
        if (k == n) return true;
    }
    return false;
}

static bool mentions_any(dgm_text t, const char *const *words)
{
    for (; *words; words++)
        if (mentions(t, *words)) return true;
    return false;
}

static dgm_text text_of(dgm_text text, const dgm_protected *one)
{
    return (dgm_text){text.data + one->begin, one->end - one->begin};
}

// ---- to the byte -------------------------------------------------------------------------------

static size_t count_of(dgm_text t, dgm_text part, bool joined)
{
    size_t found = 0;
    for (size_t i = 0; i + part.size <= t.size; i++) {
        if (memcmp(t.data + i, part.data, part.size) != 0) continue;
        const size_t end = i + part.size;
        const char next = char_at(t, end), first = part.data[0], last = part.data[part.size - 1];
        const bool goes_on = !joined && next && strchr(".@/", next) && is_plain(char_at(t, end + 1));
        const bool more = is_plain(last) && (is_plain(next) || goes_on);
        const bool less = is_plain(first) && i && is_plain(t.data[i - 1]);
        if (more || less) continue;
        found++;
        i = end - 1;
    }
    return found;
}

static bool is_exact(dgm_text text, const dgm_protected *one, dgm_text translation)
{
    const dgm_text part = text_of(text, one);
    const bool joined = one->kind == DGM_PROTECTED_PLACEHOLDER;
    const size_t want = count_of(text, part, joined), have = count_of(translation, part, joined);
    return joined ? have == want || want == 0 : have >= want && have > 0;
}

// ---- numbers -----------------------------------------------------------------------------------

// Without zeros that do not count, before and behind.
static void trim_number(dgm_number *n)
{
    while (n->decimals > 0 && n->digits[n->count - 1] == '0') n->count--, n->decimals--;
    int zeros = 0;
    while (zeros < n->count - n->decimals - 1 && n->digits[zeros] == '0') zeros++;
    n->count -= zeros;
    memmove(n->digits, n->digits + zeros, (size_t)n->count);
}

static bool same_number(const dgm_number *a, const dgm_number *b)
{
    return a->count == b->count && a->decimals == b->decimals && memcmp(a->digits, b->digits, (size_t)a->count) == 0;
}

static int small_value(const dgm_number *n) // -1: it has decimals or is large
{
    int value = 0;
    if (n->decimals || n->count > 7) return -1;
    for (int i = 0; i < n->count; i++) value = value * 10 + (n->digits[i] - '0');
    return value;
}

// A digit at which a number begins.
static bool begins_number(dgm_text t, size_t pos)
{
    if (!is_digit(t.data[pos]) || (pos && is_digit(t.data[pos - 1]))) return false;
    return !(pos > 1 && strchr(".,", t.data[pos - 1]) && is_digit(t.data[pos - 2]));
}

// Groups between the sign that the language has for decimals: "1.234.567" or "1.299,99" in English.
static bool is_foreign(dgm_text t, size_t pos, const dgm_number *n, dgm_numerals how)
{
    while (pos < n->end && is_digit(t.data[pos])) pos++;
    if (pos == n->end || t.data[pos] != how.decimal) return false;
    for (pos++; pos < n->end; pos++)
        if (!is_digit(t.data[pos])) return true;
    return n->decimals == 0;
}

static bool reads_number(dgm_text t, const dgm_number *wanted, dgm_numerals how)
{
    dgm_number n;
    for (size_t pos = 0; pos < t.size; pos++) {
        if (!begins_number(t, pos) || !dgm_number_read(t, pos, how, &n) || n.count == 0) continue;
        if (is_foreign(t, pos, &n, how)) continue;
        trim_number(&n);
        if (same_number(&n, wanted)) return true;
    }
    return false;
}

// Groups may stand between spaces in most languages; in English that is rare, and rather two numbers.
static bool has_number(dgm_text t, const dgm_number *wanted, dgm_numerals how)
{
    if (reads_number(t, wanted, how)) return true;
    return how.decimal == ',' && how.group != ' ' && reads_number(t, wanted, (dgm_numerals){',', ' '});
}

// Numbers that are often written as words.
static bool has_word(dgm_text t, int value, dgm_language language)
{
    static const struct {
        int value;
        const char *en, *de;
    } words[] = {{1, "one", "ein"}, {2, "two", "zwei"}, {3, "three", "drei"}, {4, "four", "vier"}, {5, "five", "fünf"},
                 {6, "six", "sechs"}, {7, "seven", "sieben"}, {8, "eight", "acht"}, {9, "nine", "neun"},
                 {10, "ten", "zehn"}, {11, "eleven", "elf"}, {12, "twel", "zwölf"}, {13, "thirteen", "dreizehn"},
                 {14, "fourteen", "vierzehn"}, {15, "fifteen", "fünfzehn"}, {16, "sixteen", "sechzehn"},
                 {17, "seventeen", "siebzehn"}, {18, "eighteen", "achtzehn"}, {19, "nineteen", "neunzehn"},
                 {20, "twent", "zwanzig"}, {30, "thirt", "dreißig"}, {40, "fort", "vierzig"},
                 {50, "fift", "fünfzig"}, {60, "sixt", "sechzig"}, {70, "sevent", "siebzig"},
                 {80, "eight", "achtzig"}, {90, "ninet", "neunzig"}, {100, "hundred", "hundert"},
                 {1000, "thousand", "tausend"}, {100, "centur", "jahrhundert"}, {24, "twenty-four", "vierundzwanzig"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (words[i].value != value) continue;
        if (language == DGM_LANG_EN && mentions(t, words[i].en)) return true;
        if (language == DGM_LANG_DE && mentions(t, words[i].de)) return true;
    }
    return false;
}

static bool has_currency(dgm_text t, int which)
{
    static const char *const dollar[] = {"$", "dollar", "usd", "dólar", "dolar", NULL};
    static const char *const euro[] = {"€", "eur", NULL};
    static const char *const pound[] = {"£", "pfund", "pound", "gbp", "livre", "libra", "sterl", NULL};
    static const char *const yen[] = {"¥", "yen", "yuan", "jpy", "cny", "rmb", "renminbi", NULL};
    static const char *const *const all[] = {dollar, euro, pound, yen};
    return mentions_any(t, all[which - 1]);
}

// Where the number of a price begins; *which: its currency, *sign: where that stands.
static size_t number_of_price(dgm_text price, int *which, dgm_text *sign)
{
    size_t at = 0;
    *which = 0;
    while (at < price.size && !is_digit(price.data[at])) at++;
    for (size_t i = 0; i < price.size && *which == 0; i++) {
        const size_t n = dgm_currency_at(price, i, which);
        if (n) *sign = (dgm_text){price.data + i, n};
    }
    return at;
}

// "1980s" may be said "80er", and the other way round.
static bool has_decade(dgm_text text, size_t end, const dgm_number *n, dgm_text translation)
{
    const dgm_numerals how = {'.', ','};
    if (n->decimals || (n->count != 4 && n->count != 2)) return false;
    if (char_at(text, end) != 's' && !holds(text, end, "er")) return false;
    dgm_number other = {.digits = "19", .count = n->count == 4 ? 2 : 4};
    memcpy(other.digits + (n->count == 4 ? 0 : 2), n->digits + n->count - 2, 2);
    return has_number(translation, &other, how) || mentions(translation, "ziger") || mentions(translation, "ties");
}

static bool number_kept(const dgm_protector *p, dgm_text text, const dgm_protected *one, dgm_text translation)
{
    const dgm_text part = text_of(text, one);
    dgm_text sign = {0};
    dgm_number n;
    int which = 0;
    const size_t at = one->kind == DGM_PROTECTED_PRICE ? number_of_price(part, &which, &sign) : 0;
    if (which && !has_currency(translation, which)) return false;
    dgm_number_read(part, at, p->source, &n);
    trim_number(&n);
    const int value = small_value(&n);
    if (which && value >= 0 && value <= 12) return true;
    if (has_number(translation, &n, p->target) || has_word(translation, value, p->to)) return true;
    return has_decade(text, one->end, &n, translation);
}

static void write_number(const dgm_protector *p, dgm_text part, const dgm_number *n, dgm_writer *out)
{
    const int whole = n->count - n->decimals;
    size_t length = n->end;
    for (size_t i = 0; i < part.size; i++) // a no-break space is one sign
        length -= ((unsigned char)part.data[i] & 0xC0) == 0x80 && i < n->end;
    const bool grouped = length > (size_t)n->count + (n->decimals > 0);
    for (int i = 0; i < n->count; i++) {
        if (i == whole)
            dgm_write_u8(out, (uint8_t)p->target.decimal);
        else if (grouped && i && i < whole && (whole - i) % 3 == 0)
            dgm_write_text(out, p->target.group == ' ' ? "\xC2\xA0" : p->target.group == ',' ? "," : ".");
        dgm_write_u8(out, (uint8_t)n->digits[i]);
    }
}

static void write_price(const dgm_protector *p, dgm_text part, dgm_writer *out)
{
    int which;
    dgm_number n;
    dgm_text sign = {0};
    const size_t at = number_of_price(part, &which, &sign);
    if (sign.size == 0 || at == part.size) { // not found here
        dgm_write_bytes(out, part.data, part.size);
        return;
    }
    const dgm_text digits = {part.data + at, part.size - at};
    dgm_number_read(digits, 0, p->source, &n);
    const bool before = p->to == DGM_LANG_EN;
    if (before) dgm_write_bytes(out, sign.data, sign.size);
    if (before && is_plain(sign.data[sign.size - 1])) dgm_write_u8(out, ' ');
    write_number(p, (dgm_text){digits.data, n.end}, &n, out);
    if (before) return;
    dgm_write_u8(out, ' ');
    dgm_write_bytes(out, sign.data, sign.size);
}

// ---- times -------------------------------------------------------------------------------------

static bool says_half(dgm_text t) // of the day
{
    static const char *const words[] = {"afternoon", "evening", "night", "noon", "nachmittag", "abend",
                                        "nacht", "mittag", NULL};
    return mentions_any(t, words);
}

static bool time_in_words(dgm_text t, const dgm_time_of_day *time, dgm_language language)
{
    const int hour = time->hour % 12 ? time->hour % 12 : 12;
    if (time->minute == 30) return mentions(t, "halb") || mentions(t, "half");
    if (time->minute == 15 || time->minute == 45) return mentions(t, "viertel") || mentions(t, "quarter");
    if (time->minute > 0) return false;
    return (hour == 12 && says_half(t)) || has_word(t, hour, language);
}

// Is this the time, at a place of the translation?
static bool is_time(dgm_text t, size_t pos, const dgm_time_of_day *wanted, dgm_language language)
{
    dgm_time_of_day said;
    size_t n = is_digit(char_at(t, pos + 1)) ? 2 : 1;
    if (is_digit(char_at(t, pos + n))) return false;
    int hour = n == 2 ? (t.data[pos] - '0') * 10 + t.data[pos + 1] - '0' : t.data[pos] - '0';
    int minute = 0;
    const bool minutes = char_at(t, pos + n) && strchr(":.h", t.data[pos + n]) && is_digit(char_at(t, pos + n + 1)) &&
                         is_digit(char_at(t, pos + n + 2)) && !is_digit(char_at(t, pos + n + 3));
    if (minutes) minute = (t.data[pos + n + 1] - '0') * 10 + t.data[pos + n + 2] - '0';
    if (minute != (wanted->minute > 0 ? wanted->minute : 0)) return false;
    const size_t behind = pos + n + (minutes ? 3 : 0), space = char_at(t, behind) == ' ';
    const char half = lower(char_at(t, behind + space)), m = char_at(t, behind + space + 1);
    const bool halved = language == DGM_LANG_EN && (half == 'a' || half == 'p') && m && strchr(".mM", m) &&
                        dgm_time_read(t, pos, language, &said);
    const bool bad_half = language == DGM_LANG_EN && (half == 'a' || half == 'p') && !halved && hour > 12 &&
                          m && strchr(".m", m); // "20.45 p.m."
    if (bad_half) return false;
    if (halved) return said.hour == wanted->hour % 24 || (!wanted->certain && said.hour % 12 == wanted->hour % 12);
    if (hour % 24 == wanted->hour % 24) return true;
    if (hour % 12 != wanted->hour % 12 || hour > 12) return false;
    return !wanted->certain || says_half(t) || (language != DGM_LANG_EN && language != DGM_LANG_DE);
}

static bool time_kept(const dgm_protector *p, dgm_text text, const dgm_protected *one, dgm_text translation)
{
    dgm_time_of_day time;
    if (!dgm_time_read(text, one->begin, p->from, &time)) return true;
    if (says_half(text)) time.certain = false;
    for (size_t pos = 0; pos < translation.size; pos++)
        if (begins_number(translation, pos) && is_time(translation, pos, &time, p->to)) return true;
    return time_in_words(translation, &time, p->to);
}

static void write_time(const dgm_protector *p, dgm_text text, const dgm_protected *one, dgm_writer *out)
{
    dgm_time_of_day time;
    if (!dgm_time_read(text, one->begin, p->from, &time)) return;
    const int hour = time.hour, twelve = hour % 12 ? hour % 12 : 12;
    const bool half = p->to == DGM_LANG_EN && time.certain && (p->from == DGM_LANG_EN || hour > 12);
    dgm_write_format(out, "%d", half ? twelve : hour);
    if (time.minute >= 0)
        dgm_write_format(out, ":%02d", time.minute);
    else if (!half && p->to != DGM_LANG_DE)
        dgm_write_text(out, ":00");
    if (half) dgm_write_text(out, hour % 24 < 12 ? " a.m." : " p.m.");
    if (p->to == DGM_LANG_DE && time.certain) dgm_write_text(out, " Uhr");
}

// ---- there, but wrong --------------------------------------------------------------------------

static bool misspelt_number(const dgm_protector *p, dgm_text text, const dgm_protected *one, dgm_text translation,
                            size_t *begin, size_t *end)
{
    const dgm_text part = text_of(text, one);
    const dgm_numerals how[2] = {p->source, {p->target.decimal, ' '}};
    dgm_text sign = {0};
    dgm_number n, said;
    int which = 0;
    const size_t at = one->kind == DGM_PROTECTED_PRICE ? number_of_price(part, &which, &sign) : 0;
    if ((which && !has_currency(translation, which)) || !dgm_number_read(part, at, p->source, &n)) return false;
    trim_number(&n);
    for (size_t pos = 0; pos < translation.size; pos++) {
        if (!begins_number(translation, pos)) continue;
        for (int i = 0; i < 2; i++) {
            if (!dgm_number_read(translation, pos, how[i], &said) || said.count == 0) continue;
            *begin = pos;
            *end = said.end;
            trim_number(&said);
            if (same_number(&n, &said)) return true;
        }
    }
    return false;
}

// "19.30 p.m.", or a time before noon that was said to be after it.
static bool misspelt_time(const dgm_protector *p, dgm_text text, const dgm_protected *one, dgm_text translation,
                          size_t *begin, size_t *end)
{
    dgm_time_of_day time;
    if (p->to != DGM_LANG_EN || !dgm_time_read(text, one->begin, p->from, &time)) return false;
    for (size_t pos = 0; pos < translation.size; pos++) {
        if (!begins_number(translation, pos)) continue;
        size_t at = pos;
        int hour = 0, minute = 0;
        for (; at < pos + 2 && is_digit(char_at(translation, at)); at++) hour = hour * 10 + translation.data[at] - '0';
        if (strchr(":.", char_at(translation, at)) && is_digit(char_at(translation, at + 1)) &&
            is_digit(char_at(translation, at + 2))) {
            minute = (translation.data[at + 1] - '0') * 10 + translation.data[at + 2] - '0';
            at += 3;
        }
        at += char_at(translation, at) == ' ';
        const size_t n = holds(translation, at, "a.m.") || holds(translation, at, "p.m.") ? 4
                         : holds(translation, at, "am") || holds(translation, at, "pm")   ? 2
                                                                                          : 0;
        if (n == 0 || hour != time.hour || minute != (time.minute > 0 ? time.minute : 0)) continue;
        const bool stop = n == 4 && time.hour <= 12 && at + n == translation.size; // it ends the sentence, too
        *begin = pos;
        *end = at + n - stop;
        return true;
    }
    return false;
}

bool dgm_protect_misspelt(const dgm_protector *p, dgm_text text, const dgm_protected *one, dgm_text translation,
                          size_t *begin, size_t *end)
{
    switch (one->kind) {
    case DGM_PROTECTED_NUMBER:
    case DGM_PROTECTED_PRICE: return misspelt_number(p, text, one, translation, begin, end);
    case DGM_PROTECTED_TIME: return misspelt_time(p, text, one, translation, begin, end);
    default: return false;
    }
}

// ---- dates -------------------------------------------------------------------------------------

static const char *const months[2][12] = {
    {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
     "December"},
    {"Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November",
     "Dezember"}};

static bool has_name_of(dgm_text t, int month, dgm_language language)
{
    if (language != DGM_LANG_EN && language != DGM_LANG_DE) return true;
    const char *name = months[language == DGM_LANG_DE][month - 1];
    char word[12];
    size_t n = 0;
    for (; name[n]; n++) word[n] = lower(name[n]);
    word[n] = 0;
    return mentions(t, word);
}

static bool has_integer(dgm_text t, int value)
{
    dgm_number n = {0};
    char digits[12];
    int count = 0;
    for (; value > 0 || count == 0; value /= 10) digits[count++] = (char)('0' + value % 10);
    for (n.count = 0; n.count < count; n.count++) n.digits[n.count] = digits[count - 1 - n.count];
    return has_number(t, &n, (dgm_numerals){'.', ','}) || has_number(t, &n, (dgm_numerals){',', '.'});
}

static bool date_kept(const dgm_protector *p, dgm_text text, const dgm_protected *one, dgm_text translation)
{
    dgm_date want, said;
    if (!dgm_date_read(text, one->begin, p->from, &want)) return true;
    if (count_of(translation, text_of(text, one), false)) return true;
    for (size_t pos = 0; pos < translation.size; pos++) {
        if (!begins_number(translation, pos) || !dgm_date_read(translation, pos, p->to, &said)) continue;
        if (said.year % 100 != want.year % 100) continue;
        if (said.day == want.day && said.month == want.month) return true;
        if ((said.unsure || want.unsure) && said.day == want.month && said.month == want.day) return true;
    }
    if (!has_integer(translation, want.year)) return false;
    const bool there = has_integer(translation, want.day) && has_name_of(translation, want.month, p->to);
    if (there || !want.unsure) return there;
    return has_integer(translation, want.month) && has_name_of(translation, want.day, p->to);
}

static void write_date(const dgm_protector *p, dgm_text text, const dgm_protected *one, dgm_writer *out)
{
    dgm_date d;
    const dgm_text part = text_of(text, one);
    const bool known = dgm_date_read(text, one->begin, p->from, &d) && !d.unsure && d.year >= 1000;
    if (known && p->to == DGM_LANG_EN && memchr(part.data, '.', part.size))
        dgm_write_format(out, "%d %s %d", d.day, months[0][d.month - 1], d.year);
    else if (known && p->to == DGM_LANG_DE && memchr(part.data, '/', part.size))
        dgm_write_format(out, "%02d.%02d.%d", d.day, d.month, d.year);
    else
        dgm_write_bytes(out, part.data, part.size);
}

// ---- names -------------------------------------------------------------------------------------

// A word of a name with its umlauts written out, or as it is.
static bool has_name(dgm_text t, dgm_text word)
{
    static const struct {
        unsigned char second;
        const char *out;
    } written[] = {{0xA4, "ae"}, {0xB6, "oe"}, {0xBC, "ue"}, {0x84, "Ae"}, {0x96, "Oe"}, {0x9C, "Ue"}, {0x9F, "ss"}};
    char other[64];
    size_t n = 0;
    for (size_t i = 0; i < word.size && n + 2 < sizeof other; i++) {
        const unsigned char next = (unsigned char)char_at(word, i + 1);
        const char *out = NULL;
        for (size_t k = 0; k < sizeof written / sizeof *written; k++)
            if ((unsigned char)word.data[i] == 0xC3 && written[k].second == next) out = written[k].out;
        if (out) {
            memcpy(other + n, out, 2);
            n += 2;
            i++;
        } else {
            other[n++] = word.data[i];
        }
    }
    for (size_t i = 0; i < t.size; i++) {
        if (i && is_plain(t.data[i - 1])) continue;
        if (i + word.size <= t.size && memcmp(t.data + i, word.data, word.size) == 0) return true;
        if (i + n <= t.size && memcmp(t.data + i, other, n) == 0) return true;
    }
    return false;
}

// Its words with foreign letters; the others may have a form of their own.
static bool name_kept(dgm_text name, dgm_text translation)
{
    for (size_t pos = 0; pos < name.size;) {
        size_t end = pos;
        bool foreign = false;
        for (; end < name.size && name.data[end] != ' '; end++) foreign |= (unsigned char)name.data[end] >= 0x80;
        if (foreign && !has_name(translation, (dgm_text){name.data + pos, end - pos})) return false;
        pos = end + 1;
    }
    return true;
}

// ---- all of it ---------------------------------------------------------------------------------

static bool is_kept(const dgm_protector *p, dgm_text text, const dgm_protected *one, dgm_text translation)
{
    switch (one->kind) {
    case DGM_PROTECTED_NUMBER:
    case DGM_PROTECTED_PRICE: return number_kept(p, text, one, translation);
    case DGM_PROTECTED_TIME: return time_kept(p, text, one, translation);
    case DGM_PROTECTED_DATE: return date_kept(p, text, one, translation);
    case DGM_PROTECTED_NAME: return name_kept(text_of(text, one), translation);
    default: return is_exact(text, one, translation);
    }
}

size_t dgm_protect_check(const dgm_protector *p, dgm_text text, const dgm_protected *found, size_t count,
                         dgm_text translation, unsigned char *kept)
{
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        const bool there = is_kept(p, text, &found[i], translation);
        if (kept) kept[i] = there;
        all += there;
    }
    return all;
}

void dgm_protect_write(const dgm_protector *p, dgm_text text, const dgm_protected *one, dgm_writer *out)
{
    const dgm_text part = text_of(text, one);
    dgm_number n;
    switch (one->kind) {
    case DGM_PROTECTED_NUMBER:
        if (!dgm_number_read(part, 0, p->source, &n)) break;
        write_number(p, part, &n, out);
        return;
    case DGM_PROTECTED_PRICE: write_price(p, part, out); return;
    case DGM_PROTECTED_TIME: write_time(p, text, one, out); return;
    case DGM_PROTECTED_DATE: write_date(p, text, one, out); return;
    default: break;
    }
    dgm_write_bytes(out, part.data, part.size);
}
