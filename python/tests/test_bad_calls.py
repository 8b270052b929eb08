# SPDX-License-Identifier: MIT
"""Calls that are wrong: each raises an exception of the kind that it should, and nothing else happens."""
import asyncio

import pytest

import dragoman
from dragoman import ArgumentError, ClosedError, Error, FileError, FormatError, TextError, Translator, UnsupportedError

LONE = "\ud800"  # half of a character, which UTF-8 does not have
HUGE = 10 ** 30
OBJECTS = [None, 3, 2.5, b"bytes", bytearray(b"bytes"), object(), True, Translator, len]
KINDS = (TypeError, Error, ValueError, OverflowError)


def of_translate():
    for value in OBJECTS:
        yield f"translate {value!r}", lambda t, v=value: t.translate(v), TypeError
        yield f"translate [{value!r}]", lambda t, v=value: t.translate([v]), TypeError
        yield f"translate with good ones {value!r}", lambda t, v=value: t.translate(["Good."] * 50 + [v]), TypeError
        yield f"translate_iter {value!r}", lambda t, v=value: list(t.translate_iter(v)), TypeError
        yield f"translate_iter [{value!r}]", lambda t, v=value: list(t.translate_iter(["Good.", v])), TypeError
        yield f"stream {value!r}", lambda t, v=value: list(t.stream(v)), TypeError
        yield f"atranslate {value!r}", lambda t, v=value: asyncio.run(t.atranslate(v)), TypeError
        yield f"tokenize {value!r}", lambda t, v=value: t.tokenize(v), TypeError
        yield f"score {value!r}", lambda t, v=value: t.score("a", v), TypeError
        yield f"score of {value!r}", lambda t, v=value: t.score(v, "a"), TypeError
        if value is not None:
            yield f"prefix {value!r}", lambda t, v=value: t.translate("a", prefix=v), TypeError
            yield f"constraints {value!r}", lambda t, v=value: t.translate("a", constraints=v), TypeError
    yield "translate a list in a list", lambda t: t.translate([["Good."]]), TypeError
    yield "translate a dict of numbers", lambda t: t.translate({1: 2}), TypeError
    yield "translate_iter a str", lambda t: t.translate_iter("Good."), TypeError
    yield "translate two texts", lambda t: t.translate("a", "b"), TypeError
    yield "translate nothing", lambda t: t.translate(), TypeError
    yield "score one list", lambda t: t.score(["a"], "a"), TypeError
    yield "score unequal lists", lambda t: t.score(["a"], ["a", "b"]), ArgumentError
    yield "tokenize another side", lambda t: t.tokenize("a", "left"), ArgumentError
    yield "detokenize numbers", lambda t: t.detokenize([1, 2]), TypeError
    yield "errors", lambda t: t.translate("a", errors="ignore"), ArgumentError
    yield "errors of iter", lambda t: t.translate_iter(["a"], errors="ignore"), ArgumentError
    yield "errors of score", lambda t: t.score("a", "b", errors=None), ArgumentError
    yield "prefixes too few", lambda t: t.translate(["a", "b"], prefix=["c"]), ArgumentError
    yield "prefixes of iter", lambda t: t.translate_iter(["a"], prefix=["c"]), TypeError
    yield "deadline", lambda t: t.translate("a", deadline="soon"), ValueError
    yield "deadline nan", lambda t: t.translate("a", deadline=float("nan")), ValueError
    yield "deadline huge", lambda t: t.translate("a", deadline=1e300), OverflowError
    yield "deadline list", lambda t: t.translate("a", deadline=[1]), TypeError


def of_text():
    for name, call in (("translate", lambda t, v: t.translate(v)), ("list", lambda t, v: t.translate(["a", v])),
                       ("stream", lambda t, v: list(t.stream(v))), ("tokenize", lambda t, v: t.tokenize(v)),
                       ("detokenize", lambda t, v: t.detokenize([v])), ("score", lambda t, v: t.score("a", v)),
                       ("prefix", lambda t, v: t.translate("a", prefix=v)),
                       ("constraints", lambda t, v: t.translate("a", constraints=v)),
                       ("target", lambda t, v: t.translate("a", target=v)), ("finish", lambda t, v: t.translate("a", finish=v))):
        for value in (LONE, "a" + LONE + "b", "\udfff" * 3):
            yield f"{name} {value!r}", lambda t, c=call, v=value: c(t, v), (UnicodeEncodeError, Error)
    yield "too long", lambda t: t.translate("long " * 600, long="error"), TextError
    yield "prefix too long", lambda t: t.translate("a", prefix="a " * 5000), TextError
    yield "NUL in a setting", lambda t: t.translate("a", finish="a\0b"), ValueError
    yield "NUL in a name", lambda t: t.translate("a", **{"be\0am": 2}), ValueError


