"""All parts, in the order of the page."""

from benchmarks.disagreements.parts import (
    activations,
    attention,
    embeddings,
    layers,
    losses,
    onnx_operators,
    optimizers,
    positions,
    texts,
    transforms,
)
from benchmarks.disagreements.question import Part

PARTS: list[Part] = [
    *layers.PARTS,
    *activations.PARTS,
    *attention.PARTS,
    *positions.PARTS,
    *embeddings.PARTS,
    *losses.PARTS,
    *optimizers.PARTS,
    *transforms.PARTS,
    *texts.PARTS,
    *onnx_operators.PARTS,
]
