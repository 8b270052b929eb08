# SPDX-License-Identifier: MIT
"""The Transformer in every variant that the C engine runs.

One TransformerConfig states the variant; the module below is the reference for the exporter and for the fixtures of
the C tests. It is used by train.py (teacher-forced), search.py (cached, one position at a time) and export.py
(parameter names). It runs on PyTorch 1.13 (attention written out) and on current PyTorch (fused attention; each layer
may be compiled by the caller with layer.compile(dynamic=True)).

Shapes:  B sentences, S source and T target positions, D model, H heads, K = D / H, F inner, V target vocabulary.
Ids:     a source ends with </s>; id V (one past the last row) pads both sides and is also the decoder's start symbol.
         V has no row in an embedding: it stands for a zero vector, or for the parameter `start` if that is learned.
Order:   post-norm  x = norm(x + sublayer(x));  pre-norm  x = x + sublayer(norm(x)) and a final norm on each stack.
Signal:  token * sqrt(D) (if scaled) + position, then the optional embedding norm, then dropout.
SSRU:    x = in W, f = sigmoid(in Wf + bf), c' = f * c + (1 - f) * x, out = relu(c'); no projection; c starts at 0.
AAN:     m = mean of all inputs up to here, y = W2 act(W1 m), [i; f] = sigmoid(G [in; y]), out = i * in + f * y.
Pairs:   with tokens_per_step 2 the decoder reads flat pairs (fold.py). Attention: both of a pair see each other and all
         pairs before. SSRU: each token makes its c' from the cell of the pair before; the pair's cell is their mean, and
         both put out relu of it. AAN: m is the mean up to and with the pair. The last two rows are EOD and BOS.
"""
import math
from dataclasses import asdict, dataclass, fields

import torch
import torch.nn as nn
import torch.nn.functional as F

from . import fold, moe, step_attention

ACTIVATIONS = ("relu", "swish", "gelu", "gelu_tanh")
FUSED = hasattr(F, "scaled_dot_product_attention")
POSITIONS = ("sinusoidal", "sinusoidal_marian", "learned", "none")


@dataclass
class TransformerConfig:
    vocab_size: int                    # target rows; source rows too unless source_vocab_size says otherwise
    source_vocab_size: int = 0         # 0: same vocabulary as the target
    d_model: int = 256
    ffn_dim: int = 1536
    decoder_ffn_dim: int = 0           # 0: same as ffn_dim
    heads: int = 8
    encoder_layers: int = 6
    decoder_layers: int = 2
    norm: str = "post"                 # post | pre
    norm_eps: float = 1e-5
    activation: str = "relu"           # relu | swish | gelu (erf) | gelu_tanh
    relu_clip: float = 0.0             # with relu: clip activations to [0, relu_clip]; 0 = no clipping
    positions: str = "sinusoidal"      # sinusoidal (10000^(2i/D)) | sinusoidal_marian (see position_table) | learned | none
    position_offset: int = 0           # first position's row (M2M-style models start at 2)
    max_positions: int = 1024
    tied: str = "all"                  # all (source = target = output) | target (target = output) | none
    scale_embedding: bool = True       # multiply tokens by sqrt(D)
    embedding_norm: bool = False       # layer norm on token + position, on both sides
    start: str = "zero"                # zero | learned: the decoder's first input vector (before scaling)
    bias: bool = True                  # biases in attention and feed-forward
    output_bias: bool = True           # bias on the logits
    decoder_cell: str = "attention"    # attention | ssru | aan
    tokens_per_step: int = 1           # 2: pairs; vocab_size counts EOD and BOS, the last two rows
    order: str = "l2r"                 # l2r | r2l | bidirectional (pairs only)
    moe_experts: int = 0               # experts of a mixture (moe.py); 0: plain feed-forward layers everywhere
    moe_top: int = 2                   # of them chosen for a row: 1 or 2
    moe_encoder_every: int = 0         # layers n, 2n, ... of the encoder have experts; 0: none
    moe_decoder_every: int = 0
    moe_normalise: bool = True         # weights of the chosen sum to 1
    moe_scale: float = 1.0             # times this
    moe_gate_bias: bool = False
    moe_capacity: float = 1.25         # training: places of an expert, times the mean load; 0: as many as needed
    alignment_layer: int = -1          # decoder layer whose cross-attention head 0 aligns; negative: from the end
    dropout: float = 0.1

    def __post_init__(self):
        choices = (("norm", ("post", "pre")), ("activation", ACTIVATIONS), ("positions", POSITIONS),
                   ("tied", ("all", "target", "none")), ("start", ("zero", "learned")),
                   ("decoder_cell", ("attention", "ssru", "aan")))
        for name, allowed in choices:
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}: {getattr(self, name)!r} is not one of {', '.join(allowed)}")
        if self.moe_experts and not 1 <= self.moe_top <= min(2, self.moe_experts):
            raise ValueError(f"moe_top: {self.moe_top} is not 1 or 2")
        if (self.moe_encoder_every or self.moe_decoder_every) and self.moe_experts < 2:
            raise ValueError(f"moe_experts: {self.moe_experts} is not at least 2")
        if self.d_model % self.heads or self.d_model % 2:
            raise ValueError(f"d_model {self.d_model} must be even and divisible by heads {self.heads}")
        fold.check(self.order, self.tokens_per_step)
        self.source_vocab_size = self.source_vocab_size or self.vocab_size
        self.decoder_ffn_dim = self.decoder_ffn_dim or self.ffn_dim
        if self.tied == "all" and self.source_vocab_size != self.vocab_size:
            raise ValueError("tied: all needs one vocabulary for both sides")

    @classmethod
    def from_dict(cls, values):
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"unknown model setting: {', '.join(unknown)}")
        return cls(**values)

    def to_dict(self):
        return asdict(self)


