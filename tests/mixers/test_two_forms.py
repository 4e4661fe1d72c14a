"""Causal mixers have two forms, of whole sequences and token by token, with the same numbers."""

import dataclasses
import math

import numpy as np
import pytest

import npformer as nf
from npformer.mixers import MIXERS, Mixer, MixerSettings, State, WholeSequenceMixer

D, LENGTH, BATCH = 8, 7, 3
CAUSAL = [
    name
    for name, kind in MIXERS.items()
    if not (isinstance(kind, type) and issubclass(kind, WholeSequenceMixer))
]
SETTINGS = MixerSettings(D, 2, LENGTH, causal=True, mixture=tuple(nf.mixers.SCORES))
OTHERS = {
    "turned": dataclasses.replace(SETTINGS, rope_theta=50.0),
    "in a window": dataclasses.replace(SETTINGS, rope_theta=50.0, window=3, n_kv_heads=1),
    "a window of one": dataclasses.replace(SETTINGS, window=1, d_head=3, bias=False),
    "a wide window": dataclasses.replace(SETTINGS, window=LENGTH + 2, qk_norm=True),
}


@pytest.fixture(params=[*CAUSAL, "mixture, turned", *(f"attention, {name}" for name in OTHERS)])
def plain(request):
    name, *other = request.param.split(", ")
    settings = OTHERS[other[0]] if other else SETTINGS
    mixer = MIXERS.make(name, settings, seed=0, dtype="float64")
    rng = np.random.default_rng(1)
    for value in mixer.parameters().values():
        value += 0.3 * rng.normal(size=value.shape)
    return mixer


@pytest.fixture(params=["plain", "twin"])
def mixer(plain, request):
    return nf.fast(plain) if request.param == "twin" else plain


@pytest.fixture
def x(rng):
    return rng.normal(size=(BATCH, LENGTH, D))


def whole(mixer, x, mask=None):
    return mixer.forward(x, nf.Context(mask=mask))[0]


def assert_close(ours, expected):
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12)


def test_token_by_token_is_the_whole_sequence(mixer, x):
    state = mixer.start(BATCH, LENGTH, x)
    context = nf.Context()
    rows = []
    for t in range(LENGTH):
        assert state.stop == t
        y, state = mixer.step(x[:, t : t + 1], state, context)
        rows.append(y)
    assert_close(np.concatenate(rows, axis=1), whole(mixer, x))


@pytest.mark.parametrize("n", range(LENGTH + 1))
def test_a_sequence_may_come_in_two_parts(mixer, x, n):
    state = mixer.start(BATCH, LENGTH, x)
    expected = whole(mixer, x)
    for tokens in (slice(0, n), slice(n, LENGTH)):
        y, state = mixer.prefill(x[:, tokens], state, nf.Context())
        assert_close(y, expected[:, tokens])
    assert state.stop == LENGTH


def test_rows_of_other_lengths_go_on_from_their_own_last_token(mixer, x):
    lengths = np.array([4, 1, 2])
    mask = np.arange(4) < lengths[:, None]
    state = mixer.start(BATCH, LENGTH, x)
    beginning = np.where(mask[..., None], x[:, :4], np.nan)
    y, state = mixer.prefill(beginning, state, nf.Context(mask=mask))
    expected = whole(mixer, x)
    assert_close(y[mask], expected[:, :4][mask])
    for k in range(3):
        np.testing.assert_array_equal(state.stop, lengths + k)
        y, state = mixer.step(x[np.arange(BATCH), lengths + k][:, None], state, nf.Context())
        assert_close(y[:, 0], expected[np.arange(BATCH), lengths + k])


def test_a_state_that_is_gone_on_from_twice_stays_as_it_was(mixer, x):
    _, state = mixer.prefill(x[:, :3], mixer.start(BATCH, LENGTH, x), nf.Context())
    first, after = mixer.step(x[:, 3:4], state, nf.Context())
    other, _ = mixer.step(x[:, 5:6], state, nf.Context())
    again, _ = mixer.step(x[:, 3:4], state, nf.Context())
    np.testing.assert_array_equal(again, first)
    assert_close(first, whole(mixer, x)[:, 3:4])
    assert_close(other, whole(mixer, np.concatenate([x[:, :3], x[:, 5:6]], axis=1))[:, 3:])
    y, _ = mixer.step(x[:, 4:5], after, nf.Context())
    assert_close(y, whole(mixer, x)[:, 4:5])


