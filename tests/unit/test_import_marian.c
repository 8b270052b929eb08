// SPDX-License-Identifier: MIT
// Models of Marian, imported and compared with what Marian itself made of 200 lines (tests/oracle/make_marian.py), at
// beams 1 and 6 and in n-best lists; folders and packages that they come in; what is refused and in which words.
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
#include <zlib.h>

#include <cmocka.h>

#include "dragoman/dragoman.h"
#include "dragoman/tools.h"
#include "base/mem.h"
#include "engine.h"
#include "format/gguf.h"
#include "format/rewrite.h"
#include "format/shortlist.h"
#include "import/npz.h"
#include "import/spm_list.h"
#include "packed.h"
#include "scratch.h"

#define DATA "tests/data/marian/"

// In 8 bits Marian rounds the inputs of a product by the largest number of all rows, we each row by its own.
enum { LINES = 200, NEEDED = 198, NEEDED_I8 = 196 };

// ---- lines of text -------------------------------------------------------------------------------

typedef struct text {
    char *bytes;
    char *lines[4 * LINES];
    size_t count;
} text;

static text lines_of(char *bytes)
{
    text t = {.bytes = bytes};
    for (char *at = t.bytes, *end; *at; at = end + 1) {
        end = strchrnul(at, '\n');
        t.lines[t.count++] = at;
        if (!*end) break;
        *end = 0;
    }
    return t;
}

static text read_lines(const char *path)
{
    return lines_of(get(path));
}

static text read_packed(const char *path)
{
    dgm_mapfile f = packed_file(path);
    char *copy = strdup((const char *)f.data);
    assert_non_null(copy);
    dgm_mapfile_close(&f);
    return lines_of(copy);
}

static char notes[4096];

static void note(void *cookie, const char *remark)
{
    (void)cookie;
    snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "%s\n", remark);
}

// Imports and returns the path of the model file.
static const char *import_it(const char *format, const char *path, const char *vocabs,
                             const char *type)
{
    dgm_import_options o;
    dgm_error err = {""};
    const char *out = in_folder("model.gguf");
    dgm_import_default(&o);
    o.vocabs = vocabs;
    o.type = type;
    o.note = note;
    notes[0] = 0;
    if (dgm_import(format, path, out, &o, &err) != DGM_OK) fail_msg("%s: %s", path, err.text);
    return out;
}

// ---- parity --------------------------------------------------------------------------------------

typedef struct setting {
    const char *name;
    int beam;
    float normalize, penalty, factor;
} setting;

static const setting settings[] = {{"beam1", 1, 0, 0, 3}, {"beam6", 6, 0.6f, 0.1f, 3}};

static dgm_translator *open_model(const char *path, const setting *s, const char *precision,
                                  int nbest)
{
    dgm_settings o;
    dgm_settings_default(&o);
    o.beam = s->beam;
    o.nbest = nbest;
    o.length_penalty = s->normalize;
    o.word_penalty = s->penalty;
    o.max_length_factor = s->factor;
    o.precision = precision;
    o.raw = 1;
    o.threads = 1;
    o.shortlist = "all";
    return open_with(&o, path);
}

// "SCORE TAB TEXT" against a translation; scores to 1e-3 of their size.
static bool agrees(const char *expected, const dgm_translation *t, double tolerance)
{
    const char *tab = strchr(expected, '\t');
    const double score = strtod(expected, NULL);
    return tab && strcmp(tab + 1, t->text) == 0 &&
           fabs(score - (double)t->score) < tolerance * fmax(1, fabs(score));
}

// needed: how many lines have to agree in text and, to that tolerance, in score.
static void compare_best(const char *file, const char *name, const setting *s,
                         const char *precision, double tolerance, int needed)
{
    char path[128];
    snprintf(path, sizeof path, DATA "%s.%s.tsv", name, s->name);
    text input = read_lines(DATA "input.txt"), golden = read_lines(path);
    assert_int_equal(input.count, LINES);
    assert_int_equal(golden.count, LINES);
    dgm_translator *t = open_model(file, s, precision, 1);
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate(t, (const char *const *)input.lines, input.count, &r, NULL),
                     DGM_OK);
    int same = 0;
    for (size_t i = 0; i < LINES; i++)
        same += agrees(golden.lines[i], r->items[i]->translations[0], tolerance);
    if (same < needed) fail_msg("%s, %s: %d of %d lines agree", name, s->name, same, LINES);
    dgm_results_free(&r);
    dgm_close(&t);
    free(input.bytes);
    free(golden.bytes);
}

