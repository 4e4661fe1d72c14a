"""A whole BertModel and a whole FNetModel of Hugging Face's transformers, with random weights.

Weights travel through `npformer.interop`; both outputs and the gradient of every parameter agree.
Nothing is downloaded.
"""

from itertools import product

import numpy as np
import pytest

import npformer as nf
from npformer.interop import huggingface as interop

from .helpers import assert_close, disagreement, normals, torch

transformers = pytest.importorskip(
    "transformers",
    reason="these tests compare with Hugging Face's models: python -m pip install '.[parity]'",
)

AGREEMENT = 1e-10

PLAIN = {"hidden_dropout_prob": 0.0, "attn_implementation": "eager"}
SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size")
SIZES = (*SIZES, "max_position_embeddings")
TINY = dict(zip(SIZES, (13, 8, 1, 12, 9), strict=True))
DEEPER = dict(zip(SIZES, (50, 24, 3, 40, 16), strict=True))
BERTS = {
    "tiny, one head": (TINY | {"num_attention_heads": 1}, (1, 4)),
    "two heads, at max_len": (TINY | {"num_attention_heads": 2, "num_hidden_layers": 2}, (3, 9)),
    "deeper, four heads": (DEEPER | {"num_attention_heads": 4}, (4, 11)),
    "deeper, three types": (DEEPER | {"num_attention_heads": 3, "type_vocab_size": 3}, (2, 16)),
    "a large epsilon": (TINY | {"num_attention_heads": 4, "layer_norm_eps": 0.1}, (2, 5)),
}
FNETS = {
    "tiny": (TINY, (1, 4)),
    "at max_len": (TINY | {"num_hidden_layers": 2}, (3, 9)),
    "deeper": (DEEPER, (4, 11)),
    "deeper, two types": (DEEPER | {"type_vocab_size": 2}, (2, 16)),
}


def make(kind, config, **changes):
    """Return a float64 model of theirs with random values for every parameter, and its config."""
    own = {} if kind == "FNet" else {"attention_probs_dropout_prob": 0.0}
    config = getattr(transformers, f"{kind}Config")(**PLAIN | own | config | changes)
    model = getattr(transformers, f"{kind}Model")(config).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(0.25 * drawn)
    return model, config.to_dict()


def arrays(model):
    return {name: value.numpy() for name, value in model.state_dict().items()}


def batch(config, shape):
    """Return ids without the padding token, and token types."""
    rng = np.random.default_rng(0)
    ids = rng.integers(4, config["vocab_size"], shape)
    return ids, rng.integers(0, config["type_vocab_size"], shape)


def assert_agree(theirs, encoder, to_theirs, ids, types, mask=None):
    """Assert that both outputs agree at the tokens that are kept, and all parameter gradients."""
    given = {"input_ids": torch.tensor(ids), "token_type_ids": torch.tensor(types)}
    if mask is not None:
        given["attention_mask"] = torch.tensor(mask.astype("int64"))
    kept = np.ones(ids.shape, dtype=bool) if mask is None else mask
    expected = theirs(**given)
    (hidden, pooled), cache = encoder.forward(ids, nf.Context(mask=mask, types=types))
    assert_close(hidden[kept], expected.last_hidden_state.detach().numpy()[kept], "hidden")
    assert_close(pooled, expected.pooler_output, "pooled")

    dhidden, dpooled = normals(hidden.shape, pooled.shape, seed=99)
    dhidden *= kept[..., None]  # a loss does not look at padding
    torch.autograd.backward(
        [expected.last_hidden_state, expected.pooler_output],
        [torch.tensor(dhidden), torch.tensor(dpooled)],
    )
    gradients = nf.Gradients(encoder)
    encoder.backward((dhidden, dpooled), cache, gradients)
    ours = to_theirs(encoder, gradients)
    found = {name: parameter.grad.numpy() for name, parameter in theirs.named_parameters()}
    assert ours.keys() == found.keys()
    largest = max(np.abs(gradient).max() for gradient in found.values())
    for name, gradient in found.items():
        assert ours[name].shape == gradient.shape, name
        if name.endswith("key.bias"):
            # It adds the same to all scores of a query: its gradient is 0, and here rounding.
            assert np.abs(gradient).max() < AGREEMENT * largest
            assert np.abs(ours[name]).max() < AGREEMENT * largest
        else:
            apart = disagreement(ours[name], gradient)
            assert apart < AGREEMENT, f"gradient of {name}: {apart:.1e}"


DEEPEST = "deeper, four heads"


@pytest.mark.parametrize(
    ("name", "activation", "masked"),
    [
        *product(BERTS, ("gelu", "relu"), ("full", "padded")),
        (DEEPEST, "gelu_new", "full"),
        (DEEPEST, "gelu_pytorch_tanh", "full"),
        (DEEPEST, "gelu", "with holes"),
    ],
)
def test_a_whole_bert_agrees(name, activation, masked):
    sizes, shape = BERTS[name]
    theirs, config = make("Bert", sizes, hidden_act=activation)
    encoder = interop.from_bert(arrays(theirs), config)
    ids, types = batch(config, shape)
    mask = None
    if masked == "padded":
        mask = np.arange(shape[1]) < np.array([shape[1], 3, 1, 6])[: shape[0], None]
        ids[~mask] = config["pad_token_id"]
    elif masked == "with holes":
        mask = np.random.default_rng(1).random(shape) < 0.5
        mask[:, 0] = True
    assert_agree(theirs, encoder, interop.to_bert, ids, types, mask)


def test_types_that_are_not_given_are_0_in_both():
    theirs, config = make("Bert", *BERTS["deeper, three types"][:1])
    encoder = interop.from_bert(arrays(theirs), config)
    ids, _ = batch(config, (2, 16))
    with torch.no_grad():
        assert_close(encoder(ids).hidden, theirs(torch.tensor(ids)).last_hidden_state)


def test_their_padding_token_has_no_gradient_and_ours_has():
    """What the docstring of `interop` says: `padding_idx` freezes a row of the table."""
    theirs, config = make("Bert", TINY, num_attention_heads=2, pad_token_id=5)
    encoder = interop.from_bert(arrays(theirs), config)
    ids = np.array([[5, 6, 5, 7]])
    theirs(torch.tensor(ids)).last_hidden_state.square().sum().backward()
    hidden = encoder.forward(ids, nf.Context())
    gradients = nf.Gradients(encoder)
    encoder.backward((2.0 * hidden[0].hidden, None), hidden[1], gradients)
    table = theirs.embeddings.word_embeddings.weight.grad.numpy()
    ours = gradients["embed.tokens.weight"]
    assert not table[5].any()
    assert ours[5].any()
    assert_close(ours[6:], table[6:])


@pytest.mark.parametrize("activation", ["gelu_new", "relu"])
@pytest.mark.parametrize("name", FNETS)
def test_a_whole_fnet_agrees(name, activation):
    sizes, shape = FNETS[name]
    theirs, config = make("FNet", sizes, hidden_act=activation)
    encoder = interop.from_fnet(arrays(theirs), config)
    assert_agree(theirs, encoder, interop.to_fnet, *batch(config, shape))


def test_the_defaults_are_those_of_the_paper():
    config = transformers.FNetConfig().to_dict()
    sizes = {"hidden_act": "gelu_new", "layer_norm_eps": 1e-12, "type_vocab_size": 4}
    assert {key: config[key] for key in sizes} == sizes
    assert config["use_tpu_fourier_optimizations"] is False
