# SPDX-License-Identifier: MIT
"""Tiny random models of every variant and what PyTorch computes with them: the oracle of the C tests.

    PYTHONPATH=training python3 -m dragoman_training.fixtures tests/data/models             writes them
    PYTHONPATH=training python3 -m dragoman_training.fixtures --check tests/data/models     makes them again and compares

The folder is kept packed: `scripts/test_data unpack` before, `scripts/test_data pack models` behind.

For every row of VARIANTS two files are written:
  NAME.gguf           a model that the program can run
  NAME.fixture.gguf   for each of a few sentences k, computed in float64 and stored as f32 with 16 significant bits:
      k.source     i32 [S]     what the encoder reads, </s> included where the model wants it
      k.target     i32 [T]     forced decoder inputs, one a step; -1 = the architecture's own start
      k.encoder    f32 [S, W]  encoder output
      k.hidden     f32 [T, R]  the vector that multiplies the output matrix
      k.logits     f32 [T, V]
      k.attention  f32 [T, S]  weights of the model's alignment layer and head
      k.greedy     i32 [G]     arg-max output without </s> and without forced target prefix; <unk> and ids of
                               dragoman.target.never excluded. Absent where it is empty or was cut off
      metadata fixture.sentences, fixture.k.text (absent where the source is bare </s>), fixture.k.output
Weights come from numpy's legacy generator, so the files do not depend on the PyTorch version. Seeds are tried in order
until the model behaves: logits are lively, greedy outputs differ between sentences, end by themselves and never hang
on a near-tie. Weights are rounded to their storage type before anything is computed, and those of matrices to 6 bits but
for WHOLE.
"""
import argparse
import os
import struct
import sys
import tempfile

import numpy as np
import torch

from . import fold, moe
from .cmlm import Cmlm, CmlmConfig, mask_predict
from .export import Card, Pieces, Words, export, extra_words, never_chosen, quantise_rows
from .gguf_writer import Reader, Writer
from .rnn import RNN, RNNConfig
from .transformer import Transformer, TransformerConfig, attention
from .variants import Variant, VariantConfig

MAX_GREEDY = 20
LINES = 500                              # of mask-predict
SOURCE_LENGTHS = (6, 2, 11, 1, 4)        # with </s>
TARGET_LENGTHS = (7, 3, 5, 2, 9)         # forced steps


def T(name, storage="f32", card=None, vocabulary="words", **config):
    return name, Transformer, TransformerConfig, storage, card or {}, vocabulary, config


def V(name, storage="f32", card=None, vocabulary="words", **config):
    return name, Variant, VariantConfig, storage, card or {}, vocabulary, config


def C(name, storage="f32", card=None, vocabulary="words", **config):
    return name, Cmlm, CmlmConfig, storage, card or {}, vocabulary, config


def R(name, storage="f32", card=None, vocabulary="words", **config):
    return name, RNN, RNNConfig, storage, card or {}, vocabulary, config


TINY = dict(d_model=12, heads=2, ffn_dim=14, encoder_layers=1, decoder_layers=1)
PAIRS = dict(TINY, tokens_per_step=2, positions="learned", max_positions=30)
SMALL = dict(d_model=20, heads=4, ffn_dim=28, encoder_layers=1, decoder_layers=1)
WIDE = dict(d_model=64, heads=8, ffn_dim=72, encoder_layers=1, decoder_layers=1)
SPARSE = dict(d_model=16, heads=2, ffn_dim=13, encoder_layers=1, decoder_layers=1)
LANGUAGE_TOKENS = dict(never=[2, 3], source_prefix=[2], target_prefix=[3], start=0)

