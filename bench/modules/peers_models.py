# SPDX-License-Identifier: MIT
"""Models and shortlists for bench/peers.

    peers_models.py random SHAPE DIR     a MarianMT directory with random weights: tiny, base, big, or nano (for rehearsals)

A random model is a Hugging Face directory like any other, so both programs get it through their own importers. Its
vocabulary has 32,000 tokens: the end and unknown symbols, 26 letters, made-up words of four letters and <pad>. A text of
such words has one token a word, so sources have exactly the length that is asked for. Weights are normal with a standard
deviation of 1/sqrt(inputs), rounded to bfloat16; the same seed gives the same bytes. <unk> and <pad> get a
bias that keeps them out of outputs: CTranslate2 would allow them, Dragoman never does. The shortlist of a random
model has the first 100 tokens for every sentence and 20 tokens out of 3,000 for each source token.

The rest is imported by bench/peers: texts, and the conversion of a shortlist to CTranslate2's vmap.txt, whose lines
are SOURCE TAB TARGET TARGET ... (no SOURCE: allowed for every sentence). The list comes as Marian's binary file:

    u64 magic, checksum, first, best, n = source tokens + 1, size; u64 offsets[n]; u32 targets[size]

Only `random` needs numpy; everything else is the standard library's.
"""
import json
import random
import struct
import sys
from array import array
from pathlib import Path

import entry

# width, inner width, encoder layers, decoder layers, heads
SHAPES = {"nano": (64, 128, 1, 1, 2), "tiny": (256, 1536, 6, 2, 8), "base": (512, 2048, 6, 6, 8), "big": (1024, 4096, 6, 6, 16)}
VOCABULARY = 32000
LETTERS = "abcdefghijklmnopqrstuvwxyz"
POOL, BEST, FIRST = 3000, 20, 100


# ---- vocabulary ----------------------------------------------------------------------------------

def word(number):
    text = ""
    for _ in range(4):
        text, number = LETTERS[number % 26] + text, number // 26
    return text


