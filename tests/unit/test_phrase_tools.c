// SPDX-License-Identifier: MIT
// The alignment tools on files: text files plain and gzip, lexical tables, dgm_align and
// dgm_shortlist_make from beginning to end, and what they say about bad input.
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include <cmocka.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "base/textfile.h"
#include "dragoman/tools.h"
#include "align/lexicon.h"
#include "align/links.h"
#include "scratch.h"

#define PIECES "tests/data/models/transformer-pieces.gguf"

// ---- text files -------------------------------------------------------------------------------

static void expect_lines(const char *path, const char *const *lines, int count)
{
    dgm_lines *in = NULL;
    dgm_error err;
    assert_int_equal(dgm_lines_open(&in, path, &err), DGM_OK);
    const char *line;
    size_t size;
    bool more;
    for (int i = 0; i < count; i++) {
        assert_int_equal(dgm_lines_next(in, &line, &size, &more, &err), DGM_OK);
        assert_true(more);
        assert_int_equal(size, strlen(lines[i]));
        assert_memory_equal(line, lines[i], size);
        assert_int_equal(dgm_lines_number(in), i + 1);
    }
    assert_int_equal(dgm_lines_next(in, &line, &size, &more, &err), DGM_OK);
    assert_false(more);
    dgm_lines_close(&in);
}

static void test_text_files(void **state)
{
    (void)state;
    static const char *const lines[] = {"one", "", "three \r x", "last"};
    expect_lines(put_text("plain", "one\n\nthree \r x\r\nlast"), lines, 4);
    expect_lines(put_text("empty", ""), NULL, 0);
    dgm_textout *out = NULL;
    dgm_error err;
    for (int gz = 0; gz < 2; gz++) {
        const char *path = in_folder(gz ? "written.gz" : "written");
        assert_int_equal(dgm_textout_open(&out, path, &err), DGM_OK);
        for (int i = 0; i < 4; i++) {
            dgm_textout_write(out, lines[i], strlen(lines[i]));
            dgm_textout_write(out, "\n", 1);
        }
        assert_false(dgm_file_exists(path)); // not before it is complete
        assert_int_equal(dgm_textout_commit(&out, &err), DGM_OK);
        assert_null(out);
        expect_lines(path, lines, 4);
    }
    assert_int_equal(dgm_textout_open(&out, in_folder("dropped"), &err), DGM_OK);
    dgm_textout_discard(&out);
    assert_false(dgm_file_exists(in_folder("dropped")));
    assert_int_equal(dgm_textout_open(&out, in_folder("no/such/folder"), &err), DGM_ERR_IO);

    dgm_lines *in = NULL;
    assert_int_equal(dgm_lines_open(&in, in_folder("absent"), &err), DGM_ERR_IO);
    assert_non_null(strstr(err.text, "absent"));
    assert_int_equal(dgm_lines_open(&in, folder, &err), DGM_ERR_IO);
    assert_non_null(strstr(err.text, "it is a folder"));
}

// A pipe (as a device would) gets the text itself and stays what it is.
static void test_special_files(void **state)
{
    (void)state;
    char path[128], got[16] = "";
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(fd >= 0);
    dgm_textout *out = NULL;
    dgm_error err;
    struct stat info;
    assert_int_equal(dgm_textout_probe(path, &err), DGM_OK);
    assert_int_equal(dgm_textout_open(&out, path, &err), DGM_OK);
    dgm_textout_write(out, "hello", 5);
    assert_int_equal(dgm_textout_commit(&out, &err), DGM_OK);
    assert_int_equal(read(fd, got, sizeof got), 5);
    assert_string_equal(got, "hello");
    assert_int_equal(dgm_textout_open(&out, path, &err), DGM_OK);
    dgm_textout_discard(&out);
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    dgm_shortlist_options o;
    dgm_shortlist_default(&o);
    assert_int_equal(dgm_shortlist_make(PIECES, path, &o, NULL, &err), DGM_ERR_IO);
    assert_non_null(strstr(err.text, "not a regular file"));
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    close(fd);
}

static dgm_status read_all(const char *path, dgm_error *err)
{
    dgm_lines *in = NULL;
    DGM_TRY(dgm_lines_open(&in, path, err));
    bool more = true;
    dgm_status st = DGM_OK;
    while (st == DGM_OK && more) {
        const char *line;
        size_t size;
        st = dgm_lines_next(in, &line, &size, &more, err);
    }
    dgm_lines_close(&in);
    return st;
}

