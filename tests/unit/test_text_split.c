// SPDX-License-Identifier: MIT
// Sentence splitting and the cutting of over-long lines: known hard sentences, and properties that
// must hold for any text (pieces make the line again, every piece fits, work stays linear).
#include "unit/text_data.h"

#include "base/clock.h"
#include "text/split.h"

static dgm_mapfile tiny;
static dgm_vocab *vocab;

static void check_sentences(const char *lang, const char *joined)
{
    // Sentences of the text are separated by '|' in `joined`; the text has a space there.
    char text[1024];
    size_t want = 1, size = strlen(joined);
    assert_true(size < sizeof text);
    memcpy(text, joined, size);
    for (size_t i = 0; i < size; i++)
        if (text[i] == '|') {
            text[i] = ' ';
            want++;
        }
    dgm_pieces p = {0};
    dgm_text t = {text, size};
    assert_int_equal(dgm_split_sentences(t, dgm_language_of(dgm_text_of(lang)), &p, NULL), DGM_OK);
    dgm_writer got = {0};
    for (size_t i = 0; i < p.count; i++) {
        if (i) dgm_write_u8(&got, '|');
        dgm_write_bytes(&got, text + p.items[i].begin, p.items[i].end - p.items[i].begin);
        assert_int_equal(p.items[i].cut, i + 1 < p.count ? DGM_CUT_SENTENCE : DGM_CUT_END);
    }
    assert_text_equal(text_of_writer(&got), dgm_text_of(joined));
    assert_int_equal(p.count, want);
    dgm_writer_free(&got);
    dgm_pieces_free(&p);
}

static void test_sentences_english(void **state)
{
    (void)state;
    check_sentences("en", "One sentence.");
    check_sentences("en", "First one.|Second one!|Third one?|Fourth");
    check_sentences("en",
                    "Mr. Smith met Dr. Jones at 5 p.m. on Jan. 3 in the U.S. Capitol.|He left.");
    check_sentences("en", "He lives in the U.S.|The house is big.");
    check_sentences("en", "J. R. R. Tolkien wrote it.|I read it.");
    check_sentences("en", "See No. 5.|It is on p. 7 of vol. 2.");
    check_sentences("en", "It costs $3.50.|That is 5.5 percent.");
    check_sentences("en", "\"Go!\" he said.|\"Why?\" she asked.|(They left.)|[Done.]");
    check_sentences("en", "Wait...|What?!|No... not now.");
    check_sentences("en", "1. Open the door.|2. Close it.");
    check_sentences("en", "Apple Inc. and Acme Corp. merged.|Nobody cared.");
    check_sentences("en", "visit www.example.com.|Then call.");
    check_sentences("en", "e.g. This one, i.e. That one.|Next.");
    check_sentences("en", "He is taller than I.|She is not.");
    check_sentences("en", "Version 2.0 is out.|\xE2\x80\x9CYes,\xE2\x80\x9D he said.");
}

static void test_sentences_other(void **state)
{
    (void)state;
    check_sentences("de", "Am 3. Oktober war z.B. Dr. M\xC3\xBCller da.|Er blieb bis 17 Uhr.");
    check_sentences(
        "de", "\xE2\x80\x9EKomm!\xE2\x80\x9C, rief er.|\xE2\x80\x9EJa.\xE2\x80\x9C|Sie ging.");
    check_sentences("de", "Das kostet ca. 5 Mio. Euro bzw. 6 Mrd. Yen.|Viel Geld.");
    check_sentences("de", "Im Jahr 1999.|Danach nicht.");
    check_sentences(
        "fr", "M. Dupont est l\xC3\xA0.|Mme. Durand aussi.|\xC2\xAB C'est fini. \xC2\xBB|Oui.");
    check_sentences(
        "es",
        "\xC2\xBFQu\xC3\xA9 pasa?|\xC2\xA1Nada!|El Sr. L\xC3\xB3pez vive en EE.UU. desde 1990.");
    check_sentences("it", "Il Sig. Rossi \xC3\xA8 qui.|A pag. 5 si legge.|Fine.");
    check_sentences("ru", "\xD0\x94\xD0\xB0.|\xD0\x9D\xD0\xB5\xD1\x82.");
}

static void check_ranges(dgm_text text, dgm_language lang, size_t want)
{
    dgm_pieces p = {0};
    assert_int_equal(dgm_split_sentences(text, lang, &p, NULL), DGM_OK);
    assert_int_equal(p.count, want);
    dgm_pieces_free(&p);
}

