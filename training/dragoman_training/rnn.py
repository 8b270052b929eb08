# SPDX-License-Identifier: MIT
"""The attentional recurrent models in every variant that the C engine runs (docs/internals/FORMAT.md, 2.5).

One RNNConfig states the variant. An encoder of any depth (GRU or LSTM, one or both directions) gives s_1..s_S; one of
three decoders reads them. x = embedding of the previous target word, h = state, c = context:

  devlin       d_j = tanh(Wa h + Va x) . tanh(Ua s_j);  c;  h' = GRU(x and c, h), bias on the input side only
  conditional  h~ = GRU1(x, h);  e_j = v . tanh(Wq h~ + Uk s_j + b);  c;  h' = GRU2(c, h~)
  bahdanau     e_j = v . tanh(Wq h + Uk s_j + b);  c;  h' = GRU([x; c], h)

  stack        recurrent and fully connected layers above the cell: h' becomes what they make of it (rnn_stack.py)
  depth        normalised products, transitions behind cells and encoders of two stacks, on conditional (rnn_deep.py)
  read-out     t = act(Rx x + Rh h' + Rc c + b), act = identity, tanh or maxout over neighbours; without one t = h'
  start        h_0 = tanh(W mean(s) + b); the first x is a zero vector, or the row of start_token

Every GRU applies its reset gate after the product, as PyTorch's does: g = tanh(x_g + r * h_g), h' = z h + (1 - z) g.
devlin and conditional may have LSTMs instead (decoder_cell), whose cell starts as zeros or as h_0 (decoder_start). The models of Devlin 2017, all with three
bidirectional encoder layers of 512 except S7:
  S1  decoder_hidden 1024           S2  top gru 1024                  S3, S4, S6  fc 3, 7, 15 of 768, top tanh 1024
  S5  fc 7 of 768, top gru 1024     S7  LSTMs, 8 encoder layers (the first bidirectional, residuals), 7 upper layers
                                        with context and residuals
Shapes: B sentences, S source and T target positions, E embedding, W encoder output, H state, A attention, V target
vocabulary. Ids follow transformer.py: a source ends with </s>; id V (one past the last row) pads and starts.
The class offers the calls of transformer.Transformer (encode, forward, logits); step() walks one position at a time.
"""
import math
from dataclasses import asdict, dataclass, fields

import torch
import torch.nn as nn
import torch.nn.functional as F

from . import decoder_scan
from .recurrence import cell as fused_gru
from .rnn_deep import DeepConditional, DeepEncoder, DeepStack, Product
from .rnn_stack import LayeredEncoder, SourceStack, Stack, run_encoder, split_state
from .transformer import Rows

CHOICES = {"encoder_cell": ("gru", "lstm"), "decoder": ("devlin", "conditional", "bahdanau"),
           "decoder_cell": ("gru", "lstm"), "encoder_stacks": ("joined", "separate", "crossed"),
           "encoder_norm": ("none", "whole", "gates"), "decoder_norm": ("none", "whole", "gates"),
           "decoder_start": ("first", "all"), "top": ("none", "tanh", "gru"),
           "readout": ("none", "linear", "tanh", "maxout"), "tied": ("all", "target", "none")}


