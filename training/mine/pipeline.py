# SPDX-License-Identifier: MIT
"""The stages between unpacked packages and pairs that passed the filter, one file a source and language, each resumable.

  extract   WORK/raw/PAIR/SOURCE.tsv       package, English, translation: messages without markup, blocks of documents
  align     WORK/aligned/PAIR/SOURCE.tsv   package, English, translation: sentences
  filter    WORK/kept/PAIR/SOURCE.tsv      the pairs that are kept; SOURCE.json: how many were left out, and why
  score     WORK/scored/PAIR/SOURCE.tsv    with the model's score in front, where there is a model for the pair
"""
import json
import os
import random
from collections import Counter

from . import documents, fetch, filters, lengths, messages, native, text as texts, words

READERS = {"messages": messages.messages, "properties": messages.properties, "mozilla": messages.mozilla,
           "wiki_json": messages.wiki_json, "rails": messages.rails, "roundcube": messages.roundcube, "qt_ts": messages.qt_ts,
           "docbook": documents.docbook, "html": documents.html_pages, "man": documents.man_pages, "descriptions": documents.descriptions,
           "ding_words": words.ding_words, "ding_sentences": words.ding_sentences, "freedict": words.freedict, "cldr": words.cldr}
TOGETHER = {"man", "html"}  # English and translation come in different packages
AMONG = "en,de,fr,es,it"


class Work:
    """Where things lie, and what they are made with."""

    def __init__(self, folder, library, program, models, apt=None):
        self.folder, self.library, self.program, self.models, self.apt = folder, library, program, models, apt

    def path(self, stage, lang, name):
        path = os.path.join(self.folder, stage, f"en-{lang}", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path


def files_below(folder):
    return sorted(os.path.join(d, f) for d, _, names in os.walk(folder) for f in names if f not in ("COPYRIGHT", "done.json"))


def write_rows(path, rows):
    """Rows of columns between tabs; the file appears when it is complete. How many."""
    count = 0
    with open(path + ".part", "w", encoding="utf-8", newline="\n") as out:
        for row in rows:
            out.write("\t".join(row) + "\n")
            count += 1
    os.rename(path + ".part", path)
    return count


def read_rows(path):
    with open(path, encoding="utf-8", newline="\n") as f:
        for line in f:
            yield line.rstrip("\n").split("\t")


def paragraphs(source, target):
    """Paragraphs of a message, one by one where both texts have as many."""
    a, b = [[p for p in t.replace("\r", "").split("\n\n") if p.strip()] for t in (source, target)]
    return zip(a, b) if len(a) == len(b) else []


def raw_pairs(source, lang, work):
    """(package, English, translation) of a source, markup gone."""
    reader, markup = READERS[source.reader], texts.MARKUP[source.markup]
    if source.reader == "descriptions":
        lists = {x: "\n\n".join(work.apt.read_list(p) for p in work.apt.lists(rf"_Translation-{x}(\.\w+)?$")) for x in ("en", lang)}
        groups = [("Translation-" + lang, lists)]
    else:
        root = os.path.join(work.folder, "unpacked", source.name)
        names = sorted(n for n in os.listdir(root) if os.path.exists(os.path.join(root, n, "done.json")))
        groups = [(n, files_below(os.path.join(root, n))) for n in names]
        if source.reader in TOGETHER:
            groups = [("all", [p for _, paths in groups for p in paths])]
    for package, paths in groups:
        seen = set()
        for english, other in reader(paths, lang):
            for a, b in paragraphs(english, other):
                a, b = markup(texts.rst(a)), markup(texts.rst(b))
                if a and b and (a, b) not in seen:
                    seen.add((a, b))
                    yield package, a, b


def extract(source, lang, work):
    path = work.path("raw", lang, source.name + ".tsv")
    if source.reader != "descriptions" and not os.path.isdir(os.path.join(work.folder, "unpacked", source.name)):
        raise FileNotFoundError(f"{source.name}: nothing of it was fetched")
    return None if os.path.exists(path) else write_rows(path, raw_pairs(source, lang, work))


def sentences(source, lang, library, a, b):
    """Pairs of sentences of a message; the message itself where it is short or cannot be divided."""
    if not source.split or (len(a) < 60 and len(b) < 60):
        return [(a, b)]
    first, second = library.sentences(a, "en"), library.sentences(b, lang)
    pairs = lengths.sentence_pairs(first, second)
    if pairs is None:
        return [(a, b)] if len(first) <= 3 and len(second) <= 3 else []
    return pairs


def align(source, lang, work):
    path = work.path("aligned", lang, source.name + ".tsv")
    if os.path.exists(path):
        return None
    rows = read_rows(work.path("raw", lang, source.name + ".tsv"))
    return write_rows(path, ((package, x, y) for package, a, b in rows for x, y in sentences(source, lang, work.library, a, b)))


def filter_pairs(source, lang, work):
    path = work.path("kept", lang, source.name + ".tsv")
    if os.path.exists(path):
        return None
    rule = filters.Filter(lang, work.library.detect, AMONG, source.names)
    reasons = Counter()

    def kept():
        seen = set()
        for package, a, b in read_rows(work.path("aligned", lang, source.name + ".tsv")):
            a, b = filters.clean(a), filters.clean(b)
            mark = hash((package, a, b))
            why = "seen in the package" if mark in seen else rule.reason(a, b)
            seen.add(mark)
            reasons[why or "kept"] += 1
            if not why:
                yield package, a, b
    count = write_rows(path, kept())
    with open(path[:-4] + ".json", "w") as f:
        json.dump(dict(reasons), f)
    return count


CHUNK = 20000


def score(source, lang, work):
    """Puts the model's score in front of each pair, a chunk at a time so that a run that was ended goes on."""
    path, model = work.path("scored", lang, source.name + ".tsv"), work.models.get(lang)
    if os.path.exists(path) or not model:
        return None
    rows = list(read_rows(work.path("kept", lang, source.name + ".tsv")))
    parts = []
    for at in range(0, len(rows), CHUNK):
        part = f"{path}.{at // CHUNK}"
        parts.append(part)
        if not os.path.exists(part):
            chunk = rows[at:at + CHUNK]
            found = native.scores(work.program, model, [r[1] for r in chunk], [r[2] for r in chunk], os.path.dirname(path))
            write_rows(part, (("" if x is None else f"{x:.3f}", *row) for x, row in zip(found, chunk)))
    count = write_rows(path, (row for part in parts for row in read_rows(part)))
    for part in parts:
        os.unlink(part)
    return count


STAGES = {"extract": extract, "align": align, "filter": filter_pairs, "score": score}


def run(source, lang, work, stages):
    for name in stages:
        count = STAGES[name](source, lang, work)
        if count is not None:
            fetch.say(f"{name} en-{lang} {source.name}: {count}")


def sample(path, count, seed=1):
    rows = list(read_rows(path))
    return random.Random(seed).sample(rows, min(count, len(rows)))
