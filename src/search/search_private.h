// SPDX-License-Identifier: MIT
// Private to search/: active sentences, hypotheses, and the parts every search shares.
//
// A sentence inside the search is an *active sentence*. Its hypotheses are three separate things:
//
//   path    a node of the sentence's tree of back-pointers: (parent node, token, sum so far)
//   rows    per ensemble part the decoder row that its last token will be fed to
//   states  per scorer one int32
//
//      node 0 = root --- "Guten" --- "Morgen"          live hypothesis j of a beam:
//                   \           \--- "Tag"                 beam.live[j].node   -> path
//                    \-- "Schoenen" -- "Tag"               beam.rows[j, part]  -> decoder row
//                                                          beam.states[j, scorer]
//
// Children of one hypothesis start with the same row: the one made by feeding their parent's last
// token. A search may also give a hypothesis another row than its path's own; nothing here assumes
// that they agree.
//
// One generation of any search is: choose hypotheses (dgm_rows_add), feed their last tokens and
// rank (dgm_rows_run), merge each sentence's rows, keep or end (dgm_active_keep,
// dgm_active_end), drop what is no longer named (dgm_rows_retain). Everything lives in arrays made
// by dgm_search_open.
#ifndef DGM_SEARCH_SEARCH_PRIVATE_H
#define DGM_SEARCH_SEARCH_PRIVATE_H

#include "search/features.h"
#include "search/search.h"

enum { DGM_SEARCH_SCORERS = DGM_SCORERS_MAX + 2 }; // the caller's, constraints, prefix forcing

// One token of a path.
typedef struct dgm_node {
    int32_t parent; // -1: the root
    int32_t token;
    float score; // sum up to and with this token
} dgm_node;

typedef struct dgm_live {
    int32_t node;
    float score; // the node's; what rank takes as base
    bool ended;  // in this step its end symbol was taken: a finished hypothesis came from it
    int32_t lane; // which of the sentence's draws (sample.c); its parent's
    int32_t state_right; // pairs from both ends: of constraints, behind the right words
} dgm_live;

// The live hypotheses of a sentence, best first.
typedef struct dgm_beam {
    int count;
    dgm_live *live;   // [width]
    int32_t *rows;    // [width, parts]
    int32_t *states;  // [width, scorers]
    int32_t *origins; // [width] generation row whose word it took
} dgm_beam;

// A completed hypothesis.
typedef struct dgm_ended {
    int32_t node; // its last real token
    int length;   // real tokens + 1
    float sum;    // with the end symbol
    float score;  // what finished hypotheses are ranked by
    bool finished;
} dgm_ended;

// The best `width` completed hypotheses, best first; ties: the earlier one.
typedef struct dgm_store {
    int count;
    dgm_ended *items; // [width]
} dgm_store;

typedef struct dgm_hand dgm_hand;

typedef struct dgm_active {
    bool used;
    bool done; // to be reported by this advance
    uint64_t id;
    int source_count;
    const dgm_constraint *constraint; // NULL: none
    const dgm_constraint *constraint_right; // pairs from both ends: of the right words; else NULL
    int width;                        // live hypotheses at most: the search's, or fewer in beam search and of pairs
    bool glance;                      // of the request, where it is narrow
    const int32_t *prefix; // forced first tokens (mask-predict; elsewhere a scorer has them)
    int prefix_count;
    const dgm_lmbr_rows *lmbr; // of its evidence (mask-predict, pairs; elsewhere a scorer has them); NULL: none
    const int32_t *behind; // pairs from both ends: forced right words, the last one first
    int behind_count;
    uint64_t fingerprint; // of source and prefix (sample.c)
    bool forced;          // some of its tokens are forced on it
    const dgm_walk *walk; // a lattice bounds it: no margin ends it early; NULL: none
    int32_t slots[DGM_PARTS_MAX];
    int lead;       // start and model prefix tokens fed so far
    const int32_t *lead_tokens; // of the request, in place of the models'; NULL: theirs
    int tokens;     // of every live hypothesis
    int max_length; // of this sentence
    int settle;     // of the request
    dgm_length_rule lengths;
    int steps;
    int first_row, row_count; // of this generation; its rows are neighbours
    dgm_hand *hand;           // of the thread that has the sentence (share.c)
    dgm_beam now, next;
    int node_count;
    dgm_node *nodes;  // [1 + width * (max_length + 1)]
    float *attention; // [nodes, max_source]: weights seen when the node's token was fed; or NULL
    dgm_store store;  // finished hypotheses
    dgm_store spare;  // ends of live rows that did not make the beam (policy mask)
    int ended;        // hypotheses that finished, also those the store dropped
    float best_sum;   // best raw sum of them
    bool top_ended;   // in some step the best candidate of all was an end (policy ctranslate2)
    // Exact scores of what an approximate search found (rescore.c).
    int again_count;       // 0: the sentence still searches
    dgm_ended *again;      // [nbest]
    int32_t *path;         // [nbest, max_length + 1]
    int32_t *first_states; // [scorers] of the empty hypothesis
} dgm_active;

