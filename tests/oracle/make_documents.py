#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/data/documents/office.zip.xz: documents of office programs, books, XLIFF and PDF, for round trips.

    tests/oracle/make_documents.py [OUTPUT]

The text is cut from manuals in Debian packages (SOURCES below, with their licences), with its headings, emphasis and links.
LibreOffice makes docx, odt, epub, pptx, odp, xlsx and ods of it, and of the letter, the talk and the sheet that are kept in the
archive as flat OpenDocument; XLIFF and PDF are written here. Members that documents have in common are deflated, the others are
stored, so that xz sees what is alike in them: 3 MiB with the texts of text.tar.xz, of which 100 KB are kept. Licences are those of
/usr/share/doc/PACKAGE/copyright, read on 2026-11-16. Needs soffice, xz and the packages.
"""
import html
import io
import re
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOC = Path("/usr/share/doc")
# package, file, licence, how many documents are cut from it
SOURCES = [
    ("bzip2", "manual.html", "bzip2-1.0.6", 3),
    ("ninja-build", "manual.html", "Apache-2.0", 4),
    ("libexpat1-dev", "expat.html/reference.html", "MIT", 4),
    ("xtrans-dev", "xtrans.html", "MIT-open-group", 2),
    ("zlib1g-dev", "examples/zlib_how.html", "Zlib", 1),
    ("fontconfig", "fontconfig-user.html", "HPND", 1),
]
PARAGRAPHS = 9
INLINE = {"b": "b", "strong": "b", "i": "i", "em": "i", "code": "i", "tt": "i", "a": "a"}
BLOCK = {"p", "li", "h1", "h2", "h3", "dd", "td"}


class Paragraphs(HTMLParser):
    """[(kind, [(text, formatting, link)])] of a page."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found, self.runs, self.stack, self.kind, self.skip = [], [], [], "p", 0

    def flush(self, kind="p"):
        text = "".join(r[0] for r in self.runs)
        if 25 < len(" ".join(text.split())) < 320:
            self.found.append((self.kind, [(re.sub(r"\s+", " ", t), f, a) for t, f, a in self.runs if t]))
        self.runs, self.stack, self.kind = [], [], kind

    def handle_starttag(self, tag, attrs):
        if tag in ("pre", "script", "style", "head"):
            self.skip += 1
        elif tag in BLOCK:
            self.flush("h" if tag.startswith("h") else "p")
        elif tag in INLINE:
            self.stack.append((tag, INLINE[tag], dict(attrs).get("href")))

    def handle_endtag(self, tag):
        if tag in ("pre", "script", "style", "head"):
            self.skip = max(0, self.skip - 1)
            self.flush()
        elif tag in BLOCK:
            self.flush()
        elif self.stack and self.stack[-1][0] == tag:
            self.stack.pop()

    def handle_data(self, data):
        if not self.skip:
            kinds = {k for _, k, _ in self.stack}
            link = next((a for _, k, a in self.stack if k == "a" and a), None)
            self.runs.append((data, "".join(sorted(kinds & {"b", "i"})), link))


def cut():
    """[(name, paragraphs)]"""
    out = []
    for package, file, _, count in SOURCES:
        reader = Paragraphs()
        reader.feed((DOC / package / file).read_text(errors="replace"))
        reader.flush()
        step = len(reader.found) // count
        assert step >= PARAGRAPHS, (package, len(reader.found))
        out += [(f"{package}-{i + 1}", reader.found[i * step:i * step + PARAGRAPHS]) for i in range(count)]
    return out


def plain(runs):
    return "".join(r[0] for r in runs).strip()


# ---- sources for LibreOffice -----------------------------------------------------------------------

SPACES = " ".join(f'xmlns:{p}="urn:oasis:names:tc:opendocument:xmlns:{n}:1.0"' for p, n in [
    ("office", "office"), ("style", "style"), ("text", "text"), ("table", "table"), ("draw", "drawing"),
    ("fo", "xsl-fo-compatible"), ("svg", "svg-compatible"), ("presentation", "presentation")])
