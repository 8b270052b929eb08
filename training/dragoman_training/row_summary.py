# SPDX-License-Identifier: MIT
"""What a beam needs of a row of logits, in one pass over it, as one GPU kernel (Triton): distillation's second loop.

For [N, V] logits the normaliser log(sum(exp)) of every row, and the highest value of each chunk of CHUNK logits, from which
search.top finds the best few. Written as single operations this reads the logits three times and writes them once, and at
4,096 sentences with a beam of 4 and 16,000 subwords they are a gigabyte. The first `skip` ids (</s> and <unk>) count in
the normaliser and not among the highest.

usable() says whether summary() may be called. With TRITON_INTERPRET=1 it runs on a CPU: that is how the tests check it.
"""
import torch

from .step_attention import INTERPRETED, WANTED, triton

CHUNK, TOGETHER = 128, 16

if triton is not None:
    import triton.language as tl

    @triton.jit
    def one_row(logits, norm, highest, size, stride, chunks, skip, CHUNK: tl.constexpr, TOGETHER: tl.constexpr):
        n = tl.program_id(0).to(tl.int64)
        part, lane = tl.arange(0, TOGETHER), tl.arange(0, CHUNK)
        top, total = tl.full([1], -1e30, tl.float32), tl.zeros([1], tl.float32)
        for first in range(0, chunks, TOGETHER):
            at = (first + part)[:, None] * CHUNK + lane[None, :]
            x = tl.load(logits + n * stride + at, mask=at < size, other=-1e30)
            high = tl.max(tl.where(at < skip, -1e30, x), 1)
            tl.store(highest + n * chunks + first + part, high, mask=first + part < chunks)
            best = tl.maximum(top, tl.max(tl.max(x, 1), 0))
            total = total * tl.exp(top - best) + tl.sum(tl.sum(tl.exp(x - best), 1), 0)
            top = best
        tl.store(norm + n + tl.arange(0, 1), top + tl.log(total))


def usable(logits, count):
    """For logits [N, V] whose best `count` are wanted."""
    return (triton is not None and WANTED and (logits.is_cuda or INTERPRETED) and logits.stride(1) == 1
            and logits.size(1) % CHUNK == 0 and logits.size(1) // CHUNK >= count)


def summary(logits, skip=0):
    """[N, V] f32 -> normalisers [N], highest of each chunk [N, V / CHUNK]."""
    n, size = logits.shape
    norm = torch.empty(n, device=logits.device)
    highest = torch.empty(n, size // CHUNK, device=logits.device)
    one_row[(n,)](logits, norm, highest, size, logits.stride(0), size // CHUNK, skip, CHUNK=CHUNK, TOGETHER=TOGETHER, num_warps=8)
    return norm, highest
