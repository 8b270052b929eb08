# SPDX-License-Identifier: MIT
"""Losses, as means over real target tokens.

token_loss:      (1 - eps) * -log p(y) + eps * mean over the vocabulary of -log p  +  alpha * (log Z)^2
                 eps is label smoothing; alpha (self-normalisation) pulls log Z to 0, so that raw logits do.
alignment_loss:  cross-entropy of one attention head against a guide that sums to 1 over the source.
"""
import torch.nn.functional as F


def token_loss(hidden, rows, bias, expected, pad, smoothing=0.1, self_norm=0.0):
    """hidden [B, T, D], rows [V, D], expected [B, T] -> loss, and the plain -log p for reporting."""
    logits = F.linear(hidden, rows, bias).float()
    real = (expected != pad).float()
    log_z = logits.logsumexp(-1)
    nll = log_z - logits.gather(-1, expected.clamp(max=rows.size(0) - 1)[..., None])[..., 0]
    loss = (1.0 - smoothing) * nll + smoothing * (log_z - logits.mean(-1))
    if self_norm:
        loss = loss + self_norm * log_z * log_z
    count = real.sum()
    return (loss * real).sum() / count, (nll * real).sum().detach() / count


def alignment_loss(log_weights, guide):
    """log_weights, guide [B, T, S]; guide rows of padding are zero, the others sum to 1."""
    return -(guide * log_weights).sum() / guide.sum().clamp(min=1.0)
