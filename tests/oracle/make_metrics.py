#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Scores of the files in tests/data/text by sacreBLEU, as JSON on standard output.

    pip install sacrebleu
    python3 tests/oracle/make_metrics.py > tests/data/text/metrics.json

Every tokenizer, smoothing and option over several pairs of files; sentence scores with effective
order; tokenised lines; one paired bootstrap test. tests/unit/test_text_metrics.c computes the same.
"""
import json
import os
import sys
from pathlib import Path

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.bleu import _get_tokenizer
from sacrebleu.significance import PairedTest

DATA = Path(__file__).resolve().parent.parent / "data" / "text"
# name: (hypotheses, references)
SETS = {
    "base": ("base.de", ["news.de"]),
    "tiny": ("tiny.de", ["news.de"]),
    "multi": ("tiny.de", ["news.de", "base1.de"]),
    "zh": ("noisy.zh", ["flores.zh"]),
    "ja": ("noisy.ja", ["flores.ja"]),
    "special": ("special.hyp", ["special.ref"]),
    "special2": ("special.hyp", ["special.ref", "special.ref2"]),
    "wrong": ("flores.fr", ["flores.es", "flores.it"]),
}
TOKENIZERS = ["13a", "intl", "char", "zh", "none"]


def read(name):
    """Lines, split at line feeds alone: the special files hold other line separators as text."""
    with open(DATA / name, encoding="utf-8", newline="\n") as f:
        return f.read().split("\n")[:-1]


def bleu_case(name, **options):
    hyp, refs = SETS[name]
    metric = BLEU(force=True, **options)
    score = metric.corpus_score(read(hyp), [read(r) for r in refs])
    signature = metric.get_signature()
    text = signature.format().rsplit("|version", 1)[0]
    return {"set": name, "metric": "bleu", "options": options, "score": score.score,
            "brevity": score.bp, "precisions": list(score.precisions),
            "hyp_length": score.sys_len, "ref_length": score.ref_len, "signature": text}


def chrf_case(name, **options):
    hyp, refs = SETS[name]
    metric = CHRF(**options)
    score = metric.corpus_score(read(hyp), [read(r) for r in refs])
    text = metric.get_signature().format().rsplit("|version", 1)[0]
    return {"set": name, "metric": "chrf", "options": options, "score": score.score,
            "name": score.name, "signature": text}


def corpus_cases():
    for name in SETS:
        for tokenize in TOKENIZERS:
            for lowercase in (False, True):
                yield bleu_case(name, tokenize=tokenize, lowercase=lowercase)
        for method, value in (("none", None), ("floor", None), ("floor", 0.01), ("add-k", None),
                              ("add-k", 0.5), ("exp", None)):
            yield bleu_case(name, tokenize="13a", smooth_method=method, smooth_value=value)
            yield bleu_case(name, tokenize="13a", smooth_method=method, smooth_value=value,
                            effective_order=True)
        for order in (1, 2, 6):
            yield bleu_case(name, tokenize="13a", max_ngram_order=order)
        for word_order in (0, 1, 2):
            for lowercase in (False, True):
                yield chrf_case(name, word_order=word_order, lowercase=lowercase)
        yield chrf_case(name, whitespace=True)
        yield chrf_case(name, char_order=4, beta=1)
        yield chrf_case(name, char_order=3, beta=3, word_order=2)


def sentence_cases():
    for name, (hyp, refs) in SETS.items():
        bleu, chrf, plus = BLEU(effective_order=True), CHRF(), CHRF(word_order=2)
        rows = list(zip(read(hyp), *[read(r) for r in refs]))[:40]
        yield {"set": name,
               "bleu": [bleu.sentence_score(h, list(r)).score for h, *r in rows],
               "chrf": [chrf.sentence_score(h, list(r)).score for h, *r in rows],
               "chrf++": [plus.sentence_score(h, list(r)).score for h, *r in rows]}


def tokenized():
    texts = read("special.hyp") + read("special.ref") + read("special.ref2") + read("flores.zh")[:5]
    out = {"lines": texts}
    for name in TOKENIZERS:
        tokenizer = _get_tokenizer(name)()
        out[name] = [" ".join(tokenizer(t.rstrip()).split()) for t in texts]
    return out


def lowered():
    texts = read("special.hyp") + read("special.ref2")
    return {"lines": texts, "lower": [t.lower() for t in texts]}


def bootstrap():
    os.environ["SACREBLEU_SEED"] = "12345"
    refs = [read("news.de")]
    systems = [("base", read("base1.de")), ("beam4", read("base.de")), ("tiny", read("tiny.de"))]
    test = PairedTest(systems, {"BLEU": BLEU(), "chrF2": CHRF()}, refs, test_type="bs",
                      n_samples=1000)
    _, results = test()
    out = {}
    for metric in ("BLEU", "chrF2"):
        out[metric] = [{"system": n, "score": r.score, "mean": r.mean, "half": r.ci,
                        "p": r.p_value} for n, r in zip(results["System"], results[metric])]
    return out


def main():
    result = {"sacrebleu": sacrebleu.__version__,
              "sets": {n: {"hyp": h, "refs": r} for n, (h, r) in SETS.items()},
              "corpus": list(corpus_cases()), "sentences": list(sentence_cases()),
              "tokenized": tokenized(), "lowered": lowered(), "bootstrap": bootstrap()}
    # One case a line, so that a changed score is a changed line.
    parts = []
    for key, value in result.items():
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=float)
        if isinstance(value, list):
            text = "[\n" + ",\n".join(json.dumps(v, ensure_ascii=False, sort_keys=True,
                                                default=float) for v in value) + "]"
        parts.append(f"{json.dumps(key)}: {text}")
    print("{" + ",\n".join(parts) + "}")


if __name__ == "__main__":
    main()
