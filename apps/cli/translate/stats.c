// SPDX-License-Identifier: MIT
// What `--stats` says: counts of the work, speed and memory, and where the time went.
//
// The split of the time follows a decoder's equations (Zhang et al., 2018, 6 to 9): the next state
// with its attention, the read-out, the products with the output layer, and what is done with them
// (softmax sum where it is on, scorers' terms, lists of the best). The library computes the last
// two in one walk, so the time of the softmax alone is the difference between a run with it and one
// without (--softmax). Parts of a read-out that depend on the word or the source alone are inside
// the products of the state.
#include "translate/stats.h"

#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/lineio.h"
#include "options.h"

// What the search computed, in all and per output token; merging: live hypotheses per row that was
// ranked whole, and per row that was computed at all.
static void print_search(const dgm_counters *c)
{
    const double tokens = c->target_tokens ? (double)c->target_tokens : 1;
    const struct {
        const char *name;
        uint64_t count;
    } rows[] = {{"state steps", c->rows},
                {"projections", c->rank_rows},
                {"products", c->dots},
                {"heap pops", c->pops},
                {"heap cells", c->heaps}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].count)
            fprintf(stderr, "%-11s %llu, %.2f per token\n", rows[i].name,
                    (unsigned long long)rows[i].count, (double)rows[i].count / tokens);
    if (c->pops)
        fprintf(stderr, "heap size   %llu cells at most\n", (unsigned long long)c->heap_peak);
    if (c->leads)
        fprintf(stderr,
                "merging     %.3f (%.3f with exact steps): %llu hypotheses, %llu leaders, %llu "
                "exact steps\n",
                (double)c->live / (double)c->leads, (double)c->live / (double)(c->leads + c->exact),
                (unsigned long long)c->live, (unsigned long long)c->leads,
                (unsigned long long)c->exact);
}

void stats_watch(dgm_translator *t)
{
    dgm_error error;
    if (dgm_profile_start(t, &error) != DGM_OK) warn("no times: %s", error.text);
}

typedef struct part {
    const char *name, *phase;
    int topk; // only "softmax and top-k", or all but that
    double seconds;
} part;

// Products by precision: how many, and of how much.
static void print_products(const dgm_profile *p)
{
    static const char *const names[] = {"f32", "i16", "i8", "f16", "bf16"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        uint64_t calls = 0, madds = 0, bytes = 0;
        for (size_t i = 0; i < p->count; i++) {
            const dgm_profile_row *r = p->rows[i];
            if (strcmp(r->operation, "linear") != 0 || strcmp(r->precision, names[k]) != 0)
                continue;
            calls += r->calls;
            madds += r->multiply_adds;
            bytes += r->weight_bytes;
        }
        if (calls)
            fprintf(stderr,
                    "%-11s %llu products, %.1f million multiply-adds, %.1f MiB of weights walked\n",
                    names[k], (unsigned long long)calls, (double)madds * 1e-6,
                    (double)bytes / 1048576);
    }
}

void stats_times(dgm_translator *t)
{
    part parts[] = {{"encoder", "encode", 0, 0},
                    {"states", "step", 0, 0},
                    {"read-out", "readout", 0, 0},
                    {"products", "rank", 0, 0},
                    {"selection", "rank", 1, 0}};
    const size_t count = sizeof parts / sizeof parts[0];
    dgm_profile *p = NULL;
    dgm_error error;
    if (dgm_profile_read(t, &p, &error) != DGM_OK) return;
    double walked = 0; // by the decoder
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->rows[i]->phase, "encode") != 0)
            walked += (double)(p->rows[i]->weight_bytes + p->rows[i]->other_bytes);
        const int topk = strcmp(p->rows[i]->operation, "softmax and top-k") == 0;
        for (size_t k = 0; k < count; k++)
            if (strcmp(p->rows[i]->phase, parts[k].phase) == 0 && parts[k].topk == topk)
                parts[k].seconds += p->rows[i]->seconds;
    }
    const double all = p->busy - p->counting, share = all > 0 ? 100 / all : 0;
    fprintf(stderr, "CPU time    %.3f s of the workers", all);
    for (size_t k = 0; k < count; k++)
        fprintf(stderr, ", %s %.3f s (%.1f %%)", parts[k].name, parts[k].seconds,
                parts[k].seconds * share);
    fprintf(stderr, ", search %.3f s (%.1f %%); decoder: %.1f MiB walked\n", p->search,
            p->search * share, walked / 1048576);
    print_products(p);
    dgm_profile_free(&p);
}

