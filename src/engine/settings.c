// SPDX-License-Identifier: MIT
// Settings of a translator: what a caller gave, checked (settings_table.h), and the values that
// follow from the model.
//
// Precedence: what the caller set, then what the model file says, then the limits of the model
// (learned positions). A number that the caller set and the model cannot do is an error with a
// sentence; a default that it cannot do is lowered silently.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/threads.h"
#include "engine/engine_private.h"
#include "engine/settings_table.h"
#include "format/modelfile.h"

enum { MAX_TOKENS = 65536 };

static const char *const cube_names[] = {"accelerated", "naive", NULL};
static const char *const softmax_names[] = {"on", "off", "force-off", NULL};
static const char *const mix_names[] = {"log-linear", "arithmetic", NULL};

void dgm_settings_init(dgm_settings *s, size_t size)
{
    const dgm_settings own = dgm_settings_usual();
    if (s) dgm_sized_give(s, size, &own, sizeof own);
}

dgm_status dgm_settings_take(const dgm_settings *given, dgm_settings *own, dgm_error *err)
{
    *own = dgm_settings_usual();
    if (!given) return DGM_OK;
    DGM_TRY(dgm_sized_take(own, sizeof *own, given, "dgm_settings", "dgm_settings_default", err));
    dgm_settings_canonical(own);
    return DGM_OK;
}

// Index of value in names; NULL, or what is not there: `absent`.
static int find_name(const char *value, const char *const *names, int absent)
{
    for (int i = 0; value && names[i]; i++)
        if (strcmp(value, names[i]) == 0) return i;
    return absent;
}

// "token", "none" or "state:EPS".
static dgm_status parse_cube_key(const char *text, dgm_cube_key *key, float *distance,
                                 dgm_error *err)
{
    *key = DGM_CUBE_TOKEN;
    if (!text || strcmp(text, "token") == 0) return DGM_OK;
    *key = DGM_CUBE_NONE;
    if (strcmp(text, "none") == 0) return DGM_OK;
    *key = DGM_CUBE_STATE;
    dgm_text number = dgm_text_of(text);
    DGM_FAIL_IF(!dgm_field_skip(&number, "state:") || !dgm_number_f32(number, distance) ||
                    !(*distance >= 0.0f && *distance <= 1e6f),
                err, DGM_ERR_ARGUMENT,
                "cube key must be token, none, or state:EPS with EPS of 0 to 1e+06, not '%.80s'",
                text);
    return DGM_OK;
}

static dgm_status resolve_cube(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    dgm_search_config *c = &t->config;
    c->cube_exact = find_name(s->cube, cube_names, 0) == 1;
    DGM_TRY(parse_cube_key(s->cube_key, &c->cube_key, &c->cube_distance, err));
    t->approximate = strcmp(c->search, "cube") == 0 && !c->cube_exact && c->cube_key != DGM_CUBE_NONE;
    c->rescore = t->approximate && s->exact_scores && !s->approximate_scores;
    if (c->rescore) t->approximate = false;
    c->hidden = 0;
    for (int i = 0; i < t->member_count; i++)
        c->hidden += dgm_model_describe(t->members[i].model)->hidden;
    return DGM_OK;
}

dgm_status dgm_settings_check(const dgm_settings *s, int *precision, dgm_error *err)
{
    dgm_cube_key key;
    float distance;
    DGM_TRY(dgm_settings_check_values(s, err));
    DGM_TRY(parse_cube_key(s->cube_key, &key, &distance, err));
    *precision = find_name(s->precision, dgm_precision_names, -1);
    DGM_TRY(dgm_lmbr_check(s, err));
    const dgm_asked asked = dgm_asked_settings(s);
    return dgm_asked_check(&asked, err);
}

// Smallest of the members' limits: positions of the encoder and of the decoder.
static void model_limits(const dgm_translator *t, int *source, int *target)
{
    *source = *target = MAX_TOKENS;
    for (int i = 0; i < t->member_count; i++) {
        const dgm_model_info *m = dgm_model_describe(t->members[i].model);
        if (m->max_source < *source) *source = m->max_source;
        if (m->max_target < *target) *target = m->max_target;
    }
}

