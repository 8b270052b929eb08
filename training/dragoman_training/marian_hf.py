# SPDX-License-Identifier: MIT
"""Reads a Hugging Face MarianMT folder (config.json, *.safetensors, source.spm) into our Transformer.

Only what distillation needs: a teacher in that format. The <pad> row, which Marian uses as the decoder's start symbol,
becomes our `start` parameter when it is not zero; it takes no part in the output.
"""
import glob
import json
import os

from .transformer import Transformer, TransformerConfig

ACTIVATION = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}


def config_of(values, learned_start):
    pad = values["pad_token_id"]
    return TransformerConfig(
        vocab_size=pad, d_model=values["d_model"], ffn_dim=values["encoder_ffn_dim"],
        heads=values["encoder_attention_heads"], encoder_layers=values["encoder_layers"],
        decoder_layers=values["decoder_layers"], norm="post", activation=ACTIVATION[values["activation_function"]],
        positions="sinusoidal", tied="all", scale_embedding=values["scale_embedding"],
        start="learned" if learned_start else "zero", max_positions=values["max_position_embeddings"], dropout=0.0)


def rename(ours):
    """Our parameter name -> Hugging Face's."""
    if ours == "output_bias":
        return "final_logits_bias"
    stack, layer, rest = ours.split(".", 2)
    for a, b in (("self_attn.", "self_attn."), ("cross_attn.", "encoder_attn."), ("self_norm", "self_attn_layer_norm"),
                 ("cross_norm", "encoder_attn_layer_norm"), ("ffn_norm", "final_layer_norm")):
        if rest.startswith(a):
            rest = b + rest[len(a):]
            break
    for a in "qkv":
        rest = rest.replace(f"attn.{a}.", f"attn.{a}_proj.")
    rest = rest.replace("attn.o.", "attn.out_proj.")
    return f"model.{stack}.layers.{layer}.{rest}"


def load(folder):
    from safetensors.torch import load_file
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        values = json.load(f)
    tensors = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        tensors.update(load_file(path))
    pad, shared = values["pad_token_id"], tensors["model.shared.weight"].float()
    model = Transformer(config_of(values, bool(shared[pad].abs().sum() > 0)))
    state = {"embedding": shared[:pad]}
    if model.config.start == "learned":
        state["start"] = shared[pad]
    for name in model.state_dict():
        if name not in state:
            state[name] = tensors[rename(name)].float()
    state["output_bias"] = state["output_bias"].reshape(-1)[:pad]
    model.load_state_dict(state)
    return model.eval()
