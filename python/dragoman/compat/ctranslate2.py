# SPDX-License-Identifier: MIT
"""CTranslate2's Translator, over tokens, with Dragoman behind it.

    import dragoman.compat.ctranslate2 as ctranslate2
    translator = ctranslate2.Translator("folder/", device="cpu", compute_type="int8")
    translator.translate_batch([["▁Hello", "▁world", "!", "</s>"]], beam_size=4)

model_path is a CTranslate2 folder, which is imported into a cache, or anything else that dragoman.Translator opens.
docs/manual/PYTHON.md lists what is different; arguments that have no meaning here (flash_attention, max_batch_size ...) are
accepted, those that would change translations are refused.
"""
from __future__ import annotations

import logging
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from time import perf_counter
from typing import Any, Optional, Union
from weakref import WeakSet

from .. import _dragoman as c
from .._result import error_of, numbers
from .._translator import Translator as Base
from ._ct2_batch import Batch, Ready
from ._ct2_model import NAMES, Model, check_device, contains_model, get_cuda_device_count, get_supported_compute_types
from ._ct2_options import SEEDS, Options, Tokens, check_batch_type
from ._ct2_results import (AsyncScoringResult, AsyncTranslationResult, ExecutionStats, GenerationStepResult, ScoringResult,
                           TranslationResult)

__all__ = ["AsyncScoringResult", "AsyncTranslationResult", "ExecutionStats", "GenerationStepResult", "ScoringResult",
           "TranslationResult", "Translator", "contains_model", "get_cuda_device_count", "get_log_level",
           "get_supported_compute_types", "set_log_level", "set_random_seed"]
__version__ = "4.8.4"  #: of the package whose interface this is

WINDOW = 16  # batches that translate_iterable and its like hand over at once
MOST_SOURCE = 1024  # tokens of a source, where the model's positions do not end before
Prefixes = Optional[Sequence[Optional[Tokens]]]
Path = Union[str, "os.PathLike[str]"]
Tokenize = Optional[Callable[[str], list[str]]]
Detokenize = Optional[Callable[[list[str]], str]]


