// SPDX-License-Identifier: MIT
// Files of byte-pair encodings, and the keys of a `bpe` vocabulary; see bpe_codes.h.
#include "import/bpe_codes.h"

#include <string.h>

#include "base/fields.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/textfile.h"

// ---- lists ----------------------------------------------------------------------------------

void dgm_string_list_free(dgm_string_list *l)
{
    if (!l) return;
    dgm_free(l->items);
    dgm_free(l->storage);
    *l = (dgm_string_list){0};
}

// A list while it grows: offsets into text until it is complete.
typedef struct growing {
    dgm_writer text;
    size_t *at;
    size_t count, cap;
} growing;

static dgm_status add(growing *g, dgm_text item, dgm_error *err)
{
    DGM_FAIL_IF(item.size && memchr(item.data, 0, item.size), err, DGM_ERR_FORMAT, "a NUL character");
    DGM_TRY(dgm_grow(&g->at, &g->cap, g->count + 1, sizeof *g->at, err));
    g->at[g->count++] = g->text.size;
    dgm_write_bytes(&g->text, item.data, item.size);
    dgm_write_u8(&g->text, 0);
    return g->text.failed ? dgm_no_memory(err) : DGM_OK;
}

// Hands the list over where st is good, and frees it in any case.
static dgm_status finish(growing *g, dgm_status st, dgm_string_list *out, dgm_error *err)
{
    *out = (dgm_string_list){0};
    if (st == DGM_OK) st = dgm_grow(&out->items, &out->cap, g->count + 1, sizeof *out->items, err);
    if (st == DGM_OK) {
        dgm_write_u8(&g->text, 0); // never empty
        out->storage = dgm_writer_take(&g->text, NULL);
        if (!out->storage) st = dgm_no_memory(err);
    }
    for (size_t i = 0; st == DGM_OK && i < g->count; i++) out->items[i] = out->storage + g->at[i];
    if (st == DGM_OK) out->count = g->count;
    dgm_writer_free(&g->text);
    dgm_free(g->at);
    if (st != DGM_OK) dgm_string_list_free(out);
    return st;
}

// ---- codes ----------------------------------------------------------------------------------

// "#version: 0.2"; false: the line is a merge.
static dgm_status read_version(dgm_text line, bool *is_version, bool *end_apart, dgm_error *err)
{
    *is_version = dgm_field_skip(&line, "#version:");
    if (!*is_version) return DGM_OK;
    const dgm_text version = dgm_field_next(&line);
    *end_apart = dgm_text_is(version, "0.1");
    DGM_FAIL_IF(!*end_apart && !dgm_text_is(version, "0.2"), err, DGM_ERR_UNSUPPORTED,
                "codes of version '%.*s'; 0.1 and 0.2 are known", DGM_SHOWN(version));
    return DGM_OK;
}

// How the codes of a file without a version mark the end of a word.
typedef struct end_marks {
    bool counted;       // fastBPE
    bool alone, joined; // "</w>" is a symbol; it ends one
} end_marks;

static void look_for_end(dgm_text symbol, end_marks *m)
{
    static const char end[] = "</w>";
    const size_t size = sizeof end - 1;
    if (symbol.size < size || memcmp(symbol.data + symbol.size - size, end, size) != 0) return;
    if (symbol.size == size)
        m->alone = true;
    else
        m->joined = true;
}

static dgm_status add_code(growing *g, dgm_text line, dgm_writer *pair, end_marks *marks, dgm_error *err)
{
    const dgm_text whole = line;
    const dgm_text left = dgm_field_next(&line), right = dgm_field_next(&line), count = dgm_field_next(&line);
    uint64_t number;
    const bool good = right.size > 0 && dgm_field_next(&line).size == 0 &&
                      (count.size == 0 || dgm_number_u64(count, UINT64_MAX, &number));
    DGM_FAIL_IF(!good, err, DGM_ERR_FORMAT, "'%.*s' is no pair of symbols with or without a count",
                DGM_SHOWN(whole));
    marks->counted = count.size > 0;
    look_for_end(left, marks);
    look_for_end(right, marks);
    pair->size = 0;
    dgm_write_bytes(pair, left.data, left.size);
    dgm_write_u8(pair, ' ');
    dgm_write_bytes(pair, right.data, right.size);
    if (pair->failed) return dgm_no_memory(err);
    return add(g, (dgm_text){(const char *)pair->data, pair->size}, err);
}

