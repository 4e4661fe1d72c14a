"""Parts of a training step: the same masks whoever computes them, and independent ones."""

import copy
import pickle

import numpy as np
import pytest

from npformer import functional as F
from npformer.core import Context, part_generator, step_key
from npformer.core.cut_masks import Cut
from npformer.functional.dropout import draw_kept

KEY, TOTAL = 5, 7
SHAPES = [(7, 5, 3), (7, 8), (7,), (21, 8), (14, 3, 2), (7, 0)]
"""Of masks of seven samples: also with several rows for each, and rows of no whole words."""

SHARES = [[7], [3, 4], [1, 1, 5], [1] * 7]


def masks(shapes, share, rate=0.4):
    """Return the masks of the whole batch, drawn in parts of so many samples."""
    masks_of_parts, first = [], 0
    for n in share:
        generator = part_generator(KEY, first, n)
        sizes = [(len_of * n // TOTAL, *rest) for len_of, *rest in shapes]
        masks_of_parts.append([draw_kept(size, rate, generator) for size in sizes])
        first += n
    return [np.concatenate(of_parts) for of_parts in zip(*masks_of_parts, strict=True)]


@pytest.mark.parametrize("share", SHARES[1:], ids=str)
def test_masks_of_a_part_are_those_of_its_samples_in_the_whole_batch(share):
    for mask, mask_of_batch in zip(masks(SHAPES, share), masks(SHAPES, [TOTAL]), strict=True):
        np.testing.assert_array_equal(mask, mask_of_batch)


def test_a_plain_generator_draws_the_mask_of_a_whole_batch():
    for shape in SHAPES:
        plain = draw_kept(shape, 0.4, np.random.Generator(np.random.PCG64(KEY)))
        np.testing.assert_array_equal(masks([shape], [TOTAL])[0], plain)


def test_each_mask_has_a_stream_of_its_own():
    drawn = masks(SHAPES, [TOTAL])
    for call, (shape, mask) in enumerate(zip(SHAPES, drawn, strict=True)):
        stream = np.random.PCG64(KEY).jumped(call) if call else np.random.PCG64(KEY)
        np.testing.assert_array_equal(mask, draw_kept(shape, 0.4, np.random.Generator(stream)))


def test_masks_of_other_samples_calls_and_steps_are_independent():
    caller, entries = np.random.default_rng(0), 512
    drawn = []
    for _ in range(12):
        key = step_key(caller)
        for first in (0, 4):
            generator = part_generator(key, first, 4)
            drawn += [draw_kept((4, entries), 0.5, generator) for _ in range(6)]
    signs = 2.0 * np.concatenate(drawn) - 1.0
    correlations = (signs @ signs.T / entries)[np.triu_indices(len(signs), k=1)]
    assert np.abs(correlations).max() < 6.0 / np.sqrt(entries)
    assert np.mean(correlations**2) * entries == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("rate", [0.1, 0.5, 1 / 512])
def test_the_rate_is_exact_in_each_part(rate):
    calls, n = 400, 2048
    for first in (0, 3):
        generator = part_generator(KEY, first, 2)
        dropped = sum(
            2 * n - np.count_nonzero(draw_kept((2, n), rate, generator)) for _ in range(calls)
        )
        rounded = 256.0 * rate % 1.0
        between, within = rounded * (1.0 - rounded) / 256.0**2, rate * (1.0 - rate) / (2 * n)
        assert abs(dropped / (calls * 2 * n) - rate) < 4.0 * np.sqrt((between + within) / calls)


def test_a_step_takes_one_draw_from_the_callers_generator():
    caller, same = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(3):
        assert step_key(caller) == int(same.integers(1 << 63))
    assert caller.bit_generator.state == same.bit_generator.state
    assert caller.bit_generator.seed_seq.n_children_spawned == 0


def test_layers_that_draw_by_themselves_get_other_numbers_in_each_part_and_the_same_masks():
    generators = [part_generator(KEY, first, 1) for first in range(3)]
    assert len({generator.random() for generator in generators}) == 3
    assert part_generator(KEY, 1, 1).random() == part_generator(KEY, 1, 5).random()
    fresh = draw_kept((1, 64), 0.5, part_generator(KEY, 2, 1))
    np.testing.assert_array_equal(draw_kept((1, 64), 0.5, generators[2]), fresh)


def test_what_is_shared_is_drawn_alike_in_all_parts_and_moves_no_other_mask():
    mask_of_batch = masks([(7, 64)], [TOTAL], rate=0.5)[0]
    weights = []
    for first, n in ((0, 3), (3, 1), (4, 3)):
        context = Context(training=True, generator=part_generator(KEY, first, n))
        shared = context.dropout_generator(shared=True)
        weights.append([F.dropout(np.ones((3, 64)), 0.5, shared)[0] for _ in range(2)])
        mask = draw_kept((n, 64), 0.5, context.dropout_generator())
        np.testing.assert_array_equal(mask, mask_of_batch[first : first + n])
    assert (weights[0][0] != weights[0][1]).any()
    np.testing.assert_array_equal(weights[1], weights[0])
    np.testing.assert_array_equal(weights[2], weights[0])


def test_rows_that_no_sample_owns_are_the_same_in_all_parts():
    drawn = [draw_kept((5, 8), 0.5, part_generator(KEY, first, 2)) for first in (0, 2, 4)]
    np.testing.assert_array_equal(drawn[1], drawn[0])
    np.testing.assert_array_equal(drawn[2], drawn[0])


def test_a_plain_generator_is_shared_as_it_is():
    generator = np.random.default_rng(0)
    assert Context(True, generator).dropout_generator(shared=True) is generator
    assert Context(False, generator).dropout_generator(shared=True) is None


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda generator: pickle.loads(pickle.dumps(generator))]
)
def test_a_copy_goes_on_as_the_original_does(copied):
    generator = part_generator(KEY, 2, 3)
    for _ in range(2):  # before and after the first draws
        other = copied(generator)
        np.testing.assert_array_equal(
            draw_kept((3, 9), 0.5, other), draw_kept((3, 9), 0.5, generator)
        )
        assert other.random() == generator.random()
        assert other.shared.random() == generator.shared.random()


