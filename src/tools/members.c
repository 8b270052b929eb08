// SPDX-License-Identifier: MIT
// Several model files that become one; see members.h.
#include "tools/members.h"

#include <math.h>
#include <string.h>

dgm_status dgm_members_weigh(const char *const *names, const double *weights, size_t count,
                             double *shares, dgm_error *err)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        shares[i] = weights ? weights[i] : 1.0;
        DGM_FAIL_IF(!(shares[i] > 0) || isinf(shares[i]), err, DGM_ERR_ARGUMENT,
                    "the weight of '%s' must be a positive number", names[i]);
        sum += shares[i];
    }
    for (size_t i = 0; i < count; i++) shares[i] /= sum;
    return DGM_OK;
}

static bool same_value(const dgm_meta *a, const dgm_meta *b)
{
    return b && a->type == b->type && a->elem_type == b->elem_type && a->count == b->count &&
           a->raw_size == b->raw_size && memcmp(a->raw, b->raw, a->raw_size) == 0;
}

// A key of a with one of the prefixes that b lacks or has with another value.
static const char *differs(const dgm_gguf *a, const dgm_gguf *b, const char *const *prefixes)
{
    for (int i = 0; i < dgm_gguf_meta_count(a); i++) {
        const dgm_meta *m = dgm_gguf_meta(a, i);
        bool matters = false;
        for (int k = 0; prefixes[k]; k++)
            matters |= strncmp(m->key, prefixes[k], strlen(prefixes[k])) == 0;
        if (matters && !same_value(m, dgm_gguf_find(b, m->key))) return m->key;
    }
    return NULL;
}

const char *dgm_members_differ(const dgm_gguf *a, const dgm_gguf *b, const char *const *prefixes)
{
    const char *key = differs(a, b, prefixes);
    return key ? key : differs(b, a, prefixes);
}
