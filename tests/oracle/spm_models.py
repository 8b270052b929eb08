# SPDX-License-Identifier: MIT
"""SentencePiece models for the tests of our segmenter (src/text/spm*.c): which there are in the tree, and odd ones.

    /usr/bin/python3 tests/oracle/spm_models.py     writes tests/data/text/spm/*.spm (Debian: python3-sentencepiece)

Trained ones are tiny: what a trainer can be asked for. Written ones are what no trainer makes but a file may hold: equal scores,
pieces that are unused, of one spelling as two types, several occurrences of the settings, another unknown piece.
"""
import hashlib
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import sentencepiece as spm

ROOT = Path(__file__).resolve().parents[2]
TEXT = ROOT / "tests/data/text"
ODD = TEXT / "spm"
MARK = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE, WORD, CHAR = range(1, 5)
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


# ---- messages: fields of protocol buffers ----------------------------------------------------------

def varint(value):
    out = b""
    value &= (1 << 64) - 1
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """Bytes and text are of wire type 2, floats of 5, whole numbers of 0."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(int(value))


def message(fields):
    return b"".join(field(number, value) for number, value in fields.items())


def read(data):
    """(number, value) of every field."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
            continue
        size = {1: 8, 5: 4}.get(tag & 7) or number()
        part = data[at:at + size]
        at += size
        yield tag >> 3, struct.unpack("<f", part)[0] if tag & 7 == 5 else part


def pieces_of(model):
    rows = []
    for number, value in read(model):
        if number == 1:
            f = dict(read(value))
            rows.append((f[1], f.get(2, 0.0), f.get(3, NORMAL)))
    return rows


def settings_of(model, number):
    return b"".join(value for n, value in read(model) if n == number)


def written(rows, trainer=b"", normalizer=b"", rest=b""):
    """rows: (spelling, score, type)."""
    body = b"".join(field(1, field(1, text) + field(2, float(score)) + (b"" if kind == NORMAL else field(3, kind)))
                    for text, score, kind in rows)
    return body + field(2, trainer) + field(3, normalizer) + rest


# ---- models ----------------------------------------------------------------------------------------

NEWS = ["news.en", "news.de", "flores.fr", "flores.zh", "flores.ja", "flores.es"]
USER_SYMBOLS = ["<sep>", "<sep>x", "user defined", "user" + MARK + "mark", "\u2581\u2581", "ing", "\U0001f600", "  two", "\u00e9"]
TRAINED = {
    "unigram-nfkc": {"normalization_rule_name": "nmt_nfkc", "user_defined_symbols": USER_SYMBOLS},
    "unigram-folded": {"normalization_rule_name": "nmt_nfkc_cf", "byte_fallback": True, "vocab_size": 1300},
    "unigram-bare": {"normalization_rule_name": "identity", "add_dummy_prefix": False, "remove_extra_whitespaces": False},
    "unigram-suffix": {"normalization_rule_name": "nfkc", "treat_whitespace_as_suffix": True, "user_defined_symbols": ["ing",
                                                                                                                       " and "]},
    "unigram-spaces": {"normalization_rule_name": "identity", "remove_extra_whitespaces": False,
                       "allow_whitespace_only_pieces": True},
    "unigram-across": {"normalization_rule_name": "nfkc_cf", "split_by_whitespace": False, "add_dummy_prefix": False},
    "bpe-nfkc": {"model_type": "bpe", "normalization_rule_name": "nmt_nfkc", "user_defined_symbols": USER_SYMBOLS},
    "bpe-bytes": {"model_type": "bpe", "byte_fallback": True, "split_digits": True, "normalization_rule_name": "identity",
                  "remove_extra_whitespaces": False, "vocab_size": 1300},
    "bpe-suffix": {"model_type": "bpe", "treat_whitespace_as_suffix": True},
    "word-plain": {"model_type": "word", "vocab_size": 1300, "user_defined_symbols": ["<sep>"]},
    "word-folded": {"model_type": "word", "vocab_size": 1300, "normalization_rule_name": "nmt_nfkc_cf"},
    "char-plain": {"model_type": "char", "vocab_size": 1300, "user_defined_symbols": USER_SYMBOLS},
    "char-bytes": {"model_type": "char", "vocab_size": 1300, "byte_fallback": True, "normalization_rule_name": "identity"},
}
RULES = [("2019", "27"), ("A0", "20"), ("9", "20"), ("FF21", "41"), ("FB01", "66 69"), ("2026", "2E 2E 2E"), ("AD", ""),
         ("41 30A", "C5"), ("200B", "20 20"), ("2E 2E", "20 2E 20"), ("2028", "2581"), ("61 62 63", "63 62 61"), ("61 62", "78")]
