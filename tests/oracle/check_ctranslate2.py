# SPDX-License-Identifier: MIT
"""check_ctranslate2.py [--program DRAGOMAN] [--text FILE] [--lines N] [--beams 1,6] [--keep FOLDER] [NAME...]
   check_ctranslate2.py --golden FOLDER

Imports CTranslate2 folders of every kind and compares translations of real lines with CTranslate2's own, in f32. Folders
are made here of small random models, by CTranslate2's loaders for Hugging Face transformers (marian, m2m, nllb, mbart50,
t5, t5-gated), by its Marian converter's specification (marian-npz) and through ctranslate2.specs (opennmt-py, opennmt-tf,
fairseq); each storage type, and the binary versions before the present one, which are written here from the same
variables. NAME chooses some of them.

--golden makes a few of them smaller, with what CTranslate2 translates, for tests/system/ctranslate2, which needs nothing
of this.

Needs ctranslate2, transformers, torch and sentencepiece (PyPI). Prints one line a folder; exit status 1 where fewer than
99 % of the lines are alike, fewer than 200 of 260 can be compared, or a score differs by more than 1e-3.
"""
import argparse
import json
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import ctranslate2
import numpy as np
import sentencepiece
import torch
import transformers
from ctranslate2.converters import transformers as loaders
from ctranslate2.specs import common_spec, transformer_spec

ROOT = Path(__file__).resolve().parent.parent.parent
SPM = ROOT / "tests" / "data" / "text" / "tiny.spm"
LONGEST = 60
SMALL = []  # of goldens: size of the vocabulary
TYPES = ["int8", "int16", "float16", "bfloat16", "int8_float16", "int8_bfloat16"]


class Tokenizer:
    """What CTranslate2's loaders ask of a tokeniser."""

    def __init__(self, tokens, bos="<s>", pad="<pad>"):
        self.tokens, self.bos_token, self.pad_token = tokens, bos, pad
        self.eos_token, self.unk_token, self.special_tokens_map = "</s>", "<unk>", {}
        self.unk_token_id = tokens.index("<unk>")

    def get_vocab(self):
        return {token: i for i, token in enumerate(self.tokens)}

    def convert_ids_to_tokens(self, i):
        return self.tokens[i]


def pieces():
    spm = sentencepiece.SentencePieceProcessor(str(SPM))
    words = [spm.id_to_piece(i) for i in range(spm.get_piece_size()) if not (spm.is_control(i) or spm.is_unknown(i))]
    return [word for word in words if word.isprintable()][-SMALL[0]:] if SMALL else words


