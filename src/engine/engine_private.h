// SPDX-License-Identifier: MIT
// Private to engine/: what a translator, a job and a line are made of.
//
//   dgm_translator  models, vocabularies, resolved settings, the queue, the workers, text threads
//   dgm_job         the lines of one call; a line has pieces; a piece is what a search decodes
//
//     caller and text threads        worker threads                 text threads
//     submit: check, split, encode   admit -> advance -> ... sink   decode, join, align
//             |                        ^                      |       ^           |
//             +---> queue of jobs -----+     last piece of a line ----+           +--> wait: caller
//
// A job's memory belongs to the job. Workers write only to the pieces they took, a text thread to
// the line it took after its last piece; the counters that hand a line over are guarded by t->lock.
#ifndef DGM_ENGINE_ENGINE_PRIVATE_H
#define DGM_ENGINE_ENGINE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "dragoman/dragoman.h"
#include "backend/device.h"
#include "backend/meter.h"
#include "constraint/constraint.h"
#include "format/modelfile.h"
#include "search/features.h"
#include "search/search.h"
#include "text/split.h"
#include "text/standin.h"
#include "text/vocab.h"

// ---- translator -------------------------------------------------------------------------------

typedef struct dgm_loaded {
    dgm_gguf *file;
    void *copy; // of a model in memory whose address did not suit; NULL: none
    dgm_model *model;
    float weight; // sum 1 over the members
    dgm_precision precision;
} dgm_loaded;

typedef struct dgm_worker dgm_worker;
typedef struct dgm_encoded dgm_encoded;
typedef struct dgm_line_state dgm_line_state;
typedef struct dgm_text_stage dgm_text_stage;
typedef struct dgm_dictionary dgm_dictionary;
typedef struct dgm_keeper dgm_keeper;

// Where lines are cut: settings.split, resolved.
typedef enum dgm_split_at {
    DGM_SPLIT_NONE,
    DGM_SPLIT_LONG,
    DGM_SPLIT_SENTENCES,
} dgm_split_at;

// With several devices (settings.device is a list) a translator has a twin for each of the others: models and
// vocabulary selection there, no workers. Workers take turns with them.
enum { DGM_DEVICES_MAX = 16 };

struct dgm_translator {
    dgm_backend *backend;
    struct dgm_translator *twins[DGM_DEVICES_MAX - 1];
    int devices; // 1 and twins
    const struct dgm_translator *like; // of a twin: whose precisions it takes; NULL: its own
    const struct dgm_translator *lender; // while it is opened over another one's weights; NULL: over its own
    atomic_int *holders; // translators with these weights, vocabularies and device; the last one frees them
    dgm_loaded members[DGM_PARTS_MAX];
    int member_count;
    dgm_vocab *source, *target; // target may be source
    bool shared_vocab;
    dgm_language source_language;

