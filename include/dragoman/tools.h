// SPDX-License-Identifier: MIT
// Dragoman: functions behind the tool commands (import, inspect, eval, ...). Same conventions as
// dragoman.h, but without its promise of a stable ABI: a tool's struct may change with a release.
// Language models, phrase tables and what is made of them are in phrase.h.
#ifndef DRAGOMAN_TOOLS_H
#define DRAGOMAN_TOOLS_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/dragoman.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- common -----------------------------------------------------------------------------------

// Texts that functions below return belong to the caller.
DGM_API void dgm_string_free(char **text);

// A line of a file: bytes without its line break, not terminated by NUL.
typedef struct dgm_line {
    const char *data;
    size_t size;
} dgm_line;

// "cpu avx2: gemm_f32_avx2 ...", what dgm_open would use. cpu as in dgm_settings.
DGM_API dgm_status dgm_device(const char *cpu, char *buffer, size_t size, dgm_error *error);

// ---- models -----------------------------------------------------------------------------------

// Model files are looked for, in this order, in
//     $DRAGOMAN_MODEL            a file, or a folder
//     $XDG_DATA_HOME/dragoman    (else ~/.local/share/dragoman)
//     the share folder of the installation, share/dragoman/models
//     models/                    of the checkout that the program lies in
// The default model is the first one found that can be used; in a folder, default.gguf comes before
// all others, which follow by name. A file that $DRAGOMAN_MODEL names is the default even if it
// cannot be used: no other one takes its place silently.
typedef struct dgm_model_entry {
    const char *path, *name;
    const char *source, *target; // languages, "" if the file does not say; several: "en,de"
    uint64_t bytes, parameters;
    const char *problem; // NULL, or why it cannot be used
    int is_default;
} dgm_model_entry;

typedef struct dgm_model_list {
    const dgm_model_entry *items;
    size_t count;
} dgm_model_list;

DGM_API dgm_status dgm_models_find(dgm_model_list **list, dgm_error *error);
DGM_API void dgm_models_free(dgm_model_list **list);
// Path of the first model for this pair; NULL: any language. Both NULL: the default model.
DGM_API dgm_status dgm_models_choose(const char *source, const char *target, char **path,
                                     dgm_error *error);

typedef struct dgm_inspect_options {
    int json;
    int tensors; // list them
    int card;    // print the model card in full
    void *reserved[4];
} dgm_inspect_options;

// A model file described for people, or as a JSON object. options NULL: none of them.
DGM_API dgm_status dgm_inspect(const char *path, const dgm_inspect_options *options, char **text,
                               dgm_error *error);

// ---- scoring ----------------------------------------------------------------------------------

typedef struct dgm_pair {
    dgm_line source, target;
} dgm_pair;

typedef struct dgm_pair_score {
    dgm_status status;   // DGM_ERR_TEXT: longer than the model can take, ...
    const char *message; // "" when the status is DGM_OK
    float sum;           // log-probability of the target with its end symbol
    float score;         // normalised by length, as in dgm_translation
    size_t token_count;  // with the end symbol
    const char *const *tokens;
    const float *token_scores;
    const float *log_z; // log of the first model's softmax sum at each token; NULL without softmax
} dgm_pair_score;

typedef struct dgm_pair_scores {
    const dgm_pair_score *items;
    size_t count, failed;
} dgm_pair_scores;

// What the translator's models think of given translations (forced decoding). Long lines are not
// split: they fail.
DGM_API dgm_status dgm_score_pairs(dgm_translator *t, const dgm_pair *pairs, size_t count,
                                   dgm_pair_scores **scores, dgm_error *error);
DGM_API void dgm_pair_scores_free(dgm_pair_scores **scores);

// Adds `weight` times what t's models think of each translation (dgm_pair_score.score) to its score
// and sorts every line's translations by the sum, best first. sources[i] is the text whose result is
// results->items[i]. t may have other vocabularies and another order of writing than the translator
// that made the results. A line with a translation that t cannot score stays as it is.
DGM_API dgm_status dgm_rerank(dgm_translator *t, float weight, const dgm_line *sources,
                              dgm_results *results, dgm_error *error);
