// SPDX-License-Identifier: MIT
// Lines of constraints, and glossaries: what is read from TSV, CSV and TBX, what is refused and with
// which line number, what is found in lines, and allocation failures.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "base/mem.h"
#include "constraint/demands.h"
#include "constraint/glossary.h"
#include "text/language_code.h"
#include "text/splice.h"
#include "dragoman/text.h"

// ---- demands -----------------------------------------------------------------------------------

// "kind[source]variant/variant;..." of a line.
static void show(const dgm_demands *d, char *out)
{
    out[0] = 0;
    for (size_t i = 0; i < d->count; i++) {
        const dgm_demand *x = &d->items[i];
        const dgm_text source = dgm_demands_text(d, x->source);
        sprintf(out + strlen(out), "%c[%.*s]", "T!^$"[x->kind], (int)source.size, source.data);
        for (size_t k = 0; k < x->count; k++) {
            const dgm_text v = dgm_demands_text(d, d->variants[x->first + k]);
            sprintf(out + strlen(out), "%s%.*s", k ? "/" : "", (int)v.size, v.data);
        }
        strcat(out, ";");
    }
}

static void lines_of_demands(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"\t \t", ""},
        {"Haus", "T[]Haus;"},
        {"house => Haus", "T[house]Haus;"},
        {" the house=>das Haus | ein Haus\t! Hütte|Bude", "T[the house]das Haus/ein Haus;![]Hütte/Bude;"},
        {"^ Das\t$ .", "^[]Das;$[].;"},
        {"a \\| b \\=> c", "T[]a | b => c;"},
        {"\\!x\t\\^y\t\\$z\t\\\\", "T[]!x;T[]^y;T[]$z;T[]\\;"},
        {"tab\\there", "T[]tab\there;"},
        {"a = b > c", "T[]a = b > c;"},
    };
    static const char *const bad[][2] = {
        {"a => ", "constraint 1: no target after '=>'"},
        {"ok\t=> b", "constraint 2: no source before '=>'"},
        {"a => b => c", "constraint 1: '=>' occurs twice"},
        {"a | b => c", "constraint 1: a term has only one source, before '=>'"},
        {"a |", "constraint 1: an empty variant"},
        {"x\t\t!", "constraint 3: its text is missing"},
        {"! a => b", "constraint 1: '=>' is not allowed in '!' constraints"},
        {"^ a | b", "constraint 1: a translation has only one beginning"},
        {"$ a\t$ b", "constraint 2: the end of the translation is given twice"},
        {"a\\", "constraint 1: nothing follows the last backslash"},
    };
    dgm_demands d = {0};
    dgm_error err;
    char text[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (dgm_demands_parse(&d, dgm_text_of(cases[i][0]), &err) != DGM_OK)
            fail_msg("'%s': %s", cases[i][0], err.text);
        show(&d, text);
        assert_string_equal(text, cases[i][1]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(dgm_demands_parse(&d, dgm_text_of(bad[i][0]), &err), DGM_ERR_TEXT);
        assert_string_equal(err.text, bad[i][1]);
        assert_int_equal(d.count, 0);
    }
    dgm_demands_free(&d);
}

// ---- glossaries --------------------------------------------------------------------------------

typedef dgm_status (*parser)(dgm_glossary *, dgm_text, const char *, const char *, dgm_error *);

// "source=variant/variant;..." in the order of the file.
static dgm_status parse(parser read, const char *data, char *out, dgm_error *err)
{
    dgm_glossary *g;
    assert_int_equal(dgm_glossary_open(&g, err), DGM_OK);
    const dgm_status st = read(g, dgm_text_of(data), "en", "de-DE", err);
    out[0] = 0;
    for (int32_t i = 0; i < (int32_t)dgm_glossary_count(g); i++) {
        const dgm_text s = dgm_glossary_source(g, i);
        sprintf(out + strlen(out), "%.*s=", (int)s.size, s.data);
        for (size_t k = 0; k < dgm_glossary_variant_count(g, i); k++) {
            const dgm_text v = dgm_glossary_variant(g, i, k);
            sprintf(out + strlen(out), "%s%.*s", k ? "/" : "", (int)v.size, v.data);
        }
        strcat(out, ";");
    }
    dgm_glossary_close(&g);
    return st;
}

