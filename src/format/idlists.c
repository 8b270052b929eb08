// SPDX-License-Identifier: MIT
// Lists of token ids in model files, and the vocabulary's hash; see idlists.h.
#include "format/idlists.h"

#include <stdio.h>

#include "base/hash.h"
#include "format/modelfile.h"

// ---- hash -------------------------------------------------------------------------------------

static uint64_t hash_number(uint64_t h, int64_t v)
{
    for (int i = 0; i < 8; i++) h = dgm_hash_number(h, (uint64_t)v >> (8 * i) & 255);
    return h;
}

static uint64_t hash_strings(uint64_t h, dgm_gguf_strings strings)
{
    h = hash_number(h, (int64_t)strings.count);
    for (dgm_gguf_text s; dgm_gguf_strings_next(&strings, &s);) {
        h = hash_number(h, (int64_t)s.size);
        h = dgm_hash_bytes(h, s.data, s.size);
    }
    return h;
}

dgm_status dgm_vocabulary_hash(const dgm_gguf *g, int *sources, int *targets, char text[17],
                               dgm_error *err)
{
    uint64_t h = DGM_HASH_START;
    for (int side = 0; side < 2; side++) {
        dgm_vocab_spec v = {0};
        DGM_TRY(dgm_modelfile_vocab(g, (dgm_side)side, &v, err));
        h = hash_number(h, v.size);
        h = hash_number(h, (int64_t)v.kind);
        h = hash_number(h, (int64_t)v.model_size);
        h = dgm_hash_bytes(h, v.model, v.model_size);
        h = hash_number(h, (int64_t)v.map_count);
        for (size_t i = 0; i < v.map_count; i++) h = hash_number(h, v.map ? v.map[i] : 0);
        h = hash_strings(h, v.words);
        h = hash_strings(h, v.extra);
        *(side ? targets : sources) = v.size;
    }
    snprintf(text, 17, "%016llx", (unsigned long long)h);
    return DGM_OK;
}

// ---- numbers of seven bits --------------------------------------------------------------------

static void put_number(dgm_writer *w, uint32_t v)
{
    for (; v >= 128; v >>= 7) dgm_write_u8(w, (uint8_t)(v | 128));
    dgm_write_u8(w, (uint8_t)v);
}

// False when the number does not end within the data or is not the shortest form below 2^28.
static bool take_number(const uint8_t *data, size_t size, size_t *at, uint32_t *out)
{
    uint32_t v = 0;
    for (int shift = 0; shift < 28; shift += 7) {
        if (*at == size) return false;
        uint8_t byte = data[(*at)++];
        v |= (uint32_t)(byte & 127) << shift;
        if (byte < 128) {
            *out = v;
            return byte != 0 || shift == 0;
        }
    }
    return false;
}

// A number that was checked before.
static uint32_t known_number(const uint8_t **p)
{
    uint32_t v = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = *(*p)++;
        v |= (uint32_t)(byte & 127) << shift;
        if (byte < 128) return v;
    }
}

// ---- lists ------------------------------------------------------------------------------------

dgm_status dgm_idlists_index(const dgm_idlists *x, uint32_t *at, int *longest, dgm_error *err)
{
    size_t pos = 0;
    for (int r = 0; r < x->count; r++) {
        uint32_t count = 0, gap = 0;
        at[r] = (uint32_t)pos;
        bool good = take_number(x->data, x->size, &pos, &count) && count <= x->most;
        int64_t id = -1;
        for (uint32_t k = 0; good && k < count; k++) {
            good = take_number(x->data, x->size, &pos, &gap);
            id += (int64_t)gap + 1;
            if (id >= x->limit) good = false;
        }
        DGM_FAIL_IF(!good, err, DGM_ERR_FORMAT, "%s: the list of %s %d is damaged", x->key, x->row,
                    r);
        if ((int)count > *longest) *longest = (int)count;
    }
    at[x->count] = (uint32_t)pos;
    DGM_FAIL_IF(pos != x->size, err, DGM_ERR_FORMAT, "%s: %zu bytes after the last list", x->key,
                x->size - pos);
    return DGM_OK;
}

int dgm_idlists_decode(const uint8_t *p, int32_t *out)
{
    int count = (int)known_number(&p);
    int32_t id = -1;
    for (int k = 0; k < count; k++) {
        // Most gaps are one byte.
        if (*p < 128)
            id += *p++ + 1;
        else
            id += (int32_t)known_number(&p) + 1;
        out[k] = id;
    }
    return count;
}

int dgm_idlists_length(const uint8_t *p)
{
    return (int)known_number(&p);
}

void dgm_idlists_mark(const uint8_t *p, uint64_t *bits)
{
    uint32_t count = known_number(&p), id = UINT32_MAX;
    for (uint32_t k = 0; k < count; k++) {
        id += known_number(&p) + 1;
        bits[id >> 6] |= (uint64_t)1 << (id & 63);
    }
}

void dgm_idlists_put(dgm_writer *w, const int32_t *ids, uint64_t count)
{
    int32_t last = -1;
    put_number(w, (uint32_t)count);
    for (uint64_t k = 0; k < count; k++) {
        put_number(w, (uint32_t)(ids[k] - last - 1));
        last = ids[k];
    }
}
