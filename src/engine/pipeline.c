// SPDX-License-Identifier: MIT
// From text to what a search decodes: repair, language token, splitting of over-long lines,
// encoding. Runs in the thread that submits a job.
//
//     line  --clean-->  text  --split-->  pieces  --encode-->  [prefix ids] [language] ids [eos]
//
// What is wrong with one line goes into that line's status; only a lack of memory fails the call.
#include <string.h>

#include "base/mem.h"
#include "engine/constrain.h"
#include "engine/evidence.h"

// Buffers of one submit call, used again for every line.
typedef struct prepare {
    dgm_job *job;
    const dgm_translator *t;
    const dgm_model_info *model;
    dgm_writer clean;
    dgm_tokens tokens;
    dgm_vocab_counter counter;
    dgm_evidence_maker evidence;
    dgm_demander demander;
    int direction[2]; // of the line
    bool other;       // it is not the translator's
} prepare;

static bool is_break(unsigned char c)
{
    return c == '\n' || c == '\r' || c == '\0' || c == '\v' || c == '\f';
}

dgm_status dgm_line_clean(dgm_text in, dgm_writer *out, bool *repaired, dgm_error *err)
{
    size_t bad = 0, start = out->size;
    DGM_TRY(dgm_utf8_repair(in, out, &bad, err));
    *repaired = bad > 0;
    for (size_t i = start; i < out->size; i++)
        if (is_break(out->data[i])) out->data[i] = ' ';
    return DGM_OK;
}

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
    if (direction)
        dgm_languages_tokens(m->languages, side, direction, end - m->languages->tags[side]);
}

dgm_status dgm_source_frame(const dgm_translator *t, const int *direction, int32_t language,
                            const int32_t *ids, size_t count, int32_t **array, size_t *used,
                            size_t *cap, dgm_error *err)
{
    const dgm_model_info *m = dgm_model_describe(t->members[0].model);
    bool last = m->source_suffix_count > 0;
    DGM_TRY(append_ids(array, used, cap, m->source_prefix, (size_t)m->source_prefix_count, err));
    if (!last) set_tags(m, DGM_SOURCE, direction, *array + *used);
    if (language >= 0) DGM_TRY(append_ids(array, used, cap, &language, 1, err));
    DGM_TRY(append_ids(array, used, cap, ids, count, err));
    if (m->append_eos) DGM_TRY(append_ids(array, used, cap, &m->source_eos, 1, err));
    DGM_TRY(append_ids(array, used, cap, m->source_suffix, (size_t)m->source_suffix_count, err));
    if (last) set_tags(m, DGM_SOURCE, direction, *array + *used);
    return DGM_OK;
}

