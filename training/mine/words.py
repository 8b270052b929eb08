# SPDX-License-Identifier: MIT
"""Dictionaries and tables of names: Ding, FreeDict, CLDR. Readers yield (English, translation)."""
import os
import re
import xml.etree.ElementTree as ElementTree

from .messages import language_of, read_text

NOTES = re.compile(r"\{[^}]*\}|\[[^\]]*\]|<[^>]*>|/[^/ ]+/")
BRACKETS = re.compile(r"\s*\([^()]*\)")
SHORTHAND = re.compile(r"\b(etw|jd[mns]?|jmd[mns]?|jds|sth|sb|s\.?o|so|s\.th|smth)\.|\bone[’']s\b|\boneself\b|\w/\w| / |…|\.\.\.")


def ding_alternatives(group):
    """The alternatives of one group, notes cut off; None for one that has dictionary shorthand."""
    found = []
    for word in re.split(r";\s*(?![^(]*\))", NOTES.sub("", group)):
        word = " ".join(BRACKETS.sub("", word).split()).strip(" ,")
        found.append(None if not word or SHORTHAND.search(word) or re.search(r"[()\[\]{}|]", word) else word)
    return found


def ding_entry(line):
    """(English, German) of a line: groups belong together by position, alternatives too where there are as many."""
    if line.startswith("#") or " :: " not in line:
        return
    german, english = line.split(" :: ", 1)
    german, english = german.split(" | "), english.split(" | ")
    if len(german) != len(english):
        return
    for g, e in zip(german, english):
        g, e = ding_alternatives(g), ding_alternatives(e)
        count = min(len(g), len(e))
        for i in range(count if len(g) == len(e) and count <= 3 else min(1, count)):
            if g[i] and e[i]:
                yield e[i], g[i]


def ding(paths, lang, wanted):
    if lang != "de":
        return
    for path in paths:
        for line in read_text(path).split("\n"):
            for english, german in ding_entry(line.strip()):
                if (english[-1] in ".!?" and german[-1] in ".!?" and " " in english) == wanted:
                    yield english, german


def ding_words(paths, lang):
    return ding(paths, lang, False)


def ding_sentences(paths, lang):
    """The examples among the entries: whole sentences."""
    return ding(paths, lang, True)


TEI = "{http://www.tei-c.org/ns/1.0}"
THREE = {"deu": "de", "fra": "fr", "spa": "es", "ita": "it", "eng": "en"}


def tei_entries(path):
    """(head word, first translation of a sense, [(example, its translation)]) of a FreeDict dictionary."""
    for _, entry in ElementTree.iterparse(path):
        if entry.tag != TEI + "entry":
            continue
        orth = entry.find(f".//{TEI}orth")
        if orth is not None and orth.text:
            for sense in entry.iter(TEI + "sense"):
                quote = sense.find(f"{TEI}cit[@type='trans']/{TEI}quote")
                if quote is None:
                    quote = sense.find(f".//{TEI}cit[@type='trans']/{TEI}quote")
                examples = [(x.find(TEI + "quote"), x.find(f"{TEI}cit/{TEI}quote")) for x in sense.iter(TEI + "cit")
                            if x.get("type") == "example"]
                yield orth.text, quote.text if quote is not None else None, [
                    (a.text, b.text) for a, b in examples if a is not None and b is not None]
        entry.clear()


def freedict(paths, lang):
    """First translation of each sense, and examples."""
    for path in sorted(paths):
        found = re.search(r"/(\w{3})-(\w{3})\.tei$", path)
        if not found or {THREE.get(found[1]), THREE.get(found[2])} != {"en", lang}:
            continue
        turn = found[1] != "eng"
        for head, quote, examples in tei_entries(path):
            pairs = ([(head, quote)] if quote else []) + examples
            for a, b in pairs:
                if not a or not b or SHORTHAND.search(a + " " + b) or re.search(r"[()\[\]{}|<>]", a + b):
                    continue
                yield (b, a) if turn else (a, b)


CLDR_PARTS = ("localeDisplayNames/languages/language", "localeDisplayNames/territories/territory", "localeDisplayNames/scripts/script",
              "numbers/currencies/currency", "dates/calendars/calendar", "dates/fields/field", "dates/timeZoneNames/zone",
              "units/unitLength", "localeDisplayNames/types/type", "characterLabels/characterLabel")


def cldr_names(path):
    """{place in the file: text}: languages, countries, currencies, months, days, units, cities."""
    found = {}

    def walk(node, place):
        for child in node:
            marks = ",".join(f"{k}={child.get(k)}" for k in ("type", "count", "alt", "case", "gender") if child.get(k))
            name = f"{place}/{child.tag}[{marks}]"
            if len(child):
                walk(child, name)
            elif child.text and child.text.strip() and child.text.strip() != "↑↑↑":
                found[name] = child.text.strip()
    root = ElementTree.parse(path).getroot()
    for part in ("localeDisplayNames", "numbers/currencies", "dates", "units", "characterLabels"):
        for node in root.findall(part):
            walk(node, part)
    return found


def cldr(paths, lang):
    tables = {language_of(p): p for p in paths}
    if "en" not in tables or lang not in tables:
        return
    english, other = cldr_names(tables["en"]), cldr_names(tables[lang])
    for place, text in english.items():
        if place in other and not re.search(r"Pattern|Format|pattern\[|symbol|alias|eras|narrow|abbreviated|short\[|/short", place) \
                and "case=" not in place and os.path.basename(tables["en"]) == "en.xml":
            a, b = text.replace("{0} ", ""), other[place].replace("{0} ", "")
            if "{" not in a + b and re.search(r"[^\W\d_]{2}", a) and re.search(r"[^\W\d_]{2}", b):
                yield a, b
