# SPDX-License-Identifier: MIT
"""Documents whose translation has the same structure: manual pages, HTML, DocBook, package descriptions.

A document becomes blocks (kind, text). Blocks are paired section by section: one to one where the kinds are the same in
both, by length (lengths.py) where they are not. Readers yield (English, translation).
"""
import gzip
import os
import re
from html.entities import name2codepoint
from html.parser import HTMLParser
from pathlib import Path

from . import lengths, text as texts
from .messages import language_of, read_text

HEADING = "h"


def pair_blocks(a, b):
    """Yields (text, text) of blocks that translate each other."""
    first, second = sections(a), sections(b)
    if len(first) == len(second):
        for x, y in zip(first, second):
            yield from pair_section(x, y)
    elif len(a) * len(b) < 60000:
        yield from pair_section(a, b)


def sections(blocks):
    found = [[]]
    for block in blocks:
        if block[0] == HEADING:
            found.append([])
        found[-1].append(block)
    return found


def pair_section(a, b):
    kinds_a, kinds_b = [k for k, _ in a], [k for k, _ in b]
    if kinds_a == kinds_b:
        yield from ((x[1], y[1]) for x, y in zip(a, b))
    elif a and b and len(a) * len(b) < 60000:
        for i0, i1, j0, j1 in lengths.align([t for _, t in a], [t for _, t in b], kinds_a, kinds_b):
            if i1 - i0 == 1 and j1 - j0 == 1 and kinds_a[i0] == kinds_b[j0]:
                yield a[i0][1], b[j0][1]


# Manual pages.

def read_page(path):
    data = gzip.decompress(Path(path).read_bytes()) if path.endswith(".gz") else Path(path).read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


FONTS = re.compile(r"\.\s*(B|I|BR|IR|BI|IB|RB|RI|SM|SB)\b\s*(.*)")
BREAK = re.compile(r"\.\s*(PP|P|LP|RS|RE|sp|br|HP|TQ|UR|UE|MT|ME)\b|\.$|\.\s*$")


def font_text(name, rest):
    words = [a or b for a, b in re.findall(r'"([^"]*)"|(\S+)', rest)]
    return (" " if len(name) == 1 or name in ("SM", "SB") else "").join(words)


def roff_blocks(page):
    """[(kind, text)] of a page in man macros; [] for other macro packages."""
    if re.search(r"(?m)^\.Dd\b", page) or not re.search(r"(?m)^\.\s*SH\b", page):
        return []
    blocks, lines, kind, code, tag = [], [], "p", None, False

    def flush():
        nonlocal kind
        text = "\n".join(lines).strip()
        lines.clear()
        if text:
            blocks.append((kind, text))
        kind = "p"

    for line in page.split("\n"):
        if code:
            if re.match(code, line):
                code = None
            continue
        if line.startswith((".\\\"", "'\\\"", ".\\}", ".el", ".if", ".ie", ".ad", ".nh", ".hy", ".ds", ".de", ".TH", ".de")):
            continue
        start = re.match(r"\.\s*(nf|EX|TS|SY|PS)\b", line)
        if start:
            flush()
            blocks.append(("code", ""))
            code = {"nf": r"\.\s*fi\b", "EX": r"\.\s*EE\b", "TS": r"\.\s*TE\b", "SY": r"\.\s*YS\b", "PS": r"\.\s*PE"}[start[1]]
            continue
        head = re.match(r"\.\s*(SH|SS)\b\s*(.*)", line)
        if head:
            flush()
            blocks.append((HEADING, head[2].strip().strip('"')))
            continue
        item = re.match(r"\.\s*IP\b\s*(.*)", line)
        if item:
            flush()
            words = re.findall(r'"([^"]*)"|(\S+)', item[1])
            if words and not re.match(r"\\\(bu|\\\[bu\]|\*|\\\(em|-|\d+\.?$|\(\d+\)$|\\-$", words[0][0] or words[0][1]):
                blocks.append(("t", words[0][0] or words[0][1]))
            continue
        if re.match(r"\.\s*TP\b", line):
            flush()
            kind, tag = "t", True
            continue
        if BREAK.match(line) or not line.strip():
            flush()
            continue
        font = FONTS.match(line)
        if font:
            lines.append(font_text(font[1], font[2]))
        elif line.startswith((".", "'")):
            continue
        else:
            lines.append(line)
        if tag and lines:
            flush()
            tag = False
    flush()
    return [(k, t) for k, t in blocks if t]


