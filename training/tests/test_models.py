# SPDX-License-Identifier: MIT
"""The PyTorch side of the model files: modules agree with themselves, files hold what was put in.

    PYTHONPATH=training python3 -m unittest discover -s training/tests

Teacher-forced and step-by-step decoding agree, padding changes nothing, a file read back gives the exported weights,
quantised rows stay within half a step, and settings that make no sense are refused. The C tests compare the engine with
these modules (fixtures.py).
"""
import os
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import torch

from dragoman_training import checkpoint, export, fixtures, fold, model_file, optim, recurrence, step_attention
from dragoman_training.cmlm import Cmlm, CmlmConfig, mask_predict
from dragoman_training.gguf_writer import Reader, Writer
from dragoman_training.rnn import CHOICES, RNN, RNNConfig
from dragoman_training.transformer import Transformer, TransformerConfig


STEP = """
import torch
from dragoman_training import step_attention, transformer
torch.manual_seed(1)
for b, h, w, t, k, masked in ((3, 2, 1, 5, 64, 0), (3, 2, 4, 37, 64, 1), (2, 8, 1, 70, 32, 1), (2, 4, 4, 16, 16, 0)):
    q = torch.randn(b, w, h, k).transpose(1, 2)
    keys, values = torch.randn(b, h, t + 9, k)[:, :, :t], torch.randn(b, t, h, k).transpose(1, 2)
    mask = (torch.arange(t)[None] < torch.randint(1, t + 1, (b, 1)))[:, None, None] if masked else None
    with torch.no_grad():
        assert step_attention.usable(q)
        found = step_attention.attend(q, keys, values, mask)
        assert (found - transformer.attention(q, keys, values, mask)).abs().max() < 1e-5
        rows = torch.randint(0, b, (b, t + 3), dtype=torch.int32)[:, :t]
        found = step_attention.attend(q, keys, values, mask, rows)
        step_attention.WANTED = False
        assert (found - transformer.attention_step(q, keys, values, mask, rows)).abs().max() < 1e-5
        moved = torch.stack([torch.stack([keys[rows[i, j], :, j] for j in range(t)], 1) for i in range(b)])
        assert torch.equal(moved, keys.transpose(1, 2)[rows.long(), torch.arange(t)].transpose(1, 2))
        step_attention.WANTED = True
"""

SUMMARY = """
import torch
from dragoman_training import row_summary, search
torch.manual_seed(1)
for n, size in ((3, 1280), (5, 2176), (2, 16000)):
    logits = torch.randn(n, size + 7)[:, :size] * 4
    logits[0, 0] = 30.0
    assert row_summary.usable(logits, 4) and not row_summary.usable(logits, size)
    found, wanted = search.candidates(logits.clone(), 4), logits.log_softmax(-1)
    assert (found[0] - wanted[:, 0]).abs().max() < 1e-4
    wanted[:, :2] = -1e9
    values, tokens = wanted.topk(4)
    assert torch.equal(found[2], tokens) and (found[1] - values).abs().max() < 1e-4
"""

SCAN = """
import torch
from dragoman_training import decoder_scan, rnn
for kind in ("conditional", "bahdanau", "devlin"):
    torch.manual_seed(1)
    model = rnn.RNN(rnn.RNNConfig(30, embed=8, encoder_hidden=12, decoder_hidden=20, attention=72, decoder=kind, dropout=0.0,
                                  readout="none" if kind == "devlin" else "linear"))
    for p in model.parameters():
        if p.dim() == 1:
            torch.nn.init.uniform_(p, -0.3, 0.3)
    source, target = torch.randint(1, 30, (3, 9)), torch.randint(1, 30, (3, 5))
    source[:, -1], source[1, 4:], source[1, 3], target[:, 0] = 0, 30, 0, 30
    found = []
    for decoder_scan.WANTED in (False, True):
        model.zero_grad()
        logits = model.logits(model(source, target))
        logits.log_softmax(-1)[..., :7].pow(2).mean().backward()
        found.append([logits.detach()] + [p.grad.clone() for p in model.parameters()])
    assert decoder_scan.usable(logits, model.cell)
    for a, b in zip(*found):
        assert (a - b).norm() < 1e-4 * a.norm() + 1e-7, (kind, a.shape)
"""


def rnn(**changes):
    settings = dict(vocab_size=20, source_vocab_size=25, embed=8, encoder_hidden=5, decoder_hidden=6, attention=7,
                    readout_size=9)
    torch.manual_seed(1)
    return RNN(RNNConfig(**{**settings, **changes})).double().eval()


