// SPDX-License-Identifier: MIT
// Vocabularies of a model file: the format layer's description becomes the text layer's object.
//
// The two layers do not know each other's types; this file is the bridge. It also tells whether
// the members of an ensemble speak of the same tokens, and what is known of terms and the source words that they stand
// for: what the model says for them by itself, what it reads in their place, how often it may say a term.
//
//     The storm destroyed many roofs.    storm => Orkan
//     The Orkan destroyed many roofs.    is read, where the model does not say "Orkan" by itself
//
// Such a term is said as often as its source words stand there, unless something else may become it, too: a model that
// had to say it early, where nothing called for it, says it again in its own place ("Der Orkan hat viele Orkan").
#include <string.h>

#include "base/lower_bound.h"
#include "base/mem.h"
#include "engine/constrain.h"
#include "format/modelfile.h"
#include "format/shortlist.h"

// Views of a string array; *out belongs to the caller.
static dgm_status collect(dgm_gguf_strings strings, dgm_text **out, size_t *count, dgm_error *err)
{
    *out = NULL;
    *count = 0;
    if (strings.count == 0) return DGM_OK;
    dgm_text *list = dgm_calloc((size_t)strings.count, sizeof *list);
    if (!list) return dgm_no_memory(err);
    size_t n = 0;
    for (dgm_gguf_text s; dgm_gguf_strings_next(&strings, &s);)
        list[n++] = (dgm_text){s.data, s.size};
    *out = list;
    *count = n;
    return DGM_OK;
}

// The lists of a bpe vocabulary, borrowed from the file.
typedef struct bpe_lists {
    dgm_bpe_options options;
    dgm_text *merges, *protect, *normalizer;
} bpe_lists;

static dgm_status collect_bpe(const dgm_bpe_spec *spec, bpe_lists *l, dgm_error *err)
{
    const unsigned flags = spec->flags;
    static const dgm_bpe_style styles[] = {[DGM_SPEC_BPE_SUBWORD_NMT] = DGM_BPE_SUBWORD_NMT,
                                           [DGM_SPEC_BPE_BYTE_LEVEL] = DGM_BPE_BYTE_LEVEL,
                                           [DGM_SPEC_BPE_METASPACE] = DGM_BPE_METASPACE,
                                           [DGM_SPEC_BPE_JOINER] = DGM_BPE_JOINER,
                                           [DGM_SPEC_BPE_SPACER] = DGM_BPE_SPACER};
    l->options = (dgm_bpe_options){
        .style = styles[spec->style],
        .separator = dgm_text_of(spec->separator),
        .charsmap = spec->charsmap,
        .charsmap_size = spec->charsmap_size,
        .end_apart = flags & DGM_SPEC_BPE_END_APART,
        .restricted = flags & DGM_SPEC_BPE_RESTRICTED,
        .prefix_space = flags & DGM_SPEC_BPE_PREFIX_SPACE,
        .space_always = flags & DGM_SPEC_BPE_SPACE_ALWAYS,
        .whole_text = flags & DGM_SPEC_BPE_WHOLE_TEXT,
        .byte_fallback = flags & DGM_SPEC_BPE_BYTE_FALLBACK,
        .fuse_unknown = flags & DGM_SPEC_BPE_FUSE_UNKNOWN,
        .whole_words = flags & DGM_SPEC_BPE_WHOLE_WORDS,
    };
    DGM_TRY(collect(spec->merges, &l->merges, &l->options.merge_count, err));
    DGM_TRY(collect(spec->protect, &l->protect, &l->options.protect_count, err));
    DGM_TRY(collect(spec->normalizer, &l->normalizer, &l->options.normalize_count, err));
    l->options.merges = l->merges;
    l->options.protect = l->protect;
    l->options.normalize = l->normalizer;
    return DGM_OK;
}

