# SPDX-License-Identifier: MIT
"""The whole path in under three minutes on two CPU cores: text, vocabulary, packing, training, resume, export.

The text is made here from a small grammar (English to German with articles, cases and word order), so nothing has to be
downloaded. It passes if the loss falls, a run that is stopped and resumed ends where an unbroken one does, the model
translates sentences of its training text, and, when a dragoman program is given, the exported model file gives the same
translations there, also by `distill --engine dragoman`, which goes on where it was.

    python3 -m dragoman_training smoke --out DIR [--dragoman ./dragoman]
"""
import copy
import os
import random
import shutil
import subprocess

import torch

from . import checkpoint, corpus, curve, mix, search, subword
from .recipe import DEFAULTS, merge

NOUNS = (("man", "Mann", "m"), ("woman", "Frau", "f"), ("child", "Kind", "n"), ("dog", "Hund", "m"),
         ("cat", "Katze", "f"), ("house", "Haus", "n"), ("bridge", "Brücke", "f"), ("tree", "Baum", "m"),
         ("book", "Buch", "n"),
         ("teacher", "Lehrer", "m"), ("town", "Stadt", "f"), ("horse", "Pferd", "n"))
ADJECTIVES = (("old", "alt"), ("small", "klein"), ("new", "neu"), ("red", "rot"), ("beautiful", "schön"),
              ("quiet", "still"))
VERBS = (("sees", "sieht"), ("finds", "findet"), ("loves", "liebt"), ("seeks", "sucht"), ("knows", "kennt"),
         ("paints", "malt"))
ADVERBS = (("", ""), ("today", "heute"), ("often", "oft"), ("again", "wieder"), ("tomorrow", "morgen"))
ARTICLES = {"nominative": {"m": "der", "f": "die", "n": "das"}, "accusative": {"m": "den", "f": "die", "n": "das"}}


def phrase(noun, adjective, case):
    """English and German noun phrase, the adjective in weak declension."""
    english, german = ["the"], [ARTICLES[case][noun[2]]]
    if adjective:
        english.append(adjective[0])
        german.append(adjective[1] + ("en" if case == "accusative" and noun[2] == "m" else "e"))
    return " ".join(english + [noun[0]]), " ".join(german + [noun[1]])


def sentence(rng):
    subject, thing = rng.sample(NOUNS, 2)
    adjectives = [rng.choice(ADJECTIVES) if rng.random() < 0.6 else None for _ in range(2)]
    verb, adverb = rng.choice(VERBS), rng.choice(ADVERBS)
    first, second = phrase(subject, adjectives[0], "nominative"), phrase(thing, adjectives[1], "accusative")
    english = " ".join(filter(None, (first[0], verb[0], second[0], adverb[0]))) + "."
    german = " ".join(filter(None, (first[1], verb[1], adverb[1], second[1]))) + "."
    return english[0].upper() + english[1:], german[0].upper() + german[1:]


def text(count, seed=5):
    rng, found = random.Random(seed), {}
    while len(found) < count:
        english, german = sentence(rng)
        found[english] = german
    return list(found), list(found.values())


def recipe(steps):
    return merge(copy.deepcopy(DEFAULTS), {
        "name": "smoke", "batch_tokens": 1024, "widths": [16, 24, 32], "budget": {"seconds": 0, "steps": steps},
        "model": {"d_model": 64, "ffn_dim": 128, "heads": 4, "encoder_layers": 2, "decoder_layers": 1, "dropout": 0.0},
        "schedule": {"kind": "cosine", "peak": 4.0e-3, "warmup": 40, "floor": 0.02},
        "loss": {"smoothing": 0.05, "alignment": 0.1, "alignment_batches": 4},
        "average": {"keep": 0.8, "every": 10, "after": 50}, "precision": "f32", "log_every": 50, "save_every": 10 ** 9,
        "data": {"train": "train.bin", "vocab": "vocab.model"}, "clip": {"gradients": 1.0, "weights": 1.0}})


def train(work, out, settings, stop=0):
    """A run; with stop it is left after that many steps, as by a kill just after a checkpoint."""
    from .train import Trainer
    trainer = Trainer(settings, work, os.path.join(work, out), "cpu")
    trainer.run(stop=stop)
    return trainer


def compare(program, model, work, lines, expected):
    """Lines whose translation by the C program differs from ours."""
    from .export import Pieces, export, module_from
    held = checkpoint.read(model)
    path = os.path.join(work, "smoke.gguf")
    export(path, module_from(held), Pieces(held["vocab"]), source_languages=["en"], target_languages=["de"])
    if not program:
        return 0
    done = subprocess.run([program, "translate", "-m", path, "--raw", "-b", "1", "--precision", "f32"],
                          input="".join(line + "\n" for line in lines), capture_output=True, text=True, check=True)
    return sum(a != b for a, b in zip(done.stdout.split("\n"), expected))


