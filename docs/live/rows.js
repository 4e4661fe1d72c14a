// Live pictures of what happens to a row of numbers.

const matrix = (n, m, f) => range(n, (i) => range(m, (j) => f(i, j)));
const transposed = (rows) => matrix(rows[0].length, rows.length, (i, j) => rows[j][i]);
const mean = (values) => sum(values) / values.length;

// The normaliser Z of a row of scores: what one score does to the weights of the others goes through Z.
const normaliser = (scores, formula = `Σ exp {${scores}[:]}`) => ({
  makes: "Z", formula, inner: true,
  numbers: (arrays) => sum(arrays[scores].map((v) => Math.exp(v / (arrays.temperature ?? 1)))),
});

// The normaliser and the weights of a row of scores, which are divided by the temperature, as two steps.
const softmaxAtTemperature = (scores, weights) => [
  normaliser(scores, `Σ exp({${scores}[:]} / {temperature})`),
  {
    makes: `${weights}[i]`, formula: `exp({${scores}[i]} / {temperature}) / {Z}`,
    numbers: (arrays) => arrays[scores].map((v) => Math.exp(v / arrays.temperature) / arrays.Z),
  },
];

PICTURES.softmax = {
  title: "Move a score. All weights change, and so does the gradient of every score.",
  weights: ["y"],
  controls: [
    { name: "x", value: [0, Math.log(2), 0], min: -4, max: 4, step: 0.1 },
    { name: "dy", value: [1, 0, 0], min: -2, max: 2, step: 0.1 },
    { name: "temperature", label: "temperature", value: 1, min: 0.2, max: 4, step: 0.1 },
  ],
  steps: [
    ...softmaxAtTemperature("x", "y"),
    {
      makes: "J[i, j]", formula: "{y[i]} × ([#i = #j] \u2212 {y[j]}) / {temperature}",
      numbers: ({ y, temperature }) => matrix(3, 3, (i, j) => (y[i] * ((i === j) - y[j])) / temperature),
    },
    { makes: "dx[i]", formula: "{J[i, :]} · {dy[:]}", numbers: ({ J, dy }) => J.map((row) => dot(row, dy)) },
  ],
  shows: [["x", "Z", "y"], ["dy", "J", "dx"]],
  draw: (state, { y, dx }) => bars({ y, dx }, ["y"]),
};

PICTURES.cross_entropy = {
  title: "Move a score. The gradient is the difference between the probabilities and the target.",
  weights: ["p", "q"],
  controls: [
    { name: "z", value: [0, Math.log(2), 0], min: -4, max: 4, step: 0.1 },
    { name: "label", label: "label", of: ["0", "1", "2"], value: "1" },
  ],
  steps: [
    normaliser("z"),
    { makes: "p[i]", formula: "exp {z[i]} / {Z}", numbers: ({ z, Z }) => z.map((v) => Math.exp(v) / Z) },
    { makes: "loss", formula: "\u2212log {p[label]}", numbers: ({ p, label }) => -Math.log(p[label]) },
    { makes: "q[i]", formula: "[#i = {label}]", numbers: ({ label }) => range(3, (i) => Number(i === Number(label))) },
    { makes: "dz[i]", formula: "{p[i]} \u2212 {q[i]}", numbers: ({ p, q }) => p.map((v, i) => v - q[i]) },
  ],
  shows: [["z", "Z", "p", "loss"], ["q", "dz"]],
  draw: (state, { p, dz }) => bars({ p, dz }, ["p"]),
};

const EPSILON = 1e-5;
const moved = (f) => (state) => (state.x = state.x.map((v) => Math.max(-6, Math.min(6, f(v)))));
const normControls = (x) => [
  { name: "x", value: x, min: -6, max: 6, step: 0.1 },
  { name: "gamma", value: [1, 2, 0.5], min: -2, max: 2, step: 0.1 },
  { name: "dy", value: [1, 0, 0], min: -2, max: 2, step: 0.1 },
  { name: "shift", label: "Add 1 to x", press: moved((v) => v + 1) },
  { name: "stretch", label: "Double x", press: moved((v) => 2 * v) },
];
const scaledGradient = { makes: "g[i]", formula: "{gamma[i]} × {dy[i]}", numbers: ({ gamma, dy }) => gamma.map((v, i) => v * dy[i]) };
const meanAlongRow = { makes: "mean(g n)", formula: "mean({g[:]} × {n[:]})", inner: true, numbers: ({ g, n }) => dot(g, n) / g.length };
const scaleGradient = { makes: "dgamma[i]", formula: "{dy[i]} × {n[i]}", numbers: ({ dy, n }) => dy.map((v, i) => v * n[i]) };

