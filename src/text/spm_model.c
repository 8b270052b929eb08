// SPDX-License-Identifier: MIT
// SentencePiece models: the file; see spm.h.
//
//     ModelProto     1 pieces*  2 trainer_spec  3 normalizer_spec  4 self_test (not looked at)  5 denormalizer_spec
//     SentencePiece  1 piece (string)   2 score (f32)   3 type (enum)
//     TrainerSpec    3 model_type  24 treat_whitespace_as_suffix  35 byte_fallback  44 unk_surface  45 unk_piece
//     NormalizerSpec 2 precompiled_charsmap (spm_charsmap.c)  3 add_dummy_prefix  4 remove_extra_whitespaces
//                    5 escape_whitespaces
//
// Two passes: the first counts pieces and reads settings, the second copies the pieces into one block of memory and
// enters them in the index. Settings that come several times are merged, as everywhere in protocol buffers: the last
// one counts. What libsentencepiece refuses is refused, and so are pieces and scores that would break a text or a sum.
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/protobuf.h"
#include "text/spm_private.h"
#include "text/unicode.h"

enum {
    PIECE_BYTES_MAX = 4096,
    PIECES_MAX = 1 << 24,
    USER_BYTES_MAX = 64, // of a user-defined symbol: the library keeps 64 prefixes of one
    PROBES_MAX = 1024,   // of the index: real pieces take some dozens, but they can be made to fall on one place
};

static dgm_status damaged(dgm_error *err, const char *what)
{
    return dgm_fail(err, DGM_ERR_FORMAT, "damaged SentencePiece model: %s", what);
}

// ---- settings ------------------------------------------------------------------------------

typedef struct settings { // borrowed from the file
    int64_t kind;
    bool space_behind, bytes, has_surface;
    dgm_text unk_surface, unk_piece, map, back_map;
    dgm_spm_normalizer normal, back;
    size_t pieces, piece_bytes; // of all messages
} settings;

static dgm_status read_trainer(dgm_text message, settings *s, dgm_error *err)
{
    dgm_reader r = dgm_reader_over(message.data, message.size);
    dgm_proto_field f;
    while (dgm_proto_next(&r, &f)) {
        if (f.wire == DGM_WIRE_BYTES && f.number == 44) {
            if (!dgm_utf8_valid(f.payload))
                return damaged(err, "spelling of the unknown token is not UTF-8");
            s->unk_surface = f.payload;
        } else if (f.wire == DGM_WIRE_BYTES && f.number == 45) {
            s->unk_piece = f.payload;
        } else if (f.wire == DGM_WIRE_VARINT && f.number == 3) {
            const int32_t kind =
                (int32_t)f.value; // one that nobody knows is as if it were not there
            if (kind >= SPM_UNIGRAM && kind <= SPM_CHAR) s->kind = kind;
        } else if (f.wire == DGM_WIRE_VARINT && f.number == 24) {
            s->space_behind = f.value != 0;
        } else if (f.wire == DGM_WIRE_VARINT && f.number == 35) {
            s->bytes = f.value != 0;
        }
    }
    return r.bad ? damaged(err, "trainer settings are cut off") : DGM_OK;
}

static dgm_status read_normalizer(dgm_text message, dgm_spm_normalizer *n, dgm_text *map,
                                  dgm_error *err)
{
    dgm_reader r = dgm_reader_over(message.data, message.size);
    dgm_proto_field f;
    while (dgm_proto_next(&r, &f)) {
        if (f.wire == DGM_WIRE_BYTES && f.number == 2) *map = f.payload;
        if (f.wire != DGM_WIRE_VARINT) continue;
        if (f.number == 3) n->dummy_prefix = f.value != 0;
        if (f.number == 4) n->no_extra_spaces = f.value != 0;
        if (f.number == 5) n->escape_spaces = f.value != 0;
    }
    return r.bad ? damaged(err, "normalizer settings are cut off") : DGM_OK;
}