@dataclass
class RNNConfig:
    vocab_size: int                    # target rows; source rows too unless source_vocab_size says otherwise
    source_vocab_size: int = 0         # 0: same vocabulary as the target
    embed: int = 512
    encoder_hidden: int = 512          # of one direction
    encoder_layers: int = 1
    encoder_cell: str = "gru"          # gru | lstm
    encoder_bidirectional: bool = True
    encoder_bidirectional_layers: int = -1   # the first so many; -1: all or none, as encoder_bidirectional says
    encoder_residual: bool = False     # from some layer on, a layer's input is added to its output
    encoder_residual_from: int = 2     # that layer, from 0
    encoder_stacks: str = "joined"     # a direction sees both of the layer below, its own (separate) or the other (crossed)
    encoder_norm: str = "none"         # of cells: none | whole | gates
    encoder_transitions: int = 0       # cells without input behind every cell
    encoder_fc_layers: int = 0         # odd: fully connected layers on the encoder's output, then a tanh layer
    encoder_fc_size: int = 0
    decoder: str = "conditional"       # devlin | conditional | bahdanau
    decoder_cell: str = "gru"          # gru | lstm (not bahdanau); upper layers have the same
    decoder_norm: str = "none"         # of its cells (conditional only): none | whole | gates
    norm: bool = False                 # of attention, start and read-out (conditional only)
    norm_eps: float = 1e-5             # of whole products
    gate_norm_eps: float = 1e-5        # of gates
    decoder_transitions: int = 0       # behind the second cell of conditional
    decoder_start: str = "first"       # h_0 is the first state of the attentional cell, or of all layers and LSTM cells
    decoder_hidden: int = 512
    attention: int = 512
    upper_layers: int = 0              # recurrent layers above the attentional one
    upper_context: bool = False        # they see the context too
    upper_residual: bool = False
    upper_residual_from: int = 1       # the first upper layer with one, from 0
    upper_transitions: int = 0
    fc_layers: int = 0                 # odd: fully connected relu layers above them
    fc_size: int = 0
    top: str = "none"                  # none | tanh | gru
    top_size: int = 0
    readout: str = "tanh"              # none | linear | tanh | maxout
    readout_size: int = 0              # 0: as wide as an embedding; unused with none
    tied: str = "none"                 # all (source = target = output) | target (target = output) | none
    output_bias: bool = True
    start_token: int = -1              # id whose row is the first decoder input; -1: a zero vector
    max_positions: int = 1024          # longest sentence that training and search accept
    dropout: float = 0.1
    dropout_inside: bool = True        # also of embeddings, encoder output and layers; False: output vectors alone
    normalised_start: bool = False     # output biases start at -log V, so that log Z does at 0 (Devlin et al. 2014)
    uniform: float = 0.0               # weights and biases start uniform in +- this; 0: Xavier's spread, no biases

    def __post_init__(self):
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}: {getattr(self, name)!r} is not one of {', '.join(allowed)}")
        self.source_vocab_size = self.source_vocab_size or self.vocab_size
        self.readout_size = 0 if self.readout == "none" else self.readout_size or self.embed
        self.check_stack()
        if self.tied == "all" and self.source_vocab_size != self.vocab_size:
            raise ValueError("tied: all needs one vocabulary for both sides")
        if self.tied != "none" and self.output_width != self.embed:
            raise ValueError(f"tied: {self.tied} needs {self.output_width} outputs to be as wide as embed {self.embed}")
        if not -1 <= self.start_token < self.vocab_size:
            raise ValueError(f"start_token {self.start_token} is not in the vocabulary")

    def check_stack(self):
        if self.encoder_bidirectional_layers < 0:
            self.encoder_bidirectional_layers = self.encoder_layers if self.encoder_bidirectional else 0
        if self.encoder_bidirectional_layers > self.encoder_layers:
            raise ValueError("encoder_bidirectional_layers: there are fewer layers")
        narrows = 0 < self.encoder_bidirectional_layers < self.encoder_layers
        if self.encoder_residual and narrows and self.encoder_residual_from <= self.encoder_bidirectional_layers:
            raise ValueError("encoder_residual needs layers of one width")
        if self.decoder_cell == "lstm" and self.decoder == "bahdanau":
            raise ValueError("bahdanau has no LSTM")
        if self.deep_decoder and self.decoder != "conditional":
            raise ValueError("norms and transitions of the decoder are conditional's")
        for name in ("fc", "encoder_fc"):
            count, size = getattr(self, f"{name}_layers"), getattr(self, f"{name}_size")
            if (count and count % 2 == 0) or (count > 0) != (size > 0):
                raise ValueError(f"{name}_layers: an odd number, together with {name}_size")
        if (self.top == "none") != (self.top_size == 0):
            raise ValueError("top and top_size belong together")

    @property
    def deep_encoder(self):
        """Is the encoder one of rnn_deep.py?"""
        return bool(self.encoder_stacks != "joined" or self.encoder_norm != "none" or self.encoder_transitions
                    or (self.encoder_residual and self.encoder_residual_from != 2))

    @property
    def deep_decoder(self):
        lstm = self.decoder_cell == "lstm" and self.decoder == "conditional"
        return bool(lstm or self.decoder_norm != "none" or self.norm or self.decoder_transitions
                    or self.upper_transitions or self.upper_residual_from != 1 or self.decoder_start != "first")

    @property
    def encoder_width(self):
        return self.encoder_hidden * (2 if self.encoder_bidirectional_layers == self.encoder_layers else 1)

    @property
    def bottom_width(self):
        """Numbers of one recurrent layer's state: h, and the cell of an LSTM."""
        return self.decoder_hidden * (2 if self.decoder_cell == "lstm" else 1)

    @property
    def top_state(self):
        return self.top_size if self.top == "gru" else 0

    @property
    def state_width(self):
        return self.bottom_width * (1 + self.upper_layers) + self.top_state

    @property
    def stack_width(self):
        return self.top_size or self.fc_size or self.decoder_hidden

    @property
    def output_width(self):
        return self.readout_size or self.stack_width

    @classmethod
    def from_dict(cls, values):
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"unknown model setting: {', '.join(unknown)}")
        return cls(**values)

    def to_dict(self):
        return asdict(self)


