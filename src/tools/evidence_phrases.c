// SPDX-License-Identifier: MIT
// What a translator's phrase-based system says about lines, without translating them: for who
// translates the same lines again and again, as `translate --lmbr-tune` does. The threads are those that
// prepare lines (engine/text_stage.c).
#include "base/mem.h"
#include "dragoman/tools.h"
#include "engine/engine_private.h"
#include "lattice/candidate_list.h"
#include "phrase/phrase_evidence.h"

typedef struct said {
    dgm_candidate_list list; // of a lattice that stays one, its text
    bool lattice;
    dgm_status status;
    dgm_error error;
} said;

typedef struct decoding {
    const dgm_translator *t;
    const dgm_direction *directions; // [lines]; NULL: the translator's
    const dgm_line *lines;
    size_t nbest;
    said *out; // [lines]
} decoding;

// The system of a line's direction; NULL: it has none.
static dgm_status system_of(const decoding *d, size_t line, dgm_phrases **system, dgm_error *err)
{
    int direction[2];
    bool other;
    DGM_TRY(dgm_direction_line(d->t, d->directions ? &d->directions[line] : NULL, direction, &other, err));
    *system = dgm_phrases_for(d->t, direction);
    return DGM_OK;
}

static dgm_status decode(const decoding *d, size_t number, said *out, dgm_error *err)
{
    const dgm_line line = d->lines[number];
    dgm_phrases *system = NULL;
    DGM_TRY(system_of(d, number, &system, err));
    if (!system) return DGM_OK;
    dgm_lattice *words = NULL;
    dgm_writer clean = {0};
    bool repaired;
    dgm_status st = dgm_line_clean((dgm_text){line.data, line.size}, &clean, &repaired, err);
    const dgm_text text = dgm_text_trim((dgm_text){(const char *)clean.data, clean.size});
    if (st == DGM_OK && text.size)
        st = dgm_phrases_say(system, text, &out->list, &words, err);
    if (st == DGM_OK && words && d->nbest)
        st = dgm_candidate_list_paths(&out->list, words, d->nbest, err);
    else if (st == DGM_OK && words)
        st = dgm_lattice_write(words, DGM_LATTICE_NATIVE, &out->list.text, err);
    out->lattice = words && !d->nbest;
    dgm_lattice_close(&words);
    dgm_writer_free(&clean);
    return st;
}

static void decode_part(void *arg, int who, size_t part)
{
    const decoding *d = arg;
    said *out = &d->out[part];
    (void)who;
    out->status = decode(d, part, out, &out->error);
}

static dgm_status hand_over(said *s, int (*take)(void *, const dgm_evidence *), void *cookie,
                            dgm_error *err)
{
    dgm_evidence e = dgm_candidate_list_evidence(&s->list);
    if (s->lattice)
        e = (dgm_evidence){.size = sizeof e,
                           .lattice = (const char *)s->list.text.data,
                           .lattice_size = s->list.text.size};
    DGM_FAIL_IF(take(cookie, &e) != 0, err, DGM_ERR_CANCELLED, "stopped on request");
    return DGM_OK;
}

dgm_status dgm_evidence_decode(dgm_translator *t, const dgm_line *lines, size_t count, size_t nbest,
                               int (*take)(void *, const dgm_evidence *), void *cookie,
                               dgm_error *err)
{
    return dgm_evidence_decode_directed(t, lines, NULL, count, nbest, take, cookie, err);
}

dgm_status dgm_evidence_decode_directed(dgm_translator *t, const dgm_line *lines, const dgm_direction *directions,
                                        size_t count, size_t nbest, int (*take)(void *, const dgm_evidence *),
                                        void *cookie, dgm_error *err)
{
    DGM_FAIL_IF(t->phrase_count == 0, err, DGM_ERR_ARGUMENT,
                "the translator was opened without a phrase-based system");
    decoding d = {.t = t, .directions = directions, .lines = lines, .nbest = nbest};
    d.out = dgm_calloc(count + 1, sizeof *d.out);
    if (!d.out) return dgm_no_memory(err);
    dgm_text_share(t, decode_part, &d, count);
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < count; i++) {
        if (st == DGM_OK && (st = d.out[i].status) != DGM_OK)
            dgm_fail(err, st, "line %zu: %s", i + 1, d.out[i].error.text);
        if (st == DGM_OK) st = hand_over(&d.out[i], take, cookie, err);
        dgm_candidate_list_free(&d.out[i].list);
    }
    dgm_free(d.out);
    return st;
}