def of_settings():
    for name, values in {"beam": (0, -1, 257, HUGE, "x", 2.5, "", "4 ", [1, 2]), "nbest": (0, -1, 300, "all"),
                         "length_penalty": ("x", 1e9, float("nan"), float("inf")), "max_length": (-1, 70000, "long"),
                         "finish": ("never", "first:0", "first:x"), "search": ("best", ""), "alignment": ("letters",),
                         "split": ("words",), "shortlist": ("short", "cluster"), "temperature": (-1, "hot"),
                         "word_scores": ("maybe", 7), "threads": (-1, 5000, "many"), "workspace": ("much", -5),
                         "terms": ("/no/such/file",), "dictionary": ("/no/such/file",), "keep": ("(",), "unknown": ("invent",),
                         "beam_width": (2, -1), "lmbr_thetas": ([1, 2], "a,b"), "top_k": (-1, 5000), "top_p": (2,)}.items():
        for value in values:
            yield f"{name}={value!r}", lambda t, n=name, v=value: t.translate("a", **{n: v}), Error
    for value in (b"4", object(), {1: 2}, {4}, len):
        yield f"beam={value!r}", lambda t, v=value: t.translate("a", beam=v), TypeError
    yield "no such setting", lambda t: t.translate("a", beams_and_more=4), ArgumentError
    yield "empty name", lambda t: t.translate("a", **{"": 4}), ArgumentError
    yield "nbest above beam", lambda t: t.translate("a", beam=2, nbest=3), ArgumentError
    yield "another device", lambda t: t.translate("a", device="cuda"), ArgumentError
    yield "another precision", lambda t: t.translate("a", precision="f32"), ArgumentError
    yield "another language", lambda t: t.translate("a", target="fr"), Error
    yield "another source", lambda t: t.translate("a", source="fr"), Error


def of_opening(tree, tmp):
    model = str(tree / "models/en-de.gguf")
    short = tmp / "short.gguf"
    short.write_bytes(open(model, "rb").read(5000))
    text = tmp / "text.gguf"
    text.write_text("no model")
    gone = tmp / "gone.gguf"
    yield "no file", lambda t: Translator("/no/such/model.gguf"), FileError
    yield "deleted file", lambda t: Translator(gone), FileError
    yield "no name", lambda t: Translator("xx-yy"), Error
    yield "folder", lambda t: Translator(tmp), Error
    yield "truncated", lambda t: Translator(short), FormatError
    yield "no model", lambda t: Translator(text), FormatError
    yield "empty path", lambda t: Translator(""), Error
    yield "NUL in a path", lambda t: Translator("a\0b"), ValueError
    yield "no models", lambda t: Translator([]), ArgumentError
    yield "many models", lambda t: Translator([model] * 9), ArgumentError
    yield "models and weights", lambda t: Translator([model], weights=[1, 2]), ArgumentError
    yield "negative weight", lambda t: Translator([model], weights=[-1]), ArgumentError
    yield "weights of words", lambda t: Translator([model], weights=["a"]), ValueError
    for value in (3, 2.5, object(), {1: 2}, [None], [3], len):
        yield f"model {value!r}", lambda t, v=value: Translator(v), TypeError
    yield "languages", lambda t: Translator(source="xx", target="yy"), Error
    yield "languages of a model", lambda t: Translator(model, target="fr"), Error
    yield "device", lambda t: Translator(model, device="gpu"), Error
    yield "device list", lambda t: Translator(model, device="cpu,,cpu"), Error
    yield "precision", lambda t: Translator(model, precision="i4"), ArgumentError
    yield "threads", lambda t: Translator(model, threads=-1), ArgumentError
    yield "threads of words", lambda t: Translator(model, threads="few"), ArgumentError
    yield "setting", lambda t: Translator(model, beem=4), ArgumentError
    yield "two positions", lambda t: Translator(model, "en"), TypeError
    yield "workspace", lambda t: Translator(model, workspace="1K"), Error