static void print_evidence(const dgm_counters *c)
{
    if (c->evidence_decoded)
        fprintf(stderr, "phrases     %llu lines decoded for evidence, in %.3f s\n",
                (unsigned long long)c->evidence_decoded, c->evidence_decode_seconds);
    if (c->evidence_lines == 0) return;
    const double lines = (double)c->evidence_lines;
    fprintf(stderr, "evidence    %llu lines, %.1f rows and %.1f values each, made in %.3f s\n",
            (unsigned long long)c->evidence_lines, (double)c->evidence_rows / lines,
            (double)c->evidence_values / lines, c->evidence_seconds);
    if (c->evidence_pruned)
        fprintf(stderr, "pruned      %llu lattices of the evidence, too large\n",
                (unsigned long long)c->evidence_pruned);
}

static double percent(uint64_t some, uint64_t whole)
{
    return whole ? 100.0 * (double)some / (double)whole : 0.0;
}

// What the optimisations of recurrent models saved; nothing for other models.
static void print_optimisations(const dgm_translator *t)
{
    dgm_optimisations n;
    dgm_optimisations_count(t, &n);
    if (n.early_stops)
        fprintf(stderr, "early stop  %llu sentences\n", (unsigned long long)n.early_stops);
    if (n.unknown_words)
        fprintf(stderr, "unknown     %llu words replaced, %llu of them by the dictionary\n",
                (unsigned long long)n.unknown_words, (unsigned long long)n.unknown_translated);
    if (n.rows == 0) return;
    fprintf(stderr,
            "states      %llu distinct of %llu (%.1f %%); %llu products for %llu rows, %s\n",
            (unsigned long long)n.distinct, (unsigned long long)n.rows, percent(n.distinct, n.rows),
            (unsigned long long)n.state_products, (unsigned long long)n.state_rows,
            n.merging ? "merged" : "not merged");
    fprintf(stderr,
            "precompute  %.1f %% of %llu source words, %.1f %% of %llu target words; "
            "%d + %d words, %.1f MiB\n",
            percent(n.source_found, n.source_words), (unsigned long long)n.source_words,
            percent(n.target_found, n.target_words), (unsigned long long)n.target_words,
            (int)n.table_words[0], (int)n.table_words[1], (double)n.table_bytes / 1048576);
    fprintf(stderr, "attention   %llu rows multiplied for contexts, %s\n",
            (unsigned long long)n.context_products,
            n.plain_attention ? "one by one" : "once per source position");
    fprintf(stderr, "activations %llu values by %s\n", (unsigned long long)n.activation_values,
            n.activations);
}

// Candidates of all sentences of a step together and of each, as shares of the vocabulary.
static void print_union(const dgm_counters *c, int32_t vocabulary)
{
    if (c->unions == 0) return;
    fprintf(stderr,
            "union       %.2f %% of the vocabulary over the %.1f sentences of a step, %.2f %% per "
            "sentence\n",
            percent(c->union_tokens, c->unions * (uint64_t)vocabulary),
            (double)c->selections / (double)c->unions,
            percent(c->selection_tokens, c->selections * (uint64_t)vocabulary));
}

// Percent of the time in which a device was busy, the mean over devices; 0 where none measures it.
static double device_busy(const dgm_counters *c, double took)
{
    return c->devices && took > 0 ? 100 * c->device_seconds / ((double)c->devices * took) : 0;
}