def linear(rows_in, rows_out, bias=True, gates=1):
    """A layer of `gates` stacked square-ish matrices, each with Xavier's spread."""
    layer = nn.Linear(rows_in, rows_out, bias=bias)
    for part in layer.weight.data.chunk(gates):
        nn.init.xavier_uniform_(part)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def gru(x, h, state):
    """x, h: gate inputs [.., 3H] in the order r, z, g, biases included; state [.., H]."""
    return fused_gru(x, h, state)[0]


def lstm(x, h, cell):
    """x, h: gate inputs [.., 4H] in the order i, f, g, o; cell [.., H] -> new state and cell."""
    i, f, g, o = (x + h).chunk(4, -1)
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def context(energy, mask, memory):
    """Softmax of energy [B, S] where mask is set, and the weighted sum of memory [B, S, W]."""
    weights = energy.masked_fill(~mask, float("-inf")).softmax(-1)
    return torch.bmm(weights[:, None], memory)[:, 0], weights


class DevlinCell(nn.Module):
    def __init__(self, config):
        super().__init__()
        e, h, a, s = config.embed, config.decoder_hidden, config.attention, config.encoder_width
        gates = 4 if config.decoder_cell == "lstm" else 3
        self.hidden, self.lstm = h, config.decoder_cell == "lstm"
        self.att_h = linear(h, a, False)
        self.att_x = linear(e, a, False)
        self.att_key = linear(s, a, False)
        self.gru_x = linear(e, gates * h, True, gates)
        self.gru_c = linear(s, gates * h, False, gates)
        self.gru_h = linear(h, gates * h, False, gates)

    def keys(self, memory):
        return torch.tanh(self.att_key(memory))

    def inputs(self, x):
        return self.att_x(x), self.gru_x(x)

    def step(self, inputs, state, keys, memory, mask):
        h = state[:, :self.hidden]
        query = torch.tanh(self.att_h(h) + inputs[0])                            # [B, A]
        c, weights = context(torch.bmm(keys, query[..., None])[..., 0], mask, memory)
        x = inputs[1] + self.gru_c(c)
        if self.lstm:
            return torch.cat(lstm(x, self.gru_h(h), state[:, self.hidden:]), -1), c, weights
        return gru(x, self.gru_h(h), h), c, weights


class AdditiveAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.att_query = linear(config.decoder_hidden, config.attention, False)
        self.att_key = linear(config.encoder_width, config.attention)
        self.att_v = nn.Parameter((torch.rand(config.attention) * 2 - 1) * (3 / config.attention) ** 0.5)

    def keys(self, memory):
        return self.att_key(memory)

    def attend(self, state, keys, memory, mask):
        energy = torch.tanh(self.att_query(state)[:, None] + keys) @ self.att_v  # [B, S]
        return context(energy, mask, memory)


