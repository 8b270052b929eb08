// SPDX-License-Identifier: MIT
// Kinds of files (src/document): what is text in them, what comes back, what is refused. Lines are translated by
// rules (tests/documents.h), not by a model.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "documents.h"
#include "failures.h"

static dgm_document_options usual(void)
{
    dgm_document_options o;
    dgm_document_options_default(&o);
    return o;
}

static void check_with(const dgm_document_options *o, const char *name, rule how, const char *file, const char *want)
{
    text_buffer out;
    dgm_error error;
    if (document_by_rule(file, strlen(file), name, o, how, &out, &error) != DGM_OK) fail_msg("%s", error.text);
    assert_string_equal(out.data, want);
    free(out.data);
}

static void check(const char *name, rule how, const char *file, const char *want)
{
    const dgm_document_options o = usual();
    check_with(&o, name, how, file, want);
}

// A file that is not read, and what is said of it.
static void refuse_with(const dgm_document_options *o, const char *name, const char *file, const char *why)
{
    dgm_document *d = NULL;
    dgm_error error = {""};
    assert_int_not_equal(dgm_document_open(&d, file, strlen(file), name, o, &error), DGM_OK);
    assert_null(d);
    if (!strstr(error.text, why)) fail_msg("'%s' does not say '%s'", error.text, why);
}

static void refuse(const char *name, const char *file, const char *why)
{
    const dgm_document_options o = usual();
    refuse_with(&o, name, file, why);
}

static void test_txt(void **state)
{
    (void)state;
    check("a.txt", RULE_CAPITALS, "one two\r\n\r\n  three \nfour", "ONE TWO\r\n\r\n  THREE \nFOUR");
    check("a.txt", RULE_CAPITALS, "\xef\xbb\xbfone\n", "\xef\xbb\xbfONE\n");
    check("nothing", RULE_CAPITALS, "12 %s\n---\n", "12 %s\n---\n");
    check("a.txt", RULE_CAPITALS, "", "");
    refuse("a.txt", "fine\n\xff\n", "line 2 is not UTF-8");
}

static void test_json(void **state)
{
    (void)state;
    check("a.json", RULE_CAPITALS, "{\"key one\": \"a \\\"b\\\"\\n\\tc\", \"n\": [1, true, \"d e\", {\"x\": \"\"}]}",
          "{\"key one\": \"A \\\"B\\\"\\n\\tC\", \"n\": [1, true, \"D E\", {\"x\": \"\"}]}");
    // A line ends within brackets: nothing is said twice.
    check("a.json", RULE_SAME, "[\"x [[c\\rd]] y\"]", "[\"x [[c d]] y\"]");
    check("a.json", RULE_SAME, "[\"x {c\\rd} %(e\\rf)s y\"]", "[\"x {c d} %(e f)s y\"]");
    check("a.json", RULE_REVERSED, "[\"one two:\\tthree four\"]", "[\"two: one\\tfour three\"]");
    check("a.json", RULE_REVERSED, "[\"Press <b class=\\\"x\\\">red button</b> now {name}\"]",
          "[\"{name} now <b class=\\\"x\\\">button red</b> Press\"]");
    check("a.arb", RULE_CAPITALS,
          "{\"a\": \"text\", \"@a\": {\"description\": \"note\", \"y\": [\"z\"]}, \"b\": \"more\"}",
          "{\"a\": \"TEXT\", \"@a\": {\"description\": \"note\", \"y\": [\"z\"]}, \"b\": \"MORE\"}");
    // What is written in ASCII stays so.
    check("a.json", RULE_REVERSED, "[\"\\u00fcber \\ud83d\\ude00 uns\"]", "[\"\\ud83d\\ude00 uns \\u00fcber\"]");
    check("a.json", RULE_REVERSED,
          "[\"\xc3\xbc"
          "ber \\u00e4\"]",
          "[\"\xc3\xa4 \xc3\xbc"
          "ber\"]");
    refuse("a.json", "{\"a\": \"b\"", "a.json");
    refuse("a.json", "{\"a\": 'b'}", "a.json");
}

