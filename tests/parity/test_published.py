"""`npformer.published` beside the originals, written again in PyTorch."""

import numpy as np
import pytest

import npformer as nf
from npformer.learn.museum import published as published
from tests.parity import helpers as h
from tests.parity.helpers import torch

from .formulas import conv1d

functional = torch.nn.functional

BATCH, LENGTH, D, D_FF = 3, 5, 8, 12


class FeedForward(torch.nn.Module):
    def __init__(self, dim, hidden_dim, dropout):
        super().__init__()
        N = torch.nn
        into, out = N.Linear(dim, hidden_dim), N.Linear(hidden_dim, dim)
        self.net = N.Sequential(into, N.GELU(), N.Dropout(dropout), out, N.Dropout(dropout))

    def forward(self, x):
        return self.net(x)


class FNetLayer(torch.nn.Module):
    def __init__(self, dim, hidden_dim, dropout):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)
        self.feed_forward = FeedForward(dim, hidden_dim, dropout)

    def forward(self, x):
        residual = x
        x = torch.fft.fft2(x, dim=(-1, -2)).real
        x = self.norm(x + residual)
        x = self.feed_forward(x)
        return self.norm(x + residual)


class FNet(torch.nn.Module):
    def __init__(self, dim, hidden_dim, dropout, layers):
        super().__init__()
        self.encoder = FNetLayer(dim, hidden_dim, dropout)
        self.layers = torch.nn.ModuleList([self.encoder for _ in range(layers)])

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x


def block_as_torch(named, prefix=""):
    return {
        **h.norm_as_torch(named, f"{prefix}norm", "norm"),
        **h.linear_as_torch(named, f"{prefix}feed_forward.chain.0", "feed_forward.net.0"),
        **h.linear_as_torch(named, f"{prefix}feed_forward.chain.3", "feed_forward.net.3"),
    }


@pytest.mark.parametrize("length", [1, 5, 20])
def test_the_blogs_layer_agrees(length):
    block = published.BlogFNetBlock(D, D_FF, 0.5, seed=0, dtype="float64")
    h.randomise(block)
    theirs = FNetLayer(D, D_FF, 0.5).double().eval()
    x, dy = h.normals((BATCH, length, D), (BATCH, length, D))
    h.assert_layer_agrees(block, theirs, block_as_torch, x, dy)


@pytest.mark.parametrize("n_layers", [1, 2, 4])
def test_the_blogs_model_agrees(n_layers):
    """The weights are tied across depth there, and so are the gradients here."""
    model = published.blog_fnet(D, D_FF, 0.5, n_layers, dtype="float64")
    h.randomise(model)
    theirs = FNet(D, D_FF, 0.5, n_layers).double().eval()
    x, dy = h.normals((BATCH, LENGTH, D), (BATCH, LENGTH, D))
    h.assert_layer_agrees(
        model, theirs.encoder, lambda named: block_as_torch(named, "chain.0."), x, dy, call=theirs
    )


def keras_block(x, w_1, b_1, w_2, b_2, gamma, beta, eps):
    """Conv1D(d_ff, 1, relu), Conv1D(d, 1), add, layer norm."""
    output = conv1d(conv1d(x, w_1, b_1).relu(), w_2, b_2)
    return functional.layer_norm(output + x, x.shape[-1:], gamma, beta, eps)


@pytest.mark.parametrize("ffn", ["conv1d", "linear"])
def test_the_keras_block_agrees(ffn):
    block = published.KerasFeedForward(D, D_FF, 0.0, ffn=ffn, seed=0, dtype="float64")
    h.randomise(block)
    named = block.parameters()
    assert list(named) == [
        "w_1.weight",
        "w_1.bias",
        "w_2.weight",
        "w_2.bias",
        "layer_norm.gamma",
        "layer_norm.beta",
    ]

    def as_keras(arrays):
        """A kernel has three axes: (1, in, out)."""
        return [a.reshape(1, *a.shape) if a.ndim == 2 else a for a in arrays.values()]

    x, dy = h.normals((BATCH, LENGTH, D), (BATCH, LENGTH, D))
    leaves = [h.leaf(a) for a in (x, *as_keras(named))]
    expected = keras_block(*leaves, eps=1e-6)
    y, cache = block.forward(x, nf.Context(training=True))
    gradients = nf.Gradients(block)
    dx = block.backward(dy, cache, gradients)
    h.assert_close(y, expected)
    their_gradients = torch.autograd.grad(expected, leaves, torch.tensor(dy))
    for ours, theirs in zip((dx, *as_keras(gradients)), their_gradients, strict=True):
        h.assert_close(ours, theirs, "a gradient")


