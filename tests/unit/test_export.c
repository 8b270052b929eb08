// SPDX-License-Identifier: MIT
// The way back: model files as folders of transformers and CTranslate2, imported again weight for weight.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/mem.h"
#include "dragoman/tools.h"
#include "export/export.h"
#include "format/gguf.h"
#include "marian_folder.h"

typedef struct places {
    char base[64], model[80], exported[80], again[80];
} places;

static places make_places(void)
{
    places p = {.base = "/tmp/dgm-export-XXXXXX"};
    assert_non_null(mkdtemp(p.base));
    snprintf(p.model, sizeof p.model, "%s/model.gguf", p.base);
    snprintf(p.exported, sizeof p.exported, "%s/exported", p.base);
    snprintf(p.again, sizeof p.again, "%s/again.gguf", p.base);
    return p;
}

static void clear(const char *exported)
{
    static const char *const names[] = {"config.json",       "generation_config.json", "tokenizer_config.json",
                                        "model.safetensors", "source.spm",             "target.spm",
                                        "vocab.json",        "target_vocab.json",      "model.bin",
                                        "shared_vocabulary.json", "source_vocabulary.json", "target_vocabulary.json",
                                        "sentencepiece.bpe.model", "special_tokens_map.json", "pytorch_model.bin"};
    char path[160];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", exported, names[i]);
        unlink(path);
    }
    rmdir(exported);
}

static void remove_places(const places *p)
{
    clear(p->exported);
    unlink(p->model);
    unlink(p->again);
    assert_int_equal(rmdir(p->base), 0); // nothing else was left
}

static void import(const char *format, const char *from, const char *to, const char *type)
{
    dgm_import_options o;
    dgm_error err = {""};
    dgm_import_default(&o);
    o.type = type;
    if (dgm_import(format, from, to, &o, &err) != DGM_OK) fail_msg("import: %s", err.text);
}

// Same names, types, shapes and bytes. Scales of 8 bits may be off by the last bit where integers became real numbers.
static bool rounded;

static void expect_same(const dgm_tensor *x, const dgm_tensor *y)
{
    assert_int_equal(x->type, y->type);
    assert_int_equal(x->bytes, y->bytes);
    const bool scale = rounded && strstr(x->name, ".scale") != NULL;
    for (int i = 0; scale && i < x->cols; i++) {
        const float a = ((const float *)x->data)[i], b = ((const float *)y->data)[i];
        assert_true(a == b || nextafterf(a, b) == b);
    }
    if (!scale && memcmp(x->data, y->data, x->bytes) != 0) fail_msg("%s differs", x->name);
}

