# SPDX-License-Identifier: MIT
"""Translator: everything that it does, against the program and against itself."""
import asyncio
import gc
import itertools
import multiprocessing
import os
import pickle
import signal
import subprocess
import threading
import time

import pytest

import dragoman


def test_one_and_many(en_de, lines):
    one = en_de.translate(lines[0])
    many = en_de.translate(lines)
    assert isinstance(one, dragoman.Result) and isinstance(one, str) and isinstance(many, list)
    assert many[0] == one and many[0].score == one.score
    assert [r.source for r in many] == lines
    assert en_de.translate([]) == []
    assert en_de.translate("") == ""
    assert en_de.translate(tuple(lines[:2])) == many[:2] == en_de.translate(iter(lines[:2]))


def test_as_the_program(en_de, lines, tree):
    program = os.environ.get("DRAGOMAN_PROGRAM", str(tree / "build/dragoman"))
    if not os.path.exists(program):
        pytest.skip("there is no program here")
    done = subprocess.run([program, "translate", "-m", str(tree / "models/en-de.gguf"), "-b", "3", "-q"], check=True,
                          input="\n".join(lines) + "\n", capture_output=True, text=True)
    assert done.stdout.splitlines() == list(en_de.translate(lines, beam=3))


def test_what_results_hold(en_de):
    r = en_de.translate("The little house is red.", nbest=3, beam=4, word_scores=True, alignment="words")
    assert r.text == str(r) and type(r.text) is str and r == r.text and repr(r) == f"Result({r.text!r})"
    assert len(r.alternatives) == 2 and r.score >= r.alternatives[0].score >= r.alternatives[1].score
    assert r.tokens[-1] == "</s>" and len(r.word_scores) == len(r.tokens)
    assert abs(sum(r.word_scores) - r.log_probability) < 1e-3
    assert r.finished and not r.flags and r.notice is None and r.error is None
    assert [0, 0] in [list(map(int, pair)) for pair in r.alignment]
    plain = en_de.translate("The little house is red.")
    assert plain.tokens is None and plain.word_scores is None and plain.alignment is None and plain.alternatives == ()


def test_numbers_without_copies(en_de):
    numpy = pytest.importorskip("numpy")
    r = en_de.translate("The little house is red.", word_scores=True, alignment="tokens")
    scores, links = r.word_scores, r.alignment
    kept = scores.copy()
    assert scores.dtype == numpy.float32 and links.dtype == numpy.int32 and links.shape[1] == 2
    assert not scores.flags.owndata and not scores.flags.writeable
    del r
    gc.collect()
    for _ in range(20):
        en_de.translate("Other memory.", word_scores=True)
    assert (scores == kept).all()


def test_numbers_are_lists_without_numpy(en_de, monkeypatch):
    import sys
    monkeypatch.setitem(sys.modules, "numpy", None)
    r = en_de.translate("The little house is red.", word_scores=True, alignment="words")
    assert isinstance(r.word_scores, list) and isinstance(r.alignment, list) and isinstance(r.alignment[0], list)


def test_pickle(en_de):
    r = en_de.translate("The little house is red.", word_scores=True, alignment="words", nbest=2)
    back = pickle.loads(pickle.dumps(r))
    assert back == r and back.source == r.source and back.score == r.score and back.flags == r.flags
    assert list(back.word_scores) == list(r.word_scores) and back.alternatives == r.alternatives
    assert [list(p) for p in back.alignment] == [list(p) for p in r.alignment]
    with pytest.raises(TypeError):
        pickle.dumps(en_de)


def test_settings_of_a_call(en_de):
    text = "The little house is red."
    for _ in range(2):
        assert len(en_de.translate(text, num_hypotheses=2, beam_size=2).alternatives) == 1  # synonyms
    assert en_de.translate(text, prefix="Dieses").startswith("Dieses")
    both = en_de.translate([text, text], prefix=["Dieses", None])
    assert both[0].startswith("Dieses") and both[1] == en_de.translate(text)
    assert "Heim" in en_de.translate(text, constraints="house => Heim")
    assert en_de.translate([text] * 2, source="en", target="de")[1] == en_de.translate(text)
    with pytest.raises(dragoman.ArgumentError, match="precision belongs to the loaded model"):
        en_de.translate(text, precision="f32")
    assert len({en_de.translate(text, beam=b, nbest=1) for b in range(1, 12)}) >= 1  # more than are kept
    assert len(en_de._variants) <= 8


