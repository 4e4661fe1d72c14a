"""Whether an optimizer updates the parameters of a model, and not copies of them."""

from collections.abc import Mapping

from npformer.core import Array, Parameters

OTHER_MODEL = (
    "optimizer's parameters are not this model's; expected exactly the model's own arrays. "
    "After loading, copying or moving a model make a new one: Adam(model.parameters())"
)
CHANGED_MODEL = (
    "the model's parameters are no longer the optimizer's: during the training, a layer was "
    "replaced or a parameter frozen. Expected no change until it ends: change the model before "
    "fit, or call fit again"
)


def check_trains(
    theirs: Mapping[str, Array], ours: Parameters, otherwise: str = OTHER_MODEL
) -> None:
    """Raise ValueError unless an optimizer's parameters are a model's own, not copies of them."""
    if isinstance(theirs, Parameters) and theirs.named == ours.named:
        return  # the usual case
    if list(theirs) != list(ours) or any(theirs[name] is not ours[name] for name in ours):
        raise ValueError(otherwise)
