// SPDX-License-Identifier: MIT
// JSON as it is written; see json_out.h.
#include "server/json_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dgm_json_escape(dgm_writer *w, const char *text, size_t size)
{
    dgm_write_u8(w, '"');
    size_t plain = 0; // bytes before `i` that were not written yet
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f) continue;
        dgm_write_bytes(w, text + plain, i - plain);
        plain = i + 1;
        const char *at = strchr("\"\"\\\\\nn\rr\tt\bb\ff", c); // pairs: the byte, its letter
        if (c && at)
            dgm_write_format(w, "\\%c", at[c == '"' || c == '\\' ? 0 : 1]);
        else
            dgm_write_format(w, "\\u%04x", c);
    }
    dgm_write_bytes(w, text + plain, size - plain);
    dgm_write_u8(w, '"');
}

// Comma and key before a value.
static void begin(dgm_json_out *j, const char *key)
{
    if (j->depth > 0) {
        if (j->more[j->depth - 1]) dgm_write_u8(&j->w, ',');
        j->more[j->depth - 1] = true;
    }
    if (!key) return;
    dgm_json_escape(&j->w, key, strlen(key));
    dgm_write_u8(&j->w, ':');
}

static void open_level(dgm_json_out *j, const char *key, bool array)
{
    begin(j, key);
    dgm_write_u8(&j->w, array ? '[' : '{');
    if (j->depth == DGM_OUT_DEPTH) {
        j->w.failed = true; // a mistake of ours: deeper than any answer is
        return;
    }
    j->more[j->depth] = false;
    j->array[j->depth++] = array;
}

void dgm_out_object(dgm_json_out *j, const char *key)
{
    open_level(j, key, false);
}

void dgm_out_array(dgm_json_out *j, const char *key)
{
    open_level(j, key, true);
}

void dgm_out_end(dgm_json_out *j)
{
    if (j->depth == 0) return;
    dgm_write_u8(&j->w, j->array[--j->depth] ? ']' : '}');
}

void dgm_out_text(dgm_json_out *j, const char *key, const char *text, size_t size)
{
    begin(j, key);
    dgm_json_escape(&j->w, text, size);
}

void dgm_out_string(dgm_json_out *j, const char *key, const char *text)
{
    begin(j, key);
    if (text)
        dgm_json_escape(&j->w, text, strlen(text));
    else
        dgm_write_text(&j->w, "null");
}

void dgm_out_integer(dgm_json_out *j, const char *key, int64_t value)
{
    begin(j, key);
    dgm_write_format(&j->w, "%lld", (long long)value);
}

static void put_real(dgm_json_out *j, const char *key, double value, bool point)
{
    begin(j, key);
    if (!isfinite(value)) {
        dgm_write_text(&j->w, "null");
        return;
    }
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value || (digits == 9 && (double)(float)value == value)) break;
    }
    dgm_write_text(&j->w, text);
    if (point && !strpbrk(text, ".e")) dgm_write_text(&j->w, ".0");
}

void dgm_out_real(dgm_json_out *j, const char *key, double value)
{
    put_real(j, key, value, false);
}

void dgm_out_float(dgm_json_out *j, const char *key, double value)
{
    put_real(j, key, value, true);
}

void dgm_out_raw(dgm_json_out *j, const char *key, const char *json)
{
    begin(j, key);
    dgm_write_text(&j->w, json);
}

void dgm_out_bool(dgm_json_out *j, const char *key, bool value)
{
    begin(j, key);
    dgm_write_text(&j->w, value ? "true" : "false");
}

void dgm_answer_json(dgm_request *q, int status, dgm_json_out *j)
{
    dgm_write_u8(&j->w, '\n');
    dgm_answer_writer(q, status, "application/json", &j->w);
}
