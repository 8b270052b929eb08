// SPDX-License-Identifier: MIT
// Results of routes: taken from the jobs of their steps, and those of two steps made into one.
#include <string.h>

#include "base/mem.h"
#include "tools/route_private.h"

dgm_status dgm_route_box(size_t count, dgm_results_box **out, dgm_error *err)
{
    dgm_results_box *box = *out = dgm_calloc(1, sizeof *box);
    if (!box) return dgm_no_memory(err);
    box->items = dgm_calloc(count ? count : 1, sizeof *box->items);
    box->list = dgm_calloc(count ? count : 1, sizeof *box->list);
    if (!box->items || !box->list) return dgm_no_memory(err);
    box->pub = (dgm_results){.size = sizeof box->pub, .items = box->list, .count = count};
    for (size_t i = 0; i < count; i++) {
        box->items[i] = (dgm_result){.size = sizeof box->items[i], .message = ""};
        box->list[i] = &box->items[i];
    }
    return DGM_OK;
}

static dgm_result *item(dgm_results *r, size_t index)
{
    return &((dgm_results_box *)(void *)r)->items[index]; // pub is the first member
}

void dgm_route_move(dgm_results *from, size_t index, dgm_result *out)
{
    dgm_result *r = item(from, index);
    *out = *r;
    *r = (dgm_result){.size = sizeof *r, .message = ""};
}

// Room for n translations, as assemble.c makes it: where each is, and behind that the translations.
static dgm_translation *make_room(dgm_result *out, size_t n, dgm_error *err)
{
    const dgm_translation **list = dgm_calloc(n, sizeof *list + sizeof **list);
    if (!list) {
        dgm_no_memory(err);
        return NULL;
    }
    dgm_translation *made = (dgm_translation *)(void *)(list + n);
    for (size_t i = 0; i < n; i++) {
        list[i] = &made[i];
        made[i].size = sizeof made[i];
    }
    out->translations = list;
    out->count = n;
    return made;
}

dgm_status dgm_route_copy(dgm_text text, dgm_result *out, dgm_error *err)
{
    dgm_translation *made = make_room(out, 1, err);
    if (!made) return DGM_ERR_MEMORY;
    made->text = dgm_strndup(text.size ? text.data : "", text.size);
    if (!made->text) return dgm_no_memory(err);
    made->text_size = text.size;
    made->finished = 1;
    out->flags |= DGM_LINE_COPIED;
    return DGM_OK;
}

// ---- two steps -----------------------------------------------------------------------------------

// Links of both steps, one behind the other, sorted by target, then source.
static dgm_status compose_links(const dgm_translation *a, const dgm_translation *b, dgm_translation *out,
                                dgm_error *err)
{
    size_t count = 0, cap = 0;
    dgm_link *links = NULL;
    for (size_t i = 0; i < b->link_count; i++)
        for (size_t k = 0; k < a->link_count; k++) {
            if (a->links[k].target != b->links[i].source) continue;
            const dgm_link one = {a->links[k].source, b->links[i].target};
            size_t at = count;
            while (at > 0 && links[at - 1].target == one.target && links[at - 1].source > one.source) at--;
            if (at > 0 && links[at - 1].target == one.target && links[at - 1].source == one.source) continue;
            const dgm_status st = dgm_grow(&links, &cap, count + 1, sizeof *links, err);
            if (st != DGM_OK) {
                dgm_free(links);
                return st;
            }
            memmove(&links[at + 1], &links[at], (count - at) * sizeof *links);
            links[at] = one;
            count++;
        }
    dgm_free((void *)(uintptr_t)out->links);
    out->links = links;
    out->link_count = count;
    return DGM_OK;
}

// Translation `by` of what the first step's translation `of` became.
typedef struct pick {
    size_t of, by;
    float score;
} pick;

