// SPDX-License-Identifier: MIT
// The most probable pieces of a text by a unigram model: Viterbi's algorithm, from character to character.
//
// The arithmetic is the library's, since the last bit of a sum decides between equal ways: the score of the best way
// to a place is kept as a float, a piece's is added to it as a double, and the sum is compared before it is rounded;
// the first of equal ways stays. Only the sum for an unknown character is one of floats.
#include "base/mem.h"
#include "text/spm_private.h"

typedef struct place { // the best way to a byte of the text
    float score;
    int32_t id;
    int32_t from; // where its last piece begins; -1: no way yet
} place;

static void offer(place *p, double score, int32_t from, int32_t id)
{
    if (p->from >= 0 && !(score > (double)p->score)) return;
    *p = (place){(float)score, id, from};
}

static double score_of(const dgm_spm *spm, const dgm_spm_record *p)
{
    if (p->type == SPM_USER)
        return (double)((float)(size_t)p->size * spm->max_score) -
               0.1; // outdoes all ways of others
    return (double)p->score;
}

// Ways over all pieces that begin at `from`.
static void extend(const dgm_spm *spm, const char *text, size_t size, size_t from, place *places)
{
    const dgm_spm_index *x = &spm->index;
    const float till_here = places[from].score;
    const size_t one = dgm_spm_step(text + from, size - from);
    const size_t last = spm->longest < size - from ? from + spm->longest : size; // marks alone may lead on and on
    bool has_one = false;
    uint64_t hash = SPM_HASH_FIRST;
    for (size_t end = from; end < last;) {
        hash = dgm_spm_hash(hash, text[end++]);
        const unsigned marks = dgm_spm_marks(x, hash);
        const int32_t id =
            marks & SPM_ENDS ? dgm_spm_ordinary(spm, x, hash, text + from, end - from) : -1;
        if (id >= 0 && spm->pieces[id].type != SPM_UNUSED) {
            offer(&places[end], score_of(spm, &spm->pieces[id]) + (double)till_here, (int32_t)from,
                  id);
            has_one |= end - from == one;
        }
        if (!(marks & SPM_BEGINS)) break;
    }
    if (has_one) return;
    const float sum = spm->unk_score + till_here;
    offer(&places[from + one], (double)sum, (int32_t)from, spm->unk);
}

dgm_status dgm_spm_unigram(const dgm_spm *spm, const char *text, size_t size, dgm_spm_parts *parts,
                           dgm_error *err)
{
    place *places = dgm_malloc((size + 1) * sizeof *places);
    if (!places) return dgm_no_memory(err);
    for (size_t i = 0; i <= size; i++) places[i] = (place){0, -1, -1};
    for (size_t at = 0; at < size; at += dgm_spm_step(text + at, size - at))
        extend(spm, text, size, at, places);
    size_t count = 0;
    for (size_t end = size; end > 0; end = (size_t)places[end].from) count++;
    const dgm_status st = dgm_grow(&parts->items, &parts->cap, count, sizeof *parts->items, err);
    parts->count = st == DGM_OK ? count : 0;
    for (size_t end = size; count > 0 && st == DGM_OK; end = (size_t)places[end].from)
        parts->items[--count] = (dgm_spm_part){(uint32_t)end, places[end].id};
    dgm_free(places);
    return st;
}
