// SPDX-License-Identifier: MIT
// Fuzz target: lexical tables as text, and Marian's binary shortlist. What is accepted must hold
// what the headers promise: rows in order, ids in range; a binary list must survive being written
// and read again.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "format/shortlist.h"
#include "align/lexicon.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

static void table(const uint8_t *data, size_t size)
{
    dgm_lexicon *lex;
    dgm_error err;
    if (dgm_lexicon_parse(&lex, (const char *)data, size, &err) != DGM_OK) {
        require(lex == NULL && strlen(err.text) > 0 && !strchr(err.text, '\n'));
        return;
    }
    for (uint32_t s = 0; s <= lex->sources; s++) {
        require(lex->at[s] <= lex->at[s + 1]);
        for (uint64_t k = lex->at[s]; k < lex->at[s + 1]; k++) {
            require(lex->entry[k].target < lex->targets);
            require(k == lex->at[s] || lex->entry[k].prob <= lex->entry[k - 1].prob);
        }
    }
    dgm_lexicon_close(&lex);
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
    return 0;
}
