"""Ways to damage a model file, and ways in which one can lie.

Damage leaves the checksum as it was, or takes it out; a lie comes with a checksum that fits it.
Each takes a generator, the bytes of a file and those of another one, and returns the bytes of a
mutated file.
"""

import hashlib
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import safetensors.numpy

Mutation = Callable[[np.random.Generator, bytes, bytes], bytes]

SUM = "npformer_sha256"
NO_SUM = "0" * 64


# Taking files apart, and joining them with a checksum that fits -----------------------------------
def split_file(data: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Return the entries of the header, the description in it, and the bytes of the tensors."""
    begin = 8 + int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:begin])
    return entries, json.loads(entries["__metadata__"]["npformer"]), data[begin:]


def model_description(description: dict[str, Any]) -> dict[str, Any]:
    """Return the description of the model, also from that of a checkpoint."""
    of_model: dict[str, Any] = description.get("model", description)
    return of_model


def join_file(entries: Any, description: Any, tensors: bytes) -> bytes:
    """Return a file; texts are written as they are, and the checksum fits if there is one."""
    if isinstance(entries, dict) and "npformer" in entries.get("__metadata__", {}):
        description_text = description if isinstance(description, str) else json.dumps(description)
        metadata = entries["__metadata__"] | {"npformer": description_text}
        metadata |= {SUM: NO_SUM} if SUM in metadata else {}
        entries = entries | {"__metadata__": metadata}
    text = entries if isinstance(entries, str) else json.dumps(entries, separators=(",", ":"))
    header = struct.pack("<Q", len(text.encode())) + text.encode()
    digits = hashlib.sha256(header + tensors).hexdigest()
    return header.replace(f'"{SUM}":"{NO_SUM}"'.encode(), f'"{SUM}":"{digits}"'.encode()) + tensors


def sealed(tensors: dict[str, np.ndarray], description: Any) -> bytes:
    """Return a file of these tensors with a checksum that fits."""
    metadata = {"npformer": "{}", SUM: NO_SUM}
    entries, _, data = split_file(safetensors.numpy.save(tensors, metadata=metadata))
    return join_file(entries, description, data)


# Damage -------------------------------------------------------------------------------------------
def _two(rng: np.random.Generator, data: bytes) -> tuple[int, int]:
    """Return two places, often in the header."""
    end = len(data) if rng.random() < 0.5 else 8 + int.from_bytes(data[:8], "little")
    first, second = sorted(rng.integers(0, end, 2).tolist())
    return first, second + 1


def one_bit(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    place, _ = _two(rng, data)
    return data[:place] + bytes([data[place] ^ 1 << rng.integers(8)]) + data[place + 1 :]


def some_bytes(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    place, _ = _two(rng, data)
    new = rng.bytes(int(rng.integers(1, 17)))
    return data[:place] + new + data[place + len(new) :]


def a_letter(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """Replace a byte of the header by one that JSON has a use for."""
    place = int(rng.integers(8, 8 + int.from_bytes(data[:8], "little")))
    letters = b'0123456789-eE.,:"[]{} \\utfn'
    letter = letters[rng.integers(len(letters))]
    return data[:place] + bytes([letter]) + data[place + 1 :]


def cut_short(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    return data[: rng.integers(len(data))]


def inserted(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    place, _ = _two(rng, data)
    return data[:place] + rng.bytes(int(rng.integers(1, 65))) + data[place:]


def removed(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    begin, end = _two(rng, data)
    return data[:begin] + data[end:]


def zeroed(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    begin, end = _two(rng, data)
    return data[:begin] + bytes(end - begin) + data[end:]


def swapped(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    begin, end = _two(rng, data)
    half = (end - begin) // 2
    middle = data[begin + half : begin + 2 * half] + data[begin : begin + half]
    return data[:begin] + middle + data[begin + 2 * half :]


def repeated(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    begin, end = _two(rng, data)
    return data[:end] + data[begin:]


def begun_as_another(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    place = int(rng.integers(1, min(len(data), len(other))))
    return other[:place] + data[place:]


def header_of_another(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    begin, ends = (8 + int.from_bytes(content[:8], "little") for content in (other, data))
    return other[:begin] + data[ends:]


def another_length(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    lengths = [0, 1, 2, len(data) - 8, len(data), 10**8, 2**32, 2**63, 2**64 - 1]
    lengths += rng.integers(2 * len(data), size=9).tolist()
    return lengths[rng.integers(len(lengths))].to_bytes(8, "little") + data[8:]


def edited(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """Edit the description or the table of tensors, with a length that fits; the sums are old."""
    entries, description, tensors = split_file(data)
    if rng.random() < 0.5:
        _lie_somewhere(rng, description)
        entries["__metadata__"]["npformer"] = json.dumps(description)
    else:
        _lie_somewhere(rng, entries)
    text = json.dumps(entries, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + tensors


def without_checksum(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """Take out the checksum."""
    entries, description, tensors = split_file(data)
    del entries["__metadata__"][SUM]
    return join_file(entries, description, tensors)


# Lies ---------------------------------------------------------------------------------------------
NUMBERS = [0, 1, 2, 3, 7, -1, 64, 1000, 32768, 65536, 10**6, 10**9, 2**31, 2**63, 10**30, 10**400]
NUMBERS += [0.5, -0.0, 1e308, 1e-320, float("nan"), float("inf")]
DEEP: Any = []
for _ in range(400):
    DEEP = [DEEP]
VALUES = [None, True, False, "", "x", "\ud800", "\x1b[2J", "a" * 5000, [], {}, [[]], [1, 2], DEEP]
VALUES += [{"a": {"b": 1}}, ["attention"] * 2, ["attention"] * 5000, {"d_model": 8}]
SPECS = ["attention(", "attention(n_heads=2)", "linear(seed=1)", "identity()", "normal(std=1e308)"]
SPECS += ["normal(std=-1)", "normal(std=[1])", f"normal(std={'9' * 400})"]
SPECS += ["hartley(padding='zero')", f"normal(std={'(' * 300}1{')' * 300})"]
SPECS += ["gelu(approximate='tanh')", "relu(**{})", "mixture"]
SPECS += ["random_synthesizer", "dense_synthesizer", "factorized_random_synthesizer", "random"]
SPECS += [f"normal(std={'-' * 3000}1)", "zeros(std=1e999)", "tanh(\0)", "conv1d(ffn='linear')"]


def _value(rng: np.random.Generator, old: Any) -> Any:
    kind = rng.random()
    if (type(old) is int and kind < 0.7) or kind < 0.2:
        return NUMBERS[rng.integers(len(NUMBERS))]
    if isinstance(old, str) and kind < 0.8:
        return SPECS[rng.integers(len(SPECS))]
    return VALUES[rng.integers(len(VALUES))]


def _lie_somewhere(rng: np.random.Generator, tree: Any) -> None:
    """Change, remove or add an entry somewhere in nested dicts and lists."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        key = keys[rng.integers(len(keys))]
        below = tree[key]
        if not (isinstance(below, dict | list) and below and rng.random() < 0.9):
            break
        tree = below
    what = rng.random()
    if what < 0.15:
        del tree[key]
    elif what < 0.25 and isinstance(tree, dict):
        tree[f"{key}_" if rng.random() < 0.5 else "unheard_of"] = below
    else:
        tree[key] = _value(rng, below)


def size_that_lies(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """State other sizes: one, or several."""
    entries, description, tensors = split_file(data)
    for _ in range(rng.integers(1, 4)):
        settings = model_description(description)["config" if rng.random() < 0.8 else "arguments"]
        sizes = [key for key, value in settings.items() if type(value) is int]
        if sizes:
            settings[sizes[rng.integers(len(sizes))]] = NUMBERS[rng.integers(len(NUMBERS))]
    return join_file(entries, description, tensors)


def setting_that_lies(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    entries, description, tensors = split_file(data)
    settings = model_description(description)["config" if rng.random() < 0.7 else "arguments"]
    key = list(settings)[rng.integers(len(settings))]
    settings[key] = _value(rng, settings[key])
    return join_file(entries, description, tensors)


def description_that_lies(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    entries, description, tensors = split_file(data)
    _lie_somewhere(rng, description)
    return join_file(entries, description, tensors)


def text_that_lies(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """Write texts that are no description, or one with a key twice."""
    entries, description, tensors = split_file(data)
    text = json.dumps(description)
    deep = int(rng.choice([100, 1000, 100_000]))
    texts = ["", "{", "[]", "null", "3", '"a"', "[" * deep, '{"a":' * deep]
    texts += [f"{'[' * deep}{']' * deep}", text[:-1] + ',"format":1}']
    texts += [text[:-1] + ',"class":"Encoder"}', text + text, "1" * 5000]
    twice = text.replace('"n_layers": ', '"n_layers": 1, "n_layers": ')
    texts += [twice, text[1:], "\ufeff" + text]
    return join_file(entries, texts[rng.integers(len(texts))], tensors)


def table_that_lies(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """Give a tensor another dtype, shape, place or name."""
    entries, description, tensors = split_file(data)
    names = [name for name in entries if name != "__metadata__"]
    name = names[rng.integers(len(names))]
    entry = entries[name]
    kind = rng.integers(6)
    if kind == 0:
        entry["dtype"] = str(rng.choice(["F64", "F32", "I32", "BF16", "F8_E4M3", "BOOL", "", "X"]))
    elif kind == 1 and entry["shape"]:
        entry["shape"][rng.integers(len(entry["shape"]))] = _value(rng, 1)
    elif kind == 2:
        shapes = [[0, 2**62], [1] * 40, [0] * 70, entry["shape"][::-1], [*entry["shape"], 1], []]
        entry["shape"] = shapes[rng.integers(len(shapes))]
    elif kind == 3:
        entry["data_offsets"][rng.integers(2)] = _value(rng, 1)
    elif kind == 4:
        second = entries[names[rng.integers(len(names))]]
        places = second["data_offsets"], entry["data_offsets"]
        entry["data_offsets"], second["data_offsets"] = places
    else:
        entries["x" if rng.random() < 0.5 else names[0]] = entries.pop(name)
    return join_file(entries, description, tensors)


DAMAGE: list[Mutation] = [one_bit, some_bytes, a_letter, cut_short, inserted, removed, zeroed]
DAMAGE += [swapped, repeated, begun_as_another, header_of_another, another_length, edited]
DAMAGE += [without_checksum]
LIES: list[Mutation] = [size_that_lies, setting_that_lies, description_that_lies, text_that_lies]
LIES += [table_that_lies]
