"""One file with NumPy alone computes what npformer's encoder-decoder computes, and says numbers."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import npformer as nf
from tests.examples import conftest as common
from tests.examples.conftest import EXAMPLES, example

translator = example("translator_by_hand")
TEXT = (EXAMPLES / "translator_by_hand.py").read_text("utf-8")

D, D_FF, H = 16, 24, 4
N_SOURCE = 11
N_TARGET = len(translator.WORDS)


@pytest.fixture
def weights():
    """A small model whose norms and biases do something."""
    rng = np.random.default_rng(0)
    return common.moved(translator.make_weights(rng, N_SOURCE, N_TARGET, d=D, d_ff=D_FF), rng, 0.1)


@pytest.fixture
def batch():
    """Pairs of several lengths: there is padding on both sides."""
    source, target = translator.pairs_of([7, 13, 80, 999, 40_213, 340_219, 100_000])
    assert (source == translator.PADDING).any()
    assert (target == translator.PADDING).any()
    return source, target


def name_in_npformer(name):
    """Return a layer's name: "decoder 1 mixer key" -> "decoder.blocks.1.mixer.key"."""
    tables = {"source": "source.tokens", "target": "target.tokens", "output": "output"}
    if name in tables:
        return tables[name]
    side, number, *layers = name.split(" ")
    within = ["feed_forward"] if layers[0] in ("expand", "contract") else []
    return ".".join([f"{side}.blocks.{number}", *within, *layers])


@pytest.fixture
def model(weights):
    """npformer's model with the same weights."""
    config = nf.EncoderConfig(
        d_model=D,
        n_layers=2,
        n_heads=H,
        d_ff=D_FF,
        max_len=16,
        positions="sinusoidal",
        activation="relu",
        norm="post",
    )
    model = nf.EncoderDecoder(config, source_vocab=N_SOURCE, target_vocab=N_TARGET, dtype="float64")
    return common.add_weights(model, weights, name_in_npformer)


def test_the_same_weights_give_the_gradients_of_npformer(weights, model, batch):
    loss, g = translator.loss_and_gradients(weights, *batch, H)
    common.assert_agree(loss, g, model, batch, name_in_npformer)


def test_it_writes_what_npformer_writes(weights, model, batch):
    source, _ = batch
    assert translator.write(weights, source, H, longest=9) == model.generate(source, max_len=8)


@pytest.mark.parametrize(
    "pair",
    ["linear", "layer_norm", "softmax_average", "attention", "block"],
    ids=lambda pair: f"{pair}_backward",
)
def test_its_gradient_check_notices_a_wrong_backward_pass(weights, batch, pair, monkeypatch):
    common.assert_check_notices(pair, translator, weights, batch, H, monkeypatch)


def test_its_gradient_check_notices_a_memory_without_a_gradient(weights, batch, monkeypatch):
    right = translator.block_backward

    def forgets(*arguments):
        dx, dmemory = right(*arguments)
        return dx, 0.0 * dmemory

    monkeypatch.setattr(translator, "block_backward", forgets)
    assert translator.check_gradients(weights, *batch, H) > 1e-6


def logits_of(weights, source, target):
    memory, mask, _ = translator.encode(weights, source, H)
    return translator.decode(weights, target, memory, mask, H)[0]


def test_no_word_sees_what_comes_later(weights, batch):
    source, target = batch
    logits = logits_of(weights, source, target)
    for t in range(1, target.shape[1]):
        changed = target.copy()
        changed[:, t:] = (changed[:, t:] + 1) % N_TARGET
        np.testing.assert_array_equal(logits_of(weights, source, changed)[:, :t], logits[:, :t])


def test_no_word_sees_padding(weights, batch):
    source, target = batch
    longer = np.pad(source, ((0, 0), (0, 3)))
    logits = logits_of(weights, source, target)
    np.testing.assert_allclose(logits_of(weights, longer, target), logits, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1, "one"),
        (13, "thirteen"),
        (20, "twenty"),
        (85, "eighty five"),
        (100, "one hundred"),
        (219, "two hundred nineteen"),
        (1000, "one thousand"),
        (40_213, "forty thousand two hundred thirteen"),
        (999_999, "nine hundred ninety nine thousand nine hundred ninety nine"),
    ],
)
def test_it_knows_the_words_of_numbers(n, expected):
    assert " ".join(translator.in_words(n)) == expected


def test_each_number_has_words_of_its_own():
    numbers = [*range(1, 2000), *range(10_000, 1_000_000, 997)]
    assert len({tuple(translator.in_words(n)) for n in numbers}) == len(numbers)


@pytest.mark.slow
def test_it_says_numbers_that_it_has_not_seen(capsys):
    with threadpool_limits(limits=1, user_api="blas"):  # threads gain nothing in small products
        translator.main()
    error, *steps = capsys.readouterr().out.splitlines()
    assert float(error.removeprefix("largest error of a gradient: ")) < 1e-8
    last_line = next(line for line in steps if line.endswith("are right"))
    right, _, total = last_line.split()[:3]
    assert int(right) >= 0.95 * int(total)
    at = steps.index(last_line)
    shown = int(steps[at + 1].replace(" ", ""))  # its digits, and below them a row for each word
    rows = [line.split()[0] for line in steps[at + 2 :]]
    assert rows == [*translator.in_words(shown), "<end>"]
    assert all(set(line[12:]) <= set(" .:+#@") for line in steps[at + 2 :])


def test_it_can_be_read_in_one_sitting():
    assert len(TEXT.splitlines()) <= 305


def test_it_imports_numpy_alone():
    assert common.imported_by(TEXT) == {"numpy", "os"}
    assert "import numpy as np\n" in TEXT
