"""The question "export": the run as one HTML file that needs no server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npformer.data.tokenizers.tokenizer import Tokenizer
from npformer.learn.play.export import N_SAMPLES, exported
from npformer.learn.play.remote import groups_of
from npformer.learn.play.seen import Names
from npformer.learn.play.state import Now
from npformer.learn.play.trained import INK

LEFT_OUT = ("file", "text_column", "label_column", "bug")
"""Settings with places on this machine, or that are shown elsewhere."""


def export(now: Now, points: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return {"html": the page}, with the weights as they are."""
    work, state, settings = now.work, now.training, now.settings.to_dict()
    inputs, targets, masks = work.sample(slice(0, N_SAMPLES))
    if work.kind == "pair":
        inputs, masks = inputs[0], None  # the source; its padding has an id
    run = {
        "settings": {k: v for k, v in settings.items() if k not in LEFT_OUT},
        "kind_of_input": work.kind,
        "classes": work.classes,
        "bug": now.settings.bug,
        "layers": [name for name, _ in groups_of(now.model)],
    }
    facts = {"step": f"{state.step} of {state.n_steps * state.epochs}"}
    data = inputs, targets, masks
    more: dict[str, Any] = {"names": names_of(work), "ink": INK, "facts": facts}
    return {"html": exported(now.plain, run=run, points=points, data=data, **more)}


def names_of(work: Any) -> Names:
    """Return what tokens and classes of a run's data are called."""
    pipeline = getattr(work, "pipeline", None)
    if pipeline is None:
        n = work.data.vocab_size
        return Names(None if n is None else [str(id) for id in range(n)], work.classes)
    if work.kind == "pair":
        source, target = (_tokens(each) for each in pipeline.tokenizers_)
        return Names(source, targets=target)
    return Names(classes=work.classes, tokenizer=pipeline.tokenizer_)


def _tokens(tokenizer: Tokenizer) -> list[str]:
    return tokenizer.tokens(range(tokenizer.vocab_size))