def distilled(program, model, vocab, work):
    """What is wrong with distillation by the program: against PyTorch's, and resumed after a kill."""
    from . import distill
    lines = corpus.read_lines(os.path.join(work, "pairs.en"))[:60]
    source, teacher = os.path.join(work, "few.en"), os.path.join(work, "teacher")
    corpus.write_lines(source, lines)
    os.makedirs(teacher)
    shutil.copy(model, os.path.join(teacher, "model.pt"))
    shutil.copy(vocab, os.path.join(teacher, "vocab.spm"))
    found = {}
    for engine, settings in (("pytorch", dict(workers=1)), ("dragoman", dict(program=program, precision="f32", chunk=25))):
        for nbest in (1, 3):
            out = os.path.join(work, f"{engine}{nbest}")
            distill.distill(teacher, [source], out, beam=4, nbest=nbest, device="cpu", **settings)
            found[engine, nbest] = distill.collect(out, source, 1)
    out = os.path.join(work, "again")
    os.makedirs(out)
    corpus.write_lines(os.path.join(out, "few.en.made.0.25.beam4"), ["from before"] * 25)   # a chunk that an earlier run had done
    corpus.write_lines(os.path.join(out, "few.en.made.0.25.source"), lines[25:50])
    distill.distill(teacher, [source], out, beam=4, device="cpu", program=program, precision="f32", chunk=25)
    again = distill.collect(out, source, 1)
    complaints = []
    for nbest in (1, 3):
        wrong = sum(a.split("\t")[0] != b.split("\t")[0] for a, b in zip(found["pytorch", nbest], found["dragoman", nbest]))
        if wrong > 1 or len(found["dragoman", nbest]) != len(lines):
            complaints.append(f"{wrong} of {len(lines)} lines distilled by {program} differ from PyTorch's (nbest {nbest})")
    if not any(line.count("\t") == 2 for line in found["dragoman", 3]):
        complaints.append("distillation by the program gives no alternatives")
    if again != found["dragoman", 1][:25] + ["from before"] * 25 + found["dragoman", 1][50:]:
        complaints.append("distillation does not go on where it was")
    return complaints


def run(work, program="", steps=200):
    """Returns a list of complaints; empty if all is well."""
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    torch.set_num_threads(1)                            # small products: a second thread only waits
    english, german = text(3000)
    for lang, lines in (("en", english), ("de", german)):
        corpus.write_lines(os.path.join(work, f"pairs.{lang}"), lines)
    vocab = subword.train([os.path.join(work, f"pairs.{x}") for x in ("en", "de")], os.path.join(work, "vocab"), 360,
                          required="")
    packed = mix.mix(vocab, english, german, None, None, shares={}, processes=1)
    packed.save(os.path.join(work, "train.bin"))
    train(work, "run", recipe(steps))
    rows = curve.read_log(os.path.join(work, "run", "log.csv"))
    first, last = float(rows[0]["nll"]), float(rows[-1]["nll"])
    complaints = [] if last < 0.25 * first else [f"the loss did not fall: {first} to {last}"]
    short = recipe(12)
    whole = train(work, "whole", short).flat.weights
    train(work, "broken", short, stop=6)
    resumed = train(work, "broken", short).flat.weights
    if not torch.equal(whole, resumed):
        complaints.append("a resumed run differs from an unbroken one")
    model = os.path.join(work, "run", "model.pt")
    loaded = checkpoint.load_model(model).fuse_for_decoding()
    import sentencepiece
    spm = sentencepiece.SentencePieceProcessor(model_file=vocab)
    sample = english[:100]
    found = [spm.decode(ids) for ids in search.translate_ids(loaded, [spm.encode(line) for line in sample])]
    right = sum(a == b for a, b in zip(found, german))
    if right < 90:
        complaints.append(f"only {right} of 100 training sentences are translated as they should be")
    wrong = compare(program, model, work, sample, found)
    if wrong > 1:
        complaints.append(f"{wrong} of 100 translations by {program} differ from PyTorch's")
    if program:
        complaints += distilled(program, model, vocab, work)
    print(f"smoke: -log p {first:.2f} to {last:.3f}, {right} of 100 training sentences right"
          + (f", {100 - wrong} of 100 equal in {program}" if program else ""), flush=True)
    return complaints
