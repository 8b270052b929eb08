# SPDX-License-Identifier: MIT
"""German-English text for a student that trains on: what a new user types first, and general text beside it.

    python3 -m dragoman_training.everyday general DATA WORK                 # WORK/real.de .en, real.english, held.de .en
    python3 -m dragoman_training.everyday short DATA WORK --mined MINED     # WORK/short.de .en .up, dev.tsv
    python3 -m dragoman_training.everyday pack DATA WORK --vocab VOCAB      # WORK/train.bin, lists.de .en

`everyday_de_en.sh` is the whole way. DATA: corpora and test sets as for models_en_de.sh; MINED: the work folder of `mine` with the stage
filter done. Short lines: Tatoeba, strings of user interfaces, words of the Ding dictionary that are frequent in the corpora, names that stay
as they are (alone, in short frames, and in place of Tatoeba's Tom and Mary), `templates` turned for German. General text: sources
that the student translates itself (of its four best the nearest to the real target), English that the other direction translates.

A line that has the letters and digits of a line of any test set, or of an everyday line or one of its answers (tests/data/everyday), is left
out, on either side. dev.tsv is a sample of short lines, held out, in the form of tests/data/everyday: settings are chosen with it.
"""
import argparse
import glob
import os
import random
import re
from collections import Counter, defaultdict

from mine.everyday import GREETING
from mine.text import key

from . import mix, templates
from .corpus import clean, find, names as corpora, read_lines, write_lines
from .engine import texts
from .packed import Packed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INTERFACE = "mozilla libreoffice-ui web redmine roundcube gnome kde apps qt-apps".split()
TRUSTED = set("firefox-esr thunderbird libreoffice wordpress-l10n roundcube redmine nautilus gtk+3.0 gtk4 gnome-control-center "
              "epiphany-browser evolution-data-server".split())      # one package's word is enough
NOT_PLAIN = re.compile(r"[%{}$<>\\_|=@#*`~^]|\d|\bXX|&|//|http|\(s\)|[A-Z]{4,}")
WORD = re.compile(r"\w+")
GENERAL = {"europarl": 20000, "tatoeba": 14000, "multi30k": 4000, "msd365": 4000, "mssmb": 2500, "wwwl10n": 2700, "gnomedocs": 1200,
           "gimphelp": 1000, "phpdocs": 800}
SHARES = {"upper": 0.11, "lower": 0.06, "title": 0.01, "unpointed": 0.08, "typo": 0.03, "copy": 0.04, "bare": 0.006}
FIRST = """Jürgen Günther Björn Jörg Sören Käthe Bärbel Döndü Özlem Gökhan Ümit Götz Lönne Dörte Hannelore Thomas Michael Andreas Stefan
 Peter Klaus Wolfgang Sabine Petra Monika Ursula Renate Anke Heike Uwe Dieter Horst Lukas Leon Finn Jonas Emma Mia Hannah Lea Lena
 Sophie Marie Clara Frieda Ida Matthias Tobias Florian Sebastian Katharina Christine Birgit Anja Silke Kerstin Holger Ralf Rainer
 Volker Detlef Manfred Gerhard Mehmet Ayşe Süleyman Zoë Chloé René André François Noël Jérôme Zuzana Łukasz Søren Åsa José""".split()
LAST = """Müller Schäfer Köhler König Krüger Möller Schröder Böhm Jäger Götz Höfer Kühn Lühr Bäcker Grün Schütz Vögel Döring Häusler
 Blöcher Löffler Mühlbauer Strößner Weiß Groß Voß Preuß Fuß Heß Strauß Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz
 Hoffmann Koch Richter Klein Wolf Neumann Schwarz Zimmermann Braun Krause Lehmann Huber Maier Herrmann Walter Kaiser Fuchs Lang Scholz
 Vogel Roth Beck Lorenz Baumann Franke Albrecht Schuster Simon Ludwig Winter Kraus Martin Stein Jung Sommer Ziegler Brandt Kuhn Öztürk
 Yıldız Šimić Núñez Lindström Dvořák Hölderlin Gänswein Bürger Türk Schönfeld Grünwald Mählmann Süß Rößler Nüßlein Käßner Thäns Würth
 Flößer Küppers Öhler Ärmel Überschär""".split()