// Keeps the best `most` translations of every line, at least one.
DGM_API void dgm_results_trim(dgm_results *results, size_t most);

// How far a model's output is from being self-normalised: log Z, the log of the softmax sum, over
// all tokens of forced translations. A mean other than 0 acts like a reward or a cost per word
// where the softmax is left out (dgm_settings.softmax).
typedef struct dgm_log_z {
    size_t lines, failed; // failed: longer than the model can take
    size_t tokens;        // end symbols included
    double mean, deviation, mean_absolute;
    double quantiles[9]; // least, 1, 5, 25, 50, 75, 95, 99 %, most
} dgm_log_z;

// targets NULL: the translator's own translations are forced. The translator's softmax must be on;
// of an ensemble the first model is measured.
DGM_API dgm_status dgm_log_z_measure(dgm_translator *t, const dgm_line *sources,
                                     const dgm_line *targets, size_t count, dgm_log_z *out,
                                     dgm_error *error);

// ---- evaluation -------------------------------------------------------------------------------

typedef struct dgm_eval_options {
    const char *metric;   // "bleu", "chrf" or "chrf++"; default "bleu"
    const char *tokenize; // "13a", "intl", "char", "zh", "none"; NULL: "13a"
    const char *smooth;   // "exp", "floor", "add-k", "none"; NULL: "exp"
    double smooth_value;  // < 0: the usual one; default -1
    int lowercase;
    int max_order;              // of BLEU, default 4
    int char_order, word_order; // of chrF, default 6 and 0 (chrf++: 2)
    double beta;                // of chrF, default 2
    int samples;                // bootstrap samples, 0 (default): none
    uint64_t seed;              // default 12345
    void *reserved[4];
} dgm_eval_options;

DGM_API void dgm_eval_default(dgm_eval_options *options);

typedef struct dgm_eval_score {
    double score;                   // 0 to 100
    double mean, half;              // with samples: 95 % interval, mean +- half
    double p, wins;                 // against the first system: p-value, share of samples won
    double brevity;                 // BLEU
    double precisions[8];           // BLEU, percent
    int64_t hyp_length, ref_length; // BLEU
} dgm_eval_score;

// Scores every system against the references, all of `lines` lines: systems[s][i], refs[r][i].
// scores [system_count]. sentences: NULL, or [system_count * lines] for the score of each line.
DGM_API dgm_status dgm_evaluate(const dgm_eval_options *options, const dgm_line *const *systems,
                                size_t system_count, const dgm_line *const *refs, size_t ref_count,
                                size_t lines, dgm_eval_score *scores, double *sentences,
                                dgm_error *error);
// "BLEU" and "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:..."; each buffer may be NULL.
DGM_API dgm_status dgm_eval_describe(const dgm_eval_options *options, size_t ref_count, char *name,
                                     size_t name_size, char *signature, size_t signature_size,
                                     dgm_error *error);

// ---- import -----------------------------------------------------------------------------------

// Zero or NULL is the default of every field.
typedef struct dgm_import_options {
    // Storage of the weight matrices: "f32", "f16", "bf16", "i16", "i8". NULL: as in the input.
    // Vectors (biases, norms) are always f32.
    const char *type;
    // BCP 47 codes. NULL: what the model says, if it says anything.
    const char *source_language, *target_language;
    // Token put before every source sentence, e.g. ">>deu<<" of a multilingual model.
    const char *source_prefix;
    // Model card. name NULL: the folder's name. The others: absent.
    const char *name, *description, *license, *author, *url;
    const char *card;      // Markdown
    const char *card_file; // or a file that holds it
    void *reserved[8];     // NULL
} dgm_import_options;

// Reads a model of another program from folder `dir` and writes it as a Dragoman model file.
// format: a name from dgm_import_format_at. options NULL: defaults. An existing output is replaced
// at the end, in one step, and left alone on failure.
DGM_API dgm_status dgm_import(const char *format, const char *dir, const char *output,
                              const dgm_import_options *options, dgm_error *err);

