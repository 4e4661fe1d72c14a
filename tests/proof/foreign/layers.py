"""Layers, losses and models in the styles of other people's code, each with a wrong sibling."""

import numpy as np


class Linear:
    """Keeps its input; gradients in dW and db."""

    def __init__(self, d_in, d_out, scale=1.0):
        rng = np.random.default_rng(0)
        self.W = rng.normal(size=(d_in, d_out))
        self.b = np.zeros(d_out)
        self.scale = scale

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, dout):
        self.dW = self.scale * (self.x.T @ dout)
        self.db = dout.sum(axis=0)
        return dout @ self.W.T


class LinearInFloat32:
    """Float32 weights, gradients under weight_grad and bias_grad that are added up."""

    def __init__(self, in_features, out_features, batch_mean=False):
        rng = np.random.default_rng(1)
        self.weight = rng.normal(size=(out_features, in_features)).astype(np.float32)
        self.bias = np.zeros(out_features, dtype=np.float32)
        self.weight_grad = np.zeros_like(self.weight)
        self.bias_grad = np.zeros_like(self.bias)
        self.batch_mean = batch_mean

    def __call__(self, x):
        self.input = x
        return x @ self.weight.T + self.bias

    def backward(self, grad_output):
        n = len(grad_output) if self.batch_mean else 1
        self.weight_grad += grad_output.T @ self.input / n
        self.bias_grad += grad_output.sum(axis=0)
        return grad_output @ self.weight


class Parameter:
    def __init__(self, data):
        self.data = data
        self.grad = None


class NormWithParameters:
    """Parameters are objects with data and grad; a list of them."""

    def __init__(self, d, with_mean_terms=True):
        self.gamma = Parameter(1.0 + 0.1 * np.arange(d))
        self.beta = Parameter(np.zeros(d))
        self.params = [self.gamma, self.beta]
        self.with_mean_terms = with_mean_terms

    def forward(self, x):
        mean = x.mean(axis=-1, keepdims=True)
        std = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
        z = (x - mean) / std
        self.cache = z, std
        return self.gamma.data * z + self.beta.data

    def backward(self, dy):
        z, std = self.cache
        axes = tuple(range(dy.ndim - 1))
        self.gamma.grad = (dy * z).sum(axis=axes)
        self.beta.grad = dy.sum(axis=axes)
        dz = dy * self.gamma.data
        if self.with_mean_terms:
            dz = dz - dz.mean(-1, keepdims=True) - z * (dz * z).mean(-1, keepdims=True)
        return dz / std


class FeedForwardWithDictionaries:
    """params and grads are dictionaries with the same keys."""

    def __init__(self, d, hidden, bias_key="b1"):
        rng = np.random.default_rng(2)
        self.params = {
            "W1": rng.normal(size=(d, hidden)),
            "b1": np.zeros(hidden),
            "W2": rng.normal(size=(hidden, d)),
        }
        self.grads = {}
        self.bias_key = bias_key

    def forward(self, x):
        h = np.maximum(x @ self.params["W1"] + self.params["b1"], 0)
        self.saved = (x, h)
        return h @ self.params["W2"]

    def backward(self, dout):
        x, h = self.saved
        dh = (dout @ self.params["W2"].T) * (h > 0)
        self.grads["W2"] = h.T @ dout
        self.grads["W1"] = x.T @ dh
        self.grads[self.bias_key] = dh.sum(0)
        return dh @ self.params["W1"].T


class UpdatesItself:
    """The backward pass takes the learning rate and updates the weights."""

    def __init__(self, n_in, n_out, late=False):
        rng = np.random.default_rng(3)
        self.weights = rng.normal(size=(n_in, n_out))
        self.bias = rng.normal(size=(1, n_out))
        self.late = late  # whether dx is computed with the new weights

    def forward(self, input_data):
        self.input = input_data
        self.output = np.dot(input_data, self.weights) + self.bias
        return self.output

    def backward(self, output_error, learning_rate):
        weights = self.weights.copy()
        weights_error = np.dot(self.input.T, output_error)
        self.weights -= learning_rate * weights_error
        self.bias -= learning_rate * np.sum(output_error, axis=0, keepdims=True)
        return np.dot(output_error, (self.weights if self.late else weights).T)


