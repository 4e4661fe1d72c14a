// The forward pass of an encoder classifier, at evaluation, without any library: the formulas and the names of
// parameters are those of npformer/models, npformer/mixers and npformer/functional, and so are the numbers.
//
// x is a list of rows, one for each token, and a matrix is a list of its rows. Sums are made in double precision.

// { config, arguments, tensors: { name: { shape, data: base64 of float32 } } } -> a model for `forward`.
export function load(file) {
  const weights = {};
  for (const [name, { shape, data }] of Object.entries(file.tensors)) {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    weights[name] = nested(new Float32Array(bytes.buffer), shape);
  }
  return { config: file.config, arguments: file.arguments, weights };
}

function nested(values, [n, ...rest]) {
  if (!rest.length) return values;
  const size = values.length / n;
  return Array.from({ length: n }, (_, i) => nested(values.subarray(i * size, (i + 1) * size), rest));
}

// Vectors and matrices --------------------------------------------------------------------------------------------

const sum = (values) => values.reduce((total, value) => total + value, 0);
const dot = (a, b) => a.reduce((total, value, i) => total + value * b[i], 0);
const zeros = (n) => new Float64Array(n);
const range = (n, f) => Array.from({ length: n }, (_, i) => f(i));
const each = (x, f) => x.map((row, t) => Float64Array.from(row, (value, c) => f(value, t, c)));
const plus = (x, y) => each(x, (value, t, c) => value + y[t][c]);
const columns = (x, from, to) => x.map((row) => row.subarray(from, to));

function product(x, W) {
  return x.map((row) => {
    const y = zeros(W[0].length);
    for (let i = 0; i < row.length; i++) {
      const [factor, weights] = [row[i], W[i]]; // looked up once: twice as fast
      for (let j = 0; j < y.length; j++) y[j] += factor * weights[j];
    }
    return y;
  });
}

function linear(x, p, name) {
  const [W, b] = [p(`${name}.weight`), p(`${name}.bias`)];
  const y = product(x, W[0][0].length ? W[0] : W); // a convolution of size 1 has its matrix in a list
  return b ? each(y, (value, t, c) => value + b[c]) : y;
}

// exp(x_i) / sum_j exp(x_j) over those that are seen, and 0 elsewhere.
export function softmax(row, seen = () => true) {
  const top = Math.max(...row.filter((_, j) => seen(j)));
  const y = Float64Array.from(row, (value, j) => (seen(j) && value > -Infinity ? Math.exp(value - top) : 0));
  const total = sum(y);
  return y.map((value) => value / (total || 1));
}

function layerNorm(x, p, name, eps) {
  const [gamma, beta] = [p(`${name}.gamma`), p(`${name}.beta`)];
  return x.map((row) => {
    const mean = sum(row) / row.length;
    const centred = Float64Array.from(row, (value) => value - mean);
    const std = Math.sqrt(dot(centred, centred) / row.length + eps);
    return centred.map((value, c) => (gamma[c] * value) / std + beta[c]);
  });
}

// exp(-x^2 / 2) / sqrt(2 pi). The square of h is exact, and so the exponent of its exponential: x^2 = h^2 + (x - h)(x + h).
export function normalDensity(x) {
  const near = Math.min(Math.abs(x), 40);
  const h = Math.round(near * 64) / 64;
  return (Math.exp(-h * h / 2) * Math.exp((-(near - h) * (near + h)) / 2)) / Math.sqrt(2 * Math.PI);
}

// The probability that a standard normal number is below x. From -1 on, 1 / 2 + density sum_n x^(2n+1) / (1 3 5 ... (2n+1)).
// Below, where this sum would cancel, density / (t + 1 / (t + 2 / (t + 3 / ...))) with t = -x.
export function normalDistribution(x) {
  if (x > 1) return 1 - normalDistribution(-x);
  if (x < -1) {
    let t = -x;
    for (let n = Math.ceil(20 + 450 / (x * x)); n > 0; n--) t = -x + n / t;
    return normalDensity(x) / t;
  }
  let [term, total] = [x, x];
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(total); n++) total += term *= (x * x) / (2 * n + 1);
  return 0.5 + normalDensity(x) * total;
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => x * normalDistribution(x),
  gelu_tanh: (x) => x * sigmoid(2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)), // (1 + tanh u) / 2 = sigmoid(2 u)
  silu: (x) => x * sigmoid(x),
  tanh: Math.tanh,
};

// Mixers that average tokens: attention, synthesizers, and their mixture ------------------------------------------

function split(x, heads) {
  const size = x[0].length / heads;
  return range(heads, (h) => columns(x, h * size, (h + 1) * size));
}
const merge = (heads) => heads[0].map((_, t) => Float64Array.from(heads.flatMap((head) => [...head[t]])));

