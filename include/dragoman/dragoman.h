// SPDX-License-Identifier: MIT
// Dragoman: neural machine translation as a library.
//
// The whole of it in one screen (examples/simple.c is this program):
//
//     dgm_translator *t = NULL;
//     dgm_error error;
//     if (dgm_open(&t, "en-de.gguf", NULL, &error) != DGM_OK) {
//         fprintf(stderr, "%s\n", error.text);
//         return 1;
//     }
//     const char *texts[] = {"Good morning.", "How are you?"};
//     dgm_results *results = NULL;
//     if (dgm_translate(t, texts, 2, &results, &error) == DGM_OK)
//         for (size_t i = 0; i < results->count; i++) puts(dgm_result_text(results->items[i]));
//     dgm_results_free(&results);
//     dgm_close(&t);
//
// Rules that hold everywhere:
//   - Text is UTF-8. Bytes that are not are read as U+FFFD and reported (DGM_LINE_REPAIRED).
//   - A function that can fail returns dgm_status and takes a dgm_error * as its last argument
//     (NULL allowed), which then holds one line without a final period. The library never prints,
//     exits or aborts.
//   - One translator may be used by any number of threads at once: sentences of all of them share
//     the batch. A sentence's translation never depends on its neighbours, the batch or threads.
//   - A NULL where something is needed is DGM_ERR_ARGUMENT; functions without a status then return
//     NULL, "" or 0.
//   - What a function returns through a ** belongs to the caller, who gives it back with the free
//     or close function named beside it; that sets the pointer to NULL and accepts NULL.
//
// The ABI of this header, status.h and settings.h is stable (soversion 1). How structs grow:
//   - A struct that you fill, or that is filled for you, begins with `size_t size`: its size as your
//     program was compiled. The default function beside it sets that (dgm_settings_default), and so
//     does {.size = sizeof x} where everything else may be zero. New fields are added at the end
//     only. The library reads and writes the first `size` bytes and takes the default of every field
//     behind them. If your struct is the larger one, what this library does not know must be zero
//     (DGM_ERR_ARGUMENT otherwise). A size of 0 is an error: the struct was not filled.
//   - All elements of an array that you hand over have the same size.
//   - What the library returns lies in its own memory and is reached by pointers, elements of arrays
//     too (results->items[i] is a pointer), so that these structs can grow without moving anything.
//     Fields at or behind their `size` are not there: the library is older than your program.
//   - Small structs without a size never change: dgm_error, dgm_member, dgm_direction, dgm_lmbr,
//     dgm_link, dgm_evidence_candidate, dgm_evidence_ngram, dgm_lattice_text.
#ifndef DRAGOMAN_DRAGOMAN_H
#define DRAGOMAN_DRAGOMAN_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/status.h"

#if defined(__GNUC__)
#define DGM_API __attribute__((visibility("default")))
#else
#define DGM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// ---- settings ---------------------------------------------------------------------------------

// In a float field: take what the model file says.
#define DGM_FROM_MODEL (-1e30f)

// In align_layer and align_head: take what the model file says.
#define DGM_ALIGN_MODEL INT32_MIN

typedef enum dgm_alignment {
    DGM_ALIGN_NONE = 0,
    DGM_ALIGN_WORDS = 1, // words are what white space separates, in the source and the output text
    DGM_ALIGN_TOKENS = 2 // the model's own subwords
} dgm_alignment;

// An unknown word of the output (--allow-unk) becomes what the source word that it attends to most
// is translated by in the model's dictionary, or that word itself.
typedef enum dgm_unknown {
    // Replace where the model produces unknown words and has word vocabularies.
    DGM_UNKNOWN_MODEL = 0,
    DGM_UNKNOWN_KEEP = 1,    // the vocabulary's own spelling
    DGM_UNKNOWN_REPLACE = 2, // dictionary, else copy
    DGM_UNKNOWN_COPY = 3     // copy the source word
} dgm_unknown;

typedef enum dgm_long {
    DGM_LONG_SPLIT = 0, // cut at sentence and clause ends, translate the pieces, join them again
    DGM_LONG_CROP = 1,  // translate the beginning only (the line is marked DGM_LINE_CROPPED)
    DGM_LONG_ERROR = 2  // the line gets DGM_ERR_TEXT
} dgm_long;

// From which language to which: codes as `dragoman inspect` lists them, or what is clear without them
// ("de" for "deu_Latn"). NULL or "": what the model's default is, or the only possibility.
typedef struct dgm_direction {
    const char *source, *target;
} dgm_direction;