class Translator:
    """As ctranslate2.Translator."""

    def __init__(self, model_path: Path, device: str = "cpu", *, device_index: Union[int, Sequence[int]] = 0,
                 compute_type: Union[str, Mapping[str, str]] = "default", inter_threads: int = 1, intra_threads: int = 0,
                 max_queued_batches: int = 0, flash_attention: bool = False, tensor_parallel: bool = False,
                 files: Optional[Mapping[str, Any]] = None) -> None:
        if tensor_parallel:
            raise c.UnsupportedError("tensor_parallel: a model is on one device at a time")
        del max_queued_batches, flash_attention  # no queue is full here, and attention is what it is
        self._device = check_device(device)
        self._devices = [device_index] if isinstance(device_index, int) else list(device_index)
        self._inter = max(1, inter_threads)
        self._threads = thread_count(self._inter, intra_threads)
        self._model = Model(model_path, files)
        self._translator: Optional[Base] = None
        self._under_way: WeakSet[Batch] = WeakSet()
        self._helpers: Optional[ThreadPoolExecutor] = None
        self._model.file  # says here what is wrong with the path
        kind = compute_type if isinstance(compute_type, str) else compute_type.get(self._device, "default")
        self._precision = self._model.precision(kind, self._device)
        self.load_model()
        info = self._translator_here().info
        self._compute_type = NAMES[info["precision"]]
        self._lead: int = info["lead"]
        self._longest: int = info["longest"]

    # ---- the model ---------------------------------------------------------------------------------

    def load_model(self, keep_cache: bool = False) -> None:
        """Loads the model again after unload_model."""
        del keep_cache
        if self._translator is not None:
            return
        names = ",".join(f"cuda:{i}" for i in self._devices) if self._device == "cuda" else "cpu"
        self._translator = Base(self._model.file, device=names, threads=self._threads, precision=self._precision, raw=True,
                                word_scores=True, direction_later=True)

    def unload_model(self, to_cpu: bool = False) -> None:
        """Frees the model's memory, unless batches are under way. to_cpu: on a CPU it stays where it is; of a GPU it is
        freed all the same, as the file is mapped anew, which takes no time to speak of."""
        if (to_cpu and self._device == "cpu") or self.num_active_batches > 0:
            return
        if self._translator is not None:
            self._translator.close()
            self._translator = None

    @property
    def model_is_loaded(self) -> bool:
        return self._translator is not None

    @property
    def device(self) -> str:
        return self._device

    @property
    def device_index(self) -> list[int]:
        return list(self._devices)

    @property
    def compute_type(self) -> str:
        """What the model computes in, also where "default" or "auto" was asked for."""
        return self._compute_type

    @property
    def tensor_parallel(self) -> bool:
        return False

    @property
    def num_translators(self) -> int:
        return self._inter * len(self._devices)

    @property
    def num_active_batches(self) -> int:
        return sum(not batch.done() for batch in list(self._under_way))

    @property
    def num_queued_batches(self) -> int:
        return max(0, self.num_active_batches - self.num_translators)

    def _translator_here(self) -> Base:
        if self._translator is None:
            raise c.ClosedError("The model for this translator was unloaded")
        return self._translator

    @property
    def _max_source(self) -> int:
        return min(MOST_SOURCE, self._longest + 1 + self._lead)

    def _aside(self, work: Callable[[], Any]) -> Any:
        """Does it in a thread of its own."""
        if self._helpers is None:
            self._helpers = ThreadPoolExecutor(self.num_translators)
        return self._helpers.submit(work)

    # ---- translating -------------------------------------------------------------------------------

    def _start(self, source: Sequence[Tokens], prefixes: Prefixes, o: Options) -> Batch:
        base, given = self._translator_here(), prefix_list(source, prefixes)
        sources: list[tuple[str, ...]] = []
        known: list[Optional[list[str]]] = []
        for tokens, prefix in zip(source, given):
            own = self._model.source(tokens, o.max_input_length)
            rest = self._model.is_empty(tokens) or len(prefix) >= o.max_decoding_length
            known.append(self._model.spelled(prefix[:o.max_decoding_length]) if rest else None)
            sources.append(() if rest else own)
        constraints = None
        if o.suppress_sequences:
            words = "\t".join("! " + base.detokenize(s) for s in o.suppress_sequences)
            constraints = (words,) * len(sources)
        settings = o.settings(self._longest, self._lead, self._lead > 0 or all(given))
        engine = base._with({**settings, "max_source": self._max_source})
        job = engine.submit(("",) * len(sources), None, constraints, None, 0, False, tuple(sources),
                            tuple(g if known[i] is None else () for i, g in enumerate(given)))
        batch = Batch(self._model, self._lead, job, [tuple(s) for s in source], given, known, o)
        self._under_way.add(batch)
        return batch

    def _begin(self, source: Sequence[Tokens], prefixes: Prefixes, o: Options) -> Union[Batch, Ready]:
        o.check(self._model.end)
        return Ready(self._alternatives(source, prefixes, o)) if o.return_alternatives else self._start(source, prefixes, o)

    def translate_batch(self, source: Sequence[Tokens], target_prefix: Prefixes = None, *, max_batch_size: int = 0,
                        batch_type: str = "examples", asynchronous: bool = False, **options: Any) -> Any:
        """Translates sentences of tokens: list[TranslationResult], or list[AsyncTranslationResult] if asynchronous.

        Arguments are those of CTranslate2. max_batch_size and batch_type are checked and have no other effect: batches
        are made anew at every step, of all sentences that are there.
        """
        check_batch_type(batch_type, max_batch_size)
        o = Options(**options)
        if not source:
            return []
        batch = self._begin(source, target_prefix, o)
        if not asynchronous:
            return batch.results()
        if o.callback is not None:  # it is told without anybody asking for results
            self._aside(batch.results)
        return [AsyncTranslationResult(batch.done, batch.results, i) for i in range(len(source))]

    def _alternatives(self, source: Sequence[Tokens], prefixes: Prefixes, o: Options) -> list[TranslationResult]:
        """The most probable words behind the prefix, each with the best translation that goes on from it."""
        if o.callback is not None:
            raise c.UnsupportedError("callback: not with return_alternatives")
        given = prefix_list(source, prefixes)
        words = self._next_words(source, given, o)
        every = [(i, h) for i, found in enumerate(words) for h, _ in found]
        rest = Options(**{**vars(o), "return_alternatives": False, "num_hypotheses": 1 if o.samples else o.beam_size,
                          "return_scores": True, "return_end_token": True})
        ends = iter(self._start([source[i] for i, _ in every], [h for _, h in every], rest).results() if every else ())
        results = []
        for i, found in enumerate(words):
            result = TranslationResult([])
            for (h, s), e in zip(found, ends):
                score, best = max((behind(e, n, len(h), o.length_penalty), -n) for n in range(len(e)))
                tokens, attention = e.hypotheses[-best], e.attention[-best] if e.attention else []
                if not o.return_end_token and tokens[-1:] == [self._model.end]:
                    tokens, attention = tokens[:-1], attention[:-1]
                result.hypotheses.append(tokens)
                if o.return_attention:
                    result.attention.append(attention)
                if o.return_scores:
                    result.scores.append(s + score)
            results.append(result)
        return results

    def _next_words(self, source: Sequence[Tokens], given: list[tuple[str, ...]],
                    o: Options) -> list[list[tuple[list[str], float]]]:
        """Of every sentence the likely words behind its prefix, each with that prefix and its log-probability."""
        words: list[list[tuple[list[str], float]]] = [[] for _ in source]
        for size in {len(prefix) for prefix in given}:
            places = [i for i, prefix in enumerate(given) if len(prefix) == size]
            step = Options(beam_size=o.num_hypotheses, num_hypotheses=o.num_hypotheses, length_penalty=0, return_scores=True,
                           max_decoding_length=size + 1, min_decoding_length=size + 1, disable_unk=o.disable_unk,
                           max_input_length=o.max_input_length)
            first = self._start([source[i] for i in places], [given[i] for i in places], step).results()
            for i, found in zip(places, first):
                words[i] = [(h, s) for h, s in zip(found.hypotheses, found.scores)
                            if len(h) > size and math.exp(s) >= o.min_alternative_expansion_prob]
        return words

    def translate_iterable(self, source: Iterable[Tokens], target_prefix: Optional[Iterable[Tokens]] = None,
                           max_batch_size: int = 32, batch_type: str = "examples", **options: Any) -> Iterator[TranslationResult]:
        """Translates sentences as they come; results keep their order, memory is bounded."""
        check_batch_type(batch_type, max_batch_size)
        o, count = Options(**options), window_size(batch_type, max_batch_size)
        o.check(self._model.end)
        return self._iterate(source, target_prefix, o, count)

    def _iterate(self, source: Iterable[Tokens], prefixes: Optional[Iterable[Tokens]], o: Options,
                 count: int) -> Iterator[TranslationResult]:
        under_way: deque[Union[Batch, Ready]] = deque()
        for left, right in windows(source, prefixes, count):
            under_way.append(self._begin(left, right, o))
            while len(under_way) > 2 or (under_way and under_way[0].done()):
                yield from under_way.popleft().results()
        for batch in under_way:
            yield from batch.results()

    def generate_tokens(self, source: Tokens, target_prefix: Optional[Tokens] = None, *, return_log_prob: bool = False,
                        **options: Any) -> Iterator[GenerationStepResult]:
        """Yields the tokens of a translation, with a beam of 1."""
        steps: list[GenerationStepResult] = []
        for name in ("asynchronous", "beam_size", "callback", "num_hypotheses", "return_scores"):
            if name in options:
                raise TypeError(f"generate_tokens() got an unexpected keyword argument {name!r}")
        self.translate_batch([source], None if target_prefix is None else [target_prefix], beam_size=1,
                             return_scores=return_log_prob, callback=steps.append, **options)
        yield from steps

    def translate_file(self, source_path: Path, output_path: Path, target_path: Optional[Path] = None, *,
                       max_batch_size: int = 32, read_batch_size: int = 0, batch_type: str = "examples",
                       with_scores: bool = False, source_tokenize_fn: Tokenize = None, target_tokenize_fn: Tokenize = None,
                       target_detokenize_fn: Detokenize = None, **options: Any) -> ExecutionStats:
        """Translates a file of lines of tokens, or of text with functions that make tokens of it and text of them."""
        if (source_tokenize_fn is None) != (target_detokenize_fn is None):
            raise c.ArgumentError("source_tokenize_fn and target_detokenize_fn should both be set or none at all")
        if target_path is not None and source_tokenize_fn is not None and target_tokenize_fn is None:
            raise c.ArgumentError("target_tokenize_fn should be set when passing a target file")
        for name in ("asynchronous", "callback", "return_scores", "return_attention", "return_alternatives", "return_end_token"):
            if name in options:
                raise TypeError(f"translate_file() got an unexpected keyword argument {name!r}")
        join = target_detokenize_fn or " ".join
        begin, stats = perf_counter(), ExecutionStats()
        source = read_lines(source_path, source_tokenize_fn)
        prefixes = read_lines(target_path, target_tokenize_fn) if target_path is not None else None
        results = self.translate_iterable(source, prefixes, window_size(batch_type, max_batch_size, read_batch_size),
                                          batch_type, return_scores=with_scores, **options)
        with open(output_path, "w", encoding="utf-8", newline="\n") as out:
            for result in results:
                stats.num_examples += 1
                stats.num_tokens += len(result.hypotheses[0])
                for i, tokens in enumerate(result.hypotheses):
                    out.write(f"{result.scores[i]:g} ||| {join(tokens)}\n" if with_scores else f"{join(tokens)}\n")
        stats.total_time_in_ms = 1000 * (perf_counter() - begin)
        return stats

    # ---- scoring -----------------------------------------------------------------------------------

    def _score(self, sources: Sequence[tuple[str, ...]], targets: Sequence[tuple[str, ...]], offset: int) -> list[ScoringResult]:
        engine = self._translator_here()._with({"max_source": self._max_source})
        some = [i for i, tokens in enumerate(sources) if tokens]
        found = iter(engine.score_tokens(tuple(sources[i] for i in some), tuple(targets[i] for i in some)) if some else ())
        results = []
        for tokens, given in zip(sources, targets):
            if not tokens:  # nothing to read: nothing to say
                scored, probs = [*self._model.spelled(given), self._model.end], [0.0] * (len(given) + 1)
            else:
                raw = next(found)
                if raw[0]:
                    raise error_of(raw[0], raw[1])
                lead = self._lead if len(given) >= self._lead else 0
                scored, probs = list(given[:lead]) + raw[4], [0.0] * lead + [float(x) for x in numbers(raw[5])]
            results.append(ScoringResult(scored[offset:], probs[offset:]))
        return results

    def score_batch(self, source: Sequence[Tokens], target: Sequence[Tokens], *, max_batch_size: int = 0,
                    batch_type: str = "examples", max_input_length: int = 1024, offset: int = 0,
                    asynchronous: bool = False) -> Any:
        """Log-probabilities of the tokens of given translations, end symbol included."""
        check_batch_type(batch_type, max_batch_size)
        if len(source) != len(target):
            raise c.ArgumentError(f"there must be as many targets as sources, {len(source)}, not {len(target)}")
        self._translator_here()
        sources = [self._model.source(tokens, max_input_length) for tokens in source]
        targets = [tuple(t)[:max_input_length - 1] if max_input_length > 0 else tuple(t) for t in target]
        if not asynchronous:
            return self._score(sources, targets, offset)
        future = self._aside(lambda: self._score(sources, targets, offset))
        return [AsyncScoringResult(future.done, future.result, i) for i in range(len(sources))]

    def score_iterable(self, source: Iterable[Tokens], target: Iterable[Tokens], max_batch_size: int = 64,
                       batch_type: str = "examples", **options: Any) -> Iterator[ScoringResult]:
        """Scores pairs as they come."""
        check_batch_type(batch_type, max_batch_size)
        for left, right in windows(source, target, window_size(batch_type, max_batch_size)):
            yield from self.score_batch(left, right or [], **options)

    def score_file(self, source_path: Path, target_path: Path, output_path: Path, *, max_batch_size: int = 32,
                   read_batch_size: int = 0, batch_type: str = "examples", max_input_length: int = 1024, offset: int = 0,
                   with_tokens_score: bool = False, source_tokenize_fn: Tokenize = None, target_tokenize_fn: Tokenize = None,
                   target_detokenize_fn: Detokenize = None) -> ExecutionStats:
        """Scores the lines of two files: "SCORE ||| TARGET", with_tokens_score: " ||| SCORE SCORE ..." behind it."""
        functions = [source_tokenize_fn, target_tokenize_fn, target_detokenize_fn]
        if functions.count(None) not in (0, 3):
            raise c.ArgumentError("source_tokenize_fn, target_tokenize_fn, and target_detokenize_fn should all be set or none")
        join = target_detokenize_fn or " ".join
        begin, stats = perf_counter(), ExecutionStats()
        results = self.score_iterable(read_lines(source_path, source_tokenize_fn), read_lines(target_path, target_tokenize_fn),
                                      window_size(batch_type, max_batch_size, read_batch_size), batch_type,
                                      max_input_length=max_input_length, offset=offset)
        with open(output_path, "w", encoding="utf-8", newline="\n") as out:
            for result in results:
                stats.num_examples += 1
                stats.num_tokens += len(result.log_probs)
                mean = sum(result.log_probs) / max(1, len(result.log_probs))
                each = " |||" + "".join(f" {p:g}" for p in result.log_probs) if with_tokens_score else ""
                out.write(f"{mean:g} ||| {join(result.tokens)}{each}\n")
        stats.total_time_in_ms = 1000 * (perf_counter() - begin)
        return stats


