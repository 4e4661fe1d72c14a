"""Folders that hold something else than weights of floats: the message names cause and remedy."""

import json
import warnings

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import npformer as nf
from npformer.interop import save_pretrained
from npformer.interop.tokenizers import read_tokenizer

from .folders import WORDS, config_of, tiny

POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)
CAUSE, REMEDY = "is a pointer of Git LFS", "git lfs pull"


def write_model(folder, kind="bert", **options):
    """Write a folder with a head for hidden tokens, and return the model in it."""
    model = nf.MaskedLanguageModel(config_of(kind), len(WORDS), dtype="float64", **options)
    save_pretrained(model, folder, architecture=kind)
    return model


def change(folder, arrays=(), left_out=(), **settings):
    """Change arrays and settings of a folder."""
    file, config = folder / "model.safetensors", folder / "config.json"
    state = {k: v for k, v in load_file(file).items() if k not in left_out}
    save_file(state | dict(arrays), file)
    config.write_text(json.dumps(json.loads(config.read_text()) | settings))


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
)
def test_a_pointer_in_place_of_a_file_of_a_folder(tmp_path, name):
    tiny(tmp_path / name / "model")
    file = tmp_path / name / "model" / name
    assert file.is_file()
    file.write_bytes(POINTER)
    with pytest.raises(ValueError, match=f"{name} {CAUSE}.*{REMEDY}"):
        nf.from_pretrained(file.parent)


@pytest.mark.parametrize("name", ["vocab.txt", "vocab.json", "merges.txt"])
def test_a_pointer_in_place_of_a_vocabulary(tmp_path, name):
    folder = tmp_path / name.replace(".", "-")
    folder.mkdir()
    if name == "merges.txt":
        (folder / "vocab.json").write_text(json.dumps({"<s>": 0, "a": 1}))
    (folder / name).write_bytes(POINTER)
    with pytest.raises(ValueError, match=f"{name} {CAUSE}.*{REMEDY}"):
        read_tokenizer(folder)


def test_a_pointer_in_place_of_a_model_or_of_word_vectors(tmp_path):
    file = tmp_path / "weights"
    file.write_bytes(POINTER)
    with pytest.raises(ValueError, match=f"{CAUSE}.*{REMEDY}"):
        nf.load(file)
    with pytest.raises(ValueError, match=f"{CAUSE}.*{REMEDY}"):
        nf.interop.read_word_vectors(file, ["the"])


@pytest.mark.parametrize("method", ["gptq", "awq", "fp8", "bitsandbytes", "compressed-tensors"])
def test_a_quantization_is_named(tmp_path, method):
    tiny(tmp_path / method, tokenizer=False)
    change(tmp_path / method, quantization_config={"quant_method": method, "bits": 4})
    with pytest.raises(ValueError, match=f"quantized by {method} .*npformer does not read"):
        nf.from_pretrained(tmp_path / method)


def test_integers_in_place_of_floats(tmp_path):
    tiny(tmp_path / "bert", tokenizer=False)
    name = "encoder.layer.0.output.dense.weight"
    change(tmp_path / "bert", {name: np.ones((8, 12), "int8")})
    with pytest.raises(ValueError, match=f"{name} holds int8, as quantized weights do"):
        nf.from_pretrained(tmp_path / "bert")
    change(tmp_path / "bert", {name: np.ones((8, 12)), "embeddings.position_ids": np.arange(16)})
    nf.from_pretrained(tmp_path / "bert")  # a constant


LAYERS = {
    "bert": ("cls.predictions.transform.dense.weight", "cls.predictions.decoder.scale"),
    "distilbert": ("vocab_layer_norm.bias", "vocab_projector.scale"),
    "roberta": ("lm_head.layer_norm.weight", "lm_head.scale"),
    "modernbert": ("decoder.bias", "head.dense.bias"),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_an_array_of_a_head_is_used_or_refused_by_name(tmp_path, kind):
    needed, unknown = LAYERS[kind]
    write_model(tmp_path / kind, kind)
    state = load_file(tmp_path / kind / "model.safetensors")
    change(tmp_path / kind, left_out=[needed])
    with pytest.raises(ValueError, match=f"the weights have no {needed};"):
        nf.from_pretrained(tmp_path / kind)
    change(tmp_path / kind, {needed: state[needed], unknown: np.ones(3)})
    with pytest.raises(ValueError, match=f"the weights have {unknown}, which"):
        nf.from_pretrained(tmp_path / kind)


def test_an_array_of_a_classifier_is_used_or_refused_by_name(tmp_path):
    pooling = "pooler(activation='gelu', bias=False, norm=True)"
    tiny(tmp_path / "model", "modernbert", pooling=pooling, tokenizer=False)
    change(tmp_path / "model", {"head.dense.bias": np.ones(8)})
    with pytest.raises(ValueError, match=r"the weights have head\.dense\.bias, which"):
        nf.from_pretrained(tmp_path / "model")


def test_a_head_that_transformers_does_not_have_is_refused(tmp_path):
    with pytest.raises(ValueError, match="head_activation = 'silu'; expected 'gelu', as trans"):
        write_model(tmp_path / "bert", "bert", head_activation="silu")


def test_a_head_with_an_unknown_activation_gives_a_warning(tmp_path):
    write_model(tmp_path / "modernbert", "modernbert", head_activation="silu")
    again = nf.from_pretrained(tmp_path / "modernbert").masked_language_model()
    assert again.head_activation == "silu"
    change(tmp_path / "modernbert", classifier_activation="tanh")
    with pytest.warns(UserWarning, match="classifier_activation = 'tanh'.*Only the encoder"):
        encoder = nf.from_pretrained(tmp_path / "modernbert")
    with pytest.raises(ValueError, match="no head for hidden tokens"):
        encoder.masked_language_model()


def test_an_encoder_with_the_class_name_of_its_pretraining_is_read(tmp_path):
    tiny(tmp_path / "encoder", tokenizer=False)
    change(tmp_path / "encoder", architectures=["BertForMaskedLM"])  # the name of an earlier class
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nf.from_pretrained(tmp_path / "encoder").masked is None


def test_a_head_that_is_not_tied_is_read_from_a_file(tmp_path):
    model = write_model(tmp_path / "bert", tied=False)
    names = {"output.weight", "output.bias", "embed.tokens.weight"}
    assert names <= model.parameters().keys()
    assert model.parameters()["output.weight"].shape == (8, len(WORDS))
    file = tmp_path / "file.safetensors"
    nf.save(model, file)
    ids = 1 + np.arange(12).reshape(2, 6)
    read = nf.from_pretrained(tmp_path / "bert").masked_language_model()
    for again in (nf.load(file), read):
        assert not again.tied
        np.testing.assert_array_equal(again(ids), model(ids))


def test_a_model_takes_over_an_encoder_but_not_its_head(tmp_path):
    model = write_model(tmp_path / "bert", tied=False)
    tied = nf.MaskedLanguageModel(model.config, len(WORDS), dtype="float64")
    for one, other in ((tied, model), (model, tied)):
        weight_before = one.output.weight.value.copy()
        nf.models.trainable.take_over(one, other)
        np.testing.assert_array_equal(
            one.embed.tokens.weight.value, other.embed.tokens.weight.value
        )
        if not one.tied:
            np.testing.assert_array_equal(one.output.weight.value, weight_before)
