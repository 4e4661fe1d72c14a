"""read_tokenizer: a tokenizer from the files that pretrained models come with."""

import importlib.resources
import json
import os
import tomllib
import warnings
from pathlib import Path
from typing import Any

from npformer.core import checks
from npformer.data.formats import check_is_no_pointer
from npformer.data.json_file import read_json, read_json_if_there
from npformer.data.tokenizers.hugging_face import tokenizers_library
from npformer.data.tokenizers.library_tokenizer import LibraryTokenizer, check_ids
from npformer.data.tokenizers.tokenizer import read_settings, token_text
from npformer.interop.tokenizers.stated_texts import (
    additional_ends,
    contradictory_prefix,
    missing_ends,
)

END_OF_TEXT = "<|endoftext|>"
KINDS: dict[str, dict[str, Any]] = tomllib.loads(
    (importlib.resources.files("npformer.data.tokenizers") / "classes.toml").read_text("utf-8")
)
"""The tables of ``classes.toml``: "bert", "roberta" and "gpt2"."""
SETTINGS = KINDS.pop("settings")
CLASSES = {name: kind for kind, table in KINDS.items() for name in table["classes"]}
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
        The padding token, if the files name none, like those of GPT-2; without such a token it is
        the one that ends texts.
    """
    path = checks.path("path", path)
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}; expected a folder or file with {FILES}")
    folder = path if path.is_dir() else path.parent
    file = _tokenizer_file(path)
    for vocabulary in (file, folder / "merges.txt"):
        check_is_no_pointer(vocabulary)
    settings = read_settings(folder)
    if foreign := [name for name in SETTINGS["foreign"] if settings.get(name)]:
        raise ValueError(f"{folder} has {foreign[0]}, which npformer has not; expected false")
    name = _class(folder, file, settings)
    usual = KINDS[CLASSES[name]]["usual"] if name in CLASSES else {}
    padding_words = [token_text((usual | settings).get("pad_token")), padding]
    if padding is not None:  # of a model that writes, which ends texts, too
        padding_words.append(token_text(settings.get("eos_token")))
    try:
        if file.suffix == ".json":
            check_ids(read_json(file))
        library = _library(file, name, usual | settings)
        _add_tokens(library, folder, settings, usual)
        contradictions = _contradictions(library, file, name, usual | settings)
        tokenizer = LibraryTokenizer(library, padding=_first_known(padding_words, library))
    except (ImportError, MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library raises plain Exception, and panics that are none
        raise ValueError(f"{file} is not a tokenizer: {error}; expected {FILES}") from error
    if contradictions:
        raise ValueError(
            f"{folder} has a tokenizer_config.json with {contradictions[0]} by its tokenizer; "
            "expected both to say the same, because versions of transformers differ in which counts"
        )
    inputs = settings.get("model_input_names")
    tokenizer.token_types = "token_type_ids" in inputs if inputs else name in SETTINGS["with_types"]
    tokenizer.clean_up = settings.get("clean_up_tokenization_spaces") is True
    return tokenizer


def _contradictions(library: Any, file: Path, name: str, settings: dict[str, Any]) -> list[str]:
    """Return what settings say about all texts, and a tokenizer does not do."""
    whole_file = file.name == "tokenizer.json" and name not in CLASSES
    contradictions = missing_ends(library, settings)
    if whole_file and (unwanted := additional_ends(library, settings)):
        warnings.warn(
            f"tokenizer_config.json says {unwanted[0]} by {file}, which counts here as in "
            "transformers 5; earlier versions may ask the settings",
            stacklevel=4,
        )
    stated = str(settings.get("tokenizer_class") or SETTINGS["any"][0]).removesuffix("Fast")
    if whole_file and stated not in SETTINGS["any"]:
        contradictions += contradictory_prefix(library, settings)
    return contradictions


def _tokenizer_file(path: Path) -> Path:
    """Return the file that a tokenizer is read from: of a folder, the first one that is there."""
    if not path.is_dir():
        files = [path]
    else:
        files = [path / "tokenizer.json", path / "vocab.txt", path / "vocab.json"]
    for file in files:
        if file.is_file():
            return file
    raise FileNotFoundError(f"{path} has no tokenizer; expected {FILES} in it")


def _first_known(words: list[str | None], library: Any) -> str | None:
    """Return the first of some words that is a token; None if none is."""
    for word in words:
        if word and library.token_to_id(word) is not None:
            return word
    return None


def _class(folder: Path, file: Path, settings: dict[str, Any]) -> str:
    """Return the tokenizer of transformers that reads a file; ValueError if npformer has it not."""
    config = read_json_if_there(folder / "config.json")
    stated = _stated_class(file, settings, config)
    name = str(stated).removesuffix("Fast")
    kinds = _kinds_of_vocabulary(file)
    if not kinds:
        usual = SETTINGS["of_models"].get(str(config.get("model_type")))
        return name if stated else f"{usual}Tokenizer"
    if stated and name not in SETTINGS["any"] and CLASSES.get(name) not in kinds:
        known = ", ".join(other for other, kind in CLASSES.items() if kind in kinds)
        raise ValueError(
            f"{folder} has the tokenizer_class {stated!r}, which npformer reads from "
            f"tokenizer.json alone; expected that file, or one of {known}"
        )
    return name if name in CLASSES else str(KINDS[kinds[0]]["classes"][0])


def _stated_class(file: Path, settings: dict[str, Any], config: dict[str, Any]) -> Any:
    """Return the class that a folder names; for some models, one that takes all from the file."""
    if file.name == "tokenizer.json" and config.get("model_type") in SETTINGS["whole"]:
        return SETTINGS["any"][0]
    return settings.get("tokenizer_class") or config.get("tokenizer_class")


def _kinds_of_vocabulary(file: Path) -> list[str]:
    """Return the kinds that may read a vocabulary, the likeliest first; none: a tokenizer.json."""
    if file.suffix == ".txt":
        return ["bert"]
    if not _has_merges(file):
        return []
    return ["gpt2", "roberta"] if END_OF_TEXT in read_json(file) else ["roberta", "gpt2"]


def _has_merges(file: Path) -> bool:
    return file.name != "tokenizer.json" and file.with_name("merges.txt").is_file()


def _library(file: Path, name: str, settings: dict[str, Any]) -> Any:
    """Return the tokenizer that a class of transformers makes of a file."""
    tk = tokenizers_library()
    if file.suffix == ".txt":
        library = _around(tk.models.WordPiece(_words(file, settings)), name, settings)
    elif _has_merges(file):
        model = tk.models.BPE.from_file(str(file), str(file.with_name("merges.txt")))
        library = _around(model, name, settings)
    else:
        stored = tk.Tokenizer.from_file(str(file))
        settings = {"truncation_side": (stored.truncation or {}).get("direction")} | settings
        library = _as_transformers_reads(stored, name, settings)
    if side := settings.get("truncation_side"):
        library.enable_truncation(1 << 30, direction=side)
    return library


def _words(file: Path, settings: dict[str, Any]) -> dict[str, int]:
    """Return the id of each word of a vocab.txt, which may end in empty lines.

    They are no tokens, but if the id of an added token is stated, they may have the ids before it.
    """
    # At "\n" alone: a token may hold U+2028 and other ends of lines.
    lines = file.read_text("utf-8").removesuffix("\n").split("\n")
    n_words = len("\n".join(lines).rstrip("\n").split("\n"))
    added_ids = [id for id in _stated_tokens(file.parent, settings, []) if id >= n_words]
    return {word: id for id, word in enumerate(lines[: min(added_ids, default=n_words)])}


def _as_transformers_reads(stored: Any, name: str, settings: dict[str, Any]) -> Any:
    """Return the tokenizer that a class of transformers makes of what a tokenizer.json stores."""
    if name in CLASSES:
        library = _around(stored.model, name, settings)
        _check_parts(stored, library, name)
        if "added_tokens_decoder" not in settings:
            library.add_tokens([*stored.get_added_tokens_decoder().values()])
        return library
    if name in SETTINGS["pieces"]:
        ends = stored.encode("").tokens or ["none", "none"]
        begin = token_text(settings.get("bos_token", ends[0]))
        end = token_text(settings.get("eos_token", ends[-1]))
        if [begin, end] != ends or settings.get("add_prefix_space") is False:
            raise ValueError("tokenizer_config.json says otherwise; expected its ends of texts")
    return stored


def _around(model: Any, name: str, settings: dict[str, Any]) -> Any:
    """Return what a class of transformers makes around a vocabulary."""
    tk = tokenizers_library()
    library = tk.Tokenizer(model)
    bert = CLASSES[name] == "bert"
    words = [token_text(settings[key]) for key in KINDS[CLASSES[name]]["needs"]]
    if missing := [word for word in words if word is None or library.token_to_id(word) is None]:
        raise ValueError(f"the vocabulary has no {missing[0]}")
    if bert:
        library.model.unk_token = words[0]
        library.normalizer = tk.normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=settings["tokenize_chinese_chars"],
            strip_accents=settings.get("strip_accents"),
            lowercase=settings["do_lower_case"],
        )
        library.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
        library.decoder = tk.decoders.WordPiece()
    else:
        library.pre_tokenizer = tk.pre_tokenizers.ByteLevel(settings["add_prefix_space"])
        library.decoder = tk.decoders.ByteLevel()
    if words:
        separator, first = ((word, library.token_to_id(word)) for word in words[-2:])
        processors = tk.processors
        processor = processors.BertProcessing if bert else processors.RobertaProcessing
        library.post_processor = processor(separator, first)
    return library


def _check_parts(stored: Any, library: Any, name: str) -> None:
    """Refuse a tokenizer.json with other parts than its class makes: transformers drops them."""
    tk = tokenizers_library()
    if library.post_processor is None and stored.post_processor is not None:
        library.post_processor = stored.post_processor  # transformers makes none for GPT-2
    text = library.encode("a", add_special_tokens=False)
    stored.no_padding()
    stored.no_truncation()
    stored_parts = _parts_of(stored, text)
    expected_parts = _parts_of(library, text)
    plain = tk.models.WordPiece() if CLASSES[name] == "bert" else tk.models.BPE()
    expected_parts["model"] = json.loads(tk.Tokenizer(plain).to_str())["model"]
    for part in ("normalizer", "pre_tokenizer", "model", "post_processor"):
        if _told(stored_parts[part]) != _told(expected_parts[part]):
            raise ValueError(
                f"its {part} is not that of a {name}, which is what transformers takes. Expected "
                'the same, or "tokenizer_class": "PreTrainedTokenizerFast" in '
                "tokenizer_config.json, which takes all from this file"
            )


def _parts_of(library: Any, text: Any) -> dict[str, Any]:
    """Return the parts of a tokenizer; for its post_processor, what that makes of a pair."""
    pair = library.post_process(text, text)
    parts: dict[str, Any] = json.loads(library.to_str())
    parts["post_processor"] = {"ids": pair.ids, "types": pair.type_ids}
    return parts


def _told(part: dict[str, Any] | None) -> dict[str, Any]:
    return {k: v for k, v in (part or {}).items() if v and k not in SETTINGS["free"]}


def _add_tokens(
    library: Any, folder: Path, settings: dict[str, Any], usual: dict[str, Any]
) -> None:
    """Add the tokens that stand in files beside the vocabulary, each with its id."""
    in_vocabulary = {k: v for k, v in usual.items() if library.token_to_id(str(v)) is not None}
    special_tokens = _special_tokens(settings, in_vocabulary)
    special_words = [token_text(token) for token in special_tokens]
    token_of_id = _stated_tokens(folder, settings, special_words)
    known = {token.content for token in library.get_added_tokens_decoder().values()}
    in_order = [token_of_id[id] for id in sorted(token_of_id)]
    for token in in_order + special_tokens:
        word = token_text(token)
        if word is not None and word not in known:
            _add_token(library, word, token, special=word in special_words)
            known.add(word)
    _check_stated_ids(library, token_of_id)


def _check_stated_ids(library: Any, token_of_id: dict[int, Any]) -> None:
    for id, token in token_of_id.items():
        word = token["content"]
        if library.token_to_id(word) != id:
            raise ValueError(f"{word!r} has the id {library.token_to_id(word)}, and {id} is stated")


def _special_tokens(settings: dict[str, Any], usual: dict[str, Any]) -> list[Any]:
    """Return the special tokens that settings name, in the order of transformers; None for none."""
    tokens = [(usual | settings).get(key) for key in SETTINGS["special"]]
    for key in SETTINGS["more"]:
        more = settings.get(key) or []
        tokens += more.values() if isinstance(more, dict) else more
    return tokens


def _stated_tokens(
    folder: Path, settings: dict[str, Any], special_words: list[str | None]
) -> dict[int, Any]:
    """Return {id: token with its settings} of the tokens whose id a file states."""
    decoder = settings.get("added_tokens_decoder")
    id_of_word = read_json_if_there(folder / "added_tokens.json")
    if decoder is not None:
        return {int(id): token for id, token in decoder.items()}
    return {
        id: {
            "content": word,
            "normalized": word not in special_words,
            "special": word in special_words,
        }
        for word, id in id_of_word.items()
    }


def _add_token(library: Any, word: str, token: Any, special: bool) -> None:
    """Add a token, which may be stored with its settings, or as a word alone."""
    options = {} if token == word else {k: v for k, v in token.items() if k in OF_TOKENS}
    options["special"] = special or options.get("special", False)
    library.add_tokens([tokenizers_library().AddedToken(word, **options)])