// Where a result's words go.
typedef struct dgm_room {
    int32_t *tokens; // [max_length]
    float *scores;   // [max_length + 1], or NULL
    float *align;    // [max_length, source length], or NULL
} dgm_room;

// Rows of one generation: all sentences, the ranked ones first. A model of pairs gives a row two
// hidden vectors, neighbours, and each is ranked: vector v of row r is r * vectors + v.
typedef struct dgm_rows {
    int count, ranked;
    int watched; // tokens per row whose scores are wanted
    bool subset; // some row has a list of candidates
    bool alike;  // terms of all rows differ in their bases alone
    int32_t *active, *hypo; // [capacity]
    dgm_step_row *steps;   // [capacity]
    int32_t *rows;         // [parts, capacity] made by the step
    dgm_mat hidden[DGM_PARTS_MAX];
    int32_t *retain; // [capacity]
    // of every vector: [capacity * vectors]
    float **align;
    dgm_terms *terms;
    float *base; // where terms are alike: then the first are those of all
    const dgm_candidates **candidates;
    const dgm_candidates **more; // of single rows, beside their lists
    int32_t *sizes;              // of rank: how many candidates a row had
    int32_t *watch;
    float *watch_score; // of the end symbol
    float *score;       // [capacity * vectors, k]
    int32_t *token;     // [capacity * vectors, k]
} dgm_rows;

// history.c; arrays are NULL where nothing needs them.
typedef struct dgm_history {
    int32_t *path;  // [max_length] of the row at hand
    int32_t *compared; // [2, max_length] lists of two hypotheses
    int32_t *ids;   // [capacity, max_length] tokens of the path, ascending
    float *values;  // [max_length] what each of them costs
    int32_t *deny;  // [capacity, max_length + 2] ascending
} dgm_history;

// banks.c: constrained sentences.
enum { DGM_OFFERS = 32, DGM_BANK_DENY = 64 }; // of a row at most
typedef struct dgm_bank_entry dgm_bank_entry;
typedef struct dgm_candidate dgm_candidate;

typedef struct dgm_banks {
    int constrained;      // sentences inside that have constraints
    int watched;          // columns of watch in this generation
    int32_t *offers;      // [capacity] how many a row has
    int32_t *watch;       // [capacity, watched] the end symbol and the offers
    float *watch_score;   // [capacity, watched]
    int32_t *deny;        // [capacity, deny_room] ascending
    int deny_room;
    dgm_bank_entry *pool; // [width * (k + DGM_OFFERS + 1)] candidates of the sentence at hand
    int pool_count;
    bool roomy;           // the beam has a place for each
    // What the automaton says of the last state that a candidate had, if any was asked: neighbours often share it.
    int asked_count;
    int32_t asked;
    int missing, bank;
    float debt;
    int32_t *heap;        // the same, by key
    dgm_candidate *order; // [3 * width + 2] what the policy draws
    int order_count;
    int32_t *best;        // [DGM_CONSTRAINT_SUBWORDS] of each bank
    int32_t *needed;      // [max_length + DGM_CONSTRAINT_SUBWORDS] of a sentence that enters
    int *subwords;        // [capacity, DGM_OFFERS] numbers of the offers among a sentence's costs
    float *costs;         // [sentences, DGM_CONSTRAINT_SUBWORDS] what subwords are expected to cost
} dgm_banks;

