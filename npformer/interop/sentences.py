"""The files that sentence-transformers adds to a folder: how to pool tokens into one vector."""

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
MODEL_TYPES = "bert", "roberta", "distilbert", "camembert", "xlm-roberta"
LENGTHS = [LENGTH.replace("bert", model_type) for model_type in MODEL_TYPES]
"""Names of the file with the maximum length; in older folders it is named after the model type."""

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
"""Settings in that file that change the vectors, and that npformer does not have."""

CHAINS = (
    ("Transformer",),
    ("Transformer", "Pooling"),
    ("Transformer", "Pooling", "Normalize"),
    ("Transformer", "Pooling", "Dense"),
)
"""The sequences of modules that npformer supports."""

POOLING_LAYERS = {"mean": MeanPooling(), "first": FirstToken(), "max": MaxPooling()}
"""Layers that compute one vector per text from those of its tokens, (batch, length, d_model)."""

POOLINGS = {
    "mean": "pooling_mode_mean_tokens",
    "first": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
}
"""{our name of a pooling: theirs}."""

OURS = {theirs: ours for ours, theirs in POOLINGS.items()}
OURS |= {"mean": "mean", "cls": "first", "max": "max"}  # in newer files


@dataclass(frozen=True)
class SentenceSettings:
    """Settings of the vectors of texts.

    Attributes
    ----------
    pooling : {"mean", "first", "max"}
    normalize : bool
        Whether vectors are scaled to norm 1.
    max_len : int or None
        Maximum number of tokens of a text, with special tokens.
    lower, strip : bool
        Whether texts are converted to lower case, and surrounding spaces are removed, before the
        tokenizer.
    """

    pooling: str = "mean"
    normalize: bool = False
    max_len: int | None = None
    lower: bool = False
    strip: bool = False

    def vectors(
        self, hidden: Array, mask: Array | None, dense: tuple[np.ndarray, np.ndarray] | None = None
    ) -> np.ndarray:
        """Return one vector for each text, (batch, d_model), from the vectors of its tokens.

        `dense` are weight and bias of a linear map after the pooling.
        """
        output, _ = POOLING_LAYERS[self.pooling].forward(hidden, Context(mask=mask))
        pooled: np.ndarray = to_numpy(output)
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
    model_folder = paths.get("Transformer", folder)
    pooling_file = paths.get("Pooling", folder / POOLING) / "config.json"
    _check_no_prompt(folder / PROMPTS)
    text_settings = _read_text_settings(model_folder)
    if not (paths or text_settings or pooling_file.is_file()):
        return None
    max_len = text_settings.get("max_seq_length")
    if max_len is not None:
        checks.whole(f"max_seq_length in {LENGTH}", max_len, at_least=3)
    has_pooling = pooling_file.is_file() or "Pooling" in paths
    return SentenceSettings(
        pooling=_read_pooling(pooling_file) if has_pooling else "mean",
        normalize="Normalize" in paths or not paths,
        max_len=max_len,
        lower=bool(text_settings.get("do_lower_case", False)),
        strip=True,  # as in sentence-transformers
    )


def _read_text_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of texts in the first file of `LENGTHS` that has any."""
    for name in LENGTHS:
        settings = read_json_if_there(folder / name)
        if settings:
            break
    for name in FOREIGN:
        if settings.get(name):
            raise ValueError(
                f"{folder / LENGTH} has {name}, which npformer does not have; expected only "
                "max_seq_length and do_lower_case"
            )
    return settings


def _check_no_prompt(file: Path) -> None:
    """Raise ValueError for a prompt before texts, or truncated vectors."""
    settings = read_json_if_there(file)
    for name in ("default_prompt_name", "truncate_dim"):
        if settings.get(name) is not None:
            raise ValueError(
                f"{file} has {name} = {settings[name]!r}; expected null, because npformer puts "
                "no prompt before texts and truncates no vectors. Remove it, and write a prompt "
                "into the texts"
            )


def sentence_files(
    settings: SentenceSettings, d_model: int, *, dense: bool = False
) -> dict[str, Any]:
    """Return {name: content} of the files with these settings; `dense` adds a dense layer."""
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
    """Return {class: folder} of the modules in modules.json; empty if there is no such file.

    ValueError if npformer does not support these modules in this order.
    """
    file = folder / MODULES
    modules = read_json(file, list) if file.exists() or file.is_symlink() else None
    if modules is None:
        return {}
    if not all(isinstance(module, dict) for module in modules):
        raise ValueError(f"{file} has an entry without names; copy it again")
    types = [ascii(module.get("type", ""))[1:-1] for module in modules]
    classes = []
    for module_type in types:
        if module_type.startswith("sentence_transformers."):
            classes.append(module_type.rpartition(".")[2])
    if len(classes) < len(types) or tuple(classes) not in CHAINS:
        raise ValueError(
            f"{file} has the modules {', '.join(types)}; expected Transformer, Pooling and at most "
            "one of Normalize and Dense, of sentence_transformers: npformer has no others"
        )
    paths = [path_in(folder, module.get("path", ""), file) for module in modules]
    return dict(zip(classes, paths, strict=True))


def _read_pooling(file: Path) -> str:
    """Return our name of the pooling in a file."""
    settings = read_json(file)
    mode = settings.get("pooling_mode")
    if mode is not None:
        modes = [str(mode).lower()]
    else:
        flags = {POOLINGS["mean"]: True, **settings}
        modes = [key for key, value in flags.items() if key.startswith("pooling_mode_") and value]
    poolings = [OURS.get(mode, mode) for mode in modes]
    if len(poolings) != 1 or poolings[0] not in POOLINGS:
        raise ValueError(
            f"{file} asks for {' and '.join(poolings) or 'no pooling'}; expected one of "
            f"{', '.join(POOLINGS.values())}"
        )
    return poolings[0]
