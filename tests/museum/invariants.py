"""The checks of the museum: each returns on healthy code and raises AssertionError on sick code.

The first line of each docstring is what it holds to be true.
"""

from __future__ import annotations

import ast
import functools
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import npformer as nf
from npformer import functional as F
from npformer import gradcheck as check
from npformer import layers as L
from npformer.encoder import EncoderBlock
from npformer.gradcheck import TOLERANCE, GradcheckError
from npformer.mixers import MIXERS, MixerSettings, WholeSequenceMixer
from npformer.optim import warmup_inverse_sqrt

ROOT = Path(__file__).resolve().parents[2]

INVARIANTS: dict[str, Callable[[], None]] = {}


def invariant(check: Callable[[], None]) -> Callable[[], None]:
    """Enter a check into the table."""
    INVARIANTS[check.__name__] = check
    return check


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    """Return normal numbers in float64."""
    return np.random.default_rng(seed).normal(size=shape)


def pair(name: str) -> tuple[Callable, Callable]:
    """Return a forward function and its backward function as they are now."""
    return getattr(F, name), getattr(F, f"{name}_backward")


# Gradients: the referee decides -------------------------------------------------------------------


@invariant
def gradient_of_softmax() -> None:
    """Softmax's backward pass is the derivative of its forward pass."""
    check(pair("softmax"), draw(2, 4))


@invariant
def gradient_of_layer_norm() -> None:
    """Layer norm's backward pass is a derivative, gamma far from 1."""
    check(pair("layer_norm"), draw(3, 6), 1.5 + draw(6, seed=1), draw(6, seed=2))


@invariant
def gradient_of_dropout_at_evaluation() -> None:
    """Dropout has a backward pass at evaluation too."""
    check(pair("dropout"), draw(3, 4), 0.5)


@invariant
def gradient_of_one_dropout_used_twice() -> None:
    """A dropout that stands at two places keeps two masks."""
    shared = L.Dropout(0.5)
    check(L.Sequential(shared, L.Tanh(), shared), draw(4, 6), training=True)


# The referee itself -------------------------------------------------------------------------------


@invariant
def a_referee_passes_no_nan() -> None:
    """A gradient of NaN fails, wherever among the tensors it stands."""

    def backward(dy: np.ndarray, cache: object) -> tuple[np.ndarray, ...]:
        dx, dW, db = F.linear_backward(dy, cache)
        return dx, dW * np.nan, db

    try:
        check((F.linear, backward), draw(2, 3), draw(3, 4, seed=1), draw(4, seed=2))
    except GradcheckError:
        return
    raise AssertionError("the gradient of W is NaN, and gradcheck let it pass")


# Forward passes -----------------------------------------------------------------------------------


@invariant
def softmax_sums_to_1_over_the_last_axis() -> None:
    """Softmax sums to 1 over the last axis, however many axes there are."""
    for shape in ((4,), (3, 4), (2, 3, 4), (2, 2, 3, 4)):
        weights, _ = F.softmax(draw(*shape))
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-12)


@invariant
def attention_averages_over_the_keys() -> None:
    """Each query's weights over the keys sum to 1 and are not all the same."""
    weights, _ = F.averaging_weights(draw(2, 3, 5))
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-12)
    assert weights.std(axis=-1).min() > 1e-3, "scores differ and weights do not"


@invariant
def queries_ask_and_keys_answer() -> None:
    """Each query has one answer, and it changes with that query alone."""
    query, key, value = draw(4, 3), draw(4, 3, seed=1), draw(4, 2, seed=2)
    y, _ = F.scaled_dot_product_attention(query, key, value)
    query[1] += 1.0
    moved = np.abs(F.scaled_dot_product_attention(query, key, value)[0] - y).max(axis=-1)
    assert moved[1] > 1e-3, "the query changed and its answer did not"
    np.testing.assert_array_equal(moved[[0, 2, 3]], 0.0)
    assert F.scaled_dot_product_attention(query[:2], key, value)[0].shape == (2, 2)


@invariant
def attention_without_positions_knows_no_order() -> None:
    """Permuted tokens give the permuted result: attention knows no order."""
    mixer = MIXERS["attention"].build(MixerSettings(8, n_heads=2), seed=0, dtype="float64")
    x, order = draw(2, 5, 8), [3, 0, 4, 1, 2]
    np.testing.assert_allclose(mixer(x[:, order]), mixer(x)[:, order], rtol=1e-10)


@invariant
def causal_attention_does_not_look_ahead() -> None:
    """A causal mixer's token does not change when a later one does."""
    settings = MixerSettings(8, n_heads=2, max_len=5, causal=True)
    for name, mixer_class in MIXERS.items():
        if issubclass(mixer_class, WholeSequenceMixer) or name == "identity":
            continue  # they refuse causal=True, or mix nothing
        mixer = mixer_class.build(settings, seed=0, dtype="float64")
        x = draw(2, 5, 8)
        y = mixer(x)
        x[:, 3] += 1.0
        np.testing.assert_allclose(mixer(x)[:, :3], y[:, :3], rtol=1e-12, err_msg=name)


