# SPDX-License-Identifier: MIT
"""From text to a packed corpus: chooses between real and distilled targets, adds variants, encodes.

For every source line with a distilled target (teacher) and possibly a real one:
  * a distilled target that loops, is out of proportion or has lost the source's digits is replaced by the real one;
  * the real target is used as well where it is close to the distilled one (word F1 over a threshold): that is where it
    corrects the teacher without being a free translation that a small student cannot reproduce;
  * augment.py adds a variant of some pairs.
Lines are spread over processes; results do not depend on their number.
"""
import multiprocessing
import re
from collections import Counter

from . import augment, wordlist
from .packed import Packed

DIGITS = re.compile(r"\d")
WORKER = {}


def loops(text, order=4, times=3):
    """True if some word n-gram occurs `times` times or more."""
    words = text.split()
    grams = Counter(tuple(words[i:i + order]) for i in range(len(words) - order + 1))
    return bool(grams) and max(grams.values()) >= times


def sound(source, target):
    if not target or loops(target):
        return False
    ratio = len(target) / len(source)
    return 0.4 <= ratio <= 2.6 if len(source) > 24 else len(target) <= 80


def same_digits(a, b):
    return sorted(DIGITS.findall(a)) == sorted(DIGITS.findall(b))


def overlap(a, b):
    """F1 of word multisets."""
    x, y = Counter(a.split()), Counter(b.split())
    common = sum((x & y).values())
    return 2.0 * common / max(1, sum(x.values()) + sum(y.values()))


def nearest(source, real, made):
    """Of a teacher's alternatives (tabs between them, the best first) the sound one that is nearest to the real target by
    words and pairs of words; the best without a real one."""
    found = made.split("\t")
    if len(found) == 1 or not real:
        return found[0]
    good = [x for x in found if sound(source, x) and same_digits(source, x)] or found[:1]
    return max(good, key=lambda x: overlap(x, real) + overlap(pairs_of(x), pairs_of(real)))


def pairs_of(text):
    words = text.split()
    return " ".join(f"{a}_{b}" for a, b in zip([""] + words, words + [""]))


def pick(lines):
    return [nearest(*line) for line in lines]


def pick_all(sources, reals, mades, processes=2):
    """nearest() of every line, over processes."""
    lines = list(zip(sources, reals or [""] * len(sources), mades))
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return [x for part in pool.imap(pick, (lines[i:i + 4000] for i in range(0, len(lines), 4000))) for x in part]


def choose(source, real, made, passes, threshold):
    """(target, passes) list for one line; real or made may be empty."""
    faithful = same_digits(source, made) or not (real and same_digits(source, real))
    good = bool(made) and sound(source, made) and faithful
    if not real:
        return [(made, passes)] if good and same_digits(source, made) else []
    if not good:
        return [(real, passes)]
    if made == real:
        return [(made, passes)]
    if overlap(made, real) >= threshold and sound(source, real):
        return [(made, max(1, passes - passes // 2)), (real, max(1, passes // 2))]
    return [(made, passes)]


def turned(source, real, made):
    """A pair for the other direction: the teacher's translation as its source, the text that it was made from as its target.
    None where the translation is unsound, has other digits or is the real one, whose pair is there already."""
    if made == real or not sound(source, made) or not same_digits(source, made):
        return None
    return made, source


def start(model, settings):
    WORKER["spm"] = wordlist.load(model)
    WORKER["source_spm"] = wordlist.load(settings["source_model"]) if settings.get("source_model") else WORKER["spm"]
    WORKER.update(settings)


def work(job):
    first, lines = job
    pairs = []
    for i, (source, real, made, passes, before) in enumerate(lines):
        rng = augment.generator(WORKER["seed"], first + i)
        for target, count in choose(source, real, made, passes, WORKER["threshold"]):
            pairs.append((source, target, count, before))
            pairs.extend((*pair, 1, before) for pair in augment.variants(source, target, rng, WORKER["shares"]))
    sources, targets = WORKER["source_spm"].encode([p[0] for p in pairs]), WORKER["spm"].encode([p[1] for p in pairs])
    return Packed.from_lists([(p[3][0] + s, p[3][1] + t, p[2]) for s, t, p in zip(sources, targets, pairs)], WORKER["longest"])


def mix(model, sources, reals, mades, passes, threshold=0.5, shares=None, seed=1, longest=126, processes=2, first=0,
        source_model="", before=None):
    """Packs lists of lines; reals, mades, passes and before (ids that go before a line's source and target) may be None."""
    n = len(sources)
    blank, ones = [""] * n, [1] * n
    lines = list(zip(sources, reals or blank, mades or blank, passes or ones, before or [([], [])] * n))
    jobs = [(first + i, lines[i:i + 4000]) for i in range(0, n, 4000)]
    settings = {"seed": seed, "threshold": threshold, "shares": shares, "longest": longest,
                "source_model": source_model}
    if processes <= 1:
        start(model, settings)
        return Packed.join([work(job) for job in jobs])
    with multiprocessing.get_context("fork").Pool(processes, start, (model, settings)) as pool:
        return Packed.join(list(pool.imap(work, jobs)))
