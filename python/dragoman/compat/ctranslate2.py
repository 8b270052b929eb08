# SPDX-License-Identifier: MIT
"""CTranslate2's Translator, over tokens, with Dragoman behind it.

    import dragoman.compat.ctranslate2 as ctranslate2
    translator = ctranslate2.Translator("folder/", device="cpu", compute_type="int8")
    translator.translate_batch([["▁Hello", "▁world", "!", "</s>"]], beam_size=4)

model_path is a CTranslate2 folder, which is imported into a cache, or anything else that dragoman.Translator opens.
docs/manual/PYTHON.md lists what is different; arguments that have no meaning here (flash_attention, intra_threads ...) are
accepted, those that would change translations are refused.
"""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Optional, Union

from .. import _dragoman as c
from .._result import error_of, numbers
from .._translator import Setting
from .._translator import Translator as Base

__all__ = ["AsyncScoringResult", "AsyncTranslationResult", "GenerationStepResult", "ScoringResult", "TranslationResult",
           "Translator"]

Tokens = Sequence[str]
DEFAULT = 64  # sentences that translate_iterable hands over at once, where nothing is said
COMPUTE_TYPES = {"default": None, "auto": None}


@dataclass
class TranslationResult:
    """A sentence's translations, best first."""

    hypotheses: list[list[str]]
    scores: list[float] = field(default_factory=list)
    attention: list[list[list[float]]] = field(default_factory=list)
    logits: list[Any] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.hypotheses)

    def __getitem__(self, i: int) -> dict[str, Any]:
        one: dict[str, Any] = {"tokens": self.hypotheses[i]}
        if self.scores:
            one["score"] = self.scores[i]
        if self.attention:
            one["attention"] = self.attention[i]
        return one


@dataclass
class ScoringResult:
    """Log-probabilities of a target's tokens."""

    tokens: list[str]
    log_probs: list[float]


@dataclass
class GenerationStepResult:
    """One token of a translation."""

    step: int
    batch_id: int
    token_id: int  #: -1: ids are the library's business
    token: str
    hypothesis_id: int = 0
    log_prob: Optional[float] = None
    is_last: bool = False
    logits: Any = None


class AsyncTranslationResult:
    """A translation that is under way."""

    def __init__(self, batch: _Batch, index: int) -> None:
        self._batch, self._index = batch, index

    def done(self) -> bool:
        return self._batch.done()

    def result(self) -> TranslationResult:
        return self._batch.results()[self._index]


class AsyncScoringResult:
    def __init__(self, result: ScoringResult) -> None:
        self._result = result

    def done(self) -> bool:
        return True

    def result(self) -> ScoringResult:
        return self._result


