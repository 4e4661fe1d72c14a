"""Each key of a config.json counts as in transformers, or is refused: none differs in silence."""

import json

import numpy as np
import pytest

import npformer as nf

from .helpers import compute_in_doubles, torch
from .test_pretrained_heads import DISTIL, SIZES, transformers

WRITER = SIZES | {"num_key_value_heads": 2, "head_dim": 6}
GPT2 = {"n_embd": 12, "n_layer": 1, "n_head": 2, "n_positions": 24, "vocab_size": 50}
KINDS = {
    "ModernBert": (SIZES | {"num_hidden_layers": 2, "local_attention": 8}, "Model"),
    "Llama": (WRITER, "ForCausalLM"),
    "Bert": (SIZES, "Model"),
    "DistilBert": (DISTIL, "Model"),
    "Roberta": (SIZES, "Model"),
    "FNet": ({k: v for k, v in SIZES.items() if "heads" not in k}, "Model"),
    "Qwen3": (WRITER, "ForCausalLM"),
    "GPT2": (GPT2, "LMHeadModel"),
}
SLOW = [*KINDS][2:]
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
OTHERS = {
    "sliding_window": 2,
    "local_attention": 5,
    "use_sliding_window": True,
    "global_attn_every_n_layers": 1,
    "layer_types": ["sliding_attention"] * 2,
    "rope_scaling": LINEAR,
    "rope_parameters": LINEAR,
    "rope_theta": 20.0,
    "local_rope_theta": 20.0,
    "partial_rotary_factor": 0.5,
    "position_embedding_type": "relative_key",
    "is_decoder": True,
    "is_causal": True,
    "add_cross_attention": True,
    "embedding_size": 8,
    "head_dim": 4,
    "mlp_bias": True,
    "hidden_act": "tanh",
    "hidden_activation": "gelu_new",
    "activation": "relu",
    "activation_function": "silu",
    "tie_word_embeddings": False,
    "chunk_size_feed_forward": 2,
}
"""Keys that some class knows under this name, or an earlier version did."""

IDS = 10 + np.random.default_rng(0).integers(0, 40, (2, 20))


@pytest.fixture(autouse=True)
def doubles(monkeypatch):
    compute_in_doubles(monkeypatch)


def changed(value):
    """Return another value of a flag or a number; None for anything else."""
    if isinstance(value, bool):
        return not value
    return value + 0.25 if isinstance(value, float) else None


def theirs(folder):
    auto = transformers.AutoModel
    if "LM" in json.loads((folder / "config.json").read_text())["architectures"][0]:
        auto = transformers.AutoModelForCausalLM
    model = auto.from_pretrained(folder, attn_implementation="eager").to(torch.float64).eval()
    with torch.no_grad():
        return model(torch.tensor(IDS), return_dict=True)[0].numpy()


def ours(folder):
    model = nf.from_pretrained(folder).model
    return model(IDS) if isinstance(model, nf.LanguageModel) else model(IDS).hidden


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "family",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in KINDS],
)
def test_no_key_changes_numbers_in_silence(tmp_path, family):
    sizes, kind = KINDS[family]
    config = getattr(transformers, f"{family}Config")(**sizes)
    model = getattr(transformers, family + kind)(config).to(torch.float64)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.5)
    model.save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    stated = json.loads(file.read_text())
    of_class = {key: changed(value) for key, value in type(config)().to_dict().items()}
    cases = {key: value for key, value in of_class.items() if value is not None} | OTHERS
    expected = theirs(tmp_path)
    different = []
    refused = set()
    np.testing.assert_allclose(ours(tmp_path), expected, rtol=0, atol=1e-11)
    for key, value in cases.items():
        file.write_text(json.dumps(stated | {key: value}))
        try:
            outputs = ours(tmp_path)
        except ValueError:
            refused.add(key)
            continue
        try:
            expected = theirs(tmp_path)
        except Exception:  # what transformers cannot read either has no right value
            continue
        if not np.allclose(outputs, expected, rtol=0, atol=1e-11):
            different.append(key)
    assert different == []
    assert refused
    assert len(refused) < len(cases) / 2
