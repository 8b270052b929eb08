# SPDX-License-Identifier: MIT
"""Many directions in one model: which token says a direction, the joint vocabulary and the packed corpus of all.

    python3 -m dragoman_training.multilingual WORK --pairs en-de en-fr --size 16000 [--tags-source target]

reads WORK/PAIR/pairs.LANG (dragoman_training prepare) for both ways of every pair and writes WORK/vocab.spm, WORK/train.bin
and WORK/directions.json, which the exporter puts into the model file (export --directions).

    python3 -m dragoman_training.multilingual WORK --pairs en-fr en-es --mixed 40000,200000

writes text instead, both ways of every pair and source-only lines (WORK/PAIR/extra.LANG) in random order, in parts of so many lines
(the last one has the rest): WORK/mixed.N.src, .tgt (empty where there is no translation), .up (repetitions) and .dir ("en fr"), which
`distill --directions` and `pack --directions` read. The first part has lines with translations alone: training may begin with it.

    python3 -m dragoman_training.multilingual WORK --turned 1 2 --made WORK/made

turns what a teacher made of the source-only lines of parts round, as a further part, WORK/mixed.turned.*: everyday text into a language's
own direction where only the other side of it was there.

A language has one token, "<2de>", a control symbol of the vocabulary: no text can spell it. Where tokens go is a list for
each side, as in docs/internals/FORMAT.md: --tags-source target puts the target's before the source (the default: one token a
sentence, and the decoder needs none), "source target" both; --tags-target target starts the decoder with it.

Balance: a direction with n pairs is repeated so that its share of the corpus goes with n^(1/T), T = 5, at most `most`
times: small directions are heard without drowning the large ones.
"""
import argparse
import json
import os
import random

import numpy as np

from . import corpus, mix, subword
from .packed import Packed


def token(language):
    return f"<2{language}>"


def names(directions):
    """Languages of a list of (source, target), sorted."""
    return sorted({language for pair in directions for language in pair})


def repetitions(counts, temperature=5.0, most=8):
    """Whole numbers of passes for corpora of these sizes."""
    counts = np.asarray(counts, np.float64)
    share = (counts / counts.sum()) ** (1.0 / temperature)
    wanted = share / share.sum() / (counts / counts.sum())
    return np.clip(np.rint(wanted / wanted.min()), 1, most).astype(int).tolist()


class Tags:
    """Ids of the tokens that a direction puts before its source and its target. number: piece -> id."""

    def __init__(self, directions, number, source=("target",), target=()):
        self.directions = [tuple(pair) for pair in directions]
        self.ids = {language: number(token(language)) for language in names(self.directions)}
        self.source, self.target = list(source), list(target)
        for side in self.source + self.target:
            if side not in ("source", "target"):
                raise ValueError(f"tags: {side!r} is neither source nor target")

    def before(self, side, pair):
        return [self.ids[pair[0] if which == "source" else pair[1]]
                for which in (self.source if side == "source" else self.target)]

    def card(self):
        """Fields of export.Card."""
        languages, ids = list(self.ids), list(self.ids.values())
        return dict(source_languages=languages, target_languages=languages, source_tokens=ids, target_tokens=ids,
                    pairs=[" ".join(pair) for pair in self.directions], source_tags=self.source,
                    target_tags=self.target, never=sorted(ids))


def pack(vocab, parts, tags, temperature=5.0, most=8, longest=124, processes=2, seed=1):
    """One corpus of all directions. parts: (source, target, source lines, target lines)."""
    passes = repetitions([len(lines) for _, _, lines, _ in parts], temperature, most)
    packed = []
    for number, ((source, target, sources, targets), count) in enumerate(zip(parts, passes)):
        part = mix.mix(vocab, sources, targets, None, [count] * len(sources), shares={}, seed=seed + number,
                       longest=longest, processes=processes)
        packed.append(part.prefixed(tags.before("source", (source, target)), tags.before("target", (source, target))))
        print(f"{source}-{target}: {len(sources)} lines x {count}", flush=True)
    return Packed.join(packed)


def build(work, pairs, size, tags_source, tags_target, one_way=False, processes=2, required=subword.REQUIRED):
    """Vocabulary, corpus and directions.json of WORK; what exists is not made again."""
    import sentencepiece
    directions, parts, files = [], [], []
    for name in pairs:
        first, second = name.split("-")
        texts = {language: os.path.join(work, name, f"pairs.{language}") for language in (first, second)}
        files += texts.values()
        lines = {language: corpus.read_lines(path) for language, path in texts.items()}
        for source, target in ((first, second), (second, first))[:1 if one_way else 2]:
            directions.append((source, target))
            parts.append((source, target, lines[source], lines[target]))
    vocab = os.path.join(work, "vocab.spm")
    if not os.path.exists(vocab):
        made = subword.train(files, os.path.join(work, "vocab"), size, required=required,
                             control=[token(language) for language in names(directions)])
        os.replace(made, vocab)
    spm = sentencepiece.SentencePieceProcessor(model_file=vocab)
    tags = Tags(directions, spm.piece_to_id, tags_source, tags_target)
    pack(vocab, parts, tags, processes=processes).save(os.path.join(work, "train.bin"))
    with open(os.path.join(work, "directions.json"), "w", encoding="utf-8") as f:
        json.dump(tags.card(), f)
    return tags


