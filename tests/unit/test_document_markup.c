// SPDX-License-Identifier: MIT
// Tags and their words (src/document/markup.c): rules one by one with links by hand, then sentences whose tags were
// placed by hand in translations of the shipped models, with the links that these models give.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dragoman/document.h"
#include "engine.h"
#include "failures.h"

enum { TAGS = 16 };

// A text with tags, apart: "a <b>c</b>" is "a c" and two tags.
typedef struct tagged {
    char text[1024];
    size_t size, count;
    dgm_tag tags[TAGS];
    char bytes[TAGS][128];
} tagged;

static void add_tag(tagged *t, const char *from, const char *to, int *open, int *depth, int *pairs)
{
    dgm_tag *x = &t->tags[t->count];
    assert_true(t->count < TAGS);
    *x = (dgm_tag){.at = t->size, .kind = DGM_TAG_EMPTY, .pair = -1};
    snprintf(t->bytes[t->count++], sizeof *t->bytes, "%.*s", (int)(to - from), from);
    if (to[-2] == '/') return;
    x->kind = from[1] == '/' ? DGM_TAG_CLOSE : DGM_TAG_OPEN;
    x->pair = x->kind == DGM_TAG_OPEN ? (open[(*depth)++] = (*pairs)++) : open[--*depth];
}

static tagged take_apart(const char *line)
{
    tagged t = {0};
    int open[TAGS], depth = 0, pairs = 0;
    while (*line) {
        const char *end = *line == '<' ? strchr(line, '>') : NULL;
        if (end)
            add_tag(&t, line, end + 1, open, &depth, &pairs);
        else
            t.text[t.size++] = *line;
        line = end ? end + 1 : line + 1;
    }
    return t;
}

static void put_together(const tagged *t, const char *text, const size_t *places, const size_t *order, char *out)
{
    size_t at = 0;
    *out = 0;
    for (size_t i = 0; i < t->count; i++) {
        const size_t to = places[order[i]];
        assert_true(to >= at && to <= strlen(text));
        strncat(out, text + at, to - at);
        strcat(out, t->bytes[order[i]]);
        at = to;
    }
    strcat(out, text + at);
}

// links: "0-0 1-2"
static size_t read_links(const char *text, dgm_link *links)
{
    size_t count = 0;
    int used = 0;
    for (; sscanf(text, " %d-%d%n", &links[count].source, &links[count].target, &used) == 2; text += used) count++;
    return count;
}

static void check(const char *source, const char *translation, const char *links_text, const char *want)
{
    const tagged t = take_apart(source);
    dgm_link links[64];
    size_t places[TAGS], order[TAGS];
    char got[2048];
    const size_t count = read_links(links_text, links);
    assert_int_equal(dgm_tags_place(t.text, t.size, t.tags, t.count, translation, strlen(translation), links, count,
                                    places, order, NULL),
                     DGM_OK);
    put_together(&t, translation, places, order, got);
    assert_string_equal(got, want);
}

static void test_rules(void **state)
{
    (void)state;
    const char *red = "Jetzt den roten Knopf drücken.", *red_links = "4-0 1-1 2-2 3-3 0-4";
    check("Press the <b>red button</b> now.", red, red_links, "Jetzt den <b>roten Knopf</b> drücken.");
    check("<b>Press the red button now.</b>", red, red_links, "<b>Jetzt den roten Knopf drücken.</b>");
    check("Press the <b>red <i>button</i></b> now.", red, red_links, "Jetzt den <b>roten <i>Knopf</i></b> drücken.");
    check("Press the <b>red</b> <i>button</i> now.", red, red_links, "Jetzt den <b>roten</b> <i>Knopf</i> drücken.");
    check("Press the red <img/>button now.", red, red_links, "Jetzt den roten <img/>Knopf drücken.");
    check("Press the red button<sup/> now.", red, red_links, "Jetzt den roten Knopf<sup/> drücken.");
    check("<br/>Press the red button now.<br/>", red, red_links, "<br/>Jetzt den roten Knopf drücken.<br/>");
    check("Press the red button <b></b>now.", red, red_links, "<b></b>Jetzt den roten Knopf drücken.");
}

static void test_marks_stay_outside(void **state)
{
    (void)state;
    check("Note <b>this</b>, please.", "Beachten Sie das, bitte.", "0-0 0-1 1-2 2-3",
          "Beachten Sie <b>das</b>, bitte.");
    check("<b>Note:</b> it works.", "Hinweis: Es geht.", "0-0 1-1 2-2", "<b>Hinweis:</b> Es geht.");
    check("He said <q>\"no\"</q>.", "Er sagte \"nein\".", "0-0 1-1 2-2", "Er sagte <q>\"nein\"</q>.");
}

// Words that lie apart: the larger part gets the tag, nothing is doubled.
static void test_apart(void **state)
{
    (void)state;
    check("I <b>switched off</b> the light yesterday.", "Ich schaltete gestern das Licht aus.",
          "0-0 1-1 5-2 3-3 4-4 2-5", "Ich <b>schaltete</b> gestern das Licht aus.");
    check("The <b>price</b> of bread", "Der Brotpreis", "0-0 1-1 2-1 3-1", "Der <b>Brotpreis</b>");
    check("a <b>b</b> c", "A C", "0-0 2-1", "A <b>C</b>");
    check("a <b>b</b>", "", "", "<b></b>");
    check("", "", "", "");
}

static void test_without_links(void **state)
{
    (void)state;
    check("one <b>two</b> three", "eins zwei drei", "", "eins <b>zwei</b> drei");
    check("one two <br/>three", "eins zwei drei", "", "eins zwei <br/>drei");
}

