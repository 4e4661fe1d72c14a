"""Cases of the token mixers and of the scores that they average with."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from npformer import mixers as M
from npformer.core import Layer
from npformer.proof.cases.case import SEEDED, Case, classes, draw, keep, layer, twice

TWO_HEADS: dict[str, Any] = {"n_heads": 2}
IN_BLOCKS = {**TWO_HEADS, "memory": "blocks"}
OF_TODAY: dict[str, Any] = {
    "n_heads": 4,
    "n_kv_heads": 2,
    "d_head": 2,
    "window": 3,
    "qk_norm": True,
    "bias": False,
    "rope_theta": 50.0,
}
SIX_PARTS = {**TWO_HEADS, "mixture": tuple(M.SCORES)}


def mixers() -> Iterator[Case]:
    """Yield the cases."""
    mask, causal = keep([4, 2, 0], 4), {**TWO_HEADS, "causal": True}
    for name, kind in M.MIXERS.items():
        yield _case("all tokens", name, **TWO_HEADS)
        yield _case("at full length", name, **TWO_HEADS, max_len=4)
        yield _case("padding mask", name, mask, **TWO_HEADS, padding="per_length")
        yield _twice(name, name, **TWO_HEADS)
        if issubclass(kind, M.Attention | M.AveragingMixer):
            yield _case("one head", name)
            yield _case("causal", name, **causal)
            yield _case("causal and padding mask", name, mask, **causal)
        if issubclass(kind, M.WholeSequenceMixer):
            no_padding = keep([4, 4, 4], 4)
            yield _case("padding as zeros", name, mask, padding="zero")
            yield _case("a mask that keeps everything", name, no_padding, padding="per_length")
    for name, prefix, settings in (
        ("attention", "in blocks", IN_BLOCKS),
        ("attention", "turned", {**TWO_HEADS, "rope_theta": 50.0}),
        ("attention", "turned, in blocks", {**IN_BLOCKS, "rope_theta": 50.0}),
        ("attention", "of today", OF_TODAY),
        ("attention", "of today, in blocks", {**OF_TODAY, "memory": "blocks"}),
        ("mixture", "six parts", SIX_PARTS),
    ):
        yield _case(prefix, name, **settings)
        yield _case(f"{prefix}, padding mask", name, mask, **settings)
        yield _case(f"{prefix}, causal and padding mask", name, mask, **settings, causal=True)
    yield _twice("attention in blocks", "attention", **IN_BLOCKS)
    yield _case("rank 1", "factorized_random_synthesizer", **TWO_HEADS, rank=1)
    tables = "random_synthesizer", "factorized_random_synthesizer"
    yield _case("tables alone", "mixture", **TWO_HEADS, mixture=tables)
    yield _case("one part twice", "mixture", **TWO_HEADS, mixture=("attention", "attention"))


def _mixer(name: str, **settings: Any) -> M.Mixer:
    mixer_settings = M.MixerSettings(**({"d_model": 4, "max_len": 5} | settings))
    mixer: M.Mixer = M.MIXERS[name].build(mixer_settings, **SEEDED)
    return mixer


def _case(label: str, name: str, mask: np.ndarray | None = None, **settings: Any) -> Case:
    mixer = _mixer(name, **settings)
    covers = (name, *(kind for kind in classes(mixer, Layer) if kind != "Mixer"))
    x = draw(3, 4, 4)
    return layer(label, mixer, x, group="mixers", title=name, covers=covers, mask=mask)


def _twice(title: str, name: str, **settings: Any) -> Case:
    return twice(_mixer(name, **settings), draw(3, 4, 4), group="mixers", title=title)


def _scores() -> Iterator[Case]:
    sizes = M.MixerSettings(d_model=4, n_heads=2, max_len=5, rank=2)
    tokens, no_gradient = draw(2, 3, 4), np.zeros((2, 3, 4), dtype=int)

    def mixture(*names: str) -> M.MixtureScores:
        return M.MixtureScores(replace(sizes, mixture=names), **SEEDED)

    for label, scores, x in (
        ("two heads", M.AttentionScores(sizes, **SEEDED), tokens),
        ("two heads, cropped", M.DenseScores(sizes, **SEEDED), tokens),
        ("two heads, cropped", M.FactorizedDenseScores(sizes, **SEEDED), tokens),
        # These scores do not depend on the tokens. Whole numbers have no gradient to check.
        ("two heads, cropped", M.RandomScores(sizes, **SEEDED), no_gradient),
        ("two heads, cropped", M.FactorizedRandomScores(sizes, **SEEDED), no_gradient),
        ("six parts", mixture(*M.SCORES), tokens),
        ("tables alone", mixture("random_synthesizer", "fixed_random_synthesizer"), no_gradient),
    ):
        yield layer(label, scores, x, group="mixers", covers=classes(scores, Layer))


SUBJECTS = _scores, mixers
