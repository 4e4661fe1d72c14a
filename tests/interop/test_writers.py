import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import npformer as nf
from npformer.core import constants
from npformer.interop import save_pretrained

SIZES = {"d_model": 8, "n_heads": 2, "d_ff": 12, "n_layers": 1, "max_len": 9}
GPT2 = {"norm": "pre", "positions": "learned", "scale_embeddings": False, "causal": True, **SIZES}
LLAMA = {"norm_kind": "rms", "positions": "rotary", "ffn": "gated", "bias": False}
LLAMA = GPT2 | LLAMA | {"activation": "silu", "n_kv_heads": 1, "d_head": 4}
MARIAN = {"positions": "sinusoidal_halves", **SIZES}
SINUSOIDS = constants.sinusoids(9, 8, halves=True)


def gpt2(**changes):
    return nf.LanguageModel(nf.EncoderConfig(**GPT2 | changes), 20)


def marian(**changes):
    options = {"tied": True, "output_bias": True, "padding_id": 19, "begin_id": 19, "end_id": 0}
    return nf.EncoderDecoder(nf.EncoderConfig(**MARIAN), 20, 20, **options | changes)


def llama(tied=True, **changes):
    return nf.LanguageModel(nf.EncoderConfig(**LLAMA | changes), 20, tied=tied)


def qwen3():
    return llama(tied=False, qk_norm=True, rope_theta=500.0)


@pytest.mark.parametrize("make", [gpt2, llama, qwen3, marian])
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


def change_settings(folder, **settings):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (gpt2, {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = True"),
        (gpt2, {"add_cross_attention": True}, "add_cross_attention = True; expected False"),
        (gpt2, {"activation_function": "mish"}, "activation_function is 'mish'"),
        (gpt2, {"n_embd": 10}, "transformer.wte.weight has shape (20, 8) and dtype float32, exp"),
        (gpt2, {"n_layer": 2}, "transformer.h.1.attn.c_attn.weight is missing"),
        (marian, {"share_encoder_decoder_embeddings": False}, "expected True"),
        (marian, {"normalize_before": True}, "normalize_before = True; expected False"),
        (marian, {"pad_token_id": None}, "pad_token_id is None"),
        (marian, {"encoder_ffn_dim": 13}, "fc1.weight has shape (12, 8)"),
        (gpt2, {"num_attention_heads": 4}, "num_attention_heads = 4; expected 2"),
        (gpt2, {"is_causal": False}, "is_causal = False; expected True"),
        (gpt2, {"sliding_window": 4}, "sliding_window = 4"),
        (gpt2, {"embd_pdrop": 0.5}, "embd_pdrop = 0.5; expected 0.0"),
        (gpt2, {"embd_pdrop": None}, "embd_pdrop = 0.1; expected 0.0"),  # the usual one
        (gpt2, {"tie_word_embeddings": "no"}, "tie_word_embeddings is 'no'; expected True or"),
        (marian, {"num_hidden_layers": 2}, "num_hidden_layers = 2; expected 1"),
        (marian, {"decoder_vocab_size": 21}, "decoder_vocab_size = 21; expected 20"),
        (marian, {"is_causal": True}, "is_causal = True"),
        (marian, {"decoder_layerdrop": 0.5}, "decoder_layerdrop = 0.5; expected 0.0"),
        (marian, {"scale_embedding": "false"}, "scale_embedding is 'false'; expected True or"),
        (gpt2, {"auto_map": {"AutoModel": "own.Model"}}, "auto_map = "),
        (gpt2, {"n_layer": 10**5}, "n_layers is 100000"),
        (marian, {"d_model": 2**40}, "an array of shape (20, 1099511627776)"),
    ],
)
def test_what_npformer_has_not_is_said(tmp_path, make, settings, message):
    save_pretrained(make(), tmp_path / "folder")
    change_settings(tmp_path / "folder", **settings)
    with pytest.raises((TypeError, ValueError), match="cannot be read") as raised:
        nf.from_pretrained(tmp_path / "folder")
    assert message in str(raised.value)


TABLE = np.ones((20, 8), "float32")
NEAR = SINUSOIDS.astype("float32")
UPPER = (NEAR.view("uint32") & 0xFFFF0000).view("float32")  # as in bfloat16


