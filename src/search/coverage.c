// SPDX-License-Identifier: MIT
// Coverage of the source by a whole hypothesis, from attention weights (Wu et al., 2016):
//
//   coverage = beta * sum over source tokens i of ln min(1, sum over steps t of a[t, i])
//
// added to the normalised score by which completed hypotheses are ranked; 0 where every source
// token got a whole step's attention in sum, less where some were passed over. The end symbol's
// step counts, as do all source tokens with the end symbol. A token without any attention costs
// beta * ln 1e-6, not everything.
//
// Weights are those of alignments: of the layer and head that the model names, of an ensemble's
// first member. In the tree they lie with the token that was fed, so a path of n tokens has
// n + 1 of them with the root's; where the end was forced, the last token was never fed. Pairs have two
// nodes each, and two for the pair that ends, which is not fed.
#include "search/search_private.h"

#include <math.h>

float dgm_coverage(const dgm_search *s, const dgm_active *p, int32_t node, bool finished)
{
    if (s->config.coverage == 0.0f) return 0.0f;
    const size_t source = (size_t)s->config.max_source;
    int unfed = s->pairs ? 2 : 0;
    if (!finished && s->finish->force_end) unfed += s->vectors;
    while (unfed-- > 0) node = p->nodes[node].parent;
    double total = 0;
    for (int i = 0; i < p->source_count; i++) {
        double seen = 0;
        for (int32_t n = node; n >= 0; n = p->nodes[n].parent)
            seen += (double)p->attention[(size_t)n * source + (size_t)i];
        total += log(fmin(fmax(seen, 1e-6), 1.0));
    }
    return s->config.coverage * (float)total;
}
