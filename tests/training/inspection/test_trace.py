import re
import weakref

import numpy as np
import pytest

import npformer as nf
from npformer.training.inspection.non_finite import first_non_finite
from npformer.training.inspection.trace_table import mean_and_spread, number

BLOCK = """
    .mixer .mixer.query .mixer.key .mixer.value .mixer.output .mixer_dropout .mixer_norm
    .feed_forward .feed_forward.expand .feed_forward.activation .feed_forward.contract
    .feed_forward_dropout .feed_forward_norm
"""
NAMES = ["", "embed", "embed.tokens", "embed.positions", "embed.dropout", "encoder"]
NAMES += [
    f"encoder.blocks.{i}{layer_name}" for i in range(2) for layer_name in ["", *BLOCK.split()]
]
NAMES += ["pool", "classify"]


@pytest.mark.parametrize("share_layers", [False, True])
def test_layers_are_named_in_the_order_in_which_they_act(small_model, ids, share_layers):
    model = small_model(share_layers=share_layers)
    assert [call.name for call in nf.trace(model, ids)] == NAMES


def test_outputs_are_those_of_the_layers(small_model, token_batch):
    model = small_model()
    ids, _, mask = token_batch
    calls = {call.name: call.output for call in nf.trace(model, ids, mask)}
    plain = nf.Context(mask=mask)
    outer = model.forward(ids, plain)[0]
    np.testing.assert_array_equal(calls[""], outer)
    np.testing.assert_allclose(outer, model(ids, mask), rtol=1e-12)
    np.testing.assert_array_equal(calls["encoder"], model.encoder.forward(calls["embed"], plain)[0])
    second = model.encoder.blocks[1].forward(calls["encoder.blocks.0"], plain)[0]
    np.testing.assert_array_equal(calls["encoder.blocks.1"], second)


class Prepared(nf.layers.Linear):
    """A user's layer with a method that is called as one of a model's."""

    def prepare(self):
        raise AssertionError("not for tracing")


@pytest.mark.parametrize("kind", [nf.layers.Linear, Prepared])
def test_any_layer_can_be_traced(rng, kind):
    (call,) = nf.trace(kind(3, 2, seed=0, dtype="float64"), rng.normal(size=(4, 3)))
    assert (call.name, call.output.shape) == ("", (4, 2))


def test_calling_a_traced_layer_afterwards_adds_no_call(small_model, ids):
    calls = nf.trace(small_model(), ids)
    before = len(calls)
    calls[0].layer(ids)
    assert len(calls) == before


@pytest.mark.parametrize("look", [nf.trace, nf.summary, nf.explain, first_non_finite])
def test_the_model_is_not_touched(small_model, ids, look):
    model = small_model(share_layers=True)
    before = {id(layer): dict(vars(layer)) for _, layer in model.layers()}
    weights = model.parameters().flat.copy()
    look(model, ids)
    assert {id(layer): dict(vars(layer)) for _, layer in model.layers()} == before
    assert all("forward" not in vars(layer) for _, layer in model.layers())
    np.testing.assert_array_equal(model.parameters().flat, weights)


LABELS = np.array([0, 2])


NUMBERS = np.array([[0.5, 1.0, 2.0], [0.0, 0.0, 1.0]])
MASK = np.arange(5) < np.array([[5], [3]])


@pytest.mark.parametrize(("changes", "labels", "mask"), [
    *(({"mixer": mixer, "norm": norm}, LABELS, None)
          for mixer in nf.MIXERS for norm in ("post", "pre")),
        ({"pooling": "none"}, np.array([[0, 1, 2, -1, 0], [1, 1, 2, 0, 0]]), MASK),
        ({"output": "sigmoid", "n_classes": 2}, np.array([0, 1]), MASK),
        ({"output": "mean_squared_error"}, NUMBERS, MASK),
])  # fmt: skip
def test_a_trace_computes_what_a_training_step_computes(small_model, ids, changes, labels, mask):
    model = small_model(**changes)
    trace = nf.trace(model, ids, mask, labels=labels)
    with nf.use_kernels(False):
        loss, gradients = model.loss_and_gradients(ids, labels, mask)
    assert trace.loss == loss
    assert list(trace.gradients) == list(gradients)
    for name, gradient in gradients.items():
        np.testing.assert_array_equal(trace.gradients[name], gradient)
        expected = np.sqrt((gradient**2).sum())
        assert trace.gradient_norms[name] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("share_layers", [False, True])
