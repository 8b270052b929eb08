#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Minimum Bayes risk over an n-best list, straight from the definitions, as text on standard output.

    python3 tests/oracle/make_mbr.py > tests/data/mbr/expected.txt

Needs nothing but Python. For every line of tests/data/mbr/list.txt, utility and scale: expected sentence
scores of all translations against all others, with dictionaries of n-grams counted anew for every pair.
BLEU: words between blanks, orders 1 to 4, those that the hypothesis
has, zeros smoothed by halving (1/2, 1/4, ... of a match). chrF: characters without blanks, orders 1 to 6,
beta 2. tests/unit/test_text_pairwise.c computes the same. A line of the output:

    UTILITY SCALE LINE BEST GAIN...
"""
import math
from collections import Counter
from pathlib import Path

LIST = Path(__file__).resolve().parent.parent / "data" / "mbr" / "list.txt"


def grams(units, n):
    return Counter(tuple(units[i:i + n]) for i in range(len(units) - n + 1))


def bleu(hyp, ref):
    hyp, ref = hyp.split(), ref.split()
    if not hyp:
        return 0.0
    logs, used, smooth = 0.0, 0, 1.0
    matches = [sum((grams(hyp, n) & grams(ref, n)).values()) for n in range(1, 5)]
    if not any(matches):
        return 0.0
    for n in range(1, 5):
        total = max(len(hyp) - n + 1, 0)
        if total == 0:
            break
        used = n
        if matches[n - 1] == 0:
            smooth *= 2
            precision = 1 / (smooth * total)
        else:
            precision = matches[n - 1] / total
        logs += math.log(precision)
    brevity = 1.0 if len(hyp) >= len(ref) else math.exp(1 - len(ref) / len(hyp))
    return 100 * brevity * math.exp(logs / used)


def chrf(hyp, ref):
    hyp, ref = hyp.replace(" ", ""), ref.replace(" ", "")
    precision = recall = used = 0
    for n in range(1, 7):
        a, b = grams(hyp, n), grams(ref, n)
        if not a or not b:
            continue
        match = sum((a & b).values())
        precision += match / sum(a.values())
        recall += match / sum(b.values())
        used += 1
    if used == 0 or precision + recall == 0:
        return 0.0
    precision, recall = precision / used, recall / used
    return 100 * 5 * precision * recall / (4 * precision + recall)


def main():
    lists = {}
    for line in LIST.read_text().splitlines():
        number, text, _, score = (f.strip() for f in line.split("|||"))
        lists.setdefault(int(number), []).append((text, float(score)))
    for name, utility in ("bleu", bleu), ("chrf", chrf):
        for scale in 0, 1, 20:
            for number, entries in sorted(lists.items()):
                best = max(scale * s for _, s in entries)
                weights = [math.exp(scale * s - best) for _, s in entries]
                gains = [sum(w * utility(text, other) for w, (other, _) in zip(weights, entries))
                         / sum(weights) for text, _ in entries]
                choice = max(range(len(gains)), key=lambda i: (gains[i], -i))
                print(name, scale, number, choice, *(f"{g:.6f}" for g in gains))


main()
