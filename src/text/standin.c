// SPDX-License-Identifier: MIT
// See standin.h.
#include "text/standin.h"

#include <string.h>

#include "base/mem.h"

void dgm_standins_free(dgm_standins *s)
{
    dgm_writer_free(&s->text);
    dgm_writer_free(&s->forms);
    s->count = 0;
}

static char char_at(dgm_text t, size_t pos)
{
    return pos < t.size ? t.data[pos] : 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || (unsigned char)c >= 0x80;
}

static bool holds(dgm_text t, const char *part)
{
    const size_t n = strlen(part);
    for (size_t i = 0; i + n <= t.size; i++)
        if (memcmp(t.data + i, part, n) == 0) return true;
    return false;
}

// ---- choosing ----------------------------------------------------------------------------------

static bool is_year(dgm_text t)
{
    return t.size == 4 && (t.data[0] == '1' || t.data[0] == '2') && is_digit(t.data[1]) && is_digit(t.data[2]) &&
           is_digit(t.data[3]);
}

// Does a placeholder stand for a number: "%d", "{count}"?
static bool is_counter(dgm_text t)
{
    static const char *const words[] = {"count", "num", "anzahl", "zahl", "total", "Count", "Num", "Anzahl"};
    if (t.data[0] == '%' && strchr("diu", t.data[t.size - 1])) return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (holds(t, words[i])) return true;
    return false;
}

// "$3.7 million", "$325m": the currency does not stand beside what is counted.
static bool has_magnitude(dgm_text t, size_t end)
{
    const char c = char_at(t, end + (char_at(t, end) == ' '));
    return c && strchr("mbtMBTk", c);
}

static const char *const letters[] = {"X1", "Q7", "K2", "B5", "Z9", "W4", "V8", "J6", "X3", "Q4", "K9", "B8", NULL};
static const char *const numbers[] = {"17", "23", "38", "46", "57", "64", "79", "83", "92", "27", "34", "58", NULL};
static const char *const years[] = {"1987", "1963", "1974", "1958", "1995", "1946", "1991", "1969", "1982", NULL};

// The first of a list that neither the sentence nor a stand-in before has.
static const char *choose(const dgm_standins *s, dgm_text text, const char *const *list, int round)
{
    for (list += round; *list; list++) {
        bool used = holds(text, *list);
        for (size_t i = 0; i < s->count; i++) used |= strcmp(s->items[i].word, *list) == 0;
        if (!used) return *list;
    }
    return NULL;
}

// What part of it is replaced, and what kind of word stands there.
static void plan(dgm_text text, const dgm_protected *one, int round, dgm_standin *x, dgm_protected *part)
{
    const bool price = one->kind == DGM_PROTECTED_PRICE, number = one->kind == DGM_PROTECTED_NUMBER;
    const dgm_text own = {text.data + one->begin, one->end - one->begin};
    *part = *one;
    x->number = (round == 0 && (number || price)) || (price && has_magnitude(text, one->end)) ||
                (round == 0 && one->kind == DGM_PROTECTED_PLACEHOLDER && is_counter(own));
    if (!price || !x->number) return;
    part->kind = DGM_PROTECTED_NUMBER; // the currency stays in the sentence
    while (!is_digit(text.data[part->begin])) part->begin++;
    while (!is_digit(text.data[part->end - 1])) part->end--;
}

// "p.m." may end the sentence as well: its stop stays.
static void keep_stop(dgm_text text, dgm_protected *part)
{
    if (part->kind == DGM_PROTECTED_TIME && part->end == text.size && text.data[text.size - 1] == '.') part->end--;
}

