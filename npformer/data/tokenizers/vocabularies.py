"""WordPiece and BPE with a vocabulary from some texts, the same one in every process.

The trainer of WordPiece in `tokenizers` 0.23 numbers the characters inside words in the order of a
hash map with random keys, and so breaks ties between frequent pairs differently in each process. It
is the trainer of BPE, with a mark for pieces inside words. Here that trainer gets these characters
sorted, as if they were special tokens: then only counts and ids decide, and neither the process nor
its threads nor the order of the texts.
"""

from collections.abc import Sequence
from typing import Any

from npformer.data.tokenizers.hugging_face import one_thread, tokenizers_library

INSIDE = "##"
"""Begins the pieces of WordPiece that do not begin a word."""

LETTERS = r"\p{L}[\p{L}\p{M}\x{200C}\x{200D}]*"
"""Letters with their marks, such as the vowel signs of Hindi, and the joiners among them."""

PIECES = (
    rf"'s|'t|'re|'ve|'m|'ll|'d| ?{LETTERS}| ?\p{{N}}[\p{{N}}\p{{M}}]*| ?[^\s\p{{L}}\p{{N}}]+"
    r"|\s+(?!\S)|\s+"
)
"""What BPE takes apart: as in GPT-2, but there marks are taken from their letters."""


def wordpiece(
    texts: Sequence[str], special_tokens: Sequence[Any], sizes: dict[str, int], *, lower: bool
) -> Any:
    """Return a tokenizer of WordPiece; `sizes` are `vocab_size` and `min_frequency`."""
    tk = tokenizers_library()
    splitter = tk.pre_tokenizers.BertPreTokenizer()
    normalizer = _normalizer(lower=lower)

    def ids_by_pair(special_tokens: list[Any], sizes: dict[str, int]) -> dict[str, int]:
        """Return the vocabulary of BPE with a mark for pieces inside words."""
        library = tk.Tokenizer(tk.models.BPE())
        library.normalizer, library.pre_tokenizer = normalizer, splitter
        settings = {"special_tokens": special_tokens, "continuing_subword_prefix": INSIDE, **sizes}
        _train(library, texts, settings)
        ids: dict[str, int] = library.get_vocab()
        return ids

    characters = ids_by_pair([*special_tokens], sizes | {"vocab_size": 0})
    inside = sorted(piece for piece in characters if len(piece) == 3 and piece.startswith(INSIDE))
    ids = ids_by_pair([*special_tokens, *inside], sizes)
    library = tk.Tokenizer(tk.models.WordPiece(ids, unk_token="[UNK]"))
    library.normalizer, library.pre_tokenizer = normalizer, splitter
    library.decoder = tk.decoders.WordPiece()
    library.add_special_tokens([*special_tokens])
    return library


def bpe(
    texts: Sequence[str],
    special_tokens: Sequence[Any],
    sizes: dict[str, int],
    *,
    lower: bool,
    keeps_spaces: bool,
) -> Any:
    """Return a tokenizer of BPE of bytes; without `keeps_spaces`, a text begins with a space."""
    tk = tokenizers_library()
    library = tk.Tokenizer(tk.models.BPE())
    library.normalizer = _normalizer(lower=lower, begins_with_space=not keeps_spaces)
    of_bytes = tk.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    splitter = tk.pre_tokenizers.Split(tk.Regex(PIECES), "isolated")
    library.pre_tokenizer = tk.pre_tokenizers.Sequence([splitter, of_bytes])
    library.decoder = tk.decoders.ByteLevel()
    all_bytes = tk.pre_tokenizers.ByteLevel.alphabet()
    settings = {"special_tokens": [*special_tokens], "initial_alphabet": all_bytes, **sizes}
    _train(library, texts, settings)
    return library


def _normalizer(*, lower: bool, begins_with_space: bool = False) -> Any:
    """Return what texts go through first: NFC, lower case, a space at their beginning."""
    tk = tokenizers_library()
    kinds = tk.normalizers
    steps = [kinds.NFC()]
    if lower:
        steps.append(kinds.Lowercase())
    if begins_with_space:  # ByteLevel's add_prefix_space would give one to each piece
        steps += [kinds.Prepend(" "), kinds.Replace(tk.Regex(r"\A  "), " ")]
    return kinds.Sequence(steps)


def _train(library: Any, texts: Sequence[str], settings: dict[str, Any]) -> None:
    """Give a tokenizer of BPE the vocabulary and the merges of some texts."""
    trainer = tokenizers_library().trainers.BpeTrainer(show_progress=False, **settings)
    with one_thread():
        library.train_from_iterator(texts, trainer)