// How many ids of every source are not text: language tokens and the end symbol.
static int source_overhead(const dgm_model_info *m)
{
    return m->source_prefix_count + m->source_suffix_count + (m->append_eos ? 1 : 0);
}

static dgm_status resolve_lengths(dgm_translator *t, const dgm_settings *s,
                                  const dgm_decode_spec *d, dgm_error *err)
{
    const dgm_model_info *m = dgm_model_describe(t->members[0].model);
    int most_source = 0, most_target = 0;
    model_limits(t, &most_source, &most_target);
    // A hypothesis of n tokens takes n + 1 decoder positions: the start and the tokens; the model's
    // own prefix comes on top.
    int64_t positions = ((int64_t)most_target - 1) * m->tokens_per_step;
    int most_length =
        (int)(positions < MAX_TOKENS ? positions : MAX_TOKENS) - m->target_prefix_count;
    DGM_FAIL_IF(s->max_source > most_source, err, DGM_ERR_ARGUMENT,
                "maximum source length must be at most the model's %d positions, not %d",
                most_source, (int)s->max_source);
    DGM_FAIL_IF(s->max_length > most_length, err, DGM_ERR_ARGUMENT,
                "maximum length must be at most %d, which the model's %d positions allow, not %d",
                most_length, most_target, (int)s->max_length);
    t->info.longest = most_length;
    int source = s->max_source ? s->max_source : d->max_source;
    int length = s->max_length ? s->max_length : d->max_length;
    if (source > most_source) source = most_source;
    if (length > most_length) length = most_length;
    int least = DGM_SPLIT_MIN + source_overhead(m);
    DGM_FAIL_IF(source < least || length < 1, err, DGM_ERR_ARGUMENT,
                "maximum source length must be at least %d for this model, not %d", least, source);
    t->config.max_source = source;
    t->config.max_length = length;
    DGM_FAIL_IF(s->min_length > length, err, DGM_ERR_ARGUMENT,
                "minimum length must be at most the maximum length, %d, not %d", length,
                (int)s->min_length);
    t->config.min_length = s->min_length;
    return DGM_OK;
}

static void describe(dgm_translator *t)
{
    dgm_translator_info *i = &t->info;
    i->models = t->member_count;
    i->threads = t->threads;
    i->batch = t->batch;
    i->batch_tokens = t->batch_tokens;
    i->beam = t->config.beam;
    i->nbest = t->config.nbest;
    i->max_length = t->config.max_length;
    i->max_source = t->config.max_source;
    i->finish = t->finish.text;
    i->precision = dgm_precision_names[t->members[0].precision];
    i->search = t->config.search;
    i->length_penalty = t->config.length_penalty;
    i->word_penalty = t->config.word_penalty;
    i->max_length_factor = t->config.max_length_factor;
    i->shortlist = dgm_restrict_names[t->restricted];
    const dgm_model_info *m = dgm_model_describe(t->members[0].model);
    i->vocabulary = m->target_vocab;
    i->lead = m->target_prefix_count;
    char *by = t->aligned_by;
    if (t->alignment == DGM_ALIGN_NONE) snprintf(by, sizeof t->aligned_by, "none");
    else if (m->align_head < 0) snprintf(by, sizeof t->aligned_by, "layer %d, mean of attention", m->align_layer);
    else snprintf(by, sizeof t->aligned_by, "layer %d, head %d", m->align_layer, m->align_head);
    i->alignment = by;
}

// What the file may say for each direction by itself.
static dgm_status resolve_direction(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    dgm_length_rule l;
    t->asked = (dgm_length_rule){s->length_penalty, s->word_penalty, s->max_length_factor};
    DGM_TRY(dgm_direction_lengths(t, t->direction, &l, err));
    t->config.length_penalty = l.length_penalty;
    t->config.word_penalty = l.word_penalty;
    t->config.max_length_factor = l.max_length_factor;
    return DGM_OK;
}