@pytest.mark.parametrize(
    ("make", "more", "message"),
    [
        (gpt2, {"score.weight": TABLE}, "score.weight is unknown. Expected .* GPT2LMHeadModel"),
        (gpt2, {"transformer.h.0.attn.lora_A": TABLE}, "transformer.h.0.attn.lora_A is unknown"),
        (gpt2, {"transformer.h.0.attn.bias": TABLE, "transformer.h.0.attn.masked_bias": TABLE}, ""),
        (marian, {"model.encoder.embed_tokens.weight": TABLE}, "differs from 'model.shared"),
        (marian, {"model.decoder.embed_tokens.weight": TABLE}, "differs from 'model.shared"),
        (marian, {"lm_head.weight": TABLE}, "'lm_head.weight' differs from 'model.shared.weight'"),
        (marian, {"lm_head.weight": None, "model.encoder.embed_tokens.weight": None}, ""),
        (marian, {"model.encoder.embed_positions.weight": TABLE[:9]}, "differs from sinusoids"),
        (marian, {"model.decoder.embed_positions.weight": TABLE[0]}, "differs from sinusoids"),
        (marian, {"model.encoder.embed_positions.weight": SINUSOIDS.astype("float16")}, ""),
        (marian, {"model.encoder.embed_positions.weight": UPPER}, ""),
        (
            marian,
            {"model.encoder.embed_positions.weight": NEAR + np.float32(1e-5)},
            "differs from s",
        ),
        (marian, {"model.encoder.embed_positions.weight": NEAR + np.float32(1e-7)}, ""),
        (
            marian,
            {"model.encoder.final_norm.weight": TABLE},
            "encoder.final_norm.weight is unknown",
        ),
    ],
)
def test_an_array_is_used_or_refused(tmp_path, make, more, message):
    save_pretrained(make(), tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    same = state.get("model.shared.weight")
    save_file(state | {k: same if v is None else v for k, v in more.items()},
              tmp_path / "model.safetensors")  # fmt: skip
    if message:
        with pytest.raises(ValueError, match=message):
            nf.from_pretrained(tmp_path)
    else:
        nf.from_pretrained(tmp_path).save(tmp_path / "again")
        again = load_file(tmp_path / "again" / "model.safetensors")
        assert again.keys() == state.keys()
        assert all((again[name] == array).all() for name, array in state.items())


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (gpt2, {"repetition_penalty": 1.2}, "generation repetition_penalty = 1.2, wh"),
        (gpt2, {"bad_words_ids": [[3]]}, "bad_words_ids"),
        (gpt2, {"num_beams": 3, "stop_strings": ["a"]}, r"stop_strings = \['a'\], .*num_beams = 3"),
        (marian, {"decoder_start_token_id": 3, "num_beams": 3}, "decoder_start_token_id = 3, wh"),
        (marian, {"forced_eos_token_id": 5}, "forced_eos_token_id = 5"),
    ],
)
def test_unsupported_settings_of_generation_give_a_warning(tmp_path, make, settings, message):
    save_pretrained(make(), tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps(settings))
    with pytest.warns(UserWarning, match=message):
        nf.from_pretrained(tmp_path)


def test_supported_settings_of_generation_are_used(tmp_path):
    save_pretrained(gpt2(), tmp_path)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [7], "min_length": 0}')
    assert nf.from_pretrained(tmp_path)._ends() == [7]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gpt2(norm="post"), "norm = 'post' (expected 'pre')"),
        (lambda: gpt2(mixer="gated_convolution"), "mixer = 'gated_convolution'"),
        (lambda: gpt2(activation="tanh"), "activation = 'tanh'"),
        (lambda: llama(window=4), "window = 4 (expected None)"),
        (lambda: llama(bias=True), "bias = True (expected False)"),
        (lambda: llama(rope_theta=(1.0, 2.0), n_layers=2), "that differ in rope_theta or window"),
        (lambda: gpt2(n_kv_heads=1), "n_kv_heads = 1 (expected None)"),
        (lambda: marian(tied=False), "it has tied = False"),
        (lambda: marian(output_bias=False), "it has output_bias = False"),
    ],
)
def test_models_that_transformers_does_not_have_are_refused(tmp_path, make, message):
    with pytest.raises(ValueError, match=r"npformer\.save writes any model") as raised:
        save_pretrained(make(), tmp_path / "folder")
    assert message in str(raised.value)


def test_weights_can_be_used_without_a_tokenizer(tmp_path):
    save_pretrained(gpt2(), tmp_path / "folder")
    pretrained = nf.from_pretrained(tmp_path / "folder")
    assert pretrained.model.generate([1, 2], 3).shape == (3,)
    with pytest.raises((FileNotFoundError, ImportError)):
        pretrained.generate("a")
    with pytest.raises(ValueError, match=r"pooling is given and .* a model that writes"):
        nf.from_pretrained(tmp_path / "folder", pooling="mean")
    with pytest.raises(ValueError, match="with its settings and weights alone"):
        save_pretrained(gpt2(), tmp_path / "other", classes=["a"])
    with pytest.raises(TypeError, match="PretrainedEncoder"):
        nf.TextClassifier(pretrained=tmp_path / "folder").fit(["a", "b"], [0, 1])
