// SPDX-License-Identifier: MIT
// From text to what a search decodes: repair, language token, splitting of over-long lines,
// encoding. Runs while a job is submitted, in that thread and in text threads: a job of many lines
// is cut into parts, which are encoded side by side and joined (text_stage.c).
//
//     line  --clean-->  text  --split-->  pieces  --encode-->  [prefix ids] [language] ids [eos]
//
// What is wrong with one line goes into that line's status; only a lack of memory fails the call.
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "engine/constrain.h"
#include "engine/evidence.h"
#include "text/capitals.h"
#include "text/language_like.h"
#include "text/tidy.h"
#include "text/titles.h"

// Buffers of one thread in one submit call, used again for every line.
typedef struct prepare {
    const dgm_translator *t;
    dgm_encoded *out; // of the part at hand
    const dgm_model_info *model;
    dgm_writer clean;
    dgm_tokens tokens;
    dgm_vocab_counter counter;
    dgm_pieces sentences;
    dgm_tidied tidied;
    size_t start; // what is encoded of the line: tidied text, or the line's from here on
    bool tidy;
    dgm_writer ordinary; // a part in ordinary case
    dgm_spliced spliced; // a part with the terms in place of the words that they translate
    dgm_tokens with;     // and its tokens
    bool switched;       // the part encoded last has some
    bool careful;        // with this line
    bool whole;          // lines are parts of one already
    bool raised, titled; // the part encoded last was in capitals, will be in Title Case
    dgm_evidence_maker evidence;
    dgm_demander demander;
    int direction[2]; // of the line
    bool other;       // it is not the translator's
} prepare;

static dgm_status append_ids(int32_t **array, size_t *used, size_t *cap, const int32_t *ids,
                             size_t count, dgm_error *err)
{
    if (count == 0) return DGM_OK;
    DGM_TRY(dgm_grow(array, cap, *used + count, sizeof **array, err));
    memcpy(*array + *used, ids, count * sizeof **array);
    *used += count;
    return DGM_OK;
}

// Replaces the last of the ids, which are the tokens of the model's direction on a side.
static void set_tags(const dgm_model_info *m, dgm_side side, const int *direction, int32_t *end)
{
    dgm_languages_tokens(m->languages, side, direction, end - m->languages->tags[side]);
}

dgm_status dgm_source_frame(const dgm_translator *t, const int *direction, int32_t language,
                            const int32_t *ids, size_t count, int32_t **array, size_t *used,
                            size_t *cap, dgm_error *err)
{
    const dgm_model_info *m = dgm_model_describe(t->members[0].model);
    const bool last = m->source_suffix_count > 0;
    const size_t first = *used;
    DGM_TRY(append_ids(array, used, cap, m->source_prefix, (size_t)m->source_prefix_count, err));
    if (!last && direction) set_tags(m, DGM_SOURCE, direction, *array + *used);
    if (language >= 0) DGM_TRY(append_ids(array, used, cap, &language, 1, err));
    DGM_TRY(append_ids(array, used, cap, ids, count, err));
    if (m->source_backwards) dgm_turn_ids(*array, first, *used);
    if (m->append_eos) DGM_TRY(append_ids(array, used, cap, &m->source_eos, 1, err));
    DGM_TRY(append_ids(array, used, cap, m->source_suffix, (size_t)m->source_suffix_count, err));
    if (last && direction) set_tags(m, DGM_SOURCE, direction, *array + *used);
    return DGM_OK;
}

// Start tokens of the piece added last, if its direction is not the translator's.
static dgm_status add_lead(dgm_encoded *out, const dgm_model_info *m, const int *direction,
                           dgm_piece_state *piece, dgm_error *err)
{
    if (!direction || m->languages->tags[DGM_TARGET] == 0) return DGM_OK;
    piece->lead = true;
    piece->lead_at = out->token_count;
    DGM_TRY(append_ids(&out->tokens, &out->token_count, &out->token_cap, m->target_prefix,
                       (size_t)m->target_prefix_count, err));
    set_tags(m, DGM_TARGET, direction, out->tokens + out->token_count);
    return DGM_OK;
}

