// SPDX-License-Identifier: MIT
// Validation of SentencePiece models, because libsentencepiece trusts what it loads.
//
// A model is a protobuf message:
//
//     ModelProto     1 pieces*  2 trainer_spec  3 normalizer_spec  4 self_test  5 denormalizer_spec
//     SentencePiece  1 piece (string)   2 score (f32)   3 type (enum)
//     TrainerSpec    24 treat_whitespace_as_suffix (bool)   44 unk_surface (string)
//     NormalizerSpec 2 precompiled_charsmap: u32 trie bytes | trie units (u32) | texts, each ends
//     in NUL         3 add_dummy_prefix (bool)
//
// What a hostile model could do, and what is refused here for it:
//   - the trie of the character map is walked without bounds: every unit must stay inside the
//   array,
//     its values inside the texts, and no path may meet more than 32 values (libsentencepiece keeps
//     the matches in an array of that size) or run in a circle;
//   - user-defined symbols are matched into an array of 64: longer ones than 64 bytes are refused,
//     since a chain of n prefixes needs a symbol of n bytes;
//   - scores that are not finite, pieces with NUL or invalid UTF-8 break the lattice or the output.
// Everything else (missing unknown piece, duplicates, byte pieces) it reports by itself.
#include "text/spm_check.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/protobuf.h"
#include "text/unicode.h"

enum {
    PIECE_BYTES_MAX = 4096,
    PIECES_MAX = 1 << 24,
    USER_DEFINED_BYTES_MAX = 64, // PrefixMatcher's result array
    MAP_MATCHES_MAX = 32,        // Normalizer's result array
    TRIE_DEPTH_MAX = 512,
    TYPE_USER_DEFINED = 4,
    TYPE_BYTE = 6,
};

static dgm_status damaged(dgm_error *err, const char *what)
{
    return dgm_fail(err, DGM_ERR_FORMAT, "damaged SentencePiece model: %s", what);
}

// ---- character map -------------------------------------------------------------------------
// A unit of the double array (darts-clone): label in bits 0-7, bit 8 says that the child for NUL
// holds a value, bits 10-30 the offset (times 256 with bit 9); bit 31 marks a value.

typedef struct trie {
    const uint8_t *bytes;
    uint32_t count;   // units
    size_t text_size; // of the texts behind the trie
    const char *texts;
    uint8_t *most;   // [count] 0 = not seen, 255 = being walked, else most values below + 1
    uint32_t *first; // [count] a child of base i, + 1; 0 = none
    uint32_t *next;  // [count] the next child of the same base, + 1
} trie;

static uint32_t unit_at(const trie *t, uint32_t i)
{
    const uint8_t *p = t->bytes + (size_t)i * 4;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t unit_offset(uint32_t unit)
{
    return (unit >> 10) << ((unit & 1u << 9) >> 6);
}

static bool value_is_good(const trie *t, uint32_t unit)
{
    uint32_t value = unit & 0x7FFFFFFF;
    return value < t->text_size && ((unsigned char)t->texts[value] & 0xC0) != 0x80;
}

// Most values that a walk through unit i can meet, at i or below; -1 when something is wrong.
static int walk_trie(const trie *t, uint32_t i, int depth)
{
    if (t->most[i] == 255 || depth > TRIE_DEPTH_MAX) return -1;
    if (t->most[i]) return t->most[i] - 1;
    t->most[i] = 255;
    uint32_t unit = unit_at(t, i);
    uint32_t base = i ^ unit_offset(unit);
    if ((base | 255) >= t->count) return -1;
    int own = 0, below = 0;
    if (unit & 1u << 8) {
        if (!value_is_good(t, unit_at(t, base))) return -1;
        own = 1;
    }
    for (uint32_t child = t->first[base]; child; child = t->next[child - 1]) {
        int met = walk_trie(t, child - 1, depth + 1);
        if (met < 0) return -1;
        if (met > below) below = met;
    }
    if (own + below > MAP_MATCHES_MAX) return -1;
    t->most[i] = (uint8_t)(own + below + 1);
    return own + below;
}

// A unit is reached from exactly one base: its own place with its label taken out. Values (bit 31)
// are never walked through.
static void link_children(const trie *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t unit = unit_at(t, i);
        uint32_t base = i ^ (unit & 255);
        if (unit & 1u << 31 || base >= t->count) continue;
        t->next[i] = t->first[base];
        t->first[base] = i + 1;
    }
}

