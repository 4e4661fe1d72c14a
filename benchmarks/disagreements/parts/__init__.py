"""All parts, in the order of the page."""

from benchmarks.disagreements.parts import attention, layers, optimizers
from benchmarks.disagreements.question import Part

PARTS: list[Part] = [*layers.PARTS, *attention.PARTS, *optimizers.PARTS]
