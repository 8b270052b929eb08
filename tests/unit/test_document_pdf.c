// SPDX-License-Identifier: MIT
// PDF: its text becomes HTML, where the shared object is that takes it out; else, and with what is no PDF, a sentence.
#define _GNU_SOURCE // setenv
#include "packages.h"

#include <libgen.h>
#include <limits.h>
#include <unistd.h>

static char plugins[PATH_MAX];

// A page with what is in `contents`.
static dgm_writer make_pdf(const char *contents)
{
    static const char *const objects[] = {
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R /Resources << /Font << /F 4 0 R >> >> >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    };
    dgm_writer w = {0};
    size_t at[6];
    dgm_write_text(&w, "%PDF-1.4\n");
    for (int i = 0; i < 4; i++) {
        at[i] = w.size;
        dgm_write_format(&w, "%d 0 obj\n%s\nendobj\n", i + 1, objects[i]);
    }
    at[4] = w.size;
    dgm_write_format(&w, "5 0 obj\n<< /Length %zu >>\nstream\n%s\nendstream\nendobj\n", strlen(contents), contents);
    at[5] = w.size;
    dgm_write_text(&w, "xref\n0 6\n0000000000 65535 f \n");
    for (int i = 0; i < 5; i++) dgm_write_format(&w, "%010zu 00000 n \n", at[i]);
    dgm_write_format(&w, "trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%zu\n%%%%EOF\n", at[5]);
    return w;
}

static bool has_plugin(void)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/libdragoman-pdf.so", plugins);
    return access(path, R_OK) == 0;
}

static void text_becomes_html(void **state)
{
    (void)state;
    if (!has_plugin()) skip();
    dgm_writer pdf =
        make_pdf("BT /F 24 Tf 72 760 Td (The title) Tj /F 12 Tf 0 -40 Td (A first line & more of a para-) Tj "
                 "0 -14 Td (graph that goes on.) Tj 0 -30 Td (Another <one>.) Tj ET");
    char lines[256];
    dgm_document *d = open_document(text_of(&pdf), NULL);
    list_lines(d, lines, sizeof lines);
    assert_string_equal(lines, "The title|A first line & more of a paragraph that goes on.|Another <one>.|");
    assert_non_null(strstr(dgm_document_describe(d)->notice, "HTML"));
    put_same(d);
    dgm_writer out = write_document(d);
    dgm_write_u8(&out, 0);
    assert_non_null(strstr((const char *)out.data,
                           "<body>\n<h2>The title</h2>\n<p>A first line &amp; more of a paragraph "
                           "that goes on.</p>\n<p>Another &lt;one&gt;.</p>\n</body>"));
    dgm_writer_free(&out);
    dgm_writer_free(&pdf);
}

// By the name of the output: plain text, or nothing at all.
static void text_becomes_what_the_output_is(void **state)
{
    (void)state;
    if (!has_plugin()) skip();
    dgm_writer pdf = make_pdf("BT /F 24 Tf 72 760 Td (The title) Tj /F 12 Tf 0 -40 Td (A <first> & line.) Tj ET");
    dgm_document *d = NULL;
    dgm_error error;
    dgm_document_options o;
    dgm_document_options_default(&o);
    o.output = "text.TXT";
    assert_int_equal(dgm_document_open(&d, pdf.data, pdf.size, "x.pdf", &o, NULL), DGM_OK);
    assert_null(strstr(dgm_document_describe(d)->notice, "HTML"));
    put_same(d);
    dgm_writer out = write_document(d);
    dgm_write_u8(&out, 0);
    assert_string_equal((const char *)out.data, "The title\nA <first> & line.\n");
    o.output = "text.pdf";
    assert_int_equal(dgm_document_open(&d, pdf.data, pdf.size, "x.pdf", &o, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "no PDF is written"));
    dgm_writer_free(&out);
    dgm_writer_free(&pdf);
}

static void manuals_are_read(void **state)
{
    (void)state;
    if (!has_plugin()) skip();
    dgm_zip *z;
    dgm_writer corpus = read_corpus();
    assert_int_equal(dgm_zip_open_memory(&z, corpus.data, corpus.size, NULL), DGM_OK);
    size_t seen = 0, exact = 0;
    for (size_t i = 0; i < dgm_zip_count(z); i++) {
        if (!strstr(dgm_zip_name(z, i), ".pdf")) continue;
        char data[1 << 14];
        const size_t size = (size_t)dgm_zip_size(z, i);
        assert_true(size <= sizeof data);
        assert_int_equal(dgm_zip_read(z, i, 0, data, size, NULL), DGM_OK);
        dgm_document *d = open_document((dgm_text){data, size}, "x.pdf");
        exact += dgm_document_describe(d)->lines == 9; // paragraphs: no line is taken for one, none are joined
        dgm_document_close(&d);
        seen++;
    }
    assert_true(seen >= 15);
    assert_int_equal(exact, seen);
    dgm_zip_close(&z);
    dgm_writer_free(&corpus);
}

static void others_are_refused(void **state)
{
    (void)state;
    if (has_plugin()) {
        dgm_writer empty = make_pdf("0 0 10 10 re f");
        expect_refused(text_of(&empty), "x.pdf", DGM_ERR_UNSUPPORTED, "the PDF has no text, only pictures");
        expect_refused(dgm_text_of("no PDF at all"), "x.pdf", DGM_ERR_FORMAT, "the PDF is damaged");
        dgm_writer_free(&empty);
    }
    setenv("DRAGOMAN_PLUGINS", "/nowhere", 1);
    expect_refused(dgm_text_of("%PDF-1.4 and so on"), NULL, DGM_ERR_UNSUPPORTED, "libdragoman-pdf.so");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_becomes_html),
        cmocka_unit_test(text_becomes_what_the_output_is),
        cmocka_unit_test(manuals_are_read),
        cmocka_unit_test(others_are_refused),
    };
    char self[PATH_MAX];
    if (argc < 1 || !realpath(argv[0], self)) return 1;
    snprintf(plugins, sizeof plugins, "%s", dirname(dirname(self))); // the build folder
    setenv("DRAGOMAN_PLUGINS", plugins, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
