# SPDX-License-Identifier: MIT
"""Which pairs are kept. `Filter.reason(english, other)` names the first rule that a pair breaks, or None."""
import re
from collections import Counter

from . import text as texts

LIMIT_WORDS, LIMIT_CHARACTERS = 90, 650
NUMBER = re.compile(r"\d+(?:[.,’'\u00a0\u202f ]\d{3})*")
STRANGE = re.compile(r"[\ufffd\u0400-\u04ff\u0600-\u06ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af\u0370-\u03ff\x00-\x08\x0b-\x1f\ue000-\uf8ff]")
REST = re.compile(r"</|<\?|<[A-Za-z]+>|\{\{|\}\}|\[\[|\\[a-zA-Z(\[]|&[A-Za-z][\w.-]*;|\|\||::|=>|->|;;|==|\bnull\b|\.\.\.\.|____|----|\*\*\*|%%|`_|\\")
ENGLISH = {"the", "and", "of", "is", "are", "this", "that", "with", "you", "for", "to", "not", "be", "will", "can", "your", "from", "which"}
TARGET = {"de": {"der", "die", "das", "und", "ist", "nicht", "ein", "eine", "mit", "für", "auf", "wird", "den", "von", "zu", "sie"},
          "fr": {"le", "la", "les", "des", "et", "est", "une", "un", "pour", "dans", "que", "vous", "du", "ne", "pas", "sur"},
          "es": {"el", "la", "los", "las", "de", "que", "y", "es", "una", "un", "para", "por", "con", "del", "no", "se"},
          "it": {"il", "la", "di", "che", "e", "un", "una", "per", "non", "con", "del", "della", "è", "si", "i", "le"}}
FINAL = ".!?:…"


def numbers(text):
    return Counter(re.sub(r"\D", "", m).lstrip("0") for m in NUMBER.findall(text))


def in_proportion(a, b):
    """Lengths that translations have: a factor, and more room for short ones."""
    short, long = sorted((len(a), len(b)))
    return long <= short * 1.7 + 14 if short > 12 else long <= short * 2.2 + 16


class Filter:
    def __init__(self, lang, detect, among, names=False):
        self.lang, self.detect, self.among, self.names = lang, detect, among, names

    def reason(self, a, b):
        for rule in (self.shape, self.marks, self.content, self.language):
            found = rule(a, b)
            if found:
                return found
        return None

    def shape(self, a, b):
        if not a or not b:
            return "empty"
        wa, wb = a.split(), b.split()
        if max(len(wa), len(wb)) > LIMIT_WORDS or max(len(a), len(b)) > LIMIT_CHARACTERS or max(map(len, wa + wb)) > 60:
            return "too long"
        if not texts.WORD.search(a) or not texts.WORD.search(b) or max(map(len, texts.WORD.findall(a))) < 2:
            return "no words"
        if not in_proportion(a, b):
            return "length"
        return None

    def marks(self, a, b):
        if STRANGE.search(a) or STRANGE.search(b):
            return "characters"
        if REST.search(a) or REST.search(b):
            return "markup or code"
        pa, pb = texts.placeholders(a), texts.placeholders(b)
        if pa != pb or len(pa) > 3 or len(pa) * 3 > len(a.split()) + 1:
            return "placeholders"
        if numbers(a) != numbers(b):
            return "numbers"
        for mark in "()":
            if abs(a.count(mark) - b.count(mark)) > 1:
                return "brackets"
        if (a[-1] in "?!:") != (b[-1] in "?!:") and len(a) > 12 and a[-1] + b[-1] not in (".!", "!."):
            return "final mark"
        return None

    def content(self, a, b):
        if texts.key(a) == texts.key(b):
            return None if self.names else "the same in both"
        few = len(a.split()) <= 2
        if texts.word_share(a) < (0.5 if few else 0.6) or texts.word_share(b) < (0.5 if few else 0.55):
            return "mostly code"
        wa, wb = a.lower().split(), b.lower().split()
        if len(wa) >= 4:
            common = sum((Counter(wa) & Counter(wb)).values())
            if common > 0.55 * min(len(wa), len(wb)):
                return "partly untranslated"
        return None

    def language(self, a, b):
        """Function words decide where there are some; else, for longer lines, the detector."""
        wa, wb = set(re.findall(r"[^\W\d_]+", a.lower())), set(re.findall(r"[^\W\d_]+", b.lower()))
        english, own = len(wb & ENGLISH), len(wb & TARGET[self.lang])
        if english > own and len(wb) > 3:
            return "language"
        if own >= 2 + english and len(wa & ENGLISH) >= 2 + len(wa & TARGET[self.lang]):
            return None
        if len(b.split()) >= 5 and len(b) >= 28 and self.detect(b, self.among) not in (self.lang, None):
            return "language"
        if len(a.split()) >= 5 and len(a) >= 28 and self.detect(a, self.among) not in ("en", None):
            return "language"
        return None


def clean(line):
    """Small repairs of one side: bullets and numbering in front, ends of lines in the middle, doubled blanks."""
    line = re.sub(r"^(?:[*•·–—-]|\(?\d{1,2}[.)])\s+(?=\S)", "", line)
    line = re.sub(r"^[\"'“”„«»]\s*$", "", line)
    line = line.replace("\u00ad", "").replace("\u200b", "").replace("\u2028", " ").replace("\ufeff", "")
    return " ".join(line.split())
