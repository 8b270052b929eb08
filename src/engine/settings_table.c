// SPDX-License-Identifier: MIT
// The rows of settings_table.h, group by group. A new setting is a field at the end of dgm_settings
// and a row here.
#include "engine/settings_table.h"

#include "format/modelfile.h"
#include "score/posterior.h"
#include "search/search.h"
#include "text/split.h"

#define KIND(kind_, field_, group_, name_, title_, help_)                                          \
    .offset = offsetof(dgm_settings, field_), .pub.size = sizeof(dgm_setting),                     \
    .pub.kind = DGM_SETTING_##kind_, .pub.group = DGM_GROUP_##group_, .pub.name = (name_),         \
    .pub.title = (title_), .pub.help = (help_)
#define RANGE(value_, min_, max_, standard_)                                                       \
    .pub.value = (value_), .pub.min = (min_), .pub.max = (max_), .pub.standard = (standard_)
#define CHOICE(values_) .pub.value = "NAME", .pub.values = (values_)

enum { COMMON = DGM_SETTING_COMMON, OUTPUT = DGM_SETTING_OUTPUT, SCORING = DGM_SETTING_SCORING };
enum { NO_OPTION = DGM_SETTING_NO_OPTION, WEIGHTS = DGM_SETTING_WEIGHTS };
enum { MAX_TOKENS = 65536, MAX_BATCH_TOKENS = 1 << 24 };
#define MILLION 1e6
#define TINY 1e-6

