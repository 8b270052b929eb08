// SPDX-License-Identifier: MIT
// Office documents and books: what is text, what comes back where words change their order, that everything else stays,
// what is refused.
#define _GNU_SOURCE // memmem
#include "packages.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/xml.h"

#define OVERRIDE(part, type)                                                                                           \
    "<Override PartName=\"/" part "\" ContentType=\"application/vnd.openxmlformats-officedocument." type "+xml\"/>"
#define TYPE(part, type) "<Types>" OVERRIDE(part, type) "</Types>"

// ---- paragraphs ----------------------------------------------------------------------------------

typedef struct sample {
    const char *name, *before, *lines, *reversed; // the paragraph, its lines, and with words the other way round
} sample;

static const sample samples[] = {
    // Runs of other properties are tags.
    {"x.docx",
     "<w:p><w:r><w:t xml:space=\"preserve\">Press </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>Enter</w:t></w:r>"
     "<w:r><w:t xml:space=\"preserve\"> now</w:t></w:r></w:p>",
     "Press Enter now|",
     "<w:p><w:r><w:t xml:space=\"preserve\">now </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>Enter</w:t></w:r>"
     "<w:r><w:t xml:space=\"preserve\"> Press</w:t></w:r></w:p>"},
    // Spaces that come to stand at the end of an element are said to count.
    {"x.docx",
     "<w:p><w:r><w:t>A </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>b</w:t></w:r><w:r><w:t>, c</w:t></w:r></w:p>",
     "A b, c|",
     "<w:p><w:r><w:t xml:space=\"preserve\">c </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>b</w:t></w:r><w:r>"
     "<w:t>, A</w:t></w:r></w:p>"},
    // Links stay around their words; between two links that meet the ends of a paragraph it is cut.
    {"x.docx",
     "<w:p><w:r><w:t xml:space=\"preserve\">See </w:t></w:r><w:hyperlink r:id=\"1\"><w:r><w:t>page two</w:t></w:r>"
     "</w:hyperlink><w:r><w:t xml:space=\"preserve\"> now</w:t></w:r></w:p>",
     "See page two now|",
     "<w:p><w:r><w:t xml:space=\"preserve\">now </w:t></w:r><w:hyperlink r:id=\"1\"><w:r><w:t>two page</w:t></w:r>"
     "</w:hyperlink><w:r><w:t xml:space=\"preserve\"> See</w:t></w:r></w:p>"},
    {"x.docx",
     "<w:p><w:hyperlink r:id=\"1\"><w:r><w:t>One link</w:t></w:r></w:hyperlink><w:r><w:t> or </w:t></w:r>"
     "<w:hyperlink r:id=\"2\"><w:r><w:t>another</w:t></w:r></w:hyperlink></w:p>",
     "One link|or|another|",
     "<w:p><w:hyperlink r:id=\"1\"><w:r><w:t>link One</w:t></w:r></w:hyperlink><w:r><w:t> or </w:t></w:r>"
     "<w:hyperlink r:id=\"2\"><w:r><w:t>another</w:t></w:r></w:hyperlink></w:p>"},
    // A field is kept together; breaks and tabulators end lines; deleted text is no text.
    {"x.docx",
     "<w:p><w:r><w:t xml:space=\"preserve\">Page </w:t></w:r><w:r><w:fldChar w:fldCharType=\"begin\"/></w:r><w:r>"
     "<w:instrText>PAGE</w:instrText></w:r><w:r><w:t>3</w:t></w:r><w:r><w:fldChar w:fldCharType=\"end\"/></w:r>"
     "<w:r><w:t xml:space=\"preserve\"> here</w:t></w:r></w:p>",
     "Page 3 here|",
     "<w:p><w:r><w:t xml:space=\"preserve\">here </w:t></w:r><w:r><w:fldChar w:fldCharType=\"begin\"/></w:r><w:r>"
     "<w:instrText>PAGE</w:instrText></w:r><w:r><w:t>3</w:t></w:r><w:r><w:fldChar w:fldCharType=\"end\"/></w:r>"
     "<w:r><w:t xml:space=\"preserve\"> Page</w:t></w:r></w:p>"},
    {"x.docx",
     "<w:p><w:r><w:t>My name</w:t><w:tab/><w:t>is it</w:t><w:br/></w:r><w:del><w:r><w:delText>no no</w:delText></w:r>"
     "</w:del><w:ins><w:r><w:t>so what</w:t></w:r></w:ins></w:p>",
     "My name|is it|so what|",
     "<w:p><w:r><w:t>name My</w:t><w:tab/><w:t>it is</w:t><w:br/></w:r><w:del><w:r><w:delText>no no</w:delText></w:r>"
     "</w:del><w:ins><w:r><w:t>what so</w:t></w:r></w:ins></w:p>"},
    // A text box in a run: its paragraphs are text, whether the one around it has some or not.
    {"x.docx",
     "<w:p><w:r><w:pict><w:p><w:r><w:t>In it</w:t></w:r></w:p></w:pict></w:r><w:r><w:t>About a </w:t></w:r><w:r>"
     "<w:pict><w:p><w:r><w:t>small box</w:t></w:r></w:p></w:pict></w:r><w:r><w:t> thing</w:t></w:r></w:p>",
     "In it|small box|About a thing|",
     "<w:p><w:r><w:pict><w:p><w:r><w:t>it In</w:t></w:r></w:p></w:pict></w:r><w:r><w:t></w:t></w:r><w:r><w:pict>"
     "<w:p><w:r><w:t>box small</w:t></w:r></w:p></w:pict></w:r><w:r><w:t xml:space=\"preserve\"> thing a "
     "About</w:t></w:r>"
     "</w:p>"},
    {"x.pptx",
     "<a:p><a:r><a:rPr b=\"1\"/><a:t>Big </a:t></a:r><a:r><a:rPr/><a:t>news</a:t></a:r><a:br/><a:r><a:t>to day</a:t>"
     "</a:r><a:fld><a:t>page x</a:t></a:fld></a:p>",
     "Big news|to day|",
     "<a:p><a:r><a:rPr b=\"1\"/><a:t></a:t></a:r><a:r><a:rPr/><a:t>news Big</a:t></a:r><a:br/><a:r><a:t>day "
     "to</a:t></a:r>"
     "<a:fld><a:t>page x</a:t></a:fld></a:p>"},
    {"x.xlsx",
     "<sst><si><t>one cell</t></si><si><t>42</t></si><si><t>two\nsmall lines</t><rPh><t>x y</t></rPh></si></sst>",
     "one cell|two|small lines|",
     "<sst><si><t>cell one</t></si><si><t>42</t></si><si><t>two\nlines small</t><rPh><t>x y</t></rPh></si></sst>"},
    // No program writes these: a text by itself beside runs, runs in runs, runs of two prefixes, a field within a text.
    {"x.xlsx",
     "<sst><si><t>one b</t><r><t>d <i/>e</t></r><r><t>f g</t></r><t>h<b/>i</t></si></sst>",
     "one b|d ef g|hi|",
     "<sst><si><t>b one</t><r><t xml:space=\"preserve\">g <i/>ef</t></r><r><t xml:space=\"preserve\"> d</t></r>"
     "<t>h<b/>i</t></si></sst>"},
    {"x.docx",
     "<w:p><w:r><w:t>a b</w:t><w:r><w:t>c d</w:t></w:r></w:r><v:r><w:t>e f</w:t></v:r></w:p>",
     "a b|c d|e f|",
     "<w:p><w:r><w:t>b a</w:t><w:r><w:t>d c</w:t></w:r></w:r><v:r><w:t>f e</w:t></v:r></w:p>"},
    {"x.docx",
     "<w:p><w:r><w:t>a<w:fldChar w:fldCharType=\"end\"/> b<w:fldChar w:fldCharType=\"end\"/> c</w:t></w:r></w:p>",
     "a b c|",
     "<w:p><w:r><w:t>c b<w:fldChar w:fldCharType=\"end\"/> a<w:fldChar w:fldCharType=\"end\"/></w:t></w:r></w:p>"},
    {"x.odt",
     "<text:p>The <text:span>old</text:span> house<text:note><text:p>a note</text:p></text:note></text:p>"
     "<text:tracked-changes><text:p>gone away</text:p></text:tracked-changes>",
     "a note|The old house|",
     "<text:p>house <text:span>old</text:span> The<text:note><text:p>note a</text:p></text:note></text:p>"
     "<text:tracked-changes><text:p>gone away</text:p></text:tracked-changes>"},
    {"x.odt", "<text:h>Name<text:tab/>of &amp; it<text:line-break/>two<text:s text:c=\"3\"/>words &lt;</text:h>",
     "Name|of & it|two|words <|",
     "<text:h>Name<text:tab/>it &amp; of<text:line-break/>two<text:s text:c=\"3\"/>&lt; words</text:h>"},
    // A paragraph in the text of another one, which no program should write.
    {"x.odt", "<text:p>About a <text:p>small box</text:p> thing</text:p>", "small box|About a thing|",
     "<text:p><text:p>box small</text:p> thing a About</text:p>"},
};

