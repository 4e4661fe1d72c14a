"""optimcheck follows optimizers of any style, and names the formula that each follows."""

import numpy as np
import pytest

import npformer as nf
from tests.proof.promises.faults_of_optimizers import (
    ADAM,
    DECAYS,
    OF_ADAM,
    adam_with,
    adamw_with,
    make,
)
from tests.proof.promises.styles import STYLES, AdamOfDicts, RMSProp, adam


def read_diagnosis(optimizer, **options):
    with pytest.raises(nf.OptimcheckError) as error:
        nf.optimcheck(optimizer, **options)
    return error.value.report.diagnosis


def two_arrays():
    return {"a": np.ones((2, 3)), "b": np.ones(4)}


@pytest.mark.parametrize(("optimizer", "words"), STYLES.values(), ids=STYLES)
def test_a_right_optimizer_passes_however_it_is_called(optimizer, words):
    assert nf.optimcheck(optimizer).diagnosis == words


@pytest.mark.parametrize(
    ("optimizer", "words"),
    [
        (nf.Adam(two_arrays()), "Adam"),
        (nf.Adam(two_arrays(), weight_decay=0.1), "Adam: weight decay is decoupled, as in AdamW"),
        (nf.Adam(two_arrays(), schedule="linear(total=20)"), "Adam"),
        (nf.Adam(two_arrays(), betas=(0.5, 0.75), eps=1e-6), "Adam"),
        (nf.SGD(two_arrays(), lr=0.1), "gradient descent"),
        (nf.SGD(two_arrays(), lr=0.1, momentum=0.9), "gradient descent with momentum"),
        (
            nf.SGD(two_arrays(), lr=0.1, momentum=0.9, nesterov=True),
            "gradient descent with Nesterov's momentum",
        ),
    ],
)
def test_the_packages_own_optimizers_pass(optimizer, words):
    assert nf.optimcheck(optimizer).diagnosis == words


def test_the_package_s_class_is_made_with_parameters():
    assert nf.optimcheck(nf.Adam, betas=(0.8, 0.9)).settings["beta1"] == 0.8


@pytest.mark.parametrize(
    ("words", "replaced", "by"), [(words, *texts) for words, texts in OF_ADAM.items()], ids=OF_ADAM
)
def test_a_fault_of_adam_is_named(words, replaced, by):
    assert read_diagnosis(adam_with(replaced, by)).startswith(f"Adam: {words}")


@pytest.mark.parametrize(
    ("words", "replaced", "by"), [(words, *texts) for words, texts in DECAYS.items()], ids=DECAYS
)
def test_a_fault_of_weight_decay_is_named(words, replaced, by):
    assert read_diagnosis(adamw_with(replaced, by), weight_decay=0.1) == f"AdamW: {words}"


def test_two_faults_are_named_together():
    source = ADAM.replace("np.sqrt(v_hat)", "np.sqrt(np.sqrt(v_hat))").replace(
        "t = self.t", "t = 1"
    )
    words = read_diagnosis(make("Adam", source))
    assert words == "Adam: t is frozen at 1, so the bias correction never changes; " + (
        "its root is taken twice"
    )


def test_a_fault_beside_a_published_form_is_named():
    source = ADAM.replace("(np.sqrt(v_hat) + self.eps)", "(np.sqrt(v_hat) + self.eps) * 1.0")
    source = source.replace("g**2", "g**2 / (1 - b2)")
    words = "g^2 is not multiplied by 1 - beta2; weight decay is decoupled, as in AdamW"
    assert read_diagnosis(make("Adam", source), weight_decay=0.1) == f"Adam: {words}"


def test_another_kind_than_its_name_says_is_named():
    class Adam(RMSProp):
        pass

    assert read_diagnosis(Adam) == "RMSProp: epsilon is inside the root, not Adam"


def test_any_kind_passes_under_a_name_that_says_none():
    class Optimizer(AdamOfDicts):
        pass

    assert nf.optimcheck(Optimizer).diagnosis == "Adam"


def test_an_unknown_formula_is_said_to_be_none():
    words = read_diagnosis(adam_with("m_hat = m", "m_hat = 0.5 * np.sign(m)"))
    assert words == "neither Adam nor a fault of the table"


def test_clipped_gradients_show_where_they_are_large():
    class SGD:
        lr = 0.1

        def step(self, params, grads):
            for p, g in zip(params, grads, strict=True):
                p -= self.lr * np.clip(g, -0.5, 0.5)

    words = "gradient descent where gradients are small, and something else where they are not"
    assert read_diagnosis(SGD) == words


def test_steps_of_another_length_are_measured():
    words = read_diagnosis(adam_with("self.lr * m_hat", "self.lr * m_hat / 32"))
    assert words == "Adam, with each step 0.03125 times as long"


def test_an_optimizer_that_updates_copies_is_named():
    class SGD:
        lr = 0.1

        def step(self, params, grads):
            for p, g in zip(params, grads, strict=True):
                p = p - self.lr * g

    assert "the parameters do not change" in read_diagnosis(SGD)


