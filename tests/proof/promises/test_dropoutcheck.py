"""dropoutcheck: the mean, the mask of the backward pass, evaluation, and new masks."""

import numpy as np
import pytest

import npformer as nf


class Dropout:
    """Right, with a mask that is drawn from a generator of its own."""

    def __init__(self, p=0.2):
        self.p = p
        self.training = True
        self.rng = np.random.default_rng(0)

    def draw(self, shape):
        return (self.rng.random(shape) >= self.p) / (1.0 - self.p)

    def forward(self, x):
        if not self.training:
            return x
        self.mask = self.draw(x.shape)
        return x * self.mask

    def backward(self, dy):
        return dy * self.mask


class ScaledByOneOverP(Dropout):
    def draw(self, shape):
        return (self.rng.random(shape) >= self.p) / self.p


class NotScaled(Dropout):
    def draw(self, shape):
        return (self.rng.random(shape) >= self.p) * 1.0


class MultipliedByWhatIsKept(Dropout):
    def draw(self, shape):
        return (self.rng.random(shape) >= self.p) * (1.0 - self.p)


class ScaledTwice(Dropout):
    def draw(self, shape):
        return super().draw(shape) / (1.0 - self.p)


class OfTheShareThatIsKept(Dropout):
    def draw(self, shape):
        return (self.rng.random(shape) < self.p) / self.p


class DropsNothing(Dropout):
    def draw(self, shape):
        return np.ones(shape)


class SameMask(Dropout):
    def draw(self, shape):
        self.rng = np.random.default_rng(1)
        return super().draw(shape)


class AlsoAtEvaluation(Dropout):
    def forward(self, x):
        self.mask = self.draw(x.shape)
        return x * self.mask


class ScaledTwiceAtEvaluation(Dropout):
    def forward(self, x):
        return super().forward(x) if self.training else x * (1.0 - self.p)


class BackwardWithoutMask(Dropout):
    def backward(self, dy):
        return dy


class BackwardWithAnotherMask(Dropout):
    def backward(self, dy):
        return dy * self.draw(dy.shape)


class BackwardWithoutScale(Dropout):
    def backward(self, dy):
        return dy * (self.mask > 0)


class ForwardWithoutScale(Dropout):
    def forward(self, x):
        return super().forward(x) * ((1.0 - self.p) if self.training else 1.0)


class BackwardScaledTwice(Dropout):
    def backward(self, dy):
        return dy * self.mask**2


class BackwardTurnedAround(Dropout):
    def backward(self, dy):
        return dy * (self.mask == 0)


class InPlace(Dropout):
    def forward(self, x):
        if self.training:
            self.mask = self.draw(x.shape)
            x *= self.mask
        return x


class ScaledAtEvaluation:
    """The form of 2014: a flag is passed, and evaluation scales."""

    def __init__(self, dropout_ratio=0.5):
        self.dropout_ratio = dropout_ratio
        self.rng = np.random.default_rng(0)

    def forward(self, x, train_flg=True):
        if not train_flg:
            return x * (1.0 - self.dropout_ratio)
        self.mask = self.rng.random(x.shape) > self.dropout_ratio
        return x * self.mask

    def backward(self, dout):
        return dout * self.mask


class KeepsResultsAsAttributes:
    def __init__(self, rate):
        self.rate = 1 - rate
        self.rng = np.random.default_rng(0)

    def forward(self, inputs, training):
        self.output = inputs.copy()
        if training:
            self.mask = self.rng.binomial(1, self.rate, size=inputs.shape) / self.rate
            self.output = inputs * self.mask

    def backward(self, dvalues):
        self.dinputs = dvalues * self.mask


def dropout_forward(x, dropout_param):
    p, mode = dropout_param["p"], dropout_param["mode"]
    if mode == "test":
        return x, (mode, None)
    mask = (np.random.default_rng(x.size).random(x.shape) < p) / p
    mask = np.random.permutation(mask.ravel()).reshape(x.shape)  # noqa: NPY002
    return x * mask, (mode, mask)


def dropout_backward(dout, cache):
    mode, mask = cache
    return dout if mode == "test" else dout * mask