// relu(x W1 + b1) W2 + b2, a head with a part of W1's columns and its own W2.
function dense(x, W1, b1, W2, b2) {
  const hidden = each(product(x, W1), (value, t, c) => Math.max(0, value + b1[c]));
  return split(hidden, W2.length).map((part, h) => each(product(part, W2[h]), (value, t, c) => value + b2[h][c]));
}
const cropped = (table, n) => columns(table.slice(0, n), 0, n);

// Scores of the tokens for each other, a matrix for each head, from x and p, which finds the mixer's parameters.
const SCORES = {
  attention(x, p, { n_heads }) {
    const [query, key] = ["query", "key"].map((name) => split(linear(x, p, name), n_heads));
    return query.map((rows, h) => rows.map((q) => Float64Array.from(key[h], (k) => dot(q, k) / Math.sqrt(q.length))));
  },
  dense_synthesizer: (x, p) => dense(x, ...["W1", "b1", "W2", "b2"].map(p)).map((head) => columns(head, 0, x.length)),
  factorized_dense_synthesizer(x, p) {
    const short = dense(x, ...["W1", "b1", "W2", "b2"].map(p));
    const long = dense(x, ...["V1", "c1", "V2", "c2"].map(p));
    return short.map((head, h) => head.map((row, t) =>
      Float64Array.from(x, (_, j) => row[j % row.length] * long[h][t][Math.floor(j / row.length)])));
  },
  random_synthesizer: (x, p) => p("R").map((table) => cropped(table, x.length)),
  factorized_random_synthesizer: (x, p) => p("R1").map((left, h) =>
    x.map((_, i) => Float64Array.from(x, (_, j) => dot(left[i], p("R2")[h][j])))),
  mixture(x, p, config) {
    const weights = softmax(p("logits"));
    const parts = config.mixture.map((name, k) => SCORES[name](x, (of) => p(`parts.${k}.${of}`), config));
    return parts[0].map((head, h) => each(head, (_, i, j) => sum(parts.map((part, k) => weights[k] * part[h][i][j]))));
  },
};
SCORES.fixed_random_synthesizer = SCORES.random_synthesizer;

function averaging(name, x, p, config, mask) {
  const seen = (i) => (j) => (!mask || mask[j]) && (!config.causal || j <= i);
  const weights = SCORES[name](x, p, config).map((head) => head.map((row, i) => softmax(row, seen(i))));
  const values = split(linear(x, p, "value"), config.n_heads);
  return { y: linear(merge(weights.map((head, h) => product(head, values[h]))), p, "output"), matrices: weights };
}

// Mixers of whole sequences: y = C x C - S x S is the real part of a Fourier transform of tokens and features ------

const wave = (f, n) => range(n, (j) => Float64Array.from({ length: n }, (_, k) => f((2 * Math.PI * ((j * k) % n)) / n)));

function transform(x, imaginary) {
  const [L, d] = [x.length, x[0].length];
  const [C, S] = [Math.cos, Math.sin].map((f) => [product(wave(f, L), x), wave(f, d)]);
  const real = each(product(C[0], C[1]), (value) => value);
  const ss = product(S[0], S[1]);
  const y = each(real, (value, t, c) => value - ss[t][c]);
  return imaginary ? plus(y, plus(product(C[0], S[1]), product(S[0], C[1]))) : y; // Hartley: Re - Im
}
const linearMixing = (x, p) => {
  const table = cropped(p("W_sequence"), x.length);
  return { y: product(product(table, x), p("W_features")), matrices: [table] };
};
const WHOLE = {
  fourier: (x) => ({ y: transform(x, false), matrices: [wave(Math.cos, x.length)] }), // the real part of the matrix
  hartley: (x) => ({ y: transform(x, true), matrices: [wave(Math.cos, x.length)] }),
  linear: linearMixing,
  random: linearMixing,
};

function whole(name, x, p, config, mask) {
  if (!mask) return WHOLE[name](x, p);
  if (config.padding === "refuse") throw new Error(`the mixer ${name} cannot skip padding`);
  if (config.padding === "zero") return WHOLE[name](hidden(x, mask), p);
  const n = mask.filter(Boolean).length; // "per_length": the tokens are mixed without the padding behind them
  const { y, matrices } = WHOLE[name](x.slice(0, n), p);
  const zero = (row, size) => range(size, (j) => row?.[j] ?? 0);
  return { y: x.map((row, t) => y[t] ?? zeros(row.length)), matrices: matrices.map((head) => x.map((_, t) => zero(head[t], x.length))) };
}