// LMBR: what other systems say about a line (dgm_input.evidence) steers its search. Fill with
// dgm_lmbr_default, then change what you like. docs/manual/LMBR.md has the formula and how to tune it.
typedef struct dgm_lmbr {
    // Precision of single tokens in the evidence, above 0, and how much lower it is from one length
    // of n-grams to the next, above 0: what a token earns that ends an n-gram of n tokens is
    // 1 / (4 t p r^(n-1)) times the n-gram's posterior, summed over n = 1 to 4 (or another order than
    // 4: dgm_settings.lmbr_order). Defaults 0.5, 0.55.
    float p, r;
    // Weighs all of it against lambda, above 0: every token costs 1 / t. Default 10.
    float t;
    // Factor of the evidence's scores before they become probabilities, 0 or more. Default 1.
    float scale;
    // Weight of the models' log-probability, 0 or more. Default 1.
    float lambda;
    // 1: thetas[0] is what every token gets, thetas[n] the weight of the posteriors of n tokens, and
    // p, r, t are not looked at. Default 0.
    int32_t use_thetas;
    float thetas[5];
} dgm_lmbr;

DGM_API void dgm_lmbr_default(dgm_lmbr *lmbr);

enum { DGM_TERMS_MAX = 64 }; // glossaries of one translator

