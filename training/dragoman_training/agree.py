# SPDX-License-Identifier: MIT
"""Does the C program translate as PyTorch does? Reads a model file back into our network and compares.

    python3 -m dragoman_training agree models/de-en.gguf --text TEXT --lines 500 --dragoman ./dragoman

module_of() is the exporter turned round: export's list of tensors names the parameters of a fresh module, and each is
filled from the tensor of that name (i8 rows times their scale). What is compared, in f32 and without a shortlist:
greedy search of a Transformer of one or two tokens a step; of a masked language model mask-predict with 1, 4 and 10
iterations and 5 lengths. Lines beyond a model's positions are left out. `make test-long` does it for the models that
ship. Needs the sentencepiece package.
"""
import subprocess

import numpy as np
import torch

from . import search
from .cmlm import Cmlm, CmlmConfig, mask_predict
from .corpus import read_lines
from .export import POSITION_NAMES, cmlm_tensors, transformer_tensors
from .gguf_writer import Reader
from .transformer import Transformer, TransformerConfig

ITERATIONS, LENGTHS = (1, 4, 10), 5      # of mask-predict


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


def load(path):
    """Module and SentencePiece processor of a model file."""
    import sentencepiece
    file = Reader(path)
    pieces = sentencepiece.SentencePieceProcessor()
    pieces.LoadFromSerializedProto(bytes(np.asarray(file.metadata["dragoman.source.vocab.sentencepiece"], np.uint8)))
    return module_of(file), pieces


def masked(module, ids, iterations, rows=32):
    """Mask-predict of id lists, in batches of similar length."""
    order, found = sorted(range(len(ids)), key=lambda i: len(ids[i])), {}
    for at in range(0, len(order), rows):
        batch = order[at:at + rows]
        source = search.pad_rows([ids[i] for i in batch], module.source_pad, "cpu")
        found.update(zip(batch, mask_predict(module, source, iterations, LENGTHS)))
    return [found[i] for i in range(len(ids))]


def compare(model, text, lines, program, least=0.99):
    """Prints the lines that differ; raises ValueError if fewer than `least` of them are identical."""
    module, pieces = load(model)
    room = (module.config.max_positions - 1) // 8 * 8 - 1               # for padded rows with </s> and LENGTH
    sources = [s for s in read_lines(text)[:lines] if len(pieces.encode(s)) <= room]
    ids, runs = pieces.encode(sources), []
    if isinstance(module, Cmlm):
        for count in ITERATIONS:
            runs.append((f"{model}, T = {count}", masked(module, ids, count),
                         ["--iterations", str(count), "--lengths", str(LENGTHS)]))
    else:
        runs.append((model, search.translate_ids(module.fuse_for_decoding(), ids), ["--beam", "1"]))
    for name, found, options in runs:
        run = subprocess.run([program, "translate", "-m", model, "--raw", "--precision", "f32", "--shortlist", "all", *options],
                             input="".join(s + "\n" for s in sources).encode(), stdout=subprocess.PIPE, check=True)
        ours, theirs = [pieces.decode(x) for x in found], run.stdout.decode().split("\n")[:-1]
        if len(theirs) != len(ours):
            raise ValueError(f"{len(sources)} lines in, {len(theirs)} out")
        same = sum(a == b for a, b in zip(ours, theirs))
        for a, b in zip(ours, theirs):
            if a != b:
                print(f"PyTorch: {a}\nC:       {b}")
        print(f"{name}: {same} of {len(ours)} lines identical", flush=True)
        if same < least * len(ours):
            raise ValueError(f"{name}: PyTorch and {program} disagree")