// "LINE ||| TEXT ||| F0= SUM ||| SCORE": does a translation of the list agree?
static bool agrees_nbest(char *row, const dgm_results *r)
{
    char *parts[4] = {row};
    for (int i = 1; i < 4; i++) {
        parts[i] = strstr(parts[i - 1], " ||| ");
        assert_non_null(parts[i]);
        *parts[i] = 0;
        parts[i] += 5;
    }
    const dgm_result *line = r->items[atoi(parts[0])];
    const double sum = strtod(parts[2] + 4, NULL), score = strtod(parts[3], NULL);
    for (size_t k = 0; k < line->count; k++) {
        const dgm_translation *t = line->translations[k];
        if (strcmp(t->text, parts[1]) == 0 &&
            fabs(score - (double)t->score) < 1e-3 * fmax(1, fabs(score)) &&
            fabs(sum - (double)t->sum) < 1e-3 * fmax(1, fabs(sum)))
            return true;
    }
    return false;
}

static void compare_nbest(const char *file, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, DATA "%s.nbest.txt", name);
    text input = read_lines(DATA "input.txt"), golden = read_lines(path);
    dgm_translator *t = open_model(file, &settings[1], "f32", 6);
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate(t, (const char *const *)input.lines, 20, &r, NULL), DGM_OK);
    size_t same = 0;
    for (size_t i = 0; i < golden.count; i++) same += agrees_nbest(golden.lines[i], r);
    if (same * 100 < golden.count * 97)
        fail_msg("%s: %zu of %zu entries agree", name, same, golden.count);
    dgm_results_free(&r);
    dgm_close(&t);
    free(input.bytes);
    free(golden.bytes);
}

static const char *model_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, DATA "%s.npz", name);
    return path;
}

static void test_parity(void **state)
{
    (void)state;
    static const char *const names[] = {"post",    "ssru",  "aan",     "both",      "guided",   "embed",
                                        "highway", "apart", "average", "backwards", "placeless"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *file = import_it("marian", model_of(names[i]), DATA "joint.spm", NULL);
        for (int k = 0; k < 2; k++) compare_best(file, names[i], &settings[k], "f32", 1e-3, NEEDED);
        compare_nbest(file, names[i]);
    }
}

// What is too long Marian cuts off, without the score of an end, at the factor times the source's tokens.
static void test_cut(void **state)
{
    (void)state;
    static const setting cut = {"cut", 6, 0.6f, 0.1f, 0.7f};
    compare_best(import_it("marian", model_of("post"), DATA "joint.spm", NULL), "post", &cut, "f32", 1e-3, NEEDED);
}

// Norms before the layers: Marian's scorer agrees, its decoder does not (tests/oracle/make_marian.py says why).
static void compare_scores(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, DATA "%s.score.tsv", name);
    const char *file = import_it("marian", model_of(name), DATA "joint.spm", NULL);
    text input = read_lines(DATA "input.txt"), golden = read_lines(path);
    static dgm_pair pairs[LINES];
    for (size_t i = 0; i < LINES; i++) {
        char *target = strchr(golden.lines[i], '\t') + 1;
        pairs[i] = (dgm_pair){.source = {.data = input.lines[i], .size = strlen(input.lines[i])},
                              .target = {.data = target, .size = strlen(target)}};
    }
    dgm_translator *t = open_model(file, &settings[0], "f32", 1);
    dgm_pair_scores *scores = NULL;
    assert_int_equal(dgm_score_pairs(t, pairs, LINES, &scores, NULL), DGM_OK);
    for (size_t i = 0; i < LINES; i++) {
        const double expected = strtod(golden.lines[i], NULL);
        assert_float_equal(scores->items[i]->sum, expected, 1e-3 * fmax(1, fabs(expected)));
    }
    dgm_pair_scores_free(&scores);
    dgm_close(&t);
    free(input.bytes);
    free(golden.bytes);
}

static void test_scores(void **state)
{
    (void)state;
    compare_scores("pre");
    compare_scores("variants"); // RMS norms, average attention without its gate
}

// "TEXT ||| a,b,c d,e,f ...": the source token with the largest number for each target token.
static int most_of(char **at)
{
    int best = 0, i = 0;
    double most = -1;
    for (;; i++) {
        char *end;
        const double x = strtod(*at, &end);
        if (x > most) {
            most = x;
            best = i;
        }
        *at = end + (*end != 0);
        if (*end != ',') return best;
    }
}

