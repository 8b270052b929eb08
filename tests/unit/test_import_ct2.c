// SPDX-License-Identifier: MIT
// CTranslate2 folders: every binary version and storage type, what is refused, damaged files.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ct2_folder.h"
#include "dragoman/tools.h"
#include "format/gguf.h"
#include "format/shortlist.h"

typedef struct heard {
    char text[512];
} heard;

static void hear(void *cookie, const char *text)
{
    heard *h = cookie;
    const size_t n = strlen(h->text);
    snprintf(h->text + n, sizeof h->text - n, "%s\n", text);
}

static char output[80];

static dgm_status import(const ct2_folder *f, const char *type, heard *h, dgm_error *err)
{
    dgm_import_options o;
    dgm_import_default(&o);
    o.type = type;
    if (h) o.note = hear;
    o.note_cookie = h;
    snprintf(output, sizeof output, "%s/out.gguf", f->path);
    return dgm_import("ctranslate2", f->path, output, &o, err);
}

static dgm_gguf *open_output(void)
{
    dgm_gguf *g = NULL;
    dgm_error err;
    if (dgm_gguf_open(&g, output, &err) != DGM_OK) fail_msg("%s", err.text);
    return g;
}

// One row of a matrix of ours holds that of theirs.
static void expect_row(const dgm_gguf *g, const char *ours, int row, const char *theirs, int their_row, int cols,
                       float error)
{
    const dgm_tensor *t = dgm_gguf_find_tensor(g, ours);
    float out[64];
    if (!t) fail_msg("no tensor %s", ours);
    assert_int_equal(t->cols, cols);
    dgm_tensor_row_f32(t, row, out);
    for (int c = 0; c < cols; c++)
        if (fabsf(out[c] - ct2_weight(theirs, their_row * cols + c)) > error)
            fail_msg("%s[%d, %d] is %g, not %g", ours, row, c, (double)out[c],
                     (double)ct2_weight(theirs, their_row * cols + c));
}

static void expect_weights(const dgm_gguf *g, float error)
{
    expect_row(g, "src.embed", 3, "encoder/embeddings_0/weight", 3, CT2_D, error);
    expect_row(g, "tgt.embed", 7, "decoder/embeddings/weight", 7, CT2_D, error);
    expect_row(g, "out.weight", 2, "decoder/projection/weight", 2, CT2_D, error);
    expect_row(g, "enc.0.self.q.weight", 1, "encoder/layer_0/self_attention/linear_0/weight", 1, CT2_D, error);
    expect_row(g, "enc.0.self.k.weight", 1, "encoder/layer_0/self_attention/linear_0/weight", CT2_D + 1, CT2_D, error);
    expect_row(g, "enc.0.self.v.weight", 0, "encoder/layer_0/self_attention/linear_0/weight", 2 * CT2_D, CT2_D, error);
    expect_row(g, "dec.0.cross.v.weight", 2, "decoder/layer_0/attention/linear_1/weight", CT2_D + 2, CT2_D, error);
    expect_row(g, "dec.0.cross.o.weight", 2, "decoder/layer_0/attention/linear_2/weight", 2, CT2_D, error);
    expect_row(g, "dec.0.ffn.out.weight", 2, "decoder/layer_0/ffn/linear_1/weight", 2, CT2_F, error);
    const float *bias;
    assert_int_equal(dgm_gguf_vector(g, "enc.0.self.v.bias", CT2_D, DGM_REQUIRED, &bias, NULL), DGM_OK);
    assert_true(bias[1] == ct2_weight("encoder/layer_0/self_attention/linear_0/bias", 2 * CT2_D + 1));
}

static void test_types(void **state)
{
    (void)state;
    static const struct {
        dgm_stored_type type;
        int ours;
        float error; // int16 gets another scale
    } types[] = {{DGM_STORED_F32, DGM_TYPE_F32, 0},   {DGM_STORED_F16, DGM_TYPE_F16, 0},
                 {DGM_STORED_BF16, DGM_TYPE_BF16, 0}, {DGM_STORED_I8, DGM_TYPE_I8, 0},
                 {DGM_STORED_I16, DGM_TYPE_I16, 1e-4f}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        ct2_folder f = {.type = types[i].type};
        heard h = {""};
        dgm_error err = {""};
        ct2_make(&f);
        if (import(&f, NULL, &h, &err) != DGM_OK) fail_msg("%s", err.text);
        assert_non_null(strstr(h.text, "has no tokeniser"));
        dgm_gguf *g = open_output();
        assert_int_equal(dgm_gguf_find_tensor(g, "enc.0.self.q.weight")->type, types[i].ours);
        expect_weights(g, types[i].error);
        dgm_gguf_close(&g);
        ct2_remove(&f);
    }
}

