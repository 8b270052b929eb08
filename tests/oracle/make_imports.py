# SPDX-License-Identifier: MIT
"""make_imports.py FOLDER [CASE...]: tiny models of other programs with random weights, and what those programs make of 200 lines.

For each case FOLDER/CASE has the files that the program would have, and CASE.beam1 and CASE.beam6 a line per source line:
log-probability of the translation with its end symbol, a tab, the translation. tests/unit/test_import_parity.c imports
the folders and compares; tests/data/import has the translations packed (gzip -9n *.beam?). The lines are FOLDER/lines.en.
`scripts/test_data pack import` puts what was copied there into its archive.

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


def translate(folder, case, lines, encode, decode, model, forced=0, beams=(1, 6), **settings):
    """By transformers' generate; `forced`: tokens behind the start symbol that no translation may choose."""
    eos, pad = model.config.eos_token_id, model.config.pad_token_id
    cut_off_ends = model.generation_config.forced_eos_token_id is not None
    for beam in beams:
        with open(os.path.join(folder, f"{case}.beam{beam}"), "w", encoding="utf8") as out:
            for at in range(0, len(lines), 50):
                sources = [encode(line) for line in lines[at:at + 50]]
                ids = padded(sources, pad)
                mask = padded([[1] * len(s) for s in sources], 0)
                with torch.inference_mode():
                    y = model.generate(ids, attention_mask=mask, num_beams=beam, do_sample=False, **settings)
                    logits = model(input_ids=ids, attention_mask=mask, decoder_input_ids=y[:, :-1], use_cache=False).logits
                scores = logits.double().log_softmax(-1).gather(2, y[:, 1:, None])[:, :, 0]
                for row, score in zip(y.tolist(), scores):
                    end = row.index(eos, 1 + forced) if eos in row[1 + forced:] else len(row) - 1
                    # An end symbol at the maximum length was forced and counts nothing.
                    counted = end - 1 if end == settings["max_length"] - 1 and cut_off_ends else end
                    out.write(f"{score[forced:counted].sum().item():.5f}\t{decode(row[1:end + 1])}\n")


# ---- MarianMT ------------------------------------------------------------------------------------------------------------