static const char *part_of(const char *name)
{
    return strstr(name, "docx")   ? "word/document.xml"
           : strstr(name, "pptx") ? "ppt/slides/slide1.xml"
           : strstr(name, "xlsx") ? "xl/sharedStrings.xml"
                                  : "content.xml";
}

static dgm_writer pack_sample(const sample *s, const char *body)
{
    char text[2048];
    snprintf(text, sizeof text, "<?xml version=\"1.0\"?>\n<x>%s</x>", body);
    const char *part = part_of(s->name);
    const char *types = strstr(s->name, "docx")   ? TYPE("word/document.xml", "wordprocessingml.document.main")
                        : strstr(s->name, "pptx") ? TYPE("ppt/slides/slide1.xml", "presentationml.slide")
                        : strstr(s->name, "xlsx") ? TYPE("xl/sharedStrings.xml", "spreadsheetml.sharedStrings")
                                                  : "";
    const entry list[] = {{"mimetype", "any"}, {"[Content_Types].xml", types}, {part, text}, {"x.bin", "\1\2\3"}, {0}};
    return make_archive(list);
}

static void paragraphs_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        char lines[512], want[2048];
        dgm_writer archive = pack_sample(&samples[i], samples[i].before);
        dgm_document *d = open_document(text_of(&archive), samples[i].name);
        list_lines(d, lines, sizeof lines);
        assert_string_equal(lines, samples[i].lines);
        put_shuffled(d, 0);
        dgm_writer out = write_document(d);
        snprintf(want, sizeof want, "<?xml version=\"1.0\"?>\n<x>%s</x>", samples[i].reversed);
        char *got = member_of(text_of(&out), part_of(samples[i].name));
        assert_string_equal(got, want);
        free(got);
        d = open_document(text_of(&archive), samples[i].name);
        put_same(d);
        dgm_writer same = write_document(d);
        assert_true(dgm_text_equal(text_of(&archive), text_of(&same)));
        dgm_writer_free(&same);
        dgm_writer_free(&archive);
        dgm_writer_free(&out);
    }
}