    // Resolved settings.
    dgm_asked wanted; // of all lines; strings in it are not the caller's
    dgm_search_config config;
    dgm_finish_text finish; // its policy in words
    dgm_limits limits;
    dgm_long long_lines;
    dgm_split_at split;
    bool careful; // text that is not ordinary is looked after (settings.raw)
    bool protect; // and what a translation must not damage
    dgm_protector protector; // of the translator's direction
    dgm_alignment alignment;
    bool token_scores, approximate; // approximate: scores of accelerated cube pruning
    int threads, batch;             // batch: sentences inside a worker at most
    int64_t batch_tokens;           // and their source tokens x beam
    int restricted;                 // dgm_restrict: which tokens a translation may be made of
    int shortlist;                  // member whose shortlist restricts the output, -1: none
    int clustered;                  // member whose clusters do, -1: none
    dgm_cluster_set **clusters; // [cluster_sets]: of the direction, or of every block of the file
    int cluster_sets;
    bool every_direction;       // lines say theirs
    bool replace_unknown;       // by the source word or the dictionary's; config.alignment is on
    dgm_dictionary *dictionary; // NULL: none
    uint64_t unknown_words, unknown_translated; // replaced, by the dictionary; guarded by lock
    struct dgm_glossary *glossary;   // settings.terms of the translator's direction; NULL: none
    struct dgm_term_files *terms;    // the files, for lines of other directions; NULL: none
    dgm_keeper *keep;                           // settings.keep; NULL: none
    dgm_surfaces *surfaces; // of the target vocabulary; NULL until a line needs them (lock)
    struct dgm_usual *usual; // what words become, for terms; likewise
    int activations;        // dgm_activations
    bool merging;
    bool evidence;         // lines may have some
    struct dgm_phrase_part *phrases; // [phrase_count] who gives it to the others, by directions
    int phrase_count;
    dgm_lmbr_weights lmbr; // what becomes of it
    int lmbr_order;
    bool lmbr_ngrams; // results hold them
    double lmbr_scale;
    size_t lmbr_limit;
    bool lattices; // lines may have one
    float lattice_weight;
    uint64_t evidence_lines, evidence_rows, evidence_values; // guarded by lock
    uint64_t evidence_pruned, evidence_decoded;
    double evidence_seconds, evidence_decode_seconds;

    dgm_translator_info info;
    char device[512], kernels[1536], source_code[64], target_code[64];
    char aligned_by[48];   // info.alignment
    char cube_key[64];
    int direction[2];      // of the first model's languages; -1: none yet, lines say theirs
    dgm_length_rule asked; // DGM_FROM_MODEL: what the file says for a direction

    // Queue: jobs that still have pieces nobody has taken, oldest first.
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool lock_ready;
    dgm_job *first, *last;
    size_t queued; // pieces in the queue
    size_t timed;  // jobs not finished that have lines with a deadline
    size_t streams; // jobs not finished that say how translations begin
    uint64_t cancels; // of jobs so far: workers look for their sentences when it changes
    bool quit;
    atomic_uint alarm; // changes when pieces come, or all end: workers that help others look up
    atomic_uint over;  // changes when all end
    int asleep;        // workers and helpers that wait for it
    int cores;         // that this process may use
    uint64_t lines;      // finished
    uint64_t copied, repeated, mended; // of these, with parts that passed through, cut, translated again
    dgm_worker *workers; // [threads]
    int started;
    pthread_t *helpers; // [helper_count] threads that only help workers; the number is guarded by lock
    int helper_count;
    dgm_text_stage *text;

    bool time_devices; // they measure how long they are busy
    bool profiling; // dgm_profile_start; changes while nothing is in flight
    double profile_begin, text_seconds;
};

// translator.c: the precision asked for (-1: none), else what the model recommends, else 8 bits.
// translator.c: whose models and device the worker uses.
const dgm_translator *dgm_home(const dgm_translator *t, int worker);
dgm_status dgm_precision_choose(const dgm_gguf *file, int asked, dgm_precision *out,
                                dgm_error *err);
// settings.c: the caller's settings as a whole struct of this version; NULL: the usual ones.
dgm_status dgm_settings_take(const dgm_settings *given, dgm_settings *own, dgm_error *err);
// Checks settings against the loaded models and fills config, limits and info.
dgm_status dgm_settings_resolve(dgm_translator *t, const dgm_settings *s, dgm_error *err);
// May a model file say this setting (docs/internals/FORMAT.md, 2.3)? Not those that name files, devices or what
// results hold.
bool dgm_stored_allowed(const char *name);
// Does a file ask for static scales? They must be known before weights are loaded.
bool dgm_stored_scales(const dgm_gguf *file, const dgm_settings *s);
// The part that can be judged before a model is loaded (names, ranges).
// *precision: the number of the precision asked for, -1: each model's own.
dgm_status dgm_settings_check(const dgm_settings *s, int *precision, dgm_error *err);

