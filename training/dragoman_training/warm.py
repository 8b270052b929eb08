# SPDX-License-Identifier: MIT
"""Where a run begins when not from random numbers alone: another model's encoder, positions that mean something.

A recipe's `warm` names a teacher (`model`: a model.pt, a model file, or a folder as `distill` takes it) whose source side is
copied: encoder layers, word vectors (the rows that both have: the pairs' and MASK's own rows stay random) and the logits'
biases. The decoder stays random. So models whose decoders differ (one token a step, two, all at once) begin equal, and
their minutes go into what is compared. With `whole: true` all weights are copied: a model that ships goes on learning, of
more text or from a better teacher.

`positions: sinusoidal` lets learned positions begin as the fixed ones. As random vectors they are 50 times smaller than
scaled word vectors, and a masked language model, whose inputs are mostly one word, MASK, then cannot tell its positions
apart for thousands of steps. Behind a masked model's LENGTH, at row 0, the source's words begin at row 1.
"""
import math
import os
from dataclasses import replace

import torch

from . import checkpoint, distill, model_file
from .gguf_writer import Reader
from .transformer import Transformer, position_table

SAME = ("d_model", "ffn_dim", "heads", "encoder_layers", "norm", "norm_eps", "activation", "scale_embedding", "bias",
        "embedding_norm")


def take_positions(model):
    config = model.config
    if config.positions != "learned":
        raise ValueError(f"warm.positions: the model's positions are {config.positions}, not learned")
    rows = position_table(replace(config, positions="sinusoidal", position_offset=0,
                                  max_positions=config.max_positions + config.position_offset))
    first = 1 if hasattr(model, "length_input") else 0
    model.source_positions[first:] = rows[:rows.size(0) - first]
    model.target_positions.copy_(rows)


def take_source(model, giver):
    for name in SAME:
        ours, theirs = getattr(model.config, name), getattr(giver.config, name)
        if ours != theirs:
            raise ValueError(f"warm.model: its {name} is {theirs}, the recipe's {ours}")
    if model.config.tied != "all" or giver.config.tied != "all":
        raise ValueError("warm.model: both models must have tied: all")
    rows = giver.config.vocab_size
    if rows > model.config.vocab_size:
        raise ValueError(f"warm.model: it has {rows} words, the recipe's model {model.config.vocab_size}")
    model.encoder.load_state_dict(giver.encoder.state_dict())
    if model.config.norm == "pre":
        model.encoder_norm.load_state_dict(giver.encoder_norm.state_dict())
    model.embedding[:rows] = giver.embedding
    if model.config.output_bias and giver.config.output_bias:
        model.output_bias[:rows] = giver.output_bias


TRAINING_ONLY = {"dropout", "alignment_layer", "max_positions"}


def take_whole(model, giver):
    ours, theirs = model.config.to_dict(), giver.config.to_dict()
    for name in ours.keys() - TRAINING_ONLY:
        a, b = ours[name], theirs.get(name)
        if not (math.isclose(a, b, rel_tol=1e-6) if isinstance(a, float) else a == b):     # a model file has f32
            raise ValueError(f"warm.model: its {name} is {b}, the recipe's {a}")
    model.load_state_dict(giver.state_dict())


def read(path):
    if os.path.isdir(path):
        return distill.load_teacher(path)[0]
    return model_file.module_of(Reader(path)) if path.endswith(".gguf") else checkpoint.load_model(path)


@torch.no_grad()
def start(model, settings, path):
    """settings: a recipe's `warm`; path(name): a file of the work folder."""
    if not isinstance(model, Transformer):
        raise ValueError("warm: only Transformers begin with another model's weights")
    if settings["positions"] not in ("", "sinusoidal"):
        raise ValueError(f"warm.positions: {settings['positions']!r} is not sinusoidal")
    if settings["positions"]:
        take_positions(model)
    if settings["model"]:
        take = take_whole if settings.get("whole") else take_source
        take(model, read(path(settings["model"])))
