// SPDX-License-Identifier: MIT
// The store of a glossary and looking terms up in lines; see glossary.h.
//
// A source is a row of units: words, and single characters outside of words. Where its first units lead, from one to
// the next, is a hash table:
//
//     "carbon" -> (way)      "carbon copy" -> entry 7      "carbon copy of" -> (way)  ...
//
// so a place of a line costs one look-up per unit of the longest way that begins there, whatever the size of the
// glossary and however many terms begin with the same word. The first letter counts as a small one. Ways are known
// by their hash alone: two that share it lead on together, and what is found is compared with the line.
#include "constraint/glossary.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/textfile.h"
#include "base/words.h"
#include "text/surface.h"

typedef struct entry {
    size_t first;       // of its places in g->list
    int32_t count, cap; // of its variants, and of its places
    int32_t next;       // entry on the same way, a later one; -1: none
} entry;

typedef struct way {
    uint64_t hash; // 0: the slot is free
    int32_t entry; // -1: it only leads on
} way;

struct dgm_glossary {
    dgm_words sources; // numbers are those of entries
    dgm_words targets; // each behind the four bytes of its entry's number
    dgm_writer key;
    entry *entries;
    size_t entry_cap;
    uint32_t *list; // targets of entries, each entry's side by side
    size_t list_count, list_cap;
    way *ways; // [slots]
    size_t way_count, slots;
};

enum { OWNER = sizeof(uint32_t), FIRST_SLOTS = 256 };

dgm_status dgm_glossary_open(dgm_glossary **out, dgm_error *err)
{
    *out = dgm_calloc(1, sizeof **out);
    return *out ? DGM_OK : dgm_no_memory(err);
}

void dgm_glossary_close(dgm_glossary **at)
{
    if (!at || !*at) return;
    dgm_glossary *g = *at;
    *at = NULL;
    dgm_words_free(&g->sources);
    dgm_words_free(&g->targets);
    dgm_writer_free(&g->key);
    dgm_free(g->entries);
    dgm_free(g->list);
    dgm_free(g->ways);
    dgm_free(g);
}

// ---- ways --------------------------------------------------------------------------------------

// The way on over the word or character that begins at t; *size: its bytes. hash: 0 at the beginning.
static uint64_t way_on(uint64_t hash, dgm_text t, size_t *size)
{
    const bool first = hash == 0;
    uint32_t code = 0;
    size_t at = 0;
    hash = dgm_hash_number(DGM_HASH_START, hash);
    while (at < t.size) {
        const size_t n = dgm_utf8_next(t.data + at, t.size - at, &code);
        const bool inside = dgm_char_in_word(code);
        if (at > 0 && !inside) break;
        hash = dgm_hash_number(hash, first && at == 0 ? dgm_char_lower(code) : code);
        at += n;
        if (!inside) break;
    }
    *size = at;
    return hash ? hash : 1;
}

static way *slot_of(way *ways, size_t slots, uint64_t hash)
{
    size_t at = (hash ^ hash >> 29) & (slots - 1);
    while (ways[at].hash && ways[at].hash != hash) at = (at + 1) & (slots - 1);
    return &ways[at];
}

static dgm_status make_room(dgm_glossary *g, dgm_error *err)
{
    if (2 * (g->way_count + 1) <= g->slots) return DGM_OK;
    const size_t slots = g->slots ? g->slots * 2 : FIRST_SLOTS;
    way *ways = dgm_calloc(slots, sizeof *ways);
    if (!ways) return dgm_no_memory(err);
    for (size_t i = 0; i < g->slots; i++)
        if (g->ways[i].hash) *slot_of(ways, slots, g->ways[i].hash) = g->ways[i];
    dgm_free(g->ways);
    g->ways = ways;
    g->slots = slots;
    return DGM_OK;
}

