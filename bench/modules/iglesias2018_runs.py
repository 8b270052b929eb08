# SPDX-License-Identifier: MIT
"""What bench/iglesias2018 runs, and what it remembers.

Every measurement is a row of WORK/runs.csv, written when it is done and looked up by its key, which holds the models'
and the text's digests: the same command goes on where it was stopped. Translations, lists, settings and shrunken models
are files of WORK with the same digests in their names. A text is a folder-less name with source, reference and, if given,
evidence: an n-best list and lattices of another system.
"""
import csv
import datetime
import gzip
import hashlib
import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import entry

ROOT = Path(__file__).resolve().parents[2]
FIELDS = ("key date commit cpu what system precision beam rows order evidence finish text lines words tokens steps seconds wall "
          "encoder states readout products selection search walked evidence_seconds evidence_rows evidence_values "
          "workspace rss kernels").split()
PENALTIES = [0, 0.6, 1, 1.4]
WEIGHTS = [0, 0.01, 0.03, 0.1, 0.3]
RISKS = [(utility, scale) for utility in ("bleu", "chrf") for scale in (0, 1, 3, 10, 30, 100)]


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def open_text(path):
    """Plain or gzip. Evidence is read line by line: what this process needs is in the peak memory of those it starts."""
    opened = gzip.open if str(path).endswith(".gz") else open
    return opened(path, "rt", encoding="utf-8", newline="\n")


def read_text(path):
    with open_text(path) as f:
        return f.read()


def find(text, pattern, kind=float):
    found = re.search(pattern, text, re.M)
    return kind(found.group(1)) if found else None


def words_of(path):
    return len(read_text(path).split())


class Text:
    """A source text and its reference; lists and lattices of it, or None."""

    def __init__(self, name, source, reference, lists=None, lattices=None):
        self.name, self.source, self.reference = name, Path(source), reference and Path(reference)
        self.lists, self.lattices = lists and Path(lists), lattices and Path(lattices)
        self.lines = len(read_text(source).splitlines())
        self.words = words_of(source)


class System:
    """Model files that translate together. random: weights that nobody trained."""

    def __init__(self, name, models, random=False):
        self.name, self.models, self.random = name + (" (random)" if random else ""), [Path(m) for m in models], random

    def options(self):
        return [word for model in self.models for word in ("-m", model)]


