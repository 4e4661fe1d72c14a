"""A plugin with all that the pages on extending register, and one of each other kind of thing."""

import math
import re
from pathlib import Path

import numpy as np

import npformer as nf
from npformer.core import INITIALIZERS, array_module, generators, initializers
from npformer.layers import POOLINGS, Pooling
from npformer.mixers import MIXERS, WholeSequenceMixer
from npformer.optim import SCHEDULES

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ["activation", "layer", "mixer", "loss"]


def code_of(page):
    text = (DOCS / "extending" / f"{page}.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    imports = re.findall(r"^(?:import|from) .+$", "\n".join(blocks), re.M)
    return "\n".join([*dict.fromkeys(imports), *(b for b in blocks if ".register(" in b)])


for page in PAGES:
    exec(code_of(page), globals())


@MIXERS.register("spatial")
class Spatial(WholeSequenceMixer):
    """y = gain W x: of gMLP (Liu et al., 2021) what mixes tokens, with W (max_len, max_len)."""

    name = "spatial"

    def __init__(self, max_len, padding="refuse", gain=1.0, *, seed, dtype):
        super().__init__(padding)
        self.gain = float(gain)
        rng = generators.from_seed(seed)
        drawn = initializers.draw(initializers.normal(0.3), rng, (max_len, max_len), dtype)
        self.W = nf.Parameter(drawn)

    @classmethod
    def build(cls, settings, *, seed, dtype, gain=1.0):
        if settings.causal:
            raise ValueError("causal=True with mixer 'spatial'; expected False: it sees all tokens")
        return cls(settings.max_len, settings.padding, gain, seed=seed, dtype=dtype)

    def mix(self, x, context):
        return self.sequence_matrix(x.shape[1], x) @ x, x

    def mix_backward(self, dy, x, gradients):
        n = x.shape[1]
        gradients.of(self.W)[:n, :n] += self.gain * (dy @ x.swapaxes(1, 2)).sum(axis=0)
        return self.sequence_matrix(n, dy).T @ dy

    def sequence_matrix(self, length, reference):
        return self.gain * self.W.value[:length, :length]


class MaxPooling(Pooling):
    """The largest value of each feature over the tokens that the mask keeps; 0 without any."""

    def forward(self, x, context):
        xp = array_module(x)
        mask = context.mask
        score = x.real
        if mask is not None:
            score = xp.where(mask[..., None], score, -math.inf)
        at = score.argmax(axis=1)[:, None]  # [batch, 1, d_model]
        y = xp.take_along_axis(x, at, axis=1)[:, 0]
        has_token = True if mask is None else mask.any(axis=1)[:, None]
        return xp.where(has_token, y, 0.0), (x.shape, at, has_token)

    def backward(self, dy, cache, gradients):
        shape, at, has_token = cache
        xp = array_module(dy)
        dx = xp.zeros(shape, dtype=dy.dtype)
        xp.put_along_axis(dx, at, xp.where(has_token, dy, 0.0)[:, None], axis=1)
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
        q, _ = np.linalg.qr(tall)
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
