# SPDX-License-Identifier: MIT
"""make_imports.py FOLDER [CASE...]: tiny models of other programs with random weights, and what those programs make of 200 lines.

For each case FOLDER/CASE has the files that the program would have, and CASE.beam1 and CASE.beam6 a line per source line:
log-probability of the translation with its end symbol, a tab, the translation. tests/unit/test_import_parity.c imports
the folders and compares. The lines are FOLDER/lines.en.

MarianMT, mBART and FSMT are computed by Hugging Face transformers. fairseq and OpenNMT-py are not needed: their files are
written by torch with the names that their modules have, and computed by the small Transformer at the end of this file.
Needs torch, transformers and sentencepiece (PyPI); sacremoses for FSMT.
"""
import json
import math
import os
import shutil
import sys

import sentencepiece
import torch

LENGTH = 24                                          # longest translation in tokens of theirs
SHAPE = dict(d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
             encoder_ffn_dim=24, decoder_ffn_dim=20, max_position_embeddings=160, dropout=0.0, attention_dropout=0.0,
             activation_dropout=0.0, encoder_layerdrop=0.0, decoder_layerdrop=0.0)


def randomise(model, seed, scale=0.35):
    """Weights that make a model say something; norms around 1. Exact in f16, so that files may be small."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape) * scale
            if "norm" in name and name.endswith("weight"):
                noise = 1 + noise / 4
            elif name.endswith("bias"):
                noise = noise / 4
            p.copy_(noise.half().float())
    return model.eval()


def pieces_model(folder, lines, name, size=120):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=os.path.join(folder, "pieces"), vocab_size=size,
        normalization_rule_name="identity", minloglevel=2, num_threads=1, hard_vocab_limit=False)
    os.remove(os.path.join(folder, "pieces.vocab"))
    path = os.path.join(folder, name)
    os.replace(os.path.join(folder, "pieces.model"), path)
    return sentencepiece.SentencePieceProcessor(model_file=path)


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf8") as f:
        json.dump(value, f, ensure_ascii=False, indent=0)


def padded(rows, pad):
    width = max(map(len, rows))
    return torch.tensor([r + [pad] * (width - len(r)) for r in rows])


def translate(folder, case, lines, encode, decode, model, forced=0, **settings):
    """By transformers' generate; `forced`: tokens behind the start symbol that no translation may choose."""
    eos, pad = model.config.eos_token_id, model.config.pad_token_id
    for beam in (1, 6):
        with open(os.path.join(folder, f"{case}.beam{beam}"), "w", encoding="utf8") as out:
            for at in range(0, len(lines), 50):
                sources = [encode(line) for line in lines[at:at + 50]]
                ids = padded(sources, pad)
                mask = padded([[1] * len(s) for s in sources], 0)
                with torch.inference_mode():
                    y = model.generate(ids, attention_mask=mask, num_beams=beam, do_sample=False, **settings)
                    logits = model(input_ids=ids, attention_mask=mask, decoder_input_ids=y[:, :-1]).logits
                scores = logits.double().log_softmax(-1).gather(2, y[:, 1:, None])[:, :, 0]
                for row, score in zip(y.tolist(), scores):
                    end = row.index(eos, 1 + forced) if eos in row[1 + forced:] else len(row) - 1
                    # An end symbol at the maximum length was forced and counts nothing; our search that stops early counts it.
                    counted = end - 1 if end == settings["max_length"] - 1 and not settings["early_stopping"] else end
                    out.write(f"{score[forced:counted].sum().item():.5f}\t{decode(row[1:end + 1])}\n")


# ---- MarianMT ------------------------------------------------------------------------------------------------------------

def marian(folder, case, lines, seed, pickled=None, **changes):
    from transformers import GenerationConfig, MarianConfig, MarianMTModel
    where = os.path.join(folder, case)
    os.makedirs(where)
    pieces = pieces_model(where, lines, "source.spm")
    shutil.copy(os.path.join(where, "source.spm"), os.path.join(where, "target.spm"))
    spelled = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    vocab = {"</s>": 0, "<unk>": 1}
    for piece in spelled[3:]:
        vocab[piece] = len(vocab)
    vocab["<pad>"] = len(vocab)
    write_json(where, "vocab.json", vocab)
    write_json(where, "tokenizer_config.json", {"source_lang": "eng", "target_lang": "deu"})
    pad = vocab["<pad>"]
    config = MarianConfig(vocab_size=len(vocab), decoder_vocab_size=len(vocab), pad_token_id=pad, eos_token_id=0,
                          decoder_start_token_id=pad, forced_eos_token_id=0, scale_embedding=True,
                          **{"activation_function": "swish", **SHAPE, **changes})
    model = randomise(MarianMTModel(config), seed)
    with torch.no_grad():
        model.final_logits_bias.copy_(torch.randn(1, len(vocab)).half().float() / 4)
        model.final_logits_bias[0, 0] -= 2           # not every translation is empty
        if "positions" not in case:                  # else they stay random
            for side in (model.model.encoder, model.model.decoder):
                side.embed_positions.weight.copy_(sinusoid(config.max_position_embeddings, config.d_model))
    settings = dict(max_length=LENGTH, bad_words_ids=[[pad]], length_penalty=1.0, early_stopping=False)
    model.generation_config = GenerationConfig(pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad,
                                               forced_eos_token_id=0, num_beams=6, **settings)
    save(model, where, pickled)
    inverse = {number: piece for piece, number in vocab.items()}
    translate(folder, case, lines, lambda line: [vocab.get(p, 1) for p in pieces.encode(line, out_type=str)] + [0],
              lambda ids: pieces.decode([inverse[i] for i in ids if i not in (0, 1, pad)]), model, **settings)