STYLES = ('<office:automatic-styles><style:style style:name="b" style:family="text"><style:text-properties fo:font-weight="bold"/>'
          '</style:style><style:style style:name="i" style:family="text"><style:text-properties fo:font-style="italic"/>'
          '</style:style>'
          '<style:page-layout style:name="pl"><style:page-layout-properties fo:page-width="28cm" fo:page-height="21cm"/>'
          '</style:page-layout></office:automatic-styles>'
          '<office:master-styles><style:master-page style:name="M" style:page-layout-name="pl"/></office:master-styles>')


def spans(runs):
    out = ""
    for text, form, link in runs:
        part = html.escape(text, quote=False)
        if form:
            part = f'<text:span text:style-name="{form[0]}">{part}</text:span>'
        if link:
            part = f'<text:a xlink:type="simple" xlink:href="{html.escape(link)}">{part}</text:a>'
        out += part
    return out


def flat(kind, body):
    return (f'<?xml version="1.0" encoding="UTF-8"?>\n<office:document {SPACES} xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'office:version="1.3" office:mimetype="application/vnd.oasis.opendocument.{kind}">{STYLES}'
            f'<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document>')


def text_document(paragraphs):
    return flat("text", "".join(f'<text:h text:outline-level="1">{spans(r)}</text:h>' if k == "h"
                                else f"<text:p>{spans(r)}</text:p>" for k, r in paragraphs))


def presentation(paragraphs):
    def frame(y, height, lines):
        return (f'<draw:frame svg:x="2cm" svg:y="{y}cm" svg:width="24cm" svg:height="{height}cm"><draw:text-box>'
                + "".join(f"<text:p>{spans(r)}</text:p>" for _, r in lines) + "</draw:text-box></draw:frame>")
    pages = [paragraphs[i:i + 3] for i in range(0, 6, 3)]
    return flat("presentation", "".join(
        f'<draw:page draw:name="p{n}" draw:master-page-name="M">{frame(1, 3, p[:1])}{frame(5, 12, p[1:])}</draw:page>'
        for n, p in enumerate(pages)))


def spreadsheet(paragraphs):
    rows = "".join(
        f'<table:table-row><table:table-cell office:value-type="float" office:value="{i}"><text:p>{i}</text:p></table:table-cell>'
        f'<table:table-cell office:value-type="string"><text:p>{spans(r)}</text:p></table:table-cell></table:table-row>'
        for i, (_, r) in enumerate(paragraphs))
    return flat("spreadsheet", f'<table:table table:name="T">{rows}</table:table>')


# ---- XLIFF and PDF -----------------------------------------------------------------------------------

def xliff(name, paragraphs, version):
    out = []
    for n, (_, runs) in enumerate(paragraphs):
        text = ""
        for i, (t, form, _) in enumerate(runs):
            t = html.escape(t, quote=False)
            pair = ("g", "g") if version == 1 else ("pc", "pc")
            text += f'<{pair[0]} id="{i}">{t}</{pair[1]}>' if form else t
        target = "" if n % 3 else f"\n    <target>{html.escape(plain(runs), quote=False)}</target>"
        if version == 1:
            out.append(f'   <trans-unit id="{n}">\n    <source>{text}</source>{target}\n   </trans-unit>')
        else:
            out.append(f'  <unit id="{n}">\n   <segment>\n    <source>{text}</source>{target}\n   </segment>\n  </unit>')
    body = "\n".join(out)
    if version == 1:
        return (f'<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
                f' <file original="{name}" source-language="en" target-language="de" datatype="plaintext">\n  <body>\n{body}\n'
                '  </body>\n </file>\n</xliff>\n')
    return ('<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" '
            f'srcLang="en" trgLang="de">\n <file id="{name}">\n{body}\n </file>\n</xliff>\n')


