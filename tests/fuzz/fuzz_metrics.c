// SPDX-License-Identifier: MIT
// libFuzzer target: BLEU and chrF of any bytes. Line 1 is the hypothesis, the others are
// references; the first byte chooses tokenizer and options. Scores must lie in 0 .. 100, a text
// scored against itself must get 100 (or have nothing to score).
// Parsers: src/metrics/bleu_tokenize.c src/metrics/bleu.c src/metrics/chrf.c src/metrics/grams.c
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "metrics/metrics.h"

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) abort();                                                                      \
    } while (0)

enum { LINES = 6 };

static void score(const dgm_metric_options *o, const dgm_text *lines, size_t count)
{
    dgm_metric *m;
    REQUIRE(dgm_metric_open(&m, o, NULL) == DGM_OK);
    int64_t row[DGM_METRIC_WIDTH_MAX];
    dgm_metric_score s;
    if (count > 1) {
        REQUIRE(dgm_metric_segment(m, lines[0], lines + 1, count - 1, row, NULL) == DGM_OK);
        for (int i = 0; i < dgm_metric_width(m); i++) REQUIRE(row[i] >= 0);
        dgm_metric_score_of(m, row, &s);
        REQUIRE(s.score >= 0 && s.score <= 100.000001);
        dgm_bootstrap b;
        REQUIRE(dgm_metric_bootstrap(m, row, row, 1, 3, 1, &b, NULL) == DGM_OK);
    }
    REQUIRE(dgm_metric_segment(m, lines[0], lines, 1, row, NULL) == DGM_OK);
    dgm_metric_score_of(m, row, &s);
    bool anything = o->kind == DGM_METRIC_BLEU ? row[0] >= o->max_order : row[0] > 0;
    REQUIRE(!anything || fabs(s.score - 100) < 1e-9);
    dgm_metric_close(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t live = dgm_mem_live();
    if (size < 1) return 0;
    dgm_text lines[LINES];
    size_t count = 0, begin = 1;
    for (size_t i = 1; i <= size && count < LINES; i++)
        if (i == size || data[i] == '\n') {
            lines[count++] = (dgm_text){(const char *)data + begin, i - begin};
            begin = i + 1;
        }
    if (count == 0) return 0;
    dgm_metric_options o;
    dgm_metric_options_default(&o, DGM_METRIC_BLEU);
    o.tokenizer = (dgm_bleu_tokenizer)(data[0] % 5);
    o.lowercase = data[0] & 8;
    o.smooth = (dgm_bleu_smooth)(data[0] >> 4 & 3);
    o.effective_order = data[0] & 64;
    score(&o, lines, count);
    dgm_bleu_tokenizer tokenizer;
    dgm_bleu_smooth smooth;
    REQUIRE(dgm_bleu_tokenizer_of(dgm_bleu_tokenizer_name(o.tokenizer), &tokenizer) && tokenizer == o.tokenizer);
    REQUIRE(dgm_bleu_smooth_of(dgm_bleu_smooth_name(o.smooth), &smooth) && smooth == o.smooth);
    REQUIRE(!dgm_bleu_tokenizer_of("", &tokenizer) && !dgm_bleu_smooth_of("", &smooth));
    dgm_metric_options_default(&o, DGM_METRIC_CHRF);
    o.lowercase = data[0] & 8;
    o.word_order = data[0] & 3;
    o.whitespace = data[0] & 16;
    score(&o, lines, count);
    REQUIRE(dgm_mem_live() == live);
    return 0;
}
