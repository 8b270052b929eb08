# SPDX-License-Identifier: MIT
"""Sequence-level distillation: a teacher translates training sources on the GPU.

Reads text files (plain or .xz) and leaves their translations in `out`, one line per source line. Several worker
processes share the GPU, so that one decodes while another collects its results; each takes every n-th batch. With a
time budget, a batch is decoded with the beam as long as the rest could still be done greedily in time; what is not
done ten seconds after the budget is left out (pack then takes the real targets). Rows are what makes it fast: a step
costs about 400 kernel launches whatever the batch, so take as many as fit. Files that are not there yet are waited
for: a corpus may arrive while its first part is being translated (a manifest of sizes says when one is complete).
"""
import json
import os
import random
import time

import torch

from . import corpus, search


def load_teacher(folder):
    """A Hugging Face MarianMT folder or a checkpoint of ours (waited for); returns model and SentencePiece path."""
    if os.path.exists(os.path.join(folder, "config.json")):
        from . import marian_hf
        return marian_hf.load(folder), os.path.join(folder, "source.spm")
    from .checkpoint import load_model
    wait_for(os.path.join(folder, "model.pt"), 0)
    return load_model(os.path.join(folder, "model.pt")), os.path.join(folder, "vocab.spm")


class Pace:
    """Decides beam or greedy from measured seconds per source token."""

    def __init__(self, deadline, ratio=4.0):
        self.deadline, self.ratio, self.beam_rate, self.greedy_rate = deadline, ratio, None, None
        self.seen = set()

    def choose(self, batch, remaining, width):
        if width == 1 or self.deadline is None:
            return width
        beam = self.beam_rate or 0.0
        greedy = self.greedy_rate or beam / self.ratio
        left = self.deadline - time.time()
        return width if left > batch * beam + (remaining - batch) * greedy * 1.1 else 1

    def note(self, width, tokens, seconds):
        """Exponential mean; a batch's first seconds include warm-up, which the mean forgets."""
        name = "greedy_rate" if width == 1 else "beam_rate"
        if name not in self.seen:                                       # the first batch of a kind warms up
            self.seen.add(name)
            return
        old = getattr(self, name)
        setattr(self, name, seconds / tokens if old is None else 0.9 * old + 0.1 * seconds / tokens)


def wait_for(path, size, limit=900):
    start = time.time()
    while not os.path.exists(path) or (size and os.path.getsize(path) != size):
        if time.time() - start > limit:
            raise TimeoutError(f"{path} did not arrive")
        time.sleep(0.5)


