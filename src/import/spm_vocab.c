// SPDX-License-Identifier: MIT
// Numbers of SentencePiece pieces; see spm_vocab.h.
#include "import/spm_vocab.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "import/spm_list.h"
#include "import/spm_paths.h"

// spelling [size]: of each id, NULL where the vocabulary has none. Views into the JSON.
static dgm_status list_spellings(json_t *vocab, const char **spelling, int size, dgm_error *err)
{
    const char *piece;
    json_t *value;
    json_object_foreach(vocab, piece, value)
    {
        int64_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        DGM_FAIL_IF(id < 0 || id >= size, err, DGM_ERR_FORMAT,
                    "piece '%.60s' has no id from 0 to %d", piece, size - 1);
        DGM_FAIL_IF(spelling[id], err, DGM_ERR_FORMAT, "pieces '%.60s' and '%.60s' have one id",
                    spelling[id], piece);
        spelling[id] = piece;
    }
    return DGM_OK;
}

// Numbers the pieces of the SentencePiece model. covered [size]: ids that got a piece.
// True when every piece has its own number as id.
static bool number_pieces(const dgm_spm_list *pieces, json_t *vocab, int32_t *map, bool *covered)
{
    bool identity = true;
    for (size_t i = 0; i < pieces->count; i++) {
        const json_t *id = json_object_getn(vocab, pieces->items[i].piece, pieces->items[i].size);
        map[i] = id ? (int32_t)json_integer_value(id) : -1;
        if (map[i] >= 0) covered[map[i]] = true;
        identity = identity && map[i] == (int32_t)i;
    }
    return identity;
}

// What the SentencePiece model of one side lacks, found by looking at every id.
typedef struct numbering {
    const char **spelling; // [size] of each id, NULL or "" where there is none
    bool *covered;         // [size] ids that some piece has
    int32_t *map;          // [pieces, then room for size more]
    size_t pieces;
    dgm_writer model; // the SentencePiece model, as it is stored
} numbering;

static void write_varint(dgm_writer *w, size_t v)
{
    for (; v >= 0x80; v >>= 7) dgm_write_u8(w, (uint8_t)((v & 0x7f) | 0x80));
    dgm_write_u8(w, (uint8_t)v);
}

// Appends a piece of kind "unused": never made from text, but spelled when it comes out. Messages
// of this format may be continued at their end.
static void append_piece(numbering *n, int id)
{
    dgm_writer piece = {0};
    dgm_write_u8(&piece, 1 << 3 | 2);
    write_varint(&piece, strlen(n->spelling[id]));
    dgm_write_text(&piece, n->spelling[id]);
    dgm_write_u8(&piece, 2 << 3 | 5);
    dgm_write_f32(&piece, 0);
    dgm_write_u8(&piece, 3 << 3 | 0);
    dgm_write_u8(&piece, DGM_SPM_UNUSED);
    dgm_write_u8(&n->model, 1 << 3 | 2);
    write_varint(&n->model, piece.size);
    dgm_write_bytes(&n->model, piece.data, piece.size);
    if (piece.failed) n->model.failed = true;
    dgm_writer_free(&piece);
    n->map[n->pieces++] = id;
}

// Ids that the SentencePiece model does not know. The last ones (<pad>) are "extra": they stand
// for no text. Those in between are pieces of the other side's model, which a decoder may copy,
// and language tokens (">>deu<<"), which a source may begin with.
static void add_missing(dgm_gguf_writer *w, dgm_side side, const dgm_spm_vocab *v, numbering *n)
{
    const int size = v->size;
    int first = size;
    while (first > 0 && !n->covered[first - 1]) first--;
    for (int i = 0; i < first; i++) {
        const char *text = n->spelling[i];
        if (n->covered[i] || !text || !text[0]) continue;
        if (v->decoded || strncmp(text, ">>", 2) == 0) append_piece(n, i);
    }
    for (int i = first; i < size; i++)
        if (!n->spelling[i]) n->spelling[i] = "";
    if (first < size)
        dgm_gguf_set_strings(w, dgm_side_key(side, "vocab.extra").text, n->spelling + first,
                             (size_t)(size - first));
}

static dgm_status set_pieces(dgm_gguf_writer *w, dgm_side side, const dgm_spm_vocab *v,
                             const dgm_spm_list *pieces, dgm_error *err)
{
    const size_t size = (size_t)v->size;
    numbering n = {.pieces = pieces->count};
    n.spelling = dgm_calloc(size, sizeof *n.spelling);
    n.covered = dgm_calloc(size, sizeof *n.covered);
    n.map = dgm_calloc(pieces->count + size, sizeof *n.map);
    dgm_write_bytes(&n.model, v->model, v->model_size);
    dgm_status st = DGM_OK;
    if (!n.spelling || !n.covered || !n.map) st = dgm_no_memory(err);
    if (st == DGM_OK) st = list_spellings(v->ids, n.spelling, v->size, err);
    if (st == DGM_OK) {
        bool identity = number_pieces(pieces, v->ids, n.map, n.covered);
        add_missing(w, side, v, &n);
        st = n.model.failed ? dgm_no_memory(err) : dgm_spm_set(w, side, n.model.data, n.model.size, err);
        if (!identity || n.pieces > pieces->count)
            dgm_gguf_set_array(w, dgm_side_key(side, "vocab.map").text, DGM_META_I32, n.map,
                               n.pieces);
    }
    dgm_writer_free(&n.model);
    dgm_free(n.map);
    dgm_free(n.covered);
    dgm_free(n.spelling);
    return st;
}

dgm_status dgm_spm_vocab_set(dgm_gguf_writer *w, dgm_side side, const dgm_spm_vocab *v,
                             dgm_error *err)
{
    dgm_spm_list pieces;
    dgm_status st = dgm_spm_list_read(&pieces, v->model, v->model_size, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s'", v->path);
        return st;
    }
    dgm_gguf_set_string(w, dgm_side_key(side, "vocab.kind").text, "sentencepiece");
    dgm_gguf_set_u32(w, dgm_side_key(side, "vocab.size").text, (uint32_t)v->size);
    st = set_pieces(w, side, v, &pieces, err);
    if (st != DGM_OK)
        dgm_error_prefix(err, "vocabulary of the %s", side == DGM_SOURCE ? "source" : "target");
    dgm_spm_list_free(&pieces);
    return st;
}
