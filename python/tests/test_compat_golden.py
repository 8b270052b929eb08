# SPDX-License-Identifier: MIT
"""dragoman.compat.ctranslate2 against what the package itself said (tests/oracle/make_compat.py)."""
import json
from pathlib import Path

import pytest

from dragoman.compat import ctranslate2

GOLDEN = json.loads(Path(__file__).with_name("compat.json").read_text(encoding="utf-8"))
LONGEST = {"max_decoding_length": 14}


@pytest.fixture(scope="module", params=GOLDEN["models"], ids=lambda model: model["name"])
def model(request, tree, tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    folder = str(tree / "tests/data/ctranslate2" / request.param["name"])
    door = ctranslate2.Translator(folder, compute_type="float32", inter_threads=3, intra_threads=1)
    yield request.param, door, folder
    patch.undo()


def check(results, wanted, what):
    for r, (hypotheses, scores) in zip(results, wanted):
        assert r.hypotheses == hypotheses, what
        assert r.scores == pytest.approx(scores, abs=1e-3), what


def test_translations(model):
    golden, door, _ = model
    for options, wanted in golden["sets"]:
        results = door.translate_batch(golden["source"], golden["prefix"], return_scores=True, **{**LONGEST, **options})
        check(results, wanted, options)


def test_steps(model):
    """Every token with its number, the end symbol as well, step after step; who has enough says so."""
    golden, door, _ = model
    heard = []

    def hear(s):
        heard.append(s)
        return s.batch_id == 0 and s.step == 2

    results = door.translate_batch(golden["source"], golden["prefix"], beam_size=1, callback=hear, return_scores=True, **LONGEST)
    check(results, golden["results"], "callback")
    assert [[s.step, s.batch_id, s.token_id, s.hypothesis_id, s.token, s.is_last] for s in heard] == \
        [[*s[:5], s[6]] for s in golden["steps"]]
    assert [s.log_prob for s in heard] == pytest.approx([s[5] for s in golden["steps"]], abs=1e-3)


def scored_lines(text):
    lines = []
    for line in text.splitlines():
        score, tokens, *each = line.split(" ||| ")
        lines.append((tokens, [float(x) for x in (score + " " + " ".join(each)).split()]))
    return lines


def test_files(model, tmp_path):
    golden, door, _ = model
    for name in ("source", "prefix"):
        (tmp_path / name).write_text("".join(" ".join(line) + "\n" for line in golden[name]), encoding="utf-8")
    stats = door.translate_file(tmp_path / "source", tmp_path / "out", tmp_path / "prefix", with_scores=True, num_hypotheses=2,
                                **LONGEST)
    assert [stats.num_examples, stats.num_tokens] == golden["stats"] and stats.total_time_in_ms > 0
    for (a, x), (b, y) in zip(scored_lines((tmp_path / "out").read_text(encoding="utf-8")), scored_lines(golden["out"])):
        assert a == b and x == pytest.approx(y, abs=1e-3)
    stats = door.score_file(tmp_path / "source", tmp_path / "prefix", tmp_path / "scores", with_tokens_score=True)
    assert [stats.num_examples, stats.num_tokens] == golden["scored"]
    ours, theirs = (scored_lines(t) for t in ((tmp_path / "scores").read_text(encoding="utf-8"), golden["scores"]))
    assert [a for a, _ in ours] == [b for b, _ in theirs]
    if golden["name"] != "m2m":  # whose language has no log-probability here
        for (_, x), (_, y) in zip(ours, theirs):
            assert x == pytest.approx(y, abs=1e-2)


def test_properties(model):
    golden, door, folder = model
    assert door.num_translators == golden["translators"] and door.compute_type == "float32"
    assert ctranslate2.Translator(folder).compute_type == golden["default"]
