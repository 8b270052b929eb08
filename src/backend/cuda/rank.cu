// SPDX-License-Identifier: MIT
// rank: softmax sums, terms and the k best of a row's logits. A block a row.
//
// The logits of all tokens lie in memory; a row looks at all of them, or at those of its lists. Its
// values v = lambda * sum of weight * logit + terms replace the logits of the first part; where that
// changes nothing, logits are values.
//
// The k best: every thread finds the best of its own tokens; the k-th of these is a bound that at
// least k values reach, so whatever is among the k best reaches it too. Those few are collected and
// sorted: higher first, of equals the lower token. If there are too many (ties), or k is large, the
// best are found one after the other. Where a row's values are its logits, threads remember how high their
// tokens were, a stretch at a time, while they sum: few stretches are read again.
#include "backend/cuda/device_math.cuh"
#include "backend/cuda/kernels_cuda.h"

enum { THREADS = 512, COLLECT = 1024, MOST_K = 256 };

struct tokens {
    const int32_t *list, *more;
    int listed, count, all; // of the list, of everything
    const uint32_t *bits;   // of the list, or NULL
};

static __device__ tokens tokens_of(const cuda_row_terms &t, int vocabulary)
{
    tokens s = {t.list.ids, t.more.ids, t.listed, t.found ? *t.found : t.list.count, vocabulary, t.bits};
    if (t.listed) s.all = s.count + t.more.count;
    return s;
}

static __device__ int token_at(const tokens &s, int i)
{
    if (!s.listed) return i;
    return i < s.count ? s.list[i] : s.more[i - s.count];
}

static __device__ bool has(const int32_t *ids, int n, int32_t token)
{
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (ids[middle] < token)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && ids[low] == token;
}

static __device__ bool may_choose(const tokens &s, int32_t token)
{
    if (!s.listed) return true;
    const bool there = s.bits ? s.bits[token / 32] >> token % 32 & 1 : has(s.list, s.count, token);
    return there || has(s.more, s.all - s.count, token);
}

#define EACH(i, n) for (int i = threadIdx.x; i < (n); i += THREADS)

// A sum of exp(x - most) that grows.
struct log_sums {
    float most, sum;
    __device__ __forceinline__ void add(float x)
    {
        if (x > most) {
            sum = fmaf(sum, expf(most - x), 1.0f);
            most = x;
        } else if (most > -INFINITY) {
            sum += expf(x - most);
        }
    }
    // Four at once: one look at what is largest, which is returned.
    __device__ __forceinline__ float add(float4 x)
    {
        const float now = fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w));
        if (now > most) {
            sum *= expf(most - now);
            most = now;
        }
        if (most > -INFINITY) sum += (expf(x.x - most) + expf(x.y - most)) + (expf(x.z - most) + expf(x.w - most));
        return now;
    }
};

