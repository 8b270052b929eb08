# SPDX-License-Identifier: MIT
"""The offline tools: models, import, quantisation, evaluation, word alignment."""
from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from . import _dragoman as c

__all__ = ["Evaluation", "Model", "Quantization", "align", "detect", "evaluate", "import_model", "inspect", "models", "quantize", "settings",
           "translate_file"]

Path = Union[str, "os.PathLike[str]"]
Progress = Optional[Callable[[str, float], Any]]  # what is being done, and the share of it that is


@dataclass(frozen=True)
class Model:
    """A model file that was found."""

    path: str
    name: str
    source: str  #: languages, "" where the file does not say, "en,de" where there are several
    target: str
    bytes: int
    parameters: int
    problem: Optional[str]  #: why it cannot be used; None: it can
    default: bool


def models() -> list[Model]:
    """Models that are there: of $DRAGOMAN_MODEL, ~/.local/share/dragoman, the installation and the package.

    >>> import dragoman
    >>> sorted((m.source, m.target) for m in dragoman.models() if m.default)
    [('en', 'de')]
    """
    return [Model(*row[:7], bool(row[7])) for row in c.find_models()]


def inspect(model: Path) -> dict[str, Any]:
    """What a model file says about itself, as `dragoman inspect --json` prints it."""
    described: dict[str, Any] = json.loads(c.inspect(os.fsencode(model)))
    return described


def settings() -> list[c.SettingRow]:
    """The settings of Translator, with names, ranges, defaults and what they do.

    >>> import dragoman
    >>> next(s["title"] for s in dragoman.settings() if s["name"] == "beam")
    'beam size'
    """
    return c.settings()


def import_model(path: Path, output: Path, *, format: Optional[str] = None, type: Optional[str] = None,
                 progress: Progress = None, **options: Optional[str]) -> list[str]:
    """Writes a model of another program as a model file; returns remarks about it.

    format   "huggingface", "marian", "ctranslate2" ...; None: whatever lies there.
    type     storage of the matrices, "f32", "f16", "i8" ...; None: as in the input.
    options  source_language, target_language, source_prefix, name, description, license, author, url, card_file,
             source_spm, target_spm, bpe, config, vocabs: as those of `dragoman import`.
    """
    notes = c.import_model(os.fsencode(path), os.fsencode(output), format=format, type=type, progress=progress, **options)
    return notes.splitlines()


def detect(text: str, among: Union[None, str, Sequence[str]] = None, most: int = 3) -> list[tuple[str, float]]:
    """Which language a text is in: codes with their confidence, the most probable first. among: one of these.

    >>> import dragoman
    >>> dragoman.detect("Das ist ein ganz gewöhnlicher deutscher Satz.", ["en", "de", "fr"])[0][0]
    'de'
    """
    return c.detect(text, among if among is None or isinstance(among, str) else ",".join(among), most)


def translate_file(path: Path, output: Path, *, model: Any = None, **options: Any) -> dict[str, Any]:
    """Translates a document with a translator of its own: model, source, target, device, threads and precision as those of
    Translator, everything else as in Translator.translate_file."""
    from ._translator import Translator
    opening = {name: options.pop(name) for name in ("source", "target", "device", "threads", "precision") if name in options}
    with Translator(model, **opening) as translator:
        return translator.translate_file(path, output, **options)


@dataclass(frozen=True)
class Quantization:
    """What became of a model's matrices."""

    converted: int
    kept: int
    bytes_before: int
    bytes_after: int
    relative_error: float
    lines: int  #: of the calibration


def quantize(model: Path, output: Optional[Path], type: str, *, keep: Sequence[str] = (), precision: Optional[str] = None,
             calibrate: Optional[str] = None, saturate: float = 0.001, threads: int = 1,
             progress: Progress = None, packed: Optional[str] = None) -> Quantization:
    """Writes a model with its matrices in another type, "f32", "f16", "bf16", "i16" or "i8"; output None: only reports.

    keep       names of matrices that stay as they are, with * and ?.
    calibrate  text that is translated to find static scales.
    packed     a level of CPUs whose packed layers are stored, too: "vnni", "avx2", ...
    """
    if isinstance(keep, str):
        keep = (keep,)
    report = c.quantize(os.fsencode(model), None if output is None else os.fsencode(output), type, tuple(keep),
                        precision=precision, calibrate=calibrate, saturate=saturate, threads=threads, progress=progress,
                        packed=packed)
    return Quantization(**report)


@dataclass(frozen=True)
class Evaluation:
    """A score of translations, 0 to 100."""

    score: float
    name: str       #: "BLEU", "chrF2" ...
    signature: str  #: how it was computed, as sacrebleu writes it
    mean: float     #: of the bootstrap samples, with half the width of the 95 % interval; 0 without samples
    half: float
    sentences: list[float] = field(repr=False)  #: of every line

    def __float__(self) -> float:
        return self.score


def evaluate(hypotheses: Sequence[str], references: Union[Sequence[str], Sequence[Sequence[str]]], *, metric: str = "bleu",
             **options: Any) -> Evaluation:
    """BLEU, chrF or chrF++ of translations against one reference each, or several lists of references.

    metric   "bleu", "chrf" or "chrf++".
    options  tokenize, smooth, smooth_value, lowercase, max_order, char_order, word_order, beta, samples, seed: as those
             of `dragoman eval`.

    >>> import dragoman
    >>> round(dragoman.evaluate(["the cat sat on a mat"], ["the cat sat on the mat"], metric="chrf").score, 1)
    66.0
    """
    lists: Sequence[Any] = [references] if all(isinstance(r, str) for r in references) else references
    columns: tuple[tuple[str, ...], ...] = tuple(tuple(column) for column in lists)
    for column in columns:
        if len(column) != len(hypotheses):
            raise c.ArgumentError(f"there must be as many references as hypotheses, {len(hypotheses)}, not {len(column)}")
    return Evaluation(*c.evaluate(tuple(hypotheses), columns, metric=metric, **options))


def align(sources: Sequence[str], targets: Sequence[str], *, model: int = 2, iterations: int = 5, threads: int = 0,
          symmetrize: Optional[str] = None, subwords: Optional[str] = None,
          progress: Progress = None) -> list[list[tuple[int, int]]]:
    """Which words of parallel sentences belong together: pairs of positions for every sentence.

    Words are what white space separates, or the tokens of the model file `subwords`. Learnt from the text itself, which
    should therefore have some thousand sentences.

    >>> import dragoman
    >>> dragoman.align(["the house", "the book"], ["das Haus", "das Buch"])
    [[(0, 0), (1, 1)], [(0, 0), (1, 1)]]
    """
    if len(sources) != len(targets):
        raise c.ArgumentError(f"there must be as many targets as sources, {len(sources)}, not {len(targets)}")
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        paths = []
        for name, lines in (("source", sources), ("target", targets)):
            paths.append(os.path.join(folder, name))
            with open(paths[-1], "w", encoding="utf-8", newline="\n") as out:
                out.writelines(" ".join(line.splitlines()) + "\n" for line in lines)
        text = c.align(os.fsencode(paths[0]), os.fsencode(paths[1]), model=model, iterations=iterations, threads=threads,
                       symmetrize=symmetrize or "grow-diag-final-and", subwords=subwords, progress=progress)
    return [[(int(a), int(b)) for a, b in (link.split("-") for link in line.split())] for line in text.split("\n")[:len(sources)]]