// The same translation settings from every version; version 1 has other names.
static void test_versions(void **state)
{
    (void)state;
    for (int version = 1; version <= 6; version++)
        for (int integers = 0; integers < 2; integers++) {
            ct2_folder f = {.version = version, .type = integers ? DGM_STORED_I16 : DGM_STORED_F32};
            dgm_error err = {""};
            const char *norm = NULL, *positions = NULL;
            uint32_t heads = 0, offset = 0;
            int32_t start = -1, eos = -1;
            bool append = true;
            ct2_make(&f);
            if (import(&f, "f32", NULL, &err) != DGM_OK) fail_msg("version %d: %s", version, err.text);
            dgm_gguf *g = open_output();
            dgm_gguf_get_string(g, "dragoman.transformer.norm", DGM_REQUIRED, &norm, NULL);
            dgm_gguf_get_string(g, "dragoman.transformer.positions", DGM_REQUIRED, &positions, NULL);
            dgm_gguf_get_u32(g, "dragoman.transformer.heads", DGM_REQUIRED, 1, 64, &heads, NULL);
            dgm_gguf_get_u32(g, "dragoman.transformer.position_offset", DGM_REQUIRED, 0, 9, &offset, NULL);
            dgm_gguf_get_i32(g, "dragoman.target.start", DGM_REQUIRED, 0, 9, &start, NULL);
            dgm_gguf_get_i32(g, "dragoman.source.eos", DGM_REQUIRED, 0, 9, &eos, NULL);
            dgm_gguf_get_bool(g, "dragoman.source.append_eos", DGM_REQUIRED, &append, NULL);
            assert_string_equal(norm, "pre");
            assert_string_equal(positions, "sinusoid_marian");
            assert_int_equal(heads, version < 3 ? 8 : 2);
            assert_int_equal(offset, 1);
            assert_int_equal(start, 1);
            assert_int_equal(eos, 2);
            assert_int_equal(append, version == 6);
            if (!integers && version > 3) expect_weights(g, 0);
            if (version == 1)
                expect_row(g, "dec.0.cross.k.weight", 0, "transformer/decoder/layer_0/multi_head/conv1d_1/kernel:0", 0,
                           CT2_D, integers ? 1e-3f : 0);
            dgm_gguf_close(&g);
            ct2_remove(&f);
        }
}

