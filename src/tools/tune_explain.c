// SPDX-License-Identifier: MIT
// Why optimisations paid or did not: pairs of settings that differ in one option, in sentences with numbers of what was
// counted while they translated.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/tune_private.h"

enum { WORDS = 48 };

typedef struct words {
    dgm_text item[WORDS]; // an option with its value
    int count;
} words;

static words split(const char *options)
{
    words w = {.count = 0};
    for (const char *p = options; (p = strstr(p, "--")) && w.count < WORDS;) {
        const char *next = strstr(p + 2, " --");
        w.item[w.count++] = (dgm_text){p, next ? (size_t)(next - p) : strlen(p)};
        p += w.item[w.count - 1].size;
    }
    return w;
}

static size_t name_size(dgm_text option)
{
    size_t n = 0;
    while (n < option.size && option.data[n] != ' ') n++;
    return n;
}

static const dgm_text *find_option(const words *w, dgm_text option)
{
    const size_t n = name_size(option);
    for (int i = 0; i < w->count; i++)
        if (name_size(w->item[i]) == n && memcmp(w->item[i].data, option.data, n) == 0) return &w->item[i];
    return NULL;
}

// An option goes with another one and says nothing alone.
static bool is_companion(dgm_text option)
{
    return strncmp(option.data, "--margin ", 9) == 0 || strncmp(option.data, "--cube-key ", 11) == 0;
}

// The one option that two settings differ in; false: there are several, or none. What one hypothesis makes meaningless
// is not counted.
static bool one_difference(const char *a, const char *b, dgm_text *in_a, dgm_text *in_b)
{
    const words x = split(a), y = split(b);
    const bool greedy = strstr(a, "--beam 1 ") || strstr(b, "--beam 1 ");
    int count = 0;
    *in_a = *in_b = (dgm_text){"", 0};
    for (int i = 0; i < x.count; i++) {
        const dgm_text *other = find_option(&y, x.item[i]);
        if (other && dgm_text_equal(*other, x.item[i])) continue;
        if (is_companion(x.item[i]) || (!other && greedy && strncmp(x.item[i].data, "--finish ", 9) == 0)) continue;
        *in_a = x.item[i];
        *in_b = other ? *other : (dgm_text){"", 0};
        count++;
    }
    for (int i = 0; i < y.count; i++) {
        if (find_option(&x, y.item[i]) || is_companion(y.item[i])) continue;
        if (greedy && strncmp(y.item[i].data, "--finish ", 9) == 0) continue;
        *in_b = y.item[i];
        count++;
    }
    return count == 1;
}

static void put_option(dgm_writer *w, dgm_text option)
{
    if (option.size)
        dgm_write_bytes(w, option.data, option.size);
    else
        dgm_write_text(w, "the default");
}

// What was counted that bears on the option.
static void put_reason(const dgm_tune_point *a, const dgm_tune_point *b, dgm_text option, dgm_writer *w)
{
    const char *name = option.data;
    if (strncmp(name, "--shortlist", 11) == 0)
        dgm_write_format(w, "; a step looks at %.1f %% of the vocabulary instead of %.1f %%", 100 * a->active_share,
                         100 * b->active_share);
    else if (strncmp(name, "--search", 8) == 0)
        dgm_write_format(
            w, "; %.1f %% of the hypotheses shared the scores of another one, and a step had %.1f rows, not %.1f",
            100 * a->merged_share, a->rows_per_step, b->rows_per_step);
    else if (strncmp(name, "--beam ", 7) == 0)
        dgm_write_format(w,
                         "; a step has %.1f rows instead of %.1f, and a line takes %.2f steps of the batch, not %.2f",
                         a->rows_per_step, b->rows_per_step, a->steps_per_line, b->steps_per_line);
    else if (strncmp(name, "--beam-width", 12) == 0)
        dgm_write_format(w, "; of the rows of a step %.0f %% are left",
                         b->rows_per_step > 0 ? 100 * a->rows_per_step / b->rows_per_step : 0);
    else if (strncmp(name, "--finish", 8) == 0)
        dgm_write_format(w, "; a line takes %.2f steps of the batch instead of %.2f, with %.1f rows each, not %.1f",
                         a->steps_per_line, b->steps_per_line, a->rows_per_step, b->rows_per_step);
    else if (strncmp(name, "--precision", 11) == 0 || strncmp(name, "--static", 8) == 0)
        dgm_write_format(w,
                         "; weights and work take %.0f MiB instead of %.0f, and %.0f %% of the lines come out the same",
                         (double)a->bytes / 1048576, (double)b->bytes / 1048576, 100 * a->same);
}

