"""A plugin with one or two of every kind of thing that a configuration can name."""

import math

import numpy as np

import npformer as nf
from npformer import functional as F
from npformer.core import INITIALIZERS, array_module, initializers
from npformer.layers import ACTIVATIONS, FFNS, GELU, POOLINGS, LayerNorm, Linear, Pooling
from npformer.layers.pooling import without_padding
from npformer.mixers import MIXERS, Mixer, WholeSequenceMixer
from npformer.models.losses import LOSSES, Measured, SoftmaxCrossEntropy
from npformer.optim import SCHEDULES


@ACTIVATIONS.register("swish")
class Swish(nf.Layer):
    """y = x sigmoid(beta x) (Ramachandran et al., 2017)."""

    def __init__(self, beta=1.0):
        self.beta = float(beta)

    def forward(self, x, context):
        s, _ = F.sigmoid(self.beta * x)
        return x * s, (x, s)

    def backward(self, dy, cache, gradients):
        x, s = cache
        return dy * s * (1.0 + self.beta * x * (1.0 - s))  # sigmoid' = sigmoid (1 - sigmoid)


@FFNS.register("swiglu")
class SwiGLU(nf.Layer):
    """y = (swish(x W) * x V) W2, without biases (Shazeer, 2020, arXiv 2002.05202)."""

    def __init__(self, d_model, d_ff, activation, *, seed, dtype, initializer):
        rng, init = initializers.generator(seed), INITIALIZERS.make(initializer)
        made = {"bias": False, "seed": rng, "dtype": dtype, "init": init}
        self.gate = Linear(d_model, d_ff, **made)
        self.expand = Linear(d_model, d_ff, **made)
        self.contract = Linear(d_ff, d_model, **made)
        self.swish = Swish()

    def forward(self, x, context):
        before, gate_cache = self.gate.forward(x, context)
        gate, swish_cache = self.swish.forward(before, context)
        values, expand_cache = self.expand.forward(x, context)
        y, contract_cache = self.contract.forward(gate * values, context)
        return y, (gate_cache, swish_cache, gate, values, expand_cache, contract_cache)

    def backward(self, dy, cache, gradients):
        gate_cache, swish_cache, gate, values, expand_cache, contract_cache = cache
        dproduct = self.contract.backward(dy, contract_cache, gradients)
        dbefore = self.swish.backward(dproduct * values, swish_cache, gradients)
        dx = self.expand.backward(dproduct * gate, expand_cache, gradients)
        return dx + self.gate.backward(dbefore, gate_cache, gradients)  # x is used twice


@MIXERS.register("mean")
class MeanMixer(Mixer):
    """y_i = keep x_i + (1 - keep) times the mean of the tokens that i sees."""

    def __init__(self, keep=0.0, causal=False):
        if not 0.0 <= keep < 1.0:
            raise ValueError(f"keep is {keep}; expected a number from 0 up to 1")
        self.keep = float(keep)
        self.causal = causal

    @classmethod
    def build(cls, settings, *, seed, dtype, keep=0.0):
        return cls(keep, settings.causal)

    def forward(self, x, context):
        x = without_padding(x, context.mask)  # padding may hold NaN, and 0 * NaN is NaN
        weights = self.weights(x, context.mask)
        return weights @ x, weights

    def backward(self, dy, cache, gradients):
        weights = cache
        return weights.swapaxes(1, 2) @ dy

    def weights(self, x, mask):
        """Return what each token takes from each, (batch, length, length), 0 for padding."""
        xp, (batch, length, _) = array_module(x), x.shape
        dtype = x.real.dtype
        sees = xp.ones((batch, length, length), dtype=dtype)
        if self.causal:
            sees = xp.tril(sees)
        if mask is not None:
            sees = sees * mask[:, None, :] * mask[:, :, None]
        means = sees / xp.maximum(sees.sum(axis=-1, keepdims=True), 1.0)
        own = xp.eye(length, dtype=dtype) * (1.0 if mask is None else mask[:, :, None])
        return (self.keep * own + (1.0 - self.keep) * means).astype(dtype)

    def explain(self, x, context):
        return self.weights(x, context.mask)[:, None]  # one head