VARIANTS = (
    T("transformer-post-sinusoid", **{**SMALL, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2}),
    T("transformer-pre-gelu-untied", **{**SMALL, "norm": "pre", "activation": "gelu", "tied": "none",
                                        "start": "learned"}),
    T("transformer-post-marian-ssru", **{**SMALL, "positions": "sinusoidal_marian", "activation": "swish",
                                         "tied": "target", "decoder_cell": "ssru", "decoder_layers": 2}),
    T("transformer-pre-learned", **{**SMALL, "norm": "pre", "positions": "learned", "activation": "gelu_tanh",
                                    "embedding_norm": True, "position_offset": 2, "max_positions": 40}),
    T("transformer-post-learned-shared", card=dict(start=2, never=[2]),
      **{**SMALL, "positions": "learned", "embedding_norm": True, "max_positions": 40, "tied": "none"}),
    T("transformer-pre-ssru-relu10", **{**SMALL, "norm": "pre", "decoder_cell": "ssru", "relu_clip": 10.0,
                                        "decoder_layers": 2, "start": "learned", "tied": "target"}),
    T("transformer-nopos-nobias", **{**SMALL, "positions": "none", "bias": False, "output_bias": False}),
    T("transformer-oddheads", d_model=28, heads=4, ffn_dim=37, decoder_ffn_dim=13, encoder_layers=1, decoder_layers=1,
      positions="sinusoidal_marian", activation="gelu"),
    T("transformer-onehead-noscale", **{**SMALL, "d_model": 26, "heads": 1, "scale_embedding": False,
                                        "norm_eps": 1e-3, "tied": "target"}),
    T("transformer-deep-encoder", **{**SMALL, "d_model": 16, "heads": 2, "ffn_dim": 20, "encoder_layers": 4,
                                     "activation": "swish", "norm": "pre", "positions": "sinusoidal_marian"}),
    T("transformer-offset-prefix", card=LANGUAGE_TOKENS,
      **{**SMALL, "position_offset": 2, "norm": "pre", "norm_eps": 1e-6}),
    T("transformer-align-head", card=dict(align=(0, 1)),
      **{**SMALL, "decoder_layers": 2, "activation": "gelu_tanh", "tied": "none", "scale_embedding": False,
         "norm": "pre"}),
    T("transformer-ssru-learned-start", **{**SMALL, "d_model": 22, "heads": 2, "decoder_cell": "ssru",
                                           "positions": "learned", "start": "learned", "max_positions": 40,
                                           "decoder_ffn_dim": 18, "output_bias": False}),
    T("transformer-no-source-eos", card=dict(append_eos=False), **SMALL),
    T("transformer-f16", "f16", **{**WIDE, "d_model": 40, "heads": 5, "ffn_dim": 48}),
    T("transformer-i8", "i8", card=dict(align=(-1, 0)), **{**WIDE, "heads": 4, "activation": "swish", "norm": "pre"}),
    T("transformer-pieces", vocabulary="pieces", **{**SMALL, "d_model": 16, "heads": 2}),
    R("rnn-devlin", embed=14, encoder_hidden=9, encoder_layers=3, decoder="devlin", decoder_hidden=17, attention=11,
      readout="none"),
    R("rnn-devlin-linear", embed=16, encoder_hidden=12, encoder_bidirectional=False, decoder="devlin",
      decoder_hidden=16, attention=16, readout="linear", readout_size=21),
    R("rnn-devlin-tanh-lstm", embed=12, encoder_hidden=10, encoder_cell="lstm", decoder="devlin", decoder_hidden=15,
      attention=9, readout="tanh", readout_size=13),
    R("rnn-devlin-maxout-lstm", embed=13, encoder_hidden=19, encoder_layers=2, encoder_cell="lstm",
      encoder_bidirectional=False, decoder="devlin", decoder_hidden=18, attention=8, readout="maxout", readout_size=11),
    R("rnn-conditional", embed=18, encoder_hidden=11, decoder="conditional", decoder_hidden=18, attention=14,
      readout="none", tied="target"),
    R("rnn-conditional-linear", embed=16, encoder_hidden=16, decoder="conditional", decoder_hidden=16, attention=16,
      readout="linear", readout_size=16),
    R("rnn-conditional-tanh-start", card=dict(never=[2]), embed=15, encoder_hidden=8, encoder_layers=2,
      decoder="conditional", decoder_hidden=13, attention=10, readout="tanh", readout_size=12, start_token=2),
    R("rnn-conditional-maxout-tied", embed=17, encoder_hidden=10, encoder_cell="lstm", encoder_layers=2,
      decoder="conditional", decoder_hidden=14, attention=17, readout="maxout", readout_size=17, tied="all"),
    R("rnn-bahdanau", embed=10, encoder_hidden=12, decoder="bahdanau", decoder_hidden=20, attention=7, readout="none"),
    R("rnn-bahdanau-linear-lstm", embed=11, encoder_hidden=9, encoder_cell="lstm", decoder="bahdanau",
      decoder_hidden=16, attention=12, readout="linear", readout_size=19, output_bias=False),
    R("rnn-bahdanau-tanh-deep", embed=16, encoder_hidden=13, encoder_layers=3, encoder_bidirectional=False,
      decoder="bahdanau", decoder_hidden=12, attention=10, readout="tanh", readout_size=16),
    R("rnn-bahdanau-maxout", embed=14, encoder_hidden=10, decoder="bahdanau", decoder_hidden=19, attention=13,
      readout="maxout", readout_size=14),
    R("rnn-devlin-f16", "f16", embed=40, encoder_hidden=20, decoder="devlin", decoder_hidden=40, attention=32,
      readout="none"),
    R("rnn-conditional-i8", "i8", embed=48, encoder_hidden=24, decoder="conditional", decoder_hidden=48, attention=64,
      readout="tanh", readout_size=48),
    R("rnn-bahdanau-pieces", vocabulary="pieces", embed=14, encoder_hidden=12, decoder="bahdanau", decoder_hidden=16,
      attention=12, readout="tanh", tied="all"),
    R("rnn-devlin-s2", embed=13, encoder_hidden=9, encoder_layers=2, decoder="devlin", decoder_hidden=17, attention=11,
      readout="none", top="gru", top_size=15),
    R("rnn-devlin-s3", embed=12, encoder_hidden=8, decoder="devlin", decoder_hidden=15, attention=10, readout="none",
      fc_layers=3, fc_size=13, top="tanh", top_size=18, encoder_fc_layers=3, encoder_fc_size=11),
    R("rnn-devlin-s5", "f16", embed=11, encoder_hidden=8, encoder_layers=3, decoder="devlin", decoder_hidden=16, attention=9,
      readout="none", fc_layers=7, fc_size=12, top="gru", top_size=14),
    R("rnn-devlin-s7", "f16", embed=12, encoder_hidden=9, encoder_layers=4, encoder_cell="lstm",
      encoder_bidirectional_layers=1, encoder_residual=True, decoder="devlin", decoder_cell="lstm", decoder_hidden=13,
      attention=8, readout="none", upper_layers=3, upper_context=True, upper_residual=True),
    R("rnn-conditional-upper", "f16", embed=12, encoder_hidden=7, decoder="conditional", decoder_hidden=14, attention=9,
      readout="tanh", readout_size=15, upper_layers=2, upper_residual=True, fc_layers=1, fc_size=11),
    R("rnn-bahdanau-upper", "f16", embed=12, encoder_hidden=8, decoder="bahdanau", decoder_hidden=12, attention=9,
      readout="maxout", readout_size=10, upper_layers=1, upper_context=True, encoder_fc_layers=1, encoder_fc_size=9),
    T("double-bidirectional", "f16", **{**PAIRS, "order": "bidirectional", "decoder_layers": 2}),
    T("double-l2r", "f16", **{**PAIRS, "norm": "pre", "d_model": 20, "heads": 4, "tied": "target"}),
    T("double-r2l", "f16", **{**PAIRS, "order": "r2l", "position_offset": 2, "embedding_norm": True}),
    T("double-ssru", "f16", **{**PAIRS, "order": "bidirectional", "decoder_cell": "ssru", "decoder_layers": 2}),
    T("double-aan", "f16", **{**PAIRS, "order": "bidirectional", "decoder_cell": "aan", "norm": "pre"}),
    T("double-i8", "i8", **{**PAIRS, "order": "bidirectional", "d_model": 28, "ffn_dim": 33, "positions": "sinusoidal"}),
    T("double-pieces", "f16", vocabulary="pieces", **{**PAIRS, "order": "bidirectional", "heads": 3}),
    T("transformer-r2l", "f16", **{**TINY, "order": "r2l"}),
    T("transformer-aan", "f16", **{**TINY, "decoder_cell": "aan", "decoder_layers": 2}),
    T("transformer-aan-pre", "f16", **{**TINY, "decoder_cell": "aan", "norm": "pre", "decoder_ffn_dim": 50,
                                       "bias": False, "activation": "swish"}),
    C("cmlm-post", "f16", **{**TINY, "positions": "learned", "max_positions": 40, "lengths": 24, "decoder_layers": 2}),
    C("cmlm-pre", "f16", **{**TINY, "norm": "pre", "lengths": 20, "tied": "target", "embedding_norm": True}),
    C("cmlm-pieces", "f16", vocabulary="pieces", **{**TINY, "lengths": 30}),
    T("transformer-moe-ssru", "f16", **{**SPARSE, "moe_experts": 4, "moe_top": 1, "moe_encoder_every": 1, "bias": False,
                                        "moe_decoder_every": 1, "decoder_cell": "ssru", "moe_normalise": True}),
    R("rnn-conditional-separate", "f16", embed=11, encoder_hidden=9, encoder_layers=3, encoder_stacks="separate",
      encoder_residual=True, encoder_residual_from=1, encoder_transitions=1, decoder="conditional", decoder_hidden=13,
      attention=10, readout="tanh", readout_size=11, decoder_transitions=2, decoder_start="all", upper_layers=2,
      upper_transitions=1, upper_residual=True, upper_residual_from=0),
    R("rnn-conditional-whole", "f16", embed=12, encoder_hidden=7, encoder_norm="whole", decoder="conditional",
      decoder_hidden=13, attention=14, norm=True, norm_eps=1e-9, decoder_norm="whole", readout="tanh", readout_size=12,
      tied="all"),
    R("rnn-conditional-gates", "f16", embed=12, encoder_hidden=9, encoder_layers=2, encoder_stacks="crossed",
      encoder_residual=True, encoder_residual_from=1, encoder_norm="gates", encoder_transitions=1, decoder="conditional",
      decoder_hidden=12, attention=11, norm=True, decoder_norm="gates", gate_norm_eps=1e-4, decoder_transitions=1,
      readout="tanh", readout_size=12, upper_layers=1, upper_context=True, decoder_start="all", tied="target"),
    R("rnn-conditional-lstm", "f16", embed=10, encoder_hidden=8, encoder_layers=3, encoder_cell="lstm",
      encoder_bidirectional_layers=1, encoder_norm="whole", encoder_transitions=1, decoder="conditional",
      decoder_cell="lstm", decoder_hidden=11, attention=9, norm=True, decoder_norm="whole", decoder_transitions=1,
      decoder_start="all", upper_layers=1, readout="maxout", readout_size=9),
    R("rnn-bahdanau-stacks", "f16", embed=12, encoder_hidden=8, encoder_layers=2, encoder_stacks="separate",
      encoder_norm="gates", decoder="bahdanau", decoder_hidden=13, attention=9, readout="none"),
    V("transformer-t5", "f16", card=dict(start=2, never=[2]), d_model=14, heads=3, head_width=6, query_scale=1.0, norm="pre",
      norm_kind="rms", encoder_final_norm=True, decoder_final_norm=True, activation="gelu_tanh", gated=True, bias=False,
      output_bias=True, positions="relative", encoder_layers=2, decoder_layers=2, tied="none"),
    V("transformer-umt5", "i8", card=dict(start=2, never=[2]), d_model=24, heads=2, head_width=8, query_scale=0.5, norm="pre",
      norm_kind="rms", encoder_final_norm=True, decoder_final_norm=True, activation="swish", gated=True, bias=False,
      positions="relative", encoder_layers=2, decoder_layers=2, relative_per_layer=True),
    V("transformer-t5-relu-pieces", vocabulary="pieces", d_model=12, heads=2, head_width=8, query_scale=1.0, norm="pre",
      norm_kind="rms", encoder_final_norm=True, decoder_final_norm=True, bias=False, positions="relative"),
    V("transformer-heads-tanh", "f16", heads=4, decoder_heads=2, activation="tanh", positions="learned", position_offset=3,
      decoder_position_offset=1, scale_embedding=True, tied="target", encoder_final_norm=True),
    V("transformer-both-norms", "f16", norm="both", decoder_norm="both", activation="gelu_sigmoid", attention_output=False,
      decoder_final_norm=True),
    V("transformer-norm-apart", "f16", residual="apart", norm_kind="rms", decoder_norm="both", encoder_layers=3,
      encoder_tied=[0, 1, 0], encoder_final_norm=True, decoder_final_norm=True),
    V("transformer-ssru-output", "f16", decoder_cell="ssru", rnn_output=True),
    V("transformer-no-residual", "f16", residual="none", activation="swish", d_model=24, heads=4, tied="none",
      positions="learned"),
    V("transformer-norm-none-aan", "f16", norm="none", decoder_norm="post", decoder_layers=2, decoder_tied=[0, 0],
      decoder_cell="aan", aan_ffn_dim=9, aan_activation="swish", encoder_final_norm=True, decoder_final_norm=True),
    V("transformer-aan-nogate", "f16", decoder_cell="aan", aan_gate=False, gated=True, aan_ffn_dim=50),
)