CITIES = [x.split() for x in """Köln Cologne|München Munich|Nürnberg Nuremberg|Wien Vienna|Zürich Zurich|Düsseldorf Düsseldorf|Lübeck Lübeck|
Göttingen Göttingen|Hannover Hanover|Berlin Berlin|Hamburg Hamburg|Münster Münster|Würzburg Würzburg|Genf Geneva|Braunschweig Brunswick|
Prag Prague|Rom Rome|Mailand Milan|Saarbrücken Saarbrücken|Tübingen Tübingen|Osnabrück Osnabrück|Graz Graz|Basel Basel|Warschau Warsaw|
Brüssel Brussels|Kopenhagen Copenhagen|Jülich Jülich|Fürth Fürth|Görlitz Görlitz""".split("|")]
# {n} {m} whole names, {f} {g} first, {l} {k} last ones, {c} {d} a city in German and English
FRAMES = [("{n}", "{n}"), ("{n}", "{n}"), ("{n}", "{n}"), ("{l}", "{l}"), ("{f}", "{f}"), ("Herr {l}", "Mr. {l}"), ("Frau {l}", "Ms. {l}"),
          ("Dr. {n}", "Dr. {n}"), ("Prof. Dr. {n}", "Prof. Dr. {n}"), ("{n}, {c}", "{n}, {d}"), ("{f} und {g}", "{f} and {g}"),
          ("{n} und {m}", "{n} and {m}"), ("Lieber Herr {l},", "Dear Mr. {l},"), ("Liebe Frau {l},", "Dear Ms. {l},"),
          ("Hallo {f},", "Hello {f},"), ("Liebe {f},", "Dear {f},"), ("Von: {n}", "From: {n}"), ("An: {n}", "To: {n}"),
          ("{n} arbeitet seit zehn Jahren in {c}.", "{n} has been working in {d} for ten years."),
          ("{n} wurde in {c} geboren.", "{n} was born in {d}."), ("Das ist {n}.", "This is {n}."),
          ("Haben Sie {n} gesehen?", "Have you seen {n}?"), ("{n} spielt Klavier.", "{n} plays the piano."),
          ("Frau {l} ist heute nicht da.", "Ms. {l} is not here today."), ("Herr {l} hat angerufen.", "Mr. {l} called."),
          ("Kennst du {f} {l}?", "Do you know {f} {l}?"), ("{f} fährt nach {c}.", "{f} is going to {d}."), ("Foto: {n}", "Photo: {n}"),
          ("Autor: {n}", "Author: {n}"), ("{c}", "{d}"), ("{f} aus {c}", "{f} from {d}"), ("{l} & {k}", "{l} & {k}"),
          ("{l} GmbH", "{l} GmbH")]


def forbidden(tests, lines):
    """Keys of test sets (a folder of PAIR/SET.LANG) and of everyday lines (a folder of .tsv), all columns."""
    found = set()
    for path in glob.glob(os.path.join(tests, "*", "*")):
        if path.endswith((".de", ".en")):
            found.update(map(key, read_lines(path)))
    for path in glob.glob(os.path.join(lines, "*.tsv")):
        for column in (c for line in read_lines(path) for c in line.split("\t")):
            found.add(key(column))
            found.update(k for k in map(key, column.split(" | ")) if len(k) > 3)
    found.discard("")
    return found


class Allowed:
    def __init__(self, data):
        self.keys = forbidden(os.path.join(data, "test"), os.path.join(ROOT, "tests", "data", "everyday"))

    def __call__(self, *sides):
        return all(key(x) and key(x) not in self.keys for x in sides)


def side(data, pair, name, language):
    """Lines of a corpus; none where it is not there."""
    folder = os.path.join(data, pair)
    here = os.path.isdir(folder) and name in corpora(folder, language)
    return map(clean, read_lines(find(folder, name, language))) if here else ()


def pairs_of(data, name):
    """(German, English) of a corpus."""
    return list(zip(*(side(data, "en-de", name, language) for language in ("de", "en"))))


def mined(folder, name):
    """(package, English, German) of a source of `mine`."""
    path = os.path.join(folder, "kept", "en-de", name + ".tsv")
    return (line.split("\t") for line in read_lines(path)) if os.path.exists(path) else ()


def interface(folder, allowed, rng):
    """Strings of user interfaces: [(German, English, packages that have it so)], and all their translations for dev.tsv."""
    found = defaultdict(lambda: defaultdict(set))
    for name in INTERFACE:
        for package, b, a in mined(folder, name):
            a, b = clean(a), clean(b)
            if not NOT_PLAIN.search(a + b) and len(a.split()) <= 9 and len(b.split()) <= 11 and allowed(a, b) \
                    and (a != b or len(a.split()) == 1):
                found[a][b].add(package)
    chosen = []
    for a, by in found.items():
        best = max(by, key=lambda b: (len(by[b]), -len(b)))
        packages = by[best]
        if 2 * len(packages) >= len(set().union(*by.values())) \
                and (len(packages) >= 2 or packages & TRUSTED or len(a.split()) >= 2 and rng.random() < 0.35):
            chosen.append((a, best, len(packages)))
    return chosen, found


