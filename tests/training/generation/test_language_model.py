import numpy as np
import pytest

import npformer as nf
from npformer.mixers import SCORES
from tests.in_turn import in_turn

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
    row, found = list(prompt), []
    for _ in range(n):
        if len(row) > MAX_LEN:
            row = row[-(MAX_LEN // 2) :]
        found.append(int(model(np.array([row]))[0, -1].argmax()))
        row.append(found[-1])
    return found


@in_turn("kernels", [False, True])
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


def test_rows_are_equal_to_their_prompts_alone_and_to_those_with_rows_behind():
    model = model_of()
    tokens = model.generate(PROMPTS, 12)
    np.testing.assert_array_equal(model.generate(PROMPTS[:2], 12), tokens[:2])
    np.testing.assert_array_equal(model.generate(PROMPTS[0], 12), tokens[0])
    for prompt, row in zip(PROMPTS, model.generate(PROMPTS, 12, temperature=0), strict=True):
        np.testing.assert_array_equal(model.generate(prompt, 12, temperature=0), row)


def test_behind_a_stop_token_stands_nothing():
    model = model_of()
    tokens = model.generate(PROMPTS, 30, stop=5)
    free = model.generate(PROMPTS, 30)
    assert (tokens == -1).any()
    for row, without in zip(tokens, free, strict=True):
        end = [*without, 5].index(5) + 1
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
    tokens, chances = model.generate(PROMPTS, 30, stop=5, probabilities=True)
    np.testing.assert_array_equal(chances == 0.0, tokens == -1)


def test_tokens_come_one_by_one():
    model = model_of()
    assert list(model.stream([1, 2], 5)) == model.generate([1, 2], 5).tolist()
    several = np.stack(list(model.stream(PROMPTS, 5, seed=2)), axis=1)
    np.testing.assert_array_equal(several, model.generate(PROMPTS, 5, seed=2))
    steps = model.stream([1, 2], 10**9)
    assert [next(steps) for _ in range(3)] == model.generate([1, 2], 3).tolist()


def test_the_bytes_of_a_state_are_known_before_and_right(model):
    assert model.start(3, MAX_LEN).nbytes == 3 * model.state_bytes(MAX_LEN)


@in_turn(
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
def test_wrong_prompts_and_options_are_refused(prompt, options, error, message):
    with pytest.raises(error, match=message):
        model_of().generate(prompt, **{"n": 3} | options)


def test_a_config_that_looks_ahead_is_refused():
    with pytest.raises(ValueError, match=r"config\.causal is False; expected True"):
        nf.LanguageModel(nf.EncoderConfig(), vocab_size=5)
