# SPDX-License-Identifier: MIT
"""Does the C program translate as PyTorch does? Reads a model file back into our Transformer and compares.

    python3 -m dragoman_training agree models/de-en.gguf --text TEXT --lines 500 --dragoman ./dragoman

module_of() is the exporter turned round: export.transformer_tensors() names the parameters of a fresh module, and each
is filled from the tensor of that name (i8 rows times their scale). What is compared is greedy search in f32 without the
shortlist; `make test-long` does it for both models that ship. Needs the sentencepiece package.
"""
import subprocess

import numpy as np
import torch

from . import search
from .corpus import read_lines
from .export import POSITION_NAMES, transformer_tensors
from .gguf_writer import Reader
from .transformer import Transformer, TransformerConfig


def config_of(file):
    """The settings that transformer_settings() of the exporter wrote."""
    get = {k.split(".")[-1]: v for k, v in file.metadata.items() if k.startswith("dragoman.transformer.")}
    if file.metadata.get("dragoman.architecture") != "transformer" or get["start"] != "zero":
        raise ValueError("only a Transformer with a zero start vector can be read back")
    embed = file.tensors["src.embed"].shape[0]
    tied = "none" if "out.weight" in file.tensors else "target" if "tgt.embed" in file.tensors else "all"
    target = file.tensors["tgt.embed"].shape[0] if "tgt.embed" in file.tensors else embed
    clip = 10.0 if get["activation"] == "relu10" else 0.0
    return TransformerConfig(
        vocab_size=target, source_vocab_size=embed, d_model=get["d_model"], ffn_dim=get["ffn"],
        decoder_ffn_dim=get["decoder_ffn"], heads=get["heads"], encoder_layers=get["encoder_layers"],
        decoder_layers=get["decoder_layers"], norm=get["norm"], norm_eps=get["norm_eps"],
        activation="relu" if clip else get["activation"], relu_clip=clip,
        positions={v: k for k, v in POSITION_NAMES.items()}[get["positions"]], tied=tied,
        position_offset=get["position_offset"], scale_embedding=get["scale_embedding"],
        embedding_norm="enc.embed_norm.weight" in file.tensors, bias="enc.0.ffn.in.bias" in file.tensors,
        output_bias="out.bias" in file.tensors, decoder_cell="ssru" if get["decoder"] == "ssru" else "attention",
        dropout=0.0)


def module_of(file):
    """The module in evaluation mode."""
    module = Transformer(config_of(file)).eval()
    with torch.no_grad():
        for name, parameter in transformer_tensors(module):
            values = file.tensors[name].astype(np.float32)
            if name + ".scale" in file.tensors:
                values = values * file.tensors[name + ".scale"][:, None]
            parameter.copy_(torch.from_numpy(values))
    return module


def load(path):
    """Module and SentencePiece processor of a model file."""
    import sentencepiece
    file = Reader(path)
    pieces = sentencepiece.SentencePieceProcessor()
    pieces.LoadFromSerializedProto(bytes(np.asarray(file.metadata["dragoman.source.vocab.sentencepiece"], np.uint8)))
    return module_of(file), pieces


def compare(model, text, lines, program, least=0.99):
    """Prints the lines that differ; raises ValueError if fewer than `least` of them are identical."""
    sources = read_lines(text)[:lines]
    module, pieces = load(model)
    ours = [pieces.decode(ids) for ids in search.translate_ids(module.fuse_for_decoding(), pieces.encode(sources))]
    run = subprocess.run([program, "translate", "-m", model, "--precision", "f32", "--shortlist", "all", "--beam", "1"],
                         input="".join(s + "\n" for s in sources).encode(), stdout=subprocess.PIPE, check=True)
    theirs = run.stdout.decode().split("\n")[:-1]
    if len(theirs) != len(ours):
        raise ValueError(f"{len(sources)} lines in, {len(theirs)} out")
    same = sum(a == b for a, b in zip(ours, theirs))
    for a, b in zip(ours, theirs):
        if a != b:
            print(f"PyTorch: {a}\nC:       {b}")
    print(f"{model}: {same} of {len(ours)} lines identical", flush=True)
    if same < least * len(ours):
        raise ValueError(f"{model}: PyTorch and {program} disagree")
