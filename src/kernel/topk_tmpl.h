// SPDX-License-Identifier: MIT
// The k best of a stream of scores, over a 16-lane vector.
//
// topk_<isa>.c includes a vec_<isa>.h, names TOPK_F32 and includes this. Almost no element enters
// the list, so a vector is first compared with the worst entry; only hits are inserted. A list that is not full has
// no worst entry: the k-th of the 16 lanes' largest scores takes its place, since k scores reach it.
// Order: higher score first, then lower token. -inf and NaN never enter.
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { TOPK_LANES = 16, TOPK_LONG = 64, TOPK_ENOUGH = 512 };

static inline int32_t topk_token(int32_t first, const int32_t *ids, int i)
{
    return ids ? ids[i] : first + i;
}

static inline void topk_insert(dgm_topk *list, float score, int32_t token)
{
    int i = list->k - 1;
    if (!(score > list->score[i] || (score == list->score[i] && token < list->token[i]))) return;
    while (i > 0 && (score > list->score[i - 1] ||
                     (score == list->score[i - 1] && token < list->token[i - 1]))) {
        list->score[i] = list->score[i - 1];
        list->token[i] = list->token[i - 1];
        i--;
    }
    list->score[i] = score;
    list->token[i] = token;
}

// Offers x[i + b] for every set bit b.
static inline void topk_offer(dgm_topk *list, const float *x, int i, uint64_t hits, int32_t first,
                              const int32_t *ids)
{
    while (hits) {
        const int at = i + __builtin_ctzll(hits);
        hits &= hits - 1;
        topk_insert(list, x[at], topk_token(first, ids, at));
    }
}

// The next float below x, which is not -inf or NaN.
static inline float topk_below(float x)
{
    uint32_t bits;
    if (x == 0.0f) return -0x1p-149f;
    memcpy(&bits, &x, sizeof bits);
    bits += x > 0.0f ? -1u : 1u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// A score that at least k of x[0 .. n) are above, or -inf. After a NaN its lane begins again: still one of its scores.
static inline float topk_bar(const float *x, int n, int k)
{
    float lane[TOPK_LANES], least = INFINITY;
    vf max = vf_set(-INFINITY);
    for (int i = 0; i + 16 <= n; i += 16) max = vf_max(max, vf_load(x + i));
    if (__builtin_popcount(vf_greater_bits(max, vf_set(-INFINITY))) < k) return -INFINITY;
    vf_store(lane, max);
    for (int i = 0; i < TOPK_LANES; i++) // the least that fewer than k are above; a NaN is not less than anything
        if (lane[i] < least && __builtin_popcount(vf_greater_bits(max, vf_set(lane[i]))) < k) least = lane[i];
    return topk_below(least);
}

static void TOPK_F32(dgm_topk *list, const float *x, int n, int32_t first, const int32_t *ids)
{
    if (list->k <= 0 || n <= 0) return;
    // If every token so far is lower than the new ones, a tie loses and `greater` decides.
    const int32_t lowest = topk_token(first, ids, 0);
    bool ascending = true;
    for (int i = 0; i < list->k; i++) ascending &= list->token[i] < lowest;
    if (!ascending) {
        for (int i = 0; i < n; i++) topk_insert(list, x[i], topk_token(first, ids, i));
        return;
    }
    const float *worst = &list->score[list->k - 1];
    float least = -INFINITY;
    if (*worst == -INFINITY && list->k <= TOPK_LANES && n >= TOPK_LONG)
        least = topk_bar(x, n < TOPK_ENOUGH ? n : TOPK_ENOUGH, list->k);
    vf bar = vf_set(*worst > least ? *worst : least);
    int i = 0;
    for (; i + 64 <= n; i += 64) {
        uint64_t hits = 0;
        for (int t = 0; t < 4; t++)
            hits |= (uint64_t)vf_greater_bits(vf_load(x + i + 16 * t), bar) << (16 * t);
        if (hits == 0) continue;
        topk_offer(list, x, i, hits, first, ids);
        bar = vf_set(*worst > least ? *worst : least);
    }
    for (; i < n; i += 16) {
        const int count = n - i < 16 ? n - i : 16;
        const vf v = count == 16 ? vf_load(x + i) : vf_load_n(x + i, count);
        const uint64_t hits = vf_greater_bits(v, vf_set(*worst)) & ((1u << count) - 1u);
        topk_offer(list, x, i, hits, first, ids);
    }
}