def test_each_forward_call_has_its_backward_call(small_model, ids, share_layers):
    trace = nf.trace(small_model(share_layers=share_layers), ids, labels=LABELS)
    calls = {call.name: call for call in trace}
    assert sorted(calls) == sorted(back.name for back in trace.backward)
    for back in trace.backward:
        call = calls[back.name]
        assert back.layer is call.layer
        assert back.dy.shape == call.output.shape
        assert back.dx is None or back.dx.shape == call.input.shape
    without = {back.name for back in trace.backward if back.dx is None}
    assert without == {"", "embed", "embed.tokens"}  # token ids have no gradient
    names = [back.name for back in trace.backward]
    assert names[:3] == ["", "classify", "pool"]
    assert names.index("encoder.blocks.1") < names.index("encoder.blocks.0")


def test_dy_starts_the_backward_pass_of_any_layer(rng):
    layer = nf.layers.Linear(3, 2, seed=0, dtype="float64")
    x, dy = rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
    trace = nf.trace(layer, x, dy=dy)
    np.testing.assert_array_equal(trace.gradients["weight"], x.T @ dy)
    np.testing.assert_array_equal(trace.backward[0].dx, dy @ layer.weight.value.T)
    assert trace.loss is None
    assert nf.trace(layer, x).gradients is None


def test_several_outputs_take_a_tuple_of_gradients(small_config, ids, rng):
    encoder = nf.TextEncoder(small_config(), 7, dtype="float64")
    hidden, pooled = encoder(ids)
    dy = rng.normal(size=hidden.shape), rng.normal(size=pooled.shape)
    trace = nf.trace(encoder, ids, dy=dy)
    gradients = nf.Gradients(encoder)
    _, cache = encoder.forward(ids, nf.Context())
    encoder.backward(dy, cache, gradients)
    for name, gradient in gradients.items():
        np.testing.assert_array_equal(trace.gradients[name], gradient)
    assert nf.trace(encoder, ids, dy=(dy[0], None)).backward[0].dy[1] is None
    assert "(2, 5, 8), (2, 8)" in str(trace).splitlines()[4]


def test_dropout_is_off(small_model, ids):
    model = small_model(dropout=0.5)
    trace = nf.trace(model, ids, labels=LABELS)
    np.testing.assert_allclose(trace[0].output, model(ids), rtol=1e-12)
    assert "dropout is off" in str(trace)


def test_bytes_of_a_linear_layer_are_those_of_x(rng):
    layer = nf.layers.Linear(3, 2, seed=0)
    x = rng.normal(size=(5, 4, 3)).astype("float32")
    assert nf.trace(layer, x).bytes_cached == 5 * 4 * 3 * 4
    assert nf.trace(layer, x[1:3]).bytes_cached == 2 * 4 * 3 * 4  # not those of the data set


def test_an_array_that_three_layers_cache_counts_once(rng):
    x = rng.normal(size=(2, 6, 8))
    trace = nf.trace(nf.mixers.Attention(8, 2, seed=0, dtype="float64"), x)
    by_name = {call.name: call.bytes_cached for call in trace}
    assert by_name["query"] == x.nbytes
    assert by_name["key"] == by_name["value"] == 0
    # Q / sqrt(d), K, V and the weights A: (2, heads, 6, 6); then the heads side by side for W_O.
    assert by_name[""] == 3 * x.nbytes + 2 * 2 * 6 * 6 * 8
    assert by_name["output"] == x.nbytes
    assert trace.bytes_cached == sum(by_name.values())


class Dropping(nf.Layer):
    """Runs a layer and drops its cache: it computes it again on the way back."""

    def __init__(self):
        self.inner = nf.layers.Linear(3, 3, seed=0, dtype="float64")

    def forward(self, x, context):
        return self.inner.forward(x + 0.0, context)[0] * 2.0, (x, context)

    def backward(self, dy, cache, gradients):
        x, context = cache
        _, again = self.inner.forward(x + 0.0, context)
        return self.inner.backward(dy * 2.0, again, gradients)


