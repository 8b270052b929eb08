// SPDX-License-Identifier: MIT
// Folders of models of Marian: shortlists as text, compared with what Marian takes of one; releases with byte-pair
// encoding, compared with Marian between sacremoses and subword-nmt (tests/oracle/make_marian.py makes both); settings
// that name files elsewhere; what is recognised, and where a model file may be written.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include <cmocka.h>

#include "dragoman/dragoman.h"
#include "dragoman/tools.h"
#include "base/mem.h"
#include "engine.h"
#include "format/gguf.h"
#include "format/shortlist.h"
#include "import/release.h"
#include "import/spm_list.h"
#include "scratch.h"

#define DATA "tests/data/marian/"

static void copy_file(const char *name, const char *from)
{
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, from, NULL), DGM_OK);
    put(name, f.data, f.size);
    dgm_mapfile_close(&f);
}

// A folder of a model with its vocabulary and these settings of the decoder.
static const char *make_model(const char *name, const char *settings)
{
    char file[48];
    assert_int_equal(mkdir(in_folder(name), 0777), 0);
    snprintf(file, sizeof file, "%s/model.npz", name);
    copy_file(file, DATA "aan.npz");
    snprintf(file, sizeof file, "%s/joint.spm", name);
    copy_file(file, DATA "joint.spm");
    snprintf(file, sizeof file, "%s/decoder.yml", name);
    put_text(file, settings);
    return in_folder(name);
}

static void add_settings(const char *name, const char *settings)
{
    char file[48];
    snprintf(file, sizeof file, "%s/decoder.yml", name);
    put_text(file, settings);
}

static const char *import_it(const char *path)
{
    dgm_error err = {""};
    const char *out = in_folder("model.gguf");
    unlink(out);
    if (dgm_import("auto", path, out, NULL, &err) != DGM_OK) fail_msg("%s: %s", path, err.text);
    return out;
}

// The message of an import that fails; its output is not made.
static void expect(const char *path, const char *message)
{
    dgm_error err = {""};
    const char *out = in_folder("none.gguf");
    assert_int_not_equal(dgm_import("auto", path, out, NULL, &err), DGM_OK);
    if (!strstr(err.text, message)) fail_msg("'%s' instead of '%s'", err.text, message);
    assert_false(dgm_file_exists(out));
}

// ---- shortlists ----------------------------------------------------------------------------------

typedef struct pieces {
    dgm_mapfile file;
    dgm_spm_list list;
} pieces;

static pieces open_pieces(void)
{
    pieces p;
    assert_int_equal(dgm_mapfile_open(&p.file, DATA "joint.spm", NULL), DGM_OK);
    assert_int_equal(dgm_spm_list_read(&p.list, p.file.data, p.file.size, NULL), DGM_OK);
    return p;
}

static void close_pieces(pieces *p)
{
    dgm_spm_list_free(&p->list);
    dgm_mapfile_close(&p->file);
}

// Is the pair a line of the text?
static bool has_pair(const char *text, const dgm_spm_item *source, const dgm_spm_item *target)
{
    char line[128];
    snprintf(line, sizeof line, "\n%.*s\t%.*s\n", (int)source->size, source->piece, (int)target->size,
             target->piece);
    return strstr(text, line) != NULL;
}

// As many pairs as lines, and each of them a line.
static void compare_lists(const dgm_shortlist_view *list)
{
    char *golden = get(DATA "made.best.txt"), *text = NULL;
    int32_t ids[DGM_SHORTLIST_BEST_MAX];
    pieces p = open_pieces();
    int lines = 0, pairs = 0;
    assert_true(asprintf(&text, "\n%s", golden) > 0);
    for (const char *at = golden; *at; at++) lines += *at == '\n';
    for (int i = 0; i < list->sources; i++) {
        const int n = dgm_shortlist_view_row(list, i, ids);
        for (int k = 0; k < n; k++, pairs++)
            if (!has_pair(text, &p.list.items[i], &p.list.items[ids[k]]))
                fail_msg("%d may not become %d", i, ids[k]);
    }
    assert_int_equal(pairs, lines);
    close_pieces(&p);
    free(text);
    free(golden);
}

static void open_list(const char *model, dgm_gguf **g, dgm_shortlist_view *list)
{
    dgm_error err;
    assert_int_equal(dgm_gguf_open(g, import_it(model), &err), DGM_OK);
    assert_int_equal(dgm_shortlist_view_open(list, *g, &err), DGM_OK);
}