static void test_bad_text_files(void **state)
{
    (void)state;
    dgm_error err;
    // A compressed file cut short, and one with a damaged middle.
    const char *path = in_folder("cut.gz");
    gzFile gz = gzopen(path, "wb");
    for (int i = 0; i < 20000; i++) gzprintf(gz, "line %d of many %d\n", i, i * 7919 % 1000);
    gzclose(gz);
    assert_int_equal(read_all(path, &err), DGM_OK);
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, path, &err), DGM_OK);
    char *bytes = malloc(f.size);
    size_t size = f.size;
    memcpy(bytes, f.data, size);
    dgm_mapfile_close(&f);
    put("cut.gz", bytes, size / 2);
    assert_int_equal(read_all(path, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "cut short"));
    memset(bytes + size / 2, 0x55, 64);
    put("cut.gz", bytes, size);
    assert_int_equal(read_all(path, &err), DGM_ERR_FORMAT);
    free(bytes);
    // A line without end.
    size = 40u << 20;
    bytes = malloc(size);
    memset(bytes, 'x', size);
    memcpy(bytes, "short\n", 6);
    path = put("endless", bytes, size);
    free(bytes);
    assert_int_equal(read_all(path, &err), DGM_ERR_TEXT);
    assert_non_null(strstr(err.text, "endless:2: line is longer than 16 MiB"));
    unlink(path);
}

// ---- lexical tables ---------------------------------------------------------------------------

static void expect_table_error(const char *text, const char *message)
{
    dgm_lexicon *lex = NULL;
    dgm_error err;
    assert_true(dgm_lexicon_parse(&lex, text, strlen(text), &err) != DGM_OK);
    assert_null(lex);
    assert_string_equal(err.text, message);
}

static dgm_text spell_read(const void *context, bool target, uint32_t word)
{
    const dgm_lexicon *lex = context;
    return dgm_words_spell(target ? &lex->target : &lex->source, word);
}

static void test_table_text(void **state)
{
    (void)state;
    expect_table_error("a b\n", "line 1: not 'TARGET SOURCE PROBABILITY'");
    expect_table_error("a b 0.5\na b 0.5 c\n", "line 2: not 'TARGET SOURCE PROBABILITY'");
    expect_table_error("a b x\n", "line 1: 'x' is not a probability");
    expect_table_error("a b 1.5", "line 1: '1.5' is not a probability");
    expect_table_error("a b -0.5", "line 1: '-0.5' is not a probability");
    expect_table_error("a b nan", "line 1: 'nan' is not a probability");
    expect_table_error("a b 0.5\n\n\xff b 0.5", "line 3: invalid UTF-8");
    dgm_lexicon *lex = NULL;
    dgm_error err;
    const char *path = put_text("table", "Haus house 0.25\nNULL house 0.2\nHaus NULL 0.1\n"
                                         "Heim house 0.5\n\nHeim home 1\nHaus house 0.3\n");
    assert_int_equal(dgm_lexicon_read(&lex, path, &err), DGM_OK);
    assert_int_equal(lex->sources, 2);
    assert_int_equal(lex->targets, 2);
    const char *copy = in_folder("table.gz");
    assert_int_equal(dgm_lexicon_write(lex, spell_read, lex, copy, &err), DGM_OK);
    dgm_lexicon_close(&lex);
    // By falling probability; the last of two equal entries counts.
    static const char *const lines[] = {"Heim house 0.5", "Haus house 0.3", "Heim home 1"};
    expect_lines(copy, lines, 3);
    put_text("table", "Haus house 0.25\nHaus house");
    assert_int_equal(dgm_lexicon_read(&lex, in_folder("table"), &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "table:2: not"));
}

