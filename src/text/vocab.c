// SPDX-License-Identifier: MIT
// Vocabularies over SentencePiece models or word lists; see vocab.h.
//
//   sentencepiece   to_id[piece]   -> id, or -1 when the vocabulary lacks the piece
//                   to_piece[id]   -> piece, or -1 for extra tokens and holes
//   words, extra    a list of spellings in one block of memory with a hash table over it
//   bpe             the same list, under subwords.h
//
// After open everything is read-only. Scratch memory of a call lives on its stack or is allocated
// for the call, so threads share nothing.
#include "text/vocab.h"

#include <string.h>

#include "base/mem.h"
#include "text/spm.h"
#include "text/vocab_private.h"

#define SPACE_MARK "\xE2\x96\x81" // U+2581
#define STACK_IDS 256

// ---- open ----------------------------------------------------------------------------------

static dgm_status check_id(int32_t id, int32_t size, const char *what, dgm_error *err)
{
    DGM_FAIL_IF(id < -1 || id >= size, err, DGM_ERR_FORMAT, "id %d of '%s' is outside 0 .. %d",
                (int)id, what, (int)size - 1);
    return DGM_OK;
}

static dgm_status open_spm(dgm_vocab *v, const dgm_vocab_source *src, dgm_error *err)
{
    DGM_TRY(dgm_spm_open(&v->spm, src->spm, src->spm_size, err));
    int32_t pieces = dgm_spm_size(v->spm);
    DGM_FAIL_IF(src->map && src->map_count != (size_t)pieces, err, DGM_ERR_FORMAT,
                "map has %zu entries for %d pieces", src->map_count, (int)pieces);
    DGM_FAIL_IF(src->extra_count > DGM_VOCAB_MAX, err, DGM_ERR_FORMAT, "too many extra tokens");
    if (v->size == 0) v->size = pieces + (int32_t)src->extra_count;
    DGM_FAIL_IF(v->size > DGM_VOCAB_MAX || src->extra_count > (size_t)v->size ||
                    (!src->map && pieces > v->size),
                err, DGM_ERR_FORMAT, "%d ids do not match %d pieces and %zu extra", (int)v->size,
                (int)pieces, src->extra_count);
    v->to_id = dgm_malloc((size_t)pieces * sizeof *v->to_id);
    v->to_piece = dgm_malloc((size_t)v->size * sizeof *v->to_piece);
    if (!v->to_id || !v->to_piece) return dgm_no_memory(err);
    for (int32_t i = 0; i < v->size; i++) v->to_piece[i] = -1;
    for (int32_t i = 0; i < pieces; i++) {
        int32_t id = src->map ? src->map[i] : i;
        DGM_FAIL_IF(id < -1 || id >= v->size, err, DGM_ERR_FORMAT,
                    "piece %d maps to id %d outside 0 .. %d", (int)i, (int)id, (int)v->size - 1);
        v->to_id[i] = id;
        if (id >= 0 && v->to_piece[id] < 0) v->to_piece[id] = i;
    }
    v->extra_first = v->size - (int32_t)src->extra_count;
    return dgm_spelling_list_init(&v->words, src->extra, src->extra_count, err);
}

