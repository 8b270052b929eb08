# SPDX-License-Identifier: MIT
"""From a PyTorch module to a model file (docs/internals/FORMAT.md).

    export(path, module, Pieces(open("vocab.model", "rb").read()), source_languages=["en"], target_languages=["de"])

Each family has one function that names its settings and one that yields (tensor name, parameter) pairs; everything
else (vocabularies, metadata, storage types) is common. A new architecture is a new row of FAMILIES.

Storage of matrices: f32, f16, or i8 with a scale per output row (NAME.scale). Vectors (biases, norms, start vectors)
position tables and the gates of experts are always f32: they are small and not forgiving.

Command line: python -m dragoman_training.export model.pt -o MODEL.gguf, with a model.pt of checkpoint.py: the family is
known by its settings, the vocabulary is inside (or given with --vocab).
"""
import argparse
import json
import math
from dataclasses import dataclass, field

import numpy as np
import torch

from . import checkpoint, subword, variants, wordlist
from .cmlm import Cmlm, CmlmConfig
from .gguf_writer import Writer
from .packed import Packed
from .rnn import RNN, RNNConfig
from .transformer import Transformer, TransformerConfig

FORMAT_VERSION = 1
PRODUCER = "dragoman_training 1"
POSITION_NAMES = {"sinusoidal": "sinusoid", "sinusoidal_marian": "sinusoid_marian", "learned": "learned",
                  "none": "none"}


@dataclass
class Pieces:
    """A SentencePiece vocabulary: the bytes of its model file, less the paths that it remembers."""
    model: bytes
    size: int = 0                      # ids; 0: the number of pieces (asks the sentencepiece package)
    eos: int = 0
    unk: int = 1
    pad: int = -1
    bos: int = -1
    map: list = field(default_factory=list)      # id of piece i; empty: identity
    frequent: list = field(default_factory=list)  # most frequent ids first; empty: ids are in that order
    extra: list = field(default_factory=list)    # spellings of the last ids, which the model does not hold

    def __post_init__(self):
        self.model = subword.without_paths(self.model)
        if not self.size:
            import sentencepiece
            pieces = sentencepiece.SentencePieceProcessor()
            pieces.LoadFromSerializedProto(self.model)
            self.size = pieces.GetPieceSize() + len(self.extra)

    def write(self, out, key):
        out.string(f"{key}.vocab.kind", "sentencepiece")
        out.u8s(f"{key}.vocab.sentencepiece", self.model)
        if self.map:
            out.i32s(f"{key}.vocab.map", self.map)
        if self.frequent:
            out.i32s(f"{key}.vocab.frequent", self.frequent)
        if self.extra:
            out.strings(f"{key}.vocab.extra", self.extra)


@dataclass
class Words:
    """A word vocabulary: the word of each id, and how text becomes words."""
    words: list
    tokenizer: str = "none"            # none (split at spaces) | moses
    language: str = ""
    eos: int = 0
    unk: int = 1
    pad: int = -1
    bos: int = -1

    @property
    def size(self):
        return len(self.words)

    def write(self, out, key):
        out.string(f"{key}.vocab.kind", "words")
        out.strings(f"{key}.vocab.words", self.words)
        out.string(f"{key}.vocab.tokenizer", self.tokenizer)
        if self.language:
            out.string(f"{key}.vocab.language", self.language)


def write_vocabulary(out, side, vocabulary):
    key = f"dragoman.{side}"
    vocabulary.write(out, key)
    out.u32(f"{key}.vocab.size", vocabulary.size)
    for name in ("eos", "unk", "pad", "bos"):
        value = getattr(vocabulary, name)
        if value >= 0 or name in ("eos", "unk"):
            out.i32(f"{key}.{name}", value)


def layer_tensors(name, layer):
    """weight and bias of an nn.Linear or nn.LayerNorm, and the norm of a product (rnn_deep.py)."""
    yield f"{name}.weight", layer.weight
    if layer.bias is not None:
        yield f"{name}.bias", layer.bias
    if getattr(layer, "norm", None) is not None:
        yield from layer_tensors(f"{name}.norm", layer.norm)


def embedding_tensors(module):
    """The embeddings and the output layer, as far as they are not tied: an absent tensor means the one before it."""
    tied = module.config.tied
    yield "src.embed", module.embedding if tied == "all" else module.source_embedding
    if tied != "all":
        yield "tgt.embed", module.embedding
    if tied == "none":
        yield "out.weight", module.output
    if module.config.output_bias:
        yield "out.bias", module.output_bias


