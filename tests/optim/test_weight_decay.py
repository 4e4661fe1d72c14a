"""Weight decay that leaves norms and biases alone."""

import numpy as np
import pytest

import npformer as nf
from npformer.optim import NORMS_AND_BIASES, Adam
from npformer.optim.weight_decay import fits_any
from tests.needs import NEEDS


def model(**changes):
    config = nf.EncoderConfig(d_model=8, n_heads=2, d_ff=16, max_len=6, **changes)
    return nf.SequenceClassifier(config, 3, vocab_size=9, dtype="float64")


def gradients_of(parameters, seed):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=p.shape) for name, p in parameters.items()}


@pytest.mark.parametrize("mixer", list(nf.MIXERS))
def test_norms_and_biases_are_all_vectors_but_no_matrix(mixer):
    parameters = model(mixer=mixer).parameters()
    spared = {name for name in parameters if fits_any(name, NORMS_AND_BIASES)}
    decayed = {name: p for name, p in parameters.items() if name not in spared}
    assert spared
    assert all(p.ndim > 1 or name.endswith("logits") for name, p in decayed.items())
    assert all(name.rpartition(".")[2] not in ("weight", "table") for name in spared)


@pytest.mark.parametrize("flat", [True, False])
def test_only_the_others_decay(flat):
    decayed, spared = model(), model()
    settings = {"lr": 0.1, "weight_decay": 0.3}
    theirs = decayed.parameters() if flat else dict(decayed.parameters())
    ours = spared.parameters() if flat else dict(spared.parameters())
    without = {name: p.copy() for name, p in ours.items()}
    ours_spared = Adam(ours, **settings, no_decay=NORMS_AND_BIASES)
    optimizers = Adam(theirs, **settings), ours_spared, Adam(without, lr=0.1)
    for seed in range(4):
        for optimizer in optimizers:
            optimizer.step(gradients_of(ours, seed))
    for name in ours:
        expected = without if fits_any(name, NORMS_AND_BIASES) else theirs
        np.testing.assert_allclose(ours[name], expected[name], rtol=1e-13, atol=1e-15)
        assert fits_any(name, NORMS_AND_BIASES) or not np.allclose(ours[name], without[name])


@pytest.mark.parametrize("layer_decay", [1.0, 0.5])
def test_it_is_adamw_with_groups_of_pytorch(layer_decay):
    torch = pytest.importorskip("torch", reason=NEEDS["torch"])
    ours = model(n_layers=2).parameters()
    theirs = {name: torch.tensor(p, requires_grad=True) for name, p in ours.items()}
    of_layer = {"embed": 3, "encoder.blocks.0": 2, "encoder.blocks.1": 1, "classify": 0}
    groups = []
    for name, p in theirs.items():
        (layer,) = (layer for layer in of_layer if name.startswith(layer))
        group = {"params": [p], "lr": 0.01 * layer_decay ** of_layer[layer]}
        if fits_any(name, NORMS_AND_BIASES):
            group["weight_decay"] = 0.0
        groups.append(group)
    assert len(groups) == len(theirs)
    torch_optimizer = torch.optim.AdamW(groups, lr=0.01, weight_decay=0.2)
    optimizer = Adam(
        ours, lr=0.01, weight_decay=0.2, no_decay=NORMS_AND_BIASES, layer_decay=layer_decay
    )
    for seed in range(30):
        gradients = gradients_of(ours, seed)
        optimizer.step(gradients)
        for name, p in theirs.items():
            p.grad = torch.tensor(gradients[name])
        torch_optimizer.step()
    for name, p in theirs.items():
        np.testing.assert_allclose(ours[name], p.detach().numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    ("patterns", "error", "words"),
    [
        ("*.bias", TypeError, "expected a list of patterns"),
        ([3], TypeError, "a pattern in no_decay is 3"),
        (["*.biases"], ValueError, "no parameter matches; expected patterns for names such as"),
    ],
)
def test_wrong_patterns_are_explained(patterns, error, words):
    with pytest.raises(error, match=words):
        Adam(model().parameters(), no_decay=patterns)
