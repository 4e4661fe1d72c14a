"""Generated tasks: every label again, by slow and different means."""

import numpy as np
import pytest

from npformer.data import majority, parity, pointer, recall, reverse


def small(task, seed=0, **options):
    return task(seed, train=300, **options)


def parts(data):
    return data.train, data.validation, data.test


def reversed_tokens(tokens):
    return list(reversed(tokens))


def more_frequent(tokens):
    return sorted(tokens)[len(tokens) // 2]  # the median of an odd number of zeros and ones


def looked_up(tokens, keys=128):
    """Pairs are tokens 8 key + value; queries, the tokens of the keys alone, begin behind those."""
    value_of = dict(divmod(token, 8) for token in tokens if token < 8 * keys)
    return [value_of[token - 8 * keys] if token >= 8 * keys else -1 for token in tokens]


def pointed_at(tokens, symbols=8):
    *content, last = tokens
    return [-1] * len(content) + [content[last - symbols]]


def odd(tokens):
    return int(f"{tokens.count(1):b}"[-1])


SLOW = {
    reverse: reversed_tokens,
    majority: more_frequent,
    recall: looked_up,
    pointer: pointed_at,
    parity: odd,
}


@pytest.fixture(params=SLOW, ids=lambda task: task.__name__)
def task(request):
    return request.param


@pytest.mark.parametrize(
    ("task", "options", "slow"),
    [
        (reverse, {"length": 5, "symbols": 3}, reversed_tokens),
        (majority, {"length": 3}, more_frequent),
        (recall, {"pairs": 3, "keys": 5}, lambda tokens: looked_up(tokens, 5)),
        (pointer, {"length": 4, "symbols": 3}, lambda tokens: pointed_at(tokens, 3)),
        (parity, {"length": 5}, odd),
    ],
)
def test_labels_are_right_in_other_sizes_too(task, options, slow):
    x, y = small(task, **options).train
    assert y.tolist() == [slow(tokens) for tokens in x.tolist()]


def test_sizes_types_ranges_and_every_label(task):
    data = small(task)
    assert [len(x) for x, _ in parts(data)] == [300, 512, 2048]
    for x, y in parts(data):
        assert y.tolist() == [SLOW[task](tokens) for tokens in x.tolist()]
        assert x.dtype == y.dtype == "int64"
        assert y.shape == (x.shape if data.labels == "token" else (len(x),))
        assert set(x.ravel().tolist()) <= set(range(data.vocab_size))
        assert set(y.ravel().tolist()) <= {-1, *range(data.n_classes)}
    x, y = data.test  # large enough for every token id and every class
    assert set(x.ravel().tolist()) == set(range(data.vocab_size))
    assert set(y[y >= 0].tolist()) == set(range(data.n_classes))


@pytest.mark.parametrize(
    ("task", "labelled"),
    [(reverse, [True] * 16), (recall, [False] * 8 + [True] * 8), (pointer, [False] * 16 + [True])],
)
def test_tokens_that_ask_nothing_have_no_label(task, labelled):
    for _, y in parts(small(task)):
        np.testing.assert_array_equal(y != -1, np.broadcast_to(labelled, y.shape))


@pytest.mark.parametrize(("pairs", "keys"), [(3, 5), (8, 128)])
def test_recall_asks_once_for_every_key_in_another_order(pairs, keys):
    x, _ = small(recall, pairs=pairs, keys=keys).train
    told, asked = x[:, :pairs] // 8, x[:, pairs:] - 8 * keys
    assert all(len(set(row)) == pairs for row in told.tolist())
    np.testing.assert_array_equal(np.sort(told), np.sort(asked))
    assert (told != asked).any(axis=1).mean() > 0.5


def test_sizes_that_make_no_task_are_refused():
    with pytest.raises(ValueError, match="length is 4; expected an odd number"):
        majority(length=4)
    with pytest.raises(ValueError, match="keys is 4 and pairs 8; expected at least as many keys"):
        recall(keys=4)
    assert small(recall, pairs=4, keys=4).train[0].shape == (300, 8)


def test_no_class_is_more_frequent_than_chance_allows(task):
    data = small(task)
    labels = data.test[1][data.test[1] >= 0]
    n, p = len(labels), 1.0 / data.n_classes
    counts = np.bincount(labels, minlength=data.n_classes)
    assert np.abs(counts - n * p).max() < 4.5 * np.sqrt(n * p * (1.0 - p))


@pytest.mark.parametrize("task", [majority, parity])
def test_a_single_token_tells_a_little_of_a_majority_and_nothing_of_a_parity(task):
    x, y = small(task).test
    agreement = (x == y[:, None]).mean(axis=0)
    bound = 4.5 / np.sqrt(4 * len(x))
    if task is parity:
        assert np.abs(agreement - 0.5).max() < bound
    else:
        assert agreement.min() > 0.5 + bound


def test_a_seed_or_its_generator_means_the_same_data_and_another_seed_other_data(task):
    seeds = 3, 3, np.random.default_rng(3), 4
    for one, again, drawn, other in zip(*(parts(small(task, s)) for s in seeds), strict=True):
        for k in range(2):
            np.testing.assert_array_equal(one[k], again[k])
            np.testing.assert_array_equal(one[k], drawn[k])
        assert not np.array_equal(one[0], other[0])


@pytest.mark.parametrize("task", [reverse, recall, pointer])
def test_no_test_sequence_was_trained_on(task):
    data = small(task)
    seen = {tokens.tobytes() for x, _ in (data.train, data.validation) for tokens in x}
    assert not any(tokens.tobytes() in seen for tokens in data.test[0])
