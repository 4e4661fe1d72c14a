"""The last map of a language model with its loss, a block of rows at a time: when, and the same."""

import numpy as np
import pytest
from npformer.losses import SoftmaxCrossEntropy

import npformer as nf
from npformer import layers as L
from npformer.engine import fast_outputs
from npformer.engine import team as engine_team
from npformer.engine.cpu import linear_cross_entropy as kernel
from tests.engine.users import Scaled

N_TOKENS = 13
BOUNDS = {"float64": 1e-11, "float32": 2e-5}


@pytest.fixture
def by_rows(monkeypatch):
    """Have any number of logits computed in blocks of a few rows; note each such computation."""
    calls, accumulate = [], fast_outputs.accumulate_by_rows

    def note_call(*arguments):
        calls.append(arguments)
        return accumulate(*arguments)

    monkeypatch.setattr(engine_team, "accumulate_by_rows", note_call)
    monkeypatch.setattr(fast_outputs, "LARGE", 0)
    monkeypatch.setattr(kernel, "ROWS", 5)
    return calls


def config(**changes):
    return nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=12, max_len=9, **changes)


def language_model(dtype="float64", **options):
    causal = config(causal=True, dropout=0.2)
    return nf.LanguageModel(causal, N_TOKENS, seed=0, dtype=dtype, **options)


def masked_model(dtype="float64", **options):
    return nf.MaskedLanguageModel(config(dropout=0.2), N_TOKENS, seed=0, dtype=dtype, **options)


def encoder_decoder(dtype="float64", **options):
    return nf.EncoderDecoder(
        config(dropout=0.2), N_TOKENS, N_TOKENS, seed=0, dtype=dtype, **options
    )


MODELS = {
    "language model, tied": (language_model, {"tied": True}),
    "language model, separate map": (language_model, {"tied": False}),
    "masked language model, tied": (masked_model, {"tied": True}),
    "masked language model, no bias": (masked_model, {"output_bias": False}),
    "masked language model, separate map": (masked_model, {"tied": False}),
    "encoder-decoder, separate map": (encoder_decoder, {}),
    "encoder-decoder, tied with a bias": (encoder_decoder, {"tied": True, "output_bias": True}),
}
models = pytest.mark.parametrize(("make", "options"), MODELS.values(), ids=MODELS)


def data_of(model):
    """Return x and y for a step: -1 in y for a language model, padding for a decoder."""
    rng = np.random.default_rng(1)
    ids = rng.integers(3, N_TOKENS, (4, 8))
    if isinstance(model, nf.EncoderDecoder):
        ids[1, 5:] = 0
        return (ids, ids), None
    y = rng.integers(0, N_TOKENS, (4, 8))
    y[:, 1::3] = -1
    y[2] = -1
    return ids, y


def step_of(model, **options):
    """Return the loss and the gradients of a step."""
    x, y = data_of(model)
    if isinstance(model, nf.EncoderDecoder):
        x, y = (x[0], x[1][:, :-1]), x[1][:, 1:]
    return model.loss_and_gradients(x, y, seed=3, **options)


def assert_as_without_kernels(model, **options):
    loss, gradients = step_of(model, **options)
    flat = gradients.flat.copy()
    with nf.use_kernels(False):
        plain_loss, plain_gradients = step_of(model, **options)
    bound = BOUNDS[model.dtype]
    assert loss == pytest.approx(plain_loss, rel=bound)
    scale = np.abs(plain_gradients.flat).max()
    np.testing.assert_allclose(flat, plain_gradients.flat, rtol=0, atol=bound * scale)
    assert scale > 0.0


@models
@pytest.mark.parametrize("dtype", BOUNDS)
def test_loss_and_gradients_are_those_of_the_plain_passes(by_rows, make, options, dtype):
    assert_as_without_kernels(make(dtype, **options))
    assert len(by_rows) == 1


@models
@pytest.mark.parametrize(
    ("sharing", "n_calls"),
    [({"workers": 2}, 2), ({"micro_batch": 3}, 2), ({"workers": 2, "micro_batch": 1}, 4)],
    ids=["workers", "micro-batches", "both"],
)
def test_shared_batches_have_the_same_gradients(by_rows, make, options, sharing, n_calls):
    assert_as_without_kernels(make(**options), **sharing)
    assert len(by_rows) == n_calls


@models
def test_label_smoothing(by_rows, make, options):
    assert_as_without_kernels(make(**options), label_smoothing=0.1)
    assert len(by_rows) == 1


def test_threads_that_share_calls_change_no_number(by_rows, monkeypatch):
    monkeypatch.setattr(engine_team, "choose_threads", lambda *_: 3)
    assert_as_without_kernels(language_model())
    assert by_rows[0][3].threads == 3


def test_the_same_step_has_the_same_bits(by_rows):
    model = language_model("float32")
    first = step_of(model, workers=2)[1].flat.copy()
    np.testing.assert_array_equal(step_of(model, workers=2)[1].flat, first)


def freeze_table(model):
    model.embed.tokens.weight.trainable = False


def freeze_bias(model):
    model.output.bias.trainable = False


@pytest.mark.parametrize("freeze", [freeze_table, freeze_bias])
def test_what_is_frozen_gets_no_gradient(by_rows, freeze):
    model = masked_model()
    freeze(model)
    assert_as_without_kernels(model)
    assert len(by_rows) == 1