static void test_table_counts(void **state)
{
    (void)state;
    // Links 0-0 three times, 0-1 once, 1-1 once, 1 without link, NULL to 1.
    dgm_link_counts c = {.sources = 3, .targets = 2};
    static const uint32_t pairs[][2] = {{0, 0}, {0, 1}, {0, 0}, {1, 1}, {1, 2}, {3, 1}, {0, 0}};
    for (int i = 0; i < 7; i++)
        assert_int_equal(dgm_link_counts_add(&c, pairs[i][0], pairs[i][1], NULL), DGM_OK);
    dgm_lexicon *lex = NULL;
    for (int again = 0; again < 2; again++) { // counting leaves the counts as they were
        assert_int_equal(dgm_lexicon_count(&lex, &c, false, NULL), DGM_OK);
        assert_int_equal(lex->at[1], 2);
        assert_true(lex->entry[0].target == 0 && lex->entry[0].prob == 0.75f);
        assert_true(lex->entry[1].target == 1 && lex->entry[1].prob == 0.25f);
        assert_int_equal(lex->at[2], 4); // 1: one real target, one NULL
        assert_true(lex->entry[2].prob == 0.5f && lex->entry[3].target == 2);
        assert_int_equal(lex->at[3], 4); // 2 does not occur
        assert_int_equal(lex->at[4], 5); // NULL
        dgm_lexicon_close(&lex);
        assert_int_equal(dgm_lexicon_count(&lex, &c, true, NULL), DGM_OK);
        assert_int_equal(lex->sources, 2);
        assert_int_equal(lex->at[1], 1); // target 0 always comes from 0
        assert_int_equal(lex->at[2], 4); // target 1: from 0, 1, NULL
        assert_true(fabsf(lex->entry[2].prob - 1.0f / 3) < 1e-6f);
        dgm_lexicon_close(&lex);
    }
    dgm_link_counts_free(&c);
}

// ---- dgm_align --------------------------------------------------------------------------------

static const char *const english[] = {"the house",  "the blue house", "a blue flower",
                                      "the flower", "a house",        "",
                                      "a flower",   "the blue flower"};
static const char *const german[] = {"das Haus",   "das blaue Haus", "eine blaue Blume",
                                     "die Blume",  "ein Haus",       "leer",
                                     "eine Blume", "die blaue Blume"};

// The little corpus, `times` times.
static void put_corpus(int times)
{
    dgm_writer w[2] = {{0}, {0}};
    for (int k = 0; k < times; k++)
        for (int i = 0; i < 8; i++) {
            dgm_write_format(&w[0], "%s\n", english[i]);
            dgm_write_format(&w[1], "%s\n", german[i]);
        }
    put("en", (char *)w[0].data, w[0].size);
    put("de", (char *)w[1].data, w[1].size);
    dgm_writer_free(&w[0]);
    dgm_writer_free(&w[1]);
}

static int ticks;
static int count_ticks(void *cookie, const char *stage, double share)
{
    (void)cookie;
    assert_non_null(stage);
    assert_true(share >= 0 && share <= 1);
    return ++ticks < 0;
}

static int stop_at_once(void *cookie, const char *stage, double share)
{
    (void)cookie, (void)stage, (void)share;
    return 1;
}

static int collect(void *cookie, const char *text, size_t size)
{
    dgm_write_bytes(cookie, text, size);
    return 0;
}

static void test_align_files(void **state)
{
    (void)state;
    put_corpus(40);
    put_text("gold", "0-0 1-1\n\n0-0 1-1\n0-0 1-1 2-2\n");
    dgm_align_options o;
    dgm_align_report r = {.size = sizeof r};
    dgm_error err;
    dgm_align_default(&o);
    o.iterations = 8;
    o.threads = 2;
    o.lex_s2t = in_folder("lex.s2t");
    o.lex_t2s = in_folder("lex.t2s.gz");
    char gold[128];
    snprintf(gold, sizeof gold, "%s/gold", folder);
    o.gold = gold;
    o.progress.tick = count_ticks;
    char en[128], de[128], out[128];
    snprintf(en, sizeof en, "%s/en", folder);
    snprintf(de, sizeof de, "%s/de", folder);
    snprintf(out, sizeof out, "%s/links", folder);
    assert_int_equal(dgm_align(en, de, out, &o, &r, &err), DGM_OK);
    assert_true(ticks > 10);
    assert_int_equal(r.lines, 320);
    assert_int_equal(r.pairs, 280);
    assert_int_equal(r.empty, 40);
    assert_true(r.has_gold && r.error_rate == 0);
    char *links = get(out);
    assert_non_null(
        strstr(links, "0-0 1-1\n0-0 1-1 2-2\n0-0 1-1 2-2\n0-0 1-1\n0-0 1-1\n\n0-0 1-1\n"));
    // The same through the callback, with another number of threads.
    dgm_writer w = {0};
    o.write = collect;
    o.write_cookie = &w;
    o.threads = 3;
    assert_int_equal(dgm_align(en, de, NULL, &o, NULL, &err), DGM_OK);
    assert_int_equal(w.size, strlen(links));
    assert_memory_equal(w.data, links, w.size);
    dgm_writer_free(&w);
    free(links);
    char *lex = get(in_folder("lex.s2t"));
    assert_non_null(strstr(lex, "Haus house 1\n"));
    free(lex);
    o.progress.tick = stop_at_once;
    assert_int_equal(dgm_align(en, de, out, &o, &r, &err), DGM_ERR_CANCELLED);
}

