"""Every invariant holds on healthy code, and every bug is noticed by what is named for it."""

import ast
import importlib

import numpy as np
import pytest

import npformer as nf
from npformer.core import Gradients, Layer
from npformer.engine.twins import has_twin
from npformer.museum import BUGS, INVARIANTS, REFEREES, SEEN, referees
from npformer.museum.attention import AttentionBy
from npformer.museum.probes import HEADS, KEPT, TOKENS, WIDTH, draw, found, small, weights_of

from .healthy import HEALTHY, ROOT, files

by_name = pytest.mark.parametrize("bug", BUGS.values(), ids=lambda bug: bug.name)
placed = pytest.mark.parametrize(
    "bug", [bug for bug in BUGS.values() if bug.place], ids=lambda bug: bug.name
)

FIRST = [
    (1, "gradient_of_softmax", True),
    (2, "gradient_of_one_dropout_used_twice", True),
    (3, "dropout_does_nothing_at_evaluation", False),
    (4, "gradient_of_layer_norm", True),
    (5, "adams_first_step_has_size_lr", False),
    (5, "adam_counts_steps_and_not_tensors", False),
    (6, "adams_first_step_has_size_lr", False),
    (7, "queries_ask_and_keys_answer", True),
    (8, "a_constant_row_is_finite", False),
    (9, "gradient_of_dropout_at_evaluation", True),
    (10, "attention_averages_over_the_keys", True),
    (10, "gelu_is_the_one_that_was_asked_for", False),
    (11, "no_power_of_an_array", False),
    (12, "a_large_mean_costs_no_digits", False),
    (13, "gradients_are_checked_in_earnest", False),
    (13, "gradients_are_checked_in_earnest", False),
    (14, "padding_is_never_mixed_in_silence", False),
    (14, "fourier_mixing_is_the_transform_of_its_own_length", False),
    (15, "no_bare_except", False),
    (15, "cupy_is_imported_in_one_place", False),
    (15, "weights_open_without_running_code", False),
    (16, "softmax_sums_to_1_over_the_last_axis", False),
    (17, "a_block_owns_two_norms", False),
    (17, "layers_are_tied_only_when_asked", False),
    (17, "each_residual_adds_its_own_input", True),
    (18, "a_referee_passes_no_nan", False),
    (19, "causal_attention_does_not_look_ahead", False),
    (20, "attention_without_positions_knows_no_order", True),
    (21, "padding_changes_no_kept_token", True),
]
"""What the museum began with: number, what is named for it, whether a gradient check notices."""


def invariants_of(bug):
    return [INVARIANTS[name] for name in bug.caught_by if name in INVARIANTS]


@pytest.fixture(autouse=True)
def _numbers_may_be_nan():
    with np.errstate(all="ignore"):
        yield


# The table ----------------------------------------------------------------------------------------


def test_all_the_bugs_that_were_seen_are_here():
    numbers = [bug.number for bug in BUGS.values()]
    assert set(numbers) >= set(SEEN)
    assert numbers == sorted(numbers)


def test_what_the_museum_began_with_is_here():
    rows = [
        (bug.number, name, bool(set(bug.caught_by) & set(REFEREES)))
        for bug in BUGS.values()
        for name in bug.caught_by
        if name in INVARIANTS
    ]
    for row in FIRST:
        assert row in rows
    assert len(BUGS) >= len(FIRST)


@by_name
def test_is_described_in_sentences(bug):
    for text in (bug.title, *map(bug.told, ("Who", "Why", "Cost", "Caught"))):
        assert len(text) > 20
        assert text[-1] in ".)`"
    for name in bug.caught_by:
        assert name in INVARIANTS or name in REFEREES
        assert name in bug.told("Caught")
    assert invariants_of(bug), "no invariant is named for it"
    assert len(bug.code.splitlines()) <= 12
    assert '"""' not in bug.code


@by_name
def test_says_what_it_is_a_wrong_version_of(bug):
    if not bug.of.endswith(".py"):
        module, _, name = f"npformer.{bug.of}".rpartition(".")
        assert hasattr(importlib.import_module(module), name)
    assert type(bug.build()) is type(bug.right()) or isinstance(bug.build(), type(bug.right()))
    assert bug.build() is not bug.right()


