# SPDX-License-Identifier: MIT
"""A model file of ours as a folder of CTranslate2, by `dragoman export ctranslate2`: neither torch nor transformers is needed.

    peers_export.py PROGRAM MODEL.gguf FOLDER

A <pad> that a decoder starts from and that stands last in the vocabulary is moved to the third place, for the reason that
bench/modules/peers_ct2.py gives. Only the standard library is used; what a binary model holds is in CTranslate2's
python/ctranslate2/specs/model_spec.py.
"""
import json
import struct
import subprocess
import sys
from pathlib import Path

import entry


class Binary:
    """Reads a model.bin and keeps what was read."""

    def __init__(self, data):
        self.data, self.at, self.kept = data, 0, bytearray()

    def take(self, size):
        part = self.data[self.at:self.at + size]
        self.at += size
        self.kept += part
        return part

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize(code)))[0]

    def string(self):
        return self.take(self.number("H"))

    def contents(self, change):
        """The bytes of a variable, `change` made of them."""
        size = self.number("I")
        part = change(self.data[self.at:self.at + size])
        self.at += size
        self.kept += part


def last_row_third(data, rows):
    row = len(data) // rows
    return data[:2 * row] + data[(rows - 1) * row:] + data[2 * row:(rows - 1) * row]


def move_last(path, rows):
    """Rows of every variable that has one for each token: the last one to the third place. Returns how many such there are."""
    b, moved = Binary(path.read_bytes()), 0
    b.number("I"), b.string(), b.number("I")  # version, kind and revision
    for _ in range(b.number("I")):
        b.string()
        shape = [b.number("I") for _ in range(b.number("B"))]
        b.number("B")  # type
        by_token = bool(shape) and shape[0] == rows
        b.contents(lambda data: last_row_third(data, rows) if by_token else data)
        moved += by_token
    path.write_bytes(bytes(b.kept) + b.data[b.at:])
    return moved


def export(program, model, folder):
    folder = Path(folder)
    command = [str(program), "export", "ctranslate2", str(model), "-o", str(folder), "-q"]
    done = subprocess.run(command, text=True, stderr=subprocess.PIPE)
    if done.returncode:
        entry.stop(done.stderr.strip().split("\n")[-1])
    path = folder / "shared_vocabulary.json"
    tokens = json.loads(path.read_text(encoding="utf8")) if path.exists() else []
    if len(tokens) > 3 and tokens[-1] == "<pad>":
        move_last(folder / "model.bin", len(tokens))
        path.write_text(json.dumps(tokens[:2] + tokens[-1:] + tokens[2:-1], ensure_ascii=False), encoding="utf8")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    entry.run(lambda: export(*sys.argv[1:]))
