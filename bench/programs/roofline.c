// SPDX-License-Identifier: MIT
// bench/roofline: where the time of a translation goes, and how far each part is from what the
// machine allows.
//
//     bench/roofline -m MODEL -i TEXT [--precision i8] [--beam 4] [--batch N] [--lines N]
//                    [--batch-tokens N] [--threads 1] [--repeat 3] [--cpu LEVEL] [--single]
//                    [--shortlist all|lexical] [--length N] [--static-scales] [--csv | --json]
//
// The text is translated once to warm up and then --repeat times without and with counters, in
// turn. Elapsed time, speed and shares of the peak are those of the median pass without counters,
// the rows those of the median pass with them. --single translates line by line, --length N makes
// every translation N tokens long (for random weights, which find no end). One row per kind
// of operation (products by shape), from the counters of the workers (dragoman/tools.h,
// dgm_profile):
//     M madd    multiply-adds of real rows and wanted columns: padding does not count
//     weights   MiB of packed weights that were walked over, once for all rows of an operation
//     other     MiB of activations
//     ms, %     time and its share of the workers' time           G/s  multiply-adds a second
//     bound ms  the least time, the largest of: multiply-adds / peak of the row's precision on the
//               fastest unit there is (vectors or tiles); weights / speed of reading a buffer of the
//               size of all weights that are walked over between two uses of the same matrix (one
//               encoder call; one decoder step with its projection); activations / speed of reading from L2, for
//               the decoder's attention that of a buffer of the size of the keys and values of one step
//     of bound  bound / time
// Peaks and bandwidths are measured in the same run (ceilings.h) on one core. All times but the
// elapsed one are CPU time, so that other programs on the machine disturb less. Reading that clock
// takes a good part of a microsecond: its cost is estimated, taken out of the rows and shown as
// counting.
#define _GNU_SOURCE
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ceilings.h"
#include "dragoman/tools.h"

enum { MAX_REPEAT = 101, MAX_LINES = 10000000 };

typedef struct options {
    const char *model, *input;
    dgm_settings settings;
    int lines, repeat;
    bool single, csv, json;
} options;

typedef struct text {
    char *data;
    const char **lines;
    size_t count;
} text;

typedef struct pass {
    dgm_profile *profile;
    double wall, cpu;
    uint64_t source_tokens, target_tokens;
} pass;

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "roofline: %s%s%s\n", what, detail ? ": " : "", detail ? detail : "");
    exit(1);
}

static void *need(void *p)
{
    if (!p) die("out of memory", NULL);
    return p;
}

// ---- input --------------------------------------------------------------------------------------

static text read_text(const char *path, int most)
{
    text t = {0};
    size_t size = 0, cap = 1 << 16, lines = 0;
    FILE *f = fopen(path, "rb");
    if (!f) die("cannot open", path);
    t.data = need(malloc(cap));
    for (size_t n; (n = fread(t.data + size, 1, cap - size - 1, f)) > 0;) {
        size += n;
        if (cap - size < 2) t.data = need(realloc(t.data, cap *= 2));
    }
    fclose(f);
    t.data[size] = 0;
    for (size_t i = 0; i < size; i++) lines += t.data[i] == '\n';
    t.lines = need(calloc(lines + 1, sizeof *t.lines));
    for (char *p = t.data; *p && (!most || t.count < (size_t)most);) {
        char *end = strchr(p, '\n');
        t.lines[t.count++] = p;
        if (!end) break;
        *end = 0;
        p = end + 1;
    }
    if (t.count == 0) die("there is nothing to translate", path);
    return t;
}

static void usage(int status)
{
    fprintf(
        status ? stderr : stdout,
        "usage: roofline -m MODEL -i TEXT [--precision NAME] [--beam N] [--batch N]\n"
        "                [--batch-tokens N] [--lines N] [--threads N] [--repeat N] [--cpu LEVEL]\n"
        "                [--single] [--shortlist all|lexical] [--length N] [--static-scales]\n"
        "                [--csv | --json]\n"
        "example: roofline -m models/en-de.gguf -i news.en --precision i8 --lines 100\n");
    exit(status);
}

