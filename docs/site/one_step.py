"""Every array of one training step of a small encoder, as docs/training_step.md shows them.

The pairs of ``npformer.functional`` run one after another, as in examples/one_step_by_hand.py, with
one image of a digit. tests/docs/test_training_step.py compares the arrays with those that
`nf.trace` and `loss_and_gradients` give for the model itself.
"""

from typing import Any

import numpy as np

import npformer as nf

F = nf.functional
HEADS = 2


def model_and_sample() -> tuple[nf.SequenceClassifier, Any, Any]:
    """Return the model before its first step, and a batch of one image with its label."""
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=HEADS, d_ff=16, max_len=8)
    model = nf.SequenceClassifier(config, 10, n_features=8, seed=0, dtype="float64")
    images, labels = nf.data.digits(dtype="float64").train
    return model, images[:1], labels[:1]


def arrays() -> dict[str, Any]:
    """Return the arrays by name: the forward pass, gradients, and Adam's arrays for a weight."""
    model, image, label = model_and_sample()
    p = {name: each.value for name, each in model.named_parameters().items()}
    found: dict[str, Any] = {"image": image, "label": label}
    caches = _forward(found, p)
    _backward(found, caches)
    _update(found, model)
    return {name: _one_sample(name, np.asarray(each)) for name, each in found.items()}


def _weights(p: dict[str, Any], layer: str) -> tuple[Any, Any]:
    """Return a layer's two parameters: W and b, or gamma and beta."""
    block = "" if layer in ("embed.tokens", "classify") else "encoder.blocks.0."
    return tuple(each for name, each in p.items() if name.startswith(f"{block}{layer}."))  # type: ignore[return-value]


def _forward(a: dict[str, Any], p: dict[str, Any]) -> dict[str, Any]:
    """Add the arrays of the forward pass; return the caches."""
    c: dict[str, Any] = {}
    a["W_embed"], b = _weights(p, "embed.tokens")
    a["e"], c["embed"] = F.linear(a["image"], a["W_embed"], b)
    a["P"] = p["embed.positions.table"]
    a["x"] = a["e"] + a["P"]
    for name, layer in (("q", "query"), ("k", "key"), ("v", "value")):
        a[name], c[name] = F.linear(a["x"], *_weights(p, f"mixer.{layer}"))
    q, k, v = (F.split_heads(a[name], HEADS) for name in "qkv")
    a["S"], c["S"] = F.attention_scores(q, k)
    a["A"], _ = F.averaging_weights(a["S"])
    heads, c["average"] = F.average(a["S"], v)
    a["heads"] = F.merge_heads(heads)
    a["mixed"], c["mixed"] = F.linear(a["heads"], *_weights(p, "mixer.output"))
    a["s"] = a["x"] + a["mixed"]
    a["h"], c["h"] = F.layer_norm(a["s"], *_weights(p, "mixer_norm"))
    a["u"], c["u"] = F.linear(a["h"], *_weights(p, "feed_forward.expand"))
    a["hidden"], c["hidden"] = F.gelu(a["u"])
    a["f"], c["f"] = F.linear(a["hidden"], *_weights(p, "feed_forward.contract"))
    a["t"] = a["h"] + a["f"]
    a["z"], c["z"] = F.layer_norm(a["t"], *_weights(p, "feed_forward_norm"))
    a["pooled"], c["pooled"] = F.mean_pooling(a["z"])
    a["logits"], c["logits"] = F.linear(a["pooled"], *_weights(p, "classify"))
    a["p"], _ = F.softmax(a["logits"])
    a["loss"], c["loss"] = F.softmax_cross_entropy(a["logits"], a["label"])
    return c


def _backward(a: dict[str, Any], c: dict[str, Any]) -> None:
    """Add the gradients, from the loss down: da is the gradient of the loss with respect to a."""
    a["dlogits"] = F.softmax_cross_entropy_backward(1.0, c["loss"])
    a["dpooled"], a["dW_classify"], a["db_classify"] = F.linear_backward(a["dlogits"], c["logits"])
    a["dz"] = F.mean_pooling_backward(a["dpooled"], c["pooled"])
    a["dt"], a["dgamma_2"], a["dbeta_2"] = F.layer_norm_backward(a["dz"], c["z"])
    a["dhidden"], a["dW_2"], a["db_2"] = F.linear_backward(a["dt"], c["f"])
    a["du"] = F.gelu_backward(a["dhidden"], c["hidden"])
    a["dh_through"], a["dW_1"], a["db_1"] = F.linear_backward(a["du"], c["u"])
    a["dh"] = a["dt"] + a["dh_through"]  # h is used in the sum and in the network
    a["ds"], a["dgamma_1"], a["dbeta_1"] = F.layer_norm_backward(a["dh"], c["h"])
    a["dheads"], a["dW_O"], a["db_O"] = F.linear_backward(a["ds"], c["mixed"])
    by_head = F.split_heads(a["dheads"], HEADS)
    a["dA"] = by_head @ F.split_heads(a["v"], HEADS).swapaxes(-1, -2)
    a["dS"], dv = F.average_backward(by_head, c["average"])
    dq, dk = F.attention_scores_backward(a["dS"], c["S"])
    a["dq"], a["dk"], a["dv"] = (F.merge_heads(each) for each in (dq, dk, dv))
    for name in "qkv":
        of_x, of_W, of_b = f"dx_{name}", f"dW_{name.upper()}", f"db_{name.upper()}"
        a[of_x], a[of_W], a[of_b] = F.linear_backward(a[f"d{name}"], c[name])
    # x is used in the sum, the values, the keys and the queries
    a["dx"] = a["ds"] + (a["dx_v"] + (a["dx_k"] + a["dx_q"]))
    _, a["dW_embed"], a["db_embed"] = F.linear_backward(a["dx"], c["embed"])


def _update(a: dict[str, Any], model: nf.SequenceClassifier) -> None:
    """Add what Adam does to the weights of the last linear map, and the loss after its step."""
    before, g = model.parameters()["classify.weight"].copy(), a["dW_classify"]
    a["W_classify"], a["m"], a["v_adam"] = before, 0.1 * g, 0.001 * g * g
    _, gradients = model.loss_and_gradients(a["image"], a["label"])
    nf.Adam(model.parameters()).step(gradients)
    a["step"] = model.parameters()["classify.weight"] - before
    a["loss_after"], _ = model.loss_and_gradients(a["image"], a["label"])


def _one_sample(name: str, array: Any) -> Any:
    """Leave out the axis of the batch, which holds one image."""
    of_sample = (array.ndim > 1 and len(array) == 1) or name == "label"
    return array[0] if of_sample else array
