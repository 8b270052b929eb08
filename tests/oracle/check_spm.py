#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Our SentencePiece segmenter against the library: ids, byte spans, decoded text, whatever the text and the model.

    check_spm.py --golden                    tests/data/text/spm_golden.json anew, on stdout
    check_spm.py PROGRAM [--rounds N] [--seed N] [--model SUBSTRING] [--text FILE]...
                                             compares build/tests/oracle/spm_answers with the library: all text of tests/data, every
                                             code point, N rounds of random strings for each model of the tree, N * 4 random models

Needs python3-sentencepiece of Debian (0.1.97, which our rules are those of). A digest in the golden is 16 bits of the CRC of
ids, spans, decoded text and its spans of one line, hostile text or block of code points: tests/unit/test_text_spm.c has the same.
"""
import argparse
import json
import random
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import sentencepiece

sys.path.insert(0, str(Path(__file__).resolve().parent))
import spm_models  # noqa: E402
from spm_models import BPE, BYTE, CHAR, CONTROL, MARK, NORMAL, UNIGRAM, UNKNOWN, UNUSED, USER, WORD, field, read  # noqa: E402

ROOT = spm_models.ROOT
LINES = ["news.en", "news.de", "flores.fr", "flores.es", "flores.it", "flores.zh", "flores.ja", "noisy.zh", "spm.lines",
         "special.ref"]
DRAWN = 400  # lists of drawn ids in the golden
BLOCK = 256  # code points in a text of the golden


# ---- texts -----------------------------------------------------------------------------------------

def utf8(code):
    """UTF-8 of any number, surrogates too."""
    return chr(code).encode("utf-8", "surrogatepass")


def hostile():
    """Bytes that are hard to split."""
    m = MARK.encode()
    texts = [b"", b" ", b"  ", b"\t", b"\n \r\n", b" a", b"a ", b"  a  b  ", m, m + m, b" " + m, m + b" ", m + b"a" + m,
             b"a" + m * 3 + b"b", b"\0", b"a\0b", b"\0\0", bytes(range(1, 32)), bytes(range(127, 160)), b"\x7f", b"\xff", b"\xc3",
             b"a\xc3", b"\xc3(", b"\xe2\x82", b"\xe2\x96", b"\xf0\x9f\x98", b"\x80", b"\xbf" * 5, b"\xc0\x80", b"\xe0\x80\x80",
             b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf0\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe\xff",
             b"\xef\xbf\xbd", b"\xef\xbf\xbe", b"x\xef\xbb\xbfy", "naïve e\u0301 \u0301\u0301\u0301 o\u0308\u0323".encode(),
             "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea".encode(), "ＡＢＣ　１２３ ｶﾞｷﾞ ㍿ ﬁ ﷺ".encode(),
             "A\u030a \u1e69 \u2126 \u212b".encode(), "가각힣 각".encode(), "ひらがな カタカナ 漢字".encode(),
             "\u00a0\u2003\u2028\u2029\u3000\u200b\u200c\u200d\ufeff\u00ad".encode(), "x\u200by\u2060z".encode(), b"<unk>",
             b"<s> </s> <pad>", b"<sep>", b"<sep><sep>x", b"a<sep>b", b"user defined", b"user  defined", b"user" + m + b"mark",
             b"<0x41><0xE2>", b"<0x", b"<oov>", b"." * 40, b".. ... ....", b"a" * 300, b"ab" * 500, "漢".encode() * 300,
             b"abc" * 33 + b" ", b" " * 1000, m * 500, b"\xff" * 400, b"a " * 400, "\u0301".encode() * 300, b"x" * 20000,
             "漢".encode() * 6000, b"ab \xff" * 3000, b"https://example.com/a?b=c&d=e#f", b"1234567890 3.14 1,000",
             "Straße GROß İstanbul ΟΔΟΣ".encode(), b"a\tb\tc", b"tab\t\ttab", "\U0010ffff\U000e0001\ue000".encode(), b"  two",
             b"x  two y", b"ing ings inging", b"aabbaabb abba", b"cccc bc cc c"]
    return texts


def corpora():
    return {name: (ROOT / "tests/data/text" / name).read_bytes().split(b"\n")[:-1] for name in LINES}


def block(first):
    """A run of code points, words of 16: what every one of them becomes."""
    return b"".join(utf8(c) + (b" " if c % 16 == 15 else b"") for c in range(first, first + BLOCK))


def points():
    """Beginnings of the blocks of code points of the golden."""
    return [*range(0, 0x10000, BLOCK), 0x10000, *range(0x1F000, 0x1FB00, BLOCK), 0xE0000, 0x10FF00]


def drawn(size):
    """Lists of ids, by the generator that the unit test has."""
    state, lists = 1, []
    for i in range(DRAWN):
        row = []
        for _ in range(i % 24 + 1):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            row.append((state >> 8) % size)
        lists.append(row)
    return lists


# ---- the library -----------------------------------------------------------------------------------

def spans_of(data):
    """Text and (id, begin, end) of every piece of a serialised SentencePieceText. Written for speed: fields are in order, and
    every piece has all of them but a surface that is empty."""
    text, tokens, at, size = b"", [], 0, len(data)

    def number(at):
        value, shift = data[at] & 127, 7
        while data[at] > 127:
            at += 1
            value |= (data[at] & 127) << shift
            shift += 7
        return value, at + 1
    while at < size:
        tag = data[at]
        length, at = number(at + 1) if tag != 0x1D else (4, at + 1)
        end = at + length
        if tag == 0x0A:
            text = data[at:end]
        elif tag == 0x12:
            values = [0, 0, 0, 0]
            while at < end:
                tag = data[at]
                value = data[at + 1]
                at += 2
                if value > 127:
                    value, at = number(at - 1)
                if tag & 7 == 2:
                    at += value
                else:
                    values[(tag >> 3) - 2] = value  # 2 is the id, 4 and 5 the span
            tokens.append((values[0], values[2], values[3]))
        at = end
    return text, tokens


class Library:
    def __init__(self, model):
        self.spm = sentencepiece.SentencePieceProcessor()
        self.spm.LoadFromSerializedProto(model)
        self.size = self.spm.GetPieceSize()
        self.control = {i for i in range(self.size) if self.spm.IsControl(i)}

    def encode(self, text):
        """Tokens, None for an error: Python's part of the library hides that of a text that spells a control symbol."""
        tokens = spans_of(self.spm._EncodeAsSerializedProto(text, False, 0, 0.1, False, False, False, False))[1]
        return None if any(t[0] in self.control for t in tokens) else tokens

    def decode(self, ids):
        """(text, tokens): a token has the id that was given."""
        if not ids:
            return b"", []
        text, tokens = spans_of(self.spm.DecodeIdsAsSerializedProto(ids))
        return text, [(given, begin, end) for given, (_, begin, end) in zip(ids, tokens)]


