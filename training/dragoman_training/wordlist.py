# SPDX-License-Identifier: MIT
"""Word vocabularies: text that `dragoman tokenize` has split, one id a word.

A .words file has the spelling of id i on line i, </s> and <unk> first, then words by falling frequency, so that the most
frequent ones have the lowest ids (what --precompute keeps). WordList has the calls of SentencePieceProcessor that training
uses; load() opens either by its suffix. Text is tokenised before (training, validation), and decode() gives tokens with
spaces between them: `dragoman tokenize --undo` makes text of them. The exported model tokenises by itself (moses).
"""
from collections import Counter

SUFFIX = ".words"
SPECIAL = ("</s>", "<unk>")


class WordList:
    def __init__(self, path):
        with open(path, encoding="utf-8", newline="\n") as f:
            self.words = f.read().split("\n")[:-1]
        if tuple(self.words[:2]) != SPECIAL:
            raise ValueError(f"{path}: does not begin with {' and '.join(SPECIAL)}")
        self.ids = {word: i for i, word in enumerate(self.words)}
        if len(self.ids) != len(self.words):
            raise ValueError(f"{path}: a word stands twice")

    def vocab_size(self):
        return len(self.words)

    def encode(self, text):
        """A line or a list of lines; words that are not there, and spellings of the special ids, become <unk>."""
        if not isinstance(text, str):
            return [self.encode(line) for line in text]
        return [max(1, self.ids.get(word, 1)) for word in text.split()]

    def decode(self, ids):
        if ids and not isinstance(ids[0], int):
            return [self.decode(row) for row in ids]
        return " ".join(self.words[i] for i in ids)


def build(files, path, size):
    """Writes the `size` - 2 most frequent words of tokenised files; ties by spelling. Returns the share of tokens known."""
    counts = Counter()
    for name in files:
        with open(name, encoding="utf-8") as f:
            for line in f:
                counts.update(line.split())
    for word in SPECIAL:
        counts.pop(word, None)
    chosen = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:size - len(SPECIAL)]
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.writelines(word + "\n" for word in (*SPECIAL, *(word for word, _ in chosen)))
    return sum(n for _, n in chosen) / max(1, sum(counts.values()))


def load(path):
    """A WordList or a SentencePieceProcessor, by the suffix."""
    if path.endswith(SUFFIX):
        return WordList(path)
    import sentencepiece
    return sentencepiece.SentencePieceProcessor(model_file=path)
