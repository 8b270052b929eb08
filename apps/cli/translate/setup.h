// SPDX-License-Identifier: MIT
// Options that several commands share: which model to load and how to decode (translate, score,
// bench), how to align (align, shortlist).
#ifndef DGM_APPS_CLI_TRANSLATE_SETUP_H
#define DGM_APPS_CLI_TRANSLATE_SETUP_H

#include <stdint.h>

#include "dragoman/dragoman.h"
#include "io/files.h"
#include "options.h"

typedef struct engine_options {
    option_list models;
    const char *weights, *source, *target, *precision, *mix, *cpu, *device;
    int directions; // lines say theirs
    const char *search, *finish, *long_lines, *cube, *cube_key, *softmax, *shortlist;
    const char *activations, *unknown, *dictionary;
    int precompute, plain_attention, separate_states;
    int beam, batch, batch_tokens, threads, max_length, min_length, max_source, allow_unk;
    int static_scales;
    int64_t workspace;
    float margin, length_penalty, word_penalty, max_length_factor;
    int no_unk, seed;
    dgm_settings decoding; // what has no field above
} engine_options;

void engine_options_default(engine_options *e);
// "file:0.7" -> file and weight, unless a file of the whole name exists; no weight: 0. Returns -1, or
// the exit code after a message.
int split_weight(char *spec, dgm_member *m);
// Fills the settings (nbest, alignment and token scores stay the caller's) and loads the models.
// Returns -1, or the exit code after a message.
int engine_open(const engine_options *e, dgm_settings *settings, dgm_translator **t);
// Adds what it reads to the list: models, the default one too, and the dictionary. Returns -1, or
// the exit code after a message.
int engine_files(const engine_options *e, file_list *f);
// "SIZE:CRC-32*WEIGHT ..." of the model files: two jobs with the same text use the same models.
// Returns -1, or the exit code after a message.
int engine_identity(const engine_options *e, char *text, size_t size);
// Adds the same of one file, whatever it holds.
int file_identity(const char *path, float weight, char *text, size_t size);
// Exit code for a status of the library.
int exit_code(dgm_status status);