// Fill with dgm_settings_default, then change what you like; dragoman/settings.h describes every
// setting and sets them by name. docs/manual/DECODING.md says how they act together,
// docs/manual/FEATURES.md what is refused. Strings are borrowed during dgm_open.
typedef struct dgm_settings {
    size_t size;

    // -- model --

    // Of multilingual models, the direction (dgm_direction). Default NULL: the model's.
    const char *source, *target;
    // 1: every line says its direction, so that none need be known when the translator is opened, and
    // clusters of all are loaded. Default 0: several directions and no default are an error.
    int32_t direction_later;
    // Longest input of one piece in tokens, 8 to 65536. 0: the model's. Default 0.
    int32_t max_source;
    // What happens to a line that is longer: see dgm_long. Default DGM_LONG_SPLIT.
    int32_t long_lines;
    // "on": scores are log-probabilities. "off": the output layer's numbers are taken for them as
    // they are, no sum over the vocabulary is computed; only for models trained to be
    // self-normalised. "force-off": for any model. NULL: "on". Default NULL.
    const char *softmax;
    // Ensembles: "log-linear" or "arithmetic"; NULL: "log-linear". Default NULL.
    const char *mix;

    // -- search --

    // "auto", "greedy", "beam", "cube", "sample", "double" or "mask-predict"; NULL: "auto" (what the
    // model needs, else greedy when the beam is 1, else beam). Default NULL.
    const char *search;
    // Hypotheses kept per sentence, 1 to 256. 0: the model's. Default 0.
    int32_t beam;
    // Translations returned per line, 1 to beam. Default 1.
    int32_t nbest;
    // When a sentence is finished: "margin", "shrink", "mask", "refill", "huggingface", "marian", "ctranslate2",
    // "first", or "first:K" with K of 1 to 256: at K finished hypotheses, at least and by default nbest;
    // "ctranslate2:K" likewise, by default beam.
    // NULL: the model's. Default NULL.
    const char *finish;
    // Best finished - best live at which "margin" stops. Default DGM_FROM_MODEL: what the model's file says, else 3.
    float margin;
    // Score = log-probability / length^x. Default DGM_FROM_MODEL.
    float length_penalty;
    // Subtracted once per output token. Default DGM_FROM_MODEL.
    float word_penalty;
    // Longest output of one piece in tokens, 1 to 65536. 0: the model's. Default 0.
    int32_t max_length;
    // And at most this times the source length + 10; 0: no such limit. Default DGM_FROM_MODEL.
    float max_length_factor;
    // Shortest output of one piece in tokens, at most the longest one (of a sentence whose own
    // limit is smaller, that limit): the end symbol is not chosen before. Equal to max_length every
    // translation has that length, for benchmarks. Default 0.
    int32_t min_length;
    // After every step hypotheses with less than this share of the best live one's probability are
    // dropped, 0 to 1, e.g. 0.01; 0: none. Default DGM_FROM_MODEL: none unless the model's file says otherwise.
    float beam_width;
    // Beam search takes the i-th best continuation of a hypothesis (from 0) as if its score were i
    // times this lower, so that an n-best list differs more; scores in the results are the model's.
    // Default 0: by score alone.
    float diversity;
    // Finished hypotheses are ranked by their score plus this times the sum over source tokens of
    // ln min(1, attention that the token got in all steps). Of an ensemble the first model's
    // attention counts. Default 0: by score alone.
    float coverage_penalty;
    // Cube pruning: "accelerated" (a hypothesis takes over the state and scores of the best one
    // like it; scores in the results are then approximate unless exact_scores is set) or "naive"
    // (states and scores are its own). NULL: "accelerated". Default NULL.
    const char *cube;
    // Which hypotheses are alike: "token" (same last token), "none" (beam search), "state:EPS"
    // (same last token, and hidden vectors whose relative distance is below EPS). NULL: "token".
    const char *cube_key;
    // 1: translations of accelerated cube pruning are scored again by the model in the end, so that
    // scores and links are exact, and ranked by these scores. Default 0.
    int32_t exact_scores;
    // Search "sample" draws `nbest` translations token by token. Probabilities are raised to the
    // power of 1 / temperature. Default 0: 1, as they are.
    float temperature;
    // Only from the most probable tokens that have this share of the probability of the top_k
    // together, 0 to 1. Default 0: from all of them.
    float top_p;
    // Only from so many most probable tokens, 1 to 1024. Default 0: 1024.
    int32_t top_k;
    // Another seed gives other translations. The same sentence, seed and settings give the same
    // ones, in any batch, order and number of threads. Default 0.
    uint64_t seed;
    // Search "double" (models that write two words a step): "topk", the best right words of the best
    // 2 x beam left ones, or "exact", the best of all pairs. NULL: "topk".
    const char *pairs;
    // Search "mask-predict" (models that fill in whole sentences): how often a translation is
    // predicted, 1 to 1000, and for how many of its most probable lengths, 1 to 256. 0: 10 and 5.
    int32_t iterations, lengths;

    // -- words --

    // Which words a translation may be made of: "all", or "lexical": the candidates that the
    // model's shortlist gives for the sentence, or "cluster": those that the model's clusters give
    // for the decoder's vectors at every step, or the "union" or "intersect"ion of both. All but
    // the first are faster; scores are then normalised over the candidates. Of an ensemble the
    // first list and the first clusters of the direction count. NULL: "lexical" where there is a
    // list and the model has one target language, else "all". Default NULL.
    const char *shortlist;
    // May the unknown word be produced? -1: as the model says. Default -1.
    int32_t allow_unk;
    // What happens to an unknown word in the output: see dgm_unknown. Default DGM_UNKNOWN_MODEL.
    int32_t unknown;
    // Lexical table (TARGET SOURCE PROBABILITY a line, also gzip) that unknown words are looked up
    // in. NULL: they are copied. Default NULL.
    const char *dictionary;

    // -- constraints --

    // The probability of a token that the hypothesis holds already is divided by this (not the
    // end symbol's); below 1 repetition is rewarded. Default 0: left as it is, as by 1.
    float repetition_penalty;
    // No sequence of so many tokens comes twice in one translation. Default 0: it may.
    int32_t no_repeat_ngram;
    // Glossaries: NULL behind the last path; TSV, CSV and TBX (docs/manual/CONSTRAINTS.md). Where a source
    // term stands in a line, one of its target variants must stand in the translation, as written.
    // "en-de=PATH" is for lines of that direction alone, by any names of languages. Default: none.
    const char *terms[DGM_TERMS_MAX];
    // POSIX extended regular expression: what it finds in a line (placeholders, numbers) must come
    // through as written. Default NULL: nothing.
    const char *keep;

    // -- evidence --

    // 1: lines may come with lattices (dgm_input.lattice), whose paths are the translations that
    // they may have. Shortlists are then off unless `shortlist` asks for one. Default 0.
    int32_t lattices;
    // The score of a path is added with this weight to the models'. Default 0: the lattice only
    // says what is allowed.
    float lattice_weight;
    // 1: lines may come with evidence (dgm_input.evidence), weighed by `lmbr`. Default 0. See also
    // phrase_system.
    int32_t evidence;
    dgm_lmbr lmbr;

    // -- what results hold --

    // Word or token links in the results: see dgm_alignment. Default DGM_ALIGN_NONE.
    int32_t alignment;
    // Where they are read: decoder layer (from 0; negative: from the end) and head of attention
    // (-1: the mean of all heads). DGM_ALIGN_MODEL: what the model says. Default DGM_ALIGN_MODEL.
    int32_t align_layer, align_head;
    // Tokens and their log-probabilities in the results. Default 0.
    int32_t token_scores;

    // -- speed --

    // Worker threads over one copy of the weights, 1 to 1024. 0 ("all" by name): one per core. Default 1. For every
    // four there is one more, for text: it sleeps most of the time. With phrase_system there is one
    // more for each, which decodes.
    int32_t threads;
    // Sentences that each worker decodes at once, at most, 1 to 4096. 0: as many as batch_tokens
    // admits. Default 0.
    int32_t batch;
    // What each worker decodes at once is also bounded by the sum over its sentences of source
    // tokens x beam, 1 to 2^24 (one sentence is always admitted). 0: 8192, more where batch
    // asks for more sentences (128 tokens each), or what the workspace
    // allows. Default 0.
    int32_t batch_tokens;
    // Rows (hypotheses of all sentences) that go through the models at once, at most; the same
    // translations, slower: for comparisons. Default 0: all there are.
    int32_t max_rows;
    // Bytes of memory for the work of all workers together, beside the weights and the texts.
    // dgm_open fails if one sentence per worker needs more. 0: what the batch needs, and no more
    // than the machine has. Default 0.
    int64_t workspace;
    // Where to compute: "cpu", or "cpu:LEVEL" with one of the levels below; "cuda" or "cuda:NUMBER"
    // for a GPU; "auto" for the first GPU that the model fits on, else the CPU. Default "cpu".
    const char *device;
    // Highest instruction set to use: "c"; on x86 "avx2", "avx512", "vnni", "amx"; on Arm "neon",
    // "dotprod", "i8mm". NULL: the environment variable DRAGOMAN_CPU if it is set, else the best
    // this machine has. Default NULL.
    const char *cpu;
    // How products are computed: "f32", "i16", "i8" or "bf16", on some devices "f16", whatever the
    // file stores. NULL: what the model recommends, else "i8". Default NULL.
    const char *precision;
    // Products in i8 and i16 round their input by the scales that `dragoman quantize --calibrate`
    // stored in the model, in the layers that have one, instead of by every row's maximum; refused
    // where the model has none. 0: they do not. Default -1: as the model's file says, else 0.
    int32_t static_scales;
    // Choices of recurrent models that leave a translation as it is (the second up to rounding).
    // Products with the embeddings of so many most frequent words of each side are made when the
    // model is loaded and looked up later; 0: none. Default 0.
    int32_t precompute;
    // 1: attention adds up encoder vectors and multiplies the sum, instead of adding up products
    // made once per sentence. Default 0.
    int32_t plain_attention;
    // 1: products with a state are made for each of the hypotheses that share it. Default 0.
    int32_t separate_states;
    // How sigmoid and tanh are computed: "polynomial", "table" (look-up, errors up to 2.4e-5) or
    // "libm" (scalar, slow). NULL: "polynomial". Default NULL.
    const char *activations;
    // Evidence that is a lattice: where its n-grams stand at more than so many positions, half of its
    // arcs go, the worse ones, and again until it fits (dgm_counters.evidence_pruned). This bounds
    // time and memory, some hundred bytes a position. Default 4194304.
    int32_t lmbr_limit;
    // 1: count the union of the candidates of all sentences that a worker decodes together
    // (dgm_counters.unions). Default 0.
    int32_t count_unions;
    // "off": candidates of `shortlist` are those of the list or the clusters alone, without the
    // tokens of the source that models with one vocabulary for both sides add to them (names and
    // numbers are copied). NULL: "on". Default NULL.
    const char *source_tokens;
    // 1: scores and links of accelerated cube pruning stay as the search has them, whatever
    // exact_scores says; dgm_translation.approximate is then set. (For programs whose output decides
    // about exact_scores.) Default 0.
    int32_t approximate_scores;
    // N-grams of the evidence that count: those of up to so many tokens, 1 to 4. Default 4.
    int32_t lmbr_order;
    // 1: results hold the n-grams of the lines' evidence (dgm_result.ngrams). Default 0.
    int32_t lmbr_ngrams;
    // A phrase-based system (the path of a file as docs/manual/PHRASES.md describes it) that decodes every
    // line which comes without evidence, and steers its search, weighed by `lmbr`. It must translate
    // between the model's languages. "en-de=PATH,fr-de=PATH": one for lines of each direction; those of others
    // have none. Default NULL: none.
    const char *phrase_system;
    // What it gives: "nbest", the list of its evidence_nbest best translations, no two the same, or
    // "lattice", its search graph. NULL: "nbest". Default NULL.
    const char *evidence_kind;
    // 1 to 1000000. Default 200.
    int32_t evidence_nbest;
    // Where a line is cut into parts that are translated by themselves and joined again, with the
    // white space that stood between them: "sentences": at the end of every sentence; "long": only
    // where it is longer than the model takes (see long_lines); "none": nowhere, and a line that is too
    // long fails or is cropped; "auto": "sentences", but "long" for models whose file says that they
    // take paragraphs or whose words are tokens between spaces. A line with a prefix, constraints of its
    // own, evidence or a lattice is one sentence. NULL: "auto". Default NULL.
    const char *split;
    // 1: nothing is done to the text before or after the model (docs/manual/TEXT.md); `split` is "long".
    // Default 0.
    int32_t raw;
    // 1: numbers, prices, times, dates, addresses, placeholders, code and names that a translation lost or
    // changed are saved: the sentence is translated again with stand-ins for them (docs/manual/TEXT.md).
    // Nothing changes where all of them are there. Default 1.
    int32_t protect;
    // 1: devices with a clock of their own measure how long they are busy (dgm_counters.device_seconds), which
    // costs them some microseconds a step. Default 0.
    int32_t time_devices;
} dgm_settings;

