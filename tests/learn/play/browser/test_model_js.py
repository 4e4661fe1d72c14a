"""model.js gives the package's numbers, in a browser, for all that it knows."""

import base64

import numpy as np
import pytest

import npformer as nf
from npformer.functional.normal import normal_distribution
from npformer.learn.play import export
from npformer.tasks.wide import WideSequenceClassifier
from tests.models.trainable.test_one_answer import Drawn

pytestmark = pytest.mark.browser

SIZES = {"d_model": 8, "n_heads": 2, "d_ff": 12, "max_len": 6, "n_layers": 2}

BEHIND = [True, True, True, True, False, False]
WITHIN = [False, True, False, True, True, True]

CASES = {
    **{mixer: {"mixer": mixer} for mixer in export.KNOWN["mixer"]},
    **{activation: {"activation": activation} for activation in export.KNOWN["activation"]},
    "gelu by option": {"activation": "gelu(approximate='tanh')"},
    **{f"pooling {name}": {"pooling": name} for name in export.KNOWN["pooling"]},
    "pooler of DistilBERT": {"pooling": "pooler(activation='relu')"},
    **{f"ffn {name}": {"ffn": name} for name in export.KNOWN["ffn"]},
    "pre-norm": {"norm": "pre", "mixer": ["fourier", "attention"]},
    "one block for all layers": {"share_layers": True},
    "causal attention": {"causal": True},
    "causal mixture": {"causal": True, "mixer": "mixture"},
    "attention in blocks": {"memory": "blocks", "causal": True},
    "mixture of three": {
        "mixer": "mixture",
        "mixture": ["dense_synthesizer", "factorized_random_synthesizer", "attention"],
    },
    "no positions": {"positions": "none"},
    "learned positions": {"positions": "learned"},
    "sinusoids in halves": {"positions": "sinusoidal_halves"},
    "as in BERT": {"n_token_types": 2, "embedding_norm": True, "scale_embeddings": False},
    "as in FNet": {
        "n_token_types": 4,
        "embedding_norm": True,
        "embedding_projection": True,
        "norm_eps": 1e-12,
        "mixer": "fourier",
    },
    "one logit": {"output": "sigmoid"},
    "numbers": {"output": "mean_squared_error"},
    "few states": {"mixer": "state_space(n_states=3)"},
    "wide": {"n_pairs": 3},
    "wide, no pair known": {"n_pairs": 0},
    "masked": {"masked": BEHIND, "norm": "pre"},
    "masked vectors": {"masked": BEHIND, "n_features": 3},
    "masked, all at once": {"masked": BEHIND, "mixer": "fourier", "padding": "zero"},
    "masked, per length": {
        "masked": BEHIND,
        "mixer": ["hartley", "linear"],
        "padding": "per_length",
    },
    "padding between tokens": {"masked": WITHIN, "mixer": ["gated_convolution", "attention"]},
    "padding between tokens, wide": {"masked": WITHIN, "n_pairs": 3, "pooling": "mean"},
    "masked convolution": {"masked": BEHIND, "mixer": "gated_convolution"},
    "masked state space": {"masked": BEHIND, "mixer": "state_space"},
    "masked mean": {"masked": BEHIND, "pooling": "mean"},
    "masked maximum": {"masked": BEHIND, "pooling": "max"},
    "masked, flattened": {"masked": BEHIND, "pooling": "flatten"},
    "masked, wide": {"masked": BEHIND, "n_pairs": 3},
    "vectors": {"n_features": 5},
    "a shorter sequence": {"length": 4, "mixer": ["random_synthesizer", "dense_synthesizer"]},
    "a shorter sequence, transformed": {"length": 5, "mixer": ["fourier", "linear"]},
    "a shorter sequence, convolved": {"length": 4, "mixer": ["gated_convolution", "state_space"]},
    "one token": {"length": 1},
}


def made(case):
    """Return a model in float64 whose weights are float32 numbers, away from where they begin."""
    settings = dict(case)
    rng = np.random.default_rng(3)
    arguments = {
        k: settings.pop(k) for k in ("pooling", "output", "n_features", "n_pairs") if k in case
    }
    settings.pop("masked", None), settings.pop("length", None)
    config = nf.EncoderConfig(**{**SIZES, **settings})
    if "n_features" not in arguments:
        arguments["vocab_size"] = 7
    kind = WideSequenceClassifier if "n_pairs" in arguments else nf.SequenceClassifier
    n_classes = 2 if arguments.get("output") == "sigmoid" else 3
    model = kind(config, n_classes, **arguments, seed=0, dtype="float64")
    for name, parameter in model.named_parameters().items():
        value = parameter.value + 0.3 * rng.normal(size=parameter.shape)
        parameter.value[...] = value.astype("float32")
        if name.startswith("wide"):
            model.wide.idf.value[...] = np.abs(model.wide.idf.value)
    if arguments.get("n_pairs"):
        model.wide.pairs.value[...] = [[1, 2], [2, 3], [4, 2]]
    return model, rng


