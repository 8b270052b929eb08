// SPDX-License-Identifier: MIT
// A tiny CTranslate2 folder that a test makes itself, in every binary version and storage type: one layer each, width
// 8, two heads (8 where no variable says it), vocabulary of 8. Weights are multiples of 1/8. Functions fail the running
// cmocka test on errors. Include cmocka.h first.
#ifndef DGM_TESTS_UNIT_CT2_FOLDER_H
#define DGM_TESTS_UNIT_CT2_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/mapfile.h"
#include "import/store.h"

enum { CT2_D = 8, CT2_F = 6, CT2_V = 8 };

typedef struct ct2_folder {
    char path[64];
    int version;              // 1 to 6; 0: 6
    dgm_stored_type type;     // of matrices; OTHER: f32
    const char *spec;         // NULL: TransformerSpec
    int revision;             // 0: 7
    const char *skip;         // leave this variable out
    const char *extra;        // add this one, [2]
    bool post_norm, positions;
    dgm_writer out;
    uint32_t count;
} ct2_folder;

static inline float ct2_weight(const char *name, int i)
{
    unsigned h = 7;
    for (const char *c = name; *c; c++) h = h * 31 + (unsigned char)*c;
    const float x = (float)((int)((h + (unsigned)i * 2654435761u) >> 13) % 17 - 8) / 8;
    return strstr(name, "gamma") ? 1 + x / 8 : x;
}

static inline void ct2_put_string(dgm_writer *w, const char *text)
{
    dgm_write_u16(w, (uint16_t)(strlen(text) + 1));
    dgm_write_bytes(w, text, strlen(text) + 1);
}

static inline void ct2_head(ct2_folder *f, const char *name, int rank, const int *shape, int type, int size,
                            uint32_t elements)
{
    ct2_put_string(&f->out, name);
    dgm_write_u8(&f->out, (uint8_t)rank);
    for (int i = 0; i < rank; i++) dgm_write_u32(&f->out, (uint32_t)shape[i]);
    dgm_write_u8(&f->out, (uint8_t)(f->version >= 4 ? type : size));
    dgm_write_u32(&f->out, f->version >= 4 ? elements * (uint32_t)size : elements);
    f->count++;
}

static inline void ct2_floats(ct2_folder *f, const char *name, int rank, const int *shape, const float *values, int n)
{
    ct2_head(f, name, rank, shape, 0, 4, (uint32_t)n);
    for (int i = 0; i < n; i++) dgm_write_f32(&f->out, values[i]);
}

static inline void ct2_flag(ct2_folder *f, const char *name, int8_t value)
{
    if (f->skip && strcmp(name, f->skip) == 0) return;
    ct2_head(f, name, 0, NULL, 1, 1, 1);
    dgm_write_u8(&f->out, (uint8_t)value);
}

static inline void ct2_vector(ct2_folder *f, const char *name, int n)
{
    float v[64];
    if (f->skip && strcmp(name, f->skip) == 0) return;
    for (int i = 0; i < n; i++) v[i] = ct2_weight(name, i);
    ct2_floats(f, name, 1, &n, v, n);
}