// Fills the first `size` bytes: what other languages call. In C and C++ use dgm_settings_default.
DGM_API void dgm_settings_init(dgm_settings *settings, size_t size);
static inline void dgm_settings_default(dgm_settings *settings)
{
    dgm_settings_init(settings, sizeof *settings);
}

// ---- translator -------------------------------------------------------------------------------

typedef struct dgm_translator dgm_translator;

// Loads a model: a path, or what else -m of the program takes: a name that `dragoman models` lists ("en-de"), a
// folder or file of another program's model, which is imported into a cache first (models.h). path NULL: the
// default model. settings NULL: defaults.
DGM_API dgm_status dgm_open(dgm_translator **t, const char *path, const dgm_settings *settings,
                            dgm_error *error);

// One model of an ensemble.
typedef struct dgm_member {
    const char *path; // as dgm_open takes it; NULL: the default model
    float weight;     // 0: equal weights (then all must be 0)
} dgm_member;

// Loads 1 to 8 models that translate together. They must share their vocabularies; architectures
// may differ. Weights are scaled to sum to 1.
DGM_API dgm_status dgm_open_ensemble(dgm_translator **t, const dgm_member *members, size_t count,
                                     const dgm_settings *settings, dgm_error *error);

// Loads a model from memory: the bytes of a model file, of any kind. They must stay where they are,
// unchanged, until dgm_close: embeddings are read from them. (Where their address is not a multiple of
// 64 a copy is made, and they are free when the call returns.) Bytes that are no model are
// DGM_ERR_FORMAT.
DGM_API dgm_status dgm_open_memory(dgm_translator **t, const void *data, size_t size,
                                   const dgm_settings *settings, dgm_error *error);