// Mixers that look back, feature by feature: convolutions with a kernel k_j for what is j tokens back -------------

const convolution = (x, kernel) => each(x, (_, t, c) => {
  let total = 0;
  for (let j = 0; j <= t && j < kernel.length; j++) total += kernel[j][c] * x[t - j][c];
  return total;
});
// The mean over features of the weight of token j for token i, with or without gates.
const taken = (L, d, kernel, skip, gate) => [range(L, (i) => Float64Array.from({ length: L }, (_, j) =>
  j > i ? 0 : sum(range(d, (c) => Math.abs(gate(i, j, c) * (kernel[i - j][c] + (i === j ? skip[c] : 0))))) / d))];

function gatedConvolution(x, p, config, mask) {
  const d = x[0].length;
  const near = convolution(hidden(linear(hidden(x, mask), p, "inner"), mask), p("short"));
  const [x0, x1, v] = range(3, (k) => columns(near, k * d, (k + 1) * d));
  const z = hidden(each(x1, (value, t, c) => value * v[t][c]), mask);
  const s = convolution(z, p("kernel"));
  const y = linear(each(x0, (value, t, c) => value * (s[t][c] + p("skip")[c] * z[t][c])), p, "output");
  return { y: hidden(y, mask), matrices: taken(x.length, d, p("kernel"), p("skip"), (i, j, c) => x0[i][c] * x1[j][c]) };
}

// k_j = 2 Re sum_n C_n (e^z - 1) / A e^(j z), z = Delta A, A = -exp(log_decay) + i frequency.
function kernelOf(p, L, d) {
  const kernel = range(L, () => zeros(d));
  for (let c = 0; c < d; c++) {
    const step = Math.exp(p("log_step")[c]);
    p("frequency")[c].forEach((b, n) => {
      const a = -Math.exp(p("log_decay")[c][n]);
      const [grown, turned] = [Math.exp(step * a), step * b];
      const e = [Math.expm1(step * a) - 2 * grown * Math.sin(turned / 2) ** 2, grown * Math.sin(turned)]; // e^z - 1
      const f = [(e[0] * a + e[1] * b) / (a * a + b * b), (e[1] * a - e[0] * b) / (a * a + b * b)];
      const [re, im] = [p("C")[0][c][n], p("C")[1][c][n]];
      const w = [re * f[0] - im * f[1], re * f[1] + im * f[0]];
      for (let j = 0; j < L; j++) kernel[j][c] += 2 * grown ** j * (w[0] * Math.cos(j * turned) - w[1] * Math.sin(j * turned));
    });
  }
  return kernel;
}

function stateSpace(x, p, config, mask) {
  const [L, d] = [x.length, x[0].length];
  const [kernel, kept] = [kernelOf(p, L, d), hidden(x, mask)];
  const s = convolution(kept, kernel);
  const y = linear(each(s, (value, t, c) => ACTIVATIONS.gelu(value + p("skip")[c] * kept[t][c])), p, "output");
  return { y: hidden(y, mask), matrices: taken(L, d, kernel, p("skip"), () => 1) };
}

const identity = (x) => ({ y: x, matrices: [range(x.length, (i) => Float64Array.from(x, (_, j) => Number(i === j)))] });

function mix(name, ...given) {
  const other = { identity, gated_convolution: gatedConvolution, state_space: stateSpace }[name];
  if (other) return other(...given);
  return (name in WHOLE ? whole : averaging)(name, ...given);
}

// The model -------------------------------------------------------------------------------------------------------

const hidden = (x, mask) => (mask ? x.map((row, t) => (mask[t] ? row : zeros(row.length))) : x);

function embed(x, { config, arguments: given, weights }) {
  const p = (name) => weights[`embed.${name}`];
  const scale = given.vocab_size && config.scale_embeddings ? Math.sqrt(config.d_model) : 1;
  let y = given.vocab_size ? x.map((id) => Float64Array.from(p("tokens.weight")[id], (w) => scale * w)) : linear(x, p, "tokens");
  if (p("positions.table")) y = plus(y, p("positions.table")); // its first rows
  if (p("types.weight")) y = each(y, (value, t, c) => value + scale * p("types.weight")[0][c]); // the first type
  if (p("norm.gamma")) y = layerNorm(y, p, "norm", config.norm_eps);
  return p("projection.weight") ? linear(y, p, "projection") : y;
}

// x = norm(x + f(x)) or, pre-norm, x = x + f(norm(x)).
function residual(x, f, p, name, { norm, norm_eps }) {
  if (norm === "pre") return plus(x, f(layerNorm(x, p, name, norm_eps)));
  return layerNorm(plus(x, f(x)), p, name, norm_eps);
}

