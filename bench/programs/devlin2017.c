// SPDX-License-Identifier: MIT
// bench/devlin2017, the program: decodes sentences one by one, one thread, and times it.
//
//     build/bench/devlin2017 make FILE SYSTEM WORDS SEED
//     build/bench/devlin2017 decode -m FILE [-m FILE ...] --config NAME=GEMM,ACT,K,ATT,MERGE ...
//         [--text FILE] [--lines N] [--counted N] [--beam N] [--rounds N] [--cpu LEVEL]
//         [--output FOLDER]
//
// A configuration names the product (blas, f32, i16, i8), activations (libm, polynomial, table),
// the words whose embedding products are kept, attention (plain, made) and the states (separate,
// merged). All configurations take turns: in each round every one decodes all sentences once, so
// that a ratio is one of neighbours in time. Several models are an ensemble (log-linear). A first
// pass over --counted sentences (default: all) counts; the outputs of round 0 are written to
// FOLDER/NAME.out.
//
// Sentences are the lines of a text in the model's words. A model with random weights knows no
// words: its sentences have the lengths of the text's lines and words drawn by frequency, and
// outputs run to the length limit, 0.6 times the source + 10 tokens.
//
// Output is CSV, one line per round and configuration, and one of counts per configuration:
//     time,NAME,ROUND,SECONDS,TOKENS           CPU seconds of the thread, output tokens
//     count,NAME,...                           see print_counts
//     hash,NAME,HASH,...                       of the output of each sentence
//     product,NAME,N,K,CALLS,ROWS,SECONDS      of each shape, in the pass that counts
// Comments (#) say what was run. bench/devlin2017 makes tables of it.
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cpu/cpu_private.h"
#include "base/clock.h"
#include "base/mem.h"
#include "devlin2017.h"
#include "engine/engine_private.h"
#include "format/modelfile.h"
#include "rivals.h"
#include "search/search.h"
#include "text/vocab.h"

enum { MODELS = 4, CONFIGS = 32, LINES = 8192, LONGEST = 200 };
enum { GEMM_BLAS, GEMM_F32, GEMM_I16, GEMM_I8, GEMMS };

static const char *const gemm_names[GEMMS] = {"blas", "f32", "i16", "i8"};
static const char *const act_names[] = {"polynomial", "table", "libm"};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "devlin2017: %s: %s\n", what, why);
    exit(1);
}

#define CHECK(what, expr)                                                                          \
    do {                                                                                           \
        dgm_error err_ = {{0}};                                                                    \
        dgm_error *err = &err_;                                                                    \
        if ((expr) != DGM_OK) die(what, err_.text);                                                \
    } while (0)

typedef struct config {
    char name[64];
    int gemm, act;
    dgm_tuning tuning;
    uint64_t *hash; // [lines]: of the output
} config;

typedef struct engine {
    dgm_backend *backend; // NULL: not loaded
    dgm_model *models[MODELS];
} engine;

typedef struct bench {
    const char *paths[MODELS], *text, *cpu, *output;
    int models, beam, rounds, lines, counted, config_count;
    bool random;
    config configs[CONFIGS];
    dgm_gguf *files[MODELS];
    engine engines[GEMMS];
    dgm_source sources[LINES];
    dgm_vocab *target;
} bench;

// ---- sentences --------------------------------------------------------------------------------

static int count_words(const char *line)
{
    int n = 0;
    for (const char *p = line; *p; p++) n += *p > ' ' && (p == line || p[-1] <= ' ');
    return n;
}

static void draw_sentence(dgm_source *s, int words, const zipf *z, uint64_t *seed)
{
    int32_t *ids = malloc(((size_t)words + 1) * sizeof *ids);
    if (!ids) abort();
    for (int i = 0; i < words; i++) {
        int id = zipf_draw(z, seed);
        ids[i] = id < 2 ? 2 : id;
    }
    ids[words] = 0;
    *s = (dgm_source){ids, words + 1};
}

