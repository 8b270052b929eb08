// SPDX-License-Identifier: MIT
// Values of settings by their table: defaults, ranges, from text and to text.
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/precision.h"
#include "dragoman/common.h"
#include "engine/settings_table.h"

enum { MOST_NUMBERS = 8 }; // of a FLOATS

// ---- rows -------------------------------------------------------------------------------------

const dgm_setting *dgm_setting_at(size_t index)
{
    return index < dgm_setting_row_count ? &dgm_setting_rows[index].pub : NULL;
}

// Runs over "a|b|c": *at is the rest, NULL at the end.
static dgm_text next_value(const char **at)
{
    const size_t n = strcspn(*at, "|");
    const dgm_text value = {*at, n};
    *at = (*at)[n] ? *at + n + 1 : NULL;
    return value;
}

// Number of a text in "a|b|c", from 0; -1: it is not there.
static int value_number(const char *values, const char *text)
{
    int i = 0;
    for (const char *at = values; at; i++)
        if (dgm_text_equal(next_value(&at), dgm_text_of(text))) return i;
    return -1;
}

// Of settings "_" is "-": beam_size is beam-size.
static bool same_name(dgm_text a, const char *b)
{
    size_t i = 0;
    while (i < a.size && b[i] && (a.data[i] == b[i] || (a.data[i] == '-' && b[i] == '_'))) i++;
    return i == a.size && !b[i];
}

static const dgm_setting_row *find_row(const char *name)
{
    for (size_t i = 0; name && i < dgm_setting_row_count; i++) {
        const dgm_setting_row *r = &dgm_setting_rows[i];
        if (same_name(dgm_text_of(r->pub.name), name)) return r;
        for (const char *at = r->pub.synonyms; at;)
            if (same_name(next_value(&at), name)) return r;
    }
    return NULL;
}

// What another program calls a value, as the table does; what is known by no other name stays.
static const char *canonical(const dgm_setting_row *r, const char *text)
{
    for (const char *at = r->alike; at;) {
        const dgm_text pair = next_value(&at);
        const char *is = memchr(pair.data, '=', pair.size);
        if (!dgm_text_equal((dgm_text){pair.data, (size_t)(is - pair.data)}, dgm_text_of(text))) continue;
        const dgm_text meant = {is + 1, (size_t)(pair.data + pair.size - is - 1)};
        for (int i = 0; dgm_precision_names[i]; i++)
            if (dgm_text_equal(meant, dgm_text_of(dgm_precision_names[i]))) return dgm_precision_names[i];
    }
    return text;
}

const dgm_setting *dgm_setting_find(const char *name)
{
    const dgm_setting_row *r = find_row(name);
    return r ? &r->pub : NULL;
}

const char *dgm_setting_group_name(dgm_setting_group group)
{
    static const char *const names[] = {"", "input and output", "model", "search", "words",
                                        "constraints", "evidence", "speed"};
    return (size_t)group < sizeof names / sizeof names[0] ? names[group] : "";
}

static size_t width_of(const dgm_setting_row *r)
{
    switch (r->pub.kind) {
    case DGM_SETTING_FLAG:
    case DGM_SETTING_INT:
        return sizeof(int32_t);
    case DGM_SETTING_FLOAT:
        return sizeof(float);
    case DGM_SETTING_WHOLE:
    case DGM_SETTING_SIZE:
        return sizeof(int64_t);
    case DGM_SETTING_FLOATS:
        return (size_t)r->pub.count * sizeof(float);
    case DGM_SETTING_CHOICE:
        return r->coded ? sizeof(int32_t) : sizeof(char *);
    case DGM_SETTING_TEXT:
        return sizeof(char *);
    case DGM_SETTING_LIST:
        return (size_t)r->pub.count * sizeof(char *);
    }
    return 0;
}