// Start tokens of the piece added last, if its direction is not the translator's.
static dgm_status add_lead(dgm_job *job, const dgm_model_info *m, const int *direction,
                           dgm_piece_state *piece, dgm_error *err)
{
    if (!direction || m->languages->tags[DGM_TARGET] == 0) return DGM_OK;
    piece->lead = true;
    piece->lead_at = job->token_count;
    DGM_TRY(append_ids(&job->tokens, &job->token_count, &job->token_cap, m->target_prefix,
                       (size_t)m->target_prefix_count, err));
    set_tags(m, DGM_TARGET, direction, job->tokens + job->token_count);
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

// Adds the piece whose tokens are in p->tokens; `begin` is where its text stands in the line.
static dgm_status add_piece(prepare *p, dgm_line_state *line, int32_t language, size_t begin,
                            size_t room, dgm_error *err)
{
    dgm_job *job = p->job;
    size_t count = p->tokens.count;
    if (count > room) {
        count = room;
        line->flags |= DGM_LINE_CROPPED;
    }
    DGM_TRY(
        dgm_grow(&job->pieces, &job->piece_cap, job->piece_count + 1, sizeof *job->pieces, err));
    dgm_piece_state *piece = &job->pieces[job->piece_count];
    memset(piece, 0, sizeof *piece);
    piece->line = line;
    piece->ids_at = job->token_count;
    piece->spans_at = job->span_count;
    piece->text_first = p->model->source_prefix_count + (language >= 0 ? 1 : 0);
    piece->text_count = (int)count;
    const int *direction = p->other ? p->direction : NULL;
    DGM_TRY(dgm_source_frame(p->t, direction, language, p->tokens.ids, count, &job->tokens,
                             &job->token_count, &job->token_cap, err));
    piece->count = (int)(job->token_count - piece->ids_at);
    DGM_TRY(add_lead(job, p->model, direction, piece, err));
    piece->prefix_at = job->token_count;
    if (p->t->alignment != DGM_ALIGN_NONE || p->t->replace_unknown) {
        DGM_TRY(dgm_grow(&job->spans, &job->span_cap, job->span_count + count, sizeof *job->spans,
                         err));
        for (size_t i = 0; i < count; i++)
            job->spans[job->span_count++] = (dgm_span){(uint32_t)(p->tokens.spans[i].begin + begin),
                                                       (uint32_t)(p->tokens.spans[i].end + begin)};
    }
    line->source_tokens += (size_t)piece->count;
    line->left++;
    job->piece_count++;
    return DGM_OK;
}

// Forced target tokens of the piece added last (the model's own prefix is the search's business).
static dgm_status add_prefix(prepare *p, const dgm_input *input, bool first, dgm_error *err)
{
    dgm_job *job = p->job;
    dgm_piece_state *piece = &job->pieces[job->piece_count - 1];
    if (first && input->prefix && input->prefix_size) {
        DGM_TRY(dgm_vocab_encode(p->t->target, (dgm_text){input->prefix, input->prefix_size},
                                 &p->tokens, err));
        DGM_TRY(append_ids(&job->tokens, &job->token_count, &job->token_cap, p->tokens.ids,
                           p->tokens.count, err));
    }
    piece->prefix_count = (int)(job->token_count - piece->prefix_at);
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

// Whole line in p->tokens is too long: cut it, and encode every part.
static dgm_status split_long(prepare *p, dgm_line_state *line, const dgm_input *input, size_t skip,
                             int32_t language, size_t room, dgm_error *err)
{
    dgm_text text = {line->text + skip, line->size - skip};
    dgm_language rules = p->t->source_language;
    if (p->other)
        rules = dgm_language_of(dgm_text_of(p->model->languages->code[0][p->direction[0]]));
    dgm_split_limits limits = {room, rules, dgm_vocab_count, &p->counter};
    DGM_TRY(dgm_split_line(text, &limits, &line->pieces, err));
    size_t kept = 0;
    for (size_t i = 0; i < line->pieces.count; i++) {
        dgm_piece piece = line->pieces.items[i];
        dgm_text part = {text.data + piece.begin, piece.end - piece.begin};
        DGM_TRY(dgm_vocab_encode(p->t->source, part, &p->tokens, err));
        if (p->tokens.count == 0) continue; // nothing in it that the model can see
        piece.begin += skip;
        piece.end += skip;
        line->pieces.items[kept++] = piece;
        DGM_TRY(add_piece(p, line, language, piece.begin, room, err));
        DGM_TRY(add_prefix(p, input, kept == 1, err));
    }
    line->pieces.count = kept;
    if (kept) line->pieces.items[kept - 1].cut = DGM_CUT_END;
    if (kept > 1) line->flags |= DGM_LINE_SPLIT;
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
    line->other = p->other;
    DGM_TRY(dgm_restrict_line(p->t, p->direction, p->other, &line->clusters, err));
    if (p->other) DGM_TRY(dgm_direction_lengths(p->t, p->direction, &line->lengths, err));
    text = (dgm_text){line->text + skip, line->size - skip};
    trimmed = dgm_text_trim(text);
    if (trimmed.size == 0) return DGM_OK;
    size_t begin = (size_t)(trimmed.data - line->text);
    DGM_TRY(dgm_vocab_encode(p->t->source, trimmed, &p->tokens, err));
    if (p->tokens.count == 0) return DGM_OK;

    int frame = p->model->source_prefix_count + p->model->source_suffix_count + (language >= 0) +
                (p->model->append_eos ? 1 : 0);
    size_t room = (size_t)(p->t->config.max_source - frame);
    if (p->tokens.count > room) {
        DGM_FAIL_IF(p->t->long_lines == DGM_LONG_ERROR, err, DGM_ERR_TEXT,
                    "the line has %zu tokens, the limit is %zu", p->tokens.count, room);
        if (p->t->long_lines == DGM_LONG_SPLIT)
            return split_long(p, line, input, skip, language, room, err);
    }
    DGM_TRY(one_piece(line, begin, begin + trimmed.size, err));
    DGM_TRY(add_piece(p, line, language, begin, room, err));
    return add_prefix(p, input, true, err);
}

// Takes back the pieces of a line that failed half way.
static void drop_pieces(dgm_job *job, dgm_line_state *line)
{
    for (size_t i = line->first; i < job->piece_count; i++)
        dgm_constraint_free(&job->pieces[i].constraint);
    job->piece_count = line->first;
    line->left = 0;
    line->pieces.count = 0;
    line->source_tokens = 0;
}

static dgm_status prepare_line(prepare *p, dgm_line_state *line, const dgm_input *input,
                               dgm_error *err)
{
    bool repaired = false;
    p->clean.size = 0;
    line->first = p->job->piece_count;
    DGM_TRY(dgm_line_clean((dgm_text){input->text, input->size}, &p->clean, &repaired, err));
    if (repaired) line->flags |= DGM_LINE_REPAIRED;
    line->size = p->clean.size;
    line->text = dgm_strndup(line->size ? (const char *)p->clean.data : "", line->size);
    if (!line->text) return dgm_no_memory(err);
    dgm_error why;
    dgm_input with = *input;
    DGM_TRY(dgm_demander_begin(&p->demander, p->t, &with, &line->flags, err));
    dgm_status st = encode_line(p, line, &with, &why);
    if (st == DGM_OK && input->evidence && line->left)
        st = dgm_evidence_rows(&p->evidence, input->evidence, &line->lmbr, &why);
    if (st == DGM_OK && input->lattice && line->left)
        st = dgm_lattice_walk(p->t, &with, line->left, &line->walk, &why);
    if (st == DGM_OK) st = dgm_demander_end(&p->demander, line, &why);
    if (st == DGM_OK) return DGM_OK;
    drop_pieces(p->job, line);
    return line_fails(line, st, &why, err);
}

// Longest first: a counting sort by source length, stable.
static dgm_status sort_pieces(dgm_job *job, dgm_error *err)
{
    if (job->piece_count == 0) return DGM_OK;
    int longest = 0;
    for (size_t i = 0; i < job->piece_count; i++)
        if (job->pieces[i].count > longest) longest = job->pieces[i].count;
    size_t *start = dgm_calloc((size_t)longest + 2, sizeof *start);
    job->order = dgm_malloc(job->piece_count * sizeof *job->order);
    if (!start || !job->order) {
        dgm_free(start);
        return dgm_no_memory(err);
    }
    for (size_t i = 0; i < job->piece_count; i++) start[longest - job->pieces[i].count + 1]++;
    for (int k = 1; k <= longest; k++) start[k] += start[k - 1];
    for (size_t i = 0; i < job->piece_count; i++)
        job->order[start[longest - job->pieces[i].count]++] = (uint32_t)i;
    dgm_free(start);
    return DGM_OK;
}

dgm_status dgm_job_prepare(dgm_job *job, const dgm_input *inputs, dgm_error *err)
{
    dgm_translator *t = job->translator;
    prepare p = {.job = job,
                 .t = t,
                 .model = dgm_model_describe(t->members[0].model),
                 .counter = {.vocab = t->source},
                 .evidence = {.t = t}};
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < job->line_count && st == DGM_OK; i++) {
        job->lines[i].job = job;
        st = prepare_line(&p, &job->lines[i], &inputs[i], err);
    }
    if (st == DGM_OK) st = sort_pieces(job, err);
    dgm_writer_free(&p.clean);
    dgm_demander_free(&p.demander);
    dgm_tokens_free(&p.tokens);
    dgm_tokens_free(&p.counter.tokens);
    if (p.evidence.lines) {
        pthread_mutex_lock(&t->lock);
        t->evidence_lines += p.evidence.lines;
        t->evidence_rows += p.evidence.rows;
        t->evidence_values += p.evidence.values;
        t->evidence_seconds += p.evidence.seconds;
        pthread_mutex_unlock(&t->lock);
    }
    dgm_evidence_maker_free(&p.evidence);
    return st;
}