typedef struct dgm_search_ops dgm_search_ops;
typedef struct dgm_finish_ops dgm_finish_ops;
typedef struct dgm_cubes dgm_cubes;
typedef struct dgm_pairs dgm_pairs;
typedef struct dgm_masks dgm_masks;

struct dgm_search {
    dgm_search_config config;
    dgm_asked asked; // of it, in the words of the table of features
    const dgm_search_ops *ops;
    const dgm_finish_ops *finish;
    dgm_exec *exec;
    dgm_search_part parts[DGM_PARTS_MAX];
    const dgm_model_info *info[DGM_PARTS_MAX];
    int part_count, scorer_count;
    dgm_vocabsel vocabsel;
    dgm_scorer scorers[DGM_SEARCH_SCORERS]; // constraints, prefix forcing last
    int width;                              // live hypotheses of a sentence at most
    int k;                                  // candidates of a vector
    int capacity;                           // rows of a generation
    int vectors;                            // of a row: 2 where a model writes pairs, else 1
    int kept;       // numbers of hidden vectors that a row may keep until the next step, 0: none
    bool keeps;     // it does
    bool retains;   // decoder rows without a live hypothesis are still to be dropped
    dgm_mat hidden; // [capacity * vectors, kept] on the device, part beside part
    int node_capacity, lead_count;
    int source_limit, target_limit; // tokens
    int32_t eos;
    int32_t deny[1], deny_early[2]; // ascending; early: before the minimum length
    int deny_count, deny_early_count, never_count;
    int32_t *never;
    int active_count;
    dgm_active *active;
    dgm_rows rows;
    dgm_history history;
    dgm_banks banks;
    dgm_hand *hands; // [hand_count]
    int hand_count;  // 1: nobody helps with this search
    bool any_done;   // after a generation: somebody may be to be reported
    dgm_cubes *cubes; // the cube search's, else NULL
    dgm_pairs *pairs; // the search of pairs' likewise
    dgm_masks *masks; // mask-predict's
    // admit
    dgm_source *sources; // [sentences]
    int32_t *new_slots, *new_rows, *entering;
    // one result at a time
    dgm_hypothesis *hypotheses; // [nbest]
    int32_t *tokens;            // [nbest, max_length]
    float *word_scores;         // [nbest, max_length + 1] or NULL
    float *alignment;           // [nbest, max_length, max_source] or NULL
    dgm_search_stats stats;
    uint64_t *in_union; // a bit per token of the vocabulary; NULL: nobody counts unions
};

// ---- memory (search.c) -------------------------------------------------------------------------

// Hands out arrays of the worker's arena, or only adds up what they would take.
typedef struct dgm_carve {
    dgm_arena *arena; // NULL: count only
    size_t bytes;
    bool full;
} dgm_carve;

void *dgm_carve_take(dgm_carve *c, size_t count, size_t size);
#define DGM_CARVE(c, type, count) ((type *)dgm_carve_take((c), (count), sizeof(type)))

// ---- sharing (share.c) --------------------------------------------------------------------------

// What one thread needs for the sentence that it has at hand. Of several threads each has its own.
struct dgm_hand {
    _Alignas(64) int *merge_at; // [width]; hands have cache lines of their own
    int32_t *lines;             // [width] rows of the sentence
    float *best;                // [width]
    dgm_candidate *ends;        // [width] how each hypothesis would end now; -inf: not at all
    int rows;                   // counted, or where the next one goes
    bool done;                  // a sentence is to be reported
    uint64_t early;             // for the statistics
};

void dgm_hands_lay_out(dgm_carve *c, dgm_search *s, bool shares);
// How many parts work of so many nanoseconds of one thread is to be cut into now; 1: this thread does it alone.
int dgm_share_parts(dgm_search *s, double nanoseconds);
// Runs `pass` for neighbours first .. end - 1 of `all`, which are cut into so many parts, each with the hand of its
// number. What it does for one of them must not depend on the others.
typedef void (*dgm_pass)(dgm_search *s, dgm_hand *hand, int first, int end, const void *arg);
void dgm_share(dgm_search *s, int parts, int all, dgm_pass pass, const void *arg);

