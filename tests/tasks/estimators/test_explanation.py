"""TextClassifier.explain: why a text got its label, in words and numbers."""

import re

import numpy as np
import pytest

import npformer as nf
from tests.tasks.estimators.conftest import QUICK, SIZES, texts_and_labels

TEXT = "the soup is a bread soup"


@pytest.fixture(scope="module")
def without_wide_part():
    """Return two members without an answer from words alone."""
    classifier = nf.TextClassifier(SIZES, members=2, ngrams=0, wide=False)
    return classifier.fit(*texts_and_labels(), **QUICK)


def test_an_explanation_tells_the_label_of_predict(classifier):
    explained = classifier.explain(TEXT)
    assert explained.label == classifier.predict([TEXT])[0]
    probabilities = classifier.predict_proba([TEXT])[0].tolist()
    assert explained.probabilities == dict(zip(["food", "weather"], probabilities, strict=True))


def test_words_add_up_to_the_difference_of_the_logits(classifier):
    explained = classifier.explain(TEXT)
    x, mask = classifier.arrays([TEXT])
    ids, weights = classifier.model.wide.weighted(x, mask)
    food, weather = weights[0] @ classifier.model.wide.weight.value[ids[0]]
    np.testing.assert_allclose(sum(explained.values.values()), food - weather, rtol=1e-5)


def test_a_word_of_the_class_speaks_for_it(classifier):
    values = classifier.explain(TEXT).values
    assert max(values, key=values.get) in ("soup", "bread", "bread soup")


def test_an_explanation_has_the_numbers_of_the_report(classifier, tmp_path):
    classifier.report([TEXT, "rain"], ["food", "weather"], tmp_path / "a.html", samples=[0])
    page = (tmp_path / "a.html").read_text("utf-8")
    first = page.partition('class="evidence"')[2].partition("</li>")[0]
    words = dict(re.findall(r"<span[^>]*>([^<]*) <b>([^<]*)</b>", first))
    values = classifier.explain(TEXT).values
    assert words == {name: f"{values[name]:+.2f}" for name in words}
    assert "soup" in words


def test_a_printed_explanation_is_a_table(classifier):
    lines = str(classifier.explain(TEXT)).split("\n")
    assert lines[0] == TEXT
    assert re.fullmatch(r"food: food \d\.\d{3}, weather \d\.\d{3}", lines[1])
    assert re.match(r"for food +against it", lines[3])
    assert re.search(r"soup +\+\d+\.\d\d", "\n".join(lines))


def test_without_a_wide_part_words_are_left_out(without_wide_part):
    explained = without_wide_part.explain(TEXT)
    assert {*explained.values} == {"the", "soup", "is", "a", "bread"}


def test_a_word_adds_what_the_log_odds_lose_without_it(without_wide_part):
    x, mask = without_wide_part.arrays([TEXT])
    masks = np.concatenate([mask, mask])
    masks[1, [1, 5]] = False  # both places of "soup"
    x = np.concatenate([x, x])
    p = [model.predict_probabilities(x, masks)[:, 0] for model in without_wide_part.models_]
    log_odds = np.log(p) - np.log1p(-np.array(p))
    expected = float((log_odds[:, 0] - log_odds[:, 1]).mean())
    value = without_wide_part.explain(TEXT).values["soup"]
    np.testing.assert_allclose(value, expected, rtol=1e-3)


def test_a_single_word_cannot_be_left_out(without_wide_part):
    explained = without_wide_part.explain("soup")
    assert explained.values == {}
    assert "nothing" in str(explained)


def test_an_explanation_is_of_one_text(classifier):
    with pytest.raises(TypeError, match=r"text is \['the soup.*expected a text"):
        classifier.explain([TEXT])