static void test_icu(void **state)
{
    (void)state;
    check("a.json", RULE_CAPITALS, "[\"You have {n, plural, =0 {no files} one {# file} other {# files}}.\"]",
          "[\"{n, plural, =0 {YOU HAVE NO FILES.} one {YOU HAVE # FILE.} other {YOU HAVE # FILES.}}\"]");
    check("a.json", RULE_CAPITALS, "[\"{g, select, male {his} other {their}} {n, plural, one {cat} other {cats}}\"]",
          "[\"{g, select, male {{n, plural, one {HIS CAT} other {HIS CATS}}} other {{n, plural, one {THEIR CAT} "
          "other {THEIR "
          "CATS}}}}\"]");
    check("a.json", RULE_CAPITALS, "[\"{n, plural, one {<b>{who}</b> left} other {{n, number} left}}\"]",
          "[\"{n, plural, one {<b>{who}</b> LEFT} other {{n, number} LEFT}}\"]");
    // Tags are taken out, and their attributes stay.
    check("a.json", RULE_REVERSED, "[\"{n, plural, one {open <a href=\\\"x y\\\">my file</a>} other {more}}\"]",
          "[\"{n, plural, one {<a href=\\\"x y\\\">file my</a> open} other {more}}\"]");
    check("a.json", RULE_CAPITALS, "[\"{n, number, integer} files\"]", "[\"{n, number, integer} FILES\"]");
    check("a.json", RULE_CAPITALS, "[\"{n, plural, one {a}\"]", "[\"{N, PLURAL, ONE {a}\"]"); // no message
}

static void test_po(void **state)
{
    (void)state;
    const char *const head = "msgid \"\"\nmsgstr \"Language: de\\n\"\n\n";
    char file[1024], want[1024];
#define PO(a, b, how)                                                                                                \
    snprintf(file, sizeof file, "%s%s", head, a);                                                                    \
    snprintf(want, sizeof want, "%s%s", head, b);                                                                    \
    check("a.po", how, file, want)
    PO("msgid \"one\"\nmsgstr \"\"\n", "msgid \"one\"\nmsgstr \"ONE\"\n", RULE_CAPITALS);
    PO("msgid \"one\"\nmsgstr \"eins\"\n", "msgid \"one\"\nmsgstr \"eins\"\n", RULE_CAPITALS);
    PO("#, fuzzy\n#| msgid \"old\"\nmsgid \"one\"\nmsgstr \"x\"\n", "msgid \"one\"\nmsgstr \"ONE\"\n", RULE_CAPITALS);
    PO("#, c-format, fuzzy\nmsgid \"a %d\"\nmsgstr \"x\"\n", "#, c-format\nmsgid \"a %d\"\nmsgstr \"A %d\"\n",
       RULE_CAPITALS);
    PO("msgid \"a file\"\nmsgid_plural \"%d files\"\nmsgstr[0] \"\"\nmsgstr[1] \"\"\nmsgstr[2] \"\"\n",
       "msgid \"a file\"\nmsgid_plural \"%d files\"\nmsgstr[0] \"A FILE\"\nmsgstr[1] \"%d FILES\"\nmsgstr[2] \"%d "
       "FILES\"\n",
       RULE_CAPITALS);
    PO("msgid \"\"\n\"two \"\n\"lines\\n\"\n\"more\\n\"\nmsgstr \"\"\n\n#~ msgid \"old\"\n#~ msgstr \"\"\n",
       "msgid \"\"\n\"two \"\n\"lines\\n\"\n\"more\\n\"\nmsgstr \"\"\n\"TWO LINES\\n\"\n\"MORE\\n\"\n\n#~ msgid "
       "\"old\"\n#~ msgstr "
       "\"\"\n",
       RULE_CAPITALS);
    // Arguments that changed places are numbered where they may be, else the entry stays empty.
    PO("#, c-format\nmsgid \"%s has %d\"\nmsgstr \"\"\n",
       "#, c-format\nmsgid \"%s has %d\"\nmsgstr \"%2$d has %1$s\"\n", RULE_REVERSED);
    PO("#, python-format\nmsgid \"%s has %d\"\nmsgstr \"\"\n", "#, python-format\nmsgid \"%s has %d\"\nmsgstr \"\"\n",
       RULE_REVERSED);
    PO("#, python-format\nmsgid \"%(a)s has %(b)d\"\nmsgstr \"\"\n",
       "#, python-format\nmsgid \"%(a)s has %(b)d\"\nmsgstr \"%(b)d has %(a)s\"\n", RULE_REVERSED);
#undef PO
    dgm_document_options all = usual();
    all.all = 1;
    check_with(&all, "a.po", RULE_CAPITALS, "msgid \"one\"\nmsgstr \"eins\"\n", "msgid \"one\"\nmsgstr \"ONE\"\n");
    refuse("a.po", "msgid \"one\nmsgstr \"\"\n", "line 1: a string without its closing quote");
    refuse("a.po", "msgid \"one\"\n", "no msgstr");
    refuse("a.po", "msgid \"one\"\nmsgstr \"\"\nnonsense\n", "line 3");
}