def test_children_are_plain_generators():
    children = part_generator(KEY, 2, 3).spawn(2)
    assert [type(child) for child in children] == 2 * [np.random.Generator]
    assert children[0].random() != children[1].random()


CUT, WHOLE = 6, 11


@pytest.mark.parametrize("skipped", [1 << 13, 8])
def test_rows_that_are_tokens_are_left_out_as_well(skipped, monkeypatch):
    monkeypatch.setattr("npformer.core.generator_of_part.SKIPPED", skipped)
    mask = draw_kept((TOTAL * WHOLE, 5), 0.4, part_generator(KEY, 0, TOTAL))
    generator = part_generator(KEY, 3, 4, Cut((CUT,), (WHOLE,)))
    cut_mask = draw_kept((4 * CUT, 5), 0.4, generator).reshape(4, CUT, 5)
    np.testing.assert_array_equal(cut_mask, mask.reshape(TOTAL, WHOLE, 5)[3:, :CUT])


def test_long_rows_are_skipped_and_not_drawn():
    shape = 2, 300, 200
    mask = draw_kept(shape, 0.4, part_generator(KEY, 0, 2))
    generator, drawn = part_generator(KEY, 1, 1, Cut((3,), (300,))), []

    class Counting:
        def __init__(self, bits):
            self.advance, self.bits = bits.advance, bits

        def random_raw(self, *size):
            drawn.append(sum(size))
            return self.bits.random_raw(*size)

    generator.masks = Counting(generator.masks)
    np.testing.assert_array_equal(draw_kept((1, 3, 200), 0.4, generator), mask[1:, :3])
    assert sum(drawn) == 3 * 200 // 8