BACK = [("3F", "21"), ("2E 2E", "2026"), ("20 20", "20"), ("41", ""), ("FFFD", "3F 3F")]


def rules(path, table):
    path.write_text("".join(f"{a}\t{b}\n" for a, b in table))
    return str(path)


def train(folder):
    made = {}
    options = dict(TRAINED)
    options["unigram-rules"] = {"normalization_rule_tsv": rules(folder / "rules.tsv", RULES), "unk_surface": "?",
                                "denormalization_rule_tsv": rules(folder / "back.tsv", BACK)}
    options["bpe-rules"] = {"model_type": "bpe", "normalization_rule_tsv": rules(folder / "rules.tsv", RULES),
                            "byte_fallback": True,
                            "vocab_size": 1300, "unk_surface": "", "unk_piece": "<oov>", "unk_id": 3, "bos_id": 0, "eos_id": 1,
                            "pad_id": 2}
    lines = []
    for name in NEWS:
        lines += (TEXT / name).read_text(encoding="utf-8").split("\n")[:60]
    (folder / "lines").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, more in options.items():
        settings = {"vocab_size": 1300, "character_coverage": 0.98, "normalization_rule_name": "identity", "num_threads": 1,
                    "minloglevel": 2, "hard_vocab_limit": False, **more}
        if "normalization_rule_tsv" in settings:
            del settings["normalization_rule_name"]
        spm.SentencePieceTrainer.train(input=str(folder / "lines"), model_prefix=str(folder / "m"), **settings)
        made[name] = (folder / "m.model").read_bytes()
    return made


def write(made):
    """Models that are written: from the trained ones, or from nothing."""
    out = {}
    chance = random.Random(7)
    for name, base, kind in (("unigram-unused", "unigram-nfkc", UNIGRAM), ("bpe-unused", "bpe-nfkc", BPE)):
        rows = [(t, s, UNUSED if k == NORMAL and chance.random() < 0.4 else k) for t, s, k in pieces_of(made[base])]
        out[name] = written(rows, settings_of(made[base], 2), settings_of(made[base], 3))
    rows = [(t, float(chance.randrange(4)), UNUSED if k == NORMAL and chance.random() < 0.2 else k)
            for t, s, k in pieces_of(made["bpe-nfkc"])]
    out["bpe-equal"] = written(rows, settings_of(made["bpe-nfkc"], 2), settings_of(made["bpe-nfkc"], 3))
    rows = [(t, float(chance.randrange(-3, 2)) / 4, k) for t, s, k in pieces_of(made["unigram-nfkc"])]
    out["unigram-equal"] = written(rows, settings_of(made["unigram-nfkc"], 2), settings_of(made["unigram-nfkc"], 3))
    # White space as it is; settings that come twice are merged, the last one counts.
    for base in ("unigram-nfkc", "bpe-nfkc", "char-plain", "unigram-suffix"):
        plain = [(t.replace(MARK.encode(), b" "), s, k) for t, s, k in pieces_of(made[base])]
        seen = set()
        plain = [r for r in plain if not (r[0] in seen or seen.add(r[0]))]
        out[base.split("-")[0] + ("-suffix" if "suffix" in base else "") + "-unescaped"] = written(
            plain, settings_of(made[base], 2), settings_of(made[base], 3), field(3, field(5, 0)))
    # One spelling as two types: the library finds the reserved one first.
    letters = [(c, -1.0 - i / 7, NORMAL) for i, c in enumerate("abcdefgh" + MARK)]
    pairs = [(a + b, -0.5 - (i * 7 + j) % 5, NORMAL) for i, a in enumerate("abcd" + MARK) for j, b in enumerate("abcd")]
    base = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("a", 0.0, CONTROL), ("<unk>", -2.0, NORMAL), ("</s>", -1.0, NORMAL)]
    for name, kind in (("unigram", UNIGRAM), ("bpe", BPE), ("word", WORD), ("char", CHAR)):
        words = [(MARK + w, -2.0, NORMAL) for w in ("bad", "cab")] if kind == WORD else []
        out[f"{name}-twice"] = written(base + letters + pairs + words + [("b", 0.0, CONTROL)], field(3, kind))
        dotted = [("?", 0.0, UNKNOWN), ("b", 3.5, USER), ("ab", 0.0, USER), ("<s>", 0.0, CONTROL), (MARK + MARK, -0.5, NORMAL)]
        out[f"{name}-user"] = written(dotted + [r for r in letters + pairs if r[0] not in ("b", "ab")],
                                      field(3, kind) + field(45, "?") + field(44, "<?>"), field(3, 0))
    out["unigram-high"] = written([("<unk>", 0.0, UNKNOWN), ("a", 3e38, NORMAL), ("b", 2.5e38, NORMAL), ("ab", 1e38, NORMAL),
                                   ("c", -3e38, NORMAL), ("bc", 16777216.0, NORMAL), ("cc", 1.0, NORMAL), (MARK, 1e-30, USER)],
                                  field(3, UNIGRAM))
    out["unigram-none"] = written([("<unk>", 0.0, UNKNOWN), ("ab", 0.0, USER), ("a", 1.0, UNUSED)], field(3, UNIGRAM))
    # Sums of floats whose last bits decide.
    fine = [("<unk>", 0.0, UNKNOWN)]
    seen = set()
    for n in (1, 2, 3, 4):
        for _ in range(60):
            text = "".join(chance.choice("ab" + MARK) for _ in range(n))
            if text not in seen:
                seen.add(text)
                fine.append((text, -n * 0.1 * (1 + chance.randrange(3) * 2.0 ** -24), NORMAL))
    out["unigram-fine"] = written(fine, field(3, UNIGRAM))
    # The same where an unknown character competes with a piece: those that end in "c", which is none, are as good as their
    # beginning and an unknown character, but for the last bits.
    close = [("<unk>", 0.0, UNKNOWN), ("d", -3.3, NORMAL)]
    for text, score in (("a", 12.1), ("b", 11.7), ("ab", 23.9), (MARK, 10.3), (MARK + "a", 22.2)):
        close.append((text, score, NORMAL))
        for i, more in enumerate(("c", "cc", "e")):
            close.append((text + more, score - 13.3 * (i % 2 + 1) + (chance.randrange(5) - 2) * 2.0 ** -22, NORMAL))
    out["unigram-close"] = written(close, field(3, UNIGRAM))
    return out


