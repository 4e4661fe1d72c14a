"""What sentence-transformers adds to a folder: how a text becomes one vector."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import Array, Context, checks, to_numpy
from npformer.data.json_file import read_json, read_json_if_there
from npformer.interop.folder import path_in
from npformer.layers import FirstToken, MaxPooling, MeanPooling

MODULES, LENGTH, POOLING = "modules.json", "sentence_bert_config.json", "1_Pooling"
PROMPTS = "config_sentence_transformers.json"
KINDS = "bert", "roberta", "distilbert", "camembert", "xlm-roberta"
LENGTHS = [LENGTH.replace("bert", kind) for kind in KINDS]
"""The file of the longest text, in older folders named after the kind of model."""

FOREIGN = (
    "model_args",
    "tokenizer_args",
    "config_args",
    "tokenizer_name_or_path",
    "mask_prompt",
    "model_kwargs",
    "processor_kwargs",
    "config_kwargs",
)
"""Settings in that file which change numbers, and which npformer does not have."""

CHAINS = (
    ("Transformer",),
    ("Transformer", "Pooling"),
    ("Transformer", "Pooling", "Normalize"),
    ("Transformer", "Pooling", "Dense"),
)
"""The modules that npformer has, in order."""

WAYS = {"mean": MeanPooling(), "first": FirstToken(), "max": MaxPooling()}
"""From one vector per token, (batch, length, d_model), to one vector per text."""

POOLINGS = {
    "mean": "pooling_mode_mean_tokens",
    "first": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
}
"""{our name: theirs} of these ways."""

OURS = {theirs: ours for ours, theirs in POOLINGS.items()}
OURS |= {"mean": "mean", "cls": "first", "max": "max"}  # in newer files


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
    lower, strip : bool
        Whether texts are converted to lower case, and lose the spaces around them, before they
        reach the tokenizer.
    """

    pooling: str = "mean"
    normalize: bool = False
    max_len: int | None = None
    lower: bool = False
    strip: bool = False

    def vectors(
        self, hidden: Array, mask: Array | None, dense: tuple[np.ndarray, np.ndarray] | None = None
    ) -> np.ndarray:
        """Return one vector for each text, (batch, d_model), from those of its tokens.

        `dense` are weight and bias of a linear map after the pooling.
        """
        found, _ = WAYS[self.pooling].forward(hidden, Context(mask=mask))
        pooled: np.ndarray = to_numpy(found)
        if dense is not None:
            pooled = pooled @ dense[0] + dense[1]
        if self.normalize:
            norms = np.sqrt(np.einsum("nd,nd->n", pooled, pooled))[:, None]
            pooled = pooled / np.maximum(norms, 1e-12)
        return pooled


def read_sentence_settings(folder: Path) -> SentenceSettings | None:
    """Return the settings of a sentence encoder's folder; None for another folder.

    Raises ValueError if it has a module that npformer does not have.
    """
    paths = module_paths(folder)
    inside = paths.get("Transformer", folder)
    length = next(filter(None, (read_json_if_there(inside / name) for name in LENGTHS)), {})
    place = paths.get("Pooling", folder / POOLING) / "config.json"
    stated = read_json_if_there(folder / PROMPTS)
    for name in ("default_prompt_name", "truncate_dim"):
        if stated.get(name) is not None:
            raise ValueError(
                f"{folder / PROMPTS} has {name} = {stated[name]!r}; expected null, because "
                "npformer puts nothing before texts and keeps whole vectors. Remove it, and write "
                "a prompt into the texts"
            )
    if foreign := [name for name in FOREIGN if length.get(name)]:
        raise ValueError(
            f"{inside / LENGTH} has {foreign[0]}, which npformer does not have; expected only "
            "max_seq_length and do_lower_case"
        )
    if not (paths or length or place.is_file()):
        return None
    if (max_len := length.get("max_seq_length")) is not None:
        checks.whole(f"max_seq_length in {LENGTH}", max_len, at_least=3)
    return SentenceSettings(
        pooling=_pooling(place) if place.is_file() or "Pooling" in paths else "mean",
        normalize="Normalize" in paths or not paths,
        max_len=max_len,
        lower=bool(length.get("do_lower_case", False)),
        strip=True,  # as sentence-transformers does
    )


def sentence_files(
    settings: SentenceSettings, d_model: int, *, dense: bool = False
) -> dict[str, Any]:
    """Return {name: content} of the files with these settings; `dense`: a dense layer follows."""
    path_of_module = {"Transformer": "", "Pooling": POOLING}
    if dense:
        path_of_module["Dense"] = "2_Dense"
    elif settings.normalize:
        path_of_module["Normalize"] = "2_Normalize"
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{module}"}
        for i, (module, path) in enumerate(path_of_module.items())
    ]
    modes = {theirs: ours == settings.pooling for ours, theirs in POOLINGS.items()}
    return {
        MODULES: modules,
        LENGTH: {"max_seq_length": settings.max_len, "do_lower_case": settings.lower},
        f"{POOLING}/config.json": {"word_embedding_dimension": d_model, **modes},
    }


def module_paths(folder: Path) -> dict[str, Path]:
    """Return {class: folder} of the modules that modules.json names; none if there is no such file.

    ValueError if there is one that npformer does not have, or in another order.
    """
    file = folder / MODULES
    modules = read_json(file, list) if file.exists() or file.is_symlink() else None
    if modules is None:
        return {}
    if not all(isinstance(module, dict) for module in modules):
        raise ValueError(f"{file} has an entry without names; copy it again")
    types = [ascii(module.get("type", ""))[1:-1] for module in modules]
    kinds = tuple(t.rpartition(".")[2] for t in types if t.startswith("sentence_transformers."))
    if len(kinds) < len(types) or kinds not in CHAINS:
        raise ValueError(
            f"{file} has the modules {', '.join(types)}; expected Transformer, Pooling and at most "
            "one of Normalize and Dense, of sentence_transformers: npformer has no others"
        )
    paths = [path_in(folder, module.get("path", ""), file) for module in modules]
    return dict(zip(kinds, paths, strict=True))


def _pooling(place: Path) -> str:
    settings = read_json(place)
    if (named := settings.get("pooling_mode")) is not None:
        on = [str(named).lower()]
    else:
        usual = {POOLINGS["mean"]: True, **settings}
        on = [key for key, value in usual.items() if key.startswith("pooling_mode_") and value]
    found = [OURS.get(key, key) for key in on]
    if len(found) != 1 or found[0] not in POOLINGS:
        raise ValueError(
            f"{place} asks for {' and '.join(found) or 'no pooling'}; expected one of "
            f"{', '.join(POOLINGS.values())}"
        )
    return found[0]
