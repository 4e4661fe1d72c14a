"""Answers about a model of digits, of sentences, of a text and of pairs."""

import base64
import copy
import dataclasses
import itertools
import types

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.learn.play import state
from npformer.learn.play.questions import ask
from npformer.learn.play.questions.sources import lines_of
from tests.learn.play.questions.conftest import begun


def array(tensor):
    data = np.frombuffer(base64.b64decode(tensor["data"]), "<f4")
    return data.reshape([min(n, 64) for n in tensor["shape"]])


def test_samples_are_those_to_validate_on(digits):
    answer = ask(digits, "samples", start=3, n=2)
    x, y = nf.data.digits().validation
    assert answer["total"] == len(x)
    assert [sample["index"] for sample in answer["samples"]] == [3, 4]
    assert [sample["label"] for sample in answer["samples"]] == [str(y[3]), str(y[4])]
    np.testing.assert_array_equal(array(answer["samples"][0]["image"]), x[3])
    again = ask(digits, "samples", start=len(x) - 1, n=2)["samples"]
    assert [sample["index"] for sample in again] == [len(x) - 1, 0]


def test_a_step_is_that_of_trace(digits):
    answer = ask(digits, "step", sample=5)
    x, y = (values[5:6] for values in nf.data.digits().validation)
    trace = nf.trace(digits.training.model, x, labels=y)
    assert answer["loss"] == trace.loss
    assert answer["step"] == digits.training.step
    outputs = {call.name: call.output for call in trace}
    dy = {call.name: call.dy for call in trace.backward}
    dx = {call.name: call.dx for call in trace.backward}
    explained = {entry.name: entry.matrices for entry in nf.explain(digits.training.model, x)}
    for box in answer["forward"]:
        matrices = outputs[box["layer"]]
        if box["title"] == "A":
            matrices = explained[box["layer"]]
        elif box["title"] in ("S", "Y", "+"):
            continue  # they have a test of their own
        np.testing.assert_allclose(array(box["output"]), matrices[0].real[..., :64], 1e-5, 1e-7)
        mean = matrices.mean(dtype="float64")  # that of float32 rounds as the kernel of BLAS does
        assert box["output"]["mean"] == pytest.approx(mean, abs=1e-7)
        for entry in box["parameters"]:
            gradient = trace.gradients[entry["name"]]
            np.testing.assert_array_equal(
                array(entry["gradient"]), gradient[(slice(64),) * gradient.ndim]
            )
    for box in answer["backward"]:
        if box["title"] not in ("dS", "dA", "dY", "d+"):
            np.testing.assert_array_equal(array(box["output"]), dy[box["layer"]][0][..., :64])
            if dx[box["layer"]] is not None:
                first = box["results"][0]
                np.testing.assert_array_equal(array(first), dx[box["layer"]][0][..., :64])
    shapes = {box["node"]: box["output"]["shape"] for box in answer["forward"]}
    assert {box["node"]: box["output"]["shape"] for box in answer["backward"]} == shapes
    named = [p["name"] for box in answer["forward"] for p in box["parameters"]]
    assert sorted(named) == sorted(digits.training.model.parameters())  # every weight has a box
    logits = digits.training.model(x)
    p = np.sort(F.softmax(logits)[0][0])[::-1]
    np.testing.assert_allclose([entry["p"] for entry in answer["prediction"]], p, rtol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_arrays_inside_attention_are_those_of_the_formulas(norm):
    """Each is computed anew from its neighbours, and the gradients lead to those of the trace."""
    now = begun("digits", 8, mixers=["attention"], norm=norm)
    answer = ask(now, "step", sample=5)
    y = {box["title"]: array(box["output"]).astype("float64") for box in answer["forward"]}
    dy = {box["title"]: array(box["output"]).astype("float64") for box in answer["backward"]}
    Q, K, V, dY = (F.split_heads(entry[None], 2)[0] for entry in (y["Q"], y["K"], y["V"], dy["dY"]))
    S, scores = F.attention_scores(Q, K)
    A, weights = F.softmax(S)
    Y = F.merge_heads((A @ V)[None])[0]
    for name, right in {"S": S, "A": A, "Y": Y}.items():
        np.testing.assert_allclose(y[name], right, 1e-4, 1e-5, err_msg=name)
    dA = dY @ V.swapaxes(-1, -2)
    dS = F.softmax_backward(dA, weights)
    dQ, dK = F.attention_scores_backward(dS, scores)
    dV = A.swapaxes(-1, -2) @ dY
    merged = {f"d{n}": F.merge_heads(g[None])[0] for n, g in zip("QKV", (dQ, dK, dV), strict=True)}
    for name, right in {"dA": dA, "dS": dS, **merged}.items():
        np.testing.assert_allclose(dy[name], right, 1e-3, 1e-6, err_msg=name)
    inputs = {box["title"]: [entry["name"] for entry in box["inputs"]] for box in answer["forward"]}
    assert (inputs["S"], inputs["A"], inputs["Y"]) == (["Q", "K"], ["S"], ["A", "V"])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_each_residual_connection_joins_what_it_adds(norm):
    now = begun("digits", 2, mixers=["attention", "fourier"], norm=norm)
    boxes = ask(now, "step", sample=1)["forward"]
    sums = [box for box in boxes if box["title"] == "+"]
    assert len(sums) == 4  # two in each of two blocks
    for box in sums:
        x, f = (array(boxes[k]["output"]) for k in box["before"])
        np.testing.assert_array_equal(array(box["output"]), x + f)
        assert (box["function"], box["source"]) == ("forward", "npformer/models/block.py")
    for box in boxes[1:]:
        assert box["before"]


@pytest.fixture
def long_run(monkeypatch):
    """Return a run that kept its weights 58 times, and a bias at each of its steps."""
    monkeypatch.setattr(state, "MOST_KEPT", 8)
    now = begun("digits", 1)
    begin = now.training
    now.training = types.SimpleNamespace(model=begin.model, optimizer=begin.optimizer)
    biases = {}
    for step in range(2, 60):
        now.training.step = step
        for value in now.training.model.parameters().values():
            value += 0.001
        now.keep()
        biases[step] = now.training.model.parameters()["classify.bias"].copy()
        assert len(now.kept) <= 8
    return now, biases


def test_earlier_weights_are_kept_at_equal_distances(long_run):
    now, biases = long_run
    steps = now.steps()
    assert steps[-1] == 59
    assert {b - a for a, b in itertools.pairwise(steps[:-1])} == {now.every}
    for step in steps[:-1]:
        bias = now.plain_at(step).parameters()["classify.bias"]
        np.testing.assert_array_equal(bias, biases[step])


def test_an_earlier_step_is_computed_with_its_weights(long_run):
    now, _ = long_run
    first = now.steps()[0]
    old, new = (ask(now, "step", sample=0, at=at) for at in (first, None))
    assert (old["step"], new["step"]) == (first, 59)
    assert old["loss"] != new["loss"]


def test_an_earlier_weight_is_shown_without_moments(long_run):
    now, biases = long_run
    first = now.steps()[0]
    weight = ask(now, "weight", at=first, name="classify.bias", index=[0])
    assert weight["value"] == biases[first][0]
    assert weight["adam"] is None


def test_a_step_that_was_not_kept_is_refused(long_run):
    now, _ = long_run
    with pytest.raises(ValueError, match=r"at is 1; expected a step of \["):
        ask(now, "step", at=1)


def test_samples_name_the_first_that_the_model_gets_wrong(digits):
    x, y = nf.data.digits().validation
    wrong = np.flatnonzero(digits.training.model.predict(x) != y)
    assert ask(digits, "samples")["wrong"] == wrong[0]


def test_predictions_are_those_of_the_model(digits):
    x, _ = nf.data.digits().validation
    expected = [str(answer) for answer in digits.training.model.predict(x[3:6])]
    assert ask(digits, "predictions", samples=[3, 4, 5])["predictions"] == expected


def test_predictions_of_an_earlier_step_are_those_of_its_weights(long_run):
    now, _ = long_run
    first = now.steps()[0]
    x, _ = nf.data.digits().validation
    expected = [str(answer) for answer in now.plain_at(first).predict(x[:30])]
    answers = ask(now, "predictions", samples=[*range(30)], at=first)["predictions"]
    assert answers == expected
    assert answers != ask(now, "predictions", samples=[*range(30)])["predictions"]


def test_a_language_model_predicts_no_label():
    assert ask(begun("text"), "predictions", samples=[0, 1])["predictions"] == [None, None]


def test_the_prediction_for_a_pair_is_what_the_model_writes():
    now = begun("reverse", 5)
    sources = now.work.held_out[0][4:7]
    answers = ask(now, "predictions", samples=[4, 5, 6])["predictions"]
    assert answers == now.work.estimator.translate(sources)


@pytest.mark.parametrize(
    ("title", "formula", "summary"),
    [
        ("A", "exp(S_ij) / Σ_k exp(S_ik)", "y_i = exp(x_i) / sum_j exp(x_j) along one axis."),
        ("dA", "Σ_k dA_ik A_ik)", "dx_i = y_i (dy_i - sum_j dy_j y_j)"),
    ],
)
def test_softmax_begins_with_its_formula(digits, title, formula, summary):
    answer = ask(digits, "step", sample=0)
    (box,) = [b for b in answer["forward"] + answer["backward"] if b["title"] == title]
    assert formula in box["formula"]
    assert box["summary"].startswith(summary)


def test_a_docstring_without_a_formula_is_no_summary(digits):
    boxes = ask(digits, "step", sample=0)["forward"]
    summaries = {box["summary"] for box in boxes if box["function"] == "forward"}
    assert summaries == {""}


def test_boxes_show_the_lines_of_functional(digits):
    answer = ask(digits, "step", sample=0)
    by_title = {box["title"]: box for box in answer["forward"] + answer["backward"]}
    assert by_title["norm"]["source"] == "npformer/functional/layer_norm.py"
    assert by_title["norm"]["lines"].startswith("def layer_norm(")
    assert by_title["d norm"]["lines"].startswith("def layer_norm_backward(")
    functions = {name: by_title[name]["function"] for name in ("S", "A", "Y", "dS", "dA", "dY")}
    assert [*functions.values()][:3] == ["attention_scores", "softmax", "average"]
    assert functions["dA"] == "softmax_backward"
    assert [entry["name"] for entry in by_title["dQ"]["results"]] == ["dx", "dW_Q", "db_Q"]
    assert by_title["Q"]["formula"] == "Q = x W_Q + b_Q"
    assert by_title["dQ"]["formula"] == "dx = dQ W_Qᵀ,  dW_Q = xᵀ dQ,  db_Q = Σ dQ"
    assert by_title["Fourier"]["function"] == "fourier_mixing"
    assert by_title["d Fourier"]["function"] == "fourier_mixing_backward"
    for box in answer["forward"] + answer["backward"]:
        assert box["formula"]
        assert box["lines"].startswith("def ")
        assert '"""' not in box["lines"]


@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_every_mixer_has_lines_of_its_own(mixer):
    kind = nf.MIXERS[mixer]
    for way in ("forward", "backward"):
        name, lines, _ = lines_of(kind, way)
        assert lines.startswith("def ")
        assert name not in ("linear", "linear_backward")  # those of its parts


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("encoder.blocks.0.mixer.query.weight", [1, 2]),
        ("encoder.blocks.1.mixer_norm.gamma", [3]),
        ("embed.positions.table", [0, 1]),
        ("classify.bias", [4]),
    ],
)
@pytest.mark.parametrize("batch", [False, True])
def test_a_weights_three_gradients_agree(digits, batch, name, index):
    answer = ask(digits, "weight", name=name, index=index, sample=7, batch=batch)
    x, y = nf.data.digits(dtype="float64").validation
    rows = slice(0, 8) if batch else slice(7, 8)
    config = dataclasses.replace(digits.training.model.config, dropout=0.0)  # as at evaluation
    model = nf.SequenceClassifier(config, 10, n_features=8, pooling="flatten", dtype="float64")
    for key, value in digits.training.model.parameters().items():
        model.parameters()[key][...] = value
    _, gradients = model.loss_and_gradients(x[rows], y[rows])
    exact = gradients[name][tuple(index)]
    assert answer["value"] == digits.training.model.parameters()[name][tuple(index)]
    assert answer["gradient"] == pytest.approx(exact, rel=1e-9, abs=1e-14)
    assert answer["complex_step"] == pytest.approx(exact, rel=1e-9, abs=1e-14)
    errors = [abs(difference["error"]) for difference in answer["differences"]]
    assert min(errors) < 1e-8 * max(1.0, abs(exact))
    assert errors[0] > 100 * min(errors)  # too small a step: the left side of the V
    assert errors[-1] > 100 * min(errors)  # and the right one
    optimizer = copy.deepcopy(digits.training.optimizer)
    _, moments = optimizer.state()
    m = 0.9 * moments[f"m.{name}"][tuple(index)] + 0.1 * exact
    v = 0.999 * moments[f"v.{name}"][tuple(index)] + 0.001 * exact**2
    t = optimizer.steps + 1
    step = -optimizer.current_lr() * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    assert answer["adam"]["m"] == pytest.approx(m, rel=1e-5)
    assert answer["adam"]["v"] == pytest.approx(v, rel=1e-5)
    assert answer["adam"]["step"] == pytest.approx(step, rel=1e-5)
    assert answer["adam"]["after"] == pytest.approx(answer["value"] + step, rel=1e-6)


