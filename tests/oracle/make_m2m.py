# SPDX-License-Identifier: MIT
"""make_m2m.py OUTPUT.json: small M2M100, NLLB, NLLB-MoE and multi-target MarianMT models as Hugging Face transformers
computes them.

Weights are no random numbers but a formula of the tensor's name and the element's place (weight() below), so that the
golden holds none: tests/unit/test_format_m2m.c writes the same folder, imports it and compares. For each model: config,
names and shapes of its tensors, languages with their ids, and for a few directions the logits of every forced step and
the greedy output. Sizes are odd on purpose. Needs torch and transformers (PyPI).

transformers 5.22 sums experts by a mask of the first choice, as if it held numbers of experts: expert 0 and expert 1 get
every token. That is not what the model was trained as (fairseq; transformers up to 4.x): here every mixture is computed
as documented, sum over the two chosen experts of weight * expert(x), times 1 - moe_token_dropout.
"""
import json
import os
import struct
import sys
import tempfile

import torch
from transformers import (M2M100Config, M2M100ForConditionalGeneration, MarianConfig, MarianMTModel, MarianTokenizer,
                          NllbMoeConfig, NllbMoeForConditionalGeneration)
from transformers.models.m2m_100 import tokenization_m2m_100
from transformers.models.nllb_moe import modeling_nllb_moe

PIECES = ["<unk>", "<s>", "</s>", "▁", *"abcdefghijklmnop", "▁ab", "▁cd", "ef", "gh", "▁no", "kl"]
SHAPE = dict(d_model=12, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3, decoder_attention_heads=3,
             encoder_ffn_dim=10, decoder_ffn_dim=14, max_position_embeddings=64, pad_token_id=1, bos_token_id=0,
             eos_token_id=2, decoder_start_token_id=2, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
             encoder_layerdrop=0.0, decoder_layerdrop=0.0)
OPUS = ["deu", "fra", "zho_Hans", "zho_Hant"]       # targets; tokens ">>deu<<" of vocab.json, ids not in this order
NLLB = ["deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant"]


def weight(name, shape):
    """Exact in f16: multiples of 1/128 below 1/2, norms around 1."""
    h = 5
    for byte in name.encode():
        h = (h * 31 + byte) & 0xFFFFFFFF
    count = int(torch.tensor(shape).prod())
    x = [(((h + i * 2654435761) & 0xFFFFFFFF) * 2246822519 & 0xFFFFFFFF) >> 16 for i in range(count)]
    values = [(v % 129 - 64) / 128.0 for v in x]
    if "layer_norm.weight" in name:
        values = [1.0 + v / 2 for v in values]
    elif name == "model.shared.weight":
        values = [v * 2 for v in values]
    return torch.tensor(values, dtype=torch.float64).view(*shape)


def mixture(self, hidden_states, padding_mask=None):
    """NllbMoeSparseMLP.forward as documented."""
    shape = hidden_states.shape
    rows = hidden_states.reshape(-1, shape[-1])
    _, weights, _ = self.router(rows, None)
    total = torch.zeros_like(rows)
    for number in range(self.num_experts):
        total = total + weights[:, number:number + 1] * self.experts[f"expert_{number}"](rows)
    return (total * (1 - self.experts.moe_token_dropout)).reshape(shape)


def fill(model, biases=1.0):
    shapes = {}
    for name, parameter in model.state_dict().items():
        if name in ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight") or \
                "embed_positions" in name or name == "final_logits_bias":
            continue
        shapes[name] = list(parameter.shape)
        parameter.copy_(weight(name, parameter.shape) * (biases if name.endswith(".bias") else 1.0))
    return shapes


def run(model, source, target):
    out = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target]))
    return [[round(v, 6) for v in row] for row in out.logits[0].tolist()]


def greedy(model, source, language, most=12):
    ids = [2, language]
    for _ in range(most):
        logits = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([ids])).logits[0, -1]
        ids.append(int(logits.argmax()))
        if ids[-1] == 2:
            break
    return ids[2:]


def describe(name, model, config, codes, first, legacy, directions):
    model = model.double().eval()
    if config["model_type"] == "nllb-moe":
        for module in model.modules():
            if isinstance(module, modeling_nllb_moe.NllbMoeTop2Router):
                module.dtype = torch.float64
    shapes = fill(model)
    entry = {"name": name, "config": config, "tensors": shapes, "legacy": legacy,
             "languages": [[code, first + i] for i, code in enumerate(codes)], "runs": []}
    text = [7, 11, 4, 19, 24, 9]
    for source, target in directions:
        s, t = first + codes.index(source), first + codes.index(target)
        ids = text + [2, s] if legacy else [s] + text + [2]
        forced = [2, t, 8, 21, 5]
        entry["runs"].append({"source": source, "target": target, "ids": ids, "forced": forced,
                              "logits": run(model, ids, forced), "greedy": greedy(model, ids, t)})
    return entry


