# SPDX-License-Identifier: MIT
"""Alignment of two lists of texts by length (Gale and Church 1993), with anchors: numbers, names and tags count as well.

`align(a, b)` returns beads [(i0, i1, j0, j1)]: a[i0:i1] belongs to b[j0:j1]; an empty side is a text without a partner.
"""
import math
import re

BEADS = {(1, 1): 0.0, (1, 0): 4.6, (0, 1): 4.6, (2, 1): 2.4, (1, 2): 2.4, (2, 2): 4.5}  # -log of the paper's priors, about
VARIANCE = 6.8
ANCHOR = re.compile(r"\d+|[A-Z]{2,}\w*|[\w.-]+/[\w./-]+|--?[a-z][\w-]+|\w+_\w+|\w+\(\d\)")


def mismatch(la, lb, ratio=1.0):
    """-log of the probability that texts of these lengths translate each other."""
    if la == 0 and lb == 0:
        return 0.0
    mean = (la * ratio + lb) / 2 + 1
    z = abs(lb - la * ratio) / math.sqrt(VARIANCE * mean)
    tail = math.erfc(z / math.sqrt(2))
    return -math.log(tail) if tail > 1e-14 else 32.0


def anchors(text):
    return set(ANCHOR.findall(text))


def anchor_cost(x, y):
    if not x and not y:
        return 0.0
    return 3.0 * (1 - 2 * len(x & y) / (len(x) + len(y))) - 1.0


def align(a, b, kinds_a=None, kinds_b=None, band=60):
    """Dynamic programming over beads. kinds: what each text is (heading, item); a bead of two kinds costs more."""
    n, m = len(a), len(b)
    la, lb = [len(t) for t in a], [len(t) for t in b]
    aa, ab = [anchors(t) for t in a], [anchors(t) for t in b]
    ratio = min(1.6, max(0.7, sum(lb) / max(1, sum(la))))
    best = {(0, 0): (0.0, None)}
    band = max(band, abs(n - m) + 20)
    for i in range(n + 1):
        centre = i * m // n if n else 0
        for j in range(max(0, centre - band), min(m, centre + band) + 1):
            if (i, j) == (0, 0):
                continue
            found = None
            for (di, dj), prior in BEADS.items():
                before = best.get((i - di, j - dj))
                if before is None or i < di or j < dj:
                    continue
                cost = before[0] + prior
                if di and dj:
                    cost += mismatch(sum(la[i - di:i]), sum(lb[j - dj:j]), ratio)
                    cost += anchor_cost(set().union(*aa[i - di:i]), set().union(*ab[j - dj:j]))
                    if kinds_a and set(kinds_a[i - di:i]) != set(kinds_b[j - dj:j]):
                        cost += 5.0
                if found is None or cost < found[0]:
                    found = (cost, (di, dj))
            if found:
                best[i, j] = found
    if (n, m) not in best:
        return []
    beads, i, j = [], n, m
    while (i, j) != (0, 0):
        di, dj = best[i, j][1]
        beads.append((i - di, i, j - dj, j))
        i, j = i - di, j - dj
    return beads[::-1]


def sentence_pairs(a, b):
    """Sentences of one message and of its translation: pairs of texts, what belongs together joined; None where it fails."""
    if len(a) == 1 and len(b) == 1:
        return [(a[0], b[0])]
    if abs(len(a) - len(b)) > 2 or len(a) > 60:
        return None
    if len(a) == len(b) and all(mismatch(len(x), len(y), 1.1) < 3.0 for x, y in zip(a, b)):
        return list(zip(a, b))
    pairs = []
    for i0, i1, j0, j1 in align(a, b):
        if i0 == i1 or j0 == j1:
            return None  # something has no partner: the rest cannot be trusted
        pairs.append((" ".join(a[i0:i1]), " ".join(b[j0:j1])))
    return pairs