void stats_run(dgm_translator *t, uint64_t failed, double load, double took)
{
    dgm_counters c;
    const dgm_translator_info *i = dgm_describe(t);
    dgm_count(t, &c);
    fprintf(stderr, "device      %s\n", i->device);
    fprintf(stderr, "precision   %s products%s\n", i->precision,
            i->widened ? ": f16 does not hold the model's numbers" : "");
    if (i->kernels[0]) fprintf(stderr, "kernels     %s\n", i->kernels);
    fprintf(stderr, "search      %s, beam %d, finish %s, batch %d (%lld tokens), threads %d\n",
            i->search, (int)i->beam, i->finish, (int)i->batch, (long long)i->batch_tokens,
            (int)i->threads);
    if (strcmp(i->alignment, "none") != 0) fprintf(stderr, "alignment   by %s\n", i->alignment);
    fprintf(stderr, "lines       %llu (%llu sentences, %llu failed)\n", (unsigned long long)c.lines,
            (unsigned long long)c.sentences, (unsigned long long)failed);
    fprintf(stderr, "tokens      %llu in, %llu out\n", (unsigned long long)c.source_tokens,
            (unsigned long long)c.target_tokens);
    fprintf(stderr, "steps       %llu, %.2f rows each\n", (unsigned long long)c.steps,
            c.steps ? (double)c.rows / (double)c.steps : 0.0);
    if (c.restarts)
        fprintf(stderr, "restarts    %llu sentences, out of workspace\n",
                (unsigned long long)c.restarts);
    print_search(&c);
    fprintf(stderr, "shortlist   %s, %.1f candidates per sentence", i->shortlist,
            c.sentences ? (double)c.candidates / (double)c.sentences : 0.0);
    if (c.more) fprintf(stderr, " and %.1f per row", (double)c.more / (double)c.rank_rows);
    fprintf(stderr, "\n");
    print_union(&c, i->vocabulary);
    if (c.centroids)
        fprintf(stderr, "clusters    %llu of %llu centroids used, %.1f candidates per row\n",
                (unsigned long long)c.centroids_used, (unsigned long long)c.centroids,
                c.rank_rows ? (double)c.dots / (double)c.rank_rows : 0.0);
    if (c.copied || c.repeated || c.mended)
        fprintf(stderr, "text        %llu lines with parts that are no language, %llu cut where they repeat, "
                        "%llu mended\n",
                (unsigned long long)c.copied, (unsigned long long)c.repeated, (unsigned long long)c.mended);
    print_evidence(&c);
    print_optimisations(t);
    fprintf(stderr, "time        %.3f s to load, %.3f s to translate\n", load, took);
    if (c.devices)
        fprintf(stderr, "device busy %.1f %% of that, %.3f s\n", device_busy(&c, took), c.device_seconds);
    fprintf(stderr, "speed       %.1f lines/s, %.1f output tokens/s\n", (double)c.lines / took,
            (double)c.target_tokens / took);
    fprintf(stderr, "memory      %.1f MiB weights, %.1f MiB workspace, %.1f MiB peak RSS\n",
            (double)i->packed_bytes / 1048576, (double)c.arena_peak / 1048576,
            (double)peak_rss() / 1048576);
}

static void json_number(line_writer *w, const char *name, double value)
{
    writer_format(w, ",\"%s\":%.6f", name, value);
}

static void json_count(line_writer *w, const char *name, double value)
{
    writer_format(w, ",\"%s\":%.0f", name, value);
}

// The object has one key, so that it is known among those of `--progress json`.
void stats_json(dgm_translator *t, uint64_t failed, double load, double took)
{
    dgm_statistics *s = NULL;
    dgm_error error;
    dgm_counters c;
    if (dgm_statistics_read(t, &s, &error) != DGM_OK) {
        warn("no statistics: %s", error.text);
        return;
    }
    dgm_count(t, &c);
    line_writer *w = writer_open_errors();
    writer_format(w, "{\"stats\":{\"version\":\"%s\"", dgm_version());
    for (size_t i = 0; i < s->count; i++) {
        const dgm_statistic *x = s->items[i];
        if (x->text) {
            writer_format(w, ",\"%s\":", x->name);
            writer_json(w, x->text, strlen(x->text));
        } else if (x->whole) {
            json_count(w, x->name, x->number);
        } else {
            json_number(w, x->name, x->number);
        }
    }
    json_count(w, "failed", (double)failed);
    json_number(w, "load_seconds", load);
    json_number(w, "seconds", took);
    json_number(w, "device_busy_percent", device_busy(&c, took));
    json_number(w, "lines_per_second", (double)c.lines / took);
    json_number(w, "tokens_per_second", (double)c.target_tokens / took);
    json_count(w, "peak_rss_bytes", (double)peak_rss());
    writer_text(w, "}}\n");
    writer_close(w);
    dgm_statistics_free(&s);
}
