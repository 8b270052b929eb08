// SPDX-License-Identifier: MIT
// Sentences as pairs and back.
//
//   bidirectional   y1 y2 y3 y4 y5   ->  (y1, y5) (y2, y4) (y3, EOD)
//   l2r                              ->  (y1, y2) (y3, y4) (y5, EOD)
//   r2l                              ->  (y5, y4) (y3, y2) (y1, EOD)
//
// An even number of words ends with (EOD, EOD): there are always n / 2 + 1 pairs. Of an odd number
// the left side has the word in the middle. Called by double.c for results, by tools/pairs.c for
// given translations.
#include "search/fold.h"

int dgm_fold_at(dgm_order order, int n, int pair, int side)
{
    const int middle = (n + 1) / 2; // the left words of pairs from both ends
    if (order != DGM_ORDER_BIDIRECTIONAL) {
        const int said = 2 * pair + side; // words before it
        if (said >= n) return n;
        return order == DGM_ORDER_R2L ? n - 1 - said : said;
    }
    if (side == 0) return pair < middle ? pair : n;
    return pair < n - middle ? n - 1 - pair : n;
}

// Pairs before the first EOD of a side.
static int until(const int32_t *tokens, int pairs, int side, int32_t eod)
{
    int t = 0;
    while (t < pairs && tokens[2 * t + side] != eod) t++;
    return t;
}

int dgm_double_unfold(dgm_order order, const int32_t *tokens, int pairs, int32_t eod, int32_t *places)
{
    const int left = until(tokens, pairs, 0, eod), right = until(tokens, pairs, 1, eod);
    int n = 0;
    if (order == DGM_ORDER_BIDIRECTIONAL) {
        for (int t = 0; t < left; t++) places[n++] = 2 * t;
        for (int t = right - 1; t >= 0; t--) places[n++] = 2 * t + 1;
        return n;
    }
    const int both = left < right ? left : right;
    for (; n < 2 * both; n++) places[n] = n;
    if (left > both) places[n++] = 2 * both;
    for (int i = 0; order == DGM_ORDER_R2L && i < n / 2; i++) {
        const int32_t swap = places[i];
        places[i] = places[n - 1 - i];
        places[n - 1 - i] = swap;
    }
    return n;
}
