"""Invariants of models that write: see `npformer.learn.museum.invariants`."""

# mypy: disable-error-code="type-abstract"

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.core import Context, Padding
from npformer.layers import CrossAttention, Positions
from npformer.layers.state import State
from npformer.learn.museum.probes import N_HEADS, TOKENS, WIDTH
from npformer.mixers import GeneralAttention, Mixer, MixerSettings
from npformer.proof.cases.case import SEEDED, draw


def a_causal_mixer_sees_no_later_token(kind: type[Mixer]) -> None:
    """In a mixer built with causal=True, no token's result depends on a later token."""
    mixer = kind.build(MixerSettings(WIDTH, N_HEADS, max_len=8, causal=True), **SEEDED)
    y = mixer(TOKENS)
    for t in range(1, TOKENS.shape[1]):
        later = TOKENS.copy()
        later[:, t:] = draw(*later[:, t:].shape, seed=t)
        np.testing.assert_allclose(mixer(later)[:, :t], y[:, :t], rtol=0, atol=1e-12)


def each_label_is_the_next_token(windows: Callable[..., Any]) -> None:
    """In windows of a text, the label of each token is the one that follows it."""
    x, y = windows(np.arange(13), 4)
    np.testing.assert_array_equal(y[y >= 0], x[y >= 0] + 1)


def positions_go_on_behind_a_cache(kind: type[Positions]) -> None:
    """Token by token, positions are those of the whole sequence."""
    layer = kind(6, WIDTH, **SEEDED)
    whole = layer(TOKENS)
    for t in range(TOKENS.shape[1]):
        np.testing.assert_array_equal(
            layer.forward_from(TOKENS[:, t : t + 1], t), whole[:, t : t + 1]
        )


def a_query_behind_a_cache_sees_all_of_it(attend: Callable[..., Any]) -> None:
    """The last query alone, with all keys, gets what the whole pass gives it."""
    q, k, v = (draw(5, WIDTH, seed=seed) for seed in range(3))
    whole, _ = attend(q, k, v, causal=True)
    alone, _ = attend(q[-1:], k, v, causal=True, begin=4)
    np.testing.assert_allclose(alone, whole[-1:], rtol=0, atol=1e-12)


def a_state_follows_its_beams(kind: type[State]) -> None:
    """The state of selected rows holds what was kept of these rows."""
    state = kind.empty({"key": (4, WIDTH)}, 2, TOKENS).extend(4, Context(), key=TOKENS)
    state = kind({"key": state["key"]}, 0, 4)
    found = state.select(np.array([1, 1]))
    np.testing.assert_array_equal(found.so_far("key"), TOKENS[[1, 1]])


def padding_of_a_memory_changes_nothing(kind: type[CrossAttention]) -> None:
    """What a target reads in a memory is the same with padding as without."""
    layer = kind(WIDTH, N_HEADS, **SEEDED)
    memory = draw(2, 5, WIDTH, seed=1)
    kept = np.arange(5) < np.array([[5], [3]])
    padded, _ = layer.forward(TOKENS, memory, Context(memory_padding=Padding(kept)))
    alone, _ = layer.forward(TOKENS[1:], memory[1:, :3], Context())
    np.testing.assert_allclose(padded[1:], alone, rtol=0, atol=1e-12)


def only_distances_count_in_rotary_attention(kind: type[GeneralAttention]) -> None:
    """Rotary attention gives tokens that stand further on what it gives them at the beginning."""
    layer = kind(WIDTH, N_HEADS, rope_theta=7.0, **SEEDED)
    moved = np.concatenate([draw(2, 3, WIDTH, seed=1), TOKENS], axis=1)
    mask = np.broadcast_to(np.arange(7) >= 3, (2, 7))
    np.testing.assert_allclose(layer(moved, mask)[:, 3:], layer(TOKENS), rtol=0, atol=1e-12)


def a_cache_changes_no_turned_token(kind: type[GeneralAttention]) -> None:
    """Token by token, rotary attention computes what it computes of the whole sequence."""
    layer = kind(WIDTH, N_HEADS, causal=True, rope_theta=7.0, **SEEDED)
    state = layer.start(2, 4, TOKENS)
    for t, expected in enumerate(layer(TOKENS).swapaxes(0, 1)):
        y, state = layer.step(TOKENS[:, t : t + 1], state, Context())
        np.testing.assert_allclose(y[:, 0], expected, rtol=0, atol=1e-12)


def rotary_pairs_are_halves(kind: type[GeneralAttention]) -> None:
    """The fastest pair of a head is its first feature and the first of its second half."""
    layer, d_head = kind(WIDTH, 1, rope_theta=1e12, **SEEDED), WIDTH
    query = np.zeros((1, 1, 2, d_head))
    query[..., [0, d_head // 2]] = 1.0  # at position 1 the other pairs have hardly turned
    turned = layer.rotate(query)[0][0, 0, 1]
    pair = np.cos(1.0) - np.sin(1.0), np.sin(1.0) + np.cos(1.0)
    np.testing.assert_allclose(turned[[0, d_head // 2]], pair, rtol=0, atol=1e-12)