@dataclass
class _Options:
    """Arguments of translate_batch that say how to decode and what to return."""

    beam_size: int = 2
    patience: float = 1
    num_hypotheses: int = 1
    length_penalty: float = 1
    coverage_penalty: float = 0
    repetition_penalty: float = 1
    no_repeat_ngram_size: int = 0
    disable_unk: bool = False
    suppress_sequences: Optional[Sequence[Tokens]] = None
    end_token: Union[None, str, Sequence[Any], int] = None
    return_end_token: bool = False
    prefix_bias_beta: float = 0
    max_input_length: int = 1024
    max_decoding_length: int = 256
    min_decoding_length: int = 1
    use_vmap: bool = False
    return_scores: bool = False
    return_logits_vocab: bool = False
    return_attention: bool = False
    return_alternatives: bool = False
    min_alternative_expansion_prob: float = 0
    sampling_topk: int = 1
    sampling_topp: float = 1
    sampling_temperature: float = 1
    replace_unknowns: bool = False
    callback: Optional[Callable[[GenerationStepResult], Any]] = None

    def check(self, end: str) -> None:
        if self.beam_size < 1:
            raise c.ArgumentError("The beam size must be > 0")
        if self.patience <= 0:
            raise c.ArgumentError("The patience factor must be > 0")
        if self.num_hypotheses < 1:
            raise c.ArgumentError("The number of hypotheses must be > 0")
        if (self.num_hypotheses > round(self.beam_size * self.patience) and not self.return_alternatives
                and not self.samples):
            raise c.ArgumentError("The number of hypotheses cannot be greater than beam_size * patience")
        if self.num_hypotheses > self.beam_size and not self.return_alternatives and not self.samples:
            raise c.UnsupportedError("num_hypotheses must be at most beam_size")
        if self.min_decoding_length > self.max_decoding_length:
            raise c.ArgumentError("The minimum decoding length is greater than the maximum decoding length")
        if self.max_decoding_length < 1:
            raise c.ArgumentError("The maximum decoding length must be > 0")
        if self.repetition_penalty <= 0:
            raise c.ArgumentError("The repetition penalty must be > 0")
        if not 0 < self.sampling_topp <= 1:
            raise c.ArgumentError("The sampling_topp parameter must be between 0 and 1")
        if self.callback is not None and self.beam_size != 1:
            raise c.ArgumentError("The callback function is not compatible with beam_size > 1 or prefix_bias_beta > 0")
        if self.prefix_bias_beta > 0:
            raise c.UnsupportedError("prefix_bias_beta: a prefix is forced or not, it is no bias here")
        if self.return_logits_vocab:
            raise c.UnsupportedError("return_logits_vocab: the library gives probabilities of chosen tokens only")
        if self.end_token not in (None, end, [end], (end,)):
            raise c.UnsupportedError(f"end_token: only the model's own, {end!r}")

    @property
    def samples(self) -> bool:
        return self.sampling_topk != 1 and self.sampling_temperature != 0

    def settings(self, longest: int) -> dict[str, Setting]:
        plain = self.length_penalty == 0 and self.coverage_penalty == 0
        s: dict[str, Setting] = {
            "beam": max(self.beam_size, self.num_hypotheses) if not self.samples else self.num_hypotheses,
            "nbest": self.num_hypotheses, "length_penalty": self.length_penalty, "word_penalty": 0,
            "coverage_penalty": self.coverage_penalty, "no_repeat_ngram": self.no_repeat_ngram_size,
            "max_length": min(self.max_decoding_length, longest), "max_length_factor": 0,
            "min_length": min(self.min_decoding_length, longest),
            "allow_unk": not self.disable_unk}
        if self.repetition_penalty != 1:
            s["repetition_penalty"] = self.repetition_penalty
        if self.samples:
            s.update(search="sample", top_k=min(max(self.sampling_topk, 0), 1024), top_p=self.sampling_topp,
                     temperature=self.sampling_temperature)
        elif plain:  # the first that nothing can beat ends the search
            s.update(finish="margin", margin=0)
        else:
            s["finish"] = f"first:{max(1, min(256, round(self.beam_size * self.patience)))}"
        if not self.use_vmap:
            s["shortlist"] = "all"
        if self.return_attention or self.replace_unknowns:
            s["alignment"] = "tokens"
        return s