PICTURES.layer_norm = {
  title: "Add to x, or stretch it: y stays where it is. Move gamma and beta: y follows.",
  controls: [...normControls([1, 2, 3]), { name: "beta", value: [0, 0.1, 0], min: -2, max: 2, step: 0.1 }],
  steps: [
    { makes: "mean", formula: "mean {x[:]}", numbers: ({ x }) => mean(x) },
    {
      makes: "s", formula: "√(mean(({x[:]} \u2212 {mean})²) + ε)",
      numbers: (arrays) => Math.sqrt(mean(arrays.x.map((v) => (v - arrays.mean) ** 2)) + EPSILON),
    },
    { makes: "n[i]", formula: "({x[i]} \u2212 {mean}) / {s}", numbers: (arrays) => arrays.x.map((v) => (v - arrays.mean) / arrays.s) },
    { makes: "y[i]", formula: "{gamma[i]} × {n[i]} + {beta[i]}", numbers: ({ gamma, n, beta }) => n.map((v, i) => gamma[i] * v + beta[i]) },
    scaledGradient,
    { makes: "mean(g)", formula: "mean {g[:]}", inner: true, numbers: ({ g }) => mean(g) },
    meanAlongRow,
    {
      makes: "dx[i]", formula: "({g[i]} \u2212 {mean(g)} \u2212 {n[i]} × {mean(g n)}) / {s}",
      numbers: ({ g, n, s, ...means }) => g.map((v, i) => (v - means["mean(g)"] - n[i] * means["mean(g n)"]) / s),
    },
    scaleGradient,
    { makes: "dbeta[i]", formula: "{dy[i]}", numbers: ({ dy }) => [...dy] },
  ],
  shows: [["x", "gamma", "beta"], ["mean", "s", "n", "y"], ["dy", "g", "mean(g)", "mean(g n)"], ["dx", "dgamma", "dbeta"]],
  draw: ({ x }, { y }) => bars({ x, y }),
};

PICTURES.rms_norm = {
  title: "Double x: n stays. Add to x: n changes, other than in layer norm.",
  controls: normControls([1, 1, 5]),
  steps: [
    { makes: "r", formula: "√(mean({x[:]}²) + ε)", numbers: ({ x }) => Math.sqrt(dot(x, x) / 3 + EPSILON) },
    { makes: "n[i]", formula: "{x[i]} / {r}", numbers: ({ x, r }) => x.map((v) => v / r) },
    { makes: "y[i]", formula: "{gamma[i]} × {n[i]}", numbers: ({ gamma, n }) => n.map((v, i) => gamma[i] * v) },
    scaledGradient,
    meanAlongRow,
    {
      makes: "dx[i]", formula: "({g[i]} \u2212 {n[i]} × {mean(g n)}) / {r}",
      numbers: ({ g, n, r, ...means }) => g.map((v, i) => (v - n[i] * means["mean(g n)"]) / r),
    },
    scaleGradient,
  ],
  shows: [["x", "gamma"], ["r", "n", "y"], ["dy", "g", "mean(g n)"], ["dx", "dgamma"]],
  draw: ({ x }, { y }) => bars({ x, y }),
};

PICTURES.linear = {
  title: "Move a weight. A column of y and a column of dx change; dW stays, for it does not depend on W.",
  controls: [
    { name: "x", value: [[1, 2, -1], [0, 1, 3]], min: -3, max: 3, step: 0.1 },
    { name: "W", value: [[1, 0], [2, -1], [0.5, 1]], min: -3, max: 3, step: 0.1 },
    { name: "b", value: [0.1, 0.2], min: -3, max: 3, step: 0.1 },
    { name: "dy", value: [[1, -2], [3, 0.5]], min: -3, max: 3, step: 0.1 },
  ],
  steps: [
    {
      makes: "y[t, j]", formula: "{x[t, :]} · {W[:, j]} + {b[j]}",
      numbers: ({ x, W, b }) => product(x, W).map((row) => [...row].map((v, j) => v + b[j])),
    },
    { makes: "dx[t, i]", formula: "{dy[t, :]} · {W[i, :]}", numbers: ({ dy, W }) => product(dy, transposed(W)) },
    { makes: "dW[i, j]", formula: "{x[:, i]} · {dy[:, j]}", numbers: ({ x, dy }) => product(transposed(x), dy) },
    { makes: "db[j]", formula: "Σ {dy[:, j]}", numbers: ({ dy }) => transposed(dy).map(sum) },
  ],
  shows: [["x", "W", "b", "y"], ["dy", "dx", "dW", "db"]],
};