def fast_tokenizer(where, pieces, vocab):
    """The SentencePiece model and vocab.json of a folder as tokenizer.json, as OPUS-MT's conversions for browsers have it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    spelled = {pieces.id_to_piece(i): pieces.get_score(i) for i in range(pieces.get_piece_size())}
    lowest = min(spelled.values()) - 10
    fast = Tokenizer(models.Unigram([(piece, spelled.get(piece, lowest) if piece not in ("</s>", "<unk>") else 0.0)
                                     for piece in vocab], unk_id=1))
    fast.pre_tokenizer = pre_tokenizers.Metaspace()
    fast.decoder = decoders.Metaspace()
    fast.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 0)])
    fast.add_special_tokens(["</s>", "<unk>", "<pad>"])
    fast.save(os.path.join(where, "tokenizer.json"))
    for name in ("source.spm", "target.spm", "vocab.json"):
        os.remove(os.path.join(where, name))
    return fast


def marian(folder, case, lines, seed, pickled=None, fast=False, **changes):
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
    if fast:
        tokenizer = fast_tokenizer(where, pieces, vocab)
        translate(folder, case, lines, lambda line: tokenizer.encode(line).ids, tokenizer.decode, model, **settings)
        return
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

def mbart(folder, case, lines, seed, fifty, early=None, forced_end=2, more_ends=2, beams=(1, 6)):
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
                         forced_eos_token_id=forced_end, **SHAPE)
    model = randomise(MBartForConditionalGeneration(config), seed)
    model.final_logits_bias[0, 2] = more_ends        # most translations end before the limit
    settings = dict(max_length=LENGTH, length_penalty=1.0, early_stopping=not fifty if early is None else early)
    model.generation_config = GenerationConfig(pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=start,
                                               forced_eos_token_id=forced_end, num_beams=5, **settings)
    save(model, where, True)
    text = [2 if i == 2 else 3 if i == 0 else 0 if i == 1 else i + 1 for i in range(count)]

    def encode(line):
        ids = [text[i] for i in pieces.encode(line)]
        return [number["en_XX"], *ids, 2] if fifty else [*ids, 2, number["en_XX"]]

    more = {"forced_bos_token_id": number["de_DE"]} if fifty else {}
    translate(folder, case, lines, encode, lambda ids: pieces.decode([i - 1 for i in ids if 4 <= i <= count]), model,
              1 if fifty else 0, beams, **settings, **more)


# ---- FSMT ----------------------------------------------------------------------------------------------------------------

def learn_merges(lines, count):
    """Byte-pair encoding as fastBPE learns it, with "</w>" on the last letter."""
    words = {}
    for line in lines:
        for word in line:
            key = tuple(word[:-1]) + (word[-1] + "</w>",)
            words[key] = words.get(key, 0) + 1
    merges = []
    for _ in range(count):
        pairs = {}
        for word, n in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] = pairs.get(pair, 0) + n
        best = max(sorted(pairs), key=lambda p: pairs[p])
        merges.append(best)
        after = {}
        for word, n in words.items():
            out, i = [], 0
            while i < len(word):
                both = word[i:i + 2] == best
                out.append("".join(word[i:i + 2]) if both else word[i])
                i += 2 if both else 1
            after[tuple(out)] = after.get(tuple(out), 0) + n
        words = after
    return merges, sorted({symbol for word in words for symbol in word})


def fsmt(folder, case, lines, seed):
    from transformers import FSMTConfig, FSMTForConditionalGeneration, FSMTTokenizer, GenerationConfig
    import sacremoses
    where = os.path.join(folder, case)
    os.makedirs(where)
    moses = sacremoses.MosesTokenizer(lang="en")
    merges, symbols = learn_merges([moses.tokenize(line, aggressive_dash_splits=True, escape=True) for line in lines], 80)
    parts = sorted({part for merge in merges for part in ("".join(merge), *merge)} | set(symbols))
    sizes = []
    for name, tokens in (("src", parts), ("tgt", parts[::-1][:len(parts) * 4 // 5])):
        write_json(where, f"vocab-{name}.json", {t: i for i, t in enumerate(["<s>", "<pad>", "</s>", "<unk>", *tokens])})
        sizes.append(len(tokens) + 4)
    with open(os.path.join(where, "merges.txt"), "w", encoding="utf8") as f:
        f.writelines(f"{a} {b}\n" for a, b in merges)
    write_json(where, "tokenizer_config.json", {"langs": ["en", "de"], "do_lower_case": False})
    config = FSMTConfig(langs=["en", "de"], src_vocab_size=sizes[0], tgt_vocab_size=sizes[1], **{**SHAPE, "encoder_ffn_dim": 20})
    model = randomise(FSMTForConditionalGeneration(config), seed)
    with torch.no_grad():
        for side in (model.model.encoder, model.model.decoder):
            table = fairseq_sinusoid(side.embed_positions.weight.shape[0], config.d_model)
            table[1] = 0
            side.embed_positions.weight.copy_(table)
    settings = dict(max_length=LENGTH, length_penalty=1.15, early_stopping=False)
    model.generation_config = GenerationConfig(pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2,
                                               forced_eos_token_id=2, num_beams=5, **settings)
    save(model, where, True)
    tokenizer = FSMTTokenizer(langs=["en", "de"], src_vocab_file=os.path.join(where, "vocab-src.json"),
                              tgt_vocab_file=os.path.join(where, "vocab-tgt.json"),
                              merges_file=os.path.join(where, "merges.txt"))
    translate(folder, case, lines, lambda line: tokenizer(line).input_ids,
              lambda ids: tokenizer.decode(ids, skip_special_tokens=True), model, **settings)


# ---- a Transformer of our own, for fairseq and OpenNMT-py ----------------------------------------------------------------

class Net:
    """weights: our names -> tensors, as docs/internals/FORMAT.md has them."""

    def __init__(self, weights, heads, pre, act, table, eps, scale, offset):
        self.w, self.heads, self.pre, self.act, self.table = weights, heads, pre, act, table
        self.eps, self.scale, self.offset = eps, scale, offset

    def linear(self, name, x):
        bias = self.w.get(name + ".bias")
        return torch.nn.functional.linear(x, self.w[name + ".weight"], bias)

    def norm(self, name, x):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self.w[name + ".weight"], self.w[name + ".bias"], self.eps)

    def attention(self, name, side, x, y, causal):
        heads = self.heads[side]
        q, k, v = (self.linear(f"{name}.{p}", z).unflatten(-1, (heads, -1)).transpose(-2, -3)
                   for p, z in (("q", x), ("k", y), ("v", y)))
        a = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if causal:
            a = a.masked_fill(torch.ones(a.shape[-2:]).triu(1).bool(), -math.inf)
        return self.linear(name + ".o", (a.softmax(-1) @ v).transpose(-2, -3).flatten(-2))

    def sublayer(self, name, x, f):
        if self.pre:
            return x + f(self.norm(name + ".norm", x))
        return self.norm(name + ".norm", x + f(x))

    def embed(self, side, ids):
        table = self.table[side]
        x = self.w[("src" if side == 0 else "tgt") + ".embed"][ids] * self.scale
        x = x + table[self.offset:self.offset + ids.shape[-1]]
        name = ("enc", "dec")[side] + ".embed_norm"
        return self.norm(name, x) if name + ".weight" in self.w else x

    def stack(self, side, x, memory=None):
        name, layer = ("enc", "dec")[side], 0
        while f"{name}.{layer}.ffn.in.weight" in self.w:
            p = f"{name}.{layer}"
            x = self.sublayer(p + ".self", x, lambda z: self.attention(p + ".self", side, z, z, side == 1))
            if side:
                x = self.sublayer(p + ".cross", x, lambda z: self.attention(p + ".cross", 1, z, memory, False))
            x = self.sublayer(p + ".ffn", x, lambda z: self.linear(p + ".ffn.out", self.act(self.linear(p + ".ffn.in", z))))
            layer += 1
        return self.norm(name + ".norm", x) if name + ".norm.weight" in self.w else x

    def encode(self, ids):
        return self.stack(0, self.embed(0, torch.tensor([ids])))

    def last(self, memory, rows):
        """Log-probabilities behind each of some beginnings."""
        x = self.stack(1, self.embed(1, torch.tensor(rows)), memory.expand(len(rows), -1, -1))[:, -1]
        return self.linear("out", x).double().log_softmax(-1)


def search(net, source, start, eos, never, beam, longest, penalty, exact):
    """fairseq's search ends when as many hypotheses are finished as the beam has places; exact: when no live one can pass."""
    memory = net.encode(source)
    live, finished = [(0.0, [start])], []
    for length in range(longest + 1):
        lp = net.last(memory, [tokens for _, tokens in live])
        for i in never:
            lp[:, i] = -math.inf
        if length == longest:
            finished += [(total + lp[i, eos].item(), tokens) for i, (total, tokens) in enumerate(live)]
            break
        sums = lp + torch.tensor([total for total, _ in live])[:, None].double()
        best, at = sums.flatten().topk(2 * beam)
        after = []
        for rank, (total, place) in enumerate(zip(best.tolist(), at.tolist())):
            row, token = divmod(place, lp.shape[1])
            if token != eos:
                after.append((total, live[row][1] + [token]))
            elif rank < beam:
                finished.append((total, live[row][1]))
        live = after[:beam]
        if (finished and max(finished)[0] >= live[0][0]) if exact else len(finished) >= beam:
            break
    return max(finished, key=lambda f: f[0] / len(f[1]) ** penalty)