// The line fails with the message in `why`; the call goes on.
static dgm_status line_fails(dgm_line_state *line, dgm_status st, const dgm_error *why,
                             dgm_error *err)
{
    if (st == DGM_ERR_MEMORY) return dgm_no_memory(err);
    line->status = st;
    line->message = dgm_strdup(why->text);
    return line->message ? DGM_OK : dgm_no_memory(err);
}

// Where something in the text that is encoded stands in the line.
static size_t in_line(const prepare *p, size_t at)
{
    return p->start + (p->tidy ? p->tidied.from[at] : at);
}

// One way to read a piece: ids in their frame, and where they stand in the line; spliced: of the text with terms.
static dgm_status add_source(prepare *p, const dgm_tokens *tokens, size_t count, int32_t language, size_t begin,
                             const dgm_spliced *spliced, dgm_piece_source *source, dgm_error *err)
{
    dgm_encoded *out = p->out;
    *source = (dgm_piece_source){out->token_count, out->span_count, 0, (int)count};
    DGM_TRY(dgm_source_frame(p->t, p->other ? p->direction : NULL, language, tokens->ids, count, &out->tokens,
                             &out->token_count, &out->token_cap, err));
    source->count = (int)(out->token_count - source->ids_at);
    if (p->t->alignment == DGM_ALIGN_NONE && !p->t->replace_unknown) return DGM_OK;
    DGM_TRY(dgm_grow(&out->spans, &out->span_cap, out->span_count + count, sizeof *out->spans, err));
    for (size_t i = 0; i < count; i++) {
        const dgm_span at = spliced ? dgm_splice_span(spliced, tokens->spans[i]) : tokens->spans[i];
        out->spans[out->span_count++] =
            (dgm_span){(uint32_t)in_line(p, at.begin + begin), (uint32_t)in_line(p, at.end + begin)};
    }
    return DGM_OK;
}

// Adds the piece whose tokens are in p->tokens; `begin` is where its text stands in what is encoded.
static dgm_status add_piece(prepare *p, dgm_line_state *line, int32_t language, size_t begin,
                            size_t room, dgm_error *err)
{
    dgm_encoded *out = p->out;
    size_t count = p->tokens.count;
    if (count > room) {
        count = room;
        line->flags |= DGM_LINE_CROPPED;
    }
    DGM_TRY(dgm_grow(&out->pieces, &out->piece_cap, out->piece_count + 1, sizeof *out->pieces, err));
    dgm_piece_state *piece = &out->pieces[out->piece_count];
    memset(piece, 0, sizeof *piece);
    piece->line = line;
    piece->backwards = p->model->source_backwards;
    piece->text_first = piece->backwards ? 0 : p->model->source_prefix_count + (language >= 0 ? 1 : 0);
    DGM_TRY(add_source(p, &p->tokens, count, language, begin, NULL, &piece->with_terms, err));
    dgm_piece_exchange(piece);
    piece->unusual = p->switched && p->demander.unusual;
    if (p->switched)
        DGM_TRY(add_source(p, &p->with, p->with.count, language, begin, &p->spliced, &piece->with_terms, err));
    DGM_TRY(add_lead(out, p->model, p->other ? p->direction : NULL, piece, err));
    piece->prefix_at = out->token_count;
    line->source_tokens += (size_t)piece->count;
    line->left++;
    out->piece_count++;
    return DGM_OK;
}

// Forced target tokens of the piece added last (the model's own prefix is the search's business).
static dgm_status add_prefix(prepare *p, const dgm_input *input, bool first, dgm_error *err)
{
    dgm_encoded *out = p->out;
    dgm_piece_state *piece = &out->pieces[out->piece_count - 1];
    if (first && input->prefix && input->prefix_size) {
        DGM_TRY(dgm_vocab_encode(p->t->target, (dgm_text){input->prefix, input->prefix_size},
                                 &p->tokens, err));
        DGM_TRY(append_ids(&out->tokens, &out->token_count, &out->token_cap, p->tokens.ids,
                           p->tokens.count, err));
    }
    piece->prefix_count = (int)(out->token_count - piece->prefix_at);
    DGM_FAIL_IF(piece->prefix_count > p->t->config.max_length, err, DGM_ERR_TEXT,
                "the forced prefix has %d tokens, the maximum length is %d", piece->prefix_count,
                p->t->config.max_length);
    return DGM_OK;
}

