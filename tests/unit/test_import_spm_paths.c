// SPDX-License-Identifier: MIT
// Names of files are taken out of SentencePiece models, and nothing else is: made-up messages byte by byte, cut ones,
// and a real model with such names put in.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mapfile.h"
#include "base/protobuf.h"
#include "failures.h"
#include "import/spm_paths.h"
#include "spm_remembers.h"
#include "text/vocab.h"

#define BYTES(text) (dgm_text){text, sizeof text - 1}

static void expect(dgm_text model, dgm_text wanted)
{
    dgm_writer out = {0};
    dgm_error err = {""};
    if (dgm_spm_without_paths(&out, model.data, model.size, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(out.size, wanted.size);
    if (wanted.size) assert_memory_equal(out.data, wanted.data, wanted.size);
    dgm_writer_free(&out);
}

static void test_names_go(void **state)
{
    (void)state;
    // Two inputs, a prefix, and between them the size of the vocabulary.
    expect(BYTES("\x12\x0b\x0a\x01x\x20\x07\x0a\x01y\x12\x01z"), BYTES("\x12\x02\x20\x07"));
    // 54: seed_sentencepieces_file.
    expect(BYTES("\x12\x06\xb2\x03\x01s\x18\x01"), BYTES("\x12\x02\x18\x01"));
    // Nothing is left of the settings but that there were some: what stands behind them stays behind.
    expect(BYTES("\x12\x03\x0a\x01x\x0a\x03\x0a\x01p"), BYTES("\x12\x00\x0a\x03\x0a\x01p"));
    // The rules' file of both normalisers; their names (1) and maps (2) stay.
    expect(BYTES("\x1a\x09\x0a\x01n\x32\x01r\x12\x01m"), BYTES("\x1a\x06\x0a\x01n\x12\x01m"));
    expect(BYTES("\x2a\x06\x32\x01r\x12\x01m"), BYTES("\x2a\x03\x12\x01m"));
}

static void test_all_else_stays(void **state)
{
    (void)state;
    static const dgm_text models[] = {
        BYTES(""),
        BYTES("\x0a\x03\x0a\x01p\x0a\x05\x0a\x01q\x18\x03"), // pieces have fields 1 and 3, too
        BYTES("\x22\x05\x0a\x03\x0a\x01t"),                  // self_test: 1 in it is no file
        BYTES("\x12\x04\x32\x02xy"),                         // 6 of a trainer is no rules' file
        BYTES("\x1a\x04\x0a\x02xy"),                         // nor 1 of a normaliser an input
        BYTES("\x12\x02\x08\x05"),                           // a number with the number of `input`
        BYTES("\x10\x05\x18\x07"),                           // settings that are no messages
        BYTES("\x12\x82\x00\x20\x07"),                       // a size that is longer than it need be
        BYTES("\xfa\x07\x02uv\x9d\x08\x01\x02\x03\x04\x12\x00"), // unknown fields, empty settings
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) expect(models[i], models[i]);
}

// Every beginning of a message is taken as it is, if it ends with a field, or refused.
static void test_cut(void **state)
{
    (void)state;
    const dgm_text model = BYTES("\x0a\x03\x0a\x01p\x12\x08\x0a\x01x\x12\x03y/z\x1a\x03\x32\x01r");
    int refused = 0;
    for (size_t size = 0; size <= model.size; size++) {
        dgm_writer out = {0};
        dgm_error err = {""};
        char *copy = malloc(size + !size); // its end is where a checker of memory sees it
        memcpy(copy, model.data, size);
        const dgm_status st = dgm_spm_without_paths(&out, copy, size, &err);
        const bool whole = size == 0 || size == 5 || size == 15 || size == model.size;
        assert_int_equal(st, whole ? DGM_OK : DGM_ERR_FORMAT);
        if (!whole) assert_non_null(strstr(err.text, "damaged SentencePiece model"));
        refused += !whole;
        dgm_writer_free(&out);
        free(copy);
    }
    assert_int_equal(refused, (int)model.size - 3);
    dgm_writer out = {0};
    const dgm_text inside = BYTES("\x12\x02\x0a\x05zzzzz"); // whole outside, cut inside
    assert_int_equal(dgm_spm_without_paths(&out, inside.data, inside.size, NULL), DGM_ERR_FORMAT);
    dgm_writer_free(&out);
}

// Names before the first and behind the last field of the settings of a real model.
static void put_names_in(dgm_writer *out, const dgm_mapfile *model)
{
    dgm_reader r = dgm_reader_over(model->data, model->size);
    size_t first = 0;
    for (dgm_proto_field f; dgm_proto_next(&r, &f); first = r.pos) {
        if (f.number != 2) {
            dgm_write_bytes(out, (const uint8_t *)model->data + first, r.pos - first);
            continue;
        }
        dgm_writer trainer = {0};
        write_short_field(&trainer, 1, PRIVATE_FOLDER, sizeof PRIVATE_FOLDER - 1);
        dgm_write_bytes(&trainer, f.payload.data, f.payload.size);
        write_short_field(&trainer, 2, PRIVATE_FOLDER "/joint", sizeof PRIVATE_FOLDER + 5);
        assert_in_range(trainer.size, 1, 127);
        write_short_field(out, 2, trainer.data, trainer.size);
        dgm_writer_free(&trainer);
    }
    assert_false(r.bad);
}

static void expect_same_tokens(const dgm_writer *model, const dgm_mapfile *other)
{
    dgm_vocab_source a = {.kind = DGM_VOCAB_SENTENCEPIECE, .unk = 1, .pad = -1, .bos = -1}, b = a;
    dgm_vocab *one = NULL, *two = NULL;
    dgm_tokens x = {0}, y = {0};
    const dgm_text line = dgm_text_of("“Prime Minister” of Österreich: 1,234.50 € 漢 done.");
    a.spm = model->data, a.spm_size = model->size;
    b.spm = other->data, b.spm_size = other->size;
    assert_int_equal(dgm_vocab_open(&one, &a, NULL), DGM_OK);
    assert_int_equal(dgm_vocab_open(&two, &b, NULL), DGM_OK);
    assert_int_equal(dgm_vocab_size(one), dgm_vocab_size(two));
    for (int32_t i = 0; i < dgm_vocab_size(one); i++)
        assert_true(dgm_text_equal(dgm_vocab_piece(one, i), dgm_vocab_piece(two, i)));
    assert_int_equal(dgm_vocab_encode(one, line, &x, NULL), DGM_OK);
    assert_int_equal(dgm_vocab_encode(two, line, &y, NULL), DGM_OK);
    assert_int_equal(x.count, y.count);
    assert_memory_equal(x.ids, y.ids, x.count * sizeof *x.ids);
    dgm_tokens_free(&x);
    dgm_tokens_free(&y);
    dgm_vocab_close(&one);
    dgm_vocab_close(&two);
}

static dgm_status in_vain(const dgm_writer *named)
{
    dgm_writer out = {0};
    const dgm_status st = dgm_spm_without_paths(&out, named->data, named->size, NULL);
    dgm_writer_free(&out);
    return st;
}

static void test_real_model(void **state)
{
    (void)state;
    dgm_mapfile model;
    assert_int_equal(dgm_mapfile_open(&model, "tests/data/text/tiny.spm", NULL), DGM_OK);
    dgm_writer bare = {0}, named = {0}, again = {0};
    assert_int_equal(dgm_spm_without_paths(&bare, model.data, model.size, NULL), DGM_OK);
    assert_int_equal(bare.size, model.size); // what lies in the tree has no names
    assert_memory_equal(bare.data, model.data, model.size);
    put_names_in(&named, &model);
    assert_non_null(memmem(named.data, named.size, PRIVATE_FOLDER, 6));
    assert_int_equal(dgm_spm_without_paths(&again, named.data, named.size, NULL), DGM_OK);
    assert_int_equal(again.size, model.size);
    assert_memory_equal(again.data, model.data, model.size);
    expect_same_tokens(&named, &model);
    ALLOCATIONS_FAIL(in_vain(&named));
    dgm_writer_free(&bare);
    dgm_writer_free(&named);
    dgm_writer_free(&again);
    dgm_mapfile_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_go),
        cmocka_unit_test(test_all_else_stays),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_real_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
