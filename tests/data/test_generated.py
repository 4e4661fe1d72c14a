"""Generated tasks: every label computed again, slowly and in another way."""

import numpy as np
import pytest

from npformer.data import majority, parity, pointer, recall, reverse


def small(task, seed=0, **options):
    return task(seed, train=300, **options)


def parts(data):
    return data.train, data.validation, data.test


def reverse_tokens(tokens):
    return list(reversed(tokens))


def median(tokens):
    return sorted(tokens)[len(tokens) // 2]  # the median of an odd number of zeros and ones


def look_up(tokens, keys=128):
    """Pairs are tokens 8 key + value; then come queries, the tokens of keys."""
    value_of = dict(divmod(token, 8) for token in tokens if token < 8 * keys)
    return [value_of[token - 8 * keys] if token >= 8 * keys else -1 for token in tokens]


def follow_pointer(tokens, symbols=8):
    *content, last = tokens
    return [-1] * len(content) + [content[last - symbols]]


def is_odd(tokens):
    return int(f"{tokens.count(1):b}"[-1])


SLOW = {
    reverse: reverse_tokens,
    majority: median,
    recall: look_up,
    pointer: follow_pointer,
    parity: is_odd,
}


@pytest.fixture(params=SLOW, ids=lambda task: task.__name__)
def task(request):
    return request.param


@pytest.mark.parametrize(
    ("task", "options", "slow"),
    [
        (reverse, {"length": 5, "symbols": 3}, reverse_tokens),
        (majority, {"length": 3}, median),
        (recall, {"pairs": 3, "keys": 5}, lambda tokens: look_up(tokens, 5)),
        (pointer, {"length": 4, "symbols": 3}, lambda tokens: follow_pointer(tokens, 3)),
        (parity, {"length": 5}, is_odd),
    ],
)
def test_labels_are_right_in_other_sizes_too(task, options, slow):
    x, y = small(task, **options).train
    assert y.tolist() == [slow(tokens) for tokens in x.tolist()]


def test_every_label_is_right(task):
    for x, y in parts(small(task)):
        assert y.tolist() == [SLOW[task](tokens) for tokens in x.tolist()]


def test_splits_have_their_sizes(task):
    assert [len(x) for x, _ in parts(small(task))] == [300, 512, 2048]


def test_samples_are_token_ids(task):
    data = small(task)
    for x, _ in parts(data):
        assert x.dtype == "int64"
        assert set(x.ravel().tolist()) <= set(range(data.vocab_size))


def test_labels_are_classes(task):
    data = small(task)
    for x, y in parts(data):
        assert y.dtype == "int64"
        assert y.shape == (x.shape if data.labels == "token" else (len(x),))
        assert set(y.ravel().tolist()) <= {-1, *range(data.n_classes)}


def test_every_token_id_occurs(task):
    data = small(task)
    assert set(data.test[0].ravel().tolist()) == set(range(data.vocab_size))


def test_every_class_occurs(task):
    data = small(task)
    y = data.test[1]
    assert set(y[y >= 0].tolist()) == set(range(data.n_classes))


@pytest.mark.parametrize(
    ("task", "labelled"),
    [(reverse, [True] * 16), (recall, [False] * 8 + [True] * 8), (pointer, [False] * 16 + [True])],
)
def test_only_tokens_with_a_question_have_a_label(task, labelled):
    for _, y in parts(small(task)):
        np.testing.assert_array_equal(y != -1, np.broadcast_to(labelled, y.shape))


@pytest.mark.parametrize(("pairs", "keys"), [(3, 5), (8, 128)])
def test_recall_asks_once_for_every_key_in_another_order(pairs, keys):
    x, _ = small(recall, pairs=pairs, keys=keys).train
    keys_of_pairs = x[:, :pairs] // 8
    keys_of_queries = x[:, pairs:] - 8 * keys
    assert all(len(set(row)) == pairs for row in keys_of_pairs.tolist())
    np.testing.assert_array_equal(np.sort(keys_of_pairs), np.sort(keys_of_queries))
    assert (keys_of_pairs != keys_of_queries).any(axis=1).mean() > 0.5


def test_an_even_length_of_a_majority_is_refused():
    with pytest.raises(ValueError, match="length is 4; expected an odd number"):
        majority(length=4)


def test_fewer_keys_than_pairs_are_refused():
    with pytest.raises(ValueError, match="keys is 4 and pairs 8; expected at least as many keys"):
        recall(keys=4)
    assert small(recall, pairs=4, keys=4).train[0].shape == (300, 8)


def test_no_class_is_more_frequent_than_chance_allows(task):
    data = small(task)
    labels = data.test[1][data.test[1] >= 0]
    n = len(labels)
    p = 1.0 / data.n_classes
    counts = np.bincount(labels, minlength=data.n_classes)
    assert np.abs(counts - n * p).max() < 4.5 * np.sqrt(n * p * (1.0 - p))


def agreement_with_each_token(task):
    """Return how often each token equals the label, and 4.5 standard deviations of chance."""
    x, y = small(task).test
    return (x == y[:, None]).mean(axis=0), 4.5 / np.sqrt(4 * len(x))


def test_a_single_token_says_a_little_about_a_majority():
    agreement, bound = agreement_with_each_token(majority)
    assert agreement.min() > 0.5 + bound


def test_a_single_token_says_nothing_about_a_parity():
    agreement, bound = agreement_with_each_token(parity)
    assert np.abs(agreement - 0.5).max() < bound


@pytest.mark.parametrize(
    "same_seed", [lambda: 3, lambda: np.random.default_rng(3)], ids=["seed", "generator"]
)
def test_a_seed_or_its_generator_gives_the_same_data(task, same_seed):
    first = parts(small(task, 3))
    second = parts(small(task, same_seed()))
    for (x, y), (same_x, same_y) in zip(first, second, strict=True):
        np.testing.assert_array_equal(x, same_x)
        np.testing.assert_array_equal(y, same_y)


def test_another_seed_gives_other_data(task):
    for (x, _), (other_x, _) in zip(parts(small(task, 3)), parts(small(task, 4)), strict=True):
        assert not np.array_equal(x, other_x)


@pytest.mark.parametrize("task", [reverse, recall, pointer])
def test_no_test_sequence_is_among_training_sequences(task):
    data = small(task)
    x = np.concatenate([data.train[0], data.validation[0]])
    training_sequences = {tokens.tobytes() for tokens in x}
    assert not any(tokens.tobytes() in training_sequences for tokens in data.test[0])