static void put_pair(const dgm_tune_report *r, const dgm_tune_point *a, const dgm_tune_point *b, dgm_text in_a,
                     dgm_text in_b, dgm_writer *w)
{
    const double ratio = a->gain / b->gain;
    const double noise = hypot(log(a->speed_high / a->speed_low), log(b->speed_high / b->speed_low)) / 2;
    const double lost = a->loss - b->loss;
    const bool sure = fabs(log(ratio)) > noise;
    dgm_write_text(w, "- ");
    put_option(w, in_a);
    dgm_write_text(w, " against ");
    put_option(w, in_b);
    dgm_write_format(w, ": %s, %.2f times as fast (%.2f to %.2f)",
                     !sure       ? "made no difference that can be told"
                     : ratio > 1 ? "paid"
                                 : "did not pay",
                     ratio, ratio * exp(-noise), ratio * exp(noise));
    const bool same_lines = a->lines == b->lines;
    if (same_lines) dgm_write_format(w, ", %s %s%.2f", r->metric, lost > 0 ? "-" : "+", fabs(lost));
    put_reason(a, b, in_a.size ? in_a : in_b, w);
    dgm_write_format(w, " (%llu lines)\n", (unsigned long long)(a->lines < b->lines ? a->lines : b->lines));
}

// The option's name stands in the list already: one pair of each is enough, the one nearest to the choice.
static bool is_told(const words *told, dgm_text a, dgm_text b)
{
    for (int i = 0; i + 1 < told->count; i += 2)
        if ((dgm_text_equal(told->item[i], a) && dgm_text_equal(told->item[i + 1], b)) ||
            (dgm_text_equal(told->item[i], b) && dgm_text_equal(told->item[i + 1], a)))
            return true;
    return told->count + 2 > WORDS;
}

static bool has_run(const dgm_tune_point *p)
{
    return !(p->flags & DGM_TUNE_UNTRIED) && p->gain > 0;
}

static void tell(words *told, const dgm_tune_report *r, const dgm_tune_point *a, const dgm_tune_point *b, dgm_writer *w)
{
    dgm_text in_a, in_b;
    if (a == b || a->model != b->model || !has_run(a) || !has_run(b)) return;
    if ((a->flags ^ b->flags) & DGM_TUNE_TIMED) return; // other clocks
    if (!one_difference(a->options, b->options, &in_a, &in_b) || is_told(told, in_a, in_b)) return;
    told->item[told->count++] = in_a;
    told->item[told->count++] = in_b;
    put_pair(r, a, b, in_a, in_b, w);
}

static void put_shares(const char *whose, const struct dgm_tune_shares *s, dgm_writer *w)
{
    if (s->products <= 0) return;
    dgm_write_format(
        w,
        "Of the time of the %s settings %.0f %% are products with weights, those of the output layer among them "
        "(%.1f multiply-adds for every byte that is read); the output layer with the choice among its tokens takes "
        "%.0f %%, search %.0f %%.\n",
        whose, 100 * s->products, s->adds_per_byte, 100 * s->output, 100 * s->search);
}

static void put_batches(const dgm_tune_report *r, dgm_writer *w)
{
    const dgm_tune_point *c = r->chosen;
    const struct dgm_tune_shares *s = &r->chosen_shares;
    dgm_write_format(w, "A step of the chosen settings has %.1f rows", c->rows_per_step);
    if (c->active_share > 0) dgm_write_format(w, " and looks at %.1f %% of the vocabulary", 100 * c->active_share);
    dgm_write_text(w, ".\n");
    put_shares("chosen", s, w);
    put_shares("most careful", &r->careful_shares, w);
    if (s->adds_per_byte > 0)
        dgm_write_text(
            w, s->adds_per_byte < 8
                   ? "Few multiply-adds a byte: reading weights is what costs, so smaller precisions and larger "
                     "batches pay.\n"
                   : "Every byte of weights is used often once it is read: arithmetic is what costs, so fewer rows "
                     "and fewer candidates pay.\n");
    if (s->products > 0 && s->output < 0.1)
        dgm_write_format(w,
                         "The output layer takes %.0f %%: a shorter list of candidates can save no more than that.\n",
                         100 * s->output);
}

void dgm_tune_put_explain(const dgm_tune_report *r, dgm_writer *w)
{
    words told = {.count = 0};
    // The settings that the chosen options come from, before batches and threads.
    const dgm_tune_point *centre = r->chosen;
    for (size_t i = 0; i < r->count; i++)
        if ((r->chosen->flags & DGM_TUNE_TIMED) && !(r->points[i]->flags & DGM_TUNE_TIMED) &&
            strncmp(r->points[i]->options, r->chosen->options, strlen(r->points[i]->options)) == 0 &&
            r->points[i]->model == r->chosen->model && has_run(r->points[i]))
            centre = r->points[i];
    put_batches(r, w);
    dgm_write_text(w, "\nAround the chosen settings, one option at a time:\n");
    for (size_t i = 0; i < r->count; i++) tell(&told, r, centre, r->points[i], w);
    for (size_t i = 0; i < r->count && r->chosen != centre; i++) tell(&told, r, r->chosen, r->points[i], w);
    dgm_write_text(w, "\nElsewhere, what differs in one option:\n");
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->count; k++)
            if (!(r->points[i]->flags & DGM_TUNE_TIMED) && r->points[i]->gain > r->points[k]->gain)
                tell(&told, r, r->points[i], r->points[k], w);
}