# Weights of these have all bits of their type, some because tests count on what they say; those of others have few bits, so
# that the archive is small.
WHOLE = {"transformer-post-sinusoid", "transformer-f16", "transformer-pieces", "transformer-t5-relu-pieces",
         "transformer-r2l", "rnn-devlin", "rnn-devlin-s5", "rnn-bahdanau-maxout", "rnn-bahdanau-pieces", "cmlm-pieces",
         *(row[0] for row in VARIANTS if row[0].startswith("double-"))}

# Seeds follow the row's number: of rows that others came to stand before, the one they were made with.
NUMBERS = {"transformer-moe-ssru": 41,
           **{row[0]: 52 + i for i, row in enumerate(row for row in VARIANTS if row[1] is Variant)}}


def words(count, seed, special=()):
    """Made-up words of one to three syllables, some with letters beyond ASCII."""
    rng = np.random.RandomState(seed)
    onsets, vowels, ends = "b d f g k l m n p r s t v z sch".split(), "a e i o u ä ö é".split(), ["", "", "n", "s", "t"]
    result = ["</s>", "<unk>", *special]
    while len(result) < count:
        parts = [onsets[rng.randint(len(onsets))] + vowels[rng.randint(len(vowels))] + ends[rng.randint(len(ends))]
                 for _ in range(rng.randint(1, 4))]
        if "".join(parts) not in result:
            result.append("".join(parts))
    return result


