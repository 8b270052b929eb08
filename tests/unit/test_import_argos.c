// SPDX-License-Identifier: MIT
// Packages of Argos Translate: as zip and as folder, what metadata.json says, hostile archives.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <zip.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ct2_folder.h"
#include "dragoman/tools.h"
#include "format/gguf.h"

static const char metadata[] = "{\"from_code\": \"en\", \"to_code\": \"de\", \"package_version\": \"1.0\"}";

typedef struct package {
    ct2_folder model;
    char file[80], output[80];
    const char *metadata;
    const char *other;  // another member of that name, 3 bytes
    size_t zeros;       // model.bin is so many of them
    const char *rename; // bytes of the archive that are replaced ...
    const char *by;     // ... by these, of the same number
} package;

static void add(zip_t *z, const char *name, const void *data, size_t size)
{
    zip_source_t *s = zip_source_buffer(z, data, size, 0);
    assert_non_null(s);
    assert_true(zip_file_add(z, name, s, ZIP_FL_ENC_UTF_8) >= 0);
}

static void replace_bytes(package *p)
{
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, p->file, NULL), DGM_OK);
    uint8_t *copy = malloc(f.size);
    const size_t size = f.size, n = strlen(p->rename);
    memcpy(copy, f.data, size);
    dgm_mapfile_close(&f);
    for (uint8_t *at = copy; (at = memmem(at, size - (size_t)(at - copy), p->rename, n)) != NULL;) memcpy(at, p->by, n);
    assert_int_equal(dgm_file_write(p->file, copy, size, NULL), DGM_OK);
    free(copy);
}

static void make_zip(package *p)
{
    static const char *const names[] = {"model.bin", "config.json", "shared_vocabulary.json"};
    dgm_mapfile f[3];
    char path[160], member[128];
    ct2_make(&p->model);
    snprintf(p->file, sizeof p->file, "%s.argosmodel", p->model.path);
    snprintf(p->output, sizeof p->output, "%s/out.gguf", p->model.path);
    zip_t *z = zip_open(p->file, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    assert_non_null(z);
    uint8_t *zeros = p->zeros ? calloc(p->zeros, 1) : NULL;
    const char *about = p->metadata ? p->metadata : metadata;
    if (about[0]) add(z, "translate-en_de-1_0/metadata.json", about, strlen(about));
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", p->model.path, names[i]);
        snprintf(member, sizeof member, "translate-en_de-1_0/model/%s", names[i]);
        assert_int_equal(dgm_mapfile_open(&f[i], path, NULL), DGM_OK);
        add(z, member, i == 0 && zeros ? zeros : f[i].data, i == 0 && zeros ? p->zeros : f[i].size);
    }
    if (p->other) add(z, p->other, "abc", 3);
    assert_int_equal(zip_close(z), 0);
    for (int i = 0; i < 3; i++) dgm_mapfile_close(&f[i]);
    free(zeros);
    if (p->rename) replace_bytes(p);
}

