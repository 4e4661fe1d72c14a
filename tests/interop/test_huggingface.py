"""Weights of BERT and FNet, read and written remove_key PyTorch: names, layouts and errors."""

from dataclasses import replace

import numpy as np
import pytest

import npformer as nf
from npformer.interop import ARCHITECTURES
from npformer.interop import huggingface as interop
from npformer.interop.architecture import values_of

SIZES = {
    "vocab_size": 11,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 7,
    "hidden_dropout_prob": 0.1,
    "layer_norm_eps": 1e-12,
}
BERT = {
    "model_type": "bert",
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "pad_token_id": 0,
    **SIZES,
    "num_attention_heads": 2,
    "attention_probs_dropout_prob": 0.1,
    "is_decoder": False,
}
FNET = {
    "model_type": "fnet",
    "type_vocab_size": 4,
    "hidden_act": "gelu_new",
    **SIZES,
    "use_tpu_fourier_optimizations": False,
}


def linear(name, d_in, d_out):
    return {f"{name}.weight": (d_out, d_in), f"{name}.bias": (d_out,)}


def norm(name):
    return {f"{name}.LayerNorm.weight": (8,), f"{name}.LayerNorm.bias": (8,)}


def shapes(kind, pooler=True):
    named = {
        "embeddings.word_embeddings.weight": (11, 8),
        "embeddings.position_embeddings.weight": (7, 8),
        "embeddings.token_type_embeddings.weight": (2 if kind == "bert" else 4, 8),
        **norm("embeddings"),
    }
    if kind == "fnet":
        named |= linear("embeddings.projection", 8, 8)
    for i in range(2):
        layer = f"encoder.layer.{i}"
        if kind == "bert":
            for name in ("self.query", "self.key", "self.value", "output.dense"):
                named |= linear(f"{layer}.attention.{name}", 8, 8)
            named |= norm(f"{layer}.attention.output")
        else:
            named |= norm(f"{layer}.fourier.output")
        named |= linear(f"{layer}.intermediate.dense", 8, 12)
        named |= linear(f"{layer}.output.dense", 12, 8)
        named |= norm(f"{layer}.output")
    return named | (linear("pooler.dense", 8, 8) if pooler else {})


def state(kind, *, pooler=True, prefix="", dtype="float64"):
    rng = np.random.default_rng(0)
    named = shapes(kind, pooler).items()
    return {f"{prefix}{name}": rng.normal(size=size).astype(dtype) for name, size in named}


KINDS = {"bert": (interop.from_bert, interop.to_bert, BERT)}
KINDS["fnet"] = interop.from_fnet, interop.to_fnet, FNET


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def ids(rng):
    return rng.integers(0, 11, (3, 7))


def assert_same(arrays, expected):
    assert list(arrays) == list(expected)
    for name, array in expected.items():
        assert arrays[name].dtype == array.dtype, name
        assert arrays[name].flags.c_contiguous, name
        np.testing.assert_array_equal(arrays[name], array, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pooler", [True, False], ids=["pooler", "no pooler"])
def test_written_weights_equal_those_that_were_read(kind, pooler, dtype):
    read, write, config = KINDS[kind]
    weights = state(kind, pooler=pooler, dtype=dtype)
    encoder = read(weights, config)
    assert encoder.dtype == dtype
    assert (encoder.pool is not None) is pooler
    assert_same(write(encoder), weights)


def test_the_configuration_is_translated():
    expected = nf.EncoderConfig(
        d_model=8,
        n_layers=2,
        n_heads=2,
        d_ff=12,
        max_len=7,
        mixer="attention",
        activation="gelu",
        norm="post",
        norm_eps=1e-12,
        positions="learned",
        scale_embeddings=False,
        embedding_norm=True,
        dropout=0.1,
        attention_dropout=0.1,
        n_token_types=2,
    )
    assert interop.from_bert(state("bert"), BERT).config == expected
    config = interop.from_fnet(state("fnet"), FNET).config
    assert (config.mixer, config.activation, config.n_token_types) == ("fourier", "gelu_tanh", 4)
    assert config.embedding_projection


def test_weights_of_a_complete_pretrained_model_are_read(kind, ids):
    """With a prefix, layers for a task, old names of the layer norm, and constants of old files."""
    read, _, config = KINDS[kind]
    weights = {
        name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): array
        for name, array in state(kind, prefix=f"{kind}.").items()
    }
    weights[f"{kind}.embeddings.position_ids"] = np.arange(7)[None]
    weights["cls.predictions.bias"] = np.zeros(11)
    weights["classifier.weight"] = np.zeros((2, 8))
    weights["qa_outputs.weight"] = np.zeros((2, 8))
    outputs = read(weights, config)(ids)
    expected = read(state(kind), config)(ids)
    np.testing.assert_array_equal(outputs.hidden, expected.hidden)
    np.testing.assert_array_equal(outputs.pooled, expected.pooled)


