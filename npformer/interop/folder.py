"""The files of a folder in Hugging Face's layout: configuration and weights."""

import json
import os
from collections.abc import Iterable, Mapping, Set
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.data.formats import check_is_no_pointer
from npformer.data.json_file import read_json
from npformer.interop.architecture import Arrays, Settings
from npformer.training.storage.files import check_writable, write_whole

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"

OTHER_WEIGHTS = (
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "tf_model.h5",
    "flax_model.msgpack",
    "model.ckpt.index",
    "model.onnx",
)

SENTENCES = "modules.json", "sentence_bert_config.json"
"""Files whose presence makes an encoder a sentence encoder."""

FLOATS = ("F64", "F32", "F16", "BF16")
"""Types of numbers that weights may have in a file."""


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Check that a path is a folder, and return it."""
    path = checks.path("folder", folder)
    if path.is_file():
        raise NotADirectoryError(
            f"{path} is a file; expected a folder with {CONFIG} and {WEIGHTS}. A file that "
            "npformer wrote is read by npformer.load"
        )
    if not path.is_dir():
        name = str(folder)
        raise FileNotFoundError(
            f"there is no folder {name}; expected one with {CONFIG} and {WEIGHTS}. Nothing is "
            "downloaded. If this is a model's name on the Hugging Face Hub, download it first, "
            f"with: hf download {name} --local-dir {name.rpartition('/')[2] or 'folder'}. Then "
            "pass that folder"
        )
    return path


def read_config(folder: Path) -> dict[str, Any]:
    """Return the content of config.json."""
    if (folder / CONFIG).is_file():
        config: dict[str, Any] = read_json(folder / CONFIG)
        checks.instance(f"architectures in {CONFIG}", config.get("architectures") or [], list)
        _check_not_quantized(folder, config)
        return config
    versions = sorted((folder / "snapshots").glob(f"*/{CONFIG}"))
    if versions:
        raise FileNotFoundError(
            f"{folder} is a model in the cache of huggingface_hub, which holds several versions; "
            f"expected the folder of one: {versions[-1].parent}"
        )
    if (folder / "adapter_config.json").is_file():
        raise FileNotFoundError(
            f"{folder} holds an adapter, not a model; expected {CONFIG} and {WEIGHTS}. Merge it "
            "first, with peft: model.merge_and_unload().save_pretrained(folder)"
        )
    raise FileNotFoundError(
        f"{folder} has no {CONFIG}; expected a folder as transformers writes it, with {CONFIG} and "
        f"{WEIGHTS}"
    )


def _check_not_quantized(folder: Path, config: Settings) -> None:
    """Raise ValueError if config.json says that the weights are quantized."""
    settings = config.get("quantization_config")
    if settings is None:
        return
    checks.instance(f"quantization_config in {CONFIG}", settings, Mapping)
    method = settings.get("quant_method") or "a method that it does not name"
    raise ValueError(
        f"{folder / CONFIG} says that the weights are quantized by {method} "
        "(quantization_config), which npformer does not read; expected weights that are numbers "
        f"of the types {', '.join(FLOATS)}. Take the folder of the model before it was quantized"
    )


def check_floats(arrays: Arrays, constants: tuple[str, ...]) -> None:
    """Raise ValueError for weights that are integers; the names of constants end in `constants`."""
    for name, array in arrays.items():
        if array.dtype.kind != "f" and not name.endswith(constants):
            raise ValueError(
                f"{name} holds {array.dtype}, as quantized weights do, which npformer does not "
                f"read; expected numbers of the types {', '.join(FLOATS)}. Take the folder of the "
                "model before it was quantized"
            )


def read_weights(folder: Path, dtype: str | None, hf_config: Settings) -> Arrays:
    """Return the arrays of model.safetensors, or of its parts, in one dtype.

    Without `dtype` they are float64 if all of them are float64 in the file, else float32.
    """
    arrays: Arrays = {}
    files, indexed_names = _files(folder, hf_config)
    for file in files:
        arrays |= _read(file)
    differences = indexed_names ^ arrays.keys()
    if indexed_names and differences:
        raise ValueError(
            f"{folder}: {INDEX} and the files that it names differ about {min(differences)}; "
            "expected the same arrays in both. Copy the folder again"
        )
    if dtype is None:
        dtype = _default_dtype(arrays)
    with np.errstate(over="ignore"):  # a number that becomes infinite is an error below
        for name, array in arrays.items():
            if array.dtype.kind == "f":
                arrays[name] = array.astype(dtype, copy=False)
    _check_names_and_numbers(folder, arrays, dtype)
    return arrays


def _default_dtype(arrays: Arrays) -> str:
    """Return float64 if all floats are float64, else float32."""
    dtypes = {array.dtype.name for array in arrays.values() if array.dtype.kind == "f"}
    return "float64" if dtypes == {"float64"} else "float32"


def _check_names_and_numbers(folder: Path, arrays: Arrays, dtype: str) -> None:
    """Raise ValueError for an array whose name or numbers cannot be those of weights."""
    for name, array in arrays.items():
        if len(name) > 255 or not name.isprintable():
            raise ValueError(f"{folder} has an array named {name[:40]!r}; expected letters alone")
        if not np.isfinite(array).all():
            raise ValueError(
                f"{folder} has NaN or infinity in {name}, as {dtype}; expected finite numbers. Did "
                "its training diverge? Take an earlier state of it"
            )


def path_in(folder: Path, path: object, where: Path) -> Path:
    """Return the path that file `where` names, relative to a folder; it must be inside."""
    if not isinstance(path, str) or not _is_inside(path):
        raise ValueError(f"{where} names the path {path!r}; expected one in its folder")
    return folder / path


def _is_inside(path: str) -> bool:
    """Return whether a relative path stays inside its folder, on any system."""
    if len(path) > 255 or not path.isprintable():
        return False
    windows_path = PureWindowsPath(path)  # takes both "/" and "\\" as separators
    return not windows_path.anchor and ".." not in windows_path.parts


def _files(folder: Path, hf_config: Settings) -> tuple[Iterable[Path], Set[str]]:
    """Return the files of weights, and the names of their arrays if there is an index."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS], set()
    if (folder / INDEX).is_file():
        return _read_index(folder)
    other = next((name for name in OTHER_WEIGHTS if (folder / name).is_file()), None)
    if other is None:
        raise FileNotFoundError(
            f"{folder} has no weights; expected {WEIGHTS}, or {INDEX} and the parts that it names"
        )
    class_name = next(iter(hf_config.get("architectures") or ()), "AutoModel")
    raise ValueError(
        f"{folder} has its weights in {other}; expected {WEIGHTS}, because npformer reads "
        "safetensors only, which cannot run code. Convert them once, with transformers: "
        f"transformers.{class_name}.from_pretrained({str(folder)!r}).save_pretrained({str(folder)!r})"
    )