static dgm_status open_words(dgm_vocab *v, const dgm_vocab_source *src, dgm_error *err)
{
    DGM_FAIL_IF(src->word_count == 0 || src->word_count > DGM_VOCAB_MAX, err, DGM_ERR_FORMAT,
                "%zu words; between 1 and %d are possible", src->word_count, DGM_VOCAB_MAX);
    if (v->size == 0) v->size = (int32_t)src->word_count;
    DGM_FAIL_IF((size_t)v->size != src->word_count, err, DGM_ERR_FORMAT,
                "%d ids do not match %zu words", (int)v->size, src->word_count);
    DGM_FAIL_IF((unsigned)src->tokenizer > DGM_TOKENIZER_AGGRESSIVE, err, DGM_ERR_FORMAT,
                "unknown tokenizer %d", (int)src->tokenizer);
    v->tokenizer = src->tokenizer;
    v->language = dgm_language_of(src->language);
    v->extra_first = v->size;
    DGM_TRY(dgm_spelling_list_init(&v->words, src->words, src->word_count, err));
    const bool opennmt = src->tokenizer >= DGM_TOKENIZER_CONSERVATIVE;
    if (src->kind == DGM_VOCAB_WORDS && src->tokenizer <= DGM_TOKENIZER_MOSES) return DGM_OK;
    DGM_FAIL_IF(src->kind == DGM_VOCAB_BPE && (!src->bpe || src->tokenizer == DGM_TOKENIZER_MOSES), err,
                DGM_ERR_FORMAT, "a bpe vocabulary has merges, and another tokenizer than moses");
    dgm_bpe_options options = {.style = DGM_BPE_WORDS};
    if (src->kind == DGM_VOCAB_BPE) options = *src->bpe;
    DGM_FAIL_IF(opennmt && options.style != DGM_BPE_JOINER && options.style != DGM_BPE_SPACER, err, DGM_ERR_FORMAT,
                "OpenNMT's tokenizer belongs to a bpe vocabulary of style joiner or spacer");
    if (opennmt)
        options.opennmt = src->tokenizer == DGM_TOKENIZER_AGGRESSIVE ? DGM_OPENNMT_AGGRESSIVE
                                                                     : DGM_OPENNMT_CONSERVATIVE;
    options.moses = src->tokenizer == DGM_TOKENIZER_SACREMOSES;
    options.moses_options = src->moses_options;
    options.language = src->language;
    DGM_TRY(dgm_subwords_open(&v->subwords, &options, &v->words, src->unk, err));
    v->control = dgm_calloc((size_t)v->size, sizeof *v->control);
    if (!v->control) return dgm_no_memory(err);
    for (size_t i = 0; i < src->control_count; i++) {
        DGM_TRY(check_id(src->control[i], v->size, "control", err));
        if (src->control[i] >= 0) v->control[src->control[i]] = true;
    }
    return DGM_OK;
}

static dgm_status open_parts(dgm_vocab *v, const dgm_vocab_source *src, dgm_error *err)
{
    v->kind = src->kind;
    v->size = src->size;
    DGM_FAIL_IF(v->size < 0 || v->size > DGM_VOCAB_MAX, err, DGM_ERR_FORMAT,
                "size %d is outside 1 .. %d", (int)v->size, DGM_VOCAB_MAX);
    if (v->kind == DGM_VOCAB_SENTENCEPIECE)
        DGM_TRY(open_spm(v, src, err));
    else if (v->kind == DGM_VOCAB_WORDS || v->kind == DGM_VOCAB_BPE)
        DGM_TRY(open_words(v, src, err));
    else
        return dgm_fail(err, DGM_ERR_FORMAT, "unknown kind %d", (int)v->kind);
    DGM_TRY(check_id(src->eos, v->size, "eos", err));
    DGM_TRY(check_id(src->unk, v->size, "unk", err));
    DGM_TRY(check_id(src->pad, v->size, "pad", err));
    DGM_TRY(check_id(src->bos, v->size, "bos", err));
    DGM_FAIL_IF(src->unk < 0, err, DGM_ERR_FORMAT, "no id for unknown words");
    v->eos = src->eos;
    v->unk = src->unk;
    v->pad = src->pad;
    v->bos = src->bos;
    v->drop_unk = src->drop_unk;
    if (v->spm && v->to_piece[v->unk] < 0) v->to_piece[v->unk] = dgm_spm_unk(v->spm);
    return DGM_OK;
}

dgm_status dgm_vocab_open(dgm_vocab **vocab, const dgm_vocab_source *source, dgm_error *err)
{
    *vocab = NULL;
    dgm_vocab *v = dgm_calloc(1, sizeof *v);
    if (!v) return dgm_no_memory(err);
    dgm_status st = open_parts(v, source, err);
    if (st != DGM_OK)
        dgm_vocab_close(&v);
    else
        *vocab = v;
    return st;
}

