# SPDX-License-Identifier: MIT
"""The tools as functions: models, import, quantisation, evaluation, alignment."""
import os
import signal
import threading

import pytest

import dragoman


def test_models(tree, monkeypatch, tmp_path):
    monkeypatch.setenv("DRAGOMAN_MODEL", str(tree / "models"))
    found = dragoman.models()
    assert {("en", "de"), ("de", "en")} <= {(m.source, m.target) for m in found}
    assert [m.name for m in found if m.default] == ["en-de-student"]
    with dragoman.Translator(source="de", target="en", threads=1) as t:
        assert (t.info["source"], t.info["target"]) == ("de", "en")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    monkeypatch.setenv("DRAGOMAN_MODEL", str(tmp_path))
    assert any(m.problem for m in dragoman.models())


def test_inspect(tree):
    assert dragoman.inspect(tree / "models/en-de.gguf")["metadata"]["general.name"] == "en-de-student"


def test_settings(en_de):
    rows = {row["name"]: row for row in dragoman.settings()}
    assert rows["beam"]["max"] == 256 and rows["precision"]["weights"] and not rows["beam"]["weights"]
    assert "num-beams" in rows["beam"]["synonyms"]


def test_import_and_quantize(tree, tmp_path):
    folder = next(p for p in sorted((tree / "tests/data/ctranslate2").iterdir()) if p.is_dir())
    stages = []
    notes = dragoman.import_model(folder, tmp_path / "m.gguf", source_spm=str(tree / "tests/data/text/tiny.spm"),
                                  progress=lambda stage, share: stages.append((stage, share)))
    assert isinstance(notes, list)
    report = dragoman.quantize(tmp_path / "m.gguf", tmp_path / "q.gguf", "i8")
    assert report.converted > 0 and report.bytes_after < report.bytes_before and 0 < report.relative_error < 0.1
    assert dragoman.quantize(tmp_path / "m.gguf", None, "i8", keep=["*"]).converted == 0
    assert not (tmp_path / "none").exists()
    with pytest.raises(dragoman.Error):
        dragoman.import_model(tmp_path / "nothing", tmp_path / "x.gguf")
    assert not (tmp_path / "x.gguf").exists()


def test_evaluate():
    hyp, ref = ["the cat sat on a mat", "hello there"], ["the cat sat on the mat", "hello there"]
    bleu, chrf = dragoman.evaluate(hyp, ref), dragoman.evaluate(hyp, ref, metric="chrf")
    assert 0 < bleu.score < 100 and bleu.name == "BLEU" and "tok:13a" in bleu.signature and float(bleu) == bleu.score
    assert 0 < chrf.score < 100 and len(chrf.sentences) == 2 and chrf.sentences[1] == pytest.approx(100)
    assert dragoman.evaluate(hyp, [ref, hyp]).score == pytest.approx(100)
    assert dragoman.evaluate(hyp * 20, ref * 20, samples=50).half >= 0


def test_align():
    got = dragoman.align(["the house", "the book", "a\nbook"] * 5, ["das Haus", "das Buch", "ein Buch"] * 5)
    assert len(got) == 15 and got[0] == [(0, 0), (1, 1)]
    with pytest.raises(dragoman.TextError):
        dragoman.align([], [])


def test_progress_stops():
    def stop(stage, share):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dragoman.align(["the house"] * 3000, ["das Haus"] * 3000, progress=stop)


def test_interrupt():
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            dragoman.align(["the house %d" % i for i in range(3000)], ["das Haus"] * 3000)
    timer.join()


def test_detect():
    assert dragoman.detect("Das ist ein ganz gewöhnlicher deutscher Satz.", "en,de,fr")[0][0] == "de"
    best = dragoman.detect("This is quite an ordinary English sentence.")
    assert best[0][0] == "en" and 0 < best[0][1] <= 1
    assert dragoman.detect("12345") == []


def test_translate_file(tree, tmp_path, en_de):
    page = tmp_path / "page.html"
    page.write_text("<html><body><h1>Good morning</h1><p>The little <b>house</b> is red.</p></body></html>", encoding="utf-8")
    report = en_de.translate_file(page, tmp_path / "out.html")
    text = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert report["format"] == "html" and report["lines"] == 2 and report["failed"] == 0
    assert "<b>Haus</b>" in text and "<h1>Guten Morgen" in text
    dragoman.translate_file(page, tmp_path / "again.html", model=tree / "models/en-de.gguf", threads=1)
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text
    with pytest.raises(dragoman.Error):
        en_de.translate_file(page, tmp_path / "x", format="music")
    with pytest.raises(FileNotFoundError):
        en_de.translate_file(tmp_path / "nothing.html", tmp_path / "x")
    bad = tmp_path / "bad.docx"
    bad.write_bytes(b"PK\3\4 no archive")
    with pytest.raises(dragoman.FormatError):
        en_de.translate_file(bad, tmp_path / "x")
    assert not (tmp_path / "x").exists() and not list(tmp_path.glob("*.part"))

    def stop(stage, share):
        raise ZeroDivisionError

    page.write_text("".join(f"<p>The house of number {i} is red, and it is {i} years old.</p>" for i in range(3000)), encoding="utf-8")
    with pytest.raises(ZeroDivisionError):
        en_de.translate_file(page, tmp_path / "x", progress=stop)
    assert not (tmp_path / "x").exists()
