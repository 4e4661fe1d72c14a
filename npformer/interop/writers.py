"""PretrainedWriter and PretrainedTranslator: models that write, with their tokenizers."""

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
USUAL: dict[str, Any] = {"repetition_penalty": 1.0, "diversity_penalty": 0.0, "typical_p": 1.0}
USUAL |= dict.fromkeys(("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "min_length"), 0)
USUAL |= dict.fromkeys(("min_new_tokens", "suppress_tokens", "begin_suppress_tokens"))
USUAL |= dict.fromkeys(("forced_bos_token_id", "sequence_bias", "min_p", "guidance_scale"))
USUAL |= dict.fromkeys(("exponential_decay_length_penalty", "stop_strings", "watermarking_config"))
USUAL |= dict.fromkeys(("penalty_alpha", "dola_layers", "constraints", "force_words_ids", "top_h"))
USUAL |= {"forced_eos_token_id": None, "token_healing": False, "encoder_repetition_penalty": 1.0}
USUAL |= {"epsilon_cutoff": 0.0, "eta_cutoff": 0.0, "num_beams": 1}
"""Settings of generation that npformer does not have, and what they are without an effect."""


@dataclass(repr=False, eq=False)
class PretrainedTextModel(Pretrained):
    """What pretrained models that write have in common."""

    def __post_init__(self) -> None:
        self._stated = _generation(Path(self.origin.folder), self.origin.hf_config)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a folder in the layout that this one came in, with the tokenizer's files."""
        write_folder(self.model, folder, self.architecture, self.origin, overwrite=overwrite)

    def __repr__(self) -> str:
        kind, size = self.architecture.model_type, self.model.n_parameters()
        return f"{type(self).__name__}({kind}, {size:,} parameters, from {self.origin.folder})"


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

        Ids that no token has are not written: a model may have more than its tokenizer.

        Parameters
        ----------
        texts : str, or sequence of str
        n : int
        stop : int or list of int, optional
            Ids that end a text, besides those that the folder names. They are not part of it.
        **options
            temperature, top_k, top_p, seed, cache, never, as in `LanguageModel.generate`.

        Returns
        -------
        texts : str, or list of str
            One or several, like `texts`.
        """
        listed = [texts] if isinstance(texts, str) else check_texts(texts)
        prompts = [self._ids(text) for text in listed]
        ends = self._ends(stop)
        written = write_texts(self.model, self.tokenizer, prompts, n, stop=ends, **options)
        return written[0] if isinstance(texts, str) else written

    def stream(self, text: str, n: int = 40, *, stop: Any = None, **options: Any) -> Iterator[str]:
        """Yield the text that `generate` returns, piece by piece."""
        checks.text("text", text)
        prompt, ends = self._ids(text), self._ends(stop)
        return write_pieces(self.model, self.tokenizer, prompt, n, stop=ends, **options)

    def _ends(self, stop: Any = None) -> list[int]:
        """Return the ids that end a text: those that the folder names, and others."""
        vocab_size = self.model.vocab_size
        stated = self._stated.get("eos_token_id")
        ends = stated if isinstance(stated, list) else [stated]
        known = [id for id in ends if isinstance(id, int) and 0 <= id < vocab_size]
        return [*known, *list_tokens("stop", stop, vocab_size)]

    def _ids(self, text: str) -> list[int]:
        begin = self._stated.get("bos_token_id")
        return self.tokenizer.ids(text) or ([begin] if isinstance(begin, int) else [])


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
            Texts at a time.

        Returns
        -------
        texts : str, or list of str
            One or several, like `texts`.
        """
        listed = [texts] if isinstance(texts, str) else check_texts(texts)
        batch_size, found = checks.positive("batch_size", batch_size), []
        model = self.model
        without_token = set(self.tokenizer.ids_without_token(model.target_vocab)) - {model.end_id}
        for start in range(0, len(listed), batch_size):
            rows = [self.tokenizer.ids(text) for text in listed[start : start + batch_size]]
            ids, mask = pad_rows(rows, self.model.padding_id)
            written = self.model.generate(
                ids, max_len, beams, length_penalty, mask=mask, never=without_token
            )
            found += [self.tokenizer.decode(row) for row in written]
        return found[0] if isinstance(texts, str) else found


def _generation(folder: Path, hf_config: Settings) -> dict[str, Any]:
    """Return what a folder says about generation; warn of what npformer does not do."""
    stated = {**hf_config, **read_json_if_there(folder / GENERATION)}
    if isinstance(end := stated.get("eos_token_id"), list) and len(end) == 1:
        stated["eos_token_id"] = end[0]
    usual = {**USUAL, "bad_words_ids": [[hf_config.get("pad_token_id")]]}
    if hf_config["model_type"] == "marian":  # whose ids are those of the model, and beams are given
        usual |= {key: hf_config.get(key) for key in IDS.values()}
        usual |= {"num_beams": stated.get("num_beams"), "forced_eos_token_id": usual[IDS["end_id"]]}
    other = {k: stated[k] for k, v in usual.items() if stated.get(k) not in (None, v, [])}
    if other:
        warnings.warn(
            f"{folder} says of generation {', '.join(f'{k} = {v!r}' for k, v in other.items())}, "
            "which npformer does not do: generate writes other texts than transformers",
            stacklevel=5,
        )
    return stated