void dgm_vocab_close(dgm_vocab **vocab)
{
    if (!vocab || !*vocab) return;
    dgm_vocab *v = *vocab;
    dgm_spm_close(&v->spm);
    dgm_free(v->to_id);
    dgm_free(v->to_piece);
    dgm_subwords_close(&v->subwords);
    dgm_free(v->control);
    dgm_spelling_list_free(&v->words);
    dgm_free(v);
    *vocab = NULL;
}

// ---- properties ----------------------------------------------------------------------------

dgm_vocab_kind dgm_vocab_get_kind(const dgm_vocab *v)
{
    return v->kind;
}

bool dgm_vocab_takes_text(const dgm_vocab *v)
{
    if (v->kind == DGM_VOCAB_BPE) return dgm_subwords_takes_text(v->subwords);
    return v->kind == DGM_VOCAB_SENTENCEPIECE;
}

int32_t dgm_vocab_size(const dgm_vocab *v)
{
    return v->size;
}

int32_t dgm_vocab_eos(const dgm_vocab *v)
{
    return v->eos;
}

int32_t dgm_vocab_unk(const dgm_vocab *v)
{
    return v->unk;
}

int32_t dgm_vocab_pad(const dgm_vocab *v)
{
    return v->pad;
}

int32_t dgm_vocab_bos(const dgm_vocab *v)
{
    return v->bos;
}

dgm_text dgm_vocab_piece(const dgm_vocab *v, int32_t id)
{
    dgm_text piece = {"", 0};
    if (id < 0 || id >= v->size) return piece;
    if (!v->spm) return v->words.items[id];
    if (v->to_piece[id] >= 0)
        piece.data = dgm_spm_piece(v->spm, v->to_piece[id], &piece.size);
    else if (id >= v->extra_first)
        piece = v->words.items[id - v->extra_first];
    return piece;
}

int32_t dgm_vocab_id(const dgm_vocab *v, dgm_text piece)
{
    if (!v->spm) return dgm_spelling_find(&v->words, piece);
    int32_t found = dgm_spm_id(v->spm, piece.data ? piece.data : "", piece.size);
    if (found >= 0 && v->to_id[found] >= 0) return v->to_id[found];
    int32_t extra = dgm_spelling_find(&v->words, piece);
    return extra < 0 ? -1 : v->extra_first + extra;
}

bool dgm_vocab_is_unknown(const dgm_vocab *v, int32_t id)
{
    return id == v->unk;
}

bool dgm_vocab_is_control(const dgm_vocab *v, int32_t id)
{
    if (id < 0 || id >= v->size || id == v->eos || id == v->pad || id == v->bos) return true;
    if (!v->spm) return v->control && v->control[id];
    return v->to_piece[id] < 0 || dgm_spm_is_control(v->spm, v->to_piece[id]);
}

float dgm_vocab_score(const dgm_vocab *v, int32_t id)
{
    if (!v->spm || id < 0 || id >= v->size || v->to_piece[id] < 0) return 0;
    return dgm_spm_score(v->spm, v->to_piece[id]);
}

bool dgm_vocab_begins_word(const dgm_vocab *v, int32_t id)
{
    if (dgm_vocab_is_control(v, id)) return false;
    dgm_text piece = dgm_vocab_piece(v, id);
    if (v->subwords) return dgm_subwords_begins_word(v->subwords, piece);
    if (!v->spm) return true;
    return piece.size >= 3 && memcmp(piece.data, SPACE_MARK, 3) == 0;
}

