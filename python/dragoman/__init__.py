# SPDX-License-Identifier: MIT
"""Neural machine translation: the C library Dragoman for Python.

    import dragoman
    print(dragoman.Translator("en-de").translate("Good morning."))

Translator translates; models, import_model, quantize, evaluate, align and inspect are the tools. Errors are subclasses of
dragoman.Error with the library's sentence. docs/manual/PYTHON.md describes the package.
"""
from ._dragoman import (ArgumentError, CancelledError, ClosedError, Error, FileError, ForkError, FormatError,
                        OutOfMemoryError, TextError, UnsupportedError, VersionError)
from ._dragoman import version as __version__
from ._result import Result, Results, Score
from ._tools import (Evaluation, Model, Quantization, align, detect, evaluate, import_model, inspect, models, quantize, settings,
                     translate_file)
from ._translator import Translator

__all__ = ["ArgumentError", "CancelledError", "ClosedError", "Error", "Evaluation", "FileError", "ForkError", "FormatError",
           "Model", "OutOfMemoryError", "Quantization", "Result", "Results", "Score", "TextError", "Translator",
           "UnsupportedError", "VersionError", "__version__", "align", "detect", "evaluate", "import_model", "inspect", "models",
           "quantize", "settings", "translate_file"]
