"""PyTorch's side of each comparison; nothing else in `benchmarks` writes a model of PyTorch's."""