dgm_status dgm_vocabulary_load(const dgm_gguf *file, dgm_side side, dgm_vocab **vocab, bool *shared,
                               dgm_error *err)
{
    *vocab = NULL;
    dgm_vocab_spec spec = {0};
    DGM_TRY(dgm_modelfile_vocab(file, side, &spec, err));
    if (shared) {
        *shared = spec.shared;
        if (spec.shared) return DGM_OK;
    }
    dgm_text *words = NULL, *extra = NULL;
    static const dgm_vocab_kind kinds[] = {[DGM_SPEC_SENTENCEPIECE] = DGM_VOCAB_SENTENCEPIECE,
                                           [DGM_SPEC_WORDS] = DGM_VOCAB_WORDS,
                                           [DGM_SPEC_BPE] = DGM_VOCAB_BPE};
    static const dgm_vocab_tokenizer tokenizers[] = {
        [DGM_SPEC_TOKENIZER_NONE] = DGM_TOKENIZER_NONE,
        [DGM_SPEC_TOKENIZER_MOSES] = DGM_TOKENIZER_MOSES,
        [DGM_SPEC_TOKENIZER_SACREMOSES] = DGM_TOKENIZER_SACREMOSES,
        [DGM_SPEC_TOKENIZER_CONSERVATIVE] = DGM_TOKENIZER_CONSERVATIVE,
        [DGM_SPEC_TOKENIZER_AGGRESSIVE] = DGM_TOKENIZER_AGGRESSIVE};
    bpe_lists lists = {0};
    dgm_vocab_source v = {
        .kind = kinds[spec.kind],
        .size = spec.size,
        .spm = spec.model,
        .spm_size = spec.model_size,
        .map = spec.map,
        .map_count = spec.map_count,
        .tokenizer = tokenizers[spec.tokenizer],
        .language = dgm_text_of(spec.language),
        .moses_options = spec.moses,
        .bpe = &lists.options,
        .control = spec.bpe.control,
        .control_count = spec.bpe.control_count,
        .eos = spec.eos,
        .unk = spec.unk,
        .pad = spec.pad,
        .bos = spec.bos,
        .drop_unk = spec.drop_unk,
    };
    dgm_status st = collect(spec.words, &words, &v.word_count, err);
    if (st == DGM_OK) st = collect(spec.extra, &extra, &v.extra_count, err);
    if (st == DGM_OK && spec.kind == DGM_SPEC_BPE) st = collect_bpe(&spec.bpe, &lists, err);
    v.words = words;
    v.extra = extra;
    if (st == DGM_OK) st = dgm_vocab_open(vocab, &v, err);
    dgm_free(words);
    dgm_free(extra);
    dgm_free(lists.merges);
    dgm_free(lists.protect);
    dgm_free(lists.normalizer);
    if (st != DGM_OK && st != DGM_ERR_MEMORY)
        dgm_error_prefix(err, "%s vocabulary", side == DGM_SOURCE ? "source" : "target");
    return st;
}

dgm_status dgm_vocabulary_same(const dgm_vocab *a, const dgm_vocab *b, const char *what,
                               dgm_error *err)
{
    int32_t size = dgm_vocab_size(a);
    DGM_FAIL_IF(size != dgm_vocab_size(b), err, DGM_ERR_UNSUPPORTED,
                "its %s vocabulary has %d tokens, the first model's %d: the models of an ensemble "
                "must share their vocabularies",
                what, (int)dgm_vocab_size(b), (int)size);
    DGM_FAIL_IF(dgm_vocab_eos(a) != dgm_vocab_eos(b), err, DGM_ERR_UNSUPPORTED,
                "its %s end symbol is token %d, the first model's %d: the models of an ensemble "
                "must share their vocabularies",
                what, (int)dgm_vocab_eos(b), (int)dgm_vocab_eos(a));
    for (int32_t i = 0; i < size; i++)
        DGM_FAIL_IF(!dgm_text_equal(dgm_vocab_piece(a, i), dgm_vocab_piece(b, i)), err,
                    DGM_ERR_UNSUPPORTED,
                    "token %d of its %s vocabulary differs from the first model's: the models of "
                    "an ensemble must share their vocabularies",
                    (int)i, what);
    return DGM_OK;
}

// ---- lines of tokens --------------------------------------------------------------------------

