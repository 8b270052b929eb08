# SPDX-License-Identifier: MIT
"""A model file of ours as a Hugging Face MarianMT directory, for rivals of bench/peers that read no such file.

    peers_gguf.py MODEL.gguf DIR     weights as 32-bit floats (model.safetensors), config.json, vocab.json, source.spm, target.spm

The model must have MarianMT's shape: a post-norm Transformer with sinusoidal positions, self-attention in its decoder, one
embedding for both languages and the output, one SentencePiece vocabulary and no experts. Weights of 8 and 16 bits become
exactly the numbers that they stand for. MarianMT starts a sentence with the embedding of <pad>: it is the row that the file
names as start, or one more row of zeros, with a bias that keeps it out of translations.

Only the standard library is used. A GGUF file is read as docs/internals/FORMAT.md has it.
"""
import json
import struct
import sys
from array import array
from pathlib import Path

import entry

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
CODES = {0: "f", 24: "b", 25: "h"}  # types of tensors
NEVER = -1e9  # a logit that is never chosen
KEY = "dragoman.transformer."
LAYERS = {"self.q": "self_attn.q_proj", "self.k": "self_attn.k_proj", "self.v": "self_attn.v_proj", "self.o": "self_attn.out_proj",
          "self.norm": "self_attn_layer_norm", "cross.q": "encoder_attn.q_proj", "cross.k": "encoder_attn.k_proj",
          "cross.v": "encoder_attn.v_proj", "cross.o": "encoder_attn.out_proj", "cross.norm": "encoder_attn_layer_norm",
          "ffn.in": "fc1", "ffn.out": "fc2", "ffn.norm": "final_layer_norm"}


# ---- reading -------------------------------------------------------------------------------------

class ModelFile:
    """Metadata and tensors of a GGUF file."""

    def __init__(self, path):
        self.data, self.at = Path(path).read_bytes(), 4
        if self.data[:4] != b"GGUF" or self.take("I") != 3:
            entry.stop(f"{path}: not a GGUF file of version 3")
        tensors, entries = self.take("Q"), self.take("Q")
        self.keys = {self.string().decode(): self.value(self.take("I")) for _ in range(entries)}
        self.places = {}
        for _ in range(tensors):
            name = self.string().decode()
            shape = [self.take("Q") for _ in range(self.take("I"))][::-1]
            self.places[name] = shape, self.take("I"), self.take("Q")
        step = self.keys.get("general.alignment", 32)
        self.base = (self.at + step - 1) // step * step

    def take(self, code):
        value, = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize(code)
        return value

    def string(self):
        size = self.take("Q")
        self.at += size
        return self.data[self.at - size:self.at]

    def value(self, kind):
        if kind == STRING:
            return self.string().decode("utf-8", "replace")
        if kind != ARRAY:
            return self.take(SCALARS[kind])
        kind, count = self.take("I"), self.take("Q")
        if kind == STRING:
            return [self.string().decode("utf-8", "replace") for _ in range(count)]
        size = count * struct.calcsize(SCALARS[kind])
        self.at += size
        part = self.data[self.at - size:self.at]
        return part if kind == 0 else list(struct.unpack(f"<{count}{SCALARS[kind]}", part))

    def tensor(self, name):
        """Shape and numbers, as floats."""
        shape, kind, offset = self.places[name]
        if kind not in CODES:
            entry.stop(f"the weights of {name} are neither f32, i16 nor i8")
        count = 1
        for n in shape:
            count *= n
        numbers = array(CODES[kind])
        begin = self.base + offset
        numbers.frombytes(self.data[begin:begin + count * numbers.itemsize])
        if kind == 0:
            return shape, numbers
        scales, width, out = self.tensor(name + ".scale")[1], shape[-1], array("f")
        for row in range(count // width):
            scale = scales[row if len(scales) > 1 else 0]
            out.extend([q * scale for q in numbers[row * width:(row + 1) * width]])
        return shape, out


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """(number, contents) of a protobuf message; contents of a field without a length are left out."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            at = varint(data, at)[1]
        elif tag & 7 == 2:
            size, at = varint(data, at)
            yield tag >> 3, data[at:at + size]
            at += size
        else:
            at += 8 if tag & 7 == 1 else 4


def spellings(spm):
    """The subwords of a SentencePiece model in their order."""
    return [dict(fields(part)).get(1, b"").decode() for number, part in fields(spm) if number == 1]


# ---- writing -------------------------------------------------------------------------------------

def refuse_others(f, path):
    wanted = {"dragoman.architecture": "transformer", KEY + "norm": "post", KEY + "positions": "sinusoid",
              "dragoman.source.vocab.kind": "sentencepiece"}
    usual = {KEY + "decoder": "self_attention", KEY + "position_offset": 0, KEY + "moe.experts": 0, "dragoman.target.order": "l2r",
             "dragoman.source.append_eos": True, "dragoman.source.prefix": [], "dragoman.source.tags": []}
    for key, value in wanted.items():
        if f.keys.get(key) != value:
            entry.stop(f"{path}: no shape of MarianMT: {key} is {f.keys.get(key)!r}, not {value!r}")
    for key, value in usual.items():
        if f.keys.get(key, value) != value:
            entry.stop(f"{path}: no shape of MarianMT: {key} is {f.keys[key]!r}, not {value!r}")
    for name in ("tgt.embed", "out.weight", "dec.start", "enc.embed_norm.weight", "dec.embed_norm.weight"):
        if name in f.places:
            entry.stop(f"{path}: no shape of MarianMT: it has a tensor {name}")
    if "dragoman.target.vocab.kind" in f.keys:
        entry.stop(f"{path}: no shape of MarianMT: its languages have vocabularies of their own")


def vocabulary(f):
    """{spelling: id} without <pad>."""
    parts = spellings(f.keys["dragoman.source.vocab.sentencepiece"])
    ids = f.keys.get("dragoman.source.vocab.map") or range(len(parts))
    extra, size = f.keys.get("dragoman.source.vocab.extra", []), f.keys["dragoman.source.vocab.size"]
    found = {part: i for part, i in zip(parts, ids) if i >= 0}
    found.update({part: size - len(extra) + i for i, part in enumerate(extra)})
    found["</s>"], found["<unk>"] = f.keys["dragoman.source.eos"], f.keys["dragoman.source.unk"]
    return found


def state(f):
    """Tensors under MarianMT's names, and the id of <pad>, the start."""
    (rows, width), embed = f.tensor("src.embed")
    bias = f.tensor("out.bias")[1] if "out.bias" in f.places else array("f", [0]) * rows
    start = f.keys.get("dragoman.target.start", -1)
    if start < 0:
        start, rows = rows, rows + 1
        embed.extend([0.0] * width)
        bias.append(NEVER)
    named = {"model.shared.weight": ([rows, width], embed), "final_logits_bias": ([1, rows], bias)}
    for name in f.places:
        part = name.split(".")
        if part[0] in ("enc", "dec") and part[1].isdigit() and part[-1] in ("weight", "bias"):
            side = "encoder" if part[0] == "enc" else "decoder"
            named[f"model.{side}.layers.{part[1]}.{LAYERS['.'.join(part[2:-1])]}.{part[-1]}"] = f.tensor(name)
    return named, start


def write_tensors(path, named):
    head, at = {}, 0
    for name, (shape, numbers) in named.items():
        size = len(numbers) * 4
        head[name] = dict(dtype="F32", shape=shape, data_offsets=[at, at + size])
        at += size
    head["__metadata__"] = {"format": "pt"}  # transformers reads no file without it
    head = json.dumps(head).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(head)) + head)
        for _, numbers in named.values():
            out.write(numbers.tobytes())


