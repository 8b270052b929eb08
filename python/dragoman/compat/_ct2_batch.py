# SPDX-License-Identifier: MIT
"""Sentences of one call of translate_batch, as CTranslate2 gives them back."""
from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Optional

from .. import _dragoman as c
from .._result import error_of
from ._ct2_model import Model
from ._ct2_options import Options, Tokens
from ._ct2_results import GenerationStepResult, TranslationResult


@dataclass
class Hypothesis:
    """tokens: with the end symbol where the model chose one; probs: of each of them, 0 of what was given."""

    tokens: list[str]
    probs: list[float]
    score: float
    attention: list[list[float]]

    def cut(self, count: int, length_penalty: float) -> None:
        """Somebody wants no more of it."""
        self.tokens, self.probs, self.attention = self.tokens[:count], self.probs[:count], self.attention[:count]
        self.score = sum(self.probs) / max(1, count) ** length_penalty


class Batch:
    """given: of each sentence the tokens that it begins with; known: what is known without a search, else None."""

    def __init__(self, model: Model, lead: int, job: c.Job, sources: list[Tokens], given: list[tuple[str, ...]],
                 known: list[Optional[list[str]]], options: Options) -> None:
        self._model, self._lead, self._job, self._sources = model, lead, job, sources
        self._given, self._known, self._options = given, known, options
        self._lock = threading.Lock()
        self._results: Optional[list[TranslationResult]] = None
        self._error: Optional[BaseException] = None

    def done(self) -> bool:
        if not self._lock.acquire(blocking=False):  # somebody waits for the results
            return False
        try:
            return self._results is not None or self._error is not None or self._job.wait(0)
        finally:
            self._lock.release()

    def results(self) -> list[TranslationResult]:
        with self._lock:
            if self._results is None and self._error is None:
                try:
                    self._results = self._collect()
                except BaseException as error:
                    self._error = error
            if self._results is None:
                assert self._error is not None
                raise self._error
            return self._results

    def _collect(self) -> list[TranslationResult]:
        lines = self._job.results()
        for line in lines:
            if line[0]:
                raise error_of(line[0], line[1])
        found = [self._hypotheses(i, line) for i, line in enumerate(lines)]
        if self._options.callback is not None:
            self._tell(found)
        return [self._result(i, hypotheses) for i, hypotheses in enumerate(found)]

    def _hypotheses(self, i: int, line: c.RawResult) -> list[Hypothesis]:
        known = self._known[i]
        if known is None:
            return sorted((self._hypothesis(i, raw) for raw in line[5]), key=lambda h: -h.score)
        attention = [[0.0] * len(self._sources[i]) for _ in known]
        return [Hypothesis(list(known), [0.0] * len(known), 0.0, attention) for _ in range(self._options.num_hypotheses)]

    def _hypothesis(self, i: int, raw: c.RawTranslation) -> Hypothesis:
        o, given, source = self._options, self._given[i], self._sources[i]
        tokens = self._model.spelled(given[:self._lead]) + list(raw[5] or ())
        if not raw[3] and tokens and tokens[-1] == self._model.end:  # cut off: nobody chose its end
            tokens.pop()
        probs = ([0.0] * self._lead + memoryview(raw[6] or b"").tolist())[:len(tokens)]
        score = raw[1]
        if o.samples:  # draws count what they were given, and rank by their sums
            probs[:len(given)] = [0.0] * min(len(given), len(probs))
            score = sum(probs) / max(1, len(tokens)) ** o.length_penalty
        attention: list[list[float]] = []
        if o.return_attention or o.replace_unknowns:
            attention = [[0.0] * len(source) for _ in tokens]
            links: Any = memoryview(raw[7] or b"").tolist()
            begins = bool(self._model.config.get("add_source_bos"))
            for s, t in links:
                if t + self._lead < len(tokens) and 0 <= s - begins < len(source):
                    attention[t + self._lead][s - begins] = 1.0
        return Hypothesis(tokens, probs, score, attention)

    def _tell(self, found: list[list[Hypothesis]]) -> None:
        """Step by step, the longest source first, as CTranslate2 has them in a batch."""
        o, ids = self._options, self._model.ids()
        assert o.callback is not None
        alive = [(i, n, h) for i in sorted(range(len(found)), key=lambda i: -len(self._sources[i]))
                 if self._known[i] is None for n, h in enumerate(found[i])]
        step = 0
        while alive:
            left = []
            for i, n, h in alive:
                token, last = h.tokens[step], step + 1 == len(h.tokens)
                log_prob = h.probs[step] if o.return_scores else None
                said = GenerationStepResult(step, i, ids.get(token, -1), n, token, log_prob, None, last)
                if o.callback(said) and not last:
                    h.cut(step + 1, o.length_penalty)
                elif not last:
                    left.append((i, n, h))
            alive = left
            step += 1

    def _result(self, i: int, hypotheses: list[Hypothesis]) -> TranslationResult:
        o, source = self._options, self._sources[i]
        for h in hypotheses:
            while h.tokens and h.tokens[-1] == self._model.end and not o.return_end_token:
                h.tokens.pop()
                h.attention = h.attention[:len(h.tokens)]
            for t, token in enumerate(h.tokens if o.replace_unknowns else ()):
                if token == self._model.unknown and 1.0 in h.attention[t]:
                    h.tokens[t] = source[h.attention[t].index(1.0)]
        return TranslationResult([h.tokens for h in hypotheses], [h.score for h in hypotheses] if o.return_scores else [],
                                 [h.attention for h in hypotheses] if o.return_attention else [])


class Ready:
    """Results that are there already, as a Batch."""

    def __init__(self, results: list[TranslationResult]) -> None:
        self._results = results

    def done(self) -> bool:
        return True

    def results(self) -> list[TranslationResult]:
        return self._results
