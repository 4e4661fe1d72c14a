"""What kind of error a gradient has is said in words, or nothing is said."""

import numpy as np
import pytest

from npformer import functional as F
from npformer import layers as L
from npformer.proof.across_patterns import locate
from npformer.proof.evidence import Evidence
from npformer.proof.gradcheck import gradcheck
from npformer.proof.patterns import name_pattern, patterns_of_all
from npformer.proof.report import GradcheckError

X = np.random.default_rng(5).normal(size=(3, 2, 7))
"""Batch size, length and width differ."""

W = np.random.default_rng(6).normal(size=(7, 7))
B = np.random.default_rng(7).normal(size=7)


def patterns_of(target, *inputs, **options):
    """Return what gradcheck says of each wrong tensor."""
    with pytest.raises(GradcheckError) as caught:
        gradcheck(target, *inputs, **options)
    return {tensor.name: tensor.pattern for tensor in caught.value.report.tensors if tensor.pattern}


def linear(x, W, b):
    return x @ W + b, (x, W)


def linear_but(change):
    """Return a linear map whose backward pass is changed: change(dx, dW, db, dy, x)."""

    def backward(dy, cache):
        x, W = cache
        dW = np.einsum("bti,bto->io", x, dy)
        return change(dy @ W.T, dW, dy.sum((0, 1)), dy, x)

    return linear, backward


LINEAR_FAULTS = {
    "negative": (
        lambda dx, dW, db, dy, x: (dx, -dW, db),
        {"W": "backward is minus the derivative: its sign is wrong"},
    ),
    "times the batch size": (
        lambda dx, dW, db, dy, x: (dx, 3.0 * dW, db),
        {"W": "backward is 3 times the derivative; 3 is the batch size"},
    ),
    "divided by batch size and length": (
        lambda dx, dW, db, dy, x: (dx, dW / 6.0, db / 6.0),
        dict.fromkeys(
            "Wb", "backward is 1/6 of the derivative; 6 is the batch size times the length"
        ),
    ),
    "divided by a root": (
        lambda dx, dW, db, dy, x: (dx / np.sqrt(7.0), dW, db),
        {"x": "backward is 1/sqrt(7) of the derivative; 7 is the number of features"},
    ),
    "a factor without a reason": (
        lambda dx, dW, db, dy, x: (1.2345678 * dx, dW, db),
        {"x": "backward is 1.23457 times the derivative"},
    ),
    "transposed": (lambda dx, dW, db, dy, x: (dx, dW.T, db), {"W": "transposed"}),
    "transposed and divided": (
        lambda dx, dW, db, dy, x: (dx, dW.T / 3.0, db),
        {"W": "transposed; besides, backward is 1/3 of the derivative; 3 is the batch size"},
    ),
    "swapped axes": (
        lambda dx, dW, db, dy, x: (dx.swapaxes(0, 1).reshape(dx.shape), dW, db),
        {"x": "its axes are in the order (1, 0, 2), then reshaped so that it fits"},
    ),
    "never trained": (
        lambda dx, dW, db, dy, x: (dx, dW, 0.0 * db),
        {"b": "zero in every entry, though y depends on it: it is never trained"},
    ),
    "the last token": (
        lambda dx, dW, db, dy, x: (dx * [[0.0], [1.0]], dW, db),
        {"x": "only the last index of axis 1 has a gradient; the earlier ones get nothing"},
    ),
    "the first sample's bias": (
        lambda dx, dW, db, dy, x: (dx, dW, dy[0].sum(0)),
        {"b": "only the first sample (axis 0 of y) counts: its terms are assigned, and not added"},
    ),
    "the last token's weight": (
        lambda dx, dW, db, dy, x: (dx, x[:, -1].T @ dy[:, -1], db),
        {"W": "only the last token (axis 1 of y) counts: its terms are assigned, and not added"},
    ),
    "weighted samples": (
        lambda dx, dW, db, dy, x: (
            dx,
            dW,
            dy.sum(1).T @ [0.5, 1.0, 2.0],
        ),
        {"b": "the terms of each sample (axis 0 of y) are multiplied by 0.5, 1, 2"},
    ),
    "a residual too many": (
        lambda dx, dW, db, dy, x: (dx + dy, dW, db),
        {"x": "dy is added once too often"},
    ),
    "dy ignored": (
        lambda dx, dW, db, dy, x: (dx, np.einsum("bti,bto->io", x, np.ones_like(dy)), db),
        {"W": "dy is not multiplied by: it is right for a dy of ones alone"},
    ),
    "off by a constant": (
        lambda dx, dW, db, dy, x: (dx, dW + 0.5, db),
        {"W": "off by 0.5 in every entry"},
    ),
    "reversed": (
        lambda dx, dW, db, dy, x: (dx[:, :, ::-1], dW, db),
        {"x": "in reverse order along axis 2"},
    ),
    "a wrong row": (
        lambda dx, dW, db, dy, x: (dx, np.where(np.arange(7)[:, None] == 2, dW**3, dW), db),
        {"W": "wrong only at index 2 of axis 0, right elsewhere"},
    ),
    "a factor for each column": (
        lambda dx, dW, db, dy, x: (dx, dW * np.arange(2.0, 9.0), db),
        {"W": "multiplied by a number for each index of axis 1: 2, 3, 4, 5, 6, 7, ..."},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), LINEAR_FAULTS.values(), ids=LINEAR_FAULTS)
