#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads model files with the public `gguf` Python package and compares what it finds with a listing.

    check_gguf.py FILE.gguf LISTING             exit 1 and a diff when they differ
    check_gguf.py FILE.gguf LISTING --update    write the listing
    check_gguf.py FILE.gguf                     print a summary: the package can read the file

A listing has one line per metadata entry and tensor, in file order:

    KEY TYPE VALUE...                 numbers as %.9g, strings in quotes, arrays as [TYPE]
    tensor NAME TYPE [ROWS,COLUMNS] HEX

tests/unit/test_format_gguf.c makes the same listing with our reader, so the two readers are held
against each other. Needs the PyPI package gguf; part of `make test-long`.
"""
import difflib
import sys

import gguf

TYPES = {"UINT8": "u8", "INT8": "i8", "UINT16": "u16", "INT16": "i16", "UINT32": "u32", "INT32": "i32",
         "FLOAT32": "f32", "BOOL": "bool", "STRING": "string", "UINT64": "u64", "INT64": "i64", "FLOAT64": "f64"}


def show(value):
    if isinstance(value, str):
        return '"' + value + '"'
    if isinstance(value, float):
        return "%.9g" % value
    return str(int(value))


def listing(path):
    reader = gguf.GGUFReader(path)
    for field in reader.fields.values():
        if field.name.startswith("GGUF."):
            continue
        value = field.contents()
        names = [t.name for t in field.types]
        if names[0] == "ARRAY":
            kind = TYPES[names[1]] if len(names) > 1 else "empty"
            yield " ".join([field.name, "[" + kind + "]"] + [show(v) for v in (value or [])])
        else:
            yield " ".join([field.name, TYPES[names[0]], show(value)])
    for t in reader.tensors:
        shape = ",".join(str(n) for n in reversed(t.shape.tolist()))
        yield "tensor %s %s [%s] %s" % (t.name, t.tensor_type.name.lower(), shape, t.data.tobytes().hex())


def main():
    args = [a for a in sys.argv[1:] if a != "--update"]
    if not 1 <= len(args) <= 2:
        sys.exit(__doc__)
    if len(args) == 1:
        reader = gguf.GGUFReader(args[0])
        parts = sum(int(t.n_elements) for t in reader.tensors)
        print(f"{args[0]}: {len(reader.fields)} fields, {len(reader.tensors)} tensors, {parts} elements")
        return 0
    lines = [line + "\n" for line in listing(args[0])]
    if "--update" in sys.argv:
        with open(args[1], "w", encoding="utf-8") as out:
            out.writelines(lines)
        return 0
    with open(args[1], encoding="utf-8") as f:
        expected = f.readlines()
    sys.stdout.writelines(difflib.unified_diff(expected, lines, args[1], "gguf package"))
    return 0 if lines == expected else 1


if __name__ == "__main__":
    sys.exit(main())
