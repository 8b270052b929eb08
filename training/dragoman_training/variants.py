# SPDX-License-Identifier: MIT
"""Transformers that other programs train and the C engine runs: the oracle of its tests, teacher-forced and plain.

transformer.py is what we train; here are the switches that only importers need (docs/internals/FORMAT.md, 2.4), written
for reading, not for speed. Shapes and ids as there. A layer's sub-layer reads norm(x) or x and makes u; the layer goes on with

    residual sum    norm(x + u)        apart    x + norm(u)        none    norm(u)

where the norm behind it may be missing. Relative positions: scores of self-attention + B[bucket(key - query)][head]; one
table of buckets a side, in the first layer, or one a layer.
"""
import math
from dataclasses import asdict, dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F

ACTIVATIONS = {"relu": F.relu, "swish": F.silu, "gelu": F.gelu, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
               "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "gelu_sigmoid": lambda x: x * torch.sigmoid(1.702 * x)}
CELLS = {"attention": "self_attention", "ssru": "ssru", "aan": "aan"}


@dataclass
class VariantConfig:
    vocab_size: int
    source_vocab_size: int = 0
    d_model: int = 16
    heads: int = 2
    decoder_heads: int = 0             # 0: as the encoder
    head_width: int = 0                # 0: d_model / heads
    query_scale: float = 0.0           # 0: 1 / sqrt(head width)
    ffn_dim: int = 20
    decoder_ffn_dim: int = 0
    encoder_layers: int = 1
    decoder_layers: int = 1
    norm: str = "post"                 # post | pre | both | none
    decoder_norm: str = ""             # "": as the encoder
    norm_kind: str = "layer"           # layer | rms
    norm_eps: float = 1e-6
    residual: str = "sum"              # sum | apart | none
    encoder_final_norm: bool = False
    decoder_final_norm: bool = False
    activation: str = "relu"
    gated: bool = False
    attention_output: bool = True
    bias: bool = True
    output_bias: bool = True
    positions: str = "none"            # none | relative | learned
    position_offset: int = 0
    decoder_position_offset: int = 0
    max_positions: int = 40
    decoder_max_positions: int = 30
    relative_buckets: int = 8
    relative_distance: int = 12
    relative_per_layer: bool = False
    scale_embedding: bool = False
    tied: str = "all"
    decoder_cell: str = "attention"
    aan_ffn_dim: int = 0
    aan_activation: str = ""
    aan_gate: bool = True
    rnn_output: bool = False
    encoder_tied: list = field(default_factory=list)       # layer i has the tensors of layer encoder_tied[i]
    decoder_tied: list = field(default_factory=list)
    dropout: float = 0.0

    def __post_init__(self):
        self.source_vocab_size = self.source_vocab_size or self.vocab_size
        self.decoder_heads = self.decoder_heads or self.heads
        self.decoder_norm = self.decoder_norm or self.norm
        self.decoder_ffn_dim = self.decoder_ffn_dim or self.ffn_dim
        self.aan_ffn_dim = self.aan_ffn_dim or self.decoder_ffn_dim
        self.aan_activation = self.aan_activation or self.activation
        self.encoder_tied = self.encoder_tied or list(range(self.encoder_layers))
        self.decoder_tied = self.decoder_tied or list(range(self.decoder_layers))

    def to_dict(self):
        return asdict(self)


class RMSNorm(nn.Module):
    def __init__(self, d, eps):
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(d)), None, eps

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight


def make_norm(config):
    kind = RMSNorm if config.norm_kind == "rms" else nn.LayerNorm
    return kind(config.d_model, eps=config.norm_eps)


def bucket(ahead, both_ways, buckets, distance):
    """Of a key that stands `ahead` places behind its query; in single precision, as T5 computes it."""
    ahead = torch.as_tensor(ahead)
    first = torch.zeros_like(ahead)
    if both_ways:
        buckets //= 2
        first = (ahead > 0).long() * buckets
        apart = ahead.abs()
    else:
        apart = -torch.minimum(ahead, torch.zeros_like(ahead))
    near = buckets // 2
    far = torch.log(apart.clamp(min=1).float() / near) / math.log(distance / near) * (buckets - near)
    return first + torch.where(apart < near, apart, (near + far.long()).clamp(max=buckets - 1))


