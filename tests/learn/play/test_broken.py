"""Bugs of the museum in the model of a run."""

import numpy as np
import pytest

import npformer as nf
from npformer.learn.museum import BUGS
from npformer.learn.play import questions
from npformer.learn.play.broken import HAVE_A_PLACE, angles, angles_between_batches, put_bug
from npformer.learn.play.questions.gradcheck import gradcheck
from npformer.learn.play.state import groups_of
from npformer.learn.play.tasks import choices
from npformer.models import EncoderBlock
from tests.learn.play.questions.conftest import begun
from tests.sampling import mark_others

FEW = mark_others([*HAVE_A_PLACE][::4], HAVE_A_PLACE)


@pytest.mark.parametrize("name", FEW)
def test_a_bug_changes_the_layers_of_the_model(name):
    bug = begun("digits", 2, bug=name, **HAVE_A_PLACE[name])
    healthy = begun("digits", 2, **HAVE_A_PLACE[name])
    classes = [type(layer) for _, layer in bug.training.model.layers()]
    assert classes != [type(layer) for _, layer in healthy.training.model.layers()]


@pytest.mark.parametrize("name", FEW)
def test_gradcheck_finds_the_bugs_that_differences_catch(name):
    answer = gradcheck(name)
    assert answer["bug"]["title"] == BUGS[name].title
    wrong = [tensor for tensor in answer["tensors"] if not tensor["ok"]]
    assert bool(wrong) == ("differences" in BUGS[name].caught_by)
    assert answer["caught_by"] == [*BUGS[name].caught_by]


@pytest.mark.parametrize("name", HAVE_A_PLACE)
def test_it_begins_with_the_weights_of_the_healthy_one(name):
    settings = HAVE_A_PLACE[name]
    mixers = settings.get("mixers", ["attention"])
    config = nf.EncoderConfig(
        d_model=8,
        n_layers=len(mixers),
        n_heads=2,
        d_ff=8,
        max_len=8,
        mixer=mixers[0],
        dropout=settings.get("dropout", 0.0),
        norm=settings.get("norm", "post"),
    )
    models = [nf.SequenceClassifier(config, 3, n_features=4, seed=5) for _ in range(2)]
    put_bug(name, models[1])
    ours, theirs = (model.named_parameters() for model in models)
    for key in ours.keys() & theirs.keys():
        np.testing.assert_array_equal(ours[key].value, theirs[key].value, err_msg=key)
    assert len(ours.keys() & theirs.keys()) > 4


@pytest.fixture(scope="module", params=FEW)
def broken(request):
    return begun("digits", 2, bug=request.param, **HAVE_A_PLACE[request.param])


def test_a_weights_gradient_answers_as_the_referees_do(broken):
    """By the wrong backward pass some weight's gradient is not the derivative of the loss.

    At evaluation dropout does nothing, so a wrong dropout's gradients are right there. The referees
    pass one bug whose gradients are wrong, at the shape that they get.
    """
    bug = BUGS[broken.work.settings.bug]
    off = []
    for name, parameter in broken.training.model.trainable().items():
        if name.startswith(("embed.tokens", "encoder.blocks.0")):
            index = [*range(1, parameter.value.ndim + 1)]  # [1, 1] stays where it is if transposed
            answer = questions.ask(broken, "weight", name=name, index=index, batch=True)
            right = answer["complex_step"]
            errors = [abs(difference["value"] - right) for difference in answer["differences"]]
            assert min(errors) < 1e-8 * max(1.0, abs(right))  # two ways agree on what is right
            off.append(abs(answer["gradient"] - right))
    at_evaluation = "differences" in bug.caught_by and bug.name != "DropoutThatRemembers"
    at_evaluation |= bug.name == "LayerNormDividedByItsTokens"
    assert (max(off) > 1e-5) == at_evaluation


def test_a_step_shows_the_wrong_lines_where_they_run(broken):
    bug = BUGS[broken.work.settings.bug]
    answer = questions.ask(broken, "step", sample=1)
    wrong = [box for box in answer["forward"] + answer["backward"] if box["function"] == bug.name]
    of_a_block = issubclass(bug.wrong, nf.Encoder | EncoderBlock) if _is_class(bug) else False
    assert bool(wrong) != of_a_block  # blocks have no boxes: their parts have
    for box in wrong:
        assert box["lines"] == bug.code
        assert box["formula"] == bug.title
        assert box["source"].startswith("npformer/learn/museum/")


def _is_class(bug):
    return isinstance(bug.wrong, type)