def randomise(model, seed):
    """Weights that make translations depend on the source, and norms that are none of the usual."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "embed_positions" in name and "mbart" not in type(model).__name__.lower():
                continue
            noise = torch.randn(p.shape, generator=generator)
            if p.dim() == 1:
                p.copy_(noise * 0.1 + (1 if "norm" in name and name.endswith("weight") else 0))
            elif "shared" in name or "embed" in name or "lm_head" in name:
                p.copy_(noise * 0.3)
            else:
                p.copy_(noise * 1.5 / p.shape[-1] ** 0.5)
        layers = dict(model.named_modules())
        for name, layer in layers.items():
            if name.endswith(("out_proj", "fc2")):
                still(layer.weight, layer.bias)
            elif "decoder" in name and "norm" in name and hasattr(layer, "bias"):
                loud(layer.weight, layer.bias, name.endswith("decoder.layer_norm"))
    return model.eval()


def clock(width):
    """Places of an embedding that hold nothing but slow sines of the position, with periods of some 150."""
    return slice(width // 6, width // 6 + 3)


def grow_end(embeddings, tokens, positions=()):
    """A clock: slow sines of a position, or numbers of a table that grow with it, speak for the end alone."""
    places = clock(embeddings.shape[1])
    embeddings[:, places] = 0
    embeddings[tokens.index("</s>"), places] = 6
    for table in positions:
        table[:, places] = np.minimum(np.arange(len(table)) / 20, 2)[:, None].astype(np.float32)


def still(weight, offset=None):
    """Layers hardly write to the clock: sentences end by themselves, sooner or later by their source."""
    weight[clock(weight.shape[0])] *= 0.1
    if offset is not None:
        offset[clock(weight.shape[0])] = 0


def loud(gamma, beta, last):
    """Norms keep the clock, and the last one makes it heard."""
    gamma[clock(gamma.shape[0])] = 6 if last else 2
    beta[clock(gamma.shape[0])] = 0


def bias(spec, tokens):
    """Sentences end by themselves, and nothing but words comes out."""
    values = np.zeros(len(tokens), dtype=np.float32)
    for i, token in enumerate(tokens):
        if token in ("<s>", "<pad>", "<unk>", "<blank>") or token in LANGUAGES or not token.isprintable() or \
                token.startswith("<0x"):
            values[i] = -1e4
    values[tokens.index("</s>")] = END[0]
    spec.decoder.projection.bias = values
    return spec


END = [0.0]  # how likely the end is; see save()
LANGUAGES = {"__en__", "__de__", "__fr__", "eng_Latn", "deu_Latn", "fra_Latn", "en_XX", "de_DE", "fr_XX", "<2en>", "<2de>"}
BART = dict(d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=80, decoder_ffn_dim=64, max_position_embeddings=256, dropout=0.0)


def t5_clock(model, tokens):
    """T5 has no positions, but a head that looks at all words alike sees the first one less and less."""
    sees, tells, end, first = 8, 9, tokens.index("</s>"), tokens.index("<pad>")
    with torch.no_grad():
        for table in {model.shared.weight, model.lm_head.weight}:
            table[:, [sees, tells]] = 0
            table[end, tells] = -20 if model.config.tie_word_embeddings else -6
        model.shared.weight[first, sees] = 6
        for name, p in model.decoder.named_parameters():
            if name.endswith(("o.weight", "wo.weight")):
                p[[sees, tells]] = 0
        head = model.decoder.block[0].layer[0].SelfAttention
        width = model.config.d_kv
        head.q.weight[:width] = head.v.weight[:width] = 0
        head.relative_attention_bias.weight[:, 0] = 0
        head.v.weight[0, sees] = head.o.weight[tells, 0] = 1
        model.decoder.final_layer_norm.weight[tells] = 4


def from_transformers(config, model_class, tokens, seed, **more):
    config = config(vocab_size=len(tokens), pad_token_id=tokens.index("<pad>"), eos_token_id=tokens.index("</s>"),
                    bos_token_id=tokens.index("<s>") if "<s>" in tokens else 0, **more)
    model = randomise(model_class(config), seed)
    if hasattr(model, "model"):
        sides = (model.model.encoder, model.model.decoder)
        learned = [side.embed_positions.weight.data.numpy() for side in sides] if "mbart" in config.model_type else ()
        grow_end(model.model.shared.weight.data.numpy(), tokens, learned)
    else:
        t5_clock(model, tokens)
    spec = loaders._MODEL_LOADERS[type(config).__name__](model, Tokenizer(tokens, pad="<pad>"))
    return bias(spec, spec._vocabularies["target"][0])


def marian():
    tokens = ["</s>", "<unk>"] + pieces() + ["<pad>"]
    return from_transformers(transformers.MarianConfig, transformers.MarianMTModel, tokens, 1, **BART,
                             activation_function="swish", scale_embedding=True,
                             decoder_start_token_id=len(tokens) - 1), dict(eos=True)


def m2m(codes=("__en__", "__de__", "__fr__")):
    tokens = ["<s>", "<pad>", "</s>", "<unk>"] + pieces() + list(codes)
    return from_transformers(transformers.M2M100Config, transformers.M2M100ForConditionalGeneration, tokens, 2,
                             **BART, activation_function="relu", scale_embedding=True,
                             decoder_start_token_id=2), dict(eos=True, tags=codes[:2])


def nllb():
    return m2m(("eng_Latn", "deu_Latn", "fra_Latn"))


def mbart50():
    tokens = ["<s>", "<pad>", "</s>", "<unk>"] + pieces() + ["en_XX", "de_DE", "fr_XX"]
    return from_transformers(transformers.MBartConfig, transformers.MBartForConditionalGeneration, tokens, 3, **BART,
                             activation_function="gelu", scale_embedding=True, normalize_before=True,
                             tokenizer_class="MBart50Tokenizer",
                             decoder_start_token_id=2), dict(eos=True, tags=("en_XX", "de_DE"))


def t5(gated=False):
    tokens = ["<pad>", "</s>", "<unk>"] + pieces() + ["<2en>", "<2de>"]
    return from_transformers(transformers.T5Config, transformers.T5ForConditionalGeneration, tokens, 4, d_model=48,
                             d_kv=10, d_ff=72, num_layers=2, num_decoder_layers=3, num_heads=4, dropout_rate=0.0,
                             relative_attention_num_buckets=16, relative_attention_max_distance=40,
                             feed_forward_proj="gated-gelu" if gated else "relu", tie_word_embeddings=not gated,
                             decoder_start_token_id=0), dict(eos=True, source_tag="<2de>", target="de")


def t5_gated():
    return t5(True)


def random_spec(tokens, seed, positions=False, **more):
    """A specification filled by hand, as the other converters fill it."""
    spec = transformer_spec.TransformerSpec.from_config((2, 3), 4, **more)
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    generator = np.random.default_rng(seed)
    width, inner = 48, 80

    def fill(layer, rows, cols, with_bias=True):
        layer.weight = (generator.standard_normal((rows, cols)) * 1.5 / cols ** 0.5).astype(np.float32)
        if with_bias:
            layer.bias = (generator.standard_normal(rows) * 0.1).astype(np.float32)

    def norm(layer):
        layer.gamma = (1 + generator.standard_normal(width) * 0.1).astype(np.float32)
        layer.beta = (generator.standard_normal(width) * 0.1).astype(np.float32)

    embed = (generator.standard_normal((len(tokens), width)) * 0.3).astype(np.float32)
    tables = [(generator.standard_normal((300, width)) * 0.3).astype(np.float32) for _ in range(2 if positions else 0)]
    grow_end(embed, tokens, tables)
    for side in (spec.encoder, spec.decoder):
        (side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings).weight = embed
        if positions:
            side.position_encodings.encodings = tables.pop()
        for name in ("layer_norm", "layernorm_embedding"):
            if hasattr(side, name):
                norm(getattr(side, name))
                loud(getattr(side, name).gamma, getattr(side, name).beta, name == "layer_norm")
        for layer in side.layer:
            fill(layer.self_attention.linear[0], 3 * width, width)
            fill(layer.self_attention.linear[1], width, width)
            still(layer.self_attention.linear[1].weight, layer.self_attention.linear[1].bias)
            norm(layer.self_attention.layer_norm)
            if hasattr(layer, "attention"):
                for linear, rows in zip(layer.attention.linear, (width, 2 * width, width)):
                    fill(linear, rows, width)
                still(layer.attention.linear[2].weight, layer.attention.linear[2].bias)
                norm(layer.attention.layer_norm)
            fill(layer.ffn.linear_0, inner, width)
            fill(layer.ffn.linear_1, width, inner)
            still(layer.ffn.linear_1.weight, layer.ffn.linear_1.bias)
            norm(layer.ffn.layer_norm)
            for one in [layer.self_attention, layer.ffn] + ([layer.attention] if hasattr(layer, "attention") else []):
                loud(one.layer_norm.gamma, one.layer_norm.beta, False)
    spec.decoder.projection.weight = embed
    if positions:  # a decoder that begins with the end symbol does not hear the clock of its embedding
        spec.decoder.projection.weight = embed.copy()
        embed[:, clock(width)] = 0
    return bias(spec, tokens)


def opennmt_py():
    spec = random_spec(["<unk>", "<blank>", "<s>", "</s>"] + pieces(), 5, activation=common_spec.Activation.GELU)
    spec.config.layer_norm_epsilon = 1e-6
    return spec, dict(eos=False)


def opennmt_tf():
    spec = random_spec(["<blank>", "<s>", "</s>"] + pieces() + ["<unk>"], 6,
                       activation=common_spec.Activation.RELU)
    spec.config.add_source_bos = spec.config.add_source_eos = True
    return spec, dict(eos=False)


def fairseq():
    spec = random_spec(["<s>", "<pad>", "</s>", "<unk>"] + pieces(), 7, positions=True, pre_norm=False,
                       layernorm_embedding=True)
    spec.config.add_source_eos = True
    spec.config.decoder_start_token = "</s>"
    return spec, dict(eos=False)


def marian_npz():
    spec = random_spec(["</s>", "<unk>"] + pieces(), 8, pre_norm=False,
                       activation=common_spec.Activation.GELUSigmoid)
    from ctranslate2.converters.marian import _make_sinusoidal_position_encodings
    for side in (spec.encoder, spec.decoder):
        side.position_encodings.encodings = _make_sinusoidal_position_encodings(48).astype(np.float32)
    spec.decoder.start_from_zero_embedding = True
    spec.config.add_source_eos = True
    spec.config.decoder_start_token = "</s>"
    return spec, dict(eos=False)


MODELS = {"marian": marian, "m2m": m2m, "nllb": nllb, "mbart50": mbart50, "t5": t5, "t5-gated": t5_gated,
          "opennmt-py": opennmt_py, "opennmt-tf": opennmt_tf, "fairseq": fairseq, "marian-npz": marian_npz}


def older(folder, version):
    """The folder's model.bin as that binary version had it: see docs/internals and import/ct2_model.h."""
    data = (folder / "model.bin").read_bytes()
    at = 0

    def take(form):
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def string():
        nonlocal at
        size = take("H")
        text = data[at:at + size - 1].decode()
        at += size
        return text

    def put(text):
        return struct.pack("<H", len(text.encode()) + 1) + text.encode() + b"\0"

    take("I"), string(), take("I")
    variables = {}
    for _ in range(take("I")):
        name = string()
        shape = [take("I") for _ in range(take("B"))]
        kind, size = take("B"), take("I")
        variables[name] = (shape, kind, data[at:at + size])
        at += size
    aliases = [(string(), string()) for _ in range(take("I"))]
    config = json.loads((folder / "config.json").read_text())
    for key in ("unk_token", "bos_token", "eos_token"):
        text = config[key].encode()
        variables[key] = ([len(text)], 1, text)
    flags = dict(with_source_bos=config["add_source_bos"], with_source_eos=config["add_source_eos"],
                 with_target_bos=config["decoder_start_token"] == config["bos_token"])
    for key, value in flags.items():
        variables[key] = ([], 1, struct.pack("b", value))
    if version < 3:  # no aliases
        for alias, name in aliases:
            for end in ("", "_scale"):
                if name + end in variables:
                    variables[alias + end] = variables[name + end]
        aliases = []
    out = struct.pack("<I", version) + put("TransformerSpec") + struct.pack("<II", 7, len(variables))
    for name, (shape, kind, payload) in sorted(variables.items()):
        size = {0: 4, 1: 1, 2: 2, 3: 4}[kind]
        out += put(name) + struct.pack("<B", len(shape)) + b"".join(struct.pack("<I", n) for n in shape)
        out += struct.pack("<BI", kind, len(payload)) if version >= 4 else struct.pack("<BI", size, len(payload) // size)
        out += payload
    if version >= 3:
        out += struct.pack("<I", len(aliases)) + b"".join(put(a) + put(b) for a, b in aliases)
    (folder / "model.bin").write_bytes(out)
    (folder / "config.json").unlink()


def theirs(folder, lines, beam, how, **search):
    """search: settings of translate_batch in place of those that `ours` asks for."""
    spm = sentencepiece.SentencePieceProcessor(str(SPM))
    tokens = [spm.encode(line, out_type=str) for line in lines]
    tags, prefix = how.get("tags"), None
    if tags:
        tokens, prefix = [[tags[0]] + t for t in tokens], [[tags[1]]] * len(tokens)
    if "source_tag" in how:
        tokens = [[how["source_tag"]] + t for t in tokens]
    if how["eos"]:
        tokens = [t + ["</s>"] for t in tokens]
    translator = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=2)
    search = search or dict(length_penalty=0, max_decoding_length=LONGEST + bool(prefix), min_decoding_length=0)
    results = translator.translate_batch(tokens, target_prefix=prefix, beam_size=beam, return_scores=True, **search)
    first = 1 if prefix else 0
    return [(spm.decode_pieces(r.hypotheses[0][first:]), r.scores[0], len(r.hypotheses[0]) - first) for r in results]