def translate_net(folder, case, lines, net, encode, decode, start, eos, never, longest, penalty, exact):
    for beam in (1, 6):
        with open(os.path.join(folder, f"{case}.beam{beam}"), "w", encoding="utf8") as out, torch.inference_mode():
            for line in lines:
                total, tokens = search(net, encode(line), start, eos, never, beam, longest, penalty, exact)
                out.write(f"{total:.5f}\t{decode(tokens[1:])}\n")


def random_weights(seed, sizes, d, ffn, layers, norms, tied, bias=None):
    """Weights of a Transformer under our names. sizes: of the vocabularies; norms: more than those of sub-layers."""
    torch.manual_seed(seed)
    w = {}

    def add(name, *shape):
        noise = torch.randn(shape) * 0.35
        noise = 1 + noise / 4 if "norm.weight" in name else noise / 4 if name.endswith("bias") else noise
        w[name] = noise.half().float()

    def layer(name, rows, cols):
        add(name + ".weight", rows, cols)
        add(name + ".bias", rows)

    add("src.embed", sizes[0], d)
    add("tgt.embed", sizes[1], d)
    add("out.weight", sizes[1], d)
    if tied:
        w["out.weight"] = w["tgt.embed"]
    if tied == "all":
        w["tgt.embed"] = w["out.weight"] = w["src.embed"]
    if bias is not None:
        add("out.bias", sizes[1])
        w["out.bias"][bias] += 3                     # the end symbol: translations should be short
        w["out.bias"] = w["out.bias"].half().float()
    for side in ("enc", "dec"):
        for i in range(layers):
            for part in ("self", "cross")[:1 + (side == "dec")]:
                for p in "qkvo":
                    layer(f"{side}.{i}.{part}.{p}", d, d)
            layer(f"{side}.{i}.ffn.in", ffn, d)
            layer(f"{side}.{i}.ffn.out", d, ffn)
            for part in ("self", "ffn", "cross")[:2 + (side == "dec")]:
                add(f"{side}.{i}.{part}.norm.weight", d)
                add(f"{side}.{i}.{part}.norm.bias", d)
        for part in norms:
            add(f"{side}.{part}.weight", d)
            add(f"{side}.{part}.bias", d)
    return w