def test_it_is_not_saved_as_a_healthy_model(broken, tmp_path):
    with pytest.raises(TypeError, match="model is a SequenceClassifierWithBug"):
        nf.save(broken.training.model, tmp_path / "model.safetensors")


@pytest.mark.parametrize("task", ["parity", "pointer"])
@pytest.mark.parametrize("name", ["LayerNormWithoutGamma", "EncoderOfOneBlock"])
def test_generated_tasks_have_a_place_too(task, name):
    run = begun(task, 1, bug=name, mixers=["attention"] * 2)
    assert any(type(layer).__name__ == name for _, layer in run.training.model.layers())


@pytest.mark.parametrize("mixers", [["attention"], ["attention", "fourier"]])
def test_one_block_stands_for_several_equal_ones(mixers):
    with pytest.raises(ValueError, match="no place for it"):
        begun("digits", bug="EncoderOfOneBlock", mixers=mixers)


def test_a_model_without_a_place_for_it_is_refused():
    with pytest.raises(ValueError, match=r"no place for it; expected settings such as \{'mixers'"):
        begun("digits", mixers=["identity"], bug="AttentionThatMergesByReshape")


def test_the_page_is_told_of_every_bug_that_has_a_place():
    bugs = choices()["bugs"]
    assert {bug["name"] for bug in bugs} == {*HAVE_A_PLACE}
    assert all(bug["title"] and bug["why"] and bug["cost"] and bug["code"] for bug in bugs)


def test_angles_are_those_between_the_gradients(broken):
    """A layer above the bug has the right gradient; of a model without one, all have."""
    now, bug = broken, BUGS[broken.work.settings.bug]
    groups = groups_of(now.training.model)
    x, y, _ = now.work.sample(slice(0, 8))
    names = [names for _, names in groups]
    right = now.work.healthy()
    wrong = now.plain
    degrees = angles(wrong, right, x, y, names)
    assert angles(right, now.work.healthy(), x, y, names) == pytest.approx([0.0] * len(names))
    same = [n for n in names[-1] if n in right.parameters()]
    if bug.name == "attention_that_asks_the_keys":
        assert all(5.0 < angle < 175.0 for angle in degrees)
    if now.work.settings.dropout == 0.0:  # the public gradients are those without dropout
        pair = [m.loss_and_gradients(x, y)[1] for m in (right, wrong)]
        a, b = (np.concatenate([g[n].astype("float64").ravel() for n in same]) for g in pair)
        cosine = a @ b / np.sqrt((a @ a) * (b @ b))
        assert degrees[-1] == pytest.approx(np.degrees(np.arccos(min(cosine, 1.0))), abs=0.02)


def test_angles_between_batches_are_those_of_their_gradients():
    now = begun("digits", 30, dropout=0.0)
    x, y, _ = now.work.sample(slice(0, 64))
    model = now.plain
    groups = [names for _, names in groups_of(model)]
    degrees = angles_between_batches(model, (x[:32], y[:32]), (x[32:], y[32:]), groups)
    of_batches = [
        model.loss_and_gradients(x[rows], y[rows])[1] for rows in (slice(32), slice(32, 64))
    ]
    for names, degree in zip(groups, degrees, strict=True):
        a, b = (np.concatenate([g[n].astype("float64").ravel() for n in names]) for g in of_batches)
        cosine = a @ b / np.sqrt((a @ a) * (b @ b))
        assert degree == pytest.approx(np.degrees(np.arccos(cosine)), abs=0.02)


def test_a_batch_is_not_turned_from_itself():
    now = begun("digits", 3)
    x, y, _ = now.work.sample(slice(0, 32))
    groups = [names for _, names in groups_of(now.plain)]
    degrees = angles_between_batches(now.plain, (x, y), (x, y), groups)
    assert degrees == pytest.approx([0.0] * len(groups), abs=1e-4)


def test_a_norm_that_forgets_gamma_is_seen_below_it_only():
    name = "LayerNormWithoutGamma"
    now = begun("digits", 30, bug=name, **HAVE_A_PLACE[name])
    groups = groups_of(now.training.model)
    x, y, _ = now.work.sample(slice(0, 32))
    degrees = angles(now.plain, now.work.healthy(), x, y, [names for _, names in groups])
    turned = {group: angle for (group, _), angle in zip(groups, degrees, strict=True)}
    below = {"embed", "encoder.blocks.0.mixer"}
    assert all((angle > 0.05) == (group in below) for group, angle in turned.items()), turned