typedef struct dgm_import_format {
    const char *name;    // "huggingface"
    const char *summary; // for a help text
} dgm_import_format;

// The formats that dgm_import knows, one after the other; NULL behind the last. Static memory.
DGM_API const dgm_import_format *dgm_import_format_at(size_t i);

// ---- words ------------------------------------------------------------------------------------

// A line as words between single spaces by the conventions of Moses, or with undo the words as text
// again. language: "en", "de", "fr", "es", "it"; others get generic rules. *text: dgm_string_free.
// Invalid UTF-8 is DGM_ERR_TEXT.
DGM_API dgm_status dgm_tokenize(const char *language, int undo, dgm_line line, char **text,
                                dgm_error *error);

// ---- word alignment ---------------------------------------------------------------------------

// Called now and then during long work: what is being done ("reading", "training", ...) and the
// share of the whole that is done, 0 to 1. A result other than 0 stops it: DGM_ERR_CANCELLED.
typedef struct dgm_progress {
    int (*tick)(void *cookie, const char *stage, double share); // NULL: nobody wants to know
    void *cookie;
} dgm_progress;

enum { DGM_ALIGN_ITERATIONS_MAX = 100 };

typedef struct dgm_align_options {
    int model;      // 1: IBM model 1; 2: with positions near the diagonal. Default 2
    int iterations; // rounds of training per direction, 1 to 100. Default 5
    int threads;    // 0: one per core. Default 0. The result does not depend on it
    int max_length; // pairs with more tokens on a side are left out, 1 to 1000. Default 200
    // "forward" (each target word has one source word), "backward", "intersect", "union",
    // "grow-diag", "grow-diag-final", "grow-diag-final-and". Default the last.
    const char *symmetrize;
    double p0;            // probability of no source word, model 2. Default 0.08
    double alpha;         // prior of variational Bayes; 0: maximum likelihood. Default 0.01
    double tension;       // towards the diagonal, model 2, 0.1 to 30: where it starts. Default 4
    int keep_tension;     // do not optimise it. Default 0
    const char *subwords; // align the tokens of this model file. NULL: words between spaces
    // Tables p(target | source) and p(source | target) from the links, as lines of
    // TARGET SOURCE PROBABILITY and SOURCE TARGET PROBABILITY; .gz is compressed. NULL: none.
    const char *lex_s2t, *lex_t2s;
    // Links made by hand for the last lines of the text, sure "i-j" and possible "i?j".
    const char *gold;
    dgm_progress progress;
    // Takes the output where no file is named; other than 0 stops the work.
    int (*write)(void *cookie, const char *text, size_t size);
    void *write_cookie;
    void *reserved[4];
} dgm_align_options;

DGM_API void dgm_align_default(dgm_align_options *options);

// Index 0: the target explained by the source; 1: the other way.
typedef struct dgm_align_report {
    uint64_t lines, pairs, empty, too_long; // lines = pairs + empty + too_long
    uint64_t source_tokens, target_tokens, source_types, target_types;
    uint64_t entries; // word pairs in a translation table
    int iterations;
    // Before each round: the log-likelihood, or its lower bound in variational Bayes (comparable
    // from the second round on). Never falls.
    double objective[2][DGM_ALIGN_ITERATIONS_MAX];
    double tension[2];
    uint64_t links;
    int has_gold;
    double error_rate, precision, recall; // against `gold`, 0 to 1
} dgm_align_report;

// Aligns two files line by line (plain or gzip) and writes Pharaoh text, "0-0 1-2", source first,
// one line for every line; it is empty for pairs that are left out. output NULL: options->write.
// options NULL: defaults, report NULL: not wanted.
DGM_API dgm_status dgm_align(const char *source, const char *target, const char *output,
                             const dgm_align_options *options, dgm_align_report *report,
                             dgm_error *error);

// ---- evidence ---------------------------------------------------------------------------------

typedef struct dgm_evidence_options {
    // Language code: the translations are words as `dragoman tokenize` and Moses write them, and
    // become text first. NULL: they are text.
    const char *detokenize;
    void *reserved[4];
} dgm_evidence_options;

