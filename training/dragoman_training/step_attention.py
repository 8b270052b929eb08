# SPDX-License-Identifier: MIT
"""Attention for one position of a decoder, as one GPU kernel (Triton): distillation's inner loop.

search.py asks, a step at a time, for the attention of very many sentences, each with one query (or a beam's few) over
some dozens of keys. Fused attention kernels are made for tiles of 64 to 128 queries and spend nearly all of their work
on rows that are not there. Here one program serves one head of one sentence: it reads each key and value once, which
is what the product costs at least.

    out[b, w, h] = softmax over t < T with mask[b, t] of (q[b, h, w] . k[b, h, t] / sqrt(K)), times v[b, h, t]

A beam's hypotheses share histories, so position t of hypothesis b may be kept in another row: with `rows`, k[b, h, t] means
k[rows[b, t], h, t], and the beam reorders these numbers instead of the keys and values of all layers.

transformer.py calls attend() in DecoderLayer.step; usable() says whether it may. DRAGOMAN_STEP_KERNEL=0 switches it
off. With TRITON_INTERPRET=1 it runs on a CPU: that is how the tests check it.
"""
import os

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
WANTED = os.environ.get("DRAGOMAN_STEP_KERNEL", "1") != "0"

if triton is not None:
    @triton.jit
    def one_head(q, k, v, mask, rows, out, count, qb, qh, qw, kb, kh, kt, vb, vh, vt, mb, rb, ob, oh, ow, scale,
                 MASKED: tl.constexpr, MOVED: tl.constexpr, W: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
        b, h = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
        queries, lane, step = tl.arange(0, W), tl.arange(0, K), tl.arange(0, BLOCK)
        query = tl.load(q + b * qb + h * qh + queries[:, None] * qw + lane[None, :]).to(tl.float32) * scale
        top = tl.full([W], -1e30, tl.float32)
        total = tl.zeros([W], tl.float32)
        sums = tl.zeros([W, K], tl.float32)
        for first in range(0, count, BLOCK):
            t = first + step
            seen = t < count
            if MASKED:
                seen = seen & (tl.load(mask + b * mb + t, mask=seen, other=0) != 0)
            row = tl.load(rows + b * rb + t, mask=seen, other=0).to(tl.int64) if MOVED else b + tl.zeros([BLOCK], tl.int64)
            keys = tl.load(k + h * kh + (row * kb + t * kt)[:, None] + lane[None, :], mask=seen[:, None], other=0.0)
            values = tl.load(v + h * vh + (row * vb + t * vt)[:, None] + lane[None, :], mask=seen[:, None], other=0.0)
            score = tl.sum(query[:, None, :] * keys.to(tl.float32)[None, :, :], 2)
            score = tl.where(seen[None, :], score, -1e30)
            high = tl.maximum(top, tl.max(score, 1))
            part = tl.where(seen[None, :], tl.exp(score - high[:, None]), 0.0)
            fade = tl.exp(top - high)
            total = total * fade + tl.sum(part, 1)
            sums = sums * fade[:, None] + tl.sum(part[:, :, None] * values.to(tl.float32)[None, :, :], 1)
            top = high
        found = sums / total[:, None]
        tl.store(out + b * ob + h * oh + queries[:, None] * ow + lane[None, :], found.to(out.dtype.element_ty))


def power_of_two(n):
    return n > 0 and n & (n - 1) == 0


def usable(q):
    """For q [B, H, W, K]: a GPU (or the interpreter), Triton, sizes that a tile can have, and nothing to train."""
    return (triton is not None and WANTED and (q.is_cuda or INTERPRETED) and not torch.is_grad_enabled()
            and power_of_two(q.size(2)) and q.size(2) <= 8 and power_of_two(q.size(3)) and q.size(3) >= 16)


def attend(q, k, v, mask=None, rows=None):
    """q [B, H, W, K], k and v [B, H, T, K], mask None or boolean [B, 1, 1, T] (True = may be seen), rows None or int32 [B, T]
    -> [B, H, W, K]."""
    b, heads, w, width = q.shape
    q, k, v = (x if x.stride(3) == 1 else x.contiguous() for x in (q, k, v))
    out = torch.empty(b, w, heads, width, device=q.device, dtype=q.dtype).transpose(1, 2)
    seen = mask[:, 0, 0].contiguous().view(torch.uint8) if mask is not None else q
    moved = rows if rows is not None else q
    one_head[(b, heads)](q, k, v, seen, moved, out, k.size(2), *q.stride()[:3], *k.stride()[:3], *v.stride()[:3],
                         seen.stride(0), moved.stride(0), *out.stride()[:3], width ** -0.5, MASKED=mask is not None,
                         MOVED=rows is not None, W=w, K=width, BLOCK=16 if w > 1 else 32, num_warps=4 if w > 1 else 2)
    return out