class Relative(nn.Module):
    def __init__(self, config, heads, both_ways):
        super().__init__()
        self.config, self.both_ways = config, both_ways
        self.weight = nn.Parameter(torch.zeros(config.relative_buckets, heads))

    def forward(self, length):
        at = torch.arange(length)
        rows = bucket(at[None] - at[:, None], self.both_ways, self.config.relative_buckets, self.config.relative_distance)
        return self.weight[rows].permute(2, 0, 1)[None]                 # [1, H, T, T]


class Attention(nn.Module):
    def __init__(self, config, heads):
        super().__init__()
        width = config.head_width or config.d_model // heads
        self.heads, self.scale = heads, config.query_scale or 1 / math.sqrt(width)
        for name in "qkv":
            setattr(self, name, nn.Linear(config.d_model, heads * width, bias=config.bias))
        if config.attention_output:
            self.o = nn.Linear(heads * width, config.d_model, bias=config.bias)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def queries(self, x):
        """Scaled so that 1 / sqrt(head width) may follow."""
        q = self.split(self.q(x))
        return q * (self.scale * math.sqrt(q.size(-1)))

    def keys_values(self, memory):
        return self.split(self.k(memory)), self.split(self.v(memory))

    def cross(self, x, k, v, mask, bias=None):
        q = self.queries(x)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        scores = (scores if bias is None else scores + bias).masked_fill(~mask, float("-inf"))
        out = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.o(out) if hasattr(self, "o") else out


class SSRU(nn.Module):
    def __init__(self, config):
        super().__init__()
        d = config.d_model
        self.w, self.wf = nn.Linear(d, d, bias=False), nn.Linear(d, d)
        if config.rnn_output:
            self.o = nn.Linear(d, d)

    def forward(self, x):
        cell, out = torch.zeros_like(x[:, 0]), []
        for t in range(x.size(1)):
            gate = torch.sigmoid(self.wf(x[:, t]))
            cell = gate * cell + (1 - gate) * self.w(x[:, t])
            out.append(F.relu(cell))
        out = torch.stack(out, 1)
        return self.o(out) if hasattr(self, "o") else out


class AAN(nn.Module):
    def __init__(self, config):
        super().__init__()
        d, self.act = config.d_model, ACTIVATIONS[config.aan_activation]
        self.fc1, self.fc2 = nn.Linear(d, config.aan_ffn_dim), nn.Linear(config.aan_ffn_dim, d)
        if config.aan_gate:
            self.gate = nn.Linear(2 * d, 2 * d)

    def forward(self, x):
        mean = x.cumsum(1) / torch.arange(1, x.size(1) + 1, dtype=x.dtype)[:, None]
        y = self.fc2(self.act(self.fc1(mean)))
        if not hasattr(self, "gate"):
            return y
        i, f = torch.sigmoid(self.gate(torch.cat([x, y], -1))).chunk(2, -1)
        return i * x + f * y