// int8: every row over its own largest number, as CTranslate2 does; int16: 512 for all.
static inline void ct2_matrix(ct2_folder *f, const char *name, int rows, int cols)
{
    const int shape[2] = {rows, cols}, n = rows * cols;
    float v[256], scale[64];
    char scale_name[160];
    if (f->skip && strcmp(name, f->skip) == 0) return;
    for (int i = 0; i < n; i++) v[i] = ct2_weight(name, i);
    snprintf(scale_name, sizeof scale_name, "%s_scale", name);
    switch (f->type) {
    case DGM_STORED_I8:
        ct2_head(f, name, 2, shape, 1, 1, (uint32_t)n);
        for (int r = 0; r < rows; r++) {
            scale[r] = 64;
            for (int c = 0; c < cols; c++) dgm_write_u8(&f->out, (uint8_t)(int8_t)(v[r * cols + c] * scale[r]));
        }
        ct2_floats(f, scale_name, 1, &rows, scale, rows);
        break;
    case DGM_STORED_I16:
        ct2_head(f, name, 2, shape, 2, 2, (uint32_t)n);
        scale[0] = f->version == 1 ? 1000 : 512;
        for (int i = 0; i < n; i++) dgm_write_u16(&f->out, (uint16_t)(int16_t)(v[i] * scale[0]));
        if (f->version > 1) ct2_floats(f, scale_name, 0, NULL, scale, 1);
        break;
    case DGM_STORED_F16:
        ct2_head(f, name, 2, shape, 4, 2, (uint32_t)n);
        for (int i = 0; i < n; i++) dgm_write_u16(&f->out, dgm_float_to_half(v[i]));
        break;
    case DGM_STORED_BF16:
        ct2_head(f, name, 2, shape, 5, 2, (uint32_t)n);
        for (int i = 0; i < n; i++) {
            uint32_t bits;
            memcpy(&bits, &v[i], 4);
            dgm_write_u16(&f->out, (uint16_t)(bits >> 16));
        }
        break;
    default:
        ct2_floats(f, name, 2, shape, v, n);
    }
}

// Names as files of revision 1 have them, after OpenNMT-tf.
static inline const char *ct2_name(const ct2_folder *f, const char *layer, const char *part)
{
    static char out[4][160];
    static int at;
    char *to = out[at++ % 4];
    snprintf(to, 160, "%s/%s", layer, part);
    return f->revision == 1 ? (snprintf(to, 160, "transformer/%s/%s:0", layer, part), to) : to;
}

static inline void ct2_linear(ct2_folder *f, const char *layer, int rows, int cols)
{
    ct2_matrix(f, ct2_name(f, layer, f->revision == 1 ? "kernel" : "weight"), rows, cols);
    ct2_vector(f, ct2_name(f, layer, "bias"), rows);
}

static inline void ct2_norm(ct2_folder *f, const char *layer)
{
    ct2_vector(f, ct2_name(f, layer, "gamma"), CT2_D);
    ct2_vector(f, ct2_name(f, layer, "beta"), CT2_D);
}

static inline void ct2_side(ct2_folder *f, bool decoder)
{
    const bool first = f->revision == 1;
    const char *side = decoder ? "decoder" : "encoder";
    char at[80], name[128];
    static const char *const linear[2][3] = {{"linear_0", "linear_1", "linear_2"}, {"conv1d", "conv1d_1", "conv1d_2"}};
    const char *norm = first ? "LayerNorm" : "layer_norm";
    const char *self = !first ? "self_attention" : decoder ? "masked_multi_head" : "multi_head";
    const char *cross = first ? "multi_head" : "attention";
    snprintf(at, sizeof at, "%s/layer_0", side);
#define PART(...) (snprintf(name, sizeof name, __VA_ARGS__), name)
    ct2_linear(f, PART("%s/%s/%s", at, self, linear[first][0]), 3 * CT2_D, CT2_D);
    ct2_linear(f, PART("%s/%s/%s", at, self, linear[first][1]), CT2_D, CT2_D);
    ct2_norm(f, PART("%s/%s/%s", at, self, norm));
    if (decoder) {
        ct2_linear(f, PART("%s/%s/%s", at, cross, linear[first][0]), CT2_D, CT2_D);
        ct2_linear(f, PART("%s/%s/%s", at, cross, linear[first][1]), 2 * CT2_D, CT2_D);
        ct2_linear(f, PART("%s/%s/%s", at, cross, linear[first][2]), CT2_D, CT2_D);
        ct2_norm(f, PART("%s/%s/%s", at, cross, norm));
    }
    ct2_linear(f, PART("%s/ffn/%s", at, linear[first][0]), CT2_F, CT2_D);
    ct2_linear(f, PART("%s/ffn/%s", at, linear[first][1]), CT2_D, CT2_F);
    ct2_norm(f, PART("%s/ffn/%s", at, norm));
    if (!f->post_norm) ct2_norm(f, PART("%s/%s", side, norm));
    ct2_matrix(f, first ? PART("transformer/%s/w_embs:0", side)
                        : PART("%s/embeddings%s/weight", side, decoder || f->version < 4 ? "" : "_0"),
               CT2_V, CT2_D);
    if (f->positions) ct2_matrix(f, PART("%s/position_encodings/encodings", side), 16, CT2_D);
    if (decoder) ct2_linear(f, first ? "decoder/dense" : "decoder/projection", CT2_V, CT2_D);
    if (f->revision < 5) return;
    ct2_flag(f, PART("%s/num_heads", side), 2);
    ct2_flag(f, PART("%s/pre_norm", side), !f->post_norm);
    ct2_flag(f, PART("%s/activation", side), 0);
    ct2_flag(f, PART("%s/scale_embeddings", side), 1);
#undef PART
}

