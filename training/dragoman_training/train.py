# SPDX-License-Identifier: MIT
"""The training loop: one recipe, one GPU (or CPU), resumable.

A step = gather a batch on the device, forward, losses, backward, clip, update, all without a host round trip. On a GPU
each layer is compiled once for all lengths, and a step of every bucket is captured as a CUDA graph: a small model is
otherwise bound by kernel launches (an 11M-parameter student ran at 0.7M tokens/s when launched from Python).
The budget is wall time (for a lent GPU) or steps (reproducible: same seed, same result on a CPU).

Run folder:  log.csv  curve.svg  state.pt (resume)  model.pt (averaged weights, what the exporter reads)  valid.out
"""
import csv
import os
import time

import numpy as np
import torch

from . import align, checkpoint, curve, export, losses, metric, moe, multilingual, optim, search, warm, wordlist
from .batches import Batches
from .cmlm import Cmlm, CmlmConfig
from .packed import Packed
from .rnn import RNN, RNNConfig
from .transformer import Transformer, TransformerConfig

COLUMNS = ("step", "pass", "seconds", "loss", "nll", "align", "norm", "rate", "tokens_per_second",
           "valid_loss", "valid_bleu")


def build_transformer(recipe, vocab_size, source_vocab_size):
    settings = {"vocab_size": vocab_size, "source_vocab_size": source_vocab_size, **recipe["model"]}
    return Transformer(TransformerConfig.from_dict(settings))


def build_rnn(recipe, vocab_size, source_vocab_size):
    settings = {"vocab_size": vocab_size, "source_vocab_size": source_vocab_size, **recipe["model"]}
    return RNN(RNNConfig.from_dict(settings))


def with_extra(recipe, vocab_size, source_vocab_size, config_class):
    """Settings of a model whose vocabulary has rows of its own behind the file's (export.extra_words)."""
    shared = not recipe["data"]["source_vocab"]
    probe = config_class.from_dict({"vocab_size": 8, **recipe["model"], "tied": "none"})
    extra = len(export.extra_words(probe))
    return config_class.from_dict({"vocab_size": vocab_size + extra,
                                   "source_vocab_size": source_vocab_size + (extra if shared else 0), **recipe["model"]})


def build_double(recipe, *sizes):
    recipe["model"].setdefault("tokens_per_step", 2)
    return Transformer(with_extra(recipe, *sizes, TransformerConfig))


def build_cmlm(recipe, *sizes):
    return Cmlm(with_extra(recipe, *sizes, CmlmConfig))


# name -> function(recipe, sizes)
ARCHITECTURES = {"transformer": build_transformer, "double": build_double, "cmlm": build_cmlm, "rnn": build_rnn}