// Another translator over the weights that `lender` has loaded, with settings of its own: it has workers and memory
// for them, and costs no second copy of the model. Settings that belong to what was loaded (DGM_SETTING_WEIGHTS in
// settings.h: device, precision, direction ...) are the lender's, whatever `settings` says. Either may be closed first.
DGM_API dgm_status dgm_open_like(dgm_translator **t, const dgm_translator *lender, const dgm_settings *settings,
                                 dgm_error *error);

// After every call on the translator has returned and every job was waited for.
DGM_API void dgm_close(dgm_translator **t);

// What was loaded, with the settings as they were resolved. Valid as long as the translator.
typedef struct dgm_translator_info {
    size_t size;
    const char *name;                              // of the first model, "" if it has none
    const char *architecture;                      // of the first model
    const char *source_language, *target_language; // BCP 47, "" if the model does not say
    const char *device;    // "cpu avx2: ..." with the names of the chosen kernels
    uint64_t parameters;   // of all models
    uint64_t packed_bytes; // memory of their weights
    int32_t models, threads, batch, beam, nbest, max_length, max_source;
    const char *finish, *precision, *search; // finish: "first:2" with its number
    float length_penalty, word_penalty, max_length_factor;
    const char *shortlist; // "all", "lexical", "cluster", "union" or "intersect"
    int64_t batch_tokens;
    int32_t vocabulary; // tokens of the target side
    int32_t widened;    // 1: precision is not the device's usual one, which does not hold the models' numbers
    // Where links are read: "layer 5, head 3" or "layer 5, mean of attention"; "none": none are asked for.
    const char *alignment;
    int32_t lead;       // tokens before every translation, its language: dgm_input.prefix_tokens begin with them
    int32_t longest;    // the largest max_length that the models' positions allow
    // What the caller's settings and the defaults of the model's file came to.
    float beam_width, margin;                // 0: nothing is dropped; of finish "margin"
    const char *cube_key, *pairs, *softmax;  // of search "cube"; of search "double"; "on", "off" or "force-off"
    int32_t iterations;                      // of search "mask-predict"
    int32_t static_scales;
    // Which kernel products take, by shape (inputs x outputs) and rows: "i8 512x512 512x2048: vnni to 3 rows, amx from
    // 4"; "" on a device that has no such table.
    const char *kernels;
} dgm_translator_info;

DGM_API const dgm_translator_info *dgm_describe(const dgm_translator *t);

// How many directions the model translates (0: it does not say), and the one with this index, from 0
// (out may be NULL). Strings live as long as the translator.
DGM_API size_t dgm_directions(const dgm_translator *t, size_t index, dgm_direction *out);

// ---- results ----------------------------------------------------------------------------------

// Source and target position that belong together, from 0.
typedef struct dgm_link {
    int32_t source, target;
} dgm_link;