def roff_text(text):
    """Text of a roff block without its escapes; None where some are left."""
    text = re.sub(r"\\c(?=\n|$)", "", text)
    text = re.sub(r"\\m\[\w*\]|\\s[-+]?\d|\\h'[^']*'|\\v'[^']*'", "", text)
    text = re.sub(r"\\[u|d]", "", text) if "\\u" in text else text
    text = re.sub(r"\\\(co|\\\[co\]", "©", text)
    text = re.sub(r"\\\(ga|\\`", "`", text)
    text = re.sub(r"\\\(ha|\\\[ha\]", "^", text)
    text = re.sub(r"\\\(ti|\\\[ti\]", "~", text)
    text = re.sub(r"\\\(Fo|\\\[Fo\]", "«", text)
    text = re.sub(r"\\\(Fc|\\\[Fc\]", "»", text)
    text = re.sub(r"\\\*\(lq|\\\*\(rq|\\\*\[lq\]|\\\*\[rq\]", '"', text)
    text = re.sub(r"\\\(bq|\\\[bq\]|\\\[Bq\]|\\\(Bq", "„", text)
    text = re.sub(r"\\0", " ", text)
    return texts.pod(text, xml=False)


def man_pages(paths, lang):
    """paths: of all packages; pages of the same name and section."""
    english = {}
    for path in paths:
        found = re.search(r"/man/(man\d\w*/[^/]+)$", path)
        if found:
            english[found[1]] = path
    for path in sorted(paths):
        found = re.search(rf"/man/{lang}/(man\d\w*/[^/]+)$", path)
        if found and found[1] in english:
            a, b = roff_blocks(read_page(english[found[1]])), roff_blocks(read_page(path))
            if a and b and heading_count(a) + 1 == heading_count(b):
                b = b[:max(i for i, x in enumerate(b) if x[0] == HEADING)]  # the section about the translation
            for source, target in pair_blocks(a, b):
                source, target = roff_text(source), roff_text(target)
                if source and target:
                    yield source, target


def heading_count(blocks):
    return sum(1 for k, _ in blocks if k == HEADING)


# HTML and DocBook.

BLOCKS = {"p", "li", "dt", "dd", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "title", "para", "simpara", "term", "entry",
          "member", "listitem", "caption", "div", "table", "ul", "ol", "dl", "body", "section", "blockquote", "figure",
          "sect1", "sect2", "sect3", "sect4", "chapter", "itemizedlist", "orderedlist", "variablelist", "varlistentry", "note", "tip",
          "warning", "caution", "important", "screenshot", "mediaobject", "informaltable", "row", "step", "procedure", "question",
          "answer", "textobject", "phrase", "glossdef", "glossterm", "refpurpose", "bridgehead", "aside", "nav", "header", "footer"}
HEADINGS = {"h1", "h2", "h3", "h4", "title", "bridgehead"}
SKIPPED = {"pre", "script", "style", "screen", "programlisting", "indexterm", "literallayout", "head", "nav", "footer", "informalexample",
           "legalnotice", "authorgroup", "bookinfo", "svg", "synopsis", "cmdsynopsis", "credits", "translator",
           "shortcut"}
KEYS = {"Ctrl", "Alt", "Shift", "Enter", "Tab", "Esc", "LMB", "RMB", "MMB", "Mouse", "Meta", "Del", "Space", "Home", "End"}


class BlockParser(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=False)
        self.blocks, self.text, self.stack, self.skip = [], [], [], 0
        self.choice = None  # inside <menuchoice>: how many entries of the menu there were

    def flush(self):
        text = " ".join("".join(self.text).split())
        self.text = []
        if text:
            kind = self.stack[-1] if self.stack else "p"
            self.blocks.append((HEADING if kind in HEADINGS else kind, text))

    def handle_starttag(self, tag, attributes):
        if tag in SKIPPED:
            if not self.skip and tag != "shortcut":
                self.flush()
            self.skip += 1
        elif tag in BLOCKS:
            self.flush()
            self.stack.append(tag)
        elif tag == "br":
            self.text.append(" ")
        elif tag == "menuchoice":
            self.choice = 0
        elif tag in ("guimenu", "guimenuitem", "guisubmenu") and self.choice is not None and not self.skip:
            self.text.append(" → " if self.choice else "")
            self.choice += 1

    def handle_startendtag(self, tag, attributes):
        if tag not in SKIPPED and tag in BLOCKS:
            self.flush()

    def handle_endtag(self, tag):
        if tag in SKIPPED:
            self.skip = max(0, self.skip - 1)
        elif tag == "menuchoice":
            self.choice = None
        elif tag in BLOCKS:
            self.flush()
            if tag in self.stack:
                while self.stack.pop() != tag:
                    pass

    def handle_data(self, data):
        if not self.skip:
            self.text.append(data)

    def handle_entityref(self, name):
        if self.skip:
            return
        if name in name2codepoint or name == "apos":  # not HTML 5's: &rsh; is a program in KDE's handbooks
            self.text.append(chr(name2codepoint.get(name, 39)))
        elif name in KEYS:
            self.text.append(f"&{name};")  # translated in another file: filters.REST leaves the line out
        else:
            self.text.append("KDE" if name == "kde" else name[0].upper() + name[1:])

    def handle_charref(self, name):
        if not self.skip:
            try:
                self.text.append(chr(int(name[1:], 16) if name[:1] in "xX" else int(name)))
            except (ValueError, OverflowError):
                pass


