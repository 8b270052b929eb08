// SPDX-License-Identifier: MIT
// The shared keys of a model file: which files are models, defaults, ranges, vocabularies.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/foreign.h"
#include "format/languages.h"
#include "format/modelfile.h"

static char path[64];
static dgm_gguf_writer *w;
static dgm_gguf *g;
static dgm_error err;

static int setup(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/dgm-modelfile-%ld.gguf", (long)getpid());
    return 0;
}

// A new writer with the keys that every model has.
static void begin(void)
{
    assert_int_equal(dgm_gguf_writer_open(&w, &err), DGM_OK);
    dgm_gguf_set_string(w, "general.architecture", "dragoman");
    dgm_gguf_set_u32(w, "dragoman.format_version", 1);
    dgm_gguf_set_string(w, "dragoman.architecture", "transformer");
}

static void put_pieces(const char *side, uint32_t size)
{
    char key[64];
#define KEY(rest) (snprintf(key, sizeof key, "dragoman.%s.%s", side, rest), key)
    dgm_gguf_set_string(w, KEY("vocab.kind"), "sentencepiece");
    dgm_gguf_set_u32(w, KEY("vocab.size"), size);
    dgm_gguf_set_array(w, KEY("vocab.sentencepiece"), DGM_META_U8, "spm", 3);
    dgm_gguf_set_i32(w, KEY("eos"), 0);
    dgm_gguf_set_i32(w, KEY("unk"), 1);
#undef KEY
}

static void put_words(void)
{
    static const char *const words[] = {"</s>", "<unk>", "Haus"};
    dgm_gguf_set_string(w, "dragoman.target.vocab.kind", "words");
    dgm_gguf_set_u32(w, "dragoman.target.vocab.size", 3);
    dgm_gguf_set_strings(w, "dragoman.target.vocab.words", words, 3);
    dgm_gguf_set_string(w, "dragoman.target.vocab.tokenizer", "moses");
    dgm_gguf_set_string(w, "dragoman.target.vocab.language", "de");
    dgm_gguf_set_i32(w, "dragoman.target.eos", 0);
    dgm_gguf_set_i32(w, "dragoman.target.unk", 1);
}

static dgm_status finish(void)
{
    assert_int_equal(dgm_gguf_write(w, path, &err), DGM_OK);
    dgm_gguf_writer_close(&w);
    dgm_status st = dgm_modelfile_open(&g, path, &err);
    unlink(path);
    return st;
}

// The message without the path before it.
static const char *message(void)
{
    const char *colon = strstr(err.text, "': ");
    return strncmp(err.text, "'/tmp/", 6) == 0 && colon ? colon + 3 : err.text;
}

static void test_identity(void **state)
{
    (void)state;
    begin();
    assert_int_equal(finish(), DGM_OK);
    assert_string_equal(dgm_modelfile_architecture(g), "transformer");
    dgm_gguf_close(&g);

    begin();
    dgm_gguf_set_u32(w, "dragoman.format_version", 2);
    assert_int_equal(finish(), DGM_ERR_VERSION);
    assert_string_equal(message(),
                        "model is newer than this program (format 2, this program reads 1)");
    assert_null(g);

    begin();
    dgm_gguf_set_string(w, "general.architecture", "llama");
    assert_int_equal(finish(), DGM_ERR_FORMAT);
    assert_string_equal(message(), "not a Dragoman model (its architecture is 'llama')");

    begin();
    dgm_gguf_unset(w, "dragoman.architecture");
    assert_int_equal(finish(), DGM_ERR_FORMAT);
    assert_string_equal(message(), "key 'dragoman.architecture' is missing");

    assert_int_equal(dgm_modelfile_open(&g, "/nonexistent", &err), DGM_ERR_IO);
    assert_string_equal(err.text, "cannot open '/nonexistent': No such file or directory");
}