static int number(const char *s, int min, int max)
{
    char *end;
    long v = s ? strtol(s, &end, 10) : 0;
    if (!s || end == s || *end || v < min || v > max) usage(2);
    return (int)v;
}

static options parse(int argc, char **argv)
{
    options o = {.repeat = 3};
    dgm_settings_default(&o.settings);
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
#define IS(text) (strcmp(name, text) == 0)
        if (IS("--help") || IS("-h")) usage(0);
        if (IS("--single"))
            o.single = true;
        else if (IS("--csv"))
            o.csv = true;
        else if (IS("--json"))
            o.json = true;
        else if (IS("--static-scales"))
            o.settings.static_scales = 1;
        else {
            if (!value) usage(2);
            i++;
            if (IS("-m") || IS("--model"))
                o.model = value;
            else if (IS("-i") || IS("--input"))
                o.input = value;
            else if (IS("--precision"))
                o.settings.precision = value;
            else if (IS("--cpu"))
                o.settings.cpu = value;
            else if (IS("-b") || IS("--beam"))
                o.settings.beam = number(value, 1, 256);
            else if (IS("--batch"))
                o.settings.batch = number(value, 1, 4096);
            else if (IS("--batch-tokens"))
                o.settings.batch_tokens = number(value, 1, 1 << 24);
            else if (IS("--threads"))
                o.settings.threads = number(value, 1, 1024);
            else if (IS("--shortlist"))
                o.settings.shortlist = value;
            else if (IS("--length"))
                o.settings.min_length = o.settings.max_length = number(value, 1, 4096);
            else if (IS("--lines"))
                o.lines = number(value, 1, MAX_LINES);
            else if (IS("--repeat"))
                o.repeat = number(value, 1, MAX_REPEAT);
            else
                usage(2);
        }
#undef IS
    }
    if (!o.input || (o.csv && o.json)) usage(2);
    return o;
}

// ---- measuring ----------------------------------------------------------------------------------

static void translate(dgm_translator *t, const char *const *lines, size_t count, pass *p)
{
    dgm_results *r = NULL;
    dgm_error error;
    if (dgm_translate(t, lines, count, &r, &error) != DGM_OK) die(error.text, NULL);
    p->source_tokens += r->source_tokens;
    p->target_tokens += r->target_tokens;
    dgm_results_free(&r);
}

static pass one_pass(const options *o, dgm_translator *t, const text *x, bool counted)
{
    pass p = {0};
    dgm_error error;
    if (counted && dgm_profile_start(t, &error) != DGM_OK) die(error.text, NULL);
    double cpu = process_time(), wall = wall_time();
    if (!o->single) translate(t, x->lines, x->count, &p);
    for (size_t i = 0; o->single && i < x->count; i++) translate(t, &x->lines[i], 1, &p);
    p.wall = wall_time() - wall;
    p.cpu = process_time() - cpu;
    if (!counted) return p;
    if (dgm_profile_read(t, &p.profile, &error) != DGM_OK) die(error.text, NULL);
    dgm_profile_stop(t);
    return p;
}

