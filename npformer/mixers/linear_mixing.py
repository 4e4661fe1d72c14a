"""Linear mixing: a matrix for the positions and one for the features."""

from typing import Any, Self

from npformer import functional as F
from npformer.core import (
    Array,
    Context,
    Gradients,
    Parameter,
    Seed,
    checks,
    generators,
    initializers,
)
from npformer.core.support.explained_errors import drop_class_from_names, refuse_unknown_arguments
from npformer.mixers.mixer import MixerSettings
from npformer.mixers.whole_sequence import WholeSequenceMixer, refuse_causal


@drop_class_from_names
class LinearMixing(WholeSequenceMixer):
    """y = W_sequence x W_features, both trained: FNet's "Linear" encoder.

    Parameters
    ----------
    d_model, max_len : int
        Features of a token, and length of the longest sequence.
    padding : {"refuse", "per_length", "zero"}
        As in `WholeSequenceMixer`.

    Attributes
    ----------
    W_sequence : Parameter, shape (max_len, max_len)
        A shorter sequence uses its first rows and columns.
    W_features : Parameter, shape (d_model, d_model)
        Both are draw_matrix from N(0, 1 / size), which keeps the variance of x.
    """

    name = "linear"
    trained = True

    @refuse_unknown_arguments
    def __init__(
        self,
        d_model: int,
        max_len: int = 128,
        padding: str = "refuse",
        *,
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__(padding)
        checks.positive("max_len", max_len)
        checks.positive("d_model", d_model)
        rng = generators.from_seed(seed)

        def draw_matrix(n: int) -> Parameter:
            matrix = initializers.draw(initializers.normal(n**-0.5), rng, (n, n), dtype)
            return Parameter(matrix, trainable=self.trained)

        self.W_sequence = draw_matrix(max_len)
        self.W_features = draw_matrix(d_model)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        refuse_causal(settings, cls.name)
        return cls(**settings.only("d_model", "max_len", "padding"), seed=seed, dtype=dtype)

    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.linear_mixing(x, self.W_sequence.value, self.W_features.value)

    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, dW_sequence, dW_features = F.linear_mixing_backward(dy, cache)
        gradients.add(self.W_sequence, dW_sequence)
        gradients.add(self.W_features, dW_features)
        return dx

    def sequence_matrix(self, length: int, reference: Array) -> Array:
        return self.W_sequence.value[:length, :length]


class RandomMixing(LinearMixing):
    """`LinearMixing` whose matrices are not trained: FNet's "Random" encoder."""

    name = "random"
    trained = False