def dictionary(folder, data, allowed, general, strings, rng):
    """Entries of Ding: [(German, English, how often the corpora have the word)], and all their translations. Of a word's translations
    the one that stands most often beside it in `general`; of rare words and of phrases a sample."""
    found = defaultdict(list)
    for _, b, a in mined(folder, "ding-words"):
        if allowed(a, b) and len(a.split()) <= 4 and len(b.split()) <= 5 and b not in found[a]:
            found[a].append(b)
    often, where, english = Counter(), defaultdict(set), []
    for i, (a, b) in enumerate(general):
        for word in set(WORD.findall(a)):
            often[word] += 3
            where[word].add(i)
        english.append(" " + " ".join(WORD.findall(b.lower())) + " ")
    for name, every in (("europarl", 5), ("msd365", 1), ("mssmb", 1)):
        for i, (a, _) in enumerate(pairs_of(data, name)):
            if i % every == 0:
                often.update(WORD.findall(a))
    for a, _, _ in strings:
        often.update(WORD.findall(a) * 3)

    def beside(a, b):
        stem = " " + " ".join(WORD.findall(re.sub("^to ", "", b.lower())))
        return sum(stem in english[i] for i in sorted(where[a])[:300])
    chosen = []
    for a, all_of in found.items():
        if len(a.split()) > 1:
            if rng.random() < 0.25:
                chosen.append((a, all_of[0], 0))
        elif often[a] >= 2:
            chosen.append((a, max(all_of, key=lambda b: beside(a, b)), often[a]))
        elif rng.random() < 0.06:
            chosen.append((a, all_of[0], 0))
    return chosen, found


def capital(text):
    return text[:1].upper() + text[1:]


def buttons(entries):
    """Infinitives as interfaces write them: Abbilden, Map."""
    for a, b, often in entries:
        verb = re.match(r"to (\S+( \S+)?)$", b)
        if often >= 3 and verb and a.islower() and re.fullmatch(r"\w+[elr]?n", a):
            yield capital(a), capital(verb[1])


def name(rng):
    last = rng.choice(LAST)
    return f"{rng.choice(FIRST)} {last}" + (f"-{rng.choice(LAST)}" if rng.random() < 0.1 else "")


def framed_names(rng, allowed, count):
    found = {}
    while len(found) < count:
        german, english = rng.choice(FRAMES)
        city = rng.choice(CITIES)
        values = dict(n=name(rng), m=name(rng), l=rng.choice(LAST), k=rng.choice(LAST), f=rng.choice(FIRST), g=rng.choice(FIRST), c=city[0],
                      d=city[1])
        made = german.format(**values), english.format(**values)
        if allowed(*made):
            found[made] = None
    return list(found)


def renamed(general, rng, allowed):
    """Tatoeba's Tom and Mary get other names."""
    for a, b in general:
        for old in ("Tom", "Maria", "Mary"):
            word = re.compile(rf"\b{old}\b")
            if len(word.findall(a)) == 1 == len(word.findall(b)) and not re.search(rf"\b{old}['’]", a + b) and len(a.split()) < 14 \
                    and rng.random() < 0.22:
                new = rng.choice(FIRST) if rng.random() < 0.6 else name(rng) if rng.random() < 0.7 else rng.choice(LAST)
                made = word.sub(new, a), word.sub(new, b)
                if allowed(*made):
                    yield made
                break


AMOUNT = re.compile(r"([$€£])(\d(?:[\d.,]*\d)?)|\b(\d(?:[\d.,]*\d)?) (euro|dollar)s?\b")
CURRENCIES = {"€": ("euro", "Euro"), "$": ("dollar", "Dollar"), "£": ("pound", "Pfund")}


def figures(rng, allowed, count):
    """templates.py's prices, dates and times; as German has them, so has English: 5 € with €5, 5 Euro with 5 euros. (Both for
    either taught a model that went on learning to leave currencies out.)"""
    rows, figure_rng = {}, random.Random(3)
    while len(rows) < count:
        made = templates.pair(figure_rng)
        if made:
            rows[made] = None
    for b, a in rows:
        signs = rng.random() < 0.5

        def amount(found):
            sign = found[1] or {"euro": "€", "dollar": "$"}[found[4]]
            value = found[2] or found[3]
            return sign + value if signs else f"{value} {CURRENCIES[sign][0]}{'' if value == '1' else 's'}"
        if "million" not in b:
            b = AMOUNT.sub(amount, b)
            for sign, (_, word) in CURRENCIES.items():
                a = re.sub(rf"(\d) {word}\b", rf"\1 {sign}", a) if signs else a
        if " %" in a:
            b = re.sub(r"(\d) %", r"\1%", b)
        a = re.sub(r"(\d):(\d\d) Uhr", r"\1.\2 Uhr", a) if rng.random() < 0.3 else a
        if allowed(a, b):
            yield a, b


