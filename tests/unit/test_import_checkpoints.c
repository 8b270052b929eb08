// SPDX-License-Identifier: MIT
// Checkpoints of fairseq and OpenNMT-py that cannot be imported, each with one thing changed in a file of
// tests/data/import: a name in its pickle, a line of its dictionary, a file beside it. What can be imported is
// compared in test_import_parity.c.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "format/modelfile.h"
#include "import/import.h"

#define DATA "tests/data/import/"

static char folder[] = "/tmp/dragoman-checkpoints-XXXXXX";
static char said[512]; // notes of the import

static const char *in_folder(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

// Copies a file of the data into the folder; `from` is replaced everywhere by `to`, which is as long.
static void copy(const char *data, const char *name, const char *from, const char *to)
{
    dgm_mapfile f;
    dgm_error err;
    char path[160];
    snprintf(path, sizeof path, DATA "%s", data);
    assert_int_equal(dgm_mapfile_open(&f, path, &err), DGM_OK);
    uint8_t *bytes = malloc(f.size + 1);
    memcpy(bytes, f.data, f.size);
    int found = 0;
    for (uint8_t *at = bytes; from && (at = memmem(at, f.size - (size_t)(at - bytes), from, strlen(from)));
         found++, at++) {
        assert_int_equal(strlen(from), strlen(to));
        memcpy(at, to, strlen(to));
    }
    assert_true(!from || found);
    assert_int_equal(dgm_file_write(in_folder(name), bytes, f.size, NULL), DGM_OK);
    free(bytes);
    dgm_mapfile_close(&f);
}

static void hear(void *cookie, const char *text)
{
    (void)cookie;
    snprintf(said, sizeof said, "%s", text);
}

static dgm_status import(const char *format, const char *name, dgm_error *err)
{
    char path[160], out[160];
    dgm_import_options o = {.size = sizeof o, .note = hear};
    snprintf(path, sizeof path, "%s", name ? in_folder(name) : folder);
    snprintf(out, sizeof out, "%s/out.gguf", folder);
    said[0] = 0;
    return dgm_import_run(format, path, out, &o, NULL, err);
}

static void expect(const char *format, const char *name, dgm_status status, const char *text)
{
    dgm_error err = {""};
    const dgm_status st = import(format, name, &err);
    for (char *at; (at = strstr(err.text, folder)) != NULL;)
        memmove(at, at + strlen(folder), strlen(at + strlen(folder)) + 1);
    assert_string_equal(err.text, text);
    assert_int_equal(st, status);
}

static void fairseq_files(const char *from, const char *to)
{
    copy("fairseq-old/model.pt", "model.pt", from, to);
    copy("fairseq-old/dict.en.txt", "dict.en.txt", NULL, NULL);
    copy("fairseq-old/dict.de.txt", "dict.de.txt", NULL, NULL);
}

static void remove_all(void)
{
    static const char *const names[] = {"model.pt", "other.pt", "dict.en.txt", "dict.de.txt", "bpecodes", "out.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in_folder(names[i]));
}

static void test_fairseq(void **state)
{
    (void)state;
    dgm_error err = {""};
    fairseq_files(NULL, NULL);
    assert_int_equal(import("fairseq", NULL, &err), DGM_OK); // the folder's only checkpoint
    assert_non_null(strstr(said, "text must be given as tokens with spaces between them"));
    copy("fairseq-old/model.pt", "other.pt", NULL, NULL);
    unlink(in_folder("model.pt"));
    copy("fairseq-old/model.pt", "model.pt", NULL, NULL);
    assert_int_equal(import("fairseq", NULL, &err), DGM_OK); // of several the usual name
    unlink(in_folder("other.pt"));
    fairseq_files("transformer_iwslt_de_en", "lightconv_iwslt_de_en__");
    expect("fairseq", NULL, DGM_ERR_UNSUPPORTED,
           "'/model.pt': architecture 'lightconv_iwslt_de_en__' is not supported (Transformers for translation are)");
    fairseq_files("encoder_attention_heads", "adaptive_softmax_cutoff");
    expect("fairseq", NULL, DGM_ERR_UNSUPPORTED, "'/model.pt': \"adaptive_softmax_cutoff\" is not supported");
    fairseq_files("Namespace", "Namespaze");
    expect("fairseq", NULL, DGM_ERR_UNSUPPORTED,
           "'/model.pt': object, from byte 137: byte 37: it names 'argparse.Namespaze', which no translation model "
           "needs: refused (nothing in a pickle is ever run)");
    fairseq_files("encoder.layers.1.fc1.bias", "encoder.layers.1.fc3.bias");
    expect("fairseq", NULL, DGM_ERR_FORMAT, "'': tensor 'encoder.layers.1.fc1.bias' is missing");
    fairseq_files("source_lang", "sourze_lang");
    expect("fairseq", NULL, DGM_ERR_FORMAT,
           "'/model.pt': \"source_lang\" and \"target_lang\" are not said, so dict.*.txt cannot be found");
    fairseq_files(NULL, NULL);
    copy("fairseq-old/dict.en.txt", "dict.de.txt", NULL, NULL);
    expect("fairseq", NULL, DGM_ERR_FORMAT,
           "'/dict.de.txt': 154 tokens with the four that it does not list, but the embedding in '/model.pt' has "
           "94 rows");
    unlink(in_folder("dict.de.txt"));
    expect("fairseq", NULL, DGM_ERR_IO, "cannot open '/dict.de.txt': No such file or directory");
    copy("opennmt-1/model_step_10.pt", "model.pt", NULL, NULL);
    expect("fairseq", NULL, DGM_ERR_FORMAT,
           "'/model.pt': neither \"args\" nor \"cfg\" says the architecture: not a checkpoint of fairseq");
    remove_all();
}

// Codes of byte-pair encoding beside the checkpoint make a vocabulary of that kind.
static void test_codes(void **state)
{
    (void)state;
    static const char codes[] = "#version: 0.2\nt h\nth e</w>\n";
    dgm_error err = {""};
    dgm_gguf *g = NULL;
    const char *kind = NULL;
    fairseq_files(NULL, NULL);
    assert_int_equal(dgm_file_write(in_folder("bpecodes"), codes, sizeof codes - 1, NULL), DGM_OK);
    if (import("fairseq", "model.pt", &err) != DGM_OK) fail_msg("%s", err.text);
    assert_non_null(strstr(said, "separated by spaces"));
    assert_int_equal(dgm_modelfile_open(&g, in_folder("out.gguf"), &err), DGM_OK);
    dgm_gguf_get_string(g, "dragoman.source.vocab.kind", DGM_REQUIRED, &kind, &err);
    assert_string_equal(kind, "bpe");
    dgm_gguf_close(&g);
    remove_all();
}

static void test_opennmt(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        dgm_status status;
        const char *text;
    } rows[] = {
        {"<unk>", "<ukn>", DGM_ERR_FORMAT, "'/model.pt': a vocabulary lacks '<unk>'"},
        {"</s>", "<s/>", DGM_ERR_FORMAT, "'/model.pt': the target's vocabulary lacks '<s>' or '</s>'"},
        {"itos", "itoz", DGM_ERR_FORMAT, "'/model.pt': no list of tokens in \"vocab\" for \"src\""},
        {"position_encoding", "parallel_residual", DGM_ERR_UNSUPPORTED,
         "'/model.pt': \"parallel_residual\" is not supported"},
        {"transformer_ff", "sliding_window", DGM_ERR_UNSUPPORTED,
         "'/model.pt': \"sliding_window\" 24 is not supported"},
        {"decoder.layer_norm.bias", "decoder.layer_norm.bies", DGM_ERR_UNSUPPORTED,
         "'/model.pt': tensor 'decoder.layer_norm.bies' is not part of a Transformer of OpenNMT-py"},
    };
    dgm_error err = {""};
    copy("opennmt-1/model_step_10.pt", "other.pt", NULL, NULL);
    assert_int_equal(import("opennmt-py", NULL, &err), DGM_OK); // the folder's only checkpoint
    assert_int_equal(import("auto", NULL, &err), DGM_OK);
    unlink(in_folder("other.pt"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        copy("opennmt-1/model_step_10.pt", "model.pt", rows[i].from, rows[i].to);
        expect("opennmt-py", "model.pt", rows[i].status, rows[i].text);
    }
    copy("fairseq-old/model.pt", "model.pt", NULL, NULL);
    expect("opennmt-py", "model.pt", DGM_ERR_FORMAT,
           "'/model.pt': no \"model\", \"opt\" and \"vocab\": not a checkpoint of OpenNMT-py");
    remove_all();
}

static void test_no_memory(void **state)
{
    (void)state;
    static const char *const formats[] = {"fairseq", "opennmt-py"};
    for (int k = 0; k < 2; k++) {
        dgm_error err = {""};
        fairseq_files(NULL, NULL);
        if (k) copy("opennmt-1/model_step_10.pt", "model.pt", NULL, NULL);
        assert_int_equal(import(formats[k], "model.pt", &err), DGM_OK); // jansson makes its seed once
        const uint64_t live = dgm_mem_live();
        dgm_status st = DGM_ERR_MEMORY;
        // All of them would take long: every one at the beginning, where files are opened, then every 7th.
        for (uint64_t at = 1; st != DGM_OK; at += at < 60 ? 1 : 7) {
            dgm_mem_inject(at, 1);
            st = import(formats[k], "model.pt", &err);
            dgm_mem_inject(0, 0);
            if (st != DGM_OK && st != DGM_ERR_MEMORY) fail_msg("allocation %d: %s", (int)at, err.text);
            assert_int_equal(dgm_mem_live(), live);
        }
        remove_all();
    }
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    remove_all();
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fairseq),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_opennmt),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