@MIXERS.register("gmlp")
class SpatialGating(WholeSequenceMixer):
    """y = (u * (W norm(v) + b)) W_out, [u, v] = gelu(x W_in + b_in) (Liu et al., 2021, gMLP)."""

    name = "gmlp"

    def __init__(
        self, d_model, max_len, padding="refuse", expansion=2, *, seed, dtype, initializer
    ):
        super().__init__(padding)
        if expansion < 2 or expansion * d_model % 2:
            raise ValueError(f"expansion is {expansion}; expected an even number of features, 2 up")
        rng, init = initializers.generator(seed), INITIALIZERS.make(initializer)
        made = {"seed": rng, "dtype": dtype, "init": init}
        half = expansion * d_model // 2
        self.expand = Linear(d_model, 2 * half, **made)
        self.activation = GELU()
        self.norm = LayerNorm(half, dtype=dtype)
        near_0 = initializers.normal(1e-3)
        self.W = nf.Parameter(initializers.draw(near_0, rng, (max_len, max_len), dtype))
        self.b = nf.Parameter(initializers.draw(initializers.ones, rng, (max_len, 1), dtype))
        self.contract = Linear(half, d_model, **made)

    @classmethod
    def build(cls, settings, *, seed, dtype, expansion=2):
        if settings.causal:
            raise ValueError(
                "causal=True with mixer 'gmlp'; expected False, for it sees every token"
            )
        made = {"seed": seed, "dtype": dtype, "initializer": settings.initializer}
        return cls(settings.d_model, settings.max_len, settings.padding, expansion, **made)

    def mix(self, x, context):
        length = x.shape[1]
        before, expand_cache = self.expand.forward(x, context)
        both, activation_cache = self.activation.forward(before, context)
        half = both.shape[-1] // 2
        u, v = both[..., :half], both[..., half:]
        v, norm_cache = self.norm.forward(v, context)
        gate = self.sequence_matrix(length, x) @ v + self.b.value[:length]
        y, contract_cache = self.contract.forward(u * gate, context)
        caches = expand_cache, activation_cache, norm_cache, contract_cache
        return y, (u, v, gate, caches)

    def mix_backward(self, dy, cache, gradients):
        u, v, gate, (expand_cache, activation_cache, norm_cache, contract_cache) = cache
        length, xp = u.shape[1], array_module(dy)
        dproduct = self.contract.backward(dy, contract_cache, gradients)
        dgate = dproduct * u
        gradients.of(self.W)[:length, :length] += (dgate @ v.swapaxes(1, 2)).sum(axis=0)
        gradients.of(self.b)[:length] += dgate.sum(axis=(0, 2))[:, None]
        dv = self.sequence_matrix(length, dy).T @ dgate
        dv = self.norm.backward(dv, norm_cache, gradients)
        dboth = xp.concatenate((dproduct * gate, dv), axis=-1)
        dbefore = self.activation.backward(dboth, activation_cache, gradients)
        return self.expand.backward(dbefore, expand_cache, gradients)

    def sequence_matrix(self, length, reference):
        return self.W.value[:length, :length]


class MaxPooling(Pooling):
    """The largest value of each feature over the tokens that the mask keeps; 0 without any."""

    def forward(self, x, context):
        xp, mask = array_module(x), context.mask
        score = x.real
        if mask is not None:
            score = xp.where(mask[..., None], score, -math.inf)
        at = score.argmax(axis=1)[:, None]  # [batch, 1, d_model]
        y = xp.take_along_axis(x, at, axis=1)[:, 0]
        some = None if mask is None else mask.any(axis=1)[:, None]
        return (y if some is None else xp.where(some, y, 0.0)), (x.shape, at, some)

    def backward(self, dy, cache, gradients):
        shape, at, some = cache
        xp = array_module(dy)
        dx = xp.zeros(shape, dtype=dy.dtype)
        xp.put_along_axis(
            dx, at, (dy if some is None else xp.where(some, dy, 0.0))[:, None], axis=1
        )
        return dx


@POOLINGS.register("largest")
def max_pooling(d_model, seed, dtype):
    return MaxPooling()


@INITIALIZERS.register("orthogonal")
def orthogonal(gain=1.0):
    """Orthogonal columns, or rows if there are fewer of them (Saxe et al., 2013)."""

    def init(rng, shape):
        rows, columns = shape[-2:]
        tall = rng.standard_normal((*shape[:-2], max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(tall)
        q = q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
        return gain * (q if rows >= columns else q.swapaxes(-1, -2))

    return init


@SCHEDULES.register("straight")
def linear_decay(total, warmup=0):
    """Linear warmup and linear decay, as for BERT."""

    def factor(step):
        if step <= warmup:
            return step / warmup
        return max((total + 1 - step) / (total + 1 - warmup), 0.0)

    return factor


@LOSSES.register("focal")
class FocalLoss(SoftmaxCrossEntropy):
    """-(1 - p)^gamma log p, where p is the probability of the right class (Lin et al., 2017)."""

    def __init__(self, gamma=2.0):
        super().__init__()
        if not gamma >= 0.0:
            raise ValueError(f"gamma is {gamma}; expected a number from 0")
        self.gamma = float(gamma)

    def forward(self, outputs, y):
        xp = array_module(outputs)
        shifted = outputs - outputs.max(axis=-1, keepdims=True)
        log_p = shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))  # [..., classes]
        counted = y != F.NO_LABEL
        right = xp.where(counted, y, 0)[..., None]
        n = max(int(counted.sum()), 1)
        log_right = xp.take_along_axis(log_p, right, axis=-1)[..., 0]
        missing = -xp.expm1(log_right)  # 1 - p, without losing the digits of a small one
        losses = -(missing**self.gamma) * log_right
        mean = xp.where(counted, losses, 0.0).sum() / n
        return mean, (log_p, right, log_right, missing, counted, n)

    def backward(self, dloss, cache):
        log_p, right, log_right, missing, counted, n = cache
        xp = array_module(log_p)
        p = xp.exp(log_p)
        # d/dlog p of -(1 - p)^g log p = (1 - p)^g (g p log p / (1 - p) - 1); the ratio goes to -1
        safe = xp.where(missing > 0.0, missing, 1.0)
        ratio = xp.where(missing > 0.0, log_right / safe, -1.0)
        dlog = missing**self.gamma * (self.gamma * (1.0 - missing) * ratio - 1.0)
        dlog = xp.where(counted, dlog, 0.0)[..., None] * (dloss / n)
        doutputs = -dlog * p
        at_right = xp.take_along_axis(doutputs, right, axis=-1) + dlog
        xp.put_along_axis(doutputs, right, at_right, axis=-1)
        return doutputs.astype(log_p.dtype)

    def measure(self, outputs, y):
        found = super().measure(outputs, y)
        loss, _ = self.forward(outputs.astype("float64"), y)
        return Measured(float(loss) * found.n, found.hits, found.n)
