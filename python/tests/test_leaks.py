# SPDX-License-Identifier: MIT
"""References and memory after many calls. DRAGOMAN_CALLS=100000 for the long run."""
import gc
import os
import sys

import pytest

import dragoman

SANITIZED = pytest.mark.skipif("DRAGOMAN_SANITIZED" in os.environ, reason="a sanitizer keeps memory that was freed")
CALLS = int(os.environ.get("DRAGOMAN_CALLS", "2000"))


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def calls(t, count):
    for i in range(count):
        t.translate("1")  # passes through: the call is what is measured
        t.translate(["2", "3"], errors="return")
        t.tokenize("Good")
        if i % 4 == 0:
            for bad in (lambda: t.translate(None), lambda: t.translate("a", beam=0), lambda: t.translate(["a", b"b"])):
                with pytest.raises((TypeError, dragoman.Error)):
                    bad()
        if i % 64 == 0:
            r = t.translate("Good.", word_scores=True, alignment="words")
            assert len(r.word_scores) and len(r.alignment)
            list(t.stream("4"))
            t.score("Good.", "Gut.")


@SANITIZED
def test_calls(en_de):
    calls(en_de, 200)
    gc.collect()
    before, objects = resident(), len(gc.get_objects())
    references = [sys.getrefcount(x) for x in (None, True, dragoman.Result, dragoman.ArgumentError)]
    calls(en_de, CALLS)
    gc.collect()
    assert len(gc.get_objects()) - objects < 200
    assert resident() - before < 16 << 20
    after = [sys.getrefcount(x) for x in (None, True, dragoman.Result, dragoman.ArgumentError)]
    assert all(b - a < 100 for a, b in zip(references, after)), (references, after)


@SANITIZED
def test_opening(tree):
    path = tree / "models/en-de.gguf"

    def rounds(count):
        for _ in range(count):
            with dragoman.Translator(path, threads=1) as t:
                t.translate("1", beam=2)

    rounds(4)
    before = resident()
    rounds(12)
    assert resident() - before < 24 << 20
