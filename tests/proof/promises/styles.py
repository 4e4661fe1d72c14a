"""Right optimizers, each called in another way."""

from types import SimpleNamespace

import numpy as np


class AdamOfDicts:
    def __init__(self, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8):
        self.lr, self.beta1, self.beta2, self.eps = lr, beta1, beta2, eps
        self.m, self.v, self.t = {}, {}, 0

    def update(self, params, grads):
        self.t += 1
        for name, g in grads.items():
            self.m[name] = self.beta1 * self.m.get(name, 0.0) + (1 - self.beta1) * g
            self.v[name] = self.beta2 * self.v.get(name, 0.0) + (1 - self.beta2) * g * g
            m = self.m[name] / (1 - self.beta1**self.t)
            v = self.v[name] / (1 - self.beta2**self.t)
            params[name] -= self.lr * m / (np.sqrt(v) + self.eps)


class AdamOfFixedLists:
    """It gets the parameters when it is made, and their gradients with each step."""

    def __init__(self, params, learning_rate=0.001, betas=(0.9, 0.99), epsilon=1e-7):
        self.params = params
        self.learning_rate = learning_rate
        self.betas = betas
        self.epsilon = epsilon
        self.ms = [np.zeros_like(p) for p in params]
        self.vs = [np.zeros_like(p) for p in params]
        self.iterations = 0

    def step(self, grads):
        self.iterations += 1
        b1, b2 = self.betas
        for i, (p, g) in enumerate(zip(self.params, grads, strict=True)):
            self.ms[i] = b1 * self.ms[i] + (1 - b1) * g
            self.vs[i] = b2 * self.vs[i] + (1 - b2) * g**2
            m = self.ms[i] / (1 - b1**self.iterations)
            p -= (
                self.learning_rate
                * m
                / (np.sqrt(self.vs[i] / (1 - b2**self.iterations)) + self.epsilon)
            )


class SGDOfTensors:
    """Its parameters have data and grad."""

    def __init__(self, parameters, lr=0.1, momentum=0.9):
        self.parameters = parameters
        self.lr = lr
        self.momentum = momentum
        self.velocities = [0.0 for _ in parameters]

    def step(self):
        for i, p in enumerate(self.parameters):
            self.velocities[i] = self.momentum * self.velocities[i] + p.grad
            p.data = p.data - self.lr * self.velocities[i]


class AdagradOfLayers:
    def __init__(self, learning_rate=1.0, decay=0.0, epsilon=1e-7):
        self.learning_rate = learning_rate
        self.current_learning_rate = learning_rate
        self.decay = decay
        self.iterations = 0
        self.epsilon = epsilon

    def pre_update_params(self):
        if self.decay:
            self.current_learning_rate = self.learning_rate / (1.0 + self.decay * self.iterations)

    def update_params(self, layer):
        if not hasattr(layer, "weight_cache"):
            layer.weight_cache = np.zeros_like(layer.weights)
            layer.bias_cache = np.zeros_like(layer.biases)
        layer.weight_cache += layer.dweights**2
        layer.bias_cache += layer.dbiases**2
        rate = self.current_learning_rate
        layer.weights -= rate * layer.dweights / (np.sqrt(layer.weight_cache) + self.epsilon)
        layer.biases -= rate * layer.dbiases / (np.sqrt(layer.bias_cache) + self.epsilon)

    def post_update_params(self):
        self.iterations += 1


def adam(w, dw, config=None):
    """Update an array; the settings and moments are in a dict."""
    config = {} if config is None else config
    config.setdefault("learning_rate", 1e-3)
    config.setdefault("beta1", 0.9)
    config.setdefault("beta2", 0.999)
    config.setdefault("epsilon", 1e-8)
    config.setdefault("m", np.zeros_like(w))
    config.setdefault("v", np.zeros_like(w))
    config.setdefault("t", 0)
    config["t"] += 1
    config["m"] = config["beta1"] * config["m"] + (1 - config["beta1"]) * dw
    config["v"] = config["beta2"] * config["v"] + (1 - config["beta2"]) * dw**2
    m = config["m"] / (1 - config["beta1"] ** config["t"])
    v = config["v"] / (1 - config["beta2"] ** config["t"])
    return w - config["learning_rate"] * m / (np.sqrt(v) + config["epsilon"]), config