static void expect_same_tensors(const char *one, const char *other)
{
    dgm_gguf *a = NULL, *b = NULL;
    assert_int_equal(dgm_gguf_open(&a, one, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_open(&b, other, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_tensor_count(a), dgm_gguf_tensor_count(b));
    for (int i = 0; i < dgm_gguf_tensor_count(a); i++) {
        const dgm_tensor *x = dgm_gguf_tensor(a, i), *y = dgm_gguf_find_tensor(b, x->name);
        if (!y) fail_msg("%s is gone", x->name);
        expect_same(x, y);
    }
    dgm_gguf_close(&a);
    dgm_gguf_close(&b);
}

// Keys that both importers set, by their bytes.
static void expect_same_key(const char *one, const char *other, const char *key)
{
    dgm_gguf *a = NULL, *b = NULL;
    assert_int_equal(dgm_gguf_open(&a, one, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_open(&b, other, NULL), DGM_OK);
    const dgm_meta *x = dgm_gguf_find(a, key), *y = dgm_gguf_find(b, key);
    if (!x != !y) fail_msg("'%s' is in one of them only", key);
    if (x && (x->raw_size != y->raw_size || memcmp(x->raw, y->raw, x->raw_size) != 0))
        fail_msg("'%s' differs in %s and %s", key, one, other);
    dgm_gguf_close(&a);
    dgm_gguf_close(&b);
}

static void round_trip(const folder *f, const char *format, const char *type, const char *back)
{
    static const char *const keys[] = {
        "dragoman.source.vocab.size",        "dragoman.source.vocab.map",       "dragoman.source.vocab.sentencepiece",
        "dragoman.source.vocab.extra",       "dragoman.target.vocab.map",       "dragoman.target.vocab.kind",
        "dragoman.source.eos",               "dragoman.source.unk",             "dragoman.target.start",
        "dragoman.transformer.heads",        "dragoman.transformer.activation", "dragoman.transformer.positions",
        "dragoman.transformer.scale_embedding", "dragoman.transformer.norm",    "dragoman.transformer.ffn",
        "dragoman.decode.beam",              "dragoman.decode.finish",          "dragoman.decode.length_penalty",
        "dragoman.decode.max_length",        "dragoman.decode.max_source",      "dragoman.decode.drop_unk",
        "dragoman.decode.allow_unk",         "dragoman.languages.source",       "dragoman.languages.target",
        "dragoman.target.never",
    };
    places p = make_places();
    dgm_error err = {""};
    import("huggingface", f->path, p.model, type);
    if (dgm_export(format, p.model, p.exported, NULL, &err) != DGM_OK) fail_msg("%s: %s", format, err.text);
    import(format, p.exported, p.again, back);
    rounded = back != NULL;
    expect_same_tensors(p.model, p.again);
    rounded = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) expect_same_key(p.model, p.again, keys[i]);
    assert_int_equal(dgm_export(format, p.model, p.exported, NULL, &err), DGM_ERR_IO); // it is there now
    assert_non_null(strstr(err.text, "is not empty"));
    remove_places(&p);
}

static void test_round_trips(void **state)
{
    (void)state;
    static const char *const types[] = {"f32", "f16", "bf16"};
    folder f = make_folder();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        round_trip(&f, "huggingface", types[i], NULL);
        round_trip(&f, "ctranslate2", types[i], NULL);
    }
    round_trip(&f, "ctranslate2", "i8", NULL); // as it is stored
    round_trip(&f, "huggingface", "i8", "i8"); // rounded again, to the same
    remove_folder(&f);
}

// Neither a model file nor an exported folder says where a vocabulary was trained.
static void test_names_of_files(void **state)
{
    (void)state;
    static const char *const formats[] = {"huggingface", "ctranslate2"}, *const files[] = {"source.spm", "target.spm"};
    folder f = make_folder();
    places p = make_places();
    dgm_error err = {""};
    char path[160];
    import("huggingface", f.path, p.model, "f32");
    expect_forgotten(p.model);
    copy_remembering(p.model, p.again);
    for (size_t i = 0; i < 2; i++) {
        if (dgm_export(formats[i], p.again, p.exported, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
        for (size_t side = 0; side < 2; side++) {
            snprintf(path, sizeof path, "%s/%s", p.exported, files[side]);
            expect_forgotten(path);
        }
        clear(p.exported);
    }
    remove_places(&p);
    remove_folder(&f);
}

static void test_two_sides(void **state)
{
    (void)state;
    folder f = make_folder();
    f.separate = true;
    write_text(&f, "config.json",
               "{\"model_type\": \"marian\", \"d_model\": 4, \"encoder_layers\": 1, \"decoder_layers\": 1,"
               " \"encoder_attention_heads\": 2, \"decoder_attention_heads\": 2, \"encoder_ffn_dim\": 6,"
               " \"decoder_ffn_dim\": 6, \"activation_function\": \"swish\", \"vocab_size\": 7,"
               " \"decoder_vocab_size\": 5, \"share_encoder_decoder_embeddings\": false,"
               " \"tie_word_embeddings\": false,"
               " \"max_position_embeddings\": 32, \"eos_token_id\": 0, \"pad_token_id\": 4,"
               " \"decoder_start_token_id\": 4}");
    write_text(&f, "tokenizer_config.json", "{\"separate_vocabs\": true}");
    write_text(&f, "target_vocab.json", "{\"</s>\": 0, \"<unk>\": 1, \"a\": 2, \"b\": 3, \"<pad>\": 4}");
    write_text(&f, "generation_config.json", "{\"num_beams\": 2}");
    make_weights(&f);
    round_trip(&f, "huggingface", "f32", NULL);
    round_trip(&f, "ctranslate2", "f32", NULL);
    remove_folder(&f);
}

// early_stopping and forced_eos_token_id come back as they were.
static void test_policies(void **state)
{
    (void)state;
    static const char *const settings[] = {
        "{\"max_length\": 20}", "{\"max_length\": 20, \"forced_eos_token_id\": 0}",
        "{\"max_length\": 20, \"early_stopping\": true}",
        "{\"max_length\": 20, \"early_stopping\": true, \"forced_eos_token_id\": 0}",
        "{\"max_length\": 20, \"early_stopping\": \"never\"}",
        "{\"max_length\": 20, \"early_stopping\": \"never\", \"forced_eos_token_id\": 0}"};
    folder f = make_folder();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        places p = make_places();
        dgm_error err = {""};
        write_text(&f, "generation_config.json", settings[i]);
        import("huggingface", f.path, p.model, "f32");
        if (dgm_export("huggingface", p.model, p.exported, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
        import("huggingface", p.exported, p.again, NULL);
        expect_same_key(p.model, p.again, "dragoman.decode.finish");
        expect_same_key(p.model, p.again, "dragoman.decode.max_length");
        remove_places(&p);
    }
    remove_folder(&f);
}

// A copy of a model with two keys more.
static void add_prefixes(const char *from, const char *to)
{
    static const int32_t source[] = {3}, target[] = {2, 4};
    dgm_gguf *g = NULL;
    dgm_gguf_writer *w = NULL;
    assert_int_equal(dgm_gguf_open(&g, from, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
    dgm_gguf_set_copies(w, g);
    dgm_gguf_set_array(w, "dragoman.source.prefix", DGM_META_I32, source, 1);
    dgm_gguf_set_array(w, "dragoman.target.prefix", DGM_META_I32, target, 2);
    dgm_gguf_set_f32(w, "dragoman.decode.word_penalty", 0.25f);
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        dgm_gguf_add_tensor(w, t->name, (dgm_tensor_type)t->type, t->n_dims, t->shape, t->data);
    }
    assert_int_equal(dgm_gguf_write(w, to, NULL), DGM_OK);
    dgm_gguf_writer_close(&w);
    dgm_gguf_close(&g);
}

static void hear(void *cookie, const char *text)
{
    char *all = cookie;
    snprintf(all + strlen(all), 2000 - strlen(all), "%s\n", text);
}

// config.json of an exported folder with another value under "dragoman": import says which.
static void expect_refused(const places *p, const char *kept, const char *says)
{
    char path[160];
    dgm_error err = {""};
    snprintf(path, sizeof path, "%s/config.json", p->exported);
    json_t *config = json_load_file(path, 0, NULL), *before = json_incref(json_object_get(config, "dragoman"));
    assert_int_equal(json_object_set_new(config, "dragoman", json_loads(kept, JSON_DECODE_ANY, NULL)), 0);
    assert_int_equal(json_dump_file(config, path, 0), 0);
    assert_int_equal(dgm_import("ctranslate2", p->exported, p->again, NULL, &err), DGM_ERR_FORMAT);
    if (!strstr(err.text, says) || !strstr(err.text, "/config.json'")) fail_msg("'%s' instead of '%s'", err.text, says);
    json_object_set_new(config, "dragoman", before);
    assert_int_equal(json_dump_file(config, path, 0), 0);
    json_decref(config);
}

// What CTranslate2 leaves to its caller is told, and kept for an import.
static void test_kept(void **state)
{
    (void)state;
    static const char *const told[] = {"beam_size=3, length_penalty=0.5, max_decoding_length=28",
                                       "in its own way, not as 'huggingface'",
                                       "no word penalty; this model has 0.25",
                                       "with every one",
                                       "in target_prefix",
                                       "in suppress_sequences"};
    static const char *const keys[] = {"dragoman.source.prefix", "dragoman.target.prefix", "dragoman.target.never",
                                       "dragoman.decode.word_penalty", "dragoman.decode.finish"};
    folder f = make_folder();
    places p = make_places();
    char notes[2000] = "";
    dgm_error err = {""};
    dgm_export_options o;
    dgm_export_default(&o);
    o.note = hear;
    o.note_cookie = notes;
    import("huggingface", f.path, p.again, "f32");
    add_prefixes(p.again, p.model);
    if (dgm_export("ctranslate2", p.model, p.exported, &o, &err) != DGM_OK) fail_msg("%s", err.text);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (!strstr(notes, told[i])) fail_msg("'%s' is missing in: %s", told[i], notes);
    import("ctranslate2", p.exported, p.again, NULL);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) expect_same_key(p.model, p.again, keys[i]);
    expect_refused(&p, "5", "\"dragoman\" is not an object");
    expect_refused(&p, "{\"beam\": 0}", "\"beam\" is 0");
    expect_refused(&p, "{\"word_penalty\": \"x\"}", "\"word_penalty\"");
    expect_refused(&p, "{\"finish\": \"soon\"}", "\"finish\" is 'soon'");
    expect_refused(&p, "{\"source_language\": 1}", "\"source_language\"");
    expect_refused(&p, "{\"source_prefix\": [\"nowhere\"]}", "'nowhere', which is not in the vocabulary");
    expect_refused(&p, "{\"target_prefix\": 7}", "\"target_prefix\" is not a list of tokens");
    expect_refused(&p, "{\"source_prefix\": [\"a\", \"a\", \"a\", \"a\", \"a\", \"a\", \"a\", \"a\"]}", "has 8 tokens");
    remove_places(&p);
    remove_folder(&f);
}

// A decoder that starts from zeros gets a <pad> whose row is zero in transformers.
static void test_zero_start(void **state)
{
    (void)state;
    folder f = make_folder();
    places p = make_places();
    dgm_error err = {""};
    dgm_gguf *g = NULL;
    dgm_gguf_writer *w = NULL;
    import("huggingface", f.path, p.again, "f32");
    assert_int_equal(dgm_gguf_open(&g, p.again, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
    dgm_gguf_set_copies(w, g);
    dgm_gguf_unset(w, "dragoman.target.start");
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        dgm_gguf_add_tensor(w, t->name, (dgm_tensor_type)t->type, t->n_dims, t->shape, t->data);
    }
    assert_int_equal(dgm_gguf_write(w, p.model, NULL), DGM_OK);
    dgm_gguf_writer_close(&w);
    dgm_gguf_close(&g);
    if (dgm_export("huggingface", p.model, p.exported, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    import("huggingface", p.exported, p.again, NULL);
    assert_int_equal(dgm_gguf_open(&g, p.again, NULL), DGM_OK);
    const dgm_tensor *t = dgm_gguf_find_tensor(g, "src.embed");
    assert_int_equal(t->rows, V + 1);
    for (int c = 0; c < D; c++) assert_true(((const float *)t->data)[V * D + c] == 0);
    t = dgm_gguf_find_tensor(g, "out.bias"); // it takes no part in a softmax
    assert_non_null(t);
    assert_true(((const float *)t->data)[V] == -1e4f);
    dgm_gguf_close(&g);
    clear(p.exported);
    if (dgm_export("ctranslate2", p.model, p.exported, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    import("ctranslate2", p.exported, p.again, NULL);
    expect_same_tensors(p.model, p.again);
    remove_places(&p);
    remove_folder(&f);
}

// Models of many shapes through CTranslate2: norms before and behind, learned and computed positions, words.
static void test_shapes(void **state)
{
    (void)state;
    static const char *const models[] = {"transformer-post-sinusoid",
                                         "transformer-post-learned-shared",
                                         "transformer-i8",            "transformer-f16",
                                         "transformer-pieces",        "transformer-oddheads"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        places p = make_places();
        dgm_error err = {""};
        char model[128];
        snprintf(model, sizeof model, "tests/data/models/%s.gguf", models[i]);
        if (dgm_export("ctranslate2", model, p.exported, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
        import("ctranslate2", p.exported, p.again, NULL);
        expect_same_tensors(model, p.again);
        expect_same_key(model, p.again, "dragoman.transformer.positions");
        expect_same_key(model, p.again, "dragoman.transformer.activation");
        remove_places(&p);
    }
}

// A folder of links to a fixture, but for its list of languages.
static void link_fixture(const char *name, const char *to, const char *languages)
{
    static const char *const files[] = {"config.json", "generation_config.json", "pytorch_model.bin",
                                        "sentencepiece.bpe.model", "tokenizer_config.json"};
    char from[4096], path[160];
    assert_int_equal(mkdir(to, 0755), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char here[64];
        snprintf(here, sizeof here, "tests/data/import/%s/%s", name, files[i]);
        assert_non_null(realpath(here, from));
        snprintf(path, sizeof path, "%s/%s", to, files[i]);
        assert_int_equal(symlink(from, path), 0);
    }
    snprintf(path, sizeof path, "%s/special_tokens_map.json", to);
    assert_int_equal(dgm_file_write(path, languages, strlen(languages), NULL), DGM_OK);
}

// mBART and mBART-50: learned positions, norms of embeddings, languages of a list that transformers has built in.
static void test_mbart(void **state)
{
    (void)state;
    static const char *const names[] = {"mbart", "mbart-50"};
    static const char *const keys[] = {
        "dragoman.languages.source",  "dragoman.languages.target", "dragoman.languages.source_tokens",
        "dragoman.target.tags",       "dragoman.source.tags_last", "dragoman.target.start",
        "dragoman.decode.finish",     "dragoman.decode.beam",      "dragoman.decode.max_length",
        "dragoman.decode.max_source", "dragoman.source.vocab.map", "dragoman.source.vocab.extra",
        "dragoman.transformer.position_offset"};
    for (int i = 0; i < 2; i++) {
        places p = make_places();
        char fixture[100];
        dgm_error err = {""};
        snprintf(fixture, sizeof fixture, "%s/fixture", p.base);
        link_fixture(names[i], fixture, "{\"additional_special_tokens\": [\"ar_AR\", \"cs_CZ\", \"de_DE\"]}");
        import("huggingface", fixture, p.model, NULL);
        if (dgm_export("huggingface", p.model, p.exported, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
        import("huggingface", p.exported, p.again, NULL);
        expect_same_tensors(p.model, p.again);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) expect_same_key(p.model, p.again, keys[k]);
        clear(p.exported);
        if (dgm_export("ctranslate2", p.model, p.exported, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
        import("ctranslate2", p.exported, p.again, NULL);
        for (size_t k = 0; k < 10; k++) expect_same_key(p.model, p.again, keys[k]); // but for those of ids
        clear(p.exported);
        clear(fixture);
        link_fixture(names[i], fixture, "{\"additional_special_tokens\": [\"de_DE\", \"en_XX\"]}");
        import("huggingface", fixture, p.model, NULL);
        assert_int_equal(dgm_export("huggingface", p.model, p.exported, NULL, &err), DGM_ERR_UNSUPPORTED);
        assert_non_null(strstr(err.text, "'de_DE' at 121"));
        clear(fixture);
        remove_places(&p);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *format, *model, *says;
    } cases[] = {
        {"onnx", "transformer-pieces", "unknown export format 'onnx'"},
        {"huggingface", "rnn-bahdanau-pieces", "dragoman.architecture"},
        {"ctranslate2", "transformer-post-marian-ssru", "dragoman.transformer.decoder"},
        {"ctranslate2", "transformer-moe-ssru", "dragoman.transformer."},
        {"ctranslate2", "transformer-pre-gelu-untied", "dragoman.transformer.start"},
        {"ctranslate2", "transformer-nopos-nobias", "no positions 'none'"},
        {"huggingface", "transformer-pre-learned", "norms before its layers cannot be exported to huggingface unless"},
        {"huggingface", "none", "cannot open"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        places p = make_places();
        dgm_error err = {""};
        char model[128];
        snprintf(model, sizeof model, "tests/data/models/%s.gguf", cases[i].model);
        assert_int_not_equal(dgm_export(cases[i].format, model, p.exported, NULL, &err), DGM_OK);
        if (!strstr(err.text, cases[i].says)) fail_msg("'%s' instead of '%s'", err.text, cases[i].says);
        remove_places(&p);
    }
    assert_non_null(dgm_export_format_at(1));
    assert_null(dgm_export_format_at(2));
}

// Of all files of a folder together.
static long long bytes_in(const char *path)
{
    long long total = 0;
    struct stat st;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir)) != NULL;)
        if (fstatat(dirfd(dir), d->d_name, &st, 0) == 0 && S_ISREG(st.st_mode)) total += st.st_size;
    closedir(dir);
    return total;
}

static void test_full_disk(void **state)
{
    (void)state;
    const float values[2] = {1, 2};
    const dgm_export_tensor t = {.name = "w", .values = values, .n_dims = 1, .rows = 1, .cols = 2};
    FILE *f = fopen("/dev/full", "wb");
    if (!f) skip();
    setvbuf(f, NULL, _IONBF, 0);
    dgm_error e;
    assert_int_equal(dgm_export_write(&t, f, &e), DGM_ERR_IO);
    assert_string_equal(e.text, "cannot write tensor 'w': No space left on device");
    fclose(f);
}

// Every allocation (of step) fails in turn: nothing is left behind, and what is written at last is whole.
static void expect_no_memory(const places *p, const char *format, uint64_t step)
{
    const uint64_t live = dgm_mem_live();
    dgm_status st = dgm_export(format, p->model, p->exported, NULL, NULL);
    assert_int_equal(st, DGM_OK);
    const long long whole = bytes_in(p->exported);
    clear(p->exported);
    st = DGM_ERR_MEMORY;
    for (uint64_t at = 1; st != DGM_OK && at < 5000; at += step) {
        dgm_mem_inject(at, 1);
        st = dgm_export(format, p->model, p->exported, NULL, NULL);
        dgm_mem_inject(0, 0);
        assert_int_equal(dgm_mem_live(), live);
    }
    assert_int_equal(st, DGM_OK);
    assert_true(bytes_in(p->exported) == whole); // no key was left out
    clear(p->exported);
}

static void test_no_memory(void **state)
{
    (void)state;
    folder f = make_folder();
    places p = make_places();
    char fixture[100];
    import("huggingface", f.path, p.model, "i8");
    expect_no_memory(&p, "huggingface", 1);
    expect_no_memory(&p, "ctranslate2", 1);
    snprintf(fixture, sizeof fixture, "%s/fixture", p.base);
    link_fixture("mbart", fixture, "{\"additional_special_tokens\": [\"ar_AR\", \"cs_CZ\", \"de_DE\"]}");
    import("huggingface", fixture, p.model, "f16");
    expect_no_memory(&p, "huggingface", 6);
    clear(fixture);
    remove_places(&p);
    remove_folder(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips), cmocka_unit_test(test_mbart), cmocka_unit_test(test_kept),
        cmocka_unit_test(test_two_sides),   cmocka_unit_test(test_names_of_files),
        cmocka_unit_test(test_zero_start),
        cmocka_unit_test(test_shapes),      cmocka_unit_test(test_refused),   cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