static dgm_status one_piece(dgm_line_state *line, size_t begin, size_t end, dgm_error *err)
{
    DGM_TRY(dgm_grow(&line->pieces.items, &line->pieces.cap, 1, sizeof *line->pieces.items, err));
    line->pieces.items[0] = (dgm_piece){begin, end, DGM_CUT_END};
    line->pieces.count = 1;
    return DGM_OK;
}

static dgm_language language_of(const prepare *p, dgm_side side)
{
    const char *code = side == DGM_SOURCE ? p->t->source_code : p->t->target_code;
    if (p->other) code = p->model->languages->code[side][p->direction[side]];
    return dgm_language_of(dgm_text_of(code));
}

// The language whose rules the line's sentences follow.
static dgm_language rules_of(const prepare *p)
{
    return p->other ? language_of(p, DGM_SOURCE) : p->t->source_language;
}

// What is longer than the model takes and may not be cut is cropped, or the line fails.
static dgm_status check_length(const prepare *p, size_t room, dgm_error *err)
{
    const bool crop = p->t->long_lines == DGM_LONG_CROP;
    DGM_FAIL_IF(p->tokens.count > room && !crop, err, DGM_ERR_TEXT,
                "the line has %zu tokens, the limit is %zu", p->tokens.count, room);
    return DGM_OK;
}

// A part that passes through as it is: nobody decodes it, and its translation is its text.
static dgm_status add_copy(prepare *p, dgm_line_state *line, dgm_error *err)
{
    dgm_encoded *out = p->out;
    DGM_TRY(dgm_grow(&out->pieces, &out->piece_cap, out->piece_count + 1, sizeof *out->pieces, err));
    line->flags |= DGM_LINE_COPIED;
    out->pieces[out->piece_count++] = (dgm_piece_state){
        .line = line, .copied = true, .spans_at = out->span_count, .prefix_at = out->token_count};
    return DGM_OK;
}

// Encodes a part of the line into p->tokens, in ordinary case where it is in capitals or a headline, and into p->with
// with terms where their source words stand, unless that is too long. *copied: it is no language: nothing was encoded.
static dgm_status encode_part(prepare *p, dgm_text part, size_t room, bool *copied, dgm_error *err)
{
    bool lowered = false;
    const dgm_text written = part;
    p->switched = false;
    p->raised = p->titled = false;
    *copied = p->careful && !dgm_is_language(part);
    if (*copied) return DGM_OK;
    p->ordinary.size = 0;
    if (p->careful)
        DGM_TRY(dgm_capitals_lower(p->t->source, part, &p->counter.tokens, &p->ordinary, &lowered, err));
    p->raised = lowered;
    if (p->careful && !lowered) {
        DGM_TRY(dgm_titles_lower(p->t->source, part, rules_of(p), &p->ordinary, &lowered, err));
        p->titled = lowered && language_of(p, DGM_TARGET) == DGM_LANG_EN; // other languages have no such case
    }
    if (lowered) part.data = (const char *)p->ordinary.data;
    DGM_TRY(dgm_vocab_encode(p->t->source, part, &p->tokens, err));
    if (p->tokens.count > room) return DGM_OK; // as it is: it may be cut
    DGM_TRY(dgm_demander_switch(&p->demander, written, part, &p->spliced, &p->switched, err));
    if (!p->switched) return DGM_OK;
    const dgm_text with = {(const char *)p->spliced.text.data, p->spliced.text.size};
    DGM_TRY(dgm_vocab_encode(p->t->source, with, &p->with, err));
    p->switched = p->with.count <= room;
    return DGM_OK;
}

// Adds what encode_part has made; first: of its line.
static dgm_status add_part(prepare *p, dgm_line_state *line, const dgm_input *input, int32_t language,
                           size_t begin, size_t room, bool first, dgm_error *err)
{
    DGM_TRY(check_length(p, room, err));
    DGM_TRY(add_piece(p, line, language, begin, room, err));
    p->out->pieces[p->out->piece_count - 1].raised = p->raised;
    p->out->pieces[p->out->piece_count - 1].titled = p->titled;
    return add_prefix(p, input, first, err);
}

