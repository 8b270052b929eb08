# SPDX-License-Identifier: MIT
"""The last stage: no line twice, none of the test sets, none that is known; everyday lines apart; files and MANIFEST.tsv.

  OUT/en-XX/SOURCE.en.xz, SOURCE.XX.xz   line by line the same
  OUT/en-XX/everyday.*                   short lines of all sources (they are in no other file); everyday.weight.xz: how often a
                                         pass should see each, everyday.kind.xz: why
  OUT/MANIFEST.tsv                       a row for every source and pair
"""
import glob
import json
import lzma
import os
import re
import statistics
import tarfile
from collections import Counter, defaultdict
from pathlib import Path

from . import everyday, fetch, text as texts
from .pipeline import read_rows

SCORE_LIMIT = {True: -3.0, False: -4.5}  # mean log-probability of a token: sources aligned by length, and by ids
SCORED_WORDS = 4                         # shorter lines are not judged by their score
DIGITS = re.compile(r"\d+")
VARIANTS = 3                             # translations of one English line, and lines that differ in their numbers only


def open_any(path):
    return lzma.open(path, "rt", encoding="utf-8", newline="\n") if path.endswith(".xz") else open(path, encoding="utf-8", newline="\n")


def test_keys(archive):
    """Keys of all lines of all test sets, of every language. archive: a tar of test/PAIR/SET.LANG."""
    keys = set()
    with tarfile.open(archive, mode="r|*") as tar:
        for member in tar:
            if member.isfile():
                text = tar.extractfile(member).read().decode("utf-8", "replace")
                keys.update(hash(texts.key(line)) for line in text.split("\n"))
    keys.discard(hash(""))
    return keys


def known_keys(folder, lang):
    """Keys of the pairs of the corpora that exist already."""
    keys = set()
    for path in sorted(glob.glob(os.path.join(folder, f"en-{lang}", "*.en.xz"))):
        with open_any(path) as a, open_any(path[:-len("en.xz")] + lang + ".xz") as b:
            keys.update(hash((texts.key(x), texts.key(y))) for x, y in zip(a, b))
    return keys


def load(source, lang, work, reasons):
    """(package, English, translation) of a source; what the model finds improbable is left out."""
    scored = work.path("scored", lang, source.name + ".tsv")
    if os.path.exists(scored):
        for score, package, a, b in read_rows(scored):
            if score and float(score) < SCORE_LIMIT[source.scored] and len(a.split()) >= SCORED_WORDS:
                reasons[source.name]["score"] += 1
            else:
                yield package, a, b
    elif not source.free:
        path = work.path("kept", lang, source.name + ".tsv")
        if os.path.exists(path):
            yield from read_rows(path)


class Chooser:
    """Takes or refuses pairs, one after the other."""

    def __init__(self, tests, known):
        self.tests, self.known, self.taken = tests, known, set()
        self.variants, self.shapes = Counter(), Counter()

    def refuse(self, ka, kb):
        """Why the pair with these keys is not taken, or None."""
        ha, hb, pair = hash(ka), hash(kb), hash((ka, kb))
        if ha in self.tests or hb in self.tests:
            return "in a test set"
        if pair in self.known:
            return "known"
        if pair in self.taken:
            return "twice"
        shape = hash((DIGITS.sub("0", ka), DIGITS.sub("0", kb))) if DIGITS.search(ka) else None
        if self.variants[ha] >= VARIANTS or (shape and self.shapes[shape] >= VARIANTS):
            return "variants"
        self.taken.add(pair)
        self.variants[ha] += 1
        if shape:
            self.shapes[shape] += 1
        return None


def count_packages(sources, lang, work):
    """How many packages have a short pair: {hash of both: packages}, and of an English line in all."""
    seen, pairs, lines = set(), Counter(), Counter()
    for source in sources:
        if not source.weigh:
            continue
        path = work.path("kept", lang, source.name + ".tsv")
        for package, a, b in read_rows(path) if os.path.exists(path) else ():
            if len(a.split()) <= 4:
                pair, line = hash((texts.key(a), texts.key(b))), hash(texts.key(a))
                if (package, pair) not in seen:
                    seen.add((package, pair))
                    pairs[pair] += 1
                    lines[line] += 1
    return pairs, lines


def write_pair(sources, lang, work, out, tests, known):
    """All files of one pair; returns rows of the manifest."""
    chooser, reasons = Chooser(tests, known), defaultdict(Counter)
    pairs, lines = count_packages(sources, lang, work)
    special, rows, files = [], [], os.path.join(out, f"en-{lang}")
    os.makedirs(files, exist_ok=True)
    for source in sources:
        kept = []
        for package, a, b in load(source, lang, work, reasons):
            ka, kb = texts.key(a), texts.key(b)
            count = pairs[hash((ka, kb))] if source.weigh and len(a.split()) <= 4 else 0
            if count * 3 < lines[hash(ka)]:
                count = 0  # a rare translation of a frequent line
            why = chooser.refuse(ka, kb)
            if why:
                reasons[source.name][why] += 1
                continue
            kind = everyday.kind(a, b, count, source.weigh, source.names)
            if kind and a != b:
                special.append((a, b, *kind))
                reasons[source.name]["to the everyday list"] += 1
            else:
                kept.append((a, b))
        if kept:
            write_lines(os.path.join(files, f"{source.name}.en.xz"), (a for a, _ in kept))
            write_lines(os.path.join(files, f"{source.name}.{lang}.xz"), (b for _, b in kept))
        rows.append(row(source, lang, work, kept, reasons[source.name]))
    if special:
        for name, column in (("en", 0), (lang, 1), ("kind", 2), ("weight", 3)):
            write_lines(os.path.join(files, f"everyday.{name}.xz"), (str(x[column]) for x in special))
        rows.append({"source": "everyday", "pair": f"en-{lang}", "packages": "of all sources", "version": "", "licence": "as their sources",
                     "raw": len(special), "kept": len(special), **medians([(x[0], x[1]) for x in special]),
                     "left out": ", ".join(f"{k} {n}" for k, n in Counter(x[2] for x in special).most_common())})
    return rows