// ---- the table of searches (search_table.c) ----------------------------------------------------

struct dgm_search_ops {
    const char *name;
    int tokens; // of a model's step; 0: the model fills in whole sentences
    bool grows; // a hypothesis is that of the step before and one token more
    bool shares; // its `expand` (dgm_generation) changes nothing but the sentence and its hand
    dgm_status (*check)(const dgm_search_config *c, dgm_error *err); // its own numbers, or NULL
    int (*candidates)(const dgm_search_config *c);                   // k of rank
    int (*nodes)(const dgm_search_config *c); // of a sentence's tree; NULL: one a token
    // Takes the arrays of its own (NULL: it has none). Needs width, k, capacity and part_count.
    void (*lay_out)(dgm_carve *c, dgm_search *s);
    void (*terms)(dgm_search *s, int row); // of a row's vectors; NULL: dgm_terms_fill
    dgm_status (*advance)(dgm_search *s, dgm_error *err); // one generation
    // Result `index` of a sentence into s->hypotheses; NULL: a path of one token a node.
    void (*trace)(dgm_search *s, const dgm_active *p, const dgm_ended *e, int index);
};

extern const dgm_search_ops *const dgm_search_table[]; // NULL at the end
extern const dgm_search_ops dgm_search_greedy, dgm_search_beam, dgm_search_cube,
    dgm_search_sample, dgm_search_double, dgm_search_mask;
extern const dgm_search_ops dgm_search_sample_pairs; // "sample" of models that write pairs

// ---- search_run.c ------------------------------------------------------------------------------

void dgm_active_leave(dgm_search *s, dgm_active *p); // scorers, vocabulary, slots; rows are dropped

// ---- generation.c ------------------------------------------------------------------------------

void dgm_rows_clear(dgm_search *s);
void dgm_rows_add(dgm_search *s, int active, int hypo);
// The same for a second step of a generation: the sentence's first rows stay where they are.
int dgm_rows_append(dgm_search *s, int active, int hypo);
// Rows of all sentences in their order: those to be ranked first.
void dgm_rows_collect(dgm_search *s);
void dgm_rows_collect_leading(dgm_search *s); // sentences that are still being fed their start
// Feeds the rows of a generation, all at once or max_rows at a time, and ranks those to be ranked.
dgm_status dgm_rows_run(dgm_search *s, dgm_error *err);
// Feeds rows first .. first + count - 1; s->rows.hidden is theirs afterwards.
dgm_status dgm_rows_step(dgm_search *s, int first, int count, dgm_error *err);
void dgm_terms_fill(dgm_search *s, int row); // what scorers add to a row
// Ranks the last step's hidden vectors: what all searches have in common (models, weights, words
// that are never chosen) is filled in here.
void dgm_rank_run(dgm_search *s, const dgm_rank *what);
// A sentence's candidates: `rows` vectors from `first` on of what the selection has looked at.
// begins: it is the first time, for the statistics.
const dgm_candidates *dgm_words_select(dgm_search *s, int active, dgm_mat seen, int first, int rows,
                                       bool begins);
// Adds the lists of a step's vectors, those of a sentence side by side, to the statistics of unions.
void dgm_union_count(dgm_search *s, const dgm_candidates *const *lists, int count);
void dgm_rows_retain(dgm_search *s); // the rows of all live hypotheses
// The same when it is needed: behind the next step, while the device works, or before somebody counts free rows.
void dgm_rows_settle(dgm_search *s);
// Sentences that are still being fed the start and the model's own prefix move on by one token.
bool dgm_active_leading(const dgm_search *s, const dgm_active *p);
// Before its minimum length a sentence may not end; one whose own limit is below that ends there.
bool dgm_active_early(const dgm_search *s, const dgm_active *p);
void dgm_active_lead(dgm_search *s, dgm_active *p);
// The whole generation of a search that expands every hypothesis by its own row: collect, step,
// rank, then `expand` for each sentence, which fills p->now anew or sets p->done; retain.
typedef void (*dgm_expand)(dgm_search *s, dgm_active *p);
dgm_status dgm_generation(dgm_search *s, dgm_expand expand, dgm_error *err);
// The end symbol behind a row's hypothesis: -inf where the scorers forbid it (a watched score does
// not say).
dgm_candidate dgm_row_end(const dgm_search *s, int row);

