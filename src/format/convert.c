// SPDX-License-Identifier: MIT
// Conversion of a matrix to a storage type, and its errors; see convert.h.
//
// Runs once per model: plain C in the order of the rows, so that the same input gives the same file
// everywhere.
#include "format/convert.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "format/quantize.h"

// No limit on the fraction bits of i16: a matrix of small numbers keeps 15 significant bits, too.
enum { I16_BITS_MAX = 30 };

int dgm_convert_type(const char *name)
{
    static const int types[] = {DGM_TYPE_F32, DGM_TYPE_F16, DGM_TYPE_BF16, DGM_TYPE_I16,
                                DGM_TYPE_I8};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(name, dgm_tensor_type_name(types[i])) == 0) return types[i];
    return -1;
}

int dgm_convert_scales(int type, int rows)
{
    return type == DGM_TYPE_I8 ? rows : type == DGM_TYPE_I16 ? 1 : 0;
}

static dgm_status store_halves(const char *name, const float *real, size_t n, int type,
                               uint16_t *out, dgm_error *err)
{
    bool half = type == DGM_TYPE_F16;
    for (size_t i = 0; i < n; i++) {
        out[i] = half ? dgm_float_to_half(real[i]) : dgm_float_to_bf16(real[i]);
        float back = half ? dgm_half_to_float(out[i]) : dgm_bf16_to_float(out[i]);
        DGM_FAIL_IF(!isfinite(back), err, DGM_ERR_UNSUPPORTED,
                    "tensor '%s' has the value %g, too large for %s", name, (double)real[i],
                    dgm_tensor_type_name(type));
    }
    return DGM_OK;
}

// Element i of row r as a reader will see it, and the largest |value| its scale allows.
static float stored(const void *data, const float *scale, int type, size_t i, size_t r,
                    float *limit)
{
    *limit = INFINITY;
    switch (type) {
    case DGM_TYPE_I8:
        *limit = 127.5f * scale[r];
        return (float)((const int8_t *)data)[i] * scale[r];
    case DGM_TYPE_I16:
        *limit = 32767.5f * scale[0];
        return (float)((const int16_t *)data)[i] * scale[0];
    case DGM_TYPE_F16:
        return dgm_half_to_float(((const uint16_t *)data)[i]);
    case DGM_TYPE_BF16:
        return dgm_bf16_to_float(((const uint16_t *)data)[i]);
    default:
        return ((const float *)data)[i];
    }
}

static void measure(const float *real, int rows, int cols, int type, const void *data,
                    const float *scale, dgm_convert_error *e)
{
    *e = (dgm_convert_error){0};
    size_t i = 0;
    for (size_t r = 0; r < (size_t)rows; r++)
        for (int c = 0; c < cols; c++, i++) {
            float limit, back = stored(data, scale, type, i, r, &limit);
            double w = (double)real[i], d = fabs(w - (double)back);
            e->largest = fmax(e->largest, fabs(w));
            e->max_error = fmax(e->max_error, d);
            e->squares += w * w;
            e->of_errors += d * d;
            e->saturated += fabsf(real[i]) > limit;
            e->vanished += real[i] != 0 && back == 0;
        }
}

dgm_status dgm_convert(const char *name, const float *real, int rows, int cols, int type,
                       void *data, float *scale, dgm_convert_error *error, dgm_error *err)
{
    size_t n = (size_t)rows * (size_t)cols;
    for (size_t i = 0; i < n; i++)
        DGM_FAIL_IF(!isfinite(real[i]), err, DGM_ERR_FORMAT,
                    "tensor '%s' has values that are not finite", name);
    if (type == DGM_TYPE_I8)
        dgm_quantize_i8(real, rows, cols, data, scale);
    else if (type == DGM_TYPE_I16)
        dgm_quantize_i16(real, rows, cols, I16_BITS_MAX, data, scale);
    else if (type == DGM_TYPE_F32)
        memcpy(data, real, n * sizeof(float));
    else
        DGM_TRY(store_halves(name, real, n, type, data, err));
    if (error) measure(real, rows, cols, type, data, scale, error);
    return DGM_OK;
}
