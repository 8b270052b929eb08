// SPDX-License-Identifier: MIT
// Fuzz target: small texts of many kinds. The first byte says which: files of API keys, settings by name, numbers,
// lines of a file in any encoding and gzip, weights and features of the phrase-based decoder, links of words, detection
// of languages and tidying. What is accepted can be written and read again where there is a way back.
// Parsers: src/server/api_keys.c src/engine/settings_values.c src/base/number.c src/base/lines.c src/base/encoding.c
// Parsers: src/phrase/phrase_weights.c src/base/fields.c src/text/tidy.c src/text/language_like.c
// Parsers: src/text/detect.c src/tools/tune_space.c src/tools/statistics.c
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "align/links.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "dragoman/settings.h"
#include "format/modelfile.h"
#include "phrase/phrase_weights.h"
#include "server/api_keys.h"
#include "text/detect.h"
#include "text/language_like.h"
#include "text/tidy.h"
#include "text/unicode.h"
#include "tools/tune_private.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

static void refused(const dgm_error *err)
{
    require(err->text[0] && !strchr(err->text, '\n'));
}

static void keys(dgm_text text)
{
    char path[FUZZ_PATH];
    dgm_keys *k = NULL;
    dgm_key found;
    dgm_error err = {""};
    const int fd = fuzz_file(text.data, text.size, path);
    if (dgm_keys_open(&k, path, &err) == DGM_OK)
        require(!dgm_keys_find(k, "", &found) && (dgm_keys_find(k, "key", &found) ? found.name[0] != 0 : true));
    else
        refused(&err);
    dgm_keys_close(&k);
    close(fd);
}

static void lines(dgm_text text, dgm_encoding encoding)
{
    char path[FUZZ_PATH];
    const char *line = NULL;
    size_t size = 0;
    bool more = true;
    dgm_lines *l = NULL;
    dgm_error err = {""};
    const int fd = fuzz_file(text.data, text.size, path);
    dgm_status st = dgm_lines_open_as(&l, path, encoding, &err);
    for (int i = 0; i < 10000 && st == DGM_OK && more; i++)
        if ((st = dgm_lines_next(l, &line, &size, &more, &err)) == DGM_OK && more)
            require(line[size] == 0 && !memchr(line, '\n', size));
    if (st != DGM_OK) refused(&err);
    if (l) {
        require(dgm_lines_share(l) >= 0 && dgm_lines_share(l) <= 1);
        (void)dgm_lines_crlf(l);
        (void)dgm_lines_marked(l);
    }
    dgm_lines_close(&l);
    dgm_writer all = {0};
    if (dgm_lines_collect(path, &all, &err) != DGM_OK) refused(&err);
    dgm_writer_free(&all);
    close(fd);
}

// Lines "name value": a value that was taken is given back as a text that is taken again.
static void settings(char *text)
{
    dgm_settings s, again;
    dgm_settings_default(&s);
    for (char *at = text; at;) {
        char *line = strsep(&at, "\n"), *name = strsep(&line, " "), value[512];
        dgm_error err = {""};
        if (dgm_settings_set(&s, name, line, &err) != DGM_OK) {
            refused(&err);
            continue;
        }
        dgm_settings_default(&again);
        if (dgm_settings_get(&s, name, value, sizeof value, NULL) == DGM_OK && value[0] &&
            dgm_setting_find(name)->kind != DGM_SETTING_LIST)
            require(dgm_settings_set(&again, name, value, NULL) == DGM_OK);
    }
}

static void numbers(const char *text)
{
    int64_t whole = 0;
    double real = 0, list[8] = {0};
    int count = 0;
    dgm_error err = {""};
    if (dgm_number_integer("n", text, -1000, INT64_MAX, &whole, &err) == DGM_OK) require(whole >= -1000);
    else refused(&err);
    if (dgm_number_real("x", text, -1e6, 1e300, &real, &err) == DGM_OK) require(real >= -1e6 && real <= 1e300);
    if (dgm_number_size("s", text, 1, INT64_MAX, &whole, &err) == DGM_OK) require(whole >= 1);
    if (dgm_number_list("l", text, list, 8, &count, &err) == DGM_OK) require(count >= 0 && count <= 8);
    (void)dgm_tune_duration("t", text, &real, &err);
    dgm_encoding encoding;
    if (dgm_encoding_named(text, &encoding, &err) == DGM_OK) require(dgm_encoding_name(encoding)[0]);
}

