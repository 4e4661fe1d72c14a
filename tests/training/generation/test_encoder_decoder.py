from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import npformer as nf

V = 5
CONFIG = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=12, max_len=12)
SOURCES = np.array([[3, 4, 3, 4], [4, 3, 0, 0], [3, 0, 0, 0]])


def model_of(seed=0, **changes):
    model = nf.EncoderDecoder(replace(CONFIG, **changes), V, V, dtype="float64")
    rng = np.random.default_rng(seed)
    for value in model.parameters().values():
        value += 0.8 * rng.normal(size=value.shape)
    return model


def log_p(model, source, targets):
    """Return the log-probabilities of tokens behind a beginning, of the tokens that follow."""
    rows = np.array([[1, *target] for target in targets])
    logits = model(np.repeat(source[None], len(rows), axis=0), rows)
    logits[..., 0] = -np.inf  # padding is not written
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def score(log_of_target, n, alpha):
    return log_of_target / ((5 + n) / 6) ** alpha


def greedy(model, source, max_len):
    tokens = []
    for _ in range(max_len):
        token = int(log_p(model, source, [tokens])[0, -1].argmax())
        if token == 2:
            break
        tokens.append(token)
    return tokens


def reference(model, source, max_len, beams, alpha):
    """Search as tensor2tensor does, in the plainest words."""
    live, ended = [(0.0, [])], []
    for n in range(1, max_len + 1):
        candidates = []
        for total, target in live:
            row = log_p(model, source, [target])[0, -1]
            candidates += [(total + row[token], [*target, token]) for token in range(V)]
        candidates = sorted(candidates, key=lambda candidate: -candidate[0])[: 2 * beams]
        ended += [(score(p, n, alpha), target[:-1]) for p, target in candidates if target[-1] == 2]
        ended = sorted(ended, key=lambda candidate: -candidate[0])[:beams]
        live = [candidate for candidate in candidates if candidate[1][-1] != 2][:beams]
        if len(ended) == beams and ended[-1][0] >= score(live[0][0], max_len, alpha):
            break
    return ended[0][1] if ended else live[0][1]


@pytest.mark.parametrize(
    "norm",
    [
        "post",
        "pre",
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_one_beam_is_greedy(norm, seed):
    model = model_of(seed, norm=norm)
    expected = [greedy(model, source, 6) for source in SOURCES]
    assert model.generate(SOURCES, 6) == model.generate(SOURCES, 6, beams=1) == expected


@pytest.mark.parametrize(
    ("seed", "beams", "alpha", "changes"),
    [
        *product(range(4), (2, 3, 5), (0.0, 0.6, 2.0), [{}]),
        *product([1], [3], [0.6], [{"mixer": "dense_synthesizer"}, {"norm": "pre"}]),
    ],
)
def test_more_beams_find_what_a_search_written_out_finds(seed, beams, alpha, changes):
    model = model_of(seed, **changes)
    expected = [reference(model, source, 6, beams, alpha) for source in SOURCES]
    assert model.generate(SOURCES, 6, beams, alpha) == expected


@pytest.mark.parametrize("seed", range(6))
def test_a_beam_as_wide_as_all_sequences_finds_the_best_of_all(seed):
    model = model_of(seed)
    length = 3
    candidates = []
    tokens = [token for token in range(1, V) if token != 2]
    for n in range(length):
        for target in product(tokens, repeat=n):
            rows = log_p(model, SOURCES[0], [target])[0]
            total = sum(rows[t, token] for t, token in enumerate([*target, 2]))
            candidates.append((score(total, n + 1, 0.6), list(target)))
    best = max(candidates, key=lambda each: each[0])[1]
    assert model.generate(SOURCES[:1], length, beams=V**length) == [best]


@pytest.mark.parametrize("beams", [1, 3])
def test_rows_are_those_of_each_source_alone(beams):
    model = model_of(2)
    together = model.generate(SOURCES, 8, beams)
    assert together == [model.generate(row[None], 8, beams)[0] for row in SOURCES]
    assert together[1] == model.generate(SOURCES[1:2, :2], 8, beams)[0]
    assert together[2] == model.generate(SOURCES[2:, :1], 8, beams)[0]


def test_padding_is_told_by_a_mask_too():
    model = model_of()
    other = np.where(SOURCES == 0, 4, SOURCES)
    assert model.generate(other, 8, mask=SOURCES != 0) == model.generate(SOURCES, 8)


@pytest.fixture
def endless_model():
    model = model_of()
    model.parameters()["output.bias"][2] = -50.0  # it never ends
    return model


def test_a_target_is_at_most_as_long_as_asked_for(endless_model):
    assert [len(row) for row in endless_model.generate(SOURCES, 5)] == [5, 5, 5]


def test_a_target_is_at_most_as_long_as_there_are_positions(endless_model):
    assert [len(row) for row in endless_model.generate(SOURCES)] == [12, 12, 12]


def test_without_a_source_there_is_no_target():
    assert model_of().generate(SOURCES[:0]) == []


def test_padding_is_never_written():
    model = model_of()
    model.parameters()["output.bias"][0] = 50.0
    for beams in (1, 3):
        assert not any(0 in row for row in model.generate(SOURCES, beams=beams))


@pytest.mark.parametrize(
    ("sources", "option", "value"),
    [
        (SOURCES, "max_len", 0),
        (SOURCES, "beams", 0),
        *((SOURCES, "length_penalty", penalty) for penalty in (-1.0, 10.5)),
        (np.array([[7]]), "vocab_size", 5),
    ],
)
def test_wrong_calls_are_refused(sources, option, value):
    options = {} if option == "vocab_size" else {option: value}
    with pytest.raises(ValueError, match=f"{option} is {value}"):
        model_of().generate(sources, **options)
