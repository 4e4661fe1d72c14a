"""The loop on one screen computes what `fit` computes."""

import numpy as np
import pytest

import npformer as nf

N, LENGTH = 22, 6


def classifier(dropout=0.2, **settings):
    config = nf.EncoderConfig(
        d_model=8, n_layers=2, n_heads=2, d_ff=16, max_len=LENGTH, dropout=dropout, **settings
    )
    return nf.SequenceClassifier(config, n_classes=3, n_features=4, seed=0)


def vectors():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, LENGTH, 4), dtype=np.float32)
    mask = np.arange(LENGTH) < rng.integers(1, LENGTH + 1, N)[:, None]
    return x, rng.integers(0, 3, N), mask


def writer():
    config = nf.EncoderConfig(
        d_model=8, n_layers=1, n_heads=2, d_ff=16, max_len=LENGTH, causal=True, dropout=0.1
    )
    return nf.LanguageModel(config, vocab_size=7, seed=0)


def ids():
    tokens = np.random.default_rng(0).integers(0, 7, (N, LENGTH + 1))
    return tokens[:, :-1], tokens[:, 1:]


def translator():
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=16, max_len=8, dropout=0.1)
    return nf.EncoderDecoder(config, source_vocab=7, target_vocab=7, seed=0)


def pairs():
    rng = np.random.default_rng(0)
    source, words = rng.integers(1, 7, (N, 5)), rng.integers(3, 7, (N, 4))
    begin, end = np.full((N, 1), 1), np.full((N, 1), 2)
    return source, np.concatenate([begin, words, end], axis=1)


MODELS = {
    "post-norm, dropout, padding": (classifier, vectors),
    "pre-norm": (lambda: classifier(norm="pre"), vectors),
    "without dropout": (lambda: classifier(dropout=0.0), vectors),
    "a Fourier mixer": (lambda: classifier(mixer="fourier", padding="zero"), vectors),
    "a language model": (writer, ids),
    "an encoder and a decoder": (translator, pairs),
}


@pytest.mark.parametrize(("make_model", "make_data"), MODELS.values(), ids=MODELS)
def test_it_trains_as_fit_does(make_model, make_data):
    data = make_data()
    ours, theirs = make_model(), make_model()
    with nf.use_kernels(False):
        losses = nf.train(
            ours, data, nf.Adam(ours.parameters(), lr=0.01), epochs=3, batch_size=8, seed=5
        )
        history = nf.fit(
            theirs,
            data,
            lr=0.01,
            epochs=3,
            batch_size=8,
            seed=5,
            batches="shuffled",
            progress=False,
        )
    assert len(losses) == 9
    epochs = np.reshape(losses, (3, 3))
    np.testing.assert_array_equal([np.mean(epoch) for epoch in epochs], history.train_loss)
    for name, weight in ours.parameters().items():
        np.testing.assert_array_equal(weight, theirs.parameters()[name])


def test_it_learns():
    model = classifier(dropout=0.0)
    losses = nf.train(
        model, vectors(), nf.Adam(model.parameters(), lr=0.01), epochs=30, batch_size=8
    )
    assert np.mean(losses[-3:]) < 0.3 * np.mean(losses[:3])


def test_it_runs_the_passes_as_they_are_written(monkeypatch):
    shapes = []
    plain = nf.functional.softmax_backward

    def noted(dy, cache):
        shapes.append(dy.shape)
        return plain(dy, cache)

    monkeypatch.setattr("npformer.functional.averaging.softmax_backward", noted)
    model = classifier()
    nf.train(model, vectors(), nf.Adam(model.parameters()), epochs=1, batch_size=N)
    assert shapes == [(N, 2, LENGTH, LENGTH)] * 2  # of two layers


def test_wrong_data_is_refused_before_the_first_step():
    model = classifier()
    x, y, mask = vectors()
    before = {name: weight.copy() for name, weight in model.parameters().items()}
    with pytest.raises(ValueError, match="y holds 3"):
        nf.train(model, (x, y + 1, mask), nf.Adam(model.parameters()))
    for name, weight in model.parameters().items():
        np.testing.assert_array_equal(weight, before[name])


def test_wrong_arguments_are_refused_in_words():
    model = classifier()
    data = vectors()
    optimizer = nf.Adam(model.parameters())
    with pytest.raises(TypeError, match="model is 3; expected a model that can be trained"):
        nf.train(3, data, optimizer)
    with pytest.raises(TypeError, match=r"data is an ndarray; expected \(x, y\)"):
        nf.train(model, data[0], optimizer)
    with pytest.raises(TypeError, match="y is None; expected targets"):
        nf.train(model, (data[0], None), optimizer)
    with pytest.raises(TypeError, match=r"Write Adam\(model.parameters\(\)\)"):
        nf.train(model, data, "adam")
    with pytest.raises(ValueError, match="optimizer's parameters are not this model's"):
        nf.train(classifier(), data, optimizer)
    with pytest.raises(ValueError, match="epochs is 0"):
        nf.train(model, data, optimizer, epochs=0)
    with pytest.raises(ValueError, match="batch_size is 0"):
        nf.train(model, data, optimizer, batch_size=0)


def test_a_model_is_trained_once_at_a_time():
    model = classifier()
    refused = []

    def train_again(state):
        with pytest.raises(ValueError, match="trained already, by a fit that has not returned"):
            nf.fit(model, vectors(), epochs=1, progress=False)
        with pytest.raises(ValueError, match="trained already"):
            nf.train(model, vectors(), nf.Adam(model.parameters()), epochs=1)
        nf.fit(classifier(), vectors(), epochs=1, progress=False)  # another model is
        model.predict(*vectors()[::2])
        refused.append(state.epoch)

    nf.fit(model, vectors(), epochs=2, progress=False, callbacks=[AfterEpoch(train_again)])
    assert len(refused) == 2
    nf.fit(model, vectors(), epochs=1, progress=False)


def test_a_training_that_fails_is_no_training_any_more():
    model = classifier()

    def fail(state):
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        nf.fit(model, vectors(), epochs=1, progress=False, callbacks=[AfterEpoch(fail)])
    nf.fit(model, vectors(), epochs=1, progress=False)


class AfterEpoch(nf.Callback):
    def __init__(self, call):
        self.after_epoch = call
