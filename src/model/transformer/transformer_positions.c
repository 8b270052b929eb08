// SPDX-License-Identifier: MIT
// Where a token stands: tables that are added to embeddings (sinusoids, learned positions), and
// tables that are added to the scores of self-attention by how far apart query and key are (T5).
//
// Relative positions. Distances fall into buckets, near ones each into its own, far ones by their
// logarithm, all from `distance` on into the last; in the encoder keys before and behind the query
// have half of the buckets each. A tensor has a bias per bucket and head; here it is unrolled to one
// per distance, [heads, 2 reach - 1], as attention reads it.
//
// Sinusoids. (float)sin(p * rate) of half a million angles would be a third of what opening a base model costs. An
// angle is put together from two, of which both have few values: sin(a + b) = sin a cos b + cos a sin b, in doubles.
// That is off by less than a `doubt`; where it lies as near to the middle between two floats, the sine is computed. So
// every bit is the sine's.
#include <math.h>

#include "base/mem.h"
#include "model/transformer/transformer_private.h"

// Tables are computed for this many positions, or more if the model's defaults ask for it.
enum { POSITIONS = 1024, STRIDE = 32 };

static int positions_wanted(const dgm_model *m)
{
    int rows = POSITIONS;
    if (m->info.defaults.max_source > rows) rows = m->info.defaults.max_source;
    if (m->info.defaults.max_length + 2 > rows) rows = m->info.defaults.max_length + 2;
    return rows;
}

// ---- of tokens ----------------------------------------------------------------------------------

// x as a float, if it is the same one whatever x is off by; else what was asked for.
static inline float certain(double x, double doubt, double (*ask)(double), double angle)
{
    const float low = (float)(x - doubt), high = (float)(x + doubt);
    return low == high ? low : (float)ask(angle);
}

// Row p of the table: sines of p * rates[i], then cosines.
static void fill_sinusoids(float *table, int rows, int half, const double *rates, double *scratch)
{
    double *far_sin = scratch, *far_cos = far_sin + half, *near_sin = far_cos + half,
           *near_cos = near_sin + STRIDE * half;
    for (int k = 0; k < STRIDE; k++)
        for (int i = 0; i < half; i++) {
            near_sin[k * half + i] = sin(k * rates[i]);
            near_cos[k * half + i] = cos(k * rates[i]);
        }
    for (int p = 0; p < rows; p++, table += 2 * half) {
        const double *ks = near_sin + p % STRIDE * half, *kc = near_cos + p % STRIDE * half;
        for (int i = 0; i < half; i++) {
            const double angle = p * rates[i];
            if (p % STRIDE == 0) far_sin[i] = sin(angle), far_cos[i] = cos(angle);
            // In 2^-53: of an angle, which is rounded as a product, 1 here and 1 in its two parts; of all values, 5.
            const double doubt = (angle + 4) * 0x1p-52;
            table[i] = certain(far_sin[i] * kc[i] + far_cos[i] * ks[i], doubt, sin, angle);
            table[half + i] = certain(far_cos[i] * kc[i] - far_sin[i] * ks[i], doubt, cos, angle);
        }
    }
}

dgm_status dgm_transformer_sinusoids(float *table, int rows, int d, bool marian, dgm_error *err)
{
    const int half = d / 2;
    double *rates = dgm_malloc((size_t)(3 + 2 * STRIDE) * (size_t)half * sizeof *rates);
    if (!rates) return dgm_no_memory(err);
    for (int i = 0; i < half; i++)
        rates[i] = marian ? exp(-log(10000.0) * i / (half > 1 ? half - 1 : 1)) : pow(10000.0, -2.0 * i / d);
    fill_sinusoids(table, rows, half, rates, rates + half);
    dgm_free(rates);
    return DGM_OK;
}

static dgm_status make_sinusoids(dgm_model *m, transformer *t, bool marian, dgm_error *err)
{
    const int first = t->enc.position_offset > t->dec.position_offset ? t->enc.position_offset
                                                                      : t->dec.position_offset;
    const int wanted = positions_wanted(m), rows = wanted + first;
    float *table = dgm_malloc((size_t)rows * (size_t)t->d * sizeof(float));
    if (!table) return dgm_no_memory(err);
    dgm_status st = dgm_transformer_sinusoids(table, rows, t->d, marian, err);
    if (st == DGM_OK) st = dgm_vector_from(m->backend, table, rows, t->d, &t->enc.positions, err);
    dgm_free(table);
    m->info.max_source = m->info.max_target = wanted;
    return st;
}