static dgm_status read_settings(const void *model, size_t size, settings *s, dgm_error *err)
{
    const dgm_spm_normalizer usual = {
        .dummy_prefix = true, .no_extra_spaces = true, .escape_spaces = true};
    *s = (settings){.kind = SPM_UNIGRAM, .normal = usual, .back = usual};
    s->unk_surface = dgm_text_of(" \xE2\x81\x87 ");
    s->unk_piece = dgm_text_of("<unk>");
    if (size == 0 || size > INT32_MAX) return damaged(err, "wrong size");
    dgm_reader r = dgm_reader_over(model, size);
    dgm_proto_field f;
    while (dgm_proto_next(&r, &f)) {
        if (f.wire != DGM_WIRE_BYTES) continue;
        if (f.number == 1) {
            if (++s->pieces > PIECES_MAX) return damaged(err, "too many pieces");
            s->piece_bytes += f.payload.size;
        } else if (f.number == 2) {
            DGM_TRY(read_trainer(f.payload, s, err));
        } else if (f.number == 3) {
            DGM_TRY(read_normalizer(f.payload, &s->normal, &s->map, err));
        } else if (f.number == 5) {
            DGM_TRY(read_normalizer(f.payload, &s->back, &s->back_map, err));
        }
    }
    if (r.bad) return damaged(err, "cut off or not a SentencePiece model");
    return s->pieces ? DGM_OK : damaged(err, "no pieces");
}

// ---- index ---------------------------------------------------------------------------------

static size_t power_from(size_t n) // the power of two that is not below n
{
    size_t power = 64;
    while (power < n) power *= 2;
    return power;
}

typedef struct index_size {
    size_t marks, slots; // bytes
} index_size;

static index_size size_index(size_t pieces, size_t bytes)
{
    return (index_size){power_from(bytes) / 4, power_from(pieces * 2) * sizeof(dgm_spm_slot)};
}

static void empty_index(dgm_spm_index *x, void *memory, index_size size)
{
    memset(memory, 0, size.slots + size.marks);
    x->slots = memory;
    x->marks = (uint8_t *)memory + size.slots;
    x->mask = (uint32_t)(size.slots / sizeof(dgm_spm_slot) - 1);
    x->shift = 64;
    for (size_t places = size.marks * 4; places > 1; places /= 2) x->shift--;
}

static void mark(dgm_spm_index *x, uint64_t hash, unsigned what)
{
    const uint64_t place = hash >> x->shift;
    x->marks[place >> 2] |= (uint8_t)(what << (place & 3) * 2);
}

static uint64_t mark_piece(dgm_spm_index *x, const char *text, size_t size, bool ordinary)
{
    uint64_t hash = SPM_HASH_FIRST;
    for (size_t i = 0; i + 1 < size; i++) {
        hash = dgm_spm_hash(hash, text[i]);
        if (ordinary) mark(x, hash, SPM_BEGINS);
    }
    hash = dgm_spm_hash(hash, text[size - 1]);
    if (ordinary) mark(x, hash, SPM_ENDS);
    return hash;
}

// Enters piece id; NULL, or what is wrong. Two pieces may have one spelling when one of them is reserved.
static const char *enter(dgm_spm *spm, dgm_spm_index *x, int32_t id)
{
    dgm_spm_record *p = &spm->pieces[id];
    const char *text = spm->texts + p->offset;
    const bool reserved = dgm_spm_reserved(p->type);
    const uint64_t hash = mark_piece(x, text, p->size, !reserved);
    uint32_t at = (uint32_t)(hash >> 32) & x->mask;
    for (int probes = 0; x->slots[at].id; at = (at + 1) & x->mask) {
        if (++probes > PROBES_MAX) return "pieces that hinder the search for others";
        dgm_spm_record *other = &spm->pieces[x->slots[at].id - 1];
        if (x->slots[at].tag != (uint32_t)hash || other->size != p->size ||
            memcmp(spm->texts + other->offset, text, p->size) != 0)
            continue;
        if (dgm_spm_reserved(other->type) == reserved) return "a piece is there twice";
        *(reserved ? &other->found : &p->found) = reserved ? id : x->slots[at].id - 1;
    }
    x->slots[at] = (dgm_spm_slot){(uint32_t)hash, id + 1};
    return NULL;
}

