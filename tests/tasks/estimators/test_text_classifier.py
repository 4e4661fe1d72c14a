"""TextClassifier: from strings to labels."""

import re

import numpy as np
import pytest

import npformer as nf
from npformer.data.tokenizers import WordTokenizer
from npformer.tasks.estimators import NotTrainedError, defaults
from npformer.tasks.wide import TwoAnswers, WideSequenceClassifier
from tests.needs import NEEDS
from tests.tasks.estimators.conftest import QUICK, SIZES, texts_and_labels


def small(**more):
    return nf.TextClassifier(SIZES, **{"members": 1, "ngrams": 0, **more})


def test_it_learns(classifier):
    assert classifier.evaluate(*texts_and_labels(seed=1)).accuracy > 0.95


def test_it_answers_with_labels(classifier):
    assert classifier.classes_.tolist() == ["food", "weather"]
    assert classifier.predict(["soup and bread", "snow"]).tolist() == ["food", "weather"]


def test_its_accuracy_is_that_of_its_answers(classifier):
    texts, labels = texts_and_labels(seed=1)
    accuracy = (classifier.predict(texts) == np.array(labels)).mean()
    assert classifier.evaluate(texts, labels).accuracy == accuracy


def test_probabilities_sum_to_1(classifier):
    texts, _ = texts_and_labels(seed=1)
    probabilities = classifier.predict_probabilities(texts)
    assert probabilities.shape == (120, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)


def test_without_texts_there_are_no_probabilities(classifier):
    assert classifier.predict_probabilities([]).shape == (0, 2)


def test_an_answer_does_not_depend_on_the_texts_beside_it(classifier):
    texts, _ = texts_and_labels(20)
    together = classifier.predict_probabilities(texts)
    alone = np.concatenate([classifier.predict_probabilities([text]) for text in texts])
    np.testing.assert_allclose(together, alone, rtol=1e-5)
    assert np.isfinite(classifier.predict_probabilities(["", "   ", "xylophone"])).all()


def test_the_validation_part_gives_no_words_to_the_vocabulary():
    texts, labels = texts_and_labels()
    validation = ["pizza pizza", "hail hail"], ["food", "weather"]
    classifier = small().fit(texts, labels, **QUICK | {"validation": validation})
    assert "pizza" not in classifier.tokenizer_.vocabulary
    assert len(classifier.history_.validation_accuracy) == 6
    parted = small().fit([f"{text} w{i}" for i, text in enumerate(texts)], labels, **QUICK)
    numbered_words = [
        word for word in parted.tokenizer_.vocabulary if word[0] == "w" and word[1:].isdigit()
    ]
    assert len(numbered_words) == 108


def test_without_validation_the_last_weights_are_kept():
    with pytest.raises(ValueError, match="patience is 2 and there is no validation"):
        small().fit(*texts_and_labels(), **QUICK | {"validation": None, "patience": 2})
    classifier = small().fit(*texts_and_labels(), **QUICK | {"validation": None})
    assert classifier.history_.validation_accuracy == []
    assert classifier.history_.best_epoch == 6


def test_the_seed_decides():
    data = texts_and_labels(40)
    brief = QUICK | {"epochs": 1}
    models = (small(seed=seed).fit(*data, **brief).model for seed in (0, 0, 1))
    one, same, other = (model.parameters().flat for model in models)
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_an_ensemble_averages_probabilities(tmp_path):
    texts, labels = texts_and_labels(60)
    ensemble = small(members=3).fit(texts, labels, **QUICK | {"epochs": 2})
    x, mask = ensemble.arrays(texts)
    probabilities = [model.predict_probabilities(x, mask) for model in ensemble.models_]
    assert not np.array_equal(probabilities[0], probabilities[1])
    np.testing.assert_allclose(
        ensemble.predict_probabilities(texts), np.mean(probabilities, axis=0), rtol=1e-6
    )
    nf.save(ensemble, tmp_path / "three")
    back = nf.load(tmp_path / "three")
    np.testing.assert_array_equal(*(m.predict_probabilities(texts) for m in (back, ensemble)))
    assert len(back.models_) == 3


def test_no_member_is_trained_like_a_member_of_another_seed(monkeypatch):
    seeds = []
    build = nf.TextClassifier.build

    def noted(self, n_classes, seed):
        seeds.append(seed)
        return build(self, n_classes, seed)

    monkeypatch.setattr(nf.TextClassifier, "build", noted)
    for seed in (0, 1):
        small(members=2, seed=seed).fit(*texts_and_labels(40), **QUICK | {"epochs": 1})
    assert seeds[::2] == [0, 1]  # one member has the seed itself
    child = np.random.SeedSequence(0, spawn_key=(1,))
    assert seeds[1] == int(child.generate_state(1, "uint64")[0]) >> 1
    assert len(set(seeds)) == 4


