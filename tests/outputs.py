# SPDX-License-Identifier: MIT
"""Translations of two devices side by side: words have to be the same, numbers may be apart."""
import re

NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+|inf)(?![\w.])")


def compare(a, b, distance):
    """(lines, lines with other words, lines with the same words and a number that is further apart, largest distance of those)."""
    lines = [text.split("\n")[:-1] for text in (a, b)]
    differ, apart, largest = abs(len(lines[0]) - len(lines[1])), 0, 0.0
    for x, y in zip(*lines):
        words = NUMBER.sub("#", x) != NUMBER.sub("#", y)
        worst = 0.0 if words else max((abs(float(p) - float(q)) for p, q in zip(NUMBER.findall(x), NUMBER.findall(y)) if p != q),
                                      default=0.0)
        differ, apart, largest = differ + words, apart + (worst > distance), max(largest, worst)
    return len(lines[0]), differ, apart, largest
