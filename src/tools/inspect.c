// SPDX-License-Identifier: MIT
// `dragoman inspect`: a model file for people, or as one JSON object.
//
// Both forms print every metadata entry in file order. Long arrays and byte blobs (a SentencePiece
// model, a word list) are shown by size, never in full.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/sized.h"
#include "dragoman/tools.h"
#include "engine/engine_private.h"
#include "tools/inspect_private.h"
#include "format/modelfile.h"
#include "format/clusters.h"
#include "format/shortlist.h"

enum { ARRAY_SHOWN = 8, STRING_SHOWN = 72 };

void dgm_string_free(char **text)
{
    if (!text) return;
    dgm_free(*text);
    *text = NULL;
}

// ---- values -----------------------------------------------------------------------------------

static void put_json_string(dgm_writer *w, const char *s, size_t n)
{
    dgm_writer clean = {0};
    if (dgm_utf8_repair((dgm_text){s, n}, &clean, NULL, NULL) != DGM_OK) w->failed = true;
    dgm_write_u8(w, '"');
    for (size_t i = 0; i < clean.size; i++) {
        uint8_t c = clean.data[i];
        if (c == '"' || c == '\\')
            dgm_write_format(w, "\\%c", c);
        else if (c == '\n')
            dgm_write_text(w, "\\n");
        else if (c == '\t')
            dgm_write_text(w, "\\t");
        else if (c < 0x20 || c == 0x7f)
            dgm_write_format(w, "\\u%04x", c);
        else
            dgm_write_u8(w, c);
    }
    dgm_write_u8(w, '"');
    dgm_writer_free(&clean);
}

static void put_real(dgm_writer *w, double v)
{
    if (isfinite(v))
        dgm_write_format(w, "%.7g", v);
    else
        dgm_write_text(w, "null");
}

// One number of the given type from the reader.
static void put_number(dgm_writer *w, dgm_reader *r, int type)
{
    switch (type) {
    case DGM_META_U8:
        dgm_write_format(w, "%u", (unsigned)dgm_read_u8(r));
        break;
    case DGM_META_I8:
        dgm_write_format(w, "%d", (int)(int8_t)dgm_read_u8(r));
        break;
    case DGM_META_U16:
        dgm_write_format(w, "%u", (unsigned)dgm_read_u16(r));
        break;
    case DGM_META_I16:
        dgm_write_format(w, "%d", (int)(int16_t)dgm_read_u16(r));
        break;
    case DGM_META_U32:
        dgm_write_format(w, "%lu", (unsigned long)dgm_read_u32(r));
        break;
    case DGM_META_I32:
        dgm_write_format(w, "%ld", (long)(int32_t)dgm_read_u32(r));
        break;
    case DGM_META_U64:
        dgm_write_format(w, "%llu", (unsigned long long)dgm_read_u64(r));
        break;
    case DGM_META_I64:
        dgm_write_format(w, "%lld", (long long)(int64_t)dgm_read_u64(r));
        break;
    case DGM_META_F32:
        put_real(w, (double)dgm_read_f32(r));
        break;
    case DGM_META_F64:
        put_real(w, dgm_read_f64(r));
        break;
    case DGM_META_BOOL:
        dgm_write_text(w, dgm_read_u8(r) ? "true" : "false");
        break;
    default:
        dgm_write_text(w, "null");
    }
}

// String of `limit` bytes at most, cut between characters; "..." says that it was cut.
static void put_string(dgm_writer *w, const char *s, size_t n, size_t limit)
{
    size_t shown = n;
    if (n > limit) {
        shown = limit;
        while (shown > 0 && ((unsigned char)s[shown] & 0xc0) == 0x80) shown--;
    }
    put_json_string(w, s, shown);
    if (shown < n) dgm_write_text(w, "...");
}

