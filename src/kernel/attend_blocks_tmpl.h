// SPDX-License-Identifier: MIT
// Attention of up to four query rows over one sentence's keys and values in blocks of 16 positions.
//
// attend_<isa>.c and attend_f16_<isa>.c name ATTEND_BLOCKS and include this behind attend_tmpl.h,
// which defines what an element is (attend_elem, ATTEND_LOAD). A block holds
//     keys    [heads][dk][16]   transposed: one vector is one dimension of 16 positions
//     values  [heads][16][dv]
// so that both walks read memory front to back, no score needs a fold over lanes, and every vector
// is loaded and converted once for all the query rows of a beam.
//
// Per head: e_j = scale * ((s0 + s1) + (s2 + s3)), s_i = chain of fma over the dimensions d = i mod
// 4; p = softmax(e) (reduce_tmpl.h); out = chain of fma over j = 0..n-1. A query's result does not
// depend on its neighbours. No keys: out is zero.

#include <string.h>

enum { BLOCK_KEYS = DGM_BLOCK_KEYS };

#define BLOCK_FN static inline __attribute__((always_inline))

// One block to read, and where to find the one that the next call reads in its place: its lines
// are fetched meanwhile, as many at a time as are read here.
typedef struct block_place {
    const attend_elem *data;
    const attend_elem *ahead; // its own data where there is none
    int at;                   // first position
} block_place;

BLOCK_FN block_place block_at(const dgm_attend_blocks_args *a, int at, size_t skip)
{
    skip += (size_t)(at / BLOCK_KEYS) * a->block;
    block_place b = {(const attend_elem *)a->blocks + skip, NULL, at};
    b.ahead = at < a->next_n ? (const attend_elem *)a->next + skip : b.data;
    return b;
}

// Query rows first .. first + count - 1 of one block: its scores, head by head.
BLOCK_FN void block_scores(const dgm_attend_blocks_args *a, const block_place *b, const int first,
                           const int count, const int dk)
{
    const attend_elem *keys = b->data;
    const int at = b->at;
    const vf scale = vf_set(a->scale);
    const attend_elem *ahead = b->ahead;
    const size_t head = (size_t)dk * BLOCK_KEYS;
    for (int h = 0; h < a->heads; h++, keys += head, ahead += head) {
        vf sum[4 * DGM_ATTEND_QUERIES];
        for (int i = 0; i < 4 * count; i++) sum[i] = vf_set(0.0f);
        int d = 0;
        for (; d + 4 <= dk; d += 4)
            for (int i = 0; i < 4; i++) {
                const vf k = ATTEND_LOAD(keys + (size_t)(d + i) * BLOCK_KEYS);
                if (i * sizeof(attend_elem) % 4 == 0)
                    __builtin_prefetch(ahead + (size_t)(d + i) * BLOCK_KEYS, 0, 2);
                for (int r = 0; r < count; r++) {
                    const vf x = vf_set(a->q[first + r][h * dk + d + i]);
                    sum[4 * r + i] = vf_fma(x, k, sum[4 * r + i]);
                }
            }
        for (int i = 0; d < dk; d++, i++) {
            const vf k = ATTEND_LOAD(keys + (size_t)d * BLOCK_KEYS);
            for (int r = 0; r < count; r++)
                sum[4 * r + i] = vf_fma(vf_set(a->q[first + r][h * dk + d]), k, sum[4 * r + i]);
        }
        for (int r = 0; r < count; r++) {
            const vf *s = sum + 4 * r;
            const vf e = vf_mul(vf_add(vf_add(s[0], s[1]), vf_add(s[2], s[3])), scale);
            vf_store(a->weights[first + r] + h * dgm_attend_stride(a->n) + at, e);
        }
    }
}