def protobuf(*fields):
    """Just enough of protobuf's wire format: (number, int | float | str | bytes)."""
    def varint(value):
        value &= (1 << 64) - 1
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes(out) + bytes([value])
    data = b""
    for number, value in fields:
        if isinstance(value, float):
            data += varint(number << 3 | 5) + struct.pack("<f", value)
        elif isinstance(value, int):
            data += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            data += varint(number << 3 | 2) + varint(len(value)) + value
    return data


def tiny_pieces():
    """A unigram SentencePiece model with byte fallback, written by hand so that no trainer's version matters."""
    normal, unknown, control, byte = 1, 2, 3, 6
    pieces = [("</s>", 0.0, control), ("<unk>", 0.0, unknown)]
    pieces += [(f"<0x{i:02X}>", 0.0, byte) for i in range(256)]
    spelled = ["▁", *"abcdefghijklmnopqrstuvwxyz", "en", "er", "st", "ch", "un", "in", "▁da", "▁der", "▁ha", "us",
               "▁haus", "▁und", "▁ein", "▁the", "▁a", "▁is", "▁house", "al", "ar", "."]
    pieces += [(text, -2.0 - 0.05 * i - (3.0 if len(text) == 1 else 0.0), normal) for i, text in enumerate(spelled)]
    trainer = protobuf((3, 1), (4, len(pieces)), (35, 1), (40, 1), (41, -1), (42, 0), (43, -1), (45, "<unk>"),
                       (46, "<s>"), (47, "</s>"), (48, "<pad>"))
    normaliser = protobuf((1, "identity"), (3, 1), (4, 1), (5, 1))
    entries = [(1, protobuf((1, text), (2, score), (3, kind))) for text, score, kind in pieces]
    return protobuf(*entries, (2, trainer), (3, normaliser)), len(pieces)