def position_table(config):
    """[max_positions, D] of one of the two sinusoidal conventions (first half sine, second half cosine), or zeros."""
    if config.positions == "none":
        return torch.zeros(config.max_positions, config.d_model)
    half = config.d_model // 2
    i = torch.arange(half, dtype=torch.float64)
    if config.positions == "sinusoidal":
        rate = torch.pow(torch.tensor(10000.0, dtype=torch.float64), -2.0 * i / config.d_model)
    else:
        rate = torch.exp(-i * (math.log(10000.0) / max(half - 1, 1)))
    row = torch.arange(config.max_positions, dtype=torch.float64) + config.position_offset
    angle = row[:, None] * rate[None, :]
    return torch.cat([angle.sin(), angle.cos()], dim=1).float()


def activate(x, config):
    if config.activation == "relu":
        return x.clamp(0.0, config.relu_clip) if config.relu_clip > 0 else F.relu(x)
    if config.activation == "swish":
        return F.silu(x)
    if config.activation == "gelu":
        return F.gelu(x)
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


def attention(q, k, v, mask=None, causal=False):
    """softmax(q k^T / sqrt(K)) v with [B, H, *, K] inputs; mask is boolean, True = may be seen, broadcastable."""
    if FUSED:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))            # [B, H, T, S]
    if causal:
        mask = torch.ones(q.size(2), k.size(2), dtype=torch.bool, device=q.device).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ v


def attention_step(q, k, v, mask=None, rows=None):
    """The same for the few queries of one decoder position; rows [B, T]: where position t of row b is kept."""
    if step_attention.usable(q):
        return step_attention.attend(q, k, v, mask, rows)
    if rows is not None:
        at = torch.arange(k.size(2), device=k.device)
        k, v = (x.transpose(1, 2)[rows.long(), at].transpose(1, 2) for x in (k, v))
    return attention(q, k, v, mask)


class Rows(torch.autograd.Function):
    """table[ids] whose gradient is one scatter-add: no sort, no host wait, so it can be part of a CUDA graph."""

    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table.index_select(0, ids.reshape(-1)).view(*ids.shape, -1)

    @staticmethod
    def backward(ctx, grad):
        ids, = ctx.saved_tensors
        total = grad.new_zeros(ctx.shape)
        return total.index_add_(0, ids.reshape(-1), grad.reshape(-1, ctx.shape[1])), None


def linear(rows_in, rows_out, bias, gain=1.0):
    layer = nn.Linear(rows_in, rows_out, bias=bias)
    nn.init.xavier_uniform_(layer.weight, gain=gain)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