static dgm_status add_one(dgm_standins *s, const dgm_protector *p, dgm_text text, const dgm_protected *one, int round,
                          size_t *done, dgm_error *err)
{
    dgm_standin x = {0};
    dgm_protected part;
    plan(text, one, round, &x, &part);
    const bool year = is_year((dgm_text){text.data + part.begin, part.end - part.begin});
    const char *word = choose(s, text, !x.number ? letters : year ? years : numbers, round);
    if (!word) return DGM_OK;
    memcpy(x.word, word, strlen(word));
    x.form = s->forms.size;
    dgm_protect_write(p, text, &part, &s->forms);
    x.form_size = s->forms.size - x.form;
    keep_stop(text, &part);
    x.from = part.begin;
    x.to = part.end;
    dgm_write_bytes(&s->text, text.data + *done, x.from - *done);
    x.before = !x.number && x.from > 0 && in_word(text.data[x.from - 1]);
    x.behind = !x.number && in_word(char_at(text, x.to));
    x.hyphen = char_at(text, x.to) == '-';
    x.stop = char_at(text, x.to) == '.';
    if (x.before) dgm_write_u8(&s->text, ' ');
    x.begin = s->text.size;
    dgm_write_text(&s->text, x.word);
    x.end = s->text.size;
    if (x.behind) dgm_write_u8(&s->text, ' ');
    *done = x.to;
    s->items[s->count++] = x;
    return s->text.failed || s->forms.failed ? dgm_no_memory(err) : DGM_OK;
}

dgm_status dgm_standins_make(dgm_standins *s, const dgm_protector *p, dgm_text text, const dgm_protected *found,
                             size_t count, const unsigned char *kept, int round, dgm_error *err)
{
    size_t done = 0;
    s->count = s->text.size = s->forms.size = 0;
    for (size_t i = 0; i < count && s->count < DGM_STANDINS_MAX; i++) {
        const bool exact = found[i].kind == DGM_PROTECTED_ADDRESS || found[i].kind == DGM_PROTECTED_PLACEHOLDER ||
                           found[i].kind == DGM_PROTECTED_CODE;
        if (kept[i] && !(round > 0 && exact)) continue;
        DGM_TRY(add_one(s, p, text, &found[i], round, &done, err));
    }
    dgm_write_bytes(&s->text, text.data + done, text.size - done);
    return s->text.failed ? dgm_no_memory(err) : DGM_OK;
}

dgm_status dgm_standins_respell(dgm_standins *s, const dgm_protector *p, dgm_text text, const dgm_protected *found,
                                size_t count, const unsigned char *kept, dgm_text translation, dgm_error *err)
{
    s->count = s->text.size = s->forms.size = 0;
    for (size_t i = 0; i < count && s->count < DGM_STANDINS_MAX; i++) {
        dgm_standin x = {.number = true};
        dgm_protected part;
        size_t begin, end;
        if (kept[i] || !dgm_protect_misspelt(p, text, &found[i], translation, &begin, &end)) continue;
        if (end - begin >= sizeof x.word) continue;
        plan(text, &found[i], 0, &x, &part);
        memcpy(x.word, translation.data + begin, end - begin);
        x.begin = x.from = part.begin;
        x.end = x.to = part.end;
        x.form = s->forms.size;
        dgm_protect_write(p, text, &part, &s->forms);
        x.form_size = s->forms.size - x.form;
        s->items[s->count++] = x;
    }
    return s->forms.failed ? dgm_no_memory(err) : DGM_OK;
}

// ---- finding -----------------------------------------------------------------------------------

// Does the stand-in stand at pos, as a word or a number of its own?
static bool stands_at(dgm_text t, size_t pos, const dgm_standin *x)
{
    const size_t n = strlen(x->word), end = pos + n;
    if (end > t.size || memcmp(t.data + pos, x->word, n) != 0) return false;
    const char before = pos ? t.data[pos - 1] : ' ', next = char_at(t, end);
    if (is_digit(before) || is_digit(next)) return false;
    if (!x->number) return !in_word(before) && !in_word(next);
    const bool joined = (before == '.' || before == ',') && pos > 1 && is_digit(t.data[pos - 2]);
    return !joined && !((next == '.' || next == ',') && is_digit(char_at(t, end + 1)));
}

size_t dgm_standins_faults(const dgm_standins *s, dgm_text translation)
{
    size_t faults = 0;
    for (size_t i = 0; i < s->count; i++) {
        const dgm_standin *x = &s->items[i];
        size_t times = 0;
        bool glued = false;
        for (size_t pos = 0; pos < translation.size; pos++) {
            if (!stands_at(translation, pos, x)) continue;
            const size_t end = pos + strlen(x->word);
            times++;
            const bool compound = char_at(translation, end) == '-' && in_word(char_at(translation, end + 1));
            glued |= compound && !x->number && !x->hyphen;
        }
        faults += times != 1 || glued;
    }
    return faults;
}