static void put_array(dgm_writer *w, const dgm_gguf *file, const dgm_meta *m, bool json)
{
    bool strings = m->elem_type == DGM_META_STRING;
    if (m->count > ARRAY_SHOWN && json) {
        dgm_write_format(w, "{\"type\":\"%s\",\"count\":%llu}", dgm_meta_type_name(m->elem_type),
                         (unsigned long long)m->count);
        return;
    }
    if (m->count > ARRAY_SHOWN) {
        dgm_write_format(w, "%llu values", (unsigned long long)m->count);
        return;
    }
    dgm_write_text(w, "[");
    dgm_gguf_strings it = {0};
    if (strings && dgm_gguf_get_strings(file, m->key, DGM_OPTIONAL, &it, NULL) != DGM_OK)
        it.count = 0;
    dgm_reader r = dgm_reader_over(m->raw, m->raw_size);
    for (uint64_t i = 0; i < m->count; i++) {
        if (i) dgm_write_text(w, json ? "," : ", ");
        dgm_gguf_text s = {0};
        if (!strings)
            put_number(w, &r, m->elem_type);
        else if (dgm_gguf_strings_next(&it, &s))
            put_string(w, s.data, s.size, json ? SIZE_MAX : STRING_SHOWN);
    }
    dgm_write_text(w, "]");
}

static void put_value(dgm_writer *w, const dgm_gguf *file, const dgm_meta *m, bool json)
{
    dgm_reader r = dgm_reader_over(m->raw, m->raw_size);
    if (m->type == DGM_META_ARRAY)
        put_array(w, file, m, json);
    else if (m->type == DGM_META_STRING)
        put_string(w, (const char *)m->raw, m->raw_size, json ? SIZE_MAX : STRING_SHOWN);
    else
        put_number(w, &r, m->type);
}

// ---- summary ----------------------------------------------------------------------------------

// Bytes and parameters by storage type, most bytes first is not needed: a fixed order reads well.
typedef struct totals {
    uint64_t bytes[6], parameters;
    int types[6];
} totals;

static totals add_up(const dgm_gguf *file)
{
    totals t = {.types = {DGM_TYPE_F32, DGM_TYPE_F16, DGM_TYPE_BF16, DGM_TYPE_I16, DGM_TYPE_I8,
                          DGM_TYPE_I32}};
    for (int i = 0; i < dgm_gguf_tensor_count(file); i++) {
        const dgm_tensor *x = dgm_gguf_tensor(file, i);
        size_t n = strlen(x->name);
        bool scale = n > 6 && strcmp(x->name + n - 6, ".scale") == 0;
        if (!scale) t.parameters += (uint64_t)x->rows * (uint64_t)x->cols;
        for (int k = 0; k < 6; k++)
            if (t.types[k] == x->type) t.bytes[k] += x->bytes;
    }
    return t;
}

static void put_size(dgm_writer *w, uint64_t bytes)
{
    if (bytes < 10240)
        dgm_write_format(w, "%llu bytes", (unsigned long long)bytes);
    else if (bytes < (10u << 20))
        dgm_write_format(w, "%.1f KiB", (double)bytes / 1024);
    else
        dgm_write_format(w, "%.1f MiB", (double)bytes / 1048576);
}

static void put_languages(dgm_writer *w, const dgm_gguf *file, const char *key)
{
    dgm_gguf_strings it = {0};
    dgm_gguf_text s = {0};
    bool any = false;
    if (dgm_gguf_get_strings(file, key, DGM_OPTIONAL, &it, NULL) != DGM_OK) it.count = 0;
    for (; dgm_gguf_strings_next(&it, &s); any = true) {
        if (any) dgm_write_text(w, ",");
        dgm_write_bytes(w, s.data, s.size);
    }
    if (!any) dgm_write_text(w, "?");
}

static dgm_status put_vocabulary(dgm_writer *w, const dgm_gguf *file, dgm_side side, dgm_error *err)
{
    dgm_vocab_spec v = {0};
    DGM_TRY(dgm_modelfile_vocab(file, side, &v, err));
    dgm_write_format(w, "  %-13s ", side == DGM_SOURCE ? "source words" : "target words");
    if (v.shared && side == DGM_TARGET)
        dgm_write_text(w, "the source's");
    else
        dgm_write_format(w, "%s, %d ids", dgm_vocab_kind_names[v.kind], v.size);
    dgm_write_text(w, "\n");
    return DGM_OK;
}