def piece_file():
    """The SentencePiece model that the test writes: spelling, score, kind of every piece."""
    out = b""
    for i, text in enumerate(PIECES):
        piece = text.encode()
        body = b"\x0a" + bytes([len(piece)]) + piece + b"\x15" + struct.pack("<f", -i) + b"\x18" + \
            bytes([2 if i == 0 else 3 if i < 3 else 1])
        out += b"\x0a" + bytes([len(body)]) + body
    return out


def describe_opus():
    """A MarianMT model to many languages: through its tokeniser and generate, from text to text."""
    vocab = {"</s>": 0, "<unk>": 1}
    tokens = {f">>{code}<<": 2 + i for i, code in enumerate(reversed(OPUS))}
    vocab.update(tokens)
    vocab.update({piece: len(vocab) + i for i, piece in enumerate(reversed(PIECES[3:]))})
    vocab["<pad>"] = pad = len(vocab)
    config = dict(SHAPE, model_type="marian", vocab_size=len(vocab), activation_function="swish", scale_embedding=True,
                  pad_token_id=pad, bos_token_id=0, eos_token_id=0, decoder_start_token_id=pad, forced_eos_token_id=0,
                  bad_words_ids=[[pad]], num_beams=1, max_length=14)
    model = MarianMTModel(MarianConfig(**{k: v for k, v in config.items()
                                          if k not in ("model_type", "bad_words_ids", "num_beams", "max_length")}))
    model = model.double().eval()
    shapes, runs = fill(model, 1 / 64), []               # post-norm: large ones would drown what is said
    with tempfile.TemporaryDirectory() as folder:
        for name in ("source.spm", "target.spm"):
            with open(os.path.join(folder, name), "wb") as f:
                f.write(piece_file())
        with open(os.path.join(folder, "vocab.json"), "w", encoding="utf-8") as f:
            json.dump(vocab, f)
        tokenizer = MarianTokenizer(*(os.path.join(folder, name) for name in ("source.spm", "target.spm", "vocab.json")),
                                    source_lang="eng", target_lang="mul")
        for code, text in zip(OPUS, ("ab cd no efgh ilm", "klm no p", "ab cd no efgh ilm", "gh gh ab")):
            ids = tokenizer([f">>{code}<< {text}"])["input_ids"][0]
            forced = [pad, 8, 21, 5]
            found = model.generate(torch.tensor([ids]), num_beams=1, do_sample=False, max_length=14,
                                   bad_words_ids=[[pad]], forced_eos_token_id=0)[0].tolist()
            runs.append({"target": code, "text": text, "ids": ids, "forced": forced, "logits": run(model, ids, forced),
                         "greedy": found[1:], "out": tokenizer.decode(found, skip_special_tokens=True)})
    return {"config": config, "vocab": vocab, "tensors": shapes, "runs": runs,
            "languages": [[code, tokens[f">>{code}<<"]] for code in OPUS]}


def main():
    torch.manual_seed(0)
    modeling_nllb_moe.NllbMoeSparseMLP.forward = mixture
    vocab = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    vocab.update({piece: 4 + i for i, piece in enumerate(reversed(PIECES[3:]))})    # not in the pieces' order
    codes = tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES["m2m100"]
    found = []
    with torch.no_grad():
        size = len(vocab) + len(codes) + 3
        config = dict(SHAPE, model_type="m2m_100", vocab_size=size, activation_function="relu", scale_embedding=True)
        model = M2M100ForConditionalGeneration(M2M100Config(**{k: v for k, v in config.items() if k != "model_type"}))
        found.append(describe("m2m100", model, config, codes, len(vocab), False, [("en", "de"), ("zu", "af")]))
        first = len(PIECES) + 1
        config = dict(SHAPE, model_type="m2m_100", vocab_size=first + len(NLLB) + 2, activation_function="gelu",
                      scale_embedding=False)
        model = M2M100ForConditionalGeneration(M2M100Config(**{k: v for k, v in config.items() if k != "model_type"}))
        found.append(describe("nllb-legacy", model, config, NLLB, first, True, [("eng_Latn", "deu_Latn")]))
        config = dict(SHAPE, model_type="nllb-moe", vocab_size=first + len(NLLB) + 1, activation_function="relu",
                      scale_embedding=True, num_experts=5, encoder_sparse_step=2, decoder_sparse_step=1,
                      moe_token_dropout=0.2, router_bias=True, moe_eval_capacity_token_fraction=1.0)
        model = NllbMoeForConditionalGeneration(
            NllbMoeConfig(**{k: v for k, v in config.items() if k != "model_type"}))
        found.append(describe("nllb-moe", model, config, NLLB, first, False,
                              [("eng_Latn", "deu_Latn"), ("zho_Hant", "fra_Latn")]))
        opus = describe_opus()
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        json.dump({"pieces": PIECES, "vocab": vocab, "models": found, "opus": opus}, f, ensure_ascii=False, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
