"""The foundation: arrays of NumPy or CuPy, parameters, gradients, layers, contexts."""

from npformer.core import checks, constants, generators, initializers
from npformer.core.arrays import (
    add_at,
    array_module,
    asarray,
    backend_of,
    backends,
    cores,
    erfcx,
    fft_module,
    get_backend,
    is_array,
    is_host_array,
    is_numpy_generator,
    like,
    to_numpy,
)
from npformer.core.backend import Array, Backend, BackendUnavailableError, Feed, Link, Module
from npformer.core.context import Context
from npformer.core.generators import Seed, part_generator, step_key
from npformer.core.gradients import Gradients
from npformer.core.initializers import INITIALIZERS
from npformer.core.inputs import TwoInputLayer
from npformer.core.layer import Layer
from npformer.core.out_of_memory import (
    BatchTooLargeError,
    enough_memory,
    guard_computation,
)
from npformer.core.padding import Padding, check_ends_in_padding
from npformer.core.parameters import FlatBuffer, Parameter, Parameters, value_of
from npformer.core.precision import PRECISIONS, precision, use_precision
from npformer.core.support.builders import same_definition
from npformer.core.support.missing_names import lead_to_names
from npformer.core.support.registry import PLUGIN_FILE, Registry
from npformer.core.support.specs import parse_spec, split_names
from npformer.core.support.wording import a_type, describe

__all__ = [
    "INITIALIZERS",
    "PLUGIN_FILE",
    "PRECISIONS",
    "Array",
    "Backend",
    "BackendUnavailableError",
    "BatchTooLargeError",
    "Context",
    "Feed",
    "FlatBuffer",
    "Gradients",
    "Layer",
    "Link",
    "Module",
    "Padding",
    "Parameter",
    "Parameters",
    "Registry",
    "Seed",
    "TwoInputLayer",
    "a_type",
    "add_at",
    "array_module",
    "asarray",
    "backend_of",
    "backends",
    "check_ends_in_padding",
    "checks",
    "constants",
    "cores",
    "describe",
    "enough_memory",
    "erfcx",
    "fft_module",
    "generators",
    "get_backend",
    "guard_computation",
    "initializers",
    "is_array",
    "is_host_array",
    "is_numpy_generator",
    "like",
    "parse_spec",
    "part_generator",
    "precision",
    "same_definition",
    "split_names",
    "step_key",
    "to_numpy",
    "use_precision",
    "value_of",
]

lead_to_names(__name__)
