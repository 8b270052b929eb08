# SPDX-License-Identifier: MIT
"""Message catalogues: both texts of a message have one id. Readers yield (English, translation), markup still in.

A reader gets the paths of one package and a language; what it does not understand it leaves out.
"""
import codecs
import json
import os
import re
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path

CODES = {"de": ("de", "de_DE", "de-DE", "de_de"), "fr": ("fr", "fr_FR", "fr-FR", "fr_fr"),
         "es": ("es", "es_ES", "es-ES", "es_es"), "it": ("it", "it_IT", "it-IT", "it_it"),
         "en": ("en", "en_US", "en-US", "en_GB", "en-GB")}
LANGUAGE = {code: lang for lang, codes in CODES.items() for code in codes}


def language_of(path):
    """The language that a path names: its file (de.po, kate_de.po, app.de.po) or the nearest folder; None without one."""
    parts = path.split("/")
    stem = parts[-1].split(".")
    ending = 2 if len(stem) > 2 and stem[-1] in ("gz",) else 1
    stem = stem[:-ending] or stem
    for part in [stem[0], stem[-1], re.split(r"[-_@]", stem[-1], maxsplit=0)[-1], *tail_codes(stem[-1])]:
        if part in LANGUAGE and part != parts[-1]:
            return LANGUAGE[part]
    for part in reversed(parts[:-1]):
        part = re.sub(r"(@.*|\.utf-?8)$", "", part, flags=re.I)
        part = part.removeprefix("l10n-").removeprefix("resource.language.").removeprefix("kde-i18n-")
        if part in LANGUAGE:
            return LANGUAGE[part]
        if re.fullmatch(r"[a-z]{2,3}([_-][A-Za-z]{2,4})?", part) and part not in NOT_LANGUAGES:
            return None
    return None


NOT_LANGUAGES = {"po", "doc", "docs", "src", "man", "usr", "lib", "gnu", "gui", "app", "ui", "web", "bin", "www", "gas", "bfd",
                 "ld", "opt", "res", "cc", "cmd", "sql", "git", "mo", "l10n", "kio", "kde", "kf5", "com", "net", "org", "sc", "sd", "sw", "vcl",
                 "svx", "fpicker"}


def tail_codes(stem):
    found = re.search(r"[-_.]([a-z]{2}[-_][A-Z]{2})$", stem)
    return [found[1]] if found else []


ESCAPE = re.compile(r"\\(.)", re.S)
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


def unquote(line):
    first, last = line.find('"'), line.rfind('"')
    if first < 0 or last <= first:
        return ""
    text = line[first + 1:last]
    return ESCAPE.sub(lambda m: ESCAPED.get(m[1], m[0]), text) if "\\" in text else text


def charset_of(head):
    """The encoding that the head of a catalogue names; UTF-8 where it names none that is known ("CHARSET" in templates)."""
    found = re.search(rb"charset=([\w-]+)", head)
    try:
        return codecs.lookup(found[1].decode()).name if found else "utf-8"
    except LookupError:
        return "utf-8"


def read_po(path):
    """(msgid, msgstr) of all messages that are translated and not fuzzy; plural forms as the singular and the first plural."""
    data = Path(path).read_bytes()
    text = data.decode(charset_of(data[:4000]), errors="replace")
    entry, field, fuzzy = {}, None, False
    for line in text.split("\n") + [""]:
        line = line.strip("\r")
        if line.startswith('"'):
            if field:
                entry[field].append(unquote(line))
        elif line.startswith("msg"):
            name = line.split(" ", 1)[0].rstrip("\t")
            if name in ("msgid", "msgctxt") and ("msgstr" in entry or "msgstr[0]" in entry):
                yield from finished(entry, fuzzy)
                entry, fuzzy = {}, False
            field = name
            entry[field] = [unquote(line)]
        else:
            if line.startswith("#") or not line.strip():
                if "msgstr" in entry or "msgstr[0]" in entry:
                    yield from finished(entry, fuzzy)
                    entry, field, fuzzy = {}, None, False
                if line.startswith("#,") and "fuzzy" in line:
                    fuzzy = True
                if line.startswith("#~"):
                    field = None
    yield from finished(entry, fuzzy)


