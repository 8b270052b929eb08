// SPDX-License-Identifier: MIT
// Translation memories: what is read from TMX and what is refused, texts that are found again, TMX that is written.
#define _DEFAULT_SOURCE // mkdtemp
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "dragoman/document.h"
#include "dragoman/memory.h"
#include "scratch.h"

#define TMX(units)                                                                                                     \
    "<?xml version=\"1.0\"?>\n<!DOCTYPE tmx SYSTEM \"tmx14.dtd\">\n"                                                   \
    "<tmx version=\"1.4\"><header srclang=\"en\"/><body>\n" units "</body></tmx>"
#define TUV(language, text) "<tuv xml:lang=\"" language "\"><seg>" text "</seg></tuv>"

static const struct {
    const char *tmx, *source;
    const char *want; // its translation, NULL: none; or the message
    dgm_status status;
} cases[] = {
    {TMX("<tu>" TUV("en-US", "The house.") TUV("de", "Das Haus.") "</tu>"), "The house.", "Das Haus.", DGM_OK},
    {TMX("<tu>" TUV("DE", "Das Haus.") TUV("EN", "The house.") "</tu>"), "The house.", "Das Haus.", DGM_OK},
    // White space does not count, case does.
    {TMX("<tu>" TUV("en", " The\n  house. ") TUV("de", "Das\tHaus. ") "</tu>"), "The  house. ", "Das Haus.", DGM_OK},
    {TMX("<tu>" TUV("en", "The house.") TUV("de", "Das Haus.") "</tu>"), "the house.", NULL, DGM_OK},
    // The last unit counts, in a unit the first variant.
    {TMX("<tu>" TUV("en", "ab") TUV("de", "1") "</tu><tu>" TUV("en", "ab") TUV("de", "2") "</tu>"), "ab", "2", DGM_OK},
    {TMX("<tu>" TUV("en-GB", "lift") TUV("en-US", "elevator") TUV("de", "Aufzug") "</tu>"), "lift", "Aufzug", DGM_OK},
    {TMX("<tu>" TUV("en", "a") TUV("fr", "b") "</tu>"), "a", NULL, DGM_OK},
    // Codes are left out, highlighted text is text.
    {TMX("<tu>" TUV("en", "Press <bpt>&lt;b&gt;<sub>x</sub></bpt>Enter<ept>&lt;/b&gt;</ept> &amp; <hi>wait</hi>.")
             TUV("de", "<ph>{0}</ph>Warten &lt;") "</tu>"),
     "Press Enter & wait.", "Warten <", DGM_OK},
    {"<html/>", "", "no TMX: its outermost element is not <tmx>", DGM_ERR_FORMAT},
    {"<tmx>\n<body>", "", "line 2: <body> is never closed", DGM_ERR_FORMAT},
};

static void files_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dgm_memory *m;
        dgm_error err;
        size_t size = 0;
        assert_int_equal(dgm_memory_open(&m, "en", "de-DE", &err), DGM_OK);
        const dgm_status st = dgm_memory_read_text(m, cases[i].tmx, strlen(cases[i].tmx), &err);
        assert_int_equal(st, cases[i].status);
        const char *found = dgm_memory_find(m, cases[i].source, strlen(cases[i].source), &size);
        if (st != DGM_OK) found = err.text, size = strlen(err.text);
        assert_int_equal(found != NULL, cases[i].want != NULL);
        if (found) assert_string_equal(found, cases[i].want);
        if (found) assert_int_equal(size, strlen(cases[i].want));
        dgm_memory_close(&m);
    }
}