// The tokens of a thread, four at a time, in stretches: the highest value of each.
struct heights {
    enum { STRETCHES = 8, AHEAD = 4 }; // AHEAD: fours that are on their way together
    float of[STRETCHES];
    int each; // fours of a stretch, the last may have fewer
    // `count`: fours of the row.
    __device__ __forceinline__ void sum(const float *logits, int count, log_sums *l)
    {
        const int own = (count + THREADS - 1) / THREADS;
        each = (own + STRETCHES * AHEAD - 1) / (STRETCHES * AHEAD) * AHEAD;
        CUDA_UNROLL
        for (int s = 0; s < STRETCHES; s++) {
            of[s] = -INFINITY;
            for (int j = s * each; j < (s + 1) * each && j * THREADS < count; j += AHEAD) {
                float4 x[AHEAD];
                CUDA_UNROLL
                for (int h = 0; h < AHEAD; h++) {
                    const int i = (j + h) * THREADS + (int)threadIdx.x;
                    x[h] = i < count ? ((const float4 *)logits)[i] : float4{-INFINITY, -INFINITY, -INFINITY, -INFINITY};
                }
                CUDA_UNROLL
                for (int h = 0; h < AHEAD; h++) of[s] = fmaxf(of[s], l->add(x[h]));
            }
        }
    }
    // Of a list: a thread's tokens BATCH at a time, whose places and then values are on their way together.
    enum { BATCH = 8 };
    template <typename F>
    static __device__ __forceinline__ void batch(const tokens &s, const float *v, int j, F f)
    {
        int32_t token[BATCH];
        float x[BATCH];
        CUDA_UNROLL
        for (int h = 0; h < BATCH; h++) {
            const int i = (j + h) * THREADS + (int)threadIdx.x;
            token[h] = i < s.all ? token_at(s, i) : -1;
        }
        CUDA_UNROLL
        for (int h = 0; h < BATCH; h++) x[h] = token[h] >= 0 ? v[token[h]] : -INFINITY;
        CUDA_UNROLL
        for (int h = 0; h < BATCH; h++)
            if (token[h] >= 0) f(x[h], token[h]);
    }
    __device__ __forceinline__ void sum_list(const tokens &s, const float *logits, log_sums *l)
    {
        const int own = (s.all + THREADS - 1) / THREADS;
        each = (own + STRETCHES * BATCH - 1) / (STRETCHES * BATCH) * BATCH;
        CUDA_UNROLL
        for (int n = 0; n < STRETCHES; n++) {
            of[n] = -INFINITY;
            for (int j = n * each; j < (n + 1) * each && j * THREADS < s.all; j += BATCH)
                batch(s, logits, j, [&](float x, int32_t) {
                    l->add(x);
                    of[n] = fmaxf(of[n], x);
                });
        }
    }
    template <typename F>
    __device__ __forceinline__ void list_again(const tokens &s, const float *v, float bound, F f) const
    {
        CUDA_UNROLL
        for (int n = 0; n < STRETCHES; n++) {
            if (of[n] < bound) continue;
            for (int j = n * each; j < (n + 1) * each && j * THREADS < s.all; j += BATCH) batch(s, v, j, f);
        }
    }
    // f(value, token) of all tokens in stretches that reach the bound.
    template <typename F> __device__ __forceinline__ void again(const float *v, int count, float bound, F f) const
    {
        CUDA_UNROLL
        for (int s = 0; s < STRETCHES; s++) {
            if (of[s] < bound) continue;
            for (int j = s * each; j < (s + 1) * each; j++) {
                const int i = j * THREADS + (int)threadIdx.x;
                if (i >= count) break;
                const float4 x = ((const float4 *)v)[i];
                f(x.x, 4 * i);
                f(x.y, 4 * i + 1);
                f(x.z, 4 * i + 2);
                f(x.w, 4 * i + 3);
            }
        }
    }
};

// *own: the largest that this thread saw; *high: of its stretches, without the last tokens of a row that has no list.
static __device__ float log_sum(const tokens &s, const float *logits, float *scratch, float *own, heights *high)
{
    log_sums l = {-INFINITY, 0.0f};
    if (s.listed) {
        high->sum_list(s, logits, &l);
    } else { // rows begin at multiples of 128 bytes
        high->sum(logits, s.all / 4, &l);
        EACH(i, s.all % 4) l.add(logits[s.all / 4 * 4 + i]);
    }
    *own = l.most;
    const float top = block_max<THREADS>(l.most, scratch);
    if (top == -INFINITY) return top;
    return top + logf(block_sum<THREADS>(l.most > -INFINITY ? l.sum * expf(l.most - top) : 0.0f, scratch));
}

static __device__ bool are_values(const cuda_ranking &r, const cuda_row_terms &t)
{
    return r.parts == 1 && t.lambda * r.weight[0] == 1.0f && !t.table && t.add_count == 0;
}

// Values of the row's tokens into the logits of the first part.
static __device__ void mix(const cuda_ranking &r, const cuda_row_terms &t, const tokens &s, int row,
                           const float *z)
{
    float *v = r.logits[0] + (size_t)row * r.stride;
    EACH(i, s.all)
    {
        const int token = token_at(s, i);
        float value = 0;
        for (int p = 0; p < r.parts; p++) {
            const float logit = r.logits[p][(size_t)row * r.stride + token];
            if (r.arithmetic)
                value += r.weight[p] * expf(fminf(logit - z[p], 88.0f));
            else
                value = fmaf(t.lambda * r.weight[p], logit, value);
        }
        if (r.arithmetic) value = t.lambda * logf(value);
        v[token] = t.table ? value + t.table[token] : value;
    }
    __syncthreads();
    for (int a = 0; a < t.add_count; a++) {
        EACH(i, t.add[a].count) v[t.add[a].ids[i]] += t.add[a].values[i];
        __syncthreads();
    }
}

