import json

import numpy as np
import pytest

import npformer as nf
from npformer.interop import save_pretrained

SIZES = {"d_model": 8, "n_heads": 2, "d_ff": 12, "n_layers": 1, "max_len": 9}
GPT2 = {"norm": "pre", "positions": "learned", "scale_embeddings": False, "causal": True, **SIZES}
MARIAN = {"positions": "sinusoidal_halves", **SIZES}


def gpt2(**changes):
    return nf.LanguageModel(nf.EncoderConfig(**GPT2 | changes), 20)


def marian(**changes):
    options = {"tied": True, "output_bias": True, "padding_id": 19, "begin_id": 19, "end_id": 0}
    return nf.EncoderDecoder(nf.EncoderConfig(**MARIAN), 20, 20, **options | changes)


@pytest.mark.parametrize("make", [gpt2, marian])
def test_a_folder_holds_the_same_model(make, tmp_path):
    model = make()
    rng = np.random.default_rng(0)
    for value in model.parameters().values():
        value += rng.normal(size=value.shape).astype(value.dtype)
    save_pretrained(model, tmp_path / "folder")
    again = nf.from_pretrained(tmp_path / "folder")
    assert again.model.config == model.config
    assert again.model.arguments() == model.arguments()
    for name, value in model.parameters().items():
        np.testing.assert_array_equal(again.model.parameters()[name], value)
    with pytest.raises(FileExistsError, match=r"model.safetensors, config.json already"):
        again.save(tmp_path / "folder")
    again.save(tmp_path / "folder", overwrite=True)
    assert "parameters, from" in repr(again)


def changed(folder, **settings):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


@pytest.mark.parametrize(
    ("make", "settings", "said"),
    [
        (gpt2, {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = True"),
        (gpt2, {"add_cross_attention": True}, "add_cross_attention = True; expected False"),
        (gpt2, {"activation_function": "mish"}, "activation_function is 'mish'"),
        (gpt2, {"n_embd": 10}, "fits config.json"),
        (gpt2, {"n_layer": 2}, "the weights have no 'transformer.h.1.attn."),
        (marian, {"share_encoder_decoder_embeddings": False}, "expected True"),
        (marian, {"normalize_before": True}, "normalize_before = True; expected False"),
        (marian, {"pad_token_id": None}, "pad_token_id is None"),
        (marian, {"encoder_ffn_dim": 13}, "fits config.json"),
    ],
)
def test_what_npformer_has_not_is_said(make, settings, said, tmp_path):
    save_pretrained(make(), tmp_path / "folder")
    changed(tmp_path / "folder", **settings)
    with pytest.raises((TypeError, ValueError), match="cannot be read") as raised:
        nf.from_pretrained(tmp_path / "folder")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: gpt2(norm="post"), "norm = 'post' (expected 'pre')"),
        (lambda: gpt2(mixer="gated_convolution"), "mixer = 'gated_convolution'"),
        (lambda: gpt2(activation="tanh"), "activation = 'tanh'"),
        (lambda: marian(tied=False), "it has tied = False"),
        (lambda: marian(output_bias=False), "it has output_bias = False"),
    ],
)
def test_what_transformers_has_not_is_said(make, said, tmp_path):
    with pytest.raises(ValueError, match=r"npformer\.save writes any model") as raised:
        save_pretrained(make(), tmp_path / "folder")
    assert said in str(raised.value)


def test_weights_can_be_used_without_a_tokenizer(tmp_path):
    save_pretrained(gpt2(), tmp_path / "folder")
    found = nf.from_pretrained(tmp_path / "folder")
    assert found.model.generate([1, 2], 3).shape == (3,)
    with pytest.raises((FileNotFoundError, ImportError)):
        found.generate("a")
    with pytest.raises(ValueError, match=r"pooling is given and .* a model that writes"):
        nf.from_pretrained(tmp_path / "folder", pooling="mean")
    with pytest.raises(ValueError, match="with its settings and weights alone"):
        save_pretrained(gpt2(), tmp_path / "other", classes=["a"])
    with pytest.raises(TypeError, match="PretrainedEncoder"):
        nf.TextClassifier(pretrained=tmp_path / "folder").fit(["a", "b"], [0, 1])
