"""The exported page, opened as a file: a model runs in it, and nothing is asked from elsewhere."""

import numpy as np
import pytest

import npformer as nf
from npformer.cli import main
from npformer.learn.play.export import export_page
from npformer.learn.play.model_answers import Names
from npformer.learn.play.played import page_of_folder
from tests.learn.play.browser.drawing import DIGITS, draw

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Return the folder that `npformer train digits` writes, with its page in it."""
    folder = tmp_path_factory.mktemp("runs") / "digits"
    main(["train", "digits", "--epochs", "5", "--workers", "1", "--out", str(folder)])
    (folder / "page.html").write_text(page_of_folder(folder), "utf-8")
    return folder


@pytest.fixture
def opened(browser):
    """Return a function that opens a file. In the end it had no error and asked for no other."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    wrong, requests = [], []
    tab.on("console", lambda line: wrong.append(line.text))
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))

    def at(path):
        tab.goto(path.resolve().as_uri())
        tab.locator("#settings").wait_for()
        return tab

    yield at
    tab.close()
    assert wrong == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert sum(url.startswith("file:") for url in requests) == 1


def shares(tab, within):
    """Return the shown probabilities, by class."""
    lines = tab.locator(f"{within} .bars li").all()
    return {
        line.locator(".name").inner_text(): float(line.locator(".value").inner_text().strip("< %"))
        for line in lines
    }


def maps(tab, within):
    return tab.locator(f"{within} .mixing canvas").evaluate_all(
        "(all) => all.map((canvas) => canvas.toDataURL())"
    )


def test_a_digit_drawn_on_the_page_is_recognized(digits, opened):
    tab = opened(digits / "page.html")
    empty = maps(tab, "#try")
    draw(tab, DIGITS["3"])
    assert tab.locator("#digit").inner_text() == "3"
    drawn = maps(tab, "#try")
    assert len(drawn) == 8  # two layers of four heads
    assert all(one != other for one, other in zip(empty, drawn, strict=True))
    drawings = tab.locator(".paper, .seen canvas, .samples canvas")
    assert drawings.count() == 14
    light = drawings.evaluate_all("(all) => all.map((canvas) => canvas.toDataURL())")
    tab.emulate_media(color_scheme="dark")  # the page hears of it later: all are drawn anew
    tab.wait_for_function(
        """(light) => [...document.querySelectorAll(".paper, .seen canvas, .samples canvas")]
            .every((canvas, k) => canvas.toDataURL() !== light[k])""",
        arg=light,
    )
    tab.get_by_role("button", name="Empty this row").click()
    assert tab.locator("#try .moved tbody tr").count() == 2


def test_a_sample_has_the_probabilities_of_the_package(digits, opened):
    tab = opened(digits / "page.html")
    model = nf.load(digits / "model.safetensors")
    x = nf.data.digits().test[0]
    for k in (0, 5):
        tab.locator("#samples .samples button").nth(k).click()
        expected = 100 * model.predict_probabilities(x[k : k + 1])[0]
        probabilities = shares(tab, "#samples")
        assert list(probabilities) == [str(c) for c in range(10)]
        np.testing.assert_allclose(list(probabilities.values()), expected, atol=0.051)


