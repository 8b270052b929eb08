# SPDX-License-Identifier: MIT
"""Recurrent networks with random weights for the speeds of bench/shrink, and what their products cost.

    member = Network.member(512, 30000)        as training/recipes/en-de-bahdanau.yaml: all widths equal, linear read-out
    whole = Network.unfolded(member, 3)        what `dragoman shrink` makes of three of them
    small = whole.scaled(units=0.78, embeddings=0.78, readout=0.78)
    small.write(path, seed)                    the file that it would write, but for the numbers

The vocabulary is made-up words of one token each, so texts and forced lengths (--min-length = --max-length) are exact; the
end symbol has a bias that keeps it out until it is forced. Needs numpy; the same arguments give the same bytes.
"""
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training"))
from dragoman_training.gguf_writer import Writer  # noqa: E402
from imamura2020_models import random_text, word  # noqa: E402,F401


def rounded(width, factor):
    """As shrink.c: widths from 64 on are multiples of 8."""
    w = round(width * factor)
    return min(width, max(1, w // 8 * 8 if w >= 64 else w))


@dataclass
class Network:
    vocabulary: int
    heads: int
    units: int            # of encoder, decoder and attention of each head
    embed: int            # columns, of all heads together
    readout: int          # units, of all heads together
    joint_embed: bool = False    # reduced: no longer divided among the heads
    joint_readout: bool = False

    @classmethod
    def member(cls, width, vocabulary):
        return cls(vocabulary, 1, width, width, width)

    @classmethod
    def unfolded(cls, member, heads):
        return replace(member, heads=heads, embed=heads * member.embed, readout=heads * member.readout)

    def scaled(self, units=1.0, embeddings=1.0, readout=1.0):
        embed, read = rounded(self.embed, embeddings), self.heads * rounded(self.readout // self.heads, readout)
        return replace(self, units=rounded(self.units, units), embed=embed, readout=read,
                       joint_embed=embed < self.embed, joint_readout=read < self.readout)

    # ---- what it costs -----------------------------------------------------------------------------------------------

    def word_inputs(self):
        """Columns that a unit of one head has for the word."""
        return self.embed if self.joint_embed or self.heads == 1 else self.embed // self.heads

    def readout_rows(self):
        """Rows of the read-out that a head's context and state go to."""
        return self.readout if self.joint_readout or self.heads == 1 else self.readout // self.heads

    def products(self):
        """Multiply-adds of one decoder row by part, and of one source token."""
        u, n = self.units, self.heads
        whole_word = self.readout * (self.embed if self.joint_readout or self.joint_embed else self.word_inputs())
        return {"word": n * 3 * u * self.word_inputs() + whole_word, "state": n * 4 * u * u,
                "read-out": n * self.readout_rows() * u, "output": self.vocabulary * self.readout,
                "source": n * (6 * u * self.word_inputs() + 6 * u * u + 2 * u * u + (3 * u + self.readout_rows()) * 2 * u)}

    def attention(self):
        """Numbers that attention reads for one decoder row and one source position."""
        return self.heads * (self.units + 3 * self.units + self.readout_rows())

    def parameters(self):
        p = self.products()
        tables = 2 * self.vocabulary * self.embed
        biases = self.vocabulary + self.heads * (2 * 6 + 1 + 1 + 1 + 6) * self.units + self.readout
        return tables + sum(p.values()) + self.heads * 2 * self.units ** 2 + biases  # those of the first state

    # ---- the file ----------------------------------------------------------------------------------------------------

    def metadata(self, out):
        out.string("general.architecture", "dragoman")
        out.string("general.name", f"random GRU {self.units} x {self.heads}")
        out.u32("dragoman.format_version", 1)
        out.string("dragoman.architecture", "rnn")
        out.string("dragoman.source.vocab.kind", "words")
        out.strings("dragoman.source.vocab.words", ["</s>", "<unk>", *(word(i) for i in range(2, self.vocabulary))])
        out.string("dragoman.source.vocab.tokenizer", "none")
        out.u32("dragoman.source.vocab.size", self.vocabulary)
        out.i32("dragoman.source.eos", 0)
        out.i32("dragoman.source.unk", 1)
        for key in ("encoder_hidden", "decoder_hidden", "attention"):
            out.u32(f"dragoman.rnn.{key}", self.heads * self.units)
        out.u32("dragoman.rnn.embed", self.embed)
        out.u32("dragoman.rnn.readout_size", self.readout)
        out.u32("dragoman.rnn.encoder_layers", 1)
        out.string("dragoman.rnn.encoder_cell", "gru")
        out.string("dragoman.rnn.decoder", "bahdanau")
        out.string("dragoman.rnn.readout", "linear")
        if self.heads > 1:
            for key in ("attention", "encoder", "hidden"):
                out.u32s(f"dragoman.rnn.head_{key}", [self.units] * self.heads)
            if not self.joint_embed:
                out.u32s("dragoman.rnn.head_embed", [self.embed // self.heads] * self.heads)
            if not self.joint_readout:
                out.u32s("dragoman.rnn.head_readout", [self.readout // self.heads] * self.heads)

    def write(self, path, seed):
        out, rng = Writer(), np.random.default_rng(seed)
        self.metadata(out)
        u, e, r = self.units, self.word_inputs(), self.readout_rows()

        def numbers(name, rows, columns):
            out.tensor(name, rng.standard_normal((rows, columns), np.float32) / np.float32(np.sqrt(columns)))

        def matrix(name, rows, columns, bias=0, blocks=True):
            """One block for each head, or a whole matrix."""
            for h in range(self.heads if blocks else 1):
                numbers(f"{name}.weight.{h}" if blocks and self.heads > 1 else f"{name}.weight", rows, columns)
            if bias:
                out.tensor(f"{name}.bias", np.zeros(bias, np.float32))

        numbers("src.embed", self.vocabulary, self.embed)
        numbers("tgt.embed", self.vocabulary, self.embed)
        numbers("out.weight", self.vocabulary, self.readout)
        out.tensor("out.bias", np.where(np.arange(self.vocabulary) == 0, -100, 0).astype(np.float32))
        all_units, divided = self.heads * u, not self.joint_readout
        for way in ("fwd", "bwd"):
            matrix(f"enc.0.{way}.w", 3 * u, e, 3 * all_units)
            matrix(f"enc.0.{way}.h", 3 * u, u, 3 * all_units)
        matrix("dec.init", u, 2 * u, all_units)
        matrix("dec.att.query", u, u)
        matrix("dec.att.key", u, 2 * u, all_units)
        out.tensor("dec.att.v", rng.standard_normal(all_units, np.float32))
        matrix("dec.gru.x", 3 * u, e, 3 * all_units)
        matrix("dec.gru.c", 3 * u, 2 * u)
        matrix("dec.gru.h", 3 * u, u, 3 * all_units)
        matrix("dec.readout.x", r, e if divided else self.embed, self.readout, divided)
        matrix("dec.readout.h", r, u if divided else all_units, 0, divided)
        matrix("dec.readout.c", r, 2 * u if divided else 2 * all_units, 0, divided)
        out.save(str(path))
