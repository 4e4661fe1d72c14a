"""Pairs of functions whose weights come in dictionaries or lists."""

import numpy as np
import pytest

import npformer as nf

RNG = np.random.default_rng(0)
X, H = RNG.normal(size=(2, 3)), RNG.normal(size=(2, 4))
WEIGHTS = {"W": RNG.normal(size=(3, 4)), "U": RNG.normal(size=(4, 4)), "b": RNG.normal(size=4)}


def cell(x, h, w):
    """Return tanh(x W + h U + b)."""
    h_next = np.tanh(x @ w["W"] + h @ w["U"] + w["b"])
    return h_next, (x, h, w, h_next)


def gradients_of_cell(dh_next, cache):
    x, h, w, h_next = cache
    da = dh_next * (1.0 - h_next**2)
    return da @ w["W"].T, da @ w["U"].T, {"W": x.T @ da, "U": h.T @ da, "b": da.sum(axis=0)}


def cell_backward(dh_next, cache):
    return gradients_of_cell(dh_next, cache)


def names(report):
    return [tensor.name for tensor in report.tensors]


def test_each_array_of_a_dictionary_is_checked_under_its_key():
    report = nf.gradcheck((cell, cell_backward), X, H, WEIGHTS)
    assert names(report) == ["x", "h", "w['W']", "w['U']", "w['b']"]


def test_a_wrong_gradient_in_a_dictionary_is_found():
    def backward(dh_next, cache):
        dx, dh, dw = gradients_of_cell(dh_next, cache)
        return dx, dh, dw | {"U": 2.0 * dw["U"]}

    with pytest.raises(nf.GradcheckError) as caught:
        nf.gradcheck((cell, backward), X, H, WEIGHTS)
    wrong = [t.name for t in caught.value.report.tensors if not t.passes(1e-6, None)]
    assert wrong == ["w['U']"]


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda dx, dh, dw: (dx, dh, {f"d{k}": g for k, g in dw.items()}), id="d"),
        pytest.param(lambda dx, dh, dw: {"dx": dx, "dh": dh, "dw": dw}, id="a dictionary of all"),
        pytest.param(lambda dx, dh, dw: {"x": dx, "h": dh, **dw}, id="one flat dictionary"),
        pytest.param(lambda dx, dh, dw: (dx, dh, *dw.values()), id="one flat tuple"),
    ],
)
def test_gradients_may_come_in_other_forms(form):
    def backward(dh_next, cache):
        return form(*gradients_of_cell(dh_next, cache))

    assert len(names(nf.gradcheck((cell, backward), X, H, WEIGHTS))) == 5


def test_weights_may_be_lists_of_dictionaries():
    def forward(x, layers):
        caches = []
        for layer in layers:
            caches.append((x, layer["W"]))
            x = x @ layer["W"]
        return x, caches

    def backward(dy, caches):
        gradients = []
        for x, W in reversed(caches):
            gradients.insert(0, {"W": x.T @ dy})
            dy = dy @ W.T
        return dy, gradients

    layers = [{"W": RNG.normal(size=(3, 5)), "name": "first"}, {"W": RNG.normal(size=(5, 2))}]
    report = nf.gradcheck((forward, backward), X, layers)
    assert names(report) == ["x", "layers[0]['W']", "layers[1]['W']"]


def test_weights_alone_may_be_differentiated():
    def backward(dh_next, cache):
        _, _, dw = gradients_of_cell(dh_next, cache)
        return dw

    report = nf.gradcheck((cell, backward), X, H, WEIGHTS, wrt=["w"])
    assert names(report) == ["w['W']", "w['U']", "w['b']"]


def test_a_backward_function_may_take_the_dictionary_again():
    def forward(x, w):
        return x @ w["W"], x

    def backward(dy, x, w):
        return dy @ w["W"].T, {"W": x.T @ dy}

    assert names(nf.gradcheck((forward, backward), X, {"W": WEIGHTS["W"]})) == ["x", "w['W']"]


def test_a_gradient_that_is_left_out_of_a_dictionary_is_named():
    def backward(dh_next, cache):
        dx, dh, dw = gradients_of_cell(dh_next, cache)
        del dw["b"]
        return dx, dh, dw

    with pytest.raises(TypeError, match=r"expected \"dw\['b'\]\", too"):
        nf.gradcheck((cell, backward), X, H, WEIGHTS)


def test_a_number_in_a_dictionary_names_a_factor():
    """Dropout whose mask is divided by the probability to keep, forward once and back twice."""

    def forward(x, options):
        mask = (np.random.default_rng(3).random(x.shape) < options["p"]) / options["p"]
        return x * mask, (mask, options)

    def backward(dy, cache):
        mask, options = cache
        return dy * mask / options["p"]

    with pytest.raises(
        nf.GradcheckError, match=r"1 / p for p = 0\.7, a division that is there once"
    ):
        nf.gradcheck((forward, backward), X, {"p": 0.7, "mode": "train"})
