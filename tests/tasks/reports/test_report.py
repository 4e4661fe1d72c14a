"""report: what the page says is what the models do, and it needs nothing but itself."""

import numpy as np
import pytest

import npformer as nf
from tests.tasks.reports.conftest import pixels, read

TENSORS = ("name", "shape", "mean", "spread", "bytes cached")


def matrices(page):
    """Return the pictures of heads."""
    return [a for a in page.of("img") if a["alt"].startswith("head ")]


@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_every_mixer_is_shown_with_padding(small_model, token_batch, shown, mixer):
    ids, labels, mask = token_batch
    model = small_model(mixer=mixer, padding="per_length")
    page = shown(model, ids, labels, mask, samples=[0, 2])
    heads = model.explain(ids[:1], mask[:1])[0].matrices.shape[1]
    assert len(matrices(page)) == 2 * 2 * heads
    complex_ = np.iscomplexobj(model.explain(ids[:1], mask[:1])[0].matrices)
    assert all(("real part" in a["alt"]) == complex_ for a in matrices(page))
    index, _ = pixels(matrices(page)[-1]["src"])  # of sample 2, whose length is 1
    assert index.shape == (1, 1)
    assert index[0, 0] != 0


def test_padding_within_a_sample_is_grey(small_model, token_batch, shown):
    ids, labels, mask = token_batch
    mask = mask.copy()
    mask[0] = [True, False, True, True, False, False]
    page = shown(small_model(), ids, labels, mask, samples=[0])
    index, colours = pixels(matrices(page)[0]["src"])
    assert index.shape == (4, 4)
    assert (index == 0).sum() == 4 + 4 - 1
    assert colours[0].tolist() == [150, 150, 150]


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        ({"pooling": "none"}, "token"),
        ({"pooling": "flatten", "n_features": 5}, "class"),
        ({"pooling": "pooler", "share_layers": True}, "class"),
        ({"output": "sigmoid", "n_classes": 2}, "binary"),
        ({"output": "mean_squared_error"}, "numbers"),
        ({"output": "mean_squared_error", "pooling": "none", "n_features": 2}, "token numbers"),
        ({"dtype": "float32", "norm": "pre", "n_features": 3}, "class"),
    ],
    ids=str,
)
def test_every_kind_of_model_is_shown(small_model, rng, shown, changes, labels):
    model = small_model(**changes)
    features = changes.get("n_features")
    x = rng.integers(0, 7, (9, 6)) if features is None else rng.normal(size=(9, 6, features))
    x = x if features is None else x.astype(model.dtype)
    y = {"token": rng.integers(-1, 3, (9, 6)), "class": rng.integers(0, 3, 9)}
    y |= {"binary": rng.integers(0, 2, 9), "numbers": rng.normal(size=(9, 3))}
    y = (y | {"token numbers": rng.normal(size=(9, 6, 3))})[labels]
    page = shown(model, x, y, samples=3)
    expected = nf.evaluate(model, (x, y))
    ((_, _, accuracy, loss, parameters, *_),) = page.table_after("model", "mixer")[0]
    assert loss == f"{expected.loss:.4f}"
    assert accuracy == ("-" if "numbers" in labels else f"{expected.accuracy:.4f}")
    assert parameters == f"{model.n_parameters():,}"
    assert ("no confusion matrix, as it predicts numbers" in page.text) == ("numbers" in labels)
    assert len(matrices(page)) == 3 * 2 * 2
    assert bool([a for a in page.of("img") if a["alt"].startswith("x: ")]) == (features is not None)
    assert bool(page.of("ol", class_="tokens")) is False  # attribute names are those of HTML
    assert bool(page.of("ol", **{"class": "tokens"})) == (features is None)


def test_a_picture_holds_the_weights(small_model, token_batch, shown):
    ids, labels, _ = token_batch
    model = small_model()
    page = shown(model, ids, labels, samples=[5])
    for layer, pair in zip(
        model.explain(ids[5:6]), np.reshape(matrices(page), (2, 2)), strict=True
    ):
        for weights, picture in zip(layer.matrices[0], pair, strict=True):
            index, _ = pixels(picture["src"])
            np.testing.assert_array_equal(index, 1 + np.rint(63 * weights / weights.max()))
            i, j = np.unravel_index(weights.argmax(), weights.shape)
            words = f"{weights.max():.2f}: {i} ({ids[5, i]}) from {j} ({ids[5, j]})"
            assert picture["alt"].endswith(words)