def test_one_object_for_each_array_is_a_note():
    (note,) = nf.optimcheck(RMSProp).notes
    assert "make one for each parameter" in note


def test_a_changed_gradient_is_a_note():
    class SGD:
        lr = 0.1

        def step(self, params, grads):
            for p, g in zip(params, grads, strict=True):
                g *= self.lr
                p -= g

    assert nf.optimcheck(SGD).notes == ["a step changes the gradients that it is given"]


def test_an_epsilon_that_was_not_found_is_a_note():
    class Adam:
        def __init__(self, lr=0.01):
            self.inner = AdamOfDicts(lr=lr, eps=1e-8)
            self.lr, self.beta1, self.beta2 = lr, 0.9, 0.999

        def update(self, params, grads):
            self.inner.update(params, grads)

    (note,) = nf.optimcheck(Adam).notes
    assert note == "found no eps by name; the formula was given eps 1e-08"


def test_a_stated_epsilon_is_that_of_the_formula():
    assert "neither" in read_diagnosis(AdamOfDicts(), eps=1e-3)


def test_an_object_stays_as_it_is():
    optimizer = AdamOfDicts()
    nf.optimcheck(optimizer)
    assert optimizer.m == {}


def test_float32_is_compared_up_to_its_rounding():
    optimizer = nf.Adam({"a": np.ones(3, "float32")})
    assert nf.optimcheck(optimizer).notes == ["parameters are float32: compared up to its rounding"]


def test_a_fault_shows_in_float32():
    class Adam(adam_with("t = self.t", "t = 1")):
        def step(self, params, grads):
            super().step(params, grads)
            for key in params:
                params[key] = params[key].astype("float32")

    assert "t is frozen at 1" in read_diagnosis(Adam)


def test_parameters_of_given_names_are_passed():
    class SGD:
        lr = 0.1

        def step(self, params, grads):
            for name in ("embedding", "head"):
                params[name] -= self.lr * grads[name]

    assert nf.optimcheck(SGD, parameters={"embedding": np.ones(3), "head": np.ones(2)}).passed


def test_a_step_of_the_callers_own_is_taken():
    class SGD:
        lr = 0.1

        def go(self, param):
            param.w = param.w - self.lr * param.slope

    class Parameter:
        pass

    def step(optimizer, params, grads):
        for i in range(len(params)):
            parameter = Parameter()
            parameter.w, parameter.slope = params[i], grads[i]
            optimizer.go(parameter)
            params[i] = parameter.w

    assert nf.optimcheck(SGD(), step=step).diagnosis == "gradient descent"


@pytest.mark.parametrize(("start", "when"), [(0, "before"), (1, "after")])
def test_a_method_that_counts_the_step_is_called(start, when):
    source = ADAM.replace("self.t += 1", "pass").replace("def step(", "def update(")
    source = source.replace("{}, {}, 0", f"{{}}, {{}}, {start}")
    source += "\n    def step(self):\n        self.t += 1\n"
    optimizer = make("Adam", source)
    assert nf.optimcheck(optimizer).called.endswith(f"; step() once for each step, {when} it")


def test_a_function_that_makes_one_is_called():
    assert nf.optimcheck(lambda: AdamOfDicts(lr=0.5)).settings["lr"] == 0.5


def test_each_kind_of_gradients_is_run():
    assert [difference.course for difference in nf.optimcheck(AdamOfDicts).differences] == [
        "drawn",
        "constant",
        "of very different sizes",
        "as small as 1e-8",
        "partly 0",
        "0",
        "drawn, for two of one shape",
    ]


def test_the_report_has_the_step_that_is_wrong():
    with pytest.raises(nf.OptimcheckError) as error:
        nf.optimcheck(adam_with("t = self.t", "t = 1"))
    text = str(error.value)
    assert "optimcheck of Adam: FAILED" in text
    assert "this is Adam: t is frozen at 1" in text
    assert error.value.report.differences[0].step == 2
    assert text.count("<-- wrong") == 6


@pytest.mark.parametrize(
    ("make_optimizer", "error", "words"),
    [
        (lambda: nf.optimcheck(AdamOfDicts, kind="adan"), ValueError, "kind"),
        (lambda: nf.optimcheck(3), TypeError, "could not be called in a usual way"),
        (lambda: nf.optimcheck(type("SGD", (), {})), TypeError, "What was tried: nothing"),
        (lambda: nf.optimcheck(adam, betas=0.9), ValueError, "expected two numbers"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_words(make_optimizer, error, words):
    with pytest.raises(error, match=words):
        make_optimizer()


def test_a_learning_rate_under_an_unusual_name_is_asked_for():
    class SGD:
        how_fast = 0.1

        def step(self, params, grads):
            for p, g in zip(params, grads, strict=True):
                p -= self.how_fast * g

    with pytest.raises(TypeError, match=r"no learning rate.*lr=0.01"):
        nf.optimcheck(SGD)
    assert nf.optimcheck(SGD, lr=0.1).passed