def of_tools(tree, tmp):
    model = str(tree / "models/en-de.gguf")
    yield "inspect", lambda t: dragoman.inspect("/no/such/file"), Error
    yield "inspect a number", lambda t: dragoman.inspect(3), TypeError
    yield "import", lambda t: dragoman.import_model("/no/such/folder", tmp / "o.gguf"), Error
    yield "import format", lambda t: dragoman.import_model(tmp, tmp / "o.gguf", format="word"), ArgumentError
    yield "import option", lambda t: dragoman.import_model(tmp, tmp / "o.gguf", colour="red"), TypeError
    yield "import None", lambda t: dragoman.import_model(None, None), TypeError
    yield "quantize type", lambda t: dragoman.quantize(model, tmp / "o.gguf", "i3"), ArgumentError
    yield "quantize None", lambda t: dragoman.quantize(None, None, "i8"), TypeError
    yield "quantize nothing", lambda t: dragoman.quantize("/no/such/file", None, "i8"), Error
    yield "quantize keep", lambda t: dragoman.quantize(model, None, "i8", keep=[3]), TypeError
    yield "quantize to nowhere", lambda t: dragoman.quantize(model, "/no/such/folder/o.gguf", "i8"), FileError
    yield "evaluate", lambda t: dragoman.evaluate(["a"], ["a", "b"]), ArgumentError
    yield "evaluate metric", lambda t: dragoman.evaluate(["a"], ["a"], metric="best"), ArgumentError
    yield "evaluate numbers", lambda t: dragoman.evaluate([1], [2]), TypeError
    yield "evaluate option", lambda t: dragoman.evaluate(["a"], ["a"], colour=3), TypeError
    yield "evaluate samples", lambda t: dragoman.evaluate(["a"], ["a"], samples=-1), Error
    yield "evaluate huge", lambda t: dragoman.evaluate(["a"], ["a"], samples=HUGE), OverflowError
    yield "detect bytes", lambda t: dragoman.detect(b"a"), TypeError
    yield "detect most", lambda t: dragoman.detect("a", most=0), ArgumentError
    yield "detect among numbers", lambda t: dragoman.detect("a", [1]), TypeError
    yield "file that is not there", lambda t: t.translate_file("/no/such/file.html", tmp / "o"), OSError
    yield "file of a number", lambda t: t.translate_file(None, tmp / "o"), TypeError
    yield "align", lambda t: dragoman.align(["a"], ["a", "b"]), ArgumentError
    yield "align model", lambda t: dragoman.align(["a"], ["a"], model=9), ArgumentError
    yield "align iterations", lambda t: dragoman.align(["a"], ["a"], iterations=0), ArgumentError
    yield "align symmetrize", lambda t: dragoman.align(["a"], ["a"], symmetrize="x"), ArgumentError
    yield "align None", lambda t: dragoman.align(None, None), TypeError
    yield "align numbers", lambda t: dragoman.align([1], [2]), (TypeError, AttributeError)


def of_closed(closed):
    yield "closed translate", lambda t: closed.translate("a"), ClosedError
    yield "closed list", lambda t: closed.translate(["a"] * 100), ClosedError
    yield "closed settings", lambda t: closed.translate("a", beam=2), ClosedError
    yield "closed iter", lambda t: list(closed.translate_iter(["a"])), ClosedError
    yield "closed stream", lambda t: list(closed.stream("a")), ClosedError
    yield "closed atranslate", lambda t: asyncio.run(closed.atranslate("a")), ClosedError
    yield "closed score", lambda t: closed.score("a", "b"), ClosedError
    yield "closed tokenize", lambda t: closed.tokenize("a"), ClosedError
    yield "closed detokenize", lambda t: closed.detokenize(["a"]), ClosedError
    yield "closed info", lambda t: closed.info, ClosedError
    yield "closed directions", lambda t: closed.directions, ClosedError
    from dragoman import _dragoman
    yield "no engine", lambda t: _dragoman.Engine(), TypeError
    yield "no job", lambda t: _dragoman.Job(), TypeError
    yield "no array", lambda t: _dragoman.Array(), TypeError
    yield "lender", lambda t: _dragoman.open((), (), 3), TypeError
    yield "members", lambda t: _dragoman.open([], ()), TypeError
    yield "pairs", lambda t: _dragoman.open(((None, 0.0),), (("beam",),)), TypeError


def test_bad_calls(en_de, tree, tmp_path):
    closed = Translator(tree / "models/en-de.gguf", threads=1)
    closed.close()
    calls = [*of_translate(), *of_text(), *of_settings(), *of_opening(tree, tmp_path), *of_tools(tree, tmp_path),
             *of_closed(closed)]
    assert len(calls) >= 200
    wrong = []
    for name, call, kind in calls:
        try:
            call(en_de)
            wrong.append(f"{name}: no exception")
        except kind as e:
            if isinstance(e, Error) and not str(e):
                wrong.append(f"{name}: no words")
        except Exception as e:  # the wrong one
            wrong.append(f"{name}: {type(e).__name__}: {e}")
    assert not wrong, "\n".join(wrong)
    assert en_de.translate("Good morning.")


def test_model_file_that_goes_away(tree, tmp_path):
    """A model whose file is deleted while it is open goes on; a new one is refused."""
    copy = tmp_path / "copy.gguf"
    copy.write_bytes((tree / "models/en-de.gguf").read_bytes())
    with Translator(copy, threads=1) as t:
        copy.unlink()
        assert t.translate("Good morning.") and t.translate("Good morning.", nbest=2)
        with pytest.raises(FileError):
            Translator(copy)


def test_a_huge_list(en_de):
    """A hundred thousand empty lines, and one that is none."""
    with pytest.raises(TypeError, match="text 100000 must be str, not int"):
        en_de.translate([""] * 100000 + [1])
    assert len(en_de.translate([""] * 100000)) == 100000


def test_kinds():
    assert issubclass(ArgumentError, ValueError) and issubclass(FileError, OSError) and issubclass(UnsupportedError, Error)
    assert issubclass(dragoman.OutOfMemoryError, MemoryError) and issubclass(dragoman.ForkError, RuntimeError)
