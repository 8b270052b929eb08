// SPDX-License-Identifier: MIT
// What the files of spm.h share: the model, and the index of its pieces.
//
// Index. No trie: a hash of bytes, taken on from byte to byte, is at every prefix of a text the hash of that prefix.
// `marks` has two bits for each value of some of its bits: a piece begins like this, a piece ends here. They may say
// too much (other prefixes fall on the same bits), never too little; `slots` then finds the piece, whose bytes are
// compared. Such an index is built by one pass over the bytes of the pieces.
#ifndef DGM_TEXT_SPM_PRIVATE_H
#define DGM_TEXT_SPM_PRIVATE_H

#include <string.h>

#include "base/bytes.h"
#include "text/spm.h"

enum { // of a piece; the numbers of the file
    SPM_NORMAL = 1,
    SPM_UNKNOWN = 2,
    SPM_CONTROL = 3,
    SPM_USER = 4, // user-defined: never split, kept by the normaliser
    SPM_UNUSED = 5,
    SPM_BYTE = 6,
};
enum { SPM_UNIGRAM = 1, SPM_BPE = 2, SPM_WORD = 3, SPM_CHAR = 4 };

typedef struct dgm_spm_record {
    uint32_t offset; // of its bytes in `texts`
    uint16_t size;
    uint8_t type;
    float score;
    int32_t
        found; // the id that a search for its spelling finds: its own, or that of a reserved piece of the same
} dgm_spm_record;

typedef struct dgm_spm_slot {
    uint32_t tag; // low bits of the hash
    int32_t id;   // + 1; 0: empty
} dgm_spm_slot;

typedef struct dgm_spm_index {
    uint8_t *marks;
    dgm_spm_slot *slots; // NULL: no pieces
    unsigned shift;      // what leaves a place in marks of a hash
    uint32_t mask;       // slots - 1
} dgm_spm_index;

// The map of characters: a trie as an array of units (darts-clone), and the texts that its values point into.
typedef struct dgm_spm_map {
    const uint8_t *units; // NULL: no map
    uint32_t count;
    const char *texts; // each ends in NUL
    size_t text_size;
} dgm_spm_map;

typedef struct dgm_spm_normalizer {
    dgm_spm_map map;
    const dgm_spm *keeper; // its user-defined symbols stay as they are; NULL: none
    bool dummy_prefix, no_extra_spaces, escape_spaces, space_behind;
} dgm_spm_normalizer;

struct dgm_spm {
    void *block;            // the memory of all that follows, but of `user`
    dgm_spm_record *pieces; // [count]
    int32_t count, unk;     // unk: the piece of that type
    int kind;               // SPM_UNIGRAM ...
    const char *texts;      // spellings
    dgm_spm_index index;    // of all pieces
    dgm_spm_index user;     // of the user-defined ones
    uint16_t longest;       // bytes of the longest piece
    bool has_unused;
    bool bytes; // characters without a piece are spelled as bytes
    int32_t byte_ids[256];
    float unk_score,
        max_score; // of a character without a piece; of the best piece, which those of users outdo
    dgm_text unk_surface;            // what the unknown piece is decoded to
    dgm_spm_normalizer normal, back; // back: a denormaliser where its map is there
};

// ---- hash of a prefix ----------------------------------------------------------------------

enum { SPM_BEGINS = 1, SPM_ENDS = 2 }; // marks
#define SPM_HASH_FIRST 0x51ed270b7a14f9c5u

static inline uint64_t dgm_spm_hash(uint64_t hash, char byte)
{
    return (hash ^ (unsigned char)byte) * 0x9E3779B97F4A7C15u;
}

static inline unsigned dgm_spm_marks(const dgm_spm_index *x, uint64_t hash)
{
    const uint64_t place = hash >> x->shift;
    return x->marks[place >> 2] >> (place & 3) * 2 & 3;
}

static inline bool dgm_spm_reserved(unsigned type) // found before others of the same spelling
{
    return type == SPM_UNKNOWN || type == SPM_CONTROL || type == SPM_BYTE;
}

// The piece with these bytes, which have that hash, among the ordinary ones (normal, user-defined, unused); -1: none.
static inline int32_t dgm_spm_ordinary(const dgm_spm *spm, const dgm_spm_index *x, uint64_t hash,
                                       const char *text, size_t size)
{
    for (uint32_t at = (uint32_t)(hash >> 32) & x->mask; x->slots[at].id; at = (at + 1) & x->mask) {
        if (x->slots[at].tag != (uint32_t)hash) continue;
        const dgm_spm_record *p = &spm->pieces[x->slots[at].id - 1];
        if (p->size == size && !dgm_spm_reserved(p->type) &&
            memcmp(spm->texts + p->offset, text, size) == 0)
            return x->slots[at].id - 1;
    }
    return -1;
}

// The piece of a spelling, a reserved one first; -1: none.
int32_t dgm_spm_find(const dgm_spm *spm, const char *text, size_t size);
// Bytes of the longest user-defined symbol that text begins with; 0: none.
size_t dgm_spm_user_prefix(const dgm_spm *spm, const char *text, size_t size);

// ---- characters ----------------------------------------------------------------------------

#define SPM_SPACE "\xE2\x96\x81" // U+2581 stands for a space
enum { SPM_SPACE_SIZE = 3 };

static inline bool dgm_spm_space_at(const char *text, size_t size)
{
    return size >= SPM_SPACE_SIZE && memcmp(text, SPM_SPACE, SPM_SPACE_SIZE) == 0;
}

// Bytes of a character by its first one, as far as text goes: for text that is valid.
static inline size_t dgm_spm_step(const char *text, size_t size)
{
    const unsigned first = (unsigned char)*text;
    const size_t n = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    return n < size ? n : size;
}

size_t dgm_spm_char(const char *text,
                    size_t size); // bytes of the valid character that text begins with; 0: none

// ---- parts ---------------------------------------------------------------------------------

// spm_charsmap.c. The map is borrowed. DGM_OK when no walk can leave it.
dgm_status dgm_spm_map_open(dgm_spm_map *map, dgm_text bytes, dgm_error *err);
// The longest beginning of text that the map has: its bytes, and what it becomes. 0: none.
size_t dgm_spm_map_match(const dgm_spm_map *map, const char *text, size_t size, const char **to);

// spm_normalize.c. Byte i of `text` came from byte from[i] of the input; from[size] is where the last one ended.
typedef struct dgm_spm_text {
    char *text;
    uint32_t *from; // [size + 1], but for text that is empty
    size_t size, text_cap, from_cap;
} dgm_spm_text;
dgm_status dgm_spm_normalize(const dgm_spm_normalizer *n, const char *text, size_t size,
                             dgm_spm_text *out, dgm_error *err);
void dgm_spm_text_free(dgm_spm_text *t);

// Pieces of a normalised text, in order; each begins where the one before it ends.
typedef struct dgm_spm_part {
    uint32_t end;
    int32_t id;
} dgm_spm_part;
typedef struct dgm_spm_parts {
    dgm_spm_part *items;
    size_t count, cap;
} dgm_spm_parts;
dgm_status dgm_spm_push(dgm_spm_parts *parts, size_t end, int32_t id, dgm_error *err);
dgm_status dgm_spm_unigram(const dgm_spm *spm, const char *text, size_t size, dgm_spm_parts *parts,
                           dgm_error *err);
dgm_status dgm_spm_bpe(const dgm_spm *spm, const char *text, size_t size, dgm_spm_parts *parts,
                       dgm_error *err);

#endif
