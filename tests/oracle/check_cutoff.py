#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_cutoff.py TEXT PROGRAM...: imported folders that say early_stopping or force no end, against transformers' own search.

Random mBART, mBART-50 and T5 folders (make_imports.py, make_t5.py) whose translations often reach the maximum length, with
and without early_stopping and forced_eos_token_id: each PROGRAM imports them and translates 200 lines of TEXT at beam
6. Prints how many lines are the same; fails below 99 %. Needs torch, transformers and sentencepiece (PyPI).
"""
import os
import subprocess
import sys
import tempfile

import torch

import make_imports
import make_t5


def compare(case, theirs, programs, translate):
    """How many programs failed; `translate` gives a program's lines."""
    bad = 0
    for program in programs:
        same = sum(a == b for a, b in zip(theirs, translate(program)))
        print(f"{case:56s} {program}: {same} of {len(theirs)} lines the same", flush=True)
        bad += same < 0.99 * len(theirs)
    return bad


def mbarts(programs, lines, root):
    bad = 0
    for kind, fifty, more_ends in (("mbart", False, 2), ("mbart-50", True, 2), ("mbart-50 of few ends", True, 0)):
        for early in (False, True):
            for forced in (2, None):
                case = f"{kind}, early_stopping={early}, forced_eos={forced}"
                make_imports.mbart(root, case, lines, 11, fifty, early, forced, more_ends, beams=(6,))

                def translate(program):
                    file = os.path.join(root, "model.gguf")
                    subprocess.run([program, "import", "huggingface", os.path.join(root, case), "-o", file],
                                   check=True, capture_output=True)
                    return subprocess.run([program, "translate", "-m", file, "-s", "en", "-t", "de", "--raw", "--precision",
                                           "f32", "--beam", "6", "--no-protect"], input="\n".join(lines) + "\n",
                                          capture_output=True, text=True, check=True).stdout.split("\n")

                with open(os.path.join(root, case + ".beam6"), encoding="utf8") as f:
                    theirs = [line.rstrip("\n").split("\t")[1] for line in f]
                bad += compare(case, theirs, programs, translate)
    return bad


def t5s(programs, lines, root):
    bad, models = 0, [make_t5.train_pieces(lines, madlad) for madlad in (False, True)]
    for name in make_t5.MODELS:
        for early, forced in ((True, True), (False, False), (True, False)):      # make_t5.py --parity has the fourth
            case = f"{name}, early_stopping={early}, forced_eos={forced}"
            folder = os.path.join(root, case)
            model, pieces, generation = make_t5.write_folder(folder, name, models, torch.Generator().manual_seed(1),
                                                             early_stopping=early, forced=forced)

            def translate(program):
                if os.path.exists(os.path.join(folder, "model.gguf")):
                    os.remove(os.path.join(folder, "model.gguf"))                # another program's
                return [text for text, _ in make_t5.translate(program, folder, name, lines, 6)]

            theirs = make_t5.search(model.float(), pieces, name, generation, lines, 6)
            bad += compare(case, [text for text, _ in theirs], programs, translate)
    return bad


def main(text, *programs):
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    with open(text, encoding="utf8") as f:
        lines = [line.rstrip("\n") for line in f if len(line) <= 100][:200]     # the models have few positions
    with tempfile.TemporaryDirectory() as root:
        bad = mbarts(programs, lines, root) + t5s(programs, lines, root)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