// ---- sample.c, coverage.c -----------------------------------------------------------------------

uint64_t dgm_sample_fingerprint(const dgm_search_request *r);
// A number from 0 to 1 for a lane's next word, or the one behind that.
double dgm_sample_uniform(const dgm_search *s, const dgm_active *p, int lane, int word);
// A step of a sentence's lanes, each by `one`, which keeps or ends its hypothesis.
typedef void (*dgm_sample_take)(dgm_search *s, dgm_active *p, int row, int lane);
void dgm_sample_expand(dgm_search *s, dgm_active *p, dgm_sample_take one);
dgm_status dgm_sample_check(const dgm_search_config *c, dgm_error *err);
int dgm_sample_candidates(const dgm_search_config *c);
// What is added to the score of a completed hypothesis whose last real token is `node`.
float dgm_coverage(const dgm_search *s, const dgm_active *p, int32_t node, bool finished);

// ---- mask_predict.c -----------------------------------------------------------------------------

int dgm_mask_tokens(const dgm_search_config *c); // of one call of the model, at least one translation

// ---- history.c ----------------------------------------------------------------------------------

dgm_status dgm_history_check(const dgm_search_config *c, dgm_error *err);
void dgm_history_lay_out(dgm_carve *c, dgm_search *s);
void dgm_history_start(dgm_search *s);                        // when memory is there
void dgm_history_terms(dgm_search *s, int row, dgm_terms *t); // adds to t
// Of some tokens: those that would complete an n-gram that is there, into an ascending list of `count`; all of them,
// ascending; what is added for each of these when it comes again.
int dgm_history_denied(const int32_t *path, int length, int n, int32_t *deny, int count);
int dgm_history_said(const int32_t *path, int length, int32_t *ids);
float dgm_history_cost(const dgm_search *s);
// Would two live hypotheses get the same terms?
bool dgm_history_alike(const dgm_search *s, const dgm_active *p, int a, int b);

// ---- double_rules.c -------------------------------------------------------------------------------

int dgm_pair_most(const dgm_search *s); // pairs of a row that are kept, where rules choose them
// double_walk.c: tokens that rank shall watch for a vector of a row that follows a lattice, at most DGM_OFFERS.
int dgm_pair_watch(const dgm_search *s, int vector, int32_t *tokens);
// Of a live hypothesis from both ends: the state of its constraints, terms that either half has met. Of any, with
// constraints or in a lattice: may it end as it is?
int32_t dgm_pair_state(const dgm_search *s, const dgm_active *p, int hypo);
bool dgm_pair_complete(const dgm_search *s, const dgm_active *p, int hypo);

// ---- rescore.c ----------------------------------------------------------------------------------

// A sentence that is done begins to walk its results; nothing to walk: it stays done.
dgm_status dgm_rescore_begin(dgm_search *s, dgm_active *p, dgm_error *err);
void dgm_rescore_collect(dgm_search *s, int active); // its rows of a generation
void dgm_rescore_lead(dgm_search *s, dgm_active *p); // after dgm_active_lead
int32_t dgm_rescore_watch(const dgm_search *s, const dgm_active *p, int hypo);
void dgm_rescore_take(dgm_search *s, dgm_active *p); // after rank

// ---- tree.c ------------------------------------------------------------------------------------

