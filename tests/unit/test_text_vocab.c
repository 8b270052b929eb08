// SPDX-License-Identifier: MIT
// Vocabularies: SentencePiece encodings against the Python package's (tests/data/text/spm.json,
// made by tests/oracle/make_spm.py), byte fallback, id maps, spans, word vocabularies, damaged
// models, long lines, use from several threads, allocation failures.
#include "unit/packed.h"
#include "unit/text_data.h"

#include <jansson.h>

#include "base/clock.h"
#include "base/threads.h"
#include "text/spm.h"
#include "text/vocab.h"

static dgm_mapfile tiny;

static dgm_vocab_source tiny_source(void)
{
    return (dgm_vocab_source){.kind = DGM_VOCAB_SENTENCEPIECE,
                              .spm = tiny.data,
                              .spm_size = tiny.size,
                              .eos = 0,
                              .unk = 1,
                              .pad = -1,
                              .bos = -1};
}

static dgm_vocab *open_source(const dgm_vocab_source *s)
{
    dgm_vocab *v;
    dgm_error err;
    if (dgm_vocab_open(&v, s, &err) != DGM_OK) fail_msg("%s", err.text);
    return v;
}

static dgm_vocab *open_tiny(void)
{
    dgm_vocab_source s = tiny_source();
    return open_source(&s);
}

static void check_line(const dgm_vocab *v, dgm_text line, const json_t *want, dgm_tokens *t)
{
    dgm_error err;
    assert_int_equal(dgm_vocab_encode(v, line, t, &err), DGM_OK);
    const json_t *ids = json_object_get(want, "ids");
    assert_int_equal(t->count, json_array_size(ids));
    for (size_t i = 0; i < t->count; i++)
        assert_int_equal(t->ids[i], json_integer_value(json_array_get(ids, i)));
    // Spans are in order, inside the line, and without white space at their ends.
    for (size_t i = 0; i < t->count; i++) {
        dgm_span s = t->spans[i];
        assert_true(s.begin <= s.end && s.end <= line.size);
        if (i) assert_true(s.begin >= t->spans[i - 1].begin);
        dgm_text part = {line.data + s.begin, s.end - s.begin};
        assert_int_equal(dgm_text_trim(part).size, part.size);
    }
    dgm_writer out = {0};
    dgm_span spans[2048];
    assert_true(t->count <= 2048);
    assert_int_equal(dgm_vocab_decode(v, t->ids, t->count, &out, spans, &err), DGM_OK);
    const json_t *text = json_object_get(want, "text");
    assert_text_equal(text_of_writer(&out),
                      ((dgm_text){json_string_value(text), json_string_length(text)}));
    uint32_t at = 0;
    for (size_t i = 0; i < t->count; i++) {
        assert_true(spans[i].begin >= at && spans[i].end >= spans[i].begin);
        at = spans[i].end;
    }
    assert_int_equal(t->count ? at : 0, out.size);
    dgm_writer_free(&out);
}

static void test_equals_python(void **state)
{
    (void)state;
    dgm_mapfile f = packed_file("tests/data/text/spm.json");
    json_t *golden = json_loadb((const char *)f.data, f.size, JSON_ALLOW_NUL, NULL);
    assert_non_null(golden);
    dgm_vocab *v = open_tiny();
    const json_t *pieces = json_object_get(golden, "pieces");
    assert_int_equal(dgm_vocab_size(v), json_array_size(pieces));
    for (int32_t i = 0; i < dgm_vocab_size(v); i++) {
        const char *piece = json_string_value(json_array_get(pieces, (size_t)i));
        assert_text_equal(dgm_vocab_piece(v, i), dgm_text_of(piece));
        assert_int_equal(dgm_vocab_id(v, dgm_text_of(piece)), i);
    }
    text_lines lines = text_lines_open("spm.lines");
    const json_t *rows = json_object_get(golden, "lines");
    assert_int_equal(lines.count, json_array_size(rows));
    dgm_tokens t = {0};
    for (size_t i = 0; i < lines.count; i++)
        check_line(v, lines.lines[i], json_array_get(rows, i), &t);
    dgm_tokens_free(&t);
    text_lines_close(&lines);
    dgm_vocab_close(&v);
    json_decref(golden);
    dgm_mapfile_close(&f);
}

