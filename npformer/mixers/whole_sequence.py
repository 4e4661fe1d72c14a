"""What mixers share that see all positions at once and cannot skip padding."""

from abc import abstractmethod
from typing import Any, Self

from npformer.core import Array, Context, Gradients, Seed, array_module, checks
from npformer.core.support.explained_errors import drop_class_from_names, refuse_unknown_arguments
from npformer.mixers.mixer import PADDINGS, Mixer, MixerSettings, mask_weights
from npformer.mixers.padding import STRATEGIES


@drop_class_from_names
class WholeSequenceMixer(Mixer):
    """A linear map of the whole sequence, with a choice of what to do about padding.

    Parameters
    ----------
    padding : {"refuse", "per_length", "zero"}
        "refuse": a padding mask is an error. "per_length": each sequence is mixed at its own
        length, so padding changes nothing. "zero": padding is set to 0 and mixed with the rest, so
        the result depends on how much padding there is. (The published code ignores padding.)
    """

    name = ""  # what the user calls this mixer
    dropout_follows = False

    @refuse_unknown_arguments
    def __init__(self, padding: str = "refuse") -> None:
        self.padding = checks.choice("padding", padding, PADDINGS)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        refuse_causal(settings, cls.name)
        return cls(settings.padding)

    @abstractmethod
    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Mix whole sequences; return y and a cache."""

    @abstractmethod
    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        """Gradient of `mix`: add those of the parameters and return dx."""

    @abstractmethod
    def sequence_matrix(self, length: int, reference: Array) -> Array:
        """Return the matrix that mixes `length` tokens, on the backend of `reference`."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        checks.sequences(x)
        checks.has_tokens("x", x)
        strategy, _ = STRATEGIES[self.padding]
        return strategy(lambda x: self.mix(x, context), x, context.padding, self.name)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        _, strategy_backward = STRATEGIES[self.padding]
        return strategy_backward(
            lambda dy, cache: self.mix_backward(dy, cache, gradients), dy, cache
        )

    def explain(self, x: Array, context: Context) -> Array:
        batch, length = x.shape[:2]
        matrix = self.sequence_matrix(length, x)
        xp = array_module(x)
        matrices = xp.broadcast_to(matrix, (batch, 1, length, length)).copy()
        if self.padding == "per_length" and context.padding is not None:
            for n, rows in context.padding.rows_of_length():
                matrices[rows, :, :n, :n] = self.sequence_matrix(n, x)
        return mask_weights(matrices, context.mask)


def refuse_causal(settings: MixerSettings, name: str) -> None:
    """Raise ValueError if the settings are causal."""
    if settings.causal:
        raise ValueError(
            f"causal=True with mixer {name!r}; expected False, because it sees all of a sequence "
            "at once. Use 'attention' or a synthesizer"
        )