typedef struct glossary_case {
    parser read;
    const char *data, *want; // what is read, or the message
    dgm_status status;
} glossary_case;

#define TBX(body) "<?xml version='1.0'?>\n<!DOCTYPE martif [<!ENTITY x 'y'>]>\n<martif>" body "</martif>"
#define LANG(code, terms) "<langSet xml:lang='" code "'>" terms "</langSet>"
#define TERM(text) "<tig><term>" text "</term></tig>"

static const glossary_case cases[] = {
    {dgm_glossary_tsv, "", "", DGM_OK},
    {dgm_glossary_tsv, "house\tHaus\n", "house=Haus;", DGM_OK},
    {dgm_glossary_tsv, "# terms\nhouse\tHaus | Gebäude\tHeim\r\n\n red car \t rotes Auto\nhouse\tBau",
     "house=Haus/Gebäude/Heim/Bau;red car=rotes Auto;", DGM_OK},
    {dgm_glossary_tsv, "de\ten\tnote\nHaus\thouse\tx\n", "house=Haus;", DGM_OK},
    {dgm_glossary_tsv, "a\tb\nsource\ttarget\n", "a=b;source=target;", DGM_OK},
    {dgm_glossary_tsv, "a\tb\nonly\n",
     "line 2: one column, where a source term and its target were expected", DGM_ERR_FORMAT},
    {dgm_glossary_tsv, "a\tb\n#\n\tb\n", "line 3: the source term is empty", DGM_ERR_FORMAT},
    {dgm_glossary_tsv, "a\t | \n", "line 1: 'a' has no target", DGM_ERR_FORMAT},
    {dgm_glossary_tsv, "a\tb\nc\t\xff\n", "line 2: invalid UTF-8", DGM_ERR_FORMAT},
    {dgm_glossary_tsv, "target\tnote\tsource\nx\n",
     "line 2: one column, where a source term and its target were expected", DGM_ERR_FORMAT},
    {dgm_glossary_tsv, "target\tnote\tsource\nx\ty\n",
     "line 2: 2 columns, the source is in column 3", DGM_ERR_FORMAT},
    {dgm_glossary_tsv, "house    Haus\n",
     "line 1: one column, where a source term and its target were expected: columns are separated by tabs, not spaces",
     DGM_ERR_FORMAT},
    {dgm_glossary_csv, "house;Haus\n",
     "line 1: one column, where a source term and its target were expected: columns are separated by commas, not "
     "semicolons",
     DGM_ERR_FORMAT},
    {dgm_glossary_csv, "Source,Target\nhouse,Haus\n", "house=Haus;", DGM_OK},
    {dgm_glossary_csv, "\"a, b\",\"say \"\"x\"\"\"\r\nc,\"two\nlines\"\n#x,y\n",
     "a, b=say \"x\";c=two lines;#x=y;", DGM_OK},
    {dgm_glossary_csv, "a,b\n\"c,d\n\n", "line 2: a quote is never closed", DGM_ERR_FORMAT},
    {dgm_glossary_csv, "a,\"b\nc\"\nd,\"e\" f\n", "line 3: text behind a closing quote",
     DGM_ERR_FORMAT},
    {dgm_glossary_tbx,
     TBX("<termEntry>" LANG("en-US", TERM("house") TERM("home")) LANG(
         "DE", TERM("Haus") TERM("Heim &amp; H&#246;f")) LANG("fr", TERM("maison")) "</termEntry>"),
     "house=Haus/Heim & Höf;home=Haus/Heim & Höf;", DGM_OK},
    {dgm_glossary_tbx,
     "<tbx:tbx><conceptEntry><langSec xml:lang=\"en\"><termSec><term>car</term></termSec></langSec>"
     "<langSec xml:lang=\"de\"><!-- new --><termSec><term><hi>A</hi>uto</term></termSec><termSec>"
     "<term>Wagen</term><termNote type='administrativeStatus'>deprecatedTerm-admn-sts</termNote>"
     "</termSec><termSec><term><![CDATA[KFZ]]></term></termSec></langSec></conceptEntry></tbx:tbx>",
     "car=Auto/KFZ;", DGM_OK},
    {dgm_glossary_tbx, TBX("<termEntry>" LANG("en", TERM("a")) "</termEntry>"),
     "no concept has terms in 'en' and 'de-DE'", DGM_ERR_UNSUPPORTED},
    {dgm_glossary_tbx, "<a>\n<b>\n</a>", "line 3: </a> closes no open element", DGM_ERR_FORMAT},
    {dgm_glossary_tbx, "<a>\n<b/>\n", "line 3: <a> is never closed", DGM_ERR_FORMAT},
    {dgm_glossary_tbx, "<a>\n&nbsp;</a>", "line 2: unknown entity '&nbsp;'", DGM_ERR_FORMAT},
    {dgm_glossary_tbx, "<a x=1></a>", "line 1: an attribute's value needs quotes", DGM_ERR_FORMAT},
    {dgm_glossary_tbx, "<a>\n\n<langSet></langSet></a>",
     "line 3: a language section without xml:lang", DGM_ERR_FORMAT},
    {dgm_glossary_tbx,
     TBX("<termEntry>" LANG("en", "<term>two words\n<termEntry>x</termEntry></term>") "</termEntry>"),
     "line 4: an entry inside a term", DGM_ERR_FORMAT},
    {dgm_glossary_tbx, "<a>\n<!-- x", "line 2: a comment, an instruction or the document type is never closed",
     DGM_ERR_FORMAT},
    {dgm_glossary_tbx, "<a>\n\xc3</a>", "line 2: invalid UTF-8", DGM_ERR_FORMAT},
    {dgm_glossary_tbx, "<a>plain text & more</a>", "line 1: '&' begins no entity", DGM_ERR_FORMAT},
    {dgm_glossary_tbx, "plain text & more", "line 1: no well-formed XML: syntax error", DGM_ERR_FORMAT},
    {dgm_glossary_tbx, TBX("\n&x;"), "line 4: unknown entity '&x;'", DGM_ERR_FORMAT},
};