def sinusoid(rows, d):
    angle = torch.arange(rows)[:, None].double() / 10000 ** (2 * torch.arange(d // 2).double() / d)
    return torch.cat([angle.sin(), angle.cos()], 1).float()


def save(model, where, pickled):
    """Half precision holds what randomise made. pickled: None for safetensors, "odd" for safetensors in double precision
    with names as MarianModel has them, else whether in torch's new layout."""
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(where)
    model.generation_config.save_pretrained(where)
    tied = model.config.tie_word_embeddings
    state = {}
    for name, value in model.state_dict().items():
        if tied and name in ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"):
            continue
        exact = torch.equal(value.half().float(), value)
        state[name] = (value.half() if exact else value).clone().contiguous()
    if pickled == "odd":
        state = {name.removeprefix("model."): value.double() for name, value in state.items()}
    if pickled in (None, "odd"):
        from safetensors.torch import save_file
        save_file(state, os.path.join(where, "model.safetensors"), metadata={"format": "pt"})
    else:
        torch.save(state, os.path.join(where, "pytorch_model.bin"), _use_new_zipfile_serialization=pickled)


# ---- mBART ---------------------------------------------------------------------------------------------------------------

def mbart(folder, case, lines, seed, fifty):
    from transformers import GenerationConfig, MBartConfig, MBartForConditionalGeneration
    where = os.path.join(folder, case)
    os.makedirs(where)
    pieces = pieces_model(where, lines, "sentencepiece.bpe.model")
    count = pieces.get_piece_size()
    codes = ["de_DE", "en_XX", "fr_XX"]
    number = {code: count + 1 + i for i, code in enumerate(codes)}
    size = count + 1 + len(codes) + 1                # and <mask>
    write_json(where, "special_tokens_map.json", {"additional_special_tokens": codes, "mask_token": "<mask>"})
    write_json(where, "tokenizer_config.json", {"tokenizer_class": "MBart50Tokenizer" if fifty else "MBartTokenizer"})
    start = 2 if fifty else number["de_DE"]
    config = MBartConfig(vocab_size=size, scale_embedding=fifty, activation_function="gelu" if fifty else "relu",
                         pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=start,
                         forced_eos_token_id=2, **SHAPE)
    model = randomise(MBartForConditionalGeneration(config), seed)
    model.final_logits_bias[0, 2] = 2                # most translations end before the limit, where searches differ
    settings = dict(max_length=LENGTH, length_penalty=1.0, early_stopping=not fifty)
    model.generation_config = GenerationConfig(pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=start,
                                               forced_eos_token_id=2, num_beams=5, **settings)
    save(model, where, True)
    text = [2 if i == 2 else 3 if i == 0 else 0 if i == 1 else i + 1 for i in range(count)]

    def encode(line):
        ids = [text[i] for i in pieces.encode(line)]
        return [number["en_XX"], *ids, 2] if fifty else [*ids, 2, number["en_XX"]]

    more = {"forced_bos_token_id": number["de_DE"]} if fifty else {}
    translate(folder, case, lines, encode, lambda ids: pieces.decode([i - 1 for i in ids if 4 <= i <= count]), model,
              1 if fifty else 0, **settings, **more)


CASES = {
    "marian-untied": lambda f, c, l: marian(f, c, l, 1, tie_word_embeddings=False),
    "marian-positions": lambda f, c, l: marian(f, c, l, 2, pickled=False),
    "marian-odd": lambda f, c, l: marian(f, c, l, 9, pickled="odd", decoder_attention_heads=2, activation_function="tanh"),
    "mbart-50": lambda f, c, l: mbart(f, c, l, 8, True),
    "mbart": lambda f, c, l: mbart(f, c, l, 4, False),
}


def main(folder, *chosen):
    torch.set_num_threads(1)
    with open(os.path.join(folder, "lines.en"), encoding="utf8") as f:
        lines = f.read().split("\n")[:-1]
    for case in chosen or CASES:
        shutil.rmtree(os.path.join(folder, case), ignore_errors=True)
        CASES[case](folder, case, lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
