# SPDX-License-Identifier: MIT
"""The attentional GRU decoders over all positions of a batch on a GPU: four to six kernels a position and direction.

Written as single operations (rnn.py's loop) a position costs some fifty kernels forward and back, half of them to add up
gradients of the source vectors, position after position in bf16. Here attention is one Triton kernel, a GRU is another,
and gradients of weights, source vectors and keys are one product over all positions at the end. With x_t = gate inputs of
the previous word, all three decoders are

    conditional:  s = GRU(x_t, U1 h + b1, h), else s = h
    [q | u] = M s + m;  e_j = v . tanh(q + k_j), or devlin's tanh(q + a_t) . k_j;  p = softmax(e);  c = sum of p_j s_j
    y = Wc c + bc (conditional) or x_t + Wc c;  h' = GRU(y, u, s)
    GRU(y, u, s): r, z = sigmoid(y + u), g = tanh(y_g + r u_g), h' = z s + (1 - z) g

rnn.py calls run() when usable() says so; DRAGOMAN_DECODER_KERNEL=0 switches it off, and with TRITON_INTERPRET=1 it runs on
a CPU, which is how the tests compare it with the loop. Numbers are kept in the dtype of the keys, sums are f32.
T positions, B sentences, S source positions, H state, A attention, W source vector.
"""
import os

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
WANTED = os.environ.get("DRAGOMAN_DECODER_KERNEL", "1") != "0"
BLOCK = 64                                              # columns of a tile