def test_what_is_not_said_depends_on_the_texts():
    brief = QUICK | {"epochs": 1}
    few = nf.TextClassifier(SIZES).fit(*texts_and_labels(40), **brief)
    assert len(few.models_) == len(few.histories_) == 2
    assert few.tokenizer_.ngrams == 4
    texts, labels = texts_and_labels(40)
    long = nf.TextClassifier(SIZES, members=1).fit([text * 20 for text in texts], labels, **brief)
    assert long.tokenizer_.ngrams == 0
    assert defaults.members("text", 20_000) == 1
    assert defaults.training("text", 400)["epochs"] > defaults.training("text", 2_000)["epochs"]
    assert defaults.training("text", 2)["epochs"] == 100


@pytest.fixture(scope="module", params=["word", "wordpiece", "bpe"])
def tokenizing(request):
    """Return a classifier that was trained with a tokenizer."""
    tokenizer = request.param
    if tokenizer != "word":
        pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])
    vocab_size = None if tokenizer == "word" else 400
    classifier = small(tokenizer=tokenizer, vocab_size=vocab_size)
    return classifier.fit(*texts_and_labels(), **QUICK)


def test_it_learns_with_every_tokenizer(tokenizing):
    assert tokenizing.evaluate(*texts_and_labels()).accuracy > 0.9


def test_every_tokenizer_is_saved(tokenizing, tmp_path):
    texts, _ = texts_and_labels()
    nf.save(tokenizing, tmp_path / "model.safetensors")
    loaded = nf.load(tmp_path / "model.safetensors")
    assert loaded.predict(texts).tolist() == tokenizing.predict(texts).tolist()


def test_notes_are_saved_with_every_tokenizer(tokenizing, tmp_path):
    nf.save(tokenizing, tmp_path / "model.safetensors", notes={"from": "a test"})
    assert nf.read_notes(tmp_path / "model.safetensors") == {"from": "a test"}


def test_it_takes_a_configuration_with_a_tokenizer():
    config = nf.EncoderConfig(**SIZES, max_len=8, mixer="fourier", padding="per_length")
    tokenizer = WordTokenizer(["rain", "soup"])
    classifier = nf.TextClassifier(config, tokenizer=tokenizer, pooling="first", members=1)
    classifier.fit(*texts_and_labels(40), **QUICK | {"epochs": 1})
    assert classifier.model.config == config
    assert classifier.tokenizer_ is tokenizer
    assert classifier.model.pooling == "first"


def test_it_takes_a_mixer_by_name():
    classifier = nf.TextClassifier({"mixer": "dense_synthesizer", **SIZES}, members=1)
    classifier.fit(*texts_and_labels(40), **QUICK | {"epochs": 1})
    assert classifier.model.config.mixer == "dense_synthesizer"


def test_labels_may_be_numbers():
    texts, labels = texts_and_labels(40)
    numbers = np.array([5 if label == "food" else -2 for label in labels])
    classifier = small().fit(np.array(texts), numbers, **QUICK | {"epochs": 1})
    assert classifier.classes_.tolist() == [-2, 5]
    assert classifier.predict(texts).dtype.kind == "i"


def test_labels_may_be_truth_values():
    texts, labels = texts_and_labels(40)
    truth_values = [label == "food" for label in labels]
    classifier = small().fit(texts, truth_values, **QUICK | {"epochs": 1})
    assert classifier.classes_.tolist() == [False, True]


def test_one_warning_tells_that_long_texts_are_cut():
    texts, labels = texts_and_labels(40)
    classifier = small(max_len=4)
    with pytest.warns(UserWarning, match=r"more than 4 tokens, .*, when you pretrain"):
        classifier.fit(texts, labels, **QUICK | {"epochs": 1})
    assert classifier.predict(["soup " * 1000]).shape == (1,)  # a second warning would be an error


def test_a_model_reads_texts_longer_than_those_it_was_trained_on(classifier):
    assert classifier.model.config.max_len == 256
    assert classifier.predict(["soup bread " * 20]).tolist() == ["food"]


def test_a_training_goes_on_from_its_checkpoint(tmp_path):
    data = texts_and_labels(40)
    uninterrupted = small(members=2).fit(*data, **QUICK)
    brief = QUICK | {"epochs": 6}

    class Stop(nf.Callback):
        def after_epoch(self, state):
            if state.epoch == 2:
                raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        small(members=2).fit(*data, checkpoint=tmp_path, callbacks=[Stop()], **brief)
    again = small(members=2).fit(*data, checkpoint=tmp_path, resume=True, **brief)
    for one, other in zip(uninterrupted.models_, again.models_, strict=True):
        np.testing.assert_array_equal(one.parameters().flat, other.parameters().flat)