dgm_status dgm_bpe_codes_parse(dgm_bpe_codes *c, dgm_text text, dgm_error *err)
{
    *c = (dgm_bpe_codes){0};
    growing g = {0};
    dgm_writer pair = {0};
    dgm_status st = DGM_OK;
    bool apart = true, versioned = false;
    end_marks marks = {0};
    for (size_t n = 1; st == DGM_OK && text.size > 0; n++) {
        const dgm_text line = dgm_field_trim(dgm_line_cut(&text));
        if (n == 1) st = read_version(line, &versioned, &apart, err);
        if (st == DGM_OK && line.size > 0 && !(n == 1 && versioned)) st = add_code(&g, line, &pair, &marks, err);
        if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "line %zu", n);
    }
    dgm_writer_free(&pair);
    if (st == DGM_OK && g.count == 0) st = dgm_fail(err, DGM_ERR_FORMAT, "no merges in it");
    // Without a version it is 0.1, unless the file tells otherwise: fastBPE writes counts, and of codes that
    // lost their first line (FSMT's merges.txt) no merge makes the end of a word, it is there from the start.
    c->end_apart = versioned ? apart : marks.alone || !(marks.counted || marks.joined);
    return finish(&g, st, &c->merges, err);
}

void dgm_bpe_codes_free(dgm_bpe_codes *c)
{
    if (c) dgm_string_list_free(&c->merges);
}

// ---- fairseq --------------------------------------------------------------------------------

static dgm_status add_entry(growing *g, dgm_text line, dgm_error *err)
{
    static const char overwrite[] = " #fairseq:overwrite";
    const size_t extra = sizeof overwrite - 1;
    const dgm_text whole = line;
    if (line.size > extra && memcmp(line.data + line.size - extra, overwrite, extra) == 0) line.size -= extra;
    size_t blank = line.size;
    while (blank > 0 && line.data[blank - 1] != ' ') blank--;
    int64_t count;
    const bool good = blank > 1 && dgm_number_i64((dgm_text){line.data + blank, line.size - blank}, INT64_MIN,
                                                  INT64_MAX, &count);
    DGM_FAIL_IF(!good, err, DGM_ERR_FORMAT, "'%.*s' is no token with its count", DGM_SHOWN(whole));
    return add(g, (dgm_text){line.data, blank - 1}, err);
}

dgm_status dgm_fairseq_dict_parse(dgm_string_list *tokens, dgm_text text, dgm_error *err)
{
    static const char *const special[] = {"<s>", "<pad>", "</s>", "<unk>"};
    growing g = {0};
    dgm_status st = DGM_OK;
    for (size_t i = 0; st == DGM_OK && i < sizeof special / sizeof *special; i++)
        st = add(&g, dgm_text_of(special[i]), err);
    for (size_t n = 1; st == DGM_OK && text.size > 0; n++) {
        dgm_text line = dgm_line_cut(&text);
        while (line.size && line.data[line.size - 1] == '\r') line.size--;
        st = add_entry(&g, line, err);
        if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "line %zu", n);
    }
    return finish(&g, st, tokens, err);
}

// ---- files ----------------------------------------------------------------------------------

static dgm_status read_codes(void *out, dgm_text text, dgm_error *err)
{
    return dgm_bpe_codes_parse(out, text, err);
}

static dgm_status read_dict(void *out, dgm_text text, dgm_error *err)
{
    return dgm_fairseq_dict_parse(out, text, err);
}

static dgm_status read_file(const char *path, dgm_status (*parse)(void *, dgm_text, dgm_error *), void *out,
                            dgm_error *err)
{
    dgm_mapfile f;
    DGM_TRY(dgm_mapfile_open(&f, path, err));
    const dgm_status st = parse(out, (dgm_text){f.data ? (const char *)f.data : "", f.size}, err);
    dgm_mapfile_close(&f);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "'%s'", path);
    return st;
}