def packed(tokens):
    return struct.pack(f"<{3 * len(tokens)}I", *(n for t in tokens for n in t))


def short(data):
    return zlib.crc32(data) & 0xFFFF


def digest(library, text):
    tokens = library.encode(text)
    if tokens is None:
        return short(b"error")
    return short(packed(tokens) + answer_of_ids(library, [t[0] for t in tokens]))


def answer_of_ids(library, ids):
    text, tokens = library.decode(ids)
    return text + packed(tokens)


def again(library, ids):
    """What the text of these ids is encoded to: text that the pieces are made for."""
    tokens = library.encode(library.decode(ids)[0])
    return b"error" if tokens is None else packed(tokens)


def golden():
    texts, lines = hostile(), corpora()
    rows = []
    for name, model in spm_models.all_models().items():
        library = Library(model)
        rows.append({"model": name, "size": library.size, "unk": library.spm.unk_id(),
                     "pieces": zlib.crc32("\n".join(library.spm.IdToPiece(i) for i in range(library.size)).encode()),
                     "found": zlib.crc32(b"".join(struct.pack("<I", library.spm.PieceToId(library.spm.IdToPiece(i)))
                                                  for i in range(library.size))),
                     "hostile": [digest(library, t) for t in texts],
                     "lines": {file: [digest(library, t) for t in part] for file, part in lines.items()},
                     "points": [digest(library, block(first)) for first in points()],
                     "drawn": [short(answer_of_ids(library, ids) + again(library, ids)) for ids in drawn(library.size)]})
        print(name, file=sys.stderr)
    return ('{"hostile": [' + ",\n".join(f'"{t.hex()}"' for t in texts) + '],\n"models": [\n' +
            ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows) + "]}\n")


# ---- comparing -------------------------------------------------------------------------------------

