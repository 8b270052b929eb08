# SPDX-License-Identifier: MIT
"""English-German pairs of prices, percentages, dates and times from templates.

    python3 -m dragoman_training templates --out WORK/figures --count 6000        # figures.en figures.de

The parallel text has few of them, and their signs differ: $4.50 becomes 4,50 Dollar, 3:30 p.m. 15:30 Uhr. Packed with their
real targets (no distillation) and one pass each, they are 0.2 % of what en-de-student sees.
"""
import random

from .corpus import write_lines

MONTHS = tuple(zip("January February March April May June July August September October November December".split(),
                   "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split()))
# {m} {n} money, {p} percentage, {y} year, {d} date, {t} {u} times; {amount} {currency} the two halves of {m}
PAIRS = (
    ("It costs {m}.", "Es kostet {m}."),
    ("The price is {m}.", "Der Preis beträgt {m}."),
    ("That will be {m}, please.", "Das macht {m}, bitte."),
    ("The ticket costs {m}.", "Die Fahrkarte kostet {m}."),
    ("I paid {m} for this book.", "Ich habe {m} für dieses Buch bezahlt."),
    ("The price rose from {m} to {n}.", "Der Preis stieg von {m} auf {n}."),
    ("The price fell from {m} to {n} in {y}.", "Der Preis fiel {y} von {m} auf {n}."),
    ("The price rose from {m} to {n} in {y}, an increase of {p}.",
     "Der Preis stieg {y} von {m} auf {n}, ein Anstieg um {p}."),
    ("Sales rose by {p} in {y}.", "Der Umsatz stieg {y} um {p}."),
    ("Unemployment fell to {p}.", "Die Arbeitslosigkeit sank auf {p}."),
    ("About {p} of the voters agreed.", "Etwa {p} der Wähler stimmten zu."),
    ("A coffee costs {m} and a tea costs {n}.", "Ein Kaffee kostet {m} und ein Tee kostet {n}."),
    ("The company earned {m} million in {y}.", "Das Unternehmen verdiente {y} {amount} Millionen {currency}."),
    ("He was born on {d}.", "Er wurde am {d} geboren."),
    ("She was born on {d} in Berlin.", "Sie wurde am {d} in Berlin geboren."),
    ("The meeting is on {d}.", "Die Sitzung findet am {d} statt."),
    ("The museum opened on {d}.", "Das Museum wurde am {d} eröffnet."),
    ("The train leaves at {t}.", "Der Zug fährt um {t} ab."),
    ("The shop opens at {t} and closes at {u}.", "Das Geschäft öffnet um {t} und schließt um {u}."),
    ("We will meet at {t}.", "Wir treffen uns um {t}."),
    ("Only {m}!", "Nur {m}!"),
    ("Total: {m}", "Gesamt: {m}"),
    ("Price: {m}", "Preis: {m}"),
    ("From {m} per night", "Ab {m} pro Nacht"),
    ("The hotel charges {m} per night.", "Das Hotel verlangt {m} pro Nacht."),
    ("Can you lend me {m}?", "Kannst du mir {m} leihen?"),
    ("He owes me {m}.", "Er schuldet mir {m}."),
    ("The rent is {m} a month.", "Die Miete beträgt {m} im Monat."),
)


def german_number(text):
    return text.translate(str.maketrans(",.", ".,"))


def money(rng):
    kind = rng.random()
    if kind < 0.5:
        value = f"{rng.randint(0, 99)}.{rng.randint(0, 99):02}"
    elif kind < 0.75:
        value = str(rng.randint(1, 999))
    else:
        value = f"{rng.randint(1, 999)},{rng.randint(0, 999):03}"
        value += "" if kind < 0.9 else f".{rng.randint(0, 99):02}"
    form, plural = rng.random(), "" if value == "1" else "s"
    for share, english, german in ((0.45, f"${value}", "Dollar"), (0.65, f"€{value}", "Euro"),
                                   (0.75, f"{value} euro{plural}", "Euro"), (0.85, f"{value} dollar{plural}", "Dollar")):
        if form < share:
            return english, f"{german_number(value)} {german}"
    return f"£{value}", f"{german_number(value)} Pfund"


def percentage(rng):
    value = f"{rng.randint(0, 99)}.{rng.randint(0, 9)}" if rng.random() < 0.6 else str(rng.randint(1, 100))
    english = rng.choice(("%", " %", " percent"))
    return value + english, german_number(value) + (" Prozent" if "percent" in english else " %")


def date(rng):
    (english, german), day, year = rng.choice(MONTHS), rng.randint(1, 28), rng.randint(1900, 2030)
    return (f"{day} {english} {year}" if rng.random() < 0.5 else f"{english} {day}, {year}"), f"{day}. {german} {year}"


def time(rng):
    hour, minute, half = rng.randint(1, 12), rng.choice((0, 5, 10, 15, 20, 30, 45, 50)), rng.choice(("a.m.", "p.m."))
    return f"{hour}:{minute:02} {half}", f"{hour % 12 + (12 if half == 'p.m.' else 0)}:{minute:02} Uhr"


def pair(rng):
    """One pair, or None where a template does not suit its figures."""
    english, german = rng.choice(PAIRS)
    year = str(rng.randint(1950, 2026))
    values = {"m": money(rng), "n": money(rng), "p": percentage(rng), "d": date(rng), "t": time(rng), "u": time(rng),
              "y": (year, year)}
    if "{amount}" in german and (values["m"][0][0] not in "$€£" or "," in values["m"][0]):
        return None
    amount, currency = values["m"][1].rsplit(" ", 1)
    return (english.format(**{k: v[0] for k, v in values.items()}).replace(".m..", ".m."),
            german.format(**{k: v[1] for k, v in values.items()}, amount=amount, currency=currency))


def write(prefix, count, seed=3):
    rng, found = random.Random(seed), {}
    while len(found) < count:
        made = pair(rng)
        if made:
            found[made] = None
    for side, language in enumerate(("en", "de")):
        write_lines(f"{prefix}.{language}", (x[side] for x in found))