static void encode_sentence(dgm_source *s, const dgm_vocab *v, const dgm_model_info *info,
                            const char *line)
{
    dgm_tokens t = {0};
    CHECK("text", dgm_vocab_encode(v, dgm_text_of(line), &t, err));
    size_t n = t.count < LONGEST ? t.count : LONGEST;
    int32_t *ids = malloc((n + 1) * sizeof *ids);
    if (!ids) abort();
    if (n) memcpy(ids, t.ids, n * sizeof *ids);
    ids[n] = info->source_eos;
    *s = (dgm_source){ids, (int)n + (info->append_eos ? 1 : 0)};
    dgm_tokens_free(&t);
}

static dgm_vocab *open_vocab(const dgm_gguf *g, dgm_side side)
{
    dgm_vocab *v = NULL;
    CHECK("vocabulary", dgm_vocabulary_load(g, side, &v, NULL, err));
    return v;
}

static void load_sentences(bench *b)
{
    const dgm_gguf *g = b->files[0];
    const char *note = "";
    FILE *f = fopen(b->text, "r");
    if (!f) die(b->text, "cannot be read");
    dgm_gguf_get_string(g, "general.description", DGM_OPTIONAL, &note, NULL);
    b->random = strncmp(note, "random weights", 14) == 0;
    dgm_vocab_spec spec;
    CHECK("vocabulary", dgm_modelfile_vocab(g, DGM_SOURCE, &spec, err));
    dgm_model_info info = {.source_eos = spec.eos, .append_eos = spec.append_eos};
    dgm_vocab *v = b->random ? NULL : open_vocab(g, DGM_SOURCE);
    if (!b->random) b->target = open_vocab(g, spec.shared ? DGM_SOURCE : DGM_TARGET);
    zipf z = {0};
    if (b->random) zipf_open(&z, spec.size);
    uint64_t seed = 11;
    char *line = NULL;
    size_t room = 0;
    int wanted = b->lines, n = 0;
    for (ssize_t size; n < wanted && (size = getline(&line, &room, f)) >= 0;) {
        while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r')) line[--size] = 0;
        int words = count_words(line);
        if (!b->random) // every line has an output
            encode_sentence(&b->sources[n++], v, &info, line);
        else if (words >= 1 && words <= LONGEST / 2)
            draw_sentence(&b->sources[n++], words, &z, &seed);
    }
    if (!b->counted || b->counted > n) b->counted = n;
    b->lines = n;
    free(line);
    zipf_close(&z);
    dgm_vocab_close(&v);
    fclose(f);
}

// ---- decoding ---------------------------------------------------------------------------------

static void load_engine(bench *b, int gemm)
{
    static const dgm_precision precisions[GEMMS] = {DGM_PRECISION_F32, DGM_PRECISION_F32,
                                                    DGM_PRECISION_I16, DGM_PRECISION_I8};
    engine *e = &b->engines[gemm];
    if (e->backend) return;
    CHECK("cpu", dgm_backend_open(&e->backend, "cpu", b->cpu, err));
    if (gemm == GEMM_BLAS) blas_install(e->backend);
    for (int i = 0; i < b->models; i++) {
        CHECK(b->paths[i],
              dgm_model_load(&e->models[i], e->backend, b->files[i], precisions[gemm], err));
        if (gemm == GEMM_BLAS) blas_learn(e->models[i]);
    }
    char text[512];
    printf("# %s: %s\n", gemm_names[gemm], dgm_backend_describe(e->backend, text, sizeof text));
    if (gemm == GEMM_BLAS) printf("# blas: %s\n", blas_choices(text, sizeof text));
}

typedef struct run {
    bench *b;
    config *c;
    uint64_t tokens;
    bool keep;         // hashes of outputs into the configuration
    dgm_tokens *texts; // [lines]: the outputs; NULL: nobody wants them
} run;

