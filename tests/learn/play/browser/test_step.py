"""The numbers on "See a step" are those of the Python interface."""

import re
from dataclasses import replace

import numpy as np
import pytest

import npformer as nf
from tests.learn.play.browser.handling import SMALL, number, start, until, wait_for

pytestmark = pytest.mark.browser

SAMPLE = 5

WRITTEN_OUT = ("query", "mixer", "mixer_norm", "activation", "classify", "tokens")
"""Layers whose lines of code are shown: they are pairs of functions."""


class Keeps(nf.Callback):
    """Keeps the optimizer of a training."""

    def on_end(self, state):
        self.optimizer = state.optimizer


@pytest.fixture(scope="module")
def trained():
    """Return the model that the page trains too, and its optimizer."""
    digits = nf.data.digits()
    config = nf.EncoderConfig(
        d_model=SMALL["d_model"],
        n_layers=1,
        n_heads=4,
        d_ff=SMALL["d_ff"],
        max_len=8,
        dropout=SMALL["dropout"],
        positions="learned",
    )
    model = nf.SequenceClassifier(config, 10, n_features=8, pooling="flatten", seed=0)
    keeps = Keeps()
    nf.fit(
        model,
        digits.train,
        validation=digits.validation,
        epochs=2,
        batch_size=32,
        lr=3e-3,
        seed=0,
        workers=1,
        callbacks=[keeps],
        progress=False,
    )
    return model, keeps.optimizer


@pytest.fixture(scope="module")
def sample():
    x, y = nf.data.digits().validation
    return x[SAMPLE : SAMPLE + 1], y[SAMPLE : SAMPLE + 1]


def look(page):
    start(page, "attention", epochs=2)
    wait_for(page, "finished")
    page.click("#tab-step")
    until(page, lambda: page.inner_text("#score") != "")  # the last answer about the first sample
    with page.expect_response("**/api/ask"):
        page.click(f"[data-sample='{SAMPLE}']")
    page.wait_for_timeout(100)  # the page draws the answer


def shown(figure):
    """Return shape, mean and spread that a tensor's card shows."""
    shape = [
        int(n) for n in figure.locator(".shape").inner_text().split(" \N{MULTIPLICATION SIGN} ")
    ]
    return shape, *(number(figure.locator(f".{name}").inner_text()) for name in ("mean", "spread"))


def same(figure, array):
    """Say whether a card shows this array, without an axis for a batch of one."""
    array = np.asarray(array, "float64")
    array = array[0] if array.ndim > 1 and len(array) == 1 else array
    shape, mean, spread = shown(figure)
    assert shape == [*array.shape]
    assert spread == pytest.approx(array.std(), rel=6e-4, abs=1e-12)
    assert mean == pytest.approx(array.mean(), rel=6e-4, abs=1e-5 * array.std() + 1e-12)


def test_each_tensor_on_the_way_is_that_of_trace(page, trained, sample):
    look(page)
    model, _ = trained
    x, y = sample
    trace = nf.trace(model, x, labels=y)
    assert number(page.inner_text("#loss")) == pytest.approx(trace.loss, rel=6e-4)
    forward = {call.name: call for call in trace}
    backward = {call.name: call for call in trace.backward}
    (explained,) = nf.explain(model, x)
    mixer = explained.name
    n_boxes = page.locator(".map button").count()
    shown_tensors = set()
    for k in range(n_boxes):
        page.click(f"[data-k='{k}']")
        name, title = page.inner_text(".detail .head code"), page.inner_text(".detail h3")
        of_inputs = page.locator(".flow .inputs .tensor")
        output = page.locator(".flow > .tensor").first
        way = page.inner_text(".detail .head small").split(",")[0]
        shown_tensors.add((name, title, way))
        if title == "A":
            same(output, explained.matrices)
        elif title == "Y":
            same(output, forward[f"{mixer}.output"].inputs()[0])
            same(of_inputs.first, explained.matrices)
            same(of_inputs.last, forward[f"{mixer}.value"].output)
        elif title == "dY":
            same(of_inputs, backward[f"{mixer}.output"].dx)
            same(page.locator(".flow > .tensor").last, backward[f"{mixer}.value"].dy)
        elif title == "S":
            same(of_inputs.first, forward[f"{mixer}.query"].output)
            same(of_inputs.last, forward[f"{mixer}.key"].output)
        elif title == "+":
            same(output, forward[name].inputs()[0])
        elif way == "forward":
            same(output, forward[name].output)
            if forward[name].inputs()[0].dtype.kind == "f":
                same(of_inputs.first, forward[name].inputs()[0])
        elif title not in ("dS", "dA", "d+"):
            same(of_inputs, backward[name].dy)
            if backward[name].dx is not None:
                same(output, backward[name].dx)
        for card in page.locator(".parameter").all():
            weight, gradient = card.locator(".tensor").all()
            parameter = f"{name}.{weight.get_attribute('data-name')}"
            same(weight, model.parameters()[parameter])
            same(gradient, trace.gradients[parameter])
        lines = page.locator(".detail pre")
        if name.endswith(WRITTEN_OUT):
            assert lines.inner_text().startswith("def "), (name, way)
    titles = {title for _, title, _ in shown_tensors}
    assert titles >= {*"QKVSAYUHF+", "dQ", "dS", "dA", "dY", "logits"}
    assert page.locator(".map path").count() > n_boxes  # branches and residual connections
    assert page.locator(".map path.over").count() == 4  # two residual connections, both ways