class ConditionalCell(AdditiveAttention):
    def __init__(self, config):
        super().__init__(config)
        e, h, s = config.embed, config.decoder_hidden, config.encoder_width
        self.gru1_x = linear(e, 3 * h, True, 3)
        self.gru1_h = linear(h, 3 * h, True, 3)
        self.gru2_x = linear(s, 3 * h, True, 3)
        self.gru2_h = linear(h, 3 * h, True, 3)

    def inputs(self, x):
        return (self.gru1_x(x),)

    def step(self, inputs, h, keys, memory, mask):
        h = gru(inputs[0], self.gru1_h(h), h)
        c, weights = self.attend(h, keys, memory, mask)
        return gru(self.gru2_x(c), self.gru2_h(h), h), c, weights


class BahdanauCell(AdditiveAttention):
    def __init__(self, config):
        super().__init__(config)
        e, h, s = config.embed, config.decoder_hidden, config.encoder_width
        self.gru_x = linear(e, 3 * h, True, 3)
        self.gru_c = linear(s, 3 * h, False, 3)
        self.gru_h = linear(h, 3 * h, True, 3)

    def inputs(self, x):
        return (self.gru_x(x),)

    def step(self, inputs, h, keys, memory, mask):
        c, weights = self.attend(h, keys, memory, mask)
        return gru(inputs[0] + self.gru_c(c), self.gru_h(h), h), c, weights


CELLS = {"devlin": DevlinCell, "conditional": ConditionalCell, "bahdanau": BahdanauCell}


