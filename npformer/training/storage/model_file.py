"""A safetensors file with a description in its header: how models and checkpoints are stored.

The metadata hold the description as JSON under "npformer", and under "npformer_sha256" the checksum
of the whole file, its own digits taken as zeros. It finds damage; it does not say who wrote a file.
"""

import json
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from npformer.data.formats import check_is_no_pointer
from npformer.training.storage.files import write_whole

FORMAT = 1

LONGEST_TEXT = 50_000_000
"""Letters of a description: half of what safetensors reads as a header; the rest is for its table
of tensors."""

LONGEST_HEADER = 100_000_000
"""Bytes of the longest header that safetensors reads."""

SUM = "npformer_sha256"
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
    path: Path,
    description: Mapping[str, Any],
    tensors: dict[str, np.ndarray],
    *,
    overwrite: bool = True,
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
    file_bytes = memoryview(to_bytes(tensors))
    begin = 8 + int.from_bytes(file_bytes[:8], "little")
    table, data = json.loads(bytes(file_bytes[8:begin])), file_bytes[begin:]
    metadata = {SUM: _NO_SUM, "npformer": text}
    # Written here, because safetensors would put the metadata in another order each time.
    entries = json.dumps({"__metadata__": metadata, **table}, separators=(",", ":")).encode()
    entries += b" " * (-len(entries) % 8)
    header = len(entries).to_bytes(8, "little") + entries
    write_whole(
        path, _add_checksum(header, _NO_SUM, _sha256(header, data)), data, overwrite=overwrite
    )


def read_model_file(
    path: Path, *, force: bool = False
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a file's description and tensors.

    With `force`, a wrong checksum is a `CheckpointWarning` and not a `CheckpointError`.
    """
    from safetensors.numpy import load as from_bytes

    file_bytes, description, damage = _read(path, force)
    with _intact(path):
        tensors = dict(sorted(from_bytes(file_bytes).items()))  # whose order differs each time
    if damage:
        warnings.warn(f"{path}: {damage}; it was loaded anyway", CheckpointWarning, stacklevel=3)
    return description, tensors


def read_description(path: Path, *, force: bool = False) -> dict[str, Any]:
    """Return a file's description, checked as by `read_model_file`, without its tensors."""
    return _read(path, force)[1]


def is_npformers(path: Path, kind: str = "") -> bool:
    """Return whether npformer wrote a file, be it whole or not; `kind` is the class it is to hold.

    Only the header is read.
    """
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            n_bytes = int.from_bytes(file.read(8), "little")
            if not 0 < n_bytes <= LONGEST_HEADER:
                return False
            metadata = json.loads(file.read(n_bytes))["__metadata__"]
        description = json.loads(metadata["npformer"])
        return isinstance(description, dict) and kind in ("", description.get("class"))
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
        return False


def check_keys(path: Path, description: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse a description with a key that this version does not know."""
    if unknown := sorted(set(description) - {"format", *known}):
        raise CheckpointError(
            f"{path}: its description has {', '.join(unknown)}, which this version of npformer "
            "does not know; it was written by a newer one. Update npformer"
        )


def _read(path: Path, force: bool) -> tuple[bytes, dict[str, Any], str]:
    """Return a file's content, its description and, with `force`, how it is damaged."""
    from safetensors import safe_open

    if path.is_dir():
        raise CheckpointError(
            f"{path} is a folder; expected a file, such as model.safetensors in it"
        )
    if not path.is_file():
        if path.exists():  # reading a pipe or a device could wait forever
            raise CheckpointError(f"{path} is not a regular file; expected one that npformer wrote")
        raise FileNotFoundError(f"there is no file {path}; expected one that npformer.save wrote")
    check_is_no_pointer(path)
    with _intact(path), safe_open(path, "numpy") as opened:
        metadata = opened.metadata() or {}
    if not metadata.keys() & {"npformer", SUM}:
        raise CheckpointError(
            f"{path} is a safetensors file of another program: it has no npformer "
            "configuration. Load its tensors with safetensors.numpy.load_file and copy "
            "them into model.parameters()"
        )
    file_bytes = path.read_bytes()
    damage = _damage(file_bytes, metadata.get(SUM))
    if damage and not force:
        raise CheckpointError(
            f"{path} is damaged: {damage}, so it changed after it was saved. Copy or save it "
            "again. To load it anyway: nf.load(path, force=True), or --force on the command line"
        )
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
    check_keys(path, metadata, ("npformer", SUM))
    return file_bytes, description, damage


@contextmanager
def _intact(path: Path) -> Iterator[None]:
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
    pairs_by_name: dict[str, Any] = {}
    for name, value in pairs:
        if name in pairs_by_name:
            raise ValueError(f"{name!r} comes twice")
        pairs_by_name[name] = value
    return pairs_by_name


def _damage(whole: bytes, stated: str | None) -> str:
    """Return what the checksum says against a file's content; "" if it fits."""
    if stated is None:
        return "its checksum is missing"
    begin = 8 + int.from_bytes(whole[:8], "little")
    header = _add_checksum(whole[:begin], stated, _NO_SUM)
    fits = _sha256(header, memoryview(whole)[begin:]) == stated
    return "" if fits else "it does not match its checksum"


def _add_checksum(header: bytes, old: str, new: str) -> bytes:
    # These bytes occur nowhere else: inside a JSON text each quote has a backslash before it.
    return header.replace(f'"{SUM}":"{old}"'.encode(), f'"{SUM}":"{new}"'.encode())


def _sha256(*chunks: bytes | memoryview) -> str:
    from hashlib import sha256

    digest = sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
