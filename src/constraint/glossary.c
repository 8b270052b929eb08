// SPDX-License-Identifier: MIT
// The store of a glossary and looking terms up in lines; see glossary.h.
//
// Entries hang in a hash table by their first unit: the word they begin with, first letter small, or
// a single character outside of words. So a line costs one look-up per word whatever the size of
// the glossary, and only terms that begin with that word are compared. Chains are kept longest
// first, so the first match is the longest.
#include "constraint/glossary.h"

#include <string.h>

#include "base/mem.h"
#include "base/textfile.h"
#include "text/surface.h"

typedef struct entry {
    size_t begin, size;  // of the source, in text
    int32_t next;        // of the chain; -1: the last
    int32_t first, last; // variants; -1: none
    int32_t variants;
} entry;

typedef struct target {
    size_t begin, size;
    int32_t next;
} target;

struct dgm_glossary {
    entry *entries;
    target *targets;
    size_t entry_count, entry_cap, target_count, target_cap;
    dgm_writer text;
    int32_t *table; // [buckets] first entry of a chain, -1: none
    size_t buckets;
};

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
    dgm_free(g->entries);
    dgm_free(g->targets);
    dgm_free(g->table);
    dgm_writer_free(&g->text);
    dgm_free(g);
}

static dgm_text text_at(const dgm_glossary *g, size_t begin, size_t size)
{
    return (dgm_text){(const char *)g->text.data + begin, size};
}

// ---- first units -------------------------------------------------------------------------------

// Hash of the word or character that begins at t; *size: its bytes.
static uint64_t unit_hash(dgm_text t, size_t *size)
{
    uint64_t hash = 1469598103934665603u;
    uint32_t code = 0;
    size_t at = 0;
    while (at < t.size) {
        const size_t n = dgm_utf8_next(t.data + at, t.size - at, &code);
        const bool inside = dgm_char_in_word(code);
        if (at > 0 && !inside) break;
        hash = (hash ^ (at ? code : dgm_char_lower(code))) * 1099511628211u;
        at += n;
        if (!inside) break;
    }
    *size = at;
    return hash ^ hash >> 29;
}

static void hang(dgm_glossary *g, int32_t index)
{
    entry *e = &g->entries[index];
    size_t unit;
    const uint64_t hash = unit_hash(text_at(g, e->begin, e->size), &unit);
    int32_t *to = &g->table[hash % g->buckets];
    while (*to >= 0 && g->entries[*to].size >= e->size) to = &g->entries[*to].next;
    e->next = *to;
    *to = index;
}

static dgm_status make_room(dgm_glossary *g, dgm_error *err)
{
    if (g->entry_count < g->buckets) return DGM_OK;
    const size_t buckets = g->buckets ? g->buckets * 2 : 256;
    int32_t *table = dgm_malloc(buckets * sizeof *table);
    if (!table) return dgm_no_memory(err);
    for (size_t i = 0; i < buckets; i++) table[i] = -1;
    dgm_free(g->table);
    g->table = table;
    g->buckets = buckets;
    for (size_t i = 0; i < g->entry_count; i++) hang(g, (int32_t)i);
    return DGM_OK;
}

// ---- adding ------------------------------------------------------------------------------------

static int32_t find_source(const dgm_glossary *g, dgm_text source)
{
    size_t unit;
    if (g->buckets == 0) return -1;
    int32_t i = g->table[unit_hash(source, &unit) % g->buckets];
    while (i >= 0 && !dgm_text_equal(dgm_glossary_source(g, i), source)) i = g->entries[i].next;
    return i;
}

static dgm_status put_text(dgm_glossary *g, dgm_text t, size_t *begin, dgm_error *err)
{
    *begin = g->text.size;
    dgm_write_bytes(&g->text, t.data, t.size);
    return g->text.failed ? dgm_no_memory(err) : DGM_OK;
}

dgm_status dgm_glossary_add(dgm_glossary *g, dgm_text source, dgm_text word, dgm_error *err)
{
    int32_t at = find_source(g, source);
    DGM_FAIL_IF(g->target_count >= INT32_MAX - 1, err, DGM_ERR_UNSUPPORTED,
                "the glossary has more than %d entries", INT32_MAX - 1);
    if (at < 0) {
        DGM_TRY(dgm_grow(&g->entries, &g->entry_cap, g->entry_count + 1, sizeof *g->entries, err));
        DGM_TRY(make_room(g, err));
        size_t begin;
        DGM_TRY(put_text(g, source, &begin, err));
        at = (int32_t)g->entry_count++;
        g->entries[at] = (entry){.begin = begin, .size = source.size, .first = -1, .last = -1};
        hang(g, at);
    }
    entry *e = &g->entries[at];
    for (int32_t i = e->first; i >= 0; i = g->targets[i].next)
        if (dgm_text_equal(text_at(g, g->targets[i].begin, g->targets[i].size), word))
            return DGM_OK;
    DGM_TRY(dgm_grow(&g->targets, &g->target_cap, g->target_count + 1, sizeof *g->targets, err));
    size_t begin;
    DGM_TRY(put_text(g, word, &begin, err));
    const int32_t made = (int32_t)g->target_count++;
    g->targets[made] = (target){.begin = begin, .size = word.size, .next = -1};
    if (e->last >= 0)
        g->targets[e->last].next = made;
    else
        e->first = made;
    e->last = made;
    e->variants++;
    return DGM_OK;
}

size_t dgm_glossary_count(const dgm_glossary *g)
{
    return g->entry_count;
}

dgm_text dgm_glossary_source(const dgm_glossary *g, int32_t i)
{
    return text_at(g, g->entries[i].begin, g->entries[i].size);
}

size_t dgm_glossary_variant_count(const dgm_glossary *g, int32_t i)
{
    return (size_t)g->entries[i].variants;
}

dgm_text dgm_glossary_variant(const dgm_glossary *g, int32_t i, size_t k)
{
    int32_t at = g->entries[i].first;
    while (k-- > 0) at = g->targets[at].next;
    return text_at(g, g->targets[at].begin, g->targets[at].size);
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

bool dgm_glossary_find(const dgm_glossary *g, dgm_text line, dgm_glossary_hit *hit)
{
    size_t unit = 0;
    if (g->buckets == 0) return false;
    for (size_t at = hit->next; at < line.size; at += unit) {
        const dgm_text rest = {line.data + at, line.size - at};
        int32_t i = g->table[unit_hash(rest, &unit) % g->buckets];
        for (; i >= 0; i = g->entries[i].next) {
            const size_t size = dgm_term_at(line, at, dgm_glossary_source(g, i));
            if (size == 0) continue;
            *hit = (dgm_glossary_hit){.begin = at, .end = at + size, .entry = i, .next = at + size};
            return true;
        }
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