class Attention(nn.Module):
    """Multi-head attention; q, k, v, o are plain [D, D] layers. Products with the same input are done as one."""

    def __init__(self, config):
        super().__init__()
        d, bias = config.d_model, config.bias
        self.heads = config.heads
        # q, k, v start as slices of one [3D, D] Xavier matrix would: gain 1/sqrt(2) of a square one
        self.q = linear(d, d, bias, 1 / math.sqrt(2))
        self.k = linear(d, d, bias, 1 / math.sqrt(2))
        self.v = linear(d, d, bias, 1 / math.sqrt(2))
        self.o = linear(d, d, bias)
        self.fused = {}                                                 # joined weights, see fuse()

    def fuse(self):
        """Joins weights that share an input, for decoding: the parameters must not change any more."""
        for group in ((self.q, self.k, self.v), (self.k, self.v)):
            self.fused[len(group)] = self.join(group)

    @staticmethod
    def join(layers):
        weight = torch.cat([layer.weight for layer in layers])
        return weight, torch.cat([layer.bias for layer in layers]) if layers[0].bias is not None else None

    def split(self, x):                                                 # [B, T, D] -> [B, H, T, K]
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def queries(self, x):
        return self.split(self.q(x))

    def project(self, x, *layers):
        weight, bias = self.fused.get(len(layers)) or self.join(layers)
        return [self.split(part) for part in F.linear(x, weight, bias).chunk(len(layers), -1)]

    def keys_values(self, memory):
        return self.project(memory, self.k, self.v)

    def self_project(self, x):
        return self.project(x, self.q, self.k, self.v)

    def merge(self, heads):                                             # [B, H, T, K] -> [B, T, D], then o
        b, h, t, k = heads.shape
        return self.o(heads.transpose(1, 2).reshape(b, t, h * k))

    def cross(self, x, k, v, mask, attend=attention):
        return self.merge(attend(self.split(self.q(x)), k, v, mask))

    def alignment(self, x, k, mask):
        """log of head 0's weights, [B, T, S] in f32."""
        width = k.size(-1)
        bias = self.q.bias[:width] if self.q.bias is not None else None
        q = F.linear(x, self.q.weight[:width], bias)                    # [B, T, K]
        scores = (q @ k[:, 0].transpose(-1, -2)).float() / math.sqrt(width)
        return scores.masked_fill(~mask[:, 0], -1e9).log_softmax(-1)


def by_step(x, tokens):
    """[B, T, D] -> [B, T / tokens, D]: means over the tokens of a step."""
    return x if tokens == 1 else x.view(x.size(0), -1, tokens, x.size(-1)).mean(2)


def for_tokens(x, tokens):
    """The way back: every token of a step gets its step's vector."""
    return x if tokens == 1 else x.repeat_interleave(tokens, 1)


class SSRU(nn.Module):
    """Simpler simple recurrent unit: the decoder's sub-layer in place of self-attention."""

    def __init__(self, config):
        super().__init__()
        self.tokens = config.tokens_per_step
        self.w = linear(config.d_model, config.d_model, False)
        self.wf = linear(config.d_model, config.d_model, True)

    def forward(self, x):
        """All positions: c_t = f_t c_{t-1} + b_t by a scan that doubles its reach, log2(T) steps."""
        gate = torch.sigmoid(self.wf(x).float())                        # [B, T, D]
        cell = by_step((1.0 - gate) * self.w(x).float(), self.tokens)
        gate, reach = by_step(gate, self.tokens), 1
        while reach < cell.size(1):
            cell = cell + gate * F.pad(cell[:, :-reach], (0, 0, reach, 0))
            gate = gate * F.pad(gate[:, :-reach], (0, 0, reach, 0))
            reach *= 2
        return for_tokens(F.relu(cell).to(x.dtype), self.tokens)

    def step(self, x, cell):
        """One step: x [B, tokens, D], cell [B, D] -> output [B, tokens, D], new cell."""
        gate = torch.sigmoid(self.wf(x).float())
        cell = by_step(gate * cell[:, None] + (1.0 - gate) * self.w(x).float(), self.tokens)
        return for_tokens(F.relu(cell).to(x.dtype), self.tokens), cell[:, 0]


