# SPDX-License-Identifier: MIT
"""What recurrent models stack on top of their attentional cell, and encoders that are more than one nn.GRU.

Stack, from the bottom state h up (each part may be absent; docs/internals/FORMAT.md, 2.5):

  upper     x_l = cell_l([x_{l-1}; c], state_l)        recurrent layers; c with upper_context, and x_{l-1} added to the
                                                       result from the third layer of the decoder on with upper_residual
  fc        h1 = relu(W1 x);  h2 = relu(W2 h1);  h3 = relu(W3 h2 + h1);  h4 = relu(W4 h3);  h5 = relu(W5 h4 + h3) ...
  top       tanh(WT h_n), or GRU(hT, h_n) with a state of its own

The skip of an odd layer >= 3 is added before the relu, which is clipped to [0, 10]. No layer of fc has a bias. States of
upper layers and of the top start as zeros. All states of a hypothesis are one vector [h | cell | upper states | top],
so that a search moves them together.
"""
import torch
import torch.nn as nn

from . import recurrence

RELU_LIMIT = 10.0


def plain_linear(rows_in, rows_out):
    layer = nn.Linear(rows_in, rows_out, bias=False)
    nn.init.xavier_uniform_(layer.weight)
    return layer


class FullyConnected(nn.Module):
    """An odd number of relu layers [F, input], [F, F] ... with skips, applied at every position."""

    def __init__(self, count, width_in, width):
        super().__init__()
        self.layers = nn.ModuleList(plain_linear(width_in if i == 0 else width, width) for i in range(count))

    def forward(self, x):
        skip = None
        for number, layer in enumerate(self.layers):
            y = layer(x)
            if number % 2 == 0:
                y = y if skip is None else y + skip
                skip = x = y.clamp(0.0, RELU_LIMIT)
            else:
                x = y.clamp(0.0, RELU_LIMIT)
        return x


def split_state(config, state):
    """[.., width] -> bottom (h and cell), the upper layers' and the top's states."""
    sizes = [config.bottom_width] + [config.bottom_width] * config.upper_layers + [config.top_state]
    return state.split(sizes, -1)


class Stack(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        h = config.decoder_hidden
        kind = nn.LSTM if config.decoder_cell == "lstm" else nn.GRU
        width = h + (config.encoder_width if config.upper_context else 0)
        self.upper = nn.ModuleList(kind(width, h, batch_first=True) for _ in range(config.upper_layers))
        width = h
        if config.fc_layers:
            self.fc = FullyConnected(config.fc_layers, h, config.fc_size)
            width = config.fc_size
        if config.top == "tanh":
            self.top = plain_linear(width, config.top_size)
        elif config.top == "gru":
            self.top = nn.GRU(width, config.top_size, batch_first=True)

    def forward(self, h, c, states=None):
        """h [B, T, H], c [B, T, W] -> [B, T, output] and the states behind the last position [B, ..]."""
        config = self.config
        if states is None:
            states = h.new_zeros(h.size(0), config.state_width - config.bottom_width)
            states = torch.cat([h.new_zeros(h.size(0), config.bottom_width), states], -1)
        _, *uppers, top = split_state(config, states)
        after = []
        for number, (layer, state) in enumerate(zip(self.upper, uppers)):
            x = torch.cat([h, c], -1) if config.upper_context else h
            held = tuple(part[None].contiguous() for part in state.chunk(2, -1)) if config.decoder_cell == "lstm" \
                else state[None].contiguous()
            y, held = layer(x, held) if config.decoder_cell == "lstm" else run_gru(layer, x, held)
            after.append(torch.cat(held, -1)[0] if config.decoder_cell == "lstm" else held[0])
            h = y + h if config.upper_residual and number > 0 else y
        if config.fc_layers:
            h = self.fc(h)
        if config.top == "tanh":
            h = torch.tanh(self.top(h))
        elif config.top == "gru":
            h, top = run_gru(self.top, h, top[None].contiguous())
            after.append(top[0])
        return h, after


class LayeredEncoder(nn.Module):
    """Layers one by one: the first few in both directions."""

    def __init__(self, config, kind):
        super().__init__()
        self.layers = nn.ModuleList()
        width = config.embed
        for number in range(config.encoder_layers):
            both = number < config.encoder_bidirectional_layers
            self.layers.append(kind(width, config.encoder_hidden, batch_first=True, bidirectional=both))
            width = config.encoder_hidden * (2 if both else 1)


def run_gru(layer, x, state):
    """layer(x, state), an nn.GRU of one layer and direction; see recurrence.py for why not on a GPU."""
    if not x.is_cuda:
        return layer(x, state)
    y, = recurrence.gru_layer(layer, [x], ["l0"], state[0])
    return y, y[None, :, -1]


def one_direction(layer, x, end):
    """x [B, S, I] -> [B, S, He] by the weights of one layer and direction of an nn.GRU or nn.LSTM."""
    weights = [getattr(layer, f"{name}_{end}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    state = x.new_zeros(1, x.size(0), layer.hidden_size)
    if isinstance(layer, nn.LSTM):
        return torch._VF.lstm(x, (state, state), weights, True, 1, 0.0, False, False, True)[0]
    return torch._VF.gru(x, state, weights, True, 1, 0.0, False, False, True)[0]


def run_encoder(encoder, config, x, mask, drop):
    """All layers on padded x [B, S, I] -> [B, S, W], zero where padded.

    Padding stands at the end, so the forward direction never sees it before a word; the backward direction runs forward
    over sentences that are turned round within their lengths. No step asks for lengths on the host, as packed sequences
    do: a training step can be captured as a CUDA graph. Residuals: a layer's input is added from the third layer on.
    """
    lengths, at = mask.sum(1, keepdim=True), torch.arange(mask.size(1), device=mask.device)[None]
    turn = torch.where(at < lengths, lengths - 1 - at, at)[..., None]                       # [B, S, 1]
    for number in range(config.encoder_layers):
        layer, index = (encoder.layers[number], 0) if isinstance(encoder, LayeredEncoder) else (encoder, number)
        inputs, ends = [x], [f"l{index}"]
        if number < config.encoder_bidirectional_layers:
            inputs, ends = inputs + [x.gather(1, turn.expand(-1, -1, x.size(2)))], ends + [f"l{index}_reverse"]
        if x.is_cuda and isinstance(layer, nn.GRU):
            outs = recurrence.gru_layer(layer, inputs, ends)
        else:
            outs = [one_direction(layer, x, end) for x, end in zip(inputs, ends)]
        out = outs[0]
        if len(outs) == 2:
            out = torch.cat([out, outs[1].gather(1, turn.expand(-1, -1, out.size(2)))], -1)
        x = out + x if config.encoder_residual and number >= 2 else out
        if number + 1 < config.encoder_layers:
            x = drop(x)
    return x * mask[..., None].to(x.dtype)


class SourceStack(nn.Module):
    """Fully connected layers on every encoder vector, back to the encoder's width: s = tanh(W h_n)."""

    def __init__(self, config):
        super().__init__()
        self.fc = FullyConnected(config.encoder_fc_layers, config.encoder_width, config.encoder_fc_size)
        self.top = plain_linear(config.encoder_fc_size, config.encoder_width)

    def forward(self, memory):
        return torch.tanh(self.top(self.fc(memory)))
