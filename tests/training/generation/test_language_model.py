"""How a model writes, and how a token is chosen: temperature, top_k and top_p."""

import numpy as np
import pytest

import npformer as nf
from npformer.mixers import SCORES
from npformer.training.generation.choosing import Choice, generators_of

V, MAX_LEN = 9, 8
PROMPTS = [[1, 2, 3], [4], [5, 6, 7, 8, 1, 2], [3] * 11]
LAYOUTS = ["attention", "mixture", "identity", ("attention", "random_synthesizer")]
LAYOUTS += [name for name in SCORES if "synthesizer" in name]
SIZES = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 12, "max_len": MAX_LEN}


def model_of(mixer="attention", **changes):
    settings = {"causal": True, "mixture": tuple(SCORES), **SIZES, **changes}
    model = nf.LanguageModel(nf.EncoderConfig(**settings, mixer=mixer), V, dtype="float64")
    rng = np.random.default_rng(1)
    for value in model.parameters().values():
        value += 0.5 * rng.normal(size=value.shape)
    return model


@pytest.fixture(params=LAYOUTS, ids=str)
def model(request):
    return model_of(request.param)


def by_hand(model, prompt, n):
    row = list(prompt)
    tokens = []
    for _ in range(n):
        if len(row) > MAX_LEN:
            row = row[-(MAX_LEN // 2) :]
        tokens.append(int(model(np.array([row]))[0, -1].argmax()))
        row.append(tokens[-1])
    return tokens


@pytest.mark.parametrize("kernels", [False, True])
def test_greedy_tokens_are_those_of_the_whole_model(model, kernels):
    with nf.use_kernels(kernels):
        tokens = model.generate(PROMPTS, 12, temperature=0)
        assert tokens.tolist() == [by_hand(model, prompt, 12) for prompt in PROMPTS]


def test_tokens_are_drawn_alike_without_a_cache(model):
    rng = np.random.default_rng(0)
    prompts = [rng.integers(0, V, n) for n in rng.integers(1, 12, 20)]
    options = {"temperature": 0.8, "top_k": 7, "top_p": 0.95, "seed": 5}
    tokens = model.generate(prompts, 20, **options)
    np.testing.assert_array_equal(model.generate(prompts, 20, **options, cache=False), tokens)


def test_later_rows_do_not_change_earlier_ones():
    model = model_of()
    tokens = model.generate(PROMPTS, 12)
    np.testing.assert_array_equal(model.generate(PROMPTS[:2], 12), tokens[:2])
    np.testing.assert_array_equal(model.generate(PROMPTS[0], 12), tokens[0])


def test_at_temperature_0_a_row_is_that_of_its_prompt_alone():
    model = model_of()
    for prompt, row in zip(PROMPTS, model.generate(PROMPTS, 12, temperature=0), strict=True):
        np.testing.assert_array_equal(model.generate(prompt, 12, temperature=0), row)


END = 6
"""A token that some rows write."""


def test_behind_a_stop_token_stands_nothing():
    model = model_of()
    tokens = model.generate(PROMPTS, 30, stop=END)
    free = model.generate(PROMPTS, 30)
    assert (tokens == -1).any()
    for row, without in zip(tokens, free, strict=True):
        end = [*without, END].index(END) + 1
        np.testing.assert_array_equal(row[:end], without[:end])
        assert (row[end:] == -1).all()
    assert (model.generate([[1]], 9, stop=list(range(V)))[0, 1:] == -1).all()


def test_probabilities_are_those_of_the_model():
    model = model_of()
    prompt = np.array([1, 2])
    tokens, chances = model.generate(prompt, 5, temperature=0.5, top_k=3, probabilities=True)
    logits = model(np.concatenate([prompt, tokens])[None])[0, 1:-1]
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(chances, expected[np.arange(5), tokens], rtol=1e-10)
    tokens, chances = model.generate(PROMPTS, 30, stop=END, probabilities=True)
    assert (tokens == -1).any()
    np.testing.assert_array_equal(chances == 0.0, tokens == -1)


def test_tokens_come_one_by_one():
    model = model_of()
    assert list(model.stream([1, 2], 5)) == model.generate([1, 2], 5).tolist()
    tokens = np.stack(list(model.stream(PROMPTS, 5, seed=2)), axis=1)
    np.testing.assert_array_equal(tokens, model.generate(PROMPTS, 5, seed=2))
    steps = model.stream([1, 2], 10**9)
    assert [next(steps) for _ in range(3)] == model.generate([1, 2], 3).tolist()


def test_the_bytes_of_a_state_are_known_in_advance(model):
    assert model.start(3, MAX_LEN).nbytes == 3 * model.state_bytes(MAX_LEN)


@pytest.mark.parametrize(
    ("prompt", "options", "error", "message"),
    [
        ([], {}, ValueError, r"prompt has shape \(0,\); expected at least one token id"),
        ([[1], []], {}, ValueError, r"prompt\[1\] has shape \(0,\)"),
        ("ROMEO", {}, TypeError, "prompt is .*expected token ids"),
        ([1.5], {}, TypeError, "prompt has dtype float64"),
        ([[1], [V]], {}, ValueError, rf"prompt\[1\].*{V}"),
        (np.zeros((1, 1, 1), int), {}, TypeError, "expected token ids"),
        ([1], {"n": 0}, ValueError, "n is 0"),
        ([1], {"stop": V}, ValueError, f"stop is {V}; expected .* of at least 0 and at most"),
        ([1], {"seed": -1}, ValueError, "seed is -1"),
        ([1], {"top_k": 0}, ValueError, "top_k is 0"),
    ],
)
def test_wrong_arguments_are_refused(prompt, options, error, message):
    with pytest.raises(error, match=message):
        model_of().generate(prompt, **{"n": 3} | options)


def test_a_config_that_looks_ahead_is_refused():
    with pytest.raises(ValueError, match=r"config\.causal is False; expected True"):
        nf.LanguageModel(nf.EncoderConfig(), vocab_size=5)


P = np.array([0.1, 0.4, 0.2, 0.3])
LOGITS = np.log(P)[None]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, P),
        ({"temperature": 0.5}, P**2 / (P**2).sum()),
        ({"temperature": 0.0}, [0, 1, 0, 0]),
        ({"top_k": 2}, np.array([0, 4, 0, 3]) / 7),
        ({"top_k": 9}, P),
        ({"top_p": 0.4}, [0, 1, 0, 0]),
        ({"top_p": 0.41}, np.array([0, 4, 0, 3]) / 7),
        ({"top_p": 1e-9}, [0, 1, 0, 0]),
        ({"top_p": 1.0}, P),
        ({"top_k": 2, "top_p": 0.5}, [0, 1, 0, 0]),  # of the two that are left, 4 / 7
        ({"temperature": 0.5, "top_p": 0.6}, np.array([0, 16, 0, 9]) / 25),
    ],
)
def test_the_distribution_is_exact(options, expected):
    choice = Choice(**{"temperature": 1.0} | options)
    np.testing.assert_allclose(choice.probabilities(LOGITS + 3.0), [expected], atol=1e-15)