// `vectors` vectors of one head's values, added to the outputs of `count` query rows.
BLOCK_FN void block_values_part(const dgm_attend_blocks_args *a, const attend_elem *v,
                                const attend_elem *ahead, int h, int at, int d, const int first,
                                const int count, const int vectors)
{
    const int keys = a->n - at < BLOCK_KEYS ? a->n - at : BLOCK_KEYS;
    const int row = h * dgm_attend_stride(a->n);
    vf sum[4 * DGM_ATTEND_QUERIES];
    for (int r = 0; r < count; r++)
        for (int i = 0; i < vectors; i++)
            sum[4 * r + i] =
                at ? vf_load(a->out[first + r] + h * a->dv + d + 16 * i) : vf_set(0.0f);
    for (int j = 0; j < keys; j++) {
        vf value[4];
        for (int i = 0; i < vectors; i++) {
            const size_t offset = (size_t)j * (size_t)a->dv + (size_t)(d + 16 * i);
            value[i] = ATTEND_LOAD(v + offset);
            if (i * sizeof(attend_elem) % 4 == 0) __builtin_prefetch(ahead + offset, 0, 2);
        }
        for (int r = 0; r < count; r++) {
            const vf p = vf_set(a->weights[first + r][row + at + j]);
            for (int i = 0; i < vectors; i++) sum[4 * r + i] = vf_fma(p, value[i], sum[4 * r + i]);
        }
    }
    for (int r = 0; r < count; r++)
        for (int i = 0; i < vectors; i++)
            vf_store(a->out[first + r] + h * a->dv + d + 16 * i, sum[4 * r + i]);
}

// The last, incomplete vector of a head.
static void block_values_rest(const dgm_attend_blocks_args *a, const attend_elem *v, int h, int at,
                              int d, int r)
{
    const int keys = a->n - at < BLOCK_KEYS ? a->n - at : BLOCK_KEYS, n = a->dv - d;
    float *out = a->out[r] + h * a->dv + d;
    vf sum = at ? vf_load_n(out, n) : vf_set(0.0f);
    for (int j = 0; j < keys; j++) {
        const vf p = vf_set(a->weights[r][h * dgm_attend_stride(a->n) + at + j]);
        sum = vf_fma(p, ATTEND_LOAD_N(v + (size_t)j * (size_t)a->dv + d, n), sum);
    }
    vf_store_n(out, sum, n);
}

BLOCK_FN void block_values(const dgm_attend_blocks_args *a, const block_place *b, const int first,
                           const int count)
{
    const attend_elem *v = b->data, *ahead = b->ahead;
    const size_t head = (size_t)a->dv * BLOCK_KEYS;
    const int at = b->at;
    for (int h = 0; h < a->heads; h++, v += head, ahead += head) {
        int d = 0;
        for (; d + 64 <= a->dv; d += 64) block_values_part(a, v, ahead, h, at, d, first, count, 4);
        for (; d + 32 <= a->dv; d += 32) block_values_part(a, v, ahead, h, at, d, first, count, 2);
        for (; d + 16 <= a->dv; d += 16) block_values_part(a, v, ahead, h, at, d, first, count, 1);
        for (int r = 0; d < a->dv && r < count; r++) block_values_rest(a, v, h, at, d, first + r);
    }
}

BLOCK_FN void block_queries(const dgm_attend_blocks_args *a, const int first, const int count)
{
    for (int at = 0; at < a->n; at += BLOCK_KEYS) {
        const block_place b = block_at(a, at, 0);
        if (a->dk == 64) // the usual widths as constants
            block_scores(a, &b, first, count, 64);
        else if (a->dk == 32)
            block_scores(a, &b, first, count, 32);
        else
            block_scores(a, &b, first, count, a->dk);
    }
    for (int r = first; r < first + count; r++)
        for (int h = 0; h < a->heads; h++)
            reduce_softmax_padded(a->weights[r] + h * dgm_attend_stride(a->n), a->n);
    const size_t values = a->values ? a->values : (size_t)a->heads * (size_t)a->dk * BLOCK_KEYS;
    for (int at = 0; at < a->n; at += BLOCK_KEYS) {
        const block_place b = block_at(a, at, values);
        block_values(a, &b, first, count);
    }
}

static void ATTEND_BLOCKS(const dgm_attend_blocks_args *a)
{
    int r = 0;
    if (a->n <= 0)
        for (; r < a->queries; r++)
            memset(a->out[r], 0, (size_t)(a->heads * a->dv) * sizeof(float));
    if (VF_SUMS >= 16) { // registers for several rows
        for (; a->queries - r >= 4; r += 4) block_queries(a, r, 4);
        for (; a->queries - r >= 2; r += 2) block_queries(a, r, 2);
    }
    for (; r < a->queries; r++) block_queries(a, r, 1);
}
#undef BLOCK_FN