def test_the_kind_of_error_is_named(change, expected):
    assert patterns_of(linear_but(change), X, W, B) == expected


def test_right_gradients_have_no_name():
    report = gradcheck(linear_but(lambda dx, dW, db, dy, x: (dx, dW, db)), X, W, B)
    assert [tensor.pattern for tensor in report.tensors] == ["", "", ""]


def test_an_error_is_named_beside_a_gradient_that_is_none():
    gated = (lambda x, unused: (x**2, x)), lambda dy, x: (4.0 * dy * x, None)
    assert patterns_of(gated, X, B) == {
        "x": "backward is 2 times the derivative; 2 is the length, or it is a plain 2, as of a "
        "square: other sizes tell"
    }


def test_an_error_is_named_where_y_is_rounded_to_float32():
    rounded = (lambda x: ((x**2).astype("f4").astype("f8"), x)), lambda dy, x: 6.0 * dy * x
    assert patterns_of(rounded, X) == {
        "x": "backward is 3 times the derivative; 3 is the batch size"
    }


@pytest.mark.parametrize("seed", range(100, 120))
def test_a_random_error_has_no_name(seed):
    noise = np.random.default_rng([seed, 1])  # x is drawn with one of these seeds alone

    def change(dx, dW, db, dy, x):
        return tuple(g + noise.normal(size=g.shape) for g in (dx, dW, db))

    assert patterns_of(linear_but(change), X, W, B) == {}


@pytest.mark.parametrize("seed", range(20))
def test_a_random_error_of_few_entries_has_no_name(seed):
    noise = np.random.default_rng(seed)
    x, W, b = noise.normal(size=(2, 1, 2)), noise.normal(size=(2, 2)), noise.normal(size=2)

    def change(dx, dW, db, dy, x):
        return tuple(g + noise.normal(size=g.shape) for g in (dx, dW, db))

    assert patterns_of(linear_but(change), x, W, b) == {}


def residual(x, W):
    return x + np.tanh(x @ W), (x, W)


def residual_backward(dy, cache):
    x, W = cache
    dh = dy * (1.0 - np.tanh(x @ W) ** 2)
    return dh @ W.T, np.einsum("bti,bto->io", x, dh)


def test_a_missing_residual_is_named():
    words = "dy is missing from it, as if a residual connection had been left out"
    assert patterns_of((residual, residual_backward), X, W) == {"x": words}


def test_a_transposed_gradient_whose_reshape_fits_is_named():
    def backward(dy, cache):
        dx, dW = F.linear_backward(dy, cache)
        return dx, dW.T.reshape(dW.shape)

    x, W = (
        np.random.default_rng(0).normal(size=(5, 3)),
        np.random.default_rng(1).normal(size=(3, 4)),
    )
    assert patterns_of((F.linear, backward), x, W) == {
        "W": "transposed, then reshaped so that it fits"
    }


def test_gradients_that_are_swapped_are_named():
    def forward(x, W_q, W_k):
        return (x @ W_q) * np.tanh(x @ W_k), (x, W_q, W_k)

    def backward(dy, cache):
        x, W_q, W_k = cache
        k = np.tanh(x @ W_k)
        dq, dk = dy * k, dy * (x @ W_q) * (1.0 - k**2)
        return dq @ W_q.T + dk @ W_k.T, x.T @ dk, x.T @ dq

    x = X[:, 0]
    named = patterns_of((forward, backward), x, W, 0.5 * W.T)
    assert named == {
        "W_q": "it is the gradient of W_k; the two are swapped",
        "W_k": "it is the gradient of W_q; the two are swapped",
    }