def spm_of(path, side):
    """The SentencePiece model inside one of our model files, or None."""
    data, at = path.read_bytes(), 4

    def take(code):
        nonlocal at
        value, = struct.unpack_from("<" + code, data, at)
        at += struct.calcsize(code)
        return value

    def skip(kind, keep):
        nonlocal at
        if kind == 9:
            kind, count = take("I"), take("Q")
            if kind in (8, 9):
                for _ in range(count):
                    skip(kind, False)
                return None
            size = count * struct.calcsize("<" + SCALARS[kind])
        else:
            size = take("Q") if kind == 8 else struct.calcsize("<" + SCALARS[kind])
        at += size
        return data[at - size:at] if keep else None
    take("I")
    take("Q")
    for _ in range(take("Q")):
        name = skip(8, True).decode()
        value = skip(take("I"), True)
        if name == f"dragoman.{side}.vocab.sentencepiece":
            return value
    return None


def all_models():
    """{name: model} of every different SentencePiece model in the tree."""
    found, seen = {}, set()
    files = sorted(ODD.glob("*.spm")) + [p for p in sorted((ROOT / "tests/data").rglob("*")) if ODD not in p.parents and
                                        (p.suffix == ".spm" or p.name.startswith("sentencepiece") and p.suffix == ".model")]
    for path in files:
        found.setdefault(str(path.relative_to(ROOT)), path.read_bytes())
    for path in sorted([*(ROOT / "models").rglob("*.gguf"), *(ROOT / "tests/data").rglob("*.gguf")]):
        for side in ("source", "target"):
            model = spm_of(path, side) if path.read_bytes()[:8] == b"GGUF\3\0\0\0" and not path.is_symlink() else None
            if model:
                found.setdefault(f"{path.relative_to(ROOT)}:{side}", model)
    models = {}
    for name, model in found.items():
        key = hashlib.sha256(model).digest()
        if key not in seen:
            seen.add(key)
            models[name] = model
    return models


def main():
    ODD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = train(Path(folder))
    for name, model in {**made, **write(made)}.items():
        (ODD / f"{name}.spm").write_bytes(model)
        print(name, len(model), "bytes", file=sys.stderr)
    subprocess.run([ROOT / "scripts/check_models", "--strip", *sorted(ODD.glob("*.spm"))], check=True)  # names of files


if __name__ == "__main__":
    main()