def test_a_drawn_digit(digits):
    image = np.random.default_rng(0).random((8, 8))
    answer = ask(digits, "digit", image=image.tolist())
    x = np.asarray(2 * image - 1, "float32")[None]
    expected = digits.training.model.predict_probabilities(x)[0]
    np.testing.assert_allclose(answer["probabilities"], expected, rtol=1e-5)
    matrices = nf.explain(digits.training.model, x)
    assert [entry["layer"] for entry in answer["mixing"]] == [entry.name for entry in matrices]
    for ours, theirs in zip(answer["mixing"], matrices, strict=True):
        expected = theirs.matrices[0].real.astype("float32").reshape(ours["heads"]["shape"])
        np.testing.assert_allclose(array(ours["heads"]), expected, rtol=1e-5, atol=1e-7)


def test_an_edit_moves_all_outputs_of_a_fourier_mixer():
    fourier = begun("digits", mixers=["fourier"])
    image = np.zeros((8, 8)).tolist()
    moved = ask(fourier, "edit", image=image, position=5, to=[1.0] * 8)["moved"]
    assert all(distance > 0 for distance in moved[0])


def test_an_edit_moves_no_earlier_output_of_a_causal_mixer():
    causal = begun("text")
    moved = ask(causal, "edit", text="To be, or not", position=6, to="x")["moved"]
    assert moved[0][:6] == [0.0] * 6
    assert all(distance > 0 for distance in moved[0][6:])


