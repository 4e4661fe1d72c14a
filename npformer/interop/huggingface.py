"""Weights of BERT and FNet from Hugging Face's transformers, and back.

    encoder = npformer.interop.from_bert(state, config)
    hidden, pooled = encoder(ids, mask, types)

`npformer.from_pretrained` reads a whole folder, and more types of models. PyTorch is not needed
here, only a mapping of names to NumPy arrays, such as safetensors returns::

    import json, safetensors.numpy
    state = safetensors.numpy.load_file("model.safetensors")
    config = json.load(open("config.json"))

or a model in memory: ``state = {k: v.numpy() for k, v in bert.state_dict().items()}`` and
``config = bert.config.to_dict()``.

The encoder has its pooler, but not the layers of a pretrained model's task (``cls.``,
``classifier.``, ``qa_outputs.``). To fine-tune a classifier, copy the weights by name::

    model = npformer.SequenceClassifier(
        encoder.config,
        n_classes,
        vocab_size=encoder.vocab_size,
        pooling="pooler",
        dtype=encoder.dtype,
    )
    for name, array in encoder.parameters().items():
        model.parameters()[name][...] = array

One thing differs in training, and nothing at evaluation: the embedding of the padding token is
trained like any other, while PyTorch keeps its gradient at 0 (``padding_idx``). With a padding mask
it is 0 here, too.
"""

from npformer.core import checks
from npformer.interop.architecture import Arrays, Settings, Weights, values_of
from npformer.interop.families import ARCHITECTURES
from npformer.models.trainable.text_encoder import TextEncoder


def from_bert(state: Weights, hf_config: Settings) -> TextEncoder:
    """Return a `TextEncoder` with the weights of a BERT.

    Parameters
    ----------
    state : mapping of str to array
        All float32 or all float64, under the names of ``BertModel``, with or without the prefix
        ``bert.``; LayerNorm's weights may have their older names, ``gamma`` and ``beta``.
    hf_config : mapping
        ``BertConfig(...).to_dict()``, or the content of config.json. Settings that it leaves out
        have their default values.

    Returns
    -------
    encoder : TextEncoder
        In the dtype of `state`, with a pooler if `state` has one.

    Notes
    -----
    Devlin et al., 2019, arXiv 1810.04805. Weights of linear layers are transposed, from (out, in)
    to (in, out); nothing else is changed, and `to_bert` returns exactly the same arrays.
    """
    return ARCHITECTURES["bert"].read(hf_config, state)  # type: ignore[no-any-return]


def from_fnet(state: Weights, hf_config: Settings, *, padding: str = "refuse") -> TextEncoder:
    """Return a `TextEncoder` with the weights of an FNet (Lee-Thorp et al., arXiv 2105.03824).

    Parameters
    ----------
    state, hf_config : mapping
        As in `from_bert`, of ``FNetModel``.
    padding : {"refuse", "per_length", "zero"}
        What to do with a padding mask: see `EncoderConfig`. The published model takes none, and
        treats padding like any other token; without a mask, so does this one.
    """
    return ARCHITECTURES["fnet"].read(hf_config, state, padding)  # type: ignore[no-any-return]


# And back -----------------------------------------------------------------------------------------


def to_bert(encoder: TextEncoder) -> Arrays:
    """Return the weights of a `TextEncoder` under the names and in the layout of ``BertModel``.

    Parameters
    ----------
    encoder : TextEncoder
        With the architecture of a BERT, as `from_bert` makes it.

    Returns
    -------
    state : dict of str to array
        Copies, on the host. For PyTorch:
        ``model.load_state_dict({k: torch.from_numpy(v) for k, v in state.items()})``.
    """
    return _export("bert", encoder)


def to_fnet(encoder: TextEncoder) -> Arrays:
    """Return the weights of a `TextEncoder` as those of ``FNetModel``; see `to_bert`."""
    return _export("fnet", encoder)


def _export(name: str, encoder: TextEncoder) -> Arrays:
    """Return the weights of an encoder in the layout of a family, after checking that it fits."""
    checks.instance("encoder", encoder, TextEncoder)
    family = ARCHITECTURES[name]
    family.check_fits(encoder)
    return family.their_arrays(values_of(encoder))