class AAN(nn.Module):
    """Average attention (Zhang et al. 2018): the mean of all inputs so far, transformed and gated."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.fc1 = linear(config.d_model, config.decoder_ffn_dim, config.bias)
        self.fc2 = linear(config.decoder_ffn_dim, config.d_model, config.bias)
        self.gate = linear(2 * config.d_model, 2 * config.d_model, True)

    def close(self, x, mean):
        y = self.fc2(activate(self.fc1(for_tokens(mean.to(x.dtype), self.config.tokens_per_step)), self.config))
        i, f = torch.sigmoid(self.gate(torch.cat([x, y], -1))).chunk(2, -1)
        return i * x + f * y

    def forward(self, x):
        total = by_step(x.float(), self.config.tokens_per_step).cumsum(1)
        count = torch.arange(1, total.size(1) + 1, device=x.device, dtype=total.dtype)
        return self.close(x, total / count[:, None])

    def step(self, x, total, t):
        """One step t: x [B, tokens, D], total [B, D] of the steps' means so far -> output, new total."""
        total = total + by_step(x.float(), self.config.tokens_per_step)[:, 0]
        return self.close(x, total[:, None] / (t + 1)), total


class Sublayers(nn.Module):
    """What encoder and decoder layers share: feed-forward, residual order, dropout."""

    def __init__(self, config, ffn_dim, experts=False):
        super().__init__()
        self.config = config
        self.self_norm = nn.LayerNorm(config.d_model, eps=config.norm_eps)
        if experts:
            self.experts = moe.Experts(config, ffn_dim, activate)
        else:
            self.fc1 = linear(config.d_model, ffn_dim, config.bias)
            self.fc2 = linear(ffn_dim, config.d_model, config.bias)
        self.ffn_norm = nn.LayerNorm(config.d_model, eps=config.norm_eps)

    def before(self, x, norm):
        return norm(x) if self.config.norm == "pre" else x

    def after(self, x, update, norm):
        x = x + F.dropout(update, self.config.dropout, self.training)
        return norm(x) if self.config.norm == "post" else x

    def feed_forward(self, x, real=None):
        """real: which rows are no padding, for experts."""
        if hasattr(self, "experts"):
            return self.after(x, self.experts(self.before(x, self.ffn_norm), real), self.ffn_norm)
        inner = activate(self.fc1(self.before(x, self.ffn_norm)), self.config)
        return self.after(x, self.fc2(inner), self.ffn_norm)


class EncoderLayer(Sublayers):
    def __init__(self, config, number=0):
        super().__init__(config, config.ffn_dim, moe.has_experts(config.moe_encoder_every, number))
        self.self_attn = Attention(config)

    def forward(self, x, mask):                                         # [B, S, D], [B, 1, 1, S]
        q, k, v = self.self_attn.self_project(self.before(x, self.self_norm))
        x = self.after(x, self.self_attn.merge(attention(q, k, v, mask)), self.self_norm)
        return self.feed_forward(x, mask[:, 0, 0])