// The head and layer that Marian trained on alignments.
static void test_alignment(void **state)
{
    (void)state;
    const char *file = import_it("marian", model_of("guided"), DATA "joint.spm", NULL);
    text input = read_lines(DATA "input.txt"), golden = read_packed(DATA "guided.align.txt.gz");
    dgm_settings o;
    dgm_settings_default(&o);
    o.beam = 6;
    o.length_penalty = 0.6f;
    o.word_penalty = 0.1f;
    o.precision = "f32";
    o.raw = 1;
    o.alignment = DGM_ALIGN_TOKENS;
    dgm_translator *t = open_with(&o, file);
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate(t, (const char *const *)input.lines, 20, &r, NULL), DGM_OK);
    int links = 0, same = 0;
    for (size_t i = 0; i < 20; i++) {
        const dgm_translation *best = r->items[i]->translations[0];
        char *at = strstr(golden.lines[i], " ||| ");
        assert_non_null(at);
        at += 5;
        for (size_t k = 0; k < best->link_count; k++, links++) {
            const int source = most_of(&at);
            same += best->links[k].source == source && best->links[k].target == (int)k;
        }
    }
    assert_true(links > 150);
    if (same * 100 < links * 99) fail_msg("%d of %d links agree", same, links);
    dgm_results_free(&r);
    dgm_close(&t);
    free(input.bytes);
    free(golden.bytes);
}

// ---- integers ------------------------------------------------------------------------------------

static void test_intgemm(void **state)
{
    (void)state;
    const char *file = import_it("marian", DATA "student.intgemm8.bin", DATA "joint.spm", NULL);
    assert_non_null(strstr(notes, "matrices of 8-bit integers are kept as they are stored"));
    for (int k = 0; k < 2; k++) {
        compare_best(file, "student.intgemm8", &settings[k], "f32", INFINITY, NEEDED);
        compare_best(file, "student.intgemm8", &settings[k], "i8", INFINITY, NEEDED_I8);
    }
}

// ---- packages ------------------------------------------------------------------------------------

static void make_folder(const char *name)
{
    assert_int_equal(mkdir(in_folder(name), 0777), 0);
}

static void put_gz(const char *name, const char *from)
{
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, from, NULL), DGM_OK);
    gzFile out = gzopen(in_folder(name), "wb");
    assert_int_equal(gzwrite(out, f.data, (unsigned)f.size), (int)f.size);
    assert_int_equal(gzclose(out), Z_OK);
    dgm_mapfile_close(&f);
}

static void copy_file(const char *name, const char *from)
{
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, from, NULL), DGM_OK);
    put(name, f.data, f.size);
    dgm_mapfile_close(&f);
}

// Every source token may become any of 20 target tokens.
static void put_shortlist(const char *name, int size)
{
    dgm_shortlist *s = NULL;
    dgm_writer w = {0};
    assert_int_equal(dgm_shortlist_open(&s, size, size, (uint64_t)size * 20, 100, NULL), DGM_OK);
    for (int i = 0; i < size; i++) {
        for (int k = 0; k < 20; k++) s->ids[i * 20 + k] = 5 + (i + 13 * k) % (size - 5);
        for (int a = 1; a < 20; a++) // ascending
            for (int b = a; b > 0 && s->ids[i * 20 + b] < s->ids[i * 20 + b - 1]; b--) {
                const int32_t x = s->ids[i * 20 + b];
                s->ids[i * 20 + b] = s->ids[i * 20 + b - 1];
                s->ids[i * 20 + b - 1] = x;
            }
        s->at[i + 1] = (uint64_t)(i + 1) * 20;
    }
    for (int i = 0; i < 100; i++) s->frequent[i] = i;
    s->frequent_count = 100;
    assert_int_equal(dgm_shortlist_marian_write(s, 0, &w, NULL), DGM_OK);
    put(name, w.data, w.size);
    dgm_writer_free(&w);
    dgm_shortlist_close(&s);
}

static int files_in(const char *path)
{
    char command[256];
    int n = 0;
    snprintf(command, sizeof command, "ls %s | wc -l", path);
    FILE *p = popen(command, "r");
    assert_int_equal(fscanf(p, "%d", &n), 1);
    pclose(p);
    return n;
}

