// SPDX-License-Identifier: MIT
// Files of models of other programs with bytes changed, cut or put in, 200 of each kind: an import works, or ends in
// one sentence that names the file or its folder. Here are the kinds of text and safetensors; zip, npy, bin and pickle
// are in test_import_containers.c, test_import_marian.c and test_import_pickle.c, model.bin of CTranslate2 in
// test_import_ct2.c.
#define _GNU_SOURCE
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dragoman/tools.h"
#include "marian_folder.h"

enum { ROUNDS = 200 };

typedef struct damaged {
    uint8_t *data;
    size_t size;
} damaged;

// Some bytes become others; every second time those that texts are made of. Every fifth file is cut, every seventh
// longer.
static damaged spoil(const dgm_mapfile *f, int round, dgm_rng *rng)
{
    static const char text[] = "\"'{}[]:,-.0123456789 ent\\\n";
    damaged d = {malloc(f->size + 8), f->size};
    assert_non_null(d.data);
    memcpy(d.data, f->data, f->size);
    const uint64_t near = round % 3 ? f->size : f->size < 500 ? f->size : 500;
    for (int k = 0; k < 1 + round % 6; k++) {
        const uint64_t at = dgm_rng_below(rng, near);
        const uint8_t other = (uint8_t)(d.data[at] ^ (1 + dgm_rng_below(rng, 255)));
        d.data[at] = round % 2 ? (uint8_t)text[dgm_rng_below(rng, sizeof text - 1)] : other;
    }
    if (round % 5 == 0) d.size = (size_t)dgm_rng_below(rng, d.size);
    if (round % 7 == 0) memcpy(d.data + d.size, "[0,{\"a\"", 7), d.size += 7;
    return d;
}

static int stop_at_once(void *cookie, const char *what, double share)
{
    (void)cookie, (void)what, (void)share;
    return 1;
}

// All of a model but its weights is looked at, unless `whole`.
static dgm_status try_import(const char *format, const char *path, const char *out, bool whole, dgm_error *err)
{
    dgm_import_options o;
    dgm_import_default(&o);
    if (!whole) o.progress.tick = stop_at_once;
    if (strcmp(format, "marian") == 0) o.vocabs = "tests/data/marian/joint.spm";
    const dgm_status st = dgm_import(format, path, out, &o, err);
    return st == DGM_ERR_CANCELLED ? DGM_OK : st;
}

// path: what is imported. file: in that folder, damaged and put back. At least `refused` of the damaged ones are
// refused.
static void damage(const char *format, const char *where, const char *file, const char *path, int refused)
{
    char place[256], out[256];
    dgm_mapfile f;
    dgm_rng rng = {.state = 15};
    int bad = 0;
    snprintf(place, sizeof place, "%s/%s", where, file);
    snprintf(out, sizeof out, "%s/out.gguf", where);
    assert_int_equal(dgm_mapfile_open(&f, place, NULL), DGM_OK);
    assert_int_equal(unlink(place), 0); // f stays mapped; a link is not followed when it is written
    const uint64_t live = dgm_mem_live();
    for (int round = 0; round < ROUNDS; round++) {
        dgm_error err = {""};
        const damaged d = spoil(&f, round, &rng);
        assert_int_equal(dgm_file_write(place, d.data, d.size, NULL), DGM_OK);
        free(d.data);
        if (try_import(format, path, out, strstr(file, "safetensors") != NULL, &err) != DGM_OK) {
            bad++;
            const bool named = strstr(err.text, where) || strstr(err.text, file);
            if (!named || strchr(err.text, '\n') || strlen(err.text) < 20)
                fail_msg("%s, round %d: '%s'", file, round, err.text);
            assert_false(dgm_file_exists(out));
        }
        unlink(out);
        assert_int_equal(dgm_mem_live(), live);
    }
    if (bad < refused) fail_msg("%s: %d refused only", file, bad);
    assert_int_equal(dgm_file_write(place, f.data, f.size, NULL), DGM_OK);
    dgm_mapfile_close(&f);
    dgm_error err = {""};
    if (try_import(format, path, out, false, &err) != DGM_OK) fail_msg("whole again: %s", err.text);
}

// A folder of links to the files of another.
static void link_files(const char *from, char to[64])
{
    strcpy(to, "/tmp/dgm-damage-XXXXXX");
    assert_non_null(mkdtemp(to));
    DIR *dir = opendir(from);
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        char here[512], there[512], full[4096];
        if (d->d_name[0] == '.') continue;
        snprintf(here, sizeof here, "%s/%s", from, d->d_name);
        snprintf(there, sizeof there, "%s/%s", to, d->d_name);
        assert_non_null(realpath(here, full));
        assert_int_equal(symlink(full, there), 0);
    }
    closedir(dir);
}

static void remove_files(const char *where)
{
    DIR *dir = opendir(where);
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir)) != NULL;)
        if (d->d_name[0] != '.') unlinkat(dirfd(dir), d->d_name, 0);
    closedir(dir);
    assert_int_equal(rmdir(where), 0);
}

static void test_marianmt(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        int refused;
    } files[] = {{"model.safetensors", 60},      {"config.json", 120},        {"generation_config.json", 120},
                 {"tokenizer_config.json", 100}, {"vocab.json", 120},         {"source.spm", 60}};
    folder f = make_folder();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        damage("huggingface", f.path, files[i].file, f.path, files[i].refused);
    remove_folder(&f);
}

static void test_tokenizer_json(void **state)
{
    (void)state;
    char place[64];
    link_files("tests/data/import/marian-fast", place);
    damage("huggingface", place, "tokenizer.json", place, 60);
    remove_files(place);
}

static void test_ctranslate2(void **state)
{
    (void)state;
    char place[64];
    link_files("tests/data/ctranslate2/opennmt-py", place);
    damage("ctranslate2", place, "config.json", place, 80);
    damage("ctranslate2", place, "shared_vocabulary.json", place, 60);
    remove_files(place);
}

static void test_nematus(void **state)
{
    (void)state;
    char place[64], path[128];
    link_files("tests/data/nematus", place);
    snprintf(path, sizeof path, "%s/theano.npz", place);
    damage("nematus", place, "theano.npz.json", path, 60);
    damage("nematus", place, "theano.vocab.json", path, 60);
    remove_files(place);
}

// Settings in YAML that name a model.
static void test_marian_yaml(void **state)
{
    (void)state;
    static const char config[] = "relative-paths: true\nmodels:\n  - model.npz\nvocabs:\n  - joint.spm\n  - joint.spm\n"
                                 "beam-size: 6\nnormalize: 0.6\nword-penalty: 0\nmax-length-factor: 3\n";
    static const char *const links[][2] = {{"tests/data/marian/post.npz", "model.npz"},
                                           {"tests/data/marian/joint.spm", "joint.spm"}};
    char place[64] = "/tmp/dgm-damage-XXXXXX", path[128], full[4096];
    assert_non_null(mkdtemp(place));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", place, links[i][1]);
        assert_non_null(realpath(links[i][0], full));
        assert_int_equal(symlink(full, path), 0);
    }
    snprintf(path, sizeof path, "%s/config.yml", place);
    assert_int_equal(dgm_file_write(path, config, sizeof config - 1, NULL), DGM_OK);
    damage("marian", place, "config.yml", path, 60);
    remove_files(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_marianmt), cmocka_unit_test(test_tokenizer_json),
                                       cmocka_unit_test(test_ctranslate2), cmocka_unit_test(test_nematus),
                                       cmocka_unit_test(test_marian_yaml)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