static int by_time(const void *a, const void *b)
{
    const pass *x = a, *y = b;
    return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

// The median of the passes without counters, with the profile of the median of those with them.
static pass median_pass(const options *o, dgm_translator *t, const text *x)
{
    static pass plain[MAX_REPEAT], counted[MAX_REPEAT];
    one_pass(o, t, x, false);
    for (int i = 0; i < o->repeat; i++) {
        plain[i] = one_pass(o, t, x, false);
        counted[i] = one_pass(o, t, x, true);
    }
    qsort(plain, (size_t)o->repeat, sizeof *plain, by_time);
    qsort(counted, (size_t)o->repeat, sizeof *counted, by_time);
    pass p = plain[o->repeat / 2];
    p.profile = counted[o->repeat / 2].profile;
    for (int i = 0; i < o->repeat; i++)
        if (i != o->repeat / 2) dgm_profile_free(&counted[i].profile);
    return p;
}

// ---- bounds -------------------------------------------------------------------------------------

// What all rows are held against.
typedef struct frame {
    ceilings c;
    double encode_set, step_set; // bytes of weights between two uses of a matrix
    double steps;
    int precision;               // of the model's products, one of CEILING_PEAKS
    double madds[CEILING_PEAKS]; // by precision; attention and others count as f32 (ceilings.h)
    double products, bound;      // seconds in linear rows; sum of the bounds
    uint64_t weight_bytes, other_bytes;
} frame;

static int precision_of(const char *name)
{
    for (int i = 0; i < CEILING_PEAKS; i++)
        if (strcmp(name, ceiling_names[i]) == 0) return i;
    return CEILING_F32;
}

// The least cache that activations come from. Keys and values of all sentences are walked over in a step, and are
// as far away as that is; all else was just written.
static double activations_set(const frame *f, const dgm_profile_row *r)
{
    const bool walked = strcmp(r->phase, "step") == 0 && strstr(r->operation, "attention");
    return fmax(512 << 10, walked && f->steps > 0 ? (double)r->other_bytes / f->steps : 0);
}

static double row_bound(const frame *f, const dgm_profile_row *r)
{
    double set = strcmp(r->phase, "encode") == 0 ? f->encode_set : f->step_set;
    double peak = f->c.peak[precision_of(r->precision)];
    double bound = (double)r->other_bytes / ceilings_read(&f->c, activations_set(f, r));
    if (peak > 0) bound = fmax(bound, (double)r->multiply_adds / peak);
    if (r->weight_bytes) bound = fmax(bound, (double)r->weight_bytes / ceilings_read(&f->c, set));
    return bound;
}

static frame make_frame(const dgm_translator_info *info, const dgm_profile *p)
{
    frame f = {.precision = precision_of(info->precision)};
    char level[32] = "";
    sscanf(info->device, "cpu %31[^ :]", level);
    ceilings_measure(&f.c, level);
    double encode = 0, step = 0;
    for (size_t i = 0; i < p->count; i++) {
        const dgm_profile_row *r = p->rows[i];
        *(strcmp(r->phase, "encode") == 0 ? &encode : &step) += (double)r->weight_bytes;
        f.madds[precision_of(r->precision)] += (double)r->multiply_adds;
        f.weight_bytes += r->weight_bytes;
        f.other_bytes += r->other_bytes;
        if (strcmp(r->operation, "linear") == 0) f.products += r->seconds;
    }
    f.encode_set = p->encodes ? encode / (double)p->encodes : 0;
    f.step_set = p->steps ? step / (double)p->steps : 0;
    f.steps = (double)p->steps;
    for (size_t i = 0; i < p->count; i++) f.bound += row_bound(&f, p->rows[i]);
    return f;
}

// ---- output -------------------------------------------------------------------------------------

static void cpu_model(char *out, size_t size)
{
    char line[256];
    snprintf(out, size, "unknown");
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (!f) return;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "model name", 10) != 0) continue;
        const char *colon = strchr(line, ':');
        if (colon) snprintf(out, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    fclose(f);
}

// The checkout that the program is run in.
static void commit_id(char *out, size_t size)
{
    FILE *f = popen("git rev-parse --short HEAD 2>/dev/null", "r");
    if (!f || !fgets(out, (int)size, f)) snprintf(out, size, "unknown");
    out[strcspn(out, "\n")] = 0;
    if (f) pclose(f);
}

