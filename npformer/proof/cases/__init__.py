"""Gradient checks of everything in npformer that has a gradient.

``npformer gradcheck`` runs them and prints a table; the tests run the same ones.
"""

from npformer.proof.cases.averaging import averaging
from npformer.proof.cases.case import Case
from npformer.proof.cases.decoders import decoders
from npformer.proof.cases.functional import functional
from npformer.proof.cases.layers import layers
from npformer.proof.cases.mixers import mixers
from npformer.proof.cases.models import models
from npformer.proof.cases.published import published

__all__ = ["GROUPS", "Case", "cases"]

GROUPS = ("functional", "layers", "mixers", "models")


def cases() -> list[Case]:
    """Return all cases, from functions up to models. Their names differ."""
    subjects = functional, averaging, layers, mixers, models, decoders, published
    return [case for subject in subjects for case in subject()]