IDS = np.array([[1, 2, 1], [4, 1, 2]])
"""1 and 2 occur more than once; 0 and 3 do not occur."""


def embedding_but(change):
    def backward(dy, ids):
        dE = np.zeros((5, 4))
        change(dE, ids, dy)
        return (dE,)

    return lambda ids, E: (E[ids], ids), backward


def average(dE, ids, dy):
    np.add.at(dE, ids, dy)
    dE /= np.maximum(np.bincount(ids.reshape(-1), minlength=5), 1)[:, None]


EMBEDDING_FAULTS = {
    "assigned": (
        lambda dE, ids, dy: dE.__setitem__(ids, dy),
        "wrong only in the rows of ids that occur more than once (indices 1 and 2): their terms "
        "are assigned, and not added",
    ),
    "averaged": (
        average,
        "the terms of an id that occurs more than once are averaged, and not added",
    ),
}


@pytest.mark.parametrize(("change", "words"), EMBEDDING_FAULTS.values(), ids=EMBEDDING_FAULTS)
def test_what_happens_to_repeated_ids_is_named(change, words):
    table = np.random.default_rng(0).normal(size=(5, 4))
    assert patterns_of(embedding_but(change), IDS, table) == {"E": words}


def test_a_table_whose_ids_all_repeat_is_not_taken_for_assigned_without_a_reason():
    """All rows are wrong, and all ids occur more than once."""
    ids = np.array([[0, 1, 0], [1, 0, 1]])

    def backward(dy, ids):
        dE = np.random.default_rng(3).normal(size=(2, 4))
        return (dE,)

    assert patterns_of((lambda ids, E: (E[ids], ids), backward), ids, np.ones((2, 4))) == {}


def test_ids_that_are_assigned_are_named_where_all_repeat():
    ids = np.array([[0, 1, 0], [1, 0, 1]])

    def backward(dy, ids):
        dE = np.zeros((2, 4))
        dE[ids] = dy
        return (dE,)

    (words,) = patterns_of((lambda ids, E: (E[ids], ids), backward), ids, np.ones((2, 4))).values()
    assert words.endswith("their terms are assigned, and not added")


@pytest.mark.parametrize("seed", range(40))
def test_an_error_of_random_entries_has_no_name(seed):
    """Of entries that are right by chance no row is made."""
    draw = np.random.default_rng([seed, 1])
    shape = tuple(draw.integers(1, 6, draw.integers(0, 4)))
    numeric = draw.normal(size=shape)
    wrong = draw.random(shape) < 0.6
    analytic = np.asarray(numeric + wrong * draw.normal(size=shape))
    inputs = {
        "x": draw.normal(size=shape),
        "ids": draw.integers(0, max(shape[0], 1) if shape else 1, 4),
        "mask": draw.random(shape[:1]) < 0.7,
    }
    evidence = Evidence(inputs=inputs, dy=draw.normal(size=shape), y=draw.normal(size=shape))
    assert name_pattern("W", analytic, numeric, evidence) == ""


def tied_but(look_up, projection):
    """Return an embedding whose table is also the projection, with a factor for each gradient."""

    def forward(ids, E):
        return np.tanh(E[ids]) @ E.T, (ids, E)

    def backward(dy, cache):
        ids, E = cache
        h = np.tanh(E[ids])
        dE = projection * np.einsum("bti,btd->id", dy, h)
        np.add.at(dE, ids, look_up * (dy @ E) * (1.0 - h**2))
        return (dE,)

    return forward, backward


@pytest.mark.parametrize(
    ("look_up", "projection", "words"),
    [
        (0.0, 1.0, "wrong only in the rows of ids that occur: of its two uses, the look-up has no"),
        (1.0, 0.0, "zero in the rows of ids that do not occur: of its two uses, the look-up alone"),
    ],
)
def test_a_lost_gradient_of_two_uses_is_named(look_up, projection, words):
    table = np.random.default_rng(0).normal(size=(5, 4))
    (named,) = patterns_of(tied_but(look_up, projection), IDS, table).values()
    assert named.startswith(words)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)
    return y, y.copy()


def test_the_diagonal_of_softmax_alone_is_named():
    diagonal = softmax, lambda dy, y: dy * y * (1.0 - y)
    words = "only the diagonal of softmax's Jacobian is there, dy y (1 - y)"
    assert patterns_of(diagonal, X[0]) == {"x": words}