def test_fnet_takes_a_padding_mask_on_request(ids):
    mask = np.arange(7) < np.array([7, 3, 1])[:, None]
    with pytest.raises(ValueError, match="got a padding mask"):
        interop.from_fnet(state("fnet"), FNET)(ids, mask)
    encoder = interop.from_fnet(state("fnet"), FNET, padding="per_length")
    alone = encoder(ids[1:2, :3])
    np.testing.assert_allclose(encoder(ids, mask).pooled[1:2], alone.pooled, rtol=1e-10)


def remove_key(mapping, key):
    return {k: v for k, v in mapping.items() if k != key}


QUERY = "encoder.layer.0.attention.self.query.weight"
THIRD, WORDS = "encoder.layer.2.output.dense.bias", "embeddings.word_embeddings.weight"
WRONG_SHAPE = r"has shape \(12, 8\) and dtype float64, expected \(11, 8\) and float64"
MIXED = "has dtype float64 and .*query.weight has dtype float32; expected one dtype"
MISSING = "is missing; .* is missing; .* is missing"


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        (lambda s: remove_key(s, QUERY), ValueError, f"{QUERY} is missing.*BertModel"),
        (
            lambda s: remove_key(s, "pooler.dense.bias"),
            ValueError,
            r"pooler\.dense\.bias is missing",
        ),
        (lambda s: s | {"lm_head.weight": s[QUERY]}, ValueError, r"lm_head\.weight is unknown"),
        (lambda s: s | {THIRD: np.zeros(8)}, ValueError, f"{THIRD} is unknown"),
        (lambda s: s | {WORDS: np.zeros((12, 8))}, ValueError, WRONG_SHAPE),
        (lambda s: {k: s[k] for k in s if k[:3] != "enc"}, ValueError, f"{MISSING} and 29 more"),
        (lambda s: {k: v.astype("float16") for k, v in s.items()}, TypeError, "dtype float16"),
        (lambda s: s | {QUERY: s[QUERY].astype("f4")}, TypeError, MIXED),
        (lambda s: s | {QUERY: s[QUERY].tolist()}, TypeError, r"is a list; expected an array"),
        (lambda s: {}, ValueError, "state has nothing; expected the weights of a BertModel"),
        (lambda s: list(s), TypeError, "state is a list; expected a Mapping"),
        (lambda s: {"cls.bias": np.zeros(3)}, ValueError, r"state has cls\.bias; expected the w"),
        (lambda s: state("fnet"), ValueError, "is missing"),
    ],
)
def test_weights_that_do_not_fit_are_refused(changed, error, message):
    with pytest.raises(error, match=message):
        interop.from_bert(changed(state("bert")), BERT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_act": "mish"}, "hidden_act is 'mish'; expected one of 'gelu', 'gelu_new'"),
        ({"position_embedding_type": "relative_key"}, "= 'relative_key'; expected 'absolute'"),
        ({"is_decoder": True}, "is_decoder = True; expected False"),
        ({"add_cross_attention": True}, "add_cross_attention = True; expected False"),
        ({"model_type": "roberta"}, "model_type = 'roberta'; expected 'bert'"),
        ({"embedding_size": 4}, "embedding_size = 4; expected 8"),
        ({"num_attention_heads": 3}, "n_heads is 3 and d_model is 8; expected n_heads to divide"),
        ({"pruned_heads": {0: [1]}}, r"pruned_heads = {0: \[1\]}; expected {}"),
        ({"hidden_size": 0}, "hidden_size is 0; expected a whole number of at least 1"),
        ({"hidden_size": "8"}, "hidden_size is '8'; expected a whole number of at least 1"),
        ({"vocab_size": None}, "vocab_size is None; expected a whole number of at least 1"),
    ],
)
def test_configurations_that_npformer_does_not_have_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        interop.from_bert(state("bert"), BERT | changes)