static dgm_status put_shortlist(dgm_writer *w, const dgm_gguf *file, dgm_error *err)
{
    if (!dgm_shortlist_present(file)) return DGM_OK;
    dgm_shortlist *list = NULL;
    DGM_TRY(dgm_shortlist_load(&list, file, err));
    uint64_t entries = list->at[list->sources], sources = 0;
    for (int i = 0; i < list->sources; i++) sources += list->at[i + 1] > list->at[i];
    dgm_write_format(w, "  %-13s %llu translations of %llu tokens, %d frequent tokens%s\n",
                     "shortlist", (unsigned long long)entries, (unsigned long long)sources,
                     list->frequent_count, list->copy ? ", copies" : "");
    dgm_shortlist_close(&list);
    return DGM_OK;
}

static dgm_status put_clusters(dgm_writer *w, const dgm_gguf *file, dgm_error *err)
{
    for (int i = 0; i < dgm_clusters_blocks(file); i++) {
        dgm_clusters_view v;
        DGM_TRY(dgm_clusters_view_open(&v, file, i, err));
        dgm_write_format(w, "  %-13s %s -> %s: %d centroids, top %d, %.2f %% of the tokens\n",
                         i ? "" : "clusters", v.source[0] ? v.source : "any",
                         v.target[0] ? v.target : "any", v.count, v.best,
                         100 * (double)v.entries / (double)v.count / (double)v.targets);
        dgm_clusters_view_close(&v);
    }
    return DGM_OK;
}

static dgm_status put_summary(dgm_writer *w, const dgm_gguf *file, dgm_error *err)
{
    const char *name = "";
    totals t = add_up(file);
    if (dgm_gguf_get_string(file, "general.name", DGM_OPTIONAL, &name, NULL) != DGM_OK) name = "";
    dgm_write_format(w, "%s\n", dgm_gguf_path(file));
    if (name[0]) dgm_write_format(w, "  %-13s %s\n", "name", name);
    dgm_write_format(w, "  %-13s %s\n", "architecture", dgm_modelfile_architecture(file));
    dgm_write_format(w, "  %-13s ", "languages");
    put_languages(w, file, "dragoman.languages.source");
    dgm_write_text(w, " -> ");
    put_languages(w, file, "dragoman.languages.target");
    dgm_write_text(w, "\n");
    DGM_TRY(dgm_inspect_directions(w, file, err));
    dgm_inspect_experts(w, file);
    dgm_write_format(w, "  %-13s %.2f million in %d tensors\n", "parameters",
                     (double)t.parameters / 1e6, dgm_gguf_tensor_count(file));
    dgm_write_format(w, "  %-13s ", "file");
    put_size(w, dgm_gguf_size(file));
    for (int k = 0; k < 6; k++) {
        if (!t.bytes[k]) continue;
        dgm_write_format(w, ", %s ", dgm_tensor_type_name(t.types[k]));
        put_size(w, t.bytes[k]);
    }
    dgm_write_text(w, "\n");
    DGM_TRY(put_vocabulary(w, file, DGM_SOURCE, err));
    DGM_TRY(put_vocabulary(w, file, DGM_TARGET, err));
    dgm_decode_spec d;
    dgm_precision precision;
    DGM_TRY(dgm_modelfile_decode(file, &d, err));
    DGM_TRY(dgm_precision_choose(file, -1, &precision, err));
    dgm_write_format(w, "  %-13s %s, beam %d, finish %s, length penalty %g, at most %d tokens\n",
                     "decoding", dgm_precision_names[precision], d.beam,
                     dgm_finish_write(d.finish, d.finish_first).text, (double)d.length_penalty, d.max_length);
    DGM_TRY(put_shortlist(w, file, err));
    return put_clusters(w, file, err);
}

// ---- both forms -------------------------------------------------------------------------------

static bool is_card(const dgm_meta *m)
{
    return strcmp(m->key, "dragoman.card") == 0 && m->type == DGM_META_STRING;
}