// translator.c: as dgm_open, for a tool that wants at least the `ranked` best tokens of every row.
dgm_status dgm_open_ranked(dgm_translator **t, const char *path, const dgm_settings *settings,
                           int ranked, dgm_error *err);

// asked.c: what the settings ask for, before models are loaded. search: chooses the search and the
// beam, fills t->wanted and has the table of features judge it. decoding:
// the rest of the search's configuration. line: the table's word on a line that has some of prefix,
// end, constraints and lattice.
dgm_asked dgm_asked_settings(const dgm_settings *s);
dgm_status dgm_search_resolve(dgm_translator *t, const dgm_settings *s, dgm_error *err);
void dgm_decoding_resolve(dgm_translator *t, const dgm_settings *s);
dgm_status dgm_asked_line(const dgm_translator *t, const dgm_asked *line, dgm_error *err);

// constrain.c: glossaries and what is kept; needs the languages. claims: does one of them speak of this part
// of a text?
dgm_status dgm_constrain_open(dgm_translator *t, const dgm_settings *s, dgm_error *err);
void dgm_constrain_close(dgm_translator *t);
bool dgm_constrain_claims(const dgm_line_state *line, dgm_text text, size_t begin, size_t end);
// direction.c: glossaries of settings.terms by directions. of: that of a line (other: its direction is not the
// translator's); *out NULL: there is none.
dgm_status dgm_terms_open(dgm_translator *t, const dgm_settings *s, dgm_error *err);
void dgm_terms_close(dgm_translator *t);
// Adds what an item of settings.terms, whose text this is, has for a direction to a glossary, which is opened
// where there is something. known: languages of the directions that it may be for instead of this one; NULL:
// this is the only one.
typedef struct dgm_codes {
    const char *const *items;
    size_t count;
} dgm_codes;
dgm_status dgm_terms_read(struct dgm_glossary **g, const char *item, dgm_text text, const dgm_codes *known,
                          const char *source, const char *target, dgm_error *err);
dgm_status dgm_terms_of(const dgm_translator *t, const int direction[2], bool other, const struct dgm_glossary **out,
                        dgm_error *err);

// direction.c: the translator's direction, before settings are resolved; a line's (*other: not the
// translator's); the one that a token before a source means, false if none.
// Do the opened files of an ensemble translate in the same direction, as far as they say?
dgm_status dgm_direction_ensemble(const dgm_translator *t, dgm_error *err);
dgm_status dgm_direction_resolve(dgm_translator *t, const dgm_settings *s, dgm_error *err);
dgm_status dgm_direction_line(const dgm_translator *t, const dgm_direction *asked, int direction[2],
                              bool *other, dgm_error *err);
bool dgm_direction_of_token(const dgm_translator *t, int32_t token, int direction[2]);
// What the file says for a direction (-1: for all of them); lengths: with what the caller set instead.
dgm_status dgm_direction_defaults(const dgm_translator *t, const int direction[2],
                                  dgm_direction_spec *out, dgm_error *err);
dgm_status dgm_direction_lengths(const dgm_translator *t, const int direction[2],
                                 dgm_length_rule *out, dgm_error *err);

// optimisations.c: the device before models are loaded; the loaded models.
void dgm_optimisations_device(dgm_translator *t, const dgm_settings *s);
dgm_status dgm_optimisations_tune(dgm_translator *t, const dgm_settings *s, dgm_error *err);

// evidence.c: settings->lmbr, before models are loaded and after; which weights a checked struct
// means. lmbr_default and lmbr_set are public.
dgm_status dgm_lmbr_check(const dgm_settings *s, dgm_error *err);
void dgm_lmbr_resolve(dgm_translator *t, const dgm_lmbr *l);

