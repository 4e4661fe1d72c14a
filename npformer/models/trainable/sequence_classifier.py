"""SequenceClassifier: the model for classification that users call."""

from __future__ import annotations

from npformer.models import SequenceModel
from npformer.models.trainable.padded import Padded
from npformer.training.storage.models import MODELS


class SequenceClassifier(Padded, SequenceModel):
    """A classifier of sequences: logits = classify(pool(encoder(embed(x)))).

    Parameters
    ----------
    config : EncoderConfig
    n_classes : int
        At least 2.
    vocab_size, n_features : int, optional
        Exactly one of them. With `vocab_size`, x holds token ids, (batch, length), from 0 to
        vocab_size - 1; with `n_features`, feature vectors, (batch, length, n_features).
    pooling : {"mean", "max", "first", "flatten", "none", "pooler"}
        What is classified; a name in `npformer.layers.POOLINGS`. "mean": the mean of the tokens
        that the mask keeps. "max": the largest value of each feature among these. "first": the
        first of these. "flatten": all tokens, concatenated, with 0 for padding; every sequence then
        has max_len tokens. "none": each token separately. "pooler": the first token that the mask
        keeps, after a linear layer and tanh, as in BERT; "pooler(activation='relu')" is
        DistilBERT's.
    output : {"softmax", "sigmoid", "mean_squared_error"}
        The kind of outputs, and so the loss; a name in `npformer.losses.LOSSES`. "softmax":
        n_classes logits. "sigmoid", for two classes: a single logit, of class 1.
        "mean_squared_error": n_classes numbers, for regression.
    seed : int or numpy.random.Generator
        For the initial weights.
    dtype : {"float32", "float64"}
    """

    n_classes: int


MODELS["SequenceClassifier"] = SequenceClassifier
