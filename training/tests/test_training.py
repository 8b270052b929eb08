# SPDX-License-Identifier: MIT
"""What feeds and drives training: packing, batches, losses, optimisers, schedules, alignment, mixing, variants, search.

    PYTHONPATH=training python3 -m unittest discover -s training/tests

The whole path, with a vocabulary and a resumed run, is the smoke recipe (training/smoke.sh).
"""
import bz2
import math
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest
from collections import Counter
from types import SimpleNamespace

import numpy as np
import torch

from dragoman_training import (align, augment, checkpoint, corpus, distill, engine, everyday, export, losses, metric, mix, optim, quality,
                               recipe, search, subword, templates, train, warm, wordlist)
from dragoman_training.batches import Batches
from dragoman_training.cmlm import Cmlm, CmlmConfig
from dragoman_training.packed import Packed
from dragoman_training.rnn import RNN, RNNConfig
from dragoman_training.transformer import Transformer, TransformerConfig

PAIRS = [([5, 6, 7], [8, 9], 1), ([5], [8], 2), ([], [1], 1), (list(range(2, 30)), [3] * 20, 1), ([4, 4], [5, 5, 5], 1)]


class Corpora(unittest.TestCase):
    def test_packed_round_trip(self):
        packed = Packed.from_lists(PAIRS)
        self.assertEqual(len(packed), 4)                                # the empty source is dropped
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.bin")
            packed.save(path)
            self.assertEqual(Packed.load(path).pair(2), (list(range(2, 30)), [3] * 20))
            with open(path, "r+b") as f:
                f.truncate(60)
            with self.assertRaises(ValueError):
                Packed.load(path)
        self.assertEqual(len(Packed.join([packed, packed])), 8)

    def test_batches_cover_a_pass(self):
        batches = Batches(Packed.from_lists(PAIRS), 50, 64, "cpu", widths=(8, 32))
        seen = Counter()
        for bucket, index in batches.plan(1):
            source, given, target = batches.fetch(bucket, index)
            self.assertEqual(source.shape[1], (8, 32)[bucket])
            for row in range(len(index)):
                seen[int(index[row])] += 1
                ids = PAIRS[[0, 1, 3, 4][int(index[row])]]
                self.assertEqual(source[row, :len(ids[0]) + 1].tolist(), ids[0] + [0])
                self.assertTrue((source[row, len(ids[0]) + 1:] == 50).all())
                self.assertEqual(given[row, :len(ids[1]) + 1].tolist(), [50] + ids[1])
                self.assertEqual(target[row, :len(ids[1]) + 1].tolist(), ids[1] + [0])
        self.assertGreaterEqual(seen[1], 2)                             # two passes
        self.assertEqual(set(seen), {0, 1, 2, 3})
        same = [(b, i.tolist()) for b, i in batches.plan(3)]
        self.assertEqual(same, [(b, i.tolist()) for b, i in batches.plan(3)])

    def test_plausible(self):
        self.assertTrue(corpus.plausible("A house.", "Ein Haus."))
        self.assertFalse(corpus.plausible("", "Ein Haus."))
        self.assertFalse(corpus.plausible("x " * 30, "y"))
        self.assertFalse(corpus.plausible("This was never translated at all.", "This was never translated at all."))

    def test_choice_of_targets(self):
        source = "It costs 15 euros in the little shop at the corner."
        real = "Es kostet 15 Euro in dem kleinen Laden an der Ecke."
        made = "Es kostet 15 Euro im kleinen Laden an der Ecke."
        self.assertEqual(mix.choose(source, real, made, 1, 0.5), [(made, 1), (real, 1)])
        self.assertEqual(mix.choose(source, real, made.replace("15", "50"), 1, 0.5), [(real, 1)])
        self.assertEqual(mix.choose(source, real, "so so so so so so so so so so so so 15", 1, 0.5), [(real, 1)])
        self.assertEqual(mix.choose(source, "Etwas ganz anderes steht hier 15.", made, 3, 0.5), [(made, 3)])
        self.assertEqual(mix.choose(source, "", made, 1, 0.5), [(made, 1)])

    def test_nearest_of_alternatives(self):
        made = "Er kam gestern 15.\tGestern kam er um 15 Uhr.\tGestern kam er um 16 Uhr."
        self.assertEqual(mix.nearest("He came at 15 yesterday.", "Gestern kam er gegen 15 Uhr.", made),
                         "Gestern kam er um 15 Uhr.")
        self.assertEqual(mix.nearest("He came at 15 yesterday.", "", made), "Er kam gestern 15.")

    def test_pairs_turned_round(self):
        source = "It costs 15 euros in the little shop at the corner."
        made = "Es kostet 15 Euro im kleinen Laden an der Ecke."
        self.assertEqual(mix.turned(source, "Es kostet 15 Euro.", made), (made, source))
        self.assertIsNone(mix.turned(source, made, made))               # the real pair is there already
        self.assertIsNone(mix.turned(source, "", made.replace("15", "50")))
        self.assertIsNone(mix.turned(source, "", ""))

    def test_templates(self):
        rng = random.Random(1)
        for made in filter(None, (templates.pair(rng) for _ in range(200))):
            self.assertNotIn("{", "".join(made))
            self.assertNotRegex(made[1], r"[$€£]|[ap]\.m\.")

    def test_everyday_text(self):
        """Lines of tests stay out on either side; names stay; English prices are written as the German ones are."""
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "test", "de-en"))
            corpus.write_lines(os.path.join(folder, "test", "de-en", "newstest.en"), ["A line."])
            allowed = everyday.Allowed(folder)
        self.assertFalse(allowed("Eine Zeile", "a LINE!") or allowed("GUTEN MORGEN", "Morning!") or allowed("", "x"))
        self.assertTrue(allowed("Eine Zeile", "Another line."))
        rng = random.Random(1)
        for german, english in everyday.framed_names(rng, allowed, 300):
            self.assertTrue(any(x in german and x in english for x in everyday.FIRST + everyday.LAST) or [german, english] in everyday.CITIES)
            self.assertNotIn("{", german + english)
        for german, english in everyday.figures(rng, allowed, 300):
            for sign, words in everyday.CURRENCIES.items():
                if "Million" not in german:
                    self.assertEqual(german.count(sign), english.count(sign))
                    self.assertEqual(german.count(words[1]), english.count(words[0]))
        entries = [("abbilden", "to map", 3), ("Abbild", "to map", 3), ("selten", "to map", 1), ("heben", "to lift the whole thing", 9)]
        self.assertEqual(list(everyday.buttons(entries)), [("Abbilden", "Map")])
        named = list(everyday.renamed([("Tom lacht.", "Tom laughs.")] * 50, rng, allowed))
        self.assertTrue(named and all(a[:-len(" lacht.")] == b[:-len(" laughs.")] != "Tom" for a, b in named))

    def test_some_pairs_of_a_source(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("large", "small"):
                for lang, noun in (("en", "House"), ("de", "Haus")):
                    with bz2.open(os.path.join(folder, f"{name}.{lang}.bz2"), "wt", encoding="utf-8") as f:
                        f.writelines(f"{noun} {i} {name}.\n" for i in range(20))
            out = os.path.join(folder, "out")
            self.assertEqual(corpus.prepare(folder, "en", "de", out, take={"large": 5, "small": 30}), {"large": 5, "small": 20})
            sides = [corpus.read_lines(os.path.join(out, "pairs." + lang)) for lang in ("en", "de")]
            self.assertEqual([x.replace("House", "Haus") for x in sides[0]], list(sides[1]))
            self.assertEqual(len(set(sides[0])), 25)

    def test_lists_of_the_program(self):
        with tempfile.TemporaryDirectory() as out:
            path = os.path.join(out, "list")
            corpus.write_lines(path, ["0 ||| a ||| F0= -1 ||| -1", "0 ||| b ||| c ||| F0= -2 ||| -1", "2 ||| d ||| F0= -1 ||| -1"])
            self.assertEqual(engine.texts(path, True), [["a", "b ||| c"], [], ["d"]])
            corpus.write_lines(path, ["a", "", "b"])
            self.assertEqual(engine.texts(path, False), [["a"], [""], ["b"]])
            self.assertEqual(engine.texts(path + "no", False), [])

    def test_alternatives_of_workers(self):
        with tempfile.TemporaryDirectory() as out:
            for rank, text in enumerate(("0\ta\tb\n", "2\tc\n")):
                corpus.write_lines(os.path.join(out, f"x.en.made.{rank}"), text.splitlines())
            found = distill.collect(out, "x.en.bz2", 2)
            self.assertEqual(found, ["a\tb", "", "c"])
            picked = mix.pick_all(["s", "s", "s"], None, found)
            self.assertEqual(picked, ["a", "", "c"])
            distill.write_made(out, "x.en.bz2", picked)
            self.assertEqual(list(corpus.read_lines(os.path.join(out, "x.en.made"))), picked)

    def test_paths_leave_a_vocabulary(self):
        inner = subword.fields(b"\x08\x05\x12\x03abc")
        self.assertEqual([(n, v) for n, _, _, v in inner], [(1, None), (2, b"abc")])
        model = b"\x0a\x01x\x12\x0c\x12\x03w/v\x18\x02\x0a\x03in/" + b"\x1a\x06\x0a\x01n\x32\x01r" \
            + b"\x12\x0b\x08\x05\xb2\x03\x01s\x0a\x01i\x20\x07\x2a\x03\x32\x01r"
        clean = b"\x0a\x01x\x12\x02\x18\x02\x1a\x03\x0a\x01n\x12\x04\x08\x05\x20\x07\x2a\x00"
        self.assertEqual(subword.without_paths(model), clean)
        self.assertEqual(export.Pieces(model, size=1).model, clean)     # whatever wrote the checkpoint

    def test_variants(self):
        rng = random.Random(3)
        for _ in range(300):
            item = augment.token(rng)
            self.assertTrue(item and not item.isspace())
        source, target = augment.copy("A test.", "Ein Test.", rng)
        self.assertGreater(len(set(source.split()) & set(target.split())), 0)
        self.assertEqual(augment.upper("a", "Straße", random.Random(1)), ("A", "STRASSE"))
        for kind in augment.KINDS.values():
            made = kind("The house is red and old.", "Das Haus ist rot und alt.", rng)
            self.assertTrue(made is None or (made[0] and made[1]))

    def test_normalisation(self):
        rules = subword.rules()
        self.assertEqual(rules["e\u0301"], "é")
        self.assertEqual(rules["\u00a0"], " ")
        self.assertEqual(rules["ﬁ"], "fi")
        self.assertNotIn("²", rules)
        self.assertNotIn("\u200d", rules)                               # joins emoji


class Steps(unittest.TestCase):
    def model(self, **changes):
        torch.manual_seed(1)
        settings = dict(vocab_size=40, d_model=16, ffn_dim=32, heads=2, encoder_layers=1, decoder_layers=2, dropout=0.0)
        return Transformer(TransformerConfig(**{**settings, **changes}))

    def test_token_loss(self):
        hidden, rows, bias = torch.randn(2, 3, 4), torch.randn(7, 4), torch.randn(7)
        expected = torch.tensor([[1, 2, 7], [3, 7, 7]])
        logits = hidden @ rows.t() + bias
        real = expected != 7
        want = torch.nn.functional.cross_entropy(logits[real], expected[real], label_smoothing=0.1)
        loss, nll = losses.token_loss(hidden, rows, bias, expected, 7, 0.1)
        self.assertAlmostEqual(float(loss), float(want), places=5)
        plain = torch.nn.functional.cross_entropy(logits[real], expected[real])
        self.assertAlmostEqual(float(nll), float(plain), places=5)
        squared = (logits.logsumexp(-1)[real] ** 2).mean()
        with_norm, _ = losses.token_loss(hidden, rows, bias, expected, 7, 0.1, 0.5)
        self.assertAlmostEqual(float(with_norm), float(want + 0.5 * squared), places=4)

    def test_token_loss_by_rows(self):
        """The same loss and gradients without a matrix of all logits; padding counts nothing."""
        expected = torch.randint(0, 30, (4, 6))
        expected[2:, 4:] = 30
        start = [torch.randn(4, 6, 8), torch.randn(30, 8), torch.randn(30)]
        found = []
        for way in (losses.token_loss, lambda *a: losses.token_loss_by_rows(*a, dtype=torch.float32, block=5)):
            given = [x.clone().requires_grad_() for x in start]
            loss, nll = way(*given, expected, 30)
            (2.0 * loss).backward()
            found.append([loss, nll, *(x.grad for x in given)])
        for a, b in zip(*found):
            self.assertTrue(torch.allclose(a, b, atol=1e-5))

    def test_optimisers_equal_pytorch(self):
        for name in ("adam", "adadelta"):
            ours, theirs = self.model(), self.model()
            flat = optim.Flat(ours)
            mine = optim.build(flat, {"name": name})
            other = (torch.optim.Adam(theirs.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9) if name == "adam"
                     else torch.optim.Adadelta(theirs.parameters(), lr=0.01, rho=0.95, eps=1e-6))
            source, given = torch.randint(2, 40, (2, 5)), torch.randint(2, 40, (2, 4))
            for _ in range(4):
                flat.gradients.zero_()
                ours.logits(ours(source, given)).pow(2).sum().backward()
                mine.step(torch.tensor(0.01))
                other.zero_grad()
                theirs.logits(theirs(source, given)).pow(2).sum().backward()
                other.step()
            for (key, a), b in zip(ours.named_parameters(), theirs.parameters()):
                if not key.endswith(".k.bias"):                         # its gradient is zero up to rounding
                    self.assertTrue(torch.allclose(a, b, atol=2e-4), (name, key, float((a - b).abs().max())))

    def test_parameters_are_aligned(self):
        model = Transformer(TransformerConfig(vocab_size=27, d_model=12, ffn_dim=20, heads=2, encoder_layers=1, decoder_layers=1))
        before = [p.detach().clone() for p in model.parameters()]
        flat = optim.Flat(model)
        for p, kept in zip(model.parameters(), before):
            self.assertTrue(torch.equal(p, kept))
            self.assertEqual((p.data_ptr() - flat.weights.data_ptr()) % 128, 0)
            self.assertEqual((p.grad.data_ptr() - flat.gradients.data_ptr()) % 128, 0)
        self.assertAlmostEqual(float(flat.weights.norm()), float(torch.cat([p.reshape(-1) for p in before]).norm()), places=4)

    def test_clipping_and_average(self):
        model = self.model()
        flat = optim.Flat(model)
        flat.gradients.fill_(1.0)
        flat.clip_gradients(1.0)
        self.assertAlmostEqual(float(flat.gradients.norm()), 1.0, places=3)
        for odd in (float("nan"), float("inf")):                        # such a step is left out
            flat.gradients.fill_(1.0)[3] = odd
            self.assertEqual(float(flat.clip_gradients(1.0)), 0.0)
            self.assertEqual(float(flat.gradients.abs().max()), 0.0)
        flat.weights.fill_(3.0)
        flat.clip_weights(1.0)
        self.assertEqual(float(model.embedding.max()), 1.0)
        self.assertEqual(float(model.encoder[0].self_norm.weight.max()), 3.0)
        mean = optim.Average(flat, 0.9, 1, 0)
        mean.weights.zero_()
        mean.update(1)
        self.assertAlmostEqual(float(mean.weights[0]), 0.1, places=6)

    def test_schedules(self):
        rate = optim.schedule({"peak": 1.0, "warmup": 10, "kind": "cosine", "floor": 0.0})
        self.assertAlmostEqual(rate(4, 0.0), 0.5)
        self.assertAlmostEqual(rate(100, 0.5), 0.5)
        self.assertAlmostEqual(rate(100, 1.0), 0.0)
        self.assertAlmostEqual(optim.schedule({"peak": 1.0, "warmup": 4, "kind": "inverse_sqrt"})(15, 0.1), 0.5)
        with self.assertRaises(ValueError):
            optim.schedule({"peak": 1.0, "kind": "square"})

    def test_search(self):
        models = [self.model(decoder_cell=cell).eval() for cell in ("attention", "ssru")]
        models.append(RNN(RNNConfig(40, embed=8, encoder_hidden=8, decoder_hidden=8, attention=8, dropout=0.0)).eval())
        models.append(RNN(RNNConfig(40, embed=8, encoder_hidden=8, decoder="devlin", decoder_hidden=8, attention=8,
                                    decoder_cell="lstm", upper_layers=2, fc_layers=3, fc_size=5, top="gru", top_size=6,
                                    readout="none", dropout=0.0)).eval())
        for model in models:
            sources = [[5, 6, 7], [8], [9, 10, 11, 12, 13, 14]]
            rows = [search.pad_rows([s], model.source_pad, "cpu") for s in sources]
            padded = search.pad_rows(sources, model.source_pad, "cpu")
            self.assertEqual(search.greedy(model, padded, 12), [search.greedy(model, r, 12)[0] for r in rows])
            many = search.beam(model, padded, 12, 3, nbest=3)
            self.assertEqual([some[0] for some in many], search.beam(model, padded, 12, 3))
            self.assertTrue(all(len({tuple(x) for x in some}) == len(some) for some in many))
            found = search.beam(model, padded, 12, 3)
            self.assertEqual(found, [search.beam(model, r, 12, 3)[0] for r in rows])
            self.assertTrue(all(search.UNK not in ids for ids in found))
            self.assertEqual(len(search.translate_ids(model, sources, 2)), 3)
            left = search.beam(model, padded, 12, 3, leave=0.9)         # the first check ends it
            self.assertTrue(all(mine == whole or len(mine) < 4 for mine, whole in zip(left, found)))

    def test_top(self):
        scores = torch.randn(20, 1280)
        for mine, theirs in zip(search.top(scores, 4), scores.topk(4, -1)):
            self.assertTrue(torch.equal(mine, theirs))

    def test_words(self):
        with tempfile.TemporaryDirectory() as folder:
            text, path = os.path.join(folder, "a.tok"), os.path.join(folder, "v.words")
            with open(text, "w", encoding="utf-8") as f:
                f.write("the cat saw the dog .\nthe dog <unk> .\n")
            known = wordlist.build([text], path, 6)
            words = wordlist.load(path)
            self.assertEqual(words.words, ["</s>", "<unk>", "the", ".", "dog", "cat"])
            self.assertAlmostEqual(known, 8 / 9)
            self.assertEqual(words.encode(["the bird .", "</s>"]), [[2, 1, 3], [1]])
            self.assertEqual(words.decode([[2, 4], []]), ["the dog", ""])
            packed = mix.mix(path, ["the cat", "dog ."], ["dog", "the bird"], None, None, shares={}, processes=1,
                             source_model=path)
            self.assertEqual(packed.pair(1), ([4, 3], [2, 1]))
            with open(path, "a", encoding="utf-8") as f:
                f.write("cat\n")
            with self.assertRaises(ValueError):
                wordlist.load(path)

    def test_wide_ids(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.bin")
            for ids, kind in (([5, 65535], "uint16"), ([5, 79999], "uint32")):
                Packed.from_lists([(ids, [1, 2], 1), ([7], ids, 2)]).save(path)
                back = Packed.load(path)
                self.assertEqual((back.pair(0), back.pair(1)), ((ids, [1, 2]), ([7], ids)))
                self.assertEqual(back.source.dtype, kind)
            self.assertEqual(export.by_frequency(path, 2), [[5, 7], [1, 2]])

    def test_alignment_finds_the_diagonal(self):
        rng = random.Random(1)
        pairs = []
        for _ in range(400):
            words = [rng.randrange(2, 12) for _ in range(rng.randrange(2, 6))]
            pairs.append((words, [w + 10 for w in reversed(words)], 1))
        batches = Batches(Packed.from_lists(pairs), 30, 512, "cpu", widths=(8,))
        guide, forward = align.train_guide(batches, 30, 30, slope=0.0)
        self.assertTrue(all(int(forward[w].argmax()) == w + 10 for w in range(2, 12)))
        points = guide(torch.tensor([[3, 5, 9, 0]]), torch.tensor([[19, 15, 13, 0]]))[0].argmax(-1).tolist()
        self.assertEqual(points, [2, 1, 0, 3])

    def test_lexicon_tables_join(self):
        class Letters:                                                  # stands for a SentencePiece processor
            IdToPiece = staticmethod(lambda i: "<>abcd"[i])
        with tempfile.TemporaryDirectory() as folder:
            path, text = os.path.join(folder, "l.npz"), os.path.join(folder, "t.lex")
            ids, values = np.array([[1, 3]] * 3, np.uint16), np.array([[0.9, 0.5]] * 2 + [[0.9, 0.1]], np.float16)
            np.savez(path, ids=ids, probabilities=values)
            corpus.write_lines(text, ["b a 0.25", "d a 0.125"])
            found = align.table(path, Letters, [text], 0.2)
        self.assertEqual(found, {("<", "b"): 0.5, (">", "b"): 0.5, ("a", "b"): 0.25, ("a", "d"): 0.125})

    def test_loops_and_languages(self):
        looping = " ".join(["a b c d"] * 3)
        self.assertEqual(quality.repetition([looping, "a b c d e"]), 0.5)
        classify = lambda text: "de" if "ü" in text else "en"           # noqa: E731
        found = quality.share(["für", "for", "for"], ["a b c d ü", "a b c d e", "ü"], "de", classify)
        self.assertEqual(found, (0.5, 0.5, 2))

    def test_average_of_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, f"{i}.pt") for i in range(3)]
            model = self.model()
            for i, path in enumerate(paths[:2]):
                with torch.no_grad():
                    model.output_bias.fill_(float(i))
                checkpoint.save_model(path, model, b"v", {"a": 1})
            checkpoint.average(paths[:2], paths[2])
            self.assertAlmostEqual(float(checkpoint.load_model(paths[2]).output_bias[0]), 0.5)

    def test_end_moved_by_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            run = SimpleNamespace(path=lambda name: os.path.join(folder, name), elapsed=100.0, recipe={"budget": {"seconds": 600}})
            train.Trainer.new_deadline(run)
            self.assertEqual(run.recipe["budget"]["seconds"], 600)
            corpus.write_lines(run.path("stop_at"), [str(time.time() + 1e6)])
            train.Trainer.new_deadline(run)
            self.assertAlmostEqual(run.recipe["budget"]["seconds"] / 1e6, 1.0, delta=0.1)
            run.recipe["budget"]["seconds"] = 0                         # by steps: no clock
            train.Trainer.new_deadline(run)
            self.assertEqual(run.recipe["budget"]["seconds"], 0)

    def test_recipe(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.yaml")
            with open(path, "w") as f:
                f.write("budget: {steps: 5}\nmodel: {d_model: 8}\n")
            held = recipe.load(path, ["schedule.peak=0.5", "model.heads=2"])
            self.assertEqual((held["schedule"]["peak"], held["model"]["heads"]), (0.5, 2))
            with self.assertRaises(ValueError):
                recipe.load(path, ["schedul.peak=0.5"])
            with open(path, "w") as f:
                f.write("budgett: {steps: 5}\n")
            with self.assertRaises(ValueError):
                recipe.load(path)
        folder = os.path.join(os.path.dirname(__file__), "..", "recipes")
        for name in sorted(os.listdir(folder)):
            if name.endswith(".yaml"):
                held = recipe.load(os.path.join(folder, name))
                kind = {"rnn": RNNConfig, "cmlm": CmlmConfig}.get(held["architecture"], TransformerConfig)
                self.assertIn(held["architecture"], train.ARCHITECTURES)
                given = {"tokens_per_step": 2} if held["architecture"] == "double" else {}
                kind.from_dict({"vocab_size": 10, **given, **held["model"]})

    def test_warm_start(self):
        """A giver's source side arrives in every kind of decoder; rows of their own and decoders stay random."""
        shape = {"d_model": 16, "ffn_dim": 24, "heads": 2, "encoder_layers": 2, "decoder_layers": 1, "dropout": 0.0}
        learned = {**shape, "positions": "learned", "max_positions": 20}
        giver = Transformer(TransformerConfig(vocab_size=30, **shape)).eval()
        source = torch.tensor([[5, 9, 7, 0]])
        with tempfile.TemporaryDirectory() as folder:
            checkpoint.save_model(os.path.join(folder, "giver.pt"), giver, dtype=torch.float32)
            path = lambda name: os.path.join(folder, name)
            given = {"model": "giver.pt", "positions": ""}
            single = Transformer(TransformerConfig(vocab_size=30, order="r2l", **shape)).eval()
            decoder = single.decoder[0].fc1.weight.clone()
            warm.start(single, given, path)
            self.assertTrue(torch.equal(single.encode(source)[0], giver.encode(source)[0]))
            self.assertTrue(torch.equal(single.decoder[0].fc1.weight, decoder))
            double = Transformer(TransformerConfig(vocab_size=32, tokens_per_step=2, order="bidirectional", **learned)).eval()
            own = double.embedding[30:].clone()
            warm.start(double, {**given, "positions": "sinusoidal"}, path)
            self.assertTrue(torch.equal(double.encode(source)[0], giver.encode(source)[0]))
            self.assertTrue(torch.equal(double.embedding[30:], own))
            masked = Cmlm(CmlmConfig(vocab_size=31, lengths=8, **learned)).eval()
            warm.start(masked, {**given, "positions": "sinusoidal"}, path)
            self.assertTrue(torch.equal(masked.embed(source, "source", 1), giver.embed(source, "source")))
            for wrong, word in (({**shape, "ffn_dim": 32}, "ffn_dim"), ({**shape, "activation": "swish"}, "activation")):
                with self.assertRaisesRegex(ValueError, word):
                    warm.start(Transformer(TransformerConfig(vocab_size=30, **wrong)), given, path)
            with self.assertRaisesRegex(ValueError, "not learned"):
                warm.start(single, {**given, "positions": "sinusoidal"}, path)
            os.mkdir(path("teacher"))
            os.rename(path("giver.pt"), path("teacher/model.pt"))
            other = Transformer(TransformerConfig(vocab_size=30, **shape)).eval()
            warm.start(other, {"model": "teacher", "positions": ""}, path)
            self.assertTrue(torch.equal(other.encode(source)[0], giver.encode(source)[0]))
            rnn = RNN(RNNConfig(vocab_size=30, embed=8, encoder_hidden=4, decoder_hidden=8, attention=4))
            with self.assertRaisesRegex(ValueError, "only Transformers"):
                warm.start(rnn, {"model": "teacher", "positions": ""}, path)

    def test_warm_whole(self):
        """All weights arrive from a model.pt and, but for the rounding of its storage, from a model file; another shape is refused."""
        shape = {"d_model": 16, "ffn_dim": 24, "heads": 2, "encoder_layers": 2, "decoder_layers": 1}
        giver = Transformer(TransformerConfig(vocab_size=30, dropout=0.3, **shape)).eval()
        with torch.no_grad():
            for parameter in giver.parameters():
                parameter.normal_(0, 0.3)
        with tempfile.TemporaryDirectory() as folder:
            path = lambda name: os.path.join(folder, name)
            pieces = export.Pieces(b"\x0a\x08\x0a\x06<made>", size=30)         # a model of one piece, as a message
            checkpoint.save_model(path("giver.pt"), giver, dtype=torch.float32)
            export.export(path("giver.gguf"), giver, pieces)
            for name in ("giver.pt", "giver.gguf"):
                taker = Transformer(TransformerConfig(vocab_size=giver.config.vocab_size, dropout=0.1, **shape))
                warm.start(taker, {"model": name, "whole": True, "positions": ""}, path)
                for (which, a), b in zip(taker.state_dict().items(), giver.state_dict().values()):
                    self.assertTrue(torch.equal(a, b), which)
                other = Transformer(TransformerConfig(vocab_size=giver.config.vocab_size, **{**shape, "decoder_layers": 2}))
                with self.assertRaisesRegex(ValueError, "decoder_layers"):
                    warm.start(other, {"model": name, "whole": True, "positions": ""}, path)
            subprocess.run([sys.executable, "-m", "dragoman_training.model_file", path("giver.gguf"), path("back.spm")], check=True)
            with open(path("back.spm"), "rb") as f:
                self.assertEqual(f.read(), pieces.model)

    def test_self_normalised_start(self):
        torch.manual_seed(1)
        sizes = dict(vocab_size=50, embed=8, encoder_hidden=4, decoder_hidden=8, attention=4, readout="linear")
        model = RNN(RNNConfig(**sizes, uniform=0.1, normalised_start=True, dropout=0.5, dropout_inside=False)).train()
        weights = torch.cat([p.reshape(-1) for name, p in model.named_parameters() if name != "output_bias"])
        self.assertLessEqual(float(weights.abs().max()), 0.1)
        self.assertGreater(float(weights.std()), 0.05)
        source, given = torch.tensor([[3, 4, 0]]), torch.tensor([[50, 5, 6]])
        with torch.no_grad():
            self.assertLess(float(model.logits(model(source, given)).logsumexp(-1).abs().max()), 0.2)
            self.assertTrue(torch.equal(model.encode(source)[0], model.encode(source)[0]))      # no dropout inside
            self.assertFalse(torch.equal(model(source, given), model(source, given)))           # but of the output

    def test_bleu(self):
        self.assertAlmostEqual(metric.bleu(["a b c d e ."], ["a b c d e ."]), 100.0)
        self.assertTrue(math.isfinite(metric.bleu(["a"], ["b c d e"])))
        self.assertLess(metric.bleu(["a b c d x y"], ["a b c d e f"]), 80.0)
        self.assertEqual(metric.tokens("Er kam, 3,5 km (fast)."),
                         ["Er", "kam", ",", "3,5", "km", "(", "fast", ")", "."])


if __name__ == "__main__":
    np.random.seed(1)
    unittest.main()