// Cuts a line that is too long, or one of several sentences, and encodes every part.
static dgm_status split_line(prepare *p, dgm_line_state *line, const dgm_input *input, dgm_text text,
                             int32_t language, size_t room, bool sentences, dgm_error *err)
{
    const bool cut = p->t->long_lines == DGM_LONG_SPLIT; // what is left too long, too
    const size_t most = cut ? room : SIZE_MAX;
    dgm_split_limits limits = {most, rules_of(p), dgm_vocab_count, &p->counter, sentences};
    DGM_TRY(dgm_split_line(text, &limits, &line->pieces, err));
    size_t kept = 0;
    for (size_t i = 0; i < line->pieces.count; i++) {
        dgm_piece piece = line->pieces.items[i];
        dgm_text part = {text.data + piece.begin, piece.end - piece.begin};
        bool copied;
        DGM_TRY(encode_part(p, part, room, &copied, err));
        if (p->tokens.count == 0 && !copied) continue; // nothing in it that the model can see
        const size_t begin = piece.begin;
        piece.begin = in_line(p, piece.begin);
        piece.end = in_line(p, piece.end);
        line->pieces.items[kept++] = piece;
        DGM_TRY(copied ? add_copy(p, line, err)
                       : add_part(p, line, input, language, begin, room, kept == 1, err));
    }
    line->pieces.count = kept;
    if (kept) line->pieces.items[kept - 1].cut = DGM_CUT_END;
    if (kept > 1) line->flags |= DGM_LINE_SPLIT;
    return DGM_OK;
}

// What comes with a line and says how the whole of its translation must look leaves it as it is.
static bool is_free(const prepare *p, const dgm_input *input)
{
    return !input->evidence && !p->evidence.phrases && !input->lattice && !(input->prefix && input->prefix_size) &&
           !(input->constraints && input->constraints_size);
}

// Is the line to be cut at sentence ends, and does it have some?
static dgm_status has_sentences(prepare *p, dgm_text text, const dgm_input *input, bool *several,
                                dgm_error *err)
{
    *several = false;
    if (p->t->split != DGM_SPLIT_SENTENCES || p->whole || !is_free(p, input)) return DGM_OK;
    DGM_TRY(dgm_split_sentences(text, rules_of(p), &p->sentences, err));
    *several = p->sentences.count > 1;
    return DGM_OK;
}

static dgm_status encode_line(prepare *p, dgm_line_state *line, const dgm_input *input,
                              dgm_error *err)
{
    dgm_text text = {line->text, line->size};
    dgm_text trimmed = dgm_text_trim(text);
    if (trimmed.size == 0) return DGM_OK;
    size_t skip = 0;
    DGM_TRY(dgm_direction_line(p->t, input->direction, p->direction, &p->other, err));
    int32_t language = dgm_vocab_language_prefix(p->t->source, trimmed, &skip);
    skip = language >= 0 ? skip + (size_t)(trimmed.data - text.data) : 0;
    if (language >= 0 && dgm_direction_of_token(p->t, language, p->direction)) {
        p->other = true;
        language = -1; // the frame has it
    }
    DGM_TRY(dgm_demander_direct(&p->demander, p->direction, p->other, err));
    p->evidence.phrases = dgm_phrases_for(p->t, p->direction);
    line->other = p->other;
    memcpy(line->direction, p->direction, sizeof line->direction);
    DGM_TRY(dgm_restrict_line(p->t, p->direction, p->other, &line->clusters, err));
    if (p->other) DGM_TRY(dgm_direction_lengths(p->t, p->direction, &line->lengths, err));
    text = (dgm_text){line->text + skip, line->size - skip};
    trimmed = dgm_text_trim(text);
    if (trimmed.size == 0) return DGM_OK;
    p->start = (size_t)(trimmed.data - line->text);
    int frame = p->model->source_prefix_count + p->model->source_suffix_count + (language >= 0) +
                (p->model->append_eos ? 1 : 0);
    size_t room = (size_t)(p->t->config.max_source - frame);
    bool several, copied;
    line->careful = p->careful = p->t->careful && is_free(p, input);
    p->tidy = false;
    if (p->careful) DGM_TRY(dgm_tidy_text(trimmed, &p->tidied, &p->tidy, err));
    if (p->tidy) trimmed = (dgm_text){(const char *)p->tidied.text.data, p->tidied.text.size};
    DGM_TRY(has_sentences(p, trimmed, input, &several, err));
    if (several) return split_line(p, line, input, trimmed, language, room, true, err);
    DGM_TRY(encode_part(p, trimmed, room, &copied, err));
    if (p->tokens.count == 0 && !copied) return DGM_OK;

    bool cut = p->t->long_lines == DGM_LONG_SPLIT && p->t->split != DGM_SPLIT_NONE;
    if (!copied && p->tokens.count > room && cut)
        return split_line(p, line, input, trimmed, language, room, false, err);
    DGM_TRY(one_piece(line, p->start, in_line(p, trimmed.size), err));
    if (copied) return add_copy(p, line, err);
    return add_part(p, line, input, language, 0, room, true, err);
}