def transformer_settings(out, module):
    c, key = module.config, "dragoman.transformer"
    if c.relu_clip not in (0.0, 10.0):
        raise ValueError(f"relu_clip {c.relu_clip}: the engine clips at 10 or not at all")
    for name, value in (("d_model", c.d_model), ("heads", c.heads), ("ffn", c.ffn_dim),
                        ("decoder_ffn", c.decoder_ffn_dim), ("encoder_layers", c.encoder_layers),
                        ("decoder_layers", c.decoder_layers), ("position_offset", c.position_offset)):
        out.u32(f"{key}.{name}", value)
    out.string(f"{key}.norm", c.norm)
    out.f32(f"{key}.norm_eps", c.norm_eps)
    out.string(f"{key}.activation", "relu10" if c.activation == "relu" and c.relu_clip > 0 else c.activation)
    out.string(f"{key}.positions", POSITION_NAMES[c.positions])
    out.bool(f"{key}.scale_embedding", c.scale_embedding)
    out.string(f"{key}.start", c.start)
    out.string(f"{key}.decoder", {"attention": "self_attention"}.get(c.decoder_cell, c.decoder_cell))
    if c.order != "l2r":
        out.string("dragoman.target.order", c.order)
    if c.tokens_per_step == 2:
        out.i32("dragoman.target.eod", module.eod)
        out.i32("dragoman.target.bos", module.bos)
    if c.moe_encoder_every or c.moe_decoder_every:
        for name, value in (("experts", c.moe_experts), ("top", c.moe_top), ("encoder_every", c.moe_encoder_every),
                            ("decoder_every", c.moe_decoder_every)):
            out.u32(f"{key}.moe.{name}", value)
        out.bool(f"{key}.moe.normalise", c.moe_normalise)
        out.f32(f"{key}.moe.scale", c.moe_scale)


def cmlm_settings(out, module):
    transformer_settings(out, module)
    out.i32("dragoman.target.mask", module.mask)


def cmlm_tensors(module):
    yield from transformer_tensors(module)
    yield "enc.length.input", module.length_input
    yield from layer_tensors("enc.length", module.length)


def attention_tensors(name, attention):
    for part in "qkvo":
        yield from layer_tensors(f"{name}.{part}", getattr(attention, part))


def expert_tensors(name, experts):
    yield from layer_tensors(f"{name}.moe.gate", experts.gate)
    for number in range(experts.w1.size(0)):
        for part, weight, bias in (("in", experts.w1, experts.b1), ("out", experts.w2, experts.b2)):
            yield f"{name}.moe.{number}.{part}.weight", weight[number]
            if bias is not None:
                yield f"{name}.moe.{number}.{part}.bias", bias[number]


def transformer_tensors(module):
    c = module.config
    yield from embedding_tensors(module)
    if c.positions == "learned":
        yield "enc.pos", module.source_positions
        if not torch.equal(module.source_positions, module.target_positions):
            yield "dec.pos", module.target_positions
    if c.start == "learned":                        # the file's start vector is used as it is: scaled here
        yield "dec.start", module.start * (math.sqrt(c.d_model) if c.scale_embedding else 1.0)
    if c.embedding_norm:
        yield from layer_tensors("enc.embed_norm", module.source_embedding_norm)
        yield from layer_tensors("dec.embed_norm", module.target_embedding_norm)
    for side, layers in (("enc", module.encoder), ("dec", module.decoder)):
        for number, layer in enumerate(layers):
            name = f"{side}.{number}"
            if hasattr(layer, "ssru"):
                yield f"{name}.rnn.w.weight", layer.ssru.w.weight
                yield from layer_tensors(f"{name}.rnn.f", layer.ssru.wf)
                yield from layer_tensors(f"{name}.rnn.norm", layer.self_norm)
            elif hasattr(layer, "aan"):
                yield from layer_tensors(f"{name}.aan.in", layer.aan.fc1)
                yield from layer_tensors(f"{name}.aan.out", layer.aan.fc2)
                yield from layer_tensors(f"{name}.aan.gate", layer.aan.gate)
                yield from layer_tensors(f"{name}.aan.norm", layer.self_norm)
            else:
                yield from attention_tensors(f"{name}.self", layer.self_attn)
                yield from layer_tensors(f"{name}.self.norm", layer.self_norm)
            if side == "dec":
                yield from attention_tensors(f"{name}.cross", layer.cross_attn)
                yield from layer_tensors(f"{name}.cross.norm", layer.cross_norm)
            if hasattr(layer, "experts"):
                yield from expert_tensors(name, layer.experts)
            else:
                yield from layer_tensors(f"{name}.ffn.in", layer.fc1)
                yield from layer_tensors(f"{name}.ffn.out", layer.fc2)
            yield from layer_tensors(f"{name}.ffn.norm", layer.ffn_norm)
    if c.norm == "pre":
        yield from layer_tensors("enc.norm", module.encoder_norm)
        yield from layer_tensors("dec.norm", module.decoder_norm)