static void test_subtitles(void **state)
{
    (void)state;
    check("a.srt", RULE_CAPITALS,
          "1\n00:00:01,000 --> 00:00:02,000\none <i>two</i>\n\n2\n00:00:03,000 --> 00:00:04,500 X1:1\n- a\n- b\n",
          "1\n00:00:01,000 --> 00:00:02,000\nONE <i>TWO</i>\n\n2\n00:00:03,000 --> 00:00:04,500 X1:1\n- A\n- B\n");
    dgm_document_options narrow = usual();
    narrow.width = 12;
    check_with(&narrow, "a.srt", RULE_CAPITALS,
               "1\r\n00:00:01,000 --> 00:00:02,000\r\none two <i>three\r\nfour</i> five\r\n",
               "1\r\n00:00:01,000 --> 00:00:02,000\r\nONE TWO\r\n<i>THREE FOUR</i>\r\nFIVE\r\n");
    check("a.vtt", RULE_CAPITALS, "WEBVTT\n\nNOTE a\n\nname\n00:01.000 --> 00:02.000 line:0\n<v Ann>x &amp; y</v>\n",
          "WEBVTT\n\nNOTE a\n\nname\n00:01.000 --> 00:02.000 line:0\n<v Ann>X &amp; Y</v>\n");
    refuse("a.srt", "1\n00:00:01 --> 00:00:02\nx\n", "line 2");
    refuse("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nx\n\n2\n", "line 5");
    refuse("a.vtt", "00:01.000 --> 00:02.000\nx\n", "WEBVTT");
}

static void test_properties(void **state)
{
    (void)state;
    check("a.properties", RULE_CAPITALS, "# no\n! no\na.b = one \\\n   two\nc:three {0}\nd four\ne=\\u0061\\tb\nf=\n",
          "# no\n! no\na.b = ONE TWO\nc:THREE {0}\nd FOUR\ne=A\\tB\nf=\n");
    check("a.properties", RULE_REVERSED, "a=\\u00e4 b\n", "a=b \\u00e4\n");
}

static void test_tables(void **state)
{
    (void)state;
    dgm_document_options o = usual();
    o.columns = "text";
    check_with(&o, "a.csv", RULE_CAPITALS, "id,text\n1,\"a, \"\"b\"\"\"\n2,c\n",
               "id,text\n1,\"A, \"\"B\"\"\"\n2,C\n");
    o.columns = "2-3";
    check_with(&o, "a.tsv", RULE_CAPITALS, "a\tb\tc\td\r\ne\tf\n", "a\tB\tC\td\r\ne\tF\n");
    o.columns = "1";
    check_with(&o, "a.csv", RULE_CAPITALS, "a b;c\n", "A B;c\n");
    refuse_with(&o, "a.csv", "\"a\nb", "a quote is not closed");
    refuse_with(&o, "a.csv", "\"a\"b,c\n", "behind a closing quote");
    o.columns = "x";
    refuse_with(&o, "a.csv", "a,b\n", "no column 'x'");
    o.columns = "0";
    refuse_with(&o, "a.csv", "a,b\n", "is no column");
    refuse("a.csv", "a,b\n", "requires --column");
}