static void test_text_shortlist(void **state)
{
    (void)state;
    static const char *const settings[] = {
        "models: [model.npz]\nvocabs: [joint.spm, joint.spm]\nshortlist: [/home/x/lex.s2t.gz, 30, 6, 0.05]\n",
        "models: [model.npz]\nvocabs: [joint.spm, joint.spm]\nshortlist:\n  - lex.s2t.gz\n  - '30'\n  - '6'\n"
        "  - \"0.05\"\n",
    };
    const char *model = make_model("lists", "");
    copy_file("lists/lex.s2t.gz", DATA "made.s2t.gz");
    for (int i = 0; i < 2; i++) {
        dgm_gguf *g;
        dgm_shortlist_view list;
        add_settings("lists", settings[i]);
        open_list(model, &g, &list);
        assert_true(list.copy && list.frequent_count == 30 && list.longest == 6);
        compare_lists(&list);
        dgm_shortlist_view_close(&list);
        dgm_gguf_close(&g);
    }
}

// A list that no settings name: found by its name, with Marian's numbers. More than there are tokens are all.
static void test_shortlist_beside(void **state)
{
    (void)state;
    static const char settings[] = "models: [model.npz]\nvocabs: [joint.spm]\n";
    dgm_gguf *g;
    dgm_shortlist_view list;
    int32_t ids[DGM_SHORTLIST_BEST_MAX];
    const char *model = make_model("beside", settings);
    pieces p = open_pieces();
    const int a = 20, unk = 1;
    char text[512];
    snprintf(text, sizeof text, "%.*s\t%.*s\t0.5\n\n%.*s %.*s 0\nNULL x 1\nnowhere nobody 0.25\r\n",
             (int)p.list.items[7].size, p.list.items[7].piece, (int)p.list.items[a].size, p.list.items[a].piece,
             (int)p.list.items[8].size, p.list.items[8].piece, (int)p.list.items[a].size, p.list.items[a].piece);
    put_text("beside/lex.s2t", text);
    open_list(model, &g, &list);
    assert_int_equal(list.frequent_count, 100);
    assert_int_equal(dgm_shortlist_view_row(&list, a, ids), 1); // the other one has no probability
    assert_int_equal(ids[0], 7);
    assert_int_equal(dgm_shortlist_view_row(&list, unk, ids), 1);
    assert_int_equal(ids[0], unk);
    dgm_shortlist_view_close(&list);
    dgm_gguf_close(&g);
    add_settings("beside", "models: [model.npz]\nvocabs: [joint.spm]\nshortlist: [lex.s2t, 1000, 0]\n");
    open_list(model, &g, &list);
    assert_true(list.frequent_count == list.targets && list.longest == 0);
    dgm_shortlist_view_close(&list);
    dgm_gguf_close(&g);
    close_pieces(&p);
}

static void test_bad_shortlists(void **state)
{
    (void)state;
    const char *model = make_model("bad", "models: [model.npz]\nvocabs: [joint.spm]\n");
    put_text("bad/lex.s2t", "a b 0.5\na b\n");
    expect(model, "lex.s2t:2: 'a b' is not TARGET SOURCE PROBABILITY");
    put_text("bad/lex.s2t", "a b c\n");
    expect(model, "lex.s2t:1: 'a b c' is not");
    put_text("bad/lex.s2t", "a b 0.5 d\n");
    expect(model, "lex.s2t:1: 'a b 0.5 d' is not");
    put_text("bad/lex.s2t", "NULL b 0.5\n");
    expect(model, "holds no pair of words");
    put_text("bad/lex.s2t", "a b 0.5\n");
    add_settings("bad", "models: [model.npz]\nvocabs: [joint.spm]\nshortlist: [lex.s2t, many]\n");
    expect(model, "decoder.yml': number 1 of \"shortlist\" is not from 0 to");
    add_settings("bad", "models: [model.npz]\nvocabs: [joint.spm]\nshortlist: [lex.s2t, 5, -1]\n");
    expect(model, "number 2 of \"shortlist\"");
    put_text("bad/lex.bin", "a b 0.5\n");
    add_settings("bad", "models: [model.npz]\nvocabs: [joint.spm]\nshortlist: [lex.bin]\n");
    expect(model, "lex.bin': not a binary shortlist of Marian");
}

// ---- releases with byte-pair encoding ------------------------------------------------------------