// ---- books ---------------------------------------------------------------------------------------

static const entry book[] = {
    {"mimetype", "application/epub+zip"},
    {"META-INF/container.xml", "<container><rootfiles><rootfile full-path=\"O/b.opf\"/></rootfiles></container>"},
    {"O/b.opf",
     "<package><manifest><item href=\"../p%201.xhtml\" media-type=\"application/xhtml+xml\"/>"
     "<item href=\"toc.ncx\" media-type=\"application/x-dtbncx+xml\"/><item href=\"s.css\" media-type=\"text/css\"/>"
     "</manifest></package>"},
    {"p 1.xhtml", "<html xmlns=\"http://www.w3.org/1999/xhtml\"><body><p>Chapter <b>one</b></p></body></html>"},
    {"O/toc.ncx", "<ncx><navLabel><text>The contents</text></navLabel></ncx>"},
    {"O/s.css", "p {}"},
    {0}};

static void books_are_read(void **state)
{
    (void)state;
    char lines[128];
    dgm_writer archive = make_archive(book);
    dgm_document *d = open_document(text_of(&archive), NULL); // known by its first member
    assert_string_equal(dgm_document_describe(d)->format, "epub");
    list_lines(d, lines, sizeof lines);
    assert_string_equal(lines, "Chapter one|The contents|");
    put_shuffled(d, 0);
    dgm_writer out = write_document(d);
    assert_memory_equal(out.data + 30, "mimetypeapplication/epub+zip", 28);
    char *page = member_of(text_of(&out), "p 1.xhtml"), *contents = member_of(text_of(&out), "O/toc.ncx");
    assert_non_null(strstr(page, "<p><b>one</b> Chapter</p>"));
    assert_non_null(strstr(contents, "<text>contents The</text>"));
    free(page);
    free(contents);
    dgm_writer_free(&archive);
    dgm_writer_free(&out);
}

