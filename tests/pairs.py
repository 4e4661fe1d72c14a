"""Every pair of functions with arguments: the table that all tests of pairs use.

The pairs are those of `npformer.functional`, and `bag` of the wide model.

A row is `(inputs, options)`: each array of floats among the inputs has a gradient, options have
none. Sizes, numbers and masks follow an `Example`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.tasks.wide import bag, bag_backward

FUNCTIONS = {name: getattr(F, name) for name in F.__all__}
FUNCTIONS |= {"bag": bag, "bag_backward": bag_backward}

NAMES = sorted(name.removesuffix("_backward") for name in FUNCTIONS if name.endswith("_backward"))


@dataclass(frozen=True)
class Example:
    """Sizes, numbers and padding to try a pair with, or a layer."""

    batch: int = 2
    length: int = 3
    keys: int = 5
    n_heads: int = 2
    d_head: int = 2
    others: int = 4
    numbers: str = "ordinary"
    causal: bool = False
    padded: bool = False
    seed: int = 0

    @property
    def d_model(self) -> int:
        return self.n_heads * self.d_head

    @property
    def comparable(self) -> bool:
        """Whether rounding stays small: where all is alike, gradients are 0 and the rest noise."""
        return self.numbers in ("ordinary", "zeros", "spike")

    @property
    def mask(self) -> np.ndarray | None:
        """Padding of any length: a whole sequence may be padding."""
        if not self.padded:
            return None
        lengths = np.random.default_rng(self.seed + 1).integers(0, self.length + 1, self.batch)
        return np.arange(self.length) < lengths[:, None]

    def make_draw(self, dtype: str) -> Any:
        """Return draw(*shape); the numbers of float32 and float64 are exactly the same."""
        rng = np.random.default_rng(self.seed)

        def draw(*shape: int) -> np.ndarray:
            x = rng.normal(size=shape)
            if self.numbers == "zeros":
                x[...] = 0.0
            elif self.numbers == "constant":
                x[...] = 1.5
            elif self.numbers == "spike":
                x[...] = 0.0
                x.flat[rng.integers(x.size)] = 3.0
            x *= {"huge": 1e4, "tiny": 1e-30}.get(self.numbers, 1.0)
            return x.astype("float32").astype(dtype)

        return draw


PLAIN = Example()
MASKED = Example(batch=3, causal=True, padded=True, seed=4)
"""Of its three sequences one is whole, one is padded and one is all padding."""


def pairs(example: Example, dtype: str) -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return {name of the forward function: (inputs, options)}."""
    e = example
    draw = example.make_draw(dtype)
    rng = np.random.default_rng(example.seed)
    x = draw(e.batch, e.length, e.d_model)
    query, key, value, far_value = (
        draw(e.batch, e.n_heads, n, e.d_head) for n in (e.length, e.keys, e.length, e.keys)
    )
    scores = draw(e.batch, e.n_heads, e.length, e.length)
    max_len = e.length + e.others

    def maps(columns: int) -> tuple[np.ndarray, ...]:
        return (
            draw(e.d_model, e.d_model),
            draw(e.d_model),
            draw(e.n_heads, e.d_head, columns),
            draw(e.n_heads, columns),
        )

    two_maps = (*maps(e.length), *maps(2))
    mask = e.mask
    masked = {"mask": None if mask is None else mask[:, None, None, :], "causal": e.causal}
    rows = {"mask": None if mask is None else mask[..., None], "axis": -2 if e.causal else -1}
    R, R1, R2 = (draw(e.n_heads, max_len, n) for n in (max_len, e.others, e.others))
    labels = rng.integers(-1, e.others, (e.batch, e.length))
    targets = rng.random((e.batch, e.others)).astype(dtype)
    return {
        "linear": ((x, draw(e.d_model, e.others), draw(e.others)), {}),
        "conv1d": ((x, draw(e.keys, e.d_model, e.others), draw(e.others)), {}),
        "causal_convolution": ((x, draw(max_len, e.d_model)), {}),
        "short_convolution": ((x, draw(e.keys, e.d_model)), {}),
        "state_space_kernel": (
            (
                np.tanh(draw(e.d_model)),
                np.tanh(draw(e.d_model, e.others)),
                np.tanh(draw(e.d_model, e.others)),
                draw(2, e.d_model, e.others),
            ),
            {"length": e.length},
        ),
        "relu": ((x,), {}),
        "gelu": ((x,), {"approximate": "tanh" if e.causal else "none"}),
        "silu": ((x,), {}),
        "tanh": ((x,), {}),
        "sigmoid": ((x,), {}),
        "layer_norm": ((x, draw(e.d_model), draw(e.d_model)), {}),
        "rms_norm": ((x, draw(e.d_model)), {}),
        "rotary": ((draw(e.batch, e.length, 2 * e.d_head), np.arange(e.length)), {}),
        "repeat_heads": ((value,), {"times": e.others}),
        "gated": ((x, draw(e.d_model, 3), draw(e.d_model, 3), draw(3, e.d_model)), {}),
        "softmax": ((x,), rows),
        "attention_scores": ((query, key), {}),
        "average": ((scores, value), masked),
        "scaled_dot_product_attention": ((query, key, far_value), {"causal": e.causal}),
        "blockwise_attention": (
            (query, draw(e.batch, e.n_heads, e.length, e.d_head), value),
            masked | {"block": max(1, e.others - 2)},
        ),
        "dense_scores": ((x, *maps(max_len)), {"columns": e.length}),
        "dense_synthesizer": ((x, value, *maps(max_len)), masked),
        "factorized_dense_scores": ((x, *two_maps), {"columns": e.length}),
        "factorized_dense_synthesizer": ((x, value, *two_maps), masked),
        "random_scores": ((R,), {"length": e.length}),
        "random_synthesizer": ((value, R), masked),
        "factorized_random_scores": ((R1, R2), {"length": e.length}),
        "factorized_random_synthesizer": ((value, R1, R2), masked),
        "mixture_scores": ((draw(2), scores, draw(e.n_heads, e.length, e.length)), {}),
        "fourier_mixing": ((x,), {}),
        "hartley_mixing": ((x,), {}),
        "linear_mixing": ((x, draw(max_len, max_len), draw(e.d_model, e.d_model)), {}),
        "dropout": ((x,), {"rate": 0.4, "generator": np.random.default_rng(e.seed)}),
        "token_dropout": ((x,), {"rate": 0.4, "generator": np.random.default_rng(e.seed)}),
        "embedding": ((np.maximum(labels, 0), draw(e.others, e.d_model)), {}),
        "bag": (
            (np.maximum(labels, 0), draw(e.batch, e.length), draw(e.others, e.d_model)),
            {},
        ),
        "mean_pooling": ((x,), {"mask": mask}),
        "max_pooling": ((x,), {"mask": mask}),
        "softmax_cross_entropy": (
            (draw(e.batch, e.length, e.others),),
            {"labels": labels, "label_smoothing": 0.1},
        ),
        "binary_cross_entropy_with_logits": ((draw(e.batch, e.others),), {"targets": targets}),
        "mean_squared_error": ((draw(e.batch, e.others),), {"target": targets}),
    }


def run(name: str, example: Example, dtype: str = "float64") -> tuple[Any, Any]:
    """Return result and cache of a forward function."""
    inputs, options = pairs(example, dtype)[name]
    return FUNCTIONS[name](*inputs, **options)


def gradients_of(name: str, dy: Any, cache: Any) -> tuple[np.ndarray, ...]:
    """Return what the backward function gives, as a tuple also if it is one array."""
    gradients = FUNCTIONS[f"{name}_backward"](dy, cache)
    return gradients if isinstance(gradients, tuple) else (gradients,)


def differentiable(inputs: tuple[Any, ...]) -> list[np.ndarray]:
    """Return the inputs that have a gradient."""
    return [x for x in inputs if x.dtype.kind == "f"]
