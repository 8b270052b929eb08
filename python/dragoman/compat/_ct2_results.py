# SPDX-License-Identifier: MIT
"""What CTranslate2's methods give back."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Optional, TypeVar

__all__ = ["AsyncScoringResult", "AsyncTranslationResult", "ExecutionStats", "GenerationStepResult", "ScoringResult",
           "TranslationResult"]

Kind = TypeVar("Kind")


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
    token_id: int  #: of the folder's vocabulary; -1 where the model is no folder of CTranslate2
    hypothesis_id: int
    token: str
    log_prob: Optional[float] = None
    logits: Any = None
    is_last: bool = False


@dataclass
class ExecutionStats:
    """What translate_file and score_file did."""

    num_tokens: int = 0
    num_examples: int = 0
    total_time_in_ms: float = 0


class _Async(Generic[Kind]):
    """Number `index` of results that are under way."""

    def __init__(self, done: Callable[[], bool], results: Callable[[], list[Kind]], index: int) -> None:
        self._done, self._results, self._index = done, results, index

    def done(self) -> bool:
        return self._done()

    def result(self) -> Kind:
        """Waits for it; raises what failed."""
        return self._results()[self._index]


class AsyncTranslationResult(_Async[TranslationResult]):
    """A translation that is under way."""


class AsyncScoringResult(_Async[ScoringResult]):
    """A score that is under way."""
