# SPDX-License-Identifier: MIT
"""Models with random weights for the speeds of bench/imamura2020.

    imamura2020_models.py KIND SHAPE VOCABULARY OUT.gguf [DECODER] [ORDER]
        KIND: single, double, cmlm; SHAPE: nano (for rehearsals), tiny, base, big, big-pre (norms before layers, as the paper's);
        DECODER: self_attention (default), ssru, aan; ORDER: of double: bidirectional (default), l2r, r2l; of single: l2r, r2l

All kinds of one shape and decoder have the same matrices: a Transformer with sinusoids (single) or learned positions (double,
cmlm) and one table for source, target and output, stored as i8. The vocabulary is made-up words of one token each, so texts
and forced lengths (--min-length = --max-length) are exact. Double and cmlm add their EOD, BOS or MASK to it. The end
symbol has a bias that keeps it out until it is forced. Needs numpy; the same arguments give the same bytes.
"""
import random
import sys
from pathlib import Path

import entry

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training"))
try:
    import numpy as np
    from dragoman_training.gguf_writer import Writer
except ModuleNotFoundError:                             # write() says so
    np = Writer = None

# width, inner width, encoder layers, decoder layers, heads
SHAPES = {"nano": (64, 128, 1, 1, 2), "tiny": (256, 1536, 6, 2, 8), "base": (512, 2048, 6, 6, 8), "big": (1024, 4096, 6, 6, 16),
          "big-pre": (1024, 4096, 6, 6, 16)}
DECODERS = ("self_attention", "ssru", "aan")
ORDERS = {"single": ("l2r", "r2l"), "double": ("bidirectional", "l2r", "r2l"), "cmlm": ("",)}
EXTRA = {"single": [], "double": ["<eod>", "<s>"], "cmlm": ["<mask>"]}
POSITIONS = 320


def word(i):
    return f"w{i}"


def random_text(lines, length, vocabulary, seed):
    """Lines of `length` tokens with the end symbol."""
    r = random.Random(seed)
    return [" ".join(word(r.randrange(2, vocabulary)) for _ in range(length - 1)) for _ in range(lines)]


def metadata(out, kind, shape, words, decoder_cell, order):
    width, inner, encoder, decoder, heads = SHAPES[shape]
    size = len(words)
    out.string("general.architecture", "dragoman")
    out.string("general.name", f"random {kind} {shape}")
    out.u32("dragoman.format_version", 1)
    out.string("dragoman.architecture", {"single": "transformer"}.get(kind, kind))
    out.string("dragoman.source.vocab.kind", "words")
    out.strings("dragoman.source.vocab.words", words)
    out.string("dragoman.source.vocab.tokenizer", "none")
    out.u32("dragoman.source.vocab.size", size)
    out.i32("dragoman.source.eos", 0)
    out.i32("dragoman.source.unk", 1)
    if kind == "double":
        out.i32("dragoman.target.eod", size - 2)
        out.i32("dragoman.target.bos", size - 1)
    if kind == "cmlm":
        out.i32("dragoman.target.mask", size - 1)
    elif kind == "double" or order != "l2r":
        out.string("dragoman.target.order", order)
    if kind != "single":
        out.i32s("dragoman.target.never", [0, size - 1])
    for name, value in (("d_model", width), ("heads", heads), ("ffn", inner), ("encoder_layers", encoder),
                        ("decoder_layers", decoder)):
        out.u32(f"dragoman.transformer.{name}", value)
    out.string("dragoman.transformer.norm", "pre" if shape.endswith("-pre") else "post")
    if decoder_cell != "self_attention":
        out.string("dragoman.transformer.decoder", decoder_cell)
    out.string("dragoman.transformer.activation", "relu")
    out.string("dragoman.transformer.positions", "sinusoid" if kind == "single" else "learned")