static void test_yaml(void **state)
{
    (void)state;
    check("a.yaml", RULE_CAPITALS,
          "en:\n  a: one two # no\n  b: 'it''s'\n  c: \"d\\ne\"\n  n: 12\n  t: yes\n  l: [x y, {k: z}]\n",
          "en:\n  a: ONE TWO # no\n  b: 'IT''S'\n  c: \"D\\nE\"\n  n: 12\n  t: yes\n  l: [X Y, {k: Z}]\n");
    check("a.yml", RULE_CAPITALS, "a: |\n  one\n    two\n\n  three\nb: >\n  four\n  five\n\n  six\nc: d\n",
          "a: |\n  ONE\n    TWO\n\n  THREE\nb: >\n  FOUR FIVE\n\n  SIX\nc: D\n");
    check("a.yaml", RULE_REVERSED, "k\xc3\xa4se: a \xc3\xbc\nb: c d\n", "k\xc3\xa4se: \xc3\xbc a\nb: d c\n");
}

static void test_yaml_quotes(void **state)
{
    (void)state;
    check("a.yaml", RULE_REVERSED, "a: it note{x}\nb: &anchor text\nc: !t text\n",
          "a: \"note{x} it\"\nb: &anchor text\nc: !t text\n");
    check("a.yaml", RULE_REVERSED, "a: one - two\nb: x yes\n", "a: two - one\nb: yes x\n");
    refuse("a.yaml", "a: [b\n", "no YAML");
    refuse("a.yaml", "a: \"b\n", "no YAML");
}

static void test_html(void **state)
{
    (void)state;
    const char *const feeds = "<p>x {c\fd} y</p><p>%(e\vf)s {\f\f} z</p>"; // a line has spaces for them
    check("a.html", RULE_SAME, feeds, feeds);
    check("a.html", RULE_REVERSED, "<p>Press <b>red <i>button</i></b> &amp; wait<br>one two</p>",
          "<p>wait &amp; <b><i>button</i> red</b> Press<br>two one</p>");
    check("a.html", RULE_CAPITALS,
          "<!-- no --><p>a <!-- b --> c <img alt=\"d e\" src=f> <span title='g'>h</span></p>",
          "<!-- no --><p>A <!-- b --> C <img alt=\"D E\" src=f> <span title='G'>H</span></p>");
    check("a.html", RULE_CAPITALS,
          "<script>a < b</script><style>c</style><pre>d</pre><p translate=no>e</p><p class=\"x notranslate\">f</p>g",
          "<script>a < b</script><style>c</style><pre>d</pre><p translate=no>e</p><p class=\"x notranslate\">f</p>G");
    check("a.html", RULE_REVERSED, "<p>run <code>make  all</code> <span translate=\"no\">Ann Lee</span> now",
          "<p>now <span translate=\"no\">Ann Lee</span> <code>make  all</code> run");
    check("a.html", RULE_CAPITALS, "<ul><li>a<li>b <b>c</ul>1 &lt; x &eacute;&unknown;&nbsp;y",
          "<ul><li>A<li>B <b>C</ul>1 &lt; X &#233;&unknown;&nbsp;Y");
    check(
        "a.html", RULE_CAPITALS,
        "<meta charset=\"utf-8\"><title>a</title>&eacute;<textarea>b</textarea><input placeholder=\"c\" value=\"d\">",
        "<meta charset=\"utf-8\"><title>A</title>&eacute;<textarea>b</textarea><input placeholder=\"C\" "
        "value=\"d\">");
    check("a.htm", RULE_CAPITALS, "<table><tr>a<td>b</table><p>c</b><p><i>d",
          "<table><tr>A<td>B</table><p>C</b><p><i>D");
}

static void test_html_nesting(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    char *page = malloc(5 * DEEP + 1);
    for (int i = 0; i < DEEP; i++) memcpy(page + 5 * i, "<div>", 5);
    page[5 * DEEP] = 0;
    refuse("a.html", page, "nested deeper");
    free(page);
}