static const char script[] = "#!/bin/bash\n# tokenizer.perl -no-escape\n"
                             "${TOKENIZER}/replace-unicode-punctuation.perl |\n"
                             "${TOKENIZER}/remove-non-printing-char.perl |\n"
                             "${TOKENIZER}/normalize-punctuation.perl -l $1 |\n"
                             "${TOKENIZER}/tokenizer.perl -a -threads ${THREADS} -l $1 |\n"
                             "sed 's/  */ /g;s/^ *//g;s/ *$//g' |\n"
                             "python3 ${SNMTPATH}/apply_bpe.py -c $2\n";
static const char readme[] = "# opus-2019-12-04.zip\n\n* pre-processing: normalization + tokenization + BPE\n* "
                             "download: [opus.zip](https://example.org/OPUS-MT-models/en-de/opus-2019-12-04.zip)\n";

static void add_to_zip(zip_t *z, const char *name, const char *path)
{
    assert_true(zip_file_add(z, name, zip_source_file(z, path, 0, -1), ZIP_FL_ENC_UTF_8) >= 0);
}

static void add_text(zip_t *z, const char *name, const char *text)
{
    assert_true(zip_file_add(z, name, zip_source_buffer(z, text, strlen(text), 0), ZIP_FL_ENC_UTF_8) >= 0);
}

// As OPUS-MT released its first models.
static const char *make_release(const char *name)
{
    zip_t *z = zip_open(in_folder(name), ZIP_CREATE | ZIP_TRUNCATE, NULL);
    add_to_zip(z, "model.npz", DATA "bpe.npz");
    add_to_zip(z, "opus.vocab.yml", DATA "bpe.words.yml");
    add_to_zip(z, "source.bpe", DATA "bpe.codes");
    add_to_zip(z, "target.bpe", DATA "bpe.codes");
    add_text(z, "decoder.yml",
             "relative-paths: true\nmodels: [model.npz]\nvocabs:\n  - opus.vocab.yml\n  - opus.vocab.yml\n");
    add_text(z, "preprocess.sh", script);
    add_text(z, "README.md", readme);
    assert_int_equal(zip_close(z), 0);
    return in_folder(name);
}

// Text as it is goes in and comes out; expected: what Marian made of it between sacremoses and subword-nmt.
static void compare_texts(const char *model, const char *expected, int beam, float normalize, float penalty)
{
    char *input = get(DATA "input.txt"), *golden = get(expected), *line_state = NULL, *golden_state = NULL;
    dgm_settings o;
    int lines = 0, same = 0;
    dgm_settings_default(&o);
    o.beam = beam;
    o.length_penalty = normalize;
    o.word_penalty = penalty;
    o.precision = "f32";
    o.raw = 1;
    dgm_translator *t = open_with(&o, model);
    char *theirs = strtok_r(golden, "\n", &golden_state);
    for (char *line = strtok_r(input, "\n", &line_state); line; line = strtok_r(NULL, "\n", &line_state), lines++) {
        dgm_results *r = translate_one(t, line);
        const dgm_translation *best = r->items[0]->translations[0];
        const double score = strtod(theirs, NULL);
        same += strcmp(strchr(theirs, '\t') + 1, best->text) == 0 &&
                fabs(score - (double)best->score) < 1e-3 * fmax(1, fabs(score));
        dgm_results_free(&r);
        theirs = strtok_r(NULL, "\n", &golden_state);
    }
    assert_int_equal(lines, 200);
    if (same < 198) fail_msg("%s: %d of %d lines agree", expected, same, lines);
    dgm_close(&t);
    free(input);
    free(golden);
}

static void test_bpe_release(void **state)
{
    (void)state;
    dgm_gguf *g;
    const char *kind = NULL, *tokenizer = NULL, *language = NULL;
    const char *model = import_it(make_release("opus.zip"));
    assert_int_equal(dgm_gguf_open(&g, model, NULL), DGM_OK);
    dgm_gguf_get_string(g, "dragoman.target.vocab.kind", DGM_REQUIRED, &kind, NULL);
    dgm_gguf_get_string(g, "dragoman.target.vocab.tokenizer", DGM_REQUIRED, &tokenizer, NULL);
    dgm_gguf_get_string(g, "dragoman.target.vocab.language", DGM_REQUIRED, &language, NULL);
    assert_string_equal(kind, "bpe");
    assert_string_equal(tokenizer, "sacremoses");
    assert_string_equal(language, "de");
    dgm_gguf_close(&g);
    compare_texts(model, DATA "bpe.beam1.tsv", 1, 0, 0);
    compare_texts(model, DATA "bpe.beam6.tsv", 6, 0.6f, 0.1f);
}

