// SPDX-License-Identifier: MIT SentencePiece models of every kind against the library's own answers
// (tests/data/text/spm_golden.json, made by tests/oracle/check_spm.py): ids, spans, decoded text of real lines, of
// hostile bytes and of code points; pieces and their ids; lists of drawn ids. Then: allocation failures of each kind,
// and times that grow as texts do.
#include "unit/packed.h"
#include "unit/text_data.h"

#include <jansson.h>
#include <stdlib.h>

#include "format/gguf.h"
#include "text/spm_private.h"

// A model file by its name in the golden: a SentencePiece model, or one of ours and a side of it.
typedef struct opened {
    dgm_mapfile file;
    dgm_gguf *gguf;
    dgm_spm *spm;
} opened;

static opened open_model(const char *name)
{
    opened o = {0};
    dgm_error err;
    char path[256], key[64];
    const uint8_t *bytes = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s", name);
    char *side = strchr(path, ':');
    if (side) {
        *side++ = 0;
        snprintf(key, sizeof key, "dragoman.%s.vocab.sentencepiece", side);
        if (dgm_gguf_open(&o.gguf, path, &err) != DGM_OK) fail_msg("%s", err.text);
        assert_int_equal(dgm_gguf_get_bytes(o.gguf, key, DGM_REQUIRED, &bytes, &size, &err),
                         DGM_OK);
    } else {
        if (dgm_mapfile_open(&o.file, path, &err) != DGM_OK) fail_msg("%s", err.text);
        bytes = o.file.data;
        size = o.file.size;
    }
    // A copy that goes away at once: nothing of it may be kept.
    void *copy = dgm_malloc(size);
    memcpy(copy, bytes, size);
    if (dgm_spm_open(&o.spm, copy, size, &err) != DGM_OK) fail_msg("%s: %s", name, err.text);
    dgm_free(copy);
    return o;
}

static void close_model(opened *o)
{
    dgm_spm_close(&o->spm);
    dgm_gguf_close(&o->gguf);
    if (o->file.data) dgm_mapfile_close(&o->file);
}

// ---- digests -------------------------------------------------------------------------------

typedef struct answer {
    dgm_writer bytes; // what the digest is of
    int32_t *ids;
    size_t count, cap;
} answer;

static dgm_status take_text(void *arg, const char *text, size_t size)
{
    dgm_write_bytes(&((answer *)arg)->bytes, text, size);
    return DGM_OK;
}

static dgm_status take_token(void *arg, int32_t piece, uint32_t begin, uint32_t end)
{
    answer *a = arg;
    dgm_write_u32(&a->bytes, (uint32_t)piece);
    dgm_write_u32(&a->bytes, begin);
    dgm_write_u32(&a->bytes, end);
    DGM_TRY(dgm_grow(&a->ids, &a->cap, a->count + 1, sizeof *a->ids, NULL));
    a->ids[a->count++] = piece;
    return DGM_OK;
}

static dgm_status take_again(void *arg, int32_t piece, uint32_t begin, uint32_t end)
{
    answer *a = arg;
    dgm_write_u32(&a->bytes, (uint32_t)piece);
    dgm_write_u32(&a->bytes, begin);
    dgm_write_u32(&a->bytes, end);
    return DGM_OK;
}

static uint32_t crc_of(const void *data, size_t size)
{
    return (uint32_t)crc32(crc32(0, NULL, 0), data, (uInt)size);
}

static uint32_t short_digest(const void *data, size_t size)
{
    return crc_of(data, size) & 0xFFFF;
}

static uint32_t digest_ids(const dgm_spm *spm, answer *a, const int32_t *ids, size_t count)
{
    if (count)
        assert_int_equal(dgm_spm_decode(spm, ids, count, take_text, take_again, a, NULL), DGM_OK);
    return short_digest(a->bytes.data, a->bytes.size);
}

static uint32_t digest(const dgm_spm *spm, answer *a, const char *text, size_t size)
{
    a->bytes.size = a->count = 0;
    if (dgm_spm_encode(spm, text, size, take_token, a, NULL) != DGM_OK)
        return short_digest("error", 5);
    return digest_ids(spm, a, a->ids, a->count);
}

static void check(const char *model, const char *what, size_t i, uint32_t got, const json_t *want)
{
    const json_int_t digest_ = json_integer_value(json_array_get(want, i));
    if ((json_int_t)got != digest_)
        fail_msg("%s: %s %zu: %u should be %u", model, what, i, got, (unsigned)digest_);
}

