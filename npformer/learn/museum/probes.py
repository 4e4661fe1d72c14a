"""What bugs and invariants share: numbers, a small configuration, ways to look into a model."""

import copy
from typing import Any, TypeVar

import numpy as np

from npformer import functional as F
from npformer.core import Array, Layer
from npformer.mixers import Attention, AveragingMixer
from npformer.models import EncoderConfig
from npformer.proof.cases import case
from npformer.proof.cases.case import draw, keep
from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError, GradcheckReport

WIDTH, N_HEADS = 8, 2

TOKENS = draw(2, 4, WIDTH)
"""Two sequences of four tokens."""

KEPT = keep([4, 2], 4)
"""A mask for `TOKENS`: the second sequence is half padding."""

Kind = TypeVar("Kind", bound=Layer)


def report_of(thing: Any, *inputs: Any, **options: Any) -> GradcheckReport:
    """Return gradcheck's report, also if it finds something."""
    try:
        return gradcheck(thing, *inputs, **options)
    except GradcheckError as error:
        return error.report


def small(**changes: Any) -> EncoderConfig:
    """Return a small configuration for these tokens."""
    return case.small(**({"d_model": WIDTH, "d_ff": 12, "max_len": 5} | changes))


def layers_in(layer: Layer, kind: type[Kind]) -> list[Kind]:
    """Return every layer of a class in a model, itself included; a TypeError if there is none."""
    by_id = {id(one): one for _, one in layer.layers() if isinstance(one, kind)}  # shared ones once
    if not by_id:
        raise TypeError(f"{type(layer).__name__} has no {kind.__name__} in it; expected one")
    return list(by_id.values())


def averaging_mixers(layer: Layer) -> list[Attention | AveragingMixer]:
    """Return every mixer in a model whose heads are weighted averages of values."""
    kinds = Attention, AveragingMixer
    mixers = {id(one): one for _, one in layer.layers() if isinstance(one, kinds)}
    if not mixers:
        raise TypeError(f"{type(layer).__name__} has no AveragingMixer in it; expected one")
    return list(mixers.values())


def weights_of(mixer: Attention | AveragingMixer) -> Array:
    """Return the weights that a mixer really averages with, shape (heads, length, length).

    A copy of the mixer gets one-hot values, so its result is the weights. There are as many tokens
    as a head has features.
    """
    probe, length = copy.deepcopy(mixer), WIDTH // mixer.n_heads
    x = draw(length, WIDTH)
    one_hot = np.tile(np.eye(length), mixer.n_heads)  # [length, d_model]: the same for every head
    probe.value.weight.value[...] = np.linalg.pinv(x) @ one_hot
    probe.output.weight.value[...] = np.eye(WIDTH)
    for linear in (probe.value, probe.output):
        if linear.bias is not None:
            linear.bias.value[...] = 0.0
    return F.split_heads(probe(x[None]), mixer.n_heads)[0]
