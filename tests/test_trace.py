import numpy as np
import pytest

from npformer.trace import first_non_finite, summary, trace


@pytest.fixture
def ids(rng):
    return rng.integers(0, 7, (2, 6))


def test_every_layer_is_called_in_the_order_in_which_it_acts(small_model, ids):
    model = small_model(n_layers=2)
    calls = trace(model, ids)
    names = [call.name for call in calls]
    assert names[0] == ""
    assert sorted(names) == sorted(name for name, _ in model.layers())
    assert names.index("embed") < names.index("encoder.blocks.0") < names.index("encoder.blocks.1")
    assert names.index("pool") < names.index("classify")


def test_outputs_are_those_of_the_model(small_model, ids):
    model = small_model()
    calls = {call.name: call.output for call in trace(model, ids)}
    np.testing.assert_array_equal(calls[""], model(ids))
    np.testing.assert_array_equal(calls["embed"], model.embed(ids))


def test_a_shared_block_is_named_in_turn(small_model, ids):
    names = [call.name for call in trace(small_model(n_layers=3, share_layers=True), ids)]
    blocks = [name for name in names if name.startswith("encoder.blocks.") and name.count(".") == 2]
    assert blocks == ["encoder.blocks.0", "encoder.blocks.1", "encoder.blocks.2"]


def test_the_model_itself_is_not_touched(small_model, ids):
    model = small_model()
    trace(model, ids)
    assert all("forward" not in vars(layer) for _, layer in model.layers())


def test_a_finite_model_has_no_culprit(small_model, ids):
    assert first_non_finite(small_model(), ids) is None


def test_the_culprit_is_the_innermost_layer_that_fails_first(small_model, ids):
    model = small_model()
    model.parameters()["encoder.blocks.1.feed_forward.contract.weight"][...] = 1e308
    with np.errstate(all="ignore"):
        found = first_non_finite(model, ids)
    assert found == "the output of encoder.blocks.1.feed_forward.contract (Linear)"


def test_a_bad_parameter_and_a_bad_input_are_named(small_model, rng):
    model, x = small_model(n_features=2), rng.normal(size=(2, 6, 2))
    x[0, 0, 0] = np.nan
    assert first_non_finite(model, x) == "the input x"
    model.parameters()["classify.bias"][1] = np.inf
    assert first_non_finite(model, np.ones((2, 6, 2))) == "parameter classify.bias"


def test_a_summary_has_a_line_for_each_layer_and_the_total(small_model, ids):
    model = small_model(n_layers=2)
    lines = summary(model, ids).splitlines()
    assert len(lines) == len(list(model.layers())) + 4
    assert any(line.split() == ["classify", "Linear", "(2,", "3)", "27"] for line in lines)
    assert lines[-1] == f"{model.n_parameters():,} trained parameters, float64"


def test_a_summary_counts_a_shared_layer_once(small_model, ids):
    text = summary(small_model(n_layers=2, share_layers=True), ids)
    assert (
        text.count("shared")
        == sum("Linear" in s or "LayerNorm" in s for s in text.splitlines()) // 2
    )
