# SPDX-License-Identifier: MIT
"""In which order a decoder meets the words of a sentence (Imamura and Sumita 2020).

A decoder of one token a step reads left to right (l2r) or right to left (r2l). One of two tokens a step reads pairs:

    bidirectional   (y1, yn) (y2, yn-1) ... from both ends to the middle; of an odd number the left side has one more
    l2r             (y1, y2) (y3, y4) ...
    r2l             the same of the reversed sentence

The end is a pair with EOD: behind an odd number of words (y, EOD), behind an even one (EOD, EOD); so there are always
n // 2 + 1 pairs. Pairs are written flat, left and right by turns. Both tokens of a pair are predicted from all pairs
before it, so the decoder's input is the labels moved on by a pair, behind the start pair (BOS, EOS).
"""
import torch

ORDERS = ("l2r", "r2l", "bidirectional")
EOS = 0


def check(order, tokens):
    if order not in ORDERS:
        raise ValueError(f"order: {order!r} is not one of {', '.join(ORDERS)}")
    if tokens not in (1, 2):
        raise ValueError(f"tokens_per_step: {tokens} is neither 1 nor 2")
    if tokens == 1 and order == "bidirectional":
        raise ValueError("order: bidirectional needs tokens_per_step: 2")


def fold(ids, order, eod):
    """Words -> pairs, flat."""
    n = len(ids)
    if order == "bidirectional":
        left, right = ids[:(n + 1) // 2], ids[(n + 1) // 2:][::-1]
    else:
        ids = ids[::-1] if order == "r2l" else ids
        left, right = ids[0::2], ids[1::2]
    pairs = n // 2 + 1
    left, right = (list(side) + [eod] * (pairs - len(side)) for side in (left, right))
    return [token for pair in zip(left, right) for token in pair]


def unfold(flat, order, eod):
    """Pairs -> words. A word beside EOD stays where it can: in the middle, or behind all others in l2r and r2l; of
    (EOD, x) there x is dropped."""
    def until(side):
        return side[:side.index(eod)] if eod in side else side
    left, right = until(flat[0::2]), until(flat[1::2])
    if order == "bidirectional":
        return left + right[::-1]
    words = [token for pair in zip(left, right) for token in pair] + left[len(right):len(right) + 1]
    return words[::-1] if order == "r2l" else words


def arrange(target, pad, order, tokens, eod, bos):
    """target [B, W] with </s> and padding -> what the decoder reads and what it is to say, both [B, W]."""
    column = torch.arange(target.size(1), device=target.device)[None]
    length = (target != pad).sum(1, keepdim=True) - 1                   # without </s>
    if tokens == 1:
        if order == "r2l":
            index = torch.where(column < length, length - 1 - column, column)
            target = target.gather(1, index.clamp(min=0))
        return torch.cat([torch.full_like(target[:, :1], pad), target[:, :-1]], 1), target
    step, right = torch.div(column, 2, rounding_mode="floor"), column % 2
    if order == "bidirectional":
        half = torch.div(length + 1, 2, rounding_mode="floor")
        index = torch.where(right == 1, length - 1 - step, step)
        real = torch.where(right == 1, step < length - half, step < half)
    else:
        index = length - 1 - column if order == "r2l" else column.expand_as(target)
        real = column < length
    words = target.gather(1, index.clamp(0, target.size(1) - 1))
    inside = step < torch.div(length, 2, rounding_mode="floor") + 1
    expected = torch.where(real, words, torch.where(inside, eod, pad))
    first = torch.full_like(target[:, :1], bos)                        # no copy from the host: part of a CUDA graph
    return torch.cat([first, torch.full_like(first, EOS), expected[:, :-2]], 1), expected