def test_the_diagonal_of_another_jacobian_is_named():
    def forward(x):
        return x * x.sum(-1, keepdims=True), x

    diagonal = forward, lambda dy, x: dy * (x.sum(-1, keepdims=True) + x)
    words = "only the diagonal of the Jacobian is there: dy[i] times the derivative of y[i]"
    assert patterns_of(diagonal, X[0]) == {"x": words}


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (0.7 / 0.3, "1 / p stands for 1 / (1 - p)"),
        (0.7, "1 / (1 - p) is missing"),
        (1.0 / 0.7, "there once too often"),
    ],
)
def test_a_factor_of_dropout_is_explained(factor, words):
    evidence = Evidence(inputs={"x": X}, numbers={"p": 0.3})
    named = name_pattern("x", factor * X, X, evidence)
    assert words in named


def test_dropout_of_a_layer_is_asked_for_its_p():
    class Wrong(L.Dropout):
        def backward(self, dy, cache, gradients):
            return super().backward(dy, cache, gradients) * (1.0 - self.rate) / self.rate

    (words,) = patterns_of(Wrong(0.2), X, training=True).values()
    assert words.endswith("that is (1 - p) / p for rate = 0.2, so 1 / p stands for 1 / (1 - p)")


def test_a_factor_that_is_missing_is_named():
    gamma = np.random.default_rng(2).normal(size=7)
    scaled = (
        (lambda gamma, x: (gamma * x, (gamma, x))),
        lambda dy, cache: ((dy * cache[1]).sum(0), dy),
    )
    assert patterns_of(scaled, gamma, X[:, 0]) == {"x": "the factor gamma is missing"}


GAMMA = np.random.default_rng(4).uniform(0.5, 2.0, 7)


class NormWithoutGamma(L.LayerNorm):
    def backward(self, dy, cache, gradients):
        super().backward(dy, cache, gradients)
        return super().backward(dy / self.gamma.value, cache, type(gradients)(self))


def test_a_norm_that_forgets_gamma_is_named():
    layer = NormWithoutGamma(7, dtype="float64")
    layer.gamma.value[...] = GAMMA
    assert patterns_of(layer, X) == {"x": "dy is not multiplied by gamma"}


def test_a_mean_over_the_labels_that_count_is_named():
    labels = np.array([2, -1, 0, 1])

    def backward(dy, cache):
        return F.softmax_cross_entropy_backward(dy, cache) / 3.0

    words = "backward is 1/3 of the derivative; 3 is the number of ids that are not negative"
    logits = np.random.default_rng(0).normal(size=(4, 5))
    named = patterns_of((F.softmax_cross_entropy, backward), logits, labels)
    assert named == {"logits": words}


def test_a_sum_over_a_wrong_axis_is_named():
    square = np.random.default_rng(3).normal(size=(7, 7))
    wrong = (lambda x, b: (x + b, None)), lambda dy, _: (dy, dy.sum(1))
    assert patterns_of(wrong, square, B) == {"b": "summed over axis 1 of y, not over axis 0"}


def test_what_was_not_subtracted_is_named():
    def center(x):
        return x - x.mean(-1, keepdims=True), None

    wrong = center, lambda dy, _: dy
    assert patterns_of(wrong, X) == {"x": "its mean over axis 2 is not subtracted"}


def test_half_of_softmaxs_sum_is_named():
    """Without any of it, only the diagonal of the Jacobian is there, or y dy."""

    def backward(dy, y):
        return y * (dy - 0.5 * (dy * y).sum(-1, keepdims=True))

    words = "a multiple of y in each row is too much, as where softmax's sum of dy y is missing"
    assert patterns_of((softmax, backward), X[0]) == {"x": words}


def test_a_gradient_divided_by_how_many_tokens_are_kept_is_named():
    mask = np.array([[True, True, True, False], [True, False, False, False], [True] * 4])
    x = np.random.default_rng(0).normal(size=(3, 4, 5))

    def forward(x, mask):
        return (x**3 * mask[..., None]).sum(1), (x, mask)

    def backward(dy, cache):
        x, mask = cache
        return 3.0 * x**2 * mask[..., None] * dy[:, None] / mask.sum(1)[:, None, None]

    words = "each sample is divided by how many tokens mask keeps of it"
    assert patterns_of((forward, backward), x, mask) == {"x": words}