// evidence.c: phrase-based systems that give it, when the languages are known. for: that of a direction of the first
// model's languages (-1: not known); NULL: there is none. fits: is one of settings.phrase_system for a direction? By
// what the setting says, and its files; NULL: a language that nobody knows.
dgm_status dgm_phrases_resolve(dgm_translator *t, const dgm_settings *s, dgm_error *err);
void dgm_phrases_drop(dgm_translator *t);
struct dgm_phrases *dgm_phrases_for(const dgm_translator *t, const int direction[2]);
dgm_status dgm_phrases_fit(const char *systems, const char *source, const char *target, bool *fit, dgm_error *err);

// unknown.c: what becomes of unknown words; changes config.allow_unk and config.alignment.
dgm_status dgm_settings_unknown(dgm_translator *t, const dgm_settings *s, dgm_error *err);
dgm_status dgm_dictionary_open(dgm_dictionary **d, const char *path, dgm_error *err);
void dgm_dictionary_close(dgm_dictionary **d); // sets NULL; accepts NULL inside

// restrict.c: the candidates of a translation, --shortlist.
typedef enum dgm_restrict {
    DGM_RESTRICT_ALL = 0,
    DGM_RESTRICT_LEXICAL,
    DGM_RESTRICT_CLUSTER,
    DGM_RESTRICT_UNION,
    DGM_RESTRICT_INTERSECT
} dgm_restrict;

extern const char *const dgm_restrict_names[]; // in this order; NULL at the end
// choice: dgm_restrict, -1: what the models have. Loads what it needs.
dgm_status dgm_restrict_resolve(dgm_translator *t, int choice, dgm_error *err);
dgm_status dgm_restrict_open(const dgm_translator *t, dgm_exec *x, dgm_vocabsel *v, dgm_error *err);
dgm_bytes dgm_restrict_bytes(const dgm_translator *t); // of a worker
size_t dgm_restrict_centroids(const dgm_translator *t); // 0: no clusters are used
// Which clusters a line of this direction uses (other: not the translator's), of those that are loaded.
dgm_status dgm_restrict_line(const dgm_translator *t, const int direction[2], bool other,
                             int *clusters, dgm_error *err);
void dgm_restrict_close(dgm_translator *t);

// budget.c: sentences at once and memory of the workers, from settings and the resolved
// configuration: fills batch, batch_tokens, limits and config.sentences.
dgm_status dgm_budget_resolve(dgm_translator *t, const dgm_settings *s, dgm_error *err);


// vocabulary.c
dgm_status dgm_vocabulary_load(const dgm_gguf *file, dgm_side side, dgm_vocab **vocab, bool *shared,
                               dgm_error *err);
// Ids of tokens by their spelling, appended to the growing array; the unknown word where there is none.
dgm_status dgm_vocabulary_ids(const dgm_vocab *v, const char *const *tokens, size_t count, int32_t **array,
                              size_t *used, size_t *cap, dgm_error *err);
// A line that comes as tokens (dgm_input.tokens): its one part.
dgm_status dgm_tokens_line(const dgm_translator *t, dgm_encoded *out, dgm_line_state *line, const dgm_input *input,
                           dgm_error *err);
// DGM_ERR_UNSUPPORTED unless both give every id the same spelling; `what` names the side.
dgm_status dgm_vocabulary_same(const dgm_vocab *a, const dgm_vocab *b, const char *what,
                               dgm_error *err);

// discover.c: the file of a model as people give it, a path, a name or a folder (dgm_models_named,
// dgm_models_cached); NULL: of the default model. The caller's to free (dgm_free).
dgm_status dgm_model_file(const char *given, char **path, dgm_error *err);

// ---- jobs -------------------------------------------------------------------------------------

// One decoded hypothesis, copied out of the search. Arrays lie in the piece's block.
typedef struct dgm_raw {
    const int32_t *tokens; // [count]
    const float *scores;   // [count + 1] with the end symbol's, or NULL
    const int32_t *align;  // [count] source token, -1: none; or NULL
    int count;
    float score, sum;
    bool finished;
} dgm_raw;