def test_the_slider_shows_an_earlier_step(page, trained, sample):
    look(page)
    assert page.inner_text(".travel output") == "80"
    late = number(page.inner_text("#loss"))
    page.focus("#at")
    page.keyboard.press("Home")
    until(page, lambda: page.inner_text(".travel output") == "0")
    config = trained[0].config
    new = nf.SequenceClassifier(config, 10, n_features=8, pooling="flatten", seed=0)
    early = number(page.inner_text("#loss"))
    assert early == pytest.approx(nf.trace(new, sample[0], labels=sample[1]).loss, rel=6e-4)
    assert early != late


def test_the_numbers_of_a_weight_are_right(page, trained, sample):
    look(page)
    model, adam = trained
    name = "encoder.blocks.0.mixer.query.weight"
    at = (3, 7)
    boxes = page.locator(".map button.forward", has_text=re.compile("^Q$"))
    boxes.first.click()
    canvas = page.locator("canvas.weights").first
    box = canvas.bounding_box()
    cell = box["width"] / SMALL["d_model"]
    canvas.click(position={"x": (at[1] + 0.5) * cell, "y": (at[0] + 0.5) * cell})
    until(page, lambda: page.locator("#gradient").count() == 1)
    assert page.inner_text("#weight code") == name
    assert [int(field.input_value()) for field in page.locator("#weight [type=number]").all()] == [
        *at
    ]
    precise = in_float64(model)
    x, y = sample
    _, gradients = precise.loss_and_gradients(x.astype("float64"), y)
    gradient = float(gradients[name][at])
    weight = precise.parameters()[name]
    assert number(page.inner_text("#value")) == pytest.approx(float(weight[at]), rel=1e-7)
    assert number(page.inner_text("#gradient")) == pytest.approx(gradient, rel=1e-6)
    assert number(page.inner_text("#complex")) == pytest.approx(gradient, rel=1e-6)
    slider = page.locator("#h")
    slider.focus()
    slider.press("Home")  # the smallest step: digits are lost
    small = number(page.inner_text("#difference"))
    slider.press("End")  # the largest: it misses the curve
    h = 0.1
    value = float(weight[at])
    weight[at] = value + h
    above = precise.loss_and_gradients(x.astype("float64"), y)[0]
    weight[at] = value - h
    below = precise.loss_and_gradients(x.astype("float64"), y)[0]
    large = number(page.inner_text("#difference"))
    assert large == pytest.approx((above - below) / (2 * h), rel=1e-6)
    assert abs(small - gradient) > 1e-8 * abs(gradient)
    m, v = (adam.state()[1][f"{of}.{name}"][at] for of in "mv")
    beta1, beta2 = adam.betas
    m, v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
    assert number(page.inner_text("#adam-m")) == pytest.approx(float(m), rel=6e-4)
    assert number(page.inner_text("#adam-v")) == pytest.approx(float(v), rel=6e-4)


def box(page, title):
    """Choose a box of the diagram."""
    page.locator(".map button", has_text=re.compile(f"^{title}$")).first.click()
    return page.locator(".flow > .tensor").first


def test_a_cell_under_the_pointer_says_where_it_is(page, trained, sample):
    look(page)
    card = box(page, "A")
    canvas = card.locator("canvas.heat:not(.scale)").nth(1)  # of the second head
    size = canvas.bounding_box()
    canvas.hover(position={"x": size["width"] * 4.5 / 8, "y": size["height"] * 2.5 / 8})
    words, value = card.locator("output").inner_text().split(" = ")
    assert words == "head 2, row 3, column 5: A[1, 2, 4]"
    (explained,) = nf.explain(trained[0], sample[0])
    assert number(value) == pytest.approx(explained.matrices[0, 1, 2, 4], rel=6e-4)


