"""TF32 is asked for, put back, and refused where there is none; half precision is refused."""

import threading

import pytest

import npformer as nf
from npformer.core import precision
from npformer.training.builder import precision_of
from tests.device.cases import IDS, LABELS, X, classifier, fit
from tests.fake_device import count


@pytest.mark.parametrize(
    ("options", "switched"),
    [
        ({}, []),
        ({"precision": "tf32"}, [True, False]),
    ],
    ids=str,
)
def test_fit_sets_its_precision_for_the_training_alone(options, switched) -> None:
    assert precision("fake") == "float32"
    with count() as counted:
        fit(classifier("float32").to("fake"), (IDS, LABELS), **options)
    assert counted.precisions == switched
    assert precision("fake") == "float32"


def test_precision_is_put_back_after_an_error() -> None:
    with count() as counted, pytest.raises(ArithmeticError), nf.use_precision("tf32", "fake"):
        raise ArithmeticError
    assert counted.precisions == [True, False]


def test_fit_leaves_the_precision_that_was_set_outside() -> None:
    with count() as counted, nf.use_precision("tf32", "fake"):
        fit(classifier("float32").to("fake"), (IDS, LABELS))
        assert precision("fake") == "tf32"
    assert counted.precisions == [True, False]


def test_precisions_nest() -> None:
    with count() as counted, nf.use_precision("tf32", "fake"):
        with nf.use_precision("float32", "fake"):
            assert precision("fake") == "float32"
        assert precision("fake") == "tf32"
    assert counted.precisions == [True, False, True, False]


@pytest.mark.parametrize(
    ("requested_precision", "switched"),
    [("tf32", [True, True, False, False]), ("float32", [True, False, False])],
)
def test_each_thread_has_a_precision_of_its_own(requested_precision, switched) -> None:
    precisions: list[str] = []

    def elsewhere() -> None:
        precisions.append(precision("fake"))
        with nf.use_precision(requested_precision, "fake"):
            precisions.append(precision("fake"))

    with count() as counted, nf.use_precision("tf32", "fake"):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert precision("fake") == "tf32"
    assert precisions == ["float32", requested_precision]
    assert counted.precisions == switched  # CuPy keeps one setting for all threads


def test_numpy_has_no_tf32() -> None:
    with pytest.raises(ValueError, match=r"the backend is 'numpy'; expected 'float32'.*to\('cupy'"):
        nf.use_precision("tf32", "numpy")
    with pytest.raises(ValueError, match="the backend is 'numpy'"):
        fit(classifier("float32"), (IDS, LABELS), precision="tf32")
    assert precision("numpy") == "float32"


def test_float64_is_not_rounded_to_tf32() -> None:
    with pytest.raises(ValueError, match="the model's dtype is float64; expected float32"):
        precision_of(classifier("float64").to("fake"), "tf32")


@pytest.mark.parametrize("wrong", ["float16", "bfloat16", "float64", "TF32", None])
def test_another_precision_is_refused_with_what_there_is(wrong) -> None:
    with pytest.raises(ValueError, match=r"expected 'float32' or 'tf32'\. npformer has no float16"):
        nf.use_precision(wrong, "fake")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_models_of_half_precision_are_refused_with_what_there_is(dtype) -> None:
    with pytest.raises(
        ValueError, match=f"dtype is '{dtype}'; expected one of 'float32', 'float64'"
    ):
        classifier(dtype)


@pytest.mark.parametrize("name", ["numpy", "fake"])
def test_arrays_of_half_precision_are_refused_with_what_to_do(name) -> None:
    half = X.astype("float16")
    model = classifier("float32", features=True).to(name)
    expected = r"x has dtype float16; expected float32 or float64. .*astype\('float32'\)"
    for use in (
        lambda: model(half),
        lambda: model.predict(half),
        lambda: model.loss_and_gradients(half, LABELS),
        lambda: nf.functional.softmax(nf.asarray(half, name)),
    ):
        with pytest.raises(TypeError, match=expected):
            use()
    with pytest.raises(TypeError, match="float16"):
        fit(model, (half, LABELS))
