// Live pictures of what happens between tokens.

const VISIBLE = {
  none: () => true,
  "token 3 is padding": (i, j) => j < 3,
  causal: (i, j) => j <= i,
};
const transposed = (rows) => matrix(rows[0].length, rows.length, (i, j) => rows[j][i]);

PICTURES.attention = {
  title: "Choose a token and move its query and its dY. Its scores, weights and output follow, and then all gradients; a mask hides keys.",
  controls: [
    { name: "token", label: "token", of: ["0", "1", "2", "3"], value: "0" },
    { name: "mask", label: "mask", of: Object.keys(VISIBLE), value: "none" },
    { name: "q", label: "its q, feature", value: [2, 0], min: -4, max: 4 },
    { name: "dy", label: "its dY, feature", value: [1, 0], min: -2, max: 2 },
  ],
  numbers({ token, q, mask, dy }) {
    const withOwn = (rows, own) => rows.map((row, i) => (i === Number(token) ? [...own] : row));
    const Q = withOwn([[2, 0], [0, 2], [1, 1], [-1, 1]], q);
    const K = [[1, 0], [0, 1], [1, 1], [-1, 0]];
    const V = [[1, 0], [0, 4], [2, 2], [4, 1]];
    const seen = VISIBLE[mask];
    const S = matrix(4, 4, (i, j) => (seen(i, j) ? dot(Q[i], K[j]) / Math.SQRT2 : -Infinity));
    const A = S.map((row, i) => softmax(row, (j) => seen(i, j)));
    const dY = withOwn([[1, 0], [0, 1], [-1, 1], [0, -1]], dy);
    const dA = product(dY, transposed(V));
    const dS = A.map((row, i) => row.map((a, j) => a * (dA[i][j] - dot(row, dA[i]))));
    const scaled = (rows) => rows.map((row) => row.map((v) => v / Math.SQRT2));
    const back = { dY, dV: product(transposed(A), dY), dA, dS, dQ: scaled(product(dS, K)), dK: scaled(product(transposed(dS), Q)) };
    return { Q, K, V, S, A, Y: product(A, V), ...back };
  },
  marked: ({ token }, name) => (["Q", "S", "A", "Y", "dY", "dA", "dS", "dQ"].includes(name) ? Number(token) : -1),
};

PICTURES.window = {
  title: "Move the window. Each query (row) sees the keys (columns) near it, and the rest of the row is 0.",
  controls: [
    { name: "window", label: "window", value: 4, min: 1, max: 8, step: 1 },
    { name: "form", label: "form", of: ["both sides", "causal"], value: "both sides" },
  ],
  numbers({ window, form }) {
    const seen = (i, j) => (form === "causal" ? j <= i && i - j < window : Math.abs(i - j) <= Math.floor(window / 2));
    const row = (i) => softmax(range(8, (j) => -Math.abs(i - j) / 4), (j) => seen(i, j));
    return { "keys seen": range(8, (i) => sum(range(8, (j) => Number(seen(i, j))))), A: range(8, row) };
  },
};

PICTURES.rotary = {
  title: "Move both positions by the same amount: the score stays. Only their distance counts.",
  controls: [
    { name: "s", label: "position of the query", value: 2, min: 0, max: 20, step: 1 },
    { name: "t", label: "position of the key", value: 0, min: 0, max: 20, step: 1 },
    { name: "omega", label: "angle of a step", value: 0.5, min: 0, max: 1.5 },
  ],
  numbers({ s, t, omega }) {
    const turned = ([a, b], angle) => [a * Math.cos(angle) - b * Math.sin(angle), a * Math.sin(angle) + b * Math.cos(angle)];
    const [q, k] = [turned([1, 0], s * omega), turned([0.6, 0.8], t * omega)];
    return { "q, turned": q, "k, turned": k, "their dot product": dot(q, k), distance: s - t };
  },
  draw(state, { "q, turned": q, "k, turned": k }) {
    const at = scale(180, 180, [-1.25, 1.25], [-1.25, 1.25]);
    const ring = path(range(91, (i) => at([Math.cos((i * Math.PI) / 45), Math.sin((i * Math.PI) / 45)])), "axis");
    const arrow = (to, kind, name) => path([at([0, 0]), at(to)], kind) + circle(at(to), kind) + words(at(to.map((v) => 1.15 * v)), name);
    return svg(180, 180, ring + arrow(q, "first", "q") + arrow(k, "second", "k"));
  },
};

PICTURES.fourier = {
  title: "Move one token. Every output changes: there is no output that depends on it alone.",
  controls: [{ name: "x", label: "token", value: [1, 0, 0, 0, 0, 0, 0, 0], min: -2, max: 2 }],
  numbers({ x }) {
    const cosines = wave(Math.cos, 8).map((row) => [...row]);
    return { "matrix of cosines": cosines, x, y: transform(x.map((v) => [v]), false).map((row) => row[0]) };
  },
  draw: ({ x }, { y }) => bars([x, y], ["first", "second"], ["x", "y"]),
};

PICTURES.embedding = {
  title: "Move along the sequence: each pair of features turns, the first fast, the last slowly.",
  controls: [{ name: "t", label: "position", value: 1, min: 0, max: 40, step: 1 }],
  numbers({ t }) {
    const at = (s) => range(8, (c) => [Math.sin, Math.cos][c % 2](s / 10000 ** ((c - (c % 2)) / 8)));
    return { position: at(t), "dot product with the next one": dot(at(t), at(t + 1)) };
  },
  draw: (state, { position }) => bars([position], ["first"], [""]),
};