// The way over all of a source leads to the entry.
static dgm_status add_ways(dgm_glossary *g, dgm_text source, int32_t index, dgm_error *err)
{
    uint64_t hash = 0;
    for (size_t at = 0, unit; at < source.size; at += unit) {
        DGM_TRY(make_room(g, err));
        hash = way_on(hash, (dgm_text){source.data + at, source.size - at}, &unit);
        way *w = slot_of(g->ways, g->slots, hash);
        g->way_count += w->hash == 0;
        if (w->hash == 0) *w = (way){hash, -1};
        if (at + unit < source.size) continue;
        int32_t *to = &w->entry; // "Car" behind "car": few share a way
        while (*to >= 0) to = &g->entries[*to].next;
        *to = index;
    }
    return DGM_OK;
}

// ---- adding ------------------------------------------------------------------------------------

static dgm_status add_source(dgm_glossary *g, dgm_text source, uint32_t *index, dgm_error *err)
{
    const size_t before = g->sources.count;
    DGM_TRY(dgm_grow(&g->entries, &g->entry_cap, before + 1, sizeof *g->entries, err));
    DGM_TRY(dgm_words_add(&g->sources, source, index, err));
    if (g->sources.count == before) return DGM_OK;
    g->entries[*index] = (entry){.next = -1};
    return add_ways(g, source, (int32_t)*index, err);
}

// A place at the end of an entry's list, which moves to the end of all when it is full.
static dgm_status add_place(dgm_glossary *g, entry *e, uint32_t target, dgm_error *err)
{
    if (e->count == e->cap) {
        const int32_t cap = e->cap ? 2 * e->cap : 1;
        DGM_TRY(dgm_grow(&g->list, &g->list_cap, g->list_count + (size_t)cap, sizeof *g->list, err));
        if (e->count) memcpy(g->list + g->list_count, g->list + e->first, (size_t)e->count * sizeof *g->list);
        e->first = g->list_count;
        e->cap = cap;
        g->list_count += (size_t)cap;
    }
    g->list[e->first + (size_t)e->count++] = target;
    return DGM_OK;
}

dgm_status dgm_glossary_add(dgm_glossary *g, dgm_text source, dgm_text word, dgm_error *err)
{
    uint32_t index, target;
    DGM_TRY(add_source(g, source, &index, err));
    g->key.size = 0;
    dgm_write_bytes(&g->key, &index, OWNER);
    dgm_write_bytes(&g->key, word.data, word.size);
    if (g->key.failed) return dgm_no_memory(err);
    const size_t before = g->targets.count;
    DGM_TRY(dgm_words_add(&g->targets, (dgm_text){(const char *)g->key.data, g->key.size}, &target, err));
    return g->targets.count == before ? DGM_OK : add_place(g, &g->entries[index], target, err);
}

size_t dgm_glossary_count(const dgm_glossary *g)
{
    return g->sources.count;
}

dgm_text dgm_glossary_source(const dgm_glossary *g, int32_t i)
{
    return dgm_words_spell(&g->sources, (uint32_t)i);
}

size_t dgm_glossary_variant_count(const dgm_glossary *g, int32_t i)
{
    return (size_t)g->entries[i].count;
}

dgm_text dgm_glossary_variant(const dgm_glossary *g, int32_t i, size_t k)
{
    const dgm_text t = dgm_words_spell(&g->targets, g->list[g->entries[i].first + k]);
    return (dgm_text){t.data + OWNER, t.size - OWNER};
}

// ---- finding -----------------------------------------------------------------------------------

// Bytes of text that the words' first character stands for, or 0; *skip: its bytes in words.
static size_t first_character(dgm_text text, dgm_text words, size_t *skip)
{
    uint32_t wanted = 0, found = 0;
    *skip = dgm_utf8_next(words.data, words.size, &wanted);
    const size_t n = dgm_utf8_next(text.data, text.size, &found);
    if (found == wanted) return n;
    return dgm_char_class(wanted) & DGM_CHAR_LOWER && dgm_char_upper(wanted) == found ? n : 0;
}