// ---- texts ---------------------------------------------------------------------------------

typedef struct texts {
    char **items;
    size_t *sizes, count;
} texts;

static texts unhex(const json_t *list)
{
    texts t = {.count = json_array_size(list)};
    t.items = calloc(t.count, sizeof *t.items);
    t.sizes = calloc(t.count, sizeof *t.sizes);
    for (size_t i = 0; i < t.count; i++) {
        const json_t *item = json_array_get(list, i);
        const char *hex = json_string_value(item);
        t.sizes[i] = json_string_length(item) / 2;
        t.items[i] = malloc(t.sizes[i] + 1);
        for (size_t k = 0; k < t.sizes[i]; k++) {
            const char pair[3] = {hex[2 * k], hex[2 * k + 1], 0};
            t.items[i][k] = (char)strtol(pair, NULL, 16);
        }
    }
    return t;
}

static void free_texts(texts *t)
{
    for (size_t i = 0; i < t->count; i++) free(t->items[i]);
    free(t->items);
    free(t->sizes);
}

// 256 code points from `first` on, a space behind every 16th; surrogates, too, in three bytes.
static size_t put_block(uint32_t first, char *out)
{
    size_t size = 0;
    for (uint32_t c = first; c < first + 256; c++) {
        if (c >= 0xD800 && c < 0xE000) {
            out[size++] = (char)(0xE0 | c >> 12);
            out[size++] = (char)(0x80 | (c >> 6 & 63));
            out[size++] = (char)(0x80 | (c & 63));
        } else {
            size += dgm_utf8_put(c, out + size);
        }
        if (c % 16 == 15) out[size++] = ' ';
    }
    return size;
}

// The blocks of the golden: all of the first plane, some of others.
static uint32_t block_at(size_t i)
{
    if (i <= 256) return (uint32_t)i * 256;
    if (i < 257 + 11) return 0x1F000 + (uint32_t)(i - 257) * 256;
    return i == 268 ? 0xE0000 : 0x10FF00;
}

// ---- tests ---------------------------------------------------------------------------------

static json_t *golden;
static dgm_mapfile golden_file;

static void check_pieces(const char *name, const dgm_spm *spm, const json_t *row)
{
    dgm_writer spelled = {0}, found = {0};
    assert_int_equal(dgm_spm_size(spm), json_integer_value(json_object_get(row, "size")));
    assert_int_equal(dgm_spm_unk(spm), json_integer_value(json_object_get(row, "unk")));
    for (int32_t i = 0; i < dgm_spm_size(spm); i++) {
        size_t size;
        const char *piece = dgm_spm_piece(spm, i, &size);
        if (i) dgm_write_u8(&spelled, '\n');
        dgm_write_bytes(&spelled, piece, size);
        dgm_write_u32(&found, (uint32_t)dgm_spm_id(spm, piece, size));
    }
    if (crc_of(spelled.data, spelled.size) !=
        (uint32_t)json_integer_value(json_object_get(row, "pieces")))
        fail_msg("%s: pieces", name);
    if (crc_of(found.data, found.size) !=
        (uint32_t)json_integer_value(json_object_get(row, "found")))
        fail_msg("%s: their ids", name);
    assert_int_equal(dgm_spm_id(spm, "no such piece", 13), -1);
    assert_int_equal(dgm_spm_id(spm, "", 0), -1);
    dgm_writer_free(&spelled);
    dgm_writer_free(&found);
}

static void check_drawn(const char *name, const dgm_spm *spm, answer *a, const json_t *want)
{
    uint32_t random = 1;
    for (size_t i = 0; i < json_array_size(want); i++) {
        int32_t ids[24];
        const size_t count = i % 24 + 1;
        for (size_t k = 0; k < count; k++) {
            random = random * 1664525u + 1013904223u;
            ids[k] = (int32_t)((random >> 8) % (uint32_t)dgm_spm_size(spm));
        }
        a->bytes.size = 0;
        assert_int_equal(dgm_spm_decode(spm, ids, count, take_text, take_again, a, NULL), DGM_OK);
        // The text, encoded: what the pieces are made for.
        const size_t text_size = a->bytes.size - count * 12; // behind it id, begin and end of each
        char *text = dgm_strndup((const char *)a->bytes.data, text_size);
        if (dgm_spm_encode(spm, text, text_size, take_again, a, NULL) != DGM_OK)
            dgm_write_text(&a->bytes, "error");
        dgm_free(text);
        check(name, "drawn ids", i, short_digest(a->bytes.data, a->bytes.size), want);
    }
}

