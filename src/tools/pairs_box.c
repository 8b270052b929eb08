// SPDX-License-Identifier: MIT
// What is known of given translations, as the caller sees it; see pairs_box.h.
#include "tools/pairs_box.h"

#include "base/mem.h"

void dgm_pair_scores_free(dgm_pair_scores **scores)
{
    if (!scores || !*scores) return;
    dgm_pair_box *box = (dgm_pair_box *)(void *)*scores;
    *scores = NULL;
    for (size_t i = 0; box->items && i < box->pub.count; i++) {
        dgm_free((void *)(uintptr_t)box->items[i].tokens);
        if (box->items[i].message && box->items[i].message[0])
            dgm_free((void *)(uintptr_t)box->items[i].message);
    }
    dgm_free(box->items);
    dgm_free(box->list);
    dgm_free(box);
}

dgm_pair_box *dgm_pair_box_open(size_t count)
{
    dgm_pair_box *box = dgm_calloc(1, sizeof *box);
    if (!box) return NULL;
    dgm_pair_scores *pub = &box->pub;
    box->items = dgm_calloc(count + 1, sizeof *box->items);
    box->list = dgm_calloc(count + 1, sizeof *box->list);
    if (!box->items || !box->list) {
        dgm_pair_scores_free(&pub);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        box->items[i] = (dgm_pair_score){.size = sizeof box->items[i], .message = ""};
        box->list[i] = &box->items[i];
    }
    *pub = (dgm_pair_scores){.size = sizeof *pub, .items = box->list, .count = count};
    return box;
}
