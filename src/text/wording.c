// SPDX-License-Identifier: MIT
// Lines into words and back; see wording.h. Unknown subwords are <unk>, which the n-gram tools and
// phrase tables know as a word like any other.
#include "text/wording.h"

#include "base/fields.h"
#include "base/mem.h"

static dgm_status split_subwords(const dgm_vocab *v, dgm_text line, dgm_word_taker take,
                                 void *cookie, dgm_error *err)
{
    dgm_tokens tokens = {0};
    dgm_status st = dgm_vocab_encode(v, line, &tokens, err);
    for (size_t i = 0; st == DGM_OK && i < tokens.count; i++) {
        const bool unknown = dgm_vocab_is_unknown(v, tokens.ids[i]);
        st = take(cookie, unknown ? dgm_text_of("<unk>") : dgm_vocab_piece(v, tokens.ids[i]), err);
    }
    dgm_tokens_free(&tokens);
    return st;
}

static dgm_status split_text(dgm_language language, dgm_text line, dgm_word_taker take,
                             void *cookie, dgm_error *err)
{
    dgm_ranges words = {0};
    dgm_status st = dgm_moses_tokenize(line, language, &words, err);
    for (size_t i = 0; st == DGM_OK && i < words.count; i++) {
        const dgm_range *r = &words.items[i];
        st = take(cookie, (dgm_text){line.data + r->begin, r->end - r->begin}, err);
    }
    dgm_ranges_free(&words);
    return st;
}

dgm_status dgm_wording_split(const dgm_wording *w, dgm_text line, dgm_word_taker take, void *cookie,
                             dgm_error *err)
{
    const size_t bad = dgm_utf8_first_bad(line);
    DGM_FAIL_IF(bad < line.size, err, DGM_ERR_TEXT, "invalid UTF-8 at byte %zu", bad + 1);
    if (w->subwords) return split_subwords(w->subwords, line, take, cookie, err);
    if (w->moses) return split_text(w->language, line, take, cookie, err);
    for (dgm_text word; (word = dgm_field_next(&line)).size;) DGM_TRY(take(cookie, word, err));
    return DGM_OK;
}

static dgm_status join_subwords(const dgm_vocab *v, const dgm_text *words, size_t count,
                                dgm_writer *out, dgm_error *err)
{
    int32_t *ids = dgm_malloc((count + 1) * sizeof *ids);
    if (!ids) return dgm_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        ids[i] = dgm_vocab_id(v, words[i]);
        if (ids[i] < 0) ids[i] = dgm_vocab_unk(v);
    }
    const dgm_status st = dgm_vocab_decode(v, ids, count, out, NULL, err);
    dgm_free(ids);
    return st;
}

dgm_status dgm_wording_join(const dgm_wording *w, const dgm_text *words, size_t count,
                            dgm_writer *out, dgm_error *err)
{
    if (w->subwords) return join_subwords(w->subwords, words, count, out, err);
    if (w->moses) return dgm_moses_detokenize(words, count, w->language, false, out, NULL, err);
    for (size_t i = 0; i < count; i++) {
        if (i) dgm_write_u8(out, ' ');
        dgm_write_bytes(out, words[i].data, words[i].size);
    }
    return out->failed ? dgm_no_memory(err) : DGM_OK;
}