// A file with evidence for the lines of a text, plain or gzip: an n-best list with lines of
//     LINE ||| text ||| features ||| score
// where LINE counts from 0 and does not fall, or lattices (docs/LATTICES.md), one for every line.
// Messages name file and line.
typedef struct dgm_evidence_file dgm_evidence_file;
DGM_API dgm_status dgm_evidence_open(dgm_evidence_file **file, const char *path,
                                     const dgm_evidence_options *options, dgm_error *error);
// What the file says about a line, from 0; asked for in ascending order. Borrowed until the next
// call. A line that is left out has a count of 0; that the file ends before the line is an error.
DGM_API dgm_status dgm_evidence_next(dgm_evidence_file *file, uint64_t line, dgm_evidence *evidence,
                                     dgm_error *error);
// Number of the next line that the file has something about; *more is 0 at its end, and *line then
// one past the last.
DGM_API dgm_status dgm_evidence_any(dgm_evidence_file *file, uint64_t *line, int *more,
                                    dgm_error *error);
// Is there nothing left? Otherwise an error: the file is longer than the text.
DGM_API dgm_status dgm_evidence_finish(dgm_evidence_file *file, uint64_t lines, dgm_error *error);
DGM_API void dgm_evidence_close(dgm_evidence_file **file);

// Other weights for the lines submitted from now on; no call may be under way.
DGM_API dgm_status dgm_lmbr_set(dgm_translator *t, const dgm_lmbr *lmbr, dgm_error *error);

// ---- minimum Bayes risk -----------------------------------------------------------------------

typedef struct dgm_mbr_options {
    const char *utility;  // "bleu" or "chrf", of sentences. Default "bleu"
    const char *tokenize; // of BLEU: "13a", "intl", "char", "zh", "none". NULL: "13a"
    double scale;         // of the scores before they become probabilities. Default 1
    void *reserved[4];
} dgm_mbr_options;

DGM_API void dgm_mbr_default(dgm_mbr_options *options);

typedef struct dgm_mbr dgm_mbr; // of one thread
DGM_API dgm_status dgm_mbr_open(dgm_mbr **mbr, const dgm_mbr_options *options, dgm_error *error);
// The translation of an n-best list whose expected score against the whole list is highest, the
// first of equal ones. gains (NULL: not wanted) [count]: these scores; borrowed until the next call.
DGM_API dgm_status dgm_mbr_choose(dgm_mbr *mbr, const dgm_evidence *list, size_t *best,
                                  const double **gains, dgm_error *error);
DGM_API void dgm_mbr_close(dgm_mbr **mbr);

// ---- averages ---------------------------------------------------------------------------------

enum { DGM_AVERAGE_MAX = 64 };

// Zero or NULL is the default of every field.
typedef struct dgm_average_options {
    const double *weights; // [count] positive; NULL: equal
    const char *type;      // storage of the matrices. NULL: as in the first model
    void *reserved[4];
} dgm_average_options;

typedef struct dgm_average_report {
    uint64_t tensors, parameters; // averaged
    uint64_t dropped_scales;      // static scales of activations: they belong to other weights
} dgm_average_report;

// Writes the mean of 2 to DGM_AVERAGE_MAX checkpoints of one model. DGM_ERR_ARGUMENT for models
// that differ in more than their weights. report NULL: not wanted.
DGM_API dgm_status dgm_average(const char *const *models, size_t count, const char *output,
                               const dgm_average_options *options, dgm_average_report *report,
                               dgm_error *error);

// ---- shrinking --------------------------------------------------------------------------------

enum { DGM_SHRINK_MAX = 8 };

typedef struct dgm_shrink_options {
    const double *weights; // [count] of the members, positive; NULL: equal
    // Parameters of the result as a share of those of all models together, above 0. Default 0: the
    // models become one network, and nothing is taken from it.
    double size;
    const char *name; // of the new model. NULL: the first one's
    dgm_progress progress;
    void *reserved[4];
} dgm_shrink_options;