@invariant
def padding_changes_no_kept_token() -> None:
    """Neither padding nor what it holds reaches the tokens that are kept, in any mixer."""
    mask = np.arange(4) < np.array([4, 2, 1])[:, None]
    settings = MixerSettings(8, n_heads=2, max_len=4, padding="per_length")
    for name, mixer_class in MIXERS.items():
        mixer = mixer_class.build(settings, seed=0, dtype="float64")
        x = draw(3, 4, 8)
        y = mixer(x, mask)
        x[~mask] = 100.0
        np.testing.assert_allclose(mixer(x, mask)[mask], y[mask], rtol=1e-10, err_msg=name)
        alone = mixer(x[1:2, :2])[0]
        np.testing.assert_allclose(y[1, :2], alone, rtol=1e-10, err_msg=name)


@invariant
def padding_is_never_mixed_in_silence() -> None:
    """A mixer that sees every position refuses a padding mask until told what to do."""
    mask = np.array([[True, True, False]])
    for name in ("fourier", "hartley", "linear", "random"):
        mixer = MIXERS[name].build(MixerSettings(4, max_len=3), seed=0, dtype="float64")
        try:
            mixer(draw(1, 3, 4), mask)
        except ValueError:
            continue
        raise AssertionError(f"{name} mixed padding in and said nothing")


@invariant
def fourier_mixing_is_the_transform_of_its_own_length() -> None:
    """Fourier mixing is the discrete Fourier transform of the length that came in."""
    for length in (1, 3, 8):
        x = draw(2, length, 4)
        y, _ = F.fourier_mixing(x)
        np.testing.assert_allclose(y, np.fft.fft2(x).real, atol=1e-12)


@invariant
def dropout_does_nothing_at_evaluation() -> None:
    """At evaluation dropout is the identity, whatever its rate."""
    x = draw(3, 4)
    for rate in (0.1, 0.5, 0.9):
        np.testing.assert_array_equal(F.dropout(x, rate)[0], x)
    with_dropout = nf.EncoderConfig(d_model=8, n_heads=2, d_ff=8, max_len=4, dropout=0.5)
    without = nf.EncoderConfig(d_model=8, n_heads=2, d_ff=8, max_len=4, dropout=0.0)
    tokens = draw(2, 4, 8)
    np.testing.assert_array_equal(
        nf.Encoder(with_dropout, dtype="float64")(tokens),
        nf.Encoder(without, dtype="float64")(tokens),
    )


@invariant
def a_constant_row_is_finite() -> None:
    """Layer norm of a constant row is beta, not NaN."""
    with np.errstate(all="ignore"):
        y, _ = F.layer_norm(np.full((2, 4), 3.0), np.ones(4), np.full(4, 0.5))
    np.testing.assert_array_equal(y, 0.5)


@invariant
def a_large_mean_costs_no_digits() -> None:
    """Layer norm in float32 is right at a mean of 1e4."""
    exact = 1e4 + draw(8, 4)
    x, one, zero = exact.astype("float32"), np.ones(4, "float32"), np.zeros(4, "float32")
    with np.errstate(all="ignore"):
        y, _ = F.layer_norm(x, one, zero)
    expected, _ = F.layer_norm(exact, np.ones(4), np.zeros(4))
    np.testing.assert_allclose(y, expected, atol=1e-2)


@invariant
def gelu_is_the_one_that_was_asked_for() -> None:
    """gelu(approximate="none") is x Phi(x), and "tanh" is the other one."""
    x = np.linspace(-4.0, 4.0, 41)
    phi = np.array([0.5 * (1.0 + math.erf(v / math.sqrt(2.0))) for v in x])
    np.testing.assert_allclose(F.gelu(x)[0], x * phi, atol=1e-14)
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
    tanh_form = 0.5 * x * (1.0 + np.tanh(inner))
    np.testing.assert_allclose(F.gelu(x, approximate="tanh")[0], tanh_form, atol=1e-14)


# The encoder --------------------------------------------------------------------------------------


def small(**changes: object) -> nf.EncoderConfig:
    """Return a configuration that is small in every direction."""
    sizes = {"d_model": 8, "n_layers": 3, "n_heads": 2, "d_ff": 12, "max_len": 5}
    return nf.EncoderConfig(**(sizes | changes))


@invariant
def a_block_owns_two_norms() -> None:
    """The two norms of a block are two: each has a gamma and a beta of its own."""
    block = EncoderBlock(small(), seed=0)
    assert block.mixer_norm is not block.feed_forward_norm, "one norm stands at two places"
    assert sum("norm" in name for name in block.parameters()) == 4


@invariant
def layers_are_tied_only_when_asked() -> None:
    """An encoder of three layers has three times the parameters of one."""
    one = nf.Encoder(small(n_layers=1)).n_parameters()
    assert nf.Encoder(small()).n_parameters() == 3 * one, "layers share their weights"
    assert nf.Encoder(small(share_layers=True)).n_parameters() == one


