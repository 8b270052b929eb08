# SPDX-License-Identifier: MIT
"""A recipe: one YAML file that states a whole training run. Unknown keys are errors, so that a typo is not a default.

Paths in `data` are relative to the run's work folder (--work), which holds what `prepare`, `vocab`, `pack` and
`distill` wrote. `--set a.b=value` overrides one setting.
"""
import copy

import yaml

DEFAULTS = {
    "name": "run",
    "seed": 1,
    "architecture": "transformer",          # transformer | double | cmlm | rnn (the table in train.py)
    "model": {},                            # fields of TransformerConfig, CmlmConfig or RNNConfig; sizes come from the vocabularies
    "data": {"train": "train.bin", "vocab": "vocab.spm", "source_vocab": "", "valid_source": "", "valid_target": "",
             "valid_directions": "", "valid_lines": 0},
    "warm": {"model": "", "whole": False, "positions": ""},  # what a run begins with (warm.py); Transformers only
    "batch_tokens": 32768,
    "widths": [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128],
    "optimizer": {"name": "adam", "betas": [0.9, 0.98], "eps": 1.0e-9, "decay": 0.01},
    "schedule": {"kind": "cosine", "peak": 1.0e-3, "warmup": 1000, "floor": 0.02},
    "budget": {"seconds": 0, "steps": 0},   # one of the two
    "loss": {"smoothing": 0.1, "self_norm": 0.0, "alignment": 0.0, "alignment_batches": 400,
             "balance": 0.0},               # of experts, weight of moe.py's loss
    "clip": {"gradients": 1.0, "weights": 0.0},
    "average": {"keep": 0.9, "every": 50, "after": 1000},
    "precision": "bf16",                    # bf16 (on a GPU; a CPU computes in f32) | f32 | bf16-cpu (on a CPU that has bf16)
    "compile": True,                        # both need a GPU and current PyTorch; ignored elsewhere
    "graphs": True,
    "log_every": 200,                       # steps
    "valid_every": 0,                       # seconds (or steps with a budget in steps); 0 = only at the end
    "save_every": 120,                      # seconds (or steps)
    "card": {},                             # facts for the model card
}
FREE = ("model", "card", "optimizer")      # checked by their own readers


def merge(base, update, path=""):
    for key, value in (update or {}).items():
        if key not in base:
            raise ValueError(f"recipe: unknown setting {path}{key}")
        if isinstance(base[key], dict) and key not in FREE:
            merge(base[key], value, f"{path}{key}.")
        else:
            base[key] = value
    return base


def override(recipe, text):
    """a.b=value, the value read as YAML."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set {text}: expected NAME=VALUE")
    at, parts = recipe, name.split(".")
    for i, part in enumerate(parts):
        if part not in at and not (i == 1 and parts[0] in FREE):
            raise ValueError(f"--set {text}: unknown setting {name}")
        if i == len(parts) - 1:
            at[part] = yaml.safe_load(value)
        else:
            at = at[part]


def load(path, overrides=()):
    with open(path, encoding="utf-8") as f:
        recipe = merge(copy.deepcopy(DEFAULTS), yaml.safe_load(f))
    for text in overrides:
        override(recipe, text)
    if min(recipe["budget"].values()) < 0 or bool(recipe["budget"]["seconds"]) == bool(recipe["budget"]["steps"]):
        raise ValueError("recipe: budget needs either seconds or steps")
    return recipe