static void on_result(void *cookie, const dgm_search_result *r)
{
    run *s = cookie;
    const dgm_hypothesis *h = &r->hypotheses[0];
    s->tokens += (uint64_t)h->count + 1;
    if (s->texts) {
        dgm_tokens *t = &s->texts[r->id];
        t->count = (size_t)h->count;
        t->ids = malloc((t->count + 1) * sizeof *t->ids);
        if (!t->ids) abort();
        if (t->count) memcpy(t->ids, h->tokens, t->count * sizeof *t->ids);
    }
    if (!s->keep) return;
    uint64_t hash = 1469598103934665603u;
    for (int i = 0; i < h->count; i++) hash = (hash ^ (uint32_t)h->tokens[i]) * 1099511628211u;
    s->c->hash[r->id] = hash;
}

// Frees the tokens.
static void write_texts(const bench *b, const config *c, dgm_tokens *texts)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.out", b->output, c->name);
    FILE *f = fopen(path, "w");
    if (!f) die(path, "cannot be written");
    for (int i = 0; i < b->lines; i++) {
        dgm_writer text = {0};
        CHECK("output",
              dgm_vocab_decode(b->target, texts[i].ids, texts[i].count, &text, NULL, err));
        fprintf(f, "%.*s\n", (int)text.size, text.data ? (const char *)text.data : "");
        dgm_writer_free(&text);
        free(texts[i].ids);
    }
    if (fclose(f) != 0) die(path, "cannot be written");
    free(texts);
}

// Everything that one configuration decodes with.
typedef struct worker {
    dgm_exec *exec;
    dgm_state *states[MODELS];
    dgm_vocabsel vocabsel;
    dgm_search *search;
} worker;

static void open_worker(bench *b, const engine *e, worker *w)
{
    const dgm_model_info *info = dgm_model_describe(e->models[0]);
    dgm_search_config c = {
        .search = b->beam > 1 ? "beam" : "greedy",
        .beam = b->beam,
        .nbest = 1,
        .finish = DGM_FINISH_MARGIN,
        .normalise = true,
        .margin = 3.0f,
        .max_length = LONGEST,
        .max_length_factor = b->random ? 0.6f : 3.0f,
        .allow_unk = info->defaults.allow_unk,
        .sentences = 1,
        .max_source = LONGEST + 1,
        .hidden = info->hidden * b->models,
    };
    dgm_limits limits = dgm_search_limits(&c, info);
    dgm_bytes bytes = dgm_rank_bytes(e->backend, limits.rows, b->models, info->target_vocab);
    bytes = dgm_bytes_add(bytes, dgm_bytes_both(1 << 20));
    bytes = dgm_bytes_add(
        bytes, dgm_search_bytes(e->backend, &c, b->models, info->target_vocab));
    const dgm_linear *out[MODELS];
    for (int i = 0; i < b->models; i++) {
        out[i] = dgm_model_output(e->models[i]);
        bytes = dgm_bytes_add(bytes, dgm_state_bytes(e->models[i], &limits));
        bytes = dgm_bytes_add(bytes, dgm_vocabsel_lexical_bytes(e->backend, out[i], 1));
    }
    CHECK("memory", dgm_exec_open(e->backend, bytes, &w->exec, err));
    dgm_search_part parts[MODELS];
    for (int i = 0; i < b->models; i++) {
        CHECK("memory", dgm_state_open(e->models[i], w->exec, &limits, &w->states[i], err));
        parts[i] = (dgm_search_part){w->states[i], 1.0f / (float)b->models};
    }
    const dgm_vocabsel_limits bounds = {
        .sentences = 1, .max_source = c.max_source, .max_needed = c.max_length};
    CHECK("candidates", dgm_vocabsel_lexical_open(&w->vocabsel, b->files[0], &bounds, err));
    CHECK("candidates", dgm_vocabsel_lexical_gather(&w->vocabsel, w->exec, out, b->models, err));
    CHECK("search",
          dgm_search_open(&w->search, w->exec, &c, parts, b->models, &w->vocabsel, NULL, 0, err));
}

static void close_worker(worker *w)
{
    dgm_search_close(&w->search);
    w->vocabsel.ops->close(&w->vocabsel);
    dgm_exec_close(&w->exec);
}