// As Firefox downloads them: compressed, languages in their names.
static void test_bergamot(void **state)
{
    (void)state;
    make_folder("ende");
    put_gz("ende/model.ende.intgemm.alphas.bin.gz", DATA "model.ende.intgemm.alphas.bin");
    put_gz("ende/vocab.ende.spm.gz", DATA "joint.spm");
    put_shortlist("ende/lex.50.50.ende.s2t.bin", 260);
    const int before = files_in(folder);
    const char *file = import_it("bergamot", in_folder("ende"), NULL, NULL);
    assert_int_equal(files_in(folder), before + (before < 2)); // what was unpacked is gone
    assert_non_null(strstr(notes, "are kept as they are stored"));
    assert_non_null(strstr(notes, "static scales"));
    assert_non_null(strstr(notes, "is part of the model"));
    dgm_gguf *g;
    dgm_error err;
    const dgm_tensor *embed, *q;
    const float *scale;
    uint32_t beam = 0;
    const char *order = NULL;
    assert_int_equal(dgm_gguf_open(&g, file, &err), DGM_OK);
    assert_int_equal(dgm_gguf_matrix(g, "src.embed", 260, 64, DGM_REQUIRED, &embed, &err), DGM_OK);
    assert_int_equal(dgm_gguf_matrix(g, "enc.0.self.q.weight", 64, 64, DGM_REQUIRED, &q, &err),
                     DGM_OK);
    assert_int_equal(embed->type, DGM_TYPE_I8);
    assert_int_equal(q->type, DGM_TYPE_I8);
    assert_int_equal(dgm_gguf_vector(g, "src.embed.input_scale", 1, DGM_REQUIRED, &scale, &err),
                     DGM_OK);
    assert_float_equal(scale[0], 12 / 127.f, 1e-6);
    assert_int_equal(dgm_gguf_get_u32(g, "dragoman.decode.beam", DGM_REQUIRED, 1, 9, &beam, &err),
                     DGM_OK);
    assert_int_equal(beam, 1);
    assert_int_equal(dgm_gguf_get_string(g, "dragoman.decode.finish", DGM_REQUIRED, &order, &err),
                     DGM_OK);
    assert_string_equal(order, "marian");
    dgm_shortlist_view list;
    assert_int_equal(dgm_shortlist_view_open(&list, g, &err), DGM_OK);
    assert_true(list.copy && list.frequent_count == 100 && list.longest == 20);
    dgm_shortlist_view_close(&list);
    dgm_gguf_close(&g);
    compare_best(file, "student.intgemm8", &settings[0], "f32", INFINITY, NEEDED_I8);
}

// The vocabulary of joint.spm as a list of pieces, in the quotes that YAML has.
static void put_vocabulary(const char *name)
{
    dgm_mapfile f;
    dgm_spm_list list;
    dgm_writer w = {0};
    assert_int_equal(dgm_mapfile_open(&f, DATA "joint.spm", NULL), DGM_OK);
    assert_int_equal(dgm_spm_list_read(&list, f.data, f.size, NULL), DGM_OK);
    for (size_t i = 0; i < list.count; i++) {
        dgm_write_text(&w, "\"");
        for (size_t k = 0; k < list.items[i].size; k++) {
            const char c = list.items[i].piece[k];
            if (c == '"' || c == '\\') dgm_write_text(&w, "\\");
            dgm_write_bytes(&w, &c, 1);
        }
        dgm_write_format(&w, "\": %zu\n", i);
    }
    put(name, w.data, w.size);
    dgm_writer_free(&w);
    dgm_spm_list_free(&list);
    dgm_mapfile_close(&f);
}

static void add_to_zip(zip_t *z, const char *name, const char *path)
{
    zip_source_t *s = zip_source_file(z, path, 0, -1);
    assert_true(zip_file_add(z, name, s, ZIP_FL_ENC_UTF_8) >= 0);
}

