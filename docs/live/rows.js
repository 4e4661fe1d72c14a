// Live pictures of what happens to a row of numbers.

const matrix = (n, m, f) => range(n, (i) => range(m, (j) => f(i, j)));

PICTURES.softmax = {
  title: "Move a score. All weights change, and so does the gradient of every score.",
  controls: [
    { name: "x", label: "score", value: [0, Math.log(2), 0], min: -4, max: 4 },
    { name: "temperature", label: "temperature", value: 1, min: 0.2, max: 4 },
    { name: "dy", label: "dy", value: [1, 0, 0], min: -2, max: 2 },
  ],
  numbers({ x, temperature, dy }) {
    const y = softmax(x.map((v) => v / temperature));
    const J = matrix(3, 3, (i, j) => (y[i] * ((i === j) - y[j])) / temperature);
    return { x, y, J, dx: J.map((row) => dot(row, dy)) };
  },
  draw: (state, { y, dx }) => bars([y, dx], ["first", "second"], ["y", "dx"]),
};

PICTURES.cross_entropy = {
  title: "Move a score. The gradient is the difference between the probabilities and the target.",
  controls: [
    { name: "logits", label: "score", value: [0, Math.log(2), 0], min: -4, max: 4 },
    { name: "label", label: "label", of: ["0", "1", "2"], value: "1" },
  ],
  numbers({ logits, label }) {
    const p = softmax(logits);
    const top = Math.max(...logits);
    const loss = Math.log(sum(logits.map((v) => Math.exp(v - top)))) + top - logits[label];
    return { p, loss, "d scores": range(3, (k) => p[k] - (k === Number(label))) };
  },
  draw: (state, { p, "d scores": d }) => bars([p, d], ["first", "second"], ["p", "d"]),
};

const normControls = (x, more) => [
  { name: "x", label: "x", value: x, min: -6, max: 6 },
  { name: "gamma", label: "gamma", value: [1, 2, 0.5], min: -2, max: 2 },
  ...more,
];

PICTURES.layer_norm = {
  title: "Move x as a whole, or stretch it: y stays where it is. Move gamma and beta: y follows.",
  controls: normControls([1, 2, 3], [{ name: "beta", label: "beta", value: [0, 0.1, 0], min: -2, max: 2 }]),
  numbers({ x, gamma, beta }) {
    const p = (name) => ({ "n.gamma": gamma, "n.beta": beta })[name];
    const plain = (name) => ({ "n.gamma": [1, 1, 1], "n.beta": [0, 0, 0] })[name];
    const mean = sum(x) / 3;
    const s = Math.sqrt(sum(x.map((v) => (v - mean) ** 2)) / 3 + 1e-5);
    return { mean, s, n: layerNorm([x], plain, "n", 1e-5)[0], y: layerNorm([x], p, "n", 1e-5)[0] };
  },
  draw: ({ x }, { y }) => bars([x, y], ["first", "second"], ["x", "y"]),
};

PICTURES.rms_norm = {
  title: "Stretch x: n stays. Shift x: n changes, other than in layer norm.",
  controls: normControls([1, 1, 5], []),
  numbers({ x, gamma }) {
    const r = Math.sqrt(dot(x, x) / 3 + 1e-5);
    const n = x.map((v) => v / r);
    return { r, n, y: n.map((v, c) => gamma[c] * v) };
  },
  draw: ({ x }, { y }) => bars([x, y], ["first", "second"], ["x", "y"]),
};

const drawn = () => range(6, () => Math.random());
PICTURES.dropout = {
  title: "Draw again: other numbers are dropped, and the mean over all draws nears x.",
  controls: [
    { name: "rate", label: "rate p", value: 0.5, min: 0, max: 0.9 },
    { name: "once", label: "Draw again", press: (state) => again(state, 1) },
    { name: "often", label: "Draw 100 times", press: (state) => again(state, 100) },
  ],
  begin: { u: [0.5118, 0.9505, 0.1442, 0.9486, 0.3118, 0.4233], total: range(6, () => 0), draws: 0 },
  numbers({ rate, u, total, draws }) {
    const x = range(6, (i) => i + 1);
    const mask = u.map((v) => (v >= rate) / (1 - rate));
    return { x, u, mask, y: x.map((v, i) => v * mask[i]), draws, "mean of draws": total.map((t) => t / Math.max(draws, 1)) };
  },
  draw: (state, { x, y }) => bars([x, y], ["first", "second"], ["x", "y"]),
};
function again(state, n) {
  if (state.of !== state.rate) Object.assign(state, { total: range(6, () => 0), draws: 0, of: state.rate });
  for (let k = 0; k < n; k++) {
    state.u = drawn();
    state.draws++;
    state.u.forEach((v, i) => (state.total[i] += ((i + 1) * (v >= state.rate)) / (1 - state.rate)));
  }
}

// y and dy/dx of each activation.
const BOTH = {
  ReLU: (x) => [ACTIVATIONS.relu(x), Number(x > 0)],
  GELU: (x) => [ACTIVATIONS.gelu(x), normalDistribution(x) + x * normalDensity(x)],
  SiLU: (x) => [ACTIVATIONS.silu(x), sigmoid(x) * (1 + x * (1 - sigmoid(x)))],
};
PICTURES.activations = {
  title: "Move x along the curve. The derivative says how much of dy goes on to x.",
  controls: [
    { name: "x", label: "x", value: -0.5, min: -4, max: 4 },
    { name: "name", label: "activation", of: Object.keys(BOTH), value: "GELU" },
  ],
  numbers: ({ x, name }) => ({ x, y: BOTH[name](x)[0], "dy/dx": BOTH[name](x)[1] }),
  draw({ x, name }, { y }) {
    const at = scale(360, 170, [-4, 4], [-1, 4]);
    const curve = (k) => path(range(161, (i) => at([i / 20 - 4, BOTH[name](i / 20 - 4)[k]])), ["first", "second"][k]);
    const axes = path([at([-4, 0]), at([4, 0])], "axis") + path([at([0, -1]), at([0, 4])], "axis");
    return svg(360, 170, axes + curve(0) + curve(1) + circle(at([x, y]), "first") + words(at([3.4, 2.2]), "y") + words(at([3.4, 0.6]), "dy/dx"));
  },
};

PICTURES.language_models = {
  title: "Heat flattens, cold sharpens. Top-k and top-p cut what is unlikely.",
  controls: [
    { name: "logits", label: "score", value: [2, 1, 0.5, 0, -1], min: -4, max: 4 },
    { name: "temperature", label: "temperature", value: 1, min: 0.1, max: 4 },
    { name: "k", label: "top-k", value: 5, min: 1, max: 5, step: 1 },
    { name: "p", label: "top-p", value: 1, min: 0.05, max: 1 },
  ],
  numbers({ logits, temperature, k, p }) {
    const q = softmax(logits.map((v) => v / temperature));
    const order = range(5, (i) => i).sort((i, j) => q[j] - q[i]);
    const kept = new Set();
    let total = 0;
    const ofK = sum(order.slice(0, k).map((i) => q[i]));
    for (const i of order.slice(0, k)) {
      if (total >= p) break;
      kept.add(i);
      total += q[i] / ofK;
    }
    const rest = sum([...kept].map((i) => q[i]));
    return { "all tokens": q, "drawn from": range(5, (i) => (kept.has(i) ? q[i] / rest : 0)) };
  },
  draw: (state, numbers) => bars(Object.values(numbers), ["first", "second"], ["all", "kept"]),
};
