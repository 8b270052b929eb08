// SPDX-License-Identifier: MIT
// Vocabularies of other systems: codes of subword-nmt and fastBPE, OpenNMT's marks, tokenizer.json, through a
// model file to ids and back (tests/data/text/bpe.json, made by tests/oracle/make_bpe.py; another file of that kind
// may be named as argument), files that are damaged or say what is not supported, allocation failures.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fields.h"
#include "engine/engine_private.h"
#include "failures.h"
#include "import/bpe_codes.h"
#include "import/tokenizer_json.h"
#include "scratch.h"
#include "unit/packed.h"
#include "unit/text_data.h"

static const char *golden_path = "tests/data/text/bpe.json";
static json_t *golden;
static dgm_error err;

static const char *text_at(const json_t *array, size_t i)
{
    return json_string_value(json_array_get(array, i));
}

// ---- through a file -------------------------------------------------------------------------

static dgm_gguf_writer *begin(void)
{
    dgm_gguf_writer *w;
    assert_int_equal(dgm_gguf_writer_open(&w, &err), DGM_OK);
    dgm_gguf_set_string(w, "general.architecture", "dragoman");
    dgm_gguf_set_u32(w, "dragoman.format_version", 1);
    dgm_gguf_set_string(w, "dragoman.architecture", "transformer");
    return w;
}

