# SPDX-License-Identifier: MIT
"""Parallel text: reading, cleaning, de-duplicating, weighting.

Input is a folder of NAME.LANG.xz (or .gz, .bz2, or plain) files, line-aligned across languages. Output is a folder with
  pairs.SRC pairs.TGT   cleaned, de-duplicated, in the order of the sources (it compresses better), one segment a line
  pairs.up              how often one pass sees the pair (upsampling by source name)
  extra.SRC             source-only lines (other pairs' text), for distillation
The `prepare` command calls prepare(); everything later reads these files or their packed form (packed.py).
"""
import bz2
import gzip
import lzma
import os
import random
import re
import unicodedata

LETTER = re.compile(r"[^\W\d_]", re.UNICODE)


def open_text(path):
    if path.endswith(".xz"):
        return lzma.open(path, "rt", encoding="utf-8", newline="\n")
    if path.endswith(".bz2"):
        return bz2.open(path, "rt", encoding="utf-8", newline="\n")
    if path.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8", newline="\n")
    return open(path, encoding="utf-8", newline="\n")


def read_lines(path):
    with open_text(path) as f:
        return [line.rstrip("\n") for line in f]


def write_lines(path, lines):
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        for line in lines:
            f.write(line + "\n")


def find(folder, name, lang):
    for suffix in (".xz", ".gz", ".bz2", ""):
        path = os.path.join(folder, f"{name}.{lang}{suffix}")
        if os.path.exists(path):
            return path
    raise FileNotFoundError(f"{folder}: no {name}.{lang}[.xz|.gz|.bz2]")


def names(folder, lang):
    pattern = re.compile(rf"(.+)\.{re.escape(lang)}(\.xz|\.gz|\.bz2)?$")
    return sorted(m.group(1) for m in map(pattern.match, os.listdir(folder)) if m)


def clean(line):
    return " ".join(unicodedata.normalize("NFC", line).split())


def plausible(source, target, max_words=90):
    """True if it can be a translation: not empty, not too long, lengths in proportion, not untranslated prose."""
    if not source or not target:
        return False
    a, b = len(source.split()), len(target.split())
    if a > max_words or b > max_words:
        return False
    if max(len(source), len(target)) > 40 and not 1 / 3 <= len(source) / len(target) <= 3:
        return False
    if source == target and a > 4 and sum(map(len, LETTER.findall(source))) > 0.6 * len(source):
        return False                                    # prose copied through: teaches the model to copy
    return True


def prepare(folder, source_lang, target_lang, out, upsample=None, extra=(), seed=7, limit=0, take=None):
    """Writes the files named above; returns counts by source name. extra: (folder, [names]) of source-only text; take: {name:
    most pairs of it}."""
    upsample, take = upsample or {}, take or {}
    pairs, seen, counts = [], set(), {}
    for name in names(folder, source_lang):
        kept, first = 0, len(pairs)
        with open_text(find(folder, name, source_lang)) as fs, open_text(find(folder, name, target_lang)) as ft:
            for s, t in zip(fs, ft):
                s, t = clean(s), clean(t)
                if not plausible(s, t) or (s, t) in seen:
                    continue
                seen.add((s, t))
                pairs.append((s, t, upsample.get(name, 1)))
                kept += 1
        if kept > take.get(name, kept):
            chosen = random.Random(f"{seed} {name}").sample(range(first, len(pairs)), take[name])
            pairs[first:], kept = [pairs[i] for i in sorted(chosen)], take[name]
        counts[name] = kept
    if limit and limit < len(pairs):
        pairs = [pairs[i] for i in sorted(random.Random(seed).sample(range(len(pairs)), limit))]
    os.makedirs(out, exist_ok=True)
    write_lines(os.path.join(out, f"pairs.{source_lang}"), (p[0] for p in pairs))
    write_lines(os.path.join(out, f"pairs.{target_lang}"), (p[1] for p in pairs))
    write_lines(os.path.join(out, "pairs.up"), (str(p[2]) for p in pairs))
    known, lines = {p[0] for p in pairs}, []
    for other, wanted in extra:
        kept = 0
        for name in wanted:
            for s in map(clean, read_lines(find(other, name, source_lang))):
                words = s.split()
                if s in known or not 1 <= len(words) <= 60 or len(LETTER.findall(s)) < 0.5 * len(s):
                    continue
                known.add(s)
                lines.append(s)
                kept += 1
        counts["extra:" + os.path.basename(os.path.normpath(other))] = kept
    write_lines(os.path.join(out, f"extra.{source_lang}"), lines)
    return counts
