#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""training/language_points.py DATA OUT.h: learns what tells English, German, French, Spanish and Italian apart.

DATA is a folder with PAIR/SOURCE.LANG.xz, a segment a line. Logistic regression over hashed features of short stretches of
lines: n-grams of one to five letters of every word with its limits, whole words, capitals inside (src/text/detect.c computes the same
features). The weights become OUT.h, src/text/language_points_private.h, as signed bytes in base 64. Every thousandth part of the Tatoeba
lines, on which bench/detect measures, is left out. Needs PyTorch; some minutes.
"""
import base64
import lzma
import random
import sys
import unicodedata
from pathlib import Path

import torch

LANGUAGES = ("en", "de", "fr", "es", "it")
FOLDERS = {"en": ("en-de", "en-fr"), "de": ("en-de",), "fr": ("en-fr",), "es": ("en-es",), "it": ("en-it",)}
BUCKETS, LONGEST, PER_SOURCE, SEED = 8192, 5, 30000, 16


def words_of(text):
    """Runs of letters and marks."""
    word = ""
    for c in text:
        if unicodedata.category(c)[0] in "LM":
            word += c
        elif word:
            yield word
            word = ""
    if word:
        yield word


def bucket(text):
    h = 2166136261
    for b in text.encode():
        h = (h ^ b) * 16777619 & 0xFFFFFFFF
    return (h ^ h >> 15) % BUCKETS


def features(text):
    found = []
    for i, word in enumerate(words_of(text)):
        if i and word[0].isupper() and len(word) > 1 and not word[1].isupper():
            found.append(bucket("^"))
        padded = " " + "".join(c.lower() if len(c.lower()) == 1 else c for c in word) + " "
        for n in range(1, LONGEST + 1):
            found += [bucket(padded[k:k + n]) for k in range(len(padded) - n + 1) if padded[k:k + n] != " "]
        if len(padded) > LONGEST:
            found.append(bucket(padded))
    return found


def measured(lines):
    """The Tatoeba lines of bench/detect."""
    step = max(1, len(lines) // 1000)
    return set(lines[::step][:1000])


def samples(data, rng):
    held = set()
    texts = {language: [] for language in LANGUAGES}
    for language, folders in FOLDERS.items():
        for folder in folders:
            for path in sorted(Path(data, folder).glob(f"*.{language}.xz")):
                lines = lzma.open(path, "rt", encoding="utf-8").read().splitlines()
                if path.name.startswith("tatoeba"):
                    held |= measured(lines)
                count = PER_SOURCE if "tatoeba" in path.name or "europarl" in path.name else PER_SOURCE // 6
                texts[language] += rng.sample(lines, min(count, len(lines)))
    made = []
    for label, language in enumerate(LANGUAGES):
        for line in texts[language]:
            if line in held:
                continue
            words = line.split()
            count = rng.choice((1, 2, 3, 3, 3, 4, 6, 12))
            first = 0 if rng.random() < 0.6 else rng.randrange(max(1, len(words) - count + 1))
            found = features(" ".join(words[first:first + count]))
            if found:
                made.append((label, found))
    rng.shuffle(made)
    return made


def learn(made, epochs=6, batch=512):
    torch.manual_seed(SEED)
    table = torch.nn.EmbeddingBag(BUCKETS, len(LANGUAGES), mode="sum")
    torch.nn.init.zeros_(table.weight)
    optimizer = torch.optim.Adam(table.parameters(), lr=0.02)
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = 0.02 * (1 - epoch / epochs)
        total = 0.0
        for at in range(0, len(made), batch):
            part = made[at:at + batch]
            ids = torch.tensor([f for _, found in part for f in found])
            starts = torch.tensor([0] + [len(found) for _, found in part[:-1]]).cumsum(0)
            labels = torch.tensor([label for label, _ in part])
            loss = torch.nn.functional.cross_entropy(table(ids, starts), labels) + 2e-6 * table.weight.square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(part)
        print(f"round {epoch + 1}: loss {total / len(made):.4f}", flush=True)
    weights = table.weight.detach()
    return weights - weights.mean(1, keepdim=True)


def write(path, weights):
    limit = weights.abs().flatten().quantile(0.9995).item()
    scale = limit / 127
    points = (weights / scale).round().clamp(-127, 127).to(torch.int8)
    text = base64.b64encode(points.numpy().tobytes()).decode()
    lines = [text[i:i + 112] for i in range(0, len(text), 112)]
    with open(path, "w", encoding="utf-8") as out:
        out.write("// SPDX-License-Identifier: MIT\n"
                  "// What features of a text count for each of five languages: signed bytes, language beside language, in base 64.\n"
                  "// training/language_points.py learns them.\n"
                  "#ifndef DGM_TEXT_LANGUAGE_POINTS_PRIVATE_H\n#define DGM_TEXT_LANGUAGE_POINTS_PRIVATE_H\n\n"
                  f"enum {{ POINT_BUCKETS = {BUCKETS}, POINT_LANGUAGES = {len(LANGUAGES)}, POINT_LONGEST = {LONGEST} }};\n"
                  f"static const float point_scale = {scale:.7f}f;\n"
                  "static const char *const point_languages[POINT_LANGUAGES] = {"
                  + ", ".join(f'"{x}"' for x in LANGUAGES) + "};\n"
                  "static const char points_text[] =\n" + "\n".join(f'    "{x}"' for x in lines) + ";\n\n#endif\n")
    return points.float() * scale


def main():
    rng = random.Random(SEED)
    torch.set_num_threads(2)
    made = samples(sys.argv[1], rng)
    print(f"{len(made)} stretches", flush=True)
    points = write(sys.argv[2], learn(made))
    right = sum(int(points[torch.tensor(found)].sum(0).argmax()) == label for label, found in made[:20000])
    print(f"{right / 200:.2f} % of 20,000 of them are recognised")


if __name__ == "__main__":
    main()