def read_broken_promise(layer, **options):
    """Return what is said of the one promise that is broken."""
    with pytest.raises(nf.PromiseError) as error:
        nf.dropoutcheck(layer, **options)
    (promise,) = error.value.report.broken_promises
    return str(promise)


@pytest.mark.parametrize(
    "layer",
    [
        nf.layers.Dropout(0.2),
        nf.layers.Dropout(0.5),
        nf.functional.dropout,
        Dropout(),
        Dropout(0.5),
        Dropout(0.8),
        Dropout,
        ScaledAtEvaluation(),
        KeepsResultsAsAttributes(0.1),
        dropout_forward,
        (dropout_forward, dropout_backward),
    ],
)
def test_right_dropout_passes(layer):
    assert nf.dropoutcheck(layer).passed


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (ScaledByOneOverP, "keeps the mean: scaled by 1/p, not 1/(1-p)"),
        (NotScaled, "keeps the mean: not scaled; the mean of y is 0.8"),
        (MultipliedByWhatIsKept, "keeps the mean: multiplied by 1-p, not divided"),
        (ScaledTwice, "keeps the mean: scaled by 1/(1-p) twice"),
        (DropsNothing, "drops a share of the entries: no entry is 0"),
        (SameMask, "each call draws another mask: two calls drop the same entries"),
        (AlsoAtEvaluation, "evaluation changes nothing: it drops entries at evaluation, too"),
        (ScaledTwiceAtEvaluation, "y is 0.8 x at evaluation, although training scales, too"),
        (BackwardWithoutMask, "it returns dy: the mask is left out"),
        (BackwardWithAnotherMask, "it has another mask than forward"),
        (BackwardWithoutScale, "it does not scale: forward multiplies by 1.25"),
        (BackwardScaledTwice, "it scales twice"),
        (BackwardTurnedAround, "it passes what forward dropped, and drops the rest"),
        (InPlace, "x is left as it was: a forward pass changes its input"),
    ],
)
def test_a_broken_promise_of_dropout_is_named(kind, words):
    assert words in read_broken_promise(kind(0.2))


def test_the_share_that_is_kept_is_a_note_under_the_name_of_a_rate():
    report = nf.dropoutcheck(OfTheShareThatIsKept(0.2))
    assert report.notes == ["p is the share that is kept, not the share that is dropped"]


def test_the_share_that_is_kept_breaks_a_stated_rate():
    assert "not 0.2: p is the share that is kept" in read_broken_promise(
        OfTheShareThatIsKept(0.2), rate=0.2
    )


def test_a_wrong_rate_is_broken():
    assert "are dropped, not 0.22" in read_broken_promise(Dropout(0.2), rate=0.22)


def test_a_scale_of_the_backward_pass_alone_is_measured():
    with pytest.raises(nf.PromiseError, match=r"by 1\.25, and forward by 1"):
        nf.dropoutcheck(ForwardWithoutScale(0.2))


def test_one_over_p_shows_although_the_rate_is_one_half():
    assert "scaled by 1/p, not 1/(1-p)" in read_broken_promise(ScaledByOneOverP(0.5))


def test_one_half_stays_in_the_layer():
    layer = Dropout(0.5)
    nf.dropoutcheck(layer)
    assert layer.p == 0.5


def test_one_mask_for_all_samples_is_a_note():
    class OneMask(Dropout):
        def draw(self, shape):
            return np.broadcast_to(super().draw(shape[1:]), shape)

    assert nf.dropoutcheck(OneMask()).notes == ["all samples of the batch have the same mask"]


def test_what_was_not_tried_is_said():
    class WithoutBackward:
        def __init__(self):
            self.rng = np.random.default_rng(0)

        def __call__(self, x):
            return x * (self.rng.random(x.shape) < 0.8) / 0.8

    lines = str(nf.dropoutcheck(WithoutBackward()))
    assert "not tried  backward uses the mask and the scale of forward" in lines
    assert "not tried  evaluation changes nothing: no switch" in lines


@pytest.mark.parametrize(
    "layer", [3, object(), type("Layer", (), {"forward": lambda s, x: None})()]
)
def test_what_is_no_layer_is_refused_in_words(layer):
    with pytest.raises(TypeError, match="expected"):
        nf.dropoutcheck(layer)