size_t dgm_term_at(dgm_text text, size_t at, dgm_text words)
{
    if (words.size == 0 || at >= text.size) return 0;
    size_t skip;
    const dgm_text rest = {text.data + at, text.size - at};
    const size_t n = first_character(rest, words, &skip), left = words.size - skip;
    if (n == 0 || rest.size - n < left || memcmp(rest.data + n, words.data + skip, left) != 0)
        return 0;
    const size_t size = n + left;
    if (dgm_text_begins_in_word(words) && at > 0 &&
        dgm_text_ends_in_word((dgm_text){text.data, at}))
        return 0;
    if (dgm_text_ends_in_word(words) &&
        dgm_text_begins_in_word((dgm_text){rest.data + size, rest.size - size}))
        return 0;
    return size;
}

bool dgm_term_find(dgm_text text, dgm_text words, size_t *at)
{
    for (uint32_t code; *at < text.size;
         *at += dgm_utf8_next(text.data + *at, text.size - *at, &code))
        if (dgm_term_at(text, *at, words)) return true;
    return false;
}

// The longest term at a place; of several that long, which differ in the case of a letter, the first one.
static size_t longest_at(const dgm_glossary *g, dgm_text line, size_t at, int32_t *found)
{
    uint64_t hash = 0;
    size_t size = 0;
    for (size_t end = at, unit; end < line.size; end += unit) {
        hash = way_on(hash, (dgm_text){line.data + end, line.size - end}, &unit);
        const way *w = slot_of(g->ways, g->slots, hash);
        if (!w->hash) break;
        bool here = false;
        for (int32_t i = w->entry; i >= 0 && !here; i = g->entries[i].next) {
            const size_t n = dgm_term_at(line, at, dgm_glossary_source(g, i));
            here = n > 0;
            if (here) size = n, *found = i;
        }
    }
    return size;
}

bool dgm_glossary_find(const dgm_glossary *g, dgm_text line, dgm_glossary_hit *hit)
{
    if (g->slots == 0) return false;
    for (size_t at = hit->next, unit; at < line.size; at += unit) {
        int32_t i = -1;
        const size_t size = longest_at(g, line, at, &i);
        (void)way_on(0, (dgm_text){line.data + at, line.size - at}, &unit);
        if (!size) continue;
        *hit = (dgm_glossary_hit){.begin = at, .end = at + size, .entry = i, .next = at + size};
        return true;
    }
    return false;
}

// ---- files -------------------------------------------------------------------------------------

static char small(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool ends_in(dgm_text name, const char *end)
{
    const size_t n = strlen(end);
    if (name.size < n) return false;
    for (size_t i = 0; i < n; i++)
        if (small(name.data[name.size - n + i]) != end[i]) return false;
    return true;
}

dgm_status dgm_glossary_parse(dgm_glossary *g, const char *path, dgm_text data, const char *source,
                              const char *targets, dgm_error *err)
{
    dgm_text name = dgm_text_of(path);
    dgm_status st;
    if (ends_in(name, ".gz")) name.size -= 3;
    if (data.size >= 3 && memcmp(data.data, "\xef\xbb\xbf", 3) == 0) data.data += 3, data.size -= 3;
    if (ends_in(name, ".csv"))
        st = dgm_glossary_csv(g, data, source, targets, err);
    else if (ends_in(name, ".tbx") || ends_in(name, ".xml"))
        st = dgm_glossary_tbx(g, data, source, targets, err);
    else
        st = dgm_glossary_tsv(g, data, source, targets, err);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "%s", path);
    return st;
}

dgm_status dgm_glossary_read(dgm_glossary *g, const char *path, const char *source,
                             const char *targets, dgm_error *err)
{
    dgm_writer w = {0};
    dgm_status st = dgm_lines_collect(path, &w, err);
    if (st == DGM_OK)
        st = dgm_glossary_parse(g, path, (dgm_text){w.size ? (const char *)w.data : "", w.size}, source, targets, err);
    dgm_writer_free(&w);
    return st;
}