static void expect_align_error(const char *source, size_t source_size, const char *target,
                               dgm_status code, const char *message)
{
    char en[128], de[128];
    snprintf(en, sizeof en, "%s", put("bad.en", source, source_size));
    snprintf(de, sizeof de, "%s", put_text("bad.de", target));
    dgm_error err = {{0}};
    assert_int_equal(dgm_align(en, de, in_folder("out"), NULL, NULL, &err), code);
    if (!strstr(err.text, message)) fail_msg("'%s' does not say '%s'", err.text, message);
    assert_false(dgm_file_exists(in_folder("out")));
}

static void test_align_bad_input(void **state)
{
    (void)state;
    expect_align_error("a\nb\n", 4, "x\n", DGM_ERR_TEXT, "bad.de' ends after line 1");
    expect_align_error("a\n", 2, "x\ny\n", DGM_ERR_TEXT, "bad.en' ends after line 1");
    expect_align_error("", 0, "", DGM_ERR_TEXT, "no sentence pair");
    expect_align_error("\n \n", 3, "x\ny\n", DGM_ERR_TEXT, "2 are empty");
    expect_align_error("good\nb\xff"
                       "ad\n",
                       10, "x\ny\n", DGM_ERR_TEXT, "bad.en:2: invalid UTF-8 at byte 2");
    size_t size = 20u << 20;
    char *line = malloc(size);
    memset(line, 'x', size);
    expect_align_error(line, size, "x\n", DGM_ERR_TEXT, "bad.en:1: line is longer than 16 MiB");
    for (size_t i = 1; i < size; i += 2) line[i] = ' '; // 4 million words
    expect_align_error(line, 8u << 20, "x\n", DGM_ERR_TEXT, "1 longer than 200 tokens");
    free(line);

    char en[128], de[128];
    snprintf(en, sizeof en, "%s", put_text("ok.en", "a b\n"));
    snprintf(de, sizeof de, "%s", put_text("ok.de", "x y\n"));
    dgm_align_options o;
    dgm_error err;
    dgm_align_default(&o);
    o.symmetrize = "none";
    assert_int_equal(dgm_align(en, de, NULL, &o, NULL, &err), DGM_ERR_ARGUMENT);
    dgm_align_default(&o);
    o.iterations = 0;
    assert_int_equal(dgm_align(en, de, NULL, &o, NULL, &err), DGM_ERR_ARGUMENT);
    dgm_align_default(&o);
    o.gold = put_text("gold2", "0-0\n0-0\n");
    assert_int_equal(dgm_align(en, de, NULL, &o, NULL, &err), DGM_ERR_TEXT);
    put_text("gold2", "0:0\n");
    assert_int_equal(dgm_align(en, de, NULL, &o, NULL, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "gold2:1: '0:0' is not a link"));
    dgm_align_default(&o);
    o.subwords = "tests/data/align/README.md";
    assert_int_equal(dgm_align(en, de, NULL, &o, NULL, &err), DGM_ERR_FORMAT);
}