class SoftmaxOfOutputs:
    """forward returns None and leaves its output; backward leaves dinputs."""

    def __init__(self, diagonal_alone=False):
        self.diagonal_alone = diagonal_alone

    def forward(self, inputs):
        e = np.exp(inputs - inputs.max(axis=1, keepdims=True))
        self.output = e / e.sum(axis=1, keepdims=True)

    def backward(self, dvalues):
        s = self.output
        self.dinputs = s * dvalues
        if self.diagonal_alone:
            self.dinputs = s * (1 - s) * dvalues
        else:
            self.dinputs -= s * (s * dvalues).sum(axis=1, keepdims=True)


class Embedding:
    """Repeated ids add up."""

    def __init__(self, vocab_size, d_model, assigns=False):
        self.weights = np.random.default_rng(4).normal(size=(vocab_size, d_model))
        self.assigns = assigns

    def forward(self, ids):
        self.ids = ids
        return self.weights[ids]

    def backward(self, dout):
        self.dweights = np.zeros_like(self.weights)
        if self.assigns:
            self.dweights[self.ids] = dout
        else:
            np.add.at(self.dweights, self.ids, dout)


class Block:
    """A residual block of two layers in a list, with gradients in each of them."""

    def __init__(self, d, forgets_residual=False):
        self.layers = [Linear(d, d + 2), Linear(d + 2, d)]
        self.forgets_residual = forgets_residual

    def forward(self, x):
        h = self.layers[0].forward(x)
        self.mask = h > 0
        return x + self.layers[1].forward(h * self.mask)

    def backward(self, dout):
        dh = self.layers[1].backward(dout) * self.mask
        dx = self.layers[0].backward(dh)
        return dx if self.forgets_residual else dx + dout


class ReturnsAll:
    """backward returns (dx, dW, db)."""

    def __init__(self, d_in, d_out, transposed=False):
        rng = np.random.default_rng(5)
        self.kernel = rng.normal(size=(d_in, d_out))
        self.bias = rng.normal(size=d_out)
        self.transposed = transposed

    def forward(self, x):
        return x @ self.kernel + self.bias, x

    def backward(self, dy, cache):
        dkernel = cache.T @ dy
        if self.transposed:
            dkernel = dkernel.T.reshape(dkernel.shape)
        return dy @ self.kernel.T, dkernel, dy.sum(axis=0)


class CrossEntropy:
    """A loss with labels; backward takes nothing."""

    def __init__(self, averages_gradient=True):
        self.averages_gradient = averages_gradient

    def forward(self, logits, labels):
        e = np.exp(logits - logits.max(axis=-1, keepdims=True))
        self.p = e / e.sum(axis=-1, keepdims=True)
        self.labels = labels
        n = len(labels)
        return -np.log(self.p[np.arange(n), labels]).mean()

    def backward(self):
        n = len(self.labels)
        dlogits = self.p.copy()
        dlogits[np.arange(n), self.labels] -= 1
        return dlogits / n if self.averages_gradient else dlogits


class TwoLayerNet:
    """loss(X, y) returns (loss, grads), as courses have it."""

    def __init__(self, d, hidden, classes, regularized_twice=False):
        rng = np.random.default_rng(6)
        self.params = {
            "W1": 0.5 * rng.normal(size=(d, hidden)),
            "b1": np.zeros(hidden),
            "W2": 0.5 * rng.normal(size=(hidden, classes)),
            "b2": np.zeros(classes),
        }
        self.regularized_twice = regularized_twice

    def loss(self, X, y, reg=0.1):
        W1, b1, W2, b2 = (self.params[name] for name in ("W1", "b1", "W2", "b2"))
        h = np.maximum(0, X @ W1 + b1)
        scores = h @ W2 + b2
        p = np.exp(scores - scores.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        n = len(X)
        loss = -np.log(p[np.arange(n), y]).mean() + 0.5 * reg * ((W1**2).sum() + (W2**2).sum())
        p[np.arange(n), y] -= 1
        p /= n
        factor = 2.0 if self.regularized_twice else 1.0
        dh = (p @ W2.T) * (h > 0)
        grads = {
            "W2": h.T @ p + factor * reg * W2,
            "b2": p.sum(0),
            "W1": X.T @ dh + factor * reg * W1,
            "b1": dh.sum(0),
        }
        return loss, grads


def mse(prediction, target):
    difference = prediction - target
    return (difference**2).mean(), 2 * difference / difference.size


def mse_without_mean(prediction, target):
    difference = prediction - target
    return (difference**2).mean(), 2 * difference


def log_loss(p, target):
    """log(p + eps), with the gradient of log p."""
    return -(target * np.log(p + 0.05)).sum(), -target / (p + 0.05)


def log_loss_without_eps(p, target):
    return -(target * np.log(p + 0.05)).sum(), -target / p
