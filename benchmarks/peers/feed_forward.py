"""PyTorch's side of `ffn`: the same model with Linear, and with Conv1d, channels first."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks import workloads
from benchmarks.jobs import in_one_line
from benchmarks.peers import shared


class ChannelsFirst(nn.Module):
    """Swap the last two axes: Conv1d expects the other order."""

    def forward(self, x):
        """(batch, a, b) -> (batch, b, a)."""
        return x.transpose(1, 2)


def linear(length, width):
    """Return the network with linear maps, then flatten and a linear map to one logit."""
    return nn.Sequential(
        nn.Linear(width, 4 * width),
        nn.ReLU(),
        nn.Linear(4 * width, width),
        nn.Flatten(),
        nn.Linear(length * width, 1),
    )


def convolutions(length, width):
    """Return the same with convolutions of kernel size 1."""
    return nn.Sequential(
        ChannelsFirst(),
        nn.Conv1d(width, 4 * width, 1),
        nn.ReLU(),
        nn.Conv1d(4 * width, width, 1),
        ChannelsFirst(),
        nn.Flatten(),
        nn.Linear(length * width, 1),
    )


class Peer(shared.Device):
    """Both models, with npformer's weights, and their steps."""

    def __init__(self, batch, length, width, device="cpu", precision="float32"):
        super().__init__(device, precision)
        x, y = workloads.vectors(batch, length, width)
        self.x = torch.from_numpy(x).to(device)
        self.y = torch.from_numpy(y).float()[:, None].to(device)
        self.models = {"linear": linear(length, width), "conv1d": convolutions(length, width)}
        self.optimizers = {kind: self.adam(m.to(device)) for kind, m in self.models.items()}

    def adam(self, model):
        """Return the optimizer of a model."""
        return torch.optim.Adam(model.parameters(), eps=workloads.KERAS_EPSILON, fused=True)

    def load(self, named):
        """Copy npformer's weights into both models."""
        names = ("chain.0.expand", "chain.0.contract", "chain.2")
        layers = [layer for layer in self.models["linear"] if isinstance(layer, nn.Linear)]
        for layer, name in zip(layers, names, strict=True):
            shared.fill(layer, named, name)
        beside = [layer for layer in self.models["conv1d"] if hasattr(layer, "weight")]
        with torch.no_grad():
            for layer, twin in zip(layers, beside, strict=True):
                twin.weight.copy_(layer.weight.reshape(twin.weight.shape))
                twin.bias.copy_(layer.bias)

    def logits(self):
        """Return both models' logits."""
        with torch.inference_mode():
            return {kind: model(self.x).cpu().numpy() for kind, model in self.models.items()}

    def compile(self):
        """Add the compiled linear maps; return the reason if that fails, else None."""
        twin, kind = copy.deepcopy(self.models["linear"]), "linear, compiled"
        self.optimizers[kind], self.models[kind] = self.adam(twin), torch.compile(twin)
        try:
            self.turn(kind, 1)
        except Exception as problem:  # any error is part of the result
            return in_one_line(problem)
        return None

    def train(self, kind):
        """Run one training step."""
        self.optimizers[kind].zero_grad()
        F.binary_cross_entropy_with_logits(self.models[kind](self.x), self.y).backward()
        self.optimizers[kind].step()

    def turn(self, kind, n):
        """Return the seconds per step, over n steps."""
        return self.timed(lambda: self.train(kind), n)