// What the encoder reads of a piece.
typedef struct dgm_piece_source {
    size_t ids_at, spans_at; // in the arrays of its job
    int count, text_count;   // ids, and those that stand for text; 0: there is none
} dgm_piece_source;

typedef struct dgm_piece_state dgm_piece_state;
struct dgm_piece_state {
    dgm_line_state *line;
    size_t ids_at, spans_at, prefix_at; // in the arrays of its job, which move while they grow
    int count, prefix_count;            // ids the encoder reads, forced target tokens
    size_t lead_at;                     // tokens of its direction, where lead: else the model's own
    bool lead;
    int text_first, text_count; // ids[text_first .. + text_count) stand for text
    bool backwards;             // the last of the text first
    dgm_constraint *constraint; // the job's; NULL: none
    dgm_constraint *constraint_right; // of pairs from both ends the same, read from the right; else NULL
    bool relaxed;               // it could not be met: decoded without
    // A piece with terms is decoded as it is written first, and without constraints; then, unless its translation has
    // what it must, with terms in place of their source words. The one of the two that is not in use:
    dgm_piece_source with_terms;
    bool as_written; // the first of both
    bool unusual;    // it is left out: the model never says one of the terms
    // What says a term too often that way is decoded without constraints, too, as a model mostly says what it reads
    // where it belongs; and then with limits, unless that has its terms as often as it should. A beam of one begins
    // with the second.
    bool loose, unforced; // the first and the second of these attempts
    bool glance;     // before it, half of the beam is to show whether it is worth the time
    bool copied;                // it passes through: nothing is decoded
    bool raised, titled;        // its translation will be in capitals, in Title Case
    bool late, missed;          // its line's deadline cut it short; before there was a word of it
    float worked;               // what the job was told of its work so far
    bool repeated;              // its best translation was cut where it began to repeat itself
    // written by the worker
    int shared;   // tokens that were told
    bool whole;   // with all of their last word
    bool decoded; // its hypotheses are there; guarded by the translator's lock
    dgm_status status;
    char *error; // message, or NULL
    void *block; // holds hyps and their arrays
    dgm_raw *hyps;
    int hyp_count;
    // written by a text thread: the attempt that is taken instead, NULL: none, and what it has stand-ins for
    dgm_piece_state *better;
    const dgm_standins *standins;
};

struct dgm_line_state {
    dgm_job *job;
    dgm_line_state *next; // of those that wait for a text thread
    char *text; // repaired copy, NUL-terminated; NULL for an empty line
    size_t size;
    dgm_pieces pieces; // items[i] belongs to the job's piece first + i
    size_t first;
    size_t left; // pieces not decoded yet; guarded by the translator's lock
    dgm_status status;
    char *message;
    char *notice; // constraints left out; NULL: none
    uint32_t flags;
    bool careful; // its text is looked after (dgm_translator.careful)
    double deadline; // by dgm_now; 0: none
    dgm_writer said; // what was told of it; guarded by job->telling
    bool other; // its direction is not the translator's: this is it, and these are its lengths
    int direction[2];
    bool guarded; // something in it is protected: it may be translated again, and is not told before
    dgm_length_rule lengths;
    int clusters;                        // which of the translator's
    const struct dgm_glossary *glossary; // of its direction; NULL: none
    dgm_lmbr_rows *lmbr;                 // of its evidence, for all its pieces; NULL: none
    dgm_evidence_ngram *ngrams;          // the same for the result; NULL: not wanted
    size_t ngram_count;
    dgm_walk *walk;                      // its lattice; NULL: none
    struct dgm_retry *retry;             // attempts to save what its translation lost; NULL: none
    size_t source_tokens, target_tokens; // target: of the best translation, end symbols included
};

// What lines became, piece after piece.
struct dgm_encoded {
    dgm_piece_state *pieces;
    size_t piece_count, piece_cap;
    int32_t *tokens; // of all pieces and prefixes
    size_t token_count, token_cap;
    dgm_span *spans; // of text tokens in their line's text, kept for alignments
    size_t span_count, span_cap;
};

