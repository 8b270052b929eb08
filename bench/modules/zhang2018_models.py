# SPDX-License-Identifier: MIT
"""A small trained RNNsearch at the paper's sizes, for the speeds of bench/zhang2018 where no large one is at hand.

    zhang2018_models.py models/research/rnnsearch-small.gguf OUT.gguf [--width 512] [--words 30000]

Every layer is padded with zeros to --width units (each direction of the encoder, too) and the vocabulary with words that are
never chosen. Padded units stay 0 and padded words have a bias of -10,000, so the network translates as the small one does,
with its hypotheses and its merging rate, and costs what the large one costs: products do not look for zeros. Needs numpy.
"""
import argparse
import sys
from pathlib import Path

import entry

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training"))
try:
    import numpy as np
    from dragoman_training.gguf_writer import Reader, Writer
except ModuleNotFoundError:                             # write() says so
    np = Reader = Writer = None

SIZES = ("embed", "encoder_hidden", "decoder_hidden", "attention", "readout_size")
NEVER = -1e4


def places(width, meta):
    """{size: (places of the old units among the new ones, new number)}"""
    old = {name: meta[f"dragoman.rnn.{name}"] for name in SIZES}
    plain = {name: np.arange(count) for name, count in old.items()}
    both = np.concatenate([plain["encoder_hidden"], width + plain["encoder_hidden"]])
    gates = lambda name: np.concatenate([k * width + plain[name] for k in range(3)])
    return {"E": (plain["embed"], width), "D": (both, 2 * width), "H": (plain["decoder_hidden"], width),
            "A": (plain["attention"], width), "R": (plain["readout_size"], width), "e": (plain["encoder_hidden"], width),
            "3e": (gates("encoder_hidden"), 3 * width), "3H": (gates("decoder_hidden"), 3 * width)}


SHAPES = {"enc.0.fwd.w": ("3e", "E"), "enc.0.fwd.h": ("3e", "e"), "enc.0.bwd.w": ("3e", "E"), "enc.0.bwd.h": ("3e", "e"),
          "dec.init": ("H", "D"), "dec.att.query": ("A", "H"), "dec.att.key": ("A", "D"), "dec.gru1.x": ("3H", "E"),
          "dec.gru1.h": ("3H", "H"), "dec.gru2.x": ("3H", "D"), "dec.gru2.h": ("3H", "H"), "dec.readout.x": ("R", "E"),
          "dec.readout.h": ("R", "H"), "dec.readout.c": ("R", "D")}


def padded(array, where, fill=0):
    """The array with its rows and columns at their places in a larger one."""
    found = np.full([count for _, count in where], fill, array.dtype)
    found[np.ix_(*(at for at, _ in where))] = array
    return found


def write(source, path, width, words):
    entry.need("numpy")
    file = Reader(source)
    meta, at = file.metadata, places(width, file.metadata)
    old = meta["dragoman.source.vocab.size"]
    at["V"] = (np.arange(old), words)
    out = Writer()
    for key, value in meta.items():
        if key in ("general.alignment", "dragoman.card"):
            continue
        if key == "dragoman.source.vocab.size":
            value = words
        elif key.startswith("dragoman.rnn.") and key.rsplit(".", 1)[1] in SIZES:
            value = width
        elif key == "general.name":
            value = f"{value}, padded with zeros to {width}"
        if isinstance(value, bool):
            out.bool(key, value)
        elif isinstance(value, str):
            out.string(key, value)
        elif isinstance(value, int):
            (out.i32 if key.endswith((".eos", ".unk")) else out.u32)(key, value)
        elif isinstance(value[0], str):
            out.strings(key, value)
        elif key.endswith("sentencepiece"):
            out.u8s(key, bytes(value))
        else:
            out.i32s(key, value)
    out.strings("dragoman.source.vocab.extra", [f"<never{i}>" for i in range(words - old)])
    for name, array in file.tensors.items():
        base = name.removesuffix(".scale").removesuffix(".weight").removesuffix(".bias")
        rows, columns = {"src.embed": ("V", "E"), "out": ("V", "R"), "dec.att.v": ("A", None)}.get(base) or SHAPES[base]
        where = [at[rows]] if array.ndim == 1 else [at[rows], at[columns]]
        out.tensor(name, padded(array, where, NEVER if name == "out.bias" else 1 if name.endswith(".scale") else 0))
    out.save(str(path))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--words", type=int, default=30000)
    args = parser.parse_args()
    write(args.source, args.out, args.width, args.words)