// The hand-made links that the project measures itself against are what their README says.
static void test_gold_file(void **state)
{
    (void)state;
    char *gold = get("tests/data/align/newstest2013-100.gold"), *save = NULL;
    dgm_aer aer = {0};
    int lines = 0, possible = 0;
    for (char *c = gold; *c; c++) possible += *c == '?';
    for (char *line = strtok_r(gold, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        assert_int_equal(dgm_aer_add(&aer, dgm_text_of(line), dgm_text_of(""), NULL), DGM_OK);
        lines++;
    }
    assert_int_equal(lines, 100);
    assert_int_equal(aer.sure, 1589);
    assert_int_equal(possible, 551);
    free(gold);
}

// ---- dgm_shortlist_make -----------------------------------------------------------------------

static void test_shortlist(void **state)
{
    (void)state;
    put_corpus(30);
    char en[128], de[128], model[128], lex[128], bin[128], other[128];
    snprintf(en, sizeof en, "%s/en", folder);
    snprintf(de, sizeof de, "%s/de", folder);
    snprintf(model, sizeof model, "%s/model.gguf", folder);
    snprintf(other, sizeof other, "%s/other.gguf", folder);
    snprintf(lex, sizeof lex, "%s/list.txt", folder);
    snprintf(bin, sizeof bin, "%s/list.bin", folder);
    dgm_shortlist_options o;
    dgm_shortlist_report r = {.size = sizeof r}, again = {.size = sizeof again};
    dgm_shortlist_measure m = {.size = sizeof m}, m2 = {.size = sizeof m2};
    dgm_error err;
    dgm_shortlist_default(&o);
    o.source = en;
    o.target = de;
    o.frequent = 3;
    o.write_lexicon = lex;
    o.write_binary = bin;
    assert_int_equal(dgm_shortlist_make(PIECES, model, &o, &r, &err), DGM_OK);
    assert_true(r.sources > 3 && r.entries >= r.sources && r.frequent == 3 && r.bytes > r.entries);
    assert_int_equal(dgm_shortlist_test(model, en, de, &m, &err), DGM_OK);
    assert_int_equal(m.lines, 240);
    assert_true(m.mean > 3 && m.recall > 0.8 && m.recall <= 1);
    // From Marian's file, and from the text table: the same candidates.
    dgm_shortlist_default(&o);
    o.binary = bin;
    assert_int_equal(dgm_shortlist_make(PIECES, other, &o, &again, &err), DGM_OK);
    assert_int_equal(dgm_shortlist_test(other, en, de, &m2, &err), DGM_OK);
    assert_true(m.mean == m2.mean && m.recall == m2.recall && m.most == m2.most);
    dgm_shortlist_default(&o);
    o.lexicon = lex;
    assert_int_equal(dgm_shortlist_make(PIECES, other, &o, &again, &err), DGM_OK);
    assert_int_equal(again.entries, r.entries);
    assert_int_equal(again.unknown, 0);
    // As many candidates as asked for, the most probable ones; frequent tokens of a text.
    double mean = 0;
    for (int n = 9; n <= 13; n += 2) {
        dgm_shortlist_default(&o);
        o.lexicon = lex;
        o.frequent = 3;
        o.frequent_text = de;
        o.candidates = n;
        o.tune = en;
        assert_int_equal(dgm_shortlist_make(PIECES, other, &o, &again, &err), DGM_OK);
        assert_true(again.threshold > 0 && again.threshold <= 1 && again.frequent == 3);
        assert_int_equal(dgm_shortlist_test(other, en, de, &m2, &err), DGM_OK);
        assert_true(m2.mean <= n && m2.mean > mean);
        mean = m2.mean;
    }
    o.tune = NULL;
    assert_int_equal(dgm_shortlist_make(PIECES, other, &o, &again, &err), DGM_ERR_ARGUMENT);
    o.tune = put_text("nothing", "");
    assert_int_equal(dgm_shortlist_make(PIECES, other, &o, &again, &err), DGM_ERR_TEXT);
    o.tune = "missing";
    assert_int_equal(dgm_shortlist_make(PIECES, other, &o, &again, &err), DGM_ERR_IO);
    o.tune = en;
    o.lexicon = NULL;
    assert_int_equal(dgm_shortlist_make(PIECES, other, &o, &again, &err), DGM_ERR_ARGUMENT);
    // Export of what the model has, then removal: the model as it was.
    dgm_shortlist_default(&o);
    o.write_binary = other;
    assert_int_equal(dgm_shortlist_make(model, NULL, &o, NULL, &err), DGM_OK);
    char *a = get(bin), *b = get(other);
    assert_string_equal(a, b);
    free(a);
    free(b);
    dgm_shortlist_default(&o);
    o.remove = 1;
    assert_int_equal(dgm_shortlist_make(model, model, &o, NULL, &err), DGM_OK);
    assert_int_equal(dgm_shortlist_test(model, en, NULL, &m, &err), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "has no shortlist"));

    o.remove = 0;
    assert_int_equal(dgm_shortlist_make(model, other, &o, NULL, &err), DGM_ERR_UNSUPPORTED);
    assert_int_equal(dgm_shortlist_make(model, in_folder("no/x"), &o, NULL, &err), DGM_ERR_IO);
    o.source = en;
    assert_int_equal(dgm_shortlist_make(model, other, &o, NULL, &err), DGM_ERR_ARGUMENT);
    o.target = de;
    o.lexicon = lex;
    assert_int_equal(dgm_shortlist_make(model, other, &o, NULL, &err), DGM_ERR_ARGUMENT);
    dgm_shortlist_default(&o);
    o.lexicon = put_text("strange", "zzqq qqzz 0.5\n");
    assert_int_equal(dgm_shortlist_make(model, other, &o, NULL, &err), DGM_ERR_TEXT);
    o.lexicon = NULL;
    o.binary = put_text("strange.bin", "not a list");
    assert_int_equal(dgm_shortlist_make(model, other, &o, NULL, &err), DGM_ERR_FORMAT);
    assert_int_equal(dgm_shortlist_make(model, other, NULL, NULL, &err), DGM_ERR_ARGUMENT);
}

