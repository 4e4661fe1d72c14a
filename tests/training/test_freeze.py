"""Frozen parameters: fit trains the others, the same in every way of computing."""

import copy
import pickle

import numpy as np
import pytest

import npformer as nf
from npformer.core import Parameters
from npformer.engine import team
from npformer.optim import Adam
from tests.training.common import assert_same_weights, fit

PATTERNS = {"embedding": ("embed.*",), "one block": ("embed.*", "encoder.blocks.0.*")}
PATTERNS |= {"all but the head": ("embed.*", "encoder.*"), "head": ("classify.*",)}
PATTERNS |= {"in the middle": ("encoder.blocks.0.*",), "biases": ("*.bias", "*.beta")}
PATTERNS["tokens alone"] = ("embed.tokens*",)


@pytest.fixture
def words(rng):
    ids = rng.integers(0, 7, (20, 6))
    return ids, (ids[:, 0] > 3).astype("int64")


def values(model):
    return {name: p.value.copy() for name, p in model.named_parameters().items()}


def changed(model, before):
    return {name for name, v in values(model).items() if not np.array_equal(v, before[name])}


@pytest.mark.parametrize("patterns", PATTERNS.values())
@pytest.mark.parametrize(
    "norm",
    [
        "post",
        "pre",
    ],
)
def test_only_frozen_parameters_keep_their_values(small_model, words, patterns, norm):
    model = small_model(dropout=0.1, positions="learned", norm=norm).freeze(*patterns)
    before = values(model)
    fit(model, words, weight_decay=0.1, workers=1)
    assert changed(model, before) == set(model.parameters())
    assert set(model.parameters()) | set(model.frozen()) == set(model.named_parameters())


@pytest.mark.parametrize("patterns", PATTERNS.values(), ids=PATTERNS)
@pytest.mark.parametrize(
    "changes",
    [{"positions": "learned"}, {"norm": "pre"}, {"share_layers": True}, {"mixer": "fourier"}],
    ids=str,
)
def test_gradients_are_those_of_the_whole_model(small_model, words, patterns, changes, rng):
    """The backward pass ends early, and every number stays bit for bit; the plain model agrees."""
    ids, y = words
    mask = np.arange(6) < rng.integers(1, 7, 20)[:, None]
    options = {"padding": "per_length"} if "mixer" in changes else {}
    unfrozen = small_model(dropout=0.2, **changes, **options)
    frozen_model = small_model(dropout=0.2, **changes, **options).freeze(*patterns)
    loss, gradients = unfrozen.loss_and_gradients(ids, y, mask, seed=1)
    expected = {name: gradients[name].copy() for name in frozen_model.parameters()}
    assert 0 < len(expected) < len(gradients)
    for workers in (1, 2):
        frozen_loss, actual = frozen_model.loss_and_gradients(ids, y, mask, seed=1, workers=workers)
        assert frozen_loss == pytest.approx(loss, rel=1e-12)
        assert list(actual) == list(expected)
        for name, value in expected.items():
            np.testing.assert_allclose(actual[name], value, rtol=0, atol=1e-12, err_msg=name)
    with nf.use_kernels(False):
        _, actual = frozen_model.loss_and_gradients(ids, y, mask, seed=1)
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=0, atol=1e-12, err_msg=name)


def test_the_backward_pass_ends_above_what_is_frozen(small_model, words, monkeypatch):
    model = small_model().freeze("embed.*", "encoder.blocks.0.*")
    reached = []
    original = team.skip_frozen_layers

    def count(name):
        layer = dict(model.layers())[name]
        backward = type(layer).backward
        monkeypatch.setattr(
            type(layer), "backward", lambda self, *a: (reached.append(name), backward(self, *a))[1]
        )

    count("embed")
    model.loss_and_gradients(*words)
    assert reached == []
    monkeypatch.setattr(team, "skip_frozen_layers", lambda twin: twin)
    model.loss_and_gradients(*words)
    assert reached == ["embed"]
    monkeypatch.setattr(team, "skip_frozen_layers", original)
    model.unfreeze("embed.*").loss_and_gradients(*words)
    assert reached == ["embed"] * 2


def test_a_subclass_with_passes_of_its_own_is_run_as_written(small_model, words):
    class Doubled(nf.Encoder):
        def backward(self, dy, cache, gradients):
            return super().backward(2.0 * dy, cache, gradients)

    model = small_model()
    model.encoder = Doubled(model.config, seed=0, dtype="float64")
    model.flatten()
    _, all_gradients = model.loss_and_gradients(*words)
    expected = {name: value.copy() for name, value in all_gradients.items()}
    model.freeze("embed.*", "encoder.blocks.0.*")
    _, gradients = model.loss_and_gradients(*words)
    for name, value in gradients.items():
        np.testing.assert_allclose(value, expected[name], atol=1e-12, err_msg=name)


def test_workers_agree(small_model, words):
    models = [small_model(dropout=0.2).freeze("embed.*", "encoder.blocks.0.*") for _ in range(2)]
    history = fit(models[0], words, workers=1)
    again = fit(models[1], words, workers=2)
    assert again.train_loss == pytest.approx(history.train_loss, rel=1e-8)
    assert again.workers != history.workers


def test_gradients_of_trained_parameters_lie_in_one_flat_buffer(small_model, words):
    model = small_model().freeze("encoder.blocks.0.*")
    parameters = model.parameters()
    assert parameters.flat is not None
    _, gradients = model.loss_and_gradients(*words)
    assert gradients.shapes == parameters.shapes
    assert gradients.flat.size == parameters.flat.size