int32_t dgm_spm_find(const dgm_spm *spm, const char *text, size_t size)
{
    const dgm_spm_index *x = &spm->index;
    uint64_t hash = SPM_HASH_FIRST;
    if (size == 0 || size > spm->longest) return -1;
    for (size_t i = 0; i < size; i++) hash = dgm_spm_hash(hash, text[i]);
    for (uint32_t at = (uint32_t)(hash >> 32) & x->mask; x->slots[at].id; at = (at + 1) & x->mask) {
        const dgm_spm_record *p = &spm->pieces[x->slots[at].id - 1];
        if (x->slots[at].tag == (uint32_t)hash && p->size == size &&
            memcmp(spm->texts + p->offset, text, size) == 0)
            return p->found;
    }
    return -1;
}

size_t dgm_spm_user_prefix(const dgm_spm *spm, const char *text, size_t size)
{
    size_t longest = 0;
    if (!spm->user.slots) return 0;
    uint64_t hash = SPM_HASH_FIRST;
    for (size_t i = 0; i < size && i < USER_BYTES_MAX; i++) {
        hash = dgm_spm_hash(hash, text[i]);
        const unsigned marks = dgm_spm_marks(&spm->user, hash);
        if (marks & SPM_ENDS && dgm_spm_ordinary(spm, &spm->user, hash, text, i + 1) >= 0)
            longest = i + 1;
        if (!(marks & SPM_BEGINS)) break;
    }
    return longest;
}