static void test_positions(void **state)
{
    (void)state;
    ct2_folder f = {.positions = true, .post_norm = true};
    const char *text = NULL;
    dgm_error err = {""};
    ct2_make(&f);
    if (import(&f, "i8", NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_gguf *g = open_output();
    dgm_gguf_get_string(g, "dragoman.transformer.positions", DGM_REQUIRED, &text, NULL);
    assert_string_equal(text, "learned");
    dgm_gguf_get_string(g, "dragoman.transformer.norm", DGM_REQUIRED, &text, NULL);
    assert_string_equal(text, "post");
    assert_int_equal(dgm_gguf_find_tensor(g, "enc.pos")->type, DGM_TYPE_F32);
    expect_row(g, "dec.pos", 5, "decoder/position_encodings/encodings", 5, CT2_D, 0);
    dgm_gguf_close(&g);
    ct2_remove(&f);
}

// N-grams count for their first token; unknown tokens are left out; what is always allowed has no source.
static void test_vmap(void **state)
{
    (void)state;
    static const char vmap[] = "a\tb d nowhere\n\td\na b\te\r\nnowhere\ta\nno tab\n";
    ct2_folder f = {0};
    heard h = {""};
    dgm_error err = {""};
    dgm_shortlist *list = NULL;
    ct2_make(&f);
    ct2_write(&f, "vmap.txt", vmap, sizeof vmap - 1);
    if (import(&f, NULL, &h, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_non_null(strstr(h.text, "was taken as shortlist"));
    dgm_gguf *g = open_output();
    assert_int_equal(dgm_shortlist_load(&list, g, &err), DGM_OK);
    assert_int_equal(list->frequent_count, 4); // <unk>, <s>, </s>, d
    assert_int_equal(list->frequent[3], 6);
    assert_int_equal(list->at[3], 0);
    assert_int_equal(list->at[4], 3);
    assert_true(list->ids[0] == 4 && list->ids[1] == 6 && list->ids[2] == 7);
    dgm_shortlist_close(&list);
    dgm_gguf_close(&g);
    ct2_remove(&f);
}

static void expect_kind(const char *kind)
{
    const char *text = NULL;
    dgm_gguf *g = open_output();
    assert_int_equal(dgm_gguf_get_string(g, "dragoman.source.vocab.kind", DGM_REQUIRED, &text, NULL), DGM_OK);
    assert_string_equal(text, kind);
    dgm_gguf_close(&g);
}

// A tokeniser beside the model, in the folder around it, or named.
static void test_tokenisers(void **state)
{
    (void)state;
    static const char codes[] = "#version: 0.2\na b</w>\n";
    static const char spm[] = "\n\xe\n\5<unk>\x15\0\0\0\0\x18\2\n\xa\n\1a\x15\0\0\0\xbf\x18\1";
    ct2_folder f = {0};
    heard h = {""};
    dgm_error err = {""};
    char path[96];
    ct2_make(&f);
    assert_int_equal(import(&f, NULL, &h, &err), DGM_OK);
    assert_non_null(strstr(h.text, "has no tokeniser"));
    expect_kind("words");
    ct2_write(&f, "vmap.txt", codes, sizeof codes - 1); // under a name that nobody looks for
    dgm_import_options o;
    dgm_import_default(&o);
    snprintf(path, sizeof path, "%s/vmap.txt", f.path);
    o.bpe = path;
    assert_int_equal(dgm_import("ctranslate2", f.path, output, &o, &err), DGM_OK);
    expect_kind("bpe");
    o.source_spm = path;
    assert_int_equal(dgm_import("ctranslate2", f.path, output, &o, &err), DGM_ERR_ARGUMENT);
    o = (dgm_import_options){.size = sizeof o, .target_spm = path};
    assert_int_equal(dgm_import("ctranslate2", f.path, output, &o, &err), DGM_ERR_ARGUMENT);
    ct2_write(&f, "sentencepiece.model", spm, sizeof spm - 1);
    if (import(&f, NULL, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    expect_kind("sentencepiece");
    ct2_write(&f, "sentencepiece.model", "nonsense", 8);
    assert_int_not_equal(import(&f, NULL, NULL, &err), DGM_OK);
    assert_non_null(strstr(err.text, "sentencepiece.model"));
    ct2_remove(&f);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        ct2_folder f;
        const char *says;
    } cases[] = {
        {{.spec = "WhisperSpec", .revision = 3}, "Whisper, which recognises speech"},
        {{.spec = "TransformerDecoderSpec"}, "a decoder without an encoder"},
        {{.spec = "TransformerEncoderSpec"}, "an encoder without a decoder"},
        {{.spec = "NewSpec"}, "the specification 'NewSpec' is not known"},
        {{.revision = 8}, "revision 8 of TransformerSpec is not known"},
        {{.version = 7}, "binary version 7 of CTranslate2 is not known"},
        {{.extra = "encoder/layer_0/self_attention/relative_position_keys"}, "relative positions as vectors"},
        {{.extra = "decoder/layer_0/self_attention/rotary_dim"}, "rotary positions"},
        {{.extra = "decoder/unheard_of"}, "tensor 'decoder/unheard_of' is not part of"},
        {{.skip = "decoder/layer_0/attention/linear_2/weight"}, "attention/linear_2/weight' is missing"},
        {{.skip = "encoder/layer_0/ffn/layer_norm/gamma"}, "'encoder/layer_0/ffn/layer_norm/gamma' is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ct2_folder f = cases[i].f;
        dgm_error err = {""};
        ct2_make(&f);
        assert_int_not_equal(import(&f, NULL, NULL, &err), DGM_OK);
        if (!strstr(err.text, cases[i].says)) fail_msg("'%s' instead of '%s'", err.text, cases[i].says);
        assert_non_null(strstr(err.text, f.path));
        assert_int_not_equal(access(output, F_OK), 0);
        ct2_remove(&f);
    }
}

// Two thousand million rows of no numbers take no room in the file; they must take none in memory.
static void test_empty_rows(void **state)
{
    (void)state;
    static const char name[] = "encoder/embeddings_0/weight";
    ct2_folder f = {.version = 6};
    dgm_mapfile m;
    char path[96];
    dgm_error err = {""};
    ct2_make(&f);
    snprintf(path, sizeof path, "%s/model.bin", f.path);
    assert_int_equal(dgm_mapfile_open(&m, path, NULL), DGM_OK);
    uint8_t *data = malloc(m.size), *at;
    memcpy(data, m.data, m.size);
    at = memmem(data, m.size, name, sizeof name);
    assert_non_null(at);
    at += sizeof name + 1; // behind the number of dimensions
    const uint32_t shape[2] = {INT32_MAX, 0}, none = 0;
    uint32_t bytes;
    memcpy(&bytes, at + 9, sizeof bytes);
    memcpy(at, shape, sizeof shape);
    memcpy(at + 9, &none, sizeof none);
    const size_t head = (size_t)(at - data) + 13;
    memmove(data + head, data + head + bytes, m.size - head - bytes);
    ct2_write(&f, "model.bin", data, m.size - bytes);
    dgm_mapfile_close(&m);
    free(data);
    assert_int_equal(import(&f, NULL, NULL, &err), DGM_ERR_FORMAT);
    if (!strstr(err.text, "the source's embeddings have 2147483647 rows")) fail_msg("%s", err.text);
    ct2_remove(&f);
}

// 200 files with a few bytes changed, cut or put in: an import works or ends in a message that names the file.
static void test_damage(void **state)
{
    (void)state;
    dgm_rng rng = {.state = 4711};
    int refused = 0;
    for (int round = 0; round < 200; round++) {
        static const dgm_stored_type types[] = {DGM_STORED_F32, DGM_STORED_I8, DGM_STORED_I16, DGM_STORED_F16};
        ct2_folder f = {.version = 1 + round % 6, .type = types[round % 4]};
        dgm_mapfile m;
        char path[96];
        dgm_error err = {""};
        ct2_make(&f);
        snprintf(path, sizeof path, "%s/model.bin", f.path);
        assert_int_equal(dgm_mapfile_open(&m, path, NULL), DGM_OK);
        size_t size = m.size;
        uint8_t *data = malloc(size);
        memcpy(data, m.data, size);
        dgm_mapfile_close(&m);
        const size_t near = round % 2 ? size : 400; // heads of variables are worth more than weights
        for (int k = 0; k < 1 + round % 4; k++)
            data[dgm_rng_below(&rng, near)] ^= (uint8_t)(1 + dgm_rng_below(&rng, 255));
        if (round % 5 == 0) size = (size_t)dgm_rng_below(&rng, size);
        ct2_write(&f, "model.bin", data, size);
        free(data);
        const dgm_status st = import(&f, NULL, NULL, &err);
        if (st != DGM_OK) {
            refused++;
            if (!strstr(err.text, f.path) || strchr(err.text, '\n')) fail_msg("round %d: '%s'", round, err.text);
            assert_int_not_equal(access(output, F_OK), 0);
        }
        ct2_remove(&f);
    }
    assert_true(refused > 100);
}

static void test_no_memory(void **state)
{
    (void)state;
    ct2_folder f = {.type = DGM_STORED_I8};
    dgm_error err;
    ct2_make(&f);
    assert_int_equal(import(&f, NULL, NULL, &err), DGM_OK);
    const uint64_t live = dgm_mem_live();
    dgm_status st = DGM_ERR_MEMORY;
    for (uint64_t at = 1; st != DGM_OK; at++) {
        dgm_mem_inject(at, 1);
        st = import(&f, NULL, NULL, &err);
        dgm_mem_inject(0, 0);
        assert_int_equal(dgm_mem_live(), live);
        if (st != DGM_OK) assert_int_equal(st, DGM_ERR_MEMORY);
    }
    ct2_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),   cmocka_unit_test(test_versions), cmocka_unit_test(test_positions),
        cmocka_unit_test(test_vmap),    cmocka_unit_test(test_tokenisers), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_damage),  cmocka_unit_test(test_no_memory), cmocka_unit_test(test_empty_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