dgm_status dgm_vocabulary_ids(const dgm_vocab *v, const char *const *tokens, size_t count, int32_t **array,
                              size_t *used, size_t *cap, dgm_error *err)
{
    DGM_TRY(dgm_grow(array, cap, *used + count, sizeof **array, err));
    for (size_t i = 0; i < count; i++) {
        DGM_FAIL_IF(!tokens[i], err, DGM_ERR_ARGUMENT, "token %zu is NULL", i + 1);
        const int32_t id = dgm_vocab_id(v, dgm_text_of(tokens[i]));
        (*array)[(*used)++] = id < 0 ? dgm_vocab_unk(v) : id;
    }
    return DGM_OK;
}

static dgm_status add_prefix_tokens(const dgm_translator *t, dgm_encoded *out, dgm_piece_state *piece,
                                    const dgm_input *input, dgm_error *err)
{
    const size_t lead = (size_t)dgm_model_describe(t->members[0].model)->target_prefix_count;
    const size_t count = input->prefix_tokens ? input->prefix_token_count : 0;
    piece->lead = lead > 0 && count >= lead;
    piece->lead_at = out->token_count;
    DGM_FAIL_IF(lead > 0 && !piece->lead && t->direction[1] < 0, err, DGM_ERR_ARGUMENT,
                "the prefix tokens must begin with the language to translate into: the translator has none");
    if (count)
        DGM_TRY(dgm_vocabulary_ids(t->target, input->prefix_tokens, count, &out->tokens, &out->token_count,
                                   &out->token_cap, err));
    piece->prefix_at = piece->lead_at + (piece->lead ? lead : 0);
    piece->prefix_count = (int)(out->token_count - piece->prefix_at);
    DGM_FAIL_IF(piece->prefix_count > t->config.max_length, err, DGM_ERR_TEXT,
                "the forced prefix has %d tokens, the maximum length is %d", piece->prefix_count, t->config.max_length);
    return DGM_OK;
}

dgm_status dgm_tokens_line(const dgm_translator *t, dgm_encoded *out, dgm_line_state *line, const dgm_input *input,
                           dgm_error *err)
{
    const size_t count = input->token_count;
    DGM_FAIL_IF(input->evidence || input->lattice || input->prefix, err, DGM_ERR_ARGUMENT,
                "a line that comes as tokens has no evidence, lattice or prefix in text");
    DGM_FAIL_IF(count > (size_t)t->config.max_source, err, DGM_ERR_TEXT,
                "the line has %zu tokens, the limit is %d", count, t->config.max_source);
    memcpy(line->direction, t->direction, sizeof line->direction);
    DGM_TRY(dgm_restrict_line(t, line->direction, false, &line->clusters, err));
    if (count == 0) return DGM_OK;
    DGM_TRY(dgm_grow(&line->pieces.items, &line->pieces.cap, 1, sizeof *line->pieces.items, err));
    DGM_TRY(dgm_grow(&out->pieces, &out->piece_cap, out->piece_count + 1, sizeof *out->pieces, err));
    dgm_piece_state *piece = &out->pieces[out->piece_count];
    *piece = (dgm_piece_state){.line = line, .ids_at = out->token_count, .spans_at = out->span_count,
                               .count = (int)count, .text_count = (int)count};
    DGM_TRY(dgm_vocabulary_ids(t->source, input->tokens, count, &out->tokens, &out->token_count, &out->token_cap, err));
    DGM_TRY(add_prefix_tokens(t, out, piece, input, err));
    // Spans that links of words and replaced words would look at: such a line has no text.
    DGM_TRY(dgm_grow(&out->spans, &out->span_cap, out->span_count + count, sizeof *out->spans, err));
    memset(out->spans + out->span_count, 0, count * sizeof *out->spans);
    out->span_count += count;
    line->pieces.items[0] = (dgm_piece){0, 0, DGM_CUT_END};
    line->pieces.count = 1;
    line->source_tokens = count;
    line->left = 1;
    out->piece_count++;
    return DGM_OK;
}

// ---- what source tokens usually become ----------------------------------------------------------

// What source tokens usually become: the model's shortlist, and room for one of its lists.
struct dgm_usual {
    dgm_shortlist_view list; // all zero: the model has none
    int32_t *row;            // [longest] guarded by the lock
};

void dgm_usual_close(struct dgm_usual **u)
{
    if (!*u) return;
    dgm_shortlist_view_close(&(*u)->list);
    dgm_free((*u)->row);
    dgm_free(*u);
    *u = NULL;
}