// What may follow a live hypothesis: a token, or a pair of them.
struct dgm_candidate {
    int hypo;   // in p->now: whose path it continues, and whose scorer states
    int row;    // of this generation: the decoder row that a hypothesis made from it starts with
    int column; // in the row's list of the best, from 0; k: not one of them
    int32_t token;
    int32_t second; // of a pair
    float first;    // sum with the first token of a pair alone
    float score;    // sum with all
    int32_t state;  // of constraints, behind a pair that goes on
    int32_t state_right; // from both ends: of the right words alone
    bool chatter;        // of a pair: the sentence is whole, and the model would end it
};

static inline bool dgm_candidate_ends(const dgm_search *s, const dgm_candidate *c)
{
    return c->token == s->eos || (s->pairs && c->second == s->eos);
}

// Another step would go beyond the sentence's maximum length: it only asks for ends.
static inline bool dgm_active_full(const dgm_search *s, const dgm_active *p)
{
    return p->tokens + s->vectors > p->max_length;
}

// ---- banks.c -----------------------------------------------------------------------------------

struct dgm_bank_entry {
    dgm_candidate c;
    float key; // by which candidates of different banks are compared
    int bank, missing;
    bool reserved, chatter;
};

void dgm_banks_lay_out(dgm_carve *c, dgm_search *s);
void dgm_banks_enter(dgm_search *s, int active); // a sentence that has constraints comes in
bool dgm_hypo_complete(const dgm_search *s, const dgm_active *p, int hypo); // may end
int dgm_hypo_bank(const dgm_search *s, const dgm_active *p, int hypo);
float dgm_hypo_debt(const dgm_search *s, const dgm_active *p, int hypo);
// Has a sentence of pairs hardly more room than all of its terms take?
bool dgm_banks_short(const dgm_active *p);
// Is there no room behind a pair that goes on for what it lacks?
bool dgm_banks_hopeless(const dgm_search *s, const dgm_active *p, const dgm_candidate *c);
void dgm_banks_terms(dgm_search *s, int row, dgm_terms *t); // what a row may not say
int dgm_banks_watch(dgm_search *s); // before rank: how many tokens it shall watch
void dgm_banks_read(dgm_search *s); // after rank
// What a ranked row offers, each with the sum that it makes; the number of a token among it, -1: it is not.
int dgm_banks_offers(const dgm_search *s, int row);
int32_t dgm_banks_offered(const dgm_search *s, int row, int i, float *score);
int dgm_banks_offer(const dgm_search *s, int row, int32_t token);
// Can a hypothesis still say what it lacks behind this token, or has it all where that is the end?
bool dgm_banks_completes(const dgm_search *s, const dgm_active *p, int hypo, int32_t token);

void dgm_active_reset(dgm_search *s, dgm_active *p); // one live hypothesis: the empty one
// The candidate becomes the last hypothesis of p->next.
void dgm_active_keep(dgm_search *s, dgm_active *p, const dgm_candidate *c);
// A hypothesis of p->now ends with the candidate; into the store.
void dgm_active_end(dgm_search *s, dgm_active *p, const dgm_candidate *c, bool finished);
// The same where the maximum length forces the end, for nothing.
void dgm_active_force(dgm_search *s, dgm_active *p, int hypo);
// A completed hypothesis into one of the sentence's stores; in `store` it counts as ended.
void dgm_active_store(dgm_active *p, dgm_store *store, const dgm_ended *e);
void dgm_active_spare(dgm_search *s, dgm_active *p, const dgm_candidate *c); // the second store
void dgm_active_swap(const dgm_search *s, dgm_active *p);                    // next becomes now
// Drops live hypotheses far behind the best (beam_width).
void dgm_active_prune(const dgm_search *s, dgm_active *p);
// Drops those that differ from the best more than p->settle tokens back.
void dgm_active_settle(const dgm_search *s, dgm_active *p);
// Real tokens of a hypothesis that ends with the candidate.
int dgm_whole_length(const dgm_search *s, const dgm_active *p, const dgm_candidate *c);
// Score by which a hypothesis of `length` tokens (end symbol counted) is ranked.
float dgm_final_score(const dgm_active *p, float sum, int length);
// What a completed hypothesis is divided by; `length` counts its end symbol.
int dgm_counted_length(const dgm_search *s, int length, bool finished);
// Of the model's first tokens behind the start symbol, those that the policy counts.
int dgm_counted_lead(const dgm_search *s);
// Result `index` of a sentence, with room for its words; a search's trace fills that and sets count.
dgm_hypothesis *dgm_result_room(dgm_search *s, const dgm_ended *e, int index, dgm_room *room);
// Into s->tokens: how the best result will begin (dgm_search_shared).
int dgm_active_shared(dgm_search *s, const dgm_active *p);
bool dgm_active_goes_on(const dgm_search *s, const dgm_active *p, int count,
                        bool (*fits)(const void *cookie, int32_t token), const void *cookie);
