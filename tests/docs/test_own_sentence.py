"""The small model of a page has the settings of its command, and the numbers of the package."""

import json
import shutil
import subprocess

import numpy as np
import pytest

import npformer as nf
from tests.needs import NEEDS
from tests.pages import page_without_errors

pytest.importorskip("sphinx", reason=NEEDS["sphinx"])

from docs.site import own_sentence, small_model
from docs.site.pages import DOCS
from npformer.data.tokenizers import SpellingTokenizer
from npformer.training.generation.choosing import Choice

pytestmark = pytest.mark.slow

SENTENCES = {
    "a sentence": "My lord, the king is dead, and the queen will",
    "a name and a line": "ROMEO:\nWhat light is this that breaks?\n\nJULIET:\n",
    "one token": "O",
    "rare words": "Transformers in the browser don't need servers",
    "unknown characters": "naïve 7 e\u0301 \U0001f44d\U0001f3fd \u05d0\u05f4\u05d1 a\u200db",
    "as long as it reads": "the king of the sea " * 12 + "and more of it",
}
TEMPERATURES = (0.0, 0.5, 1.0, 1.7)
NEVER = range(len(SpellingTokenizer.special))


@pytest.fixture(scope="module")
def description():
    return small_model.read()


@pytest.fixture(scope="module")
def twin(description):
    """The model with the stored weights, in float64, and its tokenizer."""
    return small_model.load_stored_model(description)


def test_the_file_is_at_most_a_megabyte():
    assert 100_000 < small_model.FILE.stat().st_size <= 1_000_000


def test_the_file_has_the_settings_of_the_command(description):
    assert description["settings"] == json.loads(json.dumps(small_model.settings()))


def test_the_file_has_the_shapes_of_its_settings(description):
    settings = description["settings"]
    config = nf.EncoderConfig(**settings["config"])
    model = nf.LanguageModel(config, settings["tokenizer"]["vocab_size"])
    shapes = {name: list(p.shape) for name, p in model.named_parameters().items()}
    assert {name: t["shape"] for name, t in description["tensors"].items()} == shapes


def test_the_file_has_the_vocabulary_of_the_data(description):
    text, _ = small_model.split_plays()
    size = description["settings"]["tokenizer"]["vocab_size"]
    tokenizer = SpellingTokenizer.train([text], words=True, vocab_size=size)
    assert description["tokenizer"] == tokenizer.to_dict()


@pytest.mark.slow
def test_the_weights_have_the_loss_that_the_file_states(description):
    model, tokenizer = small_model.load_stored_model(description, dtype="float32")
    _, unseen = small_model.split_plays()
    nats = small_model.nats_per_character(model, tokenizer, unseen)
    assert abs(nats - description["measured"]["stored"]) < 1e-3


def test_the_page_says_what_the_file_is(description):
    table = small_model.table(description, small_model.FILE.stat().st_size)
    assert table in small_model.PAGE.read_text("utf-8")


def test_no_stored_weight_is_off_by_more_than_half_a_scale(rng):
    weight = rng.normal(size=(7, 5)).astype("float32")
    weight[3] = 0.0
    read = small_model.read_tensor(small_model.quantize_tensor(weight))
    half = np.abs(weight).max(axis=1, keepdims=True) / 127.0 / 2.0
    assert (np.abs(read - weight) <= half * (1.0 + 1e-5)).all()


def test_a_stored_vector_is_exact(rng):
    bias = rng.normal(size=9).astype("float32")
    assert (small_model.read_tensor(small_model.quantize_tensor(bias)) == bias).all()


ASK = """
const writer = loadWriter(globalThis.npformerSmallModel);
const answers = SENTENCES.map((sentence) => {
  const ids = idsOf(cut(sentence, writer), writer).slice(-writer.config.max_len);
  const { logits, attention } = readTokens(writer, ids);
  const next = TEMPERATURES.map((temperature) => {
    const p = nextProbabilities(logits, temperature);
    const drawn = NUMBERS.map((number) => drawToken(p, number));
    return { p: [...p], five: likeliest(p, 5), drawn };
  });
  const lists = attention.map((heads) => heads.map((rows) => rows.map((row) => [...row])));
  return { ids, logits: [...logits], attention: lists, next };
});
globalThis.answers = JSON.stringify(answers);
"""
NUMBERS = (0.0, 0.25, 0.6, 0.97, 0.999999)


def run_script(code, request):
    """Run JavaScript that sets `globalThis.answers` in Node.js or, without it, in a browser."""
    if node := shutil.which("node"):
        program = f"{code}\nprocess.stdout.write(globalThis.answers);"
        run = subprocess.run([node, "-"], input=program, capture_output=True, text=True, check=True)
        return json.loads(run.stdout)
    page = request.getfixturevalue("browser").new_page()
    page.add_script_tag(content=code)
    answers = json.loads(page.evaluate("answers"))
    page.close()
    return answers


@pytest.fixture(scope="module")
def answers(request):
    """What the page's functions say of each sentence."""
    replacements = {"SENTENCES": [*SENTENCES.values()], "TEMPERATURES": TEMPERATURES}
    ask = ASK.replace("NUMBERS", json.dumps(NUMBERS))
    for name, values in replacements.items():
        ask = ask.replace(name, json.dumps(values))
    model = small_model.FILE.read_text("utf-8")
    arithmetic = own_sentence.arithmetic()
    results = run_script(f"{model}(() => {{\n{arithmetic}\n{ask}}})();", request)
    return dict(zip(SENTENCES, results, strict=True))


def logits_of(twin, ids):
    return twin[0](np.array([ids]))[0, -1:]