static void test_equals_library(void **state)
{
    (void)state;
    texts hostile = unhex(json_object_get(golden, "hostile"));
    const json_t *models = json_object_get(golden, "models");
    answer a = {0};
    assert_in_range(json_array_size(models), 40, 1000);
    assert_in_range(hostile.count, 80, 1000);
    for (size_t m = 0; m < json_array_size(models); m++) {
        const json_t *row = json_array_get(models, m);
        const char *name = json_string_value(json_object_get(row, "model"));
        opened o = open_model(name);
        check_pieces(name, o.spm, row);
        const json_t *want = json_object_get(row, "hostile");
        assert_int_equal(json_array_size(want), hostile.count);
        for (size_t i = 0; i < hostile.count; i++)
            check(name, "hostile text", i, digest(o.spm, &a, hostile.items[i], hostile.sizes[i]),
                  want);
        const json_t *points = json_object_get(row, "points");
        char block[256 * 4 + 16];
        for (size_t i = 0; i < json_array_size(points); i++)
            check(name, "code points", i, digest(o.spm, &a, block, put_block(block_at(i), block)),
                  points);
        check_drawn(name, o.spm, &a, json_object_get(row, "drawn"));
        close_model(&o);
    }
    free_texts(&hostile);
    dgm_writer_free(&a.bytes);
    dgm_free(a.ids);
}

static void test_lines(void **state)
{
    (void)state;
    const json_t *models = json_object_get(golden, "models");
    answer a = {0};
    const char *file;
    json_t *unused;
    json_object_foreach(json_object_get(json_array_get(models, 0), "lines"), file, unused)
    {
        text_lines lines = text_lines_open(file);
        assert_in_range(lines.count, 30, 1000);
        for (size_t m = 0; m < json_array_size(models); m++) {
            const json_t *row = json_array_get(models, m);
            const char *name = json_string_value(json_object_get(row, "model"));
            opened o = open_model(name);
            const json_t *want = json_object_get(json_object_get(row, "lines"), file);
            assert_int_equal(json_array_size(want), lines.count);
            for (size_t i = 0; i < lines.count; i++)
                check(name, file, i, digest(o.spm, &a, lines.lines[i].data, lines.lines[i].size),
                      want);
            close_model(&o);
        }
        text_lines_close(&lines);
    }
    dgm_writer_free(&a.bytes);
    dgm_free(a.ids);
}

// Every allocation of open, encode and decode fails once; nothing is lost, and the message says so.
static void test_allocation_failures(void **state)
{
    (void)state;
    static const char *const names[] = {"unigram-nfkc", "bpe-unused", "word-user", "char-user",
                                        "unigram-rules"};
    static const char text[] = "a user defined \xEF\xBC\xA1 bad cab ing abba \xFF end...";
    for (size_t m = 0; m < sizeof names / sizeof *names; m++) {
        char path[64];
        snprintf(path, sizeof path, "spm/%s.spm", names[m]);
        dgm_mapfile file = text_file(path);
        answer a = {0};
        assert_int_equal(dgm_grow(&a.ids, &a.cap, 1000, sizeof *a.ids, NULL), DGM_OK);
        dgm_write_zeros(&a.bytes, 100000);
        const uint64_t live = dgm_mem_live();
        uint64_t n = 1;
        for (dgm_status st = DGM_ERR_MEMORY; st != DGM_OK; n++) {
            dgm_error err = {0};
            dgm_spm *spm = NULL;
            a.bytes.size = a.count = 0;
            dgm_mem_inject(n, 1);
            st = dgm_spm_open(&spm, file.data, file.size, &err);
            if (st == DGM_OK) st = dgm_spm_encode(spm, text, sizeof text - 1, take_token, &a, &err);
            if (st == DGM_OK)
                st = dgm_spm_decode(spm, a.ids, a.count, take_text, take_again, &a, &err);
            dgm_mem_inject(0, 0);
            dgm_spm_close(&spm);
            assert_int_equal(dgm_mem_live(), live);
            if (st != DGM_OK) assert_int_equal(st, DGM_ERR_MEMORY);
            if (st != DGM_OK) assert_string_equal(err.text, "out of memory");
        }
        assert_in_range(n, 7, 40);
        dgm_writer_free(&a.bytes);
        dgm_free(a.ids);
        dgm_mapfile_close(&file);
    }
}

