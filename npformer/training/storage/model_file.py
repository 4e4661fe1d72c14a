"""A safetensors file with a description in its header: how models and checkpoints are stored.

The metadata hold the description as JSON under "npformer", and two checksums. ``data_sha256`` is
that of all bytes after the header. ``header_sha256`` is that of the bytes up to there, its own
digits taken as zeros, and so covers the description, the table of tensors and the other checksum:
a description can be trusted before any tensor is read. Checksums find damage; they do not say who
wrote a file.
"""

import json
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from npformer.training.storage.files import write_whole

FORMAT = 1

LONGEST_TEXT = 50_000_000
"""Letters of a description: half of what safetensors reads as a header; the rest is for its table
of tensors."""

HEADER_SUM, DATA_SUM = "header_sha256", "data_sha256"
_NO_SUM = "0" * 64


class CheckpointError(ValueError):
    """A file from which npformer cannot load a model.

    Attributes
    ----------
    unregistered : tuple of str
        What the file needs and no plugin has registered, such as "the mixer 'mean'".
    """

    unregistered: tuple[str, ...] = ()

    def __init__(self, message: str) -> None:
        # A file's content may be in it: it can neither make it long nor control a terminal.
        if len(message) > 2000:
            message = f"{message[:1200]} [...] {message[-600:]}"
        letters = (c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in message)
        super().__init__("".join(letters))


class CheckpointWarning(UserWarning):
    """A file was loaded whose content is doubtful."""


def write_model_file(
    path: Path, description: Mapping[str, Any], tensors: dict[str, np.ndarray]
) -> None:
    """Write a complete file or none; what could not be read back raises ValueError."""
    from safetensors.numpy import save as to_bytes

    text = json.dumps({**description, "format": FORMAT})
    strict_json(text)
    if len(json.dumps(text)) > LONGEST_TEXT:
        raise ValueError(
            f"the description of {path} has {len(text):,} letters; expected at most "
            f"{LONGEST_TEXT:,} with quotes doubled. Shorten the notes"
        )
    # In the same order as in the file: safetensors takes an array's bytes as they are in memory.
    tensors = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    whole = memoryview(to_bytes(tensors))
    begin = 8 + int.from_bytes(whole[:8], "little")
    table, data = json.loads(bytes(whole[8:begin])), whole[begin:]
    metadata = {DATA_SUM: _sha256(data), HEADER_SUM: _NO_SUM, "npformer": text}
    # Written here, because safetensors would put the metadata in another order each time.
    entries = json.dumps({"__metadata__": metadata, **table}, separators=(",", ":")).encode()
    entries += b" " * (-len(entries) % 8)
    header = len(entries).to_bytes(8, "little") + entries
    header = _with_sum(header, _NO_SUM, _sha256(header))
    write_whole(path, header, data)


def read_model_file(
    path: Path, *, force: bool = False
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a file's description and tensors.

    With `force`, a wrong checksum is a `CheckpointWarning` and not a `CheckpointError`.
    """
    from safetensors.numpy import load as from_bytes

    with _open(path) as file:
        description, data_sum, damage = _read_description(path, file, force)
        begin = file.tell()
        file.seek(0)
        whole = file.read()
    if data_sum and data_sum != _sha256(memoryview(whole)[begin:]):
        damage.append(_refused(path, "its tensors do not match their checksum", force))
    with _whole(path):
        tensors = dict(sorted(from_bytes(whole).items()))  # whose order differs each time
    if damage:
        words = f"{path}: {' and '.join(damage)}; it was loaded anyway"
        warnings.warn(words, CheckpointWarning, stacklevel=3)
    return description, tensors


def read_description(path: Path, *, force: bool = False) -> dict[str, Any]:
    """Return a file's description, checked as by `read_model_file`, without its tensors."""
    with _open(path) as file:
        return _read_description(path, file, force)[0]


def check_keys(path: Path, description: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse a description with a key that this version does not know."""
    if unknown := sorted(set(description) - {"format", *known}):
        raise CheckpointError(
            f"{path}: its description has {', '.join(unknown)}, which this version of npformer "
            "does not know; it was written by a newer one. Update npformer"
        )


def _open(path: Path) -> IO[bytes]:
    if path.is_dir():
        raise CheckpointError(
            f"{path} is a folder; expected a file, such as model.safetensors in it"
        )
    if not path.is_file():
        if path.exists():  # reading a pipe or a device could wait forever
            raise CheckpointError(f"{path} is not a regular file; expected one that npformer wrote")
        raise FileNotFoundError(f"there is no file {path}; expected one that npformer.save wrote")
    return path.open("rb", buffering=0)  # a buffer would copy what is read at once


def _read_description(
    path: Path, file: IO[bytes], force: bool
) -> tuple[dict[str, Any], str, list[str]]:
    """Return the description, the checksum of the tensors and, with `force`, what is damaged."""
    from safetensors import safe_open

    with _whole(path), safe_open(path, "numpy") as opened:
        metadata = opened.metadata() or {}
    if not metadata.keys() & {"npformer", HEADER_SUM}:
        raise CheckpointError(
            f"{path} is a safetensors file of another program: it has no npformer "
            "configuration. Load its tensors with safetensors.numpy.load_file and copy "
            "them into model.parameters()"
        )
    length = file.read(8)
    header = length + file.read(int.from_bytes(length, "little"))
    damage = []
    if not {HEADER_SUM, DATA_SUM} <= set(metadata):
        damage.append(_refused(path, "a checksum is missing", force))
    elif not _header_sum_fits(header, metadata[HEADER_SUM]):
        damage.append(_refused(path, "its header does not match its checksum", force))
    try:
        description = strict_json(metadata["npformer"])
        version = description["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path}: its npformer configuration is damaged ({error}). Copy or save it again"
        ) from error
    if type(version) is not int or version != FORMAT:
        raise CheckpointError(
            f"{path} has format {version!r}; this npformer reads format {FORMAT}. Update npformer"
        )
    check_keys(path, metadata, ("npformer", HEADER_SUM, DATA_SUM))
    return description, metadata.get(DATA_SUM, ""), damage


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Turn errors of safetensors, and of NumPy about unknown dtypes or shapes, into ours."""
    from safetensors import SafetensorError

    try:
        yield
    except (SafetensorError, KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path} ({path.stat().st_size:,} bytes) is not a whole safetensors file: it is "
            f"damaged, cut short or of another kind ({error}). Copy or save it again"
        ) from error


def strict_json(text: str) -> Any:
    """Return what JSON says; a ValueError says what is wrong, including a name that is repeated."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} comes twice")
        found[name] = value
    return found


def _header_sum_fits(header: bytes, stated: str) -> bool:
    return _sha256(_with_sum(header, stated, _NO_SUM)) == stated


def _with_sum(header: bytes, old: str, new: str) -> bytes:
    # These bytes occur nowhere else: inside a JSON text each quote has a backslash before it.
    return header.replace(f'"{HEADER_SUM}":"{old}"'.encode(), f'"{HEADER_SUM}":"{new}"'.encode())


def _sha256(data: Any) -> str:
    from hashlib import sha256

    return sha256(data).hexdigest()


def _refused(path: Path, damage: str, force: bool) -> str:
    if force:
        return damage
    raise CheckpointError(
        f"{path} is damaged: {damage}, so it changed after it was saved. Copy or save it again. To "
        "load it anyway: nf.load(path, force=True), or --force on the command line"
    )