def rnn_settings(out, module):
    c, key = module.config, "dragoman.rnn"
    for name in ("embed", "encoder_hidden", "encoder_layers", "decoder_hidden", "attention"):
        out.u32(f"{key}.{name}", getattr(c, name))
    for name in ("encoder_cell", "decoder", "readout"):
        out.string(f"{key}.{name}", getattr(c, name))
    out.bool(f"{key}.encoder_bidirectional", c.encoder_bidirectional_layers > 0)
    if 0 < c.encoder_bidirectional_layers < c.encoder_layers:
        out.u32(f"{key}.encoder_bidirectional_layers", c.encoder_bidirectional_layers)
    for name in ("encoder_residual", "upper_context", "upper_residual", "norm"):
        if getattr(c, name):
            out.bool(f"{key}.{name}", True)
    for name in ("encoder_fc_layers", "encoder_fc_size", "upper_layers", "fc_layers", "fc_size", "top_size"):
        if getattr(c, name):
            out.u32(f"{key}.{name}", getattr(c, name))
    for name in ("encoder_transitions", "decoder_transitions", "upper_transitions"):
        if getattr(c, name):
            out.u32(f"{key}.{name}", getattr(c, name))
    for name, default in (("encoder_residual_from", 2), ("upper_residual_from", 1)):
        if getattr(c, name) != default:
            out.u32(f"{key}.{name}", getattr(c, name))
    for name, default in (("decoder_cell", "gru"), ("top", "none"), ("encoder_stacks", "joined"),
                          ("encoder_norm", "none"), ("decoder_norm", "none"), ("decoder_start", "first")):
        if getattr(c, name) != default:
            out.string(f"{key}.{name}", getattr(c, name))
    for name in ("norm_eps", "gate_norm_eps"):
        if getattr(c, name) != 1e-5:
            out.f32(f"{key}.{name}", getattr(c, name))
    if c.readout != "none":
        out.u32(f"{key}.readout_size", c.readout_size)


def recurrent_tensors(name, layer, end, sides=("w", "h")):
    """Gates of one direction of an nn.GRU or nn.LSTM: products with the input and with the state."""
    for ours, theirs in zip(sides, ("ih", "hh")):
        yield f"{name}.{ours}.weight", getattr(layer, f"weight_{theirs}_{end}")
        yield f"{name}.{ours}.bias", getattr(layer, f"bias_{theirs}_{end}")


def transition_tensors(name, transitions):
    for number, t in enumerate(transitions):
        yield from layer_tensors(f"{name}.t{number}.h", t.h)
        yield f"{name}.t{number}.x", t.x


def cell_tensors(name, cell, sides="xh"):
    """A cell of rnn_deep.py."""
    yield from layer_tensors(f"{name}.{sides[0]}", cell.x)
    yield from layer_tensors(f"{name}.{sides[1]}", cell.h)
    yield from transition_tensors(name, cell.next)


def stack_tensors(module):
    """What rnn_stack.py puts on the encoder and above the decoder's cell."""
    if hasattr(module, "source_stack"):
        for number, layer in enumerate(module.source_stack.fc.layers):
            yield f"enc.fc.{number}.weight", layer.weight
        yield "enc.fc.top.weight", module.source_stack.top.weight
    stack = getattr(module, "stack", None)
    if stack is None:
        return
    for number, layer in enumerate(stack.upper):
        if module.config.deep_decoder:
            yield from cell_tensors(f"dec.upper.{number}", layer)
            continue
        yield from recurrent_tensors(f"dec.upper.{number}", layer, "l0", "xh")
    if hasattr(stack, "fc"):
        for number, layer in enumerate(stack.fc.layers):
            yield f"dec.fc.{number}.weight", layer.weight
    if module.config.top == "tanh":
        yield "dec.top.weight", stack.top.weight
    elif module.config.top == "gru":
        yield from recurrent_tensors("dec.top", stack.top, "l0", "xh")