class Trainer:
    def __init__(self, recipe, work, out, device=None):
        self.recipe, self.work, self.out = recipe, work, out
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.gpu = self.device.startswith("cuda")
        os.makedirs(out, exist_ok=True)
        torch.manual_seed(recipe["seed"])
        if self.gpu:
            torch.set_float32_matmul_precision("high")
        data = recipe["data"]
        self.target_spm = wordlist.load(self.path(data["vocab"]))
        self.source_spm = wordlist.load(self.path(data["source_vocab"])) if data["source_vocab"] else self.target_spm
        sizes = self.target_spm.vocab_size(), self.source_spm.vocab_size()
        if recipe["architecture"] not in ARCHITECTURES:
            raise ValueError(f"architecture: {recipe['architecture']!r} is not one of {', '.join(ARCHITECTURES)}")
        self.model = ARCHITECTURES[recipe["architecture"]](recipe, *sizes)
        if any(recipe["warm"].values()):
            warm.start(self.model, recipe["warm"], self.path)
        self.model = self.model.to(self.device).train()
        self.shadow = ARCHITECTURES[recipe["architecture"]](recipe, *sizes).to(self.device).eval()    # for validation
        self.load_corpus()
        self.flat = optim.Flat(self.model)
        self.optimizer = optim.build(self.flat, recipe["optimizer"], self.gpu and recipe["compile"])
        self.average = optim.Average(self.flat, **recipe["average"])
        self.schedule = optim.schedule(recipe["schedule"])
        self.rate = torch.zeros((), device=self.device)
        self.sums = torch.zeros(4, device=self.device)                  # loss, nll, alignment, gradient norm
        self.guide, self.graphs, self.index = None, {}, {}
        self.step = self.done = self.number = 0                         # steps, batches of this pass, pass
        self.elapsed, self.tokens = 0.0, 0
        self.last_means = [float("nan")] * 4
        self.compiled_loss = self.loss_function()

    def load_corpus(self):
        path = self.path(self.recipe["data"]["train"])
        self.stamp = os.stat(path).st_mtime_ns
        packed = Packed.load(path)
        self.pairs = len(packed)
        self.batches = Batches(packed, self.model.pad, self.recipe["batch_tokens"], self.device, self.recipe["seed"],
                               tuple(self.recipe["widths"]), self.model.source_pad)

    def refresh_corpus(self):
        """Between passes: a corpus file that was replaced meanwhile (more of it distilled) is read anew."""
        if os.stat(self.path(self.recipe["data"]["train"])).st_mtime_ns == self.stamp:
            return
        self.load_corpus()
        self.say(f"new corpus: {self.pairs} pairs")
        captured = bool(self.graphs)                                    # they hold the old corpus' addresses
        self.graphs.clear()
        if self.guide and self.pairs > 2 * self.guide_pairs:
            self.prepare_guide()
        if captured:
            kept = {name: tensor.clone() for name, tensor in self.optimizer.state.items()}
            torch.cuda.empty_cache()                                    # no memory can be freed during a capture
            self.capture()
            for name, tensor in kept.items():
                self.optimizer.state[name].copy_(tensor)

    def path(self, name):
        return os.path.join(self.work, name)

    def say(self, text):
        print(text, flush=True)

    # -- one step -----------------------------------------------------------------------------------------------

    def loss_function(self):
        loss, pad = self.recipe["loss"], self.model.pad
        smoothing, self_norm = float(loss["smoothing"]), float(loss["self_norm"])

        def token_loss(hidden, rows, bias, expected):
            return losses.token_loss(hidden, rows, bias, expected, pad, smoothing, self_norm)

        if self.gpu and self.recipe["compile"]:
            if hasattr(self.model, "compile_layers"):
                self.model.compile_layers()
            return torch.compile(token_loss, dynamic=True)
        if self.recipe["precision"] == "bf16-cpu" and not self_norm:
            return lambda hidden, rows, bias, expected: losses.token_loss_by_rows(hidden, rows, bias, expected, pad, smoothing)
        return token_loss

    def autocast(self):
        """Recurrent cells use a weight at every position: it is cast once a step of training, not once a position."""
        enabled = self.recipe["precision"] == ("bf16" if self.gpu else "bf16-cpu")
        often = self.recipe["architecture"] == "rnn"
        return torch.autocast(self.device.split(":")[0], torch.bfloat16, enabled=enabled, cache_enabled=often)

    def compute(self, bucket, index):
        """One update from batch `index`; every tensor it keeps was allocated before."""
        model, weight = self.model, float(self.recipe["loss"]["alignment"])
        source, given, target = self.batches.fetch(bucket, index)
        given, expected = model.arrange(target) if hasattr(model, "arrange") else (given, target)
        self.flat.gradients.zero_()
        with self.autocast():
            hidden, points = model(source, given, align=True) if self.guide else (model(source, given), None)
            bias = model.output_bias if model.config.output_bias else None
            loss, nll = self.compiled_loss(hidden, model.output_rows(), bias, expected)
        total, aligned = loss, torch.zeros((), device=self.device)
        if hasattr(model, "side_loss"):
            total = total + model.side_loss(target)
        if self.guide:
            aligned = losses.alignment_loss(points, self.guide(source, expected))
            total = loss + weight * aligned
        if float(self.recipe["loss"]["balance"]):
            balance = moe.balance(model)
            if balance is None:
                raise ValueError("loss.balance: the model has no experts")
            total = total + float(self.recipe["loss"]["balance"]) * balance
        total.backward()
        norm = self.flat.clip_gradients(float(self.recipe["clip"]["gradients"]))
        self.optimizer.step(self.rate)
        if self.recipe["clip"]["weights"]:
            self.flat.clip_weights(float(self.recipe["clip"]["weights"]))
        self.sums += torch.stack([loss.detach(), nll, aligned.detach(), norm])

    def capture(self):
        """Records one step a bucket. Warm-up steps run at rate 0 and the optimiser is reset after them."""
        pool, began = None, time.time()
        kept = self.flat.weights.clone()
        first = {bucket: index for bucket, index in self.batches.plan(0)}
        for bucket in sorted(first, reverse=True):
            self.index[bucket] = first[bucket].clone()
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.compute(bucket, self.index[bucket])
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()
            torch.cuda.empty_cache()                                    # the warm-up's memory: a graph has its own pool
            if self.recipe["graphs"]:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, pool=pool):
                    self.compute(bucket, self.index[bucket])
                pool = pool or graph.pool()
                self.graphs[bucket] = graph
            self.say(f"bucket {int(self.batches.widths[bucket])} x {self.batches.rows[bucket]} ready, "
                     f"{time.time() - began:.0f} s")
        self.flat.weights.copy_(kept)
        for name, tensor in self.optimizer.state.items():
            tensor.fill_(1.0 if name == "power" else 0.0)
        self.sums.zero_()

    def run_step(self, bucket, index):
        if bucket in self.graphs:
            self.index[bucket].copy_(index)
            self.graphs[bucket].replay()
        else:
            self.compute(bucket, index)

    # -- states -------------------------------------------------------------------------------------------------

    def save(self):
        """state.pt to resume from, model.pt with the averaged weights, the curve."""
        state = {"weights": self.flat.weights, "average": self.average.weights, "optimizer": self.optimizer.state,
                 "step": self.step, "done": self.done, "number": self.number, "elapsed": self.elapsed,
                 "tokens": self.tokens, "random": torch.get_rng_state()}
        checkpoint.write(os.path.join(self.out, "state.pt"), state)
        self.load_shadow()
        with open(self.path(self.recipe["data"]["vocab"]), "rb") as f:
            vocab = f.read()
        info = {**self.recipe["card"], "recipe": self.recipe["name"], "steps": self.step,
                "seconds": round(self.elapsed), "self_norm": float(self.recipe["loss"]["self_norm"])}
        checkpoint.save_model(os.path.join(self.out, "model.pt"), self.shadow, vocab, info)
        if os.path.exists(self.log_path):
            curve.draw(self.log_path, os.path.join(self.out, "curve.svg"), self.recipe["name"])

    def resume(self):
        path = os.path.join(self.out, "state.pt")
        if not os.path.exists(path):
            return False
        state = checkpoint.read(path)
        self.flat.weights.copy_(state["weights"])
        self.average.weights.copy_(state["average"])
        for name, tensor in self.optimizer.state.items():
            tensor.copy_(state["optimizer"][name])
        self.step, self.done, self.number = state["step"], state["done"], state["number"]
        self.elapsed, self.tokens = state["elapsed"], state["tokens"]
        torch.set_rng_state(state["random"])
        self.say(f"resumed at step {self.step}, {self.elapsed:.0f} s")
        return True

    def load_shadow(self):
        with torch.no_grad():
            for p, at in zip(self.shadow.parameters(), self.flat.starts):
                p.copy_(self.average.weights[at:at + p.numel()].view(p.shape))

    # -- validation ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def validate(self):
        """Greedy BLEU and -log p a token of the averaged weights on the validation text; ({}, if there is none)."""
        data = self.recipe["data"]
        if not data["valid_source"]:
            return {}
        self.load_shadow()
        limit = data["valid_lines"] or None
        texts = []
        for name in ("valid_source", "valid_target"):
            with open(self.path(data[name]), encoding="utf-8") as f:
                texts.append([line.rstrip("\n") for line in f][:limit])
        sources, targets = self.source_spm.encode(texts[0]), self.target_spm.encode(texts[1])
        if data["valid_directions"]:
            ways = multilingual.read_directions(self.path(data["valid_directions"]))
            tags = multilingual.Tags(sorted(set(ways)), self.source_spm.piece_to_id)
            sources = [tags.before("source", way) + ids for way, ids in zip(ways, sources)]
        rows = Packed.from_lists([(s, t, 1) for s, t in zip(sources, targets)])
        batches = Batches(rows, self.shadow.pad, 8192, self.device, 0, tuple(self.recipe["widths"]),
                          self.shadow.source_pad)
        loss = count = 0.0
        for bucket, index in batches.plan(0):
            source, given, expected = batches.fetch(bucket, index)
            if hasattr(self.shadow, "arrange"):
                given, expected = self.shadow.arrange(expected)
            with self.autocast():
                logits = self.shadow.logits(self.shadow(source, given)).float()
            real = expected != self.shadow.pad
            nll = torch.nn.functional.cross_entropy(logits[real], expected[real], reduction="sum")
            loss, count = loss + float(nll), count + int(real.sum())
        found = search.translate_ids(self.shadow, [s[:126] for s in sources])
        lines = self.target_spm.decode(found)
        with open(os.path.join(self.out, "valid.out"), "w", encoding="utf-8") as f:
            f.writelines(line + "\n" for line in lines)
        return {"valid_loss": loss / count, "valid_bleu": metric.bleu(lines, texts[1])}

    # -- the loop -----------------------------------------------------------------------------------------------

    @property
    def log_path(self):
        return os.path.join(self.out, "log.csv")

    def log(self, row):
        fresh = not os.path.exists(self.log_path)
        with open(self.log_path, "a", encoding="utf-8", newline="") as f:
            writer = csv.DictWriter(f, COLUMNS)
            if fresh:
                writer.writeheader()
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})

    def new_deadline(self):
        """A file stop_at in the work folder (seconds since 1970) moves the end of a run that is timed."""
        path = self.path("stop_at")
        if self.recipe["budget"]["seconds"] and os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                text = f.read().strip()
            if text:
                self.recipe["budget"]["seconds"] = max(1.0, self.elapsed + float(text) - time.time())

    def fraction(self):
        budget = self.recipe["budget"]
        return self.step / budget["steps"] if budget["steps"] else self.elapsed / budget["seconds"]

    def report(self, steps, tokens, seconds, extra=None):
        mean = (self.sums / steps).tolist() if steps else self.last_means
        self.last_means = mean
        self.sums.zero_()
        speed, rate = tokens / max(seconds, 1e-9), float(self.rate)
        left = self.elapsed / max(self.fraction(), 1e-9) - self.elapsed
        extra = extra or {}
        tail = "".join(f" {k} {v:.3f}" for k, v in extra.items())
        self.say(f"step {self.step} pass {self.number} loss {mean[0]:.3f} nll {mean[1]:.3f} align {mean[2]:.3f} "
                 f"norm {mean[3]:.2f} rate {rate:.2e} {speed / 1e3:.0f}k tokens/s {self.elapsed:.0f} s "
                 f"ETA {max(left, 0):.0f} s{tail}")
        self.log({"step": self.step, "pass": self.number, "seconds": self.elapsed, "loss": mean[0], "nll": mean[1],
                  "align": mean[2], "norm": mean[3], "rate": rate, "tokens_per_second": speed, **extra})

    def prepare_guide(self):
        loss = self.recipe["loss"]
        if not loss["alignment"]:
            return
        began = time.time()
        self.guide, forward = align.train_guide(self.batches, self.model.source_pad, self.model.pad,
                                                int(loss["alignment_batches"]))
        ids, values = align.lexicon(forward)
        np.savez_compressed(os.path.join(self.out, "lexicon.npz"), ids=ids, probabilities=values)
        self.guide_pairs = self.pairs
        self.say(f"alignment tables: {time.time() - began:.1f} s")

    def run(self, stop=0):
        """Trains to the end of the budget (or saves and returns after `stop` steps, for tests of resuming)."""
        recipe = self.recipe
        size = sum(p.numel() for p in self.flat.parameters)
        self.say(f"{recipe['name']}: {size / 1e6:.2f}M parameters, {self.pairs} pairs, "
                 f"{self.batches.real_tokens / 1e6:.1f}M target tokens a pass, {self.device}")
        self.prepare_guide()
        if self.gpu and (recipe["graphs"] or recipe["compile"]):
            self.capture()
        self.resume()
        by_steps = bool(recipe["budget"]["steps"])
        clock = (lambda: self.step) if by_steps else (lambda: self.elapsed)
        last_valid = last_save = clock()
        self.new_deadline()
        before, began = self.elapsed, time.time()
        marked = (self.step, self.tokens, self.elapsed)
        jobs = self.batches.plan(self.number + 1)
        del jobs[len(jobs) - self.done:]                                # taken from the end
        while self.fraction() < 1:
            if not jobs:
                self.number, self.done = self.number + 1, 0
                self.refresh_corpus()
                jobs = self.batches.plan(self.number + 1)
            bucket, index = jobs.pop()
            self.rate.fill_(self.schedule(self.step, self.fraction()))
            self.run_step(bucket, index)
            self.step, self.done = self.step + 1, self.done + 1
            self.tokens += self.batches.rows[bucket] * int(self.batches.widths[bucket])
            self.average.update(self.step)
            self.elapsed = before + time.time() - began
            if self.step % recipe["log_every"] == 0:
                self.new_deadline()
                extra = {}
                if recipe["valid_every"] and clock() - last_valid >= recipe["valid_every"]:
                    extra, last_valid = self.validate(), clock()
                self.report(self.step - marked[0], self.tokens - marked[1], self.elapsed - marked[2], extra)
                self.elapsed = before + time.time() - began
                marked = (self.step, self.tokens, self.elapsed)
            if clock() - last_save >= recipe["save_every"] or self.step == stop:
                self.save()
                last_save = clock()
                if self.step == stop:
                    return
        self.report(self.step - marked[0], self.tokens - marked[1], self.elapsed - marked[2], self.validate())
        self.save()
        self.say(f"finished: {self.step} steps, {self.number} whole passes, {self.elapsed:.0f} s")
