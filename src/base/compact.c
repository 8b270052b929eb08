// SPDX-License-Identifier: MIT
// Compact files, their sections and tables of words; see compact.h.
#include "base/compact.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum { ALIGNMENT = 8 };

dgm_status dgm_compact_map(dgm_compact *c, const char *path, const uint8_t *magic, const char *what,
                           bool *compact, dgm_error *err)
{
    *c = (dgm_compact){0};
    DGM_TRY(dgm_mapfile_open(&c->file, path, err));
    *compact =
        c->file.size >= DGM_COMPACT_KIND && memcmp(c->file.data, magic, DGM_COMPACT_KIND) == 0;
    if (*compact) {
        c->data = c->file.data;
        c->size = c->file.size;
        return DGM_OK;
    }
    dgm_compact_close(c);
    DGM_FAIL_IF(dgm_file_is_special(path), err, DGM_ERR_IO,
                "%s is not a regular file: through a pipe only compact %s can be read", path, what);
    return DGM_OK;
}

void dgm_compact_close(dgm_compact *c)
{
    dgm_free(c->owned);
    dgm_mapfile_close(&c->file);
    *c = (dgm_compact){0};
}

dgm_status dgm_compact_read(void *out, size_t size, const dgm_compact *bytes,
                            dgm_status (*read)(void *object, dgm_error *err), dgm_error *err)
{
    void *object = dgm_calloc(1, size);
    dgm_status st = object ? DGM_OK : dgm_no_memory(err);
    if (object) {
        memcpy(object, bytes, sizeof *bytes);
        st = read(object, err);
    }
    if (st != DGM_OK) {
        dgm_free(object);
        object = NULL;
    }
    memcpy(out, &object, sizeof object);
    return st;
}

dgm_status dgm_compact_save(const dgm_compact *c, const char *path, dgm_error *err)
{
    return dgm_file_write(path, c->data, c->size, err);
}

dgm_status dgm_compact_begin(const dgm_compact *c, const uint8_t *magic, const char *what,
                             dgm_reader *r, dgm_error *err)
{
    *r = dgm_reader_over(c->data, c->size);
    const void *found = dgm_read_bytes(r, DGM_COMPACT_MAGIC);
    DGM_FAIL_IF(!found || memcmp(found, magic, DGM_COMPACT_MAGIC) != 0, err, DGM_ERR_FORMAT,
                "not a %s of this version", what);
    return DGM_OK;
}

const void *dgm_section(dgm_reader *r, uint64_t count, uint64_t size)
{
    uint64_t bytes;
    const size_t pad = (ALIGNMENT - r->pos % ALIGNMENT) % ALIGNMENT;
    if (pad && !dgm_read_bytes(r, pad)) return NULL;
    if (!dgm_mul_size(count, size, &bytes)) r->bad = true;
    return r->bad ? NULL : dgm_read_bytes(r, bytes);
}

dgm_status dgm_compact_end(const dgm_reader *r, dgm_error *err)
{
    DGM_FAIL_IF(r->bad, err, DGM_ERR_FORMAT, "the file is shorter than its header says");
    return DGM_OK;
}

void dgm_section_begin(dgm_writer *w)
{
    dgm_write_zeros(w, (ALIGNMENT - w->size % ALIGNMENT) % ALIGNMENT);
}

// ---- words -------------------------------------------------------------------------------------

bool dgm_spellings_fit(const dgm_spellings *s)
{
    return s->slot_count > 0 && (s->slot_count & (s->slot_count - 1)) == 0;
}

void dgm_spellings_read(dgm_spellings *s, dgm_reader *r)
{
    s->at = dgm_section(r, (uint64_t)s->count + 1, sizeof *s->at);
    s->slots = dgm_section(r, s->slot_count, sizeof *s->slots);
    s->text = dgm_section(r, s->bytes, 1);
}

dgm_text dgm_spellings_get(const dgm_spellings *s, uint32_t word)
{
    if (word >= s->count) return (dgm_text){"", 0};
    const uint64_t begin = s->at[word], end = s->at[word + 1];
    if (end > s->bytes || begin > end) return (dgm_text){"", 0}; // a damaged file
    return (dgm_text){s->text + begin, (size_t)(end - begin)};
}

uint32_t dgm_spellings_find(const dgm_spellings *s, dgm_text word)
{
    const uint64_t mask = s->slot_count - 1;
    uint64_t i = dgm_hash_text(word) & mask;
    for (uint64_t tries = 0; tries <= mask && s->slots[i] != 0; tries++, i = (i + 1) & mask) {
        const uint32_t n = s->slots[i] - 1;
        if (n < s->count && dgm_text_equal(dgm_spellings_get(s, n), word)) return n;
    }
    return DGM_NO_SPELLING;
}

uint64_t dgm_spellings_slots(const dgm_words *words)
{
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)words->count) slots *= 2;
    return slots;
}

static dgm_text spelling(const dgm_words *words, const uint32_t *order, size_t i)
{
    return dgm_words_spell(words, order ? order[i] : (uint32_t)i);
}

dgm_status dgm_spellings_write(const dgm_words *words, const uint32_t *order, dgm_writer *w,
                               dgm_error *err)
{
    const uint64_t mask = dgm_spellings_slots(words) - 1;
    uint32_t *slots = dgm_calloc(mask + 1, sizeof *slots);
    if (!slots) return dgm_no_memory(err);
    uint64_t at = 0;
    dgm_section_begin(w);
    dgm_write_u64(w, at);
    for (uint32_t i = 0; i < words->count; i++) {
        const dgm_text t = spelling(words, order, i);
        dgm_write_u64(w, at += t.size);
        uint64_t k = dgm_hash_text(t) & mask;
        while (slots[k]) k = (k + 1) & mask;
        slots[k] = i + 1;
    }
    dgm_section_begin(w);
    dgm_write_bytes(w, slots, (mask + 1) * sizeof *slots);
    dgm_free(slots);
    dgm_section_begin(w);
    for (size_t i = 0; i < words->count; i++) {
        const dgm_text t = spelling(words, order, i);
        dgm_write_bytes(w, t.data, t.size);
    }
    return w->failed ? dgm_no_memory(err) : DGM_OK;
}