static void test_sentences_layout(void **state)
{
    (void)state;
    // CJK stops need no space, their closing brackets stay.
    dgm_text zh =
        dgm_text_of("\xE4\xBD\xA0\xE5\xA5\xBD\xE3\x80\x82\xE6\x88\x91\xE5\xBE\x88\xE5\xA5\xBD"
                    "\xEF\xBC\x81\xE3\x80\x8D\xE5\x86\x8D\xE8\xA7\x81");
    dgm_pieces p = {0};
    assert_int_equal(dgm_split_sentences(zh, DGM_LANG_OTHER, &p, NULL), DGM_OK);
    assert_int_equal(p.count, 3);
    assert_int_equal(p.items[1].end, 24);
    assert_int_equal(p.items[2].begin, 24);
    dgm_pieces_free(&p);
    check_ranges(dgm_text_of(""), DGM_LANG_EN, 0);
    check_ranges(dgm_text_of(" \t\n \xE3\x80\x80"), DGM_LANG_EN, 0);
    check_ranges(dgm_text_of("a heading\n\nand text\nthat goes on"), DGM_LANG_EN, 2);
    check_ranges(dgm_text_of("one\n \n\n two \n\n"), DGM_LANG_EN, 2);
    check_ranges(dgm_text_of("..."), DGM_LANG_EN, 1);
    check_ranges(dgm_text_of("Bad \xFF bytes. Then more \xC3"), DGM_LANG_EN, 2);
}

// ---- cutting -------------------------------------------------------------------------------

static void check_properties(dgm_text line, const dgm_pieces *p, size_t max)
{
    dgm_vocab_counter counter = {.vocab = vocab};
    size_t at = 0;
    for (size_t i = 0; i < p->count; i++) {
        dgm_piece x = p->items[i];
        assert_true(x.begin >= at && x.begin < x.end && x.end <= line.size);
        // Only white space between pieces, none at their ends.
        assert_int_equal(dgm_text_trim((dgm_text){line.data + at, x.begin - at}).size, 0);
        dgm_text text = {line.data + x.begin, x.end - x.begin};
        assert_int_equal(dgm_text_trim(text).size, text.size);
        size_t tokens;
        assert_int_equal(dgm_vocab_count(&counter, text, &tokens, NULL), DGM_OK);
        assert_true(tokens <= max || dgm_utf8_count(text) == 1);
        assert_int_equal(x.cut == DGM_CUT_END, i + 1 == p->count);
        if (x.cut == DGM_CUT_INSIDE) assert_int_equal(p->items[i + 1].begin, x.end);
        at = x.end;
    }
    assert_int_equal(dgm_text_trim((dgm_text){line.data + at, line.size - at}).size, 0);
    dgm_tokens_free(&counter.tokens);
}

