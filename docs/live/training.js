// Live pictures of a step of the training.

// Two optimizers in one valley, L = (a^2 + 100 b^2) / 2, from the same place. Both walk from the start whenever a
// control moves: a path never mixes steps of two learning rates.
const CURVATURE = [1, 100];
const START = [-4, 1];
const LONGEST = 300;
const gradientAt = (theta) => theta.map((a, c) => CURVATURE[c] * a);
const lossAt = (theta) => sum(theta.map((a, c) => (CURVATURE[c] * a * a) / 2));

function descentPath(steps, rate) {
  const path = [START];
  while (path.length <= steps) path.push(path.at(-1).map((a, c) => a - rate * CURVATURE[c] * a));
  return path;
}

function adamPath(steps, rate, beta1, beta2) {
  let [m, v] = [[0, 0], [0, 0]];
  const path = [START];
  for (let t = 1; t <= steps; t++) {
    const g = gradientAt(path.at(-1));
    m = m.map((mean, c) => beta1 * mean + (1 - beta1) * g[c]);
    v = v.map((mean, c) => beta2 * mean + (1 - beta2) * g[c] * g[c]);
    const [mCorrected, vCorrected] = [m.map((mean) => mean / (1 - beta1 ** t)), v.map((mean) => mean / (1 - beta2 ** t))];
    path.push(path.at(-1).map((a, c) => a - (rate * mCorrected[c]) / (Math.sqrt(vCorrected[c]) + 1e-8)));
  }
  return { path, m, v };
}

PICTURES.adam = {
  title: "Move a learning rate: both paths begin anew. Plain descent shakes where the valley is steep, and creeps where it is flat; Adam moves alike in both directions.",
  controls: [
    { name: "descentRate", label: "lr, descent", value: 0.018, min: 0.001, max: 0.025, step: 0.001 },
    { name: "adamRate", label: "lr, Adam", value: 0.2, min: 0.01, max: 1, step: 0.01 },
    { name: "beta1", label: "beta 1", value: 0.9, min: 0, max: 0.99, step: 0.01 },
    { name: "beta2", label: "beta 2", value: 0.999, min: 0.5, max: 0.999, step: 0.001 },
    { name: "step", label: "Step", press: (state) => walkOn(state, 1) },
    { name: "steps", label: "10 steps", press: (state) => walkOn(state, 10) },
    { name: "start", label: "t = 0", press: (state) => (state.t = 0) },
  ],
  begin: { t: 30 },
  numbers({ t, descentRate, adamRate, beta1, beta2 }) {
    const descent = descentPath(t, descentRate).at(-1);
    const { path, m, v } = adamPath(t, adamRate, beta1, beta2);
    const adam = path.at(-1);
    return {
      t,
      "descent, theta": descent, "descent, gradient": gradientAt(descent), "descent, loss": lossAt(descent),
      "Adam, theta": adam, "Adam, gradient": gradientAt(adam), "Adam, loss": lossAt(adam), "Adam, m": m, "Adam, v": v,
    };
  },
  draw({ t, descentRate, adamRate, beta1, beta2 }) {
    const descent = descentPath(t, descentRate);
    const { path } = adamPath(t, adamRate, beta1, beta2);
    return valley(descent, path) + losses(descent.map(lossAt), path.map(lossAt));
  },
  says({ t, descentRate }, { "descent, loss": descent, "Adam, loss": adam }) {
    const after = `After ${t} ${t === 1 ? "step" : "steps"}, from a loss of ${shown(lossAt(START))}: plain descent ${shown(descent)}, Adam ${shown(adam)}.`;
    return [after, describeDescent(descentRate), adam > lossAt(START) ? "Adam is farther up than at the start: its learning rate is too large for this valley." : ""].join(" ");
  },
};
const walkOn = (state, steps) => (state.t = Math.min(state.t + steps, LONGEST));

// A step multiplies b, the steep direction, by 1 - 100 rate: its loss grows if that is above 1 in size.
function describeDescent(rate) {
  const factor = 1 - CURVATURE[1] * rate;
  const size = Math.abs(factor).toFixed(2);
  if (size === "1.00") return "Plain descent does not settle: each step takes b to \u2212b, the other side of the valley, as high as before.";
  if (Math.abs(factor) > 1) return `Plain descent diverges: each step multiplies b by \u2212${size}. It needs a learning rate below 2 / 100 = 0.02.`;
  return `Plain descent converges: each step multiplies b by ${factor < 0 ? "\u2212" : ""}${size}, and a by ${(1 - rate).toFixed(3)}.`;
}

const within = (value, bound) => Math.max(-bound, Math.min(bound, value)); // a path that diverges ends outside of the frame
const legend = (x, y, kind, name) => path([[x, y - 4], [x + 18, y - 4]], kind) + words([x + 24, y], name, "start");

function valley(descent, adam) {
  const at = scale(340, 190, [-5, 5], [-1.6, 1.6]);
  const ring = (r) => path(range(91, (i) => at([r * Math.cos((i * Math.PI) / 45), (r * Math.sin((i * Math.PI) / 45)) / 10])), "axis");
  const way = (points, kind) => {
    const places = points.map(([a, b]) => at([within(a, 50), within(b, 50)]));
    return path(places, kind) + places.map((place) => circle(place, kind, 2)).join("");
  };
  const rings = [1, 3, 6, 10].map(ring).join("");
  return svg(340, 190, rings + way(descent, "second") + way(adam, "first") + words(at([0, -0.07]), "★") +
    legend(8, 14, "second", "descent") + legend(8, 30, "first", "Adam") + words([336, 14], "a →, b ↑", "end"));
}

// Losses by step, on a scale of powers of ten.
function losses(descent, adam) {
  const [low, high, last] = [-6, 6, Math.max(10, descent.length - 1)];
  const inside = scale(290, 150, [0, last], [low, high]);
  const at = ([t, loss]) => {
    const [x, y] = inside([t, Math.max(low, Math.min(high, Math.log10(loss)))]);
    return [x + 40, y + 12];
  };
  const ticks = [-6, -3, 0, 3, 6].map((power) => {
    const [x, y] = at([0, 10 ** power]);
    return path([[x, y], [330, y]], "axis") + words([x - 4, y + 4], power ? `1e${String(power).replace("-", "\u2212")}` : "1", "end");
  });
  const steps = [0, Math.round(last / 2), last].map((t) => words([at([t, 1])[0], 174], String(t), t === last ? "end" : "middle"));
  const curve = (values, kind) => path(values.map((loss, t) => at([t, loss])), kind) + circle(at([values.length - 1, values.at(-1)]), kind, 3);
  return svg(340, 190, ticks.join("") + steps.join("") + curve(descent, "second") + curve(adam, "first") + words([330, 186], "steps", "end") + words([40, 10], "loss", "start"));
}
