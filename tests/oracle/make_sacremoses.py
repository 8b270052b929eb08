#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What sacremoses makes of real lines: tokens, tokens after its punctuation normaliser, and text again.

    pip install sacremoses
    python3 tests/oracle/make_sacremoses.py > tests/data/text/sacremoses.json
    python3 tests/oracle/make_sacremoses.py --check DRAGOMAN LANGUAGE FILE    compares the program on every line of a file

Rows of the JSON: language, options (as in src/text/sacremoses.h), line, result; options -1: from tokens to text.
"""
import json
import subprocess
import sys
from pathlib import Path

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

DATA = Path(__file__).resolve().parent.parent / "data" / "text"
AGGRESSIVE, ESCAPE, PUNCTUATION, UNICODE, UNDO = 1, 2, 4, 8, -1
FILES = [("en", "news.en", 40), ("de", "news.de", 40), ("fr", "flores.fr", 15), ("es", "flores.es", 15),
         ("it", "flores.it", 15), ("ja", "flores.ja", 10), ("zh", "flores.zh", 10)]
LINES = [
    "", " ", "Hello, world!", "the Jones' house, John's 1980's 'quoted' o'clock 'tis", "A,B,C,D,E 5,300 and 5, 6,",
    "well-known 3-year-old e-mail - a--b", "Wait... what?!.. no .", "www.example.com/a?b=c&d=<e> me@host.org #tag @name",
    "&amp; &lt;b&gt; [x] | \"q\" 'r'", "„Gut“, sagte er. «Oui» ‹non› “yes” ‘no’",
    "Am 3. Oktober, z.B. Nr. 5 bzw. No. 6 pp. 7",
    "5 % of 10 €, $5.50 (about 1,000 yen) .", "tab\there nbsp\u00a0there soft\u00adhyphen zero\u200bwidth",
    "l'eau d'Italie dell'arte Qu'est-ce",
    "漢字とかな 한국어 text", "e\u0301 a\u0308 x² ½ ªº", "I\u2019m “here”…", ".' '. '' ''' ,,, ,1 1, a,",
    "He said \"yes.\" Then \"no\", \"so\".",
    "U.S. e.g. i.e. Dr. Mr. J. R. R. Tolkien", "全角，标点。１２３！（括号）", "Wie geht's? O'Neill", "x_y_z a/b/c C++ C#", "¿Qué? ¡Sí!",
    "20 000 and 3 1/2 n\u00ba\u00a05 20\u00a0\u00baC 5\u00a0cm", "@-@ a @-@ @-@ b",
]
LANGUAGES = ("en", "de", "fr", "es", "it", "ru", "cs", "pl", "pt", "nl", "zh", "ko", "xx")


def tokens(language, options, line):
    if options & PUNCTUATION:
        wide = bool(options & UNICODE)
        line = MosesPunctNormalizer(language, pre_replace_unicode_punct=wide,
                                    post_remove_control_chars=wide).normalize(line)
    return " ".join(MosesTokenizer(language).tokenize(line, aggressive_dash_splits=bool(options & AGGRESSIVE),
                                                      escape=bool(options & ESCAPE)))


def rows():
    lines = [(lang, line) for lang, name, count in FILES
             for line in (DATA / name).read_text(encoding="utf-8").split("\n")[:count]]
    for lang, line in lines + [(lang, line) for lang in LANGUAGES for line in LINES]:
        real = line not in LINES
        every = (ESCAPE, 15) if real else (0, 15)
        for options in every:
            yield lang, options, line, tokens(lang, options, line)
        split = tokens(lang, ESCAPE | AGGRESSIVE, line) if real else line
        yield lang, UNDO, split, MosesDetokenizer(lang).detokenize(split.split())


def check(program, language, path):
    """Every line of a file both ways, and how many results differ."""
    lines = Path(path).read_text(encoding="utf-8").split("\n")[:-1]
    there = [tokens(language, AGGRESSIVE | ESCAPE, line) for line in lines]
    back = [MosesDetokenizer(language).detokenize(line.split()) for line in there]
    failed = False
    for what, given, wanted, more in (("tokens", lines, there, []), ("text", there, back, ["--undo"])):
        command = [program, "tokenize", language, "--sacremoses", "--aggressive", *more]
        got = subprocess.run(command, input="".join(x + "\n" for x in given), capture_output=True, text=True,
                             check=True).stdout.split("\n")[:-1]
        differ = sum(a != b for a, b in zip(got, wanted)) + abs(len(got) - len(wanted))
        print(f"{language} {what}: {len(lines)} lines, {differ} differ")
        failed |= differ > 0
    return failed


def main():
    if sys.argv[1:2] == ["--check"]:
        sys.exit(check(*sys.argv[2:5]))
    sys.stdout.write("[\n" + ",\n".join(json.dumps(r, ensure_ascii=False) for r in rows()) + "]\n")


if __name__ == "__main__":
    main()
