# SPDX-License-Identifier: MIT
"""Files that training writes: finished models and resumable states.

model.pt   {"config": TransformerConfig or RNNConfig as a dict, "state": {name: tensor, f16 or f32},
            "vocab": SentencePiece bytes, "info": facts for the model card}; what the exporter reads.
state.pt   everything a killed run needs to go on: weights, optimiser, average, counters, random states.
Both are written beside and renamed, so that a kill leaves the old file whole.
"""
import os

import torch

from .cmlm import Cmlm, CmlmConfig
from .rnn import RNN, RNNConfig
from .transformer import Transformer, TransformerConfig


def write(path, value):
    torch.save(value, path + ".tmp")
    os.replace(path + ".tmp", path)


def read(path):
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except TypeError:                                       # PyTorch before 2.0 has no such argument
        return torch.load(path, map_location="cpu")


def save_model(path, model, vocab=b"", info=None, dtype=torch.float16):
    state = {k: v.detach().to("cpu", dtype).clone() for k, v in model.state_dict().items()}
    write(path, {"config": model.config.to_dict(), "state": state, "vocab": vocab, "info": info or {}})


def family(settings):
    """Module and configuration class of a model.pt, known by its settings."""
    if "encoder_cell" in settings:
        return RNN, RNNConfig
    return (Cmlm, CmlmConfig) if "lengths" in settings else (Transformer, TransformerConfig)


def load_model(path, dropout=0.0):
    held = read(path)
    kind, config = family(held["config"])
    model = kind(config.from_dict({**held["config"], "dropout": dropout}))
    model.load_state_dict({k: v.float() for k, v in held["state"].items()})
    return model.eval()


def average(paths, out):
    """Mean of several model.pt of one configuration."""
    held = [read(p) for p in paths]
    if any(h["config"] != held[0]["config"] for h in held):
        raise ValueError("checkpoints of different configurations cannot be averaged")
    state = {k: sum(h["state"][k].float() for h in held) / len(held) for k in held[0]["state"]}
    write(out, {**held[0], "state": state})
