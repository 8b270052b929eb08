# SPDX-License-Identifier: MIT
"""Mixtures of experts and corpora of many directions."""
import os
import tempfile
import unittest

import torch

from dragoman_training import corpus, distill, engine, export, fixtures, mix, moe, multilingual
from dragoman_training.gguf_writer import Reader
from dragoman_training.packed import Packed
from dragoman_training.transformer import Transformer, TransformerConfig, activate


def config(**changes):
    return TransformerConfig(vocab_size=20, d_model=16, heads=2, ffn_dim=12, encoder_layers=2, decoder_layers=2,
                             dropout=0.0, **{**dict(moe_experts=4, moe_encoder_every=2, moe_decoder_every=1), **changes})


def plain(experts, rows):
    """Row by row, as the head of moe.py says."""
    c, out = experts.config, torch.zeros_like(rows)
    for i, row in enumerate(rows):
        gate = experts.gate(row).softmax(-1)
        best = gate.argsort(descending=True)[:c.moe_top].tolist()
        total = sum(gate[j] for j in best) if c.moe_normalise else 1.0
        for j in best:
            inner = activate(experts.w1[j] @ row + experts.b1[j], c)
            out[i] += c.moe_scale * gate[j] / total * (experts.w2[j] @ inner + experts.b2[j])
    return out


class ExpertsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)

    def test_definition(self):
        for top, normalise in ((1, False), (1, True), (2, True), (2, False)):
            experts = moe.Experts(config(moe_top=top, moe_normalise=normalise, moe_scale=0.7), 12, activate).double().eval()
            rows = torch.randn(9, 16, dtype=torch.float64)
            self.assertLess((experts(rows) - plain(experts, rows)).abs().max().item(), 1e-12)

    def test_padding_counts_nowhere(self):
        experts = moe.Experts(config(moe_capacity=0.0), 12, activate).train()
        rows = torch.randn(6, 16)
        real = torch.tensor([True, True, False, True, False, True])
        some, balance = experts(rows, real), float(experts.balance)
        only = experts(rows[real])
        self.assertTrue(torch.allclose(some[real], only, atol=1e-6))
        self.assertAlmostEqual(balance, float(experts.balance), places=5)
        self.assertEqual(float(some[~real].abs().max().detach()), 0.0)

    def test_capacity_drops(self):
        experts = moe.Experts(config(moe_capacity=0.1, moe_top=1), 12, activate).train()
        rows = torch.randn(200, 16)
        kept = (experts(rows).abs().sum(-1) > 0).sum().item()
        self.assertLessEqual(kept, 4 * 8)
        self.assertEqual((experts.eval()(rows).abs().sum(-1) > 0).sum().item(), 200)

    def test_balance(self):
        """1 at equal use, more where one expert has everything, and its gradient evens out."""
        experts = moe.Experts(config(moe_top=1), 12, activate).train()
        rows = torch.randn(400, 16)
        with torch.no_grad():
            experts.gate.weight.zero_()
            experts.gate.weight[0] += 1.0
        rows = rows.abs()                                               # all choose expert 0
        experts(rows)
        self.assertGreater(float(experts.balance), 3.5)
        optimiser = torch.optim.Adam(experts.gate.parameters(), 0.05)
        for _ in range(60):
            optimiser.zero_grad()
            experts(rows)
            experts.balance.backward()
            optimiser.step()
        self.assertLess(float(experts.balance), 2.5)

    def test_model_trains(self):
        model = Transformer(config()).train()
        source, given = torch.randint(2, 20, (3, 5)), torch.randint(2, 20, (3, 4))
        loss = model.logits(model(source, given)).logsumexp(-1).mean() + 0.01 * moe.balance(model)
        loss.backward()
        self.assertTrue(all(p.grad is not None for p in model.parameters()))
        self.assertIsNone(moe.balance(Transformer(config(moe_encoder_every=0, moe_decoder_every=0, moe_experts=0))))


