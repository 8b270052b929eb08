#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the recurrent models of tests/data/marian_rnn and what Marian itself translates with them.

    make_marian_rnn.py train WORK PAIRS.tsv     trains every variant for minutes: WORK/NAME.npz
    make_marian_rnn.py write WORK PAIRS.tsv OUT makes OUT/NAME.npz, OUT/NAME.tsv.gz, OUT/text.en, OUT/joint.spm

Needs pymarian (PyPI), which has the real Marian; a CPU is enough. PAIRS.tsv: source, tab, target; the first 11,000 lines are
trained on (Tatoeba en-de, short lines), test lines are those behind them. A model's file
has the first 200 that it does not make more than twice as long: Marian cuts runaways at 3 times the longest source in their batch,
Dragoman at 3 times their own.

Weights are cut to 8 bits of mantissa before Marian translates with them, so that archives of them are small. OUT/NAME.tsv.gz
has one row for each translation: setting, line, score, text; settings are rows of SETTINGS.

Marian cannot load tied embeddings under its type nematus (it looks for another name than it wrote): its own translations of
such a model are made from the same weights under the names of s2s, which its loader leaves alone.
"""
import gzip
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

COMMON = ("--vocabs joint.spm joint.spm --dim-vocabs 260 260 --sentencepiece-options --normalization_rule_name=identity "
          "--mini-batch 64 --maxi-batch 50 --cpu-threads 1 --workspace 500 --seed 1 --save-freq 100000 --valid-freq 1000000 "
          "--learn-rate 0.005 --optimizer adam --clip-norm 1 --sync-sgd --overwrite --dim-emb 16 --dim-rnn 16 --max-length 60")
NEMATUS = "--type nematus --enc-cell gru-nematus --dec-cell gru-nematus"
# name -> (batches, options)
VARIANTS = {
    "s2s-gru": (900, "--type s2s"),
    "s2s-norm": (900, "--type s2s --layer-normalization --tied-embeddings-all"),
    "s2s-lstm": (700, "--type s2s --enc-cell lstm --dec-cell lstm --dec-depth 2 --tied-embeddings"),
    "s2s-deep": (350, "--type s2s --enc-depth 2 --enc-cell-depth 2 --dec-depth 2 --dec-cell-base-depth 4 "
                      "--dec-cell-high-depth 2 --skip --tied-embeddings-all"),
    "s2s-alternating": (350, "--type s2s --enc-type alternating --enc-depth 2 --enc-cell-depth 2 --dec-depth 3 --skip "
                             "--layer-normalization --tied-embeddings-all"),
    "s2s-uni-lstm": (350, "--type s2s --enc-type bi-unidirectional --enc-depth 3 --enc-cell lstm --dec-cell lstm "
                          "--enc-cell-depth 2 --dec-cell-base-depth 3 --skip --layer-normalization --tied-embeddings-all"),
    "s2s-mixed": (350, "--type s2s --enc-cell gru-nematus --dec-cell lstm --layer-normalization --tied-embeddings "
                       "--enc-depth 2 --output-omit-bias"),
    "amun": (400, "--type amun"),
    "amun-norm": (350, "--type amun --layer-normalization --tied-embeddings-all"),
    "nematus-norm": (350, f"{NEMATUS} --layer-normalization --enc-cell-depth 2 --dec-cell-base-depth 4 "
                          "--tied-embeddings-all"),
    "nematus-deep": (350, f"{NEMATUS} --enc-cell-depth 3 --dec-cell-base-depth 3 --tied-embeddings-src --tied-embeddings"),
}
# name -> options of the decoder, lines, translations of each
SETTINGS = {
    "beam1": ("--beam-size 1 --normalize 0", 200, 1),
    "beam6": ("--beam-size 6 --normalize 0.6", 200, 1),
    "penalty": ("--beam-size 6 --normalize 0 --word-penalty 0.4", 20, 6),
}
TRAINED, TESTED, OFFERED = 11000, 200, 270
FIRST = {"prev": "0", "lstm": "1", "ctx": "2"}
BEHIND = {"U_nl": "U", "Ux_nl": "Ux", "Wc": "W", "Wcx": "Wx", "b_nl": "b", "bx_nl": "bx"}


def train(work, pairs):
    lines = [line.rstrip("\n").split("\t") for line in open(pairs, encoding="utf-8")][:TRAINED]
    for side, end in enumerate(("en", "de")):
        (work / f"train.{end}").write_text("".join(line[side] + "\n" for line in lines), encoding="utf-8")
    for name, (batches, options) in VARIANTS.items():
        if not (work / f"{name}.npz").exists():
            call = f"import _pymarian; _pymarian.Trainer('--model {name}.npz --train-sets train.en train.de " \
                   f"{COMMON} --after-batches {batches} {options}').train()"
            subprocess.run([sys.executable, "-c", call], cwd=work, check=True)


def s2s_name(name):
    """The name of a tensor of Nematus in Marian's type s2s."""
    if m := re.fullmatch(r"encoder_(r_)?(Ux|U|Wx|W|bx|b)(?:_drt_(\d+))?(_ln[sb])?", name):
        cell = f"cell{int(m[3]) + 1}_" if m[3] else ""
        return f"encoder_bi_{m[1] or ''}{cell}{m[2]}{m[4] or ''}"
    if m := re.fullmatch(r"decoder_(Ux|U|Wx|W|bx|b)(_ln[sb])?", name):
        return f"decoder_cell1_{m[1]}{m[2] or ''}"
    if m := re.fullmatch(r"decoder_(U_nl|Ux_nl|Wc|Wcx|b_nl|bx_nl)(?:_drt_(\d+))?(_ln[sb])?", name):
        return f"decoder_cell{2 + int(m[2] or 0)}_{BEHIND[m[1]]}{m[3] or ''}"
    if m := re.fullmatch(r"ff_logit_(prev|lstm|ctx)_(W|b|ln_s|ln_b)", name):
        return f"decoder_ff_logit_l1_{m[2]}{FIRST[m[1]]}"
    if m := re.fullmatch(r"ff_logit_(W|b)", name):
        return f"decoder_ff_logit_l2_{m[1]}"
    if name.startswith("ff_state_"):
        return "decoder_" + name
    return {"Wemb_dec": "decoder_Wemb"}.get(name, name)


