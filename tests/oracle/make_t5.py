# SPDX-License-Identifier: MIT
"""Small T5, T5 1.1, mT5, umT5 and MADLAD-like models as Hugging Face transformers computes them.

    make_t5.py FOLDER                        writes t5.json, t5.spm and madlad.spm there (tests/data/format)
    make_t5.py --parity PROGRAM TEXT         imports them and compares with transformers on 200 lines of TEXT, beams 1 and 6
    make_t5.py --folders FOLDER              writes the folders themselves

Weights are no random numbers but a formula of the tensor's name and the element's place (weight() below), so that the
golden holds none: tests/unit/test_format_t5.c writes the same folders, imports them and compares. For each model: config,
names and shapes of its tensors, for some sources logits of a few ids at every forced step, and for real lines the text that
beams 1 and 6 find, with scores. Goldens are computed in double precision; --parity in single, with random weights. Text is
encoded by the sentencepiece package, as T5's tokeniser was made; SentencePiece models are trained here on the lines themselves,
with bytes for what they lack. Needs torch, transformers and sentencepiece (PyPI).
"""
import argparse
import io
import json
import os
import subprocess
import sys
import tempfile

import sentencepiece
import torch
from safetensors.torch import save_file
from sentencepiece import sentencepiece_model_pb2 as spm_pb2
from transformers import (GenerationConfig, MT5Config, MT5ForConditionalGeneration, T5Config, T5ForConditionalGeneration,
                          UMT5Config, UMT5ForConditionalGeneration)

HERE = os.path.dirname(os.path.abspath(__file__))
TEXT = os.path.join(HERE, "..", "data", "translate", "newstest2014-1000.en")
SHAPE = dict(d_model=16, d_kv=6, d_ff=22, num_layers=2, num_decoder_layers=3, num_heads=3, relative_attention_num_buckets=8,
             relative_attention_max_distance=20, dropout_rate=0.0)
