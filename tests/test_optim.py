import math

import numpy as np
import pytest

import npformer as nf
from npformer import layers as L
from npformer.optim import SCHEDULES, cosine, global_norm, warmup_inverse_sqrt


def make_chain(width):
    linear = L.Linear(3, width, seed=0, dtype="float64")
    return L.Sequential(linear, L.LayerNorm(width, dtype="float64")).flatten()


@pytest.fixture
def chain():
    return make_chain(5)


def random_gradients(layer, rng):
    gradients = nf.Gradients(layer)
    for view in gradients.values():
        view[...] = rng.normal(size=view.shape)
    return gradients


# Schedules ----------------------------------------------------------------------------------------


def test_inverse_square_root_is_the_papers_formula():
    factor, peak = warmup_inverse_sqrt(4000), (512 * 4000) ** -0.5
    for step in (1, 100, 3999, 4000, 4001, 16000, 100_000):
        paper = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert peak * factor(step) == pytest.approx(paper, rel=1e-12)


def test_inverse_square_root_halves_when_the_steps_are_fourfold():
    factor = warmup_inverse_sqrt(100)
    assert (factor(50), factor(100), factor(400), factor(1600)) == (0.5, 1.0, 0.5, 0.25)


def test_cosine_goes_up_a_line_and_down_half_a_wave():
    factor = cosine(total=110, warmup=10, final=0.2)
    expected = {5: 0.5, 10: 1.0, 60: 0.6, 110: 0.2, 500: 0.2}
    assert {step: pytest.approx(factor(step)) for step in expected} == expected
    assert factor(35) == pytest.approx(0.2 + 0.8 * 0.5 * (1 + math.cos(math.pi / 4)))
    assert cosine(total=1000)(1) == pytest.approx(1.0, abs=1e-5)


def test_cosine_of_a_single_step_that_would_change_nothing_is_refused():
    with pytest.raises(ValueError, match=r"total is 1 and final 0\.0; expected at least 2 steps"):
        cosine(total=1)
    assert cosine(total=1, final=0.5)(1) == 0.5


# Adam ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_first_step_is_lr_long_whatever_the_size_of_the_gradient(size):
    theta = {"w": np.zeros(4)}
    nf.Adam(theta, lr=0.01).step({"w": size * np.array([1.0, -1.0, 2.0, -0.5])})
    np.testing.assert_allclose(theta["w"], [-0.01, 0.01, -0.01, 0.01], rtol=1e-4)


def test_follows_the_algorithm_step_by_step(rng):
    lr, beta1, beta2, eps = 0.02, 0.8, 0.95, 1e-3
    theta, m, v = rng.normal(size=5), np.zeros(5), np.zeros(5)
    updated = {"w": theta.copy()}
    optimizer = nf.Adam(updated, lr=lr, betas=(beta1, beta2), eps=eps)
    for t in range(1, 6):
        g = rng.normal(size=5)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        theta = theta - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
        optimizer.step({"w": g})
        np.testing.assert_allclose(updated["w"], theta, rtol=1e-12)


def test_every_parameter_of_a_step_sees_the_same_step_number(rng):
    g = rng.normal(size=3)
    theta = {"first": np.zeros(3), "last": np.zeros(3)}
    optimizer = nf.Adam(theta)
    for _ in range(3):
        optimizer.step({"first": g, "last": g})
    assert optimizer.steps == 3
    np.testing.assert_array_equal(theta["first"], theta["last"])


def test_updating_the_flat_buffer_is_updating_name_by_name(chain, rng):
    by_name = {name: array.copy() for name, array in chain.parameters().items()}
    flat_optimizer = nf.Adam(chain.parameters(), weight_decay=0.1)
    name_optimizer = nf.Adam(by_name, weight_decay=0.1)
    for _ in range(4):
        gradients = random_gradients(chain, rng)
        flat_optimizer.step(gradients)
        name_optimizer.step({name: g.copy() for name, g in gradients.items()})
    for name, array in chain.parameters().items():
        np.testing.assert_array_equal(array, by_name[name])


def test_neither_gradients_nor_the_gaps_between_parameters_change(chain, rng):
    gradients = random_gradients(chain, rng)
    before = gradients.flat.copy()
    nf.Adam(chain.parameters(), weight_decay=0.1).step(gradients)
    np.testing.assert_array_equal(gradients.flat, before)
    flat = chain.parameters().flat
    used = sum((array != 0.0).sum() for array in chain.parameters().values())
    assert (flat != 0.0).sum() == used


def test_weight_decay_shrinks_apart_from_the_gradient():
    theta = {"w": np.array([2.0, -3.0])}
    nf.Adam(theta, lr=0.1, weight_decay=0.5).step({"w": np.zeros(2)})
    np.testing.assert_allclose(theta["w"], [2.0 * 0.95, -3.0 * 0.95], rtol=1e-14)


def test_the_schedule_scales_each_step_counted_from_1():
    seen, theta = [], {"w": np.zeros(1)}

    def schedule(step):
        seen.append(step)
        return 0.5

    optimizer = nf.Adam(theta, lr=0.1, schedule=schedule)
    optimizer.step({"w": np.ones(1)})
    optimizer.step({"w": np.ones(1)})
    assert seen == [1, 2]
    assert optimizer.current_lr() == 0.05
    np.testing.assert_allclose(theta["w"], -0.1, rtol=1e-6)