// A release for several targets has their tokens in its vocabulary, and the language that it reads in its page.
static void test_bpe_targets(void **state)
{
    (void)state;
    dgm_gguf *g;
    dgm_gguf_strings sources, targets;
    dgm_gguf_text source = {0}, target = {0};
    const char *path = make_release("many.zip");
    char *words = get(DATA "bpe.words.yml"), *other = NULL, *last = strrchr(words, ':');
    const int size = atoi(last + 1);
    char *line = memrchr(words, '\n', (size_t)(last - words));
    *line = 0;
    assert_true(asprintf(&other, "%s\n\">>deu<<\": %d\n", words, size) > 0);
    zip_t *z = zip_open(path, 0, NULL);
    zip_source_t *changed = zip_source_buffer(z, other, strlen(other), 0);
    assert_int_equal(zip_file_replace(z, (zip_uint64_t)zip_name_locate(z, "opus.vocab.yml", 0), changed, 0), 0);
    assert_int_equal(zip_close(z), 0);
    assert_int_equal(dgm_gguf_open(&g, import_it(path), NULL), DGM_OK);
    assert_int_equal(dgm_gguf_get_strings(g, "dragoman.languages.source", DGM_REQUIRED, &sources, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_get_strings(g, "dragoman.languages.target", DGM_REQUIRED, &targets, NULL), DGM_OK);
    assert_true(dgm_gguf_strings_next(&sources, &source) && source.size == 2 && memcmp(source.data, "en", 2) == 0);
    assert_true(dgm_gguf_strings_next(&targets, &target) && target.size >= 2 && memcmp(target.data, "de", 2) == 0);
    const int32_t *tokens;
    size_t count = 0;
    assert_int_equal(dgm_gguf_get_i32s(g, "dragoman.languages.target_tokens", DGM_REQUIRED, 0, size, &tokens, &count,
                                       NULL),
                     DGM_OK);
    assert_true(count == 1 && tokens[0] == size);
    dgm_gguf_close(&g);
    free(words);
    free(other);
}

// What scripts and pages say, in other spellings.
static void test_releases(void **state)
{
    (void)state;
    dgm_release r = {0};
    dgm_release_script(&r, dgm_text_of(script));
    assert_true(r.tokenized && r.bpe && !r.truecased && r.moses == 15 && !r.language[0][0]);
    r = (dgm_release){0};
    dgm_release_script(&r, dgm_text_of("$moses/scripts/tokenizer/tokenizer.perl -l ro -no-escape -penn | "
                                       "$moses/scripts/recaser/truecase.perl -model tc | subword-nmt apply-bpe -c b"));
    assert_true(r.tokenized && r.bpe && r.truecased && r.moses == 0);
    assert_string_equal(r.language[0], "ro");
    r = (dgm_release){0};
    dgm_release_script(&r, dgm_text_of("# /tokenizer.perl\nspm_encode --model $2\n"));
    assert_true(!r.tokenized && !r.bpe);
    static const char *const pages[][3] = {{readme, "en", "de"},
                                           {"x Tatoeba-MT-models/eng-deu/a.zip", "eng", "deu"},
                                           {"OPUS-MT-models/en-ROMANCE/a.zip", "en", ""},
                                           {"OPUS-MT-models/a+b-de/", "", "de"},
                                           {"OPUS-MT-models/en", "", ""},
                                           {"OPUS-MT-models/", "", ""},
                                           {"nothing", "", ""}};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        r = (dgm_release){0};
        dgm_release_readme(&r, dgm_text_of(pages[i][0]));
        assert_string_equal(r.language[0], pages[i][1]);
        assert_string_equal(r.language[1], pages[i][2]);
    }
}