// What the book lists as XHTML is XML, whatever the page says of itself: entities of HTML would break it.
static void pages_are_xml(void **state)
{
    (void)state;
    static const char page[] = "<html><body><p>1&#160;000 dogs &#38; b</p></body></html>";
    entry list[sizeof book / sizeof *book];
    memcpy(list, book, sizeof book);
    list[3].text = page;
    dgm_writer archive = make_archive(list);
    dgm_document *d = open_document(text_of(&archive), NULL);
    put_shuffled(d, 0);
    dgm_writer out = write_document(d);
    char *after = member_of(text_of(&out), "p 1.xhtml");
    assert_string_equal(after, "<html><body><p>b &amp; dogs 1\xc2\xa0" "000</p></body></html>");
    free(after);
    dgm_writer_free(&archive);
    dgm_writer_free(&out);
}

// ---- documents of an office program ------------------------------------------------------------------

// Tags as a multiset, of a part that must be XML. xml:space does not count: it may be added.
static dgm_status sum_tags(void *cookie, const dgm_xml_event *e, dgm_error *err)
{
    (void)err;
    uint64_t *sum = cookie;
    if (e->kind == DGM_XML_CLOSE) *sum += dgm_hash_bytes(DGM_HASH_START, e->name, strlen(e->name));
    if (e->kind != DGM_XML_OPEN) return DGM_OK;
    uint64_t hash = dgm_hash_bytes(1, e->name, strlen(e->name));
    for (size_t i = 0; e->attributes[i]; i += 2) {
        if (strcmp(e->attributes[i], "xml:space") == 0) continue;
        hash = dgm_hash_bytes(hash, e->attributes[i], strlen(e->attributes[i]));
        hash = dgm_hash_bytes(hash, e->attributes[i + 1], strlen(e->attributes[i + 1]));
    }
    *sum += hash;
    return DGM_OK;
}

static uint64_t tags_of(const char *text)
{
    uint64_t sum = 0;
    dgm_error err;
    if (dgm_xml_walk(dgm_text_of(text), sum_tags, &sum, &err) != DGM_OK) fail_msg("%s in %.2000s", err.text, text);
    return sum;
}

static void compare_members(dgm_text before, dgm_text after)
{
    dgm_zip *z;
    assert_int_equal(dgm_zip_open_memory(&z, before.data, before.size, NULL), DGM_OK);
    for (size_t i = 0; i < dgm_zip_count(z); i++) {
        const char *name = dgm_zip_name(z, i);
        if (name[strlen(name) - 1] == '/') continue;
        char *a = member_of(before, name), *b = member_of(after, name);
        const bool xml = strstr(name, ".xml") || strstr(name, ".xhtml") || strstr(name, ".ncx");
        if (xml)
            assert_true(tags_of(a) == tags_of(b));
        else
            assert_string_equal(a, b);
        free(a);
        free(b);
    }
    dgm_zip_close(&z);
}

// The same for a document of XML: targets are new, sources stay.
static void compare_documents(const char *ending, dgm_text before, dgm_text after)
{
    if (strcmp(ending, "xlf") != 0) {
        compare_members(before, after);
        return;
    }
    char *text = strndup(after.data, after.size);
    tags_of(text);
    free(text);
}