def pdf(paragraphs):
    y, show = 790, []
    for kind, runs in paragraphs:
        for line in textwrap.wrap(plain(runs), 48 if kind == "h" else 70, break_on_hyphens=False):
            line = line.encode("cp1252", "replace").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
            show.append(b"BT /F %d Tf 1 0 0 1 60 %d Tm (" % (16 if kind == "h" else 11, y) + line + b") Tj ET\n")
            y -= 14
        y -= 14
    stream = b"".join(show)
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
               b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R /Resources << /Font << /F 4 0 R >> >> >>",
               b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>",
               b"<< /Length %d >>\nstream\n" % len(stream) + stream + b"endstream"]
    out, places = b"%PDF-1.4\n", []
    for n, o in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n" % n + o + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % p for p in places)
    end = b"trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(out)
    return out + b"xref\n0 6\n0000000000 65535 f \n" + table + end


# ---- packing -----------------------------------------------------------------------------------------

PACKAGES = (".odt", ".docx", ".epub", ".odp", ".pptx", ".ods", ".xlsx")


def members(data):
    """[(name, content)] of a document, previews of pages left out."""
    out = []
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        for name in z.namelist():
            content = z.read(name)
            if name.startswith("Thumbnails/"):
                continue
            if name == "META-INF/manifest.xml":
                content = re.sub(rb"\s*<manifest:file-entry[^>]*Thumbnails[^>]*/>", b"", content)
            out.append((name, content))
    return out


def pack(documents):
    """The same documents, packed again: deflated members are equal bytes wherever they are, and xz finds them."""
    unpacked = {name: members(data) for name, data in documents.items() if Path(name).suffix in PACKAGES}
    seen = Counter(content for parts in unpacked.values() for _, content in parts)
    for document, parts in unpacked.items():
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as z:
            for name, content in parts:
                common = seen[content] > 1 and name != "mimetype"
                z.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content,
                           zipfile.ZIP_DEFLATED if common else zipfile.ZIP_STORED, 9)
        documents[document] = out.getvalue()


def convert(folder, kinds):
    for source, endings in kinds:
        files = sorted(str(p) for p in folder.glob(f"*.{source}"))
        for ending in endings:
            subprocess.run(["soffice", f"-env:UserInstallation=file://{folder}/profile", "--headless", "--convert-to", ending,
                            "--outdir", str(folder), *files], check=True, stdout=subprocess.DEVNULL)


def main():
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/data/documents/office.zip.xz"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if output.exists():  # the documents that were written by hand
            old = subprocess.run(["xz", "-dc", str(output)], check=True, stdout=subprocess.PIPE).stdout
            with zipfile.ZipFile(io.BytesIO(old)) as z:
                for member in ("letter.fodt", "talk.fodp", "sheet.fods"):
                    folder.joinpath(member).write_bytes(z.read(member))
        documents = {p.name: p.read_bytes() for p in folder.iterdir()}
        for n, (title, paragraphs) in enumerate(cut()):
            folder.joinpath(f"{title}.fodt").write_text(text_document(paragraphs))
            folder.joinpath(f"{title}.fodp").write_text(presentation(paragraphs))
            folder.joinpath(f"{title}.fods").write_text(spreadsheet(paragraphs))
            documents[f"{title}.xlf"] = xliff(title, paragraphs, 1 + n % 2).encode()
            documents[f"{title}.pdf"] = pdf(paragraphs)
        convert(folder, [("fodt", ["odt", "docx", "epub"]), ("fodp", ["odp", "pptx"]), ("fods", ["ods", "xlsx"])])
        for p in folder.iterdir():
            if p.suffix in PACKAGES:
                documents[p.name] = p.read_bytes()
        pack(documents)
        licences = "".join(f"{p} {f}: {licence}\n" for p, f, licence, _ in SOURCES)
        documents["LICENCES"] = ("Text cut from documentation in Debian packages:\n" + licences).encode()
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as z:
            for member in sorted(documents, key=lambda m: (m.rsplit(".")[-1], m)):
                z.writestr(zipfile.ZipInfo(member, (2026, 1, 1, 0, 0, 0)), documents[member])
        output.parent.mkdir(parents=True, exist_ok=True)
        with open(output, "wb") as f:
            subprocess.run(["xz", "-9e", "--lzma2=preset=9e,dict=64MiB", "-c"], input=packed.getvalue(), stdout=f, check=True)
    print(f"{len(documents)} files, {packed.tell()} bytes, packed {output.stat().st_size}")


if __name__ == "__main__":
    main()