@pytest.mark.parametrize(
    ("title", "keys", "words"),
    [
        ("A", [], "head 1, row 1, column 1: A[0, 0, 0] = "),
        ("S", ["ArrowDown", "ArrowRight"], "head 1, row 2, column 2: S[0, 1, 1] = "),
        ("Q", ["ArrowRight"] * 9, "head 2, row 1, column 10: Q[0, 9] = "),
        ("U", ["ArrowDown"], "row 2, column 1: U[1, 0] = "),
        ("logits", ["ArrowRight"] * 3, "entry 4: logits[3] = "),
    ],
)
def test_a_cell_in_focus_says_where_it_is(page, title, keys, words):
    look(page)
    card = box(page, title)
    card.locator("canvas").first.focus()
    for key in keys:
        page.keyboard.press(key)
    assert card.locator("output").inner_text().startswith(words)
    assert card.locator(".cell:visible").count() == 1


def test_label_and_prediction_are_told_apart_without_colours(page, trained):
    look(page)
    x, y = nf.data.digits().validation
    predicted = trained[0].predict(x)
    buttons = page.locator(".samples button")
    for button in buttons.all():
        index = int(button.get_attribute("data-sample"))
        right = predicted[index] == y[index]
        label, said = button.locator("small").all_inner_texts()
        assert label == f"label {y[index]}"
        assert said == f"{'✓' if right else '✗'} says {predicted[index]}"
        assert ("is-wrong" in (button.get_attribute("class") or "")) == (not right)
        spoken = f"label {y[index]}, the model says {predicted[index]}, "
        assert button.get_attribute("aria-label").endswith(spoken + ("right" if right else "wrong"))


def test_predictions_are_those_of_the_step_that_is_shown(page, trained):
    look(page)
    page.focus("#at")
    page.keyboard.press("Home")
    until(page, lambda: page.inner_text(".travel output") == "0")
    config = trained[0].config
    new = nf.SequenceClassifier(config, 10, n_features=8, pooling="flatten", seed=0)
    x, _ = nf.data.digits().validation
    first = page.locator(".samples button").nth(1)
    index = int(first.get_attribute("data-sample"))
    expected = f"says {new.predict(x[index : index + 1])[0]}"
    until(page, lambda: expected in first.inner_text())


def test_a_narrow_screen_shows_the_sample_that_is_chosen(page):
    start(page, "attention", epochs=2)
    wait_for(page, "finished")
    page.set_viewport_size({"width": 390, "height": 900})
    page.click("#tab-step")
    chosen = page.locator(".samples [aria-pressed=true]")
    chosen.wait_for()
    place = chosen.bounding_box()
    assert 0 <= place["x"] <= 390 - place["width"]


@pytest.mark.parametrize("width", [390, 1280])
def test_the_diagram_says_that_it_goes_on(page, width):
    look(page)
    page.set_viewport_size({"width": width, "height": 900})
    page.locator(".map button").first.click()
    hint = page.locator(".goes-on:visible", has_text="The diagram goes on to the right →")
    hint.wait_for()
    arrow = page.get_by_role("button", name="show more of the diagram, to the right")
    for _ in range(30):
        if not arrow.is_visible():
            break
        before = page.locator(".map").evaluate("(map) => map.scrollLeft")
        arrow.focus()
        page.keyboard.press("Enter")
        until(page, lambda b=before: page.locator(".map").evaluate("(m) => m.scrollLeft") > b)
        page.wait_for_timeout(500)  # the movement is smooth
    page.locator(".goes-on:visible", has_text="The diagram goes on ← to the left;").wait_for()


def test_softmax_begins_with_its_formula(page):
    look(page)
    box(page, "A")
    assert "A_ij = exp(S_ij) / Σ_k exp(S_ik)" in page.inner_text(".arrow .formula")
    assert page.inner_text(".summary").startswith("y_i = exp(x_i) / sum_j exp(x_j)")


def in_float64(model):
    """Return the model again, with the same weights in float64, and without dropout."""
    config = replace(model.config, dropout=0.0)
    again = nf.SequenceClassifier(
        config, 10, n_features=8, pooling="flatten", seed=0, dtype="float64"
    )
    for name, array in again.parameters().items():
        array[...] = model.parameters()[name]
    return again