// The row of this name whose field a caller's struct of s->size bytes has.
static dgm_status row_of(const dgm_settings *s, const char *name, const dgm_setting_row **row,
                         dgm_error *err)
{
    DGM_FAIL_IF(!s, err, DGM_ERR_ARGUMENT, "there are no settings: NULL");
    DGM_FAIL_IF(s->size == 0, err, DGM_ERR_ARGUMENT,
                "dgm_settings.size is 0: fill the struct with dgm_settings_default first");
    *row = find_row(name);
    DGM_FAIL_IF(!*row, err, DGM_ERR_ARGUMENT, "%s is not a setting", name ? name : "(null)");
    size_t end = (*row)->offset + width_of(*row);
    if ((*row)->switched > end) end = (*row)->switched;
    DGM_FAIL_IF(end > s->size, err, DGM_ERR_ARGUMENT,
                "%s is newer than this program: it must be compiled again", name);
    return DGM_OK;
}

static void *field_of(dgm_settings *s, size_t offset)
{
    return (char *)s + offset;
}

static const void *value_of(const dgm_settings *s, size_t offset)
{
    return (const char *)s + offset;
}

// ---- defaults ---------------------------------------------------------------------------------

static void reset(const dgm_setting_row *r, dgm_settings *s)
{
    void *at = field_of(s, r->offset);
    memset(at, 0, width_of(r));
    switch (r->pub.kind) {
    case DGM_SETTING_FLAG:
    case DGM_SETTING_INT:
        *(int32_t *)at = (int32_t)r->pub.standard;
        break;
    case DGM_SETTING_SIZE:
        *(int64_t *)at = (int64_t)r->pub.standard;
        break;
    case DGM_SETTING_FLOAT:
        *(float *)at = (float)r->pub.standard;
        break;
    case DGM_SETTING_TEXT:
        *(const char **)at = r->text;
        break;
    case DGM_SETTING_FLOATS:
        *(int32_t *)field_of(s, r->switched) = 0;
        break;
    default:
        break;
    }
}

dgm_settings dgm_settings_usual(void)
{
    dgm_settings s = {.size = sizeof s};
    for (size_t i = 0; i < dgm_setting_row_count; i++) reset(&dgm_setting_rows[i], &s);
    return s;
}

void dgm_settings_canonical(dgm_settings *s)
{
    for (size_t i = 0; i < dgm_setting_row_count; i++) {
        const dgm_setting_row *r = &dgm_setting_rows[i];
        const char **at = r->alike ? field_of(s, r->offset) : NULL;
        if (at && *at) *at = canonical(r, *at);
    }
}

// ---- ranges -----------------------------------------------------------------------------------

static void join_values(const char *values, char *list, size_t size)
{
    size_t used = 0;
    list[0] = 0;
    for (const char *at = values; at && used < size;) {
        const dgm_text v = next_value(&at);
        used += (size_t)snprintf(list + used, size - used, "%s%.*s", used ? ", " : "", (int)v.size,
                                 v.data);
    }
}

// Is it one of the values, with the number that some of them may carry?
static bool is_value(const dgm_setting_row *r, const char *text)
{
    int64_t k = 0;
    if (value_number(r->pub.values, canonical(r, text)) >= 0) return true;
    for (int i = 0; r->numbered[i]; i++) {
        dgm_text number = dgm_text_of(text);
        if (dgm_field_skip(&number, r->numbered[i]) && dgm_field_skip(&number, ":") &&
            dgm_number_i64(number, (int64_t)r->pub.min, (int64_t)r->pub.max, &k))
            return true;
    }
    return false;
}

static dgm_status no_such_value(const dgm_setting_row *r, const char *what, const char *text,
                                dgm_error *err)
{
    char list[256], numbered[64] = "";
    join_values(r->pub.values, list, sizeof list);
    for (int i = 0; r->numbered[i]; i++) {
        const size_t used = strlen(numbered);
        snprintf(numbered + used, sizeof numbered - used, "%s%s:K", i ? " or " : "", r->numbered[i]);
    }
    if (numbered[0])
        return dgm_fail(err, DGM_ERR_ARGUMENT, "%s must be one of %s, or %s with K of %g to %g, not '%.80s'", what,
                        list, numbered, r->pub.min, r->pub.max, text);
    return dgm_fail(err, DGM_ERR_ARGUMENT, "%s must be one of %s, not '%.80s'", what, list, text);
}

