# SPDX-License-Identifier: MIT
"""Word alignment on the device: a guide for one attention head, and lexical tables.

IBM model 1 with a dense V x V table per direction (256 MB each at 8k pieces: nothing for a GPU), trained by EM over
packed pairs with a prior that favours the diagonal (as in fast_align, with a fixed slope). A NULL row absorbs target
pieces without a source. The guide multiplies both directions' probabilities, which suppresses the usual errors of
each, and is normalised over the source for every target piece; </s> goes to </s>.
"""
import numpy as np
import torch

EOS = 0


def diagonal(source, target, source_pad, pad, slope):
    """exp(-slope * |s/S - t/T|) for every cell [B, T, S]; 0 on padding. The EOS column is position S."""
    s_real, t_real = source != source_pad, target != pad
    s_len, t_len = s_real.sum(1).clamp(min=1), t_real.sum(1).clamp(min=1)
    s = torch.arange(source.size(1), device=source.device)[None] / s_len[:, None]           # [B, S]
    t = torch.arange(target.size(1), device=source.device)[None] / t_len[:, None]           # [B, T]
    prior = torch.exp(-slope * (s[:, None, :] - t[:, :, None]).abs())
    return prior * (s_real[:, None, :] & t_real[:, :, None])


def em(batches, jobs, from_size, to_size, reverse=False, iterations=5, slope=4.0):
    """p(to piece | from piece), [from_size + 1, to_size]; the last row is NULL. reverse: from target to source."""
    device = batches.device
    table = torch.full((from_size + 1, to_size), 1.0 / to_size, device=device)
    for _ in range(iterations):
        counts = torch.zeros_like(table)
        for bucket, index in jobs:
            source, _, target = batches.fetch(bucket, index)
            prior = diagonal(source, target, batches.source_pad, batches.pad, slope)
            a, b = source, target
            if reverse:
                a, b, prior = target, source, prior.transpose(1, 2)
            a, b = a.clamp(max=from_size - 1), b.clamp(max=to_size - 1)
            cell = a[:, None, :] * to_size + b[:, :, None]                                  # [B, to, from]
            null = from_size * to_size + b
            weight = prior * table.view(-1)[cell]
            # the prior is not normalised: a NULL of 1/12 of a diagonal's mass keeps it for what nothing explains
            weak = prior.sum(-1) / 12.0 * table.view(-1)[null]
            total = (weight.sum(-1) + weak).clamp(min=1e-30)
            counts.view(-1).index_add_(0, cell.reshape(-1), (weight / total[..., None]).reshape(-1))
            counts.view(-1).index_add_(0, null.reshape(-1), (weak / total).reshape(-1))
        counts += 1e-4 / to_size
        table = counts / counts.sum(1, keepdim=True)
    return table


class Guide:
    """Soft alignments of a batch from the product of both tables."""

    def __init__(self, forward, backward, source_pad, pad, slope=4.0):
        self.table = (forward[:-1] * backward[:-1].t()).sqrt()          # [source piece, target piece]
        self.table[EOS, :] = 0.0
        self.table[:, EOS] = 0.0
        self.table[EOS, EOS] = 1.0
        self.source_pad, self.pad, self.slope = source_pad, pad, slope

    def __call__(self, source, target):
        """[B, T, S], each real target row sums to 1 (or is 0 where nothing fits)."""
        width = self.table.size(1)
        cell = source.clamp(max=self.table.size(0) - 1)[:, None, :] * width + target.clamp(max=width - 1)[:, :, None]
        weight = self.table.view(-1)[cell] * diagonal(source, target, self.source_pad, self.pad, self.slope)
        weight = weight * weight                                        # sharper: a head should point, not spread
        total = weight.sum(-1, keepdim=True)
        return torch.where(total > 1e-12, weight / total.clamp(min=1e-12), torch.zeros_like(weight))


def train_guide(batches, source_size, target_size, max_batches=400, iterations=5, slope=4.0):
    """Both tables from a sample of batches; returns the guide and the forward table (for a lexical shortlist)."""
    jobs = batches.plan(0)[:max_batches]
    forward = em(batches, jobs, source_size, target_size, False, iterations, slope)
    backward = em(batches, jobs, target_size, source_size, True, iterations, slope)
    return Guide(forward, backward, batches.source_pad, batches.pad, slope), forward


def lexicon(forward, best=100):
    """The `best` most probable target pieces of every source piece: ids and probabilities, on the host."""
    value, index = forward[:-1].topk(min(best, forward.size(1)), -1)
    return index.cpu().numpy().astype("uint16"), value.half().cpu().numpy()


def table(path, pieces, others=(), least=0.0005):
    """{(source piece, target piece): probability} of a run's lexicon.npz, joined with text tables (`dragoman shortlist
    --write-lexicon`): the greater one counts. The soft tables of training know inner pieces that hard links miss."""
    from .corpus import read_lines
    found = {}
    for name in others:
        for line in read_lines(name):
            target, source, value = line.split(" ")
            found[source, target] = float(value)
    held = np.load(path)
    for source, (ids, values) in enumerate(zip(held["ids"], held["probabilities"])):
        for target, value in zip(ids, values):
            if value >= least and target > 1:                       # neither </s> nor <unk>
                key = pieces.IdToPiece(source), pieces.IdToPiece(int(target))
                found[key] = max(found.get(key, 0.0), float(value))
    return found
