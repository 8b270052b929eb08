# SPDX-License-Identifier: MIT
"""Which model a path means, what it is stored in and computes in, and on what."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any, Optional, Union

from .. import _dragoman as c
from ._ct2_options import Tokens

# What CTranslate2 calls the library's precisions.
NAMES = {"i8": "int8_float32", "i16": "int16", "f32": "float32", "f16": "float16", "bf16": "bfloat16"}
PRECISIONS = {"int8": "i8", "int8_float32": "i8", "int8_float16": "i8", "int8_bfloat16": "i8", "int16": "i16",
              "float32": "f32", "float": "f32", "float16": "f16", "bfloat16": "bf16"}
# Of these, what a CPU does not compute in: asked for they are refused, of a folder they become the other one.
NO_CPU = {"int8_float16": "int8_float32", "int8_bfloat16": "int8_float32", "float16": "float32", "bfloat16": "float32"}


def contains_model(path: str) -> bool:
    """Does the folder look like a model of CTranslate2?"""
    return os.path.exists(os.path.join(path, "model.bin"))


def get_cuda_device_count() -> int:
    """How many GPUs can be used."""
    return sum(name.startswith("cuda:") for name, _ in c.devices())


def get_supported_compute_types(device: str, device_index: int = 0) -> set[str]:
    """What compute_type may be."""
    check_device(device)
    if device == "cpu":
        return {name for name in PRECISIONS if name not in NO_CPU and name != "float"}
    for name, precisions in c.devices():
        if name == f"cuda:{device_index}":
            return {kind for kind, precision in PRECISIONS.items() if precision in precisions.split(", ") and kind != "float"}
    raise c.UnsupportedError(f"there is no GPU {device_index} here")


def check_device(device: str) -> str:
    """cpu or cuda."""
    if device == "auto":
        return "cuda" if get_cuda_device_count() else "cpu"
    if device not in ("cpu", "cuda"):
        raise c.ArgumentError(f"unsupported device {device}")
    return device


class Model:
    """A folder of CTranslate2, or anything else that the library opens."""

    def __init__(self, path: Union[str, os.PathLike[str]], files: Optional[Mapping[str, Any]]) -> None:
        self.path = os.fspath(path)
        if files is not None:
            self._room = TemporaryDirectory(prefix="dragoman-ctranslate2-")
            self.path = unpack(self._room.name, files)
        self.config: dict[str, Any] = {}
        self.known = contains_model(self.path)  # a folder of CTranslate2
        config = os.path.join(self.path, "config.json")
        if self.known and os.path.exists(config):
            with open(config, encoding="utf-8") as text:
                self.config = json.load(text)
        self.start: str = self.config.get("bos_token", "<s>")
        self.end: str = self.config.get("eos_token", "</s>")
        self.unknown: str = self.config.get("unk_token", "<unk>")
        self._ids: Optional[dict[str, int]] = None
        self._file = self.stored = ""

    @property
    def file(self) -> str:
        """What is to be opened: a folder becomes a file in the cache."""
        if not self._file or not os.path.exists(self._file):
            found = json.loads(c.inspect(os.fsencode(self.path)))
            self._file, self.stored = found["path"], stored_type(found["tensors"])
        return self._file

    def ids(self) -> dict[str, int]:
        """Numbers of the target's tokens; empty where there is no such list."""
        if self._ids is None:
            self._ids = {token: i for i, token in enumerate(read_vocabulary(self.path))}
        return self._ids

    def precision(self, asked: str, device: str) -> Optional[str]:
        """What compute_type means; None: what is fastest."""
        if asked == "auto":
            return "i8" if device == "cpu" else None
        kind = asked
        if asked == "default":
            kind = NAMES[self.stored]
            kind = NO_CPU.get(kind, kind) if device == "cpu" else "float16" if kind == "int16" else kind
        if kind not in PRECISIONS:
            raise c.ArgumentError(f"Invalid compute type: {asked}")
        if device == "cpu" and kind in NO_CPU:
            raise c.ArgumentError(f"compute type {kind}: a CPU does not compute in it; take {NO_CPU[kind]}, or default")
        return PRECISIONS[kind]

    def source(self, tokens: Any, most: int) -> tuple[str, ...]:
        """What the encoder reads: at most so many tokens, those that the model adds included; 0: all of them."""
        if isinstance(tokens, str):
            raise TypeError("source must be a list of lists of tokens, not of str")
        own = list(tokens)
        # A model of another kind has no such list: its end is added where it is not there.
        ends = bool(self.config.get("add_source_eos")) if self.config else not own or own[-1] != self.end
        own = [self.start] * bool(self.config.get("add_source_bos")) + own + [self.end] * ends
        if 0 < most < len(own):  # its end stays, and a language behind that
            tail = 1 if own[-1] == self.end else 2 if own[-2] == self.end and most >= 2 else 0
            own = own[:most - tail] + own[len(own) - tail:]
        return tuple(own)

    def is_empty(self, tokens: Tokens) -> bool:
        """Are there special tokens alone?"""
        count = len(tokens)
        if count == 1:
            return tokens[0] in (self.start, self.end)
        if count >= 2:
            count -= tokens[0] == self.start
            count -= 1 if tokens[-1] == self.end else 2 if tokens[-2] == self.end else 0  # a language comes last
        return count <= 0

    def spelled(self, tokens: Tokens) -> list[str]:
        """Tokens as they come back from the vocabulary."""
        ids = self.ids()
        return [token if not ids or token in ids else self.unknown for token in tokens]


def stored_type(tensors: list[dict[str, Any]]) -> str:
    """That of most weights."""
    sizes: dict[str, int] = {}
    for tensor in tensors:
        if len(tensor["shape"]) > 1:
            numbers = 1
            for side in tensor["shape"]:
                numbers *= side
            sizes[tensor["type"]] = sizes.get(tensor["type"], 0) + numbers
    known = {kind: size for kind, size in sizes.items() if kind in NAMES}
    return max(known, key=lambda kind: known[kind], default="f32")


def read_vocabulary(path: str) -> list[str]:
    for name in ("target_vocabulary", "shared_vocabulary"):
        file = os.path.join(path, name)
        if os.path.exists(file + ".json"):
            with open(file + ".json", encoding="utf-8") as text:
                return [str(token) for token in json.load(text)]
        if os.path.exists(file + ".txt"):
            with open(file + ".txt", encoding="utf-8", newline="\n") as text:
                return [line.rstrip("\n") for line in text]
    return []


def unpack(folder: str, files: Mapping[str, Any]) -> str:
    """Writes files that are given as bytes, or as something to read."""
    for name, content in files.items():
        path = os.path.join(folder, name)
        if os.path.basename(name) != name:
            raise c.ArgumentError(f"files: {name!r} is no name of a file")
        with open(path, "wb") as out:
            out.write(content if isinstance(content, (bytes, bytearray, memoryview)) else content.read())
    return folder
