# SPDX-License-Identifier: MIT
"""Parts of recurrent models that came with Marian and Nematus (docs/internals/FORMAT.md, 2.5).

  product       y = W x + b, then perhaps layer norms: over all outputs (whole), or over the two gates and the candidate
                of a GRU apart (gates)
  transitions   cells without an input behind a cell: h_1 = cell(x, h_0), h_2 = cell_1(h_1), h_3 = cell_2(h_2) ...
  stacks        the two directions of an encoder as stacks of their own (separate), or each layer over the other
                direction below (crossed), instead of layers that see both (joined)

Cells are GRUs or LSTMs on the conditional decoder. Written for clarity: every step is one of Python's.
"""
import torch
import torch.nn as nn

from .recurrence import cell as fused_gru


class Norm(nn.Module):
    """Layer norms of parts of a vector, each by itself."""

    def __init__(self, parts, eps):
        super().__init__()
        self.parts, self.eps = parts, eps
        self.weight = nn.Parameter(torch.ones(sum(parts)))
        self.bias = nn.Parameter(torch.zeros(sum(parts)))

    def forward(self, x):
        parts = []
        for part in x.split(self.parts, -1):
            part = part - part.mean(-1, keepdim=True)
            parts.append(part / (part.square().mean(-1, keepdim=True) + self.eps).sqrt())
        return torch.cat(parts, -1) * self.weight + self.bias


