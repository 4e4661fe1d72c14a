"""What sentence-transformers adds to a folder: how a text becomes one vector."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import Array, Context, checks, to_numpy
from npformer.interop.folder import read_json, read_json_if_there
from npformer.layers import FirstToken, MaxPooling, MeanPooling

MODULES, LENGTH, POOLING = "modules.json", "sentence_bert_config.json", "1_Pooling"


WAYS = {"mean": MeanPooling(), "first": FirstToken(), "max": MaxPooling()}
"""From one vector per token, (batch, length, d_model), to one vector per text."""

POOLINGS = {"mean": "mean_tokens", "first": "cls_token", "max": "max_tokens"}
"""{our name: theirs} of these ways."""

THEIRS = {"mean": "mean", "cls": "first", "max": "max"}
"""{their name: ours} in newer files."""


@dataclass(frozen=True)
class SentenceSettings:
    """How a text becomes one vector.

    Attributes
    ----------
    pooling : {"mean", "first", "max"}
    normalize : bool
        Whether vectors are scaled to norm 1.
    max_len : int or None
        Tokens of the longest text, special ones included.
    lower : bool
        Whether texts are converted to lower case before they reach the tokenizer.
    """

    pooling: str = "mean"
    normalize: bool = False
    max_len: int | None = None
    lower: bool = False

    def vectors(self, hidden: Array, mask: Array | None) -> np.ndarray:
        """Return one vector for each text, (batch, d_model), from those of its tokens."""
        found, _ = WAYS[self.pooling].forward(hidden, Context(mask=mask))
        pooled: np.ndarray = to_numpy(found)
        if not self.normalize:
            return pooled
        norms = np.sqrt(np.einsum("nd,nd->n", pooled, pooled))[:, None]
        unit: np.ndarray = pooled / np.maximum(norms, 1e-12)
        return unit


def transformer_folder(folder: Path) -> Path:
    """Return where the encoder is: the folder itself, or one in it that modules.json names."""
    for module in _modules(folder):
        if _kind(module) == "Transformer":
            return folder / str(module.get("path", ""))
    return folder


def read_sentence_settings(folder: Path) -> SentenceSettings | None:
    """Return the settings of a sentence encoder's folder; None for another folder.

    Raises ValueError if it has a module that npformer does not have.
    """
    modules = _modules(folder)
    length = read_json_if_there(transformer_folder(folder) / LENGTH)
    known = ("Transformer", "Pooling", "Normalize", "Dense")
    if foreign := [_kind(module) for module in modules if _kind(module) not in known]:
        raise ValueError(
            f"{folder / MODULES} has a {foreign[0]}; expected {', '.join(known)}, the modules "
            "that npformer has"
        )
    paths = {_kind(module): str(module.get("path", "")) for module in modules}
    place = folder / paths.get("Pooling", POOLING) / "config.json"
    if not (modules or length or place.is_file()):
        return None
    max_len = length.get("max_seq_length")
    return SentenceSettings(
        pooling=_pooling(place) if place.is_file() else "mean",
        normalize="Normalize" in paths or not modules,
        max_len=None
        if max_len is None
        else checks.positive(f"max_seq_length in {LENGTH}", max_len),
        lower=bool(length.get("do_lower_case", False)),
    )


def dense_path(folder: Path) -> Path | None:
    """Return the folder of the dense layer that ends modules.json; None without one."""
    modules = _modules(folder)
    places = [module for module in modules if _kind(module) == "Dense"]
    if places and (len(places) > 1 or modules[-1] is not places[0]):
        raise ValueError(
            f"{folder / MODULES} has a Dense that is not the last module; expected one at the end, "
            "as a classifier"
        )
    return folder / str(places[0].get("path", "")) if places else None


def sentence_files(
    settings: SentenceSettings, d_model: int, *, dense: bool = False
) -> dict[str, Any]:
    """Return {name: content} of the files with these settings; `dense`: a dense layer follows."""
    last = ["Dense"] if dense else ["Normalize"] if settings.normalize else []
    kinds = ["Transformer", "Pooling", *last]
    paths = ["", POOLING, *(f"2_{kind}" for kind in last)]
    modes = {
        f"pooling_mode_{theirs}": ours == settings.pooling for ours, theirs in POOLINGS.items()
    }
    return {
        MODULES: [
            {
                "idx": i,
                "name": str(i),
                "path": path,
                "type": f"sentence_transformers.models.{kind}",
            }
            for i, (kind, path) in enumerate(zip(kinds, paths, strict=True))
        ],
        LENGTH: {"max_seq_length": settings.max_len, "do_lower_case": settings.lower},
        f"{POOLING}/config.json": {"word_embedding_dimension": d_model, **modes},
    }


def _modules(folder: Path) -> list[dict[str, Any]]:
    """Return the modules of a folder; none if there is no modules.json."""
    if not (folder / MODULES).is_file():
        return []
    content = read_json(folder / MODULES, list)
    if not all(isinstance(module, dict) for module in content):
        raise ValueError(f"{folder / MODULES} has an entry without names; copy it again")
    return content  # type: ignore[no-any-return]


def _kind(module: dict[str, Any]) -> str:
    """Return the class of a module, whatever its package."""
    return str(module.get("type", "")).rpartition(".")[2]


def _pooling(place: Path) -> str:
    settings = read_json(place)
    named = settings.get("pooling_mode")
    if isinstance(named, str):
        found = [THEIRS.get(named, named)]
    else:
        on = [
            key for key, value in settings.items() if key[:13] == "pooling_mode_" and value is True
        ]
        ours = {f"pooling_mode_{theirs}": ours for ours, theirs in POOLINGS.items()}
        found = [ours.get(key, key) for key in on]
    if len(found) != 1 or found[0] not in POOLINGS:
        raise ValueError(
            f"{place} asks for {' and '.join(found) or 'no pooling'}; expected one of "
            f"{', '.join(f'pooling_mode_{theirs}' for theirs in POOLINGS.values())}"
        )
    return found[0]