class Layer(nn.Module):
    """Of either side; a decoder's has attention over the memory, too."""

    def __init__(self, config, decoder, number):
        super().__init__()
        self.config, self.place = config, config.decoder_norm if decoder else config.norm
        heads, inner = ((config.decoder_heads, config.decoder_ffn_dim) if decoder else (config.heads, config.ffn_dim))
        cell = config.decoder_cell if decoder else "attention"
        if cell == "attention":
            self.self_attn = Attention(config, heads)
            if config.positions == "relative" and (number == 0 or config.relative_per_layer):
                self.relative = Relative(config, heads, not decoder)
        else:
            setattr(self, cell, SSRU(config) if cell == "ssru" else AAN(config))
        self.fc1 = nn.Linear(config.d_model, inner, bias=config.bias)
        if config.gated:
            self.factor = nn.Linear(config.d_model, inner, bias=config.bias)
        self.fc2 = nn.Linear(inner, config.d_model, bias=config.bias)
        names = ["self", "cross", "ffn"] if decoder else ["self", "ffn"]
        if decoder:
            self.cross_attn = Attention(config, heads)
        for name in names:
            if self.place != "none":
                setattr(self, f"{name}_norm", make_norm(config))
            if self.place == "both":
                setattr(self, f"{name}_post_norm", make_norm(config))

    def before(self, x, name):
        return getattr(self, f"{name}_norm")(x) if self.place in ("pre", "both") else x

    def after(self, x, u, name):
        behind = {"post": f"{name}_norm", "both": f"{name}_post_norm"}.get(self.place)
        norm = getattr(self, behind) if behind else lambda y: y
        if self.config.residual == "apart":
            return x + norm(u)
        return norm(x + u if self.config.residual == "sum" else u)

    def first(self, inner, seen, bias):
        for name in ("ssru", "aan"):
            if hasattr(self, name):
                return getattr(self, name)(inner)
        k, v = self.self_attn.keys_values(inner)
        return self.self_attn.cross(inner, k, v, seen, bias)

    def feed(self, x):
        y = ACTIVATIONS[self.config.activation](self.fc1(x))
        return self.fc2(y * self.factor(x) if self.config.gated else y)

    def forward(self, x, seen, bias, memory=None, mask=None):
        x = self.after(x, self.first(self.before(x, "self"), seen, bias), "self")
        if memory is not None:
            k, v = self.cross_attn.keys_values(memory)
            x = self.after(x, self.cross_attn.cross(self.before(x, "cross"), k, v, mask), "cross")
        return self.after(x, self.feed(self.before(x, "ffn")), "ffn")


def make_layers(config, decoder):
    tied = config.decoder_tied if decoder else config.encoder_tied
    made = []
    for number, of in enumerate(tied):
        made.append(Layer(config, decoder, number) if of == number else made[of])
    return nn.ModuleList(made)