static void test_md(void **state)
{
    (void)state;
    check("a.md", RULE_REVERSED, "---\nt: x\n---\n# One *two*\n\nPress **red [button](x.html \"t\")** now.\n",
          "---\nt: x\n---\n# *two* One\n\nnow. **[button](x.html \"t\") red** Press\n");
    check("a.md", RULE_CAPITALS,
          "- a\n- [x] b `c d`\n\n> e\n> f\n\n| g | h |\n|---|---|\n| i | `j` |\n\n    code\n\n```\nk\n```\n",
          "- A\n- [x] B `c d`\n\n> E\n> F\n\n| G | H |\n|---|---|\n| I | `j` |\n\n    code\n\n```\nk\n```\n");
    check("a.md", RULE_CAPITALS,
          "a\\*b ![alt text](i.png) <https://x.org> <b>c</b>  \nd[^1]\n\n[ref]: http://x.org\n<div>\nno\n</div>\n",
          "A\\*B ![ALT TEXT](i.png) <https://x.org> <b>C</b>  \nD[^1]\n\n[ref]: http://x.org\n<div>\nno\n</div>\n");
    check("a.md", RULE_REVERSED, "***a b*** ~~c~~\n", "~~c~~ ***b a***\n");
    check("a.md", RULE_REVERSED, "word 1.\n", "1\\. word\n"); // not a list
    check("a.md", RULE_CAPITALS, "Title\n=====\n\nlonger line here\nand one\n",
          "TITLE\n=====\n\nLONGER LINE HERE\nAND ONE\n");
    // Footnotes: their marks stay; one that is a single word is an address to Markdown, and stays.
    check("a.md", RULE_CAPITALS,
          "one[^a] two.[^b-c]\n\n[^a]: see *this*.\n[^b-c]: and that [^a]\n\nx[^w] y\n\n[^w]: w\n",
          "ONE[^a] TWO.[^b-c]\n\n[^a]: SEE *THIS*.\n[^b-c]: AND THAT [^a]\n\nX[^w] Y\n\n[^w]: w\n");
    check("a.html", RULE_CAPITALS, "<p>a <img src=x></p><p><img src=y> <img src=z> b</p><p><img src=v>c<img src=w></p>",
          "<p>A <img src=x></p><p><img src=y> <img src=z> B</p><p><img src=v>C<img src=w></p>");
    check("a.md", RULE_REVERSED, "[^1]: a b\n", "[^1]: b a\n");
    check("a.md", RULE_CAPITALS, "[^1]:\n", "[^1]:\n");
    check("a.md", RULE_CAPITALS, "[^ a] \\[^b] [^]\n", "[^ A] \\[^B] [^]\n");
}

// ---- what all have in common ----------------------------------------------------------------------

// A translation that damages what must stay; it is put right.
static void restored(const char *source, const char *translation, const char *links_text, const char *want)
{
    char file[512];
    dgm_document *d = NULL;
    dgm_link links[32];
    size_t count = 0;
    int used = 0;
    text_buffer out = {NULL, 0};
    snprintf(file, sizeof file, "[\"%s\"]", source);
    for (; sscanf(links_text, " %d-%d%n", &links[count].source, &links[count].target, &used) == 2; links_text += used)
        count++;
    assert_int_equal(dgm_document_open(&d, file, strlen(file), "a.json", NULL, NULL), DGM_OK);
    assert_int_equal(dgm_document_put(d, 0, translation, strlen(translation), links, count, NULL), DGM_OK);
    assert_int_equal(dgm_document_write(d, take_bytes, &out, NULL), DGM_OK);
    dgm_document_close(&d);
    snprintf(file, sizeof file, "[\"%s\"]", want);
    assert_string_equal(out.data, file);
    free(out.data);
}

static void test_placeholders(void **state)
{
    (void)state;
    const char *const files = "{count} files of <b>{total}</b> were copied.", *const same = "0-0 1-1 2-2 3-3 4-4 5-5";
    const char *const right = "{count} Dateien von <b>{total}</b> wurden kopiert.";
    restored(files, "{count} Dateien von {total} wurden kopiert.", same, right);
    restored(files, "{count} Dateien von wurden kopiert.", "0-0 1-1 2-2 4-3 5-4", right); // lost
    restored(files, "{count} Dateien von {Gesamt} wurden kopiert.", same, right);         // damaged
    restored(files, "{count} Dateien von {total} {total} wurden kopiert.", "0-0 1-1 2-2 3-3 3-4 4-5 5-6",
             right); // doubled
    restored("Hello %s, use $x and ${y} :smile:", "Hallo, $x und ${y} nutzen", "0-0 3-1 4-2 5-3 2-4",
             "Hallo, %s $x und ${y} nutzen :smile:");
    restored("{{ user.name }} logged in", "angemeldet", "1-0 2-0", "{{ user.name }} angemeldet");
    restored("save 100% of %d", "100% von %d sparen", "1-0 2-1 3-2 0-3", "100% von %d sparen");
    restored("file {n}", "Datei{n}", "0-0 1-0", "Datei {n}");
    restored("copied %d files", "%d-Dateien kopiert", "0-1 1-0 2-0", "%d Dateien kopiert"); // a number
    restored("the %s file", "die %s-Datei", "0-0 1-1 2-1", "die %s-Datei");                 // a name
    restored("hi :smile: you", "hallo du :smile: euch:mile:", "0-0 2-1", "hallo du :smile: euch"); // invented
    restored("x < y", "x< y", "0-0 1-0 2-1", "x < y");
}