static void test_properties(void **state)
{
    (void)state;
    dgm_vocab *v = open_tiny();
    assert_int_equal(dgm_vocab_get_kind(v), DGM_VOCAB_SENTENCEPIECE);
    assert_int_equal(dgm_vocab_eos(v), 0);
    assert_int_equal(dgm_vocab_unk(v), 1);
    assert_int_equal(dgm_vocab_pad(v), -1);
    assert_int_equal(dgm_vocab_bos(v), -1);
    assert_true(dgm_vocab_is_unknown(v, 1));
    assert_false(dgm_vocab_is_unknown(v, 2));
    assert_true(dgm_vocab_is_control(v, 0));
    assert_true(dgm_vocab_is_control(v, -5));
    assert_false(dgm_vocab_is_control(v, 1));
    int32_t the = dgm_vocab_id(v, dgm_text_of("\xE2\x96\x81the"));
    assert_true(the > 0);
    assert_true(dgm_vocab_begins_word(v, the));
    assert_false(dgm_vocab_begins_word(v, dgm_vocab_id(v, dgm_text_of("s"))));
    assert_int_equal(dgm_vocab_id(v, dgm_text_of("no such piece")), -1);
    assert_int_equal(dgm_vocab_id(v, dgm_text_of("")), -1);
    assert_int_equal(dgm_vocab_piece(v, 1 << 20).size, 0);
    assert_int_equal(dgm_vocab_piece(v, -1).size, 0);
    dgm_vocab_close(&v);
    dgm_vocab_close(&v);
    dgm_vocab_close(NULL);
}

static void test_spans(void **state)
{
    (void)state;
    dgm_vocab *v = open_tiny();
    dgm_tokens t = {0};
    dgm_text line = dgm_text_of("the  \xE6\xBC\xA2 the"); // two spaces, one Han character
    assert_int_equal(dgm_vocab_encode(v, line, &t, NULL), DGM_OK);
    // the | mark | three bytes of the character, each with its span | the
    assert_int_equal(t.count, 6);
    assert_true(t.spans[0].begin == 0 && t.spans[0].end == 3);
    for (int i = 2; i < 5; i++) assert_true(t.spans[i].begin == 5 && t.spans[i].end == 8);
    assert_true(t.spans[5].begin == 9 && t.spans[5].end == 12);
    // Invalid bytes are read as U+FFFD, and nothing crashes on them.
    assert_int_equal(dgm_vocab_encode(v, (dgm_text){"a\xFF\xC3(\xE2\x82", 6}, &t, NULL), DGM_OK);
    assert_true(t.count > 3);
    assert_int_equal(dgm_vocab_encode(v, (dgm_text){NULL, 0}, &t, NULL), DGM_OK);
    assert_int_equal(t.count, 0);
    dgm_tokens_free(&t);
    dgm_vocab_close(&v);
}

// An unknown piece at the end changes nothing of what stands before it.
static void test_joined(void **state)
{
    (void)state;
    enum { LONGEST = 24, ROUNDS = 20000 };
    const dgm_text unknown = dgm_text_of(" \xE2\x81\x87 ");
    dgm_vocab *v = open_tiny();
    dgm_writer joined = {0}, decoded = {0};
    dgm_span spans[2][LONGEST + 1];
    int32_t ids[LONGEST + 1];
    uint32_t random = 1;
    size_t written = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const size_t count = 1 + (size_t)round % LONGEST;
        for (size_t i = 0; i < count; i++) {
            random = random * 1664525u + 1013904223u;
            ids[i] = (int32_t)((random >> 8) % (uint32_t)dgm_vocab_size(v));
        }
        ids[count] = dgm_vocab_unk(v);
        joined.size = decoded.size = 0;
        assert_int_equal(dgm_vocab_decode(v, ids, count, &joined, spans[0], NULL), DGM_OK);
        assert_int_equal(dgm_vocab_decode(v, ids, count + 1, &decoded, spans[1], NULL), DGM_OK);
        assert_int_equal(decoded.size, joined.size + unknown.size);
        if (joined.size) assert_memory_equal(decoded.data, joined.data, joined.size);
        assert_memory_equal(decoded.data + joined.size, unknown.data, unknown.size);
        assert_memory_equal(spans[0], spans[1], count * sizeof spans[0][0]);
        written += joined.size;
    }
    assert_true(written > ROUNDS);
    dgm_writer_free(&joined);
    dgm_writer_free(&decoded);
    dgm_vocab_close(&v);
}

