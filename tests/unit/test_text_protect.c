// SPDX-License-Identifier: MIT
// What a translation must not damage: found in sentences, recognised in translations, written in another
// language, replaced by stand-ins and put back. Public functions and those behind them.
#define _GNU_SOURCE
#include "unit/text_data.h"

#include "dragoman/text.h"
#include "text/standin.h"

// Everything that is found, as "kind:text" between spaces.
static char *found_in(const char *text, const char *source, const char *target)
{
    static char out[1024];
    static const char letters[] = "nptdaxci"; // number price time date address placeholder code, i: name
    dgm_protected *found;
    size_t count, used = 0;
    dgm_error error;
    if (dgm_protected_find(text, strlen(text), source, target, &found, &count, &error) != DGM_OK)
        fail_msg("%s", error.text);
    out[0] = 0;
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%c:%.*s", i ? " " : "", letters[found[i].kind],
                                 (int)(found[i].end - found[i].begin), text + found[i].begin);
    dgm_protected_free(&found);
    assert_null(found);
    return out;
}

static void test_find(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *text, *want;
    } rows[] = {
        {"en", "de", "It costs $1,299.99 or €5.", "p:$1,299.99 p:€5"},
        {"de", "en", "Das kostet 1.299,99 €, etwa 50 EUR.", "p:1.299,99 € p:50 EUR"},
        {"en", "de", "5 apples, 13 pears, 2.5 kg and 1,234,567 nuts.", "n:13 n:2.5 n:1,234,567"},
        {"fr", "en", "Il y a 12 345 habitants.", "n:12 345"},
        {"en", "ja", "13 pears cost $5 at 4:30 p.m.", ""},
        {"", "", "13 pears for {name} at info@example.com", "x:{name} a:info@example.com"},
        {"en", "de", "At 4:30 p.m., 8pm and 14:00.", "t:4:30 p.m. t:8pm t:14:00"},
        {"de", "en", "Um 9.15 Uhr, 14 Uhr und 16:30.", "t:9.15 Uhr t:14 Uhr t:16:30"},
        {"de", "en", "Ich bin 20 am Montag.", "n:20"},
        {"en", "de", "2024-05-31, 12/03/2019 and 31.5.2024", "d:2024-05-31 d:12/03/2019 d:31.5.2024"},
        {"en", "de", "Mail Info@Example.com, see (https://x.org/a?b=1&c=d) or www.x.org.",
         "a:Info@Example.com a:https://x.org/a?b=1&c=d a:www.x.org"},
        {"en", "de", "HealthCare.gov and @someone, shop.example.co.uk/x.",
         "a:HealthCare.gov a:@someone a:shop.example.co.uk/x"},
        {"en", "de", "Hi {name}, {{ a.b }}, ${x}, $HOME, %s, %1$s, %(n)s, %.2f, <b>x</b>, &nbsp;",
         "x:{name} x:{{ a.b }} x:${x} x:$HOME x:%s x:%1$s x:%(n)s x:%.2f x:<b> x:</b> x:&nbsp;"},
        {"en", "de", "50% sure, 50 %s, a < b and c > d, 100%.", "n:50 n:50 n:100"},
        {"en", "de", "Call get_name() or std::move, `a b`, --no-protect.",
         "c:get_name() c:std::move c:`a b` c:--no-protect"},
        {"en", "de", "Open /etc/fstab, ~/x, C:\\a, src/main.c and notes.txt.",
         "c:/etc/fstab c:~/x c:C:\\a c:src/main.c c:notes.txt"},
        {"en", "de", "and/or he/she e.g. this U.S. thing Misch-/Abc", ""},
        {"en", "de", "192.168.0.1, v. 3.10.12.4, +49 30 1234567, 555-1234, 0800 123 456, 4711-0815",
         "c:192.168.0.1 c:3.10.12.4 c:+49 30 1234567 c:555-1234 c:0800 123 456 c:4711-0815"},
        {"en", "de", "From 1990-1995 and 2000-3000 people.", "n:1990 n:1995 n:2000 n:3000"},
        {"en", "de", "When Jürgen Müller met Zoë in the café.", "i:Jürgen Müller i:Zoë"},
        {"de", "en", "Änderungen an Türen sah Jürgen Müller, nicht Herr Krüger.", "i:Jürgen Müller i:Krüger"},
        {"de", "en", "Herr Präsident, Frau Ministerpräsidentin, Herr Bürgermeister Größ und Frau Bürger",
         "i:Größ i:Bürger"},
        {"de", "en", "des Herrn Generalsekretärs, Frau Ärztin, an Frau Rechtsanwältin Dr. Jäger, König", "i:Jäger"},
        {"en", "de", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(found_in(rows[i].text, rows[i].from, rows[i].to), rows[i].want);
}

// How many of what is protected in a source its translation keeps, of how many.
static void expect_kept(const char *from, const char *to, const char *source, const char *translation, size_t want)
{
    dgm_protected *found;
    size_t count;
    unsigned char kept[16];
    assert_int_equal(dgm_protected_find(source, strlen(source), from, to, &found, &count, NULL), DGM_OK);
    assert_in_range(count, 1, 16);
    const size_t n = dgm_protected_check(source, strlen(source), found, count, from, to, translation,
                                         strlen(translation), kept);
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += kept[i];
    assert_int_equal(n, sum);
    if (n != want) fail_msg("%s => %s: %zu of %zu kept", source, translation, n, count);
    dgm_protected_free(&found);
}

static void test_check(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *source;
        const char *good[6], *bad[6];
    } rows[] = {
        {"en", "de", "It costs $1,299.99.",
         {"Es kostet 1.299,99 $.", "Es kostet 1 299,99 Dollar.", "1299,99 US-Dollar"},
         {"Es kostet 1,299.99.", "Es kostet 1.299,99.", "Es kostet 1.299,9 Dollar.", "299,99 Dollar"}},
        {"de", "en", "Das kostet 1.299,99 €.", {"It costs €1,299.99.", "EUR 1,299.99", "1299.99 euros"},
         {"EUR 1 January 299.99", "EUR 1.299,99", "1,299.99"}},
        {"de", "en", "Die Stadt hat 1.852 Einwohner.",
         {"1,852 inhabitants", "1852"}, {"1.852 inhabitants", "1 852", "852"}},
        {"en", "de", "Some 20 people.", {"Etwa zwanzig Leute.", "20"}, {"Etwa 200 Leute.", "2.0"}},
        {"en", "de", "In the 1980s.", {"In den 1980er Jahren.", "in den 80er Jahren"}, {"In den 1990er Jahren."}},
        {"de", "en", "Die 60er-Jahre.", {"The 1960s.", "the 60s", "the sixties"}, {"The 1970s."}},
        {"en", "de", "At 4:30 p.m.", {"Um 16:30 Uhr.", "16.30 Uhr", "um halb fünf", "4:30 Uhr nachmittags"},
         {"17.30 Uhr", "4:30 Uhr", "16 Uhr"}},
        {"en", "de", "At 10 p.m.", {"Um 22 Uhr", "22:00", "um zehn"}, {"10 Uhr", "um 12 Uhr"}},
        {"de", "en", "Um 20.45 Uhr.",
         {"At 8:45 p.m.", "at 20:45", "8.45pm"}, {"20.45 p.m.", "8:45 a.m.", "at 9:45 p.m."}},
        {"de", "en", "Am 31.05.2024.", {"On 31 May 2024.", "May 31, 2024", "31/05/2024", "2024-05-31"},
         {"31 January 2024", "30 May 2024", "31 May 2023"}},
        {"en", "de", "On 12/03/2019.",
         {"12.03.2019", "3. Dezember 2019", "12. März 2019", "12/03/2019"}, {"12.03/2019"}},
        {"en", "de", "Write to Info@Example.com.", {"Schreiben Sie an Info@Example.com."},
         {"info@example.com", "Info@Example.com.at", "XInfo@Example.com"}},
        {"en", "de", "Hello {name}", {"Hallo {name}"}, {"Hallo {Name}", "Hallo", "Hallo {name}{name}"}},
        {"en", "de", "See src/main.c",
         {"Siehe src/main.c.", "in src/main.c-Datei"}, {"Siehe src/main.cpp", "src/Haupt.c"}},
        {"en", "de", "Jürgen Müller's car",
         {"Jürgen Müllers Auto", "Juergen Mueller"}, {"Jugendliche", "Jürgen Mller"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 6; k++) {
            if (rows[i].good[k]) expect_kept(rows[i].from, rows[i].to, rows[i].source, rows[i].good[k], 1);
            if (rows[i].bad[k]) expect_kept(rows[i].from, rows[i].to, rows[i].source, rows[i].bad[k], 0);
        }
    expect_kept("en", "de", "%s and %s", "%s und %s", 2);
    expect_kept("en", "de", "%s and %s", "%s und", 0); // as often as in the source
}

static void expect_written(const char *from, const char *to, const char *source, const char *want)
{
    dgm_protected *found;
    size_t count;
    char out[64], small[4];
    assert_int_equal(dgm_protected_find(source, strlen(source), from, to, &found, &count, NULL), DGM_OK);
    assert_int_equal(count, 1);
    const size_t n = dgm_protected_write(source, strlen(source), found, from, to, out, sizeof out);
    assert_string_equal(out, want);
    assert_int_equal(n, strlen(want));
    assert_int_equal(dgm_protected_write(source, strlen(source), found, from, to, small, sizeof small), n);
    assert_true(strlen(small) <= 3 && strncmp(small, want, strlen(small)) == 0);
    expect_kept(from, to, source, want, 1); // what is written passes
    dgm_protected_free(&found);
}

static void test_write(void **state)
{
    (void)state;
    expect_written("en", "de", "1,234,567.5 km", "1.234.567,5");
    expect_written("en", "fr", "about 12,345", "12\xC2\xA0" "345");
    expect_written("de", "en", "im Jahr 1984", "1984");
    expect_written("en", "de", "for $1,299.99", "1.299,99 $");
    expect_written("de", "en", "1.299,99 €", "€1,299.99");
    expect_written("de", "en", "20 EUR", "EUR 20");
    expect_written("en", "de", "at 4:30 p.m.", "16:30 Uhr");
    expect_written("en", "de", "at 12 a.m.", "0 Uhr");
    expect_written("de", "en", "um 14 Uhr", "2 p.m.");
    expect_written("de", "en", "um 9.15 Uhr", "9:15");
    expect_written("en", "de", "at 4:30", "4:30");
    expect_written("de", "en", "am 31.05.2024", "31 May 2024");
    expect_written("en", "de", "05/31/2024", "31.05.2024");
    expect_written("en", "de", "12/03/2019", "12/03/2019");
    expect_written("en", "de", "{name}!", "{name}");
}

// With stand-ins for all that is protected, or what `kept` leaves.
static void stand_in(dgm_standins *s, const char *from, const char *to, const char *text, const unsigned char *kept,
                     int round)
{
    static const unsigned char none[16];
    const dgm_protector p = dgm_protector_for(dgm_text_of(from), dgm_text_of(to));
    dgm_protected_list found = {0};
    assert_int_equal(dgm_protect_find(&p, dgm_text_of(text), &found, NULL), DGM_OK);
    if (!kept) kept = none;
    assert_int_equal(dgm_standins_make(s, &p, dgm_text_of(text), found.items, found.count, kept, round, NULL), DGM_OK);
    dgm_free(found.items);
}

static void expect_text(const dgm_writer *w, const char *want)
{
    assert_int_equal(w->size, strlen(want));
    assert_memory_equal(w->data, want, w->size);
}

static void expect_restored(const dgm_standins *s, const char *translation, const char *want, size_t faults)
{
    dgm_writer out = {0};
    dgm_write_text(&out, "before ");
    const size_t from = out.size;
    dgm_write_text(&out, translation);
    assert_int_equal(dgm_standins_faults(s, dgm_text_of(translation)), faults);
    assert_int_equal(dgm_standins_restore(s, &out, from, NULL, 0, NULL), DGM_OK);
    assert_int_equal(out.size, from + strlen(want));
    assert_memory_equal(out.data + from, want, strlen(want));
    dgm_writer_free(&out);
}

static void test_standins(void **state)
{
    (void)state;
    dgm_standins s = {0};
    stand_in(&s, "en", "de", "Hello {name}, it costs $1,299.99.", NULL, 0);
    expect_text(&s.text, "Hello X1, it costs $17.");
    expect_restored(&s, "Hallo X1, es kostet 17 Dollar.", "Hallo {name}, es kostet 1.299,99 Dollar.", 0);
    expect_restored(&s, "Hallo X1, es kostet 17.000 Dollar.", "Hallo {name}, es kostet 17.000 Dollar.", 1);
    expect_restored(&s, "Hallo X1 X1, 17 Dollar.", "Hallo {name} {name}, 1.299,99 Dollar.", 1);
    expect_restored(&s, "17 Dollar, X1-Hallo.", "1.299,99 Dollar, {name}-Hallo.", 1);
    stand_in(&s, "en", "de", "Hello {name}, it costs $1,299.99.", NULL, 1);
    expect_text(&s.text, "Hello Q7, it costs K2.");
    expect_restored(&s, "Hallo Q7, es kostet K2.", "Hallo {name}, es kostet 1.299,99 $.", 0);
    stand_in(&s, "en", "de", "We lost $3.7 million in 1984 at X1.", NULL, 1);
    expect_text(&s.text, "We lost $23 million in Q7 at X1.");
    stand_in(&s, "en", "de", "In 1984 we saw 300 and %d of {count}.", NULL, 0);
    expect_text(&s.text, "In 1987 we saw 17 and 23 of 38.");
    stand_in(&s, "en", "de", "The train leaves at 4:30 p.m.", NULL, 0);
    expect_text(&s.text, "The train leaves at X1.");
    expect_restored(&s, "Der Zug fährt um X1 Uhr ab.", "Der Zug fährt um 16:30 Uhr ab.", 0);
    expect_restored(&s, "Am X1. Juli.", "Am 16:30 Uhr. Juli.", 0); // the sentence has a stop there
    stand_in(&s, "en", "de", "At 7 p.m. ET tonight.", NULL, 0);
    expect_restored(&s, "Um X1. ET heute.", "Um 19 Uhr ET heute.", 0);
    stand_in(&s, "de", "en", "Der Zug fährt um 16:30 Uhr.", NULL, 0);
    expect_restored(&s, "The train leaves at X1.", "The train leaves at 4:30 p.m.", 0);
    stand_in(&s, "en", "de", "Click <b>here</b>.", NULL, 0); // spaces for the model, which go again
    expect_text(&s.text, "Click X1 here Q7.");
    expect_restored(&s, "Klicken Sie X1 hier Q7.", "Klicken Sie <b>hier</b>.", 0);
    const unsigned char kept[2] = {1, 0};
    stand_in(&s, "en", "de", "%s has 300 lines.", kept, 0);
    expect_text(&s.text, "%s has 17 lines.");
    stand_in(&s, "en", "de", "%s has 300 lines.", kept, 1); // the second time all that is no language
    expect_text(&s.text, "Q7 has K2 lines.");
    stand_in(&s, "en", "de", "{a} {b} {c} {d} {e} {f} {g} {h} {i} {j}", NULL, 0);
    assert_int_equal(s.count, DGM_STANDINS_MAX);
    dgm_standins_free(&s);
}

// Numbers that arrived in a form of another language are written right without a second translation.
static void test_respell(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *source, *translation, *want;
    } rows[] = {
        {"de", "en", "1.852 Leute, 5.000 Tiere.", "1.852 people, 5 000 animals.", "1,852 people, 5,000 animals."},
        {"de", "en", "Das kostet 1.299,99 €.", "It costs EUR 1.299,99.", "It costs EUR 1,299.99."},
        {"en", "de", "Some 1,234,567 people.", "Etwa 1,234,567 Leute.", "Etwa 1.234.567 Leute."},
        {"de", "en", "Um 19.30 Uhr oder 9.15 Uhr.", "At 19.30 p.m. or 9:15 p.m.", "At 7:30 p.m. or 9:15."},
        {"de", "en", "Um 19 Uhr.", "At 19pm.", "At 7 p.m."},
        {"de", "en", "Um 19 Uhr.", "At 19 pages.", NULL},
        {"de", "en", "Das kostet 1.299,99 €.", "It costs 1.299,99.", NULL},
        {"de", "en", "Etwa 300 Leute.", "About 30 people.", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const dgm_protector p = dgm_protector_for(dgm_text_of(rows[i].from), dgm_text_of(rows[i].to));
        const dgm_text source = dgm_text_of(rows[i].source), said = dgm_text_of(rows[i].translation);
        dgm_protected_list found = {0};
        dgm_standins s = {0};
        unsigned char kept[4] = {0};
        assert_int_equal(dgm_protect_find(&p, source, &found, NULL), DGM_OK);
        assert_int_equal(dgm_standins_respell(&s, &p, source, found.items, found.count, kept, said, NULL), DGM_OK);
        assert_int_equal(s.count, rows[i].want ? found.count : 0);
        if (rows[i].want) expect_restored(&s, rows[i].translation, rows[i].want, 0);
        dgm_standins_free(&s);
        dgm_free(found.items);
    }
}

// Tokens and places move with what is put back.
static void test_places(void **state)
{
    (void)state;
    dgm_standins s = {0};
    stand_in(&s, "en", "de", "Hi {name}, bye", NULL, 0); // "Hi X1, bye"
    assert_int_equal(dgm_standins_place(&s, 0), 0);
    assert_int_equal(dgm_standins_place(&s, 3), 3);
    assert_int_equal(dgm_standins_place(&s, 4), 3); // inside of the stand-in
    assert_int_equal(dgm_standins_place(&s, 5), 9);
    assert_int_equal(dgm_standins_place(&s, 10), 14);
    dgm_writer out = {0};
    dgm_write_text(&out, "Ha X1, tsch");
    dgm_span spans[] = {{0, 2}, {2, 4}, {4, 5}, {5, 6}, {6, 11}, {11, 11}};
    assert_int_equal(dgm_standins_restore(&s, &out, 0, spans, 6, NULL), DGM_OK);
    expect_text(&out, "Ha {name}, tsch");
    static const dgm_span want[] = {{0, 2}, {2, 9}, {3, 9}, {9, 10}, {10, 15}, {15, 15}};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(spans[i].begin, want[i].begin);
        assert_int_equal(spans[i].end, want[i].end);
    }
    dgm_writer_free(&out);
    dgm_standins_free(&s);
}

static void test_arguments(void **state)
{
    (void)state;
    dgm_protected *found = NULL, odd = {0, 3, DGM_PROTECTED_PRICE};
    size_t count;
    dgm_error error;
    char out[8];
    assert_int_equal(dgm_protected_find(NULL, 1, "en", "de", &found, &count, &error), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_protected_find("a", 1, "en", "de", NULL, &count, &error), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_protected_find("a\xFF", 2, "en", "de", &found, &count, &error), DGM_ERR_TEXT);
    assert_int_equal(dgm_protected_find(NULL, 0, NULL, NULL, &found, &count, &error), DGM_OK);
    dgm_protected_free(&found);
    dgm_protected_free(NULL);
    for (odd.kind = 0; odd.kind < 8; odd.kind++) { // what was not found there does no harm
        dgm_protected_check("abc", 3, &odd, 1, "en", "de", "abc", 3, NULL);
        assert_int_equal(dgm_protected_write("abc", 2, &odd, "en", "de", out, sizeof out), 0);
        dgm_protected_write("abc", 3, &odd, "en", "de", out, sizeof out);
    }
    for (int n = 1; n < 40; n++) {
        dgm_mem_inject((uint64_t)n, 1);
        const dgm_status st = dgm_protected_find("{a} {b} {c}", 11, "en", "de", &found, &count, &error);
        dgm_mem_inject(0, 0);
        if (st == DGM_OK) assert_int_equal(count, 3);
        else assert_int_equal(st, DGM_ERR_MEMORY);
        dgm_protected_free(&found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),     cmocka_unit_test(test_check),  cmocka_unit_test(test_write),
        cmocka_unit_test(test_standins), cmocka_unit_test(test_places), cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_respell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