def sample(text, count, folder):
    """Every k-th line of a text, evidence too, so that count lines are left."""
    if not count or count >= text.lines:
        return text
    kept = [i * text.lines // count for i in range(count)]
    number = {line: i for i, line in enumerate(kept)}
    begin = folder / f"{text.name}.{count}"

    def lines_of(path, kind):
        out = begin.with_name(begin.name + kind)
        lines = read_text(path).splitlines()
        out.write_text("".join(lines[i] + "\n" for i in kept), encoding="utf-8")
        return out

    def lists_of(path):
        out = begin.with_name(begin.name + ".list")
        if not out.exists():
            with open_text(path) as lines, open(out.with_suffix(".part"), "w", encoding="utf-8") as f:
                for line in lines:
                    at, rest = line.split("|||", 1)
                    if int(at) in number:
                        f.write(f"{number[int(at)]} |||{rest}")
            out.with_suffix(".part").rename(out)
        return out

    def lattices_of(path):
        out = begin.with_name(begin.name + ".lattices")
        if not out.exists():
            at = -1
            with open_text(path) as lines, open(out.with_suffix(".part"), "w", encoding="utf-8") as f:
                for line in lines:
                    at += line.startswith("lattice")
                    if at in number:
                        f.write(line)
            out.with_suffix(".part").rename(out)
        return out

    return Text(begin.name, lines_of(text.source, ".source"), text.reference and lines_of(text.reference, ".reference"),
                text.lists and lists_of(text.lists), text.lattices and lattices_of(text.lattices))


def shorter_lists(text, size, folder):
    """The text with the first `size` translations of every list, no lattices."""
    out = folder / f"{text.name}.{size}-best"
    if not out.exists():
        seen = {}
        with open_text(text.lists) as lines, open(out.with_suffix(".part"), "w", encoding="utf-8") as f:
            for line in lines:
                at = line.split("|||", 1)[0]
                seen[at] = seen.get(at, 0) + 1
                if seen[at] <= size:
                    f.write(line)
        out.with_suffix(".part").rename(out)
    made = Text(text.name, text.source, text.reference, out)
    made.name = text.name
    return made


class Runner:
    def __init__(self, args):
        self.args, self.work = args, Path(args.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.log, self.runs, self.digests = self.work / "runs.csv", {}, {}
        if self.log.exists() and not args.fresh:
            with open(self.log, newline="", encoding="utf-8") as f:
                known = csv.DictReader(f)
                if known.fieldnames != FIELDS:
                    sys.exit(f"{self.log} was written by another version of this script: --fresh, or another --work")
                self.runs = {row["key"]: row for row in known}
        else:
            with open(self.log, "w", newline="", encoding="utf-8") as f:
                csv.writer(f).writerow(FIELDS)
        self.commit, self.cpu, self.began = entry.commit(), cpu_name(), time.time()

    def late(self, share=1):
        """Whether a share of the time is over."""
        return self.args.report or bool(self.args.budget and time.time() - self.began > share * self.args.budget)

    def identity(self, *paths):
        for path in paths:
            if path not in self.digests:
                digest = hashlib.sha256()
                with open(path, "rb") as f:
                    while block := f.read(1 << 20):
                        digest.update(block)
                self.digests[path] = digest.hexdigest()[:8]
        return "-".join(self.digests[path] for path in paths)

    def program(self, *words, output=None, some_failed=False):
        """Runs dragoman; what it says on standard error. some_failed: lines may fail (status 3)."""
        command = [str(x) for x in (self.args.program, *words)]
        with open(output or "/dev/null", "w", encoding="utf-8") as out:
            done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True)
        if done.returncode and not (some_failed and done.returncode == 3):
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        return done.stderr

    # ---- translations ------------------------------------------------------------------------------------------------

    def output_of(self, key):
        return self.work / ("out-" + hashlib.sha256(key.encode()).hexdigest()[:16])

    def translate(self, what, system, text, beam, options=(), evidence="", rows="beam", order="", precision=None,
                  threads=1, again=0, instead=None, finish=None):
        """One timed translation, from earlier if there is one, whatever it was made for; None when there is no time for
        it. again: a round. instead: the row of a translation whose lines stand in for those that fail. finish: the policy,
        the first of --finish unless said."""
        precision = precision or self.args.precisions[0]
        finish = finish or self.args.finish[0]
        options = [*options, "--finish", finish]
        named = [Path(o) for o in options if isinstance(o, Path)]
        files = [*system.models, text.source, *named]
        shown = " ".join(str(o.name if isinstance(o, Path) else o) for o in options)
        key = f"{system.name} {precision} beam {beam} {shown} of {text.name} {self.identity(*files)} round {again}"
        if key in self.runs:
            return self.runs[key]
        if self.late():
            return None
        part, failures = self.work / "part", self.work / "failures"
        before = time.time()
        said = self.program("translate", "--raw", *system.options(), "-i", text.source, "-b", beam, "--precision", precision,
                            "--shortlist", "all", "--threads", threads, "-q", "--stats=time", *options,
                            *(["--failures", failures] if instead else []), output=part, some_failed=instead)
        if instead:
            self.stand_in(part, failures, instead)
        part.rename(self.output_of(key))
        row = self.row_of(said)
        row.update(key=key, what=what, system=system.name, precision=precision, beam=beam, rows=rows, order=order,
                   evidence=evidence, finish=finish, text=text.name, lines=text.lines, words=text.words)
        self.keep(row)
        print(f"  {key}: {row['seconds']:.2f} s, {time.time() - before:.0f} s in all", file=sys.stderr, flush=True)
        return self.runs[key]

    def stand_in(self, output, failures, row):
        """Lines that failed (a lattice that the vocabulary cannot spell a path of) become those of row's translation."""
        failed = [int(line.split("\t")[0]) for line in failures.read_text(encoding="utf-8").splitlines()]
        lines = output.read_text(encoding="utf-8").split("\n")
        others = self.output_of(row["key"]).read_text(encoding="utf-8").split("\n")
        for number in failed:
            lines[number - 1] = others[number - 1]
        output.write_text("\n".join(lines), encoding="utf-8")
        if failed:
            print(f"  {len(failed)} lines failed, they are as {row['key']} has them", file=sys.stderr, flush=True)

    def row_of(self, said):
        parts = find(said, r"^CPU time +(.*)$", str) or ""
        share = {name: float(value) for name, value in re.findall(r", ([\w-]+) ([\d.]+) s", parts)}
        made = re.search(r"^evidence .*, ([\d.]+) rows and ([\d.]+) values each, made in ([\d.]+) s", said, re.M)
        return dict(seconds=max(1e-3, find(parts, r"^([\d.]+) s") or 0), wall=find(said, r"([\d.]+) s to translate"),
                    tokens=find(said, r"in, (\d+) out", int), steps=find(said, r"^state steps +(\d+)", int),
                    encoder=share.get("encoder"), states=share.get("states"),
                    readout=share.get("read-out"), products=share.get("products"), selection=share.get("selection"),
                    search=share.get("search"), walked=find(parts, r"([\d.]+) MiB walked"),
                    evidence_rows=made and float(made.group(1)), evidence_values=made and float(made.group(2)),
                    evidence_seconds=made and float(made.group(3)), workspace=find(said, r"([\d.]+) MiB workspace"),
                    rss=find(said, r"([\d.]+) MiB peak RSS"), kernels=find(said, r"^device +(.*)$", str))

    def keep(self, row):
        row.update(date=datetime.date.today().isoformat(), commit=self.commit, cpu=self.cpu)
        with open(self.log, "a", newline="", encoding="utf-8") as f:
            csv.DictWriter(f, FIELDS).writerow(row)
        self.runs[row["key"]] = {k: "" if row.get(k) is None else str(row[k]) for k in FIELDS}

    def once(self, name, make, share=1):
        """A file of WORK that make(path) writes, unless it is there; None when there is no time for it. share: of the
        time that may be over when it is begun, less than 1 for what takes minutes."""
        path = self.work / name
        if path.exists():
            return path
        if self.late(share):
            return None
        before = time.time()
        part = path.with_name("part-" + path.name)
        make(part)
        part.rename(path)
        print(f"  {name}: {time.time() - before:.0f} s", file=sys.stderr, flush=True)
        return path

    # ---- quality -----------------------------------------------------------------------------------------------------

    def evaluate(self, reference, *outputs):
        """BLEU of the first, then BLEU and p (paired bootstrap against the first) of the others."""
        done = subprocess.run([self.args.program, "eval", "-m", "bleu", "--json", outputs[0], reference,
                               *(word for other in outputs[1:] for word in ("-c", other))], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        return [(one["score"], one.get("p")) for one in map(json.loads, done.splitlines())]

    def joined(self, name, paths):
        """Several files as one."""
        path = self.work / ("join-" + hashlib.sha256(" ".join([name, *map(str, paths)]).encode()).hexdigest()[:16])
        path.write_text("".join(Path(p).read_text(encoding="utf-8") for p in paths), encoding="utf-8")
        return path

    def bleu(self, rows, texts, base=None):
        """BLEU of translations of all texts as one; with base: difference and p against its translations."""
        if not texts or any(r is None for r in rows) or (base and any(r is None for r in base)):
            return None
        reference = self.joined("reference", [t.reference for t in texts])
        outputs = [self.joined("output", [self.file_of(r) for r in group]) for group in ([base] if base else []) + [rows]]
        scores = self.evaluate(reference, *outputs)
        if not base:
            return scores[0][0], None, None
        return scores[1][0], scores[1][0] - scores[0][0], scores[1][1]

    def file_of(self, row):
        return row if isinstance(row, Path) else self.output_of(row["key"])

    # ---- tuning on the development text ------------------------------------------------------------------------------

    def penalty(self, system, dev, beam):
        """The length penalty with the best BLEU of plain search; with all that were tried."""
        tried = {}
        for x in PENALTIES:
            row = self.translate("tuning", system, dev, beam, ["--length-penalty", x, *self.batch(beam)],
                                 rows=32, order="sorted", threads=self.args.threads)
            if row:
                tried[x] = self.evaluate(dev.reference, self.output_of(row["key"]))[0][0]
        return (max(tried, key=tried.get), tried) if len(tried) == len(PENALTIES) else (None, tried)

    def settings(self, system, dev, beam, kind, penalty):
        """A settings file for evidence of a kind, "lists" or "lattices", tuned on dev."""
        evidence = getattr(dev, kind)
        if not evidence:
            return None
        name = f"lmbr-{kind}-{self.identity(*system.models, evidence)}-beam{beam}-{penalty}-{self.args.precisions[0]}.conf"
        return self.once(name, lambda path: self.program(
            "translate", "--raw", *system.options(), "-i", dev.source, "-b", beam, "--precision", self.args.precisions[0],
            "--shortlist", "all", "--threads", self.args.threads, *self.batch(beam), "--finish", self.args.finish[0],
            "--length-penalty", penalty, "--lmbr", evidence, "--lmbr-tune", dev.reference, "-q", "-o", path), 0.5)

    def weight(self, system, dev, plain, instead):
        """The --lattice-weight with the best BLEU of search inside dev's lattices; None without time."""
        tried = {}
        for x in WEIGHTS:
            row = self.translate("tuning", system, dev, 12, [*plain, "--lattice", dev.lattices, "--lattice-weight", x,
                                                             *self.batch(12)], rows=32, order="sorted",
                                 threads=self.args.threads, instead=instead)
            if not row:
                return None
            tried[x] = self.evaluate(dev.reference, self.output_of(row["key"]))[0][0]
        print(f"{system.name}: lattice weight on {dev.name}: " + ", ".join(f"{x}: {b:.2f}" for x, b in tried.items()))
        return max(tried, key=tried.get)

    def risk(self, system, dev, plain):
        """Utility and scale with the best BLEU of minimum Bayes risk over the system's own list; None without time."""
        row = self.translate("tuning", system, dev, 12, [*plain, "--nbest", 12, *self.batch(12)], rows=32, order="sorted",
                             threads=self.args.threads)
        made = {how: row and self.least_risk(row, *how) for how in RISKS}
        if not all(made.values()):
            return None
        tried = {how: self.evaluate(dev.reference, path)[0][0] for how, path in made.items()}
        print(f"{system.name}: MBR on {dev.name}: " + ", ".join(f"{u} {s}: {b:.2f}" for (u, s), b in tried.items()))
        return max(tried, key=tried.get)

    def least_risk(self, row, utility, scale):
        """The translations of least risk of the lists that a run wrote."""
        lists = self.output_of(row["key"])
        return self.once(f"mbr-{utility}-{scale}-{lists.name}", lambda path: self.program(
            "mbr", "-u", utility, "--scale", scale, lists, output=path))

    def batch(self, beam, sentences=32):
        return ["--batch", sentences, "--batch-tokens", sentences * 128 * beam]

    # ---- other systems -----------------------------------------------------------------------------------------------

    def shrink(self, members, share):
        """One network of several, at a share of their size."""
        if len(members) < 2:
            return None
        size = [] if share == 100 else ["--size", share / 100]
        return self.once(f"shrunk-{self.identity(*members)}-{share}.gguf",
                         lambda path: self.program("shrink", *members, *size, "-o", path), 0.5)

    def best_of_lists(self, text):
        """The first translation of every list: what the other system says by itself."""
        def write(path):
            best = {}
            with open_text(text.lists) as lines:
                for line in lines:
                    at, words = line.split("|||", 2)[:2]
                    best.setdefault(int(at), words.strip())
            path.write_text("".join(best.get(i, "") + "\n" for i in range(text.lines)), encoding="utf-8")
        return self.once(f"best-{text.name}-{self.identity(text.lists)}", write) if text.lists else None

    def phrase_text(self, text, options):
        """The phrase-based decoder's translation of a text, its CPU seconds in a file beside it."""
        table, lm, weights = (Path(p) for p in self.args.phrase)
        source, target = self.args.languages
        shown = "-".join(map(str, options)).replace("--", "") or "defaults"

        def write(path):
            tokens = self.work / f"tokens-{text.name}"
            self.program("tokenize", source, "-i", text.source, "-o", tokens)
            before = cpu_seconds()
            self.program("phrase", "translate", table, lm, "-w", weights, "--detokenize", target, "-i", tokens, "-q", "--threads",
                         self.args.threads, *options, "-o", path)
            (self.work / f"seconds-{shown}-{text.name}").write_text(f"{cpu_seconds() - before:.1f}")
        path = self.once(f"phrase-{shown}-{text.name}-{self.identity(table, lm, weights, text.source)}", write)
        return path, float((self.work / f"seconds-{shown}-{text.name}").read_text()) if path else None

    def phrase_speed(self, text, options, again=0, threads=1):
        """CPU seconds of the phrase-based decoder for a text, and those that passed after loading."""
        if not self.args.phrase:
            return None
        table, lm, weights = (Path(p) for p in self.args.phrase)
        source, target = self.args.languages
        tokens = self.once(f"tokens-{text.name}-{self.identity(text.source)}",
                           lambda path: self.program("tokenize", source, "-i", text.source, "-o", path))
        shown = " ".join(map(str, options if threads == 1 else [*options, "--threads", threads]))
        key = f"phrase {shown} of {text.name} {self.identity(table, lm, weights, text.source)} round {again}"
        if key in self.runs or not tokens or self.late():
            return self.runs.get(key)
        extra = [self.work / "part.gz" if o == "FILE" else o for o in options]
        before = cpu_seconds()
        said = self.program("phrase", "translate", table, lm, "-w", weights, "--detokenize", target, "-i", tokens, "--stats",
                            "-q", "--threads", threads, *extra)
        self.keep(dict(key=key, what="phrase", system="phrase-based", evidence=shown, text=text.name,
                       lines=text.lines, words=text.words, seconds=cpu_seconds() - before,
                       wall=find(said, r"([\d.]+) s after"), rss=find(said, r"peak memory (\d+) MiB")))
        return self.runs[key]