void dgm_encoded_free(dgm_encoded *e); // pipeline.c; all zero afterwards

typedef struct dgm_results_box {
    dgm_results pub;
    dgm_result *items;       // all of them, and
    const dgm_result **list; // where each is: pub.items
} dgm_results_box;

struct dgm_job {
    dgm_translator *translator;
    dgm_job *next;
    dgm_line_state *parent; // its lines are attempts at parts of that one; NULL: they are a caller's
    dgm_line_state *lines;
    size_t line_count;
    dgm_encoded encoded;
    uint32_t *order; // pieces, longest first; those that are copied last
    size_t order_count; // to decode
    size_t taken;
    size_t left; // lines not finished
    bool cancelled; // guarded by the translator's lock
    bool timed;     // a line has a deadline
    bool streamed;  // watch.partial is there, and is told more than whole lines
    double begin;   // what deadlines are counted from
    double deadline; // no piece in the queue has an earlier one; 0: none has one
    double work, worked; // of all pieces (dgm_piece_work), and what is done of it
    pthread_cond_t done;
    bool done_ready;
    // Who is told of it (size 0: nobody), one call at a time; told: lines.
    dgm_watch watch;
    pthread_mutex_t telling;
    bool telling_ready;
    size_t told;
    dgm_results_box *box;
};

// Is the beginning of what a piece becomes known from its first tokens, while its search runs? Not where
// the text is changed when it is whole, nor where it may be begun again, or end in nothing. Whoever
// changes the text of a piece behind its search adds a condition here.
static inline bool dgm_piece_streams(const dgm_piece_state *piece)
{
    return !piece->raised && !piece->titled && !piece->constraint && !piece->line->walk;
}

// Is the beginning of a line known from its first pieces? Not of unknown words, which are replaced, and
// counted, when the line is assembled (dgm_job.streamed). Whoever changes a line as a whole adds a
// condition here.
static inline bool dgm_line_streams(const dgm_line_state *line)
{
    return line->job->streamed && !line->guarded;
}

// What a piece costs, for estimates: a step has costs of its own besides those of its rows, and the longer
// sentences are, the fewer of them share a step.
static inline float dgm_piece_work(const dgm_piece_state *piece)
{
    enum { SHARED = 32 };
    return (float)piece->count * (1 + (float)piece->count / SHARED);
}

// pipeline.c: fills job->lines and pieces from the inputs. Fails only when out of memory; what is
// wrong with a line goes into its status.
dgm_status dgm_job_prepare(dgm_job *job, const dgm_input *inputs, dgm_error *err);
// Ids of an array from `first` to `end`, turned round.
static inline void dgm_turn_ids(int32_t *ids, size_t first, size_t end)
{
    for (; first + 1 < end; first++) {
        const int32_t id = ids[first];
        ids[first] = ids[--end];
        ids[end] = id;
    }
}

// Appends the frame of a source to the growing array: prefix ids, `language` unless -1, the text's
// ids (all these in reverse where the encoder reads backwards), eos, tokens that stand last. direction: NULL, or
// the one whose tokens they are.
dgm_status dgm_source_frame(const dgm_translator *t, const int *direction, int32_t language,
                            const int32_t *ids, size_t count, int32_t **array, size_t *used,
                            size_t *cap, dgm_error *err);

// assemble.c: the finished line's result, from the pieces' hypotheses. Buffers of one thread, used
// again for every line; start with all zero.
typedef struct dgm_scratch {
    dgm_writer text;   // of one translation, piece after piece
    dgm_writer joined; // the line
    dgm_span *spans;   // of the target tokens of all pieces, in `text`
    size_t span_cap;
    dgm_text *outputs; // of each piece, in `text`
    size_t output_cap;
    size_t *starts; // of each piece, in `joined`
    size_t start_cap;
    dgm_link *links;
    size_t link_cap, link_count;
    dgm_text *spelled; // of the tokens of one piece, where they are unknown
    size_t spelled_cap;
    dgm_writer lower;
    int32_t *source_word, *target_word; // of each token
    size_t source_cap, target_cap;
    dgm_protected_list protected; // in a part of the source
    unsigned char *kept;          // [its count]: 1 where the translation has it
    size_t kept_cap;
} dgm_scratch;

