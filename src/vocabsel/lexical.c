// SPDX-License-Identifier: MIT
// Candidates from a lexical shortlist: for a sentence the union of the lists of its source tokens,
// the always allowed tokens, EOS and UNK, what the sentence needs (a forced prefix, the words of its
// evidence), and with a shared vocabulary the source tokens themselves (names and numbers are
// copied). One list per sentence, so that a translation does not depend on its neighbours; found
// once, when the sentence enters, and so are its columns of the output layers.
//
// The union is a set of bits over the target vocabulary, read off in ascending order. The bits of
// what is always allowed are prepared once. All memory is taken when the selection is opened.
#include <string.h>

#include "backend/device.h"
#include "base/mem.h"
#include "format/modelfile.h"
#include "format/shortlist.h"
#include "vocabsel/vocabsel.h"

typedef struct lexical {
    dgm_shortlist_view list;
    uint64_t *always, *never; // [words]
    uint64_t *bits;           // [sentences, words]: the candidates
    size_t words;
    int32_t *row;               // [longest]
    dgm_candidates *candidates; // [sentences]
    int32_t *ids;               // [sentences, room]
    int room;
    dgm_vocabsel_limits limits;
    bool copies;             // source tokens are candidates
    dgm_candidates *more;    // [rows]: continuations
    int32_t *more_ids;       // [rows, next_longest]
    dgm_exec *exec;          // NULL: nothing is gathered
    dgm_gathered **gathered; // [sentences, parts]
    int parts, gather_room;
} lexical;

static void set_bit(uint64_t *bits, int32_t id)
{
    bits[id >> 6] |= (uint64_t)1 << (id & 63);
}

static int lowest_bit(uint64_t v)
{
    return __builtin_ctzll(v);
}

static dgm_status check(const lexical *x, int active, const dgm_vocabsel_sentence *s,
                        dgm_error *err)
{
    DGM_FAIL_IF(active < 0 || active >= x->limits.sentences || s->source_count < 0 ||
                    s->source_count > x->limits.max_source || s->needed_count < 0 ||
                    s->needed_count > x->limits.max_needed,
                err, DGM_ERR_ARGUMENT,
                "shortlist: sentence %d, %d source or %d needed tokens are out of range", active,
                s->source_count, s->needed_count);
    for (int i = 0; i < s->source_count; i++)
        DGM_FAIL_IF(s->source[i] < 0 || s->source[i] >= x->list.sources, err, DGM_ERR_ARGUMENT,
                    "shortlist: source token %d is not in the vocabulary", (int)s->source[i]);
    for (int i = 0; i < s->needed_count; i++)
        DGM_FAIL_IF(s->needed[i] < 0 || s->needed[i] >= x->list.targets, err, DGM_ERR_ARGUMENT,
                    "shortlist: target token %d is not in the vocabulary", (int)s->needed[i]);
    DGM_FAIL_IF(s->evidence_count > 0 && !x->limits.evidence, err, DGM_ERR_ARGUMENT,
                "shortlist: there is no room for the words of evidence");
    for (int i = 0; i < s->evidence_count; i++)
        DGM_FAIL_IF(s->evidence[i] < 0 || s->evidence[i] >= x->list.targets, err, DGM_ERR_ARGUMENT,
                    "shortlist: token %d of the evidence is not in the vocabulary",
                    (int)s->evidence[i]);
    DGM_FAIL_IF(s->allowed_count > 0 && !x->limits.evidence, err, DGM_ERR_ARGUMENT,
                "shortlist: there is no room for the words of a lattice");
    for (int i = 0; i < s->allowed_count; i++)
        DGM_FAIL_IF(s->allowed[i] < 0 || s->allowed[i] >= x->list.targets, err, DGM_ERR_ARGUMENT,
                    "shortlist: token %d of a lattice is not in the vocabulary",
                    (int)s->allowed[i]);
    return DGM_OK;
}

static void gather(lexical *x, int active)
{
    dgm_candidates *c = &x->candidates[active];
    if (!x->exec || c->count > x->gather_room) return;
    dgm_gathered **blocks = x->gathered + (size_t)active * (size_t)x->parts;
    for (int i = 0; i < x->parts; i++) dgm_op_gather_columns(x->exec, blocks[i], c->ids, c->count);
    c->gathered = blocks;
}

