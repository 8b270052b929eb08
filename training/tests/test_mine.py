# SPDX-License-Identifier: MIT
"""Tests of the miner on small inputs of each kind: no network, no packages, no model."""
import gzip
import io
import lzma
import os
import struct
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from mine import catalogues, documents, everyday, fetch, filters, lengths, messages, output, pipeline, sources, text, words  # noqa: E402


def put(folder, name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode())
    return path


class Folder(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = self.scratch.name

    def tearDown(self):
        self.scratch.cleanup()


class Messages(Folder):
    def test_language_of_a_path(self):
        for path, wanted in (("po/de.po", "de"), ("po/de/kate.po", "de"), ("app_fr.ts", "fr"), ("l10n-es-ES/a/b.ftl", "es"),
                             ("locale/it/LC_MESSAGES/x.mo", "it"), ("html/ch01.de.html", "de"), ("po/de_AT.po", None), ("po/sv/a.po", None),
                             ("resource.language.de_de/strings.po", "de"), ("readme.txt", None)):
            self.assertEqual(messages.language_of(path), wanted, path)

    def test_po(self):
        path = put(self.folder, "po/de.po", '''msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

#, c-format
msgid "Save"
msgstr "Speichern"

#, fuzzy
msgid "Open"
msgstr "Geschlossen"

msgctxt "menu"
msgid ""
"Two "
"lines\\n"
msgstr "Zwei Zeilen\\n"

msgid "one file"
msgid_plural "%d files"
msgstr[0] "eine Datei"
msgstr[1] "%d Dateien"
#~ msgid "old"
#~ msgstr "alt"

msgid "none"
msgstr ""
''')
        self.assertEqual(list(messages.messages([path], "de")), [("Save", "Speichern"), ("Two lines\n", "Zwei Zeilen\n"),
                                                                 ("one file", "eine Datei"), ("%d files", "%d Dateien")])
        self.assertEqual(list(messages.messages([path], "fr")), [])

    def test_mo(self):
        strings = [(b"", b"Content-Type: text/plain; charset=UTF-8\n"), (b"menu\x04Save", "Speichern".encode()),
                   (b"file\0files", b"Datei\0Dateien")]
        table, data, at = b"", b"", 28 + 16 * len(strings)
        tables = []
        for column in (0, 1):
            table = b""
            for entry in strings:
                table += struct.pack("<II", len(entry[column]), at + len(data))
                data += entry[column] + b"\0"
            tables.append(table)
        head = struct.pack("<7I", 0x950412de, 0, len(strings), 28, 28 + 8 * len(strings), 0, 0)
        path = put(self.folder, "de/LC_MESSAGES/a.mo", head + tables[0] + tables[1] + data)
        self.assertEqual(list(messages.messages([path], "de")), [("Save", "Speichern"), ("file", "Datei"), ("files", "Dateien")])

    def test_charset(self):
        for head, wanted in ((b"charset=CHARSET", "utf-8"), (b"charset=ISO-8859-1", "iso8859-1"), (b"", "utf-8")):
            self.assertEqual(messages.charset_of(head), wanted)

    def test_fluent_and_properties(self):
        english = "# note\nsave = Save\n    .accesskey = S\nhello = Welcome to { -brand-short-name },\n    { $name }!\n" \
                  "many = { $n ->\n    [one] one\n   *[other] more\n }\n"
        german = "save = Speichern\n    .accesskey = p\nhello = Willkommen bei { -brand-short-name },\n    { $name }!\n"
        paths = [put(self.folder, "l10n-en-GB/a/b.ftl", english), put(self.folder, "l10n-de/a/b.ftl", german),
                 put(self.folder, "l10n-en-GB/c.properties", "key.one=One\\u0020file\nb.accesskey=x\n"),
                 put(self.folder, "l10n-de/c.properties", "key.one = Eine Datei\nb.accesskey=y\n")]
        self.assertEqual(sorted(messages.mozilla(paths, "de")), [("One file", "Eine Datei"), ("Save", "Speichern"),
                                                                 ("Welcome to Firefox, {$name}!", "Willkommen bei Firefox, {$name}!")])

    def test_json_yaml_inc_ts(self):
        paths = [put(self.folder, "i18n/en.json", '{"@metadata": {}, "a": "Log in"}'), put(self.folder, "i18n/de.json", '{"a": "Anmelden"}')]
        self.assertEqual(list(messages.wiki_json(paths, "de")), [("Log in", "Anmelden")])
        paths = [put(self.folder, "y/en.yml", "en:\n  date:\n    days: [Sunday, Monday]\n"),
                 put(self.folder, "y/de.yml", "de:\n  date:\n    days: [Sonntag, Montag]\n")]
        self.assertEqual(list(messages.rails(paths, "de")), [("Sunday", "Sonntag"), ("Monday", "Montag")])
        paths = [put(self.folder, "r/en_US/labels.inc", "$labels['inbox'] = 'Inbox';"),
                 put(self.folder, "r/de_DE/labels.inc", "$labels['inbox'] = 'Posteingang';")]
        self.assertEqual(list(messages.roundcube(paths, "de")), [("Inbox", "Posteingang")])
        ts = "<TS><context><message><source>Quit</source><translation>Beenden</translation></message>" \
             "<message><source>New</source><translation type='unfinished'>x</translation></message></context></TS>"
        self.assertEqual(list(messages.qt_ts([put(self.folder, "app_de.ts", ts)], "de")), [("Quit", "Beenden")])


class Documents(Folder):
    def test_manual_pages(self):
        english = ".TH LS 1\n.SH NAME\nls \\- list directory contents\n.SH OPTIONS\n.TP\n.B \\-a\nDo not ignore entries.\n.PP\n" \
                  "See <a.h> in\n.BR cp (1).\n.nf\ncode\n.fi\n"
        german = ".TH LS 1\n.SH BEZEICHNUNG\nls \\- listet auf\n.SH OPTIONEN\n.TP\n.B \\-a\nKeine Einträge ignorieren.\n.PP\nSiehe <a.h> in\n" \
                 ".BR cp (1).\n.nf\nKode\n.fi\n.SH ÜBERSETZUNG\nDiese Seite wurde übersetzt.\n"
        paths = [put(self.folder, "man/man1/ls.1.gz", gzip.compress(english.encode())),
                 put(self.folder, "man/de/man1/ls.1.gz", gzip.compress(german.encode()))]
        self.assertEqual(list(documents.man_pages(paths, "de")),
                         [("NAME", "BEZEICHNUNG"), ("ls - list directory contents", "ls - listet auf"), ("OPTIONS", "OPTIONEN"),
                          ("-a", "-a"), ("Do not ignore entries.", "Keine Einträge ignorieren."), ("See <a.h> in cp(1).", "Siehe <a.h> in cp(1).")])

    def test_html_and_docbook(self):
        paths = [put(self.folder, "d/ch01.en.html", "<html><body><h1>One</h1><p>A <b>bold</b> word.</p><pre>x</pre></body></html>"),
                 put(self.folder, "d/ch01.de.html", "<html><body><h1>Eins</h1><p>Ein <b>fettes</b> Wort.</p><pre>y</pre></body></html>")]
        self.assertEqual(list(documents.html_pages(paths, "de")), [("One", "Eins"), ("A bold word.", "Ein fettes Wort.")])
        english = "<!DOCTYPE book [ <!ENTITY a 'b'> ]><book><title>The &kate; Handbook</title><para>Text &amp; more.</para>" \
                  "<para><menuchoice><guimenu>File</guimenu><guimenuitem>Save</guimenuitem></menuchoice></para></book>"
        paths = [put(self.folder, "doc/kate/index.docbook", english),
                 put(self.folder, "po/de/docs/kate/index.docbook", english.replace("The &kate; Handbook", "Handbuch zu &kate;")
                     .replace("Text &amp; more", "Text &amp; mehr").replace("File", "Datei").replace("Save", "Sichern"))]
        self.assertEqual(list(documents.docbook(paths, "de")),
                         [("The Kate Handbook", "Handbuch zu Kate"), ("Text & more.", "Text & mehr."), ("File → Save", "Datei → Sichern")])

    def test_descriptions(self):
        english = "Package: a\nDescription-md5: 11\nDescription-en: small editor\n This is an editor.\n .\n It has:\n  * colours\n"
        german = "Package: a\nDescription-md5: 11\nDescription-de: kleiner Editor\n Dies ist ein Editor.\n .\n Er hat:\n  * Farben\n"
        self.assertEqual(list(documents.descriptions({"en": english, "de": german}, "de")),
                         [("small editor", "kleiner Editor"), ("This is an editor.", "Dies ist ein Editor."), ("It has:", "Er hat:"),
                          ("colours", "Farben")])

    def test_blocks_of_other_kinds_are_aligned_by_length(self):
        a = [("h", "Start"), ("p", "A first paragraph about 12 apples."), ("i", "Short"), ("p", "The end of the text is here.")]
        b = [("h", "Beginn"), ("p", "Ein erster Absatz über 12 Äpfel."), ("p", "Das Ende des Textes ist hier.")]
        found = list(documents.pair_blocks(a, b))
        self.assertIn(("A first paragraph about 12 apples.", "Ein erster Absatz über 12 Äpfel."), found)
        self.assertIn(("The end of the text is here.", "Das Ende des Textes ist hier."), found)
        self.assertNotIn("Short", [x for x, _ in found])


class Words(Folder):
    def test_ding(self):
        line = "Haus {n}; Gebäude {n} [arch.] | Häuser {pl}; Gebäude {pl} | etw. bauen | Das Haus brennt. :: " \
               "house; building | houses; buildings | to build sth. | The house is on fire."
        path = put(self.folder, "trans/de-en", "# head\n" + line + "\n")
        self.assertEqual(list(words.ding_words([path], "de")), [("house", "Haus"), ("building", "Gebäude"), ("houses", "Häuser"),
                                                                ("buildings", "Gebäude")])
        self.assertEqual(list(words.ding_sentences([path], "de")), [("The house is on fire.", "Das Haus brennt.")])

    def test_freedict_and_cldr(self):
        tei = '<TEI xmlns="http://www.tei-c.org/ns/1.0"><entry><form><orth>maison</orth></form><sense><cit type="trans"><quote>house' \
              '</quote></cit><cit type="trans"><quote>home</quote></cit></sense></entry></TEI>'
        self.assertEqual(list(words.freedict([put(self.folder, "x/fra-eng.tei", tei)], "fr")), [("house", "maison")])
        names = "<ldml><localeDisplayNames><territories><territory type='AT'>{}</territory></territories></localeDisplayNames></ldml>"
        paths = [put(self.folder, "main/en.xml", names.format("Austria")), put(self.folder, "main/de.xml", names.format("Österreich"))]
        self.assertEqual(list(words.cldr(paths, "de")), [("Austria", "Österreich")])


class Text(unittest.TestCase):
    def test_markup(self):
        for kind, before, after in (("tags", "Press <b>&lt;Enter&gt;</b>", "Press <Enter>"), ("tags", "~File", "File"),
                                    ("gtk", "_Save As…", "Save As…"), ("kde", "Cut && &Paste", "Cut & Paste"),
                                    ("pod", "B<ls> lists E<lt>dirE<gt>, see I<cp>(1)", "ls lists <dir>, see cp(1)"), ("pod", "\\(xx", None),
                                    ("wiki", "See [[Help:Contents|the '''help''']]", "See the help"), ("wiki", "{{PLURAL:$1|a|b}}", None),
                                    ("tags", "%PRODUCTNAME help", "LibreOffice help"), ("tags", "my_file_name", "my_file_name"),
                                    ("tags", "the &d-i; and more", "the &d-i; and more"), ("tags", "Legend~ up", "Legend up"),
                                    ("places", "Port_Moresby", "Port Moresby")):
            self.assertEqual(text.MARKUP[kind](before), after, before)
        self.assertIn("\1", text.tags("see <xref linkend='a'/>."))
        self.assertEqual(text.rst("use ``ls`` and :ref:`the list <x>`"), "use ls and the list")

    def test_keys_and_placeholders(self):
        self.assertEqual(text.key("Hello,  World!"), text.key("hello world"))
        self.assertNotEqual(text.key("hello"), text.key("hallo"))
        self.assertEqual(text.placeholders("%d of %s in {name} and %1$s"), sorted(["%d", "%s", "{name}", "%1$s"]))
        self.assertEqual(text.placeholders("$1 and $name, not $1,299.99"), ["$1", "$name"])
        self.assertEqual(text.word_share("foo --bar /etc/x a_b"), 0.25)
        self.assertEqual(text.word_share("plain words, nothing else."), 1.0)


class Alignment(unittest.TestCase):
    def test_beads(self):
        a = ["This sentence has 3 numbers.", "Short.", "A much longer sentence that goes on for quite a while here."]
        b = ["Dieser Satz hat 3 Zahlen. Kurz.", "Ein viel längerer Satz, der hier eine ganze Weile weitergeht."]
        self.assertEqual(lengths.sentence_pairs(a, b), [(a[0] + " " + a[1], b[0]), (a[2], b[1])])
        self.assertEqual(lengths.sentence_pairs(a, b + ["x"] * 4), None)
        self.assertEqual(lengths.align([], ["x"]), [(0, 0, 0, 1)])


class Filters(unittest.TestCase):
    def setUp(self):
        self.filter = filters.Filter("de", lambda line, among: "en" if "the" in line.split() else "de", "en,de")

    def test_reasons(self):
        for a, b, why in (("Save the file.", "Speichern Sie die Datei.", None), ("Save", "Save", "the same in both"), ("%s files", "Dateien", "placeholders"),
                          ("It has 3 wheels.", "Es hat vier Räder.", "numbers"), ("42", "42", "no words"), ("a <b>x</b> word", "ein <b>x</b> Wort", "markup or code"),
                          ("A short one.", "Ein sehr, sehr langer Satz, der unmöglich die Übersetzung sein kann.", "length"),
                          ("Open the door now.", "Открой дверь сейчас.", "characters"), ("ls -l /etc/a_b", "ls -l /etc/b_c", "mostly code"),
                          ("Do you want to open the file?", "Sie wollen die Datei nun öffnen.", "final mark"),
                          ("Please open the old file now.", "Please open die the file now.", "partly untranslated")):
            self.assertEqual(self.filter.reason(a, b), why, a)

    def test_clean(self):
        self.assertEqual(filters.clean("* a  b\u200b"), "a b")


class Everyday(unittest.TestCase):
    def test_kinds(self):
        for a, b, packages, wanted in (("Save", "Speichern", 9, ("interface", 4)), ("Save", "Speichern", 1, None),
                                       ("Good morning!", "Guten Morgen!", 0, ("greeting", 3)), ("It costs $1,250.", "Es kostet 1.250 Dollar.", 0, ("price", 2)), ("$1 moved it", "$1 schob es", 0, None),
                                       ("NO SMOKING", "RAUCHEN VERBOTEN", 0, ("capitals", 2)), ("Mr Müller is here.", "Herr Müller ist da.", 0, ("name", 2)),
                                       ("Are you sure?", "Sind Sie sicher?", 0, ("question", 2)), ("On 3 May 1999", "Am 3. Mai 1999", 0, ("date", 2)),
                                       ("Since Linux 2.6.39", "Seit Linux 2.6.39", 0, None), ("until 3.10.1990", "bis 3.10.1990", 0, ("date", 2))):
            self.assertEqual(everyday.kind(a, b, packages, True, False), wanted, a)


class Fetch(Folder):
    def test_uris_and_licences(self):
        sha = "0" * 64
        self.assertEqual(fetch.parse_uris(f"Need\n'http://x/a.dsc' a.dsc 12 SHA256:{sha}\n"), [("http://x/a.dsc", "a.dsc", 12, sha)])
        self.assertEqual(fetch.licence_of("Format: x\n\nFiles: *\nCopyright: y\nLicense: GPL-2+\n"), "GPL-2+")
        self.assertEqual(fetch.licence_of("It is under the GNU General Public License."), "GPL (named in it)")
        self.assertEqual(fetch.licence_of(""), "not stated")

    def test_only_wanted_members_are_unpacked(self):
        path = os.path.join(self.folder, "a.tar.xz")
        with tarfile.open(path, "w:xz") as tar:
            for name in ("a/po/de.po", "a/main.c", "a/debian/copyright", "../../evil.po"):
                member = tarfile.TarInfo(name)
                member.size = 1
                tar.addfile(member, io.BytesIO(b"x"))
        target = os.path.join(self.folder, "out")
        self.assertEqual(fetch.unpack([path], target, lambda name: name.endswith(".po")), 2)
        found = sorted(os.path.relpath(p, target) for p in pipeline.files_below(target))
        self.assertEqual(found, ["files/0/a/po/de.po", "files/0/evil.po"])
        self.assertTrue(os.path.exists(os.path.join(target, "COPYRIGHT")))

    def test_catalogues(self):
        count = catalogues.holders(["usr/share/locale/de/LC_MESSAGES/kate.mo   kde/kate-data\n", "usr/bin/x   a/b\n"])
        packages = catalogues.read_packages("Package: kate-data\nSize: 1000\nMaintainer: Debian Qt/KDE\nSource: kate (1)\n\nPackage: b\nSize: 1\n")
        self.assertEqual(catalogues.choose(packages, count, set()), {"kde": ["kate-data"]})
        self.assertEqual(catalogues.choose(packages, count, {"kate"}), {})

    def test_table(self):
        self.assertEqual(len({s.name for s in sources.SOURCES}), len(sources.SOURCES))
        for source in sources.SOURCES:
            self.assertTrue(source.package_list())
            self.assertIn(source.reader, pipeline.READERS)
            self.assertIn(source.markup, text.MARKUP)
        with self.assertRaises(ValueError):
            sources.by_name(["nothing"])


class NoEngine:
    """Splits after a full stop; every line is in its own language."""
    def sentences(self, line, language):
        return [x.strip() + "." for x in line.rstrip(".").split(". ")]

    def detect(self, line, among):
        return None


class Whole(Folder):
    def read(self, name):
        with lzma.open(os.path.join(self.folder, "out", "en-de", name), "rt") as f:
            return f.read().split("\n")[:-1]

    def test_from_messages_to_files(self):
        package = os.path.join(self.folder, "unpacked", "web", "one")
        pairs = [("Save the file. Then close the window of the program and go home.", "Speichern Sie die Datei. Schließen Sie dann das Fenster und gehen Sie."),
                 ("A line of a test set", "Eine ganz andere Zeile"), ("Known already", "Schon bekannt"), ("Good morning", "Guten Morgen")]
        po = "".join(f'msgid "{a}"\nmsgstr "{b}"\n\n' for a, b in pairs)
        put(package, "files/0/de.po", po)
        put(package, "done.json", '{"package": "one", "version": "1", "licence": "MIT", "files": 1}')
        work = pipeline.Work(self.folder, NoEngine(), None, {})
        chosen = sources.by_name(["web"])
        pipeline.run(chosen[0], "de", work, ["extract", "align", "filter"])
        tests = put(self.folder, "sets/a.en", "a line of a TEST set!\n")
        archive = os.path.join(self.folder, "tests.tar.xz")
        with tarfile.open(archive, "w:xz") as tar:
            tar.add(tests, "test/en-de/a.en")
        for lang, line in (("en", "Known, already."), ("de", "schon bekannt")):
            put(self.folder, f"data/en-de/old.{lang}.xz", lzma.compress((line + "\n").encode()))
        out = os.path.join(self.folder, "out")
        rows = output.write_pair(chosen, "de", work, out, output.test_keys(archive), output.known_keys(self.folder + "/data", "de"))
        output.write_manifest(out, rows)
        self.assertEqual(self.read("web.en.xz"), ["Save the file.", "Then close the window of the program and go home."])
        self.assertEqual(self.read("web.de.xz"), ["Speichern Sie die Datei.", "Schließen Sie dann das Fenster und gehen Sie."])
        self.assertEqual((self.read("everyday.de.xz"), self.read("everyday.weight.xz")), (["Guten Morgen"], ["3"]))
        self.assertEqual([(r["source"], r["raw"], r["kept"], r["licence"]) for r in rows],
                         [("web", 4, 2, "MIT"), ("everyday", 1, 1, "as their sources")])
        self.assertIn("in a test set 1", rows[0]["left out"])
        self.assertIn("known 1", rows[0]["left out"])


if __name__ == "__main__":
    unittest.main()