class Product(nn.Linear):
    """kind: none, whole or gates."""

    def __init__(self, config, rows_in, rows_out, bias=True, kind="none"):
        super().__init__(rows_in, rows_out, bias=bias)
        nn.init.xavier_uniform_(self.weight)
        if bias:
            nn.init.zeros_(self.bias)
        self.norm = None
        if kind == "whole":
            self.norm = Norm([rows_out], config.norm_eps)
        elif kind == "gates":
            self.norm = Norm([rows_out // 3 * 2, rows_out // 3], config.gate_norm_eps)

    def forward(self, x):
        y = super().forward(x)
        return y if self.norm is None else self.norm(y)


def run_cell(gx, gh, state, lstm):
    """state [B, H], or [B, 2H] with the cell of an LSTM behind h."""
    if not lstm:
        return fused_gru(gx, gh, state)[0]
    h, cell = state.chunk(2, -1)
    i, f, g, o = (gx + gh).chunk(4, -1)
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.cat([torch.sigmoid(o) * torch.tanh(cell), cell], -1)


class Transition(nn.Module):
    def __init__(self, config, hidden, lstm, kind):
        super().__init__()
        gates = (4 if lstm else 3) * hidden
        self.h = Product(config, hidden, gates, True, kind)
        self.x = nn.Parameter(torch.zeros(gates))


class Transitions(nn.ModuleList):
    def __init__(self, config, count, hidden, lstm, kind):
        super().__init__(Transition(config, hidden, lstm, kind) for _ in range(count))
        self.hidden, self.lstm = hidden, lstm

    def forward(self, state):
        for t in self:
            gh = t.h(state[:, :self.hidden])
            state = run_cell(t.x.expand_as(gh), gh, state, self.lstm)
        return state


class Cell(nn.Module):
    def __init__(self, config, rows_in, hidden, lstm, kind, transitions):
        super().__init__()
        gates = (4 if lstm else 3) * hidden
        self.hidden, self.lstm = hidden, lstm
        self.x = Product(config, rows_in, gates, True, kind)
        self.h = Product(config, hidden, gates, True, kind)
        self.next = Transitions(config, transitions, hidden, lstm, kind)

    def forward(self, gx, state):
        return self.next(run_cell(gx, self.h(state[:, :self.hidden]), state, self.lstm))

    def walk(self, x, state):
        """x [B, T, I] -> [B, T, H] and the last state."""
        outs = []
        for gx in self.x(x).unbind(1):
            state = self(gx, state)
            outs.append(state[:, :self.hidden])
        return torch.stack(outs, 1), state


class DeepEncoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList()
        h, width = config.encoder_hidden, config.embed
        for number in range(config.encoder_layers):
            ways = 2 if number < config.encoder_bidirectional_layers else 1
            own = h if self.apart(number) else width
            self.layers.append(nn.ModuleList(
                Cell(config, own, h, config.encoder_cell == "lstm", config.encoder_norm, config.encoder_transitions)
                for _ in range(ways)))
            width = ways * h

    def apart(self, number):
        c = self.config
        return 0 < number < c.encoder_bidirectional_layers and c.encoder_stacks != "joined"

    def forward(self, x, mask, drop):
        c = self.config
        lengths, at = mask.sum(1, keepdim=True), torch.arange(mask.size(1), device=mask.device)[None]
        turn = torch.where(at < lengths, lengths - 1 - at, at)[..., None]
        for number, layer in enumerate(self.layers):
            seen = [x] * len(layer)
            if self.apart(number):
                seen = list(x.chunk(2, -1))[::-1 if c.encoder_stacks == "crossed" else 1]
            outs = []
            for way, cell in enumerate(layer):
                given = seen[way].gather(1, turn.expand(-1, -1, seen[way].size(2))) if way else seen[way]
                zero = x.new_zeros(x.size(0), c.encoder_hidden * (2 if cell.lstm else 1))
                out = cell.walk(given, zero)[0]
                outs.append(out.gather(1, turn.expand(-1, -1, out.size(2))) if way else out)
            out = torch.cat(outs, -1)
            if c.encoder_residual and number >= c.encoder_residual_from:
                out = out + (torch.cat(seen, -1) if self.apart(number) else x)
            x = drop(out) if number + 1 < c.encoder_layers else out
        return x * mask[..., None].to(x.dtype)


class DeepConditional(nn.Module):
    """The conditional decoder's cell with GRUs or LSTMs, norms and transitions."""
    deep = True

    def __init__(self, config):
        super().__init__()
        h, a, s = config.decoder_hidden, config.attention, config.encoder_width
        self.lstm, self.hidden = config.decoder_cell == "lstm", h
        gates, kind, whole = (4 if self.lstm else 3) * h, config.decoder_norm, "whole" if config.norm else "none"
        self.att_query = Product(config, h, a, False, whole)
        self.att_key = Product(config, s, a, True, whole)
        self.att_v = nn.Parameter((torch.rand(a) * 2 - 1) * (3 / a) ** 0.5)
        self.gru1_x = Product(config, config.embed, gates, True, kind)
        self.gru1_h = Product(config, h, gates, True, kind)
        self.gru2_x = Product(config, s, gates, True, kind)
        self.gru2_h = Product(config, h, gates, True, kind)
        self.gru2_next = Transitions(config, config.decoder_transitions, h, self.lstm, kind)

    def keys(self, memory):
        return self.att_key(memory)

    def inputs(self, x):
        return (self.gru1_x(x),)

    def step(self, inputs, state, keys, memory, mask):
        state = run_cell(inputs[0], self.gru1_h(state[:, :self.hidden]), state, self.lstm)
        h = state[:, :self.hidden]
        energy = torch.tanh(self.att_query(h)[:, None] + keys) @ self.att_v
        weights = energy.masked_fill(~mask, float("-inf")).softmax(-1)
        c = torch.bmm(weights[:, None], memory)[:, 0]
        return self.gru2_next(run_cell(self.gru2_x(c), self.gru2_h(h), state, self.lstm)), c, weights


class DeepStack(nn.Module):
    """Recurrent layers above the attentional cell; see rnn_stack.Stack for the others, which models of this kind have
    not."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        width = config.decoder_hidden + (config.encoder_width if config.upper_context else 0)
        self.upper = nn.ModuleList(
            Cell(config, width, config.decoder_hidden, config.decoder_cell == "lstm", config.decoder_norm,
                 config.upper_transitions) for _ in range(config.upper_layers))

    def forward(self, h, c, states):
        config, after = self.config, []
        uppers = states[:, config.bottom_width:].split(config.bottom_width, -1)
        for number, (cell, state) in enumerate(zip(self.upper, uppers)):
            out, state = cell.walk(torch.cat([h, c], -1) if config.upper_context else h, state)
            after.append(state)
            h = out + h if config.upper_residual and number >= config.upper_residual_from else out
        return h, after
