// Answers to the questions of "Try it", computed here by model.js instead of by a server.

import { forward, load } from "./model.js";
import { spelling } from "./spelling.js";

const MOST = 64; // rows and columns of a picture
const HEADS = 8;

function pictured({ layer, kind, heads }) {
  const shown = heads.slice(0, HEADS).map((head) => head.slice(0, MOST).map((row) => row.slice(0, MOST)));
  const shape = [shown.length, shown[0].length, shown[0][0].length];
  return { layer, kind, heads: { name: `mixing of layer ${layer + 1}`, shape, values: Float32Array.from(shown.flatMap((head) => head.flatMap((row) => [...row]))) } };
}

// data: what npformer/learn/play/export.py wrote. Returns `ask(question, arguments)`.
export function answers(data) {
  const model = load(data.model);
  const { config, arguments: given } = model;
  const names = data.tokens ?? [];
  const ids = spelling(data.tokenizer, names, config.max_len);

  function run(x) {
    if (given.pooling !== "flatten" || x.length === config.max_len) return forward(model, x);
    const padding = given.vocab_size ? given.padding_id ?? 0 : new Array(given.n_features).fill(0);
    const full = Array.from({ length: config.max_len }, (_, t) => x[t] ?? padding);
    return forward(model, full, full.map((_, t) => t < x.length));
  }
  const answer = (x) => {
    const { probabilities, logits, mixing } = run(x);
    const p = probabilities ?? logits;
    const last = given.pooling === "none"; // an answer for each token, of which one is shown
    if (!probabilities) return { says: `The model says ${[...(last ? p.at(-1) : p)].map((y) => y.toPrecision(4)).join(", ")}.`, items: [], mixing: mixing.map(pictured) };
    return { last, probabilities: [...(last ? p.at(-1) : p)], classes: data.run.classes, mixing: mixing.map(pictured) };
  };
  const [low, high] = data.ink ?? [0, 1];
  const inked = (image) => image.map((row) => row.map((share) => low + share * (high - low)));
  const sample = (k) => data.samples.find(({ index }) => index === k).x;

  // How far the output of each token moves in each layer when one token changes.
  function moved(x, position, to) {
    const before = run(x).outputs;
    const after = run(x.map((token, t) => (t === position ? to : token))).outputs;
    return before.map((rows, layer) => rows.slice(0, x.length).map((row, t) =>
      row.reduce((most, value, c) => Math.max(most, Math.abs(value - after[layer][t][c])), 0)));
  }

  const questions = {
    digit: ({ image }) => answer(inked(image)),
    sample: ({ sample: k }) => answer(sample(k)),
    sentence({ text }) {
      const found = ids(text);
      return { ...answer(found), tokens: found.map((id) => names[id]) };
    },
    edit({ text, image, position, to }) {
      const x = image ? inked(image) : ids(text);
      return { moved: moved(x, position, given.vocab_size ? ids(to)[0] : inked([to])[0]) };
    },
    samples({ start = 0, n = 12 }) {
      const { length } = data.samples;
      return { total: length, samples: Array.from({ length: Math.min(n, length) }, (_, k) => data.samples[(start + k) % length]) };
    },
  };
  return async (question, more = {}) => questions[question](more);
}
