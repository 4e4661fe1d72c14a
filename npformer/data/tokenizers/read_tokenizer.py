"""read_tokenizer: a tokenizer from the files that pretrained models come with."""

import json
import os
from pathlib import Path
from typing import Any

from npformer.core import checks
from npformer.data.json_file import read_json_if_there
from npformer.data.tokenizers.library_tokenizer import LibraryTokenizer, tokenizers_library

END_OF_TEXT = "<|endoftext|>"
MOST_IDS = 1 << 24
"""Models have some hundred thousand tokens at most."""
CLASSES = {
    "vocab.txt": ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"),
    "vocab.json": ("RobertaTokenizer", "GPT2Tokenizer", "BartTokenizer", "LongformerTokenizer"),
}
"""The tokenizers of transformers whose vocabulary this is."""
ANY = "PreTrainedTokenizer", "TokenizersBackend"
"""Those that take everything from tokenizer.json."""
STATED = {
    "do_lower_case": ("normalizer", "lowercase"),
    "strip_accents": ("normalizer", "strip_accents"),
    "tokenize_chinese_chars": ("normalizer", "handle_chinese_chars"),
    "add_prefix_space": ("pre_tokenizer", "add_prefix_space"),
}
"""{key of tokenizer_config.json: what it sets, in BERT's normaliser or in byte-level BPE}."""
OF_TOKENS = ("lstrip", "rstrip", "normalized", "single_word", "special")
FILES = "tokenizer.json, vocab.txt, or vocab.json with merges.txt"