TAGS = ["<2de>", "<2fr>", "<2zh>", "<2zh_Hant>", "<2translate>"]
LENGTH = 24
ROW, END = 2, 4
MODELS = {
    "t5": (T5Config, T5ForConditionalGeneration, dict(feed_forward_proj="relu", tie_word_embeddings=True)),
    "t5-1.1": (T5Config, T5ForConditionalGeneration, dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
    "mt5": (MT5Config, MT5ForConditionalGeneration, dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
    "umt5": (UMT5Config, UMT5ForConditionalGeneration, dict(feed_forward_proj="gated-silu", tie_word_embeddings=True)),
    "madlad": (T5Config, T5ForConditionalGeneration, dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
}


def weight(name, shape, noise=None):
    """Exact in f16: multiples of 1/128 below 1/2, larger ones of embeddings, and those of </s> (ids 1 and 2) so large that
    sentences end; norms around 1 and -1: with one sign, a model with one embedding repeats its input."""
    h = 5
    for byte in name.encode():
        h = (h * 31 + byte) & 0xFFFFFFFF
    count = int(torch.tensor(shape).prod())
    x = [(((h + i * 2654435761) & 0xFFFFFFFF) * 2246822519 & 0xFFFFFFFF) >> 16 for i in range(count)]
    if noise is not None:                                   # the formula repeats itself: rows that tie
        x = torch.randint(1 << 16, (count,), generator=noise).tolist()
    values = [(v % 129 - 64) / 128.0 for v in x]
    if "layer_norm.weight" in name:
        values = [(1.0 + v / 2) * (1 if u & 1 else -1) for u, v in zip(x, values)]
    elif name in ("shared.weight", "lm_head.weight"):
        values = [v * (END if i // shape[1] in (1, 2) else ROW) for i, v in enumerate(values)]
    elif "relative" in name:
        values = [v * 4 for v in values]
    return torch.tensor(values, dtype=torch.float64).view(*shape)


def train_pieces(lines, madlad):
    """Bytes of a SentencePiece model: <pad> </s> <unk>, or <unk> <s> </s> and tags as MADLAD-400 has them."""
    out = io.BytesIO()
    ids = dict(unk_id=0, bos_id=1, eos_id=2, pad_id=-1, user_defined_symbols=TAGS) if madlad else \
        dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=390, model_type="unigram", byte_fallback=True,
        normalization_rule_name="identity", minloglevel=2, num_threads=1, hard_vocab_limit=False, **ids)
    model = spm_pb2.ModelProto.FromString(out.getvalue())
    for piece in model.pieces:
        if piece.piece in TAGS:
            piece.type, piece.score = 1, 0.0
    model.trainer_spec.ClearField("user_defined_symbols")
    model.trainer_spec.ClearField("input")
    return model.SerializeToString()


def head_apart(settings):
    return not settings["tie_word_embeddings"]


def make(name, pieces, noise=None):
    """The model in double precision, its config as the folder has it, names and shapes of its tensors."""
    config_class, model_class, settings = MODELS[name]
    ids = dict(eos_token_id=2, pad_token_id=1, decoder_start_token_id=0) if name == "madlad" else \
        dict(eos_token_id=1, pad_token_id=0, decoder_start_token_id=0)
    size = pieces + (5 if name != "madlad" else 0)          # rows of nobody, as T5's <extra_id_0>
    config = dict(SHAPE, model_type=config_class.model_type, vocab_size=size, **settings, **ids)
    model = model_class(config_class(**{k: v for k, v in config.items() if k != "model_type"})).double().eval()
    if head_apart(settings):                                # transformers 5 ties always
        model.lm_head.weight = torch.nn.Parameter(torch.zeros(size, SHAPE["d_model"], dtype=torch.float64))
    shapes = {}
    for key, parameter in model.state_dict().items():
        tied = key in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight") or \
            key == "lm_head.weight" and not head_apart(settings)
        if not tied:
            shapes[key] = list(parameter.shape)
            parameter.copy_(weight(key, parameter.shape, noise))
    special = [0, 1] if name == "madlad" else [0, 2]
    first = 8 if name == "madlad" else 3                    # of the bytes: those that are printed may come out
    bytes_out = {*range(first, first + 256)} - {*range(first + 33, first + 127)}
    generation = dict(ids, suppress_tokens=sorted({*special, *bytes_out, *range(pieces, size)}),
                      max_length=LENGTH, num_beams=4, length_penalty=1.0, early_stopping=False,
                      forced_eos_token_id=ids["eos_token_id"])
    return model, config, generation, shapes


def encode(pieces, name, text):
    return pieces.encode((f"<2fr> {text}" if name == "madlad" else text)) + [pieces.eos_id()]


def search(model, pieces, name, generation, lines, beams):
    """Texts and scores."""
    found = []
    for first in range(0, len(lines), 20):
        rows = [encode(pieces, name, line) for line in lines[first:first + 20]]
        width, pad = max(map(len, rows)), generation["pad_token_id"]
        ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        out = model.generate(input_ids=ids, attention_mask=mask, generation_config=GenerationConfig(**{
            **generation, "num_beams": beams, "return_dict_in_generate": True, "output_logits": True,
            "output_scores": True, "use_cache": False}))    # its caches want as many layers on both sides
        if beams == 1:                                      # over all words, as beams do
            steps = torch.stack(out.logits, 1).log_softmax(-1)
            totals = steps.gather(2, out.sequences[:, 1:, None])[..., 0]
            totals[:, LENGTH - 2:] = 0                      # the forced end
        for i, row in enumerate(out.sequences.tolist()):
            row = row[1:]
            length = row.index(pieces.eos_id()) + 1 if pieces.eos_id() in row else len(row)
            score = float(totals[i][:length].sum()) / length if beams == 1 else float(out.sequences_scores[i])
            words = [i for i in row[:length] if i not in (pieces.eos_id(), pad)]
            found.append([pieces.decode(words), round(score, 5)])
    return found


def describe(name, models, lines):
    pieces = sentencepiece.SentencePieceProcessor(model_proto=models[name == "madlad"])
    model, config, generation, shapes = make(name, pieces.get_piece_size())
    ids = list(range(0, config["vocab_size"], 13))
    entry = {"name": name, "config": config, "generation": generation, "tensors": shapes, "ids": ids, "runs": []}
    for line in (lines[0], lines[3]):
        source = encode(pieces, name, line)
        forced = [config["decoder_start_token_id"], 300, 270, 270, 311, 290, 280, 333]
        logits = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([forced])).logits[0]
        entry["runs"].append({"source": source, "forced": forced,
                              "logits": [[round(row[i], 5) for i in ids] for row in logits.tolist()]})
    for beams in (1, 6):
        entry[f"beam{beams}"] = search(model, pieces, name, generation, lines, beams)
    return entry


def write_folder(folder, name, models, noise=None, early_stopping=False, forced=True):
    os.makedirs(folder, exist_ok=True)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=models[name == "madlad"])
    model, config, generation, shapes = make(name, pieces.get_piece_size(), noise)
    generation["early_stopping"] = early_stopping
    if not forced:
        del generation["forced_eos_token_id"]
    for file, value in (("config.json", config), ("generation_config.json", generation)):
        with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
            json.dump(value, f)
    with open(os.path.join(folder, "spiece.model"), "wb") as f:
        f.write(models[name == "madlad"])
    held = model.state_dict()
    save_file({key: held[key].float().contiguous() for key in shapes}, os.path.join(folder, "model.safetensors"))
    return model, pieces, generation


def translate(program, folder, name, lines, beams):
    """Texts and scores of our program."""
    file = os.path.join(folder, "model.gguf")
    if not os.path.exists(file):
        subprocess.run([program, "import", "huggingface", folder, "-o", file], check=True, capture_output=True)
    direction = ["-t", "fr"] if name == "madlad" else []
    run = subprocess.run([program, "translate", "-m", file, "--raw", "--precision", "f32", "--beam", str(beams), "--scores",
                          "--no-protect", *direction], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return [line.rsplit(" ||| ", 1) for line in run.stdout.rstrip("\n").split("\n")]


def parity(program, path):
    with open(path, encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f][:200]
    models, bad = [train_pieces(lines, madlad) for madlad in (False, True)], 0
    with tempfile.TemporaryDirectory() as root:
        for name in MODELS:
            folder = os.path.join(root, name)
            model, pieces, generation = write_folder(folder, name, models, torch.Generator().manual_seed(1))
            model = model.float()
            for beams in (1, 6):
                theirs = search(model, pieces, name, generation, lines, beams)
                ours = translate(program, folder, name, lines, beams)
                same = [i for i, (a, b) in enumerate(zip(theirs, ours)) if a[0] == b[0]]
                off = max(abs(theirs[i][1] - float(ours[i][1])) for i in same)
                print(f"{name:8s} beam {beams}: {len(same)} of {len(lines)} lines the same, scores within {off:.1e}", flush=True)
                for i in sorted({*range(len(lines))} - {*same})[:3]:
                    print(f"    line {i + 1}: {theirs[i]}\n    ours:   {ours[i]}")
                bad += len(same) < 0.99 * len(lines) or off > 1e-3
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parity", nargs=2, metavar=("PROGRAM", "TEXT"))
    parser.add_argument("--folders", metavar="FOLDER")
    parser.add_argument("folder", nargs="?")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    if args.parity:
        return parity(*args.parity)
    with open(TEXT, encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f][:200]
    models = [train_pieces(lines, madlad) for madlad in (False, True)]
    if args.folders:
        for name in MODELS:
            write_folder(os.path.join(args.folders, name), name, models)
        return 0
    for name, data in zip(("t5.spm", "madlad.spm"), models):
        with open(os.path.join(args.folder, name), "wb") as f:
            f.write(data)
    short = sorted(lines, key=len)[20:28]
    golden = {"lines": short, "models": [describe(name, models, short) for name in MODELS]}
    with open(os.path.join(args.folder, "t5.json"), "w", encoding="utf-8") as f:
        json.dump(golden, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
