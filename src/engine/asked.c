// SPDX-License-Identifier: MIT
// What a translator was asked for, as the table of features wants to know it (search/features.h).
//
// The table is asked three times: with the settings alone, so that a mistake costs no loading; when
// models, search and vocabularies are known, which is the last word on a translator; and for a line
// that brings a feature of its own (a prefix, constraints, a lattice). What is left becomes the
// search's configuration.
#include <string.h>

#include "engine/engine_private.h"
#include "engine/settings_table.h"

static bool is(const char *value, const char *name)
{
    return value && strcmp(value, name) == 0;
}

dgm_asked dgm_asked_settings(const dgm_settings *s)
{
    const dgm_asked a = {
        .search = s->search,
        .writing = -1,
        .facts = DGM_FACTS_ALL,
        .beam = s->beam,
        .nbest = s->nbest,
        .min_length = s->min_length,
        .precompute = s->precompute,
        .cube = s->cube != NULL,
        .cube_naive = is(s->cube, "naive"),
        .cube_key = s->cube_key != NULL,
        .cube_key_none = is(s->cube_key, "none"),
        .approximate = s->approximate_scores != 0,
        .clusters = is(s->shortlist, "cluster") || is(s->shortlist, "union") ||
                    is(s->shortlist, "intersect"),
        .shortlist = s->shortlist && !is(s->shortlist, "all"),
        .source_tokens_off = is(s->source_tokens, "off"),
        .softmax_off = is(s->softmax, "off"),
        .alignment = s->alignment != DGM_ALIGN_NONE,
        .replace_unknown = s->unknown == DGM_UNKNOWN_REPLACE || s->unknown == DGM_UNKNOWN_COPY ||
                           (s->unknown == DGM_UNKNOWN_MODEL && s->dictionary),
        .plain_attention = s->plain_attention != 0,
        .separate_states = s->separate_states != 0,
        .static_scales = s->static_scales > 0,
        .beam_width = s->beam_width,
        .diversity = s->diversity,
        .coverage = s->coverage_penalty,
        .repetition = s->repetition_penalty,
        .no_repeat = s->no_repeat_ngram,
        .max_rows = s->max_rows,
        .top_k = s->top_k,
        .top_p = s->top_p,
        .temperature = s->temperature,
        .seed = s->seed,
        .pairs = s->pairs != NULL,
        .iterations = s->iterations,
        .lengths = s->lengths,
        .lmbr = s->evidence != 0,
        .phrases = dgm_wants_phrases(s),
        .lattice = s->lattices != 0,
        .lattice_weight = s->lattice_weight,
        .terms = s->terms[0] != NULL,
        .keep = s->keep && s->keep[0],
        .directions = s->direction_later != 0,
    };
    return a;
}

// Fills t->wanted and has the table judge it.
static dgm_status ask_models(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    dgm_asked *a = &t->wanted;
    *a = dgm_asked_settings(s);
    a->search = t->config.search;
    a->models = t->member_count;
    a->writing = (int)dgm_writing_of(dgm_model_describe(t->members[0].model));
    if (dgm_vocab_get_kind(t->source) != DGM_VOCAB_WORDS ||
        dgm_vocab_get_kind(t->target) != DGM_VOCAB_WORDS)
        a->facts &= ~(unsigned)DGM_FACT_WORDS;
    for (int i = 0; i < t->member_count; i++) {
        const dgm_model_info *m = dgm_model_describe(t->members[i].model);
        if ((int)dgm_writing_of(m) != a->writing) a->facts &= ~(unsigned)DGM_FACT_ALIKE;
        if (!m->recurrent) a->facts &= ~(unsigned)DGM_FACT_RECURRENT;
        if (!m->self_normalised) a->facts &= ~(unsigned)DGM_FACT_SELF_NORMALISED;
        const dgm_precision p = t->members[i].precision;
        if (!m->scaled || (p != DGM_PRECISION_I8 && p != DGM_PRECISION_I16))
            a->facts &= ~(unsigned)DGM_FACT_SCALED;
    }
    return dgm_asked_check(a, err);
}

dgm_status dgm_asked_line(const dgm_translator *t, const dgm_asked *line, dgm_error *err)
{
    dgm_asked a = t->wanted;
    a.prefix = line->prefix;
    a.end = line->end;
    a.constraints = line->constraints;
    a.lattice = line->lattice;
    a.directions |= line->directions;
    if (!a.lattice) a.lattice_weight = 0.0f;
    return dgm_asked_check(&a, err);
}

// ---- the search --------------------------------------------------------------------------------

enum { ITERATIONS = 10, LENGTHS = 5 };

// The search that a model needs; NULL: any of one word a step.
static const char *needed(const dgm_model_info *m)
{
    return m->mask >= 0 ? "mask-predict" : m->tokens_per_step == 2 ? "double" : NULL;
}

// The model decides: search "auto" takes what it needs, and another one is refused.
dgm_status dgm_search_resolve(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    dgm_search_config *c = &t->config;
    const dgm_model_info *m = dgm_model_describe(t->members[0].model);
    const int asked = dgm_search_find(s->search);
    const char *search = asked >= 0 ? dgm_search_rows[asked].name : needed(m);
    c->beam = s->beam                ? s->beam
              : is(search, "greedy") ? 1
              : is(search, "sample") ? s->nbest
                                     : m->defaults.beam;
    // So many results need so many hypotheses; a beam that was asked for stays as it is.
    if (!s->beam && !is(search, "greedy") && c->beam < s->nbest) c->beam = s->nbest;
    DGM_FAIL_IF(c->beam > DGM_BEAM_MAX, err, DGM_ERR_UNSUPPORTED,
                "the model file asks for a beam of %d; the most is %d", c->beam, DGM_BEAM_MAX);
    c->search = search ? search : c->beam == 1 ? "greedy" : "beam";
    DGM_TRY(ask_models(t, s, err));
    c->pairs = m->tokens_per_step == 2 && is(c->search, "sample");
    c->double_exact = is(c->search, "double") && is(s->pairs, "exact");
    c->iterations = s->iterations ? s->iterations : ITERATIONS;
    c->refine_tokens = dgm_backend_properties(t->backend)->encode_tokens;
    if (is(c->search, "mask-predict"))
        c->beam = s->lengths ? s->lengths : s->nbest > LENGTHS ? s->nbest : LENGTHS;
    return DGM_OK;
}

void dgm_decoding_resolve(dgm_translator *t, const dgm_settings *s)
{
    t->config.beam_width = s->beam_width;
    t->config.max_rows = s->max_rows;
    t->config.repetition = s->repetition_penalty;
    t->config.no_repeat = s->no_repeat_ngram;
    t->config.diversity = s->diversity;
    t->config.coverage = s->coverage_penalty;
    t->config.alignment |= s->coverage_penalty > 0.0f;
    t->config.temperature = s->temperature;
    t->config.top_p = s->top_p;
    t->config.top_k = s->top_k;
    t->config.seed = s->seed;
    t->config.count_unions = s->count_unions != 0;
    t->time_devices = s->time_devices != 0;
    t->lattices = s->lattices != 0;
    t->lattice_weight = s->lattice_weight;
}