static void test_decode_defaults(void **state)
{
    (void)state;
    dgm_decode_spec d;
    begin();
    assert_int_equal(finish(), DGM_OK);
    assert_int_equal(dgm_modelfile_decode(g, &d, &err), DGM_OK);
    assert_int_equal(d.beam, 4);
    assert_string_equal(dgm_finish_names[d.finish], "refill");
    assert_int_equal(d.precision, -1);
    assert_true(d.length_penalty == 1 && d.word_penalty == 0 && d.max_length_factor == 0);
    assert_true(d.max_length == 256 && d.max_source == 256 && !d.allow_unk);
    assert_true(d.align_layer == -1 && d.align_head == -1 && !d.self_normalised);
    dgm_gguf_close(&g);
}

static void test_decode_values(void **state)
{
    (void)state;
    dgm_decode_spec d;
    begin();
    dgm_gguf_set_u32(w, "dragoman.decode.beam", 6);
    dgm_gguf_set_string(w, "dragoman.decode.finish", "huggingface");
    dgm_gguf_set_string(w, "dragoman.decode.precision", "i8");
    dgm_gguf_set_f32(w, "dragoman.decode.length_penalty", 0.6f);
    dgm_gguf_set_u32(w, "dragoman.decode.max_length", 510);
    dgm_gguf_set_bool(w, "dragoman.decode.allow_unk", true);
    dgm_gguf_set_i32(w, "dragoman.align.layer", 3);
    assert_int_equal(finish(), DGM_OK);
    assert_int_equal(dgm_modelfile_decode(g, &d, &err), DGM_OK);
    assert_true(d.beam == 6 && d.max_length == 510 && d.allow_unk && d.align_layer == 3);
    assert_string_equal(dgm_finish_names[d.finish], "huggingface");
    assert_string_equal(dgm_precision_names[d.precision], "i8");
    dgm_gguf_close(&g);

    begin();
    dgm_gguf_set_u32(w, "dragoman.decode.beam", 0);
    assert_int_equal(finish(), DGM_OK);
    assert_int_equal(dgm_modelfile_decode(g, &d, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "key 'dragoman.decode.beam' is 0, expected 1 to 4096");
    dgm_gguf_close(&g);

    begin();
    dgm_gguf_set_f32(w, "dragoman.decode.length_penalty", 0.0f / 0.0f);
    assert_int_equal(finish(), DGM_OK);
    assert_int_equal(dgm_modelfile_decode(g, &d, &err), DGM_ERR_FORMAT);
    dgm_gguf_close(&g);

    begin();
    dgm_gguf_set_string(w, "dragoman.decode.finish", "never");
    assert_int_equal(finish(), DGM_OK);
    assert_int_equal(dgm_modelfile_decode(g, &d, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "key 'dragoman.decode.finish' is 'never', expected one of: "
                                  "margin, shrink, mask, refill, huggingface, first, "
                                  "huggingface-cut, huggingface-early, huggingface-early-cut, "
                                  "huggingface-never, huggingface-never-cut, marian, ctranslate2");
    dgm_gguf_close(&g);
}

static void test_decode_first(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
        int number; // -1: refused
    } cases[] = {{"first", "first", 0},      {"first:1", "first", 1},    {"first:256", "first", 256},
                 {"first:0", "first", -1},   {"first:257", "first", -1}, {"first:", "first", -1},
                 {"first:2x", "first", -1},  {"first: 2", "first", -1},  {"first:-1", "first", -1},
                 {"first:1e1", "first", -1}, {"first:99999999999999999999", "first", -1},
                 {"ctranslate2", "ctranslate2", 0},     {"ctranslate2:8", "ctranslate2", 8},
                 {"ctranslate2:0", "ctranslate2", -1},  {"ctranslate2:", "ctranslate2", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dgm_decode_spec d;
        begin();
        dgm_gguf_set_string(w, "dragoman.decode.finish", cases[i].text);
        assert_int_equal(finish(), DGM_OK);
        const dgm_status st = dgm_modelfile_decode(g, &d, &err);
        if (cases[i].number < 0) {
            char want[160];
            snprintf(want, sizeof want,
                     "key 'dragoman.decode.finish' is '%s', expected %s:1 to %s:256", cases[i].text,
                     cases[i].name, cases[i].name);
            assert_int_equal(st, DGM_ERR_FORMAT);
            assert_string_equal(err.text, want);
        } else {
            assert_int_equal(st, DGM_OK);
            assert_string_equal(dgm_finish_names[d.finish], cases[i].name);
            assert_int_equal(d.finish_first, cases[i].number);
            assert_string_equal(dgm_finish_write(d.finish, d.finish_first).text, cases[i].text);
        }
        dgm_gguf_close(&g);
    }
    assert_string_equal(dgm_finish_write(0, 3).text, "margin"); // which has no number
}

static void test_shared_vocab(void **state)
{
    (void)state;
    static const char *const extra[] = {"<pad>"};
    const int32_t map[] = {1, 0, -1, 2}, never[] = {4};
    dgm_vocab_spec v;
    begin();
    put_pieces("source", 5);
    dgm_gguf_set_array(w, "dragoman.source.vocab.map", DGM_META_I32, map, 4);
    dgm_gguf_set_strings(w, "dragoman.source.vocab.extra", extra, 1);
    dgm_gguf_set_i32(w, "dragoman.source.pad", 4);
    dgm_gguf_set_i32(w, "dragoman.target.start", 4);
    dgm_gguf_set_array(w, "dragoman.target.never", DGM_META_I32, never, 1);
    assert_int_equal(finish(), DGM_OK);
    assert_int_equal(dgm_modelfile_vocab(g, DGM_SOURCE, &v, &err), DGM_OK);
    assert_true(!v.shared && v.kind == DGM_SPEC_SENTENCEPIECE && v.size == 5);
    assert_true(v.model_size == 3 && v.map_count == 4 && v.map[2] == -1);
    assert_true(v.eos == 0 && v.unk == 1 && v.pad == 4 && v.bos == -1 && v.append_eos);
    assert_true(v.start == -1 && v.never_count == 0 && v.prefix_count == 0);
    assert_int_equal(dgm_modelfile_vocab(g, DGM_TARGET, &v, &err), DGM_OK);
    assert_true(v.shared && v.size == 5 && v.pad == 4 && v.start == 4);
    assert_true(v.never_count == 1 && v.never[0] == 4);
    dgm_gguf_text t;
    assert_true(dgm_gguf_strings_next(&v.extra, &t) && t.size == 5);
    dgm_gguf_close(&g);
}

static void test_word_vocab(void **state)
{
    (void)state;
    const int32_t prefix[] = {2};
    dgm_vocab_spec v;
    begin();
    put_pieces("source", 5);
    dgm_gguf_set_array(w, "dragoman.source.prefix", DGM_META_I32, prefix, 1);
    dgm_gguf_set_bool(w, "dragoman.source.append_eos", false);
    put_words();
    assert_int_equal(finish(), DGM_OK);
    assert_int_equal(dgm_modelfile_vocab(g, DGM_SOURCE, &v, &err), DGM_OK);
    assert_true(v.prefix_count == 1 && v.prefix[0] == 2 && !v.append_eos && !v.map);
    assert_int_equal(dgm_modelfile_vocab(g, DGM_TARGET, &v, &err), DGM_OK);
    assert_true(!v.shared && v.kind == DGM_SPEC_WORDS && v.size == 3 && v.words.count == 3);
    assert_true(v.tokenizer == DGM_SPEC_TOKENIZER_MOSES && v.prefix_count == 0);
    assert_string_equal(v.language, "de");
    dgm_gguf_close(&g);
}

static void expect_vocab_error(dgm_side side, const char *text)
{
    dgm_vocab_spec v;
    assert_int_equal(finish(), DGM_OK);
    assert_int_equal(dgm_modelfile_vocab(g, side, &v, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, text);
    dgm_gguf_close(&g);
}

static void test_vocab_errors(void **state)
{
    (void)state;
    const int32_t far[] = {0, 5};
    begin();
    expect_vocab_error(DGM_SOURCE, "key 'dragoman.source.vocab.kind' is missing");
    begin();
    expect_vocab_error(DGM_TARGET, "key 'dragoman.source.vocab.kind' is missing");
    begin();
    put_pieces("source", 1);
    expect_vocab_error(DGM_SOURCE, "key 'dragoman.source.vocab.size' is 1, expected 2 to 16777216");
    begin();
    put_pieces("source", 5);
    dgm_gguf_set_i32(w, "dragoman.source.eos", 5);
    expect_vocab_error(DGM_SOURCE, "key 'dragoman.source.eos' is 5, expected 0 to 4");
    begin();
    put_pieces("source", 5);
    dgm_gguf_set_array(w, "dragoman.source.vocab.map", DGM_META_I32, far, 2);
    expect_vocab_error(DGM_SOURCE,
                       "key 'dragoman.source.vocab.map': element 1 is 5, expected -1 to 4");
    begin();
    put_pieces("source", 5);
    dgm_gguf_set_array(w, "dragoman.target.never", DGM_META_I32, far, 2);
    expect_vocab_error(DGM_TARGET, "key 'dragoman.target.never': element 1 is 5, expected 0 to 4");
    begin();
    put_words();
    dgm_gguf_set_u32(w, "dragoman.target.vocab.size", 4);
    expect_vocab_error(DGM_TARGET, "key 'dragoman.target.vocab.words' has 3 elements for 4 ids");
    begin();
    put_words();
    dgm_gguf_set_string(w, "dragoman.target.vocab.tokenizer", "best");
    expect_vocab_error(DGM_TARGET, "key 'dragoman.target.vocab.tokenizer' is 'best', expected one "
                                   "of: none, moses, sacremoses, conservative, aggressive");
}

// ---- what is no model file ----------------------------------------------------------------------

static void put_file(const char *folder, const char *name, const char *data, size_t size)
{
    char at[192];
    snprintf(at, sizeof at, "%s/%s", folder, name);
    FILE *f = fopen(at, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void test_foreign(void **state)
{
    (void)state;
    static const struct {
        const char *files[3];
        dgm_foreign kind;
        const char *says;
    } folders[] = {
        {{"config.json", "model.safetensors", NULL}, DGM_FOREIGN_HUGGINGFACE, "import huggingface"},
        {{"config.json", "pytorch_model.bin", NULL}, DGM_FOREIGN_HUGGINGFACE, "import huggingface"},
        {{"config.json", "model.bin", NULL}, DGM_FOREIGN_CTRANSLATE2, "import ctranslate2"},
        {{"metadata.json", "model", NULL}, DGM_FOREIGN_ARGOS, "import argos"},
        {{"decoder.yml", "vocab.spm", NULL}, DGM_FOREIGN_MARIAN, "import marian"},
        {{"model.npz", "vocab.yml", NULL}, DGM_FOREIGN_MARIAN, "import marian"},
        {{"model.ende.intgemm.alphas.bin", "vocab.ende.spm", NULL}, DGM_FOREIGN_BERGAMOT, "import bergamot"},
        {{"model.npz", "model.npz.json", NULL}, DGM_FOREIGN_NEMATUS, "import nematus"},
        {{"model.npz", "model.npz.json", "decoder.yml"}, DGM_FOREIGN_MARIAN, "import marian"},
        {{"model.pt", "dict.en.txt", NULL}, DGM_FOREIGN_FAIRSEQ, "import fairseq"},
        {{"model.pt", NULL, NULL}, DGM_FOREIGN_OPENNMT, "import opennmt-py"},
        {{"en-de.gguf", NULL, NULL}, DGM_FOREIGN_MODELS, "name one of them"},
        {{"readme.txt", NULL, NULL}, DGM_FOREIGN_NONE, "it is a folder"},
        {{NULL, NULL, NULL}, DGM_FOREIGN_NONE, "it is a folder"},
    };
    char folder[128], at[192];
    snprintf(folder, sizeof folder, "%s.d", path);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        assert_int_equal(mkdir(folder, 0700), 0);
        for (int k = 0; k < 3 && folders[i].files[k]; k++) put_file(folder, folders[i].files[k], "x", 1);
        assert_int_equal(dgm_foreign_kind(folder), folders[i].kind);
        assert_int_not_equal(dgm_modelfile_open(&g, folder, &err), DGM_OK);
        assert_non_null(strstr(err.text, folder));
        assert_non_null(strstr(err.text, folders[i].says));
        for (int k = 0; k < 3 && folders[i].files[k]; k++) {
            snprintf(at, sizeof at, "%s/%s", folder, folders[i].files[k]);
            unlink(at);
        }
        assert_int_equal(rmdir(folder), 0);
    }
    assert_int_equal(dgm_foreign_kind("Helsinki-NLP/opus-mt-en-de"), DGM_FOREIGN_NAME);
    static const char *const paths[] = {"Helsinki-NLP", "a/b/c",      "./model", "/tmp/none",
                                        "x/y.gguf",     "tests/none", "a/",      ""};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_int_equal(dgm_foreign_kind(paths[i]), DGM_FOREIGN_NONE);
}

static void test_foreign_files(void **state)
{
    (void)state;
    static const char safetensors[] = "\x10\0\0\0\0\0\0\0{\"a\": {}}      ";
    static const char zip[] = "PK\3\4........", text[] = "A line of text, no more than that.\n";
    static const char package[] = "PK\3\4....PK\1\2....translate-en_de-1_0/metadata.json";
    static const char opus[] = "PK\3\4....PK\1\2....decoder.yml";
    char spec[128] = "\6\0\0\0\017\0TransformerSpec";
    char marian[128] = "\1\0\0\0\0\0\0\0\7";
    char first[128] = "\1\0\0\0\3\0\0\0\020\0transformer/decoder/w_embs";
    const struct {
        const char *name, *data;
        size_t size;
        dgm_foreign kind;
    } files[] = {{"a.safetensors", safetensors, sizeof safetensors, DGM_FOREIGN_PART},
                 {"a.bin", marian, sizeof marian, DGM_FOREIGN_MARIAN},
                 {"a.intgemm.alphas.bin", marian, sizeof marian, DGM_FOREIGN_BERGAMOT},
                 {"b.bin", first, sizeof first, DGM_FOREIGN_CTRANSLATE2},
                 {"a.argosmodel", zip, sizeof zip, DGM_FOREIGN_ARGOS},
                 {"a.zip", package, sizeof package, DGM_FOREIGN_ARGOS},
                 {"b.zip", opus, sizeof opus, DGM_FOREIGN_OPUS},
                 {"a.pt", zip, sizeof zip, DGM_FOREIGN_OPENNMT},
                 {"a.bin", spec, sizeof spec, DGM_FOREIGN_CTRANSLATE2},
                 {"a.bin", spec, 12, DGM_FOREIGN_NONE},
                 {"a.npz", zip, sizeof zip, DGM_FOREIGN_MARIAN},
                 {"a.bin", zip, sizeof zip, DGM_FOREIGN_PART},
                 {"a.gguf", text, sizeof text, DGM_FOREIGN_NONE},
                 {"a.gguf", text, 0, DGM_FOREIGN_NONE}};
    char at[192];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(at, sizeof at, "/tmp/dgm-foreign-%ld-%s", (long)getpid(), files[i].name);
        put_file("/tmp", at + 5, files[i].data, files[i].size);
        const dgm_foreign kind = dgm_foreign_kind(at);
        unlink(at);
        assert_int_equal(kind, files[i].kind);
    }
}

// ---- names of languages -------------------------------------------------------------------------

static void test_language_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *code;
        int match;
    } rows[] = {
        {"en", "en", 2},           {"EN", "en", 2},          {"zh-cn", "zh_CN", 2},
        {"eng", "en", 1},          {"en", "eng", 1},         {"en-US", "en", 1},
        {"en_GB", "eng_Latn", 1},  {"English", "en", 1},     {"english", "eng_Latn", 1},
        {"Deutsch", "de", 1},      {"DEUTSCH", "deu", 1},    {"German", "de_DE", 1},
        {"ger", "de", 1},          {"ger", "deu_Latn", 1},   {"de-AT", "de", 1},
        {"français", "fr", 1},     {"FRANÇAIS", "fr", 1},    {"русский", "ru", 1},
        {"Русский", "rus_Cyrl", 1}, {"ΕΛΛΗΝΙΚΆ", "xx", 0},   {"Ελληνικά", "el", 1},
        {"Čeština", "cs", 1},      {"日本語", "ja", 1},      {"Haitian Creole", "ht", 1},
        {"haitian-creole", "ht", 1}, {"zh-CN", "zho_Hans", 1}, {"zh-TW", "zho_Hant", 1},
        {"zh-TW", "zho_Hans", 0},  {"zh", "zho_Hans", 1},    {"Simplified Chinese", "zho_Hans", 1},
        {"Simplified Chinese", "zho_Hant", 0}, {"Chinese", "zh", 1}, {"pt-BR", "pt", 1},
        {"pt-BR", "pt_PT", 0},     {"pt-BR", "pt_XX", 1},    {"de", "en", 0},
        {"English", "de", 0},      {"Engl", "en", 0},        {"e", "en", 0},
        {"", "en", 0},             {"enx", "en", 0},         {"sr-Cyrl", "sr-Latn", 0},
        {"iw", "he", 1},           {"fil", "tl", 1},         {"no", "nob_Latn", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (dgm_language_matches(rows[i].name, rows[i].code) != rows[i].match)
            fail_msg("'%s' for '%s' is not %d", rows[i].name, rows[i].code, rows[i].match);
}

// The languages of M2M100, each by the English name.
static void test_language_count(void **state)
{
    (void)state;
    static const char codes[] =
        "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht "
        "hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps "
        "pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu";
    static const char *const names[] = {
        "Afrikaans",  "Amharic",    "Arabic",     "Asturian",  "Azerbaijani", "Bashkir",    "Belarusian", "Bulgarian",
        "Bengali",    "Breton",     "Bosnian",    "Catalan",   "Cebuano",     "Czech",      "Welsh",      "Danish",
        "German",     "Greek",      "English",    "Spanish",   "Estonian",    "Persian",    "Fulah",      "Finnish",
        "French",     "Frisian",    "Irish",      "Gaelic",    "Galician",    "Gujarati",   "Hausa",      "Hebrew",
        "Hindi",      "Croatian",   "Haitian",    "Hungarian", "Armenian",    "Indonesian", "Igbo",       "Iloko",
        "Icelandic",  "Italian",    "Japanese",   "Javanese",  "Georgian",    "Kazakh",     "Khmer",      "Kannada",
        "Korean",     "Luxembourgish", "Ganda",   "Lingala",   "Lao",         "Lithuanian", "Latvian",    "Malagasy",
        "Macedonian", "Malayalam",  "Mongolian",  "Marathi",   "Malay",       "Burmese",    "Nepali",     "Dutch",
        "Norwegian",  "Sepedi",     "Occitan",    "Odia",      "Panjabi",     "Polish",     "Pashto",     "Portuguese",
        "Romanian",   "Russian",    "Sindhi",     "Sinhala",   "Slovak",      "Slovenian",  "Somali",     "Albanian",
        "Serbian",    "Swati",      "Sundanese",  "Swedish",   "Swahili",     "Tamil",      "Thai",       "Tagalog",
        "Tswana",     "Turkish",    "Ukrainian",  "Urdu",      "Uzbek",       "Vietnamese", "Wolof",      "Xhosa",
        "Yiddish",    "Yoruba",     "Chinese",    "Zulu"};
    size_t count = 0;
    for (const char *at = codes; *at; count++) {
        char code[8];
        const size_t n = strcspn(at, " ");
        snprintf(code, sizeof code, "%.*s", (int)n, at);
        at += n + (at[n] == ' ');
        if (dgm_language_matches(names[count], code) != 1) fail_msg("'%s' is not '%s'", names[count], code);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (k != count && dgm_language_matches(names[k], code)) fail_msg("'%s' is '%s'", names[k], code);
    }
    assert_int_equal(count, 100);
    assert_int_equal(count, sizeof names / sizeof *names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity),      cmocka_unit_test(test_decode_defaults),
        cmocka_unit_test(test_decode_values), cmocka_unit_test(test_decode_first), cmocka_unit_test(test_shared_vocab),
        cmocka_unit_test(test_word_vocab),    cmocka_unit_test(test_vocab_errors),
        cmocka_unit_test(test_foreign),       cmocka_unit_test(test_foreign_files),
        cmocka_unit_test(test_language_names), cmocka_unit_test(test_language_count),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