static dgm_status resolve_shortlist(dgm_translator *t, const char *asked, dgm_error *err)
{
    dgm_direction_spec d;
    DGM_TRY(dgm_direction_defaults(t, t->direction, &d, err));
    if (!asked && !t->lattices) asked = d.shortlist; // the file's, which nobody has looked at yet
    const int n = find_name(asked, dgm_restrict_names, -1);
    DGM_FAIL_IF(asked && n < 0, err, DGM_ERR_ARGUMENT,
                "%s: the model asks for the unknown shortlist '%.80s'",
                dgm_gguf_path(t->members[0].file), asked);
    return dgm_restrict_resolve(t, n, err);
}

// asked: NULL, or looked at already (dgm_settings_check).
static void resolve_finish(dgm_translator *t, const char *asked, const dgm_decode_spec *d)
{
    int finish = d->finish, first = d->finish_first;
    if (asked) dgm_finish_parse(asked, &finish, &first);
    if (first < t->config.nbest) first = t->config.nbest;
    t->config.finish = (dgm_finish)finish;
    t->config.first = first;
    t->finish = dgm_finish_write(finish, first);
}

// Text that is tokenised already has dots of its own, which the rules for sentences do not know.
static dgm_split_at resolve_split(const dgm_translator *t, const dgm_settings *s,
                                  const dgm_decode_spec *d)
{
    const char *asked = s->split ? s->split : "auto";
    if (s->raw || strcmp(asked, "long") == 0) return DGM_SPLIT_LONG;
    if (strcmp(asked, "none") == 0) return DGM_SPLIT_NONE;
    bool whole = d->paragraphs || !dgm_vocab_takes_text(t->source);
    return strcmp(asked, "auto") == 0 && whole ? DGM_SPLIT_LONG : DGM_SPLIT_SENTENCES;
}

dgm_status dgm_settings_resolve(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    const dgm_decode_spec *d = &dgm_model_describe(t->members[0].model)->defaults;
    dgm_search_config *c = &t->config;
    const int workers = dgm_backend_properties(t->backend)->workers;
    t->threads = s->threads ? s->threads : workers ? workers * t->devices : dgm_cpu_count();
    if (t->threads < t->devices) t->threads = t->devices; // each has one
    t->long_lines = (dgm_long)s->long_lines;
    t->split = resolve_split(t, s, d);
    t->careful = !s->raw && dgm_vocab_takes_text(t->source);
    t->protect = t->careful && s->protect;
    t->protector = dgm_protector_for(dgm_text_of(t->source_code), dgm_text_of(t->target_code));
    t->alignment = (dgm_alignment)s->alignment;
    t->token_scores = s->token_scores != 0;
    DGM_TRY(dgm_search_resolve(t, s, err));
    c->nbest = s->nbest;
    DGM_FAIL_IF(c->nbest > c->beam, err, DGM_ERR_ARGUMENT,
                "n-best size must be at most the beam size, %d, not %d", c->beam, c->nbest);
    resolve_finish(t, s->finish, d);
    c->mix = (dgm_mix)find_name(s->mix, mix_names, DGM_MIX_LOG_LINEAR);
    c->normalise = find_name(s->softmax, softmax_names, 0) == 0;
    DGM_TRY(resolve_cube(t, s, err));
    c->margin = s->margin;
    DGM_TRY(resolve_direction(t, s, err));
    c->allow_unk = s->allow_unk < 0 ? d->allow_unk : s->allow_unk != 0;
    c->alignment = t->alignment != DGM_ALIGN_NONE;
    t->evidence = dgm_wants_evidence(s);
    t->lmbr_order = s->lmbr_order;
    t->lmbr_ngrams = s->lmbr_ngrams != 0;
    if (t->evidence) dgm_lmbr_resolve(t, &s->lmbr);
    t->lmbr_limit = (size_t)s->lmbr_limit;
    dgm_decoding_resolve(t, s); // a coverage penalty sets config.alignment
    DGM_TRY(dgm_settings_unknown(t, s, err));
    c->word_scores = t->token_scores;
    DGM_TRY(resolve_lengths(t, s, d, err));
    DGM_TRY(resolve_shortlist(t, s->shortlist, err));
    DGM_TRY(dgm_budget_resolve(t, s, err));
    describe(t);
    return DGM_OK;
}
