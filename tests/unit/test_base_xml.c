// SPDX-License-Identifier: MIT
// XML: what a walk tells and where it stands in the source, what is refused and in which words, attributes found in
// tags, text escaped.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/xml.h"

typedef struct told {
    dgm_text source;
    dgm_writer text;
} told;

// One letter for the kind, the bytes of the source, and of a text what it means where that is something else.
static dgm_status tell(void *cookie, const dgm_xml_event *e, dgm_error *err)
{
    told *t = cookie;
    assert_true(e->begin <= e->end && e->end <= t->source.size);
    dgm_write_u8(&t->text, (uint8_t) "OCTE#."[e->kind]);
    dgm_write_bytes(&t->text, t->source.data + e->begin, e->end - e->begin);
    const dgm_text raw = {t->source.data + e->begin, e->end - e->begin};
    if (e->kind == DGM_XML_TEXT && !dgm_text_equal(raw, e->text)) {
        dgm_write_text(&t->text, "=");
        dgm_write_bytes(&t->text, e->text.data, e->text.size);
    }
    dgm_write_text(&t->text, "|");
    if (e->name && strcmp(e->name, "stop") == 0) return dgm_fail(err, DGM_ERR_FORMAT, "stopped here");
    return DGM_OK;
}

static dgm_status walk(const char *data, size_t size, char *out, size_t room, dgm_error *err)
{
    told t = {.source = {data, size}};
    const dgm_status st = dgm_xml_walk(t.source, tell, &t, err);
    snprintf(out, room, "%.*s", (int)t.text.size, t.text.data ? (const char *)t.text.data : "");
    dgm_writer_free(&t.text);
    return st;
}

static const struct {
    const char *data, *want;
    dgm_status status;
} cases[] = {
    {"<a>x</a>", "O<a>|Tx|C</a>|", DGM_OK},
    {"<a><b c='1'/>y</a>\n", "O<a>|O<b c='1'/>|C|Ty|C</a>|.\n|", DGM_OK},
    {"<a>1 &lt; 2&#228;\r\n</a>", "O<a>|T1 |T&lt;=<|T 2|T&#228;=ä|T\r\n=\n|C</a>|", DGM_OK},
    {"<a>x<![CDATA[<b> & \n]]>y</a>", "O<a>|Tx|T<![CDATA[<b> & \n]]>=<b> & \n|Ty|C</a>|", DGM_OK},
    {"<a><!-- <b> --><?p q?></a>", "O<a>|#<!-- <b> -->|.<?p q?>|C</a>|", DGM_OK},
    {"\xef\xbb\xbf<a>x</a>", "O<a>|Tx|C</a>|", DGM_OK},
    {"<?xml version='1.0' encoding='ISO-8859-1'?><a>ä</a>",
     ".<?xml version='1.0' encoding='ISO-8859-1'?>|O<a>|Tä|C</a>|", DGM_OK},
    // What a document declares is not put in its place.
    {"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "O<a>|E&x;|C</a>|", DGM_OK},
    {"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>", "O<a>|E&x;|C</a>|", DGM_OK},
    {"<!DOCTYPE a SYSTEM 'http://x/y.dtd'><a>&nbsp;</a>", "O<a>|E&nbsp;|C</a>|", DGM_OK},
    // What is wrong is said with its line.
    {"", "line 1: no well-formed XML: no element found", DGM_ERR_FORMAT},
    {"<a>\n<stop/></a>", "line 2: stopped here", DGM_ERR_FORMAT},
    {"<a><b></a>", "line 1: </a> closes no open element", DGM_ERR_FORMAT},
    {"<a>\n<b:c>", "line 2: <b:c> is never closed", DGM_ERR_FORMAT},
    {"<a b></a>", "line 1: a character that cannot be here: the file is no well-formed XML", DGM_ERR_FORMAT},
    {"<a b=c></a>", "line 1: an attribute's value needs quotes", DGM_ERR_FORMAT},
    {"<a>&b", "line 1: '&' begins no entity", DGM_ERR_FORMAT},
    {"<a><b", "line 1: a tag is never closed", DGM_ERR_FORMAT},
    {"<a>b ]", "line 1: <a> is never closed", DGM_ERR_FORMAT},
    {"<a>&#0;</a>", "line 1: '&#0;' is no character", DGM_ERR_FORMAT},
    {"<a>&b;</a>", "line 1: unknown entity '&b;'", DGM_ERR_FORMAT},
    {"<a>b\xe4</a>", "line 1: invalid UTF-8", DGM_ERR_FORMAT},
    {"<a><![CDATA[ b</a>", "line 1: a CDATA section is never closed", DGM_ERR_FORMAT},
    {"<!DOCTYPE a [<!ENTITY x 'ha'><!ENTITY y '&x;&x;'>]><a>&y;</a>",
     "line 1: entity 'y' contains entities or more than 1024 bytes, by which a small file could grow without bound; "
     "such files are not read",
     DGM_ERR_FORMAT},
};

static void walks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[2048];
        dgm_error err = {{0}};
        const dgm_status st = walk(cases[i].data, strlen(cases[i].data), out, sizeof out, &err);
        if (st != cases[i].status) fail_msg("'%s': %d, %s", cases[i].data, st, err.text);
        // The document type comes in many parts: what follows it is looked at.
        const char *from = cases[i].data[0] == '<' && cases[i].data[1] == '!' ? strstr(out, "O<a>") : out;
        assert_string_equal(st == DGM_OK ? from : err.text, cases[i].want);
    }
}