def test_every_invariant_notices_something():
    named = {name for bug in BUGS.values() for name in bug.caught_by}
    assert named - set(REFEREES) == set(INVARIANTS)


@pytest.mark.parametrize("name", INVARIANTS)
def test_holds_on_healthy_code(name):
    things = list(HEALTHY[name]())
    assert things
    for thing in things:
        INVARIANTS[name](thing)


# Who catches which --------------------------------------------------------------------------------


@by_name
def test_is_noticed_by_its_invariants(bug):
    for invariant in invariants_of(bug):
        with pytest.raises(AssertionError):
            invariant(bug.build())
        invariant(bug.right())


@by_name
def test_is_noticed_by_no_other_referee_than_it_says(bug):
    assert referees(bug.report()) == set(bug.caught_by) & set(REFEREES)
    of_right = bug.report(bug.right())
    assert of_right is None or of_right.passed


# In a model ---------------------------------------------------------------------------------------


def test_every_layer_has_a_place_in_a_model():
    for bug in BUGS.values():
        thing = bug.build()
        assert bug.place is not None or not isinstance(thing, Layer | tuple)
        assert not isinstance(thing, Layer) or isinstance(bug.right(), Layer)


def passes(model, options):
    """Return y, dx and the gradients of a model: of its own passes, not of `model(x)`."""
    training = options.get("training", False)
    generator = np.random.default_rng(0) if training else None
    context = nf.Context(training, generator, options.get("mask"))
    y, cache = model.forward(TOKENS, context)
    return y.copy(), cache


def numbers(model, twin, options):
    y, cache = passes(twin, options)
    gradients = Gradients(model)
    dx = twin.backward(draw(*y.shape, seed=3), cache, gradients)
    return {"y": y, "dx": dx, **{name: g.copy() for name, g in gradients.items()}}


@placed
def test_runs_in_a_model_with_and_without_kernels_alike(bug):
    model = bug.model()
    twin = nf.fast(model)
    assert twin is not model
    plain, fast = (numbers(model, one, bug.options) for one in (model, twin))
    assert set(plain) == set(fast)
    for name, value in plain.items():
        if value is None:
            assert fast[name] is None
        else:
            np.testing.assert_allclose(fast[name], value, rtol=1e-9, atol=1e-11, err_msg=name)


@placed
def test_is_trained_in_a_model_with_and_without_kernels_alike(bug):
    model, labels, seed = bug.model(), np.array([0, 2]), 0
    mask = bug.options.get("mask")
    loss, gradients = model.loss_and_gradients(TOKENS, labels, mask, seed=seed)
    logits = model(TOKENS, mask)
    with nf.use_kernels(False):
        plain_loss, plain = model.loss_and_gradients(TOKENS, labels, mask, seed=seed)
        np.testing.assert_allclose(logits, model(TOKENS, mask), rtol=1e-9)
    assert loss == pytest.approx(plain_loss, rel=1e-9)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, plain[name], rtol=1e-8, atol=1e-11, err_msg=name)


@placed
def test_runs_in_a_model_as_it_is_written(bug):
    """What is wrong has no twin of its own: a kernel would put it right."""
    thing = bug.build()
    if isinstance(thing, Layer):
        wrong = [one for _, one in thing.layers() if type(one).__module__.startswith(MUSEUM)]
        assert wrong
        for one in filter(has_twin, wrong):  # a container of other layers, and no other pass
            assert not {"forward", "backward"} & set(vars(type(one)))
    assert any(type(one).__module__.startswith(MUSEUM) for _, one in bug.model().layers())


MUSEUM = "npformer.museum."