# ---- what comes in ---------------------------------------------------------------------------------


def thread_count(inter: int, intra: int) -> int:
    """CTranslate2's default is 4 of each translator, or what OMP_NUM_THREADS says."""
    if intra > 0:
        return inter * intra
    said = os.environ.get("OMP_NUM_THREADS", "")
    cores = os.cpu_count() or 1
    return inter * int(said) if said.isdigit() and int(said) > 0 else max(1, min(inter * 4, cores))


def behind(result: TranslationResult, n: int, given: int, length_penalty: float) -> float:
    """Score of a hypothesis as CTranslate2 ranks alternatives: by the length of what follows alone."""
    length = len(result.hypotheses[n])
    share: float = (max(1, length) / max(1, length - given)) ** length_penalty
    return result.scores[n] * share


def prefix_list(source: Sequence[Tokens], prefixes: Prefixes) -> list[tuple[str, ...]]:
    if prefixes is not None and len(prefixes) != len(source):
        raise c.ArgumentError(f"there must be as many target prefixes as sources, {len(source)}, not {len(prefixes)}")
    return [tuple(p or ()) for p in prefixes or [None] * len(source)]


def window_size(batch_type: str, max_batch_size: int, read_batch_size: int = 0) -> int:
    """How many sentences are handed over at once."""
    check_batch_type(batch_type, max_batch_size)
    if max_batch_size < 1:
        raise c.ArgumentError("max_batch_size must be >= 1")
    if batch_type == "tokens":
        return 32 * WINDOW
    return read_batch_size if read_batch_size > 0 else WINDOW * max_batch_size if max_batch_size > 1 else 1