class _Batch:
    """Sentences of one call."""

    def __init__(self, translator: Translator, job: c.Job, sources: Sequence[Tokens], prefixes: Sequence[Tokens], options: _Options):
        self._translator, self._job, self._sources = translator, job, sources
        self._prefixes, self._options = prefixes, options
        self._results: Optional[list[TranslationResult]] = None

    def done(self) -> bool:
        return self._results is not None or self._job.wait(0)

    def results(self) -> list[TranslationResult]:
        if self._results is None:
            lines = self._job.results()
            self._results = [self._result(i, line) for i, line in enumerate(lines)]
        return self._results

    def _result(self, i: int, line: c.RawResult) -> TranslationResult:
        if line[0]:
            raise error_of(line[0], line[1])
        o, scored = self._options, []
        if not self._sources[i]:
            return TranslationResult([[]] * o.num_hypotheses, [0.0] * o.num_hypotheses if o.return_scores else [])
        for raw in line[5]:
            scored.append(self._hypothesis(i, raw))
        scored.sort(key=lambda h: -h[1])
        if o.callback is not None:
            self._tell(i, scored[0])
        return TranslationResult([h[0] for h in scored], [h[1] for h in scored] if o.return_scores else [],
                                 [h[2] for h in scored] if o.return_attention else [])

    def _hypothesis(self, i: int, raw: c.RawTranslation) -> tuple[list[str], float, list[list[float]], list[float]]:
        """Tokens, score, attention and log-probabilities as CTranslate2 has them: a prefix counts for the length only."""
        o, prefix, source = self._options, self._prefixes[i], self._sources[i]
        lead = self._translator._lead if len(prefix) >= self._translator._lead else 0
        tokens, probs = list(prefix[:lead]) + list(raw[5] or ()), [0.0] * lead + memoryview(raw[6] or b"").tolist()
        if not raw[3] and tokens and tokens[-1] == self._translator._end:  # cut off: nobody chose its end
            tokens, probs = tokens[:-1], probs[:-1]
        probs[:len(prefix)] = [0.0] * min(len(prefix), len(probs))
        score = sum(probs) / max(1, len(tokens)) ** o.length_penalty
        if o.coverage_penalty:  # what the library added to the normalised sum
            score += raw[1] - raw[2] / max(1, len(raw[5] or ())) ** o.length_penalty
        attention: list[list[float]] = []
        if o.return_attention or o.replace_unknowns:
            attention = [[0.0] * len(source) for _ in tokens]
            links: Any = memoryview(raw[7] or b"").tolist()
            for s, t in links:
                if t + lead < len(tokens) and s < len(source):
                    attention[t + lead][s] = 1.0
        if tokens and tokens[-1] == self._translator._end and not o.return_end_token:
            tokens, attention = tokens[:-1], attention[:-1]
        if o.replace_unknowns:
            for t, token in enumerate(tokens):
                if token == self._translator._unknown and 1.0 in attention[t]:
                    tokens[t] = source[attention[t].index(1.0)]
        return tokens, score, attention, probs

    def _tell(self, i: int, best: tuple[list[str], float, list[list[float]], list[float]]) -> None:
        callback = self._options.callback
        assert callback is not None
        for step, token in enumerate(best[0]):
            last = step + 1 == len(best[0])
            if callback(GenerationStepResult(step, i, -1, token, 0, best[3][step] if self._options.return_scores else None, last)):
                break