def _read_index(folder: Path) -> tuple[Iterable[Path], Set[str]]:
    """Return the files that an index names, and the names of the arrays in them."""
    index = folder / INDEX
    file_of_array = read_json(index).get("weight_map")
    if not isinstance(file_of_array, dict) or not file_of_array:
        raise ValueError(f"{index} has no weight_map; expected one. Copy it again")
    files = {path_in(folder, name, index): name for name in file_of_array.values()}
    for file, name in files.items():
        if not file.is_file():
            raise FileNotFoundError(
                f"{folder} has no {name}, which {INDEX} names; expected all parts. Copy the folder "
                "again"
            )
    return files, file_of_array.keys()


def _read(file: Path) -> Arrays:
    """Return the arrays of a safetensors file."""
    from safetensors import SafetensorError, safe_open

    check_is_no_pointer(file)
    try:
        with safe_open(str(file), framework="np") as tensors:
            dtypes = {name: tensors.get_slice(name).get_dtype() for name in list(tensors.keys())}
            arrays = {}
            for name, dtype in dtypes.items():
                if dtype not in FLOATS and not dtype.startswith(("I", "U", "BOOL")):
                    raise ValueError(
                        f"{file}: {name} has numbers of the type {dtype}; expected one of "
                        f"{', '.join(FLOATS)}. Quantized weights are not read: take the folder "
                        "of the model before it was quantized"
                    )
                if dtype != "BF16":
                    arrays[name] = tensors.get_tensor(name)
    except SafetensorError as error:
        raise ValueError(
            f"{file} is not a complete safetensors file: it is damaged, cut short or of another "
            f"type ({error}). Copy it again"
        ) from error
    if "BF16" in dtypes.values():
        arrays |= _read_bfloat16(file)
    return arrays


def _read_bfloat16(file: Path) -> Arrays:
    """Return the arrays in bfloat16, the upper half of a float32's bits, as float32."""
    from safetensors import deserialize

    arrays = {}
    tensors = deserialize(file.read_bytes())  # type: ignore[no-untyped-call]
    for name, tensor in tensors:
        if tensor["dtype"] == "BF16":
            upper_bits = np.frombuffer(tensor["data"], "<u2").astype("uint32")
            arrays[name] = (upper_bits << 16).view("float32").reshape(tensor["shape"])
    return arrays


def write_contents(folder: Path, contents: Mapping[str, Any], overwrite: bool) -> None:
    """Write files, {name: bytes, or content for JSON}; FileExistsError if one exists already."""
    existing = [name for name in contents if os.path.lexists(folder / name)]
    if existing:
        _check_replaceable(folder, contents, existing, overwrite)
    for name, content in contents.items():
        check_writable((folder / name).parent)
        if not isinstance(content, bytes):
            content = (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
        write_whole(folder / name, content, overwrite=overwrite)


def _check_replaceable(
    folder: Path, contents: Mapping[str, Any], existing: list[str], overwrite: bool
) -> None:
    """Raise FileExistsError if existing files may not be replaced, or an old one would remain."""
    if not overwrite:
        raise FileExistsError(
            f"{folder} has {', '.join(existing)} already; expected a new folder. To replace "
            "them, pass overwrite=True"
        )
    for name in SENTENCES:
        if (folder / name).exists() and name not in contents:
            raise FileExistsError(
                f"{folder} has {name} of the previous model, which would be read with the new one; "
                "expected none. Remove it, or name another folder"
            )