// Whatever the links say, tags are nested, and each is there once.
static void test_any_links(void **state)
{
    (void)state;
    static const char *const sources[] = {"<a>one <b>two</b></a> <c>three <d/>four</c> five<e/>",
                                          "<a><b>one</b> two <c>three</c></a><d>four</d> <e>five</e>"};
    uint64_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        const tagged t = take_apart(sources[round % 2]);
        dgm_link links[12];
        size_t places[TAGS], order[TAGS], count = 0;
        int open[TAGS], depth = 0;
        for (int target = 0; target < 6; target++)
            for (int k = 0; k < 2; k++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                if (seed >> 61) links[count++] = (dgm_link){(int32_t)(seed >> 33) % 5, target};
            }
        const char *text = "A, B C. D E F";
        assert_int_equal(
            dgm_tags_place(t.text, t.size, t.tags, t.count, text, strlen(text), links, count, places, order, NULL),
            DGM_OK);
        char got[1024];
        put_together(&t, text, places, order, got);
        bool seen[TAGS] = {false};
        for (size_t i = 0; i < t.count; i++) {
            const dgm_tag *x = &t.tags[order[i]];
            assert_false(seen[order[i]]);
            seen[order[i]] = true;
            if (x->kind == DGM_TAG_OPEN) open[depth++] = x->pair;
            if (x->kind == DGM_TAG_CLOSE) assert_int_equal(open[--depth], x->pair);
        }
        assert_int_equal(depth, 0);
    }
}

static void test_refused(void **state)
{
    (void)state;
    const dgm_tag wrong[] = {{2, DGM_TAG_EMPTY, -1}, {1, DGM_TAG_EMPTY, -1}, {9, DGM_TAG_EMPTY, -1}};
    size_t places[3], order[3];
    assert_int_equal(dgm_tags_place("abc", 3, wrong, 2, "d", 1, NULL, 0, places, order, NULL), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_tags_place("abc", 3, wrong + 2, 1, "d", 1, NULL, 0, places, order, NULL), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_tags_place("abc", 3, NULL, 1, "d", 1, NULL, 0, places, order, NULL), DGM_ERR_ARGUMENT);
    // Pairs that cross are tags without partners: all are written.
    const dgm_tag cross[] = {{0, DGM_TAG_OPEN, 0}, {1, DGM_TAG_OPEN, 1}, {2, DGM_TAG_CLOSE, 0}};
    assert_int_equal(dgm_tags_place("abc", 3, cross, 3, "d", 1, NULL, 0, places, order, NULL), DGM_OK);
    ALLOCATIONS_FAIL(dgm_tags_place("abc", 3, cross, 3, "d", 1, NULL, 0, places, order, NULL));
}

// ---- sentences by hand --------------------------------------------------------------------------

typedef struct figures {
    int tags, right;
} figures;

// The links that a model has for its own translation, which is forced on it.
static void measure(dgm_translator *t, const char *source, const char *translation, figures *f)
{
    const tagged from = take_apart(source), to = take_apart(translation);
    dgm_input in;
    dgm_input_default(&in);
    in.text = from.text;
    in.text_size = from.size;
    in.prefix = to.text;
    in.prefix_size = to.size;
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate_inputs(t, &in, 1, &r, NULL), DGM_OK);
    assert_int_equal(r->items[0]->status, DGM_OK);
    const dgm_translation *best = r->items[0]->translations[0];
    size_t places[TAGS], order[TAGS];
    assert_int_equal(dgm_tags_place(from.text, from.size, from.tags, from.count, to.text, to.size, best->links,
                                    best->link_count, places, order, NULL),
                     DGM_OK);
    for (size_t k = 0; k < to.count; k++) { // each tag by its bytes
        bool right = false;
        for (size_t i = 0; i < from.count; i++)
            right |= strcmp(from.bytes[i], to.bytes[k]) == 0 && places[i] == to.tags[k].at;
        f->right += right;
        f->tags++;
    }
    dgm_results_free(&r);
}

// heads: where links are read; -1: the mean of attention, as for models without an alignment head.
static figures measure_all(int32_t head)
{
    figures f = {0};
    dgm_settings s;
    dgm_settings_default(&s);
    s.alignment = DGM_ALIGN_WORDS;
    if (head < 0) s.align_head = head;
    dgm_translator *there = open_with(&s, "models/en-de.gguf"), *back = open_with(&s, "models/de-en.gguf");
    FILE *file = fopen("tests/data/everyday/tagged.tsv", "r");
    assert_non_null(file);
    char line[2048];
    while (fgets(line, sizeof line, file)) {
        char *source = strchr(line, '\t'), *translation = source ? strchr(source + 1, '\t') : NULL;
        if (*line == '#') continue;
        assert_non_null(translation);
        *translation++ = 0;
        translation[strcspn(translation, "\n")] = 0;
        measure(strncmp(line, "en-de", 5) == 0 ? there : back, source + 1, translation, &f);
    }
    fclose(file);
    dgm_close(&there);
    dgm_close(&back);
    return f;
}

static void test_sentences_by_hand(void **state)
{
    (void)state;
    const figures head = measure_all(0), mean = measure_all(-1);
    print_message("tags at the right word: %d of %d; by the mean of attention %d\n", head.right, head.tags,
                  mean.right);
    assert_int_equal(head.tags, 690);
    assert_true(10 * head.right >= 9 * head.tags);
    assert_true(100 * mean.right >= 88 * mean.tags);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_marks_stay_outside),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_without_links),
        cmocka_unit_test(test_any_links),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_sentences_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