// ---- pieces --------------------------------------------------------------------------------

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int byte_of(dgm_text piece) // "<0x41>"; -1: no such spelling
{
    if (piece.size != 6 || memcmp(piece.data, "<0x", 3) != 0 || piece.data[5] != '>') return -1;
    const int high = hex_digit(piece.data[3]), low = hex_digit(piece.data[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static bool is_plain(dgm_text t) // ASCII, no NUL
{
    unsigned good = 1;
    for (size_t i = 0; i < t.size; i++) good &= (unsigned)(unsigned char)t.data[i] - 1u < 0x7Fu;
    return good;
}

static bool is_good_text(dgm_text t) // most pieces are plain letters behind a mark
{
    const size_t skip = dgm_spm_space_at(t.data, t.size) ? SPM_SPACE_SIZE : 0;
    const dgm_text rest = {t.data + skip, t.size - skip};
    return is_plain(rest) || (!memchr(rest.data, 0, rest.size) && dgm_utf8_valid(rest));
}

static dgm_status read_piece(dgm_text message, dgm_spm_record *p, dgm_text *piece, dgm_error *err)
{
    dgm_reader r = dgm_reader_over(message.data, message.size);
    dgm_proto_field f;
    *piece = (dgm_text){NULL, 0};
    while (dgm_proto_next(&r, &f)) {
        if (f.number == 1 && f.wire == DGM_WIRE_BYTES) {
            *piece = f.payload;
        } else if (f.number == 2 && f.wire == DGM_WIRE_32) {
            const uint32_t bits = (uint32_t)f.value;
            memcpy(&p->score, &bits, sizeof p->score);
            if (!isfinite(p->score)) return damaged(err, "score of a piece is not a number");
        } else if (f.number == 3 && f.wire == DGM_WIRE_VARINT) {
            const int32_t type = (int32_t)f.value;
            if (type >= SPM_NORMAL && type <= SPM_BYTE) p->type = (uint8_t)type;
        }
    }
    if (r.bad) return damaged(err, "piece is cut off");
    if (piece->size == 0) return damaged(err, "empty piece");
    if (piece->size > PIECE_BYTES_MAX) return damaged(err, "piece is too long");
    if (!is_good_text(*piece)) return damaged(err, "piece is not UTF-8");
    if (p->type == SPM_USER && piece->size > USER_BYTES_MAX)
        return damaged(err, "user-defined symbol is longer than 64 bytes");
    return DGM_OK;
}

static dgm_status note_type(dgm_spm *spm, int32_t id, dgm_text piece, size_t *users, dgm_error *err)
{
    switch (spm->pieces[id].type) {
    case SPM_UNKNOWN:
        if (spm->unk >= 0) return damaged(err, "two unknown pieces");
        spm->unk = id;
        break;
    case SPM_BYTE:
        if (!spm->bytes) return damaged(err, "pieces for bytes without byte fallback");
        if (byte_of(piece) < 0) return damaged(err, "piece for a byte is not spelled <0x..>");
        spm->byte_ids[byte_of(piece)] = id;
        break;
    case SPM_USER:
        ++*users;
        break;
    case SPM_UNUSED:
        spm->has_unused = true;
        break;
    }
    return DGM_OK;
}

// texts: where the spellings go.
static dgm_status read_pieces(dgm_spm *spm, const void *model, size_t size, char *texts,
                              size_t *users, dgm_error *err)
{
    dgm_reader r = dgm_reader_over(model, size);
    dgm_proto_field f;
    uint32_t used = 0;
    int32_t id = 0;
    while (dgm_proto_next(&r, &f)) {
        if (f.number != 1 || f.wire != DGM_WIRE_BYTES) continue;
        dgm_spm_record *p = &spm->pieces[id];
        dgm_text piece;
        *p = (dgm_spm_record){.offset = used, .type = SPM_NORMAL, .found = id};
        DGM_TRY(read_piece(f.payload, p, &piece, err));
        p->size = (uint16_t)piece.size;
        memcpy(texts + used, piece.data, piece.size);
        used += (uint32_t)piece.size;
        if (p->size > spm->longest) spm->longest = p->size;
        const char *wrong = enter(spm, &spm->index, id);
        if (wrong) return damaged(err, wrong);
        if (p->type != SPM_NORMAL) DGM_TRY(note_type(spm, id, piece, users, err));
        id++;
    }
    return DGM_OK;
}

// ---- open ----------------------------------------------------------------------------------

static void note_scores(dgm_spm *spm)
{
    float least = FLT_MAX, most = FLT_MIN;
    for (int32_t i = 0; i < spm->count; i++) {
        const dgm_spm_record *p = &spm->pieces[i];
        if (p->type != SPM_NORMAL) continue;
        if (p->score < least) least = p->score;
        if (p->score > most) most = p->score;
    }
    spm->unk_score = least - 10.0f;
    spm->max_score = most;
}

static dgm_status check_pieces(const dgm_spm *spm, dgm_text unk_piece, dgm_error *err)
{
    bool ordinary = false;
    for (int32_t i = 0; i < spm->count && !ordinary; i++)
        ordinary = !dgm_spm_reserved(spm->pieces[i].type);
    if (spm->kind == SPM_UNIGRAM && !ordinary) return damaged(err, "no pieces");
    // The unknown piece is asked for by its name; a name that there is not is unknown.
    const void *end = memchr(unk_piece.data, 0, unk_piece.size);
    const size_t size = end ? (size_t)((const char *)end - unk_piece.data) : unk_piece.size;
    const int32_t named = dgm_spm_find(spm, unk_piece.data, size);
    if (spm->unk < 0 || (named >= 0 && spm->pieces[named].type != SPM_UNKNOWN))
        return damaged(err, "no unknown piece");
    for (int i = 0; i < 256 && spm->bytes; i++)
        if (spm->byte_ids[i] < 0) return damaged(err, "not every byte has a piece");
    return DGM_OK;
}

static dgm_status index_users(dgm_spm *spm, size_t users, dgm_error *err)
{
    if (!users) return DGM_OK;
    const index_size size = size_index(users, users * USER_BYTES_MAX);
    void *memory = dgm_malloc(size.slots + size.marks);
    if (!memory) return dgm_no_memory(err);
    empty_index(&spm->user, memory, size);
    for (int32_t i = 0; i < spm->count; i++) {
        const char *wrong = spm->pieces[i].type == SPM_USER ? enter(spm, &spm->user, i) : NULL;
        if (wrong) return damaged(err, wrong);
    }
    spm->normal.keeper = spm;
    return DGM_OK;
}

static char *copy_text(char *to, dgm_text text, dgm_text *copy)
{
    if (text.size) memcpy(to, text.data, text.size);
    *copy = (dgm_text){to, text.size};
    return to + text.size;
}

static dgm_status open_parts(dgm_spm *spm, const void *model, size_t size, dgm_error *err)
{
    settings s;
    DGM_TRY(read_settings(model, size, &s, err));
    spm->count = (int32_t)s.pieces;
    spm->unk = -1;
    spm->kind = (int)s.kind;
    spm->bytes = s.bytes;
    memset(spm->byte_ids, -1, sizeof spm->byte_ids);
    const index_size x = size_index(s.pieces, s.piece_bytes);
    const size_t records = s.pieces * sizeof *spm->pieces,
                 words = s.piece_bytes + s.map.size + s.back_map.size + s.unk_surface.size;
    char *at = spm->block = dgm_malloc(x.slots + x.marks + records + words);
    if (!at) return dgm_no_memory(err);
    empty_index(&spm->index, at, x);
    spm->pieces = (dgm_spm_record *)(void *)(at + x.slots + x.marks);
    spm->texts = at += x.slots + x.marks + records;
    size_t users = 0;
    DGM_TRY(read_pieces(spm, model, size, at, &users, err));
    DGM_TRY(check_pieces(spm, s.unk_piece, err));
    dgm_text map, back_map;
    at = copy_text(copy_text(copy_text(at + s.piece_bytes, s.map, &map), s.back_map, &back_map),
                   s.unk_surface, &spm->unk_surface);
    const void *nul = memchr(spm->unk_surface.data, 0, spm->unk_surface.size);
    if (nul) spm->unk_surface.size = (size_t)((const char *)nul - spm->unk_surface.data);
    spm->normal = s.normal;
    spm->normal.space_behind = s.space_behind;
    spm->back = s.back;
    DGM_TRY(dgm_spm_map_open(&spm->normal.map, map, err));
    DGM_TRY(dgm_spm_map_open(&spm->back.map, back_map, err));
    note_scores(spm);
    return index_users(spm, users, err);
}

dgm_status dgm_spm_open(dgm_spm **spm, const void *model, size_t size, dgm_error *err)
{
    *spm = NULL;
    dgm_spm *fresh = dgm_calloc(1, sizeof *fresh);
    if (!fresh) return dgm_no_memory(err);
    const dgm_status st = open_parts(fresh, model, size, err);
    if (st != DGM_OK)
        dgm_spm_close(&fresh);
    else
        *spm = fresh;
    return st;
}

void dgm_spm_close(dgm_spm **spm)
{
    if (!spm || !*spm) return;
    dgm_free((*spm)->user.slots);
    dgm_free((*spm)->block);
    dgm_free(*spm);
    *spm = NULL;
}

// ---- properties ----------------------------------------------------------------------------

int32_t dgm_spm_size(const dgm_spm *spm)
{
    return spm->count;
}

const char *dgm_spm_piece(const dgm_spm *spm, int32_t id, size_t *size)
{
    *size = spm->pieces[id].size;
    return spm->texts + spm->pieces[id].offset;
}

int32_t dgm_spm_id(const dgm_spm *spm, const char *piece, size_t size)
{
    return dgm_spm_find(spm, piece, size);
}

int32_t dgm_spm_unk(const dgm_spm *spm)
{
    return spm->unk;
}

bool dgm_spm_is_control(const dgm_spm *spm, int32_t id)
{
    return spm->pieces[id].type == SPM_CONTROL;
}

bool dgm_spm_is_byte(const dgm_spm *spm, int32_t id)
{
    return spm->pieces[id].type == SPM_BYTE;
}

float dgm_spm_score(const dgm_spm *spm, int32_t id)
{
    return spm->pieces[id].score;
}