def weight(german, english, alternatives):
    """How often a pass sees a pair of Tatoeba."""
    words = len(german.split())
    times = 3 if words <= 3 else 2 if words <= 5 else 1
    if GREETING.match(english) and words <= 7:
        times = max(times, 2) + 1
    return times - 1 if alternatives and times > 1 else times


def dev_rows(held, pools, rng):
    """Held-out lines with all their translations, some in capitals."""
    for kind, keys in held.items():
        first, answers = {}, defaultdict(dict)
        for a, b in pools[kind]:
            if key(a) in keys:
                first.setdefault(key(a), a)
                answers[key(a)][b] = None
        for k in sorted(first):
            yield kind, [first[k], *answers[k]]
            if rng.random() < 0.12:
                yield "capitals", [x.upper() for x in (first[k], *answers[k])]


def short(data, folder, work, seed=5):
    rng, allowed = random.Random(seed), Allowed(data)
    general = [p for p in pairs_of(data, "tatoeba") if allowed(*p)]
    lines = defaultdict(list)
    for a, b in general:
        lines[key(a)].append((a, b))

    def some_of(these, most):
        return rng.sample(these, min(most, len(these) // 4))
    held = {"short": set(some_of([k for k, v in lines.items() if len(v[0][0].split()) <= 5], 160))}
    strings, all_strings = interface(folder, allowed, rng)
    held["interface"] = {key(a) for a in some_of([a for a, _, n in strings if n >= 2 and len(a.split()) <= 3], 120)}
    entries, all_entries = dictionary(folder, data, allowed, general + pairs_of(data, "multi30k"), strings, rng)
    held["dictionary"] = {key(a) for a in some_of([a for a, _, often in entries if often >= 5], 120)}
    headings = [(capital(a), capital(b)) for a, b, often in entries if often >= 4 and not b.startswith("to ") and rng.random() < 0.4]
    people = framed_names(rng, allowed, 9000)
    others = list(renamed(general, rng, allowed))
    amounts = list(figures(rng, allowed, 9000))
    held["name"], held["figure"] = {key(a) for a, _ in people[:60]}, {key(a) for a, _ in amounts[:40]}
    away, rows = set().union(*held.values()), []

    def add(kind, a, b, times=1):
        if key(a) not in away and allowed(a, b):
            rows.append((a, b, times, kind))
    for alternatives in lines.values():
        for a, b in dict.fromkeys(alternatives[:2]):
            words = len(a.split())
            if words <= 5 or words <= 9 and rng.random() < 0.45:
                add("tatoeba", a, b, weight(a, b, len(alternatives) > 1))
    for a, b, packages in strings:
        add("interface", a, b, 3 if packages >= 4 else 2 if packages >= 2 else 1)
    for a, b, often in entries:
        add("dictionary", a, b, 2 if often >= 20 else 1)
    for a, b in buttons(entries):
        add("buttons", a, b, 2)
    examples = [(clean(a), clean(b)) for _, b, a in mined(folder, "ding-sentences") if len(a.split()) <= 14 and rng.random() < 0.7]
    for kind, some in (("headings", headings), ("names", people), ("renamed", others), ("figures", amounts), ("examples", examples)):
        for a, b in some:
            add(kind, a, b)
    rng.shuffle(rows)
    for suffix, column in (("de", 0), ("en", 1), ("up", 2)):
        write_lines(os.path.join(work, "short." + suffix), (str(row[column]) for row in rows))
    pools = {"short": general, "interface": [(a, b) for a, by in all_strings.items() for b in by], "name": people, "figure": amounts,
             "dictionary": [(a, x) for a, all_of in all_entries.items() for b in all_of for x in dict.fromkeys((b, re.sub("^to ", "", b)))]}
    dev = list(dev_rows(held, pools, rng))
    write_lines(os.path.join(work, "dev.tsv"), ("\t".join(row) for _, row in dev))
    print(f"short: {len(rows)} pairs, {dict(Counter(row[3] for row in rows))}; dev.tsv: {dict(Counter(kind for kind, _ in dev))}")


def general(data, work, seed=11):
    """real.de .en: pairs; held.de .en: some that are kept away; real.english: English without German."""
    rng, allowed, rows, held = random.Random(seed), Allowed(data), [], []
    for source, most in GENERAL.items():
        good = [(a, b) for a, b in pairs_of(data, source) if 5 <= len(a.split()) <= 45 and len(b.split()) <= 50 and allowed(a, b)]
        chosen = rng.sample(good, min(len(good), most + len(good) // 200 if most < len(good) else most))
        away = min(150, len(chosen) // 20)
        held += chosen[:away]
        rows += chosen[away:away + most]
    known = {key(a) for a, _ in held}
    rows = [(a, b) for a, b in rows if key(a) not in known]
    rng.shuffle(rows)
    for name, some in (("real", rows), ("held", held)):
        for language, column in (("de", 0), ("en", 1)):
            write_lines(os.path.join(work, f"{name}.{language}"), (row[column] for row in some))

    def english(pair, source, share=1.0):
        for text in side(data, pair, source, "en"):
            if (share == 1.0 or 8 <= len(text.split()) <= 40 and rng.random() < share) and key(text) not in known and allowed(text):
                known.add(key(text))
                yield text
    known = {key(b) for _, b in pairs_of(data, "tatoeba")}
    sentences = [x for pair in ("en-fr", "en-es", "ja-en") for x in english(pair, "tatoeba")]
    rng.shuffle(sentences)
    known |= {key(b) for _, b in held}
    speeches = [x for pair in ("en-fr", "en-es", "en-it") for x in english(pair, "europarl", 0.06)]
    rng.shuffle(speeches)
    found = sentences[:45000] + speeches[:16000]
    for pair, source in (("en-fr", "wwwl10n"), ("zh-en", "k8s"), ("zh-en", "mdn")):
        some = [x for x in side(data, pair, source, "en") if 6 <= len(x.split()) <= 35 and allowed(x)]
        found += rng.sample(some, min(1500, len(some)))
    rng.shuffle(found)
    write_lines(os.path.join(work, "real.english"), found)
    print(f"general: {len(rows)} pairs, {len(held)} held out, {len(found)} English lines")


def pack(data, work, vocab):
    """short.*, real.* with real.nbest (the student's lists), real.english with real.german (the other direction's): train.bin, and lists.de
    .en, which the shortlist is made of."""
    allowed = Allowed(data)
    held = {key(line.split("\t")[0]) for line in read_lines(os.path.join(work, "dev.tsv")) + read_lines(os.path.join(work, "held.de"))}
    read = lambda name: read_lines(os.path.join(work, name))
    good = lambda a, b: key(a) not in held and allowed(a, b)
    lists, parts = [], []

    def add(label, rows, shares=None):
        """rows: (source, real target, target made, passes)"""
        if not rows:
            return
        part = mix.mix(vocab, *zip(*rows), shares=shares, processes=1, first=len(parts) * 10 ** 6)
        print(f"pack: {label}: {len(part)} pairs, {int((part.target_lengths.astype(int) + 1) @ part.passes.astype(int)) / 1e6:.2f}M target tokens")
        parts.append(part)
        lists.extend((a, made or b) for a, b, made, _ in rows)
    add("short lines", [(a, b, "", int(up)) for a, b, up in zip(read("short.de"), read("short.en"), read("short.up"))], SHARES)
    made = mix.pick_all(read("real.de"), read("real.en"), ["\t".join(x) for x in texts(os.path.join(work, "real.nbest"), True)], 1)
    add("translated", [(a, b, c, 1) for a, b, c in zip(read("real.de"), read("real.en"), made) if good(a, c)])
    turned = filter(None, (mix.turned(b, "", a) for a, b in zip(read("real.german"), read("real.english"))))
    add("translated back", [(a, b, "", 1) for a, b in turned if good(a, b)])
    Packed.join(parts).save(os.path.join(work, "train.bin"))
    for language, column in (("de", 0), ("en", 1)):
        write_lines(os.path.join(work, "lists." + language), (row[column] for row in lists))


def main():
    parser = argparse.ArgumentParser(prog="dragoman_training.everyday", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("short", "general", "pack"))
    parser.add_argument("data")
    parser.add_argument("work")
    parser.add_argument("--mined", help="work folder of `mine`, for short")
    parser.add_argument("--vocab", help="the student's SentencePiece model, for pack")
    a = parser.parse_args()
    if a.step == "short":
        short(a.data, a.mined, a.work)
    elif a.step == "general":
        general(a.data, a.work)
    else:
        pack(a.data, a.work, a.vocab)


if __name__ == "__main__":
    main()