def test_of_tokens_that_are_alike_the_first_ones_stay():
    p = Choice(top_k=2).probabilities(np.zeros((1, 4)))
    np.testing.assert_array_equal(p, [[0.5, 0.5, 0.0, 0.0]])
    assert Choice(0.0).draw(np.zeros((2, 4)), []).tolist() == [0, 0]


class Given:
    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number


@pytest.mark.parametrize(
    ("number", "token"),
    [(0.0, 0), (0.0999, 0), (0.1001, 1), (0.4999, 1), (0.7001, 3), (1 - 2**-53, 3)],
)
def test_a_number_is_turned_into_the_token_whose_part_it_lies_in(number, token):
    assert Choice().draw(LOGITS, [Given(number)]).tolist() == [token]


def test_a_token_that_may_not_be_drawn_is_not_drawn_by_rounding():
    assert Choice().draw(np.array([[0.0, 0.0, -np.inf]]), [Given(1.0)]).tolist() == [1]
    assert Choice(top_k=1).draw(LOGITS, [Given(1 - 2**-53)]).tolist() == [1]


def test_frequencies_are_those_of_the_distribution():
    n = 4_000
    drawn = Choice(0.7, top_k=3).draw(np.repeat(LOGITS, n, axis=0), generators_of(0, n))
    expected = Choice(0.7, top_k=3).probabilities(LOGITS)[0]
    error = np.sqrt(expected * (1 - expected) / n)
    assert (np.abs(np.bincount(drawn, minlength=4) / n - expected) <= 4 * error).all()


def test_a_row_draws_the_same_however_many_rows_follow():
    logits = np.random.default_rng(0).normal(size=(9, 50))
    few, many = (Choice().draw(logits[:n], generators_of(3, n)) for n in (4, 9))
    np.testing.assert_array_equal(many[:4], few)


def test_another_seed_draws_other_tokens():
    logits = np.random.default_rng(0).normal(size=(9, 50))
    by_seed = [Choice().draw(logits, generators_of(seed, 9)) for seed in (3, 4)]
    assert (by_seed[0] != by_seed[1]).any()


def numbers_of(seed, row):
    return generators_of(seed, row + 1)[row].random(4).tolist()


def test_a_row_draws_from_its_child_of_the_seed():
    child = np.random.SeedSequence(7, spawn_key=(2,))
    assert numbers_of(7, row=2) == np.random.default_rng(child).random(4).tolist()


@pytest.mark.parametrize("row", range(3))
def test_no_other_seed_draws_what_a_row_draws(row):
    """The words of the pair (7, row) are those of the seed row * 2^32 + 7."""
    as_one_seed = (row << 32) + 7
    drawn = numbers_of(7, row)
    assert drawn != np.random.default_rng(as_one_seed).random(4).tolist()
    assert row == 0 or drawn != numbers_of(as_one_seed, row=0)
    assert drawn != numbers_of(7 + row + 1, row=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "temperature is -1.0; expected 0 or more"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_k": 0}, "top_k is 0; expected a whole number of at least 1"),
        ({"top_p": 0.0}, "top_p is 0.0; expected"),
        ({"top_p": 1.5}, "top_p is 1.5; expected a number above 0 and at most 1"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Choice(**options)
