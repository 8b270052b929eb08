// SPDX-License-Identifier: MIT
// XML of any kind as a document: which elements are texts by themselves, what is ignored, what is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "documents.h"

static dgm_document_options xml(void)
{
    dgm_document_options o;
    dgm_document_options_default(&o);
    o.format = "xml";
    return o;
}

static void expect(const dgm_document_options *o, rule how, const char *source, const char *expected)
{
    text_buffer out;
    dgm_error error;
    if (document_by_rule(source, strlen(source), NULL, o, how, &out, &error) != DGM_OK) fail_msg("%s", error.text);
    if (strcmp(out.data ? out.data : "", expected) != 0) fail_msg("%s\nexpected\n%s", out.data, expected);
    free(out.data);
}

static void test_structure(void **state)
{
    const dgm_document_options o = xml();
    (void)state;
    // Elements among elements are texts by themselves, elements among words are tags.
    expect(&o, RULE_REVERSED, "<doc>\n <p>one two</p>\n <p>three <b>four</b></p>\n</doc>",
           "<doc>\n <p>two one</p>\n <p><b>four</b> three</p>\n</doc>");
    expect(&o, RULE_REVERSED, "one <b>two</b> three", "three <b>two</b> one");
    expect(&o, RULE_CAPITALS, "<?xml version=\"1.0\"?><a>x<!-- y --><![CDATA[ z ]]></a>",
           "<?xml version=\"1.0\"?><a>X<!-- y --><![CDATA[ z ]]></a>");
    expect(&o, RULE_CAPITALS, "<ä:b k='>'>x &lt; y &amp; z</ä:b>", "<ä:b k='>'>X &lt; Y &amp; Z</ä:b>");
    expect(&o, RULE_SAME, "", "");
    expect(&o, RULE_SAME, "<a><b/><c> </c></a>", "<a><b/><c> </c></a>");
}

static void test_lists(void **state)
{
    dgm_document_options o = xml();
    (void)state;
    o.no_outline = 1;
    expect(&o, RULE_REVERSED, "<a>one</a> <b>two</b>", "<b>two</b> <a>one</a>");
    o.splitting_tags = "x, b";
    expect(&o, RULE_REVERSED, "<a>one two</a> <b>three four</b>", "<a>two one</a> <b>four three</b>");
    o.no_outline = 0;
    o.splitting_tags = NULL;
    o.inline_tags = "a,b";
    expect(&o, RULE_REVERSED, "<a>one</a> <b>two</b>", "<b>two</b> <a>one</a>");
    o.inline_tags = NULL;
    o.ignore_tags = "k";
    expect(&o, RULE_CAPITALS, "one <k>two <b>three</b></k> four", "ONE <k>two <b>three</b></k> FOUR");
    expect(&o, RULE_CAPITALS, "<p>one</p><k>two</k>", "<p>ONE</p><k>two</k>");
}

static void test_damage(void **state)
{
    static const char *const bad[] = {"<a>x",     "x</a>", "<a>x</b>", "a < b",  "<a", "<a b='>",
                                      "<!-- x", "<? x",  "<![CDATA[", "<1>x</1>", "<>x</>"};
    const dgm_document_options o = xml();
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        dgm_document *d = NULL;
        dgm_error error;
        if (dgm_document_open(&d, bad[i], strlen(bad[i]), NULL, &o, &error) != DGM_ERR_FORMAT)
            fail_msg("%s was taken", bad[i]);
        assert_non_null(strstr(error.text, "line 1"));
    }
}

// Thousands of elements inside each other, without recursion.
static void test_depth(void **state)
{
    enum { DEEP = 50000 };
    const dgm_document_options o = xml();
    char *text = malloc(7 * DEEP + 8);
    size_t n = 0;
    (void)state;
    for (int i = 0; i < DEEP; i++, n += 3) memcpy(text + n, "<a>", 3);
    text[n++] = 'x';
    for (int i = 0; i < DEEP; i++, n += 4) memcpy(text + n, "</a>", 4);
    dgm_document *d = NULL;
    dgm_error error;
    assert_int_equal(dgm_document_open(&d, text, n, NULL, &o, &error), DGM_OK);
    assert_int_equal(dgm_document_describe(d)->lines, 1);
    dgm_document_close(&d);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_structure), cmocka_unit_test(test_lists),
                                       cmocka_unit_test(test_damage), cmocka_unit_test(test_depth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
