# SPDX-License-Identifier: MIT
"""GRU layers on a GPU: both directions at once, capturable as part of a CUDA graph, in the precision they are given.

PyTorch's own nn.GRU is not used there: as we read its source (not tested) it runs in f16 under bf16 autocast, whose
smallest numbers are larger than the gradients of a mean over 16,000 tokens, and it walks the two directions of a layer one
after the other. Here a time step is one product for all directions and one fused cell (PyTorch's kernel of nn.GRUCell),
and the gradient of the recurrent matrix is one product over all steps instead of a sum over steps in bf16.

    scan:  h_t = GRU(x_t, w h_{t-1} + b), gates r, z, g;  h' = z h + (1 - z) tanh(x_g + r h_g)

Called by rnn_stack.py; on a CPU (where there is no fused cell) the same algebra in plain operations serves the tests.
D directions, T positions, B sentences, N = D * B rows, H state width.
"""
import functools

import torch


@functools.lru_cache(maxsize=None)
def fused(dtype):
    """Whether this PyTorch has the fused cell for numbers of this kind."""
    try:
        zeros = torch.zeros(1, 3, dtype=dtype, device="cuda")
        torch.ops.aten._thnn_fused_gru_cell(zeros, zeros, zeros[:, :1])
    except RuntimeError:
        return False
    return True


def plain_cell(x, h, state):
    """Gate inputs x, h [N, 3H], state [N, H] -> new state, and what plain_back needs."""
    xr, xz, xg = x.chunk(3, -1)
    hr, hz, hg = h.chunk(3, -1)
    r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
    g = torch.tanh(xg + r * hg)
    return z * state + (1 - z) * g, torch.cat([r, z, g, hg, state], -1)


def plain_back(grad, kept):
    """Gradients of x, h and state from that of the new state."""
    r, z, g, hg, state = kept.chunk(5, -1)
    dg = grad * (1 - z) * (1 - g * g)
    dz = grad * (state - g) * z * (1 - z)
    dr = dg * hg * r * (1 - r)
    return torch.cat([dr, dz, dg], -1), torch.cat([dr, dz, dg * r], -1), grad * z


def cell(x, h, state):
    if x.is_cuda and fused(x.dtype):
        return torch.ops.aten._thnn_fused_gru_cell(x, h, state)
    return plain_cell(x, h, state)


def cell_back(grad, kept):
    if grad.is_cuda and fused(grad.dtype):
        return torch.ops.aten._thnn_fused_gru_cell_backward(grad, kept, False)[:3]
    return plain_back(grad, kept)


class Scan(torch.autograd.Function):
    """x [T, N, 3H] gate inputs, w [D, H, 3H], b [D, 1, 3H], h [N, H] -> states [T, N, H]."""

    @staticmethod
    def forward(ctx, x, w, b, h):
        directions, width = w.size(0), w.size(1)
        first, states, kept = h, [], []
        for t in range(x.size(0)):
            gates = torch.baddbmm(b, h.view(directions, -1, width), w)
            h, workspace = cell(x[t], gates.view(-1, 3 * width), h)
            states.append(h)
            kept.append(workspace)
        out = torch.stack(states)
        ctx.save_for_backward(w, first, out, *kept)
        return out

    @staticmethod
    def backward(ctx, grad):
        w, first, out, *kept = ctx.saved_tensors
        directions, width = w.size(0), w.size(1)
        up, grad = w.transpose(1, 2), grad.contiguous()
        dh, dx, dgates = torch.zeros_like(first), [], []
        for t in range(len(kept) - 1, -1, -1):
            gx, gh, gs = cell_back(grad[t] + dh, kept[t])
            dx.append(gx)
            dgates.append(gh)
            dh = torch.baddbmm(gs.view(directions, -1, width), gh.view(directions, -1, 3 * width), up).view_as(first)
        dx, dgates = torch.stack(dx[::-1]), by_direction(torch.stack(dgates[::-1]), directions)
        before = by_direction(torch.cat([first[None], out[:-1]]), directions)
        return dx, torch.bmm(before.transpose(1, 2), dgates), dgates.sum(1, keepdim=True), dh


def by_direction(rows, directions):
    """[T, N, K] -> [D, T * B, K]."""
    t, n, k = rows.shape
    return rows.view(t, directions, n // directions, k).transpose(0, 1).reshape(directions, -1, k)


def gru_layer(layer, inputs, ends, h=None):
    """Directions of one layer of an nn.GRU: inputs [B, T, I] and parameter names' ends (l0, l0_reverse), one a direction.

    Every direction walks its input from the front. h [N, H] or zeros -> list of [B, T, H].
    """
    gates = torch.stack([torch.nn.functional.linear(x, getattr(layer, f"weight_ih_{end}"),
                                                    getattr(layer, f"bias_ih_{end}")) for x, end in zip(inputs, ends)])
    directions, batch, length, _ = gates.shape
    rows = gates.permute(2, 0, 1, 3).reshape(length, directions * batch, -1)
    w = torch.stack([getattr(layer, f"weight_hh_{end}").t() for end in ends]).to(gates.dtype)
    b = torch.stack([getattr(layer, f"bias_hh_{end}") for end in ends])[:, None].to(gates.dtype)
    h = rows.new_zeros(rows.size(1), layer.hidden_size) if h is None else h.to(gates.dtype).contiguous()
    states = Scan.apply(rows, w, b, h).view(length, directions, batch, -1)
    return [states[:, d].transpose(0, 1) for d in range(directions)]