typedef struct dgm_translation {
    size_t size;
    const char *text; // UTF-8, one line, NUL-terminated
    size_t text_size; // bytes without the NUL
    float score;      // what translations are ranked by (normalised by length)
    float sum;        // log-probability with the end symbol
    // With settings.token_scores: tokens[i] has the log-probability token_scores[i]. A piece of the
    // line ends with its end symbol, "</s>" or what the model calls it. Otherwise NULL and 0.
    const char *const *tokens;
    const float *token_scores;
    size_t token_count;
    // With settings.alignment, sorted by target, then source. Otherwise NULL and 0.
    const dgm_link *links;
    size_t link_count;
    int32_t finished;    // 0: cut off at the maximum length or by the line's deadline
    int32_t approximate; // 1: scores are those of accelerated cube pruning, not the model's
    // Through a third language (route.h): the text in it that this is the translation of. Otherwise NULL.
    const char *pivot;
} dgm_translation;

// An n-gram of a line's evidence, an entry of the matrix of LMBR (docs/manual/LMBR.md): the row is that of all
// its tokens but the last, the column that one's.
typedef struct dgm_evidence_ngram {
    const char *tokens; // as the vocabulary spells them, one space apart
    int32_t length;     // tokens
    double posterior;   // probability that a translation drawn from the evidence contains it
    double gain;        // what the search adds to the last token behind the others, but for thetas[0]
} dgm_evidence_ngram;

// What happened to a line, combined.
enum {
    DGM_LINE_REPAIRED = 1, // it was not valid UTF-8
    DGM_LINE_SPLIT = 2,    // it was translated in pieces
    DGM_LINE_CROPPED = 4,  // its end was not translated
    DGM_LINE_TRUNCATED = 8, // a translation reached the maximum length
    // A constraint could not be met and was left out: see notice.
    DGM_LINE_UNMET = 16,
    DGM_LINE_MALFORMED = 32, // dgm_input.constraints cannot be read: all of them were left out
    DGM_LINE_COPIED = 64,    // it, or a part of it, is no language and passed through as it is
    DGM_LINE_REPEATED = 128, // a translation began to repeat itself and was cut there
    DGM_LINE_DEADLINE = 256, // dgm_input.deadline_ms passed: it holds what was ready by then
    DGM_LINE_MENDED = 512    // it, or a part of it, was translated again to save what it had lost (settings.protect)
};

typedef struct dgm_result {
    size_t size;
    dgm_status status;      // of this line alone; others are not touched by its failure
    const char *message;    // "" when the status is DGM_OK
    uint32_t flags;         // DGM_LINE_...
    uint32_t pieces;        // parts it was translated in; 0 for an empty line
    uint64_t source_tokens; // end symbols included
    // Best first; of a line in pieces the k-th is made of the k-th of every piece. An empty line has
    // one, empty.
    const dgm_translation *const *translations;
    size_t count; // 1 to nbest; 0 when the status is an error
    // What became of constraints that were left out (DGM_LINE_UNMET), in one line; else NULL.
    const char *notice;
    // With settings.lmbr_ngrams: its evidence, short n-grams first, the most probable of each length
    // first. Otherwise NULL and 0.
    const dgm_evidence_ngram *ngrams;
    size_t ngram_count;
    // Of a route from "auto" (route.h): the language that was found, valid as long as the route. Otherwise NULL.
    const char *language;
    // Between which languages the model translated that wrote it, the last one of a route, valid as long as its
    // translator; NULL where the model does not say.
    const char *source_code, *target_code;
} dgm_result;

typedef struct dgm_results {
    size_t size;
    const dgm_result *const *items; // in the order of the texts
    size_t count;
    size_t failed;                         // lines whose status is not DGM_OK
    uint64_t source_tokens, target_tokens; // sums over the lines (target: best translations)
} dgm_results;

// The best translation of a line; "" when there is none.
DGM_API const char *dgm_result_text(const dgm_result *result);
// results->items[index], for languages that do not follow pointers; NULL: there is no such line.
DGM_API const dgm_result *dgm_results_item(const dgm_results *results, size_t index);
DGM_API void dgm_results_free(dgm_results **results);

// ---- translating ------------------------------------------------------------------------------

// Translates count lines. A bad line does not fail the call: see dgm_result.status.
DGM_API dgm_status dgm_translate(dgm_translator *t, const char *const *texts, size_t count,
                                 dgm_results **results, dgm_error *error);

// A translation of a line by another system: one entry of its n-best list.
typedef struct dgm_evidence_candidate {
    const char *text; // UTF-8; need not end with NUL
    size_t size;
    double score; // the logarithm of how probable it is, up to a factor and a constant
} dgm_evidence_candidate;

