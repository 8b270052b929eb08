// SPDX-License-Identifier: MIT
// bench/products DEVICE PRECISION SECONDS ROWS[,ROWS...] INPUTSxOUTPUTS...: what a product costs on a device, by shape.
//
// For every shape and number of rows a line "rows inputs outputs best median": microseconds of one product with its
// bias, from queues of QUEUE products over SETS copies of the weights in turn, which a worker is asked for and waits
// for, less what a queue with few costs. SECONDS: how long a line may take. The weights are random.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/ops.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"

enum { SETS = 8, QUEUE = 64, FEW = 8, ROUNDS_MAX = 2000, ROWS_MAX = 16 };

typedef struct shape {
    int inputs, outputs;
} shape;

static void check(dgm_status st, const dgm_error *err)
{
    if (st == DGM_OK) return;
    fprintf(stderr, "bench/products: %s\n", err->text);
    exit(1);
}

static void *need(void *p)
{
    if (p) return p;
    fprintf(stderr, "bench/products: out of memory\n");
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static dgm_precision precision_of(const char *name)
{
    static const char *const names[] = {"f32", "i16", "i8", "f16", "bf16"};
    static const dgm_precision values[] = {DGM_PRECISION_F32, DGM_PRECISION_I16, DGM_PRECISION_I8, DGM_PRECISION_F16,
                                           DGM_PRECISION_BF16};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (strcmp(names[i], name) == 0) return values[i];
    fprintf(stderr, "bench/products: '%s' is not one of f32, i16, i8, f16, bf16\n", name);
    exit(2);
}

static float *noise(size_t count)
{
    dgm_rng rng = {3};
    float *v = need(malloc(count * sizeof *v));
    for (size_t i = 0; i < count; i++) v[i] = (float)(dgm_rng_unit(&rng) - 0.5) * 0.1f;
    return v;
}

static void load(dgm_backend *b, shape s, dgm_precision precision, dgm_linear *weights[SETS])
{
    dgm_error err;
    const size_t count = (size_t)s.inputs * (size_t)s.outputs;
    float *numbers = noise(count), *bias = noise((size_t)s.outputs);
    const dgm_tensor w = {.name = "w", .type = DGM_TYPE_F32, .n_dims = 2, .rows = s.outputs, .cols = s.inputs,
                          .data = numbers, .bytes = count * sizeof *numbers};
    const dgm_linear_part part = {.weight = &w, .bias = bias};
    for (int i = 0; i < SETS; i++) check(dgm_linear_load(b, &part, 1, precision, &weights[i], &err), &err);
    free(numbers);
    free(bias);
}

// Seconds of a queue of `count` products.
static double queue(dgm_exec *x, dgm_mat y, dgm_mat in, dgm_linear *const *weights, int count)
{
    const double begin = dgm_now();
    for (int i = 0; i < count; i++) dgm_op_linear(x, y, in, weights[i % SETS], DGM_ACT_NONE, NULL);
    dgm_exec_sync(x);
    return dgm_now() - begin;
}

static void measure(dgm_backend *b, dgm_linear *const *weights, shape s, int rows, double seconds)
{
    dgm_error err;
    dgm_exec *x = NULL;
    dgm_bytes bytes = dgm_bytes_both(1 << 22);
    bytes.device += dgm_exec_mat_bytes(b, rows, s.inputs) + dgm_exec_mat_bytes(b, rows, s.outputs);
    check(dgm_exec_open(b, bytes, &x, &err), &err);
    const dgm_mat in = dgm_exec_mat(x, rows, s.inputs), y = dgm_exec_mat(x, rows, s.outputs);
    float *numbers = noise((size_t)rows * (size_t)s.inputs);
    dgm_op_write(x, in, numbers);
    dgm_exec_sync(x);
    free(numbers);
    static double few[ROUNDS_MAX], many[ROUNDS_MAX];
    int n = 0;
    for (int i = 0; i < 4; i++) queue(x, y, in, weights, i % 2 ? QUEUE : FEW); // graphs are made of what comes again
    const double begin = dgm_now();
    while (n < ROUNDS_MAX && (n < 3 || dgm_now() - begin < seconds)) {
        few[n] = queue(x, y, in, weights, FEW);
        many[n++] = queue(x, y, in, weights, QUEUE);
    }
    check(dgm_exec_status(x, &err), &err);
    dgm_exec_close(&x);
    qsort(few, (size_t)n, sizeof *few, by_value);
    qsort(many, (size_t)n, sizeof *many, by_value);
    printf("%d %d %d %.3f %.3f\n", rows, s.inputs, s.outputs, (many[0] - few[0]) / (QUEUE - FEW) * 1e6,
           (many[n / 2] - few[n / 2]) / (QUEUE - FEW) * 1e6);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    dgm_error err;
    dgm_backend *b = NULL;
    int rows[ROWS_MAX], count = 0;
    if (argc < 6) {
        fprintf(stderr, "usage: products DEVICE PRECISION SECONDS ROWS[,ROWS...] INPUTSxOUTPUTS...\n");
        return 2;
    }
    const dgm_precision precision = precision_of(argv[2]);
    for (char *p = strtok(argv[4], ","); p && count < ROWS_MAX; p = strtok(NULL, ",")) rows[count++] = atoi(p);
    check(dgm_backend_open(&b, argv[1], NULL, &err), &err);
    for (int k = 5; k < argc; k++) {
        shape s;
        if (sscanf(argv[k], "%dx%d", &s.inputs, &s.outputs) != 2 || s.inputs < 1 || s.outputs < 1) {
            fprintf(stderr, "bench/products: '%s' is no shape such as 512x2048\n", argv[k]);
            return 2;
        }
        dgm_linear *weights[SETS] = {0};
        load(b, s, precision, weights);
        for (int i = 0; i < count; i++)
            if (rows[i] > 0) measure(b, weights, s, rows[i], atof(argv[3]));
        for (int i = 0; i < SETS; i++) dgm_linear_free(b, &weights[i]);
    }
    dgm_backend_close(&b);
    return 0;
}