typedef struct dgm_shrink_widths {
    int embed, encoder, hidden, attention, readout; // encoder: of one direction
    uint64_t parameters;
} dgm_shrink_widths;

typedef struct dgm_shrink_report {
    uint64_t members; // parameters of all models together
    dgm_shrink_widths unfolded, shrunk;
} dgm_shrink_report;

// Makes one network of 1 to DGM_SHRINK_MAX recurrent models with the same vocabularies, whose
// distribution is their log-linear mixture, and removes neurons from it without any data until it
// has the size asked for. options NULL: defaults, report NULL: not wanted. DGM_ERR_UNSUPPORTED for
// architectures that cannot be unfolded.
DGM_API dgm_status dgm_shrink_ensemble(const char *const *models, size_t count, const char *output,
                                       const dgm_shrink_options *options,
                                       dgm_shrink_report *report, dgm_error *error);

// ---- lattices ---------------------------------------------------------------------------------

// Lattices of a file (docs/LATTICES.md), plain or gzip, one after the other, for dgm_input.
typedef struct dgm_lattices dgm_lattices;
DGM_API dgm_status dgm_lattices_open(dgm_lattices **file, const char *path, dgm_error *error);
// The next one; borrowed until the next call. text NULL: there are no more.
DGM_API dgm_status dgm_lattices_next(dgm_lattices *file, dgm_lattice_text *lattice,
                                     dgm_error *error);
DGM_API void dgm_lattices_close(dgm_lattices **file);

typedef struct dgm_lattice_options {
    const char *symbols; // OpenFst: table of symbols; labels are its numbers. Default NULL
    int transducer;      // OpenFst: arcs of four fields have two labels. Default 0
    int trim;            // dead ends are dropped, not refused. Default 0
    int lists;       // the files are n-best lists, LINE ||| text ||| features ||| score. Default 0
    double prune;    // arcs whose best path is further behind the best go; < 0: none. Default -1
    size_t max_arcs; // no more arcs than this, except those of the best path. Default 0: any number
    size_t nbest;    // write an n-best list of so many texts instead of lattices. Default 0
    int repeated;    // with texts that several paths say more than once. Default 0
    const char *format; // "lattice" or "openfst". NULL: "lattice"
    // Takes the output where no file is named; other than 0 stops the work.
    int (*write)(void *cookie, const char *text, size_t size);
    void *write_cookie;
    void *reserved[4];
} dgm_lattice_options;

DGM_API void dgm_lattice_default(dgm_lattice_options *options);

typedef struct dgm_lattice_report {
    uint64_t lattices, nodes, arcs; // written
    uint64_t nodes_read, arcs_read;
} dgm_lattice_report;

// Reads files with the same number of lattices each and joins the i-th of all of them, prunes, and
// writes. output NULL: options->write. report NULL: not wanted.
DGM_API dgm_status dgm_lattice_run(const char *const *inputs, size_t count, const char *output,
                                   const dgm_lattice_options *options, dgm_lattice_report *report,
                                   dgm_error *error);

// A path of a lattice and what the translator's models think of it.
typedef struct dgm_scored_path {
    const char *text;
    double lattice;     // the lattice's score
    float sum;          // log-probability of the models, with the end symbol
    float score;        // of sum + weight * lattice, normalised by length
    size_t token_count; // with the end symbol
} dgm_scored_path;

typedef struct dgm_scored_line {
    dgm_status status;
    const char *message; // "" when the status is DGM_OK
    const dgm_scored_path *paths; // best first
    size_t count;
} dgm_scored_line;

typedef struct dgm_scored_lines {
    const dgm_scored_line *items;
    size_t count, failed;
} dgm_scored_lines;

// Scores the `nbest` best texts of each line's lattice, as dgm_score_pairs does, and ranks them.
DGM_API dgm_status dgm_score_lattices(dgm_translator *t, const dgm_line *sources,
                                      const dgm_lattice_text *lattices, size_t count, size_t nbest,
                                      float weight, dgm_scored_lines **lines, dgm_error *error);
