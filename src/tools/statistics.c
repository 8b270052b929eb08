// SPDX-License-Identifier: MIT
// Statistics of a translator by name: three tables over the fields of public structs, and what a
// profile says where one was started. docs/manual/STATISTICS.md lists the names.
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "dragoman/tools.h"
#include "engine/engine_private.h"

typedef enum field_type {
    FIELD_TEXT,
    FIELD_U64,
    FIELD_I64,
    FIELD_I32,
    FIELD_FLOAT,
    FIELD_DOUBLE,
    FIELD_SUM // a double that counts
} field_type;

typedef struct field {
    const char *name;
    field_type type;
    size_t offset;
    const char *help;
} field;

#define INFO(name, type, member, help)                                                             \
    {name, FIELD_##type, offsetof(dgm_translator_info, member), help}
#define COUNT(name, member, help) {name, FIELD_U64, offsetof(dgm_counters, member), help}
#define CPU_TIME(name, member, help) {name, FIELD_DOUBLE, offsetof(dgm_counters, member), help}
#define SAVED(name, type, member, help)                                                            \
    {name, FIELD_##type, offsetof(dgm_optimisations, member), help}

static const field info_fields[] = {
    INFO("model", TEXT, name, "name of the first model"),
    INFO("architecture", TEXT, architecture, "its architecture"),
    INFO("models", I32, models, "models of the ensemble"),
    INFO("source", TEXT, source_language, "source language"),
    INFO("target", TEXT, target_language, "target language"),
    INFO("parameters", U64, parameters, "of all models"),
    INFO("weight_bytes", U64, packed_bytes, "memory of their weights"),
    INFO("vocabulary", I32, vocabulary, "tokens of the target side"),
    INFO("device", TEXT, device, "device and chosen kernels"),
    INFO("precision", TEXT, precision, "of products"),
    INFO("widened", I32, widened, "1: the device's usual precision does not hold the models' numbers"),
    INFO("threads", I32, threads, "worker threads"),
    INFO("batch", I32, batch, "sentences that a thread decodes at once, at most"),
    INFO("batch_tokens", I64, batch_tokens, "source tokens x beam that a thread decodes at once, at most"),
    INFO("search", TEXT, search, "search algorithm"),
    INFO("beam", I32, beam, "beam size"),
    INFO("nbest", I32, nbest, "translations of a line"),
    INFO("finish", TEXT, finish, "finishing policy"),
    INFO("shortlist", TEXT, shortlist, "kind of shortlist"),
    INFO("length_penalty", FLOAT, length_penalty, "exponent of the length"),
    INFO("word_penalty", FLOAT, word_penalty, "subtracted once per output token"),
    INFO("max_length", I32, max_length, "longest output in tokens"),
    INFO("max_source", I32, max_source, "longest input in tokens"),
    INFO("alignment", TEXT, alignment, "where links of words are read"),
    INFO("kernels", TEXT, kernels, "which kernel products take, by shape and rows"),
};

static const field count_fields[] = {
    COUNT("lines", lines, "lines that were translated"),
    COUNT("sentences", sentences, "parts of lines that were decoded"),
    COUNT("source_tokens", source_tokens, "tokens in"),
    COUNT("target_tokens", target_tokens, "tokens out"),
    COUNT("steps", steps, "decoder steps"),
    COUNT("rows", rows, "hypotheses in them: state steps"),
    COUNT("projections", rank_rows, "rows that were ranked"),
    COUNT("workspace_reserved_bytes", arena_bytes, "address space that workers reserved"),
    COUNT("workspace_bytes", arena_peak, "of it touched"),
    COUNT("products", dots, "products of a row with an output token's vector"),
    COUNT("hypotheses", live, "hypotheses expanded"),
    COUNT("leaders", leads, "of them ranked whole: sub-cubes"),
    COUNT("exact_steps", exact, "naive cube pruning: rows computed for popped cells"),
    COUNT("heap_pops", pops, "cube pruning: cells popped"),
    COUNT("heap_cells", heaps, "cube pruning: sum of the heaps' largest sizes"),
    COUNT("heap_peak", heap_peak, "cube pruning: the largest heap"),
    COUNT("restarts", restarts, "sentences begun again, out of workspace"),
    COUNT("candidates", candidates, "shortlist: tokens that sentences could choose from, summed"),
    COUNT("candidates_of_rows", more, "shortlist: tokens that projected rows could choose from besides, summed"),
    COUNT("evidence_lines", evidence_lines, "lines with evidence"),
    COUNT("evidence_rows", evidence_rows, "rows of posteriors made of it"),
    COUNT("evidence_values", evidence_values, "numbers in them"),
    CPU_TIME("evidence_seconds", evidence_seconds, "CPU time that making them took"),
    COUNT("centroids", centroids, "clusters: centroids there are"),
    COUNT("centroids_used", centroids_used, "of them used"),
    COUNT("evidence_pruned", evidence_pruned, "lattices of the evidence that were too large"),
    COUNT("unions", unions, "steps in which sentences chose from candidates"),
    COUNT("union_tokens", union_tokens, "union of the candidates of a step's sentences, summed"),
    COUNT("selections", selections, "sentences in these steps, summed"),
    COUNT("selection_tokens", selection_tokens, "their candidates, summed"),
    COUNT("evidence_decoded", evidence_decoded, "lines that the phrase-based system decoded"),
    CPU_TIME("evidence_decode_seconds", evidence_decode_seconds, "CPU time that this took"),
    COUNT("copied_lines", copied, "lines with parts that are no language"),
    COUNT("repeated_lines", repeated, "lines cut where they repeat"),
    COUNT("mended_lines", mended, "lines translated again to save what they had lost"),
    COUNT("devices", devices, "devices that measure how long they are busy"),
    CPU_TIME("device_seconds", device_seconds, "how long they were, together"),
};
// All fields of the struct have eight bytes; the first one is its size.
_Static_assert(sizeof count_fields / sizeof count_fields[0] == sizeof(dgm_counters) / 8 - 1,
               "every counter has a name");

static const field saved_fields[] = {
    SAVED("early_stops", U64, early_stops, "sentences that the margin ended"),
    SAVED("unknown_words", U64, unknown_words, "unknown words replaced"),
    SAVED("unknown_translated", U64, unknown_translated, "of them by the dictionary"),
    SAVED("recurrent_rows", U64, rows, "recurrent models: decoder rows"),
    SAVED("recurrent_distinct", U64, distinct, "of them with distinct parents in their step"),
    SAVED("state_rows", U64, state_rows, "rows of all recurrent layers"),
    SAVED("state_products", U64, state_products, "products with states that were made for them"),
    SAVED("states_merged", I32, merging, "1: hypotheses share a state's products"),
    SAVED("source_words", U64, source_words, "words of the first encoder layer"),
    SAVED("source_found", U64, source_found, "of them looked up"),
    SAVED("target_words", U64, target_words, "words of the first decoder layer"),
    SAVED("target_found", U64, target_found, "of them looked up"),
    SAVED("table_source_words", I32, table_words[0], "pre-computed words of the source"),
    SAVED("table_target_words", I32, table_words[1], "pre-computed words of the target"),
    SAVED("table_bytes", U64, table_bytes, "memory of what is pre-computed"),
    SAVED("context_products", U64, context_products, "rows multiplied for contexts"),
    SAVED("plain_attention", I32, plain_attention, "1: contexts are multiplied one by one"),
    SAVED("activation_values", U64, activation_values, "values of sigmoid and tanh"),
    SAVED("activations", TEXT, activations, "how these are computed"),
};

// ---- the time, where a profile is on -------------------------------------------------------------

enum { PRECISIONS = 5 };

// Phases as in the split of --stats=time. selection: of the output layer, all but the products.
typedef struct times {
    double worked, encoder, states, readout, products, selection, search, text;
    double decoder_bytes;
    double calls[PRECISIONS], multiply_adds[PRECISIONS], weight_bytes[PRECISIONS]; // of products in each precision
} times;

#define TIME(name, member, help) {name, FIELD_DOUBLE, offsetof(times, member), help}
#define SUM(name, member, help) {name, FIELD_SUM, offsetof(times, member), help}
#define PRODUCTS(precision, k)                                                                     \
    SUM(precision "_products", calls[k], "products in " precision),                                \
        SUM(precision "_multiply_adds", multiply_adds[k], "multiply-adds in them"),                \
        SUM(precision "_weight_bytes", weight_bytes[k], "weights that they walked over")

static const field time_fields[] = {
    TIME("cpu_seconds", worked, "CPU time of the workers"),
    TIME("cpu_encoder_seconds", encoder, "of it in the encoder"),
    TIME("cpu_states_seconds", states, "in decoder states"),
    TIME("cpu_readout_seconds", readout, "in the read-out"),
    TIME("cpu_products_seconds", products, "in products with the output layer"),
    TIME("cpu_selection_seconds", selection, "in softmax sums, scorers' terms and lists of the best"),
    TIME("cpu_search_seconds", search, "in the search and bookkeeping"),
    TIME("cpu_text_seconds", text, "besides, in tokenising and joining of text"),
    SUM("decoder_bytes", decoder_bytes, "memory that the decoder walked over"),
    PRODUCTS("f32", 0),
    PRODUCTS("i16", 1),
    PRODUCTS("i8", 2),
    PRODUCTS("f16", 3),
    PRODUCTS("bf16", 4),
};

static void add_row(times *t, const dgm_profile_row *r)
{
    static const char *const precisions[PRECISIONS] = {"f32", "i16", "i8", "f16", "bf16"};
    const bool topk = strcmp(r->operation, "softmax and top-k") == 0;
    if (strcmp(r->phase, "encode") == 0)
        t->encoder += r->seconds;
    else
        t->decoder_bytes += (double)(r->weight_bytes + r->other_bytes);
    if (strcmp(r->phase, "step") == 0) t->states += r->seconds;
    if (strcmp(r->phase, "readout") == 0) t->readout += r->seconds;
    if (strcmp(r->phase, "rank") == 0) *(topk ? &t->selection : &t->products) += r->seconds;
    for (int k = 0; k < PRECISIONS && strcmp(r->operation, "linear") == 0; k++)
        if (strcmp(r->precision, precisions[k]) == 0) {
            t->calls[k] += (double)r->calls;
            t->multiply_adds[k] += (double)r->multiply_adds;
            t->weight_bytes[k] += (double)r->weight_bytes;
        }
}

static dgm_status read_times(dgm_translator *t, times *out, dgm_error *err)
{
    dgm_profile *p = NULL;
    DGM_TRY(dgm_profile_read(t, &p, err));
    *out = (times){.worked = p->busy - p->counting, .search = p->search, .text = p->text};
    for (size_t i = 0; i < p->count; i++) add_row(out, p->rows[i]);
    dgm_profile_free(&p);
    return DGM_OK;
}

// ---- items --------------------------------------------------------------------------------------

static dgm_statistic item(const field *f, const void *from)
{
    const void *at = (const char *)from + f->offset;
    dgm_statistic s = {.size = sizeof s, .name = f->name, .help = f->help, .whole = 1};
    switch (f->type) {
    case FIELD_TEXT:
        s.text = *(const char *const *)at ? *(const char *const *)at : "";
        break;
    case FIELD_U64:
        s.number = (double)*(const uint64_t *)at;
        break;
    case FIELD_I64:
        s.number = (double)*(const int64_t *)at;
        break;
    case FIELD_I32:
        s.number = (double)*(const int32_t *)at;
        break;
    case FIELD_FLOAT:
        s.number = (double)*(const float *)at;
        s.whole = 0;
        break;
    case FIELD_DOUBLE:
        s.number = *(const double *)at;
        s.whole = 0;
        break;
    case FIELD_SUM:
        s.number = *(const double *)at;
        break;
    }
    return s;
}

dgm_status dgm_statistics_read(dgm_translator *t, dgm_statistics **out, dgm_error *err)
{
    DGM_FAIL_IF(!out, err, DGM_ERR_ARGUMENT, "statistics need a place to stand");
    *out = NULL;
    DGM_FAIL_IF(!t, err, DGM_ERR_ARGUMENT, "statistics need a translator");
    dgm_counters counts;
    dgm_optimisations saved;
    times time = {0};
    dgm_count(t, &counts);
    dgm_optimisations_count(t, &saved);
    if (t->profiling) DGM_TRY(read_times(t, &time, err));
#define TABLE(fields, from) {fields, sizeof fields / sizeof fields[0], from}
    const struct {
        const field *fields;
        size_t count;
        const void *from;
    } tables[] = {TABLE(info_fields, dgm_describe(t)), TABLE(count_fields, &counts),
                  TABLE(saved_fields, &saved), TABLE(time_fields, &time)};
    const size_t most = sizeof tables / sizeof tables[0] - (t->profiling ? 0 : 1);
    size_t count = 0;
    for (size_t k = 0; k < most; k++) count += tables[k].count;
    dgm_statistics *s = dgm_malloc(sizeof *s + count * (sizeof(dgm_statistic) + sizeof(void *)));
    if (!s) return dgm_no_memory(err);
    dgm_statistic *items = (dgm_statistic *)(void *)(s + 1);
    const dgm_statistic **list = (const dgm_statistic **)(void *)(items + count);
    *s = (dgm_statistics){.size = sizeof *s, .items = list};
    for (size_t k = 0; k < most; k++)
        for (size_t i = 0; i < tables[k].count; i++) {
            items[s->count] = item(&tables[k].fields[i], tables[k].from);
            list[s->count] = &items[s->count];
            s->count++;
        }
    *out = s;
    return DGM_OK;
}

void dgm_statistics_free(dgm_statistics **statistics)
{
    if (!statistics) return;
    dgm_free(*statistics);
    *statistics = NULL;
}