@pytest.fixture
def dropping_trace(rng):
    return nf.trace(Dropping(), rng.normal(size=(4, 3)), dy=np.ones((4, 3)))


def test_a_dropped_cache_is_not_counted(dropping_trace):
    assert [call.bytes_cached for call in dropping_trace] == [96, 0]


def test_a_recomputed_forward_pass_is_no_call(dropping_trace):
    assert [call.name for call in dropping_trace] == ["", "inner"]
    assert [call.name for call in dropping_trace.backward] == ["", "inner"]


def test_the_gradient_of_a_recomputed_layer_is_right(dropping_trace):
    expected = 2.0 * np.ones((4, 3)) @ dropping_trace[1].layer.weight.value.T
    np.testing.assert_allclose(dropping_trace.backward[1].dx, expected)


class Closing(nf.Layer):
    def forward(self, x, context):
        array = x + 1.0
        return x, [lambda: array, {"view": array[1:], "more": (array.T, None, 3, "words")}]


def test_an_array_in_a_cache_of_any_kind_is_counted_once(rng):
    assert nf.trace(Closing(), rng.normal(size=(4, 3))).bytes_cached == 4 * 3 * 8


def test_a_trace_keeps_no_cache(rng):
    caches = []

    class Keeping(nf.Layer):
        def forward(self, x, context):
            cache = np.ones(5)
            caches.append(weakref.ref(cache))
            return x, cache

    assert nf.trace(Keeping(), rng.normal(size=(4, 3)))[0].bytes_cached == 40
    assert caches[0]() is None


class Failing(nf.Layer):
    def forward(self, x, context):
        raise ArithmeticError("no")


class Trying(nf.Layer):
    def __init__(self):
        self.first = Failing()
        self.second = nf.layers.Linear(3, 2, seed=0, dtype="float64")

    def forward(self, x, context):
        try:
            return self.first.forward(x, context)
        except ArithmeticError:
            return self.second.forward(x, context)

    def backward(self, dy, cache, gradients):
        return self.second.backward(dy, cache, gradients)


def test_a_layer_that_fails_inside_another_has_no_output(rng):
    trace = nf.trace(Trying(), rng.normal(size=(4, 3)), dy=np.ones((4, 2)))
    assert [(c.name, c.output is None) for c in trace] == [("", 0), ("first", 1), ("second", 0)]
    assert re.search(r"^  first +Failing +none +- +- +0$", str(trace), re.M)
    assert [back.name for back in trace.backward] == ["", "second"]


def test_an_error_names_the_innermost_layer(small_model, ids):
    model = small_model()
    model.encoder.blocks[1].feed_forward = nf.layers.Sequential(nf.layers.Sequential(), Failing())
    with pytest.raises(ArithmeticError) as caught:
        nf.trace(model, ids)
    place = "encoder.blocks.1.feed_forward.chain.1 (Failing)"
    assert caught.value.__notes__ == [f"This was in {place}, whose input has shape (2, 5, 8)"]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"dy": np.ones((2, 3)), "labels": LABELS}, ValueError, "dy and labels are both given"),
        ({"dy": np.ones((2, 4))}, ValueError, r"dy has shape \(2, 4\); expected \(2, 3\)"),
        ({"dy": "ones"}, TypeError, "dy is a str; expected an array"),
        ({"labels": np.array([0, 3])}, ValueError, "y holds 3"),
        ({"labels": np.array([0])}, ValueError, r"y has shape \(1,\); expected \(2,\)"),
    ],
)
def test_wrong_starts_are_refused(small_model, ids, given, error, words):
    with pytest.raises(error, match=words):
        nf.trace(small_model(), ids, **given)


def test_labels_need_a_model_with_a_loss(small_model, small_config, ids, rng):
    with pytest.raises(TypeError, match=r"layer is an Encoder; expected an npformer\.Model"):
        nf.trace(small_model().encoder, rng.normal(size=(2, 5, 8)), labels=LABELS)
    encoder = nf.TextEncoder(small_config(), 7, dtype="float64")
    with pytest.raises(TypeError, match=r"expected a tuple of 2, .* \(2, 5, 8\), \(2, 8\)"):
        nf.trace(encoder, ids, dy=np.ones((2, 8)))