dgm_status dgm_usual_open(struct dgm_usual **out, const dgm_gguf *file, dgm_error *err)
{
    struct dgm_usual *u = *out = dgm_calloc(1, sizeof *u);
    if (!u) return dgm_no_memory(err);
    dgm_status st = dgm_shortlist_present(file) ? dgm_shortlist_view_open(&u->list, file, err) : DGM_OK;
    if (st == DGM_OK && !(u->row = dgm_malloc((size_t)(u->list.longest + 1) * sizeof *u->row))) st = dgm_no_memory(err);
    if (st != DGM_OK) dgm_usual_close(out);
    return st;
}

bool dgm_usual_known(const struct dgm_usual *u)
{
    return u->list.sources > 0;
}

bool dgm_usual_becomes(const struct dgm_usual *u, const dgm_tokens *source, const dgm_tokens *target)
{
    for (size_t i = 0; u->list.sources && i < target->count; i++) {
        bool found = dgm_holds_id(u->list.frequent, u->list.frequent_count, target->ids[i]);
        for (size_t k = 0; k < source->count && !found; k++) {
            const int n = dgm_shortlist_view_row(&u->list, source->ids[k], u->row);
            found = dgm_holds_id(u->row, n, target->ids[i]) || (u->list.copy && source->ids[k] == target->ids[i]);
        }
        if (!found) return false;
    }
    return true;
}

// Has the model a shortlist, which knows what it says by itself?
static dgm_status is_known(dgm_demander *d, bool *known, dgm_error *err)
{
    dgm_translator *mine = (dgm_translator *)(uintptr_t)d->t; // the lock is not part of the value
    dgm_status st = DGM_OK;
    pthread_mutex_lock(&mine->lock);
    if (!mine->usual) st = dgm_usual_open(&mine->usual, d->t->members[0].file, err);
    *known = st == DGM_OK && dgm_usual_known(mine->usual);
    pthread_mutex_unlock(&mine->lock);
    return st;
}

// Does the model say one of a term's variants for some source tokens, as far as its shortlist knows?
static dgm_status may_become(dgm_demander *d, const dgm_tokens *source, const dgm_want *w, bool *becomes,
                             dgm_error *err)
{
    dgm_translator *mine = (dgm_translator *)(uintptr_t)d->t; // the lock is not part of the value
    *becomes = false;
    for (size_t i = 0; i < dgm_want_variants(d, w) && !*becomes; i++) {
        bool fits;
        const dgm_status st = dgm_demander_spell(d, dgm_want_variant(d, w, i), &fits, err);
        if (st != DGM_OK || !fits) return st;
        pthread_mutex_lock(&mine->lock);
        *becomes = dgm_usual_becomes(mine->usual, source, &d->tokens);
        pthread_mutex_unlock(&mine->lock);
    }
    return DGM_OK;
}

// So, of the words that a term stands for. Where nobody knows, d->unlisted.
static dgm_status is_usual(dgm_demander *d, dgm_text words, const dgm_want *w, bool *usual, dgm_error *err)
{
    bool known;
    DGM_TRY(is_known(d, &known, err));
    d->unlisted = *usual = !known;
    if (!known) return DGM_OK;
    DGM_TRY(dgm_vocab_encode(d->t->source, words, &d->words, err));
    return may_become(d, &d->words, w, usual, err);
}

// ---- terms in the source -----------------------------------------------------------------------

// A term's first variant that both vocabularies spell, in the place of its source words. Overlapping ones give way
// to those before them.
static dgm_status add_place(dgm_demander *d, dgm_text text, size_t begin, size_t end, const dgm_want *w, dgm_error *err)
{
    size_t at = d->place_count, i = 0;
    bool fits = false, usual;
    for (; i < dgm_want_variants(d, w) && !fits; i++) {
        DGM_TRY(dgm_demander_spell(d, dgm_want_variant(d, w, i), &fits, err));
        if (fits) DGM_TRY(dgm_demander_spell_by(d, d->t->source, dgm_want_variant(d, w, i), &fits, err));
    }
    if (!fits) return DGM_OK;
    for (size_t k = 0; k < d->place_count; k++)
        if (begin < d->places[k].end && end > d->places[k].begin) return DGM_OK;
    DGM_TRY(dgm_grow(&d->places, &d->place_cap, d->place_count + 1, sizeof *d->places, err));
    for (; at > 0 && d->places[at - 1].begin > begin; at--) d->places[at] = d->places[at - 1];
    d->places[at] = (dgm_term_place){begin, end, dgm_want_variant(d, w, i - 1)};
    d->place_count++;
    DGM_TRY(is_usual(d, (dgm_text){text.data + begin, end - begin}, w, &usual, err));
    d->unusual = d->unusual || !usual;
    return DGM_OK;
}