// Pieces numbered anew, as Marian's vocab.json does, and tokens that SentencePiece does not know.
static void test_map_and_extra(void **state)
{
    (void)state;
    dgm_vocab *plain = open_tiny();
    int32_t n = dgm_vocab_size(plain), the = dgm_vocab_id(plain, dgm_text_of("\xE2\x96\x81the"));
    int32_t *map = dgm_malloc((size_t)n * sizeof *map);
    for (int32_t i = 0; i < n; i++) map[i] = n - 1 - i; // backwards
    int32_t dropped = dgm_vocab_id(plain, dgm_text_of("s"));
    map[dropped] = -1;
    dgm_text extra[3] = {dgm_text_of(">>deu<<"), dgm_text_of(">>fra<<"), dgm_text_of("<pad>")};
    dgm_vocab_source s = tiny_source();
    s.map = map;
    s.map_count = (size_t)n;
    s.size = n + 4; // one id in the middle has no piece at all
    s.extra = extra;
    s.extra_count = 3;
    s.eos = n - 1;
    s.unk = n - 2;
    s.pad = n + 3;
    dgm_vocab *v = open_source(&s);
    assert_int_equal(dgm_vocab_id(v, dgm_text_of("\xE2\x96\x81the")), n - 1 - the);
    assert_int_equal(dgm_vocab_id(v, dgm_text_of(">>fra<<")), n + 2);
    assert_text_equal(dgm_vocab_piece(v, n + 3), dgm_text_of("<pad>"));
    assert_int_equal(dgm_vocab_piece(v, n).size, 0);
    assert_int_equal(dgm_vocab_id(v, dgm_text_of("s")), -1);
    assert_true(dgm_vocab_is_control(v, n + 1));
    assert_true(dgm_vocab_is_control(v, n));
    size_t skip;
    assert_int_equal(dgm_vocab_language_prefix(v, dgm_text_of(">>deu<<  Hi"), &skip), n + 1);
    assert_int_equal(skip, 9);
    assert_int_equal(dgm_vocab_language_prefix(v, dgm_text_of(">>xyz<< Hi"), &skip), -1);
    assert_int_equal(skip, 0);
    assert_int_equal(dgm_vocab_language_prefix(v, dgm_text_of("Hi"), &skip), -1);

    dgm_tokens a = {0}, b = {0};
    dgm_text line = dgm_text_of("the house in the city");
    assert_int_equal(dgm_vocab_encode(plain, line, &a, NULL), DGM_OK);
    assert_int_equal(dgm_vocab_encode(v, line, &b, NULL), DGM_OK);
    assert_int_equal(a.count, b.count);
    for (size_t i = 0; i < a.count; i++)
        assert_int_equal(b.ids[i], a.ids[i] == dropped ? s.unk : n - 1 - a.ids[i]);
    int32_t ids[6] = {n + 1, n - 1 - the, n, n - 1 - the, s.eos, s.pad};
    dgm_span spans[6];
    dgm_writer out = {0};
    dgm_write_text(&out, "> "); // decode appends; spans count from what it appended
    assert_int_equal(dgm_vocab_decode(v, ids, 6, &out, spans, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&out), dgm_text_of("> the the"));
    const dgm_span want[6] = {{0, 0}, {0, 3}, {3, 3}, {3, 7}, {7, 7}, {7, 7}};
    assert_memory_equal(spans, want, sizeof want);
    int32_t bad[2] = {n - 1 - the, n + 4};
    dgm_error err;
    assert_int_equal(dgm_vocab_decode(v, bad, 2, &out, NULL, &err), DGM_ERR_ARGUMENT);
    assert_text_equal(text_of_writer(&out), dgm_text_of("> the the"));
    dgm_writer_free(&out);
    dgm_tokens_free(&a);
    dgm_tokens_free(&b);
    dgm_vocab_close(&v);
    dgm_vocab_close(&plain);
    dgm_free(map);
}