class Weights:
    def __init__(self, out, seed):
        self.out, self.rng = out, np.random.default_rng(seed)

    def matrix(self, name, rows, columns, bias=True, name_weight=False):
        scale = np.full(rows, 3.0 / 127 / np.sqrt(columns), np.float32)
        q = np.clip(np.rint(self.rng.standard_normal((rows, columns), np.float32) * (127 / 3)), -127, 127)
        full = f"{name}.weight" if bias or name_weight else name
        self.out.tensor(full, q.astype(np.int8))
        self.out.tensor(f"{full}.scale", scale)
        if bias:
            self.out.tensor(f"{name}.bias", np.zeros(rows, np.float32))

    def norm(self, name, width):
        self.out.tensor(f"{name}.weight", np.ones(width, np.float32))
        self.out.tensor(f"{name}.bias", np.zeros(width, np.float32))

    def attention(self, name, width):
        for part in "qkvo":
            self.matrix(f"{name}.{part}", width, width)
        self.norm(f"{name}.norm", width)


def self_part(w, name, cell, width, inner):
    """What a decoder layer remembers earlier tokens with."""
    if cell == "self_attention":
        w.attention(f"{name}.self", width)
    elif cell == "ssru":
        w.matrix(f"{name}.rnn.w", width, width, bias=False, name_weight=True)
        w.matrix(f"{name}.rnn.f", width, width)
        w.norm(f"{name}.rnn.norm", width)
    else:
        w.matrix(f"{name}.aan.in", inner, width)
        w.matrix(f"{name}.aan.out", width, inner)
        w.matrix(f"{name}.aan.gate", 2 * width, 2 * width)
        w.norm(f"{name}.aan.norm", width)


def tensors(out, kind, shape, size, decoder_cell):
    width, inner, encoder, decoder, _ = SHAPES[shape]
    w = Weights(out, 5)
    w.matrix("src.embed", size, width, bias=False)
    bias = np.zeros(size, np.float32)
    bias[size - 2 if kind == "double" else 0] = -100.0
    out.tensor("out.bias", bias)
    if kind != "single":
        out.tensor("enc.pos", 0.02 * w.rng.standard_normal((POSITIONS, width), np.float32))
    for side, layers in (("enc", encoder), ("dec", decoder)):
        for i in range(layers):
            self_part(w, f"{side}.{i}", decoder_cell if side == "dec" else "self_attention", width, inner)
            if side == "dec":
                w.attention(f"{side}.{i}.cross", width)
            w.matrix(f"{side}.{i}.ffn.in", inner, width)
            w.matrix(f"{side}.{i}.ffn.out", width, inner)
            w.norm(f"{side}.{i}.ffn.norm", width)
        if shape.endswith("-pre"):
            w.norm(f"{side}.norm", width)
    if kind == "cmlm":
        out.tensor("enc.length.input", 0.1 * w.rng.standard_normal(width, np.float32))
        w.matrix("enc.length", 256, width, bias=False, name_weight=True)
        # The lengths next to 25 are the most probable ones: 25, 24, 26, 23, ...
        out.tensor("enc.length.bias", -100.0 * np.abs(np.arange(256) - 24.1).astype(np.float32))


def write(kind, shape, vocabulary, path, decoder_cell="self_attention", order=None):
    entry.need("numpy")
    words = ["</s>", "<unk>", *(word(i) for i in range(2, vocabulary)), *EXTRA[kind]]
    out = Writer()
    metadata(out, kind, shape, words, decoder_cell, order or ORDERS[kind][0])
    tensors(out, kind, shape, len(words), decoder_cell)
    out.save(str(path))


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    if not 4 <= len(given) <= 6 or given[0] not in EXTRA or given[1] not in SHAPES or not (
            given.get(4, DECODERS[0]) in DECODERS and given.get(5, ORDERS[given[0]][0]) in ORDERS[given[0]]):
        sys.exit(__doc__)
    write(given[0], given[1], int(given[2]), given[3], given.get(4, DECODERS[0]), given.get(5))
