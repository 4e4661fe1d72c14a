"""Where the museum of bugs shows a kind of error that a gradcheck has named."""

import re

PAGE = "https://github.com/npformer/npformer/blob/main/docs/museum.md"

DIVIDED_BY_BATCH = re.compile(r"1/\d+ of the derivative; .*the batch size")

TRANSPOSED = "34. The gradient of a matrix is computed transposed, and reshaped until it fits."

TITLES = {
    "averaged ids": "30. A repeated id gets the mean of its gradients, and not their sum.",
    "averaged tokens": "28. The loss is averaged over all tokens, and its gradient over sequences.",
    "batch": "1. The backward pass of softmax divides by the batch size.",
    "diagonal": (
        "36. The backward pass of softmax is y (1 - y), the derivative of each entry by itself."
    ),
    "dropout": (
        "39. Dropout divides what it keeps by p, the probability of dropping, and not by 1 - p."
    ),
    "dy ignored": (
        "33. A gradient is tested with a dy of ones, as if the loss were the sum of the outputs."
    ),
    "epsilon": "27. The loss is -log(p + eps), and its gradient is the one of -log p.",
    "factor missing": "4. The backward pass of layer norm forgets gamma.",
    "masked": "21. The padding mask is inverted.",
    "repeated ids": "30. A repeated id gets the gradient of its last occurrence alone.",
    "reshaped": TRANSPOSED,
    "residual missing": (
        "31. The backward pass of a block goes through the feed-forward network, and not around it."
    ),
    "residual through": (
        "31. The backward pass of a pre-norm block sends the residual's gradient through the norm."
    ),
    "saved output": (
        "38. An activation keeps its result for the backward pass, which expects its input."
    ),
    "target by value": (
        "35. The backward pass finds the right class by the value of its probability."
    ),
    "tied": "37. An output that shares the table of an embedding adds nothing to its gradient.",
    "transposed": TRANSPOSED,
    "zero": "32. A parameter without a gradient of its name gets a gradient of 0.",
}
"""The heading of a bug, for each kind that is one of the museum's."""


def museum_link(kind: str, words: str) -> tuple[str, str] | None:
    """Return the heading and the address of the museum's entry for a pattern, or None."""
    if kind == "factor" and DIVIDED_BY_BATCH.search(words):
        kind = "batch"
    if "1 / p stands for" in words:
        kind = "dropout"
    title = TITLES.get(kind)
    return None if title is None else (title.rstrip("."), f"{PAGE}#{anchor(title)}")


def anchor(heading: str) -> str:
    """Return the fragment by which a heading is found: words in small letters, with hyphens."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
