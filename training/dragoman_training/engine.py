# SPDX-License-Identifier: MIT
"""Distillation by the program itself: `distill --engine dragoman` runs `dragoman translate` over files, on a GPU or not.

A file is cut into chunks, each of them one job with --resume: a run that was ended goes on where it was, whatever ended it. With
a time budget a chunk is decoded with the beam as long as the rest could still be done greedily in time (distill.Pace); what is not
done ten seconds after the budget is left out. Results are those of one worker: NAME.made.0, `index<TAB>text` lines, alternatives
behind tabs, so that `pack --made-workers 1` and everything behind it are the same as with PyTorch's search. Inputs are cut at
`longest` subwords, outputs at 1.5 times the source + 10 and at 200, as there.
"""
import json
import os
import signal
import subprocess
import time

from . import corpus

SOME_FAILED = 3                                                         # exit status: done, but for some lines


def teacher_file(teacher, out):
    """What -m takes: a model file or a Hugging Face folder as it is; a checkpoint of ours is exported first."""
    held = os.path.join(teacher, "model.pt")
    if not os.path.isdir(teacher) or not os.path.exists(held):
        return teacher
    from .checkpoint import read
    from .export import export, module_from, pieces_from
    path = os.path.join(out, "teacher.gguf")
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(held):
        export(path + ".tmp", module_from(read(held)), pieces_from(os.path.join(teacher, "vocab.spm")))
        os.replace(path + ".tmp", path)
    return path


def command(settings, model, source, target, width, directions=None):
    nbest = ["--nbest", str(min(settings["nbest"], width))] if width > 1 and settings["nbest"] > 1 else []
    precision = ["--precision", settings["precision"]] if settings["precision"] else []
    return [settings["program"], "translate", "--raw", "-m", model, "-i", source, "-o", target, "--resume", "--beam", str(width),
            "--device", settings["device"], "--max-source", str(settings["longest"] + 1), "--long", "crop", "--max-length", "200",
            "--max-length-factor", "1.5", "--window", "32768", "--failures", target + ".failures", "-q", "--stats=json", *nbest,
            *precision, *(["--directions", directions] if directions else [])]


def translate(arguments, deadline):
    """Runs a job: source tokens of all its models (there are several where lines may go through two) and seconds, {} where it was
    complete already, None where the time was over."""
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as job:
        try:
            said = job.communicate(timeout=None if deadline is None else max(0.1, deadline + 10 - time.time()))[1]
        except subprocess.TimeoutExpired:
            job.send_signal(signal.SIGINT)                              # it ends with whole lines
            job.communicate()
            return None
    if job.returncode not in (0, SOME_FAILED):
        raise RuntimeError(f"'{' '.join(arguments)}' failed with {job.returncode}: {said.strip()[-500:]}")
    found = [json.loads(line)["stats"] for line in said.splitlines() if line.startswith('{"stats"')]
    if not found:
        return {}
    return {"source_tokens": sum(stats["source_tokens"] for stats in found), "seconds": max(stats["seconds"] for stats in found)}


def texts(path, listed):
    """Lists of translations, in order; of an n-best file that was cut off the last list is not whole."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", newline="\n") as f:
        lines = f.read().split("\n")[:-1]
    if not listed:
        return [[line] for line in lines]
    found = []
    for line in lines:
        parts = line.split(" ||| ")
        index = int(parts[0])
        found += [[] for _ in range(index + 1 - len(found))]
        found[index].append(" ||| ".join(parts[1:-2]))
    return found


class Chunk:
    """`lines` of a file from number `first` on, in files of their own beside the results."""

    def __init__(self, stem, first, lines, ways=None):
        self.stem, self.first, self.count = f"{stem}.{first}", first, len(lines)
        self.source = self.stem + ".source"
        self.directions = self.stem + ".directions" if ways else None
        for path, wanted in ((self.directions, ways), (self.source, lines)):
            if path and not os.path.exists(path):
                corpus.write_lines(path + ".tmp", wanted)
                os.replace(path + ".tmp", path)

    def begun(self, widths):
        """The width that an earlier run chose, or None."""
        return next((w for w in widths if os.path.exists(self.output(w))), None)

    def output(self, width):
        return f"{self.stem}.beam{width}"

    def remove(self, width):
        for path in (self.source, self.stem + ".directions", self.output(width), self.output(width) + ".progress", self.output(width) + ".failures"):
            if os.path.exists(path):
                os.remove(path)


def tokens_of(lines, per_token=4):
    """About how many subwords lines have: cheap, and good enough to plan by."""
    return sum(len(line) // per_token + 2 for line in lines)


def translate_file(settings, model, path, size, directions, pace, done):
    """Writes NAME.made.0 of one file; source tokens that were translated, those of files before in `done`."""
    from .distill import directions_of, name_of, wait_for
    wait_for(path, size)
    out = os.path.join(settings["out"], name_of(path) + ".made.0")
    lines, beam, finished = list(corpus.read_lines(path)), settings["beam"], []
    ways = [" ".join(way) for way in directions_of(directions, len(lines))] if directions else None
    for first in range(0, len(lines), settings["chunk"]):
        if settings["deadline"] and time.time() > settings["deadline"] + 10:
            break                                                       # out of time: the rest keeps its real targets
        end, began = first + settings["chunk"], time.time()
        chunk = Chunk(out, first, lines[first:end], ways[first:end] if ways else None)
        guess = tokens_of(lines[first:first + chunk.count])
        rest = max(settings["total_tokens"] - done if settings["total_tokens"] else 0, tokens_of(lines[first:]))
        width = chunk.begun((beam, 1)) or pace.choose(guess, rest, beam)
        stats = translate(command(settings, model, chunk.source, chunk.output(width), width, chunk.directions), settings["deadline"])
        finished.append((chunk, width))
        tokens = int((stats or {}).get("source_tokens", 0))
        if tokens:
            pace.note(width, tokens, time.time() - began)
            done += tokens
            print(f"distill {name_of(path)} {first + chunk.count}/{len(lines)} beam {width} {stats['source_tokens']:.0f} source tokens, "
                  f"{stats['source_tokens'] / stats['seconds']:.0f}/s, {time.time() - began:.0f} s with loading", flush=True)
    with open(out + ".tmp", "w", encoding="utf-8", newline="\n") as f:
        for chunk, width in finished:
            for i, some in enumerate(texts(chunk.output(width), width > 1 and settings["nbest"] > 1)):
                if any(some):
                    f.write(f"{chunk.first + i}\t" + "\t".join(x.replace("\t", " ") for x in some) + "\n")
    os.replace(out + ".tmp", out)
    for chunk, width in finished:
        chunk.remove(width)
    return done


def run(settings):
    """settings: those of distill.distill, and `program`, `precision`, `chunk`."""
    from .distill import Pace
    begin, done = time.time(), 0
    model, pace = teacher_file(settings["teacher"], settings["out"]), Pace(settings["deadline"])
    for (path, size), directions in zip(settings["files"], settings["directions"]):
        done = translate_file(settings, model, path, size, directions, pace, done)
    print(f"distill done: {done} source tokens, {time.time() - begin:.0f} s", flush=True)