// Takes back the pieces of a line that failed half way.
static void drop_pieces(dgm_encoded *out, dgm_line_state *line)
{
    for (size_t i = line->first; i < out->piece_count; i++) {
        dgm_constraint_free(&out->pieces[i].constraint);
        dgm_constraint_free(&out->pieces[i].constraint_right);
    }
    out->piece_count = line->first;
    line->left = 0;
    line->pieces.count = 0;
    line->source_tokens = 0;
}

// What the line alone asks for, beginnings and ends as they were found in its constraints.
static dgm_status check_features(const prepare *p, const dgm_line_state *line,
                                 const dgm_input *input, dgm_error *err)
{
    dgm_asked asked = {.lattice = input->lattice != NULL,
                       .prefix = input->prefix && input->prefix_size,
                       .directions = line->other};
    for (size_t i = line->first; i < p->out->piece_count; i++) {
        const dgm_constraint *c = p->out->pieces[i].constraint;
        if (!c) continue;
        if (dgm_constraint_end_alone(c))
            asked.end = true;
        else
            asked.constraints = true;
    }
    if (!asked.prefix && !asked.end && !asked.constraints && !asked.directions) return DGM_OK;
    return dgm_asked_line(p->t, &asked, err);
}

static dgm_status prepare_line(prepare *p, dgm_line_state *line, const dgm_input *input,
                               dgm_error *err)
{
    bool repaired = false;
    p->clean.size = 0;
    line->first = p->out->piece_count;
    DGM_TRY(dgm_line_clean((dgm_text){input->text, input->text_size}, &p->clean, &repaired, err));
    if (repaired) line->flags |= DGM_LINE_REPAIRED;
    line->size = p->clean.size;
    line->text = dgm_strndup(line->size ? (const char *)p->clean.data : "", line->size);
    if (!line->text) return dgm_no_memory(err);
    dgm_error why;
    dgm_input with = *input;
    dgm_evidence evidence = {0};
    if (input->evidence)
        DGM_TRY(dgm_sized_take(&evidence, sizeof evidence, input->evidence, "dgm_evidence",
                               "dgm_evidence_default", err));
    p->evidence.phrases = dgm_phrases_for(p->t, p->t->direction);
    DGM_TRY(dgm_demander_begin(&p->demander, p->t, &with, &line->flags, err));
    dgm_status st = with.tokens ? dgm_tokens_line(p->t, p->out, line, &with, &why) : encode_line(p, line, &with, &why);
    if (st == DGM_OK && line->left && (input->evidence || p->evidence.phrases))
        st = dgm_evidence_line(&p->evidence, &evidence, line, &why);
    if (st == DGM_OK)
        st = dgm_demander_end(&p->demander, line, line->pieces.count ? p->out->pieces + line->first : NULL,
                              p->out->tokens, &why);
    if (st == DGM_OK && line->left) st = check_features(p, line, &with, &why);
    if (st == DGM_OK && input->lattice && line->left)
        st = dgm_lattice_line(p->t, input->lattice, line, p->out->tokens, &p->out->pieces[line->first], &why);
    if (st == DGM_OK) return DGM_OK;
    drop_pieces(p->out, line);
    return line_fails(line, st, &why, err);
}