static dgm_status admit(dgm_vocabsel *v, int active, const dgm_vocabsel_sentence *s, dgm_error *err)
{
    lexical *x = v->data;
    DGM_TRY(check(x, active, s, err));
    uint64_t *bits = x->bits + (size_t)active * x->words;
    memcpy(bits, x->always, x->words * sizeof *bits);
    for (int i = 0; i < s->source_count; i++) {
        int n = dgm_shortlist_view_row(&x->list, s->source[i], x->row);
        for (int k = 0; k < n; k++) set_bit(bits, x->row[k]);
        if (x->copies) set_bit(bits, s->source[i]);
    }
    for (int i = 0; i < s->needed_count; i++) set_bit(bits, s->needed[i]);
    for (int i = 0; i < s->evidence_count; i++) set_bit(bits, s->evidence[i]);
    for (int i = 0; i < s->allowed_count; i++) set_bit(bits, s->allowed[i]);
    int32_t *ids = x->ids + (size_t)active * (size_t)x->room;
    int n = 0;
    for (size_t w = 0; w < x->words; w++)
        for (uint64_t left = bits[w] & ~x->never[w]; left; left &= left - 1)
            ids[n++] = (int32_t)(w * 64) + lowest_bit(left);
    x->candidates[active] = (dgm_candidates){.ids = ids, .count = n};
    gather(x, active);
    return DGM_OK;
}

static const dgm_candidates *select_lexical(dgm_vocabsel *v, int active, int first, dgm_mat hidden)
{
    (void)first, (void)hidden;
    const lexical *x = v->data;
    return &x->candidates[active];
}

static bool has_bit(const uint64_t *bits, int32_t id)
{
    return bits[id >> 6] >> (id & 63) & 1;
}

static const dgm_candidates *more(dgm_vocabsel *v, int active, int row, int32_t last)
{
    lexical *x = v->data;
    if (!x->list.next || row >= x->limits.rows || last < 0 || last >= x->list.targets) return NULL;
    const uint64_t *bits = x->bits + (size_t)active * x->words;
    int32_t *ids = x->more_ids + (size_t)row * (size_t)x->list.next_longest;
    int n = 0, count = dgm_shortlist_view_next(&x->list, last, ids);
    for (int i = 0; i < count; i++)
        if (!has_bit(bits, ids[i]) && !has_bit(x->never, ids[i])) ids[n++] = ids[i];
    x->more[row] = (dgm_candidates){.ids = ids, .count = n};
    return n ? &x->more[row] : NULL;
}

static void leave(dgm_vocabsel *v, int active)
{
    lexical *x = v->data;
    x->candidates[active] = (dgm_candidates){0};
}

static void close_lexical(dgm_vocabsel *v)
{
    lexical *x = v->data;
    if (!x) return;
    dgm_shortlist_view_close(&x->list);
    dgm_free(x->always);
    dgm_free(x->bits);
    dgm_free(x->never);
    dgm_free(x->row);
    dgm_free(x->candidates);
    dgm_free(x->ids);
    dgm_free(x->gathered);
    dgm_free(x->more);
    dgm_free(x->more_ids);
    dgm_free(x);
    v->data = NULL;
}

static const dgm_vocabsel_ops ops = {.name = "lexical",
                                     .admit = admit,
                                     .select = select_lexical,
                                     .more = more,
                                     .leave = leave,
                                     .close = close_lexical};

