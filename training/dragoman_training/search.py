# SPDX-License-Identifier: MIT
"""Batched greedy and beam search on the training side: distillation, validation, test outputs.

The C engine is the real decoder; this one exists because a teacher translates millions of sentences on the GPU in
minutes. No step waits for the device except every few steps, when finished sentences leave the batch. <unk> (id 1) is
never emitted. Scores are compared after division by length ** penalty, </s> counted.
"""
import numpy as np
import torch

from . import fold, row_summary

EOS, UNK = 0, 1


def pad_rows(sequences, pad, device, multiple=8):
    """Id lists (without </s>) -> [B, W] with </s> and padding; W a multiple of 8 suits fused attention masks."""
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    width = -(-(int(lengths.max()) + 1) // multiple) * multiple
    rows = np.full((len(sequences), width), pad, np.int64)
    rows[np.arange(width)[None] < lengths[:, None]] = np.concatenate([np.asarray(ids, np.int64) for ids in sequences])
    rows[np.arange(len(sequences)), lengths] = EOS
    return torch.from_numpy(rows).to(device)


def finish(table):
    """[B, L] ids with </s> somewhere -> id lists without it."""
    rows = table.cpu().tolist()
    return [row[:row.index(EOS)] if EOS in row else row for row in rows]


class CachedDecoder:
    """A Transformer's decoder for `width` hypotheses a sentence: keys and values of what each has read.

    A hypothesis that goes on with another's history takes over the numbers of the rows that hold it, not the keys and values:
    those of six layers, copied at every step, were most of the time of a beam."""

    def __init__(self, model, source, width, limit, room=32):
        memory, self.mask = model.encode(source)
        self.cross = [tuple(x.contiguous() for x in layer.cross_attn.keys_values(memory)) for layer in model.decoder]
        self.model, self.width, self.limit, self.room = model, width, limit, min(limit, room)
        count = source.size(0) * width
        self.states = model.start_states(count, self.room, source.device, model.embedding.dtype)
        self.own = torch.arange(count, device=source.device, dtype=torch.int32)
        self.rows = self.own[:, None].repeat(1, limit) if width > 1 and "k" in self.states[0] else None

    def step(self, last, t):
        if (t + 1) * self.model.config.tokens_per_step > self.room:
            self.grow(min(self.limit, 2 * self.room))
        return self.model.step(last, t, self.states, self.cross, self.mask, self.rows)

    def grow(self, room):
        self.room = room
        for state in self.states:
            for name in set(state) & {"k", "v"}:
                old = state[name]
                state[name] = old.new_zeros(old.size(0), old.size(1), room, old.size(3))
                state[name][:, :, :old.size(2)] = old

    def reorder(self, rows, t):
        """Row i goes on with the history of row rows[i], up to position t."""
        if self.rows is not None:
            self.rows = self.rows[rows]
            self.rows[:, t + 1:t + 2] = self.own[:, None]               # the next position is written into its own row
        for state in self.states:
            if "cell" in state:
                state["cell"] = state["cell"][rows]

    def keep(self, sentences, rows):
        """Only these sentences, whose hypotheses are these rows, go on."""
        self.mask = self.mask[sentences]
        self.cross = [(k[sentences], v[sentences]) for k, v in self.cross]
        self.states = [{name: value[rows] for name, value in state.items()} for state in self.states]
        self.own = self.own[:len(rows)]
        if self.rows is not None:                                       # histories stay within a sentence's rows
            first = self.own - self.own % self.width
            self.rows = self.rows[rows] % self.width + first[:, None]


class RecurrentDecoder:
    """The same for a recurrent model: one state vector a hypothesis, the memory repeated for each."""

    def __init__(self, model, source, width, limit):
        memory, mask = model.encode(source)
        self.model = model
        parts = (model.start(memory, mask), memory, mask)
        self.h, self.memory, self.mask = (x.repeat_interleave(width, 0) for x in parts)
        self.keys = model.cell.keys(self.memory)

    def step(self, last, t):
        hidden, self.h, _ = self.model.step(last, self.h, self.keys, self.memory, self.mask)
        return hidden

    def reorder(self, rows, t):
        self.h = self.h[rows]

    def keep(self, sentences, rows):
        self.h, self.memory, self.mask = self.h[rows], self.memory[rows], self.mask[rows]
        self.keys = self.model.cell.keys(self.memory)


def decoder(model, source, width, limit):
    return (CachedDecoder if hasattr(model, "start_states") else RecurrentDecoder)(model, source, width, limit)


def logits_f32(model, hidden):
    """Logits in f32 from f32 products: bf16 logits are too coarse to rank (steps of 1/16 near 10)."""
    bias = model.output_bias.float() if model.config.output_bias else None
    return torch.nn.functional.linear(hidden.float(), model.output_rows().float(), bias)


@torch.no_grad()
def greedy(model, source, max_length, every=8):
    """Arg-max translations of source [B, S] (ends with </s>, padded): list of id lists."""
    device, total = source.device, source.size(0)
    network = decoder(model, source, 1, max_length)
    alive = torch.arange(total, device=device)
    out = torch.zeros(total, max_length + 1, dtype=torch.int32, device=device)
    over = torch.zeros(total, dtype=torch.bool, device=device)
    last = torch.full((total,), model.pad, dtype=torch.long, device=device)
    for t in range(max_length):
        scores = logits_f32(model, network.step(last, t))
        scores[:, UNK] = -1e9
        last = scores.argmax(-1)
        out[alive, t] = last.masked_fill(over, EOS).int()
        over |= last == EOS
        if t % every == every - 1:
            keep = (~over).nonzero()[:, 0]
            if keep.numel() == 0:
                break
            if keep.numel() < 0.8 * alive.numel():
                alive, last, over = alive[keep], last[keep], over[keep]
                network.keep(keep, keep)
    return finish(out)


@torch.no_grad()
def greedy_pairs(model, source, max_length, every=8):
    """The same for a decoder of pairs: the best of each side, until one of them is EOD."""
    device, total = source.device, source.size(0)
    network = decoder(model, source, 1, max_length + 2)
    out = torch.full((total, max_length // 2 + 1, 2), model.eod, dtype=torch.long, device=device)
    over = torch.zeros(total, dtype=torch.bool, device=device)
    last = torch.tensor([[model.bos, EOS]], device=device).expand(total, 2)
    for t in range(out.size(1)):
        scores = logits_f32(model, network.step(last, t))               # [B, 2, V]
        scores[..., [EOS, UNK, model.bos]] = -1e9
        last = scores.argmax(-1)
        out[:, t] = last.masked_fill(over[:, None], model.eod)
        over |= (last == model.eod).any(1)
        if t % every == every - 1 and bool(over.all()):
            break
    return [fold.unfold(row, model.config.order, model.eod) for row in out.flatten(1).tolist()]


def top(scores, count, chunk=row_summary.CHUNK, highest=None):
    """topk along the rows of [N, V] for a small count: the best are in the chunks with the best maxima, `highest` where they
    are known. Several times as fast."""
    n, size = scores.shape
    if size % chunk or size // chunk < count:
        return scores.topk(count, -1)
    parts = scores.view(n, -1, chunk)
    highest = parts.amax(-1) if highest is None else highest
    where = highest.topk(count, -1).indices                             # [N, count]
    few = parts.gather(1, where[..., None].expand(-1, -1, chunk)).view(n, -1)
    value, at = few.topk(count, -1)
    return value, where.gather(1, torch.div(at, chunk, rounding_mode="floor")) * chunk + at % chunk


def candidates(logits, count):
    """Of each row of [N, V] logits (which change): log p of </s>, and the best `count` others with their log p."""
    highest, end = None, logits[:, EOS].clone()
    if row_summary.usable(logits, count):
        norm, highest = row_summary.summary(logits, 2)
    else:
        norm = end - torch.log_softmax(logits, -1)[:, EOS]              # one pass; logsumexp takes six
    logits[:, :2] = -1e9
    value, token = top(logits, count, highest=highest)
    return end - norm, value - norm[:, None], token


@torch.no_grad()
def beam(model, source, max_length, width=4, penalty=1.0, every=4, nbest=1, leave=0.0):
    """Best hypothesis of each sentence; a sentence leaves when its best live beam can no longer win soon. With nbest > 1, lists
    of what had ended by then, the best first: one to nbest of them. The last sentences, a share `leave` of all, are not
    waited for: what has ended of them counts, or nothing."""
    device, total = source.device, source.size(0)
    network = decoder(model, source, width, max_length)
    alive = torch.arange(total, device=device)
    out = torch.zeros(total, nbest, max_length + 1, dtype=torch.int32, device=device)
    best = torch.full((total, nbest), -1e9, device=device)              # of the alive ones, and their words
    ended_path = torch.zeros(total, nbest, max_length, dtype=torch.int32, device=device)
    path = torch.zeros(total, width, max_length, dtype=torch.int32, device=device)
    last = torch.full((total * width,), model.pad, dtype=torch.long, device=device)
    score = torch.zeros(total, width, device=device)
    score[:, 1:] = -1e9                                                 # one live hypothesis at the start
    for t in range(max_length):
        n = alive.numel()
        logits = logits_f32(model, network.step(last, t))               # [n * width, V]
        ended, value, token = candidates(logits, width)                 # a row can give at most `width` survivors
        joint = score.view(n, width, 1) + value.view(n, width, width)
        raw = score + ended.view(n, width)
        score, pick = joint.view(n, -1).topk(width, -1)
        # an end counts only if it ranks among the best `width` continuations: else an improbable </s> could win by
        # being short, and the translation would be cut
        final = (raw / (t + 1) ** penalty).masked_fill(raw < score[:, -1:], -1e9)
        best, kept = torch.cat([best, final], 1).topk(nbest, 1)
        ended_path = torch.cat([ended_path, path], 1).gather(1, kept[..., None].expand(-1, -1, max_length))
        ended_path = ended_path.masked_fill(best[..., None] < -1e8, EOS)    # no end among the best: nothing
        parent = torch.div(pick, width, rounding_mode="floor")          # [n, width] row inside the sentence
        last = token.view(n, -1).gather(1, pick).view(-1)
        path = path.gather(1, parent[..., None].expand(-1, -1, max_length))
        path[:, :, t] = last.view(n, width).int()
        rows = (torch.arange(n, device=device)[:, None] * width + parent).view(-1)
        network.reorder(rows, t)
        if t % every == every - 1:
            keep = (score[:, 0] / (t + 2) ** penalty >= best[:, 0]).nonzero()[:, 0]
            if keep.numel() <= leave * total:
                break
            if keep.numel() < 0.9 * n:
                out[alive, :, :max_length] = ended_path
                rows = (keep[:, None] * width + torch.arange(width, device=device)).view(-1)
                ended_path = ended_path[keep]
                alive, best, score, path, last = alive[keep], best[keep], score[keep], path[keep], last[rows]
                network.keep(keep, rows)
    out[alive, :, :max_length] = ended_path
    found = finish(out.view(total * nbest, -1))
    if nbest == 1:
        return found
    return [[x for x in found[i:i + nbest] if x] or [[]] for i in range(0, len(found), nbest)]


def one_batch(model, source, limit, width):
    if hasattr(model, "encode_lengths"):
        from . import cmlm
        return cmlm.mask_predict(model, source, 4, 1, limit)
    if getattr(model.config, "tokens_per_step", 1) == 2:
        if width > 1:
            raise ValueError("pairs are searched greedily here: the C program has the beam")
        return greedy_pairs(model, source, limit)
    found = greedy(model, source, limit) if width == 1 else beam(model, source, limit, width)
    return [ids[::-1] for ids in found] if getattr(model.config, "order", "l2r") == "r2l" else found


def translate_ids(model, sources, width=1, rows=2048, report=None):
    """Translates id lists (no </s>) in length-sorted batches; the result is in input order."""
    device = model.embedding.device
    order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
    result, at = [None] * len(sources), 0
    while at < len(order):
        longest = len(sources[order[at]]) + 1
        count = max(8, min(rows, rows * 48 // longest) // max(1, width // 2))
        batch = order[at:at + count]
        at += count
        source = pad_rows([sources[i] for i in batch], model.source_pad, device)
        limit = min(int(1.6 * longest) + 12, model.config.max_positions - 1)
        found = one_batch(model, source, limit, width)
        for i, ids in zip(batch, found):
            result[i] = ids
        if report:
            report(at, len(order))
    return result