dgm_status dgm_bpe_codes_read(dgm_bpe_codes *c, const char *path, dgm_error *err)
{
    *c = (dgm_bpe_codes){0};
    return read_file(path, read_codes, c, err);
}

dgm_status dgm_fairseq_dict_read(dgm_string_list *tokens, const char *path, dgm_error *err)
{
    *tokens = (dgm_string_list){0};
    return read_file(path, read_dict, tokens, err);
}

// ---- keys -----------------------------------------------------------------------------------

static void set_flags(dgm_gguf_writer *w, dgm_key_name key, const char *const *names, unsigned flags)
{
    const char *set[32];
    size_t count = 0;
    for (unsigned i = 0; names[i]; i++)
        if (flags >> i & 1) set[count++] = names[i];
    if (count) dgm_gguf_set_strings(w, key.text, set, count);
}

static void set_list(dgm_gguf_writer *w, dgm_key_name key, const char *const *items, size_t count)
{
    if (count) dgm_gguf_set_strings(w, key.text, items, count);
}

void dgm_bpe_keys_set(dgm_gguf_writer *w, dgm_side side, const dgm_bpe_keys *k)
{
#define KEY(name) dgm_side_key(side, name)
    dgm_gguf_set_string(w, KEY("vocab.kind").text, dgm_vocab_kind_names[DGM_SPEC_BPE]);
    dgm_gguf_set_u32(w, KEY("vocab.size").text, (uint32_t)k->size);
    dgm_gguf_set_strings(w, KEY("vocab.words").text, k->tokens, (size_t)k->size);
    dgm_gguf_set_string(w, KEY("vocab.tokenizer").text, dgm_tokenizer_names[k->tokenizer]);
    if (k->language) dgm_gguf_set_string(w, KEY("vocab.language").text, k->language);
    set_flags(w, KEY("vocab.moses"), dgm_moses_flag_names, k->moses);
    dgm_gguf_set_string(w, KEY("vocab.bpe.style").text, dgm_bpe_style_names[k->style]);
    set_flags(w, KEY("vocab.bpe.flags"), dgm_bpe_flag_names, k->flags);
    set_list(w, KEY("vocab.bpe.merges"), k->merges, k->merge_count);
    set_list(w, KEY("vocab.bpe.protect"), k->protect, k->protect_count);
    if (k->separator) dgm_gguf_set_string(w, KEY("vocab.bpe.separator").text, k->separator);
    set_list(w, KEY("vocab.normalizer"), k->normalizer, k->normalizer_count);
    if (k->charsmap_size)
        dgm_gguf_set_array(w, KEY("vocab.charsmap").text, DGM_META_U8, k->charsmap, k->charsmap_size);
    if (k->control_count)
        dgm_gguf_set_array(w, KEY("vocab.control").text, DGM_META_I32, k->control, k->control_count);
    dgm_gguf_set_i32(w, KEY("eos").text, k->eos);
    dgm_gguf_set_i32(w, KEY("unk").text, k->unk);
    if (k->pad >= 0) dgm_gguf_set_i32(w, KEY("pad").text, k->pad);
    if (k->bos >= 0) dgm_gguf_set_i32(w, KEY("bos").text, k->bos);
#undef KEY
}

dgm_status dgm_bpe_respell(dgm_string_list *out, const char *const *tokens, const bool *special, int size,
                           dgm_error *err)
{
    static const char end[] = "</w>";
    const size_t end_size = sizeof end - 1;
    growing g = {0};
    dgm_writer inner = {0};
    dgm_status st = DGM_OK;
    for (int i = 0; st == DGM_OK && i < size; i++) {
        const dgm_text t = dgm_text_of(tokens[i]);
        const bool final = t.size > end_size && memcmp(t.data + t.size - end_size, end, end_size) == 0;
        inner.size = 0;
        dgm_write_bytes(&inner, t.data, t.size - (final ? end_size : 0));
        if (!final && t.size > 0 && !(special && special[i])) dgm_write_text(&inner, "@@");
        st = inner.failed ? dgm_no_memory(err) : add(&g, (dgm_text){(const char *)inner.data, inner.size}, err);
    }
    dgm_writer_free(&inner);
    return finish(&g, st, out, err);
}