def rnn_tensors(module):
    c = module.config
    yield from embedding_tensors(module)
    for number in range(c.encoder_layers):
        layer, index = module.encoder, number
        if c.deep_encoder:
            for direction, cell in zip(("fwd", "bwd"), layer.layers[number]):
                yield from cell_tensors(f"enc.{number}.{direction}", cell, "wh")
            continue
        if hasattr(layer, "layers"):
            layer, index = layer.layers[number], 0
        for direction in ("fwd", "bwd")[:1 + (number < c.encoder_bidirectional_layers)]:
            end = f"l{index}" + ("_reverse" if direction == "bwd" else "")
            yield from recurrent_tensors(f"enc.{number}.{direction}", layer, end)
    yield from stack_tensors(module)
    yield from layer_tensors("dec.init", module.init)
    for name, layer in module.cell.named_children():        # att_h -> dec.att.h, gru1_x -> dec.gru1.x
        if name == "gru2_next":
            yield from transition_tensors("dec.gru2", layer)
            continue
        yield from layer_tensors("dec." + name.replace("_", "."), layer)
    if hasattr(module.cell, "att_v"):
        yield "dec.att.v", module.cell.att_v
    if c.readout != "none":
        for name, layer in module.readout.named_children():
            yield from layer_tensors(f"dec.readout.{name}", layer)


# module class -> (name in the file, settings, tensors, config class)
FAMILIES = {Transformer: ("transformer", transformer_settings, transformer_tensors, TransformerConfig),
            variants.Variant: ("transformer", variants.settings, variants.tensors, variants.VariantConfig),
            Cmlm: ("cmlm", cmlm_settings, cmlm_tensors, CmlmConfig),
            RNN: ("rnn", rnn_settings, rnn_tensors, RNNConfig)}


def family_name(module):
    """dragoman.architecture. Pairs have a name of their own: a program that does not know them must not guess."""
    return "double" if getattr(module.config, "tokens_per_step", 1) == 2 else FAMILIES[type(module)][0]


def extra_words(config):
    """Rows behind the vocabulary's own: what the model adds to a SentencePiece model."""
    if hasattr(config, "lengths"):
        return ["<mask>"]
    return ["<eod>", "<s>"] if getattr(config, "tokens_per_step", 1) == 2 else []


def never_chosen(config):
    """Ids that stand in the softmax and are never the answer: </s> and what is only input."""
    if hasattr(config, "lengths"):
        return [0, config.vocab_size - 1]
    return [0, config.vocab_size - 1] if getattr(config, "tokens_per_step", 1) == 2 else []


def quantise_rows(matrix):
    """[rows, columns] -> int8 and one f32 scale a row: matrix is about q * scale, |q| <= 127."""
    peak = np.abs(matrix).max(1)
    scale = np.where(peak > 0, peak / 127.0, 1.0).astype(np.float32)
    q = np.rint(matrix / scale[:, None])
    return np.clip(q, -127, 127).astype(np.int8), scale


def write_tensor(out, name, parameter, storage):
    array = parameter.detach().cpu().numpy().astype(np.float32)
    if array.ndim < 2 or name in ("enc.pos", "dec.pos") or name.endswith((".gate.weight", ".self.rel")) or storage == "f32":
        out.tensor(name, array)
    elif storage == "f16":
        out.tensor(name, array.astype(np.float16))
    else:
        q, scale = quantise_rows(array)
        out.tensor(name, q)
        out.tensor(f"{name}.scale", scale)


@dataclass
class Card:
    """What a file says besides weights and vocabulary; empty values are left out."""
    name: str = ""
    description: str = ""
    license: str = ""
    author: str = ""
    source_url: str = ""
    text: str = ""                     # the model card, Markdown
    source_languages: list = field(default_factory=list)
    target_languages: list = field(default_factory=list)
    pairs: list = field(default_factory=list)                # of a multilingual model: "en de", ...
    default: str = ""                                        # the direction when none is asked for, "en de"
    source_tokens: list = field(default_factory=list)        # of each language
    target_tokens: list = field(default_factory=list)
    source_tags: list = field(default_factory=list)          # "source", "target": whose tokens stand before the source
    target_tags: list = field(default_factory=list)
    start: int = -1                    # first decoder input; -1: the architecture's own
    never: list = field(default_factory=list)
    source_prefix: list = field(default_factory=list)
    target_prefix: list = field(default_factory=list)
    append_eos: bool = True
    target_frequent: list = field(default_factory=list)      # of a shared vocabulary: most frequent target ids
    align: tuple = ()                  # (decoder layer, head) of alignments; empty: the format's default
    self_normalised: bool = False
    decode: dict = field(default_factory=dict)   # keys of dragoman.decode
    directions: dict = field(default_factory=dict)           # ("en", "de") -> {key of dragoman.directions: value}


