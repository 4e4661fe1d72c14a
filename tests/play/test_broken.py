"""Bugs of the museum in the model of a run."""

import numpy as np
import pytest

import npformer as nf
from npformer.museum import BUGS
from npformer.play import questions
from npformer.play.broken import HAVE_A_PLACE, put_bug
from npformer.play.tasks import choices
from tests.play.questions.conftest import begun


@pytest.mark.parametrize("name", HAVE_A_PLACE)
def test_it_trains_with_the_weights_of_the_healthy_one_and_gradcheck_says_what_it_can(name):
    bug = begun("digits", 2, bug=name, **HAVE_A_PLACE[name])
    healthy = begun("digits", 2, **HAVE_A_PLACE[name])
    assert [type(each) for _, each in bug.model.layers()] != [
        type(each) for _, each in healthy.model.layers()
    ]
    found = questions.named("gradcheck")(bug)
    assert found["bug"]["title"] == BUGS[name].title
    wrong = [each for each in found["tensors"] if not each["ok"]]
    assert bool(wrong) == ("differences" in BUGS[name].caught_by)
    assert found["caught_by"] == [*BUGS[name].caught_by]


@pytest.mark.parametrize("name", HAVE_A_PLACE)
def test_it_begins_with_the_weights_of_the_healthy_one(name):
    usual = HAVE_A_PLACE[name]
    mixer = usual.get("mixers", ["attention"])[0]
    config = nf.EncoderConfig(
        d_model=8,
        n_layers=1,
        n_heads=2,
        d_ff=8,
        max_len=8,
        mixer=mixer,
        dropout=usual.get("dropout", 0.0),
        norm=usual.get("norm", "post"),
    )
    models = [nf.SequenceClassifier(config, 3, n_features=4, seed=5) for _ in range(2)]
    put_bug(name, models[1])
    ours, theirs = (each.named_parameters() for each in models)
    for key in ours.keys() & theirs.keys():
        np.testing.assert_array_equal(ours[key].value, theirs[key].value, err_msg=key)
    assert len(ours.keys() & theirs.keys()) > 4


def test_a_model_without_a_place_for_it_is_refused():
    with pytest.raises(ValueError, match=r"no place for it; expected settings such as \{'mixers'"):
        begun("digits", mixers=["identity"], bug="AttentionThatMergesByReshape")


def test_the_page_is_told_of_every_bug_that_has_a_place():
    bugs = choices()["bugs"]
    assert {each["name"] for each in bugs} == {*HAVE_A_PLACE}
    assert all(each["title"] and each["why"] and each["cost"] and each["code"] for each in bugs)
