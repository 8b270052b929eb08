# SPDX-License-Identifier: MIT
"""The translator."""
from __future__ import annotations

import asyncio
import importlib
import os
import threading
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Optional, Union, overload

from . import _dragoman as c
from ._result import Result, Results, Score, error_of, make_result

__all__ = ["Translator", "Setting"]

Setting = Union[str, int, float, bool, None, Sequence[Union[str, float]]]
Model = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]], None]
PerLine = Union[str, Sequence[Optional[str]], None]
Errors = Literal["raise", "return"]

# Names of translate() that say something about the lines, not about the translator.
LINE = frozenset(("source", "target", "prefix", "constraints", "deadline"))
WINDOW = 2048  # lines that translate_iter hands over at once, as the program does
WINDOW_FIRST = 32
WINDOW_CHARACTERS = 1 << 20
VARIANTS = 8  # translators with other settings that are kept


def setting_texts(name: str, value: Setting) -> list[tuple[str, Optional[str]]]:
    """A setting as the C library takes it: text."""
    if value is None:
        return [(name, None)]
    if isinstance(value, bool):
        return [(name, "1" if value else "0")]
    if isinstance(value, (str, int, float)):
        return [(name, str(value))]
    if isinstance(value, os.PathLike):
        return [(name, os.fspath(value))]
    if isinstance(value, (list, tuple)):
        kind = (c.setting(name) or {"kind": "list"})["kind"]
        if kind == "floats":
            return [(name, ",".join(map(str, value)))]
        if kind != "list":
            raise c.ArgumentError(f"{name} must be one value, not {len(value)}")
        return [(name, str(item)) for item in value]
    raise TypeError(f"{name} must be a str, a number or a list of them, not {type(value).__name__}")


def members(model: Model, weights: Optional[Sequence[float]]) -> tuple[tuple[Optional[bytes], float], ...]:
    if model is None or isinstance(model, (str, os.PathLike)):
        paths: list[Optional[bytes]] = [None if model is None else os.fsencode(model)]
    elif isinstance(model, (list, tuple)):
        paths = [os.fsencode(m) for m in model]
    else:
        raise TypeError(f"model must be a path, a name or a list of them, not {type(model).__name__}")
    if weights is not None and len(weights) != len(paths):
        raise c.ArgumentError(f"there must be as many weights as models, {len(paths)}, not {len(weights)}")
    return tuple((path, float(weights[i]) if weights is not None else 0.0) for i, path in enumerate(paths))


def spread(value: PerLine, count: int, what: str) -> Optional[tuple[Optional[str], ...]]:
    """One for every line, or the same for all of them."""
    if value is None:
        return None
    if isinstance(value, str):
        return (value,) * count
    if isinstance(value, (bytes, bytearray)) or not isinstance(value, Sequence):
        raise TypeError(f"{what} must be a str or a list of str, not {type(value).__name__}")
    if len(value) != count:
        raise c.ArgumentError(f"{what}: there must be one for each of the {count} texts, not {len(value)}")
    return tuple(value)


def check_texts(texts: Iterable[str]) -> tuple[str, ...]:
    if isinstance(texts, (bytes, bytearray)) or not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a str or a list of str, not {type(texts).__name__}")
    return tuple(texts)