def test_an_image_is_shown_with_its_tokens_as_rows(shown):
    dataset = nf.data.digits()
    x, y = (array[:6] for array in dataset.test)
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=8)
    page = shown(nf.SequenceClassifier(config, 10, n_features=8), x, y, samples=1)
    *_, last = (a for a in page.of("img") if a["alt"].startswith("x: 8 tokens as rows"))
    index, colours = pixels(last["src"])
    np.testing.assert_array_equal(index, 1 + np.rint((x[0] + 1.0) / 2.0 * 63))
    assert colours[1].tolist() == [255, 255, 255]


CLASS_NAMES = ["low", "middle", "high"]


@pytest.fixture
def named_page(small_model, token_batch, shown):
    """Return the page of a model with names of classes, and its probabilities."""
    ids, labels, mask = token_batch
    model = small_model()
    logits = model(ids, mask)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return shown(model, ids, labels, mask, class_names=CLASS_NAMES), probabilities


def test_confusions_are_counted(named_page, token_batch):
    page, p = named_page
    _, labels, _ = token_batch
    (rows,) = page.table_after("", *CLASS_NAMES)
    confusions = [[int(cell.replace("·", "0")) for cell in row[1:]] for row in rows]
    expected = np.zeros((3, 3), int)
    np.add.at(expected, (labels, p.argmax(axis=1)), 1)
    np.testing.assert_array_equal(confusions, expected)
    colours = [a["style"].partition("rgba(")[2][:3] for a in page.of("b") if "style" in a]
    of_counts = ["33," if i == j else "214" for i, j in np.argwhere(expected)]
    assert colours == [colour[:3] for colour in of_counts]  # blue where label and prediction agree


def test_mistakes_are_listed_from_the_worst_on(named_page, token_batch):
    page, p = named_page
    _, labels, _ = token_batch
    losses = -np.log(p[np.arange(8), labels])
    predicted = p.argmax(axis=1)
    mistakes = [i for i in np.argsort(-losses) if predicted[i] != labels[i]]
    expected = [
        f"sample {i}; label {CLASS_NAMES[labels[i]]}; predicted {CLASS_NAMES[predicted[i]]} "
        f"(p {p[i].max():.2f}), wrong, loss {losses[i]:.3g}"
        for i in mistakes
    ]
    assert [line for line in page.text.splitlines() if line.startswith("sample ")] == expected


CHOSEN = [1, 6]


@pytest.fixture
def chosen_page(small_model, token_batch, shown):
    """Return a model, the samples that its page shows, and the page."""
    ids, labels, mask = token_batch
    model = small_model()
    page = shown(model, ids, labels, mask, samples=CHOSEN)
    return model, (ids[CHOSEN], labels[CHOSEN], mask[CHOSEN]), page


def test_tensors_are_those_of_the_chosen_samples(chosen_page):
    model, (ids, labels, mask), page = chosen_page
    trace = nf.trace(model, ids, mask, labels=labels)
    (forward,) = page.table_after(*TENSORS)
    assert len(forward) == len(trace)
    for row, call in zip(forward, trace, strict=True):
        name, kind = row[0].split(" ")
        assert call.name.endswith(name) or name == "model"
        assert kind == type(call.layer).__name__
        assert row[1] == str(tuple(call.output.shape))
        assert row[4] == f"{call.bytes_cached:,}"
    backward = next(rows for rows in page.table_after(*TENSORS[:4]) if len(rows[0]) == 4)
    assert len(backward) == len(trace.backward)


def test_gradients_are_those_of_the_chosen_samples(chosen_page):
    model, batch, page = chosen_page
    with nf.use_kernels(False):
        _, gradients = model.loss_and_gradients(*batch)
    (rows,) = page.table_after("parameter", "shape")
    assert [row[0] for row in rows] == list(gradients)
    for row, gradient in zip(rows, gradients.values(), strict=True):
        assert row[3] == f"{np.linalg.norm(gradient.ravel()):#.3g}"