void dgm_active_report(dgm_search *s, dgm_active *p, dgm_search_sink sink, void *cookie);

// ---- finish.c: the policies, in the order of dgm_finish -----------------------------------------

// A sentence's candidates in falling order, drawn one by one. A search brings its own.
typedef struct dgm_merge dgm_merge;
struct dgm_merge {
    bool (*next)(dgm_merge *m, dgm_candidate *c); // false: no finite candidate is left
    dgm_search *s;
    const dgm_active *p;
    void *data;
    int at;
    // Where it draws from rows' lists: the row of each hypothesis, and what the hypothesis' sum is
    // away from the row's (NULL: nothing). NULL: it does not.
    const int32_t *lines;
    const float *behind;
};

static inline bool dgm_merge_next(dgm_merge *m, dgm_candidate *c)
{
    return m->next(m, c);
}

dgm_merge dgm_rows_merge(dgm_search *s, const dgm_active *p); // beam.c: every row's best
// banks.c: of a sentence with constraints, what the policy shall draw instead of m's candidates, all
// of which are looked at, in whatever order; else m.
dgm_merge dgm_banks_filter(dgm_search *s, const dgm_active *p, dgm_merge *m);

struct dgm_finish_ops {
    // One step: draws candidates, ends some, keeps some.
    void (*take)(dgm_search *s, dgm_active *p, dgm_merge *m);
    // How many it draws, ends and all; NULL: until the beam is full of candidates that go on.
    int (*places)(const dgm_search *s, const dgm_active *p);
    // After the step: is the search of this sentence over? p->now holds the new live ones.
    bool (*stop)(const dgm_search *s, const dgm_active *p);
    // The end symbol is forced at the maximum length, for nothing; else the model is asked for its
    // score in one more step.
    bool force_end;
    // Of that end only: it is none. The hypothesis is cut off in the step that chose its last word, and its
    // length counts that word last.
    bool endless;
    // Lengths count the model's own first tokens (the language of a translation), as those of transformers do,
    // for which they are chosen tokens like others.
    bool counts_lead;
    // The end symbol has no share of the first step, nor of those below the minimum length, as if it were not in the
    // vocabulary.
    bool never_empty;
    // Forced first tokens cost nothing: a sum is that of the words behind them.
    bool free_prefix;
    // The greatest length is the factor times the source's tokens, rounded up, and no token more.
    bool exact_factor;
    // Live rows that did not end themselves are ended at the maximum length.
    bool cut;
    // The end score of every live row is remembered, for a sentence that never finished.
    bool spare;
};

extern const dgm_finish_ops dgm_finish_table[DGM_FINISH_COUNT];

// Does a sentence's step look at its hand's ends?
static inline bool dgm_active_wants_ends(const dgm_search *s, const dgm_active *p)
{
    return s->finish->spare || dgm_active_full(s, p);
}

// What m offers; where the policy has it, in the first step without ends, and with what the rest gains by that, and
// forced tokens for nothing.
typedef struct dgm_words_only {
    dgm_merge *m;
    float gain;
} dgm_words_only;

dgm_merge dgm_first_words(dgm_search *s, const dgm_active *p, dgm_merge *m, dgm_words_only *room);

// Before rows are merged: where the policy has it, words gain what the end symbol loses that the minimum length denies.
void dgm_rows_deny_end(dgm_search *s, const dgm_active *p);

// A sentence's step by its policy; its hand's ends must be filled where they are wanted.
void dgm_active_expand(dgm_search *s, dgm_active *p, dgm_merge *m);

#endif