def ours(program, model, lines, beam, how, *search):
    """Without a length penalty CTranslate2 stops when nothing that lives is better than what is finished: policy margin."""
    search = search or ("--length-penalty", "0", "--finish", "margin", "--margin", "0", "--max-length", str(LONGEST))
    command = [program, "translate", "-m", str(model), "--raw", "--precision", "f32", "-b", str(beam), "--scores", "-q", *search]
    if how.get("tags"):
        command += ["-s", code(how["tags"][0]), "-t", code(how["tags"][1])]
    if "target" in how:
        command += ["-t", how["target"]]
    run = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    return [line.rsplit(" ||| ", 1) for line in run.stdout.splitlines()]


def code(tag):
    return tag.strip("_") if tag.startswith("__") else tag.split("_")[0] if len(tag) == 5 else tag


def compare(name, program, folder, lines, beams, how):
    model = folder.parent / (folder.name + ".gguf")
    subprocess.run([program, "import", str(folder), "-o", str(model), "--type", "f32", "-q"], check=True)
    fine = True
    for beam in beams:  # as both programs search by default: nothing is empty, and what does not end is cut off alike
        a = ours(program, model, lines, beam, how, "--threads", "1")
        b = theirs(folder, lines, beam, how, length_penalty=1)
        same = [i for i in range(len(lines)) if a[i][0].strip() == b[i][0].strip()]
        off = max([abs(float(a[i][1]) - b[i][1]) / max(1, abs(b[i][1])) for i in same], default=0)
        good = len(same) >= 0.99 * len(lines) and off < 1e-3
        print(f"{name:24} beam {beam}: {len(same)} of {len(lines)} lines alike by default, scores within {off:.1e}"
              f"{'' if good else '  FAILED'}", flush=True)
        fine &= good
    for beam in beams:
        a, b = ours(program, model, lines, beam, how), theirs(folder, lines, beam, how)
        # What does not end is cut, by CTranslate2 without an end symbol and its score; and where a translation begins
        # with a language, its beam search finds no empty ones. Nothing to compare there.
        ended = [i for i in range(len(lines)) if b[i][2] < LONGEST and a[i][0].strip()]
        same = [i for i in ended if a[i][0].strip() == b[i][0].strip()]
        off = max([abs(float(a[i][1]) - b[i][1]) / max(1, abs(b[i][1])) for i in same], default=0)
        good = len(same) >= 0.99 * len(ended) and len(ended) >= min(200, 0.8 * len(lines)) and off < 1e-3
        words = sum(b[i][2] for i in ended) / max(1, len(ended))
        print(f"{name:24} beam {beam}: {len(same)} of {len(ended)} lines alike ({len(set(b[i][0] for i in ended))} "
              f"different ones, {words:.1f} tokens, {len(lines) - len(ended)} empty or without an end), scores within {off:.1e}"
              f"{'' if good else '  FAILED'}", flush=True)
        for i in [i for i in ended if i not in same][:0 if good else 3]:
            print("  line", i + 1, "\n    ours  ", a[i], "\n    theirs", b[i])
        fine &= good
    model.unlink()
    return fine