DGM_API void dgm_scored_lines_free(dgm_scored_lines **lines);

// ---- shortlists -------------------------------------------------------------------------------

// Where a list comes from: exactly one of (source and target), lexicon, binary; or none of them to
// work on the list that the model has.
typedef struct dgm_shortlist_options {
    const char *source, *target; // parallel text, aligned with the model's tokens
    const char *lexicon;         // text table with lines of TARGET SOURCE PROBABILITY, in tokens
    const char *binary;          // Marian's binary shortlist
    int best;                    // translations kept per source token, 1 to 1000. Default 20
    double threshold;            // those with a smaller probability are left out. Default 0.001
    // Not 0: the threshold is set so that a line of `tune`, a source text, has this many candidates
    // on average. Lists are then long where a token has many translations and short where it has
    // few. Default 0
    int candidates;
    const char *tune;
    int frequent; // target tokens that are always allowed: the most frequent ones of the text,
                  // or with `lexicon` those of `frequent_text`, NULL: the first ones of the
                  // vocabulary. Default 100
    const char *frequent_text; // target text
    // Not 0: a token is also allowed behind a target token that it follows with at least this
    // probability in the target text (`target`, or `frequent_text`): endings of words, mostly.
    // Default 0
    double next;
    int remove;   // write the model without a list
    const char *write_lexicon, *write_binary; // also write the list as text, for Marian
    const dgm_align_options *align; // NULL: defaults. Its files and `subwords` are not used
    dgm_progress progress;
    void *reserved[4];
} dgm_shortlist_options;

DGM_API void dgm_shortlist_default(dgm_shortlist_options *options);

typedef struct dgm_shortlist_report {
    uint64_t sources; // tokens with a list
    uint64_t entries, frequent, next; // translations, always allowed tokens, continuations
    uint64_t unknown; // lines of the text table with a token that the model does not have
    uint64_t bytes;   // in the model file
    double threshold; // that was used
} dgm_shortlist_report;

// Makes a shortlist for a model and writes the model with it. output NULL: only the other files.
// options NULL is an error; report NULL: not wanted.
DGM_API dgm_status dgm_shortlist_make(const char *model, const char *output,
                                      const dgm_shortlist_options *options,
                                      dgm_shortlist_report *report, dgm_error *error);

typedef struct dgm_shortlist_measure {
    uint64_t lines, source_tokens, target_tokens;
    double mean;    // candidates per sentence
    uint64_t most;  // of one sentence
    double more;    // continuations per target token, besides
    double recall;  // share of the target's tokens that are candidates of their sentence
    uint64_t whole; // lines whose target tokens all are
} dgm_shortlist_measure;

// What the model's shortlist gives for the lines of a text; target NULL: no recall.
DGM_API dgm_status dgm_shortlist_test(const char *model, const char *source, const char *target,
                                      dgm_shortlist_measure *measure, dgm_error *error);

// ---- clusters ---------------------------------------------------------------------------------

// How clusters of a model's hidden vectors are learnt (docs/CLUSTERS.md).
typedef struct dgm_cluster_options {
    const char *text;    // source text that the model translates, also gzip
    uint64_t lines;      // of it; 0: all. Default 0
    const char *vectors; // file for the recorded vectors: kept, and continued if it is there.
                         // NULL: a scratch file. Default NULL
    int centroids;       // 1 to 65536. Default 600
    int best;            // tokens of each recorded vector that join its centroid's list. Default 16
    int near;            // centroids whose lists a vector's tokens join, 1 to 8; the further ones count
                         // less. 1: as published. Default 6
    double least;        // weight per vector of a cluster below which a token is left out of its
                         // list. 0: none is, as published. Default 0.00001
    const char *from;    // model file with clusters: its centroids are kept, lists are made anew.
                         // NULL: k-means. Default NULL
    int record_best;     // tokens recorded, at least `best`, at most 64: lists of other sizes can be
                         // made from one file. Default 16
    int iterations;      // of k-means. Default 20
    uint64_t sample;     // vectors that k-means sees; 0: 256 per centroid. All of them join lists
    uint64_t seed;       // Default 1
    int beam;            // of the translation. Default 1
    const char *precision;       // of the translation; NULL: the model's
    const char *source, *target; // languages that the block is for; NULL: the model's, if it has
                                 // one of that side, "": any
    int threads;                 // 0: one per core. Default 1
    int remove;                  // write the model without clusters
    dgm_progress progress;
    void *reserved[2];
} dgm_cluster_options;