// A threshold for a number of candidates counts what the search will see: what ends a sentence of
// that model, and nothing that it never says. (EOS is neither of pairs and masked sentences.)
static void test_candidates_of_kinds(void **state)
{
    (void)state;
    static const char *const models[] = {PIECES, "tests/data/models/double-pieces.gguf",
                                         "tests/data/models/cmlm-pieces.gguf"};
    const char *text = put_text("line", "abc def\n"), *model = in_folder("kind.gguf");
    const char *lex = in_folder("letters");
    FILE *f = fopen(lex, "w");
    assert_non_null(f);
    for (int i = 0; i < 26; i++)
        for (int k = 1; k < 9; k++)
            fprintf(f, "%c %c 0.%d%02d\n", 'a' + (i + 3 * k) % 26, 'a' + i, 9 - k, i);
    fclose(f);
    for (int kind = 0; kind < 3; kind++)
        for (int n = 20; n <= 22; n++) {
            dgm_shortlist_options o;
            dgm_shortlist_measure m = {.size = sizeof m};
            dgm_error err;
            dgm_shortlist_default(&o);
            o.lexicon = lex;
            o.frequent = 1;
            o.candidates = n;
            o.tune = text;
            assert_int_equal(dgm_shortlist_make(models[kind], model, &o, NULL, &err), DGM_OK);
            assert_int_equal(dgm_shortlist_test(model, text, NULL, &m, &err), DGM_OK);
            if (m.mean != n) fail_msg("%s: %g candidates, not %d", models[kind], m.mean, n);
        }
}

static void test_memory(void **state)
{
    (void)state;
    put_corpus(2);
    char en[128], de[128], out[128], lex[128];
    snprintf(en, sizeof en, "%s/en", folder);
    snprintf(de, sizeof de, "%s/de", folder);
    snprintf(out, sizeof out, "%s/oom", folder);
    snprintf(lex, sizeof lex, "%s/oom.lex", folder);
    for (int tool = 0; tool < 2; tool++) {
        dgm_status st = DGM_ERR_MEMORY;
        uint64_t live = dgm_mem_live();
        for (uint64_t n = 1; st != DGM_OK; n += tool ? 3 : 1) {
            dgm_error err;
            dgm_align_options a;
            dgm_shortlist_options s;
            dgm_align_default(&a);
            dgm_shortlist_default(&s);
            a.threads = 2;
            a.iterations = 1;
            a.lex_s2t = lex;
            s.source = en;
            s.target = de;
            s.align = &a;
            dgm_mem_inject(n, 1);
            st = tool ? dgm_shortlist_make(PIECES, out, &s, NULL, &err)
                      : dgm_align(en, de, out, &a, NULL, &err);
            dgm_mem_inject(0, 0);
            assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
            assert_int_equal(dgm_mem_live(), live);
        }
    }
}

int main(void)
{
    if (!scratch_open()) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_files),      cmocka_unit_test(test_bad_text_files),
        cmocka_unit_test(test_special_files),   cmocka_unit_test(test_table_text),
        cmocka_unit_test(test_table_counts),    cmocka_unit_test(test_align_files),
        cmocka_unit_test(test_align_bad_input), cmocka_unit_test(test_gold_file),
        cmocka_unit_test(test_shortlist),       cmocka_unit_test(test_candidates_of_kinds),
        cmocka_unit_test(test_memory),
    };
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