// ---- jobs --------------------------------------------------------------------------------------

void dgm_encoded_free(dgm_encoded *e)
{
    for (size_t i = 0; i < e->piece_count; i++) {
        dgm_free(e->pieces[i].block);
        dgm_free(e->pieces[i].error);
        dgm_constraint_free(&e->pieces[i].constraint);
        dgm_constraint_free(&e->pieces[i].constraint_right);
    }
    dgm_free(e->pieces);
    dgm_free(e->tokens);
    dgm_free(e->spans);
    memset(e, 0, sizeof *e);
}

// Lines of a job that one thread encodes without a break, and those that are decoded by phrases first.
enum { PART_LINES = 64, PHRASE_LINES = 4 };

typedef struct part {
    dgm_encoded encoded;
    dgm_status status;
    dgm_error error;
} part;

typedef struct preparing {
    dgm_job *job;
    const dgm_input *inputs;
    prepare *threads; // [1 + text threads]
    part *parts;      // [part_count]
    size_t part_count, part_lines;
} preparing;

// Element `index` of the caller's array, whose elements may be smaller or larger than ours.
static dgm_status take_input(const dgm_input *inputs, size_t index, dgm_input *own, dgm_error *err)
{
    const dgm_input *at =
        (const dgm_input *)(const void *)((const char *)inputs + index * inputs->size);
    DGM_FAIL_IF(at->size != inputs->size, err, DGM_ERR_ARGUMENT,
                "dgm_input.size of line %zu is %zu, that of the first is %zu: fill every line with "
                "dgm_input_default",
                index + 1, at->size, inputs->size);
    *own = (dgm_input){0};
    DGM_TRY(dgm_sized_take(own, sizeof *own, at, "dgm_input", "dgm_input_default", err));
    DGM_FAIL_IF(!own->text && own->text_size, err, DGM_ERR_ARGUMENT,
                "line %zu has %zu bytes of text, but text is NULL", index + 1, own->text_size);
    DGM_FAIL_IF(own->deadline_ms < 0, err, DGM_ERR_ARGUMENT,
                "deadline_ms of line %zu is %lld: it must be 0 or more", index + 1,
                (long long)own->deadline_ms);
    return DGM_OK;
}

static void prepare_part(void *arg, int who, size_t index)
{
    const preparing *all = arg;
    dgm_job *job = all->job;
    prepare *p = &all->threads[who];
    part *out = &all->parts[index];
    const size_t first = index * all->part_lines, left = job->line_count - first;
    const size_t end = first + (left < all->part_lines ? left : all->part_lines);
    p->t = p->evidence.t = job->translator;
    p->model = dgm_model_describe(p->t->members[0].model);
    p->counter.vocab = p->t->source;
    p->out = &out->encoded;
    p->whole = job->parent != NULL;
    for (size_t i = first; i < end && out->status == DGM_OK; i++) {
        dgm_input own;
        job->lines[i].job = job;
        out->status = take_input(all->inputs, i, &own, &out->error);
        if (out->status == DGM_OK && own.deadline_ms)
            job->lines[i].deadline = job->begin + 1e-3 * (double)own.deadline_ms;
        if (out->status == DGM_OK) out->status = prepare_line(p, &job->lines[i], &own, &out->error);
    }
}

