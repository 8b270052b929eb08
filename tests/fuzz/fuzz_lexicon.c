// SPDX-License-Identifier: MIT
// Fuzz target: lexical tables as text, tables made of links (each byte is one), written and read again, and Marian's
// binary shortlist. What is accepted must hold what the headers promise: rows in order, ids in range; a binary list
// must survive being written and read again.
// Parsers: src/align/lexicon.c src/format/shortlist_marian.c
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "format/shortlist.h"
#include "align/lexicon.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

static void check(const dgm_lexicon *lex)
{
    for (uint32_t s = 0; s <= lex->sources; s++) {
        require(lex->at[s] <= lex->at[s + 1]);
        for (uint64_t k = lex->at[s]; k < lex->at[s + 1]; k++) {
            require(lex->entry[k].target <= lex->targets);
            require(k == lex->at[s] || lex->entry[k].prob <= lex->entry[k - 1].prob);
        }
    }
}

static void table(const uint8_t *data, size_t size)
{
    dgm_lexicon *lex;
    dgm_error err;
    if (dgm_lexicon_parse(&lex, (const char *)data, size, &err) != DGM_OK) {
        require(lex == NULL && strlen(err.text) > 0 && !strchr(err.text, '\n'));
        return;
    }
    check(lex);
    dgm_lexicon_close(&lex);
}

static dgm_text spell(const void *context, bool target, uint32_t word)
{
    (void)context;
    static char text[2][4]; // both are asked for before one is used
    const int n = snprintf(text[target], sizeof text[0], "%c%u", target ? 't' : 's', (unsigned)word % 16);
    return (dgm_text){text[target], (size_t)n};
}

static void links(const uint8_t *data, size_t size)
{
    dgm_link_counts c = {.sources = 9, .targets = 7};
    dgm_lexicon *lex = NULL, *again = NULL;
    for (size_t i = 0; i < size; i++) require(dgm_link_counts_add(&c, data[i] / 16 % 10, data[i] % 8, NULL) == DGM_OK);
    require(dgm_lexicon_count(&lex, &c, size & 16, NULL) == DGM_OK);
    check(lex);
    require(dgm_lexicon_write(lex, spell, NULL, fuzz_written("lexicon"), NULL) == DGM_OK);
    require(dgm_lexicon_read(&again, fuzz_written("lexicon"), NULL) == DGM_OK);
    check(again);
    unlink(fuzz_written("lexicon"));
    dgm_lexicon_close(&lex);
    dgm_lexicon_close(&again);
    dgm_link_counts_free(&c);
}

// The first byte says how large the vocabularies are.
static void binary(const uint8_t *data, size_t size)
{
    dgm_shortlist *s, *again;
    dgm_error err;
    int targets = 1 + (data[0] & 15), sources = 1 + (data[0] >> 4);
    if (dgm_shortlist_marian_read(&s, data + 1, size - 1, sources, targets, &err) != DGM_OK) return;
    dgm_writer out = {0};
    require(dgm_shortlist_marian_write(s, 0, &out, &err) == DGM_OK);
    require(dgm_shortlist_marian_read(&again, out.data, out.size, sources, targets, &err) ==
            DGM_OK);
    require(again->at[sources] == s->at[sources] && again->frequent_count == s->frequent_count);
    require(memcmp(again->ids, s->ids, s->at[sources] * sizeof *s->ids) == 0);
    dgm_shortlist_close(&s);
    dgm_shortlist_close(&again);
    dgm_writer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    table(data, size);
    if (size > 0) binary(data, size);
    if (size > 0 && size % 16 == 1) links(data, size);
    return 0;
}
