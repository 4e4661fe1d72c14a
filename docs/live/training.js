// Live pictures of a step of the training.

PICTURES.linear = {
  title: "Move a weight. A column of y and a column of dx change; dW stays, for it does not depend on W.",
  controls: [
    { name: "w0", label: "W, output 0, input", value: [1, 2, 0.5], min: -3, max: 3 },
    { name: "w1", label: "W, output 1, input", value: [0, -1, 1], min: -3, max: 3 },
    { name: "b", label: "b, output", value: [0.1, 0.2], min: -3, max: 3 },
  ],
  numbers({ w0, w1, b }) {
    const [x, dy] = [[[1, 2, -1], [0, 1, 3]], [[1, -2], [3, 0.5]]];
    const W = range(3, (i) => [w0[i], w1[i]]);
    const y = product(x, W).map((row) => row.map((v, j) => v + b[j]));
    const turned = (rows) => matrix(rows[0].length, rows.length, (i, j) => rows[j][i]);
    return { x, W, "y = x W + b": y, dy, "dx = dy Wᵀ": product(dy, turned(W)), "dW = xᵀ dy": product(turned(x), dy) };
  },
};

const CURVATURE = [1, 100];
PICTURES.adam = {
  title: "Take a step. Adam divides the mean gradient by its size, so that both directions move alike.",
  controls: [
    { name: "lr", label: "learning rate", value: 0.2, min: 0.01, max: 0.5 },
    { name: "beta1", label: "beta 1", value: 0.9, min: 0, max: 0.99 },
    { name: "beta2", label: "beta 2", value: 0.999, min: 0.5, max: 0.9999 },
    { name: "step", label: "Step", press: (state) => adam(state) },
    { name: "steps", label: "10 steps", press: (state) => range(10, () => adam(state)) },
  ],
  begin: { t: 0, theta: [-4, 1], m: [0, 0], v: [0, 0], way: [[-4, 1]] },
  numbers({ t, theta, m, v, beta1, beta2 }) {
    const g = theta.map((a, c) => CURVATURE[c] * a);
    const corrected = (mean, beta) => mean.map((a) => (t ? a / (1 - beta ** t) : 0));
    const loss = sum(theta.map((a, c) => (CURVATURE[c] * a * a) / 2));
    return { t, theta, "gradient there": g, m, v, "m, corrected": corrected(m, beta1), "v, corrected": corrected(v, beta2), loss };
  },
  draw({ way }) {
    const at = scale(360, 170, [-5, 5], [-1.6, 1.6]);
    const ring = (r) => path(range(91, (i) => at([r * Math.cos((i * Math.PI) / 45), (r * Math.sin((i * Math.PI) / 45)) / 10])), "axis");
    return svg(360, 170, [1, 3, 6, 10].map(ring).join("") + path(way.map(at), "first") + way.map((each) => circle(at(each), "first", 2.5)).join("") + words(at([0, 0]), "★"));
  },
};
function adam(state) {
  const { lr, beta1, beta2 } = state;
  const g = state.theta.map((a, c) => CURVATURE[c] * a);
  state.t++;
  state.m = state.m.map((m, c) => beta1 * m + (1 - beta1) * g[c]);
  state.v = state.v.map((v, c) => beta2 * v + (1 - beta2) * g[c] * g[c]);
  state.theta = state.theta.map((a, c) =>
    a - (lr * (state.m[c] / (1 - beta1 ** state.t))) / (Math.sqrt(state.v[c] / (1 - beta2 ** state.t)) + 1e-8));
  state.way.push(state.theta);
}