static void shape_of(const dgm_profile_row *r, char *out, size_t size)
{
    out[0] = 0;
    if (r->outputs) snprintf(out, size, "%dx%d", (int)r->inputs, (int)r->outputs);
}

typedef struct totals {
    double rate, share_wall, share_cpu; // multiply-adds a second of all products, and of the peak
} totals;

static totals total_of(const frame *f, const pass *p)
{
    double n = f->madds[f->precision], peak = f->c.peak[f->precision];
    totals t = {n / p->wall, peak > 0 ? n / p->wall / peak : 0, peak > 0 ? n / p->cpu / peak : 0};
    return t;
}

static void print_table(const frame *f, const pass *p)
{
    const double mib = 1048576;
    printf("\n%-7s %-18s %10s %3s %7s %9s %10s %9s %8s %9s %5s %7s %9s %8s\n", "phase", "operation",
           "shape", "", "calls", "rows", "M madd", "weights", "other", "ms", "%", "G/s", "bound ms",
           "of bound");
    double all = p->profile->busy;
    for (size_t i = 0; i < p->profile->count; i++) {
        const dgm_profile_row *r = p->profile->rows[i];
        char shape[32];
        shape_of(r, shape, sizeof shape);
        double bound = row_bound(f, r);
        printf(
            "%-7s %-18s %10s %3s %7llu %9llu %10.1f %9.1f %8.1f %9.2f %5.1f %7.1f %9.2f %7.0f%%\n",
            r->phase, r->operation, shape, r->precision, (unsigned long long)r->calls,
            (unsigned long long)r->rows, (double)r->multiply_adds * 1e-6,
            (double)r->weight_bytes / mib, (double)r->other_bytes / mib, 1e3 * r->seconds,
            100 * r->seconds / all, (double)r->multiply_adds / r->seconds * 1e-9, 1e3 * bound,
            100 * bound / r->seconds);
    }
    printf("%-7s %-18s %10s %3s %7s %9s %10s %9s %8s %9.2f %5.1f\n", "host", "search", "", "", "",
           "", "", "", "", 1e3 * p->profile->search, 100 * p->profile->search / all);
    printf("%-7s %-18s %10s %3s %7s %9s %10s %9s %8s %9.2f %5.1f\n", "host", "counting", "", "", "",
           "", "", "", "", 1e3 * p->profile->counting, 100 * p->profile->counting / all);
    printf("%-7s %-18s %10s %3s %7s %9s %10s %9s %8s %9.2f %5.1f\n", "host", "text", "", "", "", "",
           "", "", "", 1e3 * p->profile->text, 100 * p->profile->text / all);
}

