// SPDX-License-Identifier: MIT
// A look at constraints for programs; see dragoman/text.h.
#include "constraint/demands.h"
#include "constraint/glossary.h"
#include "dragoman/text.h"

int dgm_constraints_like_terms(const char *constraints, size_t constraints_size, const char *text,
                               size_t text_size)
{
    if (!constraints || !text || !constraints_size) return 0;
    dgm_demands d = {0};
    const dgm_text line = {text, text_size};
    bool like = dgm_demands_parse(&d, (dgm_text){constraints, constraints_size}, NULL) == DGM_OK &&
                d.count == 2;
    for (size_t i = 0; like && i < d.count; i++) {
        const dgm_demand *x = &d.items[i];
        like = x->kind == DGM_DEMAND_TERM && x->source.size == 0 && x->count == 1;
    }
    size_t at = 0;
    like = like && dgm_term_find(line, dgm_demands_text(&d, d.variants[d.items[0].first]), &at);
    dgm_demands_free(&d);
    return like;
}