static void test_opus(void **state)
{
    (void)state;
    const char *path = in_folder("opus.zip");
    put_vocabulary("vocab.yml");
    put_text("decoder.yml",
             "relative-paths: true\nmodels:\n  - aan.npz\nvocabs:\n  - opus.vocab.yml\n"
             "  - opus.vocab.yml\nbeam-size: 3\nnormalize: 1\nmini-batch: 1\n");
    zip_t *z = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    add_to_zip(z, "aan.npz", model_of("aan"));
    add_to_zip(z, "opus.vocab.yml", in_folder("vocab.yml"));
    add_to_zip(z, "decoder.yml", in_folder("decoder.yml"));
    add_to_zip(z, "source.spm", DATA "joint.spm");
    add_to_zip(z, "target.spm", DATA "joint.spm");
    assert_int_equal(zip_close(z), 0);
    const char *file = import_it("opus-mt", path, NULL, NULL);
    dgm_gguf *g;
    uint32_t beam = 0;
    assert_int_equal(dgm_gguf_open(&g, file, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_get_u32(g, "dragoman.decode.beam", DGM_REQUIRED, 1, 9, &beam, NULL),
                     DGM_OK);
    assert_int_equal(beam, 3);
    dgm_gguf_close(&g);
    compare_best(file, "aan", &settings[1], "f32", 1e-3, NEEDED);
}

// The message of an import that fails; its output is not made.
static void expect(const char *path, const char *vocabs, const char *message)
{
    dgm_import_options o;
    dgm_error err = {""};
    dgm_import_default(&o);
    o.vocabs = vocabs;
    const char *out = in_folder("none.gguf");
    assert_int_not_equal(dgm_import("marian", path, out, &o, &err), DGM_OK);
    if (!strstr(err.text, message)) fail_msg("'%s' instead of '%s'", err.text, message);
    assert_false(dgm_file_exists(out));
}

// Names of an archive never lead out of the folder that it is unpacked to.
static void test_names_of_archives(void **state)
{
    (void)state;
    const char *path = in_folder("names.zip");
    put_text("content", "x");
    zip_t *z = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    add_to_zip(z, "../../escaped.txt", in_folder("content"));
    add_to_zip(z, "/escaped.yml", in_folder("content"));
    add_to_zip(z, "a/..", in_folder("content"));
    assert_int_equal(zip_close(z), 0);
    expect(path, NULL, "has no .npz or .bin file");
    assert_false(dgm_file_exists(in_folder("escaped.txt")) || dgm_file_exists("/escaped.yml"));
    z = zip_open(path, 0, NULL);
    add_to_zip(z, "b/escaped.txt", in_folder("content"));
    assert_int_equal(zip_close(z), 0);
    expect(path, NULL, "two files are called 'escaped.txt'");
    char command[200];
    snprintf(command, sizeof command, "ls -d %s/*unpacked* 2>/dev/null", folder);
    assert_int_not_equal(system(command), 0); // nothing stays
}

// The same by the settings, whose paths are those of another machine, and by the folder.
static void test_paths(void **state)
{
    (void)state;
    make_folder("folder");
    copy_file("folder/aan.npz", model_of("aan"));
    copy_file("folder/joint.spm", DATA "joint.spm");
    put_text("folder/config.yml",
             "models: [/home/someone/aan.npz]\nvocabs: [/nowhere/joint.spm]\n");
    compare_best(import_it("marian", in_folder("folder"), NULL, NULL), "aan", &settings[0], "f32",
                 1e-3, NEEDED);
    compare_best(import_it("marian", in_folder("folder/config.yml"), NULL, NULL), "aan",
                 &settings[0], "f32", 1e-3, NEEDED);
    compare_best(import_it("auto", in_folder("folder"), NULL, NULL), "aan", &settings[0], "f32",
                 1e-3, NEEDED);
}

// Words of a list, by name and by line, are split at spaces.
static void test_words(void **state)
{
    (void)state;
    put_vocabulary("words.yml");
    for (int lines = 0; lines < 2; lines++) {
        const char *kind = NULL;
        dgm_gguf_strings words;
        dgm_gguf_text word = {0};
        int32_t eos = -1, unk = -1;
        dgm_gguf *g;
        const char *list =
            lines ? put_text("words.txt", "</s>\n<unk>\nab\r\nc\n") : in_folder("words.yml");
        assert_int_equal(dgm_gguf_open(&g, import_it("marian", model_of("aan"), list, NULL), NULL),
                         DGM_OK);
        dgm_gguf_get_string(g, "dragoman.source.vocab.kind", DGM_REQUIRED, &kind, NULL);
        assert_string_equal(kind, "words");
        assert_int_equal(
            dgm_gguf_get_strings(g, "dragoman.source.vocab.words", DGM_REQUIRED, &words, NULL),
            DGM_OK);
        assert_int_equal(words.count, 260);
        for (int i = 0; i < 3; i++) dgm_gguf_strings_next(&words, &word);
        if (lines) assert_memory_equal(word.data, "ab", 2);
        dgm_gguf_get_i32(g, "dragoman.source.eos", DGM_REQUIRED, 0, 300, &eos, NULL);
        dgm_gguf_get_i32(g, "dragoman.source.unk", DGM_REQUIRED, 0, 300, &unk, NULL);
        assert_true(eos == 0 && unk == 1);
        dgm_gguf_close(&g);
    }
}

// A tensor Wpos, of older Marians: learned positions, and embeddings that are not scaled.
static void test_learned_positions(void **state)
{
    (void)state;
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (100, 16)}";
    enum { PREFIX = 10, HEADER = sizeof header - 1, BYTES = 100 * 16 * 4 };
    static uint8_t npy[PREFIX + HEADER + BYTES] = "\x93NUMPY\1\0";
    npy[8] = HEADER;
    memcpy(npy + PREFIX, header, HEADER);
    for (int i = 0; i < 100 * 16; i++) {
        const float x = (float)(i % 7) / 8;
        memcpy(npy + PREFIX + HEADER + 4 * i, &x, sizeof x);
    }
    copy_file("positions.npz", model_of("aan"));
    zip_t *z = zip_open(in_folder("positions.npz"), 0, NULL);
    assert_true(zip_file_add(z, "Wpos.npy", zip_source_buffer(z, npy, sizeof npy, 0), 0) >= 0);
    assert_int_equal(zip_close(z), 0);
    const char *file = import_it("marian", in_folder("positions.npz"), DATA "joint.spm", NULL),
               *kind = NULL;
    const dgm_tensor *table;
    bool scaled = true;
    dgm_gguf *g;
    assert_int_equal(dgm_gguf_open(&g, file, NULL), DGM_OK);
    dgm_gguf_get_string(g, "dragoman.transformer.positions", DGM_REQUIRED, &kind, NULL);
    assert_string_equal(kind, "learned");
    dgm_gguf_get_bool(g, "dragoman.transformer.scale_embedding", DGM_REQUIRED, &scaled, NULL);
    assert_false(scaled);
    assert_int_equal(dgm_gguf_matrix(g, "enc.pos", 100, 16, DGM_REQUIRED, &table, NULL), DGM_OK);
    float row[16];
    dgm_tensor_row_f32(table, 1, row);
    assert_float_equal(row[0], 2 / 8.f, 0); // 16 mod 7
    dgm_gguf_close(&g);
    dgm_translator *t = open_model(file, &settings[0], "f32", 1);
    dgm_results *r = translate_one(t, "Good morning.");
    dgm_results_free(&r);
    dgm_close(&t);
}