// ---- the best -----------------------------------------------------------------------------------

static __device__ bool better(float a, int32_t one, float b, int32_t other)
{
    return a > b || (a == b && one < other);
}

// What may win, one by one: all tokens, or the allowed ones.
struct choices {
    tokens s;
    cuda_list allow;
    bool limited;
    int count;
};

static __device__ int32_t choice(const choices &c, int i)
{
    if (!c.limited) return token_at(c.s, i);
    const int32_t token = c.allow.ids[i];
    return may_choose(c.s, token) ? token : -1;
}

// Sorts n pairs, a power of two, best first.
static __device__ void sort(float *value, int32_t *token, int n)
{
    for (int size = 2; size <= n; size *= 2)
        for (int apart = size / 2; apart; apart /= 2) {
            __syncthreads();
            EACH(i, n)
            {
                const int j = i ^ apart;
                if (j < i) continue;
                const bool down = (i & size) == 0;
                if (better(value[j], token[j], value[i], token[i]) == down) {
                    const float f = value[i];
                    const int32_t t = token[i];
                    value[i] = value[j];
                    token[i] = token[j];
                    value[j] = f;
                    token[j] = t;
                }
            }
        }
    __syncthreads();
}

// Where the results of a row go, each written once: the memory may be the host's.
struct result {
    float *score, shift;
    int32_t *token;
    __device__ __forceinline__ void put(int at, float value, int32_t t) const
    {
        const float sum = value + shift;
        const bool there = sum > -INFINITY;
        score[at] = there ? sum : -INFINITY;
        token[at] = there ? t : -1;
    }
};

static __device__ void one_by_one(const choices &c, const float *v, int k, float *value, int32_t *token,
                                  const result &out)
{
    float last = INFINITY;
    int32_t last_token = -1;
    for (int n = 0; n < k; n++) {
        float best = -INFINITY;
        int32_t best_token = INT32_MAX;
        EACH(i, c.count)
        {
            const int32_t t = choice(c, i);
            if (t < 0 || !(v[t] > -INFINITY) || !better(last, last_token, v[t], t)) continue;
            if (better(v[t], t, best, best_token)) {
                best = v[t];
                best_token = t;
            }
        }
        __syncthreads();
        value[threadIdx.x] = best;
        token[threadIdx.x] = best_token;
        for (int h = THREADS / 2; h; h /= 2) {
            __syncthreads();
            const int j = threadIdx.x + h;
            if ((int)threadIdx.x < h && better(value[j], token[j], value[threadIdx.x], token[threadIdx.x])) {
                value[threadIdx.x] = value[j];
                token[threadIdx.x] = token[j];
            }
        }
        __syncthreads();
        last = value[0];
        last_token = token[0];
        if (threadIdx.x == 0) out.put(n, last, last_token);
        if (!(last > -INFINITY)) last_token = -1, last = -INFINITY;
    }
}

// A value that at least k of the row's reach: few k, the k-th of what the warps' best are; else of the threads'.
static __device__ float bound_of(float most, int k, float *value, int32_t *token)
{
    if (k > THREADS / 32) {
        value[threadIdx.x] = most;
        token[threadIdx.x] = threadIdx.x;
        sort(value, token, THREADS);
        return value[k - 1];
    }
    for (int n = 16; n; n /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, n));
    __syncthreads();
    if (threadIdx.x % 32 == 0) value[threadIdx.x / 32] = most;
    __syncthreads();
    if (threadIdx.x < THREADS / 32) {
        const float own = value[threadIdx.x];
        int before = 0;
        for (int j = 0; j < THREADS / 32; j++) before += value[j] > own || (value[j] == own && j < (int)threadIdx.x);
        if (before == k - 1) value[THREADS / 32] = own;
    }
    __syncthreads();
    return value[THREADS / 32];
}

static __device__ __forceinline__ void collect(float v, int32_t t, float bound, float *value, int32_t *token,
                                               int *collected)
{
    if (!(v >= bound) || !(v > -INFINITY)) return;
    const int at = atomicAdd(collected, 1);
    if (at < COLLECT) {
        value[at] = v;
        token[at] = t;
    }
}