def tokens():
    """The vocabulary without <pad>, by id."""
    return ["</s>", "<unk>", "\u2581", *LETTERS, *("\u2581" + word(i) for i in range(VOCABULARY - 30))]


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, data):
    """A length-delimited field of a protocol buffer."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def sentencepiece_model():
    """A unigram model: words score better than letters, so a known word is one piece."""
    out = b""
    kinds = {"<unk>": 2, "</s>": 3}  # unknown, control; else normal
    # The unknown symbol comes first, as SentencePiece has it; ids are those of vocab.json.
    for text in ["<unk>", "</s>", *tokens()[2:]]:
        score = 0.0 if text in kinds else -10.0 if len(text) > 1 else -20.0
        out += field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", score) +
                     b"\x18" + varint(kinds.get(text, 1)))
    # unigram; unk_id 0, bos_id -1, eos_id 1, pad_id -1 (fields 40 to 43)
    minus = varint(2 ** 64 - 1)
    trainer = (b"\x18\x01" + varint(40 << 3) + b"\x00" + varint(41 << 3) + minus + varint(42 << 3) + b"\x01" +
               varint(43 << 3) + minus)
    return out + field(2, trainer) + field(3, field(1, b"identity") + b"\x18\x01\x20\x01\x28\x01")


def random_text(lines, length, seed):
    """Lines of `length` tokens with the end symbol."""
    r = random.Random(seed)
    return [" ".join(word(r.randrange(VOCABULARY - 30)) for _ in range(length - 1)) for _ in range(lines)]


def random_lexicon(path, seed):
    """TARGET SOURCE PROBABILITY lines for every source token."""
    r = random.Random(seed)
    names = tokens()
    with open(path, "w", encoding="utf8") as f:
        for source in [0, *range(2, len(names))]:
            for target in sorted(r.sample(range(2, POOL), BEST)):
                f.write(f"{names[target]} {names[source]} {1 / BEST}\n")


# ---- weights -------------------------------------------------------------------------------------

def tensors(shape):
    """Name and shape of every tensor of a MarianMT model."""
    width, inner, encoder, decoder, _ = SHAPES[shape]
    yield "final_logits_bias", (1, VOCABULARY)
    yield "model.shared.weight", (VOCABULARY, width)
    for side, layers in (("encoder", encoder), ("decoder", decoder)):
        for i in range(layers):
            layer = f"model.{side}.layers.{i}."
            for block in ["self_attn"] + ["encoder_attn"] * (side == "decoder"):
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    yield f"{layer}{block}.{part}.weight", (width, width)
                    yield f"{layer}{block}.{part}.bias", (width,)
                yield f"{layer}{block}_layer_norm.weight", (width,)
                yield f"{layer}{block}_layer_norm.bias", (width,)
            yield f"{layer}fc1.weight", (inner, width)
            yield f"{layer}fc1.bias", (inner,)
            yield f"{layer}fc2.weight", (width, inner)
            yield f"{layer}fc2.bias", (width,)
            yield f"{layer}final_layer_norm.weight", (width,)
            yield f"{layer}final_layer_norm.bias", (width,)


def values(generator, name, shape):
    import numpy
    if "layer_norm.weight" in name:
        return numpy.ones(shape, numpy.float32)
    if len(shape) == 1 or shape[0] == 1:
        bias = numpy.zeros(shape, numpy.float32)
        if name == "final_logits_bias":
            bias[0, [1, VOCABULARY - 1]] = -1000
        return bias
    return generator.standard_normal(shape, numpy.float32) / numpy.float32(shape[1]) ** numpy.float32(0.5)


def write_weights(shape, path, seed):
    import numpy
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, sizes in tensors(shape):
        size = 2 * int(numpy.prod(sizes))
        header[name] = {"dtype": "BF16", "shape": list(sizes), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    generator = numpy.random.default_rng(seed)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, sizes in tensors(shape):
            bits = numpy.ascontiguousarray(values(generator, name, sizes)).view(numpy.uint32)
            f.write((bits >> 16).astype("<u2").tobytes())


def write_random(shape, directory, seed=1):
    width, inner, encoder, decoder, heads = SHAPES[shape]
    pad = VOCABULARY - 1
    directory.mkdir(parents=True, exist_ok=True)
    special = dict(bos_token_id=0, eos_token_id=0, pad_token_id=pad, decoder_start_token_id=pad, forced_eos_token_id=0)
    config = dict(architectures=["MarianMTModel"], model_type="marian", activation_function="swish", d_model=width,
                  encoder_layers=encoder, decoder_layers=decoder, encoder_attention_heads=heads,
                  decoder_attention_heads=heads, encoder_ffn_dim=inner, decoder_ffn_dim=inner, vocab_size=VOCABULARY,
                  decoder_vocab_size=VOCABULARY, max_position_embeddings=512, scale_embedding=True, dtype="bfloat16",
                  share_encoder_decoder_embeddings=True, tie_word_embeddings=True, is_encoder_decoder=True, **special)
    generation = dict(num_beams=4, max_length=512, length_penalty=1.0, bad_words_ids=[[pad]], **special)
    tokenizer = dict(source_lang="eng", target_lang="deu", tokenizer_class="MarianTokenizer", model_max_length=512)
    names = [*tokens(), "<pad>"]
    assert len(names) == VOCABULARY
    for name, value in (("config", config), ("generation_config", generation), ("tokenizer_config", tokenizer),
                        ("vocab", {t: i for i, t in enumerate(names)})):
        (directory / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf8")
    for side in ("source", "target"):
        (directory / f"{side}.spm").write_bytes(sentencepiece_model())
    write_weights(shape, directory / "model.safetensors", seed)


# ---- shortlists -----------------------------------------------------------------------------

def read_list(path):
    """Marian's binary shortlist: how many first tokens are always allowed, and the targets of each source token."""
    data = Path(path).read_bytes()
    first, _, count, size = struct.unpack_from("<4Q", data, 16)
    offsets = struct.unpack_from(f"<{count}Q", data, 48)
    targets = array("I", data[48 + 8 * count:48 + 8 * count + 4 * size])
    return first, [targets[a:b] for a, b in zip(offsets, offsets[1:])]


def vocabulary(path):
    names = json.loads(path.read_text(encoding="utf8"))
    return sorted(names, key=names.get)


def write_vmap(binary, directory, path):
    """The same candidates for CTranslate2; directory: the MarianMT model. With a vocabulary for both sides Dragoman allows
    every source token itself, so each gets itself here too."""
    first, rows = read_list(binary)
    source = target = vocabulary(directory / "vocab.json")
    apart = directory / "target_vocab.json"
    if apart.exists():
        target = vocabulary(apart)
    with open(path, "w", encoding="utf8") as f:
        f.write("\t" + " ".join(target[:first]) + "\n")
        for i, row in enumerate(rows):
            names = [target[j] for j in row]
            if not apart.exists() and i not in row:
                names.append(source[i])
            if names:
                f.write(f"{source[i]}\t{' '.join(names)}\n")


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] != "random" or sys.argv[2] not in SHAPES:
        sys.exit(__doc__)
    entry.run(lambda: write_random(sys.argv[2], Path(sys.argv[3])))