class DecoderLayer(Sublayers):
    def __init__(self, config, number=0):
        super().__init__(config, config.decoder_ffn_dim, moe.has_experts(config.moe_decoder_every, number))
        if config.decoder_cell == "ssru":
            self.ssru = SSRU(config)
        elif config.decoder_cell == "aan":
            self.aan = AAN(config)
        else:
            self.self_attn = Attention(config)
        self.cross_attn = Attention(config)
        self.cross_norm = nn.LayerNorm(config.d_model, eps=config.norm_eps)

    def forward(self, x, memory, mask, align=False, seen=None, real=None):
        """[B, T, D] -> [B, T, D], and with align also the log weights of cross-attention head 0.

        seen: which positions each one sees, boolean, broadcastable to [B, H, T, T]; None: itself and those before.
        real: which positions are no padding, for experts."""
        inner = self.before(x, self.self_norm)
        if self.config.decoder_cell == "ssru":
            update = self.ssru(inner)
        elif self.config.decoder_cell == "aan":
            update = self.aan(inner)
        else:
            q, k, v = self.self_attn.self_project(inner)
            update = self.self_attn.merge(attention(q, k, v, seen, causal=seen is None))
        x = self.after(x, update, self.self_norm)
        k, v = self.cross_attn.keys_values(memory)
        inner = self.before(x, self.cross_norm)
        weights = self.cross_attn.alignment(inner, k, mask) if align else None
        x = self.feed_forward(self.after(x, self.cross_attn.cross(inner, k, v, mask), self.cross_norm), real)
        return (x, weights) if align else x

    def step(self, x, state, t, cross_k, cross_v, mask, rows=None):
        """Step t for every row of x [N, tokens, D]. state: {k, v} [N, H, room, K], in place, or {cell} [N, D]. rows [N, room]:
        the row of k and v that holds each position of a hypothesis; None: its own.

        The memory may have fewer rows than x: row n then belongs to sentence n // (N / rows), as in a beam, and a
        sentence's hypotheses are queries of one product.
        """
        inner = self.before(x, self.self_norm)
        if self.config.decoder_cell == "ssru":
            update, state["cell"] = self.ssru.step(inner, state["cell"])
        elif self.config.decoder_cell == "aan":
            update, state["cell"] = self.aan.step(inner, state["cell"], t)
        else:
            q, k, v = self.self_attn.self_project(inner)
            first, end = t * x.size(1), (t + 1) * x.size(1)
            state["k"][:, :, first:end] = k
            state["v"][:, :, first:end] = v
            held = rows[:, :end] if rows is not None else None
            update = self.self_attn.merge(attention_step(q, state["k"][:, :, :end], state["v"][:, :, :end], rows=held))
        x = self.after(x, update, self.self_norm)
        inner = self.before(x, self.cross_norm).view(cross_k.size(0), -1, x.size(-1))
        update = self.cross_attn.cross(inner, cross_k, cross_v, mask, attention_step).view(x.shape)
        return self.feed_forward(self.after(x, update, self.cross_norm))


