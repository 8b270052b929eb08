#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/data/nematus: small random models as Nematus and dl4mt store them, and what they translate.

    make_nematus.py OUT

The programs themselves need Theano or an old TensorFlow; the formulas here are those of Nematus' rnn_model.py and layers.py, in
float64. NAME.npz (weights), NAME.npz.json (settings), NAME.vocab.json, NAME.tsv (source, score, output of greedy search).

    theano   settings under their old names; three encoder layers that cross over, transitions, norms, three decoder layers
    tf       the same trained with TensorFlow: biases of upper layers beside the state, none in transitions of the encoder,
             upper layers that see the context, a linear read-out, no norms
    dl4mt    one layer, no settings but the dictionaries
"""
import json
import sys
from pathlib import Path

import numpy as np

WORDS, LINES, LONGEST = 23, 12, 18


class Maker:
    """Draws tensors, or finds them again."""

    def __init__(self, seed):
        self.rng, self.tensors = np.random.RandomState(seed), {}

    def get(self, name, *shape):
        if name not in self.tensors:
            noise = self.rng.standard_normal(shape)
            if name.endswith(("_lns", "_ln_s")):
                noise = 1 + 0.3 * noise
            elif len(shape) == 2 and not name.startswith("Wemb"):
                noise = 1.4 * noise / np.sqrt(shape[0])
            self.tensors[name] = noise.astype(np.float32)
        return self.tensors[name].astype(np.float64)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Model:
    def __init__(self, seed, embed, hidden, enc=(1, 1), dec=(1, 2, 1), norm=False, theano=True, context=False, tanh=True,
                 tied=False):
        self.m, self.e, self.h, self.enc, self.dec = Maker(seed), embed, hidden, enc, dec
        self.norm, self.theano, self.context, self.tanh, self.tied = norm, theano, context, tanh, tied

    def normed(self, name, x, end="_ln"):
        if not self.norm:
            return x
        s, b = self.m.get(f"{name}{end}s", x.shape[-1]), self.m.get(f"{name}{end}b", x.shape[-1])
        mean = x.mean(-1, keepdims=True)
        return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * s + b

    def gru(self, prefix, x, h, transition=0, roots=("W", "Wx", "U", "Ux", "b", "bx"), state_bias=False, bare=False):
        """One step; x None: a cell without an input. state_bias: THEANO_B and NEMATUS_COMPAT_TRUE."""
        n, end = self.h, f"_drt_{transition}" if transition else ""
        w, wx, u, ux, b, bx = (prefix + root + end for root in roots)
        if bare:
            gate_bias = candidate_bias = 0.0
        else:
            gate_bias, candidate_bias = self.m.get(b, 2 * n), self.m.get(bx, n)
        before = (0.0, 0.0) if not state_bias else (gate_bias, candidate_bias)
        gates = self.normed(u, h @ self.m.get(u, n, 2 * n) + before[0])
        candidate = self.normed(ux, h @ self.m.get(ux, n, n) + before[1])
        beside = (gate_bias, candidate_bias) if not state_bias else (0.0, 0.0)
        if x is None:
            gate_x, candidate_x = beside                                # behind the norms, which an input has not
        else:
            gate_x = self.normed(w, x @ self.m.get(w, x.shape[-1], 2 * n) + beside[0])
            candidate_x = self.normed(wx, x @ self.m.get(wx, x.shape[-1], n) + beside[1])
        r, z = np.split(sigmoid(gates + gate_x), 2)
        return z * h + (1 - z) * np.tanh(candidate * r + candidate_x)

    def encode(self, ids):
        x = self.m.get("Wemb", WORDS, self.e)[ids]
        ways = [x, x]                                                   # what the two directions see
        for layer in range(1, self.enc[0] + 1):
            outs = []
            for way, direction in enumerate(("encoder_", "encoder_r_")):
                prefix = direction + (f"{layer}_" if layer > 1 else "")
                h, states = np.zeros(self.h), [None] * len(ids)
                for t in (range(len(ids)) if way == 0 else reversed(range(len(ids)))):
                    h = self.gru(prefix, ways[way][t], h)
                    for j in range(1, self.enc[1]):
                        h = self.gru(prefix, None, h, j, bare=not self.theano)
                    states[t] = h
                out = np.stack(states)
                outs.append(out + ways[way] if layer > 1 else out)
            ways = outs[::-1]                                           # each layer stands on the other direction
        return np.concatenate(outs, -1)

    def start(self, memory):
        self.memory = memory
        y = memory.mean(0) @ self.m.get("ff_state_W", 2 * self.h, self.h) + self.m.get("ff_state_b", self.h)
        return [np.tanh(self.normed("ff_state", y, "_ln_"))] * self.dec[0]

    def attend(self, h):
        w = 2 * self.h
        keys = self.normed("decoder_Wc_att", self.memory @ self.m.get("decoder_Wc_att", w, w) + self.m.get("decoder_b_att", w))
        query = self.normed("decoder_W_comb_att", h @ self.m.get("decoder_W_comb_att", self.h, w))
        e = np.tanh(keys + query) @ self.m.get("decoder_U_att", w, 1)[:, 0] + self.m.get("decoder_c_tt", 1)
        p = np.exp(e - e.max())
        return p / p.sum() @ self.memory

    def dense(self, name, x):
        y = x @ self.m.get(f"{name}_W", x.shape[-1], self.e) + self.m.get(f"{name}_b", self.e)
        return self.normed(name, y, "_ln_")

    def step(self, word, states):
        table = self.m.get("Wemb" if self.tied else "Wemb_dec", WORDS, self.e)
        x = np.zeros(self.e) if word is None else table[word]
        behind = dict(roots=("Wc", "Wcx", "U_nl", "Ux_nl", "b_nl", "bx_nl"), state_bias=True)
        h = self.gru("decoder_", x, states[0])
        c = self.attend(h)
        h = self.gru("decoder_", c, h, **behind)
        for j in range(1, self.dec[1] - 1):
            h = self.gru("decoder_", None, h, j, **behind)
        after = [h]
        for layer in range(2, self.dec[0] + 1):
            upper = dict(state_bias=not self.theano)
            seen = np.concatenate([h, c]) if self.context else h
            s = self.gru(f"decoder_{layer}_", seen, states[layer - 1], **upper)
            for j in range(1, self.dec[2]):
                s = self.gru(f"decoder_{layer}_", None, s, j, **upper)
            after.append(s)
            h = h + s
        t = self.dense("ff_logit_prev", x) + self.dense("ff_logit_lstm", h) + self.dense("ff_logit_ctx", c)
        t = np.tanh(t) if self.tanh else t
        out = table.T if self.tied else self.m.get("ff_logit_W", self.e, WORDS)
        logits = t @ out + self.m.get("ff_logit_b", WORDS)
        return logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max(), after

    def calibrate(self, sources):
        """A bias of the output with which no word wins everywhere, and the end in about one place of five."""
        self.m.tensors["ff_logit_b"] = np.zeros(WORDS, np.float32)
        logits = []
        for ids in sources:
            states, word = self.start(self.encode(ids + [0])), None
            for _ in range(8):
                logp, states = self.step(word, states)
                logits.append(logp)
                word = self.m.rng.randint(1, WORDS)
        logits = np.stack(logits)
        bias = -0.9 * logits.mean(0)
        logits = logits + bias
        bias[0] += np.quantile(logits[:, 1:].max(1) - logits[:, 0], 0.2)
        bias[1:3] -= 10.0                                               # unknown words are seldom wanted
        self.m.tensors["ff_logit_b"] = bias.astype(np.float32)

    def greedy(self, ids):
        """Score, words without the end, and how close the closest choice was; None: it does not end."""
        states, word, score, words, margin = self.start(self.encode(ids)), None, 0.0, [], np.inf
        for _ in range(LONGEST):
            logp, states = self.step(word, states)
            first, second = np.argsort(-logp)[:2]
            margin, score, word = min(margin, logp[first] - logp[second]), score + logp[first], int(first)
            if word == 0:
                return score, words, margin
            words.append(word)
        return None


VARIANTS = {
    "theano": (dict(embed=7, hidden=6, enc=(3, 2), dec=(3, 4, 2), norm=True),
               {"dim_word": 7, "dim": 6, "n_words": WORDS, "n_words_src": WORDS, "factors": 1, "enc_depth": 3,
                "enc_recurrence_transition_depth": 2, "dec_depth": 3, "dec_base_recurrence_transition_depth": 4,
                "dec_high_recurrence_transition_depth": 2, "dec_deep_context": False, "layer_normalisation": True}),
    "tf": (dict(embed=8, hidden=5, enc=(2, 3), dec=(2, 3, 2), theano=False, context=True, tanh=False, tied=True),
           {"embedding_size": 8, "state_size": 5, "source_vocab_sizes": [WORDS], "target_vocab_size": WORDS,
            "rnn_enc_depth": 2, "rnn_enc_transition_depth": 3, "rnn_dec_depth": 2, "rnn_dec_base_transition_depth": 3,
            "rnn_dec_high_transition_depth": 2, "rnn_dec_deep_context": True, "rnn_layer_normalisation": False,
            "tie_encoder_decoder_embeddings": True, "tie_decoder_embeddings": True, "output_hidden_activation": "linear",
            "model_type": "rnn", "softmax_mixture_size": 1, "source_dicts": None}),
    "dl4mt": (dict(embed=6, hidden=7), {}),
}


def build(name, out, config, settings):
    special = {"theano": ["eos", "UNK"], "tf": ["<EOS>", "<GO>", "<UNK>"], "dl4mt": ["eos", "UNK"]}[name]
    words = special + [f"w{i}" for i in range(len(special), WORDS)]
    rng = np.random.RandomState(7)
    for seed in range(3, 99):
        model, sources, found = Model(seed, **config), [], []
        model.calibrate([rng.randint(3, WORDS, 6).tolist() for _ in range(4)])
        for _ in range(2 * LINES):                                      # those that end, and not by a hair
            ids = rng.randint(3, WORDS, rng.randint(1, 9)).tolist()
            best = model.greedy(ids + [0])
            if best and best[1] and best[2] > 1e-3:
                sources.append(ids)
                found.append(best)
        if len(found) >= LINES and len({tuple(f[1]) for f in found}) >= 4:
            break
    else:
        raise SystemExit(f"{name}: no seed gives a lively model")
    extra = {} if name == "dl4mt" else {"uidx": np.array(5), "history_errs": np.zeros(2), "adam_t": np.zeros(1, np.float32)}
    np.savez_compressed(out / f"{name}.npz", **model.m.tensors, **extra)
    (out / f"{name}.vocab.json").write_text(json.dumps({w: i for i, w in enumerate(words)}))
    settings = {**settings, "dictionaries": [f"/data/{name}.vocab.json", f"/data/{name}.vocab.json"]}
    (out / f"{name}.npz.json").write_text(json.dumps(settings, indent=1) + "\n")
    rows = [f"{' '.join(words[i] for i in ids)}\t{score:.5f}\t{' '.join(words[i] for i in best)}\n"
            for ids, (score, best, _) in zip(sources, found)]
    (out / f"{name}.tsv").write_text("".join(rows))
    print(name, "lengths", [len(f[1]) for f in found])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    for variant, (shape, keys) in VARIANTS.items():
        build(variant, Path(sys.argv[1]), shape, keys)