@pytest.mark.parametrize("name", SENTENCES)
def test_a_sentence_is_cut_as_in_the_package(answers, twin, name):
    model, tokenizer = twin
    assert answers[name]["ids"] == tokenizer.ids(SENTENCES[name])[-model.config.max_len :]


@pytest.mark.parametrize("name", SENTENCES)
def test_the_logits_are_those_of_the_package(answers, twin, name):
    expected = logits_of(twin, answers[name]["ids"])[0]
    np.testing.assert_allclose(answers[name]["logits"], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SENTENCES)
def test_the_attention_weights_are_those_of_the_package(answers, twin, name):
    explained = nf.explain(twin[0], np.array([answers[name]["ids"]]))
    for heads, expected in zip(answers[name]["attention"], explained, strict=True):
        np.testing.assert_allclose(heads, expected.matrices[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("name", SENTENCES)
def test_the_next_five_are_those_of_the_package(answers, twin, name, temperature):
    choice = Choice(temperature, never=NEVER)
    p = choice.probabilities(logits_of(twin, answers[name]["ids"]))[0]
    said = answers[name]["next"][TEMPERATURES.index(temperature)]
    np.testing.assert_allclose(said["p"], p, rtol=1e-9, atol=1e-12)
    assert said["five"] == np.argsort(-p, kind="stable")[:5].tolist()


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_the_same_number_draws_the_same_token(answers, twin, temperature):
    class Fixed:
        def __init__(self, number):
            self.random = lambda: number

    said = answers["a sentence"]
    logits = logits_of(twin, said["ids"])
    choice = Choice(temperature, never=NEVER)
    expected = [int(choice.draw(logits, [Fixed(number)])[0]) for number in NUMBERS]
    assert said["next"][TEMPERATURES.index(temperature)]["drawn"] == expected


# The figure in a browser ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A page with the figure, beside the files that the site has."""
    place = tmp_path_factory.mktemp("own_sentence")
    shutil.copy(small_model.FILE, place)
    (place / "own_sentence.js").write_text(own_sentence.script(), "utf-8")
    html = f"<meta charset=utf-8><script src=own_sentence.js></script>{own_sentence.figure()}"
    (place / "page.html").write_text(html, "utf-8")
    return place


@pytest.fixture
def page(browser, place):
    """The page, opened from a file, and closed without an error."""
    with page_without_errors(browser) as page:
        page.goto((place / "page.html").as_uri())
        yield page


def begin(page, text="My lord, the king"):
    page.fill("textarea", text)
    page.click(".begin")
    page.wait_for_selector(".answer:not([hidden])")


def write(page, text):
    """Type a text in place of the other, and return what the page says of it."""
    page.fill("textarea", text)
    page.wait_for_timeout(400)
    return page.inner_text(".said")


def test_the_model_is_loaded_when_the_reader_begins(page):
    assert page.locator("script").count() == 1
    begin(page)
    assert page.locator("script").count() == 2


def test_a_missing_model_is_said_in_words(browser, place, tmp_path):
    for name in ("page.html", "own_sentence.js"):
        shutil.copy(place / name, tmp_path)
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.click(".begin")
    page.wait_for_function("document.querySelector('.said').textContent.includes('small_model.js')")
    assert page.locator(".begin").is_enabled()
    page.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "The box is empty."),
        ("w" * 2001, "at most 2000"),
        ("the king " * 50, "The model reads 64 at most"),
        ("My caf\u00e9 costs 7", "have no \u201c\u00e9\u201d, \u201c7\u201d"),
        ("O", "1 token. A single token can only look at itself"),
    ],
)
def test_unusual_texts_are_answered_in_words(page, text, said):
    begin(page)
    assert said in write(page, text)


def test_arrow_keys_go_through_the_tokens(page):
    begin(page)
    page.locator('.tokens [tabindex="0"]').focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert "\u201clord\u201d looks at" in page.inner_text(".looks")


def test_arrow_keys_go_through_the_squares(page):
    begin(page)
    page.locator(".squares").focus()
    page.keyboard.press("ArrowLeft")
    assert "\u201cking\u201d gives" in page.inner_text(".looks")
    assert "to \u201cthe\u201d." in page.inner_text(".looks")


def test_another_head_has_its_own_weights(page):
    begin(page)
    first = page.locator(".squares").inner_html()
    page.locator(".choices input:checked").focus()
    page.keyboard.press("ArrowRight")
    assert "In head 3 of layer 1" in page.inner_text(".looks")
    assert page.locator(".squares").inner_html() != first


def test_temperature_changes_the_probabilities(page):
    begin(page)
    shares = {}
    for temperature in ("0", "0.5", "1.5"):
        page.locator(".heat input").fill(temperature)
        shares[temperature] = float(page.locator(".likeliest li").first.get_attribute("data-p"))
    assert shares["0"] == 1.0 > shares["0.5"] > shares["1.5"]


def test_the_likeliest_token_is_added(page, twin):
    begin(page)
    page.click("[data-add=best]")
    model, tokenizer = twin
    ids = tokenizer.ids("My lord, the king")
    token = model.generate(ids, 1, temperature=0, never=[*NEVER])
    assert page.input_value("textarea") == "My lord, the king" + tokenizer.decode(token)


@pytest.mark.slow
def test_tokens_are_drawn_until_undone(page):
    begin(page)
    page.click("[data-add=many]")
    page.wait_for_function("document.querySelector('.next').ariaBusy === 'false'")
    for _ in range(12):
        page.click("[data-add=undo]")
    assert page.input_value("textarea") == "My lord, the king"
    assert page.locator("[data-add=undo]").is_disabled()


def test_the_front_page_leads_to_the_figure():
    assert "(your_sentence.md)" in (DOCS / "index.md").read_text("utf-8")
    assert own_sentence.COMMENT in small_model.PAGE.read_text("utf-8")
