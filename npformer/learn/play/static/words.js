// Write a sentence: its attention weights, and which outputs move when one word changes.

import { bars, button, debounce, el, field, fill, latest, number } from "./dom.js";
import { movedTable } from "./digit.js";
import { decoded, mixingGrid, shade, sizes, span } from "./tensors.js";

const NUMBERS = ["parity", "pointer"]; // tasks whose tokens are numbers
const FIRST = { sentences: "The food was not good at all, but the service was great." };

export function wordsView(ask, run, sampled = true) {
  const input = el("textarea", { rows: 2, id: "sentence", spellcheck: "false" });
  input.value = FIRST[run.settings.task] ?? "";
  const answer = el("p", { class: "answer", role: "status" });
  const probabilities = el("div");
  const tokens = el("div", { class: "tokens", role: "group", "aria-label": "tokens" });
  const mixing = el("div", { class: "layers" });
  const asked = el("span", {});
  const pieces = el("p", { class: "about" }, "Tokens with # are pieces of words; < and > mark the beginning and the end of one. From its pieces the model knows something about a word that it has never seen.");
  const unknown = el("p", { class: "about" }, "[UNK] is a word that the model does not know.");
  let maps = [];
  const to = el("input", { type: "text", size: 12, value: run.settings.task === "sentences" ? "terrible" : "", id: "word", "aria-label": "the new token" });
  const moved = el("div");
  let words = [];
  let position = 0;
  let read = null; // the text that the answer is about

  const think = latest(async () => {
    const text = input.value;
    if (text !== read) fill(moved);
    read = text;
    for (const part of parts) part.hidden = !text.trim();
    if (!text.trim()) return void fill(answer, "An empty box. Write something in it.");
    const found = await ask("sentence", { text });
    words = found.tokens;
    position = Math.min(position, words.length - 1);
    const p = found.probabilities;
    const best = p.indexOf(Math.max(...p));
    fill(answer, "The model says ", el("b", {}, found.classes?.[best] ?? String(best)), ".");
    fill(probabilities, bars(p.map((each, k) => ({ name: found.classes?.[k] ?? k, p: each, best: k === best })).slice(0, 12)));
    maps = found.mixing;
    pieces.hidden = !words.some((word) => /^#./.test(word));
    unknown.hidden = !words.includes("[UNK]");
    to.value ||= words.find((word) => word !== words[position] && /^[\p{L}\p{N}]/u.test(word)) ?? words[0]; // no [UNK], no piece
    chips();
  });
  function chips() {
    fill(tokens, ...words.map((word, k) =>
      el("button", { type: "button", "aria-pressed": String(k === position), onclick: () => choose(k) }, word)));
    choose(position);
  }
  function choose(k) {
    position = k;
    [...tokens.children].forEach((token, j) => (token.ariaPressed = String(j === k)));
    fill(asked, el("b", {}, `“${words[position]}”`));
    fill(mixing, mixingGrid(maps, words, null, (layer) => takes(maps[layer].heads)));
  }
  // The sentence again, each word in the colour of its weight for the chosen one, averaged over the heads.
  function takes(heads) {
    const [n, rows, columns] = sizes(heads);
    const values = decoded(heads);
    const weights = words.map((_, j) => Array.from({ length: n }, (_, h) => values[(h * rows + position) * columns + j]).reduce((a, b) => a + b, 0) / n);
    const between = span(weights); // null if some are negative
    const most = Math.max(...weights.map(Math.abs), 1e-9);
    const colours = (weight) => {
      if (!between) return `background:color-mix(in srgb, var(${weight < 0 ? "--minus" : "--plus"}) ${(85 * Math.abs(weight || 0)) / most}%, transparent)`;
      const back = shade((weight - between[0]) / (between[1] - between[0]));
      return `background:rgb(${back});color:${back[1] < 115 ? "#fff" : "#000"}`;
    };
    return el("p", { class: "takes" }, words.map((word, j) => el("span", { style: colours(weights[j]) }, word, el("sub", {}, number(weights[j], 3)))));
  }
  input.addEventListener("input", debounce(think, 150));
  const sample = async () => {
    const { samples } = await ask("samples", { start: Math.floor(Math.random() * 100), n: 1 });
    input.value = samples[0].text;
    await think();
  };
  const edit = button("Change it", async () => {
    const found = await ask("edit", { text: input.value, position, to: to.value });
    fill(moved, movedTable(found.moved, words.map((word, k) => (k === position ? to.value : word)), position));
  }, { id: "edit" });
  if (sampled && !input.value) sample().catch(() => {});

  const change = el("div", {},
    el("h3", {}, "Change one token: which outputs move?"),
    el("p", { class: "about" }, "Choose a token and what to put in its place. The table shows, layer by layer, how far the output of each token moves. With a Fourier mixer, all move at once. With a causal one, none before the token moves."),
    tokens, pieces, unknown, el("p", { class: "line" }, to, edit), moved);
  const weights = el("section", { class: "card" },
    el("h2", {}, "Attention weights"),
    el("p", { class: "about" }, "The sentences show the weights of ", asked, ", averaged over the heads: a number below each word, and from dark blue, the least, to yellow, the greatest. Click another token on the left. In the matrix of a head, row i has the weights of token i; point at a square to read its two words. A mixer with negative weights has orange above 0 and blue below."),
    mixing);
  const parts = [probabilities, change, weights];
  const node = el("div", { class: "two" },
    el("section", { class: "card" },
      el("h2", {}, NUMBERS.includes(run.settings.task) ? "Write a sequence" : "Write a sentence"),
      field(NUMBERS.includes(run.settings.task) ? "Your numbers" : "Your words", input),
      sampled ? el("p", { class: "line" }, button("Take one from the data", sample)) : null,
      answer, probabilities, change), weights);
  return { node, renew: think };
}
