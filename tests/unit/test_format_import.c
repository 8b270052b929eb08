// SPDX-License-Identifier: MIT
// The Hugging Face importer on a tiny folder that the test makes itself (marian_folder.h). Each error
// case changes one thing of the folder and expects one exact message; the imported file must hold the
// same numbers.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "import/import.h"
#include "format/modelfile.h"
#include "import/safetensors.h"
#include "import/spm_list.h"
#include "marian_folder.h"

static dgm_status import(const folder *f, const dgm_import_options *o, dgm_error *err)
{
    char out[96];
    snprintf(out, sizeof out, "%s/out.gguf", f->path);
    return dgm_import_run("huggingface", f->path, out, o, NULL, err);
}

static dgm_gguf *open_result(const folder *f)
{
    char out[96];
    dgm_gguf *g;
    dgm_error err;
    snprintf(out, sizeof out, "%s/out.gguf", f->path);
    dgm_status st = dgm_modelfile_open(&g, out, &err);
    if (st != DGM_OK) print_error("%s\n", err.text);
    assert_int_equal(st, DGM_OK);
    return g;
}

// ---- good folders -----------------------------------------------------------------------------

static void check_matrix(const dgm_gguf *g, const char *ours, const char *theirs, int rows,
                         int cols)
{
    const dgm_tensor *t;
    dgm_error err;
    assert_int_equal(dgm_gguf_matrix(g, ours, rows, cols, DGM_REQUIRED, &t, &err), DGM_OK);
    float real[V * F];
    dgm_tensor_to_f32(t, real);
    for (int i = 0; i < rows * cols; i++) {
        float tolerance = t->type == DGM_TYPE_I8 ? 2.0f / 127 : 0;
        float d = real[i] - weight_at(theirs, i);
        assert_true(d <= tolerance && d >= -tolerance);
    }
}

static void check_vector(const dgm_gguf *g, const char *ours, const char *theirs, int size)
{
    const float *v;
    dgm_error err;
    assert_int_equal(dgm_gguf_vector(g, ours, size, DGM_REQUIRED, &v, &err), DGM_OK);
    for (int i = 0; i < size; i++) assert_true(v[i] == weight_at(theirs, i));
}

static void check_weights(const dgm_gguf *g)
{
    check_matrix(g, "src.embed", "model.shared.weight", V, D);
    check_vector(g, "out.bias", "final_logits_bias", V);
    check_matrix(g, "enc.0.self.q.weight", "model.encoder.layers.0.self_attn.q_proj.weight", D, D);
    check_matrix(g, "dec.0.self.o.weight", "model.decoder.layers.0.self_attn.out_proj.weight", D,
                 D);
    check_matrix(g, "dec.0.cross.k.weight", "model.decoder.layers.0.encoder_attn.k_proj.weight", D,
                 D);
    check_matrix(g, "enc.0.ffn.in.weight", "model.encoder.layers.0.fc1.weight", F, D);
    check_matrix(g, "dec.0.ffn.out.weight", "model.decoder.layers.0.fc2.weight", D, F);
    check_vector(g, "dec.0.ffn.in.bias", "model.decoder.layers.0.fc1.bias", F);
    check_vector(g, "enc.0.self.norm.bias", "model.encoder.layers.0.self_attn_layer_norm.bias", D);
    check_vector(g, "dec.0.cross.norm.weight",
                 "model.decoder.layers.0.encoder_attn_layer_norm.weight", D);
    check_vector(g, "enc.0.ffn.norm.weight", "model.encoder.layers.0.final_layer_norm.weight", D);
    assert_null(dgm_gguf_find_tensor(g, "tgt.embed"));
    assert_null(dgm_gguf_find_tensor(g, "out.weight"));
}