def test_frozen_parameters_lie_in_another_flat_buffer(small_model):
    model = small_model().freeze("encoder.blocks.0.*")
    parameters = model.parameters()
    frozen = Parameters(model.frozen())
    assert frozen.flat is not None
    size = frozen.flat.size + parameters.flat.size
    assert size < 1.1 * model.unfreeze("*").parameters().flat.size


def test_an_optimizer_has_moments_of_trained_parameters_alone(small_model, words):
    model = small_model().freeze("encoder.blocks.0.*")
    parameters = model.parameters()
    _, gradients = model.loss_and_gradients(*words)
    optimizer = Adam(parameters)
    optimizer.step(gradients)
    assert {name.split(".", 1)[1] for name in optimizer.state()[1]} == set(parameters)


def test_unfreezing_goes_on(small_model, words):
    model = small_model().freeze("*").unfreeze("classify.*")
    before = values(model)
    fit(model, words)
    assert changed(model, before) == {"classify.weight", "classify.bias"}
    model.unfreeze("*")
    assert not model.frozen()
    fit(model, words)
    assert "embed.tokens.weight" in changed(model, before)


def test_constants_stay_constants(small_model):
    model = small_model(positions="sinusoidal")
    assert "embed.positions.table" not in model.unfreeze("*").parameters()
    model.freeze("embed.positions.*")
    assert not model.frozen()
    with pytest.raises(ValueError, match=r"'embed.positions.\*' matches none of the parameters"):
        model.unfreeze("embed.positions.*")


@pytest.mark.parametrize(
    ("patterns", "error", "message"),
    [
        (("encoder.block.0.*",), ValueError, r"'encoder.block.0.\*' matches none .* Near it: enc"),
        (("encoder.blocks.0",), ValueError, r"Did you mean 'encoder.blocks.0.\*'\?"),
        (("embed.*", "layers.*"), ValueError, r"'layers.\*' matches none of the parameters; exp"),
        (("zzz",), ValueError, r"There are embed, encoder, classify"),
        ((), ValueError, "there is no pattern; expected at least one"),
        ((3,), TypeError, "a pattern is 3; expected a text"),
        ((["embed.*"],), TypeError, r"a pattern is \['embed.\*'\]; expected a text"),
    ],
)
@pytest.mark.parametrize(
    "do",
    [
        "freeze",
        "unfreeze",
    ],
)
def test_a_pattern_that_fits_nothing_is_an_error(small_model, patterns, error, message, do):
    model = small_model()
    with pytest.raises(error, match=message):
        getattr(model, do)(*patterns)
    assert not model.frozen()


def test_a_part_of_a_model_is_not_frozen_by_itself(small_model):
    model = small_model()
    with pytest.raises(ValueError, match=r"part of a model .* freeze the whole model"):
        model.encoder.freeze("blocks.0.*")
    assert not model.frozen()


def test_nothing_to_train_is_an_error(small_model, words):
    with pytest.raises(ValueError, match=r"every parameter of the model is frozen"):
        fit(small_model().freeze("*"), words)


def test_an_optimizer_made_before_is_refused(small_model, words):
    model = small_model()
    optimizer = Adam(model.parameters())
    model.freeze("embed.*")
    with pytest.raises(ValueError, match="optimizer's parameters are not this model's"):
        fit(model, words, optimizer=optimizer)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_frozen_too(small_model, words, copied):
    model = small_model().freeze("embed.*")
    other = copied(model)
    assert list(other.frozen()) == list(model.frozen())
    assert other.parameters().flat is not None
    fit(model, words)
    fit(other, words)
    assert_same_weights(model, other)


@pytest.mark.parametrize("share_layers", [False, True])
def test_a_file_remembers_it(small_model, words, tmp_path, share_layers):
    model = small_model(share_layers=share_layers).freeze("embed.*", "encoder.blocks.0.mixer.*")
    fit(model, words)
    nf.save(model, tmp_path / "model.safetensors")
    other = nf.load(tmp_path / "model.safetensors")
    assert list(other.frozen()) == list(model.frozen())
    for name, value in values(model).items():
        np.testing.assert_array_equal(other.named_parameters()[name].value, value)
    assert other.parameters().flat is not None
    nf.save(model.unfreeze("*"), tmp_path / "model.safetensors")
    assert not nf.load(tmp_path / "model.safetensors").frozen()


def test_the_summary_says_it(small_model, words):
    model = small_model()
    before = model.n_parameters()
    model.freeze("embed.*", "encoder.blocks.0.mixer.*")
    text = nf.summary(model, words[0])
    assert next(line for line in text.splitlines() if "tokens" in line).endswith("frozen")
    frozen = sum(p.size for p in model.frozen().values())
    assert text.endswith(f"{before - frozen:,} trained parameters, {frozen:,} frozen, float64")
    assert "frozen" not in nf.summary(model.unfreeze("*"), words[0])


def test_a_frozen_parameter_that_is_not_finite_is_named(small_model, words):
    model = small_model().freeze("encoder.blocks.0.*")
    model.frozen()["encoder.blocks.0.mixer.query.weight"].value[1, 2] = np.nan
    named = r"parameter encoder\.blocks\.0\.mixer\.query\.weight"
    with pytest.raises(nf.NonFiniteLossError, match=named):
        fit(model, words)
