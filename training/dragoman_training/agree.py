# SPDX-License-Identifier: MIT
"""Does the C program translate as PyTorch does? Reads a model file back into our network (model_file.py) and compares.

    python3 -m dragoman_training agree models/de-en.gguf --text TEXT --lines 500 --dragoman ./dragoman

What is compared, in f32 and without a shortlist: greedy search of a Transformer of one or two tokens a step; of a masked
language model mask-predict with 1, 4 and 10 iterations and 5 lengths. Lines beyond a model's positions are left out.
`make test-long` does it for the models that ship. Needs the sentencepiece package.
"""
import subprocess

from . import model_file, search
from .cmlm import Cmlm, mask_predict
from .corpus import read_lines

ITERATIONS, LENGTHS = (1, 4, 10), 5      # of mask-predict


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
    module, pieces = model_file.load(model)
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
