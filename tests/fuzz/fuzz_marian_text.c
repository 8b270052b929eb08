// SPDX-License-Identifier: MIT
// Fuzz target: texts beside models of Marian: shortlists as text, preprocess.sh, README.md. The first byte says which,
// the next three the numbers of a shortlist's settings. What is accepted must hold what the headers promise.
// Parsers: src/import/marian_shortlist.c src/import/release.c
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/shortlist.h"
#include "import/marian_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

static void release(dgm_text text, bool script)
{
    dgm_release r = {0};
    if (script)
        dgm_release_script(&r, text);
    else
        dgm_release_readme(&r, text);
    require(r.moses < 16 && strlen(r.language[0]) < 4 && strlen(r.language[1]) < 4);
}

// Words a, b, ... on both sides.
static json_t *letters(int count)
{
    json_t *ids = json_object();
    for (int i = 0; i < count; i++) {
        const char word[2] = {(char)('a' + i), 0};
        json_object_set_new(ids, word, json_integer(i));
    }
    return ids;
}

// A file without a name, which is read by its number.
static void shortlist(const uint8_t *numbers, dgm_text text)
{
    char path[64];
    dgm_marian_words words = {.ids = {letters(12), letters(9)}, .unk = {1, 1}, .sizes = {12, 9}};
    dgm_marian_files files = {.shortlist = path, .settings_path = path, .vocab = {path, path}};
    dgm_import_job job = {.dir = path};
    dgm_error err = {""};
    files.settings = json_pack("{s:[s,i,i,f]}", "shortlist", "x", numbers[0], numbers[1], numbers[2] / 255.0);
    const int file = memfd_create("list", 0);
    require(file >= 0 && write(file, text.data, text.size) == (ssize_t)text.size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    require(dgm_gguf_writer_open(&job.w, &err) == DGM_OK);
    static const char *const sides[] = {"dragoman.source.vocab.size", "dragoman.target.vocab.size"};
    for (int i = 0; i < 2; i++) dgm_gguf_set_u32(job.w, sides[i], (uint32_t)words.sizes[i]);
    const dgm_status st = dgm_marian_shortlist(&job, &files, &words, &err);
    require(st == DGM_OK || (err.text[0] && !strchr(err.text, '\n')));
    close(file);
    dgm_gguf_writer_close(&job.w);
    json_decref(files.settings);
    dgm_marian_words_free(&words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4) return 0;
    const dgm_text text = {(const char *)data + 4, size - 4};
    dgm_json_init();
    if (data[0] % 3 == 0)
        shortlist(data + 1, text);
    else
        release(text, data[0] % 3 == 1);
    return 0;
}