// A part's pieces, behind those that the job has; what they own is the job's afterwards.
static dgm_status join_part(dgm_job *job, dgm_encoded *from, dgm_error *err)
{
    dgm_encoded *to = &job->encoded;
    const size_t tokens = to->token_count, spans = to->span_count, pieces = to->piece_count;
    if (pieces == 0) { // as a rule the only one
        dgm_encoded_free(to);
        *to = *from;
        memset(from, 0, sizeof *from);
        return DGM_OK;
    }
    DGM_TRY(
        dgm_grow(&to->pieces, &to->piece_cap, pieces + from->piece_count, sizeof *to->pieces, err));
    DGM_TRY(append_ids(&to->tokens, &to->token_count, &to->token_cap, from->tokens,
                       from->token_count, err));
    if (from->span_count) {
        DGM_TRY(
            dgm_grow(&to->spans, &to->span_cap, spans + from->span_count, sizeof *to->spans, err));
        memcpy(to->spans + spans, from->spans, from->span_count * sizeof *to->spans);
        to->span_count += from->span_count;
    }
    for (size_t i = 0; i < from->piece_count; i++) {
        dgm_piece_state *piece = &to->pieces[pieces + i];
        *piece = from->pieces[i];
        piece->ids_at += tokens;
        piece->prefix_at += tokens;
        piece->lead_at += tokens;
        piece->spans_at += spans;
        piece->with_terms.ids_at += tokens;
        piece->with_terms.spans_at += spans;
    }
    to->piece_count += from->piece_count;
    from->piece_count = 0;
    return DGM_OK;
}

static dgm_status join_parts(preparing *all, dgm_error *err)
{
    dgm_job *job = all->job;
    for (size_t i = 0; i < all->part_count; i++) {
        part *p = &all->parts[i];
        if (p->status != DGM_OK && err) *err = p->error;
        if (p->status != DGM_OK) return p->status;
    }
    for (size_t i = 0, line = 0; i < all->part_count; i++) {
        const size_t before = job->encoded.piece_count;
        DGM_TRY(join_part(job, &all->parts[i].encoded, err));
        dgm_encoded_free(&all->parts[i].encoded);
        for (size_t n = 0; n < all->part_lines && line < job->line_count; n++)
            job->lines[line++].first += before;
    }
    return dgm_job_sort(job, err);
}

static void prepare_free(prepare *p)
{
    dgm_writer_free(&p->clean);
    dgm_demander_free(&p->demander);
    dgm_tokens_free(&p->tokens);
    dgm_tokens_free(&p->counter.tokens);
    dgm_pieces_free(&p->sentences);
    dgm_writer_free(&p->ordinary);
    dgm_spliced_free(&p->spliced);
    dgm_tokens_free(&p->with);
    dgm_tidied_free(&p->tidied);
    dgm_evidence_maker_free(&p->evidence);
}

static void count_evidence(dgm_translator *t, const dgm_evidence_maker *m)
{
    if (m->lines == 0 && m->decoded == 0) return;
    pthread_mutex_lock(&t->lock);
    t->evidence_lines += m->lines;
    t->evidence_rows += m->rows;
    t->evidence_values += m->values;
    t->evidence_pruned += m->pruned;
    t->evidence_seconds += m->seconds;
    t->evidence_decoded += m->decoded;
    t->evidence_decode_seconds += m->decode_seconds;
    pthread_mutex_unlock(&t->lock);
}

dgm_status dgm_job_prepare(dgm_job *job, const dgm_input *inputs, dgm_error *err)
{
    dgm_translator *t = job->translator;
    const size_t threads = 1 + (size_t)dgm_text_threads(t);
    // Evidence is read with the help of words that lines before it had: in one thread, unless making
    // it takes longer by far.
    const size_t lines = t->phrase_count                 ? PHRASE_LINES
                         : t->evidence && job->line_count ? job->line_count
                                                         : PART_LINES;
    preparing all = {.job = job,
                     .inputs = inputs,
                     .part_count = (job->line_count + lines - 1) / lines,
                     .part_lines = lines};
    if (all.part_count == 0) return DGM_OK;
    all.threads = dgm_calloc(threads, sizeof *all.threads);
    all.parts = dgm_calloc(all.part_count, sizeof *all.parts);
    dgm_status st = all.threads && all.parts ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) {
        dgm_text_share(t, prepare_part, &all, all.part_count);
        st = join_parts(&all, err);
    }
    for (size_t i = 0; all.parts && i < all.part_count; i++)
        dgm_encoded_free(&all.parts[i].encoded);
    for (size_t i = 0; all.threads && i < threads; i++) {
        count_evidence(t, &all.threads[i].evidence);
        prepare_free(&all.threads[i]);
    }
    dgm_free(all.parts);
    dgm_free(all.threads);
    return st;
}