def write_lines(path, lines):
    with lzma.open(path + ".part", "wt", encoding="utf-8", newline="\n", preset=3) as f:
        f.writelines(line + "\n" for line in lines)
    os.replace(path + ".part", path)


def medians(pairs):
    words = lambda i: int(statistics.median(len(p[i].split()) for p in pairs)) if pairs else 0
    return {"words en": words(0), "words xx": words(1)}


def raw_count(path):
    return Path(path).read_bytes().count(b"\n") if os.path.exists(path) else 0


def row(source, lang, work, kept, reasons):
    entries = []
    for path in sorted(glob.glob(os.path.join(work.folder, "unpacked", source.name, "*", "done.json"))):
        entry = json.loads(Path(path).read_text(encoding="utf-8"))
        if entry["files"]:
            entries.append(entry)
    filtered = work.path("kept", lang, source.name + ".json")
    why = Counter(json.loads(Path(filtered).read_text(encoding="utf-8")) if os.path.exists(filtered) else {})
    why.pop("kept", None)
    why.update(reasons)
    licences = Counter(re.sub(r"\s+", " ", e["licence"]) for e in entries)
    few = len(entries) <= 3
    return {"source": source.name, "pair": f"en-{lang}",
            "packages": " ".join(e["package"] for e in entries) if few else f"{len(entries)} packages",
            "version": " ".join(e["version"] for e in entries) if few else "see PACKAGES.tsv",
            "licence": "; ".join(f"{n}" if few else f"{n} ({c})" for n, c in licences.most_common(4)) or "see README",
            "raw": raw_count(work.path("raw", lang, source.name + ".tsv")), "kept": len(kept), **medians(kept),
            "left out": ", ".join(f"{k} {n}" for k, n in why.most_common(6))}


COLUMNS = ("source", "pair", "packages", "version", "licence", "raw", "kept", "words en", "words xx", "left out")


def read_manifest(out):
    path = Path(out, "MANIFEST.tsv")
    if not path.exists():
        return []
    head, *lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    return [dict(zip(head.split("\t"), line.split("\t"))) for line in lines]


def print_table(out):
    """Markdown: pairs that are kept by source and language, raw pairs and words of en-de, licences."""
    table = {}
    for r in read_manifest(out):
        table.setdefault(r["source"], {})[r["pair"]] = r
    pairs = sorted({p for rows in table.values() for p in rows}, key=lambda p: ("de", "fr", "es", "it").index(p[3:]))
    print("| source | packages | " + " | ".join(pairs) + " | raw | words en / xx | licence as stated |")
    print("|---|---|" + "---:|" * len(pairs) + "---:|---:|---|")
    total = Counter()
    for name, rows in table.items():
        first = rows.get(pairs[0]) or next(iter(rows.values()))
        kept = [int(rows[p]["kept"]) if p in rows else 0 for p in pairs]
        total.update(dict(zip(pairs, kept)))
        print(f"| {name} | {first['packages']} | " + " | ".join(f"{n:,}" if n else "" for n in kept) +
              f" | {int(first['raw']):,} | {first['words en']} / {first['words xx']} | {first['licence']} |")
    print("| all | | " + " | ".join(f"**{total[p]:,}**" for p in pairs) + " | | | |")


def write_manifest(out, rows):
    """Rows of the pairs that were made now replace older ones of theirs."""
    path = os.path.join(out, "MANIFEST.tsv")
    made = {r["pair"] for r in rows}
    old = read_manifest(out)
    with open(path, "w", encoding="utf-8") as f:
        f.write("\t".join(COLUMNS) + "\n")
        for r in [r for r in old if r["pair"] not in made] + rows:
            f.write("\t".join(str(r[c]) for c in COLUMNS) + "\n")


def write_packages(out, work):
    """Licence and version of every package, by source."""
    with open(os.path.join(out, "PACKAGES.tsv"), "w", encoding="utf-8") as f:
        f.write("source\tpackage\tversion\tlicence\tfiles\n")
        for path in sorted(glob.glob(os.path.join(work.folder, "unpacked", "*", "*", "done.json"))):
            entry = json.loads(Path(path).read_text(encoding="utf-8"))
            if entry["files"]:
                source = path.split(os.sep)[-3]
                f.write("\t".join((source, entry["package"], entry["version"], entry["licence"], str(entry["files"]))) + "\n")
    fetch.say(f"{out}: PACKAGES.tsv")