static dgm_status check_integer(const dgm_setting *s, long long v, long long min, long long max,
                                dgm_error *err)
{
    DGM_FAIL_IF((v < min || v > max) && v != (long long)s->standard, err, DGM_ERR_ARGUMENT,
                "%s must be %lld to %lld, not %lld", s->title, min, max, v);
    return DGM_OK;
}

static dgm_status check_real(const dgm_setting *s, float v, dgm_error *err)
{
    const float min = (float)s->min, max = (float)s->max;
    DGM_FAIL_IF(!(v >= min && v <= max) && v != (float)s->standard, err, DGM_ERR_ARGUMENT,
                "%s must be %g to %g, not %g", s->title, s->min, s->max, (double)v);
    return DGM_OK;
}

static dgm_status check_row(const dgm_setting_row *r, const dgm_settings *all, dgm_error *err)
{
    const dgm_setting *s = &r->pub;
    const void *at = value_of(all, r->offset);
    switch (s->kind) {
    case DGM_SETTING_FLAG:
        return check_integer(s, *(const int32_t *)at, 0, 1, err);
    case DGM_SETTING_INT:
        return check_integer(s, *(const int32_t *)at, (long long)s->min, (long long)s->max, err);
    case DGM_SETTING_SIZE:
        return check_integer(s, *(const int64_t *)at, (long long)s->min, (long long)s->max, err);
    case DGM_SETTING_FLOAT:
        return check_real(s, *(const float *)at, err);
    case DGM_SETTING_FLOATS:
        for (int i = 0; i < s->count; i++) DGM_TRY(check_real(s, ((const float *)at)[i], err));
        return DGM_OK;
    case DGM_SETTING_CHOICE: {
        if (r->coded) {
            int last = 0;
            for (const char *v = s->values; (v = strchr(v, '|')); v++) last++;
            return check_integer(s, *(const int32_t *)at, 0, last, err);
        }
        const char *text = *(const char *const *)at;
        if (!text || is_value(r, text)) return DGM_OK;
        return no_such_value(r, s->title, text, err);
    }
    case DGM_SETTING_WHOLE:
    case DGM_SETTING_TEXT:
    case DGM_SETTING_LIST:
        return DGM_OK;
    }
    return DGM_OK;
}

static bool of_lmbr(const dgm_setting_row *r)
{
    const size_t at = offsetof(dgm_settings, lmbr);
    return r->offset >= at && r->offset < at + sizeof(dgm_lmbr);
}

dgm_status dgm_lmbr_check_values(const dgm_lmbr *l, dgm_error *err)
{
    dgm_settings s = {.lmbr = *l};
    for (size_t i = 0; i < dgm_setting_row_count; i++) {
        const dgm_setting_row *r = &dgm_setting_rows[i];
        if (!of_lmbr(r)) continue;
        const bool theta = r->pub.kind == DGM_SETTING_FLOATS;
        const bool both = r->offset == offsetof(dgm_settings, lmbr.scale) ||
                          r->offset == offsetof(dgm_settings, lmbr.lambda);
        if (both || theta == (l->use_thetas != 0)) DGM_TRY(check_row(r, &s, err));
    }
    return DGM_OK;
}

dgm_status dgm_settings_check_values(const dgm_settings *s, dgm_error *err)
{
    for (size_t i = 0; i < dgm_setting_row_count; i++)
        if (!of_lmbr(&dgm_setting_rows[i])) DGM_TRY(check_row(&dgm_setting_rows[i], s, err));
    return dgm_wants_evidence(s) ? dgm_lmbr_check_values(&s->lmbr, err) : DGM_OK;
}

// ---- from text --------------------------------------------------------------------------------

static dgm_status store_flag(const dgm_setting_row *r, const char *name, const char *text,
                             int32_t *at, dgm_error *err)
{
    const bool one = strcmp(text, "1") == 0;
    DGM_FAIL_IF(!one && strcmp(text, "0") != 0, err, DGM_ERR_ARGUMENT,
                "%s must be 0 or 1, not '%.80s'", name, text);
    *at = one != r->inverse;
    return DGM_OK;
}

