# SPDX-License-Identifier: MIT
"""A mixture of experts in the place of a Transformer's feed-forward layer.

    g = softmax(G x) over E experts, in f32        the 1 or 2 largest win
    y = scale * sum over winners of w_j (W2_j act(W1_j x + b1_j) + b2_j),   w_j = g_j, or g_j / sum of the winners' g

Used by transformer.py. The experts' matrices are stacked, [E, F, D] and [E, D, F]: rows are put into E x C places and
multiplied in two batched products. In training C = capacity * top * rows / E is known beforehand (no wait for the
device, so that a step can be a CUDA graph); rows that find no place keep their residual alone. In evaluation, as in the
C engine, C is what the fullest expert needs and nothing is dropped.

Balance: E * sum_e f_e p_e, f_e = share of rows whose first choice is e, p_e = mean of g_e. It is 1 when all experts
are used alike, and its gradient (through p) moves rows from crowded experts to empty ones. train.py adds it with
loss.balance as its weight. Padding takes no places and does not count.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Experts(nn.Module):
    def __init__(self, config, ffn_dim, activate):
        super().__init__()
        e, d = config.moe_experts, config.d_model
        self.config, self.activate = config, activate
        self.gate = nn.Linear(d, e, bias=config.moe_gate_bias)
        self.w1 = nn.Parameter(torch.empty(e, ffn_dim, d))
        self.w2 = nn.Parameter(torch.empty(e, d, ffn_dim))
        self.b1 = nn.Parameter(torch.zeros(e, ffn_dim)) if config.bias else None
        self.b2 = nn.Parameter(torch.zeros(e, d)) if config.bias else None
        nn.init.normal_(self.gate.weight, std=d ** -0.5)
        if config.moe_gate_bias:
            nn.init.zeros_(self.gate.bias)
        for expert in range(e):                                         # each as a plain layer would start
            nn.init.xavier_uniform_(self.w1[expert])
            nn.init.xavier_uniform_(self.w2[expert])
        self.balance = None                                             # of the last training pass
        self.margin = math.inf                                          # smallest gap at a choice, for fixtures

    def choose(self, rows, real):
        """rows [N, D] -> experts [top, N] and their weights; real [N] or None."""
        c = self.config
        bias = self.gate.bias
        wide = torch.promote_types(rows.dtype, torch.float32)
        with torch.autocast(rows.device.type, enabled=False):
            logits = F.linear(rows.to(wide), self.gate.weight.to(wide), bias if bias is None else bias.to(wide))
        probability = logits.softmax(-1)                                # [N, E]
        left, chosen = logits, []
        for _ in range(c.moe_top):
            chosen.append(left.argmax(-1))
            left = left.scatter(1, chosen[-1][:, None], float("-inf"))
        weight = torch.stack([probability.gather(1, best[:, None])[:, 0] for best in chosen])
        if self.training:
            share = F.one_hot(chosen[0], c.moe_experts).to(wide)
            count = real.to(wide)[:, None] if real is not None else torch.ones_like(share[:, :1])
            total = count.sum().clamp(min=1.0)
            mean = [(value * count).sum(0) / total for value in (share, probability)]
            self.balance = c.moe_experts * (mean[0].detach() * mean[1]).sum()
        else:
            best = logits.gather(1, torch.stack(chosen, 1))
            gaps = [best[:, :-1] - best[:, 1:]] if c.moe_top > 1 else []
            if c.moe_top < c.moe_experts:
                gaps.append(best[:, -1:] - left.max(-1, keepdim=True)[0])
            self.margin = min([self.margin] + [float(gap.min()) for gap in gaps])
        if c.moe_normalise:
            weight = weight / weight.sum(0).clamp(min=torch.finfo(weight.dtype).eps)
        return torch.stack(chosen), weight * c.moe_scale

    def places(self, chosen, real):
        """Row of the E * C (+ 1 for what is left out) places for each of the choices [top * N], and C."""
        c = self.config
        flat = chosen.reshape(-1)                                       # first choices first: they find room first
        taken = F.one_hot(flat, c.moe_experts)
        if real is not None:
            taken = taken * real.repeat(c.moe_top)[:, None].to(taken.dtype)
        order = (taken.cumsum(0) - taken).gather(1, flat[:, None])[:, 0]
        if self.training and c.moe_capacity > 0:
            room = math.ceil(c.moe_capacity * flat.numel() / c.moe_experts / 8) * 8
        else:
            room = max(int(taken.sum(0).max()), 1)
        inside = order < room
        if real is not None:
            inside = inside & real.repeat(c.moe_top)
        return torch.where(inside, flat * room + order, torch.full_like(flat, c.moe_experts * room)), room

    def forward(self, x, real=None):
        """x [..., D] -> the same shape; real [...] of bool says which rows are no padding."""
        c, rows = self.config, x.reshape(-1, x.size(-1))
        real = real.reshape(-1) if real is not None else None
        chosen, weight = self.choose(rows, real)
        place, room = self.places(chosen, real)
        held = rows.new_zeros(c.moe_experts * room + 1, rows.size(1)).index_add(0, place, rows.repeat(c.moe_top, 1))
        held = held[:-1].view(c.moe_experts, room, -1)
        inner = torch.bmm(held, self.w1.transpose(1, 2))
        inner = self.activate(inner + self.b1[:, None].to(inner.dtype) if self.b1 is not None else inner, c)
        out = torch.bmm(inner, self.w2.transpose(1, 2))
        out = out + self.b2[:, None].to(out.dtype) if self.b2 is not None else out
        out = F.pad(out.reshape(c.moe_experts * room, -1), (0, 0, 0, 1))
        found = out.index_select(0, place).view(c.moe_top, *rows.shape)
        return (found * weight[..., None].to(found.dtype)).sum(0).view(x.shape).to(x.dtype)


def has_experts(every, number):
    """Layers every, 2 * every, ... counted from 1."""
    return every > 0 and (number + 1) % every == 0


def balance(module):
    """Mean over the mixtures of a module of their last balance; None if it has no experts."""
    found = [m.balance for m in module.modules() if isinstance(m, Experts) and m.balance is not None]
    return torch.stack(found).mean() if found else None


def margin(module):
    """Smallest gap at which a row chose its experts since the module was made."""
    return min((m.margin for m in module.modules() if isinstance(m, Experts)), default=math.inf)