// Networks of three layers in the encoder and of one in the decoder, gates in place of sums: memory that runs out
// while they are loaded, and what they do not go together with.
// What a file is called does not matter where its bytes say what it is.
static void test_ending(void **state)
{
    (void)state;
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, model_of("post"), NULL), DGM_OK);
    FILE *out = fopen(in_folder("post.bin"), "wb");
    assert_int_equal(fwrite(f.data, 1, f.size, out), f.size);
    assert_int_equal(fclose(out), 0);
    dgm_mapfile_close(&f);
    import_it("marian", in_folder("post.bin"), DATA "joint.spm", NULL);
}

static void test_deep_networks(void **state)
{
    (void)state;
    dgm_error err = {""};
    dgm_settings o;
    dgm_gguf *g;
    dgm_gguf_writer *w = NULL;
    dgm_translator *t = NULL;
    const char *file = import_it("marian", model_of("highway"), DATA "joint.spm", NULL);
    dgm_settings_default(&o);
    o.threads = 1;
    dgm_status st = DGM_ERR_MEMORY;
    for (uint64_t n = 1; st != DGM_OK; n += 1 + n / 24) {
        const uint64_t live = dgm_mem_live();
        dgm_mem_inject(n, 1);
        st = dgm_open(&t, file, &o, &err);
        dgm_mem_inject(0, 0);
        if (st != DGM_OK && st != DGM_ERR_MEMORY) fail_msg("%d at %d: %s", (int)st, (int)n, err.text);
        dgm_close(&t);
        assert_int_equal(dgm_mem_live(), live);
    }
    assert_int_equal(dgm_gguf_open(&g, file, &err), DGM_OK);
    assert_int_equal(dgm_rewrite_open(&w, g, NULL, &err), DGM_OK);
    dgm_gguf_set_bool(w, "dragoman.transformer.gated", true);
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) dgm_rewrite_copy(w, dgm_gguf_tensor(g, i));
    assert_int_equal(dgm_rewrite_finish(&w, in_folder("gated.gguf"), DGM_OK, &err), DGM_OK);
    dgm_gguf_close(&g);
    assert_int_equal(dgm_open(&t, in_folder("gated.gguf"), &o, &err), DGM_ERR_FORMAT);
    if (!strstr(err.text, "ffn_depth: gated networks and experts have 2 layers")) fail_msg("%s", err.text);
}