static dgm_status put_people(dgm_writer *w, const dgm_gguf *file, const dgm_inspect_options *o,
                             dgm_error *err)
{
    DGM_TRY(put_summary(w, file, err));
    dgm_write_text(w, "\nmetadata\n");
    const dgm_meta *card = NULL;
    for (int i = 0; i < dgm_gguf_meta_count(file); i++) {
        const dgm_meta *m = dgm_gguf_meta(file, i);
        if (is_card(m)) card = m;
        dgm_write_format(w, "  %-40s ", m->key);
        put_value(w, file, m, false);
        dgm_write_text(w, "\n");
    }
    if (o->tensors) dgm_write_text(w, "\ntensors\n");
    for (int i = 0; o->tensors && i < dgm_gguf_tensor_count(file); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(file, i);
        dgm_write_format(w, "  %-32s %-5s [", t->name, dgm_tensor_type_name(t->type));
        for (int k = 0; k < t->n_dims; k++) dgm_write_format(w, "%s%d", k ? ", " : "", t->shape[k]);
        dgm_write_text(w, "] ");
        put_size(w, t->bytes);
        dgm_write_text(w, "\n");
    }
    if (o->card && card) {
        dgm_write_text(w, "\n");
        dgm_write_bytes(w, card->raw, card->raw_size);
        if (card->raw_size && card->raw[card->raw_size - 1] != '\n') dgm_write_text(w, "\n");
    }
    return DGM_OK;
}

static void put_json(dgm_writer *w, const dgm_gguf *file)
{
    totals t = add_up(file);
    dgm_write_text(w, "{\"path\":");
    put_json_string(w, dgm_gguf_path(file), strlen(dgm_gguf_path(file)));
    dgm_write_format(w, ",\"bytes\":%llu,\"parameters\":%llu,\"metadata\":{",
                     (unsigned long long)dgm_gguf_size(file), (unsigned long long)t.parameters);
    for (int i = 0; i < dgm_gguf_meta_count(file); i++) {
        const dgm_meta *m = dgm_gguf_meta(file, i);
        if (i) dgm_write_text(w, ",");
        put_json_string(w, m->key, strlen(m->key));
        dgm_write_text(w, ":");
        put_value(w, file, m, true);
    }
    dgm_write_text(w, "},\"tensors\":[");
    for (int i = 0; i < dgm_gguf_tensor_count(file); i++) {
        const dgm_tensor *x = dgm_gguf_tensor(file, i);
        dgm_write_text(w, i ? ",{\"name\":" : "{\"name\":");
        put_json_string(w, x->name, strlen(x->name));
        dgm_write_format(w, ",\"type\":\"%s\",\"shape\":[", dgm_tensor_type_name(x->type));
        for (int k = 0; k < x->n_dims; k++) dgm_write_format(w, "%s%d", k ? "," : "", x->shape[k]);
        dgm_write_format(w, "],\"bytes\":%llu}", (unsigned long long)x->bytes);
    }
    dgm_write_text(w, "]}\n");
}

void dgm_inspect_init(dgm_inspect_options *out, size_t size)
{
    const dgm_inspect_options own = {0};
    dgm_sized_give(out, size, &own, sizeof own);
}

dgm_status dgm_inspect(const char *path, const dgm_inspect_options *options, char **text,
                       dgm_error *err)
{
    *text = NULL;
    dgm_inspect_options own;
    dgm_inspect_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, options, "dgm_inspect_options", "dgm_inspect_default",
                           err));
    const dgm_inspect_options *o = &own;
    dgm_gguf *file = NULL;
    dgm_writer w = {0};
    char *found = NULL;
    DGM_TRY(dgm_model_file(path, &found, err));
    dgm_status st = dgm_modelfile_open(&file, found, err);
    if (st == DGM_OK && o->json)
        put_json(&w, file);
    else if (st == DGM_OK)
        st = put_people(&w, file, o, err);
    if (st != DGM_OK && st != DGM_ERR_MEMORY && err && !strstr(err->text, found)) dgm_error_prefix(err, "%s", found);
    dgm_gguf_close(&file);
    dgm_free(found);
    if (st == DGM_OK) {
        *text = dgm_writer_take(&w, NULL);
        return *text ? DGM_OK : dgm_no_memory(err);
    }
    dgm_writer_free(&w);
    return st;
}