typedef struct dgm_evidence {
    size_t size;
    const dgm_evidence_candidate *candidates; // in any order; the same text twice counts twice
    size_t count;
    // Or a lattice as text, one block of docs/manual/LATTICES.md; count is then 0.
    const char *lattice; // need not end with NUL; NULL: none
    size_t lattice_size;
} dgm_evidence;

DGM_API void dgm_evidence_init(dgm_evidence *evidence, size_t size);
static inline void dgm_evidence_default(dgm_evidence *evidence)
{
    dgm_evidence_init(evidence, sizeof *evidence);
}

// Which translations a line may have: the paths of a lattice, as text (docs/manual/LATTICES.md).
typedef struct dgm_lattice_text {
    const char *text; // UTF-8; need not end with NUL
    size_t size;
    uint64_t line; // of its file that it begins with, for messages; 0: 1
} dgm_lattice_text;

// The same with everything that can be said about a line.
typedef struct dgm_input {
    size_t size;
    const char *text;   // need not end with NUL; a line break inside counts as a space
    size_t text_size;   // bytes
    const char *prefix; // the translation must begin so; NULL: nothing is forced
    size_t prefix_size;
    // NULL or empty: what settings.phrase_system says, or the models alone translate it. Needs
    // settings.evidence or phrase_system.
    const dgm_evidence *evidence;
    // NULL: it may have any translation. Needs settings.lattices; with a prefix, a path must begin
    // with it. The margin ends no search early in a lattice, and the line is not split.
    const dgm_lattice_text *lattice;
    // What the translation must and must not hold, in the words of a constraints file, e.g.
    // "house => Haus | Heim\t! Bude" (docs/manual/CONSTRAINTS.md). NULL: nothing. What cannot be
    // combined with the translator's settings or model is the line's failure (features.h).
    const char *constraints;
    size_t constraints_size;
    // Of a multilingual model, for this line alone; NULL, or what it leaves out: the translator's.
    const dgm_direction *direction;
    // Milliseconds from the call on, after which the line gets what is ready, marked
    // DGM_LINE_DEADLINE: of a sentence whose search has finished hypotheses the best of these, else its
    // best unfinished one as it is (scores are those of the search; a model that writes from right to
    // left has the end of it), of a sentence without a word yet nothing. A line of which nothing is
    // ready fails with DGM_ERR_CANCELLED. Looked at between two steps of a search; mask-predict, whose
    // steps are few, goes on to its end. Other lines are not touched. 0: none.
    int64_t deadline_ms;
    // In place of text: the tokens that the encoder reads, as the vocabulary spells them, with end symbol, languages
    // and all (dgm_text_tokens of text.h gives those of a text); what the vocabulary does not have is its unknown
    // word. NULL: text counts.
    const char *const *tokens;
    size_t token_count;
    // With tokens: the translation begins so. Of a model that wants languages there the first are these. NULL: nothing
    // is forced.
    const char *const *prefix_tokens;
    size_t prefix_token_count;
} dgm_input;

DGM_API void dgm_input_init(dgm_input *input, size_t size);
static inline void dgm_input_default(dgm_input *input)
{
    dgm_input_init(input, sizeof *input);
}

DGM_API dgm_status dgm_translate_inputs(dgm_translator *t, const dgm_input *inputs, size_t count,
                                        dgm_results **results, dgm_error *error);

// Asynchronously: submit prepares the lines (texts may be freed when it returns) and leaves them to
// the workers; wait blocks until they are done and ends the job. A program that keeps two jobs in
// flight keeps the workers' batches full.
typedef struct dgm_job dgm_job;
DGM_API dgm_status dgm_submit(dgm_translator *t, const dgm_input *inputs, size_t count,
                              dgm_job **job, dgm_error *error);

// What a job says while it runs, by functions of yours; NULL: nothing.
//   - They are called from threads of the library: of one job never two at once, of several jobs at
//     the same time. *job is set before the first call; dgm_wait returns after the last.
//   - They should be short: lines and sentences behind them wait. They may call dgm_cancel,
//     dgm_job_done and dgm_submit, and must not wait for translations (dgm_wait, dgm_wait_for,
//     dgm_translate), close the translator, throw or jump out.
typedef struct dgm_watch {
    size_t size; // sizeof(dgm_watch)
    void *user;  // what the functions get first
    // A line is ready, failed and cancelled ones included: once for every line, in the order in which
    // they are. The result is the one that dgm_wait will return, and lives as long as that.
    void (*line)(void *user, size_t index, const dgm_result *result);
    // After every line: how many are ready, of how many.
    void (*progress)(void *user, size_t done, size_t all);
    // The beginning of a line's best translation while it is searched for: whole words that will not
    // change any more, since all hypotheses that can still win begin with them; of a line in parts the
    // parts that are finished, with the line's own white space between them, and the beginning of the
    // next. Every call has more than the one before and begins with it; the last one, just before
    // `line`, has the whole translation. (A line that fails has no such last one.) Searches "greedy",
    // "beam" and "cube" of models that write from left to right say single words; with others, and
    // where the text of a part is changed when it is whole (it was in capitals, has constraints or a
    // lattice), a part is told when it is finished; where unknown words are replaced or something is
    // protected (settings.protect), the line. text ends with NUL and is valid during the call.
    void (*partial)(void *user, size_t index, const char *text, size_t size);
    // With partial: how many tokens behind its end a translation is settled, 1 to 1000. Hypotheses of a beam that
    // differ from the best one further back are given up, so that words are told about so many tokens after they
    // were found, at the cost of another translation now and then. Lines with constraints do not take part. Default
    // 0: none is given up; a word is told when all hypotheses have it, which may be at the end.
    int32_t settle;
} dgm_watch;

