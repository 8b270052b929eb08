# SPDX-License-Identifier: MIT
"""What translating gives: strings that know more about themselves."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Union

from . import _dragoman as c

if TYPE_CHECKING:
    from numpy import float32, int32
    from numpy.typing import NDArray

    Floats = Union[NDArray[float32], list[float]]
    Links = Union[NDArray[int32], list[list[int]]]

__all__ = ["Result", "Results", "Score"]

# By -status, as the C library numbers them.
ERRORS: tuple[type[c.Error], ...] = (
    c.Error, c.ArgumentError, c.OutOfMemoryError, c.FileError, c.FormatError, c.VersionError, c.UnsupportedError, c.TextError,
    c.CancelledError)

# What happened to a line: the names of the flags DGM_LINE_..., from bit 0 on.
FLAGS = ("repaired", "split", "cropped", "truncated", "unmet", "malformed", "copied", "repeated", "deadline", "mended")


def error_of(status: int, message: str) -> c.Error:
    return ERRORS[-status if 0 < -status < len(ERRORS) else 0](message)


def numbers(array: Optional[c.Array]) -> Any:
    """Numbers of the library: a numpy array over its memory, or a list where numpy is not installed."""
    if array is None:
        return None
    try:
        import numpy
    except ImportError:
        return memoryview(array).tolist()
    return numpy.asarray(array)


class Result(str):
    """A translation: the text itself, and what else is known about it.

    >>> import dragoman
    >>> with dragoman.Translator("en-de", word_scores=True) as t:
    ...     r = t.translate("Good morning.")
    >>> r
    Result('Guten Morgen!')
    >>> r.upper(), r.score < 0, len(r.tokens) == len(r.word_scores)
    ('GUTEN MORGEN!', True, True)
    """

    __slots__ = ("_raw", "_source", "_rest", "_line")
    _raw: Optional[c.RawTranslation]
    _source: str
    _rest: tuple[Result, ...]
    _line: Optional[c.RawResult]

    def __new__(cls, text: str = "", raw: Optional[c.RawTranslation] = None, source: str = "",
                rest: tuple[Result, ...] = (), line: Optional[c.RawResult] = None) -> Result:
        self = super().__new__(cls, text)
        self._raw, self._source, self._rest, self._line = raw, source, rest, line
        return self

    @property
    def text(self) -> str:
        """The translation as a plain str."""
        return str.__str__(self)

    @property
    def source(self) -> str:
        """The text that was translated."""
        return self._source

    @property
    def score(self) -> float:
        """What translations are ranked by: the log-probability, normalised by length."""
        return self._raw[1] if self._raw else float("nan")

    @property
    def log_probability(self) -> float:
        """Of all tokens with the end symbol."""
        return self._raw[2] if self._raw else float("nan")

    @property
    def finished(self) -> bool:
        """False: it was cut off at the maximum length or by a deadline."""
        return bool(self._raw and self._raw[3])

    @property
    def alternatives(self) -> tuple[Result, ...]:
        """Other translations, best first (setting nbest)."""
        return self._rest

    @property
    def tokens(self) -> Optional[list[str]]:
        """The model's tokens with the end symbol (setting word_scores); else None."""
        return self._raw[5] if self._raw else None

    @property
    def word_scores(self) -> Optional[Floats]:
        """Log-probabilities of the tokens (setting word_scores): a numpy array, or a list without numpy; else None."""
        scores: Optional[Floats] = numbers(self._raw[6]) if self._raw else None
        return scores

    @property
    def alignment(self) -> Optional[Links]:
        """Pairs of positions in source and translation (setting alignment), [n, 2]; else None."""
        links: Optional[Links] = numbers(self._raw[7]) if self._raw else None
        return links

    @property
    def flags(self) -> frozenset[str]:
        """What happened to the line: "split", "truncated", "mended" and so on; mostly nothing."""
        bits = self._line[2] if self._line else 0
        return frozenset(name for i, name in enumerate(FLAGS) if bits >> i & 1)

    @property
    def notice(self) -> Optional[str]:
        """What became of constraints that could not be met; else None."""
        return self._line[4] if self._line else None

    @property
    def error(self) -> Optional[c.Error]:
        """Why there is no translation (errors="return"); else None."""
        return error_of(self._line[0], self._line[1]) if self._line and self._line[0] else None

    def __repr__(self) -> str:
        return f"Result({str.__repr__(self)})"

    def __reduce__(self) -> tuple[Any, ...]:  # numbers are copied: another process has not the library's memory
        return _restore, (self.text, self._source, *_plain(self._raw), self._rest, self._line and (*self._line[:5], ()))

    def _repr_html_(self) -> str:
        from ._html import table
        return table([self])


class Results(list[Result]):
    """Results of a list of texts: a list, which Jupyter shows as a table."""

    def _repr_html_(self) -> str:
        from ._html import table
        return table(self)


def _bytes(array: Any) -> Any:
    if array is None:
        return None
    view = memoryview(array)
    return view.tobytes(), view.format, view.shape


def _plain(raw: Optional[c.RawTranslation]) -> tuple[Any, ...]:
    return (None,) if raw is None else ((*raw[:6], _bytes(raw[6]), _bytes(raw[7])),)


def _array(packed: Any) -> Any:
    if packed is None:
        return None
    data, format, shape = packed
    return memoryview(data).cast(format, shape) if data else memoryview(data).cast(format)


def _restore(text: str, source: str, raw: Any, rest: tuple[Result, ...], line: Any) -> Result:
    return Result(text, raw and (*raw[:6], _array(raw[6]), _array(raw[7])), source, rest, line)


def make_result(line: c.RawResult, source: str) -> Result:
    if not line[5]:
        return Result("", None, source, (), line)
    best, *others = line[5]
    rest = tuple(Result(raw[0], raw, source) for raw in others) if others else ()
    return Result(best[0], best, source, rest, line)


class Score(float):
    """What a model thinks of a given translation: the score itself, normalised by length as Result.score."""

    __slots__ = ("_raw",)
    _raw: Optional[c.RawScore]

    def __new__(cls, raw: Optional[c.RawScore] = None) -> Score:
        self = super().__new__(cls, raw[2] if raw and not raw[0] else float("nan"))
        self._raw = raw
        return self

    @property
    def log_probability(self) -> float:
        """Of all tokens with the end symbol."""
        return self._raw[3] if self._raw else float("nan")

    @property
    def tokens(self) -> list[str]:
        """The model's tokens of the translation, with the end symbol."""
        return self._raw[4] if self._raw else []

    @property
    def word_scores(self) -> Floats:
        """Their log-probabilities."""
        scores: Floats = numbers(self._raw[5]) if self._raw else []
        return scores

    @property
    def error(self) -> Optional[c.Error]:
        """Why the pair could not be scored (errors="return"); else None."""
        return error_of(self._raw[0], self._raw[1]) if self._raw and self._raw[0] else None

    def __repr__(self) -> str:
        return f"Score({float(self):.6g})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_score, ((*self._raw[:5], _bytes(self._raw[5])) if self._raw else None,)


def _restore_score(raw: Any) -> Score:
    return Score(raw and (*raw[:5], _array(raw[5])))
