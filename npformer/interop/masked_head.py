"""The head for hidden tokens in transformers' folders: read, and written back."""

from typing import Any

from npformer.data.tokenizers import LibraryTokenizer
from npformer.interop.architecture import Architecture, Arrays, Head, Settings
from npformer.interop.encoders import newer_name
from npformer.interop.heads import check_settings
from npformer.models.trainable import MaskedLanguageModel

PARAMETERS = "dense.weight", "dense.bias", "norm.gamma", "norm.beta", "output.bias"
BIASES = {"head_bias": "dense.bias", "output_bias": "output.bias"}
"""{argument of a `MaskedLanguageModel`: the parameter that it is about}."""


def read_masked_head(
    architecture: Architecture, hf_config: Settings, state: Arrays
) -> Arrays | None:
    """Return the head's arrays under our names and in our layout; None if a folder has none."""
    head = architecture.head_of(hf_config, (architecture.masked,))
    if head is None:
        return None
    whole, newer = architecture.with_head(head), {newer_name(k): v for k, v in state.items()}
    there = [name for name in PARAMETERS if whole.places([name]).keys() <= newer.keys()]
    return whole.ours(there, newer)


def special_ids_of(tokenizer: object, vocab_size: int) -> list[int]:
    """Return the ids of a model that stand for no text, as far as a folder's tokenizer says.

    They are those of special tokens, and those that no token has.
    """
    if not isinstance(tokenizer, LibraryTokenizer):
        return []
    added = tokenizer.library.get_added_tokens_decoder().items()
    special = [id for id, token in added if token.special]
    return special + tokenizer.ids_without_token(vocab_size)


def masked_head_for(
    architecture: Architecture, config: Settings, model: MaskedLanguageModel
) -> tuple[Head, dict[str, Any]]:
    """Return the head that computes what a model does, and what config.json says about it.

    ValueError if transformers has none.
    """
    head = architecture.masked
    if head is None:
        raise ValueError(
            f"npformer knows no head for hidden tokens of transformers' {architecture.family}; "
            "expected head=False, which writes the encoder, or npformer.save"
        )
    check_settings(architecture, head, config)
    lacks = [name for name in BIASES if not getattr(model, name)]
    if other := [name for name in lacks if name not in head.flags]:
        raise ValueError(
            f"the model has {other[0]}=False; expected True, as transformers' "
            f"{architecture.class_name(head)} has. npformer.save writes any model"
        )
    flags = {theirs: getattr(model, ours) for ours, theirs in head.flags.items()}
    return head, {"architectures": [architecture.class_name(head)], **head.settings, **flags}