static void utf16_is_read(void **state)
{
    (void)state;
    static const char text[] = TMX("<tu>" TUV("en", "The house.") TUV("de", "Das Haus.") "</tu>");
    char wide[2 * sizeof text];
    memcpy(wide, "\xff\xfe", 2);
    for (size_t i = 0; i + 1 < sizeof text; i++) {
        wide[2 + 2 * i] = text[i];
        wide[3 + 2 * i] = 0;
    }
    dgm_memory *m;
    dgm_error err;
    assert_int_equal(dgm_memory_open(&m, "en", "de", &err), DGM_OK);
    if (dgm_memory_read_text(m, wide, 2 * sizeof text, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_memory_count(m), 1);
    dgm_memory_close(&m);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"a < b & \"c\"", "x > y"}, {"Zwei  Zeilen\n", "Two\x01 lines"}, {"", "nothing"}};
    dgm_memory *m, *again;
    dgm_error err;
    for (int packed = 0; packed < 2; packed++) {
        const char *path = in_folder(packed ? "memory.tmx.gz" : "memory.tmx");
        assert_int_equal(dgm_memory_open(&m, "de", "en", &err), DGM_OK);
        for (size_t i = 0; i < 3; i++) {
            const char *from = pairs[i][0], *to = pairs[i][1];
            assert_int_equal(dgm_memory_add(m, from, strlen(from), to, strlen(to), &err), DGM_OK);
        }
        assert_int_equal(dgm_memory_count(m), 2);
        assert_int_equal(dgm_memory_write(m, path, &err), DGM_OK);
        assert_int_equal(dgm_memory_open(&again, "de", "en", &err), DGM_OK);
        if (dgm_memory_read(again, path, &err) != DGM_OK) fail_msg("%s", err.text);
        assert_int_equal(dgm_memory_count(again), 2);
        assert_string_equal(dgm_memory_find(again, "a < b & \"c\"", 11, NULL), "x > y");
        assert_string_equal(dgm_memory_find(again, "Zwei Zeilen", 11, NULL), "Two lines"); // no XML holds the character
        dgm_memory_close(&again);
        dgm_memory_close(&m);
    }
    assert_int_equal(dgm_memory_open(&m, "de", "", &err), DGM_ERR_ARGUMENT);
    assert_null(m);
    assert_int_equal(dgm_memory_open(&m, "de", "en", &err), DGM_OK);
    assert_int_equal(dgm_memory_add(m, "\xff", 1, "a", 1, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_memory_read(m, "/nowhere.tmx", &err), DGM_ERR_IO);
    dgm_memory_close(&m);
}

static int take_bytes(void *cookie, const char *data, size_t size)
{
    strncat(cookie, data, size);
    return 0;
}

// What a memory knows is in the document, and is no longer asked for.
static void documents_recall(void **state)
{
    (void)state;
    static const char page[] = "<p>one two</p><p>The <b>house</b>.</p><p>three</p>";
    char out[128] = "";
    dgm_memory *m;
    dgm_document *d;
    dgm_error err;
    size_t known = 0, size;
    assert_int_equal(dgm_memory_open(&m, "en", "de", &err), DGM_OK);
    assert_int_equal(dgm_memory_add(m, "The house.", 10, "Das Haus.", 9, &err), DGM_OK);
    assert_int_equal(dgm_document_open(&d, page, strlen(page), "x.html", NULL, &err), DGM_OK);
    assert_int_equal(dgm_document_recall(d, m, &known, &err), DGM_OK);
    assert_int_equal(known, 1);
    assert_int_equal(dgm_document_describe(d)->lines, 2);
    assert_memory_equal(dgm_document_line(d, 1, &size), "three", 5);
    assert_int_equal(size, 5);
    assert_int_equal(dgm_document_put(d, 1, "drei", 4, NULL, 0, &err), DGM_OK);
    assert_int_equal(dgm_document_put(d, 2, "vier", 4, NULL, 0, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_document_recall(d, m, NULL, &err), DGM_ERR_ARGUMENT); // too late
    assert_int_equal(dgm_document_write(d, take_bytes, out, &err), DGM_OK);
    assert_string_equal(out, "<p>one two</p><p>Das <b>Haus</b>.</p><p>drei</p>");
    dgm_document_close(&d);
    dgm_memory_close(&m);
}

static void allocations_may_fail(void **state)
{
    (void)state;
    const uint64_t live = dgm_mem_live();
    for (uint64_t n = 1;; n++) {
        dgm_memory *m = NULL;
        dgm_error err;
        char *text = NULL;
        dgm_mem_inject(n, 1);
        dgm_status st = dgm_memory_open(&m, "en", "de", &err);
        if (st == DGM_OK) st = dgm_memory_read_text(m, cases[0].tmx, strlen(cases[0].tmx), &err);
        if (st == DGM_OK) st = dgm_memory_text(m, &text, NULL, &err);
        dgm_mem_inject(0, 0);
        if (st == DGM_OK) dgm_string_free(&text);
        dgm_memory_close(&m);
        assert_int_equal(dgm_mem_live(), live);
        if (st == DGM_OK) break;
        assert_int_equal(st, DGM_ERR_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(utf16_is_read),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(documents_recall),
        cmocka_unit_test(allocations_may_fail),
    };
    if (!scratch_open()) return 1;
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
