#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dragoman.compat.ctranslate2 beside the package ctranslate2: 200 lines, 12 sets of options, float32.

    PYTHONPATH=build/python PYTHON tests/oracle/check_compat.py [--program build/dragoman] [--lines 200] [--model MODEL]

PYTHON has ctranslate2 (PyPI). The model is exported to CTranslate2's format first; both sides are handed the same tokens.
With a coverage penalty CTranslate2's scores depend on the padding of a batch: it then translates line by line. Of every set
at least 99 % of the hypotheses must be equal, and scores of equal ones within 1e-3.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import ctranslate2

import dragoman
from dragoman.compat import ctranslate2 as ours

ROOT = Path(__file__).resolve().parent.parent.parent
SETS = {
    "defaults": {}, "beam 1": {"beam_size": 1}, "4 best": {"beam_size": 4, "num_hypotheses": 4},
    "no length penalty": {"beam_size": 5, "length_penalty": 0}, "length penalty 0.6": {"beam_size": 4, "length_penalty": 0.6},
    "patience 2": {"beam_size": 3, "patience": 2}, "coverage": {"beam_size": 4, "coverage_penalty": 0.2},
    "8 best of 8": {"beam_size": 8, "num_hypotheses": 8}, "prefix": {"beam_size": 4, "prefix": 2},
    "lengths": {"beam_size": 4, "min_decoding_length": 8, "max_decoding_length": 200},
    "no <unk>": {"beam_size": 6, "disable_unk": True},
    "alternatives": {"beam_size": 1, "num_hypotheses": 3, "return_alternatives": True},
}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--program", default=str(ROOT / "build/dragoman"))
    p.add_argument("--lines", type=int, default=200)
    p.add_argument("--model", default=str(ROOT / "models/en-de.gguf"))
    p.add_argument("--text", default=str(ROOT / "tests/data/translate/newstest2014-1000.en"))
    args = p.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as place:
        folder = str(Path(place) / "model")
        subprocess.run([args.program, "export", "ctranslate2", args.model, "-o", folder, "-q"], check=True)
        theirs = ctranslate2.Translator(folder, compute_type="float32", intra_threads=2)
        mine = ours.Translator(args.model, compute_type="float32", inter_threads=2)
        tokens = dragoman.Translator(args.model, threads=1)
        with open(args.text, encoding="utf-8") as f:
            lines = [tokens.tokenize(f.readline().strip()) for _ in range(args.lines)]
        for name, options in SETS.items():
            options = dict(options)
            size = options.pop("prefix", 0)
            prefixes = None
            if size:
                prefixes = [r.hypotheses[0][:size] for r in theirs.translate_batch(lines, beam_size=1)]
            size = 1 if "coverage_penalty" in options else 32
            a = theirs.translate_batch(lines, prefixes, return_scores=True, max_batch_size=size, **options)
            b = mine.translate_batch(lines, prefixes, return_scores=True, **options)
            pairs = [(x, y, s, t) for r, q in zip(a, b) for x, y, s, t in zip(r.hypotheses, q.hypotheses, r.scores, q.scores)]
            alike = [abs(s - t) for x, y, s, t in pairs if x == y]
            count = sum(len(r.hypotheses) for r in a)
            share, off = len(alike) / count, max(alike, default=1)
            good = share >= 0.99 and off < 1e-3
            passed, failed = passed + good, failed + (not good)
            word = "ok" if good else "FAILED"
            print(f"{word:7} {name:20} {100 * share:6.2f} % of {count} equal, scores within {off:.1e}", flush=True)
        targets = [r.hypotheses[0] for r in theirs.translate_batch(lines)]
        a, b = theirs.score_batch(lines, targets), mine.score_batch(lines, targets)
        off = max(abs(s - t) for r, q in zip(a, b) for s, t in zip(r.log_probs, q.log_probs))
        good = off < 1e-3 and [r.tokens for r in a] == [r.tokens for r in b]
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok' if good else 'FAILED':7} score_batch          within {off:.1e}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
