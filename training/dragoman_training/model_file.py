# SPDX-License-Identifier: MIT
"""A model file read back into our network: to compare programs with it (agree.py), to go on training from it (warm.py).

module_of() is the exporter turned round: export's list of tensors names the parameters of a fresh module, and each is
filled from the tensor of that name (i8 rows times their scale). `python3 -m dragoman_training.model_file MODEL VOCAB` writes the
SentencePiece model of a file, with which text for such a run is packed. load() needs the sentencepiece package.
"""
import sys

import numpy as np
import torch

from .cmlm import Cmlm, CmlmConfig
from .export import POSITION_NAMES, cmlm_tensors, transformer_tensors
from .gguf_writer import Reader
from .transformer import Transformer, TransformerConfig


def config_of(file):
    """The settings that transformer_settings() of the exporter wrote."""
    get = {k.split(".")[-1]: v for k, v in file.metadata.items() if k.startswith("dragoman.transformer.")}
    family = file.metadata.get("dragoman.architecture")
    if family not in ("transformer", "double", "cmlm") or get["start"] != "zero":
        raise ValueError("only a Transformer with a zero start vector can be read back")
    embed = file.tensors["src.embed"].shape[0]
    tied = "none" if "out.weight" in file.tensors else "target" if "tgt.embed" in file.tensors else "all"
    target = file.tensors["tgt.embed"].shape[0] if "tgt.embed" in file.tensors else embed
    clip = 10.0 if get["activation"] == "relu10" else 0.0
    more = {"order": file.metadata.get("dragoman.target.order", "l2r"),
            "tokens_per_step": 2 if family == "double" else 1}
    if "enc.pos" in file.tensors:
        more["max_positions"] = file.tensors["enc.pos"].shape[0] - get["position_offset"]
    if family == "cmlm":
        more["lengths"] = file.tensors["enc.length.weight"].shape[0]
    return (CmlmConfig if family == "cmlm" else TransformerConfig)(
        vocab_size=target, source_vocab_size=embed, d_model=get["d_model"], ffn_dim=get["ffn"],
        decoder_ffn_dim=get["decoder_ffn"], heads=get["heads"], encoder_layers=get["encoder_layers"],
        decoder_layers=get["decoder_layers"], norm=get["norm"], norm_eps=get["norm_eps"],
        activation="relu" if clip else get["activation"], relu_clip=clip,
        positions={v: k for k, v in POSITION_NAMES.items()}[get["positions"]], tied=tied,
        position_offset=get["position_offset"], scale_embedding=get["scale_embedding"],
        embedding_norm="enc.embed_norm.weight" in file.tensors, bias="enc.0.ffn.in.bias" in file.tensors,
        output_bias="out.bias" in file.tensors, decoder_cell="ssru" if get["decoder"] == "ssru" else "attention",
        dropout=0.0, **more)


def module_of(file):
    """The module in evaluation mode."""
    config = config_of(file)
    masked = isinstance(config, CmlmConfig)
    module = (Cmlm if masked else Transformer)(config).eval()
    with torch.no_grad():
        for name, parameter in (cmlm_tensors if masked else transformer_tensors)(module):
            values = file.tensors[name if name in file.tensors or name != "dec.pos" else "enc.pos"].astype(np.float32)
            if name + ".scale" in file.tensors:
                values = values * file.tensors[name + ".scale"][:, None]
            parameter.copy_(torch.from_numpy(values))
    return module


def vocabulary_of(file):
    """The source's SentencePiece model, serialised."""
    if "dragoman.source.vocab.sentencepiece" not in file.metadata:
        raise ValueError("a model without a SentencePiece vocabulary cannot be read back")
    return bytes(np.asarray(file.metadata["dragoman.source.vocab.sentencepiece"], np.uint8))


def load(path):
    """Module and SentencePiece processor of a model file."""
    import sentencepiece
    file = Reader(path)
    pieces = sentencepiece.SentencePieceProcessor()
    pieces.LoadFromSerializedProto(vocabulary_of(file))
    return module_of(file), pieces


def main():
    model, out = sys.argv[1:]
    with open(out, "wb") as f:
        f.write(vocabulary_of(Reader(model)))


if __name__ == "__main__":
    main()