def finished(entry, fuzzy):
    if fuzzy or not entry:
        return
    get = lambda name: "".join(entry.get(name, ()))
    source = get("msgid")
    if not source:
        return
    if "msgid_plural" in entry:
        if get("msgstr[0]") and "msgstr[1]" in entry:
            yield source, get("msgstr[0]")
        if get("msgstr[1]"):
            yield get("msgid_plural"), get("msgstr[1]")
    elif get("msgstr"):
        yield source, get("msgstr")


def read_mo(path):
    data = Path(path).read_bytes()
    if len(data) < 28:
        return
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    count, ids, texts = struct.unpack(order + "III", data[8:20])
    charset = "utf-8"
    for i in range(count):
        size, at = struct.unpack_from(order + "II", data, ids + 8 * i)
        size2, at2 = struct.unpack_from(order + "II", data, texts + 8 * i)
        source, target = data[at:at + size], data[at2:at2 + size2]
        if not source:
            charset = charset_of(target)
            continue
        source, target = source.decode("utf-8", "replace"), target.decode(charset, "replace")
        source = source.split("\x04", 1)[-1]
        yield from zip(source.split("\0"), target.split("\0"))


def messages(paths, lang):
    """gettext: .po, and .mo where a package has no .po."""
    mine = [p for p in paths if language_of(p) == lang]
    texts = [p for p in mine if p.endswith(".po")]
    for path in texts or mine:
        for source, target in read_po(path) if path.endswith(".po") else read_mo(path):
            if "^" in source and re.match(r"[\w ,.'-]{1,80}\^", source):
                source, target = source.split("^", 1)[1], target.split("^", 1)[-1]  # Wesnoth's contexts
            yield source, target


def pair_up(tables, lang):
    """(English, translation) of the ids that both have. tables: {language: {id: text}}"""
    english, other = tables.get("en", {}), tables.get(lang, {})
    for name, text in english.items():
        if name in other:
            yield text, other[name]


def gather(paths, lang, read, place=lambda path: path):
    tables = {"en": {}, lang: {}}
    for path in paths:
        which = language_of(path)
        if which in tables:
            for name, text in read(path):
                tables[which][place(path), name] = text
    return pair_up(tables, lang)


def read_text(path):
    data = Path(path).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def read_properties(path):
    text = re.sub(r"\\\r?\n[ \t]*", "", read_text(path))
    for line in text.split("\n"):
        found = re.match(r"\s*([^#!\s=:][^\s=:]*)\s*[=:]\s*(.*)", line.rstrip("\r"))
        if found:
            value = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), found[2])
            yield found[1], value.replace("\\n", "\n").replace("\\t", " ").replace("\\", "")


def properties(paths, lang):
    tables = {"en": {}, lang: {}}
    for path in paths:
        stem = os.path.basename(path).split(".")[0]
        which = stem.rsplit("_", 1)[1] if "_" in stem else "en"
        if which in tables:
            tables[which].update(read_properties(path))
    return pair_up(tables, lang)


TERMS = {"brand-short-name": "Firefox", "brand-shorter-name": "Firefox", "brand-full-name": "Mozilla Firefox",
         "brand-product-name": "Firefox", "vendor-short-name": "Mozilla", "brand-name": "Firefox", "pocket-brand-name": "Pocket",
         "firefox-home-brand-name": "Firefox Home", "lockwise-brand-name": "Firefox Lockwise", "relay-brand-name": "Firefox Relay",
         "relay-brand-short-name": "Relay", "monitor-brand-name": "Firefox Monitor", "mozilla-vpn-brand-name": "Mozilla VPN",
         "facebook-container-brand-name": "Facebook Container", "rally-short-name": "Rally",
         "profiler-brand-name": "Firefox Profiler", "translations-brand-name": "Firefox Translations"}