# ---- fairseq -------------------------------------------------------------------------------------------------------------

FAIRSEQ = {"enc": "encoder", "dec": "decoder", "self": "self_attn", "cross": "encoder_attn", "q": "q_proj", "k": "k_proj",
           "v": "v_proj", "o": "out_proj", "ffn.in": "fc1", "ffn.out": "fc2", "norm": "layer_norm",
           "embed_norm": "layernorm_embedding"}


def fairseq_name(name):
    side, *rest = name.split(".")
    kind = rest.pop()
    if not rest[0].isdigit():
        return f"{FAIRSEQ[side]}.{FAIRSEQ['.'.join(rest)]}.{kind}"
    number, part = rest.pop(0), ".".join(rest)
    if part == "ffn.norm":
        inner = "final_layer_norm"
    elif part.endswith(".norm"):
        inner = FAIRSEQ[part[:-5]] + "_layer_norm"
    elif part in FAIRSEQ:
        inner = FAIRSEQ[part]
    else:
        first, second = part.split(".")
        inner = f"{FAIRSEQ[first]}.{FAIRSEQ[second]}"
    return f"{FAIRSEQ[side]}.layers.{number}.{inner}.{kind}"


def half(state):
    return {name: value.half() for name, value in state.items()}


def fairseq_sinusoid(rows, d):
    rate = torch.exp(torch.arange(d // 2).double() * -(math.log(10000) / (d // 2 - 1)))
    angle = torch.arange(rows).double()[:, None] * rate
    return torch.cat([angle.sin(), angle.cos()], 1).float()


def fairseq_new(folder, case, lines, seed):
    """Pre-norm, learned positions, a norm of embeddings, one embedding for all; settings in "cfg"; SentencePiece."""
    import argparse
    where = os.path.join(folder, case)
    os.makedirs(where)
    pieces = pieces_model(where, lines, "sentencepiece.bpe.model")
    words = [pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size())]
    for language in ("en", "de"):
        with open(os.path.join(where, f"dict.{language}.txt"), "w", encoding="utf8") as f:
            f.writelines(f"{word} 1\n" for word in words)
    number = {word: i + 4 for i, word in enumerate(words)}
    size, d, longest = len(words) + 4, 16, 24
    w = random_weights(seed, (size, size), d, 24, 2, ("norm", "embed_norm"), "all")
    table = [(torch.randn(rows, d) * 0.3).half().float() for rows in (160 + 2, longest + 2 + 2)]
    state = {fairseq_name(k): v for k, v in w.items() if k[:3] in ("enc", "dec")}
    state.update({"encoder.embed_tokens.weight": w["src.embed"], "decoder.embed_tokens.weight": w["tgt.embed"],
                  "decoder.output_projection.weight": w["out.weight"], "encoder.embed_positions.weight": table[0],
                  "decoder.embed_positions.weight": table[1]})
    model = argparse.Namespace(
        arch="transformer_wmt_en_de", encoder_attention_heads=4, decoder_attention_heads=4, encoder_normalize_before=True,
        decoder_normalize_before=True, encoder_learned_pos=True, decoder_learned_pos=True, layernorm_embedding=True,
        share_all_embeddings=True, activation_fn="gelu", max_source_positions=160, max_target_positions=longest + 2,
        adaptive_softmax_cutoff=None)
    torch.save({"args": None, "cfg": {"model": model, "task": {"_name": "translation", "source_lang": "en", "target_lang": "de"}},
                "model": half(state), "extra_state": {"epoch": 3}}, os.path.join(where, "checkpoint_best.pt"))
    net = Net(w, (4, 4), True, torch.nn.functional.gelu, table, 1e-5, math.sqrt(d), 2)
    spelled = ["<s>", "<pad>", "</s>", "<unk>", *words]
    translate_net(folder, case, lines, net, lambda line: [number.get(p, 3) for p in pieces.encode(line, out_type=str)] + [2],
                  lambda ids: pieces.decode([spelled[i] for i in ids if i not in (0, 2)]), 2, 2, [1], longest, 1.0, False)


def common_words(lines, most):
    count = {}
    for line in lines:
        for word in line.split():
            count[word] = count.get(word, 0) + 1
    return sorted(sorted(count), key=lambda w: -count[w])[:most]


def fairseq_old(folder, case, lines, seed):
    """Post-norm, sinusoids, stacked projections, numbered norms, three embeddings, the old layout of torch; words."""
    import argparse
    where = os.path.join(folder, case)
    os.makedirs(where)
    source, target = common_words(lines, 150), common_words(lines[100:], 90)
    for language, words in (("en", source), ("de", target)):
        with open(os.path.join(where, f"dict.{language}.txt"), "w", encoding="utf8") as f:
            f.writelines(f"{word} 1\n" for word in words)
    d, longest = 16, 24
    w = random_weights(seed, (len(source) + 4, len(target) + 4), d, 24, 2, (), None)
    state = {}
    for name, value in w.items():
        part = name.split(".")
        if part[0] not in ("enc", "dec"):
            continue
        full = fairseq_name(name)
        layer = ".".join(full.split(".")[:3])
        if part[-2] == "norm":
            index = {"self": 0, "cross": 1, "ffn": 2 if part[0] == "dec" else 1}[part[2]]
            full = f"{layer}.layer_norms.{index}.{part[-1]}"
        elif part[-2] in "qkv":
            if part[-2] == "q":
                stacked = torch.cat([w[".".join([*part[:-2], p, part[-1]])] for p in "qkv"])
                state[f"{layer}.{FAIRSEQ[part[2]]}.in_proj_{part[-1]}"] = stacked
            continue
        state[full] = value
    state.update({"encoder.embed_tokens.weight": w["src.embed"], "decoder.embed_tokens.weight": w["tgt.embed"],
                  "decoder.embed_out": w["out.weight"], "encoder.embed_positions._float_tensor": torch.zeros(1),
                  "decoder.embed_positions._float_tensor": torch.zeros(1), "encoder.version": torch.tensor([3.0])})
    args = argparse.Namespace(arch="transformer_iwslt_de_en", source_lang="en", target_lang="de", encoder_attention_heads=4,
                              decoder_attention_heads=2, max_source_positions=160, max_target_positions=longest + 2)
    torch.save({"args": args, "model": half(state)}, os.path.join(where, "model.pt"), _use_new_zipfile_serialization=False)
    net = Net(w, (4, 2), False, torch.relu, [fairseq_sinusoid(200, d)] * 2, 1e-5, math.sqrt(d), 2)
    number = {word: i + 4 for i, word in enumerate(source)}
    spelled = ["<s>", "<pad>", "</s>", "<unk>", *target]
    translate_net(folder, case, lines, net, lambda line: [number.get(p, 3) for p in line.split()] + [2],
                  lambda ids: " ".join(spelled[i] for i in ids), 2, 2, [1], longest, 1.0, False)


# ---- OpenNMT-py ----------------------------------------------------------------------------------------------------------

def onmt_name(name):
    side, *rest = name.split(".")
    kind = rest.pop()
    if not rest[0].isdigit():
        return f"{FAIRSEQ[side]}.layer_norm.{kind}"
    number, part = rest.pop(0), ".".join(rest)
    names = {"self.norm": "layer_norm" if side == "enc" else "layer_norm_1", "cross.norm": "layer_norm_2",
             "ffn.norm": "feed_forward.layer_norm", "ffn.in": "feed_forward.w_1", "ffn.out": "feed_forward.w_2"}
    if part in names:
        inner = names[part]
    else:
        first, second = part.split(".")
        inner = ({"self": "self_attn", "cross": "context_attn"}[first] + "." +
                 {"q": "linear_query", "k": "linear_keys", "v": "linear_values", "o": "final_linear"}[second])
    return ("encoder.transformer" if side == "enc" else "decoder.transformer_layers") + f".{number}.{inner}.{kind}"


def onmt_table(rows, d):
    table = torch.zeros(rows, d)
    rate = torch.exp(torch.arange(0, d, 2).float() * -(math.log(10000.0) / d))
    position = torch.arange(rows).float()[:, None]
    table[:, 0::2], table[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
    return table


def fake_class(module, name):
    import types
    for i in range(1, module.count(".") + 2):
        sys.modules.setdefault(".".join(module.split(".")[:i]), types.ModuleType(".".join(module.split(".")[:i])))
    if not hasattr(sys.modules[module], name):
        setattr(sys.modules[module], name, type(name, (), {"__module__": module}))
    return getattr(sys.modules[module], name)


def torchtext_field(words):
    """The objects that version 1 saved, by classes with the same names."""
    vocab, field = fake_class("torchtext.vocab", "Vocab")(), fake_class("torchtext.data.field", "Field")()
    multi = fake_class("onmt.inputters.text_dataset", "TextMultiField")()
    vocab.__dict__.update(itos=words, stoi={word: i for i, word in enumerate(words)}, vectors=None)
    field.__dict__.update(vocab=vocab, pad_token="<blank>", init_token=None)
    multi.__dict__.update(fields=[("src", field)])
    return multi


def opennmt(folder, case, lines, seed, version):
    import argparse
    where = os.path.join(folder, case)
    os.makedirs(where)
    d = 16
    if version == 3:
        pieces = pieces_model(where, lines, "sentencepiece.model")
        words = [pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size())]
        lists = [["<unk>", "<blank>", "<s>", "</s>", *words]] * 2
        encode, decode = lambda line: pieces.encode(line, out_type=str), pieces.decode
    else:
        lists = [["<unk>", "<blank>", *common_words(lines, 150)],
                 ["<unk>", "<blank>", "<s>", "</s>", *common_words(lines[100:], 90)]]
        encode, decode = str.split, " ".join
    number = {word: i for i, word in enumerate(lists[0])}
    w = random_weights(seed, tuple(map(len, lists)), d, 24, 2, ("norm",), None, 3)
    table = onmt_table(5000 if version == 3 else 300, d)
    state = {onmt_name(k): v for k, v in w.items() if k[:3] in ("enc", "dec")}
    for side, embed in (("encoder", "src"), ("decoder", "tgt")):
        state[f"{side}.embeddings.make_embedding.emb_luts.0.weight"] = w[embed + ".embed"]
        if side == "encoder" or version == 1:
            state[f"{side}.embeddings.make_embedding.pe.pe"] = table[:300, None].clone()
    kind = "weight", "bias"
    generator = {k if version == 3 else "0." + k: w["out." + k] for k in kind}
    opt = argparse.Namespace(encoder_type="transformer", decoder_type="transformer", heads=4, transformer_ff=24,
                             position_encoding=True, max_relative_positions=0, copy_attn=False, share_vocab=version == 3)
    vocab = {"src": lists[0], "tgt": lists[1], "data_task": "seq2seq", "decoder_start_token": "<s>"} if version == 3 else {
        side: torchtext_field(words) for side, words in zip(("src", "tgt"), lists)}
    saved = {name: value if name.endswith("pe") else value.half() for name, value in state.items()}
    torch.save({"model": saved, "generator": half(generator), "vocab": vocab, "opt": opt},
               os.path.join(where, "model_step_10.pt"), _use_new_zipfile_serialization=version == 3)
    net = Net(w, (4, 4), True, torch.relu, [table, table], 1e-6, math.sqrt(d), 0)
    translate_net(folder, case, lines, net, lambda line: [number.get(p, 0) for p in encode(line)],
                  lambda ids: decode([lists[1][i] for i in ids if i not in (1, 2)]), 2, 3, [], 100, 0.0, True)


CASES = {
    "marian-untied": lambda f, c, l: marian(f, c, l, 1, tie_word_embeddings=False),
    "marian-positions": lambda f, c, l: marian(f, c, l, 2, pickled=False),
    "marian-odd": lambda f, c, l: marian(f, c, l, 9, pickled="odd", decoder_attention_heads=2, activation_function="tanh"),
    "marian-fast": lambda f, c, l: marian(f, c, l, 15, fast=True),
    "mbart-50": lambda f, c, l: mbart(f, c, l, 11, True),
    "mbart": lambda f, c, l: mbart(f, c, l, 4, False),
    "fsmt": lambda f, c, l: fsmt(f, c, l, 10),
    "fairseq-new": lambda f, c, l: fairseq_new(f, c, l, 11),
    "fairseq-old": lambda f, c, l: fairseq_old(f, c, l, 12),
    "opennmt-3": lambda f, c, l: opennmt(f, c, l, 13, 3),
    "opennmt-1": lambda f, c, l: opennmt(f, c, l, 14, 1),
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