static dgm_status store_integer(const dgm_setting *s, const char *name, const char *text, int32_t *at, dgm_error *err)
{
    const int64_t min = (int64_t)s->min, max = (int64_t)s->max;
    int64_t whole = 0;
    if (s->values && value_number(s->values, text) >= 0) {
        *at = 0;
        return DGM_OK;
    }
    const dgm_status st = dgm_number_integer(name, text, min, max, &whole, err);
    DGM_FAIL_IF(st != DGM_OK && s->values, err, DGM_ERR_ARGUMENT,
                "%s must be %s or a whole number from %lld to %lld, not '%.80s'", name, s->values, (long long)min,
                (long long)max, text);
    if (st == DGM_OK) *at = (int32_t)whole;
    return st;
}

static dgm_status store_numbers(const dgm_setting_row *r, const char *name, const char *text,
                                dgm_settings *all, dgm_error *err)
{
    const dgm_setting *s = &r->pub;
    double v[MOST_NUMBERS];
    int count = 0;
    DGM_TRY(dgm_number_list(name, text, v, MOST_NUMBERS, &count, err));
    DGM_FAIL_IF(count != s->count, err, DGM_ERR_ARGUMENT,
                "%s must be %d numbers separated by commas, not '%.80s'", name, (int)s->count, text);
    for (int i = 0; i < count; i++)
        DGM_FAIL_IF(!(v[i] >= s->min && v[i] <= s->max), err, DGM_ERR_ARGUMENT,
                    "%s must be numbers of %g to %g, not %g", name, s->min, s->max, v[i]);
    float *at = field_of(all, r->offset);
    for (int i = 0; i < count; i++) at[i] = (float)v[i];
    *(int32_t *)field_of(all, r->switched) = 1;
    return DGM_OK;
}

static dgm_status store_choice(const dgm_setting_row *r, const char *name, const char *text,
                               void *at, dgm_error *err)
{
    if (!is_value(r, text)) return no_such_value(r, name, text, err);
    if (r->coded)
        *(int32_t *)at = value_number(r->pub.values, text);
    else
        *(const char **)at = canonical(r, text);
    return DGM_OK;
}

static dgm_status add_item(const dgm_setting *s, const char *name, const char *text,
                           const char **list, dgm_error *err)
{
    int used = 0;
    while (used < s->count && list[used]) used++;
    DGM_FAIL_IF(used == s->count, err, DGM_ERR_ARGUMENT, "%s may be given at most %d times", name,
                (int)s->count);
    list[used] = text;
    return DGM_OK;
}

static dgm_status store(const dgm_setting_row *r, const char *name, const char *text,
                        dgm_settings *all, dgm_error *err)
{
    const dgm_setting *s = &r->pub;
    void *at = field_of(all, r->offset);
    double real = 0;
    switch (s->kind) {
    case DGM_SETTING_FLAG:
        return store_flag(r, name, text, at, err);
    case DGM_SETTING_INT:
        return store_integer(s, name, text, at, err);
    case DGM_SETTING_WHOLE:
        DGM_FAIL_IF(!dgm_number_u64(dgm_text_of(text), UINT64_MAX, at), err, DGM_ERR_ARGUMENT,
                    "%s must be a whole number from 0 to %llu, not '%.80s'", name,
                    (unsigned long long)UINT64_MAX, text);
        return DGM_OK;
    case DGM_SETTING_SIZE:
        return dgm_number_size(name, text, (int64_t)s->min, (int64_t)s->max, at, err);
    case DGM_SETTING_FLOAT:
        DGM_TRY(dgm_number_real(name, text, s->min, s->max, &real, err));
        *(float *)at = (float)real;
        return DGM_OK;
    case DGM_SETTING_FLOATS:
        return store_numbers(r, name, text, all, err);
    case DGM_SETTING_CHOICE:
        return store_choice(r, name, text, at, err);
    case DGM_SETTING_LIST:
        return add_item(s, name, text, at, err);
    case DGM_SETTING_TEXT:
        *(const char **)at = text;
        return DGM_OK;
    }
    return DGM_OK;
}

