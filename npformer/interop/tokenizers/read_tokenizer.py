"""read_tokenizer: a tokenizer from the files that pretrained models come with."""

import importlib.resources
import json
import os
import tomllib
from pathlib import Path
from typing import Any

from npformer.core import checks
from npformer.data.json_file import read_json, read_json_if_there
from npformer.data.tokenizers.library_tokenizer import (
    LibraryTokenizer,
    check_ids,
    tokenizers_library,
)
from npformer.data.tokenizers.tokenizer import stated_settings, word_of

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
    names = ("tokenizer.json", "vocab.txt", "vocab.json") if path.is_dir() else (path.name,)
    file = next((folder / name for name in names if (folder / name).is_file()), None)
    if file is None:
        raise FileNotFoundError(f"{path} has no tokenizer; expected {FILES} in it")
    settings = stated_settings(folder)
    if foreign := [name for name in SETTINGS["foreign"] if settings.get(name)]:
        raise ValueError(f"{folder} has {foreign[0]}, which npformer has not; expected false")
    name = _class(folder, file, settings)
    usual = KINDS[CLASSES[name]]["usual"] if name in CLASSES else {}
    named = [word_of((usual | settings).get("pad_token")), padding]
    if padding is not None:  # of a model that writes, which ends texts, too
        named.append(word_of(settings.get("eos_token")))
    try:
        if file.suffix == ".json":
            check_ids(read_json(file))
        library = _library(file, name, usual | settings)
        _add_tokens(library, folder, settings, usual)
        known = [word for word in named if word and library.token_to_id(word) is not None]
        made = LibraryTokenizer(library, padding=next(iter(known), None))
    except (ImportError, MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library raises plain Exception, and panics that are none
        raise ValueError(f"{file} is not a tokenizer: {error}; expected {FILES}") from error
    inputs = settings.get("model_input_names")
    made.token_types = "token_type_ids" in inputs if inputs else name in SETTINGS["with_types"]
    made.clean_up = settings.get("clean_up_tokenization_spaces") is True
    return made


def _class(folder: Path, file: Path, settings: dict[str, Any]) -> str:
    """Return the tokenizer of transformers that reads a file; ValueError if npformer has it not."""
    config = read_json_if_there(folder / "config.json")
    stated = settings.get("tokenizer_class") or config.get("tokenizer_class")
    if file.name == "tokenizer.json" and config.get("model_type") in SETTINGS["whole"]:
        stated = SETTINGS["any"][0]
    name = str(stated).removesuffix("Fast")
    if file.suffix == ".txt":
        kinds = ["bert"]
    elif _has_merges(file):
        kinds = ["gpt2", "roberta"] if END_OF_TEXT in read_json(file) else ["roberta", "gpt2"]
    else:
        usual = SETTINGS["of_models"].get(str(config.get("model_type")))
        return name if stated else f"{usual}Tokenizer"
    if stated and name not in SETTINGS["any"] and CLASSES.get(name) not in kinds:
        known = ", ".join(each for each, kind in CLASSES.items() if kind in kinds)
        raise ValueError(
            f"{folder} has the tokenizer_class {stated!r}, which npformer reads from "
            f"tokenizer.json alone; expected that file, or one of {known}"
        )
    return name if name in CLASSES else str(KINDS[kinds[0]]["classes"][0])


def _has_merges(file: Path) -> bool:
    return file.name != "tokenizer.json" and file.with_name("merges.txt").is_file()


def _library(file: Path, name: str, given: dict[str, Any]) -> Any:
    """Return the tokenizer that a class of transformers makes of a file."""
    tk = tokenizers_library()
    if file.suffix == ".txt":
        # At "\n" alone: a token may hold U+2028 and other ends of lines.
        words = file.read_text("utf-8").removesuffix("\n").split("\n")
        made = _around(tk.models.WordPiece({w: id for id, w in enumerate(words)}), name, given)
    elif _has_merges(file):
        model = tk.models.BPE.from_file(str(file), str(file.with_name("merges.txt")))
        made = _around(model, name, given)
    else:
        made = stored = tk.Tokenizer.from_file(str(file))
        given = {"truncation_side": (stored.truncation or {}).get("direction")} | given
        if name in CLASSES:
            made = _around(stored.model, name, given)
            _check_parts(stored, made, name)
            if "added_tokens_decoder" not in given:
                made.add_tokens([*stored.get_added_tokens_decoder().values()])
        elif name in SETTINGS["pieces"]:
            ends = stored.encode("").tokens or ["none", "none"]
            stated = [given.get("bos_token", ends[0]), given.get("eos_token", ends[-1])]
            if [*map(word_of, stated)] != ends or given.get("add_prefix_space") is False:
                raise ValueError("tokenizer_config.json says otherwise; expected its ends of texts")
    if side := given.get("truncation_side"):
        made.enable_truncation(1 << 30, direction=side)
    return made


def _around(model: Any, name: str, given: dict[str, Any]) -> Any:
    """Return what a class of transformers makes around a vocabulary."""
    tk, bert = tokenizers_library(), CLASSES[name] == "bert"
    made = tk.Tokenizer(model)
    words = [word_of(given[key]) for key in KINDS[CLASSES[name]]["needs"]]
    if missing := [word for word in words if word is None or made.token_to_id(word) is None]:
        raise ValueError(f"the vocabulary has no {missing[0]}")
    if bert:
        made.model.unk_token = words[0]
        chosen = given["tokenize_chinese_chars"], given.get("strip_accents"), given["do_lower_case"]
        made.normalizer = tk.normalizers.BertNormalizer(True, *chosen)
        made.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
        made.decoder = tk.decoders.WordPiece()
    else:
        made.pre_tokenizer = tk.pre_tokenizers.ByteLevel(given["add_prefix_space"])
        made.decoder = tk.decoders.ByteLevel()
    if words:
        ends = ((word, made.token_to_id(word)) for word in words[-2:])
        kinds = tk.processors.BertProcessing, tk.processors.RobertaProcessing
        made.post_processor = kinds[not bert](*ends)
    return made


def _check_parts(stored: Any, made: Any, name: str) -> None:
    """Refuse a tokenizer.json with other parts than its class makes: transformers drops them."""
    tk = tokenizers_library()
    if made.post_processor is None and stored.post_processor is not None:
        made.post_processor = stored.post_processor  # transformers makes none for GPT-2
    text = made.encode("a", add_special_tokens=False)
    stored.no_padding()
    stored.no_truncation()
    found, own = (
        {**json.loads(each.to_str()), "post_processor": {"ids": pair.ids, "types": pair.type_ids}}
        for each in (stored, made)
        for pair in (each.post_process(text, text),)
    )
    plain = tk.models.WordPiece() if CLASSES[name] == "bert" else tk.models.BPE()
    own["model"] = json.loads(tk.Tokenizer(plain).to_str())["model"]
    for part in ("normalizer", "pre_tokenizer", "model", "post_processor"):
        if _told(found[part]) != _told(own[part]):
            raise ValueError(
                f"its {part} is not that of a {name}, which is what transformers takes. Expected "
                'the same, or "tokenizer_class": "PreTrainedTokenizerFast" in '
                "tokenizer_config.json, which takes all from this file"
            )


def _told(part: dict[str, Any] | None) -> dict[str, Any]:
    return {k: v for k, v in (part or {}).items() if v and k not in SETTINGS["free"]}


def _add_tokens(
    library: Any, folder: Path, settings: dict[str, Any], usual: dict[str, Any]
) -> None:
    """Add the tokens that stand in files beside the vocabulary, each with its id."""
    in_vocabulary = {k: v for k, v in usual.items() if library.token_to_id(str(v)) is not None}
    named = [(in_vocabulary | settings).get(key) for key in SETTINGS["special"]]
    for more in (settings.get(key) or [] for key in SETTINGS["more"]):
        named += more.values() if isinstance(more, dict) else more
    special = [word_of(token) for token in named]
    stated: dict[int, Any] = {
        id: {"content": word, "normalized": word not in special, "special": word in special}
        for word, id in read_json_if_there(folder / "added_tokens.json").items()
    }
    if (decoder := settings.get("added_tokens_decoder")) is not None:
        stated = {int(id): token for id, token in decoder.items()}
    known = {token.content for token in library.get_added_tokens_decoder().values()}
    for token in (*(stated[id] for id in sorted(stated)), *named):
        if (word := word_of(token)) is not None and word not in known:
            options = {k: v for k, v in token.items() if k in OF_TOKENS} if token != word else {}
            options["special"] = word in special or options.get("special", False)
            library.add_tokens([tokenizers_library().AddedToken(word, **options)])
            known.add(word)
    for id, token in stated.items():
        if library.token_to_id(word := token["content"]) != id:
            raise ValueError(f"{word!r} has the id {library.token_to_id(word)}, and {id} is stated")