static void bombs_are_refused(void **state)
{
    (void)state;
    char out[64];
    dgm_error err;
    // A long entity, over and over in an attribute: no entity in an entity.
    dgm_writer w = {0};
    dgm_write_text(&w, "<!DOCTYPE a [<!ENTITY x '");
    for (int i = 0; i < 2000; i++) dgm_write_text(&w, "0123456789");
    dgm_write_text(&w, "'>]><a b='");
    for (int i = 0; i < 2000; i++) dgm_write_text(&w, "&x;");
    dgm_write_text(&w, "'/>");
    assert_int_equal(walk((const char *)w.data, w.size, out, sizeof out, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "entity 'x'"));
    dgm_writer_free(&w);
    // Elements in elements.
    for (int i = 0; i <= DGM_XML_DEPTH; i++) dgm_write_text(&w, "<a>");
    assert_int_equal(walk((const char *)w.data, w.size, out, sizeof out, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "line 1: elements are nested too deep");
    dgm_writer_free(&w);
}

// Expat knows UTF-16 without a mark by itself; places of events would then not be those of the text.
static void utf16_is_refused(void **state)
{
    (void)state;
    static const char *const wide[] = {"<\0a\0>\0x\0<\0/\0a\0>\0", "\0<\0a\0>\0x\0<\0/\0a\0>", "\xff\xfe<\0a\0/\0>\0",
                                       "\xfe\xff\0<\0a\0/\0>"};
    static const size_t sizes[] = {16, 16, 10, 10};
    char out[64];
    dgm_error err;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(walk(wide[i], sizes[i], out, sizeof out, &err), DGM_ERR_FORMAT);
        assert_string_equal(err.text, "line 1: it is UTF-16; XML in UTF-8 is read");
    }
}

static void attributes_have_places(void **state)
{
    (void)state;
    static const struct {
        const char *tag, *name, *want; // NULL: it is not there
    } places[] = {
        {"<a b='1' c=\"2\">", "b", "1"},
        {"<a b='1' c=\"2\">", "c", "2"},
        {"<a b='c=\"3\"' c = '2'/>", "c", "2"},
        {"<a b=''>", "b", ""},
        {"<a x:b='1'>", "b", NULL},
        {"<a>", "b", NULL},
        {"<b/>", "b", NULL},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        size_t begin, end;
        const dgm_text tag = dgm_text_of(places[i].tag);
        const bool found = dgm_xml_attribute_place(tag, places[i].name, &begin, &end);
        assert_int_equal(found, places[i].want != NULL);
        if (!found) continue;
        assert_int_equal(end - begin, strlen(places[i].want));
        assert_memory_equal(tag.data + begin, places[i].want, end - begin);
    }
}

static void text_is_escaped(void **state)
{
    (void)state;
    dgm_writer w = {0};
    dgm_xml_write(&w, dgm_text_of("a < b & \"c\" > d\x01\n"));
    dgm_write_text(&w, "|");
    dgm_xml_write_attribute(&w, dgm_text_of("a\t\"b\"\n"));
    char *text = dgm_writer_take(&w, NULL);
    assert_string_equal(text, "a &lt; b &amp; \"c\" &gt; d\n|a&#9;&quot;b&quot;&#10;");
    dgm_free(text);
}

static void allocations_may_fail(void **state)
{
    (void)state;
    const uint64_t live = dgm_mem_live();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint64_t n = 1;; n++) {
            char out[2048];
            dgm_error err;
            dgm_mem_inject(n, 1);
            const dgm_status st = walk(cases[i].data, strlen(cases[i].data), out, sizeof out, &err);
            dgm_mem_inject(0, 0);
            assert_int_equal(dgm_mem_live(), live);
            if (st == cases[i].status) break; // of the test's own writer, which is allowed to
            assert_int_equal(st, DGM_ERR_MEMORY);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks),
        cmocka_unit_test(bombs_are_refused),
        cmocka_unit_test(utf16_is_refused),
        cmocka_unit_test(attributes_have_places),
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