const dgm_setting_row dgm_setting_rows[] = {
    // ---- input and output ---------------------------------------------------------------------
    {KIND(INT, nbest, FILES, "nbest", "n-best size",
          "print the N best translations of every line; one per line of output: "
          "LINE ||| text ||| F0= sum ||| score, lines counted from 0. The beam is at least as wide unless "
          "--beam says otherwise"),
     RANGE("N", 1, DGM_BEAM_MAX, 1), .pub.flags = COMMON | OUTPUT, .pub.everyday = 8,
     .pub.synonyms = "n-best|num-hypotheses|nbest-size|num-return-sequences"},
    {KIND(FLAG, token_scores, FILES, "word-scores", "word scores",
          "print the log-probability of every token and of the end symbol"),
     .pub.flags = OUTPUT},
    {KIND(CHOICE, alignment, FILES, "alignment", "alignment kind",
          "print word alignments; source-target in Pharaoh format, between words (default) or "
          "between the model's tokens"),
     CHOICE("none|words|tokens"), .coded = true, .pub.bare = "words",
     .pub.flags = COMMON | OUTPUT,
     .pub.synonyms = "print-alignment"},
    {KIND(INT, align_layer, FILES, "align-layer", "layer of alignments",
          "decoder layer that alignments are read from; negative: from the end (default: the "
          "model's)"),
     RANGE("N", -1024, 1023, DGM_ALIGN_MODEL), .pub.flags = OUTPUT | WEIGHTS},
    {KIND(INT, align_head, FILES, "align-head", "head of alignments",
          "head of attention that alignments are read from; -1: the mean of all (default: the "
          "model's)"),
     RANGE("N", -1, 4095, DGM_ALIGN_MODEL), .pub.flags = OUTPUT | WEIGHTS},
    {KIND(CHOICE, split, FILES, "split", "cutting of lines",
          "where a line is cut into parts that are translated by themselves; sentences: at the end of every "
          "one; long: only where it is too long for the model; none: nowhere. Default: auto, which is "
          "sentences, but long for models that take paragraphs and for text that is tokenised already"),
     CHOICE("auto|sentences|long|none"), .pub.flags = OUTPUT, .pub.everyday = 9},
    {KIND(FLAG, raw, FILES, "raw", "raw text",
          "give every line to the model as it is, without the care that ordinary text needs; for comparisons"),
     .pub.flags = OUTPUT},
    {KIND(FLAG, protect, FILES, "no-protect", "protection",
          "leave numbers, prices, times, addresses, placeholders, code and names as the model translates them; "
          "otherwise a sentence that loses one of them is translated again with stand-ins"),
     .inverse = true, .pub.standard = 1, .pub.flags = OUTPUT},
    {KIND(CHOICE, long_lines, FILES, "long", "treatment of long lines",
          "a line too long for the model: split it at sentence and clause ends and join the "
          "translations (default), crop it, or treat it as an error"),
     CHOICE("split|crop|error"), .coded = true, .pub.flags = OUTPUT},

    // ---- model --------------------------------------------------------------------------------
    {KIND(TEXT, source, MODEL, "source", "source language",
          "language of the text, e.g. en; without --model, the first model that reads it is taken; "
          "'dragoman inspect' lists what a model has; translate: auto finds it out for every line"),
     .pub.value = "LANG", .pub.letter = 's', .pub.flags = COMMON | SCORING | WEIGHTS, .pub.everyday = 2,
     .pub.synonyms = "source-lang|src-lang|from"},
    {KIND(TEXT, target, MODEL, "target", "target language", "language to translate into, e.g. de"),
     .pub.value = "LANG", .pub.letter = 't', .pub.flags = COMMON | SCORING | WEIGHTS, .pub.everyday = 3,
     .pub.synonyms = "target-lang|tgt-lang|to"},
    {KIND(FLAG, direction_later, MODEL, "direction-later", "directions of lines",
          "every line says its direction"),
     .pub.flags = NO_OPTION | WEIGHTS},
    {KIND(INT, max_source, MODEL, "max-source", "maximum source length",
          "longest input of the model in tokens (default: the model's)"),
     RANGE("N", DGM_SPLIT_MIN, MAX_TOKENS, 0), .pub.flags = OUTPUT | SCORING,
     .pub.synonyms = "max-input-length"},
    {KIND(CHOICE, softmax, MODEL, "softmax", "softmax",
          "off: take the output layer's numbers for log-probabilities, without a sum over the "
          "vocabulary; only for self-normalised models (force-off: for any)"),
     CHOICE("on|off|force-off"), .pub.flags = OUTPUT | SCORING},
    {KIND(CHOICE, mix, MODEL, "mix", "mix",
          "how an ensemble's probabilities are mixed (default log-linear)"),
     CHOICE("log-linear|arithmetic"), .pub.flags = OUTPUT | SCORING},

    // ---- search -------------------------------------------------------------------------------
    {KIND(INT, beam, SEARCH, "beam", "beam size",
          "hypotheses kept per sentence (default: the model's, else 4)"),
     RANGE("N", 1, DGM_BEAM_MAX, 0), .pub.letter = 'b', .pub.flags = COMMON | OUTPUT, .pub.everyday = 7,
     .pub.synonyms = "beam-size|num-beams"},
    {KIND(CHOICE, search, SEARCH, "search", "search",
          "search algorithm (default: auto); auto: what the model needs, else greedy with a beam of "
          "1, else beam; sample draws --nbest translations at random, token by token; double is for "
          "models that write two words a step, mask-predict for those that fill in whole "
          "sentences"),
     CHOICE("auto|greedy|beam|cube|sample|double|mask-predict"), .pub.flags = COMMON | OUTPUT},
    {KIND(FLOAT, length_penalty, SEARCH, "length-penalty", "length penalty",
          "score = log-probability / length^X (default: the model's)"),
     RANGE("X", -100, 100, DGM_FROM_MODEL), .pub.flags = COMMON | OUTPUT | SCORING,
     .pub.synonyms = "normalize|lenpen"},
    {KIND(FLOAT, word_penalty, SEARCH, "word-penalty", "word penalty",
          "subtracted once per output token (default: the model's, else 0)"),
     RANGE("X", -100, 100, DGM_FROM_MODEL), .pub.flags = OUTPUT},
    {KIND(INT, max_length, SEARCH, "max-length", "maximum length",
          "longest output in tokens (default: the model's)"),
     RANGE("N", 1, MAX_TOKENS, 0), .pub.flags = COMMON | OUTPUT,
     .pub.synonyms = "max-decoding-length|max-output-length"},
    {KIND(FLOAT, max_length_factor, SEARCH, "max-length-factor", "maximum length factor",
          "and at most X times the source length + 10; 0: no such limit (default: the model's)"),
     RANGE("X", 0, MILLION, DGM_FROM_MODEL), .pub.flags = OUTPUT},
    {KIND(INT, min_length, SEARCH, "min-length", "minimum length",
          "shortest output in tokens (default 0); with an equal --max-length every translation has "
          "this length"),
     RANGE("N", 0, MAX_TOKENS, 0), .pub.flags = OUTPUT,
     .pub.synonyms = "min-decoding-length|min-len"},
    {KIND(CHOICE, finish, SEARCH, "finish", "finishing policy",
          "when a sentence is finished: margin (the best finished leads by --margin; exact on raw "
          "sums only, a heuristic with a length penalty), shrink (the beam gets smaller with every "
          "finished hypothesis), mask (finished ones take a place for one step), refill (as many "
          "finished as the beam is wide), huggingface (like that library; -early: with its "
          "early_stopping, -never: with \"never\" there, -cut: without a forced end), first or "
          "first:K (K finished, at least and by default --nbest), marian (as shrink, but what is too long is cut off "
          "without an end), ctranslate2 (as refill, likewise, no translation is empty, and a forced beginning counts "
          "for the length alone; ctranslate2:K: at K finished). Default: the model's"),
     CHOICE("margin|shrink|mask|refill|huggingface|first|huggingface-cut|huggingface-early|huggingface-early-cut|"
            "huggingface-never|huggingface-never-cut|marian|ctranslate2"),
     .numbered = {"first", "ctranslate2"}, .pub.min = 1,
     .pub.max = DGM_FIRST_MAX, .pub.flags = OUTPUT},
    {KIND(FLOAT, margin, SEARCH, "margin", "margin",
          "lead at which --finish margin stops (default: the model's, else 3)"),
     RANGE("X", 0, MILLION, DGM_FROM_MODEL), .pub.flags = OUTPUT},
    {KIND(FLOAT, beam_width, SEARCH, "beam-width", "beam width",
          "after every step drop hypotheses with less than this share of the best one's "
          "probability, e.g. 0.01; 0: none (default: the model's, else 0)"),
     RANGE("X", 0, 1, DGM_FROM_MODEL), .pub.flags = OUTPUT},
    {KIND(FLOAT, diversity, SEARCH, "diversity", "diversity",
          "more different --nbest lists: a hypothesis' second, third ... best continuation counts "
          "as X, 2 X ... worse when the beam is filled; scores are not changed (default 0)"),
     RANGE("X", 0, MILLION, 0), .pub.flags = OUTPUT,
     .pub.synonyms = "diversity-rate"},
    {KIND(FLOAT, coverage_penalty, SEARCH, "coverage-penalty", "coverage penalty",
          "rank finished hypotheses by score + X times the sum over source tokens of "
          "ln min(1, attention the token got), e.g. 0.2 (default 0)"),
     RANGE("X", 0, MILLION, 0), .pub.flags = OUTPUT},
    {KIND(CHOICE, cube, SEARCH, "cube", "cube pruning",
          "--search cube: hypotheses that are alike share the state and scores of the best one "
          "(accelerated, default; where scores are printed, results are scored once more in the "
          "end), or what was chosen gets its own (naive)"),
     CHOICE("accelerated|naive"), .pub.flags = OUTPUT},
    {KIND(TEXT, cube_key, SEARCH, "cube-key", "cube key",
          "--search cube: hypotheses are alike if their last token is the same (token, default), if "
          "their states are also closer than EPS as a share of their length (state:EPS), or never "
          "(none: beam search)"),
     .pub.value = "{token,none,state:EPS}", .pub.flags = OUTPUT},
    {KIND(FLAG, exact_scores, SEARCH, "exact-scores", "exact scores",
          "translations of accelerated cube pruning are scored again by the model in the end"),
     .pub.flags = OUTPUT | NO_OPTION},
    {KIND(FLAG, approximate_scores, SEARCH, "approximate-scores", "approximate scores",
          "--search cube, accelerated: scores and alignments as the search has them, marked with ~; "
          "translations are not scored once more"),
     .pub.flags = OUTPUT},
    {KIND(FLOAT, temperature, SEARCH, "temperature", "temperature",
          "--search sample: probabilities to the power of 1/X; below 1 likely tokens are drawn more "
          "often (default 1)"),
     RANGE("X", 0, MILLION, 0), .pub.flags = OUTPUT, .pub.synonyms = "sampling-temperature"},
    {KIND(FLOAT, top_p, SEARCH, "top-p", "top-p",
          "--search sample: of these only the most probable ones that have this share of the "
          "probability together (default: all)"),
     RANGE("X", 0, 1, 0), .pub.flags = OUTPUT, .pub.synonyms = "sampling-topp"},
    {KIND(INT, top_k, SEARCH, "top-k", "top-k",
          "--search sample: draw from the N most probable tokens (default 1024)"),
     RANGE("N", 1, DGM_SAMPLE_MOST, 0), .pub.flags = OUTPUT, .pub.synonyms = "sampling-topk"},
    {KIND(WHOLE, seed, SEARCH, "seed", "seed",
          "--search sample: another seed gives other translations; the same one the same, in any "
          "batch and order (default 0)"),
     .pub.value = "N", .pub.flags = OUTPUT},
    {KIND(CHOICE, pairs, SEARCH, "pairs", "choice of pairs",
          "--search double: pairs of words are the best right ones of the best 2 x beam left ones "
          "(topk, default), or the best of all (exact)"),
     CHOICE("topk|exact"), .pub.flags = OUTPUT},
    {KIND(INT, iterations, SEARCH, "iterations", "number of iterations",
          "--search mask-predict: predict a translation N times, each time fewer of its words "
          "(default 10)"),
     RANGE("N", 1, 1000, 0), .pub.flags = OUTPUT},
    {KIND(INT, lengths, SEARCH, "lengths", "number of lengths",
          "--search mask-predict: try the N most probable lengths of a translation (default 5)"),
     RANGE("N", 1, DGM_BEAM_MAX, 0), .pub.flags = OUTPUT,
     .pub.synonyms = "iter-decode-with-beam"},

    // ---- words --------------------------------------------------------------------------------
    {KIND(CHOICE, shortlist, WORDS, "shortlist", "shortlist",
          "tokens that a translation may be made of; all: the vocabulary; lexical: the candidates "
          "that the model's shortlist gives for the sentence (default where a model of one target "
          "language has one, see 'dragoman shortlist'); cluster: those that its clusters give at "
          "every step (see 'dragoman cluster'); union or intersect of both"),
     CHOICE("all|lexical|cluster|union|intersect"), .pub.flags = COMMON | OUTPUT},
    {KIND(CHOICE, source_tokens, WORDS, "source-tokens", "source tokens",
          "--shortlist: candidates hold the tokens of the source, too (on, default; where both sides "
          "have one vocabulary), so that names are copied, or only what the list or the clusters say "
          "(off)"),
     CHOICE("on|off"), .pub.flags = OUTPUT},
    {KIND(FLAG, count_unions, WORDS, "count-unions", "count of unions",
          "count the union of the candidates of sentences that are decoded together"),
     .pub.flags = NO_OPTION},
    {KIND(FLAG, allow_unk, WORDS, "allow-unk", "unknown words", "let the unknown word be produced"),
     .pub.standard = -1, .pub.flags = OUTPUT},
    {KIND(FLAG, allow_unk, WORDS, "no-unk", "unknown words",
          "never produce the unknown word, whatever the model says"),
     .inverse = true, .pub.standard = -1, .pub.flags = OUTPUT, .pub.synonyms = "disable-unk"},
    {KIND(CHOICE, unknown, WORDS, "unknown", "treatment of unknown words",
          "an unknown word in the output: keep its spelling, replace it by what --dictionary says "
          "of the source word it attends to (or that word), copy that word; default: replace, for "
          "models with word vocabularies that produce it"),
     CHOICE("model|keep|replace|copy"), .coded = true, .pub.flags = OUTPUT},
    {KIND(TEXT, dictionary, WORDS, "dictionary", "dictionary",
          "lexical table for unknown words, e.g. of 'dragoman align --lex-s2t', also gzip"),
     .pub.value = "FILE", .pub.flags = OUTPUT},

    // ---- constraints --------------------------------------------------------------------------
    {KIND(LIST, terms, CONSTRAINTS, "terms", "glossaries",
          "glossary for every line; where a source term stands, one of its targets must stand in "
          "the translation, as written; TSV, .csv or .tbx, also gzip; may be given several times; "
          "en-de=FILE: for lines of that direction"),
     .pub.value = "FILE", .pub.count = DGM_TERMS_MAX, .pub.flags = COMMON | OUTPUT,
     .pub.everyday = 10,
     .pub.synonyms = "glossary"},
    {KIND(TEXT, keep, CONSTRAINTS, "keep", "kept text",
          "what this regular expression finds comes through as written; POSIX extended, e.g. "
          "'\\{[0-9]+\\}|[0-9]+' for placeholders and numbers"),
     .pub.value = "REGEX", .pub.flags = COMMON | OUTPUT},
    {KIND(FLOAT, repetition_penalty, CONSTRAINTS, "repetition-penalty", "repetition penalty",
          "divide the probability of a token that the translation already holds by X (default: "
          "not)"),
     RANGE("X", 0, MILLION, 0), .pub.flags = OUTPUT},
    {KIND(INT, no_repeat_ngram, CONSTRAINTS, "no-repeat-ngram", "no-repeat n-gram size",
          "no sequence of N tokens comes twice in a translation (default 0: it may)"),
     RANGE("N", 0, MAX_TOKENS, 0), .pub.flags = OUTPUT, .pub.synonyms = "no-repeat-ngram-size"},

    // ---- evidence -----------------------------------------------------------------------------
    {KIND(FLAG, lattices, EVIDENCE, "lattices", "lattices", "lines may come with lattices"),
     .pub.flags = NO_OPTION},
    {KIND(FLOAT, lattice_weight, EVIDENCE, "lattice-weight", "lattice weight",
          "--lattice: add X times a path's own score to the models' (default 0: the lattice only "
          "says what is allowed)"),
     RANGE("X", -MILLION, MILLION, 0), .pub.flags = OUTPUT},
    {KIND(FLAG, evidence, EVIDENCE, "evidence-later", "evidence", "lines may come with evidence"),
     .pub.flags = NO_OPTION},
    {KIND(TEXT, phrase_system, EVIDENCE, "evidence", "phrase-based system",
          "let a phrase-based system decode every line and steer the search by what it says, as "
          "--lmbr does; FILE describes the system: lines of 'table = en-de.pt', 'lm = de.lm' and so "
          "on (docs/manual/PHRASES.md); en-de=FILE,fr-de=FILE: one for each direction"),
     .pub.value = "FILE", .pub.flags = OUTPUT},
    {KIND(CHOICE, evidence_kind, EVIDENCE, "evidence-kind", "kind of evidence",
          "--evidence: take the system's n-best list (default) or the lattice of its search"),
     CHOICE("nbest|lattice"), .pub.flags = OUTPUT},
    {KIND(INT, evidence_nbest, EVIDENCE, "evidence-nbest", "n-best size of the evidence",
          "--evidence: size of the system's n-best list (default 200)"),
     RANGE("N", 1, 1000000, 200), .pub.flags = OUTPUT},
    {KIND(FLOAT, lmbr.lambda, EVIDENCE, "lmbr-lambda", "lambda of LMBR",
          "LMBR: weight of the models' log-probability (default 1)"),
     RANGE("X", 0, MILLION, 1)},
    {KIND(FLOAT, lmbr.p, EVIDENCE, "lmbr-p", "p of LMBR",
          "LMBR: precision of single tokens in the evidence; the lower, the more its n-grams "
          "weigh (default 0.5)"),
     RANGE("X", TINY, MILLION, 0.5)},
    {KIND(FLOAT, lmbr.r, EVIDENCE, "lmbr-r", "r of LMBR",
          "LMBR: ratio of precisions from one length of n-grams to the next; the lower, the more "
          "long ones weigh (default 0.55)"),
     RANGE("X", TINY, MILLION, 0.55)},
    {KIND(FLOAT, lmbr.t, EVIDENCE, "lmbr-t", "t of LMBR",
          "LMBR: divides all that evidence adds; every token costs 1/X (default 10)"),
     RANGE("X", TINY, MILLION, 10)},
    {KIND(FLOAT, lmbr.scale, EVIDENCE, "lmbr-scale", "scale of LMBR",
          "LMBR: factor of the evidence's scores; 0 makes all of a line's translations equally "
          "likely (default 1)"),
     RANGE("X", 0, MILLION, 1)},
    {KIND(FLOATS, lmbr.thetas, EVIDENCE, "lmbr-thetas", "thetas of LMBR",
          "LMBR: what every token gets, and the weights of n-grams of 1 to 4 tokens, instead of "
          "p, r and t"),
     RANGE("X,X,X,X,X", -MILLION, MILLION, 0), .pub.count = 5,
     .switched = offsetof(dgm_settings, lmbr.use_thetas)},
    {KIND(INT, lmbr_order, EVIDENCE, "lmbr-order", "order of LMBR",
          "LMBR: look at n-grams of up to N tokens (default 4)"),
     RANGE("N", 1, DGM_LMBR_ORDER, DGM_LMBR_ORDER), .pub.flags = OUTPUT},
    {KIND(FLAG, lmbr_ngrams, EVIDENCE, "lmbr-ngrams", "n-grams of LMBR",
          "results hold the n-grams of the lines' evidence"),
     .pub.flags = NO_OPTION},
    {KIND(INT, lmbr_limit, EVIDENCE, "lmbr-limit", "limit of LMBR",
          "LMBR: a lattice whose n-grams stand at more than N positions is pruned to half its arcs "
          "until they do not (default 4194304)"),
     RANGE("N", 1, DGM_POSITIONS_MAX, 1 << 22), .pub.flags = OUTPUT},

    // ---- speed --------------------------------------------------------------------------------
    {KIND(INT, threads, SPEED, "threads", "number of threads",
          "worker threads (default 1, of translate with files all cores); over one copy of the weights; with fewer "
          "sentences than threads several work on one; all, or 0: one per core"),
     RANGE("{N,all}", 0, 1024, 1), .pub.values = "all", .pub.flags = COMMON | SCORING, .pub.everyday = 12,
     .pub.synonyms = "cpu-threads|inter-threads"},
    {KIND(INT, batch, SPEED, "batch", "batch",
          "sentences that each thread decodes at once, at most; default: by --batch-tokens alone"),
     RANGE("N", 1, 4096, 0), .pub.flags = COMMON | SCORING, .pub.synonyms = "mini-batch|max-batch-size|batch-size"},
    {KIND(INT, batch_tokens, SPEED, "batch-tokens", "batch in tokens",
          "what each thread decodes at once: the sum of source tokens x beam over its sentences "
          "(default 8192, or enough for --batch, or what --workspace allows)"),
     RANGE("N", 1, MAX_BATCH_TOKENS, 0), .pub.flags = SCORING, .pub.synonyms = "mini-batch-words|max-tokens"},
    {KIND(INT, max_rows, SPEED, "max-rows", "number of rows at once",
          "send at most N hypotheses through the models at once, e.g. 1 to see what batching saves; "
          "the same translations (default 0: all there are)"),
     RANGE("N", 0, MILLION, 0)},
    {KIND(SIZE, workspace, SPEED, "workspace", "workspace",
          "memory for the work of all threads, e.g. 512M or 2G; in MiB where there is no unit; and for "
          "the text in flight, beside the weights (default: what the batch needs)"),
     RANGE("SIZE", 1, 1e15, 0), .pub.flags = COMMON | SCORING},
    {KIND(TEXT, device, SPEED, "device", "device",
          "where to compute (default cpu); auto is the first GPU "
          "that the model fits on, else cpu; several share the work, e.g. cuda:0,cuda:1; 'dragoman devices' lists "
          "what there is"),
     .pub.value = "{cpu[:LEVEL],cuda[:NUMBER],auto}", .text = "cpu", .pub.flags = COMMON | SCORING | WEIGHTS},
    {KIND(TEXT, cpu, SPEED, "cpu", "instruction set",
          "highest instruction set to use (default: DRAGOMAN_CPU, else the best); neon and what follows on "
          "Arm, c everywhere, the others on x86"),
     .pub.value = "{c,avx2,avx512,vnni,amx,neon,dotprod,i8mm}", .pub.flags = SCORING | WEIGHTS},
    {KIND(CHOICE, precision, SPEED, "precision", "precision",
          "how products are computed (default: the model's, else i8); whatever the file stores; int8, "
          "int16, float32, float16 and bfloat16 mean the same"),
     CHOICE("f32|i16|i8|f16|bf16"), .pub.flags = COMMON | OUTPUT | SCORING | WEIGHTS,
     .pub.synonyms = "compute-type|gemm-precision|gemm-type|dtype",
     .alike = "int8=i8|int16=i16|float32=f32|float16=f16|bfloat16=bf16|fp32=f32|fp16=f16|"
              "int8_float32=i8|int8_float16=i8|int8_bfloat16=i8|intgemm8=i8|intgemm16=i16|"
              "int8shift=i8|int8shiftAll=i8|int8shiftAlphaAll=i8"},
    {KIND(FLAG, static_scales, SPEED, "static-scales", "static scales",
          "i8 and i16: round activations by the scales stored by 'dragoman quantize --calibrate', "
          "not by every row's maximum"),
     .pub.standard = -1, .pub.flags = OUTPUT | SCORING | WEIGHTS},
    {KIND(FLAG, static_scales, SPEED, "no-static-scales", "static scales",
          "by every row's maximum, whatever the model says"),
     .inverse = true, .pub.standard = -1, .pub.flags = OUTPUT | SCORING | WEIGHTS},
    {KIND(FLAG, time_devices, SPEED, "time-devices", "measuring of devices",
          "measure how long devices are busy"),
     .pub.flags = NO_OPTION},
    {KIND(INT, precompute, SPEED, "precompute", "number of pre-computed words",
          "recurrent models: make the first layers' products of the K most frequent words of each "
          "side when loading and look them up; the same translations, more memory (default 0)"),
     RANGE("K", 0, 1 << 24, 0), .pub.flags = OUTPUT | SCORING | WEIGHTS},
    {KIND(FLAG, plain_attention, SPEED, "plain-attention", "plain attention",
          "recurrent models: multiply the attended sum at every step, instead of adding up products "
          "made once per sentence"),
     .pub.flags = OUTPUT | SCORING | WEIGHTS},
    {KIND(FLAG, separate_states, SPEED, "separate-states", "separate states",
          "recurrent models: make a state's products again for each hypothesis that shares it"),
     .pub.flags = OUTPUT | SCORING | WEIGHTS},
    {KIND(CHOICE, activations, SPEED, "activations", "activations",
          "how sigmoid and tanh are computed: polynomial (default), table (look-up, less exact), "
          "libm (one by one, slow)"),
     CHOICE("polynomial|table|libm"), .pub.flags = OUTPUT | SCORING | WEIGHTS},
};

const size_t dgm_setting_row_count = sizeof dgm_setting_rows / sizeof dgm_setting_rows[0];