def test_a_batch_without_any_label_has_no_gradient(by_rows):
    model = language_model()
    x, y = data_of(model)
    loss, gradients = model.loss_and_gradients(x, np.full_like(y, -1), seed=0)
    assert loss == 0.0
    np.testing.assert_array_equal(gradients.flat, 0.0)
    assert len(by_rows) == 1


@pytest.mark.parametrize("label", [-2, N_TOKENS])
def test_a_label_out_of_range_is_refused_as_by_the_plain_passes(by_rows, label):
    model = language_model()
    x, y = data_of(model)
    batch = model.batch(x, y)
    batch.y[0, 0] = label  # after the checks of the model, so that the loss has to notice
    with nf.use_kernels(False), pytest.raises(ValueError, match="labels") as by_plain_passes:
        engine_team.Team(model).step(batch, np.random.default_rng(0))
    with pytest.raises(ValueError, match="labels") as by_blocks:
        engine_team.Team(model).step(batch, np.random.default_rng(0))
    assert str(by_blocks.value) == str(by_plain_passes.value)
    assert len(by_rows) == 1


def test_nan_in_a_weight_shows_in_the_loss(by_rows):
    model = language_model()
    model.encoder.blocks[0].feed_forward.expand.weight.value[0, 0] = np.nan
    assert np.isnan(step_of(model)[0])
    assert len(by_rows) == 1


# When it is used --------------------------------------------------------------------------------
class OwnLoss(SoftmaxCrossEntropy):
    """Twice the loss."""

    def forward(self, outputs, y, weights=None):
        loss, cache = super().forward(outputs, y, weights)
        return 2.0 * loss, cache

    def backward(self, dloss, cache):
        return super().backward(2.0 * dloss, cache)


class OwnModel(nf.LanguageModel):
    """Twice the logits."""

    def forward(self, x, context):
        logits, cache = super().forward(x, context)
        return 2.0 * logits, cache

    def backward(self, dy, cache, gradients):
        return super().backward(2.0 * dy, cache, gradients)


def subclassed_map(model):
    model.output = Scaled(8, N_TOKENS, seed=1, dtype="float64")
    model.flatten()


def own_pass_of_the_map(model):
    plain = model.output.forward
    model.output.forward = lambda x, context: plain(0.5 * x, context)
    model.output.backward = lambda *given: 0.5 * type(model.output).backward(model.output, *given)


def own_pass_of_the_model(model):
    plain = model.forward
    model.forward = lambda x, context: plain(x[:, ::-1], context)


def maps_in_a_row(model):
    model.output = L.Sequential(model.output, L.Linear(N_TOKENS, N_TOKENS, seed=1, dtype="float64"))
    model.flatten()


CHANGES = {
    "a subclassed map": subclassed_map,
    "a pass of the map's own": own_pass_of_the_map,
    "a pass of the model's own": own_pass_of_the_model,
    "maps in a row": maps_in_a_row,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_user_puts_at_the_end_runs(by_rows, change):
    model = language_model(tied=False)
    before = step_of(model)[0]
    by_rows.clear()
    change(model)
    assert_as_without_kernels(model)
    assert step_of(model)[0] != pytest.approx(before, rel=1e-4)
    assert not by_rows


def test_another_map_of_the_same_class_runs_by_rows(by_rows):
    model = language_model()
    step_of(model)
    model.output = L.Linear(8, N_TOKENS, seed=1, dtype="float64")
    model.flatten()
    assert_as_without_kernels(model)
    assert len(by_rows) == 2


def test_a_subclass_with_passes_of_its_own_runs(by_rows):
    assert_as_without_kernels(OwnModel(config(causal=True), N_TOKENS, seed=0, dtype="float64"))
    assert not by_rows


def own_pass_of_a_loss():
    loss, plain = SoftmaxCrossEntropy(), SoftmaxCrossEntropy()
    loss.backward = lambda dloss, cache: plain.backward(3.0 * dloss, cache)
    return loss


@pytest.mark.parametrize(
    "make_loss",
    [
        OwnLoss,
        own_pass_of_a_loss,
        lambda: SoftmaxCrossEntropy(class_weight=[1.0, 2.0] + 11 * [3.0]),
    ],
    ids=["subclass", "pass of its own", "class weights"],
)
def test_another_loss_runs_as_written(by_rows, make_loss):
    assert_as_without_kernels(language_model(), loss=make_loss())
    assert not by_rows


def test_sample_weights_are_left_to_the_loss(by_rows):
    assert_as_without_kernels(language_model(), sample_weight=np.arange(1.0, 5.0))
    assert not by_rows


def test_a_classifier_has_its_outputs(by_rows):
    model = nf.SequenceClassifier(config(), n_classes=3, vocab_size=N_TOKENS)
    model.loss_and_gradients(data_of(language_model())[0], np.zeros(4, int))
    assert not by_rows


@pytest.mark.parametrize("of", [lambda model: model, nf.fast], ids=["model", "twin"])
def test_nothing_is_computed_by_rows_without_kernels(by_rows, of):
    model = of(language_model())
    with nf.use_kernels(False):
        step_of(model, workers=2)
    assert not by_rows


def test_a_few_logits_are_computed_at_once(by_rows, monkeypatch):
    model = language_model()
    x, y = data_of(model)
    for more in (1, 0):
        monkeypatch.setattr(fast_outputs, "LARGE", y.size * N_TOKENS + more)
        assert not by_rows
        model.loss_and_gradients(x, y, seed=0)
    assert len(by_rows) == 1