@pytest.fixture
def batch_trace(small_model, token_batch):
    ids, labels, mask = token_batch
    return nf.trace(small_model(), ids, mask, labels=labels)


def test_the_tables_have_a_line_for_each_call(batch_trace):
    forward, backward, parameters = batch_trace.tables()
    assert len(forward[1]) == len(batch_trace) + 1
    assert len(backward[1]) == len(batch_trace.backward) + 1
    assert [row[0] for row in parameters[1][1:]] == list(batch_trace.gradients)


def test_a_line_of_the_table_has_the_numbers_of_its_call(batch_trace, token_batch):
    _, _, mask = token_batch
    (_, rows), *_ = batch_trace.tables()
    names = [call.name for call in batch_trace]
    place = names.index("encoder.blocks.1.mixer")
    outputs = batch_trace[place].output[mask]  # without padding
    name, kind, shape, mean, spread, n_bytes = rows[place + 1]
    assert (name.strip(), kind, shape) == ("mixer", "Attention", "(8, 6, 8)")
    assert (mean, spread) == (f"{outputs.mean():#.3g}", f"{outputs.std():#.3g}")
    assert n_bytes == f"{batch_trace[place].bytes_cached:,}"


def test_a_trace_is_printed_with_its_totals(batch_trace):
    text = str(batch_trace)
    assert repr(batch_trace) == text
    assert f"{batch_trace.bytes_cached:,} bytes cached" in text
    assert f"loss {batch_trace.loss:.4f}" in text


def test_a_printed_trace_has_short_lines_without_arrays(batch_trace):
    text = str(batch_trace)
    assert max(map(len, text.splitlines())) < 120
    assert "array(" not in text


def test_calls_are_short_to_read(small_model, ids):
    trace = nf.trace(small_model(), ids, labels=LABELS)
    assert repr(trace[1]).startswith("Call(embed (InputEmbedding): (2, 5) -> (2, 5, 8), ")
    assert repr(trace.backward[1]) == "BackwardCall(classify (Linear): dy (2, 3) -> dx (2, 8))"
    assert max(len(repr(call)) for call in [*trace, *trace.backward]) < 150


def test_a_mean_that_is_nothing_but_rounding_is_zero():
    assert mean_and_spread(np.array([1.0, -1.0 + 1e-9])) == (0.0, pytest.approx(1.0))
    assert mean_and_spread(np.array([1.0, -1.0 + 1e-3]))[0] == pytest.approx(5e-4)
    assert np.isnan(mean_and_spread(np.array([np.inf, 1.0]))[1])
    mean, spread = mean_and_spread(np.array([1.0, 1.0j]))
    assert mean == 0.5 + 0.5j
    assert spread == pytest.approx(np.sqrt(0.5))


def test_notebooks_get_a_table_in_which_names_are_escaped(rng):
    class Sneaky(nf.Layer):
        def forward(self, x, context):
            return x, None

    Sneaky.__name__ = "<script>alert(1)</script>"
    html = nf.trace(Sneaky(), rng.normal(size=(2, 3)))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<tr>") == 2


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.0, "0"), (1.0, "1.00"), (-12.345, "-12.3"), (123.4, "123"), (2e-15, "2.00e-15")],
)
def test_numbers_have_three_digits(value, written):
    assert number(value) == written


class Adding(nf.layers.Sequential):
    def backward(self, dy, cache, gradients):
        dx = super().backward(dy, cache, gradients)
        dx += 1.0
        return dx


def test_what_a_layer_does_to_the_dx_it_got_changes_no_other_call(rng):
    inner = nf.layers.Linear(3, 2, seed=0, dtype="float64")
    dy = rng.normal(size=(4, 2))
    outer, of_inner = nf.trace(Adding(inner), rng.normal(size=(4, 3)), dy=dy).backward
    np.testing.assert_array_equal(of_inner.dx, dy @ inner.weight.value.T)
    np.testing.assert_array_equal(outer.dx, of_inner.dx + 1.0)
