# SPDX-License-Identifier: MIT
"""Synthetic variants of training pairs, so that a small model survives what real users type.

Each function takes a pair and a random.Random and returns a new pair or None. variants() draws from them with the
shares of a recipe:
  upper      WHOLE SEGMENT IN CAPITALS on both sides
  lower      source in lower case, target as it was (a model should repair casing)
  title      Source Like A Headline, target as it was
  unpointed  final full stop missing on both sides
  typo       one or two letters of the source swapped, dropped or doubled; target as it was
  copy       a token that must come through unchanged (emoji, URL, mail address, number, foreign name) put at the same
             place (start, end, in brackets) on both sides
  bare       only such tokens
"""
import random
import string

EMOJI = ([chr(c) for c in range(0x1F600, 0x1F650)] + [chr(c) for c in range(0x1F300, 0x1F600)]
         + [chr(c) for c in range(0x1F680, 0x1F6C6)] + [chr(c) for c in range(0x1F900, 0x1F9E7)]
         + ["❤️", "☺️", "✌️", "☀️", "♥", "★", "✓", "✅", "❌", "⚠️", "☕", "⚽", "🇩🇪", "🇬🇧", "🇪🇺", "👍🏽", "👩‍💻", "👨‍👩‍👧"])
COMMON = list("😀😂🤣😊😍😘😭😅🙏👍🎉🔥❤💪😎🤔🙄😢👏🚀✨💯👀🌍")
TOP = ("com", "org", "net", "de", "eu", "io", "co.uk", "at", "ch", "gov", "edu", "info")
SYLLABLES = ("ka", "ri", "no", "ta", "mo", "sa", "ve", "lu", "be", "an", "el", "or", "in", "ski", "dor", "mar", "fen",
             "hu", "zi", "ba", "ron", "ge", "li", "wa", "yu", "po", "cha", "que", "dz", "rov", "ić", "ç", "ñe",
             "ø", "ła")
SCRIPTS = ((0x0410, 0x044F), (0x0391, 0x03A9), (0x03B1, 0x03C9), (0x05D0, 0x05EA), (0x0627, 0x063A), (0x0905, 0x0939),
           (0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0x0E01, 0x0E2E), (0x10D0, 0x10F0))


def word(rng, low=3, high=9):
    return "".join(rng.choice(string.ascii_lowercase) for _ in range(rng.randint(low, high)))


def name(rng):
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(2, 4))).capitalize()


def emoji(rng):
    return "".join(rng.choice(COMMON if rng.random() < 0.5 else EMOJI) for _ in range(rng.choice((1, 1, 1, 2, 3))))


def url(rng):
    host = rng.choice(("", "www.")) + rng.choice((word(rng), name(rng).lower(), "example")) + "." + rng.choice(TOP)
    path = "".join("/" + rng.choice((word(rng), str(rng.randint(1, 9999)), word(rng) + "-" + word(rng)))
                   for _ in range(rng.randint(0, 3)))
    tail = rng.choice(("", "", f"?{word(rng, 1, 4)}={rng.randint(0, 999)}", "#" + word(rng), ".html"))
    return rng.choice(("https://", "https://", "http://", "")) + host + path + (tail if path or "#" in tail else "")


def mail(rng):
    return f"{word(rng)}{rng.choice(('', '.' + word(rng), str(rng.randint(1, 99))))}@{word(rng)}.{rng.choice(TOP)}"


def number(rng):
    return rng.choice((str(rng.randint(0, 9)), str(rng.randint(10, 99)), str(rng.randint(100, 9999)),
                       str(rng.randint(10 ** 4, 10 ** 9)),
                       f"{rng.randint(1, 20)}.{rng.randint(0, 20)}.{rng.randint(0, 9)}",
                       f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}", f"+{rng.randint(10 ** 6, 10 ** 12)}"))


def foreign(rng):
    low, high = rng.choice(SCRIPTS)
    return "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 6)))


def handle(rng):
    return rng.choice("@#") + rng.choice((word(rng), name(rng), name(rng) + name(rng)))


def code(rng):
    return rng.choice((f"{word(rng)}_{word(rng)}", f"{name(rng)}{name(rng)}()", f"--{word(rng)}",
                       f"/{word(rng)}/{word(rng)}",
                       f"<{word(rng)}>", f"{word(rng, 2, 3).upper()}-{rng.randint(1, 9999)}", f"${word(rng).upper()}",
                       f"{word(rng)}.{rng.choice(('py', 'txt', 'json', 'pdf', 'exe'))}"))


def token(rng):
    kinds = (emoji, emoji, emoji, url, url, mail, number, foreign, foreign, handle, code, name, name)
    return rng.choice(kinds)(rng)


def upper(source, target, rng):
    return source.upper(), target.replace("ß", "ẞ" if rng.random() < 0.1 else "SS").upper()


def lower(source, target, rng):
    return source.lower(), target


def title(source, target, rng):
    words = source.split()
    return (" ".join(w[:1].upper() + w[1:] for w in words), target) if len(words) > 2 else None


def unpointed(source, target, rng):
    if source.endswith(".") and target.endswith(".") and not source.endswith(".."):
        return source[:-1], target[:-1]
    return None


def typo(source, target, rng):
    letters = list(source)
    for _ in range(rng.choice((1, 1, 2))):
        if len(letters) < 12:
            return None
        i = rng.randrange(1, len(letters) - 1)
        if not (letters[i].isalpha() and letters[i + 1].isalpha()):
            continue
        kind = rng.random()
        if kind < 0.4:
            letters[i], letters[i + 1] = letters[i + 1], letters[i]
        elif kind < 0.75:
            del letters[i]
        else:
            letters.insert(i, letters[i])
    return "".join(letters), target


def copy(source, target, rng):
    item = token(rng)
    place = rng.random()
    if place < 0.35:
        return f"{source} {item}", f"{target} {item}"
    if place < 0.55:
        return f"{item} {source}", f"{item} {target}"
    if place < 0.7:
        return f"{item}: {source}", f"{item}: {target}"
    if place < 0.85 and source[-1] in ".!?" and target[-1] == source[-1]:
        return f"{source[:-1]} ({item}){source[-1]}", f"{target[:-1]} ({item}){target[-1]}"
    return f"{source} – {item}", f"{target} – {item}"


def bare(source, target, rng):
    line = " ".join(token(rng) for _ in range(rng.choice((1, 1, 2, 3))))
    return line, line


KINDS = {f.__name__: f for f in (upper, lower, title, unpointed, typo, copy, bare)}
DEFAULT = {"upper": 0.015, "lower": 0.02, "title": 0.015, "unpointed": 0.03, "typo": 0.02, "copy": 0.035, "bare": 0.004}


def variants(source, target, rng, shares=None):
    """Zero or one new pair, each kind with its share of probability."""
    draw = rng.random()
    for kind, share in (DEFAULT if shares is None else shares).items():
        if draw < share:
            made = KINDS[kind](source, target, rng)
            return [made] if made and made[0] and made[1] else []
        draw -= share
    return []


def generator(seed, index):
    """A generator of its own for every line, so that results do not depend on how lines are spread over processes."""
    return random.Random(seed * 1_000_003 + index)
