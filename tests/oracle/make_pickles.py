# SPDX-License-Identifier: MIT
"""make_pickles.py FOLDER: small files of torch.save for tests/unit/test_import_pickle.c.

zip.pt and old.pt hold the same dictionary in torch's two layouts: every type, a transposed matrix, parts of a shared
storage, a parameter, settings as argparse.Namespace. omega.pt has its settings as omegaconf containers (written with
classes of the same names where the package is not there). Needs torch.
"""
import argparse
import collections
import os
import sys
import types

import torch


def numbers(*shape):
    return torch.arange(1, 1 + torch.tensor(shape).prod().item(), dtype=torch.float64).view(*shape) / 4


def weights():
    whole = numbers(6, 2).float()
    return collections.OrderedDict([
        ("f32", numbers(2, 3).float()), ("f16", numbers(2, 3).half()), ("bf16", numbers(2, 3).bfloat16()),
        ("f64", numbers(2, 3)), ("i64", torch.tensor([1, -2])), ("i8", torch.tensor([[3, -4]], dtype=torch.int8)),
        ("transposed", numbers(2, 3).float().t()), ("rows", whole[2:4]), ("columns", whole[:, 1]), ("whole", whole),
        ("cube", numbers(2, 1, 3).float()), ("scalar", torch.tensor(7.0)),
        ("parameter", torch.nn.Parameter(numbers(3).float())), ("repeated", numbers(2).float().expand(3, 2))])


def namespace():
    return argparse.Namespace(arch="transformer", layers=6, share=True, rate=0.5, none=None, text="ä")


def omega():
    """The shapes of omegaconf's pickles, with modules of our own that have its names."""
    nodes, dictconfig = types.ModuleType("omegaconf.nodes"), types.ModuleType("omegaconf.dictconfig")
    sys.modules.setdefault("omegaconf", types.ModuleType("omegaconf"))
    sys.modules["omegaconf.nodes"], sys.modules["omegaconf.dictconfig"] = nodes, dictconfig
    nodes.AnyNode = type("AnyNode", (), {"__module__": "omegaconf.nodes"})
    dictconfig.DictConfig = type("DictConfig", (), {"__module__": "omegaconf.dictconfig"})
    content = {}
    for key, value in {"arch": "transformer", "layers": 6, "share": True}.items():
        content[key] = nodes.AnyNode()
        content[key].__dict__.update({"_val": value, "_parent": None})
    config = dictconfig.DictConfig()
    config.__dict__.update({"_content": content, "_parent": None})
    return config


def main(folder):
    os.makedirs(folder, exist_ok=True)
    everything = {"args": namespace(), "model": weights(), "list": [1, 2.5, "x", None, True, (1, 2), 1 << 70]}
    torch.save(everything, os.path.join(folder, "zip.pt"))
    torch.save(everything, os.path.join(folder, "old.pt"), _use_new_zipfile_serialization=False)
    torch.save({"cfg": omega(), "model": collections.OrderedDict(w=numbers(2).float())},
               os.path.join(folder, "omega.pt"))


if __name__ == "__main__":
    main(sys.argv[1])
