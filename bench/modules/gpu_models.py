# SPDX-License-Identifier: MIT
"""Models and texts for bench/gpu: the same weights in our format and in CTranslate2's.

    pair(program, work, name)          {"ours": FILE, "theirs": FOLDER} of "tiny", "base", "big", or of a model file
    forced_text(work, lines)           made-up words, TOKENS subwords a line with the end symbol: (text, subwords)
    real_text(folder, text, pieces)    subwords of a text by the vocabulary of CTranslate2's folder
    subwords_of(model, text, pieces)   the same by that of a model file
    without_text(model, path)          a model file whose text work is cutting at spaces

Random models are those of bench/peers (peers_models.py; the same seed gives the same bytes): MarianMT folders which our
importer reads; what CTranslate2 gets is `dragoman export ctranslate2` of that, so both compute with the same numbers. What was
made stays in `work`.
"""
import shutil
import subprocess
import sys
from pathlib import Path

import peers_models

TOKENS = 25


def sh(*command, **kwargs):
    return subprocess.run([str(c) for c in command], check=True, text=True, stdout=subprocess.PIPE, **kwargs).stdout


def made(path, make):
    """`path`, which make(PART) writes whole or not at all."""
    part = path.with_name(path.name + ".part")
    if not path.exists():
        shutil.rmtree(part) if part.is_dir() else part.unlink(missing_ok=True)
        make(part)
        part.rename(path)
    return path


def ours(program, work, shape):
    def write(part):
        folder = work / f"{shape}.hf"
        peers_models.write_random(shape, folder)
        sh(program, "import", "huggingface", folder, "-o", part)
        shutil.rmtree(folder)
    return made(work / f"{shape}.gguf", write)


def pair(program, work, name):
    work.mkdir(parents=True, exist_ok=True)
    random = name in peers_models.SHAPES
    file = ours(program, work, name) if random else Path(name)
    # A given file may be called like a random model ("base").
    folder = made(work / (f"{name}.ct2" if random else f"given.{file.stem}.ct2"),
                  lambda part: sh(program, "export", "ctranslate2", file, "-o", part, "-q"))
    return dict(ours=file, theirs=folder)


def forced_text(work, lines):
    work.mkdir(parents=True, exist_ok=True)
    text, pieces = work / "forced.txt", work / "forced.pieces"
    words = peers_models.random_text(lines, TOKENS, 1)
    text.write_text("".join(line + "\n" for line in words), encoding="utf8")
    pieces.write_text("".join(" ".join("\u2581" + w for w in line.split()) + "\n" for line in words), encoding="utf8")
    return text, pieces


def real_text(folder, text, pieces):
    """CTranslate2 adds the end symbol."""
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    lines = text.read_text(encoding="utf8").split("\n")[:-1]
    pieces.write_text("".join(" ".join(model.encode(line, out_type=str)) + "\n" for line in lines), encoding="utf8")
    return pieces


def sentencepiece_of(model):
    """The vocabulary inside a model file: {spelling: id} and its SentencePiece model."""
    import peers_gguf
    file = peers_gguf.ModelFile(model)
    return peers_gguf.vocabulary(file), file.keys["dragoman.source.vocab.sentencepiece"]


def subwords_of(model, text, pieces):
    """The text in the model's own subwords, those that it does not have left as SentencePiece spells them."""
    import sentencepiece
    split = sentencepiece.SentencePieceProcessor(model_proto=bytes(sentencepiece_of(model)[1]))
    lines = text.read_text(encoding="utf8").split("\n")[:-1]
    found = split.encode(lines, out_type=str, num_threads=2)
    pieces.write_text("".join(" ".join(line) + "\n" for line in found), encoding="utf8")


def without_text(model, path):
    """The same weights with a vocabulary of plain words, its subwords: text work is cutting at spaces."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training"))
    from dragoman_training.gguf_writer import Reader, Writer
    file, out, spellings = Reader(str(model)), Writer(), sentencepiece_of(model)[0]
    size = file.metadata["dragoman.source.vocab.size"]
    listed = [f"<{i}>" for i in range(size)]
    for spelling, i in spellings.items():
        listed[i] = spelling
    for key, value in file.metadata.items():
        if key.startswith("dragoman.source.vocab.") or key in ("general.alignment", "dragoman.card"):
            continue
        write_value(out, key, value)
    out.string("dragoman.source.vocab.kind", "words")
    out.strings("dragoman.source.vocab.words", listed)
    out.string("dragoman.source.vocab.tokenizer", "none")
    out.u32("dragoman.source.vocab.size", size)
    for name, array in file.tensors.items():
        out.tensor(name, array)
    out.save(str(path))


def write_value(out, key, value):
    """A value of metadata by its Python type; ids are signed."""
    signed = key.endswith((".eos", ".unk", ".pad", ".start", ".bos", ".eod", ".mask"))
    if isinstance(value, bool):
        out.bool(key, value)
    elif isinstance(value, str):
        out.string(key, value)
    elif isinstance(value, int):
        (out.i32 if signed else out.u32)(key, value)
    elif isinstance(value, float):
        out.f32(key, value)
    elif len(value) and isinstance(value[0], str):
        out.strings(key, value)
    else:
        out.i32s(key, value)


def words(pieces, text):
    """Subwords back to text. SentencePiece's: a space is U+2581."""
    lines = pieces.read_text(encoding="utf8").split("\n")[:-1]
    text.write_text("".join(line.replace(" ", "").replace("\u2581", " ").strip() + "\n" for line in lines), encoding="utf8")
    return text
