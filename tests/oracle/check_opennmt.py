# SPDX-License-Identifier: MIT
"""check_opennmt.py FOLDER [LINES]: does make_imports.py compute opennmt-3 as OpenNMT-py itself does?

Puts the weights of FOLDER/opennmt-3 into the modules of OpenNMT-py 3.5 (PyPI; `pip install --no-deps OpenNMT-py configargparse
pyonmttok`, on top of torch and sentencepiece), compares their names with the file's, and the greedy translations and
log-probabilities with FOLDER/opennmt-3.beam1.gz. Packages that OpenNMT-py imports but these modules do not use are replaced
by empty ones.
"""
import gzip
import importlib.abc
import importlib.machinery
import os
import sys
import types

import sentencepiece
import torch

UNUSED = {"spacy", "rapidfuzz", "ahocorasick", "fasttext", "waitress", "flask", "ctranslate2", "sacrebleu", "tensorboard"}
PAD, START, END, LONGEST = 1, 2, 3, 100


class Empty(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in UNUSED else None

    def create_module(self, spec):
        return Empty(spec.name)

    def exec_module(self, module):
        pass


def build(side, size):
    from onmt.decoders.transformer import TransformerDecoder
    from onmt.encoders.transformer import TransformerEncoder
    from onmt.modules.embeddings import Embeddings
    embeddings = Embeddings(word_vec_size=16, word_vocab_size=size, word_padding_idx=PAD, position_encoding=True,
                            position_encoding_type="SinusoidalInterleaved")
    shape = dict(num_layers=2, d_model=16, heads=4, d_ff=24, dropout=0.0, attention_dropout=0.0, embeddings=embeddings,
                 max_relative_positions=0, relative_positions_buckets=0, add_qkvbias=True)
    if side == "encoder":
        return TransformerEncoder(**shape)
    return TransformerDecoder(**shape, copy_attn=False, self_attn_type="scaled-dot", aan_useffn=False,
                              full_context_alignment=False, alignment_layer=-1, alignment_heads=0)


def load(checkpoint):
    modules, differing = {}, set()
    for side in ("encoder", "decoder"):
        module = build(side, len(checkpoint["vocab"]["src"]))
        given = {k[len(side) + 1:]: v.float() for k, v in checkpoint["model"].items() if k.startswith(side)}
        own = module.state_dict()
        differing |= {f"{side}.{k}" for k in set(own) ^ set(given) if not k.endswith("pe.pe")}
        own.update({k: v for k, v in given.items() if not k.endswith("pe.pe")})
        module.load_state_dict(own)
        modules[side] = module.eval()
    return modules, differing


def greedy(modules, generator, ids):
    source, length = torch.tensor(ids)[None, :, None], torch.tensor([len(ids)])
    memory = modules["encoder"](source, length)[0]
    tokens, total = [START], 0.0
    while len(tokens) <= LONGEST:
        modules["decoder"].init_state(source, memory, memory)
        out = modules["decoder"](torch.tensor(tokens)[None, :, None], memory, step=None, src_len=length,
                                 tgt_pad_mask=torch.zeros(1, 1, len(tokens)).bool())[0][0, -1]
        scores = torch.log_softmax(out @ generator["weight"].t() + generator["bias"], -1)
        best = int(scores.argmax())
        total += float(scores[best])
        if best == END:
            return tokens[1:], total
        tokens.append(best)
    return tokens[1:], None                          # cut off: the golden counts an end symbol


def main(folder, most="25"):
    sys.meta_path.append(Finder())
    checkpoint = torch.load(os.path.join(folder, "opennmt-3", "model_step_10.pt"), weights_only=False)
    modules, differing = load(checkpoint)
    generator = {k: v.float() for k, v in checkpoint["generator"].items()}
    pieces = sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, "opennmt-3", "sentencepiece.model"))
    words = checkpoint["vocab"]["tgt"]
    number = {word: i for i, word in enumerate(checkpoint["vocab"]["src"])}
    wrong, worst = 0, 0.0
    with open(os.path.join(folder, "lines.en"), encoding="utf8") as f:
        lines = f.read().split("\n")[:int(most)]
    with gzip.open(os.path.join(folder, "opennmt-3.beam1.gz"), "rt", encoding="utf8") as f:
        golden = f.read().split("\n")
    with torch.inference_mode():
        for line, expected in zip(lines, golden):
            score, text = expected.split("\t")
            tokens, total = greedy(modules, generator, [number.get(p, 0) for p in pieces.encode(line, out_type=str)])
            wrong += pieces.decode([words[i] for i in tokens if i not in (PAD, START)]) != text
            worst = max(worst, abs(total - float(score))) if total is not None else worst
    print(f"names that differ: {sorted(differing) or 'none'}; of {len(lines)} lines {wrong} differ; scores differ by {worst:.1e}")
    return 1 if differing or wrong or worst > 1e-3 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
