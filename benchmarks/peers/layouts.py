"""PyTorch's side of `questions --only layouts`: one map, as Linear and as a convolution."""

import torch
from torch.nn.functional import conv1d, linear


def maps(x, x_first, W):
    """Return the ways to compute x W, by name."""
    torch.set_num_threads(1)
    x, x_first, W = (torch.from_numpy(array) for array in (x, x_first, W.T.copy()))
    ways = {
        "PyTorch, Linear": lambda: linear(x, W),
        "PyTorch, Conv1d": lambda: conv1d(x_first, W[:, :, None]),
        "PyTorch, Conv1d, from and to last": lambda: (
            conv1d(x.transpose(1, 2), W[:, :, None]).transpose(1, 2).contiguous()
        ),
    }
    return {name: torch.inference_mode()(way) for name, way in ways.items()}