def markup_blocks(document):
    parser = BlockParser()
    document = re.sub(r'<ul class="docnav">.*?</ul>|<div class="nav(header|footer)">.*?</table>', "", document, flags=re.S)
    document = re.sub(r"<!DOCTYPE[^\[>]*(\[.*?\]\s*)?>|<\?.*?\?>|<!--.*?-->", "", document, flags=re.S)
    parser.feed(document)
    parser.close()
    parser.flush()
    return parser.blocks


def html_pages(paths, lang):
    """Pages of one name: ch01.de.html and ch01.en.html, or the same file below de/ and en/ (English also without a mark)."""
    tables = {"en": {}, lang: {}}
    for path in paths:
        which = language_of(path) or "en"
        if which in tables:
            name = re.sub(r"\.(en|de|fr|es|it)(?=\.html?$)", "", os.path.basename(path))
            folder = re.sub(r"/(en|de|fr|es|it)([-_]\w\w)?/", "/", os.path.dirname(path) + "/")
            folder = re.sub(r"^.*/files/\d+/", "", folder)
            folder = re.sub(r"([a-z-]+)-(en|de|fr|es|it)/", r"\1/", folder)
            tables[which][folder, name] = path
    for name, path in sorted(tables[lang].items()):
        if name in tables["en"]:
            yield from pair_blocks(markup_blocks(read_text(tables["en"][name])), markup_blocks(read_text(path)))


def docbook(paths, lang):
    """KDE's handbooks: po/LANG/docs/... against doc/...; the English file is the one whose path ends most alike."""
    english = [p for p in paths if not re.search(r"/po/\w+/docs?/|/HTML/(?!en/)\w+/", p)]
    for path in sorted(paths):
        found = re.search(rf"/(?:po/{lang}/docs?|HTML/{lang})/(.*)$", path)
        if not found:
            continue
        tail = found[1].split("/")
        best, alike = None, 0
        for other in english:
            parts = other.split("/")
            count = 0
            while count < min(len(tail), len(parts)) and tail[-1 - count] == parts[-1 - count]:
                count += 1
            if count > alike:
                best, alike = other, count
        same = [p for p in english if os.path.basename(p) == tail[-1]]
        if best and (alike > 1 or len(same) == 1):
            yield from pair_blocks(markup_blocks(read_text(best)), markup_blocks(read_text(path)))


# Package descriptions.

WRAPPED = re.compile(r"(\w)- (?!und |oder |bzw|or |and |to |et |ou |y |o |e )(\w)")  # a line that was broken behind a hyphen


def description_blocks(lines):
    """Blocks of a description: the first line is the synopsis; " ." parts paragraphs; items of lists stand for themselves."""
    blocks, current = [("s", lines[0].strip())], []
    kind = "p"

    def flush():
        nonlocal kind
        if current:
            blocks.append((kind, WRAPPED.sub(r"\1-\2", " ".join(current))))
            current.clear()
        kind = "p"

    for line in lines[1:]:
        line = line[1:] if line.startswith(" ") else line
        if line.strip() in (".", ""):
            flush()
            continue
        item = re.match(r"\s*(?:[*+•o-]|\d+[.)])\s+(.*)", line)
        if item:
            flush()
            kind = "i"
            current.append(item[1].strip())
        elif line.startswith("  ") and kind != "i":
            flush()
            blocks.append(("v", line.strip()))
        else:
            current.append(line.strip())
    flush()
    return blocks


def read_descriptions(text, code):
    """{md5: lines} of a Translation-XX list."""
    found = {}
    for stanza in text.split("\n\n"):
        md5 = re.search(r"^Description-md5: (\w+)", stanza, re.M)
        body = re.search(rf"^Description-{code}[\w-]*: (.*(?:\n .*)*)", stanza, re.M)
        if md5 and body:
            found[md5[1]] = body[1].split("\n")
    return found


def descriptions(lists, lang):
    """lists: {language: text of the archive's Translation list}"""
    english, other = read_descriptions(lists["en"], "en"), read_descriptions(lists[lang], lang)
    for md5, lines in english.items():
        if md5 in other:
            yield from pair_blocks(description_blocks(lines), description_blocks(other[md5]))