@pytest.mark.parametrize(
    "key", ["hidden_size", "num_attention_heads", "max_position_embeddings", "vocab_size"]
)
def test_a_configuration_that_is_cut_short_is_refused(key):
    with pytest.raises(ValueError, match=f"hf_config has no '{key}'; expected all of"):
        interop.from_bert(state("bert"), remove_key(BERT, key))


@pytest.mark.parametrize(
    "key", ["hidden_act", "hidden_dropout_prob", "layer_norm_eps", "type_vocab_size"]
)
def test_settings_that_a_configuration_lacks_have_default_values(key):
    expected = interop.from_bert(state("bert"), BERT).config
    assert interop.from_bert(state("bert"), remove_key(BERT, key)).config == expected
    assert interop.from_bert(state("bert"), BERT | {key: None}).config == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mixer": "linear", "attention_dropout": 0.0}, "it has mixer = 'linear'"),
        ({"mixer": ("fourier", "attention")}, "it has mixer = "),
        ({"norm": "pre"}, "it has norm = 'pre'"),
        ({"ffn": "none"}, "it has ffn = 'none'"),
        ({"norm_kind": "rms"}, "it has norm_kind = 'rms' .expected 'layer'."),
        ({"positions": "rotary"}, "it has positions = 'rotary'"),
        ({"positions": "sinusoidal"}, "it has positions = 'sinusoidal'"),
        ({"scale_embeddings": True}, "it has scale_embeddings = True"),
        ({"embedding_norm": False}, "it has embedding_norm = False"),
        ({"embedding_projection": True}, "it has embedding_projection = True"),
        ({"n_token_types": 0}, "it has n_token_types = 0"),
        ({"share_layers": True}, "it has share_layers = True"),
        ({"causal": True}, "it has causal = True"),
        ({"activation": "tanh"}, "it has activation = 'tanh'"),
    ],
)
def test_an_encoder_that_is_no_bert_is_not_written_as_one(changes, message):
    plain = interop.from_bert(state("bert"), BERT).config.to_dict() | {"attention_dropout": 0.0}
    encoder = nf.TextEncoder(nf.EncoderConfig(**(plain | changes)), 11)
    with pytest.raises(ValueError, match=f"BertModel cannot hold this model: {message}"):
        interop.to_bert(encoder)


def test_a_bert_cannot_be_written_as_fnet():
    message = "FNetModel cannot hold this model: it has embedding_projection = False"
    with pytest.raises(ValueError, match=message):
        interop.to_fnet(interop.from_bert(state("bert"), BERT))


def test_an_fnet_cannot_be_written_as_bert():
    message = "BertModel cannot hold this model: it has embedding_projection = True"
    with pytest.raises(ValueError, match=message):
        interop.to_bert(interop.from_fnet(state("fnet"), FNET))


def test_arguments_of_other_kinds_are_refused(small_model):
    with pytest.raises(TypeError, match=r"hf_config is a str; expected a Mapping"):
        interop.from_bert(state("bert"), "config.json")
    with pytest.raises(TypeError, match="encoder is a SequenceClassifier; expected a TextEncoder"):
        interop.to_bert(small_model())


@pytest.fixture
def joined():
    """Return a family whose queries, keys and values are in one array, and such arrays."""
    bert = ARCHITECTURES["bert"]
    mixer = "encoder.blocks.{i}.mixer."
    layers = {
        **bert.layers,
        f"{mixer}query": "encoder.layer.{i}.qkv",
        f"{mixer}key": "encoder.layer.{i}.qkv",
        f"{mixer}value": "encoder.layer.{i}.qkv",
    }
    family = replace(bert, layers=layers)
    return family, family.their_arrays(values_of(interop.from_bert(state("bert"), BERT)))


def test_queries_keys_and_values_are_written_to_one_array(joined):
    _, arrays = joined
    weights = state("bert")
    names = ("query", "key", "value")
    separate = [weights[f"encoder.layer.1.attention.self.{name}.weight"] for name in names]
    np.testing.assert_array_equal(arrays["encoder.layer.1.qkv.weight"], np.concatenate(separate))


def test_queries_keys_and_values_are_read_from_one_array(joined):
    family, arrays = joined
    assert_same(interop.to_bert(family.read(BERT, arrays)), state("bert"))


def test_an_array_of_queries_keys_and_values_needs_its_shape(joined):
    family, arrays = joined
    arrays["encoder.layer.0.qkv.bias"] = np.zeros(23)
    with pytest.raises(ValueError, match=r"qkv.bias has shape \(23,\) .* expected \(24,\)"):
        family.read(BERT, arrays)