class Translator:
    """As ctranslate2.Translator."""

    def __init__(self, model_path: Union[str, os.PathLike[str]], device: str = "cpu", *,
                 device_index: Union[int, Sequence[int]] = 0, compute_type: Union[str, Mapping[str, str]] = "default",
                 inter_threads: int = 1, intra_threads: int = 0, max_queued_batches: int = 0, flash_attention: bool = False,
                 tensor_parallel: bool = False, files: Any = None) -> None:
        if files is not None:
            raise c.UnsupportedError("files: give the path of a folder")
        if tensor_parallel:
            raise c.UnsupportedError("tensor_parallel: a model is on one device at a time")
        del max_queued_batches, flash_attention  # no queue is full here, and attention is what it is
        self.device, self.tensor_parallel = device, False
        self.device_index = [device_index] if isinstance(device_index, int) else list(device_index)
        self._path, self._threads = os.fspath(model_path), max(1, inter_threads) * max(1, intra_threads)
        kind = compute_type if isinstance(compute_type, str) else compute_type.get(device, "default")
        self.compute_type, self._precision = kind, COMPUTE_TYPES.get(kind, kind)
        config = os.path.join(self._path, "config.json")
        self._config: dict[str, Any] = {}
        if os.path.exists(config):
            with open(config, encoding="utf-8") as text:
                self._config = json.load(text)
        self._end: str = self._config.get("eos_token", "</s>")
        self._unknown: str = self._config.get("unk_token", "<unk>")
        self._translator: Optional[Base] = None
        self.load_model()
        info = self._translator_here().info
        self._lead: int = info["lead"]
        self._longest: int = info["longest"]

    # ---- the model ---------------------------------------------------------------------------------

    def load_model(self, keep_cache: bool = False) -> None:
        """Loads the model again after unload_model."""
        del keep_cache
        if self._translator is not None:
            return
        names = ",".join(f"cuda:{i}" for i in self.device_index) if self.device == "cuda" else self.device
        self._translator = Base(self._path, device=names, threads=self._threads, precision=self._precision, raw=True,
                                word_scores=True, direction_later=True)

    def unload_model(self, to_cpu: bool = False) -> None:
        """Frees the model's memory. to_cpu: accepted; the file is mapped anew, which takes no time to speak of."""
        del to_cpu
        if self._translator is not None:
            self._translator.close()
            self._translator = None

    @property
    def model_is_loaded(self) -> bool:
        return self._translator is not None

    @property
    def num_translators(self) -> int:
        return len(self.device_index)

    @property
    def num_active_batches(self) -> int:
        return 0

    num_queued_batches = num_active_batches

    def _translator_here(self) -> Base:
        if self._translator is None:
            raise c.ClosedError("The model for this translator was unloaded")
        return self._translator

    # ---- translating -------------------------------------------------------------------------------

    def _source(self, tokens: Tokens, most: int) -> tuple[str, ...]:
        """What the encoder reads."""
        if isinstance(tokens, str):
            raise TypeError("source must be a list of lists of tokens, not of str")
        own = list(tokens)[:most] if most > 0 else list(tokens)
        if not own:
            return ()
        if self._config.get("add_source_bos"):
            own.insert(0, self._config.get("bos_token", "<s>"))
        if self._config.get("add_source_eos") or (not self._config and own[-1] != self._end):
            own.append(self._end)
        return tuple(own)

    def _start(self, source: Sequence[Tokens], prefixes: Optional[Sequence[Optional[Tokens]]], options: _Options) -> _Batch:
        options.check(self._end)
        base = self._translator_here()
        if prefixes is not None and len(prefixes) != len(source):
            raise c.ArgumentError(f"there must be as many target prefixes as sources, {len(source)}, not {len(prefixes)}")
        sources = [self._source(tokens, options.max_input_length) for tokens in source]
        given = [tuple(p or ()) for p in prefixes or [None] * len(sources)]
        constraints = None
        if options.suppress_sequences:
            words = "\t".join("! " + base.detokenize(s) for s in options.suppress_sequences)
            constraints = (words,) * len(sources)
        job = base._with(options.settings(self._longest)).submit(("",) * len(sources), None, constraints, None, 0, False, tuple(sources),
                                                    tuple(given))
        return _Batch(self, job, [tuple(s) for s in source], given, options)

    def translate_batch(self, source: Sequence[Tokens], target_prefix: Optional[Sequence[Optional[Tokens]]] = None, *,
                        max_batch_size: int = 0, batch_type: str = "examples", asynchronous: bool = False,
                        **options: Any) -> Any:
        """Translates sentences of tokens: list[TranslationResult], or list[AsyncTranslationResult] if asynchronous.

        Arguments are those of CTranslate2. max_batch_size and batch_type are checked and have no other effect: batches
        are made anew at every step, of all sentences that are there.
        """
        check_batch_type(batch_type, max_batch_size)
        o = _Options(**options)
        if not source:
            return []
        if o.return_alternatives:
            return self._alternatives(source, target_prefix, o)
        batch = self._start(source, target_prefix, o)
        if asynchronous:
            return [AsyncTranslationResult(batch, i) for i in range(len(source))]
        return batch.results()

    def _alternatives(self, source: Sequence[Tokens], prefixes: Optional[Sequence[Optional[Tokens]]],
                      o: _Options) -> list[TranslationResult]:
        """The most probable words behind the prefix, each with the best translation that goes on from it."""
        results = []
        for i, tokens in enumerate(source):
            prefix = list((prefixes[i] or ()) if prefixes is not None else ())
            step = _Options(beam_size=o.num_hypotheses, num_hypotheses=o.num_hypotheses, length_penalty=0, return_scores=True,
                            max_decoding_length=max(1, len(prefix) + 1 - self._lead * (len(prefix) >= self._lead)))
            step.min_decoding_length = step.max_decoding_length
            first = self._start([tokens], [prefix], step).results()[0]
            words = [(h, s) for h, s in zip(first.hypotheses, first.scores)
                     if len(h) > len(prefix) and pow(2.718281828459045, s) >= o.min_alternative_expansion_prob]
            rest = _Options(**{**vars(o), "return_alternatives": False, "num_hypotheses": 1, "return_scores": True})
            ends = self._start([tokens] * len(words), [h for h, _ in words], rest).results() if words else []
            result = TranslationResult([e.hypotheses[0] for e in ends], [], [e.attention[0] for e in ends if e.attention])
            if o.return_scores:
                for (h, s), e in zip(words, ends):  # CTranslate2 divides by the length of what follows alone
                    whole = len(e.hypotheses[0]) + (0 if o.return_end_token else 1)
                    total = e.scores[0] * max(1, whole) ** o.length_penalty
                    result.scores.append(s + total / max(1, whole - len(h)) ** o.length_penalty)
            results.append(result)
        return results

    def translate_iterable(self, source: Iterable[Tokens], target_prefix: Optional[Iterable[Tokens]] = None,
                           max_batch_size: int = 32, batch_type: str = "examples", **options: Any) -> Iterator[TranslationResult]:
        """Translates sentences as they come; results keep their order, memory is bounded."""
        check_batch_type(batch_type, max_batch_size)
        o, count = _Options(**options), max(DEFAULT, max_batch_size if batch_type == "examples" else 0)
        left, under_way = iter(source), []
        right = iter(target_prefix) if target_prefix is not None else None
        while sentences := list(islice(left, count)):
            prefixes = list(islice(right, count)) if right is not None else None
            under_way.append(self._start(sentences, prefixes, o))
            if len(under_way) > 2:
                yield from under_way.pop(0).results()
        for batch in under_way:
            yield from batch.results()

    def generate_tokens(self, source: Tokens, target_prefix: Optional[Tokens] = None, *, return_log_prob: bool = False,
                        **options: Any) -> Iterator[GenerationStepResult]:
        """Yields the tokens of a translation, with a beam of 1."""
        steps: list[GenerationStepResult] = []
        options.pop("asynchronous", None)
        self.translate_batch([source], None if target_prefix is None else [target_prefix], beam_size=1, return_end_token=True,
                             return_scores=return_log_prob, callback=steps.append, **options)
        yield from steps

    # ---- scoring -----------------------------------------------------------------------------------

    def score_batch(self, source: Sequence[Tokens], target: Sequence[Tokens], *, max_batch_size: int = 0,
                    batch_type: str = "examples", max_input_length: int = 1024, offset: int = 0,
                    asynchronous: bool = False) -> Any:
        """Log-probabilities of the tokens of given translations, end symbol included."""
        check_batch_type(batch_type, max_batch_size)
        if len(source) != len(target):
            raise c.ArgumentError(f"there must be as many targets as sources, {len(source)}, not {len(target)}")
        sources = tuple(self._source(tokens, max_input_length) or (self._end,) for tokens in source)
        targets = tuple(tuple(t)[:max_input_length] if max_input_length > 0 else tuple(t) for t in target)
        results = []
        for given, raw in zip(targets, self._translator_here()._engine.score_tokens(sources, targets)):
            if raw[0]:
                raise error_of(raw[0], raw[1])
            lead = self._lead if len(given) >= self._lead else 0
            tokens, probs = list(given[:lead]) + raw[4], [0.0] * lead + [float(x) for x in numbers(raw[5])]
            results.append(ScoringResult(tokens[offset:], probs[offset:]))
        return [AsyncScoringResult(r) for r in results] if asynchronous else results


def check_batch_type(batch_type: str, max_batch_size: int) -> None:
    if batch_type not in ("examples", "tokens"):
        raise c.ArgumentError(f"Invalid batch type: {batch_type}")
    if max_batch_size < 0:
        raise c.ArgumentError("max_batch_size must be >= 0")
