"""maskcheck: hidden positions change nothing and get no gradient, and empty rows give no NaN."""

import numpy as np
import pytest

import npformer as nf
from tests.proof.promises.attention import Attention, CausalAttention, softmax

X = np.random.default_rng(0).normal(size=(2, 5, 8))
MASK = np.arange(5) < np.array([[5], [3]])


class LowIsNotLow(Attention):
    low = -5.0


class LowIsInfinite(Attention):
    low = -np.inf


class TrueHides(Attention):
    def hide(self, scores, mask):
        return super().hide(scores, None if mask is None else ~mask)


class HidesQueries(Attention):
    def hide(self, scores, mask):
        return scores if mask is None else np.where(mask[:, :, None], scores, self.low)


class Ignores(Attention):
    def hide(self, scores, mask):
        return scores


class BackwardForgets(Attention):
    def backward(self, dy):
        return super().backward(dy) + 0.1 * dy.mean(axis=1, keepdims=True)


class SeesTheNext(CausalAttention):
    diagonal = 1


class SeesOnlyEarlier(CausalAttention):
    diagonal = -1
    low = -np.inf


class Transposed(CausalAttention):
    def hide(self, scores, mask):
        hidden = super().hide(np.zeros_like(scores), mask) < 0
        return np.where(hidden.transpose(0, 2, 1), self.low, scores)


def attention(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2)
    return softmax(scores if mask is None else scores + mask) @ v


def read_broken_promises(layer, *inputs, **options):
    with pytest.raises(nf.PromiseError) as error:
        nf.maskcheck(layer, *inputs, **options)
    return "\n".join(map(str, error.value.report.broken_promises))


@pytest.mark.parametrize("layer", [Attention(), nf.mixers.Attention(8, 2, seed=0, dtype="float64")])
def test_a_right_mask_passes(layer):
    report = nf.maskcheck(layer, X, mask=MASK)
    assert [promise.is_kept for promise in report.promises] == [True] * 4


@pytest.mark.parametrize(
    "layer", [CausalAttention(), nf.mixers.Attention(8, 2, causal=True, seed=0, dtype="float64")]
)
def test_a_right_causal_mask_passes(layer):
    assert nf.maskcheck(layer, X, causal=True).passed


class SumByFourier:
    """y_t = x_1 + ... + x_t, by the convolution theorem: causal up to rounding."""

    def forward(self, x):
        n = 2 * x.shape[1]
        spectrum = np.fft.rfft(x, n, axis=1)
        ones = np.fft.rfft(np.ones(x.shape[1], x.dtype), n)[:, None]
        return np.fft.irfft(spectrum * ones, n, axis=1)[:, : x.shape[1]].astype(x.dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_leaks_by_rounding_alone_passes(dtype):
    assert nf.maskcheck(SumByFourier(), X.astype(dtype), causal=True).passed


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (LowIsNotLow, "the number that is added to hidden scores is not negative enough"),
        (TrueHides, "the mask is inverted: it hides what it should show"),
        (HidesQueries, "hidden positions change no other output: outputs change by"),
        (Ignores, "hidden positions change no other output: outputs change by"),
        (BackwardForgets, "hidden positions get a gradient of 0: the largest is"),
        (LowIsInfinite, "a sequence without a position gives no NaN: y has NaN"),
    ],
)
def test_a_broken_promise_of_a_mask_is_named(kind, words):
    assert words in read_broken_promises(kind(), X, mask=MASK)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (SeesTheNext, "each position sees the next one: the mask is off by one"),
        (Transposed, "the mask is transposed: each position sees only later ones"),
        (SeesOnlyEarlier, "y has NaN: does position 0 see itself?"),
        (Attention, "no position sees later ones: position 1 changes earlier outputs by"),
    ],
)
def test_a_broken_causal_mask_is_named(kind, words):
    assert words in read_broken_promises(kind(), X, causal=True)


def test_where_true_hides_a_mask_that_was_made_passes_with_a_note():
    assert nf.maskcheck(TrueHides(), X).notes == ["True hides a position here"]


class OfHeads(Attention):
    def hide(self, scores, mask):
        return super().hide(scores, None if mask is None else mask[:, 0, 0])


class Added(Attention):
    def hide(self, scores, mask):
        return scores if mask is None else scores + mask[:, None, :]


class OfNothing(Attention):
    def hide(self, scores, mask):
        raise ValueError("no")


@pytest.mark.parametrize(
    ("kind", "note"),
    [
        (OfHeads, "the mask has an axis of heads and queries"),
        (Added, "the mask is added to scores"),
    ],
)
def test_the_convention_of_a_mask_is_found(kind, note):
    assert nf.maskcheck(kind(), X).notes == [note]


def test_a_layer_that_takes_no_usual_mask_is_refused_in_words():
    with pytest.raises(TypeError, match=r"no mask of a usual kind \(.*pass its own"):
        nf.maskcheck(OfNothing(), X)


def test_a_leak_is_named_although_other_masks_hide():
    class TimesTen(Attention):
        def hide(self, scores, mask):
            return scores if mask is None else scores - 10.0 * (1 - mask[:, None, :])

    assert "not negative enough" in read_broken_promises(TimesTen(), X)


def test_where_true_hides_a_stated_mask_passes():
    assert nf.maskcheck(TrueHides(), X, mask=~MASK, hidden=~MASK).passed


def test_a_mask_that_is_added_to_scores_passes():
    q = np.random.default_rng(0).normal(size=(2, 3, 5, 4))
    added = np.where(MASK, 0.0, -1e9)[:, None, None, :]
    assert nf.maskcheck(attention, q, q, q, mask=added).passed


def test_an_added_mask_that_leaks_is_named():
    q = np.random.default_rng(0).normal(size=(2, 3, 5, 4))
    added = np.where(MASK, 0.0, -9.0)[:, None, None, :]
    assert "not negative enough" in read_broken_promises(attention, q, q, q, mask=added)


def test_a_layer_that_mixes_nothing_is_said_to():
    class Norm:
        def forward(self, x, mask=None):
            return x / np.linalg.norm(x, axis=-1, keepdims=True)

    lines = str(nf.maskcheck(Norm(), X, mask=MASK))
    assert "not tried  shown positions reach others" in lines


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"mask": np.ones((2, 5), bool)}, ValueError, "hides no position or every one"),
        ({"mask": np.ones((2, 5, 5), bool)}, ValueError, "pass hidden="),
        ({"mask": [[True]]}, TypeError, "expected a NumPy array"),
        ({"hidden": MASK}, TypeError, "expected both"),
    ],
)
def test_a_mask_that_says_nothing_is_refused_in_words(options, error, words):
    with pytest.raises(error, match=words):
        nf.maskcheck(Attention(), X, **options)


def test_a_layer_without_a_mask_is_refused_in_words():
    class Linear:
        def forward(self, x):
            return x

    with pytest.raises(TypeError, match="expected an argument such as mask"):
        nf.maskcheck(Linear(), X, mask=MASK)