static void check_keys(const dgm_gguf *g)
{
    dgm_error err;
    dgm_vocab_spec v;
    assert_int_equal(dgm_modelfile_vocab(g, DGM_TARGET, &v, &err), DGM_OK);
    assert_true(v.shared && v.size == V && v.map_count == 7);
    static const int32_t map[] = {1, -1, 0, 3, 2, 4, 5};
    assert_memory_equal(v.map, map, sizeof map);
    assert_true(v.eos == 0 && v.unk == 1 && v.pad == 6 && v.start == 6);
    assert_true(v.never_count == 1 && v.never[0] == 6 && v.extra.count == 1);
    dgm_decode_spec d;
    assert_int_equal(dgm_modelfile_decode(g, &d, &err), DGM_OK);
    assert_true(d.beam == 3 && d.max_length == 28 && d.max_source == 32 && d.allow_unk);
    assert_true(d.length_penalty == 0.5f);
    assert_string_equal(dgm_finish_names[d.finish], "huggingface");
    uint32_t n = 0;
    bool scale = false;
    const char *text = NULL;
    dgm_gguf_get_u32(g, "dragoman.transformer.ffn", DGM_REQUIRED, 1, 9, &n, &err);
    dgm_gguf_get_bool(g, "dragoman.transformer.scale_embedding", DGM_REQUIRED, &scale, &err);
    dgm_gguf_get_string(g, "dragoman.transformer.activation", DGM_REQUIRED, &text, &err);
    assert_true(n == F && scale);
    assert_string_equal(text, "swish");
    dgm_gguf_strings it = {0};
    dgm_gguf_text s;
    dgm_gguf_get_strings(g, "dragoman.languages.source", DGM_REQUIRED, &it, &err);
    assert_true(dgm_gguf_strings_next(&it, &s) && s.size == 2 && memcmp(s.data, "en", 2) == 0);
    dgm_gguf_get_strings(g, "dragoman.languages.target", DGM_REQUIRED, &it, &err);
    assert_true(dgm_gguf_strings_next(&it, &s) && s.size == 5 && memcmp(s.data, "de-AT", 5) == 0);
}

static void test_types(void **state)
{
    (void)state;
    static const char *const dtypes[] = {"F32", "F16", "BF16"};
    static const char *const types[] = {NULL, "f32", "f16", "bf16", "i8", "i16"};
    static const int stored[] = {DGM_TYPE_F32, DGM_TYPE_F16, DGM_TYPE_BF16};
    folder f = make_folder();
    dgm_error err;
    for (int d = 0; d < 3; d++) {
        for (int t = 0; t < 6; t++) {
            f.dtype = dtypes[d];
            f.shards = (d + t) % 2;
            make_weights(&f);
            dgm_import_options o = {.size = sizeof(dgm_import_options), .type = types[t]};
            dgm_status st = import(&f, &o, &err);
            if (st != DGM_OK) print_error("%s\n", err.text);
            assert_int_equal(st, DGM_OK);
            dgm_gguf *g = open_result(&f);
            check_weights(g);
            check_keys(g);
            const char *name = t ? types[t] : dgm_tensor_type_name(stored[d]);
            int type = dgm_gguf_find_tensor(g, "src.embed")->type;
            assert_string_equal(dgm_tensor_type_name(type), name);
            dgm_gguf_close(&g);
        }
    }
    remove_folder(&f);
}