def test_models_stand_side_by_side(small_model, token_batch, shown):
    ids, labels, _ = token_batch
    models = {name: small_model(mixer=name) for name in ("attention", "fourier", "linear")}
    page = shown(models, ids, labels, samples=2, notes={"linear": "it is new"})
    assert [row[0] for row in page.table_after("model")[0]] == list(models)
    assert len(page.of("div", **{"class": "card"})) == 2 * 3
    assert len(page.of("details")) == 3
    assert len(page.of("details", open="open")) == 1
    assert "linear: it is new" in page.text


def test_names_are_escaped(small_model, token_batch, shown):
    ids, labels, _ = token_batch
    bad = "<script>alert('&\"')</script>"
    words = {"title": bad, "class_names": {0: bad, 2: "x\0\ud800"}, "notes": {bad: bad}}
    words["token_names"] = [f"{bad[:30]}{i}" for i in range(7)]
    page = shown({bad: small_model()}, ids, labels, **words)
    assert bad in page.text
    assert page.of("script") == []
    assert "\0" not in page.text


def test_of_wrong_tokens_both_labels_are_shown(small_model, token_batch, shown):
    ids, _, mask = token_batch
    model = small_model(pooling="none")
    y = (model.predict(ids, mask) + 1) % 3  # every prediction is wrong
    page = shown(model, ids, y, mask, token_names=list("abcdefg"), class_names=list("xyz"))
    assert len(page.of("li", **{"class": "token wrong"})) == mask.sum()
    assert page.of("li", **{"class": "token padding"}) == []
    assert "x, not z" in page.text


def test_it_begins_with_the_opening(small_model, token_batch, shown):
    ids, labels, mask = token_batch
    opening = ["In short.", [["class", "F1"], ["a <b>", "0.5"]]]
    page = shown(small_model(), ids, labels, mask, opening=opening, samples=[1])
    assert page.tables[0] == [["class", "F1"], ["a <b>", "0.5"]]
    assert page.text.index("In short.") < page.text.index("Models")


def test_without_an_opening_there_are_no_results(small_model, token_batch, shown):
    ids, labels, mask = token_batch
    assert "Results" not in shown(small_model(), ids, labels, mask).text


def test_a_sample_is_named_by_the_beginning_of_its_text(small_model, token_batch, shown):
    ids, labels, mask = token_batch
    names = [f"text number {i}, " + "word " * 100 for i in range(len(ids))]
    page = shown(small_model(), ids, labels, mask, samples=[1], sample_names=names)
    assert "text number 1, word" in page.text
    assert "…" in page.text
    assert names[1] not in page.text


def test_padding_behind_a_sample_is_not_shown(small_model, shown):
    ids = np.ones((2, 40), dtype="int64")
    labels = np.array([0, 1])
    mask = np.arange(40) < np.array([[3], [40]])
    page = shown(small_model(max_len=40), ids, labels, mask, samples=[0])
    heads = [tag["alt"] for _, tag in page.tags if tag.get("alt", "").startswith("head 0")]
    assert all(alt.startswith("head 0, 3 x 3") for alt in heads)
    assert heads
    assert "more tokens" not in page.text


def test_tokens_with_names_stand_at_both_axes(small_model, token_batch, shown):
    ids, labels, mask = token_batch
    names = ["[PAD]", "good", "##ness", "#<go", "[UNK]", "not", "#"]
    model = small_model()
    page = shown(model, ids, labels, mask, samples=[0], token_names=names)
    assert matrices(page) == []
    pictures = [a for a in page.of("svg") if a["aria-label"].startswith("head ")]
    length = int(mask[0].sum())
    assert len(pictures) == 2 * 2
    assert all(f", {length} x {length}: " in a["aria-label"] for a in pictures)
    assert len(page.of("text")) == 2 * length * len(pictures)
    assert len(page.of("text", **{"class": "row"})) == length * len(pictures)
    weights = model.explain(ids[:1], mask[:1])[0].matrices[0, 0]
    index, _ = pixels(page.of("image")[0]["href"])
    cropped = weights[:length, :length]
    np.testing.assert_array_equal(index, 1 + np.rint(63 * cropped / cropped.max()))