DECODE_TYPES = {"beam": "u32", "finish": "string", "length_penalty": "f32", "word_penalty": "f32", "max_length": "u32",
                "max_length_factor": "f32", "max_source": "u32", "allow_unk": "bool", "precision": "string"}


def write_card(out, card):
    for key, value in (("general.name", card.name), ("general.description", card.description),
                       ("general.license", card.license), ("general.author", card.author),
                       ("general.source.url", card.source_url), ("dragoman.card", card.text)):
        if value:
            out.string(key, value)
    for side, values in (("source", card.source_languages), ("target", card.target_languages)):
        if values:
            out.strings(f"dragoman.languages.{side}", values)
    for key, values in (("languages.pairs", card.pairs), ("source.tags", card.source_tags),
                        ("target.tags", card.target_tags)):
        if values:
            out.strings(f"dragoman.{key}", values)
    if card.default:
        out.string("dragoman.languages.default", card.default)
    for key, values in (("languages.source_tokens", card.source_tokens),
                        ("languages.target_tokens", card.target_tokens), ("source.prefix", card.source_prefix), ("target.prefix", card.target_prefix),
                        ("target.never", card.never), ("target.vocab.frequent", card.target_frequent)):
        if values:
            out.i32s(f"dragoman.{key}", values)
    if card.start >= 0:
        out.i32("dragoman.target.start", card.start)
    if not card.append_eos:
        out.bool("dragoman.source.append_eos", False)
    if card.align:
        out.i32("dragoman.align.layer", card.align[0])
        out.i32("dragoman.align.head", card.align[1])
    if card.self_normalised:
        out.bool("dragoman.softmax.self_normalised", True)
    for name, value in card.decode.items():
        if name not in DECODE_TYPES:
            raise ValueError(f"unknown decoding default '{name}'")
        getattr(out, DECODE_TYPES[name])(f"dragoman.decode.{name}", value)
    for (source, target), values in card.directions.items():
        for name, value in values.items():
            getattr(out, DIRECTION_TYPES[name])(f"dragoman.directions.{source}.{target}.{name}", value)


def export(path, module, source, target=None, storage="f32", card=None, **settings):
    """Writes module with its vocabularies to path and returns the size. Settings are fields of Card."""
    if storage not in ("f32", "f16", "i8"):
        raise ValueError(f"storage {storage!r} is not one of f32, f16, i8")
    card = card or Card(**settings)
    _, write_settings, tensors, _ = FAMILIES[type(module)]
    config = module.config
    card.never = sorted({*card.never, *never_chosen(config)})
    for side, vocabulary, rows in (("source", source, config.source_vocab_size),
                                   ("target", target or source, config.vocab_size)):
        if vocabulary.size != rows:
            raise ValueError(f"the {side} vocabulary has {vocabulary.size} ids, the model {rows} rows")
    if card.start < 0 and getattr(config, "start_token", -1) >= 0:
        card.start = config.start_token
    out = Writer()
    out.string("general.architecture", "dragoman")
    out.u32("dragoman.format_version", FORMAT_VERSION)
    out.string("dragoman.architecture", family_name(module))
    out.string("dragoman.producer", PRODUCER)
    write_card(out, card)
    write_vocabulary(out, "source", source)
    if target is not None:
        write_vocabulary(out, "target", target)
    write_settings(out, module)
    for name, parameter in tensors(module):
        write_tensor(out, name, parameter, storage)
    return out.save(path)


def module_from(held):
    """The module of a loaded model.pt, in evaluation mode."""
    settings = held["config"]
    kind, config = checkpoint.family(settings)
    module = kind(config.from_dict(settings))
    module.load_state_dict({name: value.float() for name, value in held["state"].items()})
    return module.eval()


