#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the package ctranslate2 says about tests/data/ctranslate2, for python/tests/test_compat_golden.py.

    PYTHON tests/oracle/make_compat.py      with ctranslate2 and sentencepiece (PyPI); writes python/tests/compat.json
"""
import json
import tempfile
from pathlib import Path

import ctranslate2
import sentencepiece

ROOT = Path(__file__).resolve().parent.parent.parent
LONGEST = {"max_decoding_length": 14}  # random models go on for long
SETS = [{}, {"beam_size": 1}, {"beam_size": 4, "num_hypotheses": 3}, {"beam_size": 4, "length_penalty": 0, "num_hypotheses": 2},
        {"beam_size": 3, "patience": 2, "length_penalty": 0.6}, {"beam_size": 4, "max_decoding_length": 4},
        {"beam_size": 2, "max_decoding_length": 1}, {"beam_size": 4, "return_end_token": True}, {"max_input_length": 6},
        {"beam_size": 1, "num_hypotheses": 2, "return_alternatives": True}, {"beam_size": 4, "length_penalty": -1},
        {"beam_size": 4, "disable_unk": True}]


def steps(translator, source, prefix):
    heard = []

    def hear(s):
        heard.append([s.step, s.batch_id, s.token_id, s.hypothesis_id, s.token, s.log_prob, s.is_last])
        return s.batch_id == 0 and s.step == 2

    result = translator.translate_batch(source, prefix, beam_size=1, callback=hear, return_scores=True, **LONGEST)
    return {"steps": heard, "results": [[r.hypotheses, r.scores] for r in result]}


def files(translator, source, prefix):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, lines in (("source", source), ("prefix", prefix)):
            (place / name).write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
        stats = translator.translate_file(str(place / "source"), str(place / "out"), str(place / "prefix"), with_scores=True,
                                          num_hypotheses=2, **LONGEST)
        out = (place / "out").read_text(encoding="utf-8")
        scored = translator.score_file(str(place / "source"), str(place / "prefix"), str(place / "scores"),
                                       with_tokens_score=True)
        return {"stats": [stats.num_examples, stats.num_tokens], "out": out, "scored": [scored.num_examples, scored.num_tokens],
                "scores": (place / "scores").read_text(encoding="utf-8")}


def main():
    spm = sentencepiece.SentencePieceProcessor(str(ROOT / "tests/data/text/tiny.spm"))
    lines = (ROOT / "tests/data/text/news.en").read_text(encoding="utf-8").splitlines()[:24]
    lines = [spm.encode(line, out_type=str) for line in sorted(lines, key=len)[:3]]
    found = {"version": ctranslate2.__version__, "models": []}
    for name in ("m2m", "opennmt-py"):
        folder = str(ROOT / "tests/data/ctranslate2" / name)
        translator = ctranslate2.Translator(folder, compute_type="float32", inter_threads=3)
        source = [["__en__", *line, "</s>"] for line in lines] if name == "m2m" else lines
        prefix = [["__de__"], ["__fr__", "son"], ["__de__"]] if name == "m2m" else [["son"], ["▁ist", "▁ist"], ["a"]]
        sets = [[o, [[r.hypotheses, r.scores] for r in
                     translator.translate_batch(source, prefix, return_scores=True, **{**LONGEST, **o})]] for o in SETS]
        found["models"].append({"name": name, "default": ctranslate2.Translator(folder).compute_type,
                                "translators": translator.num_translators, "source": source, "prefix": prefix, "sets": sets,
                                **steps(translator, source, prefix), **files(translator, source, prefix)})
    (ROOT / "python/tests/compat.json").write_text(json.dumps(found, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