def test_of_long_texts_the_first_tokens_are_at_the_axes(small_model, shown):
    ids = np.ones((2, 70), dtype="int64")
    labels = np.array([0, 1])
    page = shown(small_model(max_len=70), ids, labels, samples=1, token_names=list("abcdefg"))
    assert len(page.of("text")) == 2 * 64 * len(page.of("image"))
    assert "more than 64 tokens" in page.text


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("##ness", "Tokens: ##ness continues the word before it."),
        ("#<go", "Tokens: #<go is a part of a word"),
        ("[UNK]", "Tokens: [UNK] is a word that is not in the vocabulary."),
        ("\u0120go", "with the space before it."),
        ("#", None),
        ("go", None),
    ],
)
def test_pieces_of_words_are_explained(small_model, shown, token, words):
    ids, labels = np.array([[1, 2, 1], [0, 0, 0]]), np.array([0, 1])
    names = ["a", "b", token, "##other", "#<oth", "e", "f"]  # those of other samples are not named
    page = shown(small_model(), ids, labels, samples=[0], token_names=names)
    assert (words or "") in page.text
    assert ("Tokens: " in page.text) == (words is not None)


def test_mistakes_are_shown_as_texts(small_model, token_batch, shown):
    ids, labels, mask = token_batch
    model = small_model()
    labels = (model.predict(ids, mask) + 1) % 3  # every prediction is wrong
    texts = [f"text {i}" for i in range(len(ids))]
    page = shown(model, ids, labels, mask, samples=1, sample_names=texts)
    assert all(text in page.text for text in texts)
    assert len(page.of("ol", **{"class": "tokens"})) == 1
    assert len(page.of("li", **{"class": "token"})) == mask[0].sum()


class Noise(nf.mixers.Attention):
    """Its pictures cannot be compressed."""

    def explain(self, x, context):
        return np.random.default_rng(0).random((len(x), 8, x.shape[1], x.shape[1]))


@pytest.mark.slow
@pytest.mark.parametrize(("length", "at_least"), [(120, 1_500_000), (512, 0)])
def test_a_report_on_long_sequences_is_small(rng, tmp_path, length, at_least):
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=1, d_ff=8, max_len=512)
    model = nf.SequenceClassifier(config, 40, vocab_size=90)
    for block in model.encoder.blocks:
        block.mixer.__class__ = Noise
    x, y = rng.integers(0, 90, (24, length)), rng.integers(0, 40, 24)
    path = nf.report(model, x, y, path=tmp_path / "r.html", samples=16)
    assert at_least < path.stat().st_size < 5_000_000
    page = read(path)
    assert len(matrices(page)) == 16 * 8
    index, _ = pixels(matrices(page)[0]["src"])
    assert len(index) == {120: 120, 512: 103}[length]
    assert ("a pixel is the largest of 5 x 5" in matrices(page)[0]["alt"]) == (length == 512)
    assert ("and 384 more tokens" in page.text) == (length == 512)
    assert "no confusion matrix, as it would have 40 rows" in page.text
    assert page.table_after("label", "predicted", "how often")


def test_a_note_tells_how_many_heads_are_left_out(rng, shown):
    config = nf.EncoderConfig(d_model=64, n_layers=2, n_heads=64, d_ff=8, max_len=4)
    model = nf.SequenceClassifier(config, 3, vocab_size=9)
    x, y = rng.integers(0, 9, (16, 4)), rng.integers(0, 3, 16)
    page = shown(model, x, y, samples=16)
    assert len(matrices(page)) == 16 * 2 * 18
    assert "the first 18 of 64 heads are shown" in page.text