class Variant(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        d = config.d_model
        self.embedding = nn.Parameter(torch.randn(config.vocab_size, d))
        if config.tied != "all":
            self.source_embedding = nn.Parameter(torch.randn(config.source_vocab_size, d))
        if config.tied == "none":
            self.output = nn.Parameter(torch.randn(config.vocab_size, d))
        if config.output_bias:
            self.output_bias = nn.Parameter(torch.zeros(config.vocab_size))
        if config.positions == "learned":
            self.source_positions = nn.Parameter(torch.randn(config.max_positions + config.position_offset, d))
            self.target_positions = nn.Parameter(
                torch.randn(config.decoder_max_positions + config.decoder_position_offset, d))
        self.encoder, self.decoder = make_layers(config, False), make_layers(config, True)
        for side in ("encoder", "decoder"):
            if getattr(config, f"{side}_final_norm"):
                setattr(self, f"{side}_norm", make_norm(config))

    @property
    def pad(self):
        return self.config.vocab_size

    @property
    def source_pad(self):
        return self.config.source_vocab_size

    def embed(self, ids, source):
        c = self.config
        table = self.source_embedding if source and c.tied != "all" else self.embedding
        inside = (ids != table.size(0))[..., None]
        x = table[ids.clamp(max=table.size(0) - 1)] * inside * (math.sqrt(c.d_model) if c.scale_embedding else 1.0)
        if c.positions != "learned":
            return x
        rows, first = ((self.source_positions, c.position_offset) if source
                       else (self.target_positions, c.decoder_position_offset))
        return x + rows[first:first + ids.size(1)]

    def walk(self, x, layers, seen, *memory):
        bias = None
        for layer in layers:
            bias = layer.relative(x.size(1)) if hasattr(layer, "relative") else bias
            x = layer(x, seen, bias, *memory)
        return x

    def encode(self, source):
        mask = (source != self.source_pad)[:, None, None, :]
        x = self.walk(self.embed(source, True), self.encoder, mask)
        return (self.encoder_norm(x) if self.config.encoder_final_norm else x), mask

    def forward(self, source, target_in):
        memory, mask = self.encode(source)
        seen = torch.ones(target_in.size(1), target_in.size(1), dtype=torch.bool).tril()
        x = self.walk(self.embed(target_in, False), self.decoder, seen, memory, mask)
        return self.decoder_norm(x) if self.config.decoder_final_norm else x

    def logits(self, hidden):
        rows = self.output if self.config.tied == "none" else self.embedding
        return F.linear(hidden, rows, self.output_bias if self.config.output_bias else None)


def settings(out, module):
    """dragoman.transformer.*"""
    c, key = module.config, "dragoman.transformer"
    for name, value in (("d_model", c.d_model), ("heads", c.heads), ("decoder_heads", c.decoder_heads),
                        ("head_width", c.head_width), ("ffn", c.ffn_dim), ("decoder_ffn", c.decoder_ffn_dim),
                        ("aan_ffn", c.aan_ffn_dim), ("encoder_layers", c.encoder_layers),
                        ("decoder_layers", c.decoder_layers), ("position_offset", c.position_offset),
                        ("decoder_position_offset", c.decoder_position_offset)):
        if value or name.endswith("offset"):
            out.u32(f"{key}.{name}", value)
    if c.positions == "relative":
        out.u32(f"{key}.relative_buckets", c.relative_buckets)
        out.u32(f"{key}.relative_distance", c.relative_distance)
    if c.query_scale:
        out.f32(f"{key}.query_scale", c.query_scale)
    out.f32(f"{key}.norm_eps", c.norm_eps)
    for name in ("norm", "decoder_norm", "norm_kind", "residual", "activation", "aan_activation", "positions"):
        out.string(f"{key}.{name}", getattr(c, name))
    out.string(f"{key}.decoder", CELLS[c.decoder_cell])
    for name in ("gated", "attention_output", "scale_embedding", "aan_gate", "rnn_output", "encoder_final_norm",
                 "decoder_final_norm"):
        out.bool(f"{key}.{name}", getattr(c, name))
    for side in ("encoder", "decoder"):
        tied = getattr(c, f"{side}_tied")
        if tied != list(range(len(tied))):
            out.i32s(f"{key}.{side}_tied", tied)


def named(name, layer):
    yield f"{name}.weight", layer.weight
    if layer.bias is not None:
        yield f"{name}.bias", layer.bias


def layer_parts(layer):
    """(name in the file, module)"""
    for block, name in (("self_attn", "self"), ("cross_attn", "cross")):
        for part in "qkvo" if hasattr(layer, block) else "":
            if hasattr(getattr(layer, block), part):
                yield f"{name}.{part}", getattr(getattr(layer, block), part)
    for block, parts in (("ssru", (("w", "rnn.w"), ("wf", "rnn.f"), ("o", "rnn.o"))),
                         ("aan", (("fc1", "aan.in"), ("fc2", "aan.out"), ("gate", "aan.gate")))):
        for part, name in parts if hasattr(layer, block) else ():
            if hasattr(getattr(layer, block), part):
                yield name, getattr(getattr(layer, block), part)
    first = "rnn" if hasattr(layer, "ssru") else "aan" if hasattr(layer, "aan") else "self"
    for part, name in (("fc1", "ffn.in"), ("factor", "ffn.factor"), ("fc2", "ffn.out"), ("self_norm", f"{first}.norm"),
                       ("self_post_norm", f"{first}.post_norm"), ("cross_norm", "cross.norm"),
                       ("cross_post_norm", "cross.post_norm"), ("ffn_norm", "ffn.norm"),
                       ("ffn_post_norm", "ffn.post_norm")):
        if hasattr(layer, part):
            yield name, getattr(layer, part)


def tensors(module):
    c = module.config
    yield "src.embed", module.embedding if c.tied == "all" else module.source_embedding
    if c.tied != "all":
        yield "tgt.embed", module.embedding
    if c.tied == "none":
        yield "out.weight", module.output
    if c.output_bias:
        yield "out.bias", module.output_bias
    if c.positions == "learned":
        yield "enc.pos", module.source_positions
        yield "dec.pos", module.target_positions
    for side, layers, tied in (("enc", module.encoder, c.encoder_tied), ("dec", module.decoder, c.decoder_tied)):
        for number, layer in enumerate(layers):
            if tied[number] != number:
                continue
            if hasattr(layer, "relative"):
                yield f"{side}.{number}.self.rel", layer.relative.weight
            for name, part in layer_parts(layer):
                yield from named(f"{side}.{number}.{name}", part)
    for side, name in (("encoder", "enc.norm"), ("decoder", "dec.norm")):
        if hasattr(module, f"{side}_norm"):
            yield from named(name, getattr(module, f"{side}_norm"))