static inline void ct2_write(const ct2_folder *f, const char *name, const void *data, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    assert_int_equal(dgm_file_write(path, data, size, NULL), DGM_OK);
}

// Fills in what was left open and writes the files.
static inline void ct2_make(ct2_folder *f)
{
    static const char config[] = "{\"add_source_bos\": false, \"add_source_eos\": true, \"bos_token\": \"<s>\","
                                 " \"decoder_start_token\": \"<s>\", \"eos_token\": \"</s>\", \"unk_token\": \"<unk>\","
                                 " \"layer_norm_epsilon\": null, \"multi_query_attention\": false}";
    static const char json[] = "[\"<unk>\", \"<s>\", \"</s>\", \"a\", \"b\", \"\\u2581c\", \"d\", \"e\"]";
    static const char text[] = "<unk>\n<s>\n</s>\na\nb\n\xe2\x96\x81" "c\nd\ne\n";
    strcpy(f->path, "/tmp/dgm-ct2-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    if (!f->version) f->version = 6;
    if (!f->revision) f->revision = f->version == 1 ? 1 : f->version < 3 ? 2 : f->version < 6 ? 4 : 7;
    ct2_side(f, false);
    ct2_side(f, true);
    if (f->revision == 3 || f->revision == 4) ct2_flag(f, "num_heads", 2);
    if (f->revision == 3 || f->revision == 4) ct2_flag(f, "pre_norm", !f->post_norm);
    if (f->extra) ct2_vector(f, f->extra, 2);
    dgm_writer all = {0};
    dgm_write_u32(&all, (uint32_t)f->version);
    if (f->version >= 2) ct2_put_string(&all, f->spec ? f->spec : "TransformerSpec");
    if (f->version >= 2) dgm_write_u32(&all, (uint32_t)f->revision);
    dgm_write_u32(&all, f->count);
    dgm_write_bytes(&all, f->out.data, f->out.size);
    if (f->version >= 3) dgm_write_u32(&all, 0);
    ct2_write(f, "model.bin", all.data, all.size);
    if (f->version >= 6) ct2_write(f, "config.json", config, sizeof config - 1);
    if (f->version >= 5) ct2_write(f, "shared_vocabulary.json", json, sizeof json - 1);
    if (f->version < 5) ct2_write(f, "source_vocabulary.txt", text, sizeof text - 1);
    if (f->version < 5) ct2_write(f, "target_vocabulary.txt", text, sizeof text - 1);
    dgm_writer_free(&all);
    dgm_writer_free(&f->out);
}

static inline void ct2_remove(const ct2_folder *f)
{
    static const char *const names[] = {"model.bin", "config.json", "shared_vocabulary.json", "source_vocabulary.txt",
                                        "target_vocabulary.txt", "vmap.txt", "sentencepiece.model", "out.gguf"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", f->path, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(f->path), 0);
}

#endif
