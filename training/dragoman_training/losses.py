# SPDX-License-Identifier: MIT
"""Losses, as means over real target tokens.

token_loss:      (1 - eps) * -log p(y) + eps * mean over the vocabulary of -log p  +  alpha * (log Z)^2
                 eps is label smoothing; alpha (self-normalisation) pulls log Z to 0, so that raw logits do.
                 token_loss_by_rows: the same on a CPU, a few rows of logits at a time and none for padding
alignment_loss:  cross-entropy of one attention head against a guide that sums to 1 over the source.
"""
import torch
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


class ByRows(torch.autograd.Function):
    """Gradients are made in the forward pass, while a block of logits is in the processor's cache: plain operations walk ten times
    over [rows, vocabulary] in memory."""

    @staticmethod
    def forward(ctx, hidden, rows, bias, expected, smoothing, dtype, block):
        """hidden [N, D], expected [N], no padding -> sum of the losses, sum of -log p"""
        matrix, out_hidden, out_rows = rows.to(dtype), torch.empty_like(hidden, dtype=torch.float32), torch.zeros_like(rows)
        out_bias = torch.zeros(rows.size(0))
        total = plain = 0.0
        for x, y, made in zip(hidden.to(dtype).split(block), expected.split(block), out_hidden.split(block)):
            logits = (x @ matrix.t()).float()
            if bias is not None:
                logits += bias
            log_z = logits.logsumexp(-1)
            nll = log_z - logits.gather(-1, y[:, None])[:, 0]
            total += float(((1.0 - smoothing) * nll + smoothing * (log_z - logits.mean(-1))).sum())
            plain += float(nll.sum())
            slope = logits.sub_(log_z[:, None]).exp_().sub_(smoothing / rows.size(0))
            slope.scatter_add_(1, y[:, None], torch.full((y.size(0), 1), smoothing - 1.0))
            if bias is not None:
                out_bias += slope.sum(0)
            slope = slope.to(dtype)
            made.copy_(slope @ matrix)
            out_rows += slope.t() @ x
        ctx.save_for_backward(out_hidden.to(hidden.dtype), out_rows, out_bias if bias is not None else None)
        return rows.new_tensor(total), rows.new_tensor(plain)

    @staticmethod
    def backward(ctx, grad, _):
        return (*(None if x is None else x * grad.to(x.dtype) for x in ctx.saved_tensors), None, None, None, None)


def token_loss_by_rows(hidden, rows, bias, expected, pad, smoothing=0.1, dtype=torch.bfloat16, block=256):
    """As token_loss, without self-normalisation."""
    real = (expected != pad).reshape(-1).nonzero()[:, 0]
    with torch.autocast("cpu", enabled=False):
        total, nll = ByRows.apply(hidden.reshape(-1, hidden.size(-1))[real], rows, bias, expected.reshape(-1)[real], smoothing, dtype, block)
    return total / real.numel(), nll.detach() / real.numel()


def alignment_loss(log_weights, guide):
    """log_weights, guide [B, T, S]; guide rows of padding are zero, the others sum to 1."""
    return -(guide * log_weights).sum() / guide.sum().clamp(min=1.0)
