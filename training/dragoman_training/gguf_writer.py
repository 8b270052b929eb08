# SPDX-License-Identifier: MIT
"""GGUF version 3, written and (for our own tests and tools) read back; numpy and the standard library only.

    writer = Writer()
    writer.string("general.architecture", "dragoman")
    writer.u32("dragoman.format_version", 1)
    writer.tensor("src.embed", array)             # f32, f16, i8, i16 or i32 by the array's dtype
    writer.save(path)

Layout: magic, version, counts | metadata | tensor infos | padding | tensor data, each tensor on a multiple of
`general.alignment`. A numpy array [rows, columns] is written with ne = (columns, rows): GGUF names the fastest
dimension first. The same input always gives the same bytes. docs/internals/FORMAT.md says which keys and tensors a model has.
"""
import os
import struct

import numpy as np

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
SCALARS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", U64: "Q", I64: "q", F64: "d"}
TENSOR_TYPES = {"float32": 0, "float16": 1, "int8": 24, "int16": 25, "int32": 26}
DTYPES = {code: np.dtype(name).newbyteorder("<") for name, code in TENSOR_TYPES.items()}


def _text(value):
    data = value.encode("utf-8") if isinstance(value, str) else bytes(value)
    return struct.pack("<Q", len(data)) + data


class Writer:
    """Collects metadata and tensors in order, then writes one file."""

    def __init__(self, alignment=64):
        if alignment < 8 or alignment & (alignment - 1):
            raise ValueError(f"alignment {alignment} is not a power of two of at least 8")
        self.alignment = alignment
        self.metadata = {}                     # key -> (type, packed value)
        self.tensors = {}                      # name -> numpy array, C order, little-endian
        self.u32("general.alignment", alignment)

    def _put(self, key, kind, packed):
        if key in self.metadata:
            raise ValueError(f"metadata key '{key}' is written twice")
        self.metadata[key] = (kind, packed)

    def _scalar(self, key, kind, value):
        self._put(key, kind, struct.pack("<" + SCALARS[kind], value))

    def u32(self, key, value):
        self._scalar(key, U32, value)

    def i32(self, key, value):
        self._scalar(key, I32, value)

    def f32(self, key, value):
        self._scalar(key, F32, value)

    def bool(self, key, value):
        self._put(key, BOOL, b"\x01" if value else b"\x00")

    def string(self, key, value):
        self._put(key, STRING, _text(value))

    def strings(self, key, values):
        values = list(values)
        self._put(key, ARRAY, struct.pack("<IQ", STRING, len(values)) + b"".join(map(_text, values)))

    def i32s(self, key, values):
        data = np.asarray(list(values), dtype="<i4").tobytes()
        self._put(key, ARRAY, struct.pack("<IQ", I32, len(data) // 4) + data)

    def u32s(self, key, values):
        data = np.asarray(list(values), dtype="<u4").tobytes()
        self._put(key, ARRAY, struct.pack("<IQ", U32, len(data) // 4) + data)

    def u8s(self, key, data):
        self._put(key, ARRAY, struct.pack("<IQ", U8, len(data)) + bytes(data))

    def tensor(self, name, array):
        array = np.asarray(array)
        if array.dtype.name not in TENSOR_TYPES:
            raise ValueError(f"tensor '{name}': type {array.dtype} cannot be stored")
        if name in self.tensors:
            raise ValueError(f"tensor '{name}' is written twice")
        if not 1 <= array.ndim <= 4 or not 0 < len(name.encode("utf-8")) <= 255 or array.size == 0:
            raise ValueError(f"tensor '{name}': shape {array.shape} or name cannot be stored")
        self.tensors[name] = np.ascontiguousarray(array, dtype=DTYPES[TENSOR_TYPES[array.dtype.name]])

    def _pad(self, size):
        return -size % self.alignment

    def pack(self):
        parts = [b"GGUF", struct.pack("<IQQ", 3, len(self.tensors), len(self.metadata))]
        for key, (kind, packed) in self.metadata.items():
            parts += [_text(key), struct.pack("<I", kind), packed]
        offset = 0
        for name, array in self.tensors.items():
            parts.append(_text(name))
            parts.append(struct.pack(f"<I{array.ndim}QIQ", array.ndim, *reversed(array.shape),
                                     TENSOR_TYPES[array.dtype.name], offset))
            offset += array.nbytes + self._pad(array.nbytes)
        head = b"".join(parts)
        parts = [head, b"\0" * self._pad(len(head))]
        for array in self.tensors.values():
            parts += [array.tobytes(), b"\0" * self._pad(array.nbytes)]
        return b"".join(parts)

    def save(self, path):
        """Writes through a temporary neighbour, so that a reader never sees half a file."""
        data = self.pack()
        with open(f"{path}.tmp", "wb") as f:
            f.write(data)
        os.replace(f"{path}.tmp", path)
        return len(data)


class Reader:
    """Reads a file written by Writer (or by the C program): .metadata {key: value}, .tensors {name: array}."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data, self.pos = f.read(), 0
        magic, version, tensors, entries = self._unpack("4sIQQ")
        if magic != b"GGUF" or version != 3:
            raise ValueError(f"{path}: not a GGUF file of version 3")
        self.metadata = {}
        for _ in range(entries):
            key = self._string()
            self.metadata[key] = self._value(self._unpack("I")[0])
        infos = [self._info() for _ in range(tensors)]
        alignment = self.metadata.get("general.alignment", 32)
        start = self.pos + -self.pos % alignment
        self.tensors = {}
        for name, shape, kind, offset in infos:
            if kind not in DTYPES:
                raise ValueError(f"{path}: tensor '{name}' has type {kind}, which this reader does not know")
            flat = np.frombuffer(self.data, DTYPES[kind], int(np.prod(shape)), start + offset)
            self.tensors[name] = flat.reshape(shape)

    def _unpack(self, form):
        values = struct.unpack_from("<" + form, self.data, self.pos)
        self.pos += struct.calcsize("<" + form)
        return values

    def _string(self):
        (size,) = self._unpack("Q")
        self.pos += size
        return self.data[self.pos - size:self.pos].decode("utf-8")

    def _value(self, kind):
        if kind == STRING:
            return self._string()
        if kind == BOOL:
            return bool(self._unpack("B")[0])
        if kind != ARRAY:
            return self._unpack(SCALARS[kind])[0]
        inner, count = self._unpack("IQ")
        if inner in SCALARS:
            return list(self._unpack(f"{count}{SCALARS[inner]}"))
        return [self._value(inner) for _ in range(count)]

    def _info(self):
        name = self._string()
        (dims,) = self._unpack("I")
        shape = self._unpack(f"{dims}Q")[::-1]
        kind, offset = self._unpack("IQ")
        return name, shape, kind, offset
