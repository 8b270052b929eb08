# SPDX-License-Identifier: MIT
"""A self-normalised conditional GRU of 40 KiB, trained on a CPU in two minutes: a model for tests.

It translates the sentences that smoke.py's grammar makes, with words as tokens, and is trained with the loss of
self-normalisation, so that log Z is near 0 and scores need no softmax. Tests use it where a random model would not do:
what is skipped must not change the translations.

    PYTHONPATH=training python3 -m dragoman_training.tiny tests/data/models/self-normalised.gguf
"""
import argparse

import torch

from . import losses, optim
from .batches import Batches
from .export import Words, export
from .packed import Packed
from .rnn import RNN, RNNConfig
from .smoke import text

ALPHA = 0.5


def tokens(lines):
    return [line.lower().replace(".", " .").split() for line in lines]


def vocabulary(sentences):
    return ["</s>", "<unk>", *sorted({word for sentence in sentences for word in sentence})]


def ids(sentences, words):
    index = {word: i for i, word in enumerate(words)}
    return [[index[word] for word in sentence] for sentence in sentences]


def train(steps, report=print):
    """(model, source words, target words)."""
    torch.manual_seed(3)
    torch.set_num_threads(1)
    sides = [tokens(lines) for lines in text(3000)]
    words = [vocabulary(side) for side in sides]
    model = RNN(RNNConfig(vocab_size=len(words[1]), source_vocab_size=len(words[0]), embed=24, encoder_hidden=16,
                          decoder="conditional", decoder_hidden=32, attention=24, readout="linear", dropout=0.1,
                          dropout_inside=False)).train()
    pairs = Packed.from_lists([(s, t, 1) for s, t in zip(ids(sides[0], words[0]), ids(sides[1], words[1]))])
    batches = Batches(pairs, model.pad, 1024, "cpu", 1, (12, 16), model.source_pad)
    flat = optim.Flat(model)
    adam, rate = optim.build(flat, {"name": "adam"}), optim.schedule({"kind": "cosine", "peak": 5e-3, "warmup": 50})
    done = 0
    while done < steps:
        for bucket, index in batches.plan(done):
            source, given, expected = batches.fetch(bucket, index)
            flat.gradients.zero_()
            loss, nll = losses.token_loss(model(source, given), model.output_rows(), model.output_bias, expected,
                                          model.pad, 0.0, ALPHA)
            loss.backward()
            flat.clip_gradients(1.0)
            adam.step(rate(done, done / steps))
            done += 1
            if done % 200 == 0:
                report(f"step {done}: loss {float(loss):.4f}, -log p {float(nll):.4f}")
            if done == steps:
                break
    return model.eval(), words[0], words[1]


def main():
    parser = argparse.ArgumentParser(prog="dragoman_training.tiny", description=__doc__.split("\n", 1)[0])
    parser.add_argument("output")
    parser.add_argument("--steps", type=int, default=1200)
    args = parser.parse_args()
    model, source, target = train(args.steps)
    size = export(args.output, model, Words(source), Words(target), "f16", name="self-normalised test model",
                  license="MIT", source_languages=["en"], target_languages=["de"], self_normalised=True,
                  decode={"beam": 4, "precision": "f32"})
    print(f"{args.output}: {size / 1024:.1f} KiB")


if __name__ == "__main__":
    main()
