# SPDX-License-Identifier: MIT
"""Short lines that users type or read first, and how often a pass should see them.

Nothing is written here: lines are chosen among those that were mined, by what they look like and by how many packages have
the same translation.
"""
import re

GREETING = re.compile(r"(hello|hi|hey|welcome|good (morning|evening|night|day|afternoon|luck)|thank you|thanks|sorry|goodbye|"
                      r"bye|(?:yes|no)(?=[,.!]|$)|cheers|congratulations|happy|how are you|how much|see you|excuse me|never mind|well done|"
                      r"have a (nice|good)|enjoy|bon appetit|get well|don't worry|my name is|what is your|where is|i am|i'm|help!)(?!\w)", re.I)
PRICE = re.compile(r"[€£]\s?\d|\$\s?\d+[\d.,]\d|\d\s?(?:€|EUR|USD|euros?|dollars?|cents?|pounds?)\b", re.I)
DATE = re.compile(r"(?<![\d.])\d{1,2}[./]\d{1,2}[./](?:19|20)\d\d(?![\d.])|\b(?:January|February|March|April|May|June|July|August|September|October|November|"
                  r"December) \d{1,2}\b|\b\d{1,2}(?:st|nd|rd|th)? (?:January|February|March|April|May|June|July|August|September|"
                  r"October|November|December)\b|\b\d{1,2}:\d\d\b|\b\d{1,2} ?[ap]\.?m\b", re.I)
ACCENT = re.compile(r"[äöüßÄÖÜéèêçñóíáâîôûàòùì]")
QUESTION = re.compile(r"^(?:who|what|where|when|why|how|do|does|did|are|is|can|could|would|will|have|has|may|shall)\b.*\?$", re.I)
NUMBER = re.compile(r"\d")


def shared_name(a, b):
    """A word with an accent that stands in both lines."""
    return bool(set(re.findall(r"\b\w*[äöüßÄÖÜéèçñ]\w*\b", a)) & set(re.findall(r"\b\w+\b", b)))


def kind(a, b, packages, interface, names):
    """(kind, weight) of a pair, or None. packages: how many have this pair; interface: its source is one of user interfaces."""
    words = len(a.split())
    if interface and words <= 4 and packages >= 3:
        return "interface", min(5, 1 + packages // 3)
    if words >= 2 and a.isupper() and b.isupper() and re.match(r"\w{2}", a) and len(a) >= 6:
        return "capitals", 2
    if words <= 7 and GREETING.match(a):
        return "greeting", 3
    if words <= 20 and PRICE.search(a) and PRICE.search(b):
        return "price", 2
    if words <= 20 and DATE.search(a) and NUMBER.search(b):
        return "date", 2
    if words <= 20 and shared_name(a, b) and a != b:
        return "name", 2
    if names and words <= 3 and ACCENT.search(b):
        return "name", 2
    if words <= 8 and QUESTION.match(a) and b.endswith("?"):
        return "question", 2
    return None