def read_tokenizer(path: str | os.PathLike[str], *, padding: str | None = None) -> LibraryTokenizer:
    """Return the tokenizer of a folder or a file.

    Parameters
    ----------
    path : str or path
        A folder in Hugging Face's layout, or a file of it: ``tokenizer.json``; ``vocab.txt``, the
        WordPiece of BERT; or ``vocab.json`` beside ``merges.txt``, the byte-level BPE of RoBERTa.
        For these, ``tokenizer_config.json`` says whether texts become lower case and what special
        tokens are called. Needs the extra ``text``.
    padding : str, optional
        The padding token, if the files name none, like those of GPT-2.
    """
    path = checks.path("path", path)
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}; expected a folder or file with {FILES}")
    folder = path if path.is_dir() else path.parent
    names = ("tokenizer.json", "vocab.txt", "vocab.json") if path.is_dir() else (path.name,)
    file = next((folder / name for name in names if (folder / name).is_file()), None)
    if file is None:
        raise FileNotFoundError(f"{path} has no tokenizer; expected {FILES} in it")
    settings = read_json_if_there(folder / "tokenizer_config.json")
    _check_class(folder, file, settings)
    padding = _word(settings.get("pad_token")) or padding
    try:
        _check_ids(file)
        if file.suffix == ".txt":
            library = _wordpiece(file, settings)
        elif (folder / "merges.txt").is_file() and file.name != "tokenizer.json":
            library = _bpe(file, folder / "merges.txt", settings)
        else:
            library = tokenizers_library().Tokenizer.from_file(str(file))
        _apply(settings, library)
        _add_tokens(library, folder, settings)
        known = padding is not None and library.token_to_id(padding) is not None
    except (ImportError, MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library raises plain Exception, and panics that are none
        raise ValueError(f"{file} is not a tokenizer: {error}; expected {FILES}") from error
    return LibraryTokenizer(library, padding=padding if known else None)


def _wordpiece(file: Path, settings: dict[str, Any]) -> Any:
    """Return the tokenizer of BERT with a vocabulary: one token per line."""
    # At "\n" alone: a token may hold U+2028 and other ends of lines.
    words = file.read_text("utf-8").removesuffix("\n").split("\n")
    vocabulary = {word: id for id, word in enumerate(words)}
    usual = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    special = {name: _word(settings.get(name)) or word for name, word in usual.items()}
    if missing := [word for word in special.values() if word not in vocabulary]:
        raise ValueError(f"the vocabulary has no {missing[0]}")
    made = tokenizers_library().BertWordPieceTokenizer(
        vocabulary,
        **special,
    )
    return tokenizers_library().Tokenizer.from_str(made.to_str())


def _check_ids(file: Path) -> None:
    """Refuse ids that no model has: the library would take memory for all ids up to the largest."""
    given = json.loads(file.read_text("utf-8")) if file.suffix == ".json" else {}
    model, added = given.get("model", {"vocab": given}), given.get("added_tokens", [])
    vocabulary = model.get("vocab", {}) if isinstance(model, dict) else {}
    ids = [*vocabulary.values()] if isinstance(vocabulary, dict) else []
    ids += [token.get("id") for token in added if isinstance(token, dict)]
    wrong = [id for id in ids if type(id) is int and not 0 <= id < MOST_IDS]
    if wrong:
        raise ValueError(f"a token has the id {wrong[0]}; expected ids below {MOST_IDS}")


def _bpe(vocabulary: Path, merges: Path, settings: dict[str, Any]) -> Any:
    """Return the tokenizer of RoBERTa with a vocabulary and its merges."""
    tk = tokenizers_library()
    library = tk.Tokenizer(tk.models.BPE.from_file(str(vocabulary), str(merges)))
    library.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = tk.decoders.ByteLevel()
    if library.token_to_id(END_OF_TEXT) is not None:  # of GPT-2, which adds no special tokens
        library.add_special_tokens([END_OF_TEXT])
        return library
    special = [
        _word(settings.get(name)) or usual
        for name, usual in (("bos_token", "<s>"), ("eos_token", "</s>"), ("pad_token", "<pad>"))
    ]
    if missing := [word for word in special if library.token_to_id(word) is None]:
        raise ValueError(f"the vocabulary has no {missing[0]}")
    others = [word for word in ("<unk>", "<mask>") if library.token_to_id(word) is not None]
    library.add_special_tokens([*special, *others])
    first, last = special[:2]
    library.post_processor = tk.processors.RobertaProcessing(
        (last, library.token_to_id(last)),
        (first, library.token_to_id(first)),
    )
    return library


def _check_class(folder: Path, file: Path, settings: dict[str, Any]) -> None:
    """Refuse a vocabulary of a tokenizer that divides texts in another way."""
    of_model = read_json_if_there(folder / "config.json").get("tokenizer_class")
    name, known = settings.get("tokenizer_class") or of_model, CLASSES.get(file.name, ())
    if name and known and str(name).removesuffix("Fast") not in (*known, *ANY):
        raise ValueError(
            f"{folder} has the tokenizer_class {name!r}, which npformer reads from tokenizer.json "
            f"alone; expected that file, or one of {', '.join(known)}"
        )


def _apply(settings: dict[str, Any], library: Any) -> None:
    """Set what tokenizer_config.json says: in transformers it counts more than tokenizer.json."""
    if str(settings.get("tokenizer_class")).removesuffix("Fast") not in ANY:
        for key, (part, name) in STATED.items():
            if key in settings and hasattr(owner := getattr(library, part), name):
                setattr(owner, name, settings[key])
    if side := settings.get("truncation_side"):
        library.enable_truncation(1 << 30, direction=side)


def _add_tokens(library: Any, folder: Path, settings: dict[str, Any]) -> None:
    """Add the tokens that stand in files beside the vocabulary, each with its id."""
    stated: dict[int, Any] = {
        id: {"content": word, "normalized": False}
        for word, id in read_json_if_there(folder / "added_tokens.json").items()
    }
    stated |= {int(k): v for k, v in (settings.get("added_tokens_decoder") or {}).items()}
    known = {token.content for token in library.get_added_tokens_decoder().values()}
    for id, token in sorted(stated.items()):
        if (word := token["content"]) not in known:
            options = {k: v for k, v in token.items() if k in OF_TOKENS}
            library.add_tokens([tokenizers_library().AddedToken(word, **options)])
        if library.token_to_id(word) != id:
            raise ValueError(f"{word!r} has the id {library.token_to_id(word)}, and {id} is stated")


def _word(token: Any) -> str | None:
    """Return a special token, which may be stored as a word or with its settings."""
    found = token.get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) else None