static dgm_status prepare(lexical *x, const dgm_gguf *file, dgm_error *err)
{
    DGM_TRY(dgm_shortlist_view_open(&x->list, file, err));
    dgm_vocab_spec target = {0};
    DGM_TRY(dgm_modelfile_vocab(file, DGM_TARGET, &target, err));
    const dgm_shortlist_view *list = &x->list;
    x->copies = list->copy && !x->limits.no_source;
    x->words = ((size_t)list->targets + 63) / 64;
    // The longest union there can be; never more than the vocabulary.
    uint64_t room = (uint64_t)x->limits.max_source * (uint64_t)(list->longest + 1) +
                    (uint64_t)list->frequent_count + (uint64_t)x->limits.max_needed + 2;
    x->room = room < (uint64_t)list->targets && !x->limits.evidence ? (int)room : list->targets;
    x->always = dgm_calloc(x->words, sizeof *x->always);
    x->never = dgm_calloc(x->words, sizeof *x->never);
    x->bits = dgm_malloc((size_t)x->limits.sentences * x->words * sizeof *x->bits);
    x->row = dgm_malloc((size_t)list->longest * sizeof *x->row);
    x->candidates = dgm_calloc((size_t)x->limits.sentences, sizeof *x->candidates);
    x->ids = dgm_malloc((size_t)x->limits.sentences * (size_t)x->room * sizeof *x->ids);
    const size_t rows = (size_t)x->limits.rows;
    x->more = dgm_calloc(rows, sizeof *x->more);
    x->more_ids = dgm_malloc(rows * (size_t)list->next_longest * sizeof *x->more_ids);
    if (!x->always || !x->never || !x->bits || !x->row || !x->candidates || !x->ids || !x->more ||
        !x->more_ids)
        return dgm_no_memory(err);
    for (int i = 0; i < list->frequent_count; i++) set_bit(x->always, list->frequent[i]);
    if (target.unk >= 0) set_bit(x->always, target.unk);
    const int end = dgm_modelfile_end(&target);
    if (end >= 0) set_bit(x->always, end);
    for (size_t i = 0; i < target.never_count; i++)
        if (target.never[i] != end) set_bit(x->never, target.never[i]);
    return DGM_OK;
}

dgm_status dgm_vocabsel_lexical_open(dgm_vocabsel *v, const dgm_gguf *file,
                                     const dgm_vocabsel_limits *limits, dgm_error *err)
{
    *v = (dgm_vocabsel){.ops = &ops, .data = NULL};
    DGM_FAIL_IF(limits->sentences < 1 || limits->max_source < 1 || limits->max_needed < 0 ||
                    limits->rows < 0,
                err, DGM_ERR_ARGUMENT, "shortlist: %d sentences of %d and %d tokens",
                limits->sentences, limits->max_source, limits->max_needed);
    DGM_FAIL_IF(!dgm_shortlist_present(file), err, DGM_ERR_UNSUPPORTED,
                "the model has no shortlist (make one with 'dragoman shortlist')");
    lexical *x = dgm_calloc(1, sizeof *x);
    if (!x) return dgm_no_memory(err);
    v->data = x;
    x->limits = *limits;
    dgm_status st = prepare(x, file, err);
    if (st != DGM_OK) close_lexical(v);
    return st;
}

dgm_bytes dgm_vocabsel_lexical_bytes(const dgm_backend *b, const dgm_linear *out, int sentences)
{
    const int most = dgm_backend_properties(b)->gather_max, all = dgm_linear_rows(out);
    return dgm_bytes_add(dgm_gathered_bytes(b, out, most < all ? most : all, sentences),
                         dgm_rank_more_bytes(b, out));
}

dgm_status dgm_vocabsel_lexical_gather(dgm_vocabsel *v, dgm_exec *exec,
                                       const dgm_linear *const *out, int count, dgm_error *err)
{
    lexical *x = v->data;
    const size_t sentences = (size_t)x->limits.sentences, parts = (size_t)count;
    DGM_FAIL_IF(count < 1 || x->gathered, err, DGM_ERR_ARGUMENT,
                "shortlist: %d layers to gather from", count);
    for (int i = 0; i < count; i++)
        DGM_FAIL_IF(dgm_linear_rows(out[i]) != x->list.targets, err, DGM_ERR_ARGUMENT,
                    "shortlist: an output layer of %d tokens for a vocabulary of %d",
                    dgm_linear_rows(out[i]), x->list.targets);
    x->gathered = dgm_calloc(sentences * parts, sizeof(dgm_gathered *));
    if (!x->gathered) return dgm_no_memory(err);
    x->parts = count;
    const int most = dgm_backend_properties(dgm_exec_backend(exec))->gather_max;
    x->gather_room = x->room < most ? x->room : most;
    for (size_t i = 0; i < sentences * parts; i++) {
        x->gathered[i] = dgm_gathered_open(exec, out[i % parts], x->gather_room);
        DGM_FAIL_IF(!x->gathered[i], err, DGM_ERR_MEMORY,
                    "the workspace is too small for the candidates of %d sentences",
                    x->limits.sentences);
    }
    x->exec = exec;
    return DGM_OK;
}
