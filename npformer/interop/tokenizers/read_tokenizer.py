"""read_tokenizer: read a tokenizer from the files of a pretrained model."""

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
from npformer.interop.tokenizers.text_ends import (
    contradictory_prefix,
    find_additional_ends,
    find_missing_ends,
)

END_OF_TEXT = "<|endoftext|>"
FAMILIES: dict[str, dict[str, Any]] = tomllib.loads(
    (importlib.resources.files("npformer.data.tokenizers") / "classes.toml").read_text("utf-8")
)
"""The tables of ``classes.toml``: "bert", "roberta" and "gpt2"."""
SETTINGS = FAMILIES.pop("settings")
FAMILY_OF_CLASS = {name: family for family, table in FAMILIES.items() for name in table["classes"]}
"""{class of transformers: "bert", "roberta" or "gpt2"}."""
TOKEN_SETTINGS = ("lstrip", "rstrip", "normalized", "single_word", "special")
"""Settings of an added token."""
FILES = "tokenizer.json, vocab.txt, or vocab.json with merges.txt"


def read_tokenizer(path: str | os.PathLike[str], *, padding: str | None = None) -> LibraryTokenizer:
    """Return the tokenizer of a folder or a file.

    Parameters
    ----------
    path : str or path
        A folder in Hugging Face's layout, or a file of it: ``tokenizer.json``; ``vocab.txt``, the
        WordPiece of BERT; or ``vocab.json`` beside ``merges.txt``, the byte-level BPE of RoBERTa.
        For the latter two, ``tokenizer_config.json`` has the names of special tokens and whether
        texts are converted to lower case. Needs the extra ``text``.
    padding : str, optional
        The padding token, if the files name none, as for GPT-2. If the vocabulary does not have it
        either, padding is the token that ends texts.
    """
    path = checks.path("path", path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; expected a folder or file with {FILES}")
    folder = path if path.is_dir() else path.parent
    file = _tokenizer_file(path)
    for vocabulary in (file, folder / "merges.txt"):
        check_is_no_pointer(vocabulary)
    settings = read_settings(folder)
    for name in SETTINGS["foreign"]:
        if settings.get(name):
            raise ValueError(f"{folder} has {name}, which npformer does not have; expected false")
    class_name = _choose_class(folder, file, settings)
    defaults = {}
    if class_name in FAMILY_OF_CLASS:
        defaults = FAMILIES[FAMILY_OF_CLASS[class_name]]["usual"]
    settings_or_defaults = defaults | settings
    padding_words = [token_text(settings_or_defaults.get("pad_token")), padding]
    if padding is not None:  # of a model that writes, which ends texts, too
        padding_words.append(token_text(settings.get("eos_token")))
    try:
        if file.suffix == ".json":
            check_ids(read_json(file))
        library = _read_library(file, class_name, settings_or_defaults)
        _add_tokens(library, folder, settings, defaults)
        contradictions = _contradictions(library, file, class_name, settings_or_defaults)
        tokenizer = LibraryTokenizer(library, padding=_first_token(padding_words, library))
    except (ImportError, MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library raises Exception, or a panic
        raise ValueError(f"{file} is not a tokenizer: {error}; expected {FILES}") from error
    if contradictions:
        raise ValueError(
            f"{folder} has a tokenizer_config.json with {contradictions[0]} by its tokenizer; "
            "expected no contradiction, because versions of transformers differ in which they use"
        )
    inputs = settings.get("model_input_names")
    if inputs:
        tokenizer.token_types = "token_type_ids" in inputs
    else:
        tokenizer.token_types = class_name in SETTINGS["with_types"]
    tokenizer.clean_up = settings.get("clean_up_tokenization_spaces") is True
    return tokenizer


def _contradictions(
    library: Any, file: Path, class_name: str, settings: dict[str, Any]
) -> list[str]:
    """Return descriptions of settings that a tokenizer does not follow."""
    contradictions = find_missing_ends(library, settings)
    if file.name != "tokenizer.json" or class_name in FAMILY_OF_CLASS:
        return contradictions
    additional_ends = find_additional_ends(library, settings)
    if additional_ends:
        warnings.warn(
            f"tokenizer_config.json has {additional_ends[0]} by {file}, which npformer follows, as "
            "transformers 5 does; earlier versions may follow the settings",
            stacklevel=4,
        )
    stated_class = str(settings.get("tokenizer_class") or SETTINGS["any"][0]).removesuffix("Fast")
    if stated_class not in SETTINGS["any"]:
        contradictions += contradictory_prefix(library, settings)
    return contradictions


def _tokenizer_file(path: Path) -> Path:
    """Return the file to read a tokenizer from: the path, or the first one that its folder has."""
    files = [path]
    if path.is_dir():
        files = [path / "tokenizer.json", path / "vocab.txt", path / "vocab.json"]
    for file in files:
        if file.is_file():
            return file
    raise FileNotFoundError(f"{path} has no tokenizer; expected {FILES} in it")


def _first_token(words: list[str | None], library: Any) -> str | None:
    """Return the first word that is a token; None if no word is."""
    for word in words:
        if word and library.token_to_id(word) is not None:
            return word
    return None


def _choose_class(folder: Path, file: Path, settings: dict[str, Any]) -> str:
    """Return transformers' class for a tokenizer file; ValueError if npformer does not have it."""
    config = read_json_if_there(folder / "config.json")
    stated_class = _class_in_settings(file, settings, config)
    class_name = str(stated_class).removesuffix("Fast")
    families = _families_of_vocabulary(file)
    if not families:
        class_of_model = SETTINGS["of_models"].get(str(config.get("model_type")))
        return class_name if stated_class else f"{class_of_model}Tokenizer"
    is_specific = stated_class and class_name not in SETTINGS["any"]
    if is_specific and FAMILY_OF_CLASS.get(class_name) not in families:
        possible = [name for name, family in FAMILY_OF_CLASS.items() if family in families]
        raise ValueError(
            f"{folder} has the tokenizer_class {stated_class!r}, which npformer reads only from "
            f"tokenizer.json; expected that file, or one of {', '.join(possible)}"
        )
    if class_name in FAMILY_OF_CLASS:
        return class_name
    return str(FAMILIES[families[0]]["classes"][0])


def _class_in_settings(file: Path, settings: dict[str, Any], config: dict[str, Any]) -> Any:
    """Return the class that a folder names; for some models, the one that uses the whole file."""
    if file.name == "tokenizer.json" and config.get("model_type") in SETTINGS["whole"]:
        return SETTINGS["any"][0]
    return settings.get("tokenizer_class") or config.get("tokenizer_class")


def _families_of_vocabulary(file: Path) -> list[str]:
    """Return the families that can read a vocabulary, the likeliest first; [] for another file."""
    if file.suffix == ".txt":
        return ["bert"]
    if not _has_merges(file):
        return []
    return ["gpt2", "roberta"] if END_OF_TEXT in read_json(file) else ["roberta", "gpt2"]


def _has_merges(file: Path) -> bool:
    return file.name != "tokenizer.json" and file.with_name("merges.txt").is_file()


def _read_library(file: Path, name: str, settings: dict[str, Any]) -> Any:
    """Return the tokenizer that a class of transformers makes from a file."""
    tk = tokenizers_library()
    if file.suffix == ".txt":
        library = _build_library(tk.models.WordPiece(_words(file, settings)), name, settings)
    elif _has_merges(file):
        model = tk.models.BPE.from_file(str(file), str(file.with_name("merges.txt")))
        library = _build_library(model, name, settings)
    else:
        stored = tk.Tokenizer.from_file(str(file))
        stored_side = (stored.truncation or {}).get("direction")
        settings = {"truncation_side": stored_side} | settings
        library = _apply_class(stored, name, settings)
    side = settings.get("truncation_side")
    if side:
        library.enable_truncation(1 << 30, direction=side)
    return library


def _words(file: Path, settings: dict[str, Any]) -> dict[str, int]:
    """Return the id of each word of a vocab.txt.

    Empty lines at its end are no tokens, unless an added token has a later id.
    """
    # Split only at "\n": a token may contain U+2028 and other line ends.
    lines = file.read_text("utf-8").removesuffix("\n").split("\n")
    n_words = len("\n".join(lines).rstrip("\n").split("\n"))
    added_ids = [id for id in _tokens_by_id(file.parent, settings, []) if id >= n_words]
    n_ids = min(added_ids, default=n_words)
    return {word: id for id, word in enumerate(lines[:n_ids])}


def _apply_class(stored: Any, name: str, settings: dict[str, Any]) -> Any:
    """Return the tokenizer that a class of transformers makes from a tokenizer.json."""
    if name in FAMILY_OF_CLASS:
        library = _build_library(stored.model, name, settings)
        _check_components(stored, library, name)
        if "added_tokens_decoder" not in settings:
            library.add_tokens([*stored.get_added_tokens_decoder().values()])
        return library
    if name in SETTINGS["pieces"]:
        ends = stored.encode("").tokens or ["none", "none"]
        begin = token_text(settings.get("bos_token", ends[0]))
        end = token_text(settings.get("eos_token", ends[-1]))
        if [begin, end] != ends or settings.get("add_prefix_space") is False:
            raise ValueError(
                "tokenizer_config.json contradicts it; expected the same begin and end of texts"
            )
    return stored


def _build_library(model: Any, name: str, settings: dict[str, Any]) -> Any:
    """Return the tokenizer that a class of transformers builds from a vocabulary."""
    tk = tokenizers_library()
    library = tk.Tokenizer(model)
    family = FAMILY_OF_CLASS[name]
    words = [token_text(settings[key]) for key in FAMILIES[family]["needs"]]
    for word in words:
        if word is None or library.token_to_id(word) is None:
            raise ValueError(f"the vocabulary has no {word}")
    if family == "bert":
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
        if family == "bert":
            library.post_processor = tk.processors.BertProcessing(separator, first)
        else:
            library.post_processor = tk.processors.RobertaProcessing(separator, first)
    return library


def _check_components(stored: Any, library: Any, name: str) -> None:
    """Refuse a tokenizer.json whose components differ from its class: transformers ignores them."""
    tk = tokenizers_library()
    if library.post_processor is None and stored.post_processor is not None:
        library.post_processor = stored.post_processor  # transformers makes none for GPT-2
    text = library.encode("a", add_special_tokens=False)
    stored.no_padding()
    stored.no_truncation()
    stored_components = _components(stored, text)
    expected_components = _components(library, text)
    plain = tk.models.WordPiece() if FAMILY_OF_CLASS[name] == "bert" else tk.models.BPE()
    expected_components["model"] = json.loads(tk.Tokenizer(plain).to_str())["model"]
    for key in ("normalizer", "pre_tokenizer", "model", "post_processor"):
        stored_settings = _essential_settings(stored_components[key])
        if stored_settings != _essential_settings(expected_components[key]):
            raise ValueError(
                f"its {key} is not that of a {name}, which is what transformers takes. Expected "
                'the same, or "tokenizer_class": "PreTrainedTokenizerFast" in '
                "tokenizer_config.json, which takes all from this file"
            )


def _components(library: Any, text: Any) -> dict[str, Any]:
    """Return the components of a tokenizer; of its post_processor, the result for a pair."""
    pair = library.post_process(text, text)
    components: dict[str, Any] = json.loads(library.to_str())
    components["post_processor"] = {"ids": pair.ids, "types": pair.type_ids}
    return components


def _essential_settings(component: dict[str, Any] | None) -> dict[str, Any]:
    """Return the settings of a component that affect its results."""
    settings = component or {}
    return {key: value for key, value in settings.items() if value and key not in SETTINGS["free"]}


def _add_tokens(
    library: Any, folder: Path, settings: dict[str, Any], defaults: dict[str, Any]
) -> None:
    """Add the tokens that files beside the vocabulary have, each with its id."""
    tokens_in_vocabulary = {
        key: value for key, value in defaults.items() if library.token_to_id(str(value)) is not None
    }
    special_tokens = _special_tokens(settings, tokens_in_vocabulary)
    special_words = [token_text(token) for token in special_tokens]
    token_of_id = _tokens_by_id(folder, settings, special_words)
    added_words = {token.content for token in library.get_added_tokens_decoder().values()}
    tokens_by_id = [token_of_id[id] for id in sorted(token_of_id)]
    for token in tokens_by_id + special_tokens:
        word = token_text(token)
        if word is not None and word not in added_words:
            _add_token(library, word, token, special=word in special_words)
            added_words.add(word)
    _check_stated_ids(library, token_of_id)


def _check_stated_ids(library: Any, token_of_id: dict[int, Any]) -> None:
    """Raise ValueError for a token whose id differs from the stated one."""
    for id, token in token_of_id.items():
        word = token["content"]
        if library.token_to_id(word) != id:
            raise ValueError(f"{word!r} has the id {library.token_to_id(word)}, and {id} is stated")


def _special_tokens(settings: dict[str, Any], defaults: dict[str, Any]) -> list[Any]:
    """Return the special tokens in the order of transformers; None for those without a name."""
    tokens = [(defaults | settings).get(key) for key in SETTINGS["special"]]
    for key in SETTINGS["more"]:
        more_tokens = settings.get(key) or []
        tokens += more_tokens.values() if isinstance(more_tokens, dict) else more_tokens
    return tokens


def _tokens_by_id(
    folder: Path, settings: dict[str, Any], special_words: list[str | None]
) -> dict[int, Any]:
    """Return {id: token with its settings} of the tokens whose ids are stated in a file."""
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
    """Add a token, which is stored with its settings or only as a word."""
    settings = {}
    if token != word:
        settings = {key: value for key, value in token.items() if key in TOKEN_SETTINGS}
    settings["special"] = special or settings.get("special", False)
    library.add_tokens([tokenizers_library().AddedToken(word, **settings)])
