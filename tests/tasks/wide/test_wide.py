"""Wide beside TF-IDF as it is defined, and what a model with it knows that one without does not."""

import numpy as np
import pytest

import npformer as nf
from npformer.data.tokenizers import frequent_pairs
from npformer.tasks.wide import Wide, WideSequenceClassifier
from npformer.tasks.wide.evidence import evidence_for
from npformer.tasks.wide.layer import SCALE
from tests.needs import NEEDS

TEXTS = [[2, 3, 4], [2, 3, 2, 3], [3, 2, 5], [4, 6]]


def learned(texts=TEXTS, vocab_size=7, n_outputs=2, **options):
    pairs, idf = frequent_pairs(texts, vocab_size, **options)
    wide = Wide(vocab_size, len(pairs), n_outputs, dtype="float64")
    wide.learn(pairs, idf)
    return wide


def vector(wide, text, length=6):
    """Return the whole vector of a text, which the layer keeps as ids and weights."""
    x = np.zeros((1, length), dtype=int)
    mask = np.arange(length)[None] < len(text)
    x[0, : len(text)] = text
    ids, weights = wide.weighted(x, mask)
    values = np.zeros(wide.weight.shape[0])
    np.add.at(values, ids[0], weights[0])
    return values


def test_pairs_of_the_most_texts_are_known():
    assert len(frequent_pairs(TEXTS, 7)[0]) == 5
    pairs, idf = frequent_pairs(TEXTS, 7, most=2)
    assert pairs.tolist() == [[2, 3], [3, 2]]
    np.testing.assert_allclose(idf[[2, 6]], [np.log(5 / 4) + 1, np.log(5 / 2) + 1])
    np.testing.assert_allclose(idf[7:], np.log(5 / 3) + 1)
    assert idf[0] == idf[1] == 0.0, "no text has them"
    assert frequent_pairs(TEXTS, 7, most=1)[0].tolist() == [[2, 3]]
    assert frequent_pairs(TEXTS, 7, single=[3])[0].tolist() == [[2, 5], [4, 6]]


def test_weights_are_tf_idf():
    wide = learned(most=2)
    weights = vector(wide, [2, 3, 2, 3])
    idf = wide.idf.value
    twice = 1 + np.log(2)
    expected = np.zeros(9)
    expected[[2, 3, 7, 8]] = twice * idf[2], twice * idf[3], twice * idf[7], idf[8]
    np.testing.assert_allclose(weights, SCALE * expected / np.linalg.norm(expected))


def test_weights_are_those_of_scikit_learn():
    text = pytest.importorskip("sklearn.feature_extraction.text", reason=NEEDS["sklearn"])
    words = [" ".join(f"w{id}" for id in ids) for ids in TEXTS]
    theirs = text.TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    rows = theirs.fit_transform(words).toarray()
    wide = learned()
    columns = [theirs.vocabulary_[f"w{id}"] if id >= 2 else None for id in range(7)] + [
        theirs.vocabulary_[f"w{a} w{b}"] for a, b in wide.pairs.value.astype(int)
    ]
    for ids, row in zip(TEXTS, rows, strict=True):
        expected = [0.0 if column is None else row[column] for column in columns]
        np.testing.assert_allclose(vector(wide, ids), SCALE * np.array(expected))


def test_padding_counts_for_nothing():
    wide = learned(most=2)
    np.testing.assert_allclose(vector(wide, [2, 3, 4]), vector(wide, [2, 3, 4], length=3))
    x, mask = np.array([[2, 3]]), np.array([[True, False]])
    assert (wide.weighted(x, mask)[1] > 0).tolist() == [[True, False, False]]


def test_unknown_tokens_count_for_nothing():
    wide = learned(most=2)
    np.testing.assert_array_equal(vector(wide, [1, 0]), 0.0)
    np.testing.assert_array_equal(vector(wide, []), 0.0)


def test_a_layer_without_pairs_knows_words():
    wide = learned([[2], [3]])
    assert wide.n_pairs == 0
    assert (vector(wide, [2, 3]) > 0).nonzero()[0].tolist() == [2, 3]


def test_says_of_what_it_takes_pairs():
    config = nf.EncoderConfig(d_model=4, n_heads=2, d_ff=8, n_layers=1, max_len=4)
    with pytest.raises(ValueError, match="a wide part is given; expected token ids"):
        WideSequenceClassifier(config, 2, n_features=3, n_pairs=2)
    with pytest.raises(ValueError, match="one answer for a whole sequence"):
        WideSequenceClassifier(config, 2, vocab_size=5, n_pairs=2, pooling="none")


def test_a_model_is_saved_with_its_pairs(tmp_path):
    config = nf.EncoderConfig(d_model=4, n_heads=2, d_ff=8, n_layers=1, max_len=4)
    model = WideSequenceClassifier(config, 3, vocab_size=7, n_pairs=2, seed=0)
    model.wide.learn(*frequent_pairs(TEXTS, 7, most=2))
    model.wide.weight.value[...] = np.arange(27).reshape(9, 3)
    x = np.array([[2, 3, 2, 3], [4, 6, 1, 5]])
    nf.save(model, tmp_path / "model.safetensors")
    again = nf.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again(x), model(x))
    model.wide.idf.value[...] = 0.0
    assert np.abs(again(x) - model(x))[:, 1].max() > 1.0


def evidence(words, answer=1):
    """Return what the words of a text of three tokens add, and the weights that say so."""
    wide = learned()
    rng = np.random.default_rng(0)
    wide.weight.value[...] = rng.normal(size=wide.weight.shape)
    x = np.array([[2, 3, 4, 0]])
    mask = np.array([[True, True, True, False]])
    return evidence_for(wide, x, mask, np.array([answer]), [words])[0], wide


def test_evidence_sums_to_the_difference_of_the_logits():
    sums, wide = evidence([("a", [0]), ("b", [1]), ("c", [2])])
    weight = vector(wide, [2, 3, 4]) @ wide.weight.value
    np.testing.assert_allclose(sum(sums.values()), weight[1] - weight[0])


def test_a_word_adds_what_its_tokens_add():
    tokens, _ = evidence([("a", [0]), ("b", [1]), ("c", [2])])
    words, _ = evidence([("ac", [0, 2]), ("b", [1])])
    np.testing.assert_allclose(words["ac"], tokens["a"] + tokens["c"])


def test_a_pair_of_neighbours_counts_by_itself():
    sums, _ = evidence([("a", [0]), ("b", [1]), ("c", [2])])
    assert {*sums} == {"a", "b", "c", "a b", "b c"}
