#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Perplexities of modified Kneser-Ney models, straight from the definitions, as text on standard output.

    python3 tests/oracle/make_lm.py > tests/data/lm/perplexity.txt

Needs nothing but Python. Counts are dictionaries of all n-grams of all orders, continuation counts sets
of the words seen before them, and p(w | h) is the recursion over interpolated orders: no backoff weights,
no ARPA file, no sorting, nothing in common with src/phrase. The text is a file of tests/data, its last
200 lines are held out. tests/unit/test_phrase_lm.c computes the same. A line of the output:

    ORDER PRUNE NGRAMS... | TOKENS UNKNOWN PERPLEXITY KNOWN | D1 D2 D3 of every order
"""
from collections import defaultdict
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data"
TEXT = DATA / "translate" / "newstest2014-1000.en"
HELD_OUT = 200
CASES = [(1, [0]), (2, [0, 0]), (3, [0, 0, 0]), (3, [0, 0, 1]), (4, [0, 0, 1, 2]), (5, [0] * 5),
         (5, [0, 1, 1, 1, 1])]


class Model:
    def __init__(self, lines, order, prune):
        self.order, self.prune = order, prune
        self.raw = [defaultdict(int) for _ in range(order + 1)]
        before = [defaultdict(set) for _ in range(order + 1)]
        for line in lines:
            words = ["<s>"] + line + ["</s>"]
            for end in range(1, len(words)):
                for n in range(1, order + 1):
                    if end - n + 1 < 0:
                        break
                    gram = tuple(words[end - n + 1:end + 1])
                    self.raw[n][gram] += 1
                    if end - n >= 0:
                        before[n][gram].add(words[end - n])
        self.words = {g[0] for g in self.raw[1]} | {"<unk>"}
        self.count = [{} for _ in range(order + 1)]
        self.discount = [[0, 0, 0, 0] for _ in range(order + 1)]
        self.follow = [defaultdict(list) for _ in range(order + 1)]
        for n in range(1, order + 1):
            for gram, raw in self.raw[n].items():
                whole = n == order or gram[0] == "<s>"
                self.count[n][gram] = raw if whole else len(before[n][gram])
                self.follow[n][gram[:-1]].append(gram)
            k = [sum(c == i for c in self.count[n].values()) for i in range(5)]
            y = k[1] / (k[1] + 2 * k[2])
            for i in (1, 2, 3):
                self.discount[n][i] = i - (i + 1) * y * k[i + 1] / k[i]
        self.memory = {}

    def kept(self, n, gram):
        return self.raw[n].get(gram, 0) > self.prune[n - 1]

    def d(self, n, gram):
        return self.discount[n][min(3, self.count[n][gram])]

    def context(self, n, history):
        """Sum of counts behind a history, and what is left of it for the order below."""
        key = (n, history)
        if key not in self.memory:
            grams = self.follow[n].get(history, [])
            total = sum(self.count[n][g] for g in grams)
            left = sum(self.d(n, g) if self.kept(n, g) else self.count[n][g] for g in grams)
            self.memory[key] = (total, left)
        return self.memory[key]

    def p(self, word, history):
        n = len(history) + 1
        below = self.p(word, history[1:]) if history else 1 / len(self.words)
        # A model file has no room for a history that was pruned itself.
        if n > 2 and not self.kept(n - 1, history):
            return below
        total, left = self.context(n, history)
        if total == 0:
            return below
        gram = history + (word,)
        own = self.count[n][gram] - self.d(n, gram) if self.kept(n, gram) else 0
        return own / total + left / total * below


def main():
    import math
    lines = [line.split() for line in TEXT.read_text(encoding="utf-8").splitlines()]
    train, test = lines[:-HELD_OUT], lines[-HELD_OUT:]
    train, test = [x for x in train if x], [x for x in test if x]
    for order, prune in CASES:
        m = Model(train, order, prune)
        sums, tokens = [0.0, 0.0], [0, 0]
        for line in test:
            words = [w if w in m.words else "<unk>" for w in line] + ["</s>"]
            past = ["<s>"]
            for w in words:
                history = tuple(past[max(0, len(past) - order + 1):]) if order > 1 else ()
                unknown = w == "<unk>"
                sums[unknown] += math.log(m.p(w, history))
                tokens[unknown] += 1
                past.append(w)
        grams = [sum(m.kept(n, g) for g in m.raw[n]) + (2 if n == 1 else 0)
                 for n in range(1, order + 1)]
        print(order, ",".join(map(str, prune)), *grams, "|", sum(tokens), tokens[1],
              f"{math.exp(-sum(sums) / sum(tokens)):.6f}", f"{math.exp(-sums[0] / tokens[0]):.6f}", "|",
              *(f"{m.discount[n][i]:.9f}" for n in range(1, order + 1) for i in (1, 2, 3)))


main()