static dgm_status find_places(dgm_demander *d, dgm_text text, dgm_error *err)
{
    d->place_count = 0;
    d->unusual = false;
    for (size_t i = 0; i < d->demands.count; i++) {
        const dgm_demand *x = &d->demands.items[i];
        const dgm_want w = {.entry = -1, .first = x->first, .count = x->count};
        const dgm_text source = dgm_demands_text(&d->demands, x->source);
        if (x->kind != DGM_DEMAND_TERM || source.size == 0) continue;
        for (size_t at = 0, size; dgm_term_find(text, source, &at); at += size) {
            size = dgm_term_at(text, at, source);
            DGM_TRY(add_place(d, text, at, at + size, &w, err));
        }
    }
    dgm_glossary_hit hit = {0};
    while (d->glossary && dgm_glossary_find(d->glossary, text, &hit)) {
        const dgm_want w = {.entry = hit.entry};
        if (!dgm_demander_names(d, dgm_glossary_source(d->glossary, hit.entry)))
            DGM_TRY(add_place(d, text, hit.begin, hit.end, &w, err));
    }
    return DGM_OK;
}

dgm_status dgm_demander_switch(dgm_demander *d, dgm_text written, dgm_text part, dgm_spliced *out, bool *switched,
                               dgm_error *err)
{
    *switched = false;
    if (!d->active || (!d->glossary && d->demands.count == 0)) return DGM_OK;
    DGM_TRY(find_places(d, written, err));
    dgm_spliced_clear(out);
    for (size_t i = 0; i < d->place_count; i++) {
        const dgm_term_place *x = &d->places[i];
        DGM_TRY(dgm_splice_add(out, part, x->begin, x->end, x->with, err));
    }
    *switched = d->place_count > 0;
    return *switched ? dgm_splice_end(out, part, err) : DGM_OK;
}

// ---- limits --------------------------------------------------------------------------------------

static int times_of(dgm_text text, dgm_text words)
{
    int times = 0;
    for (size_t at = 0; dgm_term_find(text, words, &at); at += dgm_term_at(text, at, words)) times++;
    return times;
}

// The tokens of a text without those of some words, into d->around.
static dgm_status look_around(dgm_demander *d, dgm_text text, dgm_text words, dgm_error *err)
{
    dgm_tokens *a = &d->around;
    DGM_TRY(dgm_vocab_encode(d->t->source, text, a, err));
    for (size_t at = 0, size; dgm_term_find(text, words, &at); at += size) {
        size_t kept = 0;
        size = dgm_term_at(text, at, words);
        for (size_t i = 0; i < a->count; i++) {
            if (a->spans[i].begin < at + size && a->spans[i].end > at) continue;
            a->ids[kept] = a->ids[i];
            a->spans[kept++] = a->spans[i];
        }
        a->count = kept;
    }
    return DGM_OK;
}

dgm_status dgm_want_limit(dgm_demander *d, dgm_text text, dgm_text source, dgm_want *w, dgm_error *err)
{
    bool known, elsewhere = false;
    w->most = 0;
    if (d->inside_lattice || d->token_prefix) return DGM_OK;
    for (size_t i = 0, at = 0; i < dgm_want_variants(d, w); i++, at = 0)
        if (dgm_term_find(d->prefix, dgm_want_variant(d, w, i), &at)) return DGM_OK;
    DGM_TRY(is_known(d, &known, err));
    if (known) DGM_TRY(look_around(d, text, source, err));
    if (known) DGM_TRY(may_become(d, &d->around, w, &elsewhere, err));
    if (!elsewhere) w->most = times_of(text, source);
    return DGM_OK;
}