def gain(name):
    """Sharp attention and modest updates: else the source's mean decides every step and outputs stand still."""
    return {"q.weight": 2.5, "k.weight": 2.5, "v.weight": 1.0, "o.weight": 1.0}.get(name.rsplit("attn.")[-1], 1.5)


def coarse(values):
    """f32 with 6 significant bits, which pack into about one byte."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + (1 << 17)) & np.uint32(0xfffc0000)).view(np.float32)


def fill(module, rng, storage, whole):
    """Lively random weights, rounded to what the file will hold; matrices to few bits, unless they are wanted `whole`."""
    bounded = getattr(module.config, "readout", "linear") in ("none", "tanh")
    peak = 4.5 if bounded else 2.0                                      # |hidden| stays below 1, or does not
    for name, p in sorted(module.named_parameters()):
        noise = rng.standard_normal(p.shape)
        if "norm" in name:
            value = 0.2 * noise
            if name.endswith("weight"):                                 # mixed signs, or tied models repeat their input
                value += np.where(rng.random_sample(p.shape) < 0.5, -1.0, 1.0)
        elif name == "output_bias":
            value = 0.7 * noise                                         # calibrate() adds to it
        elif name in ("embedding", "output"):
            value = peak * noise / np.sqrt(p.shape[1])
        elif name in ("start", "source_embedding") or name.endswith("positions"):
            value = noise * (0.7 if isinstance(module, Transformer) else 1.0)
            value = value / np.sqrt(p.shape[-1]) if getattr(module.config, "scale_embedding", False) else value
        elif name.endswith((".b1", ".b2")):                             # of experts
            value = 0.3 * noise
        elif p.dim() == 1:
            value = 0.3 * noise if name != "cell.att_v" else 2.0 * noise / np.sqrt(p.numel())
        else:
            value = gain(name) * noise / np.sqrt(p.shape[-1])
        value = value.astype(np.float32)
        if p.dim() >= 2 and storage != "i8" and not whole:
            value = coarse(value)
        if p.dim() >= 2 and not name.endswith(("positions", "gate.weight", ".b1", ".b2", "relative.weight")):
            if storage == "f16":
                value = value.astype(np.float16).astype(np.float32)
            elif storage == "i8":
                q, scale = quantise_rows(value.reshape(-1, value.shape[-1]))
                value = (q.astype(np.float32) * scale[:, None]).reshape(value.shape)
        p.data.copy_(torch.from_numpy(np.ascontiguousarray(value)))
    if shares_positions(module):
        module.target_positions.data.copy_(module.source_positions.data)
    return module.double().eval()


def calibrate(module, rng, sources, card, banned, rare):
    """Sets the output bias so that no word wins everywhere, `rare` ids seldom, the end in about one context of six."""
    if not module.config.output_bias:
        return
    logits = []
    for source in sources:
        inputs = rng.randint(0, module.config.vocab_size, 12).tolist()
        logits.append(run(module, source, [*first_inputs(module, card), *inputs], card)[2])
    logits, end = np.concatenate(logits), end_of(module)
    bias = -0.9 * logits.mean(0)
    bias[rare] -= 12.0
    logits = logits + bias
    logits[:, banned] = -1e9
    if end is not None:
        bias[end] += np.quantile(np.delete(logits, end, 1).max(1) - logits[:, end], 1 / 6)
    module.output_bias.data += torch.from_numpy(bias)
    module.output_bias.data.copy_(module.output_bias.float())           # what the file can hold


def shares_positions(module):
    """Post-norm models with learned positions share one table here, so that both forms of the file are tested."""
    return not isinstance(module, Variant) and getattr(module.config, "positions", "") == "learned" and module.config.norm == "post"


def pairs_of(module):
    return getattr(module.config, "tokens_per_step", 1) == 2


def end_of(module):
    """The symbol that ends a sentence; a masked language model has none."""
    return None if isinstance(module, Cmlm) else module.eod if pairs_of(module) else 0


def first_inputs(module, card):
    if isinstance(module, Cmlm):
        return []
    return [module.bos, 0] if pairs_of(module) else [card.start]


class Recorder:
    """Cross-attention weights of one Transformer layer, taken from its inputs."""

    def __init__(self, module, layer, head):
        self.head, self.weights = head, None
        self.inner = module.decoder[layer].cross_attn
        self.plain = self.inner.cross
        self.inner.cross = self.record

    def record(self, x, k, v, mask):
        q = self.inner.queries(x)
        eye = torch.eye(k.size(2), dtype=k.dtype).expand(k.size(0), k.size(1), -1, -1)
        weights = attention(q, k, eye, mask)                            # [B, H, T, S]: identity as values
        self.weights = weights.mean(1) if self.head < 0 else weights[:, self.head]
        return self.plain(x, k, v, mask)

    def close(self):
        del self.inner.cross                                            # the class's own method shows again


def run(module, source, inputs, card):
    """One sentence: encoder output [S, W], hidden [T, R], logits [T, V], attention [T, S]."""
    source, inputs = torch.tensor([source]), torch.tensor([[module.pad if i < 0 else i for i in inputs]])
    memory = module.encode(source)[0]
    if isinstance(module, RNN):
        hidden, weights = module(source, inputs, align=True)
        weights = weights.exp()
    else:
        layer, head = card.align or (-1, -1)
        recorder = Recorder(module, layer, head)
        hidden, weights = module(source, inputs), recorder.weights
        recorder.close()
    return [x[0].numpy() for x in (memory, hidden, module.logits(hidden), weights)]


def greedy_pairs(module, sources, banned):
    """The same for pairs: each side's best word, until one of them is EOD; words in the order of reading."""
    found = []
    for source in sources:
        flat, margin, ended = [], np.inf, False
        while not ended and len(flat) < MAX_GREEDY:
            inputs = torch.tensor([[module.bos, 0, *flat]])
            logits = module.logits(module(torch.tensor([source]), inputs))[0, -2:].clone()
            logits[:, banned] = -1e9
            best = logits.topk(2, -1)
            margin = min(margin, float((best[0][:, 0] - best[0][:, 1]).min()))
            flat += best[1][:, 0].tolist()
            ended = module.eod in flat[-2:]
        found.append((fold.unfold(flat, module.config.order, module.eod), ended, margin))
    return found