def sgd_momentum(w, dw, config=None):
    config = {} if config is None else config
    config.setdefault("learning_rate", 1e-2)
    config.setdefault("momentum", 0.9)
    v = config.get("velocity", np.zeros_like(w))
    v = config["momentum"] * v - config["learning_rate"] * dw
    config["velocity"] = v
    return w + v, config


def rmsprop(w, dw, config=None):
    config = {} if config is None else config
    config.setdefault("learning_rate", 1e-2)
    config.setdefault("decay_rate", 0.99)
    config.setdefault("epsilon", 1e-8)
    config.setdefault("cache", np.zeros_like(w))
    rho = config["decay_rate"]
    config["cache"] = rho * config["cache"] + (1 - rho) * dw**2
    return w - config["learning_rate"] * dw / (np.sqrt(config["cache"]) + config["epsilon"]), config


def update_parameters_with_adam(
    parameters, grads, v, s, t, learning_rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8
):
    """Update dicts whose gradients are called dW1 and so on."""
    for key in parameters:
        d = "d" + key
        v[d] = beta1 * v[d] + (1 - beta1) * grads[d]
        s[d] = beta2 * s[d] + (1 - beta2) * grads[d] ** 2
        v_hat, s_hat = v[d] / (1 - beta1**t), s[d] / (1 - beta2**t)
        parameters[key] = parameters[key] - learning_rate * v_hat / (np.sqrt(s_hat) + epsilon)
    return parameters, v, s


def adam_step(theta, grad, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8):
    """Return the array and both moments."""
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad**2
    theta = theta - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return theta, m, v