static void test_drop_unknown(void **state)
{
    (void)state;
    dgm_vocab_source s = tiny_source();
    dgm_vocab *v = open_source(&s);
    int32_t the = dgm_vocab_id(v, dgm_text_of("\xE2\x96\x81the")), ids[3] = {the, 1, the};
    dgm_span spans[3];
    dgm_writer out = {0};
    assert_int_equal(dgm_vocab_decode(v, ids, 3, &out, spans, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&out), dgm_text_of("the \xE2\x81\x87  the"));
    dgm_vocab_close(&v);
    s.drop_unk = true;
    v = open_source(&s);
    out.size = 0;
    assert_int_equal(dgm_vocab_decode(v, ids, 3, &out, spans, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&out), dgm_text_of("the the"));
    assert_true(spans[1].begin == 3 && spans[1].end == 3);
    dgm_writer_free(&out);
    dgm_vocab_close(&v);
}

static void check_refused(const dgm_vocab_source *s, const char *message)
{
    dgm_vocab *v;
    dgm_error err;
    assert_int_equal(dgm_vocab_open(&v, s, &err), DGM_ERR_FORMAT);
    assert_null(v);
    assert_string_equal(err.text, message);
}

static void test_bad_sources(void **state)
{
    (void)state;
    dgm_vocab_source s = tiny_source();
    s.unk = -1;
    check_refused(&s, "no id for unknown words");
    s = tiny_source();
    s.eos = 900;
    check_refused(&s, "id 900 of 'eos' is outside 0 .. 899");
    s = tiny_source();
    s.size = 899;
    check_refused(&s, "899 ids do not match 900 pieces and 0 extra");
    s = tiny_source();
    int32_t map[900] = {[7] = 901};
    s.map = map;
    s.map_count = 900;
    check_refused(&s, "piece 7 maps to id 901 outside 0 .. 899");
    s.map_count = 3;
    check_refused(&s, "map has 3 entries for 900 pieces");
    s = tiny_source();
    s.kind = (dgm_vocab_kind)9;
    check_refused(&s, "unknown kind 9");
    s = tiny_source();
    s.spm_size = 0;
    check_refused(&s, "damaged SentencePiece model: wrong size");
    s.spm_size = 100;
    check_refused(&s, "damaged SentencePiece model: cut off or not a SentencePiece model");
    s.spm = "this is no model at all, only a line of text that is long enough to look at";
    s.spm_size = 70;
    check_refused(&s, "damaged SentencePiece model: cut off or not a SentencePiece model");
    s = (dgm_vocab_source){.kind = DGM_VOCAB_WORDS, .unk = 0, .eos = -1, .pad = -1, .bos = -1};
    check_refused(&s, "0 words; between 1 and 16777216 are possible");
    dgm_text words[2] = {{"a", 1}, {"\xFF", 1}};
    s.words = words;
    s.word_count = 2;
    check_refused(&s, "word 1 is not valid UTF-8");
}

// Bit flips and cuts: an error or a model that works, never a crash.
static void test_damaged_models(void **state)
{
    (void)state;
    uint8_t *copy = dgm_malloc(tiny.size);
    dgm_rng rng = {20240607};
    dgm_text line =
        dgm_text_of("The house \xE6\xBC\xA2 \xE2\x80\x9Cof\xE2\x80\x9D A\xCC\x8A <sep>.");
    int opened = 0;
    for (int i = 0; i < 3000; i++) {
        memcpy(copy, tiny.data, tiny.size);
        // Half of the damage goes to the last kilobytes, where settings and character map are.
        size_t tail = tiny.size - 3000;
        for (uint64_t k = 1 + dgm_rng_below(&rng, 4); k > 0; k--) {
            size_t at = i % 2 ? tail + dgm_rng_below(&rng, 3000) : dgm_rng_below(&rng, tiny.size);
            copy[at] ^= (uint8_t)(1u << dgm_rng_below(&rng, 8));
        }
        dgm_vocab_source s = tiny_source();
        s.spm = copy;
        if (i % 10 == 9) s.spm_size = dgm_rng_below(&rng, tiny.size);
        dgm_vocab *v;
        dgm_error err;
        if (dgm_vocab_open(&v, &s, &err) != DGM_OK) continue;
        opened++;
        dgm_tokens t = {0};
        dgm_writer out = {0};
        if (dgm_vocab_encode(v, line, &t, &err) == DGM_OK)
            (void)dgm_vocab_decode(v, t.ids, t.count, &out, NULL, &err);
        dgm_writer_free(&out);
        dgm_tokens_free(&t);
        dgm_vocab_close(&v);
    }
    assert_in_range(opened, 100, 2900);
    dgm_free(copy);
}

