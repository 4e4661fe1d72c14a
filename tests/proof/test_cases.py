"""Every gradient of the package is right, and none is missing from the cases."""

import importlib
import pkgutil

import pytest

import npformer
import npformer.learn.museum.published_cases
import npformer.models.trainable.cases
import npformer.tasks.wide.cases
from npformer import functional as F
from npformer.core import Layer, TwoInputLayer
from npformer.engine.twin_classes import TABLE, Fast
from npformer.layers import Pooling
from npformer.layers.activation import Activation
from npformer.mixers import MIXERS, Mixer
from npformer.models.trainable import Model
from npformer.models.trainable.protocol import Trainable
from npformer.proof.cases import GROUPS, cases
from tests.pairs import FUNCTIONS

CASES = cases()
LESS_EXACT = {"dense_synthesizer: one map, padding mask": 1e-12}
"""Bounds of the complex step's error where a function loses more than the last digits."""

ALONG_DIRECTIONS = {"max_entries": 8, "directions": 3}
"""For layers and mixers here: in a random direction any wrong entry shows, and the functions that
they call are checked entry by entry. `npformer gradcheck` checks these, too, entry by entry."""

COVERED = {name for case in CASES for name in case.covers}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_gradient_is_right(case):
    report = case.run(**(ALONG_DIRECTIONS if case.group in ("layers", "mixers") else {}))
    assert report.passed
    assert report.error < 1e-6
    if case.group == "functional":
        assert report.complex_error < LESS_EXACT.get(case.name, 1e-13)
    else:
        assert report.complex_error is None or report.complex_error < 1e-11
    assert report.tensors or "no layer" in case.name
    target = case.run.args[0]
    if isinstance(target, Layer):
        twins = {twin.dtype for twin in report.twins}
        assert twins == (set() if npformer.fast(target) is target else {"float64", "float32"})
    if case.group in ("functional", "mixers"):
        assert report.not_analytic == ""


def names_dropout(case):
    _, _, label = case.name.partition(": ")
    return "dropout" in label or "training" in label


def test_a_case_of_dropout_drops():
    layer_cases = [case for case in CASES if isinstance(case.run.args[0], Layer)]
    dropout_cases = [case for case in layer_cases if names_dropout(case)]
    assert dropout_cases
    not_training = [case for case in dropout_cases if case.run.keywords.get("training") is not True]
    assert [case.name for case in not_training] == []


def test_names_differ_and_groups_are_known():
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.group for case in CASES} == set(GROUPS)


def backward_functions():
    names = [f"{F.__name__}.{module.name}" for module in pkgutil.iter_modules(F.__path__)]
    modules = map(importlib.import_module, [*names, "npformer.tasks.wide.bag"])
    return {name for module in modules for name in vars(module) if name.endswith("_backward")}


def test_every_pair_is_covered():
    backward = backward_functions()
    assert backward >= {name for name in FUNCTIONS if name.endswith("_backward")}
    assert sorted(backward - COVERED) == []
    assert sorted({name.removesuffix("_backward") for name in backward} - COVERED) == []


def layer_classes():
    for module in pkgutil.walk_packages(npformer.__path__, f"{npformer.__name__}."):
        # A solved exercise may take what it builds on from the folder in which a reader works.
        # A server needs an extra, and has no layers.
        aside = module.name.endswith(("__main__", ".play.server"))
        if not aside and ".exercises.solved." not in module.name:
            importlib.import_module(module.name)
    classes, unseen = set(), [Layer]
    while unseen:
        for kind in unseen.pop().__subclasses__():
            if kind.__module__.partition(".")[0] == "npformer":
                classes.add(kind)
            unseen.append(kind)
    bases = {Activation, Mixer, Model, Pooling, Trainable, TwoInputLayer}
    return classes - bases  # they have no passes, or only those of what is in them


def plain_classes():
    plain = {kind for kind in layer_classes() if not issubclass(kind, Fast)}
    # Layers of the museum, and a model with them on the page, are wrong on purpose; those of the
    # exercises are marked by themselves.
    other_packages = "npformer.learn.museum.", "npformer.learn.exercises.", "npformer.learn.play."
    published = "npformer.learn.museum.published"  # as people wrote them, and right
    classes = [kind for kind in plain if kind.__module__ == published]
    classes += [kind for kind in plain if not kind.__module__.startswith(other_packages)]
    return {kind.__name__ for kind in classes}


def test_every_fast_class_belongs_to_a_covered_layer_class():
    fast = {kind for kind in layer_classes() if issubclass(kind, Fast)}
    known = {*TABLE.classes.values(), *TABLE.first.values()}
    assert known <= fast
    for kind in fast - known:  # made for a subclass: it keeps its passes and holds fast layers
        assert (kind.__bases__[0], kind.__name__) == (Fast, kind.__bases__[1].__name__)
        assert kind.__bases__[1] in layer_classes() - fast
    assert sorted({kind.__name__ for kind in TABLE.classes} - COVERED) == []
    checked = [case.run.args[0] for case in CASES if isinstance(case.run.args[0], Layer)]
    inside = {type(sublayer) for layer in checked for _, sublayer in layer.layers()}
    assert sorted(kind.__name__ for kind in {*TABLE.classes} - inside) == []


def test_every_layer_class_and_mixer_is_covered_and_nothing_else():
    plain = plain_classes() | set(MIXERS)
    assert sorted(plain - COVERED) == []
    assert COVERED - plain - set(FUNCTIONS) == {"loss_and_gradients"}


def test_a_point_without_a_derivative_is_reported_as_such():
    (corner,) = [case for case in CASES if "has no derivative" in case.name]
    assert corner.run().tensors[0].no_derivative == 4


def test_a_case_run_again_gives_the_same_report():
    for case in [case for case in CASES if case.group != "models"][::80]:
        assert str(case.run()) == str(case.run())