// dgm_submit with somebody who watches; watch is copied.
DGM_API dgm_status dgm_submit_watched(dgm_translator *t, const dgm_input *inputs, size_t count,
                                      const dgm_watch *watch, dgm_job **job, dgm_error *error);

DGM_API size_t dgm_job_done(const dgm_job *job); // lines finished so far
// How much of its work is done, 0 to 1, for estimates of the time that is left: long lines count for
// more, and come first; of lines that are being decoded a part counts.
DGM_API double dgm_job_share(const dgm_job *job);
DGM_API dgm_status dgm_wait(dgm_job **job, dgm_results **results, dgm_error *error);
// Waits no longer than so many milliseconds (0: not at all; negative: as long as it takes) and says
// whether all lines are done: 1 or 0, DGM_ERR_ARGUMENT where job is NULL. It does not end the job:
// dgm_wait does, and then returns at once.
DGM_API int dgm_wait_for(dgm_job *job, int64_t milliseconds);
// Any thread may give a job up, at any time before dgm_wait returns. Lines that are finished stay as
// they are, all others get DGM_ERR_CANCELLED: those in the queue at once, those being translated
// before their next word. The job still has to be ended with dgm_wait, which soon returns.
DGM_API void dgm_cancel(dgm_job *job);

// Work done since dgm_open, for statistics and benchmarks.
typedef struct dgm_counters {
    size_t size;
    uint64_t lines, sentences; // sentences: pieces that were decoded
    uint64_t source_tokens, target_tokens;
    uint64_t steps, rows, rank_rows;  // decoder steps, rows in them, rows projected
    uint64_t arena_bytes, arena_peak; // reserved and touched memory of all workers
    uint64_t dots;  // products of a decoder row with an output token's vector, of each model
    uint64_t live;  // hypotheses expanded
    uint64_t leads; // of these, rows that were ranked whole: sub-cubes; all of them in beam search
    uint64_t exact; // naive cube pruning: rows computed for popped cells besides
    uint64_t pops, heaps, heap_peak; // cells popped, sum and maximum of the heaps' largest sizes
    uint64_t restarts;   // sentences that were begun again because a worker's memory was full
    uint64_t candidates; // tokens that each sentence could choose from, summed over the sentences
    uint64_t more;       // tokens that projected rows could choose from besides, summed
    uint64_t evidence_lines;  // lines that came with evidence
    uint64_t evidence_rows;   // rows of posteriors made of it, one for every history
    uint64_t evidence_values; // numbers in them
    double evidence_seconds;  // CPU time that making them took
    uint64_t centroids, centroids_used; // clusters: how many there are, and were nearest to a row
    uint64_t evidence_pruned; // lines whose lattice was too large (dgm_settings.lmbr_limit)
    // With dgm_settings.count_unions: steps in which sentences chose from candidates, the union of
    // these over a step's sentences, summed; candidates of single sentences in these steps, how many
    // such there were and their sizes, summed.
    uint64_t unions, union_tokens, selections, selection_tokens;
    uint64_t evidence_decoded;      // lines that the phrase-based system decoded
    double evidence_decode_seconds; // CPU time that this took
    uint64_t copied, repeated; // lines with DGM_LINE_COPIED, DGM_LINE_REPEATED
    uint64_t mended;           // lines with DGM_LINE_MENDED
    // With dgm_settings.time_devices: devices that have a clock, and the time in which they were busy with any
    // thread's steps, of all of them together.
    uint64_t devices;
    double device_seconds;
} dgm_counters;

DGM_API void dgm_count_sized(const dgm_translator *t, dgm_counters *counters, size_t size);
static inline void dgm_count(const dgm_translator *t, dgm_counters *counters)
{
    dgm_count_sized(t, counters, sizeof *counters);
}

// "0.1.0"
DGM_API const char *dgm_version(void);
// "invalid argument", ...
DGM_API const char *dgm_status_name(dgm_status status);

#ifdef __cplusplus
}
#endif
#endif
