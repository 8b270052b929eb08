#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goldens for tests/unit/test_search_golden.c: the finishing policies stated a second time, over whole score tables.

Each case is a chain logit[v | last token u, position t] = last[u][v] + time[t][v] drawn from a seed (the generator of
src/base/clock.h), small enough for a plain list of all candidates of every step: nothing here knows of rows, top-k
lists or back-pointers. With --transformers the huggingface cases (all six: early_stopping false, true or "never", with a
forced end or not) are also run through transformers' own generate() on a model that looks its logits up in the tables, and must
agree; `make test-long` does that. Output (standard output):

    POLICY SEED VOCAB BEAM PENALTY MAX_LENGTH NBEST : SCORE TOKENS | SCORE TOKENS ...

POLICY may carry a number (first:2). Tokens: 0 ends, 1 is the unknown word (never chosen here), the last one starts a sentence.
"""
import argparse
import math
import sys

MASK64 = (1 << 64) - 1
EOS, UNK = 0, 1


class Rng:
    """splitmix64, as dgm_rng."""

    def __init__(self, seed):
        self.state = seed

    def unit(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK64
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK64
        return ((z ^ z >> 31) >> 11) * 2.0 ** -53


def tables(seed, vocab, positions):
    rng = Rng(seed)
    last = [[5 * rng.unit() - 2.5 for _ in range(vocab)] for _ in range(vocab)]
    time = [[3 * rng.unit() - 1.5 for _ in range(vocab)] for _ in range(positions)]
    for t in range(positions):
        time[t][EOS] += 0.7 * t - 1.5      # ends become likely after a few words
    return last, time


def log_probabilities(last, time, u, t):
    row = [a + b for a, b in zip(last[u], time[t])]
    top = max(row)
    z = top + math.log(sum(math.exp(x - top) for x in row))
    return [x - z for x in row]


class Sentence:
    """State of one search: live hypotheses as (sum, tokens), best first; finished ones as (score, sum, tokens)."""

    def __init__(self, case):
        self.case = case
        self.live = [(0.0, ())]
        self.finished = []
        self.spare = []
        self.last, self.time = tables(case["seed"], case["vocab"], case["max_length"] + 2)

    def score(self, total, n):
        return total / n ** self.case["penalty"]

    def end(self, total, tokens, store=None, end_symbol=1):
        score = self.score(total, len(tokens) + end_symbol)
        (self.finished if store is None else store).append((score, total, tokens))

    def candidates(self):
        """(sum, row, token) of everything that may follow, in falling order."""
        found = []
        for row, (total, tokens) in enumerate(self.live):
            u = tokens[-1] if tokens else self.case["vocab"] - 1
            logp = log_probabilities(self.last, self.time, u, len(tokens))
            found += [(total + logp[v], row, v) for v in range(self.case["vocab"] - 1) if v != UNK]
        return sorted(found, key=lambda c: (-c[0], c[1], c[2]))

    def ends(self):
        return {row: total for total, row, v in self.candidates() if v == EOS}


def refill_step(s, found):
    beam, live, ended = s.case["beam"], [], set()
    for rank, (total, row, v) in enumerate(found[:2 * beam]):
        tokens = s.live[row][1]
        if v != EOS:
            if len(live) < beam:
                live.append((total, tokens + (v,)))
        elif rank < beam:
            s.end(total, tokens)
            ended.add(row)
    return live, ended


def places_step(s, found, places):
    live, ended = [], set()
    for total, row, v in found[:places]:
        tokens = s.live[row][1]
        if v == EOS:
            s.end(total, tokens)
            ended.add(row)
        else:
            live.append((total, tokens + (v,)))
    return live, ended


def search(case):
    policy, beam, longest = case["policy"], case["beam"], case["max_length"]
    s = Sentence(case)
    while True:
        found, ends, tokens, before = s.candidates(), s.ends(), len(s.live[0][1]), s.live
        if policy == "shrink":
            live, ended = places_step(s, found, beam - len(s.finished))
        elif policy == "mask":
            live, ended = places_step(s, found, beam)
        else:
            live, ended = refill_step(s, found)
        if policy == "mask":
            for row, total in ends.items():
                if row not in ended:
                    s.end(total, s.live[row][1], s.spare)
        if tokens == longest:
            if policy in ("margin", "shrink", "refill") or policy.startswith("first"):
                for row, total in ends.items():
                    if row not in ended:
                        s.end(total, s.live[row][1])
            break
        s.live = live
        last = policy.startswith("huggingface") and tokens + 1 == longest
        if last and policy.endswith("cut"):          # what is among the best B of this step is whole, ended or not
            for total, row, v in found[:beam]:
                if v != EOS:
                    s.end(total, before[row][1] + (v,), end_symbol=0)
            break
        if policy.startswith("huggingface"):
            s.finished = sorted(s.finished, key=lambda f: -f[0])[:beam]
        if not live or stop(s, policy):
            break
        if last:                                     # one more step, in which only the end is possible, for nothing
            for total, path in live:
                s.end(total, path)
            break
    best = sorted(s.finished, key=lambda f: -f[0])[:beam] + sorted(s.spare, key=lambda f: -f[0])
    return [(score, tokens) for score, _, tokens in best[:case["nbest"]]]


def stop(s, policy):
    beam, best = s.case["beam"], s.live[0][0]
    if policy == "margin":
        return len(s.finished) >= s.case["nbest"] and max(f[1] for f in s.finished) - best >= 3.0
    if policy in ("shrink", "refill") or "early" in policy:
        return len(s.finished) >= beam
    if policy.startswith("first"):
        return len(s.finished) >= max(int(policy.partition(":")[2] or 0), s.case["nbest"])
    if policy.startswith("huggingface"):
        longest = "never" in policy and s.case["penalty"] > 0
        length = s.case["max_length"] + (not policy.endswith("cut")) if longest else len(s.live[0][1])
        return len(s.finished) == beam and s.score(best, length) <= s.finished[-1][0]
    return False


def transformers_search(case):
    """The same case through transformers itself: a model whose logits come from the tables."""
    import torch
    from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import CausalLMOutput

    vocab, longest, forced = case["vocab"], case["max_length"], not case["policy"].endswith("cut")
    last, time = (torch.tensor(x, dtype=torch.float32) for x in tables(case["seed"], vocab, longest + 2))

    class TableConfig(PretrainedConfig):
        model_type = "dragoman-table"

    class TableModel(PreTrainedModel, GenerationMixin):
        config_class = TableConfig

        def __init__(self, config):
            super().__init__(config)
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, input_ids, **_):
            positions = torch.arange(input_ids.shape[1])
            return CausalLMOutput(logits=last[input_ids] + time[positions])

    model = TableModel(TableConfig(vocab_size=vocab, eos_token_id=EOS, pad_token_id=vocab - 1))
    start = torch.tensor([[vocab - 1]])
    out = model.generate(
        start, attention_mask=torch.ones_like(start), num_beams=case["beam"], num_return_sequences=case["nbest"],
        max_length=longest + 1 + forced, length_penalty=case["penalty"],
        early_stopping="never" if "never" in case["policy"] else "early" in case["policy"],
        do_sample=False, forced_eos_token_id=EOS if forced else None, eos_token_id=EOS, pad_token_id=vocab - 1,
        suppress_tokens=[UNK, vocab - 1], use_cache=False, output_scores=True,
        return_dict_in_generate=True)
    found = []
    for row, score in zip(out.sequences.tolist(), out.sequences_scores.tolist()):
        found.append((score, tuple(row[1:row.index(EOS, 1) if EOS in row[1:] else len(row)])))
    return found


def cases():
    seed = 0
    for policy in ("margin", "shrink", "mask", "refill", "huggingface"):
        for beam in (2, 3, 4, 6):
            for penalty in (0.0, 0.6, 1.0, 1.4):
                for longest in (3, 6, 10):
                    seed += 1
                    yield dict(policy=policy, seed=seed, vocab=16, beam=beam, penalty=penalty, max_length=longest,
                               nbest=beam)
    # K by the list's size, less than it (then its size counts), between it and the beam, and more than the beam
    for policy, nbest in (("first", 1), ("first", 2), ("first:1", 2), ("first:2", 1), ("first:5", 2), ("first:9", 1)):
        for beam in (2, 4, 6):
            for penalty in (0.0, 1.0):
                for longest in (3, 6, 10):
                    seed += 1
                    yield dict(policy=policy, seed=seed, vocab=16, beam=beam, penalty=penalty, max_length=longest,
                               nbest=nbest)
    # Where many hypotheses are cut off: most lengths are short
    for policy in ("huggingface-cut", "huggingface-early", "huggingface-early-cut"):
        for beam in (2, 3, 4, 6):
            for penalty in (0.0, 0.6, 1.0, 1.4):
                for longest in (2, 3, 4, 6, 10):
                    seed += 1
                    yield dict(policy=policy, seed=seed, vocab=16, beam=beam, penalty=penalty, max_length=longest,
                               nbest=beam)
    for policy in ("huggingface-never", "huggingface-never-cut"):
        for beam in (2, 4, 6):
            for penalty in (0.0, 0.6, 1.4):
                for longest in (2, 4, 10):
                    seed += 1
                    yield dict(policy=policy, seed=seed, vocab=16, beam=beam, penalty=penalty, max_length=longest,
                               nbest=beam)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--transformers", action="store_true", help="check huggingface cases against transformers")
    options = parser.parse_args()
    bad = 0
    for case in cases():
        found = search(case)
        if options.transformers and case["policy"].startswith("huggingface"):
            theirs = transformers_search(case)
            if [t for _, t in theirs] != [t for _, t in found] or \
                    any(abs(a - b) > 1e-5 for (a, _), (b, _) in zip(theirs, found)):
                print(f"{case}\n  ours:   {found}\n  theirs: {theirs}", file=sys.stderr)
                bad += 1
        lists = " | ".join(f"{score:.6f} {' '.join(map(str, tokens))}".rstrip() for score, tokens in found)
        print(f"{case['policy']} {case['seed']} {case['vocab']} {case['beam']} {case['penalty']} "
              f"{case['max_length']} {case['nbest']} : {lists}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