def read_directions(path):
    """Pairs of languages, one a line."""
    found = [tuple(line.split()) for line in corpus.read_lines(path)]
    wrong = next((number for number, pair in enumerate(found, 1) if len(pair) != 2), 0)
    if wrong:
        raise ValueError(f"{path}:{wrong}: expected two languages, such as 'en fr'")
    return found


def both_ways(work, pairs):
    """(source, target or "", repetitions, "SOURCE TARGET") of both ways of every pair, and of source-only text."""
    for name in pairs:
        ends = name.split("-")
        folder = os.path.join(work, name)
        lines = [corpus.read_lines(os.path.join(folder, f"pairs.{language}")) for language in ends]
        ups = [int(x) for x in corpus.read_lines(os.path.join(folder, "pairs.up"))]
        for one in (0, 1):
            way = f"{ends[one]} {ends[1 - one]}"
            yield from zip(lines[one], lines[1 - one], ups, [way] * len(ups))
            extra = os.path.join(folder, f"extra.{ends[one]}")
            if os.path.exists(extra):
                yield from ((line, "", 1, way) for line in corpus.read_lines(extra))


def write_mixed(work, pairs, sizes, seed=1):
    """Parts of a mixed corpus; sizes: lines of all but the last."""
    lines = list(both_ways(work, pairs))
    random.Random(seed).shuffle(lines)
    if sizes:                                                           # the first part: the first lines that have a translation
        real = [i for i, line in enumerate(lines) if line[1]][:sizes[0]]
        chosen = set(real)
        lines = [lines[i] for i in real] + [line for i, line in enumerate(lines) if i not in chosen]
    ends = [0]
    for size in sizes:
        ends.append(min(ends[-1] + size, len(lines)))
    ends.append(len(lines))
    for number, (first, end) in enumerate(zip(ends, ends[1:])):
        for column, suffix in enumerate(("src", "tgt", "up", "dir")):
            corpus.write_lines(os.path.join(work, f"mixed.{number}.{suffix}"), (str(line[column]) for line in lines[first:end]))
        print(f"mixed.{number}: {end - first} lines", flush=True)


def write_turned(work, numbers, made):
    """The part "turned": what one worker of `distill` made of the source-only lines of parts."""
    from . import distill
    found = []
    for number in numbers:
        stem = os.path.join(work, f"mixed.{number}")
        sources, reals = corpus.read_lines(stem + ".src"), corpus.read_lines(stem + ".tgt")
        texts = distill.collect(made, stem + ".src", 1)
        for source, real, text, way in zip(sources, reals, texts, read_directions(stem + ".dir")):
            pair = None if real else mix.turned(source, "", text.split("\t")[0])
            if pair:
                found.append((*pair, "1", f"{way[1]} {way[0]}"))
    for column, suffix in enumerate(("src", "tgt", "up", "dir")):
        path = os.path.join(work, f"mixed.turned.{suffix}")
        corpus.write_lines(path + ".tmp", (line[column] for line in found))
        os.replace(path + ".tmp", path)                                 # `pack` may be waiting for it
    print(f"mixed.turned: {len(found)} lines", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="dragoman_training.multilingual", description="Corpus of many directions.")
    parser.add_argument("work")
    parser.add_argument("--pairs", nargs="+", default=[], metavar="en-de")
    parser.add_argument("--size", type=int, default=16000)
    parser.add_argument("--tags-source", nargs="*", default=["target"], choices=("source", "target"))
    parser.add_argument("--tags-target", nargs="*", default=[], choices=("source", "target"))
    parser.add_argument("--one-way", action="store_true", help="from the first language of a pair to the second alone")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--mixed", metavar="N,N...", help="write parts of mixed text of these sizes and one of the rest; no vocabulary")
    parser.add_argument("--seed", type=int, default=1, help="of the order of mixed text")
    parser.add_argument("--turned", nargs="+", default=[], metavar="N", help="turn the source-only lines of these parts round")
    parser.add_argument("--made", help="with --turned: folder of what `distill` made, one worker's")
    a = parser.parse_args()
    if bool(a.turned) != bool(a.made) or bool(a.turned) == bool(a.pairs):
        parser.error("give --pairs, or --turned with --made")
    if a.turned:
        write_turned(a.work, a.turned, a.made)
        return
    if a.mixed is not None:
        write_mixed(a.work, a.pairs, [int(x) for x in a.mixed.split(",") if x], a.seed)
        return
    build(a.work, a.pairs, a.size, a.tags_source, a.tags_target, a.one_way, a.processes)


if __name__ == "__main__":
    main()