def cut(array):
    """f32 with 8 bits of mantissa."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def translate(work, model, lines, options):
    """n-best lists: [[(score, text), ...] for each line]."""
    call = ("import sys, pymarian\n"
            "lines = [line.rstrip('\\n') for line in open(sys.argv[2], encoding='utf-8')]\n"
            "t = pymarian.Translator(sys.argv[1])\n"
            "open(sys.argv[3], 'w', encoding='utf-8').write('\\n'.join(t.translate(lines)))")
    given, made = work / "lines.txt", work / "translations.txt"
    given.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    settings = f"--models {model} --vocabs joint.spm joint.spm --cpu-threads 1 --workspace 200 --mini-batch 32 " \
               f"--maxi-batch 1 --quiet --quiet-translation --n-best {options}"
    subprocess.run([sys.executable, "-c", call, settings, given.name, made.name], cwd=work, check=True,
                   stderr=subprocess.DEVNULL)
    found = [[] for _ in lines]
    for row in made.read_text(encoding="utf-8").split("\n"):
        number, text, _, score = row.split(" ||| ")
        found[int(number)].append((score, text))
    return found


def loadable(arrays, options):
    tied = "--type nematus" in options and ("--tied-embeddings-all" in options or "--tied-embeddings-src" in options)
    if not tied:
        return arrays
    return {s2s_name(name): a[None] if a.ndim == 1 and "special" not in name else a
            for name, a in arrays.items() if name not in ("decoder_c_tt", "uidx", "history_errs")}


def write(work, pairs, out):
    lines = [line.split("\t")[0] for line in open(pairs, encoding="utf-8")][TRAINED:]
    lines = list(dict.fromkeys(lines))[:OFFERED]
    (out / "text.en").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    (out / "joint.spm").write_bytes((work / "joint.spm").read_bytes())
    for name, (_, options) in VARIANTS.items():
        arrays = dict(np.load(work / f"{name}.npz"))
        for key, array in arrays.items():
            if not key.startswith("special"):
                arrays[key] = cut(array)
        np.savez(out / f"{name}.npz", **arrays)
        np.savez(work / f"{name}-cut.npz", **loadable(arrays, options))
        rows = []
        for setting, (decoder, count, best) in SETTINGS.items():
            found = translate(work, f"{name}-cut.npz", lines if count == TESTED else lines[:2 * count], decoder)
            kept = [i for i, one in enumerate(found) if len(one[0][1]) <= 2 * len(lines[i])][:count]
            if len(kept) < count:
                raise SystemExit(f"{name}, {setting}: only {len(kept)} lines do not run away")
            rows += [f"{setting}\t{i}\t{score}\t{text}\n" for i in kept for score, text in found[i][:best]]
        (out / f"{name}.tsv.gz").write_bytes(gzip.compress("".join(rows).encode(), 9, mtime=0))
        print(name, len(rows), "translations", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "train":
        train(Path(sys.argv[2]), sys.argv[3])
    elif len(sys.argv) == 5 and sys.argv[1] == "write":
        write(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
    else:
        raise SystemExit(__doc__)
