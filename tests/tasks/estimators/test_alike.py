"""Labels that are most likely those of one class, but are not written alike."""

import warnings

import pytest

from npformer.tasks.estimators.alike import warn_of_alike
from npformer.tasks.estimators.class_names import ClassNames
from tests.tasks.estimators.conftest import texts_and_labels
from tests.tasks.estimators.test_text_classifier import small


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("1", "1.0", "'1' (2) and '1.0' (1) are the same number"),
        ("0", "0.000000e+00", "are the same number"),
        ("1", "01", "are the same number"),
        ("-1", "\u22121", "are the same number"),
        ("1", "\uff11", "are the same number"),
        ("ham", "HAM", "differ only in case"),
        ("ham", "ham ", "'ham' (2) and 'ham ' (1) look alike"),
        ("not ham", "not  ham", "look alike"),
        ("not ham", "not\u00a0ham", r"'not\xa0ham' (1) look alike"),
        ("caf\u00e9", "cafe\u0301", r"'cafe\u0301' (1) and 'caf\xe9' (2) look alike"),
        ("ham", "\uff48\uff41\uff4d", "look alike"),
        ("ham", "h\u200bam", r"'h\u200bam' (1) look alike"),
        ("ham", "\ufeffham", "look alike"),
        ("ham", "h\u0430m", r"'h\u0430m' (1) look alike"),
        ("non-spam", "non\u2011spam", "look alike"),
        ("don't", "don\u2019t", "look alike"),
        ("\ufb01ne", "fine", "look alike"),
    ],
)
def test_labels_that_are_most_likely_one_class_are_reported(one, other, words):
    with pytest.warns(UserWarning, match="one class") as caught:
        warn_of_alike([one, other, one])
    assert len(caught) == 1
    assert words in str(caught[0].message)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "2"),
        ("1", "-1"),
        ("1.0", "1.5"),
        ("1", "l"),
        ("e", "\u00e9"),
        ("c", "c++"),
        ("nan", "inf"),
        ("\u043c\u044b", "\u0432\u044b"),
        ("100%", "100"),
    ],
)
def test_labels_that_differ_are_not_reported(one, other):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_alike([one, other])


def test_labels_that_look_alike_are_reported_by_fit():
    texts, labels = texts_and_labels(40)
    labels = [{"food": "1", "weather": "0"}[label] for label in labels]
    labels[labels.index("1")] = "1.0"
    with pytest.warns(UserWarning, match="are the same number: one class"):
        small().fit(texts, labels, epochs=1, progress=False)


@pytest.mark.parametrize(
    ("names", "label", "words"),
    [
        (["0", "1"], "1.0", "'1.0' and '1' are the same number"),
        ([0, 1], "1", "'1' and 1 are of different types"),
        (["caf\u00e9", "x"], "cafe\u0301", r"'cafe\\u0301' and 'caf\\xe9' look alike"),
    ],
)
def test_an_unknown_label_is_refused_with_the_class_that_looks_alike(names, label, words):
    expected = f"never saw; .*: {words}. Write it as in the training"
    with pytest.raises(ValueError, match=expected):
        ClassNames(names).numbers([label])