dgm_status dgm_settings_set(dgm_settings *s, const char *name, const char *value, dgm_error *err)
{
    const dgm_setting_row *r = NULL;
    DGM_TRY(row_of(s, name, &r, err));
    if (value) return store(r, name, value, s, err);
    reset(r, s);
    return DGM_OK;
}

// ---- to text ----------------------------------------------------------------------------------

static void put_text(const char *text, dgm_writer *w)
{
    dgm_write_text(w, text ? text : "");
}

static void put_choice(const dgm_setting_row *r, const void *at, dgm_writer *w)
{
    if (!r->coded) {
        put_text(*(const char *const *)at, w);
        return;
    }
    const char *v = r->pub.values;
    dgm_text value = {"", 0};
    for (int i = *(const int32_t *)at; v && i >= 0; i--) value = next_value(&v);
    dgm_write_bytes(w, value.data, value.size);
}

// A number that is its own default and out of range says nothing.
static bool unset(const dgm_setting *s, double v)
{
    const bool flag = s->kind == DGM_SETTING_FLAG;
    return (v < (flag ? 0 : s->min) || v > (flag ? 1 : s->max)) && v == s->standard;
}

static void put_value(const dgm_setting_row *r, const dgm_settings *all, dgm_writer *w)
{
    const dgm_setting *s = &r->pub;
    const void *at = value_of(all, r->offset);
    const int32_t *number = at;
    const float *real = at;
    switch (s->kind) {
    case DGM_SETTING_FLAG:
    case DGM_SETTING_INT:
        if (!unset(s, *number)) dgm_write_format(w, "%d", r->inverse ? !*number : (int)*number);
        return;
    case DGM_SETTING_WHOLE:
        dgm_write_format(w, "%llu", (unsigned long long)*(const uint64_t *)at);
        return;
    case DGM_SETTING_SIZE: // in KiB, so that there is always a unit
        if (!unset(s, (double)*(const int64_t *)at))
            dgm_write_format(w, "%.17gK", (double)*(const int64_t *)at / 1024);
        return;
    case DGM_SETTING_FLOAT:
        if (!unset(s, (double)*real)) dgm_write_format(w, "%.9g", (double)*real);
        return;
    case DGM_SETTING_FLOATS:
        for (int i = 0; *(const int32_t *)value_of(all, r->switched) && i < s->count; i++)
            dgm_write_format(w, "%s%.9g", i ? "," : "", (double)real[i]);
        return;
    case DGM_SETTING_CHOICE:
        put_choice(r, at, w);
        return;
    case DGM_SETTING_TEXT:
        put_text(*(const char *const *)at, w);
        return;
    case DGM_SETTING_LIST:
        for (const char *const *list = at; list < (const char *const *)at + s->count && *list; list++)
            dgm_write_format(w, "%s%s", list == at ? "" : " ", *list);
        return;
    }
}

dgm_status dgm_settings_get(const dgm_settings *s, const char *name, char *value, size_t size,
                            dgm_error *err)
{
    const dgm_setting_row *r = NULL;
    DGM_TRY(row_of(s, name, &r, err));
    DGM_FAIL_IF(!value || size == 0, err, DGM_ERR_ARGUMENT, "%s needs room for its value", name);
    dgm_writer w = {0};
    put_value(r, s, &w);
    dgm_status st = DGM_OK;
    if (w.failed)
        st = dgm_no_memory(err);
    else if (w.size >= size)
        st = dgm_fail(err, DGM_ERR_ARGUMENT, "%s has a value of %zu bytes, there is room for %zu",
                      name, w.size, size - 1);
    else if (w.size)
        memcpy(value, w.data, w.size);
    value[st == DGM_OK ? w.size : 0] = 0;
    dgm_writer_free(&w);
    return st;
}
