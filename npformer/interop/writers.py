"""PretrainedWriter and PretrainedTranslator: models that write text, with their tokenizers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npformer.core import checks
from npformer.data.json_file import read_json_if_there
from npformer.data.tokenizers.tokenizer import check_texts, pad_rows
from npformer.interop.architecture import Settings
from npformer.interop.marian import IDS
from npformer.interop.pretrained import Pretrained
from npformer.interop.save_pretrained import write_folder
from npformer.models.trainable import EncoderDecoder, LanguageModel
from npformer.training.generation.texts import write_pieces, write_texts
from npformer.training.generation.writing import list_tokens

GENERATION = "generation_config.json"
NEUTRAL: dict[str, Any] = {"repetition_penalty": 1.0, "diversity_penalty": 0.0, "typical_p": 1.0}
NEUTRAL |= dict.fromkeys(("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "min_length"), 0)
NEUTRAL |= dict.fromkeys(("min_new_tokens", "suppress_tokens", "begin_suppress_tokens"))
NEUTRAL |= dict.fromkeys(("forced_bos_token_id", "sequence_bias", "min_p", "guidance_scale"))
NEUTRAL |= dict.fromkeys(
    ("exponential_decay_length_penalty", "stop_strings", "watermarking_config")
)
NEUTRAL |= dict.fromkeys(
    ("penalty_alpha", "dola_layers", "constraints", "force_words_ids", "top_h")
)
NEUTRAL |= {"forced_eos_token_id": None, "token_healing": False, "encoder_repetition_penalty": 1.0}
NEUTRAL |= {"epsilon_cutoff": 0.0, "eta_cutoff": 0.0, "num_beams": 1}
"""Settings of generation that npformer does not have, with the values that have no effect."""


@dataclass(repr=False, eq=False)
class PretrainedTextModel(Pretrained):
    """The base class of pretrained models that write text."""

    def __post_init__(self) -> None:
        self._generation_settings = _read_generation_settings(
            Path(self.source_folder.folder), self.source_folder.hf_config
        )

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a folder in the layout of the source folder, with the tokenizer's files."""
        write_folder(self.model, folder, self.architecture, self.source_folder, overwrite=overwrite)

    def __repr__(self) -> str:
        model_type = self.architecture.model_type
        size = f"{self.model.n_parameters():,} parameters"
        return f"{type(self).__name__}({model_type}, {size}, from {self.source_folder.folder})"


class PretrainedWriter(PretrainedTextModel):
    """A pretrained `LanguageModel` with its tokenizer: GPT-2, Llama, Qwen3.

    writer = npformer.from_pretrained("gpt2")           # a folder
    writer.generate(["Once upon a time"], 40, temperature=0.8, seed=1)
    """

    model: LanguageModel

    def generate(
        self, texts: str | Iterable[str], n: int = 40, *, stop: Any = None, **options: Any
    ) -> Any:
        """Return n tokens that continue a text, or fewer if the model ends it.

        Ids without a token are never chosen: a model may have more ids than its tokenizer.

        Parameters
        ----------
        texts : str, or sequence of str
        n : int
        stop : int or list of int, optional
            Ids that end a text, besides those in the folder's files; they are not part of it.
        **options
            temperature, top_k, top_p, seed, cache, never, as in `LanguageModel.generate`.

        Returns
        -------
        texts : str, or list of str
            One or several, like `texts`.
        """
        checked_texts = [texts] if isinstance(texts, str) else check_texts(texts)
        prompts = [self._ids(text) for text in checked_texts]
        ends = self._ends(stop)
        written = write_texts(self.model, self.tokenizer, prompts, n, stop=ends, **options)
        return written[0] if isinstance(texts, str) else written

    def stream(self, text: str, n: int = 40, *, stop: Any = None, **options: Any) -> Iterator[str]:
        """Yield the text that `generate` returns, in pieces as they are written."""
        checks.text("text", text)
        prompt = self._ids(text)
        ends = self._ends(stop)
        return write_pieces(self.model, self.tokenizer, prompt, n, stop=ends, **options)

    def _ends(self, stop: Any = None) -> list[int]:
        """Return the ids that end a text: those in the folder's files, and `stop`."""
        vocab_size = self.model.vocab_size
        setting = self._generation_settings.get("eos_token_id")
        ids = setting if isinstance(setting, list) else [setting]
        ends = [id for id in ids if isinstance(id, int) and 0 <= id < vocab_size]
        return [*ends, *list_tokens("stop", stop, vocab_size)]

    def _ids(self, text: str) -> list[int]:
        """Return the ids of a text; for an empty one the id that begins texts, if there is one."""
        ids: list[int] = self.tokenizer.ids(text)
        begin = self._generation_settings.get("bos_token_id")
        if not ids and isinstance(begin, int):
            return [begin]
        return ids


class PretrainedTranslator(PretrainedTextModel):
    """A pretrained `EncoderDecoder` with its tokenizer: Marian.

    translator = npformer.from_pretrained("opus-mt-en-de")     # a folder
    translator.generate(["How are you?"], beams=4)
    """

    model: EncoderDecoder

    def generate(
        self,
        texts: str | Iterable[str],
        max_len: int = 128,
        beams: int = 1,
        length_penalty: float = 0.6,
        batch_size: int = 32,
    ) -> Any:
        """Return the translation of a text, or of several.

        Parameters
        ----------
        texts : str, or sequence of str
        max_len, beams, length_penalty
            As in `EncoderDecoder.generate`.
        batch_size : int
            Number of texts in a batch.

        Returns
        -------
        texts : str, or list of str
            One or several, like `texts`.
        """
        checked_texts = [texts] if isinstance(texts, str) else check_texts(texts)
        batch_size = checks.positive("batch_size", batch_size)
        model = self.model
        ids_without_token = self.tokenizer.ids_without_token(model.target_vocab)
        never = set(ids_without_token) - {model.end_id}
        translations = []
        for start in range(0, len(checked_texts), batch_size):
            batch = checked_texts[start : start + batch_size]
            ids, mask = pad_rows([self.tokenizer.ids(text) for text in batch], model.padding_id)
            rows = model.generate(ids, max_len, beams, length_penalty, mask=mask, never=never)
            translations += [self.tokenizer.decode(row) for row in rows]
        return translations[0] if isinstance(texts, str) else translations


def _read_generation_settings(folder: Path, hf_config: Settings) -> dict[str, Any]:
    """Return the settings of generation in a folder; warn of those that npformer does not have."""
    settings = {**hf_config, **read_json_if_there(folder / GENERATION)}
    end = settings.get("eos_token_id")
    if isinstance(end, list) and len(end) == 1:
        settings["eos_token_id"] = end[0]
    neutral = {**NEUTRAL, "bad_words_ids": [[hf_config.get("pad_token_id")]]}
    if hf_config["model_type"] == "marian":  # its ids are the model's; `generate` takes beams
        neutral |= {key: hf_config.get(key) for key in IDS.values()}
        neutral["num_beams"] = settings.get("num_beams")
        neutral["forced_eos_token_id"] = neutral[IDS["end_id"]]
    unsupported = [
        f"{key} = {settings[key]!r}"
        for key, value in neutral.items()
        if settings.get(key) not in (None, value, [])
    ]
    if unsupported:
        warnings.warn(
            f"{folder} has the settings of generation {', '.join(unsupported)}, which npformer "
            "does not have: generate writes other texts than transformers",
            stacklevel=5,
        )
    return settings