void dgm_scratch_free(dgm_scratch *s);
// unknown.c: spellings of a hypothesis' unknown words, NULL data elsewhere; *spelled NULL: it has
// none. Valid until the next call with the same scratch.
dgm_status dgm_unknown_spell(const dgm_piece_state *piece, const dgm_raw *h, dgm_scratch *s,
                             const dgm_text **spelled, dgm_error *err);
void dgm_line_assemble(dgm_line_state *line, dgm_scratch *s, dgm_result *out);
// Into s->joined: the text of a line's first `count` pieces, which are decoded; the last one may be
// replaced by what is known of it (begun; NULL: it is not).
dgm_status dgm_line_begin(const dgm_line_state *line, size_t count, const dgm_raw *begun,
                          dgm_scratch *s, dgm_error *err);
// Ends the hypotheses of a piece of careful lines where they begin to repeat themselves, unless the source does.
void dgm_piece_cut(dgm_piece_state *piece);
// Of a hypothesis that begins with these tokens: how many are left, whatever follows, when it is cut so.
int dgm_runaway_settled(const int32_t *tokens, int count);
// lattice_input.c: line->walk, what the search of a line follows that comes with a lattice. The forced tokens and the
// constraint of its piece become part of it; where no path meets the constraint, it is left out. DGM_ERR_TEXT or
// DGM_ERR_ARGUMENT for what the line is to blame for.
dgm_status dgm_lattice_line(const dgm_translator *t, const dgm_lattice_text *given, dgm_line_state *line,
                            const int32_t *tokens, dgm_piece_state *piece, dgm_error *err);

// constrain.c: does a hypothesis have all that the piece's constraint asks for?
bool dgm_piece_meets(const dgm_piece_state *piece, const dgm_hypothesis *h);
// Have all hypotheses what it asks for, and no term too often?
bool dgm_piece_within(const dgm_piece_state *piece, const dgm_search_result *r);
void dgm_piece_loosen(dgm_piece_state *piece, bool loose); // limits of terms do not count in the next search; or do
// What these tokens say too often may be said so by the piece's translation; NULL: everything may.
void dgm_piece_lift(dgm_piece_state *piece, const int32_t *tokens, int count);
// Changes between the piece as it is written and with terms in the source.
void dgm_piece_exchange(dgm_piece_state *piece);
// Copies what a search found; of a piece as it is written only what meets its constraint, and the first.
dgm_status dgm_piece_take(dgm_piece_state *piece, const dgm_search_result *r);
// The text of a piece's best translation, appended to s->text.
dgm_status dgm_piece_text(const dgm_piece_state *piece, dgm_scratch *s, dgm_error *err);
void dgm_line_count(dgm_translator *t, const dgm_line_state *line); // it is finished; lock held

// The message of a line that ran out of memory: the one message that is not on the heap.
extern const char dgm_memory_message[];

// api.c: what a translation owns, not the struct itself; all translations of a line.
void dgm_translation_free(const dgm_translation *t);
void dgm_translations_free(dgm_result *r);

// batcher.c
void dgm_job_free(dgm_job *job);
dgm_status dgm_job_sort(dgm_job *job, dgm_error *err); // its pieces, in the order in which they are taken
// A job whose lines are attempts at parts of a line, the next that is taken from the queue; in *out, which the caller
// frees whatever happens. When all are decoded a text thread takes the line. *queued: they will be, and the line is not
// to be touched meanwhile; else there is nothing to decode, or it is too late.
dgm_status dgm_submit_again(dgm_line_state *line, const dgm_input *inputs, size_t count, dgm_job **out,
                            bool *queued, dgm_error *err);
