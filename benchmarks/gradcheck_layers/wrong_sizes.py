"""Right for some lengths, batch sizes and numbers of features, and wrong for others."""

import numpy as np

import npformer as nf
from benchmarks.gradcheck_layers.cases import at, wrong


@wrong((2, 5, 4))
class LastOddToken(nf.Layer):
    """Pairs of tokens are averaged; the last token of an odd length gets no gradient."""

    def forward(self, x, context):
        y = x.copy()
        n = x.shape[1] // 2 * 2
        y[:, 0:n:2] = y[:, 1:n:2] = 0.5 * (x[:, 0:n:2] + x[:, 1:n:2])
        return y, None

    def backward(self, dy, cache, gradients):
        dx = np.zeros_like(dy)
        n = dy.shape[1] // 2 * 2
        dx[:, 0:n:2] = dx[:, 1:n:2] = 0.5 * (dy[:, 0:n:2] + dy[:, 1:n:2])
        return dx


@wrong((2, 5, 4), shows=at((6, 3, 2)), missed=True)
class LastChunkOfTheBatch(nf.Layer):
    """Goes backward in chunks of 4 samples and forgets the rest if the batch is larger."""

    def forward(self, x, context):
        t = np.tanh(x)
        return x * t, (x, t)

    def backward(self, dy, cache, gradients):
        x, t = cache
        dx = np.zeros_like(dy)
        for k in range(max(len(dy) // 4, 1)):
            part = slice(4 * k, 4 * k + 4)
            dx[part] = dy[part] * (t[part] + x[part] * (1.0 - t[part] ** 2))
        return dx


@wrong((2, 5, 4), shows=at((1, 5, 4)), missed=True)
class SqueezesTheBatch(nf.Layer):
    """The sum for a bias of positions is over other axes if the batch is 1."""

    def __init__(self, length=5, dtype="float64"):
        self.bias = nf.Parameter(np.zeros(length, dtype))

    def forward(self, x, context):
        return np.tanh(x) + self.bias.value[:, None], np.tanh(x)

    def backward(self, dy, cache, gradients):
        db = np.zeros(self.bias.shape, dy.dtype)
        db += np.squeeze(dy).sum(axis=-1).sum(axis=0)
        gradients.add(self.bias, db)
        return dy * (1.0 - cache**2)


@wrong((2, 5, 4))
class SquareNotTransposed(nf.Layer):
    """A square matrix, not transposed on the way back."""

    def __init__(self, d=4, dtype="float64"):
        self.weight = nf.Parameter(np.eye(d, dtype=dtype))

    def forward(self, x, context):
        return x @ self.weight.value, x

    def backward(self, dy, cache, gradients):
        gradients.add(self.weight, np.einsum("bli,blj->ij", cache, dy))
        return dy @ self.weight.value


@wrong((2, 5, 4), moved=False, shows=at((2, 5, 4)), missed=True)
class SymmetricWhenFresh(SquareNotTransposed):
    """The same, checked with its initial value, the identity."""


@wrong((2, 5, 4))
class DividesByFeatures(nf.Layer):
    """The mean over tokens divides by the number of features on the way back."""

    def forward(self, x, context):
        return x - x.mean(axis=1, keepdims=True), None

    def backward(self, dy, cache, gradients):
        return dy - dy.sum(axis=1, keepdims=True) / dy.shape[2]


@wrong((2, 4, 4), shows=at((2, 5, 4)), missed=True)
class DividesByFeaturesOfASquare(DividesByFeatures):
    """The same, checked with as many tokens as features."""


@wrong((2, 5, 4), shows=at((3, 5, 4)), missed=True)
class BatchOfTwo(nf.Layer):
    """Centres each batch, and divides by 2 going back whatever the batch."""

    def forward(self, x, context):
        return x - x.mean(axis=0), None

    def backward(self, dy, cache, gradients):
        return dy - dy.sum(axis=0) / 2.0


@wrong((2, 5, 4), shows=at((1, 10, 2)), missed=True)
class CarryBetweenBlocks(nf.Layer):
    """A cumulative sum in blocks of 8 tokens; no gradient crosses from block to block."""

    def forward(self, x, context):
        return x.cumsum(axis=1), None

    def backward(self, dy, cache, gradients):
        parts = [dy[:, k : k + 8] for k in range(0, dy.shape[1], 8)]
        return np.concatenate([p[:, ::-1].cumsum(axis=1)[:, ::-1] for p in parts], axis=1)


class _Recurrence(nf.Layer):
    """h_t = tanh(a h_(t-1) + x_t), and gradients through `reach` steps."""

    reach = 0

    def __init__(self, dtype="float64"):
        self.a = nf.Parameter(np.array([0.9], dtype))

    def forward(self, x, context):
        h, every = np.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            h = np.tanh(self.a.value * h + x[:, t])
            every.append(h)
        return np.stack(every, axis=1), np.stack([np.zeros_like(h), *every], axis=1)

    def backward(self, dy, cache, gradients):
        dx, a = np.zeros_like(dy), self.a.value
        for last in range(dy.shape[1]):
            dh = dy[:, last]
            for t in range(last, max(-1, last - self.reach), -1):
                before = dh * (1.0 - cache[:, t + 1] ** 2)
                dx[:, t] += before
                gradients.add(self.a, np.array([(before * cache[:, t]).sum()]))
                dh = before * a
        return dx


@wrong((2, 5, 4))
class TruncatedAfterThree(_Recurrence):
    """A recurrence whose gradient is cut off after 3 steps."""

    reach = 3


@wrong((2, 5, 4), shows=at((2, 12, 2)), missed=True)
class TruncatedAfterEight(_Recurrence):
    """A recurrence whose gradient is cut off after 8 steps."""

    reach = 8


@wrong((2, 5, 4), shows=at((2, 3, 5)), missed=True)
class LastOddFeature(nf.Layer):
    """Halves of the features are swapped and squared; an odd last one gets no gradient."""

    def forward(self, x, context):
        h = x.shape[-1] // 2
        return np.concatenate([x[..., h : 2 * h] ** 2, x[..., :h], x[..., 2 * h :]], axis=-1), x

    def backward(self, dy, cache, gradients):
        h = dy.shape[-1] // 2
        dx = np.zeros_like(dy)
        dx[..., h : 2 * h] = 2.0 * cache[..., h : 2 * h] * dy[..., :h]
        dx[..., :h] = dy[..., h : 2 * h]
        return dx


@wrong((2, 5, 4), shows=at((2, 4, 3), settings={"length": 4}), missed=True)
class TheNyquistFrequency(nf.Layer):
    """A filter of frequencies counts all but the constant twice; for even lengths not the last."""

    def __init__(self, length=5, dtype="float64"):
        self.gain = nf.Parameter(np.ones(length // 2 + 1, dtype))

    def forward(self, x, context):
        X = np.fft.rfft(x, axis=1)
        return np.fft.irfft(X * self.gain.value[:, None], n=x.shape[1], axis=1), X

    def backward(self, dy, cache, gradients):
        D = np.fft.rfft(dy, axis=1)
        twice = np.where(np.arange(self.gain.size) == 0, 1.0, 2.0)
        gradients.add(self.gain, twice * (cache.conj() * D).real.sum(axis=(0, 2)) / dy.shape[1])
        return np.fft.irfft(D * self.gain.value[:, None], n=dy.shape[1], axis=1)


@wrong((2, 5, 4))
class HeadsNotSwappedBack(nf.Layer):
    """Splits heads to act on them, and joins them without swapping the axes back."""

    def forward(self, x, context):
        b, n, d = x.shape
        heads = x.reshape(b, n, 2, d // 2).swapaxes(1, 2)
        return heads**2, heads

    def backward(self, dy, cache, gradients):
        b, _, n, h = dy.shape
        return (2.0 * dy * cache).reshape(b, n, 2 * h)


@wrong((2, 5, 4), (4,), shows=at((2, 5, 4), (5, 1)), missed=True)
def unbroadcasts_leading_axes():
    """A product with broadcasting; only missing axes are summed, not those of length 1."""

    def forward(a, b):
        return a * b, (a, b)

    def backward(dy, cache):
        a, b = cache
        db = dy * a
        return dy * b, db.sum(axis=tuple(range(db.ndim - b.ndim)))

    return forward, backward
