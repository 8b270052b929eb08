// SPDX-License-Identifier: MIT
// CPU backend: which variant of its kernel each shape of the loaded layers takes, in words. The choice itself is the
// kernels' (kernel/variants.h).
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/cpu/cpu_private.h"
#include "kernel/variants.h"

static bool is_shape_of(const cpu_shape *s, const dgm_linear *l)
{
    return s->precision == l->precision && s->rows == l->rows && s->cols == l->cols;
}

void cpu_count_layer(dgm_backend *b, dgm_linear *l, bool comes)
{
    if (l->counted == comes) return;
    pthread_mutex_lock(&b->lock);
    int i = 0;
    while (i < b->shape_count && !is_shape_of(&b->shapes[i], l)) i++;
    if (i == b->shape_count && i < CPU_SHAPES && comes)
        b->shapes[b->shape_count++] = (cpu_shape){l->precision, l->rows, l->cols, 0};
    if (i < b->shape_count) {
        b->shapes[i].layers += comes ? 1 : -1;
        l->counted = comes;
    }
    pthread_mutex_unlock(&b->lock);
}

// A line that is being written: what does not fit any more is left out.
typedef struct line {
    char *text;
    size_t size, used;
} line;

__attribute__((format(printf, 2, 3))) static void add(line *l, const char *format, ...)
{
    if (l->used >= l->size) return;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(l->text + l->used, l->size - l->used, format, args);
    va_end(args);
    l->used = n < 0 || (size_t)n >= l->size - l->used ? l->size : l->used + (size_t)n;
}

typedef struct steps {
    dgm_variant_step step[DGM_VARIANT_STEPS];
    int count;
} steps;

static steps steps_of(const dgm_backend *b, const cpu_shape *s)
{
    steps out = {.count = 0};
    out.count = dgm_variant_steps(b->flags, s->precision, s->rows, s->cols, out.step);
    return out;
}

static bool are_same(const steps *a, const steps *b)
{
    if (a->count != b->count) return false;
    for (int i = 0; i < a->count; i++)
        if (a->step[i].variant != b->step[i].variant || a->step[i].rows != b->step[i].rows) return false;
    return true;
}

// "vnni to 3 rows, amx from 4"
static void add_steps(line *out, const steps *s)
{
    for (int i = 0; i < s->count; i++) {
        add(out, "%s%s", i ? ", " : "", s->step[i].variant);
        if (i > 0) add(out, " from %d", s->step[i].rows);
        if (i + 1 < s->count) add(out, " to %d row%s", s->step[i + 1].rows - 1, s->step[i + 1].rows > 2 ? "s" : "");
    }
}

const char *cpu_variants(dgm_backend *b, char *buffer, size_t size)
{
    bool said[CPU_SHAPES] = {false};
    line out = {buffer, size, 0};
    if (size) buffer[0] = '\0';
    pthread_mutex_lock(&b->lock);
    for (int i = 0; i < b->shape_count; i++) {
        const cpu_shape *first = &b->shapes[i];
        if (said[i] || first->layers == 0) continue;
        const steps s = steps_of(b, first);
        add(&out, "%s%s", out.used ? "; " : "", dgm_precision_names[first->precision]);
        for (int j = i; j < b->shape_count; j++) {
            const cpu_shape *other = &b->shapes[j];
            const steps o = steps_of(b, other);
            if (said[j] || other->layers == 0 || other->precision != first->precision || !are_same(&s, &o)) continue;
            said[j] = true;
            add(&out, " %dx%d", other->cols, other->rows);
        }
        add(&out, ": ");
        add_steps(&out, &s);
    }
    if (b->shape_count == CPU_SHAPES) add(&out, "; and others");
    pthread_mutex_unlock(&b->lock);
    return buffer;
}