static dgm_status check_map(dgm_text map, dgm_error *err)
{
    if (map.size == 0) return DGM_OK;
    dgm_reader r = dgm_reader_over(map.data, map.size);
    uint32_t trie_bytes = dgm_read_u32(&r);
    const uint8_t *units = dgm_read_bytes(&r, trie_bytes);
    size_t text_size = dgm_reader_left(&r);
    if (r.bad || text_size == 0 || trie_bytes < 1024 || trie_bytes % 4 != 0)
        return damaged(err, "character map has wrong sizes");
    trie t = {.bytes = units,
              .count = trie_bytes / 4,
              .text_size = text_size,
              .texts = dgm_read_bytes(&r, text_size)};
    if (t.texts[text_size - 1] != 0 || !dgm_utf8_valid((dgm_text){t.texts, text_size}))
        return damaged(err, "texts of the character map");
    t.most = dgm_calloc(t.count, 1);
    t.first = dgm_calloc(t.count, sizeof *t.first);
    t.next = dgm_calloc(t.count, sizeof *t.next);
    dgm_status st = DGM_OK;
    if (!t.most || !t.first || !t.next) {
        st = dgm_no_memory(err);
    } else {
        link_children(&t);
        if (walk_trie(&t, 0, 0) < 0) st = damaged(err, "character map is not a tree");
    }
    dgm_free(t.most);
    dgm_free(t.first);
    dgm_free(t.next);
    return st;
}

static dgm_status check_normalizer(dgm_text message, bool output, dgm_spm_traits *traits, dgm_error *err)
{
    dgm_reader r = dgm_reader_over(message.data, message.size);
    dgm_proto_field f;
    while (dgm_proto_next(&r, &f)) {
        const bool map = f.number == 2 && f.wire == DGM_WIRE_BYTES;
        if (map) DGM_TRY(check_map(f.payload, err));
        if (output ? map && f.payload.size : f.number == 3 && f.wire == DGM_WIRE_VARINT && !f.value)
            traits->joins = false;
    }
    return r.bad ? damaged(err, "normalizer settings are cut off") : DGM_OK;
}

// ---- pieces and settings -------------------------------------------------------------------

static dgm_status check_trainer(dgm_text message, dgm_spm_traits *traits, dgm_error *err)
{
    dgm_reader r = dgm_reader_over(message.data, message.size);
    dgm_proto_field f;
    while (dgm_proto_next(&r, &f)) {
        if (f.number == 44 && f.wire == DGM_WIRE_BYTES && !dgm_utf8_valid(f.payload))
            return damaged(err, "spelling of the unknown token is not UTF-8");
        if (f.number == 24 && f.wire == DGM_WIRE_VARINT && f.value) traits->joins = false;
    }
    return r.bad ? damaged(err, "trainer settings are cut off") : DGM_OK;
}

static dgm_status check_piece(dgm_text message, dgm_spm_traits *traits, dgm_error *err)
{
    dgm_reader r = dgm_reader_over(message.data, message.size);
    dgm_proto_field f;
    dgm_text piece = {NULL, 0};
    uint64_t type = 1;
    while (dgm_proto_next(&r, &f)) {
        if (f.number == 1 && f.wire == DGM_WIRE_BYTES) {
            piece = f.payload;
        } else if (f.number == 2 && f.wire == DGM_WIRE_32) {
            uint32_t bits = (uint32_t)f.value;
            float score;
            memcpy(&score, &bits, sizeof score);
            if (!isfinite(score)) return damaged(err, "score of a piece is not a number");
        } else if (f.number == 3 && f.wire == DGM_WIRE_VARINT) {
            type = f.value;
        }
    }
    if (r.bad) return damaged(err, "piece is cut off");
    if (piece.size == 0) return damaged(err, "empty piece");
    if (piece.size > PIECE_BYTES_MAX) return damaged(err, "piece is too long");
    if (memchr(piece.data, 0, piece.size) || !dgm_utf8_valid(piece))
        return damaged(err, "piece is not UTF-8");
    if (type == TYPE_USER_DEFINED && piece.size > USER_DEFINED_BYTES_MAX)
        return damaged(err, "user-defined symbol is longer than 64 bytes");
    traits->bytes |= type == TYPE_BYTE;
    return DGM_OK;
}

dgm_status dgm_spm_check(const void *model, size_t size, dgm_spm_traits *traits, dgm_error *err)
{
    *traits = (dgm_spm_traits){.joins = true};
    if (size == 0 || size > INT32_MAX) return damaged(err, "wrong size");
    dgm_reader r = dgm_reader_over(model, size);
    dgm_proto_field f;
    uint64_t pieces = 0;
    while (dgm_proto_next(&r, &f)) {
        if (f.wire != DGM_WIRE_BYTES) continue;
        if (f.number == 1) {
            if (++pieces > PIECES_MAX) return damaged(err, "too many pieces");
            DGM_TRY(check_piece(f.payload, traits, err));
        } else if (f.number == 2) {
            DGM_TRY(check_trainer(f.payload, traits, err));
        } else if (f.number == 3 || f.number == 5) {
            DGM_TRY(check_normalizer(f.payload, f.number == 5, traits, err));
        }
    }
    if (r.bad) return damaged(err, "cut off or not a SentencePiece model");
    if (pieces == 0) return damaged(err, "no pieces");
    return DGM_OK;
}
