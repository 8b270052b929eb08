#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The SentencePiece model of the text tests and its encodings.

    pip install sentencepiece
    python3 tests/oracle/make_spm.py             writes tiny.spm, spm.lines, spm.json
    python3 tests/oracle/make_spm.py --encode    encodings of the stored model, JSON on stdout

Files are in tests/data/text. The model: unigram, 900 pieces, byte fallback, a small character map
of its own (so that the check of the map's trie has something to check), a user-defined symbol; ids
as Marian has them (</s> 0, <unk> 1). The JSON holds ids and decoded text of every line of
spm.lines.
"""
import json
import sys
import tempfile
from pathlib import Path

import sentencepiece as spm

DATA = Path(__file__).resolve().parent.parent / "data" / "text"
# From, to: code points in hexadecimal, as the trainer reads them.
RULES = [("2019", "27"), ("201C", "22"), ("201D", "22"), ("201E", "22"), ("A0", "20"), ("9", "20"),
         ("FF21", "41"), ("FB01", "66 69"), ("2026", "2E 2E 2E"), ("AD", ""), ("41 30A", "C5")]
LINES = [
    "", " ", "Hello world.", "  two  spaces  ", "Prime Minister <sep> of India",
    "Der Ministerpräsident kündigte eine Reform an.", "naïve café — 5 €", "漢字とかな",
    "emoji 😀 👩‍👩‍👧 done", "“quoted” „deutsch“ it’s…", "tab\there nbsp\u00a0there", "\u2581mark",
    "soft\u00adhyphen", "Ａ full width, ﬁ ligature", "A\u030a ring", "x" * 300, "</s> <unk> <s>",
    "<0x41> <0xE2>", "\u0000nul", "a\u200db", "Ünïcödé ÀÉÎÕÜ", "1234567890 3.14 1,000",
    "https://example.com/a?b=c&d=e", "\ufffd replaced", "\U0010ffff last", "\u0301 lone mark",
]


def train():
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.tsv"
        rules.write_text("".join(f"{a}\t{b}\n" for a, b in RULES))
        text = Path(folder) / "text"
        text.write_text("".join((DATA / n).read_text(encoding="utf-8")
                                for n in ("news.en", "news.de")), encoding="utf-8")
        spm.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(Path(folder) / "m"), vocab_size=900,
            character_coverage=0.98, model_type="unigram", byte_fallback=True, bos_id=-1, eos_id=0,
            unk_id=1, pad_id=-1, normalization_rule_tsv=str(rules), user_defined_symbols=["<sep>"],
            num_threads=1, minloglevel=2)
        (DATA / "tiny.spm").write_bytes((Path(folder) / "m.model").read_bytes())
    real = [line for n in ("news.en", "news.de", "flores.fr", "flores.zh")
            for line in (DATA / n).read_text(encoding="utf-8").split("\n")[:-1][:5 if n.endswith("zh") else 25]]
    (DATA / "spm.lines").write_text("".join(line + "\n" for line in LINES + real),
                                    encoding="utf-8")


def encode():
    sp = spm.SentencePieceProcessor(model_file=str(DATA / "tiny.spm"))
    with open(DATA / "spm.lines", encoding="utf-8", newline="\n") as f:
        lines = f.read().split("\n")[:-1]
    rows = []
    for line in lines:
        ids = sp.encode(line)
        rows.append({"ids": ids, "text": sp.decode(ids)})
    pieces = [sp.id_to_piece(i) for i in range(sp.get_piece_size())]
    return ('{"pieces": ' + json.dumps(pieces, ensure_ascii=False) + ',\n"lines": [\n' +
            ",\n".join(json.dumps(r, ensure_ascii=False) for r in rows) + "]}\n")


def main():
    if sys.argv[1:] == ["--encode"]:
        sys.stdout.write(encode())
        return
    train()
    (DATA / "spm.json").write_text(encode(), encoding="utf-8")


if __name__ == "__main__":
    main()