// A piece with NUL, with a byte that is no character, and the same spelling twice.
static void test_bad_pieces(void **state)
{
    (void)state;
    static const char *const last[] = {"\x0A\x04\x0A\x02g\0", "\x0A\x05\x0A\x03\xE2\x96\0",
                                       "\x0A\x04\x0A\x02g\xFF", "\x0A\x04\x0A\x02go"};
    static const size_t sizes[] = {6, 7, 6, 6};
    static const char *const says[] = {"piece is not UTF-8", "piece is not UTF-8",
                                       "piece is not UTF-8", "a piece is there twice"};
    for (size_t i = 0; i < 4; i++) {
        dgm_writer w = {0};
        dgm_error err;
        dgm_spm *spm;
        dgm_write_bytes(&w, "\x0A\x09\x0A\x05<unk>\x18\x02\x0A\x04\x0A\x02go", 17);
        assert_int_equal(dgm_spm_open(&spm, w.data, w.size, &err), DGM_OK);
        dgm_spm_close(&spm);
        dgm_write_bytes(&w, last[i], sizes[i]);
        assert_int_equal(dgm_spm_open(&spm, w.data, w.size, &err), DGM_ERR_FORMAT);
        assert_null(spm);
        if (!strstr(err.text, says[i])) fail_msg("%zu: %s", i, err.text);
        dgm_writer_free(&w);
    }
}

// A model of so many pieces of six letters; together: whose first places in the index, of 4,096, are one.
static void write_pieces(dgm_writer *w, int count, bool together)
{
    dgm_write_bytes(w, "\x0A\x09\x0A\x05<unk>\x18\x02", 11);
    for (uint32_t n = 0; count > 0; n++) {
        char piece[7] = "";
        uint64_t hash = SPM_HASH_FIRST;
        for (uint32_t i = 0, rest = n; i < 6; i++, rest /= 26) {
            piece[i] = (char)('a' + rest % 26);
            hash = dgm_spm_hash(hash, piece[i]);
        }
        if (together && ((hash >> 32) & 4095) != 7) continue;
        dgm_write_bytes(w, "\x0A\x08\x0A\x06", 4);
        dgm_write_bytes(w, piece, 6);
        count--;
    }
}

// Pieces that were chosen to fall on one place of the index would take a square of time: they are refused.
static void test_colliding_pieces(void **state)
{
    (void)state;
    for (int together = 0; together < 2; together++) {
        dgm_writer w = {0};
        dgm_error err = {0};
        dgm_spm *spm = NULL;
        write_pieces(&w, 1200, together);
        const dgm_status st = dgm_spm_open(&spm, w.data, w.size, &err);
        assert_int_equal(st, together ? DGM_ERR_FORMAT : DGM_OK);
        if (together && !strstr(err.text, "hinder")) fail_msg("%s", err.text);
        dgm_spm_close(&spm);
        dgm_writer_free(&w);
    }
}

// What comes from the caller stops all that follows.
static dgm_status stop_at_second(void *arg, int32_t piece, uint32_t begin, uint32_t end)
{
    (void)piece, (void)begin, (void)end;
    return ++*(int *)arg == 2 ? DGM_ERR_ARGUMENT : DGM_OK;
}

static void test_stops(void **state)
{
    (void)state;
    opened o = open_model("tests/data/text/tiny.spm");
    int calls = 0;
    assert_int_equal(dgm_spm_encode(o.spm, "a b c d", 7, stop_at_second, &calls, NULL),
                     DGM_ERR_ARGUMENT);
    assert_int_equal(calls, 2);
    close_model(&o);
}

static int open_golden(void **state)
{
    (void)state;
    golden_file = packed_file("tests/data/text/spm_golden.json");
    golden = json_loadb((const char *)golden_file.data, golden_file.size, 0, NULL);
    return golden ? 0 : -1;
}

static int close_golden(void **state)
{
    (void)state;
    json_decref(golden);
    dgm_mapfile_close(&golden_file);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_library),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_bad_pieces),
        cmocka_unit_test(test_colliding_pieces),
        cmocka_unit_test(test_stops),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