def plan(lines, rows, per_token=4):
    """Batches of line numbers of similar length (in characters: cheap), at most rows x 32 tokens each; mixed order."""
    order = sorted(range(len(lines)), key=lambda i: -len(lines[i]))
    batches, at = [], 0
    while at < len(order):
        longest = len(lines[order[at]]) // per_token + 1
        count = max(8, min(rows, rows * 32 // longest))
        batches.append(order[at:at + count])
        at += count
    random.Random(1).shuffle(batches)                                   # mixed lengths: the pace is then steady
    return batches


def translate(model, ids, width, nbest=1, leave=0.02):
    """One batch: a list of translations a line. Halved if the GPU's memory does not hold it. A beam does not wait for its last
    lines: of a batch of 57 tokens a line the slowest took 148 steps, and a step costs its 400 launches for three lines as
    for thousands."""
    try:
        source = search.pad_rows(ids, model.source_pad, model.embedding.device)
        limit = min(int(1.5 * source.size(1)) + 8, 200)
        if width == 1 or nbest == 1:
            found = search.greedy(model, source, limit) if width == 1 else search.beam(model, source, limit, width, leave=leave)
            return [[x] for x in found]
        return search.beam(model, source, limit, width, nbest=nbest, leave=leave)
    except RuntimeError as e:
        if "out of memory" not in str(e) or len(ids) < 16:
            raise
    torch.cuda.empty_cache()
    half = len(ids) // 2
    return translate(model, ids[:half], width, nbest) + translate(model, ids[half:], width, nbest)


def worker(rank, count, settings):
    """Translates its share of every file; writes FILE.made.RANK as `index<TAB>text` lines (more texts behind
    tabs with nbest)."""
    import sentencepiece
    torch.set_num_threads(2)
    if settings["device"] == "cuda":
        torch.set_float32_matmul_precision("high")
        torch.cuda.set_per_process_memory_fraction(settings["memory"] / count)      # or they starve each other
    model, spm_path = load_teacher(settings["teacher"])
    model = model.to(settings["device"], settings["dtype"]).fuse_for_decoding()
    spm = sentencepiece.SentencePieceProcessor(model_file=spm_path)
    pace, done, start = Pace(settings["deadline"]), 0, time.time()
    before = direction_ids(spm)
    total = settings["total_tokens"] / count
    beams = 0
    for (path, size), ways in zip(settings["files"], settings["directions"]):
        wait_for(path, size)
        lines = corpus.read_lines(path)
        ways = directions_of(ways, len(lines)) if ways else None
        batches = plan(lines, settings["rows"])
        out = os.path.join(settings["out"], name_of(path) + f".made.{rank}")
        with open(out + ".tmp", "w", encoding="utf-8", newline="\n") as f:
            for number in range(rank, len(batches), count):
                if settings["deadline"] and time.time() > settings["deadline"] + 10:
                    break                                               # out of time: the rest keeps its real targets
                batch, began = batches[number], time.time()
                ids = [x[:settings["longest"]] for x in spm.encode([lines[i] for i in batch], num_threads=3)]
                if ways:
                    ids = [before(ways[i]) + x for i, x in zip(batch, ids)]
                tokens = sum(map(len, ids)) + len(ids)
                width = pace.choose(tokens, max(total - done, tokens), settings["beam"])
                found = translate(model, ids, width, settings["nbest"])
                texts = iter(spm.decode([x for some in found for x in some], num_threads=1))
                for i, some in zip(batch, found):
                    f.write(f"{i}\t" + "\t".join(next(texts) for _ in some) + "\n")
                pace.note(width, tokens, time.time() - began)
                done += tokens
                beams += width > 1
                if number // count % 20 == 0:
                    rate = done / (time.time() - start)
                    print(f"distill[{rank}] {name_of(path)} {number + 1}/{len(batches)} beam {width} "
                          f"{rate:.0f} source tokens/s, {time.time() - start:.0f} s, ETA {(total - done) / rate:.0f} s",
                          flush=True)
        os.replace(out + ".tmp", out)
    print(f"distill[{rank}] done: {done} tokens, {time.time() - start:.0f} s, beam batches {beams}", flush=True)


def directions_of(path, count):
    """A line's languages, for every line of a file of `count` lines."""
    from .multilingual import read_directions
    found = read_directions(path)
    if len(found) != count:
        raise ValueError(f"{path}: {len(found)} lines, and its file of text has {count}")
    return found


def direction_ids(spm):
    """way -> the ids that go before a source (the target's token, multilingual.py's default)."""
    from .multilingual import token

    def before(way):
        number = spm.piece_to_id(token(way[1]))
        if number == spm.unk_id():
            raise ValueError(f"the teacher's vocabulary has no {token(way[1])}")
        return [number]
    return before


def name_of(path):
    base = os.path.basename(path)
    return os.path.splitext(base)[0] if base.endswith((".xz", ".gz", ".bz2")) else base


def collect(out, path, count, limit=900):
    """Waits for all workers' parts of one file and returns the translations in order, alternatives behind tabs."""
    found = {}
    for rank in range(count):
        part = os.path.join(out, name_of(path) + f".made.{rank}")
        wait_for(part, 0, limit)
        with open(part, encoding="utf-8", newline="\n") as f:
            for line in f:
                index, text = line.rstrip("\n").split("\t", 1)
                found[int(index)] = text
    return [found.get(i, "") for i in range(max(found, default=-1) + 1)]


def write_made(out, path, lines):
    """What `shortlist` reads: one translation a line."""
    corpus.write_lines(os.path.join(out, name_of(path) + ".made"), lines)


def distill(teacher, files, out, beam=4, budget=0, rows=2048, workers=2, device="cuda", manifest=None, total_tokens=0,
            longest=126, memory=0.84, nbest=1, program=None, precision=None, chunk=250000, directions=()):
    """files: paths; directions: none, or for every file one with a line's languages; manifest: JSON {file name: size in bytes} for files that are still arriving; program: `dragoman`, which then
    translates instead of search.py (engine.py)."""
    sizes = {}
    if manifest:
        with open(manifest, encoding="utf-8") as f:
            sizes = json.load(f)
    if directions and len(directions) != len(files):
        raise ValueError(f"distill: {len(files)} files need as many --directions, not {len(directions)}")
    os.makedirs(out, exist_ok=True)
    settings = {"teacher": teacher, "directions": list(directions) or [None] * len(files), "files": [(p, sizes.get(os.path.basename(p), 0)) for p in files], "out": out,
                "beam": beam, "deadline": time.time() + budget if budget else None, "rows": rows, "device": device,
                "dtype": torch.bfloat16 if device == "cuda" else torch.float32, "memory": memory,
                "total_tokens": total_tokens or 10 ** 9, "longest": longest, "nbest": nbest,
                "program": program, "precision": precision, "chunk": chunk}
    if program:
        from . import engine
        engine.run(dict(settings, total_tokens=total_tokens))
    elif workers <= 1:
        worker(0, 1, settings)
    else:
        import torch.multiprocessing as mp
        mp.spawn(worker, (workers, settings), nprocs=workers)
