"""Gradient checks of what plugins registered, for `npformer gradcheck`."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from npformer.core import Layer, Registry
from npformer.layers import ACTIVATIONS, FFNS, NORMS, POOLINGS
from npformer.mixers import MIXERS
from npformer.models import EncoderBlock, EncoderConfig
from npformer.models.losses import LOSSES, Classification
from npformer.proof.cases import Case
from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckReport

Check = Callable[[], GradcheckReport]


Builders = list[tuple[Registry[Any], str, Callable[[str], Check]]]


def registries() -> list[Registry[Any]]:
    """Return the registries whose entries are checked by their names."""
    return [registry for registry, _, _ in _builders()]


def _builders() -> Builders:
    return [
        (ACTIVATIONS, "layers", lambda name: _layer(ACTIVATIONS.make(name))),
        (FFNS, "layers", _ffn),
        (NORMS, "layers", lambda name: _layer(NORMS.make(name, 4, 1e-5, dtype="float64"))),
        (POOLINGS, "layers", lambda name: _layer(POOLINGS.make(name, 4, 0, "float64"))),
        (MIXERS, "mixers", _mixer),
        (LOSSES, "functional", _loss),
    ]


def plugin_cases() -> list[Case]:
    """Return a check for all that plugins registered; print what has no defaults to build it by."""
    cases = []
    for registry, group, build in _builders():
        for name in registry.user_builders():
            title = f"{registry.kind} {name}"
            try:
                cases.append(Case(f"{title}: registered", group, (name,), build(name)))
            except (TypeError, ValueError) as error:
                reason = f"{title} is not checked, because it needs options: {error}"
                print(reason, file=sys.stderr)
    return cases


def _layer(layer: Layer) -> Check:
    return partial(gradcheck, layer, np.random.default_rng(0).standard_normal((3, 4, 4)))


def _ffn(name: str) -> Check:
    return _layer(
        FFNS.make(name, 4, 6, "gelu", initializer="xavier_uniform", seed=0, dtype="float64")
    )


def _mixer(name: str) -> Check:
    config = EncoderConfig(d_model=4, n_layers=1, n_heads=2, d_ff=6, max_len=5, mixer=name)
    return _layer(EncoderBlock(config, name, seed=0, dtype="float64"))


def _loss(name: str) -> Check:
    loss, rng = LOSSES.make(name), np.random.default_rng(1)
    shape = (6, loss.n_outputs(2))
    y = rng.integers(0, 2, 6) if isinstance(loss, Classification) else rng.standard_normal(shape)
    outputs = rng.standard_normal(shape)
    return partial(gradcheck, (loss.forward, loss.backward), outputs, y, wrt=["outputs"])
