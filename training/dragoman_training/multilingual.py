# SPDX-License-Identifier: MIT
"""Many directions in one model: which token says a direction, the joint vocabulary and the packed corpus of all.

    python3 -m dragoman_training.multilingual WORK --pairs en-de en-fr --size 16000 [--tags-source target]

reads WORK/PAIR/pairs.LANG (dragoman_training prepare) for both ways of every pair and writes WORK/vocab.spm, WORK/train.bin
and WORK/directions.json, which the exporter puts into the model file (export --directions).

A language has one token, "<2de>", a control symbol of the vocabulary: no text can spell it. Where tokens go is a list for
each side, as in docs/internals/FORMAT.md: --tags-source target puts the target's before the source (the default: one token a
sentence, and the decoder needs none), "source target" both; --tags-target target starts the decoder with it.

Balance: a direction with n pairs is repeated so that its share of the corpus goes with n^(1/T), T = 5, at most `most`
times: small directions are heard without drowning the large ones.
"""
import argparse
import json
import os

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


def main():
    parser = argparse.ArgumentParser(prog="dragoman_training.multilingual", description="Corpus of many directions.")
    parser.add_argument("work")
    parser.add_argument("--pairs", nargs="+", required=True, metavar="en-de")
    parser.add_argument("--size", type=int, default=16000)
    parser.add_argument("--tags-source", nargs="*", default=["target"], choices=("source", "target"))
    parser.add_argument("--tags-target", nargs="*", default=[], choices=("source", "target"))
    parser.add_argument("--one-way", action="store_true", help="from the first language of a pair to the second alone")
    parser.add_argument("--processes", type=int, default=2)
    a = parser.parse_args()
    build(a.work, a.pairs, a.size, a.tags_source, a.tags_target, a.one_way, a.processes)


if __name__ == "__main__":
    main()
