# SPDX-License-Identifier: MIT
"""BLEU for validation during training (the reported scores come from `dragoman eval`, equal to sacreBLEU).

Corpus BLEU, one reference, exponential smoothing, tokenised by the rules of mteval-v13a without its rare cases.
"""
import math
import re
from collections import Counter

PUNCTUATION = re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])")
AFTER_NON_DIGIT, BEFORE_NON_DIGIT = re.compile(r"([^0-9])([\.,])"), re.compile(r"([\.,])([^0-9])")
DASH = re.compile(r"([0-9])(-)")


def tokens(text):
    text = PUNCTUATION.sub(r" \1 ", f" {text} ")
    text = BEFORE_NON_DIGIT.sub(r" \1 \2", AFTER_NON_DIGIT.sub(r"\1 \2 ", text))
    return DASH.sub(r"\1 \2 ", text).split()


def bleu(hypotheses, references):
    match, total, hyp_len, ref_len = [0] * 4, [0] * 4, 0, 0
    for h, r in zip(map(tokens, hypotheses), map(tokens, references)):
        hyp_len, ref_len = hyp_len + len(h), ref_len + len(r)
        for n in range(1, 5):
            a = Counter(tuple(h[i:i + n]) for i in range(len(h) - n + 1))
            b = Counter(tuple(r[i:i + n]) for i in range(len(r) - n + 1))
            match[n - 1] += sum((a & b).values())
            total[n - 1] += max(0, len(h) - n + 1)
    if not hyp_len or not total[3]:
        return 0.0
    logs, smooth = 0.0, 1.0
    for m, t in zip(match, total):
        if m == 0:
            smooth *= 2.0
        logs += math.log(100.0 * m / t if m else 100.0 / (smooth * t))
    return math.exp(logs / 4 + min(0.0, 1.0 - ref_len / hyp_len))