DGM_API void dgm_cluster_default(dgm_cluster_options *options);

typedef struct dgm_cluster_report {
    uint64_t lines, vectors; // recorded
    uint64_t sample;         // vectors that k-means saw
    double first_loss, loss; // mean squared distance to the nearest centroid, before and after
    int centroids, targets;  // targets: tokens of the vocabulary
    int empty;               // centroids that no vector is nearest to
    double share;            // of the vocabulary in a centroid's list, mean over the vectors,
    double least, most;      // and its extremes over the centroids
    uint64_t bytes;          // in the model file
} dgm_cluster_report;

// Learns clusters and writes the model with them. options NULL is an error; report NULL: not wanted.
DGM_API dgm_status dgm_cluster_make(const char *model, const char *output,
                                    const dgm_cluster_options *options, dgm_cluster_report *report,
                                    dgm_error *error);

typedef struct dgm_cluster_measure {
    uint64_t lines, vectors;
    double share;             // of the vocabulary in the nearest centroid's list, mean
    double recall;            // share of the vectors whose best token is in it
    int centroids, used;
    uint64_t *hits;           // [centroids] vectors nearest to each,
    uint32_t *sizes;          // [centroids] tokens in its list; both freed by dgm_cluster_free
} dgm_cluster_measure;

// What the model's clusters give for a text that the model translates with its whole vocabulary.
// options->vectors is a file for this text's vectors.
DGM_API dgm_status dgm_cluster_test(const char *model, const char *text,
                                    const dgm_cluster_options *options,
                                    dgm_cluster_measure *measure, dgm_error *error);
DGM_API void dgm_cluster_free(dgm_cluster_measure *measure);

// ---- quantisation -----------------------------------------------------------------------------

// Zero or NULL is the default of every field but `saturate` (dgm_quantize_default).
typedef struct dgm_quantize_options {
    // Storage of the matrices: "f32", "f16", "bf16", "i16", "i8". Must be given. Vectors stay f32.
    const char *type;
    // Matrices whose name matches one of these stay as they are; * and ? as in a shell.
    const char *const *keep;
    size_t keep_count;
    // Recommended precision of products, dragoman.decode.precision: "f32", "i16", "i8", or "none"
    // to leave the key out. NULL: what fits the type.
    const char *precision;
    // Text to translate, line by line; the inputs of all products are watched and a static scale is
    // stored with every weight (docs/FORMAT.md, 1.2). NULL: none.
    const char *calibrate;
    double saturate; // share of the input rows that a static scale may clip. Default 0.001
    int threads;     // of the calibration; 0: one per core. Default 1
    // Model card; NULL: as in the input.
    const char *name, *description, *license, *author, *url;
    const char *card_file; // Markdown
    dgm_progress progress; // of the calibration
    void *reserved[4];
} dgm_quantize_options;

DGM_API void dgm_quantize_default(dgm_quantize_options *options);

// What became of one matrix. Errors are differences between the real values before and after.
typedef struct dgm_quantize_tensor {
    const char *name, *from, *to; // types; the same two: copied bit by bit
    int32_t rows, cols;
    uint64_t bytes_before, bytes_after; // with scales
    double largest;                     // max |w|
    double max_error;
    double relative_error; // sqrt(sum of squared errors / sum of squared values)
    uint64_t saturated;    // values larger than the type can hold at its scale: clipped
    uint64_t vanished;     // values that became 0
    int through_f32;       // integers of another kind: rounded a second time
} dgm_quantize_tensor;

