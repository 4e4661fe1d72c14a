"""The ground: arrays of NumPy or CuPy, parameters, gradients, layers, and what a call brings."""

from npformer.core import checks, initializers
from npformer.core.arrays import (
    add_at,
    array_module,
    asarray,
    backend_of,
    backends,
    cores,
    draws_on_host,
    erf,
    fft_module,
    get_backend,
    is_array,
    like,
    to_numpy,
)
from npformer.core.backend import Array, Backend, BackendUnavailableError, Feed, Module
from npformer.core.context import Context
from npformer.core.gradients import Gradients
from npformer.core.initializers import (
    INITIALIZERS,
    Initializer,
    Seed,
    draw,
    generator,
    normal,
    ones,
)
from npformer.core.layer import KEPT, Layer
from npformer.core.out_of_memory import BatchTooLargeError, explained_memory_error
from npformer.core.padding import Padding, check_ends_in_padding
from npformer.core.parameters import ALIGNMENT, Layout, Parameter, Parameters
from npformer.core.pinned_feed import PinnedFeed
from npformer.core.precision import PRECISIONS, precision, use_precision
from npformer.core.registry import PLUGIN_FILE, Registry, names_in, parsed, same

__all__ = [
    "ALIGNMENT",
    "INITIALIZERS",
    "KEPT",
    "PLUGIN_FILE",
    "PRECISIONS",
    "Array",
    "Backend",
    "BackendUnavailableError",
    "BatchTooLargeError",
    "Context",
    "Feed",
    "Gradients",
    "Initializer",
    "Layer",
    "Layout",
    "Module",
    "Padding",
    "Parameter",
    "Parameters",
    "PinnedFeed",
    "Registry",
    "Seed",
    "add_at",
    "array_module",
    "asarray",
    "backend_of",
    "backends",
    "check_ends_in_padding",
    "checks",
    "cores",
    "draw",
    "draws_on_host",
    "erf",
    "explained_memory_error",
    "fft_module",
    "generator",
    "get_backend",
    "initializers",
    "is_array",
    "like",
    "names_in",
    "normal",
    "ones",
    "parsed",
    "precision",
    "same",
    "to_numpy",
    "use_precision",
]