class Translator:
    """Translates with a model. One may be used by any number of threads; sentences of all of them share the work.

    model     a path, a name that `dragoman models` lists ("en-de"), a folder of another program's model, or a list of
              them, which translate together. None: the model for `source` and `target`, else the default one.
    source,   languages, for models of several.
    target
    device    "cpu", "cuda:0", "auto".
    threads   worker threads; 0: one for every core.
    precision "f32", "i16", "i8" ...; None: the model's.
    settings  everything else by the names of the command line, with _ for -: beam, nbest, alignment, word_scores,
              shortlist, terms ... dragoman.settings() lists them.

    >>> import dragoman
    >>> t = dragoman.Translator("en-de", threads=1)
    >>> t.translate("Good morning.")
    Result('Guten Morgen!')
    >>> t.translate(["Good morning.", "How are you?"])
    [Result('Guten Morgen!'), Result('Wie geht es dir?')]
    >>> t.close()
    """

    def __init__(self, model: Model = None, *, source: Optional[str] = None, target: Optional[str] = None,
                 device: str = "cpu", threads: int = 0, precision: Optional[str] = None,
                 weights: Optional[Sequence[float]] = None, **settings: Setting) -> None:
        if model is None and (source or target):
            model = c.choose_model(source, target)
        given: dict[str, Setting] = {"source": source, "target": target, "device": device, "threads": threads,
                                     "precision": precision, **settings}
        self._settings = {name: value for name, value in given.items() if value is not None}
        self._members = members(model, weights)
        self._lock = threading.Lock()
        self._variants: OrderedDict[str, c.Engine] = OrderedDict()
        self._engine = c.open(self._members, self._texts(self._settings))

    @staticmethod
    def _texts(settings: Mapping[str, Setting]) -> tuple[tuple[str, Optional[str]], ...]:
        return tuple(pair for name, value in settings.items() for pair in setting_texts(name, value))

    def _with(self, settings: dict[str, Setting]) -> c.Engine:
        """The engine with these settings beside the translator's own, over the same weights."""
        if not settings:
            return self._engine
        names = {}
        for name, value in settings.items():
            row = c.setting(name)
            if row is not None and row["weights"]:
                raise c.ArgumentError(f"{name} belongs to the loaded model: open another Translator for it")
            names[row["name"] if row else name] = value
        mine = {(c.setting(n) or {"name": n})["name"]: v for n, v in self._settings.items()}
        texts = self._texts({**mine, **names})
        key = repr(texts)
        with self._lock:
            if key in self._variants:
                self._variants.move_to_end(key)
                return self._variants[key]
        engine = c.open((), texts, self._engine)
        with self._lock:
            self._variants[key] = engine
            if len(self._variants) > VARIANTS:
                self._variants.popitem(last=False)  # it closes when the last job with it is done
        return engine

    def _submit(self, texts: tuple[str, ...], options: dict[str, Any], watched: bool = False) -> c.Job:
        count = len(texts)
        source, target = options.pop("source", None), options.pop("target", None)
        prefixes = spread(options.pop("prefix", None), count, "prefix")
        constraints = spread(options.pop("constraints", None), count, "constraints")
        deadline = options.pop("deadline", None)
        directions = None
        if source is not None or target is not None:
            sources, targets = spread(source, count, "source"), spread(target, count, "target")
            directions = tuple(zip(sources or (None,) * count, targets or (None,) * count))
        ms = 0 if deadline is None else max(1, round(float(deadline) * 1000))
        return self._with(options).submit(texts, prefixes, constraints, directions, ms, watched)

    @staticmethod
    def _results(lines: list[c.RawResult], texts: Sequence[str], errors: Errors) -> Results:
        results = Results()
        for i, line in enumerate(lines):
            if line[0] and errors == "raise":
                raise error_of(line[0], line[1] if len(lines) == 1 else f"text {i}: {line[1]}")
            results.append(make_result(line, texts[i]))
        return results

    # ---- translating -------------------------------------------------------------------------------

    @overload
    def translate(self, text: str, *,  # type: ignore[overload-overlap]
                  errors: Errors = ..., source: PerLine = ..., target: PerLine = ...,
                  prefix: PerLine = ..., constraints: PerLine = ..., deadline: Optional[float] = ...,
                  **settings: Setting) -> Result: ...

    @overload
    def translate(self, text: Iterable[str], *, errors: Errors = ..., source: PerLine = ..., target: PerLine = ...,
                  prefix: PerLine = ..., constraints: PerLine = ..., deadline: Optional[float] = ...,
                  **settings: Setting) -> Results: ...

    def translate(self, text: Union[str, Iterable[str]], *, errors: Errors = "raise",
                  **options: Any) -> Union[Result, Results]:
        """Translates a text, or a list of texts in one go.

        errors      "raise", or "return": a text that fails gives an empty Result with its `error`.
        source,     of a model of several languages: of this call, or a list with one for each text.
        target
        prefix      the translation begins so.
        constraints what it must and must not hold, in the words of a constraints file.
        deadline    seconds, after which a text gets what is ready.
        settings    as in Translator, for this call; they cost no second copy of the model.

        >>> import dragoman
        >>> t = dragoman.Translator("en-de", threads=1)
        >>> t.translate("Good morning.", nbest=2).alternatives[0].score < 0
        True
        >>> t.translate("Good morning.", beam=0)
        Traceback (most recent call last):
        dragoman.ArgumentError: beam must be 1 to 256, not 0
        """
        check_errors(errors)
        texts = (text,) if isinstance(text, str) else check_texts(text)
        results = self._results(self._submit(texts, options).results(), texts, errors)
        return results[0] if isinstance(text, str) else results

    def translate_iter(self, texts: Iterable[str], *, errors: Errors = "raise", progress: bool = False,
                       **options: Any) -> Iterator[Result]:
        """Translates the texts of any iterable, also an endless one, and yields their results in its order.

        At any time no more than about two windows of 2,048 texts are under way, so that memory stays as it is. Options
        as in translate; the lists of prefix, source and so on cannot be used here. progress: a bar by tqdm, where it is
        installed.

        >>> import dragoman
        >>> t = dragoman.Translator("en-de", threads=1)
        >>> list(t.translate_iter(line for line in ("Good morning.", "")))
        [Result('Guten Morgen!'), Result('')]
        """
        check_errors(errors)
        if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
            raise TypeError(f"texts must be an iterable of str, not {type(texts).__name__}")
        for name in LINE & options.keys():
            if options[name] is not None and not isinstance(options[name], (str, int, float)):
                raise TypeError(f"{name} must be the same for all texts of translate_iter")
        return self._iterate(texts, errors, progress, options)

    def _iterate(self, texts: Iterable[str], errors: Errors, progress: bool, options: dict[str, Any]) -> Iterator[Result]:
        bar = progress_bar(texts) if progress else None
        under_way: deque[tuple[c.Job, tuple[str, ...]]] = deque()
        try:
            for window in windows(texts):
                under_way.append((self._submit(window, dict(options)), window))
                while len(under_way) > 2 or (under_way and under_way[0][0].done() == len(under_way[0][1])):
                    yield from self._collect(under_way.popleft(), errors, bar)
            while under_way:
                yield from self._collect(under_way.popleft(), errors, bar)
        finally:
            for job, _ in under_way:
                job.cancel()
            if bar is not None:
                bar.close()

    def _collect(self, oldest: tuple[c.Job, tuple[str, ...]], errors: Errors, bar: Any) -> Results:
        job, window = oldest
        results = self._results(job.results(), window, errors)
        if bar is not None:
            bar.update(len(window))
        return results

    @overload
    async def atranslate(self, text: str, *, errors: Errors = ...,  # type: ignore[overload-overlap,unused-ignore]
                         **options: Any) -> Result: ...

    @overload
    async def atranslate(self, text: Iterable[str], *, errors: Errors = ..., **options: Any) -> Results: ...

    async def atranslate(self, text: Union[str, Iterable[str]], *, errors: Errors = "raise",
                         **options: Any) -> Union[Result, Results]:
        """translate for asyncio: the event loop goes on meanwhile; cancelling the task stops the translation.

        >>> import asyncio, dragoman
        >>> async def main():
        ...     t = dragoman.Translator("en-de", threads=1)
        ...     return await asyncio.gather(t.atranslate("Good morning."), t.atranslate("How are you?"))
        >>> asyncio.run(main())
        [Result('Guten Morgen!'), Result('Wie geht es dir?')]
        """
        check_errors(errors)
        texts = (text,) if isinstance(text, str) else check_texts(text)
        job = self._submit(texts, options, watched=True)
        try:
            await self._told(job)
        except BaseException:
            job.cancel()
            raise
        results = self._results(job.results(), texts, errors)
        return results[0] if isinstance(text, str) else results

    @staticmethod
    async def _told(job: c.Job) -> None:
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(job.fileno(), news.set)
        try:
            while not job.poll(0)[1]:
                await news.wait()
                news.clear()
        finally:
            loop.remove_reader(job.fileno())

    # ---- streams -----------------------------------------------------------------------------------

    def stream(self, text: str, **options: Any) -> Iterator[str]:
        """Yields the translation word by word, as soon as words are certain; together they are the translation.

        >>> import dragoman
        >>> t = dragoman.Translator("en-de", threads=1)
        >>> "".join(t.stream("Good morning. How are you?"))
        'Guten Morgen! Wie geht es dir?'
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be str, not {type(text).__name__}")
        return self._stream(self._submit((text,), options, watched=True), text)

    def _stream(self, job: c.Job, text: str) -> Iterator[str]:
        said = ""
        try:
            done = 0
            while not done:
                beginning, done = job.poll()
                if beginning is not None and len(beginning) > len(said):
                    yield beginning[len(said):]
                    said = beginning
            whole = self._results(job.results(), (text,), "raise")[0].text
            if len(whole) > len(said):
                yield whole[len(said):]
        finally:
            job.cancel()

    async def astream(self, text: str, **options: Any) -> AsyncIterator[str]:
        """stream for asyncio."""
        if not isinstance(text, str):
            raise TypeError(f"text must be str, not {type(text).__name__}")
        job, said = self._submit((text,), options, watched=True), ""
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(job.fileno(), news.set)
        try:
            done = 0
            while not done:
                await news.wait()
                news.clear()
                beginning, done = job.poll(0)
                if beginning is not None and len(beginning) > len(said):
                    yield beginning[len(said):]
                    said = beginning
            whole = self._results(job.results(), (text,), "raise")[0].text
            if len(whole) > len(said):
                yield whole[len(said):]
        finally:
            loop.remove_reader(job.fileno())
            job.cancel()

    def translate_file(self, path: Union[str, os.PathLike[str]], output: Union[str, os.PathLike[str]], *,
                       format: Optional[str] = None, columns: Optional[str] = None, all: bool = False, width: int = 0,
                       memory: bool = True, progress: Optional[Callable[[str, float], Any]] = None,
                       **settings: Setting) -> dict[str, Any]:
        """Translates a document of any kind that docs/manual/DOCUMENTS.md lists; all that is no text stays as it is.

        Returns its format, how many lines it has and how many failed. format: of the file, where its name does not tell;
        columns: of tables; all: also entries that have a translation; width: of subtitles; memory: equal lines are
        translated once. The output appears when it is whole.

        >>> import dragoman, pathlib, tempfile
        >>> t = dragoman.Translator("en-de", threads=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = pathlib.Path(folder, "page.html")
        ...     _ = page.write_text("<p>Good <b>morning</b>.</p>")
        ...     report = t.translate_file(page, page.with_suffix(".de.html"))
        ...     report["format"], page.with_suffix(".de.html").read_text()
        ('html', '<p>Guten <b>Morgen</b>!</p>')
        """
        with open(path, "rb") as document:
            data = document.read()
        name = os.path.basename(os.fspath(path))
        engine = self._with({**settings, "alignment": "words"})
        translated, report = c.translate_document(engine, data, name, format=format, columns=columns, all=all, width=width,
                                                  no_memory=not memory, progress=progress, output=os.fspath(output))
        part = f"{os.fspath(output)}.{os.getpid()}.part"
        try:
            with open(part, "wb") as out:
                out.write(translated)
            os.replace(part, output)
        finally:
            if os.path.exists(part):
                os.unlink(part)
        return report

    # ---- scores and tokens -------------------------------------------------------------------------

    @overload
    def score(self, source: str, translation: str, *,  # type: ignore[overload-overlap]
              errors: Errors = ...) -> Score: ...

    @overload
    def score(self, source: Sequence[str], translation: Sequence[str], *, errors: Errors = ...) -> list[Score]: ...

    def score(self, source: Union[str, Sequence[str]], translation: Union[str, Sequence[str]], *,
              errors: Errors = "raise") -> Union[Score, list[Score]]:
        """What the model thinks of a given translation, or of each of a list.

        >>> import dragoman
        >>> t = dragoman.Translator("en-de", threads=1)
        >>> t.score("Good morning.", "Guten Morgen!") > t.score("Good morning.", "Gute Nacht.")
        True
        """
        check_errors(errors)
        one = isinstance(source, str) and isinstance(translation, str)
        if isinstance(source, str) != isinstance(translation, str):
            raise TypeError("source and translation must both be str or both be lists")
        sources = (source,) if isinstance(source, str) else check_texts(source)
        targets = (translation,) if isinstance(translation, str) else check_texts(translation)
        if len(sources) != len(targets):
            raise c.ArgumentError(f"there must be as many translations as sources, {len(sources)}, not {len(targets)}")
        pairs, scores = tuple(zip(sources, targets)), []
        for first in range(0, len(pairs), 256):  # Ctrl-C comes through in between
            for i, raw in enumerate(self._engine.score(pairs[first:first + 256]), first):
                if raw[0] and errors == "raise":
                    raise error_of(raw[0], raw[1] if one else f"pair {i}: {raw[1]}")
                scores.append(Score(raw))
        return scores[0] if one else scores

    def tokenize(self, text: str, side: Literal["source", "target"] = "source") -> list[str]:
        """The tokens that the model makes of a text.

        >>> import dragoman
        >>> t = dragoman.Translator("en-de", threads=1)
        >>> t.tokenize("Good morning.")
        ['▁Go', 'od', '▁morning', '.']
        >>> t.detokenize(t.tokenize("Guten Morgen!", "target"))
        'Guten Morgen!'
        """
        return self._engine.tokens(text, check_side(side) == "target")

    def detokenize(self, tokens: Iterable[str], side: Literal["source", "target"] = "target") -> str:
        """Tokens as text again."""
        return self._engine.text(check_texts([tokens] if isinstance(tokens, str) else tokens), check_side(side) == "target")

    # ---- the translator ----------------------------------------------------------------------------

    @property
    def info(self) -> dict[str, Any]:
        """What was loaded, with the settings as they are: name, beam, precision, device, parameters ..."""
        return self._engine.info()

    @property
    def directions(self) -> list[tuple[str, str]]:
        """The directions that the model translates, as pairs of language codes."""
        return self._engine.directions()

    @property
    def closed(self) -> bool:
        return self._engine.closed

    def close(self) -> None:
        """Frees the model when everything that is under way is done. Closing twice is closing once."""
        with self._lock:
            for engine in self._variants.values():
                engine.close()
            self._variants.clear()
        self._engine.close()

    def __enter__(self) -> Translator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<dragoman.Translator, closed>"
        info = self._engine.info()
        return f"<dragoman.Translator {info['name'] or info['architecture']}, {info['source']} to {info['target']}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Translator cannot be pickled: open one in every process")


def check_errors(errors: str) -> None:
    if errors not in ("raise", "return"):
        raise c.ArgumentError(f"errors must be \"raise\" or \"return\", not {errors!r}")


def check_side(side: str) -> str:
    if side not in ("source", "target"):
        raise c.ArgumentError(f"side must be \"source\" or \"target\", not {side!r}")
    return side


def windows(texts: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Texts in tuples, small ones first, so that the first translations come soon."""
    window: list[str] = []
    size, most = 0, WINDOW_FIRST
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"text must be str, not {type(text).__name__}")
        window.append(text)
        size += len(text)
        if len(window) >= most or size >= WINDOW_CHARACTERS:
            yield tuple(window)
            window, size, most = [], 0, min(WINDOW, most * 2)
    if window:
        yield tuple(window)


def progress_bar(texts: Iterable[str]) -> Any:
    try:
        module = importlib.import_module("tqdm.auto")
    except ImportError:
        return None
    return module.tqdm(total=len(texts) if isinstance(texts, Sequence) else None, unit="lines")