static void print_text(const options *o, const dgm_translator_info *info, const frame *f,
                       const pass *p, size_t lines)
{
    char cpu[256], commit[64];
    cpu_model(cpu, sizeof cpu);
    commit_id(commit, sizeof commit);
    const totals t = total_of(f, p);
    printf("machine   %s, commit %s\n", cpu, commit);
    printf("dragoman  %s, %s, %s\n", dgm_version(), info->precision, info->device);
    if (info->kernels[0]) printf("kernels   %s\n", info->kernels);
    printf("decoding  beam %d, %s, threads %d, weights %.1f MiB packed\n", (int)info->beam,
           o->single ? "one line at a time" : "batches", (int)info->threads,
           (double)info->packed_bytes / 1048576);
    printf("text      %zu lines, %llu source tokens, %llu target tokens; median of %d passes\n",
           lines, (unsigned long long)p->source_tokens, (unsigned long long)p->target_tokens,
           o->repeat);
    printf("peaks     ");
    for (int i = 0; i < CEILING_PEAKS; i++)
        if (f->c.peak[i] > 0)
            printf("%s %s %.1f, ", ceiling_names[i], f->c.instruction[i], f->c.peak[i] * 1e-9);
    printf("in G multiply-adds/s\n");
    printf("reading  ");
    for (int i = 0; i < CEILING_SIZES; i++)
        printf(" %zuK: %.0f", f->c.size[i] >> 10, f->c.read[i] * 1e-9);
    printf(" GB/s\n");
    printf(
        "working   %.2f MiB of weights in an encoder call (read at %.0f GB/s), %.2f MiB in a step "
        "with its projection (%.0f GB/s)\n",
        f->encode_set / 1048576, ceilings_read(&f->c, f->encode_set) * 1e-9, f->step_set / 1048576,
        ceilings_read(&f->c, f->step_set) * 1e-9);
    print_table(f, p);
    const dgm_profile *q = p->profile;
    double other = q->busy - f->products - q->search - q->counting;
    printf("\nshares    products %.1f %%, other operations %.1f %%, search %.1f %%, counting %.1f "
           "%% of "
           "the workers' %.3f s\n",
           100 * f->products / q->busy, 100 * other / q->busy, 100 * q->search / q->busy,
           100 * q->counting / q->busy, q->busy);
    printf("elapsed   %.3f s wall, %.3f s CPU without counters\n", p->wall, p->cpu);
    printf("speed     %.1f target tokens/s (%.1f by CPU time)\n",
           (double)p->target_tokens / p->wall, (double)p->target_tokens / p->cpu);
    printf("products  %.3f G multiply-adds in %s of real rows = %.2f G/s",
           f->madds[f->precision] * 1e-9, ceiling_names[f->precision], t.rate * 1e-9);
    if (f->c.peak[f->precision] > 0)
        printf(": %.1f %% of the %s peak (%.1f %% by CPU time)", 100 * t.share_wall,
               ceiling_names[f->precision], 100 * t.share_cpu);
    printf("\n");
    printf(
        "bound     all operations at their bounds %.3f s: %.1f %% of the elapsed time (%.1f %% by "
        "CPU time)\n",
        f->bound, 100 * f->bound / p->wall, 100 * f->bound / p->cpu);
}

static void print_csv(const options *o, const dgm_translator_info *info, const frame *f,
                      const pass *p)
{
    char cpu[256], commit[64];
    cpu_model(cpu, sizeof cpu);
    commit_id(commit, sizeof commit);
    printf("cpu,commit,device,mode,batch,beam,phase,operation,inputs,outputs,precision,calls,rows,"
           "multiply_adds,weight_bytes,other_bytes,seconds,share,bound_seconds\n");
    for (size_t i = 0; i < p->profile->count + 5; i++) {
        dgm_profile_row r = {.phase = "host", .operation = "", .precision = ""};
        double bound = 0;
        if (i < p->profile->count) {
            r = *p->profile->rows[i];
            bound = row_bound(f, &r);
        } else if (i == p->profile->count) {
            r.operation = "search";
            r.seconds = p->profile->search;
        } else if (i == p->profile->count + 1) {
            r.operation = "counting";
            r.seconds = p->profile->counting;
        } else if (i == p->profile->count + 2) {
            r.operation = "text";
            r.seconds = p->profile->text;
        } else {
            r = (dgm_profile_row){.phase = "total",
                                  .operation = i == p->profile->count + 3 ? "wall" : "cpu",
                                  .precision = info->precision,
                                  .multiply_adds = (uint64_t)f->madds[f->precision],
                                  .weight_bytes = f->weight_bytes,
                                  .other_bytes = f->other_bytes,
                                  .seconds = i == p->profile->count + 3 ? p->wall : p->cpu};
            bound = f->bound;
        }
        printf("\"%s\",%s,\"%s\",%s,%d,%d,%s,%s,%d,%d,%s,%llu,%llu,%llu,%llu,%llu,%.6f,%.4f,%.6f\n",
               cpu, commit, info->device, o->single ? "single" : "batch", (int)info->batch,
               (int)info->beam, r.phase, r.operation, (int)r.inputs, (int)r.outputs, r.precision,
               (unsigned long long)r.calls, (unsigned long long)r.rows,
               (unsigned long long)r.multiply_adds, (unsigned long long)r.weight_bytes,
               (unsigned long long)r.other_bytes, r.seconds, r.seconds / p->profile->busy, bound);
    }
}

