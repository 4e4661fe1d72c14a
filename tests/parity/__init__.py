"""npformer beside PyTorch, both in float64."""