def test_the_page_shows_what_the_run_was(digits, opened):
    tab = opened(digits / "page.html")
    assert tab.locator("#curves .plot:visible").count() == 3
    losses, accuracies = tab.locator("#curves .plots.large .legend").all_inner_texts()
    assert "training" in losses
    assert "validation" in losses
    assert "validation" in accuracies
    words = tab.locator("#settings").inner_text()
    assert "attention, attention" in words
    assert "label smoothing" in words
    assert tab.locator("#bug, #still").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_telephone(digits, opened, scheme):
    tab = opened(digits / "page.html")
    tab.emulate_media(color_scheme=scheme)
    tab.set_viewport_size({"width": 390, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


def test_a_sentence_is_read(opened, tmp_path):
    texts = ["a good film", "good food", "bad film", "the food was bad"] * 6
    labels = ["</script><b>yes", "</script><b>yes", "no & no", "no & no"] * 6
    classifier = nf.TextClassifier({"mixer": "fourier"}, members=1, ngrams=3, seed=0)
    classifier.fit(texts, labels, epochs=3, progress=False)
    x, mask = classifier.arrays(texts[:4])
    path = export_page(
        tmp_path / "page.html",
        classifier.model,
        run={"settings": {"task": "reviews", "mixers": ["fourier"]}},
        names=Names(classes=classifier.classes_.tolist(), tokenizer=classifier.tokenizer_),
        data=(x, classifier.names.numbers(labels[:4]), mask),
    )
    tab = opened(path)
    for text in ("The food was GOOD.", "unseen words"):
        tab.locator("#sentence").fill(text)
        expected = classifier.predict_probabilities([text])[0]
        best = classifier.predict([text])[0]
        tab.locator("#try .answer", has_text=str(best)).wait_for()
        tab.wait_for_timeout(300)  # the answer to the last word
        assert list(shares(tab, "#try")) == classifier.classes_.tolist()
        np.testing.assert_allclose(list(shares(tab, "#try").values()), 100 * expected, atol=0.051)
    assert tab.locator("b", has_text="yes").evaluate_all("(all) => all.length") <= 2  # as text


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return a table, and the folder that `npformer train` writes for it."""
    place = tmp_path_factory.mktemp("table")
    rows = [f"The Soup number {k} was {w},{w}\n" for k in range(30) for w in ("good", "bad")]
    (place / "a.csv").write_text("".join(["text,label\n", *rows]), "utf-8")
    main(["train", f"{place}/a.csv", "--epochs", "2", "--workers", "1", "--out", f"{place}/run"])
    return place


def test_every_control_works_for_a_trained_table(table, opened):
    (table / "page.html").write_text(page_of_folder(table / "run"), "utf-8")
    tab = opened(table / "page.html")
    tab.get_by_role("button", name="Take one from the data").click()
    text = tab.locator("#sentence").input_value()
    assert f"\n{text}," in (table / "a.csv").read_text("utf-8")  # as it was written
    assert "first of 2" in tab.locator("#which").inner_text()
    accuracy = tab.locator("#accuracy").inner_text().replace("\xa0", " ")
    assert " % right on data that it was not trained on; always the same answer: 50.0 %" in accuracy
    for size in (1000, 1280):  # curves are drawn anew
        tab.set_viewport_size({"width": size, "height": 900})
        tab.wait_for_timeout(100)
        titles = tab.locator("#curves .plot:visible figcaption b").all_inner_texts()
        assert titles == ["Loss", "Learning rate"]  # nothing was held out to validate on
        sizes = "(all) => all.map((canvas) => canvas.width - canvas.clientWidth)"
        assert {*tab.locator("#curves .plot:visible canvas").evaluate_all(sizes)} == {0}


def test_an_emptied_box_has_no_answer(table, opened):
    (table / "page.html").write_text(page_of_folder(table / "run"), "utf-8")
    tab = opened(table / "page.html")
    tab.locator("#sentence").fill("The soup was good")
    tab.locator("#try .bars li").first.wait_for()
    tab.locator("#sentence").fill(" ")
    tab.locator("#try .answer", has_text="An empty box").wait_for()
    assert tab.locator("#try :is(.bars, .tokens, .takes, .mixing):visible").count() == 0
    tab.locator("#sentence").fill("The soup was bad")
    tab.locator("#try .answer", has_text="The model says").wait_for()
    assert tab.locator("#try :is(.bars, .tokens, .takes):visible").count() == 3


def test_without_its_table_a_page_offers_no_samples(table, opened, tmp_path):
    (table / "a.csv").rename(tmp_path / "a.csv")
    try:
        (tmp_path / "page.html").write_text(page_of_folder(table / "run"), "utf-8")
    finally:
        (tmp_path / "a.csv").rename(table / "a.csv")
    tab = opened(tmp_path / "page.html")
    assert tab.get_by_role("button", name="Take one from the data").count() == 0
    assert tab.locator("#samples:visible").count() == 0
    assert tab.locator("#try .answer").inner_text() == "An empty box. Write something in it."
    tab.locator("#sentence").fill("soup nowhere bad")
    tab.get_by_text("[UNK] is a word that the model does not know").wait_for()
    assert tab.locator("#word").input_value() == "bad"  # [UNK] is no word to write
    tab.locator("#edit").click()
    tab.locator("#try .moved tbody tr").first.wait_for()


def test_a_causal_model_moves_nothing_before_the_token(opened, tmp_path):
    config = nf.EncoderConfig(d_model=8, n_layers=2, n_heads=2, d_ff=8, max_len=6, causal=True)
    model = nf.SequenceClassifier(config, 2, vocab_size=3, pooling="none", seed=0)
    names = Names(["a", "b", "c"])
    run = {"settings": {"task": "letters"}}
    tab = opened(export_page(tmp_path / "page.html", model, run=run, names=names))
    tab.locator("#sentence").fill("a b c a b")
    tab.get_by_role("button", name="c", exact=True).click()
    tab.locator("#word").fill("a")
    tab.locator("#edit").click()
    tab.locator(".moved tbody tr").first.wait_for()
    for row in tab.locator(".moved tbody tr").all():
        cells = row.locator("td").all_inner_texts()
        assert cells[:2] == ["still", "still"]
        assert all(float(cell) > 0 for cell in cells[2:])


def test_a_model_of_numbers_says_a_number(opened, tmp_path):
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=8)
    model = nf.SequenceClassifier(config, 1, n_features=3, output="mean_squared_error", seed=0)
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    run = {"settings": {"task": "a height"}}
    data = x, np.array([[1.5], [2.5]], "float32")
    tab = opened(export_page(tmp_path / "page.html", model, run=run, data=data))
    words = tab.locator("#samples .answer").inner_text()
    assert words.endswith("The right answer is 1.5.")
    assert abs(float(words.split()[3].rstrip(".")) - float(model(x)[0, 0])) < 1e-3
    assert tab.locator(".bars li, #try").count() == 0


def test_a_model_with_a_bug_says_so_first(opened, tmp_path):
    from npformer.learn.museum import BUGS

    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=8)
    model = nf.SequenceClassifier(
        config, 10, n_features=8, pooling="flatten", seed=0, dtype="float64"
    )
    name = "LayerNormWithoutGamma"
    model.encoder.blocks[0].mixer_norm = BUGS[name].wrong(8, dtype="float64")
    run = {"settings": {"task": "digits"}, "bug": name}
    x, y = nf.data.digits().test
    tab = opened(export_page(tmp_path / "page.html", model, run=run, data=(x[:2], y[:2])))
    first, second = (tab.locator("main > section").nth(k) for k in (0, 1))
    assert first.get_attribute("id") == "bug"
    assert BUGS[name].title in first.inner_text()
    assert "does not run by itself" in second.inner_text()
    assert "mixer_norm" in second.inner_text()  # which layer it is
    assert tab.locator(".paper").count() == 0
    assert len(shares(tab, "#samples")) == 10


def test_a_model_that_writes_shows_what_it_was_asked(opened, tmp_path):
    writer = nf.TextWriter({"d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 8, "max_len": 8})
    writer.fit("to be or not to be\n" * 9, epochs=1, progress=False)
    nf.save(writer, tmp_path / "model.safetensors")
    (tmp_path / "page.html").write_text(page_of_folder(tmp_path), "utf-8")
    tab = opened(tmp_path / "page.html")
    assert "LanguageModel" in tab.locator("#still").inner_text()
    assert tab.locator("#samples .bars li").count() > 3
    assert tab.locator("#samples .mixing canvas").count() == 2


def test_of_pairs_all_three_attentions_are_shown(opened, tmp_path):
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=8)
    model = nf.EncoderDecoder(config, source_vocab=6, target_vocab=6, seed=0)
    pairs = np.array([[3, 4, 5, 0], [5, 4, 0, 0]])
    run = {"settings": {"task": "reverse"}}
    tab = opened(export_page(tmp_path / "page.html", model, run=run, data=(pairs, pairs)))
    assert tab.locator("#samples h3").count() == 3
    assert tab.locator("#samples .mixing canvas").count() == 6