if triton is not None:
    @triton.jit
    def tanh(x):
        return 2.0 * tl.sigmoid(2.0 * x) - 1.0

    @triton.jit
    def query_of(q, a, b, qb, ab, lane, inside, DOT: tl.constexpr):
        query = tl.load(q + b * qb + lane, mask=inside, other=0.0).to(tl.float32)
        if DOT:
            query = tanh(query + tl.load(a + b * ab + lane, mask=inside, other=0.0).to(tl.float32))
        return query

    @triton.jit
    def attend_forward(q, a, keys, v, memory, mask, p, c, S, A, W, qb, ab, DOT: tl.constexpr, ROWS: tl.constexpr,
                       COLS: tl.constexpr):
        """One program a sentence: weights p [B, S] and context c [B, W]."""
        b = tl.program_id(0)
        s, lane = tl.arange(0, ROWS), tl.arange(0, COLS)
        seen = s < S
        energy = tl.zeros([ROWS], tl.float32)
        for first in range(0, A, COLS):
            at = first + lane
            inside = at < A
            key = tl.load(keys + (b * S + s[:, None]) * A + at[None, :], mask=seen[:, None] & inside[None, :], other=0.0)
            query = query_of(q, a, b, qb, ab, at, inside, DOT)
            if DOT:
                energy += tl.sum(key.to(tl.float32) * query[None, :], 1)
            else:
                weight = tl.load(v + at, mask=inside, other=0.0).to(tl.float32)
                energy += tl.sum(tanh(key.to(tl.float32) + query[None, :]) * weight[None, :], 1)
        seen = seen & (tl.load(mask + b * S + s, mask=seen, other=0) != 0)
        energy = tl.where(seen, energy, -1e30)
        part = tl.where(seen, tl.exp(energy - tl.max(energy, 0)), 0.0)
        part = part / tl.sum(part, 0)
        tl.store(p + b * S + s, part, mask=s < S)
        for first in range(0, W, COLS):
            at = first + lane
            inside = at < W
            vectors = tl.load(memory + (b * S + s[:, None]) * W + at[None, :], mask=seen[:, None] & inside[None, :], other=0.0)
            total = tl.sum(part[:, None] * vectors.to(tl.float32), 0)
            tl.store(c + b * W + at, total.to(c.dtype.element_ty), mask=inside)

    @triton.jit
    def attend_back(dc, p, q, a, keys, v, memory, de, dq, S, A, W, qb, ab, db, DOT: tl.constexpr, ROWS: tl.constexpr,
                    COLS: tl.constexpr):
        """From the gradient of c: that of the energies, de [B, S], and of q (before a tanh), dq [B, A]."""
        b = tl.program_id(0)
        s, lane = tl.arange(0, ROWS), tl.arange(0, COLS)
        seen = s < S
        part = tl.load(p + b * S + s, mask=seen, other=0.0)
        up = tl.zeros([ROWS], tl.float32)
        for first in range(0, W, COLS):
            at = first + lane
            inside = at < W
            vectors = tl.load(memory + (b * S + s[:, None]) * W + at[None, :], mask=seen[:, None] & inside[None, :], other=0.0)
            grad = tl.load(dc + b * W + at, mask=inside, other=0.0).to(tl.float32)
            up += tl.sum(vectors.to(tl.float32) * grad[None, :], 1)
        energy = part * (up - tl.sum(part * up, 0))
        tl.store(de + b * S + s, energy, mask=seen)
        for first in range(0, A, COLS):
            at = first + lane
            inside = at < A
            key = tl.load(keys + (b * S + s[:, None]) * A + at[None, :], mask=seen[:, None] & inside[None, :], other=0.0)
            query = query_of(q, a, b, qb, ab, at, inside, DOT)
            if DOT:
                grad = tl.sum(key.to(tl.float32) * energy[:, None], 0) * (1.0 - query * query)
            else:
                value = tanh(key.to(tl.float32) + query[None, :])
                weight = tl.load(v + at, mask=inside, other=0.0).to(tl.float32)
                grad = tl.sum((1.0 - value * value) * energy[:, None], 0) * weight
            tl.store(dq + b * db + at, grad.to(dq.dtype.element_ty), mask=inside)

    @triton.jit
    def keys_back(q, keys, v, de, dkeys, dv, T, B, S, A, qt, qb, ROWS: tl.constexpr, COLS: tl.constexpr):
        """Gradients of keys [B, S, A] and (for each sentence) of v, summed over all positions."""
        b, first = tl.program_id(0), tl.program_id(1) * COLS
        s, at = tl.arange(0, ROWS), first + tl.arange(0, COLS)
        seen, inside = s < S, at < A
        where = (b * S + s[:, None]) * A + at[None, :]
        key = tl.load(keys + where, mask=seen[:, None] & inside[None, :], other=0.0).to(tl.float32)
        weight = tl.load(v + at, mask=inside, other=0.0).to(tl.float32)
        total = tl.zeros([ROWS, COLS], tl.float32)
        vector = tl.zeros([COLS], tl.float32)
        for t in range(0, T):
            query = tl.load(q + t * qt + b * qb + at, mask=inside, other=0.0).to(tl.float32)
            energy = tl.load(de + (t * B + b) * S + s, mask=seen, other=0.0)
            value = tanh(key + query[None, :])
            total += energy[:, None] * (1.0 - value * value)
            vector += tl.sum(energy[:, None] * value, 0)
        total = total * weight[None, :]
        tl.store(dkeys + where, total.to(dkeys.dtype.element_ty), mask=seen[:, None] & inside[None, :])
        tl.store(dv + b * A + at, vector, mask=inside)

    @triton.jit
    def gates_of(y, x, u, b, at, inside, H, yb, xb, ub, ADD: tl.constexpr):
        """r, z, g and u's part of g at some columns of one row."""
        yr = tl.load(y + b * yb + at, mask=inside, other=0.0).to(tl.float32)
        yz = tl.load(y + b * yb + H + at, mask=inside, other=0.0).to(tl.float32)
        yg = tl.load(y + b * yb + 2 * H + at, mask=inside, other=0.0).to(tl.float32)
        if ADD:
            yr += tl.load(x + b * xb + at, mask=inside, other=0.0).to(tl.float32)
            yz += tl.load(x + b * xb + H + at, mask=inside, other=0.0).to(tl.float32)
            yg += tl.load(x + b * xb + 2 * H + at, mask=inside, other=0.0).to(tl.float32)
        ur = tl.load(u + b * ub + at, mask=inside, other=0.0).to(tl.float32)
        uz = tl.load(u + b * ub + H + at, mask=inside, other=0.0).to(tl.float32)
        ug = tl.load(u + b * ub + 2 * H + at, mask=inside, other=0.0).to(tl.float32)
        r, z = tl.sigmoid(yr + ur), tl.sigmoid(yz + uz)
        return r, z, tanh(yg + r * ug), ug

    @triton.jit
    def gru_forward(y, x, u, state, out, H, yb, xb, ub, ADD: tl.constexpr, COLS: tl.constexpr):
        b, at = tl.program_id(0), tl.program_id(1) * COLS + tl.arange(0, COLS)
        inside = at < H
        r, z, g, ug = gates_of(y, x, u, b, at, inside, H, yb, xb, ub, ADD)
        old = tl.load(state + b * H + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + b * H + at, (z * old + (1.0 - z) * g).to(out.dtype.element_ty), mask=inside)

    @triton.jit
    def gru_back(grad, more, y, x, u, state, dy, du, ds, H, yb, xb, ub, db, ADD: tl.constexpr, TWO: tl.constexpr,
                 COLS: tl.constexpr):
        """Gradients of y (and x), u and state from that of the new state: grad, plus more."""
        b, at = tl.program_id(0), tl.program_id(1) * COLS + tl.arange(0, COLS)
        inside = at < H
        r, z, g, ug = gates_of(y, x, u, b, at, inside, H, yb, xb, ub, ADD)
        old = tl.load(state + b * H + at, mask=inside, other=0.0).to(tl.float32)
        d = tl.load(grad + b * H + at, mask=inside, other=0.0).to(tl.float32)
        if TWO:
            d += tl.load(more + b * H + at, mask=inside, other=0.0).to(tl.float32)
        dg = d * (1.0 - z) * (1.0 - g * g)
        dz = d * (old - g) * z * (1.0 - z)
        dr = dg * ug * r * (1.0 - r)
        kind = dy.dtype.element_ty
        tl.store(dy + b * 3 * H + at, dr.to(kind), mask=inside)
        tl.store(dy + b * 3 * H + H + at, dz.to(kind), mask=inside)
        tl.store(dy + b * 3 * H + 2 * H + at, dg.to(kind), mask=inside)
        tl.store(du + b * db + at, dr.to(kind), mask=inside)
        tl.store(du + b * db + H + at, dz.to(kind), mask=inside)
        tl.store(du + b * db + 2 * H + at, (dg * r).to(kind), mask=inside)
        tl.store(ds + b * H + at, (d * z).to(kind), mask=inside)


