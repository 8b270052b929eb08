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
#include "format/languages.h"
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

static void describe(dgm_translator *t, const dgm_settings *s)
{
    dgm_translator_info *i = &t->info;
    snprintf(t->cube_key, sizeof t->cube_key, "%s", s->cube_key ? s->cube_key : "token");
    i->cube_key = t->cube_key;
    i->beam_width = t->config.beam_width;
    i->margin = t->config.margin;
    i->pairs = t->config.double_exact ? "exact" : "topk";
    i->softmax = softmax_names[find_name(s->softmax, softmax_names, 0)];
    i->iterations = t->config.iterations;
    i->static_scales = s->static_scales;
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
    if (first < t->config.nbest && (first > 0 || finish == DGM_FINISH_FIRST)) first = t->config.nbest;
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

static dgm_status resolve(dgm_translator *t, const dgm_settings *s, dgm_error *err)
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
    describe(t, s);
    return DGM_OK;
}

// ---- what the model file says --------------------------------------------------------------------

// Settings that a model file brings along as defaults: the lists of "name=value" of docs/internals/FORMAT.md, 2.3.
// Those of the search belong together: they count where the caller says nothing about it, and the table of features
// allows them.
enum { STORED_MAX = 24, STORED_TEXT = 64 };

// Texts of values, as long as the settings that borrow them.
typedef struct stored_texts {
    char text[STORED_MAX][STORED_TEXT];
    size_t count;
} stored_texts;

static const char list_key[] = "dragoman.decode.settings";

// search: together or not at all.
static const struct {
    const char *name;
    bool search;
} rows[] = {
    {"search", true},         {"beam", true},         {"finish", true},     {"margin", true},
    {"beam-width", true},     {"cube", true},         {"cube-key", true},   {"pairs", true},
    {"iterations", true},     {"lengths", true},      {"length-penalty", true}, {"shortlist", false},
    {"source-tokens", false}, {"softmax", false},     {"static-scales", false},
};

static int row_of(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0) return (int)i;
    return -1;
}

bool dgm_stored_allowed(const char *name)
{
    return row_of(name) >= 0;
}

static bool left_alone(const dgm_settings *s, const dgm_settings *usual, const char *name)
{
    char a[256] = "", b[256] = "";
    return dgm_settings_get(s, name, a, sizeof a, NULL) == DGM_OK &&
           dgm_settings_get(usual, name, b, sizeof b, NULL) == DGM_OK && strcmp(a, b) == 0;
}

// Does the caller leave the search to the model?
static bool search_free(const dgm_settings *s, const dgm_settings *usual)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].search && !left_alone(s, usual, rows[i].name)) return false;
    return s->nbest == usual->nbest;
}

// One "name=value" of a file onto settings.
static dgm_status take(dgm_gguf_text item, const dgm_settings *usual, bool searching, const dgm_settings *given,
                       dgm_settings *s, stored_texts *texts, dgm_error *err)
{
    char *text = texts->text[texts->count];
    DGM_FAIL_IF(item.size >= STORED_TEXT || texts->count == STORED_MAX, err, DGM_ERR_FORMAT,
                "key '%s' has too much to say", list_key);
    snprintf(text, STORED_TEXT, "%.*s", (int)item.size, item.data);
    char *value = strchr(text, '=');
    if (value) *value++ = 0;
    const int row = row_of(text);
    DGM_FAIL_IF(!value || row < 0, err, DGM_ERR_FORMAT,
                "key '%s' has '%.60s', which is no setting that a model may have", list_key, text);
    texts->count++;
    if (rows[row].search ? !searching : !left_alone(given, usual, text)) return DGM_OK;
    if (given->lattices && strcmp(text, "shortlist") == 0) return DGM_OK;
    if (given->precision && strcmp(text, "static-scales") == 0) return DGM_OK; // go with the file's
    return dgm_settings_set(s, text, value, err);
}

static dgm_status take_list(const dgm_gguf *file, const char *key, const dgm_settings *given, dgm_settings *s,
                            stored_texts *texts, dgm_error *err)
{
    const dgm_settings usual = dgm_settings_usual();
    const bool searching = search_free(given, &usual);
    dgm_gguf_strings it = {0};
    DGM_TRY(dgm_gguf_get_strings(file, key, DGM_OPTIONAL, &it, err));
    for (dgm_gguf_text item; dgm_gguf_strings_next(&it, &item);) {
        const dgm_status st = take(item, &usual, searching, given, s, texts, err);
        if (st != DGM_OK) {
            dgm_error_prefix(err, "%s", dgm_gguf_path(file));
            return DGM_ERR_FORMAT;
        }
    }
    return DGM_OK;
}

// What the table of features says to all of it, with this model.
static bool goes_together(const dgm_translator *t, const dgm_settings *s)
{
    dgm_asked a = dgm_asked_settings(s);
    a.models = t->member_count;
    a.writing = (int)dgm_writing_of(dgm_model_describe(t->members[0].model));
    return dgm_asked_check(&a, NULL) == DGM_OK;
}

// Changes what the caller left alone to what the first model's file says for the translator's direction.
static dgm_status apply_stored(const dgm_translator *t, dgm_settings *s, stored_texts *texts, dgm_error *err)
{
    const dgm_gguf *file = t->members[0].file;
    const dgm_languages *l = dgm_model_describe(t->members[0].model)->languages;
    const dgm_settings given = *s;
    texts->count = 0;
    DGM_TRY(take_list(file, list_key, &given, s, texts, err));
    if (l && t->direction[0] >= 0 && l->count[0] && l->count[1]) {
        char key[192];
        snprintf(key, sizeof key, "dragoman.directions.%.60s.%.60s.settings", l->code[0][t->direction[0]],
                 l->code[1][t->direction[1]]);
        DGM_TRY(take_list(file, key, &given, s, texts, err));
    }
    if (texts->count && !goes_together(t, s)) *s = given;
    return DGM_OK;
}

bool dgm_stored_scales(const dgm_gguf *file, const dgm_settings *s)
{
    static const char asked[] = "static-scales=1";
    dgm_gguf_strings it = {0};
    if (s->precision || s->static_scales >= 0) return false;
    if (dgm_gguf_get_strings(file, list_key, DGM_OPTIONAL, &it, NULL) != DGM_OK) return false;
    for (dgm_gguf_text item; dgm_gguf_strings_next(&it, &item);)
        if (item.size == sizeof asked - 1 && memcmp(item.data, asked, item.size) == 0) return true;
    return false;
}

// What neither the caller nor the file has said.
static void fill_usual(dgm_settings *s)
{
    if (s->margin == DGM_FROM_MODEL) s->margin = 3.0f;
    if (s->beam_width == DGM_FROM_MODEL) s->beam_width = 0.0f;
    if (s->static_scales < 0) s->static_scales = 0;
}

dgm_status dgm_settings_resolve(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    dgm_settings own = *s;
    stored_texts texts;
    DGM_TRY(apply_stored(t, &own, &texts, err));
    fill_usual(&own);
    return resolve(t, &own, err);
}
