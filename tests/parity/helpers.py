"""How two results are compared, and how weights travel from npformer to PyTorch."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import npformer as nf
from tests.needs import NEEDS

torch = pytest.importorskip("torch", reason=NEEDS["torch"])

# On a busy machine threads that wait for each other turn milliseconds into half a second.
torch.set_num_threads(1)

AGREEMENT = 1e-10
D, HEADS, D_FF = 8, 2, 12


def small(**options: Any) -> nf.EncoderConfig:
    """Return a configuration of these sizes, with changes."""
    sizes = {"d_model": D, "n_layers": 2, "n_heads": HEADS, "d_ff": D_FF, "max_len": 5}
    return nf.EncoderConfig(**sizes | options)


def normals(*shapes: tuple[int, ...], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


def leaf(x: np.ndarray) -> torch.Tensor:
    """Copy to a tensor that collects a gradient."""
    return torch.tensor(x, requires_grad=True)


def disagreement(ours: Any, theirs: Any) -> float:
    """Return max |ours - theirs| / max |theirs|: NaN if either holds a NaN."""
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-300))


def assert_close(ours: Any, theirs: Any, what: str = "y", agreement: float = AGREEMENT) -> None:
    """Assert that both have one shape, are float64 and agree, relative to the largest entry."""
    if isinstance(theirs, torch.Tensor):
        theirs = theirs.detach().numpy()
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype == np.float64, f"{what}: {ours.dtype}, {theirs.dtype}"
    assert ours.shape == theirs.shape, f"{what}: shape {ours.shape}, PyTorch's {theirs.shape}"
    apart = disagreement(ours, theirs)
    assert apart < agreement, f"{what}: relative disagreement {apart:.2e}, allowed {agreement:.0e}"


def randomise(layer: nf.Layer, seed: int = 1) -> None:
    """Give every trained parameter random values, so that no bias is 0 and no scale is 1."""
    rng = np.random.default_rng(seed)
    for value in layer.parameters().values():
        value[...] = 0.4 * rng.standard_normal(value.shape)


class Doubles:
    """torch with float64 as float32, in which newer models of transformers compute some steps."""

    float = float32 = torch.float64

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def compute_in_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let transformers compute norms, angles and rotations in float64, too."""
    for name in ("llama", "modernbert", "qwen3"):
        module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
        monkeypatch.setattr(module, "torch", Doubles())
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)


def torch_block(
    config: nf.EncoderConfig, kind: type[torch.nn.Module] = torch.nn.TransformerEncoderLayer
) -> torch.nn.Module:
    return kind(
        d_model=config.d_model,
        nhead=config.n_heads,
        dim_feedforward=config.d_ff,
        dropout=0.0,
        activation=config.activation,
        norm_first=config.norm == "pre",
        batch_first=True,
        dtype=torch.float64,
    )


def torch_encoder(config: nf.EncoderConfig) -> torch.nn.TransformerEncoder:
    """Return PyTorch's encoder of these settings; with the norm first it ends in a norm."""
    norm = torch.nn.LayerNorm(config.d_model, dtype=torch.float64) if config.norm == "pre" else None
    # Nested tensors only speed up PyTorch's inference; asked for with the norm first it warns.
    block = torch_block(config)
    n = config.n_layers
    return torch.nn.TransformerEncoder(block, n, norm=norm, enable_nested_tensor=False)


Named = Mapping[str, np.ndarray]


def linear_as_torch(named: Named, ours: str, theirs: str) -> dict[str, np.ndarray]:
    """Lay a `Linear` out as PyTorch's, or a kernel of size 1: (out, in)."""
    weight = named[f"{ours}.weight"]
    weight = weight.reshape(weight.shape[-2:]).T
    return {f"{theirs}.weight": weight, f"{theirs}.bias": named[f"{ours}.bias"]}


def norm_as_torch(named: Named, ours: str, theirs: str) -> dict[str, np.ndarray]:
    return {f"{theirs}.weight": named[f"{ours}.gamma"], f"{theirs}.bias": named[f"{ours}.beta"]}


