// Live pictures of what happens between tokens.

const VISIBLE = {
  none: () => true,
  "token 3 is padding": (i, j) => j < 3,
  causal: (i, j) => j <= i,
};
const ROOT = Math.SQRT2; // of two features
const divided = (rows) => rows.map((row) => [...row].map((v) => v / ROOT));
const maskHides = ([i, j], { mask }) => !VISIBLE[mask](i, j);

const given = (name, value, most) => ({ name, value, min: -most, max: most, step: 0.1 });
const ATTENTION = {
  words: ["the", "cat", "sat", "down"],
  weights: ["A"],
  axes: {
    Q: ["query"], K: ["key"], V: ["key"], S: ["query", "key"], Z: ["query"], A: ["query", "key"], Y: ["query"],
    dQ: ["query"], dK: ["key"], dV: ["key"], dS: ["query", "key"], dA: ["query", "key"], dY: ["query"],
  },
  columns: ["Z"],
};
const maskControl = { name: "mask", label: "mask", of: Object.keys(VISIBLE), value: "none" };
const attentionControls = [
  given("Q", [[2, 0], [0, 2], [1, 1], [-1, 1]], 4),
  given("K", [[1, 0], [0, 1], [1, 1], [-1, 0]], 4),
  given("V", [[1, 0], [0, 4], [2, 2], [4, 1]], 4),
  maskControl,
];
const attentionSteps = [
  {
    makes: "S[i, j]", formula: "{Q[i, :]} · {K[j, :]} / √2", hidden: maskHides,
    numbers: ({ Q, K }, { mask }) => matrix(4, 4, (i, j) => (VISIBLE[mask](i, j) ? dot(Q[i], K[j]) / ROOT : -Infinity)),
  },
  { makes: "Z[i]", formula: "Σ exp {S[i, :]}", inner: true, numbers: ({ S }) => S.map((row) => sum(row.map(Math.exp))) },
  {
    makes: "A[i, j]", formula: "exp {S[i, j]} / {Z[i]}", hidden: maskHides,
    numbers: ({ S, Z }) => S.map((row, i) => row.map((v) => Math.exp(v) / Z[i])),
  },
  { makes: "Y[i, c]", formula: "{A[i, :]} · {V[:, c]}", numbers: ({ A, V }) => product(A, V) },
];

PICTURES.attention = {
  ...ATTENTION,
  title: "Point at a number: what it is made of lights up, and what is made of it. Choose a number of Q, K or V, and move it.",
  controls: attentionControls,
  steps: attentionSteps,
  shows: [["Q", "K", "S", "Z", "A", "V", "Y"]],
};

PICTURES.attention_backward = {
  ...ATTENTION,
  title: "The way back: dY goes to the values and to the weights, from there through softmax to the scores, and on to queries and keys.",
  controls: [...attentionControls, given("dY", [[1, 0], [0, 1], [-1, 1], [0, -1]], 2)],
  steps: [
    ...attentionSteps,
    { makes: "dV[j, c]", formula: "{A[:, j]} · {dY[:, c]}", numbers: ({ A, dY }) => product(transposed(A), dY) },
    { makes: "dA[i, j]", formula: "{dY[i, :]} · {V[j, :]}", numbers: ({ dY, V }) => product(dY, transposed(V)) },
    {
      makes: "dS[i, j]", formula: "{A[i, j]} × ({dA[i, j]} \u2212 {A[i, :]} · {dA[i, :]})", hidden: maskHides,
      numbers: ({ A, dA }, { mask }) => A.map((row, i) => row.map((a, j) => (VISIBLE[mask](i, j) ? a * (dA[i][j] - dot(row, dA[i])) : 0))),
    },
    { makes: "dQ[i, c]", formula: "{dS[i, :]} · {K[:, c]} / √2", numbers: ({ dS, K }) => divided(product(dS, K)) },
    { makes: "dK[j, c]", formula: "{dS[:, j]} · {Q[:, c]} / √2", numbers: ({ dS, Q }) => divided(product(transposed(dS), Q)) },
  ],
  shows: [["Q", "K", "S", "Z", "A", "V", "Y"], ["dQ", "dK", "dS", "dA", "dV", "dY"]],
};