// Bytes of a language's token at the beginning of text, ">>deu<<" or "<2de>"; 0: there is none.
static size_t language_size(dgm_text text)
{
    enum { LONGEST = 40 };
    static const char *const forms[][2] = {{">>", "<<"}, {"<2", ">"}};
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        const size_t n = strlen(forms[f][1]);
        if (text.size < 5 || memcmp(text.data, forms[f][0], 2) != 0) continue;
        for (size_t end = 3; end + n <= text.size && end < LONGEST; end++)
            if (memcmp(text.data + end, forms[f][1], n) == 0) return end + n;
    }
    return 0;
}

int32_t dgm_vocab_language_prefix(const dgm_vocab *v, dgm_text text, size_t *skip)
{
    const size_t size = language_size(text);
    const int32_t id = size ? dgm_vocab_id(v, (dgm_text){text.data, size}) : -1;
    *skip = 0;
    if (id < 0) return -1;
    *skip = size;
    while (*skip < text.size && text.data[*skip] == ' ') ++*skip;
    return id;
}

// ---- encode --------------------------------------------------------------------------------

void dgm_tokens_free(dgm_tokens *t)
{
    if (!t) return;
    dgm_free(t->ids);
    dgm_free(t->spans);
    *t = (dgm_tokens){0};
}

dgm_status dgm_tokens_push(dgm_tokens *t, int32_t id, dgm_span span, dgm_error *err)
{
    DGM_TRY(dgm_grow(&t->ids, &t->ids_cap, t->count + 1, sizeof *t->ids, err));
    DGM_TRY(dgm_grow(&t->spans, &t->spans_cap, t->count + 1, sizeof *t->spans, err));
    t->ids[t->count] = id;
    t->spans[t->count++] = span;
    return DGM_OK;
}

typedef struct encode_job {
    const dgm_vocab *v;
    dgm_text text;
    size_t bytes_from; // tokens from here on are bytes that wait for the span of their character
    dgm_tokens *out;
    dgm_error *err;
} encode_job;

static dgm_status take_token(void *arg, int32_t piece, uint32_t begin, uint32_t end)
{
    encode_job *job = arg;
    const dgm_vocab *v = job->v;
    const dgm_text part = dgm_text_trim((dgm_text){job->text.data + begin, end > begin ? end - begin : 0});
    dgm_span span;
    span.begin = (uint32_t)(part.data - job->text.data);
    span.end = span.begin + (uint32_t)part.size;
    int32_t id = v->to_id[piece];
    dgm_tokens *out = job->out;
    DGM_TRY(dgm_tokens_push(out, id < 0 ? v->unk : id, span, job->err));
    // Byte fallback: only the last byte of a character carries its span; give it to all of them.
    if (!dgm_spm_is_byte(v->spm, piece)) {
        job->bytes_from = out->count;
    } else if (part.size) {
        for (size_t i = job->bytes_from; i < out->count; i++) out->spans[i] = span;
        job->bytes_from = out->count;
    }
    return DGM_OK;
}

static dgm_status encode_spm(const dgm_vocab *v, dgm_text text, dgm_tokens *out, dgm_error *err)
{
    encode_job job = {.v = v, .text = text, .out = out, .err = err};
    return dgm_spm_encode(v->spm, text.data, text.size, take_token, &job, err);
}

// Runs between white space.
static dgm_status split_at_spaces(dgm_text text, dgm_ranges *out, dgm_error *err)
{
    out->count = 0;
    size_t begin = 0;
    for (size_t pos = 0; pos <= text.size;) {
        uint32_t code = ' ';
        size_t n = 1;
        if (pos < text.size) n = dgm_utf8_next(text.data + pos, text.size - pos, &code);
        if (dgm_char_is_space(code)) {
            if (pos > begin) {
                DGM_TRY(dgm_grow(&out->items, &out->cap, out->count + 1, sizeof *out->items, err));
                out->items[out->count++] = (dgm_range){begin, pos};
            }
            begin = pos + n;
        }
        pos += n;
    }
    return DGM_OK;
}