class Orders(unittest.TestCase):
    """Pairs and whole sentences: folding, step by step as teacher-forced, masks."""
    source = torch.tensor([[3, 4, 5, 0], [6, 0, 22, 22]])

    def test_folding(self):
        for order in fold.ORDERS:
            for n in range(201):
                words = list(range(100, 100 + n))
                flat = fold.fold(words, order, 7)
                self.assertEqual(len(flat), 2 * (n // 2 + 1))
                self.assertEqual(fold.unfold(flat, order, 7), words)
                if n < 63:
                    target = torch.tensor([words + [0] + [999] * (63 - n)])
                    given, expected = fold.arrange(target, 999, order, 2, 7, 8)
                    self.assertEqual(expected[0].tolist(), (flat + [999] * 64)[:64])
                    self.assertEqual(given[0].tolist(), ([8, 0] + flat + [999] * 64)[:64])

    def test_reversed(self):
        target = torch.tensor([[5, 6, 7, 0, 9], [4, 0, 9, 9, 9]])
        given, expected = fold.arrange(target, 9, "r2l", 1, 7, 8)
        self.assertEqual(expected.tolist(), [[7, 6, 5, 0, 9], [4, 0, 9, 9, 9]])
        self.assertEqual(given.tolist(), [[9, 7, 6, 5, 0], [9, 4, 0, 9, 9]])

    def test_steps(self):
        for tokens in (1, 2):
            for cell in ("attention", "ssru", "aan"):
                torch.manual_seed(2)
                model = Transformer(TransformerConfig(22, d_model=16, heads=2, ffn_dim=12, encoder_layers=1,
                                                      decoder_layers=2, decoder_cell=cell, tokens_per_step=tokens,
                                                      positions="learned", max_positions=30)).double().eval()
                target = torch.randint(0, 20, (2, 8))
                with torch.no_grad():
                    whole = model(self.source, target)
                    memory, mask = model.encode(self.source)
                    cross = [layer.cross_attn.keys_values(memory) for layer in model.decoder]
                    states = model.start_states(2, 8, "cpu", torch.float64)
                    for t in range(8 // tokens):
                        given = target[:, t * tokens:(t + 1) * tokens]
                        found = model.step(given[:, 0] if tokens == 1 else given, t, states, cross, mask)
                        found = found[:, None] if tokens == 1 else found
                        self.assertLess((found - whole[:, t * tokens:(t + 1) * tokens]).abs().max(), 1e-5)

    def test_masks(self):
        torch.manual_seed(3)
        model = Cmlm(CmlmConfig(22, d_model=16, heads=2, ffn_dim=12, encoder_layers=1, decoder_layers=1, lengths=20,
                                dropout=0.0)).eval()
        target = torch.tensor([[5, 6, 7, 8, 0, 22], [4, 0, 22, 22, 22, 22]])
        for _ in range(50):
            given, expected = model.arrange(target)
            chosen = expected != model.pad
            self.assertTrue(bool((chosen.sum(1) >= 1).all()) and not bool(chosen[0, 4]) and not bool(chosen[1, 1:].any()))
            self.assertTrue(bool((given[chosen] == model.mask).all()) and bool((expected[chosen] == target[chosen]).all()))
        model(self.source, given)
        self.assertGreater(float(model.side_loss(target)), 0)
        with torch.no_grad():
            together = mask_predict(model, self.source, 4, 3)
            self.assertEqual(together[1:], mask_predict(model, self.source[1:, :2], 4, 3))     # padding changes nothing

    def test_refused(self):
        for settings in (dict(order="bidirectional"), dict(order="up"), dict(tokens_per_step=3)):
            with self.assertRaises(ValueError):
                TransformerConfig(22, d_model=16, heads=2, **settings)
        with self.assertRaises(ValueError):
            CmlmConfig(22, d_model=16, heads=2, order="r2l")


class RecurrentModels(unittest.TestCase):
    source = torch.tensor([[3, 4, 5, 0], [6, 0, 25, 25]])
    target = torch.tensor([[20, 1, 2, 3], [20, 4, 5, 6]])

    def variants(self):
        for decoder in CHOICES["decoder"]:
            for readout in CHOICES["readout"]:
                yield rnn(decoder=decoder, readout=readout, encoder_cell="lstm" if readout == "tanh" else "gru",
                          encoder_layers=2, encoder_bidirectional=readout != "linear")
        none = dict(readout="none", readout_size=0, decoder="devlin")
        yield rnn(**none, top="gru", top_size=7)
        yield rnn(**none, fc_layers=5, fc_size=4, top="tanh", top_size=7, encoder_fc_layers=3, encoder_fc_size=4)
        yield rnn(**none, encoder_cell="lstm", encoder_layers=4, encoder_bidirectional_layers=1, encoder_residual=True,
                  decoder_cell="lstm", upper_layers=3, upper_context=True, upper_residual=True)
        yield rnn(decoder="bahdanau", upper_layers=2, upper_residual=True, fc_layers=1, fc_size=5, top="gru", top_size=3)

    def test_padding_and_steps(self):
        for model in self.variants():
            with torch.no_grad():
                all_steps = model.logits(model(self.source, self.target))
                alone = model.logits(model(self.source[1:, :2], self.target[1:]))
                self.assertTrue(torch.allclose(all_steps[1:], alone, atol=1e-12))
                memory, mask = model.encode(self.source)
                keys, h = model.cell.keys(memory), model.start(memory, mask)
                for t in range(4):
                    hidden, h, weights = model.step(self.target[:, t], h, keys, memory, mask)
                    self.assertTrue(torch.allclose(model.logits(hidden), all_steps[:, t], atol=1e-12))
                    self.assertTrue(torch.allclose(weights.sum(1), torch.ones(2).double()))
                    self.assertEqual(weights[1, 2:].abs().max().item(), 0)

    def test_gradients_reach_every_parameter(self):
        for model in self.variants():
            loss = model.train().logits(model(self.source, self.target)).logsumexp(-1).sum()
            loss.backward()
            for name, parameter in model.named_parameters():
                self.assertIsNotNone(parameter.grad, name)

    def test_scan_is_a_gru(self):
        """The recurrence that a GPU uses against nn.GRU, with its gradients."""
        torch.manual_seed(2)
        layer = torch.nn.GRU(3, 5, 1, batch_first=True, bidirectional=True).double()
        found = []
        for ours in (False, True):
            x = torch.randn(4, 6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.double, requires_grad=True)
            if ours:
                front, back = recurrence.gru_layer(layer, [x, x.flip(1)], ["l0", "l0_reverse"])
                out = torch.cat([front, back.flip(1)], -1)
            else:
                out = layer(x)[0]
            layer.zero_grad()
            (out * torch.linspace(-1, 1, 10, dtype=torch.double)).sum().backward()
            found.append([out.detach(), x.grad] + [p.grad.clone() for p in layer.parameters()])
        for expected, got in zip(*found):
            self.assertTrue(torch.allclose(expected, got, atol=1e-12))

    def test_start_token(self):
        model = rnn(start_token=3)
        plain = rnn()
        plain.load_state_dict(model.state_dict())
        with torch.no_grad():
            first = torch.tensor([[3, 1, 2, 3], [3, 4, 5, 6]])
            self.assertTrue(torch.equal(model(self.source, self.target), plain(self.source, first)))
            self.assertFalse(torch.equal(plain(self.source, self.target), plain(self.source, first)))

    def test_refused_settings(self):
        for changes in (dict(decoder="other"), dict(tied="all"), dict(tied="target", source_vocab_size=20),
                        dict(start_token=20), dict(fc_layers=2, fc_size=4), dict(fc_layers=3), dict(top="tanh"),
                        dict(decoder="bahdanau", decoder_cell="lstm"), dict(encoder_layers=2, encoder_bidirectional_layers=3),
                        dict(encoder_layers=3, encoder_bidirectional_layers=2, encoder_residual=True)):
            with self.assertRaises(ValueError):
                rnn(**changes)
        with self.assertRaises(ValueError):
            RNNConfig.from_dict({"vocab_size": 5, "colour": "red"})


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "m.gguf")

    def tearDown(self):
        self.folder.cleanup()

    def test_read_back(self):
        for changes in ({}, dict(decoder_cell="ssru", activation="relu", relu_clip=10.0, output_bias=False),
                        dict(norm="pre", tied="none", source_vocab_size=12, bias=False, embedding_norm=True)):
            torch.manual_seed(2)
            module = Transformer(TransformerConfig(**{**dict(vocab_size=10, d_model=8, ffn_dim=6, heads=2, dropout=0.0),
                                                      **changes}))
            source = export.Words([str(i) for i in range(module.config.source_vocab_size)])
            target = export.Words([str(i) for i in range(10)])
            export.export(self.path, module, source, target if module.config.tied == "none" else None)
            back = model_file.module_of(Reader(self.path))
            self.assertEqual({**back.config.to_dict(), "norm_eps": 0}, {**module.config.to_dict(), "norm_eps": 0})
            state = back.state_dict()
            self.assertTrue(all(torch.equal(state[k], v) for k, v in module.state_dict().items()))

    def test_container(self):
        out = Writer()
        out.string("a", "ä")
        out.strings("b", ["x", ""])
        out.i32s("c", [-1, 5])
        out.u8s("d", b"\x00\xff")
        out.bool("e", True)
        out.tensor("t", np.arange(6, dtype=np.float32).reshape(2, 3))
        with self.assertRaises(ValueError):
            out.string("a", "twice")
        with self.assertRaises(ValueError):
            out.tensor("u", np.zeros(2))                    # float64 has no type in the format
        out.save(self.path)
        back = Reader(self.path)
        self.assertEqual(back.metadata, {"general.alignment": 64, "a": "ä", "b": ["x", ""], "c": [-1, 5],
                                         "d": [0, 255], "e": True})
        self.assertTrue(np.array_equal(back.tensors["t"], [[0, 1, 2], [3, 4, 5]]))
        with open(self.path, "rb") as f:
            data = f.read()
        at = data.index(b"t" + struct.pack("<IQQ", 2, 3, 2))   # columns first
        self.assertGreater(at, 0)
        self.assertEqual(len(data) % 64, 0)

    def test_storage(self):
        torch.manual_seed(2)
        model = Transformer(TransformerConfig(43, d_model=16, heads=2, ffn_dim=20, encoder_layers=1, decoder_layers=1))
        vocabulary = export.Words(fixtures.words(43, 1))
        weight = model.encoder[0].fc1.weight.detach().numpy()
        for storage, bound in (("f32", 0.0), ("f16", 1e-3)):
            export.export(self.path, model, vocabulary, storage=storage)
            back = Reader(self.path).tensors["enc.0.ffn.in.weight"].astype(np.float32)
            self.assertLessEqual(np.abs(back - weight).max(), bound)
        export.export(self.path, model, vocabulary, storage="i8")
        tensors = Reader(self.path).tensors
        q, scale = tensors["enc.0.ffn.in.weight"], tensors["enc.0.ffn.in.weight.scale"]
        self.assertEqual(q.dtype, np.int8)
        self.assertLessEqual(np.abs(q * scale[:, None] - weight).max(), scale.max() * 0.501)
        self.assertEqual(np.abs(q).max(), 127)
        with self.assertRaises(ValueError):
            export.export(self.path, model, export.Words(fixtures.words(42, 1)))

    def test_checkpoint(self):
        pieces, size = fixtures.tiny_pieces()
        model = RNN(RNNConfig(size, embed=8, encoder_hidden=4, decoder_hidden=8, attention=8))
        held = os.path.join(self.folder.name, "model.pt")
        checkpoint.save_model(held, model, pieces, dtype=torch.float32)
        again = export.module_from(checkpoint.read(held))
        self.assertIsInstance(again, RNN)
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(again.state_dict()[name], value), name)

    def test_one_fixture(self):
        root = os.path.join(os.path.dirname(__file__), "..", "..")
        subprocess.run([os.path.join(root, "scripts", "test_data"), "unpack"], check=True)
        self.assertTrue(fixtures.check(os.path.join(root, "tests", "data", "models"), "rnn-devlin-tanh-lstm"))


@unittest.skipIf(step_attention.triton is None, "no Triton")
class StepAttention(unittest.TestCase):
    def test_kernel_in_the_interpreter(self):
        environment = {**os.environ, "TRITON_INTERPRET": "1", "DRAGOMAN_STEP_KERNEL": "1"}
        run = subprocess.run([sys.executable, "-c", STEP], env=environment, stderr=subprocess.PIPE)
        self.assertEqual(run.returncode, 0, run.stderr.decode())

    def test_summary_in_the_interpreter(self):
        environment = {**os.environ, "TRITON_INTERPRET": "1", "DRAGOMAN_STEP_KERNEL": "1"}
        run = subprocess.run([sys.executable, "-c", SUMMARY], env=environment, stderr=subprocess.PIPE)
        self.assertEqual(run.returncode, 0, run.stderr.decode())

    def test_decoder_kernels_in_the_interpreter(self):
        environment = {**os.environ, "TRITON_INTERPRET": "1"}
        run = subprocess.run([sys.executable, "-c", SCAN], env=environment, stderr=subprocess.PIPE)
        self.assertEqual(run.returncode, 0, run.stderr.decode())


class Optimisers(unittest.TestCase):
    def test_both_reach_a_minimum(self):
        for settings, rate in (({"name": "adam"}, 0.05), ({"name": "adadelta", "scale": 1e4}, 1.0)):
            torch.manual_seed(1)
            layer = torch.nn.Linear(6, 4)
            flat = optim.Flat(layer)
            optimizer, x, y = optim.build(flat, settings), torch.randn(50, 6), torch.randn(50, 4)
            first = last = None
            for step in range(400):
                flat.gradients.zero_()
                loss = (layer(x) - y).pow(2).mean()
                loss.backward()
                optimizer.step(torch.tensor(rate * (1 - step / 400)))
                first, last = first or loss.item(), loss.item()
            best = (y - torch.cat([x, torch.ones(50, 1)], 1) @ torch.linalg.lstsq(
                torch.cat([x, torch.ones(50, 1)], 1), y).solution).pow(2).mean().item()
            self.assertLess(last - best, 0.02 * (first - best), settings)


if __name__ == "__main__":
    unittest.main()