ENDS = {}  # what was found for a model


def save(make, folder, lines, variant):
    """The folder; the end as likely as it takes for most lines to end by themselves, and not at once."""
    def write(end):
        END[0] = end
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        spec, how = make()
        spec.validate()
        spec.optimize(quantization=variant if isinstance(variant, str) else None)
        spec.save(str(folder))
        return how

    def length(end):
        return sum(n for _, _, n in theirs(folder, lines[:20], 1, write(end))) / 20

    if make not in ENDS:
        low, high = -60.0, 60.0  # no line ends, every one does at once
        for _ in range(10):
            middle = (low + high) / 2
            low, high = (low, middle) if length(middle) < LONGEST / 4 else (middle, high)
        ENDS[make] = high
    how = write(ENDS[make])
    shutil.copy(SPM, folder / "sentencepiece.model")
    if isinstance(variant, int):
        older(folder, variant)
    return how


def golden(place, lines):
    """Folders with expected.json: for each beam a translation and its score a line."""
    SMALL.append(300)
    BART.update(d_model=16, encoder_ffn_dim=24, decoder_ffn_dim=20, encoder_layers=1)
    for name, variant in (("m2m", "float16"), ("mbart50", None), ("t5-gated", "float16"), ("opennmt-py", "int8")):
        folder = place / name
        how = save(MODELS[name], folder, lines, variant)
        (folder / "sentencepiece.model").unlink()
        expected = dict(tags=[code(tag) for tag in how["tags"]] if "tags" in how else None, target=how.get("target"),
                        longest=LONGEST, lines=lines)
        for beam in (1, 6):
            found = theirs(folder, lines, beam, how)
            expected[str(beam)] = [[text, round(score, 4)] if 0 < n < LONGEST else None for text, score, n in found]
            # Long ones of a beam meet many ties, and tables of positions that are no sinusoid end one word earlier here.
            most = 256 if beam == 1 and "tags" not in how else LONGEST - 1
            expected[f"{beam} by default"] = [[text, round(score, 4)] if n <= most else None for text, score, n
                                              in theirs(folder, lines, beam, how, length_penalty=1)]
            print(name, beam, sum(x is not None for x in expected[str(beam)]))
        (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=0) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build" / "dragoman"))
    parser.add_argument("--text", default=str(ROOT / "tests" / "data" / "translate" / "newstest2014-1000.en"))
    parser.add_argument("--lines", type=int, default=260)
    parser.add_argument("--beams", default="1,6")
    parser.add_argument("--keep", help="make the folders here, and leave them")
    parser.add_argument("--golden", help="make the goldens of tests/system/ctranslate2 here")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    if args.golden:
        golden(Path(args.golden), Path(args.text).read_text(encoding="utf-8").splitlines()[:40])
        return 0
    lines = Path(args.text).read_text(encoding="utf-8").splitlines()[:args.lines]
    beams = [int(b) for b in args.beams.split(",")]
    place = Path(args.keep or tempfile.mkdtemp())
    place.mkdir(exist_ok=True)
    fine = True
    for name, make in MODELS.items():
        variants = [None] + (TYPES + [5, 4, 3, 2] if name == "opennmt-py" else [])
        for variant in variants:
            full = f"{name}-{variant}" if variant else name
            if args.names and full not in args.names and name not in args.names:
                continue
            how = save(make, place / full, lines, variant)
            fine &= compare(full, args.program, place / full, lines, beams, how)
    if not args.keep:
        shutil.rmtree(place)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