// A model of two pieces with the character map `map`.
static dgm_status check_map(const void *map, size_t size, dgm_error *err)
{
    static const uint8_t pieces[] = {0x0A, 9,    0x0A, 5,    '<', 'u',  'n', 'k',
                                     '>',  0x18, 2,    0x0A, 3,   0x0A, 1,   'a'};
    dgm_writer w = {0};
    dgm_write_bytes(&w, pieces, sizeof pieces);
    size_t body = size + 4; // field 2, length in three bytes
    dgm_write_u8(&w, 0x1A);
    for (int i = 0; i < 3; i++) dgm_write_u8(&w, (uint8_t)((body >> 7 * i & 127) | (i < 2) << 7));
    dgm_write_u8(&w, 0x12);
    for (int i = 0; i < 3; i++) dgm_write_u8(&w, (uint8_t)((size >> 7 * i & 127) | (i < 2) << 7));
    dgm_write_bytes(&w, map, size);
    dgm_spm *spm;
    const dgm_status st = dgm_spm_open(&spm, w.data, w.size, err);
    dgm_spm_close(&spm);
    dgm_writer_free(&w);
    return st;
}

// A trie of 512 units and the text "b"; unit 0 is the root, its children stand in the second block.
typedef struct small_map {
    uint32_t bytes;
    uint32_t units[512];
    char text[2];
} small_map;

static small_map good_map(void)
{
    small_map m = {.bytes = 2048, .text = "b"};
    for (int i = 0; i < 512; i++) m.units[i] = 1u << 31;           // all values ...
    m.units[0] = 256u << 10;                                       // ... but the root, offset 256,
    m.units[256 ^ 'a'] = 'a' | 1u << 8 | (256u ^ 'a' ^ 300) << 10; // and "a" with its value at 300
    m.units[300] = 1u << 31 | 0;
    return m;
}