// Codes of one side only; without codes subwords come from outside, and no text is tokenised before.
static void test_incomplete_releases(void **state)
{
    (void)state;
    dgm_gguf *g;
    const char *kind = NULL, *tokenizer = NULL;
    const char *path = make_release("part.zip");
    zip_t *z = zip_open(path, 0, NULL);
    assert_int_equal(zip_delete(z, (zip_uint64_t)zip_name_locate(z, "target.bpe", 0)), 0);
    assert_int_equal(zip_close(z), 0);
    expect(path, "has one of 'source.bpe' and 'target.bpe' only");
    z = zip_open(path, 0, NULL);
    assert_int_equal(zip_delete(z, (zip_uint64_t)zip_name_locate(z, "source.bpe", 0)), 0);
    assert_int_equal(zip_close(z), 0);
    assert_int_equal(dgm_gguf_open(&g, import_it(path), NULL), DGM_OK);
    dgm_gguf_get_string(g, "dragoman.source.vocab.kind", DGM_REQUIRED, &kind, NULL);
    dgm_gguf_get_string(g, "dragoman.source.vocab.tokenizer", DGM_REQUIRED, &tokenizer, NULL);
    assert_string_equal(kind, "words");
    assert_string_equal(tokenizer, "none");
    dgm_gguf_close(&g);
}

// ---- memory --------------------------------------------------------------------------------------

// Allocations fail, a few hundred of the many: nothing is left behind, no output comes into being.
static void fail_allocations(const char *model)
{
    const char *out = in_folder("memory.gguf");
    unlink(out);
    dgm_status st = DGM_ERR_MEMORY;
    for (uint64_t n = 1; st != DGM_OK; n += 1 + n / 24) {
        const uint64_t live = dgm_mem_live();
        dgm_error err = {""};
        dgm_mem_inject(n, 1);
        st = dgm_import("marian", model, out, NULL, &err);
        dgm_mem_inject(0, 0);
        if (st != DGM_OK && st != DGM_ERR_MEMORY) fail_msg("%d at %d: %s", (int)st, (int)n, err.text);
        assert_true(st == DGM_OK || !dgm_file_exists(out));
        assert_int_equal(dgm_mem_live(), live);
    }
}

static void test_memory(void **state)
{
    (void)state;
    put_text("memory.s2t", "a b 0.5\na c 0.5\n");
    const char *model = make_model("memory", "models: [model.npz]\nvocabs: [joint.spm]\n");
    copy_file("memory/lex.s2t", in_folder("memory.s2t"));
    fail_allocations(model);
    fail_allocations(make_release("memory.zip"));
}

// ---- files elsewhere -----------------------------------------------------------------------------

// Settings cannot lead out of the folder, be it by a whole path, by ".." or by a folder that is a link.
static void test_files_elsewhere(void **state)
{
    (void)state;
    char settings[512];
    const char *model = make_model("inside", "");
    put_text("secret.yml", "</s>: 0\n<unk>: 1\nroot: 2\n");
    put_text("secret.bin", "secret");
    assert_int_equal(mkdir(in_folder("other"), 0777), 0);
    copy_file("other/secret.yml", in_folder("secret.yml"));
    assert_int_equal(symlink("../other", in_folder("inside/link")), 0);
    static const char *const names[] = {"../secret.yml", "inside/../../secret.yml", "link/secret.yml", "/etc/passwd",
                                        "link", ".."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int relative = 0; relative < 2; relative++) {
            snprintf(settings, sizeof settings, "relative-paths: %s\nmodels: [model.npz]\nvocabs: ['%s']\n",
                     relative ? "true" : "false", names[i]);
            add_settings("inside", settings);
            expect(model, "which is not in the model's folder");
        }
    snprintf(settings, sizeof settings, "models: [model.npz]\nvocabs: ['%s']\n", in_folder("secret.yml"));
    add_settings("inside", settings);
    expect(model, "\"vocabs\" names '");
    add_settings("inside", "models: [model.npz]\nvocabs: [joint.spm]\nshortlist: [../secret.bin]\n");
    expect(model, "\"shortlist\" names '../secret.bin', which is not in the model's folder");
    add_settings("inside", "models: [../secret.bin]\nvocabs: [joint.spm]\n");
    expect(model, "\"models\" names '../secret.bin'");
}

// A folder below, a whole path into the folder and a file that is a link are all good.
static void test_files_inside(void **state)
{
    (void)state;
    char settings[512];
    const char *model = make_model("below", "");
    assert_int_equal(mkdir(in_folder("below/parts"), 0777), 0);
    assert_int_equal(rename(in_folder("below/joint.spm"), in_folder("below/parts/a.spm")), 0);
    assert_int_equal(symlink("parts/a.spm", in_folder("below/b.spm")), 0);
    assert_int_equal(rename(in_folder("below/model.npz"), in_folder("blob")), 0);
    assert_int_equal(symlink("../blob", in_folder("below/model.npz")), 0);
    const char *whole = in_folder("below/parts/a.spm");
    const char *const names[] = {"parts/a.spm", "parts/../parts/a.spm", "b.spm", whole};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(settings, sizeof settings, "relative-paths: true\nmodels: [model.npz]\nvocabs: ['%s']\n", names[i]);
        add_settings("below", settings);
        import_it(model);
    }
}

