"""Architecture: how transformers stores a family of models, as a table."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

TABLES = ("embed.tokens.weight", "embed.positions.table", "embed.types.weight")
"""Our names of two-dimensional parameters that are not weights of a linear layer."""

POSITIONS = "embed.positions.table"


@dataclass(frozen=True)
class Head:
    """The layers of a task, on top of an encoder.

    Attributes
    ----------
    task : str
        The end of its class names, as in BertForSequenceClassification; "" if transformers has no
        class for it.
    pooling : str
        The pooling of a `SequenceClassifier` that computes the same.
    layers : mapping of str to str
        {our layer: their layer}.
    """

    task: str
    pooling: str
    layers: Mapping[str, str]


@dataclass(frozen=True)
class Architecture:
    """How transformers stores a family of models.

    Attributes
    ----------
    model_type, family, prefix : str
        In config.json; in the names of classes; and before the names of weights, if there is a
        head: "bert", "Bert" (BertModel), "bert.".
    settings : mapping of str to str
        {our setting: their key in config.json}.
    fixed : mapping of str to object
        Our settings that all models of the family have.
    unused : mapping of str to object
        Our settings that have no effect in the family, and their values.
    defaults : mapping of str to object
        The values of their keys that a config.json leaves out.
    embedding, block : mapping of str to str
        {our layer: their layer}, of the embedding, and inside a block.
    blocks : str
        Where their blocks are.
    pooler : str
        Their pooler; "" if there is none.
    heads : sequence of Head
    token_types : bool
        Whether their tokenizer tells the two texts of a pair apart.
    positions_after_padding : bool
        Whether the first token has the position pad_token_id + 1. No token uses the rows before
        it: they are cut off when weights are read, and put back when they are written.
    """

    model_type: str
    family: str
    prefix: str
    settings: Mapping[str, str]
    fixed: Mapping[str, Any]
    defaults: Mapping[str, Any]
    embedding: Mapping[str, str]
    block: Mapping[str, str]
    blocks: str
    pooler: str
    heads: tuple[Head, ...]
    unused: Mapping[str, Any] = field(default_factory=dict)
    token_types: bool = True
    positions_after_padding: bool = False

    def class_name(self, head: Head | None = None) -> str:
        """Return the name of their class: BertModel, or the one with a head."""
        return self.family + ("Model" if head is None else f"For{head.task}")

    def head_of(self, hf_config: Mapping[str, Any]) -> Head | None:
        """Return the head that a configuration names, if it is one of `heads`."""
        classes = hf_config.get("architectures") or ()
        found = [head for head in self.heads if self.class_name(head) in classes]
        return found[0] if found else None

    def unused_positions(self, hf_config: Mapping[str, Any]) -> int:
        """Return how many rows at the start of the position table no token uses."""
        if not self.positions_after_padding:
            return 0
        padding_id = hf_config.get("pad_token_id")
        return 1 + int(self.defaults["pad_token_id"] if padding_id is None else padding_id)

    def names(self, n_layers: int, *, pooler: bool) -> dict[str, str]:
        """Return {our name: their name} of all parameters of an encoder, in order."""
        layers = dict(self.embedding)
        for i in range(n_layers):
            for ours, theirs in self.block.items():
                layers[f"encoder.blocks.{i}.{ours}"] = f"{self.blocks}.{i}.{theirs}"
        if pooler:
            layers["pool.dense"] = self.pooler
        return parameter_names(layers)

    def names_with(self, head: Head, n_layers: int) -> dict[str, str]:
        """Return {our name: their name} of all parameters of a model with a head."""
        pooler = head.pooling.startswith("pooler") and "pool.dense" not in head.layers
        encoder = self.names(n_layers, pooler=pooler)
        prefixed = {ours: f"{self.prefix}{theirs}" for ours, theirs in encoder.items()}
        return prefixed | parameter_names(head.layers)


def parameter_names(layers: Mapping[str, str]) -> dict[str, str]:
    """Return {our parameter: their parameter} of layers, {our layer: their layer}."""
    return {
        f"{ours}.{own}": f"{theirs}.{their_own}"
        for ours, theirs in layers.items()
        for own, their_own in _inside(ours)
    }


def _inside(layer: str) -> Iterator[tuple[str, str]]:
    """Yield (our name, their name) of the parameters of one of our layers."""
    if layer == "embed.positions":
        yield "table", "weight"
    elif f"{layer}.weight" in TABLES:
        yield "weight", "weight"
    elif layer.endswith("norm"):
        yield from (("gamma", "weight"), ("beta", "bias"))
    else:
        yield from (("weight", "weight"), ("bias", "bias"))


def transposed(ours: str, array: Any) -> Any:
    """Transpose the weight of a linear layer, (in, out) <-> (out, in); leave others as they are."""
    return array.T if array.ndim == 2 and ours not in TABLES else array
