// SPDX-License-Identifier: MIT
// 180 documents (tests/data/documents/text.tar.xz; LICENCES.tsv in it says where they come from), the words of all
// their lines turned round: no tag and no placeholder is lost or doubled, and what was written can be read again.
#define _GNU_SOURCE
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "document/document_private.h"
#include "documents.h"
#include "scratch.h"

enum { THINGS = 4096 };

typedef struct things {
    uint64_t items[THINGS];
    size_t count;
} things;

static void note(things *t, const char *data, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)data[i]) * 0x100000001b3u;
    assert_true(t->count < THINGS);
    t->items[t->count++] = hash;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// Tags and placeholders of a file, as they are written.
static things *find_things(dgm_text file)
{
    things *t = calloc(1, sizeof *t);
    for (size_t i = 0; i < file.size;) {
        dgm_tag_kind kind = DGM_TAG_EMPTY;
        dgm_text name = {NULL, 0};
        const size_t tag = dgm_tag_at(file, i, &kind, &name), n = tag ? tag : dgm_placeholder_at(file, i, false);
        // Some attributes are translated: of a tag with some the name tells.
        const bool named = tag && name.size && memchr(file.data + i, '=', tag);
        // A character may be written as an entity or not.
        if (n && file.data[i] != '&' && !(file.data[i] & 0x80)) note(t, file.data + i, named ? 1 + name.size : n);
        i += n ? n : 1;
    }
    qsort(t->items, t->count, sizeof *t->items, compare);
    return t;
}

static dgm_document_options options_for(const char *kind)
{
    dgm_document_options o;
    dgm_document_options_default(&o);
    o.format = kind;
    o.columns = "2";
    return o;
}

static void count_places(const char *kind, dgm_text file, size_t *places, size_t *tags)
{
    dgm_document *d = NULL;
    dgm_error error;
    dgm_document_options o = options_for(kind);
    o.all = 1;
    if (dgm_document_open(&d, file.data, file.size, NULL, &o, &error) != DGM_OK) fail_msg("%s", error.text);
    *places = dgm_document_describe(d)->places;
    *tags = dgm_document_describe(d)->tags;
    dgm_document_close(&d);
}

static bool is_kind(const char *kind, const char *list)
{
    const char *at = strstr(list, kind);
    const size_t n = strlen(kind);
    return at && (at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]);
}

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool same_but_space(dgm_text a, dgm_text b)
{
    size_t i = 0, k = 0;
    for (;;) {
        while (i < a.size && is_white(a.data[i])) i++;
        while (k < b.size && is_white(b.data[k])) k++;
        if (i >= a.size || k >= b.size) return i >= a.size && k >= b.size;
        if (a.data[i++] != b.data[k++]) return false;
    }
}

static void check_file(const char *kind, const char *path)
{
    dgm_mapfile f;
    dgm_error error;
    text_buffer out;
    const dgm_document_options o = options_for(kind);
    if (dgm_mapfile_open(&f, path, &error) != DGM_OK) fail_msg("%s", error.text);
    const dgm_text file = {(const char *)f.data, f.size};
    for (rule how = RULE_SAME; how <= RULE_REVERSED; how++) {
        if (document_by_rule(file.data, file.size, NULL, &o, how, &out, &error) != DGM_OK)
            fail_msg("%s: %s", path, error.text);
        const dgm_text written = {out.data, out.size};
        size_t places[2], tags[2];
        count_places(kind, file, &places[0], &tags[0]);
        count_places(kind, written, &places[1], &tags[1]);
        if (places[0] != places[1] || tags[0] != tags[1])
            fail_msg("%s: %zu places and %zu tags became %zu and %zu:\n%s", path, places[0], tags[0], places[1],
                     tags[1], out.data);
        // A catalogue has new texts; branches of ICU take in what stands around them.
        things *before = find_things(file), *after = find_things(written);
        if (!is_kind(kind, "po json yaml") &&
            (before->count != after->count ||
             memcmp(before->items, after->items, before->count * sizeof *before->items) != 0))
            fail_msg("%s: %zu tags and placeholders became %zu:\n%s", path, before->count, after->count, out.data);
        // Other kinds may be written in another way: with the same text in quotes or escapes, links with their names.
        if (how == RULE_SAME && is_kind(kind, "txt csv tsv srt vtt html json") &&
            !memmem(file.data, file.size, ", plural,", 9) && !same_but_space(file, written))
            fail_msg("%s: other bytes than white space changed:\n%s", path, out.data);
        free(before);
        free(after);
        free(out.data);
    }
    dgm_mapfile_close(&f);
}

static void test_documents(void **state)
{
    (void)state;
    char command[256];
    size_t count = 0;
    snprintf(command, sizeof command, "tar xJf tests/data/documents/text.tar.xz -C %s", folder);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; dgm_document_format_at(i); i++) {
        const char *kind = dgm_document_format_at(i)->name;
        char path[512];
        snprintf(path, sizeof path, "%s/documents/%s", folder, kind);
        DIR *dir = opendir(path);
        for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
            if (e->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/documents/%s/%s", folder, kind, e->d_name);
            check_file(kind, path);
            count++;
        }
        if (dir) closedir(dir);
    }
    assert_int_equal(count, 180);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_documents)};
    if (!scratch_open()) return 1;
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
