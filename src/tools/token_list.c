// SPDX-License-Identifier: MIT
// Texts as a translator's model sees them, in tokens, and tokens as text; see dragoman/text.h.
#include <string.h>

#include "base/mem.h"
#include "dragoman/text.h"
#include "engine/engine_private.h"

// The caller's struct is the first member: see dgm_token_list_free.
typedef struct token_box {
    dgm_token_list pub;
    const char **items;
    char *spellings; // of all of them, each with its NUL
} token_box;

static dgm_status make_list(const dgm_vocab *v, const dgm_tokens *tokens, dgm_token_list **list, dgm_error *err)
{
    token_box *box = dgm_calloc(1, sizeof *box);
    size_t bytes = 1;
    for (size_t i = 0; i < tokens->count; i++) bytes += dgm_vocab_piece(v, tokens->ids[i]).size + 1;
    if (box) box->items = dgm_calloc(tokens->count + 1, sizeof *box->items);
    if (box) box->spellings = dgm_malloc(bytes);
    if (!box || !box->items || !box->spellings) {
        dgm_token_list *half = box ? &box->pub : NULL;
        dgm_token_list_free(&half);
        return dgm_no_memory(err);
    }
    char *at = box->spellings;
    for (size_t i = 0; i < tokens->count; i++) {
        const dgm_text spelling = dgm_vocab_piece(v, tokens->ids[i]);
        box->items[i] = at;
        if (spelling.size) memcpy(at, spelling.data, spelling.size);
        at[spelling.size] = 0;
        at += spelling.size + 1;
    }
    box->pub = (dgm_token_list){.size = sizeof box->pub, .items = box->items, .count = tokens->count};
    *list = &box->pub;
    return DGM_OK;
}

dgm_status dgm_text_tokens(const dgm_translator *t, int target, const char *text, size_t size,
                           dgm_token_list **list, dgm_error *err)
{
    DGM_FAIL_IF(!t || !list || (!text && size), err, DGM_ERR_ARGUMENT,
                "dgm_text_tokens needs a translator, a text and where to put its tokens");
    *list = NULL;
    const dgm_vocab *v = target ? t->target : t->source;
    dgm_tokens tokens = {0};
    dgm_status st = dgm_vocab_encode(v, (dgm_text){size ? text : "", size}, &tokens, err);
    if (st == DGM_OK) st = make_list(v, &tokens, list, err);
    dgm_tokens_free(&tokens);
    return st;
}

void dgm_token_list_free(dgm_token_list **list)
{
    if (!list || !*list) return;
    token_box *box = (token_box *)(void *)*list;
    *list = NULL;
    dgm_free(box->items);
    dgm_free(box->spellings);
    dgm_free(box);
}

dgm_status dgm_tokens_text(const dgm_translator *t, int target, const char *const *tokens, size_t count,
                           char **text, dgm_error *err)
{
    DGM_FAIL_IF(!t || !text || (!tokens && count), err, DGM_ERR_ARGUMENT,
                "dgm_tokens_text needs a translator, tokens and where to put their text");
    *text = NULL;
    const dgm_vocab *v = target ? t->target : t->source;
    int32_t *ids = dgm_malloc((count + 1) * sizeof *ids);
    if (!ids) return dgm_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        ids[i] = tokens[i] ? dgm_vocab_id(v, dgm_text_of(tokens[i])) : -1;
        if (ids[i] < 0) ids[i] = dgm_vocab_unk(v);
    }
    dgm_writer w = {0};
    dgm_status st = dgm_vocab_decode(v, ids, count, &w, NULL, err);
    dgm_free(ids);
    if (st == DGM_OK && !(*text = dgm_strndup(w.size ? (const char *)w.data : "", w.size))) st = dgm_no_memory(err);
    dgm_writer_free(&w);
    return st;
}
