// SPDX-License-Identifier: MIT
// Fuzz target: a line of a constraints file, and the automaton made of it. What is accepted must
// hold what demands.h promises; its texts, spelled byte by byte, become an automaton that is
// followed along the line itself, read from either side: states stay in range, offers can be taken, what is met stays
// met until the text goes on.
// Parsers: src/constraint/demands.c src/constraint/constraint_build.c src/constraint/constraint.c
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "constraint/constraint.h"
#include "constraint/demands.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

// Token 0 is the end symbol, token i writes byte i, token 32 (and no other) a space.
static dgm_surfaces *bytes_as_tokens(void)
{
    static dgm_surfaces s;
    static uint32_t at[258];
    static char bytes[256];
    static int32_t breaks[257], continues[257];
    if (s.count) return &s;
    for (int i = 0; i < 256; i++) {
        at[i] = (uint32_t)(i ? i - 1 : 0);
        if (i) bytes[i - 1] = (char)i;
        const dgm_text t = {bytes + at[i], i ? 1 : 0};
        if (i >= 128 || dgm_text_begins_in_word(t))
            continues[s.continue_count++] = i;
        else
            breaks[s.break_count++] = i;
    }
    at[256] = 255;
    s.at = at, s.bytes = bytes, s.breaks = breaks, s.continues = continues;
    s.count = 256;
    require(dgm_surfaces_from_right(&s, NULL) == DGM_OK);
    return &s;
}

static void follow(const dgm_constraint *c, const uint8_t *data, size_t size)
{
    static float costs[DGM_CONSTRAINT_SUBWORDS];
    int32_t state = dgm_constraint_start(c), tokens[16];
    int subwords[16];
    for (size_t i = 0; i < size; i++) {
        const int32_t *allow, *deny;
        int allowed, denied;
        bool broken;
        const int n = dgm_constraint_offers(c, state, tokens, subwords, 16);
        for (int k = 0; k < n; k++)
            require(tokens[k] > 0 && tokens[k] < 256 && subwords[k] < dgm_constraint_subwords(c));
        require(dgm_constraint_missing(c, state) >= 0);
        require(dgm_constraint_bank(c, state) < dgm_constraint_banks(c));
        require(dgm_constraint_debt(c, state, costs) == 0.0f);
        dgm_constraint_limits(c, state, &allow, &allowed, &deny, &denied);
        for (int k = 1; k < denied; k++) require(deny[k - 1] < deny[k]);
        state = dgm_constraint_advance(c, state, data[i], &broken);
        require(state >= 0);
        if (dgm_constraint_may_end(c, state)) require(dgm_constraint_missing(c, state) == 0);
        (void)dgm_constraint_list_name(c, allow);
    }
    int count = 0, ends = 0;
    const int32_t *all = dgm_constraint_tokens(c, &count), *end = dgm_constraint_end(c, &ends);
    for (int i = 1; i < count; i++) require(all[i - 1] < all[i]);
    require(!dgm_constraint_end_alone(c) || (end && ends > 0));
    for (int i = 0; i < dgm_constraint_subwords(c); i++) (void)dgm_constraint_subword_first(c, i);
    if (!dgm_constraint_forces(c) && size == 0) require(dgm_constraint_meets(c, all, 0, true));
    else require(!dgm_constraint_meets(c, all, count, true) || dgm_constraint_meets(c, all, count, false));
    int32_t spent[8];
    require(dgm_constraint_spent(c, state, spent, 8) <= 8);
}

// What was said too often is no more, and then nothing is.
static void lift(dgm_constraint *c, const dgm_pattern *p)
{
    dgm_constraint_lift(c, p->tokens, p->count);
    dgm_constraint_loosen(c, true);
    dgm_constraint_lift(c, NULL, 0);
    require(!dgm_constraint_limited(c));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 24 };
    dgm_demands d = {0};
    dgm_error err;
    if (dgm_demands_parse(&d, (dgm_text){(const char *)data, size}, &err) != DGM_OK) {
        require(d.count == 0 && strlen(err.text) > 0 && !strchr(err.text, '\n'));
        dgm_demands_free(&d);
        return 0;
    }
    static int32_t ids[MOST][64];
    dgm_pattern p[MOST];
    int count = 0, terms = 0;
    bool end = false;
    for (size_t i = 0; i < d.count; i++) {
        const dgm_demand *x = &d.items[i];
        require(x->count > 0 && x->first + x->count <= d.variant_count);
        const dgm_pattern_kind kind = x->kind == DGM_DEMAND_FORBID ? DGM_PATTERN_FORBID
                                      : x->kind == DGM_DEMAND_END  ? DGM_PATTERN_SUFFIX
                                                                   : DGM_PATTERN_TERM;
        const int before = count;
        for (size_t k = 0; k < x->count && count < MOST; k++) {
            const dgm_text v = dgm_demands_text(&d, d.variants[x->first + k]);
            require(v.size > 0);
            if (v.size > 64 || memchr(v.data, 0, v.size) || (kind == DGM_PATTERN_SUFFIX && end))
                continue;
            for (size_t n = 0; n < v.size; n++) ids[count][n] = (uint8_t)v.data[n];
            p[count] = (dgm_pattern){.kind = kind,
                                     .term = terms,
                                     .tokens = ids[count],
                                     .count = (int)v.size,
                                     .most = x->source.size ? 1 + (int)(x->source.size % 4) : 0};
            count++;
            end = end || kind == DGM_PATTERN_SUFFIX;
        }
        terms += kind == DGM_PATTERN_TERM && count > before;
    }
    dgm_constraint *c = NULL;
    if (count && dgm_constraint_compile(&c, bytes_as_tokens(), p, count, terms, &err) == DGM_OK)
        follow(c, data, size), lift(c, p);
    dgm_constraint_free(&c);
    if (count && dgm_constraint_compile_right(&c, bytes_as_tokens(), p, count, terms, &err) == DGM_OK)
        follow(c, data, size), lift(c, p);
    dgm_constraint_free(&c);
    dgm_demands_free(&d);
    return 0;
}