static void weights(dgm_text text)
{
    dgm_pb_weights w;
    char path[FUZZ_PATH];
    double features[DGM_PB_FEATURES];
    dgm_writer out = {0};
    dgm_error err = {""};
    dgm_pb_weights_default(&w);
    if (dgm_pb_weights_parse(&w, text, &err) == DGM_OK) dgm_pb_weights_write(&w, &out);
    else refused(&err);
    dgm_pb_weights_uniform(&w);
    const int fd = fuzz_file(text.data, text.size, path);
    if (dgm_pb_weights_read(&w, path, &err) != DGM_OK) refused(&err);
    close(fd);
    if (dgm_pb_features_parse(text, features, &err) == DGM_OK) {
        (void)dgm_pb_dot(&w, features);
        out.size = 0;
        dgm_pb_features_write(features, &out);
        require(dgm_pb_features_parse((dgm_text){(const char *)out.data, out.size}, features, NULL) == DGM_OK);
    } else {
        refused(&err);
    }
    dgm_writer_free(&out);
}

static void links(dgm_text text)
{
    const char *end = memchr(text.data, '\n', text.size);
    const size_t n = end ? (size_t)(end - text.data) : text.size;
    dgm_aer aer = {0};
    dgm_error err = {""};
    const dgm_text behind = {text.data + n + (end != NULL), text.size - n - (end != NULL)};
    if (dgm_aer_add(&aer, (dgm_text){text.data, n}, behind, &err) == DGM_OK)
        require(dgm_aer_rate(&aer) >= 0 && dgm_aer_rate(&aer) <= 1);
    else
        refused(&err);
}

// Languages of a text, of all that are known or of some.
static void detect(dgm_text text, int kind)
{
    static const char *const among[4][6] = {
        {NULL}, {"de", "en"}, {"de", "en", "es", "fr", "it"}, {"es", "gl", "pt", "zh-TW"}};
    dgm_language_candidate c[DGM_DETECT_MOST];
    size_t count = 0;
    while (among[kind][count]) count++;
    const size_t found = dgm_detect_language(text, count ? among[kind] : NULL, count, c);
    require(found <= DGM_DETECT_MOST);
    for (size_t i = 0; i < found && count; i++) {
        size_t at = 0;
        while (at < count && strcmp(c[i].code, among[kind][at]) != 0) at++;
        require(at < count);
    }
}

static void tidy(dgm_text text, int kind)
{
    dgm_writer clean = {0};
    dgm_tidied t = {0};
    bool changed = false, repaired;
    require(dgm_line_clean(text, &clean, &repaired, NULL) == DGM_OK);
    const dgm_text valid = {(const char *)clean.data, clean.size};
    require(dgm_tidy_text(valid, &t, &changed, NULL) == DGM_OK);
    if (changed) {
        require(dgm_utf8_valid((dgm_text){(const char *)t.text.data, t.text.size}));
        for (size_t i = 0; i < t.text.size; i++) require(t.from[i] <= t.from[i + 1] && t.from[i + 1] <= valid.size);
    }
    (void)dgm_is_language(valid);
    (void)dgm_is_file_name(valid);
    (void)dgm_is_hexadecimal(valid);
    detect(valid, kind);
    dgm_tidied_free(&t);
    dgm_writer_free(&clean);
}

static void tuned(char *text, dgm_settings *s)
{
    int finish = 0, first = 0;
    dgm_writer weights = {0};
    dgm_error err = {""};
    if (dgm_finish_parse(text, &finish, &first)) {
        int again = 0, number = 0;
        require(dgm_finish_parse(dgm_finish_write(finish, first).text, &again, &number) && again == finish);
    }
    dgm_tune_options_weights(text, &weights);
    dgm_writer_free(&weights);
    if (dgm_tune_options_apply(text, s, &err) != DGM_OK) refused(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    const dgm_text text = {(const char *)data + 1, size - 1};
    char *copy = calloc(1, size);
    dgm_settings s;
    require(copy != NULL);
    memcpy(copy, text.data, text.size);
    dgm_settings_default(&s);
    switch (data[0] & 7) {
    case 0: keys(text); break;
    case 1: settings(copy); break;
    case 2: numbers(copy); break;
    case 3: lines(text, (dgm_encoding)(data[0] / 8 % 6)); break;
    case 4: weights(text); break;
    case 5: links(text); break;
    case 6: tidy(text, data[0] >> 3 & 3); break;
    default: tuned(copy, &s);
    }
    free(copy);
    return 0;
}