static void print_json(const dgm_translator_info *info, const frame *f, const pass *p)
{
    char cpu[256], commit[64];
    cpu_model(cpu, sizeof cpu);
    commit_id(commit, sizeof commit);
    const totals t = total_of(f, p);
    printf("{\"cpu\":\"%s\",\"commit\":\"%s\",\"device\":\"%s\",\"kernels\":\"%s\",\"precision\":\"%s\",\"beam\":%d,"
           "\"threads\":%d,\"source_tokens\":%llu,\"target_tokens\":%llu,\"peaks\":{",
           cpu, commit, info->device, info->kernels, info->precision, (int)info->beam, (int)info->threads,
           (unsigned long long)p->source_tokens, (unsigned long long)p->target_tokens);
    for (int i = 0; i < CEILING_PEAKS; i++) printf("%s\"%s\":%.4g", i ? "," : "", ceiling_names[i], f->c.peak[i]);
    printf("},\"read\":[");
    for (int i = 0; i < CEILING_SIZES; i++)
        printf("%s{\"bytes\":%zu,\"rate\":%.4g}", i ? "," : "", f->c.size[i], f->c.read[i]);
    printf("],\"rows\":[");
    for (size_t i = 0; i < p->profile->count; i++) {
        const dgm_profile_row *r = p->profile->rows[i];
        printf("%s{\"phase\":\"%s\",\"operation\":\"%s\",\"precision\":\"%s\",\"inputs\":%d,"
               "\"outputs\":%d,\"calls\":%llu,\"rows\":%llu,\"multiply_adds\":%llu,"
               "\"weight_bytes\":%llu,\"other_bytes\":%llu,\"seconds\":%.6f,\"bound\":%.6f}",
               i ? "," : "", r->phase, r->operation, r->precision, (int)r->inputs, (int)r->outputs,
               (unsigned long long)r->calls, (unsigned long long)r->rows,
               (unsigned long long)r->multiply_adds, (unsigned long long)r->weight_bytes,
               (unsigned long long)r->other_bytes, r->seconds, row_bound(f, r));
    }
    printf("],\"wall_s\":%.6f,\"cpu_s\":%.6f,\"busy_s\":%.6f,\"search_s\":%.6f,\"counting_s\":%.6f,"
           "\"text_s\":%.6f,"
           "\"encode_set_bytes\":%.0f,\"step_set_bytes\":%.0f,\"multiply_adds\":%.0f,"
           "\"multiply_adds_per_s\":%.4g,\"of_peak\":%.4f,\"of_peak_cpu\":%.4f,\"bound_s\":%.6f}\n",
           p->wall, p->cpu, p->profile->busy, p->profile->search, p->profile->counting,
           p->profile->text, f->encode_set, f->step_set, f->madds[f->precision], t.rate,
           t.share_wall, t.share_cpu, f->bound);
}

int main(int argc, char **argv)
{
    options o = parse(argc, argv);
    text x = read_text(o.input, o.lines);
    dgm_translator *t = NULL;
    dgm_error error;
    if (dgm_open(&t, o.model, &o.settings, &error) != DGM_OK) die(error.text, NULL);
    const dgm_translator_info *info = dgm_describe(t);
    pass p = median_pass(&o, t, &x);
    frame f = make_frame(info, p.profile);
    if (o.json)
        print_json(info, &f, &p);
    else if (o.csv)
        print_csv(&o, info, &f, &p);
    else
        print_text(&o, info, &f, &p, x.count);
    dgm_profile_free(&p.profile);
    dgm_close(&t);
    free(x.data);
    free(x.lines);
    return 0;
}