class AdamOfNamedArrays:
    """Weights and biases are arguments of their own, and so is t."""

    def __init__(self, eta=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.m_dw, self.v_dw = 0, 0
        self.m_db, self.v_db = 0, 0
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.eta = eta

    def update(self, t, w, b, dw, db):
        self.m_dw = self.beta1 * self.m_dw + (1 - self.beta1) * dw
        self.m_db = self.beta1 * self.m_db + (1 - self.beta1) * db
        self.v_dw = self.beta2 * self.v_dw + (1 - self.beta2) * (dw**2)
        self.v_db = self.beta2 * self.v_db + (1 - self.beta2) * (db**2)
        c1, c2 = 1 - self.beta1**t, 1 - self.beta2**t
        w = w - self.eta * (self.m_dw / c1) / (np.sqrt(self.v_dw / c2) + self.epsilon)
        b = b - self.eta * (self.m_db / c1) / (np.sqrt(self.v_db / c2) + self.epsilon)
        return w, b


class RMSProp:
    """One object for each array, which is returned."""

    def __init__(self, learning_rate=0.01, rho=0.9):
        self.learning_rate = learning_rate
        self.rho = rho
        self.eps = 1e-8
        self.Eg = None

    def update(self, w, grad_wrt_w):
        if self.Eg is None:
            self.Eg = np.zeros(np.shape(grad_wrt_w))
        self.Eg = self.rho * self.Eg + (1 - self.rho) * np.power(grad_wrt_w, 2)
        return w - self.learning_rate * grad_wrt_w / np.sqrt(self.Eg + self.eps)


class AdamByName:
    """It gets the name of each parameter, and counts a step of each."""

    def __init__(self, lr=0.001, b1=0.9, b2=0.999, eps=1e-8):
        self.lr, self.b1, self.b2, self.eps = lr, b1, b2, eps
        self.state = {}

    def update(self, name, param, grad):
        s = self.state.setdefault(name, SimpleNamespace(m=0.0, v=0.0, t=0))
        s.t += 1
        s.m = self.b1 * s.m + (1 - self.b1) * grad
        s.v = self.b2 * s.v + (1 - self.b2) * grad * grad
        m_hat, v_hat = s.m / (1 - self.b1**s.t), s.v / (1 - self.b2**s.t)
        param -= self.lr * m_hat / (np.sqrt(v_hat) + self.eps)


class LionOfPairs:
    """It gets (gradient, parameter) pairs."""

    def __init__(self, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1):
        self.lr, self.betas, self.weight_decay, self.m = lr, betas, weight_decay, {}

    def apply_gradients(self, grads_and_vars):
        b1, b2 = self.betas
        for i, (g, p) in enumerate(grads_and_vars):
            m = self.m.get(i, 0.0)
            p -= self.lr * (np.sign(b1 * m + (1 - b1) * g) + self.weight_decay * p)
            self.m[i] = b2 * m + (1 - b2) * g


class AdamWOfAModel:
    """It walks over the layers of a model, which have params and grads."""

    def __init__(self, model, lr=0.01, weight_decay=0.1):
        self.model = model
        self.lr, self.weight_decay = lr, weight_decay
        self.b1, self.b2, self.eps = 0.9, 0.999, 1e-8
        self.state, self.t = {}, 0

    def step(self):
        self.t += 1
        for i, layer in enumerate(self.model.layers):
            for key, p in layer.params.items():
                g = layer.grads[key]
                m, v = self.state.get((i, key), (0.0, 0.0))
                m = self.b1 * m + (1 - self.b1) * g
                v = self.b2 * v + (1 - self.b2) * g * g
                self.state[i, key] = m, v
                m_hat, v_hat = m / (1 - self.b1**self.t), v / (1 - self.b2**self.t)
                step = m_hat / (np.sqrt(v_hat) + self.eps) + self.weight_decay * p
                layer.params[key] = p - self.lr * step


class NesterovByGradient:
    """What it returns for a gradient is subtracted by whoever calls it."""

    def __init__(self, lr=0.01, momentum=0.9):
        self.lr, self.momentum, self.u = lr, momentum, 0.0

    def compute_update(self, gradient):
        self.u = self.momentum * self.u + gradient
        return self.lr * (gradient + self.momentum * self.u)


class AMSGrad:
    def __init__(self, lr=0.01, beta1=0.9, beta2=0.99, eps=1e-8):
        self.lr, self.beta1, self.beta2, self.eps = lr, beta1, beta2, eps
        self.states, self.t = {}, 0

    def step(self, params, grads):
        self.t += 1
        for i in range(len(params)):
            m, v, largest = self.states.get(i, (0.0, 0.0, 0.0))
            m = self.beta1 * m + (1 - self.beta1) * grads[i]
            v = self.beta2 * v + (1 - self.beta2) * grads[i] ** 2
            largest = np.maximum(largest, v)
            self.states[i] = m, v, largest
            m_hat = m / (1 - self.beta1**self.t)
            root = np.sqrt(largest) / np.sqrt(1 - self.beta2**self.t)
            params[i] -= self.lr * m_hat / (root + self.eps)


class SGDOfOneModel:
    """It has a model whose parameters are a dict, with gradients beside them."""

    def __init__(self):
        self.net = SimpleNamespace(
            params={"W1": np.ones((2, 3)), "b1": np.ones(3)},
            grads={"W1": np.ones((2, 3)), "b1": np.ones(3)},
        )
        self.lr = 0.1

    def step(self):
        for key in self.net.params:
            self.net.params[key] -= self.lr * self.net.grads[key]


class AdamOfTheBook:
    """The correction is in the rate, the average is a step towards g, and epsilon has no name."""

    def __init__(self, lr=0.001, beta1=0.9, beta2=0.999):
        self.lr, self.beta1, self.beta2 = lr, beta1, beta2
        self.iter, self.m, self.v = 0, None, None

    def update(self, params, grads):
        if self.m is None:
            self.m = {key: np.zeros_like(p) for key, p in params.items()}
            self.v = {key: np.zeros_like(p) for key, p in params.items()}
        self.iter += 1
        rate = self.lr * np.sqrt(1.0 - self.beta2**self.iter) / (1.0 - self.beta1**self.iter)
        for key in params:
            self.m[key] += (1 - self.beta1) * (grads[key] - self.m[key])
            self.v[key] += (1 - self.beta2) * (grads[key] ** 2 - self.v[key])
            params[key] -= rate * self.m[key] / (np.sqrt(self.v[key]) + 1e-7)


class MomentumByLayer:
    """It gets the number of a layer, two arrays, and two gradients."""

    def __init__(self, learning_rate=0.001, momentum=0.9):
        self.learning_rate, self.momentum, self.v = learning_rate, momentum, {}

    def update(self, layer_id, weights, bias, dW, dB):
        v_w, v_b = self.v.get(layer_id, (0.0, 0.0))
        v_w = self.momentum * v_w - self.learning_rate * dW
        v_b = self.momentum * v_b - self.learning_rate * dB
        self.v[layer_id] = v_w, v_b
        return weights + v_w, bias + v_b


class AdamWithMomentsOutside:
    """Its method gets the moments and returns them."""

    def __init__(self, lr=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.lr, self.beta1, self.beta2, self.epsilon = lr, beta1, beta2, epsilon

    def update(self, param, grad, m, v, t):
        m = self.beta1 * m + (1 - self.beta1) * grad
        v = self.beta2 * v + (1 - self.beta2) * grad**2
        m_hat, v_hat = m / (1 - self.beta1**t), v / (1 - self.beta2**t)
        param -= self.lr * m_hat / (np.sqrt(v_hat) + self.epsilon)
        return param, m, v


class AdamWithoutRate:
    """It changes a list of gradients; the training multiplies by the rate."""

    def __init__(self, beta1=0.9, beta2=0.999, eps=1e-8):
        self.beta1, self.beta2, self.eps, self.t = beta1, beta2, eps, 0

    def step(self, grad_list):
        self.t += 1
        if self.t == 1:
            self.m = [0.0] * len(grad_list)
            self.v = [0.0] * len(grad_list)
        changes = []
        for i, g in enumerate(grad_list):
            self.m[i] = self.beta1 * self.m[i] + (1 - self.beta1) * g
            self.v[i] = self.beta2 * self.v[i] + (1 - self.beta2) * g**2
            m_hat = self.m[i] / (1 - self.beta1**self.t)
            changes.append(m_hat / (np.sqrt(self.v[i] / (1 - self.beta2**self.t)) + self.eps))
        return changes


class AdagradThatIsInitialized:
    def __init__(self, lr=0.1, eps=1e-10):
        self.lr, self.eps = lr, eps

    def initialize(self, params):
        self.h = {key: np.zeros_like(p) for key, p in params.items()}

    def apply(self, params, grads, step_i=None):
        for key in params:
            self.h[key] += grads[key] ** 2
            params[key] -= self.lr * grads[key] / (np.sqrt(self.h[key]) + self.eps)


class AdamOfLayers:
    """Moments of each layer's W and b are made at the start."""

    def __init__(self, layers, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
        self.layers, self.lr = layers, lr
        self.beta1, self.beta2, self.eps, self.t = beta1, beta2, eps, 0
        self.m = {(i, n): np.zeros_like(getattr(x, n)) for i, x in enumerate(layers) for n in "Wb"}
        self.v = {key: np.zeros_like(m) for key, m in self.m.items()}

    def step(self):
        self.t += 1
        for i, layer in enumerate(self.layers):
            for name in "Wb":
                g = getattr(layer, "d" + name)
                self.m[i, name] = self.beta1 * self.m[i, name] + (1 - self.beta1) * g
                self.v[i, name] = self.beta2 * self.v[i, name] + (1 - self.beta2) * g**2
                m_hat = self.m[i, name] / (1 - self.beta1**self.t)
                v_hat = self.v[i, name] / (1 - self.beta2**self.t)
                step = self.lr * m_hat / (np.sqrt(v_hat) + self.eps)
                setattr(layer, name, getattr(layer, name) - step)


class RMSPropByParameter:
    """Parameters are keys, and gradients are tensors."""

    def __init__(self, params, learnrate=0.01, alpha=0.99):
        self.params, self.learnrate, self.alpha, self.h = list(params), learnrate, alpha, {}

    def step(self):
        for p in self.params:
            if not p.requires_grad:
                continue
            g = p.grad.data * 1.0
            self.h[p] = self.alpha * self.h.get(p, 0.0) + (1 - self.alpha) * g**2
            p.data -= self.learnrate * g / (np.sqrt(self.h[p]) + 1e-6)
            p.zero_grad()


class AdamOfGroups:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.param_groups = [{"params": list(params), "lr": lr, "betas": betas, "eps": eps}]
        self.state = {}

    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                s = self.state.setdefault(p, {"m": 0.0, "v": 0.0, "t": 0})
                s["t"] += 1
                s["m"] = b1 * s["m"] + (1 - b1) * p.grad
                s["v"] = b2 * s["v"] + (1 - b2) * p.grad**2
                m_hat, v_hat = s["m"] / (1 - b1 ** s["t"]), s["v"] / (1 - b2 ** s["t"])
                p.data = p.data - group["lr"] * m_hat / (np.sqrt(v_hat) + group["eps"])


class SGDOfParameters:
    """It asks the model for its parameters at each step."""

    def __init__(self, model, lr=0.1):
        self.model, self.lr = model, lr

    def step(self):
        for p in self.model.parameters():
            p.data = p.data - self.lr * p.grad


class SGDOfDeepModel:
    """Its model has blocks, which have layers, which have w and dw."""

    def __init__(self):
        layers = [SimpleNamespace(w=np.ones(shape), dw=np.ones(shape)) for shape in ((2, 3), (4,))]
        self.model = SimpleNamespace(blocks=[SimpleNamespace(layers=layers)])
        self.lr = 0.1

    def step(self):
        for block in self.model.blocks:
            for layer in block.layers:
                layer.w = layer.w - self.lr * layer.dw


TENSORFLOW = "Adam: epsilon is added to the root before its correction (TensorFlow)"

STYLES = {
    "no name for epsilon": (AdamOfTheBook, TENSORFLOW),
    "a number of the layer": (MomentumByLayer, "gradient descent with momentum"),
    "moments outside": (AdamWithMomentsOutside, "Adam"),
    "no rate": (AdamWithoutRate, "Adam"),
    "a method that prepares": (AdagradThatIsInitialized, "Adagrad"),
    "layers at the start": (AdamOfLayers, "Adam"),
    "parameters as keys": (RMSPropByParameter, "RMSProp"),
    "groups": (AdamOfGroups, "Adam"),
    "a model's parameters": (SGDOfParameters, "gradient descent"),
    "dicts": (AdamOfDicts, "Adam"),
    "lists at the start": (AdamOfFixedLists, "Adam"),
    "objects with data and grad": (SGDOfTensors, "gradient descent with momentum"),
    "layers": (AdagradOfLayers, "Adagrad"),
    "a config": (adam, "Adam"),
    "a config of momentum": (sgd_momentum, "gradient descent with momentum"),
    "a config of RMSProp": (rmsprop, "RMSProp"),
    "states in dicts": (update_parameters_with_adam, "Adam"),
    "states returned": (adam_step, "Adam"),
    "arrays by name": (AdamOfNamedArrays, "Adam"),
    "one object for each array": (RMSProp, "RMSProp: epsilon is inside the root"),
    "a key for each array": (AdamByName, "Adam"),
    "pairs": (LionOfPairs, "Lion"),
    "a model of layers": (AdamWOfAModel, "AdamW"),
    "what is subtracted": (
        NesterovByGradient,
        "gradient descent with Nesterov's momentum",
    ),
    "lists": (AMSGrad, "AMSGrad"),
    "an object with a deep model": (SGDOfDeepModel(), "gradient descent"),
    "an object with its model": (SGDOfOneModel(), "gradient descent"),
}
"""Each style: the optimizer, and what the report says that it is."""