static dgm_status encode_words(const dgm_vocab *v, dgm_text text, dgm_tokens *out, dgm_error *err)
{
    dgm_ranges words = {0};
    dgm_status st = v->tokenizer == DGM_TOKENIZER_MOSES
                        ? dgm_moses_tokenize(text, v->language, &words, err)
                        : split_at_spaces(text, &words, err);
    for (size_t i = 0; st == DGM_OK && i < words.count; i++) {
        dgm_range r = words.items[i];
        int32_t id = dgm_spelling_find(&v->words, (dgm_text){text.data + r.begin, r.end - r.begin});
        if (id < 0 || dgm_vocab_is_control(v, id)) id = v->unk;
        st = dgm_tokens_push(out, id, (dgm_span){(uint32_t)r.begin, (uint32_t)r.end}, err);
    }
    dgm_ranges_free(&words);
    return st;
}

dgm_status dgm_vocab_encode(const dgm_vocab *v, dgm_text text, dgm_tokens *out, dgm_error *err)
{
    out->count = 0;
    DGM_FAIL_IF(text.size > INT32_MAX, err, DGM_ERR_TEXT, "text is longer than 2 GiB");
    if (text.size == 0) return DGM_OK;
    dgm_status st = v->spm        ? encode_spm(v, text, out, err)
                    : v->subwords ? dgm_vocab_encode_subwords(v, text, out, err)
                                  : encode_words(v, text, out, err);
    if (st != DGM_OK) out->count = 0;
    return st;
}

// ---- decode --------------------------------------------------------------------------------

// Tokens that make no text.
static bool is_silent(const dgm_vocab *v, int32_t id)
{
    return dgm_vocab_is_control(v, id) || (v->drop_unk && id == v->unk);
}

// An id whose text comes from elsewhere is never silent.
bool dgm_vocab_left_out(const dgm_vocab *v, int32_t id, const dgm_text *spelled, size_t i)
{
    return !(spelled && spelled[i].data) && is_silent(v, id);
}

typedef struct decode_job {
    dgm_writer *out;
    const size_t *from; // [pieces] index of the id that a piece came from
    size_t done, size;  // size: of the text
    dgm_span *spans;
    dgm_error *err;
} decode_job;

static dgm_status take_text(void *arg, const char *text, size_t size)
{
    decode_job *job = arg;
    job->size = size;
    dgm_write_bytes(job->out, text, size);
    return job->out->failed ? dgm_no_memory(job->err) : DGM_OK;
}

static dgm_status take_span(void *arg, int32_t piece, uint32_t begin, uint32_t end)
{
    decode_job *job = arg;
    (void)piece;
    if (!job->spans) return DGM_OK;
    // A denormaliser may have made the text shorter than what the spans were taken of.
    if (end > job->size) end = (uint32_t)job->size;
    job->spans[job->from[job->done++]] = (dgm_span){begin < end ? begin : end, end};
    return DGM_OK;
}

// Ids without text of their own stand, empty, where the one before them ended.
static void place_controls(const dgm_vocab *v, const int32_t *ids, const dgm_text *spelled,
                           size_t count, dgm_span *spans)
{
    uint32_t end = 0;
    for (size_t i = 0; i < count; i++) {
        if (dgm_vocab_left_out(v, ids[i], spelled, i)) spans[i] = (dgm_span){end, end};
        end = spans[i].end;
    }
}

static dgm_status decode_spm(const dgm_vocab *v, const int32_t *ids, size_t count, dgm_writer *out,
                             dgm_span *spans, dgm_error *err)
{
    int32_t piece_stack[STACK_IDS];
    size_t from_stack[STACK_IDS];
    int32_t *pieces = piece_stack;
    size_t *from = from_stack;
    if (count > STACK_IDS) {
        pieces = dgm_malloc(count * sizeof *pieces);
        from = dgm_malloc(count * sizeof *from);
    }
    dgm_status st = pieces && from ? DGM_OK : dgm_no_memory(err);
    size_t used = 0;
    for (size_t i = 0; st == DGM_OK && i < count; i++) {
        if (dgm_vocab_left_out(v, ids[i], NULL, i)) continue;
        pieces[used] = v->to_piece[ids[i]];
        from[used++] = i;
    }
    decode_job job = {.out = out, .from = from, .spans = spans, .err = err};
    if (st == DGM_OK && used)
        st = dgm_spm_decode(v->spm, pieces, used, take_text, take_span, &job, err);
    if (pieces != piece_stack) dgm_free(pieces);
    if (from != from_stack) dgm_free(from);
    return st;
}