FORTY = texts_and_labels(40)
OWN = WordTokenizer(["a"])


def fit(*data, **settings):
    """Return a call that trains a small classifier."""
    return lambda: small().fit(*data, **settings)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nf.TextClassifier(64).check(), TypeError, "config is 64; expected an Encoder"),
        (lambda: nf.TextClassifier({"layers": 2}).check(), ValueError, "'layers'.*Did you mean"),
        (lambda: small(tokenizer="letters").check(), ValueError, "tokenizer is 'letters'"),
        (lambda: small(tokenizer=3).check(), ValueError, "tokenizer is 3; expected one of 'word'"),
        (lambda: small(tokenizer=OWN, vocab_size=9).check(), ValueError, "together with a Token"),
        (lambda: small(members=0).check(), ValueError, "members is 0"),
        (lambda: small(members=1001).check(), ValueError, "members is 1001; .* at most 1000"),
        (lambda: small().predict(["a"]), NotTrainedError, "has not been trained; expected fit"),
        (lambda: small().arrays(["a"]), NotTrainedError, "has not been trained"),
        (fit("a text", ["x"]), TypeError, "samples is a str; expected a list"),
        (fit(["a"], "x"), TypeError, "labels is a str; expected a list"),
        (fit(["a", 3], ["x", "y"]), TypeError, r"samples\[1\] is an int"),
        (fit(["a", "b"], ["x", None]), TypeError, r"labels\[1\] is missing"),
        (fit(["a", "b"], ["x", 2.5]), TypeError, r"labels\[1\] is 2.5; expected"),
        (fit(["a", "b"], ["x", 1]), TypeError, r"several types: 'x' \(str\), 1"),
        (fit(["a", "b"], ["x", "x"]), ValueError, "only the class 'x'; expected"),
        (fit([], []), ValueError, "no sample; expected at least 2 classes"),
        (fit(["a", "b"], np.array(["x", np.nan])), ValueError, r"labels\[1\] is 'nan', a word for"),
        (fit(["a", "b"], ["x", ""]), ValueError, r"labels\[1\] is '', a word for"),
        (fit(*FORTY, class_weight={"fod": 1}), ValueError, "keys of class_weight have 'fod'"),
        (fit(["a", "b"], ["x", "y", "y"]), ValueError, "samples and labels are 2 and 3"),
        (fit(["a", "b"], ["x", "y"], validation=0.1), ValueError, "2 samples are too few to set"),
        (fit(["a", " "], ["x", "y"]), ValueError, "1 of 2 texts .* the first is text number 2"),
        (fit(*FORTY, validation=(["a"], ["fod"])), ValueError, "'fod' .1 of 1., .*Did you mean"),
        (
            fit(*FORTY, validation=(["a"],)),
            TypeError,
            r"validation is \(\['a'\],\); expected a fraction",
        ),
        (fit(*FORTY, validation=1.5), ValueError, "validation is 1.5; expected a fraction of"),
        (fit(*FORTY, model=None), TypeError, "model is given to fit, which sets it itself"),
        (fit(*FORTY, epoch=3), TypeError, "takes no 'epoch'; .* Did you mean 'epochs'"),
    ],
)
def test_mistakes_are_explained(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_weights_of_classes_are_given_by_label():
    texts, labels = texts_and_labels(12)
    weights = {"weather": 1.0, "food": 3.0}
    classifier = small().fit(texts, labels, **QUICK | {"epochs": 1}, class_weight=weights)
    assert classifier.settings_["class_weight"] == {0: 3.0, 1: 1.0}


def test_labels_that_rarely_repeat_are_reported():
    texts, labels = texts_and_labels(12)
    rare_labels = [f"{label} {i // 2}" for i, label in enumerate(labels)]
    with pytest.warns(UserWarning, match="there are 12 different labels for 12 samples"):
        small().fit(texts, rare_labels, **QUICK | {"epochs": 1, "validation": None})


def test_mistakes_with_a_trained_classifier(classifier, tmp_path):
    with pytest.raises(TypeError, match=r"write \[\w+\]"):
        classifier.predict("one text")
    with pytest.raises(ValueError, match="samples and labels are 1 and 2"):
        classifier.evaluate(["a"], ["food", "food"])
    with pytest.raises(ValueError, match=r"'sport' \(1 of \d+\), which training never saw"):
        classifier.evaluate(["a"], ["sport"])
    with pytest.raises(NotTrainedError, match="has not been trained"):
        nf.save(small(), tmp_path / "nothing")
    nf.save(nf.SequenceClassifier(nf.EncoderConfig(**SIZES), 2, vocab_size=5), tmp_path / "model")
    assert isinstance(nf.load(tmp_path / "model"), nf.SequenceClassifier)


def test_weights_that_are_no_numbers_are_said(tmp_path):
    classifier = small().fit(*texts_and_labels(40), **QUICK | {"epochs": 1})
    classifier.model.classify.bias.value[0] = np.nan
    with pytest.raises(ValueError, match="the probabilities of sample 0 are NaN"):
        classifier.predict(["soup"])


def test_a_file_without_its_history(classifier, tmp_path):
    nf.save(classifier, tmp_path / "model")
    with pytest.raises(NotTrainedError, match="there is no history"):
        nf.load(tmp_path / "model").history_  # noqa: B018


@pytest.fixture(scope="module")
def narrow():
    """Return a classifier without a model of words."""
    return small(wide=False).fit(*texts_and_labels(40), **QUICK)


def test_pairs_of_words_give_a_second_answer(classifier):
    assert isinstance(classifier.model, WideSequenceClassifier)
    assert classifier.model.wide.n_pairs > 0


def test_words_can_be_left_out(narrow):
    assert not isinstance(narrow.model, WideSequenceClassifier)


def test_a_report_shows_the_weights_of_words(classifier, tmp_path):
    classifier.report(*texts_and_labels(20), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "<h2>Words</h2>" in page
    assert "calibration error" in page
    assert 'href="#words"' in page


def test_a_report_names_whole_words(tmp_path):
    texts, labels = texts_and_labels(60)
    with_parts = small(ngrams=3).fit(texts, labels, **QUICK | {"epochs": 1})
    with_parts.report(texts, labels, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    maps = page.partition('id="mixing"')[2].partition('id="tensors"')[0]
    names = re.findall(r'class="row">([^<]*)</text>', maps)
    assert {*names} <= {word for text in texts for word in text.split()}


def test_members_have_a_confusion_matrix_of_all_together(tmp_path):
    texts, labels = texts_and_labels(60)
    both = small(members=2).fit(texts, labels, **QUICK | {"epochs": 1})
    both.report(texts, labels, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    results = page.partition('id="results"')[2].partition("</section>")[0]
    counts = both.evaluate(texts, labels).confusion
    assert "label / predicted" in results
    cells = re.findall(r'<td class="number">(\d+)</td>', results.partition("label / pred")[2])
    assert cells == [str(n) for n in counts.ravel()]


def test_without_words_a_report_has_no_section_of_words(narrow, tmp_path):
    narrow.report(*texts_and_labels(20), tmp_path / "report.html")
    navigation = (tmp_path / "report.html").read_text("utf-8").partition("</nav>")[0]
    assert 'href="#words"' not in navigation


def test_the_temperature_is_fitted_on_texts_that_are_held_out(monkeypatch):
    from npformer.tasks.estimators import classifier as module

    held_out = []
    monkeypatch.setattr(module, "calibrate", lambda _, data: held_out.append(len(data[1])))
    training = QUICK | {"validation": None, "epochs": 1}
    texts, labels = texts_and_labels(120)
    small(members=2).fit(texts, labels, calibration=0.25, **training)
    assert held_out == [30, 30]
    small().fit(texts, labels, calibration=0.1, sample_weight=np.ones(120), **training)
    small().fit(texts, labels, calibration=0.1, **training | {"validation": 0.2})
    assert held_out[2:] == [12, 24], "with a validation, that decides"
    small().fit(texts, labels, calibration=0, **training)
    small().fit(texts[:99], labels[:99], **training)
    assert len(held_out) == 4, "few texts are all trained on"
    assert [defaults.calibration("text", n) for n in (400, 100, 99)] == [0.1, 0.1, 0.0]


@pytest.mark.parametrize("share", [1.5, 1.0, -0.1, "x", True])
def test_a_wrong_share_for_the_temperature_is_named(share):
    texts, labels = ["good", "bad"] * 10, ["a", "b"] * 10
    with pytest.raises(ValueError, match=f"calibration is {share!r}; expected a number from 0"):
        nf.TextClassifier().fit(texts, labels, calibration=share)


def test_the_longest_text_may_stand_in_the_configuration():
    texts, labels = texts_and_labels(40)
    classifier = nf.TextClassifier(SIZES | {"max_len": 100}, members=1)
    assert classifier.fit(texts, labels, epochs=1).model.config.max_len == 100
    assert classifier.arrays(["soup " * 20])[0].shape[1] >= 20


def test_a_loss_of_one_answer_is_refused():
    one = nf.losses.SoftmaxCrossEntropy(label_smoothing=0.1)
    with pytest.raises(ValueError, match=r"this model gives two; .*TextClassifier\(wide=False\)"):
        small().fit(*texts_and_labels(8), loss=one, **QUICK)
    small(wide=False).fit(*texts_and_labels(8), loss=one, **QUICK)
    small().fit(*texts_and_labels(8), loss=TwoAnswers(0.1), **QUICK)