class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        d, std = config.d_model, config.d_model ** -0.5
        self.embedding = nn.Parameter(torch.randn(config.vocab_size, d) * std)          # target (and shared) rows
        if config.tied != "all":
            self.source_embedding = nn.Parameter(torch.randn(config.source_vocab_size, d) * std)
        if config.tied == "none":
            self.output = nn.Parameter(torch.randn(config.vocab_size, d) * std)
        if config.output_bias:
            self.output_bias = nn.Parameter(torch.zeros(config.vocab_size))
        if config.start == "learned":
            self.start = nn.Parameter(torch.randn(d) * std)
        if config.positions == "learned":
            rows = config.max_positions + config.position_offset
            self.source_positions = nn.Parameter(torch.randn(rows, d) * 0.02)
            self.target_positions = nn.Parameter(torch.randn(rows, d) * 0.02)
        else:
            self.register_buffer("position_rows", position_table(config), persistent=False)
        if config.embedding_norm:
            self.source_embedding_norm = nn.LayerNorm(d, eps=config.norm_eps)
            self.target_embedding_norm = nn.LayerNorm(d, eps=config.norm_eps)
        self.encoder = nn.ModuleList(EncoderLayer(config, i) for i in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config, i) for i in range(config.decoder_layers))
        if config.norm == "pre":
            self.encoder_norm = nn.LayerNorm(d, eps=config.norm_eps)
            self.decoder_norm = nn.LayerNorm(d, eps=config.norm_eps)

    @property
    def pad(self):
        return self.config.vocab_size

    @property
    def source_pad(self):
        return self.config.source_vocab_size

    @property
    def eod(self):
        return self.config.vocab_size - 2

    @property
    def bos(self):
        return self.config.vocab_size - 1

    def arrange(self, target):
        """target [B, W] with </s> and padding -> decoder input and labels in this model's order."""
        c = self.config
        return fold.arrange(target, self.pad, c.order, c.tokens_per_step, self.eod, self.bos)

    def seen(self, length, device):
        """Mask of the decoder's self-attention, [T, T]; None: causal."""
        if self.config.tokens_per_step == 1 or self.config.decoder_cell != "attention":
            return None
        step = torch.div(torch.arange(length, device=device), self.config.tokens_per_step, rounding_mode="floor")
        return step[:, None] >= step[None]

    @property
    def alignment_index(self):
        return self.config.alignment_layer % self.config.decoder_layers

    def output_rows(self):
        return self.output if self.config.tied == "none" else self.embedding

    def compile_layers(self):
        """Compile every layer once for all lengths (current PyTorch only)."""
        for layer in list(self.encoder) + list(self.decoder):
            if not hasattr(layer, "experts"):                           # they leave their balance behind
                layer.compile(dynamic=True)

    def fuse_for_decoding(self):
        """Call once after loading weights, before search: fewer products a step."""
        for module in self.modules():
            if isinstance(module, Attention):
                module.fuse()
        return self.eval()

    def embed(self, ids, side, first=0, add=None):
        """Tokens + positions (+ add), [B, T] -> [B, T, D]; `first` is the position of the first column."""
        config = self.config
        source = side == "source"
        table = self.source_embedding if source and config.tied != "all" else self.embedding
        pad, scale = table.size(0), math.sqrt(config.d_model) if config.scale_embedding else 1.0
        inside = (ids != pad)[..., None]
        x = Rows.apply(table, ids.clamp(max=pad - 1)) * (inside * scale).to(table.dtype)
        if config.start == "learned" and not source:
            x = torch.where(inside, x, self.start * scale)
        if config.positions == "learned":
            rows = self.source_positions if source else self.target_positions
            first += config.position_offset
        else:
            rows = self.position_rows
        if first + ids.size(1) > rows.size(0):
            raise ValueError(f"a sentence of {first + ids.size(1)} tokens exceeds max_positions {config.max_positions}")
        x = x + rows[first:first + ids.size(1)].to(x.dtype)
        x = x if add is None else x + add
        if config.embedding_norm:
            x = (self.source_embedding_norm if source else self.target_embedding_norm)(x)
        return F.dropout(x, config.dropout, self.training)

    def encode(self, source):
        """source [B, S] -> memory [B, S, D] and its mask [B, 1, 1, S] (True = a token)."""
        mask = (source != self.source_pad)[:, None, None, :]
        x = self.embed(source, "source")
        for layer in self.encoder:
            x = layer(x, mask)
        return (self.encoder_norm(x) if self.config.norm == "pre" else x), mask

    def forward(self, source, target_in, align=False):
        """Teacher forcing: hidden vectors [B, T, D] that logits() projects; with align also [B, T, S] log weights."""
        memory, mask = self.encode(source)
        x, weights, seen = self.embed(target_in, "target"), None, self.seen(target_in.size(1), target_in.device)
        real = None
        if self.config.moe_decoder_every:
            real = target_in != self.pad                                # the start symbol is no padding
            real = torch.cat([torch.ones_like(real[:, :1]), real[:, 1:]], 1)
        for i, layer in enumerate(self.decoder):
            if align and i == self.alignment_index:
                x, weights = layer(x, memory, mask, align=True, seen=seen, real=real)
            else:
                x = layer(x, memory, mask, seen=seen, real=real)
        x = self.decoder_norm(x) if self.config.norm == "pre" else x
        return (x, weights) if align else x

    def logits(self, hidden):
        return F.linear(hidden, self.output_rows(), self.output_bias if self.config.output_bias else None)

    def start_states(self, rows, room, device, dtype):
        """Empty per-layer decoder states for `rows` hypotheses of at most `room` tokens."""
        c = self.config
        if c.decoder_cell != "attention":
            return [{"cell": torch.zeros(rows, c.d_model, device=device)} for _ in self.decoder]
        shape = (rows, c.heads, room, c.d_model // c.heads)
        return [{name: torch.zeros(shape, device=device, dtype=dtype) for name in "kv"} for _ in self.decoder]

    def step(self, tokens, t, states, cross, mask, rows=None):
        """tokens [B] (pairs: [B, 2]) of step t -> hidden [B, D] ([B, 2, D]); states change in place. cross =
        [layer](k, v) of the memory; rows as in a layer's step."""
        single = tokens.dim() == 1
        x = self.embed(tokens[:, None] if single else tokens, "target", t * (1 if single else tokens.size(1)))
        for layer, state, (k, v) in zip(self.decoder, states, cross):
            x = layer.step(x, state, t, k, v, mask, rows)
        x = self.decoder_norm(x) if self.config.norm == "pre" else x
        return x[:, 0] if single else x