static void test_options(void **state)
{
    (void)state;
    folder f = make_folder();
    dgm_error err;
    dgm_import_options o = {.size = sizeof(dgm_import_options),
                            .source_language = "fra",
                            .target_language = "xyz",
                            .name = "N",
                            .license = "L",
                            .card = "# C",
                            .source_prefix = "d"};
    assert_int_equal(import(&f, &o, &err), DGM_OK);
    dgm_gguf *g = open_result(&f);
    const char *text = NULL;
    const int32_t *ids = NULL;
    size_t n = 0;
    dgm_gguf_strings it = {0};
    dgm_gguf_text s;
    dgm_gguf_get_strings(g, "dragoman.languages.source", DGM_REQUIRED, &it, &err);
    assert_true(dgm_gguf_strings_next(&it, &s) && s.size == 2 && memcmp(s.data, "fr", 2) == 0);
    dgm_gguf_get_string(g, "general.name", DGM_REQUIRED, &text, &err);
    assert_string_equal(text, "N");
    dgm_gguf_get_string(g, "dragoman.card", DGM_REQUIRED, &text, &err);
    assert_string_equal(text, "# C");
    dgm_gguf_get_i32s(g, "dragoman.source.prefix", DGM_REQUIRED, 0, V, &ids, &n, &err);
    assert_true(n == 1 && ids[0] == 5);
    dgm_gguf_close(&g);
    o.card_file = "/nonexistent/card.md";
    assert_int_equal(import(&f, &o, &err), DGM_ERR_IO);
    char card[96];
    snprintf(card, sizeof card, "%s/config.json", f.path);
    o.card_file = card;
    assert_int_equal(import(&f, &o, &err), DGM_OK);
    g = open_result(&f);
    dgm_gguf_get_string(g, "dragoman.card", DGM_REQUIRED, &text, &err);
    assert_string_equal(text, model_config);
    dgm_gguf_close(&g);
    o.source_prefix = ">>x<<";
    assert_int_equal(import(&f, &o, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "source prefix '>>x<<' is not in the vocabulary");
    dgm_import_options bad = {.size = sizeof(dgm_import_options), .type = "q4"};
    assert_int_equal(import(&f, &bad, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text,
                        "unknown storage type 'q4', expected one of: f32, f16, bf16, i16, i8");
    assert_int_equal(dgm_import_run("opennmt", f.path, "x", NULL, NULL, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "unknown import format 'opennmt', expected one of: auto, huggingface"));
    remove_folder(&f);
}

// Different SentencePiece models over one vocabulary, as OPUS-MT has; no generation_config.json.
static void test_two_sides(void **state)
{
    (void)state;
    folder f = make_folder();
    dgm_error err;
    make_spm(&f, "target.spm", 5);
    remove_file(&f, "generation_config.json");
    remove_file(&f, "tokenizer_config.json");
    assert_int_equal(import(&f, NULL, &err), DGM_OK);
    dgm_gguf *g = open_result(&f);
    dgm_vocab_spec v;
    assert_int_equal(dgm_modelfile_vocab(g, DGM_TARGET, &v, &err), DGM_OK);
    // Ids 4, 5 and 6 come last and are unknown to this side: extra.
    assert_true(!v.shared && v.map_count == 5 && v.extra.count == 3);
    dgm_decode_spec d;
    assert_int_equal(dgm_modelfile_decode(g, &d, &err), DGM_OK);
    assert_true(d.beam == 1 && d.max_length == 31 && d.length_penalty == 1);
    assert_null(dgm_gguf_find(g, "dragoman.languages.source"));
    dgm_gguf_close(&g);
    remove_folder(&f);
}

// A vocabulary and embeddings for each side, and an output layer of its own or tied.
static void test_separate(void **state)
{
    (void)state;
    folder f = make_folder();
    dgm_error err;
    f.separate = true;
    write_text(&f, "tokenizer_config.json", "{\"separate_vocabs\": true}");
    write_text(&f, "target_vocab.json",
               "{\"</s>\": 0, \"<unk>\": 1, \"d\": 2, \"b\": 3, \"<pad>\": 4}");
    for (int tied = 0; tied < 2; tied++) {
        f.skip = tied ? "lm_head.weight" : NULL;
        make_weights(&f);
        char config[1024];
        snprintf(config, sizeof config,
                 "{\"share_encoder_decoder_embeddings\": false, \"tie_word_embeddings\": %s,"
                 " \"decoder_vocab_size\": 5, %.*s \"pad_token_id\": 4,"
                 " \"decoder_start_token_id\": 4}",
                 tied ? "true" : "false",
                 (int)(strstr(model_config, "\"pad_token_id\"") - model_config - 1),
                 model_config + 1);
        write_text(&f, "config.json", config);
        write_text(&f, "generation_config.json", "{\"bad_words_ids\": [[4]]}");
        dgm_status st = import(&f, NULL, &err);
        if (st != DGM_OK) print_error("%s\n", err.text);
        assert_int_equal(st, DGM_OK);
        dgm_gguf *g = open_result(&f);
        check_matrix(g, "src.embed", "model.encoder.embed_tokens.weight", V, D);
        check_matrix(g, "tgt.embed", "model.decoder.embed_tokens.weight", 5, D);
        if (!tied) check_matrix(g, "out.weight", "lm_head.weight", 5, D);
        assert_int_equal(dgm_gguf_find_tensor(g, "out.weight") == NULL, tied);
        assert_null(dgm_gguf_find_tensor(g, "out.bias"));
        dgm_vocab_spec v;
        assert_int_equal(dgm_modelfile_vocab(g, DGM_TARGET, &v, &err), DGM_OK);
        static const int32_t map[] = {1, -1, 0, -1, 3, -1, 2};
        assert_true(!v.shared && v.size == 5 && v.start == 4 && v.map_count == 7);
        assert_memory_equal(v.map, map, sizeof map);
        dgm_gguf_close(&g);
    }
    remove_folder(&f);
}

// Ids in the middle that only the source's SentencePiece model knows, and a language token.
static void test_appended_pieces(void **state)
{
    (void)state;
    folder f = make_folder();
    dgm_error err;
    make_spm(&f, "target.spm", 4); // without b, c and d
    write_text(&f, "vocab.json",
               "{\"</s>\": 0, \"<unk>\": 1, \"a\": 5, \"b\": 2, \"d\": 4, \">>x<<\": 3,"
               " \"<pad>\": 6}");
    assert_int_equal(import(&f, NULL, &err), DGM_OK);
    dgm_gguf *g = open_result(&f);
    static const int32_t source[] = {1, -1, 0, 5, 2, -1, 4, 3}, target[] = {1, -1, 0, 5, 2, 3, 4};
    static const char *const added[] = {"b", ">>x<<", "d"};
    dgm_vocab_spec v;
    dgm_spm_list list;
    assert_int_equal(dgm_modelfile_vocab(g, DGM_SOURCE, &v, &err), DGM_OK);
    assert_int_equal(v.map_count, 8);
    assert_memory_equal(v.map, source, sizeof source);
    assert_int_equal(dgm_modelfile_vocab(g, DGM_TARGET, &v, &err), DGM_OK);
    assert_int_equal(v.map_count, 7);
    assert_memory_equal(v.map, target, sizeof target);
    assert_int_equal(v.extra.count, 1);
    assert_int_equal(dgm_spm_list_read(&list, v.model, v.model_size, &err), DGM_OK);
    assert_int_equal(list.count, 7);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(list.items[4 + i].kind, DGM_SPM_UNUSED);
        assert_int_equal(list.items[4 + i].size, strlen(added[i]));
        assert_memory_equal(list.items[4 + i].piece, added[i], strlen(added[i]));
    }
    dgm_spm_list_free(&list);
    dgm_gguf_close(&g);
    remove_folder(&f);
}

// ---- errors -----------------------------------------------------------------------------------

// The message with the folder's name cut out: "'DIR..." becomes "'...".
static void expect_error(const folder *f, dgm_status status, const char *text)
{
    dgm_error err = {""};
    dgm_status st = import(f, NULL, &err);
    char *at = strstr(err.text, f->path);
    if (at) memmove(at, at + strlen(f->path), strlen(at + strlen(f->path)) + 1);
    assert_string_equal(err.text, text);
    assert_int_equal(st, status);
}

static void test_weight_errors(void **state)
{
    (void)state;
    folder f = make_folder();
    f.skip = "model.decoder.layers.0.fc2.bias";
    make_weights(&f);
    expect_error(&f, DGM_ERR_FORMAT, "'': tensor 'model.decoder.layers.0.fc2.bias' is missing");
    f.skip = NULL;
    f.extra = "model.encoder.layer_norm.weight";
    make_weights(&f);
    expect_error(&f, DGM_ERR_UNSUPPORTED,
                 "'': tensor 'model.encoder.layer_norm.weight' is not part of a MarianMT model");
    f.extra = NULL;
    f.reshape = "model.shared.weight";
    make_weights(&f);
    expect_error(&f, DGM_ERR_FORMAT,
                 "'': tensor 'model.shared.weight' has 2 dimensions, 7 rows and 5 columns, "
                 "expected [7, 4]");
    f.reshape = NULL;
    f.shards = true;
    make_weights(&f);
    remove_file(&f, "part2.safetensors");
    expect_error(&f, DGM_ERR_IO, "cannot open '/part2.safetensors': No such file or directory");
    write_text(&f, "model.safetensors.index.json",
               "{\"weight_map\": {\"t\": \"../part1.safetensors\"}}");
    expect_error(&f, DGM_ERR_FORMAT,
                 "'/model.safetensors.index.json': tensor 't' names no plain file");
    remove_file(&f, "model.safetensors.index.json");
    expect_error(&f, DGM_ERR_IO, "'' has no model.safetensors and no pytorch_model.bin");
    write_text(&f, "pytorch_model.bin", "PK");
    expect_error(&f, DGM_ERR_FORMAT,
                 "'/pytorch_model.bin': neither a zip file nor a pickle: not what torch.save writes");
    remove_folder(&f);
}

static void test_config_errors(void **state)
{
    (void)state;
    static const struct {
        const char *file, *from, *to;
        dgm_status status;
        const char *text;
    } rows[] = {
        {"config.json", "\"marian\"", "\"bart\"", DGM_ERR_UNSUPPORTED,
         "'': \"model_type\" 'bart' is not supported, expected one of: marian, m2m_100, nllb-moe, "
         "mbart, t5, mt5, umt5, fsmt"},
        {"config.json", "\"swish\"", "\"tanhshrink\"", DGM_ERR_UNSUPPORTED,
         "'': \"activation_function\" 'tanhshrink' is not supported"},
        {"config.json", "{", "{\"normalize_before\": true, ", DGM_ERR_FORMAT,
         "'': tensor 'model.encoder.layer_norm.weight' is missing"},
        {"config.json", "\"d_model\": 4", "\"d_model\": \"4\"", DGM_ERR_FORMAT,
         "'': \"d_model\" is not an integer"},
        {"config.json", "\"d_model\": 4", "\"d_model\": 5", DGM_ERR_FORMAT,
         "'': \"d_model\" 5 is not a multiple of 2 heads"},
        {"config.json", "\"decoder_attention_heads\": 2", "\"decoder_attention_heads\": 3",
         DGM_ERR_FORMAT, "'': \"d_model\" 4 is not a multiple of 3 heads"},
        {"config.json", "\"pad_token_id\": 6", "\"pad_token_id\": 7", DGM_ERR_FORMAT,
         "'': \"pad_token_id\" is 7, expected 0 to 6"},
        {"config.json", ", \"decoder_start_token_id\": 6", "", DGM_ERR_FORMAT,
         "'': \"pad_token_id\" or \"decoder_start_token_id\" is missing"},
        {"config.json", "\"encoder_layers\": 1", "\"encoder_layers\": 2", DGM_ERR_FORMAT,
         "'': tensor 'model.encoder.layers.1.self_attn.q_proj.weight' is missing"},
        {"config.json", "}", ", \"d_model\": 4}", DGM_ERR_FORMAT,
         "'/config.json': not valid JSON (line 1: duplicate object key near '\"d_model\"')"},
        {"config.json", "}", "", DGM_ERR_FORMAT,
         "'/config.json': not valid JSON (line 1: '}' expected near end of file)"},
        {"config.json", NULL, "[[1]]", DGM_ERR_FORMAT, "'/config.json': not a JSON object"},
        {"tokenizer_config.json", NULL, "{\"source_lang\": 5}", DGM_ERR_FORMAT,
         "'/tokenizer_config.json': \"source_lang\" is not a string"},
        {"generation_config.json", "\"num_beams\": 3", "\"num_beams\": 300", DGM_ERR_FORMAT,
         "'': \"num_beams\" is 300, expected 1 to 256"}, // what a search can have
        {"generation_config.json", "[[6]]", "[[6, 5]]", DGM_ERR_UNSUPPORTED,
         "'': \"bad_words_ids\" holds something else than lists of one id"},
        {"generation_config.json", "{", "{\"no_repeat_ngram_size\": 3, ", DGM_ERR_UNSUPPORTED,
         "'': \"no_repeat_ngram_size\": 3 is not supported; remove it to import the model without"},
        {"generation_config.json", "\"forced_eos_token_id\": 0", "\"forced_eos_token_id\": 2",
         DGM_ERR_UNSUPPORTED, "'': \"forced_eos_token_id\" 2 is not \"eos_token_id\" 0"},
        {"vocab.json", "\"a\": 3", "\"a\": 9", DGM_ERR_FORMAT,
         "'': vocabulary of the source: piece 'a' has no id from 0 to 6"},
        {"vocab.json", "\"a\": 3", "\"a\": 2", DGM_ERR_FORMAT,
         "'': vocabulary of the source: pieces 'a' and 'b' have one id"},
        {"vocab.json", "\"<unk>\"", "\"unk\"", DGM_ERR_FORMAT, "'': vocab.json has no <unk>"},
        {"source.spm", NULL, "nonsense", DGM_ERR_FORMAT,
         "'': 'source.spm': not a SentencePiece model"},
        {"model.safetensors", NULL, "\xff\xff\xff\xff\xff\xff\xff\x7f{}", DGM_ERR_FORMAT,
         "'/model.safetensors': a header of 9223372036854775807 bytes: not a safetensors file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        folder f = make_folder();
        const char *old = strcmp(rows[i].file, "config.json") == 0  ? model_config
                          : strcmp(rows[i].file, "vocab.json") == 0 ? vocab_json
                                                                    : generation_config;
        char text[2048];
        if (rows[i].from) {
            const char *at = strstr(old, rows[i].from);
            assert_non_null(at);
            snprintf(text, sizeof text, "%.*s%s%s", (int)(at - old), old, rows[i].to,
                     at + strlen(rows[i].from));
        } else {
            snprintf(text, sizeof text, "%s", rows[i].to);
        }
        write_text(&f, rows[i].file, text);
        const uint64_t live = dgm_mem_live();
        expect_error(&f, rows[i].status, rows[i].text);
        if (i > 0) assert_int_equal(dgm_mem_live(), live); // jansson makes its seed once
        remove_folder(&f);
    }
}

// A vocabulary that could not be opened later is not imported.
static void test_damaged_pieces(void **state)
{
    (void)state;
    folder f = make_folder();
    char out[96], text[160];
    dgm_error err;
    write_file(&f, "source.spm", "\x0a\x03\x0a\x01\xff", 5);
    snprintf(out, sizeof out, "%s/out.gguf", f.path);
    assert_int_equal(dgm_import("huggingface", f.path, out, NULL, &err), DGM_ERR_FORMAT);
    snprintf(text, sizeof text,
             "'%s/source.spm': damaged SentencePiece model: piece is not UTF-8", f.path);
    assert_string_equal(err.text, text);
    assert_int_not_equal(access(out, F_OK), 0);
    remove_folder(&f);
}

// Models of other programs are named, whatever format was asked for.
static void test_other_programs(void **state)
{
    (void)state;
    char folder_path[] = "/tmp/dgm_import_XXXXXX", file[64];
    dgm_error err;
    assert_non_null(mkdtemp(folder_path));
    snprintf(file, sizeof file, "%s/model.bin", folder_path);
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    assert_int_not_equal(dgm_import("huggingface", folder_path, "/tmp/none.gguf", NULL, &err), DGM_OK);
    assert_non_null(strstr(err.text, "looks like a model of CTranslate2: 'dragoman import ctranslate2'"));
    const char *what = NULL;
    dgm_import_recognise(folder_path, &what);
    assert_string_equal(what, "a model of CTranslate2");
    assert_int_equal(unlink(file), 0);
    assert_int_equal(dgm_import("auto", folder_path, "/tmp/none.gguf", NULL, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "holds no model that is known"));
    assert_null(dgm_import_recognise(folder_path, &what));
    assert_null(what);
    assert_int_equal(rmdir(folder_path), 0);
    assert_int_equal(dgm_import(NULL, folder_path, "/tmp/none.gguf", NULL, &err), DGM_ERR_IO);
    assert_int_equal(dgm_import("huggingface", "Some-One/opus-mt-en-de", "/tmp/none.gguf", NULL, &err),
                     DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "nothing is fetched from the Hugging Face hub"));
}

static void test_no_memory(void **state)
{
    (void)state;
    folder f = make_folder();
    dgm_import_options o = {.size = sizeof(dgm_import_options), .type = "i8"};
    dgm_error err;
    for (int shards = 0; shards < 2; shards++) {
        f.shards = shards;
        if (shards) make_spm(&f, "target.spm", 5);
        make_weights(&f);
        assert_int_equal(import(&f, &o, &err), DGM_OK); // jansson makes its seed once
        uint64_t live = dgm_mem_live();
        int failures = 0;
        for (uint64_t at = 1;; at++) {
            dgm_mem_inject(at, 1);
            dgm_status st = import(&f, &o, &err);
            dgm_mem_inject(0, 0);
            assert_int_equal(dgm_mem_live(), live);
            if (st == DGM_OK) break;
            if (st != DGM_ERR_MEMORY) print_error("allocation %d: %s\n", (int)at, err.text);
            assert_int_equal(st, DGM_ERR_MEMORY);
            failures++;
        }
        assert_in_range(failures, 100, 10000);
    }
    remove_folder(&f);
}

// ---- safetensors alone ------------------------------------------------------------------------

static void expect_header(const char *json, size_t data, const char *text)
{
    dgm_writer w = {0};
    dgm_error err = {""};
    dgm_store *s;
    dgm_write_u64(&w, strlen(json));
    dgm_write_text(&w, json);
    dgm_write_zeros(&w, data);
    dgm_status st = dgm_safetensors_open_memory(&s, w.data, w.size, &err);
    assert_string_equal(err.text, text);
    assert_int_equal(st == DGM_OK, text[0] == 0);
    dgm_store_close(&s);
    dgm_writer_free(&w);
}

static void test_safetensors(void **state)
{
    (void)state;
#define T(dtype, shape, begin, end)                                                                \
    "{\"dtype\": \"" dtype "\", \"shape\": [" shape "], \"data_offsets\": [" begin ", " end "]}"
    expect_header("{}", 0, "");
    expect_header("{\"__metadata__\": {\"format\": \"pt\"}, \"a\": " T("F32", "2", "0", "8") "}", 8,
                  "");
    expect_header("{\"a\": " T("I64", "", "0", "8") ", \"b\": " T("F16", "0", "8", "8") "}", 8, "");
    expect_header("[]", 0, "the header is not an object");
    expect_header("{\"a\": 1}", 0, "tensor 'a': not described by an object");
    expect_header("{\"a\": " T("F31", "2", "0", "8") "}", 8, "tensor 'a': unknown dtype 'F31'");
    expect_header("{\"a\": " T("F32", "2", "0", "8") "}", 7,
                  "tensor 'a': data reaches past the end of the file (truncated?)");
    expect_header("{\"a\": " T("F32", "3", "0", "8") "}", 8,
                  "tensor 'a': 8 bytes of data for a shape of 12");
    expect_header("{\"a\": " T("F32", "2", "4", "-4") "}", 8,
                  "tensor 'a': data reaches past the end of the file (truncated?)");
    expect_header("{\"a\": " T("F32", "-2", "0", "8") "}", 8,
                  "tensor 'a': bad number in \"shape\"");
    expect_header("{\"a\": " T("F32", "2147483647, 2147483647, 2147483647", "0", "8") "}", 8,
                  "tensor 'a': the shape is too large");
    expect_header("{\"a\": " T("F32", "2", "0", "8") ", \"b\": " T("F32", "1", "4", "8") "}", 8,
                  "tensors 'a' and 'b' overlap");
    expect_header("{\"a\": {\"dtype\": \"F32\", \"shape\": [1]}}", 8,
                  "tensor 'a': \"data_offsets\" is not a pair of numbers");
#undef T
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),           cmocka_unit_test(test_options),
        cmocka_unit_test(test_two_sides),       cmocka_unit_test(test_separate),
        cmocka_unit_test(test_appended_pieces), cmocka_unit_test(test_weight_errors),
        cmocka_unit_test(test_config_errors),   cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_safetensors),     cmocka_unit_test(test_damaged_pieces),
        cmocka_unit_test(test_other_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