def pieces_from(path, language="", frequent=(), extra=()):
    """Vocabulary of a SentencePiece model or a .words file (wordlist.py)."""
    if path.endswith(wordlist.SUFFIX):
        return Words(wordlist.WordList(path).words + list(extra), "moses", language)
    with open(path, "rb") as f:
        return Pieces(f.read(), frequent=list(frequent), extra=list(extra))


def by_frequency(path, most=20000):
    """Ids of a packed corpus' two sides, most frequent first."""
    packed = Packed.load(path)
    counts = [np.bincount(ids, minlength=1) for ids in (packed.source, packed.target)]
    return [np.argsort(-c, kind="stable")[:min(most, int((c > 0).sum()))].tolist() for c in counts]


def decode_defaults(items):
    """NAME=VALUE texts -> what Card.decode holds."""
    read = {"u32": int, "f32": float, "string": str, "bool": lambda text: text.lower() in ("1", "true", "yes")}
    pairs = [item.partition("=")[::2] for item in items]
    return {name: read[DECODE_TYPES[name]](value) for name, value in pairs}


DIRECTION_TYPES = {"length_penalty": "f32", "word_penalty": "f32", "max_length_factor": "f32", "shortlist": "string"}


def direction_defaults(items):
    """"en de:NAME=VALUE" texts -> what Card.directions holds."""
    found = {}
    for item in items:
        way, _, rest = item.partition(":")
        name, _, value = rest.partition("=")
        found.setdefault(tuple(way.split()), {})[name] = value if DIRECTION_TYPES[name] == "string" else float(value)
    return found


def main():
    parser = argparse.ArgumentParser(prog="dragoman_training.export", description="Write a model file.")
    parser.add_argument("checkpoint")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--vocab", help="SentencePiece model of the source (and target) side; default: the checkpoint's")
    parser.add_argument("--target-vocab", help="SentencePiece model of the target side, if it has its own")
    parser.add_argument("--storage", choices=("f32", "f16", "i8"), default="f32")
    parser.add_argument("--source", action="append", default=[], metavar="LANG", help="source language, e.g. en")
    parser.add_argument("--target", action="append", default=[], metavar="LANG", help="target language, e.g. de")
    parser.add_argument("--directions", metavar="FILE", help="directions.json of dragoman_training.multilingual")
    parser.add_argument("--default", default="", metavar="'SOURCE TARGET'", help="direction when none is asked for")
    parser.add_argument("--name", default="")
    parser.add_argument("--license", default="")
    parser.add_argument("--frequencies", metavar="PACKED", help="corpus that says which pieces are frequent (--precompute)")
    parser.add_argument("--decode", action="append", default=[], metavar="NAME=VALUE", help="decoding default, e.g. beam=6")
    parser.add_argument("--direction-default", action="append", default=[], metavar="'SOURCE TARGET:NAME=VALUE'",
                        help="decoding default of one direction, e.g. 'en de:length_penalty=1.2'")
    parser.add_argument("--card", help="Markdown file with the model card")
    args = parser.parse_args()
    held = checkpoint.read(args.checkpoint)
    frequent = by_frequency(args.frequencies) if args.frequencies else ((), ())
    languages = [(names or [""])[0] for names in (args.source, args.target)]
    module = module_from(held)
    extra = extra_words(module.config)
    mine = [] if args.target_vocab else extra                           # of one shared vocabulary, or of the target's
    source = (pieces_from(args.vocab, languages[0], frequent[0], mine) if args.vocab
              else Pieces(held["vocab"], frequent=list(frequent[0]), extra=mine))
    target = pieces_from(args.target_vocab, languages[1], frequent[1], extra) if args.target_vocab else None
    text = ""
    if args.card:
        with open(args.card, encoding="utf-8") as f:
            text = f.read()
    align = (module.config.alignment_layer, 0) if isinstance(module, Transformer) else ()
    directions = dict(source_languages=args.source, target_languages=args.target)
    if args.directions:
        with open(args.directions, encoding="utf-8") as f:
            directions = json.load(f)
    size = export(args.output, module, source, target, args.storage, name=args.name, license=args.license, text=text,
                  default=args.default, **directions, align=align,
                  self_normalised=held["info"].get("self_norm", 0) > 0, decode=decode_defaults(args.decode),
                  directions=direction_defaults(args.direction_default),
                  target_frequent=[] if target else list(frequent[1]))
    print(f"{args.output}: {size / 2 ** 20:.1f} MiB")


if __name__ == "__main__":
    main()
