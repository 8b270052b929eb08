// SPDX-License-Identifier: MIT
// Sentences as pairs and back.
//
//   bidirectional   y1 y2 y3 y4 y5   ->  (y1, y5) (y2, y4) (y3, EOD)
//   l2r                              ->  (y1, y2) (y3, y4) (y5, EOD)
//   r2l                              ->  (y5, y4) (y3, y2) (y1, EOD)
//
// An even number of words ends with (EOD, EOD): there are always n / 2 + 1 pairs. Of an odd number
// the left side has the word in the middle. Called by double.c for results; folding is what models
// are trained with, and what tests start from.
#include "search/double_private.h"

int dgm_double_fold(dgm_order order, const int32_t *words, int n, int32_t eod, int32_t *tokens)
{
    const int pairs = n / 2 + 1, half = (n + 1) / 2;
    for (int t = 0; t < pairs; t++) {
        int left = t, right = t < n - half ? n - 1 - t : n;
        if (t >= half) left = n;
        if (order != DGM_ORDER_BIDIRECTIONAL) {
            left = 2 * t < n ? 2 * t : n;
            right = 2 * t + 1 < n ? 2 * t + 1 : n;
        }
        if (order == DGM_ORDER_R2L) {
            left = left < n ? n - 1 - left : n;
            right = right < n ? n - 1 - right : n;
        }
        tokens[2 * t] = left < n ? words[left] : eod;
        tokens[2 * t + 1] = right < n ? words[right] : eod;
    }
    return pairs;
}

// Pairs before the first EOD of a side.
static int until(const int32_t *tokens, int pairs, int side, int32_t eod)
{
    int t = 0;
    while (t < pairs && tokens[2 * t + side] != eod) t++;
    return t;
}

int dgm_double_unfold(dgm_order order, const int32_t *tokens, int pairs, int32_t eod,
                      int32_t *sentences)
{
    const int left = until(tokens, pairs, 0, eod), right = until(tokens, pairs, 1, eod);
    int n = 0;
    if (order == DGM_ORDER_BIDIRECTIONAL) {
        for (int t = 0; t < left; t++) sentences[n++] = 2 * t;
        for (int t = right - 1; t >= 0; t--) sentences[n++] = 2 * t + 1;
        return n;
    }
    const int both = left < right ? left : right;
    for (; n < 2 * both; n++) sentences[n] = n;
    if (left > both) sentences[n++] = 2 * both;
    for (int i = 0; order == DGM_ORDER_R2L && i < n / 2; i++) {
        const int32_t swap = sentences[i];
        sentences[i] = sentences[n - 1 - i];
        sentences[n - 1 - i] = swap;
    }
    return n;
}
