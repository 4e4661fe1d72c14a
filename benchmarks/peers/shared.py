"""What all of PyTorch's models share: npformer's weights, positions, devices, steps."""

import torch
from torch import nn

from benchmarks import workloads
from benchmarks.timing import significant, timed

OPTIONS = {"fused": {"fused": True}, "foreach": {"foreach": True}}
"""PyTorch's two ways to compute Adam."""


def copy(tensor, array):
    """Copy an array into a parameter."""
    with torch.no_grad():
        tensor.copy_(torch.from_numpy(array))


def fill(linear, named, *names):
    """Copy npformer's weights (in, out) and biases into a Linear; several go side by side."""
    fill_pairs(linear.weight, linear.bias, [pair(named, name) for name in names])


def fill_pairs(weight, bias, pairs):
    """Copy pairs of a weight (in, out) and a bias, side by side."""
    with torch.no_grad():
        weight.copy_(torch.cat([torch.from_numpy(w.T) for w, _ in pairs]))
        bias.copy_(torch.cat([torch.from_numpy(b) for _, b in pairs]))


def pair(named, name):
    """Return weight and bias of one of npformer's linear maps."""
    return named[f"{name}.weight"], named[f"{name}.bias"]


def fill_norm(norm, named, name):
    """Copy a layer norm's scale and shift."""
    copy(norm.weight, named[f"{name}.gamma"])
    copy(norm.bias, named[f"{name}.beta"])


def projections(prefix):
    """Return the names of the maps to queries, keys and values."""
    return [f"{prefix}{name}" for name in ("query", "key", "value")]


def fill_attention(attention, named, prefix):
    """Copy npformer's attention into nn.MultiheadAttention."""
    pairs = [pair(named, name) for name in projections(prefix)]
    fill_pairs(attention.in_proj_weight, attention.in_proj_bias, pairs)
    fill(attention.out_proj, named, f"{prefix}output")


def fill_layer(layer, named, prefix):
    """Copy npformer's block into a TransformerEncoderLayer or TransformerDecoderLayer."""
    fill_attention(layer.self_attn, named, f"{prefix}mixer.")
    norms = [f"{prefix}mixer_norm", f"{prefix}feed_forward_norm"]
    if hasattr(layer, "multihead_attn"):
        fill_attention(layer.multihead_attn, named, f"{prefix}cross_attention.")
        norms.insert(1, f"{prefix}cross_attention_norm")
    for i, name in enumerate(norms, start=1):
        fill_norm(getattr(layer, f"norm{i}"), named, name)
    fill(layer.linear1, named, f"{prefix}feed_forward.expand")
    fill(layer.linear2, named, f"{prefix}feed_forward.contract")


def dropout(rate):
    """Return dropout, or the identity if nothing is dropped."""
    return nn.Dropout(rate) if rate else nn.Identity()


def heads(x, n):
    """(batch, length, features) -> (batch, heads, length, features / heads)."""
    return x.unflatten(-1, (n, -1)).transpose(1, 2)


def merged(x):
    """(batch, heads, length, d_head) -> (batch, length, d_model)."""
    return x.transpose(1, 2).flatten(2)


def sinusoids(length, d_model):
    """Return the table of positions of Vaswani et al. (2017)."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position / 10000.0 ** (even / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


class Device:
    """Where models are, how exact their products are, and when the device has done its work."""

    def __init__(self, name="cpu", precision="float32"):
        torch.set_num_threads(workloads.THREADS)
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"  # for convolutions
        self.name = name

    def wait(self):
        """Return when everything that was launched has been done."""
        if self.name != "cpu":
            torch.cuda.synchronize()

    def products(self, size=2048, tries=8):
        """Return the best rate of float32 matrix products, in GFLOP/s."""
        A, B = torch.rand(2, size, size, device=self.name)
        return significant(2e-9 * size**3 / min(self.timed(lambda: A @ B, 1) for _ in range(tries)))

    def timed(self, step, n):
        """Return the seconds per step, over n steps."""
        return timed(step, n, self.wait)