static void files_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        dgm_error err = {{0}};
        const dgm_status st = parse(cases[i].read, cases[i].data, text, &err);
        if (st != cases[i].status) fail_msg("'%s': %d, %s", cases[i].data, st, err.text);
        assert_string_equal(st == DGM_OK ? text : err.text, cases[i].want);
    }
}

static void terms_are_found(void **state)
{
    (void)state;
    static const char *const lines[][2] = {
        {"", ""},
        {"The house is a house.", "house house "},
        {"House and home", "house "},
        {"HOUSE houses greenhouse house-boat", "house "},
        {"the New York City hall, New York", "New York City,New York,"},
        {"new york", ""},
        {"(house)", "house "},
        {"\xe5\xae\xb6\xe5\xb1\x8b\xe3\x81\xae", "\xe5\xae\xb6 "},
        {"Étage 5", "étage "},
        {"C++ or C", "C++,"},
    };
    static const char *const terms[] = {"house", "New York City", "New York", "\xe5\xae\xb6",
                                        "étage", "C++"};
    dgm_glossary *g;
    dgm_error err;
    assert_int_equal(dgm_glossary_open(&g, &err), DGM_OK);
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        assert_int_equal(dgm_glossary_add(g, dgm_text_of(terms[i]), dgm_text_of("x"), &err), DGM_OK);
    for (int i = 0; i < 2000; i++) { // the table grows; none of these occurs
        char word[32];
        const int n = snprintf(word, sizeof word, "New Term%d", i);
        assert_int_equal(
            dgm_glossary_add(g, (dgm_text){word, (size_t)n}, dgm_text_of("y"), &err), DGM_OK);
    }
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[256] = "", want[256] = "";
        dgm_glossary_hit hit = {0};
        for (const char *c = lines[i][1]; *c; c++) // a space or a comma ends a term
            strncat(want, *c == ' ' && !strchr(lines[i][1], ',') ? "," : (char[]){*c, 0}, 2);
        while (dgm_glossary_find(g, dgm_text_of(lines[i][0]), &hit)) {
            const dgm_text s = dgm_glossary_source(g, hit.entry);
            sprintf(text + strlen(text), "%.*s,", (int)s.size, s.data);
        }
        assert_string_equal(text, want);
    }
    dgm_glossary_close(&g);
    assert_true(dgm_language_agrees(dgm_text_of("en"), dgm_text_of("EN_us")));
    assert_false(dgm_language_agrees(dgm_text_of("pt-BR"), dgm_text_of("pt-PT")));
    assert_false(dgm_language_agrees(dgm_text_of("e"), dgm_text_of("en")));
}