const POOLINGS = {
  mean: (x, kept) => [zeros(x[0].length).map((_, c) => sum(kept.map((row) => row[c])) / Math.max(kept.length, 1))],
  max: (x, kept) => [zeros(x[0].length).map((_, c) => (kept.length ? Math.max(...kept.map((row) => row[c])) : 0))],
  first: (x, kept) => [kept[0] ?? zeros(x[0].length)],
  flatten: (x) => [Float64Array.from(x.flatMap((row) => [...row]))],
  none: (x) => x,
  pooler: (x, kept, p, name) => each(linear([kept[0] ?? zeros(x[0].length)], p, "pool.dense"), ACTIVATIONS[name.match(/relu|gelu_tanh|gelu|silu/)?.[0] ?? "tanh"]),
};

// The wide part: a linear map of the tokens and of known pairs of neighbours, weighted by TF-IDF, of norm 20.
function wide(ids, mask, p, vocabSize) {
  const kept = (t) => !mask || mask[t];
  const place = new Map(p("wide.pairs").map(([a, b], k) => [a * vocabSize + b, vocabSize + k]));
  const counts = new Map();
  const pairs = ids.map((id, t) => kept(t - 1) && kept(t) ? place.get(ids[t - 1] * vocabSize + id) : undefined);
  for (const id of [...ids.filter((_, t) => kept(t)), ...pairs.filter((k) => k !== undefined)]) counts.set(id, (counts.get(id) ?? 0) + 1);
  const found = [...counts].map(([id, n]) => [id, p("wide.idf")[id] * (1 + Math.log(n))]);
  const norm = Math.sqrt(sum(found.map(([, v]) => v * v))) || 1;
  return Float64Array.from(p("wide.bias"), (b, k) => b + sum(found.map(([id, v]) => (20 * v * p("wide.weight")[id][k]) / norm)));
}

// What comes out of the last layer, the matrices that each layer mixes with, one for each head, and what comes out of
// each layer. x: a list of token ids, or of rows of features; mask: true for tokens, false for padding; null if there is none.
export function encode(model, x, mask = null) {
  const { config, arguments: given, weights } = model;
  const mixing = [];
  const outputs = [];
  let y = hidden(embed(given.vocab_size ? x : hidden(x, mask), model), mask);
  config.mixer.forEach((mixer, layer) => {
    const block = (name) => weights[`encoder.blocks.${config.share_layers ? 0 : layer}.${name}`];
    const name = mixer.split("(")[0];
    y = residual(y, (x) => {
      const { y, matrices } = mix(name, x, (of) => block(`mixer.${of}`), config, mask);
      const kept = (i, j) => !mask || (mask[i] && mask[j]);
      mixing.push({ layer, kind: name, heads: matrices.map((head) => each(head, (value, i, j) => (kept(i, j) ? value : 0))) });
      return y;
    }, block, "mixer_norm", config);
    const network = (x) => linear(each(linear(x, block, "feed_forward.expand"), (value) => ACTIVATIONS[config.activation](value)), block, "feed_forward.contract");
    if (block("feed_forward.expand.weight")) y = residual(y, network, block, "feed_forward_norm", config);
    outputs.push(hidden(y, mask));
  });
  if (weights["encoder.final_norm.gamma"]) y = layerNorm(y, (name) => weights[name], "encoder.final_norm", config.norm_eps);
  return { y: hidden(y, mask), mixing, outputs };
}

// x and mask as above. Returns logits and probabilities (a list for each token if the model has an answer for each),
// and mixing and outputs of `encode`.
export function forward(model, x, mask = null) {
  const { arguments: given, weights } = model;
  const p = (name) => weights[name];
  const { y, mixing, outputs } = encode(model, x, mask);
  const pooled = POOLINGS[given.pooling.split("(")[0]](y, mask ? y.filter((_, t) => mask[t]) : y, p, given.pooling);
  let logits = linear(pooled, p, "classify");
  if (p("wide.weight")) logits = [...logits, wide(x, mask, p, given.vocab_size)];
  const ofRow = { softmax: (row) => softmax(row), sigmoid: ([z]) => Float64Array.of(sigmoid(-z), sigmoid(z)) }[given.output];
  const answers = p("wide.weight") ? [logits[0].map((z, k) => (z + logits[1][k]) / 2)] : logits;
  const probabilities = ofRow ? answers.map(ofRow) : null;
  const one = (rows) => (given.pooling === "none" ? rows : p("wide.weight") && rows === logits ? rows : rows?.[0] ?? null);
  return { logits: one(logits), probabilities: one(probabilities), mixing, outputs };
}