def within(theirs: str, laid_out: Named) -> dict[str, np.ndarray]:
    return {f"{theirs}.{name}": value for name, value in laid_out.items()}


def attention_as_torch(named: Named, prefix: str = "") -> dict[str, np.ndarray]:
    """Lay `mixers.Attention` out as MultiheadAttention: (out, in), three projections in one."""
    projections = [f"{prefix}{name}" for name in ("query", "key", "value")]
    return {
        "in_proj_weight": np.concatenate([named[f"{name}.weight"].T for name in projections]),
        "in_proj_bias": np.concatenate([named[f"{name}.bias"] for name in projections]),
        **linear_as_torch(named, f"{prefix}output", "out_proj"),
    }


def block_as_torch(named: Named, prefix: str = "") -> dict[str, np.ndarray]:
    return {
        **within("self_attn", attention_as_torch(named, f"{prefix}mixer.")),
        **linear_as_torch(named, f"{prefix}feed_forward.expand", "linear1"),
        **linear_as_torch(named, f"{prefix}feed_forward.contract", "linear2"),
        **norm_as_torch(named, f"{prefix}mixer_norm", "norm1"),
        **norm_as_torch(named, f"{prefix}feed_forward_norm", "norm2"),
    }


def stack_as_torch(named: Named, n: int, prefix: str, block: Callable[..., Named]) -> Named:
    laid_out = {}
    for i in range(n):
        laid_out |= within(f"layers.{i}", block(named, f"{prefix}blocks.{i}."))
    if f"{prefix}final_norm.gamma" in named:
        laid_out |= norm_as_torch(named, f"{prefix}final_norm", "norm")
    return laid_out


def encoder_as_torch(named: Named, n_layers: int, prefix: str = "") -> Named:
    return stack_as_torch(named, n_layers, prefix, block_as_torch)


def decoder_block_as_torch(named: Named, prefix: str = "") -> Named:
    cross = attention_as_torch(named, f"{prefix}cross_attention.")
    return {
        **block_as_torch(named, prefix),
        **within("multihead_attn", cross),
        # there the norm of the cross-attention is the second, and that of the network the third
        **norm_as_torch(named, f"{prefix}cross_attention_norm", "norm2"),
        **norm_as_torch(named, f"{prefix}feed_forward_norm", "norm3"),
    }


def transformer_as_torch(named: Named, n_layers: int) -> Named:
    decoder = stack_as_torch(named, n_layers, "decoder.", decoder_block_as_torch)
    encoder = encoder_as_torch(named, n_layers, "encoder.")
    return within("encoder", encoder) | within("decoder", decoder)


def load(module: torch.nn.Module, weights: Named) -> torch.nn.Module:
    """Copy weights, laid out as PyTorch's, into a module; none may be missing or left over."""
    module.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    return module


def assert_gradients_agree(ours: Named, module: torch.nn.Module) -> None:
    theirs = {name: parameter.grad for name, parameter in module.named_parameters()}
    assert ours.keys() == theirs.keys()
    for name, gradient in ours.items():
        assert_close(gradient, theirs[name], f"gradient of {name}")


def assert_layer_agrees(
    ours: nf.Layer,
    theirs: torch.nn.Module,
    as_torch: Callable[[Named], Named],
    x: np.ndarray,
    dy: np.ndarray,
    call: Callable[[torch.Tensor], torch.Tensor] | None = None,
    mask: np.ndarray | None = None,
    padding_counts: bool = False,
) -> None:
    """Assert that y (not at padding, unless it counts), dx and the parameters' gradients agree."""
    load(theirs, as_torch(ours.parameters()))
    counted = np.ones(1) if mask is None or padding_counts else mask[..., None].astype("float64")
    x_torch = leaf(x)
    y_torch = (theirs if call is None else call)(x_torch)
    y_torch.backward(torch.tensor(dy * counted))

    gradients = nf.Gradients(ours)
    y, cache = ours.forward(x, nf.Context(mask=mask))
    dx = ours.backward(dy * counted, cache, gradients)
    assert_close(y * counted, y_torch * torch.tensor(counted))
    assert_close(dx, x_torch.grad, "dx")
    assert_gradients_agree(as_torch(gradients), theirs)
