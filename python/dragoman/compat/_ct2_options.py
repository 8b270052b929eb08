# SPDX-License-Identifier: MIT
"""Arguments of CTranslate2's methods, and the settings that do the same here."""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from .. import _dragoman as c
from .._translator import Setting
from ._ct2_results import GenerationStepResult

Tokens = Sequence[str]
MOST_FINISHED = 256  # hypotheses that a search may be told to wait for
MOST_DRAWN = 1024  # candidates of a draw
SEEDS = random.Random()  # every call that samples draws another one


@dataclass
class Options:
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
        self._check_search()
        self._check_lengths()
        if not 0 < self.sampling_topp <= 1:
            raise c.ArgumentError("The sampling_topp parameter must be between 0 and 1")
        if self.callback is not None and (self.beam_size != 1 or self.prefix_bias_beta > 0):
            raise c.ArgumentError("The callback function is not compatible with beam_size > 1 or prefix_bias_beta > 0")
        if self.return_alternatives and not 0 <= self.min_alternative_expansion_prob <= 1:
            raise c.ArgumentError("The minimum alternative expansion probability must be between 0 and 1")
        if self.prefix_bias_beta > 0:
            raise c.UnsupportedError("prefix_bias_beta: a prefix is forced or not, it is no bias here")
        if self.return_logits_vocab:
            raise c.UnsupportedError("return_logits_vocab: the library gives probabilities of chosen tokens only")
        if self.end_token not in (None, end, [end], (end,)):
            raise c.UnsupportedError(f"end_token: only the model's own, {end!r}")

    def _check_search(self) -> None:
        if self.beam_size < 1:
            raise c.ArgumentError("The beam size must be > 0")
        if self.patience <= 0:
            raise c.ArgumentError("The patience factor must be > 0")
        if self.num_hypotheses < 1:
            raise c.ArgumentError("The number of hypotheses must be > 0")
        if self.repetition_penalty <= 0:
            raise c.ArgumentError("The repetition penalty must be > 0")
        if self.return_alternatives or (self.beam_size == 1 and self.sampling_topk != 1):
            return
        if self.num_hypotheses > self.most_finished:
            raise c.ArgumentError("The number of hypotheses cannot be greater than beam_size * patience")
        if self.num_hypotheses > self.beam_size:
            raise c.UnsupportedError("num_hypotheses must be at most beam_size")

    def _check_lengths(self) -> None:
        if self.min_decoding_length > self.max_decoding_length:
            raise c.ArgumentError("The minimum decoding length is greater than the maximum decoding length")
        if self.max_decoding_length < 1:
            raise c.ArgumentError("The maximum decoding length must be > 0")

    @property
    def most_finished(self) -> int:
        return round(self.beam_size * self.patience)

    @property
    def samples(self) -> bool:
        return self.sampling_topk != 1 and self.sampling_temperature != 0

    def settings(self, longest: int, lead: int, begun: bool) -> dict[str, Setting]:
        """As the library has them. longest: words of a translation; lead: tokens of its language, which count for
        lengths and are none of these words; begun: has every sentence such tokens, or a prefix?"""
        s: dict[str, Setting] = {
            "beam": max(self.beam_size, self.num_hypotheses) if not self.samples else self.num_hypotheses,
            "nbest": self.num_hypotheses, "length_penalty": self.length_penalty, "word_penalty": 0,
            "coverage_penalty": self.coverage_penalty, "no_repeat_ngram": self.no_repeat_ngram_size,
            "max_length": max(1, min(self.max_decoding_length - lead, longest)), "max_length_factor": 0,
            "min_length": max(0, min(self.min_decoding_length - lead, longest)),
            "allow_unk": not self.disable_unk, "finish": self._finish(begun)}
        if s["finish"] == "margin":
            s["margin"] = 0
        if self.repetition_penalty != 1:
            s["repetition_penalty"] = self.repetition_penalty
        if self.samples:
            s.update(search="sample", top_p=self.sampling_topp,
                     top_k=min(self.sampling_topk, MOST_DRAWN) if self.sampling_topk > 0 else MOST_DRAWN,
                     temperature=self.sampling_temperature, seed=SEEDS.getrandbits(63))
        if not self.use_vmap:
            s["shortlist"] = "all"
        if self.return_attention or self.replace_unknowns:
            s["alignment"] = "tokens"
        return s

    def _finish(self, begun: bool) -> str:
        most = max(1, min(MOST_FINISHED, self.most_finished))
        if begun or self.min_decoding_length > 0:
            return "ctranslate2" if self.patience == 1 else f"ctranslate2:{most}"
        # A translation may be empty, which the library's policy does not allow.
        return "margin" if self.length_penalty == 0 and self.coverage_penalty == 0 else f"first:{most}"


def check_batch_type(batch_type: str, max_batch_size: int) -> None:
    if batch_type not in ("examples", "tokens"):
        raise c.ArgumentError(f"Invalid batch type: {batch_type}")
    if max_batch_size < 0:
        raise c.ArgumentError("max_batch_size must be >= 0")