def test_the_factor_of_a_large_tensor_is_named():
    tripled = (lambda x: (x**2, x.copy())), lambda dy, x: 6.0 * dy * x
    x = np.random.default_rng(0).normal(size=(3, 20, 100))
    (words,) = patterns_of(tripled, x).values()
    assert words == "backward is 3 times the derivative; 3 is the batch size"


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (-1.0, "minus the derivative"),
        (2.0, "2 times the derivative; 2 is the root of 4, the batch size"),
        (0.25, "1/4 of"),
        (1.7, ""),
    ],
)
def test_the_factor_of_a_single_entry_is_named_if_it_is_known(factor, words):
    one = np.array([0.8])
    named = name_pattern("scale", factor * one, one, Evidence(inputs={"x": np.ones((4, 3))}))
    assert (words in named) if words else (named == "")


def test_entries_that_are_unknown_do_not_hide_a_pattern():
    numeric = np.where(np.arange(49).reshape(7, 7) % 6 == 0, np.nan, W)
    assert name_pattern("W", W.T, numeric) == "transposed"


def test_gradients_of_two_shapes_are_refused():
    with pytest.raises(ValueError, match=r"shapes \(7,\) and \(7, 7\); expected the same shape"):
        name_pattern("W", B, W)


def test_several_tensors_are_named_at_once():
    other = np.random.default_rng(9).normal(size=W.shape)
    gradients = {"a": (W, other), "b": (other, W), "c": (X, X)}
    kinds = {name: pattern.kind for name, pattern in patterns_of_all(gradients).items()}
    assert kinds == {"a": "swapped", "b": "swapped"}


def block(x, W1, b1, W2, b2):
    """Return h + tanh(h W2) + b2 with h = tanh(x W1) + b1."""
    h = np.tanh(x @ W1) + b1
    return h + np.tanh(h @ W2) + b2, (x, W1, b1, W2)


def block_but(residual):
    """Return a block whose backward pass multiplies the residual's gradient by a number."""

    def backward(dy, cache):
        x, W1, b1, W2 = cache
        t = np.tanh(x @ W1)
        h = t + b1
        df = dy * (1.0 - np.tanh(h @ W2) ** 2)
        dh = residual * dy + df @ W2.T
        dt = dh * (1.0 - t**2)
        return dt @ W1.T, x.T @ dt, dh.sum(0), h.T @ df, dy.sum(0)

    return block, backward


@pytest.mark.parametrize(
    ("residual", "words"),
    [(0.0, "is missing from it, as if a res"), (2.0, "is added once too often")],
)
def test_a_residual_inside_a_block_is_found_by_the_biases(residual, words):
    named = patterns_of(block_but(residual), X[:, 0], W, B, W.T, B[::-1].copy())
    assert list(named) == ["b1"]
    assert named["b1"].startswith(f"the sum of dy {words}")


@pytest.mark.parametrize(
    ("residual", "words"),
    [(0.0, "is missing from it, as if a res"), (2.0, "is added to it: that of a residual")],
)
def test_a_residual_before_a_last_step_is_found_by_the_biases(residual, words):
    """Behind tanh dy is no longer the gradient of b2."""
    forward, backward = block_but(residual)

    def squashed(x, W1, b1, W2, b2):
        s, cache = forward(x, W1, b1, W2, b2)
        return np.tanh(s), (s, cache)

    def squashed_backward(dy, cache):
        s, cache = cache
        return backward(dy * (1.0 - np.tanh(s) ** 2), cache)

    pair = squashed, squashed_backward
    named = patterns_of(pair, X[:, 0], W, B, W.T, B[::-1].copy())
    assert list(named) == ["b1"]
    assert named["b1"].startswith(f"the gradient of b2 {words}")


def test_a_residual_inside_a_block_is_found_by_the_sum_of_dy():
    """Without a bias behind it."""
    forward, backward = block_but(0.0)
    b2 = np.zeros(7)
    without_b2 = (
        lambda x, W1, b1, W2: forward(x, W1, b1, W2, b2),
        lambda dy, cache: backward(dy, cache)[:-1],
    )
    words = "the sum of dy is missing from it, as if a residual connection had been left out"
    assert patterns_of(without_b2, X[:, 0], W, B, W.T) == {"b1": words}


def test_the_place_of_an_error_is_said():
    with pytest.raises(GradcheckError) as caught:
        gradcheck(block_but(0.0), X[:, 0], W, B, W.T, B[::-1].copy())
    place = "going back, the gradients are right as far as W2, and wrong from b1 on"
    assert place in str(caught.value)