class Ours:
    """Answers of the program to many requests at once."""

    def __init__(self, program):
        self.program = program

    def answers(self, model, requests):
        """Requests: bytes to encode or lists of ids. None when the model is refused."""
        with tempfile.NamedTemporaryFile(suffix=".spm") as file:
            file.write(model)
            file.flush()
            body = b"".join(struct.pack("<II", 0, len(r)) + r if isinstance(r, bytes) else
                            struct.pack(f"<II{len(r)}i", 1, len(r), *r) for r in requests)
            done = subprocess.run([self.program, file.name], input=body, capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"{self.program} ended with {done.returncode}: {done.stderr.decode()}")
        out, at, answers = done.stdout, 0, []
        if out[:4] == struct.pack("<i", -2):
            return None
        for r in requests:
            count, = struct.unpack_from("<i", out, at)
            at += 4
            text = b""
            if count >= 0 and not isinstance(r, bytes):
                size, = struct.unpack_from("<I", out, at)
                text = out[at + 4:at + 4 + size]
                at += 4 + size
            if count < 0:
                answers.append(None)
                continue
            tokens = list(struct.iter_unpack("<III", out[at:at + 12 * count]))
            at += 12 * count
            answers.append(tokens if isinstance(r, bytes) else (text, tokens))
        return answers


class Check:
    def __init__(self, program):
        self.ours, self.compared, self.differ = Ours(program), 0, 0

    def texts(self, name, model, library, texts):
        """Encodings, and decodings of what was encoded."""
        step = 1000
        for first in range(0, len(texts), step):
            part = texts[first:first + step]
            want = [library.encode(t) for t in part]
            lists = [[t[0] for t in tokens] for tokens in want if tokens]
            self.compare(name, model, part + lists, want + [library.decode(ids) for ids in lists])

    def compare(self, name, model, requests, want):
        got = self.ours.answers(model, requests)
        if got is None:
            return self.report(name, "the model is refused", "", "")
        for r, w, g in zip(requests, want, got):
            self.compared += 1
            if w != g:
                self.report(name, r, w, g)
        return None

    def report(self, name, request, want, got):
        self.differ += 1
        if self.differ <= 20:
            print(f"{name}: {str(request)[:300]}\n  library {str(want)[:600]}\n  ours    {str(got)[:600]}", flush=True)


def random_text(chance, pool):
    kind = chance.randrange(6)
    n = chance.choice((1, 2, 3, 5, 8, 20, 60))
    if kind == 0:
        return bytes(chance.randrange(256) for _ in range(n))
    if kind == 1:
        return b"".join(utf8(chance.randrange(0x110000) if chance.random() < 0.3 else chance.randrange(0x3000)) for _ in range(n))
    if kind == 2:
        return "".join(chance.choice("ab cd" + MARK) for _ in range(n)).encode()
    words = [chance.choice(pool) for _ in range(n)]
    if kind == 3:
        return chance.choice((b"", b" ", b"  ")).join(words)
    if kind == 4:
        return b" ".join(words)
    out = bytearray(b" ".join(words))
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(out) + 1)
        out[at:at + chance.randrange(3)] = chance.choice((b"\xff", b" ", MARK.encode(), b"\xe2", b"",
                                                          utf8(chance.randrange(0x110000))))
    return bytes(out)


def pool_of(model):
    pieces = [t for t, _, _ in spm_models.pieces_of(model)]
    return pieces + [t.replace(MARK.encode(), b" ") for t in pieces] + [b" ", b".", b"x", "\u00e9".encode(), "漢".encode()]