@pytest.mark.parametrize("name", CASES)
def test_its_numbers_are_the_packages(name, tab):
    case = CASES[name]
    model, rng = made(case)
    length = case.get("length", 6)
    mask = None
    if model.n_features:
        x = rng.normal(size=(1, length, model.n_features))
    else:
        x = np.array([[1, 2, 3, 1, 2, 6]])[:, :length]
    if case.get("masked"):
        mask = np.array([case["masked"]])
    answer = tab.evaluate(
        "([file, x, mask]) => plain(model.forward(model.load(file), x, mask))",
        [export.model_file(model), x[0].tolist(), None if mask is None else mask[0].tolist()],
    )
    close(answer["logits"], np.asarray(model(x, mask))[0])
    if case.get("output") != "mean_squared_error":
        close(answer["probabilities"], model.predict_probabilities(x, mask)[0])
    explained = nf.explain(model, x, mask)
    assert len(answer["mixing"]) == len(explained) == 2
    for layer, expected in zip(answer["mixing"], explained, strict=True):
        close(layer["heads"], expected.matrices[0].real)


@pytest.mark.parametrize("seed", range(24))
def test_drawn_models_give_the_answer_that_all_other_ways_give(seed, tab):
    drawn = Drawn(seed, "float64")
    model, mask = drawn.model, drawn.mask[:1]
    for parameter in model.named_parameters().values():
        parameter.value[...] = parameter.value.astype("float32")
    expected, _ = model.forward(drawn.x[:1], nf.Context(mask=mask))
    for x in (drawn.x, drawn.otherwise):
        probabilities = tab.evaluate(
            "([file, x, mask]) => plain(model.forward(model.load(file), x, mask).logits)",
            [export.model_file(model), x[0].tolist(), mask[0].tolist()],
        )
        close(probabilities, expected[0])


def test_float32_models_agree_to_five_digits(tab):
    digits = nf.data.digits()
    config = nf.EncoderConfig(d_model=32, n_layers=2, n_heads=4, d_ff=64, max_len=8)
    model = nf.SequenceClassifier(config, 10, n_features=8, pooling="flatten", seed=0)
    nf.fit(model, digits.train, epochs=1, lr=3e-3, seed=0, workers=1, progress=False)
    x = digits.test[0][:20]
    probabilities = tab.evaluate(
        "([file, x]) => x.map((one) => plain(model.forward(model.load(file), one).probabilities))",
        [export.model_file(model), x.tolist()],
    )
    np.testing.assert_allclose(probabilities, model.predict_probabilities(x), rtol=0, atol=1e-5)


def test_the_normal_distribution_is_exact_in_both_tails(tab):
    x = np.linspace(-37, 8, 1001)
    values = tab.evaluate("(x) => x.map(model.normalDistribution)", x.tolist())
    np.testing.assert_allclose(values, normal_distribution(x), rtol=3e-15, atol=0)


def test_words_are_those_of_the_tokenizer(tab):
    texts = [
        "Don't stop, it's GREAT!!",
        "Schöne Grüße aus Köln \u2013 12.5 km²",
        "日本語のテキスト and words",
        "naïve cafe\u0301 O\u2019Brien a_b x\u0300y",
        "Σίσυφος ΟΔΟΣ\u00a0½ ٣",
        "   ",
        'हिन्दी भाषा, שָׁלוֹם צה"ל! می\u200cشود ភាសា\u200bខ្មែរ',
        "\u304b\u309a zeit\u00adung \u263a\ufe0f",
        "\U0001f468\u200d\U0001f469 \U0001f1e9\U0001f1ea \u0301 \ufeff",
        "\U0001d54f \U0001f600 ok",
    ]
    for lower, ngrams in ((True, 0), (False, 0), (True, 4)):
        tokenizer = nf.data.tokenizers.WordTokenizer.train([*texts * 3], lower=lower, ngrams=ngrams)
        unseen = [*texts, "stopping the greatest word"]
        expected = [tokenizer.ids(text, 20) or [tokenizer.unknown_id] for text in unseen]
        words = tab.evaluate(
            "([how, names, texts]) => texts.map(spelling.spelling(how, names, 20))",
            [{"lower": lower, "ngrams": ngrams}, tokenizer.vocabulary, unseen],
        )
        assert words == expected


def close(found, expected):
    np.testing.assert_allclose(np.array(found), expected, rtol=1e-9, atol=1e-10)


@pytest.fixture(scope="module")
def tab(browser):
    """Return an empty page that has imported model.js and spelling.js."""
    page = browser.new_page()
    for name in ("model", "spelling"):
        source = base64.b64encode(export.read(f"{name}.js").encode()).decode()
        address = f"data:text/javascript;base64,{source}"
        page.evaluate(f"async (address) => void (window.{name} = await import(address))", address)
    page.evaluate(
        """() => void (window.plain = (value) => {
            if (ArrayBuffer.isView(value)) return [...value];
            if (Array.isArray(value)) return value.map(plain);
            if (!value || typeof value !== "object") return value;
            return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]));
        })"""
    )
    yield page
    page.close()