def test_float32_parameters_stay_float32():
    theta = {"w": np.zeros(3, dtype="float32")}
    nf.Adam(theta).step({"w": np.ones(3, dtype="float32")})
    assert theta["w"].dtype == "float32"


def test_gradients_of_the_same_names_and_other_shapes_are_refused(chain):
    gradients = nf.Gradients(make_chain(6))
    gradients.flat[...] = 1.0
    before = chain.parameters().flat.copy()
    assert list(gradients) == list(chain.parameters())
    with pytest.raises(ValueError, match=r"has shape \(3, 6\); expected \(3, 5\)"):
        nf.Adam(chain.parameters()).step(gradients)
    np.testing.assert_array_equal(chain.parameters().flat, before)


def test_a_refused_step_does_not_count(chain):
    optimizer = nf.Adam(chain.parameters())
    with pytest.raises(KeyError):
        optimizer.step({})
    assert optimizer.steps == 0


def test_finds_the_bottom_of_a_bowl():
    theta = {"w": np.array([5.0, -4.0])}
    optimizer = nf.Adam(theta, lr=0.1)
    for _ in range(500):
        optimizer.step({"w": 2.0 * (theta["w"] - 1.0)})
    np.testing.assert_allclose(theta["w"], 1.0, atol=1e-3)


# Clipping -----------------------------------------------------------------------------------------


def test_the_global_norm_is_the_root_of_all_squares():
    gradients = {"a": np.array([3.0, 0.0]), "b": np.array([[4.0], [12.0]])}
    assert global_norm(gradients) == 13.0


def test_clipping_scales_all_by_one_factor_and_returns_the_norm_before():
    gradients = {"a": np.array([3.0, 0.0]), "b": np.array([4.0])}
    norm = nf.clip_by_global_norm(gradients, 1.0)
    assert norm == 5.0
    np.testing.assert_allclose(gradients["a"], [0.6, 0.0], rtol=1e-6)
    np.testing.assert_allclose(gradients["b"], [0.8], rtol=1e-6)


@pytest.mark.parametrize(("values", "norm"), [([0.3, 0.4], 0.5), ([0.0, 0.0], 0.0)])
def test_clipping_leaves_short_gradients_as_they_are(values, norm):
    gradients = {"a": np.array(values)}
    assert nf.clip_by_global_norm(gradients, 1.0) == norm
    np.testing.assert_array_equal(gradients["a"], values)


def test_clipping_a_flat_buffer_is_clipping_name_by_name(chain, rng):
    gradients = random_gradients(chain, rng)
    by_name = {name: g.copy() for name, g in gradients.items()}
    norms = [nf.clip_by_global_norm(each, 0.5) for each in (gradients, by_name)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-14)
    for name, g in gradients.items():
        np.testing.assert_allclose(g, by_name[name], rtol=1e-13)


# Schedules by name --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "factor"),
    [
        ("constant", lambda step: 1.0),
        ("warmup_inverse_sqrt(warmup=10)", warmup_inverse_sqrt(10)),
        ("cosine(total=50)", cosine(50)),
        ("cosine(total=50, warmup=5, final=0.1)", cosine(50, 5, 0.1)),
    ],
)
def test_a_schedule_by_name_is_that_schedule(chain, spec, factor):
    optimizer = nf.Adam(chain.parameters(), lr=0.5, schedule=spec)
    for step in range(1, 61):
        optimizer.steps = step - 1
        assert optimizer.current_lr() == 0.5 * factor(step)


@pytest.mark.parametrize(
    ("schedule", "error", "message"),
    [
        ("cosin(total=5)", ValueError, "schedule is 'cosin'; expected one of 'constant', 'warmup_"),
        ("cosin(total=5)", ValueError, "Did you mean 'cosine'"),
        ("cosine", TypeError, r"schedule 'cosine' needs total; expected 'cosine\(total=\.\.\.\)"),
        ("cosine(total=5, end=1)", TypeError, "schedule 'cosine' has no option 'end'; expected"),
        ("cosine(total=0)", ValueError, "total is 0; expected a whole number of at least 1"),
        ("cosine(5)", ValueError, r"schedule is 'cosine\(5\)'; expected a name, or a name and opt"),
        (0.5, TypeError, r"schedule is 0.5; expected a function of the step .*'cosine\(total=1000"),
    ],
)
def test_a_schedule_that_is_none_is_explained(chain, schedule, error, message):
    with pytest.raises(error, match=message):
        nf.Adam(chain.parameters(), schedule=schedule)


def test_a_registered_schedule_is_named(chain, monkeypatch):
    monkeypatch.setitem(SCHEDULES, "half", lambda by=2.0: lambda step: 1.0 / by)
    assert nf.Adam(chain.parameters(), lr=1.0, schedule="half(by=4.0)").current_lr() == 0.25


def test_fit_takes_a_schedule_by_name(small_model, token_batch):
    runs = []
    for schedule in ("cosine(total=4, warmup=1)", cosine(4, 1), None):
        model = small_model()
        history = nf.fit(
            model, token_batch, epochs=2, batch_size=4, lr=0.1, schedule=schedule, progress=False
        )
        runs.append((history.lr, model.parameters().flat.copy()))
    assert runs[0][0] == runs[1][0] != runs[2][0]
    np.testing.assert_array_equal(runs[0][1], runs[1][1])
    assert not np.array_equal(runs[0][1], runs[2][1])