static dgm_status load_table(dgm_model *m, const char *name, int d, dgm_need need, dgm_vector **out,
                             int *rows, dgm_error *err)
{
    const dgm_tensor *tensor = NULL;
    DGM_TRY(dgm_gguf_matrix(m->file, name, -1, d, need, &tensor, err));
    if (!tensor) return DGM_OK;
    float *table = dgm_malloc((size_t)tensor->rows * (size_t)d * sizeof(float));
    if (!table) return dgm_no_memory(err);
    dgm_tensor_to_f32(tensor, table);
    dgm_status st = dgm_vector_from(m->backend, table, tensor->rows, d, out, err);
    *rows = tensor->rows;
    dgm_free(table);
    return st;
}

dgm_status dgm_transformer_positions(dgm_model *m, transformer *t, const settings *s, dgm_error *err)
{
    if (s->positions == NO_POSITIONS) return DGM_OK;
    if (s->positions == RELATIVE) {
        t->reach = m->info.max_source = m->info.max_target = positions_wanted(m);
        return DGM_OK;
    }
    if (s->positions != LEARNED) return make_sinusoids(m, t, s->positions == SINUSOID_MARIAN, err);
    int rows = 0;
    DGM_TRY(load_table(m, "enc.pos", t->d, DGM_REQUIRED, &t->enc.positions, &rows, err));
    m->info.max_source = rows - t->enc.position_offset;
    DGM_TRY(load_table(m, "dec.pos", t->d, DGM_OPTIONAL, &t->dec.positions, &rows, err));
    m->info.max_target = rows - t->dec.position_offset;
    DGM_FAIL_IF(m->info.max_source < 1 || m->info.max_target < 2, err, DGM_ERR_FORMAT,
                "the tables of positions are too short");
    return DGM_OK;
}

// ---- of pairs of tokens -------------------------------------------------------------------------

// In single precision, as models were trained: at some distances a double falls into another bucket.
int dgm_transformer_bucket(int ahead, bool both_ways, int buckets, int distance)
{
    int first = 0, apart = ahead;
    if (both_ways) {
        buckets /= 2;
        first = ahead > 0 ? buckets : 0;
        apart = ahead < 0 ? -ahead : ahead;
    } else {
        apart = ahead < 0 ? -ahead : 0;
    }
    const int near = buckets / 2;
    if (apart < near) return first + apart;
    const float far = logf((float)apart / (float)near) / (float)log((double)distance / near);
    const int bucket = near + (int)(far * (float)(buckets - near));
    return first + (bucket < buckets ? bucket : buckets - 1);
}

dgm_status dgm_transformer_relative(dgm_model *m, const char *prefix, bool both_ways, dgm_need need,
                                    dgm_vector **out, dgm_error *err)
{
    const transformer *t = m->weights;
    const int heads = both_ways ? t->enc.heads : t->dec.heads, reach = t->reach;
    const tensor_name name = dgm_transformer_name("%s.self.rel", prefix);
    const dgm_tensor *tensor = NULL;
    DGM_TRY(dgm_gguf_matrix(m->file, name.text, t->buckets, heads, need, &tensor, err));
    if (!tensor) return DGM_OK;
    const size_t width = 2 * (size_t)reach - 1, stored = (size_t)t->buckets * (size_t)heads;
    float *bias = dgm_malloc((stored + (size_t)heads * width) * sizeof(float));
    if (!bias) return dgm_no_memory(err);
    float *table = bias + stored;
    dgm_tensor_to_f32(tensor, bias);
    for (int i = 0; i < (int)width; i++) {
        const int bucket =
            dgm_transformer_bucket(i - (reach - 1), both_ways, t->buckets, t->distance);
        for (int h = 0; h < heads; h++)
            table[(size_t)h * width + (size_t)i] = bias[(size_t)(bucket * heads + h)];
    }
    *out = NULL;
    dgm_status st = dgm_vector_from(m->backend, table, heads, (int)width, out, err);
    dgm_free(bias);
    return st;
}