static void check_document(const char *name, dgm_text file, unsigned seeds)
{
    const char *ending = strrchr(name, '.') + 1;
    const bool xliff = strcmp(ending, "xlf") == 0;
    dgm_document *d = open_document(file, NULL); // its bytes tell what it is
    assert_string_equal(dgm_document_describe(d)->format, xliff ? "xliff" : ending);
    assert_true(dgm_document_describe(d)->lines > 3);
    put_same(d);
    dgm_writer same = write_document(d);
    if (!xliff && !dgm_text_equal(text_of(&same), file)) fail_msg("%s is not the same", name);
    dgm_writer_free(&same);
    for (unsigned seed = 0; seed < seeds; seed++) {
        d = open_document(file, name);
        put_shuffled(d, seed);
        dgm_writer out = write_document(d);
        compare_documents(ending, file, text_of(&out));
        dgm_writer_free(&out);
    }
}

// Documents that LibreOffice has made, of manuals in Debian packages and of a letter, a talk and a sheet with all that
// they can have in them.
static void real_documents_stay_whole(void **state)
{
    (void)state;
    dgm_zip *z;
    dgm_error err;
    dgm_writer corpus = read_corpus();
    size_t checked = 0;
    if (dgm_zip_open_memory(&z, corpus.data, corpus.size, &err) != DGM_OK) fail_msg("%s", err.text);
    for (size_t i = 0; i < dgm_zip_count(z); i++) {
        const char *name = dgm_zip_name(z, i);
        if (strstr(name, ".fod") || strstr(name, ".pdf") || !strchr(name, '.')) continue;
        const size_t size = (size_t)dgm_zip_size(z, i);
        char *data = malloc(size);
        assert_int_equal(dgm_zip_read(z, i, 0, data, size, &err), DGM_OK);
        const bool by_hand = strstr(name, "letter") || strstr(name, "talk") || strstr(name, "sheet");
        check_document(name, (dgm_text){data, size}, by_hand ? 8 : 2);
        free(data);
        checked++;
    }
    assert_true(checked >= 120);
    dgm_zip_close(&z);
    dgm_writer_free(&corpus);
}

// ---- what is refused -----------------------------------------------------------------------------

static void expect_refused_list(const entry *list, const char *name, dgm_status status, const char *why)
{
    dgm_writer archive = make_archive(list);
    expect_refused(text_of(&archive), name, status, why);
    dgm_writer_free(&archive);
}

