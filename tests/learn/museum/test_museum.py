"""Every invariant holds on healthy code, and every bug is noticed by the checks in its row."""

import ast
import importlib
import sys
from dataclasses import replace

import numpy as np
import pytest

import npformer as nf
from npformer.core import Layer
from npformer.learn.museum import BUGS, INVARIANTS, REFEREES, referees
from npformer.learn.museum.attention_by import AttentionBy
from npformer.learn.museum.probes import KEPT, N_HEADS, TOKENS, WIDTH, layers_in, small, weights_of
from npformer.proof.cases.case import draw

from .healthy import HEALTHY, files
from .page import PAGE, write

by_name = pytest.mark.parametrize("bug", BUGS.values(), ids=lambda bug: bug.name)
in_models = pytest.mark.parametrize(
    "bug", [bug for bug in BUGS.values() if bug.has_a_place], ids=lambda bug: bug.name
)

LABELS = np.array([0, 2])


def invariants_of(bug):
    return [INVARIANTS[name] for name in bug.caught_by if name in INVARIANTS]


@pytest.fixture(autouse=True)
def _numbers_may_be_nan():
    with np.errstate(all="ignore"):
        yield


def test_no_bug_is_missing():
    numbers = [bug.number for bug in BUGS.values()]
    assert len(numbers) >= 62
    assert set(numbers) == {*range(1, 43)}
    assert numbers == sorted(numbers)


@by_name
def test_is_described_and_short(bug):
    sections = {label: bug.section(label) for label in ("Who", "Why", "Cost", "Caught")}
    assert all(sections.values())
    whole = [bug.title, *(f"{label}: {text}" for label, text in sections.items())]
    assert " ".join(whole) == " ".join(bug.doc.split())
    assert set(bug.caught_by) <= {*INVARIANTS, *REFEREES}
    assert invariants_of(bug), "its row names no invariant"
    assert len(bug.code.splitlines()) <= 20
    assert '"""' not in bug.code


@by_name
def test_says_what_it_is_a_wrong_version_of(bug):
    if not bug.of.endswith(".py"):
        module, _, name = f"npformer.{bug.of}".rpartition(".")
        assert hasattr(importlib.import_module(module), name)
    assert isinstance(bug.build(), type(bug.right()))
    assert bug.build() is not bug.right()


def test_every_invariant_notices_something():
    named = {name for bug in BUGS.values() for name in bug.caught_by}
    assert named - set(REFEREES) == set(INVARIANTS)


