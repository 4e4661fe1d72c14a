"""The state of a random generator as plain values, ready for JSON, and back."""

from __future__ import annotations  # np.random is imported when it is first needed

import json
from collections.abc import Mapping
from operator import methodcaller
from typing import Any

import numpy as np

from npformer.core import checks, is_numpy_generator

BITS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
"""NumPy's bit generators."""

MOST_CHILDREN = 1 << 16


def generator_state(generator: Any) -> dict[str, Any]:
    """Return everything that decides what a generator will draw, and what `spawn` will return.

    `bit_generator.state` alone does not count the children that were spawned: the next ones would
    repeat those that exist.
    """
    if not is_numpy_generator(generator):
        return {"device": generator.state()}
    bits = generator.bit_generator
    sequence = getattr(bits, "seed_seq", None)
    children = sequence.state if isinstance(sequence, np.random.SeedSequence) else None
    values = {"state": bits.state, "children": children}
    # Lists in place of arrays, and Python's numbers in place of NumPy's.
    plain: dict[str, Any] = json.loads(json.dumps(values, default=methodcaller("tolist")))
    return plain


def restore_generator(generator: Any, values: Mapping[str, Any]) -> None:
    """Give a generator a state from `generator_state`, in place.

    Raises ValueError if the state is that of another kind of generator.
    """
    if ("device" in values) == is_numpy_generator(generator):
        raise ValueError(
            "dropout's masks were drawn on the device before and now on the host, or the other way "
            "round; expected the same. Pass the same masks= and backend"
        )
    if "device" in values:
        generator.restore(values["device"])
        return
    bits = generator.bit_generator
    saved = values["state"]["bit_generator"]
    if saved != bits.state["bit_generator"]:
        raise ValueError(
            f"seed is a generator with {bits.state['bit_generator']} bits; expected {saved}, with "
            "which the training began"
        )
    bits.state = values["state"]
    if (children := values["children"]) is not None:
        missing = children["n_children_spawned"] - bits.seed_seq.n_children_spawned
        if missing > 0:
            bits.seed_seq.spawn(missing)  # the only way to count them


def new_generator(values: Mapping[str, Any]) -> np.random.Generator:
    """Return a new generator with a state from `generator_state`."""
    children, kind = values["children"], values["state"]["bit_generator"]
    if kind not in BITS:
        raise ValueError(f"a generator has {kind!r} bits; expected one of {', '.join(BITS)}")
    if children is not None:  # `restore_generator` makes them all
        checks.whole("n_children_spawned", children["n_children_spawned"], 0, MOST_CHILDREN)
    seed = None if children is None else np.random.SeedSequence(**children)
    bits = getattr(np.random, kind)(seed)
    bits.state = values["state"]
    return np.random.Generator(bits)