static void decode_lines(run *s, worker *w, int lines)
{
    for (int i = 0; i < lines; i++) {
        dgm_search_request r = {.source = s->b->sources[i], .id = (uint64_t)i};
        CHECK("decoding", dgm_search_admit(w->search, &r, 1, err));
        while (dgm_search_active(w->search))
            CHECK("decoding", dgm_search_advance(w->search, on_result, s, err));
    }
}

// Counts of one pass: what the steps save, whether or not they pay on this machine.
static void print_counts(const bench *b, const config *c, const worker *w, const dgm_meter *meter,
                         const engine *e)
{
    dgm_model_counts n = {0};
    uint64_t madds = 0, bytes = 0, tables = 0;
    for (int i = 0; i < b->models; i++) {
        dgm_model_counts one;
        dgm_state_counts(w->states[i], &one);
        dgm_model_counts_add(&n, &one);
        tables += dgm_model_describe(e->models[i])->table_bytes;
    }
    for (int i = 0; i < meter->count; i++) {
        madds += meter->rows[i].madds;
        bytes += meter->rows[i].weight_bytes;
    }
    for (int i = 0; i < meter->count; i++) {
        const dgm_meter_row *r = &meter->rows[i];
        if (r->work == DGM_WORK_LINEAR)
            printf("product,%s,%d,%d,%llu,%llu,%.6f\n", c->name, r->n, r->k,
                   (unsigned long long)r->calls, (unsigned long long)r->rows, r->seconds);
    }
    printf("hash,%s", c->name);
    for (int i = 0; i < b->counted; i++) printf(",%016llx", (unsigned long long)c->hash[i]);
    printf("\n");
    const dgm_search_stats *s = dgm_search_counts(w->search);
    printf("count,%s,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%.1f\n", c->name,
           (unsigned long long)n.rows, (unsigned long long)n.distinct,
           (unsigned long long)n.state_rows, (unsigned long long)n.state_products,
           (unsigned long long)n.source_words, (unsigned long long)n.source_found,
           (unsigned long long)n.target_words, (unsigned long long)n.target_found,
           (unsigned long long)n.context_products, (unsigned long long)n.activations,
           (unsigned long long)madds, (unsigned long long)bytes, (double)tables / 1048576);
    printf("search,%s,%.1f,%llu,%llu\n", c->name,
           s->sentences ? (double)s->candidates / (double)s->sentences : 0.0,
           (unsigned long long)s->early, (unsigned long long)s->steps);
}

// One turn of a configuration; round < 0: warm, keep hashes of the outputs and count.
static void turn(bench *b, config *c, int round)
{
    engine *e = &b->engines[c->gemm];
    worker w = {0};
    run s = {.b = b, .c = c, .keep = round < 0};
    dgm_backend_activations(e->backend, (dgm_activations)c->act);
    for (int i = 0; i < b->models; i++)
        CHECK("tuning", dgm_model_tune(e->models[i], &c->tuning, err));
    open_worker(b, e, &w);
    if (round >= 0) {
        decode_lines(&s, &w, b->lines < 4 ? b->lines : 4); // touches memory and tables
        s.tokens = 0;
        if (round == 0 && b->output && b->target) s.texts = calloc(LINES, sizeof *s.texts);
        double begin = dgm_thread_time();
        decode_lines(&s, &w, b->lines);
        printf("time,%s,%d,%.6f,%llu\n", c->name, round, dgm_thread_time() - begin,
               (unsigned long long)s.tokens);
        if (s.texts) write_texts(b, c, s.texts);
    } else {
        static dgm_meter meter;
        memset(&meter, 0, sizeof meter);
        dgm_exec_meter(w.exec, &meter);
        decode_lines(&s, &w, b->counted);
        dgm_exec_meter(w.exec, NULL);
        print_counts(b, c, &w, &meter, e);
    }
    fflush(stdout);
    close_worker(&w);
}

// ---- command line -----------------------------------------------------------------------------

static int index_of(const char *text, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, names[i]) == 0) return i;
    die(text, "unknown word in a configuration");
    return -1;
}

