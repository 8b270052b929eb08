#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How well other people's sentence splitters find the boundaries of tests/data/sentences.

    tests/oracle/score_sentences.py > tests/data/sentences/rivals.tsv

Needs pysbd and blingfire from PyPI. A file holds paragraphs, one sentence a line, an empty line behind each; a splitter
gets a paragraph with its sentences joined by spaces. A boundary is the byte behind a sentence's last character; the end
of a paragraph is none. Columns: language, splitter, boundaries in the gold, found, of these right, F1 in percent.
"""
import sys
from pathlib import Path

import blingfire
import pysbd

DATA = Path(__file__).resolve().parent.parent / "data" / "sentences"
LANGUAGES = ["en", "de", "fr", "es", "it"]


def paragraphs(language):
    for kind in ("real", "hard"):
        text = (DATA / f"{language}.{kind}").read_text(encoding="utf-8")
        for paragraph in text.strip().split("\n\n"):
            yield paragraph.split("\n")


def ends(text, sentences):
    """Where the sentences end in the text, without the last; white space between them may differ."""
    found, at = set(), 0
    for sentence in sentences:
        for character in sentence:
            if character.isspace():
                continue
            while text[at] != character:
                at += 1
            at += 1
        found.add(at)
    return {e for e in found if text[e:].strip()}


def score(language, split):
    gold = found = right = 0
    for sentences in paragraphs(language):
        text = " ".join(sentences)
        want, got = ends(text, sentences), ends(text, split(text))
        gold, found, right = gold + len(want), found + len(got), right + len(want & got)
    return gold, found, right, 200.0 * right / (gold + found)


def main():
    print("language\tsplitter\tgold\tfound\tright\tF1")
    for language in LANGUAGES:
        segmenter = pysbd.Segmenter(language=language, clean=False)
        for name, split in (("pysbd", segmenter.segment), ("blingfire", lambda t: blingfire.text_to_sentences(t).split("\n"))):
            print(language, name, *score(language, split)[:3], f"{score(language, split)[3]:.2f}", sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