static void damage_is_refused(void **state)
{
    (void)state;
    static const char types[] = TYPE("word/document.xml", "wordprocessingml.document.main");
    static const char bomb[] = "<!DOCTYPE x [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'>]><x><w:p><w:t>&b;</w:t></w:p></x>";
    const entry no_part[] = {{"[Content_Types].xml", types}, {0}};
    const entry no_types[] = {{"word/document.xml", "<x/>"}, {0}}, no_text[] = {{"[Content_Types].xml", "<x/>"}, {0}};
    const entry no_xml[] = {{"[Content_Types].xml", types}, {"word/document.xml", "<x>\n<w:p></x>"}, {0}};
    const entry bombed[] = {{"[Content_Types].xml", types}, {"word/document.xml", bomb}, {0}};
    const entry wide[] = {{"[Content_Types].xml", types}, {"word/document.xml", "\xff\xfe<"}, {0}};
    const entry locked[] = {{"content.xml", "x"}, {"META-INF/manifest.xml", "<m:encryption-data/>"}, {0}};
    const entry no_odf[] = {{"other.xml", "<x/>"}, {0}};
    expect_refused_list(no_part, "x.docx", DGM_ERR_FORMAT, "the part '/word/document.xml' is missing");
    expect_refused_list(no_types, "x.docx", DGM_ERR_FORMAT, "[Content_Types].xml is missing");
    expect_refused_list(no_text, "x.pptx", DGM_ERR_FORMAT, "no part of it has text");
    expect_refused_list(no_xml, "x.docx", DGM_ERR_FORMAT,
                        "x.docx: word/document.xml: line 2: </x> closes no open element");
    expect_refused_list(bombed, "x.docx", DGM_ERR_FORMAT, "word/document.xml: line 1: entity 'b' contains entities");
    expect_refused_list(wide, "x.docx", DGM_ERR_UNSUPPORTED, "it is UTF-16");
    expect_refused_list(locked, "x.odt", DGM_ERR_UNSUPPORTED, "encrypted");
    expect_refused_list(no_odf, "x.odt", DGM_ERR_FORMAT, "content.xml is missing");
    expect_refused_list(no_odf, "x.epub", DGM_ERR_FORMAT, "META-INF/container.xml is missing");
    entry latin[sizeof book / sizeof *book]; // a page's bytes would be taken for others
    memcpy(latin, book, sizeof book);
    latin[3].text = "<p>\ncaf\xe9 noir</p>";
    expect_refused_list(latin, "x.epub", DGM_ERR_UNSUPPORTED, "p 1.xhtml: line 2 is not UTF-8");
    expect_refused(dgm_text_of("PK\3\4 and so on"), "x.docx", DGM_ERR_FORMAT, "not a zip archive");
    // A member that is no text is damaged, too: nothing would be written that cannot be opened.
    dgm_writer archive = pack_sample(&samples[0], samples[0].before);
    memcpy(memmem(archive.data, archive.size, "any", 3), "odd", 3);
    expect_refused(text_of(&archive), "x.docx", DGM_ERR_FORMAT, "member 'mimetype': wrong checksum");
    dgm_writer_free(&archive);
}

static void bombs_are_refused(void **state)
{
    (void)state;
    enum { SIZE = 24 << 20 };
    char *blanks = malloc(SIZE + 1);
    memset(blanks, ' ', SIZE);
    blanks[SIZE] = '\0';
    const entry list[] = {{"mimetype", "x"}, {"content.xml", blanks}, {0}};
    dgm_writer archive = make_archive(list);
    expect_refused(text_of(&archive), "x.odt", DGM_ERR_FORMAT, "more than 200 times its size");
    // A directory that claims 2 GB.
    uint8_t *entry_at = memmem(archive.data, archive.size, "PK\1\2", 4);
    entry_at = memmem(entry_at + 4, (size_t)(archive.data + archive.size - entry_at) - 4, "PK\1\2", 4);
    memcpy(entry_at + 24, "\0\0\0\x80", 4);
    expect_refused(text_of(&archive), "x.odt", DGM_ERR_FORMAT, "2147483648 bytes cannot come out of");
    dgm_writer_free(&archive);
    free(blanks);
}

static void allocations_may_fail(void **state)
{
    (void)state;
    const uint64_t live = dgm_mem_live();
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i += 3) {
        dgm_writer archive = pack_sample(&samples[i], samples[i].before), out = {0};
        const uint64_t before = dgm_mem_live();
        for (uint64_t n = 1;; n++) {
            dgm_document *d = NULL;
            dgm_error err;
            dgm_mem_inject(n, 1);
            dgm_status st = dgm_document_open(&d, archive.data, archive.size, samples[i].name, NULL, &err);
            if (st == DGM_OK) st = dgm_document_put(d, 0, "x", 1, NULL, 0, &err);
            if (st == DGM_OK) st = dgm_document_write(d, put_bytes, &out, &err);
            dgm_mem_inject(0, 0);
            dgm_document_close(&d);
            dgm_writer_free(&out);
            assert_int_equal(dgm_mem_live(), before);
            if (st == DGM_OK) break;
            assert_int_equal(st, DGM_ERR_MEMORY);
        }
        dgm_writer_free(&archive);
    }
    assert_int_equal(dgm_mem_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paragraphs_are_read), cmocka_unit_test(books_are_read),
        cmocka_unit_test(pages_are_xml),       cmocka_unit_test(real_documents_stay_whole),
        cmocka_unit_test(damage_is_refused),   cmocka_unit_test(bombs_are_refused),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