// The best of all, no text twice, ties in the order of the lists. Returns how many.
static size_t pick_best(const dgm_result *first, dgm_results *second, size_t at, pick *best, size_t most)
{
    size_t count = 0;
    for (size_t k = 0; k < first->count; k++) {
        const dgm_result *r = item(second, at + k);
        for (size_t j = 0; r->status == DGM_OK && j < r->count; j++) {
            const pick one = {k, j, first->translations[k]->score + r->translations[j]->score};
            size_t place = count;
            bool known = false;
            for (size_t i = 0; i < count && !known; i++) {
                const dgm_result *other = item(second, at + best[i].of);
                known = strcmp(other->translations[best[i].by]->text, r->translations[j]->text) == 0 &&
                        best[i].score >= one.score;
            }
            while (place > 0 && best[place - 1].score < one.score) place--;
            if (known || place == most) continue;
            if (count == most) count--;
            memmove(&best[place + 1], &best[place], (count - place) * sizeof *best);
            best[place] = one;
            count++;
        }
    }
    return count;
}

static dgm_status take_picks(const dgm_result *first, dgm_results *second, size_t at, const pick *best, size_t count,
                             dgm_result *out, dgm_error *err)
{
    dgm_translation *made = make_room(out, count, err);
    if (!made) return DGM_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const dgm_translation *a = first->translations[best[i].of];
        dgm_translation *b = (dgm_translation *)(uintptr_t)item(second, at + best[i].of)->translations[best[i].by];
        made[i] = *b;
        made[i].pivot = dgm_strdup(a->text);
        b->text = NULL; // they are ours now
        b->tokens = NULL;
        b->links = NULL;
        made[i].score = best[i].score;
        made[i].sum += a->sum;
        made[i].finished = made[i].finished && a->finished;
        if (!made[i].pivot) return dgm_no_memory(err);
        if (made[i].links) DGM_TRY(compose_links(a, &made[i], &made[i], err));
    }
    return DGM_OK;
}

// What there is to say of both steps, and of the terms between them.
static dgm_status join_notices(const char *const *notices, size_t count, dgm_result *out, dgm_error *err)
{
    dgm_writer w = {0};
    for (size_t i = 0; i < count; i++) {
        if (!notices[i]) continue;
        if (w.size) dgm_write_text(&w, "; ");
        dgm_write_text(&w, notices[i]);
    }
    out->notice = w.size || w.failed ? dgm_writer_take(&w, NULL) : NULL;
    return w.failed ? dgm_no_memory(err) : DGM_OK;
}

dgm_status dgm_route_compose(dgm_results *first, size_t line, dgm_results *second, size_t at,
                             const dgm_route_kept *kept, int nbest, dgm_result *out, dgm_error *err)
{
    dgm_result *a = item(first, line);
    if (a->status != DGM_OK) {
        dgm_route_move(first, line, out);
        return DGM_OK;
    }
    pick *best = dgm_malloc(((size_t)nbest + 1) * sizeof *best);
    if (!best) return dgm_no_memory(err);
    const size_t count = pick_best(a, second, at, best, (size_t)nbest);
    if (count == 0) { // the second step says why
        dgm_free(best);
        dgm_route_move(second, at, out);
        return DGM_OK;
    }
    dgm_result *b = item(second, at + best[0].of);
    const char *const notices[] = {kept->notice, a->notice, b->notice};
    *out = *a; // what is known of the source
    out->translations = NULL;
    out->count = 0;
    out->flags |= b->flags | kept->flags;
    out->source_code = b->source_code;
    out->target_code = b->target_code;
    out->ngrams = b->ngrams; // of its evidence
    out->ngram_count = b->ngram_count;
    b->ngrams = NULL;
    b->ngram_count = 0;
    dgm_status st = join_notices(notices, sizeof notices / sizeof *notices, out, err);
    if (st == DGM_OK) st = take_picks(a, second, at, best, count, out, err);
    dgm_free(best);
    return st;
}