#define MODEL_OPTIONS(S, E)                                                                        \
    {"model", 'm', OPTION_LIST, "FILE[:WEIGHT]", offsetof(S, E.models), 0, 0, NULL,                \
     "model file; several make an ensemble, each with its weight. Without it the default model "   \
     "is taken (see 'dragoman models')",                                                           \
     "models", NULL},                                                                              \
    {"weights", 0, OPTION_TEXT, "W,W,...", offsetof(S, E.weights), 0, 0, NULL,                     \
     "weights of the ensemble's models, in their order", NULL, NULL},                              \
    {"source", 's', OPTION_TEXT, "LANG", offsetof(S, E.source), 0, 0, NULL,                        \
     "language of the text, e.g. en: without --model, the first model that reads it is taken; "    \
     "'dragoman inspect' lists what a model has",                                                  \
     NULL, NULL},                                                                                  \
    {"target", 't', OPTION_TEXT, "LANG", offsetof(S, E.target), 0, 0, NULL,                        \
     "language to translate into, e.g. de", NULL, NULL},                                           \
    {"precision", 0, OPTION_CHOICE, "NAME", offsetof(S, E.precision), 0, 0, "f32|i16|i8|f16|bf16", \
     "how products are computed, whatever the file stores (default: the model's, else i8)", NULL,  \
     NULL},                                                                                        \
    {"static-scales", 0, OPTION_FLAG, NULL, offsetof(S, E.static_scales), 0, 0, NULL,              \
     "i8: round activations by the scales stored by 'dragoman quantize --calibrate', not by "      \
     "every row's maximum",                                                                        \
     NULL, NULL},                                                                                  \
    {"mix", 0, OPTION_CHOICE, "NAME", offsetof(S, E.mix), 0, 0, "log-linear|arithmetic",           \
     "how an ensemble's probabilities are mixed (default log-linear)", NULL, NULL},                \
    {"device", 0, OPTION_TEXT, "NAME", offsetof(S, E.device), 0, 0, NULL,                          \
     "where to compute: cpu[:LEVEL], cuda[:NUMBER], auto (the first GPU that the model fits on, "  \
     "else cpu); 'dragoman devices' lists them (default cpu)",                                     \
     NULL, NULL},                                                                                  \
    {"cpu", 0, OPTION_TEXT, "LEVEL", offsetof(S, E.cpu), 0, 0, NULL,                               \
     "highest instruction set to use: c; avx2, avx512, vnni, amx; neon, dotprod, i8mm (default: "  \
     "DRAGOMAN_CPU, else the best)",                                                               \
     NULL, NULL},                                                                                  \
    {"softmax", 0, OPTION_CHOICE, "NAME", offsetof(S, E.softmax), 0, 0, "on|off|force-off",        \
     "off: take the output layer's numbers for log-probabilities, without a sum over the "         \
     "vocabulary; only for self-normalised models (force-off: for any)",                           \
     NULL, NULL},                                                                                  \
    {"batch", 0, OPTION_COUNT, "N", offsetof(S, E.batch), 1, 4096, NULL,                           \
     "sentences that each thread decodes at once, at most (default: by --batch-tokens alone)",     \
     "mini-batch", NULL},                                                                          \
    {"batch-tokens", 0, OPTION_COUNT, "N", offsetof(S, E.batch_tokens), 1, 1 << 24, NULL,          \
     "what each thread decodes at once: the sum of source tokens x beam over its sentences "       \
     "(default 8192, or enough for --batch, or what --workspace allows)",                          \
     "mini-batch-words", NULL},                                                                    \
    {"workspace", 0, OPTION_SIZE, "SIZE", offsetof(S, E.workspace), 1, 1e15, NULL,                 \
     "memory for the work of all threads and the text in flight, beside the weights, e.g. 512M "   \
     "(default: what the batch needs)",                                                            \
     NULL, NULL},                                                                                  \
    {"threads", 0, OPTION_COUNT, "N", offsetof(S, E.threads), 0, 1024, NULL,                       \
     "worker threads over one copy of the weights; 0: one per core (default 1)", "cpu-threads",    \
     NULL},                                                                                        \
    {"precompute", 0, OPTION_COUNT, "K", offsetof(S, E.precompute), 0, 16777216, NULL,             \
     "recurrent models: make the first layers' products of the K most frequent words of each side "\
     "when loading and look them up; the same translations, more memory (default 0)",              \
     NULL, NULL},                                                                                  \
    {"plain-attention", 0, OPTION_FLAG, NULL, offsetof(S, E.plain_attention), 0, 0, NULL,          \
     "recurrent models: multiply the attended sum at every step, instead of adding up products "   \
     "made once per sentence",                                                                     \
     NULL, NULL},                                                                                  \
    {"separate-states", 0, OPTION_FLAG, NULL, offsetof(S, E.separate_states), 0, 0, NULL,          \
     "recurrent models: make a state's products again for each hypothesis that shares it", NULL,   \
     NULL},                                                                                        \
    {"activations", 0, OPTION_CHOICE, "NAME", offsetof(S, E.activations), 0, 0,                    \
     "polynomial|table|libm",                                                                      \
     "how sigmoid and tanh are computed: polynomial (default), table (look-up, less exact), libm " \
     "(one by one, slow)",                                                                         \
     NULL, NULL},                                                                                  \
    {"max-source", 0, OPTION_COUNT, "N", offsetof(S, E.max_source), 8, 65536, NULL,                \
     "longest input of the model in tokens (default: the model's)", "max-input-length", NULL},     \
    {"length-penalty", 0, OPTION_REAL, "X", offsetof(S, E.length_penalty), -100, 100, NULL,        \
     "score = log-probability / length^X (default: the model's)", "normalize", NULL}

// Of the commands that align a text; DGM_ALIGN_ITERATIONS_MAX is of dragoman/tools.h.
#define ALIGN_OPTIONS(S)                                                                           \
    {"iterations", 'n', OPTION_COUNT, "N", offsetof(S, iterations), 1, DGM_ALIGN_ITERATIONS_MAX,   \
     NULL, "rounds of training of the alignment, in each direction (default 5)", NULL, NULL},      \
    {"max-length", 0, OPTION_COUNT, "N", offsetof(S, max_length), 1, 1000, NULL,                   \
     "leave out pairs with more tokens on a side; their alignment is empty (default 200)", NULL,   \
     NULL},                                                                                        \
    {"threads", 0, OPTION_COUNT, "N", offsetof(S, threads), 0, 1024, NULL,                         \
     "worker threads; 0: one per core (default 0). The result does not depend on it", NULL, NULL}