@invariant
def each_residual_adds_its_own_input() -> None:
    """Both residual connections of a block add what went into that sublayer."""
    x = draw(2, 4, 8)
    block = EncoderBlock(small(norm="post"), seed=0, dtype="float64")
    h = block.mixer_norm(x + block.mixer(x))
    expected = block.feed_forward_norm(h + block.feed_forward(h))
    np.testing.assert_allclose(block(x), expected, rtol=1e-12)

    block = EncoderBlock(small(norm="pre"), seed=0, dtype="float64")
    h = x + block.mixer(block.mixer_norm(x))
    expected = h + block.feed_forward(block.feed_forward_norm(h))
    np.testing.assert_allclose(block(x), expected, rtol=1e-12)


# The optimizer ------------------------------------------------------------------------------------


@invariant
def adams_first_step_has_size_lr() -> None:
    """Adam's first step is lr long in every entry of every tensor."""
    gradients = {name: size * np.array([1.0, -2.0]) for name, size in (("a", 1e-2), ("b", 1e2))}
    parameters = {name: np.zeros(2) for name in gradients}
    nf.Adam(parameters, lr=0.01).step(gradients)
    for name, theta in parameters.items():
        np.testing.assert_allclose(theta, [-0.01, 0.01], rtol=1e-5, err_msg=name)


@invariant
def adam_counts_steps_and_not_tensors() -> None:
    """After n steps Adam and its warm-up are at n, however many tensors there are."""
    parameters = {name: np.zeros(2) for name in "abcde"}
    optimizer = nf.Adam(parameters, lr=1.0, schedule=warmup_inverse_sqrt(100))
    for _ in range(4):
        optimizer.step({name: np.ones(2) for name in parameters})
    assert optimizer.steps == 4, f"4 steps were taken and it counted {optimizer.steps}"
    np.testing.assert_allclose(optimizer.current_lr(), 5 / 100)
    for theta in parameters.values():
        np.testing.assert_array_equal(theta, parameters["a"])


# Files --------------------------------------------------------------------------------------------


@invariant
def weights_open_without_running_code() -> None:
    """A weights file is a header of plain JSON and numbers; opening it runs no code."""
    model = nf.Encoder(small(), seed=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        nf.save(model, path)
        data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    assert size < len(data), "it does not begin with the length of a header: a pickle?"
    header = json.loads(data[8 : 8 + size])
    stored = {name for name in header if name != "__metadata__"}
    assert stored >= set(model.parameters())
    assert {header[name]["dtype"] for name in stored} == {"F32"}


# Rules for the source: read, not run --------------------------------------------------------------

EDITED: dict[str, str] = {}
"""Source that stands in for a file's own, or beside the files: how a mutant edits a line."""


def sources(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield (path, syntax tree) of every Python file below these folders, with the edits."""
    files = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    }
    files |= {name: text for name, text in EDITED.items() if name.startswith(folders)}
    for name, text in sorted(files.items()):
        yield name, _parsed(text)


@functools.cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@invariant
def no_power_of_an_array() -> None:
    """In the mathematics, products are written out: x * x * x, not x**3."""
    for name, tree in sources("npformer/functional", "npformer/kernels"):
        for node in ast.walk(tree):
            power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
            called = isinstance(node, ast.Attribute) and node.attr in ("power", "float_power")
            assert not power, f"{name}, line {node.lineno}: {ast.unparse(node)}"
            assert not called, f"{name}, line {node.lineno}: {ast.unparse(node)}"


@invariant
def no_bare_except() -> None:
    """Every `except` says what it catches."""
    for name, tree in sources("npformer", "tests", "examples", "benchmarks"):
        for node in ast.walk(tree):
            bare = isinstance(node, ast.ExceptHandler) and node.type is None
            assert not bare, f"{name}, line {node.lineno}: a bare except"


@invariant
def cupy_is_imported_in_one_place() -> None:
    """Only backend.py imports CuPy, so one file decides what happens without a GPU."""
    for name, tree in sources("npformer"):
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            roots = {imported.partition(".")[0] for imported in names}
            allowed = name == "npformer/backend.py" or not roots & {"cupy", "cupyx"}
            assert allowed, f"{name}, line {node.lineno}: {ast.unparse(node)}"


@invariant
def gradients_are_checked_in_earnest() -> None:
    """No test of a gradient is skipped, expected to fail, or given a tolerance above 1e-6."""
    assert TOLERANCE <= 1e-6, "the usual tolerance is above 1e-6"
    for name, tree in sources("tests", "examples", "npformer"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node) == "gradcheck":
                for keyword in node.keywords:
                    if keyword.arg == "tolerance":
                        value = getattr(keyword.value, "value", math.inf)
                        assert value <= 1e-6, f"{name}, line {node.lineno}: {ast.unparse(node)}"
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                marks = {_last(d) for d in node.decorator_list} & {"skip", "skipif", "xfail"}
                checks = any(
                    isinstance(n, ast.Call) and _called(n) == "gradcheck" for n in ast.walk(node)
                )
                assert not (marks and checks), f"{name}, line {node.lineno}: {node.name}"


def _called(call: ast.Call) -> str:
    return _last(call.func)


def _last(node: ast.expr) -> str:
    """Return the last name of a dotted expression, called or not."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