// NAME=GEMM,ACT,K,plain|made,separate|merged
static void parse_config(bench *b, const char *text)
{
    if (b->config_count == CONFIGS) die(text, "too many configurations");
    config *c = &b->configs[b->config_count++];
    char gemm[16], act[16], att[16], merge[16];
    int k = 0;
    if (sscanf(text, "%63[^=]=%15[^,],%15[^,],%d,%15[^,],%15s", c->name, gemm, act, &k, att,
               merge) != 6)
        die(text, "is not NAME=GEMM,ACT,K,ATT,MERGE");
    c->gemm = index_of(gemm, gemm_names, GEMMS);
    c->act = index_of(act, act_names, 3);
    c->tuning = (dgm_tuning){.precompute = k,
                             .plain_attention = strcmp(att, "plain") == 0,
                             .separate_rows = strcmp(merge, "separate") == 0};
    c->hash = calloc(LINES, sizeof *c->hash);
    if (!c->hash) abort();
}

static int number(const char *text, int max)
{
    int n = atoi(text);
    if (n < 1 || n > max) die(text, "is out of range");
    return n;
}

static void parse(bench *b, int argc, char **argv)
{
    *b = (bench){.beam = 6, .rounds = 5, .lines = 20};
    for (int i = 2; i + 1 < argc; i += 2) {
        const char *o = argv[i], *v = argv[i + 1];
        if (strcmp(o, "-m") == 0 && b->models < MODELS)
            b->paths[b->models++] = v;
        else if (strcmp(o, "--config") == 0)
            parse_config(b, v);
        else if (strcmp(o, "--text") == 0)
            b->text = v;
        else if (strcmp(o, "--lines") == 0)
            b->lines = number(v, LINES);
        else if (strcmp(o, "--counted") == 0)
            b->counted = number(v, LINES);
        else if (strcmp(o, "--beam") == 0)
            b->beam = number(v, 256);
        else if (strcmp(o, "--rounds") == 0)
            b->rounds = number(v, 1000);
        else if (strcmp(o, "--cpu") == 0)
            b->cpu = v;
        else if (strcmp(o, "--output") == 0)
            b->output = v;
        else
            die(o, "unknown option");
    }
    if (!b->models || !b->config_count || !b->text) die("decode", "needs -m, --config and --text");
}

// The level of --cpu, or NULL.
static const char *level_of(int argc, char **argv)
{
    for (int i = 2; i + 1 < argc; i++)
        if (strcmp(argv[i], "--cpu") == 0) return argv[i + 1];
    return NULL;
}

int main(int argc, char **argv)
{
    static bench b;
    if (argc == 6 && strcmp(argv[1], "make") == 0)
        return model_make(argv[2], argv[3], atoi(argv[4]), (uint64_t)atoi(argv[5])) ? 1 : 0;
    if (argc < 3 || strcmp(argv[1], "decode") != 0) {
        fprintf(stderr,
                "usage: devlin2017 make FILE SYSTEM WORDS SEED\n"
                "       devlin2017 decode -m FILE --text FILE --config ... (see the source)\n");
        return 2;
    }
    rival_probes probes = {blas_try_openblas, blas_try_onednn, NULL};
    const unsigned gone = rivals_start(level_of(argc, argv), argv, blas_core(), probes);
    if (gone == (1u << RIVAL_OPENBLAS | 1u << RIVAL_ONEDNN)) {
        fprintf(stderr, "devlin2017: neither OpenBLAS nor oneDNN can run here: there is no baseline\n");
        return 1;
    }
    blas_leave_out(gone);
    parse(&b, argc, argv);
    for (int i = 0; i < b.models; i++)
        CHECK(b.paths[i], dgm_modelfile_open(&b.files[i], b.paths[i], err));
    load_sentences(&b);
    for (int i = 0; i < b.config_count; i++) load_engine(&b, b.configs[i].gemm);
    printf("# %d sentences, beam %d, %s weights\n", b.lines, b.beam,
           b.random ? "random" : "trained");
    for (int i = 0; i < b.config_count; i++) turn(&b, &b.configs[i], -1);
    for (int r = 0; r < b.rounds; r++)
        for (int i = 0; i < b.config_count; i++) turn(&b, &b.configs[i], r);
    return 0;
}
