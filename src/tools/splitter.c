// SPDX-License-Identifier: MIT
// Lines into words and back; see splitter.h. Unknown subwords are <unk>, which the n-gram tools and
// phrase tables know as a word like any other.
#include "tools/splitter.h"

#include "base/mem.h"
#include "engine/engine_private.h"

dgm_status dgm_splitter_open(dgm_splitter *s, const char *subwords, dgm_side side, dgm_error *err)
{
    *s = (dgm_splitter){0};
    if (!subwords) return DGM_OK;
    DGM_TRY(dgm_modelfile_open(&s->file, subwords, err));
    dgm_status st = dgm_vocabulary_load(s->file, side, &s->vocab, NULL, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "%s", subwords);
        dgm_splitter_close(s);
    }
    return st;
}

void dgm_splitter_close(dgm_splitter *s)
{
    dgm_vocab_close(&s->vocab);
    dgm_gguf_close(&s->file);
}

static dgm_status split_subwords(const dgm_splitter *s, dgm_text line, dgm_word_taker take,
                               void *cookie, dgm_error *err)
{
    dgm_tokens tokens = {0};
    dgm_status st = dgm_vocab_encode(s->vocab, line, &tokens, err);
    for (size_t i = 0; st == DGM_OK && i < tokens.count; i++) {
        bool unknown = dgm_vocab_is_unknown(s->vocab, tokens.ids[i]);
        st = take(cookie, unknown ? dgm_text_of("<unk>") : dgm_vocab_piece(s->vocab, tokens.ids[i]),
                  err);
    }
    dgm_tokens_free(&tokens);
    return st;
}

dgm_status dgm_splitter_line(const dgm_splitter *s, dgm_text line, dgm_word_taker take,
                             void *cookie, dgm_error *err)
{
    size_t bad = dgm_utf8_first_bad(line);
    DGM_FAIL_IF(bad < line.size, err, DGM_ERR_TEXT, "invalid UTF-8 at byte %zu", bad + 1);
    if (s->vocab) return split_subwords(s, line, take, cookie, err);
    for (size_t i = 0; i < line.size;) {
        size_t begin = i;
        while (i < line.size && line.data[i] != ' ' && line.data[i] != '\t') i++;
        if (i > begin) DGM_TRY(take(cookie, (dgm_text){line.data + begin, i - begin}, err));
        i++;
    }
    return DGM_OK;
}

dgm_status dgm_splitter_join(const dgm_splitter *s, const dgm_text *words, size_t count,
                             dgm_writer *out, dgm_error *err)
{
    dgm_status st = DGM_OK;
    if (s->vocab) {
        int32_t *ids = dgm_malloc((count + 1) * sizeof *ids);
        if (!ids) return dgm_no_memory(err);
        for (size_t i = 0; i < count; i++) {
            ids[i] = dgm_vocab_id(s->vocab, words[i]);
            if (ids[i] < 0) ids[i] = dgm_vocab_unk(s->vocab);
        }
        st = dgm_vocab_decode(s->vocab, ids, count, out, NULL, err);
        dgm_free(ids);
        return st;
    }
    for (size_t i = 0; i < count; i++) {
        if (i) dgm_write_u8(out, ' ');
        dgm_write_bytes(out, words[i].data, words[i].size);
    }
    return out->failed ? dgm_no_memory(err) : DGM_OK;
}