def random_model(chance, maps):
    """A model whose pieces, scores, types and settings were drawn; the library may refuse it."""
    letters = "abc" + MARK + chance.choice(("", " ", "é", "漢"))
    kind = chance.choice((UNIGRAM, UNIGRAM, BPE, BPE, WORD, CHAR))
    scores = chance.choice(([0.0], [0.0, 1.0, 2.0], [-1.0, -2.0, -3.0, -4.5], None, [1e38, -1e38, 1e-38], [-0.1, -0.2, -0.3,
                                                                                                           -0.1 - 2 ** -27]))
    rows = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL)]
    used = {"<unk>", "<s>"}
    for _ in range(chance.choice((3, 20, 100))):
        text = "".join(chance.choice(letters) for _ in range(chance.choice((1, 1, 2, 2, 3, 4, 7))))
        if text in used and chance.random() < 0.999:
            continue
        used.add(text)
        score = chance.uniform(-9, 1) if scores is None else chance.choice(scores)
        rows.append((text, score, chance.choices((NORMAL, USER, UNUSED, CONTROL), (80, 6, 12, 0.3))[0]))
    trainer = field(3, kind)
    if chance.random() < 0.3:
        trainer += field(35, 1)
        rows += [(f"<0x{b:02X}>", 0.0, BYTE) for b in range(256)]
    if chance.random() < 0.2:
        trainer += field(24, 1)
    if chance.random() < 0.2:
        trainer += field(44, chance.choice(("", " ? ", "\u2047")))
    if chance.random() < 0.3:
        chance.shuffle(rows)
    normalizer = b"".join(field(n, chance.randrange(2)) for n in (3, 4, 5) if chance.random() < 0.5)
    if chance.random() < 0.4:
        normalizer += field(2, chance.choice(maps))
    rest = field(5, field(2, chance.choice(maps)) + b"".join(field(n, chance.randrange(2)) for n in (3, 4, 5)
                                                             if chance.random() < 0.5)) \
        if chance.random() < 0.2 else b""
    return spm_models.written(rows, trainer, normalizer, rest)


def random_models(check, chance, count, models):
    maps = list({value: 0 for m in models.values() for value in [dict(read(spm_models.settings_of(m, 3))).get(2)] if value})
    small = [m for m in maps if len(m) < 20000]
    refused = 0
    for i in range(count):
        model = random_model(chance, small)
        texts = [random_text(chance, pool_of(model)) for _ in range(100)]
        try:
            library = Library(model)
        except RuntimeError:
            refused += 1
            if check.ours.answers(model, []) is None or check.ours.answers(model, [b""]) is None:
                continue
            check.report(f"drawn model {i}", "refused by the library", model, "")
            continue
        if library.spm.unk_id() < 0:
            continue
        check.texts(f"drawn model {i} ({model.hex() if len(model) < 3000 else len(model)})", model, library, texts)
        ids = [[chance.randrange(library.size) for _ in range(chance.randrange(1, 12))] for _ in range(50)]
        check.compare(f"drawn model {i}", model, ids, [library.decode(r) for r in ids])
    print(f"{count} drawn models, {refused} of them refused by both", flush=True)


def compare(options):
    check, chance = Check(options.program), random.Random(options.seed)
    lines = [t for part in corpora().values() for t in part]
    for path in sorted((ROOT / "tests/data").glob("*/*")):
        if path.suffix in (".de", ".en", ".real", ".hard", ".tsv", ".ref", ".hyp", ".fr", ".es", ".it", ".ja", ".zh"):
            data = path.read_bytes()
            lines += data.split(b"\n") + [data[:60000]]
    for path in options.text:
        lines += Path(path).read_bytes().split(b"\n")
    models = {n: m for n, m in spm_models.all_models().items() if options.model in n}
    for name, model in models.items():
        library, pool = Library(model), pool_of(model)
        before = check.compared
        check.texts(name, model, library, hostile() + lines)
        if options.points:
            for first in range(0, 0x110000, 0x4000):
                texts = [utf8(c) for c in range(first, first + 0x4000)]
                check.compare(name, model, texts, [library.encode(t) for t in texts])
        check.texts(name, model, library, [block(first) for first in range(0, 0x110000, BLOCK)])
        for _ in range(options.rounds):
            check.texts(name, model, library, [random_text(chance, pool) for _ in range(1000)])
            ids = [[chance.randrange(library.size) for _ in range(chance.randrange(1, 30))] for _ in range(200)]
            check.compare(name, model, ids, [library.decode(r) for r in ids])
        print(f"{name}: {check.compared - before} answers, {check.differ} differ", flush=True)
    random_models(check, chance, options.rounds * 4, spm_models.all_models())
    print(f"{check.compared} answers compared, {check.differ} differ")
    return check.differ > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default="")
    parser.add_argument("--text", action="append", default=[])
    parser.add_argument("--points", action="store_true", help="every code point as a text of its own, too")
    options = parser.parse_args()
    if options.golden:
        sys.stdout.write(golden())
    elif options.program:
        sys.exit(compare(options))
    else:
        parser.error("PROGRAM or --golden is needed")


if __name__ == "__main__":
    main()
