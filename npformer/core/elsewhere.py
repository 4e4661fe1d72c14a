"""What other libraries call an argument: an error says its name here."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from npformer.core import checks

P = ParamSpec("P")
R = TypeVar("R")

PAIRS = (
    "hidden_size=d_model embed_dim=d_model embedding_dim=d_model n_embd=d_model dim=d_model "
    "num_layers=n_layers num_hidden_layers=n_layers depth=n_layers nhead=n_heads num_heads=n_heads "
    "num_attention_heads=n_heads dim_feedforward=d_ff intermediate_size=d_ff torch_dtype=dtype "
    "max_position_embeddings=max_len num_labels=n_classes num_classes=n_classes verbose=progress "
    "padding_idx=padding_id attention_mask=mask key_padding_mask=mask token_type_ids=types "
    "learning_rate=lr num_epochs=epochs validation_data=validation max_grad_norm=clip_norm"
)
"""Names in PyTorch, Keras, scikit-learn and Hugging Face's libraries, each with that here."""
ELSEWHERE = dict(pair.split("=") for pair in PAIRS.split())


def in_our_words(call: Callable[P, R]) -> Callable[P, R]:
    """Make a function say which arguments it takes, if it is given another."""
    known = [name for name in signature(call).parameters if name != "self"]
    takes = f"it takes {', '.join(known)}"

    @wraps(call)
    def checked(*values: P.args, **named: P.kwargs) -> R:
        for name in named:
            if name not in known:
                hint = checks.did_you_mean(ELSEWHERE.get(name, name), known)
                what = call.__qualname__.removesuffix(".__init__")
                raise TypeError(f"{what} takes no {name!r}; {takes}{hint}")
        return call(*values, **named)

    return checked