def test_errors_of_lines(en_de):
    texts = ["Good.", "long " * 600, "Fine."]
    back = en_de.translate(texts, long="error", errors="return")
    assert back[0] and back[2] and back[1] == "" and isinstance(back[1].error, dragoman.TextError)
    with pytest.raises(dragoman.TextError, match="text 1: the line has"):
        en_de.translate(texts, long="error")
    with pytest.raises(dragoman.TextError, match="^the line has"):
        en_de.translate(texts[1], long="error")


def test_iter(en_de, lines):
    wanted = list(en_de.translate(lines))
    assert list(en_de.translate_iter(lines)) == wanted
    assert list(en_de.translate_iter(iter(lines * 4))) == wanted * 4
    assert list(en_de.translate_iter([])) == []
    read = []

    def source():
        for i in itertools.count():
            read.append(i)
            yield "Good morning."

    endless = en_de.translate_iter(source(), beam=1)
    first = list(itertools.islice(endless, 40))
    assert len(set(first)) == 1 and len(read) < 40 + 3 * 2048
    endless.close()

    def broken():
        yield "Good."
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        list(en_de.translate_iter(broken()))
    with pytest.raises(TypeError):
        list(en_de.translate_iter(["Good.", None]))


@pytest.mark.skipif("DRAGOMAN_SANITIZED" in os.environ, reason="a sanitizer keeps memory that was freed")
def test_memory_of_iter(tree):
    """Peak memory of 60,000 lines is about that of 20,000, not three times that. Numbers pass through, and are quick."""
    code = ("import dragoman, resource, sys\n"
            "t = dragoman.Translator(sys.argv[1], threads=1, beam=1)\n"
            "n = sum(len(r) > 0 for r in t.translate_iter('%d ' % i * 40 for i in range(int(sys.argv[2]))))\n"
            "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n")
    import sys
    peaks = []
    for count in (20000, 60000):
        out = subprocess.run([sys.executable, "-c", code, str(tree / "models/en-de.gguf"), str(count)], check=True,
                             capture_output=True, text=True).stdout.split()
        assert int(out[0]) == count
        peaks.append(int(out[1]))
    assert peaks[1] < peaks[0] * 1.1 + 4096


def test_asyncio(en_de, lines):
    async def main():
        return await asyncio.gather(*(en_de.atranslate(line) for line in lines[:6]), en_de.atranslate(lines[6:8]))

    *single, pair = asyncio.run(main())
    assert single == list(en_de.translate(lines[:6])) and pair == en_de.translate(lines[6:8])

    async def cancelled():
        task = asyncio.create_task(en_de.atranslate(["A sentence that is cancelled, sooner or later." * 5] * 2000))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())

    async def streamed():
        return [part async for part in en_de.astream(lines[0])]

    assert "".join(asyncio.run(streamed())) == en_de.translate(lines[0])


def test_stream(en_de, lines):
    for line in lines[:6]:
        assert "".join(en_de.stream(line)) == en_de.translate(line)
    assert "".join(en_de.stream("")) == ""
    said = list(en_de.stream("Good morning. How are you? I have not seen you for a long time. " * 8, beam=8))
    assert len(said) > 1
    for i in range(100):  # the end is never missed, whoever is faster
        assert "".join(en_de.stream("Good." if i % 2 else str(i), beam=1))
    stopped = en_de.stream(lines[0])
    next(stopped)
    stopped.close()
    with pytest.raises(dragoman.TextError):
        list(en_de.stream("long " * 600, long="error"))


def test_score(en_de):
    source = "The little house is red."
    r = en_de.translate(source, raw=True, shortlist="all")
    s = en_de.score(source, r.text)
    assert isinstance(s, float) and abs(s.log_probability - r.log_probability) < 1e-2
    assert len(s.tokens) == len(s.word_scores) and abs(sum(s.word_scores) - s.log_probability) < 1e-3
    assert en_de.score([source, source], [r.text, "Gute Nacht."])[1] < s
    assert pickle.loads(pickle.dumps(s)) == s
    bad = en_de.score(["a"], ["b " * 3000], errors="return")
    assert isinstance(bad[0].error, dragoman.Error)
    with pytest.raises(dragoman.Error):
        en_de.score("a", "b " * 3000)