// max |x| of the input rows that one weight met, over the calibration text.
typedef struct dgm_quantize_input {
    const char *name; // of the weight
    uint64_t rows;
    double scale; // stored: 127 of them are the largest input that is not clipped
    double mean, deviation, median, q90, q99, q999, max;
    double clipped; // share of rows that the scale clips
} dgm_quantize_input;

typedef struct dgm_quantize_report {
    const dgm_quantize_tensor *tensors; // every matrix, in file order
    size_t tensor_count;
    const dgm_quantize_input *inputs; // with `calibrate`
    size_t input_count;
    size_t converted, kept, through_f32;
    uint64_t bytes_before, bytes_after;           // of all tensors
    double relative_error;                        // of all converted values together
    uint64_t lines, source_tokens, target_tokens; // of the calibration
} dgm_quantize_report;

// Writes a model with its matrices in another type. Everything else is copied. output NULL: only
// the report is made. report NULL: not wanted. An existing output is replaced at the end, in one
// step; it may be the input.
DGM_API dgm_status dgm_quantize(const char *model, const char *output,
                                const dgm_quantize_options *options, dgm_quantize_report **report,
                                dgm_error *error);
DGM_API void dgm_quantize_report_free(dgm_quantize_report **report);

// ---- techniques ---------------------------------------------------------------------------------

// What the techniques of Devlin 2017 did since dgm_open: counts of all workers and models.
typedef struct dgm_techniques {
    uint64_t rows, distinct;             // decoder rows, and distinct parents of each step
    uint64_t state_rows, state_products; // rows of all recurrent layers, products with states made
    uint64_t source_words, source_found; // words of the first encoder layer, of them looked up
    uint64_t target_words, target_found;
    uint64_t context_products;  // rows multiplied by the matrix of the context
    uint64_t activation_values; // sigmoid and tanh
    uint64_t early_stops;       // sentences that the margin ended
    uint64_t table_bytes;       // of pre-computed products
    // Unknown words of the output that were replaced, those in n-best lists included; of them by
    // the dictionary. The others are copies of source words.
    uint64_t unknown_words, unknown_translated;
    int32_t table_words[2];     // source, target
    int32_t merging, plain_attention;
    const char *activations; // "polynomial", "table", "libm"
} dgm_techniques;

DGM_API void dgm_techniques_count(const dgm_translator *t, dgm_techniques *counts);

// ---- profile ----------------------------------------------------------------------------------

// Where the time of a translator goes, by kind of operation.
typedef struct dgm_profile_row {
    const char *phase;       // "encode", "step", "readout", "rank"
    const char *operation;   // "linear", "quantise", "encoder attention", "softmax and top-k", ...
    const char *precision;   // of linear and quantise, else ""
    int32_t inputs, outputs; // of linear, else 0
    uint64_t calls, rows;
    uint64_t multiply_adds; // of real rows and wanted columns: no padding
    uint64_t weight_bytes;  // packed weights walked over
    uint64_t other_bytes;   // activations read and written
    double seconds;         // CPU time
} dgm_profile_row;

typedef struct dgm_profile {
    const dgm_profile_row *rows; // phase by phase, longest first
    size_t count;
    double elapsed;  // wall time since dgm_profile_start; the others are CPU time
    double busy;     // workers' time, of all of them together; with the rows, search and assembling
    double search;   // of it: search and bookkeeping, what is not in a row and not text
    double counting; // of it: reading the clock, estimated; the rows are without it
    double text;     // cutting and encoding of input (not in busy), decoding and joining of output
    uint64_t encodes, steps, ranks; // calls
} dgm_profile;

// Starts counting at zero. While it is off, which it is at first, counting costs a look at a
// pointer per operation. No translation may be under way during any of these calls.
DGM_API dgm_status dgm_profile_start(dgm_translator *t, dgm_error *error);
DGM_API dgm_status dgm_profile_read(dgm_translator *t, dgm_profile **profile, dgm_error *error);
DGM_API void dgm_profile_stop(dgm_translator *t);
DGM_API void dgm_profile_free(dgm_profile **profile);

#ifdef __cplusplus
}
#endif
#endif
