"""Errors that say more: where something is wrong, or what an argument is called here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from npformer.core.support.wording import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def add_place_to_errors(where: str) -> Iterator[None]:
    """Put `where`, such as "in data, ", in front of TypeErrors and ValueErrors of the body."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}{error}") from error


PAIRS = (
    "hidden_size=d_model embed_dim=d_model embedding_dim=d_model n_embd=d_model dim=d_model "
    "num_layers=n_layers num_hidden_layers=n_layers depth=n_layers nhead=n_heads num_heads=n_heads "
    "num_attention_heads=n_heads dim_feedforward=d_ff intermediate_size=d_ff torch_dtype=dtype "
    "max_position_embeddings=max_len num_labels=n_classes num_classes=n_classes verbose=progress "
    "padding_idx=padding_id attention_mask=mask key_padding_mask=mask token_type_ids=types "
    "learning_rate=lr num_epochs=epochs validation_data=validation max_grad_norm=clip_norm "
    "max_new_tokens=n max_tokens=n eos_token_id=stop stop_strings=stop suppress_tokens=never "
    "num_beams=beams decoder_attention_mask=mask"
)
"""Names in PyTorch, Keras, scikit-learn and Hugging Face's libraries, each with that here."""
ELSEWHERE = dict(pair.split("=") for pair in PAIRS.split())


def refuse_unknown_arguments(call: Callable[P, R]) -> Callable[P, R]:
    """Make a function say which arguments it takes, if it is given another."""
    known = [n for n, p in signature(call).parameters.items() if n != "self" and str(p)[0] != "*"]

    @wraps(call)
    def checked(*values: P.args, **named: P.kwargs) -> R:
        if unknown := [name for name in named if name not in known]:
            hint = did_you_mean(ELSEWHERE.get(unknown[0], unknown[0]), known)
            what = call.__qualname__.removesuffix(".__init__")
            if call.__name__ == "__call__":  # of the class that is called, which may inherit it
                what = f"{type(values[0]).__name__}.__call__"
            raise TypeError(f"{what} takes no {unknown[0]!r}; it takes {', '.join(known)}{hint}")
        return call(*values, **named)

    return checked
