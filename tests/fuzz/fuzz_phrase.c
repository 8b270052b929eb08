// SPDX-License-Identifier: MIT
// Fuzz target: phrase tables as text, with reordering tables, and as compact files. An accepted
// text must make a table that gives every row back; a compact file whose header is accepted must
// stay inside its bytes whatever its sections say. Descriptions of systems: what is accepted names a
// table and a language model. The first byte chooses the kind and the bits.
// Parsers: src/phrase/phrase_text.c src/phrase/phrase_table.c src/phrase/phrase_config.c src/phrase/phrase_build.c
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "dragoman/phrase.h"
#include "phrase/phrase_table.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

static uint32_t ask(const dgm_phrase_table *t)
{
    uint32_t options = 0;
    for (uint32_t s = 0; s < t->sources && s < 64; s++) {
        uint32_t begin = t->source_at[s], end = t->source_at[s + 1], first;
        if (begin > end || end > t->source_words || end - begin > DGM_PHRASE_LENGTH_MAX) continue;
        uint64_t word_at;
        uint32_t n =
            dgm_phrase_table_find(t, t->source_word + begin, (int)(end - begin), &first, &word_at);
        for (uint32_t i = 0; i < n && i < 64; i++) {
            dgm_table_option o;
            dgm_phrase_table_option(t, first + i, &word_at, &o);
            require(o.length >= 0 && o.length <= DGM_PHRASE_LENGTH_MAX);
            for (int k = 0; k < o.length; k++) {
                dgm_text word = dgm_phrase_table_spell(t, 1, o.target[k]);
                dgm_phrase_table_word(t, 1, word);
            }
            options++;
        }
    }
    return options;
}

static void text(const uint8_t *data, size_t size, int bits, bool turns)
{
    dgm_phrase_parser *p;
    dgm_phrase_table *t = NULL;
    dgm_error err;
    uint32_t rows = 0;
    dgm_status st = dgm_phrase_parser_open(&p, &err);
    bool table = true; // until an empty line, with turns
    while (size > 0 && st == DGM_OK) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t n = end ? (size_t)(end - data) : size;
        dgm_text line = {(const char *)data, n};
        if (n == 0 && turns) {
            table = false;
        } else {
            st = table ? dgm_phrase_parser_line(p, line, &err)
                       : dgm_phrase_parser_reordering(p, line, &err);
            rows += table && st == DGM_OK;
        }
        n += end != NULL;
        data += n;
        size -= n;
    }
    if (st == DGM_OK) st = dgm_phrase_parser_finish(p, bits, &t, &err);
    dgm_phrase_parser_close(&p);
    if (st != DGM_OK) {
        require(t == NULL && strlen(err.text) > 0 && !strchr(err.text, '\n'));
        return;
    }
    require(t->options == rows);
    uint32_t seen = ask(t);
    require(t->sources > 64 || rows > 64 || seen == rows);
    dgm_phrase_table_close(&t);
}

// A table, an empty line and turns, from two files; what is written is read again as the same.
static void through_files(const uint8_t *data, size_t size, bool turns)
{
    static char written[FUZZ_PATH];
    char path[FUZZ_PATH], other[FUZZ_PATH];
    const uint8_t *empty = turns ? memmem(data, size, "\n\n", 2) : NULL;
    const size_t n = empty ? (size_t)(empty - data) + 1 : size;
    dgm_phrase_table *t = NULL, *again = NULL;
    dgm_error err = {""};
    const size_t behind = n + (empty != NULL);
    const int fd = fuzz_file(data, n, path), second = fuzz_file(data + behind, size - behind, other);
    snprintf(written, sizeof written, "%s", fuzz_written("turns"));
    if (dgm_phrase_table_read(&t, path, empty ? other : NULL, 0, &err) == DGM_OK) {
        const char *reordering = empty ? written : NULL;
        require(dgm_phrase_table_write(t, fuzz_written("phrases"), reordering, &err) == DGM_OK);
        require(dgm_phrase_table_read(&again, fuzz_written("phrases"), reordering, 0, &err) == DGM_OK);
        require(again->options == t->options && again->sources == t->sources);
        dgm_phrase_table_close(&again);
        require(dgm_phrase_table_save(t, written, &err) == DGM_OK);
        require(dgm_phrase_table_open(&again, written, "x", &err) != DGM_OK && !again);
        require(dgm_phrase_table_open(&again, written, NULL, &err) == DGM_OK && again->options == t->options);
        unlink(fuzz_written("phrases"));
        unlink(written);
    } else {
        require(!t && err.text[0] && !strchr(err.text, '\n'));
    }
    dgm_phrase_table_close(&t);
    dgm_phrase_table_close(&again);
    close(fd);
    close(second);
}

static void compact(const uint8_t *data, size_t size)
{
    dgm_phrase_table *t;
    dgm_error err;
    uint8_t *copy = dgm_malloc(size + 1); // aligned, as a mapped file is
    if (!copy) return;
    memcpy(copy, data, size);
    if (dgm_phrase_table_open_bytes(&t, copy, size, &err) == DGM_OK) {
        ask(t);
        dgm_phrase_table_close(&t);
    }
    dgm_free(copy);
}

static void description(const uint8_t *data, size_t size)
{
    char path[64];
    dgm_phrasal_file *f = NULL;
    dgm_phrasal_options o;
    dgm_error err;
    const int fd = memfd_create("system", 0);
    if (fd < 0) return;
    require(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (dgm_phrasal_file_open(&f, path, &err) == DGM_OK) {
        dgm_phrasal_file_options(f, &o);
        require(o.table && o.lm && o.pops > 0 && o.stack > 0 && o.table_limit > 0);
        require(o.jump >= 0 && o.jump <= 56 && o.lattice_beam >= 0);
    } else {
        require(!f && strlen(err.text) > 0 && !strchr(err.text, '\n'));
    }
    dgm_phrasal_file_close(&f);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int bits[] = {0, 8, 16, 0};
    if (size == 0) return 0;
    if (data[0] & 16)
        description(data + 1, size - 1);
    else if (data[0] & 1)
        compact(data + 1, size - 1);
    else
        text(data + 1, size - 1, bits[data[0] >> 2 & 3], data[0] & 2);
    if (!(data[0] & 17) && size % 8 == 1) through_files(data + 1, size - 1, data[0] & 2);
    return 0;
}