def usable(x, cell):
    """For a batch like x: a GPU (or the interpreter), Triton, and a GRU cell with one attention."""
    return triton is not None and WANTED and (x.is_cuda or INTERPRETED) and not getattr(cell, "lstm", False) \
        and not getattr(cell, "deep", False)


def gru(y, x, u, state, out):
    b, h = state.shape
    gru_forward[(b, triton.cdiv(h, 512))](y, y if x is None else x, u, state, out, h, y.stride(0),
                                          0 if x is None else x.stride(0), u.stride(0), ADD=x is not None, COLS=512)


def gru_gradients(grad, more, y, x, u, state, dy, du, ds):
    b, h = state.shape
    gru_back[(b, triton.cdiv(h, 512))](grad, grad if more is None else more, y, y if x is None else x, u, state, dy, du, ds,
                                       h, y.stride(0), 0 if x is None else x.stride(0), u.stride(0), du.stride(0),
                                       ADD=x is not None, TWO=more is not None, COLS=512)


def product(rows, columns):
    """[T, B, I], [T, B, K] -> the gradient of a matrix [I, K]: the sum of outer products over all rows."""
    return rows.flatten(0, 1).t() @ columns.flatten(0, 1)


class DecoderScan(torch.autograd.Function):
    """x [T, B, 3H], a [T, B, A] or None, keys [B, S, A], memory [B, S, W], mask [B, S] uint8, h [B, H], M [A + 3H, H], m, v [A]
    or None (devlin), Wc [3H, W], bc or None, U1 [3H, H] and b1, or None -> states [T, B, H], contexts [T, B, W]."""

    @staticmethod
    def forward(ctx, x, a, keys, memory, mask, h, big, small, v, wc, bc, u1, b1):
        t_count, b, _ = x.shape
        s_count, width = keys.size(1), keys.size(2)
        new = lambda *shape: keys.new_empty(t_count, b, *shape)
        states, mids = torch.cat([h[None], new(h.size(1))]), new(h.size(1)) if u1 is not None else None
        gates1 = new(3 * h.size(1)) if u1 is not None else None
        both, contexts, y = new(big.size(0)), new(memory.size(2)), new(3 * h.size(1))
        p = torch.empty(t_count, b, s_count, device=keys.device)
        rows = max(8, triton.next_power_of_2(s_count))
        for t in range(t_count):
            s = states[t]
            if u1 is not None:
                torch.addmm(b1, s, u1.t(), out=gates1[t])
                gru(x[t], None, gates1[t], s, mids[t])
                s = mids[t]
            torch.addmm(small, s, big.t(), out=both[t])
            dot = a is not None
            attend_forward[(b,)](both[t], a[t] if dot else both, keys, keys if dot else v, memory, mask, p[t], contexts[t],
                                 s_count, width, memory.size(2), both.stride(1), a.stride(1) if dot else 0, DOT=dot,
                                 ROWS=rows, COLS=BLOCK)
            if u1 is not None:
                torch.addmm(bc, contexts[t], wc.t(), out=y[t])
                gru(y[t], None, both[t, :, width:], s, states[t + 1])
            else:
                torch.mm(contexts[t], wc.t(), out=y[t])
                gru(y[t], x[t], both[t, :, width:], s, states[t + 1])
        ctx.save_for_backward(x, a, keys, memory, big, v, wc, u1, states, mids, gates1, both, contexts, y, p)
        return states[1:], contexts

    @staticmethod
    def backward(ctx, dstates, dcontexts):
        x, a, keys, memory, big, v, wc, u1, states, mids, gates1, both, contexts, y, p = ctx.saved_tensors
        t_count, b, _ = x.shape
        s_count, width = keys.size(1), keys.size(2)
        dstates, dcontexts = dstates.contiguous(), dcontexts.contiguous()
        dboth, dc, dy, de = torch.empty_like(both), torch.empty_like(contexts), torch.empty_like(y), torch.empty_like(p)
        dgates1, dx1 = (torch.empty_like(gates1), torch.empty_like(gates1)) if u1 is not None else (None, None)
        ds, dot, rows = torch.empty_like(states[0]), a is not None, max(8, triton.next_power_of_2(s_count))
        dh = None
        for t in range(t_count - 1, -1, -1):
            s = states[t] if u1 is None else mids[t]
            gru_gradients(dstates[t], dh, y[t], x[t] if u1 is None else None, both[t, :, width:], s, dy[t],
                          dboth[t, :, width:], ds)
            torch.addmm(dcontexts[t], dy[t], wc, out=dc[t])
            attend_back[(b,)](dc[t], p[t], both[t], a[t] if dot else both, keys, keys if dot else v, memory, de[t], dboth[t],
                              s_count, width, memory.size(2), both.stride(1), a.stride(1) if dot else 0, dboth.stride(1),
                              DOT=dot, ROWS=rows, COLS=BLOCK)
            dh = torch.addmm(ds, dboth[t], big)
            if u1 is not None:
                gru_gradients(dh, None, x[t], None, gates1[t], states[t], dx1[t], dgates1[t], ds)
                dh = torch.addmm(ds, dgates1[t], u1)
        dmemory = torch.bmm(p.permute(1, 2, 0).to(dc.dtype), dc.transpose(0, 1))
        da = dv = None
        if dot:
            da = dboth[..., :width]
            query = torch.tanh(both[..., :width] + a)
            dkeys = torch.bmm(de.permute(1, 2, 0).to(query.dtype), query.transpose(0, 1))
        else:
            dkeys, dv = torch.empty_like(keys), torch.empty(b, width, device=keys.device)
            keys_back[(b, triton.cdiv(width, BLOCK))](both, keys, v, de, dkeys, dv, t_count, b, s_count, width,
                                                      both.stride(0), both.stride(1), ROWS=rows, COLS=BLOCK)
            dv = dv.sum(0).to(v.dtype)
        below = states[:-1] if u1 is None else mids
        first = (None, None) if u1 is None else (product(dgates1, states[:-1]), dgates1.sum((0, 1)))
        return (dy if u1 is None else dx1, da, dkeys, dmemory, None, dh, product(dboth, below), dboth.sum((0, 1)), dv,
                product(dy, contexts), None if u1 is None else dy.sum((0, 1)), *first)