static dgm_vocab *load(dgm_gguf_writer **w)
{
    dgm_gguf *g;
    dgm_vocab *v;
    if (dgm_gguf_write(*w, in_folder("v.gguf"), &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_gguf_writer_close(w);
    if (dgm_modelfile_open(&g, in_folder("v.gguf"), &err) != DGM_OK) fail_msg("%s", err.text);
    if (dgm_vocabulary_load(g, DGM_SOURCE, &v, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_gguf_close(&g);
    return v;
}

// Every token lies in the text, and one after the other.
static void check_spans(dgm_text text, const dgm_tokens *t)
{
    for (size_t i = 0; i < t->count; i++) {
        assert_true(t->spans[i].begin <= t->spans[i].end && t->spans[i].end <= text.size);
        if (i) assert_true(t->spans[i].begin >= t->spans[i - 1].begin);
    }
}

// ---- subword-nmt ----------------------------------------------------------------------------

static dgm_vocab *open_codes(const json_t *c)
{
    const json_t *tokens = json_object_get(c, "tokens"), *protect = json_object_get(c, "protect");
    const size_t size = json_array_size(tokens), guarded = json_array_size(protect);
    const char **list = calloc(size, sizeof *list), *words[8];
    for (size_t i = 0; i < size; i++) list[i] = text_at(tokens, i);
    for (size_t i = 0; i < guarded; i++) words[i] = text_at(protect, i);
    dgm_bpe_codes codes;
    const char *path = put("codes", json_string_value(json_object_get(c, "codes")),
                           strlen(json_string_value(json_object_get(c, "codes"))));
    if (dgm_bpe_codes_read(&codes, path, &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_bpe_keys k = {.tokens = list,
                      .size = (int)size,
                      .eos = 2,
                      .unk = 3,
                      .pad = 1,
                      .bos = 0,
                      .merges = codes.merges.items,
                      .merge_count = codes.merges.count,
                      .protect = words,
                      .protect_count = guarded};
    const char *style = json_string_value(json_object_get(c, "style"));
    const char *mode = json_string_value(json_object_get(c, "mode"));
    if (style) k.style = style[0] == 'j' ? DGM_SPEC_BPE_JOINER : DGM_SPEC_BPE_SPACER;
    if (mode && mode[0] != 's')
        k.tokenizer = mode[0] == 'a' ? DGM_SPEC_TOKENIZER_AGGRESSIVE : DGM_SPEC_TOKENIZER_CONSERVATIVE;
    if (codes.end_apart) k.flags |= DGM_SPEC_BPE_END_APART;
    if (json_is_true(json_object_get(c, "restricted"))) k.flags |= DGM_SPEC_BPE_RESTRICTED;
    dgm_gguf_writer *w = begin();
    dgm_bpe_keys_set(w, DGM_SOURCE, &k);
    dgm_bpe_codes_free(&codes);
    free(list);
    return load(&w);
}

static void check_segmented(const dgm_vocab *v, const char *name, const char *line, const char *wanted,
                            const char *text)
{
    dgm_tokens t = {0};
    dgm_writer out = {0}, back = {0}, plain = {0};
    assert_int_equal(dgm_vocab_encode(v, dgm_text_of(line), &t, &err), DGM_OK);
    check_spans(dgm_text_of(line), &t);
    bool unknown = false;
    dgm_text rest = dgm_text_of(wanted);
    for (size_t i = 0; i < t.count; i++) {
        dgm_text piece = dgm_vocab_piece(v, t.ids[i]);
        const dgm_text theirs = dgm_field_next(&rest);
        if (t.ids[i] == dgm_vocab_unk(v) && dgm_vocab_id(v, theirs) < 0) { // no token of the vocabulary
            piece = theirs;
            unknown = true;
        }
        if (i) dgm_write_u8(&out, ' ');
        dgm_write_bytes(&out, piece.data, piece.size);
    }
    if (!dgm_text_equal(text_of_writer(&out), dgm_text_of(wanted)))
        fail_msg("%s: '%s' became '%.*s', not '%s'", name, line, (int)out.size, (const char *)out.data, wanted);
    assert_int_equal(dgm_vocab_decode(v, t.ids, t.count, &back, NULL, &err), DGM_OK);
    if (!unknown && text) {
        assert_text_equal(text_of_writer(&back), dgm_text_of(text));
    } else if (!unknown) {
        for (size_t pos = 0, n, left = strlen(line); left > 0; pos += n, left -= n) { // words, one space apart
            uint32_t code;
            n = dgm_utf8_next(line + pos, left, &code);
            const bool blank = dgm_char_is_space(code);
            if (!blank) dgm_write_bytes(&plain, line + pos, n);
            if (blank && plain.size && plain.data[plain.size - 1] != ' ') dgm_write_u8(&plain, ' ');
        }
        assert_text_equal(dgm_text_trim(text_of_writer(&back)), dgm_text_trim(text_of_writer(&plain)));
    }
    dgm_tokens_free(&t);
    dgm_writer_free(&out);
    dgm_writer_free(&back);
    dgm_writer_free(&plain);
}

static void test_subword_nmt(void **state)
{
    (void)state;
    const json_t *lines = json_object_get(golden, "lines");
    size_t i, n;
    json_t *c;
    json_array_foreach(json_object_get(golden, "subword_nmt"), i, c)
    {
        dgm_vocab *v = open_codes(c);
        assert_int_equal(dgm_vocab_get_kind(v), DGM_VOCAB_BPE);
        const char *mode = json_string_value(json_object_get(c, "mode"));
        const json_t *text = json_object_get(c, "text"); // none: words between spaces come back
        assert_int_equal(dgm_vocab_takes_text(v), mode && mode[0] != 's');
        for (n = 0; n < json_array_size(lines); n++) {
            const char *wanted = text_at(json_object_get(c, "lines"), n);
            for (int again = 0; again < 2; again++) // the second time whole words are known
                check_segmented(v, json_string_value(json_object_get(c, "name")), text_at(lines, n), wanted,
                                text ? text_at(text, n) : NULL);
        }
        dgm_vocab_close(&v);
    }
    assert_int_equal(i, 11);
}

// A merge that makes the same symbol as another one may cut it within the mark of an end, which no text has.
static void test_cut_in_mark(void **state)
{
    (void)state;
    json_t *c = json_pack("{s:[s,s,s,s,s,s],s:s,s:b}", "tokens", "<s>", "<pad>", "</s>", "<unk>", "x@@", "z", "codes",
                          "#version: 0.2\nxy< /w>\nx y</w>\nx z</w>\n", "restricted", 1);
    dgm_vocab *v = open_codes(c);
    check_segmented(v, "cut", "xy xz xy", "xy x@@ z xy", NULL);
    dgm_vocab_close(&v);
    json_decref(c);
}

// ---- tokenizer.json -------------------------------------------------------------------------

static void check_ids(const dgm_vocab *v, const char *name, const char *line, const json_t *ids, const char *text)
{
    dgm_tokens t = {0};
    dgm_writer back = {0};
    dgm_span spans[4096];
    assert_int_equal(dgm_vocab_encode(v, dgm_text_of(line), &t, &err), DGM_OK);
    check_spans(dgm_text_of(line), &t);
    bool same = t.count == json_array_size(ids), unknown = false;
    for (size_t i = 0; i < t.count; i++) unknown = unknown || t.ids[i] == dgm_vocab_unk(v);
    for (size_t i = 0; same && i < t.count; i++) same = t.ids[i] == json_integer_value(json_array_get(ids, i));
    if (!same) {
        for (size_t i = 0; i < t.count; i++)
            print_message("%d:%.*s ", (int)t.ids[i], (int)dgm_vocab_piece(v, t.ids[i]).size,
                          dgm_vocab_piece(v, t.ids[i]).data);
        char *wanted = json_dumps(ids, 0);
        fail_msg("%s: '%s' has other ids than %s", name, line, wanted);
    }
    assert_true(t.count < 4096);
    assert_int_equal(dgm_vocab_decode(v, t.ids, t.count, &back, spans, &err), DGM_OK);
    if (!unknown && !dgm_text_equal(dgm_text_trim(text_of_writer(&back)), dgm_text_trim(dgm_text_of(text))))
        fail_msg("%s: '%s' decodes to '%.*s', not '%s'", name, line, (int)back.size, (char *)back.data, text);
    for (size_t i = 0; i < t.count; i++) assert_true(spans[i].begin <= spans[i].end && spans[i].end <= back.size);
    dgm_tokens_free(&t);
    dgm_writer_free(&back);
}

static void test_tokenizer_json(void **state)
{
    (void)state;
    const json_t *lines = json_object_get(golden, "lines");
    size_t i, n;
    json_t *c;
    json_array_foreach(json_object_get(golden, "tokenizers"), i, c)
    {
        const char *name = json_string_value(json_object_get(c, "name"));
        const json_t *ids = json_object_get(c, "ids"), *text = json_object_get(c, "text");
        const json_t *around = json_object_get(c, "around");
        dgm_tokenizer_info info;
        dgm_gguf_writer *w = begin();
        if (dgm_vocab_from_tokenizer_json(w, DGM_SOURCE, json_object_get(c, "file"), 0, &info, &err) != DGM_OK)
            fail_msg("%s: %s", name, err.text);
        assert_true(info.bos == 0 && info.pad == 1 && info.eos == 2 && info.unk == 3);
        // an empty text is what stands around it
        assert_true(info.before_count + info.behind_count <= (int)json_array_size(around));
        for (int k = 0; k < info.behind_count; k++)
            assert_int_equal(info.behind[k], json_integer_value(json_array_get(around, json_array_size(around) - 1)));
        dgm_vocab *v = load(&w);
        assert_true(dgm_vocab_takes_text(v));
        for (n = 0; n < json_array_size(lines); n++)
            check_ids(v, name, text_at(lines, n), json_array_get(ids, n), text_at(text, n));
        dgm_vocab_close(&v);
    }
    assert_int_equal(i, 5);
}

// ---- what is refused ------------------------------------------------------------------------

static void refuse_json(const char *text, const char *message)
{
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    dgm_gguf_writer *w = begin();
    assert_int_not_equal(dgm_vocab_from_tokenizer_json(w, DGM_SOURCE, json, 0, NULL, &err), DGM_OK);
    assert_string_equal(err.text, message);
    dgm_gguf_writer_close(&w);
    json_decref(json);
}

static void test_refused(void **state)
{
    (void)state;
    refuse_json("{}", "no object 'model'");
    refuse_json("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}",
                "model: type 'WordPiece' is not supported; Unigram and BPE are");
    refuse_json("{\"model\":{\"type\":\"BPE\",\"vocab\":[[\"a\",0]]}}", "model.vocab is no list of a BPE model");
    // A few bytes do not get memory for millions of ids; holes of a size that files have are let through.
    refuse_json("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":16000000},\"merges\":[]}}",
                "ids up to 16000000, but only 2 tokens");
    refuse_json("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0]]},"
                "\"added_tokens\":[{\"id\":100005,\"content\":\"b\"}]}",
                "ids up to 100005, but only 2 tokens");
    refuse_json("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":16777216},\"merges\":[]}}",
                "model.vocab has no tokens, or ids above 16777215");
    refuse_json("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":90000},\"merges\":[]}}",
                "pre_tokenizer: BPE needs ByteLevel or Metaspace, not 'null'");
    refuse_json("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}",
                "pre_tokenizer: BPE needs ByteLevel or Metaspace, not 'null'");
    refuse_json("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a\"]},"
                "\"pre_tokenizer\":{\"type\":\"Metaspace\"}}",
                "model.merges: entry 0 is no pair of symbols without spaces");
    refuse_json("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},"
                "\"pre_tokenizer\":{\"type\":\"Digits\"}}",
                "pre_tokenizer: type 'Digits' is not supported");
    refuse_json("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\"]]}}",
                "model.vocab: entry 1 is no piece with its score");
    refuse_json("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\",-1]]},"
                "\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"A?\"}}",
                "normalizer: precompiled_charsmap is no base64 at character 1");
}

static void refuse_codes(const char *text, const char *message)
{
    dgm_bpe_codes c;
    char wanted[256];
    assert_int_not_equal(dgm_bpe_codes_read(&c, put("bad", text, strlen(text)), &err), DGM_OK);
    snprintf(wanted, sizeof wanted, "'%s': %s", in_folder("bad"), message);
    assert_string_equal(err.text, wanted);
}

static void test_files(void **state)
{
    (void)state;
    refuse_codes("#version: 0.2\na b\nc\n", "line 3: 'c' is no pair of symbols with or without a count");
    refuse_codes("#version: 0.9\na b\n", "line 1: codes of version '0.9'; 0.1 and 0.2 are known");
    refuse_codes("", "no merges in it");
    dgm_bpe_codes c;
    assert_int_equal(dgm_bpe_codes_parse(&c, dgm_text_of("a b 12\nab c</w> 3"), &err), DGM_OK);
    assert_true(c.merges.count == 2 && !c.end_apart);
    assert_string_equal(c.merges.items[1], "ab c</w>");
    dgm_bpe_codes_free(&c);
    assert_int_equal(dgm_bpe_codes_parse(&c, dgm_text_of("a b\n"), &err), DGM_OK);
    assert_true(c.merges.count == 1 && c.end_apart);
    dgm_bpe_codes_free(&c);
    assert_int_equal(dgm_bpe_codes_parse(&c, dgm_text_of("a b</w>\n"), &err), DGM_OK); // no merge makes b</w>
    assert_false(c.end_apart);
    dgm_bpe_codes_free(&c);
    assert_int_equal(dgm_bpe_codes_parse(&c, dgm_text_of("b </w>\na b</w>\n"), &err), DGM_OK);
    assert_true(c.end_apart);
    dgm_bpe_codes_free(&c);
    dgm_string_list dict;
    assert_int_equal(dgm_fairseq_dict_parse(&dict, dgm_text_of("the 12\nlow@@ 3\nx 0 #fairseq:overwrite\n"), &err),
                     DGM_OK);
    assert_int_equal(dict.count, 7);
    assert_string_equal(dict.items[3], "<unk>");
    assert_string_equal(dict.items[6], "x");
    dgm_string_list_free(&dict);
    assert_int_not_equal(dgm_fairseq_dict_parse(&dict, dgm_text_of("the 12\nlow\n"), &err), DGM_OK);
    assert_string_equal(err.text, "line 2: 'low' is no token with its count");
    static const char *const tokens[] = {"<s>", "low", "er</w>"};
    static const bool special[] = {true, false, false};
    assert_int_equal(dgm_bpe_respell(&dict, tokens, special, 3, &err), DGM_OK);
    assert_string_equal(dict.items[0], "<s>");
    assert_string_equal(dict.items[1], "low@@");
    assert_string_equal(dict.items[2], "er");
    dgm_string_list_free(&dict);
}

// Bytes changed, cut off, put in: what cannot be read is answered with one line, that of a file with its name.
static char *damage(const char *text, size_t *size, unsigned n)
{
    const size_t length = strlen(text), at = (n * 2654435761u) % length;
    char *copy = malloc(length + 2);
    memcpy(copy, text, length + 1);
    *size = length;
    if (n % 3 == 0) {
        copy[at] = (char)(copy[at] ^ (1 << n % 8));
    } else if (n % 3 == 1) {
        *size = at;
    } else {
        memmove(copy + at + 1, copy + at, length - at);
        copy[at] = "\n {}[],:\"0-x"[n % 12];
        *size = length + 1;
    }
    return copy;
}

static void check_message(dgm_status st)
{
    if (st == DGM_OK) return;
    assert_true(err.text[0] != 0 && strchr(err.text, '\n') == NULL);
}

static void test_damaged(void **state)
{
    (void)state;
    enum { TRIES = 200 };
    unsigned refused = 0;
    size_t size, i;
    json_t *c;
    const char *codes =
        json_string_value(json_object_get(json_array_get(json_object_get(golden, "subword_nmt"), 0), "codes"));
    for (unsigned n = 0; n < TRIES; n++) {
        char *bad = damage(codes, &size, n);
        dgm_bpe_codes b;
        const dgm_status st = dgm_bpe_codes_read(&b, put("codes.bpe", bad, size), &err);
        check_message(st);
        if (st != DGM_OK) assert_non_null(strstr(err.text, "codes.bpe': line "));
        refused += st != DGM_OK;
        dgm_bpe_codes_free(&b);
        free(bad);
    }
    assert_true(refused > 20);
    json_array_foreach(json_object_get(golden, "tokenizers"), i, c)
    {
        char *text = json_dumps(json_object_get(c, "file"), JSON_COMPACT);
        for (unsigned n = 0; n < TRIES; n++) {
            char *bad = damage(text, &size, n);
            json_t *json = NULL;
            dgm_status st = dgm_json_parse(&json, bad, size, &err);
            dgm_gguf_writer *w = begin();
            if (st == DGM_OK) st = dgm_vocab_from_tokenizer_json(w, DGM_SOURCE, json, 0, NULL, &err);
            check_message(st);
            refused += st != DGM_OK;
            dgm_gguf_writer_close(&w);
            json_decref(json);
            free(bad);
        }
        dgm_free(text); // of jansson, whose memory is ours
    }
    assert_true(refused > 500);
}

// ---- memory ---------------------------------------------------------------------------------

static dgm_status parse_codes(void)
{
    dgm_bpe_codes c;
    const dgm_status st = dgm_bpe_codes_parse(&c, dgm_text_of("#version: 0.2\na b\nab c\n"), NULL);
    dgm_bpe_codes_free(&c);
    return st;
}

static dgm_status open_and_use(const dgm_gguf *g)
{
    dgm_vocab *v;
    dgm_tokens t = {0};
    dgm_writer out = {0};
    DGM_TRY(dgm_vocabulary_load(g, DGM_SOURCE, &v, NULL, NULL));
    dgm_status st = dgm_vocab_encode(v, dgm_text_of("The Prime Minister isn't \xe2\x82\xac"), &t, NULL);
    if (st == DGM_OK) st = dgm_vocab_decode(v, t.ids, t.count, &out, NULL, NULL);
    dgm_writer_free(&out);
    dgm_tokens_free(&t);
    dgm_vocab_close(&v);
    return st;
}

static void test_memory(void **state)
{
    (void)state;
    ALLOCATIONS_FAIL(parse_codes());
    size_t i;
    json_t *c;
    json_array_foreach(json_object_get(golden, "tokenizers"), i, c)
    {
        if (i > 0 && i != 2) continue; // byte-level, and one with a normalizer
        json_t *file = json_deep_copy(json_object_get(c, "file"));
        json_array_clear(json_object_get(json_object_get(file, "model"), "merges"));
        dgm_gguf_writer *w = begin();
        assert_int_equal(dgm_vocab_from_tokenizer_json(w, DGM_SOURCE, file, 0, NULL, &err), DGM_OK);
        assert_int_equal(dgm_gguf_write(w, in_folder("m.gguf"), &err), DGM_OK);
        dgm_gguf_writer_close(&w);
        dgm_gguf *g;
        assert_int_equal(dgm_gguf_open(&g, in_folder("m.gguf"), &err), DGM_OK);
        ALLOCATIONS_FAIL(open_and_use(g));
        dgm_gguf_close(&g);
        json_decref(file);
    }
}

// A long word costs no more than its length says: this would take minutes otherwise.
static void test_long_word(void **state)
{
    (void)state;
    enum { SIZE = 300000 };
    dgm_vocab *v = open_codes(json_array_get(json_object_get(golden, "subword_nmt"), 0));
    char *text = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++) text[i] = "theingsta"[i * i % 9];
    dgm_tokens t = {0};
    assert_int_equal(dgm_vocab_encode(v, (dgm_text){text, SIZE}, &t, &err), DGM_OK);
    assert_true(t.count > SIZE / 20);
    dgm_tokens_free(&t);
    free(text);
    dgm_vocab_close(&v);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_subword_nmt), cmocka_unit_test(test_tokenizer_json), cmocka_unit_test(test_cut_in_mark),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_files),
        cmocka_unit_test(test_damaged),     cmocka_unit_test(test_memory),
        cmocka_unit_test(test_long_word),
    };
    if (argc > 1) golden_path = argv[1];
    dgm_json_init();
    dgm_mapfile f = packed_file(golden_path);
    golden = json_loadb((const char *)f.data, f.size, 0, NULL);
    dgm_mapfile_close(&f);
    if (!golden || !scratch_open()) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(golden);
    return scratch_close(failed);
}