class Benchmark(torch.nn.Module):
    """Dense(relu), Dense, Flatten, Dense(1) with a sigmoid."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(D, D_FF)
        self.second = torch.nn.Linear(D_FF, D)
        self.last = torch.nn.Linear(LENGTH * D, 1)

    def forward(self, x):
        return torch.sigmoid(self.last(self.second(self.first(x).relu()).flatten(1)))


def benchmark_as_torch(named):
    return {
        **h.linear_as_torch(named, "chain.0.expand", "first"),
        **h.linear_as_torch(named, "chain.0.contract", "second"),
        **h.linear_as_torch(named, "chain.2", "last"),
    }


@pytest.mark.parametrize("ffn", ["conv1d", "linear"])
def test_the_benchmark_trains_alike(ffn):
    model = published.benchmark_model(LENGTH, D, D_FF, ffn=ffn, dtype="float64")
    theirs = h.load(Benchmark().double(), benchmark_as_torch(model.parameters()))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, LENGTH, D))
    y = rng.integers(0, 2, 16)
    target = torch.tensor(y[:, None].astype("float64"))
    optimizer = nf.Adam(model.parameters(), lr=1e-2, eps=1e-7)
    their_optimizer = torch.optim.Adam(theirs.parameters(), lr=1e-2, eps=1e-7)
    losses = []
    for _ in range(10):
        loss, gradients = published.benchmark_loss_and_gradients(model, x, y)
        optimizer.step(gradients)
        their_optimizer.zero_grad()
        expected = functional.binary_cross_entropy(theirs(torch.tensor(x)), target)
        expected.backward()
        their_optimizer.step()
        assert loss == pytest.approx(expected.item(), rel=1e-10)
        losses.append(loss)
    assert losses[-1] < 0.5 * losses[0]
    for name, value in benchmark_as_torch(model.parameters()).items():
        h.assert_close(value, dict(theirs.named_parameters())[name], name, agreement=1e-8)


class Synthesizer(torch.nn.Module):
    """As in the question, with the axis of the softmax named."""

    def __init__(self, length, d):
        super().__init__()
        self.linear1 = torch.nn.Linear(d, length)
        self.linear2 = torch.nn.Linear(length, length)

    def forward(self, x, v):
        b = self.linear2(functional.relu(self.linear1(x)))
        return torch.matmul(functional.softmax(b, dim=-1), v)


def synthesizer_as_torch(named):
    return {name: value.T if value.ndim == 2 else value for name, value in named.items()}


@pytest.mark.parametrize("leading", [(), (BATCH,), (2, BATCH)], ids=["one", "batch", "two axes"])
def test_the_askers_synthesizer_agrees(leading):
    layer = published.AskersSynthesizer(4, 5, seed=0, dtype="float64")
    assert layer.linear1.weight.shape == (5, 4)  # the paper's first map is (5, 5)
    h.randomise(layer)
    theirs = h.load(Synthesizer(4, 5).double(), synthesizer_as_torch(layer.parameters()))
    x, v, dy = h.normals((*leading, 4, 5), (*leading, 4, 5), (*leading, 4, 5))
    leaves = [h.leaf(x), h.leaf(v)]
    expected = theirs(*leaves)
    expected.backward(torch.tensor(dy))
    y, cache = layer.forward(x, v, nf.Context())
    gradients = nf.Gradients(layer)
    dx, dv = layer.backward(dy, cache, gradients)
    h.assert_close(y, expected)
    h.assert_close(layer(x, v), expected)
    h.assert_close(dx, leaves[0].grad, "dx")
    h.assert_close(dv, leaves[1].grad, "dv")
    h.assert_gradients_agree(synthesizer_as_torch(gradients), theirs)


# Without an axis PyTorch warns that it chooses one.
@pytest.mark.filterwarnings("ignore:Implicit dimension choice for softmax")
def test_the_questions_softmax_takes_another_axis_in_a_batch():
    for shape, axis in (((4, 4), -1), ((3, 4, 4), 0)):
        scores = torch.tensor(h.normals(shape)[0])
        assert torch.equal(functional.softmax(scores), torch.softmax(scores, dim=axis))