// ---- what is recognised, and said ----------------------------------------------------------------

static void test_settings_are_recognised(void **state)
{
    (void)state;
    const char *what = NULL;
    make_model("yml", "# decoder\nrelative-paths: true\nmodels:\n  - model.npz\nvocabs:\n  - joint.spm\n");
    assert_string_equal(dgm_import_recognise(in_folder("yml/decoder.yml"), &what), "marian");
    assert_string_equal(what, "a model of Marian");
    import_it(in_folder("yml/decoder.yml"));
    put_text("student.yml", "vocabs:\n  - a.spm\ngemm-precision: int8shiftAlphaAll\n");
    assert_string_equal(dgm_import_recognise(in_folder("student.yml"), NULL), "bergamot");
    put_text("other.yml", "services:\n  models: 1\n");
    assert_null(dgm_import_recognise(in_folder("other.yml"), NULL));
}

static void test_no_standard_output(void **state)
{
    (void)state;
    dgm_error err = {""};
    const char *model = make_model("out", "models: [model.npz]\nvocabs: [joint.spm]\n");
    assert_int_equal(dgm_import("marian", model, "-", NULL, &err), DGM_ERR_ARGUMENT);
    if (!strstr(err.text, "cannot be written to standard output")) fail_msg("%s", err.text);
    assert_false(dgm_file_exists("-"));
}

// A copy of the model with a number in the last place of a tensor that is none.
static const char *spoil(const char *name, const char *member)
{
    static uint8_t bytes[1 << 16];
    const float bad = NAN;
    copy_file(name, DATA "aan.npz");
    zip_t *z = zip_open(in_folder(name), 0, NULL);
    const zip_int64_t at = zip_name_locate(z, member, 0);
    assert_true(at >= 0);
    zip_file_t *f = zip_fopen_index(z, (zip_uint64_t)at, 0);
    const zip_int64_t n = zip_fread(f, bytes, sizeof bytes);
    assert_true(n > 100 && n < (zip_int64_t)sizeof bytes);
    zip_fclose(f);
    memcpy(bytes + n - 4, &bad, sizeof bad);
    zip_source_t *changed = zip_source_buffer(z, bytes, (zip_uint64_t)n, 0);
    assert_int_equal(zip_file_replace(z, (zip_uint64_t)at, changed, 0), 0);
    assert_int_equal(zip_close(z), 0);
    return in_folder(name);
}

// The file of a weight that is not a number is named, in a folder, too.
static void test_not_finite(void **state)
{
    (void)state;
    static const char *const types[] = {NULL, "i16", "i8", "f16"};
    static const char *const members[] = {"Wemb.npy", "decoder_l1_aan_b1.npy"};
    make_model("nan", "models: [model.npz]\nvocabs: [joint.spm]\n");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
            dgm_import_options o;
            dgm_error err = {""};
            dgm_import_default(&o);
            o.type = types[i];
            spoil("nan/model.npz", members[k]);
            assert_int_equal(dgm_import("marian", in_folder("nan"), in_folder("none.gguf"), &o, &err), DGM_ERR_FORMAT);
            if (!strstr(err.text, "nan/model.npz': tensor '") || !strstr(err.text, "not finite"))
                fail_msg("%s", err.text);
            assert_false(dgm_file_exists(in_folder("none.gguf")));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_shortlist),    cmocka_unit_test(test_shortlist_beside),
        cmocka_unit_test(test_bad_shortlists),    cmocka_unit_test(test_memory),
        cmocka_unit_test(test_files_elsewhere),   cmocka_unit_test(test_files_inside),
        cmocka_unit_test(test_settings_are_recognised), cmocka_unit_test(test_no_standard_output),
        cmocka_unit_test(test_not_finite),        cmocka_unit_test(test_bpe_release),
        cmocka_unit_test(test_bpe_targets),
        cmocka_unit_test(test_releases),          cmocka_unit_test(test_incomplete_releases),
    };
    if (!scratch_open()) return 1;
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