def fluent_value(text):
    """A pattern without selectors, terms replaced; None where something else is in braces."""
    def value(found):
        inside = found[1].strip()
        if inside.startswith("$"):
            return "{" + inside.split(")")[0].split("(")[-1].strip() + "}"
        if inside.startswith("-"):
            return TERMS.get(re.split(r"[\s(]", inside[1:])[0], "\0")
        return inside.strip('"') if inside.startswith('"') else "\0"
    if "->" in text:
        return None
    text = re.sub(r"\{([^{}]*)\}", value, text)
    return None if "\0" in text else " ".join(text.split())


def read_ftl(path):
    name = part = None
    values = {}
    for line in read_text(path).split("\n"):
        found = re.match(r"([a-zA-Z][\w-]*)\s*=\s?(.*)", line)
        inner = re.match(r"\s+\.([\w-]+)\s*=\s?(.*)", line)
        if found:
            name, part = found[1], ""
            values[name, part] = [found[2]]
        elif inner and name:
            part = inner[1]
            values[name, part] = [inner[2]]
        elif line[:1] in (" ", "\t") and name:
            values[name, part].append(line.strip())
        elif line.strip():
            name = None
    for (name, part), lines in values.items():
        if part in ("accesskey", "key", "style", "commandkey"):
            continue
        text = fluent_value(" ".join(lines).strip())
        if text:
            yield f"{name}.{part}", text


def read_dtd(path):
    for found in re.finditer(r"<!ENTITY\s+([\w.-]+)\s+(?:\"([^\"]*)\"|'([^']*)')\s*>", read_text(path)):
        if not re.search(r"(accesskey|commandkey|\.key|style|width|height)$", found[1], re.I):
            yield found[1], found[2] or found[3] or ""


MOZILLA = {".ftl": read_ftl, ".properties": read_properties, ".dtd": read_dtd}


def mozilla(paths, lang):
    """Fluent, properties and DTDs; English is en-GB, which the same source package has."""
    def place(path):
        return re.split(r"/(?:l10n-)?(?:de|fr|es-ES|it|en-GB)/", path)[-1]

    def read(path):
        for name, text in MOZILLA[os.path.splitext(path)[1]](path):
            if not re.search(r"accesskey|commandkey", name, re.I) and "region" not in path.split("/")[-1]:
                yield name, text.replace("Firefox", "Thunderbird") if "thunderbird" in path else text
    return gather(paths, lang, read, place)


def wiki_json(paths, lang):
    def read(path):
        try:
            table = json.loads(Path(path).read_text(encoding="utf-8"))
        except (ValueError, UnicodeDecodeError):
            return
        for name, text in table.items():
            if isinstance(text, str) and not name.startswith("@"):
                yield name, text
    return gather(paths, lang, read, os.path.dirname)


def rails(paths, lang):
    """Rails' YAML: nested tables below the language."""
    import yaml

    def leaves(node, name):
        if isinstance(node, dict):
            for k, v in node.items():
                yield from leaves(v, f"{name}.{k}")
        elif isinstance(node, list):
            for i, v in enumerate(node):
                yield from leaves(v, f"{name}.{i}")
        elif isinstance(node, str):
            yield name, node

    def read(path):
        try:
            yield from leaves(next(iter((yaml.load(read_text(path), yaml.CSafeLoader) or {"": ""}).values())), "")
        except yaml.YAMLError:
            return
    return gather(paths, lang, read, os.path.dirname)


def roundcube(paths, lang):
    def read(path):
        for found in re.finditer(r"\$(?:labels|messages)\['([^']+)'\]\s*=\s*'((?:[^'\\]|\\.)*)'", read_text(path)):
            yield found[1], found[2].replace("\\'", "'")
    return gather(paths, lang, read, lambda p: os.path.dirname(os.path.dirname(p)) + os.path.basename(p))


def qt_ts(paths, lang):
    for path in paths:
        if language_of(path) != lang:
            continue
        try:
            root = ElementTree.parse(path).getroot()
        except ElementTree.ParseError:
            continue
        for message in root.iter("message"):
            source, target = message.find("source"), message.find("translation")
            if source is None or target is None or target.get("type"):
                continue
            text = target.text
            forms = target.findall("numerusform")
            if forms:
                text = forms[-1].text
            if source.text and text:
                yield source.text, text
