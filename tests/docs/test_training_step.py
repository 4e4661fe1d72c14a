"""The page of one training step: its arrays are the model's, its pictures those of the arrays."""

import re

import numpy as np
import pytest

import npformer as nf
from docs.site.one_step import arrays, model_and_sample
from docs.site.pages import DOCS, ROOT, source
from docs.site.training_step import COMMENT, LEVELS, drawn, figure, number

TEXT = (DOCS / "training_step.md").read_text("utf-8")
ARRAYS = arrays()
BOXES = re.split(r"^### ", TEXT, flags=re.MULTILINE)[1:]
BLOCK = "encoder.blocks.0"

OUTPUTS = {
    "embed.tokens": "e",
    "embed.positions": "x",
    "encoder": "z",
    "pool": "pooled",
    f"{BLOCK}.mixer.query": "q",
    f"{BLOCK}.mixer.key": "k",
    f"{BLOCK}.mixer.value": "v",
    f"{BLOCK}.mixer": "mixed",
    f"{BLOCK}.mixer_norm": "h",
    f"{BLOCK}.feed_forward": "f",
    f"{BLOCK}.feed_forward.expand": "u",
    f"{BLOCK}.feed_forward.activation": "hidden",
    "classify": "logits",
}
"""What each layer returns on the way forward."""

INPUTS = {
    "classify": "dpooled",
    "pool": "dz",
    f"{BLOCK}.feed_forward_norm": "dt",
    "encoder": "dx",
    f"{BLOCK}.feed_forward.contract": "dhidden",
    f"{BLOCK}.feed_forward.activation": "du",
    f"{BLOCK}.feed_forward": "dh_through",
    f"{BLOCK}.mixer_norm": "ds",
    f"{BLOCK}.mixer.output": "dheads",
    f"{BLOCK}.mixer.value": "dx_v",
    f"{BLOCK}.mixer.key": "dx_k",
    f"{BLOCK}.mixer.query": "dx_q",
}
"""What each layer returns on the way back."""

SHORT = {
    "embed.tokens": "embed",
    f"{BLOCK}.mixer_norm": "1",
    f"{BLOCK}.feed_forward_norm": "2",
    f"{BLOCK}.mixer.query": "Q",
    f"{BLOCK}.mixer.key": "K",
    f"{BLOCK}.mixer.value": "V",
    f"{BLOCK}.mixer.output": "O",
    f"{BLOCK}.feed_forward.expand": "1",
    f"{BLOCK}.feed_forward.contract": "2",
    "classify": "classify",
}
PARAMETERS = {
    f"{layer}.{kind}": f"d{symbol}_{short}"
    for layer, short in SHORT.items()
    for kind, symbol in (
        [("gamma", "gamma"), ("beta", "beta")]
        if layer.endswith("norm")
        else [("weight", "W"), ("bias", "b")]
    )
}


@pytest.fixture(scope="module")
def traced():
    model, x, y = model_and_sample()
    return nf.trace(model, x, labels=y)


def close(name, expected):
    np.testing.assert_allclose(ARRAYS[name], expected, rtol=1e-11, atol=1e-14, err_msg=name)


def test_the_arrays_are_those_of_the_model(traced):
    forward = {call.name: call.output[0] for call in traced}
    backward = {call.name: call.dx[0] for call in traced.backward if call.dx is not None}
    for layer, name in OUTPUTS.items():
        close(name, forward[layer])
    for layer, name in INPUTS.items():
        close(name, backward[layer])
    close("loss", traced.loss)
    assert {*PARAMETERS} == {*traced.gradients}
    for parameter, name in PARAMETERS.items():
        close(name, traced.gradients[parameter])


def test_the_weights_of_attention_are_those_that_explain_returns():
    model, x, _ = model_and_sample()
    close("A", nf.explain(model, x)[0].matrices[0])


def test_the_step_is_adams():
    model, x, y = model_and_sample()
    before = model.parameters()["classify.weight"].copy()
    nf.Adam(model.parameters()).step(model.loss_and_gradients(x, y)[1])
    close("step", model.parameters()["classify.weight"] - before)
    m_hat, v_hat = ARRAYS["m"] / (1 - 0.9), ARRAYS["v_adam"] / (1 - 0.999)
    close("step", -0.001 * m_hat / (np.sqrt(v_hat) + 1e-8))
    close("loss_after", model.loss_and_gradients(x, y)[0])
    assert ARRAYS["loss_after"] < ARRAYS["loss"]


@pytest.mark.parametrize("name", ARRAYS)
def test_a_picture_has_the_numbers_of_its_array(name):
    array = ARRAYS[name]
    html = figure(name, ARRAYS[name])
    if array.ndim == 0:
        assert f">{number(array)}<" in html
    else:
        assert f"({', '.join(map(str, array.shape))}" in html
        if "0 up to rounding" in html:
            assert np.abs(array).max() < 1e-12
        else:
            for what, value in (("mean", array.mean()), ("spread", array.std())):
                printed = float(re.search(rf"{what} (\S+?)[,<]", html)[1])
                assert printed == pytest.approx(value, rel=6e-3, abs=1e-12)
            relative = array / np.abs(array).max()
            np.testing.assert_allclose(shares(html, array), relative, atol=0.51 / LEVELS)


def shares(html, array):
    """Return what the colours say: the share of the largest magnitude that each entry has."""
    matrices = np.zeros(array.shape if array.ndim == 3 else (1, *np.atleast_2d(array).shape))
    wide = float(re.search(r'class="frame" x="0" width="([\d.]+)"', html)[1]) / matrices.shape[2]
    for kind, opacity, cells in re.findall(r'class="(\w+)" fill-opacity="(\S+)" d="(.+?)"', html):
        for left, row in re.findall(r"M(\S+) (\d+)h", cells):
            head, column = divmod(round(float(left) / wide), matrices.shape[2] + 1)
            matrices[head, int(row), column] = float(opacity) * (1 if kind == "plus" else -1)
    return matrices.reshape(array.shape)


SHOWN = {name for match in COMMENT.finditer(TEXT) for name in match["names"].split()}
"""The arrays that boxes show."""


def test_every_box_shows_arrays():
    assert [int(box.partition(".")[0]) for box in BOXES] == [*range(1, 37)]
    assert all(len(COMMENT.findall(box)) == 1 for box in BOXES)


def test_every_array_is_shown():
    """But for the gradients of the biases of queries, keys and values, shown with their weights."""
    assert {*ARRAYS} - SHOWN == {"db_Q", "db_K", "db_V"}


def test_every_comment_becomes_pictures():
    page = drawn(TEXT)
    assert "<!-- arrays" not in page
    assert {*re.findall(r'data-array="(\w+)"', page)} == SHOWN


def test_the_lines_of_code_stand_in_the_functions_that_are_named():
    blocks = re.findall(r"\[`([\w.]+)`\]\(\.\./(\S+?)\).*?\n\n```py\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) == len(BOXES) - 1  # the image is computed by nothing
    for function, file, code in blocks:
        lines = {line.partition("  #")[0].strip() for line in source(file, [function]).splitlines()}
        assert {*code.splitlines()} <= lines, function
        assert (ROOT / file).is_file()


def test_an_array_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="no array is called Q; expected image, label"):
        drawn("<!-- arrays: q Q -->")
