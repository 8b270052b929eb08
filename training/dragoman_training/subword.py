# SPDX-License-Identifier: MIT
"""SentencePiece vocabularies: training (unigram, byte fallback) and our normalisation.

Ids follow Marian: </s> 0, <unk> 1, no <s>, no <pad>. Byte fallback spends 256 pieces on <0x00>..<0xFF>, so that any
character (emoji, a name in another script) has a spelling and nothing becomes <unk>.

Normalisation: stock NFKC turns "m²" into "m2", "…" into "..." and drops the joiners inside emoji. Ours composes
(NFC), folds full-width forms and ligatures, makes every odd space a space, drops invisible marks, and leaves the rest.
SentencePiece compiles the rules into the model file, so every reader of the model applies the same ones.
"""
import os
import random
import unicodedata

# in every vocabulary whatever the coverage: Western letters, signs of prices, units, code and typography
REQUIRED = ("".join(map(chr, range(0x21, 0x7F))) + "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ"
            + "ĀāĆćČčĐđĘęĞğİıŁłŃńŌōŐőŘřŚśŞşŠšŤťŪūŮůŰűŹźŻżŽž" + "¡¿§©®°±²³µ·×€£¥¢–—‘’‚“”„«»‹›•…†™→½¼¾≤≥")
DROPPED = (0x00AD, 0x200B, 0x2060, 0xFEFF, 0x200E, 0x200F)
SPACES = (0x0009, 0x000A, 0x000B, 0x000C, 0x000D, 0x0085, 0x00A0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
          *range(0x2000, 0x200B))


def rules():
    """{source string: normalised string} of the normalisation described above."""
    table = {chr(c): "" for c in DROPPED}
    table.update({chr(c): " " for c in SPACES})
    table.update({chr(c): " " for c in range(0x01, 0x20) if chr(c) not in table})
    for code in range(0x80, 0x30000):
        char = chr(code)
        if unicodedata.category(char) in ("Cn", "Cs", "Co") or char in table:
            continue
        if 0xFF01 <= code <= 0xFF5E or 0xFB00 <= code <= 0xFB06:        # full-width ASCII, Latin ligatures
            table[char] = unicodedata.normalize("NFKC", char)
            continue
        composed, apart = unicodedata.normalize("NFC", char), unicodedata.normalize("NFD", char)
        if composed != char:                                            # singletons such as the Kelvin sign
            table[char] = composed
        elif apart != char and not 0xAC00 <= code <= 0xD7A3:            # Hangul composes by rule: too many for a table
            table[apart] = char
    return table


def write_rules(path):
    with open(path, "w", encoding="utf-8") as f:
        for source, target in sorted(rules().items()):
            hexes = [" ".join(f"{ord(c):X}" for c in text) for text in (source, target)]
            f.write("\t".join(hexes) + "\n")


def train(files, prefix, size, coverage=0.9998, sentences=700_000, threads=2, seed=7, byte_fallback=True,
          required=REQUIRED, control=()):
    """Trains PREFIX.model on a seeded sample of the files' lines. A digit is always a piece: numbers are copied.

    control: pieces that no text becomes, such as the tokens of languages."""
    import sentencepiece
    rules_path = f"{prefix}.rules.tsv"
    write_rules(rules_path)
    lines = []
    for path in files:
        with open(path, encoding="utf-8") as f:
            lines.extend(line.rstrip("\n") for line in f)
    random.Random(seed).shuffle(lines)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines[:sentences]), model_prefix=prefix, vocab_size=size, model_type="unigram",
        character_coverage=coverage, byte_fallback=byte_fallback, bos_id=-1, eos_id=0, unk_id=1, pad_id=-1,
        normalization_rule_tsv=rules_path, split_digits=True, num_threads=threads, required_chars=required,
        max_sentence_length=4192, minloglevel=1, control_symbols=list(control))
    os.remove(rules_path)
    with open(f"{prefix}.model", "rb") as f:
        proto = f.read()
    with open(f"{prefix}.model", "wb") as f:
        f.write(without_paths(proto))
    return f"{prefix}.model"


# of a model's trainer, normaliser and denormaliser: what names a file
REMEMBERED = {2: {1: "input", 2: "model_prefix", 54: "seed_sentencepieces_file"}, 3: {6: "normalization_rule_tsv"},
              5: {6: "normalization_rule_tsv"}}


def fields(proto):
    """(number, first byte, end, value or None) of a protobuf message's fields; value: the bytes of a length-delimited one."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (proto[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if proto[at - 1] < 128:
                return value, at
    at = 0
    while at < len(proto):
        first = at
        key, at = varint(at)
        value = None
        if key & 7 == 2:
            size, at = varint(at)
            value = proto[at:at + size]
            at += size
        elif key & 7 == 0:
            _, at = varint(at)
        else:
            at += 4 if key & 7 == 5 else 8
        yield key >> 3, first, at, value


def varint_bytes(value):
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes(found) + bytes([value])


def without_paths(proto):
    """A SentencePiece model without the names of files on the machine that trained it. Pieces, ids and rules stay as they
    are. The engine's importers and exporters do the same (src/import/spm_paths.c)."""
    kept = []
    for number, first, end, value in fields(proto):
        if number not in REMEMBERED or value is None:
            kept.append(proto[first:end])
            continue
        inner = b"".join(value[a:b] for n, a, b, v in fields(value) if n not in REMEMBERED[number] or v is None)
        kept.append(varint_bytes(number << 3 | 2) + varint_bytes(len(inner)) + inner)
    return b"".join(kept)