def test_a_model_of_nan_can_be_looked_at(small_model, token_batch, shown):
    ids, labels, _ = token_batch
    model = small_model()
    model.parameters()["encoder.blocks.1.mixer.query.weight"][:] = np.nan
    page = shown(model, ids, labels)
    assert "predicted none" in page.text
    assert "not finite" in page.text
    assert "it holds NaN or infinity" in page.text
    index, colours = pixels(matrices(page)[-1]["src"])
    assert (index == 65).all()
    assert len(colours) == 66


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"samples": 0}, ValueError, "samples is 0; expected a whole number of at least 1"),
        ({"samples": 17}, ValueError, "at most 16"),
        ({"samples": "many"}, ValueError, "samples is 'many'"),
        ({"samples": []}, ValueError, "samples has 0 numbers; expected from 1 to 16"),
        ({"samples": [8]}, ValueError, "a number in samples is 8; .* at most 7"),
        ({"samples": [-1]}, ValueError, "a number in samples is -1"),
        ({"token_names": ["a"]}, ValueError, "token_names has 1 names; expected 7"),
        ({"token_names": "abcdefg"}, TypeError, "token_names is a str; expected a list"),
        ({"token_names": {7: "h"}}, ValueError, "a key of token_names is 7"),
        ({"class_names": [1, 2, 3]}, TypeError, r"class_names\[0\] is 1; expected a text"),
        ({"title": 3}, TypeError, "title is 3; expected a text"),
        (
            {"path": "no/such/folder.html"},
            OSError,
            "folder.html is in a folder that does not exist",
        ),
        ({"notes": "new"}, TypeError, "notes is a str; expected a Mapping"),
        ({"notes": {"b": "new"}}, ValueError, "a name in notes is 'b'; expected one of 'model'"),
        ({"notes": {"model": 1}}, TypeError, r"notes\['model'\] is 1; expected a text"),
        ({"batch_size": 0}, ValueError, "batch_size is 0"),
        ({"model": {}}, ValueError, "model is an empty mapping"),
        ({"model": "m"}, TypeError, "model is 'm'; expected a SequenceClassifier"),
        ({"x": np.full((8, 6), 7)}, ValueError, "x holds 7"),
        ({"x": np.zeros((8, 6))}, TypeError, "x has dtype float64"),
        ({"y": np.full(8, 3)}, ValueError, "y holds 3"),
        ({"mask": np.ones((8, 5), bool)}, ValueError, "mask has shape"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(small_model, token_batch, tmp_path, given, error, words):
    ids, labels, mask = token_batch
    call = {"model": small_model(), "x": ids, "y": labels, "mask": mask}
    call |= {"path": tmp_path / "r.html"} | given
    with pytest.raises(error, match=words):
        nf.report(**call)
    assert list(tmp_path.iterdir()) == []


def test_the_error_names_the_model_that_data_do_not_fit(small_model, token_batch, tmp_path):
    ids, labels, mask = token_batch
    models = {"a": small_model(), "b": small_model(mixer="fourier")}
    with pytest.raises(ValueError, match="got a padding mask"):
        nf.report(models, ids, labels, mask, path=tmp_path / "r.html")
    models["b"] = small_model(vocab_size=3)
    with pytest.raises(ValueError, match="for the model 'b', in data, x holds"):
        nf.report(models, ids, labels, path=tmp_path / "r.html")


def test_names_of_tokens_need_tokens(small_model, rng, tmp_path):
    x = rng.normal(size=(3, 6, 2))
    y = np.array([0, 1, 2])
    with pytest.raises(ValueError, match="the models have no token ids; leave it out"):
        nf.report(small_model(n_features=2), x, y, token_names=["a"], path=tmp_path / "r.html")


def test_parts_of_words_are_one_row_of_a_picture(small_model, token_batch, shown):
    ids, labels, mask = token_batch
    length = int(mask[0].sum())
    words = [("goodness", [0, length - 1]), *((f"w{i}", [i]) for i in range(1, length - 1))]
    model = small_model()
    page = shown(model, ids, labels, mask, samples=[0], sample_words=lambda i: words)
    weights = model.explain(ids[:1], mask[:1])[0].matrices[0, 0][:length, :length]
    columns = weights[:, : length - 1].copy()
    columns[:, 0] += weights[:, length - 1]
    merged = columns[: length - 1].copy()
    merged[0] = (columns[0] + columns[length - 1]) / 2
    index, _ = pixels(page.of("image")[0]["href"])
    np.testing.assert_array_equal(index, 1 + np.rint(63 * merged / merged.max()))
    np.testing.assert_allclose(merged.sum(axis=1), 1.0)