// Signs that are the same everywhere are not shown to the model, and stand at their words afterwards.
static void test_signs(void **state)
{
    (void)state;
    restored("\\u00a9 2020 by us", "2020 von uns", "0-0 1-1 2-2", "\\u00a9 2020 von uns");
    restored("our Tool\\u2122 is new", "neu ist unser Werkzeug", "0-2 1-3 2-1 3-0", "neu ist unser Werkzeug\\u2122");
    restored("I like it \\ud83d\\ude00", "Ich mag es", "0-0 1-1 2-2", "Ich mag es \\ud83d\\ude00");
    restored("a \\ud83d\\udc68\\u200d\\ud83d\\udc69 b", "eins zwei", "0-0 1-1",
             "eins \\ud83d\\udc68\\u200d\\ud83d\\udc69 zwei");
    restored("File \\u2192 Save", "Datei Speichern", "0-0 2-1", "Datei \\u2192 Speichern"); // shown, and lost
    // A space that ties words together takes the place of the one that is there.
    restored("go 10\\u00a0km now", "jetzt 10 km gehen", "0-3 1-1 2-2 3-0", "jetzt 10\\u00a0km gehen");
    restored("go 10\\u00a0km", "Kilometer gehen", "0-1 1-0 2-0", "Kilometer\\u00a0gehen");
    restored("allons\\u00a0!", "los!", "0-0 1-0", "los!"); // a habit of French
}

static void test_equal_lines(void **state)
{
    (void)state;
    const char *const file = "[\"one\", \"one\", \"<b>one</b>\", \"two\"]";
    dgm_document_options o = usual();
    dgm_document *d = NULL;
    assert_int_equal(dgm_document_open(&d, file, strlen(file), "a.json", &o, NULL), DGM_OK);
    assert_int_equal(dgm_document_describe(d)->lines, 2);
    assert_int_equal(dgm_document_describe(d)->places, 4);
    assert_int_equal(dgm_document_describe(d)->tags, 2);
    dgm_document_close(&d);
    o.no_memory = 1;
    assert_int_equal(dgm_document_open(&d, file, strlen(file), "a.json", &o, NULL), DGM_OK);
    assert_int_equal(dgm_document_describe(d)->lines, 4);
    dgm_document_close(&d);
    check_with(&o, "a.json", RULE_CAPITALS, file, "[\"ONE\", \"ONE\", \"<b>ONE</b>\", \"TWO\"]");
    check("a.json", RULE_CAPITALS, file, "[\"ONE\", \"ONE\", \"<b>ONE</b>\", \"TWO\"]");
}

// What never comes back stays as it was.
static void test_missing_lines(void **state)
{
    (void)state;
    const char *const file = "<p>one <b>{x}</b> two<br>three <code>a b</code></p>";
    dgm_document *d = NULL;
    text_buffer out = {NULL, 0};
    assert_int_equal(dgm_document_open(&d, file, strlen(file), "a.html", NULL, NULL), DGM_OK);
    assert_int_equal(dgm_document_put(d, 1, "drei X1", 7, NULL, 0, NULL), DGM_OK);
    assert_int_equal(dgm_document_put(d, 2, "x", 1, NULL, 0, NULL), DGM_ERR_ARGUMENT);
    assert_null(dgm_document_line(d, 2, NULL));
    assert_int_equal(dgm_document_write(d, take_bytes, &out, NULL), DGM_OK);
    assert_string_equal(out.data, "<p>one <b>{x}</b> two<br>drei <code>a b</code></p>");
    free(out.data);
    dgm_document_close(&d);
}