@placed
def test_is_noticed_in_a_model(bug):
    assert bug.report_of_model(TOKENS, bug.right()).passed
    noticed = referees(bug.report_of_model(TOKENS))
    assert noticed == set(bug.caught_by) & set(REFEREES)
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
    model, labels = nf.SequenceClassifier(small(), 3, n_features=WIDTH), np.array([0, 2])
    data = TOKENS.astype("float32"), labels
    wrong = bug.build()(model.parameters(), lr=0.01)
    before = nf.evaluate(model, data).loss
    nf.fit(model, data, optimizer=wrong, epochs=10, progress=False)
    assert nf.evaluate(model, data).loss < before, "wrong, and it goes down all the same"


def test_a_bug_without_a_place_says_so():
    with pytest.raises(TypeError, match="AdamWithOneBeta has no place"):
        BUGS["AdamWithOneBeta"].model()


# What bugs and invariants are made of -------------------------------------------------------------


def test_attention_by_its_own_pair_is_attention():
    settings = {"causal": True, "seed": 0, "dtype": "float64"}
    by_pair = AttentionBy(WIDTH, HEADS, **settings)
    right = nf.mixers.Attention(WIDTH, HEADS, **settings)
    np.testing.assert_allclose(by_pair(TOKENS, KEPT), right(TOKENS, KEPT), rtol=1e-12)
    assert nf.gradcheck(by_pair, TOKENS, mask=KEPT).passed


def test_weights_are_those_that_are_used():
    mixer = nf.mixers.Attention(WIDTH, HEADS, causal=True, seed=0, dtype="float64")
    explained = mixer.explain(draw(WIDTH // HEADS, WIDTH)[None], nf.Context())
    np.testing.assert_allclose(weights_of(mixer), explained[0], atol=1e-12)
    before = mixer.value.weight.value.copy()
    weights_of(mixer)
    np.testing.assert_array_equal(mixer.value.weight.value, before)


def test_an_invariant_that_finds_nothing_to_look_at_says_so():
    with pytest.raises(TypeError, match="Sequential has no GELU in it"):
        found(nf.layers.Sequential(), nf.layers.GELU)


def test_what_reads_the_source_reads_it_all():
    names = set(files("npformer", "tests"))
    assert "npformer/functional/layer_norm.py" in names
    assert "tests/museum/test_museum.py" in names
    assert len(names) > 100


# What the museum keeps to -------------------------------------------------------------------------


def syntax(folder):
    return {name: ast.parse(text) for name, text in files(folder).items()}


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_nothing_is_patched():
    modules = {"npformer", "F", "L", "nf"}
    for name, tree in syntax("npformer/museum").items():
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert not used & {"setattr", "delattr", "mock", "monkeypatch"}, name
        assert not {i.partition(".")[0] for i in imports(tree)} & {"pytest", "unittest"}, name
        of_modules = {alias for i in imports(tree) for alias in [i.rpartition(".")[2]]}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                owner = node.value
                assert not (isinstance(owner, ast.Name) and owner.id in modules | of_modules), (
                    f"{name}, line {node.lineno}: {ast.unparse(node)} belongs to a module or class"
                )


def test_building_and_running_bugs_leaves_the_package_as_it_is():
    modules = (
        "functional",
        "layers",
        "mixers",
        "optim",
        "models",
        "proof.gradcheck",
        "training.checkpoint",
    )

    def look():
        found = {}
        for name in modules:
            module = importlib.import_module(f"npformer.{name}")
            for key, value in vars(module).items():
                found[name, key] = value
                if isinstance(value, type):
                    found |= {(name, key, k): v for k, v in vars(value).items() if k[:2] != "__"}
        return found

    before = look()
    for bug in BUGS.values():
        if bug.place:
            passes(bug.model(), bug.options)
    after = look()
    assert set(before) == set(after)
    assert all(after[key] is value for key, value in before.items())


def test_nothing_else_in_the_package_knows_of_the_museum():
    for name, tree in syntax("npformer").items():
        if not name.startswith("npformer/museum/"):
            assert not any("museum" in imported for imported in imports(tree)), name


def test_the_page_says_what_the_table_says():
    page = ROOT / "docs" / "museum.md"
    from .page import write

    assert page.read_text(encoding="utf-8") == write(), "python -m tests.museum.page writes it"