static inline bool dgm_job_is_cancelled(const dgm_job *job)
{
    return job->cancelled || (job->parent && job->parent->job->cancelled);
}
// Takes up to `room` pieces for a worker whose costs fit `tokens` together (the first one may be
// larger if `any`); lock held.
size_t dgm_queue_take(dgm_translator *t, dgm_piece_state **out, size_t room, int64_t tokens,
                      bool any);
// A piece whose job was cancelled will not be decoded; lock held.
void dgm_piece_drop(dgm_translator *t, dgm_piece_state *piece);
// A piece whose line's deadline passed before it was begun, likewise; all such pieces in the queue.
void dgm_piece_miss(dgm_translator *t, dgm_piece_state *piece);
void dgm_queue_expire(dgm_translator *t, double now);
static inline bool dgm_piece_is_late(const dgm_piece_state *piece, double now)
{
    return piece->line->deadline > 0 && piece->line->deadline <= now;
}
// What a piece takes of the workers' budget (budget.c).
static inline int64_t dgm_piece_cost(const dgm_translator *t, const dgm_piece_state *piece)
{
    return (int64_t)piece->count * t->config.beam;
}

// text_stage.c: threads for what is not arithmetic. Stop comes after the workers': lines that they
// left are assembled first. Both accept what was never started.
dgm_status dgm_text_start(dgm_translator *t, dgm_error *err);
void dgm_text_stop(dgm_translator *t);
int dgm_text_threads(const dgm_translator *t);
// How many suit so many workers, on the cores or on a device beside them.
int dgm_text_suits(int workers, int cores, bool device);
// Finds the lines of a job that may be translated again (dgm_line_state.guarded).
void dgm_text_guard(dgm_job *job);
// A line whose pieces are all decoded or have failed; lock held. dgm_text_wake when a worker has
// handed over what it had, likewise.
void dgm_text_take(dgm_translator *t, dgm_line_state *line);
void dgm_text_wake(dgm_translator *t);
// Tells whoever watches that the text of a piece begins with these tokens (NULL: it is decoded), where
// that of the pieces before it is known; false: it is not. whole: the last word of them is. Not with the lock held.
bool dgm_text_say(dgm_piece_state *piece, const int32_t *tokens, int count, bool whole);
// run(arg, who, part) for every part, in this thread and in idle text threads; who: 0 for this one,
// up to dgm_text_threads for the others, none of them twice at once. Returns when all are done.
typedef void (*dgm_text_fn)(void *arg, int who, size_t part);
void dgm_text_share(dgm_translator *t, dgm_text_fn run, void *arg, size_t parts);

// worker.c
dgm_status dgm_workers_start(dgm_translator *t, dgm_error *err);
// Pieces have come, or the end has; lock held.
void dgm_workers_wake(dgm_translator *t);
void dgm_workers_stop(dgm_translator *t);
// api.c
void dgm_workers_count(const dgm_translator *t, dgm_counters *c);
// Parts of operations that workers computed for others so far.
uint64_t dgm_workers_shared(const dgm_translator *t);
// Sums over all workers and models; early: sentences that the margin ended. Lock held.
void dgm_workers_optimisations(const dgm_translator *t, dgm_model_counts *sum, uint64_t *early);
// Starts counters at zero in every worker, or drops them; nothing may be in flight.
dgm_status dgm_workers_meter(dgm_translator *t, bool on, dgm_error *err);
// Adds the workers' counters to *sum, their seconds to *busy.
void dgm_workers_read(dgm_translator *t, dgm_meter *sum, double *busy);
// NULL ends it. Nothing may be in flight.
void dgm_workers_observe(dgm_translator *t, const dgm_observer *observer);

// Bytes of scratch memory that one worker needs.
dgm_bytes dgm_worker_bytes(const dgm_translator *t);

#endif