static uint32_t next_number(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

// Random terms of few words against all of them compared at every place: from left to right the longest, of those as
// long the first.
static void longest_terms_win(void **state)
{
    (void)state;
    static const char *const bits[] = {"a", "A", "b", " ", " ", "-", "ab", "\xc3\xa9", "\xe5\xae\xb6", "Ab"};
    uint64_t seed = 7;
    for (int round = 0; round < 300; round++) {
        char terms[40][32], line[128] = "";
        dgm_glossary *g;
        assert_int_equal(dgm_glossary_open(&g, NULL), DGM_OK);
        for (int i = 0; i < 40; i++) {
            terms[i][0] = 0;
            for (int k = 0; k < 1 + i % 6; k++) strcat(terms[i], bits[next_number(&seed) % 10]);
            assert_int_equal(dgm_glossary_add(g, dgm_text_of(terms[i]), dgm_text_of("x"), NULL), DGM_OK);
        }
        for (int k = 0; k < 30; k++) strcat(line, bits[next_number(&seed) % 10]);
        const dgm_text text = dgm_text_of(line);
        dgm_glossary_hit hit = {0};
        size_t passed = 0;
        while (dgm_glossary_find(g, text, &hit)) {
            assert_true(hit.begin >= passed && hit.end > hit.begin && hit.next == hit.end);
            const dgm_text found = dgm_glossary_source(g, hit.entry);
            assert_int_equal(dgm_term_at(text, hit.begin, found), hit.end - hit.begin);
            for (int32_t i = 0; i < (int32_t)dgm_glossary_count(g); i++) {
                const dgm_text other = dgm_glossary_source(g, i);
                for (size_t at = passed; at < hit.begin; at++) // none was passed over
                    assert_int_equal(dgm_term_at(text, at, other), 0);
                if (dgm_term_at(text, hit.begin, other))
                    assert_true(other.size < found.size || (other.size == found.size && i >= hit.entry));
            }
            passed = hit.end;
        }
        dgm_glossary_close(&g);
    }
}

// What costs the square of a glossary would take minutes.
static void large_glossaries(void **state)
{
    (void)state;
    enum { MANY = 300000 };
    const struct rlimit seconds = {60, 90};
    struct rlimit before;
    dgm_glossary *g;
    char word[32];
    getrlimit(RLIMIT_CPU, &before);
    setrlimit(RLIMIT_CPU, &seconds); // of the whole program: SIGXCPU
    assert_int_equal(dgm_glossary_open(&g, NULL), DGM_OK);
    for (int i = 0; i < MANY; i++) { // all begin with the same words
        const int n = snprintf(word, sizeof word, "the house of %d", i);
        assert_int_equal(dgm_glossary_add(g, (dgm_text){word, (size_t)n}, dgm_text_of("x"), NULL), DGM_OK);
    }
    for (int i = 0; i < MANY; i++) { // all have the same source; each comes twice
        const int n = snprintf(word, sizeof word, "Haus%d", i / 2);
        assert_int_equal(dgm_glossary_add(g, dgm_text_of("house"), (dgm_text){word, (size_t)n}, NULL), DGM_OK);
    }
    assert_int_equal(dgm_glossary_count(g), MANY + 1);
    assert_int_equal(dgm_glossary_variant_count(g, MANY), MANY / 2);
    for (size_t i = 0; i < MANY / 2; i++) {
        const dgm_text v = dgm_glossary_variant(g, MANY, i);
        const int n = snprintf(word, sizeof word, "Haus%zu", i);
        assert_true(v.size == (size_t)n && memcmp(v.data, word, v.size) == 0);
    }
    dgm_writer line = {0};
    for (int i = 0; i < MANY; i++) dgm_write_text(&line, "the house of ");
    dgm_write_text(&line, "299999");
    dgm_glossary_hit hit = {0};
    size_t found = 0;
    int32_t last = -1;
    while (dgm_glossary_find(g, (dgm_text){(const char *)line.data, line.size}, &hit)) found++, last = hit.entry;
    assert_int_equal(found, MANY);
    assert_int_equal(last, MANY - 1);
    dgm_writer_free(&line);
    dgm_glossary_close(&g);
    setrlimit(RLIMIT_CPU, &before);
}

static void allocations_may_fail(void **state)
{
    (void)state;
    const uint64_t live = dgm_mem_live();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint64_t n = 1;; n++) {
            dgm_glossary *g;
            dgm_error err;
            assert_int_equal(dgm_glossary_open(&g, &err), DGM_OK);
            dgm_mem_inject(n, 1);
            const dgm_status st =
                cases[i].read(g, dgm_text_of(cases[i].data), "en", "de-DE", &err);
            dgm_mem_inject(0, 0);
            dgm_glossary_close(&g);
            assert_int_equal(dgm_mem_live(), live);
            if (st == cases[i].status) break;
            assert_int_equal(st, DGM_ERR_MEMORY);
        }
    for (uint64_t n = 1;; n++) {
        dgm_demands d = {0};
        dgm_error err;
        dgm_mem_inject(n, 1);
        const dgm_status st = dgm_demands_parse(&d, dgm_text_of("a => b | c\t! d"), &err);
        dgm_mem_inject(0, 0);
        dgm_demands_free(&d);
        assert_int_equal(dgm_mem_live(), live);
        if (st == DGM_OK) break;
        assert_int_equal(st, DGM_ERR_MEMORY);
    }
}

