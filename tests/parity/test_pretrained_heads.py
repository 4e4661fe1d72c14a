"""Heads for hidden tokens as transformers reads them: tied or not, and with arrays of two names."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import npformer as nf
from tests.needs import NEEDS

from .helpers import compute_in_doubles, torch

transformers = pytest.importorskip("transformers", reason=NEEDS["transformers"])
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

V, D = 50, 12
SIZES = {"hidden_size": D, "num_hidden_layers": 1, "intermediate_size": 20, "vocab_size": V}
SIZES |= {"num_attention_heads": 2, "max_position_embeddings": 24, "pad_token_id": 0}
DISTIL = {"dim": D, "n_layers": 1, "n_heads": 2, "hidden_dim": 20, "vocab_size": V}
BERT_HEAD = "cls.predictions.decoder", "cls.predictions.bias"
ROBERTA_HEAD = "lm_head.decoder", "lm_head.bias"
KINDS = {
    "Bert": (SIZES, *BERT_HEAD, {"hidden_act": "relu"}),
    "DistilBert": (DISTIL, "vocab_projector", "vocab_projector.bias", {"activation": "relu"}),
    "Roberta": (SIZES, *ROBERTA_HEAD, {"hidden_act": "silu"}),
    "XLMRoberta": (SIZES, *ROBERTA_HEAD, {"hidden_act": "gelu_new"}),
    "Camembert": (SIZES, *ROBERTA_HEAD, {"hidden_act": "relu"}),
    "FNet": (SIZES, *BERT_HEAD, {"hidden_act": "gelu"}),
    "ModernBert": (SIZES, "decoder", "decoder.bias", {"classifier_activation": "silu"}),
}
"""{family: sizes, the layer of the logits, another name of its bias, another activation}."""

LAYOUTS = ["Bert", "DistilBert", "Roberta", "FNet", "ModernBert"]
"""A family for each layout of a head."""

IDS = 1 + np.random.default_rng(0).integers(4, V - 1, (2, 9))


@pytest.fixture(autouse=True)
def doubles(monkeypatch):
    compute_in_doubles(monkeypatch)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a folder of random weights, in float64."""

    def written(family, head="ForMaskedLM", **changes):
        sizes = KINDS[family][0]
        known = {k: v for k, v in sizes.items() if family != "FNet" or "heads" not in k}
        config = getattr(transformers, f"{family}Config")(**known | changes)
        model = getattr(transformers, family + head)(config).to(torch.float64)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in model.parameters():
                drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.copy_(0.5 * drawn)
        model.save_pretrained(tmp_path / "theirs")
        return tmp_path / "theirs"

    return written


def change(folder, arrays=(), left_out=(), **settings):
    """Change arrays and settings of a folder."""
    file, config = folder / "model.safetensors", folder / "config.json"
    state = {k: v for k, v in load_file(file).items() if k not in left_out}
    save_file(state | dict(arrays), file, metadata={"format": "pt"})
    config.write_text(json.dumps(json.loads(config.read_text()) | settings))


def theirs(folder):
    auto = transformers.AutoModelForMaskedLM
    model = auto.from_pretrained(folder, attn_implementation="eager").to(torch.float64).eval()
    with torch.no_grad():
        return model(torch.tensor(IDS)).logits.numpy()


def ours(folder):
    return nf.from_pretrained(folder).masked_language_model()


def assert_same_logits(folder, out):
    """Assert that logits are theirs, here and after they were written and read again."""
    expected = theirs(folder)
    logits = ours(folder)(IDS)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-12)
    nf.from_pretrained(folder).save(out)
    np.testing.assert_allclose(theirs(out), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(ours(out)(IDS), logits)


def numbers(*shape):
    return np.random.default_rng(1).normal(size=shape)


@pytest.mark.parametrize("family", LAYOUTS)
def test_a_matrix_of_its_own_is_used_whatever_the_configuration_says(write, family, tmp_path):
    folder = write(family)
    decoder = KINDS[family][1]
    tied = ours(folder)
    change(folder, {f"{decoder}.weight": numbers(V, D)})
    model = ours(folder)
    assert tied.tied
    assert not model.tied
    np.testing.assert_array_equal(model.output.weight.value, numbers(V, D).T)
    assert_same_logits(folder, tmp_path / "ours")


@pytest.mark.parametrize("family", LAYOUTS)
def test_the_decoders_bias_may_have_another_name(write, family, tmp_path):
    folder = write(family)
    decoder, second_name = KINDS[family][1:3]
    change(folder, {f"{decoder}.bias": numbers(V)})
    assert_same_logits(folder, tmp_path / "both")
    if second_name != f"{decoder}.bias":
        change(folder, left_out=[second_name])
        assert_same_logits(folder, tmp_path / "alone")


@pytest.mark.parametrize("family", KINDS)
def test_a_head_that_is_not_tied_or_has_another_activation_is_read(write, family, tmp_path):
    other_activation = KINDS[family][3]
    folder = write(family, tie_word_embeddings=False, **other_activation)
    assert not ours(folder).tied
    assert_same_logits(folder, tmp_path / "ours")


@pytest.mark.parametrize("family", ["Bert", "FNet"])
def test_the_head_beside_that_for_next_sentences_is_read(write, family, tmp_path):
    assert_same_logits(write(family, "ForPreTraining"), tmp_path / "ours")


def test_biases_of_modernberts_head_follow_its_settings(write, tmp_path):
    folder = write("ModernBert", classifier_bias=True, decoder_bias=False)
    model = ours(folder)
    assert (model.head_bias, model.output_bias) == (True, False)
    assert_same_logits(folder, tmp_path / "ours")


def test_the_bias_that_transformers_4_wrote_for_a_head_that_is_not_tied_is_used(write):
    """There both names are one parameter, and it writes the second one; version 5 drops it."""
    folder = write("Bert", tie_word_embeddings=False)
    change(folder, {"cls.predictions.bias": numbers(V)}, ["cls.predictions.decoder.bias"])
    np.testing.assert_array_equal(ours(folder).output.bias.value, numbers(V))
    np.testing.assert_allclose(theirs(folder) + numbers(V), ours(folder)(IDS), rtol=0, atol=1e-12)


def test_modernberts_half_window_counts_if_it_is_set(write, tmp_path):
    folder = write("ModernBert", layer_types=["sliding_attention"], local_attention=8)
    for half in (0, 1, 3):
        change(folder, sliding_window=half)
        assert_same_logits(folder, tmp_path / f"{half}")