def write(path, folder):
    f = ModelFile(path)
    refuse_others(f, path)
    get = lambda name, default=None: f.keys.get(KEY + name, default)
    named, pad = state(f)
    vocab = vocabulary(f)
    vocab["<pad>"] = pad
    eos, size = vocab["</s>"], named["model.shared.weight"][0][0]
    ends = dict(eos_token_id=eos, bos_token_id=eos, pad_token_id=pad, decoder_start_token_id=pad, forced_eos_token_id=eos)
    config = dict(model_type="marian", architectures=["MarianMTModel"], vocab_size=size, decoder_vocab_size=size,
                  d_model=get("d_model"), encoder_layers=get("encoder_layers"), decoder_layers=get("decoder_layers"),
                  encoder_ffn_dim=get("ffn"), decoder_ffn_dim=get("decoder_ffn", get("ffn")),
                  encoder_attention_heads=get("heads"), decoder_attention_heads=get("heads"),
                  activation_function=get("activation"), scale_embedding=get("scale_embedding", True),
                  max_position_embeddings=1024, static_position_embeddings=True, share_encoder_decoder_embeddings=True,
                  tie_word_embeddings=True, dropout=0.0, **ends)
    generation = dict(num_beams=f.keys.get("dragoman.decode.beam", 4), max_length=512, bad_words_ids=[[pad]], **ends)
    folder.mkdir(parents=True, exist_ok=True)
    for name, what in (("config", config), ("generation_config", generation), ("vocab", vocab), ("tokenizer_config", {})):
        (folder / f"{name}.json").write_text(json.dumps(what, ensure_ascii=False), encoding="utf8")
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(f.keys["dragoman.source.vocab.sentencepiece"])
    write_tensors(folder / "model.safetensors", named)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    entry.run(lambda: write(sys.argv[1], Path(sys.argv[2])))
