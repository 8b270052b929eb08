# SPDX-License-Identifier: MIT
"""make_hf_golden.py MODEL.gguf INPUT OUTPUT_PREFIX: what Hugging Face's own MarianMT makes of a model file of ours.

Builds a MarianMTModel with the (dequantised) weights of the file, translates INPUT at beams 4 and 1 in f32 with
transformers' generate, and writes OUTPUT_PREFIX.beam4 and .beam1. The model must be a post-norm Transformer with the
`sinusoid` positions, tied embeddings and SentencePiece, as MarianMT is. Needs torch, transformers, gguf and
sentencepiece from PyPI; `make test-long` runs it and compares with the committed goldens.
"""
import sys

import gguf
import numpy as np
import sentencepiece
import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel


class ModelFile:
    def __init__(self, path):
        self.reader = gguf.GGUFReader(path)
        self.tensors = {t.name: t for t in self.reader.tensors}

    def get(self, key, default=None):
        field = self.reader.get_field(key)
        return default if field is None else field.contents()

    def tensor(self, name):
        t = self.tensors[name]
        data = torch.from_numpy(np.array(t.data)).reshape(tuple(int(n) for n in reversed(t.shape)))
        scale = self.tensors.get(name + ".scale")
        data = data.float()
        return data * torch.from_numpy(np.array(scale.data))[:, None] if scale is not None else data


def load(path):
    f = ModelFile(path)
    key = "dragoman.transformer."
    assert f.get(key + "norm") == "post" and f.get(key + "positions") == "sinusoid", "not a MarianMT model"
    embed = f.tensor("src.embed")
    start = f.get("dragoman.target.start", -1)
    if start < 0:                                    # a zero start vector: one more row, never produced
        embed = torch.cat([embed, torch.zeros_like(embed[:1])])
        start = embed.shape[0] - 1
    bias = torch.zeros(embed.shape[0])
    if "out.bias" in f.tensors:
        given = f.tensor("out.bias")
        bias[:len(given)] = given
    if f.get("dragoman.target.start", -1) < 0:
        bias[start] = -1e9                           # not part of our softmax
    eos = f.get("dragoman.source.eos")
    config = MarianConfig(
        vocab_size=embed.shape[0], decoder_vocab_size=embed.shape[0], d_model=f.get(key + "d_model"),
        encoder_layers=f.get(key + "encoder_layers"), decoder_layers=f.get(key + "decoder_layers"),
        encoder_ffn_dim=f.get(key + "ffn"), decoder_ffn_dim=f.get(key + "ffn"),
        encoder_attention_heads=f.get(key + "heads"), decoder_attention_heads=f.get(key + "heads"),
        activation_function=f.get(key + "activation"), scale_embedding=bool(f.get(key + "scale_embedding", True)),
        max_position_embeddings=1024, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
        pad_token_id=start, eos_token_id=eos, bos_token_id=eos, decoder_start_token_id=start,
        forced_eos_token_id=eos, share_encoder_decoder_embeddings=True, tie_word_embeddings=True)
    model = MarianMTModel(config)
    state = {"model.shared.weight": embed, "final_logits_bias": bias[None]}
    names = {"self.q": "self_attn.q_proj", "self.k": "self_attn.k_proj", "self.v": "self_attn.v_proj",
             "self.o": "self_attn.out_proj", "self.norm": "self_attn_layer_norm", "cross.q": "encoder_attn.q_proj",
             "cross.k": "encoder_attn.k_proj", "cross.v": "encoder_attn.v_proj", "cross.o": "encoder_attn.out_proj",
             "cross.norm": "encoder_attn_layer_norm", "ffn.in": "fc1", "ffn.out": "fc2", "ffn.norm": "final_layer_norm"}
    for name in f.tensors:
        part = name.split(".")
        if part[0] in ("enc", "dec") and part[1].isdigit() and part[-1] in ("weight", "bias"):
            side = "encoder" if part[0] == "enc" else "decoder"
            state[f"model.{side}.layers.{part[1]}.{names['.'.join(part[2:-1])]}.{part[-1]}"] = f.tensor(name)
    result = model.load_state_dict(state, strict=False)
    assert not result.unexpected_keys, result.unexpected_keys
    model.tie_weights()
    return f, model.eval(), start, eos


def main(path, source, prefix):
    f, model, start, eos = load(path)
    pieces = sentencepiece.SentencePieceProcessor(
        model_proto=bytes(np.array(f.get("dragoman.source.vocab.sentencepiece"), np.uint8)))
    to_id = f.get("dragoman.source.vocab.map") or list(range(pieces.get_piece_size()))
    to_piece = {model_id: i for i, model_id in enumerate(to_id) if model_id >= 0}
    unk = f.get("dragoman.target.unk", f.get("dragoman.source.unk"))
    silent = {start, eos} | ({unk} if f.get("dragoman.decode.drop_unk", False) else set())
    forbid = [[start]] + ([] if f.get("dragoman.decode.allow_unk", False) else [[unk]])
    lines = open(source, encoding="utf8").read().split("\n")[:-1]
    for beam in (4, 1):
        settings = GenerationConfig(num_beams=beam, max_length=512, length_penalty=1.0, early_stopping=False,
                                    bad_words_ids=forbid, pad_token_id=start, eos_token_id=eos,
                                    decoder_start_token_id=start, forced_eos_token_id=eos)
        with open(f"{prefix}.beam{beam}", "w", encoding="utf8") as out:
            for line in lines:
                ids = torch.tensor([[to_id[i] for i in pieces.encode(line)] + [eos]])
                with torch.inference_mode():
                    y = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=settings)[0]
                out.write(pieces.decode([to_piece[i] for i in y.tolist() if i not in silent]) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
