// SPDX-License-Identifier: MIT
// The map of characters of a SentencePiece model; see spm_private.h.
//
//     u32 bytes of the trie | units (u32) of the trie | texts, each ends in NUL
//
// A unit of the trie (darts-clone): label in bits 0-7, bit 8 says that the child for NUL holds a value, bits 10-30 the
// offset (times 256 with bit 9); bit 31 marks a value. The child for a byte stands at the unit's place XOR its offset
// XOR the byte, if the label there is that byte.
//
// A hostile map could lead out of the array, to values outside of the texts, or in a circle. All ways through it are
// walked once, when it is opened; the walk over a text then needs no checks.
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "text/spm_private.h"
#include "text/unicode.h"

enum {
    MATCHES_MAX = 32, // values on one way: what the library has room for
    DEPTH_MAX = 512,
    WALKED = 255,
};
#define IS_VALUE (1u << 31)
#define HAS_VALUE (1u << 8)

static uint32_t unit_at(const dgm_spm_map *map, uint32_t i)
{
    const uint8_t *p = map->units + (size_t)i * 4;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t unit_offset(uint32_t unit)
{
    return (unit >> 10) << ((unit & 1u << 9) >> 6);
}

size_t dgm_spm_map_match(const dgm_spm_map *map, const char *text, size_t size, const char **to)
{
    size_t longest = 0;
    if (!map->units) return 0;
    uint32_t at = unit_offset(unit_at(map, 0));
    for (size_t i = 0; i < size; i++) {
        const uint32_t byte = (unsigned char)text[i];
        at ^= byte;
        const uint32_t unit = unit_at(map, at);
        if ((unit & (IS_VALUE | 255)) != byte) break;
        at ^= unit_offset(unit);
        if (!(unit & HAS_VALUE)) continue;
        longest = i + 1;
        *to = map->texts + (unit_at(map, at) & ~IS_VALUE);
    }
    return longest;
}

// ---- checks --------------------------------------------------------------------------------

typedef struct walk {
    const dgm_spm_map *map;
    uint8_t *most;   // [count] 0 = not seen, WALKED = being walked, else most values below + 1
    uint32_t *first; // [count] a child of base i, + 1; 0 = none
    uint32_t *next;  // [count] the next child of the same base, + 1
} walk;

static dgm_status damaged(dgm_error *err, const char *what)
{
    return dgm_fail(err, DGM_ERR_FORMAT, "damaged SentencePiece model: %s", what);
}

static bool value_is_good(const dgm_spm_map *map, uint32_t unit)
{
    const uint32_t value = unit & ~IS_VALUE;
    return value < map->text_size && ((unsigned char)map->texts[value] & 0xC0) != 0x80;
}

// Most values that a walk through unit i can meet, at i or below; -1 when something is wrong.
static int walk_from(const walk *w, uint32_t i, int depth)
{
    if (w->most[i] == WALKED || depth > DEPTH_MAX) return -1;
    if (w->most[i]) return w->most[i] - 1;
    w->most[i] = WALKED;
    const uint32_t unit = unit_at(w->map, i);
    const uint32_t base = i ^ unit_offset(unit);
    if ((base | 255) >= w->map->count) return -1;
    int own = 0, below = 0;
    if (unit & HAS_VALUE) {
        if (!value_is_good(w->map, unit_at(w->map, base))) return -1;
        own = 1;
    }
    for (uint32_t child = w->first[base]; child; child = w->next[child - 1]) {
        const int met = walk_from(w, child - 1, depth + 1);
        if (met < 0) return -1;
        if (met > below) below = met;
    }
    if (own + below > MATCHES_MAX) return -1;
    w->most[i] = (uint8_t)(own + below + 1);
    return own + below;
}

// A unit is reached from exactly one base: its own place with its label taken out. Values are never walked through.
static void link_children(const walk *w)
{
    for (uint32_t i = 0; i < w->map->count; i++) {
        const uint32_t unit = unit_at(w->map, i);
        const uint32_t base = i ^ (unit & 255);
        if (unit & IS_VALUE || base >= w->map->count) continue;
        w->next[i] = w->first[base];
        w->first[base] = i + 1;
    }
}

static dgm_status check_trie(const dgm_spm_map *map, dgm_error *err)
{
    const size_t count = map->count;
    uint32_t *block = dgm_calloc(count, 2 * sizeof *block + 1);
    if (!block) return dgm_no_memory(err);
    const walk w = {
        .map = map, .first = block, .next = block + count, .most = (uint8_t *)(block + 2 * count)};
    link_children(&w);
    const bool good = walk_from(&w, 0, 0) >= 0;
    dgm_free(block);
    return good ? DGM_OK : damaged(err, "character map is not a tree");
}

dgm_status dgm_spm_map_open(dgm_spm_map *map, dgm_text bytes, dgm_error *err)
{
    *map = (dgm_spm_map){0};
    if (bytes.size == 0) return DGM_OK;
    dgm_reader r = dgm_reader_over(bytes.data, bytes.size);
    const uint32_t trie_bytes = dgm_read_u32(&r);
    const uint8_t *units = dgm_read_bytes(&r, trie_bytes);
    const size_t text_size = dgm_reader_left(&r);
    if (r.bad || text_size == 0 || trie_bytes < 1024 || trie_bytes % 4 != 0)
        return damaged(err, "character map has wrong sizes");
    *map = (dgm_spm_map){.units = units,
                         .count = trie_bytes / 4,
                         .texts = dgm_read_bytes(&r, text_size),
                         .text_size = text_size};
    if (map->texts[text_size - 1] != 0 || !dgm_utf8_valid((dgm_text){map->texts, text_size}))
        return damaged(err, "texts of the character map");
    return check_trie(map, err);
}