PICTURES.window = {
  title: "Move the window. Each query (row) sees the keys (columns) near it, and the rest of the row is 0.",
  weights: ["A"],
  axes: {},
  controls: [
    { name: "window", label: "window", value: 4, min: 1, max: 14, step: 1 },
    { name: "form", label: "form", of: ["both sides", "causal"], value: "both sides" },
  ],
  steps: [
    {
      makes: "A[i, j]", formula: "softmax of \u2212|#i \u2212 j| / 4 over the keys j within {window}, {form}",
      numbers: ({ window, form }) => range(8, (i) => softmax(range(8, (j) => -Math.abs(i - j) / 4), (j) => near(i, j, window, form))),
    },
    { makes: "keys seen[i]", formula: "how many of {A[i, :]} are above 0", numbers: ({ A }) => A.map((row) => [...row].filter((v) => v > 0).length) },
  ],
  columns: ["keys seen"],
};
const near = (i, j, window, form) => (form === "causal" ? j <= i && i - j < window : Math.abs(i - j) <= Math.floor(window / 2));

const turned = ([a, b], angle) => [a * Math.cos(angle) - b * Math.sin(angle), a * Math.sin(angle) + b * Math.cos(angle)];
PICTURES.rotary = {
  title: "Move both positions by the same amount: the score stays. Only their distance counts.",
  family: { q: "Q", k: "K", "q, turned": "Q", "k, turned": "K" },
  controls: [
    given("q", [1, 0], 2),
    given("k", [0.6, 0.8], 2),
    { name: "s", label: "position s of the query", value: 2, min: 0, max: 20, step: 1 },
    { name: "t", label: "position t of the key", value: 0, min: 0, max: 20, step: 1 },
    { name: "omega", label: "angle ω of a step", value: 0.5, min: 0, max: 1.5, step: 0.05 },
  ],
  steps: [
    { makes: "q, turned[c]", formula: "{q[:]} turned by {s} × {omega}", numbers: ({ q, s, omega }) => turned(q, s * omega) },
    { makes: "k, turned[c]", formula: "{k[:]} turned by {t} × {omega}", numbers: ({ k, t, omega }) => turned(k, t * omega) },
    { makes: "their dot product", formula: "{q, turned[:]} · {k, turned[:]}", numbers: (arrays) => dot(arrays["q, turned"], arrays["k, turned"]) },
    { makes: "distance", formula: "{s} \u2212 {t}", numbers: ({ s, t }) => s - t },
  ],
  draw(state, { "q, turned": q, "k, turned": k }) {
    const reach = Math.max(1.25, ...[q, k].map((row) => 1.25 * Math.hypot(...row)));
    const at = scale(180, 180, [-reach, reach], [-reach, reach]);
    const ring = path(range(91, (i) => at([Math.cos((i * Math.PI) / 45), Math.sin((i * Math.PI) / 45)])), "axis");
    const arrow = (to, kind, name) => path([at([0, 0]), at(to)], kind) + circle(at(to), kind) + words(at(to.map((v) => 1.15 * v)), name);
    return svg(180, 180, ring + arrow(q, "Q", "q") + arrow(k, "K", "k"));
  },
};

PICTURES.fourier = {
  title: "Move one token. Every output changes: there is no output that depends on it alone.",
  full: 2,
  controls: [
    given("x", [1, 0, 0, 0, 0, 0, 0, 0], 2),
    given("dy", [0, 1, 0, 0, 0, 0, 0, 0], 2),
  ],
  steps: [
    { makes: "C[j, k]", formula: "cos(2π × #j × #k / 8)", numbers: () => wave(Math.cos, 8).map((row) => [...row]) },
    { makes: "y[k]", formula: "{C[k, :]} · {x[:]}", numbers: ({ C, x }) => C.map((row) => dot(row, x)) },
    { makes: "dx[j]", formula: "{C[:, j]} · {dy[:]}", numbers: ({ C, dy }) => transposed(C).map((row) => dot(row, dy)) },
  ],
  shows: [["C"], ["x", "y"], ["dy", "dx"]],
  draw: ({ x }, { y }) => bars({ x, y }),
};

const sinusoids = (t) => range(8, (c) => [Math.sin, Math.cos][c % 2](t / 10000 ** ((c - (c % 2)) / 8)));
PICTURES.embedding = {
  title: "Move along the sequence: each pair of features turns, the first fast, the last slowly.",
  full: 1,
  controls: [{ name: "t", label: "position t", value: 1, min: 0, max: 40, step: 1 }],
  steps: [
    { makes: "position[c]", formula: "sin or cos of {t} / 10000^(pair / 4)", numbers: ({ t }) => sinusoids(t) },
    { makes: "next[c]", formula: "sin or cos of ({t} + 1) / 10000^(pair / 4)", numbers: ({ t }) => sinusoids(t + 1) },
    { makes: "dot product with the next one", formula: "{position[:]} · {next[:]}", numbers: ({ position, next }) => dot(position, next) },
  ],
  draw: (state, { position }) => bars({ position }),
};
