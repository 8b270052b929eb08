# SPDX-License-Identifier: MIT
"""Length-bucketed token batches, gathered on the device.

A bucket is a padded width; a pair goes to the narrowest bucket that holds both its sides and their </s>. All batches
of a bucket have the same shape, [tokens / width, width] on both sides, so that a training step can be captured once a
bucket (CUDA graphs) or compiled. A last batch that is not full is filled with random pairs of the same bucket.
The plan of a pass depends on the seed and the pass number only: a resumed run continues with the same batches.
"""
import numpy as np
import torch

WIDTHS = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128)


class Batches:
    def __init__(self, packed, pad, tokens, device, seed=1, widths=WIDTHS, source_pad=None):
        self.pad, self.source_pad, self.seed, self.device = pad, pad if source_pad is None else source_pad, seed, device
        lengths = np.maximum(packed.source_lengths, packed.target_lengths).astype(np.int64) + 1
        keep = lengths <= widths[-1]
        self.passes = np.where(keep, packed.passes, 0).astype(np.int64)
        self.widths = np.asarray(widths)
        self.bucket = np.searchsorted(self.widths, np.minimum(lengths, widths[-1]))
        self.rows = [max(1, tokens // w // 8 * 8 or tokens // w) for w in widths]
        self.real_tokens = int((packed.target_lengths.astype(np.int64) + 1) @ self.passes)
        self.side = {}
        for name in ("source", "target"):
            size = getattr(packed, name + "_lengths").astype(np.int64)
            start = np.concatenate([[0], np.cumsum(size)])[:-1]
            ids = torch.from_numpy(getattr(packed, name).astype(np.int32)).to(device)
            self.side[name] = (ids, torch.from_numpy(start).to(device), torch.from_numpy(size).to(device))

    def plan(self, number):
        """Batches of pass `number`: list of (bucket, indices tensor on the device [rows])."""
        rng = np.random.default_rng([self.seed, number])
        order = rng.permutation(np.repeat(np.arange(len(self.passes)), self.passes))
        which, jobs = self.bucket[order], []
        for b, rows in enumerate(self.rows):
            mine = order[which == b]
            if not len(mine):
                continue
            short = -len(mine) % rows
            mine = np.concatenate([mine, rng.choice(mine, short)]).reshape(-1, rows)
            on_device = torch.from_numpy(mine).to(self.device)
            jobs.extend((b, on_device[i]) for i in range(len(mine)))
        return [jobs[i] for i in rng.permutation(len(jobs))]

    def gather(self, name, index, width):
        """[rows, width] ids with </s> (0) and padding."""
        ids, start, size = self.side[name]
        column = torch.arange(width, device=index.device)[None]
        length = size[index][:, None]
        found = ids[(start[index][:, None] + column).clamp(max=ids.numel() - 1)].long()
        pad = self.source_pad if name == "source" else self.pad
        return torch.where(column < length, found, (column != length) * pad)

    def fetch(self, bucket, index):
        """source, decoder input, expected output: each [rows, width of the bucket]."""
        width = int(self.widths[bucket])
        source, target = self.gather("source", index, width), self.gather("target", index, width)
        start = torch.full_like(target[:, :1], self.pad)
        return source, torch.cat([start, target[:, :-1]], 1), target