static void expect_languages(const char *output)
{
    dgm_gguf *g = NULL;
    dgm_gguf_strings it = {0};
    dgm_gguf_text text;
    uint32_t beam = 0;
    float penalty = 0;
    assert_int_equal(dgm_gguf_open(&g, output, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_get_strings(g, "dragoman.languages.target", DGM_REQUIRED, &it, NULL), DGM_OK);
    assert_true(dgm_gguf_strings_next(&it, &text) && text.size == 2 && memcmp(text.data, "de", 2) == 0);
    assert_int_equal(dgm_gguf_get_u32(g, "dragoman.decode.beam", DGM_REQUIRED, 1, 9, &beam, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_get_f32(g, "dragoman.decode.length_penalty", DGM_REQUIRED, 0, 2, &penalty, NULL), DGM_OK);
    assert_int_equal(beam, 4);
    assert_true(penalty == 0.2f);
    dgm_gguf_close(&g);
}

static void test_package(void **state)
{
    (void)state;
    package p = {.other = "translate-en_de-1_0/stanza/resources.json"};
    dgm_error err = {""};
    make_zip(&p);
    if (dgm_import("auto", p.file, p.output, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    expect_languages(p.output);
    const uint64_t live = dgm_mem_live();
    for (uint64_t at = 1, failed = 1; failed && at < 3000; at++) {
        dgm_mem_inject(at, 1);
        const dgm_status st = dgm_import("argos", p.file, p.output, NULL, &err);
        dgm_mem_inject(0, 0);
        failed = st != DGM_OK;
        assert_int_equal(dgm_mem_live(), live);
    }
    unlink(p.file);
    ct2_remove(&p.model);
}

// As Argos unpacks it: the CTranslate2 folder is "model" in the package's.
static void test_folder(void **state)
{
    (void)state;
    ct2_folder f = {0};
    char folder[] = "/tmp/dgm-argos-XXXXXX", path[96], inside[96];
    dgm_error err = {""};
    ct2_make(&f);
    assert_non_null(mkdtemp(folder));
    snprintf(inside, sizeof inside, "%s/model", folder);
    assert_int_equal(rename(f.path, inside), 0);
    strcpy(f.path, inside);
    snprintf(path, sizeof path, "%s/metadata.json", folder);
    assert_int_equal(dgm_file_write(path, metadata, sizeof metadata - 1, NULL), DGM_OK);
    assert_string_equal(dgm_import_recognise(folder, NULL), "argos");
    char output[] = "/tmp/dgm-argos-out-XXXXXX";
    close(mkstemp(output));
    if (dgm_import(NULL, folder, output, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    expect_languages(output);
    unlink(output);
    unlink(path);
    ct2_remove(&f);
    rmdir(folder);
}

static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        package p;
        const char *says;
    } cases[] = {
        {{.other = "translate-en_de-1_0/../../evil"}, "leads out of the package"},
        {{.other = "/etc/evil"}, "leads out of the package"},
        {{.other = "translate-en_de-1_0/model/model.bix", .rename = "model.bix", .by = "model.bin"}, "is there twice"},
        {{.zeros = (size_t)64 << 20}, "unpacks to 67108864 bytes"},
        {{.metadata = ""}, "no metadata.json"},
        {{.metadata = "[1]"}, "metadata.json: not a JSON object"},
        {{.metadata = "{\"from_code\": \"en\"}"}, "no \"from_code\" or no \"to_code\""},
        {{.metadata = "{\"type\": \"sbd\"}"}, "\"type\" 'sbd' is not supported"},
        {{.metadata = "{\"from_code\": \"en\", \"to_code\": \"de\", \"target_prefix\": \"__xx__\"}"},
         "'__xx__', with which translations begin"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        package p = cases[i].p;
        dgm_error err = {""};
        make_zip(&p);
        assert_int_not_equal(dgm_import("argos", p.file, p.output, NULL, &err), DGM_OK);
        if (!strstr(err.text, cases[i].says)) fail_msg("'%s' instead of '%s'", err.text, cases[i].says);
        assert_non_null(strstr(err.text, p.file));
        unlink(p.file);
        ct2_remove(&p.model);
    }
}

// 200 packages with bytes changed or cut off: imported, or refused with one line that names the file.
static void test_damage(void **state)
{
    (void)state;
    package p = {0};
    dgm_mapfile f;
    dgm_rng rng = {.state = 99};
    int refused = 0;
    make_zip(&p);
    assert_int_equal(dgm_mapfile_open(&f, p.file, NULL), DGM_OK);
    const size_t whole = f.size;
    uint8_t *good = malloc(whole), *bad = malloc(whole);
    memcpy(good, f.data, whole);
    dgm_mapfile_close(&f);
    for (int round = 0; round < 200; round++) {
        dgm_error err = {""};
        memcpy(bad, good, whole);
        for (int k = 0; k < 1 + round % 3; k++)
            bad[dgm_rng_below(&rng, whole)] ^= (uint8_t)(1 + dgm_rng_below(&rng, 255));
        const size_t size = round % 4 ? whole : (size_t)dgm_rng_below(&rng, whole);
        assert_int_equal(dgm_file_write(p.file, bad, size, NULL), DGM_OK);
        if (dgm_import("argos", p.file, p.output, NULL, &err) == DGM_OK) continue;
        refused++;
        if (!strstr(err.text, p.file) || strchr(err.text, '\n')) fail_msg("round %d: '%s'", round, err.text);
    }
    assert_true(refused > 100);
    free(good);
    free(bad);
    unlink(p.file);
    ct2_remove(&p.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_package),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