def greedy(module, sources, card, banned):
    """Arg-max outputs of all sentences at once: list of (ids without </s> and prefix, ended, smallest margin)."""
    if pairs_of(module):
        return greedy_pairs(module, sources, banned)
    width = max(map(len, sources))
    source = torch.tensor([s + [module.source_pad] * (width - len(s)) for s in sources])
    start = [card.start if card.start >= 0 else module.pad, *card.target_prefix]
    inputs = torch.tensor([start] * len(sources))
    ended, margin = [False] * len(sources), [np.inf] * len(sources)
    for _ in range(MAX_GREEDY):
        logits = module.logits(module(source, inputs))[:, -1].clone()
        logits[:, banned] = -1e9
        best = logits.topk(2, -1)
        for i, (gap, token) in enumerate(zip((best[0][:, 0] - best[0][:, 1]).tolist(), best[1][:, 0].tolist())):
            if not ended[i]:
                margin[i] = min(margin[i], gap)
            ended[i] = ended[i] or token == 0
        inputs = torch.cat([inputs, best[1][:, :1]], 1)
        if all(ended):
            break
    rows = [row[len(start):] for row in inputs.tolist()]
    turn = -1 if getattr(module.config, "order", "l2r") == "r2l" else 1
    return [((row[:row.index(0)] if 0 in row else row)[::turn], end, gap) for row, end, gap in zip(rows, ended, margin)]


def behaves(outputs):
    lengths = [len(ids) for ids, _, _ in outputs]
    texts, distinct = {tuple(ids) for ids, _, _ in outputs}, sum(len(set(ids)) for ids, _, _ in outputs)
    return (all(end for _, end, _ in outputs) and min(gap for _, _, gap in outputs) > 0.02 and min(lengths) >= 1 and
            max(lengths) <= 15 and len(texts) >= len(outputs) - 1 and distinct >= 2 * len(outputs))


def vocabularies(kind, config, number, card, extra):
    """Source and target vocabulary (None: shared) and a function id list -> text for each side."""
    if kind == "pieces":
        import sentencepiece
        model, size = tiny_pieces()
        pieces = sentencepiece.SentencePieceProcessor()
        pieces.LoadFromSerializedProto(model)
        return Pieces(model, size + len(extra), extra=extra), None, pieces.DecodeIds, pieces.DecodeIds
    special = [f"<{name}>" for name in ("x", "y")[:len(card.never)]]
    shared = config.get("tied", "none" if "embed" in config else "all") == "all"
    source = Words(words(43 + number % 7, 100 + number, special) + (extra if shared else []))
    target = None if shared else Words(words(38 + number % 9, 200 + number, special) + extra)
    spell = [lambda ids, v=v: " ".join(v.words[i] for i in ids) for v in (source, target or source)]
    return source, target, *spell


