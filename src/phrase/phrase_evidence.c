// SPDX-License-Identifier: MIT
// A phrase-based system that many threads ask; see phrase_evidence.h. A decoder's memory is worth
// keeping, so those that nobody uses wait in a list: there are never more than threads asked at once.
#include "phrase/phrase_evidence.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "phrase/phrase_system.h"

struct dgm_phrases {
    dgm_phrase_system *system;
    bool lattices;
    pthread_mutex_t lock;
    dgm_phrase_worker *idle; // a list, guarded by lock
};

dgm_status dgm_phrases_open(dgm_phrases **out, const dgm_phrasal_options *o,
                            const dgm_vocab *const subwords[2], dgm_error *err)
{
    dgm_phrases *p = *out = dgm_calloc(1, sizeof *p);
    if (!p) return dgm_no_memory(err);
    if (pthread_mutex_init(&p->lock, NULL) != 0) {
        dgm_free(p);
        *out = NULL;
        return dgm_no_memory(err);
    }
    p->lattices = o->lattice != 0;
    const dgm_status st = dgm_phrase_system_open(&p->system, o, subwords, err);
    if (st != DGM_OK) dgm_phrases_close(out);
    return st;
}

void dgm_phrases_close(dgm_phrases **out)
{
    dgm_phrases *p = *out;
    if (!p) return;
    for (dgm_phrase_worker *w; (w = p->idle);) {
        p->idle = w->next;
        dgm_phrase_worker_close(&w);
    }
    dgm_phrase_system_close(&p->system);
    pthread_mutex_destroy(&p->lock);
    dgm_free(p);
    *out = NULL;
}

static dgm_status take_worker(dgm_phrases *p, dgm_phrase_worker **w, dgm_error *err)
{
    pthread_mutex_lock(&p->lock);
    *w = p->idle;
    if (*w) p->idle = (*w)->next;
    pthread_mutex_unlock(&p->lock);
    return *w ? DGM_OK : dgm_phrase_worker_open(w, p->system, err);
}

static void give_worker(dgm_phrases *p, dgm_phrase_worker *w)
{
    pthread_mutex_lock(&p->lock);
    w->next = p->idle;
    p->idle = w;
    pthread_mutex_unlock(&p->lock);
}

// As a list in a file has it.
static double as_printed(double score)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", score);
    return strtod(text, NULL);
}

static dgm_status make_list(const dgm_phrases *p, const dgm_pb_translation *found, int count,
                            dgm_candidate_list *list, dgm_error *err)
{
    for (int i = 0; i < count; i++) {
        DGM_TRY(dgm_wording_join(&p->system->wording[1], found[i].words, (size_t)found[i].count,
                                 &list->text, err));
        DGM_TRY(dgm_candidate_list_add(list, as_printed(found[i].score), err));
    }
    return DGM_OK;
}

dgm_status dgm_phrases_say(dgm_phrases *p, dgm_text line, dgm_candidate_list *list,
                           dgm_lattice **lattice, dgm_error *err)
{
    dgm_phrase_worker *w = NULL;
    const dgm_pb_translation *found;
    int count = 0;
    *lattice = NULL;
    dgm_candidate_list_clear(list);
    DGM_TRY(take_worker(p, &w, err));
    dgm_status st = dgm_phrase_worker_decode(w, line, &found, &count, err);
    if (st == DGM_OK)
        st = p->lattices ? dgm_phrase_worker_lattice(w, lattice, err)
                         : make_list(p, found, count, list, err);
    give_worker(p, w);
    return st;
}
