"""The exported page, as a text."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import npformer as nf
from npformer.learn.play import bundle, export
from npformer.learn.play.model_answers import Names
from npformer.learn.play.played import page_of_folder
from npformer.learn.play.trained import points_of, trained

SMALL = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=8)
ROBERTA = replace(SMALL, positions="learned", position_padding_id=1)


def made(**changes):
    return nf.SequenceClassifier(SMALL, 3, **{"vocab_size": 5, "seed": 0, **changes})


def contents(html):
    """Return the data in a page."""
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', html)
    return json.loads(match[1])


def test_a_page_asks_for_nothing():
    html = export.page_of_model(made(), run={"settings": {"task": "letters"}})
    assert not re.search(
        r"""(?:https?:)?//[\w-]+\.\w|\bimport\b|<link[^>]*href="(?!data:)|src=""", html
    )
    assert "default-src 'none'" in html
    assert html.count("</script>") == 2


def test_names_cannot_end_the_element_that_holds_them():
    names = Names(classes=["</script><script>alert(1)</script>", "<!--", "c"])
    html = export.page_of_model(made(), run={"settings": {"task": "{{script}}"}}, names=names)
    assert html.count("</script>") == 2
    run = contents(html)["run"]
    assert run["classes"][1] == "<!--"
    assert run["settings"]["task"] == "{{script}}"


def test_nan_becomes_null():
    points = [{"step": 1, "loss": float("nan"), "norms": [np.float32(2.0), np.inf]}]
    html = export.page_of_model(made(), run={"settings": {}}, points=points)
    assert contents(html)["points"] == [{"step": 1, "loss": None, "norms": [2.0, None]}]


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (nf.Encoder(SMALL), "Encoder"),
        (nf.EncoderDecoder(SMALL, source_vocab=5, target_vocab=5), "EncoderDecoder"),
        (
            nf.SequenceClassifier(replace(SMALL, position_padding_id=1), 3, vocab_size=5),
            "positions",
        ),
    ],
)
def test_models_that_it_does_not_know_are_named(model, why):
    with pytest.raises(export.NotRunnableError, match=why):
        export.model_file(model)


def test_a_layer_that_was_replaced_is_named():
    model = made()
    model.encoder.blocks[0].feed_forward.activation = nf.layers.Tanh()
    with pytest.raises(export.NotRunnableError, match=r"feed_forward\.activation is .*Tanh"):
        export.model_file(model)


def test_a_mixer_of_ones_own_is_named():
    from dataclasses import replace

    class Mine(nf.mixers.Identity):
        pass

    nf.MIXERS.register("mine", Mine)
    try:
        model = nf.SequenceClassifier(replace(SMALL, mixer="mine"), 3, vocab_size=5)
        with pytest.raises(export.NotRunnableError, match="mixer 'mine'"):
            export.model_file(model)
        x = np.array([[1, 2, 3]])
        page = contents(export.page_of_model(model, run={"settings": {}}, data=(x, np.array([1]))))
    finally:
        del nf.MIXERS["mine"]
    assert page["model"] is None
    assert "mine" in page["why"]
    assert page["samples"][0]["answer"]["groups"][0]["mixing"][0]["kind"] == "Mine"


def test_a_large_model_is_not_written_into_a_page(monkeypatch):
    monkeypatch.setattr(export, "MOST_PARAMETERS", 100)
    with pytest.raises(export.NotRunnableError, match="parameters"):
        export.model_file(made())


def test_a_module_that_cannot_be_put_into_one_file_is_refused(monkeypatch):
    monkeypatch.setattr(bundle, "read", lambda name: 'import x from "elsewhere";\n')
    with pytest.raises(ValueError, match="elsewhere"):
        bundle.bundle("a.js")


def test_modules_stand_behind_what_they_import():
    script = bundle.bundle("export.js")
    places = [script.index(f"// {name}.js\n") for name in ("dom", "charts", "tensors", "export")]
    assert places == sorted(places)