WHOLE_PACKAGE = (
    "cupy_is_imported_in_one_place",
    "gradients_are_checked_in_earnest",
    "no_bare_except",
    "no_power_of_an_array",
)
"""Invariants that read every file, or run every case, and take seconds."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n in WHOLE_PACKAGE)) for n in INVARIANTS],
)
def test_holds_on_healthy_code(name):
    things = list(HEALTHY[name]())
    assert things
    for thing in things:
        INVARIANTS[name](thing)


@by_name
def test_is_noticed_by_its_invariants(bug):
    for invariant in invariants_of(bug):
        with pytest.raises(AssertionError):
            invariant(bug.build())
        invariant(bug.right())


@by_name
def test_is_noticed_by_the_referees_in_its_row_only(bug):
    assert referees(bug.report()) == set(bug.caught_by) & set(REFEREES)
    options = dict(bug.options)
    if bug.inputs:
        options |= {"max_entries": 4, "directions": 2}
    of_right = replace(bug, options=options).report(bug.right())
    assert of_right is None or of_right.passed


def test_every_layer_has_a_place_in_a_model():
    for bug in BUGS.values():
        thing = bug.build()
        assert bool(bug.inputs) == isinstance(thing, Layer | tuple)
        assert not isinstance(thing, Layer) or isinstance(bug.right(), Layer)


@in_models
def test_a_model_with_it_trains_alike_with_and_without_kernels(bug):
    """It runs as it is written: no kernel puts it right."""
    model, mask = bug.model(), bug.options.get("mask")
    assert any(type(one).__module__.startswith(MUSEUM) for _, one in model.layers())
    loss, gradients = model.loss_and_gradients(TOKENS, LABELS, mask, seed=0)
    with nf.use_kernels(False):
        plain_loss, plain = model.loss_and_gradients(TOKENS, LABELS, mask, seed=0)
    assert loss == pytest.approx(plain_loss, rel=1e-9)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, plain[name], rtol=1e-8, atol=1e-11, err_msg=name)


MUSEUM = "npformer.learn.museum."


@pytest.mark.slow
@in_models
def test_is_noticed_in_a_model(bug):
    few = {"max_entries": 4, "directions": 2}
    assert nf.gradcheck(bug.model(bug.right()), TOKENS, **few, **bug.options).passed
    report = replace(bug, build=bug.model, inputs=(TOKENS,), options=few | bug.options).report()
    noticed = referees(report)
    assert noticed == set(bug.caught_by) & set(REFEREES)
    assert report.twins
    assert all(twin.passed for twin in report.twins)
    if not noticed:
        for invariant in invariants_of(bug):
            with pytest.raises(AssertionError):
                invariant(bug.model())
            invariant(bug.model(bug.right()))


def test_no_epsilon_is_noticed_in_a_model_by_gradcheck_where_a_row_is_constant():
    bug = BUGS["LayerNormWithoutEpsilon"]
    encoder = bug.model().encoder
    x = TOKENS.copy()
    x[0, 3] = 0.0
    with pytest.raises(nf.GradcheckError, match="the forward pass gave NaN"):
        nf.gradcheck(encoder, x, max_entries=4, directions=1)


OPTIMIZERS = [bug for bug in BUGS.values() if bug.of == "optim.Adam"]


@pytest.mark.parametrize("bug", OPTIMIZERS, ids=lambda bug: bug.name)
def test_a_wrong_optimizer_trains(bug):
    model = nf.SequenceClassifier(small(), 3, n_features=WIDTH)
    data = TOKENS.astype("float32"), LABELS
    wrong = bug.build()(model.parameters(), lr=0.01)
    before = nf.evaluate(model, data).loss
    nf.fit(model, data, optimizer=wrong, epochs=10, progress=False)
    assert nf.evaluate(model, data).loss < before, (
        "the loss goes down although the optimizer is wrong"
    )


def test_a_bug_without_a_place_says_so():
    with pytest.raises(TypeError, match="AdamWithOneBeta has no place"):
        BUGS["AdamWithOneBeta"].model()


def test_attention_by_its_own_pair_is_attention():
    settings = {"causal": True, "seed": 0, "dtype": "float64"}
    by_pair = AttentionBy(WIDTH, N_HEADS, **settings)
    right = nf.mixers.Attention(WIDTH, N_HEADS, **settings)
    np.testing.assert_allclose(by_pair(TOKENS, KEPT), right(TOKENS, KEPT), rtol=1e-12)
    assert nf.gradcheck(by_pair, TOKENS, mask=KEPT).passed


def test_weights_of_a_mixer_are_those_it_averages_with():
    mixer = nf.mixers.Attention(WIDTH, N_HEADS, causal=True, seed=0, dtype="float64")
    explained = mixer.explain(draw(WIDTH // N_HEADS, WIDTH)[None], nf.Context())
    np.testing.assert_allclose(weights_of(mixer), explained[0], atol=1e-12)
    before = mixer.value.weight.value.copy()
    weights_of(mixer)
    np.testing.assert_array_equal(mixer.value.weight.value, before)


def test_an_invariant_that_finds_nothing_to_look_at_says_so():
    with pytest.raises(TypeError, match="Sequential has no GELU in it"):
        layers_in(nf.layers.Sequential(), nf.layers.GELU)


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_building_and_running_bugs_leaves_the_package_as_it_is():
    def everything():
        modules = {name: m for name, m in sys.modules.items() if name.startswith("npformer.")}
        found = {(name, key): x for name, m in modules.items() for key, x in vars(m).items()}
        for (name, key), value in list(found.items()):
            if isinstance(value, type):
                found |= {(name, key, k): v for k, v in vars(value).items() if k[:2] != "__"}
        return found

    before = everything()
    for bug in BUGS.values():
        if bug.has_a_place:
            bug.model().loss_and_gradients(TOKENS, LABELS, bug.options.get("mask"), seed=0)
    after = everything()
    assert all(after[key] is value for key, value in before.items())


def test_only_the_exercises_and_the_page_know_of_the_museum():
    own = "npformer/learn/", "npformer/cli/gradcheck.py"
    others = {name: text for name, text in files("npformer").items() if not name.startswith(own)}
    named = {name: list(imports(ast.parse(text))) for name, text in others.items()}
    knows = [name for name, every in named.items() if any("learn.museum" in one for one in every)]
    assert knows == []


@pytest.mark.slow
def test_the_page_says_what_the_table_says():
    assert PAGE.read_text(encoding="utf-8") == write(), (
        "python -m tests.learn.museum.page writes it"
    )
