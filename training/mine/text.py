# SPDX-License-Identifier: MIT
"""What a message is once its markup, accelerators and line breaks are gone.

MARKUP maps the name in the table of sources to a function that gives plain text, or None where nothing sensible is left.
"""
import html
import re
import unicodedata

SPACE = re.compile(r"\s+")
NOT_ALNUM = re.compile(r"[\W_]+")
TAG = re.compile(r"</?[A-Za-z][^<>]{0,400}>|<!--.*?-->|<\?[^>]*\?>", re.S)
NAMED = re.compile(r"&(?:#\d+|#x[0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]{1,7});")
ENTITY = {"debian": "Debian", "brandShortName": "Firefox", "brandFullName": "Mozilla Firefox", "vendorShortName": "Mozilla"}


def squeeze(text):
    return SPACE.sub(" ", text).strip()


def key(text):
    """Equal for lines that differ in case, punctuation and white space only."""
    text = (text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold()
    return NOT_ALNUM.sub("", text)


def plain(text):
    return squeeze(unicodedata.normalize("NFC", text))


def none(text):
    return plain(text)


def places(text):
    """Names of tzdata: Port_Moresby."""
    return plain(text.replace("_", " "))


def tags(text):
    """Without XML or HTML tags; entities as characters."""
    text = text.replace("\\<", "<").replace("\\>", ">").replace('\\"', '"')
    if "<bookmark_value" in text:
        return None  # LibreOffice's index entries, run together
    text = re.sub(r'<caseinline select="MAC">.*?</caseinline>', "", text, flags=re.S)
    text = re.sub(r"<(indexterm|footnote|remark|screen|programlisting|bookmark|ahelp[^>]*)>.*?</\1>", _kept, text, flags=re.S)
    text = TAG.sub(_gap, text)
    text = html.unescape(text) if NAMED.search(text) else text
    text = re.sub(r"&(debian|brandShortName|brandFullName|vendorShortName);", lambda m: ENTITY[m[1]], text)
    text = text.replace("%PRODUCTNAME", "LibreOffice").replace("$[officename]", "LibreOffice").replace("$[officepath]", "LibreOffice")
    text = accelerator(text, "~&_")
    return plain(text)


def _kept(found):
    return found[0] if found[1].startswith("ahelp") else ""


def _gap(found):
    """Block elements part words, inline ones do not; an empty element stands for text that is elsewhere (\1: filters.STRANGE)."""
    if found[0].endswith("/>") and not re.match(r"<(br|p|hr|anchor|indexterm|bookmark|img|image|a)\b", found[0], re.I):
        return "\1"
    return " " if re.match(r"</?(br|p|li|para|entry|td|tr|div|h\d|term|listitem)\b", found[0], re.I) else ""


def accelerator(text, marks):
    """Drops the mark in front of the letter of a shortcut: one in the whole text, at the beginning of a word or inside one."""
    for mark in marks:
        if mark == "~":
            text = re.sub(r"(?<=\w)~(?=\s|$)", "", text)
        if text.count(mark) != 1:
            continue
        found = re.search(re.escape(mark) + r"(?=\w)", text)
        if not found or (mark == "&" and re.match(r"&[\w.-]+;", text[found.start():])):
            continue
        before = text[found.start() - 1] if found.start() else ""
        if mark == "_" and (" " not in text and len(text) > 30 or before == "<"):
            continue
        if before in ("/", "\\", ".", "-", ":") or (mark == "~" and before not in ("", " ", "(") and not before.isalpha()):
            continue
        text = text[:found.start()] + text[found.end():]
        text = re.sub(r"\s*\(\w\)$", "", text) if before == "(" else text
    return text


def gtk(text):
    return tags(text)


def kde(text):
    """KDE's and Qt's: && is one ampersand, @info:whatis contexts stay in msgctxt; KUIT tags."""
    text = text.replace("&&", "\0")
    text = re.sub(r"<shortcut>(.*?)</shortcut>|<(?:filename|command|icode)>(.*?)</\w+>", lambda m: m[1] or m[2] or "", text)
    text = tags(text)
    return text.replace("\0", "&")


def qt(text):
    return kde(text)


def pod(text, xml=True):
    """po4a's manual pages: B<bold>, I<italic>, E<lt>, and what is left of roff. xml: it may be DocBook as well."""
    if xml and not re.search(r"\b(?:[A-Z]|CW|BI)<", text):
        text = tags_only(text)
    named = {"lt": "<", "gt": ">", "verbar": "|", "sol": "/", "amp": "&", "nbsp": " ", "dq": '"', "aq": "'"}
    text = re.sub(r"E<(\w+)>", lambda m: named.get(m[1], "\0"), text)
    if "\0" in text:
        return None
    for _ in range(3):
        text = re.sub(r"\b(?:[BICLFSX]|CW|BI|IB|BR|RB|RI|IR)<((?:[^<>]|<(?![^<>]*>))*)>", r"\1", text)
    text = re.sub(r"\\f(\[\w*\]|\(\w\w|\w)", "", text)
    text = re.sub(r"\\-|\\\(hy|\\\(mi", "-", text)
    text = re.sub(r"\\\(em|\\\[em\]", "—", text)
    text = re.sub(r"\\\(en|\\\[en\]", "–", text)
    text = re.sub(r"\\\(bu|\\\[bu\]", "", text)
    text = re.sub(r"\\\(aq|\\\[aq\]|\\\(cq|\\\[cq\]|\\\[oq\]|\\\(oq", "'", text)
    text = re.sub(r"\\\(dq|\\\[dq\]|\\\(lq|\\\(rq|\\\[lq\]|\\\[rq\]", '"', text)
    text = re.sub(r"\\[&%|^:,/]", "", text)
    text = text.replace("\\ ", " ").replace("\\e", "\\").replace("\\~", " ").replace("\\.", ".")
    if re.search(r"\\[(\[*]|^\.[A-Z]{1,2}\b|[BI]<", text):
        return None
    return plain(html.unescape(text) if NAMED.search(text) else text)


def gnu(text):
    """Messages of programs, and manual pages of the same packages."""
    return pod(text) if re.search(r"\b[BIFE]<", text) else plain(text)


def tags_only(text):
    text = TAG.sub(_gap, text)
    return plain(html.unescape(text) if NAMED.search(text) else text)


def wiki(text):
    """MediaWiki's messages: links become their text; what has templates or magic words beyond variables is left out."""
    text = re.sub(r"\{\{(?:PLURAL|plural):[^{}]*\}\}|\{\{GENDER:[^{}|]*\|([^{}|]*)[^{}]*\}\}|\{\{gender:[^{}|]*\|([^{}|]*)[^{}]*\}\}",
                  lambda m: m[1] or m[2] or "\0", text)
    text = re.sub(r"\{\{SITENAME\}\}|\{\{sitename\}\}", "Wikipedia", text)
    if "\0" in text or "{{" in text or "{|" in text:
        return None
    text = re.sub(r"\[\[(?:[^\]|]*\|)?([^\]|]*)\]\]", r"\1", text)
    text = re.sub(r"\[(?:https?:|mailto:|\$\d)\S*\s+([^\]]*)\]", r"\1", text)
    text = re.sub(r"'''?", "", text)
    text = re.sub(r"(?m)^[=*#:;]+\s*|\s*=+\s*$", "", text)
    return tags_only(text)


MARKUP = {f.__name__: f for f in (plain, none, places, tags, gtk, kde, qt, pod, gnu, wiki)}

RST = re.compile(r"``([^`]*)``|:[\w:+.-]+:`([^`<]*?)(?:\s*<[^`>]*>)?`|`([^`<]+?)\s*<[^`>]*>`__?|\*\*([^*]+)\*\*|(?<!\w)\*([^*\s][^*]*)\*(?!\w)")


def rst(text):
    """reStructuredText and Markdown marks inside a line."""
    return RST.sub(lambda m: next((g for g in m.groups() if g is not None), ""), text)


PLACEHOLDER = re.compile(
    r"%(?:\d+\$)?[-+ 0#']*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j)?[sdiuxXcfgeop@n]\b|%\(\w+\)[sdif]|%\d+|%[A-Za-z]\w*%|%L\d|%n\b"
    r"|\$\{\w+\}|\$[A-Za-z_]\w*|\$\d(?![\d.,])|\{\{?\s*\$?[\w. -]*\}?\}|@\w+@|&\w+;|%\{\w+\}|#\d(?!\d)")


def placeholders(text):
    return sorted(squeeze(m) for m in PLACEHOLDER.findall(text))


WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
CODE = re.compile(r"^[-/\\.~$@#&<>=|{}\[\]()*+\"']|[_=\\<>{}|@]|\w\.\w|\w\(|://|\d\w*[A-Za-z]|[a-z][A-Z]|\w/\w|::")


NO_PROSE = re.compile(r"[^\w\s,;:.!?'’-]|[\d_]|[a-z][A-Z]|\w[.:;!?,]\w|(?:^|\s)[-.']")  # something that only code, paths and numbers have


def word_share(text):
    """Which part of the tokens between spaces are words of a language rather than options, paths and numbers."""
    if text and not NO_PROSE.search(text):
        return 1.0
    tokens = text.split()
    if not tokens:
        return 0.0
    good = 0
    for token in tokens:
        bare = token.strip("\"'“”„‚‘’«»()[],;:.!?…¿¡–—")
        if bare and WORD.fullmatch(bare) and not CODE.search(bare):
            good += 1
    return good / len(tokens)