def test_the_forward_pass_is_short_enough_to_be_read():
    assert len(export.read("model.js").splitlines()) <= 400  # as any file of the package


def test_exporting_changes_no_weight():
    model = made()
    before = {name: p.value.copy() for name, p in model.named_parameters().items()}
    data = np.array([[1, 2, 3]]), np.array([1])
    export.page_of_model(model, run={"settings": {}}, data=data)
    for name, parameter in model.named_parameters().items():
        np.testing.assert_array_equal(parameter.value, before[name])


def test_exporting_twice_gives_the_same_page():
    model = made()
    data = np.array([[1, 2, 3]]), np.array([1])
    page = export.page_of_model(model, run={"settings": {}}, data=data)
    assert page == export.page_of_model(model, run={"settings": {}}, data=data)


def test_a_history_has_a_point_for_each_epoch():
    history = nf.History([2.0, 1.0], [], [0.5, 0.7], [0.1, 0.2], [1, 1], workers={"1 worker": 20})
    first, second = points_of(history.to_dict())
    assert (first["step"], second["step"]) == (10, 20)
    assert second["accuracy"] == 0.7


@pytest.fixture
def text_folder(tmp_path):
    """Return a folder in which a classifier of texts is saved."""
    classifier = nf.TextClassifier(members=2, seed=0)
    classifier.fit(["good", "bad"] * 6, ["yes", "no"] * 6, epochs=1, progress=False)
    nf.save(classifier, tmp_path / "model.safetensors")
    return tmp_path


def test_a_classifier_of_texts_has_its_classes(text_folder):
    _, bundle_of = trained(text_folder)
    assert bundle_of["names"].classes == ["no", "yes"]


def test_the_page_of_a_classifier_of_texts_has_its_tokenizer(text_folder):
    page = contents(page_of_folder(text_folder))
    assert page["tokenizer"]["lower"] is True


def test_the_page_of_an_ensemble_says_that_it_shows_the_first_member(text_folder):
    page = contents(page_of_folder(text_folder))
    assert "the first of 2" in page["facts"]["model"]


def test_of_a_tokenizer_that_the_page_does_not_have_no_text_can_be_written():
    class Letters(nf.data.tokenizers.Tokenizer):
        padding_id, unknown_id, vocab_size = 0, None, 5

        def ids(self, text, max_len=None):
            return ["abcde".index(letter) for letter in text]

        def token(self, id):
            return "abcde"[id]

        def decode(self, ids):
            return "".join(map(self.token, ids))

        def to_dict(self):
            return {}

    data = np.array([[1, 2, 3]]), np.array([1])
    names = Names(tokenizer=Letters())
    page = contents(export.page_of_model(made(), run={"settings": {}}, names=names, data=data))
    assert page["model"] is not None
    assert page["tokens"] is page["tokenizer"] is None
    assert "library" in page["facts"]["tokenizer"]
    assert page["samples"][0]["text"] == "bcd"


@pytest.mark.parametrize("name", ["metrics.json", "history.json"])
@pytest.mark.parametrize(
    "words",
    ["", "3", "null", "[" * 100_000, '{"": 3, "training": 3}', '{"": {"lr": []}, "splits": [1]}'],
)
def test_figures_that_no_training_wrote_are_named(tmp_path, name, words):
    nf.save(made(), tmp_path / "model.safetensors", notes={"split": ""})
    (tmp_path / name).write_text(words)
    with pytest.raises(ValueError, match=r"model.safetensors, its metrics.json or its history"):
        trained(tmp_path)


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="npformer train"):
        trained(tmp_path)


def test_notes_without_a_seed_are_named(tmp_path):
    nf.save(made(), tmp_path / "model.safetensors", notes={"task": "digits"})
    with pytest.raises(ValueError, match=r"does not hold what npformer train writes \(KeyError"):
        trained(tmp_path)