def chain(*matrices):
    """Return a product of matrices."""
    return np.linalg.multi_dot(matrices), matrices


def doubled_chain(dy, matrices):
    """Return the gradients of all matrices, of the first four twice as large."""
    gradients = []
    for i in range(len(matrices)):
        before = np.linalg.multi_dot([np.eye(7), np.eye(7), *matrices[:i]])
        after = np.linalg.multi_dot([np.eye(7), np.eye(7), *matrices[i + 1 :]])
        gradients.append((2.0 if i < 4 else 1.0) * before.T @ dy @ after.T)
    return tuple(gradients)


def test_many_tensors_with_the_same_error_share_a_line():
    def forward(a, b, c, d, e):
        return chain(a, b, c, d, e)

    with pytest.raises(GradcheckError) as caught:
        gradcheck((forward, doubled_chain), *np.random.default_rng(0).normal(size=(5, 7, 7)))
    text = str(caught.value)
    assert "\n  a and 3 others: backward is 2 times the derivative\n" in text
    assert "right as far as e, and wrong from d on" in text


@pytest.mark.parametrize(
    ("names", "wrong", "said"),
    [
        ("xabc", "xa", "right as far as b, and wrong from a on"),
        ("xabc", "xab", "right as far as c, and wrong from b on"),
        ("xabc", "xb", "beside x, the gradient of b alone is wrong"),
        ("xabc", "x", "the gradient of x alone is wrong"),
        ("xabc", "ab", ""),
        ("xabc", "xac", ""),
        ("xabc", "xabc", ""),
        ("x", "x", ""),
    ],
)
def test_the_place_is_said_where_the_names_tell(names, wrong, said):
    place = locate(names, wrong)
    assert said in place
    assert bool(said) == bool(place)


def test_the_root_of_the_width_of_a_head_is_named():
    evidence = Evidence(inputs={"x": np.ones((5, 3, 12))}, numbers={"n_heads": 2})
    words = "backward is sqrt(6) times the derivative; 6 is the number of features divided by"
    assert name_pattern("W", np.sqrt(6.0) * W, W, evidence).startswith(words)


def test_a_saved_output_is_named():
    saves_its_output = (lambda x: (np.sin(x), np.sin(x))), lambda dy, y: dy * np.cos(y)
    words = "right at y in place of x: the forward pass saved its output for its input"
    assert patterns_of(saves_its_output, X) == {"x": words}


def test_a_tiny_factor_is_named_by_the_complex_step():
    tiny = (lambda x: (x**2, x)), lambda dy, x: 2.0 * (1.0 + 1e-9) * dy * x
    assert patterns_of(tiny, X) == {"x": "backward is 1 + 1e-09 times the derivative"}


LABELS = np.array([[1, 0], [3, 2], [6, 6]])


def loss_but(forward_epsilon, backward_epsilon):
    """Return the mean of -log(p + eps) over labels, with another eps in its gradient."""

    def forward(logits, labels):
        p = softmax(logits)[0]
        right = np.take_along_axis(p, labels[..., None], -1)
        return -np.log(right + forward_epsilon).mean(), (p, labels)

    def backward(dy, cache):
        p, labels = cache
        right = np.take_along_axis(p, labels[..., None], -1)
        one_hot = np.eye(p.shape[-1])[labels]
        return (dy * (p - one_hot) * right / (right + backward_epsilon) / labels.size,)

    return forward, backward


@pytest.mark.parametrize(
    ("epsilons", "words"),
    [
        ((1e-3, 0.0), "that of log(p), though the loss has log(p + eps) with eps = 0.001"),
        ((0.0, 1e-3), "that of log(p + eps) with eps = 0.001, though the loss has log(p)"),
        ((1e-8, 0.0), "that of log(p), though the loss has log(p + eps) with eps = 1e-08"),
    ],
)
def test_an_epsilon_of_a_loss_is_named(epsilons, words):
    assert patterns_of(loss_but(*epsilons), X, LABELS) == {"logits": words}


def test_an_epsilon_beside_probabilities_is_named():
    p = softmax(X)[0]
    target = np.eye(7)[LABELS]
    loss = (
        (lambda p: (-(target * np.log(p + 1e-4)).sum(-1), p)),
        lambda dy, p: -dy[..., None] * target / p,
    )
    words = "that of log(p), though the loss has log(p + eps) with eps = 0.0001"
    assert patterns_of(loss, p) == {"p": words}