static void rows_given_as_constraints(void **state)
{
    (void)state;
    static const struct {
        const char *constraints, *text;
        int like;
    } rows[] = {{"house\tHaus", "The house is small.", 1},
                 {"house\tHaus", "House prices", 1},
                 {"house\tHaus", "The mouse is small.", 0},
                 {"Haus\tklein", "The house is small.", 0},
                 {"house => Haus\tsmall => klein", "The house is small.", 0},
                 {"house", "The house is small.", 0},
                 {"house\tHaus\tHeim", "The house is small.", 0},
                 {"house\t! Haus", "The house is small.", 0},
                 {"house | houses\tHaus", "The house is small.", 0},
                 {"", "The house is small.", 0},
                 {"house\\", "The house is small.", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(dgm_constraints_like_terms(rows[i].constraints, strlen(rows[i].constraints),
                                                    rows[i].text, strlen(rows[i].text)),
                         rows[i].like);
    assert_int_equal(dgm_constraints_like_terms(NULL, 0, NULL, 0), 0);
}

// Places of a text with stretches replaced, in the text before.
static void replaced_stretches(void **state)
{
    (void)state;
    const char *old = "a big car, car";
    const dgm_text text = {old, strlen(old)};
    dgm_spliced s = {0};
    for (int round = 0; round < 2; round++) { // used again
        dgm_spliced_clear(&s);
        assert_int_equal(dgm_splice_add(&s, text, 6, 9, (dgm_text){"Wagen", 5}, NULL), DGM_OK);
        assert_int_equal(dgm_splice_add(&s, text, 11, 14, (dgm_text){"Pkw", 3}, NULL), DGM_OK);
        assert_int_equal(dgm_splice_end(&s, text, NULL), DGM_OK);
    }
    assert_int_equal(s.text.size, 16);
    assert_memory_equal(s.text.data, "a big Wagen, Pkw", 16);
    static const uint32_t rows[][4] = {{0, 1, 0, 1}, {2, 6, 2, 6},    {6, 8, 6, 9},    {8, 11, 6, 9},
                                       {5, 8, 5, 9}, {9, 9, 6, 6},    {11, 12, 9, 10}, {10, 12, 6, 10},
                                       {13, 16, 11, 14}, {16, 16, 14, 14}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const dgm_span at = dgm_splice_span(&s, (dgm_span){rows[i][0], rows[i][1]});
        assert_int_equal(at.begin, rows[i][2]);
        assert_int_equal(at.end, rows[i][3]);
    }
    dgm_spliced_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaced_stretches),
        cmocka_unit_test(lines_of_demands),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(terms_are_found),
        cmocka_unit_test(longest_terms_win),
        cmocka_unit_test(large_glossaries),
        cmocka_unit_test(rows_given_as_constraints),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