def sentences(kind, source, rng, card):
    """Source id lists. Texts of the piece vocabulary must survive encoding, so they are real text."""
    if kind == "pieces":
        import sentencepiece
        pieces = sentencepiece.SentencePieceProcessor()
        pieces.LoadFromSerializedProto(source.model)
        texts = ["the house is ein haus.", "und", "das haus und the garten in der stadt.", None, "schön €5"]
        return [pieces.EncodeAsIds(t) + [0] if t else [0] for t in texts], texts
    first = 2 + len(card.never)
    size = sum(not word.startswith("<") for word in source.words) + first
    rows = [rng.randint(first, size, n - 1).tolist() for n in SOURCE_LENGTHS]
    texts = [" ".join(source.words[i] for i in row) if row else None for row in rows]
    end = [0] if card.append_eos else []
    return [card.source_prefix + (row or ([] if end else [first])) + end for row in rows], texts


def shortened(values):
    """f32 with 16 significant bits, which pack into three bytes: off by 1 in 2^17 at most, tests allow 1e-4 of the largest."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x80) & np.uint32(0xffffff00)).view(np.float32)


def build_cmlm(name, config, storage, card, vocabularies, rows, texts, number, folder, spell):
    """A masked language model, and NAME.cmlm.gguf: for sentence k one partly masked target (k.target) and what the
    network says of it (k.encoder, k.lengths, k.logits), and for short lines (500 for one model) the output of mask-predict
    with T iterations and l lengths (lines.source, lines.T.l, each line ended by -1)."""
    source, target = vocabularies
    rng = np.random.RandomState(1000 * number)
    module = fill(Cmlm(config), rng, storage, name in WHOLE)
    calibrate(module, rng, rows, card, [0, 1, module.mask], list(range(2, 258)) if config.vocab_size > 200 else [])
    path = os.path.join(folder, name)
    size = export(f"{path}.gguf", module, source, target, storage, card)
    out = Writer(alignment=8)
    out.string("general.architecture", "dragoman-fixture")
    out.string("fixture.model", f"{name}.gguf")
    out.u32("fixture.sentences", len(rows))
    for k, ids in enumerate(rows):
        given = rng.randint(2, config.vocab_size, 2 * TARGET_LENGTHS[k])
        given[::3] = module.mask
        memory, mask, lengths = module.encode_lengths(torch.tensor([ids]))
        hidden = module.decode(memory, mask, torch.tensor(given[None]))
        out.tensor(f"{k}.source", np.array(ids, np.int32))
        out.tensor(f"{k}.target", given.astype(np.int32))
        for part, value in (("encoder", memory), ("lengths", lengths[:, None]), ("logits", module.logits(hidden))):
            out.tensor(f"{k}.{part}", shortened(value[0].numpy()))
        if texts[k]:
            out.string(f"fixture.{k}.text", texts[k])
            out.string(f"fixture.{k}.output", spell(mask_predict(module, torch.tensor([ids]), 4, 1)[0]))
    lines = [rng.randint(2, source.size - 1, rng.randint(1, 7)).tolist() + [0] for _ in range(LINES if name == "cmlm-post" else 20)]
    flat = [i for line in lines for i in [*line, -1]]
    out.tensor("lines.source", np.array(flat, np.int32))
    for iterations, candidates in ((1, 1), (4, 1), (10, 1), (4, 3)):
        found = [mask_predict(module, torch.tensor([line]), iterations, candidates)[0] for line in lines]
        out.tensor(f"lines.{iterations}.{candidates}", np.array([i for ids in found for i in [*ids, -1]], np.int32))
    dump = out.save(f"{path}.cmlm.gguf")
    print(f"{name:34s} {size:7d} {dump:7d} bytes, {len({tuple(ids) for ids in found})} different outputs")
    return size, dump


def build(name, kind, config_class, storage, card, vocabulary, config, number, folder):
    card = Card(name=name, license="MIT", description="random weights, for tests", source_languages=["xx"],
                target_languages=["yy"], decode={"max_length": 32}, **card)
    extra = extra_words(config_class(vocab_size=8, **{**config, "tied": "none"}))
    source, target, _, spell = vocabularies(vocabulary, config, number, card, extra)
    config = config_class(vocab_size=(target or source).size, source_vocab_size=source.size, dropout=0.0, **config)
    card.start = max(card.start, getattr(config, "start_token", -1))
    rows, texts = sentences(vocabulary, source, np.random.RandomState(300 + number), card)
    banned = sorted({1, *card.never, *never_chosen(config)})
    if config_class is CmlmConfig:
        return build_cmlm(name, config, storage, card, (source, target), rows, texts, number, folder, spell)
    rare = list(range(2, 258)) if vocabulary == "pieces" else []        # lone bytes are seldom valid UTF-8
    spoken = [i for i, text in enumerate(texts) if text]
    for attempt in range(4000):
        rng = np.random.RandomState(1000 * number + attempt)
        module = fill(kind(config), rng, storage, name in WHOLE)
        calibrate(module, rng, rows, card, banned, rare)
        outputs = greedy(module, [rows[i] for i in spoken], card, banned)
        if behaves(outputs) and moe.margin(module) > 0.002:             # f32 must choose the same experts
            break
    else:
        raise RuntimeError(f"{name}: no seed gives a lively model")
    path = os.path.join(folder, name)
    size = export(f"{path}.gguf", module, source, target, storage, card)
    out = Writer(alignment=8)
    out.string("general.architecture", "dragoman-fixture")
    out.string("fixture.model", f"{name}.gguf")
    out.u32("fixture.sentences", len(rows))
    rng = np.random.RandomState(500 + number)
    greedy_of = dict(zip(spoken, outputs))
    for k, ids in enumerate(rows):
        first = first_inputs(module, card)
        steps = rng.randint(0, config.vocab_size, TARGET_LENGTHS[k] * len(first)).tolist()
        steps[:len(first)] = first
        if k == 0:
            steps[2] = steps[1]                                         # the same word twice
        values = run(module, ids, steps, card)
        out.tensor(f"{k}.source", np.array(ids, np.int32))
        out.tensor(f"{k}.target", np.array(steps, np.int32))
        for part, value in zip(("encoder", "hidden", "logits", "attention"), values):
            out.tensor(f"{k}.{part}", shortened(value))
        if texts[k]:
            best = greedy_of[k][0]
            out.string(f"fixture.{k}.text", texts[k])
            out.string(f"fixture.{k}.output", spell(best))
            if best:
                out.tensor(f"{k}.greedy", np.array(best, np.int32))
    dump = out.save(f"{path}.fixture.gguf")
    print(f"{name:34s} {size:7d} {dump:7d} bytes, seed {attempt:4d}, greedy lengths "
          f"{[len(ids) for ids, _, _ in outputs]}")
    return size, dump


def write_all(folder, only=""):
    """Writes the variants whose name contains `only`; refuses models that break the size limits."""
    os.makedirs(folder, exist_ok=True)
    total = dumps = 0
    with torch.no_grad():
        for number, row in enumerate(VARIANTS):
            number = NUMBERS.get(row[0], number)
            if only in row[0]:
                size, dump = build(*row, number, folder)
                if size >= 100 << 10:
                    raise RuntimeError(f"{row[0]}: {size} bytes; a test model has fewer than 100 KiB")
                total += size
                dumps += dump
    print(f"{total / 2 ** 20:.2f} MiB of models, {dumps / 2 ** 20:.2f} MiB of activations")
    if total > 5 << 19:
        raise RuntimeError("test models exceed 2.5 MiB together")


def differences(old, new):
    """Names of what differs between two files: metadata and integers exactly, floats beyond rounding."""
    a, b = Reader(old), Reader(new)
    found = [key for key in sorted({*a.metadata, *b.metadata}) if a.metadata.get(key) != b.metadata.get(key)]
    for name in sorted({*a.tensors, *b.tensors}):
        x, y = a.tensors.get(name), b.tensors.get(name)
        if x is None or y is None or x.dtype != y.dtype or x.shape != y.shape:
            found.append(name)
        elif np.abs(x.astype(np.float64) - y).max() > (3e-5 * np.abs(x).max() if x.dtype.kind == "f" else 0):
            found.append(name)
    return found


# Models beside the fixtures that were trained: another PyTorch's rounding leads training elsewhere.
TRAINED = {"self-normalised.gguf"}  # tiny.py


def check(folder, only=""):
    """True if the files in folder are what this program makes, up to rounding of another PyTorch."""
    with tempfile.TemporaryDirectory() as made:
        write_all(made, only)
        names, there = sorted(os.listdir(made)), sorted(f for f in os.listdir(folder) if only in f)
        stray = sorted({*names} ^ {f for f in there if f.endswith(".gguf") and f not in TRAINED})
        bad = [f"{name}: only on one side" for name in stray]
        for name in names:
            if name not in stray:
                found = differences(os.path.join(folder, name), os.path.join(made, name))
                bad += [f"{name}: {what} differs" for what in found]
    print("\n".join(bad) or f"{len(names)} files are as expected")
    return not bad


def main():
    parser = argparse.ArgumentParser(prog="dragoman_training.fixtures", description="Write the test models.")
    parser.add_argument("folder")
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--check", action="store_true", help="make them again elsewhere and compare")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.check:
        return 0 if check(args.folder, args.only) else 1
    write_all(args.folder, args.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