// ---- what is refused -----------------------------------------------------------------------------

// The bytes of aan.npz with other settings of the same length.
static const char *with_setting(const char *from, const char *to)
{
    assert_int_equal(strlen(from), strlen(to));
    dgm_store *s;
    assert_int_equal(dgm_npz_open(&s, model_of("aan"), NULL), DGM_OK);
    zip_t *z = zip_open(in_folder("changed.npz"), ZIP_CREATE | ZIP_TRUNCATE, NULL);
    const dgm_stored *t = dgm_store_get(s, (size_t)dgm_store_find(s, "special:model.yml"));
    const uint8_t *data;
    assert_int_equal(dgm_store_data(s, t, &data, NULL), DGM_OK);
    char header[80];
    snprintf(header, sizeof header, "{'descr': '|i1', 'fortran_order': False, 'shape': (%d,)}",
             t->cols);
    const size_t n = strlen(header);
    char *npy = calloc(1, 10 + n + t->bytes);
    memcpy(npy, "\x93NUMPY\1\0", 8);
    npy[8] = (char)n;
    memcpy(npy + 10, header, n);
    memcpy(npy + 10 + n, data, t->bytes);
    char *at = strstr(npy + 10 + n, from);
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    zip_source_t *source = zip_source_buffer(z, npy, 10 + n + t->bytes, 0);
    assert_true(zip_file_add(z, "special:model.yml.npy", source, 0) >= 0);
    assert_int_equal(zip_close(z), 0);
    free(npy);
    dgm_store_close(&s);
    return in_folder("changed.npz");
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"type: transformer", "type: bert-encode", "is of type 'bert-encode"},
        {"type: transformer", "type: multi-trans", "models with several sources are not supported"},
        {"transformer-postprocess: dan", "transformer-postprocess: nha",
         "\"transformer-postprocess\" is 'nha'; d, one of a and h, and one of n and r in any order"},
        {"transformer-attention-mask: default", "transformer-attention-mask: alibi  ", "ALiBi"},
        {"transformer-ffn-depth: 2", "transformer-ffn-depth: 0", "\"transformer-ffn-depth\""},
        {"transformer-aan-depth: 2", "transformer-aan-depth: 3", "\"transformer-aan-depth\" is 3"},
        {"factors-dim-emb: 0", "factors-dim-emb: 8", "factored vocabulary"},
        {"transformer-heads: 2", "transformer-heads: 3", "not an even multiple of 3 heads"},
        {"transformer-ffn-activation: swish", "transformer-ffn-activation: selu ", "'selu'"},
        {"enc-depth: 2", "enc-depth: 3", "tensor 'encoder_Wemb' is missing"},
        {"dim-emb: 16", "dim-emb: [ ", "special:model.yml: line"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(with_setting(cases[i][0], cases[i][1]), DATA "joint.spm", cases[i][2]);
    expect(model_of("aan"), in_folder("absent.spm"), "cannot open");
    expect(model_of("aan"), put_text("a.fsv", "x"), "factored vocabulary");
    expect(model_of("aan"), put_text("empty.txt", ""), "a vocabulary without words");
    expect(model_of("aan"), put_text("bad.spm", "x"), "bad.spm");
    expect(model_of("aan"), "tests/data/text/tiny.spm", "pieces, but the model's source embeddings have 260 rows");
    expect(model_of("aan"), put_text("bad.yml", "a: b\n"), "word 'a' has no number");
    expect(model_of("aan"), put_text("end.yml", "</s>: 4294967296\n<unk>: 1\n"),
           "end and unknown symbol have no numbers from 0 to 259");
    expect(model_of("aan"), put_text("end.yml", "</s>: 260\n<unk>: 1\n"), "no numbers from 0 to 259");
    dgm_import_options o;
    dgm_error err = {""};
    dgm_import_default(&o);
    o.vocabs = put_text("far.yml", "</s>: 0\n<unk>: 1\n\">>deu<<\": 260\n");
    o.source_prefix = ">>deu<<"; // in the list, but the model has no row for it
    assert_int_not_equal(dgm_import("marian", model_of("aan"), in_folder("none.gguf"), &o, &err), DGM_OK);
    if (!strstr(err.text, "source prefix '>>deu<<' is not in the vocabulary")) fail_msg("%s", err.text);
    expect(in_folder("absent"), NULL, "absent");
    make_folder("empty");
    expect(in_folder("empty"), NULL, "has no .npz or .bin file");
    put_text("empty/decoder.yml", "models: [a.npz, b.npz]\n");
    expect(in_folder("empty"), NULL, "names 2 models that translate together");
    put_text("empty/decoder.yml", "models: [a.npz]\n");
    expect(in_folder("empty"), NULL, "\"models\" names 'a.npz', which is not in the model's folder");
}