def windows(source: Iterable[Any], other: Optional[Iterable[Any]], count: int) -> Iterator[tuple[list[Any], Optional[list[Any]]]]:
    """So many of one side, or of both, which must be of one length."""
    left, right = iter(source), iter(other) if other is not None else None
    while True:
        one, two = list(islice(left, count)), list(islice(right, count)) if right is not None else None
        if two is not None and len(one) != len(two):
            raise c.ArgumentError("Input iterables do not have the same length")
        if not one:
            return
        yield one, two


def read_lines(path: Path, tokenize: Tokenize) -> Iterator[list[str]]:
    with open(path, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            text = line.rstrip("\n").rstrip("\r")
            yield list(tokenize(text)) if tokenize is not None else text.split(" ") if text else []


# ---- the rest of the package -----------------------------------------------------------------------

_level = logging.WARNING


def set_log_level(level: int) -> None:
    """Kept for get_log_level: the library does not log."""
    global _level
    _level = level


def get_log_level() -> int:
    return _level


def set_random_seed(seed: int) -> None:
    """From here on sampling draws the same again after the same seed."""
    SEEDS.seed(seed)


ELSEWHERE = {"converters": "a folder is opened as it is: of transformers, Marian, OpenNMT-py, fairseq or CTranslate2",
             "specs": "models are written by `dragoman export ctranslate2`", "models": "Whisper and Wav2Vec2 are no translators",
             **dict.fromkeys(("Generator", "GenerationResult", "AsyncGenerationResult"), "a decoder alone does not translate"),
             **dict.fromkeys(("Encoder", "EncoderForwardOutput"), "an encoder alone does not translate"),
             **dict.fromkeys(("StorageView", "DataType", "Device", "MpiInfo"), "there are no tensors in this interface")}


def __getattr__(name: str) -> Any:
    if name in ELSEWHERE:
        raise c.UnsupportedError(f"ctranslate2.{name} is not here: {ELSEWHERE[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