class MultilingualTest(unittest.TestCase):
    def test_prefixed(self):
        packed = Packed.from_lists([([5, 6], [7], 1), ([8], [9, 10, 11], 2)])
        tagged = packed.prefixed([2, 3], [4])
        self.assertEqual(tagged.pair(0), ([2, 3, 5, 6], [4, 7]))
        self.assertEqual(tagged.pair(1), ([2, 3, 8], [4, 9, 10, 11]))
        self.assertEqual(packed.prefixed([2], []).pair(1), ([2, 8], [9, 10, 11]))

    def test_repetitions(self):
        self.assertEqual(multilingual.repetitions([100, 100]), [1, 1])
        few, many = multilingual.repetitions([1000, 1000000])
        self.assertEqual((few, many), (8, 1))

    def test_tags(self):
        ids = {"<2de>": 2, "<2en>": 3, "<2fr>": 4}
        tags = multilingual.Tags([("en", "de"), ("fr", "en")], ids.get, ["source", "target"], ["target"])
        self.assertEqual(tags.before("source", ("fr", "en")), [4, 3])
        self.assertEqual(tags.before("target", ("fr", "en")), [3])
        self.assertEqual(tags.card()["pairs"], ["en de", "fr en"])
        with self.assertRaises(ValueError):
            multilingual.Tags([("en", "de")], ids.get, ["both"])

    def test_direction_defaults(self):
        """--direction-default of export: read, and found again in the file under the direction's keys."""
        found = export.direction_defaults(["en de:length_penalty=1.25", "en de:shortlist=cluster",
                                           "deu_Latn fr:max_length_factor=2"])
        self.assertEqual(found, {("en", "de"): {"length_penalty": 1.25, "shortlist": "cluster"},
                                 ("deu_Latn", "fr"): {"max_length_factor": 2.0}})
        with self.assertRaises(KeyError):
            export.direction_defaults(["en de:beams=3"])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.gguf")
            export.export(path, Transformer(config()), export.Words(fixtures.words(20, 1)), directions=found,
                          source_languages=["en"], target_languages=["de"])
            meta = Reader(path).metadata
        self.assertEqual(meta["dragoman.directions.en.de.length_penalty"], 1.25)
        self.assertEqual(meta["dragoman.directions.en.de.shortlist"], "cluster")
        self.assertEqual(meta["dragoman.directions.deu_Latn.fr.max_length_factor"], 2.0)

    def test_mixed_text(self):
        """Both ways of every pair once, with repetitions; source-only lines; the first part has translations alone."""
        with tempfile.TemporaryDirectory() as work:
            texts = {"en-fr": (["one", "two", "three"], ["un", "deux", "trois"]), "en-it": (["four"], ["quattro"])}
            for pair, sides in texts.items():
                os.mkdir(os.path.join(work, pair))
                for language, lines in zip(pair.split("-"), sides):
                    corpus.write_lines(os.path.join(work, pair, f"pairs.{language}"), lines)
                corpus.write_lines(os.path.join(work, pair, "pairs.up"), ["3"] * len(sides[0]))
            corpus.write_lines(os.path.join(work, "en-it", "extra.en"), ["five", "six"])
            multilingual.write_mixed(work, list(texts), [3, 4])
            parts = [[corpus.read_lines(os.path.join(work, f"mixed.{number}.{suffix}")) for suffix in ("src", "tgt", "up", "dir")]
                     for number in range(3)]
            self.assertEqual([len(part[0]) for part in parts], [3, 4, 3])
            self.assertTrue(all(parts[0][1]))
            lines = sorted(line for part in parts for line in zip(*part))
            wanted = [(a, b, "3", way) for x, y, way in (("one", "un", "fr"), ("two", "deux", "fr"), ("three", "trois", "fr"),
                                                         ("four", "quattro", "it"))
                      for a, b, way in ((x, y, f"en {way}"), (y, x, f"{way} en"))]
            self.assertEqual(lines, sorted(wanted + [("five", "", "1", "en it"), ("six", "", "1", "en it")]))
            made = os.path.join(work, "made")
            os.mkdir(made)
            for number, part in enumerate(parts):
                with open(os.path.join(made, f"mixed.{number}.src.made.0"), "w", encoding="utf-8") as f:
                    f.writelines(f"{i}\t{text.upper()}\n" for i, text in enumerate(part[0]))
            multilingual.write_turned(work, ["1", "2"], made)
            turned = [corpus.read_lines(os.path.join(work, f"mixed.turned.{suffix}")) for suffix in ("src", "tgt", "up", "dir")]
            self.assertEqual(sorted(zip(*turned)), [("FIVE", "five", "1", "it en"), ("SIX", "six", "1", "it en")])

    def test_directions_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.dir")
            corpus.write_lines(path, ["en fr", "it en"])
            self.assertEqual(distill.directions_of(path, 2), [("en", "fr"), ("it", "en")])
            with self.assertRaisesRegex(ValueError, "2 lines, and its file of text has 3"):
                distill.directions_of(path, 3)
            corpus.write_lines(path, ["en fr", "it"])
            with self.assertRaisesRegex(ValueError, "x.dir:2: expected two languages"):
                multilingual.read_directions(path)

    def test_tokens_of_mixed_lines(self):
        """mix() puts a line's own ids before its source, and before the source of its variants."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "v.words")
            known = fixtures.words(20, 1)
            corpus.write_lines(path, known)
            lines, number = [known[5]] * 2, [5]
            plain = mix.mix(path, lines, lines, None, None, shares={}, processes=1)
            tagged = mix.mix(path, lines, lines, None, None, shares={}, processes=1, before=[([7], []), ([8, 9], [6])])
            self.assertEqual(plain.pair(1), (number, number))
            self.assertEqual(tagged.pair(0), ([7] + number, number))
            self.assertEqual(tagged.pair(1), ([8, 9] + number, [6] + number))

    def test_engine_gets_directions(self):
        settings = {"nbest": 1, "precision": None, "program": "p", "device": "cpu", "longest": 126}
        with tempfile.TemporaryDirectory() as folder:
            chunk = engine.Chunk(os.path.join(folder, "x"), 4, ["a", "b"], ["en fr", "it en"])
            self.assertEqual(corpus.read_lines(chunk.directions), ["en fr", "it en"])
            words = engine.command(settings, "m", chunk.source, chunk.output(1), 1, chunk.directions)
            self.assertEqual(words[words.index("--directions") + 1], chunk.directions)
            chunk.remove(1)
            self.assertFalse(os.path.exists(chunk.directions))
            self.assertIsNone(engine.Chunk(os.path.join(folder, "y"), 0, ["a"]).directions)


if __name__ == "__main__":
    unittest.main()