static dgm_pieces split(dgm_text line, const char *lang, size_t max)
{
    dgm_vocab_counter counter = {.vocab = vocab};
    dgm_split_limits limits = {.max_tokens = max,
                               .lang = dgm_language_of(dgm_text_of(lang)),
                               .count = dgm_vocab_count,
                               .count_arg = &counter};
    dgm_pieces p = {0};
    dgm_error err;
    if (dgm_split_line(line, &limits, &p, &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_tokens_free(&counter.tokens);
    check_properties(line, &p, max);
    return p;
}

static void check_cut(const char *line, size_t max, size_t index, const char *piece, dgm_cut cut)
{
    dgm_pieces p = split(dgm_text_of(line), "en", max);
    assert_true(index < p.count);
    dgm_piece x = p.items[index];
    assert_text_equal(((dgm_text){line + x.begin, x.end - x.begin}), dgm_text_of(piece));
    assert_int_equal(x.cut, cut);
    dgm_pieces_free(&p);
}

static void test_cuts(void **state)
{
    (void)state;
    check_cut("  It fits.  ", 20, 0, "It fits.", DGM_CUT_END);
    const char *two = "The first of the two is here. And the second of the two is there.";
    check_cut(two, 14, 0, "The first of the two is here.", DGM_CUT_SENTENCE);
    check_cut(two, 14, 1, "And the second of the two is there.", DGM_CUT_END);
    const char *clauses = "the man in the house, the man of the state";
    check_cut(clauses, 12, 0, "the man in the house,", DGM_CUT_CLAUSE);
    // A clause end at the very beginning is worse than a cut between words.
    check_cut("So, the state and the state and the state of the", 10, 0, "So, the state and the",
              DGM_CUT_WORD);
    dgm_pieces p = split(dgm_text_of("xqxqxqxqxqxqxqxqxqxqxqxqxqxqxqxq"), "en", 8);
    assert_true(p.count > 2);
    assert_int_equal(p.items[0].cut, DGM_CUT_INSIDE);
    dgm_pieces_free(&p);
}

static void test_limits(void **state)
{
    (void)state;
    dgm_pieces p = split(dgm_text_of(""), "en", 10);
    assert_int_equal(p.count, 0);
    dgm_pieces_free(&p);
    p = split(dgm_text_of(" \t \xC2\xA0 "), "en", 10);
    assert_int_equal(p.count, 0);
    dgm_vocab_counter counter = {.vocab = vocab};
    dgm_split_limits limits = {.max_tokens = 7, .count = dgm_vocab_count, .count_arg = &counter};
    dgm_text line = dgm_text_of("A line of more than seven tokens, which has to be cut somewhere");
    dgm_error err;
    assert_int_equal(dgm_split_line(line, &limits, &p, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "cannot split lines to 7 tokens; at least 8 are needed");
    dgm_tokens_free(&counter.tokens);
    dgm_pieces_free(&p);
    dgm_pieces_free(NULL);
}

static void test_real_lines(void **state)
{
    (void)state;
    static const char *const files[][2] = {{"news.en", "en"},   {"news.de", "de"},
                                           {"flores.fr", "fr"}, {"flores.zh", "zh"},
                                           {"flores.ja", "ja"}, {"special.hyp", "xx"}};
    for (size_t f = 0; f < 6; f++) {
        text_lines lines = text_lines_open(files[f][0]);
        for (size_t i = 0; i < lines.count; i++)
            for (size_t max = 8; max <= 128; max *= 4) {
                dgm_pieces p = split(lines.lines[i], files[f][1], max);
                dgm_pieces_free(&p);
            }
        text_lines_close(&lines);
    }
}

// Random text of everything that matters to the cutter, valid UTF-8 or not.
static void test_random_lines(void **state)
{
    (void)state;
    static const char *const bits[] = {" ",
                                       "  ",
                                       "a",
                                       "the",
                                       ".",
                                       ". ",
                                       ", ",
                                       "; ",
                                       "\xE6\xBC\xA2",
                                       "\xE3\x80\x82",
                                       "\xEF\xBC\x8C",
                                       "\xF0\x9F\x98\x80",
                                       "\xCC\x81",
                                       "\xE2\x80\x8D",
                                       "\xF0\x9F\x87\xA9",
                                       "X. ",
                                       "\"",
                                       "\xFF",
                                       "\xC2\xA0",
                                       "\t",
                                       "house",
                                       "1.5",
                                       "\xE2\x80\x94",
                                       "(",
                                       ")"};
    dgm_rng rng = {99};
    for (int i = 0; i < 400; i++) {
        dgm_writer text = {0};
        for (uint64_t n = dgm_rng_below(&rng, 200); n > 0; n--)
            dgm_write_text(&text, bits[dgm_rng_below(&rng, sizeof bits / sizeof bits[0])]);
        dgm_pieces p = split(text_of_writer(&text), i % 2 ? "en" : "de", 8 + (size_t)i % 40);
        dgm_pieces_free(&p);
        dgm_writer_free(&text);
    }
}

typedef struct work {
    size_t bytes, calls;
} work;

static dgm_status count_words(void *arg, dgm_text text, size_t *tokens, dgm_error *err)
{
    (void)err;
    work *w = arg;
    w->bytes += text.size;
    w->calls++;
    *tokens = 1;
    for (size_t i = 0; i < text.size; i++) *tokens += text.data[i] == ' ';
    return DGM_OK;
}

// The number of bytes given to the counter grows with the line, not with its square.
static void test_long_lines_linear(void **state)
{
    (void)state;
    static const char *const kinds[] = {"word ", "word, ", "word. ", "Word. "};
    for (int k = 0; k < 4; k++) {
        double share[2];
        for (int large = 0; large < 2; large++) {
            size_t words = large ? 100000 : 10000;
            dgm_writer text = {0};
            for (size_t i = 0; i < words; i++) dgm_write_text(&text, kinds[k]);
            work w = {0};
            dgm_split_limits limits = {
                .max_tokens = 200, .lang = DGM_LANG_EN, .count = count_words, .count_arg = &w};
            dgm_pieces p = {0};
            assert_int_equal(dgm_split_line(text_of_writer(&text), &limits, &p, NULL), DGM_OK);
            assert_in_range(p.count, words / 200, words);
            share[large] = (double)w.bytes / (double)text.size;
            dgm_pieces_free(&p);
            dgm_writer_free(&text);
        }
        assert_true(share[0] < 8 && share[1] < 8);
    }
}

static void test_join(void **state)
{
    (void)state;
    dgm_text line = dgm_text_of("One is. Two is.\tThree is.");
    dgm_pieces p = {0};
    assert_int_equal(dgm_split_sentences(line, DGM_LANG_EN, &p, NULL), DGM_OK);
    assert_int_equal(p.count, 3);
    dgm_writer out = {0};
    dgm_text latin[3] = {dgm_text_of("Eins."), dgm_text_of(" Zwei. "), dgm_text_of("Drei.")};
    assert_int_equal(dgm_split_join(line, &p, latin, &out, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&out), dgm_text_of("Eins. Zwei.\tDrei."));
    out.size = 0;
    dgm_text gap[3] = {dgm_text_of("Eins."), dgm_text_of(""), dgm_text_of("Drei.")};
    assert_int_equal(dgm_split_join(line, &p, gap, &out, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&out), dgm_text_of("Eins.\tDrei."));
    out.size = 0;
    dgm_text wide[3] = {dgm_text_of("\xE4\xB8\x80\xE3\x80\x82"),
                        dgm_text_of("\xE4\xBA\x8C\xE3\x80\x82"), dgm_text_of("Drei")};
    assert_int_equal(dgm_split_join(line, &p, wide, &out, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&out),
                      dgm_text_of("\xE4\xB8\x80\xE3\x80\x82\xE4\xBA\x8C\xE3\x80\x82"
                                  "Drei"));
    dgm_pieces_free(&p);

    // From text without spaces into text with them; and a word that was torn.
    dgm_text zh = dgm_text_of("\xE4\xB8\x80\xE3\x80\x82\xE4\xBA\x8C\xE3\x80\x82");
    assert_int_equal(dgm_split_sentences(zh, DGM_LANG_OTHER, &p, NULL), DGM_OK);
    assert_int_equal(p.count, 2);
    out.size = 0;
    assert_int_equal(dgm_split_join(zh, &p, latin, &out, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&out), dgm_text_of("Eins. Zwei."));
    p.items[0] = (dgm_piece){0, 2, DGM_CUT_INSIDE};
    p.items[1] = (dgm_piece){2, 4, DGM_CUT_END};
    dgm_text halves[2] = {dgm_text_of("ab"), dgm_text_of("cd")};
    out.size = 0;
    assert_int_equal(dgm_split_join(dgm_text_of("wxyz"), &p, halves, &out, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&out), dgm_text_of("abcd"));
    dgm_pieces_free(&p);

    // Joining the pieces themselves gives the line again, white space at its ends aside.
    text_lines lines = text_lines_open("news.de");
    for (size_t i = 0; i < lines.count; i++) {
        dgm_text source = lines.lines[i];
        p = split(source, "de", 10);
        dgm_text *parts = dgm_calloc(p.count, sizeof *parts);
        for (size_t k = 0; k < p.count; k++)
            parts[k] =
                (dgm_text){source.data + p.items[k].begin, p.items[k].end - p.items[k].begin};
        out.size = 0;
        assert_int_equal(dgm_split_join(source, &p, parts, &out, NULL), DGM_OK);
        assert_text_equal(text_of_writer(&out), dgm_text_trim(source));
        dgm_free(parts);
        dgm_pieces_free(&p);
    }
    text_lines_close(&lines);
    dgm_writer_free(&out);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    uint64_t live = dgm_mem_live();
    dgm_text line =
        dgm_text_of("The house. The man, of the state; in the house of the man. "
                    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz. A. B! C? D!");
    for (uint64_t n = 1;; n++) {
        dgm_vocab_counter counter = {.vocab = vocab};
        dgm_split_limits limits = {
            .max_tokens = 8, .lang = DGM_LANG_EN, .count = dgm_vocab_count, .count_arg = &counter};
        dgm_pieces p = {0};
        dgm_writer out = {0};
        dgm_text same[64];
        for (int i = 0; i < 64; i++) same[i] = dgm_text_of("some text");
        dgm_mem_inject(n, 1);
        dgm_status st = dgm_split_line(line, &limits, &p, NULL);
        if (st == DGM_OK) st = dgm_split_join(line, &p, same, &out, NULL);
        dgm_mem_inject(0, 0);
        assert_true(p.count <= 64);
        dgm_tokens_free(&counter.tokens);
        dgm_pieces_free(&p);
        dgm_writer_free(&out);
        assert_int_equal(dgm_mem_live(), live);
        if (st == DGM_OK) {
            assert_true(n > 4);
            break;
        }
        assert_int_equal(st, DGM_ERR_MEMORY);
        assert_true(n < 1000);
    }
}

static int open_data(void **state)
{
    (void)state;
    tiny = text_file("tiny.spm");
    dgm_vocab_source s = {.kind = DGM_VOCAB_SENTENCEPIECE,
                          .spm = tiny.data,
                          .spm_size = tiny.size,
                          .eos = 0,
                          .unk = 1,
                          .pad = -1,
                          .bos = -1};
    return dgm_vocab_open(&vocab, &s, NULL) == DGM_OK ? 0 : -1;
}

static int close_data(void **state)
{
    (void)state;
    dgm_vocab_close(&vocab);
    dgm_mapfile_close(&tiny);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences_english),
        cmocka_unit_test(test_sentences_other),
        cmocka_unit_test(test_sentences_layout),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_real_lines),
        cmocka_unit_test(test_random_lines),
        cmocka_unit_test(test_long_lines_linear),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, open_data, close_data);
}
