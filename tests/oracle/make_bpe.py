#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Byte-pair encodings of other programs: subword-nmt, OpenNMT, and tokenizers of Hugging Face (tokenizer.json).

    pip install subword-nmt pyonmttok tokenizers sentencepiece protobuf
    python3 tests/oracle/make_bpe.py --train > tests/data/text/bpe.json      learns tokenizers anew
    python3 tests/oracle/make_bpe.py > bpe.json      takes those of tests/data/text/bpe.json
    python3 tests/oracle/make_bpe.py FILE ... > more.json    the same on the lines of files
    build/tests/test_format_tokenizer more.json

Codes and tokenizers are learnt on news.en and news.de of tests/data/text. "lines" are the texts; every case of
"subword_nmt" holds codes, a list of tokens and the segmented lines (those of OpenNMT also the text again); every case
of "tokenizers" holds the file, and for every line its ids and the text that the ids decode to.
"""
import collections
import io
import json
import sys
import tempfile
from pathlib import Path

import pyonmttok
import sentencepiece as spm
from subword_nmt.apply_bpe import BPE, read_vocabulary
from subword_nmt.learn_bpe import learn_bpe
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

DATA = Path(__file__).resolve().parent.parent / "data" / "text"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
LINES = ["Hello world", "  two  spaces  ", "naïve café — 5 €", "漢字とかな", "emoji 😀 👩‍👩‍👧 done", "“quoted” it’s…", "x" * 60,
         "aaaa ababab", "I'm we'll they've don't IT'S", "tab\there nbsp\u00a0there", "Ａ full width ﬁ", "e\u0301 A\u030a"]


def read(name):
    return (DATA / name).read_text(encoding="utf-8").split("\n")[:-1]


TRAINING = read("news.en") + read("news.de")


def subword_cases(lines):
    codes = io.StringIO()
    learn_bpe(io.StringIO("\n".join(TRAINING) + "\n"), codes, 500)
    codes = codes.getvalue()
    old = "#version: 0.1\n" + codes.split("\n", 1)[1]
    text = [" ".join(line.split()) for line in lines]
    plain = [BPE(io.StringIO(codes)).process_line(line) for line in TRAINING]
    counts = collections.Counter(t for line in plain for t in line.split(" ") if t)
    vocabulary = io.StringIO("".join(f"{t} {n}\n" for t, n in counts.most_common()))
    kept = read_vocabulary(vocabulary, 5)
    glossary = ["Minister", "the", "Euro"]
    fast = "".join(f"{line} {1000 - i}\n" for i, line in enumerate(codes.split("\n")[1:-1]))
    # codes, those for subword-nmt, vocabulary, glossary
    for name, ours, theirs, known, guarded in (
            ("0.2", codes, codes, None, None), ("0.1", old, old, None, None), ("fastBPE", fast, codes, None, None),
            ("vocabulary", codes, codes, kept, None), ("glossary", codes, codes, None, glossary)):
        bpe = BPE(io.StringIO(theirs), vocab=known, glossaries=guarded)
        made = [bpe.process_line(line) for line in text]
        tokens = sorted(kept) if known else sorted({t for line in made for t in line.split(" ") if t})
        yield {"name": name, "codes": ours, "restricted": bool(known), "protect": guarded or [],
               "tokens": SPECIAL + tokens, "lines": made}
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(codes)
        file.flush()
        for mode in ("space", "conservative", "aggressive"):
            for style in ("joiner", "spacer"):
                t = pyonmttok.Tokenizer(mode, bpe_model_path=file.name, **{style + "_annotate": True})
                made = [t(line) for line in text]
                yield {"name": f"OpenNMT {mode} {style}", "codes": codes, "restricted": False, "protect": [],
                       "style": style, "mode": mode, "text": [t.detokenize(x) for x in made],
                       "tokens": SPECIAL + sorted({x for line in made for x in line}),
                       "lines": [" ".join(x) for x in made]}


def charsmap():
    proto = spm.SentencePieceProcessor(model_file=str(DATA / "tiny.spm")).serialized_model_proto()
    from sentencepiece import sentencepiece_model_pb2
    return sentencepiece_model_pb2.ModelProto.FromString(proto).normalizer_spec.precompiled_charsmap


def without_bytes(text):
    """Bytes are tokens, not special ones."""
    file = json.loads(text)
    file["added_tokens"] = [t for t in file["added_tokens"] if not t["content"].startswith("<0x")]
    return json.dumps(file)


def tokenizers():
    bpe = {"vocab_size": 700, "special_tokens": SPECIAL, "show_progress": False}
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(TRAINING, trainers.BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **bpe))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    yield "byte-level", t
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Sequence([decoders.Metaspace(), decoders.ByteFallback(), decoders.Fuse()])
    t.train_from_iterator(TRAINING, trainers.BpeTrainer(vocab_size=1000, limit_alphabet=60, show_progress=False,
                          special_tokens=SPECIAL + [f"<0x{i:02X}>" for i in range(256)]))
    yield "metaspace", t.from_str(without_bytes(t.to_str()))
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    t.decoder = decoders.Metaspace()
    t.train_from_iterator(TRAINING, trainers.BpeTrainer(limit_alphabet=60, **bpe))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    yield "charsmap", t
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.train_from_iterator(TRAINING[:40], trainers.BpeTrainer(**bpe))
    yield "whole text", t
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.Strip(),
                                         normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    t.train_from_iterator(TRAINING, trainers.UnigramTrainer(vocab_size=500, special_tokens=SPECIAL, unk_token="<unk>",
                                                            show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    yield "unigram", t


def tokenizer_cases(lines, stored):
    """stored: tokenizers of an earlier run; training them again need not give the same ones."""
    for name, file in ((c["name"], c["file"]) for c in stored) if stored else tokenizers():
        file = file if stored else json.loads(file.to_str())
        t = Tokenizer.from_str(json.dumps(file))
        ids = [t.encode(line, add_special_tokens=False).ids for line in lines]
        around = t.encode("", add_special_tokens=True).ids
        yield {"name": name, "file": file, "around": around, "ids": ids,
               "text": [t.decode(i, skip_special_tokens=True) for i in ids]}


def main():
    train = sys.argv[1:] == ["--train"]
    stored = [] if train else json.loads((DATA / "bpe.json").read_text(encoding="utf-8"))["tokenizers"]
    if sys.argv[1:] and not train:
        lines = [line for path in sys.argv[1:] for line in Path(path).read_text(encoding="utf-8").split("\n")[:-1]]
    else:
        lines = LINES + read("news.en")[:12] + read("news.de")[:8] + read("flores.fr")[:4] + read("flores.zh")[:2]

    def dump(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    sys.stdout.write('{"lines":' + dump(lines) + ',\n"subword_nmt":[\n' +
                     ",\n".join(dump(c) for c in subword_cases(lines)) + '],\n"tokenizers":[\n' +
                     ",\n".join(dump(c) for c in tokenizer_cases(lines, stored)) + "]}\n")


if __name__ == "__main__":
    main()