const drawn = () => range(6, () => Math.random());
PICTURES.dropout = {
  title: "Draw again: other numbers are dropped, and the mean over all draws nears x.",
  controls: [
    { name: "x", value: [1, 2, 3, 4, 5, 6], min: -6, max: 6, step: 0.1 },
    { name: "dy", value: [1, 1, 1, 1, 1, 1], min: -2, max: 2, step: 0.1 },
    { name: "rate", label: "rate p", value: 0.5, min: 0, max: 0.9, step: 0.05 },
    { name: "once", label: "Draw again", press: (state) => again(state, 1) },
    { name: "often", label: "Draw 100 times", press: (state) => again(state, 100) },
  ],
  begin: { u: [0.5118, 0.9505, 0.1442, 0.9486, 0.3118, 0.4233], total: range(6, () => 0), draws: 0 },
  steps: [
    { makes: "u[i]", formula: "a random number from 0 to 1", numbers: (arrays, { u }) => [...u] },
    { makes: "mask[i]", formula: "[{u[i]} ≥ {rate}] / (1 \u2212 {rate})", numbers: ({ u, rate }) => u.map((v) => (v >= rate) / (1 - rate)) },
    { makes: "y[i]", formula: "{x[i]} × {mask[i]}", numbers: ({ x, mask }) => x.map((v, i) => v * mask[i]) },
    { makes: "dx[i]", formula: "{dy[i]} × {mask[i]}", numbers: ({ dy, mask }) => dy.map((v, i) => v * mask[i]) },
    { makes: "draws", formula: "how often it was drawn", numbers: (arrays, { draws }) => draws },
    {
      makes: "mean of draws[i]", formula: "the mean of y[#i] over all draws",
      numbers: (arrays, { total, draws }) => total.map((t) => t / Math.max(draws, 1)),
    },
  ],
  draw: ({ x }, { y }) => bars({ x, y }),
};
function again(state, n) {
  const setting = JSON.stringify([state.rate, state.x]); // the mean is over draws at one setting
  if (state.of !== setting) Object.assign(state, { total: range(6, () => 0), draws: 0, of: setting });
  for (let k = 0; k < n; k++) {
    state.u = drawn();
    state.draws++;
    state.u.forEach((v, i) => (state.total[i] += (state.x[i] * (v >= state.rate)) / (1 - state.rate)));
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
    { name: "x", label: "x", value: -0.5, min: -4, max: 4, step: 0.1 },
    { name: "dy", label: "dy", value: 1, min: -2, max: 2, step: 0.1 },
    { name: "name", label: "activation", of: Object.keys(BOTH), value: "GELU" },
  ],
  steps: [
    { makes: "y", formula: "{name} of {x}", numbers: ({ x, name }) => BOTH[name](x)[0] },
    { makes: "dy/dx", formula: "slope of {name} at {x}", numbers: ({ x, name }) => BOTH[name](x)[1] },
    { makes: "dx", formula: "{dy} × {dy/dx}", numbers: (arrays) => arrays.dy * arrays["dy/dx"] },
  ],
  shows: [["x", "y", "dy/dx", "dy", "dx"]],
  draw({ x, name }, { y }) {
    const at = scale(360, 170, [-4, 4], [-1, 4]);
    const curve = (k) => path(range(161, (i) => at([i / 20 - 4, BOTH[name](i / 20 - 4)[k]])), ["value", "slope"][k]);
    const axes = path([at([-4, 0]), at([4, 0])], "axis") + path([at([0, -1]), at([0, 4])], "axis");
    return svg(360, 170, axes + curve(0) + curve(1) + circle(at([x, y]), "value") + words(at([3.4, 2.2]), "y") + words(at([3.4, 0.6]), "dy/dx"));
  },
};

PICTURES.language_models = {
  title: "Heat flattens, cold sharpens. Top-k and top-p cut what is unlikely.",
  weights: ["all tokens", "drawn from"],
  controls: [
    { name: "z", value: [2, 1, 0.5, 0, -1], min: -4, max: 4, step: 0.1 },
    { name: "temperature", label: "temperature", value: 1, min: 0.1, max: 4, step: 0.1 },
    { name: "top-k", label: "top-k", value: 5, min: 1, max: 5, step: 1 },
    { name: "top-p", label: "top-p", value: 1, min: 0.05, max: 1, step: 0.05 },
  ],
  steps: [
    ...softmaxAtTemperature("z", "all tokens"),
    {
      makes: "drawn from[i]", formula: "the likeliest {top-k} of {all tokens[:]}, up to a sum of {top-p}, divided by their sum",
      numbers: (arrays) => cutOff(arrays["all tokens"], arrays["top-k"], arrays["top-p"]),
    },
  ],
  draw: (state, arrays) => bars({ all: arrays["all tokens"], kept: arrays["drawn from"] }, ["all", "kept"]),
};
function cutOff(q, k, p) {
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
  return range(5, (i) => (kept.has(i) ? q[i] / rest : 0));
}