def test_tokens(en_de):
    assert en_de.tokenize("Good morning.")[0].startswith("▁")
    assert en_de.detokenize(en_de.tokenize("Guten Morgen.", "target")) == "Guten Morgen."
    assert en_de.detokenize(en_de.tokenize("Good morning."), "source") == "Good morning."
    assert en_de.tokenize("") == []


def test_threads(en_de, lines):
    lines, wrong = lines[:8], []
    wanted = list(en_de.translate(lines))

    def work(shift):
        for i in range(3):
            text = lines[shift:] + lines[:shift]
            got = list(en_de.translate(text, beam=4) if i == 1 else en_de.translate(text))
            if got != wanted[shift:] + wanted[:shift] and i != 1:
                wrong.append(shift)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_closing(tree):
    t = dragoman.Translator(tree / "models/en-de.gguf", threads=1)
    assert not t.closed and "en-de" in repr(t)
    results = []
    worker = threading.Thread(target=lambda: results.extend(t.translate(["A sentence that takes its time."] * 200, beam=4)))
    worker.start()
    time.sleep(0.05)
    t.close()  # what is under way goes on
    t.close()
    worker.join()
    assert t.closed and "closed" in repr(t) and (len(results) == 200 or not results)
    for call in (lambda: t.translate("a"), lambda: t.score("a", "b"), lambda: t.tokenize("a"), lambda: t.info,
                 lambda: next(iter(t.translate_iter(["a"]))), lambda: list(t.stream("a")), lambda: t.translate("a", beam=2)):
        with pytest.raises(dragoman.ClosedError):
            call()
    with dragoman.Translator(tree / "models/en-de.gguf", threads=1) as inside:
        assert inside.translate("Good.")
    assert inside.closed


def forked(pipe, t):
    try:
        t.translate("Good.")
        pipe.send("no error")
    except dragoman.ForkError as e:
        pipe.send(str(e))
    del t
    gc.collect()
    pipe.send("alive")


def test_fork(en_de):
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=forked, args=(theirs, en_de))
    child.start()
    assert "forked" in ours.recv() and ours.recv() == "alive"
    child.join(20)
    assert child.exitcode == 0 and en_de.translate("Good.")


def test_interrupt(en_de):
    """Ctrl-C ends a job of minutes at once, and the translator can be used afterwards."""
    for job in (lambda: en_de.translate(["A long sentence, which nobody waits for, is given up at once."] * 20000, beam=8),
                lambda: list(en_de.translate_iter(["A long sentence, which nobody waits for."] * 100000, beam=8))):
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            job()
        timer.join()
    assert en_de.translate("Good.")


def test_ensemble(tree, en_de):
    path = tree / "models/en-de.gguf"
    with dragoman.Translator([path, path], weights=[3, 1], threads=1) as t:
        assert t.info["models"] == 2 and t.translate("Good morning.") == en_de.translate("Good morning.")


def test_info(en_de):
    assert en_de.info["source"] == "en" and en_de.info["threads"] == 2 and en_de.directions in ([], [("en", "de")])


def test_notebook(en_de):
    html = en_de.translate(["The little <house> is red.", "Good."], alignment="words")._repr_html_()
    assert "<table" in html and "&lt;house&gt;" in html and "data-links" in html
    assert "<td" in en_de.translate("Good.")._repr_html_()
    assert "dgm-error" in en_de.translate(["a " * 3000], long="error", errors="return")._repr_html_()


def test_progress(en_de, monkeypatch):
    import sys
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert len(list(en_de.translate_iter(["Good."] * 3, progress=True))) == 3  # without tqdm there is no bar

    class Bar:
        seen = 0

        def __init__(self, total, unit):
            assert total == 40

        def update(self, n):
            Bar.seen += n

        def close(self):
            Bar.seen += 1000

    import types
    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    assert len(list(en_de.translate_iter(["Good."] * 40, progress=True))) == 40 and Bar.seen == 1040