// 200 damaged copies of a file, the first `part` bytes of it: each is imported or refused in one line that names it.
static void import_damaged(const char *from, const char *name, size_t part, int refused)
{
    dgm_mapfile f;
    dgm_import_options o;
    uint32_t random = 15;
    int bad = 0;
    assert_int_equal(dgm_mapfile_open(&f, from, NULL), DGM_OK);
    uint8_t *copy = malloc(f.size);
    dgm_import_default(&o);
    o.vocabs = DATA "joint.spm";
    for (int i = 0; i < 200; i++) {
        memcpy(copy, f.data, f.size);
        for (int k = 0; k < 1 + i % 5; k++) {
            random = random * 1664525u + 1013904223u;
            copy[(uint64_t)random * (part ? part : f.size) >> 32] = (uint8_t)(random >> 7);
        }
        const char *path = put(name, copy, f.size), *out = in_folder("damaged.gguf");
        dgm_error err = {""};
        if (dgm_import("marian", path, out, &o, &err) == DGM_OK) {
            assert_int_equal(unlink(out), 0);
            continue;
        }
        bad++;
        if (!strstr(err.text, path) || strchr(err.text, '\n')) fail_msg("%s", err.text);
        assert_false(dgm_file_exists(out));
    }
    assert_true(bad >= refused);
    free(copy);
    dgm_mapfile_close(&f);
}

static void test_damaged(void **state)
{
    (void)state;
    import_damaged(DATA "student.intgemm8.bin", "damaged.bin", 4096, 150);
    import_damaged(model_of("guided"), "damaged.npz", 0, 150);
}

// Allocations fail, a few hundred of the many: nothing is left behind, no output comes into being.
static void fail_allocations(const char *model)
{
    dgm_import_options o;
    dgm_import_default(&o);
    o.vocabs = DATA "joint.spm";
    const char *out = in_folder("memory.gguf");
    dgm_status st = DGM_ERR_MEMORY;
    for (uint64_t n = 1; st != DGM_OK; n += 1 + n / 24) {
        const uint64_t live = dgm_mem_live();
        dgm_mem_inject(n, 1);
        dgm_error err = {""};
        st = dgm_import("marian", model, out, &o, &err);
        dgm_mem_inject(0, 0);
        if (st != DGM_OK && st != DGM_ERR_MEMORY)
            fail_msg("%d at %d: %s", (int)st, (int)n, err.text);
        assert_true(st == DGM_OK || (st == DGM_ERR_MEMORY && !dgm_file_exists(out)));
        assert_int_equal(dgm_mem_live(), live);
    }
    assert_int_equal(unlink(out), 0);
}

static void test_memory(void **state)
{
    (void)state;
    fail_allocations(model_of("guided"));
    fail_allocations(model_of("highway"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parity),    cmocka_unit_test(test_cut),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_alignment), cmocka_unit_test(test_intgemm),
        cmocka_unit_test(test_bergamot),  cmocka_unit_test(test_opus),
        cmocka_unit_test(test_paths),     cmocka_unit_test(test_names_of_archives),
        cmocka_unit_test(test_words),     cmocka_unit_test(test_learned_positions),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_memory),    cmocka_unit_test(test_deep_networks),
        cmocka_unit_test(test_ending),
    };
    if (!scratch_open()) return 1;
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
