"""A mixture of attention and synthesizers (Tay et al., 2020, section 3.3)."""

from collections.abc import Mapping, Sequence
from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Parameter, checks, describe, initializers
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.layers.state import State, StateShapes
from npformer.mixers.attention_scores import AttentionScores
from npformer.mixers.averaging import AveragingMixer, Scores
from npformer.mixers.dense_synthesizer import DenseScores, FactorizedDenseScores
from npformer.mixers.mixer import MixerSettings
from npformer.mixers.random_synthesizer import (
    FactorizedRandomScores,
    FixedRandomScores,
    RandomScores,
)

SCORES: dict[str, type[Scores]] = {
    "attention": AttentionScores,
    "dense_synthesizer": DenseScores,
    "factorized_dense_synthesizer": FactorizedDenseScores,
    "random_synthesizer": RandomScores,
    "fixed_random_synthesizer": FixedRandomScores,
    "factorized_random_synthesizer": FactorizedRandomScores,
}
"""What ``EncoderConfig(mixture=...)`` takes."""


@drop_class_from_names
class MixtureScores(Scores):
    """S = sum_i alpha_i S_i, alpha = softmax(logits), where S_i are the scores of the parts.

    Attributes
    ----------
    logits : Parameter, shape (n,)
        0 at first, which gives each part the same weight.
    """

    def draw_scores(self, settings: MixerSettings, rng: Any, dtype: str) -> None:
        names = settings.mixture
        check_parts(names)
        self.logits = Parameter(initializers.draw(initializers.zeros, None, (len(names),), dtype))
        self.parts = [SCORES[name](settings, seed=rng, dtype=dtype) for name in names]

    def scores(self, x: Array, context: Context) -> tuple[Array, Any]:
        scores_of_parts = []
        part_caches = []
        for layer in self.parts:
            scores, part_cache = layer.forward(x, context)
            scores_of_parts.append(scores)
            part_caches.append(part_cache)
        mixture, mixture_cache = F.mixture_scores(self.logits.value, *scores_of_parts)
        return mixture, (mixture_cache, part_caches)

    def score_state_shapes(self, length: int) -> StateShapes:
        return _prefix_names([layer.score_state_shapes(length) for layer in self.parts])

    def score_state(self, x: Array, state: State, context: Context) -> dict[str, Array]:
        return _prefix_names([layer.score_state(x, state, context) for layer in self.parts])

    def newest_scores(self, x: Array, state: State, context: Context) -> Array:
        scores_of_parts = []
        for i, layer in enumerate(self.parts):
            layer_state = state.select_prefix(f"{i}.")
            scores_of_parts.append(layer.newest_scores(x, layer_state, context))
        mixture, _ = F.mixture_scores(self.logits.value, *scores_of_parts)
        return mixture

    def scores_backward(self, dscores: Array, cache: Any, gradients: Gradients) -> Array | None:
        mixture_cache, part_caches = cache
        dlogits, *dparts = F.mixture_scores_backward(dscores, mixture_cache)
        gradients.add(self.logits, dlogits)
        dx = None
        for layer, dpart, part_cache in zip(self.parts, dparts, part_caches, strict=True):
            dx_part = layer.backward(dpart, part_cache, gradients)
            if dx_part is not None:  # these scores depend on x
                dx = dx_part if dx is None else dx + dx_part
        return dx


class Mixture(AveragingMixer, MixtureScores):
    """head_i = softmax(sum_k alpha_k S_k^i(x)) x W_V^i; ``settings.mixture`` names the parts."""


def _prefix_names(mappings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join mappings, with "0.", "1.", ... before their names; see `State.select_prefix`."""
    joined = {}
    for i, mapping in enumerate(mappings):
        for name, value in mapping.items():
            joined[f"{i}.{name}"] = value
    return joined


def check_parts(names: Sequence[str]) -> None:
    """Check the names of a mixture's parts."""
    if isinstance(names, str) or not isinstance(names, Sequence) or len(names) < 2:
        raise ValueError(
            f"mixture is {describe(names)}; expected at least two names, such as "
            "('attention', 'random_synthesizer')"
        )
    for name in names:
        checks.choice("mixture", name, SCORES)