// most: the best of this thread's own tokens, of which `never` may not win, and how high its stretches were; or these
// are not known.
static __device__ void best_of(const choices &c, const float *v, int k, float most, const heights &high, bool known,
                               int never, float *value, int32_t *token, int *collected, const result &out)
{
    const bool seen = known && !c.limited;
    if (!known || k + never > MOST_K) {
        never = 0;
        most = -INFINITY;
        EACH(i, c.count)
        {
            const int32_t t = choice(c, i);
            if (t >= 0) most = fmaxf(most, v[t]);
        }
    }
    if (threadIdx.x == 0) *collected = 0;
    if (k > MOST_K) {
        one_by_one(c, v, k, value, token, out);
        return;
    }
    const float bound = bound_of(most, k + never, value, token);
    __syncthreads();
    const auto take = [&](float x, int32_t t) { collect(x, t, bound, value, token, collected); };
    if (seen && c.s.listed) {
        high.list_again(c.s, v, bound, take);
    } else if (seen) {
        high.again(v, c.count / 4, bound, take);
        EACH(i, c.count % 4) take(v[c.count / 4 * 4 + i], c.count / 4 * 4 + i);
    } else {
        EACH(i, c.count)
        {
            const int32_t t = choice(c, i);
            if (t >= 0) take(v[t], t);
        }
    }
    __syncthreads();
    const int n = *collected;
    if (n > COLLECT) {
        one_by_one(c, v, k, value, token, out);
        return;
    }
    // The place of each is the number of those that are better.
    EACH(i, n)
    {
        int before = 0;
        for (int j = 0; j < n; j++) before += better(value[j], token[j], value[i], token[i]);
        if (before < k) out.put(before, value[i], token[i]);
    }
    EACH(i, k)
        if (i >= n) out.put(i, -INFINITY, -1);
}

static __global__ void __launch_bounds__(THREADS) rank_rows(cuda_ranking r)
{
    __shared__ float value[COLLECT], scratch[32], z[CUDA_PARTS];
    __shared__ int32_t token[COLLECT];
    __shared__ int collected;
    begin_kernel();
    const int row = blockIdx.x;
    const cuda_row_terms &t = r.terms[r.base ? 0 : row];
    const tokens s = tokens_of(t, r.vocabulary);
    float shift = (r.base ? r.base[row] : t.base) + t.constant, most = -INFINITY;
    heights high = {};
    for (int p = 0; p < r.parts; p++) {
        const float *logits = r.logits[p] + (size_t)row * r.stride;
        const float sum = r.normalise ? log_sum(s, logits, scratch, &most, &high) : 0.0f;
        if (r.sizes && threadIdx.x == 0) r.sizes[row] = s.all;
        if (r.log_z && threadIdx.x == 0) r.log_z[row * r.parts + p] = sum;
        if (threadIdx.x == 0) z[p] = sum;
        if (!r.arithmetic && r.normalise) shift -= t.lambda * r.weight[p] * sum;
    }
    __syncthreads();
    if (!are_values(r, t)) mix(r, t, s, row, z);
    float *v = r.logits[0] + (size_t)row * r.stride;
    EACH(i, r.watch_count)
    {
        const int32_t w = r.watch[row * r.watch_count + i];
        const bool there = w >= 0 && may_choose(s, w);
        r.watch_score[row * r.watch_count + i] = there ? v[w] + shift : -INFINITY;
    }
    __syncthreads();
    EACH(i, r.never.count) v[r.never.ids[i]] = -INFINITY;
    EACH(i, t.deny.count) v[t.deny.ids[i]] = -INFINITY;
    __syncthreads();
    const choices c = {s, t.allow, t.allowed != 0, t.allowed ? t.allow.count : s.all};
    const result out = {r.score + (size_t)row * r.k, shift, r.token + (size_t)row * r.k};
    const bool known = r.normalise && are_values(r, t) && !t.allowed; // what a thread saw were values
    best_of(c, v, r.k, most, high, known, r.never.count + t.deny.count, value, token, &collected, out);
}

void cuda_run_rank(cuda_tape *tape, const cuda_ranking *r)
{
    if (r->rows <= 0) return;
    CUDA_LAUNCH(rank_rows, (unsigned)r->rows, THREADS, 0, tape, *r);
    cuda_tape_made_none(tape);
}