static void test_hostile_maps(void **state)
{
    (void)state;
    dgm_error err;
    const size_t size = 4 + 2048 + 2;
    small_map m = good_map();
    assert_int_equal(check_map(&m, size, &err), DGM_OK);
    m.bytes = 2052; // the texts would begin behind the end
    assert_int_equal(check_map(&m, size, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "damaged SentencePiece model: character map has wrong sizes");
    m = good_map();
    m.text[1] = 'c'; // not terminated
    assert_int_equal(check_map(&m, size, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "damaged SentencePiece model: texts of the character map");
    m = good_map();
    m.units[300] |= 2; // value behind the texts
    assert_int_equal(check_map(&m, size, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "damaged SentencePiece model: character map is not a tree");
    m = good_map();
    m.units[0] = 4096u << 10; // children outside the array
    assert_int_equal(check_map(&m, size, &err), DGM_ERR_FORMAT);
    m = good_map();
    m.units[256 ^ 'a'] = 'a' | 1u << 8 | (uint32_t)'a' << 10; // its child "a" is itself
    assert_int_equal(check_map(&m, size, &err), DGM_ERR_FORMAT);
    memset(m.units, 0, sizeof m.units);
    assert_int_equal(check_map(&m, size, &err), DGM_ERR_FORMAT);
    assert_int_equal(check_map(&m, 3, &err), DGM_ERR_FORMAT);
}

static void test_words(void **state)
{
    (void)state;
    static const char *const list[] = {"<unk>", "</s>", "don", "'t", "go", ",",
                                       "John",  ".",    "Mr.", "go", "\"", "\xC3\xA4hnlich"};
    dgm_text words[12];
    for (int i = 0; i < 12; i++) words[i] = dgm_text_of(list[i]);
    dgm_vocab_source s = {.kind = DGM_VOCAB_WORDS,
                          .words = words,
                          .word_count = 12,
                          .tokenizer = DGM_TOKENIZER_MOSES,
                          .language = dgm_text_of("en"),
                          .eos = 1,
                          .unk = 0,
                          .pad = -1,
                          .bos = -1};
    dgm_vocab *v = open_source(&s);
    dgm_tokens t = {0};
    assert_int_equal(dgm_vocab_encode(v, dgm_text_of("\"don't go, Mr. John.\" </s> x"), &t, NULL),
                     DGM_OK);
    const int32_t want[] = {10, 2, 3, 4, 5, 8, 6, 7, 10, 0, 0, 0, 0, 0};
    assert_int_equal(t.count, sizeof want / sizeof want[0]);
    assert_memory_equal(t.ids, want, sizeof want);
    assert_true(t.spans[2].begin == 4 && t.spans[2].end == 6);
    assert_int_equal(dgm_vocab_id(v, dgm_text_of("go")), 4); // the first of equal words
    assert_text_equal(dgm_vocab_piece(v, 11), dgm_text_of("\xC3\xA4hnlich"));
    dgm_writer out = {0};
    dgm_span spans[10];
    const int32_t ids[10] = {10, 2, 3, 4, 5, 8, 6, 7, 10, 1};
    assert_int_equal(dgm_vocab_decode(v, ids, 10, &out, spans, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&out), dgm_text_of("\"don't go, Mr. John.\""));
    assert_true(spans[2].begin == 4 && spans[2].end == 6);
    assert_true(spans[9].begin == 21 && spans[9].end == 21);
    dgm_vocab_close(&v);

    s.tokenizer = DGM_TOKENIZER_NONE;
    v = open_source(&s);
    assert_int_equal(dgm_vocab_encode(v, dgm_text_of("  go\xC2\xA0Mr. John. "), &t, NULL), DGM_OK);
    assert_int_equal(t.count, 3);
    assert_true(t.ids[0] == 4 && t.ids[1] == 8 && t.ids[2] == 0);
    assert_true(t.spans[2].begin == 10 && t.spans[2].end == 15);
    out.size = 0;
    assert_int_equal(dgm_vocab_decode(v, ids, 10, &out, spans, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&out), dgm_text_of("\" don 't go , Mr. John . \""));
    dgm_writer_free(&out);
    dgm_tokens_free(&t);
    dgm_vocab_close(&v);
}

// Whatever ids follow, settled ones make the same words, but for the last.
static void test_settled(void **state)
{
    (void)state;
    enum { WORDS = 16, LONGEST = 12 };
    static const char *const list[WORDS] = {"<unk>", "</s>", "\"", "\"", ",", ".",  "'", "a",
                                            "s",     "/",    "5",  "$",  "(", ")", "#", "\xE6\xBC\xA2"};
    static const char *const languages[] = {"en", "de", "fr", "zh"};
    dgm_text words[WORDS];
    dgm_rng rng = {5};
    for (int i = 0; i < WORDS; i++) words[i] = dgm_text_of(list[i]);
    for (int round = 0; round < 4000; round++) {
        const dgm_vocab_source s = {.kind = DGM_VOCAB_WORDS,
                                    .words = words,
                                    .word_count = WORDS,
                                    .tokenizer = round % 5 ? DGM_TOKENIZER_MOSES : DGM_TOKENIZER_NONE,
                                    .language = dgm_text_of(languages[round % 4]),
                                    .eos = 1,
                                    .unk = 0,
                                    .pad = -1,
                                    .bos = -1};
        dgm_vocab *v = open_source(&s);
        dgm_writer whole = {0}, part = {0};
        int32_t ids[LONGEST];
        for (int i = 0; i < LONGEST; i++) ids[i] = (int32_t)(2 + dgm_rng_below(&rng, WORDS - 2));
        assert_int_equal(dgm_vocab_decode(v, ids, LONGEST, &whole, NULL, NULL), DGM_OK);
        for (size_t n = 1; n <= LONGEST; n++) {
            const size_t count = dgm_vocab_settled(v, ids, n);
            part.size = 0;
            assert_true(count <= n);
            if (round % 5 == 0) assert_int_equal(count, n);
            assert_int_equal(dgm_vocab_decode(v, ids, count, &part, NULL, NULL), DGM_OK);
            while (part.size && part.data[part.size - 1] != ' ') part.size--;
            while (part.size && part.data[part.size - 1] == ' ') part.size--;
            assert_true(part.size <= whole.size);
            if (part.size) assert_memory_equal(part.data, whole.data, part.size);
        }
        dgm_writer_free(&whole);
        dgm_writer_free(&part);
        dgm_vocab_close(&v);
    }
}

// Long texts in linear time, runs of unknown characters too.
static void test_long_text(void **state)
{
    (void)state;
    dgm_vocab *v = open_tiny();
    dgm_writer text = {0};
    for (int i = 0; i < 300000; i++) dgm_write_text(&text, "\xE6\xBC\xA2");
    dgm_tokens t = {0};
    assert_int_equal(dgm_vocab_encode(v, text_of_writer(&text), &t, NULL), DGM_OK);
    assert_in_range(t.count, 900000, 900100);
    assert_int_equal(t.spans[t.count - 1].end, text.size);
    dgm_writer out = {0};
    assert_int_equal(dgm_vocab_decode(v, t.ids, t.count, &out, NULL, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&out), text_of_writer(&text));
    dgm_writer_free(&out);
    dgm_writer_free(&text);
    dgm_tokens_free(&t);
    dgm_vocab_close(&v);
}

typedef struct shared_work {
    const dgm_vocab *v;
    const text_lines *lines;
    uint64_t sums[64];
} shared_work;

static void encode_in_thread(void *arg, int worker, int item)
{
    (void)worker;
    shared_work *w = arg;
    dgm_tokens t = {0};
    uint64_t sum = 0;
    for (size_t i = 0; i < w->lines->count; i++) {
        if (dgm_vocab_encode(w->v, w->lines->lines[i], &t, NULL) != DGM_OK) continue;
        dgm_writer out = {0};
        (void)dgm_vocab_decode(w->v, t.ids, t.count, &out, NULL, NULL);
        for (size_t k = 0; k < t.count; k++) sum = sum * 31 + (uint64_t)t.ids[k];
        sum += out.size;
        dgm_writer_free(&out);
    }
    dgm_tokens_free(&t);
    w->sums[item] = sum;
}

static void test_threads(void **state)
{
    (void)state;
    dgm_vocab *v = open_tiny();
    text_lines lines = text_lines_open("news.de");
    shared_work w = {.v = v, .lines = &lines};
    dgm_pool *pool;
    assert_int_equal(dgm_pool_open(&pool, 4, NULL), DGM_OK);
    dgm_pool_run(pool, encode_in_thread, &w, 8);
    for (int i = 1; i < 8; i++) assert_true(w.sums[i] == w.sums[0] && w.sums[0]);
    dgm_pool_close(&pool);
    text_lines_close(&lines);
    dgm_vocab_close(&v);
}

static dgm_status use_vocab(dgm_vocab_kind kind)
{
    dgm_text words[3] = {dgm_text_of("a"), dgm_text_of("b"), dgm_text_of("c")};
    dgm_vocab_source s = tiny_source();
    s.kind = kind;
    s.words = s.extra = words;
    s.word_count = s.extra_count = 3;
    s.tokenizer = DGM_TOKENIZER_MOSES;
    s.eos = -1;
    dgm_error err;
    dgm_vocab *v;
    DGM_TRY(dgm_vocab_open(&v, &s, &err));
    dgm_tokens t = {0};
    dgm_writer out = {0};
    char line[700];
    for (size_t i = 0; i < sizeof line; i++) line[i] = "a (b) "[i % 6];
    dgm_span spans[1400];
    dgm_status st = dgm_vocab_encode(v, (dgm_text){line, sizeof line}, &t, &err);
    if (st == DGM_OK) st = dgm_vocab_decode(v, t.ids, t.count, &out, spans, &err);
    dgm_writer_free(&out);
    dgm_tokens_free(&t);
    dgm_vocab_close(&v);
    return st;
}

static void test_allocation_failures(void **state)
{
    (void)state;
    uint64_t live = dgm_mem_live();
    for (int kind = DGM_VOCAB_SENTENCEPIECE; kind <= DGM_VOCAB_WORDS; kind++) {
        uint64_t n = 1;
        for (; n < 1000; n++) {
            dgm_mem_inject(n, 1);
            dgm_status st = use_vocab((dgm_vocab_kind)kind);
            dgm_mem_inject(0, 0);
            assert_int_equal(dgm_mem_live(), live);
            if (st == DGM_OK) break;
            assert_int_equal(st, DGM_ERR_MEMORY);
        }
        assert_in_range(n, 10, 200);
    }
}

static int open_data(void **state)
{
    (void)state;
    tiny = text_file("tiny.spm");
    return 0;
}

static int close_data(void **state)
{
    (void)state;
    dgm_mapfile_close(&tiny);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_python),  cmocka_unit_test(test_properties),
        cmocka_unit_test(test_spans),          cmocka_unit_test(test_map_and_extra),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_bad_sources),    cmocka_unit_test(test_drop_unknown),
        cmocka_unit_test(test_damaged_models), cmocka_unit_test(test_hostile_maps),
        cmocka_unit_test(test_words),          cmocka_unit_test(test_settled),
        cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_threads),        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, open_data, close_data);
}