// ---- putting back ------------------------------------------------------------------------------

typedef struct moved {
    size_t begin, end;         // before
    size_t new_begin, new_end; // after
} moved;

// What follows in the translation and is part of the form as well: " Uhr", a stop. Or a stop that made an ordinal
// of the stand-in: "am X1. Juli".
static size_t said_twice(const dgm_standin *x, dgm_text form, dgm_text t, size_t end)
{
    static const char *const ends[] = {" Uhr", "."};
    if (!x->number && !x->stop && char_at(t, end) == '.' && char_at(t, end + 1) == ' ') return 1;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n = strlen(ends[i]);
        if (form.size > n && memcmp(form.data + form.size - n, ends[i], n) == 0 && end + n <= t.size &&
            memcmp(t.data + end, ends[i], n) == 0)
            return n;
    }
    return 0;
}

static size_t new_place(const moved *list, size_t count, size_t pos, bool is_end)
{
    size_t place = pos;
    for (size_t i = 0; i < count; i++) {
        const moved *m = &list[i];
        if (pos >= m->end)
            place = m->new_end + (pos - m->end);
        else if (pos > m->begin || (pos == m->begin && !is_end))
            return is_end ? m->new_end : m->new_begin;
        else
            break;
    }
    return place;
}

static const dgm_standin *standin_at(const dgm_standins *s, dgm_text t, size_t pos)
{
    for (size_t i = 0; i < s->count; i++)
        if (stands_at(t, pos, &s->items[i])) return &s->items[i];
    return NULL;
}

dgm_status dgm_standins_restore(const dgm_standins *s, dgm_writer *out, size_t from, dgm_span *spans, size_t count,
                                dgm_error *err)
{
    enum { MOST = 4 * DGM_STANDINS_MAX };
    moved list[MOST];
    size_t moves = 0, done = 0;
    if (out->size == from) return DGM_OK;
    const dgm_text t = {(const char *)out->data + from, out->size - from};
    dgm_writer made = {0};
    for (size_t pos = 0; pos < t.size && moves < MOST; pos++) {
        const dgm_standin *x = standin_at(s, t, pos);
        if (!x) continue;
        const dgm_text form = {(const char *)s->forms.data + x->form, x->form_size};
        size_t begin = pos, end = pos + strlen(x->word);
        if (x->before && begin > done && t.data[begin - 1] == ' ') begin--;
        end += x->behind && char_at(t, end) == ' ' ? 1 : said_twice(x, form, t, end);
        dgm_write_bytes(&made, t.data + done, begin - done);
        list[moves] = (moved){from + begin, from + end, from + made.size, from + made.size + form.size};
        dgm_write_bytes(&made, form.data, form.size);
        moves++;
        done = end;
        pos = end - 1;
    }
    dgm_write_bytes(&made, t.data + done, t.size - done);
    const bool failed = made.failed;
    if (!failed) {
        out->size = from;
        dgm_write_bytes(out, made.data, made.size);
        for (size_t i = 0; spans && i < count; i++) {
            const bool empty = spans[i].begin == spans[i].end;
            spans[i].begin = (uint32_t)new_place(list, moves, spans[i].begin, false);
            spans[i].end = empty ? spans[i].begin : (uint32_t)new_place(list, moves, spans[i].end, true);
        }
    }
    dgm_writer_free(&made);
    return failed || out->failed ? dgm_no_memory(err) : DGM_OK;
}

size_t dgm_standins_place(const dgm_standins *s, size_t pos)
{
    size_t place = pos;
    for (size_t i = 0; i < s->count; i++) {
        const dgm_standin *x = &s->items[i];
        if (pos >= x->end + x->behind)
            place = x->to + (pos - x->end - x->behind);
        else if (pos + x->before >= x->begin)
            return x->from;
        else
            break;
    }
    return place;
}