def run(cell, inputs, h, keys, memory, mask):
    """cell: of rnn.py; inputs: cell.inputs(x), parts [B, T, ..]; h [B, H] -> states [B, T, H] and contexts [B, T, W]."""
    kind = keys.dtype
    cast = lambda tensor: None if tensor is None else tensor.to(kind)
    along = lambda part: part.to(kind).transpose(0, 1).contiguous()
    conditional = hasattr(cell, "gru2_x")
    devlin = hasattr(cell, "att_h")
    x = along(inputs[-1])
    query = cell.att_h.weight if devlin else cell.att_query.weight
    hidden = cell.gru2_h if conditional else cell.gru_h
    bias = hidden.bias if hidden.bias is not None else hidden.weight.new_zeros(hidden.weight.size(0))
    big = torch.cat([query, hidden.weight])
    small = torch.cat([bias.new_zeros(query.size(0)), bias])
    wc = cell.gru2_x if conditional else cell.gru_c
    first = (cast(wc.bias), cast(cell.gru1_h.weight), cast(cell.gru1_h.bias)) if conditional else (None, None, None)
    with torch.autocast(keys.device.type, enabled=False):
        states, contexts = DecoderScan.apply(x, along(inputs[0]) if devlin else None, keys.contiguous(),
                                             memory.to(kind).contiguous(), mask.to(torch.uint8), cast(h).contiguous(),
                                             cast(big), cast(small), None if devlin else cast(cell.att_v), cast(wc.weight),
                                             *first)
    return states.transpose(0, 1), contexts.transpose(0, 1)