#define SEARCH_OPTIONS(S, E)                                                                       \
    {"beam", 'b', OPTION_COUNT, "N", offsetof(S, E.beam), 1, 256, NULL,                            \
     "hypotheses kept per sentence (default: the model's, else 4)", "beam-size", NULL},            \
    {"search", 0, OPTION_CHOICE, "NAME", offsetof(S, E.search), 0, 0,                              \
     "auto|greedy|beam|cube|sample|double|mask-predict",                                           \
     "search algorithm (default: what the model needs; else greedy with a beam of 1, else beam); " \
     "sample draws --nbest translations at random, token by token; double is for models that "     \
     "write two words a step, mask-predict for those that fill in whole sentences",                \
     NULL, NULL},                                                                                  \
    {"pairs", 0, OPTION_CHOICE, "NAME", offsetof(S, E.decoding.pairs), 0, 0, "topk|exact",         \
     "--search double: pairs of words are the best right ones of the best 2 x beam left ones "     \
     "(topk, default), or the best of all (exact)",                                                \
     NULL, NULL},                                                                                  \
    {"iterations", 0, OPTION_COUNT, "N", offsetof(S, E.decoding.iterations), 1, 1000, NULL,        \
     "--search mask-predict: predict a translation N times, each time fewer of its words "         \
     "(default 10)",                                                                               \
     NULL, NULL},                                                                                  \
    {"lengths", 0, OPTION_COUNT, "N", offsetof(S, E.decoding.lengths), 1, 256, NULL,               \
     "--search mask-predict: try the N most probable lengths of a translation (default 5)", NULL,  \
     NULL},                                                                                        \
    {"cube", 0, OPTION_CHOICE, "NAME", offsetof(S, E.cube), 0, 0, "naive|accelerated",             \
     "--search cube: hypotheses that are alike share the state and scores of the best one "        \
     "(accelerated, default; where scores are printed, results are scored once more in the end), " \
     "or what was chosen gets its own (naive)",                                                    \
     NULL, NULL},                                                                                  \
    {"cube-key", 0, OPTION_TEXT, "KEY", offsetof(S, E.cube_key), 0, 0, NULL,                       \
     "--search cube: hypotheses are alike if their last token is the same (token, default), if "   \
     "their states are also closer than EPS as a share of their length (state:EPS), or never "     \
     "(none: beam search)",                                                                        \
     NULL, NULL},                                                                                  \
    {"finish", 0, OPTION_CHOICE, "NAME", offsetof(S, E.finish), 0, 0,                              \
     "margin|shrink|mask|refill|huggingface",                                                      \
     "when a sentence is finished: margin (the best finished leads by --margin; exact on raw "     \
     "sums only, a heuristic with a length penalty), shrink (the beam gets smaller with every "    \
     "finished hypothesis), mask (finished ones take a place for one step), refill (as many "      \
     "finished as the beam is wide), huggingface (like that library). Default: the model's",       \
     NULL, NULL},                                                                                  \
    {"shortlist", 0, OPTION_CHOICE, "NAME", offsetof(S, E.shortlist), 0, 0,                        \
     "all|lexical|cluster|union|intersect",                                                        \
     "words that a translation may be made of: all; lexical: the candidates that the model's "     \
     "shortlist gives for the sentence (default where a model of one target language has a list; " \
     "see 'dragoman shortlist'); cluster: those that its clusters give at every step (see "        \
     "'dragoman cluster'); union or intersect of both",                                            \
     NULL, NULL},                                                                                  \
    {"margin", 0, OPTION_REAL, "X", offsetof(S, E.margin), 0, 1000000, NULL,                       \
     "lead at which --finish margin stops (default 3)", NULL, NULL},                               \
    {"word-penalty", 0, OPTION_REAL, "X", offsetof(S, E.word_penalty), -100, 100, NULL,            \
     "subtracted once per output token (default: the model's, else 0)", NULL, NULL},               \
    {"max-length", 0, OPTION_COUNT, "N", offsetof(S, E.max_length), 1, 65536, NULL,                \
     "longest output in tokens (default: the model's)", NULL, NULL},                               \
    {"min-length", 0, OPTION_COUNT, "N", offsetof(S, E.min_length), 0, 65536, NULL,                \
     "shortest output in tokens (default 0); with an equal --max-length every translation has "    \
     "this length",                                                                                \
     NULL, NULL},                                                                                  \
    {"max-length-factor", 0, OPTION_REAL, "X", offsetof(S, E.max_length_factor), 0, 1000000, NULL, \
     "and at most X times the source length + 10; 0: no such limit (default: the model's)", NULL,  \
     NULL},                                                                                        \
    {"allow-unk", 0, OPTION_FLAG, NULL, offsetof(S, E.allow_unk), 0, 0, NULL,                      \
     "let the unknown word be produced", NULL, NULL},                                              \
    {"no-unk", 0, OPTION_FLAG, NULL, offsetof(S, E.no_unk), 0, 0, NULL,                            \
     "never produce the unknown word, whatever the model says", "disable-unk", NULL},              \
    {"beam-width", 0, OPTION_REAL, "X", offsetof(S, E.decoding.beam_width), 0, 1, NULL,            \
     "after every step drop hypotheses with less than this share of the best one's probability, "  \
     "e.g. 0.01 (default 0: none)",                                                                \
     NULL, NULL},                                                                                  \
    {"max-rows", 0, OPTION_COUNT, "N", offsetof(S, E.decoding.max_rows), 0, 1000000, NULL,         \
     "send at most N hypotheses through the models at once, e.g. 1 to see what batching saves; "   \
     "the same translations (default 0: all there are)",                                           \
     NULL, NULL},                                                                                  \
    {"repetition-penalty", 0, OPTION_REAL, "X", offsetof(S, E.decoding.repetition_penalty), 0,     \
     1000000, NULL,                                                                                \
     "divide the probability of a token that the translation already holds by X (default: not)",   \
     NULL, NULL},                                                                                  \
    {"no-repeat-ngram", 0, OPTION_COUNT, "N", offsetof(S, E.decoding.no_repeat_ngram), 0, 65536,   \
     NULL, "no sequence of N tokens comes twice in a translation (default 0: it may)",             \
     "no-repeat-ngram-size", NULL},                                                                \
    {"coverage-penalty", 0, OPTION_REAL, "X", offsetof(S, E.decoding.coverage_penalty), 0,         \
     1000000, NULL,                                                                                \
     "rank finished hypotheses by score + X times the sum over source tokens of "                  \
     "ln min(1, attention the token got), e.g. 0.2 (default 0)",                                   \
     NULL, NULL},                                                                                  \
    {"top-k", 0, OPTION_COUNT, "N", offsetof(S, E.decoding.top_k), 1, 1024, NULL,                  \
     "--search sample: draw from the N most probable tokens (default 1024)", "sampling-topk",      \
     NULL},                                                                                        \
    {"top-p", 0, OPTION_REAL, "X", offsetof(S, E.decoding.top_p), 0, 1, NULL,                      \
     "--search sample: of these only the most probable ones that have this share of the "          \
     "probability together (default: all)",                                                        \
     "sampling-topp", NULL},                                                                       \
    {"temperature", 0, OPTION_REAL, "X", offsetof(S, E.decoding.temperature), 0, 1000000, NULL,    \
     "--search sample: probabilities to the power of 1/X; below 1 likely tokens are drawn more "   \
     "often (default 1)",                                                                          \
     "sampling-temperature", NULL},                                                                \
    {"seed", 0, OPTION_COUNT, "N", offsetof(S, E.seed), 0, 2147483647, NULL,                       \
     "--search sample: another seed gives other translations; the same one the same, in any batch "\
     "and order (default 0)",                                                                      \
     NULL, NULL},                                                                                  \
    {"diversity", 0, OPTION_REAL, "X", offsetof(S, E.decoding.diversity), 0, 1000000, NULL,        \
     "more different --nbest lists: a hypothesis' second, third ... best continuation counts as "  \
     "X, 2 X ... worse when the beam is filled; scores are not changed (default 0)",               \
     NULL, NULL},                                                                                  \
    {"unknown", 0, OPTION_CHOICE, "NAME", offsetof(S, E.unknown), 0, 0,                            \
     "model|keep|replace|copy",                                                                    \
     "an unknown word in the output: keep its spelling, replace it by what --dictionary says of "  \
     "the source word it attends to (or that word), copy that word; default: replace, for models " \
     "with word vocabularies that produce it",                                                     \
     NULL, NULL},                                                                                  \
    {"dictionary", 0, OPTION_TEXT, "FILE", offsetof(S, E.dictionary), 0, 0, NULL,                  \
     "lexical table for unknown words, e.g. of 'dragoman align --lex-s2t', also gzip", NULL,       \
     NULL},                                                                                        \
    {"long", 0, OPTION_CHOICE, "NAME", offsetof(S, E.long_lines), 0, 0, "split|crop|error",        \
     "a line too long for the model: split it at sentence and clause ends and join the "           \
     "translations (default), crop it, or treat it as an error",                                   \
     NULL, NULL}

#endif
