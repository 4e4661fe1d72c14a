"""PyTorch's side: the same models as npformer's, with each mixer written in several ways.

Which way is fastest depends on the sizes, so each case measures all of them and npformer is
compared with the best. All are post-norm, with dropout where npformer has it: on the
embeddings and on sublayers' outputs, except after the Fourier transform, and not inside attention.
"""

# ruff: noqa: D102 (`load` copies npformer's weights, `forward` is PyTorch's)

import copy
import itertools
import math
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks import workloads
from benchmarks.jobs import in_one_line
from benchmarks.peers import shared
from benchmarks.peers.shared import Device, dropout, fill, fill_norm, heads, merged, pair
from benchmarks.timing import quick, significant

ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu}


# Attention ----------------------------------------------------------------------------------------


class FusedAttention(nn.Module):
    """One Linear for queries, keys and values, and PyTorch's fused attention."""

    def __init__(self, w):
        super().__init__()
        self.n_heads = w.heads
        self.qkv = nn.Linear(w.d_model, 3 * w.d_model)
        self.output = nn.Linear(w.d_model, w.d_model)

    def load(self, named, prefix):
        fill(self.qkv, named, *shared.projections(prefix))
        fill(self.output, named, f"{prefix}output")

    def forward(self, x):
        query, key, value = (heads(part, self.n_heads) for part in self.qkv(x).chunk(3, dim=-1))
        return self.output(merged(F.scaled_dot_product_attention(query, key, value)))


class LibraryBlock(nn.TransformerEncoderLayer):
    """PyTorch's own block, without the two dropouts that npformer lacks."""

    def __init__(self, case):
        w = case.workload
        super().__init__(
            d_model=w.d_model,
            nhead=w.heads,
            dim_feedforward=w.d_ff,
            dropout=case.dropout,
            activation=ACTIVATIONS[case.activation],
            batch_first=True,
        )
        self.self_attn.dropout = 0.0
        self.dropout = nn.Identity()
        self.dropout1, self.dropout2 = dropout(case.dropout), dropout(case.dropout)

    def load(self, named, prefix):
        shared.fill_layer(self, named, prefix)


# Dense Synthesizer --------------------------------------------------------------------------------


