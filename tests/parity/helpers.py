"""How two results are compared, and how weights travel from npformer to PyTorch."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import npformer as nf

torch = pytest.importorskip(
    "torch", reason="parity tests compare with PyTorch: python -m pip install '.[parity]'"
)

# One thread is enough for arrays this small, and on a busy machine threads that wait for each other
# turn milliseconds into half a second.
torch.set_num_threads(1)

AGREEMENT = 1e-10


def normals(*shapes: tuple[int, ...], seed: int = 0) -> list[np.ndarray]:
    """Draw one standard normal array of each shape."""
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


def torch_block(config: nf.EncoderConfig) -> torch.nn.TransformerEncoderLayer:
    """Return PyTorch's block of these settings."""
    return torch.nn.TransformerEncoderLayer(
        config.d_model,
        config.n_heads,
        config.d_ff,
        dropout=0.0,
        activation=config.activation,
        batch_first=True,
        norm_first=config.norm == "pre",
        dtype=torch.float64,
    )


def torch_encoder(config: nf.EncoderConfig) -> torch.nn.TransformerEncoder:
    """Return PyTorch's encoder of these settings; with the norm first it ends in a norm."""
    norm = torch.nn.LayerNorm(config.d_model, dtype=torch.float64) if config.norm == "pre" else None
    # Nested tensors only speed up PyTorch's inference; asked for with the norm first it warns.
    return torch.nn.TransformerEncoder(
        torch_block(config), config.n_layers, norm=norm, enable_nested_tensor=False
    )


Named = Mapping[str, np.ndarray]


def attention_as_torch(named: Named, prefix: str = "") -> dict[str, np.ndarray]:
    """Lay `mixers.Attention` out as MultiheadAttention: (out, in), three projections in one."""
    projections = [f"{prefix}{name}" for name in ("query", "key", "value")]
    return {
        "in_proj_weight": np.concatenate([named[f"{name}.weight"].T for name in projections]),
        "in_proj_bias": np.concatenate([named[f"{name}.bias"] for name in projections]),
        "out_proj.weight": named[f"{prefix}output.weight"].T,
        "out_proj.bias": named[f"{prefix}output.bias"],
    }


def block_as_torch(named: Named, prefix: str = "") -> dict[str, np.ndarray]:
    """Lay an `EncoderBlock` with attention out as TransformerEncoderLayer."""
    attention = attention_as_torch(named, f"{prefix}mixer.")
    return {
        **{f"self_attn.{name}": value for name, value in attention.items()},
        "linear1.weight": named[f"{prefix}feed_forward.expand.weight"].T,
        "linear1.bias": named[f"{prefix}feed_forward.expand.bias"],
        "linear2.weight": named[f"{prefix}feed_forward.contract.weight"].T,
        "linear2.bias": named[f"{prefix}feed_forward.contract.bias"],
        "norm1.weight": named[f"{prefix}mixer_norm.gamma"],
        "norm1.bias": named[f"{prefix}mixer_norm.beta"],
        "norm2.weight": named[f"{prefix}feed_forward_norm.gamma"],
        "norm2.bias": named[f"{prefix}feed_forward_norm.beta"],
    }


def encoder_as_torch(named: Named, n_layers: int, prefix: str = "") -> dict[str, np.ndarray]:
    """Lay an `Encoder` with attention out as TransformerEncoder."""
    laid_out = {}
    for i in range(n_layers):
        block = block_as_torch(named, f"{prefix}blocks.{i}.")
        laid_out |= {f"layers.{i}.{name}": value for name, value in block.items()}
    if f"{prefix}final_norm.gamma" in named:
        laid_out["norm.weight"] = named[f"{prefix}final_norm.gamma"]
        laid_out["norm.bias"] = named[f"{prefix}final_norm.beta"]
    return laid_out


def decoder_block_as_torch(named: Named, prefix: str = "") -> dict[str, np.ndarray]:
    """Lay a `DecoderBlock` with attention out as TransformerDecoderLayer."""
    laid_out = block_as_torch(named, prefix)
    # there the norm of the cross-attention is the second, and that of the network the third
    for name in ("weight", "bias"):
        laid_out[f"norm3.{name}"] = laid_out.pop(f"norm2.{name}")
    laid_out["norm2.weight"] = named[f"{prefix}cross_attention_norm.gamma"]
    laid_out["norm2.bias"] = named[f"{prefix}cross_attention_norm.beta"]
    cross = attention_as_torch(named, f"{prefix}cross_attention.")
    return laid_out | {f"multihead_attn.{name}": value for name, value in cross.items()}


def transformer_as_torch(named: Named, n_layers: int) -> dict[str, np.ndarray]:
    """Lay the encoder and the decoder of a `Transformer` out as torch.nn.Transformer."""
    encoder = encoder_as_torch(named, n_layers, "encoder.")
    laid_out = {f"encoder.{name}": value for name, value in encoder.items()}
    for i in range(n_layers):
        block = decoder_block_as_torch(named, f"decoder.blocks.{i}.")
        laid_out |= {f"decoder.layers.{i}.{name}": value for name, value in block.items()}
    if "decoder.final_norm.gamma" in named:
        laid_out["decoder.norm.weight"] = named["decoder.final_norm.gamma"]
        laid_out["decoder.norm.bias"] = named["decoder.final_norm.beta"]
    return laid_out


def load(module: torch.nn.Module, weights: Named) -> torch.nn.Module:
    """Copy weights, laid out as PyTorch's, into a module; none may be missing or left over."""
    module.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    return module


def assert_gradients_agree(ours: Named, module: torch.nn.Module) -> None:
    """Assert that the gradients, laid out as PyTorch's, are those that `module` collected."""
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
    """Assert that y, dx and the gradients of parameters agree, given the same weights.

    `theirs` runs as `call`, if that is not its forward method. Unless `padding_counts`, nothing
    reads what comes out at padding: there y is not compared and dy is 0.
    """
    load(theirs, as_torch(ours.parameters()))
    kept = np.ones(1) if mask is None or padding_counts else mask[..., None].astype("float64")
    x_torch = leaf(x)
    y_torch = (theirs if call is None else call)(x_torch)
    y_torch.backward(torch.tensor(dy * kept))

    gradients = nf.Gradients(ours)
    y, cache = ours.forward(x, nf.Context(mask=mask))
    dx = ours.backward(dy * kept, cache, gradients)
    assert_close(y * kept, y_torch * torch.tensor(kept))
    assert_close(dx, x_torch.grad, "dx")
    assert_gradients_agree(as_torch(gradients), theirs)