def test_a_sentence():
    now = begun("sentences")
    text = "The food was not good."
    answer = ask(now, "sentence", text=text)
    assert answer["tokens"][:4] == ["the", "food", "was", "not"]
    expected = now.work.estimator.predict_probabilities([text])[0]
    np.testing.assert_allclose(answer["probabilities"], expected, rtol=1e-5)
    assert answer["classes"] == ["negative", "positive"]
    assert ask(now, "step", sample=0)["forward"]
    assert len(ask(now, "edit", text=text, position=4, to="bad")["tokens"]) == 6
    with pytest.raises(ValueError, match="to is 'very bad', which is 2 tokens; expected one token"):
        ask(now, "edit", text=text, position=4, to="very bad")
    with pytest.raises(ValueError, match="the text is empty"):
        ask(now, "sentence", text="  ")


def test_a_token_is_the_one_that_generate_writes():
    now = begun("text", 20)
    writer, prompt = now.work.estimator, "ROMEO:\nI"
    written = ""
    for _ in range(5):
        answer = ask(now, "write", prompt=prompt + written, temperature=0.8, top_p=0.9, seed=3)
        expected = writer.generate(
            prompt + written, 1, temperature=0.8, top_p=0.9, seed=3, cache=False
        )
        assert answer["token"] == expected
        written += answer["token"]
    probabilities = [candidate["p"] for candidate in answer["candidates"] if candidate["kept"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert answer["seconds_cached"] > 0 < answer["seconds_plain"]
    assert ask(now, "write", prompt="a")["token"]
    with pytest.raises(ValueError, match="prompt is empty"):
        ask(now, "write", prompt="")


def test_a_translation_has_three_attentions():
    now = begun("reverse", 5)
    answer = ask(now, "translate", source="hello")
    assert answer["source"] == [*"hello", "end"]
    letters = "".join(word for word in answer["target"] if len(word) == 1)  # without [BEGIN]
    assert letters == now.work.estimator.translate(["hello"])[0]
    n = len(answer["read"])
    shapes = {name: boxes[0]["heads"]["shape"] for name, boxes in answer["attentions"].items()}
    assert shapes == {"encoder": [2, 6, 6], "decoder": [2, n, n], "cross": [2, n, 6]}
    for name in answer["attentions"].values():
        rows = array(name[0]["heads"]).sum(axis=-1)
        np.testing.assert_allclose(rows, np.ones_like(rows), rtol=1e-5)


@pytest.mark.parametrize(
    ("question", "arguments", "problem"),
    [
        ("stp", {}, "question is 'stp'; expected one of"),
        ("step", {"sampl": 1}, "an argument of step is 'sampl'; expected one of 'sample'"),
        ("step", {"sample": 10_000}, "sample is 10000; expected a whole number"),
        ("weight", {"name": "clasify.bias", "index": [0]}, "Did you mean 'classify.bias'?"),
        ("weight", {"name": "classify.bias", "index": [10]}, r"array of shape \(10,\)"),
        ("weight", {"name": "classify.bias", "index": 0}, "index is 0; expected a place"),
        ("digit", {"image": [[0.0] * 8] * 7}, r"image has shape \(7, 8\); expected 8 rows"),
        ("digit", {"image": [[2.0] * 8] * 8}, "numbers from 0, no ink, to 1"),
        *(("digit", {"image": image}, "expected 8 rows") for image in ("x", [["0.5"] * 8] * 8)),
        *(("digit", {"image": [[ink] * 8] * 8}, "expected 8 rows") for ink in (None, 10**400)),
        ("predictions", {"samples": 3}, "samples is an int; expected a list"),
        ("predictions", {"samples": [0] * 101}, "samples has 101 numbers; expected 100 at most"),
        ("predictions", {"samples": [-1]}, "sample is -1; expected a whole number"),
        ("sentence", {"text": "a"}, "has no words"),
        ("write", {"prompt": "a"}, "writes nothing"),
        ("translate", {"source": "a"}, "has no pairs"),
        ("edit", {"position": 0, "to": "a"}, "expected one of the two"),
        ("weight", {"name": "classify.bias", "index": [0], "batch": 1}, "batch is 1"),
    ],
)
def test_wrong_questions_are_named(digits, question, arguments, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        ask(digits, question, **arguments)


def test_no_question_changes_model_or_optimizer(digits):
    before = {name: value.copy() for name, value in digits.training.model.parameters().items()}
    moments = digits.training.optimizer.state()[1]
    ask(digits, "step", sample=2)
    ask(digits, "weight", name="classify.weight", index=[0, 0], sample=2)
    ask(digits, "digit", image=np.zeros((8, 8)).tolist())
    for name, value in before.items():
        np.testing.assert_array_equal(digits.training.model.parameters()[name], value)
    for name, value in digits.training.optimizer.state()[1].items():
        np.testing.assert_array_equal(value, moments[name])
