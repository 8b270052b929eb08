# SPDX-License-Identifier: MIT
"""Optimisers over one flat buffer, learning-rate schedules, the running average of weights.

All parameters become views of one tensor, and so do their gradients: clearing, the global norm, an update, clipping
and averaging are a handful of operations whatever the number of layers, with no host round trip. That makes a training
step capturable as a CUDA graph; the learning rate is a device scalar for the same reason.

    Adam(W):   m = lerp(m, g, 1-b1), v = lerp(v, g^2, 1-b2), w -= lr * (mhat / (sqrt(vhat) + eps) + decay * w)
    AdaDelta:  v = lerp(v, g^2, 1-rho), d = sqrt(u + eps) / sqrt(v + eps) * g, u = lerp(u, d^2, 1-rho), w -= lr * d
               g is the clipped gradient times `scale`, because eps is not free of units: a gradient of norm 1 spread
               over 55M weights has squares of 2e-8, so that eps = 1e-6 hides them and w -= g remains.
"""
import math

import torch

ALIGN = 32                                                  # floats: 128 bytes


class Flat:
    """Parameters and gradients of a model as two flat tensors; matrix entries are marked for decay and clipping.

    Every parameter begins at a multiple of ALIGN, with zeros before it: a run whose matrices followed 16,002 biases ended with a
    misaligned address once its kernels came from the compiler's cache, filled by a model without such an offset, and under
    MPS the other runs on that GPU ended with it."""

    def __init__(self, model):
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.starts, total, device = [], 0, self.parameters[0].device
        for p in self.parameters:
            self.starts.append(total)
            total += -(-p.numel() // ALIGN) * ALIGN
        self.weights = torch.zeros(total, device=device)
        self.gradients = torch.zeros(total, device=device)
        self.matrix = torch.zeros(total, device=device)                 # 1 where the parameter is a matrix
        for p, at in zip(self.parameters, self.starts):
            n = p.numel()
            self.weights[at:at + n] = p.data.reshape(-1)
            p.data = self.weights[at:at + n].view(p.shape)
            p.grad = self.gradients[at:at + n].view(p.shape)
            if p.dim() > 1:
                self.matrix[at:at + n] = 1.0

    def clip_gradients(self, limit):
        """Scales to a global norm of at most `limit`; returns the norm before. Gradients with a NaN or an infinity become
        zero: one such step would end a run of minutes (a masked language model had one in 1,600)."""
        norm = self.gradients.norm()
        bad = ~torch.isfinite(norm)
        if limit:
            self.gradients.mul_((limit / (norm + 1e-6)).clamp(max=1.0))
        self.gradients.masked_fill_(bad, 0.0)
        return norm.masked_fill(bad, 0.0)

    def clip_weights(self, limit):
        """Matrices to [-limit, limit]; norms and biases are left alone."""
        self.weights.copy_(torch.where(self.matrix > 0, self.weights.clamp(-limit, limit), self.weights))


def adam_update(w, g, m, v, matrix, unbias, rate, betas, eps, decay):
    m.lerp_(g, 1.0 - betas[0])
    v.mul_(betas[1]).addcmul_(g, g, value=1.0 - betas[1])
    update = (m / unbias[0]) / ((v / unbias[1]).sqrt() + eps)
    if decay:
        update = update + decay * matrix * w
    w.sub_(update * rate)


def adadelta_update(w, g, u, v, rate, rho, eps, scale):
    g = g * scale
    v.mul_(rho).addcmul_(g, g, value=1.0 - rho)
    update = (u + eps).sqrt() / (v + eps).sqrt() * g
    u.mul_(rho).addcmul_(update, update, value=1.0 - rho)
    w.sub_(update * rate)


class Adam:
    def __init__(self, flat, betas=(0.9, 0.98), eps=1e-9, decay=0.0, fused=False):
        self.flat, self.betas, self.eps, self.decay = flat, betas, eps, decay
        self.state = {"m": torch.zeros_like(flat.weights), "v": torch.zeros_like(flat.weights),
                      "power": torch.ones(2, device=flat.weights.device, dtype=torch.float64)}
        self.beta = torch.tensor(betas, device=flat.weights.device, dtype=torch.float64)
        self.update = torch.compile(adam_update, dynamic=False) if fused else adam_update

    def step(self, rate):
        self.state["power"].mul_(self.beta)
        unbias = (1.0 - self.state["power"]).float()
        self.update(self.flat.weights, self.flat.gradients, self.state["m"], self.state["v"], self.flat.matrix, unbias, rate,
                    self.betas, self.eps, self.decay)


class AdaDelta:
    def __init__(self, flat, rho=0.95, eps=1e-6, scale=1.0, fused=False):
        self.flat, self.rho, self.eps, self.scale = flat, rho, eps, scale
        self.state = {"v": torch.zeros_like(flat.weights), "u": torch.zeros_like(flat.weights)}
        self.update = torch.compile(adadelta_update, dynamic=False) if fused else adadelta_update

    def step(self, rate):
        self.update(self.flat.weights, self.flat.gradients, self.state["u"], self.state["v"], rate, self.rho, self.eps,
                    self.scale)


def build(flat, settings, fused=False):
    """settings: {"name": "adam" | "adadelta", and that optimiser's arguments}; fused: an update as one compiled kernel
    (on a GPU; as single operations it reads and writes every weight some fifteen times)."""
    settings = dict(settings)
    name = settings.pop("name", "adam")
    if name not in ("adam", "adadelta"):
        raise ValueError(f"optimizer: {name!r} is not adam or adadelta")
    if "betas" in settings:
        settings["betas"] = tuple(settings["betas"])
    return (Adam if name == "adam" else AdaDelta)(flat, fused=fused, **settings)


class Average:
    """Running mean of the weights: a copy until `after` steps, then lerp by 1 - keep every `every` steps.

    Keep it short: 0.9 every 50 steps. With 0.98 every 50 steps the mean lagged and cost 2 BLEU in a 13-minute run.
    """

    def __init__(self, flat, keep=0.9, every=50, after=1000):
        self.flat, self.keep, self.every, self.after = flat, keep, every, after
        self.weights = flat.weights.clone()

    def update(self, step):
        if step % self.every:
            return
        if step <= self.after:
            self.weights.copy_(self.flat.weights)
        else:
            self.weights.lerp_(self.flat.weights, 1.0 - self.keep)


def schedule(settings):
    """(step, fraction of the budget done) -> learning rate. Kinds: cosine, linear, inverse_sqrt, constant."""
    peak, warm = float(settings["peak"]), int(settings.get("warmup", 0))
    floor, kind = float(settings.get("floor", 0.02)), settings.get("kind", "cosine")
    if kind not in ("cosine", "linear", "inverse_sqrt", "constant"):
        raise ValueError(f"schedule: {kind!r} is not cosine, linear, inverse_sqrt or constant")

    def rate(step, fraction):
        fraction = min(max(fraction, 0.0), 1.0)
        ramp = min(1.0, (step + 1) / warm) if warm else 1.0
        if kind == "cosine":
            return peak * ramp * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * fraction)))
        if kind == "linear":
            return peak * ramp * (floor + (1 - floor) * (1 - fraction))
        if kind == "inverse_sqrt":
            return peak * min(ramp, math.sqrt(max(warm, 1) / (step + 1)))
        return peak * ramp
    return rate