def test_rows_of_a_state_are_those_of_a_search(mixer, x):
    _, state = mixer.prefill(x[:, :4], mixer.start(BATCH, LENGTH, x), nf.Context())
    best = np.array([2, 2, 0, 1])
    y, _ = mixer.step(x[best, 4:5], state.select(best), nf.Context())
    assert_close(y, whole(mixer, x[best])[:, 4:5])


def test_what_comes_later_changes_nothing(mixer, x):
    expected = whole(mixer, x)
    for t in range(1, LENGTH):
        changed = x.copy()
        changed[:, t:] += 1.0
        # to rounding, for a Fourier transform takes the whole sequence and cuts it
        np.testing.assert_allclose(whole(mixer, changed)[:, :t], expected[:, :t], atol=1e-13)


def test_the_bytes_of_a_state_are_known_before(mixer, x):
    bytes_of_a_row = x.itemsize * sum(map(math.prod, mixer.state_shapes(LENGTH, D).values()))
    assert mixer.start(BATCH, LENGTH, x).nbytes == BATCH * bytes_of_a_row


class Shifted(Mixer):
    """A user's mixer, which says how a whole sequence is mixed and nothing else."""

    causal = True

    @classmethod
    def build(cls, settings, *, seed, dtype):
        return cls()

    def forward(self, x, context):
        x = x if context.mask is None else np.where(context.mask[..., None], x, 0.0)
        return np.cumsum(x, axis=1), None

    def backward(self, dy, cache, gradients):
        return np.flip(np.cumsum(np.flip(dy, 1), axis=1), 1)

    def explain(self, x, context):
        return np.tri(x.shape[1])[None, None]


def test_a_mixer_of_a_user_is_computed_anew(x):
    mixer = Shifted()
    lengths = np.array([3, 1, 2])
    mask = np.arange(3) < lengths[:, None]
    with pytest.warns(UserWarning, match="Shifted does not define how to continue") as warnings:
        y, state = mixer.prefill(x[:, :3], mixer.start(BATCH, LENGTH, x), nf.Context(mask=mask))
    assert len(warnings) == 1  # and the step below says nothing
    assert_close(y[mask], np.cumsum(x, axis=1)[:, :3][mask])
    y, _ = mixer.step(x[np.arange(BATCH), lengths][:, None], state, nf.Context())
    assert_close(y[:, 0], np.cumsum(x, axis=1)[np.arange(BATCH), lengths])


def test_one_token_at_a_time_is_asked_for(mixer, x):
    with pytest.raises(ValueError, match=r"x has shape \(3, 7, 8\); expected \(\.\.\., 1, d_model"):
        mixer.step(x, mixer.start(BATCH, LENGTH, x), nf.Context())


def test_a_state_has_the_dtype_of_an_array():
    state = State.empty({"x": (2, 3)}, 4, np.zeros((1, 3), "float32"))
    assert (state["x"].shape, state["x"].dtype) == ((4, 2, 3), np.float32)


def test_an_empty_state_begins_at_the_first_token():
    state = State.empty({"x": (2, 3)}, 4, np.zeros((1, 3), "float32"))
    assert (state.begin, state.stop, state.longest) == (0, 0, 0)


class SeesLater(nf.mixers.Identity):
    """Token i takes from token i + 1."""

    @classmethod
    def build(cls, settings, *, seed, dtype):
        return cls()

    def forward(self, x, context):
        return x + 0.01 * np.roll(x, -1, axis=1), ()


def test_building_a_causal_mixer_probes_that_it_does_not_look_ahead(monkeypatch):
    monkeypatch.setitem(nf.MIXERS, "sees_later", SeesLater)
    config = nf.EncoderConfig(d_model=4, n_layers=1, n_heads=2, mixer="sees_later", causal=True)
    with pytest.raises(ValueError, match=r"SeesLater is not causal: token 1 .* by 0\.\d+"):
        nf.LanguageModel(config, vocab_size=5)
    nf.Encoder(dataclasses.replace(config, causal=False))