static void join_words(const dgm_text *words, size_t count, dgm_writer *out, dgm_range *where)
{
    size_t start = out->size;
    for (size_t i = 0; i < count; i++) {
        if (i) dgm_write_u8(out, ' ');
        where[i].begin = out->size - start;
        dgm_write_bytes(out, words[i].data, words[i].size);
        where[i].end = out->size - start;
    }
}

static dgm_status decode_words(const dgm_vocab *v, const int32_t *ids, const dgm_text *spelled,
                               size_t count, dgm_writer *out, dgm_span *spans, dgm_error *err)
{
    dgm_text *words = dgm_calloc(count, sizeof *words);
    dgm_range *where = dgm_calloc(count, sizeof *where);
    dgm_status st = words && where ? DGM_OK : dgm_no_memory(err);
    size_t used = 0;
    for (size_t i = 0; st == DGM_OK && i < count; i++)
        if (!dgm_vocab_left_out(v, ids[i], spelled, i))
            words[used++] = spelled && spelled[i].data ? spelled[i] : v->words.items[ids[i]];
    if (st == DGM_OK) {
        if (v->tokenizer == DGM_TOKENIZER_MOSES)
            st = dgm_moses_detokenize(words, used, v->language, false, out, where, err);
        else
            join_words(words, used, out, where);
        if (out->failed) st = dgm_no_memory(err);
    }
    if (st == DGM_OK && spans)
        for (size_t i = 0, k = 0; i < count; i++)
            if (!dgm_vocab_left_out(v, ids[i], spelled, i)) {
                spans[i] = (dgm_span){(uint32_t)where[k].begin, (uint32_t)where[k].end};
                k++;
            }
    dgm_free(words);
    dgm_free(where);
    return st;
}

size_t dgm_vocab_settled(const dgm_vocab *v, const int32_t *ids, size_t count)
{
    if (v->subwords) return dgm_vocab_settled_subwords(v, ids, count);
    if (v->spm || v->tokenizer != DGM_TOKENIZER_MOSES) return count;
    for (size_t i = 0; i < count; i++)
        if (dgm_text_equal(v->words.items[ids[i]], dgm_text_of("\""))) return i;
    return count;
}

dgm_status dgm_vocab_decode(const dgm_vocab *v, const int32_t *ids, size_t count, dgm_writer *out,
                            dgm_span *spans, dgm_error *err)
{
    return dgm_vocab_decode_spelled(v, ids, NULL, count, out, spans, err);
}

dgm_status dgm_vocab_decode_spelled(const dgm_vocab *v, const int32_t *ids, const dgm_text *spelled,
                                    size_t count, dgm_writer *out, dgm_span *spans, dgm_error *err)
{
    size_t start = out->size;
    for (size_t i = 0; i < count; i++)
        DGM_FAIL_IF(ids[i] < 0 || ids[i] >= v->size, err, DGM_ERR_ARGUMENT,
                    "token id %d is outside the vocabulary of %d", (int)ids[i], (int)v->size);
    if (count == 0) return DGM_OK;
    dgm_status st = v->spm        ? decode_spm(v, ids, count, out, spans, err)
                    : v->subwords ? dgm_vocab_decode_subwords(v, ids, spelled, count, out, spans, err)
                                  : decode_words(v, ids, spelled, count, out, spans, err);
    if (st != DGM_OK) {
        out->size = start;
        return st;
    }
    if (spans) place_controls(v, ids, spelled, count, spans);
    return DGM_OK;
}