static void test_formats(void **state)
{
    (void)state;
    assert_string_equal(dgm_document_format_of("a/b.c/page.HTML", NULL, 0)->name, "html");
    assert_null(dgm_document_format_of("a.html/page", NULL, 0));
    assert_string_equal(dgm_document_format_of(NULL, " <!DOCTYPE HTML>", 16)->name, "html");
    dgm_document_options o = usual();
    o.format = "nonsense";
    refuse_with(&o, "a.html", "x", "there is no format 'nonsense': it is one of txt, ");
    o.format = "txt";
    check_with(&o, "a.html", RULE_CAPITALS, "<b>x</b>", "<B>X</B>");
    for (size_t i = 0; dgm_document_format_at(i); i++)
        assert_int_equal(dgm_document_format_at(i)->size, sizeof(dgm_document_format));
}

static dgm_status whole_way(const char *file, const char *name)
{
    dgm_document *d = NULL;
    text_buffer out = {NULL, 0};
    dgm_document_options o = usual();
    o.columns = "1";
    dgm_status st = dgm_document_open(&d, file, strlen(file), name, &o, NULL);
    if (st == DGM_OK) st = translate_by_rule(d, RULE_REVERSED, NULL);
    if (st == DGM_OK) st = dgm_document_write(d, take_bytes, &out, NULL);
    dgm_document_close(&d);
    free(out.data);
    return st;
}

static void test_no_memory(void **state)
{
    (void)state;
    ALLOCATIONS_FAIL(whole_way("<p title=\"b c\">a <b>{x}</b> <img alt=\"d\"> <code>e f</code>", "a.html"));
    ALLOCATIONS_FAIL(whole_way("# a *b* ![c](d)\n", "a.md"));
    ALLOCATIONS_FAIL(whole_way("[\"{n, plural, one {a} other {b <i>c</i>}}\", \"<b>x</b> y\"]", "a.json"));
    ALLOCATIONS_FAIL(whole_way("#, fuzzy\nmsgid \"a\"\nmsgstr \"\"\n", "a.po"));
    ALLOCATIONS_FAIL(whole_way("a: b\n", "a.yaml"));
    ALLOCATIONS_FAIL(whole_way("1\n00:00:01,000 --> 00:00:02,000\nx\n", "a.srt"));
    ALLOCATIONS_FAIL(whole_way("a,b\n", "a.csv"));
}

// A file is there as a whole or not at all: what stood there before stays until then.
static void test_save(void **state)
{
    (void)state;
    static const char page[] = "<p>Good <b>morning</b>.</p>\n";
    char folder[] = "/tmp/dragoman-save-XXXXXX", path[64], missing[64], read[64] = "";
    dgm_document *d = NULL;
    dgm_error error;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/page.html", folder);
    snprintf(missing, sizeof missing, "%s/no/page.html", folder);
    assert_int_equal(dgm_document_open(&d, page, strlen(page), "page.html", NULL, &error), DGM_OK);
    assert_int_equal(translate_by_rule(d, RULE_CAPITALS, &error), DGM_OK);
    assert_int_equal(dgm_document_save(d, missing, &error), DGM_ERR_IO);
    assert_non_null(strstr(error.text, "no/page.html"));
    assert_int_equal(dgm_document_save(d, NULL, &error), DGM_ERR_ARGUMENT);
    for (int i = 0; i < 2; i++) { // also over the one that is there
        assert_int_equal(dgm_document_save(d, path, &error), DGM_OK);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        assert_int_equal(fread(read, 1, sizeof read, f), strlen(page));
        fclose(f);
        assert_memory_equal(read, "<p>GOOD <b>MORNING</b>.</p>\n", strlen(page));
    }
    dgm_document_close(&d);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); // nothing else is left
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_txt),           cmocka_unit_test(test_json),
        cmocka_unit_test(test_icu),           cmocka_unit_test(test_po),
        cmocka_unit_test(test_subtitles),     cmocka_unit_test(test_properties),
        cmocka_unit_test(test_tables),        cmocka_unit_test(test_yaml),
        cmocka_unit_test(test_yaml_quotes),   cmocka_unit_test(test_html),
        cmocka_unit_test(test_html_nesting),  cmocka_unit_test(test_md),
        cmocka_unit_test(test_placeholders), cmocka_unit_test(test_signs),
        cmocka_unit_test(test_equal_lines),
        cmocka_unit_test(test_missing_lines), cmocka_unit_test(test_formats),
        cmocka_unit_test(test_save),          cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