class Readout(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.kind = config.readout
        rows = config.readout_size * (2 if config.readout == "maxout" else 1)
        if config.norm:
            self.x, self.h, self.c = (Product(config, width, rows, True, "whole")
                                      for width in (config.embed, config.stack_width, config.encoder_width))
            return
        self.x = linear(config.embed, rows)
        self.h = linear(config.stack_width, rows, False)
        self.c = linear(config.encoder_width, rows, False)

    def forward(self, x, h, c):
        t = self.x(x) + self.h(h) + self.c(c)
        if self.kind == "tanh":
            return torch.tanh(t)
        if self.kind == "maxout":
            return t.unflatten(-1, (-1, 2)).max(-1)[0]
        return t


class RNN(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        std = config.embed ** -0.5
        self.embedding = nn.Parameter(torch.randn(config.vocab_size, config.embed) * std)
        if config.tied != "all":
            self.source_embedding = nn.Parameter(torch.randn(config.source_vocab_size, config.embed) * std)
        if config.tied == "none":
            width = config.output_width
            self.output = nn.Parameter(torch.randn(config.vocab_size, width) * width ** -0.5)
        if config.output_bias:
            self.output_bias = nn.Parameter(torch.zeros(config.vocab_size))
        kind = nn.GRU if config.encoder_cell == "gru" else nn.LSTM
        if config.deep_encoder:
            self.encoder = DeepEncoder(config)
        elif config.encoder_residual or 0 < config.encoder_bidirectional_layers < config.encoder_layers:
            self.encoder = LayeredEncoder(config, kind)
        else:
            self.encoder = kind(config.embed, config.encoder_hidden, config.encoder_layers, batch_first=True,
                                bidirectional=config.encoder_bidirectional_layers > 0)
        if config.encoder_fc_layers:
            self.source_stack = SourceStack(config)
        self.init = Product(config, config.encoder_width, config.decoder_hidden, True, "whole") if config.norm \
            else linear(config.encoder_width, config.decoder_hidden)
        self.cell = DeepConditional(config) if config.deep_decoder else CELLS[config.decoder](config)
        if config.deep_decoder and config.upper_layers:
            self.stack = DeepStack(config)
        elif config.upper_layers or config.fc_layers or config.top != "none":
            self.stack = Stack(config)
        if config.readout != "none":
            self.readout = Readout(config)
        if config.uniform:
            for parameter in self.parameters():
                nn.init.uniform_(parameter, -config.uniform, config.uniform)
        if config.normalised_start and config.output_bias:
            self.output_bias.data -= math.log(config.vocab_size)

    def drop(self, x):
        return F.dropout(x, self.config.dropout, self.training and self.config.dropout_inside)

    @property
    def pad(self):
        return self.config.vocab_size

    @property
    def source_pad(self):
        return self.config.source_vocab_size

    def output_rows(self):
        return self.output if self.config.tied == "none" else self.embedding

    def embed(self, ids, side):
        """[B, T] ids -> [B, T, E]; the padding id is a zero vector, or start_token's row on the target side."""
        config = self.config
        source = side == "source"
        table = self.source_embedding if source and config.tied != "all" else self.embedding
        pad = table.size(0)
        if not source and config.start_token >= 0:
            ids = ids.masked_fill(ids == pad, config.start_token)
        x = Rows.apply(table, ids.clamp(max=pad - 1)) * (ids != pad)[..., None].to(table.dtype)
        return self.drop(x)

    def encode(self, source):
        """source [B, S] -> memory [B, S, W] (zero where padded) and its mask [B, S] (True = a token)."""
        mask = source != self.source_pad
        x = self.embed(source, "source")
        memory = self.encoder(x, mask, self.drop) if self.config.deep_encoder \
            else run_encoder(self.encoder, self.config, x, mask, self.drop)
        if self.config.encoder_fc_layers:
            memory = self.source_stack(memory)                                   # zeros stay zeros: no bias
        return self.drop(memory), mask

    def start(self, memory, mask):
        """[B, state width]: h_0 from the mean of the memory over real positions; all other states are zeros, or h_0
        (decoder_start)."""
        real = mask[..., None].to(memory.dtype)
        h = torch.tanh(self.init((memory * real).sum(1) / real.sum(1)))
        if self.config.decoder_start == "all":
            h = h.repeat(1, (self.config.state_width - self.config.top_state) // h.size(1))
        return F.pad(h, (0, self.config.state_width - h.size(1)))

    def forward(self, source, target_in, align=False):
        """Teacher forcing: hidden vectors [B, T, output width] that logits() projects; with align also [B, T, S] log
        attention weights."""
        memory, mask = self.encode(source)
        keys, first = self.cell.keys(memory), self.start(memory, mask)
        h = first[:, :self.config.bottom_width]
        x = self.embed(target_in, "target")                                      # [B, T, E]
        if not align and decoder_scan.usable(x, self.cell):
            states, contexts = decoder_scan.run(self.cell, self.cell.inputs(x), h, keys, memory, mask)
            return self.stacked(x, states, contexts, first)
        inputs = [part.unbind(1) for part in self.cell.inputs(x)]
        steps = []
        for t in range(target_in.size(1)):
            h, c, weights = self.cell.step([part[t] for part in inputs], h, keys, memory, mask)
            steps.append((h[:, :self.config.decoder_hidden], c, weights))
        states, contexts, weights = (torch.stack(part, 1) for part in zip(*steps))
        hidden = self.stacked(x, states, contexts, first)
        return (hidden, weights.clamp_min(1e-9).log()) if align else hidden

    def stacked(self, x, states, contexts, first):
        if hasattr(self, "stack"):
            states, _ = self.stack(self.drop(states), contexts, first)
        return self.output_vectors(x, states, contexts)

    def output_vectors(self, x, h, c):
        t = h if self.config.readout == "none" else self.readout(x, h, c)
        return F.dropout(t, self.config.dropout, self.training)

    def logits(self, hidden):
        return F.linear(hidden, self.output_rows(), self.output_bias if self.config.output_bias else None)

    def step(self, tokens, state, keys, memory, mask):
        """tokens [B] (pad = start), state [B, state width], keys = cell.keys(memory) -> output vectors, the new state,
        weights [B, S]."""
        x = self.embed(tokens[:, None], "target")[:, 0]
        bottom = split_state(self.config, state)[0]
        bottom, c, weights = self.cell.step(self.cell.inputs(x), bottom, keys, memory, mask)
        h, after = bottom[:, :self.config.decoder_hidden], []
        if hasattr(self, "stack"):
            h, after = self.stack(h[:, None], c[:, None], state)
            h = h[:, 0]
        return self.output_vectors(x, h, c), torch.cat([bottom, *after], -1), weights
