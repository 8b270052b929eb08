# SPDX-License-Identifier: MIT
"""Faults of translations that BLEU does not show: loops and the wrong language.

    python3 -m dragoman_training quality --language de OUTPUT:REFERENCE...

Loops: the share of lines in which a 4-gram of words occurs three times or more. Language: the share of lines in the
target language, by the langid package (not needed for anything else) restricted to two languages, over the lines whose
reference has five words or more; the reference's own share is printed beside it, because langid is wrong now and then.
RESULTS.md quotes both.
"""
from .corpus import read_lines
from .mix import loops


def repetition(lines):
    """Share of lines with a 4-gram of words that occurs three times."""
    return sum(map(loops, lines)) / max(1, len(lines))


def classifier(languages):
    import langid
    langid.set_languages(list(languages))
    return lambda text: langid.classify(text)[0]


def share(lines, references, language, classify, words=5):
    """(share of the lines in the language, of the references, lines counted)."""
    counted = [(line, ref) for line, ref in zip(lines, references) if len(ref.split()) >= words]
    found = [sum(classify(text) == language for text in side) for side in zip(*counted)] or [0, 0]
    return (*(n / max(1, len(counted)) for n in found), len(counted))


def report(pairs, language, other):
    classify = classifier((language, other))
    for pair in pairs:
        output, reference = pair.split(":")
        lines, references = read_lines(output), read_lines(reference)
        if len(lines) != len(references):
            raise ValueError(f"{output}: {len(lines)} lines, {reference}: {len(references)}")
        ours, theirs, count = share(lines, references, language, classify)
        print(f"{output}: {100 * repetition(lines):.2f} % loop; in {language}: {100 * ours:.2f} % of {count} lines, "
              f"references {100 * theirs:.2f} %", flush=True)
