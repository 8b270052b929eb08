// SPDX-License-Identifier: MIT
// XLIFF 1.2 and 2: which units are translated, where translations are put, what becomes of codes.
#define _DEFAULT_SOURCE // popen
#include "packages.h"

#include "base/mem.h"

#define FILE_1(body)                                                                                                   \
    "<xliff version=\"1.2\"><file source-language=\"en\" target-language=\"de\">" body "</file></xliff>"
#define FILE_2(body) "<xliff version=\"2.0\" srcLang=\"en\" trgLang=\"de\"><file><unit>" body "</unit></file></xliff>"

static const struct {
    const char *before, *lines, *after; // words of translations stand the other way round
} samples[] = {
    // A target is made behind the source, in its line or in one of its own.
    {FILE_1("<trans-unit><source>one two</source></trans-unit>"), "one two|",
     FILE_1("<trans-unit><source>one two</source><target>two one</target></trans-unit>")},
    {FILE_1("\n  <x:trans-unit>\n    <x:source>one two</x:source>\n  </x:trans-unit>\n"), "one two|",
     FILE_1("\n  <x:trans-unit>\n    <x:source>one two</x:source>\n    <x:target>two one</x:target>\n  "
            "</x:trans-unit>\n")},
    {FILE_1("<trans-unit><source>a b</source><seg-source><mrk>a b</mrk></seg-source></trans-unit>"), "a b|",
     FILE_1(
         "<trans-unit><source>a b</source><seg-source><mrk>a b</mrk></seg-source><target>b a</target></trans-unit>")},
    {FILE_1("<trans-unit><source>a b</source><target id='1'/></trans-unit>"), "a b|",
     FILE_1("<trans-unit><source>a b</source><target id='1'>b a</target></trans-unit>")},
    // What is translated is left alone, and so is what must not be; a state that says otherwise changes.
    {FILE_1("<trans-unit><source>a b</source><target>x y</target></trans-unit>"), "", NULL},
    {FILE_1("<group translate='no'><trans-unit><source>a b</source></trans-unit></group>"), "", NULL},
    {FILE_1("<trans-unit><source>a b</source><target state='new'>a b</target></trans-unit>"), "a b|",
     FILE_1("<trans-unit><source>a b</source><target state='translated'>b a</target></trans-unit>")},
    {FILE_1(
         "<trans-unit><source>a b</source><alt-trans><source>c d</source><target>x</target></alt-trans></trans-unit>"),
     "a b|",
     FILE_1("<trans-unit><source>a b</source><target>b a</target><alt-trans><source>c d</source><target>x</target>"
            "</alt-trans></trans-unit>")},
    // Codes are tags, with all that is in them.
    {FILE_1("<trans-unit><source>Press <g id=\"1\">Enter</g> now</source></trans-unit>"), "Press Enter now|",
     FILE_1("<trans-unit><source>Press <g id=\"1\">Enter</g> now</source>"
            "<target>now <g id=\"1\">Enter</g> Press</target></trans-unit>")},
    {FILE_1("<trans-unit><source>A <bpt id='1'>&lt;b></bpt>c<ept id='1'>&lt;/b></ept> &amp; d</source></trans-unit>"),
     "A c & d|",
     FILE_1("<trans-unit><source>A <bpt id='1'>&lt;b></bpt>c<ept id='1'>&lt;/b></ept> &amp; d</source>"
            "<target>d &amp; <bpt id='1'>&lt;b></bpt>c<ept id='1'>&lt;/b></ept> A</target></trans-unit>")},
    // Version 2.
    {FILE_2("<segment state=\"initial\"><source>a <pc id='1'>b</pc></source></segment><ignorable><source> </source>"
            "</ignorable>"),
     "a b|",
     FILE_2("<segment state=\"translated\"><source>a <pc id='1'>b</pc></source><target><pc id='1'>b</pc> "
            "a</target></segment>"
            "<ignorable><source> </source></ignorable>")},
    {FILE_2("<segment><source>a b<sc id='1'/> c<ec startRef='1'/></source></segment>"), "a b c|",
     FILE_2("<segment><source>a b<sc id='1'/> c<ec startRef='1'/></source>"
            "<target><sc id='1'/>c<ec startRef='1'/> b a</target></segment>")},
    // The target's language is said where it has to be.
    {"<xliff version=\"2.0\" srcLang=\"en\"><unit><segment><source>a b</source></segment></unit></xliff>", "a b|",
     "<xliff trgLang=\"de\" version=\"2.0\" srcLang=\"en\"><unit><segment><source>a b</source><target>b "
     "a</target></segment>"
     "</unit></xliff>"},
};

static void units_are_translated(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        char lines[256];
        dgm_document *d = open_document(dgm_text_of(samples[i].before), i % 2 ? "x.xlf" : NULL);
        list_lines(d, lines, sizeof lines);
        assert_string_equal(lines, samples[i].lines);
        put_shuffled(d, 0);
        dgm_writer out = write_document(d);
        dgm_write_u8(&out, 0);
        assert_string_equal((const char *)out.data, samples[i].after ? samples[i].after : samples[i].before);
        dgm_writer_free(&out);
    }
}

static void all_are_translated_where_asked(void **state)
{
    (void)state;
    static const char before[] =
        FILE_1("<trans-unit><source>a b</source><target>x <g id='1'>y</g></target></trans-unit>");
    static const char after[] = FILE_1("<trans-unit><source>a b</source><target>b a</target></trans-unit>");
    dgm_document *d;
    dgm_document_options options;
    dgm_document_options_default(&options);
    options.all = 1;
    assert_int_equal(dgm_document_open(&d, before, strlen(before), "x.xliff", &options, NULL), DGM_OK);
    put_shuffled(d, 0);
    dgm_writer out = write_document(d);
    assert_true(dgm_text_equal(text_of(&out), dgm_text_of(after)));
    dgm_writer_free(&out);
}

static void damage_is_refused(void **state)
{
    (void)state;
    expect_refused(dgm_text_of("<tmx/>"), "x.xlf", DGM_ERR_FORMAT, "no XLIFF");
    expect_refused(dgm_text_of("<xliff>\n<file></xliff>"), "x.xlf", DGM_ERR_FORMAT, "line 2: </xliff> closes no");
    expect_refused(dgm_text_of("<xliff>\n&nbsp;</xliff>"), "x.xlf", DGM_ERR_FORMAT, "line 2: unknown entity '&nbsp;'");
}

static void allocations_may_fail(void **state)
{
    (void)state;
    const uint64_t live = dgm_mem_live();
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i += 3)
        for (uint64_t n = 1;; n++) {
            dgm_document *d = NULL;
            dgm_error err;
            dgm_mem_inject(n, 1);
            const dgm_status st =
                dgm_document_open(&d, samples[i].before, strlen(samples[i].before), "x.xlf", NULL, &err);
            dgm_mem_inject(0, 0);
            dgm_document_close(&d);
            assert_int_equal(dgm_mem_live(), live);
            if (st == DGM_OK) break;
            assert_int_equal(st, DGM_ERR_MEMORY);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_are_translated),
        cmocka_unit_test(all_are_translated_where_asked),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