class Synthesizer(nn.Module):
    """softmax(relu(x W1 + b1) W2 + b2) value, step by step; W1 and value are one Linear."""

    def __init__(self, w):
        super().__init__()
        self.both = nn.Linear(w.d_model, 2 * w.d_model)
        self.W2 = nn.Parameter(torch.empty(w.heads, w.d_model // w.heads, w.length))
        self.b2 = nn.Parameter(torch.empty(w.heads, 1, w.length))
        self.output = nn.Linear(w.d_model, w.d_model)

    def load(self, named, prefix):
        pairs = (named[f"{prefix}W1"], named[f"{prefix}b1"]), pair(named, f"{prefix}value")
        shared.fill_pairs(self.both.weight, self.both.bias, pairs)
        shared.copy(self.W2, named[f"{prefix}W2"])
        shared.copy(self.b2, named[f"{prefix}b2"][:, None])
        fill(self.output, named, f"{prefix}output")

    def forward(self, x):
        hidden, value = self.both(x).chunk(2, dim=-1)
        hidden, value = (heads(part, len(self.W2)) for part in (F.relu(hidden), value))
        return self.output(merged(self.average(hidden, value)))

    def average(self, hidden, value):
        return torch.softmax(hidden @ self.W2 + self.b2, dim=-1) @ value


class SynthesizerAsAttention(Synthesizer):
    """The same as attention: the keys are W2's columns, b2 is an additive mask."""

    def average(self, hidden, value):
        key = self.W2.mT.expand(len(hidden), -1, -1, -1)
        return F.scaled_dot_product_attention(hidden, key, value, self.b2[None], scale=1.0)


class SynthesizerWithBiasInKeys(Synthesizer):
    """The same without a mask, because PyTorch's fused kernel does not take a trained one.

    b2 becomes an additional feature of the keys, and each query gets a 1 there; the kernel needs
    values of that width too.
    """

    def average(self, hidden, value):
        key = torch.cat([self.W2.mT, self.b2.mT], dim=-1).expand(len(hidden), -1, -1, -1)
        query = F.pad(hidden, (0, 1), value=1.0)
        y = F.scaled_dot_product_attention(query, key, F.pad(value, (0, 1)), scale=1.0)
        return y[..., :-1]


# Fourier ------------------------------------------------------------------------------------------


def whole_transform(x):
    """Re(FFT2(x)) by the complex transform."""
    return torch.fft.fft2(x).real


def half_transform(x):
    """Re(FFT2(x)) by a real transform of the features, which computes only half of them."""
    d = x.shape[-1]
    half = torch.fft.fft(torch.fft.rfft(x), dim=-2).real
    mirrored = half[..., 1 : (d + 1) // 2].flip(-1, -2).roll(1, -2)
    return torch.cat([half, mirrored], dim=-1)


class _ByHand(torch.autograd.Function):
    """Re(FFT2(x)) is its own transpose; autograd would use complex transforms instead."""

    @staticmethod
    def forward(ctx, x):
        return half_transform(x)

    @staticmethod
    def backward(ctx, dy):
        return half_transform(dy)


class Fourier(nn.Module):
    """A transform as a mixer."""

    def __init__(self, transform):
        super().__init__()
        self.transform = transform

    def load(self, named, prefix):
        pass

    def forward(self, x):
        return self.transform(x)


class FourierMatrices(nn.Module):
    """C_length x C_features - S_length x S_features, as matrix products."""

    def __init__(self, w):
        super().__init__()
        cosine, sine = waves(w.d_model)
        self.register_buffer("features", torch.cat([cosine, sine], dim=1))
        cosine, sine = waves(w.length)
        self.register_buffer("sequence", torch.cat([cosine, -sine], dim=1))

    def load(self, named, prefix):
        pass

    def forward(self, x):
        cosine, sine = (x @ self.features).chunk(2, dim=-1)
        return self.sequence @ torch.cat([cosine, sine], dim=-2)


def waves(n):
    """Return the cosine and the sine matrix of size n."""
    i = torch.arange(n)
    angle = (2.0 * math.pi / n) * ((i[:, None] * i) % n).double()
    return angle.cos().float(), angle.sin().float()


# The model ----------------------------------------------------------------------------------------


class Block(nn.Module):
    """A mixer, then a feed-forward network, each with a residual connection and a norm after it."""

    def __init__(self, case, mixer):
        super().__init__()
        w = case.workload
        self.mixer = mixer
        self.mixer_dropout = dropout(0.0 if case.mixer == "fourier" else case.dropout)
        self.mixer_norm = nn.LayerNorm(w.d_model)
        self.expand = nn.Linear(w.d_model, w.d_ff)
        self.activation = ACTIVATIONS[case.activation]
        self.contract = nn.Linear(w.d_ff, w.d_model)
        self.dropout = dropout(case.dropout)
        self.norm = nn.LayerNorm(w.d_model)

    def load(self, named, prefix):
        self.mixer.load(named, f"{prefix}mixer.")
        fill_norm(self.mixer_norm, named, f"{prefix}mixer_norm")
        fill(self.expand, named, f"{prefix}feed_forward.expand")
        fill(self.contract, named, f"{prefix}feed_forward.contract")
        fill_norm(self.norm, named, f"{prefix}feed_forward_norm")

    def forward(self, x):
        x = self.mixer_norm(x + self.mixer_dropout(self.mixer(x)))
        return self.norm(x + self.dropout(self.contract(self.activation(self.expand(x)))))


def block(mixer, *arguments):
    """Return a function that makes a block of a case, with a mixer for its workload."""
    return lambda case: Block(case, mixer(*arguments or (case.workload,)))


VARIANTS = {
    "attention": {
        "fused": block(FusedAttention),
        "nn.TransformerEncoderLayer": LibraryBlock,
    },
    "dense_synthesizer": {
        "step by step": block(Synthesizer),
        "as attention, bias as mask": block(SynthesizerAsAttention),
        "as attention, bias in keys": block(SynthesizerWithBiasInKeys),
    },
    "fourier": {
        "fft2": block(Fourier, whole_transform),
        "rfft": block(Fourier, half_transform),
        "rfft, backward by hand": block(Fourier, _ByHand.apply),
        "matrices": block(FourierMatrices),
    },
}


class Classifier(nn.Module):
    """Scaled embeddings and sinusoids, dropout, blocks, mean over the tokens, linear map."""

    def __init__(self, case, variant):
        super().__init__()
        w = case.workload
        self.tokens = nn.Embedding(workloads.VOCABULARY, w.d_model)
        self.scale = math.sqrt(w.d_model)
        self.register_buffer("positions", shared.sinusoids(w.length, w.d_model))
        self.dropout = dropout(case.dropout)
        make = VARIANTS[case.mixer][variant]
        self.blocks = nn.ModuleList([make(case) for _ in range(w.layers)])
        self.classify = nn.Linear(w.d_model, workloads.CLASSES)

    def load(self, named):
        """Copy npformer's weights."""
        shared.copy(self.tokens.weight, named["embed.tokens.weight"])
        for i, block in enumerate(self.blocks):
            block.load(named, f"encoder.blocks.{i}.")
        fill(self.classify, named, "classify")

    def forward(self, ids):
        x = self.dropout(self.scale * self.tokens(ids) + self.positions)
        for block in self.blocks:
            x = block(x)
        return self.classify(x.mean(dim=1))


def training_step(case, model, optimizer, compiled=False, device="cpu"):
    """Return a function that trains on the next batch and returns the loss."""
    model.train()
    lr = workloads.LEARNING_RATE
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, **shared.OPTIONS[optimizer])
    batches = itertools.cycle(tensors(case.workload, device))

    def loss_of(ids, labels):
        return F.cross_entropy(model(ids), labels)

    if compiled:
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad()
        loss = loss_of(*next(batches))
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def prediction_step(case, model, compiled=False, device="cpu"):
    """Return a function that returns the labels of the next batch."""
    model.eval()
    batches = itertools.cycle(tensors(case.workload, device))
    forward = torch.compile(model) if compiled else model

    def step():
        with torch.inference_mode():
            return forward(next(batches)[0]).argmax(dim=-1)

    return step


def predict_all(step, batches):
    """Return the labels of several batches, one after another."""
    return torch.cat([step() for _ in range(batches)])


def tensors(workload, device="cpu"):
    """Return the batches as tensors."""
    return [
        tuple(torch.from_numpy(array).to(device) for array in batch)
        for batch in workloads.batches(workload)
    ]


class Peer(Device):
    """PyTorch's models of a case with given weights, and their steps."""

    def __init__(self, case, device="cpu", precision="float32"):
        super().__init__(device, precision)
        self.case = case
        variants = VARIANTS[case.mixer]
        self.models = {name: Classifier(case, name).to(device) for name in variants}
        self.steps = {}

    def use_threads(self, n):
        """Compute with n threads from now on."""
        torch.set_num_threads(n)

    def load(self, weights):
        """Copy npformer's weights into every variant."""
        for model in self.models.values():
            model.load(weights)

    def logits(self):
        """Return each variant's logits of the first batch, without dropout."""
        ids, _ = tensors(self.case.workload, self.name)[0]
        with torch.inference_mode():
            return {name: model.eval()(ids).cpu().numpy() for name, model in self.models.items()}

    def choose(self):
        """Find the fastest variant and the fastest Adam, and make the step "eager" of them."""

        def milliseconds(name, optimizer):
            return 1e3 * quick(self.step_of(self.models[name], optimizer), wait=self.wait)

        tried = {name: milliseconds(name, "fused") for name in self.models}
        variant, optimizer = min(tried, key=tried.get), "fused"
        if self.case.kind == "train":
            tried["foreach"] = milliseconds(variant, "foreach")
            optimizer = "foreach" if tried["foreach"] < tried[variant] else "fused"
        self.steps["eager"] = self.step_of(self.models[variant], optimizer)
        self.chosen = self.models[variant].cpu(), optimizer  # the device holds one step only
        self.models = {}
        if self.name != "cpu":
            torch.cuda.empty_cache()
        tried = {name: significant(ms) for name, ms in tried.items()}
        return {"variant": variant, "adam": optimizer, "tried_ms": tried}

    def step_of(self, model, optimizer, compiled=False):
        """Return the function to time for a case, with a copy of a model."""
        twin = copy.deepcopy(model).to(self.name)
        if self.case.kind == "train":
            return training_step(self.case, twin, optimizer, compiled, self.name)
        return prediction_step(self.case, twin, compiled, self.name)

    def compile(self):
        """Compile the fastest variant; return the reason if that fails, else None."""
        try:
            step = self.step_of(*self.chosen, compiled=True)
            self.first = step()  # compiles
            self.wait()
        except Exception as problem:  # any error is part of the result
            return in_one_line(problem)
        self.steps["compiled"] = step
        return None

    def losses(self, who, n):
        """Return the losses of the first n training steps; compiling ran one of them."""
        done = [self.first.item()] if who == "compiled" else []
        return done + [self.steps[who]().item() for _ in range(n - len(done))]

    def turn(self, who, n):
        """Return the seconds per step, over n steps."""
        return self.timed(self.steps[who], n)

    def turn_of_all(self, who, n):
        """Return the seconds to predict several batches, over n times."""
        batches = workloads.DATA_SET[self.case.workload.name]
        return self.timed(partial(predict_all, self.steps[who], batches), n)

    def held_mib(self):
        """Empty the pool, run three eager steps, and return the most memory that it held."""
        if self.name == "cpu":
            return 0
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        self.turn("eager", 3)
        return round(torch.cuda.max_memory_reserved() / 2**20)
