# SPDX-License-Identifier: MIT
"""The conditional masked language model and mask-predict (Ghazvininejad et al. 2019), rival of the pairs of fold.py.

A Transformer whose decoder sees the whole target at once, some words replaced by MASK, and predicts those. The encoder
reads one more input in front of the source, LENGTH (a vector of its own at position 0; the words follow from position 1
on), whose output gives a distribution over target lengths: class i is length i + 1. That output is not part of the
memory. Targets have no end symbol; the vocabulary's last row is MASK.

mask_predict(): iteration 1 predicts all N words from MASK; iteration t of T masks the max(1, N (T - t + 1) // T) words of
lowest probability (ties: the earlier one) and predicts them anew; the others keep word and probability. The length
candidate with the highest mean log-probability wins (ties: the more probable length).

Training: N_mask uniform in 1 .. N, loss on masked words; plus the length's cross-entropy, weighted by length_loss.
"""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

from . import search
from .transformer import Transformer, TransformerConfig


@dataclass
class CmlmConfig(TransformerConfig):
    lengths: int = 128                 # classes of the length predictor
    length_loss: float = 0.1

    def __post_init__(self):
        super().__post_init__()
        if self.decoder_cell != "attention" or self.tokens_per_step != 1 or self.order != "l2r" or self.start != "zero":
            raise ValueError("a masked language model has decoder_cell: attention and neither order, pairs nor start")
        if self.lengths > self.max_positions:
            raise ValueError(f"lengths {self.lengths} exceed max_positions {self.max_positions}")


class Cmlm(Transformer):
    def __init__(self, config):
        super().__init__(config)
        self.length_input = nn.Parameter(torch.randn(config.d_model) * 0.1)
        self.length = nn.Linear(config.d_model, config.lengths)
        self.length_logits = None                                       # of the last forward()

    @property
    def mask(self):
        return self.config.vocab_size - 1

    def embed_source(self, source):
        """LENGTH and the words, [B, S] -> [B, 1 + S, D]."""
        ids = torch.cat([torch.full_like(source[:, :1], self.source_pad), source], 1)
        first = (torch.arange(ids.size(1), device=ids.device) == 0)[:, None]
        return self.embed(ids, "source", add=first * self.length_input)  # padding has a zero vector

    def encode_lengths(self, source):
        """Memory and mask of the words, and logits over lengths [B, lengths]."""
        mask = F.pad(source != self.source_pad, (1, 0), value=True)[:, None, None, :]
        x = self.embed_source(source)
        for layer in self.encoder:
            x = layer(x, mask)
        x = self.encoder_norm(x) if self.config.norm == "pre" else x
        return x[:, 1:], mask[..., 1:], self.length(x[:, 0])

    def encode(self, source):
        return self.encode_lengths(source)[:2]

    def decode(self, memory, mask, target):
        """target [B, T] with MASK and padding -> hidden [B, T, D]."""
        seen = (target != self.pad)[:, None, None, :]
        x = self.embed(target, "target")
        for layer in self.decoder:
            x = layer(x, memory, mask, seen=seen)
        return self.decoder_norm(x) if self.config.norm == "pre" else x

    def forward(self, source, target_in, align=False):
        if align:
            raise ValueError("a masked language model is not trained with alignments")
        memory, mask, self.length_logits = self.encode_lengths(source)
        return self.decode(memory, mask, target_in)

    def arrange(self, target):
        """Masks words at random: decoder input, and labels (padding where a word is not masked)."""
        length = (target != self.pad).sum(1, keepdim=True) - 1          # without </s>
        column = torch.arange(target.size(1), device=target.device)[None]
        real = column < length
        noise = torch.rand(target.shape, device=target.device).masked_fill(~real, 2.0)
        count = 1 + (torch.rand(length.shape, device=target.device) * length).long()
        chosen = (noise.argsort(1).argsort(1) < count) & real
        words = torch.where(real, target, self.pad)
        return torch.where(chosen, self.mask, words), torch.where(chosen, target, self.pad)

    def side_loss(self, target):
        """Of the lengths, for the source of the last forward()."""
        length = ((target != self.pad).sum(1) - 2).clamp(0, self.config.lengths - 1)    # class of n words is n - 1
        return self.config.length_loss * F.cross_entropy(self.length_logits.float(), length)


@torch.no_grad()
def predict(model, memory, mask, lengths, iterations, banned):
    """One candidate a row: words [B, W] (padded), mean log-probabilities [B]."""
    column = torch.arange(int(lengths.max()), device=lengths.device)[None]
    real = column < lengths[:, None]
    words = torch.where(real, model.mask, model.pad)
    value = torch.zeros(words.shape, device=words.device)
    for t in range(1, iterations + 1):
        if t > 1:
            count = torch.div(lengths * (iterations - t + 1), iterations, rounding_mode="floor").clamp(min=1)
            order = torch.sort(value.masked_fill(~real, float("inf")), dim=1, stable=True)[1]
            chosen = torch.zeros_like(real).scatter(1, order, column < count[:, None])
        else:
            chosen = real
        given = torch.where(chosen, model.mask, words)
        logits = search.logits_f32(model, model.decode(memory, mask, given))
        best = logits.index_fill(-1, torch.tensor(banned, device=logits.device), -1e9).max(-1)
        value = torch.where(chosen, (best[0] - logits.logsumexp(-1)).to(value.dtype), value)
        words = torch.where(chosen, best[1], words)
    return words, (value * real).sum(1) / lengths


@torch.no_grad()
def mask_predict(model, source, iterations=4, candidates=1, longest=1 << 30):
    """Translations of source [B, S] as id lists. </s>, <unk> and MASK are never predicted."""
    memory, mask, logits = model.encode_lengths(source)
    order = torch.sort(logits[:, :longest].float(), dim=1, descending=True, stable=True)[1]
    order = order[:, :candidates] + 1                                   # [B, candidates], the most probable first
    rows = torch.arange(source.size(0), device=source.device).repeat_interleave(order.size(1))
    lengths = order.reshape(-1)
    words, mean = predict(model, memory[rows], mask[rows], lengths, iterations, [search.EOS, search.UNK, model.mask])
    best = torch.sort(mean.view(order.shape), dim=1, descending=True, stable=True)[1][:, 0]
    best = best + torch.arange(source.size(0), device=source.device) * order.size(1)
    return [row[:n] for row, n in zip(words[best].tolist(), lengths[best].tolist())]
