"""Train WordPiece and BPE; the vocabulary of the same texts is the same in every process.

The trainer of WordPiece in `tokenizers` 0.23 numbers the characters inside words in the order of a
hash map with random keys, and so breaks ties between frequent pairs differently in each process.
That trainer is the trainer of BPE with a mark for pieces inside words. Here it gets these
characters sorted, as special tokens: then only counts and ids decide, not the process, its threads
or the order of the texts.
"""

from collections.abc import Sequence
from typing import Any

from npformer.data.tokenizers.hugging_face import one_thread, tokenizers_library

INSIDE = "##"
"""Prefix of the WordPiece tokens that do not begin a word."""

LETTERS = r"\p{L}[\p{L}\p{M}\x{200C}\x{200D}]*"
"""Letters with their marks, such as the vowel signs of Hindi, and the joiners among them."""

PIECES = (
    rf"'s|'t|'re|'ve|'m|'ll|'d| ?{LETTERS}| ?\p{{N}}[\p{{N}}\p{{M}}]*| ?[^\s\p{{L}}\p{{N}}]+"
    r"|\s+(?!\S)|\s+"
)
"""Splits texts before BPE, as in GPT-2, which, however, splits marks from their letters."""


def wordpiece(
    texts: Sequence[str], special_tokens: Sequence[Any], sizes: dict[str, int], *, lower: bool
) -> Any:
    """Return a WordPiece tokenizer; `sizes` are `vocab_size` and `min_frequency`."""
    tk = tokenizers_library()
    splitter = tk.pre_tokenizers.BertPreTokenizer()
    normalizer = _normalizer(lower=lower)

    def train_vocabulary(special_tokens: list[Any], sizes: dict[str, int]) -> dict[str, int]:
        """Return the vocabulary, by token, of BPE with a mark for pieces inside words."""
        library = tk.Tokenizer(tk.models.BPE())
        library.normalizer, library.pre_tokenizer = normalizer, splitter
        settings = {"special_tokens": special_tokens, "continuing_subword_prefix": INSIDE, **sizes}
        _train(library, texts, settings)
        vocabulary: dict[str, int] = library.get_vocab()
        return vocabulary

    characters = train_vocabulary([*special_tokens], sizes | {"vocab_size": 0})
    inside = sorted(token for token in characters if len(token) == 3 and token.startswith(INSIDE))
    vocabulary = train_vocabulary([*special_tokens, *inside], sizes)
    library = tk.Tokenizer(tk.models.WordPiece(vocabulary, unk_token="[UNK]"))
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
    """Return a byte-level BPE tokenizer.

    `keeps_spaces`: texts are encoded unchanged; otherwise each gets a space at its beginning.
    """
    tk = tokenizers_library()
    library = tk.Tokenizer(tk.models.BPE())
    library.normalizer = _normalizer(lower=lower, begins_with_space=not keeps_spaces)
    byte_level = tk.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    splitter = tk.pre_tokenizers.Split(tk.Regex(PIECES), "isolated")
    library.pre_tokenizer = tk.pre_tokenizers.Sequence([splitter, byte_level])
    library.decoder = tk.decoders.ByteLevel()
    all_bytes = tk.pre_tokenizers.ByteLevel.alphabet()
    settings = {"special_tokens": [*special_tokens], "initial_alphabet": all_bytes, **sizes}
    _train(library, texts, settings)
    return library


def _normalizer(*, lower: bool, begins_with_space: bool = False) -> Any:
    """Return the first step of a tokenizer: NFC, lower case, a space at the beginning."""
    tk = tokenizers_library()
    normalizers = tk.normalizers
    steps = [normalizers.NFC()]
    if lower:
        steps.append(normalizers.Lowercase())
    if begins_with_space:  # ByteLevel's add_prefix_space would give one to each piece
        steps.append(normalizers.Prepend(" "))
        steps.append(normalizers.Replace(tk.Regex(r"\A  "), " "))
    return normalizers.Sequence(steps)


def _train(library: Any, texts: Sequence[str], settings: dict[str, Any]) -> None:
    """Train a BPE tokenizer: set its vocabulary and its merges."""
    trainer = tokenizers_library().trainers.BpeTrainer(show_progress=False, **settings)
    with one_thread():
        library.train_from_iterator(texts, trainer)
